//! Undo and redo on real files.

use codewright_snapshot::Respect::{Edits, Nothing};

use crate::scene::Scene;

#[tokio::test]
async fn undo_reverts_the_writes_of_tools_and_redo_repeats_them() {
    let mut scene = Scene::plain();
    scene.put("a.txt", "old\r\n");
    let start = scene.all();
    scene.writes(&[("a.txt", Some("new\n")), ("made/deep/b.txt", Some("b"))]).await;
    scene.writes(&[("a.txt", None), ("made/c.txt", Some("c"))]).await;
    let end = scene.all();
    assert_eq!(scene.travel(2, 0, Edits).await, [""; 0]);
    assert_eq!(scene.all(), start);
    assert_eq!(scene.travel(0, 2, Edits).await, [""; 0]);
    assert_eq!(scene.all(), end);
    assert_eq!(scene.travel(2, 1, Edits).await, [""; 0]);
    assert_eq!(scene.text("a.txt").unwrap(), "new\n");
    assert_eq!(scene.text("made/c.txt"), None);
    // A second time changes nothing.
    assert_eq!(scene.travel(2, 1, Edits).await, [""; 0]);
}

#[tokio::test]
async fn undo_reverts_the_changes_of_a_command() {
    let mut scene = Scene::git();
    scene.put("a.txt", "a");
    scene.put("dir/b.txt", "b");
    let start = scene.all();
    scene
        .opaque(|scene| {
            scene.put("new/x", "x");
            scene.put("a.txt", "A");
            std::fs::remove_dir_all(scene.root.join("dir")).unwrap();
            scene.put("dir", "now a file");
        })
        .await;
    let end = scene.all();
    assert_eq!(scene.travel(1, 0, Edits).await, [""; 0]);
    assert_eq!(scene.all(), start);
    assert_eq!(scene.travel(0, 1, Edits).await, [""; 0]);
    assert_eq!(scene.all(), end);
}

#[tokio::test]
async fn files_that_the_user_changed_are_kept_unless_insisted() {
    let mut scene = Scene::plain();
    scene.put("a.txt", "a");
    scene.put("b.txt", "b");
    scene.writes(&[("a.txt", Some("A")), ("b.txt", Some("B"))]).await;
    scene.put("b.txt", "mine");
    assert_eq!(scene.travel(1, 0, Edits).await, ["b.txt: it was changed since"]);
    assert_eq!((scene.text("a.txt").unwrap(), scene.text("b.txt").unwrap()), ("a".into(), "mine".into()));
    assert_eq!(scene.travel(1, 0, Nothing).await, [""; 0]);
    assert_eq!(scene.text("b.txt").unwrap(), "b");
}

#[tokio::test]
async fn a_step_without_changes_is_empty() {
    let mut scene = Scene::plain();
    scene.put("a.txt", "a");
    scene.writes(&[("a.txt", Some("b")), ("a.txt", Some("a"))]).await;
    scene.opaque(|_| {}).await;
    assert_eq!(scene.steps, []);
}

#[tokio::test]
async fn files_that_are_only_newly_tracked_are_not_removed() {
    let mut scene = Scene::git();
    scene.put(".gitignore", "dist/\n");
    scene.put("dist/precious", "p");
    scene.put("dist/replaced", "old");
    scene.put("vendored/lib.c", "c");
    scene.put("large", vec![b'x'; 3 << 20]);
    let at = scene.root.join("vendored").to_string_lossy().into_owned();
    scene.run(&["-C", &at, "init", "-q"]);
    scene
        .opaque(|scene| {
            scene.put(".gitignore", "");
            scene.put("dist/replaced", "new");
            std::fs::remove_dir_all(scene.root.join("vendored/.git")).unwrap();
        })
        .await;
    let left: Vec<_> = scene.steps[0].left_out.iter().map(|(path, _)| path.to_str().unwrap()).collect();
    assert_eq!(left, ["dist/precious", "dist/replaced", "vendored/lib.c"]);
    assert_eq!(scene.travel(1, 0, Nothing).await, [""; 0]);
    assert_eq!(scene.text("dist/precious").unwrap(), "p");
    assert_eq!(scene.text("dist/replaced").unwrap(), "new");
    assert_eq!(scene.text("vendored/lib.c").unwrap(), "c");
    assert_eq!(scene.text(".gitignore").unwrap(), "dist/\n");
}
