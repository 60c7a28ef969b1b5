//! Terminals that clients open in a directory.

use std::collections::BTreeMap;
use std::num::NonZeroU16;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::PtyId;

/// A terminal and its program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Pty {
    /// The id of the terminal.
    pub id: PtyId,
    /// The title of the terminal.
    pub title: String,
    /// The program.
    pub command: String,
    /// The arguments of the program.
    pub args: Vec<String>,
    /// The directory in which the program started.
    pub cwd: String,
    /// Whether the program is running.
    pub status: PtyStatus,
    /// The process id.
    pub pid: u32,
    /// The exit code, after the program has ended.
    #[serde(rename = "exitCode", default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<u32>,
}

/// The state of the program in a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PtyStatus {
    /// It is running.
    Running,
    /// It has ended.
    Exited,
}

/// The body of `POST /pty`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PtyInput {
    /// The program. Defaults to the shell of the user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// The arguments of the program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub args: Option<Vec<String>>,
    /// The working directory. Defaults to the directory of the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// The title of the terminal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Environment variables in addition to the inherited ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub env: Option<BTreeMap<String, String>>,
}

/// The body of `PUT /pty/{id}`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PtyPatch {
    /// The new title.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The new size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<PtySize>,
}

/// The size of a terminal, in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PtySize {
    /// The number of lines.
    pub rows: NonZeroU16,
    /// The number of characters per line.
    pub cols: NonZeroU16,
}

/// A ticket that lets one WebSocket connect to a terminal once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PtyTicket {
    /// The secret.
    pub ticket: String,
    /// The number of seconds until it expires.
    pub expires_in: u64,
}

/// A shell that is installed on this machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Shell {
    /// The path of the shell.
    pub path: String,
    /// The name of the shell.
    pub name: String,
    /// Whether the shell accepts commands in POSIX syntax.
    pub acceptable: bool,
}
