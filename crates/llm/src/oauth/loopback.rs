//! A listener on this machine that a browser is redirected to at the end of a sign-in.
//!
//! It is bound to loopback and accepts one callback with the right state. If the browser cannot reach it, the user can
//! paste the URL of the redirect.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use reqwest::Url;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::error::cut;
use crate::transport::exchange::form;
use crate::{Error, Failure};

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

/// A listener for one redirect.
#[derive(Debug)]
pub struct Loopback {
    /// The URL that the browser returns to.
    pub redirect: String,
    path: String,
    pub(super) port: u16,
    kind: ResultKind,
    listeners: Vec<TcpListener>,
}

/// The result that the redirect carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ResultKind {
    /// A code in the query.
    Code,
    /// The token itself in the fragment, which only a script on the page can read.
    Token,
}

/// The result of a redirect.
#[derive(PartialEq, Eq)]
#[cfg_attr(test, derive(Debug))]
pub struct RedirectResult {
    /// The code or the token.
    pub text: String,
    /// The lifetime of a token.
    pub life_seconds: Option<u64>,
    /// The server that redirected, if it names itself.
    pub issuer: Option<String>,
}

impl ResultKind {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Code => "code",
            Self::Token => "access_token",
        }
    }
}

impl Loopback {
    /// Listens at a URL whose host is this machine. If its port is in use, or the host is another machine, the user can
    /// still paste the URL.
    pub async fn at(url: &Url) -> Self {
        let port = url.port_or_known_default().unwrap_or_default();
        let is_own = url.scheme() == "http"
            && url.host_str().is_some_and(|host| matches!(host, "127.0.0.1" | "localhost" | "[::1]"));
        let (port, listeners) = if is_own { listeners(port).await } else { (port, Vec::new()) };
        let mut url = url.clone();
        if !listeners.is_empty() && url.set_port(Some(port)).is_err() {
            return Self {
                redirect: url.to_string(),
                path: String::new(),
                port,
                kind: ResultKind::Code,
                listeners: Vec::new(),
            };
        }
        let path = url.path().to_owned();
        Self { redirect: url.to_string(), path, port, kind: ResultKind::Code, listeners }
    }

    /// Listens at a port, or any port if it is 0.
    pub(super) async fn open(host: &str, port: u16, path: &str, kind: ResultKind) -> Result<Self, Error> {
        let (bound, listeners) = listeners(port).await;
        if bound == 0 {
            return Err(Error::rejected("cannot listen on 127.0.0.1 for the browser's answer"));
        }
        let redirect = format!("http://{host}:{bound}{path}");
        Ok(Self { redirect, path: path.to_owned(), port: bound, kind, listeners })
    }

    /// Returns whether a browser on this machine can return here.
    #[must_use]
    pub fn listens(&self) -> bool {
        !self.listeners.is_empty()
    }

    /// Waits for the redirect with this state. The caller sets the time limit.
    ///
    /// # Errors
    ///
    /// Fails if the user or the server refused.
    pub async fn wait(&self, state: &str) -> Result<RedirectResult, Error> {
        let mut callers = JoinSet::new();
        loop {
            tokio::select! {
                accepted = accept(&self.listeners), if callers.len() < CALLERS_LIMIT => match accepted {
                    Ok(socket) => drop(callers.spawn(serve(socket, self.path.clone(), self.kind, state.to_owned()))),
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

    /// Parses a pasted text like [`parse_pasted`].
    pub(super) fn parse_pasted(&self, text: &str, state: &str) -> Result<RedirectResult, Error> {
        parse(text, self.kind, state)
    }
}

/// Parses a URL that the user pasted, its query, or only the code.
///
/// # Errors
///
/// Fails if the text belongs to another sign-in, or says that the user or the server refused.
pub fn parse_pasted(text: &str, state: &str) -> Result<RedirectResult, Error> {
    parse(text, ResultKind::Code, state)
}

fn parse(text: &str, kind: ResultKind, state: &str) -> Result<RedirectResult, Error> {
    let text = text.trim();
    let query = match Url::parse(text) {
        Ok(url) => match kind {
            ResultKind::Code => url.query().unwrap_or_default().to_owned(),
            ResultKind::Token => url.fragment().unwrap_or_default().to_owned(),
        },
        Err(_) if text.contains('=') => text.trim_start_matches('?').to_owned(),
        Err(_) => match text.split_once('#') {
            Some((code, state)) => form(&[(kind.name(), code), ("state", state)]),
            None => form(&[(kind.name(), text), ("state", state)]),
        },
    };
    match answer(&query, kind, state) {
        Reply::Result(result) => Ok(result),
        Reply::Denied(why) => Err(denied(&why)),
        Reply::Foreign | Reply::Incomplete => Err(Error::rejected(
            "the pasted text does not belong to this sign-in; start again and paste the URL that the browser ends at",
        )),
    }
}

/// Binds a port on loopback. There are no listeners if it is in use.
async fn listeners(port: u16) -> (u16, Vec<TcpListener>) {
    let mut listeners = Vec::new();
    let Ok(listener) = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).await else {
        return (port, listeners);
    };
    let port = listener.local_addr().map_or(port, |address| address.port());
    listeners.push(listener);
    // `localhost` may mean IPv4 or IPv6. A machine without IPv6 uses IPv4 alone.
    listeners.extend(TcpListener::bind(SocketAddr::from((Ipv6Addr::LOCALHOST, port))).await);
    (port, listeners)
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
            issuer: get("iss"),
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
    path: String,
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
