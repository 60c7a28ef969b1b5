//! The search in the transcript, also in folded outputs, in thoughts and in messages that are not drawn.
//!
//! The newest messages are searched first, a limited number of bytes at a time, so that a long session does not delay
//! the keys. Older messages are fetched while the search needs them.

use codewright_proto::{MessageId, PartBody, ToolPart, ToolState};
use serde_json::Value;

use crate::editor::Editor;
use crate::transcript::{Body, Entry, Transcript};

/// The number of bytes that are searched between two keys.
const STEP_BYTES: usize = 512 * 1024;
/// The number of messages that are searched between two keys.
const STEP_MESSAGES: usize = 5_000;
/// The maximum number of places that are remembered.
const MAX_HITS: usize = 10_000;
/// The number of messages above which no older ones are fetched.
const MAX_FETCHED: usize = 100_000;

/// The state of a search.
#[derive(Debug, Default)]
pub(crate) struct Search {
    pub(crate) editor: Editor,
    /// Whether letters move between the places, and do not change the text.
    pub(crate) is_moving: bool,
    /// The places, newest first.
    hits: Vec<Hit>,
    /// The index of the current place, and the number of the occurrence in it, counted from its start.
    at: Option<(usize, usize)>,
    /// Whether the user asked for an older place than those that are known.
    wants_older: bool,
    /// The number of messages that are not searched, which are the oldest.
    left: usize,
    /// The oldest message when `left` was counted.
    first: Option<MessageId>,
    /// The text in lower case.
    needle: String,
}

/// A part that contains the text. Prompts are drawn as a whole, as the part after their last one.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Hit {
    message: MessageId,
    part: usize,
    count: usize,
}

/// An occurrence of the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Occurrence {
    pub(crate) message: MessageId,
    pub(crate) part: usize,
    /// The number of the occurrence in the part.
    pub(crate) nth: usize,
}

/// The result of a part of the search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    /// Nothing is left to do.
    Done,
    /// There is a new current place.
    Found,
    /// Older messages are needed.
    NeedsOlder,
}

impl Search {
    /// Starts again, because the text has changed.
    pub(crate) fn restart(&mut self, transcript: &Transcript) {
        self.needle = self.editor.text().to_lowercase();
        self.hits.clear();
        (self.at, self.wants_older) = (None, false);
        self.left = if self.needle.is_empty() { 0 } else { transcript.end };
        self.first = transcript.entries.first().map(|entry| entry.info.id().clone());
    }

    pub(crate) fn needle(&self) -> &str {
        &self.needle
    }

    /// Whether messages are left to be searched.
    pub(crate) fn is_running(&self) -> bool {
        self.left > 0 && self.hits.len() < MAX_HITS
    }

    /// Searches some more messages.
    pub(crate) fn advance(&mut self, transcript: &Transcript) -> Progress {
        self.shift(transcript);
        let mut bytes = 0;
        for _ in 0..STEP_MESSAGES {
            if !self.is_running() || bytes >= STEP_BYTES {
                break;
            }
            self.left -= 1;
            let Some(entry) = transcript.entries.get(self.left) else { continue };
            bytes += self.read(entry);
        }
        let known = self.hits.len();
        match self.at {
            None if known > 0 => {
                self.at = Some((0, self.hits[0].count - 1));
                Progress::Found
            }
            Some((at, _)) if self.wants_older && at + 1 < known => {
                self.wants_older = false;
                self.at = Some((at + 1, self.hits[at + 1].count - 1));
                Progress::Found
            }
            None | Some(_) => {
                let waits = !self.needle.is_empty() && (self.at.is_none() || self.wants_older);
                let may_fetch = transcript.older.is_some() && transcript.entries.len() < MAX_FETCHED;
                if waits && self.left == 0 && may_fetch { Progress::NeedsOlder } else { Progress::Done }
            }
        }
    }

    /// Counts the messages again that were fetched meanwhile, which are the oldest.
    fn shift(&mut self, transcript: &Transcript) {
        let first = transcript.entries.first().map(|entry| entry.info.id());
        if first == self.first.as_ref() || self.needle.is_empty() {
            return;
        }
        let added = self.first.as_ref().and_then(|id| transcript.find(id)).unwrap_or(transcript.end);
        self.left += added;
        self.first = first.cloned();
    }

    /// Searches a message. Returns the number of bytes that were read.
    fn read(&mut self, entry: &Entry) -> usize {
        let mut bytes = 0;
        let mut add = |hits: &mut Vec<Hit>, part: usize, texts: &[&str]| {
            bytes += texts.iter().map(|text| text.len()).sum::<usize>();
            let count: usize = texts.iter().map(|text| occurrences(text, &self.needle)).sum();
            if count > 0 {
                hits.push(Hit { message: entry.info.id().clone(), part, count });
            }
        };
        if matches!(entry.info, codewright_proto::Message::User(_)) {
            let text = entry.prompt_text();
            add(&mut self.hits, entry.parts.len(), &[&text]);
            return bytes;
        }
        for (at, part) in entry.parts.iter().enumerate().rev() {
            match &part.body {
                Body::Text { text, .. } | Body::Reasoning { text, .. } => {
                    add(&mut self.hits, at, &[&text.text]);
                }
                Body::Tool(tool) => add(&mut self.hits, at, &texts_of(tool)),
                Body::Other(PartBody::Retry { error, .. }) => add(&mut self.hits, at, &[error.message()]),
                Body::Other(_) => {}
            }
        }
        bytes
    }

    /// Moves to the older occurrence. Returns whether there is one.
    pub(crate) fn older(&mut self) -> bool {
        match self.at {
            Some((at, nth)) if nth > 0 => self.at = Some((at, nth - 1)),
            Some((at, _)) if at + 1 < self.hits.len() => {
                self.at = Some((at + 1, self.hits[at + 1].count - 1));
            }
            Some(_) => {
                self.wants_older = true;
                return false;
            }
            None => return false,
        }
        true
    }

    /// Moves to the newer occurrence. Returns whether there is one.
    pub(crate) fn newer(&mut self) -> bool {
        self.wants_older = false;
        match self.at {
            Some((at, nth)) if nth + 1 < self.hits[at].count => self.at = Some((at, nth + 1)),
            Some((at, _)) if at > 0 => self.at = Some((at - 1, 0)),
            Some(_) | None => return false,
        }
        true
    }

    pub(crate) fn current(&self) -> Option<Occurrence> {
        let (at, nth) = self.at?;
        let hit = self.hits.get(at)?;
        Some(Occurrence { message: hit.message.clone(), part: hit.part, nth })
    }

    /// Describes the current place: its number, counted from the newest, and the number of all.
    pub(crate) fn summary(&self, has_older: bool) -> String {
        let all: usize = self.hits.iter().map(|hit| hit.count).sum();
        let more = if self.is_running() || has_older { "+" } else { "" };
        match self.at {
            _ if self.needle.is_empty() => String::new(),
            Some((at, nth)) => {
                let newer: usize = self.hits[..at].iter().map(|hit| hit.count).sum();
                format!("{} of {all}{more}", newer + self.hits[at].count - nth)
            }
            None if self.is_running() || has_older => "searching…".to_owned(),
            None => "no matches".to_owned(),
        }
    }
}

/// Returns the texts of a call that are displayed.
fn texts_of(tool: &ToolPart) -> Vec<&str> {
    let (input, output, metadata): (Option<&Value>, &str, _) = match &tool.state {
        ToolState::Pending { .. } => (None, "", None),
        ToolState::Running { input, metadata, .. } => (Some(input), "", metadata.as_ref()),
        ToolState::Completed { input, output, metadata, .. } => (Some(input), output, Some(metadata)),
        ToolState::Error { input, error, metadata, .. } => (Some(input), error, metadata.as_ref()),
    };
    let shown = metadata.and_then(|metadata| metadata.get("output")).and_then(Value::as_str);
    let diff = metadata.and_then(|metadata| metadata.get("diff")).and_then(Value::as_str);
    let input = input.and_then(Value::as_object).into_iter().flat_map(|input| input.values());
    let arguments = input.filter_map(Value::as_str);
    arguments.chain([shown.unwrap_or(output)]).chain(diff).filter(|text| !text.is_empty()).collect()
}

/// Returns the number of occurrences of a text that is in lower case. Case is ignored.
pub(crate) fn occurrences(text: &str, needle: &str) -> usize {
    let Some(first) = needle.bytes().next() else { return 0 };
    if !needle.is_ascii() {
        return text.to_lowercase().matches(needle).count();
    }
    let (text, needle) = (text.as_bytes(), needle.as_bytes());
    let (mut count, mut at) = (0, 0);
    while at + needle.len() <= text.len() {
        let is_match = text[at].to_ascii_lowercase() == first
            && text[at..at + needle.len()].eq_ignore_ascii_case(needle);
        count += usize::from(is_match);
        at += if is_match { needle.len() } else { 1 };
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn occurrences_ignore_case() {
        for (text, needle, count) in [
            ("One one ONE", "one", 3),
            ("aaaa", "aa", 2),
            ("ÄÖ äö", "äö", 2),
            ("漢字", "字", 1),
            ("x", "", 0),
            ("", "x", 0),
        ] {
            assert_eq!(occurrences(text, needle), count, "{text} {needle}");
        }
    }
}
