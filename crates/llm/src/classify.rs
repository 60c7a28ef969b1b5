//! Turns an error answer into an [`Error`], for all protocols.
//!
//! A protocol reads the body into [`ErrorDetails`]; this module picks one of the four errors. It
//! looks at the wording only if there is no error code, because providers report a full context as
//! an ordinary bad request.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::error::{ERROR_BODY_LIMIT_BYTES, Error, Failure, cut};
use crate::retry_after::{retry_after, retry_delay};

/// Limit of the provider's text in an error message.
const MESSAGE_LIMIT_BYTES: usize = 2048;

/// An answer that is not a stream of model events.
#[derive(Debug)]
pub(crate) struct Answer<'a> {
    /// The HTTP status.
    pub(crate) status: u16,
    /// The headers, with names in lower case.
    pub(crate) headers: &'a BTreeMap<String, String>,
    /// The body, already cut to its limit.
    pub(crate) body: &'a str,
}

/// The details that an error body contains.
#[derive(Debug, Default)]
pub(crate) struct ErrorDetails {
    /// The message for the user.
    pub(crate) message: Option<String>,
    /// The error's type and code, in lower case.
    pub(crate) codes: Vec<String>,
    /// The HTTP status inside the body, which relays send.
    pub(crate) status: Option<u16>,
}

impl ErrorDetails {
    /// Reads the error object that most providers send: `{message, type, code, status}`, or a
    /// string.
    pub(crate) fn from_json(error: &Value) -> Self {
        if let Some(text) = error.as_str() {
            return Self { message: Some(text.to_owned()), ..Self::default() };
        }
        let text = |name: &str| error.get(name).and_then(Value::as_str);
        let number = |name: &str| error.get(name).and_then(Value::as_u64);
        let status = number("code").or_else(|| number("status")).or_else(|| text("code")?.parse().ok());
        Self {
            message: text("message").or_else(|| text("detail")).map(str::to_owned),
            codes: ["type", "code", "status"].into_iter().filter_map(text).map(str::to_lowercase).collect(),
            status: status
                .and_then(|status| u16::try_from(status).ok())
                .filter(|status| (400..600).contains(status)),
        }
    }
}

/// Returns the error for an answer with an error status.
pub(crate) fn answer(answer: &Answer, details: ErrorDetails) -> Error {
    let message = match details.message.as_deref().map(str::trim).filter(|text| !text.is_empty()) {
        Some(text) => cut(text, MESSAGE_LIMIT_BYTES).to_owned(),
        None => describe(answer.status, answer.body),
    };
    let class = if is_html(answer.body) && matches!(answer.status, 401 | 403) {
        // A gateway sent this page; it does not mean that the provider rejected the key.
        Class::Rejected
    } else {
        class(Some(answer.status), &details.codes, &format!("{message}\n{}", answer.body))
    };
    let failure = Box::new(Failure {
        message,
        status: Some(answer.status),
        headers: answer.headers.clone(),
        body: Some(answer.body.to_owned()),
        ..Failure::default()
    });
    class.error(failure, retry_after(answer.headers).or_else(|| retry_delay(answer.body)))
}

/// Returns the error for an error event inside a stream that began without one.
///
/// The provider had accepted the request, so an error that does not clearly blame the request
/// counts as a fault of the server.
pub(crate) fn in_band(message: String, details: &ErrorDetails, source: &str) -> Error {
    let class = match (details.status, class(details.status, &details.codes, &message)) {
        (None, Class::Rejected) if !is_final(&details.codes) => Class::Busy,
        (_, class) => class,
    };
    let failure = Box::new(Failure {
        message: cut(&message, MESSAGE_LIMIT_BYTES).to_owned(),
        status: details.status,
        body: Some(cut(source, ERROR_BODY_LIMIT_BYTES).to_owned()),
        ..Failure::default()
    });
    class.error(failure, retry_delay(source))
}

/// Returns a message for an answer whose body is not an error object.
pub(crate) fn describe(status: u16, body: &str) -> String {
    let reason = http::StatusCode::from_u16(status).ok().and_then(|code| code.canonical_reason());
    let status = match reason {
        Some(reason) => format!("{status} {reason}"),
        None => status.to_string(),
    };
    let text = body.trim();
    if is_html(text) {
        return match html_title(text) {
            Some(title) => format!("the server answered with an HTML page ({status}): {title}"),
            None => format!("the server answered with an HTML page ({status})"),
        };
    }
    if text.is_empty() {
        return format!("the server answered with {status} and no explanation");
    }
    format!("the server answered with {status}: {}", cut(text, MESSAGE_LIMIT_BYTES))
}

/// Returns whether a body is an HTML page.
pub(crate) fn is_html(body: &str) -> bool {
    let head = cut(body.trim_start(), 512).to_ascii_lowercase();
    head.starts_with("<!doctype html") || head.starts_with("<html") || head.contains("<head")
}

fn html_title(page: &str) -> Option<String> {
    // ASCII lower case keeps all offsets.
    let lower = page.to_ascii_lowercase();
    let open = lower.find("<title")?;
    let start = open + lower[open..].find('>')? + 1;
    let end = start + lower[start..].find("</title")?;
    let title = page[start..end].split_whitespace().collect::<Vec<_>>().join(" ");
    (!title.is_empty()).then(|| cut(&title, 200).to_owned())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    Busy,
    Overflow,
    Auth,
    Rejected,
}

impl Class {
    fn error(self, failure: Box<Failure>, retry_after: Option<std::time::Duration>) -> Error {
        match self {
            Self::Busy => Error::Busy { failure, retry_after },
            Self::Overflow => Error::Overflow { failure },
            Self::Auth => Error::Auth { failure },
            Self::Rejected => Error::Rejected { failure },
        }
    }
}

/// Picks the class by error code, then by status, then by the wording.
fn class(status: Option<u16>, codes: &[String], text: &str) -> Class {
    let coded = |list: &[&str]| codes.iter().any(|code| list.contains(&code.as_str()));
    if coded(&["context_length_exceeded", "model_context_window_exceeded", "request_too_large"]) {
        return Class::Overflow;
    }
    // A spent quota comes with status 429, but waiting does not restore it.
    if coded(&["insufficient_quota", "billing_error", "billing_hard_limit_reached"]) {
        return Class::Rejected;
    }
    if coded(&["authentication_error", "invalid_api_key", "permission_error", "unauthorized"]) {
        return Class::Auth;
    }
    match status {
        Some(401 | 403) => return Class::Auth,
        Some(429) => return Class::Busy,
        Some(413) => return Class::Overflow,
        Some(_) | None => {}
    }
    if is_overflow(text) {
        return Class::Overflow;
    }
    if coded(&["overloaded_error", "rate_limit_error", "api_error", "timeout_error"])
        || coded(&["rate_limit_exceeded", "server_error", "internal_server_error", "engine_overloaded"])
        || coded(&["overloaded", "server_is_overloaded", "slow_down", "unavailable"])
    {
        return Class::Busy;
    }
    match status {
        Some(408 | 409 | 425) => Class::Busy,
        // Both mean that the server will never support the request.
        Some(501 | 505) => Class::Rejected,
        Some(500..=599) => Class::Busy,
        Some(_) | None => Class::Rejected,
    }
}

fn is_final(codes: &[String]) -> bool {
    const FINAL: &[&str] =
        &["invalid", "not_found", "unsupported", "policy", "content_filter", "quota", "billing"];
    codes.iter().any(|code| FINAL.iter().any(|word| code.contains(word)))
}

/// Wordings of providers for a conversation that is too long. All pieces must occur in this order.
const OVERFLOW: &[&[&str]] = &[
    // Anthropic
    &["prompt is too long"],
    &["input length and `max_tokens` exceed context limit"],
    // Bedrock
    &["input is too long for requested model"],
    &["too many total text bytes"],
    // OpenAI and servers that imitate it
    &["context_length_exceeded"],
    &["context length exceeded"],
    &["exceeds the context window"],
    &["maximum context length is"],
    // Gemini
    &["input token count", "exceeds the maximum"],
    // xAI
    &["maximum prompt length is"],
    // Groq
    &["reduce the length of the messages"],
    // Copilot
    &["token count", "exceeds the limit of"],
    // llama.cpp
    &["exceeds the available context size"],
    // LM Studio
    &["greater than the context length"],
    &["context size has been exceeded"],
    // MiniMax
    &["context window exceeds limit"],
    // Moonshot
    &["exceeded model token limit"],
    // Ollama
    &["prompt too long", "context length"],
    // vLLM
    &["context length is only"],
    &["input length", "exceeds", "context length"],
    &["longer than the maximum model length"],
    // Mistral
    &["too large for model with", "maximum context length"],
    // Text generation servers
    &["`inputs` tokens + `max_new_tokens` must be"],
    // Cohere
    &["too many tokens", "size limit exceeded"],
    // Z.ai
    &["model_context_window_exceeded"],
    // DashScope
    &["range of input length should be"],
    // Gateways
    &["request entity too large"],
];

fn is_overflow(text: &str) -> bool {
    let text = text.to_lowercase();
    OVERFLOW.iter().any(|pieces| {
        let mut rest = text.as_str();
        pieces.iter().all(|piece| match rest.split_once(piece) {
            Some((_, after)) => {
                rest = after;
                true
            }
            None => false,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_context_is_recognised_across_providers() {
        for text in [
            "prompt is too long: 213462 tokens > 200000 maximum",
            "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000",
            "Input is too long for requested model.",
            "Your input exceeds the context window of this model. Please adjust your input.",
            "This model's maximum context length is 128000 tokens. However, your messages resulted in 130000",
            "The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).",
            "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
            "Please reduce the length of the messages or completion.",
            "prompt token count of 140000 exceeds the limit of 128000",
            "request (9000 tokens) exceeds the available context size (8192 tokens), try increasing it",
            "tokens to keep from the initial prompt is greater than the context length",
            "invalid params, context window exceeds limit (2013)",
            "Invalid request: Your request exceeded model token limit: 262144 (requested: 300000)",
            "prompt too long; exceeded max context length by 91 tokens",
            "The model's context length is only 4096 tokens",
            "Prompt contains 40000 tokens, too large for model with 32768 maximum context length",
            "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096",
            "too many tokens: total number of tokens in the prompt cannot exceed 4081; size limit exceeded",
            "Range of input length should be [1, 98304]",
        ] {
            assert_eq!(class(Some(400), &[], text), Class::Overflow, "{text}");
        }
    }

    #[test]
    fn without_a_code_the_status_decides() {
        for (status, expected) in [
            (400, Class::Rejected),
            (401, Class::Auth),
            (402, Class::Rejected),
            (403, Class::Auth),
            (404, Class::Rejected),
            (408, Class::Busy),
            (409, Class::Busy),
            (413, Class::Overflow),
            (422, Class::Rejected),
            (429, Class::Busy),
            (500, Class::Busy),
            (501, Class::Rejected),
            (502, Class::Busy),
            (503, Class::Busy),
            (529, Class::Busy),
        ] {
            assert_eq!(class(Some(status), &[], "Bad thing"), expected, "{status}");
        }
    }

    #[test]
    fn a_code_wins_over_the_status() {
        for (status, code, expected) in [
            (400, "context_length_exceeded", Class::Overflow),
            (429, "insufficient_quota", Class::Rejected),
            (400, "invalid_api_key", Class::Auth),
            (400, "overloaded_error", Class::Busy),
            (429, "rate_limit_exceeded", Class::Busy),
        ] {
            assert_eq!(class(Some(status), &[code.to_owned()], ""), expected, "{status} {code}");
        }
    }

    #[test]
    fn a_rate_limit_that_mentions_length_is_not_an_overflow() {
        assert_eq!(class(Some(429), &[], "Please reduce the length of the messages"), Class::Busy);
    }

    #[test]
    fn html_pages_are_summarized() {
        let page = "<!DOCTYPE html>\n<html><head><TITLE>502 Bad\n Gateway</TITLE></head>";
        for (status, body, expected) in [
            (502, page, "the server answered with an HTML page (502 Bad Gateway): 502 Bad Gateway"),
            (200, "<html></html>", "the server answered with an HTML page (200 OK)"),
            (500, " ", "the server answered with 500 Internal Server Error and no explanation"),
            (529, "", "the server answered with 529 and no explanation"),
            (503, "try later\n", "the server answered with 503 Service Unavailable: try later"),
        ] {
            assert_eq!(describe(status, body), expected);
        }
    }

    #[test]
    fn an_error_in_the_stream_is_retried_unless_it_blames_the_request() {
        for (json, expected) in [
            (r#"{"message":"m","type":"server_error"}"#, "busy"),
            (r#"{"message":"m"}"#, "busy"),
            (r#""m""#, "busy"),
            (r#"{"message":"m","code":429}"#, "busy"),
            (r#"{"message":"m","code":"502"}"#, "busy"),
            (r#"{"message":"m","type":"invalid_request_error"}"#, "rejected"),
            (r#"{"message":"m","code":400}"#, "rejected"),
            (r#"{"message":"m","code":401}"#, "auth"),
            (r#"{"message":"m","code":"context_length_exceeded"}"#, "overflow"),
        ] {
            let details = ErrorDetails::from_json(&serde_json::from_str(json).unwrap());
            let found = match in_band("m".to_owned(), &details, json) {
                Error::Busy { .. } => "busy",
                Error::Overflow { .. } => "overflow",
                Error::Auth { .. } => "auth",
                Error::Rejected { .. } => "rejected",
            };
            assert_eq!(found, expected, "{json}");
        }
    }
}
