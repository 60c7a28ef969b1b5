//! Replacing texts in files.

use codewright_tools::ToolError;
use proptest::prelude::*;
use serde_json::json;

use crate::project::Project;

const RULE: &str = "===================================================================";

async fn edited(content: &str, old: &str, new: &str) -> (String, codewright_tools::Output) {
    let project = Project::new();
    project.file("f", content);
    let input = json!({"filePath": "f", "oldString": old, "newString": new});
    let output = project.call("edit", input).await.expect("edited");
    (project.text("f"), output)
}

#[tokio::test]
async fn a_text_is_replaced() {
    let cases = [
        (
            "def f():\n    if x:\n        return 1\n    return 2\n",
            "if x:\n  return 1",
            "if y:\n  return 3",
            "def f():\n    if y:\n        return 3\n    return 2\n",
        ),
        ("a\r\nb\r\nc\r\n", "a\nb", "a\nB", "a\r\nB\r\nc\r\n"),
        ("\u{feff}hello\nworld\n", "hello", "HELLO", "\u{feff}HELLO\nworld\n"),
        ("a $1 b", "$1", "$& \\1 $$", "a $& \\1 $$ b"),
    ];
    for (content, old, new, expected) in cases {
        let (text, output) = edited(content, old, new).await;
        assert_eq!((text.as_str(), output.output.as_str()), (expected, "Edit applied successfully."));
    }
}

#[tokio::test]
async fn the_change_is_in_the_metadata_also_while_running() {
    let project = Project::new();
    let path = project.file("t/dup.txt", "foo\nbar\nfoo\n");
    let path = path.to_str().expect("UTF-8");
    let input = json!({"filePath": path, "oldString": "foo", "newString": "baz", "replaceAll": true});
    let output = project.call("edit", input).await.expect("edited");
    let patch = format!(
        "Index: {path}\n{RULE}\n--- {path}\n+++ {path}\n@@ -1,3 +1,3 @@\n-foo\n+baz\n bar\n-foo\n+baz\n"
    );
    let filediff = json!({"file": path, "patch": patch, "additions": 2, "deletions": 2});
    let expected = json!({"diagnostics": {}, "diff": patch, "filediff": filediff, "truncated": false});
    assert_eq!(serde_json::Value::from(output.metadata).to_string(), expected.to_string());
    assert_eq!(output.title, "t/dup.txt");
    assert_eq!(project.shown.lock().expect("lock")[0]["filediff"], filediff);
    assert_eq!(project.text("t/dup.txt"), "baz\nbar\nbaz\n");
}

#[tokio::test]
async fn an_empty_old_string_creates_a_file() {
    let project = Project::new();
    let input = json!({"filePath": "t/created.txt", "oldString": "", "newString": "made\n"});
    let output = project.call("edit", input).await.expect("made");
    assert_eq!(project.text("t/created.txt"), "made\n");
    assert!(output.metadata["diff"].as_str().is_some_and(|diff| diff.ends_with("@@ -0,0 +1,1 @@\n+made\n")));
}

#[tokio::test]
async fn an_edit_that_fails_does_not_change_the_file() {
    let project = Project::new();
    project.file("t/dup.txt", "foo\nbar\nfoo\n");
    project.file("t/latin.txt", b"caf\xe9\n");
    project.file("t/sub/x", "");
    let made = std::process::Command::new("mkfifo").arg(project.root.join("pipe")).status().expect("mkfifo");
    assert!(made.success());
    let call =
        |path: &str, old: &str, new: &str| json!({"filePath": path, "oldString": old, "newString": new});
    let cases = [
        (
            call("$P/t/dup.txt", "zzz", "y"),
            "Could not find oldString in the file. It must match exactly, including whitespace, indentation, and line endings.",
        ),
        (
            call("$P/t/dup.txt", "foo", "baz"),
            "Found multiple matches for oldString. Provide more surrounding context to make the match unique. The matches start at the lines 1, 3.",
        ),
        (
            call("$P/t/dup.txt", "foo\nbaz", "y"),
            "Could not find oldString in the file. It must match exactly, including whitespace, indentation, and line endings.\n\nThe closest lines of the file are:\n1: foo\n2: bar",
        ),
        (call("$P/t/dup.txt", "foo", "foo"), "No changes to apply: oldString and newString are identical."),
        (
            call("$P/t/dup.txt", "bar \n", "bar\n"),
            "No changes to apply: oldString and newString are identical.",
        ),
        (call("$P/t/nofile.txt", "a", "b"), "File $P/t/nofile.txt not found"),
        (
            call("$P/t/dup.txt", "", "overwrite"),
            "oldString cannot be empty when editing an existing file. Provide the exact text to replace, or use write for an intentional full-file replacement.",
        ),
        (call("$P/pipe", "a", "b"), "Not a regular file: $P/pipe"),
        (call("$P/t/sub", "a", "b"), "Path is a directory, not a file: $P/t/sub"),
        (call("$P/t/latin.txt", "caf", "b"), "`$P/t/latin.txt` is not valid UTF-8 text"),
    ];
    for (input, expected) in cases {
        // The reason says something about the file, so it is told to those who may read the file.
        match project.asks("edit", input.clone()).await {
            Ok(asks) => assert!(asks.iter().all(|ask| ask.permission == "read"), "{asks:?}"),
            Err(error) => assert_eq!(project.plain(&error.to_string()), expected),
        }
        assert_eq!(project.error("edit", input).await, expected);
    }
    assert_eq!(project.text("t/dup.txt"), "foo\nbar\nfoo\n");
}

#[tokio::test]
async fn concurrent_edits_are_all_applied() {
    let project = Project::new();
    let content: String = (0..40).map(|n| format!("<{n}>\n")).collect();
    project.file("f", content);
    let edits = (0..40).map(|n| {
        project.call(
            "edit",
            json!({"filePath": "f", "oldString": format!("<{n}>"), "newString": format!("[{n}]")}),
        )
    });
    for result in futures(edits.collect()).await {
        result.expect("applied");
    }
    let expected: String = (0..40).map(|n| format!("[{n}]\n")).collect();
    assert_eq!(project.text("f"), expected);
}

/// Polls all calls in one task until they are done.
async fn futures<F: Future<Output = Result<codewright_tools::Output, ToolError>>>(
    calls: Vec<F>,
) -> Vec<F::Output> {
    let mut calls: Vec<_> = calls.into_iter().map(|call| (Box::pin(call), None)).collect();
    std::future::poll_fn(move |cx| {
        for (call, done) in &mut calls {
            if done.is_none()
                && let std::task::Poll::Ready(result) = call.as_mut().poll(cx)
            {
                *done = Some(result);
            }
        }
        if calls.iter().any(|(_, done)| done.is_none()) {
            return std::task::Poll::Pending;
        }
        std::task::Poll::Ready(calls.iter_mut().filter_map(|(_, done)| done.take()).collect())
    })
    .await
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn an_edit_applies_exactly_once_or_not_at_all(
        content in "(\u{feff})?([ab]| |\t|\n|\r\n|\u{e9}){0,40}", old in "([ab]| |\t|\n|\u{e9}){1,8}",
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let project = Project::new();
            project.file("f", &content);
            let input = json!({"filePath": "f", "oldString": old, "newString": "MARK"});
            let result = project.call("edit", input).await;
            let text = project.text("f");
            match result {
                Ok(_) => {
                    let (before, after) = text.split_once("MARK").expect("applied");
                    prop_assert!(!after.contains("MARK"));
                    prop_assert!(content.starts_with(before) && content.ends_with(after));
                    prop_assert!(before.len() + after.len() < content.len());
                }
                Err(_) => prop_assert_eq!(text, content),
            }
            Ok(())
        })?;
    }
}
