//! The commands of `debug`.

use anyhow::{Context as _, Result};
use codewright_testkit::{Project, is_default_store};
use serde_json::{Value, json};

use crate::support::{check_code, check_has, program};

/// A repository with two files.
fn project() -> Result<Project> {
    let project = Project::git()?;
    project.write("a.txt", "hello\n")?;
    project.write("src/main.rs", "fn main() { hello }\n")?;
    project.write(".gitignore", "ignored.log\n")?;
    project.write("ignored.log", "hello\n")?;
    Ok(project)
}

/// The output of a successful command.
fn printed(project: &Project, args: &[&str]) -> Result<String> {
    let args = ["debug"].into_iter().chain(args.iter().copied());
    Ok(program(project, args).finish()?.success()?.stdout)
}

fn printed_json(project: &Project, args: &[&str]) -> Result<Value> {
    Ok(serde_json::from_str(&printed(project, args)?)?)
}

#[test]
fn files_are_listed_read_and_found() -> Result<()> {
    let project = project()?;
    let entries = printed_json(&project, &["file", "list", "."])?;
    let entries = entries.as_array().context("not a list")?;
    assert!(entries.contains(&json!({"path": "src/", "type": "directory"})), "{entries:?}");
    assert!(entries.contains(&json!({"path": "a.txt", "type": "file"})), "{entries:?}");
    assert_eq!(
        printed_json(&project, &["file", "read", "a.txt"])?,
        json!({"content": "aGVsbG8K", "encoding": "base64", "mime": "text/plain"})
    );
    assert_eq!(printed(&project, &["file", "search", "main.rs"])?, "src/main.rs\n");
    for (args, error) in [
        (["file", "read", "missing"], "`missing` does not exist"),
        (["file", "read", "/etc/passwd"], "outside"),
        (["file", "list", "../.."], "outside"),
    ] {
        let done = program(&project, ["debug"].into_iter().chain(args)).finish()?;
        check_code(&done, 1);
        check_has(&done.stderr, &[error]);
    }
    Ok(())
}

#[test]
fn searches_respect_globs_limits_and_ignored_files() -> Result<()> {
    let project = project()?;
    let all = printed(&project, &["rg", "files"])?;
    assert_eq!(
        all,
        ".gitignore\nREADME.md\na.txt\nopencode.json\nsrc/main.rs\n".replace("opencode.json\n", "")
    );
    assert_eq!(printed(&project, &["rg", "files", "--glob", "*.rs"])?, "src/main.rs\n");
    assert_eq!(printed(&project, &["rg", "files", "--query", "atx"])?, "a.txt\n");
    assert_eq!(printed(&project, &["rg", "files", "--limit", "2"])?.lines().count(), 2);
    let found = printed_json(&project, &["rg", "search", "hel+o", "--glob", "*.txt", "--glob", "*.md"])?;
    assert_eq!(
        found,
        json!([{
            "path": {"text": "a.txt"},
            "lines": {"text": "hello\n"},
            "line_number": 1,
            "absolute_offset": 0,
            "submatches": [{"match": {"text": "hello"}, "start": 0, "end": 5}],
        }])
    );
    let both = printed_json(&project, &["rg", "search", "hello"])?;
    assert_eq!(both.as_array().map(Vec::len), Some(2));
    let one = printed_json(&project, &["rg", "search", "hello", "--limit", "1"])?;
    assert_eq!(one.as_array().map(Vec::len), Some(1));
    for args in [["rg", "search", "("], ["rg", "files", "--limit=0"]] {
        check_code(&program(&project, ["debug"].into_iter().chain(args)).finish()?, 1);
    }
    Ok(())
}

#[test]
fn snapshots_are_taken_and_compared() -> Result<()> {
    let project = project()?;
    let hash = printed(&project, &["snapshot", "track"])?;
    let hash = hash.trim();
    assert!(hash.len() == 40 && hash.chars().all(|char| char.is_ascii_hexdigit()), "{hash}");
    project.write("a.txt", "hello\nchanged\n")?;
    project.write("new.txt", "new\n")?;
    let patch = printed_json(&project, &["snapshot", "patch", hash])?;
    let files = ["a.txt", "new.txt"].map(|name| project.path(name).canonicalize());
    let files: Vec<_> = files.into_iter().collect::<std::io::Result<_>>()?;
    assert_eq!(patch, json!({"hash": hash, "files": files}));
    let diff = printed(&project, &["snapshot", "diff", hash])?;
    check_has(&diff, &["diff --git a/a.txt b/a.txt", "+changed\n", "new file mode 100644", "+new\n"]);
    for args in [["snapshot", "patch", "deadbeef"], ["snapshot", "diff", "--output=x"]] {
        check_code(&program(&project, ["debug"].into_iter().chain(args)).finish()?, 1);
    }
    Ok(())
}

#[test]
fn projects_models_and_the_system_are_printed() -> Result<()> {
    let project = project()?;
    project.configure("http://127.0.0.1:9")?;
    let projects = printed_json(&project, &["scrap"])?;
    let worktree = project.directory().canonicalize()?;
    let known = projects.as_array().context("not a list")?;
    assert!(known.iter().any(|known| known["worktree"] == json!(worktree)), "{projects}");
    let catalog = printed_json(&project, &["v2"])?;
    let providers = catalog["providers"].as_array().context("no providers")?;
    assert!(providers.contains(&json!({"id": "mock", "name": "Mock"})), "{catalog}");
    assert_eq!((&catalog["default"], &catalog["small"]["mock"]), (&json!("mock/plain-model"), &Value::Null));
    let info = program(&project, ["debug", "info"]).env("TERM", "xterm\u{1b}[31m").finish()?.success()?;
    check_has(&info.stdout, &["codewright version: ", "os: ", "terminal: xterm", "plugins:\nnone\n"]);
    assert!(!info.stdout.contains('\u{1b}'), "{:?}", info.stdout);
    let milliseconds: f64 = printed(&project, &["startup"])?.trim().parse()?;
    assert!(milliseconds > 0.0);
    Ok(())
}

#[test]
fn wait_ends_with_the_signal() -> Result<()> {
    if !is_default_store() {
        return Ok(());
    }
    let project = project()?;
    let server = codewright_testkit::BlockingServer::start(codewright_testkit::Script::new())?;
    project.configure(&server.url())?;
    for (terminates, code) in [(false, 130), (true, 143)] {
        let waiting = program(&project, ["debug", "wait"]).start()?;
        // The lock of the database shows that the directory is open.
        let locks = crate::support::data(&project).join("locks/use");
        crate::support::wait_until("the lock", || locks.exists())?;
        std::thread::sleep(std::time::Duration::from_millis(500));
        let sent = if terminates { waiting.terminate() } else { waiting.interrupt() };
        sent?;
        check_code(&waiting.finish()?, code);
    }
    Ok(())
}

#[test]
fn parts_that_do_not_exist_refuse_with_the_reason() -> Result<()> {
    let project = project()?;
    for (args, reason) in [
        (&["lsp", "diagnostics", "a.txt"][..], "the configuration key `lsp` is not set"),
        (&["lsp", "symbols", "a"], "the configuration key `lsp` is not set"),
        (&["lsp", "document-symbols", "file:///a"], "the configuration key `lsp` is not set"),
        (&["agent", "build", "--tool", "bash", "--params", "{}"], "tools run only in a session"),
    ] {
        let done = program(&project, ["debug"].into_iter().chain(args.iter().copied())).finish()?;
        check_code(&done, 1);
        check_has(&done.stderr, &[reason]);
    }
    Ok(())
}
