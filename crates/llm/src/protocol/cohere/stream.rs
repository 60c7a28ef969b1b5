//! Decodes the events of a Cohere chat.
//!
//! Content blocks and calls are numbered and announced. The plan before calls is reasoning without
//! a number.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::error;
use crate::loose::Loose;
use crate::protocol::limits::{arguments_or_empty, check_arguments, count_call, cut_short, malformed};
use crate::{Error, FinishReason, ModelEvent, Usage};

/// The start of events with a piece of the answer.
const DELTA_HEAD: &str = "{\"type\":\"content-delta\"";

/// The decoder of one answer.
#[derive(Debug, Default)]
pub(crate) struct Stream {
    open: Option<Block>,
    calls: usize,
    done: bool,
}

#[derive(Debug, PartialEq)]
enum Block {
    Text,
    Thinking,
    Plan,
    Call { id: String, name: String, arguments: String },
}

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(borrow, default)]
    r#type: Loose<'a>,
    #[serde(borrow, default)]
    delta: Option<&'a RawValue>,
}

/// An event with a piece of the answer.
#[derive(Deserialize)]
struct Plain<'a> {
    #[serde(borrow)]
    r#type: Cow<'a, str>,
    #[serde(borrow)]
    delta: Delta<'a>,
}

#[derive(Default, Deserialize)]
struct Delta<'a> {
    #[serde(borrow, default)]
    message: Option<Piece<'a>>,
}

#[derive(Default, Deserialize)]
struct Piece<'a> {
    #[serde(borrow, default)]
    content: Option<Content<'a>>,
    #[serde(borrow, default)]
    tool_plan: Loose<'a>,
    #[serde(borrow, default)]
    tool_calls: Option<Call<'a>>,
}

#[derive(Default, Deserialize)]
struct Content<'a> {
    #[serde(borrow, default)]
    text: Loose<'a>,
    #[serde(borrow, default)]
    thinking: Loose<'a>,
}

#[derive(Default, Deserialize)]
struct Call<'a> {
    #[serde(borrow, default)]
    id: Loose<'a>,
    #[serde(borrow, default)]
    function: Option<Function<'a>>,
}

#[derive(Default, Deserialize)]
struct Function<'a> {
    #[serde(borrow, default)]
    name: Loose<'a>,
    #[serde(borrow, default)]
    arguments: Loose<'a>,
}

impl Stream {
    /// Decodes the data of one event.
    pub(crate) fn push(&mut self, data: &str, out: &mut Vec<ModelEvent>) -> Result<(), Error> {
        let data = data.trim();
        if self.done || data.is_empty() {
            return Ok(());
        }
        if data == "[DONE]" {
            return self.finish(out);
        }
        // By far the most frequent events, recognized before they are parsed.
        if data.starts_with(DELTA_HEAD)
            && let Ok(Plain { r#type: Cow::Borrowed("content-delta"), delta }) = serde_json::from_str(data)
        {
            return self.piece("content-delta", delta.message.unwrap_or_default(), out);
        }
        let event: Event = serde_json::from_str(data).map_err(|why| malformed(data, &why))?;
        let kind = event.r#type.text().unwrap_or_default();
        match kind {
            "content-start" | "content-delta" | "tool-plan-delta" | "tool-call-start" | "tool-call-delta" => {
                let Some(delta) = event.delta else { return Ok(()) };
                let delta: Delta = serde_json::from_str(delta.get()).map_err(|why| malformed(data, &why))?;
                self.piece(kind, delta.message.unwrap_or_default(), out)
            }
            "content-end" | "tool-call-end" => {
                self.end(out);
                Ok(())
            }
            "message-end" => {
                let delta: Value =
                    event.delta.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default();
                self.close(&delta, data, out)
            }
            // An error of a gateway, or one of Cohere's that came without a status.
            "" | "error" => {
                let body: Value = serde_json::from_str(data).unwrap_or_default();
                let is_error =
                    body.get("message").is_some_and(Value::is_string) || body.get("error").is_some();
                if is_error { Err(error::in_band("error", &body, data)) } else { Ok(()) }
            }
            // `message-start`, citations, and events that are added in the future.
            _ => Ok(()),
        }
    }

    /// Decodes a message that was not streamed.
    pub(crate) fn push_whole(&mut self, body: &str, out: &mut Vec<ModelEvent>) -> Result<(), Error> {
        let answer: Value = serde_json::from_str(body.trim()).map_err(|why| malformed(body, &why))?;
        let message = &answer["message"];
        if !message.is_object() {
            if message.is_string() || answer.get("error").is_some() {
                return Err(error::in_band("error", &answer, body));
            }
            return Err(Error::rejected(format!(
                "the server answered with JSON that is not a message: {}",
                crate::error::cut(body.trim(), 300)
            )));
        }
        if let Some(plan) = message["tool_plan"].as_str().filter(|plan| !plan.is_empty()) {
            self.words(Block::Plan, plan.into(), out);
        }
        for content in message["content"].as_array().into_iter().flatten() {
            if let Some(text) = content["thinking"].as_str().filter(|text| !text.is_empty()) {
                self.words(Block::Thinking, text.into(), out);
            }
            if let Some(text) = content["text"].as_str().filter(|text| !text.is_empty()) {
                self.words(Block::Text, text.into(), out);
            }
            self.end(out);
        }
        for call in message["tool_calls"].as_array().into_iter().flatten() {
            let text = call.to_string();
            let call: Call = serde_json::from_str(&text).map_err(|why| malformed(body, &why))?;
            self.call(&call, out)?;
            self.arguments(call, out)?;
        }
        let end = json!({"finish_reason": answer["finish_reason"], "usage": answer["usage"]});
        self.close(&end, body, out)
    }

    /// Completes the answer after the connection has ended.
    pub(crate) fn finish(&mut self, _out: &mut Vec<ModelEvent>) -> Result<(), Error> {
        if self.done { Ok(()) } else { Err(cut_short()) }
    }

    pub(crate) fn is_done(&self) -> bool {
        self.done
    }

    fn piece(&mut self, kind: &str, piece: Piece, out: &mut Vec<ModelEvent>) -> Result<(), Error> {
        if kind == "content-start" {
            self.end(out);
        }
        if let Some(content) = piece.content {
            if let Some(text) = content.thinking.source() {
                self.words(Block::Thinking, text, out);
            }
            if let Some(text) = content.text.source() {
                self.words(Block::Text, text, out);
            }
        }
        if let Some(text) = piece.tool_plan.source() {
            self.words(Block::Plan, text, out);
        }
        let Some(call) = piece.tool_calls else { return Ok(()) };
        if kind == "tool-call-start" {
            self.call(&call, out)?;
        }
        self.arguments(call, out)
    }

    /// Emits text of `block`. Starts the block unless it is open.
    fn words(&mut self, block: Block, text: Cow<str>, out: &mut Vec<ModelEvent>) {
        let is_text = block == Block::Text;
        if self.open.as_ref() != Some(&block) {
            self.end(out);
            out.push(if is_text { ModelEvent::TextStart } else { ModelEvent::ReasoningStart });
            self.open = Some(block);
        }
        let text = text.into_owned();
        out.push(if is_text { ModelEvent::TextDelta(text) } else { ModelEvent::ReasoningDelta(text) });
    }

    fn call(&mut self, call: &Call, out: &mut Vec<ModelEvent>) -> Result<(), Error> {
        self.end(out);
        count_call(&mut self.calls)?;
        let id = call.id.text().unwrap_or_default().to_owned();
        let name = call.function.as_ref().and_then(|function| function.name.text()).unwrap_or_default();
        out.push(ModelEvent::ToolStart { id: id.clone(), name: name.to_owned() });
        self.open = Some(Block::Call { id, name: name.to_owned(), arguments: String::new() });
        Ok(())
    }

    fn arguments(&mut self, call: Call, out: &mut Vec<ModelEvent>) -> Result<(), Error> {
        let Some(Block::Call { id, arguments, .. }) = &mut self.open else { return Ok(()) };
        let Some(text) = call.function.and_then(|function| function.arguments.source()) else {
            return Ok(());
        };
        check_arguments(arguments.len() + text.len())?;
        arguments.push_str(&text);
        out.push(ModelEvent::ToolDelta { id: id.clone(), text: text.into_owned() });
        Ok(())
    }

    fn end(&mut self, out: &mut Vec<ModelEvent>) {
        let thought =
            |kind: &str| ModelEvent::ReasoningEnd { metadata: Some(json!({"cohere": {"type": kind}})) };
        match self.open.take() {
            None => {}
            Some(Block::Text) => out.push(ModelEvent::TextEnd),
            Some(Block::Thinking) => out.push(thought("thinking")),
            Some(Block::Plan) => out.push(thought("tool_plan")),
            Some(Block::Call { id, name, arguments }) => {
                out.push(ModelEvent::ToolCall { id, name, arguments: arguments_or_empty(arguments) });
            }
        }
    }

    fn close(&mut self, end: &Value, data: &str, out: &mut Vec<ModelEvent>) -> Result<(), Error> {
        let reason = end["finish_reason"].as_str().unwrap_or_default();
        if matches!(reason, "ERROR" | "TIMEOUT") {
            return Err(error::in_band(reason, end, data));
        }
        self.end(out);
        self.done = true;
        let reason = match reason {
            "COMPLETE" | "STOP_SEQUENCE" | "TOOL_CALL" if self.calls > 0 => FinishReason::ToolCalls,
            "COMPLETE" | "STOP_SEQUENCE" | "TOOL_CALL" => FinishReason::Stop,
            "MAX_TOKENS" => FinishReason::Length,
            "ERROR_TOXIC" => FinishReason::ContentFilter,
            "" if self.calls > 0 => FinishReason::ToolCalls,
            "" => FinishReason::Unknown,
            other => FinishReason::Other(other.to_owned()),
        };
        out.push(ModelEvent::Finish { reason, usage: usage(&end["usage"]) });
        Ok(())
    }
}

/// Returns the tokens that the model used. Billed tokens exclude some of them.
fn usage(usage: &Value) -> Usage {
    let tokens = if usage["tokens"].is_object() { &usage["tokens"] } else { &usage["billed_units"] };
    // The numbers have a fraction of zero.
    let count = |value: &Value| {
        value.as_u64().or_else(|| value.as_f64().filter(|number| *number >= 0.0).map(|number| number as u64))
    };
    let (input, output) = (count(&tokens["input_tokens"]), count(&tokens["output_tokens"]));
    let cached = count(&usage["cached_tokens"]).unwrap_or(0).min(input.unwrap_or(0));
    let total = (input.is_some() || output.is_some()).then(|| input.unwrap_or(0) + output.unwrap_or(0));
    Usage {
        input: input.unwrap_or(0) - cached,
        output: output.unwrap_or(0),
        cache_read: cached,
        total,
        ..Usage::default()
    }
}

#[cfg(test)]
mod tests;
