//! Who may use a server, route by route.

use axum::Router;
use axum::body::Body;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use codewright_client::{Client, Error};
use codewright_server::{Options, routes};
use codewright_testkit::Script;
use http::{Request, Response};

use crate::bench::{Bench, quick, read, request, send};

/// A real path for a route.
fn address(path: &str) -> String {
    path.replace("{sessionID}", "ses_1")
        .replace("{messageID}", "msg_1")
        .replace("{requestID}", "per_1")
        .replace("{permissionID}", "per_1")
        .replace("{providerID}", "zzz")
        .replace("{projectID}", "zzz")
        .replace("{integrationID}", "zzz")
        .replace("{credentialID}", "zzz")
        .replace("{attemptID}", "con_1")
        .replace("{partID}", "prt_1")
        .replace("{name}", "zzz")
        .replace("{id}", "zzz")
        .replace("{*path}", "zzz")
        .replace("{ptyID}", "pty_1")
}

fn protected() -> Options {
    Options { password: Some("hunter2".to_owned()), ..quick() }
}

async fn ask(router: &Router, method: &str, path: &str, headers: &[(&str, &str)]) -> Response<Body> {
    let mut request = Request::builder().method(method).uri(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    send(router, request.body(Body::empty()).unwrap()).await
}

#[tokio::test]
async fn every_route_is_guarded() {
    let bench = Bench::new(Script::new()).await;
    let open = bench.router(quick());
    let closed = bench.router(protected());
    let local = ("host", "localhost:4096");
    for (method, path) in routes() {
        let path = &address(path);
        assert!(!path.contains('{'), "{path} has no row above");
        let name = format!("{method} {path}");

        for host in ["evil.example", "evil.example:4096", "192.168.1.2:4096", ""] {
            let (status, error) = read(ask(&open, method, path, &[("host", host)]).await).await;
            assert_eq!((status.as_u16(), error["name"].as_str()), (403, Some("Forbidden")), "{name} {host}");
        }
        assert_eq!(ask(&open, method, path, &[]).await.status(), 403, "{name} without a host");
        let two = [local, ("host", "evil.example")];
        assert_eq!(ask(&open, method, path, &two).await.status(), 403, "{name} with two hosts");

        let wrong = STANDARD.encode("opencode:wrong");
        let wrong = format!("Basic {wrong}");
        for headers in
            [vec![local], vec![local, ("authorization", &wrong)], vec![local, ("authorization", "Bearer x")]]
        {
            let response = ask(&closed, method, path, &headers).await;
            assert_eq!(response.status(), 401, "{name}");
            assert_eq!(response.headers()["www-authenticate"], "Basic realm=\"Secure Area\"", "{name}");
            assert_eq!(read(response).await.1, serde_json::Value::Null, "{name}: the body is empty");
        }

        let foreign = ask(&open, method, path, &[local, ("origin", "https://evil.example")]).await;
        assert!(!foreign.headers().contains_key("access-control-allow-origin"), "{name}");
        assert_eq!(foreign.status() == 403, method != "GET", "{name}: foreign pages change nothing");

        if method != "GET" {
            for kind in ["text/plain", "application/x-www-form-urlencoded", ""] {
                let request = request(method, path).header("content-type", kind);
                let response = send(&open, request.body(Body::from("{}")).unwrap()).await;
                assert_eq!(response.status(), 415, "{name} with a body of `{kind}`");
            }
        }

        let asks = [
            local,
            ("origin", "http://localhost:3000"),
            ("access-control-request-method", method),
            ("access-control-request-headers", "content-type,x-opencode-directory"),
        ];
        for router in [&open, &closed] {
            let response = ask(router, "OPTIONS", path, &asks).await;
            assert_eq!(response.status(), 204, "{name}: a preflight carries no credentials");
            let headers = response.headers();
            assert_eq!(headers["access-control-allow-origin"], "http://localhost:3000");
            assert_eq!(headers["access-control-allow-methods"], "GET, HEAD, PUT, PATCH, POST, DELETE");
            assert_eq!(headers["access-control-allow-headers"], "content-type,x-opencode-directory");
            assert_eq!(headers["access-control-max-age"], "86400");
            assert_eq!(headers["vary"], "Origin");
        }
        let asks = [local, ("origin", "https://evil.example"), ("access-control-request-method", method)];
        let headers = ask(&open, "OPTIONS", path, &asks).await.headers().clone();
        assert!(!headers.keys().any(|name| name.as_str().starts_with("access-control-")), "{name}");
    }
}

#[tokio::test]
async fn unknown_paths_are_guarded_too() {
    let bench = Bench::new(Script::new()).await;
    let closed = bench.router(protected());
    assert_eq!(ask(&closed, "GET", "/nope", &[("host", "localhost")]).await.status(), 401);
    assert_eq!(ask(&closed, "PUT", "/session", &[("host", "localhost")]).await.status(), 401);
    let open = bench.router(quick());
    assert_eq!(ask(&open, "GET", "/nope", &[("host", "evil.example")]).await.status(), 403);
}

#[tokio::test]
async fn the_password_opens_from_any_host_by_header_or_query() {
    let bench = Bench::new(Script::new()).await;
    let router = bench.router(protected());
    let right = STANDARD.encode("opencode:hunter2");
    let basic = format!("Basic {right}");
    let lower = format!("basic {}", right.trim_end_matches('='));
    for value in [&basic, &lower] {
        let headers = [("host", "box.example:4096"), ("authorization", value.as_str())];
        assert_eq!(ask(&router, "GET", "/global/health", &headers).await.status(), 200, "{value}");
    }
    let path = format!("/global/health?auth_token={}", right.replace('=', "%3D"));
    assert_eq!(ask(&router, "GET", &path, &[("host", "box.example")]).await.status(), 200);
    let wrong = STANDARD.encode("root:hunter2");
    let path = format!("/global/health?auth_token={wrong}");
    assert_eq!(ask(&router, "GET", &path, &[("host", "box.example")]).await.status(), 401);
}

#[tokio::test]
async fn an_empty_password_is_none() {
    let bench = Bench::new(Script::new()).await;
    let router = bench.router(Options { password: Some(String::new()), ..quick() });
    assert_eq!(ask(&router, "GET", "/global/health", &[("host", "localhost")]).await.status(), 200);
    assert_eq!(ask(&router, "GET", "/global/health", &[("host", "evil.example")]).await.status(), 403);
}

#[tokio::test]
async fn allowed_pages_may_read_and_change() {
    let bench = Bench::new(Script::new()).await;
    let router = bench.router(Options { cors: vec!["https://pages.example".to_owned()], ..quick() });
    for origin in [
        "http://localhost:3000",
        "http://127.0.0.1:1",
        "tauri://localhost",
        "https://app.opencode.ai",
        "https://pages.example",
    ] {
        for (method, path) in [("GET", "/path"), ("POST", "/session"), ("GET", "/session/ses_1")] {
            let response =
                ask(&router, method, path, &[("host", "localhost:4096"), ("origin", origin)]).await;
            assert_ne!(response.status(), 403, "{origin}");
            assert_eq!(response.headers()["access-control-allow-origin"], origin);
            assert_eq!(response.headers()["vary"], "Origin");
            assert_eq!(response.headers()["x-content-type-options"], "nosniff");
        }
    }
}

#[tokio::test]
async fn the_client_signs_in_over_a_socket() {
    let bench = Bench::new(Script::new()).await;
    let listening = bench.listen(protected()).await;
    let client = |password: &str| {
        Client::http(&listening.url, Some(("opencode".to_owned(), password.to_owned())), None).unwrap()
    };
    assert!(client("hunter2").health().await.unwrap().healthy);
    assert!(client("hunter2").events().await.is_ok());
    assert!(matches!(client("hunter3").health().await, Err(Error::Unauthorized)));
    assert!(matches!(client("").events().await, Err(Error::Unauthorized)));
}
