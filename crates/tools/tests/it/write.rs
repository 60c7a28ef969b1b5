//! Writing whole files.

use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use crate::project::{Project, is_outside};

#[tokio::test]
async fn files_are_written_and_created() {
    let project = Project::new();
    project.file("t/big.txt", "before");
    let cases = [
        (json!({"filePath": "$P/t/big.txt", "content": "short now\n"}), "t/big.txt", true),
        (json!({"filePath": "$P/t/new/dir/x.txt", "content": "hi"}), "t/new/dir/x.txt", false),
        (json!({"filePath": "rel.txt", "content": "relative\n"}), "rel.txt", false),
    ];
    for (input, title, exists) in cases {
        let content = input["content"].as_str().expect("text").to_owned();
        let output = project.call("write", input).await.expect(title);
        assert_eq!((output.title.as_str(), output.output.as_str()), (title, "Wrote file successfully."));
        let path = project.root.join(title);
        let expected = json!({"diagnostics": {}, "filepath": path, "exists": exists, "truncated": false});
        assert_eq!(Value::from(output.metadata).to_string(), expected.to_string());
        assert_eq!(project.text(title), content);
    }
}

#[tokio::test]
async fn a_directory_is_not_overwritten() {
    let project = Project::new();
    project.file("t/sub/x", "");
    let error = project.error("write", json!({"filePath": "$P/t/sub", "content": "x"})).await;
    assert_eq!(error, "BadResource: FileSystem.readFile ($P/t/sub)");
}

#[tokio::test]
async fn mode_and_mark_are_kept() {
    let project = Project::new();
    let path = project.file("run.sh", "\u{feff}old");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o750)).expect("set");
    project.call("write", json!({"filePath": "run.sh", "content": "new"})).await.expect("written");
    assert_eq!(project.text("run.sh"), "\u{feff}new");
    assert_eq!(std::fs::metadata(&path).expect("there").permissions().mode() & 0o777, 0o750);
    assert_eq!(std::fs::read_dir(&project.root).expect("read").count(), 1, "no temporary file is left");
}

#[tokio::test]
async fn the_permission_request_contains_the_change() {
    let project = Project::new();
    project.file("a.txt", "old\n");
    let asks = project.asks("write", json!({"filePath": "a.txt", "content": "new\n"})).await.expect("asks");
    assert_eq!((asks.len(), asks[0].permission.as_str()), (1, "edit"));
    assert_eq!(
        (&asks[0].patterns[..], &asks[0].always[..]),
        (&["a.txt".to_owned()][..], &["*".to_owned()][..])
    );
    assert_eq!(asks[0].metadata["filepath"], project.at("$P/a.txt"));
    let diff = asks[0].metadata["diff"].as_str().expect("text");
    assert!(diff.ends_with("@@ -1,1 +1,1 @@\n-old\n+new\n"), "{diff}");
    assert_eq!(project.text("a.txt"), "old\n");
}

#[tokio::test]
async fn a_link_is_followed_and_its_target_needs_permission() {
    let project = Project::new();
    let outside = project.root.parent().expect("a parent").join("outside");
    std::fs::create_dir(&outside).expect("made");
    std::os::unix::fs::symlink(outside.join("new.txt"), project.root.join("link.txt")).expect("linked");
    let input = json!({"filePath": "link.txt", "content": "x"});
    let asks = project.asks("write", input.clone()).await.expect("asks");
    assert!(is_outside(&asks[0], &outside), "{asks:?}");
    assert_eq!(asks[1].patterns, ["link.txt", "../outside/new.txt"]);
    project.call("write", input).await.expect("written");
    assert!(project.root.join("link.txt").is_symlink());
    assert_eq!(std::fs::read_to_string(outside.join("new.txt")).expect("made"), "x");
}

#[tokio::test]
async fn changes_by_others_are_not_overwritten() {
    let project = Project::new();
    let path = project.file("a.txt", "one\n");
    let write = || json!({"filePath": "a.txt", "content": "mine\n"});
    project.call("read", json!({"filePath": "a.txt"})).await.expect("read");
    std::fs::write(&path, "somebody else's\n").expect("written");
    let refused = "$P/a.txt has changed since you last saw it, by a command or by somebody else. Read it again, so that \
                   nothing is lost, and then write.";
    assert_eq!(project.error("write", write()).await, refused);
    assert!(project.asks("write", write()).await.is_err(), "no permission is requested in vain");
    let patch = "*** Begin Patch\n*** Delete File: a.txt\n*** End Patch";
    let error = project.error("apply_patch", json!({"patchText": patch})).await;
    assert!(error.contains("$P/a.txt has changed since you last saw it"), "{error}");
    let edit = json!({"filePath": "a.txt", "oldString": "else's", "newString": "else"});
    let edited = project.call("edit", edit).await.expect("edited");
    assert!(
        edited.output.starts_with("Edit applied successfully.\n\n<system-reminder>"),
        "{}",
        edited.output
    );
    project.call("write", write()).await.expect("its own edit is known");
    project
        .call("write", json!({"filePath": "a.txt", "content": "again\n"}))
        .await
        .expect("so is its own write");
    assert_eq!(project.text("a.txt"), "again\n");
    std::fs::write(project.root.join("unseen"), "x").expect("written");
    project
        .call("write", json!({"filePath": "unseen", "content": "y"}))
        .await
        .expect("never seen, as recorded");
}
