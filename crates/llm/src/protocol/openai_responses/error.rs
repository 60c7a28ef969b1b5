//! Errors of Responses servers.

use serde_json::Value;

use crate::Error;
use crate::classify::{self, ErrorDetails};

/// Returns the error for an `error` event, or for an answer with an `error`.
///
/// The error object is in `error`, inside `response`, or is the event itself.
pub(crate) fn in_band(body: &Value) -> Error {
    let inner =
        body.pointer("/response/error").or_else(|| body.get("error")).filter(|error| !error.is_null());
    let mut details = ErrorDetails::from_json(inner.unwrap_or(body));
    // The event's own type only means that it is an error.
    details.codes.retain(|code| code != "error" && code != "response.failed");
    let message = details.message.clone().filter(|text| !text.trim().is_empty());
    let message = message.or_else(|| details.codes.first().cloned());
    let source = body.to_string();
    classify::in_band(
        message.unwrap_or_else(|| crate::error::cut(&source, 500).to_owned()),
        &details,
        &source,
    )
}
