//! The users of a server: who sends a request, and what the user may do.
//!
//! Without the key `auth` there are no users: this module adds nothing to a request, and everyone who may use the server
//! may do everything.
//!
//! With it, `guard` finds out who sends a request ([`Who`]) and refuses requests without a sign-in. Every route of the
//! table has a rule ([`rules`]), which `check` enforces before the handler runs. A route without a rule is refused, so a new
//! route is closed until someone decides. Routes that list things of several sessions, and streams, ask [`Viewer`] for each
//! of them.
//!
//! A session that a user may not see is answered like one that does not exist.

mod audit;
mod check;
mod decisions;
mod directories;
mod files;
mod oidc;
pub(crate) mod rules;
mod settings;
mod sign_in;
mod viewer;

use std::sync::Arc;

use axum::extract::{FromRequestParts, Request};
use codewright_proto::{Principal, Replier, SessionAccess, ShareMode};
use http::request::Parts;
use tokio::time::Instant;

pub(crate) use audit::{Refusals, record, record_reply};
pub(crate) use check::{check, on_permission, on_question, on_session};
pub(crate) use decisions::{answer_question, check_reply, check_rules};
pub(crate) use directories::{check_directory, check_opened, shows};
pub(crate) use files::{check_arguments, check_parts, kept};
pub(crate) use settings::check_name;
pub use settings::{Auth, new_token};
pub(crate) use viewer::Viewer;

use crate::Error;
use crate::state::App;

/// What a user may do besides using sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Role {
    /// Read files and the sessions that are shared with the user.
    Reader,
    /// Also create sessions and work in them.
    Member,
    /// Everything: all sessions, terminals, configuration, sign-ins, trust, users.
    Admin,
}

impl Role {
    fn parse(name: &str) -> Option<Self> {
        match name {
            "reader" => Some(Self::Reader),
            "member" => Some(Self::Member),
            "admin" => Some(Self::Admin),
            _ => None,
        }
    }

    /// The name in the configuration.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Reader => "reader",
            Self::Member => "member",
            Self::Admin => "admin",
        }
    }
}

/// A user who has signed in.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    pub(crate) name: Arc<str>,
    pub(crate) role: Role,
    /// The teams of the user. Sessions that the user creates count for the first one.
    pub(crate) teams: Arc<[String]>,
    /// The end of the sign-in, if it ends by itself.
    pub(crate) until: Option<Instant>,
}

/// The sender of a request.
#[derive(Debug, Clone)]
pub(crate) enum Who {
    /// This process, a plugin in it, or everyone if the server has no users.
    Local,
    /// The holder of a ticket for one terminal.
    Ticket,
    /// A user.
    User(Caller),
}

/// What a user may do with a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    Read,
    Full,
}

impl Caller {
    /// Returns what the user may do with a session whose access is known. A session without an owner belongs to
    /// administrators.
    pub(crate) fn level(&self, access: Option<&SessionAccess>) -> Option<Level> {
        if self.role == Role::Admin {
            return Some(Level::Full);
        }
        let access = access?;
        let is_own = access.owner == *self.name;
        let shared = self.teams.iter().filter_map(|team| access.shared.get(team));
        let shared = shared.map(|mode| match mode {
            ShareMode::Read => Level::Read,
            ShareMode::Full => Level::Full,
        });
        let level = if is_own { Some(Level::Full) } else { shared.max() }?;
        Some(if self.role == Role::Reader { Level::Read } else { level })
    }

    /// The access of a session that the user creates.
    pub(crate) fn new_access(&self) -> SessionAccess {
        SessionAccess {
            owner: self.name.to_string(),
            team: self.teams.first().cloned(),
            shared: Default::default(),
            admin: self.role == Role::Admin,
        }
    }
}

impl Who {
    /// Returns the sender of a request.
    ///
    /// # Errors
    ///
    /// Fails if the server has users and the sender is unknown.
    pub(crate) fn of(extensions: &http::Extensions, app: &App) -> Result<Self, Error> {
        match extensions.get::<Self>() {
            Some(who) => Ok(who.clone()),
            None if app.options.auth.is_none() => Ok(Self::Local),
            None => Err(Error::Unauthorized),
        }
    }

    /// The user; `None` for this process.
    pub(crate) fn caller(&self) -> Option<&Caller> {
        match self {
            Self::User(caller) => Some(caller),
            Self::Local | Self::Ticket => None,
        }
    }

    /// The user, if the user is not an administrator.
    pub(crate) fn limited(&self) -> Option<&Caller> {
        self.caller().filter(|caller| caller.role != Role::Admin)
    }

    /// On whose behalf the request is made.
    pub(crate) fn principal(&self) -> Principal {
        match self {
            Self::Local => Principal::Owner,
            Self::User(caller) if caller.role == Role::Admin => Principal::Admin,
            Self::User(_) | Self::Ticket => Principal::Member,
        }
    }

    /// Who replies to a request of the sender's.
    pub(crate) fn replier(&self) -> Replier {
        let name = self.caller().map(|caller| caller.name.to_string());
        Replier { name, ..Replier::new(self.principal()) }
    }

    /// The access of a session that the sender creates.
    ///
    /// # Errors
    ///
    /// Fails if the sender may not create sessions.
    pub(crate) fn new_access(&self) -> Result<Option<SessionAccess>, Error> {
        match self {
            Self::Local => Ok(None),
            Self::User(caller) if caller.role >= Role::Member => Ok(Some(caller.new_access())),
            Self::User(_) | Self::Ticket => Err(Error::Forbidden { why: "this needs the role `member`" }),
        }
    }

    /// The name for the audit log.
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::User(caller) => &caller.name,
            Self::Ticket => "ticket",
            Self::Local => "local",
        }
    }
}

impl FromRequestParts<App> for Who {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Error> {
        Self::of(&parts.extensions, app)
    }
}

/// Finds out who sends a request to a server with users, and notes it in the request.
pub(crate) async fn identify(app: &App, auth: &Auth, request: &mut Request) -> Result<Who, Error> {
    let attempt = sign_in::Attempt::of(request);
    let who = sign_in::sign_in(app, auth, attempt).await?;
    request.extensions_mut().insert(who.clone());
    Ok(who)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caller(name: &str, role: Role, teams: &[&str]) -> Caller {
        let teams = teams.iter().map(|team| (*team).to_owned()).collect();
        Caller { name: name.into(), role, teams, until: None }
    }

    #[test]
    fn a_session_is_used_by_its_owner_and_by_those_it_is_shared_with() {
        let access = SessionAccess {
            owner: "alice".to_owned(),
            team: None,
            shared: [("core".to_owned(), ShareMode::Full), ("all".to_owned(), ShareMode::Read)].into(),
            admin: false,
        };
        for (name, role, teams, expected) in [
            ("alice", Role::Member, &[][..], Some(Level::Full)),
            ("alice", Role::Reader, &[], Some(Level::Read)),
            ("bob", Role::Member, &[], None),
            ("bob", Role::Member, &["other"], None),
            ("bob", Role::Member, &["all"], Some(Level::Read)),
            ("bob", Role::Member, &["all", "core"], Some(Level::Full)),
            ("bob", Role::Reader, &["core"], Some(Level::Read)),
            ("root", Role::Admin, &[], Some(Level::Full)),
        ] {
            assert_eq!(caller(name, role, teams).level(Some(&access)), expected, "{name} {teams:?}");
        }
        assert_eq!(caller("alice", Role::Member, &["core"]).level(None), None);
        assert_eq!(caller("root", Role::Admin, &[]).level(None), Some(Level::Full));
    }
}
