//! Signatures of requests between servers.
//!
//! A signature covers the method, the target, the headers that matter, the body, the receiving process, the time of the
//! database's clock and a random number. The secret itself is never sent. A signature counts once and for a short time.

use std::collections::{HashSet, VecDeque};
use std::fmt::Write as _;

use axum::body::Bytes;
use codewright_engine::NodeView;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Uri};
use ring::digest::{SHA256, digest};
use ring::hmac;
use ring::rand::{SecureRandom as _, SystemRandom};

use crate::Error;

/// How far the time of a signature may be away, in milliseconds.
const WINDOW_MS: u64 = 30_000;
/// How many signatures are remembered. If there are more in the time that they count, further ones are rejected.
const MAX_NONCES: usize = 200_000;
/// The maximum length of a signature's fields together.
const MAX_BYTES: usize = 1024;
/// The headers that a signature covers. The receiver adds others, such as the id of the request.
const HEADERS: [&str; 7] = [
    "authorization",
    "content-type",
    "last-event-id",
    super::SENDER,
    "x-opencode-directory",
    "x-opencode-ticket",
    "x-opencode-workspace",
];

/// The secret that the servers have in common.
pub(crate) struct Secret(hmac::Key);

impl Secret {
    pub(crate) fn new(text: &str) -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, text.as_bytes()))
    }

    /// Signs a request to another server.
    pub(super) fn sign(&self, request: &Unsigned<'_>, view: &NodeView) -> Option<HeaderValue> {
        let mut nonce = [0; 16];
        SystemRandom::new().fill(&mut nonce).ok()?;
        let Unsigned { to, body, .. } = *request;
        let (from, time, nonce) = (&view.members.own, view.now_ms, hex(&nonce));
        let head = format!(
            "to={to};from={from};time={time};nonce={nonce};body={}",
            hex(digest(&SHA256, body).as_ref())
        );
        let mac = hmac::sign(&self.0, request.text(&head).as_bytes());
        HeaderValue::try_from(format!("{head};mac={}", hex(mac.as_ref()))).ok()
    }
}

/// A request that is about to be signed.
#[derive(Clone, Copy)]
pub(super) struct Unsigned<'a> {
    pub(super) method: &'a Method,
    pub(super) uri: &'a Uri,
    pub(super) headers: &'a HeaderMap,
    /// The id of the receiving process.
    pub(super) to: &'a str,
    pub(super) body: &'a [u8],
}

impl Unsigned<'_> {
    fn text(&self, head: &str) -> String {
        text(self.method, self.uri, self.headers, head)
    }
}

/// The text that is signed.
fn text(method: &Method, uri: &Uri, headers: &HeaderMap, head: &str) -> String {
    let target = uri.path_and_query().map_or("/", |target| target.as_str());
    let mut text = format!("codewright node 1\n{method}\n{target}\n{head}\n");
    for name in HEADERS {
        for value in headers.get_all(name) {
            // Hexadecimal, because a value may have any bytes.
            text.push_str(name);
            text.push(':');
            text.push_str(&hex(value.as_bytes()));
            text.push('\n');
        }
    }
    text
}

/// A signature with the text that it signs.
pub(super) struct Claim {
    to: String,
    nonce: String,
    time_ms: u64,
    body: String,
    mac: Vec<u8>,
    text: String,
}

impl Claim {
    /// Reads the signature of a request. Returns `None` if it has another form.
    pub(super) fn read(value: &HeaderValue, parts: &Parts) -> Option<Self> {
        let value = value.to_str().ok().filter(|value| value.len() <= MAX_BYTES)?;
        let (head, mac) = value.rsplit_once(";mac=")?;
        let mut fields = head.split(';').map(|field| field.split_once('='));
        let mut field = |name: &str| {
            let (key, value) = fields.next()??;
            (key == name).then(|| value.to_owned())
        };
        let (to, _from, time, nonce, body) =
            (field("to")?, field("from")?, field("time")?, field("nonce")?, field("body")?);
        let text = text(&parts.method, &parts.uri, &parts.headers, head);
        Some(Self { to, nonce, time_ms: time.parse().ok()?, body, mac: unhex(mac)?, text })
    }

    /// Checks everything except the body.
    pub(super) fn check(&self, secret: &Secret, view: &NodeView) -> Result<(), Error> {
        // In constant time.
        hmac::verify(&secret.0, self.text.as_bytes(), &self.mac).map_err(|_| Error::Unauthorized)?;
        if self.to != view.members.own || self.time_ms.abs_diff(view.now_ms) > WINDOW_MS {
            return Err(Error::Unauthorized);
        }
        Ok(())
    }

    pub(super) fn check_body(&self, body: &Bytes) -> Result<(), Error> {
        if hex(digest(&SHA256, body).as_ref()) == self.body { Ok(()) } else { Err(Error::Unauthorized) }
    }
}

/// The signatures that were used lately.
#[derive(Default)]
pub(super) struct Nonces {
    known: HashSet<String>,
    /// In the order of their arrival, each with the time until which it is remembered.
    order: VecDeque<(u64, String)>,
}

impl Nonces {
    /// Remembers a signature.
    ///
    /// # Errors
    ///
    /// Fails if it was used before, and if too many are remembered.
    pub(super) fn add(&mut self, claim: &Claim, now_ms: u64) -> Result<(), Error> {
        while self.order.front().is_some_and(|(until, _)| *until < now_ms) {
            if let Some((_, nonce)) = self.order.pop_front() {
                self.known.remove(&nonce);
            }
        }
        if self.known.len() >= MAX_NONCES {
            return Err(Error::Full);
        }
        if !self.known.insert(claim.nonce.clone()) {
            return Err(Error::Unauthorized);
        }
        self.order.push_back((now_ms + 2 * WINDOW_MS, claim.nonce.clone()));
        Ok(())
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        // Writing to a string never fails.
        let _: std::fmt::Result = write!(text, "{byte:02x}");
        text
    })
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let bytes = text.as_bytes();
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let pairs = bytes.chunks(2).map(|pair| match *pair {
        [high, low] => Some((digit(high)? * 16 + digit(low)?) as u8),
        _ => None,
    });
    pairs.collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use codewright_engine::Members;
    use http::Request;

    use super::*;

    fn view(own: &str, now_ms: u64) -> NodeView {
        let members = Members { own: own.to_owned(), now_ms, ..Members::default() };
        NodeView { members: Arc::new(members), now_ms }
    }

    fn request(target: &str, directory: &str) -> Parts {
        let request = Request::post(target).header("x-opencode-directory", directory);
        request.body(()).unwrap().into_parts().0
    }

    fn signed(secret: &str, parts: &Parts, to: &str, body: &[u8]) -> HeaderValue {
        let (method, uri, headers) = (&parts.method, &parts.uri, &parts.headers);
        let unsigned = Unsigned { method, uri, headers, to, body };
        Secret::new(secret).sign(&unsigned, &view("a", 100_000)).unwrap()
    }

    #[test]
    fn a_signature_covers_the_request_and_its_receiver() {
        let parts = request("/session/x?y=1", "/p");
        let header = signed("secret", &parts, "b", b"{}");
        let check = |secret: &str, parts: &Parts, view: &NodeView| {
            Claim::read(&header, parts).is_some_and(|claim| claim.check(&Secret::new(secret), view).is_ok())
        };
        assert!(check("secret", &parts, &view("b", 100_000)));
        assert!(check("secret", &parts, &view("b", 129_000)));
        assert!(!check("other", &parts, &view("b", 100_000)));
        assert!(!check("secret", &parts, &view("c", 100_000)), "another receiver");
        assert!(!check("secret", &parts, &view("b", 131_000)), "too late");
        assert!(!check("secret", &parts, &view("b", 69_000)), "too early");
        assert!(!check("secret", &request("/session/x?y=2", "/p"), &view("b", 100_000)), "another target");
        assert!(!check("secret", &request("/session/x?y=1", "/q"), &view("b", 100_000)), "another header");
        let claim = Claim::read(&header, &parts).unwrap();
        assert!(claim.check_body(&Bytes::from_static(b"{}")).is_ok());
        assert!(claim.check_body(&Bytes::from_static(b"[]")).is_err());
        assert!(!header.to_str().unwrap().contains("secret"));
    }

    #[test]
    fn a_signature_counts_once() {
        let parts = request("/", "/p");
        let header = signed("secret", &parts, "b", b"");
        let claim = Claim::read(&header, &parts).unwrap();
        let mut nonces = Nonces::default();
        assert!(nonces.add(&claim, 100_000).is_ok());
        assert!(nonces.add(&claim, 130_000).is_err());
        // It is forgotten when its time is over in any case.
        assert!(nonces.add(&claim, 100_000 + 2 * WINDOW_MS + 1).is_ok());
    }

    #[test]
    fn other_texts_are_not_signatures() {
        let parts = request("/", "/p");
        for text in ["", "mac=", ";mac=", "to=b;mac=00", "to=b;from=a;time=x;nonce=1;body=0;mac=00"] {
            assert!(Claim::read(&HeaderValue::from_static(text), &parts).is_none(), "{text}");
        }
        assert_eq!(unhex("0aff"), Some(vec![10, 255]));
        assert_eq!((unhex("0"), unhex("zz")), (None, None));
    }
}
