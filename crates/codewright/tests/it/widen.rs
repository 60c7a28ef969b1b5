//! Permissions of commands in the sandbox: which commands need one, and what a granted one allows.

use std::path::Path;

use anyhow::{Context, Result};
use codewright_testkit::{Script, Turn};
use serde_json::{Value, json};

use crate::permissions::{begin, question, reply};
use crate::sandbox::is_enforced;
use crate::support::{Stage, check_has};

/// A program that writes, and that no reading of the command line can see through.
const WRITER: &str = "import sys\nfor path in sys.argv[1:]:\n  try:\n    open(path, 'w').write('changed')\n    \
                      print('wrote', path)\n  except OSError as error:\n    print(path + ':', error.strerror)\n    \
                      sys.exit(1)\n";

/// Ways from one writable hook to others.
const EVIL: &str = "cd .git/hooks; echo evil > post-commit; echo evil > pre-push; echo evil > present; rm -f present; cd ..
mv hooks moved && mkdir hooks; echo evil > hooks/post-merge; ln -s ../moved hooks/pre-rebase; mv hooks/pre-commit hooks/commit-msg\n";

/// A stage in which the model makes these calls of `bash`, one in each turn.
fn stage(calls: &[Value]) -> Result<Stage> {
    let script = calls
        .iter()
        .fold(Script::new(), |script, call| script.turn(Turn::tools([("bash", call.clone())])).text("Done."));
    let stage = Stage::git(script)?;
    stage.project.write("writer.py", WRITER)?;
    Ok(stage)
}

/// Runs one command in a separate turn. Returns its result and whether it needed permission.
fn tried(command: &str, args: &[&'static str]) -> Result<(Stage, String, bool)> {
    let stage = stage(&[json!({ "command": command })])?;
    stage.project.write(".env", "KEY=1")?;
    let done = stage.run(args.iter().copied().chain(["go"]))?.success()?;
    let result = stage.results(1).ok().and_then(|results| results.first().cloned()).unwrap_or_default();
    Ok((stage, result, done.stderr.contains("auto-rejecting")))
}

#[test]
fn only_what_leaves_the_sandbox_needs_permission() -> Result<()> {
    if !is_enforced(&stage(&[])?)? {
        return Ok(());
    }
    let outside = tempfile::TempDir::new_in("/var/tmp")?;
    let path = outside.path().display();
    for (command, asks_inside, asks_without) in [
        ("echo x > new.txt".to_owned(), false, false),
        ("cat /etc/hostname".to_owned(), true, true),
        (format!("ls {path}"), true, true),
        ("cat ~nobody/missing".to_owned(), true, true),
        ("echo x > /tmp/codewright-private".to_owned(), false, true),
        (format!("echo x > {path}/file"), true, true),
        (format!("cp README.md {path}"), true, true),
        ("cat .env".to_owned(), true, true),
        ("echo x > .mcp.json".to_owned(), true, true),
        ("git remote add other /srv/other".to_owned(), true, true),
    ] {
        for (args, expected) in [(&[][..], asks_inside), (&["--sandbox", "off"][..], asks_without)] {
            let (_, result, asks) = tried(&command, args)?;
            assert_eq!(asks, expected, "{command} {args:?}: {result}");
        }
    }
    assert!(!Path::new("/tmp/codewright-private").exists());
    Ok(())
}

#[test]
fn rules_of_the_user_keep_their_meaning() -> Result<()> {
    if !is_enforced(&stage(&[])?)? {
        return Ok(());
    }
    for (rules, command, asks) in [
        (json!({"external_directory": "ask"}), "cat /etc/hostname", true),
        (json!({"external_directory": {"/etc/*": "ask"}}), "cat /etc/hostname", true),
        (json!({"external_directory": {"/srv/*": "ask"}}), "cat /etc/hostname", true),
        (json!({"bash": "ask"}), "true", true),
        (json!({"read": {"*.env": "ask"}}), "cat ~nobody/missing", true),
    ] {
        let stage = stage(&[json!({ "command": command })])?;
        crate::permissions::rules(&stage, rules.clone())?;
        let done = stage.run(["go"])?.success()?;
        assert_eq!(done.stderr.contains("auto-rejecting"), asks, "{rules} {command}");
    }
    Ok(())
}

#[test]
fn git_works_and_asks_about_its_configuration_by_name() -> Result<()> {
    let free = "git add -A && git commit -qm one && echo x > b && git stash -qu && git stash pop -q && git add b && \
                git commit -qm two && git rebase -q HEAD~1 && git worktree add -q trees/one && git fetch -q . main && \
                git checkout -q -b side && git merge -q main && git tag v1 && git gc -q && echo worked";
    let (stage, result, asks) = tried(free, &[])?;
    if !is_enforced(&stage)? {
        return Ok(());
    }
    assert!(!asks && result.contains("worked"), "{result}");
    for command in ["git remote add other /srv/x", "mkdir -p src && cd src && git remote add other /srv/x"] {
        let call = || Turn::tools([("bash", json!({ "command": command }))]);
        // A rejection ends the turn, so the model is not asked again.
        let stage = Stage::git(Script::new().turn(call()).turn(call()).text("Done."))?;
        let config = || stage.project.read(".git/config");
        let before = config()?;
        let (_server, url) = stage.serve()?;
        let session = begin(&url, stage.project.directory())?;
        let asked = question(&url, &session)?.context("there is no request")?;
        assert_eq!((&asked["permission"], &asked["patterns"]), (&json!("edit"), &json!([".git/config"])));
        reply(&url, &asked, "reject")?;
        let session = begin(&url, stage.project.directory())?;
        assert_eq!(config()?, before);
        let asked = question(&url, &session)?.context("there is no request")?;
        reply(&url, &asked, "once")?;
        assert!(question(&url, &session)?.is_none());
        check_has(&config()?, &["[remote \"other\"]"]);
    }
    Ok(())
}

#[test]
fn a_blocked_write_is_named_and_can_be_granted_for_one_call() -> Result<()> {
    let outside = tempfile::TempDir::new_in("/var/tmp")?;
    let target = outside.path().canonicalize()?.join("file");
    let hidden = target.to_string_lossy().replace("/var", "/var/./");
    let command = format!("python3 writer.py {hidden}");
    let wider = json!({"write": [outside.path()]});
    let stage = stage(&[
        json!({ "command": command }),
        json!({ "command": command, "sandbox": wider }),
        json!({ "command": format!("rm {}; {command}2", target.display()), "sandbox": {"write": ["src"]} }),
    ])?;
    if !is_enforced(&stage)? {
        return Ok(());
    }
    stage.run(["go"])?.success()?;
    let results = stage.results(1)?;
    check_has(&results[0], &["is read-only", "\"sandbox\": {\"write\":", &target.to_string_lossy()]);
    assert!(!target.exists());
    // Without a user the request is rejected; with one it is granted.
    stage.run(["--auto", "-c", "again"])?.success()?;
    assert!(target.exists());
    stage.run(["-c", "without"])?.success()?;
    assert!(target.exists() && !outside.path().join("file2").exists());
    Ok(())
}

#[test]
fn protected_files_and_secrets_are_granted_by_name() -> Result<()> {
    let call = |command: &str, wider: Value| json!({ "command": command, "sandbox": wider });
    let stage = stage(&[
        call("cat ~/.ssh/id || true", json!({"read": ["~/.ssh/id"]})),
        call("python3 writer.py .mcp.json", json!({"write": [".mcp.json"]})),
        json!({"command": "cat $HOME/.ssh/id; python3 writer.py .mcp.json .claude.json"}),
    ])?;
    if !is_enforced(&stage)? {
        return Ok(());
    }
    let ssh = stage.project.home().join(".ssh");
    std::fs::create_dir(&ssh)?;
    std::fs::write(ssh.join("id"), "SECRET\n")?;
    // General rules do not cover them.
    crate::permissions::rules(&stage, json!({"*": "allow", "read": "allow", "edit": {"*": "allow"}}))?;
    let (_server, url) = stage.serve()?;
    let mut seen = Vec::new();
    for _ in 0..3 {
        let session = begin(&url, stage.project.directory())?;
        while let Some(asked) = question(&url, &session)? {
            seen.push(format!("{} {}", asked["permission"], asked["patterns"]));
            reply(&url, &asked, "once")?;
        }
        let results = crate::support::get(&url, &format!("/session/{session}/message"))?.to_string();
        seen.push(results.contains("SECRET").to_string());
    }
    assert_eq!(
        seen,
        ["\"read\" [\"../home/.ssh/id\"]", "true", "\"edit\" [\".mcp.json\"]", "false", "false"]
    );
    assert_eq!(stage.project.read(".mcp.json")?, "changed");
    assert!(!stage.project.path(".claude.json").exists());
    Ok(())
}

#[test]
fn a_granted_hook_opens_no_other_hook() -> Result<()> {
    let call = |command: &str| json!({ "command": command, "sandbox": {"write": [".git/hooks/pre-commit"]} });
    // The way in which git writes files, and the ways around the grant.
    let replaced =
        "cd .git/hooks && echo one > pre-commit.lock && mv pre-commit.lock pre-commit && echo replaced";
    let removed = "rm .git/hooks/pre-commit && echo removed";
    let calls = [call(replaced), call("python3 evil.py"), call(removed)];
    let stage = stage(&[&calls[..], &calls[..]].concat())?;
    if !is_enforced(&stage)? {
        return Ok(());
    }
    // The user would be asked about the files that a command line names.
    stage.project.write("evil.sh", EVIL)?;
    stage.project.write("evil.py", "import subprocess\nsubprocess.run(['sh', 'evil.sh'])\nprint('end')\n")?;
    let hooks = stage.project.path(".git/hooks");
    std::fs::create_dir_all(&hooks)?;
    for entry in std::fs::read_dir(&hooks)? {
        std::fs::remove_file(entry?.path())?;
    }
    // With an entry, and without any.
    for present in [true, false] {
        let file = hooks.join("present");
        if present {
            std::fs::write(&file, "kept")?;
        } else {
            std::fs::remove_file(&file)?;
        }
        let (_server, url) = stage.serve()?;
        let mut outputs = Vec::new();
        for _ in 0..3 {
            let session = begin(&url, stage.project.directory())?;
            while let Some(asked) = question(&url, &session)? {
                reply(&url, &asked, "once")?;
            }
            outputs.push(crate::support::get(&url, &format!("/session/{session}/message"))?.to_string());
            let names: Vec<String> = std::fs::read_dir(&hooks)?
                .map(|entry| entry.map(|entry| entry.file_name().to_string_lossy().into_owned()))
                .collect::<std::io::Result<_>>()?;
            let allowed = |name: &String| name == "pre-commit" || name == "present";
            assert!(names.iter().all(allowed), "{names:?} {outputs:?}");
            if present {
                assert_eq!(std::fs::read_to_string(&file)?, "kept", "{outputs:?}");
            }
            // Only the last command removes it: it cannot take another name.
            assert_eq!(hooks.join("pre-commit").exists(), outputs.len() < 3, "{outputs:?}");
            std::fs::write(hooks.join("pre-commit"), "one")?;
        }
        for (output, word) in outputs.iter().zip(["replaced", "end", "removed"]) {
            check_has(output, &[word]);
        }
    }
    Ok(())
}

#[test]
fn the_network_of_the_machine_needs_a_reply_for_each_command() -> Result<()> {
    let server = codewright_testkit::FileServer::start()?;
    server.write("hello", "hello from outside")?;
    // A program that knows no proxy.
    let command = format!("curl -sS --noproxy '*' http://{}/hello", server.host());
    let call = json!({ "command": command, "sandbox": {"network": "open"} });
    let stage = stage(&[json!({ "command": command }), call.clone(), call.clone(), call.clone(), call])?;
    if !is_enforced(&stage)? {
        return Ok(());
    }
    crate::permissions::rules(&stage, json!({"*": "allow", "sandbox": "allow", "network": "allow"}))?;
    // The port of this machine is asked for by itself.
    stage.run(["go"])?.success()?;
    assert!(!stage.results(1)?[0].contains("hello from outside"));
    // No rule and no automatic reply grants it, and an agent that must not write never gets it.
    let done = stage.run(["--auto", "go"])?.success()?;
    check_has(&done.stderr, &["permission requested: sandbox"]);
    stage.run(["--auto", "--agent", "plan", "go"])?.success()?;
    let (_server, url) = stage.serve()?;
    let session = begin(&url, stage.project.directory())?;
    let asked = question(&url, &session)?.context("there is no request")?;
    assert_eq!((&asked["permission"], &asked["always"]), (&json!("sandbox"), &json!([])));
    assert_eq!(asked["patterns"], json!(["open network", command]));
    reply(&url, &asked, "always")?;
    while let Some(asked) = question(&url, &session)? {
        reply(&url, &asked, "once")?;
    }
    let text = crate::support::get(&url, &format!("/session/{session}/message"))?.to_string();
    check_has(&text, &["hello from outside"]);
    // The next one asks again.
    let session = begin(&url, stage.project.directory())?;
    let asked = question(&url, &session)?.context("there is no request")?;
    assert_eq!(asked["permission"], "sandbox");
    reply(&url, &asked, "reject")?;
    Ok(())
}

#[test]
fn hosts_that_a_call_names_are_granted_before_it_runs() -> Result<()> {
    let stage = stage(&[
        json!({"command": "true", "sandbox": {"network": ["example.invalid:443"]}}),
        json!({"command": "true", "sandbox": {"network": ["example.invalid:70000"]}}),
    ])?;
    if !is_enforced(&stage)? {
        return Ok(());
    }
    let (_server, url) = stage.serve()?;
    let session = begin(&url, stage.project.directory())?;
    let asked = question(&url, &session)?.context("there is no request")?;
    assert_eq!(
        (&asked["permission"], &asked["patterns"]),
        (&json!("network"), &json!(["example.invalid:443"]))
    );
    reply(&url, &asked, "once")?;
    assert!(question(&url, &session)?.is_none());
    let session = begin(&url, stage.project.directory())?;
    assert!(question(&url, &session)?.is_none());
    let text = crate::support::get(&url, &format!("/session/{session}/message"))?.to_string();
    check_has(&text, &["is not a host with a port"]);
    Ok(())
}

#[test]
fn leaving_the_sandbox_always_needs_a_reply_of_a_user() -> Result<()> {
    let outside = tempfile::TempDir::new_in("/var/tmp")?;
    let target = outside.path().join("file");
    let command = format!("python3 writer.py {}", target.to_string_lossy().replace("/var", "/var/./"));
    let call = json!({"command": command, "sandbox": {"mode": "off"}});
    let stage = stage(&[call.clone(), call.clone(), call.clone(), call])?;
    if !is_enforced(&stage)? {
        return Ok(());
    }
    crate::permissions::rules(&stage, json!({"*": "allow", "sandbox": {"python3 *": "allow"}}))?;
    let done = stage.run(["--auto", "go"])?.success()?;
    check_has(&stage.results(1)?[0], &["--sandbox off"]);
    check_has(&done.stderr, &["permission requested: sandbox"]);
    stage.run(["--auto", "--agent", "plan", "go"])?.success()?;
    assert!(!target.exists());
    let (_server, url) = stage.serve()?;
    for _ in 0..2 {
        let session = begin(&url, stage.project.directory())?;
        let asked = question(&url, &session)?.context("there is no request")?;
        assert_eq!((&asked["permission"], &asked["always"]), (&json!("sandbox"), &json!([])));
        reply(&url, &asked, "always")?;
        while let Some(asked) = question(&url, &session)? {
            reply(&url, &asked, "once")?;
        }
        assert!(target.exists());
    }
    Ok(())
}

#[test]
fn read_only_means_that_nothing_is_written() -> Result<()> {
    let (stage, result, _) = tried(
        "echo x > README.md; echo x > new.txt; echo y > $TMPDIR/z && echo end",
        &["--sandbox", "read-only"],
    )?;
    if !is_enforced(&stage)? {
        return Ok(());
    }
    assert!(result.contains("end") && !stage.project.path("new.txt").exists(), "{result}");
    assert_eq!(stage.project.read("README.md")?, "# Project\n");
    Ok(())
}
