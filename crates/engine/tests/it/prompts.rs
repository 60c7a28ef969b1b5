//! The prompts that models get: sizes, reminders, commands, instructions.

use codewright_proto::{CommandInput, Message, PartBody, PromptInput, Signal};
use codewright_scripted::{Recorded, Script, Turn};
use serde_json::{Value, json};

use crate::desk::{DEADLINE, Desk, prompt, text, wait_for};

/// Returns the texts of a message in a request.
fn pieces(message: &Value) -> Vec<String> {
    match &message["content"] {
        Value::String(text) => vec![text.clone()],
        Value::Array(parts) => {
            parts.iter().filter_map(|part| part["text"].as_str().map(str::to_owned)).collect()
        }
        _ => Vec::new(),
    }
}

fn messages(request: &Recorded) -> Vec<Value> {
    request.body["messages"].as_array().unwrap().clone()
}

fn system(request: &Recorded) -> String {
    pieces(&messages(request)[0]).concat()
}

/// Returns whether the `n`th prompt of a request, from 0, contains a text.
fn prompt_contains(request: &Recorded, n: usize, words: &str) -> bool {
    let prompts = messages(request).into_iter().filter(|message| message["role"] == "user");
    pieces(&prompts.collect::<Vec<_>>()[n]).concat().contains(words)
}

async fn ask(desk: &Desk, session: &codewright_proto::Session, agent: &str, words: &str) {
    let input = PromptInput { agent: Some(agent.to_owned()), ..prompt(words) };
    let turn = desk.engine.sessions().prompt(&session.id, input);
    tokio::time::timeout(DEADLINE, turn).await.expect("the turn ends").unwrap();
}

/// The recorded first request of OpenCode over Chat Completions: the bytes of each tool, and of the rest.
const RECORDED_TOOLS: [(&str, usize); 11] = [
    ("bash", 5197),
    ("edit", 1944),
    ("glob", 1100),
    ("grep", 1161),
    ("question", 1498),
    ("read", 1714),
    ("skill", 671),
    ("task", 3820),
    ("todowrite", 2630),
    ("webfetch", 1274),
    ("write", 1018),
];
const RECORDED_BYTES: usize = 31_810;
/// The lengths of the recorded base prompts, by a model that gets each.
const RECORDED_FAMILIES: [(&str, usize); 8] = [
    ("qwen3-coder", 8529),
    ("claude-sonnet-4-5", 8213),
    ("gemini-2.5-pro", 15_373),
    ("gpt-4.1", 11_079),
    ("gpt-5-codex", 7363),
    ("gpt-oss-120b", 9275),
    ("kimi-k2", 8684),
    ("trinity-large", 7749),
];

#[tokio::test]
async fn a_first_request_costs_at_most_six_tenths_of_the_originals() {
    let models: Value = RECORDED_FAMILIES
        .iter()
        .map(|(model, _)| ((*model).to_owned(), json!({"name": model})))
        .collect::<serde_json::Map<_, _>>()
        .into();
    let config = json!({"provider": {"mock": {"models": models}}});
    let desk = Desk::with(Script::new().default_turn(Turn::text("ok")), config).await;
    for (model, family_chars) in RECORDED_FAMILIES {
        let session = desk.session().await;
        let model_ref = codewright_proto::PromptModel {
            provider_id: "mock".into(),
            model_id: model.into(),
            variant: None,
        };
        let input = PromptInput { model: Some(model_ref), ..prompt("Please look") };
        tokio::time::timeout(DEADLINE, desk.engine.sessions().prompt(&session.id, input))
            .await
            .unwrap()
            .unwrap();
        let body = desk.server.main_requests().pop().unwrap().body;
        let names: Vec<_> = body["tools"]
            .as_array()
            .unwrap()
            .iter()
            .map(|tool| tool["function"]["name"].as_str().unwrap().to_owned())
            .collect();
        // Compared with OpenCode's request with the same tools. A patch tool counts as the tools that it replaces.
        let same = |tool: &str| {
            names
                .iter()
                .any(|name| name == tool || (name == "apply_patch" && matches!(tool, "edit" | "write")))
        };
        let absent: usize =
            RECORDED_TOOLS.iter().filter(|(tool, _)| !same(tool)).map(|(_, bytes)| bytes + 1).sum();
        let theirs = RECORDED_BYTES - absent - 8529 + family_chars;
        let ours = body.to_string().len();
        assert!(ours * 10 <= theirs * 6, "{model}: {ours} of {theirs} with {names:?}");
    }
    desk.assert_clean();
}

#[tokio::test]
async fn the_plan_agent_and_the_build_agent_after_it_get_reminders() {
    let desk = Desk::new(Script::new().default_turn(Turn::text("ok"))).await;
    let session = desk.session().await;
    for (agent, words) in
        [("build", "one"), ("plan", "two"), ("plan", "three"), ("build", "four"), ("build", "five")]
    {
        ask(&desk, &session, agent, words).await;
    }
    let sent = desk.server.main_requests();
    let told: Vec<Vec<&str>> = sent
        .iter()
        .enumerate()
        .map(|(n, request)| {
            (0..=n)
                .map(|at| match () {
                    () if prompt_contains(request, at, "Plan mode: look") => "plan",
                    () if prompt_contains(request, at, "Plan mode is over") => "build",
                    () => "-",
                })
                .collect()
        })
        .collect();
    let expected: [&[&str]; 5] = [
        &["-"],
        &["-", "plan"],
        &["-", "-", "plan"],
        &["-", "-", "-", "build"],
        &["-", "-", "-", "-", "build"],
    ];
    assert_eq!(told, expected);
    // Reminders are never stored.
    for message in desk.transcript(&session).await {
        assert!(!text(&message).contains("system-reminder"));
    }
    // In plan mode no tool that writes is offered.
    let tools = sent[1].body["tools"].to_string();
    assert!(tools.contains("\"read\""), "{tools}");
    desk.assert_clean();
}

#[tokio::test]
async fn strict_mode_sends_only_the_older_blocks() {
    let settings = json!({"strict": true, "header": "HEADER", "system": "CONFIG"});
    let desk = Desk::with(Script::new().default_turn(Turn::text("ok")), json!({"prompt": settings})).await;
    std::fs::write(desk.project.join("AGENTS.md"), "Use tabs.\n").unwrap();
    let session = desk.session().await;
    let input = PromptInput { system: Some("LAST".into()), ..prompt("go") };
    tokio::time::timeout(DEADLINE, desk.engine.sessions().prompt(&session.id, input)).await.unwrap().unwrap();
    let sent = desk.server.main_requests().pop().unwrap();
    let system = system(&sent);
    assert!(system.starts_with("HEADER\n\nYou are Codewright"), "{system}");
    assert!(
        system.ends_with(
            "</env>\n\nInstructions from: AGENTS.md\nUse tabs.\n\nLAST"
                .replace("AGENTS.md", &desk.project.join("AGENTS.md").display().to_string())
                .as_str()
        ),
        "{system}"
    );
    for newer in ["You run on the model", "available_skills", "CONFIG"] {
        assert!(!system.contains(newer), "{newer} in {system}");
    }
    // The model still has to know which skills there are.
    assert!(
        described(&sent, "skill").contains("<name>customize-opencode</name>"),
        "{}",
        described(&sent, "skill")
    );
    desk.assert_clean();
}

/// Returns the description of a tool in a request.
fn described(request: &Recorded, tool: &str) -> String {
    let tools = request.body["tools"].as_array().unwrap().iter();
    let mut found = tools.filter(|offered| offered["function"]["name"] == tool);
    found.next().unwrap()["function"]["description"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn the_tree_of_files_is_sent_if_the_configuration_wants_it() {
    let config = json!({"prompt": {"tree": true}, "permission": {"read": {"*.key": "deny"}}});
    let desk = Desk::with(Script::new().default_turn(Turn::text("ok")), config).await;
    std::fs::create_dir(desk.project.join("src")).unwrap();
    for (file, text) in [("src/a.rs", ""), ("b.key", ""), ("built.o", ""), (".gitignore", "*.o\n")] {
        std::fs::write(desk.project.join(file), text).unwrap();
    }
    let session = desk.session().await;
    desk.prompt(&session, "one").await;
    std::fs::write(desk.project.join("later.rs"), "").unwrap();
    desk.prompt(&session, "two").await;
    let sent = desk.server.main_requests();
    let tree = "</env>\n<files>\n  src/\n    a.rs\n  .gitignore\n</files>\n";
    assert!(system(&sent[0]).contains(tree), "{}", system(&sent[0]));
    assert_eq!(system(&sent[0]), system(&sent[1]), "a new file must not change the beginning of requests");
    desk.assert_clean();
}

#[tokio::test]
async fn the_description_of_bash_names_the_configured_limits() {
    for (config, expected) in [
        (json!({}), "Beyond 2000 lines or 50 KB only"),
        (json!({"tool_output": {"max_lines": 70, "max_bytes": 1000}}), "Beyond 70 lines or 1000 bytes only"),
    ] {
        let desk = Desk::with(Script::new().default_turn(Turn::text("ok")), config).await;
        let session = desk.session().await;
        desk.prompt(&session, "go").await;
        let sent = desk.server.main_requests().pop().unwrap();
        assert!(described(&sent, "bash").contains(expected), "{}", described(&sent, "bash"));
    }
}

#[tokio::test]
async fn an_agent_that_has_used_up_its_steps_gets_a_reminder() {
    let script = Script::new()
        .tool("bash", json!({"command": "true"}))
        .tool("bash", json!({"command": "true"}))
        .text("done");
    let desk = Desk::with(script, json!({"agent": {"build": {"steps": 2}}})).await;
    let session = desk.session().await;
    desk.prompt(&session, "go").await;
    let told = |request: &Recorded| {
        let last = messages(request).pop().unwrap();
        last["role"] == "assistant"
            && pieces(&last).concat().starts_with("The steps of this turn are used up.")
    };
    let sent = desk.server.main_requests();
    assert_eq!(sent.iter().map(told).collect::<Vec<_>>(), [false, true, true]);
    assert!(
        sent.iter().all(|request| request.body["tool_choice"] == "auto" && request.body["tools"].is_array())
    );
    desk.assert_clean();
}

#[tokio::test]
async fn over_thirty_turns_each_request_starts_with_almost_all_of_the_previous_one() {
    const TURNS: usize = 30;
    let edit = |request: &codewright_scripted::Request| match request.round {
        0 => {
            let n = request.users.len();
            Turn::tools([(
                "write",
                json!({"filePath": format!("f{n}.txt"), "content": format!("line {n}\n").repeat(20)}),
            )])
        }
        _ => Turn::text("Written. ".repeat(10)),
    };
    let desk = Desk::new(Script::new().default_turn(Turn::respond(edit))).await;
    std::fs::write(desk.project.join("AGENTS.md"), "Use tabs.\n").unwrap();
    let session = desk.session().await;
    for n in 0..TURNS {
        desk.prompt(&session, &format!("write file {n}")).await;
    }
    let sent = desk.server.main_requests();
    assert_eq!(sent.len(), 2 * TURNS);
    for pair in sent.windows(2) {
        // The order in which providers read: tools, then the conversation with its system text.
        let whole = |request: &Recorded| format!("{}{}", request.body["tools"], request.body["messages"]);
        let (before, after) = (whole(&pair[0]), whole(&pair[1]));
        let shared = before.bytes().zip(after.bytes()).take_while(|(a, b)| a == b).count();
        assert!(shared * 100 >= before.len() * 95, "{shared} of {} bytes", before.len());
    }
    desk.assert_clean();
}

fn command(name: &str, arguments: &str) -> CommandInput {
    CommandInput { command: name.to_owned(), arguments: arguments.to_owned(), ..CommandInput::default() }
}

#[tokio::test]
async fn a_command_becomes_a_prompt_and_emits_an_event_at_its_end() {
    let template =
        "Hello $1 and all: $ARGUMENTS\nshell: !`echo injected; echo $1`\nfile: @note.txt, agent: @explore";
    let config = json!({"command": {"hello": {"template": template, "agent": "plan", "description": "d"}}});
    let desk = Desk::with(Script::new().text("done"), config).await;
    std::fs::write(desk.project.join("note.txt"), "remember\n").unwrap();
    let session = desk.session().await;
    let mut events = desk.engine.events().subscribe();
    let run = desk.engine.sessions().command(&session.id, command("hello", "'big world' !`touch evil`"));
    let answer = tokio::time::timeout(DEADLINE, run).await.unwrap().unwrap();
    let executed = wait_for(&mut events, |published| match published.notice().fact {
        codewright_proto::Fact::Signal(signal @ Signal::CommandExecuted { .. }) => Some(json!(signal)),
        _ => None,
    });
    let executed = executed.await;
    let expected = json!({"type": "command.executed", "properties": {
        "sessionID": session.id, "name": "hello", "arguments": "'big world' !`touch evil`", "messageID": answer.info.id(),
    }});
    assert_eq!(executed["properties"], expected["properties"]);
    let transcript = desk.transcript(&session).await;
    let Message::User(info) = &transcript[0].info else { panic!("a prompt") };
    assert_eq!(info.agent, "plan");
    let said = text(&transcript[0]);
    assert!(
        said.starts_with(
            "Hello big world !`touch evil` and all: 'big world' !`touch evil`\nshell: injected\nbig world !`touch evil`"
        ),
        "{said}"
    );
    assert!(said.contains("remember"), "{said}");
    assert!(!desk.project.join("evil").exists(), "what a user types is not run");
    let kinds: Vec<_> = transcript[0]
        .parts
        .iter()
        .filter_map(|part| match &part.body {
            PartBody::File { filename, .. } => filename.clone(),
            PartBody::Agent { name, .. } => Some(format!("agent {name}")),
            _ => None,
        })
        .collect();
    assert_eq!(kinds, ["note.txt", "agent explore"]);
    let unknown = desk.engine.sessions().command(&session.id, command("nope", "")).await.unwrap_err();
    assert!(
        unknown.to_string().starts_with("command `nope` not found; there are init, review, hello"),
        "{unknown}"
    );
    desk.assert_clean();
}

#[tokio::test]
async fn the_built_in_commands_are_listed_with_their_places() {
    let desk = Desk::new(Script::new()).await;
    let listed = desk.instance.commands_json();
    let shown: Vec<_> = listed
        .as_array()
        .unwrap()
        .iter()
        .take(2)
        .map(|command| json!([command["name"], command["source"], command["hints"], command["subtask"]]))
        .collect();
    let expected = [
        json!(["init", "command", ["$ARGUMENTS"], null]),
        json!(["review", "command", ["$ARGUMENTS"], true]),
    ];
    assert_eq!(shown, expected);
    let project = desk.project.display().to_string();
    assert!(
        listed.as_array().unwrap()[..2]
            .iter()
            .all(|command| command["template"].as_str().unwrap().contains(&project))
    );
}

#[tokio::test]
async fn the_built_in_agents_have_their_prompts() {
    let desk = Desk::with(Script::new(), json!({"agent": {"explore": {"prompt": "mine"}}})).await;
    let agents = desk.instance.agents_json();
    let prompts: Vec<_> = agents
        .as_array()
        .unwrap()
        .iter()
        .map(|agent| {
            (agent["name"].as_str().unwrap(), agent["prompt"].as_str().map(|prompt| prompt.len() > 4))
        })
        .collect();
    let expected = [
        ("build", None),
        ("compaction", Some(true)),
        ("explore", Some(false)),
        ("general", None),
        ("plan", None),
        ("summary", Some(true)),
        ("title", Some(true)),
    ];
    assert_eq!(prompts, expected);
}

#[tokio::test]
async fn instructions_at_addresses_are_sent_and_a_hanging_one_delays_only_once() {
    let hanging = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let script = Script::new()
        .page("rules", Turn::html(200, "Rules from afar."))
        .page("empty", Turn::html(200, " \n"))
        .page("missing", Turn::html(404, "none"))
        .page("huge", Turn::html(200, "x".repeat(300 * 1024)))
        .default_turn(Turn::text("ok"));
    let desk = Desk::new(script).await;
    let url = desk.server.url();
    let config = json!({
        "instructions": [
            format!("{url}/__mock/pages/rules"),
            format!("{url}/__mock/pages/empty"),
            format!("{url}/__mock/pages/huge"),
            format!("{url}/__mock/pages/missing"),
            format!("http://{}/never", hanging.local_addr().unwrap()),
            "https://",
        ],
        "prompt": {"instructions": {"http": true}},
    });
    let folder = desk.home.join(".config/opencode");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("opencode.json"), config.to_string()).unwrap();
    let desk = desk.again().await;
    let session = desk.session().await;
    let begun = std::time::Instant::now();
    desk.prompt(&session, "one").await;
    let first = begun.elapsed();
    desk.prompt(&session, "two").await;
    let second = begun.elapsed() - first;
    assert!(first >= std::time::Duration::from_secs(5), "{first:?}");
    assert!(second < std::time::Duration::from_secs(5), "{second:?}");
    for request in desk.server.main_requests() {
        let system = system(&request);
        assert!(
            system.contains(&format!("Instructions from: {url}/__mock/pages/rules\nRules from afar.")),
            "{system}"
        );
        for absent in ["pages/empty", "pages/huge", "pages/missing", "/never"] {
            assert!(!system.contains(absent), "{absent} in {system}");
        }
    }
    let warnings = desk.instance.warnings().join("\n");
    for expected in [
        "pages/huge` was left out",
        "pages/missing` was left out",
        "/never` was left out",
        "`https://` was left out",
    ] {
        assert!(warnings.contains(expected), "{expected} in {warnings}");
    }
    desk.assert_clean();
}

#[tokio::test]
async fn an_address_without_encryption_is_not_fetched_unless_the_configuration_allows_it() {
    let desk =
        Desk::new(Script::new().page("rules", Turn::html(200, "FROM AFAR")).default_turn(Turn::text("ok")))
            .await;
    let config = json!({"instructions": [format!("{}/__mock/pages/rules", desk.server.url())]});
    std::fs::write(desk.project.join("opencode.json"), config.to_string()).unwrap();
    let desk = desk.again().await;
    let session = desk.session().await;
    desk.prompt(&session, "one").await;
    assert!(!system(&desk.server.main_requests()[0]).contains("FROM AFAR"));
    assert!(desk.instance.warnings().join("\n").contains("prompt.instructions.http"));
}

#[tokio::test]
async fn the_report_shows_every_block_with_its_origin_and_size() {
    let config = json!({"prompt": {"header": "Top.", "system": "Bottom."}, "instructions": ["more.md"]});
    let desk = Desk::with(Script::new(), config).await;
    for (name, words) in [("AGENTS.md", "Rules."), ("more.md", "More.")] {
        std::fs::write(desk.project.join(name), words).unwrap();
    }
    let report = desk
        .engine
        .instances()
        .prompt_report(&desk.instance, Some("plan"), Some("mockanth/claude-mock"))
        .await
        .unwrap();
    assert_eq!(
        (report.agent.as_str(), report.model.as_str(), report.family),
        ("plan", "mockanth/claude-mock", "claude")
    );
    let blocks: Vec<_> = report.blocks.iter().map(|block| (block.name, block.origin.as_str())).collect();
    let (rules, more) = (
        desk.project.join("AGENTS.md").display().to_string(),
        desk.project.join("more.md").display().to_string(),
    );
    let expected = [
        ("header", "the configuration"),
        ("provider", "family `claude`"),
        ("model", "built in"),
        ("environment", "built in"),
        ("sandbox", "the configuration"),
        ("custom rules", rules.as_str()),
        ("instructions", more.as_str()),
        ("skills", "the folders of skills"),
        ("config", "the configuration"),
    ];
    assert_eq!(blocks, expected);
    assert!(report.blocks.iter().all(|block| block.bytes == block.text.len() && block.tokens > 0));
    assert!(report.parts[0].starts_with("Top.\nYou are Codewright") && report.parts[1].ends_with("Bottom."));
    assert_eq!(report.families.len(), 9);
    assert!(report.total.bytes > report.system.bytes);
    // The report equals the request.
    let sized: usize = report.tools.iter().map(|tool| tool.bytes).sum();
    assert_eq!(report.total.bytes, report.system.bytes + sized);
}

#[tokio::test]
async fn a_command_for_a_subagent_runs_in_its_own_session() {
    let config = json!({"command": {"subt": {"template": "SUBTASKCMD $ARGUMENTS", "agent": "explore", "description": "sub"}}});
    let desk = Desk::with(Script::new().text("sub result").text("parent continue"), config).await;
    let session = desk.session().await;
    let id = codewright_proto::MessageId::parse("msg_chosenbytheclient").unwrap();
    let input = CommandInput { message_id: Some(id.clone()), ..command("subt", "zz") };
    let run = desk.engine.sessions().command(&session.id, input);
    let answer = tokio::time::timeout(DEADLINE, run).await.unwrap().unwrap();
    assert_eq!(text(&answer), "parent continue");
    let transcript = desk.transcript(&session).await;
    let Message::User(asked) = &transcript[0].info else { panic!("a prompt") };
    assert_eq!((asked.agent.as_str(), &asked.id), ("build", &id));
    let subtask = json!(transcript[0].parts[0]);
    let expected = json!(["subtask", "SUBTASKCMD zz", "sub", "explore", "subt"]);
    let found = ["type", "prompt", "description", "agent", "command"].map(|key| subtask[key].clone());
    assert_eq!(json!(found), expected);
    let (tool, state) = crate::desk::calls(&transcript).remove(0);
    assert_eq!(tool, "task");
    assert!(json!(state)["output"].as_str().unwrap().contains("sub result"), "{state:?}");
    // The agent that searches has its own prompt.
    assert!(system(&desk.server.main_requests()[0]).starts_with("You are Codewright's scout"));
    desk.assert_clean();
}

/// Writes rule files at three levels, each next to a file to read.
fn write_nested(desk: &Desk) {
    for (name, words) in [
        ("a/AGENTS.md", "AGENTS-OF-A"),
        ("a/x.txt", "x"),
        ("b/CLAUDE.md", "CLAUDE-OF-B"),
        ("b/x.txt", "x"),
        ("c/AGENTS.md", &"LARGE ".repeat(20_000)),
        ("c/x.txt", "x"),
    ] {
        let path = desk.project.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, words).unwrap();
    }
}

fn read(path: &str) -> Turn {
    Turn::steps().tool("read", json!({"filePath": path})).into()
}

#[tokio::test]
async fn switches_apply_to_rule_files_next_to_read_files() {
    for (name, agents, claude) in [
        ("OPENCODE_DISABLE_CLAUDE_CODE", true, false),
        ("OPENCODE_DISABLE_CLAUDE_CODE_PROMPT", true, false),
        ("OPENCODE_DISABLE_PROJECT_CONFIG", false, false),
        ("UNRELATED", true, true),
    ] {
        let script = Script::new().turn(read("a/x.txt")).turn(read("b/x.txt")).text("done");
        let desk = Desk::with_env(script, [(name, "1")]).await;
        write_nested(&desk);
        let session = desk.session().await;
        desk.prompt(&session, "go").await;
        let sent = desk.server.main_requests().pop().unwrap().body.to_string();
        let found = (sent.contains("AGENTS-OF-A"), sent.contains("CLAUDE-OF-B"));
        assert_eq!(found, (agents, claude), "{name}");
    }
}

#[tokio::test]
async fn a_large_rule_file_next_to_a_read_file_is_reported() {
    let desk = Desk::new(Script::new().turn(read("c/x.txt")).text("done")).await;
    write_nested(&desk);
    let session = desk.session().await;
    desk.prompt(&session, "go").await;
    let path = desk.project.join("c/AGENTS.md");
    let expected = format!("`{}` was left out: it is larger than 64 KiB", path.display());
    assert!(desk.instance.warnings().contains(&expected), "{:?}", desk.instance.warnings());
}

#[tokio::test]
async fn rule_files_are_sent_again_after_a_summary_has_replaced_them() {
    let script = Script::new()
        .summary(Turn::text("A summary."))
        .turn(read("a/x.txt"))
        .text("one")
        .turn(read("a/x.txt"))
        .text("two")
        .turn(read("a/x.txt"))
        .text("three");
    let desk = Desk::with(script, json!({"compaction": {"tail_turns": 0}})).await;
    write_nested(&desk);
    let session = desk.session().await;
    let sent = async |text: &str| {
        desk.prompt(&session, text).await;
        desk.server.main_requests().pop().unwrap().body.to_string().matches("AGENTS-OF-A").count()
    };
    assert_eq!(sent("first").await, 1);
    assert_eq!(sent("second").await, 1);
    desk.engine.sessions().compact(&session.id).await.unwrap();
    assert_eq!(sent("third").await, 1);
    desk.assert_clean();
}

#[tokio::test]
async fn rule_files_are_sent_again_after_their_output_was_cleared() {
    let big = || Turn::steps().tool("bash", json!({"command": "head -c 48000 /dev/zero | tr '\\0' x"}));
    let usage = |input| codewright_scripted::Usage { input, output: 10, ..Default::default() };
    let mut script = Script::new().turn(read("a/x.txt"));
    for _ in 0..6 {
        script = script.turn(big().usage(usage(1000)));
    }
    let desk = Desk::with(script.text("one").turn(read("a/x.txt")).text("two"), json!({})).await;
    write_nested(&desk);
    let session = desk.session().await;
    desk.prompt(&session, "first").await;
    desk.prompt(&session, "second").await;
    let sent = desk.server.main_requests().pop().unwrap().body.to_string();
    assert_eq!(sent.matches("AGENTS-OF-A").count(), 1);
    assert!(sent.contains("[Old tool result content cleared]"));
}
