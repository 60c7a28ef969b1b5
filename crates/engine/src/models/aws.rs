//! What configuration and environment say about an account on Amazon's cloud.

use std::collections::BTreeMap;

use codewright_config::{Env, ProviderConfig, env};
use codewright_llm::{Aws, Keys, Sources};
use codewright_proto::Clock;

use super::option;

/// The account that a provider's options and the environment name.
pub(super) fn account(written: &ProviderConfig, env: &Env) -> Aws {
    let text = |name: &str| option(written, name).map(str::to_owned);
    let keys = text("accessKeyId").zip(text("secretAccessKey")).map(|(id, secret)| Keys {
        access_key_id: id,
        secret_access_key: secret.into(),
        session_token: text("sessionToken").map(Into::into),
        expires_ms: None,
    });
    let sources = Sources { keys, region: text("region"), profile: text("profile"), ..sources(env) };
    // A signature is refused unless it bears the real time, whatever clock a session runs by.
    Aws::new(sources, Clock::system())
}

/// Where Bedrock is, unless `baseURL` says it.
pub(super) fn bedrock_url(aws: &Aws, written: &ProviderConfig, env: &Env) -> String {
    let named = option(written, "endpoint").or_else(|| env.filled(env::AWS_ENDPOINT_URL_BEDROCK_RUNTIME));
    named.map_or_else(|| aws.bedrock_url(), str::to_owned)
}

/// Whether the environment names keys.
pub(super) fn is_configured(env: &Env) -> bool {
    sources(env).is_configured()
}

fn sources(env: &Env) -> Sources {
    let variables =
        env::AWS.iter().filter_map(|name| Some(((*name).to_owned(), env.filled(name)?.to_owned())));
    Sources {
        variables: variables.collect::<BTreeMap<_, _>>(),
        home: env.filled(env::HOME).map(Into::into),
        ..Sources::default()
    }
}

#[cfg(test)]
mod tests {
    use super::super::{configured, provider};
    use super::*;
    use codewright_config::{Auth, Config};

    fn written(options: &[(&str, &str)]) -> ProviderConfig {
        let mut written = ProviderConfig { npm: Some("@ai-sdk/amazon-bedrock".into()), ..Default::default() };
        written.options.rest = options.iter().map(|(n, v)| ((*n).to_owned(), (*v).into())).collect();
        written
    }

    #[test]
    fn a_model_goes_to_its_region_under_the_id_it_has_there() {
        const SONNET: &str = "anthropic.claude-sonnet-4-5-20250929-v1:0";
        for (options, variables, url, id) in [
            (&[][..], &[][..], "https://bedrock-runtime.us-east-1.amazonaws.com", "us."),
            (&[("region", "eu-west-1")], &[], "https://bedrock-runtime.eu-west-1.amazonaws.com", "eu."),
            (
                &[],
                &[("AWS_REGION", "ap-south-1")],
                "https://bedrock-runtime.ap-south-1.amazonaws.com",
                "apac.",
            ),
            (&[("endpoint", "http://127.0.0.1:9/")], &[], "http://127.0.0.1:9", "us."),
        ] {
            let env = Env::from_pairs(variables.iter().copied());
            let provider = provider("bedrock", Some(&written(options)), &Auth::default(), &env);
            let model = super::super::named(provider.template.as_ref().unwrap(), SONNET);
            assert_eq!(
                (model.base_url.as_str(), model.api_id.as_str()),
                (url, format!("{id}{SONNET}").as_str())
            );
            assert_eq!(model.id, SONNET);
            assert!(matches!(model.auth, codewright_llm::Auth::Aws(_)));
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
            let providers = configured(&Config::default(), &Auth::default(), &env);
            let found: Vec<&str> = providers.iter().map(|provider| provider.id.as_str()).collect();
            assert_eq!(found, ["amazon-bedrock"], "{variable}");
            let key = providers[0].template.as_ref().unwrap().api_key.as_ref();
            assert_eq!(key.map(codewright_llm::Secret::expose), bearer, "{variable}");
            assert_eq!(providers[0].is_ambient(), bearer.is_none());
        }
    }
}
