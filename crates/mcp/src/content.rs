//! The results of calls, prompts and resources, as text and files for a model.

use serde_json::{Map, Value};

use crate::error::cut;

/// The types of files that models can receive.
const ATTACHED: [&str; 5] = ["image/png", "image/jpeg", "image/gif", "image/webp", "application/pdf"];
/// The limit of files in a result.
const MAX_FILES: usize = 20;
/// The limit of blocks in a result.
const MAX_BLOCKS: usize = 10_000;

/// A result of a server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Content {
    pub text: String,
    pub files: Vec<Attached>,
    /// Whether the server reports an error.
    pub is_error: bool,
}

/// A file that a server sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attached {
    pub mime: String,
    /// Its content in base64.
    pub data: String,
    pub uri: Option<String>,
}

/// A part of a prompt or of a resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    Text(String),
    File(Attached),
}

/// The result of a tool call.
#[must_use]
pub fn result(value: &Value) -> Content {
    let blocks = value.get("content").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let mut texts = Vec::new();
    let mut files = Vec::new();
    for part in blocks.iter().take(MAX_BLOCKS).filter_map(block) {
        match part {
            Part::Text(text) => texts.push(text),
            Part::File(file) if files.len() < MAX_FILES => files.push(file),
            Part::File(_) => {}
        }
    }
    let mut text = texts.join("\n\n");
    let structured = value.get("structuredContent").filter(|value| !value.is_null());
    if let (true, true, Some(structured)) = (text.is_empty(), files.is_empty(), structured) {
        text = structured.to_string();
    }
    Content { text, files, is_error: value.get("isError") == Some(&Value::Bool(true)) }
}

/// The text of a prompt's messages, which a command sends.
#[must_use]
pub fn prompt_text(value: &Value) -> String {
    let messages = value.get("messages").and_then(Value::as_array).into_iter().flatten();
    let texts = messages.take(MAX_BLOCKS).filter_map(|message| match block(message.get("content")?)? {
        Part::Text(text) => Some(text),
        Part::File(_) => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

/// The contents of a resource.
#[must_use]
pub fn resource_parts(value: &Value) -> Vec<(Map<String, Value>, Part)> {
    let contents = value.get("contents").and_then(Value::as_array).into_iter().flatten();
    let objects = contents.take(MAX_BLOCKS).filter_map(Value::as_object);
    objects.filter_map(|object| Some((object.clone(), resource(object)?))).collect()
}

fn block(value: &Value) -> Option<Part> {
    let block = value.as_object()?;
    let text = |key: &str| block.get(key).and_then(Value::as_str);
    match text("type")? {
        "text" => Some(Part::Text(text("text")?.to_owned())),
        "image" | "audio" => {
            let (mime, data) = (text("mimeType")?, text("data")?);
            Some(file(mime, data, None).unwrap_or_else(|| Part::Text(omitted("content", mime, data))))
        }
        "resource" => resource(block.get("resource")?.as_object()?),
        "resource_link" => {
            let uri = text("uri")?;
            let name = text("name").filter(|name| *name != uri);
            Some(Part::Text(match name {
                Some(name) => format!("[Resource: {} ({})]", cut(name), cut(uri)),
                None => format!("[Resource: {}]", cut(uri)),
            }))
        }
        _ => None,
    }
}

fn resource(object: &Map<String, Value>) -> Option<Part> {
    let text = |key: &str| object.get(key).and_then(Value::as_str);
    if let Some(content) = text("text") {
        return Some(Part::Text(content.to_owned()));
    }
    let data = text("blob")?;
    let uri = text("uri").unwrap_or_default();
    let mime = text("mimeType").unwrap_or("application/octet-stream");
    Some(file(mime, data, Some(uri)).unwrap_or_else(|| Part::Text(omitted(uri, mime, data))))
}

fn file(mime: &str, data: &str, uri: Option<&str>) -> Option<Part> {
    let mime = mime.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let is_base64 = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=');
    let is_usable = ATTACHED.contains(&mime.as_str()) && !data.is_empty() && data.bytes().all(is_base64);
    is_usable.then(|| Part::File(Attached { mime, data: data.to_owned(), uri: uri.map(str::to_owned) }))
}

fn omitted(uri: &str, mime: &str, data: &str) -> String {
    let padding = data.bytes().rev().take_while(|byte| *byte == b'=').count();
    let bytes = (data.len() / 4 * 3).saturating_sub(padding);
    let size = match bytes {
        0..1024 => format!("{bytes} B"),
        1024..1_048_576 => format!("{:.1} KB", bytes as f64 / 1024.0),
        _ => format!("{:.1} MB", bytes as f64 / 1_048_576.0),
    };
    let (uri, mime) = (cut(uri), cut(mime));
    format!("[Binary MCP resource omitted: {uri} ({mime}, {size}) is not a supported attachment type]")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn results_have_the_recorded_form() {
        let image = json!({"content": [
            {"type": "text", "text": "Here's the image you requested:"},
            {"type": "image", "data": "aGk=", "mimeType": "image/png"},
            {"type": "text", "text": "The image above is the MCP logo."}]});
        let content = result(&image);
        assert_eq!(content.text, "Here's the image you requested:\n\nThe image above is the MCP logo.");
        assert_eq!((content.files[0].mime.as_str(), content.files.len()), ("image/png", 1));
        let blob = "QUFB".repeat(18) + "QQ==";
        let blob = json!({"content": [{"type": "resource", "resource": {
            "uri": "demo://resource/dynamic/blob/1", "mimeType": "text/plain", "blob": blob}}]});
        assert_eq!(
            result(&blob).text,
            "[Binary MCP resource omitted: demo://resource/dynamic/blob/1 (text/plain, 55 B) is not a supported \
             attachment type]"
        );
        assert_eq!(result(&json!({"structuredContent": {"a": 1}})).text, r#"{"a":1}"#);
        let failed = result(&json!({"isError": true, "content": [{"type": "text", "text": "no"}]}));
        assert!(failed.is_error && failed.text == "no");
    }

    #[test]
    fn strange_content_is_left_out() {
        let strange = json!({"content": [1, {"type": "text"}, {"type": "new"}, {"type": "image", "data": "no base64!",
            "mimeType": "image/png"}, {"type": "text", "text": "ok"}]});
        let content = result(&strange);
        assert!(content.text.ends_with("ok") && content.files.is_empty());
        assert_eq!(result(&json!(null)), Content::default());
    }
}
