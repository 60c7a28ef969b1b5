//! The files that users attach to prompts and commands.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use anyhow::{Context as _, Result};
use codewright_testkit::{BlockingServer, Project, Script, Turn};
use serde_json::{Value, json};

use super::Team;
use crate::support::{Stage, wait_until};

/// The content of a file that only administrators may read.
const HIDDEN: &str = "quagga-1883";

fn talkative() -> Script {
    Script::new().default_turn(Turn::text("Done."))
}

#[test]
fn no_spelling_of_an_address_attaches_a_file_of_others() -> Result<()> {
    let team = Team::new(talkative())?;
    let home = team.stage.project.home().display().to_string();
    let directory = team.stage.project.directory().display().to_string();
    let secret = format!("{home}/secret.txt");
    fs::write(&secret, HIDDEN)?;
    fs::write(format!("{directory}/a"), "own")?;
    symlink(&secret, format!("{directory}/link"))?;
    let up = "../".repeat(directory.split('/').count() + 1);
    let escaped: String = secret.bytes().map(|byte| format!("%{byte:02X}")).collect();
    let session = team.session("bob", "mine")?;
    let dots = up.replace("..", "%2e%2E");
    let mut spellings = vec![format!("file:///{escaped}"), format!("file://{directory}/link")];
    for path in [
        secret.clone(),
        format!("{directory}/a#/{up}{secret}"),
        format!("{directory}/a?/{up}{secret}"),
        format!("{directory}/a%23/{up}{secret}"),
        format!("{directory}/{up}{secret}"),
        format!("{directory}/{dots}{secret}"),
        format!("{directory}/{}{secret}", up.replace('/', "%2F")),
        format!("{directory}/{}{secret}", up.replace('/', "\\")),
        format!("/{secret}"),
    ] {
        for start in
            ["file://", "FILE://", "file:", " file://", "fi\tle://", "file://localhost", "file://host"]
        {
            spellings.push(format!("{start}{path}"));
        }
    }
    for url in &spellings {
        for mime in ["text/plain", "application/octet-stream", "application/x-directory"] {
            let part = json!({"type": "file", "mime": mime, "url": url});
            let parts = json!([{"type": "text", "text": "t"}, part]);
            let path = format!("/session/{session}/message");
            for body in [json!({"parts": parts}), json!({"content": parts})] {
                let (status, text) = team.call("bob", "POST", &path, &body)?;
                assert!(matches!(status, 200 | 400 | 403), "{url}: {status} {text}");
                assert!(!text.contains(HIDDEN), "{url}: {text}");
            }
        }
        let body = json!({"prompt": {"text": "t", "files": [{"uri": url}]}});
        let (_, text) = team.call("bob", "POST", &format!("/api/session/{session}/prompt"), &body)?;
        assert!(!text.contains(HIDDEN), "{url}: {text}");
    }
    let messages = team.json("bob", "GET", &format!("/session/{session}/message"), &Value::Null)?.to_string();
    assert!(!messages.contains(HIDDEN) && !team.received().contains(HIDDEN));
    // The own file and the files of an administrator are attached.
    let attach = |user: &str, session: &str, path: &str| {
        let part = json!({"type": "file", "mime": "text/plain", "url": format!("file://{path}")});
        let body = json!({"parts": [{"type": "text", "text": "t"}, part]});
        team.status(user, "POST", &format!("/session/{session}/message"), &body)
    };
    assert_eq!(attach("bob", &session, &format!("{directory}/a"))?, 200);
    assert!(team.received().contains("1: own"), "{}", team.received());
    let of_root = team.session("root", "root's")?;
    assert_eq!(attach("root", &of_root, &secret)?, 200);
    assert!(team.received().contains(HIDDEN));
    Ok(())
}

#[test]
fn commands_attach_no_file_of_others() -> Result<()> {
    let team = Team::with(talkative(), |config| {
        config["command"] = json!({
            "show": {"template": "look at @$1"}, "slash": {"template": "look at @/$1"},
            "fixed": {"template": "look at @link"}, "print": {"template": "!`cat \"$1\"`"},
        });
        config["permission"] = json!({"bash": {"*": "allow", "cat *": "deny"}});
    })?;
    let secret = team.stage.project.home().join("secret.txt");
    fs::write(&secret, HIDDEN)?;
    symlink(&secret, team.stage.project.path("link"))?;
    team.stage.project.write("own.txt", "mine")?;
    let session = team.session("bob", "mine")?;
    let run = |user: &str, session: &str, command: &str, arguments: &str| {
        let body = json!({"command": command, "arguments": arguments});
        team.status(user, "POST", &format!("/session/{session}/command"), &body)
    };
    let secret = secret.display().to_string();
    let relative = format!("{}{secret}", "../".repeat(12));
    for (command, arguments) in [
        ("show", secret.as_str()),
        ("show", &relative),
        ("show", "link"),
        ("show", "~/secret.txt"),
        ("slash", secret.trim_start_matches('/')),
        ("fixed", ""),
        ("print", &secret),
        ("show", &format!("x @{secret}")),
    ] {
        let status = run("bob", &session, command, arguments)?;
        assert!(matches!(status, 200 | 400 | 403), "{command} {arguments}: {status}");
        assert!(!team.received().contains(HIDDEN), "{command} {arguments}");
    }
    assert_eq!(run("bob", &session, "show", "own.txt")?, 200);
    assert!(team.received().contains("1: mine"));
    let of_root = team.session("root", "root's")?;
    assert_eq!(run("root", &of_root, "show", &secret)?, 200);
    assert!(team.received().contains(HIDDEN));
    Ok(())
}

#[test]
fn a_link_that_is_exchanged_between_check_and_use_leads_nowhere() -> Result<()> {
    let team = Team::new(talkative())?;
    let home = team.stage.project.home().to_owned();
    let directory = team.stage.project.directory().to_owned();
    fs::create_dir(home.join("secrets"))?;
    fs::write(home.join("secrets/file"), HIDDEN)?;
    fs::create_dir(directory.join("own"))?;
    fs::write(directory.join("own/file"), "own")?;
    let link = directory.join("link");
    symlink(directory.join("own"), &link)?;
    let (session, done) = (team.session("bob", "mine")?, AtomicBool::new(false));
    let url = format!("file://{}/file", link.display());
    let result = thread::scope(|scope| {
        scope.spawn(|| {
            let next = directory.join("next");
            while !done.load(Ordering::Relaxed) {
                for target in [home.join("secrets"), directory.join("own")] {
                    exchange(&target, &next, &link);
                }
            }
        });
        let tried = (0..150).try_for_each(|_| -> Result<()> {
            let path = format!("/file/content?path=file&directory={}", link.display());
            let (_, text) = team.call("bob", "GET", &path, &Value::Null)?;
            anyhow::ensure!(!text.contains(HIDDEN), "{text}");
            let part = json!({"type": "file", "mime": "text/plain", "url": url});
            let body = json!({"noReply": true, "parts": [{"type": "text", "text": "t"}, part]});
            let (_, text) = team.call("bob", "POST", &format!("/session/{session}/message"), &body)?;
            anyhow::ensure!(!text.contains(HIDDEN), "{text}");
            Ok(())
        });
        done.store(true, Ordering::Relaxed);
        tried
    });
    result?;
    let messages = team.json("bob", "GET", &format!("/session/{session}/message"), &Value::Null)?.to_string();
    assert!(!messages.contains(HIDDEN));
    Ok(())
}

/// Replaces a link at once. A failure is one of the exchanges that the test does without.
fn exchange(target: &Path, next: &Path, link: &Path) {
    if symlink(target, next).is_ok() {
        drop(fs::rename(next, link));
    }
}

#[test]
fn the_outputs_and_plans_of_others_need_an_administrator() -> Result<()> {
    let project = Project::plain()?;
    let outputs = crate::support::data(&project).join("tool-output");
    fs::create_dir_all(outputs.join("user-alice"))?;
    fs::create_dir_all(outputs.join("user-bob"))?;
    let others = ["tool_1", "user-alice/tool_2"];
    let mut script = Script::new();
    for path in others.into_iter().chain(["user-bob/tool_3"]) {
        fs::write(outputs.join(path), format!("{HIDDEN} {path}"))?;
        let call = Turn::steps().tool("read", json!({"filePath": outputs.join(path)}));
        script = script.turn(call);
    }
    let server = BlockingServer::start(script.default_turn(Turn::text("Done.")))?;
    let team = Team::on(Stage { server, project }, "none", |_| {})?;
    let session = team.session("bob", "mine")?;
    for path in others {
        assert_eq!(team.start("bob", &session, "go")?, 204);
        let request = team.request("bob", "external_directory")?;
        let id = request["id"].as_str().context("no id")?;
        let reply = |reply: &str| {
            team.status("bob", "POST", &format!("/permission/{id}/reply"), &json!({"reply": reply}))
        };
        assert_eq!((reply("always")?, reply("once")?, reply("reject")?), (403, 403, 200), "{path}");
        wait_until("the end", || is_idle(&team, "bob"))?;
    }
    assert_eq!(team.prompt("bob", &session, "go")?, 200);
    let received = team.received();
    assert!(received.contains(&format!("{HIDDEN} user-bob/tool_3")), "{received}");
    assert!(
        !received.contains(&format!("{HIDDEN} tool_1"))
            && !received.contains(&format!("{HIDDEN} user-alice"))
    );
    Ok(())
}

fn is_idle(team: &Team, user: &str) -> bool {
    team.json(user, "GET", "/session/status", &Value::Null).is_ok_and(|statuses| statuses == json!({}))
}
