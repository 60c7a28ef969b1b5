//! A sign-in in a browser that comes back to this machine: PKCE, a state, and a listener.
//!
//! The listener is on loopback only, takes one callback that knows the state, and ends with the
//! sign-in. Where no browser reaches it, the address that the browser was sent to can be pasted.

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

use crate::client::exchange::form;
use crate::error::cut;
use crate::{Error, Failure, Secret};

/// How long the user may take.
const USER_WAIT: Duration = Duration::from_secs(5 * 60);
/// How long one caller of the listener may take.
const CALLER_WAIT: Duration = Duration::from_secs(10);
/// Callers that are heard at once; browsers open a few connections.
const CALLERS_LIMIT: usize = 16;
/// Hands over what stands behind the `#`, and takes it out of the address.
const HAND_OVER: &str = "Signing in to Codewright …</p><script>\
const told=location.hash.slice(1);history.replaceState(null,'',location.pathname);\
fetch(location.pathname,{method:'POST',body:told}).then(answer=>answer.text())\
.then(page=>{document.documentElement.innerHTML=page})</script><p>";
/// Bytes a request may have.
const REQUEST_LIMIT_BYTES: usize = 16 * 1024;
const RANDOM_BYTES: usize = 32;

/// A sign-in that waits for a browser.
pub(super) struct Browser {
    pub(super) redirect: String,
    pub(super) verifier: Secret,
    state: String,
    path: &'static str,
    port: u16,
    bears: Bears,
    listeners: Vec<TcpListener>,
    until: Instant,
}

/// Where the browser comes back to, and with what.
pub(super) struct Callback {
    host: &'static str,
    /// 0 for any.
    port: u16,
    path: &'static str,
    bears: Bears,
}

/// What a browser brings back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bears {
    /// A code, in the query.
    Code,
    /// The token itself, behind the `#`: only a script on the page can read it there.
    Token,
}

/// What a browser brought.
#[derive(PartialEq, Eq)]
#[cfg_attr(test, derive(Debug))]
pub(super) struct Brought {
    /// The code or the token.
    pub(super) text: String,
    /// How long a token lasts.
    pub(super) life_seconds: Option<u64>,
}

impl Callback {
    /// A browser brings a code there.
    pub(super) const fn to(host: &'static str, port: u16, path: &'static str) -> Self {
        Self { host, port, path, bears: Bears::Code }
    }

    /// A browser brings a token there.
    pub(super) const fn with_token(host: &'static str, port: u16, path: &'static str) -> Self {
        Self { host, port, path, bears: Bears::Token }
    }
}

impl Bears {
    fn name(self) -> &'static str {
        match self {
            Self::Code => "code",
            Self::Token => "access_token",
        }
    }
}

impl Browser {
    /// Listens; where the port is taken, the user can still paste.
    pub(super) async fn open(callback: &Callback) -> Result<Self, Error> {
        let mut listeners = Vec::new();
        let mut port = callback.port;
        if let Ok(listener) = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).await {
            port = listener.local_addr().map_or(port, |address| address.port());
            listeners.push(listener);
            // `localhost` is either; a machine without the newer one needs the older alone.
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
            bears: callback.bears,
            listeners,
            until: Instant::now() + USER_WAIT,
        })
    }

    pub(super) fn listens(&self) -> bool {
        !self.listeners.is_empty()
    }

    /// What the user is told to do, and what else where the browser cannot come back.
    pub(super) fn instructions(&self, usual: &str) -> String {
        if self.listens() {
            return usual.to_owned();
        }
        format!(
            "Port {} is in use, so the browser cannot come back here: sign in, then paste the address it ends at.",
            self.port
        )
    }

    /// The address for the browser: `page` with what the sign-in needs and `more`.
    pub(super) fn url(&self, page: &str, more: &[(&str, &str)]) -> String {
        let challenge = challenge(self.verifier.expose());
        let mut pairs = match self.bears {
            Bears::Code => vec![
                ("response_type", "code"),
                ("code_challenge", challenge.as_str()),
                ("code_challenge_method", "S256"),
            ],
            Bears::Token => vec![("response_type", "token")],
        };
        pairs.extend([("redirect_uri", self.redirect.as_str()), ("state", &self.state)]);
        pairs.extend(more);
        format!("{page}?{}", form(&pairs))
    }

    /// The code the browser brings back, or the user.
    pub(super) async fn code(&self, pasted: impl Future<Output = String>) -> Result<String, Error> {
        self.brought(pasted).await.map(|brought| brought.text)
    }

    /// What the browser brings back, or the user.
    pub(super) async fn brought(&self, pasted: impl Future<Output = String>) -> Result<Brought, Error> {
        let either = async {
            tokio::select! {
                called = self.called(), if self.listens() => called,
                text = pasted => self.pasted(&text),
            }
        };
        let late = || Error::rejected("nobody signed in within 5 minutes; start again");
        timeout_at(self.until, either).await.unwrap_or_else(|_| Err(late()))
    }

    async fn called(&self) -> Result<Brought, Error> {
        let mut callers = JoinSet::new();
        loop {
            tokio::select! {
                accepted = accept(&self.listeners), if callers.len() < CALLERS_LIMIT => match accepted {
                    Ok(socket) => drop(callers.spawn(hear(socket, self.path, self.bears, self.state.clone()))),
                    // Too many open files: some will be closed.
                    Err(_) => sleep(Duration::from_millis(100)).await,
                },
                Some(heard) = callers.join_next() => {
                    if let Ok(Some(outcome)) = heard {
                        return outcome;
                    }
                }
            }
        }
    }

    /// Reads the whole address, its query, or a bare code.
    fn pasted(&self, text: &str) -> Result<Brought, Error> {
        let text = text.trim();
        let query = match Url::parse(text) {
            Ok(url) => match self.bears {
                Bears::Code => url.query().unwrap_or_default().to_owned(),
                Bears::Token => url.fragment().unwrap_or_default().to_owned(),
            },
            Err(_) if text.contains('=') => text.trim_start_matches('?').to_owned(),
            Err(_) => match text.split_once('#') {
                Some((code, state)) => form(&[(self.bears.name(), code), ("state", state)]),
                None => form(&[(self.bears.name(), text), ("state", &self.state)]),
            },
        };
        match answer(&query, self.bears, &self.state) {
            Heard::Brought(brought) => Ok(brought),
            Heard::Denied(why) => Err(denied(&why)),
            Heard::Foreign | Heard::Waiting => Err(Error::rejected(
                "what was pasted does not belong to this sign-in; start again and paste the address the browser ends at",
            )),
        }
    }
}

/// What a query says.
enum Heard {
    Brought(Brought),
    Denied(String),
    /// Not the sign-in that waits.
    Foreign,
    /// The page is there, and its script has yet to tell.
    Waiting,
}

fn answer(query: &str, bears: Bears, state: &str) -> Heard {
    let Ok(url) = Url::parse(&format!("http://callback/?{query}")) else { return Heard::Foreign };
    let get = |wanted: &str| {
        let found = url.query_pairs().find(|(name, _)| name == wanted);
        found.map(|(_, value)| value.into_owned()).filter(|value| !value.is_empty())
    };
    if get("state").as_deref() != Some(state) {
        return Heard::Foreign;
    }
    match (get("error"), get(bears.name())) {
        (Some(error), _) => Heard::Denied(get("error_description").unwrap_or(error)),
        (None, Some(text)) => Heard::Brought(Brought {
            text,
            life_seconds: get("expires_in").and_then(|life| life.parse().ok()),
        }),
        (None, None) => Heard::Foreign,
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

/// Hears one caller; nothing if it was not the browser that is waited for.
async fn hear(
    mut socket: TcpStream,
    path: &str,
    bears: Bears,
    state: String,
) -> Option<Result<Brought, Error>> {
    let (head, body) = timeout(CALLER_WAIT, request(&mut socket)).await.ok()??;
    let mut words = head.split(' ');
    let (method, target) = (words.next()?, words.next()?);
    let (asked, query) = target.split_once('?').unwrap_or((target, ""));
    // What stands behind the `#` comes in a body, so that it is in no address that a browser keeps.
    let told = match (bears, method) {
        (Bears::Token, "GET") if query.is_empty() => None,
        (Bears::Code | Bears::Token, "GET") => Some(query),
        (Bears::Token, "POST") => Some(body.as_str()),
        _ => return None,
    };
    let (status, text, outcome) = if asked != path {
        ("404 Not Found", "There is nothing here.", None)
    } else {
        match told.map_or(Heard::Waiting, |told| answer(told, bears, &state)) {
            Heard::Waiting => ("200 OK", HAND_OVER, None),
            Heard::Brought(code) => (
                "200 OK",
                "Codewright has what it was waiting for. You can close this page and go back to it.",
                Some(Ok(code)),
            ),
            Heard::Denied(why) => {
                ("200 OK", "The sign-in was refused. You can close this page.", Some(Err(denied(&why))))
            }
            Heard::Foreign => ("400 Bad Request", "This is not the sign-in that Codewright waits for.", None),
        }
    };
    let body = format!("<!doctype html><meta charset=\"utf-8\"><title>Codewright</title><p>{text}</p>\n");
    let response = format!(
        "HTTP/1.1 {status}\r\ncontent-type: text/html; charset=utf-8\r\ncontent-length: {}\r\n\
         cache-control: no-store\r\nreferrer-policy: no-referrer\r\nconnection: close\r\n\r\n{body}",
        body.len()
    );
    let told = timeout(CALLER_WAIT, async {
        socket.write_all(response.as_bytes()).await?;
        socket.shutdown().await
    });
    // The code counts, whether or not the page arrives.
    drop(told.await);
    outcome
}

/// The head and the body of a request.
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
    filled.map_err(|_| Error::rejected("the system gives no random numbers"))?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

fn challenge(verifier: &str) -> String {
    URL_SAFE_NO_PAD.encode(digest(&SHA256, verifier.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_challenge_is_that_of_the_standard() {
        // RFC 7636, appendix B.
        let verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
        assert_eq!(challenge(verifier), "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
        assert_ne!(random().unwrap(), random().unwrap());
    }

    #[tokio::test]
    async fn a_pasted_answer_is_read_in_every_form_and_held_against_the_state() {
        let callback = Callback::to("127.0.0.1", 0, "/callback");
        let browser = Browser::open(&callback).await.unwrap();
        let state = &browser.state;
        for text in [
            "abc".to_owned(),
            format!(" {}?code=abc&state={state}\n", browser.redirect),
            format!("code=abc&state={state}"),
            format!("abc#{state}"),
        ] {
            assert_eq!(browser.pasted(&text).unwrap().text, "abc", "{text}");
        }
        for text in
            ["http://localhost/?code=abc&state=other", "abc#other", "code=abc", "http://localhost/", ""]
        {
            let error = browser.pasted(text).unwrap_err().to_string();
            assert!(error.contains("does not belong to this sign-in"), "{text}: {error}");
        }
        let fragment = Browser::open(&Callback::with_token("localhost", 0, "/callback")).await.unwrap();
        let text = format!("{}#access_token=abc&expires_in=60&state={}", fragment.redirect, fragment.state);
        let expected = Brought { text: "abc".to_owned(), life_seconds: Some(60) };
        assert_eq!(fragment.pasted(&text).unwrap(), expected);
        let text = format!("error=access_denied&state={state}");
        assert!(browser.pasted(&text).unwrap_err().to_string().contains("access_denied"));
    }
}
