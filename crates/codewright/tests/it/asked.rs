//! What permission requests say about themselves, and commands that cannot be undone.

use std::path::Path;

use anyhow::{Context, Result};
use codewright_testkit::{Script, Turn};
use serde_json::{Value, json};

use crate::permissions::{begin, question, reply, rules};
use crate::support::{Stage, check_has, get, post, wait_until};

fn call(tool: &str, input: Value) -> Turn {
    Turn::steps().tool(tool, input).into()
}

fn bash(command: &str) -> Turn {
    call("bash", json!({ "command": command }))
}

/// A repository whose `.gitignore` names `target`, with directories and files that commands may delete.
fn stage(calls: impl IntoIterator<Item = Turn>) -> Result<Stage> {
    prepared(calls.into_iter().fold(Script::new(), |script, call| script.turn(call).text("done")))
}

fn prepared(script: Script) -> Result<Stage> {
    let stage = Stage::git(script)?;
    let files = [
        ".env",
        "a/.env",
        "secrets/x.txt",
        "notes.txt",
        "src/a.rs",
        "target/debug/x",
        "sub/node_modules/m/x",
    ];
    for name in files {
        stage.project.write(name, "x\n")?;
    }
    stage.project.write(".gitignore", "target/\n")?;
    Ok(stage)
}

/// Runs each call in a session of its own. Returns the requests, `None` for calls that needed none. Each is answered
/// with `with`.
pub(crate) fn requests(stage: &Stage, count: usize, with: &str) -> Result<Vec<Option<Value>>> {
    requests_in(stage, stage.project.directory(), count, with)
}

/// Does the same in a directory.
pub(crate) fn requests_in(
    stage: &Stage,
    directory: &Path,
    count: usize,
    with: &str,
) -> Result<Vec<Option<Value>>> {
    let here = directory.canonicalize()?;
    let (server, url) = stage.serve()?;
    let mut found = Vec::new();
    for _ in 0..count {
        let session = begin(&url, &here)?;
        let asked = question(&url, &session)?;
        if let Some(asked) = &asked {
            reply(&url, asked, with)?;
            if with != "reject" {
                anyhow::ensure!(
                    question(&url, &session)?.is_none(),
                    "there is a second request after {asked:#}"
                );
            }
        }
        found.push(asked);
    }
    server.terminate()?;
    server.finish()?.success()?;
    Ok(found)
}

#[test]
fn always_for_a_file_with_secrets_covers_this_file_only() -> Result<()> {
    let read = |path: &str| call("read", json!({ "filePath": path }));
    let stage = stage([read(".env"), read(".env"), read("a/.env"), read("notes.txt")])?;
    let found = requests(&stage, 4, "always")?;
    let first = found[0].as_ref().context("no request")?;
    assert_eq!(first["always"], json!([".env"]));
    let asked = &first["metadata"]["asked"];
    let place = stage.project.directory().canonicalize()?.display().to_string();
    assert_eq!(
        *asked,
        json!({"because": "the file may have secrets", "always": format!("read `.env` in {place}"), "wider": ["*.env"]})
    );
    assert!(found[1].is_none(), "the file was allowed");
    let other = found[2].as_ref().context("another file was not asked about")?;
    assert_eq!(other["patterns"], json!(["a/.env"]));
    assert!(found[3].is_none());
    Ok(())
}

#[test]
fn always_for_all_reads_does_not_cover_files_with_secrets() -> Result<()> {
    let read = |path: &str| call("read", json!({ "filePath": path }));
    let stage = stage([read("notes.txt"), read("src/a.rs"), read(".env")])?;
    rules(&stage, json!({"read": "ask"}))?;
    let found = requests(&stage, 3, "always")?;
    let first = found[0].as_ref().context("no request")?;
    assert_eq!(first["always"], json!(["*"]));
    assert_eq!(first["metadata"]["asked"]["because"], "your rule `read *: ask` asks");
    assert!(found[1].is_none());
    assert_eq!(
        found[2].as_ref().context("the secret was read without a request")?["always"],
        json!([".env"])
    );
    Ok(())
}

#[test]
fn a_command_offers_its_prefix_first() -> Result<()> {
    let stage = stage([bash("git log --oneline"), bash("git log"), bash("git branch")])?;
    rules(&stage, json!({"bash": "ask"}))?;
    let found = requests(&stage, 3, "always")?;
    let first = found[0].as_ref().context("no request")?;
    assert_eq!(
        (&first["always"], &first["metadata"]["asked"]["wider"]),
        (&json!(["git log *"]), &json!(["git *"]))
    );
    assert!(found[1].is_none());
    assert!(found[2].is_some());
    Ok(())
}

#[test]
fn a_wider_pattern_that_the_request_offers_can_be_chosen() -> Result<()> {
    let script = ["git log --oneline", "git branch", "ls"].into_iter();
    let script = script.fold(Script::new(), |script, command| script.turn(bash(command)).text("done"));
    let stage = prepared(script)?;
    rules(&stage, json!({"bash": "ask"}))?;
    let here = stage.project.directory().canonicalize()?;
    let (_server, url) = stage.serve()?;
    let session = begin(&url, &here)?;
    let asked = question(&url, &session)?.context("no request")?;
    let path = format!("/permission/{}/reply", asked["id"].as_str().context("no id")?);
    for refused in [
        json!({"reply": "always", "wider": ["*"]}),
        json!({"reply": "always", "wider": ["git *", "ls *"]}),
        json!({"reply": "once", "wider": ["git *"]}),
    ] {
        let (status, error) = post(&url, &path, &refused)?;
        assert_eq!(status, 400, "{refused} {error}");
    }
    let (_, error) = post(&url, &path, &json!({"reply": "always", "wider": ["ls *"]}))?;
    check_has(&error.to_string(), &["`ls *`", "metadata.asked.wider"]);
    assert_eq!(question(&url, &session)?.context("the request is gone")?["id"], asked["id"]);
    assert_eq!(post(&url, &path, &json!({"reply": "always", "wider": ["git *"]}))?.0, 200);
    assert!(question(&url, &session)?.is_none());
    let second = begin(&url, &here)?;
    assert!(question(&url, &second)?.is_none(), "`git branch` is covered");
    let third = begin(&url, &here)?;
    assert!(question(&url, &third)?.is_some(), "`ls` is not");
    let saved = get(&url, "/api/permission/saved")?;
    let mut patterns: Vec<_> =
        saved["data"].as_array().into_iter().flatten().map(|one| one["resource"].to_string()).collect();
    patterns.sort();
    assert_eq!(patterns, [r#""git *""#, r#""git log *""#]);
    Ok(())
}

/// The stored replies to permission requests: the decision and who gave it.
fn stored_replies(url: &str) -> Result<Vec<(Value, Value)>> {
    let (_, history) = post(url, "/sync/history", &json!({}))?;
    let events = history.as_array().context("no events")?.iter();
    let replies = events.filter(|event| event["type"] == "permission.replied.1");
    Ok(replies.map(|event| (event["data"]["reply"].clone(), event["data"]["by"].clone())).collect())
}

#[test]
fn a_stored_reply_says_who_gave_it() -> Result<()> {
    let script = Script::new().turn(bash("echo one")).text("done").turn(bash("echo two"));
    let stage = prepared(script.turn(bash("echo three")).text("done"))?;
    rules(&stage, json!({"bash": "ask"}))?;
    let here = stage.project.directory().canonicalize()?;
    let (server, url) = stage.serve()?;
    let session = begin(&url, &here)?;
    reply(&url, &question(&url, &session)?.context("no request")?, "once")?;
    assert!(question(&url, &session)?.is_none());
    let aborted = begin(&url, &here)?;
    question(&url, &aborted)?.context("no request")?;
    assert_eq!(post(&url, &format!("/session/{aborted}/abort"), &json!({}))?.0, 200);
    wait_until("the withdrawal", || stored_replies(&url).is_ok_and(|replies| replies.len() == 2))?;
    server.terminate()?;
    server.finish()?.success()?;
    stage.run(["--auto", "go"])?.success()?;
    let (_server, url) = stage.serve()?;
    let mut found = stored_replies(&url)?;
    found.sort_by_key(|(_, by)| by.to_string());
    assert_eq!(
        found,
        [
            (json!("reject"), json!({"means": "withdrawn"})),
            (json!("once"), json!({"principal": "owner", "means": "automatic"})),
            (json!("once"), json!({"principal": "owner", "means": "chosen"})),
        ]
    );
    Ok(())
}

/// Commands that ask by default, and what "always" covers.
const GRAVE: [(&str, &[&str]); 23] = [
    ("git push --force", &["git push --force"]),
    ("git push --force origin main", &["git push --force origin main"]),
    ("git push origin +main", &["git push origin +main"]),
    ("git push -q --force-with-lease", &["git push -q --force-with-lease"]),
    ("git -C src push -f", &["git -C src push -f"]),
    ("sh -c 'git push \"-f\" origin main'", &["git push -f origin main"]),
    ("timeout 5 env A=1 git push --delete origin x", &["git push --delete origin x"]),
    ("echo origin | xargs git push --mirror", &[]),
    ("f=--force; git push $f", &["git push --force"]),
    ("git clean -fdx", &["git clean -fdx"]),
    ("true && npm publish", &["npm publish"]),
    ("kubectl delete pod x", &["kubectl delete pod x"]),
    ("nice cargo publish --token x", &["cargo publish --token x"]),
    ("psql shop <<< 'DROP  TABLE orders'", &["psql shop <<< DROP  TABLE orders"]),
    ("rm -rf src", &["rm -rf src"]),
    ("rm -r target src", &["rm -r target src"]),
    ("cd src/.. && /bin/rm -fr ./src", &["rm -fr ./src"]),
    ("rm -rf s*", &[]),
    ("find . -name src -type d -exec rm -rf {} +", &[]),
    ("find . -name target -o -name src -exec rm -rf {} +", &[]),
    ("find . -name src -type d -print0 | xargs -0 rm -rf", &[]),
    ("find . -name target -type d -print; xargs rm -rf < list.txt", &[]),
    ("T=$(mktemp -d -p src); rm -rf $T", &[]),
];

#[test]
fn a_command_that_cannot_be_undone_asks_by_default() -> Result<()> {
    // A rejection ends the turn.
    let stage =
        prepared(GRAVE.iter().fold(Script::new(), |script, (command, _)| script.turn(bash(command))))?;
    let found = requests(&stage, GRAVE.len(), "reject")?;
    for ((command, always), asked) in GRAVE.iter().zip(found) {
        let asked = asked.with_context(|| format!("`{command}` did not ask"))?;
        assert_eq!(asked["permission"], "bash", "{command}: {asked:#}");
        assert_eq!(asked["always"], json!(always), "{command}");
        let because = asked["metadata"]["asked"]["because"].as_str().unwrap_or_default();
        assert!(because.ends_with("and this cannot be undone"), "{command}: {because}");
        assert_eq!(asked["metadata"]["asked"]["wider"], json!([]), "{command}");
    }
    assert!(stage.project.path("src/a.rs").exists());
    Ok(())
}

/// Ordinary commands, whose failure does not matter.
const ORDINARY: [&str; 28] = [
    "find . -name node_modules -type d -prune -exec ls -d {} +",
    "cd sub && ls && cd ..",
    "cd sub && cd .. && git status",
    "pushd sub && cd .. && popd",
    "T=$(mktemp -d) && touch \"$T/a\" && rm -rf \"$T\"",
    "rm -rf $(mktemp -d)",
    "git init -q ini",
    "mkdir t && cd t && git init -q",
    "cat /proc/self/mounts > /dev/null",
    "ls /proc/self/fd",
    "find . -name node_modules -type d -prune -exec rm -rf {} +",
    "find . -name target -type d | xargs rm -rf",
    "find . \\( -name __pycache__ -o -name target \\) -type d -exec rm -rf {} +",
    "git push || true",
    "git push --force --dry-run || true",
    "git clean -n",
    "npm publish --dry-run || true",
    "rm -rf target",
    "rm -rf target/debug",
    "rm -rf sub/node_modules",
    "cd sub && rm -rf node_modules/m",
    "rm -rf missing",
    "rm -rf target*",
    "mkdir -p /tmp/x/y && rm -rf /tmp/x",
    "mkdir empty && rm -r empty",
    "rm -f notes.txt",
    "echo git push --force",
    "git commit -m 'push --force' || true",
];

#[test]
fn ordinary_commands_do_not_ask() -> Result<()> {
    let stage = stage(ORDINARY.iter().map(|command| bash(command)))?;
    let found = requests(&stage, ORDINARY.len(), "reject")?;
    for (command, asked) in ORDINARY.iter().zip(found) {
        assert!(asked.is_none(), "`{command}` asked: {:#}", asked.unwrap_or_default());
    }
    Ok(())
}

#[test]
fn a_rule_of_the_user_replaces_the_question() -> Result<()> {
    let command = "rm -rf src";
    for (permission, asks) in [
        (json!({"bash": "allow"}), false),
        (json!("allow"), false),
        (json!({"*": "allow"}), false),
        (json!({"bash": {"rm *": "allow"}}), false),
        (json!({"bash": {"git *": "allow"}}), true),
        (json!({"edit": "allow"}), true),
        (json!({"bash": {"*": "allow", "rm -rf *": "ask"}}), true),
    ] {
        let stage = stage([bash(command)])?;
        rules(&stage, permission.clone())?;
        let found = requests(&stage, 1, "once")?;
        assert_eq!(found[0].is_some(), asks, "{permission}");
        assert!(!stage.project.path("src").exists(), "{permission}");
    }
    Ok(())
}

#[test]
fn always_covers_the_same_command_and_no_other() -> Result<()> {
    let commands =
        ["rm -rf src", "rm -rf src", "rm -rf secrets", "rm notes.txt && rm -rf sub", "rm -rf secrets a"];
    let stage = stage(commands.map(bash))?;
    let found = requests(&stage, commands.len(), "always")?;
    let asks: Vec<_> = found.iter().map(Option::is_some).collect();
    // The second finds no directory any more.
    assert_eq!(asks, [true, false, true, true, true]);
    Ok(())
}

#[test]
fn an_approval_of_the_prefix_does_not_cover_what_cannot_be_undone() -> Result<()> {
    let commands =
        ["git push", "git push origin", "git push --force", "git push --force", "git push --force origin"];
    let stage = stage(commands.map(bash))?;
    rules(&stage, json!({"bash": {"git push *": "ask"}}))?;
    let found = requests(&stage, commands.len(), "always")?;
    let asks: Vec<_> = found.iter().map(Option::is_some).collect();
    assert_eq!(asks, [true, false, true, false, true]);
    Ok(())
}

/// Commands that cannot be undone, and the same ones with another target.
const OTHER_TARGETS: [(&str, &str); 7] = [
    ("git push --force origin a", "git push --force origin main"),
    ("kubectl delete pod x", "kubectl delete ns prod"),
    ("gh repo delete a/b --yes", "gh repo delete a/c --yes"),
    ("terraform destroy", "terraform destroy -target x"),
    ("npm publish", "npm publish --tag x"),
    ("psql -c 'drop database a'", "psql -c 'drop database b'"),
    ("psql <<< 'drop database a'", "psql <<< 'drop database b'"),
];

#[test]
fn always_covers_no_other_target() -> Result<()> {
    let all: Vec<&str> = OTHER_TARGETS.iter().flat_map(|(first, other)| [*first, first, other]).collect();
    let stage = stage(all.iter().map(|command| bash(&format!("false && {command} || true"))))?;
    let found = requests(&stage, all.len(), "always")?;
    for (at, (first, other)) in OTHER_TARGETS.iter().enumerate() {
        let asks: Vec<_> = found[3 * at..3 * at + 3].iter().map(Option::is_some).collect();
        assert_eq!(asks, [true, false, true], "`{first}`, again, then `{other}`");
    }
    Ok(())
}

/// Commands that delete a directory whose name is known only when they run, and the text of the request.
const UNKNOWN_TARGETS: [(&str, &str); 7] = [
    ("rm -rf $(cat list.txt)", "rm -rf $(cat list.txt)"),
    ("D=$(cat list.txt); rm -rf $D", "rm -rf $D"),
    ("D=$(cat list.txt); rm -rf \"$D\" 2>/dev/null", "rm -rf \"$D\""),
    ("rm -rf `sed s/target/src/ list.txt`", "rm -rf `sed s/target/src/ list.txt`"),
    ("rm -rf $(awk '{print $1}' list.txt)", "rm -rf $(awk '{print $1}' list.txt)"),
    ("cat list.txt | xargs rm -rf", "rm -rf \u{2026}"),
    ("cat list.txt | while read d; do rm -rf \"$d\"; done", "rm -rf \"$d\""),
];

#[test]
fn an_unknown_target_is_never_named_and_never_allowed_for_later() -> Result<()> {
    for all_ask in [false, true] {
        let stage = prepared(
            UNKNOWN_TARGETS.iter().fold(Script::new(), |script, (line, _)| script.turn(bash(line))),
        )?;
        stage.project.write("list.txt", "src\n")?;
        if all_ask {
            rules(&stage, json!({"bash": "ask"}))?;
        }
        let found = requests(&stage, UNKNOWN_TARGETS.len(), "reject")?;
        for ((command, shown), asked) in UNKNOWN_TARGETS.iter().zip(found) {
            let asked = asked.with_context(|| format!("`{command}` did not ask"))?;
            let patterns = asked["patterns"].as_array().context("no patterns")?;
            assert!(patterns.contains(&json!(shown)), "{command}: {asked:#}");
            let is_named = |pattern: &Value| *pattern == "rm -rf list.txt" || *pattern == "rm -rf src";
            assert!(!patterns.iter().any(is_named), "{command}: {asked:#}");
            assert_eq!(asked["always"], json!([]), "{command}");
            let because = asked["metadata"]["asked"]["because"].as_str().unwrap_or_default();
            check_has(because, &["the target is unknown until it runs", "cannot be undone"]);
        }
    }
    Ok(())
}

#[test]
fn a_rule_of_a_repository_needs_trust() -> Result<()> {
    for (trust, runs) in [("ask", false), ("all", true)] {
        let stage = stage([bash("rm -rf src")])?;
        stage.project.write("opencode.json", json!({"permission": {"bash": "allow"}}).to_string())?;
        let done = stage.program(["run", "go"]).env("CODEWRIGHT_TRUST", trust).finish()?.success()?;
        let asked = "permission requested: bash (rm -rf src); auto-rejecting";
        assert_eq!(done.stderr.contains(asked), !runs, "{trust}: {}", done.stderr);
        assert_eq!(stage.project.path("src/a.rs").exists(), !runs, "{trust}");
    }
    Ok(())
}

#[test]
fn run_says_why_it_rejects_and_which_line_allows_it() -> Result<()> {
    let stage = stage([bash("git clean -fd && echo never")])?;
    let done = stage.run(["go"])?.success()?;
    check_has(
        &done.stderr,
        &[
            "! permission requested: bash (git clean -fd); auto-rejecting\n",
            "! asked because it deletes files that git does not have, and this cannot be undone\n",
            r#"! a rule in your own configuration allows it: {"permission":{"bash":{"git clean -fd":"allow"}}}"#,
        ],
    );
    assert!(stage.project.path("notes.txt").exists());
    Ok(())
}
