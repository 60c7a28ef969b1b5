//! The import of an exported session from a JSON document.
//!
//! The whole document is read and checked before anything is stored. An error names the line and the
//! JSON path of the invalid item.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::Path;
use std::sync::Arc;

use codewright_proto::{Map, MessageWithParts, SessionId};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::item::{Reader, Strictness, Wrong};
use super::merge::{self, Incoming, Messages, Mode, Outcome};
use super::provenance::Rest;
use crate::inner::Inner;
use crate::{Error, instance, session};

/// The largest exported session.
pub const MAX_DOCUMENT_BYTES: usize = 512 * 1024 * 1024;

/// The result of importing a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Imported {
    /// The session.
    pub session: SessionId,
    /// The effect of the import.
    pub outcome: Outcome,
    /// The items that are kept unchanged because this version does not know them.
    pub notes: Vec<String>,
}

/// The outline of a document. Its items are parsed when they are needed.
#[derive(Deserialize)]
struct Outline<'a> {
    #[serde(borrow)]
    info: &'a RawValue,
    #[serde(borrow)]
    messages: Vec<&'a RawValue>,
    #[serde(flatten)]
    others: Map,
}

#[derive(Deserialize)]
struct RawMessage {
    info: Value,
    parts: Vec<Value>,
}

/// The messages of a document, which can be read repeatedly.
struct Document {
    name: String,
    text: Arc<str>,
    /// The position of each message.
    messages: Vec<std::ops::Range<usize>>,
    session: SessionId,
    info: Value,
    others: Map,
    at: usize,
    reader: Reader,
    notes: Vec<String>,
}

pub(super) async fn import(
    inner: &Inner,
    directory: &Path,
    name: &str,
    text: String,
) -> Result<Imported, Error> {
    let (mut document, mut info) = open(name, text.into())?;
    let mut seen = HashSet::new();
    while let Some(message) = document.read()? {
        let ids = std::iter::once(message.info.id().to_string())
            .chain(message.parts.iter().map(|part| part.id.to_string()));
        for id in ids {
            if !seen.insert(id.clone()) {
                return Err(document.error(
                    &format!("messages[{}]", document.at - 1),
                    &format!("the id `{id}` is used twice"),
                ));
            }
        }
    }
    drop(seen);
    drop(document.take_rest());
    let notes = std::mem::take(&mut document.notes);
    let worktree = codewright_config::find_worktree(directory);
    info.project_id = instance::project(&inner.opening(), &worktree).await?.id;
    info.directory = directory.to_string_lossy().into_owned();
    info.path = Some(session::relative(directory, &worktree.root));
    let session = info.id.clone();
    let mut hasher = DefaultHasher::new();
    document.text.hash(&mut hasher);
    let fingerprint = format!("{:016x}", hasher.finish());
    let mut incoming = Incoming { info, todos: None, fingerprint, is_live: false, messages: document };
    let outcome = merge::merge(inner, &mut incoming, Mode::Write).await?;
    let notes = if outcome == Outcome::Unchanged { Vec::new() } else { notes };
    Ok(Imported { session, outcome, notes })
}

fn open(name: &str, text: Arc<str>) -> Result<(Document, codewright_proto::Session), Error> {
    let wrong = |reason: String| Error::invalid(format!("{name} is not an exported session: {reason}"));
    if text.len() > MAX_DOCUMENT_BYTES {
        return Err(wrong(format!("it has {} bytes, the limit is {MAX_DOCUMENT_BYTES}", text.len())));
    }
    let outline: Outline<'_> = serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
    let offset = |raw: &RawValue| raw.get().as_ptr() as usize - text.as_ptr() as usize;
    let range = |raw: &RawValue| offset(raw)..offset(raw) + raw.get().len();
    let messages: Vec<_> = outline.messages.iter().map(|raw| range(raw)).collect();
    let at_info = offset(outline.info);
    let info: Value =
        serde_json::from_str(outline.info.get()).map_err(|error| wrong(format!("`info`: {error}")))?;
    let others = outline.others;
    let refuse = |reason: &str| located(name, &text, at_info, "info", reason);
    let mut reader =
        Reader::new(SessionId::parse("ses_0").map_err(|error| wrong(error.to_string()))?, Strictness::Exact);
    let session = reader.session(&info).map_err(|wrong| refuse(&wrong.reason))?;
    SessionId::parse(session.id.as_str()).map_err(|error| refuse(&error.to_string()))?;
    let mut document = Document {
        name: name.to_owned(),
        session: session.id.clone(),
        text: Arc::clone(&text),
        messages,
        info,
        others,
        at: 0,
        reader,
        notes: Vec::new(),
    };
    document.rewind();
    Ok((document, session))
}

impl Document {
    fn read(&mut self) -> Result<Option<MessageWithParts>, Error> {
        while let Some(range) = self.messages.get(self.at).cloned() {
            let at = format!("messages[{}]", self.at);
            self.at += 1;
            let raw: RawMessage = serde_json::from_str(&self.text[range])
                .map_err(|error| self.error(&at, &error.to_string()))?;
            let read = self.reader.message(raw.info, raw.parts, &at);
            if let Some(message) = read.map_err(|Wrong { at, reason }| self.error(&at, &reason))? {
                return Ok(Some(message));
            }
        }
        Ok(None)
    }

    /// Returns an error about the message that was read last.
    fn error(&self, at: &str, reason: &str) -> Error {
        let start = self.messages.get(self.at.saturating_sub(1)).map_or(0, |range| range.start);
        located(&self.name, &self.text, start, at, reason)
    }
}

fn located(name: &str, text: &str, offset: usize, at: &str, reason: &str) -> Error {
    let line = text.as_bytes()[..offset].iter().filter(|byte| **byte == b'\n').count() + 1;
    // The parser counts lines from the start of the item, so the line of the item itself is reported.
    let reason = reason.split(" at line ").next().unwrap_or(reason);
    Error::invalid(format!("{name} is not an exported session: `{at}` (from line {line}): {reason}"))
}

impl Messages for Document {
    fn rewind(&mut self) {
        self.at = 0;
        self.reader = Reader::new(self.session.clone(), Strictness::Exact);
        // Both were parsed without an error when the document was opened.
        drop(self.reader.session(&self.info));
        if !self.others.is_empty() {
            let fields = self.others.iter().map(|(key, value)| {
                (format!("/{}", key.replace('~', "~0").replace('/', "~1")), value.clone())
            });
            drop(self.reader.rest_mut().keep_fields(String::new(), fields.collect()));
        }
    }

    async fn next(&mut self) -> Result<Option<MessageWithParts>, Error> {
        self.read()
    }

    fn take_rest(&mut self) -> Rest {
        let reader = Reader::new(self.session.clone(), Strictness::Exact);
        let (rest, notes) = std::mem::replace(&mut self.reader, reader).into_rest();
        self.notes = notes;
        rest
    }
}
