//! Searches that end early.

use std::path::PathBuf;
use std::time::Duration;

use codewright_workspace::{Error, Glob, Globs, Grep, Judge, glob, grep, hold};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

const LONG: Duration = Duration::from_secs(30);

fn tree(files: usize) -> (TempDir, PathBuf) {
    let directory = TempDir::new().expect("a directory");
    let root = directory.path().canonicalize().expect("exists");
    for n in 0..files {
        let folder = root.join(format!("d{}", n % 20));
        std::fs::create_dir_all(&folder).expect("made");
        std::fs::write(folder.join(format!("f{n}.txt")), format!("number {n}\n")).expect("written");
    }
    (directory, root)
}

fn by_name(root: PathBuf, within: Duration) -> Glob {
    Glob {
        root: hold(&root).expect("held"),
        patterns: vec!["*.txt".to_owned()].into(),
        limit: 100,
        within,
        judge: Judge::none(),
    }
}

fn by_content(root: PathBuf, pattern: &str, within: Duration) -> Grep {
    Grep {
        root: hold(&root).expect("held"),
        pattern: pattern.to_owned(),
        include: Globs::default(),
        limit: 100,
        within,
        judge: Judge::none(),
    }
}

#[tokio::test]
async fn a_search_in_many_files_finds_the_match() {
    let (_keep, root) = tree(2000);
    let found = grep(by_content(root.clone(), "number 1999$", LONG), &CancellationToken::new()).await;
    let found = found.expect("searched");
    assert_eq!((found.count, found.files[0].0.clone()), (1, root.join("d19/f1999.txt")));
    assert!(!found.more && !found.late);
}

#[tokio::test]
async fn a_search_returns_its_results_at_the_time_limit() {
    let (_keep, root) = tree(50);
    let files =
        glob(by_name(root.clone(), Duration::ZERO), &CancellationToken::new()).await.expect("searched");
    assert!(files.late && files.paths.is_empty());
    let lines = grep(by_content(root, "number", Duration::ZERO), &CancellationToken::new()).await;
    assert!(lines.expect("searched").late);
}

#[tokio::test]
async fn a_cancelled_search_is_an_error() {
    let (_keep, root) = tree(50);
    let cancel = CancellationToken::new();
    cancel.cancel();
    assert!(matches!(glob(by_name(root.clone(), LONG), &cancel).await, Err(Error::Cancelled)));
    assert!(matches!(grep(by_content(root, "number", LONG), &cancel).await, Err(Error::Cancelled)));
}

#[tokio::test]
async fn a_line_without_end_does_not_fill_the_memory() {
    let (_keep, root) = tree(1);
    let file = std::fs::File::create(root.join("endless")).expect("made");
    file.set_len(200 * 1024 * 1024).expect("grown");
    let mut big = "x".repeat(20 * 1024 * 1024);
    big.push_str("number");
    std::fs::write(root.join("long"), big).expect("written");
    let found = grep(by_content(root, "number", LONG), &CancellationToken::new()).await.expect("searched");
    assert_eq!(found.count, 1);
}
