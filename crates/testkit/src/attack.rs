//! Hostile repositories, configurations, requests and tool calls that the program must withstand.
//!
//! A [`Case`] sets up a project, does something that a user or a client would do, and names the effects that
//! must not occur. Every hostile case also fails if a canary file appears, if a secret of the user reaches the
//! model or another listener, if a process hangs, or if a listener that the repository names is contacted
//! before the repository is trusted. A harmless case must work without a permission request.
//!
//! Each case is played in every [`Trust`] state that it names, with its own project and home.
//!
//! To add a case, add an entry to one of the tables in `attack/`, or a few lines to one of the functions there:
//!
//! ```text
//! hostile(Kind::Configuration, "shell")
//!     .file("opencode.json", r#"{"shell": "@P/evil.sh"}"#)
//!     .script("evil.sh", "touch @C")
//!     .calls([("bash", r#"{"command": "ls"}"#)])
//! ```
//!
//! In all texts `@P` stands for the project, `@H` for the home, `@O` for a directory outside the project,
//! `@C` for the canary file, `@S` for the user's secret, `@K` for the user's key, `@L` for the address of the
//! listener and `@M` for that of the scripted model.

use std::collections::VecDeque;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

mod case;
mod commands;
mod configuration;
mod exchanges;
mod git;
mod harmless;
mod identities;
mod listener;
mod loads;
mod members;
mod open;
mod ordinary;
mod people;
mod plugins;
mod published;
mod repositories;
mod requests;
mod routes;
mod scene;
mod spellings;
mod tools;
mod traced;
mod wire;

pub use case::Case;
pub use traced::{TracedRun, TracedRuns};

/// The default number of concurrent plays.
const LANES: usize = 4;

/// The subject of a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// Shell commands that try to get around permission rules.
    Commands,
    /// Files of a repository besides its configuration: git settings, links, odd files.
    Repositories,
    /// The keys of a repository's configuration.
    Configuration,
    /// Requests to a server.
    Requests,
    /// Every route of a server, requested by a page of another site.
    Routes,
    /// Tool calls of a model.
    Tools,
    /// Names that a confined process exchanges before the program uses them: caches, arguments, attachments.
    Exchanges,
    /// Programs with more rights that load what a process with fewer rights, or a repository, wrote.
    Loads,
    /// Replies, rules and requests of members, plugins and imported documents.
    Principals,
    /// Spellings of one value that two parsers could read differently.
    Spellings,
    /// Control files, settings that lead to programs, secrets of the program, and denied files.
    Identities,
    /// The attacks on other agents that became public this year.
    Published,
}

impl Kind {
    /// All kinds, in the order of the report.
    pub const ALL: [Self; 12] = [
        Self::Commands,
        Self::Repositories,
        Self::Configuration,
        Self::Requests,
        Self::Routes,
        Self::Tools,
        Self::Exchanges,
        Self::Loads,
        Self::Principals,
        Self::Spellings,
        Self::Identities,
        Self::Published,
    ];
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Commands => "commands",
            Self::Repositories => "repositories",
            Self::Configuration => "configuration",
            Self::Requests => "requests",
            Self::Routes => "routes",
            Self::Tools => "tools",
            Self::Exchanges => "exchanges",
            Self::Loads => "loads",
            Self::Principals => "principals",
            Self::Spellings => "spellings",
            Self::Identities => "identities",
            Self::Published => "published",
        })
    }
}

/// How much the user trusts the project.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trust {
    /// The user has not decided.
    Untrusted,
    /// The environment trusts every directory.
    All,
    /// The environment trusts no directory.
    None,
}

impl Trust {
    /// The value of `CODEWRIGHT_TRUST`, if it is set.
    fn variable(self) -> Option<&'static str> {
        match self {
            Self::Untrusted => None,
            Self::All => Some("all"),
            Self::None => Some("none"),
        }
    }

    fn suffix(self) -> &'static str {
        match self {
            Self::Untrusted => "",
            Self::All => " (trusted)",
            Self::None => " (none)",
        }
    }
}

/// The result of a play.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The attack had no effect, or the harmless case worked.
    Held,
    /// The attack had a forbidden effect, or the harmless case did not work.
    Failed(String),
    /// A harmless case needed permission.
    NeedsPermission(String),
    /// The case cannot be played here.
    Skipped(String),
}

/// One play of a case.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// The stable name of the case, with its trust state.
    pub name: String,
    /// The subject of the case.
    pub kind: Kind,
    /// Whether the case is an attack.
    pub is_hostile: bool,
    /// The result.
    pub verdict: Verdict,
    /// The time of the play, or its share if several attempts were played together.
    pub took: Duration,
}

/// The part of the corpus that is played.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Everything.
    Long,
    /// A representative part for the test suite.
    Short,
    /// The attacks without the protection: the sandbox is off, all is permitted and trusted. Each must have its effect,
    /// otherwise it proves nothing.
    Unprotected,
}

/// The corpus, ready to be played.
#[derive(Debug, Clone)]
pub struct Attack {
    /// The program.
    pub binary: PathBuf,
    /// The number of concurrent plays.
    pub lanes: usize,
    /// The part that is played.
    pub form: Form,
    /// Play only cases whose name contains one of these texts. An empty list plays all.
    pub only: Vec<String>,
    /// Called with each outcome.
    pub progress: fn(&Outcome),
}

/// A unit of work of a lane.
type Job = Box<dyn FnOnce(&Attack) -> Vec<Outcome> + Send>;

impl Attack {
    /// Creates an attack on a program with the whole corpus.
    pub fn new(binary: impl Into<PathBuf>) -> Self {
        Self { binary: binary.into(), lanes: LANES, form: Form::Long, only: Vec::new(), progress: |_| {} }
    }

    /// Plays the corpus and returns the outcomes, sorted by kind and name.
    #[must_use]
    pub fn play(&self) -> Vec<Outcome> {
        let jobs: Mutex<VecDeque<Job>> = Mutex::new(self.jobs().into());
        let found = Mutex::new(Vec::new());
        thread::scope(|scope| {
            for _ in 0..self.lanes.max(1) {
                scope.spawn(|| {
                    loop {
                        let job = jobs.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
                        let Some(job) = job else { return };
                        let mut outcomes = job(self);
                        outcomes.retain(|outcome| self.includes(&outcome.name));
                        outcomes.iter().for_each(self.progress);
                        found.lock().unwrap_or_else(PoisonError::into_inner).extend(outcomes);
                    }
                });
            }
        });
        let mut found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
        found.sort_by(|a, b| (a.kind, &a.name).cmp(&(b.kind, &b.name)));
        found
    }

    fn jobs(&self) -> Vec<Job> {
        let mut jobs: Vec<Job> = Vec::new();
        if self.form == Form::Unprotected {
            let controlled =
                cases().into_iter().filter(|case| case.is_hostile && case.uncontrolled.is_none());
            for case in controlled.filter(|case| self.includes_any(case, Trust::All)) {
                jobs.push(Box::new(move |attack: &Self| play_unprotected(attack, &case)));
            }
            return jobs;
        }
        // The slowest come first, so that no lane is left alone with one at the end.
        jobs.extend(commands::jobs(self));
        jobs.extend(routes::jobs(self));
        for case in cases() {
            let states = case.states.clone();
            for trust in states {
                let case = case.clone();
                let is_included = self.includes_any(&case, trust)
                    && (self.form == Form::Long
                        || (case.is_in_short && trust != Trust::None && !open::is_open(&case)));
                if is_included {
                    jobs.push(Box::new(move |attack: &Self| play(attack, &case, trust)));
                }
            }
        }
        jobs
    }

    /// Whether the case or one of its rows is played.
    fn includes_any(&self, case: &Case, trust: Trust) -> bool {
        let whole = name(case, trust);
        self.includes(&whole) || case.rows.iter().any(|(row, _)| self.includes(&format!("{whole}/{row}")))
    }

    fn includes(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|part| name.contains(part.as_str()))
    }
}

/// Returns every case that is played on its own.
#[must_use]
pub fn cases() -> Vec<Case> {
    [
        git::cases(),
        repositories::cases(),
        configuration::cases(),
        requests::cases(),
        tools::cases(),
        exchanges::cases(),
        loads::cases(),
        members::cases(),
        plugins::cases(),
        spellings::cases(),
        identities::cases(),
        published::cases(),
        harmless::cases(),
        ordinary::cases(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn name(case: &Case, trust: Trust) -> String {
    format!("{}/{}{}", case.kind, case.name, trust.suffix())
}

fn play(attack: &Attack, case: &Case, trust: Trust) -> Vec<Outcome> {
    let begun = Instant::now();
    let (verdict, rows) =
        scene::play(&attack.binary, case, trust).unwrap_or_else(|error| broken(case, &error));
    outcomes(case, trust, Verdicts { verdict, rows, begun })
}

/// Plays an attack without the protection. An attack without an effect has failed, because it proves nothing.
fn play_unprotected(attack: &Attack, case: &Case) -> Vec<Outcome> {
    let begun = Instant::now();
    let turned = |verdict: Verdict| match verdict {
        Verdict::Held => Verdict::Failed("it has no effect without the protection either".to_owned()),
        Verdict::Failed(_) => Verdict::Held,
        other => other,
    };
    let played = scene::play_unprotected(&attack.binary, case);
    let (verdict, rows) = match played {
        // A case with rows has its effects there.
        Ok((verdict, rows)) if rows.is_empty() => (turned(verdict), rows),
        Ok((_, rows)) => (Verdict::Held, rows.into_iter().map(turned).collect()),
        Err(error) => broken(case, &error),
    };
    outcomes(case, Trust::All, Verdicts { verdict, rows, begun })
}

fn broken(case: &Case, error: &anyhow::Error) -> (Verdict, Vec<Verdict>) {
    let verdict = Verdict::Failed(format!("{error:#}"));
    (verdict.clone(), vec![verdict; case.rows.len()])
}

/// The verdicts about a case and its rows.
struct Verdicts {
    verdict: Verdict,
    rows: Vec<Verdict>,
    begun: Instant,
}

/// Returns an outcome for each row and, unless the case has rows only, one for the case.
fn outcomes(case: &Case, trust: Trust, verdicts: Verdicts) -> Vec<Outcome> {
    let count = u32::try_from(case.rows.len().max(1)).unwrap_or(1);
    let took = verdicts.begun.elapsed() / count;
    let outcome = |name: String, verdict: Verdict| Outcome {
        name,
        kind: case.kind,
        is_hostile: case.is_hostile,
        verdict,
        took,
    };
    let whole = name(case, trust);
    if case.rows.is_empty() {
        return vec![outcome(whole, verdicts.verdict)];
    }
    let rows = case.rows.iter().zip(verdicts.rows);
    let mut all: Vec<Outcome> =
        rows.map(|((row, _), verdict)| outcome(format!("{whole}/{row}"), verdict)).collect();
    // A fault of the whole play, such as a canary, is not hidden by rows that hold.
    if verdicts.verdict != Verdict::Held {
        all.push(outcome(whole, verdicts.verdict));
    }
    all
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_case_has_a_unique_name_and_there_are_enough() {
        let all = cases();
        let names: HashSet<_> = all.iter().map(|case| (case.kind, case.name.clone())).collect();
        let twice: Vec<_> = all
            .iter()
            .filter(|case| {
                all.iter().filter(|other| other.kind == case.kind && other.name == case.name).count() > 1
            })
            .map(|case| &case.name)
            .collect();
        assert_eq!(names.len(), all.len(), "{twice:?}");
        let commands = crate::escape::GROUPS.iter().flat_map(|group| group.attempts);
        let (harmless, hostile): (Vec<_>, Vec<_>) =
            commands.map(|one| one.expected == crate::escape::Expected::Run).partition(|is_done| *is_done);
        let size = |case: &Case| case.rows.len().max(1);
        let own: usize = all.iter().filter(|case| case.is_hostile).map(size).sum();
        assert!(own >= 700 && own + hostile.len() >= 1000, "{own} hostile cases");
        let own: usize = all.iter().filter(|case| !case.is_hostile).map(size).sum();
        assert!(own + harmless.len() >= 300, "{own} harmless cases");
    }
}
