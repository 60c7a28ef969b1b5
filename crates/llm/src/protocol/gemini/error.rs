//! Errors of Google's servers.

use serde_json::Value;

use crate::Error;
use crate::classify::{self, Answer, ErrorDetails};

/// Returns the error for an answer with an error status.
pub(crate) fn classify(answer: &Answer) -> Error {
    let body: Option<Value> = serde_json::from_str(answer.body).ok();
    let Some(error) = body.as_ref().and_then(inner) else {
        return classify::answer(answer, ErrorDetails::default());
    };
    let found = classify::answer(answer, parse_details(error));
    // An invalid key has the status of a bad request.
    if has_reason(error, &["API_KEY_INVALID", "API_KEY_EXPIRED", "ACCESS_TOKEN_EXPIRED"]) {
        return Error::Auth { failure: Box::new(found.failure().clone()) };
    }
    found
}

/// Returns the error of an event, or `None` if the event is not an error.
pub(crate) fn in_band(body: &Value) -> Option<Error> {
    let error = inner(body)?;
    let details = parse_details(error);
    let message = details.message.clone().filter(|text| !text.trim().is_empty());
    Some(classify::in_band(message.unwrap_or_else(|| error.to_string()), &details, &body.to_string()))
}

/// Returns the error object, which some answers put into a list.
fn inner(body: &Value) -> Option<&Value> {
    let body = body.as_array().and_then(|list| list.first()).unwrap_or(body);
    body.get("error").filter(|error| !error.is_null())
}

/// Google's `status` is a name such as `RESOURCE_EXHAUSTED`, and its `code` is the HTTP status.
fn parse_details(error: &Value) -> ErrorDetails {
    let mut details = ErrorDetails::from_json(error);
    let code = details.codes.iter().find_map(|code| match code.as_str() {
        "resource_exhausted" => Some("rate_limit_exceeded"),
        "internal" | "unknown" | "aborted" | "cancelled" => Some("server_error"),
        "deadline_exceeded" => Some("timeout_error"),
        "unauthenticated" => Some("unauthorized"),
        "permission_denied" => Some("permission_error"),
        "invalid_argument" | "failed_precondition" | "out_of_range" => Some("invalid_request"),
        _ => None,
    });
    details.codes.extend(code.map(str::to_owned));
    details
}

fn detail_list(error: &Value) -> impl Iterator<Item = &Value> {
    error.get("details").and_then(Value::as_array).into_iter().flatten()
}

fn has_reason(error: &Value, reasons: &[&str]) -> bool {
    detail_list(error).filter_map(|detail| detail["reason"].as_str()).any(|reason| reasons.contains(&reason))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::time::Duration;

    use super::*;

    fn kind(error: &Error) -> &'static str {
        match error {
            Error::Busy { .. } => "busy",
            Error::Overflow { .. } => "overflow",
            Error::Auth { .. } => "auth",
            Error::Rejected { .. } => "rejected",
        }
    }

    #[track_caller]
    fn check(status: u16, body: &str, expected: &str, message: &str) -> Error {
        let error = classify(&Answer { status, headers: &BTreeMap::new(), body });
        assert_eq!((kind(&error), error.to_string().as_str()), (expected, message));
        error
    }

    #[test]
    fn statuses_and_names_are_classified() {
        for (status, name, text, expected) in [
            (400, "INVALID_ARGUMENT", "m", "rejected"),
            (
                400,
                "INVALID_ARGUMENT",
                "The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).",
                "overflow",
            ),
            (
                400,
                "INVALID_ARGUMENT",
                "The input token count exceeds the maximum number of tokens allowed 32768.",
                "overflow",
            ),
            (400, "FAILED_PRECONDITION", "User location is not supported for the API use.", "rejected"),
            (401, "UNAUTHENTICATED", "m", "auth"),
            (403, "PERMISSION_DENIED", "m", "auth"),
            (404, "NOT_FOUND", "m", "rejected"),
            (413, "INVALID_ARGUMENT", "m", "overflow"),
            (429, "RESOURCE_EXHAUSTED", "m", "busy"),
            (499, "CANCELLED", "m", "busy"),
            (500, "INTERNAL", "m", "busy"),
            (503, "UNAVAILABLE", "The model is overloaded.", "busy"),
            (504, "DEADLINE_EXCEEDED", "m", "busy"),
        ] {
            let body = format!(r#"{{"error":{{"code":{status},"message":"{text}","status":"{name}"}}}}"#);
            check(status, &body, expected, text);
        }
    }

    #[test]
    fn a_bad_key_is_not_a_bad_request() {
        let body = r#"{"error":{"code":400,"message":"API key not valid.","status":"INVALID_ARGUMENT",
            "details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"API_KEY_INVALID"}]}}"#;
        check(400, body, "auth", "API key not valid.");
    }

    #[test]
    fn the_retry_delay_is_in_the_details() {
        let body = r#"[{"error":{"code":429,"message":"Quota exceeded.","status":"RESOURCE_EXHAUSTED","details":[
            {"@type":"type.googleapis.com/google.rpc.Help"},
            {"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"34.5s"}]}}]"#;
        let Error::Busy { retry_after, .. } = check(429, body, "busy", "Quota exceeded.") else {
            panic!("busy")
        };
        assert_eq!(retry_after, Some(Duration::from_millis(34_500)));
    }

    #[test]
    fn an_html_page_is_summarized() {
        check(502, "<html>", "busy", "the server answered with an HTML page (502 Bad Gateway)");
    }

    #[test]
    fn errors_in_the_stream_are_classified() {
        for (body, expected) in [
            (r#"{"error":{"code":503,"message":"m","status":"UNAVAILABLE"}}"#, "busy"),
            (r#"{"error":{"code":429,"message":"m","status":"RESOURCE_EXHAUSTED"}}"#, "busy"),
            (r#"{"error":{"code":400,"message":"m","status":"INVALID_ARGUMENT"}}"#, "rejected"),
            (r#"{"error":{"message":"m","status":"INVALID_ARGUMENT"}}"#, "rejected"),
            (r#"[{"error":{"code":401,"message":"m"}}]"#, "auth"),
            (r#"{"error":{"message":"m"}}"#, "busy"),
        ] {
            let error = in_band(&serde_json::from_str(body).unwrap()).unwrap();
            assert_eq!((kind(&error), error.to_string().as_str()), (expected, "m"), "{body}");
        }
        assert_eq!(in_band(&serde_json::json!({"candidates": []})), None);
    }
}
