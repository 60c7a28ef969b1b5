//! The result of a completed call.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

/// The result of a call.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Output {
    /// One line for the user.
    pub title: String,
    /// The text for the model.
    pub output: String,
    /// Facts for clients. `truncated` is always among them.
    pub metadata: Map<String, Value>,
    /// Files for the model.
    pub attachments: Vec<Attachment>,
}

/// A file that the model gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attachment {
    /// Its MIME type.
    pub mime: String,
    /// Its content as a `data:` URL.
    pub url: String,
    /// Its name, if it has one.
    pub filename: Option<String>,
}

impl Output {
    /// A result that was not truncated.
    pub fn new(title: impl Into<String>, output: impl Into<String>) -> Self {
        let output = Self { title: title.into(), output: output.into(), ..Self::default() };
        output.with("truncated", false)
    }

    /// Adds a fact to the metadata, or replaces the one of that name.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.metadata.insert(key.to_owned(), value.into());
        self
    }
}

impl Attachment {
    /// Wraps a file's content.
    pub fn new(mime: &str, content: &[u8]) -> Self {
        let url = format!("data:{mime};base64,{}", STANDARD.encode(content));
        Self { mime: mime.to_owned(), url, filename: None }
    }
}
