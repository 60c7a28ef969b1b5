//! The web page at `/`: one document that loads all data from the other routes.
//!
//! The data comes from models, files and commands, so the page inserts it as text and never as markup.
//! The content security policy enforces that: no scripts except the page's own, no other origins, no
//! frames.

use std::sync::LazyLock;

use axum::response::{Html, IntoResponse};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderName, HeaderValue, header};
use ring::digest::{SHA256, digest};

const PAGE: &str = include_str!("page.html");

/// The content security policy with the digests of the page's script and style.
static POLICY: LazyLock<HeaderValue> = LazyLock::new(|| {
    // The only image is an empty icon. Without it browsers would request one.
    let (script, style) = (source("script"), source("style"));
    let policy = format!(
        "default-src 'none'; script-src {script}; style-src {style}; connect-src 'self'; img-src data:; base-uri 'none'; \
         form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
    );
    HeaderValue::try_from(policy).expect("base64 and these words are a valid header")
});

const HEADERS: [(HeaderName, HeaderValue); 5] = [
    (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
    // For browsers that do not send `Sec-Fetch-Site`, the referrer shows that a request comes from the page.
    (header::REFERRER_POLICY, HeaderValue::from_static("same-origin")),
    (header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY")),
    (HeaderName::from_static("cross-origin-opener-policy"), HeaderValue::from_static("same-origin")),
    (HeaderName::from_static("cross-origin-resource-policy"), HeaderValue::from_static("same-origin")),
];

pub(super) async fn read() -> impl IntoResponse {
    (HEADERS, [(header::CONTENT_SECURITY_POLICY, POLICY.clone())], Html(PAGE))
}

/// Returns the policy source for the content of the page's only element of a name.
fn source(element: &str) -> String {
    let (open, close) = (format!("<{element}>"), format!("</{element}>"));
    let rest = PAGE.split_once(&open).map(|(_, rest)| rest).unwrap_or_default();
    let content = rest.split_once(&close).map(|(content, _)| content).unwrap_or_default();
    format!("'sha256-{}'", STANDARD.encode(digest(&SHA256, content.as_bytes())))
}
