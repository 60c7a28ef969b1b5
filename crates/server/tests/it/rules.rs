//! Permission rules that clients add, and replies in the format of older clients.

use axum::body::Body;
use codewright_proto::{Action, Event, PermissionReply, SessionInput};
use codewright_testkit::Script;
use serde_json::{Value, json};

use crate::bench::{Bench, ask, event, quick, request, says, send, until};

fn asks(config: &mut Value) {
    config["permission"] = json!({"bash": {"*": "ask", "rm *": "deny"}});
}

/// Returns whether the permission for a command is decided without the user, and how.
async fn decision(bench: &Bench, session: &str, command: &str) -> Value {
    let body = json!({"action": "bash", "resources": [command]}).to_string();
    let path = format!("/api/session/{session}/permission");
    let (status, reply) = ask(&bench.router(quick()), "POST", &path, &body).await;
    assert_eq!(status, 200, "{reply}");
    reply["data"]["effect"].clone()
}

async fn add(bench: &Bench, body: Value) -> u16 {
    ask(&bench.router(quick()), "POST", "/permission", &body.to_string()).await.0
}

#[tokio::test]
async fn a_rule_for_a_session_holds_for_that_session() {
    let bench = Bench::configured(Script::new(), asks).await;
    let client = bench.client();
    let session = client.create_session(&SessionInput::default()).await.unwrap().id;
    let other = client.create_session(&SessionInput::default()).await.unwrap().id;
    let rule = |action: &str| json!({"sessionID": session, "permission": "bash", "pattern": "ls *", "action": action});
    assert_eq!(decision(&bench, session.as_str(), "ls -l").await, "ask");
    assert_eq!(add(&bench, rule("allow")).await, 200);
    assert_eq!(decision(&bench, session.as_str(), "ls -l").await, "allow");
    assert_eq!(decision(&bench, session.as_str(), "cat x").await, "ask");
    assert_eq!(decision(&bench, other.as_str(), "ls -l").await, "ask");
    // A second rule for the same target replaces the first.
    assert_eq!(add(&bench, rule("deny")).await, 200);
    assert_eq!(decision(&bench, session.as_str(), "ls -l").await, "deny");
    let rules = client.session(&session).await.unwrap().permission.unwrap();
    assert_eq!(rules.len(), 1);
    assert_eq!(rules[0].action, Action::Deny);
}

#[tokio::test]
async fn a_rule_for_a_project_is_an_approval_and_never_overrides_a_denial() {
    let bench = Bench::configured(Script::new(), asks).await;
    let session = bench.client().create_session(&SessionInput::default()).await.unwrap().id;
    let rule =
        |pattern: &str, action: &str| json!({"permission": "bash", "pattern": pattern, "action": action});
    assert_eq!(add(&bench, rule("ls *", "allow")).await, 200);
    assert_eq!(decision(&bench, session.as_str(), "ls -l").await, "allow");
    assert_eq!(decision(&bench, session.as_str(), "cat x").await, "ask");
    let (_, saved) = ask(&bench.router(quick()), "GET", "/api/permission/saved", "").await;
    assert_eq!(saved["data"][0]["resource"], "ls *");
    // What the rules allow now needs no second approval.
    assert_eq!(add(&bench, rule("ls *", "allow")).await, 200);
    let (_, saved) = ask(&bench.router(quick()), "GET", "/api/permission/saved", "").await;
    assert_eq!(saved["data"].as_array().unwrap().len(), 1);

    for (pattern, action) in [("rm *", "allow"), ("cat *", "deny"), ("cat *", "ask"), ("", "allow")] {
        assert_eq!(add(&bench, rule(pattern, action)).await, 400, "{pattern} {action}");
    }
    assert_eq!(decision(&bench, session.as_str(), "rm x").await, "deny");
    assert_eq!(add(&bench, rule(&"x".repeat(10_000), "allow")).await, 400);
}

#[tokio::test]
async fn an_unclear_rule_and_a_foreign_page_are_refused() {
    let bench = Bench::configured(Script::new(), asks).await;
    let rule = json!({"sessionID": "ses_missing", "permission": "bash", "pattern": "*", "action": "allow"});
    assert_eq!(add(&bench, rule).await, 404);
    // A misspelled key must not make a rule for the project.
    let rule = json!({"sessionId": "ses_1", "permission": "bash", "pattern": "*", "action": "allow"});
    assert_eq!(add(&bench, rule).await, 400);
    let rule = r#"{"permission": "bash", "pattern": "*", "action": "allow"}"#;
    let router = bench.router(quick());
    for (name, value, expected) in [
        ("origin", "https://evil.example", 403),
        ("origin", "null", 403),
        ("content-type", "text/plain", 415),
    ] {
        let mut message = request("POST", "/permission").header(name, value);
        if name != "content-type" {
            message = message.header("content-type", "application/json");
        }
        let response = send(&router, message.body(Body::from(rule)).unwrap()).await;
        assert_eq!(response.status(), expected, "{name}: {value}");
    }
    let (_, saved) = ask(&router, "GET", "/api/permission/saved", "").await;
    assert_eq!(saved["data"], json!([]));
}

#[tokio::test]
async fn older_clients_reply_to_permission_requests_by_the_question_route() {
    let script = Script::new().tool("bash", json!({"command": "echo hello"})).text("Done.");
    let bench = Bench::configured(script, asks).await;
    let client = bench.client();
    let session = client.create_session(&SessionInput::default()).await.unwrap().id;
    let mut events = client.events().await.unwrap();
    let router = bench.router(quick());
    let replies = async {
        let asked =
            until(&mut events, |notice| matches!(event(notice), Some(Event::PermissionAsked(_)))).await;
        let Some(Event::PermissionAsked(asked)) = event(&asked) else { unreachable!() };
        let body = json!({"id": asked.id, "reply": PermissionReply::Once}).to_string();
        let without_reply = json!({"id": asked.id}).to_string();
        assert_eq!(ask(&router, "POST", "/question", &without_reply).await.0, 400);
        assert_eq!(ask(&router, "POST", "/question", &body).await, (200, json!(true)));
        assert_eq!(ask(&router, "POST", "/question", &body).await.0, 404);
    };
    let prompt = says("go");
    let (answered, ()) = tokio::join!(client.prompt(&session, &prompt), replies);
    answered.unwrap();
    assert_eq!(ask(&router, "POST", "/question", r#"{"id": "que_1", "answers": []}"#).await.0, 404);
    assert_eq!(ask(&router, "POST", "/question", r#"{"id": "que_1"}"#).await.0, 400);
    assert_eq!(ask(&router, "POST", "/question", r#"{"id": "x", "answers": []}"#).await.0, 400);
}
