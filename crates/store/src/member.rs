//! The servers that share a database: what each says about itself, and which of them a session belongs to.

use serde::{Deserialize, Serialize};

use codewright_proto::SessionId;

/// The maximum number of servers that a store lists.
pub const MAX_MEMBERS: usize = 256;

/// The maximum number of open directories that a server announces.
pub const MAX_OPEN_DIRECTORIES: usize = 64;

/// A server that shares the store with others.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Member {
    /// The id of the process as an owner of sessions. The store sets it.
    pub id: String,
    /// The name, which a later process of the same server has too.
    pub name: String,
    /// The address at which other servers reach it.
    pub address: Option<String>,
    /// The directories in which it can work. Empty: all that exist there.
    pub roots: Vec<String>,
    /// Directories that it has open, at most [`MAX_OPEN_DIRECTORIES`].
    pub open: Vec<String>,
    /// The number of sessions that run or wait to run.
    pub running: u64,
    /// The number of sessions that run at the same time.
    pub limit: u64,
    /// Whether it begins no more runs.
    pub is_draining: bool,
}

/// The living servers of a store.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Members {
    /// The servers, at most [`MAX_MEMBERS`].
    pub all: Vec<Member>,
    /// The id of this process.
    pub own: String,
    /// The time of the database's clock, in milliseconds since 1970.
    pub now_ms: u64,
}

/// The server that a session belongs to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ownership {
    /// The id of the living owner.
    pub owner: Option<String>,
    /// The name of the server that owned it last.
    pub last: Option<String>,
}

/// A session whose server ended or died while it owned the session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Orphan {
    /// The session.
    pub session: SessionId,
    /// Its directory.
    pub directory: String,
    /// Whether another session started it.
    pub is_child: bool,
}
