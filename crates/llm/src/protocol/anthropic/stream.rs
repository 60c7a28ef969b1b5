//! Decodes the events of an Anthropic message.
//!
//! The server numbers content blocks and sends one after another. Blocks of unknown types, such as
//! the server's own tools, are skipped.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::error;
use crate::loose::Loose;
use crate::protocol::limits::{check_block, count_call, cut_short, malformed};
use crate::protocol::repeat::Repeat;
use crate::{Error, FinishReason, ModelEvent, Usage};

/// The decoder of one answer.
#[derive(Debug, Default)]
pub(crate) struct Stream {
    /// The open blocks, with their numbers.
    open: Vec<(u64, Block)>,
    /// The previous event, if it was text. Other events reset it, because a block may have ended.
    repeat: Repeat,
    calls: usize,
    reason: Option<FinishReason>,
    counts: Counts,
    done: bool,
}

#[derive(Debug)]
enum Block {
    Text,
    Thinking {
        signature: String,
    },
    Redacted {
        data: String,
    },
    Call {
        id: String,
        name: String,
        arguments: String,
        given: Option<Value>,
    },
    /// A block of an unknown type.
    Other,
}

/// The tokens reported so far. Later reports replace earlier ones.
#[derive(Debug, Default)]
struct Counts {
    seen: bool,
    input: u64,
    output: u64,
    cache_read: u64,
    cache_write: u64,
}

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(borrow, default)]
    r#type: Loose<'a>,
    #[serde(default)]
    index: u64,
    #[serde(borrow, default)]
    delta: Option<Delta<'a>>,
    #[serde(borrow, default)]
    content_block: Option<&'a RawValue>,
    #[serde(borrow, default)]
    message: Option<&'a RawValue>,
    #[serde(borrow, default)]
    usage: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Delta<'a> {
    #[serde(borrow, default)]
    text: Loose<'a>,
    #[serde(borrow, default)]
    thinking: Loose<'a>,
    #[serde(borrow, default)]
    signature: Loose<'a>,
    #[serde(borrow, default)]
    partial_json: Loose<'a>,
    #[serde(borrow, default)]
    stop_reason: Loose<'a>,
}

impl Stream {
    /// Decodes the data of one event.
    pub(crate) fn push(&mut self, data: &str, out: &mut Vec<ModelEvent>) -> Result<(), Error> {
        let data = data.trim();
        if self.done || data.is_empty() {
            return Ok(());
        }
        if let Some(text) = self.repeat.text(data) {
            out.push(ModelEvent::TextDelta(text.into_owned()));
            return Ok(());
        }
        self.repeat.forget();
        // Relays that also support the chat protocol end their streams in its format.
        if data == "[DONE]" {
            return self.finish(out);
        }
        let event: Event = serde_json::from_str(data).map_err(|why| malformed(data, &why))?;
        match event.r#type.text().unwrap_or_default() {
            "content_block_delta" => match event.delta {
                Some(delta) => {
                    let begun = out.len();
                    self.delta(event.index, delta, out)?;
                    if let [ModelEvent::TextDelta(text)] = &out[begun..] {
                        self.repeat.learn(data, "\"text\":\"", text);
                    }
                    Ok(())
                }
                None => Ok(()),
            },
            "content_block_start" => {
                let block = event.content_block.and_then(|raw| serde_json::from_str(raw.get()).ok());
                self.start(event.index, &block.unwrap_or_default(), out)
            }
            "content_block_stop" => {
                if let Some(at) = self.open.iter().position(|(index, _)| *index == event.index) {
                    let (_, block) = self.open.remove(at);
                    end(block, out);
                }
                Ok(())
            }
            "message_start" => {
                let message: Value =
                    event.message.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default();
                self.counts.update(&message["usage"]);
                Ok(())
            }
            "message_delta" => {
                if let Some(reason) = event.delta.as_ref().and_then(|delta| delta.stop_reason.text()) {
                    self.reason = Some(reason_of(reason));
                }
                if let Some(usage) = event.usage.and_then(|raw| serde_json::from_str(raw.get()).ok()) {
                    self.counts.update(&usage);
                }
                Ok(())
            }
            "message_stop" => {
                self.close(out);
                Ok(())
            }
            "error" => Err(event_error(data)),
            // `ping`, and events that are added in the future.
            _ if event.error.is_some() => Err(event_error(data)),
            _ => Ok(()),
        }
    }

    /// Decodes a message that was not streamed.
    pub(crate) fn push_whole(&mut self, body: &str, out: &mut Vec<ModelEvent>) -> Result<(), Error> {
        let message: Value = serde_json::from_str(body.trim()).map_err(|why| malformed(body, &why))?;
        if message.get("error").is_some_and(|error| !error.is_null()) {
            return Err(error::in_band(&message));
        }
        let Some(content) = message.get("content").and_then(Value::as_array) else {
            return Err(Error::rejected(format!(
                "the server answered with JSON that is not a message: {}",
                crate::error::cut(body.trim(), 300)
            )));
        };
        for (index, block) in (0..).zip(content) {
            self.start(index, block, out)?;
            self.end_all(out);
        }
        self.counts.update(&message["usage"]);
        self.reason = message["stop_reason"].as_str().map(reason_of);
        self.close(out);
        Ok(())
    }

    /// Completes the answer after the connection has ended.
    pub(crate) fn finish(&mut self, out: &mut Vec<ModelEvent>) -> Result<(), Error> {
        match (self.done, &self.reason) {
            (true, _) => {}
            (false, Some(_)) => self.close(out),
            (false, None) => return Err(cut_short()),
        }
        Ok(())
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.reason.is_some()
    }

    pub(crate) fn is_done(&self) -> bool {
        self.done
    }

    fn start(&mut self, index: u64, block: &Value, out: &mut Vec<ModelEvent>) -> Result<(), Error> {
        // A block that was not ended ends here, because blocks must not overlap.
        self.end_all(out);
        let text = |name: &str| block[name].as_str().unwrap_or_default();
        let begun = match text("type") {
            "text" => {
                out.push(ModelEvent::TextStart);
                push_filled(text("text"), out, ModelEvent::TextDelta);
                Block::Text
            }
            "thinking" => {
                out.push(ModelEvent::ReasoningStart);
                push_filled(text("thinking"), out, ModelEvent::ReasoningDelta);
                Block::Thinking { signature: text("signature").to_owned() }
            }
            "redacted_thinking" => {
                out.push(ModelEvent::ReasoningStart);
                Block::Redacted { data: text("data").to_owned() }
            }
            "tool_use" => {
                count_call(&mut self.calls)?;
                let (id, name) = (text("id").to_owned(), text("name").to_owned());
                out.push(ModelEvent::ToolStart { id: id.clone(), name: name.clone() });
                let given = block.get("input").cloned();
                Block::Call { id, name, arguments: String::new(), given }
            }
            _ => Block::Other,
        };
        self.open.push((index, begun));
        Ok(())
    }

    fn delta(&mut self, index: u64, delta: Delta, out: &mut Vec<ModelEvent>) -> Result<(), Error> {
        let Some((_, block)) = self.open.iter_mut().find(|(open, _)| *open == index) else {
            return Ok(());
        };
        match block {
            Block::Text => push_source(delta.text, out, ModelEvent::TextDelta),
            Block::Thinking { signature } => {
                push_source(delta.thinking, out, ModelEvent::ReasoningDelta);
                if let Some(more) = delta.signature.text() {
                    check_block(signature.len() + more.len())?;
                    signature.push_str(more);
                }
            }
            Block::Call { id, arguments, .. } => {
                if let Some(text) = delta.partial_json.source() {
                    check_block(arguments.len() + text.len())?;
                    arguments.push_str(&text);
                    out.push(ModelEvent::ToolDelta { id: id.clone(), text: text.into_owned() });
                }
            }
            Block::Redacted { .. } | Block::Other => {}
        }
        Ok(())
    }

    fn end_all(&mut self, out: &mut Vec<ModelEvent>) {
        for (_, block) in self.open.drain(..) {
            end(block, out);
        }
    }

    fn close(&mut self, out: &mut Vec<ModelEvent>) {
        self.end_all(out);
        let reason = self.reason.take().unwrap_or(FinishReason::Unknown).with_calls(self.calls);
        self.done = true;
        out.push(ModelEvent::Finish { reason, usage: self.counts.usage() });
    }
}

impl Counts {
    fn update(&mut self, usage: &Value) {
        self.seen |= usage.is_object();
        for (name, count) in [
            ("input_tokens", &mut self.input),
            ("output_tokens", &mut self.output),
            ("cache_read_input_tokens", &mut self.cache_read),
            ("cache_creation_input_tokens", &mut self.cache_write),
        ] {
            if let Some(number) = usage[name].as_u64() {
                *count = number;
            }
        }
    }

    fn usage(&self) -> Usage {
        Usage {
            input: self.input,
            output: self.output,
            reasoning: 0,
            cache_read: self.cache_read,
            cache_write: self.cache_write,
            total: self.seen.then_some(self.input + self.output + self.cache_read + self.cache_write),
        }
    }
}

fn end(block: Block, out: &mut Vec<ModelEvent>) {
    match block {
        Block::Text => out.push(ModelEvent::TextEnd),
        Block::Thinking { signature } => {
            let metadata = (!signature.is_empty()).then(|| json!({"anthropic": {"signature": signature}}));
            out.push(ModelEvent::ReasoningEnd { metadata });
        }
        Block::Redacted { data } => {
            let metadata = Some(json!({"anthropic": {"redactedData": data}}));
            out.push(ModelEvent::ReasoningEnd { metadata });
        }
        Block::Call { id, name, arguments, given } => {
            let arguments = if arguments.trim().is_empty() {
                given.filter(Value::is_object).map_or_else(|| "{}".to_owned(), |input| input.to_string())
            } else {
                arguments
            };
            out.push(ModelEvent::ToolCall { id, name, arguments });
        }
        Block::Other => {}
    }
}

fn push_filled(text: &str, out: &mut Vec<ModelEvent>, event: fn(String) -> ModelEvent) {
    if !text.is_empty() {
        out.push(event(text.to_owned()));
    }
}

fn push_source(text: Loose, out: &mut Vec<ModelEvent>, event: fn(String) -> ModelEvent) {
    if let Some(text) = text.source() {
        out.push(event(Cow::into_owned(text)));
    }
}

fn event_error(data: &str) -> Error {
    match serde_json::from_str(data) {
        Ok(body) => error::in_band(&body),
        Err(why) => malformed(data, &why),
    }
}

fn reason_of(text: &str) -> FinishReason {
    match text {
        "end_turn" | "stop_sequence" | "pause_turn" => FinishReason::Stop,
        "max_tokens" | "model_context_window_exceeded" => FinishReason::Length,
        "tool_use" => FinishReason::ToolCalls,
        "refusal" => FinishReason::ContentFilter,
        other => FinishReason::Other(other.to_owned()),
    }
}

#[cfg(test)]
mod tests;
