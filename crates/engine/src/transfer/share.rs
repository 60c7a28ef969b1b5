//! The import of a published session by its address.
//!
//! Only addresses that the user enters are fetched, and only from the server that publishes sessions:
//! OpenCode's, or the configured one.

use std::time::Duration;

use serde_json::{Value, json};

use crate::Error;
use crate::inner::Inner;

use super::document::MAX_DOCUMENT_BYTES;

/// The server that publishes sessions.
const PLACE: &str = "https://opncd.ai";
/// The deadline for fetching a session.
const FETCH_DEADLINE: Duration = Duration::from_secs(60);
/// The longest name of a published session.
const MAX_SLUG_BYTES: usize = 128;

/// Fetches a published session and returns it as an exported one.
pub(super) async fn fetch(inner: &Inner, place: Option<&str>, address: &str) -> Result<String, Error> {
    let place = place.unwrap_or(PLACE).trim_end_matches('/');
    let url = data_url(place, address)?;
    let text = codewright_llm::fetch(&inner.llm, &url, MAX_DOCUMENT_BYTES, FETCH_DEADLINE).await?;
    let items: Vec<Value> = serde_json::from_str(&text)
        .map_err(|error| Error::invalid(format!("{url} did not return a session: {error}")))?;
    let document = document(items)
        .ok_or_else(|| Error::invalid(format!("there is no session at {address}, or it is empty")))?;
    Ok(document.to_string())
}

/// Returns the address of a published session's data.
fn data_url(place: &str, address: &str) -> Result<String, Error> {
    let slug = address.strip_prefix(place).and_then(|rest| rest.strip_prefix("/share/"));
    let plain = |slug: &&str| {
        !slug.is_empty()
            && slug.len() <= MAX_SLUG_BYTES
            && slug.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
    };
    let slug = slug.map(|slug| slug.trim_end_matches('/')).filter(plain);
    let slug = slug.ok_or_else(|| {
        Error::invalid(format!("`{address}` is not the address of a share, such as {place}/share/NAME"))
    })?;
    Ok(format!("{place}/api/share/{slug}/data"))
}

/// Builds an exported session from published items. Returns `None` if the session itself is missing.
fn document(items: Vec<Value>) -> Option<Value> {
    let mut info = None;
    let mut messages: Vec<Value> = Vec::new();
    let mut parts = Vec::new();
    for mut item in items {
        let data = item["data"].take();
        match item["type"].as_str() {
            Some("session") => info = Some(data),
            Some("message") => messages.push(json!({ "info": data, "parts": [] })),
            Some("part") => parts.push(data),
            _ => {}
        }
    }
    let mut places: std::collections::HashMap<String, usize> = std::collections::HashMap::new();
    for (n, message) in messages.iter().enumerate() {
        places.insert(message["info"]["id"].as_str().unwrap_or_default().to_owned(), n);
    }
    for part in parts {
        let of = part["messageID"].as_str().and_then(|id| places.get(id));
        if let Some(parts) =
            of.and_then(|n| messages.get_mut(*n)).and_then(|message| message["parts"].as_array_mut())
        {
            parts.push(part);
        }
    }
    info.map(|info| json!({ "info": info, "messages": messages }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_of_shares_are_fetched() {
        assert_eq!(
            data_url(PLACE, "https://opncd.ai/share/aB1").unwrap(),
            "https://opncd.ai/api/share/aB1/data"
        );
        for address in [
            "https://opncd.ai/s/x",
            "https://opncd.ai/share/",
            "https://opncd.ai/share/../x",
            "https://opncd.ai/share/x?y",
            "https://opncd.ai.example/share/x",
            "http://opncd.ai/share/x",
            "https://example.com/share/x",
        ] {
            let error = data_url(PLACE, address).unwrap_err().to_string();
            assert!(error.contains(address) && error.contains("https://opncd.ai/share/NAME"), "{error}");
        }
    }
}
