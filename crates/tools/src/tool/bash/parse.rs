//! The simple commands of a command line.

use std::path::Path;
use std::rc::Rc;

use tree_sitter::{Node, Parser};

use super::word::{Variables, Word, Words};

/// A longer line is not taken apart.
const MAX_PARSED_BYTES: usize = 64 * 1024;
/// Redirections around one command that are looked at for its words.
const MAX_REDIRECTIONS: usize = 16;
/// Kinds of nodes besides statements whose commands read what they are given.
const READING: [&str; 6] =
    ["compound_statement", "do_group", "elif_clause", "else_clause", "negated_command", "subshell"];

/// A command line, taken apart.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Line {
    /// Every simple command, also those inside others.
    pub(super) commands: Vec<Simple>,
    /// Files that are redirected to or from.
    pub(super) redirects: Vec<Redirect>,
    /// Variables that are set, and to what.
    pub(super) sets: Vec<(String, Word)>,
    /// Redirections that belong to no simple command.
    pub(super) loose_redirects: Vec<String>,
    /// Whether the line is well-formed.
    pub(super) understood: bool,
}

/// A redirection to or from a file.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Redirect {
    /// What the file's name may be, as far as it can be told.
    pub(super) paths: Vec<String>,
    /// Whether it is written to.
    pub(super) writes: bool,
}

/// What a command is given to read.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) enum Input {
    /// Nothing that the line tells of.
    #[default]
    Nothing,
    /// A text of the line.
    Text(Vec<String>),
    /// What another command writes.
    Piped,
}

/// A simple command.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Simple {
    /// As it is written, with its redirections.
    pub(super) text: String,
    /// Its name and arguments; `None` where only the shell knows.
    pub(super) words: Vec<Option<String>>,
    /// Whether its text has redirections.
    pub(super) redirected: bool,
    /// All its words, those behind redirections too, with everything that can be told of them.
    pub(super) full: Vec<Word>,
    /// What it is given to read.
    pub(super) input: Input,
}

impl Simple {
    pub(super) fn name(&self) -> Option<&str> {
        self.words.first()?.as_deref()
    }

    /// Whether it does nothing but change the directory, which needs no leave.
    pub(super) fn only_moves(&self) -> bool {
        !self.redirected && self.name() == Some("cd")
    }
}

/// Takes a command line apart; `~` and `$HOME` stand for `home`.
pub(super) fn parse(source: &str, home: Option<&Path>) -> Line {
    parse_with(source, home, Variables::new())
}

/// The same where some variables are known already.
pub(super) fn parse_with(source: &str, home: Option<&Path>, variables: Variables) -> Line {
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
    let mut words = Words { source, home: home.and_then(Path::to_str), variables };
    // A stack of our own: the line may nest deeper than ours.
    let mut todo = vec![(tree.root_node(), Around::default())];
    while let Some((node, around)) = todo.pop() {
        match node.kind() {
            kind if COMMANDS.contains(&kind) => line.commands.extend(simples(&words, node, &around)),
            "variable_assignment" => {
                line.sets.extend(words.assignment(node));
                words.learn(node);
            }
            "for_statement" => words.learn_each(node),
            "file_redirect" => line.redirects.extend(redirect(&words, node)),
            "redirected_statement" if !is_command(node.child_by_field_name("body")) => {
                line.loose_redirects.push(redirects(&words, node));
            }
            _ => {}
        }
        let before = todo.len();
        todo.extend(inside(&words, node, &around));
        todo[before..].reverse();
    }
    line
}

/// The kinds of nodes that are simple commands.
const COMMANDS: [&str; 3] = ["command", "declaration_command", "unset_command"];

fn is_command(body: Option<Node>) -> bool {
    body.is_some_and(|body| COMMANDS.contains(&body.kind()))
}

/// What lies around a node.
#[derive(Debug, Clone, Default)]
struct Around<'t> {
    /// The statement that redirects this node and nothing else.
    outer: Option<Node<'t>>,
    /// Redirections whose words, as the grammar has them, may belong to this node.
    redirections: Rc<Vec<Node<'t>>>,
    /// What it is given to read.
    input: Rc<Input>,
}

/// The nodes inside of one, each with what lies around it.
fn inside<'t>(words: &Words, node: Node<'t>, around: &Around<'t>) -> Vec<(Node<'t>, Around<'t>)> {
    let children: Vec<Node<'t>> = node.named_children(&mut node.walk()).collect();
    let last = children.len().saturating_sub(1);
    let reads = Around { input: Rc::clone(&around.input), ..Around::default() };
    match node.kind() {
        "redirected_statement" => {
            let body = node.child_by_field_name("body");
            let own = of_kind(&children, "_redirect");
            let input = given(words, &own).map_or_else(|| Rc::clone(&around.input), Rc::new);
            let redirections = own.iter().chain(around.redirections.iter()).take(MAX_REDIRECTIONS).copied();
            let inner = Around { outer: Some(node), redirections: Rc::new(redirections.collect()), input };
            let of = |child| if Some(child) == body { inner.clone() } else { Around::default() };
            children.into_iter().map(|child| (child, of(child))).collect()
        }
        "list" => {
            let of = |at| Around {
                redirections: if at == last { Rc::clone(&around.redirections) } else { Rc::default() },
                ..reads.clone()
            };
            children.into_iter().enumerate().map(|(at, child)| (child, of(at))).collect()
        }
        "pipeline" => {
            let mut inner = Vec::new();
            for (at, child) in children.iter().enumerate() {
                let input = match at.checked_sub(1).and_then(|before| children.get(before)) {
                    None => Rc::clone(&around.input),
                    Some(before) => Rc::new(match words.said(*before) {
                        said if said.is_empty() => Input::Piped,
                        said => Input::Text(said),
                    }),
                };
                let redirections = if at == last { Rc::clone(&around.redirections) } else { Rc::default() };
                inner.push((*child, Around { outer: None, redirections, input }));
            }
            inner
        }
        // What follows `<<E |` reads what the command before it writes.
        "heredoc_redirect" => {
            let piped = Around { input: Rc::new(Input::Piped), ..Around::default() };
            children.into_iter().map(|child| (child, piped.clone())).collect()
        }
        // Whatever is inside of a statement reads what the statement is given.
        kind if kind.ends_with("_statement") || READING.contains(&kind) => {
            children.into_iter().map(|child| (child, reads.clone())).collect()
        }
        _ => children.into_iter().map(|child| (child, Around::default())).collect(),
    }
}

fn of_kind<'t>(nodes: &[Node<'t>], end: &str) -> Vec<Node<'t>> {
    nodes.iter().filter(|node| node.kind().ends_with(end)).copied().collect()
}

/// The command that a node stands for; several where the grammar runs over the end of a line.
fn simples(words: &Words, node: Node, around: &Around) -> Vec<Simple> {
    let children: Vec<Node> = node.named_children(&mut node.walk()).collect();
    let own = of_kind(&children, "_redirect");
    let mut simple = Simple { redirected: around.outer.is_some(), ..Simple::default() };
    if node.kind() != "command" {
        // `export` and its like are the first, unnamed child.
        let name = node.child(0).map(|name| words.text(name).to_owned());
        simple.full.extend(name.as_deref().map(Word::fixed));
        simple.words.push(name);
    }
    let plain = children.iter().filter(|child| match child.kind() {
        "variable_assignment" => node.kind() != "command",
        "file_redirect" | "heredoc_redirect" | "herestring_redirect" | "comment" => false,
        _ => true,
    });
    let plain = plain.filter_map(|child| match child.kind() {
        "command_name" => child.named_child(0),
        _ => Some(*child),
    });
    let plain: Vec<Node> = plain.collect();
    let behind: Vec<Node> =
        own.iter().chain(around.redirections.iter()).flat_map(|node| words_behind(words, *node)).collect();
    simple.input = given(words, &own).unwrap_or_else(|| Input::clone(&around.input));
    let whole = around.outer.unwrap_or(node);
    let mut ends = Vec::new();
    for (at, word) in plain.iter().chain(&behind).enumerate() {
        let starts_line = at > 0 && starts_line(words.source, *word);
        let is_behind = at >= plain.len();
        if starts_line {
            let end = whole.end_byte().max(word.start_byte());
            ends.push((simple, word.start_byte()));
            simple = Simple::default();
            simple.text = words.source[word.start_byte()..end].trim().to_owned();
        }
        let full = words.all(*word);
        if !is_behind || starts_line || simple.words.is_empty() {
            simple.words.push(words.word(*word).map(|word| word.trim_start().to_owned()));
        }
        simple.full.push(full.trimmed());
    }
    if ends.is_empty() {
        simple.text = words.text(whole).trim().to_owned();
    }
    let mut found = Vec::new();
    for (at, (mut simple, end)) in ends.into_iter().enumerate() {
        simple.text = match at {
            0 => words.source.get(whole.start_byte()..end).unwrap_or_default().trim().to_owned(),
            _ => first_line(&simple.text),
        };
        found.push(simple);
    }
    found.push(simple);
    found
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().trim().to_owned()
}

/// Whether a word is the first of its line, so that another command begins with it.
fn starts_line(source: &str, word: Node) -> bool {
    let text = &source[word.byte_range()];
    let inside = text.len() - text.trim_start().len();
    let before = &source[..word.start_byte() + inside];
    let line = before.trim_end_matches([' ', '\t', '\r']);
    let Some(above) = line.strip_suffix('\n') else { return false };
    let escapes = above.len() - above.trim_end_matches('\\').len();
    escapes % 2 == 0
}

/// The words that the grammar takes for a part of a redirection: `rm > out x`.
fn words_behind<'t>(words: &Words, redirection: Node<'t>) -> Vec<Node<'t>> {
    let mut cursor = redirection.walk();
    match redirection.kind() {
        "file_redirect" => {
            let all = redirection.children_by_field_name("destination", &mut cursor);
            let closes = words.text(redirection).contains("&-");
            all.skip(usize::from(!closes)).collect()
        }
        "heredoc_redirect" => redirection.children_by_field_name("argument", &mut cursor).collect(),
        _ => Vec::new(),
    }
}

/// The text that redirections give to read.
fn given(words: &Words, redirections: &[Node]) -> Option<Input> {
    redirections.iter().find_map(|redirection| {
        let parts: Vec<Node> = redirection.named_children(&mut redirection.walk()).collect();
        match redirection.kind() {
            "herestring_redirect" => Some(Input::Text(words.all(*parts.last()?).values)),
            "heredoc_redirect" => {
                let body = of_kind(&parts, "heredoc_body");
                Some(Input::Text(body.into_iter().map(|body| words.text(body).to_owned()).collect()))
            }
            _ => None,
        }
    })
}

fn redirects(words: &Words, node: Node) -> String {
    let parts: Vec<&str> = node
        .named_children(&mut node.walk())
        .filter(|child| child.kind().ends_with("_redirect"))
        .map(|child| words.text(child))
        .collect();
    parts.join(" ")
}

fn redirect(words: &Words, node: Node) -> Option<Redirect> {
    let destination = node.child_by_field_name("destination")?;
    let operator =
        node.children(&mut node.walk()).find(|child| !child.is_named()).map(|child| words.text(child));
    let operator = operator.unwrap_or_default();
    let duplicates = matches!(operator, "<&" | ">&") && destination.kind() == "number";
    let redirect = Redirect { paths: words.all(destination).values, writes: !operator.starts_with('<') };
    (!duplicates && !operator.ends_with('-')).then_some(redirect)
}
