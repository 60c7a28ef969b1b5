//! Finding files and lines.

use std::process::Command;

use serde_json::{Value, json};

use crate::project::{Project, is_outside};

fn fixture() -> Project {
    let project = Project::new();
    Command::new("git").args(["init", "-q"]).current_dir(&project.root).status().expect("git");
    project.file(".gitignore", "*.log\nbuild/\n");
    project.file("rel.txt", "relative\n");
    project.file("src/main.py", "import util\n\n\n\ndef main():\n");
    project.file("src/util.py", "def add(a, b):\n    return a + b\n\n\ndef sub(a, b):\n");
    project.file("t/.hidden.txt", "needle hidden\n");
    project.file("t/ignored.log", "needle ignored\n");
    project.file("build/out.txt", "needle built\n");
    project.file("t/bin.dat", b"needle\n\0\x01\n");
    project.file("t/x.md", format!("needle deep\nneedle {}\n", "z".repeat(3000)));
    project
}

#[tokio::test]
async fn files_are_found_by_name() {
    let project = fixture();
    let cases = [
        (json!({"pattern": "**/*.txt"}), "", "$P/rel.txt\n$P/t/.hidden.txt"),
        (json!({"pattern": "*.txt", "path": "$P/t"}), "t", "$P/t/.hidden.txt"),
        (json!({"pattern": "*.none"}), "", "No files found"),
        (json!({"pattern": "**/*.log"}), "", "$P/t/ignored.log"),
        (json!({"pattern": "src/*.py", "path": "."}), "", "$P/src/main.py\n$P/src/util.py"),
        (json!({"pattern": "$P/src/*.py"}), "", "$P/src/main.py\n$P/src/util.py"),
        (json!({"pattern": "*.{py,md}", "path": null}), "", "$P/src/main.py\n$P/src/util.py\n$P/t/x.md"),
        (json!({"pattern": "**/config"}), "", "No files found"),
    ];
    for (input, title, expected) in cases {
        let output = project.call("glob", input.clone()).await.expect("found");
        assert_eq!(
            (output.title.as_str(), project.plain(&output.output).as_str()),
            (title, expected),
            "{input}"
        );
        let count = if expected == "No files found" { 0 } else { expected.lines().count() };
        assert_eq!(Value::from(output.metadata), json!({"count": count, "truncated": false}));
    }
}

/// Names that a person reads as `read me.txt`, `file.rs` and `caf\u{e9}.txt`.
#[tokio::test]
async fn names_that_only_look_like_the_pattern_are_found_if_no_name_is_exact() {
    const WIDE: &str = "\u{ff52}\u{ff45}\u{ff41}\u{ff44}\u{3000}me.txt";
    const LIGATURE: &str = "docs/\u{fb01}le.rs";
    const DECOMPOSED: &str = "cafe\u{301}.txt";
    let project = Project::new();
    for name in [WIDE, LIGATURE, DECOMPOSED, "exact.rs", "\u{ff45}xact.rs", "a[1]/\u{ff58}.txt"] {
        project.file(name, "needle\n");
    }
    for (pattern, expected) in [
        ("read*", vec![WIDE]),
        ("read me.txt", vec![WIDE]),
        ("r*me.txt", vec![WIDE]),
        ("docs/file.*", vec![LIGATURE]),
        ("**/{file,other}.rs", vec![LIGATURE]),
        ("caf\u{e9}.*", vec![DECOMPOSED]),
        ("a[1]/x.txt", vec!["a[1]/\u{ff58}.txt"]),
        // What was typed exists.
        ("exact.rs", vec!["exact.rs"]),
        ("e*.rs", vec!["exact.rs"]),
        ("fail.rs", vec![]),
    ] {
        let output = project.call("glob", json!({"pattern": pattern})).await.expect("found");
        let paths: Vec<_> = expected.iter().map(|name| format!("$P/{name}")).collect();
        let paths = if paths.is_empty() { "No files found".to_owned() } else { paths.join("\n") };
        assert_eq!(project.plain(&output.output), paths, "{pattern}");
        let input = json!({"pattern": "needle", "include": pattern});
        let output = project.call("grep", input).await.expect("found");
        assert_eq!(output.metadata["matches"], expected.len(), "{pattern}");
    }
}

#[tokio::test]
async fn the_first_hundred_files_are_listed() {
    let project = Project::new();
    for n in 0..120 {
        project.file(&format!("f{n:03}.txt"), "needle\n");
    }
    let output = project.call("glob", json!({"pattern": "*.txt"})).await.expect("found");
    let rest = "\n$P/f099.txt\n\n(Results are truncated: showing first 100 results. Consider using a more specific path or pattern.)";
    assert!(project.plain(&output.output).ends_with(rest));
    assert_eq!(Value::from(output.metadata), json!({"count": 100, "truncated": true}));
    let output = project.call("grep", json!({"pattern": "needle"})).await.expect("found");
    assert!(output.output.starts_with("Found 100 matches (more matches available)\n"));
    let rest = "  Line 1: needle\n\n\n(Results truncated. Consider using a more specific path or pattern.)";
    assert!(output.output.ends_with(rest));
    assert_eq!(output.output.matches(".txt:\n").count(), 100);
    assert_eq!(Value::from(output.metadata), json!({"matches": 100, "truncated": true}));
}

#[tokio::test]
async fn lines_are_found_by_content() {
    let project = fixture();
    let defs = "$P/src/main.py:\n  Line 5: def main():\n\n\n$P/src/util.py:\n  Line 1: def add(a, b):\n\n  Line 5: def sub(a, b):\n";
    let long = format!("needle {}...", "z".repeat(1993));
    let md = format!("Found 2 matches\n$P/t/x.md:\n  Line 1: needle deep\n\n  Line 2: {long}");
    let cases = [
        (json!({"pattern": "def \\w+\\(", "path": "$P/src"}), 3, format!("Found 3 matches\n{defs}")),
        (json!({"pattern": "def", "path": "$P/src/util.py"}), 3, format!("Found 3 matches\n{defs}")),
        (json!({"pattern": "needle", "include": "*.md"}), 2, md),
        (json!({"pattern": "nomatchatall"}), 0, "No files found".to_owned()),
        (json!({"pattern": "needle ignored"}), 0, "No files found".to_owned()),
        (json!({"pattern": "needle built"}), 0, "No files found".to_owned()),
        (json!({"pattern": "needle$"}), 0, "No files found".to_owned()),
        (
            json!({"pattern": "needle hidden", "path": "$P/nonexist"}),
            1,
            "Found 1 matches\n$P/t/.hidden.txt:\n  Line 1: needle hidden\n".to_owned(),
        ),
    ];
    for (input, count, expected) in cases {
        let output = project.call("grep", input.clone()).await.expect("searched");
        assert_eq!(project.plain(&output.output), expected, "{input}");
        assert_eq!(output.title, input["pattern"].as_str().expect("text"));
        assert_eq!(Value::from(output.metadata), json!({"matches": count, "truncated": false}));
    }
}

#[tokio::test]
async fn invalid_searches_are_errors() {
    let project = fixture();
    let cases = [
        ("grep", json!({"pattern": "(bad"}), "regex parse error:\n    (bad\n    ^\nerror: unclosed group"),
        ("grep", json!({"pattern": ""}), "pattern is required"),
        (
            "glob",
            json!({"pattern": "*", "path": "$P/src/util.py"}),
            "glob path must be a directory: $P/src/util.py",
        ),
        ("glob", json!({"pattern": "*", "path": "$P/nonexist"}), "glob path does not exist: $P/nonexist"),
    ];
    for (tool, input, expected) in cases {
        assert_eq!(project.error(tool, input).await, expected);
    }
    let error = project.error("glob", json!({"pattern": "a{b"})).await;
    assert!(error.contains("a{b"), "{error}");
}

#[tokio::test]
async fn searches_need_permission() {
    let project = fixture();
    let outside = project.root.parent().expect("a parent").join("outside");
    std::fs::create_dir(&outside).expect("made");
    std::fs::write(outside.join("x.txt"), "x").expect("written");
    std::os::unix::fs::symlink(&outside, project.root.join("link")).expect("linked");
    for tool in ["glob", "grep"] {
        for path in ["../outside", "link"] {
            let asks = project.asks(tool, json!({"pattern": "*.x", "path": path})).await.expect("asks");
            assert_eq!(asks.len(), 2);
            assert!(is_outside(&asks[0], &outside), "{asks:?}");
            assert_eq!((asks[1].permission.as_str(), &asks[1].patterns[..]), (tool, &["*.x".to_owned()][..]));
        }
    }
    let output =
        project.call("glob", json!({"pattern": "*.txt", "path": "../outside"})).await.expect("found");
    assert_eq!(output.title, "../outside");
    assert_eq!(output.output, outside.join("x.txt").to_str().expect("UTF-8"));
    let output = project.call("glob", json!({"pattern": "**/x.txt"})).await.expect("found");
    assert_eq!(output.output, "No files found", "links are not followed");
}
