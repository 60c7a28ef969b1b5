//! Where a tool starts. Each place passes the rules and the hooks; a new one must be added here with the reason why it does.

use std::path::Path;

/// The files of the engine that run a tool, or a command as the tool `bash` does, with the check before it.
const STARTS: &[(&str, &str)] = &[
    (
        "session/shell.rs",
        "a command that the user types; on a server with users only an administrator has this route",
    ),
    ("toolbox/call.rs", "every call: `work` asks the hooks, then the rules, then runs"),
    ("toolbox/cx.rs", "a file that the user attaches to the own prompt, read with the tool `read`"),
    (
        "worktrees/create.rs",
        "the start command of a worktree, after the project is trusted and in the sandbox of commands",
    ),
];

#[test]
fn a_tool_starts_only_where_rules_and_hooks_were_asked() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/engine/src");
    let mut found = Vec::new();
    visit(&root, &mut |path, text| {
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        if code.contains("tool.run(") || code.contains("run_for_user(") {
            found.push(path.strip_prefix(&root).unwrap_or(path).display().to_string());
        }
    });
    found.sort();
    assert_eq!(found, STARTS.iter().map(|(file, _)| (*file).to_owned()).collect::<Vec<_>>());
}

/// The crate that decides has no input and output.
#[test]
fn the_crate_of_permissions_reads_and_starts_nothing() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/permission/src");
    visit(&root, &mut |path, text| {
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        for word in [
            "std::fs",
            "std::net",
            "std::process",
            "std::env",
            "tokio",
            "async ",
            ".exists()",
            ".is_dir()",
            ".is_file()",
            "canonicalize",
            "metadata()",
            "physical(",
            "SystemTime",
            "Instant::",
        ] {
            assert!(!code.contains(word), "{} contains `{word}`", path.display());
        }
    });
}

fn visit(directory: &Path, see: &mut impl FnMut(&Path, &str)) {
    let mut entries: Vec<_> =
        std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            visit(&path, see);
        } else if path.extension().is_some_and(|end| end == "rs") {
            see(&path, &std::fs::read_to_string(&path).unwrap());
        }
    }
}
