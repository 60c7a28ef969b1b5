//! The part of a transcript that is on the screen.

use std::rc::Rc;

use ratatui::text::Line;

use super::{MAX_RENDERED, Place, Row, Transcript};
use crate::scroll::{self, Edge, Position, RenderedBlock, Scrollable};

/// The part of the transcript that is on the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scroll {
    /// The end, also when more is added.
    End,
    /// From this position on.
    At(Position<Place>),
}

/// Renders the blocks of a transcript.
pub(crate) trait Draw {
    /// Returns the number of blocks of a part. The part after the last one is the end of the message.
    fn blocks(&self, transcript: &Transcript, entry: usize, part: usize) -> usize;
    /// Returns the lines of a block.
    fn lines(&self, transcript: &Transcript, place: Place) -> Vec<Line<'static>>;
    /// Returns a number that changes whenever the lines change, or `None` if they change over time and must not
    /// be cached.
    fn stamp(&self, transcript: &Transcript, place: Place) -> Option<u64>;
    /// Whether a block follows the block before it without a blank line.
    fn joins(&self, transcript: &Transcript, before: Place, place: Place) -> bool;
}

/// An occurrence of a text in a part, counted from the start of the part.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sought {
    pub(crate) place: Place,
    pub(crate) nth: usize,
}

/// A transcript as it is view.
struct TranscriptView<'a> {
    transcript: &'a Transcript,
    draw: &'a dyn Draw,
}

impl TranscriptView<'_> {
    /// Returns the first block of an entry, or of the entries after it.
    fn first_from(&self, entry: usize) -> Option<Place> {
        let start = Place { entry, part: 0, block: 0 };
        if entry >= self.transcript.end {
            return None;
        }
        if self.draw.blocks(self.transcript, entry, 0) > 0 { Some(start) } else { self.next(start) }
    }

    /// Returns the position of the first row on a screen of a height.
    fn top(&self, height: usize) -> Option<Position<Place>> {
        match self.transcript.scroll {
            Scroll::At(position) => Some(position),
            Scroll::End => scroll::last_page(self, height),
        }
    }

    fn lines(&self, place: Place) -> Rc<Vec<Line<'static>>> {
        let Self { transcript, draw } = self;
        let Some(stamp) = draw.stamp(transcript, place) else {
            return Rc::new(draw.lines(transcript, place));
        };
        let key = (transcript.entries[place.entry].info.id().clone(), place.part, place.block);
        if let Some((cached, lines)) = transcript.rendered.borrow().get(&key)
            && *cached == stamp
        {
            return Rc::clone(lines);
        }
        let lines = Rc::new(draw.lines(transcript, place));
        let mut rendered = transcript.rendered.borrow_mut();
        if rendered.len() >= MAX_RENDERED {
            rendered.clear();
        }
        rendered.insert(key, (stamp, Rc::clone(&lines)));
        lines
    }
}

impl Scrollable for TranscriptView<'_> {
    type Place = Place;

    fn next(&self, mut place: Place) -> Option<Place> {
        let Self { transcript, draw } = self;
        place.block += 1;
        while place.entry < transcript.end {
            while place.part <= transcript.entries[place.entry].parts.len() {
                if place.block < draw.blocks(transcript, place.entry, place.part) {
                    return Some(place);
                }
                place.part += 1;
                place.block = 0;
            }
            place = Place { entry: place.entry + 1, part: 0, block: 0 };
        }
        None
    }

    fn previous(&self, mut place: Place) -> Option<Place> {
        let Self { transcript, draw } = self;
        loop {
            if place.block > 0 {
                place.block -= 1;
                return Some(place);
            }
            if place.part > 0 {
                place.part -= 1;
            } else if place.entry > 0 {
                place.entry -= 1;
                place.part = transcript.entries[place.entry].parts.len();
            } else {
                return None;
            }
            place.block = draw.blocks(transcript, place.entry, place.part);
        }
    }

    fn last(&self) -> Option<Place> {
        self.previous(Place { entry: self.transcript.end, part: 0, block: 0 })
    }

    fn block(&self, place: Place) -> RenderedBlock {
        let lines = self.lines(place);
        let before = self.previous(place);
        let joins = |before| self.draw.joins(self.transcript, before, place);
        let gap = !lines.is_empty() && before.is_some_and(|before| !joins(before));
        RenderedBlock { gap, lines }
    }
}

impl Transcript {
    fn view<'a>(&'a self, draw: &'a dyn Draw) -> TranscriptView<'a> {
        TranscriptView { transcript: self, draw }
    }

    /// Returns the rows of a screen of a height. Scrolling beyond the end is corrected.
    pub(crate) fn rows(&mut self, draw: &dyn Draw, height: usize) -> Vec<Row> {
        if let Scroll::At(position) = self.scroll {
            let rows = match position.place.entry < self.end {
                true => scroll::rows_from(&self.view(draw), position, height),
                false => Vec::new(),
            };
            if rows.len() >= height {
                return rows;
            }
            self.scroll = Scroll::End;
        }
        scroll::last_rows(&self.view(draw), height)
    }

    /// Scrolls by a number of lines. Returns whether the start was reached.
    pub(crate) fn scroll_by(&mut self, draw: &dyn Draw, lines: isize, height: usize) -> bool {
        let view = self.view(draw);
        let Some(top) = view.top(height) else { return true };
        if lines >= 0 && self.scroll == Scroll::End {
            return false;
        }
        let (position, edge) = scroll::move_by(&view, top, lines);
        self.scroll = if edge == Some(Edge::End) { Scroll::End } else { Scroll::At(position) };
        edge == Some(Edge::Start)
    }

    /// Scrolls an entry to the top.
    pub(crate) fn scroll_to(&mut self, draw: &dyn Draw, entry: usize) {
        if let Some(place) = self.view(draw).first_from(entry) {
            self.scroll = Scroll::At(Position { place, line: 0 });
        }
    }

    /// Returns the lines from a position to another one, at most `limit`.
    pub(crate) fn lines_between(
        &self,
        draw: &dyn Draw,
        from: Position<Place>,
        to: Position<Place>,
        limit: usize,
    ) -> Vec<Line<'static>> {
        scroll::lines_between(&self.view(draw), from, to, limit)
    }

    /// Scrolls so that an occurrence of a text in a part is on the screen. `count` returns the number of occurrences in
    /// a row. If the rows differ from the text, the part itself is on the screen.
    pub(crate) fn seek(
        &mut self,
        draw: &dyn Draw,
        sought: Sought,
        height: usize,
        count: &dyn Fn(&str) -> usize,
    ) {
        let Sought { place, nth } = sought;
        let view = self.view(draw);
        let (mut found, mut before) = (None, 0);
        for block in 0..draw.blocks(self, place.entry, place.part) {
            let place = Place { block, ..place };
            let rendered = view.block(place);
            for line in 0..rendered.len() {
                let here = count(&rendered.line(line).to_string());
                if here > 0 && before <= nth {
                    found = Some(Position { place, line });
                }
                before += here;
            }
        }
        let start = Position { place, line: 0 };
        let exists = draw.blocks(self, place.entry, place.part) > 0;
        let Some(target) = found.or(exists.then_some(start)) else { return };
        let above = isize::try_from(height / 3).unwrap_or(0);
        let (position, _) = scroll::move_by(&view, target, -above);
        self.scroll = Scroll::At(position);
    }

    /// Returns the entry that the first row of the screen belongs to.
    pub(crate) fn top_entry(&self, draw: &dyn Draw, height: usize) -> usize {
        self.view(draw).top(height).map_or(0, |position| position.place.entry)
    }
}
