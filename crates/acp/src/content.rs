//! Content blocks of an editor as parts of a prompt, and back.

use agent_client_protocol::v1::schema::{
    Annotations, ContentBlock, EmbeddedResourceResource, ImageContent, ResourceLink, Role, TextContent,
};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use codewright_proto::{FileAttachment, Part, PartBody, PartInput, media_type};
use percent_encoding::percent_decode_str;

/// The largest embedded file.
const MAX_EMBEDDED_BYTES: usize = 32 << 20;

/// Converts the prompt of an editor.
///
/// # Errors
///
/// Fails with a sentence if a block cannot be part of a prompt.
pub(crate) fn parts(blocks: Vec<ContentBlock>) -> Result<Vec<PartInput>, String> {
    blocks.into_iter().map(part).collect()
}

fn part(block: ContentBlock) -> Result<PartInput, String> {
    match block {
        ContentBlock::Text(text) => Ok(self::text(text.text)),
        ContentBlock::Image(image) => {
            check_media(&image.mime_type)?;
            check_base64(&image.data)?;
            let url = format!("data:{};base64,{}", image.mime_type, image.data);
            Ok(file(image.mime_type, image.uri.as_deref().and_then(name_of), url))
        }
        ContentBlock::ResourceLink(link) => Ok(linked(&link)),
        ContentBlock::Resource(resource) => embedded(resource.resource),
        ContentBlock::Audio(_) => Err("audio cannot be part of a prompt".to_owned()),
        _ => Err("a block of the prompt has an unknown type".to_owned()),
    }
}

fn text(text: String) -> PartInput {
    PartInput::Text { id: None, text, synthetic: None, ignored: None, metadata: None }
}

fn file(mime: String, filename: Option<String>, url: String) -> PartInput {
    PartInput::File { id: None, mime, filename, url, source: None, checked: None }
}

/// A link to a file is an attached file. Other links are text, because the prompt of a user is no reason to fetch an address.
fn linked(link: &ResourceLink) -> PartInput {
    if link.uri.starts_with("file://") {
        let mime = link.mime_type.clone().filter(|mime| check_media(mime).is_ok());
        let mime = mime.unwrap_or_else(|| "text/plain".to_owned());
        return file(mime, Some(link.name.clone()), link.uri.clone());
    }
    text(format!("[{}]({})", link.name, link.uri))
}

/// The content of a buffer or of another resource. It is attached as it is, because the file may differ.
fn embedded(resource: EmbeddedResourceResource) -> Result<PartInput, String> {
    let (uri, mime, data) = match resource {
        EmbeddedResourceResource::TextResourceContents(it) => {
            let mime = it.mime_type.filter(|mime| mime.starts_with("text/"));
            (it.uri, mime.unwrap_or_else(|| "text/plain".to_owned()), STANDARD.encode(it.text))
        }
        EmbeddedResourceResource::BlobResourceContents(it) => {
            check_base64(&it.blob)?;
            let mime = it.mime_type.unwrap_or_else(|| media_type(&it.uri).to_owned());
            (it.uri, mime, it.blob)
        }
        _ => return Err("a resource of the prompt has an unknown type".to_owned()),
    };
    check_media(&mime)?;
    if data.len() > MAX_EMBEDDED_BYTES {
        return Err(format!("`{uri}` is larger than {} MiB", MAX_EMBEDDED_BYTES >> 20));
    }
    let name = name_of(&uri).unwrap_or_else(|| uri.clone());
    Ok(file(mime.clone(), Some(name), format!("data:{mime};base64,{data}")))
}

/// A media type becomes part of a URL, so it must not contain its separators.
fn check_media(mime: &str) -> Result<(), String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/+-._".contains(c);
    if mime.contains('/') && mime.len() <= 128 && mime.chars().all(is_plain) {
        return Ok(());
    }
    Err("a block of the prompt has an invalid media type".to_owned())
}

fn check_base64(data: &str) -> Result<(), String> {
    if data.len() > MAX_EMBEDDED_BYTES {
        return Err(format!("a block of the prompt is larger than {} MiB", MAX_EMBEDDED_BYTES >> 20));
    }
    match STANDARD.decode(data) {
        Ok(_) => Ok(()),
        Err(_) => Err("a block of the prompt is not valid Base64".to_owned()),
    }
}

/// The last component of a URI, decoded.
fn name_of(uri: &str) -> Option<String> {
    let last = uri.split(['?', '#']).next()?.rsplit('/').next()?;
    let name = percent_decode_str(last).decode_utf8_lossy();
    let name: String = name.chars().filter(|c| !c.is_control()).collect();
    (!name.is_empty()).then_some(name)
}

/// The blocks that repeat a stored part of a prompt.
pub(crate) fn blocks(part: &Part) -> Vec<ContentBlock> {
    match &part.body {
        PartBody::Text(text) if text.ignored != Some(true) => {
            let content = TextContent::new(&*text.text);
            let content = match text.synthetic {
                Some(true) => content.annotations(Annotations::new().audience(vec![Role::Assistant])),
                _ => content,
            };
            vec![ContentBlock::Text(content)]
        }
        PartBody::File { mime, filename, url, .. } => {
            let name = filename.clone().or_else(|| name_of(url)).unwrap_or_else(|| "file".to_owned());
            if let Some(image) = image(mime, url) {
                return vec![image];
            }
            if url.starts_with("data:") {
                return vec![ContentBlock::Text(TextContent::new(format!("[{name}]")))];
            }
            let link = ResourceLink::new(name, url.clone()).mime_type(mime.clone());
            vec![ContentBlock::ResourceLink(link)]
        }
        _ => Vec::new(),
    }
}

/// The pictures that a tool returned.
pub(crate) fn pictures(attachments: &[FileAttachment]) -> impl Iterator<Item = ContentBlock> {
    attachments.iter().filter_map(|attachment| image(&attachment.mime, &attachment.url))
}

fn image(mime: &str, url: &str) -> Option<ContentBlock> {
    let data = url.strip_prefix("data:")?.split_once(";base64,")?.1;
    mime.starts_with("image/").then(|| ContentBlock::Image(ImageContent::new(data, mime)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn convert(block: serde_json::Value) -> Result<serde_json::Value, String> {
        let block = serde_json::from_value(block).expect("a content block");
        parts(vec![block]).map(|parts| serde_json::to_value(&parts[0]).expect("JSON"))
    }

    #[test]
    fn blocks_of_an_editor_become_parts() {
        let table = [
            (json!({"type": "text", "text": "hi"}), json!({"type": "text", "text": "hi"})),
            (
                json!({"type": "image", "mimeType": "image/png", "data": "AAAA"}),
                json!({"type": "file", "mime": "image/png", "url": "data:image/png;base64,AAAA"}),
            ),
            (
                json!({"type": "resource_link", "name": "a b.rs", "uri": "file:///w/a%20b.rs"}),
                json!({"type": "file", "mime": "text/plain", "filename": "a b.rs", "url": "file:///w/a%20b.rs"}),
            ),
            (
                json!({"type": "resource_link", "name": "page", "uri": "https://example.com/x"}),
                json!({"type": "text", "text": "[page](https://example.com/x)"}),
            ),
            (
                json!({"type": "resource", "resource": {"uri": "file:///w/a%20b.rs", "text": "hi"}}),
                json!({"type": "file", "mime": "text/plain", "filename": "a b.rs", "url": "data:text/plain;base64,aGk="}),
            ),
        ];
        for (block, expected) in table {
            assert_eq!(convert(block.clone()), Ok(expected), "{block}");
        }
    }

    #[test]
    fn blocks_that_cannot_be_sent_are_refused_with_a_sentence() {
        let table = [
            (json!({"type": "audio", "mimeType": "audio/wav", "data": "AAAA"}), "audio"),
            (json!({"type": "image", "mimeType": "image/png", "data": "not base64!"}), "Base64"),
            (json!({"type": "image", "mimeType": "image/png;base64,AAAA", "data": "AAAA"}), "media type"),
            (json!({"type": "resource", "resource": {"uri": "x:y", "blob": "%"}}), "Base64"),
        ];
        for (block, expected) in table {
            let refused = convert(block.clone()).expect_err("a refusal");
            assert!(refused.contains(expected), "{block}: {refused}");
        }
    }
}
