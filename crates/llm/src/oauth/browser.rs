//! A sign-in in a browser that redirects to this machine, with PKCE and a `state`.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::digest::{SHA256, digest};
use ring::rand::{SecureRandom as _, SystemRandom};
use tokio::time::{Instant, timeout_at};

use super::loopback::{Loopback, RedirectResult, ResultKind};
use crate::transport::exchange::form;
use crate::{Error, Secret};

/// Time limit of the user.
const USER_WAIT: Duration = Duration::from_secs(5 * 60);
const RANDOM_BYTES: usize = 32;

/// A sign-in that waits for a browser.
pub(super) struct Browser {
    pub(super) redirect: String,
    pub(super) verifier: Secret,
    state: String,
    kind: ResultKind,
    loopback: Loopback,
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

impl Browser {
    /// Starts the listener. If the port is in use, the user can still paste the URL.
    pub(super) async fn open(callback: &Callback) -> Result<Self, Error> {
        let Callback { host, port, path, kind } = callback;
        let loopback = Loopback::open(host, *port, path, *kind).await?;
        Ok(Self {
            redirect: loopback.redirect.clone(),
            verifier: Secret::from(random()?),
            state: random()?,
            kind: *kind,
            loopback,
            until: Instant::now() + USER_WAIT,
        })
    }

    pub(super) fn listens(&self) -> bool {
        self.loopback.listens()
    }

    /// Returns the instructions for the user, who must paste the URL if there is no listener.
    pub(super) fn instructions(&self, usual: &str) -> String {
        if self.listens() {
            return usual.to_owned();
        }
        format!(
            "Port {} is in use, so the browser cannot return here. Sign in, then paste the URL that the browser ends at.",
            self.loopback.port
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
                called = self.loopback.wait(&self.state), if self.listens() => called,
                text = pasted => self.loopback.parse_pasted(&text, &self.state),
            }
        };
        let late = || Error::rejected("the user did not sign in within 5 minutes; start again");
        timeout_at(self.until, either).await.unwrap_or_else(|_| Err(late()))
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
            assert_eq!(browser.loopback.parse_pasted(&text, state).unwrap().text, "abc", "{text}");
        }
        for text in
            ["http://localhost/?code=abc&state=other", "abc#other", "code=abc", "http://localhost/", ""]
        {
            let error = browser.loopback.parse_pasted(text, state).unwrap_err().to_string();
            assert!(error.contains("does not belong to this sign-in"), "{text}: {error}");
        }
        let fragment = Browser::open(&Callback::with_token("localhost", 0, "/callback")).await.unwrap();
        let text = format!("{}#access_token=abc&expires_in=60&state={}", fragment.redirect, fragment.state);
        let expected = RedirectResult { text: "abc".to_owned(), issuer: None, life_seconds: Some(60) };
        assert_eq!(fragment.loopback.parse_pasted(&text, &fragment.state).unwrap(), expected);
        let text = format!("error=access_denied&state={state}");
        assert!(
            browser.loopback.parse_pasted(&text, state).unwrap_err().to_string().contains("access_denied")
        );
    }
}
