//! Tests that the documentation matches the command line.

use std::fs;
use std::path::{Path, PathBuf};

use clap::error::ErrorKind;
use clap::{Arg, Command, CommandFactory as _, Parser as _};

use crate::cli::Cli;

/// The options that every command accepts. The page lists them once.
const COMMON: [&str; 6] = ["print_logs", "log_level", "pure", "sandbox", "version", "help"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The page `docs/cli.md`.
fn page() -> String {
    let mut command = Cli::command();
    command.build();
    let mut page = String::from(
        "# Command line\n\n\
         This page is generated from the definition of the command line. `codewright COMMAND --help` prints the same\n\
         texts. See [commands](commands.md) for output, exit codes and details.\n",
    );
    let common: Vec<_> = command
        .get_arguments()
        .filter(|arg| COMMON.contains(&arg.get_id().as_str()))
        .chain(command.find_subcommand("run").into_iter().flat_map(Command::get_arguments))
        .filter(|arg| COMMON.contains(&arg.get_id().as_str()))
        .collect();
    add_command(&mut page, &command);
    page.push_str(
        "\n## Common options\n\nMost commands accept these options.\n\n| option | meaning |\n|---|---|\n",
    );
    let mut listed: Vec<&str> = Vec::new();
    for arg in common {
        if !listed.contains(&arg.get_id().as_str()) {
            listed.push(arg.get_id().as_str());
            page.push_str(&row(arg));
        }
    }
    page
}

/// Adds a section for a command and its subcommands.
fn add_command(page: &mut String, command: &Command) {
    let mut command = command.clone();
    let usage = command.render_usage().to_string();
    let name = command.get_bin_name().unwrap_or(command.get_name()).to_owned();
    let usage: Vec<_> = usage.trim_start_matches("Usage:").lines().map(str::trim).collect();
    let usage = usage.join("\n");
    page.push_str(&format!("\n## `{name}`\n\n"));
    if let Some(about) = command.get_about() {
        page.push_str(&format!("{about}.\n\n"));
    }
    let aliases: Vec<_> = command.get_visible_aliases().map(|alias| format!("`{alias}`")).collect();
    if !aliases.is_empty() {
        page.push_str(&format!("Alias: {}.\n\n", aliases.join(", ")));
    }
    page.push_str(&format!("```\n{usage}\n```\n"));
    let is_listed = |arg: &&Arg| !arg.is_hide_set() && !COMMON.contains(&arg.get_id().as_str());
    let rows: String = command.get_arguments().filter(is_listed).map(row).collect();
    if !rows.is_empty() {
        page.push_str(&format!("\n| argument | meaning |\n|---|---|\n{rows}"));
    }
    for subcommand in command.get_subcommands().filter(|subcommand| subcommand.get_name() != "help") {
        add_command(page, subcommand);
    }
}

/// The table row of an argument.
fn row(arg: &Arg) -> String {
    let value = arg.get_value_names().map(|names| names.join(" ")).unwrap_or_default();
    let is_optional = arg.get_num_args().is_some_and(|count| count.min_values() == 0);
    let takes_value = arg.get_action().takes_values();
    let names = match (arg.get_short(), arg.get_long()) {
        (Some(short), Some(long)) => format!("-{short}, --{long}"),
        (None, Some(long)) => format!("--{long}"),
        (Some(short), None) => format!("-{short}"),
        (None, None) if arg.is_required_set() => format!("<{value}>"),
        (None, None) => format!("[{value}]"),
    };
    let value = match (arg.is_positional() || !takes_value, is_optional) {
        (true, _) => String::new(),
        (false, true) => format!(" [{value}]"),
        (false, false) => format!(" {value}"),
    };
    let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
    let values: Vec<_> =
        arg.get_possible_values().iter().map(|value| format!("`{}`", value.get_name())).collect();
    let values =
        if takes_value && !values.is_empty() { format!(" ({})", values.join(", ")) } else { String::new() };
    let defaults: Vec<_> =
        arg.get_default_values().iter().map(|value| format!("`{}`", value.to_string_lossy())).collect();
    let default = if takes_value && !defaults.is_empty() {
        format!(". Default: {}", defaults.join(", "))
    } else {
        String::new()
    };
    // A vertical bar would end the cell.
    let names = names.replace('|', "\\|");
    format!("| `{names}{value}` | {help}{values}{default} |\n")
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a switch of the test, not configuration of the program")]
fn the_page_of_the_command_line_is_current() {
    let path = root().join("docs/cli.md");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&path, page()).unwrap();
    }
    assert_eq!(fs::read_to_string(path).unwrap(), page(), "run this test with UPDATE_DOCS=1");
}

#[test]
fn command_lines_in_the_documentation_are_valid() {
    let mut pages = vec![root().join("README.md"), root().join("examples/README.md")];
    add_pages(&root().join("docs"), &mut pages);
    let mut count = 0;
    for path in pages {
        let text = fs::read_to_string(&path).unwrap_or_default();
        for words in fenced_lines(&text).iter().flat_map(|line| commands(line)) {
            count += 1;
            if let Err(error) = Cli::try_parse_from(&words) {
                let is_help = error.kind() == ErrorKind::DisplayHelp;
                assert!(is_help, "{}: `{}`: {error}", path.display(), words.join(" "));
            }
        }
    }
    assert!(count > 20, "only {count} command lines were found");
}

/// Adds the Markdown files of a directory.
fn add_pages(directory: &Path, pages: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            add_pages(&path, pages);
        } else if path.extension().is_some_and(|extension| extension == "md") && !path.ends_with("cli.md") {
            pages.push(path);
        }
    }
}

/// The lines in fenced blocks, with continued lines joined.
fn fenced_lines(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let (mut is_fenced, mut is_continued) = (false, false);
    for line in text.lines() {
        let line = line.trim();
        if line.starts_with("```") {
            (is_fenced, is_continued) = (!is_fenced, false);
        } else if is_fenced {
            let (line, continues) = match line.strip_suffix('\\') {
                Some(start) => (start, true),
                None => (line, false),
            };
            match lines.last_mut().filter(|_| is_continued) {
                Some(last) => last.push_str(line),
                None => lines.push(line.to_owned()),
            }
            is_continued = continues;
        }
    }
    lines
}

/// The words of each `codewright` command in a shell line.
fn commands(line: &str) -> Vec<Vec<String>> {
    let mut all = vec![Vec::new()];
    let mut word: Option<String> = None;
    let mut chars = line.trim_start_matches("$ ").chars().peekable();
    let finish = |word: &mut Option<String>, all: &mut Vec<Vec<String>>| {
        if let (Some(word), Some(words)) = (word.take(), all.last_mut()) {
            words.push(word);
        }
    };
    while let Some(char) = chars.next() {
        match char {
            '\'' | '"' => {
                let quoted: String = chars.by_ref().take_while(|next| *next != char).collect();
                word.get_or_insert_default().push_str(&quoted);
            }
            '#' if word.is_none() => break,
            '|' | ';' | '&' | '(' | ')' | '`' => {
                finish(&mut word, &mut all);
                all.push(Vec::new());
            }
            char if char.is_whitespace() => finish(&mut word, &mut all),
            char => word.get_or_insert_default().push(char),
        }
    }
    finish(&mut word, &mut all);
    all.into_iter().filter_map(command_words).collect()
}

/// The words of a command without variables and redirections, if it runs `codewright`.
fn command_words(words: Vec<String>) -> Option<Vec<String>> {
    let mut words = words.into_iter().skip_while(|word| word.contains('=') && !word.starts_with('-'));
    let first = words.next().filter(|first| first == "codewright")?;
    let mut kept = vec![first];
    while let Some(word) = words.next() {
        if word.trim_start_matches(['1', '2']).starts_with(['<', '>']) {
            // The target of a redirection is a separate word or the rest of this one.
            if word.ends_with(['<', '>']) {
                words.next();
            }
        } else {
            kept.push(word);
        }
    }
    Some(kept)
}

#[test]
fn commands_are_found_in_shell_lines() {
    let found = |line: &str| -> Vec<String> { commands(line).iter().map(|words| words.join("|")).collect() };
    assert_eq!(found("codewright run \"fix it\" # now"), ["codewright|run|fix it"]);
    assert_eq!(
        found("echo \"$KEY\" | A=1 codewright models > x.txt && codewright db"),
        ["codewright|models", "codewright|db"]
    );
    assert_eq!(found("cargo run -- demo"), Vec::<String>::new());
}
