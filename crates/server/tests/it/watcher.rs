//! Events about files that other programs change.

#![cfg(target_os = "linux")]

use std::time::Duration;

use codewright_testkit::{Project, Script};
use serde_json::{Value, json};

use crate::bench::{Bench, ask, quick};
use crate::events::Raw;

async fn bench(variables: &[(&str, &str)]) -> Bench {
    let ignore = |config: &mut Value| config["watcher"] = json!({"ignore": ["dist/**"]});
    Bench::in_environment(Project::git().unwrap(), Script::new(), ignore, variables).await
}

/// Writes a file until it is reported, and returns the reported changes with relative paths.
async fn changes_until(bench: &Bench, raw: &mut Raw, last: &str) -> Vec<String> {
    let own = format!("{}/", bench.project.directory().display());
    let mut changes = Vec::new();
    loop {
        let (_, notice) = raw.next_event().await;
        if notice["type"] == "file.watcher.updated" {
            let file = notice["properties"]["file"].as_str().unwrap();
            let file = file.strip_prefix(&own).unwrap();
            changes.push(format!("{} {file}", notice["properties"]["event"].as_str().unwrap()));
            if file == last {
                return changes;
            }
        }
    }
}

#[tokio::test]
async fn changes_by_other_programs_are_reported_while_a_client_follows_events() {
    let bench = bench(&[]).await;
    let router = bench.router(quick());
    bench.project.write(".gitignore", "ignored\n").unwrap();
    bench.project.write("dist/a", "1").unwrap();
    let mut raw = Raw::open(&router, "/event", None).await;
    // The directory is scanned in the background.
    tokio::time::sleep(Duration::from_millis(500)).await;
    for name in ["ignored", "dist/b", "node_modules/x/y", ".git/other", "src/new"] {
        bench.project.write(name, "1").unwrap();
    }
    let changes = changes_until(&bench, &mut raw, "src/new").await;
    assert!(
        changes.contains(&"add src".to_owned()) && changes.contains(&"add src/new".to_owned()),
        "{changes:?}"
    );
    for excluded in ["ignored", "dist", "node_modules", ".git/other"] {
        assert!(!changes.iter().any(|change| change.contains(excluded)), "{changes:?}");
    }
    bench.project.write("src/new", "2").unwrap();
    assert_eq!(changes_until(&bench, &mut raw, "src/new").await, ["change src/new"]);
    std::fs::remove_file(bench.project.path("src/new")).unwrap();
    assert_eq!(changes_until(&bench, &mut raw, "src/new").await, ["unlink src/new"]);
}

#[tokio::test]
async fn a_program_that_ends_with_its_turn_watches_files_only_on_request() {
    for (variables, expected) in
        [(&[][..], "tui.toast.show"), (&[("OPENCODE_EXPERIMENTAL_FILEWATCHER", "1")], "file.watcher.updated")]
    {
        let bench = bench(variables).await;
        bench.engine.events().watch_files_on_request();
        assert_eq!(first_event_after_a_change(&bench).await, expected, "{variables:?}");
    }
}

/// Changes a file, then asks for a toast, and returns which event comes first.
async fn first_event_after_a_change(bench: &Bench) -> Value {
    let router = bench.router(quick());
    let mut raw = Raw::open(&router, "/event", None).await;
    // The directory is scanned in the background.
    tokio::time::sleep(Duration::from_millis(500)).await;
    bench.project.write("new", "1").unwrap();
    tokio::time::sleep(Duration::from_millis(300)).await;
    let toast = r#"{"message": "end", "variant": "info"}"#;
    assert_eq!(ask(&router, "POST", "/tui/show-toast", toast).await.0, 200);
    raw.next_event().await.1["type"].clone()
}

#[tokio::test]
async fn files_are_not_watched_if_a_variable_disables_it() {
    for variables in [
        &[("OPENCODE_EXPERIMENTAL_DISABLE_FILEWATCHER", "1")][..],
        &[("OPENCODE_EXPERIMENTAL_FILEWATCHER", "1"), ("OPENCODE_EXPERIMENTAL_DISABLE_FILEWATCHER", "1")],
    ] {
        let bench = bench(variables).await;
        assert_eq!(first_event_after_a_change(&bench).await, "tui.toast.show", "{variables:?}");
    }
}
