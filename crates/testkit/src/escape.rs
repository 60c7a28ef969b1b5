//! Ways around permission rules, each of which must be forbidden or asked about.
//!
//! The table is data: rules, what is attempted under them, and what has to become of it. A test of the
//! program plays all of it and looks at the answers and at the files.

mod corpus;
mod grammar;
mod harmless;
mod hidden;
mod writers;

pub use corpus::GROUPS;

/// What has to become of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// A rule forbids it.
    Denied,
    /// A person is asked.
    Asked,
    /// One or the other.
    Stopped,
    /// It is done without a question: the rules allow everything it does.
    Done,
}

/// Attempts under the same rules.
#[derive(Debug, Clone, Copy)]
pub struct Group {
    /// What the rules are about.
    pub name: &'static str,
    /// The `permission` of the configuration, as JSON.
    pub rules: &'static str,
    /// The agent at work.
    pub agent: &'static str,
    /// The model at work; it decides about the tools there are.
    pub model: &'static str,
    /// The attempts.
    pub attempts: &'static [Attempt],
}

/// A call of a tool.
///
/// In its input `@V` stands for a file that only this attempt has, `@O` for a directory outside of the
/// project that has a file `x.txt`, `@P` for the project, and `@{9|text}` for nine times the text.
#[derive(Debug, Clone, Copy)]
pub struct Attempt {
    /// The tool.
    pub tool: &'static str,
    /// A command line for `bash`, else the input as JSON.
    pub input: &'static str,
    /// What has to become of it.
    pub fate: Fate,
}

impl Attempt {
    /// Its input with every `@{9|text}` repeated. A text ends with the first `}` that no `}` follows.
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

const fn bash(input: &'static str, fate: Fate) -> Attempt {
    Attempt { tool: "bash", input, fate }
}

const fn denied(input: &'static str) -> Attempt {
    bash(input, Fate::Denied)
}

const fn asked(input: &'static str) -> Attempt {
    bash(input, Fate::Asked)
}

const fn stopped(input: &'static str) -> Attempt {
    bash(input, Fate::Stopped)
}

const fn done(input: &'static str) -> Attempt {
    bash(input, Fate::Done)
}

const fn call(tool: &'static str, input: &'static str, fate: Fate) -> Attempt {
    Attempt { tool, input, fate }
}
