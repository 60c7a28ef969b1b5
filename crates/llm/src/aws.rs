//! AWS credentials and request signatures.
//!
//! Keys are looked up when a request needs them, in the order of Amazon's own tools, and cached
//! until shortly before they expire. Concurrent requests share one lookup, and each step
//! has a deadline.

mod chain;
mod ini;
mod keys;
mod profile;
mod remote;
pub(crate) mod sign;
mod stamp;

use std::sync::Arc;

use codewright_proto::Clock;
use reqwest::Url;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

use crate::Error;
use crate::transport::Connections;
use chain::{Account, Cached};
pub use keys::{Keys, Sources};
use sign::Scope;

/// The default region.
const REGION: &str = "us-east-1";

/// An AWS account. Clones share the cached keys.
#[derive(Clone)]
pub struct Aws(Arc<Account>);

impl Aws {
    /// Determines the region, which may read the profile's file. Does not look up keys yet.
    #[must_use]
    pub fn new(sources: Sources, clock: Clock) -> Self {
        let named = sources.region.clone().filter(|region| !region.is_empty());
        let named = named.or_else(|| sources.variable("AWS_REGION").map(str::to_owned));
        let named = named.or_else(|| sources.variable("AWS_DEFAULT_REGION").map(str::to_owned));
        let region = named.or_else(|| profile::region(&sources)).unwrap_or_else(|| REGION.to_owned());
        Self(Arc::new(Account { region, sources, clock, cached: Cached::default() }))
    }

    /// Returns the region that requests are signed for.
    #[must_use]
    pub fn region(&self) -> &str {
        &self.0.region
    }

    /// Returns the URL of Bedrock in that region.
    #[must_use]
    pub fn bedrock_url(&self) -> String {
        let domain = if self.region().starts_with("cn-") { "amazonaws.com.cn" } else { "amazonaws.com" };
        format!("https://bedrock-runtime.{}.{domain}", self.region())
    }

    /// Returns a model's id at Bedrock. Many models need a prefix for the region's geography.
    #[must_use]
    pub fn model_id(&self, id: &str) -> String {
        crate::protocol::bedrock::profile::id(id, self.region())
    }

    /// Signs a request. All its other parts must be final.
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
        // The signature's headers replace configured ones.
        for (name, value) in added {
            let mut value = HeaderValue::from_str(&value)
                .map_err(|_| Error::rejected("the AWS keys contain characters that cannot be sent"))?;
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
    use std::collections::BTreeMap;

    use super::*;

    fn aws(region: Option<&str>, variables: &[(&str, &str)]) -> Aws {
        let variables = variables.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
        let sources = Sources { region: region.map(str::to_owned), variables, ..Sources::default() };
        Aws::new(sources, Clock::stepping(0, 0))
    }

    #[test]
    fn the_first_source_with_a_region_wins() {
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
