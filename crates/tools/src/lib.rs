//! The tools that the model calls.
//!
//! A tool has a name, a description, a schema for its arguments, a function that returns the permissions a
//! call needs, and a function that runs the call. Tools do not request these permissions themselves and have
//! no access to the session: the engine does both for every tool in the same way.

#![warn(missing_docs)]

mod arguments;
mod ask;
mod brackets;
mod cx;
mod effect;
mod error;
mod facts;
mod host;
mod jobs;
mod known;
mod output;
mod permission;
mod reading;
mod render;
mod schema;
mod skill;
pub mod tags;
mod tool;
#[cfg(any(test, feature = "trial"))]
pub mod trial;
mod trim;
mod web;

use std::sync::{Arc, LazyLock};

pub use arguments::{Arguments, arguments};
pub use codewright_permission::{Ask, Certainty, Implied, Lift, Permission, Policy, UNKNOWN};
pub use codewright_workspace::Opening;
pub use cx::{Environment, FileLock, FileLocks, Judged, Progress, ToolCx};
pub use effect::{Effects, FileEffect};
pub use error::ToolError;
pub use facts::{Effect, Facts, FileEdit, Listing, ModelName, Setup, TodoAccess};
pub use host::{
    Answers, CallIdentity, Choice, Completed, Completion, CompletionMessage, Host, LanguageAnswer,
    LanguageQuery, NoHost, Question as UserQuestion, TaskInput, TaskOutcome,
};
pub use jobs::{Jobs, OwnJobs};
pub use known::KnownFiles;
pub use output::{Attachment, Output};
pub use permission::PermissionRequests;
pub use reading::{Namesake, ReadRules};
pub use render::{Unfilled, render};
pub use schema::{conform, has_variants};
pub use skill::Skill;
pub use tool::apply_patch::ApplyPatch;
pub use tool::background::Background;
pub use tool::bash::{Bash, run_for_user};
pub use tool::batch::{Batch, BatchCall};
pub use tool::edit::Edit;
pub use tool::glob::Glob;
pub use tool::grep::Grep;
pub use tool::list::{List, tree};
pub use tool::lsp::Lsp;
pub use tool::multiedit::MultiEdit;
pub use tool::plan::{PlanEnter, PlanExit};
pub use tool::question::Question;
pub use tool::read::{LoadedInstructions, Read, ReadText};
pub use tool::skill::LoadSkill;
pub use tool::task::Task;
pub use tool::todoread::TodoRead;
pub use tool::todowrite::TodoWrite;
pub use tool::webfetch::WebFetch;
pub use tool::websearch::{CodeSearch, SearchEngine, WebSearch};
pub use tool::write::Write;
pub use tool::{AnyTool, Boxed, Tool, erase};
pub use trim::{Bounds, MAX_BYTES, MAX_LINES, trim};
pub use web::{Sent, Web, WebAnswer, WebError, WebRequest, is_public};

/// Every built-in tool. A new tool is added here and nowhere else.
fn all(setup: &Setup) -> Vec<Arc<dyn AnyTool>> {
    vec![
        erase(ApplyPatch),
        erase(Background),
        erase(Bash),
        erase(Batch),
        erase(CodeSearch),
        erase(Edit),
        erase(Glob),
        erase(Grep),
        erase(List),
        erase(Lsp),
        erase(MultiEdit),
        erase(PlanEnter),
        erase(PlanExit),
        erase(Question),
        erase(Read),
        erase(LoadSkill),
        erase(Task { background: setup.has_background_tasks }),
        erase(TodoRead),
        erase(TodoWrite),
        erase(WebFetch),
        erase(WebSearch { year: setup.year }),
        erase(Write),
    ]
}

/// The built-in tools that exist under these conditions, sorted by name.
pub fn builtin(setup: &Setup) -> Vec<Arc<dyn AnyTool>> {
    let mut tools = all(setup);
    tools.retain(|tool| (tool.facts().is_available)(setup));
    tools.sort_by_key(|tool| tool.name().to_lowercase());
    tools
}

/// The facts of the built-in tool of that name, available or not.
pub fn facts(name: &str) -> Option<&'static Facts> {
    static TOOLS: LazyLock<Vec<Arc<dyn AnyTool>>> = LazyLock::new(|| all(&Setup::default()));
    TOOLS.iter().find(|tool| tool.name() == name).map(|tool| tool.facts())
}
