//! The text of files, and changes that keep the rest.
//!
//! A [`TextFile`] has its text with plain newlines, and applies a change without touching the other bytes:
//! byte order mark, line endings and everything outside the replaced ranges are kept.

use std::io;
use std::ops::Range;
use std::path::Path;

use crate::Error;

/// The limit for the size of a file that is edited or compared.
pub const MAX_TEXT_BYTES: u64 = 32 * 1024 * 1024;

const BOM: &str = "\u{feff}";

/// A text file in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextFile {
    /// The text without byte order mark and with `\n` line endings.
    pub text: String,
    /// Whether the file starts with a byte order mark.
    pub bom: bool,
    /// Whether most lines end with `\r\n`.
    pub crlf: bool,
    /// The positions in `text` of newlines that have a `\r` in the file, sorted.
    returns: Vec<usize>,
}

impl TextFile {
    /// Parses the content of a file.
    pub fn parse(content: &str) -> Self {
        let (bom, content) = match content.strip_prefix(BOM) {
            Some(rest) => (true, rest),
            None => (false, content),
        };
        if !content.contains('\r') {
            return Self { text: content.to_owned(), bom, crlf: false, returns: Vec::new() };
        }
        let mut text = String::with_capacity(content.len());
        let mut returns = Vec::new();
        for line in content.split_inclusive('\n') {
            match line.strip_suffix("\r\n") {
                Some(line) => {
                    text.push_str(line);
                    returns.push(text.len());
                    text.push('\n');
                }
                None => text.push_str(line),
            }
        }
        let crlf = returns.len() * 2 > text.matches('\n').count();
        Self { text, bom, crlf, returns }
    }

    /// Returns the file's content with each range of `text` replaced by `new`.
    ///
    /// The ranges are sorted and do not overlap. `new` gets the file's line ending.
    pub fn replaced(&self, ranges: &[Range<usize>], new: &str) -> String {
        self.put_back(ranges.iter().map(|range| (range, new)))
    }

    /// Returns the file's content with each range of `text` replaced by its own text.
    ///
    /// The same conditions hold as for [`TextFile::replaced`].
    pub fn changed(&self, edits: &[(Range<usize>, String)]) -> String {
        self.put_back(edits.iter().map(|(range, new)| (range, new.as_str())))
    }

    fn put_back<'a>(&self, edits: impl Iterator<Item = (&'a Range<usize>, &'a str)>) -> String {
        let mut out = String::new();
        if self.bom {
            out.push_str(BOM);
        }
        let mut at = 0;
        for (range, new) in edits {
            self.copy(at..range.start, &mut out);
            out.push_str(&self.adapted(new));
            at = range.end;
        }
        self.copy(at..self.text.len(), &mut out);
        out
    }

    fn copy(&self, range: Range<usize>, out: &mut String) {
        let first = self.returns.partition_point(|at| *at < range.start);
        let mut from = range.start;
        for at in self.returns[first..].iter().take_while(|at| **at < range.end) {
            out.push_str(&self.text[from..*at]);
            out.push('\r');
            from = *at;
        }
        out.push_str(&self.text[from..range.end]);
    }

    fn adapted(&self, new: &str) -> String {
        let plain = new.replace("\r\n", "\n");
        if self.crlf { plain.replace('\n', "\r\n") } else { plain }
    }
}

/// Replaces a file's content atomically, like [`Held::write`](crate::Held::write).
pub fn write_atomic(path: &Path, content: &[u8]) -> Result<(), Error> {
    // A link at the end of the path is not followed.
    let name = path.file_name().zip(path.parent());
    let (name, parent) = name.ok_or_else(|| {
        Error::at(path, io::Error::new(io::ErrorKind::IsADirectory, "a file name is missing"))
    })?;
    crate::hold(parent)?.child(name).write(content, None).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_change_keeps_mark_and_line_endings() {
        let cases = [
            ("\u{feff}hello\nworld\n", 0..5, "HELLO", "\u{feff}HELLO\nworld\n"),
            ("a\r\nb\r\nc\r\n", 0..3, "a\nB", "a\r\nB\r\nc\r\n"),
            ("a\r\nb\nc\n", 4..5, "x\ny", "a\r\nb\nx\ny\n"),
            ("a\nb", 2..3, "x\r\ny", "a\nx\ny"),
        ];
        for (content, range, new, expected) in cases {
            assert_eq!(TextFile::parse(content).replaced(&[range], new), expected, "{content:?}");
        }
    }

    proptest! {
        #[test]
        fn a_file_put_back_unchanged_is_the_same(content in "(\u{feff})?([ab\u{e9}]|\r\n|\n|\r){0,40}") {
            let file = TextFile::parse(&content);
            prop_assert_eq!(file.replaced(&[], ""), content);
        }
    }
}
