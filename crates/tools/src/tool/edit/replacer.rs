//! Finds the text that an imprecise quotation means.
//!
//! There are nine strategies, from strict to lenient. A later one is tried only if all before it find
//! nothing. A strategy returns the ranges that it would replace. Several ranges without one that is clearly
//! meant are an error.
//!
//! Every strategy finds only text that was quoted: what differs are blanks, empty lines and escapes. A text
//! that is merely similar is never replaced. Recorded work of models shows that the difference is often a
//! line that the model has not seen (`cargo xtask edits`).

use std::cell::OnceCell;
use std::ops::Range;

/// In larger texts only an exact copy is searched.
const MAX_LENIENT_BYTES: usize = 4 * 1024 * 1024;
/// The least number of letters and digits of a first or last line that serves as an anchor.
const MIN_ANCHOR_CHARS: usize = 3;
/// The columns of a tab.
const TAB_WIDTH: usize = 4;

/// The number of ranges to find.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    One,
    All,
}

/// The strategy that found a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Strategy {
    Simple,
    LineTrimmed,
    IndentationFlexible,
    WhitespaceNormalized,
    EscapeNormalized,
    TrimmedBoundary,
    BlockAnchor,
    ContextAware,
    MultiOccurrence,
}

/// The ranges to replace: sorted, without overlap, not empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) ranges: Vec<Range<usize>>,
    pub(super) strategy: Strategy,
}

/// The reason why nothing may be replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Miss {
    NotFound,
    /// The ranges that are meant equally well.
    Ambiguous(Vec<Range<usize>>),
}

type Search = fn(&Text, &Piece) -> Vec<Range<usize>>;

/// The strategies in order, without the last one, which chooses among their results.
const CHAIN: [(Strategy, Search); 8] = [
    (Strategy::Simple, simple),
    (Strategy::LineTrimmed, line_trimmed),
    (Strategy::IndentationFlexible, indentation_flexible),
    (Strategy::WhitespaceNormalized, whitespace_normalized),
    (Strategy::EscapeNormalized, escape_normalized),
    (Strategy::TrimmedBoundary, trimmed_boundary),
    (Strategy::BlockAnchor, block_anchor),
    (Strategy::ContextAware, context_aware),
];

/// Finds the range or all ranges that `find` means. `find` is not empty.
pub(super) fn locate(text: &str, find: &str, wanted: Wanted) -> Result<Found, Miss> {
    let text = Text::new(text);
    let piece = Piece::new(find);
    let lenient = text.all.len() <= MAX_LENIENT_BYTES && !find.trim().is_empty();
    for (strategy, search) in CHAIN.into_iter().take(if lenient { CHAIN.len() } else { 1 }) {
        let mut ranges = search(&text, &piece);
        ranges.sort_by_key(|range| (range.start, range.end));
        ranges.dedup();
        if ranges.len() > 1 && wanted == Wanted::One {
            return multi_occurrence(&text, &piece, &ranges);
        }
        if ranges.len() > 1 && matches!(strategy, Strategy::BlockAnchor | Strategy::ContextAware) {
            return Err(Miss::Ambiguous(ranges));
        }
        if !ranges.is_empty() {
            return Ok(Found { ranges: apart(ranges), strategy });
        }
    }
    Err(Miss::NotFound)
}

fn apart(ranges: Vec<Range<usize>>) -> Vec<Range<usize>> {
    let mut out: Vec<Range<usize>> = Vec::new();
    for range in ranges {
        if out.last().is_none_or(|last| last.end <= range.start) {
            out.push(range);
        }
    }
    out
}

/// A text and its lines.
struct Text<'a> {
    all: &'a str,
    /// Computed when they are first needed: an exact copy is found without them.
    lines: OnceCell<Vec<Range<usize>>>,
}

impl<'a> Text<'a> {
    fn new(all: &'a str) -> Self {
        Self { all, lines: OnceCell::new() }
    }

    fn lines(&self) -> &[Range<usize>] {
        self.lines.get_or_init(|| {
            let mut start = 0;
            let line = |line: &str| {
                let begun = start;
                start += line.len() + 1;
                begun..begun + line.len()
            };
            self.all.split('\n').map(line).collect()
        })
    }

    fn line(&self, index: usize) -> &'a str {
        &self.all[self.lines()[index].clone()]
    }

    fn block(&self, lines: Range<usize>) -> Vec<&'a str> {
        lines.map(|index| self.line(index)).collect()
    }

    /// The byte range of some lines, with the last newline if the quotation ends with one.
    fn bytes(&self, lines: Range<usize>, piece: &Piece) -> Range<usize> {
        let end = self.lines()[lines.end - 1].end;
        let newline = usize::from(piece.whole_lines && end < self.all.len());
        self.lines()[lines.start].start..end + newline
    }

    /// Every run of lines, as long as the quotation, that meets a condition.
    fn runs(&self, piece: &Piece, fits: impl Fn(&[&str]) -> bool) -> Vec<Range<usize>> {
        let count = piece.lines.len();
        let lines: Vec<&str> = self.block(0..self.lines().len());
        let runs = lines.windows(count).enumerate().filter(|(_, run)| fits(run));
        runs.map(|(start, _)| self.bytes(start..start + count, piece)).collect()
    }
}

/// The quotation and its lines.
struct Piece<'a> {
    all: &'a str,
    lines: Vec<&'a str>,
    /// Whether it ends with a newline, which is not counted as a line.
    whole_lines: bool,
}

impl<'a> Piece<'a> {
    fn new(all: &'a str) -> Self {
        let whole_lines = all.ends_with('\n');
        let lines = all.strip_suffix('\n').unwrap_or(all).split('\n').collect();
        Self { all, lines, whole_lines }
    }

    /// The first and the last line, if they are distinctive.
    fn anchors(&self) -> Option<(&'a str, &'a str)> {
        let (first, last) = (self.lines.first()?.trim(), self.lines.last()?.trim());
        let telling = first.chars().chain(last.chars()).filter(|c| c.is_alphanumeric()).count();
        let usable = self.lines.len() >= 3 && !first.is_empty() && !last.is_empty();
        (usable && telling >= MIN_ANCHOR_CHARS).then_some((first, last))
    }
}

/// 1: an exact copy. Overlapping copies count as several.
fn simple(text: &Text, piece: &Piece) -> Vec<Range<usize>> {
    let len = piece.all.len();
    let mut starts: Vec<usize> = text.all.match_indices(piece.all).map(|(at, _)| at).collect();
    starts.extend(text.all.rfind(piece.all));
    starts.into_iter().map(|at| at..at + len).collect()
}

/// 2: the same lines except for spaces at their ends.
fn line_trimmed(text: &Text, piece: &Piece) -> Vec<Range<usize>> {
    text.runs(piece, |run| run.iter().zip(&piece.lines).all(|(a, b)| a.trim_end() == b.trim_end()))
}

/// 3: the same lines with another indentation, if possible with the same relative steps, and if possible with the same blanks
/// inside.
fn indentation_flexible(text: &Text, piece: &Piece) -> Vec<Range<usize>> {
    let wanted = steps(&piece.lines);
    let trimmed = |run: &[&str]| run.iter().zip(&piece.lines).all(|(a, b)| a.trim() == b.trim());
    let texts: Vec<String> = piece.lines.iter().map(|line| indented(line).1).collect();
    let same = |run: &[&str]| run.iter().zip(&texts).all(|(line, text)| indented(line).1 == *text);
    let stepped = |fits: &dyn Fn(&[&str]) -> bool| text.runs(piece, |run| fits(run) && steps(run) == wanted);
    let searches: [&dyn Fn() -> Vec<Range<usize>>; 4] =
        [&|| stepped(&trimmed), &|| text.runs(piece, trimmed), &|| stepped(&same), &|| {
            text.runs(piece, same)
        }];
    searches.iter().map(|search| search()).find(|ranges| !ranges.is_empty()).unwrap_or_default()
}

/// The indentation of each line, as its rank among those of the block.
fn steps(lines: &[&str]) -> Vec<usize> {
    let width = |line: &&str| {
        let blanks = line.chars().take_while(|c| c.is_whitespace());
        blanks.map(|c| if c == '\t' { TAB_WIDTH } else { 1 }).sum::<usize>()
    };
    let widths: Vec<usize> = lines.iter().filter(|line| !line.trim().is_empty()).map(width).collect();
    let mut ranks = widths.clone();
    ranks.sort_unstable();
    ranks.dedup();
    widths.iter().map(|width| ranks.partition_point(|rank| rank < width)).collect()
}

/// 4: the same part of a line except for the width of blanks. A blank cannot match nothing.
fn whitespace_normalized(text: &Text, piece: &Piece) -> Vec<Range<usize>> {
    let [line] = piece.lines.as_slice() else { return Vec::new() };
    let key = collapsed(line.trim()).0;
    if !key.contains(' ') {
        return Vec::new();
    }
    (0..text.lines().len()).flat_map(|index| inline(text, index, &key, line)).collect()
}

/// The indentation of a line, and the rest with each run of spaces as one.
fn indented(line: &str) -> (&str, String) {
    let rest = line.trim_start();
    (&line[..line.len() - rest.len()], collapsed(rest.trim_end()).0)
}

/// The ranges of a collapsed key in one line, between word boundaries.
fn inline(text: &Text, index: usize, key: &str, find: &str) -> Vec<Range<usize>> {
    let line = text.line(index);
    let (flat, map) = collapsed(line);
    let is_word = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    let mut ranges = Vec::new();
    for (at, _) in flat.match_indices(key) {
        let end = at + key.len();
        let cuts = (is_word(flat[..at].chars().next_back()) && is_word(key.chars().next()))
            || (is_word(flat[end..].chars().next()) && is_word(key.chars().next_back()));
        if cuts {
            continue;
        }
        let (mut from, mut to) = (map[at], map[end]);
        if find.starts_with([' ', '\t']) {
            from = line[..from].trim_end_matches([' ', '\t']).len();
        }
        // The space after the key belongs to it only if the quotation has one there, too.
        to = line[..to].trim_end_matches([' ', '\t']).len();
        if find.ends_with([' ', '\t']) {
            to = line.len() - line[to..].trim_start_matches([' ', '\t']).len();
        }
        let start = text.lines()[index].start;
        ranges.push(start + from..start + to);
    }
    ranges
}

/// A line with each run of spaces as one, and the position of each byte in the line.
fn collapsed(line: &str) -> (String, Vec<usize>) {
    let (mut out, mut map) = (String::with_capacity(line.len()), Vec::with_capacity(line.len() + 1));
    for (at, c) in line.char_indices() {
        let blank = c == ' ' || c == '\t';
        if blank && out.ends_with(' ') {
            continue;
        }
        let before = out.len();
        out.push(if blank { ' ' } else { c });
        map.extend(std::iter::repeat_n(at, out.len() - before));
    }
    map.push(line.len());
    (out, map)
}

/// 5: the same text after `
/// `, `\"` and similar escapes are resolved.
fn escape_normalized(text: &Text, piece: &Piece) -> Vec<Range<usize>> {
    if !text.all.contains('\\') && !piece.all.contains('\\') {
        return Vec::new();
    }
    let (flat, map) = unescaped(text.all);
    let (wanted, _) = unescaped(piece.all);
    if wanted.trim().is_empty() {
        return Vec::new();
    }
    flat.match_indices(&wanted).map(|(at, found)| map[at]..map[at + found.len()]).collect()
}

/// A text without escapes, and the position of each byte in the text.
fn unescaped(text: &str) -> (String, Vec<usize>) {
    let (mut out, mut map) = (String::with_capacity(text.len()), Vec::with_capacity(text.len() + 1));
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let meant = match chars.peek() {
            Some((_, 'n')) if c == '\\' => Some('\n'),
            Some((_, 't')) if c == '\\' => Some('\t'),
            Some((_, next @ ('\'' | '"' | '`' | '\\' | '$' | '\n'))) if c == '\\' => Some(*next),
            Some(_) | None => None,
        };
        if meant.is_some() {
            chars.next();
        }
        let before = out.len();
        out.push(meant.unwrap_or(c));
        map.extend(std::iter::repeat_n(at, out.len() - before));
    }
    map.push(text.len());
    (out, map)
}

/// 6: the same text without the empty lines around it.
fn trimmed_boundary(text: &Text, piece: &Piece) -> Vec<Range<usize>> {
    let blank = |line: &&&str| line.trim().is_empty();
    let lines: Vec<&str> = piece.all.split('\n').collect();
    let before = lines.iter().take_while(blank).count();
    let after = lines.iter().rev().take_while(blank).count();
    if before + after == 0 || before + after >= lines.len() {
        return Vec::new();
    }
    let core = lines[before..lines.len() - after].join("\n");
    let at_line_start =
        |at: usize| before == 0 || text.all[..at].is_empty() || text.all[..at].ends_with('\n');
    let at_line_end = |at: usize| after == 0 || text.all[at..].is_empty() || text.all[at..].starts_with('\n');
    let mut ranges = Vec::new();
    for (start, _) in text.all.match_indices(&core) {
        let end = start + core.len();
        if at_line_start(start) && at_line_end(end) {
            // Existing empty lines are replaced by those of the quotation.
            let head = text.all[..start].bytes().rev().take(before).take_while(|b| *b == b'\n').count();
            let tail = text.all[end..].bytes().take(after).take_while(|b| *b == b'\n').count();
            ranges.push(start - head..end + tail);
        }
    }
    ranges
}

/// 7: a block with the same first and last line, whose inside differs only in blanks beside punctuation.
fn block_anchor(text: &Text, piece: &Piece) -> Vec<Range<usize>> {
    let Some((first, last)) = piece.anchors() else { return Vec::new() };
    let wanted: Vec<String> = inside(&piece.lines).map(tight).collect();
    text.runs(piece, |run| {
        run[0].trim() == first
            && run[run.len() - 1].trim() == last
            && inside(run).map(tight).eq(wanted.iter().map(String::as_str))
    })
}

fn inside<'a, 'b>(lines: &'b [&'a str]) -> impl Iterator<Item = &'a str> + use<'a, 'b> {
    lines[1..lines.len() - 1].iter().copied()
}

/// A line without blanks beside punctuation, and each other run of blanks as one space. `f( a, b )` and `f(a,b)` are the same,
/// but `a b` and `ab` are not.
fn tight(line: &str) -> String {
    let flat = collapsed(line.trim()).0;
    let is_word = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    let mut out = String::with_capacity(flat.len());
    let mut chars = flat.chars().peekable();
    while let Some(c) = chars.next() {
        let between = c == ' ' && is_word(out.chars().next_back()) && is_word(chars.peek().copied());
        if c != ' ' || between {
            out.push(c);
        }
    }
    out
}

/// 8: a block with the same lines, between which other lines are empty.
fn context_aware(text: &Text, piece: &Piece) -> Vec<Range<usize>> {
    let Some((first, last)) = piece.anchors() else { return Vec::new() };
    let filled = |line: &&&str| !line.trim().is_empty();
    let wanted: Vec<String> = piece.lines.iter().filter(filled).map(|line| tight(line)).collect();
    let count = text.lines().len();
    let mut ranges = Vec::new();
    for start in (0..count).filter(|at| text.line(*at).trim() == first) {
        let mut left = wanted.iter();
        // Not more empty lines than the quotation has lines, so that one block takes linear time.
        let end = (start..count.min(start + 2 * piece.lines.len())).find(|at| {
            let line = text.line(*at);
            let differs = !line.trim().is_empty() && left.next().is_none_or(|wanted| *wanted != tight(line));
            differs || left.len() == 0
        });
        if let Some(end) = end.filter(|end| left.len() == 0 && text.line(*end).trim() == last) {
            ranges.push(text.bytes(start..end + 1, piece));
        }
    }
    ranges
}

/// 9: of several ranges, the one with more exactly equal lines than any other.
fn multi_occurrence(text: &Text, piece: &Piece, ranges: &[Range<usize>]) -> Result<Found, Miss> {
    let exact = |range: &Range<usize>| {
        let lines = text.all[range.clone()].split('\n');
        lines.zip(&piece.lines).filter(|(a, b)| a == *b).count()
    };
    let scores: Vec<usize> = ranges.iter().map(exact).collect();
    let best = scores.iter().copied().max().unwrap_or(0);
    let mut winners = ranges.iter().zip(&scores).filter(|(_, score)| **score == best);
    match (winners.next(), winners.next()) {
        (Some((range, _)), None) => {
            Ok(Found { ranges: vec![range.clone()], strategy: Strategy::MultiOccurrence })
        }
        _ => Err(Miss::Ambiguous(ranges.to_vec())),
    }
}

#[cfg(test)]
mod tests;
