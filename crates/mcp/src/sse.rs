//! The older transport over HTTP: one stream of server-sent events, and a POST request for each message.
//!
//! The first event names the address for messages, which must be at the same origin, because requests carry the user's
//! token.

use std::collections::HashMap;
use std::time::Duration;

use http::{HeaderName, HeaderValue, StatusCode};
use reqwest::header::{ACCEPT, CONTENT_TYPE, WWW_AUTHENTICATE};
use reqwest::{RequestBuilder, Response};
use rmcp::RoleClient;
use rmcp::model::ServerJsonRpcMessage;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::time::timeout;
use url::Url;

use crate::error::Failure;
use crate::http::{Http, of_type, unreachable};
use crate::stdio::MAX_MESSAGE_BYTES;

/// The time in which the server must accept a message, or begin the stream.
const ANSWER_DEADLINE: Duration = Duration::from_secs(30);
/// The longest first event.
const MAX_ADDRESS_BYTES: usize = 64 * 1024;

/// An open stream of events.
pub(crate) struct Sse {
    http: Http,
    headers: HashMap<HeaderName, HeaderValue>,
    response: Response,
    events: Events,
    endpoint: Url,
}

impl Sse {
    /// Opens the stream and waits for the address.
    pub(crate) async fn open(http: Http, headers: HashMap<HeaderName, HeaderValue>) -> Result<Self, Failure> {
        let request = http.client.get(http.url.clone()).header(ACCEPT, "text/event-stream");
        let mut response = send(&http, request, &headers).await?;
        let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        if !kind.is_some_and(|kind| kind.to_ascii_lowercase().starts_with("text/event-stream")) {
            return Err(of_type(kind));
        }
        let mut events = Events::default();
        loop {
            if let Some(event) = events.next() {
                if event.name != "endpoint" {
                    continue;
                }
                let endpoint = http.url.join(event.data.trim()).ok();
                let endpoint = endpoint.filter(|endpoint| endpoint.origin() == http.url.origin());
                let Some(endpoint) = endpoint else {
                    return Err(Failure::failed(
                        "The server names an address for messages at another origin.",
                    ));
                };
                return Ok(Self { http, headers, response, events, endpoint });
            }
            if events.buffer.len() > MAX_ADDRESS_BYTES {
                return Err(Failure::failed("The server does not name an address for messages."));
            }
            match response.chunk().await.map_err(|error| unreachable(&error))? {
                Some(chunk) => events.buffer.extend_from_slice(&chunk),
                None => return Err(Failure::failed("The server closed the stream of events.")),
            }
        }
    }
}

/// Sends a request with the current token, and once more with a new one if the server refuses it.
async fn send(
    http: &Http,
    request: RequestBuilder,
    headers: &HashMap<HeaderName, HeaderValue>,
) -> Result<Response, Failure> {
    let send = async |request: RequestBuilder, token| {
        let sent = timeout(ANSWER_DEADLINE, authorized(request, token, headers).send()).await;
        sent.map_err(|_| Failure::failed("The server does not accept messages."))?
            .map_err(|error| unreachable(&error))
    };
    let again = request.try_clone();
    let token = http.token(None).await?;
    let response = send(request, token.clone()).await?;
    // The server may have ended the token early. It did nothing, so the message is sent again.
    if response.status() == StatusCode::UNAUTHORIZED
        && let (Some(old), Some(again)) = (token, again)
        && let Ok(Some(new)) = http.token(Some(&old)).await
    {
        return accepted(send(again, Some(new)).await?);
    }
    accepted(response)
}

/// Adds the headers of the configuration and the token.
fn authorized(
    mut request: RequestBuilder,
    token: Option<String>,
    headers: &HashMap<HeaderName, HeaderValue>,
) -> RequestBuilder {
    if let Some(token) = token {
        request = request.bearer_auth(token);
    }
    for (name, value) in headers {
        request = request.header(name, value);
    }
    request
}

fn accepted(response: Response) -> Result<Response, Failure> {
    let status = response.status();
    if status == StatusCode::UNAUTHORIZED {
        let challenge = response.headers().get(WWW_AUTHENTICATE).and_then(|value| value.to_str().ok());
        return Err(Failure::NeedsAuth { challenge: challenge.map(str::to_owned) });
    }
    if status.is_success() {
        Ok(response)
    } else {
        Err(Failure::failed(format!("The server answered {status}.")))
    }
}

impl Transport<RoleClient> for Sse {
    type Error = std::io::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let (http, headers, endpoint) = (self.http.clone(), self.headers.clone(), self.endpoint.clone());
        async move {
            let body = serde_json::to_vec(&item)?;
            let request = http.client.post(endpoint).header(CONTENT_TYPE, "application/json").body(body);
            send(&http, request, &headers).await.map(drop).map_err(|failure| {
                let failure = http.note_last(failure);
                std::io::Error::other(failure.to_string())
            })
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            while let Some(event) = self.events.next() {
                let message = serde_json::from_str::<ServerJsonRpcMessage>(&event.data);
                if let (true, Ok(message)) = (matches!(event.name.as_str(), "message" | ""), message) {
                    return Some(message);
                }
            }
            // Cancelling the read loses nothing.
            match self.response.chunk().await {
                Ok(Some(chunk)) => self.events.buffer.extend_from_slice(&chunk),
                Ok(None) | Err(_) => return None,
            }
            if self.events.buffer.len() + self.events.data.len() > MAX_MESSAGE_BYTES {
                self.http.note(Failure::failed("The server sent a message of more than 16 MiB."));
                return None;
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        Ok(())
    }
}

/// Cuts a stream into events.
#[derive(Default)]
struct Events {
    buffer: Vec<u8>,
    name: String,
    data: String,
    has_data: bool,
}

struct Event {
    name: String,
    data: String,
}

impl Events {
    /// The next complete event, or `None` if more must be read.
    fn next(&mut self) -> Option<Event> {
        let mut start = 0;
        let mut found = None;
        while let Some(length) = self.buffer[start..].iter().position(|byte| *byte == b'\n') {
            let line = String::from_utf8_lossy(&self.buffer[start..start + length]);
            start += length + 1;
            let line = line.strip_suffix('\r').unwrap_or(&line);
            if line.is_empty() {
                let (name, data) = (std::mem::take(&mut self.name), std::mem::take(&mut self.data));
                if std::mem::take(&mut self.has_data) {
                    found = Some(Event { name, data });
                    break;
                }
            } else if let Some(name) = field(line, "event") {
                self.name = name.to_owned();
            } else if let Some(data) = field(line, "data") {
                if self.has_data {
                    self.data.push('\n');
                }
                self.has_data = true;
                self.data.push_str(data);
            }
        }
        self.buffer.drain(..start);
        found
    }
}

fn field<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    let value = line.strip_prefix(name)?.strip_prefix(':')?;
    Some(value.strip_prefix(' ').unwrap_or(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_cut_into_the_same_events_at_every_point() {
        let stream = "event: endpoint\r\ndata: /messages?id=1\r\n\r\n: comment\n\ndata: {\ndata: }\n\n";
        for at in 0..stream.len() {
            let mut events = Events::default();
            let mut found = Vec::new();
            for piece in [&stream[..at], &stream[at..]] {
                events.buffer.extend_from_slice(piece.as_bytes());
                while let Some(event) = events.next() {
                    found.push((event.name, event.data));
                }
            }
            let expected = [("endpoint", "/messages?id=1"), ("", "{\n}")];
            assert_eq!(found, expected.map(|(name, data)| (name.to_owned(), data.to_owned())), "{at}");
        }
    }
}
