//! Amazon Bedrock: an account of Amazon's cloud, from the options and the environment.

use std::sync::OnceLock;

use codewright_config::{Env, env};
use codewright_llm::{Auth, Aws, Keys, Model, Protocol, Sources};
use codewright_proto::Clock;

use super::{Account, Input, Key, PLAIN, Vendor, Wire};

/// The provider that is offered if the environment has keys for the cloud.
const PROVIDER: &str = "amazon-bedrock";

pub(super) const VENDOR: Vendor = Vendor {
    is_offered: |id, env| id == PROVIDER && sources(env).is_configured(),
    open: |input| Some(Box::new(Cloud::new(input))),
    ..PLAIN
};

/// The account that the options and the environment name. It is looked up when it is first needed.
struct Cloud {
    id: String,
    /// Whether the provider is Amazon's own, not another one with its protocol.
    is_own: bool,
    has_key: bool,
    sources: Sources,
    endpoint: Option<String>,
    account: OnceLock<Aws>,
}

impl Cloud {
    fn new(input: &Input<'_>) -> Self {
        let text = |name: &str| input.option(name).map(str::to_owned);
        let env = input.access.env;
        let keys = text("accessKeyId").zip(text("secretAccessKey")).map(|(id, secret)| Keys {
            access_key_id: id,
            secret_access_key: secret.into(),
            session_token: text("sessionToken").map(Into::into),
            expires_ms: None,
        });
        let sources = Sources { keys, region: text("region"), profile: text("profile"), ..sources(env) };
        let variable = || env.filled(env::AWS_ENDPOINT_URL_BEDROCK_RUNTIME).map(str::to_owned);
        Self {
            id: input.id.to_owned(),
            is_own: input.catalog_id == PROVIDER,
            has_key: input.key.is_some(),
            sources,
            endpoint: text("endpoint").or_else(variable),
            account: OnceLock::new(),
        }
    }

    fn account(&self) -> &Aws {
        // Amazon rejects a signature without the real time, so the clock of the session is not used.
        self.account.get_or_init(|| Aws::new(self.sources.clone(), Clock::system()))
    }
}

impl Account for Cloud {
    fn serves(&self, wire: Wire<'_>) -> bool {
        wire.protocol == Protocol::Bedrock
    }

    fn key(&self) -> Key {
        if self.is_own { Key::Ambient } else { Key::Required }
    }

    fn has_unlisted_models(&self) -> bool {
        self.is_own
    }

    fn address(&self, _wire: Wire<'_>) -> Result<Option<String>, String> {
        Ok(Some(self.endpoint.clone().unwrap_or_else(|| self.account().bedrock_url())))
    }

    fn authorize(&self, _wire: Wire<'_>, model: &mut Model) -> Result<(), String> {
        model.auth = Auth::Aws(self.account().clone());
        Ok(())
    }

    fn adapt(&self, model: &mut Model) {
        if let Auth::Aws(aws) = &model.auth {
            model.api_id = aws.model_id(&model.api_id);
        }
    }

    fn advice(&self, model: &Model) -> Option<String> {
        let is_signed = matches!(model.auth, Auth::Aws(_)) && !self.has_key;
        is_signed.then(|| {
            format!(
                "the keys are those of Amazon's tools: check `provider.{}.options.profile`, AWS_PROFILE or AWS_ACCESS_KEY_ID",
                self.id
            )
        })
    }
}

fn sources(env: &Env) -> Sources {
    Sources { variables: env.of(env::AWS), home: env.filled(env::HOME).map(Into::into), ..Sources::default() }
}

#[cfg(test)]
mod tests {
    use codewright_config::Config;
    use serde_json::json;

    use super::*;
    use crate::models::Configs;
    use crate::models::credentials::{Access, Credentials};
    use crate::models::tests::{models, set_up};

    #[test]
    fn a_request_is_sent_to_the_region_with_the_models_id_there() {
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
                assert!(matches!(model.auth, Auth::Aws(_)));
            }
        }
    }

    #[test]
    fn keys_for_the_cloud_offer_the_provider_and_are_not_a_bearer_token() {
        for (variable, bearer) in [
            ("AWS_BEARER_TOKEN_BEDROCK", Some("x")),
            ("AWS_ACCESS_KEY_ID", None),
            ("AWS_PROFILE", None),
            ("AWS_WEB_IDENTITY_TOKEN_FILE", None),
        ] {
            let env = Env::from_pairs([(variable, "x")]);
            let mut providers = models(Vec::new()).configured(
                Configs { config: &Config::default(), parts: None },
                Access { credentials: &Credentials::default(), env: &env },
            );
            // Free models are offered to every user.
            providers.retain(|provider| !provider.is_free());
            let found: Vec<&str> = providers.iter().map(|provider| provider.id.as_str()).collect();
            assert_eq!(found, ["amazon-bedrock"], "{variable}");
            let key = providers[0].template.as_ref().unwrap().api_key.as_ref();
            assert_eq!(key.map(codewright_llm::Secret::expose), bearer, "{variable}");
            assert_eq!(providers[0].is_ambient(), bearer.is_none());
        }
    }
}
