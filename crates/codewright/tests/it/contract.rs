//! Recorded cases of the original come again, event by event.

use std::path::Path;
use std::thread;

use codewright_testkit::contract::{folder, play};

/// Cases in which nothing may differ; `cargo xtask contract` tells of all.
const EXACT: [&str; 24] = [
    "bash-stream",
    "command-init",
    "doom-loop",
    "doom-loop-same-step",
    "error-length",
    "external-directory",
    "no-reply",
    "overflow-error-compaction",
    "parallel-tools",
    "permission-always",
    "permission-once",
    "permission-reject",
    "prompt-while-busy",
    "question",
    "read-dotenv",
    "reasoning-text",
    "retry-429",
    "session-crud",
    "shell",
    "simple-text",
    "summarize",
    "task",
    "task-general",
    "todowrite",
];

#[test]
fn recorded_cases_come_again() {
    let Some(folder) = folder() else {
        eprintln!("skipped: the recordings are not there");
        return;
    };
    let program = Path::new(env!("CARGO_BIN_EXE_codewright"));
    let different: Vec<_> = thread::scope(|scope| {
        let halves = EXACT.chunks(EXACT.len() / 2).map(|names| {
            let folder = &folder;
            scope.spawn(move || names.iter().map(|name| play(program, folder, name)).collect::<Vec<_>>())
        });
        let halves: Vec<_> = halves.collect();
        halves.into_iter().flat_map(|half| half.join().expect("no case panics")).collect()
    });
    for outcome in different {
        let outcome = outcome.expect("the case can be played");
        assert!(outcome.is_identical(), "{}: {:#?}", outcome.name, outcome.differences);
        assert!(outcome.recorded > 4, "{} proves nothing", outcome.name);
    }
}
