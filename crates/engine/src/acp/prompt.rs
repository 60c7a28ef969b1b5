//! The prompt of a session as content for another agent.
//!
//! The agent keeps its own conversation. Messages that it does not know yet, such as those that were answered by a model,
//! precede the prompt as text.

use codewright_acp_client::schema::{ContentBlock, ImageContent, ResourceLink, TextContent};
use codewright_proto::{Message, MessageWithParts, Part, PartBody, ToolState};

/// The most text of earlier messages. The oldest are left out.
const MAX_EARLIER_BYTES: usize = 64 << 10;
/// The most text of one earlier message.
const MAX_MESSAGE_BYTES: usize = 8 << 10;
/// Stands for text that was left out.
const LEFT_OUT: &str = "[…]";

/// What is known about the receiver of a prompt.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Receiver<'a> {
    /// The index of the first message that the agent does not know.
    pub(crate) unknown_from: usize,
    /// The configured instructions, for a new session.
    pub(crate) instructions: Option<&'a str>,
    /// Whether the agent reads images.
    pub(crate) reads_images: bool,
}

/// Returns the content of the prompt at an index of a transcript.
pub(crate) fn blocks(
    transcript: &[MessageWithParts],
    at: usize,
    receiver: Receiver<'_>,
) -> Vec<ContentBlock> {
    let mut blocks: Vec<_> = receiver.instructions.map(text).into_iter().collect();
    let earlier = transcript.get(receiver.unknown_from.min(at)..at).unwrap_or_default();
    blocks.extend(conversation(earlier).as_deref().map(text));
    let parts = transcript.get(at).map(|prompt| prompt.parts.as_slice()).unwrap_or_default();
    blocks.extend(parts.iter().filter_map(|part| block(part, receiver.reads_images)));
    blocks
}

fn text(text: &str) -> ContentBlock {
    ContentBlock::Text(TextContent::new(text))
}

fn block(part: &Part, reads_images: bool) -> Option<ContentBlock> {
    match &part.body {
        PartBody::Text(it) if it.ignored != Some(true) && !it.text.is_empty() => Some(text(&it.text)),
        PartBody::File { mime, filename, url, .. } => {
            let name = filename.clone().unwrap_or_else(|| "file".to_owned());
            let data = url.strip_prefix("data:").and_then(|data| data.split_once(";base64,"));
            match data {
                Some((_, data)) if mime.starts_with("image/") && reads_images => {
                    Some(ContentBlock::Image(ImageContent::new(data, mime)))
                }
                // The content of a text file is a text part.
                Some(_) if mime.starts_with("text/") => None,
                Some(_) => Some(text(&format!("[The user attached `{name}`, which cannot be sent to you.]"))),
                None if url.starts_with("data:") => None,
                None => {
                    let link = ResourceLink::new(name, url.clone()).mime_type(mime.clone());
                    Some(ContentBlock::ResourceLink(link))
                }
            }
        }
        _ => None,
    }
}

/// Returns messages as text, the newest of them if they are long.
fn conversation(messages: &[MessageWithParts]) -> Option<String> {
    let mut told = Vec::new();
    let mut bytes = 0;
    for message in messages.iter().rev() {
        let Some(text) = spoken(message) else { continue };
        bytes += text.len();
        if bytes > MAX_EARLIER_BYTES {
            told.push(LEFT_OUT.to_owned());
            break;
        }
        told.push(text);
    }
    if told.is_empty() {
        return None;
    }
    told.reverse();
    Some(format!(
        "This is the earlier conversation of the session, which you do not know yet. The prompt follows it.\n\n{}",
        told.join("\n\n")
    ))
}

fn spoken(message: &MessageWithParts) -> Option<String> {
    let author = match &message.info {
        Message::User(_) => "User",
        Message::Assistant(_) => "Assistant",
    };
    let lines = message.parts.iter().filter_map(|part| match &part.body {
        PartBody::Text(text) if text.ignored != Some(true) && !text.text.trim().is_empty() => {
            Some(text.text.trim().to_owned())
        }
        PartBody::Tool(call) => Some(match &call.state {
            ToolState::Completed { title, .. } => format!("[{}: {title}]", call.tool),
            ToolState::Error { .. } => format!("[{} failed]", call.tool),
            ToolState::Pending { .. } | ToolState::Running { .. } => format!("[{}]", call.tool),
        }),
        _ => None,
    });
    let lines: Vec<_> = lines.collect();
    if lines.is_empty() {
        return None;
    }
    let text = format!("{author}: {}", lines.join("\n"));
    if text.len() <= MAX_MESSAGE_BYTES {
        return Some(text);
    }
    Some(format!("{}{LEFT_OUT}", &text[..text.floor_char_boundary(MAX_MESSAGE_BYTES)]))
}
