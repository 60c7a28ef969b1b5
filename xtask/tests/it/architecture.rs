//! `ARCHITECTURE.md` and the pages of `docs/design`, compared with the tree.

use std::fs;

use crate::{display, files, root};

/// The longest overview, in words.
const MAX_WORDS: usize = 2500;

#[test]
fn the_overview_is_short_and_has_one_picture() {
    let text = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let words = text.split_whitespace().count();
    assert!(words <= MAX_WORDS, "{words} words; move details to docs/design");
    let fences = text.lines().filter(|line| line.starts_with("```")).count();
    let images = text.matches("![").count();
    assert_eq!(fences / 2 + images, 1);
    for page in files(&root().join("docs/design"), "md") {
        let path = display(&page);
        assert!(text.contains(&format!("]({path})")), "no link to {path}");
    }
}

/// Returns the paths of sources in a document: code that has a slash and names a Rust file or ends with a slash.
fn paths(text: &str) -> Vec<&str> {
    let is_plain = |code: &&str| code.chars().all(|char| char.is_alphanumeric() || "_-./".contains(char));
    let is_source = |code: &&str| code.contains('/') && (code.ends_with(".rs") || code.ends_with('/'));
    let inside = text
        .lines()
        .filter(|line| !line.starts_with("```"))
        .flat_map(|line| line.split('`').skip(1).step_by(2));
    inside.filter(is_plain).filter(is_source).filter(|code| !code.starts_with('/')).collect()
}

#[test]
fn the_sources_that_the_design_names_exist() {
    let sources: Vec<String> =
        ["rs"].iter().flat_map(|kind| files(root(), kind)).map(|path| display(&path)).collect();
    let exists = |path: &str| {
        let name = format!("/{path}");
        root().join(path).exists()
            || sources.iter().any(|source| {
                if path.ends_with('/') { source.contains(&name) } else { source.ends_with(&name) }
            })
    };
    let mut pages = vec![root().join("ARCHITECTURE.md")];
    pages.extend(files(&root().join("docs/design"), "md"));
    let mut found = 0;
    let mut missing = Vec::new();
    for page in pages {
        let text = fs::read_to_string(&page).unwrap();
        let named = paths(&text);
        found += named.len();
        missing.extend(
            named.into_iter().filter(|path| !exists(path)).map(|path| format!("{}: {path}", display(&page))),
        );
    }
    assert!(found > 100, "{found}");
    assert_eq!(missing, [""; 0]);
}

#[test]
fn paths_are_found_in_code() {
    assert_eq!(paths("a `b/c.rs` and `d.rs`, `e/f/` or `g/*/h.rs`"), ["b/c.rs", "e/f/"]);
    assert_eq!(paths("`/api/` and `x y/z.rs`"), [""; 0]);
}
