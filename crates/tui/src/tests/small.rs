//! Tests of the small client on a terminal.

use super::*;
use crate::mini::Mini;

/// The small client on a terminal.
struct Small {
    stage: Stage,
    mini: Mini,
    terminal: vt100::Parser,
}

impl Small {
    fn new(width: u16, height: u16) -> Self {
        let options = Options { mini: Some(usize::MAX), ..options() };
        let mut stage = Stage::with(options, (width, height));
        stage.start(providers());
        let terminal = vt100::Parser::new(height, width, 1_000);
        let mut small = Self { stage, mini: Mini::default(), terminal };
        small.draw();
        small
    }

    fn in_session(width: u16, height: u16) -> Self {
        let mut small = Self::new(width, height);
        small.stage.reply(Reply::Opened(Box::new(serde_json::from_value(session(SESSION, None)).unwrap())));
        small.stage.reply(Reply::Messages { session: id(SESSION), messages: Vec::new(), older: None });
        small.draw();
        small
    }

    fn draw(&mut self) {
        let mut written = Vec::new();
        self.mini.draw(&mut self.stage.state, &mut written).unwrap();
        self.terminal.process(&written);
    }

    /// Returns the screen and the scrollback.
    fn all(&mut self) -> String {
        let screen = self.terminal.screen_mut();
        let mut rows = Vec::new();
        screen.set_scrollback(usize::MAX);
        for back in (1..=screen.scrollback()).rev() {
            screen.set_scrollback(back);
            rows.push(screen.rows(0, screen.size().1).next().unwrap());
        }
        screen.set_scrollback(0);
        rows.extend(screen.rows(0, screen.size().1));
        rows.iter().map(|row| row.trim_end()).collect::<Vec<_>>().join("\n").trim_end().to_owned()
    }

    /// Fetches the messages again, as after a broken connection.
    fn fetched(&mut self, messages: Vec<codewright_proto::MessageWithParts>, older: Option<&str>) {
        self.stage.state.mirror.transcripts.get_mut(&id(SESSION)).unwrap().begin_fetch();
        self.stage.reply(Reply::Messages { session: id(SESSION), messages, older: older.map(str::to_owned) });
    }

    #[track_caller]
    fn check(&mut self, name: &str) {
        let shown = format!("{}\n", self.all());
        let path = format!("{}/snapshots/{name}.txt", env!("CARGO_MANIFEST_DIR"));
        match std::fs::read_to_string(&path) {
            Ok(expected) => assert_eq!(shown, expected, "{name}: delete {path} to accept the new screen"),
            Err(_) => {
                std::fs::write(&path, &shown).unwrap();
                panic!("{path} was written, review it:\n{shown}");
            }
        }
    }

    fn status(&mut self, kind: &str) {
        self.stage.event("session.status", json!({"sessionID": SESSION, "status": {"type": kind}}));
    }

    fn delta(&mut self, delta: &str) {
        let delta = json!({"sessionID": SESSION, "messageID": message_id(2), "partID": part(2, 2, json!({}))["id"], "field": "text", "delta": delta});
        self.stage.event("message.part.delta", delta);
    }
}

#[test]
fn messages_are_printed_into_the_scrollback_once() {
    let mut small = Small::in_session(60, 12);
    small.stage.message(user(1));
    small.stage.part(part(1, 1, text("count for me")));
    small.status("busy");
    small.draw();
    small.stage.message(assistant(2, None));
    small.stage.part(part(2, 2, text("")));
    for nth in 0..60 {
        small.delta(&format!("Paragraph {nth}"));
        small.draw();
        small.delta(" ends.\n\n");
        small.stage.now += 80;
        small.draw();
    }
    let running = json!({"type": "tool", "callID": "c", "tool": "bash", "state": {
        "status": "running", "input": {"command": "sleep 9"}, "time": {"start": NOW}}});
    small.stage.part(part(2, 3, running));
    small.draw();
    assert!(small.all().contains("sleep 9"));
    small.stage.part(part(2, 3, tool("bash", json!({"command": "sleep 9"}), "slept", json!({"exit": 0}))));
    small.stage.message(assistant(2, Some("stop")));
    small.status("idle");
    small.draw();
    let all = small.all();
    for nth in 0..60 {
        assert_eq!(all.matches(&format!("Paragraph {nth} ends.")).count(), 1, "{nth}\n{all}");
    }
    for once in ["count for me", "sleep 9", "slept", "▣  Build", "Ask anything…", "BUILD"] {
        assert_eq!(all.matches(once).count(), 1, "{once}\n{all}");
    }
    assert!(all.find("count for me") < all.find("Paragraph 0 ") && all.find("slept") < all.find("▣"));
}

#[test]
fn the_bottom_is_a_prompt_and_a_status_line() {
    let mut small = Small::in_session(80, 24);
    small.stage.message(user(1));
    small.stage.part(part(1, 1, text("fix it")));
    small.stage.message(assistant(2, Some("stop")));
    small.stage.part(part(2, 2, text("It is **fixed**.")));
    small.stage.write("and now\u{5d0}\u{5d1}");
    small.draw();
    small.check("mini");
    let cursor = small.terminal.screen().cursor_position();
    assert_eq!(cursor.1, 9);
    small.stage.control('p');
    small.stage.write("mod");
    small.draw();
    small.check("mini-palette");
    small.stage.press(KeyCode::Esc);
    small.draw();
    small.check("mini");
}

#[test]
fn a_permission_request_replaces_the_prompt() {
    let mut small = Small::in_session(80, 20);
    small.stage.event(
        "permission.asked",
        json!({
            "id": "per_000000000001aaaaaaaaaaaaaa", "sessionID": SESSION, "permission": "bash", "always": ["x"],
            "patterns": ["ls"], "metadata": {"command": "ls"},
        }),
    );
    small.draw();
    small.check("mini-permission");
    small.stage.press(KeyCode::Enter);
    assert!(matches!(small.stage.take_cmds().last(), Some(Cmd::Permission { .. })));
}

#[test]
fn nothing_is_written_while_nothing_changes() {
    let mut small = Small::in_session(80, 20);
    let mut written = Vec::new();
    small.mini.draw(&mut small.stage.state, &mut written).unwrap();
    assert_eq!(written, b"");
}

#[test]
fn another_session_and_undone_prompts_are_announced() {
    let mut small = Small::in_session(80, 40);
    small.stage.message(user(1));
    small.stage.part(part(1, 1, text("do it")));
    small.stage.message(assistant(2, Some("stop")));
    small.stage.part(part(2, 2, text("Done.")));
    small.draw();
    let mut reverted = session(SESSION, None);
    reverted["revert"] = json!({"messageID": message_id(1)});
    small.stage.event("session.updated", json!({"sessionID": SESSION, "info": reverted}));
    small.draw();
    let all = small.all();
    assert!(all.contains("── Fix the adder ──") && all.contains("the last prompts were undone"), "{all}");
    small.stage.event("session.updated", json!({"sessionID": SESSION, "info": session(SESSION, None)}));
    small.draw();
    assert_eq!(small.all().matches("do it").count(), 2);
}

#[test]
fn the_number_of_printed_messages_is_limited() {
    let options = Options { mini: Some(1), ..options() };
    let mut stage = Stage::with(options, (80, 30));
    stage.start(providers());
    stage.reply(Reply::Opened(Box::new(serde_json::from_value(session(SESSION, None)).unwrap())));
    let message = |nth: u64, prompt_part: &str| {
        serde_json::from_value(json!({"info": user(nth), "parts": [part(nth, nth, text(prompt_part))]}))
            .unwrap()
    };
    let messages = vec![message(1, "the first"), message(2, "the last")];
    stage.reply(Reply::Messages { session: id(SESSION), messages, older: None });
    let mut small = Small { stage, mini: Mini::default(), terminal: vt100::Parser::new(30, 80, 100) };
    small.draw();
    let all = small.all();
    assert!(all.contains("the last") && !all.contains("the first"), "{all}");
}

#[test]
fn messages_that_are_fetched_again_are_not_printed_again() {
    let mut small = Small::in_session(80, 40);
    for nth in 1..=6 {
        small.stage.message(user(nth));
        small.stage.part(part(nth, nth, text(&format!("prompt {nth}"))));
    }
    small.draw();
    // After a broken connection only the newest messages are fetched.
    let message = |nth: u64| {
        let prompt_part = part(nth, nth, text(&format!("prompt {nth}")));
        serde_json::from_value(json!({"info": user(nth), "parts": [prompt_part]})).unwrap()
    };
    small.stage.state.mirror.transcripts.insert(id(SESSION), crate::transcript::Transcript::default());
    let messages = (4..=7).map(message).collect();
    small.stage.reply(Reply::Messages { session: id(SESSION), messages, older: Some("x".to_owned()) });
    small.draw();
    let all = small.all();
    for nth in 1..=7 {
        assert_eq!(all.matches(&format!("prompt {nth}")).count(), 1, "{nth}\n{all}");
    }
}

/// Returns a message as the server has it.
fn fetched(info: &Value, parts: &[Value]) -> codewright_proto::MessageWithParts {
    serde_json::from_value(json!({"info": info, "parts": parts})).unwrap()
}

fn prompt(nth: u64) -> codewright_proto::MessageWithParts {
    fetched(&user(nth), &[part(nth, nth, text(&format!("prompt {nth}.")))])
}

#[test]
fn an_unfinished_answer_continues_when_messages_are_fetched_again() {
    let mut small = Small::in_session(80, 40);
    for nth in [10, 11] {
        small.stage.message(user(nth));
        small.stage.part(part(nth, nth, text(&format!("prompt {nth}."))));
    }
    small.status("busy");
    small.stage.message(assistant(12, None));
    small.stage.part(part(12, 12, text("First paragraph.\n\nSecond paragraph.\n\nThi")));
    small.draw();
    let more = part(12, 12, text("First paragraph.\n\nSecond paragraph.\n\nThird paragraph."));
    let messages = vec![prompt(11), fetched(&assistant(12, Some("stop")), &[more])];
    small.fetched(messages, Some("x"));
    small.status("idle");
    small.draw();
    let all = small.all();
    for once in ["prompt 10.", "prompt 11.", "First paragraph.", "Second paragraph.", "Third paragraph."] {
        assert_eq!(all.matches(once).count(), 1, "{once}\n{all}");
    }
    assert!(!all.contains("were undone") && !all.contains("not printed"), "{all}");
}

#[test]
fn messages_with_client_ids_are_printed_once_when_they_are_fetched_again() {
    let mut small = Small::in_session(80, 40);
    let named = |id: &str, nth: u64| {
        let (mut info, mut prompt_part) = (user(nth), part(nth, nth, text(&format!("prompt {nth}."))));
        (info["id"], prompt_part["messageID"]) = (json!(id), json!(id));
        (info, prompt_part)
    };
    let prompts = [named("msg_zzz", 1), named("msg_mmm", 2), named("msg_aaa", 3), named("msg_bbb", 4)];
    for (info, prompt_part) in &prompts[..3] {
        small.stage.message(info.clone());
        small.stage.part(prompt_part.clone());
    }
    small.draw();
    let messages = prompts[1..]
        .iter()
        .map(|(info, prompt_part)| fetched(info, std::slice::from_ref(prompt_part)))
        .collect();
    small.fetched(messages, Some("x"));
    small.draw();
    let all = small.all();
    for nth in 1..=4 {
        assert_eq!(all.matches(&format!("prompt {nth}.")).count(), 1, "{nth}\n{all}");
    }
}

#[test]
fn messages_that_were_not_fetched_are_announced() {
    let mut small = Small::in_session(80, 40);
    for nth in 1..=3 {
        small.stage.message(user(nth));
        small.stage.part(part(nth, nth, text(&format!("prompt {nth}."))));
    }
    small.draw();
    let messages = vec![prompt(8), prompt(9)];
    small.fetched(messages, Some("x"));
    small.draw();
    small.draw();
    let all = small.all();
    for once in ["prompt 3.", "not printed", "prompt 8.", "prompt 9."] {
        assert_eq!(all.matches(once).count(), 1, "{once}\n{all}");
    }
    assert!(!all.contains("were undone"), "{all}");
}

#[test]
fn removed_messages_do_not_hide_new_ones() {
    let mut small = Small::in_session(80, 40);
    for nth in 1..=3 {
        small.stage.message(user(nth));
        small.stage.part(part(nth, nth, text(&format!("prompt {nth}."))));
    }
    small.draw();
    let messages = vec![prompt(1), prompt(8)];
    small.fetched(messages, None);
    small.draw();
    let all = small.all();
    for nth in [1, 2, 3, 8] {
        assert_eq!(all.matches(&format!("prompt {nth}.")).count(), 1, "{nth}\n{all}");
    }
    assert!(!all.contains("were undone") && !all.contains("not printed"), "{all}");
}

#[test]
fn an_answer_to_a_prompt_with_a_client_id_is_printed() {
    let mut small = Small::in_session(80, 40);
    let (mut info, mut prompt_part) = (user(1), part(1, 1, text("prompt 1.")));
    (info["id"], prompt_part["messageID"]) = (json!("msg_zzz"), json!("msg_zzz"));
    small.stage.message(info);
    small.stage.part(prompt_part);
    small.draw();
    small.stage.message(assistant(2, Some("stop")));
    small.stage.part(part(2, 2, text("The answer.")));
    small.stage.message(user(3));
    small.stage.part(part(3, 3, text("prompt 3.")));
    small.draw();
    let all = small.all();
    for once in ["prompt 1.", "The answer.", "prompt 3."] {
        assert_eq!(all.matches(once).count(), 1, "{once}\n{all}");
    }
    let transcript = &small.stage.state.mirror.transcripts[&id(SESSION)];
    let ids: Vec<&str> = transcript.entries.iter().map(|entry| entry.info.id().as_str()).collect();
    assert_eq!(ids, ["msg_zzz", &message_id(2), &message_id(3)]);
    // It is the first undone message, whatever its id.
    let mut reverted = session(SESSION, None);
    reverted["revert"] = json!({"messageID": message_id(2)});
    small.stage.event("session.updated", json!({"sessionID": SESSION, "info": reverted}));
    assert_eq!(small.stage.state.mirror.transcripts[&id(SESSION)].end, 1);
}

#[test]
fn the_small_client_can_be_drawn_at_every_size() {
    for (width, height) in [(5, 3), (12, 4), (20, 6), (300, 90)] {
        let mut small = Small::in_session(width, height);
        small.stage.write("words that are longer than a line of this terminal, by far");
        small.draw();
        small.stage.control('p');
        small.draw();
        small.stage.press(KeyCode::Esc);
        small.stage.state.size = (width.max(2) / 2, height);
        small.draw();
    }
}

#[test]
fn an_ascii_terminal_receives_only_ascii() {
    let mut stage = Stage::with(Options { ascii: true, ..options() }, (130, 30));
    stage.start(providers());
    stage.reply(Reply::Opened(Box::new(serde_json::from_value(session(SESSION, None)).unwrap())));
    stage.message(user(1));
    stage.part(part(1, 1, text("naïve 漢字 👩‍👩‍👧")));
    stage.message(assistant(2, Some("stop")));
    stage.part(part(2, 2, text("| a | b |\n|---|---|\n| ä | 1 |\n\n- one…")));
    stage.event("session.status", json!({"sessionID": SESSION, "status": {"type": "busy"}}));
    stage.check("ascii");
    assert!(stage.screen().is_ascii());
    let mut small = Small::in_session(60, 20);
    small.stage.state.options.ascii = true;
    small.stage.write("ä漢");
    small.draw();
    let last: String = small.terminal.screen().rows(0, 60).filter(|row| row.contains("BUILD")).collect();
    assert!(last.is_ascii() && !last.is_empty(), "{last:?}");
}
