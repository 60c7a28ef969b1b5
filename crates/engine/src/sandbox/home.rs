//! What the user's own programs may not change in the home directory.
//!
//! MCP servers, language servers, plugins and hooks of the user's own configuration write the home directory as a whole,
//! because each keeps files there: a dot directory, a cache, its state. The table of control files in the home directory lists
//! the exceptions. They stay as they are, and one that is missing stays missing. Commands that can write in the home
//! directory keep them, too.

use std::path::{Path, PathBuf};

use codewright_config::Dirs;
use codewright_permission::control;
use codewright_workspace::{Below, Guarded, folded_name};

use super::homes::{bases, by_directory};
use super::paths::SECRETS;

/// The entries of the original's configuration directories that decide what this program may do. A plugin keeps its own
/// settings there, and skills that it installs.
const CONFIGURATION: &[&str] = &[
    "opencode.json*",
    "codewright.json*",
    "config.json*",
    "config",
    "tui.json*",
    "AGENTS.md",
    "CLAUDE.md",
    "agent",
    "agents",
    "command",
    "commands",
    "mode",
    "modes",
    "plugin",
    "plugins",
    "tool",
    "tools",
    "theme",
    "themes",
    "node_modules",
    "package.json",
    "package-lock.json",
    "bun.lock*",
    ".npmrc",
    "bunfig.toml",
];

/// OpenCode's directory in a project.
const PROJECT: &str = ".opencode";
/// The entries of it that also configure this program. Skills of the user are at home.
const PROJECT_CONFIGURATION: &[&str] = &["skill", "skills", "bin"];

/// The entries of the original's data directory with sign-ins, which no program reads or writes.
const SIGN_INS: &[&str] = &["auth.json", "mcp-auth.json", "auth.json.*"];
/// The sessions in the original's data directory, which no program writes.
const SESSIONS: &[&str] = &["opencode.db*", "opencode-*.db*", "bin", "worktree", "snapshot"];

/// The directories that the user's own programs can write.
pub(super) fn writable(dirs: &Dirs) -> Vec<PathBuf> {
    let bases = bases(dirs).into_iter().filter_map(|(_, base)| base);
    // The base directories can be anywhere. One that contains the home, or a whole file system, is a mistake.
    let is_own = |base: &&Path| base.components().count() > 2 && !dirs.home.starts_with(base);
    let outside = bases.filter(is_own).filter(|base| !base.starts_with(&dirs.home)).map(Path::to_owned);
    std::iter::once(dirs.home.clone()).chain(outside).collect()
}

/// The names that stay as they are, by directory. `write` are exceptions that the user configured.
pub(super) fn kept(dirs: &Dirs, programs: &[PathBuf], write: &[PathBuf]) -> Vec<Guarded> {
    let rows = control::home_paths().chain(control::common_paths()).chain(SECRETS.iter().copied());
    let mut paths: Vec<PathBuf> = rows.flat_map(|row| places(dirs, row)).collect();
    for directory in [&dirs.config, &dirs.home.join(".opencode")] {
        paths.extend(CONFIGURATION.iter().map(|name| directory.join(name)));
    }
    paths.extend(SIGN_INS.iter().chain(SESSIONS).map(|name| dirs.opencode_data.join(name)));
    paths.extend(
        [&dirs.own_config, &dirs.data, &dirs.state, &dirs.cache.join(super::PACKAGES)].map(Clone::clone),
    );
    paths.push(dirs.cache.join(codewright_plugins::SCRIPTS));
    paths.extend(programs.iter().filter(|path| is_program_directory(dirs, path)).cloned());
    paths.retain(|path| !write.iter().any(|write| path.starts_with(write)));
    by_directory(paths.iter(), write)
}

/// The paths of names without a star.
pub(super) fn paths(kept: &[Guarded]) -> Vec<PathBuf> {
    let row = |row: &Guarded| -> Vec<PathBuf> {
        let names = row.patterns.iter().map(|name| name.trim_end_matches('*'));
        names.filter(|name| !name.contains('*')).map(|name| row.directory.join(name)).collect()
    };
    kept.iter().flat_map(row).collect()
}

/// The hidden files of the original's data directory. The others are visible to the user's own programs.
pub(super) fn sign_ins(dirs: &Dirs) -> impl Iterator<Item = PathBuf> {
    SIGN_INS.iter().filter(|name| !name.contains('*')).map(|name| dirs.opencode_data.join(name))
}

/// Whether a directory of the search path is below a directory that can be written, and is not one of these itself.
fn is_program_directory(dirs: &Dirs, path: &Path) -> bool {
    path.is_absolute() && writable(dirs).iter().any(|above| path != above && path.starts_with(above))
}

/// The path of a row: in the home directory, and in the base directory that replaces a part of it.
fn places(dirs: &Dirs, row: &str) -> Vec<PathBuf> {
    let mut places = vec![dirs.home.join(row)];
    for (prefix, base) in bases(dirs) {
        let rest = row.strip_prefix(prefix).and_then(|rest| rest.strip_prefix('/'));
        if let (Some(rest), Some(base)) = (rest, base)
            && base != dirs.home.join(prefix)
        {
            places.push(base.join(rest));
        }
    }
    places
}

/// Lets programs create OpenCode's directory of a project and keep their state there, but none of the names that configure
/// this program. `write` are exceptions that the user configured.
pub(super) fn free_project_directory(guarded: &mut Vec<Guarded>, below: &mut Below, write: &[PathBuf]) {
    let names = || CONFIGURATION.iter().chain(PROJECT_CONFIGURATION);
    let mut directories = Vec::new();
    for row in guarded.iter_mut() {
        let count = row.patterns.len();
        row.patterns.retain(|pattern| pattern != PROJECT);
        if row.patterns.len() < count {
            directories.push(row.directory.join(PROJECT));
        }
    }
    let inside = |directory: &PathBuf| -> Vec<PathBuf> { names().map(|name| directory.join(name)).collect() };
    let mut paths: Vec<PathBuf> = directories.iter().flat_map(inside).collect();
    paths.retain(|path| !write.iter().any(|write| path.starts_with(write)));
    guarded.extend(by_directory(paths.iter(), write));
    let rows = &mut below.outside_packages.rows;
    let count = rows.len();
    rows.retain(|row| row.as_slice() != [PROJECT]);
    if rows.len() < count {
        rows.extend(names().map(|name| vec![PROJECT.to_owned(), folded_name(name)]));
        below.except.extend(write.iter().cloned());
    }
}

#[cfg(test)]
mod tests {
    use codewright_config::Env;

    use super::*;

    fn dirs(more: &[(&str, &str)]) -> Dirs {
        Dirs::new(&Env::from_pairs([("HOME", "/home/ann")].iter().chain(more).copied())).unwrap()
    }

    fn is_kept(dirs: &Dirs, write: &[PathBuf], path: &str) -> bool {
        let kept = kept(dirs, &["/home/ann/tools/bin".into(), "/usr/bin".into(), "/home/ann".into()], write);
        Path::new(path).ancestors().any(|path| kept.iter().any(|row| is_in(row, path)))
    }

    fn is_in(row: &Guarded, path: &Path) -> bool {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return false };
        let name = folded_name(&name.to_string_lossy());
        let matches = |pattern: &String| control::matches_name(pattern, &name);
        row.directory == parent && !row.except.contains(&name) && row.patterns.iter().any(matches)
    }

    #[test]
    fn programs_write_their_own_files_and_nothing_that_runs_later() {
        let dirs = dirs(&[]);
        for path in [
            ".claude/todos/a.json",
            ".claude/transcripts/a",
            ".opencode-supermemory.log",
            ".wakatime.cfg",
            ".wakatime/state",
            ".cache/anything/a",
            ".local/share/anything",
            ".local/state/anything",
            ".config/anything/settings.json",
            ".config/opencode/dcp.jsonc",
            ".config/opencode/oh-my-opencode.json",
            ".config/opencode/skill/a/SKILL.md",
            ".local/share/opencode/storage/plugin/dcp/a.json",
            ".npm/_cacache/a",
            "Documents/notes.md",
        ] {
            assert!(!is_kept(&dirs, &[], &format!("/home/ann/{path}")), "{path}");
        }
        for path in [
            ".bashrc",
            ".BASHRC",
            ".bashrc.d",
            ".zshrc.local",
            ".config/autostart/a.desktop",
            ".config/systemd/user/a.service",
            ".local/bin/git",
            "tools/bin/git",
            ".local/lib/python3.12/site-packages/usercustomize.py",
            ".pyenv/versions/3.12/lib/python3.12/site-packages/a.pth",
            ".claude/settings.json",
            ".claude/settings.local.json",
            ".gitconfig",
            ".config/git/config",
            ".npmrc",
            ".ssh/authorized_keys",
            ".gnupg/gpg.conf",
            ".aws/credentials",
            ".config/opencode/opencode.jsonc",
            ".config/opencode/agents/a.md",
            ".config/opencode/plugin/a.js",
            ".config/codewright/codewright.json",
            ".local/share/codewright/codewright.db",
            ".local/share/opencode/auth.json",
            ".local/share/opencode/opencode.db-wal",
            ".config/Code/User/settings.json",
        ] {
            assert!(is_kept(&dirs, &[], &format!("/home/ann/{path}")), "{path}");
        }
    }

    #[test]
    fn a_path_that_the_user_names_is_free() {
        let dirs = dirs(&[]);
        let write = [PathBuf::from("/home/ann/.claude/settings.json")];
        assert!(!is_kept(&dirs, &write, "/home/ann/.claude/settings.json"));
        assert!(is_kept(&dirs, &write, "/home/ann/.claude/settings.local.json"));
        assert!(!is_kept(&dirs, &["/home/ann/.config/nvim".into()], "/home/ann/.config/nvim/init.lua"));
    }

    #[test]
    fn state_is_kept_in_a_project_and_configuration_is_not() {
        let row = |name: &str| vec![name.to_owned()];
        let mut guarded = control::guarded(Path::new("/work"));
        let mut below = Below::default();
        below.outside_packages.rows = vec![row(".opencode"), row(".codewright")];
        free_project_directory(&mut guarded, &mut below, &["/work/.opencode/tool".into()]);
        let is_guarded = |path: &str| guarded.iter().any(|row| is_in(row, Path::new(path)));
        for path in ["/work/.opencode", "/work/.opencode/todo.md", "/work/.opencode/tool"] {
            assert!(!is_guarded(path), "{path}");
        }
        for path in [
            "/work/opencode.json",
            "/work/.codewright",
            "/work/.opencode/opencode.jsonc",
            "/work/.opencode/plugin",
            "/work/.opencode/skills",
            "/work/.opencode/agent",
            "/work/.opencode/AGENTS.md",
        ] {
            assert!(is_guarded(path), "{path}");
        }
        let deeper = &below.outside_packages.rows;
        assert!(!deeper.contains(&row(".opencode")) && deeper.contains(&row(".codewright")));
        assert!(deeper.contains(&[".opencode", "plugin"].map(str::to_owned).to_vec()));
    }

    #[test]
    fn base_directories_outside_of_the_home_count_as_those_inside() {
        let dirs = dirs(&[("XDG_CONFIG_HOME", "/data/ann/config"), ("XDG_CACHE_HOME", "/data/ann/cache")]);
        let expected = ["/home/ann", "/data/ann/config", "/data/ann/cache"];
        assert_eq!(writable(&dirs), expected.map(PathBuf::from));
        for path in ["/data/ann/config/fish/config.fish", "/home/ann/.config/fish/config.fish"] {
            assert!(is_kept(&dirs, &[], path), "{path}");
        }
        assert!(is_kept(&dirs, &[], "/data/ann/config/opencode/opencode.json"));
        assert!(!is_kept(&dirs, &[], "/data/ann/cache/ms-playwright/a"));
    }
}
