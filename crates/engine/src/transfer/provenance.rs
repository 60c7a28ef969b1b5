//! Where an imported session came from, and what of it our vocabulary does not hold.
//!
//! One file a session, beside the store: it is no event, because nothing that is shown
//! follows from it. It is written before the session's first event and again after the
//! last, so that an import that was killed is known as such and completed.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

use codewright_proto::{Map, MessageId, SessionId};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::io::AsyncWriteExt as _;

use crate::Error;
use crate::inner::Inner;

/// How much of one session is kept beside it, as JSON.
const MAX_REST_BYTES: usize = 64 * 1024 * 1024;
/// How large a file that is read may be; more than what is ever written.
const MAX_FILE_BYTES: u64 = 256 * 1024 * 1024;

/// What is remembered of an imported session.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Provenance {
    pub(crate) origin: Origin,
    #[serde(default)]
    pub(crate) rest: Rest,
}

/// Which state of the session was imported, and where our log of it ended then.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Origin {
    /// Changes whenever the source does.
    pub(crate) fingerprint: String,
    /// When the source was last changed, in milliseconds since 1970.
    pub(crate) updated: u64,
    /// The last event of the import; absent while it is not finished.
    pub(crate) seq: Option<u64>,
}

/// What our vocabulary does not hold.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Rest {
    /// Fields by the id of their item, then by the JSON pointer to each; those of the document under no id.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    fields: BTreeMap<String, Map>,
    /// Whole messages with their parts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    messages: Vec<Value>,
    /// Whole parts by the id of their message.
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

    /// Adds what another rest has and this one has not.
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

    /// Puts the fields of an item back where it still lacks them.
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

/// About how long the value's JSON is.
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

fn path(inner: &Inner, id: &SessionId) -> Result<PathBuf, Error> {
    // The id becomes a file's name; one that arrived inside other JSON has not been looked at before.
    let id = SessionId::parse(id.as_str()).map_err(|error| Error::invalid(error.to_string()))?;
    Ok(inner.dirs.data.join("imported").join(format!("{id}.json")))
}

/// What is remembered of a session; nothing if it was made here.
pub(crate) async fn load(inner: &Inner, id: &SessionId) -> Result<Option<Provenance>, Error> {
    let path = path(inner, id)?;
    let failed = |reason: String| Error::machine(format!("cannot read `{}`: {reason}", path.display()));
    match tokio::fs::metadata(&path).await {
        Ok(file) if file.len() <= MAX_FILE_BYTES => {}
        Ok(file) => {
            return Err(failed(format!("it has {} bytes, the limit is {MAX_FILE_BYTES}", file.len())));
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error.to_string())),
    }
    let text = tokio::fs::read(&path).await.map_err(|error| failed(error.to_string()))?;
    serde_json::from_slice(&text).map(Some).map_err(|error| failed(error.to_string()))
}

/// Remembers where a session came from; the file is whole or the former one.
pub(crate) async fn save(inner: &Inner, id: &SessionId, provenance: &Provenance) -> Result<(), Error> {
    let path = path(inner, id)?;
    let failed = |error: io::Error| Error::machine(format!("cannot write `{}`: {error}", path.display()));
    let json = serde_json::to_vec(provenance).map_err(|error| failed(error.into()))?;
    let directory = path.with_file_name("");
    codewright_workspace::make_private_directory(&directory).map_err(failed)?;
    let unnamed = path.with_extension(format!("new-{}", std::process::id()));
    let write = async {
        let mut options = tokio::fs::OpenOptions::new();
        options.write(true).create(true).truncate(true);
        #[cfg(unix)]
        options.mode(0o600);
        let mut file = options.open(&unnamed).await?;
        file.write_all(&json).await?;
        file.flush().await?;
        drop(file);
        tokio::fs::rename(&unnamed, &path).await
    };
    write.await.map_err(failed)
}

/// Forgets a session that is gone.
pub(crate) async fn forget(inner: &Inner, id: &SessionId) {
    if let Ok(path) = path(inner, id) {
        // Most sessions have no such file; one that stays is read by nobody.
        drop(tokio::fs::remove_file(path).await);
    }
}
