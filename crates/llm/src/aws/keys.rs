//! AWS keys, and where they may come from.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::Secret;

/// The possible sources of keys and region.
#[derive(Clone, Default)]
pub struct Sources {
    /// The keys in the configuration; they win over all other sources.
    pub keys: Option<Keys>,
    /// The region in the configuration.
    pub region: Option<String>,
    /// The profile in the configuration; it wins over keys in the environment.
    pub profile: Option<String>,
    /// The environment variables whose names begin with `AWS_`.
    pub variables: BTreeMap<String, String>,
    /// The user's home directory, which contains `.aws`.
    pub home: Option<PathBuf>,
}

/// AWS keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keys {
    /// The access key's id.
    pub access_key_id: String,
    /// The secret that signs requests.
    pub secret_access_key: Secret,
    /// The session token that temporary keys need.
    pub session_token: Option<Secret>,
    /// The expiry in milliseconds since 1970, if known.
    pub expires_ms: Option<u64>,
}

impl Sources {
    pub(super) fn variable(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// Returns whether keys are configured. Does not look for the role of an instance, which takes
    /// time.
    #[must_use]
    pub fn is_configured(&self) -> bool {
        const NAMES: &[&str] = &[
            "AWS_ACCESS_KEY_ID",
            "AWS_PROFILE",
            "AWS_WEB_IDENTITY_TOKEN_FILE",
            "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
            "AWS_CONTAINER_CREDENTIALS_FULL_URI",
        ];
        self.keys.is_some()
            || self.profile.is_some()
            || NAMES.iter().any(|name| self.variable(name).is_some())
    }
}

impl std::fmt::Debug for Sources {
    /// The values of variables are secret, so only their names are printed.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sources")
            .field("region", &self.region)
            .field("profile", &self.profile)
            .field("variables", &self.variables.keys())
            .finish_non_exhaustive()
    }
}
