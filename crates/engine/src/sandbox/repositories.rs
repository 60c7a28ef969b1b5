//! Commands that create repositories: `git clone`, `git init`, `git submodule` and `git worktree`.
//!
//! A new repository in the project has settings that git obeys later, outside of the sandbox. So other commands cannot create
//! one, and these can only if nothing else runs with them that could write its settings. That is decided about the text of
//! the whole line, which must consist of plain words: a variable, an assignment, a pattern or a redirection could do what no
//! word shows. Options of the commands that create are compared with those that are permitted, because git accepts every
//! unique beginning of an option.

use std::path::Path;

use codewright_tools::Ask;
use codewright_workspace::folded_name;

use crate::permission::control::Repositories;

/// A command of git, its long options and its letters.
type Creating = (&'static str, &'static [&'static str], &'static str);

/// The commands of git that create repositories, with the options that run no program and write no chosen setting: long ones
/// without their value, and letters.
const CREATING: &[Creating] = &[
    (
        "clone",
        &[
            "--also-filter-submodules",
            "--bare",
            "--branch",
            "--depth",
            "--dissociate",
            "--filter",
            "--ipv4",
            "--ipv6",
            "--jobs",
            "--local",
            "--mirror",
            "--no-checkout",
            "--no-hardlinks",
            "--no-local",
            "--no-single-branch",
            "--no-tags",
            "--origin",
            "--progress",
            "--quiet",
            "--recurse-submodules",
            "--recursive",
            "--reference",
            "--reference-if-able",
            "--shallow-since",
            "--shallow-submodules",
            "--shared",
            "--single-branch",
            "--sparse",
            "--tags",
            "--verbose",
        ],
        "bjlnoqsv",
    ),
    ("init", &["--bare", "--initial-branch", "--object-format", "--quiet"], "bq"),
    (
        "submodule",
        &[
            "--branch",
            "--checkout",
            "--depth",
            "--force",
            "--init",
            "--jobs",
            "--name",
            "--no-fetch",
            "--progress",
            "--quiet",
            "--recommend-shallow",
            "--recursive",
            "--reference",
            "--remote",
            "--single-branch",
        ],
        "bfjqN",
    ),
    (
        "worktree",
        &[
            "--checkout",
            "--detach",
            "--expire",
            "--force",
            "--guess-remote",
            "--lock",
            "--no-checkout",
            "--no-guess-remote",
            "--no-track",
            "--porcelain",
            "--quiet",
            "--reason",
            "--track",
            "--verbose",
        ],
        "bBdfnqv",
    ),
];
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
const HARMLESS: &[&str] =
    &["cat", "cd", "echo", "exit", "head", "ls", "mkdir", "pwd", "rm", "tail", "test", "touch", "true", "wc"];
/// Long options with which other commands of git run programs, or write files that the command line names.
const REFUSED: &[&str] = &[
    "--config",
    "--edit-description",
    "--exec",
    "--ext-diff",
    "--interactive",
    "--output",
    "--patch",
    "--receive-pack",
    "--separate-git-dir",
    "--strategy",
    "--template",
    "--textconv",
    "--upload-pack",
];
/// The shortest long option: two dashes and a letter.
const SHORTEST_OPTION: usize = 3;
/// What the shell reads as more than words, where it is not in single quotes.
const SYNTAX: &[char] = &['$', '`', '\\', '\0', '\r'];
/// The same, where it is not in quotes.
const PATTERNS: &[char] = &['*', '?', '[', ']', '{', '}', '#', '!', '<'];
/// Names in the path of a redirection that could be part of a repository.
const PARTS: &[&str] = &["git", "commondir", "config", "head", "hooks", "objects", "refs"];
/// The longest configuration of a repository that is searched for the directory of its hooks.
const MAX_CONFIG_BYTES: u64 = 1024 * 1024;

/// What the granted command may create. `git` is the directory of the project's repository, whose hooks would run code of the
/// project in the same command, and so would programs of the project that its settings name.
pub(super) fn of(granted: &[Ask], git: Option<&Path>, has_programs: impl FnOnce() -> bool) -> Repositories {
    let mut of_command = granted.iter().filter(|ask| ask.permission == "bash");
    let (Some(ask), None) = (of_command.next(), of_command.next()) else { return Repositories::Refused };
    let line = ask.metadata.get("command").and_then(serde_json::Value::as_str);
    let created = line.and_then(Line::parse).map_or(Repositories::Refused, |line| line.creates());
    let is_open = created != Repositories::Refused && !git.is_some_and(has_hooks) && !has_programs();
    if is_open { created } else { Repositories::Refused }
}

/// The commands of a line that consists of plain words.
#[derive(Debug, Default, PartialEq, Eq)]
struct Line {
    commands: Vec<Vec<String>>,
    /// The files that it writes by redirection.
    redirections: Vec<String>,
}

impl Line {
    /// Reads a line. `None` if it has more than words, operators between commands, and redirections of output.
    fn parse(text: &str) -> Option<Self> {
        let mut line = Self { commands: vec![Vec::new()], redirections: Vec::new() };
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            match first {
                ' ' | '\t' => rest = &rest[1..],
                '\n' | ';' | '|' | '(' | ')' => {
                    line.commands.push(Vec::new());
                    rest = &rest[1..];
                }
                '&' if rest.starts_with("&&") => {
                    line.commands.push(Vec::new());
                    rest = &rest[2..];
                }
                // A group. Elsewhere a brace is a word, and what follows it is compared as a command all the same.
                '{' | '}' if is_end(&rest[1..]) => {
                    line.commands.push(Vec::new());
                    rest = &rest[1..];
                }
                '&' if !rest.starts_with("&>") => return None,
                '0'..='9' | '&' | '>' if is_redirection(rest) => {
                    let at = rest.find('>')?;
                    let target = rest[at + 1..].trim_start_matches('>').trim_start_matches(' ');
                    let (word, after) = match target.strip_prefix('&') {
                        // What follows belongs to the name of a file.
                        Some(number) => {
                            (None, number.strip_prefix(['1', '2']).filter(|after| is_end(after))?)
                        }
                        None => word(target).map(|(word, after)| (Some(word), after))?,
                    };
                    line.redirections.extend(word.filter(|word| word != "/dev/null"));
                    rest = after;
                }
                _ => {
                    let (word, after) = word(rest)?;
                    line.commands.last_mut()?.push(word);
                    rest = after;
                }
            }
        }
        line.commands.retain(|words| !words.is_empty());
        Some(line)
    }

    fn creates(&self) -> Repositories {
        let creating: Vec<&str> =
            self.commands.iter().filter_map(|words| creating(words)).map(|(name, ..)| *name).collect();
        let is_plain = self.commands.iter().all(|words| is_plain(words));
        if creating.is_empty() || !is_plain {
            Repositories::Refused
        } else if creating.iter().all(|name| *name == "worktree") {
            // A worktree has no settings of its own.
            let is_part = |path: &String| {
                let folded = folded_name(path);
                !path.is_ascii() || PARTS.iter().any(|part| folded.contains(part))
            };
            let is_any_part = self.redirections.iter().any(is_part);
            if is_any_part { Repositories::Refused } else { Repositories::Worktrees }
        } else if self.redirections.is_empty() {
            Repositories::Created
        } else {
            // A link in what is cloned could lead to the settings.
            Repositories::Refused
        }
    }
}

/// Whether a word ends before a text.
fn is_end(text: &str) -> bool {
    text.is_empty() || text.starts_with([' ', '\t', '\n', ';', '|', '&', '(', ')', '>'])
}

/// Whether the text begins with a redirection of output, such as `2>&1`, `> file` or `&> file`.
fn is_redirection(text: &str) -> bool {
    text.trim_start_matches(|c: char| c.is_ascii_digit()).trim_start_matches('&').starts_with('>')
}

/// The word at the beginning of a text, and what follows it.
fn word(text: &str) -> Option<(String, &str)> {
    let (mut word, mut quote, mut has_quotes) = (String::new(), None, false);
    for (at, character) in text.char_indices() {
        match (quote, character) {
            (Some(open), close) if open == close => quote = None,
            (Some('\''), other) => word.push(other),
            (_, other) if SYNTAX.contains(&other) => return None,
            (Some(_), other) => word.push(other),
            (None, '\'' | '"') => (quote, has_quotes) = (Some(character), true),
            (None, ' ' | '\t' | '\n' | ';' | '|' | '&' | '(' | ')' | '>') => {
                return (has_quotes || !word.is_empty()).then(|| (word, &text[at..]));
            }
            (None, other) if PATTERNS.contains(&other) => return None,
            // Elsewhere it is part of a revision, such as `HEAD~1`.
            (None, '~') if at == 0 => return None,
            (None, other) => word.push(other),
        }
    }
    (quote.is_none() && (has_quotes || !word.is_empty())).then_some((word, ""))
}

/// The row of a command that creates repositories.
fn creating(words: &[String]) -> Option<&'static Creating> {
    let (git, name) = (words.first()?, words.get(1)?);
    CREATING.iter().find(|(known, ..)| git == "git" && known == name)
}

/// Whether a simple command runs no program and writes no file that the line chooses.
fn is_plain(words: &[String]) -> bool {
    let Some((name, rest)) = words.split_first() else { return true };
    if let Some((command, long, letters)) = creating(words) {
        let has_subcommands = matches!(*command, "submodule" | "worktree");
        let is_known =
            !has_subcommands || rest.get(1).is_some_and(|word| SUBCOMMANDS.contains(&word.as_str()));
        let is_permitted = |word: &String| match word.strip_prefix('-') {
            Some(more) if more.starts_with('-') => {
                let option = word.split_once('=').map_or(word.as_str(), |(option, _)| option);
                word == "--" || long.contains(&option)
            }
            Some(more) => more.chars().all(|letter| letters.contains(letter) || letter.is_ascii_digit()),
            // Git runs a program of this name.
            None => !word.contains("::"),
        };
        return is_known && rest.iter().skip(1).all(is_permitted);
    }
    match (name.as_str(), rest.first().map(String::as_str)) {
        ("git", Some(command)) => is_plain_git(command, &rest[1..]),
        ("set", Some(flags)) => rest.len() == 1 && ["-e", "-eu", "-ex", "-eux"].contains(&flags),
        (name, _) => HARMLESS.contains(&name),
    }
}

/// Whether a command of git that creates no repository runs nothing except hooks.
fn is_plain_git(name: &str, words: &[String]) -> bool {
    // Short options differ between commands: `git stash -u` keeps untracked files.
    let letters: &[char] = match name {
        "rebase" => &['i', 'x', 's'],
        "merge" | "pull" => &['s'],
        "add" | "checkout" | "commit" | "reset" | "restore" | "stash" => &['i', 'p', 't'],
        _ => &[],
    };
    let is_refused = |word: &String| {
        let option = word.split_once('=').map_or(word.as_str(), |(option, _)| option);
        let is_long = option.starts_with("--");
        let is_short = word.starts_with('-') && !is_long && word.contains(letters);
        // A beginning of a refused option means that option.
        let is_beginning = |refused: &&str| {
            option.len() >= SHORTEST_OPTION && (option.starts_with(*refused) || refused.starts_with(option))
        };
        is_short || word.contains("::") || is_long && REFUSED.iter().any(is_beginning)
    };
    PLAIN_GIT.contains(&name) && !words.iter().any(is_refused)
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

    fn ask(line: &str) -> Ask {
        Ask::new("bash", vec![line.to_owned()]).with("command", line)
    }

    #[track_caller]
    fn check(line: &str, expected: Repositories) {
        assert_eq!(of(&[ask(line)], None, || false), expected, "{line}");
    }

    #[test]
    fn programs_of_the_project_could_write_settings() {
        let git = tempfile::tempdir().unwrap();
        let asks = [ask("git init sub")];
        let of = |asks: &[Ask]| of(asks, Some(git.path()), || false);
        assert_eq!(of(&asks), Repositories::Created);
        std::fs::create_dir(git.path().join("hooks")).unwrap();
        std::fs::write(git.path().join("hooks/pre-commit.sample"), "").unwrap();
        assert_eq!(of(&asks), Repositories::Created);
        std::fs::write(git.path().join("config"), "[core]\n\thooksPath = .husky\n").unwrap();
        assert_eq!(of(&asks), Repositories::Refused);
        std::fs::write(git.path().join("config"), "").unwrap();
        std::fs::write(git.path().join("hooks/pre-commit"), "").unwrap();
        assert_eq!(of(&asks), Repositories::Refused);
        assert_eq!(super::of(&asks, None, || true), Repositories::Refused);
    }

    #[test]
    fn only_git_alone_creates_repositories() {
        for line in [
            "git clone -q http://host/repo.git cloned && cat cloned/file",
            "git init sub",
            "git --version > /dev/null 2>&1 || exit 0; git clone url",
            "cd deps && git clone --depth 1 --branch=main https://host/repo 2>&1 | tail -n 5",
            "git submodule add ./lib lib",
            "set -e\ngit clone 'a b' \"c d\"",
            "git --version > /dev/null || { echo no git; exit; }; git clone url && cat repo/file",
        ] {
            check(line, Repositories::Created);
        }
        for line in [
            "git add -A && git stash -qu && git worktree add -q trees/one && echo worked > b",
            "git rebase -q HEAD~1 && git worktree add -q trees/one",
            "git worktree add -q -b other trees/other && (cd trees/other && echo x > x && git commit -qm x)",
        ] {
            check(line, Repositories::Worktrees);
        }
        for line in [
            "git clone url sub && python3 x.py",
            "git clone --config core.fsmonitor=x url sub",
            "git clone --conf core.fsmonitor=x url sub",
            "git clone \"--conf\" core.fsmonitor=x url sub",
            "git clone -c core.fsmonitor=x url sub",
            "git clone -qc core.fsmonitor=x url sub",
            "git clone --template=/tmp/x url",
            "git clone --templa=/tmp/x url",
            "git init --te=x",
            "git clone --upload-pack=./up url",
            "git clone -u ./up url",
            "git clone -qu./up url",
            "git clone --sep=gd url",
            "git clone ext::sh url",
            "git clone *",
            "git clone {--config=a.b=c,url}",
            "git clone { --config a.b=c url",
            "{ ./evil; }; git clone url",
            "git init sub > sub/.git/config",
            "git init sub; cat cfg > sub/.gi*/config",
            "git init sub && > sub/.git/config",
            "git init sub; mkdir 1; cat cfg >&1/../sub/.git/config",
            "git init sub && echo x > y",
            "git init $(./evil)",
            "PATH=$PWD/bin; git clone -q url",
            "PATH=bin git clone url",
            "PATH=bin; git clone url",
            "set -a; GIT_TEMPLATE_DIR=tpl; git clone url",
            "set -a; git clone url",
            "HOME=x; git clone url",
            "git -c alias.clone=!x clone y",
            "git init sub; git rebase -qx ./evil HEAD",
            "git init sub; git fetch --upl=./evil .",
            "git init sub; git log --format=x --outp=sub/.git/config",
            "git init sub; git submodule foreach ./evil",
            "git worktree add t; echo x > t/.git",
            "git worktree add t; echo x > commondir",
            "git init sub & ./evil",
            "git init sub <<X\nX",
            "git init 'sub",
            "cat x",
            "python3 x.py",
            "",
        ] {
            check(line, Repositories::Refused);
        }
        assert_eq!(
            of(&[Ask::new("bash", vec!["git init x".to_owned()])], None, || false),
            Repositories::Refused
        );
        assert_eq!(of(&[ask("git init x"), ask("git init y")], None, || false), Repositories::Refused);
        assert_eq!(of(&[], None, || false), Repositories::Refused);
    }
}
