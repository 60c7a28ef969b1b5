//! The lookup of AWS keys: its order, and the result cache.

use std::time::Duration;

use codewright_proto::Clock;
use tokio::sync::Mutex;
use tokio::time::timeout;

use super::keys::{Keys, Sources};
use super::profile::{self, Files, KeySource};
use super::remote::{self, Search, auth_error};
use crate::Error;
use crate::transport::Connections;

/// Keys are replaced this long before they expire.
const EARLY_MS: u64 = 5 * 60 * 1000;
/// How long keys without an expiry are cached, if their lookup was expensive.
const CACHED_MS: u64 = 15 * 60 * 1000;
/// Time limit of a lookup. A profile's command may wait for the user.
const SEARCH_WAIT: Duration = Duration::from_secs(90);

/// The cached keys. A lookup holds the lock, so that other requests wait for its result.
#[derive(Debug, Default)]
pub(super) struct Cached(Mutex<Option<CachedKeys>>);

#[derive(Debug)]
struct CachedKeys {
    keys: Keys,
    replace_ms: u64,
}

/// Keys, and whether they can be looked up again at no cost.
struct Found {
    keys: Keys,
    is_cheap: bool,
}

/// The settings of an account, and its cached keys.
pub(super) struct Account {
    pub(super) region: String,
    pub(super) sources: Sources,
    pub(super) clock: Clock,
    pub(super) cached: Cached,
}

impl Account {
    /// Returns the keys to sign with now.
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
            Ok(Found { keys, is_cheap: true }) => Ok(keys),
            Ok(Found { keys, is_cheap: false }) => {
                let replace_ms = match keys.expires_ms {
                    Some(expires_ms) => expires_ms.saturating_sub(EARLY_MS),
                    None => now_ms + CACHED_MS,
                };
                *cached = Some(CachedKeys { keys: keys.clone(), replace_ms });
                Ok(keys)
            }
            Err(error) => {
                // Keep using keys that have not expired yet.
                let old = cached.as_ref().filter(|kept| kept.keys.expires_ms.is_some_and(|end| now_ms < end));
                old.map(|kept| kept.keys.clone()).ok_or(error)
            }
        }
    }
}

impl Search<'_> {
    async fn run(&self) -> Result<Found, Error> {
        if let Some(keys) = &self.sources.keys {
            return Ok(Found { keys: keys.clone(), is_cheap: true });
        }
        let is_chosen = self.sources.profile.is_some();
        if !is_chosen && let Some(keys) = environment(self.sources)? {
            return Ok(Found { keys, is_cheap: true });
        }
        if let Some(source) = self.profile()? {
            let is_cheap = matches!(source, KeySource::Keys(_));
            return Ok(Found { keys: self.load(source).await?, is_cheap });
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
            .map(|keys| Found { keys, is_cheap: false })
            .ok_or_else(|| auth_error(nothing_found(self.sources)))
    }

    /// Returns the key source of the selected profile, if it configures one.
    fn profile(&self) -> Result<Option<KeySource>, Error> {
        let name = profile::name(self.sources);
        let files = Files::read(self.sources).map_err(auth_error)?;
        let is_named = self.sources.profile.is_some() || self.sources.variable("AWS_PROFILE").is_some();
        if is_named && !files.has(name) {
            return Err(auth_error(format!(
                "there is no AWS profile `{name}` in {}",
                file_names(self.sources)
            )));
        }
        let source = files.key_source(name).map_err(auth_error)?;
        if is_named && source.is_none() && self.sources.profile.is_some() {
            return Err(auth_error(format!("the AWS profile `{name}` configures no keys")));
        }
        Ok(source)
    }

    /// Loads keys from a source. Recursive, because a role may need the keys of another role.
    async fn load(&self, source: KeySource) -> Result<Keys, Error> {
        let missing = |what: &str| auth_error(format!("the AWS profile needs {what}, but there are none"));
        Ok(match source {
            KeySource::Keys(keys) => keys,
            KeySource::Process(command) => remote::process(&command).await?,
            KeySource::WebIdentity { role, token_file } => {
                remote::web_identity(self, &role, &token_file).await?
            }
            KeySource::Sso(sso) => remote::sso(self, &sso).await?,
            KeySource::Environment => {
                environment(self.sources)?.ok_or_else(|| missing("keys in the environment"))?
            }
            KeySource::Container => {
                remote::container(self).await?.ok_or_else(|| missing("a container's keys"))?
            }
            KeySource::Instance => {
                remote::instance(self).await?.ok_or_else(|| missing("an instance's keys"))?
            }
            KeySource::Role { role, base } => {
                let keys = Box::pin(self.load(*base)).await?;
                remote::assume_role(self, &role, &keys).await?
            }
        })
    }
}

fn environment(sources: &Sources) -> Result<Option<Keys>, Error> {
    let Some(id) = sources.variable("AWS_ACCESS_KEY_ID") else { return Ok(None) };
    let secret = sources
        .variable("AWS_SECRET_ACCESS_KEY")
        .ok_or_else(|| auth_error("AWS_ACCESS_KEY_ID is set, but AWS_SECRET_ACCESS_KEY is not"))?;
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
        file_names(sources)
    )
}

fn file_names(sources: &Sources) -> String {
    let names = profile::paths(sources).into_iter().flatten().map(|path| format!("`{}`", path.display()));
    let names: Vec<String> = names.collect();
    if names.is_empty() {
        "no file, because there is no home directory".to_owned()
    } else {
        names.join(" and ")
    }
}

#[cfg(test)]
mod tests;
