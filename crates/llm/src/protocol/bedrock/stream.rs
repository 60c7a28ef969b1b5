//! Decodes the events of a ConverseStream answer.
//!
//! An event is a JSON object whose only field names it, such as `{"contentBlockDelta": {…}}`.
//! Exceptions have the same format. Blocks are numbered, and only blocks of calls are announced.
//! The usage comes after the reason to stop.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::error;
use crate::loose::Loose;
use crate::protocol::limits::{arguments_or_empty, check_block, count_call, cut_short, malformed};
use crate::{Error, FinishReason, ModelEvent, Usage};

/// The start of events with a piece of the answer.
const DELTA_HEAD: &str = "{\"contentBlockDelta\":";

/// The decoder of one answer.
#[derive(Debug, Default)]
pub(crate) struct Stream {
    /// The open block, with its number.
    open: Option<(u64, Block)>,
    calls: usize,
    reason: Option<FinishReason>,
    done: bool,
}

#[derive(Debug)]
enum Block {
    Text,
    Thought { signature: String, redacted: Vec<String> },
    Call { id: String, name: String, arguments: String },
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Event<'a> {
    #[serde(default)]
    content_block_index: u64,
    #[serde(borrow, default)]
    delta: Option<Delta<'a>>,
    #[serde(borrow, default)]
    start: Option<Start<'a>>,
    #[serde(borrow, default)]
    stop_reason: Loose<'a>,
    #[serde(default)]
    usage: Option<Counts>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Start<'a> {
    #[serde(borrow, default)]
    tool_use: Option<CallStart<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CallStart<'a> {
    #[serde(borrow, default)]
    tool_use_id: Loose<'a>,
    #[serde(borrow, default)]
    name: Loose<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Delta<'a> {
    #[serde(borrow, default)]
    text: Loose<'a>,
    #[serde(borrow, default)]
    tool_use: Option<Input<'a>>,
    #[serde(borrow, default)]
    reasoning_content: Option<Thought<'a>>,
}

#[derive(Deserialize)]
struct Input<'a> {
    #[serde(borrow, default)]
    input: Loose<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Thought<'a> {
    #[serde(borrow, default)]
    text: Loose<'a>,
    #[serde(borrow, default)]
    signature: Loose<'a>,
    #[serde(borrow, default)]
    redacted_content: Loose<'a>,
}

/// The tokens in the server's format: input excludes cached tokens.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Counts {
    input_tokens: u64,
    output_tokens: u64,
    total_tokens: u64,
    cache_read_input_tokens: u64,
    cache_write_input_tokens: u64,
}

impl Stream {
    /// Decodes one event.
    pub(crate) fn push(&mut self, data: &str, out: &mut Vec<ModelEvent>) -> Result<(), Error> {
        let data = data.trim();
        if self.done || data.is_empty() {
            return Ok(());
        }
        // By far the most frequent event. Looking for its name first would parse it twice.
        if let Some(body) = data.strip_prefix(DELTA_HEAD).and_then(|rest| rest.strip_suffix('}'))
            && let Ok(event) = serde_json::from_str(body)
        {
            return self.event("contentBlockDelta", event, out);
        }
        let named: Named = serde_json::from_str(data).map_err(|why| malformed(data, &why))?;
        let Some((name, body)) = named.0 else { return Ok(()) };
        match &*name {
            "contentBlockDelta" | "contentBlockStart" | "contentBlockStop" | "messageStop" | "metadata" => {
                let event: Event = serde_json::from_str(body.get()).map_err(|why| malformed(data, &why))?;
                self.event(&name, event, out)
            }
            name if name.ends_with("Exception") || name == "error" => {
                let body: Value = serde_json::from_str(body.get()).unwrap_or_default();
                // An error frame has a code instead of an exception's name.
                let name = body["code"].as_str().filter(|_| name == "error").unwrap_or(name);
                Err(error::in_band(name, &body, data))
            }
            // `messageStart`, and events that are added in the future.
            _ => Ok(()),
        }
    }

    /// Completes the answer after the connection has ended.
    pub(crate) fn finish(&mut self, out: &mut Vec<ModelEvent>) -> Result<(), Error> {
        match (self.done, &self.reason) {
            (true, _) => Ok(()),
            (false, Some(_)) => {
                self.close(None, out);
                Ok(())
            }
            (false, None) => Err(cut_short()),
        }
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.reason.is_some()
    }

    pub(crate) fn is_done(&self) -> bool {
        self.done
    }

    fn event(&mut self, name: &str, event: Event, out: &mut Vec<ModelEvent>) -> Result<(), Error> {
        let index = event.content_block_index;
        match name {
            "contentBlockDelta" => {
                if let Some(delta) = event.delta {
                    self.delta(index, delta, out)?;
                }
            }
            "contentBlockStart" => {
                if let Some(start) = event.start.and_then(|start| start.tool_use) {
                    self.call(index, &start, out)?;
                }
            }
            "contentBlockStop" => {
                if self.open.as_ref().is_some_and(|(open, _)| *open == index) {
                    self.end(out);
                }
            }
            "messageStop" => {
                self.end(out);
                self.reason = Some(reason_of(event.stop_reason.text().unwrap_or_default()));
            }
            // `metadata` is the last event. Before the reason to stop, it would mean that the
            // answer was cut off.
            _ => {
                if self.reason.is_some() {
                    self.close(event.usage, out);
                }
            }
        }
        Ok(())
    }

    fn call(&mut self, index: u64, start: &CallStart, out: &mut Vec<ModelEvent>) -> Result<(), Error> {
        self.end(out);
        count_call(&mut self.calls)?;
        let text = |loose: &Loose| loose.text().unwrap_or_default().to_owned();
        let (id, name) = (text(&start.tool_use_id), text(&start.name));
        out.push(ModelEvent::ToolStart { id: id.clone(), name: name.clone() });
        self.open = Some((index, Block::Call { id, name, arguments: String::new() }));
        Ok(())
    }

    fn delta(&mut self, index: u64, delta: Delta, out: &mut Vec<ModelEvent>) -> Result<(), Error> {
        if let Some(text) = delta.text.source() {
            if !matches!(&self.open, Some((open, Block::Text)) if *open == index) {
                self.end(out);
                out.push(ModelEvent::TextStart);
                self.open = Some((index, Block::Text));
            }
            out.push(ModelEvent::TextDelta(text.into_owned()));
        }
        if let Some(thought) = delta.reasoning_content {
            self.thought(index, thought, out)?;
        }
        if let Some(text) = delta.tool_use.and_then(|call| call.input.source())
            && let Some((open, Block::Call { id, arguments, .. })) = &mut self.open
            && *open == index
        {
            check_block(arguments.len() + text.len())?;
            arguments.push_str(&text);
            out.push(ModelEvent::ToolDelta { id: id.clone(), text: text.into_owned() });
        }
        Ok(())
    }

    fn thought(&mut self, index: u64, thought: Thought, out: &mut Vec<ModelEvent>) -> Result<(), Error> {
        if !matches!(&self.open, Some((open, Block::Thought { .. })) if *open == index) {
            self.end(out);
            out.push(ModelEvent::ReasoningStart);
            self.open = Some((index, Block::Thought { signature: String::new(), redacted: Vec::new() }));
        }
        let Some((_, Block::Thought { signature, redacted })) = &mut self.open else { return Ok(()) };
        if let Some(text) = thought.text.source() {
            out.push(ModelEvent::ReasoningDelta(Cow::into_owned(text)));
        }
        if let Some(more) = thought.signature.text() {
            check_block(signature.len() + more.len())?;
            signature.push_str(more);
        }
        if let Some(more) = thought.redacted_content.text() {
            check_block(redacted.iter().map(String::len).sum::<usize>() + more.len())?;
            redacted.push(more.to_owned());
        }
        Ok(())
    }

    fn end(&mut self, out: &mut Vec<ModelEvent>) {
        match self.open.take() {
            None => {}
            Some((_, Block::Text)) => out.push(ModelEvent::TextEnd),
            Some((_, Block::Thought { signature, redacted })) => {
                let mut mine = Map::new();
                if !signature.is_empty() {
                    mine.insert("signature".into(), json!(signature));
                }
                if !redacted.is_empty() {
                    mine.insert("redactedData".into(), json!(join_base64(redacted)));
                }
                let metadata = (!mine.is_empty()).then(|| json!({"bedrock": mine}));
                out.push(ModelEvent::ReasoningEnd { metadata });
            }
            Some((_, Block::Call { id, name, arguments })) => {
                out.push(ModelEvent::ToolCall { id, name, arguments: arguments_or_empty(arguments) });
            }
        }
    }

    fn close(&mut self, counts: Option<Counts>, out: &mut Vec<ModelEvent>) {
        self.end(out);
        let reason = self.reason.clone().unwrap_or(FinishReason::Unknown).with_calls(self.calls);
        self.done = true;
        out.push(ModelEvent::Finish { reason, usage: counts.map(Counts::usage).unwrap_or_default() });
    }
}

impl Counts {
    fn usage(self) -> Usage {
        let sum = self.input_tokens
            + self.output_tokens
            + self.cache_read_input_tokens
            + self.cache_write_input_tokens;
        Usage {
            input: self.input_tokens,
            output: self.output_tokens,
            reasoning: 0,
            cache_read: self.cache_read_input_tokens,
            cache_write: self.cache_write_input_tokens,
            total: Some(if self.total_tokens == 0 { sum } else { self.total_tokens }),
        }
    }
}

/// The only field of an object, with its value unparsed. Padding fields have short names and no
/// objects.
struct Named<'a>(Option<(Cow<'a, str>, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Named<'a> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct First;
        impl<'de> serde::de::Visitor<'de> for First {
            type Value = Named<'de>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object whose field names an event")
            }

            fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let first = map.next_entry::<Cow<str>, &RawValue>()?;
                while map.next_entry::<serde::de::IgnoredAny, serde::de::IgnoredAny>()?.is_some() {}
                Ok(Named(first))
            }
        }
        deserializer.deserialize_map(First)
    }
}

/// Joins pieces of base64. A single piece is kept unchanged; several are pieces of the decoded
/// bytes.
fn join_base64(mut pieces: Vec<String>) -> String {
    if pieces.len() == 1 {
        return pieces.remove(0);
    }
    let bytes: Result<Vec<Vec<u8>>, _> = pieces.iter().map(|piece| STANDARD.decode(piece)).collect();
    bytes.map_or_else(|_| pieces.concat(), |bytes| STANDARD.encode(bytes.concat()))
}

fn reason_of(text: &str) -> FinishReason {
    match text {
        "end_turn" | "stop_sequence" => FinishReason::Stop,
        "max_tokens" | "model_context_window_exceeded" => FinishReason::Length,
        "tool_use" => FinishReason::ToolCalls,
        "guardrail_intervened" | "content_filtered" => FinishReason::ContentFilter,
        "" => FinishReason::Unknown,
        other => FinishReason::Other(other.to_owned()),
    }
}

#[cfg(test)]
mod tests;
