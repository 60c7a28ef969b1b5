//! Terminals that clients open in a directory.

use std::collections::BTreeMap;
use std::num::NonZeroU16;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::PtyId;

/// A terminal and the program in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Pty {
    /// Its id.
    pub id: PtyId,
    /// What it is called.
    pub title: String,
    /// The program.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Where it started.
    pub cwd: String,
    /// Whether it still runs.
    pub status: PtyStatus,
    /// The number of its process.
    pub pid: u32,
    /// How it ended.
    #[serde(rename = "exitCode", default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<u32>,
}

/// Whether the program of a terminal runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PtyStatus {
    /// It does.
    Running,
    /// It has ended.
    Exited,
}

/// The body of `POST /pty`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PtyInput {
    /// The program; the user's shell without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Its arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub args: Option<Vec<String>>,
    /// Where it starts; the directory of the request without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// What it is called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Variables beyond the inherited ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub env: Option<BTreeMap<String, String>>,
}

/// The body of `PUT /pty/{id}`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PtyPatch {
    /// A new name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// A new size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<PtySize>,
}

/// The size of a terminal, in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PtySize {
    /// Lines.
    pub rows: NonZeroU16,
    /// Characters of a line.
    pub cols: NonZeroU16,
}

/// What lets one WebSocket connect to a terminal, once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PtyTicket {
    /// The secret.
    pub ticket: String,
    /// For how many seconds it is good.
    pub expires_in: u64,
}

/// A shell of this machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Shell {
    /// Where it is.
    pub path: String,
    /// What it is called.
    pub name: String,
    /// Whether commands may be given to it as to a shell of the common kind.
    pub acceptable: bool,
}
