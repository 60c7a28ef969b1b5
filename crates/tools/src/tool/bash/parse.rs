//! The simple commands of a command line.

use std::path::Path;

use tree_sitter::{Node, Parser};

/// A longer line is not taken apart.
const MAX_PARSED_BYTES: usize = 64 * 1024;

/// A command line, taken apart.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Line {
    /// Every simple command, also those inside others.
    pub(super) commands: Vec<Simple>,
    /// Files that are redirected to or from.
    pub(super) redirected: Vec<String>,
    /// Redirections that belong to no simple command.
    pub(super) loose_redirects: Vec<String>,
    /// Whether the line is well-formed.
    pub(super) understood: bool,
}

/// A simple command.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Simple {
    /// As it is written, with its redirections.
    pub(super) text: String,
    /// Its name and arguments; `None` where only the shell knows.
    pub(super) words: Vec<Option<String>>,
    /// Whether its text has redirections.
    pub(super) redirected: bool,
}

impl Simple {
    pub(super) fn name(&self) -> Option<&str> {
        self.words.first()?.as_deref()
    }
}

/// Takes a command line apart; `~` and `$HOME` stand for `home`.
pub(super) fn parse(source: &str, home: Option<&Path>) -> Line {
    let mut line = Line::default();
    if source.len() > MAX_PARSED_BYTES {
        return line;
    }
    let mut parser = Parser::new();
    if parser.set_language(&tree_sitter_bash::LANGUAGE.into()).is_err() {
        return line;
    }
    let Some(tree) = parser.parse(source, None) else { return line };
    line.understood = !tree.root_node().has_error();
    let words = Words { source, home: home.and_then(Path::to_str) };
    // A stack of our own: the line may nest deeper than ours.
    let mut todo = vec![tree.root_node()];
    while let Some(node) = todo.pop() {
        match node.kind() {
            "command" | "declaration_command" | "unset_command" => line.commands.push(words.simple(node)),
            "file_redirect" => {
                let destination = node.child_by_field_name("destination");
                line.redirected.extend(destination.and_then(|node| words.word(node)));
            }
            "redirected_statement" if !is_command(node.child_by_field_name("body")) => {
                line.loose_redirects.push(words.redirects(node));
            }
            _ => {}
        }
        let before = todo.len();
        todo.extend(node.named_children(&mut node.walk()));
        todo[before..].reverse();
    }
    line
}

fn is_command(body: Option<Node>) -> bool {
    body.is_some_and(|body| matches!(body.kind(), "command" | "declaration_command" | "unset_command"))
}

struct Words<'a> {
    source: &'a str,
    home: Option<&'a str>,
}

impl<'a> Words<'a> {
    fn text(&self, node: Node) -> &'a str {
        &self.source[node.byte_range()]
    }

    fn simple(&self, node: Node) -> Simple {
        let outer = node.parent().filter(|parent| {
            parent.kind() == "redirected_statement" && parent.child_by_field_name("body") == Some(node)
        });
        let text = self.text(outer.unwrap_or(node)).trim().to_owned();
        let mut words = Vec::new();
        if node.kind() != "command" {
            // `export` and its like are the first, unnamed child.
            words.push(node.child(0).map(|name| self.text(name).to_owned()));
        }
        for child in node.named_children(&mut node.walk()) {
            match child.kind() {
                "variable_assignment" if node.kind() == "command" => {}
                "file_redirect" | "heredoc_redirect" | "herestring_redirect" | "comment" => {}
                "command_name" => words.push(child.named_child(0).and_then(|name| self.word(name))),
                _ => words.push(self.word(child)),
            }
        }
        Simple { text, words, redirected: outer.is_some() }
    }

    fn redirects(&self, node: Node) -> String {
        let parts: Vec<&str> = node
            .named_children(&mut node.walk())
            .filter(|child| child.kind().ends_with("_redirect"))
            .map(|child| self.text(child))
            .collect();
        parts.join(" ")
    }

    /// What a word stands for, if that does not depend on the run.
    fn word(&self, node: Node) -> Option<String> {
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

    fn string(&self, node: Node) -> Option<String> {
        let escapes = |c| matches!(c, '"' | '\\' | '$' | '`' | '\n');
        let (mut out, mut at) = (String::new(), node.start_byte() + 1);
        let end = node.end_byte().saturating_sub(1).max(at);
        for child in node.named_children(&mut node.walk()) {
            if child.kind() == "string_content" {
                continue;
            }
            out += &unquoted(self.source.get(at..child.start_byte())?, escapes);
            out += &self.word(child)?;
            at = child.end_byte();
        }
        out += &unquoted(self.source.get(at..end)?, escapes);
        Some(out)
    }

    fn home_of(&self, word: &str) -> Option<String> {
        match word.strip_prefix('~') {
            Some(rest) if rest.is_empty() || rest.starts_with('/') => Some(format!("{}{rest}", self.home?)),
            Some(_) | None => Some(word.to_owned()),
        }
    }
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
