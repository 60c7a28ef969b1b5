//! Runs one step: one response of the model with the calls it makes.
//!
//! The step ends when the answer and all its calls have ended.

pub(crate) mod converse;
pub(crate) mod fail;
pub(crate) mod prepare;
pub(crate) mod store;

use std::sync::Arc;
use std::time::Duration;

use self::converse::{Attempt, answer};
use self::fail::{fail, give_up};
use self::prepare::{Preparing, Step, prepare};
use self::store::{account, cost, flush};
use codewright_proto::{Event, MessageError, MessagePath, MessageWithParts, Part, Signal, UserMessage};
use codewright_store::Lease;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::Error;
use crate::error::{describe, message_error};
use crate::extension;
use crate::inner::Inner;
use crate::instance::Instance;
use crate::lsp;
use crate::mcp;
use crate::permission::session::session_rules;
use crate::request::system::Surroundings;
use crate::run::compact::trigger::{Cause, request_summary};
use crate::run::context::Context;
use crate::run::files::{Files, tree_of_last_step};
use crate::run::prompt::last_prompt;
use crate::run::recorder::Recorder;
use crate::run::{compact, message, structured, summary};

/// How long an aborted turn waits for the step's file changes.
const FILES_GRACE: Duration = Duration::from_millis(40);
/// Runs one step.
pub(crate) async fn step(
    inner: &Arc<Inner>,
    lease: &Lease,
    context: Context,
    transcript: Vec<MessageWithParts>,
    cancel: &CancellationToken,
) -> Result<(), Error> {
    let id = lease.session();
    let Some((prompt, _)) = last_prompt(&transcript) else { return Ok(()) };
    let prompt = prompt.clone();
    let instance = Arc::clone(&context.instance);
    let looking = cancel.child_token();
    let _looked = looking.clone().drop_guard();
    let known = tree_of_last_step(&transcript, inner.clock.now_ms());
    let files = Files::begin(&instance, &inner.tasks, looking, known);
    let message = message::answer(inner, instance.message_path(), &prompt, &prompt.agent, &prompt.model);
    let mut recorder = Recorder::new(inner.ids.clone(), inner.clock.clone(), message);
    flush(lease, inner, &mut recorder).await?;
    summary::keep(inner, &context, &transcript).await?;
    if super::title::is_wanted(&transcript) {
        super::title::start(inner, &instance, &context.session, &transcript);
    }
    let Some(instructions) = cancel.run_until_cancelled(instance.instructions(&inner.llm)).await else {
        return fail(lease, inner, recorder, MessageError::aborted()).await;
    };
    let rules = session_rules(inner, &instance, &context.session, &prompt.agent).await;
    let prepared = match rules {
        Ok(rules) => {
            // Servers that start must not delay the end of an aborted turn.
            cancel.run_until_cancelled(servers_ready(inner, &instance, &prompt)).await;
            let tree = cancel.run_until_cancelled(instance.file_tree(id, &rules)).await.flatten();
            let errors = lsp::host::errors(inner, &instance);
            let surroundings = &Surroundings { date: first_day(inner, &transcript), tree, errors };
            let (session, prompt, transcript) = (&context.session, &prompt, transcript.as_slice());
            let opening = cancel.run_until_cancelled(extension::open::ready(inner, &instance)).await;
            let extensions = &opening.unwrap_or_default();
            let cx = Preparing { inner, session, prompt, transcript, surroundings, extensions };
            // Boxed, because the future is large and most steps have no extensions.
            let prepared = Box::pin(prepare(instance, &cx, rules, instructions));
            match cancel.run_until_cancelled(prepared).await {
                Some(prepared) => prepared,
                None => return fail(lease, inner, recorder, MessageError::aborted()).await,
            }
        }
        Err(error) => Err(error),
    };
    let misses = structured::misses(&transcript, &prompt.id);
    let may_compact = prepared.as_ref().is_ok_and(|step| compact::may_follow(&step.instance, &transcript));
    drop(transcript);
    mcp::kept::keep(inner, &context.instance, &prompt).await;
    let step = match prepared {
        Ok(step) => Step { files: Some(files.clone()), ..step },
        Err(error) => return fail(lease, inner, recorder, unprepared(&error, &prompt)).await,
    };
    let end = answer(inner, lease, &step, &mut recorder, cancel).await?;
    // The session has these costs already, see `CallHost::complete`.
    recorder.charge(step.caller.side_cost());
    match end {
        Attempt::Answered => {
            let cost = cost(&step.model, &recorder.message().tokens);
            let error = given_up(&prompt, misses, &recorder);
            if let Some(error) = error.clone() {
                inner.store.signal(Signal::SessionError { session_id: Some(id.clone()), error });
            }
            let done = files.close().await;
            recorder.began_with(files.first());
            recorder.finish(cost, error, done);
            flush(lease, inner, &mut recorder).await?;
            account(inner, id, &recorder.message().tokens, cost).await
        }
        Attempt::Aborted => {
            leave_files(inner, &files, &mut recorder).await;
            give_up(lease, inner, recorder, MessageError::aborted()).await
        }
        // An unanswered request is not a failed answer: the prompt is repeated after a summary.
        Attempt::Failed(error @ codewright_llm::Error::Overflow { .. }) if may_compact => {
            let error = message_error(&error);
            inner.store.signal(Signal::SessionError { session_id: Some(id.clone()), error });
            recorder.close(None);
            flush(lease, inner, &mut recorder).await?;
            request_summary(inner, id, &prompt.agent, &prompt.model, Cause::Refused).await.map(drop)
        }
        Attempt::Failed(error) | Attempt::Silent(error) => {
            let mut known = message_error(&error);
            suggest(&step, &mut known);
            recorder.changed(files.close().await.patch);
            give_up(lease, inner, recorder, known).await
        }
    }
}

/// Waits for the servers of the directory, and reads what requests of the session contain about them.
async fn servers_ready(inner: &Arc<Inner>, instance: &Arc<Instance>, prompt: &UserMessage) {
    mcp::host::ready(inner, instance).await;
    mcp::kept::restore(inner, instance, prompt).await;
}

/// Returns the error of an answer whose request could not be built.
fn unprepared(error: &Error, prompt: &UserMessage) -> MessageError {
    let message = describe(error);
    match error {
        Error::UnknownModel { .. } | Error::NoProvider | Error::NoKey { .. } | Error::NotChosen { .. } => {
            MessageError::ProviderAuthError { provider_id: prompt.model.provider_id.clone(), message }
        }
        _ => MessageError::UnknownError { message, reference: None },
    }
}

/// Returns the date of the first prompt. It stands in the system text, because a new day must not change earlier content.
fn first_day(inner: &Inner, transcript: &[MessageWithParts]) -> String {
    let began_ms = transcript.first().map_or_else(|| inner.clock.now_ms(), |first| first.info.created());
    inner.zone.date(began_ms)
}

/// Records an aborted answer to a prompt that was aborted before its answer started, so that it is not answered again.
pub(crate) async fn stopped_early(
    inner: &Arc<Inner>,
    lease: &Lease,
    transcript: &[MessageWithParts],
) -> Result<(), Error> {
    ended_early(inner, lease, transcript, MessageError::aborted()).await
}

/// Records an answer to the last prompt that has only an error.
pub(crate) async fn ended_early(
    inner: &Arc<Inner>,
    lease: &Lease,
    transcript: &[MessageWithParts],
    error: MessageError,
) -> Result<(), Error> {
    let Some((prompt, _)) = last_prompt(transcript) else { return Ok(()) };
    let session = inner.session(lease.session()).await?;
    let instance = inner.instance(std::path::Path::new(&session.directory));
    let path = match tokio::time::timeout(FILES_GRACE, instance).await {
        Ok(Ok(instance)) => instance.message_path(),
        // Opening the directory may be the reason for the abort.
        Ok(Err(_)) | Err(_) => MessagePath { cwd: session.directory.clone(), root: session.directory },
    };
    let message = message::answer(inner, path, prompt, &prompt.agent, &prompt.model);
    let recorder = Recorder::new(inner.ids.clone(), inner.clock.clone(), message).without_steps();
    fail(lease, inner, recorder, error).await
}

/// Records the file changes of an aborted step. If that takes longer, they are recorded in the background.
pub(crate) async fn leave_files(inner: &Arc<Inner>, files: &Arc<Files>, recorder: &mut Recorder) {
    leave_files_after(inner, files, recorder, std::future::ready(())).await;
}

/// Does the same after other work, during which files can still change.
pub(crate) async fn leave_files_after(
    inner: &Arc<Inner>,
    files: &Arc<Files>,
    recorder: &mut Recorder,
    work: impl Future<Output = ()> + Send + 'static,
) {
    let (message, files) = (recorder.message(), files.clone());
    let (session_id, message_id) = (message.session_id.clone(), message.id.clone());
    let (found, patch) = oneshot::channel();
    let inner_ = inner.clone();
    inner.tasks.spawn(async move {
        work.await;
        let Some(patch) = files.close().await.patch else { return };
        let Err(patch) = found.send(patch) else { return };
        let part = Part { id: inner_.ids.part(), session_id: session_id.clone(), message_id, body: patch };
        let event = Event::PartUpdated { session_id, part, time: inner_.clock.now_ms() };
        // The session may have been deleted in the meantime.
        drop(inner_.store.append(vec![event]).await);
    });
    if let Ok(Ok(patch)) = tokio::time::timeout(FILES_GRACE, patch).await {
        recorder.changed(Some(patch));
    }
}

/// Returns the error of a step that used the last attempt at the requested value.
fn given_up(prompt: &UserMessage, misses: u32, recorder: &Recorder) -> Option<MessageError> {
    structured::requested_schema(prompt)?;
    let missed = recorder.has_refused_value() || !recorder.has_calls();
    if missed { structured::given_up(prompt, misses + 1) } else { None }
}

/// Adds similar model names to the error of a provider that does not know the model.
fn suggest(step: &Step, error: &mut MessageError) {
    if let MessageError::APIError { message, status_code: Some(404), .. } = error
        && message.to_lowercase().contains("model")
    {
        let nearest = step.instance.models.nearest(&step.model);
        if !nearest.is_empty() {
            message.push_str(&format!(" (did you mean {}?)", nearest.join(", ")));
        }
    }
}
