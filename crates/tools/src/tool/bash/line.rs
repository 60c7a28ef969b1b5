//! A parsed command line: its simple commands, redirections and variables.

use std::rc::Rc;

use super::word::Word;

/// A parsed command line.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Line {
    /// Every simple command, including nested ones.
    pub(super) commands: Vec<Simple>,
    /// Files of redirections.
    pub(super) redirects: Vec<Redirect>,
    /// Variables that are set, and their values.
    pub(super) sets: Vec<(String, Word)>,
    /// Redirections that do not belong to a simple command.
    pub(super) loose_redirects: Vec<String>,
    /// Scripts that the shell may evaluate from quoted words: `[[ -v 'a[$(x)]' ]]`.
    pub(super) hidden: Vec<Word>,
    /// Whether it has loops or functions, whose commands may run after later ones.
    pub(super) repeats: bool,
}

/// A redirection to or from a file.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Redirect {
    /// The file.
    pub(super) path: Word,
    /// Whether it is written.
    pub(super) writes: bool,
}

/// The input of a command.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) enum Input {
    /// The line names none.
    #[default]
    Nothing,
    /// A text in the line.
    Text(Word),
    /// The output of another command, which may consist of these words.
    Piped(Vec<String>),
    /// The same of a `find` with these words after its name.
    Found(Vec<String>, Rc<Vec<Word>>),
}

/// A simple command.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Simple {
    /// Its text with redirections.
    pub(super) text: String,
    /// Its name and arguments. `None` is a word that only the shell knows.
    pub(super) words: Vec<Option<String>>,
    /// Whether its text has redirections.
    pub(super) redirected: bool,
    /// All its words, including those after redirections, with everything that is known about them.
    pub(super) full: Vec<Word>,
    /// Its input.
    pub(super) input: Input,
    /// Its place in the line.
    pub(super) step: Step,
}

/// The place of a command among the statements of a line.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Step {
    /// The position of the statement of the line that it belongs to. `None` for a command that another one runs.
    pub(super) statement: Option<usize>,
    /// Whether it runs in the shell of the line, and the rest of its statement only if it succeeds: `a && cd b && c`.
    pub(super) is_link: bool,
}

impl Simple {
    pub(super) fn name(&self) -> Option<&str> {
        self.words.first()?.as_deref()
    }

    /// Whether it only changes the directory, which needs no permission.
    pub(super) fn only_moves(&self) -> bool {
        !self.redirected && self.name() == Some("cd")
    }
}
