//! Reads files and directories of any size.
//!
//! A file is read as a stream: memory is bounded by the requested window, not by the file or its longest
//! line.

use std::io::Read;
use std::path::Path;
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use crate::{Error, Held};

/// The limit of characters of a line.
pub const MAX_LINE_CHARS: usize = 2000;

/// The number of bytes of a line that are kept: enough for [`MAX_LINE_CHARS`] of any width, and one more.
const MAX_LINE_BYTES: usize = (MAX_LINE_CHARS + 1) * 4;
/// The size of one read.
const CHUNK_BYTES: usize = 64 * 1024;
/// The time limit for counting the lines of a file.
const MAX_TIME: Duration = Duration::from_secs(30);
/// The limit of names from one directory.
const MAX_ENTRIES: usize = 200_000;
/// The share of control characters, in percent, at which a file is not text.
const MAX_CONTROL_PERCENT: usize = 30;
const BOM: &[u8] = b"\xef\xbb\xbf";

/// The kind of a file, according to its first bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Lines of text.
    Text,
    /// A picture of the given MIME type.
    Image(&'static str),
    /// A PDF document.
    Pdf,
    /// Anything else.
    Binary,
}

/// A window of a file.
#[derive(Debug, Clone, Copy)]
pub struct Window {
    /// The first line, counted from one.
    pub offset: usize,
    /// The limit of lines.
    pub limit: usize,
    /// The limit of bytes of text, including line ends.
    pub limit_bytes: usize,
}

/// The content of a window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// The lines, without their ends. Long ones are truncated and marked.
    pub lines: Vec<String>,
    /// The number of lines that were read; all lines of the file unless `capped`.
    pub total: usize,
    /// Whether there are lines after the window.
    pub more: bool,
    /// Whether `limit_bytes` ended the window. Counting stopped there, too.
    pub capped: bool,
}

/// The names in a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entries {
    /// Sorted; directories end with `/`.
    pub names: Vec<String>,
}

/// Determines the kind of a file from its first bytes.
pub fn sniff(sample: &[u8]) -> Kind {
    let starts = |magic: &[u8]| sample.starts_with(magic);
    if starts(b"\x89PNG\r\n\x1a\n") {
        return Kind::Image("image/png");
    }
    if starts(b"\xff\xd8\xff") {
        return Kind::Image("image/jpeg");
    }
    if starts(b"GIF87a") || starts(b"GIF89a") {
        return Kind::Image("image/gif");
    }
    if starts(b"RIFF") && sample.get(8..12) == Some(b"WEBP") {
        return Kind::Image("image/webp");
    }
    if starts(b"%PDF-") {
        return Kind::Pdf;
    }
    let control = sample.iter().filter(|b| matches!(b, 0..=8 | 14..=26 | 28..=31)).count();
    if sample.contains(&0) || control * 100 > sample.len() * MAX_CONTROL_PERCENT {
        return Kind::Binary;
    }
    Kind::Text
}

/// Reads the lines of a window from an open file and counts the rest.
pub fn read_lines(
    file: &mut impl Read,
    path: &Path,
    window: Window,
    cancel: &CancellationToken,
) -> Result<Page, Error> {
    let at = |source| Error::at(path, source);
    let deadline = Instant::now() + MAX_TIME;
    let mut chunk = vec![0; CHUNK_BYTES];
    let mut reader = Lines::new(window);
    loop {
        if cancel.is_cancelled() {
            return Err(Error::Cancelled);
        }
        if Instant::now() > deadline {
            let source = std::io::Error::new(std::io::ErrorKind::TimedOut, "reading takes too long");
            return Err(at(source));
        }
        let count = match file.read(&mut chunk) {
            Ok(count) => count,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(at(error)),
        };
        if count == 0 {
            break;
        }
        if !reader.push(&chunk[..count]) {
            break;
        }
    }
    Ok(reader.end())
}

struct Lines {
    window: Window,
    page: Page,
    bytes: usize,
    line: Vec<u8>,
    /// The bytes of the current line, including those that were dropped.
    length: usize,
}

impl Lines {
    fn new(window: Window) -> Self {
        let page = Page { lines: Vec::new(), total: 0, more: false, capped: false };
        Self { window, page, bytes: 0, line: Vec::new(), length: 0 }
    }

    /// Adds a part of the file. Returns `false` if no more is needed.
    fn push(&mut self, chunk: &[u8]) -> bool {
        for piece in chunk.split_inclusive(|byte| *byte == b'\n') {
            let (text, ended) = match piece.strip_suffix(b"\n") {
                Some(text) => (text, true),
                None => (piece, false),
            };
            let room = MAX_LINE_BYTES.saturating_sub(self.line.len());
            self.line.extend_from_slice(&text[..text.len().min(room)]);
            self.length += piece.len();
            if ended && !self.line_ended() {
                return false;
            }
        }
        true
    }

    fn line_ended(&mut self) -> bool {
        let line = std::mem::take(&mut self.line);
        self.length = 0;
        self.page.total += 1;
        if self.page.total < self.window.offset {
            return true;
        }
        if self.page.lines.len() >= self.window.limit {
            self.page.more = true;
            return true;
        }
        let first = self.page.total == 1;
        let line = if first { line.strip_prefix(BOM).unwrap_or(&line) } else { &line };
        let text = cut(&String::from_utf8_lossy(line.strip_suffix(b"\r").unwrap_or(line)));
        let size = text.len() + usize::from(!self.page.lines.is_empty());
        if self.bytes + size > self.window.limit_bytes {
            self.page.more = true;
            self.page.capped = true;
            return false;
        }
        self.bytes += size;
        self.page.lines.push(text);
        true
    }

    fn end(mut self) -> Page {
        if self.length > 0 && !self.page.capped {
            self.line_ended();
        }
        self.page
    }
}

fn cut(line: &str) -> String {
    match line.char_indices().nth(MAX_LINE_CHARS) {
        Some((end, _)) => format!("{}... (line truncated to {MAX_LINE_CHARS} chars)", &line[..end]),
        None => line.to_owned(),
    }
}

/// Lists a directory, including hidden and ignored entries.
pub fn list(directory: &Held) -> Result<Entries, Error> {
    let mut names = Vec::new();
    // A link to a directory is listed as one; a dangling link as a file.
    for (name, is_directory) in directory.entries(MAX_ENTRIES)? {
        let mut name = name.to_string_lossy().into_owned();
        if is_directory {
            name.push('/');
        }
        names.push(name);
    }
    names.sort_by_cached_key(|name| (name.to_lowercase(), name.clone()));
    Ok(Entries { names })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn page(content: &[u8], pieces: usize, window: Window) -> Page {
        let mut reader = Lines::new(window);
        for chunk in content.chunks(pieces.max(1)) {
            if !reader.push(chunk) {
                break;
            }
        }
        reader.end()
    }

    const ALL: Window = Window { offset: 1, limit: 2000, limit_bytes: 50 * 1024 };

    #[test]
    fn the_kind_is_determined_by_the_first_bytes() {
        let cases: [(&[u8], Kind); 9] = [
            (b"\x89PNG\r\n\x1a\n\0\0", Kind::Image("image/png")),
            (b"\xff\xd8\xff\xe0", Kind::Image("image/jpeg")),
            (b"%PDF-1.4\n", Kind::Pdf),
            (b"PK\x03\x04\x14\0", Kind::Binary),
            (b"h\0i\0", Kind::Binary),
            (b"caf\xe9\n", Kind::Text),
            (b"\x1b[31mred\x1b[0m", Kind::Text),
            (b"\x01\x02\x03a", Kind::Binary),
            (b"", Kind::Text),
        ];
        for (sample, expected) in cases {
            assert_eq!(sniff(sample), expected, "{sample:?}");
        }
    }

    #[test]
    fn ends_marks_and_bad_bytes_are_removed() {
        let cases: [(&[u8], &[&str]); 5] = [
            (b"a\r\nb\r\nc\r\n", &["a", "b", "c"]),
            (b"\xef\xbb\xbfhello", &["hello"]),
            (b"caf\xe9\n", &["caf\u{fffd}"]),
            (b"", &[]),
            (b"\n\n", &["", ""]),
        ];
        for (content, expected) in cases {
            assert_eq!(page(content, 3, ALL).lines, expected, "{content:?}");
        }
    }

    #[test]
    fn a_window_reports_omitted_lines() {
        let text = "1\n2\n3\n4\n";
        let found = page(text.as_bytes(), 100, Window { offset: 2, limit: 2, ..ALL });
        assert_eq!((found.lines, found.total, found.more), (vec!["2".into(), "3".into()], 4, true));
        let found = page(text.as_bytes(), 100, Window { limit_bytes: 3, ..ALL });
        assert_eq!((found.lines.len(), found.total, found.capped), (2, 3, true));
        let found = page(text.as_bytes(), 100, Window { limit: 0, ..ALL });
        assert_eq!((found.lines.len(), found.total, found.more), (0, 4, true));
    }

    proptest! {
        #[test]
        fn a_long_line_is_cut_between_characters(count in 1990usize..2010, sign in "[a\u{e9}\u{20ac}\u{1f600}]") {
            let line = sign.repeat(count);
            let found = page(line.as_bytes(), 7, ALL).lines.remove(0);
            let kept: String = line.chars().take(MAX_LINE_CHARS).collect();
            prop_assert!(found.starts_with(&kept));
            prop_assert_eq!(found.contains("truncated"), count > MAX_LINE_CHARS);
        }

        #[test]
        fn the_size_of_the_pieces_does_not_matter(content in "[ab\n\r]{0,60}", pieces in 1usize..10) {
            prop_assert_eq!(page(content.as_bytes(), pieces, ALL), page(content.as_bytes(), 1000, ALL));
        }
    }
}
