//! The credentials stored on this machine.
//!
//! OpenCode's `auth.json` is read first, and our file overrides it. Only our file is written. A
//! write is atomic, keeps unknown entries and the order, and waits for other processes, so that no
//! change is lost. `Debug` output, warnings and errors never contain a secret. No other module of
//! this crate accesses the disk; the caller passes the paths.

use std::collections::BTreeMap;
use std::fmt;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Map, Value};

use crate::{Error, Secret};

mod file;
mod records;

pub use file::Lock;
pub use records::Records;

/// Limit of warnings about entries.
const WARNINGS_LIMIT: usize = 20;
/// Limit of a provider's name, which becomes part of a file name.
const NAME_LIMIT_BYTES: usize = 512;

/// A credential for a provider.
#[derive(Clone, PartialEq)]
pub enum Credential {
    /// An API key.
    Api {
        /// The key.
        key: Secret,
        /// The other fields of the entry, such as an account.
        extra: Map<String, Value>,
    },
    /// Tokens of a sign-in.
    OAuth(Tokens),
    /// A token for an organization's server, passed in an environment variable.
    WellKnown {
        /// The variable.
        key: String,
        /// The token.
        token: Secret,
    },
}

/// The tokens of a sign-in.
#[derive(Clone, PartialEq)]
pub struct Tokens {
    /// The access token, which requests contain.
    pub access: Secret,
    /// The refresh token, which new access tokens are requested with.
    pub refresh: Secret,
    /// The time at which `access` expires, in milliseconds since 1970; 0 if never or unknown.
    pub expires_ms: u64,
    /// The other fields of the entry, such as `accountId` and `enterpriseUrl`.
    pub extra: Map<String, Value>,
}

impl Tokens {
    /// Returns an additional field that is text and not empty.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<&str> {
        self.extra.get(name)?.as_str().filter(|text| !text.is_empty())
    }
}

/// The source of a credential.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The environment variable that replaces the files.
    Variable,
    /// OpenCode's file, which is never written.
    Original,
    /// Our file.
    Own,
}

/// A snapshot of the credentials.
#[derive(Debug, Clone, Default)]
pub struct Stored {
    entries: BTreeMap<String, (Credential, Source)>,
    /// The entries that were ignored, and the reasons.
    pub warnings: Vec<String>,
}

impl Stored {
    /// Returns the credential of a provider.
    #[must_use]
    pub fn get(&self, provider: &str) -> Option<&Credential> {
        self.entries.get(name(provider)).map(|(credential, _)| credential)
    }

    /// Returns whether both contain the same keys and accounts. Ignores tokens, which change when
    /// they are refreshed.
    #[must_use]
    pub fn is_like(&self, other: &Self) -> bool {
        let alike = |one: &Credential, other: &Credential| match (one, other) {
            (Credential::OAuth(one), Credential::OAuth(other)) => one.extra == other.extra,
            (one, other) => one == other,
        };
        self.entries.len() == other.entries.len()
            && self
                .entries
                .iter()
                .zip(&other.entries)
                .all(|((one, (mine, _)), (other, (theirs, _)))| one == other && alike(mine, theirs))
    }

    /// Returns all credentials, sorted by provider.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Credential, Source)> {
        self.entries.iter().map(|(provider, (credential, source))| (provider.as_str(), credential, *source))
    }

    fn read(&mut self, entries: Map<String, Value>, source: Source, label: &str) {
        for (provider, value) in entries {
            // URLs are stored with and without a trailing slash.
            let provider = name(&provider);
            match credential(&value) {
                Some(credential) => drop(self.entries.insert(provider.to_owned(), (credential, source))),
                // The user signed out here; the original's file must not be changed.
                None if value.is_null() => drop(self.entries.remove(provider)),
                None if self.warnings.len() < WARNINGS_LIMIT => self.warnings.push(format!(
                    "`{label}`: the entry `{provider}` is not a credential that this version supports; ignoring it"
                )),
                None => {}
            }
        }
    }
}

/// Inode, length and modification time of both files, if they exist.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stamp([Option<(u64, u64, i64, i64)>; 2]);

/// Reads and writes credentials. Clones share everything.
#[derive(Clone)]
pub struct Vault(Arc<Inner>);

struct Inner {
    own: Records,
    original: PathBuf,
    /// JSON that replaces the files, with later changes. Never written to disk.
    given: Option<Mutex<String>>,
}

impl Vault {
    /// Creates a vault in the file `own` over the file `original`. `given` is JSON that replaces
    /// both.
    #[must_use]
    pub fn new(own: PathBuf, original: PathBuf, given: Option<String>) -> Self {
        Self(Arc::new(Inner { own: Records::new(own), original, given: given.map(Mutex::new) }))
    }

    /// Reads the stored credentials. Missing files are empty.
    ///
    /// # Errors
    ///
    /// Fails if a file exists but cannot be read.
    pub fn read(&self) -> Result<Stored, Error> {
        let mut stored = Stored::default();
        if let Some(given) = &self.0.given {
            let text = given.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let label = "OPENCODE_AUTH_CONTENT";
            stored.read(file::parse(&text, label)?, Source::Variable, label);
            return Ok(stored);
        }
        for (path, source) in [(self.0.original.as_path(), Source::Original), (self.path(), Source::Own)] {
            stored.read(file::read(path)?, source, &path.display().to_string());
        }
        Ok(stored)
    }

    /// Returns a stamp that changes when a file is replaced.
    #[must_use]
    pub fn stamp(&self) -> Stamp {
        let of = |path: &std::path::Path| {
            let file = std::fs::metadata(path).ok()?;
            Some((file.ino(), file.len(), file.mtime(), file.mtime_nsec()))
        };
        // Only this process changes the credentials from a variable.
        if self.0.given.is_some() { Stamp::default() } else { Stamp([of(&self.0.original), of(self.path())]) }
    }

    /// Returns the path of the file that is written.
    #[must_use]
    pub fn path(&self) -> &std::path::Path {
        self.0.own.path()
    }

    /// Stores a credential and replaces an existing one. Blocks the thread while other processes
    /// write.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read, locked or written. The file is then unchanged.
    pub fn set(&self, provider: &str, credential: &Credential) -> Result<(), Error> {
        let provider = check_name(provider)?;
        self.change(|entries| {
            // OpenCode writes URLs with a trailing slash. The existing spelling is kept.
            let current = entries.keys().find(|current| name(current) == provider).cloned();
            entries.insert(current.unwrap_or_else(|| provider.to_owned()), json(credential));
        })
    }

    /// Changes a credential in its newest state, so that changes by other processes are not lost.
    /// Returns whether the credential exists.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read, locked or written. The file is then unchanged.
    pub fn amend(&self, provider: &str, amend: impl FnOnce(&mut Credential)) -> Result<bool, Error> {
        let provider = check_name(provider)?;
        let original = match &self.0.given {
            Some(_) => None,
            None => entry(&file::read(&self.0.original)?, provider).cloned(),
        };
        let mut found = false;
        self.change(|entries| {
            let stored = entry(entries, provider).or(original.as_ref());
            let Some(mut current) = stored.and_then(credential) else { return };
            found = true;
            let before = current.clone();
            amend(&mut current);
            if current == before {
                return;
            }
            let key = entries.keys().find(|current| name(current) == provider).cloned();
            entries.insert(key.unwrap_or_else(|| provider.to_owned()), json(&current));
        })?;
        Ok(found)
    }

    /// Removes a credential. Returns whether it existed.
    ///
    /// A credential in the original's file stays there, and our file marks it as signed out.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read, locked or written. The file is then unchanged.
    pub fn remove(&self, provider: &str) -> Result<bool, Error> {
        let provider = check_name(provider)?;
        let exists = self.read()?.get(provider).is_some();
        let in_original = self.0.given.is_none()
            && file::read(&self.0.original)?.keys().any(|current| name(current) == provider);
        if !exists {
            return Ok(false);
        }
        self.change(|entries| {
            entries.retain(|current, _| name(current) != provider);
            if in_original {
                entries.insert(provider.to_owned(), Value::Null);
            }
        })?;
        Ok(true)
    }

    /// Locks the token refresh of a provider against other processes. Returns `None` if one of them
    /// holds the lock.
    pub(crate) fn lock_refresh(&self, provider: &str) -> Result<Option<Lock>, Error> {
        let provider = check_name(provider)?;
        self.0.own.try_lock(provider)
    }

    fn change(&self, change: impl FnOnce(&mut Map<String, Value>)) -> Result<(), Error> {
        if let Some(given) = &self.0.given {
            let mut text = given.lock().unwrap_or_else(PoisonError::into_inner);
            let mut entries = file::parse(&text, "OPENCODE_AUTH_CONTENT")?;
            change(&mut entries);
            *text = Value::Object(entries).to_string();
            return Ok(());
        }
        self.0.own.change(change)
    }
}

fn name(provider: &str) -> &str {
    provider.trim_end_matches('/')
}

/// Returns the entry of a provider, with or without a trailing slash.
fn entry<'a>(entries: &'a Map<String, Value>, provider: &str) -> Option<&'a Value> {
    entries.iter().rfind(|(current, _)| name(current) == provider).map(|(_, entry)| entry)
}

fn check_name(provider: &str) -> Result<&str, Error> {
    let provider = name(provider);
    if provider.is_empty() || provider.len() > NAME_LIMIT_BYTES || provider.chars().any(char::is_control) {
        return Err(Error::rejected("a provider's name must be one line of 1 to 512 bytes"));
    }
    Ok(provider)
}

/// Parses an entry.
#[must_use]
pub fn credential(entry: &Value) -> Option<Credential> {
    let entry = entry.as_object()?;
    let text = |key: &str| entry.get(key)?.as_str().map(str::to_owned);
    let rest = |current: &[&str]| {
        let mut rest = entry.clone();
        rest.retain(|key, _| key != "type" && !current.contains(&key.as_str()));
        rest
    };
    match entry.get("type")?.as_str()? {
        "api" => Some(Credential::Api { key: text("key")?.into(), extra: rest(&["key"]) }),
        "oauth" => Some(Credential::OAuth(Tokens {
            access: text("access")?.into(),
            refresh: text("refresh")?.into(),
            expires_ms: entry.get("expires")?.as_f64()? as u64,
            extra: rest(&["access", "refresh", "expires"]),
        })),
        "wellknown" => Some(Credential::WellKnown { key: text("key")?, token: text("token")?.into() }),
        _ => None,
    }
}

/// Returns the entry of a credential, in OpenCode's format. It contains secrets.
#[must_use]
pub fn json(credential: &Credential) -> Value {
    let mut entry = Map::new();
    let mut put = |key: &str, value: Value| drop(entry.insert(key.to_owned(), value));
    match credential {
        Credential::Api { key, extra } => {
            put("type", "api".into());
            put("key", key.expose().into());
            entry.extend(extra.clone());
        }
        Credential::OAuth(tokens) => {
            put("type", "oauth".into());
            put("refresh", tokens.refresh.expose().into());
            put("access", tokens.access.expose().into());
            put("expires", tokens.expires_ms.into());
            entry.extend(tokens.extra.clone());
        }
        Credential::WellKnown { key, token } => {
            put("type", "wellknown".into());
            put("key", key.as_str().into());
            put("token", token.expose().into());
        }
    }
    Value::Object(entry)
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Api { .. } => f.debug_struct("Api").finish_non_exhaustive(),
            Self::OAuth(tokens) => tokens.fmt(f),
            Self::WellKnown { key, .. } => {
                f.debug_struct("WellKnown").field("key", key).finish_non_exhaustive()
            }
        }
    }
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tokens").field("expires_ms", &self.expires_ms).finish_non_exhaustive()
    }
}

impl fmt::Debug for Vault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Vault").field("own", &self.path()).finish_non_exhaustive()
    }
}
