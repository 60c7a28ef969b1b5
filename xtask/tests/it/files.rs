//! Rules for manifests and source files.

use std::fs;
use std::path::Path;

use crate::{display, files, packages, root};

/// The crates with `unsafe`.
const UNSAFE: [&str; 2] = ["crates/memory", "crates/notify"];

#[test]
fn every_crate_uses_the_lints_of_the_workspace() {
    let has_lints = |manifest: &str| {
        let mut lines = manifest.lines().map(str::trim).skip_while(|line| *line != "[lints]").skip(1);
        lines.find(|line| !line.is_empty()) == Some("workspace = true")
    };
    let without: Vec<String> = packages()
        .iter()
        .map(|package| package["manifest_path"].as_str().unwrap().to_owned())
        .filter(|path| !UNSAFE.iter().any(|name| path.ends_with(&format!("/{name}/Cargo.toml"))))
        .filter(|path| !has_lints(&fs::read_to_string(path).unwrap()))
        .collect();
    assert_eq!(without, [""; 0], "these manifests need `[lints]` with `workspace = true`");
}

#[test]
fn the_crates_with_unsafe_have_the_other_lints_of_the_workspace() {
    let lines = |path: &str, table: &str| -> Vec<String> {
        let text = fs::read_to_string(root().join(path)).unwrap();
        let lines = text.lines().skip_while(|line| *line != table).skip(1);
        lines.take_while(|line| !line.is_empty()).map(str::to_owned).collect()
    };
    for (name, lints) in UNSAFE.iter().flat_map(|name| ["rust", "clippy"].map(|lints| (name, lints))) {
        let mut own = lines(&format!("{name}/Cargo.toml"), &format!("[lints.{lints}]"));
        own.retain(|line| line != "undocumented_unsafe_blocks = \"warn\"");
        let of_all = lines("Cargo.toml", &format!("[workspace.lints.{lints}]"));
        let expected: Vec<_> = of_all
            .iter()
            .map(|line| line.replace("unsafe_code = \"forbid\"", "unsafe_code = \"deny\""))
            .collect();
        assert_eq!(own, expected);
    }
}

#[test]
fn unsafe_code_is_in_three_files() {
    let all = UNSAFE.iter().flat_map(|name| files(&root().join(name), "rs"));
    let mut calls: Vec<(String, usize)> = all
        .map(|path| (display(&path), fs::read_to_string(path).unwrap().matches("unsafe {").count()))
        .filter(|(_, count)| *count > 0)
        .collect();
    calls.sort();
    let expected = [
        ("crates/memory/src/code.rs", 1),
        ("crates/memory/src/glibc.rs", 2),
        ("crates/notify/src/linux.rs", 4),
    ];
    assert_eq!(calls, expected.map(|(path, count)| (path.to_owned(), count)), "review each new call");
}

#[test]
fn no_file_contains_the_marks_of_a_merge_conflict() {
    let marks = ['<', '>'].map(|mark| mark.to_string().repeat(7));
    let kinds = ["rs", "md", "toml", "txt", "py", "js", "mjs", "html", "json"];
    let all = kinds.iter().flat_map(|kind| files(root(), kind));
    let with: Vec<String> = all
        .filter(|path| {
            let text = fs::read(path).unwrap();
            let text = String::from_utf8_lossy(&text);
            text.lines().any(|line| marks.iter().any(|mark| line.starts_with(mark.as_str())))
        })
        .map(|path| display(&path))
        .collect();
    assert_eq!(with, [""; 0]);
}

/// Whether the doc comments of a source have an example that cargo would compile.
fn has_doctest(source: &str) -> bool {
    let comments = source.lines().filter_map(|line| {
        let line = line.trim_start();
        line.strip_prefix("///").or_else(|| line.strip_prefix("//!"))
    });
    // Every second fence ends a block.
    let mut openings = comments.filter_map(|line| line.trim().strip_prefix("```")).step_by(2);
    let is_rust = |tag: &str| matches!(tag, "" | "rust" | "no_run" | "should_panic" | "compile_fail");
    openings.any(|tags| tags.split(',').any(is_rust))
}

#[test]
fn every_crate_with_examples_in_its_docs_tests_them() {
    let mut faults = Vec::new();
    for package in packages() {
        let manifest = Path::new(package["manifest_path"].as_str().unwrap());
        let mut examples = files(&manifest.parent().unwrap().join("src"), "rs");
        examples.retain(|path| has_doctest(&fs::read_to_string(path).unwrap()));
        let targets = package["targets"].as_array().unwrap();
        let Some(library) = targets.iter().find(|target| target["kind"][0] == "lib") else { continue };
        if !examples.is_empty() && library["doctest"] == false {
            faults.push(format!("{}: {}", display(manifest), display(&examples[0])));
        }
    }
    assert_eq!(faults, [""; 0], "remove `doctest = false` from these manifests");
}

/// Whether a line builds a path outside the repository from the folder of a crate, which is two levels deep.
fn leaves_repository(line: &str) -> bool {
    let mut literals = line.split('"').skip(1).step_by(2);
    line.contains("CARGO_MANIFEST_DIR")
        && literals.any(|text| text.trim_start_matches('/').starts_with("../../.."))
}

#[test]
fn no_test_reads_files_outside_the_repository() {
    let mut sources = files(&root().join("crates"), "rs");
    sources.extend(files(&root().join("xtask/src"), "rs"));
    let outside: Vec<String> = sources
        .iter()
        .filter(|path| fs::read_to_string(path).unwrap().lines().any(leaves_repository))
        .map(|path| display(path))
        .collect();
    assert_eq!(outside, [""; 0], "copy the files into the repository");
}

#[test]
fn no_file_is_named_mod() {
    let mut sources = files(root(), "rs");
    sources.retain(|path| path.file_name().is_some_and(|name| name == "mod.rs"));
    let named: Vec<String> = sources.iter().map(|path| display(path)).collect();
    assert_eq!(named, [""; 0], "a module `foo` is `foo.rs` with the folder `foo/`");
}
