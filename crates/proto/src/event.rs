//! What can happen: events, which are kept for ever, and signals, which are not.
//!
//! An event carries the whole new value of one row, so applying it is an upsert
//! and applying it twice changes nothing. A signal is true only now; losing one
//! costs smoothness, never truth. Both travel to clients as
//! `{"id", "type", "properties"}` under the names that existing clients know.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::pty::Pty;
use crate::{
    EventId, FileChange, FileDiff, Message, MessageError, MessageId, Part, PartId, PermissionId,
    PermissionReply, PermissionRequest, Project, PtyId, QuestionId, QuestionRequest, Session, SessionId,
    SessionStatus, Toast, Todo,
};

/// A fact that is stored and never changes. Matched without a wildcard everywhere.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", content = "properties")]
pub enum Event {
    /// A session was made.
    #[serde(rename = "session.created")]
    SessionCreated {
        /// The session.
        #[serde(rename = "sessionID")]
        session_id: SessionId,
        /// Its value.
        info: Session,
    },
    /// A session has a new value.
    #[serde(rename = "session.updated")]
    SessionUpdated {
        /// The session.
        #[serde(rename = "sessionID")]
        session_id: SessionId,
        /// Its new value.
        info: Session,
    },
    /// A session and all that belongs to it is gone.
    #[serde(rename = "session.deleted")]
    SessionDeleted {
        /// The session.
        #[serde(rename = "sessionID")]
        session_id: SessionId,
        /// Its last value.
        info: Session,
    },
    /// A message was made or has a new value.
    #[serde(rename = "message.updated")]
    MessageUpdated {
        /// The session.
        #[serde(rename = "sessionID")]
        session_id: SessionId,
        /// The message's new value.
        info: Message,
    },
    /// A message and its parts are gone.
    #[serde(rename = "message.removed")]
    MessageRemoved {
        /// The session.
        #[serde(rename = "sessionID")]
        session_id: SessionId,
        /// The message.
        #[serde(rename = "messageID")]
        message_id: MessageId,
    },
    /// A part was made or has a new value.
    #[serde(rename = "message.part.updated")]
    PartUpdated {
        /// The session.
        #[serde(rename = "sessionID")]
        session_id: SessionId,
        /// The part's new value.
        part: Part,
        /// When, in milliseconds since 1970.
        time: u64,
    },
    /// A part is gone.
    #[serde(rename = "message.part.removed")]
    PartRemoved {
        /// The session.
        #[serde(rename = "sessionID")]
        session_id: SessionId,
        /// Its message.
        #[serde(rename = "messageID")]
        message_id: MessageId,
        /// The part.
        #[serde(rename = "partID")]
        part_id: PartId,
    },
    /// A session's list of things to do has a new value.
    #[serde(rename = "todo.updated")]
    TodoUpdated {
        /// The session.
        #[serde(rename = "sessionID")]
        session_id: SessionId,
        /// All of the list.
        todos: Vec<Todo>,
    },
    /// A tool call waits for a user.
    #[serde(rename = "permission.asked")]
    PermissionAsked(PermissionRequest),
    /// A user decided.
    #[serde(rename = "permission.replied")]
    PermissionReplied {
        /// The session.
        #[serde(rename = "sessionID")]
        session_id: SessionId,
        /// The request.
        #[serde(rename = "requestID")]
        request_id: PermissionId,
        /// The decision.
        reply: PermissionReply,
        /// What the model is told with a rejection.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<String>,
    },
}

impl Event {
    /// The session whose log holds the event.
    #[must_use]
    pub fn session_id(&self) -> &SessionId {
        match self {
            Self::SessionCreated { session_id, .. }
            | Self::SessionUpdated { session_id, .. }
            | Self::SessionDeleted { session_id, .. }
            | Self::MessageUpdated { session_id, .. }
            | Self::MessageRemoved { session_id, .. }
            | Self::PartUpdated { session_id, .. }
            | Self::PartRemoved { session_id, .. }
            | Self::TodoUpdated { session_id, .. }
            | Self::PermissionReplied { session_id, .. } => session_id,
            Self::PermissionAsked(request) => &request.session_id,
        }
    }

    /// The name on the wire.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::SessionCreated { .. } => "session.created",
            Self::SessionUpdated { .. } => "session.updated",
            Self::SessionDeleted { .. } => "session.deleted",
            Self::MessageUpdated { .. } => "message.updated",
            Self::MessageRemoved { .. } => "message.removed",
            Self::PartUpdated { .. } => "message.part.updated",
            Self::PartRemoved { .. } => "message.part.removed",
            Self::TodoUpdated { .. } => "todo.updated",
            Self::PermissionAsked(_) => "permission.asked",
            Self::PermissionReplied { .. } => "permission.replied",
        }
    }

    /// The version of the event's shape, stored behind its name.
    #[must_use]
    pub fn version(&self) -> u32 {
        1
    }
}

/// The names of all signals.
const SIGNALS: [&str; 28] = [
    "server.connected",
    "server.heartbeat",
    "message.part.delta",
    "session.status",
    "session.idle",
    "session.error",
    "session.diff",
    "session.compacted",
    "file.edited",
    "file.watcher.updated",
    "vcs.branch.updated",
    "project.updated",
    "server.instance.disposed",
    "global.disposed",
    "tui.prompt.append",
    "tui.command.execute",
    "tui.toast.show",
    "tui.session.select",
    "command.executed",
    "pty.created",
    "pty.updated",
    "pty.exited",
    "pty.deleted",
    "question.asked",
    "question.replied",
    "question.rejected",
    "lsp.updated",
    "mcp.tools.changed",
];

/// Something true only now.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", content = "properties")]
pub enum Signal {
    /// The stream begins.
    #[serde(rename = "server.connected")]
    ServerConnected {},
    /// The stream lives.
    #[serde(rename = "server.heartbeat")]
    ServerHeartbeat {},
    /// A part has grown.
    #[serde(rename = "message.part.delta")]
    PartDelta {
        /// The session.
        #[serde(rename = "sessionID")]
        session_id: SessionId,
        /// The message.
        #[serde(rename = "messageID")]
        message_id: MessageId,
        /// The part.
        #[serde(rename = "partID")]
        part_id: PartId,
        /// Which field grew: `text`.
        field: String,
        /// By what.
        delta: String,
    },
    /// A session does something else now.
    #[serde(rename = "session.status")]
    SessionStatus {
        /// The session.
        #[serde(rename = "sessionID")]
        session_id: SessionId,
        /// What it does.
        status: SessionStatus,
    },
    /// A session has nothing left to do.
    #[serde(rename = "session.idle")]
    SessionIdle {
        /// The session.
        #[serde(rename = "sessionID")]
        session_id: SessionId,
    },
    /// A turn ended badly.
    #[serde(rename = "session.error")]
    SessionError {
        /// The session.
        #[serde(default, rename = "sessionID", skip_serializing_if = "Option::is_none")]
        session_id: Option<SessionId>,
        /// Why.
        error: MessageError,
    },
    /// What a session changed in all is known anew.
    #[serde(rename = "session.diff")]
    SessionDiff {
        /// The session.
        #[serde(rename = "sessionID")]
        session_id: SessionId,
        /// The files.
        diff: Vec<FileDiff>,
    },
    /// A session's earlier conversation was replaced by a summary.
    #[serde(rename = "session.compacted")]
    SessionCompacted {
        /// The session.
        #[serde(rename = "sessionID")]
        session_id: SessionId,
    },
    /// A tool changed a file.
    #[serde(rename = "file.edited")]
    FileEdited {
        /// Where it was at work; the stream says it, not the signal.
        #[serde(skip)]
        directory: String,
        /// The file, absolute.
        file: String,
    },
    /// A file came, was written or is gone.
    #[serde(rename = "file.watcher.updated")]
    FileWatcherUpdated {
        /// Where it matters; the stream says it, not the signal.
        #[serde(skip)]
        directory: String,
        /// The file, absolute.
        file: String,
        /// What happened to it.
        event: FileChange,
    },
    /// The repository is on another branch.
    #[serde(rename = "vcs.branch.updated")]
    VcsBranchUpdated {
        /// Where; the stream says it, not the signal.
        #[serde(skip)]
        directory: String,
        /// The branch; none on a commit that is no branch's end.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        branch: Option<String>,
    },
    /// A project has a new value.
    #[serde(rename = "project.updated")]
    ProjectUpdated(Project),
    /// A directory was put away; what clients know of it may have changed.
    #[serde(rename = "server.instance.disposed")]
    InstanceDisposed {
        /// The directory.
        directory: String,
    },
    /// All directories were put away.
    #[serde(rename = "global.disposed")]
    GlobalDisposed {},
    /// The terminal client's prompt gets more text.
    #[serde(rename = "tui.prompt.append")]
    TuiPromptAppend {
        /// Where; the stream says it, not the signal.
        #[serde(skip)]
        directory: String,
        /// The text.
        text: String,
    },
    /// The terminal client does what its palette offers under a name.
    #[serde(rename = "tui.command.execute")]
    TuiCommandExecute {
        /// Where; the stream says it, not the signal.
        #[serde(skip)]
        directory: String,
        /// The name.
        command: String,
    },
    /// The terminal client shows a note.
    #[serde(rename = "tui.toast.show")]
    TuiToastShow {
        /// Where; the stream says it, not the signal.
        #[serde(skip)]
        directory: String,
        /// The note.
        #[serde(flatten)]
        toast: Toast,
    },
    /// The terminal client opens a session.
    #[serde(rename = "tui.session.select")]
    TuiSessionSelect {
        /// The session.
        #[serde(rename = "sessionID")]
        session_id: SessionId,
    },
    /// A command has been run to its end.
    #[serde(rename = "command.executed")]
    CommandExecuted {
        /// The session.
        #[serde(rename = "sessionID")]
        session_id: SessionId,
        /// The command.
        name: String,
        /// What it was given.
        arguments: String,
        /// The answer.
        #[serde(rename = "messageID")]
        message_id: MessageId,
    },
    /// A terminal was opened.
    #[serde(rename = "pty.created")]
    PtyCreated {
        /// The terminal.
        info: Pty,
    },
    /// A terminal was named anew or has another size.
    #[serde(rename = "pty.updated")]
    PtyUpdated {
        /// The terminal.
        info: Pty,
    },
    /// The program of a terminal has ended.
    #[serde(rename = "pty.exited")]
    PtyExited {
        /// The terminal.
        id: PtyId,
        /// The program's exit code.
        #[serde(rename = "exitCode")]
        exit_code: u32,
    },
    /// A terminal is no more.
    #[serde(rename = "pty.deleted")]
    PtyDeleted {
        /// The terminal.
        id: PtyId,
    },
    /// A model waits for a user's answer.
    #[serde(rename = "question.asked")]
    QuestionAsked(QuestionRequest),
    /// A user answered.
    #[serde(rename = "question.replied")]
    QuestionReplied {
        /// The session.
        #[serde(rename = "sessionID")]
        session_id: SessionId,
        /// The request.
        #[serde(rename = "requestID")]
        request_id: QuestionId,
        /// What was chosen or written, a list for each question in order.
        answers: Vec<Vec<String>>,
    },
    /// A user would not answer, or nobody waits any more.
    #[serde(rename = "question.rejected")]
    QuestionRejected {
        /// The session.
        #[serde(rename = "sessionID")]
        session_id: SessionId,
        /// The request.
        #[serde(rename = "requestID")]
        request_id: QuestionId,
    },
    /// A language server began, ended or failed.
    #[serde(rename = "lsp.updated")]
    LspUpdated {
        /// Where; the stream says it, not the signal.
        #[serde(skip)]
        directory: String,
    },
    /// A tool server is there or gone, or has other tools.
    #[serde(rename = "mcp.tools.changed")]
    McpToolsChanged {
        /// Where; the stream says it, not the signal.
        #[serde(skip)]
        directory: String,
        /// The server's name.
        server: String,
    },
}

impl Signal {
    /// The session the signal speaks of, if it speaks of one.
    #[must_use]
    pub fn session_id(&self) -> Option<&SessionId> {
        match self {
            Self::PartDelta { session_id, .. }
            | Self::SessionStatus { session_id, .. }
            | Self::SessionIdle { session_id }
            | Self::SessionCompacted { session_id }
            | Self::TuiSessionSelect { session_id }
            | Self::CommandExecuted { session_id, .. }
            | Self::QuestionReplied { session_id, .. }
            | Self::QuestionRejected { session_id, .. }
            | Self::SessionDiff { session_id, .. } => Some(session_id),
            Self::QuestionAsked(request) => Some(&request.session_id),
            Self::SessionError { session_id, .. } => session_id.as_ref(),
            Self::ServerConnected {}
            | Self::ServerHeartbeat {}
            | Self::FileEdited { .. }
            | Self::FileWatcherUpdated { .. }
            | Self::VcsBranchUpdated { .. }
            | Self::ProjectUpdated(_)
            | Self::InstanceDisposed { .. }
            | Self::GlobalDisposed {}
            | Self::TuiPromptAppend { .. }
            | Self::TuiCommandExecute { .. }
            | Self::TuiToastShow { .. }
            | Self::PtyCreated { .. }
            | Self::PtyUpdated { .. }
            | Self::PtyExited { .. }
            | Self::PtyDeleted { .. }
            | Self::LspUpdated { .. }
            | Self::McpToolsChanged { .. } => None,
        }
    }
}

/// An event as the log keeps it.
#[derive(Debug, Clone, PartialEq)]
pub struct Envelope {
    /// The event's id.
    pub id: EventId,
    /// Its place in the whole log; readers resume from it.
    pub position: u64,
    /// Its place in its session's log, from 0 without gaps.
    pub seq: u64,
    /// When it was stored, in milliseconds since 1970.
    pub time: u64,
    /// What happened.
    pub event: Event,
}

/// An event or a signal.
#[expect(clippy::large_enum_variant, reason = "a notice lives as long as it takes to write it out")]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Fact {
    /// Kept.
    Event(Event),
    /// Not kept.
    Signal(Signal),
}

/// What a client receives.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Notice {
    /// Its id.
    pub id: EventId,
    /// What it says.
    #[serde(flatten)]
    pub fact: Fact,
}

impl Notice {
    /// Reads a notice; `None` for one whose type we do not know, which a client skips.
    #[must_use]
    pub fn parse(json: &str) -> Option<Self> {
        #[derive(Deserialize)]
        struct Head<'a> {
            id: EventId,
            #[serde(rename = "type", borrow)]
            kind: Cow<'a, str>,
        }
        // Read in two passes, because the derived one would keep a copy of a long text for every
        // kind that it tries.
        let Head { id, kind } = serde_json::from_str(json).ok()?;
        let fact = if SIGNALS.contains(&&*kind) {
            Fact::Signal(serde_json::from_str(json).ok()?)
        } else {
            Fact::Event(serde_json::from_str(json).ok()?)
        };
        Some(Self { id, fact })
    }

    /// The session it speaks of, if it speaks of one.
    #[must_use]
    pub fn session_id(&self) -> Option<&SessionId> {
        match &self.fact {
            Fact::Event(event) => Some(event.session_id()),
            Fact::Signal(signal) => signal.session_id(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Clock, Ids};

    fn project() -> Project {
        let json = r#"{"id":"global","worktree":"/","time":{"created":1,"updated":1},"sandboxes":[]}"#;
        serde_json::from_str(json).unwrap()
    }

    fn terminal(ids: &Ids) -> Pty {
        Pty {
            id: ids.pty(),
            title: "Terminal".into(),
            command: "/bin/sh".into(),
            args: vec!["-l".into()],
            cwd: "/".into(),
            status: crate::PtyStatus::Running,
            pid: 7,
            exit_code: None,
        }
    }

    #[test]
    fn every_signal_is_told_from_an_event_by_its_name() {
        let ids = Ids::seeded(Clock::stepping(1_000, 1), 1);
        let session_id = ids.session();
        let signals = [
            Signal::ServerConnected {},
            Signal::ServerHeartbeat {},
            Signal::PartDelta {
                session_id: session_id.clone(),
                message_id: ids.message(),
                part_id: ids.part(),
                field: "text".into(),
                delta: "d".into(),
            },
            Signal::SessionStatus { session_id: session_id.clone(), status: SessionStatus::Busy },
            Signal::SessionIdle { session_id: session_id.clone() },
            Signal::SessionError { session_id: Some(session_id.clone()), error: MessageError::aborted() },
            Signal::SessionCompacted { session_id: session_id.clone() },
            Signal::SessionDiff { session_id: session_id.clone(), diff: Vec::new() },
            Signal::QuestionAsked(QuestionRequest {
                id: ids.question(),
                session_id: session_id.clone(),
                questions: vec![crate::Question {
                    question: "Which?".into(),
                    header: "Which".into(),
                    options: Vec::new(),
                    multiple: None,
                    custom: None,
                }],
                tool: None,
            }),
            Signal::QuestionReplied {
                session_id: session_id.clone(),
                request_id: ids.question(),
                answers: vec![vec!["a".into()]],
            },
            Signal::QuestionRejected { session_id, request_id: ids.question() },
            Signal::FileEdited { directory: String::new(), file: "/a".into() },
            Signal::FileWatcherUpdated {
                directory: String::new(),
                file: "/a".into(),
                event: FileChange::Change,
            },
            Signal::VcsBranchUpdated { directory: String::new(), branch: Some("x".into()) },
            Signal::ProjectUpdated(project()),
            Signal::InstanceDisposed { directory: "/a".into() },
            Signal::GlobalDisposed {},
            Signal::TuiPromptAppend { directory: String::new(), text: "t".into() },
            Signal::TuiCommandExecute { directory: String::new(), command: "session.new".into() },
            Signal::TuiToastShow { directory: String::new(), toast: Toast::default() },
            Signal::TuiSessionSelect { session_id: ids.session() },
            Signal::CommandExecuted {
                session_id: ids.session(),
                name: "init".into(),
                arguments: String::new(),
                message_id: ids.message(),
            },
            Signal::PtyCreated { info: terminal(&ids) },
            Signal::PtyUpdated { info: terminal(&ids) },
            Signal::PtyExited { id: ids.pty(), exit_code: 3 },
            Signal::PtyDeleted { id: ids.pty() },
            Signal::LspUpdated { directory: String::new() },
            Signal::McpToolsChanged { directory: String::new(), server: "s".into() },
        ];
        assert_eq!(signals.len(), SIGNALS.len());
        for signal in signals {
            let notice = Notice { id: ids.event(), fact: Fact::Signal(signal) };
            let json = serde_json::to_string(&notice).unwrap();
            assert_eq!(Notice::parse(&json), Some(notice), "{json}");
        }
    }
}
