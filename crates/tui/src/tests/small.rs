//! The small client, as a terminal shows it.

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

    /// What is on the screen and above it.
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

    #[track_caller]
    fn check(&mut self, name: &str) {
        let shown = format!("{}\n", self.all());
        let path = format!("{}/snapshots/{name}.txt", env!("CARGO_MANIFEST_DIR"));
        match std::fs::read_to_string(&path) {
            Ok(expected) => assert_eq!(shown, expected, "{name}: delete {path} to take the new one"),
            Err(_) => {
                std::fs::write(&path, &shown).unwrap();
                panic!("{path} was written, look at it:\n{shown}");
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
fn what_is_said_goes_into_the_scrollback_once() {
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
fn the_bottom_is_a_prompt_and_a_line_about_it() {
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
fn leave_is_asked_for_in_the_prompts_place() {
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
    assert!(matches!(small.stage.taken().last(), Some(Cmd::Permission { .. })));
}

#[test]
fn nothing_is_written_while_nothing_changes() {
    let mut small = Small::in_session(80, 20);
    let mut written = Vec::new();
    small.mini.draw(&mut small.stage.state, &mut written).unwrap();
    assert_eq!(written, b"");
}

#[test]
fn another_session_and_prompts_that_were_taken_back_are_told() {
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
    assert!(all.contains("── Fix the adder ──") && all.contains("taken back what came last"), "{all}");
    small.stage.event("session.updated", json!({"sessionID": SESSION, "info": session(SESSION, None)}));
    small.draw();
    assert_eq!(small.all().matches("do it").count(), 2);
}

#[test]
fn only_so_many_messages_are_printed_as_were_asked_for() {
    let options = Options { mini: Some(1), ..options() };
    let mut stage = Stage::with(options, (80, 30));
    stage.start(providers());
    stage.reply(Reply::Opened(Box::new(serde_json::from_value(session(SESSION, None)).unwrap())));
    let message = |nth: u64, said: &str| {
        serde_json::from_value(json!({"info": user(nth), "parts": [part(nth, nth, text(said))]})).unwrap()
    };
    let messages = vec![message(1, "the first"), message(2, "the last")];
    stage.reply(Reply::Messages { session: id(SESSION), messages, older: None });
    let mut small = Small { stage, mini: Mini::default(), terminal: vt100::Parser::new(30, 80, 100) };
    small.draw();
    let all = small.all();
    assert!(all.contains("the last") && !all.contains("the first"), "{all}");
}

#[test]
fn messages_that_are_fetched_anew_are_not_printed_again() {
    let mut small = Small::in_session(80, 40);
    for nth in 1..=6 {
        small.stage.message(user(nth));
        small.stage.part(part(nth, nth, text(&format!("prompt {nth}"))));
    }
    small.draw();
    // After a broken connection only the newest are fetched.
    let message = |nth: u64| {
        let said = part(nth, nth, text(&format!("prompt {nth}")));
        serde_json::from_value(json!({"info": user(nth), "parts": [said]})).unwrap()
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

#[test]
fn every_size_can_be_drawn_in_the_small_way() {
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
fn a_terminal_of_ascii_gets_nothing_else() {
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
