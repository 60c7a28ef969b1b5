//! Tuple parameters: a pair of values is two parameters or a struct whose fields have names.

use std::fs;
use std::path::Path;

use crate::layers::{tokens, without_tests};
use crate::{display, files, root};

/// Functions that take a tuple, each a size, with their files.
const ALLOWED: &[(&str, &str)] = &[
    ("crates/testkit/src/terminal.rs", "resize"),
    ("crates/tui/src/review.rs", "panes"),
    ("crates/tui/src/view/home.rs", "layout"),
    ("crates/tui/src/view/layer.rs", "frame"),
    ("crates/tui/src/view/layer.rs", "frame_in"),
    ("crates/tui/src/view/request.rs", "permission"),
    ("crates/tui/src/view/request.rs", "question"),
    ("crates/tui/src/view/trust.rs", "plan"),
    ("xtask/src/pictures/svg.rs", "rect"),
    ("xtask/src/pictures.rs", "start"),
];

/// Returns the functions of a source that have a parameter whose type is a tuple.
fn with_tuples(source: &str) -> Vec<String> {
    let tokens = tokens(&without_tests(source));
    let functions = tokens.iter().enumerate().filter(|(_, token)| *token == "fn");
    let found = functions.filter_map(|(at, _)| {
        let name = tokens.get(at + 1).filter(|name| name.starts_with(|c: char| c.is_alphabetic()))?;
        let open = if tokens.get(at + 2)? == "<" { end(&tokens, at + 2)? + 1 } else { at + 2 };
        let list = tokens.get(open + 1..end(&tokens, open)?)?;
        parameters(list).into_iter().any(is_tuple).then(|| name.clone())
    });
    found.collect()
}

/// Returns the index of the token that closes the bracket at an index.
fn end(tokens: &[String], open: usize) -> Option<usize> {
    let mut depth = 0;
    (open..tokens.len()).find(|at| {
        depth += step(tokens, *at);
        depth == 0
    })
}

/// Returns 1 for an opening bracket, -1 for a closing one. The arrow of a return type is no bracket.
fn step(tokens: &[String], at: usize) -> i32 {
    match tokens[at].as_str() {
        "(" | "[" | "{" | "<" => 1,
        ">" if at > 0 && matches!(tokens[at - 1].as_str(), "-" | "=") => 0,
        ")" | "]" | "}" | ">" => -1,
        _ => 0,
    }
}

/// Splits a parameter list at its commas.
fn parameters(list: &[String]) -> Vec<&[String]> {
    let (mut found, mut depth, mut start) = (Vec::new(), 0, 0);
    for at in 0..list.len() {
        depth += step(list, at);
        if depth == 0 && list[at] == "," {
            found.push(&list[start..at]);
            start = at + 1;
        }
    }
    found.push(&list[start..]);
    found
}

/// Reports whether the type of a parameter is a tuple or a reference to one.
fn is_tuple(parameter: &[String]) -> bool {
    let mut depth = 0;
    let colon = (0..parameter.len()).find(|at| {
        depth += step(parameter, *at);
        depth == 0 && parameter[*at] == ":"
    });
    let Some(colon) = colon else { return false };
    let mut kind = &parameter[colon + 1..];
    while let [first, rest @ ..] = kind {
        kind = match (first.as_str(), rest) {
            ("&" | "mut", rest) => rest,
            ("'", [_, rest @ ..]) => rest,
            _ => break,
        };
    }
    let inside = end(kind, 0).filter(|_| kind[0] == "(").map(|end| &kind[1..end]);
    // Parentheses around one type are no tuple.
    inside.is_some_and(|inside| parameters(inside).len() > 1)
}

/// Reports whether a file contains only tests.
fn is_test(path: &Path) -> bool {
    path.components().any(|part| matches!(part.as_os_str().to_str(), Some("tests" | "tests.rs")))
}

#[test]
fn functions_take_named_values_instead_of_tuples() {
    let mut found = Vec::new();
    let sources = [root().join("crates"), root().join("xtask").join("src")];
    for path in sources.iter().flat_map(|directory| files(directory, "rs")) {
        let name = display(&path);
        if !is_test(Path::new(&name)) {
            let text = fs::read_to_string(&path).unwrap();
            found.extend(with_tuples(&text).into_iter().map(|function| (name.clone(), function)));
        }
    }
    let found: Vec<_> = found.iter().map(|(file, function)| (file.as_str(), function.as_str())).collect();
    assert_eq!(found, ALLOWED, "name the values: two parameters, or a struct");
}

#[test]
fn a_tuple_is_found_in_any_form_of_a_parameter() {
    for (source, expected) in [
        ("fn f(x: (A, B)) {}", true),
        ("fn f(&self, (a, b): (&A, &B), c: u8) {}", true),
        ("pub(crate) async fn f<'a, F: Fn(u8) -> Vec<u8>>(x: &'a mut (A, B)) -> C {}", true),
        ("fn f(x: &[(A, B)], y: Option<(A, B)>) {}", false),
        ("fn f(x: impl Fn((A, B)) -> (C, D), y: fn(A, B)) -> (A, B) {}", false),
        ("fn f(x: (), Pair { a, b }: Pair) { let y: (A, B) = g(); }", false),
        ("fn f(x: &mut (dyn FnMut(A, B) + Send)) {}", false),
        ("// fn f(x: (A, B))\nconst X: &str = \"fn f(x: (A, B))\";", false),
        ("#[cfg(test)]\nmod tests { fn f(x: (A, B)) {} }", false),
    ] {
        assert_eq!(!with_tuples(source).is_empty(), expected, "{source}");
    }
}
