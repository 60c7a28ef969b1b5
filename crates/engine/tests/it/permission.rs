//! Permission requests and replies: once, always, reject, reject with a message, and rules that deny.

use codewright_proto::{
    Action, Event, Fact, PermissionAnswer, PermissionReply, PermissionRequest, PromptInput, Rule,
    SessionInput, ToolState,
};
use codewright_scripted::{Script, Turn};
use serde_json::json;

use crate::desk::{Desk, calls, prompt, text, wait_for};

fn bash(command: &str) -> Turn {
    Turn::steps().tool("bash", json!({ "command": command })).into()
}

fn ask_for_bash() -> serde_json::Value {
    json!({ "permission": { "bash": "ask" } })
}

async fn permission_request(feed: &mut codewright_engine::Subscription) -> PermissionRequest {
    wait_for(feed, |published| match published.notice().fact {
        Fact::Event(Event::PermissionAsked(request)) => Some(request),
        _ => None,
    })
    .await
}

fn answer(reply: PermissionReply, message: Option<&str>) -> PermissionAnswer {
    PermissionAnswer { message: message.map(str::to_owned), ..reply.into() }
}

#[tokio::test]
async fn a_call_waits_for_its_permission() {
    let desk = Desk::with(Script::new().turn(bash("echo one && ls")).text("done"), ask_for_bash()).await;
    let session = desk.session().await;
    let mut feed = desk.engine.events().subscribe();
    desk.engine.sessions().prompt_async(&session.id, prompt("go")).await.unwrap();
    let request = permission_request(&mut feed).await;
    assert_eq!(request.permission, "bash");
    assert_eq!(request.patterns, ["echo one", "ls"]);
    assert_eq!(request.always, ["echo *", "ls *"]);
    assert_eq!(request.metadata["command"], "echo one && ls");
    assert_eq!(desk.engine.permissions().pending().await.unwrap(), std::slice::from_ref(&request));
    desk.engine.permissions().answer(&request.id, answer(PermissionReply::Once, None)).await.unwrap();
    idle(&mut feed).await;
    let calls = calls(&desk.transcript(&session).await);
    assert!(matches!(&calls[0].1, ToolState::Completed { output, .. } if output.starts_with("one\n")));
    assert!(desk.engine.permissions().pending().await.unwrap().is_empty());
    let again = desk.engine.permissions().answer(&request.id, answer(PermissionReply::Once, None)).await;
    assert!(again.unwrap_err().to_string().contains("not found"));
}

#[tokio::test]
async fn a_reply_of_always_saves_only_the_same_request() {
    let script = Script::new().turn(bash("echo one")).turn(bash("echo two")).turn(bash("ls")).text("done");
    let desk = Desk::with(script, ask_for_bash()).await;
    let session = desk.session().await;
    let mut feed = desk.engine.events().subscribe();
    desk.engine.sessions().prompt_async(&session.id, prompt("go")).await.unwrap();
    let first = permission_request(&mut feed).await;
    desk.engine.permissions().answer(&first.id, answer(PermissionReply::Always, None)).await.unwrap();
    let second = permission_request(&mut feed).await;
    assert_eq!(second.patterns, ["ls"]);
    desk.engine.permissions().answer(&second.id, answer(PermissionReply::Once, None)).await.unwrap();
    idle(&mut feed).await;
    assert_eq!(calls(&desk.transcript(&session).await).len(), 3);
}

#[tokio::test]
async fn a_rejection_ends_the_turn_unless_it_has_a_message() {
    let script = Script::new().turn(bash("echo one")).turn(bash("echo two")).text("used python");
    let desk = Desk::with(script, ask_for_bash()).await;
    let session = desk.session().await;
    let mut feed = desk.engine.events().subscribe();
    desk.engine.sessions().prompt_async(&session.id, prompt("go")).await.unwrap();
    let request = permission_request(&mut feed).await;
    desk.engine.permissions().answer(&request.id, answer(PermissionReply::Reject, None)).await.unwrap();
    idle(&mut feed).await;
    assert_eq!(desk.server.main_requests().len(), 1);
    desk.engine.sessions().prompt_async(&session.id, prompt("again")).await.unwrap();
    let request = permission_request(&mut feed).await;
    let reply = answer(PermissionReply::Reject, Some("use python instead"));
    desk.engine.permissions().answer(&request.id, reply).await.unwrap();
    idle(&mut feed).await;
    let transcript = desk.transcript(&session).await;
    let errors: Vec<_> = calls(&transcript)
        .into_iter()
        .map(|(_, state)| match state {
            ToolState::Error { error, .. } => error,
            other => panic!("{other:?}"),
        })
        .collect();
    let refused = "The user rejected permission to use this specific tool call";
    assert_eq!(errors[0], format!("{refused}."));
    assert_eq!(errors[1], format!("{refused} with the following feedback: use python instead"));
    assert_eq!(text(transcript.last().unwrap()), "used python");
    desk.assert_clean();
}

#[tokio::test]
async fn a_turn_continues_after_a_rejection_if_configured() {
    let config = json!({"permission": {"bash": "ask"}, "experimental": {"continue_loop_on_deny": true}});
    let desk = Desk::with(Script::new().turn(bash("echo one")).text("without it, then"), config).await;
    let session = desk.session().await;
    let mut feed = desk.engine.events().subscribe();
    desk.engine.sessions().prompt_async(&session.id, prompt("go")).await.unwrap();
    let request = permission_request(&mut feed).await;
    desk.engine.permissions().answer(&request.id, answer(PermissionReply::Reject, None)).await.unwrap();
    idle(&mut feed).await;
    assert_eq!(text(desk.transcript(&session).await.last().unwrap()), "without it, then");
    desk.assert_clean();
}

#[tokio::test]
async fn the_configuration_sets_the_output_limit_and_the_shell() {
    let config = json!({"tool_output": {"max_lines": 3}, "shell": "bash"});
    let script = Script::new().turn(bash("echo ${BASH_VERSION:+bash}; seq 100")).text("seen");
    let desk = Desk::with(script, config).await;
    let session = desk.session().await;
    desk.prompt(&session, "go").await;
    let calls = calls(&desk.transcript(&session).await);
    let ToolState::Completed { output, metadata, .. } = &calls[0].1 else { panic!("{calls:?}") };
    assert!(output.ends_with("\n99\n100\n") && !output.contains("\n98\n"), "{output}");
    let whole = std::fs::read_to_string(metadata["outputPath"].as_str().unwrap()).unwrap();
    assert!(whole.starts_with("bash\n1\n2\n"), "{whole}");
    desk.assert_clean();
}

#[tokio::test]
async fn a_denied_call_is_reported_to_the_model_and_the_turn_continues() {
    let desk = Desk::new(Script::new().turn(bash("echo one")).text("understood")).await;
    let rules = vec![Rule::new("bash", "echo *", Action::Deny)];
    let input = SessionInput { title: Some("t".into()), permission: Some(rules), ..SessionInput::default() };
    let session = desk.engine.sessions().create(&desk.instance, input).await.unwrap();
    assert_eq!(text(&desk.prompt(&session, "go").await), "understood");
    let calls = calls(&desk.transcript(&session).await);
    let ToolState::Error { error, .. } = &calls[0].1 else { panic!("{:?}", calls[0]) };
    assert!(error.contains(r#"{"permission":"bash","pattern":"echo *","action":"deny"}"#), "{error}");
}

#[tokio::test]
async fn an_approval_does_not_override_a_rule_that_denies() {
    let script = Script::new().turn(bash("echo one")).text("a").turn(bash("echo two")).text("b");
    let desk = Desk::with(script, ask_for_bash()).await;
    let first = desk.session().await;
    let mut feed = desk.engine.events().subscribe();
    desk.engine.sessions().prompt_async(&first.id, prompt("go")).await.unwrap();
    let request = permission_request(&mut feed).await;
    desk.engine.permissions().answer(&request.id, answer(PermissionReply::Always, None)).await.unwrap();
    idle(&mut feed).await;
    let rules = vec![Rule::new("bash", "*", Action::Ask), Rule::new("bash", "echo *", Action::Deny)];
    let input = SessionInput { title: Some("t".into()), permission: Some(rules), ..SessionInput::default() };
    let second = desk.engine.sessions().create(&desk.instance, input).await.unwrap();
    desk.prompt(&second, "go").await;
    let calls = calls(&desk.transcript(&second).await);
    assert!(matches!(&calls[0].1, ToolState::Error { .. }), "{:?}", calls[0]);
}

#[tokio::test]
async fn the_third_identical_call_of_an_answer_asks() {
    let glob = json!({ "pattern": "*.md" });
    let turn = Turn::tools([("glob", glob.clone()), ("glob", glob.clone()), ("glob", glob)]);
    let desk = Desk::new(Script::new().turn(turn).text("done")).await;
    let session = desk.session().await;
    let mut feed = desk.engine.events().subscribe();
    desk.engine.sessions().prompt_async(&session.id, prompt("go")).await.unwrap();
    let request = permission_request(&mut feed).await;
    assert_eq!(request.permission, "doom_loop");
    assert_eq!((request.patterns.as_slice(), request.tool.is_none()), (&["glob".to_owned()][..], true));
    desk.engine.permissions().answer(&request.id, answer(PermissionReply::Once, None)).await.unwrap();
    idle(&mut feed).await;
}

/// Runs a turn of these calls, answers its requests with once, and returns the requested permissions.
async fn requested(script: Script) -> Vec<String> {
    let desk = Desk::new(script).await;
    let session = desk.session().await;
    let mut feed = desk.engine.events().subscribe();
    desk.engine.sessions().prompt_async(&session.id, prompt("go")).await.unwrap();
    let mut requested = Vec::new();
    loop {
        let request = wait_for(&mut feed, |published| match published.notice().fact {
            Fact::Event(Event::PermissionAsked(request)) => Some(Some(request)),
            Fact::Signal(codewright_proto::Signal::SessionIdle { .. }) => Some(None),
            _ => None,
        });
        let Some(request) = request.await else { return requested };
        desk.engine.permissions().answer(&request.id, answer(PermissionReply::Once, None)).await.unwrap();
        requested.push(request.permission);
    }
}

#[tokio::test]
async fn repeated_calls_are_compared_as_values_and_in_a_row() {
    let same = [
        ("glob", r#"{"pattern":"*.md","path":"."}"#),
        ("glob", r#"{ "path": ".", "pattern": "*.md" }"#),
        ("glob", r#"{"pattern": "*.md", "path": "."}"#),
    ];
    assert_eq!(requested(Script::new().turn(Turn::tools(same)).text("done")).await, ["doom_loop"]);
    let (a, b) = (json!({"pattern": "*.md"}), json!({"pattern": "*.rs"}));
    let mixed = [("glob", a.clone()), ("glob", a.clone()), ("glob", b), ("glob", a)];
    assert!(requested(Script::new().turn(Turn::tools(mixed)).text("done")).await.is_empty());
}

#[tokio::test]
async fn a_call_that_is_repeated_in_every_step_asks() {
    let repeated = |command: &str, times: usize| {
        (0..times).fold(Script::new(), |script, _| script.turn(bash(command))).text("done")
    };
    assert!(requested(repeated("echo same", 9)).await.is_empty());
    assert_eq!(requested(repeated("echo same", 11)).await, ["doom_loop", "doom_loop"]);
    // A call whose result changes waits for a change.
    assert!(requested(repeated("echo x >> log; wc -c log", 11)).await.is_empty());
}

#[tokio::test]
async fn an_abort_withdraws_the_question() {
    let desk = Desk::with(Script::new().turn(bash("echo one")).text("after"), ask_for_bash()).await;
    let session = desk.session().await;
    let mut feed = desk.engine.events().subscribe();
    desk.engine.sessions().prompt_async(&session.id, prompt("go")).await.unwrap();
    permission_request(&mut feed).await;
    desk.engine.sessions().abort(&session.id).await.unwrap();
    assert!(desk.engine.permissions().pending().await.unwrap().is_empty());
    assert_eq!(text(&desk.prompt(&session, "again").await), "after");
    desk.assert_clean();
}

async fn idle(feed: &mut codewright_engine::Subscription) {
    wait_for(feed, |published| match published.notice().fact {
        Fact::Signal(codewright_proto::Signal::SessionIdle { .. }) => Some(()),
        _ => None,
    })
    .await;
}

#[tokio::test]
async fn tool_switches_become_rules_of_the_session() {
    let desk = Desk::with(Script::new().text("one").text("two"), json!({})).await;
    let edit = Rule::new("edit", "*", Action::Ask);
    let input = SessionInput { permission: Some(vec![edit.clone()]), ..SessionInput::default() };
    let session = desk.engine.sessions().create(&desk.instance, input).await.unwrap();
    let rules =
        async || desk.engine.sessions().get(&session.id).await.unwrap().permission.unwrap_or_default();
    desk.engine.sessions().prompt(&session.id, prompt("go")).await.unwrap();
    assert_eq!(rules().await, [edit]);
    let tools = [("bash".to_owned(), false), ("write".to_owned(), true)];
    let switched = PromptInput { tools: Some(tools.into()), ..prompt("go on") };
    desk.engine.sessions().prompt(&session.id, switched).await.unwrap();
    let expected = [Rule::new("bash", "*", Action::Deny), Rule::new("write", "*", Action::Allow)];
    assert_eq!(rules().await, expected);
}
