//! Agents, modes and commands in Markdown files with front matter.
//!
//! They are in subdirectories of a configuration directory, in singular or plural (`agent` or `agents`). Deeper
//! directories become part of the name. An invalid file or key is skipped with a warning.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde_json::{Value, json};

use crate::{
    ControlFiles, FileProblem, Map,
    document::{
        Node,
        schema::{self, Shape},
    },
    file, yaml,
};

/// The maximum number of files of one kind in one directory.
const MAX_FILES: usize = 1000;
/// The maximum depth of directories.
const MAX_DEPTH: usize = 8;
/// The maximum number of invalid keys of one file.
const MAX_FAULTS: usize = 20;

/// The entries that the files of a directory define.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// The configuration key (`agent`, `mode` or `command`), the name, the entry and the file.
    pub(crate) entries: Vec<(&'static str, String, Map, PathBuf)>,
    pub(crate) warnings: Vec<String>,
}

/// The subdirectories of a configuration directory, each with the key that its files define.
pub(crate) const FOLDERS: [(&str, &str); 6] = [
    ("agent", "agent"),
    ("agents", "agent"),
    ("mode", "mode"),
    ("modes", "mode"),
    ("command", "command"),
    ("commands", "command"),
];

/// Reads the files in a directory of the user's configuration.
pub(crate) fn read(folder: &Path) -> Found {
    let mut found = Found::default();
    for (spelling, key) in FOLDERS {
        let root = folder.join(spelling);
        let mut files = Vec::new();
        collect(&root, MAX_DEPTH, &mut files);
        files.sort();
        let files = files.into_iter().map(|path| (file::read(&path), path)).collect();
        found.add(&root, key, files);
    }
    found
}

/// Reads the files of a repository in `root`, which define entries of `key`.
pub(crate) fn entries_of(control: &ControlFiles, root: &Path, key: &'static str) -> Found {
    let mut found = Found::default();
    let paths = control.below(root, ".md").map(Path::to_owned);
    let files = paths.filter_map(|path| {
        let text = control.text(&path)?.map(str::to_owned);
        Some((text, path))
    });
    found.add(root, key, files.collect());
    found
}

impl Found {
    fn add(
        &mut self,
        root: &Path,
        key: &'static str,
        mut files: Vec<(Result<String, FileProblem>, PathBuf)>,
    ) {
        if files.len() > MAX_FILES {
            let warning =
                format!("`{}` has more than {MAX_FILES} files; the others are ignored", root.display());
            self.warnings.push(warning);
            files.truncate(MAX_FILES);
        }
        for (text, path) in files {
            let name = name(root, &path);
            if let Some(entry) = entry(key, &name, &path, text, &mut self.warnings) {
                self.entries.push((key, name, entry, path));
            }
        }
    }
}

fn collect(folder: &Path, depth: usize, files: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        if files.len() > MAX_FILES {
            return;
        }
        let path = entry.path();
        // Links are followed, so that files can be shared. The depth limit ends cycles.
        if path.is_dir() {
            if depth > 0 {
                collect(&path, depth - 1, files);
            }
        } else if path.extension().is_some_and(|extension| extension == "md") {
            files.push(path);
        }
    }
}

fn name(root: &Path, path: &Path) -> String {
    let below = path.strip_prefix(root).unwrap_or(path).with_extension("");
    below.to_string_lossy().replace('\\', "/")
}

fn entry(
    key: &str,
    name: &str,
    path: &Path,
    text: Result<String, FileProblem>,
    warnings: &mut Vec<String>,
) -> Option<Map> {
    let shown = path.display();
    let text = match text {
        Ok(text) => text,
        Err(problem) => {
            warnings.push(format!("`{shown}` {problem}; it is ignored"));
            return None;
        }
    };
    let Document { mut front, body, problems } = split(&text);
    warnings.extend(problems.into_iter().map(|problem| format!("`{shown}` {problem}")));
    let keys = if key == "command" { schema::COMMAND_KEYS } else { schema::AGENT_KEYS };
    for _ in 0..MAX_FAULTS {
        let value = Value::Object(front);
        let fault = schema::check(&Node::from(&value), &Shape::Record(keys)).err();
        let Value::Object(mut map) = value else { return None };
        let Some(fault) = fault else {
            front = map;
            return Some(complete_entry(key, name, front, body));
        };
        let schema::Fault { key: at, expected, found, .. } = fault;
        warnings.push(format!("`{shown}`: `{at}` must be {expected}, found {found}; it is ignored"));
        let top = at.split(['.', '[']).next().unwrap_or_default().to_owned();
        map.shift_remove(&top)?;
        front = map;
    }
    None
}

/// The configuration entry that a file defines.
fn complete_entry(key: &str, name: &str, mut front: Map, body: &str) -> Map {
    if key == "command" {
        front.retain(|key, _| schema::COMMAND_KEYS.iter().any(|(known, _)| known == key));
        front.insert("template".to_owned(), json!(body));
        return front;
    }
    front.insert("name".to_owned(), json!(name));
    front.insert("prompt".to_owned(), json!(body));
    front
}

/// A parsed Markdown file.
#[derive(Debug)]
pub(crate) struct Document<'a> {
    pub(crate) front: Map,
    pub(crate) body: &'a str,
    /// The parts of the front matter that were ignored, with their lines.
    pub(crate) problems: Vec<String>,
}

/// Splits a file into the front matter between lines of `---` and the text below it.
pub(crate) fn split(text: &str) -> Document<'_> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let plain = |problems| Document { front: Map::new(), body: text.trim(), problems };
    let Some(rest) = text
        .strip_prefix("---")
        .and_then(|rest| rest.strip_prefix("\r\n").or_else(|| rest.strip_prefix('\n')))
    else {
        return plain(Vec::new());
    };
    let mut offset = 0;
    for line in rest.split_inclusive('\n') {
        if line.trim_end() == "---" {
            let (front, problems) = yaml::parse(&rest[..offset]);
            let problems = problems.into_iter().map(|problem| {
                // The first line is `---`.
                let line = problem.line + 1;
                match problem.key {
                    Some(key) => format!("line {line}: `{key}` {}; it is ignored", problem.text),
                    None => format!("line {line} {}; it is ignored", problem.text),
                }
            });
            return Document {
                front,
                body: rest[offset + line.len()..].trim(),
                problems: problems.collect(),
            };
        }
        offset += line.len();
    }
    plain(vec!["has front matter without an end; the whole file is used as text".to_owned()])
}

/// The name, description and template of a command.
pub type CommandFile = (String, Option<String>, String);

/// The commands in a repository's directory of Markdown files.
#[must_use]
pub fn repository_commands(control: &ControlFiles, folder: &Path) -> Vec<CommandFile> {
    let paths = control.below(folder, ".md").take(MAX_FILES);
    let command = |path: &Path| {
        let text = control.text(path)?.ok()?;
        let Document { front, body, .. } = split(text);
        let description = front.get("description").and_then(Value::as_str).map(str::to_owned);
        Some((name(folder, path), description, body.to_owned()))
    };
    paths.filter_map(command).collect()
}

/// The front matter and the text of a Markdown file, and the problems found.
#[must_use]
pub fn front_matter(text: &str) -> (Map, &str, Vec<String>) {
    let Document { front, body, problems } = split(text);
    (front, body, problems)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_split_into_front_matter_and_text() {
        let document = split("---\r\ndescription: x\r\n---\r\n\r\nbody\r\n");
        assert_eq!((document.front["description"].as_str(), document.body), (Some("x"), "body"));
        let document = split("only\n---\ntext\n");
        assert_eq!((document.front.len(), document.body), (0, "only\n---\ntext"));
        let document = split("---\na: b\nnever ends");
        assert_eq!((document.front.len(), document.problems.len()), (0, 1));
        let document = split("---\na: [b\n---\nt");
        assert_eq!(
            document.problems,
            ["line 2: `a` has a bracket or quote that is never closed; it is ignored"]
        );
        assert_eq!(split("---\n---\n").body, "");
    }
}
