//! The open documents of the user's editor, whose text may not be saved.
//!
//! An editor opens paths by itself and follows links, so it cannot be held to a judged place like [`Held`]. Therefore it is
//! used only for files inside the project whose path has no links, and the path is checked before and after. A change
//! is read back from the disk, so a wrong answer of an editor cannot lose it.

use std::fmt::Debug;
use std::path::Path;

use crate::beneath::Node;
use crate::held::Held;
use crate::path::physical;

/// The documents that an editor offers. Its methods block, at most until their own deadline.
pub trait Documents: Send + Sync + Debug {
    /// Returns the text of a file as the editor shows it. `None` if the editor has not opened it or does not answer.
    fn read(&self, path: &Path) -> Option<String>;

    /// Replaces the text of a file. Returns whether the editor reports success.
    fn write(&self, path: &Path, text: &str) -> bool;
}

impl Held {
    /// Returns the text of the file in the user's editor, if the editor offers it and it is not longer than a limit.
    #[must_use]
    pub fn document(&self, limit_bytes: u64) -> Option<String> {
        let documents = self.documents.as_ref().filter(|_| self.is_plain())?;
        let text = documents.read(&self.place.real)?;
        // A link that was exchanged meanwhile may have led the editor elsewhere.
        (text.len() as u64 <= limit_bytes && self.is_plain()).then_some(text)
    }

    /// Replaces the text in the user's editor, which saves it. Returns whether the file then has the content.
    pub(crate) fn write_document(&self, content: &[u8]) -> bool {
        let Some(documents) = self.documents.as_ref().filter(|_| self.is_plain()) else { return false };
        let Ok(text) = std::str::from_utf8(content) else { return false };
        documents.write(&self.place.real, text)
            && self.read_saved(content.len() as u64).is_ok_and(|saved| saved == content)
    }

    /// Whether the place is a file inside the project with one name, whose path leads to it without links.
    fn is_plain(&self) -> bool {
        let status = self.status().ok().flatten();
        let is_one = status.is_some_and(|status| status.node == Node::File && status.links == 1);
        is_one
            && self.place.inside
            && self.place.path == self.place.real
            && physical(&self.place.path).is_ok_and(|real| real == self.place.real)
    }
}
