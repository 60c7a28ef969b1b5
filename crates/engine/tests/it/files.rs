//! The file changes that steps record.

use std::time::Duration;

use codewright_proto::{FileDiff, Message, MessageWithParts, PartBody};
use codewright_scripted::{Script, Turn};
use serde_json::json;

use crate::desk::{DEADLINE, Desk, prompt, wait_for_delta};

/// Returns the names of the changed files of each step that changed any.
fn patches(desk: &Desk, transcript: &[MessageWithParts]) -> Vec<Vec<String>> {
    let parts = transcript.iter().flat_map(|message| &message.parts);
    let patches = parts.filter_map(|part| match &part.body {
        PartBody::Patch { hash, files, after } => {
            assert!(hash.len() == 40 && after.as_ref().is_some_and(|after| after != hash), "{part:?}");
            let root = format!("{}/", desk.project.display());
            Some(files.iter().map(|file| file.strip_prefix(&root).unwrap().to_owned()).collect())
        }
        _ => None,
    });
    patches.collect()
}

/// Returns the trees at the start and the end of steps.
fn trees(transcript: &[MessageWithParts]) -> Vec<(Option<String>, Option<String>)> {
    let mut trees = Vec::new();
    for message in transcript {
        let (mut first, mut last) = (None, None);
        for part in &message.parts {
            match &part.body {
                PartBody::StepStart { snapshot } => first.clone_from(snapshot),
                PartBody::StepFinish(finish) => last.clone_from(&finish.snapshot),
                _ => {}
            }
        }
        if matches!(message.info, Message::Assistant(_)) {
            trees.push((first, last));
        }
    }
    trees
}

fn summary(message: &MessageWithParts) -> Vec<FileDiff> {
    let Message::User(info) = &message.info else { panic!("no prompt") };
    info.summary.clone().expect("a summary").diffs
}

fn counts(diff: &FileDiff) -> (&str, u64, u64, &str) {
    (diff.file.as_deref().unwrap(), diff.additions, diff.deletions, diff.status.as_deref().unwrap())
}

#[tokio::test]
async fn an_edit_and_a_new_file_are_recorded_with_their_step() {
    let edit = json!({ "filePath": "a.txt", "oldString": "one", "newString": "two" });
    let script = Script::new()
        .tool("edit", edit)
        .tool("write", json!({ "filePath": "deep/er/b.txt", "content": "new\n" }))
        .tool("edit", json!({ "filePath": "a.txt", "oldString": "two", "newString": "three" }))
        .text("Done.");
    let desk = Desk::new(script).await;
    std::fs::write(desk.project.join("a.txt"), "one\n").unwrap();
    let session = desk.session().await;
    desk.prompt(&session, "go").await;
    let transcript = desk.transcript(&session).await;
    assert_eq!(patches(&desk, &transcript), [vec!["a.txt"], vec!["deep/er/b.txt"], vec!["a.txt"]]);
    let trees = trees(&transcript);
    assert_eq!(trees.len(), 4);
    for ((first, last), changes) in trees.iter().zip([true, true, true, false]) {
        let (first, last) = (first.as_ref().expect("a tree"), last.as_ref().expect("a tree"));
        assert_eq!(first != last, changes, "{trees:?}");
    }
    assert_eq!(trees[0].1, trees[1].0);
    let diffs = summary(&transcript[0]);
    let diffs: Vec<_> = diffs.iter().map(counts).collect();
    assert_eq!(diffs, [("a.txt", 1, 1, "modified"), ("deep/er/b.txt", 1, 0, "added")]);
    let total = desk.engine.sessions().get(&session.id).await.unwrap().summary.unwrap();
    assert_eq!((total.additions, total.deletions, total.files), (2, 1, 2));
    desk.assert_clean();
}

#[tokio::test]
async fn changes_by_commands_are_recorded_and_concurrent_changes_by_the_user_are_not() {
    let command = json!({ "command": "echo made > made.txt; rm gone.txt" });
    let thinking = Turn::text("Hm.").delay(Duration::from_millis(800)).tool("bash", command);
    let desk = Desk::new(Script::new().turn(thinking).text("Done.")).await;
    std::fs::write(desk.project.join("gone.txt"), "gone\n").unwrap();
    let session = desk.session().await;
    let mut feed = desk.engine.events().subscribe();
    desk.engine.sessions().prompt_async(&session.id, prompt("go")).await.unwrap();
    wait_for_delta(&mut feed).await;
    std::fs::write(desk.project.join("users.txt"), "mine\n").unwrap();
    let ended = async {
        while !desk.engine.sessions().statuses().is_empty() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(DEADLINE, ended).await.expect("the turn ends");
    let transcript = desk.transcript(&session).await;
    assert_eq!(patches(&desk, &transcript), [vec!["gone.txt", "made.txt"]]);
    let diffs = summary(&transcript[0]);
    let diffs: Vec<_> = diffs.iter().map(counts).collect();
    assert_eq!(diffs, [("gone.txt", 0, 1, "deleted"), ("made.txt", 1, 0, "added")]);
}

#[tokio::test]
async fn a_turn_without_changes_has_an_empty_summary_and_one_tree() {
    let desk = Desk::new(Script::new().text("Hello.")).await;
    let session = desk.session().await;
    desk.prompt(&session, "hi").await;
    let transcript = desk.transcript(&session).await;
    assert_eq!(summary(&transcript[0]), []);
    assert!(patches(&desk, &transcript).is_empty());
    let trees = trees(&transcript);
    assert!(trees[0].0.is_some() && trees[0].0 == trees[0].1, "{trees:?}");
}

#[tokio::test]
async fn snapshots_can_be_turned_off() {
    let script = Script::new()
        .tool("write", json!({ "filePath": "b.txt", "content": "new\n" }))
        .tool("bash", json!({ "command": "echo x > c.txt" }))
        .text("Done.");
    let desk = Desk::with(script, json!({ "snapshot": false })).await;
    let session = desk.session().await;
    desk.prompt(&session, "go").await;
    let transcript = desk.transcript(&session).await;
    assert!(patches(&desk, &transcript).is_empty());
    assert!(trees(&transcript).iter().all(|trees| *trees == (None, None)));
    assert!(desk.project.join("c.txt").exists());
}

#[tokio::test]
async fn a_turn_continues_if_snapshots_fail() {
    let script = Script::new()
        .tool("write", json!({ "filePath": "b.txt", "content": "new\n" }))
        .tool("bash", json!({ "command": "echo x > c.txt" }))
        .text("Done.");
    let desk = Desk::new(script).await;
    // Blocks the path of the snapshots' folder.
    let data = desk.home.join(".local/share/codewright");
    std::fs::write(data.join("snapshot"), "in the way").unwrap();
    let session = desk.session().await;
    desk.prompt(&session, "go").await;
    assert!(desk.project.join("c.txt").exists());
    let warnings = desk.instance.warnings();
    assert!(warnings.iter().any(|warning| warning.contains("no snapshot")), "{warnings:?}");
    desk.assert_clean();
}
