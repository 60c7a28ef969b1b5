//! The messages of a session as the client mirrors them.
//!
//! Messages are fetched in pages and changed by events. An event that arrives while messages are being
//! fetched is newer than the fetched messages, so its change is kept.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use codewright_proto::{Message, MessageId, MessageWithParts, Part, PartId};
use ratatui::text::Line;

use crate::scroll::Position;

mod part;
mod scroll;

pub(crate) use part::{Body, PartEntry, Text};
pub(crate) use scroll::{Draw, Scroll, Sought};

/// How many rendered blocks are cached.
const MAX_RENDERED: usize = 2_048;
/// How many parts are kept until their messages arrive.
const MAX_EARLY: usize = 256;

/// A message with its parts.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) info: Message,
    pub(crate) parts: Vec<PartEntry>,
    version: u64,
}

/// Identifies a block. The part after the last one is the end of the message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) entry: usize,
    pub(crate) part: usize,
    pub(crate) block: usize,
}

/// A row of the screen.
pub(crate) type Row = crate::scroll::Row<Place>;

/// The lines of rendered blocks, with their stamps, by message, part and block.
type RenderedBlocks = HashMap<(MessageId, usize, usize), (u64, Rc<Vec<Line<'static>>>)>;

/// The messages of a session.
#[derive(Debug)]
pub(crate) struct Transcript {
    pub(crate) entries: Vec<Entry>,
    /// Whether the messages have been fetched.
    pub(crate) loaded: bool,
    /// The cursor of the messages before these, if there are any.
    pub(crate) older: Option<String>,
    /// Whether messages are being fetched.
    pub(crate) fetching: bool,
    pub(crate) scroll: Scroll,
    /// The number of entries that are not undone.
    pub(crate) end: usize,
    version: u64,
    /// The version at the start of the fetch.
    since: u64,
    /// The ids of messages and parts that were removed during the fetch.
    removed: HashSet<String>,
    /// Parts whose messages have not been fetched yet.
    early: Vec<PartEntry>,
    rendered: RefCell<RenderedBlocks>,
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
            removed: HashSet::new(),
            early: Vec::new(),
            rendered: RefCell::default(),
        }
    }
}

impl Entry {
    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    /// Returns the fetched entry with the changes of events that arrived after version `since`.
    fn merge(self, mut fetched: Self, since: u64) -> Self {
        if self.version > since {
            fetched.info = self.info;
        }
        for part in self.parts.into_iter().filter(|part| part.version > since) {
            match fetched.parts.iter_mut().find(|known| known.id == part.id) {
                Some(known) => *known = part,
                None => fetched.parts.push(part),
            }
        }
        fetched
    }

    /// Adds or replaces a part, in the order of ids.
    fn put(&mut self, part: PartEntry) {
        match self.parts.iter_mut().find(|known| known.id == part.id) {
            Some(known) => *known = part,
            None => {
                let at = self.parts.iter().rposition(|known| known.id < part.id);
                self.parts.insert(at.map_or(0, |at| at + 1), part);
            }
        }
    }

    /// Returns the text of a prompt, without text that the program added.
    pub(crate) fn prompt_text(&self) -> String {
        let texts = self.parts.iter().filter_map(|part| match &part.body {
            Body::Text { text, is_hidden: false, .. } => Some(text.text.as_str()),
            Body::Text { .. } | Body::Reasoning { .. } | Body::Tool(_) | Body::Other(_) => None,
        });
        texts.collect::<Vec<_>>().join("\n")
    }
}

impl Transcript {
    /// Marks the start of a fetch. Events that arrive from now on are newer than the fetched messages.
    pub(crate) fn begin_fetch(&mut self) {
        self.fetching = true;
        self.since = self.version;
        self.removed.clear();
        self.early.clear();
    }

    /// Stores the newest messages. Changes by events that arrived during the fetch are kept.
    pub(crate) fn load(&mut self, messages: Vec<MessageWithParts>, older: Option<String>) {
        self.older = older;
        self.loaded = true;
        self.fetching = false;
        let since = std::mem::take(&mut self.since);
        let removed = std::mem::take(&mut self.removed);
        let mut old = std::mem::take(&mut self.entries);
        self.version += 1;
        self.rendered.borrow_mut().clear();
        for message in messages.into_iter().filter(|message| !removed.contains(message.info.id().as_str())) {
            let mut fetched = new_entry(message, self.version);
            fetched.parts.retain(|part| !removed.contains(part.id.as_str()));
            match old.iter().position(|entry| entry.info.id() == fetched.info.id()) {
                Some(at) => self.entries.push(old.remove(at).merge(fetched, since)),
                None => self.entries.push(fetched),
            }
        }
        let newer = old
            .into_iter()
            .filter(|entry| entry.version > since || entry.parts.iter().any(|part| part.version > since));
        self.entries.extend(newer);
        for part in std::mem::take(&mut self.early) {
            if let Some(at) = self.find(&part.message_id) {
                self.entries[at].put(part);
            }
        }
        self.end = self.entries.len();
        self.clamp();
    }

    /// Adds messages that are older than all others.
    pub(crate) fn load_older(&mut self, messages: Vec<MessageWithParts>, older: Option<String>) {
        self.fetching = false;
        self.early.clear();
        self.older = older;
        let first = self.entries.first().map(|entry| entry.info.id().clone());
        let version = self.version;
        let older = messages.into_iter().take_while(|message| Some(message.info.id()) != first.as_ref());
        let older: Vec<Entry> = older.map(|message| new_entry(message, version)).collect();
        let count = older.len();
        self.entries.splice(0..0, older);
        self.end += count;
        if let Scroll::At(Position { place, line }) = &mut self.scroll {
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
                // It is nearly always the last. Ids that clients generated do not define the order.
                let at = self.entries.iter().rposition(|entry| order(&entry.info) < order(&info));
                let at = at.map_or(0, |at| at + 1);
                let early = std::mem::take(&mut self.early).into_iter();
                let (parts, early): (Vec<PartEntry>, Vec<PartEntry>) =
                    early.partition(|part| part.message_id == *info.id());
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
            self.removed.insert(id.to_string());
            self.early.retain(|part| part.message_id != *id);
        }
        if let Some(at) = self.find(id) {
            self.version += 1;
            self.entries.remove(at);
            self.end = (self.end - usize::from(at < self.end)).min(self.entries.len());
            self.rendered.borrow_mut().clear();
            self.clamp();
        }
    }

    pub(crate) fn update_part(&mut self, part: Part) {
        self.version += 1;
        let version = self.version;
        let Some(at) = self.find(&part.message_id) else { return self.update_early(part) };
        let entry = &mut self.entries[at];
        match entry.parts.iter_mut().rev().find(|known| known.id == part.id) {
            Some(known) => known.update(part, version),
            None => {
                let at = entry.parts.iter().rposition(|known| known.id < part.id).map_or(0, |at| at + 1);
                entry.parts.insert(at, PartEntry::new(part, version));
                self.rendered.borrow_mut().clear();
            }
        }
    }

    /// Stores a part until its message is fetched.
    fn update_early(&mut self, part: Part) {
        if !self.fetching {
            return;
        }
        match self.early.iter_mut().find(|known| known.id == part.id) {
            Some(known) => known.update(part, self.version),
            None => self.early.push(PartEntry::new(part, self.version)),
        }
        if self.early.len() > MAX_EARLY {
            self.early.remove(0);
        }
    }

    pub(crate) fn remove_part(&mut self, message: &MessageId, id: &PartId) {
        if self.fetching {
            self.removed.insert(id.to_string());
            self.early.retain(|part| part.id != *id);
        }
        self.version += 1;
        let Some(at) = self.find(message) else { return };
        self.entries[at].parts.retain(|part| part.id != *id);
        self.rendered.borrow_mut().clear();
        self.clamp();
    }

    pub(crate) fn append(&mut self, message: &MessageId, id: &PartId, delta: &str) {
        self.version += 1;
        let version = self.version;
        let parts = match self.find(message) {
            Some(at) => &mut self.entries[at].parts,
            None => &mut self.early,
        };
        if let Some(part) = parts.iter_mut().rev().find(|part| part.id == *id) {
            part.append(delta, version);
        }
    }

    pub(crate) fn find(&self, id: &MessageId) -> Option<usize> {
        self.entries.iter().rposition(|entry| entry.info.id() == id)
    }

    /// Hides the messages from this one on, which are undone. `None` shows all messages.
    pub(crate) fn end_before(&mut self, id: Option<&MessageId>) {
        // A message that is missing is older than all others or was removed, so it is located by its id.
        let by_id = |id| self.entries.iter().position(|entry| entry.info.id() >= id);
        let found = id.and_then(|id| self.find(id).or_else(|| by_id(id)));
        self.end = found.unwrap_or(self.entries.len());
        self.clamp();
    }

    fn clamp(&mut self) {
        if let Scroll::At(Position { place, .. }) = self.scroll
            && place.entry >= self.end
        {
            self.scroll = Scroll::End;
        }
    }
}

/// The sort key of messages, as in the store.
fn order(info: &Message) -> (u64, &MessageId) {
    (info.created(), info.id())
}

fn new_entry(message: MessageWithParts, version: u64) -> Entry {
    let parts = message.parts.into_iter().map(|part| PartEntry::new(part, version));
    Entry { info: message.info, parts: parts.collect(), version }
}
