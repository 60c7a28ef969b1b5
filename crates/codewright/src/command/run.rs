//! `run`: one prompt, answered and printed.
//!
//! The command is a client like any other. It watches the session's events from
//! before the prompt is sent until the session is idle, so that nothing is missed.
//! One interrupt stops the turn and keeps the session; a second one leaves at once.

mod ask;
mod json;
mod people;
mod prompt;

use std::io::IsTerminal as _;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, bail};
use codewright_client::{Client, Events, SessionQuery};
use codewright_config::Env;
use codewright_proto::{
    Action, CommandInput, Event, Fact, Message, ModelRef, Notice, PartInput, PermissionAnswer,
    PermissionReply, PermissionRequest, PromptInput, PromptModel, QuestionAnswers, QuestionRequest, Rule,
    Session, SessionId, SessionInput, SessionStatus, Signal, TrustChoice, TrustDismissal, TrustInput,
    TrustReply, TrustStatus,
};
use tokio::signal::unix::{Signal as UnixSignal, SignalKind, signal};

use crate::cli::{Format, RunArgs};
use crate::connection::{Connection, Credentials, client_error, interrupted, working_directory};
use crate::style;

/// How long a stopped turn may take to end.
const STOP_DEADLINE: Duration = Duration::from_secs(10);
/// How long the end of an answer is waited for after the session is said to be idle.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// Parts of an untrusted configuration that a warning names.
const MAX_NAMED: usize = 5;
/// The longest title made from a prompt.
const MAX_TITLE_CHARS: usize = 50;
/// How many sessions may have begun each other, one for the next.
const MAX_DEPTH: usize = 64;
const SIGINT: u8 = 2;
const SIGTERM: u8 = 15;

pub(crate) fn main(args: RunArgs) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let code = runtime.block_on(run(args));
    // A read of standard input that never ends must not hold the program.
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
            let env = if args.trust { env.trusting() } else { env };
            Connection::local(env, &working_directory(args.dir.as_deref())?).await?
        }
    };
    turn_and_close(connection, &args, text).await
}

/// Decides about the directory of an attached server if that is wanted, and warns of the parts that wait.
async fn settle_trust(client: &Client, args: &RunArgs) {
    // Servers of other versions have no such route.
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

/// Warns of the parts of an untrusted configuration once, where lines come from a program. The server does not ask
/// then: its question would take the next line for an answer.
pub(crate) async fn warn_and_dismiss_trust(client: &Client) {
    // Servers of other versions have no such route.
    let Ok(trust) = client.trust().await else { return };
    warn_of_trust(&trust, "run `codewright trust add`");
    if trust.status == TrustStatus::Undecided {
        // Without it the question comes, and is refused.
        drop(client.dismiss_trust(&TrustDismissal { fingerprint: trust.fingerprint }).await);
    }
}

/// Names the parts of a configuration that wait for trust, and the way to let them take effect.
fn warn_of_trust(trust: &TrustReply, way: &str) {
    let is_waiting = matches!(trust.status, TrustStatus::Undecided | TrustStatus::Restricted);
    if !is_waiting || trust.requests.is_empty() {
        return;
    }
    let named: Vec<_> = trust.requests.iter().take(MAX_NAMED).map(|request| request.text.as_str()).collect();
    let more = trust.requests.len().saturating_sub(MAX_NAMED);
    let more = if more == 0 { String::new() } else { format!("; and {more} more") };
    let how = match &trust.limit {
        Some(limit) => format!("It cannot be trusted: {limit}"),
        None => format!("To let it take effect, {way}"),
    };
    style::warning(&format!(
        "`{}` is not trusted, so its configuration does not: {}{more}. {how}",
        trust.root,
        named.join("; ")
    ));
}

/// Whether a question asks for the trust of a directory; a warning has named it already.
fn is_about_trust(request: &QuestionRequest) -> bool {
    request.tool.is_none() && request.questions.first().is_some_and(|question| question.header == "Trust")
}

/// Runs a turn over a connection and ends the connection, whatever came of the turn.
pub(crate) async fn turn_and_close(
    connection: Connection,
    args: &RunArgs,
    text: String,
) -> anyhow::Result<ExitCode> {
    connection.keep_log(&args.common);
    let code = turn(&connection, args, text, None).await;
    connection.close().await;
    code
}

/// Refuses what this version cannot do, before anything is done.
fn check(args: &RunArgs) -> anyhow::Result<()> {
    if args.interactive {
        bail!("--interactive is not supported by this version");
    }
    if args.fork && !args.continue_last && args.session.is_none() {
        bail!("--fork requires --continue or --session");
    }
    if args.share {
        style::warning("--share is not supported by this version: the session stays on this machine");
    }
    Ok(())
}

/// Runs a turn over a connection. Who reads the lines is asked for leave and for answers.
pub(crate) async fn turn(
    connection: &Connection,
    args: &RunArgs,
    text: String,
    lines: Option<&mut Lines>,
) -> anyhow::Result<ExitCode> {
    let client = &connection.client;
    // Before anything else is done, so that an interrupt at any moment is heard.
    let mut signals = Signals::new()?;
    if lines.is_none() {
        settle_trust(client, args).await;
    }
    let is_unsaid = text.trim().is_empty() && args.command.is_none();
    let text = if is_unsaid { go_on(client, args).await? } else { text };
    let parts = prompt::parts(args, text.clone())?;
    let agent = known_agent(client, args.agent.as_deref()).await?;
    let model = args.model.as_deref().map(parse_model).transpose()?;
    let mut events = client.events().await.map_err(client_error)?;
    let (session, is_new) = session(connection, args, &parts).await?;
    let input = PromptInput {
        model: model.map(|(provider_id, model_id)| PromptModel { provider_id, model_id, variant: None }),
        agent,
        variant: args.variant.clone(),
        parts,
        ..PromptInput::default()
    };
    let mut output: Box<dyn Output> = match args.format {
        Format::Default => Box::new(people::People::new(args.thinking)),
        Format::Json => Box::new(json::Json::new(args.thinking)),
    };
    let output = &mut *output;
    let mut watch = Watch {
        client,
        id: &session.id,
        auto: args.auto,
        failed: false,
        rest: Rest::default(),
        output,
        lines,
    };
    let sent = match &args.command {
        None => client.prompt_async(&session.id, &input).await,
        Some(command) => {
            let input = command_input(command, text, input);
            // The answer comes when the turn has ended, which is watched meanwhile.
            let mut running = std::pin::pin!(client.command(&session.id, &input));
            tokio::select! {
                code = watch.watch(&mut events, &mut signals) => {
                    // What is told when a command has ended is told before the program does.
                    drop(tokio::time::timeout(STOP_DEADLINE, running.as_mut()).await);
                    return code;
                }
                answered = running.as_mut() => answered.map(|_| ()),
            }
        }
    };
    if let Err(error) = sent {
        // A session that was made for a prompt that was never taken in helps nobody.
        if is_new {
            drop(client.delete_session(&session.id).await);
        }
        return Err(client_error(error));
    }
    watch.watch(&mut events, &mut signals).await
}

/// What a command is run with: the words are its arguments.
fn command_input(command: &str, arguments: String, prompt: PromptInput) -> CommandInput {
    CommandInput {
        command: command.to_owned(),
        arguments,
        agent: prompt.agent,
        model: prompt.model.map(|model| format!("{}/{}", model.provider_id, model.model_id)),
        variant: prompt.variant,
        parts: prompt.parts.into_iter().filter(|part| matches!(part, PartInput::File { .. })).collect(),
        message_id: None,
    }
}

/// What shows a turn.
trait Output {
    /// Shows one thing that happened; an error means that nobody reads any more.
    fn notice(&mut self, notice: &Notice) -> std::io::Result<()>;
    /// Shows that a call asked for permission and what was answered for the user.
    fn permission(&mut self, request: &PermissionRequest, allowed: bool) -> std::io::Result<()>;
    /// Shows that the model asked a question, which nobody is there to answer.
    fn question(&mut self, request: &QuestionRequest) -> std::io::Result<()>;
    /// Shows that the turn is over.
    fn end(&mut self) -> std::io::Result<()>;
}

/// What somebody writes, line by line.
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

/// One turn, watched.
struct Watch<'a> {
    client: &'a Client,
    id: &'a SessionId,
    auto: bool,
    failed: bool,
    rest: Rest,
    output: &'a mut dyn Output,
    /// Whom to ask, if somebody is there.
    lines: Option<&'a mut Lines>,
}

/// What tells the end of a turn: of one whose answer failed a session is said to be idle twice, the first
/// time before the last of the answer is told.
#[derive(Default)]
struct Rest {
    /// An answer has begun and not ended.
    is_open: bool,
    /// The session was said to be idle all the same.
    is_said: bool,
}

impl Rest {
    /// Whether a turn is over with a notice about its session.
    fn is_over(&mut self, notice: &Notice) -> bool {
        match &notice.fact {
            Fact::Event(Event::MessageUpdated { info: Message::Assistant(info), .. }) => {
                self.is_open = info.time.completed.is_none();
                false
            }
            Fact::Signal(Signal::SessionIdle { .. }) => {
                std::mem::replace(&mut self.is_said, true) || !self.is_open
            }
            Fact::Event(_) | Fact::Signal(_) => false,
        }
    }
}

/// Why watching stopped.
enum Stop {
    Idle,
    /// Nobody reads what is printed.
    Unread,
}

impl Watch<'_> {
    async fn watch(&mut self, events: &mut Events, signals: &mut Signals) -> anyhow::Result<ExitCode> {
        let stopped = tokio::select! {
            stop = self.until_idle(events) => Ok(stop?),
            signal = signals.next() => Err(signal),
        };
        match stopped {
            Ok(Stop::Idle) => {
                // Nobody is left to be told when this fails.
                drop(self.output.end());
                Ok(if self.failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
            }
            Ok(Stop::Unread) => {
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

    /// Stops the turn and shows its end.
    async fn stop(&mut self, events: &mut Events) -> anyhow::Result<()> {
        let (client, id) = (self.client, self.id);
        let stopped = async {
            let (aborted, shown) =
                futures_util::future::join(client.abort(id), self.until_idle(events)).await;
            aborted.map_err(client_error)?;
            shown.map(|_| ())
        };
        tokio::time::timeout(STOP_DEADLINE, stopped).await.context("the turn did not stop in time")?
    }

    async fn until_idle(&mut self, events: &mut Events) -> anyhow::Result<Stop> {
        loop {
            let next = events.next();
            let notice = if self.rest.is_said {
                match tokio::time::timeout(LAST_WORDS, next).await {
                    Ok(notice) => notice,
                    Err(_) if self.is_at_work().await? => continue,
                    Err(_) => return Ok(Stop::Idle),
                }
            } else {
                next.await
            };
            let Some(notice) = notice.map_err(client_error)? else {
                bail!("the server ended before the turn did")
            };
            match &notice.fact {
                Fact::Event(Event::PermissionAsked(request)) if self.is_ours(&request.session_id).await? => {
                    self.answer(request).await?;
                }
                Fact::Signal(Signal::QuestionAsked(request)) if self.is_ours(&request.session_id).await? => {
                    self.dismiss(request).await?;
                }
                Fact::Event(_) | Fact::Signal(_) => {}
            }
            if notice.session_id() != Some(self.id) {
                continue;
            }
            let is_error = matches!(&notice.fact, Fact::Signal(Signal::SessionError { .. }));
            self.failed |= is_error;
            if self.output.notice(&notice).is_err() {
                return Ok(Stop::Unread);
            }
            if self.rest.is_over(&notice) {
                return Ok(Stop::Idle);
            }
        }
    }

    /// Whether the turn goes on.
    async fn is_at_work(&self) -> anyhow::Result<bool> {
        // A server tells what is at work in one directory; a session that is continued may be of another one.
        let session = self.client.session(self.id).await.map_err(client_error)?;
        let statuses = self.client.in_directory(session.directory).statuses().await.map_err(client_error)?;
        Ok(statuses.get(self.id).is_some_and(|status| *status != SessionStatus::Idle))
    }

    /// Whether a session is the one that is watched, or was begun by it for a part of its work.
    async fn is_ours(&self, id: &SessionId) -> anyhow::Result<bool> {
        let mut id = id.clone();
        for _ in 0..MAX_DEPTH {
            if id == *self.id {
                return Ok(true);
            }
            let session = match self.client.session(&id).await {
                // It was deleted meanwhile.
                Err(error) if error.is_not_found() => return Ok(false),
                other => other.map_err(client_error)?,
            };
            let Some(parent) = session.parent_id else { return Ok(false) };
            id = parent;
        }
        Ok(false)
    }

    /// There is no one to answer a question.
    async fn dismiss(&mut self, request: &QuestionRequest) -> anyhow::Result<()> {
        // A line of a program is a prompt and not the answer to whether a directory is trusted.
        let is_answerable = !is_about_trust(request) || std::io::stdin().is_terminal();
        if let Some(lines) = self.lines.as_deref_mut().filter(|_| is_answerable)
            && let Some(answers) = ask::questions(lines, request).await?
        {
            let replied = self.client.reply_question(&request.id, &QuestionAnswers { answers }).await;
            return match replied {
                // Another client was faster, or the turn has ended meanwhile.
                Err(error) if error.is_not_found() => Ok(()),
                other => other.map(|_| ()).map_err(client_error),
            };
        }
        if !is_about_trust(request) {
            drop(self.output.question(request));
        }
        match self.client.reject_question(&request.id).await {
            // Another client was faster, or the turn has ended meanwhile.
            Err(error) if error.is_not_found() => Ok(()),
            other => other.map(|_| ()).map_err(client_error),
        }
    }

    /// With no one to ask `--auto` allows, else the call is refused.
    async fn answer(&mut self, request: &PermissionRequest) -> anyhow::Result<()> {
        let reply = match self.lines.as_deref_mut() {
            Some(lines) if !self.auto => ask::permission(lines, request).await?,
            Some(_) | None => {
                // A closed output is noticed with the next thing that is shown.
                drop(self.output.permission(request, self.auto));
                if self.auto { PermissionReply::Once } else { PermissionReply::Reject }
            }
        };
        let answer = PermissionAnswer { reply, message: None };
        match self.client.reply_permission(&request.id, &answer).await {
            // Another client was faster, or the turn has ended meanwhile.
            Err(error) if error.is_not_found() => Ok(()),
            other => other.map(|_| ()).map_err(client_error),
        }
    }
}

/// The session to continue, a fork of it, or a new one; and whether it was made here.
async fn session(
    connection: &Connection,
    args: &RunArgs,
    parts: &[PartInput],
) -> anyhow::Result<(Session, bool)> {
    let client = &connection.client;
    match continued(client, args).await? {
        Some(session) if args.fork => {
            let fork = client.fork(&session.id, None).await.map_err(client_error)?;
            Ok((fork, true))
        }
        Some(session) => Ok((session, false)),
        None => {
            let input = new_session(args, parts)?;
            let session = client.create_session(&input).await.map_err(client_error)?;
            Ok((session, true))
        }
    }
}

/// The session that the flags name.
async fn continued(client: &Client, args: &RunArgs) -> anyhow::Result<Option<Session>> {
    match (&args.session, args.continue_last) {
        (Some(id), _) => {
            let id = SessionId::parse(id).map_err(|_| anyhow::anyhow!("Session not found"))?;
            match client.session(&id).await {
                Err(error) if error.is_not_found() => bail!("Session not found"),
                other => Ok(Some(other.map_err(client_error)?)),
            }
        }
        (None, true) => {
            let query = SessionQuery { roots: true, limit: Some(1), ..SessionQuery::default() };
            Ok(client.sessions(&query).await.map_err(client_error)?.into_iter().next())
        }
        (None, false) => Ok(None),
    }
}

/// What is asked when nothing is said: to go on, if the session's last turn broke off.
async fn go_on(client: &Client, args: &RunArgs) -> anyhow::Result<String> {
    let last = match continued(client, args).await? {
        Some(session) => client.messages(&session.id, Some(1)).await.map_err(client_error)?.pop(),
        None => None,
    };
    match last.map(|message| message.info) {
        Some(Message::User(_)) => Ok(prompt::GO_ON.to_owned()),
        Some(Message::Assistant(info)) if info.error.is_some() || info.time.completed.is_none() => {
            Ok(prompt::GO_ON.to_owned())
        }
        Some(Message::Assistant(_)) | None => bail!(
            "You must provide a message or a command: the session's last turn was answered, nothing broke off"
        ),
    }
}

fn new_session(args: &RunArgs, parts: &[PartInput]) -> anyhow::Result<SessionInput> {
    // Nobody can answer a question or a change of plan here.
    let unanswerable = ["question", "plan_enter", "plan_exit"];
    let model = args.model.as_deref().map(parse_model).transpose()?;
    Ok(SessionInput {
        title: args
            .title
            .as_ref()
            .map(|title| if title.is_empty() { prompt::title(parts) } else { title.clone() }),
        agent: None,
        model: model.map(|(provider_id, id)| ModelRef { id, provider_id, variant: args.variant.clone() }),
        permission: Some(unanswerable.map(|name| Rule::new(name, "*", Action::Deny)).into()),
        ..SessionInput::default()
    })
}

/// The wanted agent if it exists; else a warning, and the default one.
async fn known_agent(client: &Client, wanted: Option<&str>) -> anyhow::Result<Option<String>> {
    let Some(wanted) = wanted else { return Ok(None) };
    let agents = client.agents().await.map_err(client_error)?;
    let agent = agents.as_array().into_iter().flatten().find(|agent| agent["name"] == *wanted);
    let problem = match agent {
        None => "not found",
        Some(agent) if agent["mode"] == "subagent" => "is a subagent, not a primary agent",
        Some(_) => return Ok(Some(wanted.to_owned())),
    };
    style::warning(&format!("agent \"{wanted}\" {problem}. Falling back to default agent"));
    Ok(None)
}

fn parse_model(written: &str) -> anyhow::Result<(String, String)> {
    let model = codewright_config::parse_model(written)
        .with_context(|| format!("`--model {written}` is not written provider/model"))?;
    Ok((model.provider_id, model.model_id))
}
