//! A session's messages as they are mirrored, and the place in them that is shown.
//!
//! Everything is found by walking from a place to its neighbours, so what a frame costs
//! depends on the rows of the screen and not on how much there is above it.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use codewright_proto::{Message, MessageId, MessageWithParts, Part, PartBody, PartId};
use ratatui::text::Line;

use crate::blocks::Blocks;

/// How many rendered blocks are kept.
const MAX_KEPT: usize = 2_048;
/// How many parts wait for their messages.
const MAX_EARLY: usize = 256;

/// A text that grows, cut into blocks.
#[derive(Debug, Default)]
pub(crate) struct Text {
    pub(crate) text: String,
    pub(crate) blocks: Blocks,
}

/// A part with what is known of its text.
#[derive(Debug)]
pub(crate) struct PartEntry {
    /// The part; of a growing text the value is in `text` alone.
    pub(crate) part: Part,
    pub(crate) text: Option<Text>,
    /// Greater with each change.
    version: u64,
}

/// A message with its parts.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) info: Message,
    pub(crate) parts: Vec<PartEntry>,
    version: u64,
}

/// A block of the transcript. The part behind the last is the end of the message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) entry: usize,
    pub(crate) part: usize,
    pub(crate) block: usize,
}

/// What is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scroll {
    /// The end, wherever it goes.
    End,
    /// From this line of this block on.
    At { place: Place, line: usize },
}

/// One row of the screen.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    pub(crate) place: Place,
    pub(crate) line: Line<'static>,
}

/// Draws one block; what must not be kept because it moves is said so.
pub(crate) trait Draw {
    /// How many blocks a part of a message has; the part behind the last is the message's end.
    fn blocks(&self, transcript: &Transcript, entry: usize, part: usize) -> usize;
    /// Its lines.
    fn lines(&self, transcript: &Transcript, place: Place) -> Vec<Line<'static>>;
    /// A number that changes whenever the lines would; none if they change by themselves.
    fn stamp(&self, transcript: &Transcript, place: Place) -> Option<u64>;
    /// Whether the block follows the one before without a blank line.
    fn joins(&self, transcript: &Transcript, before: Place, place: Place) -> bool;
}

/// A rendered block.
struct Shown {
    gap: bool,
    lines: Rc<Vec<Line<'static>>>,
}

impl Shown {
    fn len(&self) -> usize {
        self.lines.len() + usize::from(self.gap)
    }

    fn line(&self, at: usize) -> Line<'static> {
        let at = if self.gap { at.checked_sub(1) } else { Some(at) };
        at.and_then(|at| self.lines.get(at)).cloned().unwrap_or_default()
    }
}

type Kept = HashMap<(MessageId, usize, usize), (u64, Rc<Vec<Line<'static>>>)>;

/// The messages of a session.
#[derive(Debug)]
pub(crate) struct Transcript {
    pub(crate) entries: Vec<Entry>,
    /// Whether the messages have been fetched.
    pub(crate) loaded: bool,
    /// The cursor of the messages before these, if there are any.
    pub(crate) older: Option<String>,
    /// Whether older ones are being fetched.
    pub(crate) fetching: bool,
    pub(crate) scroll: Scroll,
    /// Where the messages end that still count.
    pub(crate) end: usize,
    version: u64,
    /// The version when fetching began.
    since: u64,
    /// What events have taken away since.
    gone: HashSet<String>,
    /// Parts that were told while their messages were being fetched.
    early: Vec<PartEntry>,
    kept: RefCell<Kept>,
}

impl Default for Transcript {
    fn default() -> Self {
        Self {
            entries: Vec::new(),
            loaded: false,
            older: None,
            fetching: false,
            scroll: Scroll::End,
            end: 0,
            version: 0,
            since: 0,
            gone: HashSet::new(),
            early: Vec::new(),
            kept: RefCell::default(),
        }
    }
}

impl PartEntry {
    fn new(mut part: Part, version: u64) -> Self {
        let text = match &mut part.body {
            PartBody::Text(body) => Some(std::mem::take(&mut body.text)),
            PartBody::Reasoning { text, .. } => Some(std::mem::take(text)),
            _ => None,
        };
        let text = text.map(|text| {
            let mut blocks = Blocks::default();
            blocks.extend(&text);
            Text { text: text.to_string(), blocks }
        });
        Self { part, text, version }
    }

    fn append(&mut self, delta: &str, version: u64) {
        let text = self.text.get_or_insert_default();
        text.text.push_str(delta);
        text.blocks.extend(&text.text);
        self.version = version;
    }

    /// Takes a new value; a text that only grew keeps its blocks.
    fn update(&mut self, part: Part, version: u64) {
        let mut new = Self::new_without_blocks(part, version);
        if let (Some(old), Some(text)) = (self.text.take(), &mut new.text)
            && text.text.starts_with(&old.text)
        {
            text.blocks = old.blocks;
        }
        if let Some(text) = &mut new.text {
            text.blocks.extend(&text.text);
        }
        *self = new;
    }

    fn new_without_blocks(mut part: Part, version: u64) -> Self {
        let text = match &mut part.body {
            PartBody::Text(body) => Some(std::mem::take(&mut body.text)),
            PartBody::Reasoning { text, .. } => Some(std::mem::take(text)),
            _ => None,
        };
        let text = text.map(|text| Text { text: text.to_string(), blocks: Blocks::default() });
        Self { part, text, version }
    }

    /// The text of a part that has one.
    pub(crate) fn text(&self) -> &str {
        self.text.as_ref().map_or("", |text| &text.text)
    }

    pub(crate) fn version(&self) -> u64 {
        self.version
    }
}

impl Entry {
    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    /// What events told, over what was fetched: the former holds where it came after `since`.
    fn over(self, mut fetched: Self, since: u64) -> Self {
        if self.version > since {
            fetched.info = self.info;
        }
        for part in self.parts.into_iter().filter(|part| part.version > since) {
            match fetched.parts.iter_mut().find(|known| known.part.id == part.part.id) {
                Some(known) => *known = part,
                None => fetched.parts.push(part),
            }
        }
        fetched
    }

    /// Takes a part in, in its place.
    fn put(&mut self, part: PartEntry) {
        match self.parts.iter_mut().find(|known| known.part.id == part.part.id) {
            Some(known) => *known = part,
            None => {
                let at = self.parts.iter().rposition(|known| known.part.id < part.part.id);
                self.parts.insert(at.map_or(0, |at| at + 1), part);
            }
        }
    }

    /// What a user wrote, without what the program added.
    pub(crate) fn said(&self) -> String {
        let texts = self.parts.iter().filter(|part| match &part.part.body {
            PartBody::Text(text) => !text.synthetic.unwrap_or(false) && !text.ignored.unwrap_or(false),
            _ => false,
        });
        texts.map(PartEntry::text).collect::<Vec<_>>().join("\n")
    }
}

impl Transcript {
    /// Notes that messages are being fetched: what events tell from now on is newer than they are.
    pub(crate) fn fetch(&mut self) {
        self.fetching = true;
        self.since = self.version;
        self.gone.clear();
        self.early.clear();
    }

    /// Takes the newest messages, as they were fetched.
    ///
    /// They may be older than what events have told since they were asked for, which stays.
    pub(crate) fn load(&mut self, messages: Vec<MessageWithParts>, older: Option<String>) {
        self.older = older;
        self.loaded = true;
        self.fetching = false;
        let since = std::mem::take(&mut self.since);
        let gone = std::mem::take(&mut self.gone);
        let mut told = std::mem::take(&mut self.entries);
        self.version += 1;
        self.kept.borrow_mut().clear();
        for message in messages.into_iter().filter(|message| !gone.contains(message.info.id().as_str())) {
            let mut fetched = entry(message, self.version);
            fetched.parts.retain(|part| !gone.contains(part.part.id.as_str()));
            match told.iter().position(|entry| entry.info.id() == fetched.info.id()) {
                Some(at) => self.entries.push(told.remove(at).over(fetched, since)),
                None => self.entries.push(fetched),
            }
        }
        let newer = told
            .into_iter()
            .filter(|entry| entry.version > since || entry.parts.iter().any(|part| part.version > since));
        self.entries.extend(newer);
        for part in std::mem::take(&mut self.early) {
            if let Some(at) = self.find(&part.part.message_id) {
                self.entries[at].put(part);
            }
        }
        self.end = self.entries.len();
        self.clamp();
    }

    /// Takes older messages than those that are here.
    pub(crate) fn load_older(&mut self, messages: Vec<MessageWithParts>, older: Option<String>) {
        self.fetching = false;
        self.early.clear();
        self.older = older;
        let first = self.entries.first().map(|entry| entry.info.id().clone());
        let version = self.version;
        let older = messages.into_iter().take_while(|message| Some(message.info.id()) != first.as_ref());
        let older: Vec<Entry> = older.map(|message| entry(message, version)).collect();
        let count = older.len();
        self.entries.splice(0..0, older);
        self.end += count;
        if let Scroll::At { place, line } = &mut self.scroll {
            // The first message had no blank line before it.
            let was_first = *place == Place { entry: 0, part: place.part, block: 0 };
            *line += usize::from(was_first && count > 0);
            place.entry += count;
        }
    }

    pub(crate) fn update_message(&mut self, info: Message) {
        self.version += 1;
        let version = self.version;
        match self.find(info.id()) {
            Some(at) => {
                self.entries[at].info = info;
                self.entries[at].version = version;
            }
            None => {
                // It is nearly always the last. Ids that clients made say nothing about the order.
                let at = self.entries.iter().rposition(|entry| order(&entry.info) < order(&info));
                let at = at.map_or(0, |at| at + 1);
                let early = std::mem::take(&mut self.early).into_iter();
                let (parts, early): (Vec<PartEntry>, Vec<PartEntry>) =
                    early.partition(|part| part.part.message_id == *info.id());
                self.early = early;
                let mut entry = Entry { info, parts: Vec::new(), version };
                for part in parts {
                    entry.put(part);
                }
                self.entries.insert(at, entry);
                self.end += usize::from(at <= self.end);
            }
        }
    }

    pub(crate) fn remove_message(&mut self, id: &MessageId) {
        if self.fetching {
            self.gone.insert(id.to_string());
            self.early.retain(|part| part.part.message_id != *id);
        }
        if let Some(at) = self.find(id) {
            self.version += 1;
            self.entries.remove(at);
            self.end = (self.end - usize::from(at < self.end)).min(self.entries.len());
            self.kept.borrow_mut().clear();
            self.clamp();
        }
    }

    pub(crate) fn update_part(&mut self, part: Part) {
        self.version += 1;
        let version = self.version;
        let Some(at) = self.find(&part.message_id) else { return self.update_early(part) };
        let entry = &mut self.entries[at];
        match entry.parts.iter_mut().rev().find(|known| known.part.id == part.id) {
            Some(known) => known.update(part, version),
            None => {
                let at = entry.parts.iter().rposition(|known| known.part.id < part.id).map_or(0, |at| at + 1);
                entry.parts.insert(at, PartEntry::new(part, version));
                self.kept.borrow_mut().clear();
            }
        }
    }

    /// Keeps a part until its message is there, if that is on its way.
    fn update_early(&mut self, part: Part) {
        if !self.fetching {
            return;
        }
        match self.early.iter_mut().find(|known| known.part.id == part.id) {
            Some(known) => known.update(part, self.version),
            None => self.early.push(PartEntry::new(part, self.version)),
        }
        if self.early.len() > MAX_EARLY {
            self.early.remove(0);
        }
    }

    pub(crate) fn remove_part(&mut self, message: &MessageId, id: &PartId) {
        if self.fetching {
            self.gone.insert(id.to_string());
            self.early.retain(|part| part.part.id != *id);
        }
        self.version += 1;
        let Some(at) = self.find(message) else { return };
        self.entries[at].parts.retain(|part| part.part.id != *id);
        self.kept.borrow_mut().clear();
        self.clamp();
    }

    pub(crate) fn append(&mut self, message: &MessageId, id: &PartId, delta: &str) {
        self.version += 1;
        let version = self.version;
        let parts = match self.find(message) {
            Some(at) => &mut self.entries[at].parts,
            None => &mut self.early,
        };
        if let Some(part) = parts.iter_mut().rev().find(|part| part.part.id == *id) {
            part.append(delta, version);
        }
    }

    pub(crate) fn find(&self, id: &MessageId) -> Option<usize> {
        self.entries.iter().rposition(|entry| entry.info.id() == id)
    }

    /// Leaves out what comes from this message on.
    pub(crate) fn end_before(&mut self, id: Option<&MessageId>) {
        // One that is not here is older than all of them, or was just taken away; there its id must do.
        let behind = |id| self.entries.iter().position(|entry| entry.info.id() >= id);
        let found = id.and_then(|id| self.find(id).or_else(|| behind(id)));
        self.end = found.unwrap_or(self.entries.len());
        self.clamp();
    }

    fn clamp(&mut self) {
        if let Scroll::At { place, .. } = self.scroll
            && place.entry >= self.end
        {
            self.scroll = Scroll::End;
        }
    }

    /// The block behind a place.
    fn next(&self, draw: &dyn Draw, mut place: Place) -> Option<Place> {
        place.block += 1;
        while place.entry < self.end {
            while place.part <= self.entries[place.entry].parts.len() {
                if place.block < draw.blocks(self, place.entry, place.part) {
                    return Some(place);
                }
                place.part += 1;
                place.block = 0;
            }
            place = Place { entry: place.entry + 1, part: 0, block: 0 };
        }
        None
    }

    /// The first block of an entry or of those behind it.
    pub(crate) fn first_from(&self, draw: &dyn Draw, entry: usize) -> Option<Place> {
        let start = Place { entry, part: 0, block: 0 };
        if entry >= self.end {
            return None;
        }
        if draw.blocks(self, entry, 0) > 0 { Some(start) } else { self.next(draw, start) }
    }

    /// The block before a place.
    fn previous(&self, draw: &dyn Draw, mut place: Place) -> Option<Place> {
        loop {
            if place.block > 0 {
                place.block -= 1;
                return Some(place);
            }
            if place.part > 0 {
                place.part -= 1;
            } else if place.entry > 0 {
                place.entry -= 1;
                place.part = self.entries[place.entry].parts.len();
            } else {
                return None;
            }
            place.block = draw.blocks(self, place.entry, place.part);
        }
    }

    fn last(&self, draw: &dyn Draw) -> Option<Place> {
        self.previous(draw, Place { entry: self.end, part: 0, block: 0 }).filter(|_| self.end > 0)
    }

    /// The lines of a block, and whether a blank line comes before them.
    fn rendered(&self, draw: &dyn Draw, place: Place) -> Shown {
        let lines = self.lines(draw, place);
        let before = self.previous(draw, place);
        let gap = !lines.is_empty() && before.is_some_and(|before| !draw.joins(self, before, place));
        Shown { gap, lines }
    }

    fn lines(&self, draw: &dyn Draw, place: Place) -> Rc<Vec<Line<'static>>> {
        let Some(stamp) = draw.stamp(self, place) else { return Rc::new(draw.lines(self, place)) };
        let key = (self.entries[place.entry].info.id().clone(), place.part, place.block);
        if let Some((kept, lines)) = self.kept.borrow().get(&key)
            && *kept == stamp
        {
            return Rc::clone(lines);
        }
        let lines = Rc::new(draw.lines(self, place));
        let mut kept = self.kept.borrow_mut();
        if kept.len() >= MAX_KEPT {
            kept.clear();
        }
        kept.insert(key, (stamp, Rc::clone(&lines)));
        lines
    }

    /// The rows of a screen of a height; scrolling that went too far is brought back.
    pub(crate) fn rows(&mut self, draw: &dyn Draw, height: usize) -> Vec<Row> {
        if let Scroll::At { place, line } = self.scroll {
            let rows = self.rows_from(draw, place, line, height);
            if rows.len() >= height {
                return rows;
            }
            self.scroll = Scroll::End;
        }
        self.rows_to_end(draw, height)
    }

    fn rows_from(&self, draw: &dyn Draw, place: Place, line: usize, height: usize) -> Vec<Row> {
        let mut rows = Vec::with_capacity(height);
        let mut at = Some(place).filter(|place| place.entry < self.end);
        let mut skip = line;
        while let Some(place) = at {
            let shown = self.rendered(draw, place);
            let count = shown.len().saturating_sub(skip).min(height - rows.len());
            rows.extend((skip..skip + count).map(|at| Row { place, line: shown.line(at) }));
            if rows.len() >= height {
                break;
            }
            skip = 0;
            at = self.next(draw, place);
        }
        rows
    }

    fn rows_to_end(&self, draw: &dyn Draw, height: usize) -> Vec<Row> {
        let mut rows: Vec<Row> = Vec::with_capacity(height);
        let mut at = self.last(draw);
        while let Some(place) = at {
            let shown = self.rendered(draw, place);
            let from = shown.len().saturating_sub(height - rows.len());
            rows.extend((from..shown.len()).rev().map(|at| Row { place, line: shown.line(at) }));
            if rows.len() >= height {
                break;
            }
            at = self.previous(draw, place);
        }
        rows.reverse();
        rows
    }

    /// The place and line of the first row that is shown.
    fn top(&self, draw: &dyn Draw, height: usize) -> Option<(Place, usize)> {
        if let Scroll::At { place, line } = self.scroll {
            return Some((place, line));
        }
        let (mut left, mut at) = (height, self.last(draw)?);
        loop {
            let count = self.rendered(draw, at).len();
            if count >= left {
                return Some((at, count - left));
            }
            left -= count;
            match self.previous(draw, at) {
                Some(previous) => at = previous,
                None => return Some((at, 0)),
            }
        }
    }

    /// Moves by so many lines; true if the beginning was reached.
    pub(crate) fn scroll_by(&mut self, draw: &dyn Draw, lines: isize, height: usize) -> bool {
        let Some((mut place, mut line)) = self.top(draw, height) else { return true };
        if lines < 0 {
            let mut left = lines.unsigned_abs();
            while left > line {
                left -= line;
                match self.previous(draw, place) {
                    Some(previous) => {
                        place = previous;
                        line = self.rendered(draw, place).len();
                    }
                    None => {
                        self.scroll = Scroll::At { place, line: 0 };
                        return true;
                    }
                }
            }
            self.scroll = Scroll::At { place, line: line - left };
            return false;
        }
        if self.scroll == Scroll::End {
            return false;
        }
        let mut left = lines.unsigned_abs();
        loop {
            let count = self.rendered(draw, place).len();
            if line + left < count {
                self.scroll = Scroll::At { place, line: line + left };
                return false;
            }
            left -= count - line.min(count);
            line = 0;
            match self.next(draw, place) {
                Some(next) => place = next,
                None => {
                    self.scroll = Scroll::End;
                    return false;
                }
            }
        }
    }

    /// Shows a message at the top.
    pub(crate) fn scroll_to(&mut self, draw: &dyn Draw, entry: usize) {
        if let Some(place) = self.first_from(draw, entry) {
            self.scroll = Scroll::At { place, line: 0 };
        }
    }

    /// The entry that the first row belongs to.
    pub(crate) fn top_entry(&self, draw: &dyn Draw, height: usize) -> usize {
        self.top(draw, height).map_or(0, |(place, _)| place.entry)
    }
}

/// What messages are sorted by, as in the store.
fn order(info: &Message) -> (u64, &MessageId) {
    (info.created(), info.id())
}

fn entry(message: MessageWithParts, version: u64) -> Entry {
    let parts = message.parts.into_iter().map(|part| PartEntry::new(part, version));
    Entry { info: message.info, parts: parts.collect(), version }
}
