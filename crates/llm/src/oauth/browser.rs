//! A sign-in in a browser that redirects to this machine, with PKCE and a `state`.
//!
//! The listener is bound to loopback, accepts one callback with the right state, and ends with the
//! sign-in. If the browser cannot reach it, the user can paste the URL of the redirect.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use reqwest::Url;
use ring::digest::{SHA256, digest};
use ring::rand::{SecureRandom as _, SystemRandom};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout, timeout_at};

use crate::error::cut;
use crate::transport::exchange::form;
use crate::{Error, Failure, Secret};

/// Time limit of the user.
const USER_WAIT: Duration = Duration::from_secs(5 * 60);
/// Time limit of one connection to the listener.
const CALLER_WAIT: Duration = Duration::from_secs(10);
/// Limit of concurrent connections. Browsers open a few.
const CALLERS_LIMIT: usize = 16;
/// Posts the URL's fragment to the listener and removes it from the address bar.
const HAND_OVER: &str = "Signing in to Codewright …</p><script>\
const result=location.hash.slice(1);history.replaceState(null,'',location.pathname);\
fetch(location.pathname,{method:'POST',body:result}).then(answer=>answer.text())\
.then(page=>{document.documentElement.innerHTML=page})</script><p>";
/// Limit of a request.
const REQUEST_LIMIT_BYTES: usize = 16 * 1024;
const RANDOM_BYTES: usize = 32;

/// A sign-in that waits for a browser.
pub(super) struct Browser {
    pub(super) redirect: String,
    pub(super) verifier: Secret,
    state: String,
    path: &'static str,
    port: u16,
    kind: ResultKind,
    listeners: Vec<TcpListener>,
    until: Instant,
}

/// The redirect and its kind.
pub(super) struct Callback {
    host: &'static str,
    /// 0 means any port.
    port: u16,
    path: &'static str,
    kind: ResultKind,
}

/// The result that the redirect carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ResultKind {
    /// A code in the query.
    Code,
    /// The token itself in the fragment, which only a script on the page can read.
    Token,
}

/// The result of a redirect.
#[derive(PartialEq, Eq)]
#[cfg_attr(test, derive(Debug))]
pub(super) struct RedirectResult {
    /// The code or the token.
    pub(super) text: String,
    /// The lifetime of a token.
    pub(super) life_seconds: Option<u64>,
}

impl Callback {
    /// A redirect with a code.
    pub(super) const fn to(host: &'static str, port: u16, path: &'static str) -> Self {
        Self { host, port, path, kind: ResultKind::Code }
    }

    /// A redirect with a token.
    pub(super) const fn with_token(host: &'static str, port: u16, path: &'static str) -> Self {
        Self { host, port, path, kind: ResultKind::Token }
    }
}

impl ResultKind {
    fn name(self) -> &'static str {
        match self {
            Self::Code => "code",
            Self::Token => "access_token",
        }
    }
}

impl Browser {
    /// Starts the listener. If the port is in use, the user can still paste the URL.
    pub(super) async fn open(callback: &Callback) -> Result<Self, Error> {
        let mut listeners = Vec::new();
        let mut port = callback.port;
        if let Ok(listener) = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).await {
            port = listener.local_addr().map_or(port, |address| address.port());
            listeners.push(listener);
            // `localhost` may mean IPv4 or IPv6. A machine without IPv6 uses IPv4 alone.
            let other = TcpListener::bind(SocketAddr::from((Ipv6Addr::LOCALHOST, port))).await;
            listeners.extend(other);
        } else if port == 0 {
            return Err(Error::rejected("cannot listen on 127.0.0.1 for the browser's answer"));
        }
        Ok(Self {
            redirect: format!("http://{}:{port}{}", callback.host, callback.path),
            verifier: Secret::from(random()?),
            state: random()?,
            path: callback.path,
            port,
            kind: callback.kind,
            listeners,
            until: Instant::now() + USER_WAIT,
        })
    }

    pub(super) fn listens(&self) -> bool {
        !self.listeners.is_empty()
    }

    /// Returns the instructions for the user, who must paste the URL if there is no listener.
    pub(super) fn instructions(&self, usual: &str) -> String {
        if self.listens() {
            return usual.to_owned();
        }
        format!(
            "Port {} is in use, so the browser cannot return here. Sign in, then paste the URL that the browser ends at.",
            self.port
        )
    }

    /// Returns the URL for the browser: `page` with the parameters of the sign-in and `more`.
    pub(super) fn url(&self, page: &str, more: &[(&str, &str)]) -> String {
        let challenge = challenge(self.verifier.expose());
        let mut pairs = match self.kind {
            ResultKind::Code => vec![
                ("response_type", "code"),
                ("code_challenge", challenge.as_str()),
                ("code_challenge_method", "S256"),
            ],
            ResultKind::Token => vec![("response_type", "token")],
        };
        pairs.extend([("redirect_uri", self.redirect.as_str()), ("state", &self.state)]);
        pairs.extend(more);
        format!("{page}?{}", form(&pairs))
    }

    /// Returns the code from the browser or from the user.
    pub(super) async fn code(&self, pasted: impl Future<Output = String>) -> Result<String, Error> {
        self.result(pasted).await.map(|result| result.text)
    }

    /// Returns the result from the browser or from the user.
    pub(super) async fn result(&self, pasted: impl Future<Output = String>) -> Result<RedirectResult, Error> {
        let either = async {
            tokio::select! {
                called = self.wait_for_callback(), if self.listens() => called,
                text = pasted => self.parse_pasted(&text),
            }
        };
        let late = || Error::rejected("the user did not sign in within 5 minutes; start again");
        timeout_at(self.until, either).await.unwrap_or_else(|_| Err(late()))
    }

    async fn wait_for_callback(&self) -> Result<RedirectResult, Error> {
        let mut callers = JoinSet::new();
        loop {
            tokio::select! {
                accepted = accept(&self.listeners), if callers.len() < CALLERS_LIMIT => match accepted {
                    Ok(socket) => drop(callers.spawn(serve(socket, self.path, self.kind, self.state.clone()))),
                    // Too many open files. Some will be closed soon.
                    Err(_) => sleep(Duration::from_millis(100)).await,
                },
                Some(outcome) = callers.join_next() => {
                    if let Ok(Some(outcome)) = outcome {
                        return outcome;
                    }
                }
            }
        }
    }

    /// Parses a pasted URL, query or code.
    fn parse_pasted(&self, text: &str) -> Result<RedirectResult, Error> {
        let text = text.trim();
        let query = match Url::parse(text) {
            Ok(url) => match self.kind {
                ResultKind::Code => url.query().unwrap_or_default().to_owned(),
                ResultKind::Token => url.fragment().unwrap_or_default().to_owned(),
            },
            Err(_) if text.contains('=') => text.trim_start_matches('?').to_owned(),
            Err(_) => match text.split_once('#') {
                Some((code, state)) => form(&[(self.kind.name(), code), ("state", state)]),
                None => form(&[(self.kind.name(), text), ("state", &self.state)]),
            },
        };
        match answer(&query, self.kind, &self.state) {
            Reply::Result(brought) => Ok(brought),
            Reply::Denied(why) => Err(denied(&why)),
            Reply::Foreign | Reply::Incomplete => Err(Error::rejected(
                "the pasted text does not belong to this sign-in; start again and paste the URL that the browser ends at",
            )),
        }
    }
}

/// The meaning of a query.
enum Reply {
    Result(RedirectResult),
    Denied(String),
    /// It belongs to another sign-in.
    Foreign,
    /// The page was served, and its script has not posted the fragment yet.
    Incomplete,
}

fn answer(query: &str, kind: ResultKind, state: &str) -> Reply {
    let Ok(url) = Url::parse(&format!("http://callback/?{query}")) else { return Reply::Foreign };
    let get = |name_of_field: &str| {
        let found = url.query_pairs().find(|(name, _)| name == name_of_field);
        found.map(|(_, value)| value.into_owned()).filter(|value| !value.is_empty())
    };
    if get("state").as_deref() != Some(state) {
        return Reply::Foreign;
    }
    match (get("error"), get(kind.name())) {
        (Some(error), _) => Reply::Denied(get("error_description").unwrap_or(error)),
        (None, Some(text)) => Reply::Result(RedirectResult {
            text,
            life_seconds: get("expires_in").and_then(|life| life.parse().ok()),
        }),
        (None, None) => Reply::Foreign,
    }
}

fn denied(why: &str) -> Error {
    let why = cut(why, 200).replace(char::is_control, " ");
    Error::Auth { failure: Failure::new(format!("the sign-in was refused in the browser: {why}")) }
}

async fn accept(listeners: &[TcpListener]) -> std::io::Result<TcpStream> {
    let accepted = match listeners {
        [one, other, ..] => tokio::select! {
            accepted = one.accept() => accepted,
            accepted = other.accept() => accepted,
        },
        [one] => one.accept().await,
        [] => std::future::pending().await,
    };
    accepted.map(|(socket, _)| socket)
}

/// Handles one connection. Returns `None` if it is not the expected callback.
async fn serve(
    mut socket: TcpStream,
    path: &str,
    kind: ResultKind,
    state: String,
) -> Option<Result<RedirectResult, Error>> {
    let (head, body) = timeout(CALLER_WAIT, request(&mut socket)).await.ok()??;
    let mut words = head.split(' ');
    let (method, target) = (words.next()?, words.next()?);
    let (path_of_request, query) = target.split_once('?').unwrap_or((target, ""));
    // The fragment comes in a body, so that the browser's history does not contain it.
    let reply = match (kind, method) {
        (ResultKind::Token, "GET") if query.is_empty() => None,
        (ResultKind::Code | ResultKind::Token, "GET") => Some(query),
        (ResultKind::Token, "POST") => Some(body.as_str()),
        _ => return None,
    };
    let (status, text, outcome) = if path_of_request != path {
        ("404 Not Found", "Not found.", None)
    } else {
        match reply.map_or(Reply::Incomplete, |text| answer(text, kind, &state)) {
            Reply::Incomplete => ("200 OK", HAND_OVER, None),
            Reply::Result(code) => (
                "200 OK",
                "You are signed in. You can close this page and return to Codewright.",
                Some(Ok(code)),
            ),
            Reply::Denied(why) => {
                ("200 OK", "The sign-in was refused. You can close this page.", Some(Err(denied(&why))))
            }
            Reply::Foreign => ("400 Bad Request", "This sign-in does not belong to Codewright.", None),
        }
    };
    let body = format!("<!doctype html><meta charset=\"utf-8\"><title>Codewright</title><p>{text}</p>\n");
    let response = format!(
        "HTTP/1.1 {status}\r\ncontent-type: text/html; charset=utf-8\r\ncontent-length: {}\r\n\
         cache-control: no-store\r\nreferrer-policy: no-referrer\r\nconnection: close\r\n\r\n{body}",
        body.len()
    );
    let written = timeout(CALLER_WAIT, async {
        socket.write_all(response.as_bytes()).await?;
        socket.shutdown().await
    });
    // The code counts even if the page does not arrive.
    drop(written.await);
    outcome
}

/// Reads the head and the body of a request.
async fn request(socket: &mut TcpStream) -> Option<(String, String)> {
    let mut bytes = Vec::new();
    loop {
        if let Some(at) = bytes.windows(4).position(|end| end == b"\r\n\r\n") {
            let head = String::from_utf8(bytes[..at].to_vec()).ok()?;
            let length = head.lines().filter_map(|line| line.split_once(':'));
            let mut length = length.filter(|(name, _)| name.eq_ignore_ascii_case("content-length"));
            let length = length.next().map_or(Ok(0), |(_, value)| value.trim().parse::<usize>()).ok()?;
            if bytes.len() >= length.checked_add(at + 4)? {
                return Some((head, String::from_utf8(bytes.split_off(at + 4)).ok()?));
            }
        }
        let read = socket.read_buf(&mut bytes).await.ok()?;
        if read == 0 || bytes.len() > REQUEST_LIMIT_BYTES {
            return None;
        }
    }
}

fn random() -> Result<String, Error> {
    let mut bytes = [0; RANDOM_BYTES];
    let filled = SystemRandom::new().fill(&mut bytes);
    filled.map_err(|_| Error::rejected("the system returned no random numbers"))?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

fn challenge(verifier: &str) -> String {
    URL_SAFE_NO_PAD.encode(digest(&SHA256, verifier.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_challenge_matches_the_standard() {
        // RFC 7636, appendix B.
        let verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
        assert_eq!(challenge(verifier), "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
        assert_ne!(random().unwrap(), random().unwrap());
    }

    #[tokio::test]
    async fn a_pasted_answer_is_parsed_and_its_state_checked() {
        let callback = Callback::to("127.0.0.1", 0, "/callback");
        let browser = Browser::open(&callback).await.unwrap();
        let state = &browser.state;
        for text in [
            "abc".to_owned(),
            format!(" {}?code=abc&state={state}\n", browser.redirect),
            format!("code=abc&state={state}"),
            format!("abc#{state}"),
        ] {
            assert_eq!(browser.parse_pasted(&text).unwrap().text, "abc", "{text}");
        }
        for text in
            ["http://localhost/?code=abc&state=other", "abc#other", "code=abc", "http://localhost/", ""]
        {
            let error = browser.parse_pasted(text).unwrap_err().to_string();
            assert!(error.contains("does not belong to this sign-in"), "{text}: {error}");
        }
        let fragment = Browser::open(&Callback::with_token("localhost", 0, "/callback")).await.unwrap();
        let text = format!("{}#access_token=abc&expires_in=60&state={}", fragment.redirect, fragment.state);
        let expected = RedirectResult { text: "abc".to_owned(), life_seconds: Some(60) };
        assert_eq!(fragment.parse_pasted(&text).unwrap(), expected);
        let text = format!("error=access_denied&state={state}");
        assert!(browser.parse_pasted(&text).unwrap_err().to_string().contains("access_denied"));
    }
}
