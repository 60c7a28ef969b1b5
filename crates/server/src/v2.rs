//! Messages and events in the schemas of the v2 API.
//!
//! The store does not know these schemas. A v2 message is derived from a stored message and its parts,
//! a v2 event from the log of the session. So both APIs always show the same session.

pub(crate) mod event;
pub(crate) mod feed;
pub(crate) mod message;
pub(crate) mod pending;
pub(crate) mod prompt;

use codewright_engine::{Engine, PageLimit};
use codewright_proto::{Envelope, Event, Message, SessionId};

/// The limits for reading back from a position of the log to learn the state at it: a number of events and of bytes.
/// Messages that started earlier are read from the store.
pub(crate) const LOOK_BACK: PageLimit = PageLimit { events: 1024, bytes: 2 * 1024 * 1024 };
/// The size in bytes at which a page of events or messages ends. A page has at least one item, which may be larger.
pub(crate) const PAGE_BYTES: usize = 8 * 1024 * 1024;
/// The number of events per read of the log.
pub(crate) const PAGE_EVENTS: usize = 256;

/// Loads the revert state of a session at the position where reading its log starts. A state that cannot be read counts
/// as missing.
pub(crate) async fn load_revert(engine: &Engine, fold: &mut event::Fold, session: &SessionId, from_seq: u64) {
    if from_seq > 0
        && let Ok(Some(before)) = engine.events().session_before(session, from_seq).await
    {
        fold.set_revert(before.revert);
    }
}

/// Loads the message of an event, if it started before the part of the log that was read.
pub(crate) async fn load_message(engine: &Engine, fold: &mut event::Fold, envelope: &Envelope) {
    let Event::PartUpdated { part, .. } = &envelope.event else { return };
    if fold.contains(&part.message_id) {
        return;
    }
    // A message that has been removed since has no more events.
    let Ok(stored) = engine.sessions().message(&part.session_id, &part.message_id).await else { return };
    let prompt = match &stored.info {
        Message::Assistant(info) if info.summary == Some(true) => {
            engine.sessions().message(&part.session_id, &info.parent_id).await.ok()
        }
        Message::Assistant(_) | Message::User(_) => None,
    };
    let reason = prompt.and_then(|prompt| message::Reason::of(&prompt.parts));
    fold.insert(&stored, reason, envelope.time);
}
