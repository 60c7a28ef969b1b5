//! `uninstall` deletes the program's files and nothing else.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use anyhow::Result;
use codewright_testkit::Script;

use crate::support::{Stage, check_code, check_has, data, database, files, program};

/// A project with a session, a cache, a configuration and files of the user next to those of the program.
struct Used {
    stage: Stage,
    /// The user's files.
    foreign: Vec<PathBuf>,
}

impl Used {
    fn new() -> Result<Self> {
        let stage = Stage::git(Script::new().text("Hi."))?;
        stage.run(["hi"])?.success()?;
        let home = stage.project.home().to_owned();
        let state = home.join(".local/state/codewright");
        let data = data(&stage.project);
        let foreign = vec![
            data.join("notes.txt"),
            data.join("worktree/mine/src/main.rs"),
            data.join("codewright.db.backup"),
            state.join("log/mine.log"),
            home.join(".config/codewright/codewright.json"),
            home.join(".config/codewright/AGENTS.md"),
            home.join(".local/share/opencode/opencode.db"),
            home.join("outside/keep.txt"),
        ];
        for path in &foreign {
            write(path)?;
        }
        for path in [
            data.join("snapshot/p/s/HEAD"),
            state.join("trust.json"),
            home.join(".cache/codewright/models.json"),
        ] {
            write(&path)?;
        }
        Ok(Self { stage, foreign })
    }

    fn home(&self) -> &Path {
        self.stage.project.home()
    }

    /// The files of the user and of the program in the home.
    fn files(&self) -> Result<Vec<PathBuf>> {
        files(self.home())
    }

    #[track_caller]
    fn check_foreign(&self) {
        for path in &self.foreign {
            assert!(path.exists(), "`{}` was deleted", path.display());
        }
    }
}

fn write(path: &Path) -> Result<()> {
    fs::create_dir_all(path.parent().unwrap_or(Path::new("/")))?;
    Ok(fs::write(path, "{}")?)
}

#[test]
fn a_dry_run_lists_files_and_deletes_none() -> Result<()> {
    let used = Used::new()?;
    let before = used.files()?;
    let done = used.stage.program(["uninstall", "--dry-run", "--force"]).finish()?.success()?;
    let database = database(&used.stage.project).display().to_string();
    check_has(
        &done.stdout,
        &[&database, "notes.txt", ".config/codewright (configuration", "package manager"],
    );
    check_has(&done.stderr, &["Dry run"]);
    assert_eq!(used.files()?, before);
    Ok(())
}

#[test]
fn without_a_confirmation_nothing_is_deleted() -> Result<()> {
    let used = Used::new()?;
    let before = used.files()?;
    let done = used.stage.program(["uninstall"]).stdin("yes\n").finish()?;
    check_code(&done, 1);
    check_has(&done.stderr, &["confirm with --force"]);
    assert_eq!(used.files()?, before);
    Ok(())
}

#[test]
fn only_the_files_of_the_program_are_deleted() -> Result<()> {
    let used = Used::new()?;
    let done = used.stage.program(["uninstall", "-f"]).finish()?.success()?;
    used.check_foreign();
    let mut left = used.files()?;
    let is_own =
        |path: &PathBuf| path.parent().is_some_and(|above| above.iter().any(|name| name == "codewright"));
    left.retain(|path| is_own(path) && !used.foreign.contains(path));
    assert!(left.is_empty(), "{left:?} of\n{}", done.stdout);
    // A directory without files of the user is deleted, too.
    assert!(!used.home().join(".cache/codewright").exists());
    Ok(())
}

#[test]
fn the_data_can_be_kept() -> Result<()> {
    let used = Used::new()?;
    used.stage.program(["uninstall", "-f", "-c", "-d"]).finish()?.success()?;
    used.check_foreign();
    assert!(database(&used.stage.project).exists());
    assert!(data(&used.stage.project).join("snapshot/p/s/HEAD").exists());
    assert!(!used.home().join(".local/state/codewright/trust.json").exists());
    Ok(())
}

#[test]
fn links_are_neither_deleted_nor_followed() -> Result<()> {
    let used = Used::new()?;
    let (data, outside) = (data(&used.stage.project), used.home().join("outside"));
    // The program creates no links: the user moved these to another disk.
    symlink(&outside, data.join("imported"))?;
    symlink(outside.join("keep.txt"), data.join("auth.json"))?;
    // A link in a directory of the program is deleted, but not its target.
    symlink(&outside, data.join("snapshot/p/link"))?;
    let cache = used.home().join(".cache/codewright");
    fs::rename(&cache, used.home().join("moved"))?;
    symlink(used.home().join("moved"), &cache)?;
    used.stage.program(["uninstall", "-f"]).finish()?.success()?;
    used.check_foreign();
    assert!(data.join("imported").is_symlink() && data.join("auth.json").is_symlink());
    assert!(!data.join("snapshot").exists());
    assert!(used.home().join("moved/models.json").exists());
    Ok(())
}

#[test]
fn the_data_of_a_running_program_is_not_deleted() -> Result<()> {
    let used = Used::new()?;
    let (server, _) = used.stage.serve()?;
    let done = used.stage.program(["uninstall", "-f"]).finish()?;
    check_code(&done, 1);
    check_has(&done.stderr, &["another process uses"]);
    assert!(database(&used.stage.project).exists());
    server.terminate()?;
    server.finish()?.success()?;
    used.stage.program(["uninstall", "-f"]).finish()?.success()?;
    assert!(!database(&used.stage.project).exists());
    Ok(())
}

#[test]
fn a_program_without_files_has_nothing_to_delete() -> Result<()> {
    let project = codewright_testkit::Project::plain()?;
    let done = program(&project, ["uninstall"]).finish()?.success()?;
    check_has(&done.stderr, &["There is nothing to delete"]);
    Ok(())
}
