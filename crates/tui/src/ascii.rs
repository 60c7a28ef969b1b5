//! Pictures for terminals that know no letters but ASCII.

use std::borrow::Cow;

use ratatui::buffer::Buffer;
use unicode_segmentation::UnicodeSegmentation as _;

use crate::wrap;

/// The nearest that a cell of ASCII has; a letter that it has not at all is a question mark.
fn picture(symbol: &str) -> &'static str {
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

/// A text, cell by cell.
pub(crate) fn text(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return text.into();
    }
    let mut drawn = String::with_capacity(text.len());
    for grapheme in text.graphemes(true) {
        if grapheme.is_ascii() {
            drawn.push_str(grapheme);
        } else {
            drawn.push_str(&picture(grapheme).repeat(wrap::width(grapheme)));
        }
    }
    drawn.into()
}

/// A whole screen.
pub(crate) fn screen(buffer: &mut Buffer) {
    let mut covered = 0;
    for cell in &mut buffer.content {
        if covered > 0 {
            // The cell belonged to the wide letter before it.
            covered -= 1;
            cell.set_symbol("?");
        } else if !cell.symbol().is_ascii() {
            covered = wrap::width(cell.symbol()).saturating_sub(1);
            let picture = picture(cell.symbol());
            cell.set_symbol(picture);
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
