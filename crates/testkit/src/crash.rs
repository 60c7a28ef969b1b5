//! The program killed at random moments, and what it must not have lost.
//!
//! A [`Crash`] plays rounds. In most of them a server of the program, or a `run`, gets prompts whose answers
//! stream and call tools, and is killed with SIGKILL at a random moment: while it starts, streams, runs a command,
//! stores. Every few rounds it is left alone, each session is given one more prompt, and everything is held
//! against what is known from outside:
//!
//! - an event that a client has received is in the log, under its place and id, for ever;
//! - a prompt that was accepted is in its session;
//! - the model refused no request: whatever a crash cuts off, the transcript still makes a valid one;
//! - no command ran twice, one that is recorded as done ran, and one recorded as never begun did not;
//! - after an answered prompt nothing is open any more.
//!
//! Commands leave a line each in a file that only they write, so what they did is known whatever the program says.

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

mod check;
mod known;
mod model;

use known::Known;

/// After so many rounds with a kill there is one without.
const CALM_EVERY: u32 = 5;
/// After so many rounds everything begins anew in an empty home, so that looking through the log stays short.
const ROUNDS_OF_A_HOME: u32 = 50;
/// How long a killed program lives at most after it was given its prompts.
const MOST_LIFE: Duration = Duration::from_millis(900);
/// How long a start may take that is killed.
const MOST_START: Duration = Duration::from_millis(60);
/// How long anything that is not killed may take.
const DEADLINE: Duration = Duration::from_secs(90);

/// What is played.
#[derive(Debug, Clone)]
pub struct Crash {
    /// The program.
    pub binary: PathBuf,
    /// How often it is killed.
    pub kills: u32,
    /// How many sessions have prompts at once.
    pub sessions: usize,
    /// What decides the moments; the same seed tries the same ones, as far as the machine lets it.
    pub seed: u64,
}

/// What was found.
#[derive(Debug, Clone, Default)]
pub struct Found {
    /// Times the program was killed.
    pub kills: u32,
    /// Of them while it started.
    pub in_start: u32,
    /// Prompts that were accepted.
    pub prompts: u64,
    /// Events that clients had received.
    pub events: u64,
    /// Commands that left their line.
    pub effects: u64,
    /// Calls recorded as done.
    pub done: BTreeSet<String>,
    /// Calls recorded as never begun.
    pub not_begun: BTreeSet<String>,
    /// Calls of which the record says that nobody knows.
    pub uncertain: BTreeSet<String>,
    /// Accepted prompts and received events that are gone.
    pub lost: BTreeSet<String>,
    /// Requests that the model refused.
    pub refused: BTreeSet<String>,
    /// Commands that ran twice.
    pub doubled: BTreeSet<String>,
    /// Whatever else is not as it must be.
    pub wrong: BTreeSet<String>,
}

impl Found {
    /// Whether every promise held.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.lost.is_empty() && self.refused.is_empty() && self.doubled.is_empty() && self.wrong.is_empty()
    }
}

/// A pseudo-random sequence (splitmix64), so that a seed says everything.
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.roll() % limit.max(1)
    }

    fn span(&mut self, most: Duration) -> Duration {
        Duration::from_micros(self.below(most.as_micros() as u64))
    }
}

impl Crash {
    /// Plays all rounds. Needs a runtime with time and IO.
    pub async fn play(&self) -> Result<Found> {
        let mut found = Found::default();
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

/// One data directory, its project and its model.
struct Home<'a> {
    plan: &'a Crash,
    project: Project,
    model: Server,
    ids: Ids,
    known: Known,
    prompts: u64,
}

impl<'a> Home<'a> {
    async fn new(plan: &'a Crash) -> Result<Self> {
        let model = Server::start(model::script()).await?;
        let project = Project::git()?;
        project.configure(&model.url())?;
        Ok(Self { plan, project, model, ids: Ids::new(Clock::system()), known: Known::default(), prompts: 0 })
    }

    async fn play(&mut self, rounds: u32, dice: &mut Dice, found: &mut Found) -> Result<()> {
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

    /// Killed before or while it says that it listens.
    async fn kill_start(&mut self, dice: &mut Dice, found: &mut Found) -> Result<()> {
        let server = self.program(&["serve", "--port", "0"]).start()?;
        sleep(dice.span(MOST_START)).await;
        drop(server);
        found.in_start += 1;
        Ok(())
    }

    /// A `run` that goes on with a session, killed.
    async fn kill_run(&mut self, dice: &mut Dice) -> Result<()> {
        self.prompts += 1;
        let text = model::prompt(self.prompts, dice.roll());
        let mut args = vec!["run".to_owned()];
        if let Some(session) = self.known.any_session(dice.roll()) {
            args.extend(["--session".to_owned(), session.to_string()]);
        }
        args.push(text);
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let run = self.program(&args).start()?;
        sleep(dice.span(MOST_LIFE)).await;
        drop(run);
        Ok(())
    }

    async fn kill_server(&mut self, dice: &mut Dice, found: &mut Found) -> Result<()> {
        let (server, client) = self.serve().await?;
        let mut hearing = JoinSet::new();
        let events = client.events_after(self.known.last_position()).await?;
        hearing.spawn(hear(events));
        for _ in 0..self.plan.sessions {
            let (session, message, input) = self.prompt(&client, dice).await?;
            client.prompt_async(&session, &input).await?;
            self.known.accepted(&session, &message);
            found.prompts += 1;
        }
        sleep(dice.span(MOST_LIFE)).await;
        drop(server);
        // The stream ends with the server.
        let heard = timeout(DEADLINE, hearing.join_next()).await.context("the stream does not end")?;
        let heard = heard.context("nobody listened")??;
        found.events += heard.len() as u64;
        self.known.heard(heard);
        Ok(())
    }

    /// Nothing is killed; every session answers one more prompt, and is looked at.
    async fn calm(&mut self, dice: &mut Dice, found: &mut Found) -> Result<()> {
        let (server, client) = self.serve().await?;
        self.known.check_log(&client, found).await?;
        for session in self.known.sessions() {
            self.prompts += 1;
            let message = self.ids.message();
            let input = input(&message, model::prompt(self.prompts, dice.roll()));
            let answered = timeout(DEADLINE, client.prompt(&session, &input)).await;
            match answered.context("a prompt is not answered")? {
                Ok(answer) => check::answer(&answer, &session, found),
                Err(error) => {
                    found.wrong.insert(format!("{session} does not answer: {error}"));
                }
            }
            self.known.accepted(&session, &message);
            found.prompts += 1;
        }
        let effects = self.project.read(model::EFFECTS).unwrap_or_default();
        check::doubled(&effects, found);
        for session in self.known.sessions() {
            let transcript = client.messages(&session, None).await?;
            self.known.check_prompts(&session, &transcript, found);
            check::calls(&transcript, &effects, found);
        }
        found.effects += self.known.new_effects(&effects);
        server.terminate()?;
        tokio::task::spawn_blocking(move || server.finish()).await??.success()?;
        Ok(())
    }

    /// A prompt for a session that there is or, now and then, for a new one.
    async fn prompt(
        &mut self,
        client: &Client,
        dice: &mut Dice,
    ) -> Result<(SessionId, MessageId, PromptInput)> {
        self.prompts += 1;
        let fresh = self.known.sessions().len() < self.plan.sessions || dice.below(8) == 0;
        let session = match self.known.any_session(dice.roll()).filter(|_| !fresh) {
            Some(session) => session,
            None => {
                let session = client.create_session(&SessionInput::default()).await?.id;
                self.known.made(&session);
                session
            }
        };
        let message = self.ids.message();
        let input = input(&message, model::prompt(self.prompts, dice.roll()));
        Ok((session, message, input))
    }
}

fn input(message: &MessageId, text: String) -> PromptInput {
    PromptInput {
        message_id: Some(message.clone()),
        parts: vec![PartInput::text(text)],
        ..PromptInput::default()
    }
}

/// Reads until the stream ends or breaks; what has a place in the log.
async fn hear(mut events: Events) -> Vec<(u64, String)> {
    let mut heard = Vec::new();
    let mut last = events.position();
    while let Ok(Some(notice)) = events.next().await {
        let position = events.position();
        if let Some(at) = position
            && position != last
        {
            heard.push((at, notice.id.to_string()));
        }
        last = position;
    }
    heard
}
