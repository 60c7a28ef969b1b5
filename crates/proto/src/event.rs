//! Events, which are stored forever, and signals, which are not stored.
//!
//! An event carries the complete new value of one row, so applying it is an upsert and
//! applying it twice changes nothing. A signal describes the current moment: a client that
//! misses one shows a less smooth picture, never a wrong one. Clients receive both as
//! `{"id", "type", "properties"}` under the names of the OpenCode API.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::pty::Pty;
use crate::{
    EventId, FileChange, FileDiff, LocationRef, Message, MessageError, MessageId, Part, PartId, PermissionId,
    PermissionReply, PermissionRequest, Project, PtyId, QuestionId, QuestionRequest, Replier, Session,
    SessionId, SessionStatus, Toast, Todo,
};

/// A stored, immutable event. All matches on it are without a wildcard.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", content = "properties")]
pub enum Event {
    /// A session was created.
    #[serde(rename = "session.created")]
    SessionCreated {
        /// The session.
        #[serde(rename = "sessionID")]
        session_id: SessionId,
        /// The value of the session.
        info: Session,
    },
    /// A session was changed.
    #[serde(rename = "session.updated")]
    SessionUpdated {
        /// The session.
        #[serde(rename = "sessionID")]
        session_id: SessionId,
        /// The new value of the session.
        info: Session,
    },
    /// A session was deleted with everything in it.
    #[serde(rename = "session.deleted")]
    SessionDeleted {
        /// The session.
        #[serde(rename = "sessionID")]
        session_id: SessionId,
        /// The last value of the session.
        info: Session,
    },
    /// A message was created or changed.
    #[serde(rename = "message.updated")]
    MessageUpdated {
        /// The session.
        #[serde(rename = "sessionID")]
        session_id: SessionId,
        /// The new value of the message.
        info: Message,
    },
    /// A message and its parts were deleted.
    #[serde(rename = "message.removed")]
    MessageRemoved {
        /// The session.
        #[serde(rename = "sessionID")]
        session_id: SessionId,
        /// The message.
        #[serde(rename = "messageID")]
        message_id: MessageId,
    },
    /// A part was created or changed.
    #[serde(rename = "message.part.updated")]
    PartUpdated {
        /// The session.
        #[serde(rename = "sessionID")]
        session_id: SessionId,
        /// The new value of the part.
        part: Part,
        /// When it changed, in milliseconds since 1970.
        time: u64,
    },
    /// A part was deleted.
    #[serde(rename = "message.part.removed")]
    PartRemoved {
        /// The session.
        #[serde(rename = "sessionID")]
        session_id: SessionId,
        /// The message.
        #[serde(rename = "messageID")]
        message_id: MessageId,
        /// The part.
        #[serde(rename = "partID")]
        part_id: PartId,
    },
    /// The todo list of a session was changed.
    #[serde(rename = "todo.updated")]
    TodoUpdated {
        /// The session.
        #[serde(rename = "sessionID")]
        session_id: SessionId,
        /// The complete new list.
        todos: Vec<Todo>,
    },
    /// A permission request waits for the user.
    #[serde(rename = "permission.asked")]
    PermissionAsked(PermissionRequest),
    /// The user replied to a permission request.
    #[serde(rename = "permission.replied")]
    PermissionReplied {
        /// The session.
        #[serde(rename = "sessionID")]
        session_id: SessionId,
        /// The request.
        #[serde(rename = "requestID")]
        request_id: PermissionId,
        /// The reply.
        reply: PermissionReply,
        /// The explanation that the model receives with a rejection.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<String>,
        /// The wider patterns that a reply of "always" allows, besides those of the request.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        wider: Vec<String>,
        /// Who replied. `None` for replies of earlier versions.
        #[serde(
            default,
            deserialize_with = "crate::replier::stored",
            skip_serializing_if = "Option::is_none"
        )]
        by: Option<Replier>,
    },
}

impl Event {
    /// Returns the session whose log holds the event.
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

    /// Returns the name in the wire format.
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

    /// Returns the version of the event's schema, which is stored after its name.
    #[must_use]
    pub fn version(&self) -> u32 {
        1
    }
}

/// The names of all signals in the wire format.
const SIGNALS: [&str; 36] = [
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
    "worktree.ready",
    "worktree.failed",
    "session.next.moved",
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
    "lsp.client.diagnostics",
    "mcp.tools.changed",
    "mcp.browser.open.failed",
    "catalog.updated",
    "integration.updated",
    "integration.connection.updated",
];

/// An event that is not stored: it describes the current moment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", content = "properties")]
pub enum Signal {
    /// The event stream starts.
    #[serde(rename = "server.connected")]
    ServerConnected {},
    /// The event stream is alive.
    #[serde(rename = "server.heartbeat")]
    ServerHeartbeat {},
    /// Text was appended to a part.
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
        /// The field: always `text`.
        field: String,
        /// The appended text.
        delta: String,
    },
    /// The status of a session changed.
    #[serde(rename = "session.status")]
    SessionStatus {
        /// The session.
        #[serde(rename = "sessionID")]
        session_id: SessionId,
        /// The new status.
        status: SessionStatus,
    },
    /// A session became idle.
    #[serde(rename = "session.idle")]
    SessionIdle {
        /// The session.
        #[serde(rename = "sessionID")]
        session_id: SessionId,
    },
    /// A turn failed.
    #[serde(rename = "session.error")]
    SessionError {
        /// The session.
        #[serde(default, rename = "sessionID", skip_serializing_if = "Option::is_none")]
        session_id: Option<SessionId>,
        /// The error.
        error: MessageError,
    },
    /// The total changes of a session were computed again.
    #[serde(rename = "session.diff")]
    SessionDiff {
        /// The session.
        #[serde(rename = "sessionID")]
        session_id: SessionId,
        /// The changed files.
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
        /// The directory of the instance; sent by the stream, not in the signal.
        #[serde(skip)]
        directory: String,
        /// The absolute path of the file.
        file: String,
    },
    /// A file was created, changed or deleted.
    #[serde(rename = "file.watcher.updated")]
    FileWatcherUpdated {
        /// The directory of the instance; sent by the stream, not in the signal.
        #[serde(skip)]
        directory: String,
        /// The absolute path of the file.
        file: String,
        /// The kind of change.
        event: FileChange,
    },
    /// The repository switched to another branch.
    #[serde(rename = "vcs.branch.updated")]
    VcsBranchUpdated {
        /// The directory of the instance; sent by the stream, not in the signal.
        #[serde(skip)]
        directory: String,
        /// The branch; absent if the head is detached.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        branch: Option<String>,
    },
    /// A project was changed.
    #[serde(rename = "project.updated")]
    ProjectUpdated(Project),
    /// The files of a new worktree were created.
    #[serde(rename = "worktree.ready")]
    WorktreeReady {
        /// The directory of the worktree; sent by the stream, not in the signal.
        #[serde(skip)]
        directory: String,
        /// The name of the worktree.
        name: String,
        /// Its branch.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        branch: Option<String>,
    },
    /// The files of a new worktree could not be created, or a start command failed.
    #[serde(rename = "worktree.failed")]
    WorktreeFailed {
        /// The directory of the worktree; sent by the stream, not in the signal.
        #[serde(skip)]
        directory: String,
        /// The failure.
        message: String,
    },
    /// A session was moved to another directory.
    #[serde(rename = "session.next.moved")]
    SessionMoved {
        /// When it was moved, in milliseconds since 1970.
        timestamp: u64,
        /// The session.
        #[serde(rename = "sessionID")]
        session_id: SessionId,
        /// The new directory.
        location: LocationRef,
        /// The directory relative to the worktree; empty at its root.
        subdirectory: String,
    },
    /// The instance of a directory was disposed; clients must read its state again.
    #[serde(rename = "server.instance.disposed")]
    InstanceDisposed {
        /// The directory.
        directory: String,
    },
    /// All instances were disposed.
    #[serde(rename = "global.disposed")]
    GlobalDisposed {},
    /// Appends text to the prompt of the terminal client.
    #[serde(rename = "tui.prompt.append")]
    TuiPromptAppend {
        /// The directory of the instance; sent by the stream, not in the signal.
        #[serde(skip)]
        directory: String,
        /// The text.
        text: String,
    },
    /// Runs a command of the terminal client's palette.
    #[serde(rename = "tui.command.execute")]
    TuiCommandExecute {
        /// The directory of the instance; sent by the stream, not in the signal.
        #[serde(skip)]
        directory: String,
        /// The name of the command.
        command: String,
    },
    /// Shows a toast in the terminal client.
    #[serde(rename = "tui.toast.show")]
    TuiToastShow {
        /// The directory of the instance; sent by the stream, not in the signal.
        #[serde(skip)]
        directory: String,
        /// The toast.
        #[serde(flatten)]
        toast: Toast,
    },
    /// Opens a session in the terminal client.
    #[serde(rename = "tui.session.select")]
    TuiSessionSelect {
        /// The session.
        #[serde(rename = "sessionID")]
        session_id: SessionId,
    },
    /// A command finished.
    #[serde(rename = "command.executed")]
    CommandExecuted {
        /// The session.
        #[serde(rename = "sessionID")]
        session_id: SessionId,
        /// The command.
        name: String,
        /// The arguments of the command.
        arguments: String,
        /// The response.
        #[serde(rename = "messageID")]
        message_id: MessageId,
    },
    /// A terminal was opened.
    #[serde(rename = "pty.created")]
    PtyCreated {
        /// The terminal.
        info: Pty,
    },
    /// A terminal was renamed or resized.
    #[serde(rename = "pty.updated")]
    PtyUpdated {
        /// The terminal.
        info: Pty,
    },
    /// The program of a terminal ended.
    #[serde(rename = "pty.exited")]
    PtyExited {
        /// The terminal.
        id: PtyId,
        /// The exit code of the program.
        #[serde(rename = "exitCode")]
        exit_code: u32,
    },
    /// A terminal was closed.
    #[serde(rename = "pty.deleted")]
    PtyDeleted {
        /// The terminal.
        id: PtyId,
    },
    /// A question of the model to the user.
    #[serde(rename = "question.asked")]
    QuestionAsked(QuestionRequest),
    /// The user answered a question.
    #[serde(rename = "question.replied")]
    QuestionReplied {
        /// The session.
        #[serde(rename = "sessionID")]
        session_id: SessionId,
        /// The request.
        #[serde(rename = "requestID")]
        request_id: QuestionId,
        /// The answers: one list per question, in order.
        answers: Vec<Vec<String>>,
    },
    /// The user rejected a question, or its run ended.
    #[serde(rename = "question.rejected")]
    QuestionRejected {
        /// The session.
        #[serde(rename = "sessionID")]
        session_id: SessionId,
        /// The request.
        #[serde(rename = "requestID")]
        request_id: QuestionId,
    },
    /// A language server started, stopped or failed.
    #[serde(rename = "lsp.updated")]
    LspUpdated {
        /// The directory of the instance; sent by the stream, not in the signal.
        #[serde(skip)]
        directory: String,
    },
    /// A language server sent the diagnostics of a file.
    #[serde(rename = "lsp.client.diagnostics")]
    LspDiagnostics {
        /// The directory of the instance; sent by the stream, not in the signal.
        #[serde(skip)]
        directory: String,
        /// The id of the server.
        #[serde(rename = "serverID")]
        server_id: String,
        /// The file.
        path: String,
    },
    /// The tools of an MCP server changed, or the server was added or removed.
    #[serde(rename = "mcp.tools.changed")]
    McpToolsChanged {
        /// The directory of the instance; sent by the stream, not in the signal.
        #[serde(skip)]
        directory: String,
        /// The name of the server.
        server: String,
    },
    /// The browser for the sign-in to an MCP server cannot be opened; the user opens the page.
    #[serde(rename = "mcp.browser.open.failed")]
    McpBrowserOpenFailed {
        /// The directory of the instance; sent by the stream, not in the signal.
        #[serde(skip)]
        directory: String,
        /// The name of the server.
        #[serde(rename = "mcpName")]
        mcp_name: String,
        /// The page.
        url: String,
    },
    /// The models of a directory were read; clients must read them again.
    #[serde(rename = "catalog.updated")]
    CatalogUpdated {
        /// The directory of the instance; sent by the stream, not in the signal.
        #[serde(skip)]
        directory: String,
    },
    /// The providers that can be connected in a directory, or their connections, were read.
    #[serde(rename = "integration.updated")]
    IntegrationUpdated {
        /// The directory of the instance; sent by the stream, not in the signal.
        #[serde(skip)]
        directory: String,
    },
    /// The user signed in to a provider, or signed out.
    #[serde(rename = "integration.connection.updated")]
    IntegrationConnectionUpdated {
        /// The directory of the instance; sent by the stream, not in the signal.
        #[serde(skip)]
        directory: String,
        /// The provider.
        #[serde(rename = "integrationID")]
        integration_id: String,
    },
}

/// The directory that a signal names, borrowed as the signal is.
macro_rules! directory_of {
    ($signal:expr) => {
        match $signal {
            Signal::InstanceDisposed { directory }
            | Signal::TuiPromptAppend { directory, .. }
            | Signal::TuiCommandExecute { directory, .. }
            | Signal::TuiToastShow { directory, .. }
            | Signal::FileEdited { directory, .. }
            | Signal::FileWatcherUpdated { directory, .. }
            | Signal::VcsBranchUpdated { directory, .. }
            | Signal::WorktreeReady { directory, .. }
            | Signal::WorktreeFailed { directory, .. }
            | Signal::LspUpdated { directory }
            | Signal::LspDiagnostics { directory, .. }
            | Signal::McpToolsChanged { directory, .. }
            | Signal::McpBrowserOpenFailed { directory, .. }
            | Signal::CatalogUpdated { directory }
            | Signal::IntegrationUpdated { directory }
            | Signal::IntegrationConnectionUpdated { directory, .. } => Some(directory),
            Signal::PartDelta { .. }
            | Signal::SessionStatus { .. }
            | Signal::SessionIdle { .. }
            | Signal::SessionError { .. }
            | Signal::SessionDiff { .. }
            | Signal::SessionCompacted { .. }
            | Signal::SessionMoved { .. }
            | Signal::ProjectUpdated(_)
            | Signal::GlobalDisposed {}
            | Signal::PtyCreated { .. }
            | Signal::PtyUpdated { .. }
            | Signal::PtyExited { .. }
            | Signal::PtyDeleted { .. }
            | Signal::TuiSessionSelect { .. }
            | Signal::CommandExecuted { .. }
            | Signal::QuestionAsked(_)
            | Signal::QuestionReplied { .. }
            | Signal::QuestionRejected { .. }
            | Signal::ServerConnected {}
            | Signal::ServerHeartbeat {} => None,
        }
    };
}

impl Signal {
    /// Returns the directory whose instance the signal is about, if it names one.
    #[must_use]
    pub fn directory(&self) -> Option<&str> {
        directory_of!(self).map(String::as_str)
    }

    /// Puts back the directory, which the JSON of a signal does not have. A signal that names none stays as it is.
    #[must_use]
    pub fn in_directory(mut self, directory: String) -> Self {
        if let Some(named) = directory_of!(&mut self) {
            *named = directory;
        }
        self
    }

    /// Returns the session of the signal, if it has one.
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
            | Self::SessionMoved { session_id, .. }
            | Self::SessionDiff { session_id, .. } => Some(session_id),
            Self::QuestionAsked(request) => Some(&request.session_id),
            Self::SessionError { session_id, .. } => session_id.as_ref(),
            Self::ServerConnected {}
            | Self::ServerHeartbeat {}
            | Self::FileEdited { .. }
            | Self::FileWatcherUpdated { .. }
            | Self::VcsBranchUpdated { .. }
            | Self::ProjectUpdated(_)
            | Self::WorktreeReady { .. }
            | Self::WorktreeFailed { .. }
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
            | Self::LspDiagnostics { .. }
            | Self::McpToolsChanged { .. }
            | Self::McpBrowserOpenFailed { .. }
            | Self::CatalogUpdated { .. }
            | Self::IntegrationUpdated { .. }
            | Self::IntegrationConnectionUpdated { .. } => None,
        }
    }
}

/// An event in the form that the log stores.
#[derive(Debug, Clone, PartialEq)]
pub struct Envelope {
    /// The id of the event.
    pub id: EventId,
    /// The position in the whole log. Readers resume from it.
    pub position: u64,
    /// The position in the session's log, starting at 0 without gaps.
    pub seq: u64,
    /// When the event was stored, in milliseconds since 1970.
    pub time: u64,
    /// The event.
    pub event: Event,
}

/// An event or a signal.
#[expect(clippy::large_enum_variant, reason = "a notice only lives until it is serialized")]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Fact {
    /// A stored event.
    Event(Event),
    /// A signal, which is not stored.
    Signal(Signal),
}

/// An event or signal with its id, as clients receive it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Notice {
    /// The id.
    pub id: EventId,
    /// The event or signal.
    #[serde(flatten)]
    pub fact: Fact,
}

impl Notice {
    /// Parses a notice. Returns `None` for an invalid notice or one of unknown type, which clients skip.
    #[must_use]
    pub fn parse(json: &str) -> Option<Self> {
        #[derive(Deserialize)]
        struct Header<'a> {
            id: EventId,
            #[serde(rename = "type", borrow)]
            kind: Cow<'a, str>,
        }
        // Parsed in two passes, because derived code for an untagged enum would first copy the
        // whole value, which may contain a long text.
        let Header { id, kind } = serde_json::from_str(json).ok()?;
        let fact = if SIGNALS.contains(&&*kind) {
            Fact::Signal(serde_json::from_str(json).ok()?)
        } else {
            Fact::Event(serde_json::from_str(json).ok()?)
        };
        Some(Self { id, fact })
    }

    /// Returns the session of the event or signal, if it has one.
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
    use std::collections::BTreeSet;

    use serde_json::{Value, json};

    use super::*;
    use crate::{Clock, Ids};

    /// The names that serde gives the variants of a type.
    fn wire_names<T: JsonSchema>() -> BTreeSet<String> {
        let schema = Value::from(schemars::schema_for!(T));
        let variants = schema["oneOf"].as_array().unwrap();
        variants.iter().map(|one| one["properties"]["type"]["const"].as_str().unwrap().to_owned()).collect()
    }

    fn tag(value: &impl Serialize) -> String {
        serde_json::to_value(value).unwrap()["type"].as_str().unwrap().to_owned()
    }

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
    fn the_name_of_an_event_is_its_name_in_json() {
        let message = json!({
            "role": "user", "id": "msg_1", "sessionID": "ses_1", "time": {"created": 1}, "agent": "build",
            "model": {"providerID": "p", "modelID": "m"},
        });
        let session = json!({
            "id": "ses_1", "slug": "s", "projectID": "global", "directory": "/", "title": "t", "version": "1",
            "time": {"created": 1, "updated": 1},
        });
        let part =
            json!({"id": "prt_1", "sessionID": "ses_1", "messageID": "msg_1", "type": "text", "text": "t"});
        // The fields of all events; each event reads its own.
        let properties = |info: &Value| {
            json!({
                "sessionID": "ses_1", "info": info, "messageID": "msg_1", "partID": "prt_1", "part": part, "time": 1,
                "todos": [], "id": "per_1", "permission": "edit", "patterns": [], "metadata": {}, "always": [],
                "requestID": "per_1", "reply": "once",
            })
        };
        for name in wire_names::<Event>() {
            let info = if name.starts_with("message") { &message } else { &session };
            let event = json!({"type": name, "properties": properties(info)});
            let event: Event = serde_json::from_value(event).unwrap();
            assert_eq!((event.name(), tag(&event)), (&*name, name.clone()));
        }
    }

    fn moved(session_id: SessionId) -> Signal {
        let location = LocationRef { directory: "/a".into() };
        Signal::SessionMoved { timestamp: 1, session_id, location, subdirectory: String::new() }
    }

    #[test]
    fn a_signal_is_recognised_by_its_name() {
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
            Signal::WorktreeReady { directory: String::new(), name: "w".into(), branch: None },
            Signal::WorktreeFailed { directory: String::new(), message: "m".into() },
            moved(ids.session()),
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
            Signal::LspDiagnostics { directory: String::new(), server_id: "rust".into(), path: "/a".into() },
            Signal::McpToolsChanged { directory: String::new(), server: "s".into() },
            Signal::McpBrowserOpenFailed { directory: String::new(), mcp_name: "s".into(), url: "u".into() },
            Signal::CatalogUpdated { directory: String::new() },
            Signal::IntegrationUpdated { directory: String::new() },
            Signal::IntegrationConnectionUpdated { directory: String::new(), integration_id: "groq".into() },
        ];
        let names: BTreeSet<_> = signals.iter().map(tag).collect();
        assert_eq!(names, wire_names::<Signal>());
        assert_eq!(names, BTreeSet::from(SIGNALS.map(str::to_owned)));
        for signal in signals {
            let notice = Notice { id: ids.event(), fact: Fact::Signal(signal) };
            let json = serde_json::to_string(&notice).unwrap();
            assert_eq!(Notice::parse(&json), Some(notice), "{json}");
        }
    }
}
