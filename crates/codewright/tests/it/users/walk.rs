//! Every route of the API, called by a user with the ids of another user's session.

use anyhow::{Context as _, Result};
use codewright_testkit::Script;
use serde_json::{Value, json};

use super::{SECRET, Team};
use crate::support::{prompt, wait_until};

/// The ids of alice's things, by the names of parameters.
struct Ids {
    session: String,
    message: String,
    part: String,
    request: String,
}

/// Bodies with which a route would do something to the session.
fn bodies(path: &str, ids: &Ids) -> Value {
    match path {
        "/experimental/control-plane/move-session" => {
            json!({"sessionID": ids.session, "destination": {"directory": "/tmp"}})
        }
        "/question" => json!({"id": ids.request, "reply": "reject"}),
        "/permission" => {
            json!({"sessionID": ids.session, "permission": "bash", "pattern": "*", "action": "allow"})
        }
        "/sync/history" => json!({}),
        "/sync/replay" => json!({"directory": ".", "events": []}),
        "/tui/select-session" => json!({"sessionID": ids.session}),
        "/session" => json!({"parentID": ids.session}),
        "/api/session" => json!({"id": ids.session}),
        path if path.ends_with("/permission/{requestID}/reply") => json!({"reply": "reject"}),
        path if path.ends_with("/permissions/{permissionID}") => json!({"response": "reject"}),
        path if path.ends_with("/message") || path.ends_with("/prompt_async") => prompt("x"),
        path if path.ends_with("/access") => json!({"shared": {"guests": "full"}}),
        path if path.starts_with("/api/") && path.ends_with("/prompt") => json!({"prompt": {"text": "x"}}),
        path if path.ends_with("/prompt") => prompt("x"),
        path if path.ends_with("/revert") => json!({"messageID": ids.message}),
        path if path.ends_with("/part/{partID}") => {
            json!({"id": ids.part, "sessionID": ids.session, "messageID": ids.message, "type": "text", "text": "x"})
        }
        path if path.ends_with("{sessionID}") => json!({"title": "mine now"}),
        _ => json!({}),
    }
}

#[test]
fn no_route_shows_or_changes_a_foreign_session() -> Result<()> {
    let script = Script::new()
        .title("zebra title")
        .text("zebra answer")
        .tool("bash", json!({"command": "echo zebra", "description": "zebra"}));
    let team = Team::with(script, |config| config["permission"] = json!({"bash": "ask"}))?;
    let session = team.session("alice", "zebra session")?;
    assert_eq!(team.prompt("alice", &session, "zebra prompt")?, 200);
    let path = format!("/session/{session}");
    assert_eq!(team.status("alice", "POST", &format!("{path}/prompt_async"), &prompt("zebra two"))?, 204);
    let pending = || team.json("alice", "GET", "/permission", &Value::Null).unwrap();
    wait_until("the request", || pending().as_array().is_some_and(|all| !all.is_empty()))?;
    let state = || -> Result<Value> {
        let messages = team.json("alice", "GET", &format!("{path}/message"), &Value::Null)?;
        Ok(json!([team.json("alice", "GET", &path, &Value::Null)?, messages, pending()]))
    };
    let before = state()?;
    assert!(before.to_string().contains("zebra answer"));
    let text = |value: &Value| value.as_str().context("no id").map(str::to_owned);
    let ids = Ids {
        session: session.clone(),
        message: text(&before[1][0]["info"]["id"])?,
        part: text(&before[1][0]["parts"][0]["id"])?,
        request: text(&pending()[0]["id"])?,
    };
    let document = team.json("bob", "GET", "/doc", &Value::Null)?;
    let mut calls = 0;
    for (path, methods) in document["paths"].as_object().context("no paths")? {
        for (method, operation) in methods.as_object().context("no methods")? {
            let replies = operation["responses"].to_string();
            // Streams do not end. Another test reads them. Two routes change the configuration of others.
            if replies.contains("text/event-stream") {
                continue;
            }
            let filled = path
                .replace("{sessionID}", &ids.session)
                .replace("{messageID}", &ids.message)
                .replace("{partID}", &ids.part)
                .replace("{requestID}", &ids.request)
                .replace("{permissionID}", &ids.request);
            let mut filled = filled.split('/').collect::<Vec<_>>();
            filled.iter_mut().for_each(|part| {
                if part.starts_with('{') {
                    *part = "x";
                }
            });
            let filled = filled.join("/");
            let query = if filled.contains("find") || filled.starts_with("/file") {
                "?query=zebra&pattern=zebra&path=."
            } else {
                "?provider=mock&model=plain-model"
            };
            let body = if method == "get" { Value::Null } else { bodies(path, &ids) };
            let method = method.to_ascii_uppercase();
            let (status, answer) = team.call("bob", &method, &format!("{filled}{query}"), &body)?;
            calls += 1;
            let answer = answer.to_lowercase();
            assert!(!answer.contains(SECRET), "bob {method} {path} ({status}): {answer}");
            let repeats_the_id = (400..500).contains(&status);
            assert!(repeats_the_id || !answer.contains(&ids.session), "bob {method} {path}: {answer}");
            if path.contains("{sessionID}") {
                assert!(matches!(status, 403 | 404), "bob {method} {path}: {status} {answer}");
            }
        }
    }
    assert!(calls > 140, "{calls}");
    assert_eq!(state()?, before, "a foreign user changed the session");
    Ok(())
}
