//! Parses and checks a configuration text. Errors have a position.
//!
//! The text is JSON with comments and trailing commas. References (`{env:…}` and `{file:…}`) are replaced inside the
//! parsed strings, so that their values cannot change the structure of the document.

mod insert;
pub(crate) mod schema;
pub(crate) mod slips;

use std::borrow::Cow;

use jsonc_parser::{
    ParseOptions, ParseStringErrorKind, ast,
    common::Ranged as _,
    errors::{ParseError, ParseErrorKind},
};
use serde_json::{Number, Value};

pub(crate) use insert::{Inserter, references, variables};
use schema::{Fault, Shape};

use crate::{Error, Map, Position};

/// The maximum nesting depth. serde_json, which clients use, fails at 128.
const MAX_DEPTH: usize = 100;

/// A value with its position in the text.
#[derive(Debug)]
pub(crate) struct Node {
    offset: usize,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Null,
    Switch(bool),
    Number(Number),
    Text(String),
    List(Vec<Node>),
    Object(Vec<(String, Node)>),
}

/// A text and its name in messages.
pub(crate) struct Origin<'a> {
    name: Cow<'a, str>,
    text: &'a str,
}

impl<'a> Origin<'a> {
    pub(crate) fn new(name: impl Into<Cow<'a, str>>, text: &'a str) -> Self {
        // Some editors on Windows start a file with a byte order mark.
        Self { name: name.into(), text: text.strip_prefix('\u{feff}').unwrap_or(text) }
    }

    /// The name in messages.
    pub(crate) fn name(&self) -> String {
        self.name.clone().into_owned()
    }

    /// Parses the text, replaces references and checks the values. An empty text is an empty object.
    pub(crate) fn read(&self, shape: &Shape, inserter: Option<&mut Inserter<'_>>) -> Result<Node, Error> {
        let parsed = jsonc_parser::parse_to_ast(self.text, &Default::default(), &accepted())
            .map_err(|error| self.syntax(&error))?;
        let Some(value) = parsed.value else { return Ok(Node { offset: 0, kind: Kind::Object(Vec::new()) }) };
        let mut node = self.node(value, 0)?;
        if let Some(inserter) = inserter {
            inserter.fill(&mut node).map_err(|failed| Error::Insert {
                position: self.position(failed.offset),
                reference: failed.reference,
                problem: failed.problem,
            })?;
        }
        if std::ptr::eq(shape, &schema::CONFIG) {
            slips::read_names(&mut node);
        }
        schema::check(&node, shape).map_err(|fault| self.value(fault))?;
        Ok(node)
    }

    /// The line and column of a byte offset.
    pub(crate) fn position(&self, offset: usize) -> Position {
        let before = self.text.get(..offset).unwrap_or(self.text);
        let (mut line, mut column) = (1, 1);
        let mut chars = before.chars().peekable();
        while let Some(char) = chars.next() {
            if char == '\n' || (char == '\r' && chars.peek() != Some(&'\n')) {
                line += 1;
                column = 1;
            } else if char != '\r' {
                column += 1;
            }
        }
        Position { source: self.name.clone().into_owned(), line, column }
    }

    fn value(&self, fault: Fault) -> Error {
        let Fault { offset, key, expected, found } = fault;
        Error::Value { position: self.position(offset), key, expected, found }
    }

    fn syntax(&self, error: &ParseError) -> Error {
        let problem = match error.kind() {
            // The parser's message contains the digits, which may be part of a secret.
            ParseErrorKind::String(ParseStringErrorKind::InvalidUnicodeEscapeSequence(_)) => {
                "invalid unicode escape".to_owned()
            }
            kind => lowered(&kind.to_string()),
        };
        Error::Syntax { position: self.position(error.range().start), problem }
    }

    fn node(&self, value: ast::Value<'_>, depth: usize) -> Result<Node, Error> {
        let offset = value.range().start;
        if depth > MAX_DEPTH {
            let problem = format!("nested more than {MAX_DEPTH} levels deep");
            return Err(Error::Syntax { position: self.position(offset), problem });
        }
        let kind = match value {
            ast::Value::NullKeyword(_) => Kind::Null,
            ast::Value::BooleanLit(switch) => Kind::Switch(switch.value),
            ast::Value::StringLit(text) => Kind::Text(text.value.into_owned()),
            ast::Value::NumberLit(number) => Kind::Number(number.value.parse().map_err(|_| {
                let problem = "the number is malformed or too large".to_owned();
                Error::Syntax { position: self.position(offset), problem }
            })?),
            ast::Value::Array(list) => {
                let entries = list.elements.into_iter().map(|entry| self.node(entry, depth + 1));
                Kind::List(entries.collect::<Result<_, _>>()?)
            }
            ast::Value::Object(object) => {
                let entries = object
                    .properties
                    .into_iter()
                    .map(|entry| Ok((entry.name.into_string(), self.node(entry.value, depth + 1)?)));
                Kind::Object(entries.collect::<Result<_, _>>()?)
            }
        };
        Ok(Node { offset, kind })
    }
}

impl Node {
    /// The value without positions. If a key is repeated, the last value wins and keeps the first position.
    pub(crate) fn into_value(self) -> Value {
        match self.kind {
            Kind::Null => Value::Null,
            Kind::Switch(switch) => Value::Bool(switch),
            Kind::Number(number) => Value::Number(number),
            Kind::Text(text) => Value::String(text),
            Kind::List(entries) => Value::Array(entries.into_iter().map(Self::into_value).collect()),
            Kind::Object(entries) => Value::Object(object(entries)),
        }
    }

    /// The entries of an object; empty for other values.
    pub(crate) fn into_map(self) -> Map {
        if let Kind::Object(entries) = self.kind { object(entries) } else { Map::new() }
    }
}

impl From<&Value> for Node {
    fn from(value: &Value) -> Self {
        let kind = match value {
            Value::Null => Kind::Null,
            Value::Bool(switch) => Kind::Switch(*switch),
            Value::Number(number) => Kind::Number(number.clone()),
            Value::String(text) => Kind::Text(text.clone()),
            Value::Array(entries) => Kind::List(entries.iter().map(Self::from).collect()),
            Value::Object(entries) => {
                Kind::Object(entries.iter().map(|(name, value)| (name.clone(), value.into())).collect())
            }
        };
        Self { offset: 0, kind }
    }
}

fn object(entries: Vec<(String, Node)>) -> Map {
    entries.into_iter().map(|(name, node)| (name, node.into_value())).collect()
}

pub(crate) fn accepted() -> ParseOptions {
    ParseOptions {
        allow_comments: true,
        allow_trailing_commas: true,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    }
}

fn lowered(sentence: &str) -> String {
    let mut chars = sentence.chars();
    chars.next().map_or_else(String::new, |first| first.to_lowercase().chain(chars).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn syntax(text: &str, line: usize, column: usize, expected: &str) {
        match Origin::new("f", text).read(&Shape::Any, None) {
            Err(Error::Syntax { position, problem }) => {
                assert_eq!((position.line, position.column), (line, column), "{text}: {problem}");
                assert!(problem.contains(expected), "{text}: {problem}");
            }
            other => panic!("{text}: {other:?}"),
        }
    }

    #[track_caller]
    fn reads(text: &str, expected: &str) {
        let node = Origin::new("f", text).read(&Shape::Any, None).unwrap();
        assert_eq!(node.into_value().to_string(), expected);
    }

    #[test]
    fn comments_trailing_commas_and_all_line_ends_are_accepted() {
        reads("\u{feff}{\r\n // one\r\n \"a\": [1, 2,], /* two */\r\n}\r\n", r#"{"a":[1,2]}"#);
        reads("", "{}");
        reads("  // nothing\n", "{}");
        reads("null", "null");
    }

    #[test]
    fn the_last_of_two_equal_keys_wins() {
        reads(r#"{"a": 1, "b": 2, "a": 3}"#, r#"{"a":3,"b":2}"#);
    }

    #[test]
    fn a_syntax_error_has_a_position() {
        syntax("{\n  \"a\": 1\n  \"b\": 2\n}", 2, 9, "comma");
        syntax("{\n  a: 1}", 2, 3, "string");
        syntax("{\"a\": 'x'}", 1, 7, "quoted");
        syntax("{\"ä\": tru}", 1, 7, "token");
        syntax("{\"a\": 1}\n{}", 2, 1, "more than one");
        syntax("{\r\n\r\n\"a\": ]}", 3, 6, "bracket");
        syntax("{\"a\": \"unended}", 1, 7, "unterminated");
        syntax("{\"a\": 1e999}", 1, 7, "too large");
        syntax("{\"a\": \"\\ud800\"}", 1, 8, "escape");
    }

    #[test]
    fn nesting_is_bounded() {
        let deep = |levels: usize| format!("{}1{}", "[".repeat(levels), "]".repeat(levels));
        assert!(Origin::new("f", &deep(MAX_DEPTH)).read(&Shape::Any, None).is_ok());
        for levels in [MAX_DEPTH + 1, 400, 100_000] {
            assert!(Origin::new("f", &deep(levels)).read(&Shape::Any, None).is_err(), "{levels}");
        }
        let objects = format!("{}1{}", "{\"a\":".repeat(5000), "}".repeat(5000));
        assert!(Origin::new("f", &objects).read(&Shape::Any, None).is_err());
    }
}
