//! The output of `run --format json`: one JSON object per line.
//!
//! `{type, timestamp, sessionID, part}` with the types `step_start`, `text`, `reasoning` (with `--thinking`), `tool_use`
//! and `step_finish`, and `{type: "error", timestamp, sessionID, error}`. A part is printed once, when it is complete.

use std::collections::HashSet;

use codewright_proto::{
    Clock, Event, Fact, Message, MessageId, Notice, Part, PartBody, PartId, PermissionRequest,
    QuestionRequest, Signal,
};
use serde_json::{Value, json};

use super::{Output, text};

pub(super) struct JsonOutput {
    thinking: bool,
    clock: Clock,
    /// The user's messages, whose parts are not printed.
    prompts: HashSet<MessageId>,
    /// The parts that were printed.
    printed: HashSet<PartId>,
}

impl JsonOutput {
    pub(super) fn new(thinking: bool) -> Self {
        Self { thinking, clock: Clock::system(), prompts: HashSet::new(), printed: HashSet::new() }
    }

    fn line(&self, kind: &str, session: &str, key: &str, value: Value) -> std::io::Result<()> {
        let line =
            json!({ "type": kind, "timestamp": self.clock.now_ms(), "sessionID": session, key: value });
        let mut output = crate::output::Output::new();
        output.write_json(&format!("{line}\n"))?;
        output.finish()
    }

    /// The line type of a complete part.
    fn kind(&self, part: &Part) -> Option<&'static str> {
        match &part.body {
            PartBody::StepStart { .. } => Some("step_start"),
            PartBody::StepFinish(_) => Some("step_finish"),
            PartBody::Text(text) => {
                let is_complete = text.time.is_some_and(|time| time.end.is_some()) && !text.text.is_empty();
                is_complete.then_some("text")
            }
            PartBody::Reasoning { text, time, .. } => {
                (self.thinking && time.end.is_some() && !text.is_empty()).then_some("reasoning")
            }
            PartBody::Tool(call) => (!call.state.is_open()).then_some("tool_use"),
            PartBody::File { .. }
            | PartBody::Snapshot { .. }
            | PartBody::Patch { .. }
            | PartBody::Agent { .. }
            | PartBody::Subtask { .. }
            | PartBody::Retry { .. }
            | PartBody::Compaction { .. } => None,
        }
    }
}

impl Output for JsonOutput {
    fn notice(&mut self, notice: &Notice) -> std::io::Result<()> {
        match &notice.fact {
            Fact::Event(Event::MessageUpdated { info: Message::User(prompt), .. }) => {
                self.prompts.insert(prompt.id.clone());
                Ok(())
            }
            Fact::Event(Event::PartUpdated { part, .. }) if !self.prompts.contains(&part.message_id) => {
                let Some(kind) = self.kind(part) else { return Ok(()) };
                if !self.printed.insert(part.id.clone()) {
                    return Ok(());
                }
                self.line(kind, part.session_id.as_str(), "part", serde_json::to_value(part)?)
            }
            Fact::Signal(Signal::SessionError { session_id: Some(session), error }) => {
                self.line("error", session.as_str(), "error", serde_json::to_value(error)?)
            }
            Fact::Event(_) | Fact::Signal(_) => Ok(()),
        }
    }

    fn permission(&mut self, request: &PermissionRequest, allowed: bool) -> std::io::Result<()> {
        text::warn_permission(request, allowed);
        Ok(())
    }

    fn question(&mut self, request: &QuestionRequest) -> std::io::Result<()> {
        text::warn_question(request);
        Ok(())
    }

    fn end(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
