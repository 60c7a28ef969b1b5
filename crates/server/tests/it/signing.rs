//! Signing in with the v2 API: attempts in the background, and labels of credentials.

use std::time::Duration;

use axum::Router;
use codewright_testkit::{Script, Turn};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use crate::bench::{Bench, PATIENCE, ask, quick};

/// Starts a server that returns tokens for any code.
async fn tokens() -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let answer = axum::routing::post(|| async {
        axum::Json(json!({"access_token": "canary-a", "refresh_token": "canary-r", "expires_in": 7200}))
    });
    let router = Router::new().route("/oauth/token", answer);
    #[expect(clippy::disallowed_methods, reason = "it lives as long as the test")]
    tokio::spawn(async move { axum::serve(listener, router).await });
    url
}

async fn begin(router: &Router, provider: &str, body: Value) -> (u16, Value) {
    let path = format!("/api/integration/{provider}/connect/oauth");
    ask(router, "POST", &path, &body.to_string()).await
}

async fn status(router: &Router, id: &str) -> Value {
    let (status, answer) = ask(router, "GET", &format!("/api/integration/attempt/{id}"), "").await;
    assert_eq!(status, 200, "{answer}");
    answer["data"].clone()
}

fn state(url: &Value) -> String {
    url.as_str().unwrap().split("state=").nth(1).unwrap().split('&').next().unwrap().to_owned()
}

#[tokio::test]
async fn a_sign_in_runs_in_the_background_and_has_a_status() {
    let bench = Bench::new(Script::new()).await;
    let router = bench.router(quick());
    let inputs = json!({"instanceUrl": tokens().await});
    let body = json!({"methodID": "0", "inputs": inputs, "label": "Work"});
    let (code, begun) = begin(&router, "gitlab", body).await;
    assert_eq!(code, 200, "{begun}");
    let data = &begun["data"];
    let id = data["attemptID"].as_str().unwrap();
    assert!(id.starts_with("con_") && begun["location"]["directory"].is_string(), "{begun}");
    let (created, expires) = (data["time"]["created"].as_u64(), data["time"]["expires"].as_u64());
    assert_eq!(expires, created.map(|created| created + 600_000));
    assert_eq!(status(&router, id).await, json!({"status": "pending", "time": data["time"]}));
    let complete = format!("/api/integration/attempt/{id}/complete");
    let brought = json!({"code": format!("code=abc&state={}", state(&data["url"]))}).to_string();
    let done = timeout(PATIENCE, ask(&router, "POST", &complete, &brought)).await.unwrap();
    assert_eq!(done, (204, Value::Null));
    assert_eq!(status(&router, id).await["status"], "complete");
    assert_eq!(ask(&router, "POST", &complete, "{}").await, (204, Value::Null), "it has ended");
    let (_, shown) = ask(&router, "GET", "/api/integration/gitlab", "").await;
    assert_eq!(
        shown["data"]["connections"],
        json!([{"type": "credential", "id": "gitlab", "label": "Work"}])
    );
    assert!(!shown.to_string().contains("canary"));
}

#[tokio::test]
async fn a_denied_or_cancelled_sign_in_has_a_status() {
    let bench = Bench::new(Script::new()).await;
    let router = bench.router(quick());
    let body = || json!({"methodID": "0", "inputs": {}});
    let (_, begun) = begin(&router, "poe", body()).await;
    let id = begun["data"]["attemptID"].as_str().unwrap().to_owned();
    let complete = format!("/api/integration/attempt/{id}/complete");
    let denied = json!({"code": format!("error=access_denied&state={}", state(&begun["data"]["url"]))});
    let denied = denied.to_string();
    let reply = ask(&router, "POST", &complete, &denied);
    let (code, error) = timeout(PATIENCE, reply).await.unwrap();
    assert_eq!((code, &error["_tag"]), (400, &json!("InvalidRequestError")), "{error}");
    assert!(error["message"].as_str().unwrap().contains("access_denied"), "{error}");
    let failed = status(&router, &id).await;
    assert_eq!(failed["status"], "failed");
    assert!(failed["message"].as_str().unwrap().contains("access_denied"), "{failed}");

    // A new attempt replaces the previous one; a cancelled attempt is deleted.
    let (_, second) = begin(&router, "poe", body()).await;
    let (_, third) = begin(&router, "poe", body()).await;
    for (known, begun) in [(false, &second), (true, &third)] {
        let id = begun["data"]["attemptID"].as_str().unwrap();
        let (code, answer) = ask(&router, "GET", &format!("/api/integration/attempt/{id}"), "").await;
        assert_eq!(code == 200, known, "{answer}");
    }
    let path = format!("/api/integration/attempt/{}", third["data"]["attemptID"].as_str().unwrap());
    // A client that waits for the attempt gets an error.
    let waiting = {
        let (router, path) = (router.clone(), format!("{path}/complete"));
        async move { ask(&router, "POST", &path, "{}").await }
    };
    let cancelling = async {
        sleep(Duration::from_millis(100)).await;
        ask(&router, "DELETE", &path, "").await
    };
    let (waited, cancelled) = timeout(PATIENCE, async { tokio::join!(waiting, cancelling) }).await.unwrap();
    assert_eq!((waited.0, cancelled), (400, (204, Value::Null)), "{waited:?}");
    for (method, path) in [("GET", path.clone()), ("POST", format!("{path}/complete"))] {
        let (code, error) = ask(&router, method, &path, "").await;
        assert_eq!((code, &error["_tag"]), (404, &json!("AttemptNotFoundError")), "{error}");
    }
    assert_eq!(ask(&router, "DELETE", &path, "").await.0, 204);
    for (provider, body) in [
        ("poe", json!({"methodID": "1", "inputs": {}})),
        ("poe", json!({"methodID": "nope", "inputs": {}})),
        ("unknown", body()),
        ("poe", json!({"methodID": "0"})),
        ("poe", json!({"inputs": {}})),
        ("poe", json!({"methodID": "0", "inputs": {}, "label": "x".repeat(300)})),
    ] {
        let (code, error) = begin(&router, provider, body.clone()).await;
        assert_eq!(
            (code, &error["_tag"]),
            (400, &json!("InvalidRequestError")),
            "{provider} {body}: {error}"
        );
    }
    let (_, openai) = ask(&router, "GET", "/api/integration/openai", "").await;
    let methods = openai["data"]["methods"].as_array().unwrap();
    let methods: Vec<_> = methods.iter().filter_map(|method| method["id"].as_str()).collect();
    assert_eq!(methods, ["chatgpt-browser", "chatgpt-headless"]);
}

#[tokio::test]
async fn a_credential_has_its_label() {
    let bench = Bench::new(Script::new().turn(Turn::text("Hi."))).await;
    let router = bench.router(quick());
    let connect = json!({"key": "canary", "label": "Work"}).to_string();
    assert_eq!(ask(&router, "POST", "/api/integration/groq/connect/key", &connect).await.0, 204);
    let label = async |expected: &str| {
        let (_, shown) = ask(&router, "GET", "/api/integration/groq", "").await;
        assert_eq!(shown["data"]["connections"][0]["label"], expected, "{shown}");
        assert!(!shown.to_string().contains("canary"));
    };
    label("Work").await;
    let path = "/api/credential/groq";
    assert_eq!(ask(&router, "PATCH", path, r#"{"label": "Home"}"#).await, (204, Value::Null));
    label("Home").await;
    assert_eq!(ask(&router, "PATCH", path, r#"{"label": ""}"#).await.0, 204);
    label("Groq").await;
    for bad in ["{}", r#"{"label": 5}"#, &json!({"label": "x".repeat(300)}).to_string()] {
        let (code, error) = ask(&router, "PATCH", path, bad).await;
        assert_eq!((code, &error["_tag"]), (400, &json!("InvalidRequestError")), "{bad}: {error}");
    }
    let (code, error) = ask(&router, "PATCH", "/api/credential/unknown", r#"{"label": "x"}"#).await;
    assert_eq!((code, &error["_tag"]), (404, &json!("CredentialNotFoundError")), "{error}");
    assert_eq!(ask(&router, "DELETE", path, "").await.0, 204);
    let (_, shown) = ask(&router, "GET", "/api/integration/groq", "").await;
    assert_eq!(shown["data"]["connections"], json!([]));
}
