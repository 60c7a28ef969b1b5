//! The prompt of `run`: arguments, standard input and attached files.

use std::io::{IsTerminal as _, Read as _};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, bail};
use codewright_proto::{PartInput, media_type};

use super::MAX_TITLE_CHARS;
use crate::cli::RunArgs;
use crate::connection::working_directory;
use crate::style;

/// The longest standard input that is read.
const MAX_STDIN_BYTES: u64 = 16 * 1024 * 1024;
/// After this time without the end of standard input, a note says what the program waits for.
const STDIN_NOTICE: Duration = Duration::from_secs(3);
/// After this time the command fails.
const STDIN_DEADLINE: Duration = Duration::from_secs(10 * 60);

/// The prompt that resumes an interrupted turn if the user gives no other.
pub(super) const RESUME: &str = "Continue the work where it stopped. Calls marked as uncertain may have taken \
                                 effect: check before you repeat one.";

/// The message followed by standard input. Empty only if a session is continued or a command is run.
pub(super) async fn text(args: &RunArgs) -> anyhow::Result<String> {
    let message = join(&args.message);
    let piped = if std::io::stdin().is_terminal() { String::new() } else { stdin().await? };
    let text = match (message.is_empty(), piped.is_empty()) {
        (_, true) => message,
        (true, false) => piped,
        (false, false) => format!("{message}\n{piped}"),
    };
    let continues = args.continue_last || args.session.is_some();
    if text.trim().is_empty() && !continues && args.command.is_none() {
        bail!("You must provide a message or a command");
    }
    Ok(text)
}

/// Joins the arguments with spaces. A single argument is used as it is; of several, those with spaces are quoted.
fn join(words: &[String]) -> String {
    if let [message] = words {
        return message.clone();
    }
    let quote = |word: &String| {
        if word.contains(' ') { format!("\"{}\"", word.replace('"', "\\\"")) } else { word.clone() }
    };
    words.iter().map(quote).collect::<Vec<_>>().join(" ")
}

async fn stdin() -> anyhow::Result<String> {
    let read = tokio::task::spawn_blocking(|| {
        let mut bytes = Vec::new();
        std::io::stdin().lock().take(MAX_STDIN_BYTES + 1).read_to_end(&mut bytes).map(|_| bytes)
    });
    let mut read = std::pin::pin!(read);
    let done = match tokio::time::timeout(STDIN_NOTICE, &mut read).await {
        Ok(done) => done,
        Err(_) => {
            style::warning("waiting for the end of standard input; use </dev/null if there is no input");
            match tokio::time::timeout(STDIN_DEADLINE, read).await {
                Ok(done) => done,
                Err(_) => {
                    bail!("standard input did not end within {} minutes", STDIN_DEADLINE.as_secs() / 60)
                }
            }
        }
    };
    let bytes = done.context("reading standard input failed")?.context("cannot read standard input")?;
    if bytes.len() as u64 > MAX_STDIN_BYTES {
        bail!("standard input is longer than {} MiB; attach it with --file", MAX_STDIN_BYTES / (1024 * 1024));
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The parts of the prompt. Files are first, because the text refers to them.
pub(super) fn parts(args: &RunArgs, text: String) -> anyhow::Result<Vec<PartInput>> {
    let base = working_directory(None)?;
    let mut parts =
        args.file.iter().map(|path| file(&base.join(path))).collect::<anyhow::Result<Vec<_>>>()?;
    parts.push(PartInput::text(text));
    Ok(parts)
}

fn file(path: &Path) -> anyhow::Result<PartInput> {
    let metadata = std::fs::metadata(path).with_context(|| format!("File not found: {}", path.display()))?;
    let mime =
        if metadata.is_dir() { "application/x-directory" } else { media_type(&path.to_string_lossy()) };
    let filename = path.file_name().map(|name| name.to_string_lossy().into_owned());
    let url = format!("file://{}", escape(&path.to_string_lossy()));
    Ok(PartInput::File { id: None, mime: mime.to_owned(), filename, url, source: None, checked: None })
}

/// Escapes characters that would end the path of a URL.
fn escape(path: &str) -> String {
    path.replace('%', "%25").replace('?', "%3F").replace('#', "%23").replace(' ', "%20")
}

/// The prompt's first line, shortened to a title.
pub(super) fn title(parts: &[PartInput]) -> String {
    let text = parts.iter().find_map(|part| match part {
        PartInput::Text { text, .. } => Some(text.as_str()),
        PartInput::File { .. } | PartInput::Agent { .. } | PartInput::Subtask { .. } => None,
    });
    let line = text.unwrap_or_default().lines().next().unwrap_or_default();
    if line.chars().count() <= MAX_TITLE_CHARS {
        return line.to_owned();
    }
    line.chars().take(MAX_TITLE_CHARS).chain(['\u{2026}']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_argument_is_unchanged_and_several_are_quoted() {
        let words = |words: &[&str]| join(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>());
        assert_eq!(words(&["fix the \"test\""]), "fix the \"test\"");
        assert_eq!(words(&["fix", "this"]), "fix this");
        assert_eq!(words(&["rename", "a b", "to", "c"]), "rename \"a b\" to c");
        assert_eq!(words(&[]), "");
    }

    #[test]
    fn a_title_is_the_start_of_the_prompt() {
        assert_eq!(title(&[PartInput::text("short\nmore")]), "short");
        assert_eq!(title(&[PartInput::text("x".repeat(80))]).chars().count(), MAX_TITLE_CHARS + 1);
    }
}
