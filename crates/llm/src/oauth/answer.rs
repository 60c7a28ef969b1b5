//! Answers of token servers, and the URLs that tokens may be sent to.

use serde_json::Value;

use crate::error::{Failure, cut};
use crate::{Error, Secret};

/// Returns the error for a sign-in that the user has to repeat.
pub(super) fn sign_in(provider: &str, what: &str) -> Error {
    let message = format!(
        "the sign-in to `{provider}` {what}; run `codewright providers login {provider}` to sign in again"
    );
    Error::Auth { failure: Failure::new(message) }
}

/// Returns the error for a failed token request. Contains the server's message, unless that repeats
/// a secret.
pub(super) fn token_error(what: &str, status: u16, answer: &Value, secrets: &[&str]) -> Error {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let code = answer.get("error").and_then(|error| text(error).or_else(|| text(error.get("code")?)));
    let description =
        answer.get("error_description").or_else(|| answer.pointer("/error/message")).and_then(text);
    let parts: Vec<String> = code.into_iter().chain(description).collect();
    let text = cut(&parts.join(": "), 300).replace(char::is_control, " ");
    let is_safe = !secrets.iter().any(|secret| !secret.is_empty() && text.contains(secret));
    let text = if is_safe && !text.is_empty() { format!(": {text}") } else { String::new() };
    let message = format!("{what} was refused with status {status}{text}");
    match status {
        400..=407 => Error::Auth { failure: Failure::new(message) },
        408 | 425 | 429 | 500.. => Error::busy(message),
        _ => Error::rejected(message),
    }
}

/// Returns a required text field of an answer.
pub(super) fn field(answer: &Value, name: &str) -> Result<String, Error> {
    let text = answer.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    let missing = || Error::rejected(format!("the sign-in server's answer has no `{name}`"));
    text.map(str::to_owned).ok_or_else(missing)
}

/// Returns a number of seconds in an answer. Some servers send numbers as text.
pub(super) fn seconds(answer: &Value, name: &str) -> Option<u64> {
    let value = answer.get(name)?;
    value.as_f64().map(|number| number as u64).or_else(|| value.as_str()?.trim().parse().ok())
}

/// Returns the origin of a URL that secrets are sent to. It must be secure or on this machine.
pub(crate) fn origin(written: &str, what: &str) -> Result<String, Error> {
    let url = reqwest::Url::parse(written.trim()).ok();
    let url = url.filter(|url| url.has_host() && url.username().is_empty() && url.password().is_none());
    let url = url.filter(|url| match url.scheme() {
        "https" => true,
        "http" => url.host_str().is_some_and(is_local),
        _ => false,
    });
    // The message must not repeat the URL, which may contain a password.
    let wrong =
        || Error::rejected(format!("the address of {what} must begin with https:// and contain no password"));
    url.map(|url| url.origin().ascii_serialization()).ok_or_else(wrong)
}

pub(super) fn is_local(host: &str) -> bool {
    host == "localhost" || host == "127.0.0.1" || host == "[::1]"
}

pub(super) fn secret(text: String) -> Secret {
    Secret::from(text)
}
