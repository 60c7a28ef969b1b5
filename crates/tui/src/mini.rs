//! The small client: what is said goes into the terminal's own scrollback, and only a few
//! lines at the bottom are drawn anew.
//!
//! A block of the transcript is printed once, when it can no longer change; until then it
//! stands among the lines at the bottom. Nothing is asked of the terminal: the lines are
//! found again by their number, which a terminal that was made narrower may have changed.

use std::io::{self, Write};

use codewright_proto::{AssistantMessage, Message, MessageId, SessionId};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Line;

use crate::look::Look;
use crate::state::State;
use crate::transcript::{Body, Draw, Entry, Place, Transcript};
use crate::view;

/// How many of the messages that are printed are remembered: more than are fetched at once.
const MAX_PASSED: usize = 256;

/// A place that is found again when messages are fetched anew.
#[derive(Debug, Clone)]
struct Spot {
    message: MessageId,
    part: usize,
    block: usize,
}

impl Spot {
    fn of(transcript: &Transcript, place: Place) -> Option<Self> {
        let message = transcript.entries.get(place.entry)?.info.id().clone();
        Some(Self { message, part: place.part, block: place.block })
    }

    fn place(&self, transcript: &Transcript) -> Option<Place> {
        let entry = transcript.find(&self.message)?;
        Some(Place { entry, part: self.part.min(transcript.entries[entry].parts.len()), block: self.block })
    }
}

/// What is printed and what is drawn.
#[derive(Debug, Default)]
pub(crate) struct Mini {
    /// The session whose messages are printed.
    session: Option<SessionId>,
    /// The first block that is not printed; none until the messages are here.
    next: Option<Place>,
    /// The block that was printed last.
    last: Option<Spot>,
    /// Where `next` is, if something of its message is printed.
    begun: Option<Spot>,
    /// The messages before the one that `next` is in, the newest last.
    passed: Vec<MessageId>,
    greeted: bool,
    /// How wide each of the lines at the bottom is, and where among them the cursor is.
    drawn: Vec<usize>,
    cursor: (usize, usize),
    /// What was written last, so that nothing is written twice.
    written: String,
    width: usize,
}

impl Mini {
    /// Writes what has become final, and the bottom anew.
    pub(crate) fn draw(&mut self, state: &mut State, out: &mut impl Write) -> io::Result<()> {
        let printed = self.settled(state);
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
        let erased = self.erased(width);
        write!(out, "\u{1b}[?2026h\u{1b}[?25l{erased}{text}{below}\u{1b}[?2026l")?;
        out.flush()?;
        self.drawn = bottom.lines.iter().map(Line::width).collect();
        self.cursor = (x, y.min(last));
        (self.written, self.width) = (below, width);
        Ok(())
    }

    /// Takes the bottom away.
    pub(crate) fn leave(&mut self, out: &mut impl Write) -> io::Result<()> {
        let erased = self.erased(self.width);
        self.drawn.clear();
        self.written.clear();
        write!(out, "{erased}\u{1b}[?25h")?;
        out.flush()
    }

    /// What goes to the first line of the bottom and empties everything from there.
    fn erased(&self, width: usize) -> String {
        if self.drawn.is_empty() {
            return "\r\u{1b}[J".to_owned();
        }
        // A terminal that was made narrower has broken the lines.
        let rows = |line: &usize| line.max(&1).div_ceil(width.max(1));
        let above: usize = self.drawn.iter().take(self.cursor.1).map(rows).sum();
        format!("{}\r\u{1b}[J", up(above + self.cursor.0 / width.max(1)))
    }

    /// The lines that have become final since the last time.
    fn settled(&mut self, state: &mut State) -> Vec<Line<'static>> {
        let mut lines = Vec::new();
        if !self.greeted {
            self.greeted = true;
            lines.extend(view::mini::greeting(state));
        }
        if self.session.as_ref() != state.session_id() {
            self.session = state.session_id().cloned();
            (self.next, self.last, self.begun) = (None, None, None);
            self.passed.clear();
            if let Some(session) = state.session().filter(|session| !state.is_driven(&session.id)) {
                lines.extend(view::mini::heading(state, session));
            }
        }
        let Some(id) = self.session.clone() else { return lines };
        let limit = match state.options.mini {
            Some(limit) if !state.is_driven(&id) => limit,
            Some(_) | None => usize::MAX,
        };
        let width = room(state);
        let Some(transcript) = state.mirror.transcripts.get(&id).filter(|known| known.loaded) else {
            return lines;
        };
        let look = state.look(width);
        let mut place = match self.next {
            None => Place { entry: transcript.end.saturating_sub(limit), part: 0, block: 0 },
            Some(_) => self.found(transcript).unwrap_or_else(|| {
                if transcript.older.is_some() && !(self.passed.is_empty() && self.begun.is_none()) {
                    lines.extend([Line::default(), view::mini::left_out(state)]);
                }
                Place { entry: 0, part: 0, block: 0 }
            }),
        };
        if place.entry > transcript.end {
            // What is printed stays printed.
            place = Place { entry: transcript.end, part: 0, block: 0 };
            if state.session().is_some_and(|session| session.revert.is_some()) {
                lines.extend([Line::default(), view::mini::taken_back(state)]);
            }
        }
        let place = self.print(&look, transcript, place, &mut lines);
        self.next = Some(place);
        self.remember(transcript, place);
        lines
    }

    /// Prints what is final from a place on; tells where that ends.
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
                self.last = Spot::of(transcript, place);
            }
            place = done.next;
        }
        place
    }

    /// Where printing goes on; none if nothing is there of what was printed.
    ///
    /// A place says nothing once messages were fetched anew or taken away, so it is found by the messages' ids.
    fn found(&self, transcript: &Transcript) -> Option<Place> {
        let begun = self.begun.as_ref().and_then(|begun| begun.place(transcript));
        begun.or_else(|| {
            let passed = self.passed.iter().rev().find_map(|id| transcript.find(id));
            passed.map(|at| Place { entry: at + 1, part: 0, block: 0 })
        })
    }

    /// Remembers by ids where printing goes on.
    fn remember(&mut self, transcript: &Transcript, place: Place) {
        let next = Spot::of(transcript, place).filter(|_| place.entry < transcript.end);
        let printed = self.last.as_ref().map(|last| &last.message);
        self.begun = next.filter(|next| printed == Some(&next.message));
        let before = &transcript.entries[..place.entry];
        if self.passed.last() != before.last().map(|entry| entry.info.id()) {
            let kept = before.iter().skip(before.len().saturating_sub(MAX_PASSED));
            self.passed = kept.map(|entry| entry.info.id().clone()).collect();
        }
    }

    /// The lines of what is not final yet.
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

/// How wide the transcript is: a line that fills the terminal would be broken by some.
fn room(state: &State) -> usize {
    usize::from(state.size.0.saturating_sub(1)).max(10)
}

/// A place that is final, and the one behind it.
struct Done {
    is_shown: bool,
    next: Place,
}

/// Whether what is at a place can no longer change; none if it can, or there is nothing.
fn step(look: &Look<'_>, transcript: &Transcript, place: Place) -> Option<Done> {
    let entry = transcript.entries.get(place.entry).filter(|_| place.entry < transcript.end)?;
    let count = look.blocks(transcript, place.entry, place.part);
    if place.part < entry.parts.len() {
        let all = is_part_done(entry, place.part);
        if place.block < count {
            let text = entry.parts[place.part].text();
            let done = all
                || text.is_some_and(|text| text.blocks.is_done(place.block)) && is_text(entry, place.part);
            return done.then_some(Done { is_shown: true, next: Place { block: place.block + 1, ..place } });
        }
        return all
            .then_some(Done { is_shown: false, next: Place { part: place.part + 1, block: 0, ..place } });
    }
    if place.block < count {
        let done = is_entry_done(look, transcript, place.entry, entry);
        return done.then_some(Done { is_shown: true, next: Place { block: place.block + 1, ..place } });
    }
    let done = is_entry_done(look, transcript, place.entry, entry);
    done.then_some(Done { is_shown: false, next: Place { entry: place.entry + 1, part: 0, block: 0 } })
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
        // Its parts come after it; whoever answers has them all.
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

/// Writes a line as a terminal understands it.
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
        // What is shown has been cleaned where it came in; here nothing but a screen's cells would hold back the rest.
        let shown: String = span.content.chars().filter(|c| !c.is_control()).collect();
        if ascii { text.push_str(&crate::ascii::text(&shown)) } else { text.push_str(&shown) }
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
