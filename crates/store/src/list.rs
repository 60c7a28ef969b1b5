//! The JSON lists that clients receive, built from rows without parsing them.
//!
//! A row contains the value's JSON, so it can be copied. For a long transcript this costs a fraction of parsing and
//! serializing it.

use std::collections::HashMap;
use std::sync::Arc;

use codewright_proto::{MessageId, SessionId};

use crate::spare::Spare;
use crate::{Error, Position, Rest};

/// The initial capacity, enough for most lists.
pub(crate) const USUAL_BYTES: usize = 64 * 1024;

/// The size at which a piece of a list ends after the current part.
const PIECE_BYTES: usize = 512 * 1024;

/// A message with one of its parts, or without one.
pub(crate) struct Item<'a> {
    pub(crate) id: &'a str,
    pub(crate) data: Data<'a>,
    pub(crate) time: i64,
    /// A message may have no parts.
    pub(crate) part: Option<(&'a str, Data<'a>)>,
}

/// A piece of a list that is being written.
pub(crate) struct Piece<'a> {
    session: &'a SessionId,
    drafts: HashMap<String, String>,
    json: Vec<u8>,
    of_session: String,
    /// The first message that starts in this piece.
    first: Option<Position>,
    /// The message whose parts are being written, and the ids that each part has.
    message: Position,
    of_message: String,
    /// The last part that was written.
    part: String,
}

impl<'a> Piece<'a> {
    /// An empty piece. The drafts by part replace the stored parts.
    pub(crate) fn new(session: &'a SessionId, drafts: HashMap<String, String>, spare: &Arc<Spare>) -> Self {
        Self {
            session,
            drafts,
            json: spare.take(USUAL_BYTES),
            of_session: format!(r#""sessionID":"{session}","#),
            first: None,
            message: Position { time: 0, id: String::new() },
            of_message: String::new(),
            part: String::new(),
        }
    }

    /// Begins the list.
    pub(crate) fn begin(&mut self) {
        self.json.push(b'[');
    }

    /// Continues in the message in which the previous piece ended.
    pub(crate) fn continue_from(&mut self, rest: &Rest) {
        self.message.clone_from(&rest.message);
        self.part.clone_from(&rest.part);
        self.of_message = of_message(self.session, &rest.message.id);
    }

    /// Writes the next row. Returns whether the piece is long enough.
    pub(crate) fn push(&mut self, item: &Item<'_>) -> Result<bool, Error> {
        let Item { id, data, time, part } = item;
        if *id != self.message.id {
            self.json.extend_from_slice(if self.message.id.is_empty() {
                br#"{"info":"#
            } else {
                br#"]},{"info":"#
            });
            object(&mut self.json, Some(id), &self.of_session, data).map_err(unreadable("message", id))?;
            self.json.extend_from_slice(br#","parts":["#);
            self.message = Position { time: *time, id: (*id).to_owned() };
            self.of_message = of_message(self.session, id);
            self.part.clear();
            if self.first.is_none() {
                self.first = Some(self.message.clone());
            }
        }
        if let Some((part, data)) = part {
            let draft = if self.drafts.is_empty() { None } else { self.drafts.get(*part) };
            let draft = draft.map(|draft| Data::from(draft.as_str()));
            if !self.part.is_empty() {
                self.json.push(b',');
            }
            object(&mut self.json, Some(part), &self.of_message, draft.as_ref().unwrap_or(data))
                .map_err(unreadable("part", part))?;
            self.part.clear();
            self.part.push_str(part);
        }
        Ok(self.json.len() >= PIECE_BYTES)
    }

    #[cfg(feature = "postgres")]
    pub(crate) fn session(&self) -> &'a SessionId {
        self.session
    }

    /// The place of the last row that was written.
    #[cfg(feature = "postgres")]
    pub(crate) fn place(&self) -> (&Position, &str) {
        (&self.message, &self.part)
    }

    /// The position of the first message that starts in this piece.
    pub(crate) fn first(&mut self) -> Option<(u64, Result<MessageId, Error>)> {
        let Position { time, id } = self.first.take()?;
        Some((time.unsigned_abs(), MessageId::parse(&id).map_err(unreadable("message", &id))))
    }

    /// The JSON, and the start of the next piece if there may be more rows before a place.
    pub(crate) fn end(mut self, has_more: bool, before: Position) -> (Vec<u8>, Option<Rest>) {
        if has_more {
            let session = self.session.clone();
            return (self.json, Some(Rest { session, message: self.message, part: self.part, before }));
        }
        self.json.extend_from_slice(if self.message.id.is_empty() { b"]" } else { b"]}]" });
        (self.json, None)
    }
}

fn of_message(session: &SessionId, id: &str) -> String {
    format!(r#""sessionID":"{session}","messageID":"{id}","#)
}

impl Position {
    /// Before every message.
    pub(crate) fn first() -> Self {
        Self { time: i64::MIN, id: String::new() }
    }

    /// After every message.
    pub(crate) fn last() -> Self {
        Self { time: i64::MAX, id: LAST_ID.to_owned() }
    }
}

/// A text after every id.
pub(crate) const LAST_ID: &str = "\u{10ffff}";

pub(crate) fn unreadable<E: std::error::Error + Send + Sync + 'static>(
    kind: &str,
    id: &str,
) -> impl FnOnce(E) -> Error {
    move |error| Error::unreadable(format!("{kind} `{id}`"), error)
}

/// A row was not written by this program.
#[derive(Debug, thiserror::Error)]
#[error("it is not a JSON object in this program's format")]
pub(crate) struct NotOurs;

/// The content of a row, checked once.
pub(crate) struct Data<'a> {
    bytes: &'a [u8],
    /// Whether it is text without control characters.
    is_text: bool,
}

impl<'a> Data<'a> {
    /// The bytes of a text, if they are printable ASCII, as in most rows.
    pub(crate) fn of_ascii(bytes: &'a [u8]) -> Option<Self> {
        // The whole row is checked without an early exit, which is vectorized.
        let is_ascii = bytes.iter().fold(true, |so_far, byte| so_far & matches!(byte, b' '..=b'~'));
        is_ascii.then_some(Self { bytes, is_text: true })
    }
}

impl<'a> From<&'a str> for Data<'a> {
    fn from(text: &'a str) -> Self {
        let is_text = text.bytes().all(|byte| byte >= b' ' || matches!(byte, b'\n' | b'\r' | b'\t'));
        Self { bytes: text.as_bytes(), is_text }
    }
}

/// Writes an object with an id, other serialized fields, and the fields of a row.
///
/// Only checks that the row is in braces and has no control characters, and that the id is plain. This detects damaged
/// pages and costs almost nothing compared to parsing.
pub(crate) fn object(
    json: &mut Vec<u8>,
    id: Option<&str>,
    others: &str,
    data: &Data<'_>,
) -> Result<(), NotOurs> {
    let is_ours = data.is_text && matches!(data.bytes, [b'{', b'"', .., b'}']);
    let is_plain = |id: &str| !id.bytes().any(|byte| matches!(byte, b'"' | b'\\' | ..b' '));
    if !is_ours || !id.is_none_or(is_plain) {
        return Err(NotOurs);
    }
    json.push(b'{');
    if let Some(id) = id {
        for piece in [r#""id":""#, id, r#"","#, others] {
            json.extend_from_slice(piece.as_bytes());
        }
    }
    json.extend_from_slice(&data.bytes[1..]);
    Ok(())
}
