//! Replaces `{env:NAME}` and `{file:path}` in the strings of a document.
//!
//! An unset variable becomes an empty string. The text of a file is trimmed; a missing file is an error. Inserted text is
//! not searched for references.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{Kind, Node};
use crate::{
    ControlFiles, Env, FileProblem, Map, env, file,
    secrets::{ExpandedText, Exposure, Secrets},
};

/// The most bytes that are inserted into one document.
const MAX_INSERTED_BYTES: u64 = 4 * file::MAX_FILE_BYTES;

/// The sources of inserted values, and the remaining size limit.
pub(crate) struct Inserter<'a> {
    env: &'a Env,
    files: Files<'a>,
    left_bytes: u64,
    /// The names of the keys above the present string.
    path: Vec<String>,
    /// References that a repository cannot use, with the reasons. They become empty strings.
    pub(crate) rejected: Vec<(String, String)>,
    /// The inserted values, and the variables that have them.
    pub(crate) secrets: Secrets,
    /// The files of the user that were inserted, which may contain secrets.
    pub(crate) inserted: Vec<PathBuf>,
}

/// The files that may be inserted.
enum Files<'a> {
    /// Any file, relative to the home or to a directory.
    Any { home: &'a Path, base: &'a Path },
    /// The files of a repository that were read with its document.
    Repository { control: &'a ControlFiles, document: &'a Path, users: &'a Secrets },
}

/// A reference that could not be resolved.
pub(crate) struct FailedReference {
    pub(crate) offset: usize,
    pub(crate) reference: String,
    pub(crate) problem: FileProblem,
}

impl<'a> Inserter<'a> {
    /// Inserts from `env`, and from files relative to `base`.
    pub(crate) fn new(env: &'a Env, home: &'a Path, base: &'a Path) -> Self {
        Self {
            env,
            files: Files::Any { home, base },
            left_bytes: MAX_INSERTED_BYTES,
            path: Vec::new(),
            rejected: Vec::new(),
            secrets: Secrets::default(),
            inserted: Vec::new(),
        }
    }

    /// Inserts into the document of a trusted repository: variables without credentials and without the secrets of the
    /// user's configuration, and files inside the worktree.
    pub(crate) fn of_repository(
        env: &'a Env,
        control: &'a ControlFiles,
        document: &'a Path,
        users: &'a Secrets,
    ) -> Self {
        let files = Files::Repository { control, document, users };
        Self { files, ..Self::new(env, document, document) }
    }

    /// Replaces the references in all strings of `node`. Keys are not changed.
    pub(crate) fn fill(&mut self, node: &mut Node) -> Result<(), FailedReference> {
        match &mut node.kind {
            Kind::Null | Kind::Switch(_) | Kind::Number(_) => Ok(()),
            Kind::Text(text) => {
                *text = self.expand(text, node.offset)?;
                Ok(())
            }
            Kind::List(entries) => entries.iter_mut().try_for_each(|entry| self.fill(entry)),
            Kind::Object(entries) => entries.iter_mut().try_for_each(|(key, entry)| {
                self.path.push(key.clone());
                let filled = self.fill(entry);
                self.path.pop();
                filled
            }),
        }
    }

    fn expand(&mut self, text: &str, offset: usize) -> Result<String, FailedReference> {
        let mut expanded = ExpandedText::default();
        let mut done = 0;
        for (start, end) in pairs(text) {
            let reference = text.get(start..end).and_then(Reference::parse);
            let Some(reference) = reference.filter(|_| start >= done) else { continue };
            let written = text.get(start..end).unwrap_or_default();
            let failed = |problem| FailedReference { offset, reference: written.to_owned(), problem };
            let (value, exposure) = self.value(reference).map_err(failed)?;
            self.left_bytes = self
                .left_bytes
                .checked_sub(value.len() as u64)
                .ok_or_else(|| failed(FileProblem::TooLarge { limit_bytes: MAX_INSERTED_BYTES }))?;
            expanded.push(text.get(done..start).unwrap_or_default());
            expanded.insert(&value, exposure);
            self.secrets.add_value(&value, exposure);
            done = end;
        }
        if done == 0 {
            return Ok(text.to_owned());
        }
        expanded.push(text.get(done..).unwrap_or_default());
        let text = expanded.text.clone();
        self.secrets.add_text(expanded);
        Ok(text)
    }

    /// The value of a reference, and who may see it.
    fn value(&mut self, reference: Reference<'_>) -> Result<(String, Exposure), FileProblem> {
        match reference {
            Reference::Env(name) => {
                if let Some(reason) = self.refusal(name) {
                    self.rejected.push((format!("{{env:{name}}}"), reason));
                    return Ok((String::new(), Exposure::Everybody));
                }
                let value = self.env.get(name).unwrap_or_default();
                let exposure = Exposure::of_variable(name, value, &self.path);
                if exposure == Exposure::Nobody {
                    self.secrets.add_variable(name, &self.path.join("."));
                }
                Ok((value.to_owned(), exposure))
            }
            Reference::File(path) => {
                let Some(text) = self.file(path)? else {
                    let reason = "a repository cannot use it".to_owned();
                    self.rejected.push((format!("{{file:{path}}}"), reason));
                    return Ok((String::new(), Exposure::Everybody));
                };
                let exposure = match self.files {
                    Files::Any { .. } => Exposure::of_file(&self.path),
                    // Who may see the configuration may also see the files of the repository.
                    Files::Repository { .. } => Exposure::Everybody,
                };
                Ok((text.strip_prefix('\u{feff}').unwrap_or(&text).trim().to_owned(), exposure))
            }
        }
    }

    /// The reason why a document cannot use a variable.
    fn refusal(&self, name: &str) -> Option<String> {
        let Files::Repository { users, .. } = self.files else { return None };
        if env::is_inherited(name) && !env::is_credential(name) && self.is_in_environment() {
            return None;
        }
        let used = users.key_of(name);
        used.map(|key| format!("your configuration uses it as a secret in `{key}`"))
            .or_else(|| self.env.reserved(name).map(str::to_owned))
    }

    /// Whether the present string is a variable of a local program.
    fn is_in_environment(&self) -> bool {
        let path: Vec<&str> = self.path.iter().map(String::as_str).collect();
        matches!(path[..], ["mcp" | "formatter", _, "environment", _] | ["lsp", _, "env", _])
    }

    /// The text of a file; `None` if a repository cannot read it.
    fn file(&mut self, written: &str) -> Result<Option<String>, FileProblem> {
        match self.files {
            Files::Any { home, base } => {
                let path = self.path(written, home, base);
                self.inserted.push(path.clone());
                file::read(&path).map(Some)
            }
            Files::Repository { control, document, .. } => {
                let path = control.inserted_path(document, written);
                let text = path.and_then(|path| control.text(&path));
                match text {
                    Some(Ok(text)) => Ok(Some(text.to_owned())),
                    None | Some(Err(FileProblem::Outside | FileProblem::Foreign)) => Ok(None),
                    Some(Err(problem)) => Err(problem),
                }
            }
        }
    }

    /// Resolves a path, which may contain variables: `{file:{env:SECRETS}/key}`.
    fn path(&self, written: &str, home: &Path, base: &Path) -> PathBuf {
        let mut path = String::new();
        let mut rest = written;
        while let Some((before, from)) = rest.split_once("{env:") {
            let Some((name, after)) = from.split_once('}') else { break };
            path.push_str(before);
            path.push_str(self.env.get(name).unwrap_or_default());
            rest = after;
        }
        path.push_str(rest);
        match path.trim().strip_prefix("~/") {
            Some(below) => home.join(below),
            None => base.join(path.trim()),
        }
    }
}

/// The names of the variables that a document references, without duplicates.
pub(crate) fn variables(document: &Map) -> Vec<String> {
    collected(document, |reference| match reference {
        Reference::Env(name) => Some(name),
        Reference::File(_) => None,
    })
}

/// The paths of the files that a document references, without duplicates.
pub(crate) fn references(document: &Map) -> Vec<String> {
    collected(document, |reference| match reference {
        Reference::Env(_) => None,
        Reference::File(path) => Some(path),
    })
}

fn collected(document: &Map, choose: impl Fn(Reference<'_>) -> Option<&str>) -> Vec<String> {
    let mut open: Vec<&Value> = document.values().collect();
    let mut found = Vec::new();
    while let Some(value) = open.pop() {
        match value {
            Value::String(text) => {
                for (start, end) in pairs(text) {
                    let reference = text.get(start..end).and_then(Reference::parse);
                    if let Some(name) = reference.and_then(&choose)
                        && !found.iter().any(|known| known == name)
                    {
                        found.push(name.to_owned());
                    }
                }
            }
            Value::Array(entries) => open.extend(entries),
            Value::Object(entries) => open.extend(entries.values()),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    found
}

enum Reference<'a> {
    Env(&'a str),
    File(&'a str),
}

impl<'a> Reference<'a> {
    /// Parses text in braces.
    fn parse(braced: &'a str) -> Option<Self> {
        let (kind, name) = braced.strip_prefix('{')?.strip_suffix('}')?.split_once(':')?;
        match kind {
            "env" if !name.is_empty() => Some(Self::Env(name)),
            "file" if !name.is_empty() => Some(Self::File(name)),
            _ => None,
        }
    }
}

/// Finds every pair of braces in one pass, outer pairs first.
fn pairs(text: &str) -> Vec<(usize, usize)> {
    let (mut open, mut pairs) = (Vec::new(), Vec::new());
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'{' => open.push(at),
            b'}' => pairs.extend(open.pop().map(|start| (start, at + 1))),
            _ => {}
        }
    }
    pairs.sort_unstable();
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("key"), "  \"quoted\"\n{env:NAME}\n\n").unwrap();
        let env = Env::from_pairs([("NAME", "ann"), ("FILE", "key")]);
        let mut inserter = Inserter::new(&env, dir.path(), dir.path());
        let expanded = inserter.expand(text, 0).unwrap_or_else(|failed| panic!("{}", failed.problem));
        assert_eq!(expanded, expected);
    }

    #[test]
    fn references_are_replaced() {
        check("Bearer {env:NAME}!", "Bearer ann!");
        check("{env:NAME}{env:NAME}", "annann");
        check("[{env:UNSET}]", "[]");
        check("{file:key}", "\"quoted\"\n{env:NAME}");
        check("{file:~/key}", "\"quoted\"\n{env:NAME}");
        check("{file:./{env:FILE}}.", "\"quoted\"\n{env:NAME}.");
    }

    #[test]
    fn other_braces_are_unchanged() {
        for text in ["{}", "{env:}", "{file:}", "{env:NAME", "{file:{a}", "{other:x}", "a{", "{{}}", "{ä}"] {
            check(text, text);
        }
        check("{{env:NAME}}", "{ann}");
    }

    #[test]
    fn inserted_text_is_bounded() {
        let env = Env::from_pairs([("BIG", "x".repeat(1024 * 1024))]);
        let mut inserter = Inserter::new(&env, Path::new("/"), Path::new("/"));
        assert!(inserter.expand(&"{env:BIG}".repeat(4), 0).is_ok());
        let Err(failed) = inserter.expand("{env:BIG}", 7) else { panic!("five times a megabyte") };
        assert_eq!((failed.offset, failed.reference.as_str()), (7, "{env:BIG}"));
        assert!(matches!(failed.problem, FileProblem::TooLarge { .. }));
    }
}
