//! What Anthropic says when something is wrong.

use serde_json::Value;

use crate::Error;
use crate::classify::{self, Answer, Said};

/// What to do about an answer with an error status.
pub(crate) fn classify(answer: &Answer) -> Error {
    let said = serde_json::from_str::<Value>(answer.body).ok().map(|body| said(&body)).unwrap_or_default();
    classify::answer(answer, said)
}

/// What to do about an `error` event; its message is the error object as JSON, which clients show.
pub(crate) fn in_band(body: &Value) -> Error {
    let error = body.get("error").unwrap_or(body);
    let message = error.as_str().map_or_else(|| error.to_string(), str::to_owned);
    classify::in_band(message, &said(body), &body.to_string())
}

fn said(body: &Value) -> Said {
    Said::of(body.get("error").unwrap_or(body))
}
