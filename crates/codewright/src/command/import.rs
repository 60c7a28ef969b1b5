//! `import`: imports a session from a file, standard input or a share, or all sessions of another program.

use std::io::{self, IsTerminal as _, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use codewright_config::{Dirs, Env};
use codewright_engine::{Engine, Imported, MAX_DOCUMENT_BYTES, Mode, Outcome, Summary};

use crate::clean::clean_line;
use crate::cli::{ImportArgs, Installation};
use crate::connection::{engine_error, open_engine, working_directory};
use crate::output::{Output, exit_code};
use crate::style;

/// How often progress is shown on a terminal.
const PROGRESS_EVERY: Duration = Duration::from_millis(200);
/// How often progress is printed elsewhere, a line each time.
const PROGRESS_LINE_EVERY: Duration = Duration::from_secs(5);
/// The number of skipped sessions that are listed.
const NAMED: usize = 50;
/// The number of notes that are listed.
const NOTES: usize = 50;

pub(crate) fn main(args: &ImportArgs) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let env = Env::from_process();
        let dirs = Dirs::new(&env)?;
        let engine = open_engine(env, &working_directory(None)?).await?;
        let done = match (&args.file, args.from) {
            (Some(file), _) => import_one(&engine, file).await,
            (None, Some(Installation::Opencode)) => import_all(&engine, args, &dirs).await,
            // clap rejects this.
            (None, None) => bail!("name a file, or an installation with --from"),
        };
        engine.close().await?;
        done
    })
}

async fn import_one(engine: &Engine, file: &str) -> anyhow::Result<ExitCode> {
    let imported = if file.starts_with("https://") || file.starts_with("http://") {
        engine.transfer().import_share(engine.default_directory(), file).await.map_err(engine_error)?
    } else {
        let (name, text) = read(file)?;
        engine
            .transfer()
            .import_session(engine.default_directory(), &name, text)
            .await
            .map_err(engine_error)?
    };
    let Imported { session, outcome, notes } = imported;
    match outcome {
        Outcome::Imported => {}
        Outcome::Updated => style::note("the session existed already; new messages were added"),
        Outcome::Unchanged => style::note("the session exists already and has not changed"),
        Outcome::Kept(reason) => bail!(
            "the session `{session}` was not imported: {reason}\n\
             run `codewright session delete {session}` to import it from scratch"
        ),
    }
    for note in notes {
        style::note(&note);
    }
    let mut output = Output::new();
    let written = output.write(&format!("Imported session: {session}\n"));
    exit_code(written.and_then(|()| output.finish()))
}

/// The text of a file or of standard input, and its name for error messages.
fn read(file: &str) -> anyhow::Result<(String, String)> {
    let limit = MAX_DOCUMENT_BYTES as u64;
    let mut bytes = Vec::new();
    let name = if file == "-" {
        io::stdin().lock().take(limit + 1).read_to_end(&mut bytes).context("cannot read standard input")?;
        "standard input".to_owned()
    } else {
        let opened = std::fs::File::open(file).with_context(|| match Path::new(file).exists() {
            true => format!("cannot read `{file}`"),
            false => format!("file not found: `{file}`"),
        })?;
        opened.take(limit + 1).read_to_end(&mut bytes).with_context(|| format!("cannot read `{file}`"))?;
        format!("`{file}`")
    };
    ensure!(bytes.len() as u64 <= limit, "{name} is larger than {limit} bytes, the maximum for a session");
    let text = String::from_utf8(bytes).map_err(|error| {
        anyhow::anyhow!(
            "{name} is not an exported session: invalid UTF-8 after byte {}",
            error.utf8_error().valid_up_to()
        )
    })?;
    Ok((name, text))
}

async fn import_all(engine: &Engine, args: &ImportArgs, dirs: &Dirs) -> anyhow::Result<ExitCode> {
    let database = database(args.data.as_deref(), dirs)?;
    let mode = if args.dry_run { Mode::DryRun } else { Mode::Write };
    let mut progress = Progress { shown: None, is_terminal: io::stderr().is_terminal() };
    let summary =
        engine.transfer().import_installation(&database, mode, |n, count| progress.update(n, count)).await;
    progress.end();
    let summary = summary.map_err(engine_error)?;
    let mut output = Output::new();
    let written = output.write(&summary_text(&summary, mode));
    exit_code(written.and_then(|()| output.finish()))
}

/// The database of another program: in its data directory, or the given file.
fn database(data: Option<&Path>, dirs: &Dirs) -> anyhow::Result<PathBuf> {
    let directory = data.unwrap_or(&dirs.opencode_data);
    if directory.is_file() {
        return Ok(directory.to_owned());
    }
    let database = directory.join("opencode.db");
    if database.is_file() {
        return Ok(database);
    }
    // Other release channels of OpenCode use other file names.
    let mut others: Vec<_> = std::fs::read_dir(directory)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with("opencode") && name.ends_with(".db")
        })
        .collect();
    others.sort();
    match others.len() {
        1 => Ok(others.remove(0)),
        0 => bail!(
            "there is no database `{}`\nuse --data DIR for the data directory of the other program",
            database.display()
        ),
        _ => {
            let names: Vec<_> = others.iter().map(|path| path.display().to_string()).collect();
            bail!("there are several databases: {}\nselect one with --data FILE", names.join(", "))
        }
    }
}

fn summary_text(summary: &Summary, mode: Mode) -> String {
    let Summary { imported, updated, unchanged, skipped, named, notes } = summary;
    let mut text = String::new();
    if mode == Mode::DryRun {
        text.push_str("Dry run, nothing was changed. The import would give:\n");
    }
    for (name, count) in
        [("imported", imported), ("updated", updated), ("unchanged", unchanged), ("skipped", skipped)]
    {
        text.push_str(&format!("{name:<10} {count}\n"));
    }
    let mut list = |title: &str, lines: Vec<String>, limit: usize, count: usize| {
        if lines.is_empty() {
            return;
        }
        text.push_str(&format!("\n{title}\n"));
        for line in lines.iter().take(limit) {
            text.push_str(&format!("  {}\n", clean_line(line)));
        }
        if count > limit {
            text.push_str(&format!("  … and {} more\n", count - limit));
        }
    };
    list("Skipped:", named.iter().map(|(id, why)| format!("{id}: {why}")).collect(), NAMED, *skipped);
    list("Notes:", notes.clone(), NOTES, notes.len());
    text
}

/// Shows the progress of a long import.
struct Progress {
    shown: Option<Instant>,
    is_terminal: bool,
}

impl Progress {
    fn update(&mut self, n: usize, count: usize) {
        let now = Instant::now();
        let every = if self.is_terminal { PROGRESS_EVERY } else { PROGRESS_LINE_EVERY };
        // The first update is delayed, so that a short import prints nothing.
        let last = *self.shown.get_or_insert(now);
        if now.duration_since(last) < every {
            return;
        }
        self.shown = Some(now);
        let text = format!("{n} of {count} sessions");
        let text = if self.is_terminal { format!("\r{text} ") } else { format!("{text}\n") };
        // If standard error is closed, there is no other way to report this.
        drop(io::stderr().write_all(text.as_bytes()));
    }

    fn end(&self) {
        if self.is_terminal {
            drop(io::stderr().write_all(b"\r\x1b[K"));
        }
    }
}
