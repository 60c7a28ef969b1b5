//! Small requests to sign-in servers, which answer with JSON.

use std::time::Duration;

use reqwest::Url;
use serde_json::Value;
use tokio::time::{Instant, timeout_at};

use super::{Client, read};
use crate::Error;

/// Time limit of one exchange.
const EXCHANGE_DEADLINE: Duration = Duration::from_secs(30);
const CONNECT_DEADLINE: Duration = Duration::from_secs(10);
/// Limit of an answer. Answers with tokens have a few thousand bytes.
const ANSWER_LIMIT_BYTES: usize = 256 * 1024;

/// The body of a request.
pub(crate) enum Payload<'a> {
    /// Form fields.
    Form(&'a [(&'a str, &'a str)]),
    /// Form fields, with a client's name and secret for basic authentication.
    AuthorizedForm(&'a [(&'a str, &'a str)], &'a str, &'a str),
    /// JSON.
    Json(Value),
}

impl Client {
    /// Posts to a sign-in server. Returns the status and the JSON of the answer, or null if it is
    /// not JSON. Errors contain nothing of either body.
    pub(crate) async fn exchange(&self, url: &str, payload: Payload<'_>) -> Result<(u16, Value), Error> {
        let url = Url::parse(url)
            .map_err(|why| Error::rejected(format!("the sign-in address `{url}` is not valid: {why}")))?;
        let request = self.connections.to(&url, CONNECT_DEADLINE)?.post(url.clone());
        let mut request = request.header("accept", "application/json");
        if let Payload::AuthorizedForm(_, name, secret) = payload {
            request = request.basic_auth(name, Some(secret));
        }
        let (kind, body) = match payload {
            Payload::Form(pairs) | Payload::AuthorizedForm(pairs, ..) => {
                ("application/x-www-form-urlencoded", form(pairs))
            }
            Payload::Json(value) => ("application/json", value.to_string()),
        };
        let until = Instant::now() + EXCHANGE_DEADLINE;
        let sent = request.header("content-type", kind).body(body).send();
        let response = match timeout_at(until, sent).await {
            Ok(sent) => sent.map_err(|why| self.connections.not_reached(&why, &url, CONNECT_DEADLINE))?,
            Err(_) => {
                let origin = url.origin().ascii_serialization();
                return Err(Error::busy(format!("{origin} did not answer within 30 s")));
            }
        };
        let status = response.status().as_u16();
        let body = read(response, ANSWER_LIMIT_BYTES, until).await;
        Ok((status, serde_json::from_str(&body).unwrap_or_default()))
    }
}

/// Encodes form fields.
pub(crate) fn form(pairs: &[(&str, &str)]) -> String {
    let mut url = Url::parse("http://form").expect("the address is valid");
    url.query_pairs_mut().extend_pairs(pairs);
    url.query().unwrap_or_default().to_owned()
}
