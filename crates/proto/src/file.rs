//! Files as clients browse them: entries, contents, lines that were found.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What an entry of a directory is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum FileKind {
    /// A file.
    File,
    /// A directory.
    Directory,
}

/// What happened to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum FileChange {
    /// It is there now.
    Add,
    /// It holds something else now.
    Change,
    /// It is gone.
    Unlink,
}

/// One entry of a directory, as `GET /file` lists it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileNode {
    /// Its name.
    pub name: String,
    /// Its path from the directory of the request; a directory's ends with `/`.
    pub path: String,
    /// Its absolute path.
    pub absolute: String,
    /// What it is.
    #[serde(rename = "type")]
    pub kind: FileKind,
    /// Whether an ignore file hides it.
    pub ignored: bool,
}

/// Whether a file is text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ContentKind {
    /// Text.
    Text,
    /// Anything else, in base64.
    Binary,
}

/// The content of a file, as `GET /file/content` gives it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileContent {
    /// What it is.
    #[serde(rename = "type")]
    pub kind: ContentKind,
    /// The text, without blanks around it, or the bytes in base64.
    pub content: String,
    /// `base64`, for what is no text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encoding: Option<String>,
    /// The MIME type of what is no text.
    #[serde(default, rename = "mimeType", skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
}

/// A text inside an object, as search results hold it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Text {
    /// The text.
    pub text: String,
}

/// A line that was found, as `GET /find` lists it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TextMatch {
    /// The file, from the directory of the request.
    pub path: Text,
    /// The line with its end.
    pub lines: Text,
    /// The line's number, from 1.
    pub line_number: u64,
    /// Where the line begins in the file, in bytes.
    pub absolute_offset: u64,
    /// What matched in it.
    pub submatches: Vec<Submatch>,
}

/// A part of a line that matched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Submatch {
    /// The part.
    #[serde(rename = "match")]
    pub matched: Text,
    /// Where it begins in the line, in bytes.
    pub start: usize,
    /// Where it ends.
    pub end: usize,
}
