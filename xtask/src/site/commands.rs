//! Checks the command lines in the documents: each command and flag must be in the list of the command line.

use std::collections::{BTreeMap, BTreeSet};

/// The commands with their flags, from `docs/cli.md`.
pub(super) struct Commands {
    flags: BTreeMap<String, BTreeSet<String>>,
}

impl Commands {
    pub(super) fn read(markdown: &str) -> Self {
        let mut flags: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        let mut command = String::new();
        for line in markdown.lines() {
            if let Some(name) = line.strip_prefix("## `").and_then(|rest| rest.strip_suffix('`')) {
                name.clone_into(&mut command);
                flags.entry(command.clone()).or_default();
            } else if line.starts_with("## ") {
                // The flags of every command.
                command.clear();
            } else if let Some(cell) = line.strip_prefix("| `").and_then(|rest| rest.split('`').next()) {
                let known = flags.entry(command.clone()).or_default();
                let words = cell.split([' ', ',']).filter(|word| word.starts_with('-'));
                known.extend(words.map(str::to_owned));
            }
        }
        Self { flags }
    }

    /// Returns the first problem of a block of shell commands.
    pub(super) fn problem(&self, script: &str) -> Option<String> {
        script.lines().find_map(|line| {
            // A comment starts after two spaces, a pipe or a list starts another command.
            let line = line.split("  #").next().unwrap_or_default();
            let commands = line.split(['|', ';']).flat_map(|piece| piece.split("&&"));
            commands.filter_map(|piece| piece.split_once("codewright ")).find_map(|(before, arguments)| {
                let is_command = before.split_whitespace().all(|word| word.contains('='));
                if is_command { self.line_problem(arguments) } else { None }
            })
        })
    }

    fn line_problem(&self, arguments: &str) -> Option<String> {
        let words = words(arguments);
        let mut command = "codewright".to_owned();
        for (position, word) in words.iter().enumerate() {
            if *word == "--" {
                break;
            } else if let Some(flag) =
                word.split('=').next().filter(|word| word.starts_with('-') && word.len() > 1)
            {
                let is_common = matches!(flag, "--help" | "-h" | "--version" | "-V");
                if !is_common && !self.has_flag(&command, flag) {
                    return Some(format!("`{command}` has no flag `{flag}` (`codewright {arguments}`)"));
                }
            } else {
                let below = format!("{command} {word}");
                if self.flags.contains_key(&below) {
                    command = below;
                } else if position == 0 && word.chars().all(|char| char.is_ascii_lowercase()) {
                    return Some(format!("there is no command `codewright {word}`"));
                }
            }
        }
        None
    }

    /// Whether a command has a flag, or one of the commands above it or every command has.
    fn has_flag(&self, command: &str, flag: &str) -> bool {
        let above = command.rsplit_once(' ').map_or("", |(above, _)| above);
        self.flags.get(command).is_some_and(|flags| flags.contains(flag))
            || (!command.is_empty() && self.has_flag(above, flag))
    }
}

/// Splits a command line into words. A text in quotes is one word without flags.
fn words(line: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for (position, piece) in line.split(['"', '\'']).enumerate() {
        if position % 2 == 0 {
            found.extend(piece.split_whitespace().take_while(|word| !matches!(*word, ">" | "2>" | "<")));
        } else {
            found.push("…");
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = "## `codewright`\n\n| `--store URL` | x |\n| `-c, --continue` | x |\n\n## `codewright run`\n\n\
        | `-m, --model NAME` | x |\n\n## `codewright mcp add`\n\n| `--url URL` | x |\n\n\
        ## Every command\n\n| `--debug` | x |\n";

    #[track_caller]
    fn check(script: &str, expected: Option<&str>) {
        let found = Commands::read(LIST).problem(script);
        match expected {
            None => assert_eq!(found, None, "{script}"),
            Some(part) => {
                assert!(found.as_ref().is_some_and(|found| found.contains(part)), "{script}: {found:?}");
            }
        }
    }

    #[test]
    fn known_commands_are_accepted() {
        check("codewright\ncodewright -c   # continue\n", None);
        check("git diff | codewright run -m a/b \"--nonsense\" > x --y\n", None);
        check("A=b codewright run --store x 'codewright nonsense'\n", None);
        check("cd codewright nonsense\necho codewright nonsense\n", None);
        check("codewright run --help && codewright --version --debug\n", None);
    }

    #[test]
    fn unknown_commands_and_flags_are_found() {
        check("codewright nonsense\n", Some("no command `codewright nonsense`"));
        check("codewright run --nonsense=1\n", Some("`codewright run` has no flag `--nonsense`"));
        check("true && codewright run --url x\n", Some("`--url`"));
        check("codewright mcp add a -- x --nonsense\n", Some("no command `codewright mcp`"));
    }
}
