use super::parse::Simple;
use super::*;

fn texts(line: &Line) -> Vec<&str> {
    line.commands.iter().map(|simple: &Simple| simple.text.as_str()).collect()
}

#[test]
fn a_line_is_taken_apart() {
    let cases: [(&str, &[&str]); 12] = [
        ("echo one && ls src", &["echo one", "ls src"]),
        ("a | b; c & d", &["a", "b", "c", "d"]),
        ("echo err >&2; echo out", &["echo err >&2", "echo out"]),
        ("ls > out.txt 2>&1", &["ls > out.txt 2>&1"]),
        ("x=$(cat a) y=1 env", &["x=$(cat a) y=1 env", "cat a"]),
        ("for i in 1 2; do echo $i; done", &["echo $i"]),
        ("(cd a && rm b)", &["cd a", "rm b"]),
        ("if test -f x; then rm x; fi", &["test -f x", "rm x"]),
        ("echo \"$(rm -rf /)\"", &["echo \"$(rm -rf /)\"", "rm -rf /"]),
        ("export A=1; unset B", &["export A=1", "unset B"]),
        ("f() { rm x; }; f", &["rm x", "f"]),
        ("diff <(cat a) <(cat b)", &["diff <(cat a) <(cat b)", "cat a", "cat b"]),
    ];
    for (source, expected) in cases {
        let line = parse(source, None);
        assert_eq!(texts(&line), expected, "{source}");
        assert!(line.understood, "{source}");
    }
}

#[test]
fn words_stand_for_what_the_shell_makes_of_them() {
    let cases: [(&str, &[Option<&str>]); 7] = [
        ("cat 'a b' \"c d\"", &[Some("cat"), Some("a b"), Some("c d")]),
        ("cat a\\ b", &[Some("cat"), Some("a b")]),
        ("cat ~/x $HOME/y \"${HOME}/z\"", &[Some("cat"), Some("/h/x"), Some("/h/y"), Some("/h/z")]),
        ("cat $X \"$Y/z\"", &[Some("cat"), None, None]),
        ("cat a'b'\"c\"", &[Some("cat"), Some("abc")]),
        ("A=1 cat x > y", &[Some("cat"), Some("x")]),
        ("$CMD x", &[None, Some("x")]),
    ];
    for (source, expected) in cases {
        let line = parse(source, Some(Path::new("/h")));
        let words: Vec<Option<&str>> = line.commands[0].words.iter().map(Option::as_deref).collect();
        assert_eq!(words, expected, "{source}");
    }
}

#[track_caller]
fn check(source: &str, patterns: &[&str], always: &[&str]) {
    let ask = command_ask(source, &parse(source, None)).expect("an ask");
    assert_eq!(
        (ask.patterns.as_slice(), ask.always.as_slice()),
        (&own(patterns)[..], &own(always)[..]),
        "{source}"
    );
}

fn own(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

#[test]
fn each_simple_command_needs_leave() {
    check("echo one && ls src", &["echo one", "ls src"], &["echo *", "ls *"]);
    check("git commit -m x; git commit -m y", &["git commit -m x", "git commit -m y"], &["git commit *"]);
    check("cd a && make test", &["make test"], &["make test *"]);
    check("$X y", &["$X y"], &["$X y"]);
}

#[test]
fn what_is_not_understood_needs_leave_as_a_whole_too() {
    check("> out.txt", &["> out.txt"], &["> out.txt"]);
    check("ls; rm 'a", &["ls", "rm", "ls; rm 'a"], &["ls *", "rm *", "ls; rm 'a"]);
    check("{ ls; } > out.txt", &["ls", "> out.txt"], &["ls *", "> out.txt"]);
    check("x=1", &["x=1"], &["x=1"]);
    let long = format!("echo {}", "a".repeat(100_000));
    check(&long, &[&long], &[&long]);
}

#[test]
fn changing_the_directory_needs_no_leave() {
    assert_eq!(command_ask("cd a", &parse("cd a", None)), None);
    check("cd a > b", &["cd a > b"], &["cd *"]);
}

#[test]
fn a_deeply_nested_line_does_not_exhaust_the_stack() {
    let source = format!("{}echo x{}", "$(".repeat(5000), ")".repeat(5000));
    parse(&source, None);
}
