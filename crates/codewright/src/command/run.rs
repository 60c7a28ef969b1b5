//! `run`: sends one prompt and prints the answer.
//!
//! The command is an ordinary API client. It subscribes to events before it sends the prompt and reads them until the
//! session is idle, so that it misses none. The first interrupt stops the turn and keeps the session; a second one exits
//! immediately.

mod ask;
mod choice;
mod json;
pub(crate) mod named;
mod prompt;
mod text;

use std::collections::HashSet;
use std::io::IsTerminal as _;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, bail};
use codewright_client::{Client, Events};
use codewright_config::Env;
use codewright_proto::{
    Action, CommandInput, Event, Fact, Message, MessageId, ModelRef, Notice, PartInput, PermissionAnswer,
    PermissionReply, PermissionRequest, PromptInput, PromptModel, QuestionAnswers, QuestionRequest, Rule,
    Session, SessionId, SessionInput, SessionStatus, Signal, TrustChoice, TrustDismissal, TrustInput,
    TrustReply, TrustStatus,
};
use tokio::signal::unix::{Signal as UnixSignal, SignalKind, signal};

use crate::cli::{Format, RunArgs};
use crate::connection::{Connection, Credentials, client_error, interrupted, working_directory};
use crate::style;

/// How long to wait for the end of a turn that was stopped. The server stops it even if that takes longer.
const STOP_DEADLINE: Duration = Duration::from_millis(1500);
/// How long to wait for the response of a command whose turn has ended.
const RESPONSE_DEADLINE: Duration = Duration::from_secs(10);
/// How long to wait for an event before the session is asked whether it still works.
const SILENCE: Duration = Duration::from_secs(5);
/// How long to wait for the end of an answer after the session was reported idle.
const IDLE_GRACE: Duration = Duration::from_secs(1);
/// How many parts of an untrusted configuration a warning lists.
const MAX_NAMED: usize = 5;
/// The longest title made from a prompt.
const MAX_TITLE_CHARS: usize = 50;
/// The deepest chain of subagent sessions.
const MAX_DEPTH: usize = 64;
/// The permission to run a command without the sandbox.
const UNRESTRICTED: &str = "sandbox";
/// The exit code of `--strict` if a permission request was rejected.
const REJECTED: u8 = 2;
const SIGINT: u8 = 2;
const SIGTERM: u8 = 15;

pub(crate) fn main(args: RunArgs) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let code = runtime.block_on(run(args));
    // A pending read of standard input must not delay the exit.
    runtime.shutdown_background();
    code
}

async fn run(args: RunArgs) -> anyhow::Result<ExitCode> {
    check(&args)?;
    let text = prompt::text(&args).await?;
    let env = Env::from_process();
    let connection = match &args.attach {
        Some(url) => {
            let credentials =
                Credentials { username: args.username.clone(), password: args.password.clone() };
            Connection::remote(&env, url, credentials, args.dir.clone())?
        }
        None => {
            // Only this run trusts the directory; `trust add` stores a decision.
            let env = if args.trust { env.with_trust() } else { env };
            Connection::local(env, &working_directory(args.dir.as_deref())?).await?
        }
    };
    turn_and_close(connection, &args, text).await
}

/// Trusts the directory of an attached server if `--trust` is given, and warns about configuration without effect.
async fn settle_trust(client: &Client, args: &RunArgs) {
    // Servers of other versions lack this route.
    let Ok(mut trust) = client.trust().await else { return };
    if args.trust && trust.status != TrustStatus::Trusted {
        let input = TrustInput { decision: TrustChoice::Trust, fingerprint: trust.fingerprint.clone() };
        match client.decide_trust(&input).await {
            Ok(reply) => trust = reply,
            Err(error) => style::warning(&format!("the directory is not trusted: {error}")),
        }
    }
    warn_of_trust(&trust, "use `--trust` or `codewright trust add`");
}

/// Warns about untrusted configuration once and dismisses the trust question, when the input is not interactive. The
/// server's question would consume the next line as its answer.
pub(crate) async fn warn_and_dismiss_trust(client: &Client) {
    // Servers of other versions lack this route.
    let Ok(trust) = client.trust().await else { return };
    warn_of_trust(&trust, "run `codewright trust add`");
    if trust.status == TrustStatus::Undecided {
        // If this fails, the question appears and is rejected.
        drop(client.dismiss_trust(&TrustDismissal { fingerprint: trust.fingerprint }).await);
    }
}

/// Lists the parts of a configuration without effect, and how to trust them.
fn warn_of_trust(trust: &TrustReply, advice: &str) {
    let is_waiting = matches!(trust.status, TrustStatus::Undecided | TrustStatus::Restricted);
    if !is_waiting || trust.requests.is_empty() {
        return;
    }
    let named: Vec<_> = trust.requests.iter().take(MAX_NAMED).map(|request| request.text.as_str()).collect();
    let more = trust.requests.len().saturating_sub(MAX_NAMED);
    let more = if more == 0 { String::new() } else { format!("; and {more} more") };
    let how = match &trust.limit {
        Some(limit) => format!("It cannot be trusted: {limit}"),
        None => format!("To let it take effect, {advice}"),
    };
    style::warning(&format!(
        "`{}` is not trusted, so these parts of its configuration have no effect: {}{more}. {how}",
        trust.root,
        named.join("; ")
    ));
}

/// Whether a question is about the trust of a directory. A warning has replaced it.
fn is_about_trust(request: &QuestionRequest) -> bool {
    request.tool.is_none() && request.questions.first().is_some_and(|question| question.header == "Trust")
}

/// Runs a turn and closes the connection, also if the turn fails.
pub(crate) async fn turn_and_close(
    connection: Connection,
    args: &RunArgs,
    text: String,
) -> anyhow::Result<ExitCode> {
    connection.configure(&args.common);
    if let Some(engine) = connection.engine() {
        engine.events().watch_files_on_request();
    }
    let code = turn(&connection, args, text, None).await;
    connection.close().await;
    code
}

/// Rejects unsupported flags before anything is started.
fn check(args: &RunArgs) -> anyhow::Result<()> {
    if args.fork && !args.continue_last && args.session.is_none() {
        bail!("--fork requires --continue or --session");
    }
    if args.share {
        style::warning("--share is not supported by this version: the session stays on this machine");
    }
    Ok(())
}

/// Runs a turn over a connection. With `lines` the user replies to permission requests and questions.
pub(crate) async fn turn(
    connection: &Connection,
    args: &RunArgs,
    text: String,
    lines: Option<&mut Lines>,
) -> anyhow::Result<ExitCode> {
    // First, so that no interrupt is lost.
    let mut signals = Signals::new()?;
    let continued = choice::continued(&connection.client, args).await?;
    // Everything about a session is said and done in its own directory, wherever this program was started.
    let client = &continued.as_ref().map_or_else(
        || connection.client.clone(),
        |session| connection.client.in_directory(session.directory.clone()),
    );
    if lines.is_none() {
        settle_trust(client, args).await;
    }
    let is_missing = text.trim().is_empty() && args.command.is_none();
    let text = if is_missing { resume_prompt(client, continued.as_ref()).await? } else { text };
    let command = named::command(client, args.command.as_deref(), &text).await?;
    let parts = prompt::parts(args, text)?;
    let agent = existing_agent(client, args.agent.as_deref()).await?;
    let model = named::model(client, args.model.as_deref()).await?;
    if model.is_none() && continued.as_ref().is_none_or(|session| session.model.is_none()) {
        named::note_guess(client, agent.as_deref()).await;
    }
    let mut events = client.events().await.map_err(client_error)?;
    let first = New { args, parts: &parts, model: model.as_ref() };
    let (session, is_new) = session(client, continued, first).await?;
    let copied = copied_messages(client, &session, args).await?;
    let input = PromptInput {
        chosen: model.is_some().then_some(true),
        model,
        agent,
        variant: args.variant.clone(),
        parts,
        ..PromptInput::default()
    };
    let mut output: Box<dyn Output> = match args.format {
        Format::Default => Box::new(text::TextOutput::new(args.thinking)),
        Format::Json => Box::new(json::JsonOutput::new(args.thinking)),
    };
    let output = &mut *output;
    let mut watch = Watch {
        client,
        id: &session.id,
        auto: args.auto,
        failed: false,
        rejected: false,
        strict: args.strict,
        end: TurnEnd::default(),
        copied,
        output,
        lines,
    };
    let sent = match command {
        None => client.prompt_async(&session.id, &input).await,
        Some((command, arguments)) => {
            let input = command_input(&command, arguments, input);
            // The response is sent when the turn has ended, so the turn is watched at the same time.
            let mut running = std::pin::pin!(client.command(&session.id, &input));
            tokio::select! {
                code = watch.watch(&mut events, &mut signals) => {
                    // The server emits its last events before it responds.
                    drop(tokio::time::timeout(RESPONSE_DEADLINE, running.as_mut()).await);
                    return code;
                }
                answered = running.as_mut() => answered.map(|_| ()),
            }
        }
    };
    if let Err(error) = sent {
        // A new session is useless if its prompt was rejected.
        if is_new {
            drop(client.delete_session(&session.id).await);
        }
        return Err(client_error(error));
    }
    watch.watch(&mut events, &mut signals).await
}

/// The request that runs a configured command.
fn command_input(command: &str, arguments: String, prompt: PromptInput) -> CommandInput {
    CommandInput {
        command: command.to_owned(),
        arguments,
        agent: prompt.agent,
        chosen: prompt.chosen,
        model: prompt.model.map(|model| format!("{}/{}", model.provider_id, model.model_id)),
        variant: prompt.variant,
        parts: prompt.parts.into_iter().filter(|part| matches!(part, PartInput::File { .. })).collect(),
        ..CommandInput::default()
    }
}

/// Prints a turn.
trait Output {
    /// Prints an event. An error means that the output was closed.
    fn notice(&mut self, notice: &Notice) -> std::io::Result<()>;
    /// Prints a permission request that was answered automatically.
    fn permission(&mut self, request: &PermissionRequest, allowed: bool) -> std::io::Result<()>;
    /// Prints a question that was dismissed.
    fn question(&mut self, request: &QuestionRequest) -> std::io::Result<()>;
    /// Prints the end of the turn.
    fn end(&mut self) -> std::io::Result<()>;
}

/// The lines of an interactive user.
pub(crate) type Lines = tokio::io::Lines<tokio::io::BufReader<tokio::io::Stdin>>;

/// The signals that end a turn.
pub(crate) struct Signals {
    interrupt: UnixSignal,
    terminate: UnixSignal,
}

impl Signals {
    pub(crate) fn new() -> anyhow::Result<Self> {
        let interrupt = signal(SignalKind::interrupt()).context("cannot listen for interrupts")?;
        let terminate = signal(SignalKind::terminate()).context("cannot listen for signals")?;
        Ok(Self { interrupt, terminate })
    }

    pub(crate) async fn next(&mut self) -> u8 {
        tokio::select! {
            _ = self.interrupt.recv() => SIGINT,
            _ = self.terminate.recv() => SIGTERM,
        }
    }
}

/// Prints one turn and answers its requests.
struct Watch<'a> {
    client: &'a Client,
    id: &'a SessionId,
    auto: bool,
    failed: bool,
    /// Whether a permission request was rejected.
    rejected: bool,
    /// Whether a rejection sets the exit code.
    strict: bool,
    end: TurnEnd,
    /// The messages that a fork copied, which are not part of the turn.
    copied: HashSet<MessageId>,
    output: &'a mut dyn Output,
    /// The user's lines, if there is an interactive user.
    lines: Option<&'a mut Lines>,
}

/// Detects the end of a turn. If an answer fails, the session is reported idle twice, and the first time precedes the
/// last events of the answer.
#[derive(Default)]
struct TurnEnd {
    /// Whether an answer has started and not ended.
    is_open: bool,
    /// Whether the session was reported idle.
    was_idle: bool,
}

impl TurnEnd {
    /// Whether an event ends the turn.
    fn is_over(&mut self, notice: &Notice) -> bool {
        match &notice.fact {
            Fact::Event(Event::MessageUpdated { info: Message::Assistant(info), .. }) => {
                self.is_open = info.time.completed.is_none();
                false
            }
            Fact::Signal(Signal::SessionIdle { .. }) => {
                std::mem::replace(&mut self.was_idle, true) || !self.is_open
            }
            Fact::Event(_) | Fact::Signal(_) => false,
        }
    }
}

/// Why watching stopped.
enum Stop {
    Idle,
    /// Standard output was closed.
    OutputClosed,
}

impl Watch<'_> {
    async fn watch(&mut self, events: &mut Events, signals: &mut Signals) -> anyhow::Result<ExitCode> {
        let stopped = tokio::select! {
            stop = self.until_idle(events) => Ok(stop?),
            signal = signals.next() => Err(signal),
        };
        match stopped {
            Ok(Stop::Idle) => {
                // If standard error is closed, there is no other way to report this.
                drop(self.output.end());
                Ok(match (self.failed, self.rejected && self.strict) {
                    (true, _) => ExitCode::FAILURE,
                    (false, true) => ExitCode::from(REJECTED),
                    (false, false) => ExitCode::SUCCESS,
                })
            }
            Ok(Stop::OutputClosed) => {
                self.client.abort(self.id).await.map_err(client_error)?;
                Ok(ExitCode::FAILURE)
            }
            Err(signal) => {
                tokio::select! {
                    done = self.stop(events) => done?,
                    _ = signals.next() => {}
                }
                Ok(interrupted(signal))
            }
        }
    }

    /// Aborts the turn and prints its last events.
    async fn stop(&mut self, events: &mut Events) -> anyhow::Result<()> {
        let (client, id) = (self.client, self.id);
        let stopped = async {
            let (aborted, printed) =
                futures_util::future::join(client.abort(id), self.until_idle(events)).await;
            aborted.map_err(client_error)?;
            printed.map(|_| ())
        };
        tokio::time::timeout(STOP_DEADLINE, stopped).await.context("the turn did not stop in time")?
    }

    async fn until_idle(&mut self, events: &mut Events) -> anyhow::Result<Stop> {
        loop {
            let next = events.next();
            let patience = if self.end.was_idle { IDLE_GRACE } else { SILENCE };
            let notice = match tokio::time::timeout(patience, next).await {
                Ok(notice) => notice,
                Err(_) if self.is_at_work().await? => continue,
                Err(_) => return Ok(Stop::Idle),
            };
            let Some(notice) = notice.map_err(client_error)? else {
                bail!("the server ended before the turn did")
            };
            match &notice.fact {
                Fact::Event(Event::PermissionAsked(request)) if self.is_ours(&request.session_id).await? => {
                    self.answer_permission(request).await?;
                }
                Fact::Signal(Signal::QuestionAsked(request)) if self.is_ours(&request.session_id).await? => {
                    self.answer_question(request).await?;
                }
                Fact::Event(_) | Fact::Signal(_) => {}
            }
            let is_toast = matches!(&notice.fact, Fact::Signal(Signal::TuiToastShow { .. }));
            if (notice.session_id() != Some(self.id) && !is_toast) || self.is_copied(&notice) {
                continue;
            }
            let is_error = matches!(&notice.fact, Fact::Signal(Signal::SessionError { .. }));
            self.failed |= is_error;
            if self.output.notice(&notice).is_err() {
                return Ok(Stop::OutputClosed);
            }
            if self.end.is_over(&notice) {
                return Ok(Stop::Idle);
            }
        }
    }

    /// Whether an event is about a message that the fork copied.
    fn is_copied(&self, notice: &Notice) -> bool {
        match &notice.fact {
            Fact::Event(Event::MessageUpdated { info, .. }) => self.copied.contains(info.id()),
            Fact::Event(Event::PartUpdated { part, .. }) => self.copied.contains(&part.message_id),
            Fact::Event(_) | Fact::Signal(_) => false,
        }
    }

    /// Whether the turn is still running.
    async fn is_at_work(&self) -> anyhow::Result<bool> {
        // The status route covers one directory, and a continued session may belong to another one.
        let session = self.client.session(self.id).await.map_err(client_error)?;
        let statuses = self.client.in_directory(session.directory).statuses().await.map_err(client_error)?;
        Ok(statuses.get(self.id).is_some_and(|status| *status != SessionStatus::Idle))
    }

    /// Whether a session is the watched one or belongs to a subagent.
    async fn is_ours(&self, id: &SessionId) -> anyhow::Result<bool> {
        let mut id = id.clone();
        for _ in 0..MAX_DEPTH {
            if id == *self.id {
                return Ok(true);
            }
            let session = match self.client.session(&id).await {
                // It was deleted in the meantime.
                Err(error) if error.is_not_found() => return Ok(false),
                other => other.map_err(client_error)?,
            };
            let Some(parent) = session.parent_id else { return Ok(false) };
            id = parent;
        }
        Ok(false)
    }

    /// Shows the user a question, or rejects it without a user.
    async fn answer_question(&mut self, request: &QuestionRequest) -> anyhow::Result<()> {
        // A line of piped input is a prompt, not the answer to a trust question.
        let is_answerable = !is_about_trust(request) || std::io::stdin().is_terminal();
        if let Some(lines) = self.lines.as_deref_mut().filter(|_| is_answerable)
            && let Some(answers) = ask::questions(lines, request).await?
        {
            let replied = self.client.reply_question(&request.id, &QuestionAnswers { answers }).await;
            return match replied {
                // Another client has answered, or the turn has ended.
                Err(error) if error.is_not_found() => Ok(()),
                other => other.map(|_| ()).map_err(client_error),
            };
        }
        if !is_about_trust(request) {
            drop(self.output.question(request));
        }
        match self.client.reject_question(&request.id).await {
            // Another client has answered, or the turn has ended.
            Err(error) if error.is_not_found() => Ok(()),
            other => other.map(|_| ()).map_err(client_error),
        }
    }

    /// Shows the user a permission request. Without a user the request is granted with `--auto` and rejected otherwise.
    async fn answer_permission(&mut self, request: &PermissionRequest) -> anyhow::Result<()> {
        let reply = match self.lines.as_deref_mut() {
            Some(lines) if !self.auto => ask::permission(lines, request).await?,
            Some(_) | None => {
                // A closed output is detected by the next event.
                // `--auto` answers for the user about calls in the sandbox, and not about leaving it.
                let is_granted = self.auto && request.permission != UNRESTRICTED;
                drop(self.output.permission(request, is_granted));
                if is_granted { PermissionReply::Once } else { PermissionReply::Reject }
            }
        };
        self.rejected |= reply == PermissionReply::Reject;
        // The reply explains why no user could decide, so that the model can suggest a remedy.
        let message =
            unenforced(request).filter(|_| reply == PermissionReply::Reject && self.lines.is_none());
        let automatic = self.auto || self.lines.is_none();
        let answer = PermissionAnswer { message, automatic, ..reply.into() };
        match self.client.reply_permission(&request.id, &answer).await {
            // Another client has answered, or the turn has ended.
            Err(error) if error.is_not_found() => Ok(()),
            other => other.map(|_| ()).map_err(client_error),
        }
    }
}

/// Why a command needs a reply, if this machine cannot restrict it.
fn unenforced(request: &PermissionRequest) -> Option<String> {
    if request.permission == UNRESTRICTED {
        let remedy = "Only the user can run commands without the sandbox, with `--sandbox off`.";
        return Some(format!("No user is present to decide about this command. {remedy}"));
    }
    let reason = request.metadata.get("sandbox")?.as_str()?;
    Some(format!("No user is present to decide about this command. {reason}"))
}

/// The session to continue, its fork, or a new one; and whether it was created here.
async fn session(
    client: &Client,
    continued: Option<Session>,
    first: New<'_>,
) -> anyhow::Result<(Session, bool)> {
    match continued {
        Some(session) if first.args.fork => {
            let fork = client.fork(&session.id, None).await.map_err(client_error)?;
            Ok((fork, true))
        }
        Some(session) => Ok((session, false)),
        None => {
            let input = new_session(first);
            let session = client.create_session(&input).await.map_err(client_error)?;
            Ok((session, true))
        }
    }
}

/// The messages of a session that was just forked. Their events may arrive after the subscription began.
async fn copied_messages(
    client: &Client,
    session: &Session,
    args: &RunArgs,
) -> anyhow::Result<HashSet<MessageId>> {
    if !args.fork {
        return Ok(HashSet::new());
    }
    let messages = client.messages(&session.id, None).await.map_err(client_error)?;
    Ok(messages.into_iter().map(|message| message.info.id().clone()).collect())
}

/// The prompt that resumes the session's last turn.
///
/// # Errors
///
/// Fails if the turn was not interrupted.
async fn resume_prompt(client: &Client, continued: Option<&Session>) -> anyhow::Result<String> {
    let last = match continued {
        Some(session) => client.messages(&session.id, Some(1)).await.map_err(client_error)?.pop(),
        None => None,
    };
    match last.map(|message| message.info) {
        Some(Message::User(_)) => Ok(prompt::RESUME.to_owned()),
        Some(Message::Assistant(info)) if info.error.is_some() || info.time.completed.is_none() => {
            Ok(prompt::RESUME.to_owned())
        }
        Some(Message::Assistant(_)) | None => {
            bail!("You must provide a message or a command: the session's last turn was not interrupted")
        }
    }
}

/// What a new session is made from.
#[derive(Clone, Copy)]
struct New<'a> {
    args: &'a RunArgs,
    parts: &'a [PartInput],
    model: Option<&'a PromptModel>,
}

fn new_session(New { args, parts, model }: New<'_>) -> SessionInput {
    // `run` cannot answer questions or switch to and from plan mode.
    let unanswerable = ["question", "plan_enter", "plan_exit"];
    SessionInput {
        title: args
            .title
            .as_ref()
            .map(|title| if title.is_empty() { prompt::title(parts) } else { title.clone() }),
        agent: None,
        model: model.map(|model| ModelRef {
            id: model.model_id.clone(),
            provider_id: model.provider_id.clone(),
            variant: args.variant.clone(),
        }),
        permission: Some(unanswerable.map(|name| Rule::new(name, "*", Action::Deny)).into()),
        ..SessionInput::default()
    }
}

/// Checks that the named agent exists and can answer prompts.
///
/// # Errors
///
/// Fails with the nearest names otherwise: another agent could have more rights than the user wanted.
async fn existing_agent(client: &Client, name: Option<&str>) -> anyhow::Result<Option<String>> {
    let Some(name) = name else { return Ok(None) };
    let agents = client.agents().await.map_err(client_error)?;
    let list = || agents.as_array().into_iter().flatten();
    let is_primary = |agent: &&serde_json::Value| agent["mode"] != "subagent";
    let problem = match list().find(|agent| agent["name"] == *name) {
        Some(agent) if is_primary(&agent) => return Ok(Some(name.to_owned())),
        Some(_) => "it is a subagent, which only other agents start".to_owned(),
        None => {
            let is_shown = |agent: &&serde_json::Value| is_primary(agent) && agent["hidden"] != true;
            let names = || list().filter(is_shown).filter_map(|agent| agent["name"].as_str());
            let similar = codewright_config::nearest(name, names(), 1);
            let similar = if similar.is_empty() { names().map(str::to_owned).collect() } else { similar };
            format!("there is no such agent\ndid you mean `{}`?", similar.join("`, `"))
        }
    };
    bail!("cannot use the agent `{name}`: {problem}")
}
