//! The authorization of a route, and whether its requests are in the audit log. Each row of `route/table/` states both.
//!
//! The paths that name a session say so with `{sessionID}`; the rules `Read`, `Write`, `Permission` and `Question` are
//! only for paths with ids.

/// The authorization that a route needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    /// A user of any role. The answer says nothing about sessions.
    Anyone,
    /// A user who may work. Handlers check the sessions that a body names.
    Member,
    /// An administrator: what affects other users, or runs with the rights of the server's account.
    Admin,
    /// An administrator, or the holder of a ticket that an administrator got for the terminal.
    Terminal,
    /// A user of any role. The handler leaves out what the user may not see.
    Filtered,
    /// A user who may read the session in the path.
    Read,
    /// A user who may work in the session in the path.
    Write,
    /// A user who may work in the session of the permission request in the path.
    Permission,
    /// A user who may work in the session of the question in the path.
    Question,
}

/// The rule of a route.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rule {
    pub(crate) need: Need,
    /// The name in the audit log, if requests are recorded.
    pub(crate) audit: Option<&'static str>,
}

/// What the audit log records of a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Audit {
    /// Nothing: the route reads.
    None,
    /// Each request.
    Request,
    /// The entries that its handler writes.
    Handler,
    /// Nothing, for this reason, although its method is one for changes.
    Unchanging(&'static str),
}

impl Audit {
    /// Returns the name in the audit log, if requests are recorded.
    pub(crate) const fn entry(self, operation: &'static str) -> Option<&'static str> {
        match self {
            Self::Request => Some(operation),
            Self::None | Self::Handler | Self::Unchanging(_) => None,
        }
    }
}
