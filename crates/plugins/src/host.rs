//! What the process of plugins needs from this program.

use std::path::Path;
use std::pin::Pin;

use bytes::Bytes;
use codewright_workspace::Command;
use futures_util::stream::BoxStream;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::Runtime;

/// A future of the host.
pub type Boxed<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The pieces of a body.
pub type Body = BoxStream<'static, Result<Bytes, String>>;

/// The importance of a log line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// For developers.
    Debug,
    /// For users who look.
    Info,
    /// Something is wrong.
    Warn,
    /// Something failed.
    Error,
}

/// A request of a plugin to the API of this program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiRequest {
    /// The method.
    pub method: String,
    /// The path and the query.
    pub path: String,
    /// The headers.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

/// The answer of the API.
pub struct ApiResponse {
    /// The status code.
    pub status: u16,
    /// The headers.
    pub headers: Vec<(String, String)>,
    /// The body, which may never end.
    pub body: Body,
}

/// A permission that a running tool requests.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct ToolAsk {
    /// The kind of permission.
    pub permission: String,
    /// The things to be allowed.
    #[serde(default)]
    pub patterns: Vec<String>,
    /// The wider patterns that the reply "always" would allow.
    #[serde(default)]
    pub always: Vec<String>,
    /// Facts for the user.
    #[serde(default)]
    pub metadata: Map<String, Value>,
}

/// The services of this program for a running tool call.
pub trait ToolPort: Send + Sync {
    /// Requests a permission. Fails with the reason if it is not granted.
    fn ask(&self, ask: ToolAsk) -> Boxed<'static, Result<(), String>>;

    /// Shows a title and metadata of the running call. Must not block.
    fn metadata(&self, title: Option<String>, metadata: Map<String, Value>);
}

/// The services of this program for the process of plugins.
pub trait Host: Send + Sync + 'static {
    /// Returns the command that runs a script. Blocks.
    ///
    /// # Errors
    ///
    /// Fails with a sentence if the process must not run.
    fn command(&self, runtime: &Runtime, script: &Path) -> Result<Command, String>;

    /// Answers a request to the API. Fails with the reason if the plugin may not make it.
    fn api(&self, request: ApiRequest) -> Boxed<'_, Result<ApiResponse, String>>;

    /// Returns the stored credential of a provider, or null.
    fn credential<'a>(&'a self, provider: &'a str) -> Boxed<'a, Value>;

    /// Lets the plugins change the configuration again, and waits until the changes apply.
    fn reload(&self) -> Boxed<'_, Result<(), String>>;

    /// Logs a line of a plugin, or of the process itself.
    fn log(&self, level: Level, plugin: Option<&str>, text: &str);

    /// Returns whether the message of an error is about a file that the sandbox keeps from the plugins. The first such
    /// message about a file is reported to the user.
    fn is_denied(&self, plugin: &str, message: &str) -> bool;

    /// Reports a plugin that cannot be used any more.
    fn failed(&self, plugin: &str, message: &str);
}
