//! Measures what the sandbox adds to a command of the model.
//!
//! Two servers with the same scripted model, one without the sandbox, run a command that does nothing in turn. The
//! memory is that of the processes between the server and the command while a longer command runs.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use codewright_testkit::{BlockingServer, Project, Request, Run, Running, Script, Steps, Turn};
use nix::unistd::{SysconfVar, sysconf};
use serde_json::json;

use super::Plan;
use super::abort::request;
use super::spread::Spread;

/// The name on the command line.
pub(super) const NAME: &str = "sandbox";
/// The measured commands for each run that the command line states.
const COMMANDS_PER_RUN: usize = 10;
/// The commands before the measured ones.
const WARM_UP: usize = 5;
/// The prompt for the longer command.
const LONG: &str = "long";
/// The longer command, and the time until it runs.
const SLEEP: &str = "sleep 1.5";
/// See [`SLEEP`].
const STARTED: Duration = Duration::from_millis(900);
/// The deadline of a server.
const DEADLINE: Duration = Duration::from_secs(600);
/// The limit of the additional time of a command.
const LIMIT_MS: f64 = 5.0;
/// The limit of the additional memory of a command.
const LIMIT_KIB: f64 = 1024.0;

/// A server with one session.
struct Side {
    /// Deleted when dropped.
    _project: Project,
    server: Running,
    address: String,
    session: String,
}

/// The cost of commands.
struct Cost {
    wall_ms: Vec<f64>,
    /// Of one command.
    usage: Usage,
    helpers_kib: f64,
}

/// The CPU time and memory of a server.
#[derive(Debug, Clone, Copy)]
struct Usage {
    own_ms: f64,
    /// The time of all processes that it waited for.
    children_ms: f64,
    own_kib: f64,
}

/// Measures both modes and returns the lines of the report.
pub(super) fn measure(plan: &Plan) -> Result<String> {
    let binary = plan.program()?;
    let model = BlockingServer::start(Script::new().title("Sandbox").default_turn(Turn::respond(answer)))?;
    let count = plan.runs * COMMANDS_PER_RUN;
    let sides = [Side::start(&binary, &model, "off")?, Side::start(&binary, &model, "workspace")?];
    for side in &sides {
        for _ in 0..WARM_UP {
            side.turn("go")?;
        }
    }
    let before: Vec<_> = sides.iter().map(Side::usage).collect::<Result<_>>()?;
    let mut walls = [Vec::new(), Vec::new()];
    for _ in 0..count {
        for (side, wall) in sides.iter().zip(&mut walls) {
            wall.push(side.turn("go")?);
        }
    }
    let mut costs = Vec::new();
    for ((side, wall_ms), before) in sides.iter().zip(walls).zip(before) {
        let after = side.usage()?;
        let of_one = |after: f64, before: f64| (after - before) / count as f64;
        let usage = Usage {
            own_ms: of_one(after.own_ms, before.own_ms),
            children_ms: of_one(after.children_ms, before.children_ms),
            own_kib: of_one(after.own_kib, before.own_kib),
        };
        costs.push(Cost { wall_ms, usage, helpers_kib: side.helpers_kib()? });
    }
    for side in sides {
        side.server.terminate()?;
        side.server.finish()?;
    }
    let problems = model.problems();
    ensure!(problems.is_empty(), "the model refused something: {problems:#?}");
    lines(&costs, count)
}

fn lines(costs: &[Cost], count: usize) -> Result<String> {
    let mut text = format!(
        "\n{NAME}: a turn with the command `true`, {count} of each in turn, limits {LIMIT_MS} ms and {LIMIT_KIB} KiB above `off`\n"
    );
    for (name, cost) in ["off", "workspace"].iter().zip(costs) {
        let Cost { wall_ms, usage, helpers_kib } = cost;
        let Usage { own_ms, children_ms, own_kib } = usage;
        let spread = Spread::of(wall_ms.clone()).context("no commands")?;
        writeln!(
            text,
            "  {name:<12} wall {:>6.1} ms ({:.1} to {:.1})  cpu of the server {own_ms:>5.1} ms, of processes \
             {children_ms:>5.1} ms  memory of helpers {helpers_kib:>6.0} KiB  growth of the server {own_kib:>4.1} KiB",
            spread.median, spread.least, spread.most
        )?;
    }
    let [off, on] = costs else { return Ok(text) };
    // Turns get longer with the conversation, and machines slower and faster, so turns are compared with their neighbours.
    let pairs: Vec<f64> = on.wall_ms.iter().zip(&off.wall_ms).map(|(on, off)| on - off).collect();
    let wall = Spread::of(pairs).context("no commands")?.median;
    let cpu = on.usage.own_ms + on.usage.children_ms - off.usage.own_ms - off.usage.children_ms;
    let memory = on.helpers_kib - off.helpers_kib + on.usage.own_kib - off.usage.own_kib;
    let over = |is_over: bool| if is_over { "  OVER" } else { "" };
    writeln!(text, "  additional   wall {wall:>6.1} ms (median of neighbours){}", over(wall > LIMIT_MS))?;
    writeln!(text, "               cpu  {cpu:>6.1} ms{}", over(cpu > LIMIT_MS))?;
    writeln!(text, "               memory {memory:>6.0} KiB{}", over(memory > LIMIT_KIB))?;
    Ok(text)
}

/// One command for each prompt, and then the end of the turn.
fn answer(request: &Request) -> Steps {
    if request.round > 0 {
        return Turn::text("Done.");
    }
    let command = if request.last_user().contains(LONG) { SLEEP } else { "true" };
    Turn::steps().tool("bash", json!({ "command": command }))
}

impl Side {
    fn start(binary: &Path, model: &BlockingServer, mode: &str) -> Result<Self> {
        let project = Project::git()?;
        project.configure(&model.url())?;
        let run = Run::new(binary, &project).args(["serve", "--sandbox", mode]).deadline(DEADLINE);
        let run = run.env("OPENCODE_DISABLE_MODELS_FETCH", "1").env("OPENCODE_DISABLE_LOCAL_SERVERS", "1");
        let mut server = run.start()?;
        let line = server.line_that(|line| line.contains("listening on"))?;
        let (_, address) = line.split_once("http://").context("the line has no address")?;
        let session = request(address, "POST", "/session", Some(&json!({})))?;
        let session = session["id"].as_str().context("no session")?.to_owned();
        Ok(Self { _project: project, server, address: address.to_owned(), session })
    }

    /// Runs a turn and returns its time.
    fn turn(&self, text: &str) -> Result<f64> {
        let prompt = json!({ "parts": [{ "type": "text", "text": text }] });
        let begun = Instant::now();
        request(&self.address, "POST", &format!("/session/{}/message", self.session), Some(&prompt))?;
        Ok(begun.elapsed().as_secs_f64() * 1000.0)
    }

    fn usage(&self) -> Result<Usage> {
        let id = self.server.id();
        let fields = fields(id).context("the server has ended")?;
        let per_second = sysconf(SysconfVar::CLK_TCK)?.context("the length of a tick is unknown")? as f64;
        let ms = |from: usize| {
            let ticks = fields.iter().skip(from).take(2).filter_map(|field| field.parse::<f64>().ok());
            ticks.sum::<f64>() * 1000.0 / per_second
        };
        let status = fs::read_to_string(format!("/proc/{id}/status"))?;
        Ok(Usage { own_ms: ms(11), children_ms: ms(13), own_kib: sum_of(&status, &["VmRSS:"]) })
    }

    /// The memory that the processes between the server and a command share with no other process, in KiB.
    fn helpers_kib(&self) -> Result<f64> {
        thread::scope(|scope| {
            let turn = scope.spawn(|| self.turn(LONG));
            thread::sleep(STARTED);
            let mut family = BTreeSet::from([self.server.id()]);
            let mut found = 0.0;
            for id in processes() {
                let Some(fields) = fields(id) else { continue };
                let is_child =
                    fields.get(1).and_then(|id| id.parse().ok()).is_some_and(|id| family.contains(&id));
                if !is_child {
                    continue;
                }
                family.insert(id);
                let name = fs::read_to_string(format!("/proc/{id}/comm")).unwrap_or_default();
                if !["sh", "bash", "sleep"].contains(&name.trim()) {
                    // Other users' processes cannot be read, so the figure is for root or the own user.
                    let text = fs::read_to_string(format!("/proc/{id}/smaps_rollup")).unwrap_or_default();
                    found += sum_of(&text, &["Private_Clean:", "Private_Dirty:"]);
                }
            }
            turn.join().map_err(|_| anyhow::anyhow!("the turn panicked"))??;
            Ok(found)
        })
    }
}

/// The ids of all processes in ascending order. Parents mostly come before their children.
fn processes() -> BTreeSet<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// The fields of a process after its name, which may contain any characters: the state, the parent and so on.
fn fields(id: u32) -> Option<Vec<String>> {
    let text = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    let (_, fields) = text.rsplit_once(')')?;
    Some(fields.split_whitespace().map(str::to_owned).collect())
}

/// The sum of the lines with these names.
fn sum_of(text: &str, names: &[&str]) -> f64 {
    let value = |line: &str| line.split_whitespace().nth(1)?.parse::<f64>().ok();
    text.lines().filter(|line| names.iter().any(|name| line.starts_with(name))).filter_map(value).sum()
}
