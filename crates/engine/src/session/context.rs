//! What a model is told of a session, for clients that want to see it.
//!
//! Read from the end of the session back to its last summary and no further, and never more than the caller has
//! room for: what was before costs nothing.

use std::collections::VecDeque;

use codewright_proto::{MessageId, MessageWithParts, SessionId, json_bytes};

use super::revert;
use crate::Error;
use crate::interface::Sessions;
use crate::request::history::{is_enough, visible};

/// How many messages are read at a time.
const PAGE: usize = 8;

/// What of a session has been taken back.
enum TakenBack {
    Nothing,
    /// What begins in a message.
    From(MessageId),
    /// The same, and the message is gone: what was behind it is told by its id.
    FromGone,
}

impl Sessions<'_> {
    /// What a model is told of a session at this moment: what still counts, from the last summary on. More than
    /// so many bytes, as JSON, are an error.
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
        "what the model is told of this session has more than {most} MiB; its messages can be read page by page"
    ))
}
