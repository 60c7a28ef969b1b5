//! Amazon's way of showing who asks: keys from wherever they are kept, and a signature over the request.
//!
//! Keys are looked for when a request needs them, in the order Amazon's own
//! tools look, and kept until shortly before they expire. Requests that need
//! them at once share one search, and every step of it has a deadline.

mod chain;
mod ini;
mod profile;
mod remote;
pub(crate) mod sign;
mod stamp;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use codewright_proto::Clock;
use reqwest::Url;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

use crate::client::Connections;
use crate::{Error, Secret};
use chain::Cached;
use sign::Scope;

/// The region requests go to when none is named anywhere.
const REGION: &str = "us-east-1";

/// Where keys and region may come from.
#[derive(Clone, Default)]
pub struct Sources {
    /// Keys the configuration holds; they win over all else.
    pub keys: Option<Keys>,
    /// The region the configuration names.
    pub region: Option<String>,
    /// The profile the configuration names; it wins over keys in the environment.
    pub profile: Option<String>,
    /// The environment's variables whose names begin with `AWS_`.
    pub variables: BTreeMap<String, String>,
    /// The user's home directory, below which `.aws` lies.
    pub home: Option<PathBuf>,
}

/// Keys, good until they expire.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keys {
    /// The name of the pair.
    pub access_key_id: String,
    /// The half that signs.
    pub secret_access_key: Secret,
    /// What a temporary pair is accepted with.
    pub session_token: Option<Secret>,
    /// When they expire, in milliseconds since 1970; absent when nobody said.
    pub expires_ms: Option<u64>,
}

impl Sources {
    fn variable(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// Whether anything names keys; an instance's own role is not looked for, because that waits.
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
    /// Values of variables are keys, so only their names are shown.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sources")
            .field("region", &self.region)
            .field("profile", &self.profile)
            .field("variables", &self.variables.keys())
            .finish_non_exhaustive()
    }
}

/// An account on Amazon's cloud, as requests sign for it; clones share the keys they found.
#[derive(Clone)]
pub struct Aws(Arc<Account>);

struct Account {
    region: String,
    sources: Sources,
    clock: Clock,
    cached: Cached,
}

impl Aws {
    /// Settles the region, for which the profile's file may be read, and looks for no keys yet.
    #[must_use]
    pub fn new(sources: Sources, clock: Clock) -> Self {
        let named = sources.region.clone().filter(|region| !region.is_empty());
        let named = named.or_else(|| sources.variable("AWS_REGION").map(str::to_owned));
        let named = named.or_else(|| sources.variable("AWS_DEFAULT_REGION").map(str::to_owned));
        let region = named.or_else(|| profile::region(&sources)).unwrap_or_else(|| REGION.to_owned());
        Self(Arc::new(Account { region, sources, clock, cached: Cached::default() }))
    }

    /// The region requests are signed for.
    #[must_use]
    pub fn region(&self) -> &str {
        &self.0.region
    }

    /// Where Bedrock answers in that region.
    #[must_use]
    pub fn bedrock_url(&self) -> String {
        let domain = if self.region().starts_with("cn-") { "amazonaws.com.cn" } else { "amazonaws.com" };
        format!("https://bedrock-runtime.{}.{domain}", self.region())
    }

    /// The id to ask Bedrock for: many models need the prefix of the region's geography.
    #[must_use]
    pub fn model_id(&self, id: &str) -> String {
        crate::protocol::bedrock::profile::id(id, self.region())
    }

    /// Signs a request that is finished but for this.
    pub(crate) async fn sign(
        &self,
        url: &Url,
        headers: &mut HeaderMap,
        body: &[u8],
        connections: &Connections,
    ) -> Result<(), Error> {
        let keys = self.0.keys(connections).await?;
        let scope =
            Scope { keys: &keys, region: self.region(), service: "bedrock", now_ms: self.0.clock.now_ms() };
        let kind = headers.get("content-type").and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        let added = sign::headers(&scope, "POST", url, &[("content-type", kind)], body);
        // What was signed with and what a header or a key in the configuration says cannot both be sent.
        for (name, value) in added {
            let mut value = HeaderValue::from_str(&value)
                .map_err(|_| Error::rejected("the AWS keys hold characters that cannot be sent"))?;
            value.set_sensitive(true);
            headers.insert(HeaderName::from_static(name), value);
        }
        Ok(())
    }
}

impl std::fmt::Debug for Aws {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Aws").field("region", &self.0.region).finish_non_exhaustive()
    }
}

impl PartialEq for Aws {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Aws {}

#[cfg(test)]
mod tests {
    use super::*;

    fn aws(region: Option<&str>, variables: &[(&str, &str)]) -> Aws {
        let variables = variables.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
        let sources = Sources { region: region.map(str::to_owned), variables, ..Sources::default() };
        Aws::new(sources, Clock::stepping(0, 0))
    }

    #[test]
    fn the_first_place_that_names_a_region_counts() {
        let (own, common) = (("AWS_REGION", "eu-west-1"), ("AWS_DEFAULT_REGION", "ap-south-1"));
        for (option, variables, expected) in [
            (Some("us-west-2"), &[own, common][..], "us-west-2"),
            (None, &[own, common], "eu-west-1"),
            (None, &[common, ("AWS_REGION", "")], "ap-south-1"),
            (None, &[], "us-east-1"),
        ] {
            assert_eq!(aws(option, variables).region(), expected);
        }
        let china = aws(Some("cn-north-1"), &[]).bedrock_url();
        assert_eq!(china, "https://bedrock-runtime.cn-north-1.amazonaws.com.cn");
    }

    #[test]
    fn secrets_are_never_printed() {
        let sources = Sources {
            variables: BTreeMap::from([("AWS_SECRET_ACCESS_KEY".to_owned(), "very-secret".to_owned())]),
            ..Sources::default()
        };
        let text = format!("{sources:?} {:?}", Aws::new(sources.clone(), Clock::stepping(0, 0)));
        assert!(!text.contains("very"), "{text}");
    }
}
