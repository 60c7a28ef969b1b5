//! The possible values of a word of a command line.
//!
//! A word is either literal or expanded by the shell. Expansions that depend only on the line are resolved:
//! quotes, escapes, braces, and variables that the line sets. Other values are only known when the line runs.

use std::collections::HashMap;
use std::rc::Rc;

use tree_sitter::Node;

use super::braces::braces;
use super::limits::{Limit, Limits, Reason};
use super::scan::has_braces;

/// The limit of values of one word.
pub(super) const MAX_VALUES: usize = 256;
/// The limit for the length of a value.
const MAX_VALUE_BYTES: usize = 64 * 1024;
/// The cost of a value besides its bytes.
const VALUE_BYTES: usize = 32;
/// Kinds of nodes whose value depends on more than their text.
const COMPUTED: [&str; 6] = [
    "arithmetic_expansion",
    "brace_expression",
    "command_substitution",
    "expansion",
    "process_substitution",
    "simple_expansion",
];
/// The limit of words from other commands that a word may equal, besides unknown values.
const MAX_NAMED: usize = 16;
/// Parameters whose values are numbers.
const NUMBERS: [&str; 11] =
    ["?", "#", "$", "!", "RANDOM", "SECONDS", "UID", "EUID", "PPID", "LINENO", "BASHPID"];
/// An unknown number: as a wildcard it matches every number.
pub(super) const NUMBER: &str = "[0-9]*";

/// The possible values of variables.
pub(super) type Variables = HashMap<String, Values>;

/// Known values, and whether there may be others.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Values {
    pub(super) list: Vec<String>,
    /// Whether the list is complete.
    pub(super) is_closed: bool,
    /// Whether every value is the name of a new file or directory from `mktemp`.
    pub(super) is_temporary: bool,
}

impl Values {
    fn closed(list: Vec<String>) -> Self {
        Self { list, is_closed: true, is_temporary: false }
    }

    pub(super) fn open(list: Vec<String>) -> Self {
        Self { list, is_closed: false, is_temporary: false }
    }
}

/// A word and its possible values.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Word {
    /// As it is written.
    pub(super) raw: String,
    /// Its possible values; empty if they are unknown.
    pub(super) values: Vec<String>,
    /// Whether it has exactly this value because it is written literally.
    pub(super) is_fixed: bool,
    /// Whether the values are complete, for example because the line sets the variable.
    pub(super) is_closed: bool,
    /// The source of values that are not in the line.
    pub(super) origin: Option<Origin>,
}

/// The source of values that are not in the line.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Origin {
    /// `mktemp` creates the file or directory.
    Temporary,
    /// The results of a `find` with these words after its name.
    Found {
        find: Rc<Vec<Word>>,
        /// Whether another program splits its output into words.
        is_split: bool,
    },
}

impl Word {
    /// A literal word.
    pub(super) fn fixed(text: &str) -> Self {
        let values = vec![text.to_owned()];
        Self { raw: text.to_owned(), values, is_fixed: true, is_closed: true, origin: None }
    }

    /// A word with unknown value.
    pub(super) fn unknown(raw: &str) -> Self {
        Self { raw: raw.to_owned(), ..Self::default() }
    }

    /// Removes leading spaces that the grammar may have included.
    pub(super) fn trimmed(self) -> Self {
        if !self.raw.starts_with(char::is_whitespace) {
            return self;
        }
        let values = self.values.iter().map(|value| value.trim_start().to_owned()).collect();
        Self { raw: self.raw.trim_start().to_owned(), values, ..self }
    }

    /// Its most likely value, else its text.
    pub(super) fn text(&self) -> &str {
        self.values.first().unwrap_or(&self.raw)
    }

    /// Changes each value and drops those for which `change` returns `None`. Returns `None` if no value is
    /// left.
    pub(super) fn map(&self, mut change: impl FnMut(&str) -> Option<String>) -> Option<Self> {
        let values: Vec<String> = self.values.iter().filter_map(|value| change(value)).collect();
        (!values.is_empty()).then(|| Self { values, ..self.clone() })
    }

    /// Whether a possible value has a prefix.
    pub(super) fn starts_with(&self, prefix: &str) -> bool {
        self.text().starts_with(prefix) || self.values.iter().any(|value| value.starts_with(prefix))
    }

    /// Whether it may be an option.
    pub(super) fn is_option(&self) -> bool {
        self.text().starts_with('-') && self.text().len() > 1
    }

    /// The words into which the shell splits each value.
    pub(super) fn split(&self) -> Vec<Vec<Self>> {
        let is_quoted = self.raw.starts_with(['"', '\'']);
        if is_quoted || self.raw.starts_with("$'") || (self.is_fixed && !self.raw.contains('{')) {
            return self
                .values
                .iter()
                .map(|value| vec![Self { values: vec![value.clone()], ..self.clone() }])
                .collect();
        }
        if self.raw.contains('{') && !self.raw.contains('$') {
            // Braces expand one word to several.
            return vec![self.values.iter().map(|value| Self::fixed(value)).collect()];
        }
        self.values.iter().map(|value| value.split_whitespace().map(Self::fixed).collect()).collect()
    }
}

/// The words of a source.
pub(super) struct Words<'a> {
    pub(super) source: &'a str,
    pub(super) home: Option<&'a str>,
    pub(super) variables: Variables,
    pub(super) limits: &'a Limits,
}

impl<'a> Words<'a> {
    pub(super) fn text(&self, node: Node) -> &'a str {
        self.source.get(node.byte_range()).unwrap_or_default()
    }

    /// The value of a word that does not depend on the run.
    pub(super) fn word(&self, node: Node) -> Option<String> {
        let text = self.text(node);
        match node.kind() {
            "word" | "number" | "variable_name" => self.home_of(text),
            "raw_string" => Some(text.trim_matches('\'').to_owned()),
            "string" => self.string(node),
            "concatenation" => node.named_children(&mut node.walk()).map(|part| self.word(part)).collect(),
            "simple_expansion" | "expansion" => match text {
                "$HOME" | "${HOME}" => self.home.map(str::to_owned),
                _ => None,
            },
            _ => None,
        }
    }

    /// The word of a node with everything that is known about it.
    pub(super) fn all(&self, node: Node) -> Word {
        let Values { mut list, mut is_closed, is_temporary } = self.values(node);
        let raw = self.text(node);
        if has_braces(raw) {
            let expanded: Option<Vec<Vec<String>>> =
                list.iter().map(|value| braces(value, self.limits)).collect();
            match expanded {
                Some(all) => list = all.concat(),
                None => is_closed = false,
            }
            if list.len() > MAX_VALUES {
                self.limits.give_up(Reason::Values);
                list.truncate(MAX_VALUES);
            }
        }
        let bytes = list.iter().map(|value| value.len() + VALUE_BYTES).sum();
        if !self.limits.take(Limit::Values, bytes) {
            return Word::unknown(raw);
        }
        let is_fixed = !list.is_empty() && is_closed && !self.is_computed(node);
        let origin = is_temporary.then_some(Origin::Temporary);
        Word { raw: raw.to_owned(), values: list, is_fixed, is_closed, origin }
    }

    fn is_computed(&self, node: Node) -> bool {
        let mut todo = vec![node];
        while let Some(node) = todo.pop() {
            if COMPUTED.contains(&node.kind()) && !matches!(self.text(node), "$HOME" | "${HOME}") {
                return true;
            }
            todo.extend(node.named_children(&mut node.walk()));
        }
        false
    }

    fn values(&self, node: Node) -> Values {
        let text = self.text(node);
        match node.kind() {
            "concatenation" => self.joined(node.named_children(&mut node.walk()).map(Piece::Node)),
            "string" => self.joined(self.pieces(node).into_iter()),
            "translated_string" => node.named_child(0).map(|node| self.values(node)).unwrap_or_default(),
            "ansi_c_string" => {
                Values::closed(vec![ansi_c(text.trim_start_matches("$'").trim_end_matches('\''))])
            }
            "simple_expansion" | "expansion" => match self.word(node) {
                Some(value) => Values::closed(vec![value]),
                None => self.expansion(text),
            },
            "arithmetic_expansion" => Values::closed(vec![NUMBER.to_owned(), format!("-{NUMBER}")]),
            // A sequence such as `{1..3}`. Its braces are expanded with the whole word.
            "brace_expression" => Values::closed(vec![text.to_owned()]),
            "process_substitution" => Values::closed(vec!["/dev/fd/63".to_owned()]),
            "command_substitution" => match node.named_child(0) {
                Some(only) if node.named_child_count() == 1 && is_printer(self, only) => self.output(only),
                Some(only) if node.named_child_count() == 1 && self.is_mktemp(only) => {
                    Values { is_temporary: true, ..Values::default() }
                }
                Some(_) | None => Values::open(self.named(node)),
            },
            "array" => self.elements(node),
            _ => self.word(node).map(|value| Values::closed(vec![value])).unwrap_or_default(),
        }
    }

    fn elements(&self, node: Node) -> Values {
        let mut all = Values::closed(Vec::new());
        for element in node.named_children(&mut node.walk()) {
            let word = self.all(element);
            all.is_closed &= word.is_closed;
            all.list.extend(word.values);
        }
        all
    }

    /// The output of an `echo` or a `printf` of plain words.
    pub(super) fn output(&self, node: Node) -> Values {
        let name = node.child_by_field_name("name").map(|name| self.text(name));
        if node.kind() != "command" || !matches!(name, Some("echo" | "printf")) {
            return Values::default();
        }
        let mut cursor = node.walk();
        let words = node.children_by_field_name("argument", &mut cursor).map(|word| self.all(word));
        let words: Vec<Word> = words.collect();
        // Only a plain text is certain: options and formats are approximated.
        let is_plain = |word: &Word| word.is_fixed && !word.text().contains(['\\', '%', '*', '?', '[']);
        let is_certain =
            words.iter().all(is_plain) && !words.first().is_some_and(Word::is_option) && name == Some("echo");
        let is_format = |text: &str| matches!(text, "-e" | "-n" | "%s" | "%s\\n" | "--");
        let words: Vec<Word> = words.into_iter().filter(|word| !is_format(word.text())).collect();
        if words.iter().any(|word| word.values.is_empty()) {
            return Values::default();
        }
        let plain = words.iter().map(Word::text).collect::<Vec<_>>().join(" ");
        let joined = words.iter().map(Word::text).collect::<String>();
        let escaped = ansi_c(&plain);
        let mut list = vec![plain.clone()];
        list.extend((escaped != plain).then_some(escaped));
        list.extend((name == Some("printf") && joined != plain).then_some(joined));
        Values { list, is_closed: is_certain, is_temporary: false }
    }

    /// Whether a command creates a file or directory with a new name in the directory for temporary files.
    fn is_mktemp(&self, node: Node) -> bool {
        let is_named = node.child_by_field_name("name").is_some_and(|name| self.text(name) == "mktemp");
        let mut cursor = node.walk();
        let words = node.children_by_field_name("argument", &mut cursor).map(|word| self.all(word));
        let is_usual = |word: Word| {
            let is_option = matches!(word.text(), "-d" | "-q" | "-dq" | "-qd" | "--directory" | "--quiet");
            let is_plain =
                !word.text().contains([' ', '\t', '\n', '*', '?', '[']) && !word.text().contains("..");
            let is_below = word.text().starts_with("/tmp/") && is_plain;
            word.is_fixed && (is_option || is_below)
        };
        is_named && !self.variables.contains_key("TMPDIR") && words.into_iter().all(is_usual)
    }

    /// The words of the commands in a node. Their output may be one of them: `ls .env`.
    pub(super) fn named(&self, node: Node) -> Vec<String> {
        let (mut found, mut todo) = (Vec::new(), vec![node]);
        while let Some(node) = todo.pop() {
            if node.kind() == "command" {
                let mut cursor = node.walk();
                let words = node.children_by_field_name("argument", &mut cursor).map(|word| self.all(word));
                let words = words.flat_map(|word| word.values).filter(|value| !value.starts_with('-'));
                found.extend(
                    words.map(|value| value.trim_start_matches('^').trim_end_matches('$').to_owned()),
                );
            } else {
                todo.extend(node.named_children(&mut node.walk()));
            }
            if found.len() > MAX_NAMED {
                found.truncate(MAX_NAMED);
                return found;
            }
        }
        found
    }

    /// The value of `$x`, `${x}` or `${x…}`.
    fn expansion(&self, text: &str) -> Values {
        let inner = text.strip_prefix('$').unwrap_or(text);
        let inner = inner.strip_prefix('{').and_then(|inner| inner.strip_suffix('}')).unwrap_or(inner);
        if NUMBERS.contains(&inner) || (inner.starts_with('#') && inner.len() > 1) {
            return Values::closed(vec![NUMBER.to_owned()]);
        }
        let end = inner.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(inner.len());
        let (name, rest) = if end == 0 { (inner, "") } else { inner.split_at(end) };
        let known = self.variable(name);
        if rest.is_empty() || (rest.starts_with('[') && rest.ends_with(']')) {
            return known;
        }
        let operators = [":-", ":=", ":+", ":?", "-", "=", "+", "?"];
        let Some(other) = operators.iter().find_map(|operator| rest.strip_prefix(operator)) else {
            return Values::default();
        };
        let plain = without_backslashes(&other.replace(['"', '\''], ""), |_| true);
        let is_plain = !plain.contains(['$', '`']);
        let mut list = known.list;
        list.extend(is_plain.then_some(plain));
        Values { list, is_closed: is_plain && known.is_closed, is_temporary: false }
    }

    fn variable(&self, name: &str) -> Values {
        match (name, self.variables.get(name)) {
            (_, Some(known)) => known.clone(),
            ("IFS", None) => Values::open(vec![" ".to_owned()]),
            ("PWD", None) => Values::closed(vec![".".to_owned()]),
            (_, None) => Values::default(),
        }
    }

    /// A variable that is set, and its value.
    pub(super) fn assignment(&self, node: Node) -> Option<(String, Word)> {
        let name = self.text(node.child_by_field_name("name")?).to_owned();
        Some((name, self.all(node.child_by_field_name("value")?)))
    }

    /// Records the value of a variable. It may have any of its values later.
    pub(super) fn learn(&mut self, node: Node) {
        let Some((full, word)) = self.assignment(node) else { return };
        let name = full.split('[').next().unwrap_or_default();
        let appends = self.text(node).as_bytes().get(full.len()) == Some(&b'+');
        let before = self.variables.get(name).filter(|_| appends).cloned();
        let refers_to_itself =
            [format!("${name}"), format!("${{{name}")].iter().any(|own| word.raw.contains(own));
        let is_closed = word.is_closed && !appends && !refers_to_itself;
        let list = match before {
            Some(before) if !word.raw.starts_with('(') => self.products(&before.list, &word.values),
            Some(_) | None => word.values.clone(),
        };
        let is_temporary = word.origin == Some(Origin::Temporary) && !appends;
        self.know(name, Values { list, is_closed, is_temporary });
    }

    /// Records the values of the variable of a loop.
    pub(super) fn learn_each(&mut self, node: Node) {
        let Some(name) = node.child_by_field_name("variable").map(|name| self.text(name)) else {
            return;
        };
        let mut cursor = node.walk();
        let mut values = Values::closed(Vec::new());
        for value in node.children_by_field_name("value", &mut cursor) {
            let word = self.all(value);
            values.is_closed &= word.is_closed;
            values.list.extend(word.values);
        }
        // Without a list the loop iterates over the arguments.
        values.is_closed &= !values.list.is_empty();
        self.know(name, values);
    }

    /// Records more values of a variable.
    pub(super) fn know(&mut self, name: &str, values: Values) {
        let new = || Values { is_temporary: true, ..Values::closed(Vec::new()) };
        let known = self.variables.entry(name.to_owned()).or_insert_with(new);
        known.is_closed &= values.is_closed;
        known.is_temporary &= values.is_temporary;
        for value in values.list {
            if known.list.contains(&value) {
                continue;
            }
            if known.list.len() >= MAX_VALUES {
                known.is_closed = false;
                self.limits.give_up(Reason::Values);
                return;
            }
            known.list.push(value);
        }
    }

    fn joined<'t>(&self, pieces: impl Iterator<Item = Piece<'t>>) -> Values {
        let mut all = Values::closed(vec![String::new()]);
        let mut parts = 0;
        for piece in pieces {
            let values = match piece {
                Piece::Node(node) => self.values(node),
                Piece::Text(text) if text.is_empty() => continue,
                Piece::Text(text) => Values::closed(vec![text]),
            };
            parts += 1;
            all.is_temporary = values.is_temporary && parts == 1;
            all.is_closed &= values.is_closed;
            // An unset variable is empty. A word with nothing else is unknown.
            let may_be_empty = values.list.is_empty() && all.list.iter().any(|text| !text.is_empty());
            if !may_be_empty {
                all.list = self.products(&all.list, &values.list);
            }
        }
        all
    }

    /// Every value of the first list followed by every value of the second.
    fn products(&self, first: &[String], second: &[String]) -> Vec<String> {
        if first.len().saturating_mul(second.len()) > MAX_VALUES {
            self.limits.give_up(Reason::Values);
        }
        let pairs = first.iter().flat_map(|a| second.iter().map(move |b| (a, b)));
        let mut all = Vec::new();
        for (a, b) in pairs.take(MAX_VALUES) {
            if a.len() + b.len() > MAX_VALUE_BYTES
                || !self.limits.take(Limit::Values, a.len() + b.len() + VALUE_BYTES)
            {
                self.limits.give_up(Reason::Length);
                return all;
            }
            all.push(format!("{a}{b}"));
        }
        all
    }

    fn pieces<'t>(&self, node: Node<'t>) -> Vec<Piece<'t>> {
        let escapes = |c| matches!(c, '"' | '\\' | '$' | '`' | '\n');
        let (mut pieces, mut at) = (Vec::new(), node.start_byte() + 1);
        let end = node.end_byte().saturating_sub(1).max(at);
        for child in node.named_children(&mut node.walk()) {
            if child.kind() == "string_content" {
                continue;
            }
            pieces.push(Piece::Text(without_backslashes(
                self.source.get(at..child.start_byte()).unwrap_or_default(),
                escapes,
            )));
            pieces.push(Piece::Node(child));
            at = child.end_byte();
        }
        pieces.push(Piece::Text(without_backslashes(self.source.get(at..end).unwrap_or_default(), escapes)));
        pieces
    }

    fn string(&self, node: Node) -> Option<String> {
        let pieces = self.pieces(node).into_iter().map(|piece| match piece {
            Piece::Text(text) => Some(text),
            Piece::Node(node) => self.word(node),
        });
        pieces.collect()
    }

    /// An unquoted word with `~` replaced by a directory.
    fn home_of(&self, text: &str) -> Option<String> {
        let plain = without_backslashes(text, |_| true);
        // The shell expands a tilde after `name=`, too.
        let start = match text.split_once("=~") {
            Some((name, _)) if !name.is_empty() && !text.starts_with('~') => name.len() + 1,
            Some(_) | None => 0,
        };
        if text.as_bytes().get(start) != Some(&b'~') {
            return Some(plain);
        }
        let (before, rest) = (plain.get(..start)?, plain.get(start + 1..)?);
        let (name, rest) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        match name {
            "" => Some(format!("{before}{}{rest}", self.home?)),
            "+" => Some(format!("{before}.{rest}")),
            _ => {
                self.limits.give_up(Reason::Tilde);
                None
            }
        }
    }
}

/// Whether a command prints its arguments.
fn is_printer(words: &Words, node: Node) -> bool {
    let name = node.child_by_field_name("name").map(|name| words.text(name));
    node.kind() == "command" && matches!(name, Some("echo" | "printf"))
}

/// A part of a word.
enum Piece<'t> {
    Text(String),
    Node(Node<'t>),
}

/// Removes the backslashes that escape something.
pub(super) fn without_backslashes(text: &str, escapes: impl Fn(char) -> bool) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match chars.peek() {
            Some(next) if c == '\\' && escapes(*next) => {
                if *next != '\n' {
                    out.push(*next);
                }
                chars.next();
            }
            Some(_) | None => out.push(c),
        }
    }
    out
}

/// The value of a text between `$'` and `'`.
fn ansi_c(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        let Some(kind) = chars.next() else {
            out.push(c);
            break;
        };
        let (radix, most) = match kind {
            'x' => (16, 2),
            'u' => (16, 4),
            'U' => (16, 8),
            '0'..='7' => (8, 3),
            other => {
                out.push(match other {
                    'n' => '\n',
                    't' => '\t',
                    'r' => '\r',
                    'a' => '\u{7}',
                    'b' => '\u{8}',
                    'e' | 'E' => '\u{1b}',
                    'f' => '\u{c}',
                    'v' => '\u{b}',
                    other => other,
                });
                continue;
            }
        };
        let mut digits = if radix == 8 { String::from(kind) } else { String::new() };
        while digits.len() < most
            && let Some(digit) = chars.next_if(|digit| digit.is_digit(radix))
        {
            digits.push(digit);
        }
        out.extend(u32::from_str_radix(&digits, radix).ok().and_then(char::from_u32));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_resolved() {
        for (text, expected) in [
            (r"\x72m", "rm"),
            (r"\162\155", "rm"),
            (r"\u0072m", "rm"),
            (r"a\nb\'c\\", "a\nb'c\\"),
            ("\\", "\\"),
        ] {
            assert_eq!(ansi_c(text), expected, "{text}");
        }
    }
}
