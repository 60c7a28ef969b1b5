//! The installation: the script of a release installs an archive that a server of this machine publishes.

use std::path::Path;
use std::process::{Command, Output};

use anyhow::{Result, ensure};

use super::{Hour, has};
use crate::dist::Published;

/// Plays the steps.
pub(super) fn play(hour: &mut Hour) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let published = Published::start(super::root()?, &hour.program, folder.path())?;
    let home = folder.path().join("home");
    std::fs::create_dir(&home)?;
    let program = home.join(".local/bin/codewright");
    hour.step("the install script says what it would do", || {
        let done = script(&published, &home, &["--dry-run"])?;
        has(&text(&done), &["would download http://127.0.0.1", ".local/bin/codewright"])?;
        ensure!(!program.exists(), "a dry run has installed something");
        Ok(())
    });
    hour.step("the install script installs the program and says what is next", || {
        let done = script(&published, &home, &[])?;
        ensure!(done.status.success(), "{}", text(&done));
        has(&text(&done), &["installed ", "add ", "to PATH", "codewright demo", "codewright providers login"])
    });
    hour.step("the installed program starts and names its version", || {
        let done = run(&program, &home, &["--version"])?;
        has(&text(&done), &[&published.version])
    });
    hour.step("the demo works without a key", || {
        let done = run(&program, &home, &["demo"])?;
        ensure!(done.status.success(), "{}", text(&done));
        has(&text(&done), &["needs no key", "fix the failing test"])
    });
    hour.step("a damaged download changes nothing", || {
        published.damage()?;
        let done = script(&published, &home, &[])?;
        ensure!(!done.status.success(), "a damaged archive was installed");
        has(&text(&done), &["digest", "nothing was changed"])?;
        ensure!(run(&program, &home, &["--version"])?.status.success(), "the program is gone");
        Ok(())
    });
    hour.step("the script removes the program and keeps the sessions", || {
        let kept = home.join(".local/share/codewright");
        std::fs::create_dir_all(&kept)?;
        let done = script(&published, &home, &["--uninstall"])?;
        ensure!(done.status.success() && !program.exists() && kept.exists(), "{}", text(&done));
        has(&text(&done), &["your sessions and settings are kept"])
    });
    Ok(())
}

fn script(published: &Published, home: &Path, args: &[&str]) -> Result<Output> {
    let mut shell = Command::new("sh");
    shell.arg(&published.script).args(["--target", published.triple]).args(args);
    Ok(clean(&mut shell, home).output()?)
}

fn run(program: &Path, home: &Path, args: &[&str]) -> Result<Output> {
    let mut command = Command::new(program);
    clean(&mut command, home).args(args).env("OPENCODE_DISABLE_MODELS_FETCH", "1").current_dir(home);
    Ok(command.output()?)
}

fn clean<'a>(command: &'a mut Command, home: &Path) -> &'a mut Command {
    command.env_clear().env("PATH", "/usr/local/bin:/usr/bin:/bin").env("HOME", home)
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}
