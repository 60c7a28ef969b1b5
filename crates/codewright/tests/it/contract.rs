//! Replays the recorded OpenCode sessions.

use std::path::Path;
use std::thread;

use codewright_testkit::contract::{folder, play};

/// Cases in which nothing may differ. The cases in neither list differ; `cargo xtask contract` shows how.
const EXACT: [&str; 31] = [
    "abort-stream",
    "abort-tool",
    "bash-stream",
    "command-init",
    "doom-loop",
    "doom-loop-same-step",
    "error-400",
    "error-length",
    "external-directory",
    "fork",
    "no-reply",
    "overflow-error-compaction",
    "parallel-tools",
    "permission-always",
    "permission-once",
    "permission-reject",
    "permission-reject-message",
    "prompt-while-busy",
    "question",
    "reasoning-text",
    "retry-429",
    "retry-500-no-header",
    "retry-529",
    "session-crud",
    "shell",
    "simple-text",
    "structured-output",
    "summarize",
    "task",
    "task-general",
    "todowrite",
];

/// Cases that are the same in sequence and shape and differ only in texts and counts of Codewright.
const ALIKE: [&str; 10] = [
    "apply-patch",
    "error-401",
    "overflow-usage-compaction",
    "permission-deny",
    "permission-edit-deprecated-route",
    // "Always" covers the file only.
    "read-dotenv",
    "read-edit",
    "revert",
    "tool-errors",
    "write-new",
];

#[test]
fn recorded_cases_match() {
    let folder = folder();
    let program = Path::new(env!("CARGO_BIN_EXE_codewright"));
    let different: Vec<_> = thread::scope(|scope| {
        let all: Vec<_> = EXACT.into_iter().chain(ALIKE).collect();
        let halves = all.chunks(all.len().div_ceil(2)).map(<[_]>::to_vec).map(|names| {
            let folder = &folder;
            scope.spawn(move || names.iter().map(|name| play(program, folder, name)).collect::<Vec<_>>())
        });
        let halves: Vec<_> = halves.collect();
        halves.into_iter().flat_map(|half| half.join().expect("no case panics")).collect()
    });
    for outcome in different {
        let outcome = outcome.expect("the case can be played");
        if EXACT.contains(&outcome.name.as_str()) {
            assert!(outcome.is_identical(), "{}: {:#?}", outcome.name, outcome.values.differences);
        }
        assert!(outcome.is_alike(), "{}: {:#?}", outcome.name, outcome.shapes.differences);
        assert!(outcome.recorded > 4, "{} proves nothing", outcome.name);
    }
}
