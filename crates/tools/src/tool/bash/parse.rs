//! Parses a command line into simple commands.

use std::ops::ControlFlow;
use std::path::Path;
use std::rc::Rc;

use tree_sitter::{Node, ParseOptions, ParseState, Parser, Tree};

use super::braces::braces;
use super::limits::{Limit, Limits, Reason};
use super::line::{Input, Line, Redirect, Simple, Step};
use super::scan;
use super::word::{Values, Variables, Word, Words};

/// Longer lines are not parsed.
const MAX_PARSED_BYTES: usize = 64 * 1024;
/// Longer lines are not parsed after their first error, because error recovery can be slow.
const MAX_BROKEN_BYTES: usize = 4096;
/// The limit of nodes of the syntax tree.
const MAX_NODES: usize = 20_000;
/// The limit of nested nodes, without those that only chain commands.
const MAX_DEPTH: usize = 64;
/// Kinds of nodes that chain commands.
const CHAINS: [&str; 3] = ["list", "pipeline", "redirected_statement"];
/// The limit of lines that the grammar mistakes for one command.
const MAX_RUN_ON: usize = 512;
/// The limit of redirections around a command that are searched for its words.
const MAX_REDIRECTIONS: usize = 16;
/// The limit of words in a text from which a variable may be read.
const MAX_READ: usize = 64;
/// Kinds of nodes besides statements whose commands get their input.
const READING: [&str; 6] =
    ["compound_statement", "do_group", "elif_clause", "else_clause", "negated_command", "subshell"];
/// Kinds of nodes whose words the shell may evaluate again, so that substitutions in quotes run.
const EVALUATING: [&str; 8] = [
    "arithmetic_expansion",
    "binary_expression",
    "c_style_for_statement",
    "declaration_command",
    "subscript",
    "test_command",
    "unset_command",
    "variable_assignment",
];
/// Builtins that evaluate their arguments again.
const EVALUATORS: [&str; 16] = [
    "[",
    "builtin",
    "command",
    "compgen",
    "complete",
    "declare",
    "export",
    "getopts",
    "let",
    "local",
    "mapfile",
    "printf",
    "read",
    "readarray",
    "test",
    "wait",
];
/// Builtins that set the variables in their arguments.
const SETTERS: [&str; 7] = ["getopts", "let", "mapfile", "printf", "read", "readarray", "wait"];

/// The settings of the parser.
#[derive(Clone, Copy)]
pub(super) struct Setting<'a> {
    /// The directory of `~` and `$HOME`.
    pub(super) home: Option<&'a Path>,
    pub(super) limits: &'a Limits,
}

/// Parses a command line.
pub(super) fn parse(source: &str, setting: Setting) -> Line {
    parse_with(source, setting, Variables::new())
}

/// Parses a command line with some known variables.
pub(super) fn parse_with(source: &str, setting: Setting, variables: Variables) -> Line {
    let mut line = Line::default();
    let Some(tree) = tree(source, setting.limits) else { return line };
    let home = setting.home.and_then(Path::to_str);
    let mut words = Words { source, home, variables, limits: setting.limits };
    if !learn(&mut words, &tree) {
        return line;
    }
    // The line may be nested deeper than our own stack allows.
    let mut todo = vec![(tree.root_node(), Around::default())];
    while let Some((node, around)) = todo.pop() {
        if !setting.limits.has_time() {
            return line;
        }
        match node.kind() {
            kind if COMMANDS.contains(&kind) || is_broken_command(node) => {
                let mut found = simples(&words, node, &around);
                let is_link = around.step.is_link && found.len() == 1;
                found.iter_mut().for_each(|simple| simple.step = Step { is_link, ..around.step });
                let bytes = found.iter().map(|simple| simple.text.len()).sum();
                if !setting.limits.take(Limit::Commands, found.len())
                    || !setting.limits.take(Limit::Patterns, bytes)
                {
                    return line;
                }
                line.commands.extend(found);
            }
            "variable_assignment" => line.sets.extend(words.assignment(node)),
            "file_redirect" => line.redirects.extend(redirect(&words, node)),
            "redirected_statement" if !is_command(node.child_by_field_name("body")) => {
                line.loose_redirects.push(redirects(&words, node));
            }
            "c_style_for_statement" | "for_statement" | "function_definition" | "while_statement" => {
                line.repeats = true;
            }
            _ => {}
        }
        line.hidden.extend(hidden(&words, node, &around));
        let before = todo.len();
        todo.extend(inside(&words, node, &around));
        todo[before..].reverse();
    }
    line
}

/// The syntax tree of a source. Records a reason if there is none or it has errors.
fn tree(source: &str, limits: &Limits) -> Option<Tree> {
    if source.len() > MAX_PARSED_BYTES || !limits.take(Limit::Bytes, source.len()) {
        limits.give_up(Reason::Length);
        return None;
    }
    if let Some(reason) = scan::scan(source).refusal() {
        limits.give_up(reason);
        return None;
    }
    let mut parser = Parser::new();
    let is_ready = parser.set_language(&tree_sitter_bash::LANGUAGE.into()).is_ok();
    let mut progress = |state: &ParseState| {
        // The commands after an error are only a guess, so a long line is not parsed further.
        let goes_on = !state.has_error() || source.len() <= MAX_BROKEN_BYTES;
        if goes_on && limits.has_time() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    };
    let options = ParseOptions::new().progress_callback(&mut progress);
    let bytes = source.as_bytes();
    let mut read = |at: usize, _| bytes.get(at..).unwrap_or_default();
    let tree = is_ready.then(|| parser.parse_with_options(&mut read, None, Some(options))).flatten();
    let Some(tree) = tree else {
        limits.give_up(Reason::Syntax);
        return None;
    };
    if tree.root_node().has_error() {
        limits.give_up(Reason::Syntax);
    }
    if tree.root_node().descendant_count() > MAX_NODES {
        limits.give_up(Reason::Length);
        return None;
    }
    Some(tree)
}

/// Collects the variables that a line sets anywhere, because a loop may use them before. Returns `false` if
/// the line is nested too deeply.
fn learn(words: &mut Words, tree: &Tree) -> bool {
    // A second pass resolves variables that are set to other variables.
    for _ in 0..2 {
        let mut todo = vec![(tree.root_node(), 0)];
        while let Some((node, depth)) = todo.pop() {
            if depth > MAX_DEPTH {
                words.limits.give_up(Reason::Depth);
                return false;
            }
            if !words.limits.has_time() {
                return false;
            }
            match node.kind() {
                "variable_assignment" => words.learn(node),
                "for_statement" => words.learn_each(node),
                "command" => {
                    forget(words, node);
                    read_from(words, node);
                }
                "pipeline" | "redirected_statement" => read_from(words, node),
                _ => {}
            }
            let depth = depth + usize::from(!CHAINS.contains(&node.kind()));
            todo.extend(node.named_children(&mut node.walk()).map(|child| (child, depth)));
        }
    }
    true
}

/// Collects the values that `read` may get from a pipeline or a redirection.
fn read_from(words: &mut Words, node: Node) {
    let parts: Vec<Node> = node.named_children(&mut node.walk()).collect();
    if node.kind() != "pipeline" && of_kind(&parts, "_redirect").is_empty() {
        return;
    }
    let texts = match node.kind() {
        "pipeline" => parts.first().map(|first| [words.output(*first).list, words.named(*first)].concat()),
        _ => given(words, &of_kind(&parts, "_redirect")).and_then(|input| match input {
            Input::Text(word) => Some(word.values),
            Input::Piped(_) | Input::Found(..) | Input::Nothing => None,
        }),
    };
    let values: Vec<String> = texts
        .into_iter()
        .flatten()
        .flat_map(|text| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
        .collect();
    if values.is_empty() || values.len() > MAX_READ {
        return;
    }
    let (mut todo, mut names) = (vec![node], Vec::new());
    while let Some(node) = todo.pop() {
        let name = node.child_by_field_name("name").map(|name| words.text(name));
        if node.kind() == "command" && matches!(name, Some("read" | "mapfile" | "readarray")) {
            let mut cursor = node.walk();
            let arguments = node.children_by_field_name("argument", &mut cursor);
            names.extend(
                arguments.map(|word| words.text(word).to_owned()).filter(|word| !word.starts_with('-')),
            );
        }
        todo.extend(node.named_children(&mut node.walk()));
    }
    for name in names {
        words.know(&name, Values::open(values.clone()));
    }
}

/// Marks the values of variables that a command sets as incomplete.
fn forget(words: &mut Words, node: Node) {
    let name = node.child_by_field_name("name").map(|name| words.text(name));
    if !name.is_some_and(|name| SETTERS.contains(&name)) {
        return;
    }
    let mut cursor = node.walk();
    let arguments: Vec<Word> =
        node.children_by_field_name("argument", &mut cursor).map(|word| words.all(word)).collect();
    for value in arguments.into_iter().flat_map(|word| word.values) {
        let name = value.split(['=', '[']).next().unwrap_or_default();
        if !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_') {
            words.know(name, Values::open(Vec::new()));
        }
    }
}

/// The scripts in a word that the shell evaluates again.
fn hidden(words: &Words, node: Node, around: &Around) -> Vec<Word> {
    let text = words.text(node);
    match node.kind() {
        "raw_string" | "ansi_c_string" | "string" | "word" | "concatenation" if around.evaluates => {
            let scripts = words.all(node).values;
            scripts.iter().flat_map(|value| scan::substitutions(value)).map(Word::fixed).collect()
        }
        // The grammar does not find all substitutions in it.
        "expansion" if !text.ends_with("@P}") => {
            scan::substitutions(text).into_iter().map(Word::fixed).collect()
        }
        // Substitutions in backticks are quoted.
        "command_substitution" if text.starts_with('`') && text.contains('\\') => {
            let inside = text.trim_matches('`');
            vec![Word::fixed(&super::word::without_backslashes(inside, |c| matches!(c, '`' | '$' | '\\')))]
        }
        // The value is expanded like a prompt.
        "expansion" if text.ends_with("@P}") => {
            let name: String =
                text.chars().skip(2).take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            let known = words.variables.get(&name).cloned().unwrap_or_default();
            let scripts = known.list.iter().flat_map(|value| scan::substitutions(value)).map(Word::fixed);
            let rest = (!known.is_closed).then(|| Word::unknown(text));
            scripts.chain(rest).collect()
        }
        // The grammar does not find all substitutions in an indented one.
        "heredoc_redirect" if !is_quoted(words, node) => {
            let bodies = of_kind(&node.named_children(&mut node.walk()).collect::<Vec<_>>(), "heredoc_body");
            let texts = bodies.into_iter().filter(|body| body.named_child_count() == 0);
            texts.flat_map(|body| scan::substitutions(words.text(body))).map(Word::fixed).collect()
        }
        _ => Vec::new(),
    }
}

/// Whether the delimiter of a here-document is quoted, so that nothing in it is expanded.
fn is_quoted(words: &Words, heredoc: Node) -> bool {
    let starts = of_kind(&heredoc.named_children(&mut heredoc.walk()).collect::<Vec<_>>(), "heredoc_start");
    starts.iter().any(|start| words.text(*start).contains(['\'', '"', '\\']))
}

/// The kinds of nodes that are simple commands.
const COMMANDS: [&str; 3] = ["command", "declaration_command", "unset_command"];

/// Whether the grammar found the name of a command but not all words after it.
fn is_broken_command(node: Node) -> bool {
    node.is_error() && node.named_child(0).is_some_and(|child| child.kind() == "command_name")
}

fn is_command(body: Option<Node>) -> bool {
    body.is_some_and(|body| COMMANDS.contains(&body.kind()))
}

/// The context of a node.
#[derive(Debug, Clone, Default)]
struct Around<'t> {
    /// The statement that redirects this node only.
    outer: Option<Node<'t>>,
    /// Redirections that may contain words of this node, according to the grammar.
    redirections: Rc<Vec<Node<'t>>>,
    /// Its input.
    input: Rc<Input>,
    /// Whether the shell may evaluate its words again.
    evaluates: bool,
    /// The place of the commands in it.
    step: Step,
}

/// The child nodes, each with its context.
fn inside<'t>(words: &Words, node: Node<'t>, around: &Around<'t>) -> Vec<(Node<'t>, Around<'t>)> {
    let evaluates = match node.kind() {
        "command" => {
            let name = node.child_by_field_name("name").and_then(|name| name.named_child(0));
            let name = name.map(|name| words.all(name));
            let is_evaluator = |name: &String| match name.as_str() {
                "printf" => words.text(node).contains(" -v"),
                name => EVALUATORS.contains(&name),
            };
            name.is_some_and(|name| name.values.iter().any(is_evaluator))
        }
        // Nested commands have their own words.
        "command_substitution" | "process_substitution" => false,
        kind => around.evaluates || EVALUATING.contains(&kind),
    };
    let mut inside = around_children(words, node, around);
    let is_chain = match node.kind() {
        "list" => node.children(&mut node.walk()).all(|child| child.is_named() || words.text(child) == "&&"),
        kind => kind == "redirected_statement",
    };
    for (child, inner) in &mut inside {
        inner.evaluates = evaluates;
        let is_waited_for = || child.next_sibling().is_none_or(|next| words.text(next) != "&");
        inner.step = match node.kind() {
            "program" => Step { statement: Some(child.start_byte()), is_link: is_waited_for() },
            _ => Step { is_link: around.step.is_link && is_chain, ..around.step },
        };
    }
    inside
}

fn around_children<'t>(words: &Words, node: Node<'t>, around: &Around<'t>) -> Vec<(Node<'t>, Around<'t>)> {
    let children: Vec<Node<'t>> = node.named_children(&mut node.walk()).collect();
    let last = children.len().saturating_sub(1);
    let reads = Around { input: Rc::clone(&around.input), ..Around::default() };
    match node.kind() {
        "redirected_statement" => {
            let body = node.child_by_field_name("body");
            let own = of_kind(&children, "_redirect");
            let input = given(words, &own).map_or_else(|| Rc::clone(&around.input), Rc::new);
            if own.len() + around.redirections.len() > MAX_REDIRECTIONS {
                words.limits.give_up(Reason::Operators);
            }
            let redirections = own.iter().chain(around.redirections.iter()).take(MAX_REDIRECTIONS).copied();
            let inner = Around {
                outer: Some(node),
                redirections: Rc::new(redirections.collect()),
                input,
                ..Around::default()
            };
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
                    Some(before) => Rc::new(written_by(words, *before)),
                };
                let redirections = if at == last { Rc::clone(&around.redirections) } else { Rc::default() };
                inner.push((*child, Around { redirections, input, ..Around::default() }));
            }
            inner
        }
        // The command after `<<E |` reads the output of the command before it.
        "heredoc_redirect" => {
            let piped = Around { input: Rc::new(Input::Piped(Vec::new())), ..Around::default() };
            children.into_iter().map(|child| (child, piped.clone())).collect()
        }
        // Everything in a statement reads the input of the statement.
        kind if kind.ends_with("_statement") || READING.contains(&kind) => {
            children.into_iter().map(|child| (child, reads.clone())).collect()
        }
        _ => children.into_iter().map(|child| (child, Around::default())).collect(),
    }
}

fn of_kind<'t>(nodes: &[Node<'t>], end: &str) -> Vec<Node<'t>> {
    nodes.iter().filter(|node| node.kind().ends_with(end)).copied().collect()
}

/// The commands of a node. There are several if the grammar continues after the end of a line.
fn simples(words: &Words, node: Node, around: &Around) -> Vec<Simple> {
    let children: Vec<Node> = node.named_children(&mut node.walk()).collect();
    let own = of_kind(&children, "_redirect");
    let mut simple = Simple { redirected: around.outer.is_some(), ..Simple::default() };
    if node.kind() != "command" && !node.is_error() {
        // `export` and similar builtins are the first, unnamed child.
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
    let mut start = whole.start_byte();
    for (at, word) in plain.iter().chain(&behind).enumerate() {
        let starts_line = at > 0 && starts_line(words.source, *word);
        let is_behind = at >= plain.len();
        if starts_line {
            if ends.len() > MAX_RUN_ON {
                words.limits.give_up(Reason::Commands);
                break;
            }
            ends.push((simple, start..word.start_byte()));
            start = word.start_byte();
            simple = Simple::default();
        }
        if !words.limits.has_time() {
            break;
        }
        let full = if at == 0 && node.is_error() { broken_name(words, node) } else { words.all(*word) };
        if !is_behind || starts_line || simple.words.is_empty() {
            simple.words.push(words.word(*word).map(|word| word.trim_start().to_owned()));
        }
        simple.full.push(full.trimmed());
    }
    let end = whole.end_byte().max(start);
    simple.text = words.source.get(start..end).unwrap_or_default().trim().to_owned();
    let mut found = Vec::new();
    for (at, (mut simple, range)) in ends.into_iter().enumerate() {
        let text = words.source.get(range).unwrap_or_default();
        simple.text = if at == 0 { text.trim().to_owned() } else { first_line(text) };
        found.push(simple);
    }
    found.push(simple);
    found
}

/// The first word of a command that the grammar splits at its braces: `{rm,-f,x}`.
fn broken_name(words: &Words, node: Node) -> Word {
    let raw = words.text(node).split_whitespace().next().unwrap_or_default();
    let values = braces(raw, words.limits).unwrap_or_default();
    let is_known = !values.is_empty();
    Word { raw: raw.to_owned(), is_fixed: is_known, is_closed: is_known, values, origin: None }
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().trim().to_owned()
}

/// Whether a word is the first of its line and so begins another command.
fn starts_line(source: &str, word: Node) -> bool {
    let text = &source[word.byte_range()];
    let inside = text.len() - text.trim_start().len();
    let before = &source[..word.start_byte() + inside];
    let line = before.trim_end_matches([' ', '\t', '\r']);
    let Some(above) = line.strip_suffix('\n') else { return false };
    let escapes = above.len() - above.trim_end_matches('\\').len();
    escapes % 2 == 0
}

/// The words that the grammar treats as a part of a redirection: `rm > out x`.
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

/// The input that a command writes into a pipe.
fn written_by(words: &Words, node: Node) -> Input {
    let Values { list, is_closed, .. } = words.output(node);
    let is_find = node.child_by_field_name("name").is_some_and(|name| words.text(name) == "find");
    if is_find && node.kind() == "command" {
        let mut cursor = node.walk();
        let find = node.children_by_field_name("argument", &mut cursor).map(|word| words.all(word));
        return Input::Found(words.named(node), Rc::new(find.collect()));
    }
    if list.is_empty() {
        return Input::Piped(words.named(node));
    }
    Input::Text(Word { values: list, is_fixed: is_closed, is_closed, ..Word::default() })
}

/// The input from redirections.
fn given(words: &Words, redirections: &[Node]) -> Option<Input> {
    let mut text = Word { is_fixed: true, is_closed: true, ..Word::default() };
    for redirection in redirections {
        let parts: Vec<Node> = redirection.named_children(&mut redirection.walk()).collect();
        match redirection.kind() {
            "herestring_redirect" => {
                let word = words.all(*parts.last()?);
                text.is_fixed &= word.is_fixed;
                text.values.extend(word.values);
                text.raw = word.raw;
            }
            "heredoc_redirect" => {
                let is_quoted = is_quoted(words, *redirection);
                for body in of_kind(&parts, "heredoc_body").into_iter().map(|body| words.text(body)) {
                    text.is_fixed &= is_quoted || !body.contains(['$', '`']);
                    text.values.push(body.to_owned());
                    let plain =
                        super::word::without_backslashes(body, |c| matches!(c, '$' | '`' | '\\' | '\n'));
                    text.values.extend((!is_quoted && plain != body).then_some(plain));
                }
            }
            // Another file or descriptor.
            _ => {
                let reads = words.text(*redirection).trim_start_matches(|c: char| c.is_ascii_digit());
                if reads.starts_with('<') && !reads.starts_with("<(") {
                    return Some(Input::Piped(Vec::new()));
                }
            }
        }
    }
    let is_empty = text.values.is_empty() && text.raw.is_empty();
    (!is_empty).then_some(Input::Text(text))
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
    let path = words.all(destination);
    let is_number = path.is_closed && path.values.iter().all(|value| value.parse::<u32>().is_ok());
    let duplicates = matches!(operator, "<&" | ">&") && is_number;
    // The grammar may find only a part of the operator.
    let writes = !operator.starts_with('<') || words.text(node).contains("<>");
    (!duplicates && !operator.ends_with('-')).then_some(Redirect { path, writes })
}
