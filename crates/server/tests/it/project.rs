//! The worktrees of a project, and moving sessions between its directories.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use axum::Router;
use codewright_config::{Dirs, Env};
use codewright_engine::{Engine, Published};
use codewright_proto::{Clock, SessionId, Signal};
use codewright_testkit::{Project, Script, Server, Turn};
use serde_json::{Value, json};

use crate::bench::{Bench, PATIENCE, ask, quick};

const ROUTE: &str = "/experimental/worktree";
const MOVE: &str = "/experimental/control-plane/move-session";

/// Waits until a condition holds.
async fn wait_for(what: &str, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < PATIENCE, "{what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Creates a worktree and waits until its files exist.
async fn created(bench: &Bench, router: &Router, body: Value) -> PathBuf {
    let mut events = bench.engine.events().subscribe();
    let (status, reply) = ask(router, "POST", ROUTE, &body.to_string()).await;
    assert_eq!(status, 200, "{reply}");
    let directory = PathBuf::from(reply["directory"].as_str().unwrap());
    let ready = async {
        loop {
            if let Published::Signal { signal, .. } = events.next().await.unwrap() {
                match &*signal {
                    Signal::WorktreeReady { directory: at, .. } if Path::new(at) == directory => return,
                    Signal::WorktreeFailed { message, .. } => panic!("{message}"),
                    _ => {}
                }
            }
        }
    };
    tokio::time::timeout(PATIENCE, ready).await.unwrap();
    directory
}

/// Returns the message of the next failed worktree.
async fn failure(bench: &Bench, router: &Router, body: Value) -> (PathBuf, String) {
    let mut events = bench.engine.events().subscribe();
    let (status, reply) = ask(router, "POST", ROUTE, &body.to_string()).await;
    assert_eq!(status, 200, "{reply}");
    let failed = async {
        loop {
            if let Published::Signal { signal, .. } = events.next().await.unwrap()
                && let Signal::WorktreeFailed { message, .. } = &*signal
            {
                return message.clone();
            }
        }
    };
    let message = tokio::time::timeout(PATIENCE, failed).await.unwrap();
    (PathBuf::from(reply["directory"].as_str().unwrap()), message)
}

async fn remove(router: &Router, directory: &Path) -> (u16, Value) {
    ask(router, "DELETE", ROUTE, &json!({"directory": directory}).to_string()).await
}

/// Expects that a removal is refused, that the message contains a text, and that the directory stays.
#[track_caller]
fn check_refused((status, reply): (u16, Value), name: &str, part: &str) {
    let message = reply["data"]["message"].as_str().unwrap_or_default();
    assert_eq!((status, reply["name"].as_str()), (400, Some(name)), "{reply}");
    assert!(message.contains(part), "{message}");
}

fn git_in(project: &Project, directory: &Path, args: &[&str]) -> String {
    let directory = directory.to_str().unwrap();
    let identity = ["-c", "user.name=T", "-c", "user.email=t@localhost", "-c", "commit.gpgsign=false"];
    project.run_git(&[&["-C", directory][..], &identity, args].concat()).unwrap()
}

fn branches(project: &Project) -> Vec<String> {
    let listed = project.run_git(&["for-each-ref", "--format=%(refname:short)", "refs/heads"]).unwrap();
    listed.lines().map(str::to_owned).collect()
}

#[tokio::test]
async fn a_worktree_is_created_listed_and_removed() {
    let bench = Bench::git().await;
    let router = bench.router(quick());
    let (_, project) = ask(&router, "GET", "/project/current", "").await;
    let id = project["id"].as_str().unwrap().to_owned();
    let directory = created(&bench, &router, json!({"name": "My Feature: x/../y"})).await;
    let folder = bench.project.home().join(".local/share/codewright/worktree").join(&id);
    assert_eq!(directory, folder.join("my-feature-x-y"));
    assert_eq!(fs::read_to_string(directory.join("README.md")).unwrap(), "# Project\n");
    let state = git_in(&bench.project, &directory, &["status", "--porcelain", "--branch"]);
    assert_eq!(state, "## opencode/my-feature-x-y\n");
    git_in(&bench.project, &directory, &["fsck", "--no-dangling"]);
    assert_eq!(ask(&router, "GET", ROUTE, "").await, (200, json!([directory])));

    let inside = format!("?directory={}", directory.display());
    let (_, listed) = ask(&router, "GET", &format!("{ROUTE}{inside}"), "").await;
    assert_eq!(listed, json!([directory]), "a worktree belongs to the project of its repository");
    let (_, current) = ask(&router, "GET", &format!("/project/current{inside}"), "").await;
    let main = bench.project.directory();
    let found = (&current["id"], &current["worktree"], &current["sandboxes"]);
    assert_eq!(found, (&json!(id), &json!(main), &json!([directory])));
    let (_, path) = ask(&router, "GET", &format!("/path{inside}"), "").await;
    assert_eq!(path["worktree"], json!(directory));
    let (_, directories) = ask(&router, "GET", &format!("/project/{id}/directories"), "").await;
    let expected = json!([{"directory": directory, "strategy": "git_worktree"}, {"directory": main}]);
    assert_eq!(directories, expected);

    assert_eq!(remove(&router, &directory).await, (200, json!(true)));
    assert!(!directory.exists());
    assert_eq!(branches(&bench.project), ["main"]);
    assert_eq!(bench.project.run_git(&["worktree", "list"]).unwrap().lines().count(), 1);
    assert_eq!(ask(&router, "GET", ROUTE, "").await, (200, json!([])));
    assert_eq!(remove(&router, &directory).await, (200, json!(true)), "a second removal has nothing to do");
}

#[tokio::test]
async fn a_taken_name_gets_two_words_and_simultaneous_requests_get_different_names() {
    let bench = Bench::git().await;
    let router = bench.router(quick());
    bench.project.run_git(&["branch", "opencode/taken"]).unwrap();
    let body = json!({"name": "taken"}).to_string();
    let requests = (0..4).map(|_| ask(&router, "POST", ROUTE, &body));
    let replies = futures_util::future::join_all(requests).await;
    let mut names: Vec<_> = replies.iter().map(|(_, reply)| reply["name"].as_str().unwrap()).collect();
    assert!(names.iter().all(|name| name.starts_with("taken-")), "{names:?}");
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), 4, "{names:?}");

    let first = created(&bench, &router, json!({"name": "here"})).await;
    let folder = first.parent().unwrap();
    fs::create_dir(folder.join("exists")).unwrap();
    symlink("/nonexistent", folder.join("link")).unwrap();
    for name in ["exists", "link"] {
        let other = created(&bench, &router, json!({"name": name})).await;
        let chosen = other.file_name().unwrap().to_str().unwrap().to_owned();
        assert!(chosen.starts_with(&format!("{name}-")), "{chosen}");
    }
    let (_, unnamed) = ask(&router, "POST", ROUTE, r#"{"name":"!!!"}"#).await;
    assert_eq!(unnamed["name"].as_str().unwrap().split('-').count(), 2, "{unnamed}");
}

#[tokio::test]
async fn without_a_usable_commit_nothing_is_created() {
    let bench = Bench::new(Script::new()).await;
    let router = bench.router(quick());
    for (method, route) in [("POST", ROUTE), ("DELETE", ROUTE), ("POST", "/experimental/worktree/reset")] {
        let reply = ask(&router, method, route, r#"{"directory":"/x"}"#).await;
        check_refused(reply, "WorktreeNotGitError", "git repository");
    }
    assert_eq!(ask(&router, "GET", ROUTE, "").await, (200, json!([])));
    let directory = bench.project.directory().to_str().unwrap();
    let bare = format!("{directory}/bare.git");
    bench.project.run_git(&["init", "--quiet", "--bare", &bare]).unwrap();
    let reply = ask(&router, "POST", &format!("{ROUTE}?directory={bare}"), "{}").await;
    check_refused(reply, "WorktreeNotGitError", "git repository");

    let empty = format!("{directory}/empty");
    bench.project.run_git(&["init", "--quiet", &empty]).unwrap();
    let reply = ask(&router, "POST", &format!("{ROUTE}?directory={empty}"), "{}").await;
    check_refused(reply, "WorktreeCreateFailedError", "no commit");
    let (status, error) = ask(&router, "POST", ROUTE, r#"{"name":5}"#).await;
    assert_eq!((status, &error["name"]), (400, &json!("BadRequest")));
    let (status, error) = ask(&router, "DELETE", ROUTE, "{}").await;
    assert_eq!((status, &error["data"]["message"]), (400, &json!("Missing key\n  at [\"directory\"]")));
}

#[tokio::test]
async fn a_worktree_of_a_detached_head_starts_at_its_commit() {
    let bench = Bench::git().await;
    let router = bench.router(quick());
    bench.project.run_git(&["checkout", "--quiet", "--detach"]).unwrap();
    let directory = created(&bench, &router, json!({"name": "one"})).await;
    let commit = |at: &Path| git_in(&bench.project, at, &["rev-parse", "HEAD"]);
    assert_eq!(commit(&directory), commit(bench.project.directory()));
}

#[tokio::test]
async fn uncommitted_files_prevent_a_removal() {
    let bench = Bench::git().await;
    let router = bench.router(quick());
    let directory = created(&bench, &router, json!({"name": "one"})).await;
    let (readme, new) = (directory.join("README.md"), directory.join("new.txt"));
    let name = "WorktreeRemoveFailedError";
    fs::write(&readme, "changed\n").unwrap();
    check_refused(remove(&router, &directory).await, name, "`README.md`");
    git_in(&bench.project, &directory, &["update-index", "--assume-unchanged", "README.md"]);
    check_refused(remove(&router, &directory).await, name, "`README.md`");
    git_in(&bench.project, &directory, &["update-index", "--no-assume-unchanged", "README.md"]);
    fs::write(&readme, "# Project\n").unwrap();
    fs::write(&new, "new\n").unwrap();
    check_refused(remove(&router, &directory).await, name, "`new.txt`");
    git_in(&bench.project, &directory, &["add", "new.txt"]);
    fs::remove_file(&new).unwrap();
    check_refused(remove(&router, &directory).await, name, "`new.txt`");
    git_in(&bench.project, &directory, &["reset", "--quiet"]);

    fs::create_dir(directory.join("ignored")).unwrap();
    fs::write(directory.join(".git-exclude"), "").unwrap();
    fs::remove_file(directory.join(".git-exclude")).unwrap();
    bench.project.write(".git/info/exclude", "/opencode.json\n/ignored\n").unwrap();
    git_in(&bench.project, &directory.join("ignored"), &["init", "--quiet", "clone"]);
    check_refused(remove(&router, &directory).await, name, "another repository");
    fs::remove_dir_all(directory.join("ignored")).unwrap();

    bench.project.run_git(&["worktree", "lock", directory.to_str().unwrap()]).unwrap();
    check_refused(remove(&router, &directory).await, name, "locked");
    bench.project.run_git(&["worktree", "unlock", directory.to_str().unwrap()]).unwrap();
    assert!(readme.exists());
    fs::remove_file(&readme).unwrap();
    assert_eq!(remove(&router, &directory).await.0, 200, "a deleted file is in the commit");
}

#[tokio::test]
async fn commits_of_a_removed_worktree_stay_on_their_branch() {
    let bench = Bench::git().await;
    let router = bench.router(quick());
    let directory = created(&bench, &router, json!({"name": "one"})).await;
    fs::write(directory.join("new.txt"), "new\n").unwrap();
    git_in(&bench.project, &directory, &["add", "."]);
    git_in(&bench.project, &directory, &["commit", "--quiet", "-m", "New"]);
    let mut events = bench.engine.events().subscribe();
    assert_eq!(remove(&router, &directory).await, (200, json!(true)));
    assert!(!directory.exists());
    assert_eq!(branches(&bench.project), ["main", "opencode/one"]);
    let shown = bench.project.run_git(&["show", "opencode/one:new.txt"]).unwrap();
    assert_eq!(shown, "new\n");
    let reported = async {
        loop {
            if let Published::Signal { signal, .. } = events.next().await.unwrap()
                && let Signal::TuiToastShow { toast, .. } = &*signal
            {
                return toast.message.clone();
            }
        }
    };
    let message = tokio::time::timeout(PATIENCE, reported).await.unwrap();
    assert!(message.contains("`opencode/one`") && message.contains('1'), "{message}");

    let second = created(&bench, &router, json!({"name": "two"})).await;
    git_in(&bench.project, &second, &["checkout", "--quiet", "--detach"]);
    git_in(&bench.project, &second, &["commit", "--quiet", "--allow-empty", "-m", "Lost"]);
    check_refused(remove(&router, &second).await, "WorktreeRemoveFailedError", "on no branch");
    assert!(second.exists());
    git_in(&bench.project, &second, &["branch", "saved"]);
    assert_eq!(remove(&router, &second).await.0, 200);
}

#[tokio::test]
async fn only_worktrees_of_the_project_are_removed() {
    let bench = Bench::git().await;
    let router = bench.router(quick());
    let name = "WorktreeRemoveFailedError";
    check_refused(remove(&router, bench.project.directory()).await, name, "main worktree");
    let foreign = bench.project.home().join("precious");
    fs::create_dir(&foreign).unwrap();
    fs::write(foreign.join("file"), "x").unwrap();
    check_refused(remove(&router, &foreign).await, name, "not a worktree of this project");
    assert!(foreign.join("file").exists());
    check_refused(remove(&router, Path::new("relative")).await, name, "absolute");

    let directory = created(&bench, &router, json!({"name": "one"})).await;
    let aside = directory.with_file_name("aside");
    fs::rename(&directory, &aside).unwrap();
    symlink(&foreign, &directory).unwrap();
    check_refused(remove(&router, &directory).await, name, "not the registered worktree");
    fs::remove_file(&directory).unwrap();
    fs::create_dir(&directory).unwrap();
    fs::write(directory.join(".git"), "gitdir: /nonexistent\n").unwrap();
    check_refused(remove(&router, &directory).await, name, "not the registered worktree");
    fs::remove_dir_all(&directory).unwrap();
    fs::rename(&aside, &directory).unwrap();
    let link = directory.with_file_name("link");
    symlink(&directory, &link).unwrap();
    check_refused(remove(&router, &link).await, name, "not a worktree of this project");
    assert!(directory.join("README.md").exists() && foreign.join("file").exists());

    let by_hand = bench.project.home().join("by-hand");
    let text = by_hand.to_str().unwrap();
    bench.project.run_git(&["worktree", "add", "--quiet", "-b", "mine", text]).unwrap();
    assert_eq!(remove(&router, &by_hand).await.0, 200);
    assert!(!by_hand.exists());
    assert!(branches(&bench.project).contains(&"mine".to_owned()), "only branches for worktrees are deleted");
}

#[tokio::test]
async fn a_worktree_that_was_deleted_by_hand_is_forgotten() {
    let bench = Bench::git().await;
    let router = bench.router(quick());
    let directory = created(&bench, &router, json!({"name": "one"})).await;
    fs::remove_dir_all(&directory).unwrap();
    assert_eq!(ask(&router, "GET", ROUTE, "").await, (200, json!([])));
    let reset = json!({"directory": directory}).to_string();
    let reply = ask(&router, "POST", "/experimental/worktree/reset", &reset).await;
    check_refused(reply, "WorktreeResetFailedError", "no worktree");
    assert_eq!(remove(&router, &directory).await, (200, json!(true)));
    assert_eq!(branches(&bench.project), ["main"]);
    assert_eq!(bench.project.run_git(&["worktree", "list"]).unwrap().lines().count(), 1);
}

#[tokio::test]
async fn start_commands_run_in_the_worktree_and_their_failure_is_reported() {
    let bench = Bench::git().await;
    let router = bench.router(quick());
    let (_, project) = ask(&router, "GET", "/project/current", "").await;
    let patch = json!({"commands": {"start": "echo project > first"}}).to_string();
    let route = format!("/project/{}", project["id"].as_str().unwrap());
    assert_eq!(ask(&router, "PATCH", &route, &patch).await.0, 200);
    let body = json!({"name": "one", "startCommand": "cp first second; pwd >> second"});
    let directory = created(&bench, &router, body).await;
    let second = directory.join("second");
    let expected = format!("project\n{}\n", directory.display());
    wait_for("both commands run", || fs::read_to_string(&second).is_ok_and(|text| text == expected)).await;
    let body = json!({"name": "two", "startCommand": "echo reason; exit 3"});
    let (directory, message) = failure(&bench, &router, body).await;
    assert!(message.contains("code 3") && message.contains("reason"), "{message}");
    assert!(directory.join("README.md").exists());
}

/// Returns a bench in a repository whose trust the user has not decided about.
async fn undecided() -> Bench {
    let project = Project::git().unwrap();
    let model = Server::start(Script::new()).await.unwrap();
    project.write_config(&Project::config(&model.url())).unwrap();
    project.write("opencode.json", r#"{"agent":{"helper":{"prompt":"Help"}}}"#).unwrap();
    let variables = project.environment().into_iter().filter(|(name, _)| *name != "CODEWRIGHT_TRUST");
    let env = Env::from_pairs(variables.map(|(name, value)| (name, value.into_string().unwrap())));
    let options = codewright_engine::Options {
        confinement: codewright_engine::Confinement::Group,
        directory: project.directory().to_owned(),
        dirs: Dirs::new(&env).unwrap(),
        env,
        version: "1.18.33",
        clock: Clock::system(),
    };
    let engine = Engine::open(options).await.unwrap();
    Bench { project, model, engine }
}

#[tokio::test]
async fn no_start_command_runs_in_an_untrusted_project() {
    let bench = undecided().await;
    let router = bench.router(quick());
    let (_, trust) = ask(&router, "GET", "/trust", "").await;
    assert_eq!(trust["status"], "undecided", "{trust}");
    let body = json!({"name": "one", "startCommand": "touch started"});
    let (directory, message) = failure(&bench, &router, body).await;
    assert!(message.contains("not trusted"), "{message}");
    assert!(directory.join("README.md").exists() && !directory.join("started").exists());
}

#[tokio::test]
async fn nothing_of_a_hostile_repository_runs() {
    let bench = Bench::git().await;
    let router = bench.router(quick());
    let marker = bench.project.home().join("marker");
    let touch = format!("touch {}", marker.display());
    let hooks = bench.project.path(".git/hooks");
    fs::create_dir_all(&hooks).unwrap();
    for hook in ["post-checkout", "reference-transaction", "post-index-change", "pre-commit", "post-merge"] {
        fs::write(hooks.join(hook), format!("#!/bin/sh\n{touch}\n")).unwrap();
        fs::set_permissions(hooks.join(hook), fs::Permissions::from_mode(0o755)).unwrap();
    }
    bench.project.write(".gitattributes", "* filter=evil diff=evil merge=evil\n").unwrap();
    bench.project.run_git(&["add", ".gitattributes"]).unwrap();
    git_in(
        &bench.project,
        bench.project.directory(),
        &["-c", "core.hooksPath=/dev/null", "commit", "-qm", "Second"],
    );
    for key in [
        "filter.evil.smudge",
        "filter.evil.clean",
        "filter.evil.process",
        "diff.evil.textconv",
        "diff.evil.command",
        "core.fsmonitor",
        "core.sshCommand",
        "core.pager",
        "core.editor",
        "hook.evil.command",
        "alias.worktree",
    ] {
        bench.project.run_git(&["config", key, &format!("sh -c '{touch}; cat'")]).unwrap();
    }
    for event in ["post-checkout", "reference-transaction"] {
        bench.project.run_git(&["config", "--add", "hook.evil.event", event]).unwrap();
    }
    bench.project.run_git(&["config", "filter.evil.required", "true"]).unwrap();
    if marker.exists() {
        fs::remove_file(&marker).unwrap();
    }
    let directory = created(&bench, &router, json!({"name": "one"})).await;
    assert_eq!(fs::read_to_string(directory.join("README.md")).unwrap(), "# Project\n");
    let reset = json!({"directory": directory}).to_string();
    assert_eq!(ask(&router, "POST", "/experimental/worktree/reset", &reset).await, (200, json!(true)));
    assert_eq!(remove(&router, &directory).await, (200, json!(true)));
    assert!(!marker.exists(), "a program of the repository has run");

    let elsewhere = bench.project.home().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    let registrations = bench.project.path(".git/worktrees");
    fs::remove_dir(&registrations).unwrap_or_default();
    symlink(&elsewhere, &registrations).unwrap();
    let reply = ask(&router, "POST", ROUTE, r#"{"name":"two"}"#).await;
    check_refused(reply, "WorktreeCreateFailedError", "symbolic link");
    assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0, "nothing is written outside the repository");
}

#[tokio::test]
async fn a_directory_that_claims_to_be_a_worktree_does_not_join_the_project() {
    let bench = Bench::git().await;
    let router = bench.router(quick());
    let directory = created(&bench, &router, json!({"name": "one"})).await;
    let liar = bench.project.home().join("liar");
    fs::create_dir(&liar).unwrap();
    fs::copy(directory.join(".git"), liar.join(".git")).unwrap();
    let (_, path) = ask(&router, "GET", &format!("/project/current?directory={}", liar.display()), "").await;
    assert_ne!(path["worktree"], json!(bench.project.directory()));
}

#[tokio::test]
async fn a_worktree_without_content_of_its_own_is_reset_to_the_default_branch() {
    let bench = Bench::git().await;
    let router = bench.router(quick());
    let directory = created(&bench, &router, json!({"name": "one"})).await;
    bench.project.write("later.txt", "later\n").unwrap();
    bench.project.run_git(&["add", "later.txt"]).unwrap();
    bench.project.run_git(&["commit", "--quiet", "-m", "Later"]).unwrap();
    let reset = |directory: &Path| {
        let body = json!({"directory": directory}).to_string();
        let router = router.clone();
        async move { ask(&router, "POST", "/experimental/worktree/reset", &body).await }
    };
    let name = "WorktreeResetFailedError";
    fs::write(directory.join("README.md"), "changed\n").unwrap();
    check_refused(reset(&directory).await, name, "`README.md`");
    fs::write(directory.join("README.md"), "# Project\n").unwrap();
    assert_eq!(reset(&directory).await, (200, json!(true)));
    assert_eq!(fs::read_to_string(directory.join("later.txt")).unwrap(), "later\n");
    let state = git_in(&bench.project, &directory, &["status", "--porcelain", "--branch"]);
    assert_eq!(state, "## opencode/one\n");
    git_in(&bench.project, &directory, &["commit", "--quiet", "--allow-empty", "-m", "Own"]);
    check_refused(reset(&directory).await, name, "1 commits");
    check_refused(reset(bench.project.directory()).await, name, "main worktree");
    check_refused(reset(&directory.with_file_name("nope")).await, name, "no worktree");
}

async fn session(router: &Router, body: Value) -> SessionId {
    let (status, session) = ask(router, "POST", "/session", &body.to_string()).await;
    assert_eq!(status, 200, "{session}");
    SessionId::parse(session["id"].as_str().unwrap()).unwrap()
}

async fn move_to(router: &Router, id: &SessionId, directory: &Path, changes: bool) -> (u16, Value) {
    let destination = json!({"directory": directory});
    let body = json!({"sessionID": id, "destination": destination, "moveChanges": changes}).to_string();
    ask(router, "POST", MOVE, &body).await
}

#[tokio::test]
async fn a_session_is_moved_with_its_subagents() {
    let bench = Bench::git().await;
    let router = bench.router(quick());
    let directory = created(&bench, &router, json!({"name": "one"})).await;
    fs::create_dir(directory.join("sub")).unwrap();
    let id = session(&router, json!({"title": "t"})).await;
    let child = session(&router, json!({"parentID": id})).await;
    let mut events = bench.engine.events().subscribe();
    assert_eq!(move_to(&router, &id, &directory.join("sub"), false).await, (204, Value::Null));
    for member in [&id, &child] {
        let (_, moved) = ask(&router, "GET", &format!("/session/{member}"), "").await;
        assert_eq!(moved["directory"], json!(directory.join("sub")));
        assert_eq!(moved["path"], "sub");
    }
    let reported = async {
        loop {
            if let Published::Signal { signal, .. } = events.next().await.unwrap()
                && let Signal::SessionMoved { session_id, location, subdirectory, .. } = &*signal
            {
                return (session_id.clone(), location.directory.clone(), subdirectory.clone());
            }
        }
    };
    let (moved, location, subdirectory) = tokio::time::timeout(PATIENCE, reported).await.unwrap();
    assert_eq!((moved, Path::new(&location)), (id.clone(), &*directory.join("sub")));
    assert_eq!(subdirectory, "sub");
    let inside = format!("/session?directory={}", directory.join("sub").display());
    let (_, listed) = ask(&router, "GET", &inside, "").await;
    assert_eq!(listed.as_array().unwrap().len(), 2, "{listed}");

    let name = "MoveSessionError";
    check_refused(move_to(&router, &child, &directory, false).await, name, "subagent");
    let plain = bench.project.home().join("plain");
    fs::create_dir(&plain).unwrap();
    check_refused(move_to(&router, &id, &plain, false).await, name, "another project");
    check_refused(move_to(&router, &id, Path::new("/nonexistent/x"), false).await, name, "/nonexistent/x");
    check_refused(move_to(&router, &id, Path::new("relative"), false).await, name, "absolute");
    let missing = SessionId::parse("ses_x0000").unwrap();
    check_refused(move_to(&router, &missing, &directory, false).await, name, "Session not found");
    fs::remove_dir(directory.join("sub")).unwrap();
    assert_eq!(move_to(&router, &id, bench.project.directory(), false).await.0, 204, "from a lost directory");
}

#[tokio::test]
async fn a_session_at_work_is_not_moved_and_its_worktree_is_not_removed() {
    let bench = Bench::git_with(Script::new().turn(Turn::steps().text("Begun").hang())).await;
    let router = bench.router(quick());
    let directory = created(&bench, &router, json!({"name": "one"})).await;
    let id = session(&router, json!({"title": "t"})).await;
    assert_eq!(move_to(&router, &id, &directory, false).await.0, 204);
    let prompt = r#"{"parts":[{"type":"text","text":"go"}]}"#;
    assert_eq!(ask(&router, "POST", &format!("/session/{id}/prompt_async"), prompt).await.0, 204);
    check_refused(remove(&router, &directory).await, "WorktreeRemoveFailedError", id.as_str());
    let main = bench.project.directory();
    check_refused(move_to(&router, &id, main, false).await, "MoveSessionError", "busy");
    assert_eq!(ask(&router, "POST", &format!("/session/{id}/abort"), "").await.0, 200);
    assert_eq!(move_to(&router, &id, main, false).await.0, 204);
    assert_eq!(remove(&router, &directory).await.0, 200);
}

#[tokio::test]
async fn uncommitted_changes_move_completely_or_not_at_all() {
    let bench = Bench::git().await;
    let router = bench.router(quick());
    let main = bench.project.directory();
    let one = created(&bench, &router, json!({"name": "one"})).await;
    let two = created(&bench, &router, json!({"name": "two"})).await;
    let id = session(&router, json!({"title": "t"})).await;
    bench.project.write("README.md", "changed\n").unwrap();
    bench.project.write("new.txt", "new\n").unwrap();
    assert_eq!(move_to(&router, &id, &one, true).await.0, 204);
    assert_eq!(bench.project.read("README.md").unwrap(), "# Project\n");
    assert!(!main.join("new.txt").exists());
    assert_eq!(fs::read_to_string(one.join("README.md")).unwrap(), "changed\n");
    assert_eq!(fs::read_to_string(one.join("new.txt")).unwrap(), "new\n");
    fs::write(two.join("README.md"), "other\n").unwrap();
    check_refused(move_to(&router, &id, &two, true).await, "MoveSessionError", "cannot be applied");
    assert_eq!(fs::read_to_string(one.join("README.md")).unwrap(), "changed\n");
    assert_eq!(fs::read_to_string(two.join("README.md")).unwrap(), "other\n");
    assert!(!two.join("new.txt").exists());
    let (_, session) = ask(&router, "GET", &format!("/session/{id}"), "").await;
    assert_eq!(session["directory"], json!(one), "a session whose changes cannot move stays");
}

#[tokio::test]
async fn undo_after_a_move_does_not_touch_the_old_directory() {
    let edit = json!({"filePath": "made.txt", "content": "made\n"});
    let script = Script::new().tool("write", edit).text("Done");
    let bench = Bench::git_with(script).await;
    let router = bench.router(quick());
    let directory = created(&bench, &router, json!({"name": "one"})).await;
    let id = session(&router, json!({"title": "t"})).await;
    let prompt = r#"{"parts":[{"type":"text","text":"go"}]}"#;
    let (status, reply) = ask(&router, "POST", &format!("/session/{id}/message"), prompt).await;
    assert_eq!(status, 200, "{reply}");
    let made = bench.project.path("made.txt");
    assert!(made.exists());
    fs::write(directory.join("made.txt"), "made\n").unwrap();
    assert_eq!(move_to(&router, &id, &directory, false).await.0, 204);
    let (_, messages) = ask(&router, "GET", &format!("/session/{id}/message"), "").await;
    let revert = json!({"messageID": messages[0]["info"]["id"]}).to_string();
    let (status, reverted) = ask(&router, "POST", &format!("/session/{id}/revert"), &revert).await;
    assert_eq!(status, 200, "{reverted}");
    assert_eq!(reverted["revert"]["kept"][0]["file"], json!(made), "{reverted}");
    assert!(made.exists() && directory.join("made.txt").exists());

    let main = bench.project.directory();
    check_refused(move_to(&router, &id, main, false).await, "MoveSessionError", "undone messages");
    assert_eq!(ask(&router, "POST", &format!("/session/{id}/unrevert"), "").await.0, 200);
    assert_eq!(move_to(&router, &id, main, false).await.0, 204);
    assert_eq!(ask(&router, "POST", &format!("/session/{id}/revert"), &revert).await.0, 200);
    assert!(!made.exists(), "the session is back where it made the file");
    assert!(directory.join("made.txt").exists());
}
