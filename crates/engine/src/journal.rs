//! The log file for clients and the server: one JSON object for each line, with a bounded size.
//!
//! Credentials are removed from every line.

mod operations;
pub(crate) mod reading;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, LazyLock, OnceLock};

use regex::Regex;
use serde_json::{Value, json};

use codewright_proto::Clock;

/// The size at which the file is renamed. One older file is kept.
const MAX_FILE_BYTES: u64 = 4 * 1024 * 1024;
/// The longest line in bytes.
const MAX_LINE_BYTES: usize = 16 * 1024;

/// Patterns of credentials in headers, URLs and JSON, and of the keys of many providers.
static SECRETS: LazyLock<Regex> = LazyLock::new(|| {
    let pattern = r#"(?ix)
        (?<kept> \b(?:bearer|basic)\s+ )[a-z0-9+/_=.~-]{12,}
        | (?<field> [a-z_-]*(?:api[_-]?key|token|secret|password|authorization)[a-z_-]*
            \\?"\s*:\s*\\?" )[^"\\]{4,}
        | (?<named> [a-z_-]*(?:key|token|secret|password)[a-z_-]*= )[^\s"\\&,}]{4,}
        | (?<header> \b(?:x-)?api-key:\s* )[^\s"\\,}]{4,}
        | (?<keyed> \b(?:sk|pk|ghp|gho|ghu|ghs|glpat|xox[abps]|hf|gsk|xai|aiza|akia)[_-]?)[a-z0-9_-]{16,}
        | (?<user> ://[^\s/:@"]*: )[^\s/@"]+@"#;
    Regex::new(pattern).expect("the pattern is right")
});

tokio::task_local! {
    /// The id of the request that the current task works on.
    static REQUEST: String;
}

/// Runs work on behalf of a request. Lines that it writes have the id of the request.
pub async fn within_request<T>(id: String, work: impl Future<Output = T>) -> T {
    REQUEST.scope(id, work).await
}

/// Returns the id of the request that the current task works on.
#[must_use]
pub fn current_request() -> Option<String> {
    REQUEST.try_with(Clone::clone).ok()
}

/// Gives work that another task runs the request of the current task.
pub fn carry_request<T>(work: impl Future<Output = T>) -> impl Future<Output = T> {
    let id = REQUEST.try_with(Clone::clone).ok();
    // Boxed, because the future below would hold it once for each case.
    let work = Box::pin(work);
    async move {
        match id {
            Some(id) => REQUEST.scope(id, work).await,
            None => work.await,
        }
    }
}

/// The level of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Every request.
    Debug,
    /// Normal operation.
    Info,
    /// A problem that needs attention.
    Warn,
    /// A failure.
    Error,
}

impl Level {
    const ALL: [Self; 4] = [Self::Debug, Self::Info, Self::Warn, Self::Error];

    /// Parses a level in upper or lower case.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.name().eq_ignore_ascii_case(name))
    }

    fn name(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Warn => "warn",
            Self::Error => "error",
        }
    }
}

/// The log file. It is created with the first line.
pub(crate) struct Journal {
    clock: Clock,
    path: PathBuf,
    /// Lines of a lower level are not written.
    least: AtomicU8,
    /// Whether lines are printed too.
    is_shown: AtomicBool,
    /// The name of the server, which its lines contain.
    node: OnceLock<String>,
}

impl Journal {
    pub(crate) fn new(state: &Path, clock: Clock) -> Self {
        let path = state.join("log").join("codewright.log");
        let (least, is_shown) = (AtomicU8::new(Level::Info as u8), AtomicBool::new(false));
        Self { clock, path, least, is_shown, node: OnceLock::new() }
    }

    /// Writes a line. A failure to write is ignored, because logging must not fail the caller.
    pub(crate) async fn note(
        self: &Arc<Self>,
        level: Level,
        service: &str,
        message: &str,
        extra: Option<Value>,
    ) {
        if !self.takes(level) {
            return;
        }
        let origin = Origin {
            node: self.node.get().map(String::as_str),
            request: REQUEST.try_with(Clone::clone).ok(),
        };
        let words = Words { level, service, message };
        let line = line(self.clock.now_ms(), &origin, words, extra);
        let journal = Arc::clone(self);
        // A full disk or the end of the program is not the caller's failure.
        drop(tokio::task::spawn_blocking(move || journal.append(&line)).await);
    }

    fn takes(&self, level: Level) -> bool {
        level as u8 >= self.least.load(Ordering::Relaxed)
    }

    fn append(&self, line: &str) -> std::io::Result<()> {
        if self.is_shown.load(Ordering::Relaxed) {
            std::io::stderr().write_all(line.as_bytes())?;
        }
        if let Some(above) = self.path.parent() {
            codewright_workspace::make_private_directory(above)?;
        }
        if std::fs::metadata(&self.path).is_ok_and(|file| file.len() > MAX_FILE_BYTES) {
            std::fs::rename(&self.path, self.path.with_extension("log.old"))?;
        }
        let mut options = codewright_workspace::private_file();
        options.create(true).append(true);
        // One write, so that lines of several processes do not mix.
        options.open(&self.path)?.write_all(line.as_bytes())
    }
}

/// Where a line comes from.
#[derive(Default)]
struct Origin<'a> {
    /// The name of the server.
    node: Option<&'a str>,
    /// The id of the request.
    request: Option<String>,
}

/// What a line says.
#[derive(Clone, Copy)]
struct Words<'a> {
    level: Level,
    service: &'a str,
    message: &'a str,
}

fn line(time: u64, origin: &Origin<'_>, words: Words<'_>, extra: Option<Value>) -> String {
    let Words { level, service, message } = words;
    let mut line = json!({ "time": time, "level": level.name(), "service": service, "message": message });
    if let Some(node) = origin.node {
        line["node"] = node.into();
    }
    if let Some(request) = &origin.request {
        line["request"] = request.as_str().into();
    }
    if let Some(extra) = extra {
        line["extra"] = extra;
    }
    let line = line.to_string();
    let mut line = if line.len() > MAX_LINE_BYTES {
        json!({ "time": time, "level": level.name(), "message": "a line that was too long" }).to_string()
    } else {
        hide_credentials(&line)
    };
    line.push('\n');
    line
}

/// Returns a text without the credentials that have a known form.
#[must_use]
pub fn hide_credentials(text: &str) -> String {
    SECRETS.replace_all(text, "${kept}${field}${named}${header}${keyed}${user}[secret]").into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(level: Level, message: &str) -> Words<'_> {
        Words { level, service: "test", message }
    }

    #[track_caller]
    fn check(message: &str, extra: Value, gone: &str) {
        let line = line(1, &Origin::default(), words(Level::Warn, message), Some(extra));
        assert!(!line.contains(gone) && line.contains("[secret]"), "{line}");
        assert!(serde_json::from_str::<Value>(&line).is_ok(), "{line}");
    }

    #[test]
    fn credentials_are_taken_out_of_lines() {
        let key = "abcDEF0123456789xyz";
        check(&format!("sent Authorization: Bearer {key}"), json!({}), key);
        check(&format!("GET /x?auth_token={key}&b=1"), json!({}), key);
        check("no words", json!({ "apiKey": key }), key);
        check("no words", json!({ "headers": { "x-api-key": key } }), key);
        check(&format!(r#"they said {{"access_token": "{key}"}}"#), json!({}), key);
        check("no words", json!({ "headers": { "Authorization": format!("Bearer {key}") } }), key);
        check(&format!("x-api-key: {key}"), json!({}), key);
        check(&format!("the key sk-{key} was refused"), json!({}), key);
        check(&format!("http://user:{key}@host/path"), json!({}), key);
    }

    #[test]
    fn ordinary_words_stay() {
        let line = line(1, &Origin::default(), words(Level::Info, "a token of 20 tokens: basic work"), None);
        assert!(!line.contains("[secret]"), "{line}");
    }

    #[test]
    fn a_line_has_its_bound() {
        let line = line(1, &Origin::default(), words(Level::Info, &"a".repeat(MAX_LINE_BYTES)), None);
        assert!(line.len() < 200 && line.contains("too long"), "{line}");
    }

    #[test]
    fn names_of_levels_are_known_in_any_case() {
        for (name, expected) in [("DEBUG", Some(Level::Debug)), ("warn", Some(Level::Warn)), ("loud", None)] {
            assert_eq!(Level::parse(name), expected, "{name}");
        }
        assert!(Level::Debug < Level::Info && Level::Warn < Level::Error);
    }
}
