//! Unusual directories.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use codewright_testkit::{Project, Run, Script, Turn, is_default_store};
use serde_json::json;

use crate::support::{Stage, check_code, check_has, data, lines, of_type, program};

/// A generous limit; the search is much faster.
const SEARCH_LIMIT: Duration = Duration::from_secs(20);
const START_LIMIT: Duration = Duration::from_secs(5);
const DIRECTORIES: usize = 400;
const FILES_EACH: usize = 500;

#[test]
fn a_directory_without_a_repository_works() -> Result<()> {
    let script = Script::new().turn(Turn::tools([
        ("write", json!({"filePath": "a.txt", "content": "x"})),
        ("glob", json!({"pattern": "*.txt"})),
        ("read", json!({"filePath": "/etc/hostname"})),
    ]));
    let stage = Stage::plain(script)?;
    let done = stage.run(["hi"])?.success()?;
    assert_eq!(stage.project.read("a.txt")?, "x");
    check_has(&done.stderr, &["external_directory (/etc/*); auto-rejecting"]);
    stage.no_problems()
}

#[test]
fn a_repository_without_a_commit_and_a_broken_one_work() -> Result<()> {
    let stage = Stage::plain(Script::new().default_turn(Turn::text("Done.")))?;
    stage.project.run_git(&["init", "--quiet"])?;
    stage.run(["hi"])?.success()?;
    fs::remove_dir_all(stage.project.path(".git"))?;
    stage.project.write(".git", "gitdir: /nowhere")?;
    stage.run(["hi"])?.success()?;
    Ok(())
}

#[test]
fn a_read_only_directory_works_except_for_writing() -> Result<()> {
    // A directory that not even root can write to.
    let directory = Path::new("/sys/kernel");
    if !directory.exists() {
        eprintln!("skipped: there is no {}", directory.display());
        return Ok(());
    }
    let script = Script::new()
        .turn(Turn::tools([
            ("write", json!({"filePath": "new.txt", "content": "x"})),
            ("glob", json!({"pattern": "not-there*"})),
            ("bash", json!({"command": "pwd; echo x > new.txt"})),
        ]))
        .text("Read only.");
    let stage = Stage::plain(script)?;
    let run = program(&stage.project, ["run", "--format", "json", "hi"]).directory(directory);
    let config = Project::config(&stage.server.url()).to_string();
    let done = run.env("OPENCODE_CONFIG_CONTENT", config).finish()?.success()?;
    let lines = lines(&done)?;
    let write = &of_type(&lines, "tool_use")
        .into_iter()
        .find(|call| call["part"]["tool"] == "write")
        .unwrap()["part"]["state"];
    assert_eq!(write["status"], "error");
    check_has(write["error"].as_str().unwrap(), &["/sys/kernel/new.txt"]);
    check_has(&stage.results(1)?[2], &["/sys/kernel\n"]);
    stage.no_problems()
}

#[test]
fn an_unwritable_data_directory_is_reported() -> Result<()> {
    if !is_default_store() {
        return Ok(());
    }
    let stage = Stage::plain(Script::new())?;
    let done = stage.program(["run", "hi"]).env("XDG_DATA_HOME", "/proc/nowhere").finish()?;
    check_code(&done, 1);
    check_has(&done.stderr, &["Error: ", "/proc/nowhere/codewright"]);
    assert!(!data(&stage.project).exists());
    Ok(())
}

#[test]
fn a_missing_directory_is_reported() -> Result<()> {
    let stage = Stage::plain(Script::new())?;
    stage.project.write("file.txt", "x")?;
    for wanted in ["absent", "file.txt"] {
        let done = stage.run(["--dir", wanted, "hi"])?;
        check_code(&done, 1);
        check_has(&done.stderr, &["Error: ", wanted]);
    }
    Ok(())
}

/// Creates the files in two threads.
fn fill(directory: &Path) -> Result<()> {
    let make = |from: usize| -> std::io::Result<()> {
        for n in (from..DIRECTORIES).step_by(2) {
            let folder = directory.join(format!("part{}/folder{n}", n % 20));
            fs::create_dir_all(&folder)?;
            for file in 0..FILES_EACH {
                File::create(folder.join(format!("file{file}.txt")))?;
            }
        }
        Ok(())
    };
    thread::scope(|scope| {
        let other = scope.spawn(|| make(1));
        make(0)?;
        Ok(other.join().expect("the other half fails with a result")?)
    })
}

/// A directory in memory if possible, because creating the files on a disk would dominate the time.
fn memory() -> Result<tempfile::TempDir> {
    let shared = Path::new("/dev/shm");
    let builder = || {
        let mut builder = tempfile::Builder::new();
        builder.prefix("codewright-test-");
        builder
    };
    Ok(builder().tempdir_in(shared).or_else(|_| builder().tempdir())?)
}

#[test]
fn two_hundred_thousand_files_are_searched_in_time() -> Result<()> {
    let script = Script::new()
        .text("Hi.")
        .turn(Turn::tools([
            ("glob", json!({"pattern": "**/file7.txt"})),
            ("grep", json!({"pattern": "the needle"})),
            ("glob", json!({"pattern": "**/nothing*.rs"})),
        ]))
        .text("Found.");
    let stage = Stage::plain(script)?;
    let directory = memory()?;
    let directory = directory.path();
    Run::new("git", &stage.project).args(["init", "--quiet"]).directory(directory).finish()?.success()?;
    fill(directory)?;
    fs::write(directory.join("part7/folder7/needle.md"), "here is the needle\n")?;
    let config = Project::config(&stage.server.url()).to_string();
    let run = |prompt| {
        let run = program(&stage.project, ["run", prompt]).directory(directory);
        run.env("OPENCODE_CONFIG_CONTENT", &config).finish()?.success()
    };
    let begun = Instant::now();
    run("hi")?;
    assert!(begun.elapsed() < START_LIMIT, "`run hi` took {:?}", begun.elapsed());
    let begun = Instant::now();
    run("search")?;
    assert!(begun.elapsed() < SEARCH_LIMIT, "the search took {:?}", begun.elapsed());
    let results = stage.results(2)?;
    check_has(&results[0], &["file7.txt", "showing first 100 results"]);
    check_has(&results[1], &["Found 1 matches", "needle.md", "here is the needle"]);
    check_has(&results[2], &["No files found"]);
    stage.no_problems()
}

#[test]
fn names_that_are_not_utf8_are_handled() -> Result<()> {
    let script = Script::new()
        .turn(Turn::tools([
            ("glob", json!({"pattern": "*.txt"})),
            ("grep", json!({"pattern": "inside"})),
            ("read", json!({"filePath": "."})),
            ("bash", json!({"command": "ls | wc -l"})),
        ]))
        .text("Seen.");
    let stage = Stage::plain(script)?;
    let odd = OsStr::from_bytes(b"odd\xff\xfe.txt");
    stage.project.write(Path::new(odd), "inside\n")?;
    stage.run(["hi"])?.success()?;
    let results = stage.results(1)?;
    for result in &results[..3] {
        check_has(result, &["odd\u{fffd}\u{fffd}.txt"]);
    }
    // The same for the program's path, arguments and environment.
    let place = stage.project.path(Path::new(OsStr::from_bytes(b"place\xff")));
    fs::create_dir(&place)?;
    let done = program(&stage.project, ["run", "hi"]).directory(&place).finish()?;
    assert!(done.code.is_some_and(|code| code <= 1) && !done.stderr.contains("panicked"), "{done:?}");
    let done = program(&stage.project, ["run"]).args([OsStr::from_bytes(b"word\xff")]).finish()?;
    check_code(&done, 1);
    assert!(!done.stderr.contains("panicked"), "{}", done.stderr);
    let done = program(&stage.project, ["run", "hi"]).env("ODD", OsStr::from_bytes(b"\xff")).finish()?;
    check_code(&done, 0);
    stage.no_problems()
}

#[test]
fn a_missing_home_is_reported() -> Result<()> {
    let stage = Stage::plain(Script::new())?;
    // Without a value the directory that the system has for the user is used.
    let done = stage.program(["run", "hi"]).env("HOME", "relative").finish()?;
    check_code(&done, 1);
    check_has(&done.stderr, &["Error: ", "`HOME`"]);
    Ok(())
}

#[test]
fn a_deleted_directory_is_reported() -> Result<()> {
    let stage = Stage::plain(Script::new())?;
    let command =
        format!("mkdir gone; cd gone; rmdir ../gone; exec {} run hi", env!("CARGO_BIN_EXE_codewright"));
    let done = Run::new("sh", &stage.project).args(["-c", &command]).finish()?;
    check_code(&done, 1);
    check_has(&done.stderr, &["Error: ", "directory"]);
    Ok(())
}

#[test]
fn a_full_output_ends_the_run() -> Result<()> {
    let stage = Stage::plain(Script::new().default_turn(Turn::text("Hello.")))?;
    for outputs in [">/dev/full", ">/dev/full 2>/dev/full", ">&-", "2>&-", "<&- >&- 2>&-"] {
        for format in ["default", "json"] {
            let program = env!("CARGO_BIN_EXE_codewright");
            let command = format!("exec {program} run --format {format} hi {outputs}");
            let done = Run::new("sh", &stage.project).args(["-c", &command]).finish()?;
            assert!(done.code.is_some_and(|code| code <= 1), "{command}: {done:?}");
            assert!(!done.stderr.contains("panicked"), "{command}: {}", done.stderr);
        }
    }
    stage.no_problems()
}
