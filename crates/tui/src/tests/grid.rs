//! Tests with letters of every kind: no text moves a border or a neighbouring column.

use super::*;

const TEXTS: [&str; 14] = [
    "مرحبا بالعالم، هذا نص طويل بما يكفي ليحتاج إلى أكثر من سطر واحد في عمود ضيق من الشاشة",
    "שלום עולם, זהו טקסט ארוך מספיק כדי שיידרשו לו כמה שורות בעמודה צרה של המסך הזה",
    "English with עברית and العربية and 123 ١٢٣ (both) in [one] line",
    "שלום src/main.rs:12 בדוק",
    "emoji 👩‍👩‍👧 👨🏽‍🚀 🏳️‍🌈 🇩🇪 1️⃣ ❤️ done",
    "e\u{301}o\u{308}a\u{323}\u{302} combining z\u{351}\u{34e}\u{33a}algo",
    "漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字",
    "x漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字",
    "ไทยไม่มีช่องว่าง ภาษาไทย",
    "हिन्दी देवनागरी क्षत्रिय",
    "한국어 조합형 \u{1112}\u{1161}\u{11ab}",
    "zero\u{200b}width\u{feff}joiner\u{200d}s\u{2060}here",
    "\u{202e}turned\u{202c} \u{2067}isolated\u{2069} \u{200f}marked\u{61c}",
    "\u{301}begins with a mark",
];

/// Returns a session that contains a text in every place.
fn filled(text: &str, width: u16) -> Stage {
    let mut stage = Stage::in_session(width, 80);
    let mut named = session(SESSION, None);
    named["title"] = json!(text);
    stage.event("session.updated", json!({"sessionID": SESSION, "info": named}));
    let mut prompt = user(1);
    prompt["summary"] = json!({"diffs": [{"file": text, "patch": "", "additions": 1, "deletions": 1}]});
    stage.message(prompt);
    stage.part(part(1, 1, super::text(text)));
    stage.message(assistant(2, Some("stop")));
    let table = format!(
        "{text}\n\n| a | b |\n|---|---|\n| {text} | x |\n\n```rust\nlet x = \"{text}\";\n```\n\n> {text}\n\n- **{text}** `{text}`\n"
    );
    stage.part(part(2, 2, super::text(&table)));
    let patch = format!("@@ -1 +1 @@\n-{text}\n+{text}\n");
    stage.part(part(2, 3, tool("edit", json!({"filePath": text}), "", json!({"diff": patch}))));
    stage.part(part(2, 4, tool("bash", json!({"command": text}), text, json!({"output": text}))));
    let todo = json!([{"content": text, "status": "pending", "priority": "low"}]);
    stage.event("todo.updated", json!({"sessionID": SESSION, "todos": todo}));
    stage.write(text);
    stage
}

#[test]
fn no_text_moves_its_neighbours() {
    for text in TEXTS {
        for width in [140, 141] {
            let mut stage = filled(text, width);
            let panel = stage.state.theme.panel;
            let buffer = stage.buffer();
            let edge = width - 42;
            for y in 0..80 {
                // The sidebar starts at its column, and no text reaches into it.
                assert_eq!(buffer[(edge, y)].bg, panel, "{text:?} {y}");
                assert_eq!(buffer[(edge, y)].symbol(), " ", "{text:?} {y}");
                let before = buffer[(edge - 1, y)].symbol();
                assert!(crate::wrap::width(before) <= 1, "{text:?} {y}: {before:?}");
                // A symbol is never wider than the rest of its row.
                for x in 0..width {
                    let symbol = buffer[(x, y)].symbol();
                    let end = usize::from(x) + crate::wrap::width(symbol);
                    assert!(end <= usize::from(width), "{text:?}: {symbol:?}");
                    assert!(!symbol.chars().any(|c| matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}' | '\u{61c}')), "{text:?}: {symbol:?}");
                }
            }
            let bars = (0..80).filter(|y| buffer[(2, *y)].symbol() == "┃").count();
            assert!(bars > 6, "{text:?}: {bars}");
        }
    }
}

#[test]
fn a_small_screen_can_display_any_letters() {
    for text in TEXTS {
        for width in [20, 21, 33] {
            let mut stage = filled(text, width);
            stage.screen();
            stage.control('p');
            stage.write(text);
            stage.screen();
        }
    }
}

#[test]
fn right_to_left_text_is_in_visual_order() {
    let mut stage = Stage::in_session(100, 34);
    stage.message(user(1));
    stage.part(part(1, 1, text("תקן את src/add.rs בבקשה (מהר)")));
    stage.message(assistant(2, Some("stop")));
    stage.part(part(2, 2, text("תיקנתי את **הקובץ** `add.rs` בשורה 12.\n\n| קובץ | lines |\n|---|--:|\n| add.rs | 1 |\n\nEnglish with עברית inside.")));
    stage.part(part(2, 3, tool("read", json!({"filePath": "/home/me/project/שלום.txt"}), "", json!({}))));
    stage.write("שלום");
    stage.check("right-to-left");
    let bottom = stage.state.screen.layout.bottom;
    let (x, _) = stage.state.screen.bottom.cursor.unwrap();
    assert_eq!((bottom.x + x, stage.state.prompt.editor.cursor()), (5, 8));
}

#[test]
fn direction_marks_in_a_command_are_visible_before_it_is_allowed() {
    let mut stage = Stage::in_session(80, 20);
    stage.event(
        "permission.asked",
        json!({
            "id": "per_000000000001aaaaaaaaaaaaaa", "sessionID": SESSION, "permission": "bash", "always": [],
            "patterns": ["rm *"], "metadata": {"command": "rm \u{202e}txt.tset\u{202c} x\u{2066}"},
        }),
    );
    stage.shows("$ rm ‹U+202E›txt.tset‹U+202C› x‹U+2066›");
}

#[test]
fn wrapped_right_to_left_words_are_reordered_once() {
    let mut stage = Stage::in_session(80, 20);
    let input = json!({"greeting": "שלום"});
    stage.message(user(1));
    stage.message(assistant(2, Some("stop")));
    stage.part(part(2, 2, tool("greet", input.clone(), "", json!({}))));
    stage.shows("greeting=םולש");
    stage.event(
        "permission.asked",
        json!({
            "id": "per_000000000001aaaaaaaaaaaaaa", "sessionID": SESSION, "permission": "greet", "always": [],
            "patterns": [], "metadata": input,
        }),
    );
    stage.shows("greeting: םולש");
}
