//! Sign-in with the tokens of an identity provider (OpenID Connect).
//!
//! The server is a resource server: it accepts signed tokens for its audience, and starts no sign-in
//! itself. The keys of the provider are found by discovery and kept. A token with an unknown key leads
//! to a new fetch. Forged tokens cause few fetches, and delay a new key only shortly: after a burst, one
//! fetch is possible in each pause, and it finds all keys. Only signatures with public keys are accepted:
//! never `none`, never a shared secret.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use codewright_engine::Engine;
use jsonwebtoken::jwk::{Jwk, JwkSet, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey, Validation, decode, decode_header};
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::settings::{OidcDocument, check_name};
use super::{Caller, Role};

/// The accepted signatures.
const ALGORITHMS: [Algorithm; 6] = [
    Algorithm::RS256,
    Algorithm::RS384,
    Algorithm::RS512,
    Algorithm::ES256,
    Algorithm::ES384,
    Algorithm::EdDSA,
];
/// The longest token.
const MAX_TOKEN_BYTES: usize = 16 * 1024;
/// The tolerated difference between the clocks of the provider and this machine.
const SKEW_SECONDS: u64 = 60;
/// The maximum number of keys of a provider.
const MAX_KEYS: usize = 64;
/// The maximum number of teams of a user that are read from a token.
const MAX_TEAMS: usize = 200;
/// The longest answer of the provider.
const MAX_ANSWER_BYTES: usize = 256 * 1024;
/// The deadline of a request to the provider.
const FETCH_DEADLINE: Duration = Duration::from_secs(10);
/// The number of fetches for unknown keys in [`BURST_INTERVAL`] that need no pause between them.
const MAX_BURST: usize = 16;
/// See [`MAX_BURST`].
const BURST_INTERVAL: Duration = Duration::from_secs(300);
/// The pause between fetches for unknown keys after a burst, and between attempts to renew old keys.
const PAUSE: Duration = Duration::from_secs(15);
/// How long a key that the provider does not know is not asked for again.
const UNKNOWN_FOR: Duration = Duration::from_secs(30);
/// The number of unknown keys that are remembered.
const MAX_UNKNOWN: usize = 64;
/// The age at which keys are fetched again.
const FRESH_FOR: Duration = Duration::from_secs(3600);
/// The age at which keys no longer count, if the provider cannot be reached.
const VALID_FOR: Duration = Duration::from_secs(24 * 3600);

/// An identity provider, and what its tokens mean here.
#[derive(Debug)]
pub(super) struct Oidc {
    issuer: String,
    audience: String,
    user_claim: String,
    team_claim: String,
    /// The roles of teams. The highest one counts.
    roles: BTreeMap<String, Role>,
    /// The role of users whose teams have none; without one they are refused.
    role: Option<Role>,
    keys: Mutex<Keys>,
}

/// The keys of the provider.
#[derive(Debug, Default)]
struct Keys {
    set: Vec<Jwk>,
    /// The time of the last successful fetch.
    fetched: Option<Instant>,
    /// The time of the last attempt to renew old keys.
    renewed: Option<Instant>,
    /// The fetches for unknown keys in the last interval. At most [`MAX_BURST`] and one for each pause.
    tried: VecDeque<Instant>,
    /// The ids of keys that the provider did not know, and when it was asked. Oldest first.
    unknown: VecDeque<(String, Instant)>,
}

#[derive(Deserialize)]
struct Discovery {
    issuer: String,
    jwks_uri: String,
}

impl Oidc {
    /// Reads the key `auth.oidc`.
    pub(super) fn new(document: OidcDocument) -> Result<Self, String> {
        let OidcDocument { issuer, audience, user_claim, team_claim, roles, role } = document;
        if !is_safe(&issuer) {
            return Err("`auth.oidc.issuer` is not an `https://` address".to_owned());
        }
        if audience.is_empty() {
            return Err(
                "`auth.oidc.audience` is empty: tokens for other programs would be accepted".to_owned()
            );
        }
        let parse = |name: &str| {
            Role::parse(name)
                .ok_or_else(|| "a role in `auth.oidc` is not `admin`, `member` or `reader`".to_owned())
        };
        let roles = roles.into_iter().map(|(team, role)| Ok::<_, String>((team, parse(&role)?)));
        Ok(Self {
            issuer,
            audience,
            user_claim: user_claim.unwrap_or_else(|| "sub".to_owned()),
            team_claim: team_claim.unwrap_or_else(|| "groups".to_owned()),
            roles: roles.collect::<Result<_, _>>()?,
            role: role.as_deref().map(parse).transpose()?,
            keys: Mutex::default(),
        })
    }

    /// Returns the user of a token; `None` if the token does not count.
    pub(super) async fn verify(&self, engine: &Engine, token: &str) -> Option<Caller> {
        if token.len() > MAX_TOKEN_BYTES {
            return None;
        }
        let header = decode_header(token).ok()?;
        if !ALGORITHMS.contains(&header.alg) {
            return None;
        }
        if !self.is_addressed(token) {
            return None;
        }
        let key = self.key(engine, header.kid.as_deref(), header.alg).await?;
        let claims = self.claims(token, &DecodingKey::from_jwk(&key).ok()?, header.alg)?;
        self.caller(&claims)
    }

    /// Whether a token says that it is of this issuer and has a signature. It may be forged, but others lead to no fetch.
    fn is_addressed(&self, token: &str) -> bool {
        let mut parts = token.split('.').skip(1);
        let (Some(claims), Some(signature)) = (parts.next(), parts.next()) else { return false };
        let claims = BASE64_URL_SAFE_NO_PAD.decode(claims).unwrap_or_default();
        let claims: Value = serde_json::from_slice(&claims).unwrap_or_default();
        claims["iss"] == *self.issuer && !signature.is_empty()
    }

    /// Checks the signature, the issuer, the audience and the times of a token.
    fn claims(&self, token: &str, key: &DecodingKey, algorithm: Algorithm) -> Option<Value> {
        let mut validation = Validation::new(algorithm);
        validation.set_audience(&[&self.audience]);
        validation.set_issuer(&[&self.issuer]);
        validation.set_required_spec_claims(&["exp", "iss", "aud"]);
        validation.leeway = SKEW_SECONDS;
        validation.validate_nbf = true;
        decode::<Value>(token, key, &validation).ok().map(|decoded| decoded.claims)
    }

    /// Returns the user that the claims of a valid token describe.
    fn caller(&self, claims: &Value) -> Option<Caller> {
        let name = claims[self.user_claim.as_str()].as_str()?;
        check_name(name).ok()?;
        // Anyone can enter any address with some providers.
        if self.user_claim == "email" && claims["email_verified"] != true {
            return None;
        }
        let teams: Vec<String> = match &claims[self.team_claim.as_str()] {
            Value::String(team) => vec![team.clone()],
            Value::Array(teams) => {
                teams.iter().take(MAX_TEAMS).filter_map(Value::as_str).map(str::to_owned).collect()
            }
            _ => Vec::new(),
        };
        let role = teams.iter().filter_map(|team| self.roles.get(team)).max().copied().or(self.role)?;
        let teams: Vec<String> = teams.into_iter().filter(|team| check_name(team).is_ok()).collect();
        let expires = claims["exp"].as_u64()?.saturating_add(SKEW_SECONDS);
        let now = codewright_proto::Clock::system().now_ms() / 1000;
        let until =
            Instant::now() + Duration::from_secs(expires.saturating_sub(now).min(VALID_FOR.as_secs()));
        Some(Caller { name: name.into(), role, teams: teams.into(), until: Some(until) })
    }

    /// Returns the key of a token, which is fetched if it is not known.
    async fn key(&self, engine: &Engine, id: Option<&str>, algorithm: Algorithm) -> Option<Jwk> {
        // Others wait for the fetch, which has a deadline.
        let mut keys = self.keys.lock().await;
        let is_fresh = keys.fetched.is_some_and(|at| at.elapsed() < FRESH_FOR);
        let found = keys.find(id, algorithm);
        // A known key that does not fit the signature is no reason to ask again.
        let is_known =
            id.is_some_and(|id| keys.set.iter().any(|key| key.common.key_id.as_deref() == Some(id)));
        if is_fresh && (found.is_some() || is_known) {
            return found;
        }
        let may_fetch = if found.is_some() || is_known || keys.fetched.is_none() {
            keys.may_renew()
        } else {
            keys.may_ask_for(id.unwrap_or_default())
        };
        if may_fetch && let Some(set) = self.fetch(engine).await {
            keys.set = set;
            keys.fetched = Some(Instant::now());
        }
        let is_valid = keys.fetched.is_some_and(|at| at.elapsed() < VALID_FOR);
        if is_valid { keys.find(id, algorithm) } else { None }
    }

    async fn fetch(&self, engine: &Engine) -> Option<Vec<Jwk>> {
        let get = async |url: &str| engine.users().fetch(url, MAX_ANSWER_BYTES, FETCH_DEADLINE).await.ok();
        let address = format!("{}/.well-known/openid-configuration", self.issuer.trim_end_matches('/'));
        let found: Discovery = serde_json::from_str(&get(&address).await?).ok()?;
        if found.issuer != self.issuer || !is_safe(&found.jwks_uri) {
            return None;
        }
        // Keys of unknown kinds do not make the others unusable.
        let set: Value = serde_json::from_str(&get(&found.jwks_uri).await?).ok()?;
        let keys = set["keys"].as_array()?.iter().take(MAX_KEYS);
        let known = keys.filter_map(|key| serde_json::from_value(key.clone()).ok()).collect();
        Some(JwkSet { keys: known }.keys)
    }
}

impl Keys {
    /// Reports whether old keys may be fetched again, and notes it.
    fn may_renew(&mut self) -> bool {
        let may = self.renewed.is_none_or(|at| at.elapsed() >= PAUSE);
        if may {
            self.renewed = Some(Instant::now());
        }
        may
    }

    /// Reports whether the keys may be fetched for an unknown one, and notes it.
    fn may_ask_for(&mut self, id: &str) -> bool {
        self.unknown.retain(|(_, at)| at.elapsed() < UNKNOWN_FOR);
        self.tried.retain(|at| at.elapsed() < BURST_INTERVAL);
        let is_paused = self.tried.back().is_none_or(|at| at.elapsed() >= PAUSE);
        if self.unknown.iter().any(|(known, _)| known == id) || (self.tried.len() >= MAX_BURST && !is_paused)
        {
            return false;
        }
        self.tried.push_back(Instant::now());
        if self.unknown.len() >= MAX_UNKNOWN {
            self.unknown.pop_front();
        }
        self.unknown.push_back((id.to_owned(), Instant::now()));
        true
    }

    /// Returns the key with an id, or the only one for a token that names none.
    fn find(&self, id: Option<&str>, algorithm: Algorithm) -> Option<Jwk> {
        let fits = |key: &&Jwk| {
            let common = &key.common;
            let is_for_signatures =
                common.public_key_use.as_ref().is_none_or(|of| *of == PublicKeyUse::Signature);
            let named = common.key_algorithm.and_then(|name| name.to_string().parse::<Algorithm>().ok());
            is_for_signatures
                && named.is_none_or(|named| named == algorithm)
                && id.is_none_or(|id| common.key_id.as_deref() == Some(id))
        };
        let mut fitting = self.set.iter().filter(fits);
        let first = fitting.next()?;
        (id.is_some() || fitting.next().is_none()).then(|| first.clone())
    }
}

/// Whether an address is encrypted, or on this machine.
fn is_safe(address: &str) -> bool {
    let Some((scheme, rest)) = address.split_once("://") else { return false };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    scheme == "https" || (scheme == "http" && crate::host::is_loopback(authority))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn tokens_with_unknown_keys_cause_few_fetches_and_delay_a_new_key_only_shortly() {
        let mut keys = Keys::default();
        assert!(keys.may_renew() && !keys.may_renew());
        assert!(keys.may_ask_for("a") && !keys.may_ask_for("a"), "the same key is not asked for at once");
        let burst = (0..1000).filter(|at| keys.may_ask_for(&at.to_string())).count();
        assert_eq!(burst, MAX_BURST - 1);
        assert!(!keys.may_ask_for("new"));
        tokio::time::advance(PAUSE).await;
        assert!(keys.may_ask_for("new") && keys.may_renew());
        let mut fetches = 0;
        for at in 0..300 {
            tokio::time::advance(Duration::from_secs(1)).await;
            fetches += usize::from(keys.may_ask_for(&format!("forged {at}")));
        }
        assert!(fetches <= MAX_BURST + 20, "{fetches}");
        assert!(keys.unknown.len() <= MAX_UNKNOWN && keys.tried.len() <= MAX_BURST + 20);
        tokio::time::advance(BURST_INTERVAL).await;
        assert!(keys.may_ask_for("a"));
    }
}
