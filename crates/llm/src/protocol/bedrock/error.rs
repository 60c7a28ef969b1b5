//! Errors of Bedrock.
//!
//! An exception has a name, in a header of the answer or of a frame, and a message. Error answers
//! and streams use the same names.

use serde_json::Value;

use crate::Error;
use crate::classify::{self, Answer, ErrorDetails};

/// The header with the name of an error answer's exception.
const NAME: &str = "x-amzn-errortype";

/// Returns the error for an answer with an error status.
pub(crate) fn classify(answer: &Answer) -> Error {
    let body: Value = serde_json::from_str(answer.body).unwrap_or_default();
    let name = answer.headers.get(NAME).map(String::as_str).or_else(|| body["__type"].as_str());
    let mut details = parse_details(name.unwrap_or_default(), &body);
    // The status of the answer is more precise.
    details.status = None;
    classify::answer(answer, details)
}

/// Returns the error for an exception inside a stream.
pub(crate) fn in_band(name: &str, body: &Value, source: &str) -> Error {
    let details = parse_details(name, body);
    let message =
        details.message.clone().unwrap_or_else(|| format!("the provider ended the answer with `{name}`"));
    classify::in_band(message, &details, source)
}

fn parse_details(name: &str, body: &Value) -> ErrorDetails {
    // In the header, a schema's URL may follow the name; in the body, one may precede it.
    let name = name.split([':', ',']).next().unwrap_or_default();
    let name = name.rsplit('#').next().unwrap_or_default().trim();
    let text = |field: &str| body[field].as_str().map(str::to_owned);
    let (code, status) = meaning(&name.to_ascii_lowercase());
    ErrorDetails {
        message: text("message").or_else(|| text("Message")).or_else(|| text("originalMessage")),
        codes: code.map(str::to_owned).into_iter().collect(),
        status,
    }
}

/// Returns the error code that corresponds to an exception, and its usual status.
fn meaning(name: &str) -> (Option<&'static str>, Option<u16>) {
    match name {
        "throttlingexception" | "toomanyrequestsexception" => (Some("rate_limit_exceeded"), Some(429)),
        // A quota of tokens per minute recovers by itself.
        "servicequotaexceededexception" => (Some("rate_limit_exceeded"), Some(429)),
        "serviceunavailableexception" | "modelnotreadyexception" => (Some("unavailable"), Some(503)),
        "internalserverexception" | "internalfailure" => (Some("server_error"), Some(500)),
        "modelstreamerrorexception" | "modelerrorexception" => (Some("server_error"), Some(500)),
        "modeltimeoutexception" => (Some("timeout_error"), Some(408)),
        "validationexception" => (None, Some(400)),
        "resourcenotfoundexception" => (None, Some(404)),
        "accessdeniedexception"
        | "unrecognizedclientexception"
        | "expiredtokenexception"
        | "invalidsignatureexception"
        | "missingauthenticationtokenexception"
        | "incompletesignatureexception" => (Some("unauthorized"), Some(403)),
        _ => (None, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::collections::BTreeMap;

    fn kind(error: &Error) -> &'static str {
        match error {
            Error::Busy { .. } => "busy",
            Error::Overflow { .. } => "overflow",
            Error::Auth { .. } => "auth",
            Error::Rejected { .. } => "rejected",
        }
    }

    #[test]
    fn an_answer_is_classified_by_the_name_of_its_exception() {
        for (status, name, message, expected) in [
            (429, "ThrottlingException", "Too many tokens, please wait before trying again.", "busy"),
            (400, "ThrottlingException:http://internal.amazon.com/coral/x/", "Rate exceeded", "busy"),
            (400, "ServiceQuotaExceededException", "quota", "busy"),
            (503, "ServiceUnavailableException", "busy", "busy"),
            (424, "ModelErrorException", "The model failed", "busy"),
            (408, "ModelTimeoutException", "slow", "busy"),
            (400, "ValidationException", "Input is too long for requested model.", "overflow"),
            (400, "ValidationException", "prompt is too long: 213462 tokens > 200000 maximum", "overflow"),
            (400, "ValidationException", "The provided model identifier is invalid.", "rejected"),
            (404, "ResourceNotFoundException", "Could not resolve the model", "rejected"),
            (403, "AccessDeniedException", "You don't have access to the model", "auth"),
            (400, "UnrecognizedClientException", "The security token is invalid.", "auth"),
            (403, "ExpiredTokenException", "The security token is expired", "auth"),
        ] {
            let headers = BTreeMap::from([(NAME.to_owned(), name.to_owned())]);
            let body = json!({"message": message}).to_string();
            let error = classify(&Answer { status, headers: &headers, body: &body });
            assert_eq!((kind(&error), error.to_string()), (expected, message.to_owned()), "{name}");
            assert_eq!(error.failure().status, Some(status));
        }
    }

    #[test]
    fn the_name_may_be_in_the_body() {
        let body = r##"{"__type":"com.amazon.coral.service#ThrottlingException","Message":"slow down"}"##;
        let error = classify(&Answer { status: 400, headers: &BTreeMap::new(), body });
        assert_eq!((kind(&error), error.to_string()), ("busy", "slow down".to_owned()));
    }

    #[test]
    fn an_exception_in_the_stream_is_classified_like_an_answer() {
        for (name, message, expected) in [
            ("throttlingException", "m", "busy"),
            ("internalServerException", "m", "busy"),
            ("modelStreamErrorException", "m", "busy"),
            ("serviceUnavailableException", "m", "busy"),
            ("somethingNewException", "m", "busy"),
            ("validationException", "m", "rejected"),
            ("validationException", "Input is too long for requested model.", "overflow"),
        ] {
            let error = in_band(name, &json!({"message": message}), "{}");
            assert_eq!((kind(&error), error.to_string()), (expected, message.to_owned()), "{name}");
        }
    }
}
