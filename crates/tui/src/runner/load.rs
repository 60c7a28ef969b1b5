//! Fetches data from the server.

use codewright_client::{Client, Error, SessionQuery};
use codewright_proto::SessionId;
use serde_json::Value;

use super::{describe, failure, reply};
use crate::msg::{Reply, StartData};
use crate::review::{Change, Source};
use crate::state::First;

/// The number of messages in a page.
const PAGE: usize = 100;
/// The number of context lines around a change.
const CONTEXT_LINES: u32 = 12;
/// The maximum number of listed sessions.
const MAX_SESSIONS: usize = 200;
/// The maximum number of found files.
const MAX_FILES: usize = 30;

/// Fetches the data of the directory. Failed requests are reported, and the other data is used.
pub(super) async fn start(client: &Client) -> StartData {
    let mut started = StartData::default();
    let query = SessionQuery { limit: Some(MAX_SESSIONS), ..SessionQuery::default() };
    let (path, config, agents, providers, commands, sessions, statuses, permissions, questions, branch) = tokio::join!(
        client.path(),
        client.config(),
        client.agents(),
        client.providers(),
        client.commands(),
        client.sessions(&query),
        client.statuses(),
        client.permissions(),
        client.questions(),
        client.vcs(),
    );
    let errors = &mut started.failed;
    started.path = ok_or_report(path, errors);
    started.config = ok_or_report(config, errors);
    started.agents = ok_or_report(agents, errors);
    started.providers = ok_or_report(providers, errors);
    started.commands = ok_or_report(commands, errors);
    started.sessions = ok_or_report(sessions, errors);
    started.statuses = ok_or_report(statuses, errors);
    started.permissions = ok_or_report(permissions, errors);
    started.questions = ok_or_report(questions, errors);
    started.branch = ok_or_report(branch, errors).map(|vcs| vcs.branch);
    started
}

fn ok_or_report<T>(result: Result<T, Error>, errors: &mut Vec<String>) -> Option<T> {
    match result {
        Ok(value) => Some(value),
        Err(error) => {
            errors.push(describe(&error));
            None
        }
    }
}

/// Returns the session of the options, or its fork.
pub(super) async fn open_first(client: &Client, first: First) -> Option<Reply> {
    let (found, fork) = match first {
        First::Home => return None,
        First::Last { fork } => (client.last_session().await, fork),
        First::Session { id, fork } => {
            let Ok(id) = SessionId::parse(&id) else {
                return Some(Reply::Failed(format!("no session with id `{id}`")));
            };
            (client.session(&id).await.map(Some), fork)
        }
    };
    match found {
        Ok(None) => Some(Reply::Failed("there is no session to continue in this directory".to_owned())),
        Ok(Some(session)) if fork => super::change::fork(client, &session.id, None).await,
        Ok(Some(session)) => Some(Reply::Opened(Box::new(session))),
        Err(error) => failure("cannot open the session", &error),
    }
}

pub(super) async fn messages(client: &Client, session: SessionId) -> Option<Reply> {
    match client.messages_page(&session, PAGE, None).await {
        Ok((messages, older)) => Some(Reply::Messages { session, messages, older }),
        Err(error) => fetch_failure(session, &error),
    }
}

pub(super) async fn older_messages(client: &Client, session: SessionId, before: &str) -> Option<Reply> {
    match client.messages_page(&session, PAGE, Some(before)).await {
        Ok((messages, older)) => Some(Reply::Older { session, messages, older }),
        Err(error) => fetch_failure(session, &error),
    }
}

fn fetch_failure(session: SessionId, error: &Error) -> Option<Reply> {
    Some(Reply::Unfetched { session, error: format!("cannot fetch the messages: {}", describe(error)) })
}

pub(super) async fn todos(client: &Client, session: SessionId) -> Option<Reply> {
    let todos = client.todos(&session).await;
    reply(todos, "cannot fetch the to-do list", |todos| Reply::Todos { session, todos })
}

pub(super) async fn session(client: &Client, session: &SessionId) -> Option<Reply> {
    let session = client.session(session).await;
    reply(session, "cannot fetch the session", |session| Reply::Session(Box::new(session)))
}

/// Searches the sessions. If the search fails, the list does not change.
pub(super) async fn sessions(client: &Client, search: String) -> Option<Reply> {
    let search = Some(search).filter(|search| !search.is_empty());
    let query = SessionQuery { limit: Some(MAX_SESSIONS), roots: true, search, ..SessionQuery::default() };
    client.sessions(&query).await.ok().map(Reply::Sessions)
}

pub(super) async fn all_providers(client: &Client) -> Option<Reply> {
    match client.all_providers().await {
        Ok(providers) => {
            // A key can be stored without the sign-in methods.
            let methods = client.sign_in_methods().await.unwrap_or_default();
            Some(Reply::AllProviders { providers, methods })
        }
        Err(error) => failure("cannot fetch the providers", &error),
    }
}

pub(super) async fn skills(client: &Client) -> Option<Reply> {
    reply(client.skills().await, "cannot fetch the skills", Reply::Skills)
}

/// Fetches the changes in git.
pub(super) async fn changes(client: &Client, source: Source) -> Option<Reply> {
    let mode = if source == Source::Branch { "branch" } else { "git" };
    let changes = client.vcs_diff(mode, CONTEXT_LINES).await;
    let changes = changes.map(|files| files.into_iter().map(Change::from).collect());
    Some(Reply::Changes { source, changes: changes.map_err(|error| describe(&error)) })
}

/// Searches files. If the search fails, no files are offered.
pub(super) async fn files(client: &Client, query: String) -> Option<Reply> {
    let files = client.find_files(&query, MAX_FILES).await.unwrap_or_default();
    Some(Reply::Files { query, files })
}

/// Searches symbols. If the search fails, none are offered.
pub(super) async fn symbols(client: &Client, query: String) -> Option<Reply> {
    let symbols = client.find_symbols(&query).await.unwrap_or_default();
    Some(Reply::Symbols { query, symbols })
}

/// Fetches the trust of a directory. Servers of other versions do not have this route, and the client works
/// without it.
pub(super) async fn trust(client: &Client, directory: String) -> Option<Reply> {
    let reply = client.in_directory(&directory).trust().await.ok();
    Some(Reply::Trust { directory, reply })
}

/// Fetches the MCP servers, language servers and formatters.
pub(super) async fn servers(client: &Client) -> Option<Reply> {
    let (mcp, lsp, formatters) = tokio::join!(client.mcp(), client.lsp(), client.formatters());
    Some(Reply::Servers { mcp: mcp.ok(), lsp: lsp.ok(), formatters: formatters.ok() })
}

pub(super) async fn directories(client: &Client) -> Option<Reply> {
    let found = async {
        let project = client.project().await?;
        let directories = client.project_directories(project.id.as_str()).await?;
        Ok((directories, client.workspaces().await?))
    };
    match found.await {
        Ok((directories, workspaces)) => Some(Reply::Directories { directories, workspaces }),
        Err(error) => failure("cannot fetch the directories", &error),
    }
}

/// Checks that the server can open a directory.
pub(super) async fn follow(client: &Client, directory: String) -> Option<Reply> {
    let opened = client.in_directory(&directory).path().await;
    let problem = "cannot open the directory of the session; move the session to another one";
    reply(opened, problem, |path| Reply::Followed(path.directory))
}

/// Fetches the providers after a sign-in.
pub(super) async fn connected(client: &Client, provider: &str, check: Value) -> Option<Reply> {
    let provider = provider.to_owned();
    reply(client.providers().await, "cannot fetch the providers", |providers| Reply::Connected {
        provider,
        providers,
        check,
    })
}
