//! Links between documents.

use std::fs;
use std::path::Path;

use crate::{display, files, root};

/// Returns the files that a document links to, without links in code.
fn targets(text: &str) -> Vec<String> {
    let mut targets = Vec::new();
    let mut in_code = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
            continue;
        }
        if in_code {
            continue;
        }
        // Every second piece between backticks is code.
        let prose: String = line.split('`').step_by(2).collect();
        let inline = prose.split("](").skip(1).filter_map(|piece| Some(piece.split_once(')')?.0));
        let definition =
            prose.trim_start().strip_prefix('[').and_then(|rest| Some(rest.split_once("]: ")?.1));
        targets.extend(inline.chain(definition).filter_map(file));
    }
    targets
}

/// Returns the file of a link target, or `None` if it is not a file.
fn file(target: &str) -> Option<String> {
    let path = target.split_whitespace().next()?.trim_matches(['<', '>']);
    let path = path.split('#').next()?;
    let is_other = path.is_empty() || path.contains("://") || path.starts_with("mailto:");
    (!is_other).then(|| path.to_owned())
}

#[test]
fn every_linked_file_exists() {
    let at_root = fs::read_dir(root()).unwrap().map(|entry| entry.unwrap().path());
    let mut documents: Vec<_> =
        at_root.filter(|path| path.extension().is_some_and(|own| own == "md")).collect();
    if root().join("docs").is_dir() {
        documents.extend(files(&root().join("docs"), "md"));
    }
    let mut dead = Vec::new();
    for document in &documents {
        let base = document.parent().unwrap_or(Path::new("/"));
        for target in targets(&fs::read_to_string(document).unwrap()) {
            let path = match target.strip_prefix('/') {
                Some(from_root) => root().join(from_root),
                None => base.join(&target),
            };
            if !path.exists() {
                dead.push(format!("{}: {target}", display(document)));
            }
        }
    }
    assert_eq!(dead, [""; 0], "the targets of these links do not exist");
}

#[track_caller]
fn check(text: &str, expected: &[&str]) {
    assert_eq!(targets(text), expected, "{text}");
}

#[test]
fn links_of_all_forms_are_found() {
    check("see [a](docs/a.md) and [b](<b.md> \"B\")", &["docs/a.md", "b.md"]);
    check("[![badge](x.svg)](y.md#part)", &["x.svg", "y.md"]);
    check("[name]: ../c.md", &["../c.md"]);
}

#[test]
fn code_and_addresses_are_ignored() {
    check("[a](https://example.org/a.md) [b](#here) [c](mailto:a@example.org)", &[]);
    check("`[a](a.md)` and `list[0](x)`", &[]);
    check("```\n[a](a.md)\n```\n[b](b.md)", &["b.md"]);
}
