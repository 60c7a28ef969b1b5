//! Scrolling through a sequence of blocks of different heights.
//!
//! Everything is found by walking from a place to its neighbours. A frame costs as much as the rows of the
//! screen, however long the sequence is.

use std::rc::Rc;

use ratatui::text::Line;

/// A sequence of blocks that can be scrolled.
pub(crate) trait Scrollable {
    /// Identifies a block.
    type Place: Copy;

    /// Returns the block after a place.
    fn next(&self, place: Self::Place) -> Option<Self::Place>;
    /// Returns the block before a place.
    fn previous(&self, place: Self::Place) -> Option<Self::Place>;
    /// Returns the last block.
    fn last(&self) -> Option<Self::Place>;
    /// Renders a block.
    fn block(&self, place: Self::Place) -> RenderedBlock;
}

/// A rendered block.
pub(crate) struct RenderedBlock {
    /// Whether a blank line comes before the lines.
    pub(crate) gap: bool,
    pub(crate) lines: Rc<Vec<Line<'static>>>,
}

impl RenderedBlock {
    pub(crate) fn len(&self) -> usize {
        self.lines.len() + usize::from(self.gap)
    }

    pub(crate) fn line(&self, at: usize) -> Line<'static> {
        let at = if self.gap { at.checked_sub(1) } else { Some(at) };
        at.and_then(|at| self.lines.get(at)).cloned().unwrap_or_default()
    }
}

/// A line of a block.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Position<P> {
    pub(crate) place: P,
    pub(crate) line: usize,
}

/// A row of the screen.
#[derive(Debug, Clone)]
pub(crate) struct Row<P> {
    pub(crate) place: P,
    /// The number of the line in the block.
    pub(crate) at: usize,
    pub(crate) line: Line<'static>,
}

/// An end of the sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Edge {
    Start,
    End,
}

/// Returns the rows from a position on, at most `height`.
pub(crate) fn rows_from<S: Scrollable>(
    of: &S,
    from: Position<S::Place>,
    height: usize,
) -> Vec<Row<S::Place>> {
    let mut rows = Vec::with_capacity(height);
    let (mut at, mut skip) = (Some(from.place), from.line);
    while let Some(place) = at {
        let block = of.block(place);
        let count = block.len().saturating_sub(skip).min(height - rows.len());
        rows.extend((skip..skip + count).map(|at| Row { place, at, line: block.line(at) }));
        if rows.len() >= height {
            break;
        }
        skip = 0;
        at = of.next(place);
    }
    rows
}

/// Returns the last rows, at most `height`.
pub(crate) fn last_rows<S: Scrollable>(of: &S, height: usize) -> Vec<Row<S::Place>> {
    let mut rows = Vec::with_capacity(height);
    let mut at = of.last();
    while let Some(place) = at {
        let block = of.block(place);
        let from = block.len().saturating_sub(height - rows.len());
        rows.extend((from..block.len()).rev().map(|at| Row { place, at, line: block.line(at) }));
        if rows.len() >= height {
            break;
        }
        at = of.previous(place);
    }
    rows.reverse();
    rows
}

/// Returns the lines from a position to another one, both included, at most `limit`.
pub(crate) fn lines_between<S: Scrollable>(
    of: &S,
    from: Position<S::Place>,
    to: Position<S::Place>,
    limit: usize,
) -> Vec<Line<'static>>
where
    S::Place: PartialEq,
{
    let mut lines = Vec::new();
    let (mut at, mut skip) = (Some(from.place), from.line);
    while let Some(place) = at {
        let block = of.block(place);
        let end = if place == to.place { (to.line + 1).min(block.len()) } else { block.len() };
        lines.extend((skip..end).take(limit - lines.len()).map(|at| block.line(at)));
        if place == to.place || lines.len() >= limit {
            break;
        }
        skip = 0;
        at = of.next(place);
    }
    lines
}

/// Returns the position from which the last rows fill a screen of a height, or the start if there are fewer.
pub(crate) fn last_page<S: Scrollable>(of: &S, height: usize) -> Option<Position<S::Place>> {
    let (mut left, mut place) = (height, of.last()?);
    loop {
        let count = of.block(place).len();
        if count >= left {
            return Some(Position { place, line: count - left });
        }
        left -= count;
        match of.previous(place) {
            Some(previous) => place = previous,
            None => return Some(Position { place, line: 0 }),
        }
    }
}

/// Returns the position `by` lines after a position, or before it if `by` is negative, and the edge at which
/// the move stopped early.
pub(crate) fn move_by<S: Scrollable>(
    of: &S,
    from: Position<S::Place>,
    by: isize,
) -> (Position<S::Place>, Option<Edge>) {
    let Position { mut place, mut line } = from;
    let mut left = by.unsigned_abs();
    if by < 0 {
        while left > line {
            left -= line;
            let Some(previous) = of.previous(place) else {
                return (Position { place, line: 0 }, Some(Edge::Start));
            };
            place = previous;
            line = of.block(place).len();
        }
        return (Position { place, line: line - left }, None);
    }
    loop {
        let count = of.block(place).len();
        if line + left < count {
            return (Position { place, line: line + left }, None);
        }
        left -= count - line.min(count);
        let Some(next) = of.next(place) else {
            return (Position { place, line }, Some(Edge::End));
        };
        (place, line) = (next, 0);
    }
}
