//! Sends prompts, answers and changes to the server.

use std::collections::BTreeMap;
use std::time::Duration;

use codewright_client::{Client, Error};
use codewright_proto::{
    CommandInput, MessageId, PermissionAnswer, PermissionId, PromptInput, QuestionAnswers, QuestionId,
    RevertInput, Rule, Session, SessionId, SessionInput, SessionPatch, ShellInput, SummarizeInput,
    TrustDismissal, TrustInput, UnrevertInput, WorktreeCreateInput,
};
use serde_json::Value;
use tokio::sync::mpsc;

use super::{describe, failure, load, reply};
use crate::msg::{Msg, Reply};
use crate::prompt::Draft;

/// The number of attempts to move a session to a worktree whose files are being created.
const MOVE_ATTEMPTS: usize = 120;
/// The pause between them.
const MOVE_PAUSE: Duration = Duration::from_millis(250);

/// The input of a turn.
pub(super) enum Input {
    Prompt(Box<PromptInput>),
    Command(Box<CommandInput>),
    Shell(Box<ShellInput>),
}

/// The session of a turn, or a new one, and the permission rules that it gets first.
pub(super) struct Target {
    pub(super) session: Option<SessionId>,
    pub(super) rules: Vec<Rule>,
}

/// Sends a prompt, to a new session if it has no session yet.
pub(super) async fn send(
    client: &Client,
    target: Target,
    input: Input,
    draft: Draft,
    sender: &mpsc::Sender<Msg>,
) -> Option<Reply> {
    match try_send(client, target, input, sender).await {
        Ok(()) => None,
        Err(error) => Some(Reply::Unsent { draft, error: describe(&error) }),
    }
}

async fn try_send(
    client: &Client,
    Target { session, rules }: Target,
    input: Input,
    sender: &mpsc::Sender<Msg>,
) -> Result<(), Error> {
    let rules = Some(rules).filter(|rules| !rules.is_empty());
    let session = match session {
        Some(session) => {
            if rules.is_some() {
                let patch = SessionPatch { permission: rules, ..SessionPatch::default() };
                client.update_session(&session, &patch).await?;
            }
            session
        }
        None => {
            let input = SessionInput { permission: rules, ..SessionInput::default() };
            let session = client.create_session(&input).await?;
            let id = session.id.clone();
            drop(sender.send(Msg::Reply(Reply::Opened(Box::new(session)))).await);
            id
        }
    };
    match input {
        Input::Prompt(input) => client.prompt_async(&session, &input).await,
        Input::Command(input) => client.command(&session, &input).await.map(drop),
        Input::Shell(input) => client.shell(&session, &input).await,
    }
}

pub(super) async fn abort(client: &Client, session: &SessionId) -> Option<Reply> {
    client.abort(session).await.err().and_then(|error| failure("cannot abort the turn", &error))
}

pub(super) async fn set_rules(client: &Client, session: &SessionId, rules: Vec<Rule>) -> Option<Reply> {
    let patch = SessionPatch { permission: Some(rules), ..SessionPatch::default() };
    updated_session(client.update_session(session, &patch).await, "cannot change the permission mode")
}

/// Removes a prompt that waits. The server refuses that if the model has read it.
pub(super) async fn take_back(
    client: &Client,
    session: &SessionId,
    message: &MessageId,
    draft: Draft,
) -> Option<Reply> {
    let removed = client.remove_message(session, message).await;
    reply(removed, "cannot take the prompt back", |_| Reply::TakenBack(draft))
}

pub(super) async fn reply_permission(
    client: &Client,
    id: &PermissionId,
    answer: &PermissionAnswer,
) -> Option<Reply> {
    reply_failure(client.reply_permission(id, answer).await)
}

pub(super) async fn reply_question(
    client: &Client,
    id: &QuestionId,
    answers: Vec<Vec<String>>,
) -> Option<Reply> {
    reply_failure(client.reply_question(id, &QuestionAnswers { answers }).await)
}

pub(super) async fn reject_question(client: &Client, id: &QuestionId) -> Option<Reply> {
    reply_failure(client.reject_question(id).await)
}

/// Returns the failure of a reply. If the request is not found, another client has replied or the turn has
/// ended, which is not a failure.
fn reply_failure(result: Result<bool, Error>) -> Option<Reply> {
    let error = result.err().filter(|error| !error.is_not_found())?;
    failure("cannot send the reply", &error)
}

pub(super) async fn rename(client: &Client, session: &SessionId, title: String) -> Option<Reply> {
    let patch = SessionPatch { title: Some(title), ..SessionPatch::default() };
    updated_session(client.update_session(session, &patch).await, "cannot rename the session")
}

pub(super) async fn delete(client: &Client, session: &SessionId) -> Option<Reply> {
    let deleted = client.delete_session(session).await;
    reply(deleted, "cannot delete the session", |_| Reply::Done("session deleted".to_owned()))
}

pub(super) async fn fork(client: &Client, session: &SessionId, until: Option<&MessageId>) -> Option<Reply> {
    let fork = client.fork(session, until).await;
    reply(fork, "cannot fork the session", |session| Reply::Opened(Box::new(session)))
}

pub(super) async fn revert(client: &Client, session: &SessionId, message: MessageId) -> Option<Reply> {
    let input = RevertInput { message_id: message, part_id: None, force: None };
    updated_session(client.revert(session, &input).await, "cannot undo the prompt")
}

pub(super) async fn unrevert(client: &Client, session: &SessionId) -> Option<Reply> {
    let unreverted = client.unrevert(session, &UnrevertInput::default()).await;
    updated_session(unreverted.map(|(session, _)| session), "cannot redo")
}

pub(super) async fn compact(
    client: &Client,
    session: &SessionId,
    provider: String,
    model: String,
) -> Option<Reply> {
    let input = SummarizeInput { provider_id: provider, model_id: model, auto: None };
    let error = client.summarize(session, &input).await.err()?;
    failure("cannot compact the session", &error)
}

pub(super) async fn put_key(
    client: &Client,
    provider: &str,
    key: &str,
    inputs: &BTreeMap<String, String>,
) -> Option<Reply> {
    match client.put_key(provider, key, inputs).await {
        Ok(_) => {
            // A server that cannot check it has stored it all the same.
            let check = client.verify_credential(provider).await.unwrap_or_default();
            load::connected(client, provider, check).await
        }
        Err(error) => failure("cannot store the key", &error),
    }
}

pub(super) async fn begin_sign_in(
    client: &Client,
    provider: String,
    method: usize,
    inputs: &BTreeMap<String, String>,
) -> Option<Reply> {
    let authorization = client.begin_sign_in(&provider, method, inputs).await;
    reply(authorization, "cannot start the sign-in", |authorization| Reply::SignIn {
        provider,
        method,
        authorization,
    })
}

pub(super) async fn finish_sign_in(
    client: &Client,
    provider: &str,
    method: usize,
    code: Option<&str>,
) -> Option<Reply> {
    match client.finish_sign_in(provider, method, code).await {
        // The provider has just made the credential, so it is not checked.
        Ok(_) => load::connected(client, provider, Value::Null).await,
        Err(error) => failure("the sign-in failed", &error),
    }
}

pub(super) async fn switch_mcp(client: &Client, name: &str, on: bool) -> Option<Reply> {
    match client.switch_mcp(name, on).await {
        Ok(_) => load::servers(client).await,
        Err(error) => failure(&format!("cannot connect or disconnect the MCP server `{name}`"), &error),
    }
}

pub(super) async fn begin_mcp_sign_in(client: &Client, name: String) -> Option<Reply> {
    let page = client.begin_mcp_sign_in(&name).await;
    reply(page, &format!("cannot sign in to the MCP server `{name}`"), |page| {
        let url = page["authorizationUrl"].as_str().unwrap_or_default().to_owned();
        Reply::McpSignIn { name: name.clone(), url }
    })
}

pub(super) async fn finish_mcp_sign_in(client: &Client, name: &str, code: &str) -> Option<Reply> {
    match client.finish_mcp_sign_in(name, code).await {
        Ok(_) => load::servers(client).await,
        Err(error) => failure(&format!("the sign-in to the MCP server `{name}` failed"), &error),
    }
}

pub(super) async fn move_session(client: &Client, session: &SessionId, directory: &str) -> Option<Reply> {
    let moved = async {
        client.move_session(session, directory).await?;
        client.session(session).await
    };
    reply(moved.await, "cannot move the session", |session| Reply::Moved(Box::new(session)))
}

/// Creates a worktree and moves a session there. The server refuses the move until the files exist.
pub(super) async fn move_to_new(client: &Client, session: &SessionId, name: String) -> Option<Reply> {
    let input = WorktreeCreateInput { name: Some(name), start_command: None };
    let worktree = match client.create_worktree(&input).await {
        Ok(worktree) => worktree,
        Err(error) => return failure("cannot create the worktree", &error),
    };
    let mut moved = client.move_session(session, &worktree.directory).await;
    for _ in 0..MOVE_ATTEMPTS {
        if moved.is_ok() {
            break;
        }
        tokio::time::sleep(MOVE_PAUSE).await;
        moved = client.move_session(session, &worktree.directory).await;
    }
    match moved {
        Ok(()) => move_session(client, session, &worktree.directory).await,
        Err(error) => {
            let problem = format!("the worktree `{}` was created, but the session not moved", worktree.name);
            failure(&problem, &error)
        }
    }
}

pub(super) async fn decide_trust(client: &Client, directory: String, input: &TrustInput) -> Option<Reply> {
    let client = client.in_directory(&directory);
    let answer = match client.decide_trust(input).await {
        Ok(reply) => Ok(reply),
        Err(error) => Err((describe(&error), client.trust().await.ok())),
    };
    Some(Reply::TrustDecided { directory, decision: input.decision, answer })
}

pub(super) async fn dismiss_trust(
    client: &Client,
    directory: String,
    dismissal: &TrustDismissal,
) -> Option<Reply> {
    let is_noted = client.in_directory(&directory).dismiss_trust(dismissal).await.is_ok();
    Some(Reply::TrustDismissed { directory, is_noted })
}

fn updated_session(result: Result<Session, Error>, problem: &str) -> Option<Reply> {
    reply(result, problem, |session| Reply::Session(Box::new(session)))
}
