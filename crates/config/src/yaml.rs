//! Parses the subset of YAML that is common in front matter.
//!
//! Supports block and flow mappings and lists, plain, quoted and block scalars, and comments. An invalid value is
//! skipped with its key and reported with its line. As existing files expect, an unquoted value may contain a colon.
//! Nothing is lost without a report: a key that is there twice and a merge of another mapping are reported too.

use serde_json::{Number, Value};

use crate::Map;

/// The maximum nesting depth.
const MAX_DEPTH: usize = 24;
/// The maximum number of reported problems, without one that stands for the others.
const MAX_PROBLEMS: usize = 5;
/// The maximum number of reported lines that look like a key.
const MAX_GUESSES: usize = 50;
/// The problem of a key that is there twice, of which the last one counts.
pub(crate) const TWICE: &str = "is there twice";
/// The problem that stands for the others.
pub(crate) const OTHERS: &str = "and others after it are not understood";
/// The key that merges another mapping.
pub(crate) const MERGE: &str = "<<";

/// A part that was skipped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problem {
    /// The line, from 1.
    pub(crate) line: usize,
    /// The key, if it was parsed.
    pub(crate) key: Option<String>,
    /// The key of the outermost mapping that it is below, or the key itself.
    pub(crate) top: Option<String>,
    /// The problem.
    pub(crate) text: &'static str,
    /// Whether the text is valid, and only a reader who knows the key can tell whether it is meant differently.
    pub(crate) is_guess: bool,
}

/// Parses a mapping.
pub(crate) fn parse(text: &str) -> (Map, Vec<Problem>) {
    let lines = text.lines().map(|line| line.trim_end_matches('\r')).collect();
    let mut reader = Reader { lines, at: 0, top: None, problems: Vec::new() };
    let map = match reader.peek() {
        Some((_, text)) if text.starts_with('{') => reader.document(),
        _ => reader.map(0, 0),
    };
    (map, reader.problems)
}

struct Reader<'a> {
    lines: Vec<&'a str>,
    at: usize,
    /// The key of the outermost mapping that is read.
    top: Option<String>,
    problems: Vec<Problem>,
}

/// The indentation. A tab, which YAML does not permit, counts like a space, so that what is below a key stays below it.
fn indent(line: &str) -> usize {
    line.len() - line.trim_start_matches([' ', '\t']).len()
}

fn is_item(text: &str) -> bool {
    text == "-" || text.starts_with("- ")
}

impl<'a> Reader<'a> {
    /// Skips blank lines and comments, and returns the indentation and text of the next line.
    fn peek(&mut self) -> Option<(usize, &'a str)> {
        while let Some(line) = self.lines.get(self.at) {
            let text = line.trim();
            if text.is_empty() || text.starts_with('#') || text == "---" {
                self.at += 1;
                continue;
            }
            return Some((indent(line), text));
        }
        None
    }

    fn problem(&mut self, key: Option<&str>, text: &'static str) {
        self.problem_at(self.at, key, text);
    }

    fn problem_at(&mut self, at: usize, key: Option<&str>, text: &'static str) {
        let key = key.map(str::to_owned);
        let top = self.top.clone().or_else(|| key.clone());
        self.push(Problem { line: at + 1, key, top, text, is_guess: false });
    }

    /// Reports a line that continues a text and looks like a key.
    fn guess(&mut self, line: &str) {
        if let Some((key, _)) = key(line).filter(|(key, _)| !key.contains(' ')) {
            let text = "is indented, so it continues the text above it";
            let (key, top) = (Some(key.clone()), Some(key));
            self.push(Problem { line: self.at + 1, key, top, text, is_guess: true });
        }
    }

    /// The last of too many problems stands for the others.
    fn push(&mut self, problem: Problem) {
        let count = self.problems.iter().filter(|known| known.is_guess == problem.is_guess).count();
        let limit = if problem.is_guess { MAX_GUESSES } else { MAX_PROBLEMS };
        if count < limit {
            self.problems.push(problem);
        } else if count == limit && !problem.is_guess {
            self.problems.push(Problem { key: None, top: None, text: OTHERS, ..problem });
        }
    }

    /// A mapping in braces that is the whole text.
    fn document(&mut self) -> Map {
        let lines = self.lines.iter().skip(self.at).filter(|line| line.trim() != "---");
        let text = lines.copied().collect::<Vec<_>>().join("\n");
        let mut flow = Flow { has_comments: true, ..Flow::new(&text) };
        let value = flow.value();
        flow.skip();
        let read = value.filter(|_| flow.rest.is_empty()).map(|value| (value, flow.is_twice));
        match read {
            Some((Value::Object(map), is_twice)) => {
                if is_twice {
                    self.problem(None, "has a key twice");
                }
                map
            }
            _ => {
                self.problem(None, "begins a mapping in braces that is not valid");
                Map::new()
            }
        }
    }

    /// Adds an entry. A key that is there already is reported at its line.
    fn insert(&mut self, map: &mut Map, at: usize, key: String, value: Value) {
        if key == MERGE {
            self.problem_at(at, Some(&key), "merges another mapping, which is not supported");
        } else if map.contains_key(&key) {
            self.problem_at(at, Some(&key), TWICE);
        }
        map.insert(key, value);
    }

    fn map(&mut self, least: usize, depth: usize) -> Map {
        let mut map = Map::new();
        let Some((level, _)) = self.peek().filter(|(level, _)| *level >= least) else { return map };
        while let Some((at, text)) = self.peek() {
            if at < level {
                break;
            }
            if at > level || is_item(text) {
                self.problem(None, "has an unexpected indentation");
                self.at += 1;
                continue;
            }
            let Some((key, rest)) = key(text) else {
                self.problem(None, "is not `key: value`");
                self.at += 1;
                continue;
            };
            let begun = self.at;
            if depth == 0 {
                self.top = Some(key.clone());
            }
            if let Some(value) = self.value(&key, rest, level, depth) {
                self.insert(&mut map, begun, key, value);
            }
            if depth == 0 {
                self.top = None;
            }
        }
        map
    }

    /// Parses the value after a key at an indentation, and moves past it.
    fn value(&mut self, key: &str, rest: &'a str, level: usize, depth: usize) -> Option<Value> {
        if depth >= MAX_DEPTH {
            self.problem(Some(key), "is nested too deeply");
            self.at += 1;
            return None;
        }
        if let Some(style) = rest.chars().next().filter(|c| matches!(c, '|' | '>')) {
            self.at += 1;
            return Some(Value::String(self.block(level, style, &rest[1..])));
        }
        if rest.is_empty() || rest.starts_with('#') {
            self.at += 1;
            return Some(match self.peek() {
                Some((at, text)) if is_item(text) && at >= level => self.list(at, depth + 1),
                Some((at, text)) if at > level && self::key(text).is_some() => {
                    Value::Object(self.map(at, depth + 1))
                }
                Some((at, text)) if at > level && text.starts_with(['[', '{', '"', '\'']) => {
                    return self.flow(key, text, level);
                }
                Some((at, _)) if at > level => Value::String(self.folded(level)),
                _ => Value::Null,
            });
        }
        if rest.starts_with(['[', '{', '"', '\'']) {
            return self.flow(key, rest, level);
        }
        self.at += 1;
        let mut text = without_comment(rest).to_owned();
        // A plain text continues in lines with a deeper indentation.
        while let Some((at, more)) = self.peek().filter(|(at, _)| *at > level) {
            debug_assert!(at > level);
            self.guess(more);
            text.push(' ');
            text.push_str(without_comment(more));
            self.at += 1;
        }
        Some(plain(&text))
    }

    fn list(&mut self, level: usize, depth: usize) -> Value {
        let mut items = Vec::new();
        while let Some((at, text)) = self.peek() {
            if at != level || !is_item(text) {
                break;
            }
            let rest = text[1..].trim_start();
            let inner = level + text.len() - rest.len();
            if key(rest).is_some() && !rest.starts_with(['[', '{']) && depth < MAX_DEPTH {
                // The first key of a mapping follows the dash; it is parsed as if it were on the next line.
                items.push(self.mapping_item(inner, rest, depth));
                continue;
            }
            if let Some(value) = self.value("-", rest, level, depth) {
                items.push(value);
            }
        }
        Value::Array(items)
    }

    fn mapping_item(&mut self, level: usize, first: &'a str, depth: usize) -> Value {
        let mut map = Map::new();
        let begun = self.at;
        if let Some((key, rest)) = key(first)
            && let Some(value) = self.value(&key, rest, level, depth + 1)
        {
            self.insert(&mut map, begun, key, value);
        }
        if self.peek().is_some_and(|(at, text)| at == level && !is_item(text)) {
            let begun = self.at;
            for (key, value) in self.map(level, depth + 1) {
                self.insert(&mut map, begun, key, value);
            }
        }
        Value::Object(map)
    }

    /// The following lines, joined with spaces.
    fn folded(&mut self, level: usize) -> String {
        let mut words = Vec::new();
        while let Some((_, text)) = self.peek().filter(|(at, _)| *at > level) {
            self.guess(text);
            words.push(without_comment(text));
            self.at += 1;
        }
        words.join(" ")
    }

    /// A block scalar: `|` keeps the lines, `>` joins them.
    fn block(&mut self, level: usize, style: char, marks: &str) -> String {
        let mut lines: Vec<&str> = Vec::new();
        while let Some(line) = self.lines.get(self.at) {
            if !line.trim().is_empty() && indent(line) <= level {
                break;
            }
            lines.push(line);
            self.at += 1;
        }
        let margin = lines.iter().filter(|line| !line.trim().is_empty()).map(|line| indent(line)).min();
        let margin = margin.unwrap_or(0);
        let cut: Vec<&str> = lines.iter().map(|line| line.get(margin..).unwrap_or("")).collect();
        let mut text = String::new();
        for (n, line) in cut.iter().enumerate() {
            if n > 0 {
                let joins =
                    style == '>' && !line.is_empty() && !cut[n - 1].is_empty() && !line.starts_with(' ');
                text.push(if joins { ' ' } else { '\n' });
            }
            text.push_str(line);
        }
        let text = text.trim_end_matches('\n');
        if marks.contains('-') { text.to_owned() } else { format!("{text}\n") }
    }

    /// A value in brackets or quotes, which may continue on the next lines.
    fn flow(&mut self, key: &str, first: &str, level: usize) -> Option<Value> {
        let mut text = first.to_owned();
        let begun = self.at;
        loop {
            let mut flow = Flow::new(&text);
            match flow.value() {
                Some(value) if is_blank(flow.rest) => {
                    if flow.is_twice {
                        self.problem_at(begun, Some(key), "has a key twice");
                    }
                    self.at += 1;
                    return Some(value);
                }
                // Text after the bracket or quote: the whole line is a plain value.
                Some(_) if self.at == begun => {
                    self.at += 1;
                    return Some(plain(without_comment(first)));
                }
                _ => {}
            }
            let next = self.lines.get(self.at + 1);
            let continues = |line: &&str| {
                line.trim().is_empty() || indent(line) > level || line.trim().starts_with([']', '}'])
            };
            match next.filter(|line| continues(line)) {
                Some(line) => {
                    text.push(' ');
                    text.push_str(line.trim());
                    self.at += 1;
                }
                None => {
                    self.problem(Some(key), "has a bracket or quote that is never closed");
                    self.at += 1;
                    return None;
                }
            }
        }
    }
}

/// A parser for flow values in one line of text.
struct Flow<'a> {
    rest: &'a str,
    depth: usize,
    /// Whether a mapping has a key twice, or merges another one.
    is_twice: bool,
    /// Whether the text has several lines, in which comments end.
    has_comments: bool,
}

impl<'a> Flow<'a> {
    fn new(rest: &'a str) -> Self {
        Self { rest, depth: 0, is_twice: false, has_comments: false }
    }

    fn value(&mut self) -> Option<Value> {
        self.skip();
        let first = self.rest.chars().next()?;
        if self.depth >= MAX_DEPTH {
            return None;
        }
        self.depth += 1;
        let value = match first {
            '"' | '\'' => self.quoted(first).map(Value::String),
            '[' => self.items(),
            '{' => self.entries(),
            _ => {
                let mut end = self.rest.find([',', ']', '}']).unwrap_or(self.rest.len());
                if self.has_comments {
                    end = end.min(self.rest.find(" #").unwrap_or(end));
                }
                let (text, rest) = self.rest.split_at(end);
                self.rest = rest;
                Some(plain(text.trim()))
            }
        };
        self.depth -= 1;
        value
    }

    fn skip(&mut self) {
        self.rest = self.rest.trim_start();
        while self.has_comments && self.rest.starts_with('#') {
            self.rest = self.rest.split_once('\n').map_or("", |(_, rest)| rest).trim_start();
        }
    }

    fn eat(&mut self, what: char) -> bool {
        self.skip();
        let rest = self.rest.strip_prefix(what);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn items(&mut self) -> Option<Value> {
        self.eat('[');
        let mut items = Vec::new();
        while !self.eat(']') {
            items.push(self.value()?);
            if !self.eat(',') && !self.rest.starts_with(']') {
                return None;
            }
        }
        Some(Value::Array(items))
    }

    fn entries(&mut self) -> Option<Value> {
        self.eat('{');
        let mut map = Map::new();
        while !self.eat('}') {
            self.skip();
            let key = match self.rest.chars().next()? {
                quote @ ('"' | '\'') => self.quoted(quote)?,
                _ => {
                    let end = self.rest.find([':', ',', '}'])?;
                    let (text, rest) = self.rest.split_at(end);
                    self.rest = rest;
                    text.trim().to_owned()
                }
            };
            let value = if self.eat(':') { self.value()? } else { Value::Null };
            let is_merge = key == MERGE;
            self.is_twice |= map.insert(key, value).is_some() || is_merge;
            if !self.eat(',') && !self.rest.starts_with('}') {
                return None;
            }
        }
        Some(Value::Object(map))
    }

    fn quoted(&mut self, quote: char) -> Option<String> {
        let mut text = String::new();
        let mut chars = self.rest.char_indices().skip(1).peekable();
        while let Some((at, char)) = chars.next() {
            match char {
                '\'' if quote == '\'' && chars.peek().is_some_and(|(_, next)| *next == '\'') => {
                    text.push('\'');
                    chars.next();
                }
                char if char == quote => {
                    self.rest = &self.rest[at + char.len_utf8()..];
                    return Some(text);
                }
                '\\' if quote == '"' => match chars.next()?.1 {
                    'n' => text.push('\n'),
                    't' => text.push('\t'),
                    'r' => text.push('\r'),
                    '0' => text.push('\0'),
                    'u' => {
                        let hex: String = chars.by_ref().take(4).map(|(_, char)| char).collect();
                        text.push(u32::from_str_radix(&hex, 16).ok().and_then(char::from_u32)?);
                    }
                    other => text.push(other),
                },
                char => text.push(char),
            }
        }
        None
    }
}

/// Splits a line into a key and the text after its colon.
fn key(text: &str) -> Option<(String, &str)> {
    if let Some(quote) = text.chars().next().filter(|c| matches!(c, '"' | '\'')) {
        let mut flow = Flow::new(text);
        let key = flow.quoted(quote)?;
        let rest = flow.rest.trim_start().strip_prefix(':')?;
        return (rest.is_empty() || rest.starts_with(' ')).then(|| (key, rest.trim()));
    }
    let (key, rest) = match text.split_once(": ") {
        Some((key, rest)) => (key, rest.trim()),
        None => (text.strip_suffix(':')?, ""),
    };
    let fits = !key.is_empty() && !key.contains([' ', '[', '{', ',']) || key.split(' ').count() <= 4;
    (fits && !key.starts_with(['[', '{'])).then(|| (key.trim().to_owned(), rest))
}

/// Whether a text is empty or a comment.
fn is_blank(text: &str) -> bool {
    let text = text.trim();
    text.is_empty() || text.starts_with('#')
}

fn without_comment(text: &str) -> &str {
    text.find(" #").map_or(text, |at| &text[..at]).trim_end()
}

/// The value of an unquoted text.
fn plain(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Value::Null,
        "true" | "True" | "TRUE" => return Value::Bool(true),
        "false" | "False" | "FALSE" => return Value::Bool(false),
        _ => {}
    }
    let looks_like_number = text.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '-' | '+' | '.'));
    if looks_like_number {
        if let Ok(whole) = text.parse::<i64>() {
            return Value::Number(whole.into());
        }
        if let Some(number) = text.parse::<f64>().ok().and_then(Number::from_f64) {
            return Value::Number(number);
        }
    }
    Value::String(text.to_owned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let (map, problems) = parse(text);
        assert_eq!(Value::Object(map).to_string(), expected);
        assert_eq!(problems, []);
    }

    #[test]
    fn scalars_have_the_type_they_look_like() {
        check(
            "a: 1\nb: 0.5\nc: true\nd: text here\ne: \"two\\n\\u00e4\"\nf: 'it''s'\ng:\nh: ~\ni: 1.2.3 # no number",
            r#"{"a":1,"b":0.5,"c":true,"d":"text here","e":"two\nä","f":"it's","g":null,"h":null,"i":"1.2.3"}"#,
        );
        check("color: \"#ff0000\"\nother: '#x' # note", r##"{"color":"#ff0000","other":"#x"}"##);
    }

    #[test]
    fn an_unquoted_value_may_contain_colons_and_stars() {
        check(
            "description: Use this when: it fails\nurl: http://x/y\np: *.md",
            r#"{"description":"Use this when: it fails","url":"http://x/y","p":"*.md"}"#,
        );
        check("x: \"quoted\" and more", r#"{"x":"\"quoted\" and more"}"#);
    }

    #[test]
    fn mappings_and_lists_nest() {
        check(
            "permission:\n  edit: ask\n  bash:\n    \"git *\": allow\n    '*': deny\ntools: {write: false, \"a b\": true}\nlist:\n- a\n- b: 1\n  c: 2\n-   d\nflow: [a, 'b', [1]]\n",
            r#"{"permission":{"edit":"ask","bash":{"git *":"allow","*":"deny"}},"tools":{"write":false,"a b":true},"list":["a",{"b":1,"c":2},"d"],"flow":["a","b",[1]]}"#,
        );
        check("a:\n  [1,\n   2]\nb: {x: 1,\n  y: 2\n}\n", r#"{"a":[1,2],"b":{"x":1,"y":2}}"#);
    }

    #[test]
    fn blocks_keep_or_join_their_lines() {
        check(
            "a: |\n  one\n   two\n\n  three\nb: >-\n  one\n  two\n\n  three\nc: x",
            "{\"a\":\"one\\n two\\n\\nthree\\n\",\"b\":\"one two\\n\\nthree\",\"c\":\"x\"}",
        );
        check("a: one\n  two\nb:\n  three\n  four", r#"{"a":"one two","b":"three four"}"#);
    }

    #[test]
    fn an_invalid_value_is_skipped_with_its_key() {
        let (map, problems) =
            parse("description: [unclosed\nmode: primary\nnothing here at all but words\nx: \"open\n");
        assert_eq!(Value::Object(map).to_string(), r#"{"mode":"primary"}"#);
        let found: Vec<_> = problems.iter().map(|p| (p.line, p.key.as_deref())).collect();
        assert_eq!(found, [(1, Some("description")), (3, None), (4, Some("x"))]);
    }

    #[test]
    fn a_text_can_be_one_mapping_in_braces() {
        check(r#"{"a": "R", "tools": {"write": false}}"#, r#"{"a":"R","tools":{"write":false}}"#);
        check(
            "# note\n{\n  a: x, # one, }\n  # two\n  tools: { # three\n    write: false # four, {\n  },\n} # five\n",
            r#"{"a":"x","tools":{"write":false}}"#,
        );
        check("{}", "{}");
        for text in ["{a: 1", "{a: 1} more", "{a: 1}\nb: 2", "{a: [1}", "{a: 1, a: 2}"] {
            let (_, problems) = parse(text);
            assert_eq!(
                problems.iter().map(|p| (p.line, p.key.as_deref())).collect::<Vec<_>>(),
                [(1, None)],
                "{text}"
            );
        }
    }

    #[test]
    fn nothing_is_lost_without_a_report() {
        for (text, line, key, top) in [
            ("tools:\n  a: 1\ntools:\n  b: 1", 3, Some("tools"), Some("tools")),
            ("tools: {a: 1, a: 2}", 1, Some("tools"), Some("tools")),
            ("tools:\n  a: 1\n  a: 2", 3, Some("a"), Some("tools")),
            ("tools:\n  a: [1", 2, Some("a"), Some("tools")),
            ("x:\n- a: 1\n  a: 2", 3, Some("a"), Some("x")),
            ("a: 1\n<<: *b", 2, Some("<<"), Some("<<")),
        ] {
            let (_, problems) = parse(text);
            let found: Vec<_> =
                problems.iter().map(|p| (p.line, p.key.as_deref(), p.top.as_deref())).collect();
            assert_eq!(found, [(line, key, top)], "{text}");
        }
        let (_, problems) = parse("description: R\n tools:\n   write: false\n");
        let found: Vec<_> = problems.iter().map(|p| (p.line, p.key.as_deref(), p.is_guess)).collect();
        assert_eq!(found, [(2, Some("tools"), true), (3, Some("write"), true)]);
        let (_, problems) = parse(&"words\n".repeat(9));
        assert_eq!(problems.len(), MAX_PROBLEMS + 1);
    }

    proptest! {
        #[test]
        fn any_text_is_parsed_without_a_panic(text in "[ \\n:\\-\\[\\]{}\"'|>#a-c,\\\\u0]{0,200}") {
            drop(parse(&text));
        }

        #[test]
        fn quoted_text_is_unchanged(text in "[a-zA-Z :#\\[\\]{}'é-]{0,40}") {
            let quoted = serde_json::to_string(&text).unwrap();
            let (map, problems) = parse(&format!("key: {quoted}"));
            prop_assert_eq!(map.get("key"), Some(&Value::String(text)));
            prop_assert!(problems.is_empty());
        }
    }
}
