//! The messages of a session that the model receives, for clients that display them.
//!
//! The session is read from its end back to the last summary, and at most up to the caller's limit, so earlier messages
//! cost nothing.

use std::collections::VecDeque;

use codewright_proto::{MessageId, MessageWithParts, SessionId, json_bytes};

use super::revert;
use crate::Error;
use crate::interface::Sessions;
use crate::request::history::{is_enough, visible};

/// The number of messages in one read.
const PAGE: usize = 8;

/// The reverted part of a session.
enum TakenBack {
    Nothing,
    /// Everything from a message on.
    From(MessageId),
    /// The same, but the message is missing, so ids decide.
    FromGone,
}

impl Sessions<'_> {
    /// Returns the messages that the model would receive now, from the last summary on. Fails if they exceed
    /// `most_bytes` as JSON.
    pub async fn context(self, id: &SessionId, most_bytes: usize) -> Result<Vec<MessageWithParts>, Error> {
        let session = self.0.session(id).await?;
        let mut taken_back = match &session.revert {
            None => TakenBack::Nothing,
            Some(revert) if self.has_message(id, &revert.message_id).await? => {
                TakenBack::From(revert.message_id.clone())
            }
            Some(_) => TakenBack::FromGone,
        };
        let (mut found, mut bytes, mut before) = (VecDeque::new(), 0, None);
        loop {
            let (page, has_more) = self.0.store.messages_before(id, PAGE, before).await?;
            before = page.first().map(|first| (first.info.created(), first.info.id().clone()));
            let page = match &taken_back {
                TakenBack::Nothing => page,
                TakenBack::From(point) if page.iter().any(|message| message.info.id() == point) => {
                    taken_back = TakenBack::Nothing;
                    revert::counted(&session, page)
                }
                TakenBack::From(_) => Vec::new(),
                TakenBack::FromGone => {
                    let read = page.len();
                    let page = revert::counted(&session, page);
                    if page.len() < read {
                        found.clear();
                        bytes = 0;
                    }
                    page
                }
            };
            for message in page.into_iter().rev() {
                bytes += json_bytes(&message);
                if bytes > most_bytes {
                    return Err(too_large(most_bytes));
                }
                found.push_front(message);
            }
            if !has_more || is_enough(found.make_contiguous()) {
                return Ok(visible(found.make_contiguous()).into_iter().cloned().collect());
            }
        }
    }
}

fn too_large(most_bytes: usize) -> Error {
    let most = most_bytes / 1024 / 1024;
    Error::invalid(format!(
        "the context of this session is larger than {most} MiB; its messages can be read page by page"
    ))
}
