//! The messages that change the state, and the commands that the state issues.

use std::collections::BTreeMap;

use codewright_proto::{
    CommandInput, MessageId, MessageWithParts, Notice, PathReply, PermissionAnswer, PermissionId,
    PermissionRequest, PromptInput, QuestionId, QuestionRequest, Review, Rule, Session, SessionId,
    SessionStatus, ShellInput, Todo, TrustChoice, TrustDismissal, TrustInput, TrustReply,
};
use crossterm::event::{KeyEvent, MouseEvent};
use serde_json::Value;

use crate::channel::{Attachment, Context};
use crate::clipboard::{Clip, Desktop};
use crate::link::FileReference;
use crate::notification::{Focus, Notification};
use crate::opener::CommandLine;
use crate::prompt::Draft;
use crate::review::{Change, Source};

/// A message that changes the state.
#[derive(Debug)]
pub(crate) enum Msg {
    Key(KeyEvent),
    Paste(String),
    Mouse(MouseEvent),
    Resize(u16, u16),
    Focus(Focus),
    /// A time limit has passed.
    Tick,
    /// An event of the server.
    Notice(Box<Notice>),
    /// The event stream is open; no event is missed from now on.
    Connected,
    /// The event stream ended.
    Lost(String),
    Reply(Reply),
}

/// The result of a command.
#[derive(Debug)]
pub(crate) enum Reply {
    /// The data that was fetched at the start.
    Started(Box<StartData>),
    /// A session to open.
    Opened(Box<Session>),
    Sessions(Vec<Session>),
    /// A review was started in this session.
    ReviewBegun(Box<Session>),
    /// The findings of a review, or why there are none.
    Findings {
        session: SessionId,
        review: Result<Review, String>,
    },
    /// Whether the change of a finding was applied.
    FindingApplied {
        key: String,
        result: Result<(), String>,
    },
    /// The report of a bug was written, or why it was not.
    BugReported(Result<(String, String), String>),
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
    /// A session was moved to another directory.
    Moved(Box<Session>),
    /// A directory can be opened.
    Followed(String),
    Todos {
        session: SessionId,
        todos: Vec<Todo>,
    },
    /// The found symbols in the form of the API.
    Symbols {
        query: String,
        symbols: Vec<Value>,
    },
    /// The resources of the MCP servers in the form of the API.
    Resources(Value),
    Files {
        query: String,
        files: Vec<String>,
    },
    /// A provider was connected: all providers that can be used now, and what this one says about the key.
    Connected {
        provider: String,
        providers: Value,
        check: Value,
    },
    /// All providers and their sign-in methods.
    AllProviders {
        providers: Value,
        methods: Value,
    },
    /// A sign-in was started.
    SignIn {
        provider: String,
        method: usize,
        authorization: Value,
    },
    /// A sign-in to an MCP server was started.
    McpSignIn {
        name: String,
        url: String,
    },
    Skills(Value),
    /// The MCP servers, language servers and formatters; `None` if they could not be fetched.
    Servers {
        mcp: Option<Value>,
        lsp: Option<Value>,
        formatters: Option<Value>,
    },
    /// The sandbox of commands. Servers of other versions have none.
    Sandbox(Value),
    /// The setting of the sandbox.
    SandboxSetting(Value),
    /// The size of the descriptions of the tools in bytes.
    ToolBytes(usize),
    /// The directories and workspaces of the project.
    Directories {
        directories: Value,
        workspaces: Value,
    },
    /// A prompt that waited was removed. It can be edited and sent again.
    TakenBack(Draft),
    /// How a text was copied, or why it was not.
    Copied {
        note: String,
        is_copied: bool,
    },
    /// The content of the clipboard, or an error.
    Pasted(Result<Clip, String>),
    /// The changes of a source, for the viewer.
    Changes {
        source: Source,
        changes: Result<Vec<Change>, String>,
    },
    /// The text from the editor.
    Edited(String),
    /// A text of the editor in whose terminal the client runs, for the prompt.
    Context(Result<Attachment, String>),
    /// The trust of a directory; `None` if the server did not answer or has no workspace trust.
    Trust {
        directory: String,
        reply: Option<TrustReply>,
    },
    /// The result of a trust decision; an error comes with the current trust.
    TrustDecided {
        directory: String,
        decision: TrustChoice,
        answer: Result<TrustReply, (String, Option<TrustReply>)>,
    },
    /// Whether the server recorded that the user decides later.
    TrustDismissed {
        directory: String,
        is_noted: bool,
    },
    /// A prompt could not be sent; its draft is restored.
    Unsent {
        draft: Draft,
        error: String,
    },
    /// The messages of a session could not be fetched.
    Unfetched {
        session: SessionId,
        error: String,
    },
    /// Another command failed.
    Failed(String),
    /// A command succeeded without a visible effect.
    Done(String),
}

/// The data that is fetched at the start; `None` if it could not be fetched.
#[derive(Debug, Default)]
pub(crate) struct StartData {
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
    /// The errors of the requests that failed.
    pub(crate) failed: Vec<String>,
}

/// The use of an edited text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EditTarget {
    /// It becomes the prompt.
    Prompt,
    /// It is discarded, because it was opened for reading.
    Discard,
}

/// A change of a file that an editor shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ShownChange {
    pub(crate) file: String,
    pub(crate) patch: String,
    /// Whether the file has the content after the change. Otherwise the change is proposed.
    pub(crate) is_made: bool,
}

/// A command to the server, the terminal or the file system.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Cmd {
    /// Fetch the data of the directory.
    Start,
    /// Open the session of the options.
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
    /// Send a prompt, to a new session if there is no id. The session gets the rules first.
    Send {
        session: Option<SessionId>,
        rules: Vec<Rule>,
        input: Box<PromptInput>,
        draft: Draft,
    },
    Command {
        session: Option<SessionId>,
        rules: Vec<Rule>,
        input: Box<CommandInput>,
        draft: Draft,
    },
    Shell {
        session: Option<SessionId>,
        rules: Vec<Rule>,
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
    /// Fetches the resources of the MCP servers.
    FindResources,
    /// Searches symbols after a short time without another search.
    FindSymbols(String),
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
    /// Starts a review with a model.
    BeginReview {
        range: Option<String>,
        model: (String, String),
        variant: Option<String>,
    },
    LoadFindings(SessionId),
    /// Applies the change of a finding to the file as it is now.
    ApplyFinding {
        session: SessionId,
        key: String,
    },
    /// Fetches the report of a bug and writes it into a file.
    WriteBugReport,
    /// Writes a new file in the directory of the client.
    WriteNew {
        name: String,
        text: String,
    },
    LoadAllProviders,
    LoadSkills,
    LoadChanges(Source),
    LoadServers,
    LoadSandbox,
    /// Fetches the setting of the sandbox, without starting a process.
    LoadSandboxSetting,
    /// Fetches the tools that a model is offered, for the size of their descriptions.
    LoadTools {
        provider: String,
        model: String,
    },
    SwitchMcp {
        name: String,
        on: bool,
    },
    BeginMcpSignIn(String),
    FinishMcpSignIn {
        name: String,
        code: String,
    },
    LoadDirectories,
    Move {
        session: SessionId,
        directory: String,
    },
    /// Creates a worktree and moves a session there.
    MoveToNew {
        session: SessionId,
        name: String,
    },
    /// Checks that a directory can be opened before the client enters it.
    Follow(String),
    /// Receives the events of another directory from now on.
    Enter(String),
    /// Adds permission rules to a session.
    SetRules {
        session: SessionId,
        rules: Vec<Rule>,
    },
    /// Removes a prompt that waits, to edit it.
    TakeBack {
        session: SessionId,
        message: MessageId,
        draft: Draft,
    },
    PutKey {
        provider: String,
        key: String,
        /// The answers to the questions of the sign-in.
        inputs: BTreeMap<String, String>,
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
    /// Copy a text by the terminal and by programs of the desktop.
    Copy(String),
    /// Copy a text by programs of the desktop.
    CopyToDesktop {
        text: String,
        /// Whether the terminal already has the text.
        via_terminal: bool,
        desktops: Vec<Desktop>,
    },
    /// Paste the clipboard into the prompt.
    PasteFromDesktop(Vec<Desktop>),
    /// Open a text in the user's editor.
    Edit {
        text: String,
        then: EditTarget,
    },
    /// Open a file in the user's editor.
    OpenFile(FileReference),
    /// Read a text of the editor in whose terminal the client runs.
    ReadContext(Context),
    /// Show a change side by side in that editor.
    ShowChange(Box<ShownChange>),
    /// Start an editor with its own window.
    StartEditor(CommandLine),
    /// Store the user's choices.
    Save(Value),
    /// Store that a finding of a review was dismissed.
    KeepDismissed {
        session: SessionId,
        key: String,
    },
    /// Add a prompt to the history.
    Remember(Draft),
    Mouse(bool),
    Notify(Notification),
    /// Set the title of the terminal.
    Title(String),
    Suspend,
    Quit,
}
