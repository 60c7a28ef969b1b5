//! Decodes the chunks of a chat completion.
//!
//! Chunks are parsed into borrowed text, because an answer may have tens of thousands of them. The
//! decoder tolerates mistakes of servers if the meaning is clear: calls without index or id, whole
//! calls in one chunk, arguments as objects, a missing `[DONE]`, and a reason to stop that
//! contradicts the calls.

use std::borrow::Cow;

use serde_json::Value;

use super::error;
use crate::protocol::limits::{cut_short, malformed};
use crate::protocol::openai_chat::stream::call::Calls;
use crate::protocol::openai_chat::stream::chunk::{Choice, Choices, Chunk, Delta, content};
use crate::protocol::openai_chat::stream::details::Details;
use crate::protocol::openai_chat::stream::prose::{Piece, Prose};
use crate::protocol::repeat::Repeat;
use crate::protocol::usage;
use crate::{Error, FinishReason, ModelEvent, ToolSpec, Usage};

mod call;
mod chunk;
mod code;
mod details;
mod prose;

/// The decoder of one answer.
#[derive(Debug, Default)]
pub(crate) struct Stream {
    open: Block,
    repeat: Repeat,
    prose: Prose,
    /// Empty between chunks; only the allocation is kept.
    pieces: Vec<Piece>,
    details: Details,
    calls: Calls,
    reason: Option<FinishReason>,
    usage: Usage,
    done: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Block {
    #[default]
    None,
    Text,
    Reasoning,
}

impl Stream {
    /// Sets the tools whose calls the model may print as text.
    pub(crate) fn set_tools(&mut self, tools: &[ToolSpec]) {
        self.prose.set_tools(tools);
    }

    /// Expects thoughts of which only the closing tag is written.
    pub(crate) fn expect_thoughts(&mut self) {
        self.prose.expect_thoughts();
    }

    /// Decodes the data of one event.
    pub(crate) fn push(&mut self, data: &str, out: &mut Vec<ModelEvent>) -> Result<(), Error> {
        let data = data.trim();
        if self.done || data.is_empty() {
            return Ok(());
        }
        if data == "[DONE]" {
            return self.close(out);
        }
        let is_text = self.open == Block::Text && self.prose.may_repeat();
        if is_text
            && let Some(text) = self.repeat.text(data)
            && self.prose.is_plain(&text)
        {
            out.push(ModelEvent::TextDelta(text.into_owned()));
            return Ok(());
        }
        let begun = out.len();
        let chunk: Chunk = serde_json::from_str(data).map_err(|why| malformed(data, &why))?;
        self.read(chunk, data, out)?;
        if is_text
            && self.reason.is_none()
            && let [ModelEvent::TextDelta(text)] = &out[begun..]
        {
            self.repeat.learn(data, "\"content\":\"", text);
        }
        Ok(())
    }

    /// Decodes a completion that was not streamed.
    pub(crate) fn push_whole(&mut self, body: &str, out: &mut Vec<ModelEvent>) -> Result<(), Error> {
        self.push(body, out)?;
        match self.reason {
            Some(_) => self.close(out),
            None => Err(Error::rejected(format!(
                "the server answered with JSON that is not a completion: {}",
                crate::error::cut(body.trim(), 300)
            ))),
        }
    }

    /// Completes the answer after the connection has ended.
    pub(crate) fn finish(&mut self, out: &mut Vec<ModelEvent>) -> Result<(), Error> {
        match (self.done, &self.reason) {
            (true, _) => Ok(()),
            (false, Some(_)) => self.close(out),
            (false, None) => Err(cut_short()),
        }
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.reason.is_some()
    }

    pub(crate) fn is_done(&self) -> bool {
        self.done
    }

    fn read(&mut self, chunk: Chunk, data: &str, out: &mut Vec<ModelEvent>) -> Result<(), Error> {
        if chunk.error.is_some() || matches!(chunk.choices, Choices::Absent) {
            let value: Value = serde_json::from_str(data).map_err(|why| malformed(data, &why))?;
            if let Some(error) = error::in_band(&value) {
                return Err(error);
            }
        }
        if let Some(found) = chunk.usage.and_then(usage::read).or_else(|| usage::nested(chunk.x_groq?)) {
            self.usage = found;
        }
        let Choices::First(choice) = chunk.choices else { return Ok(()) };
        self.choice(choice, out)
    }

    fn choice(&mut self, choice: Choice, out: &mut Vec<ModelEvent>) -> Result<(), Error> {
        if let Some(found) = choice.usage.and_then(usage::read) {
            self.usage = found;
        }
        for delta in [choice.delta, choice.message].into_iter().flatten() {
            self.delta(delta, out)?;
        }
        if let Some(reason) = choice.finish_reason.text() {
            self.reason = Some(reason_of(reason));
        }
        Ok(())
    }

    fn delta(&mut self, delta: Delta, out: &mut Vec<ModelEvent>) -> Result<(), Error> {
        // Some servers send the same reasoning in several fields.
        let thought = delta.reasoning_content.source().or_else(|| delta.reasoning.source());
        let thought = thought.or_else(|| delta.reasoning_text.source());
        let details = match delta.reasoning_details {
            Some(details) => self.details.push(details)?,
            None => None,
        };
        if let Some(thought) = thought.map(Cow::into_owned).or(details) {
            self.separate_reasoning(thought, out);
        }
        let (thought, text) = content(delta.content);
        if let Some(thought) = thought {
            self.separate_reasoning(thought, out);
        }
        if let Some(text) = text.or_else(|| delta.refusal.source()) {
            self.text(text, out);
        }
        for call in delta.tool_calls.into_iter().flatten() {
            self.prose.interrupt(&mut self.pieces);
            self.emit_pieces(out);
            self.enter(Block::None, out);
            self.calls.push(call, out)?;
        }
        Ok(())
    }

    fn separate_reasoning(&mut self, thought: String, out: &mut Vec<ModelEvent>) {
        self.prose.thoughts_are_separate();
        self.reasoning(thought, out);
    }

    fn reasoning(&mut self, thought: String, out: &mut Vec<ModelEvent>) {
        self.enter(Block::Reasoning, out);
        out.push(ModelEvent::ReasoningDelta(thought));
    }

    fn text(&mut self, text: Cow<'_, str>, out: &mut Vec<ModelEvent>) {
        if self.prose.is_plain(&text) {
            self.enter(Block::Text, out);
            out.push(ModelEvent::TextDelta(text.into_owned()));
            return;
        }
        self.prose.push(&text, &mut self.pieces);
        self.emit_pieces(out);
    }

    /// Emits the parsed pieces of text.
    fn emit_pieces(&mut self, out: &mut Vec<ModelEvent>) {
        let mut pieces = std::mem::take(&mut self.pieces);
        for piece in pieces.drain(..) {
            match piece {
                Piece::Thought(thought) => self.reasoning(thought, out),
                Piece::Text(text) => {
                    self.enter(Block::Text, out);
                    out.push(ModelEvent::TextDelta(text));
                }
                Piece::WasThought if self.open == Block::Text => {
                    self.open = Block::None;
                    out.push(ModelEvent::TextWasReasoning);
                }
                // The thought was empty.
                Piece::WasThought => {}
                Piece::Call((name, arguments)) => {
                    self.enter(Block::None, out);
                    self.calls.push_printed(name, arguments, out);
                }
            }
        }
        self.pieces = pieces;
    }

    /// Ends the open block and starts `next`, unless it is already open.
    fn enter(&mut self, next: Block, out: &mut Vec<ModelEvent>) {
        if self.open == next {
            return;
        }
        match self.open {
            Block::None => {}
            Block::Text => out.push(ModelEvent::TextEnd),
            Block::Reasoning => out.push(ModelEvent::ReasoningEnd { metadata: self.details.take() }),
        }
        match next {
            Block::None => {}
            Block::Text => out.push(ModelEvent::TextStart),
            Block::Reasoning => out.push(ModelEvent::ReasoningStart),
        }
        self.open = next;
    }

    fn close(&mut self, out: &mut Vec<ModelEvent>) -> Result<(), Error> {
        self.prose.close(self.calls.count() > 0, &mut self.pieces);
        self.emit_pieces(out);
        // Details may come without reasoning text, or after its end.
        if self.details.has_any() {
            self.enter(Block::Reasoning, out);
        }
        self.enter(Block::None, out);
        self.calls.close(out);
        let reason = self.reason.take().unwrap_or(FinishReason::Unknown).with_calls(self.calls.count());
        self.done = true;
        out.push(ModelEvent::Finish { reason, usage: self.usage });
        Ok(())
    }
}

fn reason_of(text: &str) -> FinishReason {
    match text.to_ascii_lowercase().as_str() {
        "stop" | "end_turn" | "eos" | "eos_token" | "stop_sequence" | "completed" => FinishReason::Stop,
        "length" | "max_tokens" | "model_length" | "max_output_tokens" => FinishReason::Length,
        "tool_calls" | "tool_call" | "function_call" | "tool_use" => FinishReason::ToolCalls,
        "content_filter" | "safety" | "sensitive" | "refusal" => FinishReason::ContentFilter,
        other => FinishReason::Other(other.to_owned()),
    }
}

#[cfg(test)]
mod tests;
