//! Changes to be looked through: files in a tree, their hunks as rows.
//!
//! A patch is read once, into rows that say where in it their text is. A frame and a
//! turn of the wheel cost what is on the screen, however much there is.

use std::collections::HashSet;

use codewright_proto::{PermissionId, SessionId};
use ratatui::layout::Rect;

use crate::diff::Side;
use crate::scroll::Position;

mod draw;
mod patch;
mod tree;

pub(crate) use draw::Drawn;
use patch::Code;
pub(crate) use patch::{Change, merge_files, split_files};
pub(crate) use tree::Node;
use tree::Tree;

/// How many rows there are at most; of what is more the number is told.
const MAX_ROWS: usize = 400_000;
/// How many files are listed.
const MAX_FILES: usize = 5_000;
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

/// One row, before it is wrapped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Content {
    Head,
    /// What lies between two hunks is left out.
    Gap,
    Line(Code),
    Pair(Option<Code>, Option<Code>),
    /// There is no text to show.
    Empty,
    /// So many more lines are there.
    Cut(usize),
    Blank,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Row {
    file: usize,
    content: Content,
    /// The first unified row that it stands for.
    unified: usize,
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
    Pending,
    Ready,
    Failed(String),
}

/// Where what is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Panes {
    pub(crate) tree: Option<Rect>,
    pub(crate) changes: Option<Rect>,
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
    /// The rows with old and new lines below each other.
    unified: Vec<Row>,
    /// The rows with old and new lines side by side.
    split: Vec<Row>,
    /// The row with which each file begins, and each hunk.
    heads: Vec<usize>,
    hunks: Vec<usize>,
    /// The first visible line. The place is the index of a unified row.
    top: Position<usize>,
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
            loaded: Loaded::Pending,
            files: Vec::new(),
            marks: Vec::new(),
            unlisted: 0,
            tree: Tree::default(),
            nodes: Vec::new(),
            folded: HashSet::new(),
            focus: Focus::Changes,
            selected: 0,
            unified: Vec::new(),
            split: Vec::new(),
            heads: Vec::new(),
            hunks: Vec::new(),
            top: Position::default(),
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
        self.loaded = Loaded::Ready;
        self.read();
        self.fold();
        let at = self.files.iter().position(|file| Some(&file.file) == shown.as_ref());
        self.go(at.and_then(|at| self.heads.get(at).copied()).unwrap_or(0));
    }

    pub(crate) fn fail(&mut self, why: String) {
        self.loaded = Loaded::Failed(why);
    }

    fn read(&mut self) {
        self.unified.clear();
        self.split.clear();
        self.heads.clear();
        self.hunks.clear();
        for file in 0..self.files.len() {
            self.heads.push(self.unified.len());
            self.both(file, Content::Head);
            let lines = patch::lines(&self.files[file].patch);
            if lines.is_empty() {
                self.both(file, Content::Empty);
            }
            let room = MAX_ROWS.saturating_sub(self.unified.len());
            let cut = lines.len().saturating_sub(room);
            let mut begun = false;
            for hunk in lines[..lines.len() - cut].split(|line| line.is_none()) {
                let Some(codes) = hunk.iter().copied().collect::<Option<Vec<Code>>>() else { continue };
                if codes.is_empty() {
                    continue;
                }
                if std::mem::replace(&mut begun, true) {
                    self.both(file, Content::Gap);
                }
                self.hunks.push(self.unified.len());
                self.hunk(file, &codes);
            }
            if cut > 0 {
                self.both(file, Content::Cut(cut));
            }
            self.both(file, Content::Blank);
        }
    }

    /// Adds a row that is the same in both ways to show changes.
    fn both(&mut self, file: usize, content: Content) {
        let row = Row { file, content, unified: self.unified.len() };
        self.unified.push(row);
        self.split.push(row);
    }

    fn hunk(&mut self, file: usize, codes: &[Code]) {
        let first = self.unified.len();
        let rows =
            (first..).zip(codes).map(|(unified, code)| Row { file, content: Content::Line(*code), unified });
        self.unified.extend(rows);
        let mut at = 0;
        while at < codes.len() {
            let count = |side, from: usize| codes[from..].iter().take_while(|code| code.side == side).count();
            let removed = count(Side::Removed, at);
            let added = count(Side::Added, at + removed);
            if removed + added == 0 {
                let content = Content::Pair(Some(codes[at]), Some(codes[at]));
                self.split.push(Row { file, content, unified: first + at });
                at += 1;
                continue;
            }
            for nth in 0..removed.max(added) {
                let old = (nth < removed).then(|| at + nth);
                let new = (nth < added).then(|| at + removed + nth);
                let unified = first + old.or(new).unwrap_or(at);
                let content = Content::Pair(old.map(|at| codes[at]), new.map(|at| codes[at]));
                self.split.push(Row { file, content, unified });
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
        self.unified.get(self.top.place).map(|row| row.file)
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
        self.top = Position { place: row.min(self.unified.len().saturating_sub(1)), line: 0 };
        self.select_visible();
    }

    /// Selects the file that is shown, or the folded directory that it is in.
    fn select_visible(&mut self) {
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
            self.hunks.partition_point(|hunk| *hunk <= self.top.place)
        } else {
            let behind = self.hunks.partition_point(|hunk| *hunk < self.top.place);
            let Some(before) = behind.checked_sub(1) else { return self.go(0) };
            before
        };
        if let Some(row) = self.hunks.get(at) {
            self.go(*row);
        }
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
            self.top = Position { place: *row, line: 0 };
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::theme::{Mode, Theme, built_in};

    const TWO: &str = "diff --git a/src/a.rs b/src/a.rs\n--- a/src/a.rs\n+++ b/src/a.rs\n@@ -1,3 +1,3 @@\n one\n-two\n-three\n+TWO\n four\n@@ -90,2 +90,3 @@ fn\n x\n+y\n z\ndiff --git a/new b/new\n--- /dev/null\n+++ b/new\n@@ -0,0 +1 @@\n+n\n";

    fn theme() -> Theme {
        Theme::parse(&built_in::file(built_in::DEFAULT).unwrap(), Mode::Dark).unwrap()
    }

    fn shown(review: &Review, split: bool, width: usize) -> Vec<String> {
        let lines = review.screen(Drawn { theme: &theme(), width, split }, 100);
        lines.iter().map(|line| line.to_string().trim_end().to_owned()).collect()
    }

    #[test]
    fn a_text_of_several_files_is_split_files() {
        let parts = split_files(TWO, "x");
        let told: Vec<(&str, u64, u64, char)> =
            parts.iter().map(|c| (c.file.as_str(), c.additions, c.deletions, c.status)).collect();
        assert_eq!(told, [("src/a.rs", 2, 2, 'M'), ("new", 1, 0, 'A')]);
        let without_head = split_files("@@ -1 +1 @@\n-a\n+b\n", "named.rs");
        assert_eq!(without_head[0].file, "named.rs");
    }

    #[test]
    fn changes_stand_below_each_other_or_side_by_side() {
        let mut review = Review::new(Source::WorkingTree);
        review.load(split_files(TWO, "x"));
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
        review.load(split_files(TWO, "x"));
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
        let mut changed = split_files(TWO, "x");
        changed[1].patch.push_str("+m\n");
        review.load(changed);
        assert!(first(&review).contains("new") && !first(&review).contains('✓'), "{}", first(&review));
    }

    #[test]
    fn scrolling_goes_line_by_line_and_stops_at_the_end() {
        let mut review = Review::new(Source::WorkingTree);
        let long = "word ".repeat(30);
        review.load(split_files(&format!("@@ -1,9 +1,9 @@\n{}", format!(" {long}\n").repeat(9)), "a"));
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
