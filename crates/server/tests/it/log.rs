//! Reading the log over HTTP.

use axum::Router;
use axum::body::Body;
use codewright_server::Options;
use codewright_testkit::{Project, Script};
use serde_json::{Value, json};

use crate::bench::{Bench, ask, quick, read, request, send};

async fn write(router: &Router, level: &str, message: &str, extra: Value) {
    let line = json!({"service": "test", "level": level, "message": message, "extra": extra}).to_string();
    assert_eq!(ask(router, "POST", "/log", &line).await.0, 200);
}

#[tokio::test]
async fn the_newest_lines_of_a_level_are_returned_in_their_order() {
    let bench = Bench::new(Script::new()).await;
    let router = bench.router(quick());
    for at in 0..5 {
        write(&router, if at % 2 == 0 { "info" } else { "error" }, &format!("line {at}"), json!({"at": at}))
            .await;
    }
    let messages = async |query: &str| -> Vec<Value> {
        let (status, lines) = ask(&router, "GET", &format!("/log?{query}"), "").await;
        assert_eq!(status, 200, "{lines}");
        let lines = lines.as_array().unwrap().iter().filter(|line| line["service"] == "test");
        lines.map(|line| line["extra"]["at"].clone()).collect()
    };
    assert_eq!(messages("").await, [0, 1, 2, 3, 4]);
    assert_eq!(messages("level=error").await, [1, 3]);
    assert_eq!(messages("level=error&limit=1").await, [3]);
    assert_eq!(messages("limit=999999").await.len(), 5);
    assert_eq!(ask(&router, "GET", "/log?level=loud", "").await.0, 400);
}

#[tokio::test]
async fn a_missing_log_is_empty() {
    let bench = Bench::new(Script::new()).await;
    let (status, lines) = ask(&bench.router(quick()), "GET", "/log?level=error", "").await;
    assert_eq!((status, lines), (200, json!([])));
}

#[tokio::test]
async fn the_secrets_that_the_program_knows_are_not_shown() {
    let configured = |config: &mut Value| {
        config["provider"]["mock"]["options"]["apiKey"] = json!("plain-configured-value");
    };
    let variables = [("MY_SERVICE_TOKEN", "plain-variable-value"), ("LANG", "harmless-value")];
    let bench = Bench::in_environment(Project::plain().unwrap(), Script::new(), configured, &variables).await;
    let options = Options { password: Some("plainpassword".to_owned()), ..quick() };
    let open = bench.router(quick());
    let (status, _) =
        ask(&open, "PUT", "/auth/anthropic", r#"{"type": "api", "key": "plain-stored-value"}"#).await;
    assert_eq!(status, 200);
    let secrets = ["plain-configured-value", "plain-variable-value", "plain-stored-value", "plainpassword"];
    write(&open, "warn", &format!("saw {}", secrets.join(" and ")), json!({"list": secrets})).await;
    write(&open, "warn", "saw harmless-value", json!({})).await;

    let closed = bench.router(options);
    let path = "/log?auth_token=b3BlbmNvZGU6cGxhaW5wYXNzd29yZA==";
    let (status, lines) = read(send(&closed, request("GET", path).body(Body::empty()).unwrap()).await).await;
    let text = lines.to_string();
    assert_eq!(status, 200, "{text}");
    for secret in secrets {
        assert!(!text.contains(secret), "{secret}: {text}");
    }
    assert!(text.contains("saw [secret] and [secret]") && text.contains("saw harmless-value"), "{text}");
}
