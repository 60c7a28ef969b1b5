//! The access checks of every request.
//!
//! Requests of plugins come from this process, and the engine has checked them. Those of other servers that share the store
//! are signed, and those servers have checked them. Others run through these checks in this
//! order, before any other part of the request is used:
//!
//! 1. Commands of the model may not use the server that runs them.
//! 2. Without a password, the host must be a name of this machine. Otherwise a foreign web page
//!    could reach the server by DNS rebinding.
//! 3. The origin of a web page must be this machine, a known client or allowed by the operator.
//! 4. Preflights are answered.
//! 5. Routes that the operator opened to everyone are answered, and the files of the web app, which ask for the password.
//! 6. A browser that is signed in gets its credentials (`sign_ins`). Wrong passwords are limited (`attempts`).
//! 7. The sender is identified if the server has users (`auth`). Otherwise the password is checked. Without a password, only the user that runs the server may use it,
//!    with programs and pages of this machine.
//! 8. A body must have a JSON content type, because browsers send that to another origin only after
//!    a preflight.

use std::panic::AssertUnwindSafe;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use codewright_engine::Descent;
use futures_util::FutureExt;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use http_body::Body as _;
use serde::Deserialize;
use tokio::time::timeout;

use crate::auth::{Who, identify};
use crate::limit::{Full, Slot};
use crate::nodes::{Nodes, OfNode, signals};
use crate::origin::{self, Browsing, Source};
use crate::peer::{Identity, Peer};
use crate::plugins::OfPlugin;
use crate::sign_ins::Restored;
use crate::state::{App, Server};
use crate::{Error, Options, extract, host, route};

/// The methods that a preflight allows.
const METHODS: &str = "GET, HEAD, PUT, PATCH, POST, DELETE";
/// How long a browser may cache a preflight, in seconds.
const PREFLIGHT_SECONDS: &str = "86400";
/// The page for a user who opens an address of the API without a sign-in.
const REFUSAL: &str = "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Sign in</title>\
    <h1>Sign in first</h1><p>This server has a password. <a href=\"/\">Open Codewright to sign in</a>, then open this \
    address again with a program that sends the password.</p></html>";
/// Base64 with or without padding.
pub(crate) const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Checks a request and passes it on to its route, or rejects it.
pub(crate) async fn guard(State(app): State<App>, request: Request, next: Next) -> Response {
    let origin = request.headers().get(header::ORIGIN).cloned();
    let mut request = match Nodes::check(&app, request).await {
        Ok(request) => request,
        Err(error) => return error.into_response(),
    };
    let browsing = origin::browsing(request.headers()).filter(|_| !is_of_node(&request));
    let mut checked = check_credentials(&app, &mut request);
    if let Ok(Pass::Open) = &checked {
        request.extensions_mut().insert(Who::Local);
    }
    if let (Ok(Pass::User), Some(auth)) = (&checked, &app.options.auth) {
        // Boxed, because most servers have no users, and every request would carry the large future.
        let identified = Box::pin(identify(&app, auth, &mut request)).await;
        checked = identified.and_then(|who| admit(&who, &request));
    }
    let is_allowed = checked.as_ref().map_or_else(Error::is_of_allowed_page, |_| true);
    let mut response = match checked {
        Ok(Pass::Preflight) => preflight(request.headers(), origin.is_some()),
        Ok(Pass::Route | Pass::Open | Pass::User) => {
            // A panic in a route must not close the connection.
            let ran = AssertUnwindSafe(next.run(request)).catch_unwind().await;
            ran.unwrap_or_else(|_| Error::Panic.into_response())
        }
        Err(error) => error.into_response(),
    };
    if let Some(browsing) = browsing
        && response.headers().contains_key(header::WWW_AUTHENTICATE)
    {
        response = without_dialog(response, browsing);
    }
    let headers = response.headers_mut();
    headers.append(header::VARY, HeaderValue::from_static("Origin"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    if let Some(origin) = origin.filter(|_| is_allowed) {
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    }
    response
}

fn is_of_node(request: &Request) -> bool {
    request.extensions().get::<OfNode>().is_some()
}

/// Checks a request, with the credentials of its sign-in if it has one, and counts wrong passwords.
fn check_credentials(app: &App, request: &mut Request) -> Result<Pass, Error> {
    let restored =
        if is_of_node(request) { Restored::No } else { app.sign_ins.restore(request, app.clock.now_ms()) };
    if restored == Restored::Stale {
        Server::save_sign_ins(app);
    }
    let is_restored = restored != Restored::No;
    // The tokens of users are random and cannot be guessed.
    let guess = match app.options.password() {
        Some(_) if !is_restored && app.options.auth.is_none() => guess(request),
        Some(_) | None => None,
    };
    if let Some((peer, _)) = &guess
        && let Some(wait) = app.attempts.wait(*peer)
    {
        return Err(Error::TooManyAttempts { retry_after_seconds: wait.as_secs() + 1 });
    }
    let checked = check(&app.options, request);
    if let (Some((peer, credentials)), Err(Error::Unauthorized)) = (guess, &checked) {
        app.attempts.count(peer, credentials.as_bytes());
    }
    checked
}

/// Returns the credentials of a request and who sends them.
fn guess(request: &Request) -> Option<(Identity, String)> {
    let peer = request.extensions().get::<Peer>()?.identity;
    let header = text(request.headers(), &header::AUTHORIZATION).map(str::to_owned);
    header.or_else(|| auth_token(request)).map(|credentials| (peer, credentials))
}

/// Removes the challenge for which a browser would open its own dialog. The web app has a page for it, and a user who opens
/// another address is led there.
fn without_dialog(response: Response, browsing: Browsing) -> Response {
    let (mut parts, body) = response.into_parts();
    parts.headers.remove(header::WWW_AUTHENTICATE);
    let is_empty = body.is_end_stream();
    if browsing == Browsing::Page || !is_empty {
        return Response::from_parts(parts, body);
    }
    parts.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    parts.headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static("default-src 'none'"));
    parts.headers.insert(header::CONTENT_LENGTH, HeaderValue::from(REFUSAL.len()));
    Response::from_parts(parts, Body::from(REFUSAL))
}

/// Runs a long request, if the limit on long requests allows one more.
pub(crate) async fn last(request: Request, next: Next) -> Response {
    match request.extensions().get::<Slot>().map(Slot::last_long) {
        Some(Err(Full)) => Error::Full.into_response(),
        Some(Ok(())) | None => next.run(request).await,
    }
}

/// Runs a request with the deadline of short requests.
pub(crate) async fn hurry(State(app): State<App>, request: Request, next: Next) -> Response {
    let ran = timeout(app.options.deadline, next.run(request)).await;
    ran.unwrap_or_else(|_| Error::Deadline.into_response())
}

enum Pass {
    Route,
    Preflight,
    /// A route that everyone may read.
    Open,
    /// The route, once it is known who sends the request.
    User,
}

/// Admits a request of a known sender.
fn admit(who: &Who, request: &Request) -> Result<Pass, Error> {
    if let Who::User(_) = who {
        sign_in(request)?;
    }
    check_body(request)?;
    Ok(Pass::Route)
}

fn check_body(request: &Request) -> Result<(), Error> {
    if request.body().is_end_stream() || is_json(request.headers()) { Ok(()) } else { Err(Error::NotJson) }
}

fn check(options: &Options, request: &Request) -> Result<Pass, Error> {
    let has_users = options.auth.is_some();
    if request.extensions().get::<OfPlugin>().is_some() {
        return Ok(if has_users { Pass::User } else { Pass::Route });
    }
    if request.extensions().get::<OfNode>().is_some() {
        // The stream of signals belongs to no user. Every other request has the sign-in of its sender.
        if has_users && request.uri().path() != signals::PATH {
            return Ok(Pass::User);
        }
        sign_in(request)?;
        return Ok(Pass::Route);
    }
    let peer = request.extensions().get::<Peer>();
    if peer.is_some_and(|peer| peer.descent == Descent::Command) {
        return Err(Error::OwnCommand { why: "commands of the model may not use the server that runs them" });
    }
    if options.password().is_none() && !has_users {
        check_host(request)?;
    }
    let headers = request.headers();
    let source = origin::source(request, &options.cors)?;
    if request.method() == Method::OPTIONS && headers.contains_key(header::ACCESS_CONTROL_REQUEST_METHOD) {
        return Ok(Pass::Preflight);
    }
    if request.method() == Method::GET && options.is_open(request.uri().path()) {
        return Ok(Pass::Open);
    }
    let reads = matches!(*request.method(), Method::GET | Method::HEAD);
    if reads && (has_users || options.password().is_some()) && route::is_file(request.uri().path()) {
        return Ok(Pass::Open);
    }
    if has_users {
        return Ok(Pass::User);
    }
    match options.password() {
        Some(_) if is_signed_in(options, request) => sign_in(request)?,
        Some(_) if has_ticket(request) => {}
        Some(_) => return Err(Error::Unauthorized),
        None => check_without_password(peer, source)?,
    }
    check_body(request)?;
    Ok(Pass::Route)
}

/// Checks a request to a server without a password. A request without a peer comes from this process.
fn check_without_password(peer: Option<&Peer>, source: Source) -> Result<(), Error> {
    let needs = |why| Err(Error::PasswordNeeded { why });
    match peer.map(|peer| peer.identity) {
        None | Some(Identity::Owner) => {}
        Some(Identity::User(_)) => return needs("this server belongs to another user of this machine"),
        Some(Identity::Unknown) => {
            return needs("the user at the other end of the connection cannot be determined");
        }
        Some(Identity::Remote(_)) => return needs("the connection comes from another machine"),
    }
    if source == Source::Web {
        return needs("the page comes from another server");
    }
    if peer.is_some_and(|peer| peer.descent == Descent::Unknown) {
        let why =
            "commands of the model run, and whether one of them made this connection cannot be determined";
        return Err(Error::OwnCommand { why });
    }
    Ok(())
}

/// Marks the connection of the request as signed in.
fn sign_in(request: &Request) -> Result<(), Error> {
    let slot = request.extensions().get::<Slot>();
    slot.map_or(Ok(()), Slot::sign_in).map_err(|Full| Error::Full)
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

fn preflight(headers: &HeaderMap, allowed: bool) -> Response<Body> {
    let mut response = StatusCode::NO_CONTENT.into_response();
    if allowed {
        let requested = headers.get(header::ACCESS_CONTROL_REQUEST_HEADERS).cloned();
        let requested = requested.unwrap_or_else(|| HeaderValue::from_static(""));
        let headers = response.headers_mut();
        headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static(METHODS));
        headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, requested);
        headers.insert(header::ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static(PREFLIGHT_SECONDS));
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

/// Returns whether the request contains the user name and password: in a header or, for clients that cannot set
/// headers, in the query.
fn is_signed_in(options: &Options, request: &Request) -> bool {
    let header = text(request.headers(), &header::AUTHORIZATION).and_then(|value| {
        let (scheme, encoded) = value.split_once(' ')?;
        scheme.eq_ignore_ascii_case("basic").then(|| encoded.trim().to_owned())
    });
    let Some(given) = header.or_else(|| auth_token(request)).and_then(|encoded| BASE64.decode(encoded).ok())
    else {
        return false;
    };
    let expected = format!("{}:{}", options.username, options.password().unwrap_or_default());
    same(&given, expected.as_bytes())
}

/// Returns the credentials in the query.
pub(crate) fn auth_token(request: &Request) -> Option<String> {
    let token: Token = extract::query(request.uri()).ok()?;
    // A plus sign in a query decodes to a space; base64 contains no spaces.
    token.auth_token.map(|token| token.replace(' ', "+"))
}

/// Returns whether the request brings a ticket to one of the two routes that accept tickets. The route checks the
/// ticket.
pub(crate) fn has_ticket(request: &Request) -> bool {
    let path = request.uri().path();
    let of_terminal = path.strip_prefix("/api").unwrap_or(path).strip_prefix("/pty/");
    let is_connect = of_terminal.is_some_and(|rest| rest.ends_with("/connect"));
    let query = request.uri().query().unwrap_or_default();
    is_connect && query.split('&').any(|pair| pair.starts_with("ticket="))
}

/// Compares in a time that does not depend on the position of a difference.
pub(crate) fn same(given: &[u8], expected: &[u8]) -> bool {
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
    fn only_equal_bytes_are_the_same() {
        for (given, expected) in [("a:b", true), ("a:c", false), ("a:", false), ("a:ba", false), ("", false)]
        {
            assert_eq!(same(given.as_bytes(), b"a:b"), expected, "{given}");
        }
        assert!(!same(b"a:ba:b", b"a:b"));
    }

    #[test]
    fn json_content_types_are_recognised() {
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
