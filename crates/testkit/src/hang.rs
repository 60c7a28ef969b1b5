//! Hostile commands through the whole program: none may hold it, and nothing may be left of any.
//!
//! A server of the program runs every command of the corpus as a call of its scripted model, in up to three
//! ways: with a time limit, with more work behind it, and aborted. One second after a call has ended it is
//! looked for processes that it left: by a number in their arguments that only this case has, by a variable,
//! and by their directory. The server's memory is read along.

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

/// Ways in which one command line is tried.
const WAYS: usize = 3;
/// The time limit of commands that are not aborted.
const LIMIT: Duration = Duration::from_millis(1500);
/// When a command is aborted, after its prompt.
const ABORT_AFTER: Duration = Duration::from_millis(700);
/// A turn that lasts longer hangs: far more than the limit and the time to kill what is left, on a loaded machine.
const HANGS_AFTER: Duration = Duration::from_secs(25);
/// When it is looked for what is left.
const LOOK_AFTER: Duration = Duration::from_secs(1);
/// The variable that every process of a case has, unless it takes care not to.
const VARIABLE: &str = "HANG_CASE";
/// How long the whole server may run.
const DEADLINE: Duration = Duration::from_secs(1200);

/// What is played.
#[derive(Debug, Clone)]
pub struct Hang {
    /// The program.
    pub binary: PathBuf,
    /// Every how many-th case is tried; 1 for all.
    pub every: usize,
    /// How often those are tried; memory that is kept shows from the second time on.
    pub passes: usize,
    /// Commands at work at once.
    pub lanes: usize,
}

/// What was found.
#[derive(Debug, Clone, Default)]
pub struct Hung {
    /// Commands that were run.
    pub commands: usize,
    /// Those whose turn did not end.
    pub hangs: Vec<String>,
    /// Those that left processes, and which.
    pub survivors: Vec<String>,
    /// Those that failed in some other way.
    pub wrong: Vec<String>,
    /// The server's memory after half of the commands and at the end, and the most it ever had, in KiB.
    pub memory_kib: [u64; 3],
    /// The longest time from a prompt to the end of its turn.
    pub longest: Duration,
}

impl Hung {
    /// Whether every promise held.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.hangs.is_empty() && self.survivors.is_empty() && self.wrong.is_empty()
    }
}

/// One command, tried in one way.
#[derive(Debug, Clone)]
struct Case {
    number: usize,
    name: String,
    line: String,
    mark: String,
    aborted: bool,
}

/// The whole corpus.
fn cases() -> Vec<Case> {
    let own = std::process::id();
    let all = corpus::LINES.iter().flat_map(|line| (0..WAYS).map(move |way| (line, way))).enumerate();
    let case = |(number, ((name, line), way)): (usize, (&(&str, &str), usize))| {
        let mark = format!("{}.{own}", 7000 + number);
        let line = line.replace("$T", &mark).replace("$C", &number.to_string());
        let line = format!("export {VARIABLE}={mark}\n{line}");
        let (suffix, line) = match way {
            0 => ("limited", line),
            1 => ("with more behind", format!("{line}\necho more\nsleep {mark}")),
            _ => ("aborted", format!("{line}\nsleep {mark}")),
        };
        Case { number, name: format!("{name}, {suffix}"), line, mark, aborted: way == 2 }
    };
    all.map(case).collect()
}

impl Hang {
    /// Runs the corpus. Needs a runtime with time and IO.
    pub async fn play(&self) -> Result<Hung> {
        let all = Arc::new(cases());
        let wanted: Vec<Case> = all.iter().step_by(self.every.max(1)).cloned().collect();
        let wanted: Vec<Case> = (0..self.passes.max(1)).flat_map(|_| wanted.iter().cloned()).collect();
        let model = Server::start(script(Arc::clone(&all))).await?;
        let project = Project::plain()?;
        let mut config = Project::config(&model.url());
        // Nobody is there to be asked, and waiting for an answer is no hang.
        config["permission"] = json!({"*": "allow", "external_directory": "allow"});
        project.write_config(&config)?;
        let (server, client) = self.serve(&project).await?;
        let mut found = Hung { commands: wanted.len(), ..Hung::default() };
        let done = Arc::new(AtomicUsize::new(0));
        let mut lanes = JoinSet::new();
        let mut waiting = wanted.into_iter();
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
        // Each lane looked for its own; these had another's directory.
        found.survivors.extend(left(None, project.directory()));
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

/// How one case went.
struct Outcome {
    case: Case,
    took: Duration,
    hung: bool,
    error: Option<String>,
    left: Vec<String>,
}

impl Outcome {
    fn add_to(self, found: &mut Hung) {
        let Case { number, name, .. } = &self.case;
        let name = format!("{number} {name}");
        found.longest = found.longest.max(self.took);
        if self.hung {
            found.hangs.push(format!("{name}: still at work after {} ms", self.took.as_millis()));
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
    let left = tokio::task::spawn_blocking(move || left(Some(&mark), &directory)).await.unwrap_or_default();
    done.fetch_add(1, Ordering::Relaxed);
    let hung = ended.is_err();
    let error = ended.ok().and_then(Result::err).map(|error| format!("{error:#}"));
    Outcome { case, took, hung, error, left }
}

async fn turn(client: &Client, case: &Case) -> Result<()> {
    let session = client.create_session(&SessionInput::default()).await?.id;
    let parts = vec![PartInput::text(format!("Please run case-{}.", case.number))];
    let input = PromptInput { parts, ..PromptInput::default() };
    let answered = client.prompt(&session, &input);
    if case.aborted {
        let abort = async {
            sleep(ABORT_AFTER).await;
            client.abort(&session).await
        };
        let (answered, aborted) = tokio::join!(answered, abort);
        aborted?;
        answered?;
    } else {
        answered.await?;
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

/// Processes with a mark, or, without one, in the directory.
fn left(mark: Option<&str>, directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let describe = |id: u32| {
        let at = Path::new("/proc").join(id.to_string());
        let stat = std::fs::read_to_string(at.join("stat")).ok()?;
        let state = stat.rsplit(')').next()?.trim().chars().next()?;
        let line = std::fs::read(at.join("cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        let is_left = match mark {
            // The supervisor of a case has its line too, and is gone with it.
            Some(mark) => {
                let variable = format!("{VARIABLE}={mark}");
                let variables = std::fs::read(at.join("environ")).unwrap_or_default();
                line.contains(mark)
                    || variables.split(|byte| *byte == 0).any(|one| one == variable.as_bytes())
            }
            None => std::fs::read_link(at.join("cwd")).is_ok_and(|place| place.starts_with(directory)),
        };
        let line: String = line.chars().take(80).collect();
        (is_left && !matches!(state, 'Z' | 'X')).then(|| format!("{id} ({state}) {line}"))
    };
    numbers.filter_map(describe).collect()
}

fn memory_kib(id: u32, field: &str) -> Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{id}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix(field)).context("no memory figure")?;
    line.trim().trim_end_matches("kB").trim().parse().context("the memory figure is no number")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn the_corpus_is_large_and_every_case_can_be_told_apart() {
        let all = cases();
        assert!(all.len() >= 200, "{}", all.len());
        assert_eq!(all.iter().map(|case| &case.mark).collect::<HashSet<_>>().len(), all.len());
        assert!(all.iter().all(|case| case.line.matches(&case.mark).count() >= 2), "a line without its mark");
    }
}
