//! The prompts and events that clients know of.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::{Context, Result};
use codewright_client::Client;
use codewright_proto::{MessageId, MessageWithParts, SessionId};
use tokio::time::timeout;

use super::CrashReport;

/// An event of the log is missing if it does not arrive for this long.
const MISSING_AFTER: Duration = Duration::from_secs(15);

/// The accepted prompts and received events of all clients.
#[derive(Default)]
pub(crate) struct ClientRecord {
    prompts: BTreeMap<SessionId, BTreeSet<MessageId>>,
    events: BTreeMap<u64, String>,
    effects: u64,
}

impl ClientRecord {
    pub(crate) fn add_session(&mut self, session: &SessionId) {
        self.prompts.entry(session.clone()).or_default();
    }

    pub(crate) fn add_prompt(&mut self, session: &SessionId, message: &MessageId) {
        self.prompts.entry(session.clone()).or_default().insert(message.clone());
    }

    pub(crate) fn add_events(&mut self, events: Vec<(u64, String)>) {
        self.events.extend(events);
    }

    pub(crate) fn events(&self) -> BTreeMap<u64, String> {
        self.events.clone()
    }

    pub(crate) fn sessions(&self) -> Vec<SessionId> {
        self.prompts.keys().cloned().collect()
    }

    pub(crate) fn any_session(&self, dice: u64) -> Option<SessionId> {
        let count = self.prompts.len() as u64;
        self.prompts.keys().nth(dice.checked_rem(count)? as usize).cloned()
    }

    pub(crate) fn last_position(&self) -> u64 {
        self.events.last_key_value().map_or(0, |(position, _)| *position)
    }

    /// Returns the number of lines that are new since the last call.
    pub(crate) fn new_effects(&mut self, effects: &str) -> u64 {
        let all = effects.lines().count() as u64;
        all - std::mem::replace(&mut self.effects, all)
    }

    /// Checks that the log has every event that a client received.
    pub(crate) async fn check_log(&self, client: &Client, found: &mut CrashReport) -> Result<()> {
        let last = self.last_position();
        if last == 0 {
            return Ok(());
        }
        let mut log = BTreeMap::new();
        let mut events = client.events_after(0).await?;
        while events.position().unwrap_or(0) < last {
            let Ok(next) = timeout(MISSING_AFTER, events.next()).await else { break };
            let notice = next?.context("the stream ended")?;
            if let Some(position) = events.position() {
                log.entry(position).or_insert_with(|| notice.id.to_string());
            }
        }
        for (position, id) in &self.events {
            if log.get(position) != Some(id) {
                found.lost.insert(format!("event {id} at {position}; the log has {:?}", log.get(position)));
            }
        }
        Ok(())
    }

    /// Checks that the session has every accepted prompt.
    pub(crate) fn check_prompts(
        &self,
        session: &SessionId,
        transcript: &[MessageWithParts],
        found: &mut CrashReport,
    ) {
        let there: BTreeSet<_> = transcript.iter().map(|message| message.info.id()).collect();
        for prompt in self.prompts.get(session).into_iter().flatten() {
            if !there.contains(prompt) {
                found.lost.insert(format!("prompt {prompt} of {session}"));
            }
        }
    }
}
