//! Kills the program at random moments and checks that nothing is lost.
//!
//! A [`Crash`] consists of rounds. In most rounds a server, or a `run`, gets prompts whose answers stream and
//! call tools, and is killed with SIGKILL while it starts, streams, runs a command or writes. Every few rounds
//! it is not killed: each session gets one more prompt, and the state is compared with the record of the
//! clients:
//!
//! - Every event that a client received is in the log with its position and id.
//! - Every accepted prompt is in its session.
//! - The model refused no request: a transcript that a crash cut off still makes a valid request.
//! - No command ran twice. A call recorded as done ran, and a call recorded as not started did not.
//! - After an answered prompt no call and no text is open.
//!
//! Each command appends a line to a file, so its effect is known independently of the program.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use codewright_client::{Client, Events};
use codewright_proto::{Clock, Ids, MessageId, PartInput, PromptInput, SessionId, SessionInput};
use codewright_scripted::Server;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::project::Project;
use crate::run::{Run, Running};

pub(crate) mod check;
pub(crate) mod model;
mod record;

pub(crate) use record::ClientRecord;

/// The number of rounds with a kill before one without.
const CALM_EVERY: u32 = 5;
/// The number of rounds before a new, empty home is used, which keeps the log short to read.
const ROUNDS_OF_A_HOME: u32 = 50;
/// The longest time from the prompts to the kill.
const MOST_LIFE: Duration = Duration::from_millis(900);
/// The longest time from a start to the kill.
const MOST_START: Duration = Duration::from_millis(60);
/// The deadline of everything that is not killed.
const DEADLINE: Duration = Duration::from_secs(90);

/// A crash test.
#[derive(Debug, Clone)]
pub struct Crash {
    /// The program.
    pub binary: PathBuf,
    /// The number of kills.
    pub kills: u32,
    /// The number of sessions with prompts at the same time.
    pub sessions: usize,
    /// The seed of the random moments. The same seed gives about the same moments.
    pub seed: u64,
}

/// The result of a crash test.
#[derive(Debug, Clone, Default)]
pub struct CrashReport {
    /// The number of kills.
    pub kills: u32,
    /// The kills during a start.
    pub in_start: u32,
    /// The number of accepted prompts.
    pub prompts: u64,
    /// The number of events that clients received.
    pub events: u64,
    /// The number of commands that wrote their line.
    pub effects: u64,
    /// Calls recorded as done.
    pub done: BTreeSet<String>,
    /// Calls recorded as not started.
    pub not_begun: BTreeSet<String>,
    /// Calls recorded as uncertain.
    pub uncertain: BTreeSet<String>,
    /// Accepted prompts and received events that are missing.
    pub lost: BTreeSet<String>,
    /// Requests that the model refused.
    pub refused: BTreeSet<String>,
    /// Commands that ran twice.
    pub doubled: BTreeSet<String>,
    /// Other faults.
    pub wrong: BTreeSet<String>,
}

impl CrashReport {
    /// Whether every promise held.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.lost.is_empty() && self.refused.is_empty() && self.doubled.is_empty() && self.wrong.is_empty()
    }
}

/// A pseudo-random sequence (splitmix64), so that a seed reproduces a run.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.roll() % limit.max(1)
    }

    pub(crate) fn span(&mut self, most: Duration) -> Duration {
        Duration::from_micros(self.below(most.as_micros() as u64))
    }
}

impl Crash {
    /// Runs all rounds. Needs a runtime with time and IO.
    pub async fn play(&self) -> Result<CrashReport> {
        let mut found = CrashReport::default();
        let mut dice = Dice(self.seed);
        while found.kills < self.kills {
            let rounds = ROUNDS_OF_A_HOME.min(self.kills - found.kills);
            let mut home = Home::new(self).await?;
            home.play(rounds, &mut dice, &mut found).await?;
            found.refused.extend(home.model.problems());
            home.model.stop().await;
        }
        Ok(found)
    }
}

/// A data directory with its project and its model.
struct Home<'a> {
    plan: &'a Crash,
    project: Project,
    model: Server,
    ids: Ids,
    record: ClientRecord,
    prompts: u64,
}

impl<'a> Home<'a> {
    async fn new(plan: &'a Crash) -> Result<Self> {
        let model = Server::start(model::script()).await?;
        let project = Project::git()?;
        project.configure(&model.url())?;
        Ok(Self {
            plan,
            project,
            model,
            ids: Ids::new(Clock::system()),
            record: ClientRecord::default(),
            prompts: 0,
        })
    }

    async fn play(&mut self, rounds: u32, dice: &mut Dice, found: &mut CrashReport) -> Result<()> {
        for round in 1..=rounds {
            match dice.below(10) {
                0 => self.kill_start(dice, found).await?,
                1 | 2 => self.kill_run(dice).await?,
                _ => self.kill_server(dice, found).await?,
            }
            found.kills += 1;
            if round % CALM_EVERY == 0 || round == rounds {
                let at = format!("the calm round after kill {}", found.kills);
                self.calm(dice, found).await.context(at)?;
            }
        }
        Ok(())
    }

    fn program(&self, args: &[&str]) -> Run {
        let run = Run::new(&self.plan.binary, &self.project).args(args);
        let run = run.env("OPENCODE_DISABLE_LOCAL_SERVERS", "1").env("OPENCODE_DISABLE_MODELS_FETCH", "1");
        run.deadline(DEADLINE)
    }

    async fn serve(&self) -> Result<(Running, Client)> {
        let run = self.program(&["serve", "--port", "0"]);
        // Waiting for a line blocks the thread, and the model lives on this runtime.
        let (server, line) = tokio::task::spawn_blocking(move || -> Result<_> {
            let mut server = run.start()?;
            let line = server.line_that(|line| line.contains("listening on"))?;
            Ok((server, line))
        })
        .await??;
        let (_, url) = line.split_once(" on ").context("the line has no address")?;
        Ok((server, Client::http(url, None, None)?))
    }

    /// Kills a server while it starts.
    async fn kill_start(&mut self, dice: &mut Dice, found: &mut CrashReport) -> Result<()> {
        let server = self.program(&["serve", "--port", "0"]).start()?;
        sleep(dice.span(MOST_START)).await;
        drop(server);
        found.in_start += 1;
        Ok(())
    }

    /// Kills a `run`, which may continue a session.
    async fn kill_run(&mut self, dice: &mut Dice) -> Result<()> {
        self.prompts += 1;
        let text = model::prompt(self.prompts, dice.roll());
        let mut args = vec!["run".to_owned()];
        if let Some(session) = self.record.any_session(dice.roll()) {
            args.extend(["--session".to_owned(), session.to_string()]);
        }
        args.push(text);
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let run = self.program(&args).start()?;
        sleep(dice.span(MOST_LIFE)).await;
        drop(run);
        Ok(())
    }

    async fn kill_server(&mut self, dice: &mut Dice, found: &mut CrashReport) -> Result<()> {
        let (server, client) = self.serve().await?;
        let mut listener = JoinSet::new();
        let events = client.events_after(self.record.last_position()).await?;
        listener.spawn(receive(events));
        for _ in 0..self.plan.sessions {
            let (session, message, input) = self.prompt(&client, dice).await?;
            client.prompt_async(&session, &input).await?;
            self.record.add_prompt(&session, &message);
            found.prompts += 1;
        }
        sleep(dice.span(MOST_LIFE)).await;
        drop(server);
        // The stream ends with the server.
        let received = timeout(DEADLINE, listener.join_next()).await.context("the stream does not end")?;
        let received = received.context("there is no listener")??;
        found.events += received.len() as u64;
        self.record.add_events(received);
        Ok(())
    }

    /// Sends every session one more prompt without a kill, and checks everything.
    async fn calm(&mut self, dice: &mut Dice, found: &mut CrashReport) -> Result<()> {
        let (server, client) = self.serve().await?;
        self.record.check_log(&client, found).await?;
        for session in self.record.sessions() {
            self.prompts += 1;
            let message = self.ids.message();
            let input = input(&message, model::prompt(self.prompts, dice.roll()));
            let answered = timeout(DEADLINE, client.prompt(&session, &input)).await;
            match answered.context("a prompt has no answer")? {
                Ok(answer) => check::answer(&answer, &session, found),
                Err(error) => {
                    found.wrong.insert(format!("{session} does not answer: {error}"));
                }
            }
            self.record.add_prompt(&session, &message);
            found.prompts += 1;
        }
        let effects = self.project.read(model::EFFECTS).unwrap_or_default();
        check::doubled(&effects, found);
        for session in self.record.sessions() {
            let transcript = client.messages(&session, None).await?;
            self.record.check_prompts(&session, &transcript, found);
            check::calls(&transcript, &effects, found);
        }
        found.effects += self.record.new_effects(&effects);
        server.terminate()?;
        tokio::task::spawn_blocking(move || server.finish()).await??.success()?;
        Ok(())
    }

    /// Returns a prompt for an existing session or, now and then, for a new one.
    async fn prompt(
        &mut self,
        client: &Client,
        dice: &mut Dice,
    ) -> Result<(SessionId, MessageId, PromptInput)> {
        self.prompts += 1;
        let fresh = self.record.sessions().len() < self.plan.sessions || dice.below(8) == 0;
        let session = match self.record.any_session(dice.roll()).filter(|_| !fresh) {
            Some(session) => session,
            None => {
                let session = client.create_session(&SessionInput::default()).await?.id;
                self.record.add_session(&session);
                session
            }
        };
        let message = self.ids.message();
        let input = input(&message, model::prompt(self.prompts, dice.roll()));
        Ok((session, message, input))
    }
}

pub(crate) fn input(message: &MessageId, text: String) -> PromptInput {
    PromptInput {
        message_id: Some(message.clone()),
        parts: vec![PartInput::text(text)],
        ..PromptInput::default()
    }
}

/// Reads the stream to its end and returns the position and id of each stored event.
async fn receive(mut events: Events) -> Vec<(u64, String)> {
    let mut received = Vec::new();
    let mut last = events.position();
    while let Ok(Some(notice)) = events.next().await {
        let position = events.position();
        if let Some(at) = position
            && position != last
        {
            received.push((at, notice.id.to_string()));
        }
        last = position;
    }
    received
}
