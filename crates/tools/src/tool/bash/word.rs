//! What a word of a command line stands for.
//!
//! A word is what it says, or what the shell makes of it. What follows from the line itself is
//! followed: quotes, escapes, braces, and variables that the line sets. Everything else only the run tells.

use std::collections::HashMap;

use tree_sitter::Node;

/// How many values of one word are followed.
const MAX_VALUES: usize = 32;
/// A longer value is not followed.
const MAX_VALUE_BYTES: usize = 64 * 1024;
/// Kinds of nodes whose value depends on more than their text.
const COMPUTED: [&str; 6] = [
    "arithmetic_expansion",
    "brace_expression",
    "command_substitution",
    "expansion",
    "process_substitution",
    "simple_expansion",
];

/// The values that variables may have.
pub(super) type Variables = HashMap<String, Vec<String>>;

/// A word, and what may be told of it.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Word {
    /// As it is written.
    pub(super) raw: String,
    /// What it may stand for; nothing if that cannot be told.
    pub(super) values: Vec<String>,
    /// Whether it stands for that and nothing else.
    pub(super) is_fixed: bool,
}

impl Word {
    /// A word that says what it means.
    pub(super) fn fixed(text: &str) -> Self {
        Self { raw: text.to_owned(), values: vec![text.to_owned()], is_fixed: true }
    }

    /// A word that nothing can be told of.
    pub(super) fn unknown(raw: &str) -> Self {
        Self { raw: raw.to_owned(), values: Vec::new(), is_fixed: false }
    }

    /// The same without the blanks in front that a grammar may have left there.
    pub(super) fn trimmed(self) -> Self {
        if !self.raw.starts_with(char::is_whitespace) {
            return self;
        }
        let values = self.values.iter().map(|value| value.trim_start().to_owned()).collect();
        Self { raw: self.raw.trim_start().to_owned(), values, is_fixed: self.is_fixed }
    }

    /// Its likeliest value, else how it is written.
    pub(super) fn text(&self) -> &str {
        self.values.first().unwrap_or(&self.raw)
    }

    /// The words it becomes where the shell splits it, for each value.
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
            // Braces make several words of one; the first value is the text with its braces.
            return vec![self.values.iter().skip(1).map(|value| Self::fixed(value)).collect()];
        }
        self.values.iter().map(|value| value.split_whitespace().map(Self::fixed).collect()).collect()
    }
}

/// The words of one source.
pub(super) struct Words<'a> {
    pub(super) source: &'a str,
    pub(super) home: Option<&'a str>,
    pub(super) variables: Variables,
}

impl<'a> Words<'a> {
    pub(super) fn text(&self, node: Node) -> &'a str {
        &self.source[node.byte_range()]
    }

    /// What a word stands for, if that does not depend on the run.
    pub(super) fn word(&self, node: Node) -> Option<String> {
        let text = self.text(node);
        match node.kind() {
            "word" | "number" | "variable_name" => self.home_of(&unquoted(text, |_| true)),
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

    /// Everything that can be told of a word.
    pub(super) fn all(&self, node: Node) -> Word {
        let mut values = self.values(node);
        if self.text(node).contains('{')
            && let Some(first) = values.first()
        {
            values.extend(braces(first));
            values.truncate(MAX_VALUES);
        }
        Word {
            raw: self.text(node).to_owned(),
            is_fixed: !values.is_empty() && !self.is_computed(node),
            values,
        }
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

    fn values(&self, node: Node) -> Vec<String> {
        let text = self.text(node);
        match node.kind() {
            "concatenation" => self.joined(node.named_children(&mut node.walk()).map(Piece::Node)),
            "string" => self.joined(self.pieces(node).into_iter()),
            "translated_string" => node.named_child(0).map(|node| self.values(node)).unwrap_or_default(),
            "ansi_c_string" => vec![ansi_c(text.trim_start_matches("$'").trim_end_matches('\''))],
            "simple_expansion" | "expansion" if self.word(node).is_none() => self.variable(text),
            "command_substitution" => match node.named_child(0) {
                Some(only) if node.named_child_count() == 1 => self.said(only),
                Some(_) | None => Vec::new(),
            },
            _ => self.word(node).into_iter().collect(),
        }
    }

    /// What an `echo` or a `printf` of plain words writes.
    pub(super) fn said(&self, node: Node) -> Vec<String> {
        let name = node.child_by_field_name("name").map(|name| self.text(name));
        if node.kind() != "command" || !matches!(name, Some("echo" | "printf")) {
            return Vec::new();
        }
        let mut cursor = node.walk();
        let words = node.children_by_field_name("argument", &mut cursor).map(|word| self.all(word));
        let words: Vec<Word> =
            words.filter(|word| !matches!(word.text(), "-e" | "-n" | "%s" | "%s\\n" | "--")).collect();
        if words.iter().any(|word| word.values.is_empty()) {
            return Vec::new();
        }
        let plain = words.iter().map(Word::text).collect::<Vec<_>>().join(" ");
        let escaped = ansi_c(&plain);
        if escaped == plain { vec![plain] } else { vec![plain, escaped] }
    }

    fn variable(&self, text: &str) -> Vec<String> {
        let name = text.trim_start_matches(['$', '{']).trim_end_matches('}');
        if name == "PWD" {
            return vec![".".to_owned()];
        }
        self.variables.get(name).cloned().unwrap_or_default()
    }

    /// What is set, and to what.
    pub(super) fn assignment(&self, node: Node) -> Option<(String, Word)> {
        let name = self.text(node.child_by_field_name("name")?).to_owned();
        Some((name, self.all(node.child_by_field_name("value")?)))
    }

    /// Remembers what a variable is set to; it may have any of its values later.
    pub(super) fn learn(&mut self, node: Node) {
        let Some((name, word)) = self.assignment(node) else { return };
        let appends = self.text(node).as_bytes().get(name.len()) == Some(&b'+');
        let before = self.variables.get(&name).filter(|_| appends).cloned();
        let values = match before {
            Some(before) => products(&before, &word.values),
            None => word.values,
        };
        self.know(name, values);
    }

    /// The same of the variable of a loop.
    pub(super) fn learn_each(&mut self, node: Node) {
        let Some(name) = node.child_by_field_name("variable").map(|name| self.text(name).to_owned()) else {
            return;
        };
        let mut cursor = node.walk();
        let values: Vec<String> = node
            .children_by_field_name("value", &mut cursor)
            .flat_map(|value| self.all(value).values)
            .collect();
        self.know(name, values);
    }

    fn know(&mut self, name: String, values: Vec<String>) {
        let known = self.variables.entry(name).or_default();
        for value in values {
            if known.len() < MAX_VALUES && !known.contains(&value) {
                known.push(value);
            }
        }
    }

    fn joined<'t>(&self, pieces: impl Iterator<Item = Piece<'t>>) -> Vec<String> {
        let mut all = vec![String::new()];
        for piece in pieces {
            let values = match piece {
                Piece::Node(node) => self.values(node),
                Piece::Text(text) => vec![text],
            };
            all = products(&all, &values);
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
            pieces.push(Piece::Text(unquoted(
                self.source.get(at..child.start_byte()).unwrap_or_default(),
                escapes,
            )));
            pieces.push(Piece::Node(child));
            at = child.end_byte();
        }
        pieces.push(Piece::Text(unquoted(self.source.get(at..end).unwrap_or_default(), escapes)));
        pieces
    }

    fn string(&self, node: Node) -> Option<String> {
        let pieces = self.pieces(node).into_iter().map(|piece| match piece {
            Piece::Text(text) => Some(text),
            Piece::Node(node) => self.word(node),
        });
        pieces.collect()
    }

    fn home_of(&self, word: &str) -> Option<String> {
        match word.strip_prefix('~') {
            Some(rest) if rest.is_empty() || rest.starts_with('/') => Some(format!("{}{rest}", self.home?)),
            Some(_) | None => Some(word.to_owned()),
        }
    }
}

/// A part of a word.
enum Piece<'t> {
    Text(String),
    Node(Node<'t>),
}

/// Each of the first followed by each of the second.
fn products(first: &[String], second: &[String]) -> Vec<String> {
    let pairs = first.iter().flat_map(|a| second.iter().map(move |b| (a, b)));
    let pairs = pairs.filter(|(a, b)| a.len() + b.len() <= MAX_VALUE_BYTES);
    pairs.take(MAX_VALUES).map(|(a, b)| format!("{a}{b}")).collect()
}

/// The words `a{b,c}d` stands for, once its first braces are taken apart; nothing if it has none.
pub(super) fn braces(word: &str) -> Vec<String> {
    let Some((before, rest)) = word.split_once('{') else { return Vec::new() };
    let Some((inside, after)) = rest.split_once('}') else { return Vec::new() };
    if !inside.contains(',') && !inside.contains("..") {
        return Vec::new();
    }
    // Taken apart again from here on, a word of many braces would double with each.
    let after = after.replace(['{', '}'], "");
    let choices = inside.split(',').take(MAX_VALUES);
    choices.map(|choice| format!("{}{after}", format!("{before}{choice}").replace('{', ""))).collect()
}

/// A text without the backslashes that quote something.
fn unquoted(text: &str, escapes: impl Fn(char) -> bool) -> String {
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

/// What a text between `$'` and `'` stands for.
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
    fn escapes_stand_for_characters() {
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

    #[test]
    fn braces_stand_for_several_words() {
        for (word, expected) in
            [("r{m,}", &["rm", "r"][..]), ("{a,b}/c", &["a/c", "b/c"]), ("{}", &[]), ("{", &[])]
        {
            assert_eq!(braces(word), expected, "{word}");
        }
    }
}
