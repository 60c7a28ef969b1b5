//! Files as clients browse them: directory entries, contents and search results.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The kind of a directory entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum FileKind {
    /// A file.
    File,
    /// A directory.
    Directory,
}

/// The kind of a change to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum FileChange {
    /// The file was created.
    Add,
    /// The content of the file changed.
    Change,
    /// The file was deleted.
    Unlink,
}

/// An entry of a directory, as `GET /file` lists it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileNode {
    /// The file name.
    pub name: String,
    /// The path relative to the directory of the request. The path of a directory ends with `/`.
    pub path: String,
    /// The absolute path.
    pub absolute: String,
    /// The kind of entry.
    #[serde(rename = "type")]
    pub kind: FileKind,
    /// Whether an ignore file matches it.
    pub ignored: bool,
}

/// The kind of a file's content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ContentKind {
    /// UTF-8 text.
    Text,
    /// Other data, encoded in base64.
    Binary,
}

/// The content of a file, as `GET /file/content` returns it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileContent {
    /// The kind of content.
    #[serde(rename = "type")]
    pub kind: ContentKind,
    /// The text without leading and trailing white space, or the bytes in base64.
    pub content: String,
    /// `base64` for binary content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encoding: Option<String>,
    /// The media type of binary content.
    #[serde(default, rename = "mimeType", skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
}

/// A string wrapped in an object, as in search results.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Text {
    /// The text.
    pub text: String,
}

/// A matching line, as `GET /find` lists it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TextMatch {
    /// The file, relative to the directory of the request.
    pub path: Text,
    /// The line with its line ending.
    pub lines: Text,
    /// The line number, starting at 1.
    pub line_number: u64,
    /// The offset of the line in the file, in bytes.
    pub absolute_offset: u64,
    /// The matches in the line.
    pub submatches: Vec<Submatch>,
}

/// A match within a line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Submatch {
    /// The matching text.
    #[serde(rename = "match")]
    pub matched: Text,
    /// The start of the match in the line, in bytes.
    pub start: usize,
    /// The end of the match in the line, in bytes.
    pub end: usize,
}
