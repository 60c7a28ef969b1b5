//! Fills `{env:NAME}` and `{file:path}` into the strings of a document.
//!
//! An unset variable is the empty string; a file's text is trimmed, and a missing file is an error.
//! What is filled in is not looked through again.

use std::path::{Path, PathBuf};

use super::{Kind, Node};
use crate::{Env, FileProblem, file};

/// The most bytes that one document may have filled in.
const MAX_INSERTED_BYTES: u64 = 4 * file::MAX_FILE_BYTES;

/// Where the values come from, and how much more they may bring.
pub(crate) struct Inserter<'a> {
    env: &'a Env,
    home: &'a Path,
    base: &'a Path,
    left_bytes: u64,
}

/// A reference that could not be filled in.
pub(crate) struct Unfilled {
    pub(crate) offset: usize,
    pub(crate) reference: String,
    pub(crate) problem: FileProblem,
}

impl<'a> Inserter<'a> {
    /// Fills in from `env`, and from files relative to `base`.
    pub(crate) fn new(env: &'a Env, home: &'a Path, base: &'a Path) -> Self {
        Self { env, home, base, left_bytes: MAX_INSERTED_BYTES }
    }

    /// Fills in every string at or below `node`; keys stay as they are.
    pub(crate) fn fill(&mut self, node: &mut Node) -> Result<(), Unfilled> {
        match &mut node.kind {
            Kind::Null | Kind::Switch(_) | Kind::Number(_) => Ok(()),
            Kind::Text(text) => {
                *text = self.expand(text, node.offset)?;
                Ok(())
            }
            Kind::List(entries) => entries.iter_mut().try_for_each(|entry| self.fill(entry)),
            Kind::Object(entries) => entries.iter_mut().try_for_each(|(_, entry)| self.fill(entry)),
        }
    }

    fn expand(&mut self, text: &str, offset: usize) -> Result<String, Unfilled> {
        let mut expanded = String::with_capacity(text.len());
        let mut done = 0;
        for (start, end) in pairs(text) {
            let reference = text.get(start..end).and_then(Reference::parse);
            let Some(reference) = reference.filter(|_| start >= done) else { continue };
            let written = text.get(start..end).unwrap_or_default();
            let unfilled = |problem| Unfilled { offset, reference: written.to_owned(), problem };
            let value = self.value(reference).map_err(unfilled)?;
            self.left_bytes = self
                .left_bytes
                .checked_sub(value.len() as u64)
                .ok_or_else(|| unfilled(FileProblem::TooLarge { limit_bytes: MAX_INSERTED_BYTES }))?;
            expanded.push_str(text.get(done..start).unwrap_or_default());
            expanded.push_str(&value);
            done = end;
        }
        expanded.push_str(text.get(done..).unwrap_or_default());
        Ok(expanded)
    }

    fn value(&self, reference: Reference<'_>) -> Result<String, FileProblem> {
        match reference {
            Reference::Env(name) => Ok(self.env.get(name).unwrap_or_default().to_owned()),
            Reference::File(path) => {
                let text = file::read(&self.path(path))?;
                Ok(text.strip_prefix('\u{feff}').unwrap_or(&text).trim().to_owned())
            }
        }
    }

    /// A path may itself be built from variables: `{file:{env:SECRETS}/key}`.
    fn path(&self, written: &str) -> PathBuf {
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
            Some(below) => self.home.join(below),
            None => self.base.join(path.trim()),
        }
    }
}

enum Reference<'a> {
    Env(&'a str),
    File(&'a str),
}

impl<'a> Reference<'a> {
    /// What a pair of braces and the text in it refers to, if it does.
    fn parse(braced: &'a str) -> Option<Self> {
        let (kind, name) = braced.strip_prefix('{')?.strip_suffix('}')?.split_once(':')?;
        match kind {
            "env" if !name.is_empty() => Some(Self::Env(name)),
            "file" if !name.is_empty() => Some(Self::File(name)),
            _ => None,
        }
    }
}

/// Every pair of braces, outer ones before those in them; one pass, however the text is nested.
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
        let expanded = inserter.expand(text, 0).unwrap_or_else(|unfilled| panic!("{}", unfilled.problem));
        assert_eq!(expanded, expected);
    }

    #[test]
    fn references_are_replaced_where_they_stand() {
        check("Bearer {env:NAME}!", "Bearer ann!");
        check("{env:NAME}{env:NAME}", "annann");
        check("[{env:UNSET}]", "[]");
        check("{file:key}", "\"quoted\"\n{env:NAME}");
        check("{file:~/key}", "\"quoted\"\n{env:NAME}");
        check("{file:./{env:FILE}}.", "\"quoted\"\n{env:NAME}.");
    }

    #[test]
    fn other_braces_are_text() {
        for text in ["{}", "{env:}", "{file:}", "{env:NAME", "{file:{a}", "{other:x}", "a{", "{{}}", "{ä}"] {
            check(text, text);
        }
        check("{{env:NAME}}", "{ann}");
    }

    #[test]
    fn what_is_filled_in_is_bounded() {
        let env = Env::from_pairs([("BIG", "x".repeat(1024 * 1024))]);
        let mut inserter = Inserter::new(&env, Path::new("/"), Path::new("/"));
        assert!(inserter.expand(&"{env:BIG}".repeat(4), 0).is_ok());
        let Err(unfilled) = inserter.expand("{env:BIG}", 7) else { panic!("five times a megabyte") };
        assert_eq!((unfilled.offset, unfilled.reference.as_str()), (7, "{env:BIG}"));
        assert!(matches!(unfilled.problem, FileProblem::TooLarge { .. }));
    }
}
