//! Tests of the screens.

use super::*;

const PATCH: &str =
    "--- add.rs\n+++ add.rs\n@@ -1,3 +1,3 @@\n fn add(a: i32, b: i32) -> i32 {\n-    a - b\n+    a + b\n }\n";

/// Adds a turn with most kinds of parts.
fn turn(stage: &mut Stage) {
    stage.message(user(1));
    stage.part(part(1, 1, text("fix add.rs please")));
    stage.part(part(
        1,
        2,
        json!({"type": "file", "mime": "text/plain", "filename": "add.rs", "url": "file:///x"}),
    ));
    stage.message(assistant(2, Some("tool-calls")));
    let thought =
        json!({"type": "reasoning", "text": "Look first.", "time": {"start": NOW, "end": NOW + 75}});
    stage.part(part(2, 3, thought));
    stage.part(part(2, 4, text("I'll look at it.")));
    stage.part(part(
        2,
        5,
        tool("read", json!({"filePath": "/home/me/project/add.rs", "offset": 3}), "", json!({})),
    ));
    stage.part(part(2, 6, tool("grep", json!({"pattern": "a - b"}), "", json!({"matches": 2}))));
    let edit = json!({"filePath": "/home/me/project/add.rs"});
    stage.part(part(2, 7, tool("edit", edit, "", json!({"diff": PATCH}))));
    let todos = json!({"todos": [
        {"content": "fix add", "status": "completed", "priority": "high"},
        {"content": "test it", "status": "in_progress", "priority": "low"},
    ]});
    stage.part(part(2, 8, tool("todowrite", todos.clone(), "", json!({}))));
    stage.event("todo.updated", json!({"sessionID": SESSION, "todos": todos["todos"]}));
    let output: String = (1..=14).map(|line| format!("line {line}\n")).collect();
    stage.part(part(
        2,
        9,
        tool("bash", json!({"command": "sh test.sh"}), &output, json!({"output": output, "exit": 3})),
    ));
    stage.part(part(2, 10, tool("mystery_tool", json!({"count": 2, "list": [1, 2]}), "out", json!({}))));
    let refused = json!({"type": "tool", "callID": "c", "tool": "webfetch", "state": {
        "status": "error", "input": {"url": "http://x"}, "error": "no network", "time": {"start": NOW, "end": NOW},
    }});
    stage.part(part(2, 11, refused));
    stage.message(assistant(3, Some("stop")));
    stage.part(part(3, 12, text("# Done\n\nIt is **fixed**, see [the file](add.rs):\n\n- one `call`\n  - nested 漢字 👩‍👩‍👧\n\n| file | lines |\n|---|--:|\n| add.rs | 1 |\n\n```rust\nfn main() {}\n```\n")));
}

#[test]
fn home() {
    let mut stage = Stage::started(100, 24);
    stage.check("home");
    stage.write("hello 漢字");
    stage.shows("┃  hello 漢");
}

#[test]
fn home_without_a_model_explains_what_to_do() {
    let mut stage = Stage::new(90, 30);
    stage.start(json!({"providers": [], "default": {}}));
    stage.check("home-first-run");
}

#[test]
fn a_session_with_its_sidebar() {
    let mut stage = Stage::in_session(140, 70);
    turn(&mut stage);
    stage.check("session-wide");
}

#[test]
fn a_session_on_a_narrow_terminal() {
    let mut stage = Stage::in_session(60, 24);
    turn(&mut stage);
    stage.check("session-narrow");
    stage.press(KeyCode::PageUp);
    stage.check("session-narrow-page-up");
}

#[test]
fn an_answer_grows_on_the_screen() {
    let mut stage = Stage::in_session(70, 20);
    stage.message(user(1));
    stage.part(part(1, 1, text("hi")));
    stage.event("session.status", json!({"sessionID": SESSION, "status": {"type": "busy"}}));
    stage.message(assistant(2, None));
    stage.part(part(2, 2, text("")));
    for delta in ["Some **bo", "ld** text\n\n```py", "thon\nprint(1)\n", "x = 2"] {
        let delta = json!({"sessionID": SESSION, "messageID": message_id(2), "partID": part(2, 2, json!({}))["id"], "field": "text", "delta": delta});
        stage.event("message.part.delta", delta);
    }
    stage.check("session-streaming");
}

fn ask(stage: &mut Stage, permission: &str, metadata: Value, always: Value) {
    stage.event(
        "permission.asked",
        json!({
            "id": "per_000000000001aaaaaaaaaaaaaa", "sessionID": SESSION, "permission": permission,
            "patterns": ["echo *"], "metadata": metadata, "always": always,
        }),
    );
}

#[test]
fn permission_for_a_command() {
    let mut stage = Stage::in_session(80, 20);
    ask(&mut stage, "bash", json!({"command": "echo one &&\nrm -rf two"}), json!(["echo *", "rm *"]));
    stage.check("permission-bash");
    stage.press(KeyCode::Right);
    stage.press(KeyCode::Enter);
    stage.check("permission-always");
}

#[test]
fn permission_for_a_control_file_includes_the_reason() {
    let mut stage = Stage::in_session(80, 20);
    let metadata = json!({"filepath": ".git/hooks/x", "diff": "", "controlFile": "it holds hooks"});
    ask(&mut stage, "edit", metadata, json!([".git/hooks/x"]));
    stage.shows("Writing here needs permission: it holds hooks.");
    stage.press(KeyCode::Right);
    stage.press(KeyCode::Enter);
    stage.shows("Allow always edit in this directory (/home/me/project), until you revoke");
    stage.shows("- .git/hooks/x");
}

#[test]
fn permission_for_an_edit_includes_its_diff() {
    let mut stage = Stage::in_session(80, 22);
    ask(&mut stage, "edit", json!({"filepath": "/home/me/project/add.rs", "diff": PATCH}), json!(["*"]));
    stage.check("permission-edit");
}

fn question(stage: &mut Stage) {
    stage.event(
        "question.asked",
        json!({
            "id": "que_000000000001aaaaaaaaaaaaaa", "sessionID": SESSION,
            "questions": [
                {"question": "Which color?", "header": "Color", "options": [
                    {"label": "Red", "description": "warm"}, {"label": "Blue", "description": "cold"}]},
                {"question": "Pick many", "header": "Many", "multiple": true, "options": [
                    {"label": "A", "description": "a"}, {"label": "B", "description": "b"}]},
            ],
        }),
    );
}

#[test]
fn questions_one_after_another() {
    let mut stage = Stage::in_session(80, 22);
    question(&mut stage);
    stage.check("question");
    stage.press(KeyCode::Enter);
    stage.press(KeyCode::Enter);
    stage.press(KeyCode::Down);
    stage.press(KeyCode::Enter);
    stage.check("question-many");
    stage.press(KeyCode::Tab);
    stage.check("question-review");
    stage.take_cmds();
    stage.press(KeyCode::Enter);
    assert!(
        matches!(&stage.take_cmds()[..], [Cmd::Question { answers, .. }] if *answers == [vec!["Red"], vec!["A", "B"]])
    );
}

#[test]
fn lists_over_the_view() {
    let mut stage = Stage::in_session(100, 34);
    stage.control('p');
    stage.check("palette");
    stage.write("theme");
    stage.check("palette-search");
    stage.press(KeyCode::Esc);
    stage.leader('m');
    stage.check("models");
    stage.press(KeyCode::Esc);
    stage.leader('l');
    stage.control('d');
    stage.check("sessions");
    stage.press(KeyCode::Esc);
    stage.write("/");
    stage.check("slash");
}

#[test]
fn pages_over_the_view() {
    let mut stage = Stage::in_session(100, 90);
    stage.write("/help");
    stage.press(KeyCode::Enter);
    stage.check("help");
    stage.press(KeyCode::Esc);
    stage.leader('s');
    stage.check("status");
}

#[test]
fn undone_messages_are_counted() {
    let mut stage = Stage::in_session(80, 20);
    turn(&mut stage);
    let mut reverted = session(SESSION, None);
    reverted["revert"] =
        json!({"messageID": message_id(1), "kept": [{"file": "a.rs", "reason": "you changed it"}]});
    stage.event("session.updated", json!({"sessionID": SESSION, "info": reverted}));
    stage.check("reverted");
}

#[test]
fn a_failed_turn_has_its_error() {
    let mut stage = Stage::in_session(80, 18);
    stage.message(user(1));
    stage.part(part(1, 1, text("hi")));
    let mut failed = assistant(2, Some("error"));
    failed["error"] = json!({"name": "APIError", "data": {
        "message": "the provider is overloaded\u{1b}[2J, try again later", "isRetryable": true,
    }});
    stage.message(failed);
    stage.check("failed");
}

#[test]
fn a_subagent_can_be_viewed() {
    let mut stage = Stage::in_session(80, 16);
    let child = session(CHILD, Some(SESSION));
    stage.event("session.created", json!({"sessionID": CHILD, "info": child}));
    stage.message(user(1));
    stage.message(assistant(2, None));
    let mut task = tool(
        "task",
        json!({"description": "Sub work", "subagent_type": "explore", "prompt": "p"}),
        "",
        json!({"sessionId": CHILD}),
    );
    task["state"]["title"] = json!("Sub work");
    stage.part(part(2, 2, task));
    stage.check("task");
    stage.control('x');
    stage.press(KeyCode::Down);
    assert_eq!(stage.state.route, Route::Session(id(CHILD)));
    stage.check("subagent");
    stage.press(KeyCode::Up);
    assert_eq!(stage.state.route, Route::Session(id(SESSION)));
}

#[test]
fn every_size_can_be_drawn() {
    for (width, height) in [(1, 1), (20, 6), (21, 7), (40, 8), (60, 10), (120, 12), (400, 3), (30, 200)] {
        let mut stage = Stage::in_session(width, height);
        turn(&mut stage);
        stage.screen();
        question(&mut stage);
        stage.screen();
        ask(&mut stage, "edit", json!({"filepath": "/x", "diff": PATCH}), json!([]));
        stage.screen();
        stage.control('x');
        stage.press(KeyCode::Char('t'));
        stage.screen();
        let mut home = Stage::new(width, height);
        home.start(json!({"providers": [], "default": {}}));
        home.write("some words that are longer than the prompt of a small terminal is wide");
        home.screen();
    }
}

#[test]
fn no_text_from_outside_can_control_the_terminal() {
    let evil = "x\u{1b}]0;t\u{7}\u{1b}[2J\u{9b}1m\u{202e}\u{8}\ry";
    let mut stage = Stage::in_session(140, 60);
    let mut named = session(SESSION, None);
    named["title"] = json!(evil);
    stage.event("session.updated", json!({"sessionID": SESSION, "info": named}));
    stage.message(user(1));
    stage.part(part(1, 1, text(evil)));
    stage.part(part(
        1,
        2,
        json!({"type": "file", "mime": "text/plain", "filename": evil, "url": "file:///x"}),
    ));
    stage.message(assistant(2, Some("stop")));
    stage.part(part(2, 3, text(evil)));
    for (nth, name) in
        (4..).zip(["bash", "read", "write", "edit", "grep", "task", "todowrite", "skill", evil])
    {
        let input = json!({
            "command": evil, "filePath": evil, "content": evil, "pattern": evil, "description": evil, "name": evil,
            "subagent_type": evil, "todos": [{"content": evil, "status": evil, "priority": "low"}], evil: evil,
        });
        stage.part(part(
            2,
            nth,
            tool(name, input, evil, json!({"output": evil, "diff": format!("@@ -1 +1 @@\n+{evil}")})),
        ));
    }
    stage.event(
        "todo.updated",
        json!({"sessionID": SESSION, "todos": [{"content": evil, "status": "pending", "priority": "low"}]}),
    );
    stage.event("tui.toast.show", json!({"title": evil, "message": evil, "variant": "info"}));
    let mut screens = vec![stage.screen()];
    ask(&mut stage, evil, json!({evil: evil, "command": evil}), json!([evil]));
    screens.push(stage.screen());
    ask(&mut stage, "bash", json!({"command": evil}), json!([evil]));
    screens.push(stage.screen());
    for screen in screens {
        let bad: Vec<char> =
            screen.chars().filter(|c| (c.is_control() && *c != '\n') || *c == '\u{202e}').collect();
        assert!(bad.is_empty(), "{bad:?} in\n{screen}");
        assert!(!screen.contains("]0;t"), "{screen}");
    }
}

/// Opens a session that used tokens in two steps.
fn used(width: u16) -> Stage {
    let mut stage = Stage::in_session(width, 30);
    let mut info = session(SESSION, None);
    info["tokens"] =
        json!({"input": 23_456, "output": 1_234, "reasoning": 0, "cache": {"read": 0, "write": 0}});
    stage.event("session.updated", json!({"sessionID": SESSION, "info": info}));
    stage.message(user(1));
    stage.message(assistant(2, Some("tool-calls")));
    stage.message(assistant(3, Some("stop")));
    stage
}

#[test]
fn steps_and_input_and_output_tokens_are_displayed() {
    let mut wide = used(130);
    wide.shows("23,456 in · 1,234 out");
    wide.shows("2 steps");
    let mut narrow = used(100);
    narrow.shows("2 steps · 23.4K in · 1.2K out · 12.3K (6%) · $0.01  ctrl+p commands");
    // On a small screen the keys matter more.
    let mut small = used(80);
    small.shows("12.3K (6%) · $0.01  ctrl+p commands");
    small.hides("2 steps");
    // Older messages that were not fetched are not counted.
    let older = Some("cursor".to_owned());
    let messages =
        vec![serde_json::from_value(json!({"info": assistant(3, Some("stop")), "parts": []})).unwrap()];
    let mut long = Stage::in_session(130, 30);
    long.state.mirror.transcripts.get_mut(&id(SESSION)).unwrap().begin_fetch();
    long.reply(Reply::Messages { session: id(SESSION), messages, older });
    long.shows("1+ steps");
}

#[test]
fn a_configured_name_is_displayed_with_the_time_of_a_prompt() {
    let mut stage = Stage::in_session(80, 24);
    stage.state.local.times = true;
    stage.message(user(1));
    stage.part(part(1, 1, text("hello")));
    stage.shows("hello");
    stage.hides("ann");
    let config = json!({"username": format!("ann\u{1b}[2J\n{}", "x".repeat(80))});
    let started = StartData { config: Some(config), ..StartData::default() };
    stage.reply(Reply::Started(Box::new(started)));
    stage.shows(&format!("ann {}… · ", "x".repeat(35)));
}
