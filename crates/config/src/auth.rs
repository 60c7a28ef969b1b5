//! The credentials that are stored on this machine.
//!
//! OpenCode's `auth.json` is read first and ours over it; `OPENCODE_AUTH_CONTENT` takes the place of
//! both. Nothing is written, and no `Debug` text or warning shows a secret.

use std::{collections::BTreeMap, fmt};

use serde_json::Value;

use crate::{
    Dirs, Env, Error, FileProblem, Map,
    document::{Origin, schema::Shape},
    env, file,
};

/// The most entries that are warned about.
const MAX_WARNINGS: usize = 20;

/// What proves to a provider who pays.
#[derive(Clone, PartialEq, Eq)]
pub enum Credential {
    /// A key that is sent along.
    Api {
        /// The key.
        key: String,
    },
    /// Tokens from a sign-in.
    OAuth {
        /// What new access tokens are asked with.
        refresh: String,
        /// What is sent along.
        access: String,
        /// When `access` ends, in milliseconds since 1970; 0 when it never does or is not known.
        expires: u64,
        /// The account, where one sign-in has several.
        account_id: Option<String>,
        /// The provider's address in an enterprise.
        enterprise_url: Option<String>,
    },
    /// A token for an organisation's own address, to be set as a variable.
    WellKnown {
        /// The variable.
        key: String,
        /// The token.
        token: String,
    },
}

/// The stored credentials, by provider.
#[derive(Debug, Clone, Default)]
pub struct Auth {
    credentials: BTreeMap<String, Credential>,
    /// Entries that were passed over, and why.
    pub warnings: Vec<String>,
}

impl Auth {
    /// Reads what is stored; that nothing is, is no error.
    pub fn load(dirs: &Dirs, env: &Env) -> Result<Self, Error> {
        let mut auth = Self::default();
        if let Some((name, text)) = env.lookup(env::AUTH_CONTENT).filter(|(_, text)| !text.is_empty()) {
            auth.read(&Origin::new(name, text))?;
            return Ok(auth);
        }
        for dir in [&dirs.opencode_data, &dirs.data] {
            let path = dir.join("auth.json");
            match file::read(&path) {
                Ok(text) => auth.read(&Origin::new(path.display().to_string(), &text))?,
                Err(FileProblem::Missing) => {}
                Err(problem) => return Err(Error::File { path, problem }),
            }
        }
        Ok(auth)
    }

    /// The credential for a provider.
    #[must_use]
    pub fn key(&self, provider: &str) -> Option<&Credential> {
        self.credentials.get(provider.trim_end_matches('/'))
    }

    /// The providers there is a credential for.
    pub fn providers(&self) -> impl Iterator<Item = &str> {
        self.credentials.keys().map(String::as_str)
    }

    fn read(&mut self, origin: &Origin<'_>) -> Result<(), Error> {
        let node = origin.read(&Shape::Map(&Shape::Any), None)?;
        for (provider, value) in node.into_map() {
            match value.as_object().and_then(credential) {
                // Addresses are stored with and without the slash at their end.
                Some(credential) => {
                    self.credentials.insert(provider.trim_end_matches('/').to_owned(), credential);
                }
                None if self.warnings.len() < MAX_WARNINGS => self.warnings.push(format!(
                    "`{}`: the entry `{provider}` is not a credential this version knows, and is ignored",
                    origin.name(),
                )),
                None => {}
            }
        }
        Ok(())
    }
}

fn credential(entry: &Map) -> Option<Credential> {
    let text = |key: &str| entry.get(key).and_then(Value::as_str).map(str::to_owned);
    match entry.get("type")?.as_str()? {
        "api" => Some(Credential::Api { key: text("key")? }),
        "oauth" => Some(Credential::OAuth {
            refresh: text("refresh")?,
            access: text("access")?,
            expires: entry.get("expires")?.as_f64()? as u64,
            account_id: text("accountId"),
            enterprise_url: text("enterpriseUrl"),
        }),
        "wellknown" => Some(Credential::WellKnown { key: text("key")?, token: text("token")? }),
        _ => None,
    }
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Api { .. } => f.debug_struct("Api").finish_non_exhaustive(),
            Self::OAuth { expires, .. } => {
                f.debug_struct("OAuth").field("expires", expires).finish_non_exhaustive()
            }
            Self::WellKnown { key, .. } => {
                f.debug_struct("WellKnown").field("key", key).finish_non_exhaustive()
            }
        }
    }
}
