//! Drives the program as an editor does, with the protocol's official Rust implementation.

use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use agent_client_protocol::schema::ProtocolVersion;
use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::schema::{
    AuthenticateRequest, CancelNotification, ClientCapabilities, CloseSessionRequest, ContentBlock,
    DeleteSessionRequest, FileSystemCapabilities, ForkSessionRequest, InitializeRequest, ListSessionsRequest,
    LoadSessionRequest, NewSessionRequest, PromptRequest, ReadTextFileRequest, ReadTextFileResponse,
    RequestPermissionOutcome, RequestPermissionRequest, RequestPermissionResponse, ResumeSessionRequest,
    SelectedPermissionOutcome, SessionNotification, SessionUpdate, SetSessionConfigOptionRequest,
    SetSessionModeRequest, StopReason, TextContent, WriteTextFileRequest, WriteTextFileResponse,
};
use agent_client_protocol::{Agent, Client, Error, Lines, on_receive_notification, on_receive_request};
use anyhow::{Context as _, Result, ensure};
use codewright_testkit::Project;
use futures_util::{SinkExt, StreamExt as _};
use tokio::time::{sleep, timeout};
use tokio_util::codec::{FramedRead, FramedWrite, LinesCodec, LinesCodecError};

/// The deadline of the whole test.
const DEADLINE: Duration = Duration::from_secs(120);
/// The interval at which a condition is checked, and the number of checks.
const POLL: Duration = Duration::from_millis(50);
const POLLS: usize = 600;

/// What the editor has received.
#[derive(Default)]
struct Seen {
    updates: Vec<SessionUpdate>,
    permissions: usize,
    reads: usize,
    writes: usize,
}

type Shared = Arc<Mutex<Seen>>;

/// The checks that passed.
#[derive(Default)]
struct Checks(usize);

impl Checks {
    fn ok(&mut self, what: &str, holds: bool) -> Result<(), Error> {
        if !holds {
            return Err(Error::internal_error().data(what));
        }
        self.0 += 1;
        super::say(&format!("ok  {what}")).map_err(|error| Error::internal_error().data(error.to_string()))
    }
}

/// Drives the program in a project. `mode` is its agent. Returns the number of checks.
pub(super) fn drive(program: &Path, project: &Project, mode: &'static str) -> Result<usize> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let driven = connect(program, project, mode);
        timeout(DEADLINE, driven).await.context("the program did not answer in time")?
    })
}

async fn connect(program: &Path, project: &Project, mode: &'static str) -> Result<usize> {
    let mut command = tokio::process::Command::new(program);
    command.arg("acp").env_clear().envs(project.environment()).env("PATH", super::search());
    command.current_dir(project.directory()).stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
    let mut child = command.spawn().context("cannot start the program")?;
    let input = child.stdin.take().context("no input")?;
    let output = child.stdout.take().context("no output")?;
    let broken = |error: LinesCodecError| std::io::Error::other(error.to_string());
    let sink = SinkExt::<String>::sink_map_err(FramedWrite::new(input, LinesCodec::new()), broken);
    let stream = FramedRead::new(output, LinesCodec::new()).map(move |line| line.map_err(broken));
    let seen = Shared::default();
    let (asked, read, written, updated) = (seen.clone(), seen.clone(), seen.clone(), seen.clone());
    let directory = project.directory().to_owned();
    let count = Client
        .v1()
        .name("xtask")
        .on_receive_request(
            async move |request: RequestPermissionRequest, responder, _| {
                lock(&asked).permissions += 1;
                let chosen = request.options[0].option_id.clone();
                let outcome = RequestPermissionOutcome::Selected(SelectedPermissionOutcome::new(chosen));
                responder.respond(RequestPermissionResponse::new(outcome))
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: ReadTextFileRequest, responder, _| {
                lock(&read).reads += 1;
                let text = std::fs::read_to_string(&request.path);
                responder.respond(ReadTextFileResponse::new(text.map_err(Error::into_internal_error)?))
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: WriteTextFileRequest, responder, _| {
                lock(&written).writes += 1;
                std::fs::write(&request.path, &request.content).map_err(Error::into_internal_error)?;
                responder.respond(WriteTextFileResponse::new())
            },
            on_receive_request!(),
        )
        .on_receive_notification(
            async move |notification: SessionNotification, _| {
                lock(&updated).updates.push(notification.update);
                Ok(())
            },
            on_receive_notification!(),
        )
        .connect_with(Lines::new(sink, stream), async move |agent: ConnectionTo<Agent>| {
            session(&agent, &directory, &seen, mode).await
        })
        .await?;
    let ended = child.wait().await?;
    ensure!(ended.success(), "the program ended with {ended}");
    super::say("ok  the program ends with its input")?;
    Ok(count + 1)
}

fn lock(seen: &Shared) -> std::sync::MutexGuard<'_, Seen> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}

fn text(seen: &Shared) -> String {
    let seen = lock(seen);
    let chunks = seen.updates.iter().filter_map(|update| match update {
        SessionUpdate::AgentMessageChunk(chunk) => match &chunk.content {
            ContentBlock::Text(text) => Some(text.text.clone()),
            _ => None,
        },
        _ => None,
    });
    chunks.collect()
}

async fn until(what: &str, holds: impl Fn() -> bool) -> Result<(), Error> {
    for _ in 0..POLLS {
        if holds() {
            return Ok(());
        }
        sleep(POLL).await;
    }
    Err(Error::internal_error().data(format!("waited too long for {what}")))
}

async fn session(
    agent: &ConnectionTo<Agent>,
    directory: &Path,
    seen: &Shared,
    mode: &'static str,
) -> Result<usize, Error> {
    let mut checks = Checks::default();
    let fs = FileSystemCapabilities::new().read_text_file(true).write_text_file(true);
    let request =
        InitializeRequest::new(ProtocolVersion::V1).client_capabilities(ClientCapabilities::new().fs(fs));
    let started = agent.send_request(request).block_task().await?;
    checks.ok("initialize", started.agent_capabilities.load_session)?;
    let method = started.auth_methods[0].id().clone();
    agent.send_request(AuthenticateRequest::new(method)).block_task().await?;
    checks.ok("authenticate", true)?;
    let made = agent.send_request(NewSessionRequest::new(directory)).block_task().await?;
    let id = made.session_id;
    checks.ok("session/new", made.config_options.is_some())?;
    let say = |words: &str| {
        let block = ContentBlock::Text(TextContent::new(words));
        agent.send_request(PromptRequest::new(id.clone(), vec![block])).block_task()
    };
    let first = say("say hello").await?;
    checks.ok("session/prompt", first.stop_reason == StopReason::EndTurn && text(seen).contains("Hello"))?;
    say("EDIT it").await?;
    let edited =
        std::fs::read_to_string(directory.join("src/util.py")).map_err(Error::into_internal_error)?;
    checks.ok("an edit", edited.contains("b + 0"))?;
    if mode == "build" {
        let used = {
            let seen = lock(seen);
            (seen.reads, seen.writes)
        };
        checks.ok("fs/read_text_file and fs/write_text_file", used.0 > 0 && used.1 == 1)?;
    }
    say("RUN it").await?;
    checks.ok("session/request_permission", lock(seen).permissions == 1)?;
    agent.send_request(SetSessionModeRequest::new(id.clone(), "plan")).block_task().await?;
    checks.ok("session/set_mode", true)?;
    let option = SetSessionConfigOptionRequest::new(id.clone(), "mode", mode);
    let options = agent.send_request(option).block_task().await?;
    checks.ok("session/set_config_option", !options.config_options.is_empty())?;
    let waiting = say("WAIT for it");
    let cancelling = async {
        until("the first words", || text(seen).contains("one ")).await?;
        agent.send_notification(CancelNotification::new(id.clone()))
    };
    let (ended, cancelled) = tokio::join!(waiting, cancelling);
    cancelled?;
    checks.ok("session/cancel", ended?.stop_reason == StopReason::Cancelled)?;
    let listed =
        agent.send_request(ListSessionsRequest::new().cwd(directory.to_owned())).block_task().await?;
    checks.ok("session/list", listed.sessions.iter().any(|session| session.session_id == id))?;
    let known = lock(seen).updates.len();
    agent.send_request(LoadSessionRequest::new(id.clone(), directory)).block_task().await?;
    checks.ok("session/load", lock(seen).updates.len() > known + 3)?;
    agent.send_request(ResumeSessionRequest::new(id.clone(), directory)).block_task().await?;
    checks.ok("session/resume", true)?;
    let fork = agent.send_request(ForkSessionRequest::new(id.clone(), directory)).block_task().await?;
    checks.ok("session/fork", fork.session_id != id)?;
    agent.send_request(CloseSessionRequest::new(fork.session_id.clone())).block_task().await?;
    checks.ok("session/close", true)?;
    agent.send_request(DeleteSessionRequest::new(fork.session_id)).block_task().await?;
    checks.ok("session/delete", true)?;
    Ok(checks.0)
}
