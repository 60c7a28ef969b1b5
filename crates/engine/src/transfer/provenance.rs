//! The origin of an imported session, and the fields that our types do not model.
//!
//! Each session has one file next to the store. It is not an event because nothing on a screen follows from
//! it. The file is written before the session's first event and again after the last, so that an
//! interrupted import is recognised and completed.

use std::collections::BTreeMap;

use codewright_proto::{Map, MessageId, SessionId};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Error;
use crate::inner::Inner;
use crate::session_file::SessionFile;

/// The most JSON that is kept for one session.
const MAX_REST_BYTES: usize = 64 * 1024 * 1024;
/// The largest file that is read; larger than any file that is written.
const MAX_FILE_BYTES: u64 = 256 * 1024 * 1024;

/// The stored data about an imported session.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Provenance {
    pub(crate) origin: Origin,
    #[serde(default)]
    pub(crate) rest: Rest,
}

/// The imported state of a session, and the end of our log at that time.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Origin {
    /// A value that changes with the source.
    pub(crate) fingerprint: String,
    /// The last change of the source, in milliseconds since 1970.
    pub(crate) updated: u64,
    /// The last event of the import; `None` until the import is finished.
    pub(crate) seq: Option<u64>,
}

/// The items that our types do not model.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Rest {
    /// Fields by the id of their item, then by JSON pointer. Fields of the document itself have an empty id.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    fields: BTreeMap<String, Map>,
    /// Complete messages with their parts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    messages: Vec<Value>,
    /// Complete parts by the id of their message.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    parts: BTreeMap<String, Vec<Value>>,
    #[serde(skip)]
    bytes: usize,
}

impl Rest {
    pub(crate) fn keep_fields(&mut self, id: String, fields: Map) -> Result<(), String> {
        let size = fields.iter().map(|(key, value)| key.len() + size(value)).sum::<usize>() + id.len();
        self.grow(size)?;
        self.fields.insert(id, fields);
        Ok(())
    }

    pub(crate) fn keep_message(&mut self, message: Value) -> Result<(), String> {
        self.grow(size(&message))?;
        self.messages.push(message);
        Ok(())
    }

    pub(crate) fn keep_part(&mut self, message: &MessageId, part: Value) -> Result<(), String> {
        self.grow(size(&part) + message.as_str().len())?;
        self.parts.entry(message.to_string()).or_default().push(part);
        Ok(())
    }

    fn grow(&mut self, bytes: usize) -> Result<(), String> {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes <= MAX_REST_BYTES {
            return Ok(());
        }
        Err(format!("the session holds more than {MAX_REST_BYTES} bytes that this version does not know"))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.fields.is_empty() && self.messages.is_empty() && self.parts.is_empty()
    }

    /// Adds the items of another rest that this one lacks.
    pub(crate) fn absorb(&mut self, other: Self) {
        for (id, fields) in other.fields {
            self.fields.entry(id).or_insert(fields);
        }
        for (message, parts) in other.parts {
            self.parts.entry(message).or_insert(parts);
        }
        let id = |message: &Value| message["info"]["id"].clone();
        let known: Vec<_> = self.messages.iter().map(id).collect();
        self.messages.extend(other.messages.into_iter().filter(|message| !known.contains(&id(message))));
    }

    /// Restores the fields of an item that it still lacks.
    pub(crate) fn complete(&self, id: &str, value: &mut Value) {
        for (pointer, field) in self.fields.get(id).into_iter().flatten() {
            let Some((parent, key)) = pointer.rsplit_once('/') else { continue };
            if let Some(Value::Object(parent)) = value.pointer_mut(parent) {
                parent.entry(key.replace("~1", "/").replace("~0", "~")).or_insert_with(|| field.clone());
            }
        }
    }

    pub(crate) fn parts_of(&self, message: &str) -> &[Value] {
        self.parts.get(message).map(Vec::as_slice).unwrap_or_default()
    }

    pub(crate) fn messages(&self) -> &[Value] {
        &self.messages
    }
}

/// Returns the approximate length of a value as JSON.
fn size(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 8,
        Value::String(text) => text.len() + 2,
        Value::Array(values) => values.iter().map(size).sum::<usize>() + 2,
        Value::Object(fields) => {
            fields.iter().map(|(key, value)| key.len() + 4 + size(value)).sum::<usize>() + 2
        }
    }
}

fn file(inner: &Inner, id: &SessionId) -> Result<SessionFile, Error> {
    SessionFile::new(&inner.dirs.data, "imported", id).map_err(Error::invalid)
}

/// Returns the stored data about a session; `None` if the session was created here.
pub(crate) async fn load(inner: &Inner, id: &SessionId) -> Result<Option<Provenance>, Error> {
    let Some(text) = file(inner, id)?.read(MAX_FILE_BYTES).await.map_err(Error::machine)? else {
        return Ok(None);
    };
    let failed = |error| Error::machine(format!("cannot read the origin of session `{id}`: {error}"));
    serde_json::from_slice(&text).map(Some).map_err(failed)
}

/// Stores the data about a session. The file is replaced completely or not at all.
pub(crate) async fn save(inner: &Inner, id: &SessionId, provenance: &Provenance) -> Result<(), Error> {
    let json = serde_json::to_vec(provenance).map_err(|error| Error::machine(error.to_string()))?;
    file(inner, id)?.write(&json).await.map_err(Error::machine)
}

/// Removes the data about a deleted session.
pub(crate) async fn forget(inner: &Inner, id: &SessionId) {
    if let Ok(file) = file(inner, id) {
        file.remove().await;
    }
}
