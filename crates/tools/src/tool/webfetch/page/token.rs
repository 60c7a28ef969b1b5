//! Splits a page into tags and texts.

use super::entity;

/// The attributes that are needed for reading. Others are skipped.
const KEPT: [&str; 6] = ["href", "src", "alt", "title", "class", "start"];
/// The limit for the length of an element's name.
const MAX_NAME: usize = 40;

/// A tag or a text.
#[derive(Debug, PartialEq)]
pub(in super::super) enum Token {
    /// A start tag.
    Start { name: String, attributes: Vec<(&'static str, String)>, closed: bool },
    /// An end tag.
    End(String),
    /// A text with its entities resolved.
    Text(String),
}

/// Splits a page.
pub(super) fn tokens(html: &str) -> impl Iterator<Item = Token> {
    Tokens { rest: html, raw: None }
}

struct Tokens<'a> {
    rest: &'a str,
    /// The element in which tags have no meaning.
    raw: Option<String>,
}

impl Iterator for Tokens<'_> {
    type Item = Token;

    fn next(&mut self) -> Option<Token> {
        while !self.rest.is_empty() {
            if let Some(name) = self.raw.take() {
                let end = end_of_raw(self.rest, &name);
                let (text, rest) = self.rest.split_at(end);
                self.rest = rest;
                if !text.is_empty() {
                    let is_prose = matches!(name.as_str(), "title" | "textarea");
                    return Some(Token::Text(if is_prose { entity::resolve(text) } else { text.to_owned() }));
                }
                continue;
            }
            let Some(after) = self.rest.strip_prefix('<') else { return Some(self.words(0)) };
            if let Some(after) = after.strip_prefix("!--") {
                self.rest = after.find("-->").map_or("", |end| &after[end + 3..]);
                continue;
            }
            match after.chars().next() {
                Some('!' | '?') => self.rest = after.find('>').map_or("", |end| &after[end + 1..]),
                Some('/') if after[1..].starts_with(|c: char| c.is_ascii_alphabetic()) => {
                    let (name, rest) = name(&after[1..]);
                    self.rest = rest.find('>').map_or("", |end| &rest[end + 1..]);
                    return Some(Token::End(name));
                }
                // Without a name, a browser treats it as a comment.
                Some('/') if after.starts_with("/>") => self.rest = &after[2..],
                Some(first) if first.is_ascii_alphabetic() => return Some(self.start(after)),
                _ => return Some(self.words(1)),
            }
        }
        None
    }
}

impl<'a> Tokens<'a> {
    /// The text up to the next tag. The first `known` bytes are text in any case.
    fn words(&mut self, known: usize) -> Token {
        let end = self.rest[known..].find('<').map_or(self.rest.len(), |at| at + known);
        let (text, rest) = self.rest.split_at(end);
        self.rest = rest;
        Token::Text(entity::resolve(text))
    }

    fn start(&mut self, after: &'a str) -> Token {
        let (name, mut rest) = name(after);
        let (mut attributes, mut closed) = (Vec::new(), false);
        loop {
            rest = rest.trim_start_matches(|c: char| c.is_ascii_whitespace());
            if let Some(after) = rest.strip_prefix('>') {
                rest = after;
                break;
            }
            if let Some(after) = rest.strip_prefix('/') {
                closed = after.starts_with('>');
                rest = after;
                continue;
            }
            if rest.is_empty() {
                break;
            }
            let (key, value, after) = attribute(rest);
            rest = after;
            let kept = KEPT.iter().find(|kept| key.eq_ignore_ascii_case(kept));
            if let Some(kept) = kept.filter(|kept| attributes.iter().all(|(known, _)| known != *kept)) {
                attributes.push((*kept, entity::resolve(value)));
            }
        }
        self.rest = rest;
        if matches!(
            name.as_str(),
            "script" | "style" | "title" | "textarea" | "noscript" | "iframe" | "template"
        ) && !closed
        {
            self.raw = Some(name.clone());
        }
        Token::Start { name, attributes, closed }
    }
}

/// The name at the start, in lower case, and the text after it.
fn name(text: &str) -> (String, &str) {
    let ends = |c: char| c.is_ascii_whitespace() || matches!(c, '>' | '/');
    let (name, rest) = text.split_at(text.find(ends).unwrap_or(text.len()));
    let name = if name.len() <= MAX_NAME { name.to_ascii_lowercase() } else { String::new() };
    (name, rest)
}

/// An attribute, its value and the text after it. Consumes at least one character.
fn attribute(text: &str) -> (&str, &str, &str) {
    let ends = |(at, c): &(usize, char)| *at > 0 && (c.is_ascii_whitespace() || matches!(c, '>' | '/' | '='));
    let end = text.char_indices().find(ends).map_or(text.len(), |(at, _)| at);
    let (key, rest) = text.split_at(end);
    let spaced = rest.trim_start_matches(|c: char| c.is_ascii_whitespace());
    let Some(value) = spaced.strip_prefix('=') else { return (key, "", rest) };
    let value = value.trim_start_matches(|c: char| c.is_ascii_whitespace());
    for quote in ['"', '\''] {
        if let Some(quoted) = value.strip_prefix(quote) {
            return match quoted.split_once(quote) {
                Some((value, rest)) => (key, value, rest),
                None => (key, quoted, ""),
            };
        }
    }
    let end = value.find(|c: char| c.is_ascii_whitespace() || c == '>').unwrap_or(value.len());
    (key, &value[..end], &value[end..])
}

/// The end of an element in which tags have no meaning.
fn end_of_raw(text: &str, name: &str) -> usize {
    let bytes = text.as_bytes();
    let mut from = 0;
    while let Some(at) = text[from..].find("</").map(|at| at + from) {
        let after = &bytes[at + 2..];
        let is_name = after.len() >= name.len() && after[..name.len()].eq_ignore_ascii_case(name.as_bytes());
        let is_whole = after
            .get(name.len())
            .is_none_or(|next| matches!(next, b'>' | b'/' | b' ' | b'\t' | b'\n' | b'\r'));
        if is_name && is_whole {
            return at;
        }
        from = at + 2;
    }
    text.len()
}
