//! Small requests with JSON answers, as sign-in servers take them.

use std::time::Duration;

use reqwest::Url;
use serde_json::Value;
use tokio::time::{Instant, timeout_at};

use super::{Client, read};
use crate::Error;

/// How long one exchange may take in all.
const EXCHANGE_DEADLINE: Duration = Duration::from_secs(30);
const CONNECT_DEADLINE: Duration = Duration::from_secs(10);
/// Bytes an answer may have; tokens have a few thousand.
const ANSWER_LIMIT_BYTES: usize = 256 * 1024;

/// What is posted.
pub(crate) enum Posted<'a> {
    /// Names and values, as forms send them.
    Form(&'a [(&'a str, &'a str)]),
    /// The same, by a client with this name and this word.
    FormOf(&'a [(&'a str, &'a str)], &'a str, &'a str),
    /// A JSON value.
    Json(Value),
}

impl Client {
    /// Posts to a sign-in server: the status, and the answer if it is JSON. Errors hold nothing of either body.
    pub(crate) async fn exchange(&self, url: &str, posted: Posted<'_>) -> Result<(u16, Value), Error> {
        let url = Url::parse(url)
            .map_err(|why| Error::rejected(format!("the sign-in address `{url}` is not valid: {why}")))?;
        let request = self.connections.to(&url, CONNECT_DEADLINE)?.post(url.clone());
        let mut request = request.header("accept", "application/json");
        if let Posted::FormOf(_, name, word) = posted {
            request = request.basic_auth(name, Some(word));
        }
        let (kind, body) = match posted {
            Posted::Form(pairs) | Posted::FormOf(pairs, ..) => {
                ("application/x-www-form-urlencoded", form(pairs))
            }
            Posted::Json(value) => ("application/json", value.to_string()),
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

/// Names and values as a form writes them.
pub(crate) fn form(pairs: &[(&str, &str)]) -> String {
    let mut url = Url::parse("http://form").expect("the address is valid");
    url.query_pairs_mut().extend_pairs(pairs);
    url.query().unwrap_or_default().to_owned()
}
