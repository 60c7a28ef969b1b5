//! What a call needs leave for.

use codewright_workspace::{Place, Workspace};
use serde_json::{Map, Value, json};

/// A leave a call needs before it may run.
#[derive(Debug, Clone, PartialEq)]
pub struct Ask {
    /// The kind of leave, which is the key of the rules: `read`, `edit`, `bash`, …
    pub permission: String,
    /// What exactly is to be allowed; every one has to be.
    pub patterns: Vec<String>,
    /// The wider patterns an answer of "always" would allow.
    pub always: Vec<String>,
    /// What helps a person to decide.
    pub metadata: Map<String, Value>,
    /// What else comes with it; that can only make the answer stricter.
    pub implied: Vec<Implied>,
}

/// Stands in the pattern of an [`Implied`] for a text that only the run tells.
pub const UNKNOWN: char = '\0';

/// How sure it is that something implied happens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Certainty {
    /// The call says so.
    #[default]
    Stated,
    /// Only the run decides. Rules that deny are asked about; rules that ask would ask about most calls.
    Possible,
    /// The call could not be analysed, so anything may happen. Every rule counts.
    Unknown,
}

/// Something that would happen with what is asked for, and is not asked for by itself.
#[derive(Debug, Clone, PartialEq)]
pub struct Implied {
    /// The kind of leave, as in [`Ask`].
    pub permission: String,
    /// What exactly would happen, perhaps with [`UNKNOWN`] parts.
    pub pattern: String,
    /// The pattern of which this is another spelling. Rules that match that one have been heard there.
    pub spelled: Option<String>,
    /// The wider pattern that an answer of "always" would allow, if there is a sensible one.
    pub always: Option<String>,
    /// How sure it is that it happens.
    pub certainty: Certainty,
}

impl Implied {
    /// Something that happens besides.
    pub fn new(permission: &str, pattern: &str) -> Self {
        Self {
            permission: permission.to_owned(),
            pattern: pattern.to_owned(),
            spelled: None,
            always: None,
            certainty: Certainty::Stated,
        }
    }

    /// The pattern as a person is shown it.
    pub fn shown(&self) -> String {
        self.pattern.replace(UNKNOWN, "\u{2026}")
    }
}

impl Ask {
    /// The fact of an ask that only a rule can allow which names the kind and more of the
    /// pattern than its scheme; a bare `*` allows it nowhere.
    pub const NAMED: &'static str = "named";

    /// The fact of an ask that says why the call could not be analysed.
    pub const REASON: &'static str = "reason";

    /// An ask for some patterns, of which "always" would allow all.
    pub fn new(permission: &str, patterns: Vec<String>) -> Self {
        let always = vec!["*".to_owned()];
        Self {
            permission: permission.to_owned(),
            patterns,
            always,
            metadata: Map::new(),
            implied: Vec::new(),
        }
    }

    /// The same with something to show.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.metadata.insert(key.to_owned(), value.into());
        self
    }

    /// The ask for a file outside the worktree, if it is outside.
    pub(crate) fn outside_file(place: &Place) -> Option<Self> {
        Self::outside(place, place.real.parent().unwrap_or(&place.real))
    }

    /// The ask for a directory outside the worktree, if it is outside.
    pub(crate) fn outside_directory(place: &Place) -> Option<Self> {
        Self::outside(place, &place.real)
    }

    fn outside(place: &Place, parent: &std::path::Path) -> Option<Self> {
        if place.inside {
            return None;
        }
        let patterns = vec![inside_of(parent)];
        Some(Self {
            permission: "external_directory".to_owned(),
            always: patterns.clone(),
            patterns,
            metadata: Map::from_iter([
                ("filepath".to_owned(), json!(place.path.to_string_lossy())),
                ("parentDir".to_owned(), json!(parent.to_string_lossy())),
            ]),
            implied: Vec::new(),
        })
    }
}

/// The pattern for everything in a directory.
pub(crate) fn inside_of(directory: &std::path::Path) -> String {
    directory.join("*").to_string_lossy().into_owned()
}

/// What rules see of a file: its relative path, and that of the file behind a link.
pub(crate) fn file_patterns(workspace: &Workspace, place: &Place) -> Vec<String> {
    let mut patterns = vec![workspace.title(&place.path)];
    let real = workspace.real_title(&place.real);
    if !patterns.contains(&real) {
        patterns.push(real);
    }
    patterns
}
