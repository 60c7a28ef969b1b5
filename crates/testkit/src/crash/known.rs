//! What is known from outside: what clients were told.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::{Context, Result};
use codewright_client::Client;
use codewright_proto::{MessageId, MessageWithParts, SessionId};
use tokio::time::timeout;

use super::Found;

/// How long the next event of the log is waited for before it counts as gone.
const GONE: Duration = Duration::from_secs(15);

/// What clients were told: accepted prompts and received events.
#[derive(Default)]
pub(super) struct Known {
    prompts: BTreeMap<SessionId, BTreeSet<MessageId>>,
    events: BTreeMap<u64, String>,
    effects: u64,
}

impl Known {
    pub(super) fn made(&mut self, session: &SessionId) {
        self.prompts.entry(session.clone()).or_default();
    }

    pub(super) fn accepted(&mut self, session: &SessionId, message: &MessageId) {
        self.prompts.entry(session.clone()).or_default().insert(message.clone());
    }

    pub(super) fn heard(&mut self, events: Vec<(u64, String)>) {
        self.events.extend(events);
    }

    pub(super) fn sessions(&self) -> Vec<SessionId> {
        self.prompts.keys().cloned().collect()
    }

    pub(super) fn any_session(&self, dice: u64) -> Option<SessionId> {
        let count = self.prompts.len() as u64;
        self.prompts.keys().nth(dice.checked_rem(count)? as usize).cloned()
    }

    pub(super) fn last_position(&self) -> u64 {
        self.events.last_key_value().map_or(0, |(position, _)| *position)
    }

    /// How many lines there are more than the last time.
    pub(super) fn new_effects(&mut self, effects: &str) -> u64 {
        let all = effects.lines().count() as u64;
        all - std::mem::replace(&mut self.effects, all)
    }

    /// Every event that a client received is in the log.
    pub(super) async fn check_log(&self, client: &Client, found: &mut Found) -> Result<()> {
        let last = self.last_position();
        if last == 0 {
            return Ok(());
        }
        let mut log = BTreeMap::new();
        let mut events = client.events_after(0).await?;
        while events.position().unwrap_or(0) < last {
            let Ok(next) = timeout(GONE, events.next()).await else { break };
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

    /// Every accepted prompt is in its session.
    pub(super) fn check_prompts(
        &self,
        session: &SessionId,
        transcript: &[MessageWithParts],
        found: &mut Found,
    ) {
        let there: BTreeSet<_> = transcript.iter().map(|message| message.info.id()).collect();
        for prompt in self.prompts.get(session).into_iter().flatten() {
            if !there.contains(prompt) {
                found.lost.insert(format!("prompt {prompt} of {session}"));
            }
        }
    }
}
