//! Symbols of language servers that a prompt mentions.

use serde_json::{Value, json};

use crate::clean::clean_line;

/// The longest name.
const MAX_NAME_CHARS: usize = 100;
/// The lines that are attached of a symbol whose end the server does not report.
const LINES: u64 = 40;

/// A symbol and its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Symbol {
    pub(crate) name: String,
    /// The protocol's number.
    kind: u64,
    /// The file, relative to the directory if it is inside.
    pub(crate) path: String,
    start: Position,
    end: Position,
}

/// A position, counted from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Position {
    line: u64,
    character: u64,
}

impl Position {
    fn read(value: &Value) -> Option<Self> {
        Some(Self { line: value["line"].as_u64()?, character: value["character"].as_u64()? })
    }

    fn json(self) -> Value {
        json!({"line": self.line, "character": self.character})
    }
}

impl Symbol {
    /// Reads an entry of `GET /find/symbol`. One without a file of this machine or with a name that is not a word is
    /// left out.
    pub(crate) fn read(value: &Value, directory: &str) -> Option<Self> {
        let path = unescape(value["location"]["uri"].as_str()?.strip_prefix("file://")?)?;
        let range = &value["location"]["range"];
        let name = clean_line(value["name"].as_str()?);
        let is_word = !name.is_empty() && !name.contains(char::is_whitespace);
        let inside = path.strip_prefix(directory).and_then(|rest| rest.strip_prefix('/'));
        (is_word && name.chars().count() <= MAX_NAME_CHARS && path == clean_line(&path)).then(|| Self {
            kind: value["kind"].as_u64().unwrap_or(0),
            path: inside.unwrap_or(&path).to_owned(),
            start: Position::read(&range["start"]).unwrap_or(Position { line: 0, character: 0 }),
            end: Position::read(&range["end"]).unwrap_or(Position { line: 0, character: 0 }),
            name,
        })
    }

    /// The file and the line, as text.
    pub(crate) fn place(&self) -> String {
        format!("{}:{}", self.path, self.start.line + 1)
    }

    /// The path with the lines that are attached.
    pub(crate) fn file(&self) -> String {
        let start = self.start.line + 1;
        // Many servers report only the name of a symbol.
        let end = if self.end.line > self.start.line { self.end.line + 1 } else { start + LINES };
        format!("{}#{start}-{end}", self.path)
    }

    /// The recorded source of the attachment. `text` is the place in the prompt.
    pub(crate) fn source(&self, text: Value) -> Value {
        json!({
            "text": text,
            "type": "symbol",
            "path": self.path,
            "range": {"start": self.start.json(), "end": self.end.json()},
            "name": self.name,
            "kind": self.kind,
        })
    }
}

/// Decodes the escapes of an address.
fn unescape(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let digits = std::str::from_utf8(after.get(..2)?).ok()?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        rest = &after[2..];
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn symbol(uri: &str, name: &str) -> Option<Symbol> {
        let range = json!({"start": {"line": 4, "character": 2}, "end": {"line": 9, "character": 0}});
        let location = json!({"uri": uri, "range": range});
        Symbol::read(&json!({"name": name, "kind": 12, "location": location}), "/p")
    }

    #[test]
    fn a_symbol_has_the_lines_of_its_file() {
        let own = symbol("file:///p/src/a%20b.rs", "main").unwrap();
        assert_eq!((own.place(), own.file()), ("src/a b.rs:5".to_owned(), "src/a b.rs#5-10".to_owned()));
        assert_eq!(own.source(json!({}))["range"]["end"], json!({"line": 9, "character": 0}));
        assert_eq!(symbol("file:///other/x", "main").unwrap().path, "/other/x");
        for bad in ["http://x/a", "file:///p/%1b[31m", "file:///p/%zz", "file:///p/%"] {
            assert_eq!(symbol(bad, "main"), None, "{bad}");
        }
        for bad in ["", "two words", &"x".repeat(200)] {
            assert_eq!(symbol("file:///p/a", bad), None, "{bad}");
        }
    }
}
