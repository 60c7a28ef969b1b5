//! The sign-in of a user: a token in the header `Authorization`, or in the query of clients that cannot set headers.
//!
//! Only these say who sends a request. Headers that a proxy could add, such as `X-Forwarded-User`, have no meaning.

use axum::extract::Request;
use base64::Engine as _;
use http::{HeaderMap, header};

use super::settings::{MIN_TOKEN_BYTES, hash};
use super::{Auth, Who};
use crate::Error;
use crate::guard::{BASE64, auth_token, has_ticket, same};
use crate::nodes::OfNode;
use crate::peer::Peer;
use crate::plugins::OfPlugin;
use crate::state::App;

/// Who somebody claims to be.
enum Claim {
    /// A user name and a token.
    Named(String, String),
    /// A token.
    Bearer(String),
}

/// What a request says about its sender.
pub(super) struct Attempt {
    kind: Kind,
    /// The other end of the connection, for the audit log.
    peer: String,
}

enum Kind {
    /// A request of this process.
    Local,
    /// A request with a ticket, which its route checks.
    Ticket,
    /// Nothing.
    Nobody,
    Claimed(Claim),
    /// Something that cannot be read.
    Invalid,
}

impl Attempt {
    pub(super) fn of(request: &Request) -> Self {
        let peer = request.extensions().get::<Peer>();
        let is_local = match request.extensions().get::<OfNode>() {
            Some(node) => node.is_local,
            None => peer.is_none() || request.extensions().get::<OfPlugin>().is_some(),
        };
        let kind = match claim(request) {
            _ if is_local => Kind::Local,
            Ok(Some(claim)) => Kind::Claimed(claim),
            Ok(None) if has_ticket(request) => Kind::Ticket,
            Ok(None) => Kind::Nobody,
            Err(()) => Kind::Invalid,
        };
        Self { kind, peer: peer.map(|peer| format!("{:?}", peer.identity)).unwrap_or_default() }
    }
}

/// Returns the sender of a request.
pub(super) async fn sign_in(app: &App, auth: &Auth, attempt: Attempt) -> Result<Who, Error> {
    let found = match &attempt.kind {
        Kind::Local => return Ok(Who::Local),
        Kind::Ticket => return Ok(Who::Ticket),
        // Browsers and probes ask without credentials first.
        Kind::Nobody => return Err(Error::Unauthorized),
        Kind::Claimed(claim) => match auth.find(claim) {
            Some(who) => Some(who),
            None => auth.of_provider(app, claim).await,
        },
        Kind::Invalid => None,
    };
    if found.is_none() {
        super::audit::refused(app, attempt.peer).await;
    }
    found.ok_or(Error::Unauthorized)
}

/// Reads the claim of a request. A header takes precedence over the query, even if it is wrong.
fn claim(request: &Request) -> Result<Option<Claim>, ()> {
    let Some(value) = only_authorization(request.headers())? else {
        return auth_token(request).map(|token| basic(&token)).transpose();
    };
    let (scheme, rest) = value.split_once(' ').ok_or(())?;
    match scheme.to_ascii_lowercase().as_str() {
        "basic" => basic(rest.trim()).map(Some),
        "bearer" => Ok(Some(Claim::Bearer(rest.trim().to_owned()))),
        _ => Err(()),
    }
}

/// Returns the header. Two of them are an error, because a proxy may have checked only one.
fn only_authorization(headers: &HeaderMap) -> Result<Option<&str>, ()> {
    let mut all = headers.get_all(header::AUTHORIZATION).iter();
    let Some(first) = all.next() else { return Ok(None) };
    if all.next().is_some() {
        return Err(());
    }
    first.to_str().map(Some).map_err(|_| ())
}

fn basic(encoded: &str) -> Result<Claim, ()> {
    let decoded = BASE64.decode(encoded).map_err(|_| ())?;
    let text = String::from_utf8(decoded).map_err(|_| ())?;
    let (name, token) = text.split_once(':').ok_or(())?;
    Ok(Claim::Named(name.to_owned(), token.to_owned()))
}

impl Auth {
    fn find(&self, claim: &Claim) -> Option<Who> {
        let (name, token) = match claim {
            Claim::Named(name, token) => (Some(name.as_str()), token),
            Claim::Bearer(token) => (None, token),
        };
        if token.len() < MIN_TOKEN_BYTES {
            return None;
        }
        let given = hash(token);
        let mut found = None;
        // All users are compared, so that the time says nothing about the place of a user.
        for user in &self.users {
            let is_token = user.hashes.iter().fold(false, |so_far, hash| same(&given, hash) | so_far);
            if is_token && name.is_none_or(|name| name == &*user.caller.name) {
                found = Some(Who::User(user.caller.clone()));
            }
        }
        found
    }

    /// Returns the user of a token of the identity provider. Its user name is `oidc` where a client needs one.
    async fn of_provider(&self, app: &App, claim: &Claim) -> Option<Who> {
        let token = match claim {
            Claim::Named(name, token) if name == "oidc" => token,
            Claim::Named(..) => return None,
            Claim::Bearer(token) => token,
        };
        let caller = self.oidc.as_ref()?.verify(&app.engine, token).await?;
        // The provider must not decide who a user of the configuration is.
        let is_taken = self.users.iter().any(|user| user.caller.name == caller.name);
        (!is_taken).then_some(Who::User(caller))
    }
}
