//! The permissions that a call needs.

use codewright_workspace::{Place, Workspace};
use serde_json::{Map, Value, json};

/// A permission that a call needs before it may run.
#[derive(Debug, Clone, PartialEq)]
pub struct Ask {
    /// The kind of permission, which is the key of the rules: `read`, `edit`, `bash`, …
    pub permission: String,
    /// The things to be allowed. All of them must be.
    pub patterns: Vec<String>,
    /// The wider patterns that the reply "always" would allow.
    pub always: Vec<String>,
    /// Facts that help the user to decide.
    pub metadata: Map<String, Value>,
    /// Effects that come with the call. They can only make the decision stricter.
    pub implied: Vec<Implied>,
}

/// Stands in the pattern of an [`Implied`] for text that is only known when the call runs.
pub const UNKNOWN: char = '\0';

/// How certain an implied effect is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Certainty {
    /// The call states it.
    #[default]
    Stated,
    /// It depends on the run. A rule that denies it leads to a question. Rules that ask are ignored, because
    /// they would ask about most calls.
    Possible,
    /// The call could not be analysed, so anything may happen. Every rule counts.
    Unknown,
}

/// An effect of a call that is checked against the rules, but not requested separately.
#[derive(Debug, Clone, PartialEq)]
pub struct Implied {
    /// The kind of permission, as in [`Ask`].
    pub permission: String,
    /// The effect, perhaps with [`UNKNOWN`] parts.
    pub pattern: String,
    /// The pattern of which this one is another spelling. Rules that match that pattern were already applied
    /// to it.
    pub spelled: Option<String>,
    /// The wider pattern that the reply "always" would allow, if there is a sensible one.
    pub always: Option<String>,
    /// How certain the effect is.
    pub certainty: Certainty,
}

impl Implied {
    /// An effect that the call states.
    pub fn new(permission: &str, pattern: &str) -> Self {
        Self {
            permission: permission.to_owned(),
            pattern: pattern.to_owned(),
            spelled: None,
            always: None,
            certainty: Certainty::Stated,
        }
    }

    /// The pattern for display.
    pub fn display(&self) -> String {
        self.pattern.replace(UNKNOWN, "\u{2026}")
    }
}

impl Ask {
    /// The metadata key of a permission request that only a rule can allow which names the kind and more of the pattern
    /// than its scheme. A bare `*` does not allow it.
    pub const NAMED: &'static str = "named";

    /// The metadata key of a permission request that only a rule or an approval with exactly its pattern grants.
    pub const EXACT: &'static str = "exact";

    /// The permission to run a command without the sandbox, or with [`Ask::OPEN_NETWORK`]. It always needs a reply, unless a rule denies it.
    pub const SANDBOX: &'static str = "sandbox";

    /// The metadata key of the permission to run a command in the sandbox with the network of the machine.
    pub const OPEN_NETWORK: &'static str = "network";

    /// The metadata key of the reason why this machine cannot restrict the command. It then needs a reply, or a rule of
    /// the user that names it.
    pub const UNENFORCED: &'static str = "sandbox";

    /// The metadata key of the reason why the call could not be analysed.
    pub const REASON: &'static str = "reason";

    /// A permission request for some patterns. The reply "always" would allow every pattern.
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

    /// Adds a fact to the metadata.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.metadata.insert(key.to_owned(), value.into());
        self
    }

    /// The permission request for a file outside the worktree, or `None` for a file inside.
    pub(crate) fn outside_file(place: &Place) -> Option<Self> {
        Self::outside(place, place.real.parent().unwrap_or(&place.real))
    }

    /// The permission request for a directory outside the worktree, or `None` for one inside.
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

/// The names of a file that rules are matched against: its relative path, and the path of a link's target.
pub(crate) fn file_patterns(workspace: &Workspace, place: &Place) -> Vec<String> {
    let mut patterns = vec![workspace.title(&place.path)];
    let real = workspace.real_title(&place.real);
    if !patterns.contains(&real) {
        patterns.push(real);
    }
    patterns
}
