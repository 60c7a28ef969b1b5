//! Calls the extensions when a run has nothing left to do, and continues if they want more.

use codewright_proto::{CreatedTime, Message, MessageId, MessageWithParts, PartBody, TextPart, UserMessage};
use codewright_store::Lease;

use super::context::Context;
use super::message;
use super::prompt::last_prompt;
use crate::Error;
use crate::extension::Moment;
use crate::inner::Inner;

/// The number of times that extensions can continue one run.
const MAX_REPEATS: u32 = 8;

/// The calls of a run so far.
#[derive(Default)]
pub(crate) struct Stops {
    repeats: u32,
    /// The answer after which the extensions were called.
    last: Option<MessageId>,
}

impl Stops {
    /// Calls the extensions after an answer, once. Returns whether they added a prompt.
    pub(crate) async fn after(
        &mut self,
        inner: &Inner,
        lease: &Lease,
        context: &Context,
        transcript: &[MessageWithParts],
    ) -> Result<bool, Error> {
        let extensions = inner.extensions.find(&context.instance.directory);
        let moment = if context.session.parent_id.is_some() { Moment::SubagentStop } else { Moment::Stop };
        let Some(Message::Assistant(answer)) = transcript.last().map(|last| &last.info) else {
            return Ok(false);
        };
        if !extensions.take(moment) || answer.error.is_some() || self.last.as_ref() == Some(&answer.id) {
            return Ok(false);
        }
        self.last = Some(answer.id.clone());
        let wish = extensions.stop(moment, lease.session(), self.repeats).await;
        let (Some(text), Some((prompt, _))) = (wish, last_prompt(transcript)) else { return Ok(false) };
        if self.repeats >= MAX_REPEATS {
            return Ok(false);
        }
        self.repeats += 1;
        let message = UserMessage {
            id: inner.ids.message(),
            time: CreatedTime { created: inner.clock.now_ms() },
            summary: None,
            ..prompt.clone()
        };
        let part = TextPart { text: text.into(), synthetic: Some(true), ..TextPart::default() };
        lease.append(message::prompted(inner, message, [(None, PartBody::Text(part))])).await?;
        Ok(true)
    }
}
