//! The messages between this program and the process. `plugin-host/src/protocol.ts` contains the other side.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::Failure;

/// The version of the protocol.
pub(crate) const VERSION: u32 = 1;
/// The longest line.
pub(crate) const MAX_LINE_BYTES: usize = 16 * 1024 * 1024;
/// The requests that may be open in one direction.
pub(crate) const MAX_OPEN: usize = 256;
/// The bytes of a stream that may be on the way.
pub(crate) const WINDOW_BYTES: usize = 256 * 1024;
/// The bytes of one piece of a stream.
pub(crate) const CHUNK_BYTES: usize = 64 * 1024;

/// A plugin to load.
#[derive(Debug, Clone, PartialEq)]
pub struct PluginEntry {
    /// The text of the configuration, or the path.
    pub spec: String,
    /// The file of the module, or the directory of a package.
    pub entry: PathBuf,
    /// The options of the configuration.
    pub options: Option<Value>,
}

/// A file with tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolEntry {
    /// The path.
    pub file: PathBuf,
    /// The name of its default export, and the beginning of the others.
    pub name: String,
}

/// A place in the code of a plugin.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct CodePlace {
    /// The path.
    pub file: Option<String>,
    /// The line, from 1.
    pub line: Option<u32>,
}

impl CodePlace {
    /// Returns the place as `file:line`.
    #[must_use]
    pub fn text(&self) -> Option<String> {
        let file = self.file.as_ref()?;
        Some(self.line.map_or_else(|| file.clone(), |line| format!("{file}:{line}")))
    }
}

/// A plugin that was loaded, or the reason why it was not.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Loaded {
    /// Its position: plugins first, then tool files.
    pub index: usize,
    /// The id that a plugin of the newer form has.
    pub id: Option<String>,
    /// The name of the package or file.
    pub name: String,
    /// The names of its hooks.
    pub hooks: Vec<String>,
    /// Its tools.
    pub tools: Vec<ToolInfo>,
    /// The workspace adapters that it has registered.
    pub workspaces: Vec<WorkspaceAdapter>,
    /// Its sign-in for a provider.
    pub auth: Option<Auth>,
    /// The provider whose models it changes.
    pub provider: Option<ProviderInfo>,
    /// Why it was not run, although nothing failed.
    pub skipped: Option<String>,
    /// Why it could not be loaded.
    pub error: Option<LoadError>,
}

/// Why a plugin could not be loaded.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct LoadError {
    /// The message.
    pub message: String,
    /// The place in its code.
    #[serde(flatten)]
    pub place: CodePlace,
}

/// The provider whose models a plugin changes.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct ProviderInfo {
    /// The id of the provider.
    pub id: String,
}

/// A tool of a plugin.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct ToolInfo {
    /// The name.
    pub name: String,
    /// The description for the model.
    pub description: String,
    /// The JSON schema of the arguments.
    pub parameters: Value,
}

/// A kind of workspaces of a plugin.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct WorkspaceAdapter {
    /// Its key.
    #[serde(rename = "type")]
    pub kind: String,
    /// Its name.
    pub name: String,
    /// What it does.
    pub description: String,
}

/// The sign-in of a plugin.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Auth {
    /// The id of the provider.
    pub provider: String,
    /// Whether it provides options for requests.
    pub loader: bool,
    /// The ways to sign in.
    pub methods: Vec<AuthMethod>,
}

/// A way to sign in.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct AuthMethod {
    /// `oauth` or `api`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The text for the user.
    pub label: String,
    /// The questions before it.
    pub prompts: Option<Vec<AuthPrompt>>,
    /// Whether the plugin itself provides the credential. Otherwise the user enters a key.
    pub authorizes: bool,
}

/// A question before a sign-in, in the form of the API.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct AuthPrompt {
    /// `text` or `select`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The name of the answer.
    pub key: String,
    /// The text for the user.
    pub message: String,
    /// An example.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub placeholder: Option<String>,
    /// The choices.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub options: Option<Value>,
    /// The condition under which it is asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub when: Option<Value>,
    /// Whether the plugin checks the answer.
    #[serde(skip_serializing)]
    pub has_validate: bool,
    /// Whether the plugin decides if it is asked.
    #[serde(skip_serializing)]
    pub has_condition: bool,
}

/// The answer to `initialize`.
#[derive(Debug, Deserialize)]
pub(crate) struct Initialized {
    pub(crate) runtime: RuntimeInfo,
    pub(crate) plugins: Vec<Loaded>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct RuntimeInfo {
    pub(crate) name: String,
    pub(crate) version: String,
}

/// A call of a hook.
#[derive(Debug, Clone, Copy)]
pub struct HookCall<'a> {
    /// The name of the hook.
    pub name: &'a str,
    /// The value that plugins read.
    pub input: &'a Value,
    /// The value that plugins change.
    pub output: &'a Value,
    /// The plugins that are called, or all.
    pub only: Option<usize>,
}

#[derive(Serialize)]
pub(crate) struct HookParams<'a> {
    pub(crate) name: &'a str,
    pub(crate) input: &'a Value,
    pub(crate) output: &'a Value,
    pub(crate) skip: Vec<usize>,
}

/// The answer of a hook.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HookReply {
    /// The changed input. Only the hook `config` has one.
    pub input: Option<Value>,
    /// The changed output. `None` if no plugin was called.
    pub output: Option<Value>,
    /// The agents in the order that a plugin chose with the hook `config`. Empty if none did.
    pub agents: Vec<String>,
    /// What failed.
    pub failures: Vec<HookFailure>,
}

/// A failure of a plugin in a hook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookFailure {
    /// The name of the plugin.
    pub plugin: String,
    /// The message, with the place in its code.
    pub message: String,
    /// The message of the error itself.
    pub reason: String,
    /// Whether the hook has thrown an error.
    pub is_thrown: bool,
    /// Whether the hook did not end within its time limit.
    pub is_late: bool,
}

#[derive(Debug, Deserialize)]
pub(crate) struct HookResult {
    #[serde(default)]
    pub(crate) input: Option<Value>,
    #[serde(default)]
    pub(crate) output: Option<Value>,
    #[serde(default)]
    pub(crate) agents: Vec<String>,
    #[serde(default)]
    pub(crate) failures: Vec<RawFailure>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct RawFailure {
    pub(crate) index: usize,
    pub(crate) message: String,
    #[serde(flatten)]
    pub(crate) place: CodePlace,
    #[serde(default)]
    pub(crate) timeout: bool,
    #[serde(default)]
    pub(crate) thrown: bool,
}

/// A call of a tool.
#[derive(Debug, Clone)]
pub struct ToolCall {
    /// The position of its plugin.
    pub index: usize,
    /// The name of the tool.
    pub tool: String,
    /// The arguments.
    pub args: Value,
    /// The session, the message, the call and the agent, with the names of the plugin interface.
    pub context: Map<String, Value>,
}

/// An error object of the protocol.
#[derive(Debug, Deserialize)]
pub(crate) struct RpcError {
    #[serde(default)]
    pub(crate) message: String,
    #[serde(default)]
    data: Option<ErrorData>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ErrorData {
    #[serde(flatten)]
    place: CodePlace,
}

impl From<RpcError> for Failure {
    fn from(error: RpcError) -> Self {
        let place = error.data.and_then(|data| data.place.text());
        Self::Plugin { message: error.message, place }
    }
}

/// The entries for `initialize`, without those at the positions of `left_out`.
pub(crate) fn entries(
    plugins: &[PluginEntry],
    tools: &[ToolEntry],
    left_out: impl Fn(usize) -> bool,
) -> (Vec<Value>, Vec<Value>) {
    let plugin = |(index, entry): (usize, &PluginEntry)| {
        let mut value = json!({ "index": index, "spec": entry.spec, "entry": entry.entry });
        if let Some(options) = &entry.options {
            value["options"] = options.clone();
        }
        value
    };
    let tool = |(at, entry): (usize, &ToolEntry)| json!({ "index": plugins.len() + at, "file": entry.file, "name": entry.name });
    let is_kept = |index: usize| !left_out(index);
    (
        plugins.iter().enumerate().filter(|(index, _)| is_kept(*index)).map(plugin).collect(),
        tools.iter().enumerate().filter(|(at, _)| is_kept(plugins.len() + at)).map(tool).collect(),
    )
}
