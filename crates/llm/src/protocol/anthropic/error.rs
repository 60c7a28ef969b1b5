//! Errors of Anthropic servers.

use serde_json::Value;

use crate::Error;
use crate::classify::{self, Answer, ErrorDetails};

/// Returns the error for an answer with an error status.
pub(crate) fn classify(answer: &Answer) -> Error {
    let details =
        serde_json::from_str::<Value>(answer.body).ok().map(|body| parse_details(&body)).unwrap_or_default();
    classify::answer(answer, details)
}

/// Returns the error for an `error` event. Its message is the error object as JSON, which clients
/// display.
pub(crate) fn in_band(body: &Value) -> Error {
    let error = body.get("error").unwrap_or(body);
    let message = error.as_str().map_or_else(|| error.to_string(), str::to_owned);
    classify::in_band(message, &parse_details(body), &body.to_string())
}

fn parse_details(body: &Value) -> ErrorDetails {
    ErrorDetails::from_json(body.get("error").unwrap_or(body))
}
