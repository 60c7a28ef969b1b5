//! Commands to the server, carried out beside the loop.
//!
//! What comes of each goes back as a message. All tasks belong to one set, which ends
//! with the client.

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

/// How many messages are fetched at once.
const PAGE: usize = 100;
/// How many lines around a change are shown.
const CONTEXT_LINES: u32 = 12;
/// How many sessions are listed.
const MAX_SESSIONS: usize = 200;
/// How many files are found.
const MAX_FILES: usize = 30;
/// How long is waited before the stream is opened again; the longer the more often it failed.
const PATIENCE: [Duration; 4] =
    [Duration::from_millis(200), Duration::from_secs(1), Duration::from_secs(2), Duration::from_secs(5)];
/// How long a written file of an editor may be.
const MAX_WRITTEN_BYTES: u64 = 4 * 1024 * 1024;

pub(crate) struct Runner {
    client: Client,
    first: First,
    sender: mpsc::Sender<Msg>,
    tasks: JoinSet<()>,
    /// The search that a newer one replaces.
    search: Option<AbortHandle>,
}

impl Runner {
    pub(crate) fn new(client: Client, first: First, sender: mpsc::Sender<Msg>) -> Self {
        Self { client, first, sender, tasks: JoinSet::new(), search: None }
    }

    /// Follows what happens on the server, and tries again when the connection breaks.
    pub(crate) fn watch(&mut self) {
        let (client, sender) = (self.client.clone(), self.sender.clone());
        self.tasks.spawn(watch(client, sender));
    }

    /// Begins a command.
    pub(crate) fn begin(&mut self, cmd: Cmd) {
        while self.tasks.try_join_next().is_some() {}
        let (client, first, sender) = (self.client.clone(), self.first.clone(), self.sender.clone());
        let replaces = matches!(cmd, Cmd::FindFiles(_) | Cmd::ListSessions { .. });
        if replaces && let Some(search) = self.search.take() {
            search.abort();
        }
        let handle = self.tasks.spawn(async move {
            if let Some(reply) = carry_out(&client, first, cmd, &sender).await {
                // The client has ended if nobody listens.
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
                        Ok(None) => break "the server has ended".to_owned(),
                        Err(error) => break told(&error),
                    }
                }
            }
            Err(error) => told(&error),
        };
        if sender.send(Msg::Lost(why)).await.is_err() {
            return;
        }
        tokio::time::sleep(PATIENCE[failed.min(PATIENCE.len() - 1)]).await;
        failed += 1;
    }
}

/// An error with its cause and what the user may try.
pub(crate) fn told(error: &Error) -> String {
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

fn failed(what: &str, error: &Error) -> Option<Reply> {
    Some(Reply::Failed(format!("{what}: {}", told(error))))
}

fn unfetched(session: SessionId, error: &Error) -> Option<Reply> {
    Some(Reply::Unfetched { session, error: format!("the messages could not be fetched: {}", told(error)) })
}

async fn carry_out(client: &Client, first: First, cmd: Cmd, sender: &mpsc::Sender<Msg>) -> Option<Reply> {
    match cmd {
        Cmd::Start => Some(Reply::Started(Box::new(start(client).await))),
        Cmd::OpenFirst => open_first(client, first).await,
        Cmd::CopyToDesk { text, handed, desks } => Some(clipboard::copy(&text, handed, &desks).await),
        Cmd::PasteFromDesk(desks) => Some(Reply::Pasted(clipboard::paste(&desks).await)),
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
        | Cmd::LoadPlaces
        | Cmd::FindFiles(_) => load(client, cmd).await,
        Cmd::LoadTrust(_) | Cmd::DecideTrust { .. } | Cmd::DismissTrust { .. } => trust(client, cmd).await,
        Cmd::SwitchMcp { .. } | Cmd::Move { .. } | Cmd::Share(_) | Cmd::Unshare(_) => {
            change_elsewhere(client, cmd).await
        }
        other => change(client, other).await,
    }
}

/// Fetches what the server has; what cannot be fetched is named, and the rest is shown.
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
    let wrong = &mut started.failed;
    started.path = kept(path, wrong);
    started.config = kept(config, wrong);
    started.agents = kept(agents, wrong);
    started.providers = kept(providers, wrong);
    started.commands = kept(commands, wrong);
    started.sessions = kept(sessions, wrong);
    started.statuses = kept(statuses, wrong);
    started.permissions = kept(permissions, wrong);
    started.questions = kept(questions, wrong);
    started.branch = kept(branch, wrong).map(|vcs| vcs.branch);
    started
}

fn kept<T>(result: Result<T, Error>, wrong: &mut Vec<String>) -> Option<T> {
    match result {
        Ok(value) => Some(value),
        Err(error) => {
            wrong.push(told(&error));
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
                return Some(Reply::Failed(format!("there is no session `{id}`")));
            };
            (client.session(&id).await.map(Some), fork)
        }
    };
    match found {
        Ok(None) => Some(Reply::Failed("there is no session to continue here".to_owned())),
        Ok(Some(session)) if fork => match client.fork(&session.id, None).await {
            Ok(session) => Some(Reply::Opened(Box::new(session))),
            Err(error) => failed("the session could not be forked", &error),
        },
        Ok(Some(session)) => Some(Reply::Opened(Box::new(session))),
        Err(error) => failed("the session could not be opened", &error),
    }
}

/// Sends what was written, to a new session if there is none yet.
async fn send(client: &Client, cmd: Cmd, sender: &mpsc::Sender<Msg>) -> Option<Reply> {
    let (session, draft) = match &cmd {
        Cmd::Send { session, draft, .. }
        | Cmd::Command { session, draft, .. }
        | Cmd::Shell { session, draft, .. } => (session.clone(), draft.clone()),
        _ => return None,
    };
    let unsent = |error: &Error| Some(Reply::Unsent { draft: draft.clone(), error: told(error) });
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
            Err(error) => failed("the list of things to do could not be fetched", &error),
        },
        Cmd::LoadSession(session) => match client.session(&session).await {
            Ok(session) => Some(Reply::Session(Box::new(session))),
            Err(error) => failed("the session could not be fetched", &error),
        },
        Cmd::ListSessions { search } => {
            let search = Some(search).filter(|search| !search.is_empty());
            let query =
                SessionQuery { limit: Some(MAX_SESSIONS), roots: true, search, ..SessionQuery::default() };
            client.sessions(&query).await.ok().map(Reply::Sessions)
        }
        Cmd::LoadAllProviders => match client.all_providers().await {
            Ok(providers) => {
                // Without these a key can be stored all the same.
                let methods = client.sign_in_methods().await.unwrap_or_default();
                Some(Reply::AllProviders { providers, methods })
            }
            Err(error) => failed("the providers could not be fetched", &error),
        },
        Cmd::LoadSkills => match client.skills().await {
            Ok(value) => Some(Reply::Skills(value)),
            Err(error) => failed("the skills could not be fetched", &error),
        },
        Cmd::LoadServers => Some(servers(client).await),
        Cmd::LoadPlaces => places(client).await,
        Cmd::LoadChanges(source) => {
            let changes = match source {
                Source::Branch => client.vcs_diff("branch", CONTEXT_LINES).await,
                _ => client.vcs_diff("git", CONTEXT_LINES).await,
            };
            let changes = changes.map(|files| files.into_iter().map(Change::from).collect());
            Some(Reply::Changes { source, changes: changes.map_err(|error| told(&error)) })
        }
        // Nothing is offered while files cannot be found.
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
            Err(error) => failed("the turn could not be stopped", &error),
        },
        // Somebody else was faster, or the turn has ended meanwhile.
        Cmd::Permission { id, answer } => match client.reply_permission(&id, &answer).await {
            Err(error) if !error.is_not_found() => failed("the answer was not taken", &error),
            _ => None,
        },
        Cmd::Question { id, answers } => match client.reply_question(&id, &QuestionAnswers { answers }).await
        {
            Err(error) if !error.is_not_found() => failed("the answer was not taken", &error),
            _ => None,
        },
        Cmd::RejectQuestion(id) => match client.reject_question(&id).await {
            Err(error) if !error.is_not_found() => failed("the answer was not taken", &error),
            _ => None,
        },
        Cmd::Rename { session, title } => {
            let patch = SessionPatch { title: Some(title), ..SessionPatch::default() };
            changed(client.update_session(&session, &patch).await, "the session could not be renamed")
        }
        Cmd::Delete(session) => match client.delete_session(&session).await {
            Ok(_) => Some(Reply::Done("the session was deleted".to_owned())),
            Err(error) => failed("the session could not be deleted", &error),
        },
        Cmd::Fork { session, until } => match client.fork(&session, until.as_ref()).await {
            Ok(session) => Some(Reply::Opened(Box::new(session))),
            Err(error) => failed("the session could not be forked", &error),
        },
        Cmd::Revert { session, message } => {
            let input = RevertInput { message_id: message, part_id: None, force: None };
            changed(client.revert(&session, &input).await, "the prompt could not be taken back")
        }
        Cmd::Unrevert(session) => {
            let unreverted = client.unrevert(&session, &UnrevertInput::default()).await;
            changed(unreverted.map(|(session, _)| session), "nothing could be taken forth again")
        }
        Cmd::Compact { session, provider, model } => {
            let input = SummarizeInput { provider_id: provider, model_id: model, auto: None };
            match client.summarize(&session, &input).await {
                Ok(_) => None,
                Err(error) => failed("the session could not be compacted", &error),
            }
        }
        Cmd::PutKey { provider, key } => match client.put_key(&provider, &key).await {
            Ok(_) => providers(client).await,
            Err(error) => failed("the key could not be stored", &error),
        },
        Cmd::BeginSignIn { provider, method, inputs } => {
            match client.begin_sign_in(&provider, method, &inputs).await {
                Ok(told) => Some(Reply::SignIn { provider, method, told }),
                Err(error) => failed("the sign-in could not begin", &error),
            }
        }
        Cmd::FinishSignIn { provider, method, code } => {
            match client.finish_sign_in(&provider, method, code.as_deref()).await {
                Ok(_) => providers(client).await,
                Err(error) => failed("the sign-in did not succeed", &error),
            }
        }
        _ => None,
    }
}

/// What a server with its parts can do beside the conversation.
async fn change_elsewhere(client: &Client, cmd: Cmd) -> Option<Reply> {
    match cmd {
        Cmd::SwitchMcp { name, on } => match client.switch_mcp(&name, on).await {
            Ok(_) => Some(servers(client).await),
            Err(error) => failed(&format!("the MCP server `{name}` could not be switched"), &error),
        },
        Cmd::Move { session, directory } => match client.move_session(&session, &directory).await {
            Ok(()) => Some(Reply::Done(format!("the session works in {directory} now"))),
            Err(error) => failed("the session could not be moved", &error),
        },
        Cmd::Share(session) => match client.share(&session).await {
            Ok(session) => Some(Reply::Shared(Box::new(session))),
            Err(error) => failed("the session was not shared", &error),
        },
        Cmd::Unshare(session) => changed(client.unshare(&session).await, "sharing could not be ended"),
        _ => None,
    }
}

/// Asks about the trust of a directory, or says what the user decided.
async fn trust(client: &Client, cmd: Cmd) -> Option<Reply> {
    match cmd {
        Cmd::LoadTrust(directory) => {
            // Servers of other versions have no such route; the client is the same without it.
            let reply = client.in_directory(&directory).trust().await.ok();
            Some(Reply::Trust { directory, reply })
        }
        Cmd::DecideTrust { directory, input } => {
            let client = client.in_directory(&directory);
            let answer = match client.decide_trust(&input).await {
                Ok(reply) => Ok(reply),
                Err(error) => Err((told(&error), client.trust().await.ok())),
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

/// What cannot be fetched is left as it was known.
async fn servers(client: &Client) -> Reply {
    let (mcp, lsp, formatters) = tokio::join!(client.mcp(), client.lsp(), client.formatters());
    Reply::Servers { mcp: mcp.ok(), lsp: lsp.ok(), formatters: formatters.ok() }
}

async fn places(client: &Client) -> Option<Reply> {
    let found = async {
        let project = client.project().await?;
        let directories = client.project_directories(project.id.as_str()).await?;
        Ok((directories, client.workspaces().await?))
    };
    match found.await {
        Ok((directories, workspaces)) => Some(Reply::Places { directories, workspaces }),
        Err(error) => failed("the directories could not be fetched", &error),
    }
}

/// What can be used after a sign-in.
async fn providers(client: &Client) -> Option<Reply> {
    match client.providers().await {
        Ok(value) => Some(Reply::Providers(value)),
        Err(error) => failed("the providers could not be fetched", &error),
    }
}

fn changed(result: Result<Session, Error>, what: &str) -> Option<Reply> {
    match result {
        Ok(session) => Some(Reply::Session(Box::new(session))),
        Err(error) => failed(what, &error),
    }
}

/// Lets the user write in an editor; the terminal is its alone meanwhile.
pub(crate) async fn edit(editor: &str, text: &str) -> io::Result<String> {
    let file = tempfile::Builder::new().prefix("codewright-").suffix(".md").tempfile()?;
    std::fs::write(file.path(), text)?;
    let mut words = editor.split_whitespace();
    let program = words.next().ok_or_else(|| io::Error::other("no editor is named"))?;
    let status = tokio::process::Command::new(program).args(words).arg(file.path()).status().await?;
    if !status.success() {
        return Err(io::Error::other(format!("it ended with {status}")));
    }
    if std::fs::metadata(file.path())?.len() > MAX_WRITTEN_BYTES {
        return Err(io::Error::other("the text is too long"));
    }
    std::fs::read_to_string(file.path())
}
