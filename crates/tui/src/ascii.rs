//! ASCII replacements for characters, for terminals that can display only ASCII.

use std::borrow::Cow;

use ratatui::buffer::Buffer;
use unicode_segmentation::UnicodeSegmentation as _;

use crate::wrap;

/// Returns the ASCII character that looks most like a symbol, or a question mark.
fn replacement(symbol: &str) -> &'static str {
    match symbol {
        "─" | "━" | "▀" | "▄" | "–" | "—" | "‐" => "-",
        "│" | "┃" | "╹" | "▌" | "▐" => "|",
        "┌" | "┐" | "└" | "┘" | "├" | "┤" | "┬" | "┴" | "┼" | "╭" | "╮" | "╯" | "╰" => {
            "+"
        }
        "█" | "▣" => "#",
        "•" | "●" | "✱" | "◆" | "⚙" | "◈" | "■" => "*",
        "○" | "□" | "◦" => "o",
        "…" => ".",
        "→" | "›" | "▸" | "↳" | "⇆" => ">",
        "←" | "‹" => "<",
        "↑" => "^",
        "↓" | "▾" | "▼" | "✓" => "v",
        "✗" | "×" | "☰" => "x",
        "△" => "!",
        "·" | "⋮" => ":",
        "“" | "”" | "„" | "«" | "»" => "\"",
        "‘" | "’" => "'",
        "⠋" | "⠸" | "⠦" => "|",
        "⠙" | "⠼" | "⠧" => "/",
        "⠹" | "⠴" | "⠇" => "-",
        "⠏" => "\\",
        "\u{a0}" => " ",
        _ => "?",
    }
}

/// Replaces the characters of a text. The width does not change.
pub(crate) fn text(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return text.into();
    }
    let mut drawn = String::with_capacity(text.len());
    for grapheme in text.graphemes(true) {
        if grapheme.is_ascii() {
            drawn.push_str(grapheme);
        } else {
            drawn.push_str(&replacement(grapheme).repeat(wrap::width(grapheme)));
        }
    }
    drawn.into()
}

/// Replaces the characters of a screen.
pub(crate) fn screen(buffer: &mut Buffer) {
    let mut covered = 0;
    for cell in &mut buffer.content {
        if covered > 0 {
            // The cell belongs to the wide character before it.
            covered -= 1;
            cell.set_symbol("?");
        } else if !cell.symbol().is_ascii() {
            covered = wrap::width(cell.symbol()).saturating_sub(1);
            let replacement = replacement(cell.symbol());
            cell.set_symbol(replacement);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cell_keeps_its_place() {
        for (letters, expected) in [
            ("┃ ▣  Build · x", "| #  Build : x"),
            ("… ä 漢字 👩‍👩‍👧!", ". ? ???? ??!"),
            ("e\u{301}x", "?x"),
            ("plain", "plain"),
        ] {
            assert_eq!(text(letters), expected);
            assert_eq!(wrap::width(&text(letters)), wrap::width(letters));
        }
    }
}
