//! Patches over several files.

use std::os::unix::fs::PermissionsExt;

use codewright_tools::Effects;
use serde_json::{Value, json};

use crate::project::{Project, is_outside, tool_named};

fn patch(body: &str) -> Value {
    json!({"patchText": format!("*** Begin Patch\n{body}\n*** End Patch")})
}

const RULE: &str = "===================================================================";

#[tokio::test]
async fn one_patch_adds_changes_removes_and_moves() {
    let project = Project::new();
    project.file("README.md", "# Demo project\n");
    project.file("src/util.py", "def add(a, b):\n    return a + b\n\n\ndef sub(a, b):\n    return a - b\n");
    let main = project.file("src/main.py", "import sys\nfrom util import add\n");
    std::fs::set_permissions(&main, std::fs::Permissions::from_mode(0o750)).expect("set");
    let input = patch(
        "*** Add File: src/added.txt\n+hello\n+world\n*** Update File: src/util.py\n@@ def add(a, b):\n-    return a + b\n\
         +    return b + a\n*** Delete File: README.md\n*** Update File: src/main.py\n*** Move to: lib/moved.py\n@@\n\
         -import sys\n+import sys as system",
    );
    let output = project.call("apply_patch", input).await.expect("applied");
    let expected =
        "Success. Updated the following files:\nA src/added.txt\nM src/util.py\nD README.md\nM lib/moved.py";
    assert_eq!((output.output.as_str(), output.title.as_str()), (expected, expected));
    assert_eq!(project.text("src/added.txt"), "hello\nworld\n");
    assert!(project.text("src/util.py").starts_with("def add(a, b):\n    return b + a\n\n"));
    assert_eq!(project.text("lib/moved.py"), "import sys as system\nfrom util import add\n");
    let mode = std::fs::metadata(project.root.join("lib/moved.py")).expect("there").permissions().mode();
    assert_eq!(mode & 0o777, 0o750);
    assert!(!project.root.join("README.md").exists() && !main.exists());
    let header = |path: &str| format!("Index: {path}\n{RULE}\n--- {path}\n+++ {path}\n");
    let metadata: Value =
        serde_json::from_str(&project.plain(&Value::from(output.metadata).to_string())).expect("JSON");
    let moved = format!(
        "{}@@ -1,2 +1,2 @@\n-import sys\n+import sys as system\n from util import add\n",
        header("$P/src/main.py")
    );
    let file = json!({
        "filePath": "$P/src/main.py", "relativePath": "lib/moved.py", "type": "move", "patch": moved,
        "additions": 1, "deletions": 1, "movePath": "$P/lib/moved.py",
    });
    assert_eq!(metadata["files"][3].to_string(), file.to_string());
    let removed = format!("{}@@ -1,1 +0,0 @@\n-# Demo project\n", header("$P/README.md"));
    let file = json!({
        "filePath": "$P/README.md", "relativePath": "README.md", "type": "delete", "patch": removed,
        "additions": 0, "deletions": 2,
    });
    assert_eq!(metadata["files"][2].to_string(), file.to_string());
    assert_eq!([&metadata["files"][0]["type"], &metadata["files"][1]["type"]], ["add", "update"]);
    assert!(metadata["diff"].as_str().is_some_and(|diff| diff.ends_with(&format!("{removed}\n{moved}\n"))));
    assert_eq!((&metadata["diagnostics"], &metadata["truncated"]), (&json!({}), &json!(false)));
}

#[tokio::test]
async fn text_around_a_patch_is_ignored() {
    let project = Project::new();
    project.file("t/dup.txt", "old\n");
    project.file("t/empty.txt", "");
    project.file("t/nonl.txt", "no newline at end");
    let cases = [
        ("*** Begin Patch\n*** Add File: t/dup.txt\n+replaced\n*** End Patch", "A t/dup.txt", "replaced\n"),
        ("```\n*** Begin Patch\n*** Add File: t/fenced.txt\n+x\n*** End Patch\n```", "A t/fenced.txt", "x\n"),
        (
            "<<'EOF'\n*** Begin Patch\n*** Add File: t/heredoc.txt\n+x\n*** End Patch\nEOF",
            "A t/heredoc.txt",
            "x\n",
        ),
        (
            "*** Begin Patch\n*** Update File: t/empty.txt\n@@\n+added\n*** End Patch",
            "M t/empty.txt",
            "added\n",
        ),
        (
            "*** Begin Patch\n*** Update File: t/nonl.txt\n@@\n-  no newline at end  \n+trimmed\n*** End Patch",
            "M t/nonl.txt",
            "trimmed\n",
        ),
    ];
    for (text, line, expected) in cases {
        let output = project.call("apply_patch", json!({"patchText": text})).await.expect(line);
        assert_eq!(output.output, format!("Success. Updated the following files:\n{line}"));
        assert_eq!(project.text(&line[2..]), expected);
    }
}

#[tokio::test]
async fn a_patch_that_does_not_fit_changes_nothing() {
    let project = Project::new();
    project.file("t/dup.txt", "foo\nbar\nfoo\n");
    project.file("t/latin.txt", b"caf\xe9\n");
    project.file("t/sub/x", "");
    std::os::unix::fs::symlink("dup.txt", project.root.join("t/link")).expect("linked");
    let failed = |reason: &str| format!("apply_patch verification failed: {reason}");
    let missing = "Error: Invalid patch format: missing Begin/End markers";
    let cases = [
        (json!({"patchText": "no markers"}), failed(missing)),
        (json!({"patchText": "*** Begin Patch\n*** End Patch"}), "patch rejected: empty patch".to_owned()),
        (
            patch("*** Update File: t/nofile\n@@\n-a\n+b"),
            failed("Failed to read file to update: $P/t/nofile"),
        ),
        (
            patch("*** Update File: t/dup.txt\n@@\n-notthere\n+b"),
            failed("Error: Failed to find expected lines in $P/t/dup.txt:\nnotthere"),
        ),
        (
            patch("*** Update File: t/dup.txt\n@@ none\n-foo\n+b"),
            failed("Error: Failed to find context 'none' in $P/t/dup.txt"),
        ),
        (patch("*** Delete File: t/never"), failed("NotFound: FileSystem.readFile ($P/t/never)")),
        (patch("*** Delete File: t/sub"), failed("BadResource: FileSystem.readFile ($P/t/sub)")),
        (patch("*** Add File: t/sub\n+x"), failed("BadResource: FileSystem.readFile ($P/t/sub)")),
        (
            patch("*** Delete File: t/link"),
            failed("$P/t/link is a symbolic link; remove or rename it with a command"),
        ),
        (
            patch("*** Update File: t/latin.txt\n@@\n+x"),
            failed("Failed to read file to update: $P/t/latin.txt is not valid UTF-8 text"),
        ),
        (patch("*** Add File: /dev/null\n+x"), failed("Not a regular file: /dev/null")),
        (
            patch("*** Delete File: t/dup.txt\n*** Update File: t/dup.txt\n@@\n-foo"),
            failed("Failed to read file to update: $P/t/dup.txt"),
        ),
    ];
    for (input, expected) in cases {
        // Another file, which fits by itself, comes first.
        let text = input["patchText"].as_str().expect("text");
        let with_more =
            text.replacen("*** Begin Patch\n*** ", "*** Begin Patch\n*** Add File: first\n+x\n*** ", 1);
        for text in [text, with_more.as_str()].iter().filter(|text| !text.contains("first\n+x\n*** End")) {
            let input = json!({"patchText": text});
            match project.asks("apply_patch", input.clone()).await {
                // The state of a file outside is reported only after permission, and of others to those who may read them.
                Ok(asks) if text.contains("/dev") => {
                    assert_eq!(asks[0].permission.as_str(), "external_directory");
                }
                Ok(asks) => assert!(asks.iter().all(|ask| ask.permission == "read"), "{asks:?}"),
                Err(error) => assert_eq!(project.plain(&error.to_string()), expected),
            }
            assert_eq!(project.error("apply_patch", input).await, expected);
        }
    }
    assert_eq!(project.text("t/dup.txt"), "foo\nbar\nfoo\n");
    assert!(!project.root.join("first").exists());
}

#[tokio::test]
async fn later_parts_build_on_earlier_ones() {
    let project = Project::new();
    project.file("a.txt", "one\n");
    let input = patch(
        "*** Update File: a.txt\n*** Move to: b.txt\n@@\n-one\n+two\n*** Update File: b.txt\n@@\n-two\n+three\n\
         *** Add File: a.txt\n+new",
    );
    project.call("apply_patch", input).await.expect("applied");
    assert_eq!((project.text("b.txt").as_str(), project.text("a.txt").as_str()), ("three\n", "new\n"));
    let input = patch("*** Update File: b.txt\n*** Move to: sub/c.txt");
    project.call("apply_patch", input).await.expect("moved unchanged");
    assert_eq!(project.text("sub/c.txt"), "three\n");
    let input = patch("*** Update File: sub/c.txt\n*** Move to: sub/../sub/c.txt\n@@\n-three\n+four");
    project.call("apply_patch", input).await.expect("not moved at all");
    assert_eq!(project.text("sub/c.txt"), "four\n");
}

#[tokio::test]
async fn the_old_and_new_content_of_every_file_is_reported() {
    let mut project = Project::new();
    let told = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let sink = std::sync::Arc::clone(&told);
    project.cx.effects = Effects::new(move |effect| {
        let text = |bytes: Option<Vec<u8>>| bytes.map(|bytes| String::from_utf8(bytes).expect("UTF-8"));
        let name = effect.path.file_name().expect("a name").to_string_lossy().into_owned();
        sink.lock().expect("lock").push((name, text(effect.before), text(effect.after), effect.made));
    });
    project.file("a", "a\r\n");
    project.file("b", "b\n");
    project.file("c", "c\n");
    let body = "*** Update File: a\n@@\n-a\n+A\n*** Delete File: b\n*** Update File: c\n*** Move to: x/y/d\n*** Add File: e\n+e";
    project.call("apply_patch", patch(body)).await.expect("applied");
    let some = |text: &str| Some(text.to_owned());
    let expected = [
        ("a".to_owned(), some("a\r\n"), some("A\r\n"), 0),
        ("b".to_owned(), some("b\n"), None, 0),
        ("d".to_owned(), None, some("c\n"), 2),
        ("c".to_owned(), some("c\n"), None, 0),
        ("e".to_owned(), None, some("e\n"), 0),
    ];
    assert_eq!(*told.lock().expect("lock"), expected);
}

#[tokio::test]
async fn every_file_needs_permission() {
    let project = Project::new();
    project.file("a.txt", "a\n");
    let outside = project.root.parent().expect("a parent").join("outside");
    std::fs::create_dir(&outside).expect("made");
    let input = patch(
        "*** Update File: a.txt\n*** Move to: ../outside/b.txt\n@@\n-a\n+b\n*** Add File: ../outside/c.txt\n+c\n\
         *** Add File: d/e.txt\n+e",
    );
    let asks = project.asks("apply_patch", input).await.expect("asks");
    assert_eq!(asks.len(), 2);
    assert!(is_outside(&asks[0], &outside), "{asks:?}");
    assert_eq!((asks[1].permission.as_str(), &asks[1].always[..]), ("edit", &["*".to_owned()][..]));
    assert_eq!(asks[1].patterns, ["a.txt", "../outside/b.txt", "../outside/c.txt", "d/e.txt"]);
    assert_eq!(asks[1].metadata["filepath"], "../outside/b.txt, ../outside/c.txt, d/e.txt");
    assert_eq!(asks[1].metadata["files"].as_array().map(Vec::len), Some(3));
    assert!(asks[1].metadata["diff"].as_str().is_some_and(|diff| diff.contains("-a\n+b\n")));
    assert_eq!(project.text("a.txt"), "a\n");
}

#[tokio::test]
async fn concurrent_patches_are_all_applied() {
    let project = Project::new();
    for name in ["a", "b"] {
        project.file(name, (0..20).map(|n| format!("<{n}>\n")).collect::<String>());
    }
    let mut calls = tokio::task::JoinSet::new();
    for n in 0..20 {
        // Every second one names the files in the other order.
        let names = if n % 2 == 0 { ["a", "b"] } else { ["b", "a"] };
        let body = names.map(|name| format!("*** Update File: {name}\n@@\n-<{n}>\n+[{n}]")).join("\n");
        let tool = tool_named("apply_patch");
        let (input, cx) = (patch(&body), project.cx.clone());
        calls.spawn(async move { tool.run(input, &cx).await.map(|_| ()) });
    }
    while let Some(done) = calls.join_next().await {
        done.expect("no panic").expect("applied");
    }
    let expected: String = (0..20).map(|n| format!("[{n}]\n")).collect();
    assert_eq!((project.text("a"), project.text("b")), (expected.clone(), expected));
}
