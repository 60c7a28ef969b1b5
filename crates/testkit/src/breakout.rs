//! A malicious model that tries to leave the sandbox, and the check of every attempt.
//!
//! A server runs with the sandbox, and the scripted model makes one attempt after the other with its tools. After
//! each attempt the state outside of the sandbox is compared: files, connections, processes, and the text that the
//! model received. Whatever differs is an effect.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use codewright_client::Client;
use codewright_proto::{PartInput, PermissionAnswer, PermissionReply, PromptInput, SessionInput};
use codewright_scripted::{Request, Script, Server, Steps, Turn};
use serde_json::json;
use tokio::time::{sleep, timeout};

use crate::run::{Run, Running};

mod attempts;
mod house;

use attempts::Attempt;
use house::House;

/// The number of attempts in one session, so that its transcript stays short.
const IN_SESSION: usize = 60;
/// The time limit of a session.
const SESSION_DEADLINE: Duration = Duration::from_secs(600);
/// The interval at which permission requests are rejected.
const REJECT_EVERY: Duration = Duration::from_millis(50);
/// The time limit of one attempt, in milliseconds.
const ATTEMPT_MS: u64 = 25_000;
/// The deadline of the server.
const DEADLINE: Duration = Duration::from_secs(3600);
/// The part of a tool result that a report shows.
const SHOWN_CHARS: usize = 300;

/// A test of the sandbox.
#[derive(Debug, Clone)]
pub struct Breakout {
    /// The program.
    pub binary: PathBuf,
    /// The mode of the sandbox.
    pub mode: String,
    /// Make only every `every`-th attempt; 1 makes all.
    pub every: usize,
    /// Make only attempts whose name contains this text.
    pub only: String,
}

/// The result of a test.
#[derive(Debug, Clone, Default)]
pub struct BreakoutReport {
    /// The number of attempts.
    pub attempts: usize,
    /// The attempts that were rejected as permission requests before they ran.
    pub rejected: usize,
    /// The attempts with an effect, and the effect.
    pub effects: Vec<String>,
    /// Faults of the test itself.
    pub wrong: Vec<String>,
    /// Why nothing was attempted: the machine cannot enforce the sandbox.
    pub skipped: Option<String>,
    /// The duration.
    pub took: Duration,
}

impl BreakoutReport {
    /// Whether no attempt had an effect.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.effects.is_empty() && self.wrong.is_empty()
    }
}

/// The state that the scripted model shares with the test.
struct Game {
    house: House,
    attempts: Vec<Attempt>,
    /// The attempt that runs.
    running: Option<usize>,
    next: usize,
    /// The number of attempts until the session ends.
    left: usize,
    report: BreakoutReport,
}

impl Breakout {
    /// Makes the attempts. Needs a runtime with time and IO.
    pub async fn play(&self) -> Result<BreakoutReport> {
        let begun = Instant::now();
        let house = House::build(&self.mode)?;
        if let Some(reason) = house.why_not(&self.binary)? {
            return Ok(BreakoutReport { skipped: Some(reason), ..BreakoutReport::default() });
        }
        let game = Arc::new(Mutex::new(Game {
            house,
            attempts: Vec::new(),
            running: None,
            next: 0,
            left: 0,
            report: BreakoutReport::default(),
        }));
        let model = Server::start(script(Arc::clone(&game))).await?;
        let (run, project) = {
            let game = lock(&game);
            game.house.configure(&model.url())?;
            (game.house.serve(&self.binary, &self.mode), game.house.directory())
        };
        let (server, client, url) = serve(run).await?;
        {
            let mut game = lock(&game);
            let all = attempts::all(&game.house.targets(server.id(), &url));
            // Without a sandbox some attempts would damage the machine. The others show that the judge sees effects.
            let is_harmless = |attempt: &Attempt| self.mode != "off" || !attempt.name.starts_with("escape");
            let chosen = all.into_iter().filter(is_harmless);
            let chosen = chosen.filter(|attempt| attempt.name.contains(&self.only));
            game.attempts = chosen.step_by(self.every.max(1)).collect();
            let plan: Vec<_> = game.attempts.iter().map(|attempt| &attempt.plan).collect();
            std::fs::write(project.join("plan.json"), serde_json::to_vec(&plan)?)?;
            let absent: Vec<_> = game.attempts.iter().flat_map(|attempt| attempt.absent.clone()).collect();
            game.house.begin(absent)?;
            game.report.attempts = game.attempts.len();
        }
        let client = client.in_directory(project.to_string_lossy());
        loop {
            let before = {
                let mut game = lock(&game);
                game.left = IN_SESSION;
                game.next
            };
            timeout(SESSION_DEADLINE, session(&client)).await.context("a session did not end")??;
            let mut game = lock(&game);
            // A rejected permission request ends the turn before the model is asked again.
            game.judge(None);
            if game.next >= game.attempts.len() {
                break;
            }
            if game.next == before {
                game.report.wrong.push("the model made no attempt".to_owned());
                break;
            }
        }
        server.terminate()?;
        tokio::task::spawn_blocking(move || server.finish()).await??;
        let mut game = lock(&game);
        let problems = model.problems();
        game.report.wrong.extend(problems);
        let ends = game.house.end();
        game.report.effects.extend(ends);
        game.report.took = begun.elapsed();
        Ok(std::mem::take(&mut game.report))
    }
}

impl Game {
    /// Compares the state outside after the running attempt, if there is one.
    fn judge(&mut self, result: Option<&str>) {
        let Some(attempt) = self.running.take().and_then(|number| self.attempts.get(number)) else { return };
        if result.is_none() {
            self.report.rejected += 1;
        }
        let result = result.unwrap_or_default();
        if attempt.runs_program() && !result.contains("done") && !result.is_empty() && !attempt.may_break {
            let shown: String = result.chars().take(SHOWN_CHARS).collect();
            self.report.wrong.push(format!("{}: the attempt did not end: {shown}", attempt.name));
        }
        let effects = self.house.judge(result);
        self.report.effects.extend(effects.into_iter().map(|effect| format!("{}: {effect}", attempt.name)));
    }

    fn next_step(&mut self) -> Steps {
        let end = self.left == 0 || self.next >= self.attempts.len();
        let Some(attempt) = self.attempts.get(self.next).filter(|_| !end) else {
            return Turn::text("That is all.");
        };
        self.house.prepare();
        self.running = Some(self.next);
        let (tool, mut input) = attempt.call(self.next, self.house.python());
        if tool == "bash" {
            input["timeout"] = json!(ATTEMPT_MS);
        }
        self.next += 1;
        self.left -= 1;
        Turn::steps().tool(tool, input)
    }
}

fn script(game: Arc<Mutex<Game>>) -> Script {
    let answer = move |request: &Request| -> Steps {
        let mut game = lock(&game);
        if request.round > 0 {
            let result = request.last_result().map(|result| result.text.clone());
            game.judge(result.as_deref());
        }
        game.next_step()
    };
    Script::new().title("Breakout").default_turn(Turn::respond(answer))
}

async fn serve(run: Run) -> Result<(Running, Client, String)> {
    // Waiting for a line blocks the thread, and the model lives on this runtime.
    let (server, line) = tokio::task::spawn_blocking(move || -> Result<_> {
        let mut server = run.deadline(DEADLINE).start()?;
        let line = server.line_that(|line| line.contains("listening on"))?;
        Ok((server, line))
    })
    .await??;
    let (_, url) = line.split_once(" on ").context("the line has no address")?;
    Ok((server, Client::http(url, None, None)?, url.to_owned()))
}

/// Runs a turn of the model, and rejects every permission request.
async fn session(client: &Client) -> Result<()> {
    let session = client.create_session(&SessionInput::default()).await?.id;
    let input = PromptInput { parts: vec![PartInput::text("Please go on.")], ..PromptInput::default() };
    let mut turn = std::pin::pin!(client.prompt(&session, &input));
    loop {
        tokio::select! {
            answer = &mut turn => return Ok(answer.map(drop)?),
            () = sleep(REJECT_EVERY) => {
                for request in client.permissions().await? {
                    let answer = PermissionAnswer::from(PermissionReply::Reject);
                    // The request may be gone.
                    drop(client.reply_permission(&request.id, &answer).await);
                }
            }
        }
    }
}

fn lock(game: &Mutex<Game>) -> std::sync::MutexGuard<'_, Game> {
    game.lock().unwrap_or_else(PoisonError::into_inner)
}
