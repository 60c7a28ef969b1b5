//! Checks of answers, transcripts and the effects of commands.

use std::collections::BTreeSet;

use codewright_proto::{Message, MessageWithParts, PartBody, SessionId, ToolPart, ToolState};

use super::{CrashReport, model};

/// Checks that an answer is an assistant message without an error.
pub(crate) fn answer(answer: &MessageWithParts, session: &SessionId, found: &mut CrashReport) {
    let Message::Assistant(info) = &answer.info else {
        found.wrong.insert(format!("{session} answers with a prompt"));
        return;
    };
    if let Some(error) = &info.error {
        found.wrong.insert(format!("{session} answers with an error: {}", error.message()));
    }
}

/// Checks that no command ran twice.
pub(crate) fn doubled(effects: &str, found: &mut CrashReport) {
    let mut seen = BTreeSet::new();
    for line in effects.lines() {
        if !seen.insert(line) {
            found.doubled.insert(line.to_owned());
        }
    }
}

/// Checks that the record of each call agrees with the command's effect, and that nothing is open.
pub(crate) fn calls(transcript: &[MessageWithParts], effects: &str, found: &mut CrashReport) {
    let ran: BTreeSet<_> = effects.lines().collect();
    for message in transcript {
        if let Message::Assistant(info) = &message.info
            && info.time.completed.is_none()
        {
            found.wrong.insert(format!("{} is not completed", info.id));
        }
        for part in &message.parts {
            match &part.body {
                PartBody::Tool(call) => check_call(call, &ran, found),
                PartBody::Text(text) if text.time.is_some_and(|time| time.end.is_none()) => {
                    found.wrong.insert(format!("text {} has no end", part.id));
                }
                PartBody::Reasoning { time, .. } if time.end.is_none() => {
                    found.wrong.insert(format!("reasoning {} has no end", part.id));
                }
                _ => {}
            }
        }
    }
}

fn check_call(call: &ToolPart, ran: &BTreeSet<&str>, found: &mut CrashReport) {
    let Some(mark) = model::mark(&call.call_id) else { return };
    let has_run = ran.contains(mark);
    match &call.state {
        ToolState::Pending { .. } | ToolState::Running { .. } => {
            found.wrong.insert(format!("call {mark} is still open"));
        }
        ToolState::Completed { .. } => {
            found.done.insert(mark.to_owned());
            if !has_run {
                found.wrong.insert(format!("call {mark} is recorded as done but did not run"));
            }
        }
        ToolState::Error { metadata, error, .. } => {
            let word = metadata.as_ref().and_then(|metadata| metadata.get("interrupted")?.as_str());
            match word {
                Some("not_started") => {
                    found.not_begun.insert(mark.to_owned());
                    if has_run {
                        found.wrong.insert(format!("call {mark} ran and is recorded as not started"));
                    }
                }
                Some("uncertain") => {
                    found.uncertain.insert(mark.to_owned());
                }
                Some(_) | None => {
                    found.wrong.insert(format!("call {mark} ended with: {error}"));
                }
            }
        }
    }
}
