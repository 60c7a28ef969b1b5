//! The types of the API: ids, sessions, messages, parts, events, requests and replies.
//!
//! All other crates use these types. The store, the HTTP API and the clients share the same
//! values with the same JSON. The shapes are those of the OpenCode 1.18.33 API, so that its
//! clients work unchanged. This crate does no I/O.

#![warn(missing_docs)]

/// The version of the OpenCode interface that the program provides. Programs that check a version check this one.
pub const INTERFACE_VERSION: &str = "1.18.33";

mod clock;
mod command;
mod error;
mod event;
mod file;
mod id;
mod media;
mod message;
mod part;
mod permission;
mod principal;
mod project;
mod prompt;
mod pty;
mod question;
mod replier;
mod request;
mod review;
mod session;
mod size;
mod toast;
mod trust;
mod vcs;
mod worktree;

pub use clock::Clock;
pub use command::CommandInput;
pub use error::MessageError;
pub use event::{Envelope, Event, Fact, Notice, Signal};
pub use file::{ContentKind, FileChange, FileContent, FileKind, FileNode, Submatch, Text, TextMatch};
pub use id::{
    AttemptId, EventId, Ids, MessageId, ParseIdError, PartId, PermissionId, ProjectId, PtyId, QuestionId,
    SessionId, ToolOutputId,
};
pub use media::media_type;
pub use message::{
    AssistantMessage, AssistantTime, CreatedTime, Message, MessagePath, MessageWithParts, OutputFormat,
    PromptModel, UserMessage, UserSummary,
};
pub use part::{FileAttachment, Part, PartBody, Span, StepFinish, TextPart, ToolPart, ToolSpan, ToolState};
pub use permission::{Action, PermissionReply, PermissionRequest, Rule, ToolRef};
pub use principal::Principal;
pub use project::{PathReply, Project, ProjectTime};
pub use prompt::PromptBody;
pub use pty::{Pty, PtyInput, PtyPatch, PtySize, PtyStatus, PtyTicket, Shell};
pub use question::{Question, QuestionAnswers, QuestionOption, QuestionRequest};
pub use replier::{Replier, ReplyMeans};
pub use request::{
    ApiError, ForkInput, HealthReply, PartInput, PermissionAnswer, PromptInput, RevertInput, SessionInput,
    SessionPatch, ShellInput, SummarizeInput, TimePatch, UnrevertInput,
};
pub use review::{BugReport, Finding, Review, ReviewRequest, Severity};
pub use session::{
    CacheUsage, FileDiff, KeptFile, ModelRef, Revert, Session, SessionAccess, SessionExport, SessionStatus,
    SessionSummary, SessionTime, Share, ShareMode, Todo, TokenUsage,
};
pub use size::json_bytes;
pub use toast::{Toast, ToastVariant};
pub use trust::{
    TrustChange, TrustChangeKind, TrustChoice, TrustDismissal, TrustInput, TrustRecord, TrustReply,
    TrustRequest, TrustStatus,
};
pub use vcs::{VcsFile, VcsReply, VcsStatus};
pub use worktree::{LocationRef, MoveSessionInput, Worktree, WorktreeCreateInput, WorktreeDirectory};

/// A JSON object that keeps keys in order.
pub type Map = serde_json::Map<String, serde_json::Value>;
