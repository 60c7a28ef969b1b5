//! Tests of the changes viewer.

use super::*;
use crate::review::{Change, Review, Source};

const PATCH: &str = "--- a/src/add.rs\n+++ b/src/add.rs\n@@ -1,4 +1,4 @@\n /// Adds.\n fn add(a: i32, b: i32) -> i32 {\n-    a - b\n+    a + b // 漢字\n }\n@@ -40,2 +40,3 @@\n fn main() {\n+    println!(\"{}\", add(1, 2));\n }\n";

fn change(file: &str, patch: &str, status: char) -> Change {
    let count = |mark: char| patch.lines().filter(|line| line.starts_with(mark)).count() as u64;
    let (additions, deletions) = (count('+').saturating_sub(1), count('-').saturating_sub(1));
    Change { file: file.to_owned(), patch: patch.to_owned(), additions, deletions, status }
}

fn changes() -> Vec<Change> {
    let new = "--- /dev/null\n+++ b/x\n@@ -0,0 +1,2 @@\n+[package]\n+name = \"x\"\n";
    vec![
        change("README.md", "--- a/README.md\n+++ b/README.md\n@@ -1 +1 @@\n-old\u{1b}[2J\n+new\n", 'M'),
        change("src/add.rs", PATCH, 'M'),
        change("crates/x/Cargo.toml", new, 'A'),
        change("crates/x/picture.png", "", 'A'),
    ]
}

fn opened(width: u16, height: u16) -> Stage {
    let mut stage = Stage::in_session(width, height);
    stage.write("/diff");
    stage.press(KeyCode::Enter);
    assert_eq!(stage.take_cmds(), [Cmd::LoadChanges(Source::WorkingTree)]);
    stage.shows("loading…");
    stage.reply(Reply::Changes { source: Source::WorkingTree, changes: Ok(changes()) });
    stage
}

fn review(stage: &Stage) -> &Review {
    match stage.state.layers.last() {
        Some(crate::layer::Layer::Review(review)) => review,
        other => panic!("{other:?}"),
    }
}

#[test]
fn changes_fill_a_wide_screen_side_by_side() {
    let mut stage = opened(140, 30);
    stage.check("diff-wide");
    stage.press(KeyCode::Tab);
    stage.press(KeyCode::Up);
    stage.press(KeyCode::Enter);
    stage.check("diff-folded");
}

#[test]
fn changes_are_unified_on_a_narrow_screen() {
    let mut stage = opened(60, 24);
    stage.check("diff-narrow");
    stage.press(KeyCode::Tab);
    stage.check("diff-narrow-tree");
    // A file that is selected in the tree is displayed.
    stage.press(KeyCode::End);
    stage.press(KeyCode::Enter);
    stage.shows("README.md");
    stage.shows("new");
    stage.hides("[2J");
}

#[test]
fn keys_move_between_files_and_hunks() {
    let mut stage = opened(100, 20);
    let file = |stage: &Stage| review(stage).file().map(|file| file.file.clone()).unwrap();
    assert_eq!(file(&stage), "crates/x/Cargo.toml");
    stage.write("nn");
    assert_eq!(file(&stage), "src/add.rs");
    stage.write("]]]");
    assert_eq!(file(&stage), "README.md");
    stage.write("[");
    assert_eq!(file(&stage), "src/add.rs");
    stage.hides("a - b");
    stage.write("m");
    stage.shows("1 reviewed");
    stage.write("?");
    stage.shows("half a page");
    stage.press(KeyCode::Esc);
    // Reviewed files are known when the viewer is opened again.
    stage.press(KeyCode::Esc);
    assert!(stage.state.layers.is_empty());
    stage.write("/diff");
    stage.press(KeyCode::Enter);
    stage.reply(Reply::Changes { source: Source::WorkingTree, changes: Ok(changes()) });
    stage.shows("1 reviewed");
}

#[test]
fn the_sources_are_the_tree_the_branch_the_session_and_the_last_turn() {
    let mut stage = opened(100, 20);
    let mut first = user(1);
    first["summary"] = json!({"diffs": [{"file": "a.rs", "patch": "@@ -1 +1 @@\n-x\n+first turn\n", "additions": 1, "deletions": 1, "status": "modified"}]});
    stage.message(first);
    let mut last = user(2);
    last["summary"] = json!({"diffs": [{"file": "a.rs", "patch": "@@ -1 +1 @@\n-x\n+second turn\n", "additions": 1, "deletions": 1, "status": "modified"}]});
    stage.message(last);
    stage.write("d");
    assert_eq!(stage.take_cmds(), [Cmd::LoadChanges(Source::Branch)]);
    stage
        .reply(Reply::Changes { source: Source::Branch, changes: Err("no branch \u{1b}[1mhere".to_owned()) });
    stage.shows("cannot read the changes: no branch here");
    stage.write("d");
    stage.shows("this session");
    stage.shows("first turn");
    stage.shows("second turn");
    stage.write("d");
    stage.hides("first turn");
    stage.shows("second turn");
    stage.write("d");
    assert_eq!(stage.take_cmds(), [Cmd::LoadChanges(Source::WorkingTree)]);
    // A late answer for another source is ignored.
    stage.reply(Reply::Changes { source: Source::Branch, changes: Ok(changes()) });
    stage.shows("loading…");
    stage.reply(Reply::Changes { source: Source::WorkingTree, changes: Ok(Vec::new()) });
    stage.shows("no changes");
}

#[test]
fn the_diff_of_a_permission_request_fills_the_screen() {
    let mut stage = Stage::in_session(120, 24);
    stage.event(
        "permission.asked",
        json!({
            "id": "per_000000000001aaaaaaaaaaaaaa", "sessionID": SESSION, "permission": "edit",
            "patterns": ["src/add.rs"], "always": ["*"],
            "metadata": {"filepath": "/home/me/project/src/add.rs", "diff": PATCH},
        }),
    );
    stage.control('f');
    stage.shows("Diff permission request");
    stage.shows("a + b // 漢字");
    stage.control('f');
    stage.shows("Permission required");
    // The viewer closes with the request.
    stage.control('f');
    stage.event(
        "permission.replied",
        json!({"sessionID": SESSION, "requestID": "per_000000000001aaaaaaaaaaaaaa", "reply": "once"}),
    );
    assert!(stage.state.layers.is_empty());
}

#[test]
fn the_cost_of_a_frame_does_not_depend_on_the_size_of_the_changes() {
    let mut patch = String::from("@@ -1,1 +1,1 @@\n");
    for line in 0..300_000 {
        patch.push_str(&format!("+let line = {line};\n"));
    }
    let mut stage = opened(140, 40);
    stage.reply(Reply::Changes {
        source: Source::WorkingTree,
        changes: Ok(vec![change("big.rs", &patch, 'A')]),
    });
    stage.press(KeyCode::End);
    stage.shows("let line = 299999;");
    let start = std::time::Instant::now();
    for _ in 0..200 {
        stage.press(KeyCode::Up);
        stage.screen();
    }
    // A walk over all lines for each frame would take minutes.
    assert!(start.elapsed() < std::time::Duration::from_secs(30), "{:?}", start.elapsed());
}

#[test]
fn changes_can_be_drawn_at_every_size() {
    for (width, height) in [(20, 6), (21, 7), (79, 10), (80, 10), (130, 12), (300, 90)] {
        let mut stage = opened(width, height);
        for key in ['n', ']', '[', 'v', 't', '?', 'q', 'G', 'g', 'j', 'k'] {
            if stage.state.layers.is_empty() {
                stage = opened(width, height);
            }
            stage.press(KeyCode::Char(key));
            stage.screen();
            stage.press(KeyCode::Tab);
            stage.screen();
        }
    }
}
