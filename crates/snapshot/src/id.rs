//! Names of file contents: git's object ids.
//!
//! A [`Content`] identifies a file by its kind and the id of its bytes, without its bytes, so that the
//! planner can compare files as values.

use std::fmt;

/// The number of bytes of an object id.
const ID_BYTES: usize = 20;

/// The id of any object.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectId(pub(crate) [u8; ID_BYTES]);

/// The id of a tree: 40 hexadecimal digits, which recorded parts store as `snapshot`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TreeId(pub(crate) ObjectId);

/// The kinds of entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A file.
    File,
    /// An executable file.
    Executable,
    /// A symbolic link; its bytes are its target.
    Link,
}

/// A file, identified by its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Content {
    /// The kind.
    pub kind: Kind,
    /// The id of the bytes.
    pub id: ObjectId,
}

/// A file with its content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// The kind.
    pub kind: Kind,
    /// Its bytes, or the target of a link.
    pub bytes: Vec<u8>,
}

impl File {
    /// Returns a file that is not executable.
    pub fn plain(bytes: impl Into<Vec<u8>>) -> Self {
        Self { kind: Kind::File, bytes: bytes.into() }
    }

    /// Returns its identification.
    pub fn content(&self) -> Content {
        Content { kind: self.kind, id: crate::object::hash("blob", &self.bytes) }
    }
}

impl Kind {
    /// The mode of a tree's entry.
    pub(crate) fn mode(self) -> &'static str {
        match self {
            Self::File => "100644",
            Self::Executable => "100755",
            Self::Link => "120000",
        }
    }

    /// The kind with this mode. Equivalent modes of other programs are accepted.
    pub(crate) fn of_mode(mode: &[u8]) -> Option<Self> {
        match mode {
            b"100644" | b"100664" => Some(Self::File),
            b"100755" => Some(Self::Executable),
            b"120000" => Some(Self::Link),
            _ => None,
        }
    }
}

impl ObjectId {
    /// Parses 40 hexadecimal digits.
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.as_bytes();
        if digits.len() != 2 * ID_BYTES {
            return None;
        }
        let mut id = [0; ID_BYTES];
        for (byte, pair) in id.iter_mut().zip(digits.chunks_exact(2)) {
            let digit = |at: u8| (at as char).to_digit(16);
            let value = digit(pair[0])? * 16 + digit(pair[1])?;
            *byte = u8::try_from(value).ok()?;
        }
        Some(Self(id))
    }
}

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl TreeId {
    /// Parses 40 hexadecimal digits.
    pub fn parse(text: &str) -> Option<Self> {
        ObjectId::parse(text).map(Self)
    }
}

impl fmt::Display for TreeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl fmt::Debug for TreeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_content_has_the_id_that_git_gives_it() {
        assert_eq!(File::plain("").content().id.to_string(), "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391");
        assert_eq!(File::plain("x = 1\n").content().id.to_string()[..7], *"7d4290a");
    }

    #[test]
    fn only_a_written_id_is_parsed() {
        let text = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";
        assert_eq!(TreeId::parse(text).unwrap().to_string(), text);
        for wrong in ["", "4b825dc", &text[1..], "zb825dc642cb6eb9a060e54bf8d69288fbee4904"] {
            assert_eq!(TreeId::parse(wrong), None, "{wrong}");
        }
    }
}
