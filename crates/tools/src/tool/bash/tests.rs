use proptest::prelude::*;

use super::limits::Reason;
use super::line::Simple;
use super::*;

/// Parses a line with the home `/h`. Returns the reason if its effect is unknown.
fn parsed(source: &str) -> (Line, Option<Reason>) {
    let limits = Limits::new();
    let line = parse(source, Setting { home: Some(Path::new("/h")), limits: &limits });
    match limits.outcome(line) {
        Analysis::Complete(line) => (line, None),
        Analysis::Unknown { reason, known } => (known, Some(reason)),
    }
}

fn texts(line: &Line) -> Vec<&str> {
    line.commands.iter().map(|simple: &Simple| simple.text.as_str()).collect()
}

#[test]
fn a_line_is_split_into_commands() {
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
        let (line, reason) = parsed(source);
        assert_eq!(texts(&line), expected, "{source}");
        assert_eq!(reason, None, "{source}");
    }
}

#[test]
fn words_have_the_values_that_the_shell_gives_them() {
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
        let (line, _) = parsed(source);
        let words: Vec<Option<&str>> = line.commands[0].words.iter().map(Option::as_deref).collect();
        assert_eq!(words, expected, "{source}");
    }
}

#[track_caller]
fn check(source: &str, patterns: &[&str], always: &[&str]) {
    let (line, reason) = parsed(source);
    let whole = if reason.is_some() { Whole::Judged } else { Whole::Understood };
    let ask = command_ask(source, &line, whole).expect("an ask");
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
fn each_simple_command_needs_permission() {
    check("echo one && ls src", &["echo one", "ls src"], &["echo *", "ls *"]);
    check("git commit -m x; git commit -m y", &["git commit -m x", "git commit -m y"], &["git commit *"]);
    check("cd a && make test", &["make test"], &["make test *"]);
    check("$X y", &["$X y"], &["$X y"]);
}

#[test]
fn an_unsupported_line_needs_permission_as_a_whole_too() {
    check("> out.txt", &["> out.txt"], &["> out.txt"]);
    check("ls; rm 'a", &["ls", "rm", "ls; rm 'a"], &["ls *", "rm *", "ls; rm 'a"]);
    check("{ ls; } > out.txt", &["ls", "> out.txt"], &["ls *", "> out.txt"]);
    check("x=1", &["x=1"], &["x=1"]);
    let long = format!("echo {}", "a".repeat(100_000));
    check(&long, &[&long], &[&long]);
}

/// The grammar continues some commands on the next line, so that two look like one.
#[test]
fn a_command_ends_with_its_line() {
    let cases: [(&str, &[&str]); 6] = [
        ("a |a |a \nrm x &&c", &["a", "a", "a", "rm x", "c"]),
        ("'a' b\n\\rm x; c", &["'a' b", "\\rm x", "c"]),
        ("a > f \nrm x && c", &["a > f", "rm x", "c"]),
        ("a |b >f \nrm x &&c", &["a", "b", "rm x", "c"]),
        ("a \\\n b", &["a \\\n b"]),
        ("a 'x\ny' b", &["a 'x\ny' b"]),
    ];
    for (source, expected) in cases {
        let (line, _) = parsed(source);
        assert_eq!(texts(&line), expected, "{source}");
    }
}

#[test]
fn changing_the_directory_needs_no_permission() {
    assert_eq!(command_ask("cd a", &parsed("cd a").0, Whole::Understood), None);
    check("cd a > b", &["cd a > b"], &["cd *"]);
}

#[test]
fn a_deeply_nested_line_does_not_exhaust_the_stack() {
    let source = format!("{}echo x{}", "$(".repeat(5000), ")".repeat(5000));
    assert_eq!(parsed(&source).1, Some(Reason::Operators));
    // In quotes the depth is unknown until the line is parsed.
    let source = format!("{}echo x{}", "echo \"$(".repeat(200), ")\"".repeat(200));
    assert!(parsed(&source).1.is_some());
}

/// A line, and the commands that it runs.
type Program = (String, Vec<String>);

fn single_quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// A command in one of many spellings.
fn command() -> impl Strategy<Value = Program> {
    let name = proptest::sample::select(["rm", "ls", "touch", "mk"].as_slice());
    (name, "[a-z]{2}[0-9]{2}", 0..16_usize).prop_map(|(name, argument, way)| {
        let (first, last) = name.split_at(1);
        let written = match way {
            0 => format!("'{name}' {argument}"),
            1 => format!("{first}\"{last}\" {argument}"),
            2 => format!("\\{name} {argument}"),
            3 => format!("/bin/{name} {argument}"),
            4 => format!("A=1 {name} {argument}"),
            5 => format!("env -u B A=1 {name} {argument}"),
            6 => format!("timeout -s KILL 5 {name} {argument}"),
            7 => format!("nice -n 3 nohup {name} {argument}"),
            8 => format!("xargs -n 1 {name} {argument}"),
            9 => format!("find . -exec {name} {argument} {{}} +"),
            10 => format!("sudo -u x {name} {argument}"),
            11 => format!("{name} > out {argument}"),
            12 => format!("X={name}; $X {argument}"),
            13 => format!("git -c alias.x={} x", single_quoted(&format!("!{name} {argument}"))),
            14 => format!("sh <<< \"{name} {argument}\""),
            _ => format!("{name} {argument}"),
        };
        (written, vec![format!("{name} {argument}")])
    })
}

/// Nested commands within the limit of nesting.
fn program() -> impl Strategy<Value = Program> {
    command().prop_recursive(4, 12, 2, |inner| {
        (inner.clone(), inner, 0..20_usize).prop_map(|((one, names), (two, more), way)| {
            let line = match way {
                0 => format!("{one}; {two}"),
                1 => format!("{one} && {two}"),
                2 => format!("{one} | {two}"),
                3 => format!("if {one}; then {two}; fi"),
                4 => format!("{one}\n{two}"),
                5 => format!("( {one} )"),
                6 => format!("{{ {one}; }}"),
                7 => format!("for i in 1; do {one}; done"),
                8 => format!("while {one}; do break; done"),
                9 => format!("echo $( {one} )"),
                10 => format!("echo \"$( {one} )\""),
                11 => format!("sh -c {}", single_quoted(&one)),
                12 => format!("bash -euo pipefail -c {}", single_quoted(&one)),
                13 => format!("eval {}", single_quoted(&one)),
                14 => format!("trap {} EXIT", single_quoted(&one)),
                15 => format!("cat <( {one} )"),
                16 => format!("x=$( {one} )"),
                17 => format!("case a in a) {one};; esac"),
                18 => format!("PAGER={} man", single_quoted(&one)),
                _ => format!("f() {{ {one}; }}; f"),
            };
            let more = if way < 5 { more } else { Vec::new() };
            (line, [names, more].concat())
        })
    })
}

proptest! {
    /// A rule about a command applies however it is spelled and nested.
    #[test]
    fn every_command_of_a_program_is_judged_in_its_plain_spelling((line, names) in program()) {
        let limits = Limits::new();
        let setting = Setting { home: None, limits: &limits };
        let parsed = parse(&line, setting);
        let effects = nested::analyse(&line, &parsed, setting);
        let written = parsed.commands.iter().map(|simple| simple.text.as_str());
        let implied = effects.implied.iter().map(|implied| implied.pattern.as_str());
        let judged: Vec<&str> = written.chain(implied).collect();
        for name in names {
            prop_assert!(judged.iter().any(|text| text.starts_with(&name)), "{name} in {line}: {judged:?}");
        }
    }
}

/// Tokens that an attacker may repeat.
#[cfg(target_os = "linux")]
const TOKENS: [&str; 60] = [
    "a|",
    "a=(",
    "<<",
    "!",
    "! ",
    "((",
    "$(",
    "{",
    "`",
    "case x in ",
    "a;",
    "a&&",
    "$((",
    "[[ ",
    "( ",
    "<(",
    "if ",
    "for a in ",
    "\"$(",
    "${x:-",
    "<<E\n",
    "a=",
    "&",
    "|",
    ">",
    "\\",
    "'",
    "\"",
    "a ",
    "f()",
    "[ ",
    "<<<",
    "=",
    "*",
    "{a,",
    "$",
    "#",
    "x[",
    "${",
    "\n",
    "function f ",
    "while ",
    "-",
    "a[$(",
    "~",
    ")",
    ">(",
    "a\n",
    "}",
    "a||",
    "x=$x$x;",
    "{a,b}",
    "$x",
    "/*",
    "../",
    "cd a;",
    "env ",
    "eval ",
    "\\\n",
    "for x in a b; do ",
];

/// Repeated tokens with something before and after.
#[cfg(target_os = "linux")]
fn repeated() -> impl Strategy<Value = String> {
    let token = || proptest::sample::select(TOKENS.as_slice());
    let unit = proptest::collection::vec(token(), 1..4);
    let size = prop_oneof![1..2000_usize, 20_000..70_000_usize];
    (token(), unit, size, token()).prop_map(|(before, unit, size, after)| {
        let unit = unit.concat();
        format!("{before}\n{}{after}", unit.repeat(size / unit.len().max(1) + 1))
    })
}

#[cfg(target_os = "linux")]
mod bounds {
    use std::process::Command;
    use std::time::Duration;

    use nix::time::{ClockId, clock_gettime};
    use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

    use super::*;

    const MAX_MEMORY_KIB: u64 = 64 * 1024;
    /// An unoptimized build takes several times as long as the documented limit.
    const MAX_TIME: Duration = Duration::from_millis(if cfg!(debug_assertions) { 500 } else { 100 });

    /// The peak memory of this process.
    fn peak_kib() -> u64 {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        line.trim().trim_end_matches(" kB").parse().unwrap()
    }

    fn analysed(line: &str, workspace: &Workspace) -> Duration {
        let now = || Duration::from(clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).unwrap());
        let workdir = workspace.resolve(Path::new(".")).unwrap();
        let place = Analysed { workspace, workdir: &workdir, home: Some(Path::new("/h")) };
        let start = now();
        drop(asks_of(line, analyse(line, place).unwrap()));
        now() - start
    }

    #[test]
    fn any_line_is_analysed_within_64_mib_and_100_ms() {
        let test = "tool::bash::tests::bounds::lines_of_repeated_tokens_are_cheap";
        let args = ["--exact", test, "--ignored", "--nocapture"];
        let done = Command::new(std::env::current_exe().unwrap()).args(args).output().unwrap();
        let text = String::from_utf8_lossy(&[done.stdout, done.stderr].concat()).into_owned();
        assert!(done.status.success() && text.contains("1 passed"), "{text}");
    }

    #[test]
    #[ignore = "another test runs it in a separate process, because it measures the memory of its process"]
    fn lines_of_repeated_tokens_are_cheap() {
        let root = tempfile::tempdir().unwrap();
        for number in 0..300 {
            std::fs::create_dir(root.path().join(format!("directory{number}"))).unwrap();
        }
        let workspace = Workspace::new(root.path(), root.path()).unwrap();
        // The first analysis loads the grammar.
        analysed("true", &workspace);
        let before = peak_kib();
        let check = |line: &str| {
            let (time, memory) = (analysed(line, &workspace), peak_kib() - before);
            let shown: String = line.chars().take(60).collect();
            assert!(time <= MAX_TIME, "{time:?} for {} bytes of {shown:?}", line.len());
            assert!(memory <= MAX_MEMORY_KIB, "{memory} KiB after {} bytes of {shown:?}", line.len());
        };
        for token in TOKENS {
            for size in [500, 1000, 4000, 60_000] {
                check(&format!("zzz\n{}", token.repeat(size / token.len())));
            }
        }
        for line in
            ["/*".repeat(8), "cat /*/*/*/*".to_owned(), "*/../".repeat(400), "touch {1..250}/*".to_owned()]
        {
            check(&line);
        }
        // Every run uses the same lines, because times are compared.
        let config = Config { cases: 150, failure_persistence: None, ..Config::default() };
        let mut runner = TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha));
        runner
            .run(&repeated(), |line| {
                check(&line);
                Ok(())
            })
            .unwrap();
        println!("at most {} KiB more", peak_kib() - before);
    }
}
