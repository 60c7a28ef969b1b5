//! On whose behalf something is requested, decided or written.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

/// Who sets a rule, gives a reply, sends a prompt or wrote a document, from the most to the least authority.
///
/// The server sets it; clients cannot. The crate `permission` has the table of what each may loosen.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Principal {
    /// The owner of the machine: a program of the account that runs the server, and the user's own configuration.
    #[default]
    Owner,
    /// The operator of a server with users: a program of the account that runs the server, and its configuration.
    Operator,
    /// An administrator of a server with users.
    Admin,
    /// Any other user of such a server.
    Member,
    /// The configuration of a repository.
    Repository,
    /// A plugin of a repository. A plugin of the user's own configuration acts for the owner.
    Plugin,
    /// An imported document.
    Document,
    /// The model.
    Model,
}

impl Principal {
    /// Every principal, from the most to the least authority.
    pub const ALL: [Self; 8] = [
        Self::Owner,
        Self::Operator,
        Self::Admin,
        Self::Member,
        Self::Repository,
        Self::Plugin,
        Self::Document,
        Self::Model,
    ];

    /// The name in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Owner => "owner",
            Self::Operator => "operator",
            Self::Admin => "admin",
            Self::Member => "member",
            Self::Repository => "repository",
            Self::Plugin => "plugin",
            Self::Document => "document",
            Self::Model => "model",
        }
    }

    /// Whether only others may widen what this one can reach.
    #[must_use]
    pub fn is_limited(self) -> bool {
        match self {
            Self::Owner | Self::Operator | Self::Admin => false,
            Self::Member | Self::Repository | Self::Plugin | Self::Document | Self::Model => true,
        }
    }
}

/// The principal of a stored rule, or the mark that earlier versions gave to the rules of imported documents.
#[derive(Deserialize)]
#[serde(untagged)]
enum Stored {
    Principal(Principal),
    Imported(bool),
    Unknown(serde::de::IgnoredAny),
}

/// Reads the principal of a stored rule. A principal that this version does not know has no power.
pub(crate) fn stored<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Principal>, D::Error> {
    Ok(match Option::<Stored>::deserialize(from)? {
        Some(Stored::Principal(principal)) => Some(principal),
        Some(Stored::Imported(true)) => Some(Principal::Document),
        Some(Stored::Imported(false)) | None => None,
        Some(Stored::Unknown(_)) => Some(Principal::Model),
    })
}
