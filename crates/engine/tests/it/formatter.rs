//! Formatters after edits.

use std::time::Duration;

use codewright_proto::{RevertInput, ToolState};
use codewright_scripted::Script;
use serde_json::{Value, json};

use crate::desk::{Desk, calls, prompt};

/// The configuration of formatters that run a shell script.
fn scripts(scripts: &[(&str, &str)]) -> Value {
    let entry =
        |script: &str| json!({"command": ["/bin/sh", "-c", script, "sh", "$FILE"], "extensions": [".txt"]});
    let entries = scripts.iter().map(|(name, script)| ((*name).to_owned(), entry(script)));
    json!({"formatter": Value::Object(entries.collect())})
}

fn metadata(state: &ToolState) -> Value {
    match state {
        ToolState::Completed { metadata, .. } => json!(metadata),
        other => panic!("{other:?}"),
    }
}

fn file(desk: &Desk, name: &str) -> String {
    std::fs::read_to_string(desk.project.join(name)).unwrap()
}

#[tokio::test]
async fn a_formatted_edit_is_shown_undone_and_known_as_formatted() {
    let script = Script::new()
        .tool("edit", json!({"filePath": "a.txt", "oldString": "two", "newString": "2"}))
        // The session knows the formatted file, so writing it needs no other reading.
        .tool("write", json!({"filePath": "a.txt", "content": "all new\n"}))
        .text("Done.");
    let desk = Desk::with(script, scripts(&[("mine", "echo formatted >> \"$1\"")])).await;
    std::fs::write(desk.project.join("a.txt"), "one\ntwo\n").unwrap();
    let session = desk.session().await;
    desk.prompt(&session, "go").await;
    assert_eq!(file(&desk, "a.txt"), "all new\nformatted\n");
    let transcript = desk.transcript(&session).await;
    let calls = calls(&transcript);
    let shown = metadata(&calls[0].1);
    let diff = shown["diff"].as_str().unwrap();
    assert!(diff.ends_with("@@ -1,2 +1,3 @@\n one\n-two\n+2\n+formatted\n"), "{diff}");
    assert_eq!(shown["filediff"]["additions"], 2);
    assert_eq!(shown["filediff"]["patch"], shown["diff"]);
    assert_eq!(metadata(&calls[1].1)["exists"], true);
    let input = RevertInput { message_id: transcript[0].info.id().clone(), part_id: None, force: None };
    desk.engine.sessions().revert(&session.id, input).await.unwrap();
    assert_eq!(file(&desk, "a.txt"), "one\ntwo\n");
    desk.assert_clean();
}

#[tokio::test]
async fn every_file_of_a_patch_is_formatted() {
    let patch = "*** Begin Patch\n*** Add File: new.txt\n+x\n*** Update File: a.txt\n*** Move to: b.txt\n@@\n-one\n+1\n\
                 *** Delete File: gone.txt\n*** End Patch";
    let script = Script::new().tool("apply_patch", json!({"patchText": patch})).text("Done.");
    let more = scripts(&[("first", "echo first >> \"$1\""), ("second", "echo second >> \"$1\"")]);
    let mut more = more;
    more["model"] = json!("mockopenai/gpt-5-mock");
    let desk = Desk::with(script, more).await;
    for (name, content) in [("a.txt", "one\n"), ("gone.txt", "gone\n")] {
        std::fs::write(desk.project.join(name), content).unwrap();
    }
    let session = desk.session().await;
    desk.prompt(&session, "go").await;
    assert_eq!(file(&desk, "new.txt"), "x\nfirst\nsecond\n");
    assert_eq!(file(&desk, "b.txt"), "1\nfirst\nsecond\n");
    let shown = metadata(&calls(&desk.transcript(&session).await)[0].1);
    assert_eq!(shown["files"][0]["additions"], 3);
    assert!(shown["files"][1]["patch"].as_str().unwrap().ends_with("-one\n+1\n+first\n+second\n"), "{shown}");
    assert!(shown["diff"].as_str().unwrap().contains("+second"), "{shown}");
}

#[tokio::test]
async fn a_failing_formatter_is_reported_once_and_never_loses_the_edit() {
    let write = |name: &str| json!({"filePath": name, "content": "kept\n"});
    let script = Script::new()
        .tool("write", write("a.txt"))
        .tool("write", write("b.txt"))
        .tool("write", write("c.txt"))
        .text("Done.");
    let more = scripts(&[
        ("empties", ": > \"$1\""),
        ("removes", "rm \"$1\"; mkfifo \"$1\""),
        ("dies", "echo broken > \"$1\"; kill -9 $$"),
        ("complains", "echo formatted >> \"$1\"; echo 'still wrong' >&2; exit 1"),
        ("goes on", "echo last >> \"$1\""),
    ]);
    let desk = Desk::with(script, more).await;
    let session = desk.session().await;
    desk.prompt(&session, "go").await;
    for name in ["a.txt", "b.txt", "c.txt"] {
        assert_eq!(file(&desk, name), "kept\nformatted\nlast\n", "{name}");
    }
    for (_, state) in calls(&desk.transcript(&session).await) {
        assert!(matches!(state, ToolState::Completed { .. }), "{state:?}");
    }
    let warnings = desk.instance.warnings();
    let of = |name: &str| {
        let name = format!("formatter `{name}`");
        warnings.iter().filter(|warning| warning.starts_with(&name)).collect::<Vec<_>>()
    };
    assert_eq!(of("empties").len(), 1, "{warnings:?}");
    assert_eq!(of("removes").len(), 1, "{warnings:?}");
    assert_eq!(of("goes on").len(), 0, "{warnings:?}");
    assert_eq!(of("dies").len(), 1, "{warnings:?}");
    assert_eq!(of("complains").len(), 1, "{warnings:?}");
    assert!(
        of("complains")[0].contains("exit code 1") && of("complains")[0].ends_with(": still wrong"),
        "{warnings:?}"
    );
}

#[tokio::test]
async fn an_aborted_turn_ends_a_formatter_that_hangs_and_keeps_the_edit() {
    let script = Script::new().tool("write", json!({"filePath": "a.txt", "content": "kept\n"})).text("Done.");
    let more = scripts(&[("hangs", "echo half > \"$1\"; touch \"$1.started\"; sleep 600")]);
    let desk = Desk::with(script, more).await;
    let session = desk.session().await;
    desk.engine.sessions().prompt_async(&session.id, prompt("go")).await.unwrap();
    let started = desk.project.join("a.txt.started");
    let waiting = async {
        while !started.exists() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        desk.engine.sessions().abort(&session.id).await.unwrap();
        while file(&desk, "a.txt") != "kept\n" {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(crate::desk::DEADLINE, waiting).await.expect("the edit is there");
}

#[tokio::test]
async fn nothing_is_formatted_unless_it_is_configured() {
    for more in [json!({}), json!({"formatter": false})] {
        let script =
            Script::new().tool("write", json!({"filePath": "a.rs", "content": "fn  f(){}\n"})).text("Done.");
        let desk = Desk::with(script, more).await;
        assert_eq!(desk.instance.formatters_json(), json!([]));
        let session = desk.session().await;
        desk.prompt(&session, "go").await;
        assert_eq!(file(&desk, "a.rs"), "fn  f(){}\n");
    }
}
