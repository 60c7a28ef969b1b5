//! What a user who is not an administrator may decide.

use std::fs;

use anyhow::{Context as _, Result};
use codewright_testkit::{Script, Turn, is_default_store};
use serde_json::{Value, json};

use super::{Team, read_until};
use crate::sandbox::is_enforced;
use crate::support::{Stage, database, wait_until};

fn id(value: &Value) -> Result<String> {
    Ok(value["id"].as_str().context("no id")?.to_owned())
}

/// Every route that replies to a permission request, with its body.
fn replies(session: &str, request: &str, reply: &str) -> [(String, Value); 4] {
    [
        (format!("/permission/{request}/reply"), json!({"reply": reply})),
        (format!("/session/{session}/permissions/{request}"), json!({"response": reply})),
        (format!("/api/session/{session}/permission/{request}/reply"), json!({"reply": reply})),
        ("/question".to_owned(), json!({"id": request, "reply": reply})),
    ]
}

#[test]
fn only_an_administrator_lets_a_command_out_of_the_sandbox_or_the_directory() -> Result<()> {
    let command = json!({"command": "echo free", "description": "d", "sandbox": {"mode": "off"}});
    let network = json!({"command": "echo free", "description": "d", "sandbox": {"network": "open"}});
    for (tool, input, permission) in [
        ("bash", command, "sandbox"),
        ("bash", network, "sandbox"),
        ("read", json!({"filePath": "/etc/hostname"}), "external_directory"),
        ("write", json!({"filePath": ".envrc", "content": "x"}), "edit"),
        ("webfetch", json!({"url": "http://127.0.0.1:9/", "format": "text"}), "webfetch"),
    ] {
        let stage = Stage::git(Script::new().tool(tool, input).default_turn(Turn::text("Done.")))?;
        if permission == "sandbox" && !is_enforced(&stage)? {
            continue;
        }
        let team = Team::on(stage, "none", |_| {})?;
        let session = team.session("bob", "mine")?;
        assert_eq!(team.start("bob", &session, "go")?, 204);
        let request = id(&team.request("bob", permission)?)?;
        for reply in ["once", "always"] {
            for (path, body) in replies(&session, &request, reply) {
                assert_eq!(team.status("bob", "POST", &path, &body)?, 403, "{permission} {path}");
            }
        }
        assert_eq!(id(&team.request("bob", permission)?)?, request, "the request still waits");
        let path = format!("/permission/{request}/reply");
        assert_eq!(team.status("root", "POST", &path, &json!({"reply": "once"}))?, 200);
        wait_until("the end", || team.stage.server.main_requests().len() == 2)?;
        let audit = team.json("root", "GET", "/users/audit", &Value::Null)?.to_string();
        assert!(audit.contains("permission.reply") && audit.contains("root"), "{audit}");
    }
    Ok(())
}

#[test]
fn only_an_administrator_answers_the_question_about_trust() -> Result<()> {
    let stage = Stage::git(Script::new().default_turn(Turn::text("Done.")))?;
    let canary = stage.project.path("canary");
    let config = json!({"mcp": {"x": {"type": "local", "command": ["touch", canary]}}});
    stage.project.write("opencode.json", config.to_string())?;
    let team = Team::on(stage, "ask", |_| {})?;
    // The question is for clients that follow the events.
    let _streams = ["root", "bob"].map(|user| team.events(user, "/event").unwrap());
    let own = team.session("bob", "mine")?;
    assert_eq!(team.prompt("bob", &own, "hi")?, 200, "a user's session continues without trust");
    let questions = |user: &str| team.json(user, "GET", "/question", &Value::Null).unwrap();
    assert_eq!(questions("root"), json!([]));
    let session = team.session("root", "root's")?;
    assert_eq!(team.share("root", &session, &json!({"guests": "full"}))?, 200);
    assert_eq!(team.start("root", &session, "hi")?, 204);
    wait_until("the question", || questions("bob").as_array().is_some_and(|all| !all.is_empty()))?;
    let question = id(&questions("bob")[0])?;
    let answers = json!({"answers": [["Trust this repository"]]});
    for (path, body) in [
        (format!("/question/{question}/reply"), answers.clone()),
        (format!("/question/{question}/reject"), json!({})),
        (format!("/api/session/{session}/question/{question}/reply"), answers.clone()),
        (format!("/api/session/{session}/question/{question}/reject"), json!({})),
        ("/question".to_owned(), json!({"id": question, "answers": [["Trust this repository"]]})),
        ("/question".to_owned(), json!({"id": question, "reply": "reject"})),
    ] {
        assert_eq!(team.status("bob", "POST", &path, &body)?, 403, "{path}");
    }
    assert_eq!(team.json("bob", "GET", "/trust", &Value::Null)?["status"], "undecided");
    assert!(!canary.exists());
    assert_eq!(team.status("root", "POST", &format!("/question/{question}/reply"), &answers)?, 200);
    let audit = team.json("root", "GET", "/users/audit", &Value::Null)?;
    let mut entries = audit.as_array().context("no list")?.iter();
    let entry = entries.find(|entry| entry["action"] == "trust.question").context("no entry")?;
    assert_eq!((&entry["user"], &entry["detail"]), (&json!("root"), &json!("Trust this repository")));
    // The trusted server of tools starts.
    team.json("root", "GET", "/mcp", &Value::Null)?;
    wait_until("the canary", || canary.exists())
}

#[test]
fn rules_of_a_user_never_override_those_of_the_operator() -> Result<()> {
    let call = || Turn::steps().tool("bash", json!({"command": "echo forbidden", "description": "d"}));
    let script = Script::new().turn(call()).text("a").turn(call()).text("b").turn(call()).text("c");
    let team = Team::with(script, |config| {
        config["permission"] = json!({"bash": {"*": "allow", "echo *": "deny"}});
    })?;
    let rule = json!([{"permission": "bash", "pattern": "echo *", "action": "allow"}]);
    let created = team.json("bob", "POST", "/session", &json!({"title": "t", "permission": rule}))?;
    let patched = team.session("bob", "t")?;
    assert_eq!(
        team.status("bob", "PATCH", &format!("/session/{patched}"), &json!({"permission": rule}))?,
        200
    );
    let added = team.session("bob", "t")?;
    let addition = json!({"sessionID": added, "permission": "bash", "pattern": "echo *", "action": "allow"});
    assert_eq!(team.status("bob", "POST", "/permission", &addition)?, 200);
    for session in [id(&created)?, patched, added] {
        let before = team.stage.server.main_requests().len();
        let mut body = crate::support::prompt("go");
        body["tools"] = json!({"bash": true});
        let (status, text) = team.call("bob", "POST", &format!("/session/{session}/message"), &body)?;
        assert_eq!(status, 200, "{text}");
        let results = team.stage.results(before + 1)?.join("");
        assert!(results.contains("A permission rule forbids this call"), "{results}");
    }
    Ok(())
}

#[test]
fn a_rule_that_names_nobody_is_that_of_the_member_in_a_session_of_one() -> Result<()> {
    if !is_default_store() {
        return Ok(());
    }
    let call = Turn::steps().tool("bash", json!({"command": "echo older", "description": "d"}));
    let team = Team::with(Script::new().turn(call).default_turn(Turn::text("Done.")), |config| {
        config["permission"] = json!({"bash": {"*": "allow", "echo *": "ask"}});
    })?;
    let session = team.session("bob", "t")?;
    // Earlier versions stored no principal.
    let rules = json!([{"permission": "bash", "pattern": "echo *", "action": "allow"}]).to_string();
    let store = rusqlite::Connection::open(database(&team.stage.project))?;
    let changed = store
        .execute("UPDATE session SET permission = ?1 WHERE id = ?2", [rules.as_str(), session.as_str()])?;
    assert_eq!(changed, 1);
    assert_eq!(team.start("bob", &session, "go")?, 204);
    let request = team.request("bob", "bash")?;
    assert_eq!(request["patterns"], json!(["echo older"]));
    Ok(())
}

#[test]
fn rules_of_a_user_can_restrict_the_own_session() -> Result<()> {
    let call = Turn::steps().tool("bash", json!({"command": "echo forbidden", "description": "d"}));
    let team = Team::with(Script::new().turn(call).text("a"), |config| {
        config["permission"] = json!({"bash": "allow"});
    })?;
    let rule = json!([{"permission": "bash", "pattern": "*", "action": "ask"}]);
    let session = id(&team.json("bob", "POST", "/session", &json!({"title": "t", "permission": rule}))?)?;
    assert_eq!(team.start("bob", &session, "go")?, 204);
    let request = id(&team.request("bob", "bash")?)?;
    let reply = json!({"reply": "once"});
    assert_eq!(team.status("bob", "POST", &format!("/permission/{request}/reply"), &reply)?, 200);
    wait_until("the end", || team.stage.server.main_requests().len() == 2)
}

#[test]
fn an_approval_of_a_user_holds_for_the_sessions_of_that_user() -> Result<()> {
    let call = || Turn::steps().tool("bash", json!({"command": "echo approved", "description": "d"}));
    let script = Script::new().turn(call()).text("a").turn(call()).text("b").turn(call()).text("c");
    let team = Team::with(script, |config| config["permission"] = json!({"bash": "ask"}))?;
    let [first, second] = [team.session("alice", "a")?, team.session("alice", "b")?];
    assert_eq!(team.start("alice", &first, "go")?, 204);
    let request = id(&team.request("alice", "bash")?)?;
    let always = json!({"reply": "always"});
    assert_eq!(team.status("alice", "POST", &format!("/permission/{request}/reply"), &always)?, 200);
    wait_until("the end", || team.stage.server.main_requests().len() == 2)?;
    assert_eq!(team.prompt("alice", &second, "again")?, 200, "the same user is not asked again");
    let own = team.session("bob", "mine")?;
    assert_eq!(team.start("bob", &own, "go")?, 204);
    let request = id(&team.request("bob", "bash")?)?;
    assert_eq!(team.status("bob", "POST", &format!("/permission/{request}/reply"), &always)?, 200);
    Ok(())
}

/// The stored author of each reply to a permission request.
fn repliers(team: &Team) -> Result<Vec<Value>> {
    let history = team.json("root", "POST", "/sync/history", &json!({}))?;
    let events = history.as_array().context("no events")?.iter();
    let replies = events.filter(|event| event["type"] == "permission.replied.1");
    Ok(replies.map(|event| event["data"]["by"].clone()).collect())
}

#[test]
fn a_reply_names_the_user_who_gave_it_and_chooses_no_more_than_is_offered() -> Result<()> {
    let call = |command: &str| Turn::steps().tool("bash", json!({"command": command, "description": "d"}));
    let script = Script::new().turn(call("git log -1")).text("a").turn(call("git branch")).text("b");
    let script = script.turn(call("git log -2")).text("c");
    let team = Team::with(script, |config| config["permission"] = json!({"bash": "ask"}))?;
    let mut stream = team.events("root", "/event")?;
    let first = team.session("alice", "a")?;
    assert_eq!(team.share("alice", &first, &json!({"guests": "full"}))?, 200);
    assert_eq!(team.start("alice", &first, "go")?, 204);
    let request = id(&team.request("alice", "bash")?)?;
    let path = format!("/permission/{request}/reply");
    let wider = |pattern: &str| json!({"reply": "always", "wider": [pattern]});
    assert_eq!(team.status("alice", "POST", &path, &wider("*"))?, 400);
    assert_eq!(team.status("alice", "POST", &path, &wider("git *"))?, 200);
    let seen = read_until(&mut stream, "permission.replied")?;
    assert!(seen.contains(r#""by":{"principal":"member","name":"alice","means":"chosen"}"#), "{seen}");
    wait_until("the end", || team.stage.server.main_requests().len() == 2)?;
    let second = team.session("alice", "b")?;
    assert_eq!(team.prompt("alice", &second, "again")?, 200, "`git *` holds for the same user");
    let own = team.session("bob", "mine")?;
    assert_eq!(team.start("bob", &own, "go")?, 204);
    let request = id(&team.request("bob", "bash")?)?;
    let path = format!("/permission/{request}/reply");
    assert_eq!(team.status("root", "POST", &path, &json!({"reply": "once"}))?, 200);
    let saved = team.json("root", "GET", "/api/permission/saved", &Value::Null)?.to_string();
    assert!(saved.contains(r#""by":"member alice""#), "{saved}");
    assert_eq!(
        repliers(&team)?,
        [
            json!({"principal": "member", "name": "alice", "means": "chosen"}),
            json!({"principal": "admin", "name": "root", "means": "chosen"}),
        ]
    );
    Ok(())
}

#[test]
fn always_of_another_user_counts_once() -> Result<()> {
    let call = || Turn::steps().tool("bash", json!({"command": "echo approved", "description": "d"}));
    let script = Script::new().turn(call()).text("a").turn(call()).text("b");
    let team = Team::with(script, |config| config["permission"] = json!({"bash": "ask"}))?;
    let session = team.session("alice", "a")?;
    assert_eq!(team.share("alice", &session, &json!({"guests": "full"}))?, 200);
    for _ in 0..2 {
        assert_eq!(team.start("alice", &session, "go")?, 204);
        let request = id(&team.request("bob", "bash")?)?;
        let always = json!({"reply": "always"});
        assert_eq!(team.status("bob", "POST", &format!("/permission/{request}/reply"), &always)?, 200);
        wait_until("the end", || {
            team.json("alice", "GET", "/session/status", &Value::Null).is_ok_and(|all| all == json!({}))
        })?;
    }
    Ok(())
}

#[test]
fn a_user_changes_neither_records_of_calls_nor_files_that_others_execute() -> Result<()> {
    let call = Turn::steps().tool("bash", json!({"command": "true", "description": "d"}));
    let stage = Stage::git(Script::new().turn(call).text("a"))?;
    let team = Team::on(stage, "none", |config| config["permission"] = json!({"bash": "allow"}))?;
    let session = team.session("bob", "t")?;
    assert_eq!(team.prompt("bob", &session, "go")?, 200);
    let messages = team.json("bob", "GET", &format!("/session/{session}/message"), &Value::Null)?;
    let all = messages.as_array().context("no list")?.iter();
    let parts: Vec<Value> =
        all.flat_map(|message| message["parts"].as_array().cloned().unwrap_or_default()).collect();
    let change = |part: &Value| {
        let path = format!(
            "/session/{session}/message/{}/part/{}",
            part["messageID"].as_str().unwrap_or_default(),
            part["id"].as_str().unwrap_or_default()
        );
        team.status("bob", "PATCH", &path, part)
    };
    for part in &parts {
        let expected = if part["type"] == "text" { 200 } else { 403 };
        assert_eq!(change(part)?, expected, "{part}");
    }
    let text = parts.iter().find(|part| part["type"] == "text").context("no text")?;
    let mut forged = text.clone();
    forged["type"] = json!("patch");
    forged["hash"] = json!("0123456789012345678901234567890123456789");
    forged["files"] = json!(["/etc/passwd"]);
    assert_eq!(change(&forged)?, 403);
    let patch = |name: &str| {
        let text = format!(
            "diff --git a/{name} b/{name}\nnew file mode 100644\n--- /dev/null\n+++ b/{name}\n@@ -0,0 +1 @@\n+x\n"
        );
        team.status("bob", "POST", "/vcs/apply", &json!({"patch": text}))
    };
    for name in ["opencode.json", ".opencode/plugin/p.js", ".vscode/tasks.json", ".envrc"] {
        assert_eq!(patch(name)?, 403, "{name}");
        assert!(!team.stage.project.path(name).exists(), "{name}");
    }
    assert_eq!(patch("notes.txt")?, 200);
    assert_eq!(fs::read_to_string(team.stage.project.path("notes.txt"))?, "x\n");
    Ok(())
}

#[test]
fn a_patch_of_a_user_neither_copies_what_he_may_not_read_nor_changes_what_is_denied() -> Result<()> {
    let stage = Stage::git(Script::new().text("done"))?;
    for (name, text) in
        [("private/key", "zebra\n"), ("locked/l", "kept\n"), (".env", "A=zebra\n"), (".envrc", "kept\n")]
    {
        stage.project.write(name, text)?;
    }
    let team = Team::on(stage, "none", |config| {
        config["permission"] =
            json!({"read": {"*": "allow", "private/*": "deny"}, "edit": {"*": "allow", "locked/*": "deny"}});
    })?;
    let moved = |how: &str, from: &str, to: &str| {
        format!("diff --git a/{from} b/{to}\nsimilarity index 100%\n{how} from {from}\n{how} to {to}\n")
    };
    let new = |name: &str, mode: &str, text: &str| {
        format!(
            "diff --git a/{name} b/{name}\nnew file mode {mode}\nindex 0000000..1\n--- /dev/null\n+++ b/{name}\n@@ -0,0 +1 @@\n+{text}\n\\ No newline at end of file\n"
        )
    };
    let changed = |name: &str, old: &str| {
        format!("diff --git a/{name} b/{name}\n--- a/{name}\n+++ b/{name}\n@@ -1 +1 @@\n-{old}\n+changed\n")
    };
    for patch in [
        moved("copy", "private/key", "open.txt"),
        moved("rename", "private/key", "open.txt"),
        moved("rename", ".envrc", "open.txt"),
        moved("copy", ".env", "open.txt"),
        moved("copy", ".git/config", "open.txt"),
        new("open.txt", "120000", "private/key"),
        new("AGENTS.md", "120000", ".env"),
        changed("private/key", "zebra"),
        changed("locked/l", "kept"),
        new("locked/n", "100644", "x"),
        "diff --git a/.vscode/tasks.json b/.vscode/tasks.json\nnew file mode 100644\nindex 0000000..e69de29\n".to_owned(),
        "diff --git a/.envrc b/.envrc\nold mode 100644\nnew mode 100755\n".to_owned(),
        "no patch at all\n".to_owned(),
    ] {
        let (status, text) = team.call("bob", "POST", "/vcs/apply", &json!({"patch": patch}))?;
        assert_eq!(status, 403, "{patch}: {text}");
        assert!(!text.contains("zebra"), "{text}");
    }
    let project = &team.stage.project;
    assert!(
        !project.path("open.txt").exists()
            && !project.path("AGENTS.md").exists()
            && !project.path("locked/n").exists()
    );
    for (name, text) in [("private/key", "zebra\n"), ("locked/l", "kept\n"), (".envrc", "kept\n")] {
        assert_eq!(fs::read_to_string(project.path(name))?, text, "{name}");
    }
    let free = json!({"patch": new("free.txt", "100755", "copy from a\n+rename to b")});
    let free = json!({"patch": free["patch"].as_str().unwrap_or_default().replace("@@ -0,0 +1 @@", "@@ -0,0 +1,2 @@")});
    assert_eq!(team.status("bob", "POST", "/vcs/apply", &free)?, 200);
    assert_eq!(
        team.status("root", "POST", "/vcs/apply", &json!({"patch": moved("copy", ".envrc", "copied")}))?,
        200
    );
    Ok(())
}

#[test]
fn a_member_does_not_grant_a_file_that_settings_of_git_name() -> Result<()> {
    let write = |path: &str| Turn::steps().tool("write", json!({"filePath": path, "content": "x"}));
    let stage = Stage::git(Script::new().turn(write("tools/watch.sh")).text("a"))?;
    let config = stage.project.path(".git/config");
    let settings = fs::read_to_string(&config)? + "[core]\n\tfsmonitor = tools/watch.sh\n";
    fs::write(config, settings)?;
    let team = Team::on(stage, "none", |_| {})?;
    let session = team.session("bob", "t")?;
    assert_eq!(team.start("bob", &session, "go")?, 204);
    let request = team.request("bob", "edit")?;
    let id = id(&request)?;
    assert!(request["metadata"]["controlFile"].is_string(), "the request does not say why: {request}");
    for (path, body) in replies(&session, &id, "once").into_iter().chain(replies(&session, &id, "always")) {
        let status = team.status("bob", "POST", &path, &body)?;
        assert!(status >= 400, "{path}: {status}");
    }
    assert!(!team.stage.project.path("tools/watch.sh").exists());
    assert_eq!(
        team.status("root", "POST", &format!("/permission/{id}/reply"), &json!({"reply": "once"}))?,
        200
    );
    wait_until("the write", || team.stage.project.path("tools/watch.sh").exists())?;
    Ok(())
}

#[test]
fn users_see_projects_in_their_directories_only() -> Result<()> {
    let team = Team::new(Script::new().text("a"))?;
    let other = tempfile::tempdir()?;
    let other = other.path().canonicalize()?;
    let made = std::process::Command::new("git").args(["init", "-q"]).current_dir(&other).status()?;
    assert!(made.success());
    fs::write(other.join("f"), "x")?;
    for args in [&["add", "-A"][..], &["-c", "user.name=n", "-c", "user.email=e", "commit", "-qm", "s"]] {
        assert!(std::process::Command::new("git").args(args).current_dir(&other).status()?.success());
    }
    let path = format!("/session?directory={}", other.display());
    let session = team.json("root", "POST", &path, &json!({}))?;
    let project = session["projectID"].as_str().context("no project")?.to_owned();
    let all = team.json("root", "GET", "/project", &Value::Null)?.to_string();
    assert!(all.contains(&other.display().to_string()), "{all}");
    for user in ["bob", "rita"] {
        let seen = team.json(user, "GET", "/project", &Value::Null)?.to_string();
        assert!(!seen.contains(&other.display().to_string()), "{user}: {seen}");
        let status = team.status(user, "GET", &format!("/project/{project}/directories"), &Value::Null)?;
        assert!(status >= 400, "{user}: {status}");
    }
    Ok(())
}
