//! Commands that create repositories: `git clone`, `git init` and `git submodule`.
//!
//! A new repository in the project has settings that git obeys later, outside of the sandbox. So other commands cannot create
//! one, and these can only if nothing else runs with them that could write its settings.

use std::path::Path;

use codewright_tools::Ask;

use crate::permission::control::Repositories;

/// The commands of git that create repositories.
const CREATING: &[&str] = &["clone", "init", "submodule", "worktree"];
/// The commands of `git submodule` and `git worktree` that run nothing.
const SUBCOMMANDS: &[&str] = &["add", "init", "list", "prune", "remove", "status", "sync", "update"];
/// Commands of git that run nothing except hooks.
const PLAIN_GIT: &[&str] = &[
    "--version",
    "add",
    "branch",
    "checkout",
    "commit",
    "diff",
    "fetch",
    "gc",
    "log",
    "ls-files",
    "merge",
    "mv",
    "pull",
    "push",
    "rebase",
    "reset",
    "restore",
    "rev-parse",
    "rm",
    "show",
    "stash",
    "status",
    "switch",
    "tag",
];
/// Other commands that write nothing next to repositories.
const HARMLESS: &[&str] = &[
    "cat", "cd", "echo", "exit", "head", "ls", "mkdir", "pwd", "rm", "set", "tail", "test", "touch", "true",
    "wc",
];
/// Parts of words with which git runs programs, or writes settings that the command line names.
const REFUSED: &[&str] = &[
    "--config",
    "--template",
    "--upload-pack",
    "--receive-pack",
    "--separate-git-dir",
    "--exec",
    "--interactive",
    "--ext-diff",
    "--textconv",
    "ext::",
];
/// What the shell reads as more than words.
const SYNTAX: &[char] = &['$', '`', '(', '|', '&', ';', '\\', '\n'];
/// The longest configuration of a repository that is searched for the directory of its hooks.
const MAX_CONFIG_BYTES: u64 = 1024 * 1024;

/// Whether the granted command may create repositories. `git` is the directory of the project's repository, whose hooks would
/// run code of the project in the same command.
pub(super) fn of(granted: &[Ask], git: Option<&Path>) -> Repositories {
    let of_command = granted.iter().filter(|ask| ask.permission == "bash");
    let commands: Vec<&str> = of_command.flat_map(|ask| ask.patterns.iter().map(String::as_str)).collect();
    let creates = commands.iter().any(|command| is_git(command, CREATING));
    if creates && commands.iter().all(|command| is_plain(command)) && !git.is_some_and(has_hooks) {
        Repositories::Created
    } else {
        Repositories::Refused
    }
}

fn is_plain(command: &str) -> bool {
    // Errors in the output are ordinary.
    let command = &command.replace("2>&1", "");
    let name = command.split_whitespace().next().unwrap_or_default();
    let is_redirected_to_git = command.contains(['>', '<']) && command.contains(".git");
    !command.contains(SYNTAX)
        && !is_redirected_to_git
        && (is_redirection(name)
            || is_git(command, CREATING)
            || is_git(command, PLAIN_GIT)
            || HARMLESS.contains(&name))
}

/// Whether a request names a redirection alone, such as `> file` or `2>file`.
fn is_redirection(name: &str) -> bool {
    name.trim_start_matches(|c: char| c.is_ascii_digit()).starts_with(['>', '<'])
}

/// Whether a simple command is one of these of git, without options that could run or write something else.
fn is_git(command: &str, names: &[&str]) -> bool {
    let mut words = command.split_whitespace();
    let (Some("git"), Some(name)) = (words.next(), words.next()) else { return false };
    let mut rest = words.clone();
    let has_subcommands = matches!(name, "submodule" | "worktree");
    let is_known = !has_subcommands || rest.next().is_some_and(|word| SUBCOMMANDS.contains(&word));
    // Short options differ between commands: `git stash -u` keeps untracked files.
    let letters: &[char] = match name {
        "clone" => &['c', 'u'],
        "rebase" => &['i', 'x'],
        "add" | "checkout" | "commit" | "restore" | "stash" => &['i', 'p'],
        _ => &[],
    };
    let is_refused = |word: &str| {
        let is_short = word.starts_with('-') && !word.starts_with("--") && word.contains(letters);
        is_short || REFUSED.iter().any(|refused| word.starts_with(refused))
    };
    names.contains(&name) && is_known && !words.any(is_refused)
}

/// Whether a repository has hooks, or settings that are too long to tell.
fn has_hooks(git: &Path) -> bool {
    let is_hook = |name: &std::ffi::OsStr| !name.to_string_lossy().ends_with(".sample");
    let mut hooks = std::fs::read_dir(git.join("hooks")).into_iter().flatten().flatten();
    if hooks.any(|hook| is_hook(&hook.file_name())) {
        return true;
    }
    let config = git.join("config");
    match config.metadata() {
        Ok(found) if found.len() <= MAX_CONFIG_BYTES => {
            std::fs::read_to_string(config).is_ok_and(|text| text.to_ascii_lowercase().contains("hookspath"))
        }
        Ok(_) => true,
        // Without a configuration there is no other directory.
        Err(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(commands: &[&str], expected: Repositories) {
        let ask = Ask::new("bash", commands.iter().map(|&command| command.to_owned()).collect());
        assert_eq!(of(&[ask], None), expected, "{commands:?}");
    }

    #[test]
    fn hooks_of_the_project_could_write_settings() {
        let git = tempfile::tempdir().unwrap();
        let ask = || [Ask::new("bash", vec!["git init sub".to_owned()])];
        assert_eq!(of(&ask(), Some(git.path())), Repositories::Created);
        std::fs::create_dir(git.path().join("hooks")).unwrap();
        std::fs::write(git.path().join("hooks/pre-commit.sample"), "").unwrap();
        assert_eq!(of(&ask(), Some(git.path())), Repositories::Created);
        std::fs::write(git.path().join("config"), "[core]\n\thooksPath = .husky\n").unwrap();
        assert_eq!(of(&ask(), Some(git.path())), Repositories::Refused);
        std::fs::write(git.path().join("config"), "").unwrap();
        std::fs::write(git.path().join("hooks/pre-commit"), "").unwrap();
        assert_eq!(of(&ask(), Some(git.path())), Repositories::Refused);
    }

    #[test]
    fn only_git_alone_creates_repositories() {
        for commands in [
            &["git clone -q http://host/repo.git cloned", "cat cloned/file"][..],
            &["git init sub"],
            &["git --version > /dev/null 2>&1", "exit", "git clone url"],
            &["cd deps", "git clone --depth 1 https://host/repo"],
            &["git submodule add ./lib lib"],
            &["git add -A", "git stash -qu", "git worktree add -q trees/one", "echo worked", "> b"],
        ] {
            check(commands, Repositories::Created);
        }
        for commands in [
            &["git clone url sub", "python3 x.py"][..],
            &["git clone --config core.fsmonitor=x url sub"],
            &["git clone -c core.fsmonitor=x url sub"],
            &["git clone --template=/tmp/x url"],
            &["git clone ext::sh url"],
            &["git init sub > sub/.git/config"],
            &["git init sub", "> sub/.git/config"],
            &["git init $(./evil)"],
            &["git -c alias.clone=!x clone y"],
            &["git init sub", "git rebase -qx ./evil HEAD"],
            &["git init sub", "git submodule foreach ./evil"],
            &["cat x"],
            &["python3 x.py"],
            &[],
        ] {
            check(commands, Repositories::Refused);
        }
    }
}
