//! Subagents: message shapes, permissions, parallel work, continuation and cancellation.

use std::sync::{Arc, Mutex};

use codewright_engine::Subscription;
use codewright_proto::{
    Action, Event, Fact, Message, MessageError, MessageWithParts, PartBody, PartInput, PermissionAnswer,
    PermissionReply, PermissionRequest, PromptInput, PromptModel, Rule, Session, SessionInput, Signal,
    ToolState,
};
use codewright_scripted::{Script, Turn};
use serde_json::{Value, json};

use crate::desk::{DEADLINE, Desk, calls, prompt, text, wait_for};

fn task(description: &str, prompt: &str, agent: &str) -> Value {
    json!({"description": description, "prompt": prompt, "subagent_type": agent})
}

async fn children(desk: &Desk, session: &Session) -> Vec<Session> {
    let mut children = desk.engine.sessions().children(&session.id).await.unwrap();
    children.sort_by(|a, b| b.id.cmp(&a.id));
    children
}

fn rules(session: &Session) -> String {
    let rules = session.permission.iter().flatten();
    let rules = rules.map(|rule| format!("{} {} {:?}", rule.permission, rule.pattern, rule.action));
    rules.collect::<Vec<_>>().join("; ")
}

#[track_caller]
fn error(call: &(String, ToolState)) -> &str {
    match &call.1 {
        ToolState::Error { error, .. } => error,
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn output(call: &(String, ToolState)) -> &str {
    match &call.1 {
        ToolState::Completed { output, .. } => output,
        other => panic!("{other:?}"),
    }
}

async fn permission_request(feed: &mut Subscription) -> PermissionRequest {
    wait_for(feed, |published| match published.notice().fact {
        Fact::Event(Event::PermissionAsked(request)) => Some(request),
        _ => None,
    })
    .await
}

async fn idle(feed: &mut Subscription, session: &Session) {
    let id = session.id.clone();
    wait_for(feed, |published| match published.notice().fact {
        Fact::Signal(Signal::SessionIdle { session_id }) if session_id == id => Some(()),
        _ => None,
    })
    .await;
}

#[tokio::test]
async fn a_subagent_works_in_a_separate_session_with_the_recorded_shapes() {
    let script = Script::new()
        .session(
            "SUBTASK find",
            [
                Turn::from(Turn::steps().tool("glob", json!({"pattern": "**/*.py"}))),
                Turn::text("Found none.").into(),
            ],
        )
        .tool("task", task("find python", "SUBTASK find the python files", "explore"))
        .text("Task finished.");
    let desk = Desk::new(script).await;
    let session = desk.session().await;
    let answer = desk.prompt(&session, "go").await;
    assert_eq!(text(&answer), "Task finished.");
    let child = children(&desk, &session).await.remove(0);
    assert_eq!(child.parent_id.as_ref(), Some(&session.id));
    assert_eq!(child.title, "find python (@explore subagent)");
    assert_eq!(child.agent.as_deref(), Some("explore"));
    assert_eq!(rules(&child), "todowrite * Deny; task * Deny");
    assert_eq!(json!(child.model), json!({"id": "plain-model", "providerID": "mock", "variant": "default"}));
    let calls = calls(&desk.transcript(&session).await);
    let ToolState::Completed { output, title, metadata, .. } = &calls[0].1 else { panic!("{calls:?}") };
    let id = &child.id;
    assert_eq!(
        output,
        &format!(
            "<task id=\"{id}\" state=\"completed\">\n<task_result>\nFound none.\n</task_result>\n</task>"
        )
    );
    assert_eq!(title, "find python");
    let expected = json!({
        "parentSessionId": session.id, "sessionId": id,
        "model": {"modelID": "plain-model", "providerID": "mock"}, "truncated": false,
    });
    assert_eq!(json!(metadata), expected);
    let of_child = desk.transcript(&child).await;
    let first = serde_json::to_value(&of_child[0]).unwrap();
    assert!(first["info"].get("tools").is_none() && first["info"]["agent"] == "explore", "{first}");
    assert_eq!(of_child.len(), 3);
    // Requests of the child name the child's session.
    let requests = desk.server.main_requests();
    let of_child = &requests[1];
    assert_eq!(of_child.headers.get("x-parent-session-id"), Some(session.id.as_str()));
    assert_eq!(of_child.headers.get("x-session-id"), Some(child.id.as_str()));
    let tools: Vec<_> =
        of_child.body["tools"].as_array().unwrap().iter().map(|tool| &tool["function"]["name"]).collect();
    assert!(
        !tools.iter().any(|name| ["task", "todowrite", "edit", "question"].contains(&name.as_str().unwrap())),
        "{tools:?}"
    );
    // The caller's tool description lists the agents.
    let description =
        requests[0].body["tools"].as_array().unwrap().iter().find(|tool| tool["function"]["name"] == "task");
    let description = description.unwrap()["function"]["description"].as_str().unwrap();
    assert!(description.contains("- explore: ") && description.contains("- general: "), "{description}");
    assert!(!description.contains("- build") && !description.contains("{agents}"), "{description}");
    desk.assert_clean();
}

#[tokio::test]
async fn tools_for_primary_agents_are_not_offered_to_subagents() {
    let script = Script::new()
        .session("SUBTASK look", [Turn::text("Looked.")])
        .tool("task", task("look around", "SUBTASK look around", "general"))
        .text("done");
    let desk = Desk::with(script, json!({"experimental": {"primary_tools": ["bash", "webfetch"]}})).await;
    let session = desk.session().await;
    desk.prompt(&session, "go").await;
    let requests = desk.server.main_requests();
    let offers = |at: usize, name: &str| {
        let tools = requests[at].body["tools"].as_array().unwrap();
        tools.iter().any(|tool| tool["function"]["name"] == name)
    };
    for name in ["bash", "webfetch"] {
        assert!(offers(0, name) && !offers(1, name), "{name}");
    }
    assert!(offers(1, "read"));
    desk.assert_clean();
}

#[tokio::test]
async fn an_unknown_agent_is_an_error_and_general_cannot_delegate() {
    let script = Script::new()
        .session("SUBTASK do", [Turn::text("Sub finished.")])
        .turn(Turn::tools([
            ("task", task("do it", "SUBTASK do it", "general")),
            ("task", task("bad", "x", "nonexistent")),
            ("task", task("bad", "x", "title")),
        ]))
        .text("ok");
    let desk = Desk::new(script).await;
    let session = desk.session().await;
    desk.prompt(&session, "go").await;
    let calls = calls(&desk.transcript(&session).await);
    assert_eq!(error(&calls[1]), "Unknown agent type: nonexistent is not a valid agent type");
    assert_eq!(error(&calls[2]), "Unknown agent type: title is not a valid agent type");
    assert!(output(&calls[0]).contains("Sub finished."));
    let child = children(&desk, &session).await.remove(0);
    assert_eq!(rules(&child), "task * Deny");
}

#[tokio::test]
async fn subagents_of_one_answer_run_in_parallel() {
    let wait = |own: &str, other: &str| json!({"command": format!("touch {own}; until [ -e {other} ]; do sleep 0.02; done; echo met")});
    let script = Script::new()
        .session(
            "SUBTASK one",
            [Turn::from(Turn::steps().tool("bash", wait("a", "b"))), Turn::text("one met").into()],
        )
        .session(
            "SUBTASK two",
            [Turn::from(Turn::steps().tool("bash", wait("b", "a"))), Turn::text("two met").into()],
        )
        .turn(Turn::tools([
            ("task", task("one", "SUBTASK one", "general")),
            ("task", task("two", "SUBTASK two", "general")),
        ]))
        .text("both");
    let desk = Desk::new(script).await;
    let session = desk.session().await;
    assert_eq!(text(&desk.prompt(&session, "go").await), "both");
    let calls = calls(&desk.transcript(&session).await);
    assert!(output(&calls[0]).contains("one met") && output(&calls[1]).contains("two met"), "{calls:?}");
    assert_eq!(children(&desk, &session).await.len(), 2);
}

#[tokio::test]
async fn work_is_continued_by_its_id_and_only_by_its_caller() {
    let known: Arc<Mutex<String>> = Arc::default();
    let again = known.clone();
    let script = Script::new()
        .session("SUBTASK first", [Turn::text("first report"), Turn::text("second report")])
        .session("SUBTASK stranger", [Turn::text("a new one")])
        .tool("task", task("work", "SUBTASK first", "general"))
        .turn(Turn::respond(move |request| {
            let result = &request.results[0].text;
            let id = result.split('"').nth(1).unwrap().to_owned();
            known.lock().unwrap().clone_from(&id);
            let mut input = task("work", "and now more", "general");
            input["task_id"] = id.into();
            Turn::steps().tool("task", input)
        }))
        .text("done")
        .turn(Turn::respond(move |_| {
            let mut input = task("work", "SUBTASK stranger", "general");
            input["task_id"] = again.lock().unwrap().clone().into();
            Turn::steps().tool("task", input)
        }))
        .text("done");
    let desk = Desk::new(script).await;
    let session = desk.session().await;
    desk.prompt(&session, "go").await;
    let calls = calls(&desk.transcript(&session).await);
    assert!(output(&calls[1]).contains("second report"), "{calls:?}");
    let child = children(&desk, &session).await;
    assert_eq!(child.len(), 1, "the same session");
    assert_eq!(desk.transcript(&child[0]).await.len(), 4);
    // Another session that guesses the id gets a new session.
    let other = desk.session().await;
    desk.prompt(&other, "go").await;
    assert_eq!(desk.transcript(&child[0]).await.len(), 4);
    assert_eq!(children(&desk, &other).await.len(), 1);
}

/// A desk whose main session has delegated work to a subagent that runs a long command.
async fn at_work() -> (Desk, Session, Session) {
    let script = Script::new()
        .session(
            "SUBTASK",
            [
                Turn::from(Turn::steps().tool("bash", json!({"command": "touch begun; sleep 600"}))),
                Turn::text("gone on").into(),
            ],
        )
        .tool("task", task("long", "SUBTASK long", "general"))
        .text("after");
    let desk = Desk::new(script).await;
    let session = desk.session().await;
    desk.engine.sessions().prompt_async(&session.id, prompt("go")).await.unwrap();
    let begun = desk.project.join("begun");
    let wait = async {
        while !begun.exists() {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(DEADLINE, wait).await.unwrap();
    let child = children(&desk, &session).await.remove(0);
    (desk, session, child)
}

fn aborted(transcript: &[MessageWithParts]) -> bool {
    transcript.iter().any(|message| {
        matches!(&message.info, Message::Assistant(info)
        if matches!(info.error, Some(MessageError::MessageAbortedError { .. })))
    })
}

#[tokio::test]
async fn stopping_the_caller_stops_the_subagent() {
    let (desk, session, child) = at_work().await;
    let mut feed = desk.engine.events().subscribe();
    desk.engine.sessions().abort(&session.id).await.unwrap();
    if desk.engine.sessions().statuses().contains_key(&child.id) {
        idle(&mut feed, &child).await;
    }
    assert!(aborted(&desk.transcript(&child).await));
    assert!(aborted(&desk.transcript(&session).await));
    assert_eq!(text(&desk.prompt(&session, "again").await), "after");
    desk.assert_clean();
}

#[tokio::test]
async fn stopping_a_subagent_does_not_stop_its_caller() {
    let (desk, session, child) = at_work().await;
    let mut feed = desk.engine.events().subscribe();
    desk.engine.sessions().abort(&child.id).await.unwrap();
    idle(&mut feed, &session).await;
    let transcript = desk.transcript(&session).await;
    let told = calls(&transcript);
    assert!(
        error(&told[0]).contains("was stopped") && error(&told[0]).contains(child.id.as_str()),
        "{told:?}"
    );
    assert_eq!(text(transcript.last().unwrap()), "after");
    assert!(!aborted(&transcript));
    desk.assert_clean();
}

#[tokio::test]
async fn delegation_has_a_depth_limit() {
    let deeper =
        |n: u32| Turn::from(Turn::steps().tool("task", task("deeper", &format!("LEVEL{n}"), "digger")));
    let script = Script::new()
        .session("LEVEL2", [deeper(3), Turn::text("too deep").into()])
        .session("LEVEL1", [deeper(2), Turn::text("one down").into()])
        .turn(deeper(1))
        .text("up again");
    let more = json!({
        "subagent_depth": 2,
        "agent": {"digger": {"mode": "subagent", "description": "Digs.", "permission": {"task": "allow"}}},
    });
    let desk = Desk::with(script, more).await;
    let session = desk.session().await;
    desk.prompt(&session, "go").await;
    let first = children(&desk, &session).await.remove(0);
    assert_eq!(rules(&first), "todowrite * Deny", "its own rules speak of `task`");
    let second = children(&desk, &first).await.remove(0);
    assert!(children(&desk, &second).await.is_empty());
    let calls = calls(&desk.transcript(&second).await);
    assert!(error(&calls[0]).contains("at most 2 deep"), "{calls:?}");
}

#[tokio::test]
async fn without_a_configured_depth_a_subagent_calls_no_subagents() {
    for (config, expected) in [(json!({}), 1), (json!({"subagent_depth": 0}), 0)] {
        let deeper = |text: &str| Turn::from(Turn::steps().tool("task", task("deeper", text, "digger")));
        let script = Script::new()
            .session("LEVEL1", [deeper("LEVEL2"), Turn::text("alone then").into()])
            .turn(deeper("LEVEL1"))
            .text("up again");
        let mut more = json!({
            "agent": {"digger": {"mode": "subagent", "description": "Digs.", "permission": {"task": "allow"}}},
        });
        more.as_object_mut().unwrap().extend(config.as_object().unwrap().clone());
        let desk = Desk::with(script, more).await;
        let session = desk.session().await;
        desk.prompt(&session, "go").await;
        let first = children(&desk, &session).await;
        assert_eq!(first.len(), usize::from(expected > 0), "{config}");
        let last = first.first().unwrap_or(&session);
        let calls = calls(&desk.transcript(last).await);
        assert!(error(&calls[0]).contains(&format!("at most {expected} deep")), "{calls:?}");
    }
}

/// Runs a turn that delegates a prompt, and returns the desk and the texts that the subagent received.
async fn delegated(prompt: &str, config: Value) -> (Desk, Session, String) {
    let script = Script::new().turn(Turn::steps().tool("task", task("d", prompt, "general")));
    let desk = Desk::with(script.default_turn(Turn::text("done")), config).await;
    std::fs::create_dir_all(desk.project.join("docs")).unwrap();
    for (name, words) in [("docs/note.md", "the note"), (".env", "KEY=hidden"), ("own.md", "of the command")]
    {
        std::fs::write(desk.project.join(name), words).unwrap();
    }
    let session = desk.session().await;
    desk.prompt(&session, "go").await;
    let said = match children(&desk, &session).await.first() {
        Some(child) => json!(desk.transcript(child).await[0].parts).to_string(),
        None => String::new(),
    };
    (desk, session, said)
}

#[tokio::test]
async fn a_prompt_for_a_subagent_can_be_a_command_and_name_files() {
    let config = json!({"command": {"survey": {"template": "SURVEY $1 then @own.md", "agent": "plan"}}});
    let (desk, session, said) = delegated("/survey north", config.clone()).await;
    assert!(said.contains("SURVEY north then @own.md") && said.contains("of the command"), "{said}");
    assert!(!said.contains("/survey"), "{said}");
    let child = children(&desk, &session).await.remove(0);
    assert_eq!(child.agent.as_deref(), Some("general"));
    desk.assert_clean();
    let (.., said) = delegated("/unknown look at @docs/note.md and @missing.md", config).await;
    assert!(said.contains("/unknown look at @docs/note.md and @missing.md"), "{said}");
    assert!(said.contains("the note"), "{said}");
}

#[tokio::test]
async fn a_prompt_for_a_subagent_needs_the_permissions_of_its_caller() {
    let config = json!({
        "permission": {"read": {"*.env": "deny"}, "bash": {"touch *": "deny"}, "skill": "deny"},
        "command": {"trap": {"template": "TRAP !`touch evil`"}, "harmless": {"template": "@explore @.env $ARGUMENTS"}},
    });
    let (desk, _, said) = delegated("look at @.env and ask @explore", config.clone()).await;
    assert!(said.contains("@.env") && !said.contains("hidden"), "{said}");
    // Only a user can name an agent that may be called without a question.
    assert!(!said.contains(r#""type":"agent""#), "{said}");
    desk.assert_clean();
    let (.., said) = delegated("/harmless @../outside", config.clone()).await;
    assert!(!said.contains("hidden") && !said.contains(r#""type":"agent""#), "{said}");
    let (desk, session, said) = delegated("/trap", config).await;
    assert!(said.is_empty(), "{said}");
    assert!(!desk.project.join("evil").exists());
    let calls = calls(&desk.transcript(&session).await);
    assert!(error(&calls[0]).contains("`touch evil`, which is not allowed"), "{calls:?}");
}

/// Rules that give a main agent fewer permissions than the subagent it calls.
fn unequal() -> Value {
    json!({
        "agent": {
            "careful": {"mode": "primary", "permission": {
                "bash": {"*": "allow", "rm *": "deny", "touch *": "ask"}, "edit": {"secret/*": "deny"},
            }},
            "loose": {"mode": "subagent", "permission": {"*": "allow", "bash": "allow", "edit": "allow"}},
        },
    })
}

fn to(agent: &str, text: &str) -> PromptInput {
    PromptInput { agent: Some(agent.to_owned()), ..prompt(text) }
}

#[tokio::test]
async fn a_subagent_has_no_more_permissions_than_its_caller() {
    let script = Script::new()
        .session(
            "SUBTASK",
            [
                Turn::from(Turn::tools([
                    ("bash", json!({"command": "rm precious"})),
                    ("write", json!({"filePath": "secret/x", "content": "c"})),
                    ("write", json!({"filePath": "open/x", "content": "c"})),
                    ("bash", json!({"command": "touch asked"})),
                ])),
                Turn::text("tried").into(),
            ],
        )
        .tool("task", task("try", "SUBTASK try", "loose"))
        .text("after");
    let desk = Desk::with(script, unequal()).await;
    std::fs::write(desk.project.join("precious"), "gold").unwrap();
    let session = desk.session().await;
    let mut feed = desk.engine.events().subscribe();
    desk.engine.sessions().prompt_async(&session.id, to("careful", "go")).await.unwrap();
    let request = permission_request(&mut feed).await;
    let child = children(&desk, &session).await.remove(0);
    // A permission that the caller would have to request is requested for the child.
    assert_eq!((&request.session_id, request.patterns[0].as_str()), (&child.id, "touch asked"));
    let answer = PermissionAnswer::from(PermissionReply::Once);
    desk.engine.permissions().answer(&request.id, answer).await.unwrap();
    idle(&mut feed, &session).await;
    let calls = calls(&desk.transcript(&child).await);
    assert!(error(&calls[0]).contains(r#""pattern":"rm *""#), "{calls:?}");
    assert!(error(&calls[1]).contains(r#""pattern":"secret/*""#), "{calls:?}");
    assert!(desk.project.join("precious").exists() && desk.project.join("open/x").exists());
    assert!(!desk.project.join("secret").exists() && desk.project.join("asked").exists());
}

#[tokio::test]
async fn every_use_of_a_restricted_sessions_child_is_restricted() {
    let script = Script::new().tool("bash", json!({"command": "rm precious"})).text("no");
    let desk = Desk::new(script).await;
    std::fs::write(desk.project.join("precious"), "gold").unwrap();
    let forbid = vec![Rule::new("bash", "rm *", Action::Deny)];
    let input = SessionInput { title: Some("t".into()), permission: Some(forbid), ..SessionInput::default() };
    let parent = desk.engine.sessions().create(&desk.instance, input).await.unwrap();
    // Neither a client's child session nor its own rules can have more permissions.
    let allow = vec![Rule::new("*", "*", Action::Allow)];
    let input = SessionInput {
        parent_id: Some(parent.id.clone()),
        title: Some("c".into()),
        permission: Some(allow),
        ..SessionInput::default()
    };
    let child = desk.engine.sessions().create(&desk.instance, input).await.unwrap();
    desk.prompt(&child, "go").await;
    assert!(error(&calls(&desk.transcript(&child).await)[0]).contains("rm *"));
    assert!(desk.project.join("precious").exists());
}

#[tokio::test]
async fn a_tool_that_the_prompt_disabled_is_disabled_in_subagents() {
    let script = Script::new()
        .session("SUBTASK", [Turn::text("ok")])
        .tool("task", task("try", "SUBTASK try", "general"))
        .text("after");
    let desk = Desk::new(script).await;
    let session = desk.session().await;
    let input = PromptInput { tools: Some([("bash".to_owned(), false)].into()), ..prompt("go") };
    tokio::time::timeout(DEADLINE, desk.engine.sessions().prompt(&session.id, input)).await.unwrap().unwrap();
    let requests = desk.server.main_requests();
    for request in [&requests[0], &requests[1]] {
        let mut names =
            request.body["tools"].as_array().unwrap().iter().map(|tool| &tool["function"]["name"]);
        assert!(names.all(|name| name != "bash"), "{:?}", request.body["tools"]);
    }
}

fn subtask(prompt: &str) -> PartInput {
    PartInput::Subtask {
        id: None,
        prompt: prompt.to_owned(),
        description: "sub".to_owned(),
        agent: "explore".to_owned(),
        model: Some(PromptModel {
            provider_id: "mock".into(),
            model_id: "plain-model".into(),
            variant: None,
        }),
        command: Some("subt".to_owned()),
    }
}

#[tokio::test]
async fn a_prompt_can_delegate_work_directly() {
    let script = Script::new()
        .session("SUBTASKCMD one", [Turn::text("sub result")])
        .session("SUBTASKCMD two", [Turn::text("other result")])
        .text("parent continue");
    // A call that the user requests by hand needs no permission, but the same rules apply.
    let desk = Desk::with(script, json!({"permission": {"task": "ask"}})).await;
    let session = desk.session().await;
    let input = PromptInput {
        parts: vec![subtask("SUBTASKCMD one"), subtask("SUBTASKCMD two")],
        ..PromptInput::default()
    };
    let answer = tokio::time::timeout(DEADLINE, desk.engine.sessions().prompt(&session.id, input))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(text(&answer), "parent continue");
    let transcript = desk.transcript(&session).await;
    let roles: Vec<_> = transcript.iter().map(|message| matches!(message.info, Message::User(_))).collect();
    assert_eq!(roles, [true, false, false, true, false]);
    let played = serde_json::to_value(&transcript[1]).unwrap();
    let info = &played["info"];
    assert_eq!(
        (&info["agent"], &info["mode"], &info["finish"]),
        (&json!("explore"), &json!("explore"), &json!("tool-calls"))
    );
    let parts = played["parts"].as_array().unwrap();
    assert_eq!(parts.len(), 1, "{parts:?}");
    assert_eq!(parts[0]["callID"].as_str().unwrap().len(), 26);
    let input = json!({"prompt": "SUBTASKCMD one", "description": "sub", "subagent_type": "explore", "command": "subt"});
    assert_eq!(parts[0]["state"]["input"], input);
    assert!(parts[0]["state"]["output"].as_str().unwrap().contains("sub result"));
    let last = serde_json::to_value(&transcript[3]).unwrap();
    assert_eq!(last["parts"][0]["synthetic"], json!(true));
    assert_eq!(children(&desk, &session).await.len(), 2);
    desk.assert_clean();
}

#[tokio::test]
async fn naming_an_agent_permits_calling_it() {
    let script = Script::new()
        .session("SUBTASK", [Turn::text("found")])
        .tool("task", task("look", "SUBTASK look", "explore"))
        .text("after");
    let desk = Desk::with(script, json!({"permission": {"task": "ask"}})).await;
    let session = desk.session().await;
    let parts = vec![
        PartInput::text("look @explore"),
        PartInput::Agent { id: None, name: "explore".into(), source: None },
    ];
    let input = PromptInput { parts, ..PromptInput::default() };
    tokio::time::timeout(DEADLINE, desk.engine.sessions().prompt(&session.id, input)).await.unwrap().unwrap();
    let transcript = desk.transcript(&session).await;
    assert!(output(&calls(&transcript)[0]).contains("found"));
    let kinds: Vec<_> =
        transcript[0].parts.iter().map(|part| matches!(part.body, PartBody::Agent { .. })).collect();
    assert_eq!(kinds, [false, true, false]);
    assert!(text(&transcript[0]).contains("`explore`"));
}

#[tokio::test]
async fn the_changes_of_a_subagent_are_reverted_with_the_callers_turn() {
    let script = Script::new()
        .session(
            "SUBTASK",
            [
                Turn::from(
                    Turn::steps().tool("write", json!({"filePath": "made.txt", "content": "by the child"})),
                ),
                Turn::text("made").into(),
            ],
        )
        .tool("task", task("make", "SUBTASK make", "general"))
        .text("after");
    let desk = Desk::new(script).await;
    // A git repository, so that snapshots are taken.
    std::fs::remove_dir_all(desk.project.join(".git")).unwrap();
    let made = std::process::Command::new("git").args(["init", "-q"]).current_dir(&desk.project).status();
    assert!(made.unwrap().success());
    let session = desk.session().await;
    desk.prompt(&session, "go").await;
    assert!(desk.project.join("made.txt").exists());
    let first = desk.transcript(&session).await[0].info.id().clone();
    let input = codewright_proto::RevertInput { message_id: first, part_id: None, force: None };
    desk.engine.sessions().revert(&session.id, input).await.unwrap();
    assert!(!desk.project.join("made.txt").exists());
}
