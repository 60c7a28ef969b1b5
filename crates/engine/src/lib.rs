//! The engine: sessions and the agent loop. It connects the other crates.
//!
//! Requests are methods of [`Engine`], and events come from its subscription. Decisions about the next action, the
//! content of a request and the meaning of a chunk are pure functions of values; tasks and sockets only execute them.

#![warn(missing_docs)]

mod acp;
mod address;
mod admit;
mod attempt;
mod batch;
mod commands;
mod credential;
mod database;
mod debug;
mod documents;
mod engine;
mod error;
mod extension;
mod generate;
mod hooks;
mod hosts;
mod inner;
mod instance;
pub mod interface;
mod journal;
mod known;
mod lsp;
mod mcp;
mod models;
mod nodes;
mod outputs;
mod packages;
pub mod patch;
mod permission;
mod plugins;
mod projects;
mod prompts;
mod pty;
mod question;
mod redact;
mod remote;
mod request;
mod review;
mod run;
mod sandbox;
mod session;
mod session_file;
mod settings;
mod skill_urls;
mod subagent;
mod telemetry;
mod toolbox;
mod transfer;
#[cfg(any(test, feature = "trial"))]
pub mod trial;
mod trust;
mod users;
mod web;
mod worktrees;
mod zone;

pub use address::{Address, FileAddress};
pub use attempt::{Attempt, Progress};
pub use codewright_config::{Audience, SandboxMode};
pub use codewright_llm::{Probe as KeyProbe, Verdict as KeyVerdict};
pub use codewright_mcp::auth::Discovered;
pub use codewright_permission::reserved;
pub use codewright_plugins as plugin_host;
pub use codewright_store::inspect;
pub use codewright_store::{
    Account, Audited, Incoming, Json, Logged, Member, Members, MessagesJson, Ownership, PageLimit, Published,
    Rest, Salvage, SavedPermission, SessionFilter, Subscription, Usage, day_of,
};
pub use codewright_telemetry::{Span, carry, within};
pub use codewright_workspace::{
    Confinement, Descent, Documents, End, Ended, Mechanism, Probe, has_commands, process_descent,
    socket_descent,
};
pub use credential::{method_id, sign_in, vault};
pub use database::copy_sessions;
pub use debug::{BlockReport, PromptReport, Setting, Size};
pub use engine::{Engine, Options};
pub use error::{Error, Resource};
pub use generate::Generated;
pub use hosts::names_private_host;
pub use instance::Instance;
pub use instance::vcs::Against;
pub use interface::events::Following;
pub use journal::reading::{LogFilter, MAX_LOG_LINES};
pub use journal::{Level, carry_request, current_request, hide_credentials, within_request};
pub use mcp::OpenBrowser;
pub use mcp::operations::{ConfiguredServer, SignInPage, SignInState};
pub use models::json::Connection;
pub use nodes::NodeView;
pub use nodes::settings::NodeSettings;
pub use packages::operations::{AddedPlugin, ListedPlugin, PluginScope, UpdatedPlugin};
pub use permission::approval::approval_giver;
pub use permission::client::PermissionInput;
pub use permission::reading::KeptFiles;
pub use plugins::sign_in::SignInAnswer;
pub use plugins::{PluginApi, PluginDraft, PluginLists};
pub use projects::{ProjectDirectory, ProjectPatch};
pub use pty::Attached;
pub use request::sent_messages;
pub use sandbox::report::{SandboxLook, SandboxReport, SandboxStatus};
pub use session::relocate::Changes;
pub use session::revert::Restored;
pub use transfer::{Export, Imported, MAX_DOCUMENT_BYTES, Mode, Outcome, Summary, Texts};
pub use users::{Quota, Quotas};
