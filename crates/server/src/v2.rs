//! Messages and events as the newer routes show them: a pure projection of the one vocabulary.
//!
//! Nothing is stored in these shapes. A message is made of its parts, an event of what the log says
//! at its place, so both views of a session always tell the same.

pub(crate) mod event;
pub(crate) mod feed;
pub(crate) mod message;
pub(crate) mod prompt;
pub(crate) mod waiting;

use codewright_engine::{Engine, PageLimit};
use codewright_proto::{Envelope, Event, Message, SessionId};

/// How many events before a place of the log are read at most, and how many bytes, to know what was so there.
/// What began earlier is learned from the messages themselves.
pub(crate) const LOOK_BACK: PageLimit = PageLimit { events: 1024, bytes: 2 * 1024 * 1024 };
/// How many bytes a page of events or messages has before it ends; it holds one at least, which may be larger.
pub(crate) const PAGE_BYTES: usize = 8 * 1024 * 1024;
/// How many events of the log are read at a time.
pub(crate) const PAGE_EVENTS: usize = 256;

/// Learns what a session was before the place at which its log begins to be read. What cannot be read is not known.
pub(crate) async fn begin(engine: &Engine, fold: &mut event::Fold, (session, from_seq): (&SessionId, u64)) {
    if from_seq > 0
        && let Ok(Some(before)) = engine.session_before(session, from_seq).await
    {
        fold.begin(before.revert);
    }
}

/// Learns of the message that an event belongs to, if it began before what was read.
pub(crate) async fn learn(engine: &Engine, fold: &mut event::Fold, envelope: &Envelope) {
    let Event::PartUpdated { part, .. } = &envelope.event else { return };
    if fold.knows(&part.message_id) {
        return;
    }
    // One that was removed meanwhile has nothing more to tell.
    let Ok(stored) = engine.message(&part.session_id, &part.message_id).await else { return };
    let asked = match &stored.info {
        Message::Assistant(info) if info.summary == Some(true) => {
            engine.message(&part.session_id, &info.parent_id).await.ok()
        }
        Message::Assistant(_) | Message::User(_) => None,
    };
    let reason = asked.and_then(|asked| message::Reason::of(&asked.parts));
    fold.resume(&stored, reason, envelope.time);
}
