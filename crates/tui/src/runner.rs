//! Executes commands for the server in background tasks.
//!
//! The result of each command is sent to the main loop as a message. All tasks end with the client.

use std::io;
use std::time::Duration;

use codewright_client::{Client, Error};
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};

use crate::msg::{Cmd, Msg, Reply};
use crate::state::First;
use crate::{clipboard, opener};

mod change;
mod findings;
mod load;

use change::{Input, Target};

/// The pauses before the event stream is opened again, after one failure, two failures, and so on.
const RECONNECT_PAUSES: [Duration; 4] =
    [Duration::from_millis(200), Duration::from_secs(1), Duration::from_secs(2), Duration::from_secs(5)];
/// The time without a key after which symbols are searched, because language servers search their whole project.
const SYMBOLS_PAUSE: Duration = Duration::from_millis(150);
/// The maximum size of an edited text.
const MAX_WRITTEN_BYTES: u64 = 4 * 1024 * 1024;

pub(crate) struct Runner {
    client: Client,
    first: First,
    sender: mpsc::Sender<Msg>,
    tasks: JoinSet<()>,
    /// The running search. A newer search replaces it.
    search: Option<AbortHandle>,
    /// The running search for symbols, which a newer one replaces.
    symbols: Option<AbortHandle>,
    /// The task that receives events.
    watcher: Option<AbortHandle>,
}

impl Runner {
    pub(crate) fn new(client: Client, first: First, sender: mpsc::Sender<Msg>) -> Self {
        Self { client, first, sender, tasks: JoinSet::new(), search: None, symbols: None, watcher: None }
    }

    /// Starts receiving events, and reconnects when the connection breaks.
    pub(crate) fn watch(&mut self) {
        let (client, sender) = (self.client.clone(), self.sender.clone());
        let watcher = self.tasks.spawn(watch(client, sender));
        if let Some(old) = self.watcher.replace(watcher) {
            old.abort();
        }
    }

    /// Uses another directory of the server, and receives its events.
    pub(crate) fn enter(&mut self, directory: String) {
        self.client = self.client.in_directory(directory);
        self.watch();
    }

    /// Starts a command.
    pub(crate) fn begin(&mut self, cmd: Cmd) {
        while self.tasks.try_join_next().is_some() {}
        let (client, first, sender) = (self.client.clone(), self.first.clone(), self.sender.clone());
        let replaces = matches!(cmd, Cmd::FindFiles(_) | Cmd::ListSessions { .. });
        let replaces_symbols = matches!(cmd, Cmd::FindSymbols(_));
        if replaces && let Some(search) = self.search.take() {
            search.abort();
        }
        if replaces_symbols && let Some(search) = self.symbols.take() {
            search.abort();
        }
        let handle = self.tasks.spawn(async move {
            if let Some(reply) = execute(&client, first, cmd, &sender).await {
                // Sending fails only if the client has ended.
                drop(sender.send(Msg::Reply(reply)).await);
            }
        });
        if replaces {
            self.search = Some(handle);
        } else if replaces_symbols {
            self.symbols = Some(handle);
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

fn failure(problem: &str, error: &Error) -> Option<Reply> {
    Some(Reply::Failed(format!("{problem}: {}", describe(error))))
}

/// Returns the reply for a success, or the failure.
fn reply<T>(result: Result<T, Error>, problem: &str, reply: impl FnOnce(T) -> Reply) -> Option<Reply> {
    match result {
        Ok(value) => Some(reply(value)),
        Err(error) => failure(problem, &error),
    }
}

/// Executes a command and returns its result, if there is one.
#[expect(
    clippy::too_many_lines,
    reason = "one line for each command, so that the compiler lists the missing ones"
)]
async fn execute(client: &Client, first: First, cmd: Cmd, sender: &mpsc::Sender<Msg>) -> Option<Reply> {
    match cmd {
        Cmd::Start => Some(Reply::Started(Box::new(load::start(client).await))),
        Cmd::OpenFirst => load::open_first(client, first).await,
        Cmd::LoadMessages(session) => load::messages(client, session).await,
        Cmd::LoadOlder { session, before } => load::older_messages(client, session, &before).await,
        Cmd::LoadTodos(session) => load::todos(client, session).await,
        Cmd::LoadSession(session) => load::session(client, &session).await,
        Cmd::ListSessions { search } => load::sessions(client, search).await,
        Cmd::BeginReview { range, model, variant } => {
            findings::begin(client, range, (model, variant), sender).await
        }
        Cmd::LoadFindings(session) => findings::load(client, session).await,
        Cmd::ApplyFinding { session, key } => findings::apply(client, &session, key).await,
        Cmd::WriteBugReport => findings::report(client).await,
        Cmd::WriteNew { name, text } => Some(match findings::write_new(&name, &text) {
            Ok(path) => Reply::Done(format!("wrote {path}")),
            Err(error) => Reply::Failed(error),
        }),
        Cmd::LoadAllProviders => load::all_providers(client).await,
        Cmd::LoadSkills => load::skills(client).await,
        Cmd::LoadChanges(source) => load::changes(client, source).await,
        Cmd::LoadServers => load::servers(client).await,
        Cmd::LoadSandbox => client.sandbox().await.ok().map(Reply::Sandbox),
        Cmd::LoadSandboxSetting => client.sandbox_setting().await.ok().map(Reply::SandboxSetting),
        Cmd::LoadTools { provider, model } => {
            let tools = client.tools(&provider, &model).await.ok()?;
            Some(Reply::ToolBytes(tools.to_string().len()))
        }
        Cmd::LoadDirectories => load::directories(client).await,
        Cmd::FindFiles(query) => load::files(client, query).await,
        Cmd::FindResources => client.resources().await.ok().map(Reply::Resources),
        Cmd::FindSymbols(query) => {
            tokio::time::sleep(SYMBOLS_PAUSE).await;
            load::symbols(client, query).await
        }
        Cmd::LoadTrust(directory) => load::trust(client, directory).await,
        Cmd::Send { session, rules, input, draft } => {
            change::send(client, Target { session, rules }, Input::Prompt(input), draft, sender).await
        }
        Cmd::Command { session, rules, input, draft } => {
            change::send(client, Target { session, rules }, Input::Command(input), draft, sender).await
        }
        Cmd::Shell { session, rules, input, draft } => {
            change::send(client, Target { session, rules }, Input::Shell(input), draft, sender).await
        }
        Cmd::SetRules { session, rules } => change::set_rules(client, &session, rules).await,
        Cmd::TakeBack { session, message, draft } => {
            change::take_back(client, &session, &message, draft).await
        }
        Cmd::Abort(session) => change::abort(client, &session).await,
        Cmd::Permission { id, answer } => change::reply_permission(client, &id, &answer).await,
        Cmd::Question { id, answers } => change::reply_question(client, &id, answers).await,
        Cmd::RejectQuestion(id) => change::reject_question(client, &id).await,
        Cmd::Rename { session, title } => change::rename(client, &session, title).await,
        Cmd::Delete(session) => change::delete(client, &session).await,
        Cmd::Fork { session, until } => change::fork(client, &session, until.as_ref()).await,
        Cmd::Revert { session, message } => change::revert(client, &session, message).await,
        Cmd::Unrevert(session) => change::unrevert(client, &session).await,
        Cmd::Compact { session, provider, model } => change::compact(client, &session, provider, model).await,
        Cmd::PutKey { provider, key, inputs } => change::put_key(client, &provider, &key, &inputs).await,
        Cmd::BeginSignIn { provider, method, inputs } => {
            change::begin_sign_in(client, provider, method, &inputs).await
        }
        Cmd::FinishSignIn { provider, method, code } => {
            change::finish_sign_in(client, &provider, method, code.as_deref()).await
        }
        Cmd::BeginMcpSignIn(name) => change::begin_mcp_sign_in(client, name).await,
        Cmd::FinishMcpSignIn { name, code } => change::finish_mcp_sign_in(client, &name, &code).await,
        Cmd::SwitchMcp { name, on } => change::switch_mcp(client, &name, on).await,
        Cmd::Move { session, directory } => change::move_session(client, &session, &directory).await,
        Cmd::MoveToNew { session, name } => change::move_to_new(client, &session, name).await,
        Cmd::Follow(directory) => load::follow(client, directory).await,
        // The main loop executes this itself.
        Cmd::Enter(_) => None,
        Cmd::DecideTrust { directory, input } => change::decide_trust(client, directory, &input).await,
        Cmd::DismissTrust { directory, dismissal } => {
            change::dismiss_trust(client, directory, &dismissal).await
        }
        Cmd::CopyToDesktop { text, via_terminal, desktops } => {
            Some(clipboard::copy(&text, via_terminal, &desktops).await)
        }
        Cmd::StartEditor(command) => opener::start(&command).await,
        Cmd::PasteFromDesktop(desktops) => Some(Reply::Pasted(clipboard::paste(&desktops).await)),
        // The main loop executes these itself.
        Cmd::ReadContext(_) | Cmd::ShowChange(_) => None,
        Cmd::Copy(_)
        | Cmd::Edit { .. }
        | Cmd::OpenFile(_)
        | Cmd::Save(_)
        | Cmd::Remember(_)
        | Cmd::KeepDismissed { .. } => None,
        Cmd::Mouse(_) | Cmd::Notify(_) | Cmd::Title(_) | Cmd::Suspend | Cmd::Quit => None,
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
