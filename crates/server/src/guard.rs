//! What holds for every request: who may ask, from where, and what never gets out.
//!
//! In this order: the host must be a name of this machine unless a password
//! protects the server, so that no foreign web page can reach it under a name of
//! its own; preflights are answered; the password is checked; a page of a
//! foreign origin may change nothing; a body must say that it is JSON, which a
//! page cannot make a browser send elsewhere without a preflight.

use std::panic::AssertUnwindSafe;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use futures_util::FutureExt;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use http_body::Body as _;
use serde::Deserialize;
use tokio::time::timeout;

use crate::state::App;
use crate::{Error, Options, extract, host};

/// The methods that a preflight allows.
const METHODS: &str = "GET, HEAD, PUT, PATCH, POST, DELETE";
/// How long a browser may remember a preflight, in seconds.
const PREFLIGHT_SECONDS: &str = "86400";
/// Base64 as people write it: with or without padding.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Lets a request through to its route, or not.
pub(crate) async fn guard(State(app): State<App>, request: Request, next: Next) -> Response {
    let origin = request.headers().get(header::ORIGIN).cloned();
    let allowed = origin.as_ref().is_some_and(|origin| is_allowed(origin, request.headers(), &app.options));
    let mut response = match check(&app.options, &request, origin.is_none() || allowed) {
        Ok(Pass::Preflight) => preflight(request.headers(), allowed),
        Ok(Pass::Route) => {
            // A bug in one route must not take the connection with it.
            let ran = AssertUnwindSafe(next.run(request)).catch_unwind().await;
            ran.unwrap_or_else(|_| Error::Panic.into_response())
        }
        Err(error) => error.into_response(),
    };
    let headers = response.headers_mut();
    headers.append(header::VARY, HeaderValue::from_static("Origin"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    if let Some(origin) = origin.filter(|_| allowed) {
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    }
    response
}

/// Ends a request that takes too long.
pub(crate) async fn hurry(State(app): State<App>, request: Request, next: Next) -> Response {
    let ran = timeout(app.options.deadline, next.run(request)).await;
    ran.unwrap_or_else(|_| Error::Deadline.into_response())
}

enum Pass {
    Route,
    Preflight,
}

fn check(options: &Options, request: &Request, origin_allowed: bool) -> Result<Pass, Error> {
    if options.password().is_none() {
        check_host(request)?;
    }
    let headers = request.headers();
    if request.method() == Method::OPTIONS && headers.contains_key(header::ACCESS_CONTROL_REQUEST_METHOD) {
        return Ok(Pass::Preflight);
    }
    if options.password().is_some() && !is_signed_in(options, request) && !has_ticket(request) {
        return Err(Error::Unauthorized);
    }
    let reads = matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS);
    if !reads && !origin_allowed {
        return Err(Error::ForeignOrigin {
            origin: text(headers, &header::ORIGIN).unwrap_or_default().to_owned(),
        });
    }
    if !request.body().is_end_stream() && !is_json(headers) {
        return Err(Error::NotJson);
    }
    Ok(Pass::Route)
}

fn check_host(request: &Request) -> Result<(), Error> {
    let named = request.headers().get_all(header::HOST);
    let named = named.iter().map(|host| host.to_str().unwrap_or_default());
    let mut hosts: Vec<_> =
        named.chain(request.uri().authority().map(|authority| authority.as_str())).collect();
    if hosts.is_empty() {
        hosts.push("");
    }
    match hosts.into_iter().find(|host| !host::is_loopback(host)) {
        Some(foreign) => Err(Error::ForeignHost { host: foreign.to_owned() }),
        None => Ok(()),
    }
}

fn is_allowed(origin: &HeaderValue, headers: &HeaderMap, options: &Options) -> bool {
    let host = text(headers, &header::HOST);
    origin.to_str().is_ok_and(|origin| host::may_use(origin, host, &options.cors))
}

fn preflight(headers: &HeaderMap, allowed: bool) -> Response<Body> {
    let mut response = StatusCode::NO_CONTENT.into_response();
    if allowed {
        let asked = headers.get(header::ACCESS_CONTROL_REQUEST_HEADERS).cloned();
        let asked = asked.unwrap_or_else(|| HeaderValue::from_static(""));
        let answer = response.headers_mut();
        answer.insert(header::ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static(METHODS));
        answer.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, asked);
        answer.insert(header::ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static(PREFLIGHT_SECONDS));
    }
    response
}

fn is_json(headers: &HeaderMap) -> bool {
    let kind = text(headers, &header::CONTENT_TYPE).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    kind == "application/json" || (kind.starts_with("application/") && kind.ends_with("+json"))
}

#[derive(Deserialize)]
struct Token {
    auth_token: Option<String>,
}

/// Whether the request carries user name and password, in the header or, for what cannot
/// set headers, in the query.
fn is_signed_in(options: &Options, request: &Request) -> bool {
    let header = text(request.headers(), &header::AUTHORIZATION).and_then(|value| {
        let (scheme, encoded) = value.split_once(' ')?;
        scheme.eq_ignore_ascii_case("basic").then(|| encoded.trim().to_owned())
    });
    let query = || {
        let token: Token = extract::query(request.uri()).ok()?;
        // A plus sign in a query is read as a blank; base64 has only the former.
        token.auth_token.map(|token| token.replace(' ', "+"))
    };
    let Some(given) = header.or_else(query).and_then(|encoded| BASE64.decode(encoded).ok()) else {
        return false;
    };
    let expected = format!("{}:{}", options.username, options.password().unwrap_or_default());
    same(&given, expected.as_bytes())
}

/// Whether the request brings a ticket to the route that takes it, under either name, and that decides whether it is good.
fn has_ticket(request: &Request) -> bool {
    let path = request.uri().path();
    let of_terminal = path.strip_prefix("/api").unwrap_or(path).strip_prefix("/pty/");
    let is_connect = of_terminal.is_some_and(|rest| rest.ends_with("/connect"));
    let query = request.uri().query().unwrap_or_default();
    is_connect && query.split('&').any(|pair| pair.starts_with("ticket="))
}

/// Whether a request comes from no page, or from one that may change something here.
pub(crate) fn may_change(headers: &HeaderMap, options: &Options) -> bool {
    headers.get(header::ORIGIN).is_none_or(|origin| is_allowed(origin, headers, options))
}

/// Compares without telling by its duration where the difference is.
fn same(given: &[u8], expected: &[u8]) -> bool {
    let mut difference = usize::from(given.len() != expected.len());
    for (at, byte) in given.iter().enumerate() {
        let against = expected[at % expected.len().max(1)];
        difference |= usize::from(std::hint::black_box(byte ^ against));
    }
    std::hint::black_box(difference) == 0
}

fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_same_bytes_are_the_same() {
        for (given, expected) in [("a:b", true), ("a:c", false), ("a:", false), ("a:ba", false), ("", false)]
        {
            assert_eq!(same(given.as_bytes(), b"a:b"), expected, "{given}");
        }
        assert!(!same(b"a:ba:b", b"a:b"));
    }

    #[test]
    fn json_is_recognised() {
        for (kind, expected) in [
            ("application/json", true),
            ("Application/JSON; charset=utf-8", true),
            ("application/merge-patch+json", true),
            ("text/plain", false),
            ("text/json+json", false),
            ("application/x-www-form-urlencoded", false),
            ("", false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
            assert_eq!(is_json(&headers), expected, "{kind}");
        }
        assert!(!is_json(&HeaderMap::new()));
    }
}
