//! The content of snapshots.

use std::fs;

use codewright_snapshot::{Options, Snapshots};
use tokio_util::sync::CancellationToken;

use crate::scene::Scene;

#[tokio::test]
async fn a_directory_without_git_has_snapshots() {
    let scene = Scene::plain();
    let empty = scene.track().await;
    assert_eq!(empty.tree.to_string(), "4b825dc642cb6eb9a060e54bf8d69288fbee4904");
    scene.put("a.txt", "one\n");
    scene.put("sub/b.txt", "two\n");
    let first = scene.track().await;
    assert_eq!(scene.listed(&first), ["a.txt", "sub/b.txt"]);
    assert_eq!(scene.track().await.tree, first.tree);
    scene.put("a.txt", "ONE\n");
    fs::remove_dir_all(scene.root.join("sub")).unwrap();
    let second = scene.track().await;
    assert_eq!(scene.listed(&second), ["a.txt"]);
    let changes = scene.snapshots.diff(first.tree, second.tree).await.unwrap();
    let shown: Vec<_> =
        changes.iter().map(|change| (change.path.to_str().unwrap(), change.status())).collect();
    assert_eq!(shown, [("a.txt", "modified"), ("sub/b.txt", "deleted")]);
    let diffs = scene.snapshots.diff_full(first.tree, second.tree).await.unwrap();
    assert_eq!((diffs[0].additions, diffs[0].deletions), (1, 1));
    assert!(diffs[0].patch.as_ref().unwrap().ends_with("@@ -1,1 +1,1 @@\n-one\n+ONE\n"));
    let text = scene.snapshots.diff_text(first.tree, second.tree, &CancellationToken::new()).await.unwrap();
    assert!(text.starts_with("diff --git a/a.txt b/a.txt\nindex ") && text.ends_with("-two"), "{text}");
    let old = scene.snapshots.read(first.tree, "sub/b.txt".as_ref()).await.unwrap();
    assert_eq!(old.unwrap().bytes, b"two\n");
    assert_eq!(scene.snapshots.read(second.tree, "sub/b.txt".as_ref()).await.unwrap(), None);
}

#[tokio::test]
async fn a_clean_repository_has_the_tree_of_its_commit_and_copies_nothing() {
    let mut scene = Scene::git();
    scene.put("a.txt", "one\n");
    scene.put("sub/b.txt", "two\n");
    scene.run(&["add", "."]);
    scene.run(&["commit", "-q", "-m", "x"]);
    scene.again();
    let snapshot = scene.track().await;
    assert_eq!(snapshot.tree.to_string(), scene.run(&["rev-parse", "HEAD^{tree}"]).trim());
    let mut objects = Vec::new();
    for directory in fs::read_dir(scene.shadow().join("tracked/0001")).unwrap() {
        objects.extend(fs::read_dir(directory.unwrap().path()).into_iter().flatten());
    }
    // The commit that the index is compared with.
    assert_eq!(objects.len(), 1);
    let read = scene.snapshots.read(snapshot.tree, "sub/b.txt".as_ref()).await.unwrap();
    assert_eq!(read.unwrap().bytes, b"two\n");
}

#[tokio::test]
async fn ignored_large_and_outside_files_are_omitted() {
    let mut scene = Scene::git();
    scene.put(".gitignore", "*.log\n/app/out/\n");
    scene.put("app/keep.txt", "x");
    scene.put("app/deep/x.log", "x");
    scene.put("app/out/x.txt", "x");
    scene.put("app/mine.txt", "x");
    scene.put("app/everywhere.txt", "x");
    scene.put("other/x.txt", "x");
    scene.put(".git/info/exclude", "mine.txt\n");
    scene.put("../ignore", "everywhere.txt\n");
    scene.put("app/most", vec![b'x'; 2 * 1024 * 1024]);
    scene.put("app/more", vec![b'x'; 2 * 1024 * 1024 + 1]);
    let scope = scene.root.join("app");
    let mut options = Options::new(&scene.root.with_file_name("data"), "p", &scene.root, &scope);
    options.excludes = Some(scene.root.with_file_name("ignore"));
    scene.snapshots = Snapshots::new(options.clone());
    let snapshot = scene.track().await;
    assert!(snapshot.left_out.keys().eq([&std::path::PathBuf::from("app/more")]));
    let list = scene
        .snapshots
        .diff(
            codewright_snapshot::TreeId::parse("4b825dc642cb6eb9a060e54bf8d69288fbee4904").unwrap(),
            snapshot.tree,
        )
        .await
        .unwrap();
    let names: Vec<_> = list.iter().map(|change| change.path.to_str().unwrap()).collect();
    assert_eq!(names, ["app/keep.txt", "app/most"]);
}

#[tokio::test]
async fn a_home_and_its_parents_are_not_tracked() {
    for home in ["project", "project/user"] {
        let scene = Scene::with(|options| options.home = Some(options.worktree.with_file_name(home)));
        let error = scene.snapshots.track(&CancellationToken::new()).await.unwrap_err();
        assert!(error.to_string().contains("home directory"), "{error}");
        assert!(!scene.shadow().exists());
    }
    let options = Options::new("/tmp/x".as_ref(), "global", "/".as_ref(), "/".as_ref());
    let error = Snapshots::new(options).track(&CancellationToken::new()).await.unwrap_err();
    assert!(error.to_string().contains("root of the file system"), "{error}");
}

/// A path and its new content; `None` for a removal.
type Changed<'a> = (&'a str, Option<&'a [u8]>);

/// Changes files, reports them, and returns the derived tree with the tracked one.
async fn derived(
    scene: &Scene,
    before: codewright_snapshot::TreeId,
    changes: &[Changed<'_>],
) -> (Option<codewright_snapshot::TreeId>, codewright_snapshot::TreeId) {
    let mut step = codewright_snapshot::Step::default();
    for (path, bytes) in changes {
        let old = scene.snapshots.look(path.as_ref()).await.unwrap();
        match bytes {
            Some(bytes) => scene.put(path, bytes),
            None => fs::remove_file(scene.root.join(path)).unwrap(),
        }
        let new = scene.snapshots.look(path.as_ref()).await.unwrap();
        scene.snapshots.report_looks(&mut step, path.as_ref(), old, new).await.unwrap();
    }
    let found = scene.snapshots.derive(before, &step).await.unwrap();
    (found, scene.track().await.tree)
}

#[tokio::test]
async fn the_tree_after_edits_of_tracked_files_is_derived() {
    let mut scene = Scene::git();
    for path in ["a.txt", "b", "sub/deep/c.txt", "sub/d.txt", "sub-x", "sub.y"] {
        scene.put(path, "one\n");
    }
    // The first trees are objects of the user's repository, loose and packed.
    scene.run(&["add", "."]);
    scene.run(&["commit", "-q", "-m", "x"]);
    for is_packed in [false, true] {
        if is_packed {
            scene.run(&["commit", "-q", "-am", "y"]);
            scene.run(&["repack", "-adq"]);
        }
        scene.again();
        let before = scene.track().await.tree;
        let text = format!("two {is_packed}\n");
        let changes = [("sub/deep/c.txt", Some(text.as_bytes())), ("b", Some(b"".as_slice()))];
        let (found, tracked) = derived(&scene, before, &changes).await;
        assert_eq!(found, Some(tracked), "packed: {is_packed}");
        assert_ne!(before, tracked);
        // From a derived tree, whose objects are in no other repository.
        let (found, tracked) = derived(&scene, tracked, &[("sub/d.txt", Some(text.as_bytes()))]).await;
        assert_eq!(found, Some(tracked));
        let read = scene.snapshots.read(tracked, "sub/d.txt".as_ref()).await.unwrap();
        assert_eq!(read.unwrap().bytes, text.as_bytes());
    }
}

#[tokio::test]
async fn a_tree_that_only_git_knows_is_not_derived() {
    let scene = Scene::git();
    scene.put("a.txt", "one\n");
    scene.put("sub/b.txt", "one\n");
    scene.put("ignored", "one\n");
    scene.put(".gitignore", "ignored\n");
    let before = scene.track().await.tree;
    let large = vec![b'x'; codewright_snapshot::MAX_TRACKED_BYTES as usize + 1];
    let cases: [&[Changed<'_>]; 6] = [
        &[("new.txt", Some(b"new"))],
        &[("sub/b.txt", None)],
        &[("ignored", Some(b"two"))],
        &[(".gitignore", Some(b"a.txt\n"))],
        &[("a.txt", Some(&large))],
        &[("a.txt", Some(b"two")), ("other/new.txt", Some(b"new"))],
    ];
    for changes in cases {
        assert_eq!(derived(&scene, before, changes).await.0, None, "{:?}", changes[0].0);
    }
}

#[tokio::test]
async fn a_file_that_was_changed_again_is_not_derived() {
    let scene = Scene::git();
    scene.put("a.txt", "one\n");
    let before = scene.track().await.tree;
    let mut step = codewright_snapshot::Step::default();
    let old = scene.snapshots.look("a.txt".as_ref()).await.unwrap();
    scene.put("a.txt", "agent\n");
    let new = scene.snapshots.look("a.txt".as_ref()).await.unwrap();
    scene.snapshots.report_looks(&mut step, "a.txt".as_ref(), old, new).await.unwrap();
    assert!(scene.snapshots.derive(before, &step).await.unwrap().is_some());
    for kind in ["user", "link", "mode"] {
        match kind {
            "user" => scene.put("a.txt", "user\n"),
            "link" => {
                fs::remove_file(scene.root.join("a.txt")).unwrap();
                std::os::unix::fs::symlink("agent\n", scene.root.join("a.txt")).unwrap();
            }
            _ => {
                fs::remove_file(scene.root.join("a.txt")).unwrap();
                scene.put("a.txt", "agent\n");
                let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
                fs::set_permissions(scene.root.join("a.txt"), mode).unwrap();
            }
        }
        assert_eq!(scene.snapshots.derive(before, &step).await.unwrap(), None, "{kind}");
    }
}
