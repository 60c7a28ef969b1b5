//! What comes in, and what goes out.

use std::collections::BTreeMap;

use codewright_proto::{
    CommandInput, MessageId, MessageWithParts, Notice, PathReply, PermissionAnswer, PermissionId,
    PermissionRequest, PromptInput, QuestionId, QuestionRequest, Session, SessionId, SessionStatus,
    ShellInput, Todo, TrustChoice, TrustDismissal, TrustInput, TrustReply,
};
use crossterm::event::{KeyEvent, MouseEvent};
use serde_json::Value;

use crate::clipboard::{Clip, Desk};
use crate::prompt::Draft;
use crate::review::{Change, Source};

/// Everything that can change what is shown.
#[derive(Debug)]
pub(crate) enum Msg {
    Key(KeyEvent),
    Paste(String),
    Mouse(MouseEvent),
    Resize(u16, u16),
    /// Time has passed.
    Tick,
    /// Something happened on the server.
    Notice(Box<Notice>),
    /// The stream of events is open: from now on nothing is missed.
    Connected,
    /// The stream broke off.
    Lost(String),
    Reply(Reply),
}

/// What came of a command.
#[derive(Debug)]
pub(crate) enum Reply {
    /// What the server has in the directory.
    Started(Box<Started>),
    /// The session that was asked for at the start.
    Opened(Box<Session>),
    Sessions(Vec<Session>),
    Messages {
        session: SessionId,
        messages: Vec<MessageWithParts>,
        older: Option<String>,
    },
    Older {
        session: SessionId,
        messages: Vec<MessageWithParts>,
        older: Option<String>,
    },
    Session(Box<Session>),
    Todos {
        session: SessionId,
        todos: Vec<Todo>,
    },
    Files {
        query: String,
        files: Vec<String>,
    },
    Providers(Value),
    /// All providers, and how one can sign in to them.
    AllProviders {
        providers: Value,
        methods: Value,
    },
    /// A sign-in has begun.
    SignIn {
        provider: String,
        method: usize,
        told: Value,
    },
    Skills(Value),
    /// The tool and language servers and the formatters; none where they could not be fetched.
    Servers {
        mcp: Option<Value>,
        lsp: Option<Value>,
        formatters: Option<Value>,
    },
    /// The directories and workspaces of the project.
    Places {
        directories: Value,
        workspaces: Value,
    },
    /// A session was published.
    Shared(Box<Session>),
    /// By which road a text was copied; false if by none.
    Copied {
        told: String,
        done: bool,
    },
    /// What was in the clipboard, or why nothing came of it.
    Pasted(Result<Clip, String>),
    /// What changed, for the viewer.
    Changes {
        source: Source,
        changes: Result<Vec<Change>, String>,
    },
    /// The text that the editor left.
    Edited(String),
    /// The trust of a directory; `None` if the server did not answer or has no workspace trust.
    Trust {
        directory: String,
        reply: Option<TrustReply>,
    },
    /// A trust decision was stored, or why not and the trust as it is now.
    TrustDecided {
        directory: String,
        decision: TrustChoice,
        answer: Result<TrustReply, (String, Option<TrustReply>)>,
    },
    /// Whether the server noted that the user decides later.
    TrustDismissed {
        directory: String,
        is_noted: bool,
    },
    /// A prompt was not taken in; what was written must not be lost.
    Unsent {
        draft: Draft,
        error: String,
    },
    /// Messages could not be fetched.
    Unfetched {
        session: SessionId,
        error: String,
    },
    /// Something else was not done.
    Failed(String),
    /// Something was done that cannot be seen otherwise.
    Done(String),
}

/// What the server has in the directory; none where it could not be fetched.
#[derive(Debug, Default)]
pub(crate) struct Started {
    pub(crate) path: Option<PathReply>,
    pub(crate) config: Option<Value>,
    pub(crate) agents: Option<Value>,
    pub(crate) providers: Option<Value>,
    pub(crate) commands: Option<Value>,
    pub(crate) sessions: Option<Vec<Session>>,
    pub(crate) statuses: Option<BTreeMap<SessionId, SessionStatus>>,
    pub(crate) permissions: Option<Vec<PermissionRequest>>,
    pub(crate) questions: Option<Vec<QuestionRequest>>,
    pub(crate) branch: Option<Option<String>>,
    /// What could not be fetched.
    pub(crate) failed: Vec<String>,
}

/// What becomes of a text that was in an editor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Edited {
    /// It stands in the prompt.
    Prompt,
    /// Nothing: it was to be read, or to be stored by the editor.
    Dropped,
}

/// What is to be done outside.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Cmd {
    /// Fetch what the server has.
    Start,
    /// Open the session that the options name.
    OpenFirst,
    ListSessions {
        search: String,
    },
    LoadMessages(SessionId),
    LoadOlder {
        session: SessionId,
        before: String,
    },
    LoadTodos(SessionId),
    LoadSession(SessionId),
    /// Send a prompt, to a new session if none is named.
    Send {
        session: Option<SessionId>,
        input: Box<PromptInput>,
        draft: Draft,
    },
    Command {
        session: Option<SessionId>,
        input: Box<CommandInput>,
        draft: Draft,
    },
    Shell {
        session: Option<SessionId>,
        input: Box<ShellInput>,
        draft: Draft,
    },
    Abort(SessionId),
    Permission {
        id: PermissionId,
        answer: PermissionAnswer,
    },
    LoadTrust(String),
    DecideTrust {
        directory: String,
        input: TrustInput,
    },
    DismissTrust {
        directory: String,
        dismissal: TrustDismissal,
    },
    Question {
        id: QuestionId,
        answers: Vec<Vec<String>>,
    },
    RejectQuestion(QuestionId),
    FindFiles(String),
    Rename {
        session: SessionId,
        title: String,
    },
    Delete(SessionId),
    Fork {
        session: SessionId,
        until: Option<MessageId>,
    },
    Revert {
        session: SessionId,
        message: MessageId,
    },
    Unrevert(SessionId),
    Compact {
        session: SessionId,
        provider: String,
        model: String,
    },
    LoadAllProviders,
    LoadSkills,
    LoadChanges(Source),
    LoadServers,
    SwitchMcp {
        name: String,
        on: bool,
    },
    LoadPlaces,
    Move {
        session: SessionId,
        directory: String,
    },
    Share(SessionId),
    Unshare(SessionId),
    PutKey {
        provider: String,
        key: String,
    },
    BeginSignIn {
        provider: String,
        method: usize,
        inputs: BTreeMap<String, String>,
    },
    FinishSignIn {
        provider: String,
        method: usize,
        code: Option<String>,
    },
    /// Into the clipboard of whoever sits at the terminal, by every road there is.
    Copy(String),
    /// The part of that which programs do; the terminal's is done, if it could be.
    CopyToDesk {
        text: String,
        handed: bool,
        desks: Vec<Desk>,
    },
    /// What is in the clipboard, into the prompt.
    PasteFromDesk(Vec<Desk>),
    /// Show a text in the user's editor.
    Edit {
        text: String,
        then: Edited,
    },
    /// Keep what the user chose.
    Save(Value),
    /// Keep a prompt for later.
    Remember(Draft),
    Mouse(bool),
    /// The terminal's title.
    Title(String),
    Suspend,
    Quit,
}
