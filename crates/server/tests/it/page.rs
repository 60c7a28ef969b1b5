//! The web page at `/`: its security policy, and that no other path is a page.

use axum::body::Body;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use codewright_server::Options;
use codewright_testkit::Script;
use http_body_util::BodyExt;

use crate::bench::{Bench, quick, read, request, send};

const LIMIT_BYTES: usize = 40 * 1024;

#[tokio::test]
async fn the_page_may_only_run_its_own_script() {
    let bench = Bench::new(Script::new()).await;
    let router = bench.router(quick());
    let answer = send(&router, request("GET", "/").body(Body::empty()).unwrap()).await;
    assert_eq!(answer.status(), 200);
    let headers = answer.headers().clone();
    let header = |name: &str| headers[name].to_str().unwrap().to_owned();
    assert_eq!(header("content-type"), "text/html; charset=utf-8");
    let page = String::from_utf8(answer.into_body().collect().await.unwrap().to_bytes().to_vec()).unwrap();
    assert!(page.len() < LIMIT_BYTES, "{}", page.len());

    let policy = header("content-security-policy");
    let directives: Vec<&str> = policy.split(';').map(str::trim).collect();
    for directive in [
        "default-src 'none'",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
    ] {
        assert!(directives.contains(&directive), "{directive} in {policy}");
    }
    for (element, directive) in [("script", "script-src"), ("style", "style-src")] {
        let inside = page.split_once(&format!("<{element}>")).unwrap().1;
        let inside = inside.split_once(&format!("</{element}>")).unwrap().0;
        let digest = STANDARD.encode(ring::digest::digest(&ring::digest::SHA256, inside.as_bytes()));
        assert!(directives.contains(&format!("{directive} 'sha256-{digest}'").as_str()), "{policy}");
        assert_eq!(page.matches(&format!("<{element}")).count(), 1, "one {element}");
    }
    assert!(!policy.contains("unsafe"), "{policy}");
    assert_eq!(
        (header("x-content-type-options"), header("x-frame-options")),
        ("nosniff".into(), "DENY".into())
    );
    // Other sites get the same as with `no-referrer`; the server recognizes its own page by the referrer.
    assert_eq!(header("referrer-policy"), "same-origin");

    // Code that turns text into markup or code, or loads from other origins.
    for hazard in [
        "innerHTML",
        "outerHTML",
        "insertAdjacentHTML",
        "document.write",
        "eval(",
        "new Function",
        "DOMParser",
        "srcdoc",
        "javascript:",
        " onclick",
        " onload",
        " onerror=",
        "http://",
        "https://",
        "//cdn",
        "import(",
    ] {
        assert!(!page.contains(hazard), "{hazard}");
    }
}

#[tokio::test]
async fn the_trust_dialog_is_labelled_and_focuses_not_now() {
    let bench = Bench::new(Script::new()).await;
    let router = bench.router(quick());
    let answer = send(&router, request("GET", "/").body(Body::empty()).unwrap()).await;
    let page = String::from_utf8(answer.into_body().collect().await.unwrap().to_bytes().to_vec()).unwrap();
    for piece in [
        r#"<dialog id="trust" aria-labelledby="trust-title" aria-describedby="trust-root trust-about">"#,
        r#"<button id="trust-later" type="button" autofocus>Not now</button>"#,
        r#"<p id="trust-problem" class="bad" role="alert">"#,
        "showModal()",
        r#""POST", "/trust/dismiss""#,
    ] {
        assert!(page.contains(piece), "{piece}");
    }
    assert_eq!(page.matches("autofocus").count(), 1);
}

#[tokio::test]
async fn the_page_requires_the_password_and_a_host_name_of_this_machine() {
    let bench = Bench::new(Script::new()).await;
    let router = bench.router(Options { password: Some("hunter2".to_owned()), ..quick() });
    let answer = send(&router, request("GET", "/").body(Body::empty()).unwrap()).await;
    assert_eq!(answer.status(), 401);
    assert!(
        answer.headers()["www-authenticate"].to_str().unwrap().starts_with("Basic"),
        "the browser prompts for the password"
    );
    let signed = format!("Basic {}", STANDARD.encode("opencode:hunter2"));
    let message = request("GET", "/").header("authorization", signed).body(Body::empty()).unwrap();
    assert_eq!(send(&router, message).await.status(), 200);
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
