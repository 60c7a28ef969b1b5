//! The access checks of every route.

use axum::Router;
use axum::body::Body;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use codewright_client::{Client, Error};
use codewright_server::{Options, routes};
use codewright_testkit::Script;
use http::{Request, Response};

use crate::bench::{Bench, quick, read, request, send};

/// Returns a path for a route.
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
        assert_eq!(foreign.status(), 403, "{name}: foreign pages do nothing");
        let web = ask(&open, method, path, &[local, ("origin", "https://app.opencode.ai")]).await;
        assert_eq!(web.status(), 401, "{name}: pages from elsewhere need a password");

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
async fn foreign_pages_are_rejected_by_every_route() {
    let bench = Bench::new(Script::new()).await;
    let open = bench.router(quick());
    let local = ("host", "localhost:4096");
    for (method, path) in routes() {
        let path = &address(path);
        let name = format!("{method} {path}");
        for hostile in [
            vec![("origin", "null")],
            vec![("origin", "http://localhost"), ("origin", "https://evil.example")],
            vec![("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "no-cors")],
            vec![("sec-fetch-site", "same-site"), ("sec-fetch-mode", "no-cors")],
            vec![
                ("sec-fetch-site", "cross-site"),
                ("sec-fetch-mode", "navigate"),
                ("sec-fetch-dest", "document"),
            ],
            vec![("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "websocket"), ("upgrade", "websocket")],
            vec![("referer", "https://evil.example/")],
            vec![("user-agent", "Mozilla/5.0 (X11; Linux)")],
        ] {
            // Also with a directory, which must not be opened.
            for path in [path.clone(), format!("{path}?directory=/nowhere/at/all")] {
                let headers: Vec<_> = [local].into_iter().chain(hostile.iter().copied()).collect();
                let response = ask(&open, method, &path, &headers).await;
                assert_eq!(response.status(), 403, "{name} {hostile:?}");
                assert!(
                    !response.headers().contains_key("access-control-allow-origin"),
                    "{name} {hostile:?}"
                );
            }
        }
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
async fn with_the_password_in_header_or_query_any_host_is_allowed() {
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
async fn an_empty_password_counts_as_missing() {
    let bench = Bench::new(Script::new()).await;
    let router = bench.router(Options { password: Some(String::new()), ..quick() });
    assert_eq!(ask(&router, "GET", "/global/health", &[("host", "localhost")]).await.status(), 200);
    assert_eq!(ask(&router, "GET", "/global/health", &[("host", "evil.example")]).await.status(), 403);
}

#[tokio::test]
async fn allowed_pages_may_read_and_change() {
    let bench = Bench::new(Script::new()).await;
    let cors = vec!["https://pages.example".to_owned()];
    let open = bench.router(Options { cors: cors.clone(), ..quick() });
    let closed = bench.router(Options { cors, ..protected() });
    let signed = format!("Basic {}", STANDARD.encode("opencode:hunter2"));
    for (origin, needs_password) in [
        ("http://localhost:3000", false),
        ("http://127.0.0.1:1", false),
        ("tauri://localhost", false),
        ("oc://renderer", false),
        ("https://app.opencode.ai", true),
        ("https://pages.example", true),
    ] {
        for (method, path) in [("GET", "/path"), ("POST", "/session"), ("GET", "/session/ses_1")] {
            let headers = [("host", "localhost:4096"), ("origin", origin), ("sec-fetch-site", "cross-site")];
            let response = ask(&open, method, path, &headers).await;
            assert_eq!(response.status() == 401, needs_password, "{origin}");
            assert_ne!(response.status(), 403, "{origin}");
            assert_eq!(response.headers()["access-control-allow-origin"], origin);
            assert_eq!(response.headers()["vary"], "Origin");
            assert_eq!(response.headers()["x-content-type-options"], "nosniff");
            if needs_password {
                let (_, error) = read(response).await;
                let message = error["data"]["message"].as_str().unwrap();
                assert!(
                    message.contains("a password is required: the page comes from another server"),
                    "{message}"
                );
                assert!(
                    error["data"]["hint"].as_str().unwrap().contains("OPENCODE_SERVER_PASSWORD"),
                    "{error}"
                );
            }
            let headers = [headers.as_slice(), &[("authorization", signed.as_str())]].concat();
            let response = ask(&closed, method, path, &headers).await;
            assert!(![401, 403].contains(&response.status().as_u16()), "{origin}");
        }
    }
}

#[tokio::test]
async fn other_sites_may_link_to_the_page_only() {
    let bench = Bench::new(Script::new()).await;
    let router = bench.router(quick());
    let from = |site| {
        [
            ("host", "localhost:4096"),
            ("sec-fetch-site", site),
            ("sec-fetch-mode", "navigate"),
            ("sec-fetch-dest", "document"),
        ]
    };
    for site in ["cross-site", "same-site", "none"] {
        assert_eq!(ask(&router, "GET", "/", &from(site)).await.status(), 200, "{site}");
    }
    assert_eq!(ask(&router, "GET", "/doc", &from("none")).await.status(), 200);
    for (path, site) in
        [("/doc", "cross-site"), ("/path?directory=/tmp", "none"), ("/path?directory=/tmp", "same-site")]
    {
        assert_eq!(ask(&router, "GET", path, &from(site)).await.status(), 403, "{path} {site}");
    }
    let framed = [
        ("host", "localhost"),
        ("sec-fetch-site", "cross-site"),
        ("sec-fetch-mode", "navigate"),
        ("sec-fetch-dest", "iframe"),
    ];
    assert_eq!(ask(&router, "GET", "/", &framed).await.status(), 403);
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
