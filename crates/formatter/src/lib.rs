//! Formats changed files with the formatters that the configuration enables.
//!
//! Nothing runs unless the configuration asks for it. A formatter that fails, hangs or destroys the file never loses the
//! content: the caller's bytes are restored. A failure is reported once, and a formatter that hangs is not used again.

#![warn(missing_docs)]

mod detect;
mod run;
mod table;
mod words;

use std::collections::HashSet;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use serde_json::Value;
use tokio::sync::OnceCell;

pub use codewright_workspace::{ProgramSearch, Programs};
pub use run::{Formatted, Runner};

/// The limit of configured formatters, including the known ones.
const MAX_FORMATTERS: usize = 200;
/// The limit of reported problems.
const MAX_PROBLEMS: usize = 500;

/// The directory whose files are formatted.
#[derive(Debug, Clone)]
pub struct Place {
    /// The working directory of formatters, and where their programs are found. Configuration files are searched up to
    /// the root of the project.
    pub search: ProgramSearch,
    /// Whether the formatter `oxfmt` is offered.
    pub has_oxfmt: bool,
}

/// A formatter for clients.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// The name.
    pub name: String,
    /// The extensions of its files.
    pub extensions: Vec<String>,
    /// Whether it would run.
    pub enabled: bool,
}

/// The formatters of a directory.
#[derive(Debug)]
pub struct Formatters {
    place: Place,
    all: Vec<Formatter>,
    /// The kinds of problems that each formatter has reported.
    reported: Mutex<HashSet<(String, Kind)>>,
}

/// A failure of a formatter.
#[derive(Debug)]
struct Problem {
    kind: Kind,
    text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Kind {
    NoProgram,
    NotStarted,
    Exit(i32),
    Hung,
    Destroyed,
}

/// One formatter.
#[derive(Debug)]
struct Formatter {
    name: String,
    extensions: Vec<String>,
    environment: Vec<(String, String)>,
    source: Source,
    /// Whether a start of the program has shown that it can format.
    probed: OnceCell<bool>,
    /// Whether it hung, so that it is not used again.
    is_off: Mutex<bool>,
}

/// The origin of a formatter's command.
#[derive(Debug)]
enum Source {
    /// The configuration.
    Own(Vec<String>),
    /// The table of known formatters.
    Known(&'static table::Known),
}

impl Formatters {
    /// Reads the configuration key `formatter`. `false` and a missing key disable all formatters; every other value
    /// enables the known ones and those that it defines.
    #[must_use]
    pub fn new(config: &Value, place: Place) -> Self {
        let own = match config {
            Value::Bool(true) => None,
            Value::Object(own) => Some(own),
            _ => return Self { place, all: Vec::new(), reported: Mutex::default() },
        };
        let mut all: Vec<Formatter> = table::KNOWN.iter().map(Formatter::known).collect();
        for (name, entry) in own.into_iter().flatten().take(MAX_FORMATTERS) {
            if entry["disabled"] == true {
                all.retain(|formatter| formatter.name != *name);
                continue;
            }
            match all.iter_mut().find(|formatter| formatter.name == *name) {
                Some(known) => known.configure(entry),
                None => {
                    let source = Source::Own(texts(&entry["command"]));
                    let mut formatter = Formatter::new(name, source);
                    formatter.configure(entry);
                    all.push(formatter);
                }
            }
        }
        Self { place, all, reported: Mutex::default() }
    }

    /// Returns whether any formatter is configured.
    #[must_use]
    pub fn is_on(&self) -> bool {
        !self.all.is_empty()
    }

    /// Returns all formatters. It reads files and starts no program, so a formatter that must be started to be sure
    /// counts as enabled.
    #[must_use]
    pub fn list(&self) -> Vec<Listed> {
        let listed = |formatter: &Formatter| Listed {
            name: formatter.name.clone(),
            extensions: formatter.extensions.clone(),
            enabled: !formatter.is_off() && self.command(formatter).is_some_and(|_| formatter.is_proven()),
        };
        self.all.iter().map(listed).collect()
    }

    /// Returns a problem unless this formatter has reported one of this kind before.
    fn report(&self, formatter: &Formatter, problem: Problem) -> Option<String> {
        let Problem { kind, text } = problem;
        let mut reported = self.reported.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = reported.len() < MAX_PROBLEMS && reported.insert((formatter.name.clone(), kind));
        is_new.then(|| format!("formatter `{}` {text}", formatter.name))
    }

    /// Returns the command of a formatter, or `None` if the project does not use it or its program is missing.
    fn command(&self, formatter: &Formatter) -> Option<Vec<String>> {
        let command = match &formatter.source {
            Source::Own(command) => detect::own(&self.place, command),
            Source::Known(known) => detect::known(&self.place, known, |name| self.is_enabled(name)),
        };
        command.filter(|command| self.untrusted_code(command).is_none())
    }

    /// The code of an untrusted project that a command would run.
    fn untrusted_code(&self, command: &[String]) -> Option<&'static str> {
        let is_trusted = self.place.search.programs == Programs::All;
        if is_trusted { None } else { detect::code_of_project(&self.place, command) }
    }

    /// Returns whether the formatter of this name would run.
    fn is_enabled(&self, name: &str) -> bool {
        let formatter = self.all.iter().find(|formatter| formatter.name == name);
        formatter.is_some_and(|formatter| !formatter.is_off() && self.command(formatter).is_some())
    }
}

impl Formatter {
    fn new(name: &str, source: Source) -> Self {
        Self {
            name: name.to_owned(),
            extensions: Vec::new(),
            environment: Vec::new(),
            source,
            probed: OnceCell::new(),
            is_off: Mutex::default(),
        }
    }

    fn known(known: &'static table::Known) -> Self {
        let extensions = known.extensions.iter().map(|&extension| extension.to_owned()).collect();
        Self { extensions, ..Self::new(known.name, Source::Known(known)) }
    }

    /// Applies an entry of the configuration.
    fn configure(&mut self, entry: &Value) {
        if entry["command"].is_array() {
            self.source = Source::Own(texts(&entry["command"]));
        }
        if entry["extensions"].is_array() {
            self.extensions = texts(&entry["extensions"]);
        }
        let variables = entry["environment"].as_object().into_iter().flatten();
        let variables =
            variables.filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())));
        self.environment.extend(variables);
    }

    /// Returns whether it formats files of this name.
    fn suits(&self, file: &Path) -> bool {
        let name = file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        // A file whose whole name is the extension, such as `.zig`, has none.
        self.extensions
            .iter()
            .any(|extension| name.len() > extension.len() && name.ends_with(extension.as_str()))
    }

    fn is_off(&self) -> bool {
        *self.is_off.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn turn_off(&self) {
        *self.is_off.lock().unwrap_or_else(PoisonError::into_inner) = true;
    }

    /// Returns whether no start of the program has shown that it cannot format.
    fn is_proven(&self) -> bool {
        self.probed.get().is_none_or(|proven| *proven)
    }
}

fn texts(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}
