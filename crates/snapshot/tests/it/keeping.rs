//! The used disk space: the quota, and files that a killed process leaves.

use std::fs;
use std::io::{BufRead as _, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use codewright_snapshot::{Effect, Error, File, Quota, Respect, Snapshots, Step};
use tokio_util::sync::CancellationToken;

use crate::scene::Scene;

const QUOTA_BYTES: u64 = 4 * 1024 * 1024;
/// The number of times that a writing process is killed.
const KILLS: u64 = 12;

fn quota() -> Quota {
    Quota { total_bytes: QUOTA_BYTES, repository_bytes: QUOTA_BYTES, ..Quota::default() }
}

/// The disk space of a directory, in blocks for each file.
fn disk_use(path: &Path) -> u64 {
    let Ok(metadata) = fs::symlink_metadata(path) else { return 0 };
    if !metadata.is_dir() {
        return metadata.len().next_multiple_of(4096);
    }
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    4096 + entries.map(|entry| disk_use(&entry.path())).sum::<u64>()
}

fn unfinished(path: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(path).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.path().is_dir() {
            found.extend(unfinished(&entry.path()));
        } else if name.starts_with("tmp_") || name.ends_with(".lock") && name != "effects.lock" {
            found.push(name);
        }
    }
    found
}

/// Bytes that cannot be compressed and depend on the seed.
fn noise(seed: u64, bytes: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    (0..bytes).map(|_| next()).collect()
}

/// Writes files, takes snapshots and reports effects until it is killed.
#[tokio::test]
#[ignore = "another test runs it as the process that it kills"]
async fn a_writer() {
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line).unwrap();
    let mut options: Vec<_> = line.trim_end().split('\t').map(str::to_owned).collect();
    let seed: u64 = options.pop().unwrap().parse().unwrap();
    let root = Path::new(&options[0]);
    let mut options = codewright_snapshot::Options::new(&root.with_file_name("data"), "global", root, root);
    options.quota = quota();
    let snapshots = Snapshots::new(options);
    for round in 0.. {
        for file in 0..8 {
            fs::write(root.join(format!("f{file}")), noise(seed << 32 | round << 8 | file, 40_000)).unwrap();
        }
        snapshots.track(&CancellationToken::new()).await.unwrap();
        let mut step = Step::default();
        let before = Some(File::plain(noise(seed << 32 | round, 30_000)));
        let after = Some(File::plain(noise(seed << 32 | round | 1 << 31, 30_000)));
        snapshots.report(&mut step, Effect { path: "x".into(), before, after, made: 0 }).await.unwrap();
        snapshots.close(step).await.unwrap();
    }
}

#[tokio::test]
async fn the_quota_holds_whenever_the_process_is_killed() {
    let mut scene = Scene::plain();
    let store = scene.options().store;
    let mut most = 0;
    for kill in 0..KILLS {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--ignored", "--exact", "keeping::a_writer"]);
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        writeln!(child.stdin.take().unwrap(), "{}\t{kill}", scene.root.display()).unwrap();
        let end = Instant::now() + Duration::from_millis(300 + kill * 37);
        while Instant::now() < end {
            most = most.max(disk_use(&store));
            std::thread::sleep(Duration::from_millis(3));
        }
        assert!(child.try_wait().unwrap().is_none(), "the writer has failed");
        child.kill().unwrap();
        child.wait().unwrap();
        most = most.max(disk_use(&store));
    }
    assert!(most <= QUOTA_BYTES, "{most} bytes were used of {QUOTA_BYTES}");
    assert!(most > QUOTA_BYTES / 2, "{most} bytes do not try a quota of {QUOTA_BYTES}");
    // The next process recovers and removes everything that was abandoned.
    scene.snapshots = Snapshots::new({
        let mut options = scene.options();
        options.quota = quota();
        options
    });
    scene.track().await;
    scene.writes(&[("a.txt", Some("a"))]).await;
    assert_eq!(unfinished(&store), [""; 0]);
    assert_eq!(scene.travel(1, 0, Respect::Edits).await, [""; 0]);
}

#[tokio::test]
async fn a_dropped_step_is_reported_and_nothing_is_damaged() {
    let mut scene = Scene::plain();
    scene.put("a.txt", "a");
    scene.writes(&[("a.txt", Some("b"))]).await;
    fs::remove_dir_all(scene.shadow().join("effects/0001")).unwrap();
    let error = scene.snapshots.travel(&scene.steps, 1, 0, Respect::Nothing).await.unwrap_err();
    assert!(matches!(&error, Error::Gone { tree } if *tree == scene.steps[0].before), "{error}");
    assert_eq!(scene.text("a.txt").unwrap(), "b");
}

#[tokio::test]
async fn a_snapshot_that_is_too_large_for_the_quota_turns_snapshots_off_but_not_effects() {
    let mut scene = Scene::plain();
    let mut options = scene.options();
    options.quota = quota();
    scene.snapshots = Snapshots::new(options);
    for file in 0..6 {
        scene.put(format!("big{file}"), noise(file, 1024 * 1024));
    }
    let error = scene.snapshots.track(&CancellationToken::new()).await.unwrap_err();
    assert!(matches!(error, Error::Off { .. }), "{error}");
    assert!(error.to_string().contains("quota"), "{error}");
    assert!(disk_use(&scene.options().store) <= QUOTA_BYTES);
    scene.put("a.txt", "a");
    scene.writes(&[("a.txt", Some("b"))]).await;
    assert_eq!(scene.travel(1, 0, Respect::Edits).await, [""; 0]);
    assert_eq!(scene.text("a.txt").unwrap(), "a");
}

#[tokio::test]
async fn many_steps_stay_within_the_quota_and_the_last_ones_can_be_undone() {
    let mut scene = Scene::plain();
    let mut options = scene.options();
    options.quota = quota();
    scene.snapshots = Snapshots::new(options);
    for round in 0..60 {
        let text = noise(round, 100_000).iter().map(|byte| char::from(b'a' + byte % 26)).collect::<String>();
        scene.writes(&[("a.txt", Some(&text))]).await;
        assert!(disk_use(&scene.options().store) <= QUOTA_BYTES, "round {round}");
    }
    assert_eq!(scene.travel(60, 58, Respect::Edits).await, [""; 0]);
    let error = scene.snapshots.travel(&scene.steps, 58, 0, Respect::Edits).await.unwrap_err();
    assert!(matches!(error, Error::Gone { .. }), "{error}");
}

#[tokio::test]
async fn data_that_was_not_used_for_long_is_dropped() {
    let mut scene = Scene::plain();
    scene.put("a.txt", "a");
    scene.track().await;
    scene.writes(&[("a.txt", Some("b"))]).await;
    let old = scene.shadow();
    let long_ago =
        fs::metadata(old.join("used")).unwrap().modified().unwrap() - Duration::from_secs(8 * 86_400);
    for stamp in ["used", "tracked/0001/used", "effects/0001/used", "../../swept"] {
        fs::File::options().write(true).open(old.join(stamp)).unwrap().set_modified(long_ago).unwrap();
    }
    // The first write of another directory sweeps the store.
    let other = scene.root.with_file_name("other");
    fs::create_dir(&other).unwrap();
    let mut options =
        codewright_snapshot::Options::new(&scene.root.with_file_name("data"), "global", &other, &other);
    options.quota = Quota::default();
    let snapshots = Snapshots::new(options);
    let mut step = Step::default();
    let effect = Effect { path: "x".into(), before: None, after: Some(File::plain("x")), made: 0 };
    snapshots.report(&mut step, effect).await.unwrap();
    assert!(!old.exists(), "{old:?} still exists");
}

#[tokio::test]
async fn a_lock_and_a_damaged_index_of_a_killed_git_are_recovered() {
    let scene = Scene::plain();
    scene.put("a.txt", "a");
    let first = scene.track().await;
    fs::write(scene.shadow().join("index.lock"), "").unwrap();
    fs::write(scene.shadow().join("writing"), "").unwrap();
    fs::write(scene.shadow().join("tracked/0001/tmp_obj_abc"), "left").unwrap();
    scene.put("b.txt", "b");
    let second = scene.track().await;
    assert_ne!(first, second);
    assert_eq!(unfinished(&scene.shadow()), [""; 0]);
    for damage in ["", "DIRC", "garbage instead of an index"] {
        fs::write(scene.shadow().join("index"), damage).unwrap();
        assert_eq!(scene.track().await.tree, second.tree, "{damage:?}");
    }
    fs::remove_dir_all(scene.shadow().join("tracked")).unwrap();
    assert_eq!(scene.track().await.tree, second.tree);
    fs::write(scene.shadow().join("HEAD"), "nonsense").unwrap();
    assert_eq!(scene.track().await.tree, second.tree);
}

#[tokio::test]
async fn two_processes_at_once_are_safe() {
    let scene = Scene::plain();
    for file in 0..50 {
        scene.put(format!("d{}/f{file}", file % 7), file.to_string());
    }
    let one = Snapshots::new(scene.options());
    let two = Snapshots::new(scene.options());
    let cancel = CancellationToken::new();
    for round in 0..5 {
        scene.put("changing", round.to_string());
        let (a, b) = tokio::join!(one.track(&cancel), two.track(&cancel));
        assert_eq!(a.unwrap().tree, b.unwrap().tree);
    }
}

#[tokio::test]
async fn the_snapshot_after_a_cancelled_one_is_complete() {
    let scene = Scene::plain();
    for file in 0..200 {
        scene.put(format!("f{file}"), noise(file, 5000));
    }
    for wait in [0, 2, 5, 10, 20, 40] {
        let cancel = CancellationToken::new();
        let stop = async {
            tokio::time::sleep(Duration::from_millis(wait)).await;
            cancel.cancel();
        };
        let (result, ()) = tokio::join!(scene.snapshots.track(&cancel), stop);
        assert!(matches!(result, Ok(_) | Err(Error::Cancelled)), "{result:?}");
    }
    assert_eq!(scene.listed(&scene.track().await).len(), 200);
}
