//! Nonsense over a socket at every route of the built program, from many threads, for as long as is wanted.
//!
//! What is asked follows from the program's own description of its routes (`GET /doc`): bodies and
//! queries in the shapes it wants and in others, with ids that it gave itself. It is sent whole, in
//! halves, in pieces, with headers that are none, over WebSockets that are none. Nothing may crash,
//! nothing may keep a whole request waiting, and no answer may be a failure that is not meant.

mod dice;
mod routes;
mod wire;

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use codewright_scripted::Script;
use serde_json::json;

use crate::{BlockingServer, Project, Run};
use dice::Dice;
use routes::Route;
use wire::{Answer, Wire};

/// How long a whole request may wait for its answer.
const HANGS_AFTER: Duration = Duration::from_secs(45);
/// How long the server may take to say that it is well, whatever else it has to do.
const WELL_WITHIN: Duration = Duration::from_secs(20);
/// Between two questions whether it is.
const PROBE: Duration = Duration::from_secs(1);
/// Faults of a kind that are kept, and characters of one that tell it from others.
const MAX_FAULTS: usize = 50;
const FAULT_CHARS: usize = 60;
/// Ids of a kind that are kept to ask with.
const MAX_IDS: usize = 200;
/// The most memory that the server may have at the end, whatever was sent.
const MAX_MEMORY_KIB: u64 = 768 * 1024;
/// What clients know as failures of the server: malformed ids, models that are none.
const MEANT: [&str; 5] = [
    "is not a valid id",
    "model not found",
    "provider not found",
    "no model provider was found",
    "is not set up",
];
/// How much seldomer routes are asked that write out the whole catalogue of models.
const SELDOM: usize = 20;

/// What is sent for how long.
#[derive(Debug, Clone)]
pub struct Fuzz {
    /// The program.
    pub binary: PathBuf,
    /// How long.
    pub time: Duration,
    /// Requests at once.
    pub lanes: usize,
    /// Where the numbers begin.
    pub seed: u64,
}

/// What came of it.
#[derive(Debug, Clone, Default)]
pub struct FuzzReport {
    /// Requests that were sent, whole or not.
    pub requests: u64,
    /// Those of them that were answered, by route and status.
    pub answered: BTreeMap<(String, u16), u64>,
    /// Routes of the program that were never answered.
    pub unanswered: Vec<String>,
    /// Whole requests without an answer in time.
    pub hangs: Vec<String>,
    /// Answers that say a failure nobody meant.
    pub failures: Vec<String>,
    /// What else went wrong: panics, an end, too much memory.
    pub wrong: Vec<String>,
    /// Memory of the server after a quarter of the time, at the end, and at most.
    pub memory_kib: [u64; 3],
}

impl FuzzReport {
    /// Whether every promise held.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.hangs.is_empty() && self.failures.is_empty() && self.wrong.is_empty()
    }

    fn add(&mut self, asked: &Asked, answer: &Answer) {
        self.requests += 1;
        match answer {
            Answer::None => {}
            Answer::Late => push(&mut self.hangs, asked.shown()),
            Answer::Said { status, body } => {
                *self.answered.entry((asked.route.clone(), *status)).or_default() += 1;
                let text = String::from_utf8_lossy(body);
                let is_meant = *status < 500 || MEANT.iter().any(|words| text.contains(words));
                if !is_meant {
                    let told: String = text.chars().take(500).collect();
                    push(&mut self.failures, format!("{status} {told}\n    for {}", asked.shown()));
                }
            }
        }
    }
}

fn push(faults: &mut Vec<String>, fault: String) {
    let begins = |fault: &str| fault.chars().take(FAULT_CHARS).collect::<String>();
    let is_known = faults.iter().any(|known| begins(known) == begins(&fault));
    if faults.len() < MAX_FAULTS && !is_known {
        faults.push(fault);
    }
}

/// A request as it is told about.
struct Asked {
    route: String,
    line: String,
    body: Vec<u8>,
}

impl Asked {
    fn shown(&self) -> String {
        let line: String = self.line.chars().take(400).collect();
        let body: String = String::from_utf8_lossy(&self.body).chars().take(400).collect();
        format!("{line} {body}")
    }
}

/// Ids that the server gave, by their first letters.
#[derive(Default)]
struct Ids(Mutex<HashMap<String, Vec<String>>>);

impl Ids {
    fn learn(&self, body: &[u8]) {
        let text = String::from_utf8_lossy(body);
        let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
        let mut known = lock(&self.0);
        for word in words.filter(|word| word.len() > 20 && word.as_bytes().get(3) == Some(&b'_')).take(64) {
            let of = known.entry(word[..3].to_owned()).or_default();
            if of.len() == MAX_IDS {
                of.remove(0);
            }
            of.push(word.to_owned());
        }
    }

    fn any(&self, prefix: &str, dice: &mut Dice) -> Option<String> {
        let known = lock(&self.0);
        let of = known.get(prefix)?;
        of.get(dice.roll(of.len().max(1))).cloned()
    }
}

/// What the lanes share.
struct Ring {
    wire: Wire,
    routes: Vec<Route>,
    ids: Ids,
    found: Mutex<FuzzReport>,
    is_over: AtomicBool,
}

impl Fuzz {
    /// Sends until the time is over.
    pub fn play(&self) -> Result<FuzzReport> {
        let model = BlockingServer::start(Script::new().text("ok").repeat())?;
        let project = Project::git()?;
        let mut config = Project::config(&model.url());
        // Nobody is there to be asked, and waiting for an answer is no hang.
        config["permission"] = json!({"*": "allow", "external_directory": "deny"});
        project.write_config(&config)?;
        project.write("src/main.rs", "fn main() {}\n")?;
        let run = Run::new(&self.binary, &project).args(["serve", "--port", "0"]);
        let run = run.env("OPENCODE_DISABLE_LOCAL_SERVERS", "1").env("OPENCODE_DISABLE_MODELS_FETCH", "1");
        let mut server = run.deadline(self.time + Duration::from_secs(300)).start()?;
        let line = server.line_that(|line| line.contains("listening on"))?;
        let address = line.split(" on http://").nth(1).context("the line has no address")?.trim().to_owned();
        let wire = Wire::new(address, HANGS_AFTER);
        let routes = routes::of(&wire)?;
        let ring = Arc::new(Ring {
            wire,
            routes,
            ids: Ids::default(),
            found: Mutex::default(),
            is_over: AtomicBool::new(false),
        });
        let end = Instant::now() + self.time;
        let lanes: Vec<_> = (0..self.lanes.max(1) as u64)
            .map(|lane| {
                let (ring, mut dice) = (Arc::clone(&ring), Dice::new(self.seed.wrapping_add(lane)));
                thread::spawn(move || {
                    while !ring.is_over.load(Ordering::Relaxed) {
                        ring.ask(&mut dice);
                    }
                })
            })
            .collect();
        let early = Instant::now() + self.time / 4;
        while Instant::now() < end {
            thread::sleep(PROBE.min(end.saturating_duration_since(Instant::now())));
            if let Err(why) = ring.wire.is_well(WELL_WITHIN) {
                push(&mut lock(&ring.found).wrong, format!("the server is not well: {why:#}"));
                break;
            }
            if Instant::now() > early && lock(&ring.found).memory_kib[0] == 0 {
                lock(&ring.found).memory_kib[0] = memory_kib(server.id(), "VmRSS:")?;
            }
        }
        ring.is_over.store(true, Ordering::Relaxed);
        let broken = lanes.into_iter().filter_map(|lane| lane.join().err()).count();
        ensure!(broken == 0, "{broken} lanes broke");
        let mut found = std::mem::take(&mut *lock(&ring.found));
        found.judge(&ring, memory_kib(server.id(), "VmRSS:"), memory_kib(server.id(), "VmHWM:"));
        server.terminate()?;
        let done = server.finish()?;
        if done.code != Some(0) {
            found.wrong.push(format!("the server ended with {:?}, signal {:?}", done.code, done.signal));
        }
        found
            .wrong
            .extend(done.stderr.lines().filter(|line| line.contains("panicked")).take(10).map(str::to_owned));
        Ok(found)
    }
}

impl FuzzReport {
    fn judge(&mut self, ring: &Ring, now: Result<u64>, peak: Result<u64>) {
        match (now, peak) {
            (Ok(now), Ok(peak)) => {
                (self.memory_kib[1], self.memory_kib[2]) = (now, peak);
                if now > MAX_MEMORY_KIB {
                    self.wrong.push(format!("the server has {now} KiB at the end"));
                }
            }
            (Err(why), _) | (_, Err(why)) => self.wrong.push(format!("the server is gone: {why:#}")),
        }
        let heard = |route: &Route| self.answered.keys().any(|(name, _)| *name == route.name());
        self.unanswered = ring.routes.iter().filter(|route| !heard(route)).map(Route::name).collect();
    }
}

impl Ring {
    fn ask(&self, dice: &mut Dice) {
        let route = &self.routes[dice.roll(self.routes.len())];
        if route.is_long() && !dice.one_in(SELDOM) {
            return;
        }
        let (path, body) = (route.path(dice, &self.ids), route.body(dice, &self.ids));
        let asked = Asked { route: route.name(), line: format!("{} {path}", route.method), body };
        let answer = self.wire.send(dice, route, &path, &asked.body);
        if let Answer::Said { body, .. } = &answer {
            self.ids.learn(body);
        }
        lock(&self.found).add(&asked, &answer);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Every change under the lock is whole by itself.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn memory_kib(id: u32, field: &str) -> Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{id}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix(field)).context("no memory figure")?;
    line.trim().trim_end_matches("kB").trim().parse().context("the memory figure is no number")
}
