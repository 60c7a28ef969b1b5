//! Decodes the chunks of a Gemini answer.
//!
//! A chunk contains complete parts: text, reasoning or a call. There is no end mark, so the answer
//! ends with the connection, if a reason to stop came before. Parts of unknown types, such as
//! results of the server's own search, are skipped.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::error;
use crate::loose::Loose;
use crate::protocol::limits::{count_call, cut_short, malformed, random_call_id};
use crate::protocol::repeat::Repeat;
use crate::{Error, FinishReason, ModelEvent, Usage};

/// The decoder of one answer.
#[derive(Debug, Default)]
pub(crate) struct Stream {
    open: Block,
    calls: usize,
    reason: Option<FinishReason>,
    /// The latest usage as JSON. Every chunk contains it, and only the last one is needed.
    usage: String,
    /// The previous chunk, if it was handled by `repeat`. Its usage is parsed only if no other
    /// chunk follows.
    latest: String,
    repeat: Repeat,
    done: bool,
}

#[derive(Debug, Default, PartialEq, Eq)]
enum Block {
    #[default]
    None,
    Text,
    Thought {
        signature: Option<String>,
    },
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Chunk<'a> {
    #[serde(borrow, default)]
    candidates: Option<Vec<Candidate<'a>>>,
    #[serde(borrow, default)]
    usage_metadata: Option<&'a RawValue>,
    #[serde(borrow, default)]
    prompt_feedback: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Candidate<'a> {
    #[serde(borrow, default)]
    content: Option<Content<'a>>,
    #[serde(borrow, default)]
    finish_reason: Loose<'a>,
    #[serde(borrow, default)]
    finish_message: Loose<'a>,
}

#[derive(Deserialize)]
struct Content<'a> {
    #[serde(borrow, default)]
    parts: Option<Vec<Part<'a>>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Part<'a> {
    #[serde(borrow, default)]
    text: Loose<'a>,
    #[serde(borrow, default)]
    thought: Loose<'a>,
    #[serde(borrow, default)]
    thought_signature: Loose<'a>,
    #[serde(borrow, default)]
    function_call: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Call<'a> {
    #[serde(borrow, default)]
    id: Loose<'a>,
    #[serde(borrow, default)]
    name: Loose<'a>,
    #[serde(borrow, default)]
    args: Option<&'a RawValue>,
}

impl Stream {
    /// Decodes the data of one event.
    pub(crate) fn push(&mut self, data: &str, out: &mut Vec<ModelEvent>) -> Result<(), Error> {
        let data = data.trim();
        if self.done || data.is_empty() {
            return Ok(());
        }
        if self.open == Block::Text
            && let Some(text) = self.repeat.text(data)
        {
            out.push(ModelEvent::TextDelta(text.into_owned()));
            self.latest.clear();
            self.latest.push_str(data);
            return Ok(());
        }
        self.count_latest();
        self.repeat.forget();
        let (was_text, begun) = (self.open == Block::Text, out.len());
        // Relays that also support the chat protocol end their streams in its format.
        if data == "[DONE]" {
            return self.finish(out);
        }
        match serde_json::from_str::<Chunk>(data) {
            Ok(chunk) if chunk.error.is_none() => {
                self.chunk(chunk, out)?;
                if was_text
                    && self.reason.is_none()
                    && let [ModelEvent::TextDelta(text)] = &out[begun..]
                {
                    self.repeat.learn(data, "\"text\":\"", text);
                }
                Ok(())
            }
            Ok(_) => Err(event_error(data)),
            // An error may come in a list.
            Err(why) if data.starts_with('[') => match serde_json::from_str(data) {
                Ok(body) => Err(error::in_band(&body).unwrap_or_else(|| malformed(data, &why))),
                Err(why) => Err(malformed(data, &why)),
            },
            Err(why) => Err(malformed(data, &why)),
        }
    }

    /// Decodes an answer that was not streamed: a chunk, or the list of chunks that the server
    /// sends to clients that do not request events.
    pub(crate) fn push_whole(&mut self, body: &str, out: &mut Vec<ModelEvent>) -> Result<(), Error> {
        let body = body.trim();
        if body.starts_with('[') {
            let list: Vec<&RawValue> = serde_json::from_str(body).map_err(|why| malformed(body, &why))?;
            for chunk in list {
                self.push(chunk.get(), out)?;
            }
        } else {
            self.push(body, out)?;
        }
        if self.reason.is_none() {
            return Err(Error::rejected(format!(
                "the server answered with JSON that is not an answer: {}",
                crate::error::cut(body, 300)
            )));
        }
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

    /// Updates the usage from the previous chunk, if it was not parsed.
    fn count_latest(&mut self) {
        if let Ok(Chunk { usage_metadata: Some(usage), .. }) = serde_json::from_str(&self.latest) {
            self.usage.clear();
            self.usage.push_str(usage.get());
        }
        self.latest.clear();
    }

    fn chunk(&mut self, chunk: Chunk, out: &mut Vec<ModelEvent>) -> Result<(), Error> {
        if let Some(usage) = chunk.usage_metadata {
            self.usage.clear();
            self.usage.push_str(usage.get());
        }
        let Some(candidate) = chunk.candidates.and_then(|list| list.into_iter().next()) else {
            return match chunk.prompt_feedback.and_then(blocked) {
                Some(error) => Err(error),
                None => Ok(()),
            };
        };
        for part in candidate.content.and_then(|content| content.parts).into_iter().flatten() {
            self.part(part, out)?;
        }
        match candidate.finish_reason.text() {
            None | Some("FINISH_REASON_UNSPECIFIED") => {}
            // The model made a mistake, which it rarely repeats.
            Some(slip @ ("MALFORMED_FUNCTION_CALL" | "MALFORMED_RESPONSE")) if self.calls == 0 => {
                let detail = candidate.finish_message.text().map(|text| format!(": {text}"));
                let detail = detail.unwrap_or_default();
                return Err(Error::busy(format!("the model's answer is malformed ({slip}){detail}")));
            }
            Some(reason) => self.reason = Some(reason_of(reason)),
        }
        Ok(())
    }

    fn part(&mut self, part: Part, out: &mut Vec<ModelEvent>) -> Result<(), Error> {
        let signature = part.thought_signature.text();
        if let Some(call) = part.function_call {
            return self.call(call, signature, out);
        }
        if matches!(&part.thought, Loose::Json(value) if **value == Value::Bool(true)) {
            if let Some(text) = part.text.source() {
                if !matches!(self.open, Block::Thought { .. }) {
                    self.enter(Block::Thought { signature: None }, out);
                }
                out.push(ModelEvent::ReasoningDelta(text.into_owned()));
            }
            if let (Block::Thought { signature: kept }, Some(signature)) = (&mut self.open, signature) {
                *kept = Some(signature.to_owned());
            }
            return Ok(());
        }
        if let Some(text) = part.text.source() {
            if self.open != Block::Text {
                self.enter(Block::Text, out);
            }
            out.push(ModelEvent::TextDelta(text.into_owned()));
        }
        // The signature of a text may follow it in an empty part.
        if let (Block::Text, Some(signature)) = (&self.open, signature) {
            out.push(ModelEvent::Metadata { call: None, metadata: signature_metadata(signature) });
        }
        Ok(())
    }

    fn call(
        &mut self,
        call: &RawValue,
        signature: Option<&str>,
        out: &mut Vec<ModelEvent>,
    ) -> Result<(), Error> {
        let call: Call = serde_json::from_str(call.get()).map_err(|why| malformed(call.get(), &why))?;
        let Some(name) = call.name.text() else { return Ok(()) };
        self.enter(Block::None, out);
        count_call(&mut self.calls)?;
        let id = call.id.text().map_or_else(|| random_call_id(self.calls), str::to_owned);
        let arguments = match call.args.map(RawValue::get) {
            None | Some("null") => "{}".to_owned(),
            Some(args) => args.to_owned(),
        };
        out.push(ModelEvent::ToolStart { id: id.clone(), name: name.to_owned() });
        if let Some(signature) = signature {
            out.push(ModelEvent::Metadata {
                call: Some(id.clone()),
                metadata: signature_metadata(signature),
            });
        }
        out.push(ModelEvent::ToolDelta { id: id.clone(), text: arguments.clone() });
        out.push(ModelEvent::ToolCall { id, name: name.to_owned(), arguments });
        Ok(())
    }

    /// Ends the open block and starts the next one.
    fn enter(&mut self, next: Block, out: &mut Vec<ModelEvent>) {
        match &next {
            Block::None => {}
            Block::Text | Block::Thought { .. } => self.enter(Block::None, out),
        }
        match std::mem::replace(&mut self.open, next) {
            Block::None => {}
            Block::Text => out.push(ModelEvent::TextEnd),
            Block::Thought { signature } => {
                out.push(ModelEvent::ReasoningEnd { metadata: signature.as_deref().map(signature_metadata) });
            }
        }
        match &self.open {
            Block::None => {}
            Block::Text => out.push(ModelEvent::TextStart),
            Block::Thought { .. } => out.push(ModelEvent::ReasoningStart),
        }
    }

    fn close(&mut self, out: &mut Vec<ModelEvent>) {
        self.count_latest();
        self.enter(Block::None, out);
        let reason = match self.reason.take().unwrap_or(FinishReason::Unknown) {
            FinishReason::Stop | FinishReason::Unknown | FinishReason::Other(_) if self.calls > 0 => {
                FinishReason::ToolCalls
            }
            reason => reason,
        };
        self.done = true;
        out.push(ModelEvent::Finish { reason, usage: usage(&self.usage) });
    }
}

/// Returns a signature as metadata, to be sent back unchanged.
fn signature_metadata(signature: &str) -> Value {
    json!({"google": {"thoughtSignature": signature}})
}

/// Parses the usage. Reasoning is counted separately, and cached input as part of the prompt.
fn usage(source: &str) -> Usage {
    let Ok(counts) = serde_json::from_str::<Value>(source) else { return Usage::default() };
    let count = |name: &str| counts[name].as_u64().unwrap_or(0);
    let cache_read = count("cachedContentTokenCount");
    let prompt = count("promptTokenCount").saturating_add(count("toolUsePromptTokenCount"));
    let (output, reasoning) = (count("candidatesTokenCount"), count("thoughtsTokenCount"));
    let sum = prompt.saturating_add(output).saturating_add(reasoning);
    Usage {
        input: prompt.saturating_sub(cache_read),
        output,
        reasoning,
        cache_read: cache_read.min(prompt),
        cache_write: 0,
        total: Some(counts["totalTokenCount"].as_u64().unwrap_or(sum)),
    }
}

/// Returns the error for a prompt that the provider blocked.
fn blocked(feedback: &RawValue) -> Option<Error> {
    let feedback: Value = serde_json::from_str(feedback.get()).ok()?;
    let reason = feedback["blockReason"].as_str().filter(|reason| *reason != "BLOCK_REASON_UNSPECIFIED")?;
    let detail = feedback["blockReasonMessage"].as_str().map(|text| format!(": {text}")).unwrap_or_default();
    Some(Error::rejected(format!("the provider blocked the prompt ({reason}){detail}")))
}

fn event_error(data: &str) -> Error {
    match serde_json::from_str(data) {
        Ok(body) => error::in_band(&body).unwrap_or_else(cut_short),
        Err(why) => malformed(data, &why),
    }
}

fn reason_of(text: &str) -> FinishReason {
    match text {
        "STOP" => FinishReason::Stop,
        "MAX_TOKENS" => FinishReason::Length,
        "SAFETY"
        | "RECITATION"
        | "BLOCKLIST"
        | "PROHIBITED_CONTENT"
        | "SPII"
        | "LANGUAGE"
        | "MODEL_ARMOR"
        | "IMAGE_SAFETY"
        | "IMAGE_PROHIBITED_CONTENT"
        | "IMAGE_RECITATION" => FinishReason::ContentFilter,
        other => FinishReason::Other(other.to_owned()),
    }
}

#[cfg(test)]
mod tests;
