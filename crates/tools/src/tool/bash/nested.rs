//! Finds all commands that a command line runs, including nested ones.
//!
//! A rule against `rm` is about the effect, not the spelling: `/bin/rm`, `r"m"`, `sh -c 'rm …'`, `find -exec
//! rm` and a git alias of `!rm` do the same. So each command is analysed in its plain spelling, together with
//! the commands that it runs. The result can only make a decision stricter.

use std::rc::Rc;

use super::limits::{Limit, Reason};
use super::line::{Input, Line, Redirect, Simple, Step};
use super::parse::{Setting, parse, parse_with};
use super::variable;
use super::word::{Origin, Values, Variables, Word};
use super::wrapper::{self, Inner};
use super::{arity, git, irreversible, scan};
use crate::{Certainty, Implied, UNKNOWN};

/// The limit of nesting.
const MAX_DEPTH: usize = 8;
/// Options of `shopt` that change the meaning of wildcards.
const WILDCARD_OPTIONS: &[&str] = &["dotglob", "extglob", "globstar", "nocaseglob"];

/// Everything that a line does.
#[derive(Debug, Default)]
pub(super) struct Effects {
    /// The commands of the line and those that they run, in order, each as its name and arguments.
    pub(super) commands: Vec<Vec<Word>>,
    /// The places of these commands.
    pub(super) steps: Vec<Step>,
    /// All redirections to and from files.
    pub(super) redirects: Vec<Redirect>,
    /// Directories that variables name (`CDPATH`, `OLDPWD`) and directories that commands change to.
    pub(super) directories: Vec<Word>,
    /// Whether commands may run again after later ones.
    pub(super) repeats: bool,
    /// Effects that a permission for the line implies.
    pub(super) implied: Vec<Implied>,
}

/// Analyses a line.
pub(super) fn analyse(source: &str, line: &Line, setting: Setting) -> Effects {
    let mut search = Search { setting, found: Effects::default() };
    search.line(line, 0);
    // The shell joins continued lines before it splits words, but the grammar does not.
    if let Some(joined) = scan::without_continuations(source) {
        let line = parse(&joined, setting);
        search.line(&line, 1);
    }
    search.found
}

struct Search<'a> {
    setting: Setting<'a>,
    found: Effects,
}

impl Search<'_> {
    fn line(&mut self, line: &Line, depth: usize) {
        for (name, value) in &line.sets {
            self.set(name, value);
            self.inner(variable::effects(name, value), &Input::Nothing, depth);
        }
        for script in &line.hidden {
            self.hidden(script, depth);
        }
        for simple in &line.commands {
            if depth > 0 && !simple.only_moves() {
                self.imply(&simple.text, None, &simple.words);
            }
            self.simple(simple, depth);
        }
        self.found.redirects.extend(line.redirects.iter().cloned());
        self.found.repeats |= line.repeats;
    }

    /// Records how a variable affects the directories in which commands run.
    fn set(&mut self, name: &str, value: &Word) {
        match name {
            "CDPATH" => {
                let entries = |value: &str| value.split(':').map(Word::fixed).collect::<Vec<_>>();
                self.found.directories.extend(value.values.iter().flat_map(|value| entries(value)));
                if !value.is_closed {
                    self.setting.limits.give_up(Reason::Tilde);
                }
            }
            "OLDPWD" | "PWD" | "HOME" => self.found.directories.push(value.clone()),
            "GLOBIGNORE" => self.setting.limits.give_up(Reason::Builtin),
            _ => {}
        }
    }

    /// A quoted script that the shell may evaluate. It may also be text without a meaning for the shell.
    fn hidden(&mut self, script: &Word, depth: usize) {
        let limits = self.setting.limits;
        if limits.without_syntax(|| self.script(script, &[], depth)) {
            self.unknown_command();
        }
    }

    /// Adds a command as it is written and in its plain spelling.
    fn simple(&mut self, simple: &Simple, depth: usize) {
        if depth > MAX_DEPTH {
            self.setting.limits.give_up(Reason::Depth);
            return;
        }
        let limits = self.setting.limits;
        if !limits.take(Limit::Commands, 1) || !limits.take(Limit::Words, simple.full.len()) {
            return;
        }
        let Some((head, rest)) = simple.full.split_first() else { return };
        if !is_fixed(head) {
            let rest: Vec<&str> = rest.iter().map(Word::text).collect();
            let text = format!("{UNKNOWN} {}", rest.join(" "));
            let implied = Implied { spelled: Some(simple.text.clone()), ..commands(text.trim_end()) };
            self.push(implied);
            self.any_effect(Certainty::Possible);
        }
        for head in head.split() {
            let words: Vec<Word> = head.into_iter().chain(rest.iter().cloned()).collect();
            self.command(words, simple, depth);
        }
        if head.values.is_empty() {
            // Its name is unknown, but its arguments are known.
            self.add(simple.full.clone(), Step::default());
        }
    }

    fn command(&mut self, words: Vec<Word>, simple: &Simple, depth: usize) {
        let Some(first) = words.first() else { return };
        let limits = self.setting.limits;
        if !limits.take(Limit::Commands, 1) || !limits.take(Limit::Words, words.len()) {
            return;
        }
        // Other shells find the program that a leading `=` names.
        let name = first.text().trim_start_matches('=').rsplit('/').next().unwrap_or_default().to_owned();
        let spelled = Some(simple.text.as_str());
        self.imply(&written(&words), spelled, &known(&words));
        let mut plain = vec![Word::fixed(&name)];
        plain.extend(words[1..].iter().cloned());
        self.imply(&written(&plain), spelled, &known(&plain));
        self.builtin(&name, &words);
        if let Some(effect) = irreversible::found(&words, &simple.input) {
            let spelled = Some(simple.text.clone()).filter(|text| *text != effect.pattern);
            self.push(Implied { spelled, ..effect });
        }
        if name == "git" {
            let sub = git::subcommand(&words);
            let short: Vec<Word> = plain[..1].iter().chain(sub).cloned().collect();
            self.imply(&written(&short), spelled, &known(&short));
            self.inner(git::inner(&words), &simple.input, depth);
        }
        for (variable, value) in variable::assignments(&name, &words) {
            self.set(&variable, &value);
            self.inner(variable::effects(&variable, &value), &simple.input, depth);
        }
        if variable::computed_variables(&name, &words).iter().any(|variable| variable::is_special(variable)) {
            self.inner([Inner::Unknown], &simple.input, depth);
        }
        let mut inner = wrapper::inner(&name, &words);
        if let (true, Input::Found(_, find)) = (name.ends_with("xargs"), &simple.input) {
            inner.iter_mut().for_each(|inner| add_found(inner, find));
        }
        let is_sure = depth == 0 && simple.full.first().is_some_and(is_fixed);
        self.add(words, if is_sure { simple.step } else { Step::default() });
        self.inner(inner, &simple.input, depth);
        match &simple.input {
            Input::Text(text) if name.ends_with("xargs") => self.given(&text.values, Word::fixed),
            Input::Piped(named) if name.ends_with("xargs") => self.given(named, guessed),
            Input::Found(named, find) if name.ends_with("xargs") => {
                self.given(named, |text| Word { origin: Some(listed(find)), ..guessed(text) });
            }
            Input::Nothing | Input::Text(_) | Input::Piped(_) | Input::Found(..) => {}
        }
    }

    /// Gives up if a builtin changes the meaning of later commands.
    fn builtin(&mut self, name: &str, words: &[Word]) {
        let rest = || words.iter().skip(1).flat_map(|word| &word.values);
        let has_flag = |flag: char| {
            rest().any(|text| (text.starts_with('-') && !text.starts_with("--")) && text.contains(flag))
        };
        let changes = match name {
            "coproc" => true,
            "enable" => has_flag('f'),
            "bind" => has_flag('x'),
            "declare" | "local" | "typeset" => has_flag('n'),
            "shopt" => rest().any(|text| WILDCARD_OPTIONS.contains(&text.as_str())) && has_flag('s'),
            _ => false,
        };
        if changes {
            self.setting.limits.give_up(Reason::Builtin);
        }
    }

    fn inner(&mut self, inner: impl IntoIterator<Item = Inner>, input: &Input, depth: usize) {
        for inner in inner {
            match inner {
                Inner::Words { words, more } => self.words(words, more, depth),
                Inner::Script { script, arguments } => self.script(&script, &arguments, depth),
                Inner::Unknown => self.unknown_command(),
                Inner::Input => match input {
                    Input::Text(script) => self.script(script, &[], depth),
                    Input::Nothing | Input::Piped(_) | Input::Found(..) => self.unknown_command(),
                },
            }
        }
    }

    /// Adds the possible arguments of a command that reads them from its input.
    fn given(&mut self, texts: &[String], word: impl Fn(&str) -> Word) {
        let Some(last) = self.found.commands.last().cloned() else { return };
        let words = texts.iter().flat_map(|text| text.split_whitespace()).map(word);
        let words: Vec<Word> = last.into_iter().chain(words).collect();
        if !texts.is_empty() && self.setting.limits.take(Limit::Commands, 1) {
            self.add(words, Step::default());
        }
    }

    fn add(&mut self, words: Vec<Word>, step: Step) {
        self.found.commands.push(words);
        self.found.steps.push(step);
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
            self.unknown_command();
        }
        let simple = Simple { text, words: known, full: words, ..Simple::default() };
        self.simple(&simple, depth + 1);
    }

    fn script(&mut self, script: &Word, arguments: &[Word], depth: usize) {
        if !script.is_fixed {
            self.unknown_command();
        }
        let mut variables = Variables::new();
        let values = |word: &Word| Values { is_closed: word.is_closed, ..Values::open(word.values.clone()) };
        for (at, argument) in arguments.iter().enumerate() {
            variables.insert(at.to_string(), values(argument));
        }
        let all = arguments.iter().skip(1).map(Word::text).collect::<Vec<_>>().join(" ");
        let each: Vec<String> = arguments.iter().skip(1).flat_map(|word| word.values.clone()).collect();
        let all = Values::open([vec![all], each].concat());
        variables.insert("@".to_owned(), all.clone());
        variables.insert("*".to_owned(), all);
        // The known parts of a text with unknown parts are analysed, too.
        let sketch = vec![script.raw.trim_matches('"').to_owned()];
        for value in if script.values.is_empty() { &sketch } else { &script.values } {
            if depth >= MAX_DEPTH {
                self.setting.limits.give_up(Reason::Depth);
                return;
            }
            if !self.setting.limits.take(Limit::Scripts, 1) {
                return;
            }
            let sources = [scan::without_continuations(value), Some(value.clone())];
            for source in sources.into_iter().flatten() {
                let line = parse_with(&source, self.setting, variables.clone());
                self.line(&line, depth + 1);
            }
        }
    }

    fn imply(&mut self, text: &str, spelled: Option<&str>, words: &[Option<String>]) {
        if text.is_empty() || spelled == Some(text) {
            return;
        }
        let always = arity::prefix(words).map(|prefix| prefix + " *");
        let implied = Implied { spelled: spelled.map(str::to_owned), always, ..commands(text) };
        self.push(implied);
    }

    fn push(&mut self, implied: Implied) {
        let bytes = implied.pattern.len() + implied.spelled.as_ref().map_or(0, String::len);
        if !self.found.implied.contains(&implied) && self.setting.limits.take(Limit::Patterns, bytes) {
            self.found.implied.push(implied);
        }
    }

    /// Adds a command that is only known when the line runs.
    fn unknown_command(&mut self) {
        self.push(commands(&UNKNOWN.to_string()));
        self.any_effect(Certainty::Possible);
    }

    fn any_effect(&mut self, certainty: Certainty) {
        any_effect(certainty).into_iter().for_each(|implied| self.push(implied));
    }
}

/// Reading or writing any file, and entering any directory.
pub(super) fn any_effect(certainty: Certainty) -> [Implied; 3] {
    ["read", "edit", "external_directory"]
        .map(|permission| Implied { certainty, ..Implied::new(permission, &UNKNOWN.to_string()) })
}

/// Every effect that a line without analysis may have.
pub(super) fn anything() -> impl Iterator<Item = Implied> {
    let command = Implied { certainty: Certainty::Unknown, ..commands(&UNKNOWN.to_string()) };
    [command].into_iter().chain(any_effect(Certainty::Unknown))
}

fn written(words: &[Word]) -> String {
    words.iter().map(Word::text).collect::<Vec<_>>().join(" ")
}

fn known(words: &[Word]) -> Vec<Option<String>> {
    words.iter().map(|word| word.values.first().cloned()).collect()
}

/// Whether the word can mean one command only.
fn is_fixed(head: &Word) -> bool {
    let is_pattern = head.raw.contains(['*', '?', '[']) && !matches!(head.raw.as_str(), "[" | "[[");
    head.is_fixed && !is_pattern
}

/// The results of a `find` as a list.
fn listed(find: &Rc<Vec<Word>>) -> Origin {
    Origin::Found { find: Rc::clone(find), is_split: true }
}

/// Says of the words that `xargs` adds to a command that a `find` lists them.
fn add_found(inner: &mut Inner, find: &Rc<Vec<Word>>) {
    let Inner::Words { words, more } = inner else { return };
    if std::mem::take(more) {
        words.push(Word::unknown(&UNKNOWN.to_string()));
    }
    let is_added =
        |word: &&mut Word| word.values.is_empty() && (word.raw == "{}" || word.raw == UNKNOWN.to_string());
    words.iter_mut().filter(is_added).for_each(|word| word.origin = Some(listed(find)));
}

/// A word of another command, which may be a word of this one.
fn guessed(text: &str) -> Word {
    Word { values: vec![text.to_owned()], ..Word::unknown(&UNKNOWN.to_string()) }
}

fn commands(text: &str) -> Implied {
    Implied::new("bash", text)
}
