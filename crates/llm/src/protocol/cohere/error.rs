//! Errors of Cohere.

use serde_json::Value;

use crate::Error;
use crate::classify::{self, Answer, ErrorDetails};

/// Returns the error for an answer with an error status; its body is `{"message": "…"}`.
pub(crate) fn classify(answer: &Answer) -> Error {
    let details =
        serde_json::from_str::<Value>(answer.body).ok().map(|body| parse_details(&body)).unwrap_or_default();
    // Cohere's own status for an invalid key.
    if answer.status == 498 {
        let answer = Answer { status: 401, ..*answer };
        return classify::answer(&answer, details);
    }
    classify::answer(answer, details)
}

/// Returns the error for an answer that ended with an error.
pub(crate) fn in_band(reason: &str, body: &Value, source: &str) -> Error {
    let details = parse_details(body);
    let message =
        details.message.clone().unwrap_or_else(|| format!("the provider ended the answer with `{reason}`"));
    classify::in_band(message, &details, source)
}

fn parse_details(body: &Value) -> ErrorDetails {
    ErrorDetails::from_json(body.get("error").unwrap_or(body))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn an_answer_is_classified() {
        for (status, message, expected) in [
            (
                400,
                "too many tokens: total number of tokens cannot exceed 4081; size limit exceeded",
                "overflow",
            ),
            (400, "invalid request: all elements in history must have a message.", "rejected"),
            (401, "invalid api token", "auth"),
            (404, "model 'x' not found", "rejected"),
            (429, "You are using a Trial key, which is limited to 20 API calls / minute.", "busy"),
            (498, "invalid token", "auth"),
            (500, "internal server error", "busy"),
        ] {
            let body = serde_json::json!({"id": "1", "message": message}).to_string();
            let error = classify(&Answer { status, headers: &BTreeMap::new(), body: &body });
            let kind = match &error {
                Error::Busy { .. } => "busy",
                Error::Overflow { .. } => "overflow",
                Error::Auth { .. } => "auth",
                Error::Rejected { .. } => "rejected",
            };
            assert_eq!((kind, error.to_string()), (expected, message.to_owned()));
        }
    }
}
