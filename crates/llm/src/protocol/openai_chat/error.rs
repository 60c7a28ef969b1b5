//! Errors of chat servers.

use serde_json::Value;

use crate::Error;
use crate::classify::{self, Answer, ErrorDetails};

/// Returns the error for an answer with an error status.
pub(crate) fn classify(answer: &Answer) -> Error {
    let details =
        serde_json::from_str::<Value>(answer.body).ok().map(|body| parse_details(&body)).unwrap_or_default();
    classify::answer(answer, details)
}

/// Returns the error of an event, or `None` if the event is not an error.
pub(crate) fn in_band(body: &Value) -> Option<Error> {
    let inner = body.get("error").filter(|error| !error.is_null());
    let is_error = inner.is_some()
        || body.get("object").and_then(Value::as_str) == Some("error")
        || (body.get("choices").is_none() && (body.get("message").is_some() || body.get("detail").is_some()));
    if !is_error {
        return None;
    }
    let details = parse_details(body);
    let source = body.to_string();
    let message = details.message.clone().filter(|text| !text.trim().is_empty());
    Some(classify::in_band(message.unwrap_or_else(|| inner.unwrap_or(body).to_string()), &details, &source))
}

/// The error object is in `error` or is the body itself. Some servers put it into a list.
fn parse_details(body: &Value) -> ErrorDetails {
    let body = body.as_array().and_then(|list| list.first()).unwrap_or(body);
    match body.get("error") {
        Some(error) if !error.is_null() => ErrorDetails::from_json(error),
        Some(_) | None => ErrorDetails::from_json(body),
    }
}
