//! Lines that match a regular expression.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use grep_matcher::Matcher as _;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkMatch};
use ignore::{DirEntry, WalkState};
use tokio_util::sync::CancellationToken;

use super::{Access, Judge, Stop, Withheld, blocking, filter, walk};
use crate::Error;

/// A file whose lines need more than this is skipped.
const MAX_LINE_BUFFER_BYTES: usize = 16 * 1024 * 1024;
/// Bytes kept of a matching line; the rest is never shown.
const MAX_KEPT_BYTES: usize = 16 * 1024;
/// Threads of one search.
const MAX_THREADS: usize = 8;

/// A search by content.
#[derive(Debug, Clone)]
pub struct Grep {
    /// The directory that is searched, links followed.
    pub root: PathBuf,
    /// The regular expression.
    pub pattern: String,
    /// A glob the file has to match.
    pub include: Option<String>,
    /// How many matching lines are wanted.
    pub limit: usize,
    /// The search ends after this time.
    pub within: Duration,
    /// Decides which files are opened.
    pub judge: Judge,
}

/// A matching line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// Counted from one.
    pub number: u64,
    /// Where it begins in the file, in bytes.
    pub offset: u64,
    /// The line with its end.
    pub text: String,
}

/// What a search by content found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Matches {
    /// Absolute path and matching lines, sorted by path.
    pub files: Vec<(PathBuf, Vec<Line>)>,
    /// Lines in all files.
    pub count: usize,
    /// Whether there are more than the limit.
    pub more: bool,
    /// Whether time ran out before everything was searched.
    pub late: bool,
    /// The files that were not opened.
    pub withheld: Withheld,
}

/// Searches all text files under the root.
pub async fn grep(query: Grep, cancel: &CancellationToken) -> Result<Matches, Error> {
    blocking(query.root.clone(), cancel, move |root, cancel| find(&root, &query, cancel)).await
}

/// Where a pattern matches in a text, in bytes; nowhere if it is no pattern.
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

/// What the threads of one search share.
struct Hunt<'a> {
    matcher: &'a RegexMatcher,
    limit: usize,
    stop: Stop,
    count: AtomicUsize,
    judge: &'a Judge,
    withheld: Mutex<Withheld>,
    found: Mutex<BTreeMap<PathBuf, Vec<Line>>>,
}

fn find(root: &Path, query: &Grep, cancel: CancellationToken) -> Result<Matches, Error> {
    let matcher = matcher(&query.pattern)?;
    let filter = query.include.as_deref().map(|glob| filter(root, [glob])).transpose()?;
    let hunt = Hunt {
        matcher: &matcher,
        limit: query.limit,
        stop: Stop::new(cancel, query.within),
        count: AtomicUsize::new(0),
        judge: &query.judge,
        withheld: Mutex::default(),
        found: Mutex::default(),
    };
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get).min(MAX_THREADS);
    walk(root, filter).threads(threads).build_parallel().run(|| {
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
    // The matcher's own message quotes the pattern inside a group the caller never wrote.
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
        // Judged before it is opened, so that neither lines nor counts tell what is in it.
        let access = self.judge.access(entry.path());
        if access != Access::Open {
            self.withheld.lock().unwrap_or_else(PoisonError::into_inner).admits(access);
            return WalkState::Continue;
        }
        let mut sink = Lines { hunt: self, lines: Vec::new(), binary: false };
        // A file that cannot be read is skipped; one bad file must not hide the rest.
        let searched = File::open(entry.path()).and_then(|file| {
            searcher.search_reader(self.matcher, Watched { file, stop: &self.stop }, &mut sink)
        });
        if searched.is_ok() && !sink.binary && !sink.lines.is_empty() {
            self.count.fetch_add(sink.lines.len(), Ordering::Relaxed);
            let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
            found.insert(entry.into_path(), sink.lines);
        }
        WalkState::Continue
    }
}

/// A file that seems to end when the search does, however long it is.
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
