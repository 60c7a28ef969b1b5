//! Git may only be started by one module, which prevents a repository's settings from running programs.

use std::fs;

use crate::{display, files, root};

/// The one file of the program that starts git.
const RUNNER: &str = "crates/workspace/src/git.rs";
/// Files with `src` in their path that are compiled for tests only.
const TESTS: [&str; 2] = ["crates/snapshot/src/random.rs", "crates/testkit/"];
/// Code that starts git, without spaces.
const STARTS: [&str; 5] = [
    "Command::new(\"git",
    "program:\"git",
    "program:PathBuf::from(\"git",
    "directory.join(\"git\")",
    "bin/git\"",
];

/// Returns the code of a source, outside its tests, that starts git.
fn starts(source: &str) -> Vec<&'static str> {
    let code = source.split("#[cfg(test)]").next().unwrap_or_default();
    let code: String = code.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
    let code: String = code.split_whitespace().collect();
    STARTS.into_iter().filter(|start| code.contains(start)).collect()
}

#[test]
fn git_is_started_by_the_runner_only() {
    let mut faults = Vec::new();
    for path in files(&root().join("crates"), "rs") {
        let name = display(&path);
        let is_source = name.contains("/src/") && !TESTS.iter().any(|tests| name.starts_with(tests));
        if !is_source || name == RUNNER {
            continue;
        }
        let found = starts(&fs::read_to_string(&path).unwrap());
        faults.extend(found.into_iter().map(|start| format!("{name}: `{start}`")));
    }
    assert!(faults.is_empty(), "use `codewright_workspace::git` instead: {faults:#?}");
    let runner = fs::read_to_string(root().join(RUNNER)).unwrap();
    assert!(!starts(&runner).is_empty(), "`{RUNNER}` does not start git any more; update this test");
}

#[test]
fn a_start_is_found_in_any_notation() {
    for source in [
        "Command::new(\"git\")",
        "tokio::process::Command::new(\n    \"git\",\n)",
        "Command::new(\"git-lfs\")",
        "Command { program: \"git\".into() }",
    ] {
        assert!(!starts(source).is_empty(), "{source}");
    }
    for source in
        ["// Command::new(\"git\")\n", "vcs: \"git\"", "#[cfg(test)]\nmod tests { Command::new(\"git\") }"]
    {
        assert!(starts(source).is_empty(), "{source}");
    }
}
