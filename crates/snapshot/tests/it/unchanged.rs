//! Snapshots of a directory in which nothing has changed.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::time::Duration;

use codewright_snapshot::{Options, Snapshots};
use tokio_util::sync::CancellationToken;

use crate::scene::Scene;

/// The time after which changes are settled in these tests.
const SETTLED: Duration = Duration::from_millis(60);
/// The number of snapshots after which git is not needed.
const LOOKS: usize = 6;

/// A repository with a git program that counts its calls.
fn scene() -> Scene {
    let mut kept = None;
    let mut scene = Scene::with(|options| {
        let counting = options.worktree.with_file_name("counting");
        fs::create_dir_all(&counting).unwrap();
        // Git writes only to the directory of the snapshots.
        let (git, count) = (counting.join("git"), options.directory.join("count"));
        // The real program is in the rest of the path.
        let script =
            format!("#!/bin/sh\necho >> '{}'\nPATH=${{PATH#*:}}\nexec git \"$@\"\n", count.display());
        fs::write(&git, script).unwrap();
        fs::set_permissions(&git, fs::Permissions::from_mode(0o755)).unwrap();
        let path = std::env::join_paths(
            [counting].into_iter().chain(["/usr/local/bin", "/usr/bin", "/bin"].map(Into::into)),
        );
        options.search = Some(path.unwrap());
        options.excludes = Some(options.worktree.with_file_name("ignore"));
        options.settled_after = SETTLED;
        kept = Some(options.clone());
    });
    scene.run(&["init", "-q", "-b", "main"]);
    // The directory is a repository now.
    scene.snapshots = Snapshots::new(kept.unwrap());
    for (path, text) in [
        ("a.txt", "one\n"),
        ("b.txt", "one\n"),
        ("sub/deep/c.txt", "one\n"),
        ("build/out.o", "one\n"),
        ("objects/only.o", "one\n"),
        (".gitignore", "build/\n*.o\n"),
        ("sub/.gitignore", "local\n.gitignore\n"),
        ("sub/local", "one\n"),
        ("by-repository", "one\n"),
        ("by-user", "one\n"),
        (".git/info/exclude", "by-repository\n"),
        ("../ignore", "by-user\n"),
    ] {
        scene.put(path, text);
    }
    fs::create_dir_all(scene.root.join("empty/nested")).unwrap();
    scene
}

fn calls(scene: &Scene) -> usize {
    fs::read(scene.shadow().join("count")).map_or(0, |lines| lines.len())
}

/// Takes snapshots until git is not needed.
async fn calm(scene: &Scene) {
    tokio::time::sleep(2 * SETTLED).await;
    for _ in 0..LOOKS {
        let before = calls(scene);
        scene.track().await;
        if calls(scene) == before {
            return;
        }
        tokio::time::sleep(2 * SETTLED).await;
    }
    panic!("git runs in every snapshot");
}

/// Returns the tree that another process finds, which always uses git.
async fn expected(scene: &Scene) -> String {
    let mut options = scene.options();
    options.excludes = Some(options.worktree.with_file_name("ignore"));
    let other = Snapshots::new(Options { directory: options.store.join("other"), ..options });
    other.track(&CancellationToken::new()).await.unwrap().tree.to_string()
}

#[tokio::test]
async fn git_is_not_needed_while_nothing_changes() {
    let scene = scene();
    calm(&scene).await;
    let (before, tree) = (calls(&scene), scene.track().await.tree.to_string());
    // Ignored files do not matter.
    scene.put("build/other.o", "two\n");
    fs::create_dir(scene.root.join("build/deep")).unwrap();
    for _ in 0..3 {
        assert_eq!(scene.track().await.tree.to_string(), tree);
    }
    assert_eq!(calls(&scene), before);
    assert_eq!(tree, expected(&scene).await);
}

/// Makes a change and compares the next snapshot with one by git.
async fn check_next(name: &str, change: fn(&Path)) -> Scene {
    let scene = scene();
    calm(&scene).await;
    change(&scene.root);
    let tree = scene.track().await.tree.to_string();
    assert_eq!(tree, expected(&scene).await, "{name}");
    scene
}

/// Compares also later snapshots.
async fn check(name: &str, change: fn(&Path)) {
    let scene = check_next(name, change).await;
    // The knowledge after the change is as good.
    calm(&scene).await;
    assert_eq!(scene.track().await.tree.to_string(), expected(&scene).await, "{name}, later");
}

#[tokio::test]
async fn every_change_of_a_file_is_noticed() {
    tokio::join!(
        check("content of the same size", |root| fs::write(root.join("a.txt"), "two\n").unwrap()),
        check("content with the old time", |root| {
            let path = root.join("sub/deep/c.txt");
            let old = fs::metadata(&path).unwrap().modified().unwrap();
            fs::write(&path, "two\n").unwrap();
            fs::File::options().write(true).open(&path).unwrap().set_modified(old).unwrap();
        }),
        check("mode", |root| {
            fs::set_permissions(root.join("a.txt"), fs::Permissions::from_mode(0o755)).unwrap();
        }),
        check("removal", |root| fs::remove_file(root.join("sub/deep/c.txt")).unwrap()),
        check("exchange", |root| {
            fs::write(root.join("b.txt"), "two\n").unwrap();
            fs::rename(root.join("a.txt"), root.join("x")).unwrap();
            fs::rename(root.join("b.txt"), root.join("a.txt")).unwrap();
            fs::rename(root.join("x"), root.join("b.txt")).unwrap();
        }),
        check("a link in place of a file", |root| {
            fs::remove_file(root.join("a.txt")).unwrap();
            symlink("b.txt", root.join("a.txt")).unwrap();
        }),
        check("a link in place of a directory", |root| {
            fs::rename(root.join("sub"), root.with_file_name("moved")).unwrap();
            symlink(root.with_file_name("moved"), root.join("sub")).unwrap();
        }),
        check("a directory that is renamed", |root| {
            fs::rename(root.join("sub/deep"), root.join("sub/other")).unwrap();
        }),
    );
}

#[tokio::test]
async fn every_new_file_is_noticed() {
    tokio::join!(
        check("in the root", |root| fs::write(root.join("new"), "x").unwrap()),
        check("next to a tracked file", |root| fs::write(root.join("sub/deep/new"), "x").unwrap()),
        check("in an empty directory", |root| fs::write(root.join("empty/nested/new"), "x").unwrap()),
        check("next to ignored files", |root| fs::write(root.join("objects/new"), "x").unwrap()),
        check("in a new directory", |root| {
            fs::create_dir_all(root.join("fresh/er")).unwrap();
            fs::write(root.join("fresh/er/new"), "x").unwrap();
        }),
        check("an ignored one", |root| fs::write(root.join("new.o"), "x").unwrap()),
    );
}

#[tokio::test]
async fn every_change_of_what_is_ignored_is_noticed() {
    tokio::join!(
        check("the list of the root", |root| fs::write(root.join(".gitignore"), "*.o\n").unwrap()),
        check("an ignored list", |root| fs::write(root.join("sub/.gitignore"), ".gitignore\n").unwrap()),
        check("a new list", |root| fs::write(root.join("build/.gitignore"), "!*\n").unwrap()),
        check("a list next to ignored files", |root| {
            fs::write(root.join("objects/.gitignore"), "!*.o\n").unwrap();
        }),
        check("the removal of a list", |root| fs::remove_file(root.join("sub/.gitignore")).unwrap()),
        check("the list of the repository", |root| fs::write(root.join(".git/info/exclude"), "").unwrap()),
        check("the list of the user", |root| fs::remove_file(root.with_file_name("ignore")).unwrap()),
    );
}

#[tokio::test]
async fn names_with_a_meaning_in_patterns_are_plain_names() {
    check("a star", |root| {
        fs::create_dir_all(root.join("*")).unwrap();
        fs::write(root.join("*/new"), "x").unwrap();
    })
    .await;
    // With such a directory git always looks.
    let colon = check_next("a colon", |root| {
        fs::create_dir_all(root.join(":/build")).unwrap();
        fs::create_dir_all(root.join(":/objects")).unwrap();
    })
    .await;
    for _ in 0..LOOKS {
        tokio::time::sleep(2 * SETTLED).await;
        colon.track().await;
    }
    colon.put(":/objects/new", "x");
    assert_eq!(colon.track().await.tree.to_string(), expected(&colon).await);
    let scene = scene();
    for directory in ["[a]", "a", "build*", "x?"] {
        fs::create_dir_all(scene.root.join(directory)).unwrap();
    }
    calm(&scene).await;
    for directory in ["[a]", "a", "build*", "x?"] {
        scene.put(format!("{directory}/new"), "x");
        let tree = scene.track().await.tree.to_string();
        assert_eq!(tree, expected(&scene).await, "{directory}");
        calm(&scene).await;
    }
}

#[tokio::test]
async fn a_snapshot_of_another_process_is_noticed() {
    let scene = scene();
    calm(&scene).await;
    let tree = scene.track().await.tree;
    scene.put("a.txt", "two\n");
    let mut options = scene.options();
    options.excludes = Some(options.worktree.with_file_name("ignore"));
    let other = Snapshots::new(options);
    let changed = other.track(&CancellationToken::new()).await.unwrap().tree;
    assert_ne!(changed, tree);
    assert_eq!(scene.track().await.tree, changed);
    fs::remove_dir_all(scene.shadow().join("tracked")).unwrap();
    let before = calls(&scene);
    assert_eq!(scene.track().await.tree, changed);
    assert!(calls(&scene) > before, "the objects of the tree are gone");
}

#[tokio::test]
async fn a_file_that_changed_a_moment_ago_is_left_to_git() {
    let scene = Scene::git();
    scene.put("a.txt", "one\n");
    for text in ["two\n", "six\n", "ten\n"] {
        for _ in 0..3 {
            scene.track().await;
        }
        scene.put("a.txt", text);
        let tree = scene.track().await.tree;
        assert_eq!(
            scene.snapshots.read(tree, "a.txt".as_ref()).await.unwrap().unwrap().bytes,
            text.as_bytes()
        );
    }
}
