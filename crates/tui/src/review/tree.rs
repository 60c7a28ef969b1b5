//! A tree of files, whose directories can be folded.

use std::collections::{BTreeMap, HashSet};
use std::ops::Range;

use crate::clean::clean_name;

/// The maximum depth of directories. Deeper paths are one name.
const MAX_DEPTH: usize = 40;

/// A row of the tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Node {
    /// The lines that connect the node to its parent.
    pub(crate) branch: String,
    pub(crate) name: String,
    /// The path of the directory.
    pub(crate) path: String,
    pub(crate) depth: usize,
    pub(crate) is_directory: bool,
    pub(crate) is_folded: bool,
    /// The files in the node, by their index in the order of the tree.
    pub(crate) files: Range<usize>,
}

/// The row of a directory, for its children.
struct Parent<'a> {
    path: &'a str,
    /// The lines before the children's branches.
    lead: &'a str,
    depth: usize,
}

/// A directory. Its directories are listed before its files.
#[derive(Debug, Default)]
pub(super) struct Tree {
    directories: BTreeMap<String, Self>,
    /// The files by name, with their indexes: in the input, and after `number` in the tree.
    files: BTreeMap<String, Vec<usize>>,
}

impl Tree {
    pub(super) fn of<'a>(paths: impl Iterator<Item = &'a str>) -> Self {
        let mut root = Self::default();
        for (at, path) in paths.enumerate() {
            let mut place = &mut root;
            let mut rest = path;
            for _ in 0..MAX_DEPTH {
                let Some((first, more)) = rest.split_once('/') else { break };
                place = place.directories.entry(first.to_owned()).or_default();
                rest = more;
            }
            place.files.entry(rest.to_owned()).or_default().push(at);
        }
        root
    }

    /// Numbers the files in the order of the tree. Returns their input indexes in that order.
    pub(super) fn number(&mut self) -> Vec<usize> {
        let mut order = Vec::new();
        self.number_from(&mut order);
        order
    }

    fn number_from(&mut self, order: &mut Vec<usize>) {
        for directory in self.directories.values_mut() {
            directory.number_from(order);
        }
        for at in self.files.values_mut().flatten() {
            order.push(*at);
            *at = order.len() - 1;
        }
    }

    /// Returns the rows, without the content of folded directories.
    pub(super) fn nodes(&self, folded: &HashSet<String>) -> Vec<Node> {
        let mut nodes = Vec::new();
        self.add(&Parent { path: "", lead: "", depth: 0 }, folded, &mut nodes);
        nodes
    }

    fn add(&self, parent: &Parent<'_>, folded: &HashSet<String>, nodes: &mut Vec<Node>) {
        let Parent { path, lead, depth } = *parent;
        let count = self.directories.len() + self.files.values().map(Vec::len).sum::<usize>();
        let mut nth = 0;
        let mut branch = || {
            nth += 1;
            match (depth, nth == count) {
                (0, _) => (String::new(), String::new()),
                (_, true) => (format!("{lead}└ "), format!("{lead}  ")),
                (_, false) => (format!("{lead}├ "), format!("{lead}│ ")),
            }
        };
        for (name, directory) in &self.directories {
            let (branch, below) = branch();
            // A directory that contains only another directory shares its row.
            let (mut name, mut directory) = (name.clone(), directory);
            while directory.files.is_empty()
                && directory.directories.len() == 1
                && let Some((next, inner)) = directory.directories.first_key_value()
            {
                name = format!("{name}/{next}");
                directory = inner;
            }
            let path = if path.is_empty() { name.clone() } else { format!("{path}/{name}") };
            let is_folded = folded.contains(&path);
            nodes.push(Node {
                branch,
                name: clean_name(&name),
                path: path.clone(),
                depth,
                is_directory: true,
                is_folded,
                files: directory.range(),
            });
            if !is_folded {
                directory.add(&Parent { path: &path, lead: &below, depth: depth + 1 }, folded, nodes);
            }
        }
        for (name, places) in &self.files {
            for at in places {
                nodes.push(Node {
                    branch: branch().0,
                    name: clean_name(name),
                    path: path.to_owned(),
                    depth,
                    is_directory: false,
                    is_folded: false,
                    files: *at..*at + 1,
                });
            }
        }
    }

    /// Returns the indexes of the files in the directory.
    fn range(&self) -> Range<usize> {
        let own = self.files.values().flatten().copied();
        let below = self.directories.values().map(Self::range);
        let start = own.clone().chain(below.clone().map(|range| range.start)).min().unwrap_or(0);
        let end = own.map(|at| at + 1).chain(below.map(|range| range.end)).max().unwrap_or(0);
        start..end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(paths: &[&str], folded: &[&str]) -> Vec<String> {
        let mut tree = Tree::of(paths.iter().copied());
        tree.number();
        let folded = folded.iter().map(|&path| path.to_owned()).collect();
        let nodes = tree.nodes(&folded);
        nodes.iter().map(|node| format!("{}{} {:?}", node.branch, node.name, node.files)).collect()
    }

    #[test]
    fn directories_come_first_and_chains_are_one_row() {
        let paths = ["z.rs", "src/b.rs", "src/deep/er/x.rs", "a/only/one.txt", "src/a.rs"];
        assert_eq!(
            drawn(&paths, &[]),
            [
                "a/only 0..1",
                "└ one.txt 0..1",
                "src 1..4",
                "├ deep/er 1..2",
                "│ └ x.rs 1..2",
                "├ a.rs 2..3",
                "└ b.rs 3..4",
                "z.rs 4..5"
            ]
        );
        assert_eq!(drawn(&paths, &["src", "a/only"]), ["a/only 0..1", "src 1..4", "z.rs 4..5"]);
    }

    #[test]
    fn unusual_paths_are_listed() {
        let deep = "d/".repeat(5_000) + "f";
        assert_eq!(drawn(&["", "/", "a//b", &deep], &[]).len(), 7);
    }
}
