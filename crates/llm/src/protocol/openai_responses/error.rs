//! What Responses servers say when something is wrong.

use serde_json::Value;

use crate::Error;
use crate::classify::{self, ErrorDetails};

/// What to do about an `error` event, or an answer whose `error` is filled.
///
/// The error object stands under `error`, inside `response`, or is the event itself.
pub(crate) fn in_band(body: &Value) -> Error {
    let inner =
        body.pointer("/response/error").or_else(|| body.get("error")).filter(|error| !error.is_null());
    let mut details = ErrorDetails::from_json(inner.unwrap_or(body));
    // The event's own type says only that it is an error.
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
