//! Models behind GitLab's gateway: whose pass, from which instance, and whose protocol.

use codewright_config::{Env, ProviderConfig, env};
use codewright_llm::gitlab::{GATEWAY, GitLab, Who, reached};
use codewright_llm::{Auth, Model, Protocol};
use serde_json::{Map, Value, json};

use super::signed_in::Credentials;

/// The GitLab of users who name none.
const INSTANCE: &str = "https://gitlab.com";
/// What a gateway's address begins with: passes are not sent in the clear, but on this machine.
const SECURE: [&str; 3] = ["https://", "http://127.0.0.1:", "http://localhost:"];
/// What lets Claude read a million tokens there.
const LONG_CONTEXT: (&str, &str) = ("anthropic-beta", "context-1m-2025-08-07");

/// What models behind the gateway are asked with.
pub(super) struct Duo {
    passes: GitLab,
    gateway: String,
}

impl Duo {
    /// Finds instance, gateway and user for the provider named `id`; nothing without a token.
    pub(super) fn find(
        id: &str,
        written: &ProviderConfig,
        key: Option<&str>,
        (auth, env): (&Credentials, &Env),
    ) -> Option<Result<Self, String>> {
        let option = |name: &str| written.options.rest.get(name).and_then(Value::as_str);
        let option = |name: &str| option(name).filter(|text| !text.is_empty()).map(str::to_owned);
        let configured = written.options.api_key.as_deref().is_some_and(|key| !key.is_empty());
        let sign_in = auth.signed_in(id).filter(|_| !configured);
        // A stored token is good for the instance it was stored for, and no other is to see it.
        let is_stored = sign_in.is_some() || (!configured && auth.key(id).as_deref() == key);
        let noted = auth.note(id, "instanceUrl").filter(|_| is_stored);
        let who = match (sign_in, key) {
            (Some(sign_in), _) => sign_in.who(),
            (None, Some(key)) => Who::Token(key.into()),
            (None, None) => return None,
        };
        let instance = noted.or_else(|| option("instanceUrl"));
        let instance = instance.or_else(|| env.filled(env::GITLAB_INSTANCE_URL).map(str::to_owned));
        let gateway = option("aiGatewayUrl").or_else(|| written.options.base_url.clone());
        let gateway = gateway.or_else(|| env.filled(env::GITLAB_AI_GATEWAY_URL).map(str::to_owned));
        let gateway = gateway.filter(|url| !url.is_empty()).unwrap_or_else(|| GATEWAY.to_owned());
        if !SECURE.iter().any(|secure| gateway.starts_with(secure)) {
            return Some(Err(format!("provider `{id}`: the gateway's address must begin with https://")));
        }
        let instance = instance.unwrap_or_else(|| INSTANCE.to_owned());
        let passes = GitLab::new(&instance, who, features(written));
        let passes = passes.map_err(|error| format!("provider `{id}`: {error}"));
        Some(passes.map(|passes| Self { passes, gateway: gateway.trim_end_matches('/').to_owned() }))
    }

    /// Makes what the provider's models have in common ask with a pass.
    pub(super) fn apply(&self, template: &mut Model) {
        template.api_key = None;
        template.auth = Auth::GitLab(self.passes.clone());
    }

    /// Makes one model speak its maker's protocol, under its maker's name.
    pub(super) fn fit(&self, model: &mut Model) {
        let reached = reached(&model.api_id);
        model.base_url = format!("{}/{}", self.gateway, reached.path);
        model.protocol = reached.protocol;
        model.api_id = reached.api_id;
        if model.protocol == Protocol::Anthropic {
            model.headers.insert(0, (LONG_CONTEXT.0.to_owned(), LONG_CONTEXT.1.to_owned()));
        }
    }
}

/// The instance's switches that are asked for.
fn features(written: &ProviderConfig) -> Map<String, Value> {
    let mut features = Map::new();
    features.insert("duo_agent_platform_agentic_chat".to_owned(), json!(true));
    features.insert("duo_agent_platform".to_owned(), json!(true));
    if let Some(Value::Object(more)) = written.options.rest.get("featureFlags") {
        features.extend(more.clone());
    }
    features
}

/// The library that speaks a model's protocol.
pub(super) fn spoken(id: &str) -> &'static str {
    match reached(id).protocol {
        Protocol::Anthropic => "@ai-sdk/anthropic",
        Protocol::OpenAiResponses => "@ai-sdk/openai",
        Protocol::OpenAiChat | Protocol::Bedrock | Protocol::Cohere | Protocol::Gemini => {
            "@ai-sdk/openai-compatible"
        }
    }
}
