//! Where keys are looked for, in which order, and how long found ones are kept.

use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::timeout;

use super::profile::{self, Files, Way};
use super::{Account, Keys, Sources, remote};
use crate::Error;
use crate::client::Connections;
use crate::error::Failure;

/// How long before they expire keys are replaced.
const EARLY_MS: u64 = 5 * 60 * 1000;
/// How long keys that do not say when they expire are kept, if getting them took effort.
const KEPT_MS: u64 = 15 * 60 * 1000;
/// How long one search may take; a command a profile names may ask the user something.
const SEARCH_WAIT: Duration = Duration::from_secs(90);

/// Keys that took effort to get. Who searches holds the lock, so that the others wait for what it finds.
#[derive(Debug, Default)]
pub(super) struct Cached(Mutex<Option<Kept>>);

#[derive(Debug)]
struct Kept {
    keys: Keys,
    replace_ms: u64,
}

/// Keys, and whether they are at hand whenever they are wanted.
struct Found {
    keys: Keys,
    is_at_hand: bool,
}

/// Everything a search needs.
pub(super) struct Search<'a> {
    pub(super) sources: &'a Sources,
    pub(super) region: &'a str,
    pub(super) now_ms: u64,
    pub(super) connections: &'a Connections,
}

impl Account {
    /// The keys to sign with now.
    pub(super) async fn keys(&self, connections: &Connections) -> Result<Keys, Error> {
        let mut cached = self.cached.0.lock().await;
        let now_ms = self.clock.now_ms();
        if let Some(kept) = cached.as_ref().filter(|kept| now_ms < kept.replace_ms) {
            return Ok(kept.keys.clone());
        }
        let search = Search { sources: &self.sources, region: &self.region, now_ms, connections };
        let found = match timeout(SEARCH_WAIT, search.run()).await {
            Ok(found) => found,
            Err(_) => Err(Error::busy(format!("no AWS keys were found within {} s", SEARCH_WAIT.as_secs()))),
        };
        match found {
            Ok(Found { keys, is_at_hand: true }) => Ok(keys),
            Ok(Found { keys, is_at_hand: false }) => {
                let replace_ms = match keys.expires_ms {
                    Some(expires_ms) => expires_ms.saturating_sub(EARLY_MS),
                    None => now_ms + KEPT_MS,
                };
                *cached = Some(Kept { keys: keys.clone(), replace_ms });
                Ok(keys)
            }
            Err(error) => {
                // Keys that still hold for a while are better than none.
                let old = cached.as_ref().filter(|kept| kept.keys.expires_ms.is_some_and(|end| now_ms < end));
                old.map(|kept| kept.keys.clone()).ok_or(error)
            }
        }
    }
}

impl Search<'_> {
    async fn run(&self) -> Result<Found, Error> {
        if let Some(keys) = &self.sources.keys {
            return Ok(Found { keys: keys.clone(), is_at_hand: true });
        }
        let is_chosen = self.sources.profile.is_some();
        if !is_chosen && let Some(keys) = environment(self.sources)? {
            return Ok(Found { keys, is_at_hand: true });
        }
        if let Some(way) = self.profile()? {
            let is_at_hand = matches!(way, Way::Keys(_));
            return Ok(Found { keys: self.walk(way).await?, is_at_hand });
        }
        let found = match remote::container(self).await? {
            Some(keys) => Some(keys),
            None => remote::web_identity_of_environment(self).await?,
        };
        let found = match found {
            Some(keys) => Some(keys),
            None => remote::instance(self).await?,
        };
        found
            .map(|keys| Found { keys, is_at_hand: false })
            .ok_or_else(|| refused(nothing_found(self.sources)))
    }

    /// How the profile that counts gets its keys, if it is there and says so.
    fn profile(&self) -> Result<Option<Way>, Error> {
        let name = profile::name(self.sources);
        let files = Files::read(self.sources).map_err(refused)?;
        let is_named = self.sources.profile.is_some() || self.sources.variable("AWS_PROFILE").is_some();
        if is_named && !files.has(name) {
            return Err(refused(format!("there is no AWS profile `{name}` in {}", places(self.sources))));
        }
        let way = files.way(name).map_err(refused)?;
        if is_named && way.is_none() && self.sources.profile.is_some() {
            return Err(refused(format!("the AWS profile `{name}` says nothing about keys")));
        }
        Ok(way)
    }

    /// Goes the way a profile names. Roles may need other roles first, so this calls itself.
    async fn walk(&self, way: Way) -> Result<Keys, Error> {
        let missing = |what: &str| refused(format!("the AWS profile wants {what}, and there are none"));
        Ok(match way {
            Way::Keys(keys) => keys,
            Way::Process(command) => remote::process(&command).await?,
            Way::WebIdentity { role, token_file } => remote::web_identity(self, &role, &token_file).await?,
            Way::Sso(sso) => remote::sso(self, &sso).await?,
            Way::Environment => {
                environment(self.sources)?.ok_or_else(|| missing("keys in the environment"))?
            }
            Way::Container => remote::container(self).await?.ok_or_else(|| missing("a container's keys"))?,
            Way::Instance => remote::instance(self).await?.ok_or_else(|| missing("an instance's keys"))?,
            Way::Role { role, base } => {
                let keys = Box::pin(self.walk(*base)).await?;
                remote::assume_role(self, &role, &keys).await?
            }
        })
    }
}

fn environment(sources: &Sources) -> Result<Option<Keys>, Error> {
    let Some(id) = sources.variable("AWS_ACCESS_KEY_ID") else { return Ok(None) };
    let secret = sources
        .variable("AWS_SECRET_ACCESS_KEY")
        .ok_or_else(|| refused("AWS_ACCESS_KEY_ID is set, but AWS_SECRET_ACCESS_KEY is not"))?;
    Ok(Some(Keys {
        access_key_id: id.trim().to_owned(),
        secret_access_key: secret.into(),
        session_token: sources.variable("AWS_SESSION_TOKEN").map(Into::into),
        expires_ms: None,
    }))
}

fn nothing_found(sources: &Sources) -> String {
    let profile = profile::name(sources);
    format!(
        "no AWS credentials were found. Looked for: a key in AWS_BEARER_TOKEN_BEDROCK; AWS_ACCESS_KEY_ID and \
         AWS_SECRET_ACCESS_KEY; the profile `{profile}` in {}; a container's role \
         (AWS_CONTAINER_CREDENTIALS_RELATIVE_URI or …_FULL_URI); a web identity (AWS_WEB_IDENTITY_TOKEN_FILE and \
         AWS_ROLE_ARN); the role of an EC2 instance",
        places(sources)
    )
}

fn places(sources: &Sources) -> String {
    let shown = profile::paths(sources).into_iter().flatten().map(|path| format!("`{}`", path.display()));
    let shown: Vec<String> = shown.collect();
    if shown.is_empty() {
        "no file, because there is no home directory".to_owned()
    } else {
        shown.join(" and ")
    }
}

/// The error for keys that are missing or not given out: the user has to do something.
pub(super) fn refused(message: impl Into<String>) -> Error {
    Error::Auth { failure: Failure::new(message) }
}

#[cfg(test)]
mod tests;
