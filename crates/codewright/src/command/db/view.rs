//! `db view`: writes the sessions where programs expect OpenCode's, for example `ccusage`.

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use codewright_config::{Dirs, Env};
use codewright_store::view;

use crate::output::{Output, exit_code};
use crate::style;

/// How often `--watch` looks for changes.
const INTERVAL: Duration = Duration::from_secs(5);
/// The file in OpenCode's data directory.
const NAME: &str = "opencode.db";

/// What to do with the view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Work {
    Once,
    Watch,
    Remove,
}

/// Writes or removes the view of a store's file.
pub(super) fn main(database: &Path, to: Option<&Path>, work: Work) -> anyhow::Result<ExitCode> {
    let target = match to {
        Some(to) => std::path::absolute(to)?,
        None => Dirs::new(&Env::from_process())?.opencode_data.join(NAME),
    };
    if work == Work::Remove {
        let removed = view::remove(&target).map_err(|error| explain(error, &target))?;
        let text = if removed { "Removed" } else { "There is no" };
        return say(&format!("{text} `{}`\n", target.display()));
    }
    let changes = view::Changes::of(database)?;
    let mut seen = changes.version()?;
    let count = view::write(database, &target).map_err(|error| explain(error, &target))?;
    if work == Work::Once {
        return say(&format!("{count} sessions are in `{}`\n", target.display()));
    }
    style::note(&format!("{count} sessions are in `{}`, which is kept current until ^C", target.display()));
    loop {
        // An interrupt ends the process; the file is always complete.
        std::thread::sleep(INTERVAL);
        let now = changes.version()?;
        if now != seen {
            view::write(database, &target).map_err(|error| explain(error, &target))?;
            seen = now;
        }
    }
}

fn say(text: &str) -> anyhow::Result<ExitCode> {
    let mut output = Output::new();
    let written = output.write(text);
    exit_code(written.and_then(|()| output.finish()))
}

/// Adds what the user can do if OpenCode's own database is there.
fn explain(error: codewright_store::Error, target: &Path) -> anyhow::Error {
    let advice = match &error {
        codewright_store::Error::Foreign { .. } => format!(
            "`{}` belongs to another program and stays unchanged\nuse --to DIR/{NAME}, and let the reader look there, for \
             example with OPENCODE_DATA_DIR=DIR",
            target.display()
        ),
        _ => return error.into(),
    };
    anyhow::anyhow!(advice)
}
