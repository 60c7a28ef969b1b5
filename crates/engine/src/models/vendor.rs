//! The vendors that need code: one file each, and one row in the list ([`list`]).
//!
//! A vendor declares its differences in a [`Vendor`] and answers for one provider as an
//! [`Account`]. Everything else about a provider is data: the catalog and the configuration.
//! To remove a vendor, delete its file and its row.

use codewright_config::{Env, ProviderConfig};
use codewright_llm::catalog::{self, ProviderRow};
use codewright_llm::vault::Tokens;
use codewright_llm::{Model, Protocol};
use serde_json::Value;

use super::credentials::{Access, SignedIn};

mod aws;
mod azure;
mod cloudflare;
mod copilot;
mod gitlab;
pub(super) mod list;
mod ollama;
mod openai;
mod snowflake;
mod vertex;
mod zen;

/// The differences of a vendor that do not depend on a provider's configuration.
struct Vendor {
    /// Parts of addresses that may be stored next to a key.
    notes: &'static [Note],
    /// A subscription whose sign-in replaces a key.
    subscription: Option<Subscription>,
    /// Whether the provider with this id is offered without a user's key.
    is_offered: fn(&str, &Env) -> bool,
    /// The address of a server on this machine, if it is not the usual one.
    local_url: fn(&ProviderRow, &Env) -> Option<String>,
    /// Opens the vendor's account for a provider that may use it.
    open: fn(&Input<'_>) -> Option<Box<dyn Account>>,
}

/// A vendor without differences, to start from.
const PLAIN: Vendor = Vendor {
    notes: &[],
    subscription: None,
    is_offered: |_, _| false,
    local_url: |_, _| None,
    open: |_| None,
};

/// A part of an address that may be stored next to a key or sign-in.
pub(super) struct Note {
    /// The environment variable that holds the same value.
    pub(super) variable: &'static str,
    /// The field of a stored key.
    pub(super) key_field: &'static str,
    /// The field of a stored sign-in.
    pub(super) sign_in_field: &'static str,
    /// A domain that users write after the value.
    pub(super) domain: Option<&'static str>,
    /// Whether the stored value is preferred to the variable.
    pub(super) is_preferred: bool,
}

/// A note in `key_field` of a stored key.
const fn note(variable: &'static str, key_field: &'static str) -> Note {
    Note { variable, key_field, sign_in_field: key_field, domain: None, is_preferred: false }
}

/// A subscription that pays for the models that are used through its sign-in.
#[derive(Debug, Clone, Copy)]
pub(super) struct Subscription {
    /// The provider that users sign in to.
    provider: &'static str,
    /// The model address for a sign-in.
    pub(super) url: fn(&Tokens) -> String,
    /// The protocol of a model, if it is not the provider's.
    pub(super) protocol: fn(&str) -> Option<Protocol>,
    /// Whether it includes a model.
    pub(super) includes: fn(&str) -> bool,
}

/// The provider that accounts are opened for.
pub(super) struct Input<'a> {
    pub(super) id: &'a str,
    /// The id under which the catalog lists the provider.
    pub(super) catalog_id: &'a str,
    pub(super) written: &'a ProviderConfig,
    /// The library that the configuration or the catalog names.
    pub(super) library: Option<&'a str>,
    pub(super) key: Option<&'a str>,
    pub(super) sign_in: Option<&'a SignedIn>,
    /// The variables of addresses that have a value.
    pub(super) variables: &'a [(String, String)],
    pub(super) access: Access<'a>,
}

/// The library and protocol of one provider or model.
#[derive(Clone, Copy)]
pub(super) struct Wire<'a> {
    /// The library that the configuration or the model names, else the provider's.
    pub(super) library: Option<&'a str>,
    pub(super) protocol: Protocol,
}

/// Whether requests need a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Key {
    Required,
    /// The machine has credentials, perhaps for other uses. They are read when a request needs them.
    Ambient,
    /// The vendor's public key, which gives access to the models without a price.
    Public(&'static str),
}

/// A vendor's answers for one provider.
pub(super) trait Account: Send + Sync {
    /// Whether the account answers for this library and protocol.
    fn serves(&self, wire: Wire<'_>) -> bool;

    /// The reason why one of the vendor's models cannot be used at all.
    fn refusal(&self, _api_id: &str) -> Option<String> {
        None
    }

    /// Whether the provider needs a key.
    fn key(&self) -> Key {
        Key::Required
    }

    /// Whether models that are not listed may be requested.
    fn has_unlisted_models(&self) -> bool {
        false
    }

    /// The address of the provider, if the account determines it.
    fn address(&self, _wire: Wire<'_>) -> Result<Option<String>, String> {
        Ok(None)
    }

    /// An option from which the account could make an address.
    fn address_option(&self) -> Option<&'static str> {
        None
    }

    /// Sets how requests to the provider are authorized.
    fn authorize(&self, _wire: Wire<'_>, _model: &mut Model) -> Result<(), String> {
        Ok(())
    }

    /// Whether the account uses the provider's sign-in itself.
    fn uses_sign_in(&self) -> bool {
        false
    }

    /// Adapts one model, after the catalog and the configuration are applied.
    fn adapt(&self, _model: &mut Model) {}

    /// The library of one model, if the account determines it.
    fn library(&self, _api_id: &str) -> Option<&'static str> {
        None
    }

    /// What the user can do if the server refuses the credentials, unless they are the provider's key.
    fn advice(&self, _model: &Model) -> Option<String> {
        None
    }
}

impl Input<'_> {
    /// A text among the provider's options.
    fn option(&self, name: &str) -> Option<&str> {
        option(self.written, name)
    }

    /// A part of an address: an option, else a variable.
    fn part(&self, option: &str, variable: &str) -> Option<&str> {
        let variable = || self.variables.iter().find(|(name, _)| name == variable);
        self.option(option).or_else(|| variable().map(|(_, value)| value.as_str()))
    }
}

/// A text among a provider's options that only its vendor understands.
pub(super) fn option<'a>(written: &'a ProviderConfig, name: &str) -> Option<&'a str> {
    written.options.rest.get(name).and_then(Value::as_str).filter(|text| !text.is_empty())
}

/// Whether the library is this one, whatever its version.
fn is_library(library: Option<&str>, name: &str) -> bool {
    library.map(catalog::unpinned) == Some(name)
}
