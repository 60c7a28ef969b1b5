//! Finds lines that match a regular expression.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use grep_matcher::Matcher as _;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkMatch};
use ignore::{DirEntry, WalkState};
use tokio_util::sync::CancellationToken;

use super::{Access, Globs, Judge, Selected, Stop, Withheld, blocking, walk};
use crate::{Error, Held};

/// The limit for the length of a line. Files with longer ones are skipped.
const MAX_LINE_BUFFER_BYTES: usize = 16 * 1024 * 1024;
/// The number of bytes of a matching line that are kept.
const MAX_KEPT_BYTES: usize = 16 * 1024;
/// The limit of threads of a search.
const MAX_THREADS: usize = 8;

/// A search by content.
#[derive(Debug, Clone)]
pub struct Grep {
    /// The directory.
    pub root: Held,
    /// The regular expression.
    pub pattern: String,
    /// The globs of which files must match one; all files without globs.
    pub include: Globs,
    /// The limit of matching lines.
    pub limit: usize,
    /// The time limit.
    pub within: Duration,
    /// Decides which files are read.
    pub judge: Judge,
}

/// A matching line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// The number of the line, starting from one.
    pub number: u64,
    /// The position in the file, in bytes.
    pub offset: u64,
    /// The line with its end.
    pub text: String,
}

/// The result of a search by content.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Matches {
    /// Absolute path and matching lines, sorted by path.
    pub files: Vec<(PathBuf, Vec<Line>)>,
    /// The number of lines in all files.
    pub count: usize,
    /// Whether there are more than the limit.
    pub more: bool,
    /// Whether the search exceeded its time limit.
    pub late: bool,
    /// The files that were not read.
    pub withheld: Withheld,
}

/// Searches all text files in the root.
pub async fn grep(query: Grep, cancel: &CancellationToken) -> Result<Matches, Error> {
    blocking(cancel, move |cancel| find(&query, cancel)).await
}

/// The ranges in which a pattern matches a text, in bytes. Empty if the pattern is invalid.
#[must_use]
pub fn spans(pattern: &str, text: &str) -> Vec<Range<usize>> {
    let Ok(matcher) = matcher(pattern) else { return Vec::new() };
    let mut spans = Vec::new();
    // A matcher of regular expressions cannot fail on a text in memory.
    let _ = matcher.find_iter(text.trim_end_matches(['\r', '\n']).as_bytes(), |found| {
        spans.push(found.start()..found.end());
        true
    });
    spans
}

/// The shared state of a search's threads.
struct Hunt<'a> {
    matcher: &'a RegexMatcher,
    limit: usize,
    stop: Stop,
    count: AtomicUsize,
    root: &'a Held,
    selected: &'a Selected,
    judge: &'a Judge,
    withheld: Mutex<Withheld>,
    found: Mutex<BTreeMap<PathBuf, Vec<Line>>>,
}

fn find(query: &Grep, cancel: CancellationToken) -> Result<Matches, Error> {
    let root = query.root.place.real.as_path();
    let matcher = matcher(&query.pattern)?;
    let selected = Selected::by(&query.include, root)?;
    let hunt = Hunt {
        matcher: &matcher,
        limit: query.limit,
        stop: Stop::new(cancel, query.within),
        count: AtomicUsize::new(0),
        root: &query.root,
        selected: &selected,
        judge: &query.judge,
        withheld: Mutex::default(),
        found: Mutex::default(),
    };
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get).min(MAX_THREADS);
    walk(root, selected.exact.clone()).threads(threads).build_parallel().run(|| {
        let mut searcher = searcher();
        let hunt = &hunt;
        Box::new(move |entry| hunt.visit(&mut searcher, entry))
    });
    let late = hunt.stop.late();
    let found = hunt.found.into_inner().unwrap_or_else(PoisonError::into_inner);
    let withheld = hunt.withheld.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok(Matches { withheld, ..cut(found, query.limit, late) })
}

fn matcher(pattern: &str) -> Result<RegexMatcher, Error> {
    // The matcher's message quotes the pattern in a group that the caller has not written.
    regex_syntax::Parser::new()
        .parse(pattern)
        .map_err(|error| Error::Pattern { message: error.to_string() })?;
    RegexMatcherBuilder::new()
        .line_terminator(Some(b'\n'))
        .build(pattern)
        .map_err(|error| Error::Pattern { message: error.to_string() })
}

fn searcher() -> Searcher {
    SearcherBuilder::new()
        .line_number(true)
        .binary_detection(BinaryDetection::quit(0))
        .heap_limit(Some(MAX_LINE_BUFFER_BYTES))
        .build()
}

fn cut(found: BTreeMap<PathBuf, Vec<Line>>, limit: usize, late: bool) -> Matches {
    let mut matches = Matches { late, ..Matches::default() };
    for (path, mut lines) in found {
        let room = limit - matches.count;
        matches.more |= lines.len() > room;
        lines.truncate(room);
        matches.count += lines.len();
        if !lines.is_empty() {
            matches.files.push((path, lines));
        }
    }
    matches
}

impl Hunt<'_> {
    fn visit(&self, searcher: &mut Searcher, entry: Result<DirEntry, ignore::Error>) -> WalkState {
        if self.stop.now() || self.count.load(Ordering::Relaxed) > self.limit {
            return WalkState::Quit;
        }
        let Ok(entry) = entry else { return WalkState::Continue };
        if !entry.file_type().is_some_and(|kind| kind.is_file()) {
            return WalkState::Continue;
        }
        let root = &self.root.place.real;
        let Ok(below) = entry.path().strip_prefix(root) else { return WalkState::Continue };
        if !self.selected.admits(root, below) {
            return WalkState::Continue;
        }
        // Checked before the file is opened, so that neither lines nor counts reveal its content.
        let access = self.judge.access(entry.path());
        if access != Access::Open {
            self.withheld.lock().unwrap_or_else(PoisonError::into_inner).admits(access);
            return WalkState::Continue;
        }
        let mut sink = Lines { hunt: self, lines: Vec::new(), binary: false };
        // A file that cannot be read is skipped, so that one bad file does not hide the others.
        let searched = self.root.file_below(below).is_ok_and(|(file, _)| {
            searcher.search_reader(self.matcher, Watched { file, stop: &self.stop }, &mut sink).is_ok()
        });
        if searched && !sink.binary && !sink.lines.is_empty() {
            self.count.fetch_add(sink.lines.len(), Ordering::Relaxed);
            let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
            found.insert(entry.into_path(), sink.lines);
        }
        WalkState::Continue
    }
}

/// A file that appears to end when the search does, whatever its length.
struct Watched<'a> {
    file: File,
    stop: &'a Stop,
}

impl Read for Watched<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.stop.now() { Ok(0) } else { self.file.read(buffer) }
    }
}

struct Lines<'a> {
    hunt: &'a Hunt<'a>,
    lines: Vec<Line>,
    binary: bool,
}

impl Sink for Lines<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> Result<bool, io::Error> {
        let bytes = found.bytes();
        let text = String::from_utf8_lossy(&bytes[..bytes.len().min(MAX_KEPT_BYTES)]).into_owned();
        let (number, offset) = (found.line_number().unwrap_or(0), found.absolute_byte_offset());
        self.lines.push(Line { number, offset, text });
        Ok(self.lines.len() <= self.hunt.limit)
    }

    fn binary_data(&mut self, _: &Searcher, _: u64) -> Result<bool, io::Error> {
        self.binary = true;
        Ok(false)
    }
}
