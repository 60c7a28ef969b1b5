//! The first word of a command line without a command: a directory, a prompt or a mistake.
//!
//! A prompt is one argument that contains a space, so a misspelt command never becomes a prompt.

use std::ffi::OsString;
use std::path::Path;

use clap::error::ErrorKind;
use codewright_config::nearest;

use super::{Cli, definition};

/// Moves a prompt that was written in the place of the directory to the prompt of the terminal client.
///
/// # Errors
///
/// Fails if the word is neither a directory nor a prompt, with the nearest command.
pub(super) fn place_prompt(mut cli: Cli) -> Result<Cli, clap::Error> {
    let Some(word) = cli.tui.project.as_deref().filter(|_| cli.command.is_none()) else { return Ok(cli) };
    let Some(text) = word.to_str().filter(|text| !is_path(text)) else { return Ok(cli) };
    if !text.trim().contains(char::is_whitespace) {
        return Err(unknown(text, &[]));
    }
    cli.tui.message = Some(text.to_owned());
    cli.tui.project = None;
    Ok(cli)
}

/// Returns the error for a line that the parser refused, if its first word is no command: the parser takes this word for
/// a directory and complains about the next one.
pub(super) fn mistake(args: &[OsString], error: clap::Error) -> clap::Error {
    let words: Vec<_> = args.iter().skip(1).filter_map(|arg| arg.to_str()).collect();
    match words.split_first() {
        Some((first, rest))
            if matches!(error.kind(), ErrorKind::UnknownArgument | ErrorKind::InvalidSubcommand)
                && !first.starts_with('-')
                && !first.contains(char::is_whitespace)
                && !is_path(first)
                && !names().iter().any(|name| name == first) =>
        {
            unknown(first, rest)
        }
        _ => error,
    }
}

/// Reports whether a word names a directory, or is written like a path.
fn is_path(word: &str) -> bool {
    let is_written = !word.contains(char::is_whitespace) && word.contains(['/', '\\']);
    is_written || word.starts_with(['.', '~', '/']) || Path::new(word).is_dir()
}

fn unknown(word: &str, rest: &[&str]) -> clap::Error {
    let names = names();
    let similar = nearest(word, names.iter().map(String::as_str), 1);
    let message = match similar.first() {
        Some(similar) => format!("unknown command `{word}`; did you mean `{similar}`?"),
        None => {
            let words = rest.iter().take_while(|word| !word.starts_with('-'));
            let prompt = std::iter::once(&word).chain(words).copied().collect::<Vec<_>>().join(" ");
            format!(
                "`{word}` is neither a command nor a directory; to send a prompt, use `codewright run \"{prompt}\"`"
            )
        }
    };
    definition().error(ErrorKind::InvalidSubcommand, message)
}

/// The names of all commands, including aliases.
fn names() -> Vec<String> {
    let command = definition();
    let commands = command.get_subcommands();
    commands
        .flat_map(|it| std::iter::once(it.get_name()).chain(it.get_all_aliases()))
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_first_word_is_a_directory_a_prompt_or_an_error() {
        for (line, expected) in [
            (&["."][..], Ok(None)),
            (&["/"], Ok(None)),
            (&["no/such/directory"], Ok(None)),
            (&["fix the test"], Ok(Some("fix the test"))),
            (&["-m", "a/b", "fix the test"], Ok(Some("fix the test"))),
            (&["fix the test", "--auto"], Ok(Some("fix the test"))),
            (&["rum hi"], Ok(Some("rum hi"))),
            (&["rum"], Err("unknown command `rum`; did you mean `run`?")),
            (&["rum", "hi"], Err("unknown command `rum`; did you mean `run`?")),
            (&["sesion", "list"], Err("did you mean `session`?")),
            (&["auht", "login"], Err("did you mean `auth`?")),
            (&["zzqqxx"], Err("neither a command nor a directory")),
            (&["zzqqxx", "the", "test"], Err("codewright run \"zzqqxx the test\"")),
            (&["run", "hi", "--nosuch"], Err("unexpected argument '--nosuch'")),
        ] {
            let args: Vec<_> = ["codewright"].iter().chain(line).map(OsString::from).collect();
            let found = Cli::read(&args).map(|cli| cli.tui.message).map_err(|error| error.to_string());
            match expected {
                Ok(expected) => {
                    assert_eq!(found.ok().map(|text| text.as_deref() == expected), Some(true), "{line:?}");
                }
                Err(expected) => {
                    let error = found.expect_err(&line.join(" "));
                    assert!(error.contains(expected), "{line:?}: {error}");
                }
            }
        }
    }
}
