//! Running command lines.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::project::Project;

/// Much longer than any of these commands takes, and much shorter than a test that hangs.
const SOON: Duration = Duration::from_secs(20);

#[tokio::test]
async fn the_output_is_returned_in_the_order_it_was_written() {
    let project = Project::new();
    project.file("t/sub/x", "");
    let cases = [
        (json!({"command": "pwd; echo err >&2; echo out"}), "$P\nerr\nout\n", 0),
        (json!({"command": "true"}), "(no output)", 0),
        (json!({"command": "pwd", "workdir": "$P/t"}), "$P/t\n", 0),
        (json!({"command": "pwd", "workdir": "t", "description": "ignored"}), "$P/t\n", 0),
        (json!({"command": "cd t && ls -d sub"}), "sub\n", 0),
        (json!({"command": "exit 7"}), "(no output)", 7),
        (json!({"command": "cat"}), "(no output)", 0),
        (
            json!({"command": "printf '\\033[31mred\\033[0m\\n'; printf 'p\\rq\\n'"}),
            "\u{1b}[31mred\u{1b}[0m\np\rq\n",
            0,
        ),
        (json!({"command": "printf 'caf\\351'"}), "caf\u{fffd}", 0),
        (json!({"command": "kill -9 $$"}), "(no output)", 137),
    ];
    for (input, expected, exit) in cases {
        let output = project.call("bash", input.clone()).await.expect("run");
        assert_eq!(project.plain(&output.output), expected, "{input}");
        assert_eq!(output.title, project.input(&input)["command"].as_str().expect("text"));
        let metadata = json!({"output": output.output, "exit": exit, "truncated": false});
        assert_eq!(Value::from(output.metadata).to_string(), metadata.to_string());
    }
}

#[tokio::test]
async fn a_missing_workdir_is_reported() {
    let project = Project::new();
    let error = project.error("bash", json!({"command": "pwd", "workdir": "$P/nonexist"})).await;
    assert_eq!(error, "NotFound: FileSystem.access ($P/nonexist)");
    assert_eq!(project.shown.lock().expect("lock")[0]["output"], "");
}

#[tokio::test]
async fn variables_are_set_and_removed() {
    let mut project = Project::new();
    project.cx.env.set = vec![("AGENT".to_owned(), "1".to_owned())];
    project.cx.env.remove = vec!["PATH".to_owned()];
    let output =
        project.call("bash", json!({"command": "echo $AGENT; env | grep -c '^PATH=/'"})).await.expect("run");
    assert!(output.output.starts_with("1\n"), "{}", output.output);
    assert!(!output.output.contains("\n1\n"), "{}", output.output);
}

#[tokio::test]
async fn a_timeout_ends_the_whole_group() {
    let project = Project::new();
    let started = Instant::now();
    let command = "(sleep 60; echo late > late) & echo $! > pid; sleep 61";
    let output = project.call("bash", json!({"command": command, "timeout": 500})).await.expect("run");
    assert!(started.elapsed() < SOON);
    let expected = "(no output)\n\n<shell_metadata>\nshell tool terminated command after exceeding timeout 500 ms. If this command is expected to take longer and is not waiting for interactive input, retry with a larger timeout value in milliseconds.\n</shell_metadata>";
    assert_eq!(output.output, expected);
    let metadata = json!({"output": expected, "exit": null, "truncated": false});
    assert_eq!(Value::from(output.metadata).to_string(), metadata.to_string());
    gone(project.text("pid").trim()).await;
}

/// Waits until a process has ended, and fails if it does not end.
async fn gone(pid: &str) {
    let started = Instant::now();
    while started.elapsed() < SOON {
        let state = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        // An orphan may stay a zombie if no process reaps it.
        if state.is_empty() || state.rsplit(')').next().is_some_and(|rest| rest.starts_with(" Z")) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("process {pid} is still running");
}

#[tokio::test]
async fn an_abort_ends_children_and_keeps_the_output() {
    let project = Project::new();
    let command = "sleep 60 & echo $! > pid; echo start; sleep 61; echo end";
    let cancel = project.cx.cancel.clone();
    let started = Instant::now();
    let abort = async {
        while !project.shown.lock().expect("lock").iter().any(|shown| shown["output"] == "start\n") {
            assert!(started.elapsed() < SOON, "the output is not shown");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        cancel.cancel();
    };
    let (output, ()) = tokio::join!(project.call("bash", json!({"command": command})), abort);
    let output = output.expect("an abort is a result");
    assert_eq!(output.output, "start\n\n\n<shell_metadata>\nUser aborted the command\n</shell_metadata>");
    let metadata = json!({"output": "start\n", "exit": null, "truncated": false});
    assert_eq!(Value::from(output.metadata).to_string(), metadata.to_string());
    gone(project.text("pid").trim()).await;
}

#[tokio::test]
async fn a_background_process_neither_holds_the_call_nor_outlives_it() {
    let project = Project::new();
    let started = Instant::now();
    let output = project.call("bash", json!({"command": "sleep 30 & echo $!"})).await.expect("run");
    assert!(started.elapsed() < SOON);
    gone(output.output.trim()).await;
}

#[tokio::test]
async fn programs_that_wait_for_input_fail() {
    let project = Project::new();
    for (command, expected) in [
        ("read line || echo none", "none\n"),
        ("env | grep ^PAGER", "PAGER=cat\n"),
        (
            "git init -q . && git -c user.name=a -c user.email=b commit --allow-empty 2>/dev/null; echo $?",
            "1\n",
        ),
    ] {
        let output = project.call("bash", json!({"command": command})).await.expect("run");
        assert_eq!(output.output, expected, "{command}");
    }
}

#[tokio::test]
async fn a_long_output_is_truncated_to_its_end_and_saved() {
    let project = Project::new();
    let output = project.call("bash", json!({"command": "seq 1 5000"})).await.expect("run");
    let path = output.metadata["outputPath"].as_str().expect("a path").to_owned();
    let whole: String = (1..=5000).map(|n| format!("{n}\n")).collect();
    let end: String = (3002..=5000).map(|n| format!("{n}\n")).collect();
    assert_eq!(output.output, format!("...output truncated...\n\nFull output saved to: {path}\n\n{end}"));
    assert_eq!(std::fs::read_to_string(&path).expect("kept"), whole);
    assert_eq!((&output.metadata["output"], &output.metadata["truncated"]), (&json!(whole), &json!(true)));
    let command = "head -c 200000 /dev/zero | tr '\\0' a";
    let output = project.call("bash", json!({"command": command})).await.expect("run");
    let path = output.metadata["outputPath"].as_str().expect("a path").to_owned();
    let end = "a".repeat(50 * 1024);
    assert_eq!(output.output, format!("...output truncated...\n\nFull output saved to: {path}\n\n{end}"));
    assert_eq!(output.metadata["output"], format!("...\n\n{}", "a".repeat(30_000)));
}

#[tokio::test]
async fn a_flood_stays_bounded() {
    let project = Project::new();
    let output = project.call("bash", json!({"command": "yes | head -c 200000000"})).await.expect("run");
    assert!(output.output.len() < 60 * 1024);
    let path = output.metadata["outputPath"].as_str().expect("a path").to_owned();
    assert_eq!(std::fs::metadata(path).expect("kept").len(), 200_000_000);
    let largest =
        project.shown.lock().expect("lock").iter().map(|shown| shown["output"].to_string().len()).max();
    assert!(largest.is_some_and(|bytes| bytes < 70_000), "{largest:?}");
}

#[tokio::test]
async fn commands_and_directories_need_permission() {
    let project = Project::new();
    let outer = project.root.parent().expect("a parent").to_owned();
    let outside = outer.join("outside");
    std::fs::create_dir_all(outer.join("home")).expect("made");
    std::fs::create_dir(&outside).expect("made");
    std::fs::write(outside.join("x.txt"), "x").expect("written");
    project.file("sub/x", "");
    std::os::unix::fs::symlink(&outside, project.root.join("link")).expect("linked");
    let cases: [(&str, &[&str]); 29] = [
        ("cd sub && ls && cd ..", &[]),
        ("cd sub && cd .. && ls ./sub && cd sub && cd ..", &[]),
        ("pushd sub && cd .. && popd", &[]),
        ("cd sub > log && ls | cat && cd ..", &[]),
        ("cd sub && cd ../..", &[""]),
        ("cd sub; cd ..", &[""]),
        ("cd sub && cd .. ; cd ..", &[""]),
        ("cd sub & cd ..", &[""]),
        ("(cd sub) && cd ..", &[""]),
        ("cd sub | cat && cd ..", &[""]),
        ("cd link && cd ..", &["outside", ""]),
        ("cat $O/outside/x.txt", &["outside"]),
        ("cat ../outside/x.txt ../outside/y.txt", &["outside"]),
        ("cat 'link/x.txt'", &["outside"]),
        ("ls > ../outside/new", &["outside"]),
        ("python3 run.py --file=$O/outside/x.txt", &["outside"]),
        ("cd link/.. && rm x", &[""]),
        ("cd ../outside && rm x.txt", &["outside"]),
        ("ls ~/", &["home"]),
        ("cat $HOME/secret", &["home"]),
        ("echo \"$(cat $O/outside/x.txt)\"", &["outside"]),
        ("cat {$O/outside/x.txt,sub/x}", &["outside"]),
        ("cat $O/{outside,home}/x.txt", &["outside", "home"]),
        ("ls $O/outside/*.txt", &["outside"]),
        ("cat sub/../sub/x sub/missing", &[]),
        ("ls 2>/dev/null >/dev/null", &[]),
        ("echo /etc ../outside; grep -r / sub; sed 's/a/b/' sub/x", &[]),
        ("curl http://example.com/$O/outside", &[]),
        ("true", &[]),
    ];
    for (command, expected) in cases {
        let command = command.replace("$O", outer.to_str().expect("UTF-8"));
        let asks = project.asks("bash", json!({"command": command})).await.expect("asks");
        let found = asks.iter().find(|ask| ask.permission == "external_directory");
        let directories: Vec<String> = expected
            .iter()
            .map(|name| outer.join(name).to_str().expect("UTF-8").trim_end_matches('/').to_owned())
            .collect();
        let patterns: Vec<String> = directories.iter().map(|directory| format!("{directory}/*")).collect();
        let Some(ask) = found else {
            assert!(expected.is_empty(), "{command}: {asks:?}");
            continue;
        };
        assert_eq!((&ask.patterns, &ask.always), (&patterns, &patterns), "{command}");
        let metadata = json!({"command": command, "directories": directories, "patterns": patterns});
        assert_eq!(Value::from(ask.metadata.clone()), metadata);
    }
    let asks = project.asks("bash", json!({"command": "ls", "workdir": "../outside"})).await.expect("asks");
    assert_eq!((asks[0].permission.as_str(), asks[1].permission.as_str()), ("external_directory", "bash"));
    assert_eq!(
        (&asks[1].patterns[..], &asks[1].always[..]),
        (&["ls".to_owned()][..], &["ls *".to_owned()][..])
    );
    assert_eq!(Value::from(asks[1].metadata.clone()), json!({"command": "ls"}));
}
