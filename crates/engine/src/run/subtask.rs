//! Subtasks: work that a prompt delegates to another agent without a decision of the model.
//!
//! A subtask is recorded like a call of a model: an answer with one call of the task tool. After the last subtask of a
//! prompt the model receives a request to continue with the results.

use std::sync::Arc;

use codewright_llm::{FinishReason, ModelEvent, Request, Usage};
use codewright_proto::{
    CreatedTime, Event, Message, MessageError, MessageWithParts, Part, PartBody, PromptModel, TextPart,
    UserMessage,
};
use codewright_store::Lease;
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use super::context::Context;
use super::files::Files;
use super::next::subtasks;
use super::recorder::Recorder;
use super::refusal::is_refused;
use super::step::converse::{Attempt, Conversation};
use super::step::fail::fail;
use super::step::leave_files;
use super::step::prepare::Step;
use super::step::store::flush;
use crate::Error;
use crate::error::describe;
use crate::extension;
use crate::inner::Inner;
use crate::permission::session::session_rules;
use crate::run::prompt::last_prompt;
use crate::subagent::handover::Caller;
use crate::toolbox::Selection;

/// The prompt after the subtasks.
const GO_ON: &str = "Summarize the result of the task above, then continue the work.";

/// Runs the `nth` subtask of the last prompt.
pub(crate) async fn subtask(
    inner: &Arc<Inner>,
    lease: &Lease,
    transcript: &[MessageWithParts],
    nth: usize,
    cancel: &CancellationToken,
) -> Result<(), Error> {
    let Some((prompt, message)) = last_prompt(transcript) else { return Ok(()) };
    let pieces = subtasks(message).count();
    let Some(PartBody::Subtask { prompt: asked, description, agent, model, command }) =
        subtasks(message).nth(nth)
    else {
        return Ok(());
    };
    let Context { session, instance } = Context::resolve(inner, lease.session()).await?;
    if transcript.len() == 1 {
        super::title::start(inner, &instance, &session, transcript);
    }
    let model = model.as_ref().unwrap_or(&prompt.model);
    let info = super::message::answer(inner, instance.message_path(), prompt, agent, model);
    let mut recorder = Recorder::new(inner.ids.clone(), inner.clock.clone(), info).without_steps();
    let mut input = Map::new();
    input.insert("prompt".to_owned(), asked.as_str().into());
    input.insert("description".to_owned(), description.as_str().into());
    input.insert("subagent_type".to_owned(), agent.as_str().into());
    input.extend(command.iter().map(|command| ("command".to_owned(), Value::from(command.as_str()))));
    let files = Files::begin(&instance, &inner.tasks, cancel.child_token(), None);
    let step = async {
        let off = prompt.tools.iter().flatten().filter(|(_, on)| !**on);
        let caller = Caller {
            rules: session_rules(inner, &instance, &session, &prompt.agent).await?,
            agent: prompt.agent.clone(),
            model: Some(PromptModel { variant: None, ..model.clone() }),
            switched_off: off.map(|(tool, _)| tool.clone()).collect(),
            named: vec![agent.clone()],
            ..Caller::default()
        };
        let known = instance.models.find(&model.provider_id, &model.model_id)?;
        let step = Step::without_tools(instance.clone(), known, Request::default());
        let selection =
            Selection { offered: inner.toolbox.task().into_iter().collect(), ..Selection::default() };
        // The call passes the same hooks as one of the model.
        let extensions = extension::open::ready(inner, &instance).await;
        Ok(Step { selection, caller: Arc::new(caller), files: Some(files.clone()), extensions, ..step })
    };
    let step = match step.await {
        Ok(step) => step,
        Err(error) => {
            let error: Error = error;
            let error = MessageError::UnknownError { message: describe(&error), reference: None };
            return fail(lease, inner, recorder, error).await;
        }
    };
    let asked = ModelEvent::ToolCall {
        id: call_id(inner),
        name: "task".to_owned(),
        arguments: Value::Object(input).to_string(),
    };
    let Some(call) = recorder.push(asked) else { return Ok(()) };
    let conversation = Conversation::new(inner, lease, &step, &mut recorder, cancel);
    if let Attempt::Aborted = conversation.alone(call).await? {
        leave_files(inner, &files, &mut recorder).await;
        return fail(lease, inner, recorder, MessageError::aborted()).await;
    }
    drop(recorder.push(ModelEvent::Finish { reason: FinishReason::ToolCalls, usage: Usage::default() }));
    recorder.changed(files.close().await.patch);
    recorder.close(None);
    flush(lease, inner, &mut recorder).await?;
    if nth + 1 < pieces || inner.store.messages(&session.id, Some(1)).await?.iter().any(refused) {
        return Ok(());
    }
    lease.append(go_on(inner, prompt)).await?;
    Ok(())
}

/// Reports whether the user rejected the call, which ends the turn.
fn refused(message: &MessageWithParts) -> bool {
    message.parts.iter().any(|part| matches!(&part.body, PartBody::Tool(call) if is_refused(&call.state)))
}

/// Returns an ascending id of 26 characters, the form that clients know for calls without a model.
fn call_id(inner: &Inner) -> String {
    const DIGITS: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";
    let time = u128::from(inner.clock.now_ms()) << 80;
    let random = (u128::from(inner.ids.random()) << 64 | u128::from(inner.ids.random())) & ((1 << 80) - 1);
    let value = time | random;
    (0..26).rev().map(|at| char::from(DIGITS[(value >> (at * 5)) as usize & 31])).collect()
}

fn go_on(inner: &Inner, prompt: &UserMessage) -> Vec<Event> {
    let now = inner.clock.now_ms();
    let id = inner.ids.message();
    let message = UserMessage {
        id: id.clone(),
        time: CreatedTime { created: now },
        summary: None,
        format: prompt.format.clone(),
        ..prompt.clone()
    };
    let session_id = prompt.session_id.clone();
    let body = PartBody::Text(TextPart { text: GO_ON.into(), synthetic: Some(true), ..TextPart::default() });
    let part = Part { id: inner.ids.part(), session_id: session_id.clone(), message_id: id, body };
    vec![
        Event::MessageUpdated { session_id: session_id.clone(), info: Message::User(message) },
        Event::PartUpdated { session_id, part, time: now },
    ]
}
