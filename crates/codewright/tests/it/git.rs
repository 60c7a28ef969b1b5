//! The configuration of a repository cannot make the program run anything.
//!
//! Every trap writes a line to a file when it is triggered. Plain git proves that the trap works before the program
//! is run.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use codewright_testkit::{Finished, Project, Run, Script, Turn};
use serde_json::json;

use crate::support::{Stage, ask, check_code, check_has, files, get, post, serve};

/// A commit that does not exist.
const MISSING: &str = "1111111111111111111111111111111111111111";
/// The routes about a directory.
const ROUTES: [&str; 10] = [
    "/vcs",
    "/vcs/status",
    "/vcs/diff?mode=git",
    "/vcs/diff?mode=branch",
    "/vcs/diff/raw",
    "/file/status",
    "/file?path=.",
    "/find/file?query=READ",
    "/path",
    "/project/current",
];
/// Longer than all deadlines of one route together on a loaded machine, shorter than a hang.
const ROUTE_LIMIT: Duration = Duration::from_secs(50);

/// A repository with a trap.
struct Trap {
    stage: Stage,
    canary: PathBuf,
    program: String,
}

impl Trap {
    fn new() -> Result<Self> {
        let script = Script::new()
            .turn(Turn::tools([
                ("write", json!({"filePath": "by-tool.txt", "content": "x\n"})),
                ("bash", json!({"command": "echo y > by-command.txt"})),
            ]))
            .text("Done.");
        let stage = Stage::git(script)?;
        let canary = stage.project.home().join("canary");
        let path = stage.project.home().join("trap.sh");
        fs::write(&path, format!("#!/bin/sh\necho \"$0 $*\" >> '{}'\n[ -t 0 ] || cat\n", canary.display()))?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
        let program = path.to_str().context("a path of text")?.to_owned();
        Ok(Self { stage, canary, program })
    }

    /// Sets a key of the repository's configuration to the trap.
    fn set(&self, key: &str) -> Result<()> {
        self.config(key, &self.program)
    }

    fn config(&self, key: &str, value: &str) -> Result<()> {
        self.stage.project.run_git(&["config", key, value]).map(drop)
    }

    fn write(&self, path: &str, text: &str) -> Result<()> {
        self.stage.project.write(path, text).map(drop)
    }

    /// Fails unless plain git triggers the trap.
    fn works(&self, args: &[&str]) -> Result<()> {
        self.write("README.md", "# Changed before\n")?;
        // Some of the traps break git itself too.
        drop(self.stage.project.run_git(args));
        ensure!(self.canary.exists(), "the trap does not work: git {args:?} did not run it");
        fs::remove_file(&self.canary)?;
        Ok(())
    }

    fn is_intact(&self, by: &str) -> Result<()> {
        let said = fs::read_to_string(&self.canary).unwrap_or_default();
        ensure!(said.is_empty(), "{by} ran the repository's program: {said}");
        Ok(())
    }

    /// Runs everything that reads a repository. Nothing may trigger the trap.
    fn holds(&self) -> Result<()> {
        self.holds_with(|run| run)
    }

    fn holds_with(&self, with: impl Fn(Run) -> Run) -> Result<()> {
        for args in [&["models"][..], &["session", "list"], &["run", "hi"]] {
            self.write("README.md", &format!("# Changed for {args:?}\n"))?;
            let done = with(self.stage.program(args.iter().copied())).finish()?;
            check_code(&done, 0);
            self.is_intact(args[0])?;
        }
        self.write("new.txt", "new\n")?;
        let (server, url) = serve(with(self.stage.program(["serve"])))?;
        for route in ROUTES {
            self.write("README.md", &format!("# Changed for {route}\n"))?;
            read(&url, route)?;
            self.is_intact(route)?;
        }
        let patch = "--- a/new.txt\n+++ b/new.txt\n@@ -1 +1 @@\n-new\n+newer\n";
        post(&url, "/vcs/apply", &json!({ "patch": patch }))?;
        self.is_intact("/vcs/apply")?;
        server.terminate()?;
        server.finish()?;
        self.is_intact("the end of the server")
    }
}

/// The response of a route with any status, within the time limit.
fn read(url: &str, route: &str) -> Result<String> {
    let begun = Instant::now();
    let mut answer = Vec::new();
    std::io::Read::read_to_end(&mut ask(url, route)?, &mut answer)?;
    ensure!(begun.elapsed() < ROUTE_LIMIT, "{route} took {:?}", begun.elapsed());
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

/// A missing commit that git would fetch from a remote.
fn promisor(trap: &Trap, url: &str) -> Result<()> {
    trap.config("core.repositoryformatversion", "1")?;
    trap.config("remote.origin.url", url)?;
    trap.config("remote.origin.promisor", "true")?;
    trap.config("remote.origin.partialclonefilter", "blob:none")?;
    trap.config("extensions.partialClone", "origin")?;
    trap.write(".git/refs/heads/main", &format!("{MISSING}\n"))
}

#[test]
fn a_missing_commit_is_not_fetched_over_ssh() -> Result<()> {
    let trap = Trap::new()?;
    trap.set("core.sshCommand")?;
    promisor(&trap, "ssh://host.invalid/repository")?;
    trap.works(&["rev-list", "--max-parents=0", "HEAD"])?;
    trap.holds()
}

#[test]
fn a_missing_commit_is_not_fetched_by_a_command() -> Result<()> {
    let trap = Trap::new()?;
    promisor(&trap, &format!("ext::{} x", trap.program))?;
    trap.config("protocol.ext.allow", "always")?;
    trap.works(&["rev-list", "--max-parents=0", "HEAD"])?;
    trap.holds()
}

#[test]
fn filters_do_not_run() -> Result<()> {
    for (key, attributes) in [
        ("filter.x.clean", ".gitattributes"),
        ("filter.x.process", ".gitattributes"),
        ("filter.x.clean", ".git/info/attributes"),
    ] {
        let trap = Trap::new()?;
        trap.set(key)?;
        trap.set("filter.x.smudge")?;
        trap.write(attributes, "* filter=x\n")?;
        trap.works(&["diff", "HEAD"])?;
        trap.holds()?;
    }
    Ok(())
}

#[test]
fn drivers_of_differences_do_not_run() -> Result<()> {
    for key in ["diff.x.textconv", "diff.x.command", "diff.external"] {
        let trap = Trap::new()?;
        trap.set(key)?;
        trap.write(".gitattributes", "* diff=x merge=x\n")?;
        trap.set("merge.x.driver")?;
        trap.works(&["diff", "HEAD"])?;
        trap.holds()?;
    }
    Ok(())
}

#[test]
fn monitors_and_hooks_do_not_run() -> Result<()> {
    let trap = Trap::new()?;
    trap.set("core.fsmonitor")?;
    trap.works(&["status"])?;
    trap.holds()?;

    let trap = Trap::new()?;
    fs::create_dir_all(trap.stage.project.path(".git/hooks"))?;
    for hook in ["post-index-change", "reference-transaction", "post-checkout", "pre-commit"] {
        fs::copy(&trap.program, trap.stage.project.path(".git/hooks").join(hook))?;
    }
    trap.write("other.txt", "x\n")?;
    trap.works(&["add", "--intent-to-add", "other.txt"])?;
    trap.holds()?;

    let trap = Trap::new()?;
    fs::create_dir(trap.stage.project.path("hooks"))?;
    fs::copy(&trap.program, trap.stage.project.path("hooks/post-index-change"))?;
    trap.config("core.hooksPath", trap.stage.project.path("hooks").to_str().context("text")?)?;
    trap.write("other.txt", "x\n")?;
    trap.works(&["add", "--intent-to-add", "other.txt"])?;
    trap.holds()
}

#[test]
fn settings_of_submodules_and_nested_repositories_are_ignored() -> Result<()> {
    for key in ["core.fsmonitor", "filter.x.clean"] {
        let trap = Trap::new()?;
        let project = &trap.stage.project;
        fs::create_dir(project.path("nested"))?;
        trap.write("nested/file.txt", "x\n")?;
        project.run_git(&["-C", "nested", "init", "--quiet"])?;
        project.run_git(&["-C", "nested", "add", "--all"])?;
        let identity = ["-c", "user.name=n", "-c", "user.email=n@localhost"];
        let commit = ["-C", "nested", "commit", "--quiet", "--message=n"];
        project.run_git(&[&identity[..], &commit].concat())?;
        project.run_git(&["-c", "advice.addEmbeddedRepo=false", "add", "nested"])?;
        project.run_git(&["commit", "--quiet", "--message=Nest"])?;
        project.run_git(&["-C", "nested", "config", key, &trap.program])?;
        trap.write("nested/.gitattributes", "* filter=x\n")?;
        trap.write(".gitmodules", "[submodule \"n\"]\npath = nested\nurl = ./n\nignore = none\n")?;
        // The same size as before, so that git must compare the content.
        trap.write("nested/file.txt", "y\n")?;
        trap.works(&["status"])?;
        trap.write("nested/file.txt", "z\n")?;
        trap.config("diff.submodule", "diff")?;
        trap.config("diff.ignoreSubmodules", "none")?;
        trap.config("submodule.recurse", "true")?;
        trap.holds()?;
    }
    Ok(())
}

#[test]
fn included_settings_and_worktree_settings_are_ignored() -> Result<()> {
    let trap = Trap::new()?;
    trap.write("settings", &format!("[core]\nfsmonitor = {}\n", trap.program))?;
    trap.config("include.path", "../settings")?;
    trap.works(&["status"])?;
    trap.holds()?;

    let trap = Trap::new()?;
    trap.config("core.repositoryformatversion", "1")?;
    trap.config("extensions.worktreeConfig", "true")?;
    trap.write(".git/config.worktree", &format!("[core]\nfsmonitor = {}\n", trap.program))?;
    trap.works(&["status"])?;
    trap.holds()
}

#[test]
fn settings_behind_a_gitdir_file_are_ignored() -> Result<()> {
    for linked in [false, true] {
        let trap = Trap::new()?;
        trap.set("filter.x.clean")?;
        trap.set("core.fsmonitor")?;
        trap.write(".gitattributes", "* filter=x\n")?;
        let (dot, moved) = (trap.stage.project.path(".git"), trap.stage.project.path("elsewhere"));
        fs::rename(&dot, &moved)?;
        if linked {
            let own = moved.join("worktrees/w");
            fs::create_dir_all(&own)?;
            fs::write(own.join("commondir"), "../..\n")?;
            fs::write(own.join("gitdir"), dot.to_str().context("text")?)?;
            for name in ["HEAD", "index"] {
                fs::copy(moved.join(name), own.join(name))?;
            }
            fs::write(&dot, "gitdir: elsewhere/worktrees/w\n")?;
        } else {
            fs::write(&dot, "gitdir: elsewhere\n")?;
        }
        trap.works(&["diff", "HEAD"])?;
        trap.holds()?;
    }
    Ok(())
}

#[test]
fn arguments_have_the_same_meaning_as_in_git() -> Result<()> {
    let trap = Trap::new()?;
    for name in ["diff", "rev-list", "ls-files", "config", "apply", "status", "update-index"] {
        trap.config(&format!("alias.{name}"), &format!("!{}", trap.program))?;
        trap.set(&format!("pager.{name}"))?;
    }
    for key in ["core.pager", "core.editor", "core.askPass", "credential.helper", "gpg.program"] {
        trap.set(key)?;
    }
    trap.set("core.alternateRefsCommand")?;
    trap.set("uploadpack.packObjectsHook")?;
    trap.holds()
}

#[test]
fn variables_of_the_server_do_not_reach_git() -> Result<()> {
    let trap = Trap::new()?;
    let program = trap.program.clone();
    trap.holds_with(|run| {
        run.env("GIT_EXTERNAL_DIFF", &program)
            .env("GIT_SSH_COMMAND", &program)
            .env("GIT_PAGER", &program)
            .env("GIT_CONFIG_COUNT", "1")
            .env("GIT_CONFIG_KEY_0", "core.fsmonitor")
            .env("GIT_CONFIG_VALUE_0", &program)
            .env("GIT_EXEC_PATH", trap.stage.project.home())
            .env("GIT_DIR", "/nowhere")
            .env("GIT_INDEX_FILE", "/nowhere")
    })
}

#[test]
fn a_git_program_inside_the_worktree_is_not_used() -> Result<()> {
    let trap = Trap::new()?;
    for directory in ["", "bin"] {
        fs::create_dir_all(trap.stage.project.path(directory))?;
        fs::copy(&trap.program, trap.stage.project.path(directory).join("git"))?;
    }
    let environment = trap.stage.project.environment();
    let (_, path) = environment.iter().find(|(name, _)| *name == "PATH").context("a PATH")?;
    let bin = trap.stage.project.path("bin");
    let path = format!(".:bin:{}:{}", bin.display(), path.to_str().context("text")?);
    trap.holds_with(|run| run.env("PATH", &path))
}

#[test]
fn no_git_runs_before_the_first_request() -> Result<()> {
    let home = tempfile::tempdir()?;
    // Git writes only to the directory of the snapshots, so its start shows when it opens a pipe for reading.
    let mark = home.path().join("ran");
    ensure!(std::process::Command::new("mkfifo").arg(&mark).status()?.success(), "there is no pipe");
    let has_run = Arc::new(AtomicBool::new(false));
    let (pipe, noticed) = (mark.clone(), Arc::clone(&has_run));
    std::thread::spawn(move || {
        while fs::OpenOptions::new().write(true).open(&pipe).is_ok() {
            noticed.store(true, Ordering::SeqCst);
        }
    });
    let (seen, requests) = std::sync::mpsc::channel();
    let ran = Arc::clone(&has_run);
    let answer = Turn::respond(move |_| {
        seen.send(ran.load(Ordering::SeqCst)).unwrap_or_default();
        Turn::text("Hello.")
    });
    let stage = Stage::git(Script::new().default_turn(answer))?;
    let environment = stage.project.environment();
    let path = &environment.iter().find(|(name, _)| *name == "PATH").context("a PATH")?.1;
    let path = path.to_str().context("text")?;
    let git = home.path().join("git");
    fs::write(&git, format!("#!/bin/sh\n: < '{}'\nPATH='{path}'\nexec git \"$@\"\n", mark.display()))?;
    fs::set_permissions(&git, fs::Permissions::from_mode(0o755))?;
    let path = format!("{}:{path}", home.path().display());
    // The first run finds the id of the project, which is then stored.
    for is_known in [false, true] {
        stage.program(["run", "hi"]).env("PATH", &path).finish()?.success()?;
        let had_run = requests.recv_timeout(ROUTE_LIMIT)?;
        assert!(!had_run || !is_known, "git ran before the request");
        assert!(has_run.swap(false, Ordering::SeqCst), "there was no snapshot");
        requests.try_iter().for_each(drop);
    }
    Ok(())
}

/// The files that differ, by route.
fn changed(stage: &Stage) -> Result<Vec<String>> {
    let (server, url) = stage.serve()?;
    let listed = get(&url, "/vcs/status")?;
    server.terminate()?;
    server.finish()?;
    let listed = listed.as_array().context("a list")?;
    Ok(listed.iter().filter_map(|file| file["file"].as_str().map(str::to_owned)).collect())
}

#[test]
fn harmless_settings_apply() -> Result<()> {
    let stage = Stage::git(Script::new())?;
    let project = &stage.project;
    project.write("lines.txt", "one\ntwo\n")?;
    project.run_git(&["add", "lines.txt"])?;
    project.run_git(&["commit", "--quiet", "--message=Lines"])?;
    project.run_git(&["config", "core.autocrlf", "true"])?;
    project.write("lines.txt", "one\r\ntwo\r\n")?;
    let home = project.home();
    fs::create_dir_all(home.join(".config/git"))?;
    fs::write(home.join(".config/git/ignore"), "*.ignored\n")?;
    project.write("a.ignored", "x")?;
    project.write("b.excluded", "x")?;
    project.write(".git/info/exclude", "*.excluded\n/opencode.json\n")?;
    project.write("new file.txt", "x")?;
    assert_eq!(changed(&stage)?, ["new file.txt"]);
    Ok(())
}

#[test]
fn a_filter_of_the_user_does_not_run_and_unchanged_files_stay_unchanged() -> Result<()> {
    let stage = Stage::git(Script::new())?;
    let project = &stage.project;
    // Like a filter for large files: a short text in the repository, the content in the worktree.
    let run = |args: &[&str]| project.run_git(args);
    run(&["config", "--global", "filter.large.clean", "sed s/.*/pointer/"])?;
    run(&["config", "--global", "filter.large.smudge", "sed s/pointer/content/"])?;
    run(&["config", "--global", "filter.large.required", "true"])?;
    project.write(".gitattributes", "*.big filter=large\n")?;
    project.write("a.big", "content\n")?;
    project.write("b.big", "content\n")?;
    run(&["add", "--all"])?;
    run(&["commit", "--quiet", "--message=Large"])?;
    // Git does not trust an index that is as old as its files.
    let old = std::time::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
    for name in ["a.big", "b.big", ".gitattributes", "README.md"] {
        fs::File::options().write(true).open(project.path(name))?.set_modified(old)?;
    }
    run(&["update-index", "--refresh"])?;
    assert_eq!(changed(&stage)?, Vec::<String>::new());
    project.write("b.big", "other\n")?;
    assert_eq!(changed(&stage)?, ["b.big"]);
    Ok(())
}

#[test]
fn names_of_objects_may_be_sha256() -> Result<()> {
    let stage = Stage::plain(Script::new())?;
    if stage.project.run_git(&["init", "--quiet", "--object-format=sha256"]).is_err() {
        return Ok(());
    }
    stage.project.write("a.txt", "x\n")?;
    stage.project.write(".git/info/exclude", "/opencode.json\n")?;
    assert_eq!(changed(&stage)?, ["a.txt"]);
    let identity = ["-c", "user.name=n", "-c", "user.email=n@localhost"];
    stage.project.run_git(&["add", "--all"])?;
    stage.project.run_git(&[&identity[..], &["commit", "--quiet", "--message=a"]].concat())?;
    stage.project.write("b.txt", "x\n")?;
    assert_eq!(changed(&stage)?, ["b.txt"]);
    let (server, url) = stage.serve()?;
    let id = get(&url, "/project/current")?["id"].as_str().context("an id")?.to_owned();
    assert_eq!(id.len(), 64, "{id}");
    server.terminate()?;
    server.finish()?;
    Ok(())
}

#[test]
fn pipes_in_a_repository_do_not_block() -> Result<()> {
    for pipe in
        [".git/HEAD", ".git/index", ".git/packed-refs", ".git/objects/info/alternates", ".git/shallow"]
    {
        let stage = Stage::git(Script::new().text("Hi."))?;
        let path = stage.project.path(pipe);
        fs::remove_file(&path).ok();
        make_pipe(&path)?;
        let begun = Instant::now();
        check_code(&stage.run(["hi"])?, 0);
        let (server, url) = stage.serve()?;
        for route in ["/vcs", "/vcs/status", "/vcs/diff?mode=git"] {
            read(&url, route)?;
        }
        server.terminate()?;
        server.finish()?;
        assert!(begun.elapsed() < Duration::from_secs(40), "{pipe}: {:?}", begun.elapsed());
    }
    Ok(())
}

#[test]
fn an_included_pipe_blocks_git_only_until_its_deadline() -> Result<()> {
    let stage = Stage::git(Script::new().text("Hi."))?;
    make_pipe(&stage.project.path("pipe"))?;
    stage.project.write(".git/config", "[core]\nrepositoryformatversion = 0\n[include]\npath = ../pipe\n")?;
    check_code(&stage.run(["hi"])?, 0);
    let (server, url) = stage.serve()?;
    let answer = read(&url, "/vcs/status")?;
    check_has(&answer, &["400", "took longer than 5 s"]);
    server.terminate()?;
    server.finish()?;
    Ok(())
}

fn make_pipe(path: &Path) -> Result<()> {
    let made = std::process::Command::new("mkfifo").arg(path).status()?;
    ensure!(made.success(), "no pipe at {}", path.display());
    Ok(())
}

#[test]
fn a_worktree_without_its_repository_is_a_plain_directory() -> Result<()> {
    let script = Script::new().tool("write", json!({"filePath": "a.txt", "content": "x\n"})).text("Done.");
    let stage = Stage::plain(script)?;
    stage.project.write(".git", "gitdir: /nowhere/.git/worktrees/w\n")?;
    check_code(&stage.run(["hi"])?, 0);
    assert_eq!(stage.project.read("a.txt")?, "x\n");
    let (server, url) = stage.serve()?;
    assert_eq!(get(&url, "/project/current")?["id"], "global");
    assert!(get(&url, "/vcs")?["branch"].is_null());
    check_has(&read(&url, "/vcs/status")?, &["400", "has no usable repository"]);
    server.terminate()?;
    server.finish()?;
    Ok(())
}

#[test]
fn a_home_that_is_a_repository_has_diffs_but_no_snapshots() -> Result<()> {
    let script = Script::new().tool("write", json!({"filePath": "a.txt", "content": "x\n"})).text("Done.");
    let stage = Stage::git(script)?;
    let home = stage.project.directory();
    stage.project.write(".git/info/exclude", "/.local\n/.cache\n/.config\n")?;
    let config = stage.project.home().join(".config/opencode/opencode.json");
    stage.project.write(".config/opencode/opencode.json", fs::read(config)?)?;
    let run = |args: &[&'static str]| -> Run {
        let run = stage.program(args.iter().copied()).env("HOME", home);
        let bases =
            [("DATA", ".local/share"), ("STATE", ".local/state"), ("CACHE", ".cache"), ("CONFIG", ".config")];
        bases.iter().fold(run, |run, (name, below)| run.env(format!("XDG_{name}_HOME"), home.join(below)))
    };
    check_code(&run(&["run", "hi"]).finish()?, 0);
    let kept = files(&home.join(".local/share/codewright"))?;
    let whole = kept.iter().filter(|path| path.iter().any(|name| name == "tracked")).count();
    assert_eq!(whole, 0, "a home was looked at as a whole");
    let (server, url) = serve(run(&["serve"]))?;
    assert_eq!(get(&url, "/vcs/status")?[0]["file"], "a.txt");
    assert_ne!(get(&url, "/project/current")?["id"], "global");
    server.terminate()?;
    server.finish()?;
    Ok(())
}

#[test]
fn a_repository_that_cannot_be_written_is_read() -> Result<()> {
    let stage = Stage::git(Script::new().text("Hi."))?;
    stage.project.write("a.txt", "x\n")?;
    let Some(done) = read_only(&stage.project, &["run", "hi"])? else { return Ok(()) };
    check_code(&done, 0);
    check_has(&done.stdout, &["Hi."]);
    let listed = read_only(&stage.project, &["session", "list"])?.context("as before")?;
    check_code(&listed, 0);
    Ok(())
}

#[expect(clippy::print_stderr, reason = "a tester should know that nothing was tried")]
/// Runs the program with the project mounted read-only; `None` if that is not possible.
fn read_only(project: &Project, args: &[&str]) -> Result<Option<Finished>> {
    let bind = "mount --bind \"$0\" \"$0\" && mount -o remount,bind,ro \"$0\" && cd \"$0\"";
    let directory = project.directory();
    let inside = |script: String| {
        let run = Run::new("unshare", project).args(["--map-root-user", "--mount", "sh", "-c", &script]);
        run.args([directory]).env("OPENCODE_DISABLE_MODELS_FETCH", "1")
    };
    if inside(format!("{bind} && ! touch x 2>/dev/null")).finish()?.code != Some(0) {
        eprintln!("skipped: this system mounts nothing in a namespace");
        return Ok(None);
    }
    let script = format!("{bind} && exec '{}' {}", env!("CARGO_BIN_EXE_codewright"), args.join(" "));
    inside(script).finish().map(Some)
}
