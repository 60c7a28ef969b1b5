//! Compares a snapshot with `git status` of the same directory.
//!
//! Both run in turn on an unchanged repository after a warm-up. The `measure` build of this program runs the
//! measurement. CPU time includes the children.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use codewright_snapshot::{Effect, File, Options, Snapshots, Step};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike as _;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use super::Plan;
use super::spread::Spread;

/// The name on the command line.
pub(super) const NAME: &str = "snapshot";
/// The hidden command of the measuring process.
pub(crate) const COMMAND: &str = "snapshot-part";

/// The number of files of the two directories.
const FILES: [usize; 2] = [20_000, 20];
/// The number of files in each subdirectory.
const FILES_EACH: usize = 25;
/// The limit of a snapshot's time divided by that of `git status`.
const RATIO_LIMIT: f64 = 1.2;

/// The runs of a row.
#[derive(Debug, Serialize, Deserialize)]
struct Row {
    name: String,
    files: usize,
    wall_ms: Vec<f64>,
    cpu_ms: Vec<f64>,
}

/// Builds and runs the measuring process and returns the lines of the report.
pub(super) fn measure(plan: &Plan) -> Result<String> {
    let program = super::build_measuring()?;
    let output = Command::new(program).args([COMMAND, &plan.runs.to_string()]).output()?;
    let stderr = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "the measuring program failed: {}", stderr.trim());
    let rows: Vec<Row> = serde_json::from_slice(&output.stdout)?;
    let mut text = format!("\n{NAME}: of a directory, compared with `git status`\n");
    let mut status_ms = None;
    for row in rows {
        let wall = Spread::of(row.wall_ms).context("a row without runs")?;
        let cpu = Spread::of(row.cpu_ms).context("a row without runs")?;
        let range = format!("({:.1} .. {:.1})", wall.least, wall.most);
        write!(
            text,
            "  {:<21} {:<12} {:>9.1} ms {range:<18} cpu {:>8.1} ms",
            row.name,
            format!("{} files", row.files),
            wall.median,
            cpu.median
        )?;
        match status_ms {
            _ if row.name == STATUS => status_ms = Some(wall.median),
            Some(status_ms) if row.name == UNCHANGED => {
                let ratio = wall.median / status_ms;
                // Starting processes dominates the time of a small directory.
                let is_limited = row.files == FILES[0];
                let mark = if ratio <= RATIO_LIMIT { "ok" } else { "OVER" };
                let mark = if is_limited { format!(" limit {RATIO_LIMIT} {mark}") } else { String::new() };
                write!(text, "  {ratio:.2} x status{mark}")?;
            }
            _ => {}
        }
        text.push('\n');
    }
    Ok(text)
}

const STATUS: &str = "git status";
const UNCHANGED: &str = "snapshot, unchanged";

/// Measures and prints the rows as JSON.
pub(crate) fn main(rest: &[String]) -> Result<()> {
    let runs: usize = rest.first().context("the number of runs is missing")?.parse()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let mut rows = Vec::new();
    for files in FILES {
        rows.extend(runtime.block_on(directory(files, runs))?);
    }
    Ok(serde_json::to_writer(std::io::stdout().lock(), &rows)?)
}

/// Measures the rows of a directory with `files` files.
async fn directory(files: usize, runs: usize) -> Result<Vec<Row>> {
    let folder = tempfile::tempdir()?;
    let root = folder.path().canonicalize()?.join("project");
    fill(&root, files)?;
    let options = Options::new(&folder.path().join("data"), "measured", &root, &root);
    let snapshots = Snapshots::new(options);
    let cancel = CancellationToken::new();
    let row = |name: &str| Row { name: name.to_owned(), files, wall_ms: Vec::new(), cpu_ms: Vec::new() };
    let (mut first, mut status, mut unchanged, mut changed, mut step) = (
        row("snapshot, first"),
        row(STATUS),
        row(UNCHANGED),
        row("snapshot, one changed"),
        row("step, one changed"),
    );
    let clock = Clock::start()?;
    snapshots.track(&cancel).await?;
    clock.stop(&mut first)?;
    // Git reads a file again if the index is as old as the file.
    std::thread::sleep(std::time::Duration::from_millis(1100));
    git(&root, &["status", "--porcelain"])?;
    snapshots.track(&cancel).await?;
    for _ in 0..runs {
        let clock = Clock::start()?;
        git(&root, &["status", "--porcelain"])?;
        clock.stop(&mut status)?;
        let clock = Clock::start()?;
        snapshots.track(&cancel).await?;
        clock.stop(&mut unchanged)?;
    }
    for run in 0..runs {
        fs::write(root.join("d0/f0"), format!("changed {run}"))?;
        let clock = Clock::start()?;
        snapshots.track(&cancel).await?;
        clock.stop(&mut changed)?;
        let clock = Clock::start()?;
        let mut effects = Step::default();
        let file = |text: &str| Some(File::plain(format!("{text} {run}")));
        let effect = Effect { path: PathBuf::from("d0/f1"), before: file("a"), after: file("b"), made: 0 };
        snapshots.report(&mut effects, effect).await?;
        ensure!(snapshots.close(effects).await?.is_some(), "a step was lost");
        clock.stop(&mut step)?;
    }
    Ok(vec![first, status, unchanged, changed, step])
}

fn fill(root: &Path, files: usize) -> Result<()> {
    for number in 0..files {
        let directory = root.join(format!("d{}", number / FILES_EACH));
        fs::create_dir_all(&directory)?;
        fs::write(
            directory.join(format!("f{}", number % FILES_EACH)),
            format!("file {number}\n").repeat(40),
        )?;
    }
    git(root, &["init", "-q"])?;
    git(root, &["add", "."])?;
    // No garbage collection while measuring.
    git(root, &["config", "gc.auto", "0"])?;
    git(root, &["-c", "user.name=u", "-c", "user.email=u@example.com", "commit", "-q", "-m", "x"])
}

fn git(root: &Path, args: &[&str]) -> Result<()> {
    let mut command = Command::new("git");
    command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
    let output = command.args(args).current_dir(root).output()?;
    ensure!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}

/// A clock of wall and CPU time.
struct Clock {
    begun: Instant,
    cpu_us: i64,
}

impl Clock {
    fn start() -> Result<Self> {
        Ok(Self { cpu_us: cpu_us()?, begun: Instant::now() })
    }

    fn stop(self, row: &mut Row) -> Result<()> {
        row.wall_ms.push(self.begun.elapsed().as_secs_f64() * 1e3);
        row.cpu_ms.push((cpu_us()? - self.cpu_us) as f64 / 1e3);
        Ok(())
    }
}

/// Returns the CPU time of this process and of all children that it waited for.
fn cpu_us() -> Result<i64> {
    let mut sum = 0;
    for who in [UsageWho::RUSAGE_SELF, UsageWho::RUSAGE_CHILDREN] {
        let usage = getrusage(who)?;
        sum += usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
    }
    Ok(sum)
}
