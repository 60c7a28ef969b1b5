//! The sign-in of browsers: a page of the app instead of the browser's dialog, a cookie and a key instead of the password.

use axum::Router;
use axum::body::Body;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use codewright_server::Options;
use codewright_testkit::Script;
use http::{HeaderMap, Response};
use http_body_util::BodyExt as _;
use serde_json::Value;

use crate::bench::{Bench, quick, read, request, send};

const BROWSER: (&str, &str) = ("user-agent", "Mozilla/5.0 (X11; Linux) Gecko");
const FETCH: (&str, &str) = ("accept", "*/*");
const NAVIGATION: (&str, &str) = ("accept", "text/html,*/*;q=0.8");
const SAME_ORIGIN: (&str, &str) = ("origin", "http://localhost:4096");

fn protected() -> Options {
    Options { password: Some("hunter2".to_owned()), ..quick() }
}

fn basic(credentials: &str) -> String {
    format!("Basic {}", STANDARD.encode(credentials))
}

async fn ask(router: &Router, method: &str, path: &str, headers: &[(&str, &str)]) -> Response<Body> {
    let mut message = request(method, path);
    for (name, value) in headers {
        message = message.header(*name, *value);
    }
    send(router, message.body(Body::empty()).unwrap()).await
}

async fn status(router: &Router, path: &str, headers: &[(&str, &str)]) -> u16 {
    ask(router, "GET", path, headers).await.status().as_u16()
}

/// Signs in, and returns the cookie and the key.
async fn sign_in(router: &Router) -> (String, String) {
    let right = basic("opencode:hunter2");
    let answer = ask(router, "POST", "/sign-in", &[BROWSER, SAME_ORIGIN, ("authorization", &right)]).await;
    let cookie = answer.headers()["set-cookie"].to_str().unwrap().to_owned();
    for part in ["; Path=/", "; HttpOnly", "; SameSite=Strict", "; Max-Age="] {
        assert!(cookie.contains(part), "{cookie}");
    }
    let (status, reply) = read(answer).await;
    assert_eq!(status, 200, "{reply}");
    (cookie.split(';').next().unwrap().to_owned(), reply["key"].as_str().unwrap().to_owned())
}

#[tokio::test]
async fn a_browser_gets_no_dialog_and_a_program_gets_the_recorded_challenge() {
    let bench = Bench::new(Script::new()).await;
    let router = bench.router(protected());
    let challenge = |headers: &HeaderMap| headers.contains_key("www-authenticate");
    let wrong = basic("opencode:wrong");
    for headers in [vec![], vec![NAVIGATION], vec![FETCH, ("authorization", wrong.as_str())]] {
        let answer = ask(&router, "GET", "/session", &headers).await;
        assert_eq!((answer.status().as_u16(), challenge(answer.headers())), (401, true), "{headers:?}");
    }
    let local_fetch = ("sec-fetch-mode", "cors");
    let same = ("sec-fetch-site", "same-origin");
    for headers in [
        vec![BROWSER, SAME_ORIGIN, FETCH],
        vec![BROWSER, SAME_ORIGIN, FETCH, ("authorization", wrong.as_str())],
        vec![local_fetch, same],
    ] {
        let answer = ask(&router, "GET", "/session", &headers).await;
        assert_eq!((answer.status().as_u16(), challenge(answer.headers())), (401, false), "{headers:?}");
    }
    let typed = [BROWSER, NAVIGATION, ("sec-fetch-site", "none"), ("sec-fetch-mode", "navigate")];
    let answer = ask(&router, "GET", "/session", &typed).await;
    assert_eq!((answer.status().as_u16(), challenge(answer.headers())), (401, false));
    assert_eq!(answer.headers()["content-security-policy"], "default-src 'none'");
    let page = String::from_utf8(answer.into_body().collect().await.unwrap().to_bytes().to_vec()).unwrap();
    assert!(page.contains("Sign in") && page.contains("href=\"/\""), "{page}");
}

#[tokio::test]
async fn a_browser_signs_in_and_out() {
    let bench = Bench::new(Script::new()).await;
    let router = bench.router(protected());
    let (cookie, key) = sign_in(&router).await;
    let both = [SAME_ORIGIN, ("cookie", cookie.as_str()), ("x-codewright-key", key.as_str())];
    assert_eq!(status(&router, "/path", &both).await, 200);
    assert_eq!(status(&router, "/path", &both[..2]).await, 401, "the cookie alone");
    assert_eq!(status(&router, "/path", &[SAME_ORIGIN, both[2]]).await, 401, "the key alone");
    let wrong = basic("opencode:wrong");
    let wrong = [both.as_slice(), &[("authorization", wrong.as_str())]].concat();
    assert_eq!(status(&router, "/path", &wrong).await, 401, "a wrong password is not repaired");
    let foreign = [both[1], both[2], ("origin", "https://evil.example")];
    assert_eq!(status(&router, "/path", &foreign).await, 403, "a page of another origin");

    let (other_cookie, other_key) = sign_in(&router).await;
    let answer = ask(&router, "POST", "/sign-out", &both).await;
    let removal = answer.headers()["set-cookie"].to_str().unwrap().to_owned();
    assert!(removal.contains("=;") && removal.contains("Max-Age=0"), "{removal}");
    assert_eq!(read(answer).await, (http::StatusCode::OK, Value::Bool(true)));
    assert_eq!(status(&router, "/path", &both).await, 401);
    let other = [SAME_ORIGIN, ("cookie", other_cookie.as_str()), ("x-codewright-key", other_key.as_str())];
    assert_eq!(status(&router, "/path", &other).await, 200, "the other browser is still signed in");
    let restarted = bench.router(protected());
    assert_eq!(status(&restarted, "/path", &other).await, 401, "this server keeps its sign-ins in memory");
}

#[tokio::test]
async fn signing_in_needs_the_right_password_and_a_server_that_has_one() {
    let bench = Bench::new(Script::new()).await;
    let router = bench.router(protected());
    for credentials in ["opencode:wrong", "other:hunter2", ":hunter2", ""] {
        let value = basic(credentials);
        let answer =
            ask(&router, "POST", "/sign-in", &[BROWSER, SAME_ORIGIN, ("authorization", value.as_str())])
                .await;
        assert_eq!(answer.status(), 401, "{credentials}");
        assert!(!answer.headers().contains_key("set-cookie"), "{credentials}");
    }
    let token = STANDARD.encode("opencode:hunter2");
    let answer = ask(&router, "POST", &format!("/sign-in?auth_token={token}"), &[]).await;
    assert_eq!(answer.status(), 400, "only the header begins a sign-in");
    let open = bench.router(quick());
    let answer = ask(&open, "POST", "/sign-in", &[("authorization", &basic("opencode:x"))]).await;
    assert_eq!(answer.status(), 404, "without a password there is nothing to sign in to");
}
