//! The credentials that are stored on this machine.
//!
//! OpenCode's `auth.json` is read first and ours over it; only ours is written. A write is whole
//! or not at all, keeps the entries and the order it does not know, and waits for the writes of
//! other processes, so that none is lost. No `Debug` text, warning or error shows a secret. This
//! is the one place of the room that touches the disk, and the paths are given to it.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::{fmt, io};

use serde_json::{Map, Value};

use crate::{Error, Secret};

mod file;

pub(crate) use file::Lock;

/// The most entries that are warned about.
const WARNINGS_LIMIT: usize = 20;
/// The longest name of a provider; it becomes part of a file name.
const NAME_LIMIT_BYTES: usize = 512;

/// What proves to a provider who pays.
#[derive(Clone, PartialEq)]
pub enum Credential {
    /// A key that is sent along.
    Api {
        /// The key.
        key: Secret,
        /// What else the entry says, such as an account.
        extra: Map<String, Value>,
    },
    /// Tokens from a sign-in.
    OAuth(Tokens),
    /// A token for an organisation's own address, to be set as a variable.
    WellKnown {
        /// The variable.
        key: String,
        /// The token.
        token: Secret,
    },
}

/// What a sign-in gave.
#[derive(Clone, PartialEq)]
pub struct Tokens {
    /// What is sent along.
    pub access: Secret,
    /// What new access tokens are asked with.
    pub refresh: Secret,
    /// When `access` ends, in milliseconds since 1970; 0 when it never does or is not known.
    pub expires_ms: u64,
    /// What else the entry says: `accountId`, `enterpriseUrl` and what we do not know.
    pub extra: Map<String, Value>,
}

impl Tokens {
    /// A text that came with the sign-in.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<&str> {
        self.extra.get(name)?.as_str().filter(|text| !text.is_empty())
    }
}

/// Where a credential was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The variable that takes the place of the files.
    Variable,
    /// OpenCode's file, which is never written.
    Original,
    /// Our own file.
    Own,
}

/// The credentials as they were when they were read.
#[derive(Debug, Clone, Default)]
pub struct Stored {
    entries: BTreeMap<String, (Credential, Source)>,
    /// Entries that were passed over, and why.
    pub warnings: Vec<String>,
}

impl Stored {
    /// The credential for a provider.
    #[must_use]
    pub fn get(&self, provider: &str) -> Option<&Credential> {
        self.entries.get(name(provider)).map(|(credential, _)| credential)
    }

    /// Whether the same keys and accounts are there; tokens, which are renewed now and then, do not count.
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

    /// Every provider there is a credential for, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Credential, Source)> {
        self.entries.iter().map(|(provider, (credential, source))| (provider.as_str(), credential, *source))
    }

    fn read(&mut self, entries: Map<String, Value>, source: Source, shown: &str) {
        for (provider, value) in entries {
            // Addresses are stored with and without the slash at their end.
            let provider = name(&provider);
            match credential(&value) {
                Some(credential) => drop(self.entries.insert(provider.to_owned(), (credential, source))),
                // Signed out here; the original's file is not ours to change.
                None if value.is_null() => drop(self.entries.remove(provider)),
                None if self.warnings.len() < WARNINGS_LIMIT => self.warnings.push(format!(
                    "`{shown}`: the entry `{provider}` is not a credential this version knows, and is ignored"
                )),
                None => {}
            }
        }
    }
}

/// Inode, length and time of the two files, as far as they are there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stamp([Option<(u64, u64, i64, i64)>; 2]);

/// Where credentials are read and written. Clones share everything.
#[derive(Clone)]
pub struct Vault(Arc<Inner>);

struct Inner {
    own: PathBuf,
    original: PathBuf,
    /// JSON in place of the files, and what has been changed of it since; nothing of that is written.
    given: Option<Mutex<String>>,
}

impl Vault {
    /// The vault in our file, over the original's; `given` is JSON that takes the place of both.
    #[must_use]
    pub fn new(own: PathBuf, original: PathBuf, given: Option<String>) -> Self {
        Self(Arc::new(Inner { own, original, given: given.map(Mutex::new) }))
    }

    /// Reads what is stored; that nothing is, is no error.
    ///
    /// # Errors
    /// When a file is there and cannot be read.
    pub fn read(&self) -> Result<Stored, Error> {
        let mut stored = Stored::default();
        if let Some(given) = &self.0.given {
            let text = given.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let shown = "OPENCODE_AUTH_CONTENT";
            stored.read(parse(&text, shown)?, Source::Variable, shown);
            return Ok(stored);
        }
        for (path, source) in [(&self.0.original, Source::Original), (&self.0.own, Source::Own)] {
            stored.read(file::read(path)?, source, &path.display().to_string());
        }
        Ok(stored)
    }

    /// What the files look like from outside: it differs when one was replaced.
    #[must_use]
    pub fn stamp(&self) -> Stamp {
        let of = |path: &PathBuf| {
            let file = std::fs::metadata(path).ok()?;
            Some((file.ino(), file.len(), file.mtime(), file.mtime_nsec()))
        };
        // What a variable gives is changed by this process alone.
        if self.0.given.is_some() { Stamp::default() } else { Stamp([of(&self.0.original), of(&self.0.own)]) }
    }

    /// The file that is written.
    #[must_use]
    pub fn path(&self) -> &std::path::Path {
        &self.0.own
    }

    /// Stores a credential in place of the one there is. Waits for other processes, on a thread that may.
    ///
    /// # Errors
    /// When the file cannot be read, locked or written; then it is as it was.
    pub fn set(&self, provider: &str, credential: &Credential) -> Result<(), Error> {
        let provider = checked(provider)?;
        self.change(|entries| {
            // The original writes addresses with a slash at their end, and it stays.
            let known = entries.keys().find(|known| name(known) == provider).cloned();
            entries.insert(known.unwrap_or_else(|| provider.to_owned()), json(credential));
        })
    }

    /// Changes the credential that is there at the moment of writing; whether there is one. What others
    /// have stored of it meanwhile is not lost.
    ///
    /// # Errors
    /// When the file cannot be read, locked or written; then it is as it was.
    pub fn amend(&self, provider: &str, amend: impl FnOnce(&mut Credential)) -> Result<bool, Error> {
        let provider = checked(provider)?;
        let original = match &self.0.given {
            Some(_) => None,
            None => entry(&file::read(&self.0.original)?, provider).cloned(),
        };
        let mut found = false;
        self.change(|entries| {
            let stored = entry(entries, provider).or(original.as_ref());
            let Some(mut known) = stored.and_then(credential) else { return };
            found = true;
            let before = known.clone();
            amend(&mut known);
            if known == before {
                return;
            }
            let key = entries.keys().find(|known| name(known) == provider).cloned();
            entries.insert(key.unwrap_or_else(|| provider.to_owned()), json(&known));
        })?;
        Ok(found)
    }

    /// Forgets a credential; whether there was one.
    ///
    /// One of the original's file stays there, and is marked in ours as signed out.
    ///
    /// # Errors
    /// When the file cannot be read, locked or written; then it is as it was.
    pub fn remove(&self, provider: &str) -> Result<bool, Error> {
        let provider = checked(provider)?;
        let was = self.read()?.get(provider).is_some();
        let in_original = self.0.given.is_none()
            && file::read(&self.0.original)?.keys().any(|known| name(known) == provider);
        if !was {
            return Ok(false);
        }
        self.change(|entries| {
            entries.retain(|known, _| name(known) != provider);
            if in_original {
                entries.insert(provider.to_owned(), Value::Null);
            }
        })?;
        Ok(true)
    }

    /// Keeps other processes from renewing the sign-in of a provider, unless one of them does.
    pub(crate) fn lock_renewal(&self, provider: &str) -> Result<Option<Lock>, Error> {
        let provider = checked(provider)?;
        let safe = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' };
        let safe: String = provider.chars().map(safe).take(100).collect();
        Lock::attempt(&beside(&self.0.own, &format!(".{safe}.lock")))
    }

    fn change(&self, change: impl FnOnce(&mut Map<String, Value>)) -> Result<(), Error> {
        if let Some(given) = &self.0.given {
            let mut text = given.lock().unwrap_or_else(PoisonError::into_inner);
            let mut entries = parse(&text, "OPENCODE_AUTH_CONTENT")?;
            change(&mut entries);
            *text = Value::Object(entries).to_string();
            return Ok(());
        }
        let _lock = Lock::take(&beside(&self.0.own, ".lock"))?;
        let mut entries = file::read(&self.0.own)?;
        change(&mut entries);
        file::write(&self.0.own, &entries)
    }
}

fn beside(path: &std::path::Path, end: &str) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(end);
    path.with_file_name(name)
}

fn name(provider: &str) -> &str {
    provider.trim_end_matches('/')
}

/// The entry of a provider, with or without a slash at its end.
fn entry<'a>(entries: &'a Map<String, Value>, provider: &str) -> Option<&'a Value> {
    entries.iter().rfind(|(known, _)| name(known) == provider).map(|(_, entry)| entry)
}

fn checked(provider: &str) -> Result<&str, Error> {
    let provider = name(provider);
    if provider.is_empty() || provider.len() > NAME_LIMIT_BYTES || provider.chars().any(char::is_control) {
        return Err(Error::rejected("a provider's name must be one line of 1 to 512 bytes"));
    }
    Ok(provider)
}

/// Reads a document of credentials; a problem is named by its place alone, as the text is secret.
fn parse(text: &str, shown: &str) -> Result<Map<String, Value>, Error> {
    let text = text.trim_start_matches('\u{feff}');
    if text.trim().is_empty() {
        return Ok(Map::new());
    }
    match serde_json::from_str(text) {
        Ok(Value::Object(entries)) => Ok(entries),
        Ok(_) => Err(Error::rejected(format!("`{shown}` must hold a JSON object"))),
        Err(why) => Err(Error::rejected(format!(
            "`{shown}` line {}, column {}: this is not JSON; mend or remove the file",
            why.line(),
            why.column()
        ))),
    }
}

/// Reads one entry.
#[must_use]
pub fn credential(entry: &Value) -> Option<Credential> {
    let entry = entry.as_object()?;
    let text = |key: &str| entry.get(key)?.as_str().map(str::to_owned);
    let rest = |known: &[&str]| {
        let mut rest = entry.clone();
        rest.retain(|key, _| key != "type" && !known.contains(&key.as_str()));
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

/// The entry of a credential, in the original's form.
fn json(credential: &Credential) -> Value {
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

fn failed(path: &std::path::Path, what: &str, why: &io::Error) -> Error {
    Error::rejected(format!("cannot {what} `{}`: {why}", path.display()))
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
        f.debug_struct("Vault").field("own", &self.0.own).finish_non_exhaustive()
    }
}
