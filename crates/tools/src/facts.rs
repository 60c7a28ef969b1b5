//! The facts of a tool that decide how the program treats its calls.
//!
//! Each tool declares its facts next to its code. No other code compares tool names.

use serde_json::{Map, Value};

/// The conditions under which tools are offered.
#[derive(Debug, Clone, Copy, Default)]
pub struct Setup {
    /// The current year, for models that search the web.
    pub year: u64,
    /// Whether a user can answer questions.
    pub can_ask: bool,
    /// Whether plans are written to files.
    pub has_plans: bool,
    /// Whether the model may propose a plan.
    pub can_propose_plans: bool,
    /// Whether commands may run in the background.
    pub has_background_commands: bool,
    /// Whether subagents may run in the background.
    pub has_background_tasks: bool,
    /// Whether every model may search the web.
    pub has_web_search: bool,
    /// Whether language servers are offered.
    pub has_language_servers: bool,
}

/// The model that tools are offered to.
#[derive(Debug, Clone, Copy)]
pub struct ModelName<'a> {
    /// The provider's id in the configuration.
    pub provider_id: &'a str,
    /// The model's name on the wire.
    pub api_id: &'a str,
}

/// The effect of a tool on files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// It changes nothing, so an interrupted call can be repeated.
    None,
    /// It reports each file that it changes.
    Reported,
    /// It may change any file.
    Unknown,
}

/// The lists that contain a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listing {
    /// Models are offered it.
    Offered,
    /// Models are offered it only if it is switched on, but may call it anyway: older versions had it.
    Accepted,
    /// It exists only if it is switched on.
    Optional,
}

/// The use that a tool makes of the session's todo list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TodoAccess {
    /// It does not use the list.
    None,
    /// It needs the list.
    Read,
    /// Its metadata contains the new list.
    Write,
}

/// A change of one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileEdit {
    /// The file was created.
    Added,
    /// The file has new content.
    Changed,
    /// The file was removed.
    Removed,
}

/// Finds the changed files in the metadata of an output.
type EditsOf = for<'a> fn(&'a Map<String, Value>) -> Vec<(&'a str, FileEdit)>;

/// Finds the path of a file in the arguments of a call.
type OpensOf = for<'a> fn(&'a Value) -> Option<&'a str>;

/// Changes the arguments of a call, given the name that the model wrote.
type Adapt = fn(&str, &mut Value);

/// The facts of a tool.
#[derive(Debug, Clone, Copy)]
pub struct Facts {
    /// The permission that its calls need, if it is not named like the tool.
    pub permission: Option<&'static str>,
    /// Its effect on files.
    pub effect: Effect,
    /// Whether it starts programs, which the sandbox must restrict.
    pub starts_commands: bool,
    /// The files that a call changed, according to the output's metadata.
    pub edits: EditsOf,
    /// The file that a call opens for reading, according to its arguments.
    pub opens: OpensOf,
    /// Whether it finds files by itself, so that rules about reading must filter its output.
    pub finds_files: bool,
    /// Whether it limits its own output.
    pub limits_output: bool,
    /// Its use of the session's todo list.
    pub todos: TodoAccess,
    /// Whether its description has a placeholder for the list of agents.
    pub lists_agents: bool,
    /// Its position in the list that the API returns. Tools without a position follow by name.
    pub position: Option<u8>,
    /// Other names under which models call it.
    pub aliases: &'static [&'static str],
    /// Turns other forms of arguments into that of the schema: those of an alias, and those that models know from elsewhere.
    pub adapt: Adapt,
    /// The form of its arguments, for models that called it with others.
    pub form: Option<&'static str>,
    /// The lists that contain it.
    pub listing: Listing,
    /// Whether it exists under these conditions.
    pub is_available: fn(&Setup) -> bool,
    /// Whether it is for this model.
    pub suits: fn(ModelName<'_>, &Setup) -> bool,
}

impl Facts {
    /// A tool of which nothing is known: it may change any file.
    pub const PLAIN: Self = Self {
        permission: None,
        effect: Effect::Unknown,
        starts_commands: false,
        edits: |_| Vec::new(),
        opens: |_| None,
        finds_files: false,
        limits_output: false,
        todos: TodoAccess::None,
        lists_agents: false,
        position: None,
        aliases: &[],
        adapt: |_, _| {},
        form: None,
        listing: Listing::Offered,
        is_available: |_| true,
        suits: |_, _| true,
    };
}

impl Setup {
    /// The conditions under which every tool exists.
    pub fn everything(year: u64) -> Self {
        Self {
            year,
            can_ask: true,
            has_plans: true,
            can_propose_plans: true,
            has_background_commands: true,
            has_background_tasks: true,
            has_web_search: true,
            has_language_servers: true,
        }
    }
}
