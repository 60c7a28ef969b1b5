//! Compaction: a summary replaces the conversation so far.
//!
//! A message with a compaction part requests the summary, either from the user or automatic, and an assistant message
//! marked as a summary contains it. Later requests start with this pair; nothing is deleted. If the context is full,
//! old outputs are cleared first, which costs no request. Compaction always ends: a useless summary is not started, and
//! one that does not fit is retried with less input and then given up.

pub(crate) mod plan;
mod prune;
mod render;
pub(crate) mod trigger;

use std::collections::HashMap;
use std::sync::Arc;

use codewright_llm::{Message as Sent, Model, Request, UserContent, family};
use codewright_proto::{
    AssistantMessage, CreatedTime, Event, Message, MessageError, MessageWithParts, Part, PartBody, Session,
    SessionId, Signal, Span, TextPart, UserMessage,
};
use codewright_store::Lease;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::context::Context;
use super::files::{Files, tree_of_last_step};
use super::message;
use super::prompt::last_prompt;
use super::recorder::{Record, Recorder};
use super::step::converse::{Attempt, answer};
use super::step::fail::{fail, give_up};
use super::step::prepare::{Step, changed_messages};
use super::step::store::{account, cost, flush};
use crate::error::describe;
use crate::error::message_error;
use crate::extension::Extensions;
use crate::extension::model_request::{About, Overflow};
use crate::extension::moments::SummaryWishes;
use crate::inner::Inner;
use crate::instance::Instance;
use crate::models::options::merge;
use crate::{Error, extension, prompts, request};
use plan::{Plan, Settings, Then};
use trigger::{Cause, request_summary, user_message};

/// The agent that summarizes.
const AGENT: &str = "compaction";
/// The number of attempts at a summary, each with half of the input.
const ATTEMPTS: u32 = 3;
/// The largest input of a summary, for any model.
const MAX_BYTES: usize = 2 * 1024 * 1024;
/// The assumed context of a model with unknown limits, in tokens.
const UNKNOWN_CONTEXT: u64 = 128_000;
/// The assumed bytes of a token. Tokens of code are shorter than those of prose.
const TOKEN_BYTES: u64 = 3;
/// The number of parts that are cleared in one transaction.
const PRUNE_BATCH: usize = 100;
/// The prompt after an automatic summary.
const GO_ON: &str = "The conversation was summarised to save space. Continue with the remaining work; if nothing remains, \
                     or the next step is unclear, stop and report that.";

/// Makes room before a step if the context is full. Returns whether a summary was requested instead of the step.
pub(crate) async fn make_room(
    inner: &Inner,
    Context { session, instance }: &Context,
    transcript: &mut [MessageWithParts],
) -> Result<bool, Error> {
    let Some((prompt, _)) = last_prompt(transcript) else { return Ok(false) };
    let prompt = prompt.clone();
    let settings = Settings::of(instance.raw_config());
    // The step reports an unknown model.
    let Ok(model) = instance.models.find(&prompt.model.provider_id, &prompt.model.model_id) else {
        return Ok(false);
    };
    let Some(threshold) = plan::threshold(&model.limits, settings) else { return Ok(false) };
    let used = plan::used(transcript);
    if !settings.auto || used < threshold {
        return Ok(false);
    }
    let freed = if settings.prune { prune(inner, transcript).await? } else { 0 };
    if used.saturating_sub(freed) < threshold || !plan::helps(transcript) {
        return Ok(false);
    }
    request_summary(inner, &session.id, &prompt.agent, &prompt.model, Cause::Full).await?;
    Ok(true)
}

/// Clears old outputs at the end of a turn.
pub(crate) async fn tidy(
    inner: &Inner,
    instance: &Instance,
    transcript: &mut [MessageWithParts],
) -> Result<(), Error> {
    if Settings::of(instance.raw_config()).prune {
        prune(inner, transcript).await?;
    }
    Ok(())
}

/// Reports whether a summary can follow when the provider rejects a request as too long.
pub(crate) fn may_follow(instance: &Instance, transcript: &[MessageWithParts]) -> bool {
    Settings::of(instance.raw_config()).auto && plan::helps(transcript)
}

/// Clears old outputs in the transcript and in the store. Returns the freed tokens.
async fn prune(inner: &Inner, transcript: &mut [MessageWithParts]) -> Result<u64, Error> {
    let now = inner.clock.now_ms();
    let found = prune::prunable(transcript, now);
    for parts in found.parts.chunks(PRUNE_BATCH) {
        let event = |part: &Part| Event::PartUpdated {
            session_id: part.session_id.clone(),
            part: part.clone(),
            time: now,
        };
        inner.store.append(parts.iter().map(event).collect()).await?;
    }
    let mut cleared: HashMap<_, _> = found.parts.into_iter().map(|part| (part.id.clone(), part)).collect();
    for part in transcript.iter_mut().flat_map(|message| &mut message.parts) {
        if let Some(cleared) = cleared.remove(&part.id) {
            *part = cleared;
        }
    }
    Ok(found.tokens)
}

/// Who requested a summary, as extensions receive it.
fn trigger(request: &MessageWithParts) -> &'static str {
    if plan::marker(request) == Some(true) { "auto" } else { "manual" }
}

/// Creates the summary for the request at index `at`.
pub(crate) async fn compact(
    inner: &Arc<Inner>,
    lease: &Lease,
    transcript: Vec<MessageWithParts>,
    at: usize,
    cancel: &CancellationToken,
) -> Result<(), Error> {
    let Message::User(prompt) = &transcript[at].info else { return Ok(()) };
    let Context { session, instance } = Context::resolve(inner, lease.session()).await?;
    let agent = instance.agent(AGENT)?.clone();
    let wanted = agent.model.clone().unwrap_or_else(|| prompt.model.clone());
    let looking = cancel.child_token();
    let _looked = looking.clone().drop_guard();
    let known = tree_of_last_step(&transcript[..at], inner.clock.now_ms());
    let files = Files::begin(&instance, &inner.tasks, looking, known);
    let message = message::answer(inner, instance.message_path(), prompt, AGENT, &wanted);
    let message = AssistantMessage { summary: Some(true), ..message };
    let mut recorder = Recorder::new(inner.ids.clone(), inner.clock.clone(), message);
    flush(lease, inner, &mut recorder).await?;
    lease.append(vec![without_changes(prompt)]).await?;
    let model = match instance.models.find(&wanted.provider_id, &wanted.model_id) {
        Ok(model) => model,
        Err(error) => {
            let error = MessageError::UnknownError { message: describe(&error), reference: None };
            return fail(lease, inner, recorder, error).await;
        }
    };
    let settings = Settings::of(instance.raw_config());
    let plan = plan::plan(&transcript, at, settings.tail(&model.limits));
    let extensions = extension::open::ready(inner, &instance).await;
    let wishes = extensions.compacting(&session.id, trigger(&transcript[at])).await;
    let subject: Vec<_> = plan.subject.iter().map(|message| (*message).clone()).collect();
    let changed = changed_messages(&extensions, &subject).await;
    let subject = changed.as_ref().map_or_else(|| plan.subject.clone(), |changed| changed.iter().collect());
    let mut budget = budget(&model);
    for attempt in 1..=ATTEMPTS {
        let conversation = render::render(&subject, budget);
        let length = conversation.len();
        let half = length / 2;
        let mut request = model_request(&session, &agent, &model, asked(conversation, &wishes));
        let models = &instance.models;
        let about = About { session: &session.id, agent: AGENT, models, model: &model, prompt };
        extensions.model_request(about, &mut request).await;
        let step = Step::without_tools(instance.clone(), model.clone(), request);
        let step = Step { files: Some(files.clone()), extensions: extensions.clone(), ..step };
        match answer(inner, lease, &step, &mut recorder, cancel).await? {
            Attempt::Answered => {
                let message = &transcript[at];
                let goes_on = goes_on(&extensions, about, &plan, message).await;
                let request = SummaryRequest { message, plan: &plan, model: &model, bytes: length, goes_on };
                return finish(inner, lease, request, recorder, &files).await;
            }
            Attempt::Aborted => return give_up(lease, inner, recorder, MessageError::aborted()).await,
            Attempt::Failed(codewright_llm::Error::Overflow { .. })
                if attempt < ATTEMPTS && !recorder.has_calls() =>
            {
                recorder.restart();
                flush(lease, inner, &mut recorder).await?;
                budget = half;
            }
            Attempt::Failed(error) | Attempt::Silent(error) => {
                return give_up(lease, inner, recorder, message_error(&error)).await;
            }
        }
    }
    Ok(())
}

/// Returns the bytes of conversation that a model can summarize.
fn budget(model: &Model) -> usize {
    let context = if model.limits.context == 0 { UNKNOWN_CONTEXT } else { model.limits.context };
    // The answer, the instructions and errors of the estimate need room too.
    let room = context.saturating_sub(request::max_output_tokens(model)).max(context / 4) * 3 / 4;
    usize::try_from(room * TOKEN_BYTES).unwrap_or(MAX_BYTES).min(MAX_BYTES)
}

/// Returns the text that requests a summary of a conversation, with the wishes of extensions.
fn asked(conversation: String, wishes: &SummaryWishes) -> String {
    let request = wishes.prompt.as_deref().unwrap_or(prompts::COMPACTION_REQUEST);
    let mut text = format!("<conversation>\n{conversation}</conversation>\n\n{request}");
    for added in &wishes.context {
        text.push_str("\n\n");
        text.push_str(added);
    }
    text
}

/// Returns whether the turn continues by itself after a summary, as far as extensions decide it.
async fn goes_on(
    extensions: &Extensions,
    about: About<'_>,
    plan: &Plan<'_>,
    message: &MessageWithParts,
) -> bool {
    let is_refused = SummaryRequest::was_refused(message) == Again::WithoutMedia;
    let overflow = if is_refused { Overflow::Yes } else { Overflow::No };
    !matches!(plan.then, Then::GoOn(_)) || extensions.auto_continue(about, overflow).await
}

fn model_request(
    session: &Session,
    agent: &codewright_config::AgentSpec,
    model: &Model,
    prompt: String,
) -> Request {
    let ours = agent.prompt.as_deref().unwrap_or(prompts::COMPACTION).trim_end().to_owned();
    let user = |text: String| Sent::User(vec![UserContent::Text(text)]);
    // The ChatGPT server accepts only its own agent's instructions, so ours are sent as a user message.
    let (system, messages) = if model.is_codex() {
        (prompts::Family::Codex.prompt(&|_| false), vec![user(format!("{ours}\n\n{prompt}"))])
    } else {
        (ours, vec![user(prompt)])
    };
    let mut options = family::options(model);
    merge(&mut options, &agent.options);
    Request {
        system,
        messages,
        max_output_tokens: request::max_output_tokens(model),
        temperature: agent.temperature.filter(|_| model.capabilities.temperature),
        top_p: agent.top_p,
        headers: request::session_headers(session),
        options,
        ..Request::default()
    }
}

/// Stores the end of the summary and the continuation in one transaction, so that no prompt is lost between them.
async fn finish(
    inner: &Arc<Inner>,
    lease: &Lease,
    request: SummaryRequest<'_>,
    mut recorder: Recorder,
    files: &Files,
) -> Result<(), Error> {
    let done = files.close().await;
    recorder.began_with(files.first());
    flush(lease, inner, &mut recorder).await?;
    let (id, message) = (recorder.message().session_id.clone(), recorder.message().id.clone());
    let written = inner.store.message(&id, &message).await?;
    let length = |part: &Part| match &part.body {
        PartBody::Text(text) => text.text.trim().len(),
        _ => 0,
    };
    let bytes: usize = written.iter().flat_map(|written| &written.parts).map(length).sum();
    let is_unasked = plan::marker(request.message) == Some(true);
    // A requested summary may be longer than a short conversation; an automatic one must make room.
    let problem = match bytes {
        0 => Some("the model gave no summary"),
        _ if is_unasked && bytes >= request.bytes => Some("the summary is no shorter than the conversation"),
        _ => None,
    };
    if let Some(problem) = problem {
        let message = problem.to_owned();
        return fail(lease, inner, recorder, MessageError::UnknownError { message, reference: None }).await;
    }
    let cost = cost(request.model, &recorder.message().tokens);
    recorder.finish(cost, None, done);
    let mut events = Vec::new();
    for record in recorder.take() {
        match record {
            Record::Event(event) => events.push(event),
            Record::Signal(signal) => inner.store.signal(signal),
        }
    }
    events.extend(keep_tail(inner, request.message, request.plan));
    if request.goes_on {
        let again = SummaryRequest::was_refused(request.message);
        events.extend(next_prompt(inner, &id, &request.plan.then, again));
    }
    lease.append(events).await?;
    inner.store.signal(Signal::SessionCompacted { session_id: id.clone() });
    account(inner, &id, &recorder.message().tokens, cost).await
}

/// The request for a summary, with its plan, its model and its input size.
struct SummaryRequest<'a> {
    message: &'a MessageWithParts,
    plan: &'a Plan<'a>,
    model: &'a Model,
    bytes: usize,
    /// Whether the turn continues.
    goes_on: bool,
}

/// Returns the file summary of a request for a summary, which has changed no file.
fn without_changes(prompt: &UserMessage) -> Event {
    let summary = prompt.summary.clone().unwrap_or_default();
    let info = Message::User(UserMessage { summary: Some(summary), ..prompt.clone() });
    Event::MessageUpdated { session_id: prompt.session_id.clone(), info }
}

/// Records the messages that are kept with the request for a summary.
fn keep_tail(inner: &Inner, request: &MessageWithParts, plan: &Plan<'_>) -> Option<Event> {
    let tail = plan.tail?;
    let mut part =
        request.parts.iter().find(|part| matches!(part.body, PartBody::Compaction { .. }))?.clone();
    if let PartBody::Compaction { tail_start_id, .. } = &mut part.body {
        *tail_start_id = Some(tail.clone());
    }
    Some(Event::PartUpdated { session_id: part.session_id.clone(), part, time: inner.clock.now_ms() })
}

/// How a prompt is repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Again {
    Whole,
    /// Images and documents may be the reason for the length, so they are only named.
    WithoutMedia,
}

impl SummaryRequest<'_> {
    fn was_refused(message: &MessageWithParts) -> Again {
        let refused = message
            .parts
            .iter()
            .any(|part| matches!(part.body, PartBody::Compaction { overflow: Some(true), .. }));
        if refused { Again::WithoutMedia } else { Again::Whole }
    }
}

/// Returns a part of a repeated prompt.
fn given_again(part: &Part, again: Again) -> PartBody {
    match &part.body {
        PartBody::File { mime, filename, .. }
            if again == Again::WithoutMedia
                && !mime.starts_with("text/")
                && mime != "application/x-directory" =>
        {
            let name = filename.as_deref().unwrap_or("file");
            let text = format!("[Attached {mime}: {name}]");
            PartBody::Text(TextPart { text: text.into(), synthetic: Some(true), ..TextPart::default() })
        }
        body => body.clone(),
    }
}

fn next_prompt(inner: &Inner, id: &SessionId, then: &Then<'_>, again: Again) -> Vec<Event> {
    match then {
        Then::Rest => Vec::new(),
        Then::GoOn(prompt) => {
            let message = user_message(inner, id, &prompt.agent, prompt.model.clone());
            let message =
                UserMessage { tools: prompt.tools.clone(), system: prompt.system.clone(), ..message };
            let now = inner.clock.now_ms();
            let text = TextPart {
                text: GO_ON.into(),
                synthetic: Some(true),
                time: Some(Span { start: now, end: Some(now) }),
                // Clients hide parts with this mark.
                metadata: Some(json!({"compaction_continue": true})),
                ..TextPart::default()
            };
            message::prompted(inner, message, [(None, PartBody::Text(text))])
        }
        Then::Repeat(prompt) => {
            let Message::User(info) = &prompt.info else { return Vec::new() };
            let time = CreatedTime { created: inner.clock.now_ms() };
            let message = UserMessage { id: inner.ids.message(), time, summary: None, ..info.clone() };
            let parts = prompt.parts.iter().map(|part| (None, given_again(part, again)));
            message::prompted(inner, message, parts)
        }
    }
}
