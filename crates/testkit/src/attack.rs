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
mod git;
mod harmless;
mod listener;
mod repositories;
mod requests;
mod routes;
mod scene;
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
}

impl Kind {
    /// All kinds, in the order of the report.
    pub const ALL: [Self; 6] =
        [Self::Commands, Self::Repositories, Self::Configuration, Self::Requests, Self::Routes, Self::Tools];
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
        // The slowest come first, so that no lane is left alone with one at the end.
        jobs.extend(commands::jobs(self));
        jobs.extend(routes::jobs(self));
        for case in cases() {
            let states = case.states.clone();
            for trust in states {
                let case = case.clone();
                let is_included = self.includes(&name(&case, trust))
                    && (self.form == Form::Long || (case.is_in_short && trust != Trust::None));
                if is_included {
                    jobs.push(Box::new(move |attack: &Self| vec![play(attack, &case, trust)]));
                }
            }
        }
        jobs
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
        harmless::cases(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn name(case: &Case, trust: Trust) -> String {
    format!("{}/{}{}", case.kind, case.name, trust.suffix())
}

fn play(attack: &Attack, case: &Case, trust: Trust) -> Outcome {
    let begun = Instant::now();
    let verdict = scene::play(&attack.binary, case, trust)
        .unwrap_or_else(|error| Verdict::Failed(format!("{error:#}")));
    Outcome {
        name: name(case, trust),
        kind: case.kind,
        is_hostile: case.is_hostile,
        verdict,
        took: begun.elapsed(),
    }
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
        let own = all.iter().filter(|case| case.is_hostile).count();
        assert!(own >= 400 && own + hostile.len() >= 700, "{own} hostile cases");
        let own = all.len() - own;
        assert!(own >= 100 && own + harmless.len() >= 150, "{own} harmless cases");
    }
}
