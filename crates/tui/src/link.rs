//! Links in the transcript: URLs, and references to files with a line and a column.
//!
//! A reference is marked before its text is wrapped, and found again in the rows of the screen. Its target
//! is its own text, so a text cannot link to another place than it shows. The marks are modifiers that
//! terminals do not display; they are removed before anything is drawn.

use std::ops::Range;

use ratatui::buffer::Buffer;
use ratatui::style::Modifier;
use ratatui::text::Span;
use unicode_segmentation::UnicodeSegmentation as _;

use crate::transcript::Row;
use crate::{bidi, wrap};

mod output;
mod reference;
mod roots;

pub(crate) use output::{Cells, Linked, place};
pub(crate) use reference::{FileReference, Reference};
pub(crate) use roots::{Roots, Targets};

/// Marks the text of a link.
const INSIDE: Modifier = Modifier::SLOW_BLINK;
/// Marks the first grapheme of a link.
const START: Modifier = Modifier::RAPID_BLINK;
/// Marks the last grapheme of a link.
const END: Modifier = Modifier::HIDDEN;
/// All marks.
const MARKS: Modifier = INSIDE.union(START).union(END);
/// The maximum number of links in a text that is wrapped at once.
const MAX_LINKS: usize = 64;

/// A link on the screen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Link {
    pub(crate) reference: Reference,
    /// The pieces of the link, one for each row.
    pub(crate) pieces: Vec<Piece>,
}

/// The part of a link in a row of the transcript.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) row: u16,
    pub(crate) columns: Range<u16>,
    pub(crate) text: String,
}

/// Marks the references in a text.
pub(crate) fn mark<'a>(spans: &[Span<'a>]) -> Vec<Span<'a>> {
    mark_fitting(spans, usize::MAX)
}

/// Marks the references in a text that fit into a width.
pub(crate) fn mark_fitting<'a>(spans: &[Span<'a>], width: usize) -> Vec<Span<'a>> {
    let mut marked = Vec::with_capacity(spans.len());
    let mut count = 0;
    for span in spans {
        let found = if bidi::is_needed(&span.content) { Vec::new() } else { reference::find(&span.content) };
        let mut at = 0;
        for range in found {
            let text = &span.content[range.clone()];
            if count >= MAX_LINKS || wrap::width(text) > width {
                continue;
            }
            count += 1;
            push(&mut marked, span, at..range.start, Modifier::empty());
            at = range.end;
            let first = text.graphemes(true).next().map_or(0, str::len);
            let last = text.grapheme_indices(true).next_back().map_or(0, |(at, _)| at);
            if last == 0 {
                push(&mut marked, span, range, MARKS);
                continue;
            }
            let (first, last) = (range.start + first, range.start + last);
            push(&mut marked, span, range.start..first, INSIDE.union(START));
            push(&mut marked, span, first..last, INSIDE);
            push(&mut marked, span, last..range.end, INSIDE.union(END));
        }
        push(&mut marked, span, at..span.content.len(), Modifier::empty());
    }
    marked
}

/// Adds a part of a span with marks, unless it is empty.
fn push<'a>(marked: &mut Vec<Span<'a>>, span: &Span<'a>, range: Range<usize>, marks: Modifier) {
    if !range.is_empty() {
        let text = span.content[range].to_owned();
        marked.push(Span::styled(text, span.style.add_modifier(marks)));
    }
}

/// Removes the marks from a row of the screen.
pub(crate) fn unmark(buffer: &mut Buffer, row: u16, columns: Range<u16>) {
    for x in columns {
        if let Some(cell) = buffer.cell_mut((x, row)) {
            cell.modifier.remove(MARKS);
        }
    }
}

/// A link whose end was not reached yet.
struct Open<'a> {
    row: &'a Row,
    pieces: Vec<Piece>,
}

/// Returns the links in the rows of the screen.
///
/// A link that is not completely on the screen is left out, because its target would be incomplete.
pub(crate) fn collect(rows: &[Row]) -> Vec<Link> {
    let mut links = Vec::new();
    let mut open: Option<Open<'_>> = None;
    for (y, row) in (0_u16..).zip(rows) {
        let is_turned = row.line.spans.iter().any(|span| bidi::is_needed(&span.content));
        // A link continues only in the next row of the same block.
        open = open.filter(|open| !is_turned && open.row.place == row.place);
        if is_turned {
            continue;
        }
        let mut x = 0_u16;
        for span in &row.line.spans {
            let width = u16::try_from(wrap::width(&span.content)).unwrap_or(u16::MAX);
            let columns = x..x.saturating_add(width);
            x = columns.end;
            let marks = span.style.add_modifier;
            if !marks.contains(INSIDE) {
                continue;
            }
            if marks.contains(START) {
                open = Some(Open { row, pieces: Vec::new() });
            }
            let Some(link) = &mut open else { continue };
            extend(&mut link.pieces, Piece { row: y, columns, text: span.content.clone().into_owned() });
            if marks.contains(END) {
                links.extend(open.take().and_then(|open| finish(open.pieces)));
            }
        }
        open = open.filter(|open| open.pieces.last().is_some_and(|piece| piece.row == y));
    }
    links
}

/// Adds a piece to the pieces of a link, or extends the last one.
fn extend(pieces: &mut Vec<Piece>, piece: Piece) {
    match pieces.last_mut() {
        Some(last) if last.row == piece.row && last.columns.end == piece.columns.start => {
            last.columns.end = piece.columns.end;
            last.text.push_str(&piece.text);
        }
        Some(_) | None => pieces.push(piece),
    }
}

/// Returns a complete link. Its pieces must be in different rows, and their text a single reference.
fn finish(pieces: Vec<Piece>) -> Option<Link> {
    if pieces.windows(2).any(|pair| pair[0].row == pair[1].row) {
        return None;
    }
    let text: String = pieces.iter().map(|piece| piece.text.as_str()).collect();
    let is_whole = reference::find(&text).first() == Some(&(0..text.len()));
    let reference = Reference::parse(&text).filter(|_| is_whole)?;
    Some(Link { reference, pieces })
}

/// Returns the reference at a position of the transcript.
pub(crate) fn at(links: &[Link], column: u16, row: u16) -> Option<&Reference> {
    let is_hit = |piece: &Piece| piece.row == row && piece.columns.contains(&column);
    links.iter().find(|link| link.pieces.iter().any(is_hit)).map(|link| &link.reference)
}

#[cfg(test)]
mod tests {
    use ratatui::text::Line;

    use super::*;
    use crate::transcript::Place;

    fn rows(lines: Vec<Line<'static>>) -> Vec<Row> {
        let place = Place { entry: 0, part: 0, block: 0 };
        (0..).zip(lines).map(|(at, line)| Row { place, at, line }).collect()
    }

    /// A row, and columns in it.
    type Columns = (u16, Range<u16>);

    #[track_caller]
    fn check(text: &str, width: usize, expected: &[(&str, &[Columns])]) {
        let rows = rows(wrap::words(&mark(&[Span::raw(text.to_owned())]), width));
        let links = collect(&rows);
        let found: Vec<(String, Vec<Columns>)> = links
            .iter()
            .map(|link| {
                let text: String = link.pieces.iter().map(|piece| piece.text.as_str()).collect();
                (text, link.pieces.iter().map(|piece| (piece.row, piece.columns.clone())).collect())
            })
            .collect();
        let expected: Vec<_> =
            expected.iter().map(|(text, pieces)| ((*text).to_owned(), pieces.to_vec())).collect();
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn a_link_is_found_after_its_text_was_wrapped() {
        check("see src/a.rs:3, ok", 80, &[("src/a.rs:3", &[(0, 4..14)])]);
        check("a src/a.rs:3 b", 10, &[("src/a.rs:3", &[(1, 0..10)])]);
        let long = "https://example.com/0123456789";
        check(long, 20, &[(long, &[(0, 0..20), (1, 0..10)])]);
        check(
            &format!("{long} src/a.rs"),
            20,
            &[(long, &[(0, 0..20), (1, 0..10)]), ("src/a.rs", &[(1, 11..19)])],
        );
        // Right-to-left text is reordered, so the text of a link could be another one.
        check("https://example.com/א", 80, &[]);
        check("\u{5d0} https://example.com/a \u{5d1}", 80, &[]);
    }

    #[test]
    fn a_link_that_is_cut_at_the_edge_of_the_screen_is_no_link() {
        let lines = wrap::words(&mark(&[Span::raw("https://example.com/0123456789".to_owned())]), 20);
        assert_eq!(collect(&rows(lines[..1].to_vec())), []);
        assert_eq!(collect(&rows(lines[1..].to_vec())), []);
        // The end of one link never completes another.
        let other = wrap::words(&mark(&[Span::raw("https://evil.example/9876543210".to_owned())]), 20);
        let mut mixed = rows(vec![lines[0].clone(), other[1].clone()]);
        mixed[1].place.block = 1;
        assert_eq!(collect(&mixed), []);
    }
}
