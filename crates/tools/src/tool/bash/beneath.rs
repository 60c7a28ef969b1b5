//! What a command line does beneath its surface.
//!
//! A rule against `rm` means the deed, not the spelling: `/bin/rm`, `r"m"`, `sh -c 'rm …'`, `find -exec rm` and
//! a git alias of `!rm` do the same. So each command is looked at in its plain spelling, with all that it
//! runs in its turn. What is found only ever makes an answer stricter.

use std::path::Path;

use super::parse::{Input, Line, Redirect, Simple, parse_with};
use super::word::{Variables, Word};
use super::wrapper::{self, Inner};
use super::{arity, git};
use crate::ask::{Implied, UNKNOWN};

/// How deep commands inside commands are followed.
const MAX_DEPTH: usize = 8;
/// How many commands of a line are looked at.
const MAX_COMMANDS: usize = 256;
/// How much text inside of a line is taken apart.
const MAX_INNER_BYTES: usize = 256 * 1024;
/// Spellings of one command that are followed, where its name has several values.
const MAX_HEADS: usize = 8;

/// Everything that a line does.
#[derive(Debug, Default)]
pub(super) struct Beneath {
    /// The commands of the line and those that they run, a name and arguments each, in their order.
    pub(super) commands: Vec<Vec<Word>>,
    /// All redirections to and from files.
    pub(super) redirects: Vec<Redirect>,
    /// What leave for the line implies.
    pub(super) implied: Vec<Implied>,
}

/// Looks through a line; `~` and `$HOME` stand for `home`.
pub(super) fn look(source: &str, line: &Line, home: Option<&Path>) -> Beneath {
    let mut search = Search { home, found: Beneath::default(), bytes: 0, is_full: false };
    search.line(source, line, 0);
    if search.is_full {
        search.found.implied.push(unknown(None));
    }
    search.found
}

struct Search<'a> {
    home: Option<&'a Path>,
    found: Beneath,
    bytes: usize,
    /// Whether something was left out.
    is_full: bool,
}

impl Search<'_> {
    fn line(&mut self, source: &str, line: &Line, depth: usize) {
        let sets = line.sets.iter().filter_map(|(name, value)| wrapper::variable(name, value));
        self.inner(sets, &Input::Nothing, depth);
        for simple in &line.commands {
            if depth > 0 && !simple.only_moves() {
                self.imply(&simple.text, None, &simple.words);
            }
            self.simple(simple, depth);
        }
        self.found.redirects.extend(line.redirects.iter().cloned());
        if !line.understood {
            self.found.implied.push(unknown(Some(source)));
        }
    }

    /// A command as it is written, and as it would be written plainly.
    fn simple(&mut self, simple: &Simple, depth: usize) {
        if depth > MAX_DEPTH || self.found.commands.len() >= MAX_COMMANDS {
            self.is_full = true;
            return;
        }
        let Some((head, rest)) = simple.full.split_first() else { return };
        if !is_fixed(head) {
            let rest: Vec<&str> = rest.iter().map(Word::text).collect();
            let text = format!("{UNKNOWN} {}", rest.join(" "));
            self.found
                .implied
                .push(Implied { spelled: Some(simple.text.clone()), ..commands(text.trim_end()) });
        }
        for head in head.split().into_iter().take(MAX_HEADS) {
            let words: Vec<Word> = head.into_iter().chain(rest.iter().cloned()).collect();
            self.command(words, simple, depth);
        }
        if head.values.is_empty() {
            // Its name is unknown, what it is given is not.
            self.found.commands.push(simple.full.clone());
        }
    }

    fn command(&mut self, words: Vec<Word>, simple: &Simple, depth: usize) {
        let Some(first) = words.first() else { return };
        let name = first.text().rsplit('/').next().unwrap_or_default().to_owned();
        let spelled = Some(simple.text.as_str());
        self.imply(&written(&words), spelled, &known(&words));
        let mut plain = vec![Word::fixed(&name)];
        plain.extend(words[1..].iter().cloned());
        self.imply(&written(&plain), spelled, &known(&plain));
        if name == "git" {
            let sub = git::subcommand(&words);
            let short: Vec<Word> = plain[..1].iter().chain(sub).cloned().collect();
            self.imply(&written(&short), spelled, &known(&short));
            self.inner(git::inner(&words), &simple.input, depth);
        }
        for (name, value) in wrapper::assignments(&name, &words) {
            self.inner(wrapper::variable(&name, &value), &simple.input, depth);
        }
        let inner = wrapper::inner(&name, &words);
        self.found.commands.push(words);
        self.inner(inner, &simple.input, depth);
    }

    fn inner(&mut self, inner: impl IntoIterator<Item = Inner>, input: &Input, depth: usize) {
        for inner in inner {
            match inner {
                Inner::Words { words, more } => self.words(words, more, depth),
                Inner::Script { script, arguments } => self.script(&script, &arguments, depth),
                Inner::Input => match input {
                    Input::Nothing => {}
                    Input::Text(texts) => {
                        let is_fixed = !texts.is_empty();
                        let script = Word { raw: String::new(), values: texts.clone(), is_fixed };
                        self.script(&script, &[], depth);
                    }
                    Input::Piped => self.found.implied.push(unknown(None)),
                },
            }
        }
    }

    fn words(&mut self, mut words: Vec<Word>, more: bool, depth: usize) {
        let Some(head) = words.first() else { return };
        let is_fixed = is_fixed(head);
        if more {
            words.push(Word::unknown(&UNKNOWN.to_string()));
        }
        let text = written(&words);
        let known: Vec<Option<String>> = known(&words);
        if is_fixed {
            self.imply(&text, None, &known);
        } else {
            self.found.implied.push(unknown(None));
        }
        let simple = Simple { text, words: known, full: words, ..Simple::default() };
        self.simple(&simple, depth + 1);
    }

    fn script(&mut self, script: &Word, arguments: &[Word], depth: usize) {
        if !script.is_fixed {
            self.found.implied.push(unknown(None));
        }
        let mut variables = Variables::new();
        for (at, argument) in arguments.iter().enumerate() {
            variables.insert(at.to_string(), argument.values.clone());
        }
        let all = arguments.iter().skip(1).map(Word::text).collect::<Vec<_>>().join(" ");
        variables.insert("@".to_owned(), vec![all.clone()]);
        variables.insert("*".to_owned(), vec![all]);
        // Of a text with unknown parts the rest is looked at all the same.
        let sketch = vec![script.raw.trim_matches('"').to_owned()];
        for value in if script.values.is_empty() { &sketch } else { &script.values } {
            self.bytes += value.len();
            if self.bytes > MAX_INNER_BYTES || depth >= MAX_DEPTH {
                self.is_full = true;
                return;
            }
            let line = parse_with(value, self.home, variables.clone());
            self.line(value, &line, depth + 1);
        }
    }

    fn imply(&mut self, text: &str, spelled: Option<&str>, words: &[Option<String>]) {
        if text.is_empty() || spelled == Some(text) {
            return;
        }
        let always = arity::prefix(words).map(|prefix| prefix + " *");
        let implied = Implied { spelled: spelled.map(str::to_owned), always, ..commands(text) };
        if !self.found.implied.contains(&implied) {
            self.found.implied.push(implied);
        }
    }
}

fn written(words: &[Word]) -> String {
    words.iter().map(Word::text).collect::<Vec<_>>().join(" ")
}

fn known(words: &[Word]) -> Vec<Option<String>> {
    words.iter().map(|word| word.values.first().cloned()).collect()
}

/// Whether only one command can be meant.
fn is_fixed(head: &Word) -> bool {
    let is_pattern = head.raw.contains(['*', '?', '[']) && !matches!(head.raw.as_str(), "[" | "[[");
    head.is_fixed && !is_pattern
}

fn commands(text: &str) -> Implied {
    Implied::new("bash", text)
}

/// Some command that cannot be told.
fn unknown(spelled: Option<&str>) -> Implied {
    Implied { spelled: spelled.map(str::to_owned), ..commands(&UNKNOWN.to_string()) }
}
