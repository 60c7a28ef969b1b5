//! Runs hostile commands through the program and checks that none hangs it or leaves processes.
//!
//! A server runs every command of the corpus as a call of the scripted model, in three ways: with a time limit,
//! followed by more commands, and aborted. One second after a call has ended, its remaining processes are
//! searched by a unique number in their arguments, by a variable and by their directory. The memory of the
//! server is measured as well.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use codewright_client::Client;
use codewright_proto::{PartInput, PromptInput, SessionInput};
use codewright_scripted::{Request, Script, Server, Steps, Turn};
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::project::Project;
use crate::run::{Run, Running};

mod corpus;

/// The number of ways to run each command.
const WAYS: usize = 3;
/// The time limit of commands that are not aborted.
const LIMIT: Duration = Duration::from_millis(1500);
/// The time from a prompt to its abort.
const ABORT_AFTER: Duration = Duration::from_millis(700);
/// A turn that takes longer hangs: far more than the limit and the time to kill its processes on a loaded machine.
const HANGS_AFTER: Duration = Duration::from_secs(25);
/// The time from the end of a turn to the search for its processes.
const LOOK_AFTER: Duration = Duration::from_secs(1);
/// A variable that every process of a case has unless it removes it.
const VARIABLE: &str = "HANG_CASE";
/// The deadline of the server.
const DEADLINE: Duration = Duration::from_secs(1200);

/// A hang test.
#[derive(Debug, Clone)]
pub struct Hang {
    /// The program.
    pub binary: PathBuf,
    /// Run only every `every`-th case; 1 runs all.
    pub every: usize,
    /// The number of passes. A memory leak shows from the second pass on.
    pub passes: usize,
    /// The number of concurrent commands.
    pub lanes: usize,
}

/// The result of a hang test.
#[derive(Debug, Clone, Default)]
pub struct HangReport {
    /// The number of commands.
    pub commands: usize,
    /// Commands whose turn did not end.
    pub hangs: Vec<String>,
    /// Commands that left processes, with these processes.
    pub survivors: Vec<String>,
    /// Other faults.
    pub wrong: Vec<String>,
    /// The memory of the server in KiB: after half of the commands, at the end, and the peak.
    pub memory_kib: [u64; 3],
    /// The longest time from a prompt to the end of the turn.
    pub longest: Duration,
}

impl HangReport {
    /// Whether every promise held.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.hangs.is_empty() && self.survivors.is_empty() && self.wrong.is_empty()
    }
}

/// A command, run in one way.
#[derive(Debug, Clone)]
struct Case {
    number: usize,
    name: String,
    line: String,
    mark: String,
    aborted: bool,
}

/// Returns the corpus.
fn cases() -> Vec<Case> {
    let own = std::process::id();
    let all = corpus::LINES.iter().flat_map(|line| (0..WAYS).map(move |way| (line, way))).enumerate();
    let case = |(number, ((name, line), way)): (usize, (&(&str, &str), usize))| {
        let mark = format!("{}.{own}", 7000 + number);
        let line = line.replace("$T", &mark).replace("$C", &number.to_string());
        let line = format!("export {VARIABLE}={mark}\n{line}");
        let (suffix, line) = match way {
            0 => ("limited", line),
            1 => ("followed by more", format!("{line}\necho more\nsleep {mark}")),
            _ => ("aborted", format!("{line}\nsleep {mark}")),
        };
        Case { number, name: format!("{name}, {suffix}"), line, mark, aborted: way == 2 }
    };
    all.map(case).collect()
}

impl Hang {
    /// Runs the corpus. Needs a runtime with time and IO.
    pub async fn play(&self) -> Result<HangReport> {
        let all = Arc::new(cases());
        let chosen: Vec<Case> = all.iter().step_by(self.every.max(1)).cloned().collect();
        let chosen: Vec<Case> = (0..self.passes.max(1)).flat_map(|_| chosen.iter().cloned()).collect();
        let model = Server::start(script(Arc::clone(&all))).await?;
        let project = Project::plain()?;
        let mut config = Project::config(&model.url());
        // There is no client to reply to a permission request, and waiting for a reply is not a hang.
        config["permission"] = json!({"*": "allow", "external_directory": "allow"});
        project.write_config(&config)?;
        let (server, client) = self.serve(&project).await?;
        let mut found = HangReport { commands: chosen.len(), ..HangReport::default() };
        let done = Arc::new(AtomicUsize::new(0));
        let mut lanes = JoinSet::new();
        let mut waiting = chosen.into_iter();
        for case in waiting.by_ref().take(self.lanes.max(1)) {
            lanes.spawn(run(client.clone(), case, project.directory().to_owned(), Arc::clone(&done)));
        }
        while let Some(outcome) = lanes.join_next().await {
            outcome.context("a lane broke")?.add_to(&mut found);
            let over = done.load(Ordering::Relaxed);
            if found.memory_kib[0] == 0 && over * 2 >= found.commands {
                found.memory_kib[0] = memory_kib(server.id(), "VmRSS:")?;
            }
            if let Some(case) = waiting.next() {
                lanes.spawn(run(client.clone(), case, project.directory().to_owned(), Arc::clone(&done)));
            }
        }
        found.memory_kib[1] = memory_kib(server.id(), "VmRSS:")?;
        found.memory_kib[2] = memory_kib(server.id(), "VmHWM:")?;
        server.terminate()?;
        tokio::task::spawn_blocking(move || server.finish()).await??;
        // Each lane searched for its own processes. These have only the directory.
        found.survivors.extend(remaining(None, project.directory()));
        found.wrong.extend(model.problems());
        model.stop().await;
        Ok(found)
    }

    async fn serve(&self, project: &Project) -> Result<(Running, Client)> {
        let run = Run::new(&self.binary, project).args(["serve", "--port", "0"]).deadline(DEADLINE);
        let run = run.env("OPENCODE_DISABLE_LOCAL_SERVERS", "1").env("OPENCODE_DISABLE_MODELS_FETCH", "1");
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
}

/// The result of one case.
struct Outcome {
    case: Case,
    took: Duration,
    hung: bool,
    error: Option<String>,
    left: Vec<String>,
}

impl Outcome {
    fn add_to(self, found: &mut HangReport) {
        let Case { number, name, .. } = &self.case;
        let name = format!("{number} {name}");
        found.longest = found.longest.max(self.took);
        if self.hung {
            found.hangs.push(format!("{name}: still running after {} ms", self.took.as_millis()));
        }
        if !self.left.is_empty() {
            found.survivors.push(format!("{name}: {}", self.left.join("; ")));
        }
        if let Some(error) = self.error {
            found.wrong.push(format!("{name}: {error}"));
        }
    }
}

async fn run(client: Client, case: Case, directory: PathBuf, done: Arc<AtomicUsize>) -> Outcome {
    let begun = Instant::now();
    let ended = timeout(HANGS_AFTER, turn(&client, &case)).await;
    let took = begun.elapsed();
    sleep(LOOK_AFTER).await;
    let mark = case.mark.clone();
    let left =
        tokio::task::spawn_blocking(move || remaining(Some(&mark), &directory)).await.unwrap_or_default();
    done.fetch_add(1, Ordering::Relaxed);
    let hung = ended.is_err();
    let error = ended.ok().and_then(Result::err).map(|error| format!("{error:#}"));
    Outcome { case, took, hung, error, left }
}

async fn turn(client: &Client, case: &Case) -> Result<()> {
    let session = client.create_session(&SessionInput::default()).await?.id;
    let parts = vec![PartInput::text(format!("Please run case-{}.", case.number))];
    let input = PromptInput { parts, ..PromptInput::default() };
    let answer = client.prompt(&session, &input);
    if case.aborted {
        let abort = async {
            sleep(ABORT_AFTER).await;
            client.abort(&session).await
        };
        let (answer, aborted) = tokio::join!(answer, abort);
        aborted?;
        answer?;
    } else {
        answer.await?;
    }
    Ok(())
}

fn script(all: Arc<Vec<Case>>) -> Script {
    let answer = move |request: &Request| -> Steps {
        let number = request.last_user().rsplit("case-").next().unwrap_or_default();
        let number = number.trim_end_matches(|c: char| !c.is_ascii_digit()).parse::<usize>().ok();
        match number.and_then(|number| all.get(number)).filter(|_| request.round == 0) {
            Some(case) => {
                let input = json!({"command": case.line, "timeout": LIMIT.as_millis() as u64});
                Turn::steps().tool("bash", input)
            }
            None => Turn::text("It is over."),
        }
    };
    Script::new().title("Hang").default_turn(Turn::respond(answer))
}

/// Returns the processes with a mark, or without a mark those in the directory.
fn remaining(mark: Option<&str>, directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let describe = |id: u32| {
        let at = Path::new("/proc").join(id.to_string());
        let stat = std::fs::read_to_string(at.join("stat")).ok()?;
        let state = stat.rsplit(')').next()?.trim().chars().next()?;
        let line = std::fs::read(at.join("cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        let is_left = match mark {
            // The supervisor of a case matches too, and ends with it.
            Some(mark) => {
                let variable = format!("{VARIABLE}={mark}");
                let variables = std::fs::read(at.join("environ")).unwrap_or_default();
                line.contains(mark)
                    || variables.split(|byte| *byte == 0).any(|one| one == variable.as_bytes())
            }
            None => std::fs::read_link(at.join("cwd")).is_ok_and(|path| path.starts_with(directory)),
        };
        let line: String = line.chars().take(80).collect();
        (is_left && !matches!(state, 'Z' | 'X')).then(|| format!("{id} ({state}) {line}"))
    };
    numbers.filter_map(describe).collect()
}

fn memory_kib(id: u32, field: &str) -> Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{id}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix(field)).context("no memory figure")?;
    line.trim().trim_end_matches("kB").trim().parse().context("the memory figure is not a number")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn the_corpus_is_large_and_every_case_has_its_own_mark() {
        let all = cases();
        assert!(all.len() >= 200, "{}", all.len());
        assert_eq!(all.iter().map(|case| &case.mark).collect::<HashSet<_>>().len(), all.len());
        assert!(all.iter().all(|case| case.line.matches(&case.mark).count() >= 2), "a line without its mark");
    }
}
