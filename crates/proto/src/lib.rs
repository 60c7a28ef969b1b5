//! The vocabulary: ids, sessions, messages, parts, events, requests and replies.
//!
//! Every other room speaks these types. What is stored, what travels over HTTP
//! and what clients hold are the same values with the same JSON; the shapes are
//! those of the OpenCode 1.18.33 API, so that its clients read ours unchanged.
//! Nothing here waits, reads or writes.

#![warn(missing_docs)]

mod clock;
mod error;
mod event;
mod id;
mod message;
mod part;
mod permission;
mod project;
mod request;
mod session;

pub use clock::Clock;
pub use error::MessageError;
pub use event::{Envelope, Event, Fact, Notice, Signal};
pub use id::{
    EventId, Ids, MessageId, ParseIdError, PartId, PermissionId, ProjectId, SessionId, ToolOutputId,
};
pub use message::{
    AssistantMessage, AssistantTime, CreatedTime, Message, MessagePath, MessageWithParts, OutputFormat,
    PromptModel, UserMessage, UserSummary,
};
pub use part::{FileAttachment, Part, PartBody, Span, StepFinish, TextPart, ToolPart, ToolSpan, ToolState};
pub use permission::{Action, PermissionReply, PermissionRequest, Rule, ToolRef};
pub use project::{PathReply, Project, ProjectTime};
pub use request::{
    ApiError, ForkInput, HealthReply, PartInput, PermissionAnswer, PromptInput, RevertInput, SessionInput,
    SessionPatch, SummarizeInput, TimePatch, UnrevertInput,
};
pub use session::{
    CacheUsage, FileDiff, KeptFile, ModelRef, Revert, Session, SessionExport, SessionStatus, SessionSummary,
    SessionTime, Share, Todo, TokenUsage,
};

/// A JSON object whose keys keep the order they were written in.
pub type Map = serde_json::Map<String, serde_json::Value>;
