//! A server with several users: access to sessions, roles, and quotas.

mod attachments;
mod decisions;
mod limits;
mod oidc;
mod recorded;
mod spelled;
mod together;
mod walk;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;

use anyhow::{Context as _, Result, ensure};
use base64::Engine as _;
use codewright_testkit::{Project, Running, Script};
use serde_json::{Value, json};

use crate::support::{Call, DEADLINE, Stage, program, serve, wait_until};

/// The text of everything that belongs to alice. No other user may receive it.
pub(super) const SECRET: &str = "zebra";

/// The users of the tests, with their roles and teams.
const USERS: [(&str, &str, &[&str]); 4] = [
    ("root", "admin", &[]),
    ("alice", "member", &["core"]),
    ("bob", "member", &["guests"]),
    ("rita", "reader", &["core"]),
];

/// The token of a user, long enough to count as random.
pub(super) fn token(user: &str) -> String {
    format!("cw_{user}_{}", "0123456789".repeat(4))
}

fn hash(token: &str) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, token.as_bytes());
    let digits: String = digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{digits}")
}

/// A server with the users of the tests.
pub(super) struct Team {
    pub(super) stage: Stage,
    pub(super) url: String,
    _server: Running,
}

impl Team {
    pub(super) fn new(script: Script) -> Result<Self> {
        Self::with(script, |_| {})
    }

    /// A team whose configuration is changed.
    pub(super) fn with(script: Script, change: impl FnOnce(&mut Value)) -> Result<Self> {
        Self::on(Stage::plain(script)?, "none", change)
    }

    /// A team in a project, whose configuration is trusted as `trust` says.
    pub(super) fn on(stage: Stage, trust: &str, change: impl FnOnce(&mut Value)) -> Result<Self> {
        Self::configure(&stage, change)?;
        let (server, url) = serve(program(&stage.project, ["serve"]).env("CODEWRIGHT_TRUST", trust))?;
        Ok(Self { stage, url, _server: server })
    }

    /// Sends a prompt without waiting for its end.
    pub(super) fn start(&self, user: &str, session: &str, text: &str) -> Result<u16> {
        self.status(user, "POST", &format!("/session/{session}/prompt_async"), &crate::support::prompt(text))
    }

    /// Waits for a permission request of a kind that a user sees.
    pub(super) fn request(&self, user: &str, permission: &str) -> Result<Value> {
        let find = || {
            let pending = self.json(user, "GET", "/permission", &Value::Null).unwrap_or_default();
            let mut pending = pending.as_array().cloned().unwrap_or_default().into_iter();
            pending.find(|request| request["permission"] == permission)
        };
        wait_until(&format!("a request for {permission}"), || find().is_some())?;
        find().context("the request is gone")
    }

    /// Everything that the model has received.
    pub(super) fn received(&self) -> String {
        self.stage.server.main_requests().iter().map(|request| request.body.to_string()).collect()
    }

    pub(super) fn configure(stage: &Stage, change: impl FnOnce(&mut Value)) -> Result<()> {
        let mut config = Project::config(&stage.server.url());
        let user = |(name, role, teams): &(&str, &str, &[&str])| {
            ((*name).to_owned(), json!({"token": hash(&token(name)), "role": role, "teams": teams}))
        };
        let users: serde_json::Map<_, _> = USERS.iter().map(user).collect();
        config["auth"] = json!({"users": users, "directories": [stage.project.directory()]});
        change(&mut config);
        stage.project.write_config(&config)
    }

    /// Sends a request with any token. Returns the status and everything after it.
    pub(super) fn with_token(&self, token: &str, path: &str) -> Result<(u16, String)> {
        let header = format!("Bearer {token}");
        let headers = [("Authorization", header.as_str())];
        Call { url: &self.url, method: "GET", path, headers: &headers, body: "" }.send()
    }

    /// Sends a request of a user. Returns the status and everything after it.
    pub(super) fn call(&self, user: &str, method: &str, path: &str, body: &Value) -> Result<(u16, String)> {
        let header = format!("Bearer {}", token(user));
        let headers = [("Authorization", header.as_str())];
        let body = if body.is_null() { String::new() } else { body.to_string() };
        Call { url: &self.url, method, path, headers: &headers, body: &body }.send()
    }

    /// Sends a request that must succeed. Returns the JSON.
    pub(super) fn json(&self, user: &str, method: &str, path: &str, body: &Value) -> Result<Value> {
        let (status, text) = self.call(user, method, path, body)?;
        ensure!((200..300).contains(&status), "{user} {method} {path}: {text}");
        let (_, body) = text.split_once("\r\n\r\n").context("no body")?;
        Ok(if body.trim().is_empty() { Value::Null } else { serde_json::from_str(body.trim())? })
    }

    pub(super) fn status(&self, user: &str, method: &str, path: &str, body: &Value) -> Result<u16> {
        Ok(self.call(user, method, path, body)?.0)
    }

    /// A new session of a user.
    pub(super) fn session(&self, user: &str, title: &str) -> Result<String> {
        let session = self.json(user, "POST", "/session", &json!({"title": title}))?;
        Ok(session["id"].as_str().context("no id")?.to_owned())
    }

    pub(super) fn prompt(&self, user: &str, session: &str, text: &str) -> Result<u16> {
        self.status(user, "POST", &format!("/session/{session}/message"), &crate::support::prompt(text))
    }

    pub(super) fn share(&self, user: &str, session: &str, shared: &Value) -> Result<u16> {
        self.status(user, "PUT", &format!("/session/{session}/access"), &json!({"shared": shared}))
    }

    /// Opens a stream of events for a user.
    pub(super) fn events(&self, user: &str, path: &str) -> Result<BufReader<TcpStream>> {
        let address = self.url.strip_prefix("http://").context("no address")?;
        let mut stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(DEADLINE))?;
        let token = token(user);
        write!(stream, "GET {path} HTTP/1.0\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n\r\n")?;
        let mut reader = BufReader::new(stream);
        read_until(&mut reader, "server.connected")?;
        Ok(reader)
    }
}

/// Reads lines until one contains a text. Returns all of them.
fn read_until(reader: &mut BufReader<TcpStream>, text: &str) -> Result<String> {
    let mut all = String::new();
    loop {
        let mut line = String::new();
        ensure!(reader.read_line(&mut line)? > 0, "the stream ended before `{text}`: {all}");
        all.push_str(&line);
        if line.contains(text) {
            return Ok(all);
        }
    }
}

#[test]
fn only_administrators_see_the_options_of_the_configuration() -> Result<()> {
    const HUSH: &str = "hush-4711-hush";
    let stage = Stage::plain(Script::new())?;
    std::fs::write(stage.project.home().join("hush"), HUSH)?;
    let team = Team::on(stage, "none", |config| {
        config["provider"]["odd"] = json!({"npm": "@ai-sdk/openai-compatible", "models": {"q": {}},
            "options": {"baseURL": format!("http://127.0.0.1:9/v1?k={HUSH}"), "custom": HUSH}});
        config["lsp"]["l"] =
            json!({"command": ["false", HUSH], "extensions": [".zz"], "initialization": {"l": HUSH}});
        config["formatter"]["f"] = json!({"command": ["true", HUSH], "extensions": [".zz"]});
        config["agent"]["a"] = json!({"prompt": "Say {file:~/hush}", "options": {"x": HUSH}});
        config["command"]["c"] = json!({"template": "Say {file:~/hush}"});
    })?;
    for path in ["/config", "/global/config", "/agent", "/api/agent", "/command", "/api/command"] {
        for user in ["rita", "bob"] {
            let (status, text) = team.call(user, "GET", path, &Value::Null)?;
            assert_eq!(status, 200, "{path}: {text}");
            assert!(!text.contains(HUSH), "{user} {path}: {text}");
        }
    }
    let agents = team.json("root", "GET", "/agent", &Value::Null)?.to_string();
    assert!(agents.contains(&format!("Say {HUSH}")), "{agents}");
    assert_eq!(team.json("rita", "GET", "/config", &Value::Null)?["model"], "mock/plain-model");
    Ok(())
}

#[test]
fn every_request_needs_a_token_of_a_user() -> Result<()> {
    let team = Team::new(Script::new())?;
    let status = |headers: &[(&str, &str)]| -> Result<u16> {
        Ok(Call { url: &team.url, method: "GET", path: "/session", headers, body: "" }.send()?.0)
    };
    let basic = |text: String| format!("Basic {}", base64::engine::general_purpose::STANDARD.encode(text));
    let bearer = format!("Bearer {}", token("bob"));
    let own = basic(format!("bob:{}", token("bob")));
    assert_eq!(status(&[])?, 401);
    assert_eq!(status(&[("Authorization", &bearer)])?, 200);
    assert_eq!(status(&[("Authorization", &own)])?, 200);
    let other = basic(format!("alice:{}", token("bob")));
    assert_eq!(status(&[("Authorization", &other)])?, 401, "a token counts only for its user");
    let unknown = format!("Bearer {}x", token("bob"));
    assert_eq!(status(&[("Authorization", &unknown)])?, 401);
    // A hash of the configuration is not a token.
    let hash = format!("Bearer {}", hash(&token("bob")));
    assert_eq!(status(&[("Authorization", &hash)])?, 401);
    // What a proxy may let through says nothing about the sender.
    for name in ["X-Forwarded-User", "X-Remote-User", "X-Auth-Request-User", "X-Forwarded-For", "Cookie"] {
        assert_eq!(status(&[(name, "root")])?, 401, "{name}");
    }
    assert_eq!(status(&[("Authorization", &bearer), ("Authorization", &own)])?, 401, "two headers");
    let wrong_and_query = Call {
        url: &team.url,
        method: "GET",
        path: &format!("/session?auth_token={}", own.trim_start_matches("Basic ").replace('+', "%2B")),
        headers: &[("Authorization", "Bearer no")],
        body: "",
    };
    assert_eq!(wrong_and_query.send()?.0, 401, "the header decides");
    assert_eq!(Call { headers: &[], ..wrong_and_query }.send()?.0, 200);
    let me = team.json("rita", "GET", "/users/me", &Value::Null)?;
    assert_eq!(me, json!({"name": "rita", "role": "reader", "teams": ["core"]}));
    Ok(())
}

#[test]
fn a_foreign_session_is_like_one_that_does_not_exist() -> Result<()> {
    let team = Team::new(Script::new())?;
    let session = team.session("alice", SECRET)?;
    let unknown = format!("{}{}", &session[..session.len() - 3], "zzz");
    for path in ["/session/ID", "/session/ID/message", "/api/session/ID", "/api/session/ID/history"] {
        let [foreign, missing] = [&session, &unknown].map(|id| {
            let (status, text) = team.call("bob", "GET", &path.replace("ID", id), &Value::Null).unwrap();
            let body = text.split_once("\r\n\r\n").unwrap().1.replace(id.as_str(), "ID");
            (status, body)
        });
        assert_eq!(foreign, missing, "{path}");
        assert_eq!(foreign.0, 404, "{path}");
    }
    assert_eq!(team.status("root", "GET", &format!("/session/{session}"), &Value::Null)?, 200);
    // A session cannot be taken by its id, by naming it as a parent, or by forking it.
    let body = json!({"id": session});
    assert_eq!(team.status("bob", "POST", "/api/session", &body)?, 404);
    assert_eq!(team.status("bob", "POST", "/session", &json!({"parentID": session}))?, 404);
    assert_eq!(team.status("bob", "POST", &format!("/session/{session}/fork"), &json!({}))?, 404);
    // A client cannot say whose session it is.
    let forged = json!({"title": "t", "access": {"owner": "alice"}});
    let own = team.json("bob", "POST", "/session", &forged)?;
    assert_eq!(own["access"], json!({"owner": "bob", "team": "guests"}));
    assert_eq!(team.status("rita", "POST", "/session", &json!({}))?, 403, "a reader creates no sessions");
    Ok(())
}

#[test]
fn a_share_gives_what_it_says_to_its_team_and_can_be_withdrawn() -> Result<()> {
    let team = Team::new(Script::new().text("one").text("two"))?;
    let session = team.session("alice", SECRET)?;
    let child = team.json("alice", "POST", "/session", &json!({"parentID": session, "title": SECRET}))?;
    let child = child["id"].as_str().context("no id")?.to_owned();
    let path = format!("/session/{session}");
    let get = |user: &str, path: &str| team.status(user, "GET", path, &Value::Null);
    assert_eq!(get("bob", &path)?, 404);
    assert_eq!(get("bob", &format!("/session/{child}"))?, 404, "a subagent's session");
    assert_eq!(team.share("bob", &session, &json!({"guests": "full"}))?, 404);
    assert_eq!(team.share("alice", &session, &json!({"guests": "read"}))?, 200);
    assert_eq!(get("bob", &path)?, 200);
    assert_eq!(get("bob", &format!("/session/{child}"))?, 200);
    assert_eq!(get("rita", &path)?, 404, "another team");
    assert_eq!(team.prompt("bob", &session, "hi")?, 403);
    assert_eq!(team.status("bob", "DELETE", &path, &Value::Null)?, 403);
    let listed = team.json("bob", "GET", "/session", &Value::Null)?;
    assert!(listed.to_string().contains(&session), "{listed}");
    assert_eq!(team.share("alice", &session, &json!({"guests": "full", "core": "full"}))?, 200);
    assert_eq!(team.prompt("bob", &session, "hi")?, 200);
    assert_eq!(team.share("bob", &session, &json!({"guests": "full"}))?, 403, "only the owner shares");
    assert_eq!(team.prompt("rita", &session, "hi")?, 403, "a reader only reads");
    assert_eq!(team.share("alice", &child, &json!({"guests": "read"}))?, 400, "the parent is shared");
    // A fork belongs to the user who makes it.
    let fork = team.json("bob", "POST", &format!("{path}/fork"), &json!({}))?;
    assert_eq!(fork["access"], json!({"owner": "bob", "team": "guests"}));
    assert_eq!(team.share("alice", &session, &json!({}))?, 200);
    assert_eq!(get("bob", &path)?, 404);
    assert_eq!(get("bob", &format!("/session/{child}"))?, 404);
    Ok(())
}

#[test]
fn streams_contain_only_what_the_user_may_see_even_after_a_share_has_ended() -> Result<()> {
    let team = Team::new(Script::new().text("zebra one").text("zebra two").text("zebra three"))?;
    let session = team.session("alice", "shared with guests")?;
    let paths = ["/event", "/global/event", "/global/sync-event", "/api/event"];
    let mut streams = paths.map(|path| team.events("bob", path).unwrap());
    assert_eq!(team.prompt("alice", &session, "zebra")?, 200);
    let marker = team.session("bob", "first marker")?;
    for (path, stream) in paths.iter().zip(&mut streams) {
        let seen = read_until(stream, &marker)?;
        assert!(!seen.contains(SECRET) && !seen.contains(&session), "{path}: {seen}");
    }
    assert_eq!(team.share("alice", &session, &json!({"guests": "read"}))?, 200);
    assert_eq!(team.prompt("alice", &session, "zebra")?, 200);
    let marker = team.session("bob", "second marker")?;
    for (path, stream) in paths.iter().zip(&mut streams) {
        assert!(read_until(stream, &marker)?.contains("zebra two"), "{path}");
    }
    // The stream of the session itself ends, the others go on without it.
    let mut own = team.events("bob", &format!("/event?sessionID={session}"))?;
    assert_eq!(team.share("alice", &session, &json!({}))?, 200);
    assert_eq!(team.prompt("alice", &session, "zebra")?, 200);
    let marker = team.session("bob", "third marker")?;
    for (path, stream) in paths.iter().zip(&mut streams) {
        let seen = read_until(stream, &marker)?;
        assert!(!seen.contains(SECRET), "{path}: {seen}");
    }
    own.get_ref().set_read_timeout(Some(std::time::Duration::from_millis(300)))?;
    let mut rest = Vec::new();
    // Heartbeats may follow; a timeout ends the reading.
    drop(own.read_to_end(&mut rest));
    assert!(!String::from_utf8_lossy(&rest).contains(SECRET));
    // The log is replayed by what holds now.
    let replay = team.call_stream("bob", "/event", &marker)?;
    assert!(!replay.contains(SECRET), "{replay}");
    Ok(())
}

impl Team {
    /// Reads the events after the start of the log until one contains a text.
    fn call_stream(&self, user: &str, path: &str, text: &str) -> Result<String> {
        let address = self.url.strip_prefix("http://").context("no address")?;
        let mut stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(DEADLINE))?;
        write!(
            stream,
            "GET {path} HTTP/1.0\r\nHost: {address}\r\nAuthorization: Bearer {}\r\nLast-Event-ID: 0\r\n\r\n",
            token(user)
        )?;
        read_until(&mut BufReader::new(stream), text)
    }
}

#[test]
fn users_work_only_in_their_directories() -> Result<()> {
    let team = Team::new(Script::new())?;
    let get = |user: &str, path: &str| team.status(user, "GET", path, &Value::Null);
    let home = team.stage.project.home().display().to_string();
    std::os::unix::fs::symlink(&home, team.stage.project.path("link"))?;
    let directory = team.stage.project.directory().display().to_string();
    for elsewhere in ["/etc", &home, &format!("{directory}/.."), &format!("{directory}/link"), "/nowhere"] {
        for path in ["/file?path=.&directory=", "/session?directory=", "/api/fs/list?location[directory]="] {
            assert_eq!(get("bob", &format!("{path}{elsewhere}"))?, 403, "{path}{elsewhere}");
        }
    }
    assert_eq!(get("bob", &format!("/file?path=.&directory={directory}"))?, 200);
    assert_eq!(get("root", "/file?path=.&directory=/etc")?, 200);
    let header = format!("Bearer {}", token("bob"));
    let headers = [("Authorization", header.as_str()), ("x-opencode-directory", "/etc")];
    let call = Call { url: &team.url, method: "GET", path: "/file?path=.", headers: &headers, body: "" };
    assert_eq!(call.send()?.0, 403);
    let body = json!({"location": {"directory": "/etc"}});
    assert_eq!(team.status("bob", "POST", "/api/session", &body)?, 403);
    // The database of all sessions cannot be attached to a prompt, or permitted.
    let session = team.session("bob", "mine")?;
    let database = format!("file://{home}/.local/share/codewright/codewright.db");
    for url in [database.as_str(), "file:///etc/passwd", &format!("FILE:{directory}/link/x")] {
        let part = json!({"type": "file", "mime": "application/octet-stream", "url": url});
        let body = json!({"parts": [{"type": "text", "text": "t"}, part]});
        assert_eq!(team.status("bob", "POST", &format!("/session/{session}/message"), &body)?, 403, "{url}");
        let body = json!({"prompt": {"text": "t", "files": [{"uri": url}]}});
        assert_eq!(team.status("bob", "POST", &format!("/api/session/{session}/prompt"), &body)?, 403);
    }
    for name in ["external_directory", "*", "ext*"] {
        let rule = json!([{"permission": name, "pattern": "*", "action": "allow"}]);
        assert_eq!(team.status("bob", "POST", "/session", &json!({"permission": rule}))?, 403, "{name}");
        let path = format!("/session/{session}");
        assert_eq!(team.status("bob", "PATCH", &path, &json!({"permission": rule}))?, 403, "{name}");
        let body = json!({"parts": [{"type": "text", "text": "t"}], "tools": {name: true}});
        assert_eq!(team.status("bob", "POST", &format!("{path}/message"), &body)?, 403, "{name}");
    }
    // Terminals and commands without a sandbox are for administrators.
    assert_eq!(team.status("bob", "POST", "/pty", &json!({"command": "sh"}))?, 403);
    let shell = json!({"agent": "build", "command": "id"});
    assert_eq!(team.status("bob", "POST", &format!("/session/{session}/shell"), &shell)?, 403);
    Ok(())
}

#[test]
fn a_permission_is_granted_only_by_those_who_may_work_in_its_session() -> Result<()> {
    let script =
        Script::new().tool("bash", json!({"command": "echo zebra", "description": "d"})).text("done");
    let team = Team::with(script, |config| config["permission"] = json!({"bash": "ask"}))?;
    let session = team.session("alice", SECRET)?;
    let path = format!("/session/{session}/prompt_async");
    assert_eq!(team.status("alice", "POST", &path, &crate::support::prompt("zebra"))?, 204);
    let pending = || team.json("alice", "GET", "/permission", &Value::Null).unwrap();
    wait_until("the request", || pending().as_array().is_some_and(|all| !all.is_empty()))?;
    let request = pending()[0]["id"].as_str().context("no id")?.to_owned();
    assert_eq!(team.json("bob", "GET", "/permission", &Value::Null)?, json!([]));
    let reply = json!({"reply": "once"});
    let own = team.session("bob", "mine")?;
    for (path, body) in [
        (format!("/permission/{request}/reply"), reply.clone()),
        (format!("/session/{own}/permissions/{request}"), json!({"response": "once"})),
        (format!("/api/session/{own}/permission/{request}/reply"), reply.clone()),
        ("/question".to_owned(), json!({"id": request, "reply": "once"})),
    ] {
        assert_eq!(team.status("bob", "POST", &path, &body)?, 404, "{path}");
    }
    assert_eq!(pending()[0]["id"], request.as_str());
    assert_eq!(team.status("alice", "POST", &format!("/permission/{request}/reply"), &reply)?, 200);
    wait_until("the end", || team.stage.server.main_requests().len() == 2)?;
    // The audit log says who allowed it, and is for administrators.
    assert_eq!(team.status("alice", "GET", "/users/audit", &Value::Null)?, 403);
    let find = |action: &str, user: &str| {
        let entries = team.json("root", "GET", "/users/audit", &Value::Null).unwrap();
        let entries = entries.as_array().cloned().unwrap_or_default();
        entries.into_iter().find(|entry| entry["action"] == action && entry["user"] == user)
    };
    let entry = find("permission.reply", "alice").context("no entry")?;
    assert_eq!((&entry["target"], &entry["detail"]), (&json!(request), &json!("once")), "{entry}");
    assert_eq!(team.status("nobody", "GET", "/session", &Value::Null)?, 401);
    assert!(find("sign_in.refused", "").is_some());
    let printed = program(&team.stage.project, ["users", "audit"]).finish()?.success()?;
    crate::support::check_has(&printed.stdout, &["alice permission.reply", "once", "sign_in.refused"]);
    Ok(())
}

#[test]
fn a_repository_cannot_bring_users_and_a_server_without_them_says_nothing_about_them() -> Result<()> {
    let stage = Stage::git(Script::new())?;
    let auth = json!({"users": {"mallory": {"token": hash(&token("mallory")), "role": "admin"}}});
    stage.project.write("opencode.json", json!({"auth": auth}).to_string())?;
    let (_server, url) = stage.serve()?;
    let (status, session) = crate::support::post(&url, "/session", &json!({}))?;
    assert_eq!(status, 200);
    assert!(session.get("access").is_none(), "{session}");
    let call = Call { url: &url, method: "GET", path: "/users/me", headers: &[], body: "" };
    assert_eq!(call.send()?.0, 404);
    Ok(())
}

#[test]
fn a_wrong_configuration_of_users_is_reported_at_the_start() -> Result<()> {
    let stage = Stage::plain(Script::new())?;
    let fails = |change: fn(&mut Value), expected: &str| -> Result<()> {
        Team::configure(&stage, change)?;
        let done = program(&stage.project, ["serve"]).finish()?;
        crate::support::check_code(&done, 1);
        crate::support::check_has(&done.stderr, &[expected]);
        Ok(())
    };
    fails(|config| config["auth"]["users"] = json!({}), "`auth.users` needs")?;
    fails(|config| config["auth"]["users"]["bob"]["token"] = json!("secret"), "codewright users token")?;
    fails(|config| config["auth"]["directories"] = json!(["/"]), "keeps its own files in")?;
    Team::configure(&stage, |_| {})?;
    let done = program(&stage.project, ["serve"]).env("OPENCODE_SERVER_PASSWORD", "p").finish()?;
    crate::support::check_has(&done.stderr, &["OPENCODE_SERVER_PASSWORD must not be set"]);
    let made = program(&stage.project, ["users", "token"]).finish()?.success()?;
    let (token, rest) = made.stdout.split_once('\n').context("one line")?;
    assert_eq!(rest.trim(), hash(token));
    Ok(())
}
