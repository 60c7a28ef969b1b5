//! A prompt of an editor: one turn.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use agent_client_protocol::Error;
use agent_client_protocol::v1::schema::{
    ContentBlock, Cost, Meta, PromptResponse, SessionUpdate, StopReason, Usage, UsageUpdate,
};
use codewright_client::{Client, slash_command};
use codewright_proto::{
    AssistantMessage, CommandInput, Message, MessageError, MessageWithParts, PartInput, PromptInput,
    SummarizeInput,
};
use serde_json::Value;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::agent::{Agent, INTERNAL_ERROR, failed, invalid};
use crate::content;
use crate::session::Session;
use crate::update;

/// The command that summarizes the conversation.
pub(crate) const COMPACT: &str = "compact";
/// How long a turn may take to end after it was cancelled.
const STOP_DEADLINE: Duration = Duration::from_secs(10);
/// The interval between two attempts to cancel a turn. A prompt that is not stored yet cannot be cancelled.
const CANCEL_EVERY: Duration = Duration::from_millis(100);

/// Runs a prompt to its end.
pub(crate) async fn run(
    agent: &Arc<Agent>,
    session: &Arc<Session>,
    blocks: Vec<ContentBlock>,
) -> Result<PromptResponse, Error> {
    let parts = content::parts(blocks).map_err(invalid)?;
    if parts.is_empty() {
        return Err(invalid("the prompt is empty"));
    }
    let _turn = session.turn.lock().await;
    let cancel = CancellationToken::new();
    session.live().begin_turn(cancel.clone());
    let ended = until_cancelled(session, &cancel, send(session, parts)).await;
    let response = match ended {
        Ok(Some(message)) => {
            session.caught_up(id_of(&message.info)).await;
            show_changes(agent, session, &message.info).await;
            respond(agent, session, &message.info).await
        }
        Ok(None) => Ok(PromptResponse::new(StopReason::EndTurn)),
        Err(Ended::Cancelled) => Ok(PromptResponse::new(StopReason::Cancelled)),
        Err(Ended::Failed(error)) => Err(error),
    };
    session.live().cancel = None;
    response
}

/// Shows the files that commands of the turn changed, as a call of its own, because no other call contains them.
async fn show_changes(agent: &Agent, session: &Session, message: &Message) {
    let (Message::Assistant(answer), files) = (message, session.live().unshown()) else { return };
    if files.is_empty() {
        return;
    }
    // Without the differences the editor misses these files in its list, and nothing else.
    let Ok(diffs) = session.client.diff(&session.id, Some(&answer.parent_id)).await else { return };
    if let Some((call, update)) = update::command_changes(answer.id.as_str(), &files, &diffs) {
        agent.update(&session.id, SessionUpdate::ToolCall(call));
        agent.update(&session.id, SessionUpdate::ToolCallUpdate(update));
    }
}

/// Why a turn has no answer.
enum Ended {
    Cancelled,
    Failed(Error),
}

/// Waits for a turn. If it is cancelled, it is aborted, and its end is awaited, but not for long.
async fn until_cancelled<T>(
    session: &Session,
    cancel: &CancellationToken,
    turn: impl Future<Output = Result<T, Error>>,
) -> Result<T, Ended> {
    let mut turn = std::pin::pin!(turn);
    tokio::select! {
        ended = turn.as_mut() => return ended.map_err(Ended::Failed),
        () = cancel.cancelled() => {}
    }
    let abort = async {
        loop {
            // If this fails, the next attempt may succeed.
            drop(session.client.abort(&session.id).await);
            sleep(CANCEL_EVERY).await;
        }
    };
    let stopped = async {
        tokio::select! {
            ended = turn => ended,
            never = abort => never,
        }
    };
    match timeout(STOP_DEADLINE, stopped).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(_)) | Err(_) => Err(Ended::Cancelled),
    }
}

/// Sends a prompt, or runs the command that it names.
async fn send(session: &Session, parts: Vec<PartInput>) -> Result<Option<MessageWithParts>, Error> {
    let (client, id) = (&session.client, &session.id);
    let choice = session.choice();
    let Some((command, arguments)) = command(client, &parts).await? else {
        let model = choice.prompt_model();
        let input = PromptInput {
            variant: model.is_none().then(|| choice.variant.clone()).flatten(),
            model,
            // The editor's user selected it: the client never guesses a provider without a key.
            chosen: Some(true),
            agent: choice.mode,
            parts,
            ..PromptInput::default()
        };
        return client.prompt(id, &input).await.map(Some).map_err(failed);
    };
    if command == COMPACT {
        let Some(model) = session.choice().prompt_model() else {
            return Err(invalid("choose a model before the conversation is summarized"));
        };
        let input =
            SummarizeInput { provider_id: model.provider_id, model_id: model.model_id, auto: Some(false) };
        return client.summarize(id, &input).await.map(|_| None).map_err(failed);
    }
    let input = CommandInput {
        command,
        arguments,
        agent: choice.mode,
        model: choice.model,
        chosen: Some(true),
        variant: choice.variant,
        parts: parts.into_iter().filter(|part| matches!(part, PartInput::File { .. })).collect(),
        ..CommandInput::default()
    };
    client.command(id, &input).await.map(Some).map_err(failed)
}

/// The command and its arguments, if the prompt begins with the name of one.
///
/// # Errors
///
/// Fails if there is no such command: the name would be sent to the model.
async fn command(client: &Client, parts: &[PartInput]) -> Result<Option<(String, String)>, Error> {
    let Some(PartInput::Text { text, .. }) = parts.first() else { return Ok(None) };
    let Some((name, arguments)) = slash_command(text.trim_end()) else { return Ok(None) };
    // If the commands cannot be read, neither can the prompt be sent.
    let commands = client.commands().await.map_err(failed)?;
    let is_known = commands.as_array().into_iter().flatten().any(|command| command["name"] == name);
    if is_known || name == COMPACT {
        return Ok(Some((name.to_owned(), arguments.to_owned())));
    }
    Err(invalid(format!("unknown command `/{name}`; to send this text as a prompt, begin it with a space")))
}

fn id_of(message: &Message) -> &codewright_proto::MessageId {
    match message {
        Message::User(message) => &message.id,
        Message::Assistant(message) => &message.id,
    }
}

/// Reports the usage, and why the turn ended.
async fn respond(agent: &Agent, session: &Session, message: &Message) -> Result<PromptResponse, Error> {
    let Message::Assistant(message) = message else { return Ok(PromptResponse::new(StopReason::EndTurn)) };
    let reason = reason(message)?;
    let tokens = &message.tokens;
    let input = tokens.input + tokens.cache.read + tokens.cache.write;
    let output = tokens.output + tokens.reasoning;
    if let Ok(info) = session.client.session(&session.id).await {
        let size = session.menu.context(&session.choice());
        let usage = UsageUpdate::new(input, size).cost(Cost::new(info.cost, "USD"));
        agent.update(&session.id, SessionUpdate::UsageUpdate(usage));
    }
    let usage = Usage::new(input + output, input, output);
    Ok(PromptResponse::new(reason).usage(usage).meta(Meta::new()))
}

fn reason(message: &AssistantMessage) -> Result<StopReason, Error> {
    match &message.error {
        None if message.finish.as_deref() == Some("length") => Ok(StopReason::MaxTokens),
        None => Ok(StopReason::EndTurn),
        Some(MessageError::MessageAbortedError { .. }) => Ok(StopReason::Cancelled),
        Some(MessageError::MessageOutputLengthError {}) => Ok(StopReason::MaxTokens),
        Some(MessageError::ContentFilterError { .. }) => Ok(StopReason::Refusal),
        Some(MessageError::ProviderAuthError { message, .. }) => {
            Err(Error::auth_required().data(Value::String(message.clone())))
        }
        Some(other) => Err(Error::new(INTERNAL_ERROR, other.message())),
    }
}
