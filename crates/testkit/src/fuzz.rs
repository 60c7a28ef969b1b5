//! Sends random requests to every route of the program over a socket, from several threads.
//!
//! The requests derive from the API document of the program (`GET /doc`): valid and invalid bodies and queries,
//! with ids that the server returned before. They are sent whole, cut off, in pieces, with invalid headers and
//! over invalid WebSockets. The program must not crash, must answer every complete request in time, and must
//! not answer with an unexpected failure.

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

/// The longest time from a complete request to its answer.
const HANGS_AFTER: Duration = Duration::from_secs(45);
/// The longest time of a health check under load.
const HEALTHY_WITHIN: Duration = Duration::from_secs(20);
/// The interval of health checks.
const PROBE: Duration = Duration::from_secs(1);
/// The number of faults to keep of each kind.
const MAX_FAULTS: usize = 50;
/// Faults with the same first characters are the same fault.
const FAULT_CHARS: usize = 60;
/// The number of ids to keep of each kind.
const MAX_IDS: usize = 200;
/// The largest memory of the server at the end.
const MAX_MEMORY_KIB: u64 = 768 * 1024;
/// Parts of expected failures, which clients rely on: malformed ids and missing models.
const EXPECTED_FAILURES: [&str; 5] = [
    "is not a valid id",
    "model not found",
    "provider not found",
    "no model provider was found",
    "is not set up",
];
/// Routes that return the whole model catalog are requested so many times less often.
const RARE: usize = 20;

/// A fuzz test.
#[derive(Debug, Clone)]
pub struct Fuzz {
    /// The program.
    pub binary: PathBuf,
    /// The duration.
    pub time: Duration,
    /// The number of concurrent requests.
    pub lanes: usize,
    /// The seed of the random numbers.
    pub seed: u64,
}

/// The result of a fuzz test.
#[derive(Debug, Clone, Default)]
pub struct FuzzReport {
    /// The number of requests, complete or not.
    pub requests: u64,
    /// The number of answers by route and status.
    pub answered: BTreeMap<(String, u16), u64>,
    /// Routes without any answer.
    pub unanswered: Vec<String>,
    /// Complete requests without an answer in time.
    pub hangs: Vec<String>,
    /// Answers with an unexpected failure.
    pub failures: Vec<String>,
    /// Other faults: panics, an exit of the server, too much memory.
    pub wrong: Vec<String>,
    /// The memory of the server in KiB: after a quarter of the time, at the end, and the peak.
    pub memory_kib: [u64; 3],
}

impl FuzzReport {
    /// Whether every promise held.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.hangs.is_empty() && self.failures.is_empty() && self.wrong.is_empty()
    }

    fn add(&mut self, request: &SentRequest, answer: &Answer) {
        self.requests += 1;
        match answer {
            Answer::None => {}
            Answer::Late => push(&mut self.hangs, request.summary()),
            Answer::Received { status, body } => {
                *self.answered.entry((request.route.clone(), *status)).or_default() += 1;
                let text = String::from_utf8_lossy(body);
                let is_expected = *status < 500 || EXPECTED_FAILURES.iter().any(|words| text.contains(words));
                if !is_expected {
                    let answer: String = text.chars().take(500).collect();
                    push(&mut self.failures, format!("{status} {answer}\n    for {}", request.summary()));
                }
            }
        }
    }
}

fn push(faults: &mut Vec<String>, fault: String) {
    let beginning = |fault: &str| fault.chars().take(FAULT_CHARS).collect::<String>();
    let is_duplicate = faults.iter().any(|other| beginning(other) == beginning(&fault));
    if faults.len() < MAX_FAULTS && !is_duplicate {
        faults.push(fault);
    }
}

/// A request as it is reported.
struct SentRequest {
    route: String,
    line: String,
    body: Vec<u8>,
}

impl SentRequest {
    fn summary(&self) -> String {
        let line: String = self.line.chars().take(400).collect();
        let body: String = String::from_utf8_lossy(&self.body).chars().take(400).collect();
        format!("{line} {body}")
    }
}

/// Ids that the server returned, by their prefix.
#[derive(Default)]
struct Ids(Mutex<HashMap<String, Vec<String>>>);

impl Ids {
    fn collect(&self, body: &[u8]) {
        let text = String::from_utf8_lossy(body);
        let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
        let mut ids = lock(&self.0);
        for word in words.filter(|word| word.len() > 20 && word.as_bytes().get(3) == Some(&b'_')).take(64) {
            let of = ids.entry(word[..3].to_owned()).or_default();
            if of.len() == MAX_IDS {
                of.remove(0);
            }
            of.push(word.to_owned());
        }
    }

    fn any(&self, prefix: &str, dice: &mut Dice) -> Option<String> {
        let ids = lock(&self.0);
        let of = ids.get(prefix)?;
        of.get(dice.roll(of.len().max(1))).cloned()
    }
}

/// The state that all lanes share.
struct Shared {
    wire: Wire,
    routes: Vec<Route>,
    ids: Ids,
    found: Mutex<FuzzReport>,
    is_over: AtomicBool,
}

impl Fuzz {
    /// Sends requests until the time is over.
    pub fn play(&self) -> Result<FuzzReport> {
        let model = BlockingServer::start(Script::new().text("ok").repeat())?;
        let project = Project::git()?;
        let mut config = Project::config(&model.url());
        // There is no client to reply to a permission request, and waiting for a reply is not a hang.
        config["permission"] = json!({"*": "allow", "external_directory": "deny"});
        project.write_config(&config)?;
        project.write("src/main.rs", "fn main() {}\n")?;
        let run = Run::new(&self.binary, &project).args(["serve", "--port", "0"]);
        let run = run.env("OPENCODE_DISABLE_LOCAL_SERVERS", "1").env("OPENCODE_DISABLE_MODELS_FETCH", "1");
        let mut server = run.deadline(self.time + Duration::from_secs(300)).start()?;
        let line = server.line_that(|line| line.contains("listening on"))?;
        let address = line.split(" on http://").nth(1).context("the line has no address")?.trim().to_owned();
        let wire = Wire::new(address, HANGS_AFTER);
        let routes = routes::read(&wire)?;
        let shared = Arc::new(Shared {
            wire,
            routes,
            ids: Ids::default(),
            found: Mutex::default(),
            is_over: AtomicBool::new(false),
        });
        let end = Instant::now() + self.time;
        let lanes: Vec<_> = (0..self.lanes.max(1) as u64)
            .map(|lane| {
                let (shared, mut dice) = (Arc::clone(&shared), Dice::new(self.seed.wrapping_add(lane)));
                thread::spawn(move || {
                    while !shared.is_over.load(Ordering::Relaxed) {
                        shared.send(&mut dice);
                    }
                })
            })
            .collect();
        let early = Instant::now() + self.time / 4;
        while Instant::now() < end {
            thread::sleep(PROBE.min(end.saturating_duration_since(Instant::now())));
            if let Err(why) = shared.wire.check_health(HEALTHY_WITHIN) {
                push(&mut lock(&shared.found).wrong, format!("the server is not healthy: {why:#}"));
                break;
            }
            if Instant::now() > early && lock(&shared.found).memory_kib[0] == 0 {
                lock(&shared.found).memory_kib[0] = memory_kib(server.id(), "VmRSS:")?;
            }
        }
        shared.is_over.store(true, Ordering::Relaxed);
        let broken = lanes.into_iter().filter_map(|lane| lane.join().err()).count();
        ensure!(broken == 0, "{broken} lanes broke");
        let mut found = std::mem::take(&mut *lock(&shared.found));
        found.judge(&shared, memory_kib(server.id(), "VmRSS:"), memory_kib(server.id(), "VmHWM:"));
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
    fn judge(&mut self, shared: &Shared, now: Result<u64>, peak: Result<u64>) {
        match (now, peak) {
            (Ok(now), Ok(peak)) => {
                (self.memory_kib[1], self.memory_kib[2]) = (now, peak);
                if now > MAX_MEMORY_KIB {
                    self.wrong.push(format!("the server uses {now} KiB at the end"));
                }
            }
            (Err(why), _) | (_, Err(why)) => self.wrong.push(format!("the server is gone: {why:#}")),
        }
        let is_answered = |route: &Route| self.answered.keys().any(|(name, _)| *name == route.name());
        self.unanswered = shared.routes.iter().filter(|route| !is_answered(route)).map(Route::name).collect();
    }
}

impl Shared {
    fn send(&self, dice: &mut Dice) {
        let route = &self.routes[dice.roll(self.routes.len())];
        if route.is_long() && !dice.one_in(RARE) {
            return;
        }
        let (path, body) = (route.path(dice, &self.ids), route.body(dice, &self.ids));
        let request = SentRequest { route: route.name(), line: format!("{} {path}", route.method), body };
        let answer = self.wire.send(dice, route, &path, &request.body);
        if let Answer::Received { body, .. } = &answer {
            self.ids.collect(body);
        }
        lock(&self.found).add(&request, &answer);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Every change under the lock is complete, so a poisoned lock is fine.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn memory_kib(id: u32, field: &str) -> Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{id}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix(field)).context("no memory figure")?;
    line.trim().trim_end_matches("kB").trim().parse().context("the memory figure is not a number")
}
