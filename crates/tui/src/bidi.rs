//! Converts right-to-left text to visual order, the order of a terminal's cells.
//!
//! Some terminals reorder whole lines themselves. This is switched off (`ESC [ 8 l`), because it would also
//! reorder borders and columns. Instead, each text is reordered here, after it was wrapped and before
//! anything is put next to it.

use std::borrow::Cow;
use std::ops::Range;

use ratatui::style::Style;
use ratatui::text::{Line, Span};
use unicode_bidi::{BidiInfo, Level};
use unicode_segmentation::UnicodeSegmentation as _;

use crate::wrap;

/// The base direction of a paragraph.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Base {
    /// Left to right, for code and outputs.
    Left,
    /// The direction of the first letter.
    FirstLetter,
}

/// Whether a text contains right-to-left letters.
pub(crate) fn is_needed(text: &str) -> bool {
    !text.is_ascii() && text.chars().any(is_right_to_left)
}

fn is_right_to_left(c: char) -> bool {
    matches!(c, '\u{590}'..='\u{8ff}' | '\u{fb1d}'..='\u{fdff}' | '\u{fe70}'..='\u{feff}'
        | '\u{10800}'..='\u{10fff}' | '\u{1e800}'..='\u{1efff}')
}

/// Returns the runs of a text in visual order, and whether each is right-to-left.
fn runs(text: &str, level: Option<Level>) -> Vec<(Range<usize>, bool)> {
    let info = BidiInfo::new(text, level);
    let mut pieces = Vec::new();
    for paragraph in &info.paragraphs {
        let (levels, runs) = info.visual_runs(paragraph, paragraph.range.clone());
        for run in runs {
            let turned = levels.get(run.start).is_some_and(Level::is_rtl);
            pieces.push((run, turned));
        }
    }
    pieces
}

fn level(base: Base, paragraph: &str) -> Level {
    let first = || {
        let letter = paragraph.chars().find(|c| c.is_alphabetic());
        letter.is_some_and(is_right_to_left)
    };
    if base == Base::FirstLetter && first() { Level::rtl() } else { Level::ltr() }
}

/// Returns the mirror image of a bracket.
fn mirrored(grapheme: &str) -> &str {
    match grapheme {
        "(" => ")",
        ")" => "(",
        "[" => "]",
        "]" => "[",
        "{" => "}",
        "}" => "{",
        "<" => ">",
        ">" => "<",
        "«" => "»",
        "»" => "«",
        "‹" => "›",
        "›" => "‹",
        other => other,
    }
}

/// Returns a text of one line in visual order.
pub(crate) fn visual_text(text: &str) -> Cow<'_, str> {
    if !is_needed(text) {
        return text.into();
    }
    let mut drawn = String::with_capacity(text.len());
    for (run, turned) in runs(text, Some(level(Base::FirstLetter, text))) {
        if turned {
            text[run].graphemes(true).rev().map(mirrored).for_each(|grapheme| drawn.push_str(grapheme));
        } else {
            drawn.push_str(&text[run]);
        }
    }
    drawn.into()
}

/// Returns the lines of a paragraph in visual order.
pub(crate) fn visual_order(lines: Vec<Line<'static>>, base: Base) -> Vec<Line<'static>> {
    let has_some = lines.iter().flat_map(|line| &line.spans).any(|span| is_needed(&span.content));
    if !has_some {
        return lines;
    }
    let whole: String = lines.iter().flat_map(|line| &line.spans).map(|span| span.content.as_ref()).collect();
    let level = level(base, &whole);
    lines.into_iter().map(|line| visual_line(line, level)).collect()
}

fn visual_line(line: Line<'static>, level: Level) -> Line<'static> {
    let text: String = line.spans.iter().map(|span| span.content.as_ref()).collect();
    let mut ends: Vec<(usize, Style)> = Vec::with_capacity(line.spans.len());
    for span in &line.spans {
        let before = ends.last().map_or(0, |(end, _)| *end);
        ends.push((before + span.content.len(), span.style));
    }
    let style_at = |at: usize| {
        let found = ends.get(ends.partition_point(|(end, _)| *end <= at));
        found.map_or_else(Style::default, |(_, style)| *style)
    };
    let mut spans: Vec<Span<'static>> = Vec::new();
    let mut push = |grapheme: &str, style: Style| match spans.last_mut() {
        Some(last) if last.style == style => last.content.to_mut().push_str(grapheme),
        _ => spans.push(Span::styled(grapheme.to_owned(), style)),
    };
    for (run, turned) in runs(&text, Some(level)) {
        let start = run.start;
        let graphemes = text[run].grapheme_indices(true);
        if turned {
            graphemes.rev().for_each(|(at, grapheme)| push(mirrored(grapheme), style_at(start + at)));
        } else {
            graphemes.for_each(|(at, grapheme)| push(grapheme, style_at(start + at)));
        }
    }
    Line { spans, ..line }
}

/// Returns the column of a cursor that is before a byte of a text.
pub(crate) fn column(text: &str, byte: usize) -> usize {
    if !is_needed(text) {
        return wrap::width(&text[..byte.min(text.len())]);
    }
    let level = level(Base::FirstLetter, text);
    let mut column = 0;
    let mut end = 0;
    for (run, turned) in runs(text, Some(level)) {
        let inside = &text[run.clone()];
        if run.contains(&byte) {
            let before = wrap::width(&inside[..byte - run.start]);
            // In a right-to-left run the next letter appears at the left.
            return column + if turned { wrap::width(inside).saturating_sub(before + 1) } else { before };
        }
        if run.end == byte {
            end = if turned { column } else { column + wrap::width(inside) };
        }
        column += wrap::width(inside);
    }
    if byte >= text.len() && level.is_rtl() { 0 } else { end.max(if byte >= text.len() { end } else { 0 }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_converted_to_visual_order() {
        for (text, drawn) in [
            ("plain ä 漢字", "plain ä 漢字"),
            // Hebrew alone: the last letter is at the left.
            ("שלום", "םולש"),
            ("say שלום now", "say םולש now"),
            // A right-to-left paragraph with a left-to-right word.
            ("שלום world", "world םולש"),
            // Numbers keep their order.
            ("מחיר 123 שח", "חש 123 ריחמ"),
            // Brackets are mirrored.
            ("אב (גד) הו", "וה (דג) בא"),
            ("العربية", "ةيبرعلا"),
            // A mark stays with its letter.
            ("בָּא", "אבָּ"),
            ("א👩‍👩‍👧ב", "ב👩‍👩‍👧א"),
        ] {
            assert_eq!(visual_text(text), drawn, "{text:?}");
            assert_eq!(wrap::width(&visual_text(text)), wrap::width(text), "{text:?}");
        }
    }

    #[test]
    fn letters_keep_their_styles_and_code_is_left_to_right() {
        let bold = Style::new().bold();
        let line = Line::from(vec![Span::raw("אב"), Span::styled("גד", bold), Span::raw(" x")]);
        let text = visual_order(vec![line.clone()], Base::FirstLetter).remove(0);
        assert_eq!(text.spans, [Span::raw("x "), Span::styled("דג", bold), Span::raw("בא")]);
        let code = visual_order(vec![line], Base::Left).remove(0);
        assert_eq!(code.spans, [Span::styled("דג", bold), Span::raw("בא x")]);
    }

    #[test]
    fn the_cursor_is_where_the_next_letter_appears() {
        assert_eq!(column("ab", 1), 1);
        assert_eq!(column("ab", 2), 2);
        assert_eq!(column("שלום", 0), 3);
        assert_eq!(column("שלום", "שלום".len()), 0);
        assert_eq!(column("a שלום", "a ש".len()), 4);
        assert_eq!(column("a שלום b", "a שלום b".len()), 8);
    }

    #[test]
    fn any_text_keeps_its_letters() {
        let mut seed = 7_u64;
        let letters: Vec<char> = "ab12 ()אבגعرب\u{301}\u{5b0}👩‍👧漢-–\n\t".chars().collect();
        for length in 0..400 {
            let text: String = (0..length % 40)
                .map(|_| {
                    seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    letters[(seed >> 33) as usize % letters.len()]
                })
                .collect();
            let sorted = |text: &str| {
                let mut letters: Vec<char> = text.chars().map(|c| if c == ')' { '(' } else { c }).collect();
                letters.sort_unstable();
                letters
            };
            assert_eq!(sorted(&visual_text(&text)), sorted(&text), "{text:?}");
            for (at, _) in text.char_indices() {
                assert!(column(&text, at) <= wrap::width(&text), "{text:?} {at}");
            }
        }
    }
}
