//! The web app at `/`: its security policy, its files, and that no other path is a page.

use std::io::Read as _;

use axum::body::Body;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use codewright_server::Options;
use codewright_testkit::Script;
use http_body_util::BodyExt;

use crate::bench::{Bench, quick, read, request, send};

/// Requests a file and returns its status, its headers and its content as it is sent.
async fn get(router: &axum::Router, path: &str, encoding: &str) -> (u16, http::HeaderMap, Vec<u8>) {
    let message = request("GET", path).header("accept-encoding", encoding).body(Body::empty()).unwrap();
    let answer = send(router, message).await;
    let (status, headers) = (answer.status().as_u16(), answer.headers().clone());
    (status, headers, answer.into_body().collect().await.unwrap().to_bytes().to_vec())
}

fn unpacked(bytes: &[u8]) -> String {
    let mut text = String::new();
    flate2::read::GzDecoder::new(bytes).read_to_string(&mut text).unwrap();
    text
}

/// Returns the paths of the files that the page loads.
fn loaded(page: &str) -> Vec<String> {
    paths(page.split('<').filter(|element| !element.contains(CALL)))
}

/// The mark of a call that the browser sends before it has the scripts.
const CALL: &str = "as=\"fetch\"";

fn paths<'a>(elements: impl Iterator<Item = &'a str>) -> Vec<String> {
    let names =
        elements.flat_map(|element| element.split(['"', '\'']).filter_map(|text| text.strip_prefix("./")));
    names.map(|name| format!("/{}", name.replace("&amp;", "&"))).collect()
}

#[tokio::test]
async fn the_page_may_only_run_its_own_files() {
    let bench = Bench::new(Script::new()).await;
    let router = bench.router(quick());
    let (status, headers, content) = get(&router, "/", "gzip").await;
    let header = |name: &str| headers[name].to_str().unwrap().to_owned();
    assert_eq!((status, header("content-type").as_str()), (200, "text/html; charset=utf-8"));
    assert_eq!((header("content-encoding").as_str(), header("cache-control").as_str()), ("gzip", "no-cache"));
    let policy = header("content-security-policy");
    let directives: Vec<&str> = policy.split(';').map(str::trim).collect();
    for directive in [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "connect-src 'self'",
        "img-src 'self' data: blob:",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types codewright codewright-worker",
    ] {
        assert!(directives.contains(&directive), "{directive} in {policy}");
    }
    assert!(!policy.contains("unsafe") && !policy.contains('*') && !policy.contains("http"), "{policy}");
    assert_eq!(
        (header("x-content-type-options"), header("x-frame-options")),
        ("nosniff".into(), "DENY".into())
    );
    // Other sites get the same as with `no-referrer`; the server recognizes its own page by the referrer.
    assert_eq!(header("referrer-policy"), "same-origin");

    let page = unpacked(&content);
    assert!(!page.contains("<style") && !page.contains(" on") && !page.contains("style="), "{page}");
    for script in page.split("<script").skip(1) {
        assert!(script.contains("></script>") && script.contains("src=\"./assets/"), "{page}");
    }
}

#[tokio::test]
async fn the_files_of_the_app_are_kept_by_the_browser() {
    let bench = Bench::new(Script::new()).await;
    let router = bench.router(quick());
    let files = loaded(&unpacked(&get(&router, "/", "gzip").await.2));
    assert!(
        files.iter().any(|path| path.ends_with(".js")) && files.iter().any(|path| path.ends_with(".css"))
    );
    for path in &files {
        let (status, headers, content) = get(&router, path, "deflate, gzip").await;
        assert_eq!(status, 200, "{path}");
        if path.starts_with("/assets/") {
            assert_eq!(headers["cache-control"], "max-age=31536000, immutable", "{path}");
        }
        assert!(headers.get_all("vary").iter().any(|value| value == "Accept-Encoding"), "{path}");
        // A client that accepts no compressed content gets the same.
        let (_, plain_headers, plain) = get(&router, path, "identity").await;
        assert!(!plain_headers.contains_key("content-encoding"), "{path}");
        // Fonts are compressed by themselves.
        if path.ends_with(".woff2") {
            assert!(!headers.contains_key("content-encoding"), "{path}");
            assert_eq!(headers["content-type"], "font/woff2", "{path}");
            assert!(plain == content && !plain.is_empty(), "{path}");
        } else {
            assert_eq!(headers["content-encoding"], "gzip", "{path}");
            assert_eq!(String::from_utf8(plain).unwrap(), unpacked(&content), "{path}");
        }
    }
}

#[tokio::test]
async fn the_calls_that_the_page_names_are_routes() {
    let bench = Bench::new(Script::new()).await;
    let router = bench.router(quick());
    let page = unpacked(&get(&router, "/", "gzip").await.2);
    let calls = paths(page.split('<').filter(|element| element.contains(CALL)));
    assert!(calls.iter().any(|call| call.starts_with("/experimental/session?")), "{page}");
    for call in calls {
        let (status, headers, _) = get(&router, &call, "identity").await;
        assert_eq!((status, headers["content-type"].to_str().unwrap()), (200, "application/json"), "{call}");
    }
}

#[tokio::test]
async fn the_page_may_connect_to_the_server_that_its_address_names() {
    let bench = Bench::new(Script::new()).await;
    let router = bench.router(quick());
    for (query, expected) in [
        ("?server=localhost:5000", "connect-src 'self' http://localhost:5000 ws://localhost:5000;"),
        ("?server=*", "connect-src 'self';"),
        ("?server=a;script-src%20*", "connect-src 'self';"),
    ] {
        let (_, headers, _) = get(&router, &format!("/{query}"), "gzip").await;
        let policy = headers["content-security-policy"].to_str().unwrap();
        assert!(policy.contains(expected) && !policy.contains('*'), "{policy}");
    }
}

#[tokio::test]
async fn the_page_asks_for_the_password_itself_and_requires_a_host_name_of_this_machine() {
    let bench = Bench::new(Script::new()).await;
    let router = bench.router(Options { password: Some("hunter2".to_owned()), ..quick() });
    let (status, headers, content) = get(&router, "/", "identity").await;
    assert_eq!((status, headers.contains_key("www-authenticate")), (200, false));
    let page = String::from_utf8(content).unwrap();
    assert!(!page.contains(CALL), "calls without the key would be refused: {page}");
    let files = loaded(&page);
    assert!(files.iter().any(|path| path.ends_with(".js")), "{page}");
    for path in files {
        assert_eq!(get(&router, &path, "gzip").await.0, 200, "{path} is needed to ask");
    }
    let signed = format!("Basic {}", STANDARD.encode("opencode:hunter2"));
    let message = request("GET", "/").header("authorization", signed).body(Body::empty()).unwrap();
    assert_eq!(send(&router, message).await.status(), 200);
    for path in ["/path", "/session", "/assets/nothing.js"] {
        assert_eq!(get(&router, path, "gzip").await.0, 401, "{path}");
    }
    let open = bench.router(quick());
    let foreign = http::Request::get("/").header("host", "evil.example").body(Body::empty()).unwrap();
    assert_eq!(send(&open, foreign).await.status(), 403);
}

#[tokio::test]
async fn no_other_path_is_a_page() {
    let bench = Bench::new(Script::new()).await;
    let router = bench.router(quick());
    for path in
        ["/index.html", "/favicon.ico", "/assets/app.js", "/sessions", "/api/nothing", "/web", "//web"]
    {
        let message = request("GET", path).header("accept", "text/html").body(Body::empty()).unwrap();
        let answer = send(&router, message).await;
        assert_eq!(answer.headers()["content-type"], "application/json", "{path}");
        let (status, error) = read(answer).await;
        assert_eq!((status.as_u16(), error["name"].as_str()), (404, Some("NotFoundError")), "{path}");
    }
    let message = request("POST", "/").body(Body::empty()).unwrap();
    assert_eq!(send(&router, message).await.status(), 405);
}
