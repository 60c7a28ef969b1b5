//! Attempts to get around permission rules, each of which must be denied or need permission.
//!
//! The tables hold rules, attempts under these rules and the expected results. The tests of `codewright` run
//! every attempt and check the results and the files.

use std::path::{Path, PathBuf};
use std::{fs, io};

mod corpus;
mod files;
mod grammar;
mod harmless;
mod hidden;
mod writers;

pub use corpus::GROUPS;

/// The expected result of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expected {
    /// A rule denies it.
    Deny,
    /// It needs the user's permission.
    Ask,
    /// A rule denies it, or it needs permission.
    DenyOrAsk,
    /// It runs without a permission request, because the rules allow everything it does.
    Run,
}

/// The agent that must not change files.
pub const PLAN: &str = "plan";

/// Returns every file and link below a directory with its content or target, in order.
///
/// # Errors
///
/// Fails if one of them cannot be read.
pub fn contents(directory: &Path) -> io::Result<Vec<(PathBuf, Vec<u8>)>> {
    let mut found = Vec::new();
    let mut waiting = vec![directory.to_owned()];
    while let Some(directory) = waiting.pop() {
        for entry in fs::read_dir(&directory)? {
            let (path, kind) = entry.and_then(|entry| Ok((entry.path(), entry.file_type()?)))?;
            if kind.is_dir() {
                waiting.push(path);
            } else if kind.is_symlink() {
                let target = fs::read_link(&path)?;
                found.push((path, target.into_os_string().into_encoded_bytes()));
            } else {
                let content = fs::read(&path)?;
                found.push((path, content));
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Attempts under the same rules.
#[derive(Debug, Clone, Copy)]
pub struct Group {
    /// The subject of the rules.
    pub name: &'static str,
    /// The `permission` of the configuration, as JSON.
    pub rules: &'static str,
    /// The agent.
    pub agent: &'static str,
    /// The model, which decides about the available tools.
    pub model: &'static str,
    /// The attempts.
    pub attempts: &'static [Attempt],
}

/// A call of a tool.
///
/// In its input `@V` stands for a file that only this attempt uses, `@O` for a directory outside the project
/// that contains a file `x.txt`, `@P` for the project, and `@{9|text}` for nine times the text.
#[derive(Debug, Clone, Copy)]
pub struct Attempt {
    /// The tool.
    pub tool: &'static str,
    /// A command line for `bash`, or the input as JSON for other tools.
    pub input: &'static str,
    /// The expected result.
    pub expected: Expected,
}

impl Attempt {
    /// Returns the input with every `@{9|text}` expanded. A text ends with the first `}` that no `}` follows.
    pub fn expanded(&self) -> String {
        let mut out = String::new();
        let mut rest = self.input;
        while let Some((before, after)) = rest.split_once("@{") {
            let end = after.find('}').unwrap_or(after.len());
            let end = end + after[end..].chars().take_while(|c| *c == '}').count().saturating_sub(1);
            let (count, text) = after[..end].split_once('|').unwrap_or(("1", &after[..end]));
            out += before;
            out += &text.repeat(count.parse().unwrap_or(1));
            rest = after.get(end + 1..).unwrap_or_default();
        }
        out + rest
    }
}

const fn bash(input: &'static str, expected: Expected) -> Attempt {
    Attempt { tool: "bash", input, expected }
}

const fn must_deny(input: &'static str) -> Attempt {
    bash(input, Expected::Deny)
}

const fn must_ask(input: &'static str) -> Attempt {
    bash(input, Expected::Ask)
}

const fn must_stop(input: &'static str) -> Attempt {
    bash(input, Expected::DenyOrAsk)
}

const fn may_run(input: &'static str) -> Attempt {
    bash(input, Expected::Run)
}

const fn call(tool: &'static str, input: &'static str, expected: Expected) -> Attempt {
    Attempt { tool, input, expected }
}
