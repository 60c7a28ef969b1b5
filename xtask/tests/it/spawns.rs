//! Processes are started in few places, each of which answers: who wrote what is executed?
//!
//! Everything that a model, a repository or an extension causes goes through the supervisor, which carries the
//! sandbox. The other places start programs of the user or of this program.

use std::fs;

use crate::{display, files, root};

/// The files that start processes, and the reason.
const STARTS: &[(&str, &str)] = &[
    (
        "crates/workspace/src/process/held.rs",
        "the choke point: starts the supervisor, in a sandbox if there is one",
    ),
    (
        "crates/workspace/src/process/supervisor.rs",
        "the supervisor, already in the sandbox, starts the command",
    ),
    ("crates/sandbox/src/mechanism.rs", "bubblewrap by its fixed path, to find out whether it works"),
    (
        "crates/workspace/src/git.rs",
        "git with fixed arguments and no settings of the repository, with restricted writes",
    ),
    (
        "crates/codewright/src/command/providers/terminal.rs",
        "`stty` with fixed arguments, for the user's terminal",
    ),
    (
        "crates/codewright/src/command/providers/well_known.rs",
        "a command that the user has read and confirmed with `yes`",
    ),
    (
        "crates/codewright/src/command/upgrade/replace.rs",
        "the new version of this program, whose signature was checked, to print its version",
    ),
    ("crates/codewright/src/browser.rs", "the user's browser with an address of the program or of a sign-in"),
    (
        "crates/llm/src/aws/remote.rs",
        "`credential_process` of the user's AWS configuration, as AWS defines it",
    ),
    ("crates/tui/src/clipboard.rs", "a fixed list of clipboard programs"),
    ("crates/tui/src/opener.rs", "the user's editor or opener, for a file that the user clicked"),
    ("crates/tui/src/runner.rs", "the user's editor, for the user's prompt"),
];
/// Files with `src` in their path that are compiled for tests only.
const TESTS: [&str; 4] = [
    "crates/testkit/",
    "crates/snapshot/src/random.rs",
    "crates/tools/src/tool/bash/tests.rs",
    "crates/scripted/",
];
/// Code that starts a process, without spaces. A type of the same name without a program is no start.
const CALLS: [&str; 8] = [
    "std::process::Command::new(",
    "tokio::process::Command::new(",
    "process::Command::new(",
    "posix_spawn(",
    "nix::unistd::fork(",
    "execve(",
    "execvp(",
    "portable_pty",
];
/// Imports that make `Command::new(` a start.
const IMPORTS: [&str; 2] = ["process::Command;", "process::{"];

/// Returns the code of a source, outside its tests, that starts a process.
fn starts(source: &str) -> Vec<&'static str> {
    let code = source.split("#[cfg(test)]").next().unwrap_or_default();
    let code: String = code.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
    let code: String = code.split_whitespace().collect();
    let mut found: Vec<&str> = CALLS.into_iter().filter(|call| code.contains(call)).collect();
    let imports_command = IMPORTS.iter().any(|import| {
        code.match_indices(import).any(|(at, _)| {
            let rest = &code[at..];
            rest[..rest.find(';').unwrap_or(rest.len())].contains("Command")
        })
    });
    if imports_command && (code.contains("Command::new(") || code.contains("Command::from(")) {
        found.push("Command::new(");
    }
    found
}

#[test]
fn processes_are_started_in_known_places_only() {
    let mut faults = Vec::new();
    let mut found = Vec::new();
    for path in files(&root().join("crates"), "rs") {
        let name = display(&path);
        if !name.contains("/src/") || TESTS.iter().any(|tests| name.starts_with(tests)) {
            continue;
        }
        let starts = starts(&fs::read_to_string(&path).unwrap());
        if starts.is_empty() {
            continue;
        }
        if !STARTS.iter().any(|(known, _)| *known == name) {
            faults.push(format!("{name}: {starts:?}"));
        }
        found.push(name);
    }
    assert!(faults.is_empty(), "use `codewright_workspace::run`, or add the file with a reason: {faults:#?}");
    let gone: Vec<_> = STARTS.iter().filter(|(known, _)| !found.iter().any(|name| name == known)).collect();
    assert!(gone.is_empty(), "these start nothing any more: {gone:#?}");
}

#[test]
fn a_start_is_found_in_any_notation() {
    for source in [
        "use std::process::Command; fn a() { Command::new(\"x\"); }",
        "use tokio::process::{Child, Command};\nfn a() { Command::new(p) }",
        "tokio::process::Command::new(\n    program,\n)",
        "use std::process; process::Command::new(x)",
    ] {
        assert!(!starts(source).is_empty(), "{source}");
    }
    for source in [
        "// std::process::Command::new(x)\n",
        "use std::process::ExitCode; Command::new(name)",
        "use clap::Command; Command::new(name)",
        "#[cfg(test)]\nmod tests { use std::process::Command; }",
    ] {
        assert!(starts(source).is_empty(), "{source}");
    }
}
