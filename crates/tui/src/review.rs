//! The changes viewer: files in a tree, and their hunks as rows.
//!
//! A patch is parsed once, into rows that refer to its text. A frame costs as much as the rows of the
//! screen, however large the changes are.

use std::collections::HashSet;

use codewright_proto::{PermissionId, SessionId};
use ratatui::layout::Rect;

use crate::diff::Side;
use crate::msg::ShownChange;
use crate::scroll::Position;

pub(crate) mod apply;
mod draw;
mod patch;
mod tree;

pub(crate) use draw::DrawOptions;
use patch::Code;
pub(crate) use patch::{Change, merge_files, split_files};
pub(crate) use tree::Node;
use tree::Tree;

/// The maximum number of rows. The number of further lines is displayed.
const MAX_ROWS: usize = 400_000;
/// The maximum number of files.
const MAX_FILES: usize = 5_000;
/// The minimum width for displaying the tree next to the changes.
const TREE_FROM: u16 = 80;
const TREE_WIDTH: u16 = 32;
/// The minimum width for displaying old and new lines side by side.
const SPLIT_FROM: u16 = 90;

/// The source of the changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Source {
    /// The changes in git since the last commit.
    WorkingTree,
    /// The changes in git since the branch began.
    Branch,
    /// The changes of all prompts of a session.
    Session(SessionId),
    /// The changes of the last prompt of a session.
    LastTurn(SessionId),
    /// The changes that need permission.
    Request(PermissionId),
}

impl Source {
    pub(crate) fn title(&self) -> &'static str {
        match self {
            Self::WorkingTree => "working tree",
            Self::Branch => "branch",
            Self::Session(_) => "this session",
            Self::LastTurn(_) => "last turn",
            Self::Request(_) => "permission request",
        }
    }
}

/// The content of a row, before it is wrapped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Content {
    Head,
    /// The gap between two hunks.
    Gap,
    Line(Code),
    Pair(Option<Code>, Option<Code>),
    /// A file without text to display.
    Empty,
    /// This many further lines are not displayed.
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

/// The pane that receives the keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Focus {
    Tree,
    Changes,
}

/// The state of loading the changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LoadState {
    Pending,
    Ready,
    Failed(String),
}

/// The areas of the panes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Panes {
    pub(crate) tree: Option<Rect>,
    pub(crate) changes: Option<Rect>,
    pub(crate) split: bool,
}

/// The state of the viewer.
#[derive(Debug)]
pub(crate) struct Review {
    pub(crate) source: Source,
    pub(crate) loaded: LoadState,
    pub(crate) files: Vec<Change>,
    /// The mark of each change. It is computed once, because that reads the whole patch.
    marks: Vec<u64>,
    /// The number of files that are not listed.
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
    /// The first row of each file.
    heads: Vec<usize>,
    /// The first row of each hunk.
    hunks: Vec<usize>,
    /// The first visible line. The place is the index of a unified row.
    top: Position<usize>,
    /// The layout that the user chose.
    pub(crate) wants_split: Option<bool>,
    pub(crate) has_tree: bool,
    pub(crate) help: bool,
    /// The marks of the reviewed changes.
    pub(crate) reviewed: HashSet<u64>,
}

impl Review {
    pub(crate) fn new(source: Source) -> Self {
        Self {
            source,
            loaded: LoadState::Pending,
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

    /// Replaces the changes. The file at the top stays at the top.
    pub(crate) fn load(&mut self, mut files: Vec<Change>) {
        let current = self.file().map(|file| file.file.clone());
        self.unlisted = files.len().saturating_sub(MAX_FILES);
        files.truncate(MAX_FILES);
        self.tree = Tree::of(files.iter().map(|file| file.file.as_str()));
        let mut sorted = Vec::with_capacity(files.len());
        for at in self.tree.number() {
            sorted.push(std::mem::take(&mut files[at]));
        }
        self.marks = sorted.iter().map(Change::mark).collect();
        self.files = sorted;
        self.loaded = LoadState::Ready;
        self.read();
        self.fold();
        let at = self.files.iter().position(|file| Some(&file.file) == current.as_ref());
        self.go(at.and_then(|at| self.heads.get(at).copied()).unwrap_or(0));
    }

    pub(crate) fn fail(&mut self, why: String) {
        self.loaded = LoadState::Failed(why);
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
            let mut has_hunk = false;
            for hunk in lines[..lines.len() - cut].split(|line| line.is_none()) {
                let Some(codes) = hunk.iter().copied().collect::<Option<Vec<Code>>>() else { continue };
                if codes.is_empty() {
                    continue;
                }
                if std::mem::replace(&mut has_hunk, true) {
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

    /// Adds a row that is the same in both layouts.
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

    /// Updates the visible nodes of the tree.
    fn fold(&mut self) {
        self.nodes = self.tree.nodes(&self.folded);
        self.selected = self.selected.min(self.nodes.len().saturating_sub(1));
    }

    /// Returns the index of the file at the top.
    pub(crate) fn file_at(&self) -> Option<usize> {
        self.unified.get(self.top.place).map(|row| row.file)
    }

    pub(crate) fn file(&self) -> Option<&Change> {
        self.files.get(self.file_at()?)
    }

    pub(crate) fn is_reviewed(&self, file: usize) -> bool {
        self.marks.get(file).is_some_and(|mark| self.reviewed.contains(mark))
    }

    /// Marks the file at the top as reviewed, or removes the mark.
    /// Returns the visible change for the editor.
    pub(crate) fn shown_change(&self) -> Option<ShownChange> {
        let change = self.files.get(self.file_at()?)?;
        let is_made = !matches!(self.source, Source::Request(_));
        Some(ShownChange { file: change.file.clone(), patch: change.patch.clone(), is_made })
    }

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

    /// Selects the file at the top, or the folded directory that contains it.
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
            let count = self.hunks.partition_point(|hunk| *hunk < self.top.place);
            let Some(before) = count.checked_sub(1) else { return self.go(0) };
            before
        };
        if let Some(row) = self.hunks.get(at) {
            self.go(*row);
        }
    }

    pub(crate) fn go_to_start(&mut self) {
        self.go(0);
    }

    /// Returns the first node on a screen of a height, which includes the selected node.
    pub(crate) fn first_node(&self, height: usize) -> usize {
        let last = self.nodes.len().saturating_sub(height);
        self.selected.saturating_sub(height / 2).min(last)
    }

    /// Moves the selection in the tree. A selected file is displayed.
    pub(crate) fn select(&mut self, by: isize) {
        let last = self.nodes.len().saturating_sub(1);
        self.selected = self.selected.saturating_add_signed(by).min(last);
        self.show_selected();
    }

    /// Displays the selected file.
    pub(crate) fn show_selected(&mut self) {
        let Some(node) = self.nodes.get(self.selected).filter(|node| !node.is_directory) else { return };
        if let Some(row) = self.heads.get(node.files.start) {
            self.top = Position { place: *row, line: 0 };
        }
    }

    /// Folds or unfolds the selected directory. Returns `false` if a file is selected.
    pub(crate) fn toggle_fold(&mut self) -> bool {
        let Some(node) = self.nodes.get(self.selected).filter(|node| node.is_directory) else { return false };
        if !self.folded.remove(&node.path) {
            self.folded.insert(node.path.clone());
        }
        self.fold();
        true
    }

    /// Folds or unfolds the selected directory. A selected file is displayed and receives the keys.
    pub(crate) fn enter(&mut self) {
        if !self.toggle_fold() {
            self.show_selected();
            self.focus = Focus::Changes;
        }
    }

    /// Folds the selected directory, or selects the parent directory.
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

    /// Returns the areas of the panes on a screen of a size.
    pub(crate) fn panes(&self, (width, height): (u16, u16)) -> Panes {
        let body = Rect::new(0, 2, width, height.saturating_sub(4));
        let has_tree = self.has_tree && self.files.len() > 1;
        let (tree, changes) = if !has_tree {
            (None, Some(body))
        } else if width < TREE_FROM {
            // There is room for only one pane.
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
        let lines = review.screen(DrawOptions { theme: &theme(), width, split }, 100);
        lines.iter().map(|line| line.to_string().trim_end().to_owned()).collect()
    }

    #[test]
    fn a_patch_of_several_files_is_split() {
        let parts = split_files(TWO, "x");
        let files: Vec<(&str, u64, u64, char)> =
            parts.iter().map(|c| (c.file.as_str(), c.additions, c.deletions, c.status)).collect();
        assert_eq!(files, [("src/a.rs", 2, 2, 'M'), ("new", 1, 0, 'A')]);
        let without_head = split_files("@@ -1 +1 @@\n-a\n+b\n", "named.rs");
        assert_eq!(without_head[0].file, "named.rs");
    }

    #[test]
    fn lines_are_unified_or_side_by_side() {
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
    fn keys_move_between_files_and_hunks() {
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
        // Another change of the same file is not reviewed.
        let mut changed = split_files(TWO, "x");
        changed[1].patch.push_str("+m\n");
        review.load(changed);
        assert!(first(&review).contains("new") && !first(&review).contains('✓'), "{}", first(&review));
    }

    #[test]
    fn scrolling_moves_by_lines_and_stops_at_the_end() {
        let mut review = Review::new(Source::WorkingTree);
        let long = "word ".repeat(30);
        review.load(split_files(&format!("@@ -1,9 +1,9 @@\n{}", format!(" {long}\n").repeat(9)), "a"));
        let theme = theme();
        for split in [false, true] {
            let drawn = DrawOptions { theme: &theme, width: 40, split };
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
    fn invalid_patches_are_harmless() {
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
            review.scroll(DrawOptions { theme: &theme(), width: 3, split: true }, 9, 4);
        }
    }
}
