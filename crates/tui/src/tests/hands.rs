//! Tests of what hands expect: answers by letters, permission modes, searches, selection, and the line below the prompt.

use codewright_proto::{Action, PartInput, PermissionReply, Rule};

use super::*;
use crate::keys::{ACTIONS, Group};
use crate::update::is_offered;

fn permission(stage: &mut Stage, name: &str, metadata: Value) {
    stage.event(
        "permission.asked",
        json!({
            "id": "per_000000000001aaaaaaaaaaaaaa", "sessionID": SESSION, "permission": name,
            "patterns": ["ls"], "metadata": metadata, "always": ["ls *"],
        }),
    );
}

fn busy(stage: &mut Stage) {
    stage.event("session.status", json!({"sessionID": SESSION, "status": {"type": "busy"}}));
}

#[test]
fn letters_and_digits_answer_a_permission_request() {
    for (keys, reply) in [
        ("y", Some(PermissionReply::Once)),
        ("Y", Some(PermissionReply::Once)),
        ("1", Some(PermissionReply::Once)),
        ("a", None),
        ("aa", Some(PermissionReply::Always)),
        ("2y", Some(PermissionReply::Always)),
        ("an", None),
        ("any", Some(PermissionReply::Once)),
        ("n", Some(PermissionReply::Reject)),
        ("3", Some(PermissionReply::Reject)),
        ("x", None),
    ] {
        let mut stage = Stage::in_session(80, 24);
        permission(&mut stage, "bash", json!({"command": "ls"}));
        stage.write(keys);
        let given = stage.take_cmds().into_iter().find_map(|cmd| match cmd {
            Cmd::Permission { answer, .. } => Some(answer.reply),
            _ => None,
        });
        assert_eq!(given, reply, "{keys}");
    }
}

#[test]
fn a_letter_of_a_word_that_is_being_typed_answers_nothing() {
    let mut stage = Stage::in_session(80, 24);
    stage.write("a");
    stage.press(KeyCode::Backspace);
    permission(&mut stage, "bash", json!({"command": "ls"}));
    stage.take_cmds();
    stage.write("y");
    assert_eq!(stage.take_cmds(), []);
    stage.now += 1_000;
    stage.write("y");
    assert!(matches!(&stage.take_cmds()[..], [Cmd::Permission { .. }]));
}

/// Returns a client whose agent asks before edits.
fn asking_for_edits() -> Stage {
    let mut stage = Stage::in_session(100, 24);
    let rules = vec![
        Rule::new("*", "*", Action::Allow),
        Rule::new("edit", "*", Action::Ask),
        Rule::new("edit", "secret/*", Action::Deny),
    ];
    stage.state.mirror.agents[0].permission = rules;
    stage
}

#[test]
fn shift_tab_changes_the_permission_mode_and_shows_the_sandbox() {
    let mut stage = asking_for_edits();
    stage.reply(Reply::SandboxSetting(json!({"mode": "workspace", "enforced": true})));
    stage.shows("ask · sandbox on");
    stage.key(KeyCode::BackTab, KeyModifiers::SHIFT);
    stage.shows("accept edits · sandbox on");
    stage.key(KeyCode::BackTab, KeyModifiers::SHIFT);
    stage.shows("plan · sandbox on");
    assert_eq!(stage.state.agent().unwrap().name, "plan");
    stage.key(KeyCode::BackTab, KeyModifiers::SHIFT);
    assert_eq!(stage.state.agent().unwrap().name, "build");
    stage.shows("ask · sandbox on");
    for (setting, label) in [
        (json!({"mode": "off"}), "no sandbox"),
        (json!({"mode": "workspace", "enforced": false}), "sandbox not enforced"),
    ] {
        stage.reply(Reply::SandboxSetting(setting));
        stage.shows(label);
    }
}

#[test]
fn accepting_edits_answers_requests_for_edits_only() {
    let mut stage = asking_for_edits();
    stage.key(KeyCode::BackTab, KeyModifiers::SHIFT);
    stage.take_cmds();
    permission(&mut stage, "edit", json!({"filepath": "/home/me/project/a.rs"}));
    assert!(
        matches!(&stage.take_cmds()[..], [Cmd::Permission { answer, .. }] if answer.reply == PermissionReply::Once)
    );
    for (name, metadata) in [
        ("bash", json!({"command": "ls"})),
        ("external_directory", json!({})),
        ("edit", json!({"controlFile": "it holds hooks"})),
    ] {
        let mut stage = asking_for_edits();
        stage.key(KeyCode::BackTab, KeyModifiers::SHIFT);
        stage.take_cmds();
        permission(&mut stage, name, metadata);
        assert_eq!(stage.take_cmds(), [], "{name}");
    }
    // Nobody chose it, so nothing is answered.
    let mut stage = Stage::in_session(100, 24);
    stage.shows("accept edits");
    permission(&mut stage, "edit", json!({}));
    assert_eq!(stage.take_cmds(), []);
}

#[test]
fn asking_adds_rules_once_and_accepting_restores_those_of_the_agent() {
    let mut stage = Stage::in_session(100, 24);
    stage.state.mirror.agents[0].permission =
        vec![Rule::new("*", "*", Action::Allow), Rule::new("edit", "secret/*", Action::Deny)];
    stage.key(KeyCode::BackTab, KeyModifiers::SHIFT);
    stage.key(KeyCode::BackTab, KeyModifiers::SHIFT);
    let cmds = stage.take_cmds();
    let Some(Cmd::SetRules { rules, .. }) = cmds.first() else { panic!("{cmds:?}") };
    assert!(rules.contains(&Rule::new("edit", "*", Action::Ask)), "{rules:?}");
    assert_eq!(rules.iter().filter(|rule| rule.action == Action::Deny).count(), 1, "{rules:?}");
    let mut changed = session(SESSION, None);
    changed["permission"] = serde_json::to_value(rules).unwrap();
    stage.event("session.updated", json!({"sessionID": SESSION, "info": changed}));
    stage.take_cmds();
    stage.write("go");
    stage.press(KeyCode::Enter);
    let cmds = stage.take_cmds();
    assert!(matches!(&cmds[0], Cmd::Send { rules, .. } if rules.is_empty()), "{cmds:?}");
    stage.key(KeyCode::BackTab, KeyModifiers::SHIFT);
    let cmds = stage.take_cmds();
    assert!(
        matches!(&cmds[..], [Cmd::SetRules { rules, .. }] if rules.iter().all(|rule| rule.action != Action::Ask)),
        "{cmds:?}"
    );
}

#[test]
fn a_new_session_gets_the_rules_of_the_mode() {
    let mut stage = Stage::started(100, 24);
    stage.key(KeyCode::BackTab, KeyModifiers::SHIFT);
    stage.key(KeyCode::BackTab, KeyModifiers::SHIFT);
    stage.take_cmds();
    stage.write("go");
    stage.press(KeyCode::Enter);
    let cmds = stage.take_cmds();
    assert!(
        matches!(&cmds[0], Cmd::Send { session: None, rules, .. } if rules.contains(&Rule::new("bash", "*", Action::Ask))),
        "{cmds:?}"
    );
}

#[test]
fn ctrl_r_searches_the_history_of_prompts() {
    let mut stage = Stage::in_session(90, 24);
    stage.control('r');
    assert!(stage.state.layers.is_empty(), "there is no history");
    for text in ["fix the adder\nand its test", "write docs", "fix the parser"] {
        stage.state.prompt.remember(text.into());
    }
    stage.control('r');
    stage.shows("Earlier prompts");
    stage.write("adder");
    stage.press(KeyCode::Enter);
    assert_eq!(stage.state.prompt.editor.text(), "fix the adder\nand its test");
}

/// A session with many prompts and one folded output.
fn long() -> Stage {
    let mut stage = Stage::in_session(80, 24);
    for nth in 1..60 {
        stage.message(user(nth));
        stage.part(part(nth, nth, text(&format!("prompt number {nth}"))));
    }
    stage.message(assistant(60, Some("stop")));
    let output: String = (1..=400).map(|line| format!("output {line}\n")).collect();
    stage.part(part(
        60,
        100,
        tool("bash", json!({"command": "seq"}), &output, json!({"output": output, "exit": 0})),
    ));
    stage
}

#[test]
fn the_transcript_is_searched_also_where_nothing_is_drawn() {
    let mut stage = long();
    stage.control('x');
    stage.press(KeyCode::Char('/'));
    stage.write("NUMBER 7");
    stage.msg(Msg::Tick);
    stage.shows("prompt number 7");
    stage.shows("1 of 1");
    stage.control('u');
    // A folded output is unfolded.
    stage.write("output 33");
    stage.msg(Msg::Tick);
    stage.shows("output 339");
    stage.shows("1 of 11");
    stage.press(KeyCode::Enter);
    stage.write("n");
    stage.shows("2 of 11");
    stage.shows("output 338");
    stage.write("N");
    stage.shows("1 of 11");
    stage.press(KeyCode::Esc);
    stage.shows("Ask anything…");
    stage.shows("output 339");
}

#[test]
fn a_search_without_matches_fetches_older_messages() {
    let mut stage = long();
    stage.state.mirror.transcripts.get_mut(&id(SESSION)).unwrap().older = Some("cursor".to_owned());
    stage.take_cmds();
    stage.control('x');
    stage.press(KeyCode::Char('/'));
    stage.write("ancient");
    stage.msg(Msg::Tick);
    assert!(matches!(&stage.take_cmds()[..], [Cmd::LoadOlder { .. }]));
    let old = json!({"info": user(0), "parts": [part(0, 500, text("an ancient prompt"))]});
    let messages = vec![serde_json::from_value(old).unwrap()];
    stage.reply(Reply::Older { session: id(SESSION), messages, older: None });
    stage.msg(Msg::Tick);
    stage.shows("an ancient prompt");
}

#[test]
fn a_slash_searches_while_older_text_is_read() {
    let mut stage = long();
    stage.write("/");
    assert_eq!(stage.state.prompt.editor.text(), "/", "at the end it begins a command");
    stage.press(KeyCode::Esc);
    stage.press(KeyCode::Backspace);
    stage.press(KeyCode::PageUp);
    stage.shows("↓ more below (end)");
    stage.write("/");
    assert!(stage.state.search.is_some());
    stage.press(KeyCode::Esc);
    stage.press(KeyCode::End);
    stage.hides("more below");
}

#[test]
fn a_search_in_a_long_session_takes_small_steps() {
    let mut stage = Stage::in_session(80, 24);
    let message = |nth: u64| json!({"info": user(nth), "parts": [part(nth, nth, text("a prompt"))]});
    let messages = (1..20_000).map(|nth| serde_json::from_value(message(nth)).unwrap()).collect();
    stage.reply(Reply::Messages { session: id(SESSION), messages, older: None });
    stage.control('x');
    stage.press(KeyCode::Char('/'));
    stage.write("z");
    assert!(stage.state.search.as_ref().unwrap().is_running(), "a key searches only a part");
    assert!(stage.state.next_change().is_some(), "the search continues without a key");
    for _ in 0..5 {
        stage.msg(Msg::Tick);
    }
    assert!(!stage.state.search.as_ref().unwrap().is_running());
    stage.shows("no matches");
}

fn drag(stage: &mut Stage, from: (u16, u16), to: (u16, u16)) -> Vec<Cmd> {
    stage.take_cmds();
    stage.msg(mouse(MouseEventKind::Down(MouseButton::Left), from.0, from.1));
    stage.msg(mouse(MouseEventKind::Drag(MouseButton::Left), to.0, to.1));
    stage.msg(mouse(MouseEventKind::Up(MouseButton::Left), to.0, to.1));
    stage.take_cmds()
}

#[test]
fn a_selection_is_copied_without_decoration() {
    let mut stage = Stage::in_session(80, 24);
    stage.message(user(1));
    stage.part(part(1, 1, text("the prompt")));
    stage.message(assistant(2, Some("stop")));
    stage.part(part(2, 2, text("First 漢字 line.\n\nSecond line.")));
    let screen = stage.screen();
    let row =
        |text: &str| u16::try_from(screen.lines().position(|line| line.contains(text)).unwrap()).unwrap();
    let cmds = drag(&mut stage, (5, row("First")), (16, row("Second")));
    assert_eq!(cmds, [Cmd::Copy("First 漢字 line.\n\nSecond line.".to_owned())]);
    // The second cell of a wide character belongs to it. A selection upwards is the same.
    let cmds = drag(&mut stage, (14, row("First")), (12, row("First")));
    assert_eq!(cmds, [Cmd::Copy("漢字".to_owned())]);
    let cmds = drag(&mut stage, (0, row("the prompt")), (70, row("the prompt")));
    assert_eq!(cmds, [Cmd::Copy("the prompt".to_owned())]);
}

#[test]
fn a_click_selects_nothing_and_a_drag_folds_nothing() {
    let mut stage = long();
    let before = stage.state.expanded.clone();
    let cmds = drag(&mut stage, (6, 2), (20, 4));
    assert!(matches!(&cmds[..], [Cmd::Copy(_)]), "{cmds:?}");
    assert_eq!(stage.state.expanded, before);
    stage.click(10, 2);
    assert_eq!(stage.take_cmds(), []);
    assert!(stage.state.selection.is_none());
    assert_ne!(stage.state.expanded, before);
}

#[test]
fn the_transcript_moves_while_the_mouse_pulls_it() {
    let mut stage = long();
    stage.press(KeyCode::PageUp);
    stage.press(KeyCode::PageUp);
    stage.take_cmds();
    let top = stage.screen();
    stage.msg(mouse(MouseEventKind::Down(MouseButton::Left), 6, 8));
    stage.msg(mouse(MouseEventKind::Drag(MouseButton::Left), 6, 0));
    for _ in 0..6 {
        stage.now += 50;
        assert!(stage.state.next_change().is_some());
        stage.msg(Msg::Tick);
    }
    assert_ne!(stage.screen(), top);
    stage.msg(mouse(MouseEventKind::Up(MouseButton::Left), 6, 0));
    let cmds = stage.take_cmds();
    let [Cmd::Copy(text)] = &cmds[..] else { panic!("{cmds:?}") };
    assert!(text.lines().count() > 10, "more than the rows between the cells: {text}");
    let before = stage.screen();
    stage.now += 500;
    stage.msg(Msg::Tick);
    assert_eq!(stage.screen(), before, "the button is not held any more");
}

#[test]
fn a_prompt_that_waits_has_a_mark_and_can_be_taken_back() {
    let mut stage = Stage::in_session(80, 24);
    stage.message(user(1));
    stage.part(part(1, 1, text("first")));
    busy(&mut stage);
    stage.hides("queued");
    stage.message(assistant(2, None));
    stage.message(user(3));
    stage.part(part(3, 3, text("and then this")));
    stage.shows("queued");
    stage.take_cmds();
    stage.key(KeyCode::Up, KeyModifiers::ALT);
    let cmds = stage.take_cmds();
    let [Cmd::TakeBack { message, draft, .. }] = &cmds[..] else { panic!("{cmds:?}") };
    assert_eq!((message.as_str(), draft.text.as_str()), (message_id(3).as_str(), "and then this"));
    stage.reply(Reply::TakenBack(draft.clone()));
    stage.event("message.removed", json!({"sessionID": SESSION, "messageID": message_id(3)}));
    assert_eq!(stage.state.prompt.editor.text(), "and then this");
    stage.hides("queued");
}

#[test]
fn a_prompt_that_the_model_has_read_is_not_queued() {
    let mut stage = Stage::in_session(80, 24);
    stage.message(user(1));
    stage.part(part(1, 1, text("first")));
    stage.message(assistant(2, Some("stop")));
    stage.message(user(3));
    stage.part(part(3, 3, text("second")));
    busy(&mut stage);
    stage.hides("queued");
    stage.message(assistant(4, None));
    stage.hides("queued");
}

#[test]
fn unknown_commands_are_errors_and_paths_are_prompts() {
    let mut stage = Stage::in_session(100, 24);
    for (typed, shown) in [
        ("/nosuch hi", "unknown command `/nosuch`"),
        ("/modl", "did you mean `/model`"),
        ("/share", "unknown command `/share`"),
        ("/undo now", "`/undo` takes no arguments"),
    ] {
        stage.state.prompt.editor.set(typed);
        stage.press(KeyCode::Enter);
        assert!(!stage.take_cmds().iter().any(|cmd| matches!(cmd, Cmd::Send { .. })), "{typed}");
        stage.shows(shown);
        assert_eq!(stage.state.prompt.editor.text(), typed, "nothing is lost");
        stage.state.notes.clear();
    }
    for typed in ["/home/me/a.rs is wrong", "/ what", "//"] {
        stage.state.prompt.editor.set(typed);
        stage.press(KeyCode::Enter);
        assert!(matches!(&stage.take_cmds()[0], Cmd::Send { .. }), "{typed}");
    }
}

#[test]
fn a_picture_for_a_model_without_sight_is_sent_only_after_a_confirmation() {
    let mut stage = Stage::in_session(80, 24);
    stage.state.mirror.providers[0].models[0].sees = Some(false);
    stage.msg(Msg::Paste("/tmp/picture.png".to_owned()));
    stage.press(KeyCode::Enter);
    assert_eq!(stage.take_cmds(), []);
    stage.shows("clever cannot see pictures");
    stage.press(KeyCode::Enter);
    assert_eq!(stage.take_cmds(), []);
    assert!(stage.state.prompt.editor.text().contains("picture.png"));
    stage.press(KeyCode::Enter);
    stage.press(KeyCode::Right);
    stage.press(KeyCode::Enter);
    let cmds = stage.take_cmds();
    let Cmd::Send { input, .. } = &cmds[0] else { panic!("{cmds:?}") };
    assert!(matches!(&input.parts[1], PartInput::File { .. }));
    // A model that sees gets it at once.
    stage.state.mirror.providers[0].models[0].sees = Some(true);
    stage.msg(Msg::Paste("/tmp/picture.png".to_owned()));
    stage.press(KeyCode::Enter);
    assert!(matches!(&stage.take_cmds()[0], Cmd::Send { .. }));
}

#[test]
fn a_question_mark_lists_the_keys_of_the_moment() {
    let mut stage = Stage::in_session(100, 100);
    stage.write("?");
    stage.shows("Keys of the moment");
    stage.shows("Next permission mode");
    stage.hides("Go back from a subagent");
    stage.press(KeyCode::Esc);
    stage.write("why?");
    assert_eq!(stage.state.prompt.editor.text(), "why?");
}

/// The line below the prompt never cuts a word, and its pieces never touch.
#[test]
fn the_line_below_the_prompt_fits_at_every_width() {
    let statuses = [
        json!({"type": "idle"}),
        json!({"type": "busy"}),
        json!({"type": "retry", "attempt": 12, "message": "could not find the host of the provider", "next": NOW + 99_000}),
    ];
    let whole = [
        "commands",
        "interrupt",
        "tokens",
        "again",
        "exit",
        "in",
        "out",
        "steps",
        "step",
        "untrusted",
        "more",
        "below",
        "attempt",
        "esc",
        "ctrl+p",
        "ctrl+c",
        "twice",
        "key…",
        "waiting",
        "to",
        "for",
        "a",
    ];
    for width in 40..=200 {
        for status in &statuses {
            for pressed in ["", "c", "x", "up"] {
                let mut stage = Stage::in_session(width, 14);
                let mut info = session(SESSION, None);
                info["tokens"] = json!({"input": 23_456, "output": 1_234, "reasoning": 0, "cache": {"read": 0, "write": 0}});
                stage.event("session.updated", json!({"sessionID": SESSION, "info": info}));
                for nth in 1..6 {
                    stage.message(user(nth));
                    stage.part(part(nth, nth, text("a prompt")));
                }
                stage.message(assistant(20, None));
                stage.event("session.status", json!({"sessionID": SESSION, "status": status}));
                match pressed {
                    "up" => stage.press(KeyCode::PageUp),
                    "" => {}
                    c => stage.control(c.chars().next().unwrap()),
                }
                let screen = stage.screen();
                let sidebar = stage.state.screen.layout.sidebar.map_or(width, |area| area.x);
                let line: String =
                    screen.lines().last().unwrap().chars().take(usize::from(sidebar)).collect();
                for piece in line.split("  ").map(str::trim).filter(|piece| !piece.is_empty()) {
                    for word in piece.split(' ').filter(|word| word.chars().all(|c| c.is_alphabetic())) {
                        let known = whole.contains(&word) || piece.starts_with('~') || piece.starts_with('…');
                        assert!(known, "`{word}` in `{line}` at {width}");
                    }
                }
                assert!(!line.contains("interruptctrl") && !line.contains("(6%ctrl"), "{line}");
            }
        }
    }
}

/// What the server does not have is not in a menu, in the help or in the palette.
#[test]
fn nothing_is_offered_that_leads_nowhere() {
    const ABSENT: [&str; 4] = ["share", "unshare", "upgrade", "workspaces"];
    let mut stage = Stage::in_session(120, 100);
    for name in ABSENT {
        let offered = ACTIONS.iter().filter(|row| is_offered(&stage.state, row.action));
        let mut names = offered.flat_map(|row| row.slash.iter());
        assert!(!names.any(|slash| *slash == name), "/{name}");
    }
    for open in ["/help", "/keys", "/status", "/bug"] {
        stage.state.prompt.editor.set(open);
        stage.press(KeyCode::Enter);
        let screen = stage.screen().to_lowercase();
        assert!(!screen.contains("share session") && !screen.contains("stop sharing"), "{open}");
        stage.press(KeyCode::Esc);
    }
    for name in ABSENT {
        stage.state.prompt.clear();
        stage.write(&format!("/{name}"));
        let offers =
            stage.state.prompt.completion.as_ref().map(|known| known.offers.clone()).unwrap_or_default();
        assert!(offers.iter().all(|offer| offer.label != format!("/{name}")), "/{name}");
    }
    stage.state.prompt.clear();
    stage.state.prompt.completion = None;
    stage.control('p');
    stage.hides("Share session");
    stage.press(KeyCode::Esc);
    // Each entry of the palette does something: it opens a layer, sends a command, or changes the state.
    for row in ACTIONS.iter().filter(|row| row.group != Group::Keys && !row.slash.is_empty()) {
        let mut stage = Stage::in_session(120, 60);
        // The trust of the directory is not fetched here.
        let is_ready = row.action != crate::keys::Action::Trust;
        if !is_ready || !crate::update::applies(&stage.state, row.action) {
            continue;
        }
        let before = stage.screen();
        stage.state.prompt.editor.set(format!("/{}", row.slash[0]));
        stage.press(KeyCode::Enter);
        let has_effect = !stage.take_cmds().is_empty() || stage.screen() != before;
        assert!(has_effect, "/{} has no effect", row.slash[0]);
    }
}

#[test]
fn cost_and_context_are_explained() {
    let mut stage = Stage::in_session(100, 40);
    let mut info = session(SESSION, None);
    info["tokens"] =
        json!({"input": 20_000, "output": 1_234, "reasoning": 0, "cache": {"read": 60_000, "write": 0}});
    stage.event("session.updated", json!({"sessionID": SESSION, "info": info}));
    stage.message(user(1));
    stage.part(part(1, 1, text(&"prompt ".repeat(100))));
    let mut answer = assistant(2, Some("stop"));
    answer["tokens"] =
        json!({"input": 2_000, "output": 345, "reasoning": 0, "cache": {"read": 8_000, "write": 0}});
    stage.message(answer);
    stage.part(part(2, 2, tool("read", json!({"filePath": "a.rs"}), &"x".repeat(8_000), json!({}))));
    stage.part(part(2, 3, tool("bash", json!({"command": "ls"}), &"x".repeat(4_000), json!({}))));
    stage.write("/cost");
    stage.press(KeyCode::Enter);
    stage.check("cost");
    stage.press(KeyCode::Esc);
    stage.take_cmds();
    stage.write("/context");
    stage.press(KeyCode::Enter);
    let fetch = Cmd::LoadTools { provider: "mock".to_owned(), model: "clever".to_owned() };
    assert_eq!(stage.take_cmds(), [fetch]);
    stage.reply(Reply::ToolBytes(8_000));
    stage.check("context");
}

fn idle(stage: &mut Stage) {
    stage.event("session.status", json!({"sessionID": SESSION, "status": {"type": "idle"}}));
}

/// Returns the texts of the notifications, and whether the title was changed.
fn notified(stage: &mut Stage) -> (Vec<String>, bool) {
    let cmds = stage.take_cmds();
    let titled = cmds.iter().any(|cmd| matches!(cmd, Cmd::Title(_)));
    let texts = cmds.into_iter().filter_map(|cmd| match cmd {
        Cmd::Notify(notification) => Some(notification.text),
        _ => None,
    });
    (texts.collect(), titled)
}

#[test]
fn the_end_of_a_turn_is_notified_only_without_the_focus() {
    use crate::notification::Focus;
    let mut stage = Stage::in_session(80, 24);
    stage.msg(Msg::Focus(Focus::Gained));
    busy(&mut stage);
    idle(&mut stage);
    assert_eq!(notified(&mut stage), (vec![], false));
    stage.msg(Msg::Focus(Focus::Lost));
    busy(&mut stage);
    idle(&mut stage);
    assert_eq!(notified(&mut stage), (vec!["done: Fix the adder".to_owned()], true));
    permission(&mut stage, "bash", json!({"command": "ls"}));
    assert_eq!(notified(&mut stage), (vec!["needs permission: Fix the adder".to_owned()], true));
    stage.msg(Msg::Focus(Focus::Gained));
    assert_eq!(stage.take_cmds(), [Cmd::Title("Fix the adder".to_owned())]);
}

#[test]
fn a_failed_turn_is_notified_and_an_interrupted_one_is_not() {
    use crate::notification::Focus;
    for (name, expected) in [("APIError", Some("failed: Fix the adder")), ("MessageAbortedError", None)] {
        let mut stage = Stage::in_session(80, 24);
        stage.msg(Msg::Focus(Focus::Lost));
        stage.message(user(1));
        busy(&mut stage);
        let mut answer = assistant(2, Some("error"));
        answer["error"] = json!({"name": name, "data": {"message": "it broke", "isRetryable": false}});
        stage.message(answer);
        stage.take_cmds();
        idle(&mut stage);
        assert_eq!(notified(&mut stage).0, expected.map(str::to_owned).into_iter().collect::<Vec<_>>());
    }
}

#[test]
fn notifications_can_be_turned_off() {
    use crate::notification::Focus;
    for (setting, notifies, titles) in [
        (json!(false), false, false),
        (json!(true), true, true),
        (json!({"bell": false, "desktop": false}), false, true),
        (json!({"title": false}), true, false),
    ] {
        let config = json!({"notifications": setting});
        let mut stage = Stage::with(Options { config, ..options() }, (80, 24));
        stage.start(providers());
        stage.reply(Reply::Opened(Box::new(serde_json::from_value(session(SESSION, None)).unwrap())));
        stage.msg(Msg::Focus(Focus::Lost));
        busy(&mut stage);
        stage.take_cmds();
        idle(&mut stage);
        let (texts, titled) = notified(&mut stage);
        assert_eq!((!texts.is_empty(), titled), (notifies, titles), "{setting}");
    }
}

#[test]
fn a_terminal_that_does_not_report_its_focus_notifies_after_a_while_without_keys() {
    let mut stage = Stage::in_session(80, 24);
    stage.press(KeyCode::Left);
    busy(&mut stage);
    stage.now += 5_000;
    idle(&mut stage);
    assert_eq!(notified(&mut stage).0.len(), 0);
    busy(&mut stage);
    stage.now += 60_000;
    idle(&mut stage);
    assert_eq!(notified(&mut stage).0.len(), 1);
}

#[test]
fn a_running_turn_shows_its_time_its_tokens_and_its_cost() {
    let mut stage = Stage::in_session(110, 24);
    stage.message(user(1));
    stage.part(part(1, 1, text("go")));
    busy(&mut stage);
    let mut answer = assistant(2, Some("tool-calls"));
    answer["cost"] = json!(0.25);
    stage.message(answer);
    stage.now += 75_000;
    stage.msg(Msg::Tick);
    stage.shows("esc interrupt  1m 14s  12.3K tokens  $0.25");
}

#[test]
fn the_reason_of_a_retry_and_of_an_end_stays() {
    let mut stage = Stage::in_session(80, 24);
    stage.message(user(1));
    stage.part(part(1, 1, text("go")));
    busy(&mut stage);
    stage.message(assistant(2, None));
    for attempt in [1, 2] {
        let status = json!({"type": "retry", "attempt": attempt, "message": "could not find the host", "next": NOW + 4_000});
        stage.event("session.status", json!({"sessionID": SESSION, "status": status}));
    }
    stage.shows("attempt 2 in 4s");
    let mut answer = assistant(2, Some("error"));
    answer["error"] = json!({"name": "MessageAbortedError", "data": {"message": "aborted"}});
    stage.message(answer);
    idle(&mut stage);
    stage.shows("Attempt 1 failed: could not find the host");
    stage.shows("Attempt 2 failed: could not find the host");
    stage.shows("interrupted");
}

#[test]
fn a_finished_command_shows_its_last_lines_and_its_exit_code() {
    let mut stage = Stage::in_session(80, 40);
    stage.message(user(1));
    stage.message(assistant(2, Some("stop")));
    let output: String = (1..=15).map(|line| format!("line {line}\n")).collect();
    stage.part(part(
        2,
        1,
        tool("bash", json!({"command": "seq"}), &output, json!({"output": output, "exit": 2})),
    ));
    stage.shows("… the last 10 of 15 lines");
    stage.shows("line 15");
    stage.hides("line 5\n");
    stage.shows("exit code 2");
}

#[test]
fn a_subagent_shows_its_current_call_and_opens_in_place() {
    let mut stage = Stage::in_session(100, 30);
    let mut child = session(CHILD, Some(SESSION));
    child["tokens"] =
        json!({"input": 12_000, "output": 300, "reasoning": 0, "cache": {"read": 0, "write": 0}});
    stage.event("session.created", json!({"sessionID": CHILD, "info": child}));
    stage.message(user(1));
    busy(&mut stage);
    stage.message(assistant(2, None));
    let running = json!({"type": "tool", "callID": "c", "tool": "task", "state": {
        "status": "running", "input": {"description": "Sub work", "subagent_type": "explore", "prompt": "p"},
        "metadata": {"sessionId": CHILD}, "time": {"start": NOW},
    }});
    stage.part(part(2, 2, running));
    for (nth, pattern) in [(70, "first"), (71, "second")] {
        let mut call = part(2, nth, tool("grep", json!({"pattern": pattern}), "", json!({})));
        call["sessionID"] = json!(CHILD);
        stage.part(call);
    }
    stage.now += 12_000;
    stage.msg(Msg::Tick);
    stage.shows("↳ 12s · 2 calls · 12.3K tokens · grep second");
    stage.hides("ctrl+x down");
    let screen = stage.screen();
    let row = screen.lines().position(|line| line.contains("↳")).unwrap();
    stage.take_cmds();
    stage.click(8, u16::try_from(row).unwrap());
    assert_eq!(stage.take_cmds(), [Cmd::LoadMessages(id(CHILD))]);
    assert_eq!(stage.state.route, Route::Session(id(SESSION)));
    stage.shows("grep first");
    stage.shows("ctrl+x down opens the subagent");
}

#[test]
fn the_provider_says_what_it_thinks_of_a_new_key() {
    for (check, said, offers) in [
        (json!({"status": "accepted", "message": null}), "accepts the key", true),
        (json!({"status": "refused", "message": "401 Unauthorized"}), "refuses the key: 401", false),
        (json!({"status": "unreachable", "message": "no route"}), "was not reached: no route", true),
        (json!({"status": "unchecked", "message": "it has no list"}), "the provider is connected", true),
        (Value::Null, "the provider is connected", true),
    ] {
        let mut stage = Stage::started(120, 30);
        stage.reply(Reply::Connected { provider: "mock".to_owned(), providers: providers(), check });
        stage.shows(said);
        assert_eq!(stage.screen().contains("Select model"), offers, "{said}");
    }
}

#[test]
fn slash_commands_take_names_and_unique_parts_of_them() {
    let model = |name: &str| Some(("mock".to_owned(), name.to_owned()));
    for (typed, chosen) in [
        ("/model quick", model("quick")),
        ("/model mock/quick", model("quick")),
        ("/models QUI", model("quick")),
        ("/model lai", Some(("other".to_owned(), "plain".to_owned()))),
    ] {
        let mut stage = Stage::in_session(120, 40);
        stage.write(typed);
        stage.press(KeyCode::Enter);
        assert_eq!(stage.state.model(), chosen, "{typed}");
        assert!(stage.state.layers.is_empty() && stage.state.prompt.is_empty(), "{typed}");
        // Nothing was sent to the model.
        assert!(!stage.take_cmds().iter().any(|cmd| matches!(cmd, Cmd::Send { .. })), "{typed}");
    }
    let mut stage = Stage::in_session(120, 40);
    stage.write("/agent pla");
    stage.press(KeyCode::Enter);
    assert_eq!(stage.state.agent().unwrap().name, "plan");
    stage.write("/theme nor");
    stage.press(KeyCode::Enter);
    assert_eq!(stage.state.theme_name, "nord");
    stage.take_cmds();
    stage.write("/rename A better title");
    stage.press(KeyCode::Enter);
    assert_eq!(stage.take_cmds(), [Cmd::Rename { session: id(SESSION), title: "A better title".to_owned() }]);
}

#[test]
fn a_name_that_fits_nothing_is_an_error_and_one_that_fits_several_a_list() {
    for (typed, said) in [
        ("/model quik", "nothing is named `quik`: did you mean `quick`?"),
        ("/agent pln", "nothing is named `pln`: did you mean `plan`?"),
        ("/theme nrd", "nothing is named `nrd`: did you mean `nord`?"),
        ("/model zzzzzzzz", "nothing is named `zzzzzzzz`"),
    ] {
        let mut stage = Stage::in_session(120, 40);
        let theme = stage.state.theme_name.clone();
        stage.write(typed);
        stage.press(KeyCode::Enter);
        stage.shows(said);
        // The text stays, to be corrected.
        assert_eq!(stage.state.prompt.editor.text(), typed);
        assert!(stage.state.layers.is_empty() && stage.state.theme_name == theme, "{typed}");
        assert_eq!(stage.take_cmds(), [], "{typed}");
    }
    let mut stage = Stage::in_session(120, 40);
    stage.write("/model i");
    stage.press(KeyCode::Enter);
    stage.shows("Select model");
    let Some(crate::layer::Layer::List(list)) = stage.state.layers.last() else { panic!("no list") };
    assert_eq!((list.found.len(), list.query.text()), (2, "i"));
}

#[test]
fn the_built_in_review_gives_way_to_a_command_of_the_user() {
    let with = |command: Value| {
        let mut stage = Stage::in_session(120, 40);
        stage.state.mirror.put_commands(serde_json::from_value(json!([command])).unwrap());
        stage
    };
    let mut own = with(json!({"name": "review", "source": "command"}));
    own.write("/review main");
    own.press(KeyCode::Enter);
    assert!(matches!(&own.take_cmds()[0], Cmd::Command { .. }));
    let mut native = with(json!({"name": "review", "source": "command", "native": true}));
    for (typed, expected) in [("/review", None), ("/review main...HEAD", Some("main...HEAD".to_owned()))] {
        native.write(typed);
        native.press(KeyCode::Enter);
        let begin = Cmd::BeginReview {
            range: expected,
            model: ("mock".to_owned(), "clever".to_owned()),
            variant: None,
        };
        assert_eq!(native.take_cmds(), [begin]);
    }
}

/// A finding of the tests.
fn finding(title: &str, severity: &str, patch: Option<&str>) -> Value {
    json!({
        "file": "src/a.rs", "line": 7, "severity": severity, "title": title, "description": "It overflows.",
        "suggestion": "Use `checked_add`.", "patch": patch,
    })
}

#[test]
fn findings_are_applied_and_dismissed_one_by_one() {
    let mut stage = Stage::in_session(120, 40);
    stage.reply(Reply::ReviewBegun(Box::new(serde_json::from_value(session(SESSION, None)).unwrap())));
    stage.event("session.idle", json!({"sessionID": SESSION}));
    assert!(stage.take_cmds().contains(&Cmd::LoadFindings(id(SESSION))));
    let patch = "--- a/src/a.rs\n+++ b/src/a.rs\n@@ -7,1 +7,1 @@\n-a + b\n+a.checked_add(b)\n";
    let findings = json!({"summary": "s", "findings": [
        finding("Sum overflows", "high", Some(patch)), finding("Name is odd", "low", None), finding("Third", "low", None),
    ]});
    let review = || serde_json::from_value(findings.clone()).unwrap();
    stage.reply(Reply::Findings { session: id(SESSION), review: Ok(review()) });
    for text in
        ["Findings of the review", "high", "Sum overflows", "src/a.rs:7", "has a change", "apply ctrl+a"]
    {
        stage.shows(text);
    }
    stage.press(KeyCode::Enter);
    for text in ["high: Sum overflows", "It overflows.", "a.checked_add(b)", "apply the change"] {
        stage.shows(text);
    }
    stage.write("a");
    let key = "src/a.rs Sum overflows".to_owned();
    assert_eq!(stage.take_cmds(), [Cmd::ApplyFinding { session: id(SESSION), key: key.clone() }]);
    stage.reply(Reply::FindingApplied { key: key.clone(), result: Err("not clean".to_owned()) });
    stage.shows("the change does not apply");
    stage.shows("has a change");
    stage.reply(Reply::FindingApplied { key, result: Ok(()) });
    stage.hides("has a change");
    stage.press(KeyCode::Down);
    stage.control('d');
    stage.hides("Name is odd");
    let key = "src/a.rs Name is odd".to_owned();
    assert_eq!(stage.take_cmds(), [Cmd::KeepDismissed { session: id(SESSION), key }]);
    // A suggestion in words becomes a prompt, which the user sends.
    stage.control('a');
    stage.hides("Findings of the review");
    assert!(stage.state.prompt.editor.text().contains("src/a.rs:7: Third"));
    assert_eq!(stage.take_cmds(), []);
    // What was dismissed stays so.
    stage.state.route = Route::Session(id(SESSION));
    stage.reply(Reply::Findings { session: id(SESSION), review: Ok(review()) });
    stage.hides("Name is odd");
    stage.shows("Third");
    // The next start of the client knows it too.
    let dismissed = stage.state.dismissed.clone();
    let mut next = Stage::in_session(120, 40);
    next.state.dismissed = dismissed;
    next.reply(Reply::Findings { session: id(SESSION), review: Ok(review()) });
    next.hides("Name is odd");
    next.shows("Third");
}

#[test]
fn a_report_of_a_bug_is_written_and_says_what_to_do() {
    let mut stage = Stage::started(120, 40);
    stage.write("/bug");
    stage.press(KeyCode::Enter);
    assert_eq!(stage.take_cmds(), [Cmd::WriteBugReport]);
    stage.shows("writing the report");
    let advice = "Read it before\nyou share it.".to_owned();
    stage.reply(Reply::BugReported(Ok(("/home/me/project/codewright-bug-1.md".to_owned(), advice))));
    stage.shows("The report is in /home/me/project/codewright-bug-1.md.");
    stage.shows("Read it before you share it.");
    stage.reply(Reply::BugReported(Err("cannot create `x`".to_owned())));
    stage.shows("cannot create `x`");
}

#[test]
fn without_an_editor_the_transcript_is_written_into_a_file() {
    for (typed, name) in [("/export", format!("{SESSION}.md")), ("/export notes.md", "notes.md".to_owned())] {
        let mut stage = Stage::in_session(120, 40);
        stage.write(typed);
        stage.press(KeyCode::Enter);
        let cmds = stage.take_cmds();
        assert!(matches!(&cmds[..], [Cmd::WriteNew { name: written, .. }] if *written == name), "{cmds:?}");
    }
}

#[test]
fn titles_are_for_people() {
    for (title, expected) in [
        ("New session - 2026-11-27T10:31:40.508Z", "New session"),
        ("Child session - 2026-11-27T10:31:40.508Z", "Child session"),
        ("New session - a plan", "New session - a plan"),
        ("Fix the adder", "Fix the adder"),
    ] {
        assert_eq!(crate::mirror::readable_title(title), expected);
    }
}

#[test]
fn the_built_in_skill_of_another_name_runs_but_is_not_in_menus() {
    let mut stage = Stage::in_session(120, 60);
    let skill =
        json!([{"name": "customize-opencode", "source": "skill"}, {"name": "sail", "source": "skill"}]);
    stage.state.mirror.put_commands(serde_json::from_value(skill).unwrap());
    stage.write("/cust");
    stage.hides("customize-opencode");
    stage.state.prompt.clear();
    stage.state.prompt.completion = None;
    stage.control('p');
    let Some(crate::layer::Layer::List(list)) = stage.state.layers.last() else { panic!("no palette") };
    let labels: Vec<&str> = list.items.iter().map(|item| item.label.as_str()).collect();
    assert!(labels.contains(&"/sail") && !labels.contains(&"/customize-opencode"), "{labels:?}");
    stage.press(KeyCode::Esc);
    stage.state.prompt.editor.set("/customize-opencode");
    stage.press(KeyCode::Enter);
    assert!(matches!(&stage.take_cmds()[0], Cmd::Command { .. }));
}
