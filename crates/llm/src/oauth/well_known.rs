//! The sign-in document of an organization's server.
//!
//! It names a command that prints a token, and the environment variable for the token. This module
//! runs nothing: the caller shows the exact command to the user first.

use std::time::Duration;

use serde_json::{Map, Value};

use super::answer::is_local;
use crate::{Client, Error, fetch_with};

/// Time limit of an answer.
const DEADLINE: Duration = Duration::from_secs(15);
/// Limit of an answer.
const LIMIT_BYTES: usize = 1024 * 1024;
/// Limits of a command's words and bytes, so that the user can still read it.
const WORDS_LIMIT: usize = 64;
const COMMAND_LIMIT_BYTES: usize = 8 * 1024;
const NAME_LIMIT_BYTES: usize = 128;
/// Limit of the headers in a request for a configuration.
const HEADERS_LIMIT: usize = 32;

/// How to sign in at a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WellKnown {
    /// The URL, without a trailing slash.
    pub url: String,
    /// The command that prints the token: a program and its arguments.
    pub command: Vec<String>,
    /// The environment variable for the token.
    pub variable: String,
}

/// Normalizes the URL of a server. It must be secure or on this machine.
///
/// # Errors
///
/// Fails if it is neither, or contains a password, a query or a fragment.
pub fn address(written: &str) -> Result<String, Error> {
    let url = reqwest::Url::parse(written.trim()).ok().filter(|url| url.has_host());
    let url = url.filter(|url| url.username().is_empty() && url.password().is_none());
    let url = url.filter(|url| url.query().is_none() && url.fragment().is_none());
    let url = url.filter(|url| {
        url.scheme() == "https" || (url.scheme() == "http" && url.host_str().is_some_and(is_local))
    });
    let wrong =
        || Error::rejected("the sign-in URL must begin with https:// and contain no password or query");
    url.map(|url| url.as_str().trim_end_matches('/').to_owned()).ok_or_else(wrong)
}

/// Downloads the sign-in document of a server.
///
/// # Errors
///
/// Fails if the server is unreachable or the document is invalid.
pub async fn ask(client: &Client, url: &str) -> Result<WellKnown, Error> {
    let url = address(url)?;
    let answer = document(client, &url).await?;
    let wrong = |what: &str| Error::rejected(format!("the sign-in document of `{url}` is invalid: {what}"));
    let auth = answer.get("auth").ok_or_else(|| wrong("`auth` is missing"))?;
    let command: Option<Vec<String>> = auth.get("command").and_then(|command| {
        command.as_array()?.iter().map(|word| word.as_str().map(str::to_owned)).collect()
    });
    let command = command.filter(|command| command.first().is_some_and(|program| !program.is_empty()));
    let command = command.ok_or_else(|| wrong("`auth.command` must be a list of strings"))?;
    let is_short =
        command.len() <= WORDS_LIMIT && command.iter().map(String::len).sum::<usize>() <= COMMAND_LIMIT_BYTES;
    if !is_short {
        return Err(wrong("`auth.command` is too long"));
    }
    let variable = auth.get("env").and_then(Value::as_str).unwrap_or_default();
    if !is_variable(variable) {
        return Err(wrong("`auth.env` must be the name of an environment variable"));
    }
    let variable = variable.to_owned();
    Ok(WellKnown { url, command, variable })
}

/// Returns the configuration of a server as JSON, merged with the remote configuration that it
/// names.
///
/// `token` replaces `variable` in the remote request.
///
/// # Errors
///
/// Fails if a server is unreachable or an answer is invalid.
pub async fn config(client: &Client, url: &str, variable: &str, token: &str) -> Result<Value, Error> {
    let url = address(url)?;
    let answer = document(client, &url).await?;
    let mut config = match answer.get("config") {
        Some(Value::Object(config)) => config.clone(),
        Some(_) | None => Map::new(),
    };
    if let Some(elsewhere) = answer.get("remote_config").filter(|elsewhere| elsewhere.is_object()) {
        let filled = |text: &str| text.replace(&format!("{{env:{variable}}}"), token);
        let wrong = || Error::rejected(format!("`{url}` has no valid `remote_config.url`"));
        let place = elsewhere.get("url").and_then(Value::as_str).ok_or_else(wrong)?;
        // Checks only the URL's path: a query or a token in it is allowed.
        let bare = filled(place);
        let bare = bare.split(['?', '#']).next().unwrap_or_default();
        address(bare).map_err(|_| wrong())?;
        let headers = elsewhere.get("headers").and_then(Value::as_object).into_iter().flatten();
        let headers = headers.filter_map(|(name, value)| Some((name.clone(), filled(value.as_str()?))));
        let headers: Vec<_> = headers.take(HEADERS_LIMIT).collect();
        let text = fetch_with(client, &filled(place), &headers, LIMIT_BYTES, DEADLINE).await?;
        let more = object(&text, &url)?;
        let more = more.get("config").filter(|inner| inner.is_object()).unwrap_or(&more).clone();
        if let Value::Object(more) = more {
            config.extend(more);
        }
    }
    Ok(Value::Object(config))
}

async fn document(client: &Client, url: &str) -> Result<Value, Error> {
    let text = fetch_with(client, &format!("{url}/.well-known/opencode"), &[], LIMIT_BYTES, DEADLINE).await?;
    object(&text, url)
}

fn object(text: &str, url: &str) -> Result<Value, Error> {
    // The parser's message may quote the text, which may be a sign-in page.
    let wrong = || {
        Error::rejected(format!(
            "the answer of `{url}` is not a JSON object; you may have to sign in there again"
        ))
    };
    serde_json::from_str(text).ok().filter(Value::is_object).ok_or_else(wrong)
}

/// Returns whether a text is a valid name of a variable.
fn is_variable(name: &str) -> bool {
    let begins = name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    begins && name.len() <= NAME_LIMIT_BYTES && name.bytes().all(fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_secure_and_lose_their_trailing_slash() {
        for (written, expected) in [
            ("https://ai.example.org/", Some("https://ai.example.org")),
            ("https://ai.example.org/team//", Some("https://ai.example.org/team")),
            ("http://127.0.0.1:9/", Some("http://127.0.0.1:9")),
            ("http://ai.example.org", None),
            ("https://me:secret@ai.example.org", None),
            ("https://ai.example.org?x=1", None),
            ("ftp://ai.example.org", None),
            ("ai.example.org", None),
        ] {
            assert_eq!(address(written).ok().as_deref(), expected, "{written}");
        }
        for (name, expected) in
            [("ACME_TOKEN", true), ("_x1", true), ("", false), ("A B", false), ("1A", false), ("A=B", false)]
        {
            assert_eq!(is_variable(name), expected, "{name}");
        }
    }
}
