//! Changes to be looked through: files in a tree, their hunks as rows.
//!
//! A patch is read once, into rows that say where in it their text is. A frame and a
//! turn of the wheel cost what is on the screen, however much there is.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use codewright_proto::{FileDiff, PermissionId, SessionId, VcsFile, VcsStatus};
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};

use crate::clean::clean_name;
use crate::diff::{self, Side};
use crate::theme::Theme;
use crate::{highlight, wrap};

mod tree;

pub(crate) use tree::Node;
use tree::Tree;

/// How many rows there are at most; of what is more the number is told.
const MAX_ROWS: usize = 400_000;
/// How many files are listed.
const MAX_FILES: usize = 5_000;
/// How much of a line is shown.
const MAX_LINE_CHARS: usize = 2_000;
/// From which width on the tree stands beside the changes.
const TREE_FROM: u16 = 80;
const TREE_WIDTH: u16 = 32;
/// From which width on old and new stand side by side.
const SPLIT_FROM: u16 = 90;

/// Whose changes they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Source {
    /// What git says of the directory since the last commit.
    WorkingTree,
    /// What git says of it since the branch began.
    Branch,
    /// What the prompts of a session did, one after another.
    Session(SessionId),
    /// What the last prompt of a session did.
    LastTurn(SessionId),
    /// What leave is asked for.
    Asked(PermissionId),
}

impl Source {
    pub(crate) fn title(&self) -> &'static str {
        match self {
            Self::WorkingTree => "working tree",
            Self::Branch => "branch",
            Self::Session(_) => "this session",
            Self::LastTurn(_) => "last turn",
            Self::Asked(_) => "asked for",
        }
    }
}

/// A file with what changed in it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) file: String,
    pub(crate) patch: String,
    pub(crate) additions: u64,
    pub(crate) deletions: u64,
    /// `A`, `D` or `M`.
    pub(crate) status: char,
}

impl From<VcsFile> for Change {
    fn from(file: VcsFile) -> Self {
        let status = match file.status {
            VcsStatus::Added => 'A',
            VcsStatus::Deleted => 'D',
            VcsStatus::Modified => 'M',
        };
        let patch = file.patch.unwrap_or_default();
        Self { file: file.file, patch, additions: file.additions, deletions: file.deletions, status }
    }
}

impl From<&FileDiff> for Change {
    fn from(diff: &FileDiff) -> Self {
        let status = match diff.status.as_deref() {
            Some("added") => 'A',
            Some("deleted") => 'D',
            Some(_) | None => 'M',
        };
        Self {
            file: diff.file.clone().unwrap_or_default(),
            patch: diff.patch.clone().unwrap_or_default(),
            additions: diff.additions,
            deletions: diff.deletions,
            status,
        }
    }
}

impl Change {
    /// A number that another change of the file would not have.
    fn mark(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        (&self.file, &self.patch).hash(&mut hasher);
        hasher.finish()
    }
}

/// Changes of one file after another are one entry, in their order.
pub(crate) fn joined(changes: impl IntoIterator<Item = Change>) -> Vec<Change> {
    let mut files: Vec<Change> = Vec::new();
    for change in changes {
        match files.iter_mut().find(|known| known.file == change.file) {
            Some(known) => {
                known.additions += change.additions;
                known.deletions += change.deletions;
                if !known.patch.ends_with('\n') {
                    known.patch.push('\n');
                }
                known.patch.push_str(&change.patch);
                known.status = if known.status == change.status { known.status } else { 'M' };
            }
            None => files.push(change),
        }
    }
    files
}

/// The files of one text with the changes of several.
pub(crate) fn parted(patch: &str, usual_name: &str) -> Vec<Change> {
    let mut changes: Vec<Change> = Vec::new();
    let mut in_hunk = false;
    let mut before = "";
    for line in patch.split_inclusive('\n') {
        let text = line.trim_end_matches(['\n', '\r']);
        let begins = !in_hunk || !text.starts_with(['+', '-', ' ', '\\', '@']);
        in_hunk = diff::hunk(text).is_some() || (in_hunk && !begins);
        let name = |text: &str| {
            let name = text.split('\t').next().unwrap_or(text).trim();
            name.strip_prefix("a/").or_else(|| name.strip_prefix("b/")).unwrap_or(name).to_owned()
        };
        if !in_hunk && let Some(old) = text.strip_prefix("--- ") {
            before = old;
        } else if !in_hunk && let Some(new) = text.strip_prefix("+++ ") {
            let status = match (before, new.trim()) {
                ("/dev/null", _) => 'A',
                (_, "/dev/null") => 'D',
                _ => 'M',
            };
            let file = if status == 'D' { name(before) } else { name(new) };
            changes.push(Change { file, status, ..Change::default() });
        } else if in_hunk {
            if changes.is_empty() {
                changes.push(Change { file: usual_name.to_owned(), status: 'M', ..Change::default() });
            }
            if let Some(last) = changes.last_mut() {
                last.additions += u64::from(text.starts_with('+'));
                last.deletions += u64::from(text.starts_with('-'));
                last.patch.push_str(line);
            }
        }
    }
    changes
}

/// A line of a patch: where its text is, and its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Code {
    side: Side,
    old: u32,
    new: u32,
    start: u32,
    end: u32,
}

/// One row, before it is wrapped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    Head,
    /// What lies between two hunks is left out.
    Gap,
    Line(Code),
    Pair(Option<Code>, Option<Code>),
    /// There is no text to show.
    Nothing,
    /// So many more lines are there.
    Cut(usize),
    Blank,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Row {
    file: usize,
    what: What,
    /// The first of the rows below each other that it stands for.
    from: usize,
}

/// Where keys go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Focus {
    Tree,
    Changes,
}

/// How far the changes are known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Loaded {
    Not,
    Here,
    Failed(String),
}

/// Where what is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Panes {
    pub(crate) tree: Option<Rect>,
    pub(crate) changes: Option<Rect>,
    pub(crate) split: bool,
}

/// How rows are drawn.
#[derive(Clone, Copy)]
pub(crate) struct Drawn<'a> {
    pub(crate) theme: &'a Theme,
    pub(crate) width: usize,
    pub(crate) split: bool,
}

/// The viewer.
#[derive(Debug)]
pub(crate) struct Review {
    pub(crate) source: Source,
    pub(crate) loaded: Loaded,
    pub(crate) files: Vec<Change>,
    /// The mark of each: what it costs goes with the size of the patch, so it is worked out once.
    marks: Vec<u64>,
    /// How many files are not listed.
    pub(crate) unlisted: usize,
    tree: Tree,
    pub(crate) nodes: Vec<Node>,
    folded: HashSet<String>,
    pub(crate) focus: Focus,
    /// The node that is selected in the tree.
    pub(crate) selected: usize,
    below: Vec<Row>,
    beside: Vec<Row>,
    /// The row with which each file begins, and each hunk.
    heads: Vec<usize>,
    hunks: Vec<usize>,
    /// The first row shown, by its place among those below each other, and how much of it is above the screen.
    top: usize,
    above: usize,
    /// Whether old and new stand side by side, if that was chosen.
    pub(crate) wants_split: Option<bool>,
    pub(crate) has_tree: bool,
    pub(crate) help: bool,
    /// What was looked at, by its change.
    pub(crate) reviewed: HashSet<u64>,
}

impl Review {
    pub(crate) fn new(source: Source) -> Self {
        Self {
            source,
            loaded: Loaded::Not,
            files: Vec::new(),
            marks: Vec::new(),
            unlisted: 0,
            tree: Tree::default(),
            nodes: Vec::new(),
            folded: HashSet::new(),
            focus: Focus::Changes,
            selected: 0,
            below: Vec::new(),
            beside: Vec::new(),
            heads: Vec::new(),
            hunks: Vec::new(),
            top: 0,
            above: 0,
            wants_split: None,
            has_tree: true,
            help: false,
            reviewed: HashSet::new(),
        }
    }

    /// Takes in what changed; the place stays at the file that was shown.
    pub(crate) fn load(&mut self, mut files: Vec<Change>) {
        let shown = self.file().map(|file| file.file.clone());
        self.unlisted = files.len().saturating_sub(MAX_FILES);
        files.truncate(MAX_FILES);
        self.tree = Tree::of(files.iter().map(|file| file.file.as_str()));
        let mut sorted = Vec::with_capacity(files.len());
        for at in self.tree.number() {
            sorted.push(std::mem::take(&mut files[at]));
        }
        self.marks = sorted.iter().map(Change::mark).collect();
        self.files = sorted;
        self.loaded = Loaded::Here;
        self.read();
        self.fold();
        let at = self.files.iter().position(|file| Some(&file.file) == shown.as_ref());
        self.go(at.and_then(|at| self.heads.get(at).copied()).unwrap_or(0));
    }

    pub(crate) fn fail(&mut self, why: String) {
        self.loaded = Loaded::Failed(why);
    }

    fn read(&mut self) {
        self.below.clear();
        self.beside.clear();
        self.heads.clear();
        self.hunks.clear();
        for file in 0..self.files.len() {
            self.heads.push(self.below.len());
            self.both(file, What::Head);
            let lines = lines(&self.files[file].patch);
            if lines.is_empty() {
                self.both(file, What::Nothing);
            }
            let room = MAX_ROWS.saturating_sub(self.below.len());
            let cut = lines.len().saturating_sub(room);
            let mut begun = false;
            for hunk in lines[..lines.len() - cut].split(|line| line.is_none()) {
                let Some(codes) = hunk.iter().copied().collect::<Option<Vec<Code>>>() else { continue };
                if codes.is_empty() {
                    continue;
                }
                if std::mem::replace(&mut begun, true) {
                    self.both(file, What::Gap);
                }
                self.hunks.push(self.below.len());
                self.hunk(file, &codes);
            }
            if cut > 0 {
                self.both(file, What::Cut(cut));
            }
            self.both(file, What::Blank);
        }
    }

    /// Adds a row that is the same in both ways to show changes.
    fn both(&mut self, file: usize, what: What) {
        let row = Row { file, what, from: self.below.len() };
        self.below.push(row);
        self.beside.push(row);
    }

    fn hunk(&mut self, file: usize, codes: &[Code]) {
        let first = self.below.len();
        let rows = (first..).zip(codes).map(|(from, code)| Row { file, what: What::Line(*code), from });
        self.below.extend(rows);
        let mut at = 0;
        while at < codes.len() {
            let count = |side, from: usize| codes[from..].iter().take_while(|code| code.side == side).count();
            let removed = count(Side::Removed, at);
            let added = count(Side::Added, at + removed);
            if removed + added == 0 {
                let what = What::Pair(Some(codes[at]), Some(codes[at]));
                self.beside.push(Row { file, what, from: first + at });
                at += 1;
                continue;
            }
            for nth in 0..removed.max(added) {
                let old = (nth < removed).then(|| at + nth);
                let new = (nth < added).then(|| at + removed + nth);
                let from = first + old.or(new).unwrap_or(at);
                let what = What::Pair(old.map(|at| codes[at]), new.map(|at| codes[at]));
                self.beside.push(Row { file, what, from });
            }
            at += removed + added;
        }
    }

    /// Works out what of the tree is shown.
    fn fold(&mut self) {
        self.nodes = self.tree.nodes(&self.folded);
        self.selected = self.selected.min(self.nodes.len().saturating_sub(1));
    }

    /// The place of the file whose changes are at the top.
    pub(crate) fn file_at(&self) -> Option<usize> {
        self.below.get(self.top).map(|row| row.file)
    }

    pub(crate) fn file(&self) -> Option<&Change> {
        self.files.get(self.file_at()?)
    }

    pub(crate) fn is_reviewed(&self, file: usize) -> bool {
        self.marks.get(file).is_some_and(|mark| self.reviewed.contains(mark))
    }

    /// Notes that a file was looked at, or was not.
    pub(crate) fn toggle_reviewed(&mut self) {
        let Some(mark) = self.file_at().and_then(|at| self.marks.get(at).copied()) else { return };
        if !self.reviewed.remove(&mark) {
            self.reviewed.insert(mark);
        }
    }

    fn go(&mut self, row: usize) {
        (self.top, self.above) = (row.min(self.below.len().saturating_sub(1)), 0);
        self.select_shown();
    }

    /// Selects the file that is shown, or the folded directory that it is in.
    fn select_shown(&mut self) {
        let Some(file) = self.file_at() else { return };
        let holds = |node: &Node| node.files.contains(&file);
        if let Some(at) = self.nodes.iter().rposition(holds) {
            self.selected = at;
        }
    }

    pub(crate) fn next_file(&mut self, forward: bool) {
        let Some(file) = self.file_at() else { return };
        let next = if forward { file + 1 } else { file.saturating_sub(1) };
        if let Some(row) = self.heads.get(next) {
            self.go(*row);
        }
    }

    pub(crate) fn next_hunk(&mut self, forward: bool) {
        let at = if forward {
            self.hunks.partition_point(|hunk| *hunk <= self.top)
        } else {
            let behind = self.hunks.partition_point(|hunk| *hunk < self.top);
            let Some(before) = behind.checked_sub(1) else { return self.go(0) };
            before
        };
        if let Some(row) = self.hunks.get(at) {
            self.go(*row);
        }
    }

    pub(crate) fn go_to_end(&mut self, drawn: Drawn<'_>, height: usize) {
        (self.top, self.above) = self.last_page(drawn, height);
        self.select_shown();
    }

    pub(crate) fn go_to_start(&mut self) {
        self.go(0);
    }

    /// The first node on a screen of a height: what is selected is on it.
    pub(crate) fn first_node(&self, height: usize) -> usize {
        let last = self.nodes.len().saturating_sub(height);
        self.selected.saturating_sub(height / 2).min(last)
    }

    /// Moves through the tree; a file is shown at once.
    pub(crate) fn select(&mut self, by: isize) {
        let last = self.nodes.len().saturating_sub(1);
        self.selected = self.selected.saturating_add_signed(by).min(last);
        self.show_selected();
    }

    /// Shows the file that is selected.
    pub(crate) fn show_selected(&mut self) {
        let Some(node) = self.nodes.get(self.selected).filter(|node| !node.is_directory) else { return };
        if let Some(row) = self.heads.get(node.files.start) {
            (self.top, self.above) = (*row, 0);
        }
    }

    /// Folds the selected directory, or unfolds it; false if it is a file.
    pub(crate) fn toggle_fold(&mut self) -> bool {
        let Some(node) = self.nodes.get(self.selected).filter(|node| node.is_directory) else { return false };
        if !self.folded.remove(&node.path) {
            self.folded.insert(node.path.clone());
        }
        self.fold();
        true
    }

    /// Folds or unfolds the selected directory; a file is shown, and the keys go there.
    pub(crate) fn enter(&mut self) {
        if !self.toggle_fold() {
            self.show_selected();
            self.focus = Focus::Changes;
        }
    }

    /// Folds the selected directory, or goes to the one that a file is in.
    pub(crate) fn fold_or_up(&mut self) {
        let Some(node) = self.nodes.get(self.selected) else { return };
        if node.is_directory && !node.is_folded {
            self.toggle_fold();
            return;
        }
        let depth = node.depth;
        let parent = self.nodes[..self.selected].iter().rposition(|node| node.depth < depth);
        self.selected = parent.unwrap_or(self.selected);
    }

    /// Where what is, in a screen of a size.
    pub(crate) fn panes(&self, (width, height): (u16, u16)) -> Panes {
        let body = Rect::new(0, 2, width, height.saturating_sub(4));
        let has_tree = self.has_tree && self.files.len() > 1;
        let (tree, changes) = if !has_tree {
            (None, Some(body))
        } else if width < TREE_FROM {
            // There is room for one of them only.
            if self.focus == Focus::Tree { (Some(body), None) } else { (None, Some(body)) }
        } else {
            let changes = Rect { x: TREE_WIDTH + 1, width: width - TREE_WIDTH - 1, ..body };
            (Some(Rect { width: TREE_WIDTH, ..body }), Some(changes))
        };
        let room = changes.map_or(0, |changes| changes.width);
        Panes { tree, changes, split: self.wants_split.unwrap_or(room >= SPLIT_FROM) }
    }

    fn rows(&self, split: bool) -> &[Row] {
        if split { &self.beside } else { &self.below }
    }

    /// The place of the first row in the way of showing that is chosen.
    fn at(&self, split: bool) -> usize {
        self.rows(split).partition_point(|row| row.from <= self.top).saturating_sub(1)
    }

    /// The lines of a screen of a height.
    pub(crate) fn screen(&self, drawn: Drawn<'_>, height: usize) -> Vec<Line<'static>> {
        let first = self.at(drawn.split);
        let mut lines = Vec::with_capacity(height);
        let mut skip = self.above;
        for row in self.rows(drawn.split).iter().skip(first) {
            let shown = self.lines(row, drawn);
            let skipped = std::mem::take(&mut skip).min(shown.len().saturating_sub(1));
            lines.extend(shown.into_iter().skip(skipped).take(height - lines.len()));
            if lines.len() >= height {
                break;
            }
        }
        lines
    }

    /// The place from which on what is left fills a screen.
    fn last_page(&self, drawn: Drawn<'_>, height: usize) -> (usize, usize) {
        let mut left = height;
        for row in self.rows(drawn.split).iter().rev() {
            let count = self.lines(row, drawn).len();
            if count >= left {
                return (row.from, count - left);
            }
            left -= count;
        }
        (0, 0)
    }

    /// Moves by so many lines.
    pub(crate) fn scroll(&mut self, drawn: Drawn<'_>, by: isize, height: usize) {
        if self.below.is_empty() {
            return;
        }
        let last = self.last_page(drawn, height).max((self.top, self.above));
        let rows = self.rows(drawn.split);
        let mut at = self.at(drawn.split);
        let mut above = self.above;
        let mut left = by.unsigned_abs();
        while left > 0 {
            if by < 0 {
                let step = left.min(above);
                (left, above) = (left - step, above - step);
                if left == 0 || at == 0 {
                    break;
                }
                at -= 1;
                above = self.lines(&rows[at], drawn).len();
            } else {
                let count = self.lines(&rows[at], drawn).len();
                if above + left < count {
                    above += left;
                    break;
                }
                left -= count - above.min(count);
                if at + 1 >= rows.len() {
                    break;
                }
                (at, above) = (at + 1, 0);
            }
        }
        let place = (rows[at].from, above);
        (self.top, self.above) = if by > 0 { place.min(last) } else { place };
        self.select_shown();
    }

    fn lines(&self, row: &Row, drawn: Drawn<'_>) -> Vec<Line<'static>> {
        let theme = drawn.theme;
        let muted = Style::new().fg(theme.muted);
        let told = |text: String| vec![Line::from(Span::styled(text, muted))];
        match row.what {
            What::Head => vec![self.head(row.file, drawn)],
            What::Gap => vec![Line::from(Span::styled("  ⋮", Style::new().fg(theme.diff_hunk)))],
            What::Nothing => {
                told("  no lines to show: a binary file, or only its name or mode changed".to_owned())
            }
            What::Cut(count) => told(format!("  … {count} more lines are not shown")),
            What::Blank => vec![Line::default()],
            What::Line(code) => self.below_each_other(row.file, code, drawn),
            What::Pair(old, new) => self.side_by_side(row.file, (old, new), drawn),
        }
    }

    fn head(&self, file: usize, drawn: Drawn<'_>) -> Line<'static> {
        let theme = drawn.theme;
        let Some(change) = self.files.get(file) else { return Line::default() };
        let counts = format!(" +{}", change.additions);
        let gone = format!(" -{} ", change.deletions);
        let mark = if self.is_reviewed(file) { " ✓" } else { "" };
        let taken = counts.len() + gone.len() + wrap::width(mark) + 1;
        let name = wrap::shortened_front(&clean_name(&change.file), drawn.width.saturating_sub(taken));
        let blank = drawn.width.saturating_sub(wrap::width(&name) + taken);
        Line::from(vec![
            Span::styled(format!(" {name}"), Style::new().fg(theme.text).add_modifier(Modifier::BOLD)),
            Span::styled(format!("{mark}{}", " ".repeat(blank)), Style::new().fg(theme.success)),
            Span::styled(counts, Style::new().fg(theme.diff_added)),
            Span::styled(gone, Style::new().fg(theme.diff_removed)),
        ])
        .style(Style::new().bg(theme.element))
    }

    /// The text of a line, safe to show.
    fn text(&self, file: usize, code: Code) -> String {
        let patch = self.files.get(file).map_or("", |file| &file.patch);
        let text = patch.get(code.start as usize..code.end as usize).unwrap_or_default();
        // What a line costs must not depend on whoever wrote it.
        let end = text.char_indices().nth(MAX_LINE_CHARS).map_or(text.len(), |(at, _)| at);
        let more = if end < text.len() { "…" } else { "" };
        format!("{}{more}", crate::clean::clean_code(text[..end].trim_end_matches('\r')).replace('\n', " "))
    }

    fn below_each_other(&self, file: usize, code: Code, drawn: Drawn<'_>) -> Vec<Line<'static>> {
        let digits = self.digits(file);
        let number = |number: u32, shown: bool| if shown { number.to_string() } else { String::new() };
        let gutter = format!(
            "{:>digits$} {:>digits$} ",
            number(code.old, code.side != Side::Added),
            number(code.new, code.side != Side::Removed)
        );
        let language = self.language(file);
        diff::cell(code.side, &gutter, (&self.text(file, code), language), (drawn.theme, drawn.width))
    }

    fn side_by_side(
        &self,
        file: usize,
        (old, new): (Option<Code>, Option<Code>),
        drawn: Drawn<'_>,
    ) -> Vec<Line<'static>> {
        let digits = self.digits(file);
        let half = drawn.width.saturating_sub(1) / 2;
        let half_of = |code: Option<Code>, number: fn(Code) -> u32| {
            let Some(code) = code else { return Vec::new() };
            let gutter = format!("{:>digits$} ", number(code));
            let text = self.text(file, code);
            diff::cell(code.side, &gutter, (&text, self.language(file)), (drawn.theme, half))
        };
        let left = half_of(old, |code| code.old);
        let right = half_of(new, |code| code.new);
        let line = |at: usize| {
            let mut spans = side(left.get(at), half);
            spans.push(Span::styled("│", Style::new().fg(drawn.theme.border_subtle)));
            spans.extend(side(right.get(at), drawn.width.saturating_sub(half + 1)));
            Line::from(spans)
        };
        (0..left.len().max(right.len()).max(1)).map(line).collect()
    }

    fn language(&self, file: usize) -> &str {
        highlight::of_file(self.files.get(file).map_or("", |file| &file.file))
    }

    /// How many cells a file's line numbers take.
    fn digits(&self, file: usize) -> usize {
        let end = self.heads.get(file + 1).map_or(self.below.len(), |next| *next);
        let rows = self.below[..end].iter().rev();
        let last = rows.take(4).find_map(|row| match row.what {
            What::Line(code) => Some(code.old.max(code.new)),
            _ => None,
        });
        last.unwrap_or(0).max(999).to_string().len()
    }
}

/// A half, filled up to its width, with its background.
fn side(line: Option<&Line<'static>>, width: usize) -> Vec<Span<'static>> {
    let Some(line) = line else { return vec![Span::raw(" ".repeat(width))] };
    let back = line.style;
    let taken = line.width();
    let spans = line.spans.iter().map(|span| Span::styled(span.content.clone(), back.patch(span.style)));
    let mut spans: Vec<Span<'static>> = spans.collect();
    spans.push(Span::styled(" ".repeat(width.saturating_sub(taken)), back));
    spans
}

/// The lines of a patch, with nothing between its hunks.
fn lines(patch: &str) -> Vec<Option<Code>> {
    let mut lines = Vec::new();
    let (mut old, mut new) = (0_u32, 0_u32);
    let mut in_hunk = false;
    let mut start = 0;
    let short = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
    for line in patch.split_inclusive('\n') {
        let begin = start;
        start += line.len();
        let text = line.strip_suffix('\n').unwrap_or(line);
        if let Some((before, after)) = diff::hunk(text) {
            lines.push(None);
            (old, new, in_hunk) = (short(before), short(after), true);
            continue;
        }
        let side = match text.chars().next() {
            _ if !in_hunk => continue,
            Some('+') => Side::Added,
            Some('-') => Side::Removed,
            Some(' ') | None => Side::Both,
            // `\ No newline at end of file`, or the head of the next file.
            Some(_) => {
                in_hunk = text.starts_with('\\');
                continue;
            }
        };
        let from = begin + usize::from(!text.is_empty());
        lines.push(Some(Code { side, old, new, start: short(from), end: short(begin + text.len()) }));
        old = old.saturating_add(u32::from(side != Side::Added));
        new = new.saturating_add(u32::from(side != Side::Removed));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::theme::{Mode, built_in};

    const TWO: &str = "diff --git a/src/a.rs b/src/a.rs\n--- a/src/a.rs\n+++ b/src/a.rs\n@@ -1,3 +1,3 @@\n one\n-two\n-three\n+TWO\n four\n@@ -90,2 +90,3 @@ fn\n x\n+y\n z\ndiff --git a/new b/new\n--- /dev/null\n+++ b/new\n@@ -0,0 +1 @@\n+n\n";

    fn theme() -> Theme {
        Theme::parse(&built_in::file(built_in::DEFAULT).unwrap(), Mode::Dark).unwrap()
    }

    fn shown(review: &Review, split: bool, width: usize) -> Vec<String> {
        let lines = review.screen(Drawn { theme: &theme(), width, split }, 100);
        lines.iter().map(|line| line.to_string().trim_end().to_owned()).collect()
    }

    #[test]
    fn a_text_of_several_files_is_parted() {
        let parts = parted(TWO, "x");
        let told: Vec<(&str, u64, u64, char)> =
            parts.iter().map(|c| (c.file.as_str(), c.additions, c.deletions, c.status)).collect();
        assert_eq!(told, [("src/a.rs", 2, 2, 'M'), ("new", 1, 0, 'A')]);
        let without_head = parted("@@ -1 +1 @@\n-a\n+b\n", "named.rs");
        assert_eq!(without_head[0].file, "named.rs");
    }

    #[test]
    fn changes_stand_below_each_other_or_side_by_side() {
        let mut review = Review::new(Source::WorkingTree);
        review.load(parted(TWO, "x"));
        let below = shown(&review, false, 24);
        assert_eq!(
            below,
            [
                " src/a.rs         +2 -2",
                "  1   1   one",
                "  2     - two",
                "  3     - three",
                "      2 + TWO",
                "  4   3   four",
                "  ⋮",
                " 90  90   x",
                "     91 + y",
                " 91  92   z",
                "",
                " new              +1 -0",
                "      1 + n",
                "",
            ]
        );
        let beside = shown(&review, true, 31);
        assert_eq!(beside[1], "  1   one      │  1   one");
        assert_eq!(beside[2], "  2 - two      │  2 + TWO");
        assert_eq!(beside[3], "  3 - three    │");
        assert_eq!(beside[7], "               │ 91 + y");
    }

    #[test]
    fn files_and_hunks_are_gone_through() {
        let mut review = Review::new(Source::WorkingTree);
        review.load(parted(TWO, "x"));
        let first = |review: &Review| shown(review, true, 60).first().cloned().unwrap();
        review.next_hunk(true);
        review.next_hunk(true);
        assert!(first(&review).contains("90   x"), "{}", first(&review));
        review.next_hunk(true);
        assert!(first(&review).contains("1 + n"), "{}", first(&review));
        review.next_file(false);
        assert!(first(&review).contains("src/a.rs"), "{}", first(&review));
        review.next_file(true);
        review.next_file(true);
        assert!(first(&review).contains("new"), "{}", first(&review));
        review.toggle_reviewed();
        assert!(first(&review).contains('✓'), "{}", first(&review));
        // A frame does not read the patches again.
        let before = std::mem::take(&mut review.files[1].patch);
        assert!(review.is_reviewed(1));
        review.files[1].patch = before;
        // Another change of the same file was not looked at.
        let mut changed = parted(TWO, "x");
        changed[1].patch.push_str("+m\n");
        review.load(changed);
        assert!(first(&review).contains("new") && !first(&review).contains('✓'), "{}", first(&review));
    }

    #[test]
    fn scrolling_goes_line_by_line_and_stops_at_the_end() {
        let mut review = Review::new(Source::WorkingTree);
        let long = "word ".repeat(30);
        review.load(parted(&format!("@@ -1,9 +1,9 @@\n{}", format!(" {long}\n").repeat(9)), "a"));
        let theme = theme();
        for split in [false, true] {
            let drawn = Drawn { theme: &theme, width: 40, split };
            let all = review.screen(drawn, 10_000);
            review.go_to_start();
            let mut at = 0;
            for _ in 0..all.len() {
                let lines = review.screen(drawn, 10);
                assert_eq!(lines, all[at..at + 10], "{split} {at}");
                review.scroll(drawn, 1, 10);
                at = (at + 1).min(all.len() - 10);
            }
            while at > 0 {
                review.scroll(drawn, -1, 10);
                at -= 1;
                assert_eq!(review.screen(drawn, 10), all[at..at + 10], "{split} {at}");
            }
            review.go_to_end(drawn, 10);
            assert_eq!(review.screen(drawn, 10), all[all.len() - 10..]);
            review.go_to_start();
        }
    }

    #[test]
    fn what_is_no_patch_is_harmless() {
        for patch in [
            "",
            "@@",
            "@@ -x +y @@\n+a",
            "@@ -1 +1 @@",
            "@@ -4294967295 +4294967295 @@\n+a\n+b\n c",
            "\\ x\n\n\n",
        ] {
            let mut review = Review::new(Source::WorkingTree);
            review.load(vec![Change { file: "a".to_owned(), patch: patch.to_owned(), ..Change::default() }]);
            assert!(!shown(&review, true, 40).is_empty());
            review.next_hunk(true);
            review.next_hunk(false);
            review.scroll(Drawn { theme: &theme(), width: 3, split: true }, 9, 4);
        }
    }
}
