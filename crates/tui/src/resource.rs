//! Resources of MCP servers that a prompt mentions.

use serde_json::{Value, json};

use crate::clean::clean_line;

/// The number of resources that can be mentioned.
const MAX_RESOURCES: usize = 2000;
/// The longest name on the screen.
const MAX_NAME_CHARS: usize = 60;
/// The longest address.
const MAX_URI_BYTES: usize = 4096;
/// The media type of a resource whose server names none.
const PLAIN: &str = "text/plain";

/// A resource of an MCP server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Resource {
    /// The name on the screen.
    pub(crate) name: String,
    /// The name of the server, as the server of the API wrote it.
    pub(crate) client: String,
    pub(crate) uri: String,
    pub(crate) mime: String,
}

impl Resource {
    /// Reads the answer of `GET /experimental/resource`. Entries that cannot be shown are left out.
    pub(crate) fn read_all(value: &Value) -> Vec<Self> {
        let entries = value.as_object().into_iter().flatten();
        entries.filter_map(|(_, entry)| Self::read(entry)).take(MAX_RESOURCES).collect()
    }

    fn read(value: &Value) -> Option<Self> {
        let text = |key: &str| value[key].as_str();
        let uri = text("uri").filter(|uri| uri.len() <= MAX_URI_BYTES && clean_line(uri) == *uri)?;
        let name: String = clean_line(text("name").unwrap_or(uri)).chars().take(MAX_NAME_CHARS).collect();
        let name = name.split_whitespace().collect::<Vec<_>>().join("_");
        let mime = text("mimeType").map(clean_line).filter(|mime| !mime.is_empty());
        (!name.is_empty()).then(|| Self {
            name,
            client: text("client").unwrap_or_default().to_owned(),
            uri: uri.to_owned(),
            mime: mime.unwrap_or_else(|| PLAIN.to_owned()),
        })
    }

    /// The server and the address, as text.
    pub(crate) fn place(&self) -> String {
        format!("{} {}", clean_line(&self.client), self.uri)
    }

    /// The recorded source of the attachment. `text` is the place in the prompt.
    pub(crate) fn source(&self, text: Value) -> Value {
        json!({"text": text, "type": "resource", "clientName": self.client, "uri": self.uri})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resources_are_read_and_cleaned() {
        let all = Resource::read_all(&json!({
            "a": {"name": "my notes\u{1b}[31m", "uri": "demo://n", "client": "s"},
            "b": {"uri": "demo://\u{1b}[2J", "client": "s"},
            "c": {"name": "", "uri": "demo://x", "client": "s", "mimeType": "image/png"},
            "d": 7,
        }));
        assert_eq!(all.len(), 1, "{all:?}");
        assert!(all[0].name.starts_with("my_notes") && !all[0].name.contains('\u{1b}'), "{all:?}");
        assert_eq!((all[0].mime.as_str(), all[0].place().as_str()), ("text/plain", "s demo://n"));
    }
}
