//! Links that are exchanged between the check of a call and its run. The full form is `cargo xtask races`.

use std::os::unix::fs::symlink;

use codewright_tools::{Opening, ToolCx};
use serde_json::{Value, json};

use crate::project::{Project, tool_named};

/// Judges a call, exchanges a path for a link to the outside, and runs the call.
async fn exchanged(opening: Opening, tool: &str, input: Value, path: &str) -> (Project, String) {
    let project = Project::new();
    let outside = project.root.with_file_name("outside");
    for directory in [&project.root.join("d"), &outside] {
        std::fs::create_dir_all(directory).expect("made");
        let text = if *directory == outside { "secret one\n" } else { "inside one\n" };
        std::fs::write(directory.join("f.txt"), text).expect("written");
    }
    std::fs::write(outside.join("AGENTS.md"), "secret").expect("written");
    let cx = ToolCx { opening, ..project.fresh() };
    let tool = tool_named(tool);
    let asks = tool.asks(&input, &cx).await.expect("asks");
    assert!(asks.iter().all(|ask| ask.permission != "external_directory"), "{asks:?}");
    let at = project.root.join(path);
    std::fs::rename(&at, at.with_extension("old")).expect("renamed");
    let target = if path == "d" { outside.clone() } else { outside.join("f.txt") };
    symlink(target, &at).expect("linked");
    let result = match tool.run(input, &cx).await {
        Ok(output) => format!("{} {}", output.output, Value::Object(output.metadata)),
        Err(error) => error.to_string(),
    };
    let kept = std::fs::read_to_string(outside.join("f.txt")).expect("there");
    assert_eq!((kept.as_str(), std::fs::read_dir(outside).expect("read").count()), ("secret one\n", 2));
    (project, result)
}

#[tokio::test]
async fn a_call_that_was_checked_never_leaves_the_project() {
    let patch = |part: &str| json!({ "patchText": format!("*** Begin Patch\n{part}*** End Patch") });
    let calls = [
        ("read", json!({ "filePath": "d/f.txt" })),
        ("read", json!({ "filePath": "d" })),
        ("write", json!({ "filePath": "d/f.txt", "content": "x" })),
        ("write", json!({ "filePath": "d/new/g.txt", "content": "x" })),
        ("edit", json!({ "filePath": "d/f.txt", "oldString": "one", "newString": "two" })),
        (
            "multiedit",
            json!({ "filePath": "d/f.txt", "edits": [{ "oldString": "one", "newString": "two" }] }),
        ),
        ("apply_patch", patch("*** Update File: d/f.txt\n@@\n-inside one\n+two\n")),
        ("apply_patch", patch("*** Delete File: d/f.txt\n")),
        ("apply_patch", patch("*** Add File: d/g.txt\n+x\n")),
        ("glob", json!({ "pattern": "*", "path": "d" })),
        ("grep", json!({ "pattern": "one", "path": "d" })),
        ("list", json!({ "path": "d" })),
    ];
    for opening in Opening::ALL {
        for (tool, input) in &calls {
            for path in ["d", "d/f.txt"] {
                let (_project, result) = exchanged(opening, tool, input.clone(), path).await;
                let leaks = result.contains("secret") || result.contains("AGENTS");
                assert!(!leaks, "{tool} {input} {path} {opening:?}: {result}");
            }
        }
    }
}

#[tokio::test]
async fn the_error_of_an_exchanged_path_says_so() {
    let input = json!({ "filePath": "d/f.txt" });
    let (project, result) = exchanged(Opening::Kernel, "read", input, "d").await;
    assert_eq!(project.plain(&result), "`$P/d/f.txt` was replaced after it was checked");
}

#[tokio::test]
async fn an_edit_outside_says_nothing_about_the_file_before_it_is_permitted() {
    let project = Project::new();
    let outside = project.root.with_file_name("outside");
    std::fs::create_dir(&outside).expect("made");
    std::fs::write(outside.join("f.txt"), "secret\n").expect("written");
    let patch = "*** Begin Patch\n*** Update File: ../outside/f.txt\n@@\n-guess\n+x\n*** End Patch";
    for (tool, input) in [
        ("edit", json!({ "filePath": "../outside/f.txt", "oldString": "guess", "newString": "x" })),
        ("edit", json!({ "filePath": "../outside/none", "oldString": "guess", "newString": "x" })),
        (
            "multiedit",
            json!({ "filePath": "../outside/f.txt", "edits": [{ "oldString": "guess", "newString": "x" }] }),
        ),
        ("apply_patch", json!({ "patchText": patch })),
        ("write", json!({ "filePath": "../outside", "content": "x" })),
    ] {
        let asks = project.asks(tool, input.clone()).await.expect("asks");
        let kinds: Vec<_> = asks.iter().map(|ask| ask.permission.as_str()).collect();
        assert_eq!(kinds, ["external_directory", "edit"], "{tool} {input}");
        assert!(project.call(tool, input.clone()).await.is_err(), "{tool} {input}");
    }
}
