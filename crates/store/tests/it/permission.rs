//! Saved approvals are stored, bounded, removed, and visible to every process.

use codewright_proto::ProjectId;
use codewright_store::{Approvals, MAX_APPROVALS, SavedPermission, Store};

use crate::support::*;

fn approval(id: &str, project: &str, directory: &str, resource: &str) -> SavedPermission {
    SavedPermission {
        id: id.to_owned(),
        project_id: ProjectId(project.into()),
        directory: directory.to_owned(),
        action: "bash".to_owned(),
        resource: resource.to_owned(),
        rules: "[\"bash *\"]".to_owned(),
        created_ms: 7,
    }
}

fn filter(project: &str, directory: &str) -> Approvals {
    Approvals { project: Some(ProjectId(project.into())), directory: Some(directory.to_owned()) }
}

async fn ids(store: &Store, filter: Approvals) -> Vec<String> {
    let saved = store.saved_permissions(filter).await.expect("readable");
    saved.into_iter().map(|one| one.id).collect()
}

#[tokio::test]
async fn approvals_are_separate_and_visible_to_other_processes() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("store.db");
    let (one, other) = (open(&path).await, open(&path).await);
    for id in ["p", "q"] {
        one.save_project(project(id)).await.expect("saved");
    }
    let first = approval("1", "p", "/a", "ls *");
    let all = vec![first.clone(), approval("2", "p", "/b", "ls *"), approval("3", "q", "/a", "ls *")];
    one.save_permissions(all).await.expect("saved");
    assert_eq!(other.saved_permissions(filter("p", "/a")).await.expect("readable"), [first]);
    assert_eq!(ids(&other, Approvals::default()).await, ["1", "2", "3"]);
    // Saving it twice gives one approval.
    one.save_permissions(vec![approval("4", "p", "/a", "ls *")]).await.expect("saved");
    assert_eq!(ids(&one, filter("p", "/a")).await, ["1"]);
    assert!(other.remove_permission("1").await.expect("removed"));
    assert!(!one.remove_permission("1").await.expect("nothing to remove"));
    assert_eq!(ids(&one, filter("p", "/a")).await, Vec::<String>::new());
    // Approvals are not projections of the log.
    one.replay().await.expect("replayed");
    assert_eq!(ids(&one, Approvals::default()).await, ["2", "3"]);
}

#[tokio::test]
async fn the_oldest_approvals_of_a_directory_are_removed() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = open(&directory.path().join("store.db")).await;
    store.save_project(project("p")).await.expect("saved");
    let many = (0..MAX_APPROVALS + 3).map(|n| SavedPermission {
        created_ms: n,
        ..approval(&format!("{n:05}"), "p", "/a", &format!("echo {n}"))
    });
    store.save_permissions(vec![approval("x", "p", "/b", "ls")]).await.expect("saved");
    store.save_permissions(many.collect()).await.expect("saved");
    let kept = ids(&store, filter("p", "/a")).await;
    assert_eq!(kept.len() as u64, MAX_APPROVALS);
    assert_eq!(kept[0], "00003");
    assert_eq!(ids(&store, filter("p", "/b")).await, ["x"]);
}

#[tokio::test]
async fn an_approval_of_an_unknown_project_changes_nothing() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = open(&directory.path().join("store.db")).await;
    store.save_project(project("p")).await.expect("saved");
    let both = vec![approval("1", "p", "/a", "ls"), approval("2", "unknown", "/a", "ls")];
    store.save_permissions(both).await.expect_err("refused");
    assert_eq!(ids(&store, Approvals::default()).await, Vec::<String>::new());
}
