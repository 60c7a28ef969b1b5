//! The small client: prints the transcript into the terminal's scrollback and redraws only a few lines at
//! the bottom.
//!
//! A block is printed once, when it can no longer change. Until then it is among the lines at the bottom.
//! The terminal is never queried: the bottom lines are located by their number, which is recomputed if
//! the terminal became narrower.

use std::io::{self, Write};

use codewright_proto::{AssistantMessage, Message, MessageId, SessionId};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Line;

use crate::look::Look;
use crate::state::State;
use crate::transcript::{Body, Draw, Entry, Place, Transcript};
use crate::view;

/// The number of printed messages that are remembered, which is more than a fetch returns.
const MAX_PRINTED: usize = 256;

/// A place that stays valid when messages are fetched again.
#[derive(Debug, Clone)]
struct Anchor {
    message: MessageId,
    part: usize,
    block: usize,
}

impl Anchor {
    fn of(transcript: &Transcript, place: Place) -> Option<Self> {
        let message = transcript.entries.get(place.entry)?.info.id().clone();
        Some(Self { message, part: place.part, block: place.block })
    }

    fn place(&self, transcript: &Transcript) -> Option<Place> {
        let entry = transcript.find(&self.message)?;
        Some(Place { entry, part: self.part.min(transcript.entries[entry].parts.len()), block: self.block })
    }
}

/// The state of the small client.
#[derive(Debug, Default)]
pub(crate) struct Mini {
    /// The session that is printed.
    session: Option<SessionId>,
    /// The first block that is not printed, or `None` until the messages are fetched.
    next: Option<Place>,
    /// The last printed block.
    last: Option<Anchor>,
    /// The anchor of `next`, if its message is partly printed.
    partial: Option<Anchor>,
    /// The messages before the message of `next`, newest last.
    printed: Vec<MessageId>,
    greeted: bool,
    /// The widths of the lines at the bottom.
    drawn: Vec<usize>,
    /// The position of the cursor in the lines at the bottom.
    cursor: (usize, usize),
    /// The last output, so that the same output is not written twice.
    written: String,
    width: usize,
}

impl Mini {
    /// Prints the blocks that have become final, and redraws the bottom.
    pub(crate) fn draw(&mut self, state: &mut State, out: &mut impl Write) -> io::Result<()> {
        let printed = self.print_final(state);
        view::mini::arrange(state);
        let live = self.open(state);
        let bottom = view::mini::bottom(state, live);
        let mut text = String::new();
        for line in &printed {
            push(&mut text, line, state.options.ascii);
            text.push_str("\u{1b}[K\r\n");
        }
        let mut below = String::new();
        for (at, line) in bottom.lines.iter().enumerate() {
            below.push_str(if at == 0 { "" } else { "\r\n" });
            push(&mut below, line, state.options.ascii);
        }
        let width = usize::from(state.size.0).max(1);
        let last = bottom.lines.len().saturating_sub(1);
        let (x, y) = bottom.cursor.map_or((0, last), |(x, y)| (usize::from(x), usize::from(y)));
        below.push_str(&up(last - y.min(last)));
        below.push_str(&format!("\r{}", if x > 0 { format!("\u{1b}[{x}C") } else { String::new() }));
        below.push_str(if bottom.cursor.is_some() { "\u{1b}[?25h" } else { "\u{1b}[?25l" });
        if printed.is_empty() && self.written == below && self.width == width {
            return Ok(());
        }
        let erase = self.erase(width);
        write!(out, "\u{1b}[?2026h\u{1b}[?25l{erase}{text}{below}\u{1b}[?2026l")?;
        out.flush()?;
        self.drawn = bottom.lines.iter().map(Line::width).collect();
        self.cursor = (x, y.min(last));
        (self.written, self.width) = (below, width);
        Ok(())
    }

    /// Removes the bottom lines.
    pub(crate) fn leave(&mut self, out: &mut impl Write) -> io::Result<()> {
        let erase = self.erase(self.width);
        self.drawn.clear();
        self.written.clear();
        write!(out, "{erase}\u{1b}[?25h")?;
        out.flush()
    }

    /// Returns the sequence that moves to the first bottom line and clears the screen below it.
    fn erase(&self, width: usize) -> String {
        if self.drawn.is_empty() {
            return "\r\u{1b}[J".to_owned();
        }
        // A terminal that became narrower has wrapped the lines.
        let rows = |line: &usize| line.max(&1).div_ceil(width.max(1));
        let above: usize = self.drawn.iter().take(self.cursor.1).map(rows).sum();
        format!("{}\r\u{1b}[J", up(above + self.cursor.0 / width.max(1)))
    }

    /// Returns the lines that have become final since the last call.
    fn print_final(&mut self, state: &mut State) -> Vec<Line<'static>> {
        let mut lines = Vec::new();
        if !self.greeted {
            self.greeted = true;
            lines.extend(view::mini::greeting(state));
        }
        if self.session.as_ref() != state.session_id() {
            self.session = state.session_id().cloned();
            (self.next, self.last, self.partial) = (None, None, None);
            self.printed.clear();
            if let Some(session) = state.session().filter(|session| !state.is_prompted_here(&session.id)) {
                lines.extend(view::mini::heading(state, session));
            }
        }
        let Some(id) = self.session.clone() else { return lines };
        let limit = match state.options.mini {
            Some(limit) if !state.is_prompted_here(&id) => limit,
            Some(_) | None => usize::MAX,
        };
        let width = room(state);
        let Some(transcript) = state.mirror.transcripts.get(&id).filter(|known| known.loaded) else {
            return lines;
        };
        let look = state.look(width);
        let mut place = match self.next {
            None => Place { entry: transcript.end.saturating_sub(limit), part: 0, block: 0 },
            Some(_) => self.resume_place(transcript).unwrap_or_else(|| {
                if transcript.older.is_some() && !(self.printed.is_empty() && self.partial.is_none()) {
                    lines.extend([Line::default(), view::mini::gap_note(state)]);
                }
                Place { entry: 0, part: 0, block: 0 }
            }),
        };
        if place.entry > transcript.end {
            // Printed lines cannot be removed.
            place = Place { entry: transcript.end, part: 0, block: 0 };
            if state.session().is_some_and(|session| session.revert.is_some()) {
                lines.extend([Line::default(), view::mini::undone_note(state)]);
            }
        }
        let place = self.print(&look, transcript, place, &mut lines);
        self.next = Some(place);
        self.remember(transcript, place);
        lines
    }

    /// Adds the final blocks from a place on to `lines`. Returns the first place that is not final.
    fn print(
        &mut self,
        look: &Look<'_>,
        transcript: &Transcript,
        mut place: Place,
        lines: &mut Vec<Line<'static>>,
    ) -> Place {
        let mut last = self.last.as_ref().and_then(|last| last.place(transcript));
        while let Some(done) = step(look, transcript, place) {
            if done.is_shown {
                let gap = last.is_none_or(|last| !look.joins(transcript, last, place));
                let block = look.lines(transcript, place);
                if gap && !block.is_empty() {
                    lines.push(Line::default());
                }
                lines.extend(block);
                last = Some(place);
                self.last = Anchor::of(transcript, place);
            }
            place = done.next;
        }
        place
    }

    /// Returns the place where printing continues, or `None` if no printed message exists any more.
    ///
    /// Indexes change when messages are fetched again or removed, so the place is located by message ids.
    fn resume_place(&self, transcript: &Transcript) -> Option<Place> {
        let partial = self.partial.as_ref().and_then(|partial| partial.place(transcript));
        partial.or_else(|| {
            let printed = self.printed.iter().rev().find_map(|id| transcript.find(id));
            printed.map(|at| Place { entry: at + 1, part: 0, block: 0 })
        })
    }

    /// Records by message ids where printing continues.
    fn remember(&mut self, transcript: &Transcript, place: Place) {
        let next = Anchor::of(transcript, place).filter(|_| place.entry < transcript.end);
        let printed = self.last.as_ref().map(|last| &last.message);
        self.partial = next.filter(|next| printed == Some(&next.message));
        let before = &transcript.entries[..place.entry];
        if self.printed.last() != before.last().map(|entry| entry.info.id()) {
            let kept = before.iter().skip(before.len().saturating_sub(MAX_PRINTED));
            self.printed = kept.map(|entry| entry.info.id().clone()).collect();
        }
    }

    /// Returns the lines of the blocks that are not final.
    fn open(&self, state: &State) -> Vec<Line<'static>> {
        let (Some(next), Some(id)) = (self.next, &self.session) else { return Vec::new() };
        let Some(transcript) = state.mirror.transcripts.get(id) else { return Vec::new() };
        let look = state.look(room(state));
        let mut lines = Vec::new();
        let mut before = self.last.as_ref().and_then(|last| last.place(transcript));
        for entry in next.entry..transcript.end {
            let parts = transcript.entries[entry].parts.len();
            for part in if entry == next.entry { next.part } else { 0 }..=parts {
                let from = if (entry, part) == (next.entry, next.part) { next.block } else { 0 };
                for block in from..look.blocks(transcript, entry, part) {
                    let place = Place { entry, part, block };
                    let shown = look.lines(transcript, place);
                    if !shown.is_empty() && before.is_none_or(|before| !look.joins(transcript, before, place))
                    {
                        lines.push(Line::default());
                    }
                    lines.extend(shown);
                    before = Some(place);
                }
            }
        }
        lines
    }
}

/// Returns the width of the transcript. Some terminals wrap a line that fills the last column.
fn room(state: &State) -> usize {
    usize::from(state.size.0.saturating_sub(1)).max(10)
}

/// A final place, and the place after it.
struct FinalBlock {
    is_shown: bool,
    next: Place,
}

/// Returns the next place if the content of this place is final. `None` if it can change or is missing.
fn step(look: &Look<'_>, transcript: &Transcript, place: Place) -> Option<FinalBlock> {
    let entry = transcript.entries.get(place.entry).filter(|_| place.entry < transcript.end)?;
    let count = look.blocks(transcript, place.entry, place.part);
    if place.part < entry.parts.len() {
        let all = is_part_done(entry, place.part);
        if place.block < count {
            let text = entry.parts[place.part].text();
            let done = all
                || text.is_some_and(|text| text.blocks.is_done(place.block)) && is_text(entry, place.part);
            return done
                .then_some(FinalBlock { is_shown: true, next: Place { block: place.block + 1, ..place } });
        }
        return all.then_some(FinalBlock {
            is_shown: false,
            next: Place { part: place.part + 1, block: 0, ..place },
        });
    }
    if place.block < count {
        let done = is_entry_done(look, transcript, place.entry, entry);
        return done
            .then_some(FinalBlock { is_shown: true, next: Place { block: place.block + 1, ..place } });
    }
    let done = is_entry_done(look, transcript, place.entry, entry);
    done.then_some(FinalBlock { is_shown: false, next: Place { entry: place.entry + 1, part: 0, block: 0 } })
}

fn is_text(entry: &Entry, part: usize) -> bool {
    matches!(entry.parts[part].body, Body::Text { .. })
}

fn is_part_done(entry: &Entry, part: usize) -> bool {
    let Message::Assistant(info) = &entry.info else { return true };
    if info.time.completed.is_some() {
        return true;
    }
    match &entry.parts[part].body {
        Body::Text { is_complete, .. } => *is_complete,
        Body::Reasoning { time, .. } => time.end.is_some(),
        Body::Tool(tool) => !tool.state.is_open(),
        Body::Other(_) => true,
    }
}

fn is_entry_done(look: &Look<'_>, transcript: &Transcript, at: usize, entry: &Entry) -> bool {
    let followed = at + 1 < transcript.end;
    match &entry.info {
        // Parts arrive after their message. They are complete when the turn has ended or an answer follows.
        Message::User(info) => followed || !look.mirror.is_busy(&info.session_id) && !entry.parts.is_empty(),
        Message::Assistant(info) => followed || is_answer_done(look, info),
    }
}

fn is_answer_done(look: &Look<'_>, info: &AssistantMessage) -> bool {
    let ended = info.time.completed.is_some() || info.error.is_some();
    ended && !look.mirror.is_busy(&info.session_id)
}

fn up(rows: usize) -> String {
    if rows == 0 { String::new() } else { format!("\u{1b}[{rows}A") }
}

/// Appends a line with its escape sequences.
fn push(text: &mut String, line: &Line<'_>, ascii: bool) {
    let mut before = Style::default();
    for span in &line.spans {
        let style = line.style.patch(span.style);
        if style != before {
            text.push_str("\u{1b}[0");
            codes(text, style);
            text.push('m');
            before = style;
        }
        // Texts were cleaned when they were received. This is a second barrier, because there is no screen buffer here.
        let text_only: String = span.content.chars().filter(|c| !c.is_control()).collect();
        if ascii { text.push_str(&crate::ascii::text(&text_only)) } else { text.push_str(&text_only) }
    }
    if before != Style::default() {
        text.push_str("\u{1b}[0m");
    }
}

fn codes(text: &mut String, style: Style) {
    const MODIFIERS: [(Modifier, u8); 6] = [
        (Modifier::BOLD, 1),
        (Modifier::DIM, 2),
        (Modifier::ITALIC, 3),
        (Modifier::UNDERLINED, 4),
        (Modifier::REVERSED, 7),
        (Modifier::CROSSED_OUT, 9),
    ];
    for (modifier, code) in MODIFIERS {
        if style.add_modifier.contains(modifier) {
            text.push_str(&format!(";{code}"));
        }
    }
    for (colour, base) in [(style.fg, 30), (style.bg, 40)] {
        let Some(colour) = colour else { continue };
        text.push_str(&match colour {
            Color::Reset => format!(";{}", base + 9),
            Color::Rgb(red, green, blue) => format!(";{};2;{red};{green};{blue}", base + 8),
            Color::Indexed(nth) => format!(";{};5;{nth}", base + 8),
            Color::Black => format!(";{base}"),
            Color::Red => format!(";{}", base + 1),
            Color::Green => format!(";{}", base + 2),
            Color::Yellow => format!(";{}", base + 3),
            Color::Blue => format!(";{}", base + 4),
            Color::Magenta => format!(";{}", base + 5),
            Color::Cyan => format!(";{}", base + 6),
            Color::Gray => format!(";{}", base + 7),
            Color::DarkGray => format!(";{}", base + 60),
            Color::LightRed => format!(";{}", base + 61),
            Color::LightGreen => format!(";{}", base + 62),
            Color::LightYellow => format!(";{}", base + 63),
            Color::LightBlue => format!(";{}", base + 64),
            Color::LightMagenta => format!(";{}", base + 65),
            Color::LightCyan => format!(";{}", base + 66),
            Color::White => format!(";{}", base + 67),
        });
    }
}

#[cfg(test)]
mod tests {
    use ratatui::text::Span;

    use super::*;

    #[test]
    fn a_line_holds_no_control_sequence_but_its_colours() {
        for ascii in [false, true] {
            let mut text = String::new();
            let span = Span::styled("a\u{1b}]0;title\u{7}\u{9b}2Jb\u{7f}c", Style::new().bold());
            push(&mut text, &Line::from(vec![span, Span::raw("\r\nd")]), ascii);
            assert_eq!(text, "\u{1b}[0;1ma]0;title2Jbc\u{1b}[0md", "{ascii}");
        }
    }
}
