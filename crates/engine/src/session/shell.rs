//! Shell commands that the user runs in a session. They call no model, but the next request contains them.
//!
//! A command is recorded as a prompt without text and an answer with one completed `bash` call. The session is running
//! meanwhile, so the command can be aborted, and a prompt that arrives is answered afterwards.

use std::sync::Arc;

use codewright_proto::{
    AssistantMessage, CreatedTime, Event, Map, Message, MessageWithParts, Part, PartBody, PromptInput,
    PromptModel, SessionId, ShellInput, Span, TextPart, ToolPart, ToolSpan, ToolState, UserMessage,
};
use codewright_store::{Claim, Lease};
use codewright_tools::{Output, Progress, run_for_user};
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::admit::{choose_model, lock};
use crate::extension::moments::Rights;
use crate::inner::Inner;
use crate::instance::Instance;
use crate::interface::Sessions;
use crate::plugins::current::current;
use crate::run::message;
use crate::run::next::RAN;
use crate::run::occupy;
use crate::run::recover::Aftermath;
use crate::toolbox::cx::tool_cx;
use crate::{Error, extension};

/// The number of output reports that are not recorded yet. Newer ones are dropped while the channel is full.
const PENDING_REPORTS: usize = 4;
/// The digits of Crockford's base 32, used in call ids.
const DIGITS: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";

impl Sessions<'_> {
    /// Runs a user's command and waits for its end. Returns the message with the call.
    pub async fn shell(self, id: &SessionId, input: ShellInput) -> Result<MessageWithParts, Error> {
        let held = lock(self.0, id).await?;
        let session = super::in_use(self.0, id).await?;
        let instance = current(self.0, std::path::Path::new(&session.directory)).await?;
        let agent = instance.agent_name(Some(&input.agent))?;
        let wanted = PromptInput { model: input.model.clone(), ..PromptInput::default() };
        let model = choose_model(&instance, &session, &wanted, &agent)?;
        let work = Work { inner: self.0.clone(), instance, id: id.clone(), input, agent, model };
        let (ended, end) = oneshot::channel();
        let started = occupy(self.0, id, move |cancel| async move {
            // The receiver may be gone.
            drop(ended.send(work.run(&cancel).await));
        });
        if !started {
            return Err(Error::busy(id));
        }
        drop(held);
        let done = end.await.map_err(|_| Error::aborted("the command was given up"))??;
        self.message(id, &done).await
    }
}

struct Work {
    inner: Arc<Inner>,
    instance: Arc<Instance>,
    id: SessionId,
    input: ShellInput,
    agent: String,
    model: PromptModel,
}

/// The constant parts of the record.
struct Record {
    message: AssistantMessage,
    part: Part,
    call_id: String,
    start: u64,
}

impl Work {
    async fn run(self, cancel: &CancellationToken) -> Result<codewright_proto::MessageId, Error> {
        let Claim::Held(mut lease) = self.inner.store.lease(&self.id).await? else {
            return Err(Error::busy(&self.id));
        };
        crate::run::recover::recover(&self.inner, &lease, Aftermath::Ends).await?;
        let record = self.begin(&lease).await?;
        let (reports, mut reported) = mpsc::channel(PENDING_REPORTS);
        let progress = Progress::new(move |metadata, _| drop(reports.try_send(metadata)));
        let mut cx = tool_cx(&self.inner, &self.instance, cancel.clone(), progress);
        let extensions = extension::open::ready(&self.inner, &self.instance).await;
        let (cwd, call_id) = (&self.instance.directory, Some(record.call_id.as_str()));
        cx.env.set.extend(extensions.shell_env(cwd, Some(&self.id), call_id, Rights::More).await);
        let mut is_seen = false;
        let output = {
            let mut running = std::pin::pin!(run_for_user(self.input.command.clone(), &cx));
            loop {
                tokio::select! {
                    output = &mut running => break output,
                    Some(metadata) = reported.recv() => {
                        is_seen = true;
                        let state = self.running(&record, Some(metadata));
                        lease.append(vec![self.part(&record, state)]).await?;
                    }
                }
            }
        };
        // A command may end at once; clients still receive its running state.
        let unseen = reported.try_recv().ok();
        if let Some(metadata) = unseen.or_else(|| (!is_seen).then(Map::new)) {
            let state = self.running(&record, Some(metadata));
            lease.append(vec![self.part(&record, state)]).await?;
        }
        let output = match output {
            Ok(output) => output,
            Err(error) => Output { output: error.to_string(), ..Output::default() },
        };
        self.end(&lease, &record, output, cancel.is_cancelled()).await?;
        lease.release(u64::MAX).await?;
        Ok(record.message.id)
    }

    /// Records the prompt, the answer and the call before the command starts.
    async fn begin(&self, lease: &Lease) -> Result<Record, Error> {
        let Inner { ids, clock, .. } = &*self.inner;
        // If the clock was set back, the record must still come after the earlier messages.
        self.inner.continue_after(self.inner.store.messages(&self.id, Some(1)).await?.last());
        let prompt = UserMessage {
            id: self.input.message_id.clone().unwrap_or_else(|| ids.message()),
            session_id: self.id.clone(),
            time: CreatedTime { created: clock.now_ms() },
            format: None,
            summary: None,
            agent: self.agent.clone(),
            model: self.model.clone(),
            system: None,
            tools: None,
        };
        let text = TextPart { text: RAN.to_owned().into(), synthetic: Some(true), ..TextPart::default() };
        let output = Part {
            id: ids.part(),
            session_id: self.id.clone(),
            message_id: prompt.id.clone(),
            body: PartBody::Text(text),
        };
        let message =
            message::answer(&self.inner, self.instance.message_path(), &prompt, &prompt.agent, &prompt.model);
        let start = clock.now_ms();
        let call_id = call_id(start, [ids.random(), ids.random()]);
        let part = Part {
            id: ids.part(),
            session_id: self.id.clone(),
            message_id: message.id.clone(),
            body: PartBody::Text(TextPart::default()),
        };
        let record = Record { message, part, call_id, start };
        let session_id = self.id.clone();
        let running = self.running(&record, None);
        lease
            .append(vec![
                Event::MessageUpdated { session_id: session_id.clone(), info: Message::User(prompt) },
                Event::PartUpdated { session_id: session_id.clone(), part: output, time: start },
                Event::MessageUpdated { session_id, info: Message::Assistant(record.message.clone()) },
                self.part(&record, running),
            ])
            .await?;
        Ok(record)
    }

    async fn end(&self, lease: &Lease, record: &Record, output: Output, stopped: bool) -> Result<(), Error> {
        let now = self.inner.clock.now_ms();
        let mut shown = output.metadata;
        let mut text = output.output;
        if stopped {
            // The tool's note is for the model; clients recognize a user's command by this one.
            if let Some(note) = text.rfind("\n\n<shell_metadata>") {
                text.truncate(note);
            }
            text.push_str("\n\n<metadata>\nUser aborted the command\n</metadata>");
            shown.insert("output".to_owned(), Value::from(text.clone()));
        }
        let mut metadata = Map::new();
        for key in ["output", "outputPath"] {
            if let Some(value) = shown.remove(key) {
                metadata.insert(key.to_owned(), value);
            }
        }
        let state = ToolState::Completed {
            input: json!({ "command": self.input.command }),
            output: text,
            title: String::new(),
            metadata,
            time: ToolSpan { start: record.start, end: now, compacted: None },
            attachments: None,
        };
        let mut message = record.message.clone();
        message.time.completed = Some(now);
        let info = Message::Assistant(message);
        let session_id = self.id.clone();
        let events = vec![Event::MessageUpdated { session_id, info }, self.part(record, state)];
        lease.append(events).await?;
        Ok(())
    }

    fn running(&self, record: &Record, metadata: Option<Map>) -> ToolState {
        let time = Span { start: record.start, end: None };
        ToolState::Running { input: json!({ "command": self.input.command }), title: None, metadata, time }
    }

    fn part(&self, record: &Record, state: ToolState) -> Event {
        let call =
            ToolPart { call_id: record.call_id.clone(), tool: "bash".to_owned(), state, metadata: None };
        let part = Part { body: PartBody::Tool(call), ..record.part.clone() };
        Event::PartUpdated { session_id: self.id.clone(), part, time: self.inner.clock.now_ms() }
    }
}

/// Returns the id of a call without a model: 26 digits, of which the first ten are the time.
fn call_id(now_ms: u64, random: [u64; 2]) -> String {
    let digit = |value: u64| char::from(DIGITS[(value & 31) as usize]);
    let time = (0..10).rev().map(|at| digit(now_ms >> (5 * at)));
    let [first, second] = random.map(|random| (0..8).map(move |at| random >> (5 * at)));
    time.chain(first.chain(second).map(digit)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_id_begins_with_its_time() {
        let id = call_id(1_795_293_503_662, [0, u64::MAX]);
        assert_eq!(id, "01M7ZX9R5E00000000ZZZZZZZZ");
    }
}
