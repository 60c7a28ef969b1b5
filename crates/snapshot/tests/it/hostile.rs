//! Repositories that try to run programs, to read other files, or to block us.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use codewright_snapshot::Respect::{Edits, Nothing};
use codewright_snapshot::{Effect, Error, File, Kind, Step, TreeId};
use tokio_util::sync::CancellationToken;

use crate::scene::Scene;

/// Every file in a directory with its bytes and modification time.
fn fingerprint(directory: &Path) -> BTreeMap<PathBuf, (Vec<u8>, SystemTime)> {
    let mut all = BTreeMap::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.extend(fingerprint(&path));
        } else {
            let mut modified = fs::metadata(&path).unwrap().modified().unwrap();
            if path.components().any(|name| name.as_os_str() == "objects") {
                // Git updates the time of an object that it borrows, so that it is not pruned.
                modified = SystemTime::UNIX_EPOCH;
            }
            all.insert(path.clone(), (fs::read(&path).unwrap(), modified));
        }
    }
    all
}

async fn names(scene: &Scene, tree: TreeId) -> Vec<PathBuf> {
    let empty = TreeId::parse("4b825dc642cb6eb9a060e54bf8d69288fbee4904").unwrap();
    let changes = scene.snapshots.diff(empty, tree).await.unwrap();
    changes.into_iter().map(|change| change.path).collect()
}

#[tokio::test]
async fn nothing_is_run_and_no_byte_is_converted() {
    let mut scene = Scene::git();
    let marker = scene.root.with_file_name("was-run");
    let run = format!("touch {} ; cat", marker.display());
    for (key, value) in [
        ("filter.evil.clean", run.as_str()),
        ("filter.evil.smudge", &run),
        ("filter.evil.process", &run),
        ("filter.evil.required", "true"),
        ("diff.evil.textconv", &run),
        ("diff.evil.command", &run),
        ("diff.external", &run),
        ("core.fsmonitor", &run),
        ("core.pager", &run),
        ("core.autocrlf", "true"),
        ("core.hooksPath", "hooks"),
    ] {
        scene.run(&["config", key, value]);
    }
    for hook in ["post-index-change", "pre-commit", "reference-transaction", "fsmonitor-watchman"] {
        scene.put(format!("hooks/{hook}"), format!("#!/bin/sh\n{run}\n"));
        scene.put(format!(".git/hooks/{hook}"), format!("#!/bin/sh\n{run}\n"));
        for place in [format!("hooks/{hook}"), format!(".git/hooks/{hook}")] {
            let path = scene.root.join(place);
            fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        }
    }
    scene.put(".gitattributes", "* filter=evil diff=evil text eol=crlf ident working-tree-encoding=UTF-16\n");
    let bytes = b"\xff\xfe$Id$ one\r\ntwo\n\xe9\0";
    scene.put("a.txt", bytes);
    scene.again();
    let start = scene.all();
    let first = scene.track().await;
    assert_eq!(scene.snapshots.read(first.tree, "a.txt".as_ref()).await.unwrap().unwrap().bytes, bytes);
    scene.opaque(|scene| scene.put("a.txt", "$Id$\n")).await;
    let second = scene.track().await;
    scene.snapshots.diff_full(first.tree, second.tree).await.unwrap();
    scene.snapshots.diff_text(first.tree, second.tree, &CancellationToken::new()).await.unwrap();
    assert_eq!(scene.travel(1, 0, Edits).await, [""; 0]);
    assert_eq!(scene.all(), start);
    assert!(!marker.exists(), "a program of the repository was run");
}

#[tokio::test]
async fn the_users_repository_is_not_changed() {
    let mut scene = Scene::git();
    scene.put("a.txt", "a");
    scene.put("b/c.txt", "c");
    scene.run(&["add", "."]);
    scene.run(&["commit", "-q", "-m", "x"]);
    scene.put("b/c.txt", "staged");
    scene.run(&["add", "."]);
    scene.put("b/c.txt", "not staged");
    let before = fingerprint(&scene.root.join(".git"));
    scene.again();
    scene.opaque(|scene| scene.put("b/c.txt", "agent")).await;
    scene.writes(&[("a.txt", None), ("d.txt", Some("d"))]).await;
    scene.travel(2, 0, Edits).await;
    scene.travel(0, 2, Edits).await;
    scene.travel(2, 0, Nothing).await;
    let after = fingerprint(&scene.root.join(".git"));
    let paths: BTreeSet<_> = before.keys().chain(after.keys()).collect();
    let touched: Vec<_> = paths.into_iter().filter(|path| before.get(*path) != after.get(*path)).collect();
    assert!(touched.is_empty(), "{touched:?}");
    assert_eq!(scene.text("b/c.txt").unwrap(), "not staged");
}

#[tokio::test]
async fn strange_names_are_tracked_and_forbidden_ones_are_harmless() {
    let mut scene = Scene::git();
    let strange: Vec<&[u8]> = vec![
        b"-n",
        b"--help",
        b"a\nb",
        b"\xff\xfe",
        b" space ",
        b"*",
        b":(top)x",
        b"back\\slash",
        b"git~1",
        b"quo\"te",
        b"\xc3\xa9/\n/deep",
    ];
    for name in &strange {
        scene.put(OsStr::from_bytes(name), name);
    }
    scene.put(".GIT/config", "x");
    scene.put("sub/.Git/config", "x");
    symlink("/etc/passwd", scene.root.join(".gitmodules")).unwrap();
    let snapshot = scene.track().await;
    let mut expected: Vec<_> = strange.iter().map(|name| PathBuf::from(OsStr::from_bytes(name))).collect();
    expected.sort();
    assert_eq!(names(&scene, snapshot.tree).await, expected);
    assert_eq!(scene.track().await.tree, snapshot.tree);
    let start = scene.all();
    scene
        .opaque(|scene| {
            for name in &strange {
                fs::remove_file(scene.root.join(OsStr::from_bytes(name))).unwrap();
            }
        })
        .await;
    assert_eq!(scene.travel(1, 0, Edits).await, [""; 0]);
    assert_eq!(scene.all(), start);
}

#[tokio::test]
async fn files_outside_are_neither_stored_nor_written() {
    let mut scene = Scene::plain();
    scene.put("../secret/key", "secret");
    let outside = scene.root.with_file_name("secret");
    symlink(&outside, scene.root.join("door")).unwrap();
    symlink(outside.join("key"), scene.root.join("window")).unwrap();
    let snapshot = scene.track().await;
    assert_eq!(names(&scene, snapshot.tree).await, [PathBuf::from("door"), PathBuf::from("window")]);
    let window = scene.snapshots.read(snapshot.tree, "window".as_ref()).await.unwrap().unwrap();
    assert_eq!(
        (window.kind, window.bytes.as_slice()),
        (Kind::Link, outside.join("key").as_os_str().as_bytes())
    );
    // A directory of the agent that later becomes a link is not followed.
    scene.writes(&[("dir/key", Some("agent"))]).await;
    scene.writes(&[("dir/key", None)]).await;
    fs::remove_dir_all(scene.root.join("dir")).unwrap();
    symlink(&outside, scene.root.join("dir")).unwrap();
    for respect in [Edits, Nothing] {
        let kept = scene.travel(2, 1, respect).await;
        assert_eq!(kept, ["dir/key: a directory above it is a link or not a directory"]);
    }
    assert_eq!(fs::read_to_string(outside.join("key")).unwrap(), "secret");
    let mut step = Step::default();
    for path in ["../secret/key", "/etc/passwd", "a/../../secret/key", ""] {
        let effect = Effect { path: path.into(), before: None, after: Some(File::plain("x")), made: 0 };
        scene.snapshots.report(&mut step, effect).await.unwrap();
        assert!(scene.snapshots.look(path.as_ref()).await.unwrap().refused.is_some());
    }
    assert_eq!(scene.snapshots.close(step).await.unwrap(), None);
}

#[tokio::test]
async fn other_repositories_pipes_and_sockets_are_skipped() {
    let mut scene = Scene::git();
    scene.put("a.txt", "a");
    scene.put("vendored/lib.c", "x");
    scene.put("empty/file", "x");
    for (nested, commits) in [("vendored", true), ("empty", false)] {
        let at = scene.root.join(nested).to_string_lossy().into_owned();
        scene.run(&["-C", &at, "init", "-q"]);
        if commits {
            scene.run(&["-C", &at, "add", "."]);
            scene.run(&["-C", &at, "commit", "-q", "-m", "x"]);
        }
    }
    nix::unistd::mkfifo(&scene.root.join("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    let _socket = UnixListener::bind(scene.root.join("socket")).unwrap();
    scene.again();
    let snapshot = scene.track().await;
    assert_eq!(names(&scene, snapshot.tree).await, [PathBuf::from("a.txt")]);
    // A file that becomes a pipe blocks neither a snapshot nor undo.
    scene.writes(&[("a.txt", Some("b"))]).await;
    fs::remove_file(scene.root.join("a.txt")).unwrap();
    nix::unistd::mkfifo(&scene.root.join("a.txt"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    assert_eq!(names(&scene, scene.track().await.tree).await, [""; 0].map(PathBuf::from));
    assert_eq!(scene.travel(1, 0, Edits).await, ["a.txt: it is not a regular file"]);
}

#[tokio::test]
async fn odd_object_directories_of_the_user_are_harmless() {
    let mut scene = Scene::git();
    scene.put("a.txt", "a");
    scene.run(&["add", "."]);
    scene.run(&["commit", "-q", "-m", "x"]);
    scene.put(".git/objects/info/alternates", "/nowhere\n/dev/null\n../../loop\n");
    scene.again();
    let first = scene.track().await;
    assert_eq!(names(&scene, first.tree).await, [PathBuf::from("a.txt")]);
    // The borrowed repository is removed: the next snapshot is complete again.
    fs::remove_dir_all(scene.root.join(".git")).unwrap();
    scene.put("b.txt", "b");
    scene.again();
    let second = scene.track().await;
    let read = scene.snapshots.read(second.tree, "b.txt".as_ref()).await.unwrap();
    assert_eq!(read.unwrap().bytes, b"b");
    let gone = scene.snapshots.read(first.tree, "a.txt".as_ref()).await;
    // It is complete or an error, but never something else.
    if let Ok(file) = gone {
        assert_eq!(file.unwrap().bytes, b"a");
    }
    // A pipe instead of a list.
    scene.run(&["init", "-q"]);
    let list = scene.root.join(".git/objects/info/alternates");
    nix::unistd::mkfifo(&list, nix::sys::stat::Mode::S_IRWXU).unwrap();
    fs::remove_file(scene.root.join(".git/info/exclude")).unwrap_or_default();
    nix::unistd::mkfifo(&scene.root.join(".git/info/exclude"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    scene.again();
    assert_eq!(scene.track().await.tree, second.tree);
}

#[tokio::test]
async fn a_pipe_instead_of_a_list_turns_snapshots_off() {
    let mut scene = Scene::plain();
    scene.put("sub/a.txt", "a");
    nix::unistd::mkfifo(&scene.root.join("sub/.gitignore"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    let cancel = CancellationToken::new();
    let error = scene.snapshots.track(&cancel).await.unwrap_err();
    assert!(matches!(error, Error::Off { .. }), "{error}");
    // From now on this is known, also to the next process.
    let begun = std::time::Instant::now();
    scene.again();
    assert_eq!(scene.snapshots.track(&cancel).await.unwrap_err().to_string(), error.to_string());
    assert!(begun.elapsed() < std::time::Duration::from_secs(5));
    scene.writes(&[("sub/a.txt", Some("b"))]).await;
    assert_eq!(scene.travel(1, 0, Edits).await, [""; 0]);
    assert_eq!(scene.text("sub/a.txt").unwrap(), "a");
}
