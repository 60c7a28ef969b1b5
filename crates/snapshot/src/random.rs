//! Tests with random histories of an agent, a user and git, compared with an oracle that only knows the order
//! of all writes.
//!
//! The oracle undoes one step after another and checks the file each time; the planner decides about the
//! whole way at once. They must agree about every file, and about the ones that are kept.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tokio_util::sync::CancellationToken;

use crate::plan::{Change, Disk, Respect, Verdict, goals, judge};
use crate::{Content, Effect, File, Options, Snapshots, Step, StepChange};

/// The number of histories in the short test: in memory, and on the disk.
const SHORT: (u64, u64) = (4_000, 12);
const LONG: (u64, u64) = (100_000, 300);
/// The number of events in one history.
const EVENTS: usize = 24;
const FILES: [&str; 6] = ["a.txt", "b", "d/x", "d/y", "e/f/z", "e/g"];

/// The text of each existing file.
type Files = BTreeMap<&'static str, String>;

/// The author of a write.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Author {
    Agent,
    User,
}

/// A repeatable random generator.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % sides as u64) as usize
    }

    /// A new text, sometimes an earlier one, or none.
    fn text(&mut self) -> Option<String> {
        match self.roll(8) {
            0 | 1 => None,
            2 | 3 => Some(format!("common {}", self.roll(3))),
            _ => Some(format!("text {}", self.roll(usize::MAX))),
        }
    }

    fn file(&mut self) -> &'static str {
        FILES[self.roll(FILES.len())]
    }
}

/// The author of a write, the file, and its content before and after.
type Written = (Author, &'static str, Option<String>, Option<String>);

/// Every write during steps, in order.
#[derive(Default)]
struct Oracle {
    steps: Vec<Vec<Written>>,
}

impl Oracle {
    /// The effect of a step on a file: its last writes without an interruption by others.
    fn effect(&self, step: usize, file: &str) -> Option<(Option<String>, Option<String>)> {
        let mut effect = None;
        let mut interrupted = false;
        for (author, name, before, after) in &self.steps[step] {
            if *name != file || before == after {
                continue;
            }
            match author {
                Author::User => interrupted = true,
                Author::Agent => {
                    let first = match effect.take() {
                        // An author who restores the previous content has changed nothing.
                        Some((first, last)) if !interrupted || last == *before => first,
                        _ => before.clone(),
                    };
                    effect = Some((first, after.clone()));
                    interrupted = false;
                }
            }
        }
        effect.filter(|(before, after)| before != after)
    }

    /// The files after undo or redo, and the ones that are kept.
    fn travel(&self, files: &Files, from: usize, to: usize) -> (Files, BTreeSet<&'static str>) {
        let (mut result, mut kept) = (files.clone(), BTreeSet::new());
        let order: Vec<usize> = if to < from { (to..from).rev().collect() } else { (from..to).collect() };
        for file in FILES {
            let start = files.get(file).cloned();
            let mut now = start.clone();
            let (mut conflict, mut end) = (false, None);
            for step in &order {
                let Some((before, after)) = self.effect(*step, file) else { continue };
                let (expect, target) = if to < from { (after, before) } else { (before, after) };
                conflict |= now != expect;
                now.clone_from(&target);
                end = Some(target);
            }
            let Some(end) = end else { continue };
            if start == end {
                continue;
            }
            if conflict {
                kept.insert(file);
            } else {
                set(&mut result, file, end);
            }
        }
        (result, kept)
    }
}

fn set(files: &mut Files, file: &'static str, text: Option<String>) {
    match text {
        Some(text) => drop(files.insert(file, text)),
        None => drop(files.remove(file)),
    }
}

fn content(text: Option<&String>) -> Option<Content> {
    text.map(|text| File::plain(text.as_bytes()).content())
}

/// A history in memory, with the planner.
#[derive(Default)]
struct Model {
    files: Files,
    oracle: Oracle,
    steps: Vec<Vec<Change>>,
    position: usize,
    saved: Files,
    stash: Option<Files>,
}

impl Model {
    fn write(&mut self, file: &'static str, text: Option<String>) -> (Option<Content>, Option<Content>) {
        let before = content(self.files.get(file));
        set(&mut self.files, file, text);
        (before, content(self.files.get(file)))
    }

    fn noted(&mut self, author: Author, file: &'static str, text: Option<String>, step: Option<&mut Step>) {
        let old = self.files.get(file).cloned();
        let (before, after) = self.write(file, text.clone());
        if let Some(log) = self.oracle.steps.last_mut() {
            log.push((author, file, old, text));
        }
        if let Some(step) = step {
            step.add(file.into(), before, after, 0);
        }
    }

    fn agent(&mut self, dice: &mut Dice) {
        // A new step discards the steps that were undone.
        self.steps.truncate(self.position);
        self.oracle.steps.truncate(self.position);
        self.oracle.steps.push(Vec::new());
        let mut step = Step::default();
        for _ in 0..=dice.roll(5) {
            let (file, text) = (dice.file(), dice.text());
            if dice.roll(4) == 0 {
                self.noted(Author::User, file, text, None);
            } else {
                self.noted(Author::Agent, file, text, Some(&mut step));
            }
        }
        let change = |path: PathBuf| {
            let (before, after) = step.changes[&path];
            Change { path, before, after, made: 0 }
        };
        let changes: Vec<_> = step.files().into_iter().map(change).collect();
        if changes.is_empty() {
            self.oracle.steps.pop();
        } else {
            self.steps.push(changes);
            self.position += 1;
        }
    }

    /// Git restores all files or changes none.
    fn git(&mut self, dice: &mut Dice) {
        match dice.roll(4) {
            0 => self.saved = self.files.clone(),
            1 => self.files = self.saved.clone(),
            2 => {
                self.stash = Some(self.files.clone());
                self.files = self.saved.clone();
            }
            _ => self.files = self.stash.take().unwrap_or_else(|| self.files.clone()),
        }
    }

    fn travel(&mut self, to: usize) -> Result<(), String> {
        let (expected, kept) = self.oracle.travel(&self.files, self.position, to);
        let goals = goals(&self.steps, self.position, to);
        let mut named = BTreeSet::new();
        for goal in goals {
            let file = FILES.into_iter().find(|file| Path::new(file) == goal.path).unwrap();
            let disk = content(self.files.get(file)).map_or(Disk::Missing, Disk::Holds);
            match judge(&goal, &disk, Respect::Edits) {
                Verdict::Reached => {}
                Verdict::Keep(_) => drop(named.insert(file)),
                Verdict::Write => {
                    let text = self.known(goal.target);
                    set(&mut self.files, file, text);
                }
            }
        }
        self.position = to;
        if (&self.files, &named) != (&expected, &kept) {
            return Err(format!("{:?} {named:?}\ninstead of {expected:?} {kept:?}", self.files));
        }
        Ok(())
    }

    /// The text with this content, if it was ever written.
    fn known(&self, wanted: Option<Content>) -> Option<String> {
        let wanted = wanted?;
        let mut all = self.oracle.steps.iter().flatten().flat_map(|(_, _, before, after)| [before, after]);
        all.find_map(|text| text.clone().filter(|text| content(Some(text)) == Some(wanted)))
    }
}

fn in_memory(seed: u64) -> Result<(), String> {
    let mut dice = Dice(seed);
    let mut model = Model::default();
    for event in 0..EVENTS {
        match dice.roll(10) {
            0..=3 => model.agent(&mut dice),
            4 | 5 => drop(model.write(dice.file(), dice.text())),
            6 => model.git(&mut dice),
            _ => {
                let to = dice.roll(model.steps.len() + 1);
                let (start, from) = (model.files.clone(), model.position);
                let told = |error| format!("seed {seed}, event {event}, {from} to {to}: {error}");
                let (_, kept) = model.oracle.travel(&start, from, to);
                model.travel(to).map_err(told)?;
                if dice.roll(3) == 0 && kept.is_empty() {
                    model.travel(from).map_err(told)?;
                    if !is_reached_by_chance(&model, &start, from, to) && model.files != start {
                        return Err(told(format!("and back: {:?} instead of {start:?}", model.files)));
                    }
                }
            }
        }
    }
    Ok(())
}

/// Whether a file already had its target by chance, so that undo does more than reverse the steps.
fn is_reached_by_chance(model: &Model, start: &Files, from: usize, to: usize) -> bool {
    goals(&model.steps, from, to).iter().any(|goal| {
        let file = FILES.into_iter().find(|file| Path::new(file) == goal.path).unwrap();
        content(start.get(file)) != goal.expect
    })
}

#[test]
fn random_histories_are_undone_like_the_oracle() {
    for seed in 0..SHORT.0 {
        in_memory(seed).unwrap();
    }
}

#[test]
#[ignore = "takes a minute; `cargo xtask bench --only undo` runs it"]
fn many_random_histories_are_undone_like_the_oracle() {
    for seed in 0..LONG.0 {
        in_memory(seed).unwrap();
    }
    println!("{} histories in memory, 0 differences", LONG.0);
}

/// A history in a real directory with a real repository.
struct Real {
    root: PathBuf,
    snapshots: Snapshots,
    oracle: Oracle,
    steps: Vec<StepChange>,
    position: usize,
    _folder: tempfile::TempDir,
}

impl Real {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap().join("project");
        fs::create_dir(&root).unwrap();
        let snapshots = Snapshots::new(Options::new(&folder.path().join("data"), "global", &root, &root));
        let real = Self {
            root,
            snapshots,
            oracle: Oracle::default(),
            steps: Vec::new(),
            position: 0,
            _folder: folder,
        };
        real.git(&["init", "-q", "-b", "main"]);
        real.put("a.txt", Some("first".to_owned()));
        real.git(&["add", "-A"]);
        real.git(&["commit", "-q", "-m", "first"]);
        real
    }

    /// Runs the user's git. Returns whether it succeeded; it may have nothing to do.
    fn git(&self, args: &[&str]) -> bool {
        let mut git = Command::new("git");
        git.args(["-c", "user.name=u", "-c", "user.email=u@example.com", "-c", "commit.gpgsign=false"]);
        git.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
        git.args(args).current_dir(&self.root).output().unwrap().status.success()
    }

    fn put(&self, file: &str, text: Option<String>) {
        let path = self.root.join(file);
        match text {
            Some(text) => {
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text).unwrap();
            }
            None => fs::remove_file(path).unwrap_or_default(),
        }
    }

    fn files(&self) -> Files {
        let read = |file: &'static str| Some((file, fs::read_to_string(self.root.join(file)).ok()?));
        FILES.into_iter().filter_map(read).collect()
    }

    /// Runs a change and records the author and the changed files.
    fn noted(&mut self, author: Author, work: impl FnOnce(&Self)) {
        let before = self.files();
        work(self);
        let after = self.files();
        for file in FILES {
            let (old, new) = (before.get(file).cloned(), after.get(file).cloned());
            if old != new
                && let Some(log) = self.oracle.steps.last_mut()
            {
                log.push((author, file, old, new));
            }
        }
    }

    async fn agent(&mut self, dice: &mut Dice) {
        self.steps.truncate(self.position);
        self.oracle.steps.truncate(self.position);
        self.oracle.steps.push(Vec::new());
        let mut step = Step::default();
        for _ in 0..=dice.roll(2) {
            let (file, text) = (dice.file(), dice.text());
            match dice.roll(4) {
                0 => self.noted(Author::User, |real| real.put(file, text)),
                1 => {
                    let cancel = CancellationToken::new();
                    let before = self.snapshots.track(&cancel).await.unwrap();
                    let (other, more) = (dice.file(), dice.text());
                    self.noted(Author::Agent, |real| {
                        real.put(file, text);
                        real.put(other, more);
                    });
                    let after = self.snapshots.track(&cancel).await.unwrap();
                    self.snapshots.report_difference(&mut step, &before, &after).await.unwrap();
                }
                _ => {
                    let before = self.snapshots.look(Path::new(file)).await.unwrap();
                    self.noted(Author::Agent, |real| real.put(file, text));
                    let after = self.snapshots.look(Path::new(file)).await.unwrap();
                    let effect = Effect {
                        path: file.into(),
                        before: before.file,
                        after: after.file,
                        made: before.missing,
                    };
                    self.snapshots.report(&mut step, effect).await.unwrap();
                }
            }
        }
        match self.snapshots.close(step).await.unwrap() {
            None => drop(self.oracle.steps.pop()),
            Some(change) => {
                self.steps.push(change);
                self.position += 1;
            }
        }
    }

    fn user(&mut self, dice: &mut Dice) {
        match dice.roll(7) {
            0 => {
                self.git(&["add", "-A"]);
                self.git(&["commit", "-q", "-m", "x"]);
            }
            1 => drop(self.git(&["reset", "-q", "--hard"])),
            2 => drop(self.git(&["stash", "-q", "-u"])),
            3 => drop(self.git(&["stash", "pop", "-q"])),
            4 => drop(self.git(&["checkout", "-q", "HEAD~1", "--", "."])),
            _ => self.put(dice.file(), dice.text()),
        }
    }

    async fn travel(&mut self, to: usize) {
        let (expected, kept) = self.oracle.travel(&self.files(), self.position, to);
        let outcome = self.snapshots.travel(&self.steps, self.position, to, Respect::Edits).await.unwrap();
        let named: BTreeSet<_> = outcome.kept.iter().map(|(path, _)| path.as_path()).collect();
        assert_eq!(outcome.failed, []);
        assert_eq!(self.files(), expected);
        assert_eq!(named, kept.iter().map(Path::new).collect());
        self.position = to;
    }
}

async fn on_disk(seed: u64) {
    let mut dice = Dice(seed);
    let mut real = Real::new();
    for _ in 0..EVENTS / 2 {
        match dice.roll(8) {
            0..=2 => real.agent(&mut dice).await,
            3 | 4 => real.user(&mut dice),
            _ => real.travel(dice.roll(real.steps.len() + 1)).await,
        }
    }
    // Git and we have not interfered with each other.
    assert!(real.git(&["status"]) && real.git(&["fsck", "--strict"]), "seed {seed}");
}

#[tokio::test]
async fn random_histories_on_the_disk_are_undone_like_the_oracle() {
    for seed in 0..SHORT.1 {
        on_disk(seed).await;
    }
}

#[tokio::test]
#[ignore = "takes minutes; `cargo xtask bench --only undo` runs it"]
async fn many_random_histories_on_the_disk_are_undone_like_the_oracle() {
    for seed in 0..LONG.1 {
        on_disk(seed).await;
    }
    println!("{} histories on the disk, 0 differences", LONG.1);
}
