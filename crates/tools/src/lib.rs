//! What a tool is, and the built-in ones.
//!
//! A tool is a name, a description, a schema for its input, the list of leaves a
//! call needs, and the call. Tools never ask for leave themselves and never see
//! a session: whoever runs them does both, the same way for every tool.

#![warn(missing_docs)]

mod ask;
mod cx;
mod effect;
mod error;
mod host;
mod jobs;
mod known;
mod leave;
mod output;
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

use std::sync::Arc;

pub use ask::{Ask, Certainty, Implied, UNKNOWN};
pub use cx::{Environment, FileLocks, Progress, ToolCx};
pub use effect::{Effects, FileEffect};
pub use error::ToolError;
pub use host::{Answers, Choice, Handed, Host, Nobody, Question as UserQuestion, Work};
pub use jobs::{Jobs, OwnJobs};
pub use known::KnownFiles;
pub use leave::Leave;
pub use output::{Attachment, Output};
pub use reading::ReadRules;
pub use render::{Unfilled, render};
pub use schema::conform;
pub use skill::Skill;
pub use tool::apply_patch::ApplyPatch;
pub use tool::background::Background;
pub use tool::bash::{Bash, run_for_user};
pub use tool::batch::{Batch, BatchCall};
pub use tool::edit::Edit;
pub use tool::glob::Glob;
pub use tool::grep::Grep;
pub use tool::list::List;
pub use tool::lsp::Lsp;
pub use tool::multiedit::MultiEdit;
pub use tool::plan::{PlanEnter, PlanExit};
pub use tool::question::Question;
pub use tool::read::{Read, ToldInstructions};
pub use tool::skill::LoadSkill;
pub use tool::task::Task;
pub use tool::todoread::TodoRead;
pub use tool::todowrite::TodoWrite;
pub use tool::webfetch::WebFetch;
pub use tool::websearch::{CodeSearch, SearchEngine, WebSearch};
pub use tool::write::Write;
pub use tool::{AnyTool, Boxed, Tool, erase};
pub use trim::{Bounds, MAX_BYTES, MAX_LINES, trim};
pub use web::{Sent, Web, WebAnswer, WebError, WebRequest};

/// The tools that are there under conditions: experiments, and those that older versions had.
///
/// `year` is told to models that search the web.
pub fn conditional(year: u64) -> Vec<Arc<dyn AnyTool>> {
    vec![
        erase(Background),
        erase(Batch),
        erase(CodeSearch),
        erase(List),
        erase(Lsp),
        erase(MultiEdit),
        erase(TodoRead),
        erase(WebSearch { year }),
    ]
}

/// The tools that come with the program, in the order models are shown them.
pub fn builtin() -> Vec<Arc<dyn AnyTool>> {
    vec![
        erase(ApplyPatch),
        erase(Bash),
        erase(Edit),
        erase(Glob),
        erase(Grep),
        erase(PlanEnter),
        erase(PlanExit),
        erase(Question),
        erase(Read),
        erase(LoadSkill),
        erase(Task::default()),
        erase(TodoWrite),
        erase(WebFetch),
        erase(Write),
    ]
}
