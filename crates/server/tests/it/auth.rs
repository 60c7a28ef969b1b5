//! Credentials over HTTP: the recorded replies, and no reply with a credential.

use axum::body::Body;
use codewright_testkit::Script;
use serde_json::{Value, json};

use crate::bench::{Bench, quick, read, request, send};

async fn ask(bench: &Bench, method: &str, path: &str, body: Option<Value>) -> (u16, Value) {
    let request = request(method, path);
    let request = match body {
        Some(body) => request.header("content-type", "application/json").body(Body::from(body.to_string())),
        None => request.body(Body::empty()),
    };
    let (status, answer) = read(send(&bench.router(quick()), request.unwrap()).await).await;
    (status.as_u16(), answer)
}

#[tokio::test]
async fn storing_and_removing_credentials_returns_the_recorded_replies() {
    let bench = Bench::new(Script::new()).await;
    let key = json!({"type": "api", "key": "canary-key", "metadata": {"accountId": "1"}});
    assert_eq!(ask(&bench, "PUT", "/auth/groq", Some(key.clone())).await, (200, json!(true)));
    let file = bench.project.home().join(".local/share/codewright/auth.json");
    let stored: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    assert_eq!(stored, json!({"groq": key}));
    let (_, providers) = ask(&bench, "GET", "/config/providers", None).await;
    assert!(providers.to_string().contains("\"groq\""), "the provider is listed immediately: {providers}");
    assert!(!providers.to_string().contains("canary"));

    assert_eq!(ask(&bench, "DELETE", "/auth/groq", None).await, (200, json!(true)));
    assert_eq!(
        ask(&bench, "DELETE", "/auth/zzz", None).await,
        (200, json!(true)),
        "a missing credential is no error"
    );
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "{}");
    let (_, providers) = ask(&bench, "GET", "/config/providers", None).await;
    assert!(!providers.to_string().contains("\"groq\""));

    let (status, error) = ask(&bench, "PUT", "/auth/zzz", Some(json!({"type": "bogus"}))).await;
    let expected = json!({
        "name": "BadRequest",
        "data": {"message": "Expected Auth, got {\"type\":\"bogus\"}", "kind": "Payload"},
    });
    assert_eq!((status, error), (400, expected));
    let (status, error) =
        ask(&bench, "PUT", "/auth/zzz", Some(json!({"type": "api", "key": ["canary"]}))).await;
    assert!(status == 400 && !error.to_string().contains("canary"), "{error}");
}

#[tokio::test]
async fn sign_in_methods_are_listed_and_work() {
    let bench = Bench::new(Script::new()).await;
    let (status, methods) = ask(&bench, "GET", "/provider/auth", None).await;
    assert_eq!(status, 200);
    assert_eq!(
        methods["poe"],
        json!([
            {"type": "oauth", "label": "Login with Poe (browser)"},
            {"type": "api", "label": "Manually enter API Key"},
        ])
    );
    let prompts = &methods["github-copilot"][0]["prompts"];
    assert_eq!(
        prompts[0]["options"][0],
        json!({"label": "GitHub.com", "value": "github.com", "hint": "Public"})
    );
    assert_eq!(prompts[1]["when"], json!({"key": "deploymentType", "op": "eq", "value": "enterprise"}));
    assert_eq!(methods["openai"][2], json!({"type": "api", "label": "Manually enter API Key"}));

    let (status, begun) =
        ask(&bench, "POST", "/provider/poe/oauth/authorize", Some(json!({"method": 0}))).await;
    assert_eq!((status, &begun["method"]), (200, &json!("auto")), "{begun}");
    let state =
        begun["url"].as_str().unwrap().split("state=").nth(1).unwrap().split('&').next().unwrap().to_owned();
    let denied = json!({"method": 0, "code": format!("error=access_denied&state={state}")});
    let (status, error) = ask(&bench, "POST", "/provider/poe/oauth/callback", Some(denied.clone())).await;
    assert_eq!(status, 400);
    assert!(error["data"]["message"].as_str().unwrap().contains("access_denied"), "{error}");
    let (status, error) = ask(&bench, "POST", "/provider/poe/oauth/callback", Some(denied)).await;
    assert_eq!(status, 400);
    assert!(error["data"]["message"].as_str().unwrap().contains("has been begun"), "{error}");
    assert_eq!(
        (&error["name"], &error["data"]["providerID"]),
        (&json!("ProviderAuthOauthMissing"), &json!("poe"))
    );
    for (provider, method) in [("poe", 1), ("poe", 7), ("groq", 0)] {
        let path = format!("/provider/{provider}/oauth/authorize");
        assert_eq!(
            ask(&bench, "POST", &path, Some(json!({"method": method}))).await.0,
            400,
            "{provider} {method}"
        );
    }
}
