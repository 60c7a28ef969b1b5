//! Diagnostics: reading them from a server, and keeping the last ones of each file.
//!
//! The number of diagnostics and files and the length of texts are limited. Errors are kept before others.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::de::{IgnoredAny, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::sync::watch;

use crate::error::cut_to;

/// The errors of a file that are kept, and the other diagnostics.
const MAX_PER_FILE: usize = 500;
/// The entries of a list that are read.
const MAX_READ: usize = 200_000;
/// The files whose diagnostics are kept.
const MAX_FILES: usize = 2000;
/// The longest text of a diagnostic.
const MAX_TEXT_CHARS: usize = 1000;
/// The longest name of a source or a code.
const MAX_NAME_CHARS: usize = 100;

/// How serious a diagnostic is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The code does not work.
    Error,
    /// It may not do what its author means.
    Warning,
    /// A remark.
    Information,
    /// A suggestion.
    Hint,
}

impl Severity {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Error => "ERROR",
            Self::Warning => "WARNING",
            Self::Information => "INFORMATION",
            Self::Hint => "HINT",
        }
    }
}

/// The number of diagnostics of each kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Errors.
    pub error: usize,
    /// Warnings.
    pub warning: usize,
    /// Remarks.
    pub information: usize,
    /// Suggestions.
    pub hint: usize,
}

impl Counts {
    /// Counts diagnostics.
    pub(crate) fn of<'a>(diagnostics: impl IntoIterator<Item = &'a Diagnostic>) -> Self {
        let mut counts = Self::default();
        for diagnostic in diagnostics {
            match diagnostic.level() {
                Severity::Error => counts.error += 1,
                Severity::Warning => counts.warning += 1,
                Severity::Information => counts.information += 1,
                Severity::Hint => counts.hint += 1,
            }
        }
        counts
    }
}

/// A position in a document, counted from 0. Characters are units of the encoding that the server uses.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Position {
    /// The line.
    #[serde(deserialize_with = "number")]
    pub line: u32,
    /// The character in the line.
    #[serde(deserialize_with = "number")]
    pub character: u32,
}

/// A piece of a document.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Range {
    /// The first position.
    pub start: Position,
    /// The position after it.
    pub end: Position,
}

/// A remark of a server about a document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Diagnostic {
    /// The piece that it is about.
    #[serde(default)]
    pub range: Range,
    /// 1 for an error, 2 for a warning, 3 and 4 for less.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub severity: Option<u8>,
    /// A text or a number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<Value>,
    /// The part of the server that found it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The text, on one line.
    pub message: String,
}

impl Diagnostic {
    /// Reports whether it is an error. One without a severity is.
    #[must_use]
    pub fn is_error(&self) -> bool {
        self.level() == Severity::Error
    }

    /// How serious it is. One without a severity is an error.
    #[must_use]
    pub fn level(&self) -> Severity {
        match self.severity {
            None | Some(1) => Severity::Error,
            Some(2) => Severity::Warning,
            Some(4) => Severity::Hint,
            Some(_) => Severity::Information,
        }
    }

    fn cleaned(self) -> Self {
        let code = self.code.and_then(|code| match code {
            Value::String(text) => Some(Value::String(cut_to(&text, MAX_NAME_CHARS))),
            Value::Number(number) => Some(Value::Number(number)),
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
        });
        Self {
            message: cut_to(&self.message, MAX_TEXT_CHARS),
            source: self.source.map(|source| cut_to(&source, MAX_NAME_CHARS)),
            code,
            ..self
        }
    }
}

/// Reads a number of any kind.
fn number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    let value = Value::deserialize(deserializer)?;
    let number = value.as_u64().or_else(|| value.as_f64().map(|number| number.max(0.0) as u64));
    Ok(u32::try_from(number.unwrap_or(0)).unwrap_or(u32::MAX))
}

/// The params of `textDocument/publishDiagnostics`.
#[derive(Deserialize)]
pub(crate) struct Published {
    pub(crate) uri: String,
    #[serde(default)]
    pub(crate) version: Option<i64>,
    #[serde(default)]
    pub(crate) diagnostics: Diagnostics,
}

/// The answer to `textDocument/diagnostic`.
#[derive(Deserialize)]
pub(crate) struct Pulled {
    #[serde(default)]
    pub(crate) kind: Option<String>,
    #[serde(default)]
    pub(crate) items: Diagnostics,
    #[serde(default, rename = "relatedDocuments")]
    pub(crate) related: HashMap<String, Self>,
}

/// A limited list. Entries that are no diagnostics are ignored.
#[derive(Default)]
pub(crate) struct Diagnostics(pub(crate) Vec<Diagnostic>);

impl<'de> Deserialize<'de> for Diagnostics {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct List;
        impl<'de> Visitor<'de> for List {
            type Value = Diagnostics;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a list of diagnostics")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Diagnostics, A::Error> {
                let (mut errors, mut others) = (Vec::new(), Vec::new());
                for _ in 0..MAX_READ {
                    let Some(entry) = list.next_element::<Box<RawValue>>()? else {
                        errors.append(&mut others);
                        return Ok(Diagnostics(errors));
                    };
                    let Ok(diagnostic) = serde_json::from_str::<Diagnostic>(entry.get()) else { continue };
                    let kept = if diagnostic.is_error() { &mut errors } else { &mut others };
                    if kept.len() < MAX_PER_FILE {
                        kept.push(diagnostic.cleaned());
                    }
                }
                while list.next_element::<IgnoredAny>()?.is_some() {}
                errors.append(&mut others);
                Ok(Diagnostics(errors))
            }
        }
        deserializer.deserialize_seq(List)
    }
}

/// The diagnostics of one file.
#[derive(Debug, Clone, Default)]
pub(crate) struct OfFile {
    pub(crate) list: Arc<[Diagnostic]>,
    /// The version of the document that they are for, if the server reports it.
    pub(crate) version: Option<i64>,
    /// The number of the change that brought them.
    pub(crate) at: u64,
}

/// The last diagnostics of a server.
pub(crate) struct Store {
    files: Mutex<HashMap<PathBuf, OfFile>>,
    changes: watch::Sender<u64>,
}

impl Default for Store {
    fn default() -> Self {
        Self { files: Mutex::default(), changes: watch::channel(0).0 }
    }
}

impl Store {
    /// Replaces the diagnostics of a file. Returns `false` if too many files have some.
    pub(crate) fn put(&self, path: PathBuf, list: Vec<Diagnostic>, version: Option<i64>) -> bool {
        let mut files = self.lock();
        if files.len() >= MAX_FILES && !files.contains_key(&path) {
            // Files without diagnostics are forgotten first.
            files.retain(|_, file| !file.list.is_empty());
            if files.len() >= MAX_FILES {
                return false;
            }
        }
        let mut at = 0;
        self.changes.send_modify(|changes| {
            *changes += 1;
            at = *changes;
        });
        files.insert(path, OfFile { list: list.into(), version, at });
        true
    }

    /// The diagnostics of a file.
    pub(crate) fn of(&self, path: &Path) -> OfFile {
        self.lock().get(path).cloned().unwrap_or_default()
    }

    /// The diagnostics of all files.
    pub(crate) fn all(&self) -> HashMap<PathBuf, Arc<[Diagnostic]>> {
        let files = self.lock();
        let files = files.iter().filter(|(_, file)| !file.list.is_empty());
        files.map(|(path, file)| (path.clone(), file.list.clone())).collect()
    }

    /// Follows the number of changes.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// The number of changes.
    pub(crate) fn count(&self) -> u64 {
        *self.changes.borrow()
    }

    pub(crate) fn clear(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<PathBuf, OfFile>> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_limited_and_cleaned() {
        let one = r#"{"range":{"start":{"line":-4,"character":1e30},"end":{"line":0,"character":0}},"severity":1,"code":{},"message":"a\n\u001b[31mb"}"#;
        let warning = r#"{"message":"w","severity":2}"#;
        let list = [vec![warning; 2 * MAX_PER_FILE], vec!["7", one], vec![one; 2 * MAX_PER_FILE]].concat();
        let text = format!(r#"{{"uri":"file:///a","diagnostics":[{}]}}"#, list.join(","));
        let read: Published = serde_json::from_str(&text).unwrap();
        let list = read.diagnostics.0;
        assert_eq!(list.len(), 2 * MAX_PER_FILE);
        assert!(list[0].is_error() && !list[MAX_PER_FILE].is_error());
        assert_eq!(list[0].message, "a  [31mb");
        assert_eq!(list[0].range.start, Position { line: 0, character: u32::MAX });
        assert_eq!(list[0].code, None);
    }

    #[test]
    fn the_number_of_files_is_limited() {
        let store = Store::default();
        let diagnostic: Diagnostic = serde_json::from_str(r#"{"message":"x"}"#).unwrap();
        for number in 0..MAX_FILES {
            assert!(store.put(PathBuf::from(format!("/{number}")), vec![diagnostic.clone()], None));
        }
        assert!(!store.put("/more".into(), vec![diagnostic.clone()], None));
        assert!(store.put("/1".into(), Vec::new(), Some(3)));
        assert!(store.put("/more".into(), vec![diagnostic], None));
        assert_eq!(store.all().len(), MAX_FILES);
    }
}
