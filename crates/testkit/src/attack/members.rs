//! A member of a team, who must not get the rights of an administrator or of another user.

use anyhow::Result;
use serde_json::{Value, json};

use super::case::{Case, attack};
use super::people::{Team, with_team, with_team_of};
use super::scene::{SECRET, Scene};
use super::{Kind, Trust};

/// Calls of the model that need the permission of an administrator: the tool, its input, and the path that must not appear.
/// Other effects are general ones, such as a secret that reaches the model.
const WIDENINGS: &[(&str, &str, &str, Option<&str>)] = &[
    ("sandbox-off", "bash", r#"{"command": "sh made.sh", "sandbox": {"mode": "off"}}"#, Some("@O/made")),
    ("sandbox-write", "bash", r#"{"command": "sh made.sh", "sandbox": {"write": ["@O"]}}"#, Some("@O/made")),
    (
        "sandbox-write-home",
        "bash",
        r#"{"command": "sh home.sh", "sandbox": {"write": ["@H/.config"]}}"#,
        Some("@H/.config/made"),
    ),
    ("sandbox-read", "bash", r#"{"command": "cat @H/.netrc", "sandbox": {"read": ["@H/.netrc"]}}"#, None),
    ("open-network", "bash", r#"{"command": "curl -s -m 5 @L/x", "sandbox": {"network": "open"}}"#, None),
    ("write-outside", "write", r#"{"filePath": "@O/made", "content": "x"}"#, Some("@O/made")),
    (
        "write-outside-climbing",
        "write",
        r#"{"filePath": "../outside/made", "content": "x"}"#,
        Some("@O/made"),
    ),
    ("read-outside", "read", r#"{"filePath": "@O/secret.txt"}"#, None),
    ("read-a-key", "read", r#"{"filePath": "@H/.ssh/id_rsa"}"#, None),
    ("grep-outside", "grep", r#"{"pattern": "hush", "path": "@O"}"#, None),
    ("command-outside", "bash", r#"{"command": "cat ../outside/secret.txt"}"#, None),
];

/// Ways to reply to a permission request: the path with the session `S` and the request `R`, and the body.
const REPLIES: &[(&str, &str, &str)] = &[
    ("once", "/permission/R/reply", r#"{"reply": "once"}"#),
    ("always", "/permission/R/reply", r#"{"reply": "always"}"#),
    ("older", "/session/S/permissions/R", r#"{"response": "always"}"#),
    ("v2", "/api/session/S/permission/R/reply", r#"{"reply": "once"}"#),
    ("question", "/question", r#"{"id": "R", "reply": "once"}"#),
];

/// Rules of a session that would loosen a rule of the operator.
const RULES: &[(&str, &str)] = &[
    ("bash", r#"[{"permission": "bash", "pattern": "*", "action": "allow"}]"#),
    ("named", r#"[{"permission": "bash", "pattern": "touch made.txt", "action": "allow"}]"#),
    ("wildcard-name", r#"[{"permission": "ba?h", "pattern": "*", "action": "allow"}]"#),
    (
        "many",
        r#"[{"permission": "bash", "pattern": "*", "action": "deny"}, {"permission": "bash", "pattern": "t*", "action": "allow"}]"#,
    ),
    ("edit", r#"[{"permission": "edit", "pattern": "*", "action": "allow"}]"#),
    ("edit-named", r#"[{"permission": "edit", "pattern": "locked.txt", "action": "allow"}]"#),
    ("read", r#"[{"permission": "read", "pattern": "*", "action": "allow"}]"#),
    ("read-relative", r#"[{"permission": "read", "pattern": "private/../private/*", "action": "allow"}]"#),
];

/// Arguments of a command that name a file that the sender may not read.
const ARGUMENTS: &[(&str, &str)] = &[
    ("absolute", "@H/.netrc"),
    ("outside", "@O/secret.txt"),
    ("home", "~/.netrc"),
    ("climbing", "../outside/secret.txt"),
    ("climbing-from-below", "sub/../../outside/secret.txt"),
    ("link", "link/secret.txt"),
    ("doubled-slash", "//@H/.netrc"),
    ("quoted", "\"@H/.netrc\""),
    ("second", "x @H/.netrc"),
];

/// Command templates that use their arguments.
const TEMPLATES: &[(&str, &str)] = &[
    ("attached", "look at @$1 and @$2"),
    ("attached-all", "look at @$ARGUMENTS"),
    ("attached-after-a-dot", "look at @./$1 and @./$2"),
];

pub(super) fn cases() -> Vec<Case> {
    [replies(), shown(), rules(), arguments(), trust(), routes(), others(), services()]
        .into_iter()
        .flatten()
        .collect()
}

fn member(name: &str) -> Case {
    attack(Kind::Principals, format!("member/{name}"))
        .file("made.sh", "echo x > @O/made\n")
        .file("home.sh", "echo x > @H/.config/made\n")
}

fn replies() -> Vec<Case> {
    let mut cases = Vec::new();
    for (number, (name, tool, input, made)) in WIDENINGS.iter().enumerate() {
        for (way, path, body) in REPLIES {
            // Every way with the first call, and two of them with each other.
            if number > 0 && *way != "once" && *way != REPLIES[1 + number % (REPLIES.len() - 1)].0 {
                continue;
            }
            let case = member(&format!("reply/{name}/{way}")).no_contact().play(move |scene| {
                with_team(scene, |team| {
                    let input: Value = serde_json::from_str(&scene.fill(input))?;
                    scene.script_calls(vec![vec![((*tool).to_owned(), input)]]);
                    let session = team.session("bob")?;
                    team.prompt_async("bob", &session, 0)?;
                    replied(team, &session, |request| {
                        (fill(path, &session, request), fill(body, &session, request))
                    })
                })
            });
            let case = if let Some(made) = made { case.absent(*made) } else { case };
            cases.push(if number == 0 && *way == "once" { case.short() } else { case });
        }
    }
    cases
}

/// What a reader and a member see of the operator's configuration.
fn shown() -> Vec<Case> {
    const DOCUMENT: &str = r#"{
        "provider": {"corp": {"options": {"baseURL": "@M/v1?k={env:SECRET_VAR}", "custom": "{env:SECRET_VAR}", "note": "x {file:@O/secret.txt}"}, "models": {"m": {}}}},
        "lsp": {"x": {"command": ["false", "{env:SECRET_VAR}"], "extensions": [".zz"], "initialization": {"licence": "{env:SECRET_VAR}"}}},
        "formatter": {"x": {"command": ["true", "{env:SECRET_VAR}"], "extensions": [".zz"]}},
        "agent": {"x": {"prompt": "x {file:@O/secret.txt} {env:SECRET_VAR}", "description": "{env:SECRET_VAR}"}},
        "command": {"x": {"template": "x {file:@O/secret.txt}"}}
    }"#;
    const PATHS: [&str; 7] = [
        "/config",
        "/global/config",
        "/agent",
        "/api/agent",
        "/command",
        "/api/command",
        "/config/providers",
    ];
    let case = member("configuration/inserted-secrets").user(DOCUMENT).no_contact().play(|scene| {
        with_team(scene, |team| {
            for (user, path) in ["rita", "bob"].into_iter().flat_map(|user| PATHS.map(|path| (user, path))) {
                let (_, answer) = team.send(user, "GET", path, "")?;
                anyhow::ensure!(!answer.contains(SECRET), "{user} reads a secret in {path}");
            }
            Ok(())
        })
    });
    vec![case.short()]
}

fn fill(text: &str, session: &str, request: &str) -> String {
    text.replace("/S/", &format!("/{session}/"))
        .replace("/R", &format!("/{request}"))
        .replace("\"R\"", &format!("\"{request}\""))
}

/// Replies to every request of a session as bob, until the session is idle.
fn replied(team: &Team<'_>, session: &str, reply: impl Fn(&str) -> (String, String)) -> Result<()> {
    for _ in 0..3 {
        let mut request = Value::Null;
        team.wait(|| {
            let (_, all) = team.json("root", "GET", "/permission", &Value::Null)?;
            request = all.as_array().and_then(|all| all.first().cloned()).unwrap_or_default();
            let (_, status) = team.json("root", "GET", "/session/status", &Value::Null)?;
            Ok(!request.is_null() || status[session].is_null() || status[session]["type"] == "idle")
        })?;
        let Some(id) = request["id"].as_str() else { return Ok(()) };
        let (path, body) = reply(id);
        team.send("bob", "POST", &path, &body)?;
        // A request that still waits was not answered, and needs no other try.
        let (_, all) = team.json("root", "GET", "/permission", &Value::Null)?;
        if all.to_string().contains(id) {
            return Ok(());
        }
    }
    Ok(())
}

fn rules() -> Vec<Case> {
    const DENIED: &str = r#"{"permission": {"bash": {"touch *": "deny"}, "edit": {"locked*": "deny"}, "read": {"private/*": "deny"}}}"#;
    let ways = ["create", "update", "tools", "added", "child", "fork"];
    let mut cases = Vec::new();
    for (number, (name, rules)) in RULES.iter().enumerate() {
        for way in ways {
            if number > 0 && way != "create" && way != ways[1 + number % (ways.len() - 1)] {
                continue;
            }
            cases.push(
                member(&format!("rule/{name}/{way}"))
                    .user(DENIED)
                    .file("locked.txt", "kept\n")
                    .file("private/a.txt", "the word is @S\n")
                    .unchanged("locked.txt")
                    .absent("made.txt")
                    .play(move |scene| with_team(scene, |team| loosened(team, rules, way))),
            );
        }
    }
    cases
}

/// Sets rules of a session in one of the ways, and has the model do what the operator denied.
fn loosened(team: &Team<'_>, rules: &str, way: &str) -> Result<()> {
    let rules: Value = serde_json::from_str(rules)?;
    let call = |tool: &str, input: Value| vec![(tool.to_owned(), input)];
    // A denied call may end the turn, so each has a prompt of its own.
    team.scene.script_calls(vec![
        call("bash", json!({"command": "touch made.txt"})),
        call("write", json!({"filePath": "locked.txt", "content": "x\n"})),
        call("read", json!({"filePath": "private/a.txt"})),
    ]);
    let mut session = team.session("bob")?;
    let created = |body: &Value| -> Result<Option<String>> {
        let (_, made) = team.json("bob", "POST", "/session", body)?;
        Ok(made["id"].as_str().map(str::to_owned))
    };
    match way {
        "create" => session = created(&json!({"permission": rules}))?.unwrap_or(session),
        "child" => {
            session = created(&json!({"permission": rules, "parentID": session}))?.unwrap_or(session);
        }
        "update" | "fork" => {
            team.json("bob", "PATCH", &format!("/session/{session}"), &json!({"permission": rules}))?;
            if way == "fork" {
                let (_, fork) = team.json("bob", "POST", &format!("/session/{session}/fork"), &json!({}))?;
                session = fork["id"].as_str().map_or(session, str::to_owned);
            }
        }
        "added" => {
            for rule in rules.as_array().into_iter().flatten() {
                let mut body = rule.clone();
                body["sessionID"] = json!(session);
                team.json("bob", "POST", "/permission", &body)?;
            }
        }
        _ => {}
    }
    let tools = if way == "tools" {
        json!({"bash": true, "write": true, "edit": true, "read": true})
    } else {
        json!({})
    };
    for number in 0..3 {
        let parts = json!([{"type": "text", "text": Scene::prompt_of(number)}]);
        let body = json!({"parts": parts, "tools": tools});
        team.json("bob", "POST", &format!("/session/{session}/prompt_async"), &body)?;
        replied(team, &session, |id| {
            (format!("/permission/{id}/reply"), r#"{"reply": "reject"}"#.to_owned())
        })?;
        team.idle(&session)?;
    }
    Ok(())
}

fn arguments() -> Vec<Case> {
    let mut cases = Vec::new();
    for (template, text) in TEMPLATES {
        for (name, argument) in ARGUMENTS {
            if *template != "attached" && !matches!(*name, "absolute" | "climbing" | "home") {
                continue;
            }
            cases.push(
                member(&format!("command-argument/{template}/{name}"))
                    .user(json!({"command": {"look": {"template": text}}}).to_string())
                    .file("sub/x", "x")
                    .link("link", "@O")
                    .play(move |scene| {
                        with_team(scene, |team| {
                            let session = team.session("bob")?;
                            let body = json!({"command": "look", "arguments": scene.fill(argument)});
                            team.json("bob", "POST", &format!("/session/{session}/command"), &body)?;
                            Ok(())
                        })
                    }),
            );
        }
    }
    // Without the protection the same arguments must be read, which not every spelling is.
    for case in &mut cases {
        let is_certain = ["absolute", "outside", "home"].iter().any(|name| case.name.ends_with(name));
        if !is_certain || case.name.contains("after-a-dot") {
            *case = case.clone().uncontrolled("not every spelling names a file");
        }
    }
    cases
}

/// A member trusts the repository, whose server then runs.
fn trust() -> Vec<Case> {
    const SERVER: &str = r#"{"mcp": {"s": {"type": "local", "command": ["touch", "@P/trusted-hit"]}}}"#;
    const ANSWER: &str = r#"{"answers": [["Trust this repository"]]}"#;
    let ways: [(&str, &str, &str); 4] = [
        ("reply", "/question/Q/reply", ANSWER),
        ("v2", "/api/session/S/question/Q/reply", ANSWER),
        ("older", "/question", r#"{"id": "Q", "answers": [["Trust this repository"]]}"#),
        ("route", "/trust", r#"{"decision": "trust", "fingerprint": "F"}"#),
    ];
    ways.into_iter()
        .map(|(name, path, body)| {
            member(&format!("trust/{name}"))
                .states(&[Trust::Untrusted])
                .config(SERVER)
                .absent("trusted-hit")
                .play(move |scene| {
                    with_team(scene, |team| {
                        let address = team.wire.address.clone();
                        let _stream = followed(team, &address)?;
                        let session = team.session("bob")?;
                        team.prompt_async("bob", &session, 9)?;
                        let mut question = Value::Null;
                        if !scene.is_unprotected {
                            question = team.request("/question")?;
                        }
                        let (_, trust) = team.json("bob", "GET", "/trust", &Value::Null)?;
                        let id = question["id"].as_str().unwrap_or("que_none");
                        let fingerprint = trust["fingerprint"].as_str().unwrap_or_default();
                        let fill = |text: &str| {
                            text.replace("/S/", &format!("/{session}/"))
                                .replace("/Q/", &format!("/{id}/"))
                                .replace("\"Q\"", &format!("\"{id}\""))
                                .replace("\"F\"", &format!("\"{fingerprint}\""))
                        };
                        team.send("bob", "POST", &fill(path), &fill(body))?;
                        team.json("root", "GET", "/mcp", &Value::Null)?;
                        team.prompt("bob", &session, 9)?;
                        team.wait(|| Ok(scene.path("trusted-hit").exists()))
                    })
                })
        })
        .map(|case| if case.name.ends_with("/reply") { case.short() } else { case })
        .collect()
}

/// Opens a stream of events of bob, because only a client that listens is asked.
fn followed(team: &Team<'_>, address: &str) -> Result<std::net::TcpStream> {
    use std::io::{Read as _, Write as _};
    let mut stream = team.wire.connect()?;
    let token = format!("cw_bob_{}", "0123456789".repeat(4));
    write!(stream, "GET /event HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n\r\n")?;
    stream.set_read_timeout(Some(std::time::Duration::from_secs(3)))?;
    let mut buffer = [0; 512];
    // The beginning of the answer means that the server knows the client.
    let _count = stream.read(&mut buffer)?;
    Ok(stream)
}

/// Requests of a member that change the machine. Each row is an effect.
fn routes() -> Vec<Case> {
    const REQUESTS: &[(&str, &str, &str)] = &[
        ("PATCH", "/config", r#"{"username": "OWNED-BY-BOB"}"#),
        ("PATCH", "/global/config", r#"{"username": "OWNED-GLOBALLY"}"#),
        (
            "POST",
            "/mcp",
            r#"{"name": "evil", "config": {"type": "local", "command": ["touch", "@P/mcp-hit"]}}"#,
        ),
        ("POST", "/pty", r#"{"command": "touch", "args": ["@P/pty-hit"]}"#),
        ("POST", "/api/pty", r#"{"command": "touch", "args": ["@P/api-pty-hit"]}"#),
        ("POST", "/session/S/shell", r#"{"agent": "build", "command": "touch shell-hit"}"#),
        (
            "POST",
            "/vcs/apply",
            r#"{"patch": "--- /dev/null\n+++ b/.git/hooks/pre-commit\n@@ -0,0 +1 @@\n+x\n"}"#,
        ),
        (
            "POST",
            "/vcs/apply",
            r#"{"patch": "diff --git a/../outside/made b/../outside/made\nnew file mode 100644\n--- /dev/null\n+++ b/../outside/made\n@@ -0,0 +1 @@\n+x\n"}"#,
        ),
        ("PUT", "/auth/groq", r#"{"type": "api", "key": "OWNED-KEY"}"#),
        ("POST", "/session/S/command", r#"{"command": "evil", "arguments": ""}"#),
        ("POST", "/experimental/worktree", r#"{"name": "bobs", "startCommand": "touch x"}"#),
    ];
    let case = member("routes")
        .user(r#"{"command": {"evil": {"template": "!`touch @P/template-hit`"}}}"#)
        .play(|scene| {
            with_team(scene, |team| {
                let session = team.session("bob")?;
                for (method, path, body) in REQUESTS {
                    team.send(
                        "bob",
                        method,
                        &path.replace("/S/", &format!("/{session}/")),
                        &scene.fill(body),
                    )?;
                }
                team.json("root", "GET", "/mcp", &Value::Null)?;
                std::thread::sleep(std::time::Duration::from_millis(700));
                Ok(())
            })
        })
        .row("config", |scene| found_in(scene, "codewright.json", "OWNED-BY-BOB"))
        .row("global-config", |scene| {
            found_in(scene, "@H/.config/codewright/codewright.json", "OWNED-GLOBALLY")
                .or_else(|| found_in(scene, "@H/.config/opencode/opencode.json", "OWNED-GLOBALLY"))
        })
        .row_absent("mcp", "mcp-hit")
        .row_absent("terminal", "pty-hit")
        .row_absent("v2-terminal", "api-pty-hit")
        .row_absent("shell", "shell-hit")
        .row("sign-in", |scene| found_in(scene, "@H/.local/share/codewright/auth.json", "OWNED-KEY"))
        .row("worktree", |scene| {
            let found = scene.path("@H/.local/share/codewright/worktree");
            found.exists().then(|| "a worktree was made".to_owned())
        });
    // `git apply` refuses these paths itself, whoever asks.
    let patches = member("routes-patch")
        .uncontrolled("no user may do it")
        .play(|scene| {
            with_team(scene, |team| {
                for (method, path, body) in REQUESTS.iter().filter(|(_, path, _)| *path == "/vcs/apply") {
                    team.send("bob", method, path, &scene.fill(body))?;
                }
                Ok(())
            })
        })
        .row_absent("git-hook", ".git/hooks/pre-commit")
        .row_absent("outside", "@O/made");
    vec![case, patches]
}

pub(super) fn found_in(scene: &Scene, path: &str, text: &str) -> Option<String> {
    let bytes = std::fs::read(scene.path(path)).ok()?;
    String::from_utf8_lossy(&bytes).contains(text).then(|| format!("`{path}` contains `{text}`"))
}

/// What belongs to another user.
fn others() -> Vec<Case> {
    const PARTS: &[(&str, &str)] = &[
        ("part-of-a-message", r#"{"type": "file", "mime": "text/plain", "url": "file://@O/secret.txt"}"#),
        (
            "part-with-a-source",
            r#"{"type": "file", "mime": "text/plain", "url": "file://@O/secret.txt", "source": {"type": "file", "path": "@O/secret.txt", "text": {"value": "x", "start": 0, "end": 1}}}"#,
        ),
    ];
    const READS: &[(&str, &str, &str)] = &[
        ("tool-output/read", "read", r#"{"filePath": "FILE"}"#),
        ("tool-output/grep", "grep", r#"{"pattern": "ALICES", "path": "DIRECTORY"}"#),
        ("tool-output/list", "glob", r#"{"pattern": "*", "path": "DIRECTORY"}"#),
        ("tool-output/command", "bash", r#"{"command": "sh outputs.sh"}"#),
    ];
    let mut cases: Vec<Case> = READS
        .iter()
        .map(|(name, tool, input)| {
            member(&format!("of-others/{name}"))
                .uncontrolled("everything here is found by one name in the home")
                .file("big.sh", "i=0; while [ $i -lt 6000 ]; do echo ALICES-WORD-$i; i=$((i+1)); done\n")
                .file(
                    "outputs.sh",
                    "cat @H/.local/share/codewright/tool-output/* | tail -n 3000 | head -n 40\n",
                )
                .play(move |scene| with_team(scene, |team| read_of_alice(team, tool, input)))
        })
        .collect();
    cases.extend(PARTS.iter().map(|(name, part)| {
        member(&format!("of-others/{name}"))
            .uncontrolled("a part that is changed later is not read again")
            .play(move |scene| {
                with_team(scene, |team| {
                    let session = team.session("bob")?;
                    let (_, message) = team.prompt("bob", &session, 9)?;
                    let id = message["info"]["parentID"].as_str().unwrap_or_default().to_owned();
                    let (_, all) =
                        team.json("bob", "GET", &format!("/session/{session}/message/{id}"), &Value::Null)?;
                    let old = all["parts"][0].clone();
                    let mut new: Value = serde_json::from_str(&scene.fill(part))?;
                    for key in ["id", "sessionID", "messageID"] {
                        new[key] = old[key].clone();
                    }
                    let part = old["id"].as_str().unwrap_or_default();
                    team.json("bob", "PATCH", &format!("/session/{session}/message/{id}/part/{part}"), &new)?;
                    team.prompt("bob", &session, 9)?;
                    Ok(())
                })
            })
    }));
    cases.push(
        member("of-others/always").user(r#"{"permission": {"bash": "ask"}}"#).absent("made.txt").play(
            |scene| {
                with_team(scene, |team| {
                    // Alice allows a command for good. That must not count for bob.
                    let call = |text: &str| vec![("bash".to_owned(), json!({"command": text}))];
                    scene.script_calls(vec![call("touch alices.txt"), call("touch made.txt")]);
                    let session = team.session("alice")?;
                    team.prompt_async("alice", &session, 0)?;
                    let request = team.request("/permission")?;
                    if let Some(id) = request["id"].as_str() {
                        team.json(
                            "alice",
                            "POST",
                            &format!("/permission/{id}/reply"),
                            &json!({"reply": "always"}),
                        )?;
                    }
                    team.idle(&session)?;
                    let session = team.session("bob")?;
                    team.prompt_async("bob", &session, 1)?;
                    replied(team, &session, |id| {
                        (format!("/permission/{id}/reply"), r#"{"reply": "reject"}"#.to_owned())
                    })?;
                    team.idle(&session)
                })
            },
        ),
    );
    cases
}

/// Bob reads the long output of a command of alice.
fn read_of_alice(team: &Team<'_>, tool: &str, input: &str) -> Result<()> {
    let scene = team.scene;
    let outputs = scene.path("@H/.local/share/codewright/tool-output");
    let begin = |text: &str| vec![("bash".to_owned(), json!({"command": text}))];
    // The name of the file is found before the script of the model is set, so alice works through the route of a shell.
    let session = team.session("alice")?;
    let body = json!({"command": "sh big.sh", "agent": "build"});
    team.json("root", "POST", &format!("/session/{session}/shell"), &body)?;
    let file =
        std::fs::read_dir(&outputs).ok().and_then(|mut all| all.next()?.ok()).map(|entry| entry.path());
    let file = match file {
        Some(file) => file,
        None => {
            std::fs::create_dir_all(&outputs)?;
            let file = outputs.join("tool_alice");
            std::fs::write(&file, "ALICES-WORD-1\n".repeat(6000))?;
            file
        }
    };
    let input = input.replace("FILE", &file.display().to_string());
    let input = input.replace("DIRECTORY", &outputs.display().to_string());
    let input: Value = serde_json::from_str(&input)?;
    scene.script_calls(vec![vec![(tool.to_owned(), input)], begin("true")]);
    let session = team.session("bob")?;
    team.prompt_async("bob", &session, 0)?;
    replied(team, &session, |id| (format!("/permission/{id}/reply"), r#"{"reply": "once"}"#.to_owned()))?;
    team.idle(&session)?;
    let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let word = if tool == "glob" { name } else { "ALICES-WORD".to_owned() };
    let result = scene.requests().iter().any(|request| {
        let messages = request.body["messages"].as_array().cloned().unwrap_or_default();
        messages.iter().any(|message| message["role"] == "tool" && message.to_string().contains(&word))
    });
    anyhow::ensure!(!result, "the output of alice reached the model of bob");
    Ok(())
}

/// Services of the server's machine, and the audit log.
fn services() -> Vec<Case> {
    let command = |name: &str, text: &str| {
        let text = text.to_owned();
        member(&format!("service/{name}")).no_contact().play(move |scene| {
            with_team(scene, |team| {
                let call = json!({"command": scene.fill(&text)});
                scene.script_calls(vec![vec![("bash".to_owned(), call)]]);
                let session = team.session("bob")?;
                team.prompt_async("bob", &session, 0)?;
                replied(team, &session, |id| {
                    (format!("/permission/{id}/reply"), r#"{"reply": "once"}"#.to_owned())
                })?;
                team.idle(&session)
            })
        })
    };
    let mut cases = vec![
        command("loopback", "curl -s -m 3 --noproxy '*' @L/x; true"),
        command("loopback-by-proxy", "curl -s -m 3 --noproxy '' @L/x; true"),
        command(
            "loopback-by-shell",
            "sh -c 'A=@L; A=${A#http://}; exec 3<>/dev/tcp/${A%:*}/${A#*:}'; bash -c 'A=@L; A=${A#http://}; exec 3<>/dev/tcp/${A%:*}/${A#*:}; echo x >&3'; true",
        ),
        command("fetch", "python3 -c 'import urllib.request as u; u.urlopen(\"@L/x\", timeout=3)'; true"),
    ];
    cases.push(
        member("service/webfetch")
            .no_contact()
            .uncontrolled("addresses of this machine always need a rule")
            .play(|scene| {
                with_team(scene, |team| {
                    let call = json!({"url": scene.fill("@L/x"), "format": "text"});
                    scene.script_calls(vec![vec![("webfetch".to_owned(), call)]]);
                    let session = team.session("bob")?;
                    team.prompt_async("bob", &session, 0)?;
                    replied(team, &session, |id| {
                        (format!("/permission/{id}/reply"), r#"{"reply": "once"}"#.to_owned())
                    })?;
                    team.idle(&session)
                })
            }),
    );
    cases.push(
        member("audit/every-change-is-recorded")
            .uncontrolled("it is about the log, not about an effect")
            .play(|scene| {
                with_team_of(scene, &json!({}), |team| {
                    let session = team.session("bob")?;
                    let changes = [
                        ("PATCH", format!("/session/{session}"), r#"{"title": "new"}"#, "session.update"),
                        ("POST", format!("/session/{session}/fork"), "{}", "session.fork"),
                        ("POST", format!("/session/{session}/abort"), "{}", "session.abort"),
                    ];
                    for (method, path, body, _) in &changes {
                        team.send("bob", method, path, body)?;
                    }
                    let (_, audit) = team.json("root", "GET", "/users/audit", &Value::Null)?;
                    let audit = audit.to_string();
                    for (_, _, _, action) in changes {
                        anyhow::ensure!(audit.contains(action), "the audit log lacks `{action}`");
                    }
                    anyhow::ensure!(!audit.contains(SECRET), "the audit log has a secret");
                    Ok(())
                })
            }),
    );
    cases
}
