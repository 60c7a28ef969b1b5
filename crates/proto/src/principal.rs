//! On whose behalf something is requested or decided.

/// On whose behalf a request is made. The server sets it; clients cannot.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Principal {
    /// The owner of the machine, or a program of the account that runs the server.
    #[default]
    Owner,
    /// An administrator of a server with users, by name.
    Admin(String),
    /// Any other user of such a server, by name.
    Member(String),
}

impl Principal {
    /// Whether only others may widen what this one can reach.
    #[must_use]
    pub fn is_member(&self) -> bool {
        match self {
            Self::Owner | Self::Admin(_) => false,
            Self::Member(_) => true,
        }
    }
}
