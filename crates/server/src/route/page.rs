//! The page that a browser is shown at `/`: one document, which asks the other routes for all else.
//!
//! What it shows comes from models, files and commands. It is put in as text and never as markup,
//! and the policy that is sent along holds the browser to that: no script but the page's own, nothing
//! from elsewhere, nothing sent elsewhere, no frame around it.

use std::sync::LazyLock;

use axum::response::{Html, IntoResponse};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderName, HeaderValue, header};
use ring::digest::{SHA256, digest};

const PAGE: &str = include_str!("page.html");

/// What the page may do, by the digests of its own script and style.
static POLICY: LazyLock<HeaderValue> = LazyLock::new(|| {
    // The only picture is an empty one: without it browsers ask for an icon.
    let (script, style) = (source("script"), source("style"));
    let policy = format!(
        "default-src 'none'; script-src {script}; style-src {style}; connect-src 'self'; img-src data:; base-uri 'none'; \
         form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
    );
    HeaderValue::try_from(policy).expect("base64 and these words make a header")
});

const HEADERS: [(HeaderName, HeaderValue); 5] = [
    (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
    // Browsers that do not say which site a request comes from show by it that it is the page.
    (header::REFERRER_POLICY, HeaderValue::from_static("same-origin")),
    (header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY")),
    (HeaderName::from_static("cross-origin-opener-policy"), HeaderValue::from_static("same-origin")),
    (HeaderName::from_static("cross-origin-resource-policy"), HeaderValue::from_static("same-origin")),
];

pub(super) async fn read() -> impl IntoResponse {
    (HEADERS, [(header::CONTENT_SECURITY_POLICY, POLICY.clone())], Html(PAGE))
}

/// A policy's name for what stands in the page's only element of a kind.
fn source(element: &str) -> String {
    let (open, close) = (format!("<{element}>"), format!("</{element}>"));
    let rest = PAGE.split_once(&open).map(|(_, rest)| rest).unwrap_or_default();
    let content = rest.split_once(&close).map(|(content, _)| content).unwrap_or_default();
    format!("'sha256-{}'", STANDARD.encode(digest(&SHA256, content.as_bytes())))
}
