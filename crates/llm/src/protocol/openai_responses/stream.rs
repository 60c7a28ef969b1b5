//! Decodes the events of a response.
//!
//! The server numbers output items and sends one after another. Items of unknown types, such as the
//! server's own searches, are skipped. Text, reasoning and calls are decoded from their deltas, or
//! from the finished item if there were none.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::error;
use crate::loose::Loose;
use crate::protocol::limits::{
    CALLS_LIMIT, arguments_or_empty, check_arguments, cut_short, malformed, too_much,
};
use crate::protocol::repeat::Repeat;
use crate::protocol::usage;
use crate::{Error, FinishReason, ModelEvent};

/// The decoder of one answer.
#[derive(Debug, Default)]
pub(crate) struct Stream {
    open: Block,
    items: Vec<Item>,
    /// The previous event, if it was text. Other events reset it, because an item may have ended.
    repeat: Repeat,
    calls: usize,
    /// Text was emitted, some for no known item.
    has_text: bool,
    has_stray_text: bool,
    done: bool,
}

/// The open block.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Block {
    #[default]
    None,
    Text,
    /// Reasoning of the item at this index.
    Reasoning(usize),
}

/// An output item.
#[derive(Debug, Default)]
struct Item {
    index: Option<u64>,
    id: String,
    kind: Kind,
    /// Some content was emitted.
    is_filled: bool,
    is_done: bool,
}

#[derive(Debug, Default)]
enum Kind {
    Message,
    Reasoning,
    Call {
        id: String,
        name: String,
        arguments: String,
    },
    /// An item of an unknown type.
    #[default]
    Other,
}

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(borrow, default)]
    r#type: Loose<'a>,
    #[serde(borrow, default)]
    delta: Loose<'a>,
    #[serde(borrow, default)]
    item_id: Loose<'a>,
    #[serde(default)]
    output_index: Option<u64>,
    #[serde(default)]
    summary_index: Option<u64>,
    #[serde(borrow, default)]
    item: Option<&'a RawValue>,
    #[serde(borrow, default)]
    response: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
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
        if data == "[DONE]" {
            return self.finish(out);
        }
        let event: Event = serde_json::from_str(data).map_err(|why| malformed(data, &why))?;
        let kind = event.r#type.text().unwrap_or_default();
        match kind {
            "response.output_text.delta" | "response.refusal.delta" => {
                let begun = out.len();
                self.text(event, out);
                if let [ModelEvent::TextDelta(text)] = &out[begun..] {
                    self.repeat.learn(data, "\"delta\":\"", text);
                }
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                self.thought(event, out);
            }
            "response.function_call_arguments.delta" => self.arguments(event, out)?,
            "response.reasoning_summary_part.added" => self.next_thought(&event, out),
            "response.output_item.added" => self.begin(&event, out)?,
            "response.output_item.done" => self.end(&event, out)?,
            "response.completed" | "response.incomplete" | "response.done" => {
                return self.close(&event, data, out);
            }
            "response.failed" | "error" => return Err(event_error(data)),
            // A relay's error. Other events repeat content that is decoded above.
            _ if event.error.is_some_and(|error| error.get() != "null") => return Err(event_error(data)),
            _ => {}
        }
        Ok(())
    }

    /// Decodes a response that was not streamed.
    pub(crate) fn push_whole(&mut self, body: &str, out: &mut Vec<ModelEvent>) -> Result<(), Error> {
        let response: Value = serde_json::from_str(body.trim()).map_err(|why| malformed(body, &why))?;
        if response.get("error").is_some_and(|error| !error.is_null()) {
            return Err(error::in_band(&response));
        }
        if response.get("output").is_none_or(|output| !output.is_array()) {
            return Err(Error::rejected(format!(
                "the server answered with JSON that is not a response: {}",
                crate::error::cut(body.trim(), 300)
            )));
        }
        self.complete(&response, out)
    }

    /// Completes the answer after the connection has ended.
    pub(crate) fn finish(&mut self, _out: &mut Vec<ModelEvent>) -> Result<(), Error> {
        if self.done { Ok(()) } else { Err(cut_short()) }
    }

    /// The model's last event is also the last event of the answer.
    pub(crate) fn is_stopped(&self) -> bool {
        self.done
    }

    pub(crate) fn is_done(&self) -> bool {
        self.done
    }

    fn text(&mut self, event: Event, out: &mut Vec<ModelEvent>) {
        let Some(text) = event.delta.source() else { return };
        let at = self.position(event.output_index, event.item_id.text());
        match at {
            Some(at) => self.items[at].is_filled = true,
            None => self.has_stray_text = true,
        }
        self.has_text = true;
        self.enter_text(at, out);
        out.push(ModelEvent::TextDelta(text.into_owned()));
    }

    fn thought(&mut self, event: Event, out: &mut Vec<ModelEvent>) {
        let Some(at) = self.position(event.output_index, event.item_id.text()) else { return };
        let Some(text) = event.delta.source() else { return };
        if self.items[at].is_done {
            return;
        }
        self.items[at].is_filled = true;
        self.enter(Block::Reasoning(at), None, out);
        out.push(ModelEvent::ReasoningDelta(text.into_owned()));
    }

    /// Each further part of a summary is a separate block.
    fn next_thought(&mut self, event: &Event, out: &mut Vec<ModelEvent>) {
        let Some(at) = self.position(event.output_index, event.item_id.text()) else { return };
        if event.summary_index.is_some_and(|index| index > 0) && self.open == Block::Reasoning(at) {
            self.enter(Block::None, None, out);
            self.enter(Block::Reasoning(at), None, out);
        }
    }

    fn arguments(&mut self, event: Event, out: &mut Vec<ModelEvent>) -> Result<(), Error> {
        let Some(at) = self.position(event.output_index, event.item_id.text()) else { return Ok(()) };
        let item = &mut self.items[at];
        let (Kind::Call { id, arguments, .. }, false) = (&mut item.kind, item.is_done) else { return Ok(()) };
        let Some(text) = event.delta.source() else { return Ok(()) };
        check_arguments(arguments.len() + text.len())?;
        arguments.push_str(&text);
        item.is_filled = true;
        out.push(ModelEvent::ToolDelta { id: id.clone(), text: text.into_owned() });
        Ok(())
    }

    fn begin(&mut self, event: &Event, out: &mut Vec<ModelEvent>) -> Result<(), Error> {
        let item = read(event.item);
        if self.position(event.output_index, item["id"].as_str()).is_none() {
            self.add(event.output_index, &item, out)?;
        }
        Ok(())
    }

    fn add(&mut self, index: Option<u64>, item: &Value, out: &mut Vec<ModelEvent>) -> Result<usize, Error> {
        if self.items.len() == CALLS_LIMIT {
            return Err(too_much(&format!("more than {CALLS_LIMIT} output items")));
        }
        let text = |name: &str| item[name].as_str().unwrap_or_default().to_owned();
        let at = self.items.len();
        let kind = match item["type"].as_str().unwrap_or_default() {
            "message" => Kind::Message,
            "reasoning" => Kind::Reasoning,
            "function_call" => {
                self.enter(Block::None, None, out);
                self.calls += 1;
                let id = Some(text("call_id")).filter(|id| !id.is_empty()).unwrap_or_else(|| text("id"));
                out.push(ModelEvent::ToolStart { id: id.clone(), name: text("name") });
                Kind::Call { id, name: text("name"), arguments: String::new() }
            }
            _ => Kind::Other,
        };
        self.items.push(Item { index, id: text("id"), kind, ..Item::default() });
        if matches!(self.items[at].kind, Kind::Reasoning) {
            self.enter(Block::Reasoning(at), None, out);
        }
        Ok(at)
    }

    /// Decodes a finished item, which repeats its whole content.
    fn end(&mut self, event: &Event, out: &mut Vec<ModelEvent>) -> Result<(), Error> {
        let item = read(event.item);
        self.end_item(event.output_index, &item, out)
    }

    fn end_item(&mut self, index: Option<u64>, item: &Value, out: &mut Vec<ModelEvent>) -> Result<(), Error> {
        let at = match self.position(index, item["id"].as_str()).or_else(|| self.call(item)) {
            Some(at) => at,
            None => self.add(index, item, out)?,
        };
        self.end_at(at, item, out)
    }

    fn end_at(&mut self, at: usize, item: &Value, out: &mut Vec<ModelEvent>) -> Result<(), Error> {
        if std::mem::replace(&mut self.items[at].is_done, true) {
            return Ok(());
        }
        let is_filled = self.items[at].is_filled;
        let has_text = is_filled || self.has_stray_text;
        match &mut self.items[at].kind {
            Kind::Message => {
                let text = if has_text { String::new() } else { texts(&item["content"]) };
                if !text.is_empty() {
                    self.enter_text(Some(at), out);
                    out.push(ModelEvent::TextDelta(text));
                }
                self.enter(Block::None, None, out);
            }
            Kind::Reasoning => {
                // Another item may have closed the block in the meantime. Reopen it, because the
                // encrypted content must not be lost.
                if self.open != Block::Reasoning(at) && item["encrypted_content"].is_string() {
                    self.enter(Block::Reasoning(at), None, out);
                }
                let is_open = self.open == Block::Reasoning(at);
                if is_open && !is_filled {
                    let text = Some(texts(&item["summary"])).filter(|text| !text.is_empty());
                    let text = text.unwrap_or_else(|| texts(&item["content"]));
                    if !text.is_empty() {
                        out.push(ModelEvent::ReasoningDelta(text));
                    }
                }
                if is_open {
                    self.enter(Block::None, Some(&item["encrypted_content"]), out);
                }
            }
            Kind::Call { id, name, arguments } => {
                let given = item["arguments"].as_str().filter(|text| !text.trim().is_empty());
                let given = given
                    .map(str::to_owned)
                    .or_else(|| item["arguments"].is_object().then(|| item["arguments"].to_string()));
                let arguments = given.unwrap_or_else(|| std::mem::take(arguments));
                check_arguments(arguments.len())?;
                let arguments = arguments_or_empty(arguments);
                let (id, name) = (id.clone(), name.clone());
                if let Some(metadata) = item_metadata(&self.items[at].id) {
                    out.push(ModelEvent::Metadata { call: Some(id.clone()), metadata });
                }
                out.push(ModelEvent::ToolCall { id, name, arguments });
            }
            Kind::Other => {}
        }
        Ok(())
    }

    fn close(&mut self, event: &Event, data: &str, out: &mut Vec<ModelEvent>) -> Result<(), Error> {
        let response = match event.response {
            Some(raw) => serde_json::from_str(raw.get()).map_err(|why| malformed(data, &why))?,
            None => Value::Null,
        };
        if response.get("error").is_some_and(|error| !error.is_null()) {
            return Err(event_error(data));
        }
        self.complete(&response, out)
    }

    /// Emits the content that is still open or was never streamed, and the end.
    fn complete(&mut self, response: &Value, out: &mut Vec<ModelEvent>) -> Result<(), Error> {
        for item in response["output"].as_array().into_iter().flatten() {
            if !self.was_streamed(item) {
                self.end_item(None, item, out)?;
            }
        }
        for at in 0..self.items.len() {
            if matches!(self.items[at].kind, Kind::Call { .. }) {
                self.end_at(at, &Value::Null, out)?;
            }
        }
        self.enter(Block::None, None, out);
        self.done = true;
        let reason = match response.pointer("/incomplete_details/reason").and_then(Value::as_str) {
            Some("max_output_tokens" | "max_tokens" | "length") => FinishReason::Length,
            Some("content_filter") => FinishReason::ContentFilter,
            Some(other) if self.calls == 0 => FinishReason::Other(other.to_owned()),
            Some(_) | None if self.calls > 0 => FinishReason::ToolCalls,
            Some(_) | None => FinishReason::Stop,
        };
        let usage = usage::of(&response["usage"]).unwrap_or_default();
        out.push(ModelEvent::Finish { reason, usage });
        Ok(())
    }

    /// Returns whether an item of the finished response was streamed before. Some servers change
    /// its id and number.
    fn was_streamed(&self, item: &Value) -> bool {
        match item["type"].as_str().unwrap_or_default() {
            "message" => self.has_text,
            "reasoning" => self.items.iter().any(|item| matches!(item.kind, Kind::Reasoning)),
            "function_call" => {
                let ids = [item["call_id"].as_str(), item["id"].as_str()];
                let is_same_call = |item: &Item| match &item.kind {
                    Kind::Call { id, .. } => ids.contains(&Some(id)) && item.is_done,
                    Kind::Message | Kind::Reasoning | Kind::Other => false,
                };
                self.items.iter().any(is_same_call)
            }
            _ => true,
        }
    }

    /// Returns the item of an event. Some servers send only its number, others only its id.
    fn position(&self, index: Option<u64>, id: Option<&str>) -> Option<usize> {
        let by_id = id.and_then(|id| self.items.iter().rposition(|item| item.id == id && !id.is_empty()));
        by_id.or_else(|| self.items.iter().rposition(|item| index.is_some() && item.index == index))
    }

    /// Returns the call of a finished item, by the id that its result refers to.
    fn call(&self, item: &Value) -> Option<usize> {
        let call_id = item["call_id"].as_str()?;
        self.items.iter().rposition(|item| matches!(&item.kind, Kind::Call { id, .. } if id == call_id))
    }

    /// Opens a block of text if needed, with the item's id as metadata.
    fn enter_text(&mut self, at: Option<usize>, out: &mut Vec<ModelEvent>) {
        let begins = self.open != Block::Text;
        self.enter(Block::Text, None, out);
        let metadata = at.filter(|_| begins).and_then(|at| item_metadata(&self.items[at].id));
        out.extend(metadata.map(|metadata| ModelEvent::Metadata { call: None, metadata }));
    }

    /// Ends the open block and starts `next`, unless it is already open.
    fn enter(&mut self, next: Block, encrypted: Option<&Value>, out: &mut Vec<ModelEvent>) {
        if self.open == next {
            return;
        }
        match self.open {
            Block::None => {}
            Block::Text => out.push(ModelEvent::TextEnd),
            Block::Reasoning(at) => {
                let encrypted = encrypted.cloned().unwrap_or_default();
                let metadata =
                    json!({"openai": {"itemId": self.items[at].id, "reasoningEncryptedContent": encrypted}});
                out.push(ModelEvent::ReasoningEnd { metadata: Some(metadata) });
            }
        }
        match next {
            Block::None => {}
            Block::Text => out.push(ModelEvent::TextStart),
            Block::Reasoning(_) => out.push(ModelEvent::ReasoningStart),
        }
        self.open = next;
    }
}

/// Returns the item's id as metadata for clients.
fn item_metadata(id: &str) -> Option<Value> {
    (!id.is_empty()).then(|| json!({"openai": {"itemId": id}}))
}

/// Returns the text of an item's parts.
fn texts(parts: &Value) -> String {
    let part = |part: &Value| {
        let text = part.get("text").or_else(|| part.get("refusal")).and_then(Value::as_str);
        text.map(str::to_owned)
    };
    parts.as_array().into_iter().flatten().filter_map(part).collect()
}

fn read(raw: Option<&RawValue>) -> Value {
    raw.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default()
}

fn event_error(data: &str) -> Error {
    match serde_json::from_str(data) {
        Ok(body) => error::in_band(&body),
        Err(why) => malformed(data, &why),
    }
}

#[cfg(test)]
mod tests;
