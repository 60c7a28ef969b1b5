//! Tests of the effects of keys and events.

use super::*;
use crate::msg::EditTarget;
use codewright_proto::{PartInput, PermissionReply};

#[test]
fn enter_sends_the_prompt_and_stores_it() {
    let mut stage = Stage::started(80, 24);
    stage.write("do it");
    stage.press(KeyCode::Enter);
    let cmds = stage.take_cmds();
    let Cmd::Send { session: to, input, draft, .. } = &cmds[0] else { panic!("{cmds:?}") };
    assert_eq!((to, draft.text.as_str()), (&None, "do it"));
    assert_eq!(input.parts, [PartInput::text("do it")]);
    assert_eq!(input.agent.as_deref(), Some("build"));
    assert_eq!(input.model.as_ref().map(|model| model.model_id.as_str()), Some("clever"));
    assert!(cmds.contains(&Cmd::Remember("do it".into())));
    // Until the session is created, a second prompt would create another one.
    stage.write("more");
    stage.press(KeyCode::Enter);
    assert_eq!(stage.take_cmds(), []);
    stage.shows("being created");
    stage.reply(Reply::Opened(Box::new(serde_json::from_value(session(SESSION, None)).unwrap())));
    stage.press(KeyCode::Enter);
    assert!(stage.take_cmds().iter().any(|cmd| matches!(cmd, Cmd::Send { session: Some(_), .. })));
}

#[test]
fn a_session_without_an_agent_uses_the_agent_of_its_last_prompt() {
    let mut stage = Stage::in_session(80, 24);
    let mut fork = session(SESSION, None);
    fork.as_object_mut().unwrap().remove("agent");
    stage.event("session.updated", json!({"sessionID": SESSION, "info": fork}));
    let mut planned = user(1);
    planned["agent"] = json!("plan");
    stage.message(planned);
    stage.write("more");
    stage.press(KeyCode::Enter);
    let cmds = stage.take_cmds();
    let sent = cmds.iter().find_map(|cmd| if let Cmd::Send { input, .. } = cmd { Some(input) } else { None });
    let Some(input) = sent else { panic!("{cmds:?}") };
    assert_eq!(input.agent.as_deref(), Some("plan"));
    assert_eq!(input.model.as_ref().map(|model| model.model_id.as_str()), Some("clever"));
}

#[test]
fn a_prompt_that_could_not_be_sent_is_restored() {
    let mut stage = Stage::started(80, 24);
    stage.write("do it");
    stage.press(KeyCode::Enter);
    stage.reply(Reply::Unsent { draft: draft_of(&stage), error: "the disk is full".to_owned() });
    stage.shows("┃  do it");
    stage.shows("the disk is full");
}

/// Returns the draft of the prompt that is being sent.
fn draft_of(stage: &Stage) -> crate::prompt::Draft {
    let sent = stage.cmds.iter().rev().find_map(|cmd| match cmd {
        Cmd::Send { draft, .. } | Cmd::Command { draft, .. } | Cmd::Shell { draft, .. } => {
            Some(draft.clone())
        }
        _ => None,
    });
    sent.unwrap()
}

#[test]
fn a_restored_prompt_keeps_its_files_and_shell_mode() {
    let mut stage = Stage::in_session(80, 24);
    stage.msg(Msg::Paste("/tmp/picture.png".to_owned()));
    stage.press(KeyCode::Enter);
    let draft = draft_of(&stage);
    stage.reply(Reply::Unsent { draft, error: "the disk is full".to_owned() });
    stage.take_cmds();
    stage.press(KeyCode::Enter);
    let cmds = stage.take_cmds();
    let Cmd::Send { input, .. } = &cmds[0] else { panic!("{cmds:?}") };
    assert!(matches!(&input.parts[1], PartInput::File { url, .. } if url == "file:///tmp/picture.png"));
    // A shell command must not be sent to the model.
    stage.write("!git status");
    stage.press(KeyCode::Enter);
    let draft = draft_of(&stage);
    stage.reply(Reply::Unsent { draft, error: "the disk is full".to_owned() });
    stage.take_cmds();
    stage.press(KeyCode::Enter);
    assert!(matches!(&stage.take_cmds()[0], Cmd::Shell { input, .. } if input.command == "git status"));
}

#[test]
fn an_escape_interrupts_the_turn() {
    let mut stage = Stage::in_session(80, 24);
    stage.press(KeyCode::Esc);
    assert_eq!(stage.take_cmds(), []);
    stage.event("session.status", json!({"sessionID": SESSION, "status": {"type": "busy"}}));
    // Escape first closes what is open.
    stage.write("/");
    stage.press(KeyCode::Esc);
    stage.press(KeyCode::Backspace);
    assert_eq!(stage.take_cmds(), []);
    stage.press(KeyCode::Esc);
    assert_eq!(stage.take_cmds(), [Cmd::Abort(id(SESSION))]);
}

#[test]
fn with_the_preset_of_opencode_two_escapes_interrupt_the_turn() {
    let mut stage = with_preset("opencode");
    stage.event("session.status", json!({"sessionID": SESSION, "status": {"type": "busy"}}));
    stage.press(KeyCode::Esc);
    assert_eq!(stage.take_cmds(), []);
    // A much later escape counts as the first one.
    stage.now += 6_000;
    stage.press(KeyCode::Esc);
    assert_eq!(stage.take_cmds(), []);
    stage.shows("esc again to interrupt");
    stage.press(KeyCode::Esc);
    assert_eq!(stage.take_cmds(), [Cmd::Abort(id(SESSION))]);
}

/// Returns a client with a preset of keys, in an empty session.
fn with_preset(preset: &str) -> Stage {
    let config = json!({"keybinds": {"preset": preset}});
    let mut stage = Stage::with(Options { config, ..options() }, (80, 24));
    stage.start(providers());
    stage.reply(Reply::Opened(Box::new(serde_json::from_value(session(SESSION, None)).unwrap())));
    stage.reply(Reply::Messages { session: id(SESSION), messages: Vec::new(), older: None });
    stage.take_cmds();
    stage
}

#[test]
fn a_permission_request_is_allowed_once_always_or_rejected() {
    let request = json!({
        "id": "per_000000000001aaaaaaaaaaaaaa", "sessionID": SESSION, "permission": "bash",
        "patterns": ["ls"], "metadata": {"command": "ls"}, "always": ["ls *"],
    });
    let answer = |keys: &[KeyCode], text: &str| {
        let mut stage = Stage::in_session(80, 24);
        stage.event("permission.asked", request.clone());
        for key in keys {
            stage.press(*key);
        }
        stage.write(text);
        if !text.is_empty() {
            stage.press(KeyCode::Enter);
        }
        match stage.take_cmds().pop() {
            Some(Cmd::Permission { answer, .. }) => Some((answer.reply, answer.message)),
            _ => None,
        }
    };
    assert_eq!(answer(&[KeyCode::Enter], ""), Some((PermissionReply::Once, None)));
    assert_eq!(answer(&[KeyCode::Right, KeyCode::Enter], ""), None);
    assert_eq!(
        answer(&[KeyCode::Right, KeyCode::Enter, KeyCode::Enter], ""),
        Some((PermissionReply::Always, None))
    );
    assert_eq!(
        answer(&[KeyCode::Right, KeyCode::Enter, KeyCode::Right, KeyCode::Enter, KeyCode::Enter], ""),
        Some((PermissionReply::Once, None))
    );
    assert_eq!(answer(&[KeyCode::Esc], ""), Some((PermissionReply::Reject, None)));
    assert_eq!(
        answer(&[KeyCode::Left, KeyCode::Enter], "use rg"),
        Some((PermissionReply::Reject, Some("use rg".to_owned())))
    );
}

#[test]
fn always_covers_a_wider_pattern_only_if_the_user_chooses_it() {
    let request = json!({
        "id": "per_000000000001aaaaaaaaaaaaaa", "sessionID": SESSION, "permission": "bash",
        "patterns": ["git log -1"], "always": ["git log *"],
        "metadata": {"command": "git log -1", "asked": {"because": "x", "always": "y", "wider": ["git *", "g*"]}},
    });
    let answer = |keys: &[KeyCode]| {
        let mut stage = Stage::in_session(80, 24);
        stage.event("permission.asked", request.clone());
        for key in keys {
            stage.press(*key);
        }
        match stage.take_cmds().pop() {
            Some(Cmd::Permission { answer, .. }) => Some((answer.reply, answer.wider)),
            _ => None,
        }
    };
    let chosen = |patterns: &[&str]| {
        Some((PermissionReply::Always, patterns.iter().map(|&pattern| pattern.to_owned()).collect()))
    };
    let always = KeyCode::Char('a');
    assert_eq!(answer(&[always, KeyCode::Enter]), chosen(&[]));
    assert_eq!(answer(&[always, KeyCode::Down, KeyCode::Enter]), chosen(&["git *"]));
    assert_eq!(answer(&[always, KeyCode::Down, always]), chosen(&["git *"]));
    assert_eq!(answer(&[always, KeyCode::Up, KeyCode::Enter]), chosen(&["g*"]));
    assert_eq!(answer(&[always, KeyCode::Down, KeyCode::Down, KeyCode::Down, KeyCode::Enter]), chosen(&[]));
    // The choice is forgotten with the dialog.
    assert_eq!(answer(&[always, KeyCode::Down, KeyCode::Esc, always, KeyCode::Enter]), chosen(&[]));
    let once = Some((PermissionReply::Once, Vec::new()));
    assert_eq!(answer(&[always, KeyCode::Down, KeyCode::Esc, KeyCode::Enter]), once);
}

#[test]
fn a_request_of_a_subagent_appears_in_its_parent() {
    let mut stage = Stage::in_session(80, 24);
    stage.event("session.created", json!({"sessionID": CHILD, "info": session(CHILD, Some(SESSION))}));
    stage.event(
        "permission.asked",
        json!({
            "id": "per_000000000001aaaaaaaaaaaaaa", "sessionID": CHILD, "permission": "bash",
            "patterns": ["ls"], "metadata": {"command": "ls"}, "always": [],
        }),
    );
    stage.shows("Permission required");
    stage.event(
        "permission.replied",
        json!({
            "sessionID": CHILD, "requestID": "per_000000000001aaaaaaaaaaaaaa", "reply": "once",
        }),
    );
    stage.hides("Permission required");
}

fn permission(id: &str, session: &str) -> Value {
    json!({
        "id": format!("per_{id}aaaaaaaaaaaaaa"), "sessionID": session, "permission": "bash",
        "patterns": ["ls"], "metadata": {"command": "ls"}, "always": [],
    })
}

#[test]
fn auto_allows_only_calls_of_sessions_that_were_prompted_here() {
    let mut stage = Stage::with(Options { auto: true, ..options() }, (80, 24));
    stage.start(providers());
    let other = "ses_000000000003aaaaaaaaaaaaaa";
    stage.event("session.created", json!({"sessionID": other, "info": session(other, None)}));
    stage.event("permission.asked", permission("000000000001", other));
    // A session that is only viewed was not prompted here.
    stage.reply(Reply::Opened(Box::new(serde_json::from_value(session(SESSION, None)).unwrap())));
    stage.event("permission.asked", permission("000000000002", SESSION));
    assert!(!stage.take_cmds().iter().any(|cmd| matches!(cmd, Cmd::Permission { .. })));
    stage.press(KeyCode::Enter);
    let replied =
        json!({"sessionID": SESSION, "requestID": "per_000000000002aaaaaaaaaaaaaa", "reply": "once"});
    stage.event("permission.replied", replied);
    stage.write("go on");
    stage.press(KeyCode::Enter);
    stage.take_cmds();
    stage.event("permission.asked", permission("000000000003", SESSION));
    stage.event("session.created", json!({"sessionID": CHILD, "info": session(CHILD, Some(SESSION))}));
    stage.event("permission.asked", permission("000000000004", CHILD));
    stage.event("permission.asked", permission("000000000005", other));
    let given = |cmds: Vec<Cmd>| -> Vec<String> {
        let given = cmds.into_iter().filter_map(|cmd| match cmd {
            Cmd::Permission { id, answer } if answer.reply == PermissionReply::Once => Some(id.to_string()),
            _ => None,
        });
        given.map(|id| id[4..16].to_owned()).collect()
    };
    assert_eq!(given(stage.take_cmds()), ["000000000003", "000000000004"]);
    // The same rule applies to requests that were made while the connection was lost.
    let pending = [permission("000000000006", other), permission("000000000007", CHILD)];
    let permissions = pending.map(|request| serde_json::from_value(request).unwrap()).to_vec();
    let permissions = Some(permissions);
    stage.reply(Reply::Started(Box::new(StartData { permissions, ..StartData::default() })));
    assert_eq!(given(stage.take_cmds()), ["000000000007"]);
}

#[test]
fn auto_allows_calls_of_the_session_that_the_first_prompt_creates() {
    let mut stage = Stage::with(Options { auto: true, ..options() }, (80, 24));
    stage.start(providers());
    stage.write("do it");
    stage.press(KeyCode::Enter);
    stage.reply(Reply::Opened(Box::new(serde_json::from_value(session(SESSION, None)).unwrap())));
    stage.take_cmds();
    stage.event("permission.asked", permission("000000000001", SESSION));
    assert!(matches!(&stage.take_cmds()[..], [Cmd::Permission { .. }]));
}

#[test]
fn ctrl_c_clears_first_then_interrupts_and_then_exits() {
    let mut stage = Stage::in_session(80, 24);
    stage.event("session.status", json!({"sessionID": SESSION, "status": {"type": "busy"}}));
    stage.write("text");
    stage.control('c');
    assert_eq!((stage.take_cmds(), stage.state.prompt.editor.text()), (vec![], ""));
    stage.control('c');
    assert_eq!(stage.take_cmds(), [Cmd::Abort(id(SESSION))]);
    stage.shows("ctrl+c again to exit");
    stage.control('c');
    assert_eq!(stage.take_cmds(), [Cmd::Quit]);
}

#[test]
fn one_ctrl_c_or_ctrl_d_never_exits() {
    for c in ['c', 'd'] {
        let mut stage = Stage::in_session(80, 24);
        stage.control(c);
        assert_eq!(stage.take_cmds(), []);
        stage.shows("again to exit");
        // A much later key, and one after another key, count as the first one.
        stage.now += 10_000;
        stage.control(c);
        assert_eq!(stage.take_cmds(), []);
        stage.press(KeyCode::Left);
        stage.control(c);
        assert_eq!(stage.take_cmds(), []);
        stage.control(c);
        assert_eq!(stage.take_cmds(), [Cmd::Quit]);
    }
    let mut stage = Stage::in_session(80, 24);
    stage.write("/exit");
    stage.press(KeyCode::Enter);
    assert_eq!(stage.take_cmds(), [Cmd::Quit]);
    stage.leader('q');
    assert_eq!(stage.take_cmds(), [Cmd::Quit]);
}

#[test]
fn tab_cycles_through_the_visible_agents() {
    let mut stage = Stage::started(80, 24);
    let agent = |stage: &Stage| stage.state.agent().map(|agent| agent.name.clone()).unwrap();
    assert_eq!(agent(&stage), "build");
    stage.press(KeyCode::Tab);
    assert_eq!(agent(&stage), "plan");
    stage.press(KeyCode::Tab);
    assert_eq!(agent(&stage), "build");
    stage.press(KeyCode::Tab);
    stage.write("x");
    stage.press(KeyCode::Enter);
    assert!(
        matches!(&stage.take_cmds()[0], Cmd::Send { input, .. } if input.agent.as_deref() == Some("plan"))
    );
}

#[test]
fn the_next_prompt_uses_the_chosen_model_and_variant() {
    let mut stage = Stage::started(80, 24);
    stage.leader('m');
    stage.write("plain");
    stage.press(KeyCode::Enter);
    assert_eq!(stage.state.model(), Some(("other".to_owned(), "plain".to_owned())));
    assert!(matches!(&stage.take_cmds()[..], [Cmd::Save(saved)] if saved["recent"][0] == "other/plain"));
    stage.state.choose_model("mock", "clever");
    for expected in [Some("low"), Some("high"), None] {
        stage.control('t');
        assert_eq!(stage.state.variant().as_deref(), expected);
    }
}

#[test]
fn commands_of_the_server_run_with_their_arguments() {
    let mut stage = Stage::in_session(80, 24);
    stage.write("/rev");
    stage.press(KeyCode::Tab);
    assert_eq!(stage.state.prompt.editor.text(), "/review ");
    stage.write("the diff");
    stage.press(KeyCode::Enter);
    let cmds = stage.take_cmds();
    assert!(
        matches!(&cmds[0], Cmd::Command { input, .. } if input.command == "review" && input.arguments == "the diff")
    );
}

#[test]
fn an_exclamation_mark_runs_a_shell_command() {
    let mut stage = Stage::in_session(80, 24);
    stage.write("!git status");
    stage.shows("Shell");
    stage.press(KeyCode::Enter);
    assert!(matches!(&stage.take_cmds()[0], Cmd::Shell { input, .. } if input.command == "git status"));
    assert!(!stage.state.prompt.shell);
}

#[test]
fn symbols_of_a_running_server_are_mentioned() {
    let mut stage = Stage::in_session(80, 24);
    stage.write("see @ad");
    let is_search = |cmd: &Cmd| matches!(cmd, Cmd::FindSymbols(_));
    assert!(!stage.take_cmds().iter().any(is_search), "no server runs");
    stage.reply(Reply::Servers {
        mcp: None,
        lsp: Some(json!([{"id": "demo", "name": "demo", "root": "", "status": "connected"}])),
        formatters: None,
    });
    stage.write("d");
    assert!(stage.take_cmds().contains(&Cmd::FindSymbols("add".to_owned())));
    let symbol = |name: &str, file: &str| {
        let range = json!({"start": {"line": 2, "character": 0}, "end": {"line": 7, "character": 1}});
        json!({"name": name, "kind": 12, "location": {"uri": format!("file:///home/me/project/{file}"), "range": range}})
    };
    stage.reply(Reply::Symbols { query: "ad".to_owned(), symbols: vec![symbol("add_old", "src/old.rs")] });
    stage.hides("add_old");
    stage.reply(Reply::Symbols {
        query: "add".to_owned(),
        symbols: vec![
            symbol("add_all", "src/a.rs"),
            symbol("unlike", "src/b.rs"),
            symbol("\u{1b}[2J", "src/c.rs"),
        ],
    });
    stage.reply(Reply::Files { query: "add".to_owned(), files: vec!["src/add.rs".to_owned()] });
    stage.shows("src/add.rs");
    stage.shows("src/a.rs:3");
    stage.hides("unlike");
    stage.press(KeyCode::Down);
    stage.press(KeyCode::Enter);
    assert_eq!(stage.state.prompt.editor.text(), "see @add_all ");
    stage.take_cmds();
    stage.press(KeyCode::Enter);
    let cmds = stage.take_cmds();
    let Cmd::Send { input, .. } = &cmds[0] else { panic!("{cmds:?}") };
    let PartInput::File { url, source, .. } = &input.parts[1] else { panic!("{input:?}") };
    assert_eq!(url, "file:///home/me/project/src/a.rs?start=3&end=8");
    let expected = json!({
        "text": {"value": "@add_all", "start": 4, "end": 12},
        "type": "symbol", "path": "src/a.rs", "name": "add_all", "kind": 12,
        "range": {"start": {"line": 2, "character": 0}, "end": {"line": 7, "character": 1}},
    });
    assert_eq!(source.as_ref(), Some(&expected));
}

#[test]
fn resources_of_a_connected_server_are_mentioned() {
    let mut stage = Stage::in_session(80, 24);
    stage.write("see @no");
    assert!(!stage.take_cmds().contains(&Cmd::FindResources), "no server is connected");
    let mcp = Some(json!({"demo": {"status": "connected"}}));
    stage.reply(Reply::Servers { mcp, lsp: None, formatters: None });
    stage.write("t");
    assert!(stage.take_cmds().contains(&Cmd::FindResources));
    stage.write("e");
    assert!(!stage.take_cmds().contains(&Cmd::FindResources), "they are fetched once");
    let entry = |name: &str, uri: &str| json!({"name": name, "uri": uri, "mimeType": "text/markdown", "client": "demo"});
    stage.reply(Reply::Resources(json!({
        "demo:n": entry("notes.md", "demo://notes.md"), "demo:x": entry("unlike", "demo://x"),
    })));
    stage.shows("demo demo://notes.md");
    stage.hides("unlike");
    stage.press(KeyCode::Enter);
    assert_eq!(stage.state.prompt.editor.text(), "see @notes.md ");
    stage.take_cmds();
    stage.press(KeyCode::Enter);
    let cmds = stage.take_cmds();
    let Cmd::Send { input, .. } = &cmds[0] else { panic!("{cmds:?}") };
    let PartInput::File { url, source, mime, .. } = &input.parts[1] else { panic!("{input:?}") };
    assert_eq!((url.as_str(), mime.as_str()), ("demo://notes.md", "text/markdown"));
    let expected = json!({"text": {"value": "@notes.md", "start": 4, "end": 13}, "type": "resource",
                          "clientName": "demo", "uri": "demo://notes.md"});
    assert_eq!(source.as_ref(), Some(&expected));
}

#[test]
fn files_and_agents_are_mentioned() {
    let mut stage = Stage::in_session(80, 24);
    stage.write("see @ad");
    assert_eq!(stage.take_cmds().last(), Some(&Cmd::FindFiles("ad".to_owned())));
    stage.reply(Reply::Files { query: "a".to_owned(), files: vec!["old.rs".to_owned()] });
    stage.hides("old.rs");
    stage.reply(Reply::Files {
        query: "ad".to_owned(),
        files: vec!["src/add.rs".to_owned(), "ad/".to_owned()],
    });
    stage.shows("src/add.rs");
    stage.press(KeyCode::Enter);
    stage.write("and @expl");
    stage.press(KeyCode::Enter);
    assert_eq!(stage.state.prompt.editor.text(), "see @src/add.rs and @explore ");
    stage.take_cmds();
    stage.press(KeyCode::Enter);
    let cmds = stage.take_cmds();
    let Cmd::Send { input, .. } = &cmds[0] else { panic!("{cmds:?}") };
    assert!(
        matches!(&input.parts[1], PartInput::File { url, .. } if url == "file:///home/me/project/src/add.rs")
    );
    assert!(matches!(&input.parts[2], PartInput::Agent { name, .. } if name == "explore"));
}

#[test]
fn a_prompt_is_undone_and_redone() {
    let mut stage = Stage::in_session(80, 24);
    stage.message(user(1));
    stage.part(part(1, 1, text("first")));
    stage.message(assistant(2, Some("stop")));
    stage.message(user(3));
    stage.part(part(3, 3, text("second")));
    stage.leader('u');
    assert!(
        matches!(&stage.take_cmds()[..], [Cmd::Revert { message, .. }] if message.as_str() == message_id(3))
    );
    assert_eq!(stage.state.prompt.editor.text(), "second");
    let mut reverted = session(SESSION, None);
    reverted["revert"] = json!({"messageID": message_id(3)});
    stage.event("session.updated", json!({"sessionID": SESSION, "info": reverted}));
    stage.shows("1 message reverted");
    stage.leader('r');
    assert_eq!(stage.take_cmds().last(), Some(&Cmd::Unrevert(id(SESSION))));
}

#[test]
fn a_session_that_another_client_deletes_is_closed() {
    let mut stage = Stage::in_session(80, 24);
    stage.write("unsent");
    stage.event("session.deleted", json!({"sessionID": SESSION, "info": session(SESSION, None)}));
    assert_eq!(stage.state.route, Route::Home);
    stage.shows("this session was deleted");
    stage.shows("unsent");
}

#[test]
fn a_lost_connection_is_displayed_and_everything_is_fetched_again() {
    let mut stage = Stage::in_session(80, 24);
    stage.msg(Msg::Lost("it went away".to_owned()));
    stage.shows("no connection to the server: it went away");
    stage.msg(Msg::Connected);
    let cmds = stage.take_cmds();
    assert!(cmds.contains(&Cmd::Start) && cmds.contains(&Cmd::LoadMessages(id(SESSION))), "{cmds:?}");
    stage.hides("no connection");
}

#[test]
fn a_server_can_perform_the_actions_of_the_palette() {
    let mut stage = Stage::started(80, 24);
    stage.event("tui.prompt.append", json!({"text": "appended"}));
    stage.event("tui.command.execute", json!({"command": "help.show"}));
    stage.shows("Help");
    stage.press(KeyCode::Esc);
    stage.event("tui.command.execute", json!({"command": "prompt.submit"}));
    assert!(matches!(&stage.take_cmds()[0], Cmd::Send { draft, .. } if draft.text == "appended"));
}

#[test]
fn a_public_provider_is_never_chosen_automatically() {
    let mut stage = Stage::new(100, 36);
    let model = json!({"id": "free", "name": "Free", "cost": {"input": 0.0, "output": 0.0}});
    let everybody = json!({
        "id": "everybody", "name": "Everybody", "source": "custom", "options": {"apiKey": "public"},
        "models": {"free": model},
    });
    stage.start(json!({"providers": [everybody], "default": {"everybody": "free"}}));
    stage.shows("No model is available yet.");
    stage.shows("/models lists free models of Everybody, which receives your prompts.");
    stage.write("hello");
    stage.press(KeyCode::Enter);
    assert!(!stage.take_cmds().iter().any(|cmd| matches!(cmd, Cmd::Send { .. })));
}

#[test]
fn configured_keys_are_used() {
    let config = json!({"keybinds": {"leader": "ctrl+a", "theme_list": "f9", "model_list": "<leader>k", "app_exit": "f10"}});
    let mut stage = Stage::with(Options { config, ..options() }, (80, 24));
    stage.start(providers());
    stage.press(KeyCode::F(9));
    stage.shows("Themes");
    stage.press(KeyCode::Esc);
    stage.control('a');
    stage.press(KeyCode::Char('k'));
    stage.shows("Select model");
    stage.press(KeyCode::Esc);
    stage.control('c');
    assert_eq!(stage.take_cmds(), []);
    stage.press(KeyCode::F(10));
    assert_eq!(stage.take_cmds(), [Cmd::Quit]);
}

#[test]
fn an_invalid_theme_or_key_causes_a_warning_and_the_default_is_used() {
    let config = json!({"theme": "unknown", "keybinds": {"app_exit": "hyper+q"}});
    let mut stage = Stage::with(Options { config, ..options() }, (100, 24));
    stage.shows("no theme named `unknown`");
    stage.shows("`keybinds.app_exit`: `hyper+q` is not a key");
    stage.control('c');
    stage.control('c');
    assert_eq!(stage.take_cmds(), [Cmd::Quit]);
}

#[test]
fn a_theme_is_previewed_and_reverted() {
    let mut stage = Stage::started(80, 24);
    let before = stage.state.theme.clone();
    stage.leader('t');
    stage.press(KeyCode::Down);
    assert_ne!(stage.state.theme, before);
    stage.press(KeyCode::Esc);
    assert_eq!(stage.state.theme, before);
    stage.leader('t');
    stage.write("nord");
    stage.press(KeyCode::Enter);
    assert_eq!(stage.state.local.theme.as_deref(), Some("nord"));
    assert!(matches!(&stage.take_cmds()[..], [Cmd::Save(saved)] if saved["theme"] == "nord"));
}

#[test]
fn a_click_unfolds_an_output() {
    let mut stage = Stage::in_session(80, 40);
    stage.message(user(1));
    stage.message(assistant(2, Some("stop")));
    let output: String = (1..=15).map(|line| format!("line {line}\n")).collect();
    stage.part(part(2, 1, tool("bash", json!({"command": "seq"}), &output, json!({"output": output}))));
    stage.shows("… the last 10 of 15 lines");
    stage.shows("line 15");
    stage.click(10, 3);
    stage.shows("line 4");
    stage.click(10, 3);
    stage.hides("line 4");
    stage.control('o');
    stage.shows("line 4");
}

/// Returns a session with an answer, and the position of a text in it.
fn answered(answer: &str, text_at: &str) -> (Stage, u16, u16) {
    let mut stage = Stage::in_session(100, 30);
    stage.message(user(1));
    stage.message(assistant(2, Some("stop")));
    stage.part(part(2, 1, text(answer)));
    let screen = stage.screen();
    let (row, line) = screen.lines().enumerate().find(|(_, line)| line.contains(text_at)).unwrap();
    let column = line.split(text_at).next().unwrap().chars().count();
    stage.take_cmds();
    (stage, u16::try_from(column).unwrap(), u16::try_from(row).unwrap())
}

#[test]
fn a_click_on_a_file_opens_it() {
    let answer = "The fault is in `src/add.rs:3:7`, see https://example.com/add for more.";
    let (mut stage, column, row) = answered(answer, "src/add.rs");
    let file = crate::link::FileReference { path: "src/add.rs".to_owned(), line: Some(3), column: Some(7) };
    for at in [column, column + 13] {
        stage.click(at, row);
        assert_eq!(stage.take_cmds(), [Cmd::OpenFile(file.clone())]);
    }
    for at in [column - 1, column + 14] {
        stage.click(at, row);
        assert_eq!(stage.take_cmds(), []);
    }
    // Files of another machine cannot be opened here.
    stage.state.options.has_local_files = false;
    stage.click(column, row);
    assert_eq!(stage.take_cmds(), []);
}

#[test]
fn references_in_outputs_of_tools_are_links() {
    let mut stage = Stage::in_session(100, 30);
    stage.message(user(1));
    stage.message(assistant(2, Some("stop")));
    let output = "src/add.rs:3:7: error\n\u{1b}]8;;https://evil.example\u{7}src/b.rs\u{1b}]8;;\u{7}\n";
    stage.part(part(2, 1, tool("bash", json!({"command": "make"}), output, json!({"output": output}))));
    stage.part(part(2, 2, tool("read", json!({"filePath": "/home/me/project/src/c.rs"}), "x", json!({}))));
    stage.part(part(2, 3, text("| file |\n|---|\n| src/d.rs |\n")));
    let texts: Vec<String> = stage
        .state
        .screen
        .links
        .iter()
        .map(|link| link.pieces.iter().map(|piece| piece.text.as_str()).collect())
        .collect();
    assert_eq!(texts, ["src/add.rs:3:7", "src/b.rs", "src/c.rs", "src/d.rs"]);
}

#[test]
fn links_do_not_change_how_text_looks() {
    let (mut stage, column, row) = answered("See src/add.rs:3 and https://example.com/add.", "src/add.rs");
    let buffer = stage.buffer();
    let plain = buffer[(column - 2, row)].clone();
    for x in column..column + 40 {
        let cell = &buffer[(x, row)];
        assert_eq!((cell.modifier, cell.fg), (plain.modifier, plain.fg), "{x}: {cell:?}");
    }
}

#[test]
fn new_messages_do_not_move_a_scrolled_transcript() {
    let mut stage = Stage::in_session(80, 20);
    for nth in 1..60 {
        stage.message(user(nth));
        stage.part(part(nth, nth, text(&format!("prompt number {nth}"))));
    }
    stage.press(KeyCode::PageUp);
    stage.press(KeyCode::PageUp);
    let before = stage.screen();
    stage.message(user(99));
    stage.part(part(99, 99, text("the newest")));
    assert_eq!(stage.screen(), before);
    stage.key(KeyCode::Char('g'), KeyModifiers::CONTROL | KeyModifiers::ALT);
    stage.shows("the newest");
    stage.control('g');
    stage.shows("prompt number 1");
}

#[test]
fn older_messages_are_fetched_at_the_start() {
    let mut stage = Stage::in_session(80, 20);
    let messages = |from: u64, to: u64| -> Vec<codewright_proto::MessageWithParts> {
        let message = |nth| json!({"info": user(nth), "parts": [part(nth, nth, text(&format!("prompt number {nth}")))]});
        (from..to).map(|nth| serde_json::from_value(message(nth)).unwrap()).collect()
    };
    stage.reply(Reply::Messages {
        session: id(SESSION),
        messages: messages(50, 60),
        older: Some("cursor".to_owned()),
    });
    for _ in 0..6 {
        stage.press(KeyCode::PageUp);
    }
    let fetch = Cmd::LoadOlder { session: id(SESSION), before: "cursor".to_owned() };
    assert_eq!(stage.take_cmds(), [fetch]);
    stage.shows("prompt number 50");
    let before = stage.screen();
    stage.reply(Reply::Older { session: id(SESSION), messages: messages(1, 50), older: None });
    // The visible rows do not move.
    assert_eq!(stage.screen().lines().nth(1), before.lines().nth(1));
    stage.press(KeyCode::PageUp);
    stage.shows("prompt number 47");
}

#[test]
fn a_note_disappears_after_a_while() {
    let mut stage = Stage::started(80, 24);
    stage.event("tui.toast.show", json!({"message": "something", "variant": "info"}));
    stage.shows("something");
    let until = stage.state.next_change().unwrap();
    assert!(until > stage.now);
    stage.now = until + 1;
    stage.msg(Msg::Tick);
    stage.hides("something");
    // Then no timer runs.
    assert_eq!(stage.state.next_change(), None);
}

#[test]
fn renaming_and_deleting_a_session_send_requests() {
    let mut stage = Stage::in_session(90, 30);
    stage.write("/rename");
    stage.press(KeyCode::Enter);
    stage.shows("Rename session");
    stage.control('u');
    stage.write("New title");
    stage.press(KeyCode::Enter);
    assert_eq!(stage.take_cmds(), [Cmd::Rename { session: id(SESSION), title: "New title".to_owned() }]);
    stage.leader('l');
    stage.take_cmds();
    stage.control('d');
    assert_eq!(stage.take_cmds(), []);
    stage.control('d');
    assert_eq!(stage.take_cmds(), [Cmd::Delete(id(SESSION))]);
}

#[test]
fn a_session_that_moves_in_the_list_does_not_cause_another_to_be_deleted() {
    let mut stage = Stage::in_session(90, 30);
    let other = "ses_000000000003aaaaaaaaaaaaaa";
    let mut moved = session(other, None);
    moved["time"]["updated"] = json!(NOW - 5_000);
    stage.event("session.created", json!({"sessionID": other, "info": moved.clone()}));
    stage.leader('l');
    stage.take_cmds();
    stage.control('d');
    // The other session moves to the top between the two keys.
    moved["time"]["updated"] = json!(NOW + 5_000);
    stage.event("session.updated", json!({"sessionID": other, "info": moved}));
    stage.control('d');
    assert_eq!(stage.take_cmds(), [Cmd::Delete(id(SESSION))]);
    // After a session is removed, a single key does not delete its neighbour.
    stage.control('d');
    stage.event("session.deleted", json!({"sessionID": SESSION, "info": session(SESSION, None)}));
    stage.take_cmds();
    stage.control('d');
    assert_eq!(stage.take_cmds(), []);
    stage.control('d');
    assert_eq!(stage.take_cmds(), [Cmd::Delete(id(other))]);
}

#[test]
fn a_key_for_a_provider_is_never_displayed() {
    let mut stage = Stage::started(90, 30);
    stage.write("/connect");
    stage.press(KeyCode::Enter);
    let providers = json!({"all": [{"id": "anthropic", "name": "Anthropic"}]});
    stage.reply(Reply::AllProviders { providers, methods: json!({}) });
    stage.press(KeyCode::Enter);
    stage.write("sk-secret");
    stage.hides("sk-secret");
    stage.shows("•••••••••");
    stage.take_cmds();
    stage.press(KeyCode::Enter);
    assert_eq!(
        stage.take_cmds(),
        [Cmd::PutKey {
            provider: "anthropic".to_owned(),
            key: "sk-secret".to_owned(),
            inputs: BTreeMap::new()
        }]
    );
}

#[test]
fn an_older_answer_does_not_overwrite_events() {
    let mut stage = Stage::started(80, 24);
    stage.reply(Reply::Opened(Box::new(serde_json::from_value(session(SESSION, None)).unwrap())));
    // The server created the answer before the text began, and it arrives after the text.
    stage.message(user(1));
    stage.part(part(1, 1, text("hi")));
    stage.message(assistant(2, None));
    stage.part(part(2, 2, text("")));
    stage.message(user(3));
    stage.part(part(3, 3, text("removed text")));
    stage.event("message.removed", json!({"sessionID": SESSION, "messageID": message_id(3)}));
    let message =
        |info: Value, parts: Value| serde_json::from_value(json!({"info": info, "parts": parts})).unwrap();
    let messages = vec![
        message(user(1), json!([part(1, 1, text("hi"))])),
        message(assistant(2, None), json!([])),
        message(user(3), json!([part(3, 3, text("removed text"))])),
    ];
    stage.reply(Reply::Messages { session: id(SESSION), messages, older: None });
    let delta = json!({"sessionID": SESSION, "messageID": message_id(2), "partID": part(2, 2, json!({}))["id"], "field": "text", "delta": "Begun."});
    stage.event("message.part.delta", delta);
    stage.shows("Begun.");
    stage.hides("removed text");
}

#[test]
fn a_sign_in_in_the_browser_starts_and_finishes() {
    let mut stage = Stage::started(100, 30);
    stage.write("/connect");
    stage.press(KeyCode::Enter);
    let providers = json!({"all": [{"id": "openai", "name": "OpenAI"}]});
    let methods = json!({"openai": [
        {"type": "oauth", "label": "In the browser", "prompts": [
            {"type": "select", "key": "kind", "options": [{"label": "A", "value": "a"}]},
            {"type": "text", "key": "url", "when": {"key": "kind", "op": "eq", "value": "b"}},
        ]},
        {"type": "api", "label": "With a key"},
    ]});
    stage.reply(Reply::AllProviders { providers, methods });
    stage.press(KeyCode::Enter);
    stage.shows("In the browser");
    stage.take_cmds();
    stage.press(KeyCode::Enter);
    let inputs = BTreeMap::from([("kind".to_owned(), "a".to_owned())]);
    assert_eq!(stage.take_cmds(), [Cmd::BeginSignIn { provider: "openai".to_owned(), method: 0, inputs }]);
    let authorization = json!({"url": "https://sign.in/x", "instructions": "Enter 1234.", "method": "auto"});
    stage.reply(Reply::SignIn { provider: "openai".to_owned(), method: 0, authorization });
    stage.shows("https://sign.in/x");
    let finish = Cmd::FinishSignIn { provider: "openai".to_owned(), method: 0, code: None };
    assert_eq!(stage.take_cmds(), [Cmd::Copy("https://sign.in/x".to_owned()), finish]);
    stage.reply(Reply::Connected {
        provider: "other".to_owned(),
        providers: super::providers(),
        check: Value::Null,
    });
    stage.hides("https://sign.in/x");
    stage.shows("the provider is connected");
    // The models of that provider are offered.
    stage.shows("Select model");
    stage.shows("plain");
    stage.hides("quick");
    stage.press(KeyCode::Enter);
    assert_eq!(stage.state.model(), Some(("other".to_owned(), "plain".to_owned())));
}

#[test]
fn keys_that_were_meant_for_the_prompt_do_not_allow_a_call() {
    let mut stage = Stage::in_session(80, 24);
    stage.write("I am just writ");
    stage.event("permission.asked", permission("000000000001", SESSION));
    stage.take_cmds();
    // Every key restarts the wait, however long the user types.
    for c in "ing all of this, h and l too".chars() {
        stage.now += 300;
        stage.press(KeyCode::Char(c));
    }
    stage.press(KeyCode::Enter);
    assert_eq!(stage.take_cmds(), []);
    stage.now += 1_000;
    stage.press(KeyCode::Enter);
    assert!(
        matches!(&stage.take_cmds()[..], [Cmd::Permission { answer, .. }] if answer.reply == PermissionReply::Once)
    );
    assert_eq!(stage.state.prompt.editor.text(), "I am just writ");
}

#[test]
fn keys_that_were_meant_for_the_prompt_do_not_answer_a_question() {
    let request = json!({"id": "que_000000000001aaaaaaaaaaaaaa", "sessionID": SESSION, "questions": [
        {"question": "Which?", "header": "Which", "options": [
            {"label": "One", "description": "1"}, {"label": "Two", "description": "2"},
        ]},
    ]});
    let mut stage = Stage::in_session(80, 24);
    stage.write("there are");
    stage.event("question.asked", request);
    stage.take_cmds();
    for c in " 2 ways".chars() {
        stage.now += 500;
        stage.press(KeyCode::Char(c));
    }
    stage.press(KeyCode::Enter);
    assert_eq!(stage.take_cmds(), []);
    // If the clock was set back, keys are accepted.
    stage.now -= 60_000;
    stage.press(KeyCode::Char('2'));
    let answers = vec![vec!["Two".to_owned()]];
    assert!(matches!(&stage.take_cmds()[..], [Cmd::Question { answers: given, .. }] if *given == answers));
}

#[test]
fn a_transcript_in_the_editor_does_not_become_the_prompt() {
    let mut stage = Stage::in_session(80, 24);
    stage.message(user(1));
    stage.part(part(1, 1, text("first")));
    stage.state.options.editor = Some("vi".to_owned());
    stage.write("/export");
    stage.press(KeyCode::Enter);
    assert!(
        matches!(&stage.take_cmds()[..], [Cmd::Edit { text, then: EditTarget::Discard }] if text.contains("first"))
    );
    stage.write("draft");
    stage.leader('e');
    assert_eq!(stage.take_cmds(), [Cmd::Edit { text: "draft".to_owned(), then: EditTarget::Prompt }]);
}

#[test]
fn the_result_of_a_fetch_does_not_overwrite_newer_events() {
    let mut stage = Stage::in_session(80, 24);
    stage.event("permission.asked", permission("000000000001", SESSION));
    stage.event("session.status", json!({"sessionID": SESSION, "status": {"type": "busy"}}));
    stage.msg(Msg::Lost("it went away".to_owned()));
    stage.msg(Msg::Connected);
    // The server created its answer before this event.
    let replied =
        json!({"sessionID": SESSION, "requestID": "per_000000000001aaaaaaaaaaaaaa", "reply": "once"});
    stage.event("permission.replied", replied);
    stage.event("permission.asked", permission("000000000002", SESSION));
    stage.event("session.idle", json!({"sessionID": SESSION}));
    let started = || StartData {
        permissions: Some(vec![serde_json::from_value(permission("000000000001", SESSION)).unwrap()]),
        statuses: Some(BTreeMap::from([(id(SESSION), codewright_proto::SessionStatus::Busy)])),
        ..StartData::default()
    };
    stage.reply(Reply::Started(Box::new(started())));
    let waiting = |stage: &Stage| -> Vec<String> {
        stage.state.mirror.permissions.iter().map(|request| request.id.to_string()).collect()
    };
    assert_eq!(waiting(&stage), ["per_000000000002aaaaaaaaaaaaaa"]);
    assert!(!stage.state.is_busy());
}

#[test]
fn data_that_cannot_be_fetched_does_not_change() {
    let mut stage = Stage::in_session(80, 24);
    stage.event("permission.asked", permission("000000000001", SESSION));
    stage.event("session.status", json!({"sessionID": SESSION, "status": {"type": "busy"}}));
    let failed = vec!["the server took too long".to_owned()];
    stage.reply(Reply::Started(Box::new(StartData { failed, ..StartData::default() })));
    stage.shows("Permission required");
    assert!(stage.state.is_busy());
    assert_eq!(stage.state.model(), Some(("mock".to_owned(), "clever".to_owned())));
    assert_eq!(stage.state.mirror.branch.as_deref(), Some("main"));
}

#[test]
fn after_a_reconnect_every_session_is_fetched_again() {
    let mut stage = Stage::in_session(80, 24);
    stage.message(user(1));
    stage.part(part(1, 1, text("first")));
    let other = "ses_000000000003aaaaaaaaaaaaaa";
    stage.reply(Reply::Opened(Box::new(serde_json::from_value(session(other, None)).unwrap())));
    stage.msg(Msg::Lost("it went away".to_owned()));
    stage.msg(Msg::Connected);
    stage.take_cmds();
    stage.event("tui.session.select", json!({"sessionID": SESSION}));
    assert!(stage.take_cmds().contains(&Cmd::LoadMessages(id(SESSION))));
}

#[test]
fn a_part_that_arrives_before_its_message_is_displayed() {
    let mut stage = Stage::started(80, 24);
    stage.reply(Reply::Opened(Box::new(serde_json::from_value(session(SESSION, None)).unwrap())));
    stage.part(part(2, 3, text("Begun")));
    let delta = json!({"sessionID": SESSION, "messageID": message_id(2), "partID": part(2, 3, json!({}))["id"], "field": "text", "delta": " and gone on."});
    stage.event("message.part.delta", delta);
    stage.part(part(2, 4, text("removed text")));
    let gone =
        json!({"sessionID": SESSION, "messageID": message_id(2), "partID": part(2, 4, json!({}))["id"]});
    stage.event("message.part.removed", gone);
    let message = json!({"info": assistant(2, None), "parts": [part(2, 2, text("Before."))]});
    let messages = vec![serde_json::from_value(message).unwrap()];
    stage.reply(Reply::Messages { session: id(SESSION), messages, older: None });
    stage.shows("Before.");
    stage.shows("Begun and gone on.");
    stage.hides("removed text");
}

#[test]
fn the_first_session_is_opened_also_after_a_failed_first_connection() {
    let mut state = State::new(options(), Local::default(), BTreeMap::new(), NOW);
    update(&mut state, Msg::Lost("not there yet".to_owned()), NOW);
    let cmds = update(&mut state, Msg::Connected, NOW);
    let trust = Cmd::LoadTrust("/home/me/project".to_owned());
    assert_eq!(cmds, [Cmd::Start, Cmd::OpenFirst, Cmd::LoadServers, trust]);
    update(&mut state, Msg::Lost("it went away".to_owned()), NOW);
    assert!(!update(&mut state, Msg::Connected, NOW).contains(&Cmd::OpenFirst));
}

#[test]
fn an_escape_in_one_session_does_not_count_in_another() {
    let mut stage = with_preset("opencode");
    let other = "ses_000000000003aaaaaaaaaaaaaa";
    stage.event("session.created", json!({"sessionID": other, "info": session(other, None)}));
    for session in [SESSION, other] {
        stage.event("session.status", json!({"sessionID": session, "status": {"type": "busy"}}));
    }
    stage.press(KeyCode::Esc);
    stage.event("tui.session.select", json!({"sessionID": other}));
    stage.take_cmds();
    stage.press(KeyCode::Esc);
    assert_eq!(stage.take_cmds(), []);
    stage.press(KeyCode::Esc);
    assert_eq!(stage.take_cmds(), [Cmd::Abort(id(other))]);
}

#[test]
fn the_selected_answer_is_visible_on_a_small_screen() {
    let options: Vec<Value> =
        (1..=15).map(|at| json!({"label": format!("Answer {at}"), "description": "what it means"})).collect();
    let request = json!({"id": "que_000000000001aaaaaaaaaaaaaa", "sessionID": SESSION, "questions": [
        {"question": "Which?", "header": "Which", "options": options},
    ]});
    let mut stage = Stage::in_session(80, 24);
    stage.event("question.asked", request);
    stage.shows("› 1. Answer 1");
    for at in 2..=15 {
        stage.press(KeyCode::Down);
        stage.shows(&format!("› {at}. Answer {at}"));
        stage.shows("enter confirm");
    }
    stage.press(KeyCode::Down);
    stage.shows("› 16. Type your own answer");
    stage.press(KeyCode::Enter);
    stage.write("mine");
    stage.shows("› mine");
}

#[test]
fn the_end_of_a_turn_is_displayed_when_it_has_ended() {
    let mut stage = Stage::in_session(80, 30);
    let status = |stage: &mut Stage, kind: &str| {
        stage.event("session.status", json!({"sessionID": SESSION, "status": {"type": kind}}));
    };
    stage.message(user(1));
    stage.part(part(1, 1, text("hi")));
    status(&mut stage, "busy");
    stage.message(assistant(2, None));
    stage.part(part(2, 2, text("Working on it.")));
    stage.hides("▣");
    // Between two steps the turn has not ended.
    stage.message(assistant(2, Some("tool-calls")));
    stage.hides("▣");
    stage.message(assistant(3, Some("stop")));
    stage.part(part(3, 3, text("Done.")));
    stage.shows("▣  Build · clever · 3.6s");
    assert_eq!(stage.screen().matches('▣').count(), 1);
    // A turn that was aborted after its calls has ended, too.
    stage.message(user(4));
    stage.part(part(4, 4, text("again")));
    stage.message(assistant(5, Some("tool-calls")));
    assert_eq!(stage.screen().matches('▣').count(), 1);
    status(&mut stage, "idle");
    assert_eq!(stage.screen().matches('▣').count(), 2);
}

#[test]
fn the_warning_about_an_invalid_theme_names_the_used_theme() {
    let mut wrong = options();
    wrong.config = json!({"theme": "mine", "keybinds": {"session_new": "hyper+q"}});
    let themes = BTreeMap::from([("mine".to_owned(), json!({"theme": {"primary": "#zz"}}))]);
    let state = State::new(wrong.clone(), Local::default(), themes, NOW);
    let notes: Vec<&str> = state.notes.iter().map(|note| note.text.as_str()).collect();
    assert_eq!(
        notes,
        [
            "theme `mine`: `primary`: `#zz` is not a colour; using `codewright`",
            "`keybinds.session_new`: `hyper+q` is not a key; using the default keys",
        ]
    );
    let state = State::new(wrong, Local::default(), BTreeMap::new(), NOW);
    assert_eq!(state.notes[0].text, "no theme named `mine`; using `codewright`");
}

#[test]
fn deleting_the_session_keeps_the_draft() {
    let mut stage = Stage::in_session(80, 24);
    stage.write("half a prompt");
    stage.event("session.deleted", json!({"sessionID": SESSION, "info": session(SESSION, None)}));
    assert_eq!(stage.state.route, Route::Home);
    stage.shows("this session was deleted");
    stage.shows("half a prompt");
    // The next prompt creates another session.
    stage.press(KeyCode::Enter);
    assert!(stage.take_cmds().iter().any(|cmd| matches!(cmd, Cmd::Send { session: None, .. })));
}
