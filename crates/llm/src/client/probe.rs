//! The cheapest request to a provider: whether it can be reached, and whether it accepts the key.
//!
//! The list of models costs nothing. Some providers show it to everybody, so it is requested without the key at the
//! same time: a list that needs no key proves nothing about the key.

use std::time::Duration;

use reqwest::header::{AUTHORIZATION, DATE, HeaderMap};
use tokio::time::Instant;

use super::{Client, Outgoing, auth, endpoint, error_answer, headers};
use crate::error::cut;
use crate::transport::redacted;
use crate::{Error, Model, Protocol, Request};

/// Headers with credentials, which the second request leaves out.
const KEYS: [&str; 4] = ["x-api-key", "api-key", "x-goog-api-key", "cf-aig-authorization"];
/// Providers whose list of models is public, with a request that needs the key.
const KEY_PATHS: [(&str, &str); 2] = [("openrouter", "key"), ("vercel", "credits")];

/// The result of a probe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Probe {
    /// What the provider says about the key.
    pub verdict: Verdict,
    /// The server's clock, as it writes it in the header `date`.
    pub date: Option<String>,
    /// The address of the request, without secrets.
    pub url: String,
}

/// What a provider says about a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The key is accepted.
    Accepted,
    /// The provider refuses the key, with this message.
    Refused(String),
    /// The server answers, but the answer says nothing about the key, for this reason.
    Unchecked(String),
    /// The server cannot be reached, for this reason.
    Unreachable(String),
}

impl Client {
    /// Asks the provider of `model` whether it accepts the key, within `timeout`. Costs nothing.
    pub async fn probe(&self, model: &Model, timeout: Duration) -> Probe {
        let fixed = KEY_PATHS.iter().find(|(id, _)| *id == model.provider_id).map(|(_, path)| *path);
        let path = fixed.unwrap_or("models");
        let url = match endpoint(&model.base_url, path) {
            Ok(url) => url,
            Err(error) => {
                let verdict = Verdict::Unreachable(error.to_string());
                return Probe { verdict, date: None, url: cut(&model.base_url, 200).to_owned() };
            }
        };
        let shown = redacted(&url);
        if let Protocol::Bedrock = model.protocol {
            let verdict = Verdict::Unchecked("it has no request without a price".to_owned());
            return Probe { verdict, date: None, url: shown };
        }
        let (verdict, date) = match headers(model, &Request::default()) {
            Ok(headers) => {
                let outgoing = Outgoing { url, headers, body: Vec::new() };
                self.compare(model, outgoing, timeout).await
            }
            Err(error) => (Verdict::Refused(error.to_string()), None),
        };
        Probe { verdict, date, url: shown }
    }

    /// Sends the request with and without the key, and compares the answers.
    async fn compare(
        &self,
        model: &Model,
        mut outgoing: Outgoing,
        timeout: Duration,
    ) -> (Verdict, Option<String>) {
        let mut open = outgoing.clone();
        open.headers = without_keys(&open.headers);
        let with_key = async {
            auth::authorize(model, &mut outgoing, &self.connections).await?;
            self.look(model, outgoing, timeout).await
        };
        let both = async { tokio::join!(with_key, self.look(model, open, timeout)) };
        let Ok((with_key, open)) = tokio::time::timeout_at(Instant::now() + timeout, both).await else {
            let seconds = timeout.as_secs_f64();
            return (Verdict::Unreachable(format!("no answer within {seconds} s")), None);
        };
        match (with_key, open) {
            (Ok(_), Ok(date)) => (Verdict::Unchecked("its list of models needs no key".to_owned()), date),
            (Ok(date), Err(_)) => (Verdict::Accepted, date),
            (Err(Error::Auth { failure }), _) => {
                (Verdict::Refused(failure.message), failure.headers.get("date").cloned())
            }
            (Err(error), _) if error.failure().status.is_none() => {
                (Verdict::Unreachable(error.to_string()), None)
            }
            (Err(error), _) => {
                (Verdict::Unchecked(error.to_string()), error.failure().headers.get("date").cloned())
            }
        }
    }

    /// Sends the request. Returns the server's clock if the answer is a success.
    async fn look(
        &self,
        model: &Model,
        outgoing: Outgoing,
        timeout: Duration,
    ) -> Result<Option<String>, Error> {
        let Outgoing { url, headers, .. } = outgoing;
        let sent = self.connections.to(&url, timeout)?.get(url.clone()).headers(headers).send().await;
        let response = sent.map_err(|why| self.connections.not_reached(&why, &url, timeout))?;
        if !response.status().is_success() {
            return Err(error_answer(response, model).await);
        }
        Ok(response.headers().get(DATE).and_then(|date| date.to_str().ok()).map(str::to_owned))
    }
}

fn without_keys(headers: &HeaderMap) -> HeaderMap {
    let mut headers = headers.clone();
    headers.remove(AUTHORIZATION);
    for name in KEYS {
        headers.remove(name);
    }
    headers
}
