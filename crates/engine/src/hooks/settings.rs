//! Reads the hooks of a directory from all documents that contain them.

use std::path::Path;

use codewright_config::{Config, ControlFiles, LoadInput, Parts, env, parse_document};
use serde_json::Value;

use super::{Author, Document, Hooks};

/// The user's settings of Claude Code, below the home directory.
const USERS: &str = ".claude/settings.json";
/// The key that switches the user's hooks of Claude Code on.
const SWITCH: &str = "claude_hooks";
/// The largest settings.
const MAX_BYTES: u64 = 1024 * 1024;

/// Returns the hooks of a configuration, of the trusted repository's `.claude` directory and, if the user's configuration
/// says so, of the user's.
pub(crate) fn hooks(
    input: LoadInput<'_>,
    config: &Config,
    parts: Option<&Parts>,
    trusted: Option<&ControlFiles>,
    warnings: &mut Vec<String>,
) -> Hooks {
    let mut documents = Vec::new();
    if !input.env.is_on(env::DISABLE_CLAUDE_CODE) {
        let user = parts.map_or(&config.raw, |parts| &parts.user.raw);
        if user.get(SWITCH) == Some(&Value::Bool(true)) {
            documents.extend(users(&input.dirs.home.join(USERS), warnings));
        }
        for (path, text) in trusted.into_iter().flat_map(ControlFiles::hook_files) {
            let text = text.map_err(|problem| problem.to_string());
            documents.extend(document(path, text, Author::Repository, warnings));
        }
    }
    Hooks::read(&config.raw, parts, &documents, warnings)
}

fn users(path: &Path, warnings: &mut Vec<String>) -> Option<Document> {
    let metadata = path.metadata().ok()?;
    let text = if metadata.is_file() && metadata.len() <= MAX_BYTES {
        std::fs::read_to_string(path).map_err(|error| error.to_string())
    } else {
        Err("it is not a file of at most 1 MiB".to_owned())
    };
    document(path, text, Author::User, warnings)
}

fn document(
    path: &Path,
    text: Result<impl AsRef<str>, String>,
    author: Author,
    warnings: &mut Vec<String>,
) -> Option<Document> {
    let name = path.display().to_string();
    let parsed =
        text.and_then(|text| parse_document(&name, text.as_ref()).map_err(|error| error.to_string()));
    match parsed {
        Ok(content) => Some(Document { content, author, name }),
        Err(reason) => {
            warnings.push(format!("the hooks in `{name}` are ignored: {reason}"));
            None
        }
    }
}
