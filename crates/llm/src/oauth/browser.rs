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
/// Bytes the head of a request may have.
const HEAD_LIMIT_BYTES: usize = 16 * 1024;
const RANDOM_BYTES: usize = 32;

/// A sign-in that waits for a browser.
pub(super) struct Browser {
    pub(super) redirect: String,
    pub(super) verifier: Secret,
    state: String,
    path: &'static str,
    listeners: Vec<TcpListener>,
    until: Instant,
}

/// Where the browser comes back to.
pub(super) struct Callback {
    pub(super) host: &'static str,
    /// 0 for any.
    pub(super) port: u16,
    pub(super) path: &'static str,
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
            listeners,
            until: Instant::now() + USER_WAIT,
        })
    }

    pub(super) fn listens(&self) -> bool {
        !self.listeners.is_empty()
    }

    /// The address for the browser: `page` with what the sign-in needs and `more`.
    pub(super) fn url(&self, page: &str, more: &[(&str, &str)]) -> String {
        let challenge = challenge(self.verifier.expose());
        let mut pairs = vec![
            ("response_type", "code"),
            ("redirect_uri", &self.redirect),
            ("code_challenge", &challenge),
            ("code_challenge_method", "S256"),
            ("state", &self.state),
        ];
        pairs.extend(more);
        format!("{page}?{}", form(&pairs))
    }

    /// The code the browser brings back, or the user.
    pub(super) async fn code(&self, pasted: impl Future<Output = String>) -> Result<String, Error> {
        let either = async {
            tokio::select! {
                called = self.called(), if self.listens() => called,
                text = pasted => self.pasted(&text),
            }
        };
        let late = || Error::rejected("nobody signed in within 5 minutes; start again");
        timeout_at(self.until, either).await.unwrap_or_else(|_| Err(late()))
    }

    async fn called(&self) -> Result<String, Error> {
        let mut callers = JoinSet::new();
        loop {
            tokio::select! {
                accepted = accept(&self.listeners), if callers.len() < CALLERS_LIMIT => match accepted {
                    Ok(socket) => drop(callers.spawn(hear(socket, self.path, self.state.clone()))),
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
    fn pasted(&self, text: &str) -> Result<String, Error> {
        let text = text.trim();
        let query = match Url::parse(text) {
            Ok(url) => url.query().unwrap_or_default().to_owned(),
            Err(_) if text.contains('=') => text.trim_start_matches('?').to_owned(),
            Err(_) => match text.split_once('#') {
                Some((code, state)) => form(&[("code", code), ("state", state)]),
                None => form(&[("code", text), ("state", &self.state)]),
            },
        };
        match answer(&query, &self.state) {
            Heard::Code(code) => Ok(code),
            Heard::Denied(why) => Err(denied(&why)),
            Heard::Foreign => Err(Error::rejected(
                "what was pasted does not belong to this sign-in; start again and paste the address the browser ends at",
            )),
        }
    }
}

/// What a query says.
#[derive(Debug, PartialEq)]
enum Heard {
    Code(String),
    Denied(String),
    /// Not the sign-in that waits.
    Foreign,
}

fn answer(query: &str, state: &str) -> Heard {
    let Ok(url) = Url::parse(&format!("http://callback/?{query}")) else { return Heard::Foreign };
    let get = |wanted: &str| {
        let found = url.query_pairs().find(|(name, _)| name == wanted);
        found.map(|(_, value)| value.into_owned()).filter(|value| !value.is_empty())
    };
    if get("state").as_deref() != Some(state) {
        return Heard::Foreign;
    }
    match (get("error"), get("code")) {
        (Some(error), _) => Heard::Denied(get("error_description").unwrap_or(error)),
        (None, Some(code)) => Heard::Code(code),
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
async fn hear(mut socket: TcpStream, path: &str, state: String) -> Option<Result<String, Error>> {
    let head = timeout(CALLER_WAIT, head(&mut socket)).await.ok()??;
    let target = head.strip_prefix("GET ").and_then(|rest| rest.split(' ').next());
    let (asked, query) = target.map(|target| target.split_once('?').unwrap_or((target, "")))?;
    let (status, text, outcome) = if asked != path {
        ("404 Not Found", "There is nothing here.", None)
    } else {
        match answer(query, &state) {
            Heard::Code(code) => (
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

async fn head(socket: &mut TcpStream) -> Option<String> {
    let mut bytes = Vec::new();
    while !bytes.windows(4).any(|end| end == b"\r\n\r\n") {
        let read = socket.read_buf(&mut bytes).await.ok()?;
        if read == 0 || bytes.len() > HEAD_LIMIT_BYTES {
            return None;
        }
    }
    String::from_utf8(bytes).ok()
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
        let callback = Callback { host: "127.0.0.1", port: 0, path: "/callback" };
        let browser = Browser::open(&callback).await.unwrap();
        let state = &browser.state;
        for text in [
            "abc".to_owned(),
            format!(" {}?code=abc&state={state}\n", browser.redirect),
            format!("code=abc&state={state}"),
            format!("abc#{state}"),
        ] {
            assert_eq!(browser.pasted(&text).unwrap(), "abc", "{text}");
        }
        for text in
            ["http://localhost/?code=abc&state=other", "abc#other", "code=abc", "http://localhost/", ""]
        {
            let error = browser.pasted(text).unwrap_err().to_string();
            assert!(error.contains("does not belong to this sign-in"), "{text}: {error}");
        }
        let text = format!("error=access_denied&state={state}");
        assert!(browser.pasted(&text).unwrap_err().to_string().contains("access_denied"));
    }
}
