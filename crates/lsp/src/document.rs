//! The documents that are open at a server.
//!
//! A changed document is sent as one changed piece if the server supports that, and else as a whole. The number and size
//! of open documents are limited: the least recently used one is closed for another.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::uri;

/// The largest document.
pub(crate) const MAX_DOCUMENT_BYTES: usize = 2 * 1024 * 1024;
/// The number of open documents.
const MAX_OPEN: usize = 100;
/// The size of all open documents.
const MAX_OPEN_BYTES: usize = 32 * 1024 * 1024;
/// `TextDocumentSyncKind.Incremental`.
const INCREMENTAL: u64 = 2;

/// A notification: its method and its params.
pub(crate) type Notification = (&'static str, Value);

/// The unit of a position's `character`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Encoding {
    Utf8,
    Utf16,
}

impl Encoding {
    /// The length of a text.
    pub(crate) fn length(self, text: &str) -> usize {
        match self {
            Self::Utf8 => text.len(),
            Self::Utf16 => text.encode_utf16().count(),
        }
    }
}

/// The way in which a server wants to be told about changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sync {
    pub(crate) opens: bool,
    pub(crate) is_incremental: bool,
    pub(crate) save: Save,
    pub(crate) encoding: Encoding,
}

/// What a server wants to receive when a document is saved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Save {
    Nothing,
    Name,
    Text,
}

impl Sync {
    /// Reads the capabilities of a server.
    pub(crate) fn read(capabilities: &Value) -> Self {
        let sync = &capabilities["textDocumentSync"];
        let change = sync.as_u64().or_else(|| sync["change"].as_u64()).unwrap_or(0);
        let save = match &sync["save"] {
            Value::Bool(true) => Save::Name,
            Value::Object(save) if save.get("includeText") == Some(&Value::Bool(true)) => Save::Text,
            Value::Object(_) => Save::Name,
            _ if sync.is_number() => Save::Name,
            _ => Save::Nothing,
        };
        let is_utf8 = capabilities["positionEncoding"] == "utf-8";
        Self {
            opens: sync["openClose"] != false,
            is_incremental: change == INCREMENTAL,
            save,
            encoding: if is_utf8 { Encoding::Utf8 } else { Encoding::Utf16 },
        }
    }
}

/// The open documents.
#[derive(Debug)]
pub(crate) struct Documents {
    sync: Sync,
    open: HashMap<PathBuf, Document>,
    used: u64,
    bytes: usize,
}

#[derive(Debug)]
struct Document {
    version: i64,
    text: String,
    used: u64,
}

impl Documents {
    pub(crate) fn new(sync: Sync) -> Self {
        Self { sync, open: HashMap::new(), used: 0, bytes: 0 }
    }

    /// The version of an open document.
    pub(crate) fn version(&self, path: &Path) -> Option<i64> {
        self.open.get(path).map(|document| document.version)
    }

    /// The open documents.
    pub(crate) fn paths(&self) -> Vec<PathBuf> {
        self.open.keys().cloned().collect()
    }

    /// Opens or changes a document. Returns what the server must receive: nothing if it has this text.
    pub(crate) fn put(&mut self, path: &Path, text: &str, language: &str) -> Vec<Notification> {
        self.used += 1;
        let uri = uri::of(path);
        let sync = self.sync;
        let Some(document) = self.open.get_mut(path) else {
            return self.begin(path, text, language);
        };
        document.used = self.used;
        if document.text == text {
            return Vec::new();
        }
        document.version += 1;
        let changes = json!([change(&document.text, text, sync)]);
        let mut sent = vec![(
            "textDocument/didChange",
            json!({"textDocument": {"uri": uri, "version": document.version}, "contentChanges": changes}),
        )];
        self.bytes = self.bytes - document.text.len() + text.len();
        text.clone_into(&mut document.text);
        match sync.save {
            Save::Nothing => {}
            Save::Name => sent.push(("textDocument/didSave", json!({"textDocument": {"uri": uri}}))),
            Save::Text => {
                sent.push(("textDocument/didSave", json!({"textDocument": {"uri": uri}, "text": text})));
            }
        }
        sent
    }

    fn begin(&mut self, path: &Path, text: &str, language: &str) -> Vec<Notification> {
        let mut sent = Vec::new();
        while self.open.len() >= MAX_OPEN || self.bytes + text.len() > MAX_OPEN_BYTES {
            let oldest = self.open.iter().min_by_key(|(_, document)| document.used);
            let Some(oldest) = oldest.map(|(path, _)| path.clone()) else { break };
            sent.extend(self.close(&oldest));
        }
        self.bytes += text.len();
        let document = Document { version: 1, text: text.to_owned(), used: self.used };
        self.open.insert(path.to_owned(), document);
        let item = json!({"uri": uri::of(path), "languageId": language, "version": 1, "text": text});
        sent.push(("textDocument/didOpen", json!({ "textDocument": item })));
        sent
    }

    /// Closes a document, if it is open.
    pub(crate) fn close(&mut self, path: &Path) -> Option<Notification> {
        let document = self.open.remove(path)?;
        self.bytes -= document.text.len();
        Some(("textDocument/didClose", json!({"textDocument": {"uri": uri::of(path)}})))
    }

    /// Converts a column in characters, counted from 0, to the unit of the server.
    pub(crate) fn column(&self, path: &Path, line: u32, column: u32) -> u32 {
        let text = self.open.get(path).map(|document| document.text.as_str()).unwrap_or_default();
        let line = usize::try_from(line).ok().and_then(|line| text.lines().nth(line)).unwrap_or_default();
        let before: String = line.chars().take(column as usize).collect();
        let beyond = (column as usize).saturating_sub(line.chars().count());
        let length = self.sync.encoding.length(&before) + if line.is_empty() { beyond } else { 0 };
        u32::try_from(length).unwrap_or(u32::MAX)
    }
}

/// The change from one text to another: the lines between the equal beginning and the equal end.
fn change(old: &str, new: &str, sync: Sync) -> Value {
    // A lone carriage return ends a line in the protocol, so such texts are sent as a whole.
    if !sync.is_incremental || old.contains('\r') || new.contains('\r') {
        return json!({ "text": new });
    }
    let same = old.bytes().zip(new.bytes()).take_while(|(old, new)| old == new).count();
    // Pieces begin and end at the beginning of a line, so columns need no conversion.
    let start = old.as_bytes()[..same].iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let (old_rest, new_rest) = (&old[start..], &new[start..]);
    let same = old_rest.bytes().rev().zip(new_rest.bytes().rev()).take_while(|(old, new)| old == new).count();
    let tail = &old_rest.as_bytes()[old_rest.len() - same..];
    // The first of the equal bytes may be in the middle of a line.
    let tail = tail.iter().position(|byte| *byte == b'\n').map_or(0, |at| tail.len() - at - 1);
    let end = old.len() - tail;
    let text = &new[start..new.len() - tail];
    let lines = |text: &str| text.bytes().filter(|byte| *byte == b'\n').count();
    let last = &old[old[..end].rfind('\n').map_or(0, |at| at + 1)..end];
    json!({
        "range": {
            "start": {"line": lines(&old[..start]), "character": 0},
            "end": {"line": lines(&old[..end]), "character": sync.encoding.length(last)},
        },
        "text": text,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SYNC: Sync =
        Sync { opens: true, is_incremental: true, save: Save::Text, encoding: Encoding::Utf16 };

    /// Applies a change to a text, as a server does.
    fn apply(old: &str, change: &Value) -> String {
        let new = change["text"].as_str().unwrap();
        let Some(range) = change.get("range") else { return new.to_owned() };
        let at = |position: &Value| {
            let (line, character) =
                (position["line"].as_u64().unwrap(), position["character"].as_u64().unwrap());
            let start: usize = old.split_inclusive('\n').take(line as usize).map(str::len).sum();
            let (mut units, mut bytes) = (0, 0);
            for c in old[start..].chars() {
                if units >= character {
                    break;
                }
                units += c.len_utf16() as u64;
                bytes += c.len_utf8();
            }
            start + bytes
        };
        format!("{}{new}{}", &old[..at(&range["start"])], &old[at(&range["end"])..])
    }

    #[test]
    fn a_changed_piece_leads_to_the_new_text() {
        let texts = [
            "",
            "a",
            "a\n",
            "a\nb",
            "a\nb\n",
            "b\n",
            "a\nä😀b\nc\n",
            "a\nä😁b\nc\n",
            "a\n\n\nb\n",
            "a\n\nb\n",
            "aa\naa\naa",
            "aa\naa",
            "aa\nxaa\naa",
            "x\r\ny",
            "x\ny😀",
        ];
        for old in texts {
            for new in texts {
                let change = change(old, new, SYNC);
                assert_eq!(apply(old, &change), new, "{old:?} -> {new:?}: {change}");
            }
        }
        let small =
            change(&"line\n".repeat(1000), &("line\n".repeat(500) + "new\n" + &"line\n".repeat(500)), SYNC);
        assert!(small.to_string().len() < 120, "{small}");
    }

    #[test]
    fn documents_are_opened_changed_saved_and_closed() {
        let mut documents = Documents::new(SYNC);
        let path = |number: usize| PathBuf::from(format!("/d/{number}"));
        let methods =
            |sent: Vec<Notification>| sent.into_iter().map(|(method, _)| method).collect::<Vec<_>>();
        assert_eq!(methods(documents.put(&path(0), "a", "x")), ["textDocument/didOpen"]);
        assert_eq!(methods(documents.put(&path(0), "a", "x")), [""; 0]);
        let sent = methods(documents.put(&path(0), "b", "x"));
        assert_eq!(sent, ["textDocument/didChange", "textDocument/didSave"]);
        assert_eq!(documents.version(&path(0)), Some(2));
        for number in 1..MAX_OPEN {
            documents.put(&path(number), "x", "x");
        }
        let sent = documents.put(&path(MAX_OPEN), "x", "x");
        assert_eq!(sent[0], ("textDocument/didClose", json!({"textDocument": {"uri": "file:///d/0"}})));
        assert_eq!(documents.open.len(), MAX_OPEN);
    }
}
