//! Reading the end of the log file, without secrets.
//!
//! Lines are written without credentials that have a known form. A reader also removes the credentials that this
//! program knows: those of the user's sign-ins, of the environment and of the configuration.

use std::io::{Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use codewright_llm::vault::{Credential, Stored};
use serde_json::Value;

use super::{Level, SECRETS};
use crate::Error;
use crate::interface::Log;
use crate::redact;

/// The part of the file that is read.
const MAX_READ_BYTES: u64 = 1024 * 1024;
/// The largest number of returned lines.
pub const MAX_LOG_LINES: usize = 1000;
/// Shorter values are ordinary words more often than secrets.
const MIN_SECRET_BYTES: usize = 4;
/// The replacement of a secret.
const REPLACEMENT: &str = "[secret]";

/// A selection of log lines.
#[derive(Debug, Clone, Copy)]
pub struct LogFilter {
    /// The number of lines, at most [`MAX_LOG_LINES`].
    pub limit: usize,
    /// The lowest level.
    pub least: Level,
}

impl Log<'_> {
    /// Returns the newest lines, oldest first, without the secrets of a configuration and without `others`.
    ///
    /// At most the last mebibyte of the file is read.
    pub async fn tail(self, filter: LogFilter, config: &Value, others: &[&str]) -> Result<Vec<Value>, Error> {
        let inner = self.0;
        let vault = inner.sign_in.vault().clone();
        let mut secrets: Vec<String> = inner.env.secrets().into_iter().map(str::to_owned).collect();
        secrets.extend(others.iter().map(|secret| (*secret).to_owned()));
        redact::secrets(config, &mut secrets);
        let path = inner.journal.path.clone();
        let read = move || -> Result<Vec<Value>, Error> {
            let stored = vault.read().map_err(|error| Error::machine(error.to_string()))?;
            secrets.extend(credentials(&stored));
            let text = end_of(&path).map_err(|error| Error::machine(format!("the log file: {error}")))?;
            Ok(select(&text, filter, &Secrets::new(secrets)))
        };
        let read = tokio::task::spawn_blocking(read).await;
        read.unwrap_or_else(|_| Err(Error::machine("the log file could not be read")))
    }
}

/// Returns the secrets of stored credentials.
fn credentials(stored: &Stored) -> Vec<String> {
    let mut found = Vec::new();
    for (_, credential, _) in stored.iter() {
        let extra = match credential {
            Credential::Api { key, extra } => {
                found.push(key.expose().to_owned());
                Some(extra)
            }
            Credential::OAuth(tokens) => {
                found.extend([tokens.access.expose().to_owned(), tokens.refresh.expose().to_owned()]);
                Some(&tokens.extra)
            }
            Credential::WellKnown { token, .. } => {
                found.push(token.expose().to_owned());
                None
            }
        };
        if let Some(extra) = extra {
            redact::secrets(&Value::Object(extra.clone()), &mut found);
        }
    }
    found
}

/// Returns the last part of a file from the start of a line on. A missing file is empty.
fn end_of(path: &Path) -> std::io::Result<String> {
    let mut options = std::fs::OpenOptions::new();
    // Opening a pipe must not block.
    options.read(true).custom_flags(rustix::fs::OFlags::NONBLOCK.bits().cast_signed());
    let mut file = match options.open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(String::new()),
        Err(error) => return Err(error),
    };
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Ok(String::new());
    }
    let start = metadata.len().saturating_sub(MAX_READ_BYTES);
    file.seek(SeekFrom::Start(start))?;
    let mut bytes = Vec::new();
    file.take(MAX_READ_BYTES).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    // The first line may be incomplete.
    let whole = if start == 0 { &*text } else { text.split_once('\n').map_or("", |(_, rest)| rest) };
    Ok(whole.to_owned())
}

/// Returns the newest lines that a filter selects, oldest first.
fn select(text: &str, filter: LogFilter, secrets: &Secrets) -> Vec<Value> {
    let is_selected = |line: &Value| {
        let level = line["level"].as_str().and_then(Level::parse);
        level.is_some_and(|level| level >= filter.least)
    };
    let lines = text.lines().rev().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut lines: Vec<Value> = lines.filter(is_selected).take(filter.limit.min(MAX_LOG_LINES)).collect();
    lines.reverse();
    lines.iter_mut().for_each(|line| secrets.remove(line));
    lines
}

/// The values that are removed from texts, the longest first, because one may contain another.
struct Secrets(Vec<String>);

impl Secrets {
    fn new(mut all: Vec<String>) -> Self {
        all.retain(|secret| secret.len() >= MIN_SECRET_BYTES);
        all.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        all.dedup();
        Self(all)
    }

    fn remove(&self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.without(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.remove(item)),
            Value::Object(entries) => {
                let all = std::mem::take(entries);
                entries.extend(all.into_iter().map(|(key, mut value)| {
                    self.remove(&mut value);
                    (self.without(&key), value)
                }));
            }
            Value::Number(_) | Value::Bool(_) | Value::Null => {}
        }
    }

    fn without(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for secret in &self.0 {
            if text.contains(secret.as_str()) {
                text = text.replace(secret.as_str(), REPLACEMENT);
            }
        }
        SECRETS.replace_all(&text, "${kept}${field}${named}${header}${keyed}${user}[secret]").into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(limit: usize) -> LogFilter {
        LogFilter { limit, least: Level::Debug }
    }

    #[test]
    fn the_newest_lines_are_selected_in_their_order() {
        let text = r#"{"level":"info","message":"1"}
not JSON
{"level":"warn","message":"2"}
{"level":"info","message":"3"}
"#;
        let messages = |filter| -> Vec<String> {
            let lines = select(text, filter, &Secrets::new(Vec::new()));
            lines.iter().map(|line| line["message"].as_str().unwrap().to_owned()).collect()
        };
        assert_eq!(messages(all(2)), ["2", "3"]);
        assert_eq!(messages(LogFilter { limit: 9, least: Level::Warn }), ["2"]);
        assert!(messages(all(0)).is_empty());
    }

    #[test]
    fn known_secrets_are_removed_from_keys_and_values() {
        let secrets = Secrets::new(vec!["hunter2".to_owned(), "hunter2-long".to_owned(), "abc".to_owned()]);
        let text =
            r#"{"level":"info","message":"a hunter2-long b","extra":{"hunter2":["x hunter2", "abc"]}}"#;
        let line = select(text, all(1), &secrets).remove(0).to_string();
        assert!(!line.contains("hunter2"), "{line}");
        assert!(line.contains("a [secret] b") && line.contains("abc"), "{line}");
    }

    #[test]
    fn only_the_end_of_a_long_file_is_read() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let line = format!("{}\n", "x".repeat(999));
        std::fs::write(file.path(), line.repeat(2000)).unwrap();
        let text = end_of(file.path()).unwrap();
        assert!(text.len() as u64 <= MAX_READ_BYTES && text.len() > 1_000_000, "{}", text.len());
        assert!(text.lines().all(|line| line.len() == 999));
        assert_eq!(end_of(Path::new("/nowhere/at/all")).unwrap(), "");
    }
}
