//! `uninstall`: deletes the files that the program created.
//!
//! Only known names in the program's own directories are deleted. Everything else stays and is listed: files with other
//! names, links, files of other users, other file systems, worktrees, and the configuration, which a user may have
//! written. The program itself belongs to the package manager that installed it.

mod remove;
mod scan;

use std::fs::{File, TryLockError};
use std::io::{IsTerminal as _, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use codewright_config::{Dirs, Env};

use super::upgrade;
use crate::clean::clean_line;
use crate::cli::UninstallArgs;
use crate::output::Output;
use crate::style;
use scan::{Plan, Target};

/// The longest answer that is read.
const ANSWER_LIMIT_BYTES: u64 = 64;

pub(crate) fn main(args: &UninstallArgs) -> anyhow::Result<ExitCode> {
    let dirs = Dirs::new(&Env::from_process())?;
    let plan = scan::plan(&dirs, args.keep_data);
    let program = program();
    show(&plan, &program)?;
    if plan.targets.is_empty() && program.is_empty() || args.dry_run {
        style::note(if args.dry_run {
            "Dry run: nothing was deleted."
        } else {
            "There is nothing to delete."
        });
        return Ok(ExitCode::SUCCESS);
    }
    if !args.force && !confirmed()? {
        style::note("Nothing was deleted.");
        return Ok(ExitCode::FAILURE);
    }
    // Held until the end, so that no process opens the database that is being deleted.
    let _alone = lock(&dirs.data)?;
    let failures = remove::all(&plan);
    for failure in &failures {
        style::warning(failure);
    }
    if !failures.is_empty() {
        bail!("{} of {} entries could not be deleted", failures.len(), plan.targets.len());
    }
    for path in program {
        std::fs::remove_file(&path).with_context(|| format!("cannot delete {}", path.display()))?;
    }
    style::note("Deleted.");
    Ok(ExitCode::SUCCESS)
}

/// Prints the files to delete and the files to keep.
fn show(plan: &Plan, installed: &[PathBuf]) -> anyhow::Result<()> {
    let mut text = String::new();
    if !plan.targets.is_empty() {
        text.push_str("These files were created by the program and will be deleted:\n");
        text.extend(plan.targets.iter().map(line));
    }
    if !plan.kept.is_empty() {
        text.push_str("These are kept:\n");
        let kept = plan.kept.iter();
        text.extend(kept.map(|(path, why)| format!("  {} ({why})\n", shown(path))));
    }
    if installed.is_empty() {
        let program = std::env::current_exe().ok();
        let program = program.as_deref().map_or_else(|| "the program".to_owned(), shown);
        text.push_str(&format!("To delete {program}, use the package manager that installed it.\n"));
    } else {
        text.push_str("The install script installed these files, which will be deleted, too:\n");
        text.extend(installed.iter().map(|path| format!("  {}\n", shown(path))));
    }
    let mut output = Output::new();
    output.write(&text).and_then(|()| output.finish()).context("cannot write to standard output")
}

/// The files of the install script: the program, the one before the last upgrade, and the receipt. Empty if another tool
/// installed the program.
fn program() -> Vec<PathBuf> {
    let program = std::env::current_exe().and_then(|path| path.canonicalize());
    let Ok(program) = program else { return Vec::new() };
    match upgrade::of_program(&program) {
        Ok(Some(_)) => upgrade::files(&program),
        Ok(None) => Vec::new(),
        Err(error) => {
            style::warning(&error.to_string());
            Vec::new()
        }
    }
}

fn line(target: &Target) -> String {
    format!("  {} ({})\n", shown(&target.path), size(target.bytes))
}

fn shown(path: &Path) -> String {
    clean_line(&path.display().to_string())
}

/// A number of bytes with its unit.
fn size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KB", "MB", "GB", "TB"];
    let (mut value, mut unit) = (bytes as f64, "B");
    for larger in UNITS {
        if value < 1024.0 {
            break;
        }
        (value, unit) = (value / 1024.0, larger);
    }
    if unit == "B" { format!("{bytes} B") } else { format!("{value:.1} {unit}") }
}

/// Reads the user's decision from the terminal.
fn confirmed() -> anyhow::Result<bool> {
    if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        bail!("nothing was deleted: confirm with --force, or run the command on a terminal");
    }
    let mut stderr = std::io::stderr();
    write!(stderr, "Delete these files? Only \"yes\" deletes them: ")?;
    stderr.flush()?;
    let mut answer = [0; ANSWER_LIMIT_BYTES as usize];
    let count = std::io::stdin().read(&mut answer).context("cannot read the answer")?;
    Ok(answer.get(..count).unwrap_or_default().trim_ascii().eq_ignore_ascii_case(b"yes"))
}

/// Takes the lock that every process with an open database shares. `None` if there is no database.
///
/// # Errors
///
/// Fails if another process uses the database.
fn lock(data: &Path) -> anyhow::Result<Option<File>> {
    let path = data.join("locks").join("use");
    let file = match File::open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error).with_context(|| format!("cannot open `{}`", path.display())),
    };
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => bail!(
            "nothing was deleted: another process uses `{}`\nend all instances of the program and try again",
            data.display()
        ),
        Err(TryLockError::Error(error)) => {
            Err(error).with_context(|| format!("cannot lock `{}`", path.display()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_one_digit_after_the_point() {
        let sizes = [0, 1023, 1536, 5 * 1024 * 1024].map(size);
        assert_eq!(sizes, ["0 B", "1023 B", "1.5 KB", "5.0 MB"]);
    }
}
