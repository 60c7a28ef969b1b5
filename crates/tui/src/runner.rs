//! Executes commands for the server in background tasks.
//!
//! The result of each command is sent to the main loop as a message. All tasks end with the client.

use std::io;
use std::time::Duration;

use codewright_client::{Client, Error, SessionQuery};
use codewright_proto::{
    QuestionAnswers, RevertInput, Session, SessionId, SessionInput, SessionPatch, SummarizeInput,
    UnrevertInput,
};
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};

use crate::clipboard;
use crate::msg::{Cmd, Msg, Reply, Started};
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
/// The pauses before the event stream is opened again, after one failure, two failures, and so on.
const RECONNECT_PAUSES: [Duration; 4] =
    [Duration::from_millis(200), Duration::from_secs(1), Duration::from_secs(2), Duration::from_secs(5)];
/// The maximum size of an edited text.
const MAX_WRITTEN_BYTES: u64 = 4 * 1024 * 1024;

pub(crate) struct Runner {
    client: Client,
    first: First,
    sender: mpsc::Sender<Msg>,
    tasks: JoinSet<()>,
    /// The running search. A newer search replaces it.
    search: Option<AbortHandle>,
}

impl Runner {
    pub(crate) fn new(client: Client, first: First, sender: mpsc::Sender<Msg>) -> Self {
        Self { client, first, sender, tasks: JoinSet::new(), search: None }
    }

    /// Starts receiving events, and reconnects when the connection breaks.
    pub(crate) fn watch(&mut self) {
        let (client, sender) = (self.client.clone(), self.sender.clone());
        self.tasks.spawn(watch(client, sender));
    }

    /// Starts a command.
    pub(crate) fn begin(&mut self, cmd: Cmd) {
        while self.tasks.try_join_next().is_some() {}
        let (client, first, sender) = (self.client.clone(), self.first.clone(), self.sender.clone());
        let replaces = matches!(cmd, Cmd::FindFiles(_) | Cmd::ListSessions { .. });
        if replaces && let Some(search) = self.search.take() {
            search.abort();
        }
        let handle = self.tasks.spawn(async move {
            if let Some(reply) = carry_out(&client, first, cmd, &sender).await {
                // Sending fails only if the client has ended.
                drop(sender.send(Msg::Reply(reply)).await);
            }
        });
        if replaces {
            self.search = Some(handle);
        }
    }

    /// Ends all tasks.
    pub(crate) async fn close(&mut self) {
        self.tasks.shutdown().await;
    }
}

async fn watch(client: Client, sender: mpsc::Sender<Msg>) {
    let mut failed = 0;
    loop {
        let why = match client.events().await {
            Ok(mut events) => {
                if sender.send(Msg::Connected).await.is_err() {
                    return;
                }
                failed = 0;
                loop {
                    match events.next().await {
                        Ok(Some(notice)) => {
                            if sender.send(Msg::Notice(Box::new(notice))).await.is_err() {
                                return;
                            }
                        }
                        Ok(None) => break "the server closed the connection".to_owned(),
                        Err(error) => break describe(&error),
                    }
                }
            }
            Err(error) => describe(&error),
        };
        if sender.send(Msg::Lost(why)).await.is_err() {
            return;
        }
        tokio::time::sleep(RECONNECT_PAUSES[failed.min(RECONNECT_PAUSES.len() - 1)]).await;
        failed += 1;
    }
}

/// Formats an error with its causes and its hint.
pub(crate) fn describe(error: &Error) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = error.source();
    }
    match error.hint() {
        Some(hint) => format!("{text}\n{hint}"),
        None => text,
    }
}

fn failed(problem: &str, error: &Error) -> Option<Reply> {
    Some(Reply::Failed(format!("{problem}: {}", describe(error))))
}

fn unfetched(session: SessionId, error: &Error) -> Option<Reply> {
    Some(Reply::Unfetched { session, error: format!("cannot fetch the messages: {}", describe(error)) })
}

async fn carry_out(client: &Client, first: First, cmd: Cmd, sender: &mpsc::Sender<Msg>) -> Option<Reply> {
    match cmd {
        Cmd::Start => Some(Reply::Started(Box::new(start(client).await))),
        Cmd::OpenFirst => open_first(client, first).await,
        Cmd::CopyToDesktop { text, via_terminal, desktops } => {
            Some(clipboard::copy(&text, via_terminal, &desktops).await)
        }
        Cmd::PasteFromDesktop(desktops) => Some(Reply::Pasted(clipboard::paste(&desktops).await)),
        Cmd::Send { .. } | Cmd::Command { .. } | Cmd::Shell { .. } => send(client, cmd, sender).await,
        Cmd::LoadMessages(_)
        | Cmd::LoadOlder { .. }
        | Cmd::LoadTodos(_)
        | Cmd::LoadSession(_)
        | Cmd::ListSessions { .. }
        | Cmd::LoadAllProviders
        | Cmd::LoadSkills
        | Cmd::LoadChanges(_)
        | Cmd::LoadServers
        | Cmd::LoadDirectories
        | Cmd::FindFiles(_) => load(client, cmd).await,
        Cmd::LoadTrust(_) | Cmd::DecideTrust { .. } | Cmd::DismissTrust { .. } => trust(client, cmd).await,
        Cmd::SwitchMcp { .. } | Cmd::Move { .. } | Cmd::Share(_) | Cmd::Unshare(_) => {
            change_elsewhere(client, cmd).await
        }
        other => change(client, other).await,
    }
}

/// Fetches the data of the directory. Failed requests are reported, and the other data is used.
async fn start(client: &Client) -> Started {
    let mut started = Started::default();
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

async fn open_first(client: &Client, first: First) -> Option<Reply> {
    let (found, fork) = match first {
        First::Home => return None,
        First::Last { fork } => {
            let query = SessionQuery { roots: true, limit: Some(1), ..SessionQuery::default() };
            (client.sessions(&query).await.map(|sessions| sessions.into_iter().next()), fork)
        }
        First::Session { id, fork } => {
            let Ok(id) = SessionId::parse(&id) else {
                return Some(Reply::Failed(format!("no session with id `{id}`")));
            };
            (client.session(&id).await.map(Some), fork)
        }
    };
    match found {
        Ok(None) => Some(Reply::Failed("there is no session to continue in this directory".to_owned())),
        Ok(Some(session)) if fork => match client.fork(&session.id, None).await {
            Ok(session) => Some(Reply::Opened(Box::new(session))),
            Err(error) => failed("cannot fork the session", &error),
        },
        Ok(Some(session)) => Some(Reply::Opened(Box::new(session))),
        Err(error) => failed("cannot open the session", &error),
    }
}

/// Sends a prompt, to a new session if it has no session yet.
async fn send(client: &Client, cmd: Cmd, sender: &mpsc::Sender<Msg>) -> Option<Reply> {
    let (session, draft) = match &cmd {
        Cmd::Send { session, draft, .. }
        | Cmd::Command { session, draft, .. }
        | Cmd::Shell { session, draft, .. } => (session.clone(), draft.clone()),
        _ => return None,
    };
    let unsent = |error: &Error| Some(Reply::Unsent { draft: draft.clone(), error: describe(error) });
    let session = match session {
        Some(session) => session,
        None => match client.create_session(&SessionInput::default()).await {
            Ok(session) => {
                let id = session.id.clone();
                drop(sender.send(Msg::Reply(Reply::Opened(Box::new(session)))).await);
                id
            }
            Err(error) => return unsent(&error),
        },
    };
    let sent = match &cmd {
        Cmd::Send { input, .. } => client.prompt_async(&session, input).await,
        Cmd::Command { input, .. } => client.command(&session, input).await.map(drop),
        Cmd::Shell { input, .. } => client.shell(&session, input).await,
        _ => return None,
    };
    match sent {
        Ok(()) => None,
        Err(error) => unsent(&error),
    }
}

async fn load(client: &Client, cmd: Cmd) -> Option<Reply> {
    match cmd {
        Cmd::LoadMessages(session) => match client.messages_page(&session, PAGE, None).await {
            Ok((messages, older)) => Some(Reply::Messages { session, messages, older }),
            Err(error) => unfetched(session, &error),
        },
        Cmd::LoadOlder { session, before } => {
            match client.messages_page(&session, PAGE, Some(&before)).await {
                Ok((messages, older)) => Some(Reply::Older { session, messages, older }),
                Err(error) => unfetched(session, &error),
            }
        }
        Cmd::LoadTodos(session) => match client.todos(&session).await {
            Ok(todos) => Some(Reply::Todos { session, todos }),
            Err(error) => failed("cannot fetch the to-do list", &error),
        },
        Cmd::LoadSession(session) => match client.session(&session).await {
            Ok(session) => Some(Reply::Session(Box::new(session))),
            Err(error) => failed("cannot fetch the session", &error),
        },
        Cmd::ListSessions { search } => {
            let search = Some(search).filter(|search| !search.is_empty());
            let query =
                SessionQuery { limit: Some(MAX_SESSIONS), roots: true, search, ..SessionQuery::default() };
            client.sessions(&query).await.ok().map(Reply::Sessions)
        }
        Cmd::LoadAllProviders => match client.all_providers().await {
            Ok(providers) => {
                // A key can be stored without the sign-in methods.
                let methods = client.sign_in_methods().await.unwrap_or_default();
                Some(Reply::AllProviders { providers, methods })
            }
            Err(error) => failed("cannot fetch the providers", &error),
        },
        Cmd::LoadSkills => match client.skills().await {
            Ok(value) => Some(Reply::Skills(value)),
            Err(error) => failed("cannot fetch the skills", &error),
        },
        Cmd::LoadServers => Some(servers(client).await),
        Cmd::LoadDirectories => directories(client).await,
        Cmd::LoadChanges(source) => {
            let changes = match source {
                Source::Branch => client.vcs_diff("branch", CONTEXT_LINES).await,
                _ => client.vcs_diff("git", CONTEXT_LINES).await,
            };
            let changes = changes.map(|files| files.into_iter().map(Change::from).collect());
            Some(Reply::Changes { source, changes: changes.map_err(|error| describe(&error)) })
        }
        // If the search fails, no files are offered.
        Cmd::FindFiles(query) => {
            let files = client.find_files(&query, MAX_FILES).await.unwrap_or_default();
            Some(Reply::Files { query, files })
        }
        _ => None,
    }
}

async fn change(client: &Client, cmd: Cmd) -> Option<Reply> {
    match cmd {
        Cmd::Abort(session) => match client.abort(&session).await {
            Ok(_) => None,
            Err(error) => failed("cannot abort the turn", &error),
        },
        // If the request is not found, another client has replied or the turn has ended.
        Cmd::Permission { id, answer } => match client.reply_permission(&id, &answer).await {
            Err(error) if !error.is_not_found() => failed("cannot send the reply", &error),
            _ => None,
        },
        Cmd::Question { id, answers } => match client.reply_question(&id, &QuestionAnswers { answers }).await
        {
            Err(error) if !error.is_not_found() => failed("cannot send the reply", &error),
            _ => None,
        },
        Cmd::RejectQuestion(id) => match client.reject_question(&id).await {
            Err(error) if !error.is_not_found() => failed("cannot send the reply", &error),
            _ => None,
        },
        Cmd::Rename { session, title } => {
            let patch = SessionPatch { title: Some(title), ..SessionPatch::default() };
            changed(client.update_session(&session, &patch).await, "cannot rename the session")
        }
        Cmd::Delete(session) => match client.delete_session(&session).await {
            Ok(_) => Some(Reply::Done("session deleted".to_owned())),
            Err(error) => failed("cannot delete the session", &error),
        },
        Cmd::Fork { session, until } => match client.fork(&session, until.as_ref()).await {
            Ok(session) => Some(Reply::Opened(Box::new(session))),
            Err(error) => failed("cannot fork the session", &error),
        },
        Cmd::Revert { session, message } => {
            let input = RevertInput { message_id: message, part_id: None, force: None };
            changed(client.revert(&session, &input).await, "cannot undo the prompt")
        }
        Cmd::Unrevert(session) => {
            let unreverted = client.unrevert(&session, &UnrevertInput::default()).await;
            changed(unreverted.map(|(session, _)| session), "cannot redo")
        }
        Cmd::Compact { session, provider, model } => {
            let input = SummarizeInput { provider_id: provider, model_id: model, auto: None };
            match client.summarize(&session, &input).await {
                Ok(_) => None,
                Err(error) => failed("cannot compact the session", &error),
            }
        }
        Cmd::PutKey { provider, key } => match client.put_key(&provider, &key).await {
            Ok(_) => providers(client).await,
            Err(error) => failed("cannot store the key", &error),
        },
        Cmd::BeginSignIn { provider, method, inputs } => {
            match client.begin_sign_in(&provider, method, &inputs).await {
                Ok(authorization) => Some(Reply::SignIn { provider, method, authorization }),
                Err(error) => failed("cannot start the sign-in", &error),
            }
        }
        Cmd::FinishSignIn { provider, method, code } => {
            match client.finish_sign_in(&provider, method, code.as_deref()).await {
                Ok(_) => providers(client).await,
                Err(error) => failed("the sign-in failed", &error),
            }
        }
        _ => None,
    }
}

/// Executes commands about MCP servers, directories and sharing.
async fn change_elsewhere(client: &Client, cmd: Cmd) -> Option<Reply> {
    match cmd {
        Cmd::SwitchMcp { name, on } => match client.switch_mcp(&name, on).await {
            Ok(_) => Some(servers(client).await),
            Err(error) => failed(&format!("cannot connect or disconnect the MCP server `{name}`"), &error),
        },
        Cmd::Move { session, directory } => match client.move_session(&session, &directory).await {
            Ok(()) => Some(Reply::Done(format!("session moved to {directory}"))),
            Err(error) => failed("cannot move the session", &error),
        },
        Cmd::Share(session) => match client.share(&session).await {
            Ok(session) => Some(Reply::Shared(Box::new(session))),
            Err(error) => failed("cannot share the session", &error),
        },
        Cmd::Unshare(session) => changed(client.unshare(&session).await, "cannot stop sharing"),
        _ => None,
    }
}

/// Executes commands about workspace trust.
async fn trust(client: &Client, cmd: Cmd) -> Option<Reply> {
    match cmd {
        Cmd::LoadTrust(directory) => {
            // Servers of other versions do not have this route. The client works without it.
            let reply = client.in_directory(&directory).trust().await.ok();
            Some(Reply::Trust { directory, reply })
        }
        Cmd::DecideTrust { directory, input } => {
            let client = client.in_directory(&directory);
            let answer = match client.decide_trust(&input).await {
                Ok(reply) => Ok(reply),
                Err(error) => Err((describe(&error), client.trust().await.ok())),
            };
            Some(Reply::TrustDecided { directory, decision: input.decision, answer })
        }
        Cmd::DismissTrust { directory, dismissal } => {
            let is_noted = client.in_directory(&directory).dismiss_trust(&dismissal).await.is_ok();
            Some(Reply::TrustDismissed { directory, is_noted })
        }
        _ => None,
    }
}

/// Fetches the MCP servers, language servers and formatters.
async fn servers(client: &Client) -> Reply {
    let (mcp, lsp, formatters) = tokio::join!(client.mcp(), client.lsp(), client.formatters());
    Reply::Servers { mcp: mcp.ok(), lsp: lsp.ok(), formatters: formatters.ok() }
}

async fn directories(client: &Client) -> Option<Reply> {
    let found = async {
        let project = client.project().await?;
        let directories = client.project_directories(project.id.as_str()).await?;
        Ok((directories, client.workspaces().await?))
    };
    match found.await {
        Ok((directories, workspaces)) => Some(Reply::Directories { directories, workspaces }),
        Err(error) => failed("cannot fetch the directories", &error),
    }
}

/// Fetches the providers after a sign-in.
async fn providers(client: &Client) -> Option<Reply> {
    match client.providers().await {
        Ok(value) => Some(Reply::Providers(value)),
        Err(error) => failed("cannot fetch the providers", &error),
    }
}

fn changed(result: Result<Session, Error>, problem: &str) -> Option<Reply> {
    match result {
        Ok(session) => Some(Reply::Session(Box::new(session))),
        Err(error) => failed(problem, &error),
    }
}

/// Opens a text in an editor and returns the edited text. The editor uses the terminal meanwhile.
pub(crate) async fn edit(editor: &str, text: &str) -> io::Result<String> {
    let file = tempfile::Builder::new().prefix("codewright-").suffix(".md").tempfile()?;
    std::fs::write(file.path(), text)?;
    let mut words = editor.split_whitespace();
    let program = words.next().ok_or_else(|| io::Error::other("no editor is configured"))?;
    let status = tokio::process::Command::new(program).args(words).arg(file.path()).status().await?;
    if !status.success() {
        return Err(io::Error::other(format!("it exited with {status}")));
    }
    if std::fs::metadata(file.path())?.len() > MAX_WRITTEN_BYTES {
        return Err(io::Error::other("the text is too long"));
    }
    std::fs::read_to_string(file.path())
}
