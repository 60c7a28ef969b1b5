//! What configuration and environment say about an account on Amazon's cloud.

use std::sync::OnceLock;

use codewright_config::{Env, ProviderConfig, env};
use codewright_llm::{Aws, Keys, Sources};
use codewright_proto::Clock;
use serde_json::Value;

/// The provider that is there when the environment names keys for the cloud.
pub(super) const PROVIDER: &str = "amazon-bedrock";

/// The account that a provider's options and the environment name, looked up when it is first needed.
pub(super) struct Cloud {
    sources: Sources,
    endpoint: Option<String>,
    account: OnceLock<Aws>,
}

impl Cloud {
    pub(super) fn new(written: &ProviderConfig, env: &Env) -> Self {
        let text = |name: &str| {
            let value = written.options.rest.get(name).and_then(Value::as_str);
            value.filter(|text| !text.is_empty()).map(str::to_owned)
        };
        let keys = text("accessKeyId").zip(text("secretAccessKey")).map(|(id, secret)| Keys {
            access_key_id: id,
            secret_access_key: secret.into(),
            session_token: text("sessionToken").map(Into::into),
            expires_ms: None,
        });
        let sources = Sources { keys, region: text("region"), profile: text("profile"), ..sources(env) };
        let endpoint = env.filled(env::AWS_ENDPOINT_URL_BEDROCK_RUNTIME).map(str::to_owned);
        Self { sources, endpoint, account: OnceLock::new() }
    }

    pub(super) fn account(&self) -> &Aws {
        // A signature is refused unless it bears the real time, whatever clock a session runs by.
        self.account.get_or_init(|| Aws::new(self.sources.clone(), Clock::system()))
    }

    /// Where Bedrock is, unless the configuration says it.
    pub(super) fn bedrock_url(&self) -> String {
        self.endpoint.clone().unwrap_or_else(|| self.account().bedrock_url())
    }
}

/// Whether the environment names keys.
pub(super) fn is_configured(env: &Env) -> bool {
    sources(env).is_configured()
}

fn sources(env: &Env) -> Sources {
    Sources { variables: env.of(env::AWS), home: env.filled(env::HOME).map(Into::into), ..Sources::default() }
}

#[cfg(test)]
mod tests {
    use super::super::Configs;
    use super::super::signed_in::Credentials;
    use super::super::tests::{models, set_up};
    use super::*;
    use codewright_config::Config;
    use serde_json::json;

    #[test]
    fn a_model_goes_to_its_region_under_the_id_it_has_there() {
        const SONNET: &str = "anthropic.claude-sonnet-4-5-20250929-v1:0";
        for (options, variables, url, id) in [
            (json!({}), &[][..], "https://bedrock-runtime.us-east-1.amazonaws.com", "us."),
            (json!({"region": "eu-west-1"}), &[], "https://bedrock-runtime.eu-west-1.amazonaws.com", "eu."),
            (
                json!({}),
                &[("AWS_REGION", "ap-south-1")],
                "https://bedrock-runtime.ap-south-1.amazonaws.com",
                "apac.",
            ),
            (json!({"endpoint": "http://127.0.0.1:9/"}), &[], "http://127.0.0.1:9", "us."),
        ] {
            let written = json!({"npm": "@ai-sdk/amazon-bedrock", "options": options});
            for name in ["amazon-bedrock", "mine"] {
                let models = models(vec![set_up(name, written.clone(), variables)]);
                let model = models.find(name, SONNET).unwrap();
                assert_eq!(
                    (model.base_url.as_str(), model.api_id.as_str()),
                    (url, format!("{id}{SONNET}").as_str())
                );
                assert_eq!(model.id, SONNET);
                assert!(matches!(model.auth, codewright_llm::Auth::Aws(_)));
            }
        }
    }

    #[test]
    fn keys_for_the_cloud_offer_the_provider_and_are_no_bearer() {
        for (variable, bearer) in [
            ("AWS_BEARER_TOKEN_BEDROCK", Some("x")),
            ("AWS_ACCESS_KEY_ID", None),
            ("AWS_PROFILE", None),
            ("AWS_WEB_IDENTITY_TOKEN_FILE", None),
        ] {
            let env = Env::from_pairs([(variable, "x")]);
            let mut providers = models(Vec::new()).configured(
                Configs { config: &Config::default(), parts: None },
                &Credentials::default(),
                &env,
            );
            // There for everybody.
            providers.retain(|provider| !provider.is_free);
            let found: Vec<&str> = providers.iter().map(|provider| provider.id.as_str()).collect();
            assert_eq!(found, ["amazon-bedrock"], "{variable}");
            let key = providers[0].template.as_ref().unwrap().api_key.as_ref();
            assert_eq!(key.map(codewright_llm::Secret::expose), bearer, "{variable}");
            assert_eq!(providers[0].is_ambient(), bearer.is_none());
        }
    }
}
