//! GitLab's gateway to models: an instance issues passes, and each model keeps its maker's protocol.

use codewright_config::{ProviderConfig, env};
use codewright_llm::catalog::{self, GITLAB};
use codewright_llm::gitlab::{GATEWAY, GitLab, Who, reached};
use codewright_llm::{Auth, Model, Protocol};
use serde_json::{Map, Value, json};

use super::{Account, Input, PLAIN, Vendor, Wire};

/// The instance of users who configure none.
const INSTANCE: &str = "https://gitlab.com";
/// Prefixes of a gateway's address. Passes are sent unencrypted only inside this machine.
const SECURE: [&str; 3] = ["https://", "http://127.0.0.1:", "http://localhost:"];
/// The beginning of the names of models that run in GitLab's workflow service. That service runs the agent itself and
/// sends its calls over a WebSocket.
const WORKFLOW: &str = "duo-workflow";
/// The header that gives Claude a context of a million tokens.
const LONG_CONTEXT: (&str, &str) = ("anthropic-beta", "context-1m-2025-08-07");

pub(super) const VENDOR: Vendor = Vendor {
    open: |input| {
        let library = input.library.filter(|npm| catalog::protocol_of_npm(npm).is_some())?;
        if !catalog::unpinned(library).ends_with(GITLAB) {
            return None;
        }
        let duo = Duo::find(input)?;
        Some(Box::new(Gateway { id: input.id.to_owned(), is_signed_in: input.sign_in.is_some(), duo }))
    },
    ..PLAIN
};

struct Gateway {
    id: String,
    is_signed_in: bool,
    duo: Result<Duo, String>,
}

/// The passes and the address of the gateway.
struct Duo {
    passes: GitLab,
    gateway: String,
}

impl Account for Gateway {
    fn serves(&self, _wire: Wire<'_>) -> bool {
        true
    }

    fn authorize(&self, _wire: Wire<'_>, model: &mut Model) -> Result<(), String> {
        let duo = self.duo.as_ref().map_err(Clone::clone)?;
        model.api_key = None;
        model.auth = Auth::GitLab(duo.passes.clone());
        Ok(())
    }

    fn refusal(&self, api_id: &str) -> Option<String> {
        let id = &self.id;
        api_id.starts_with(WORKFLOW).then(|| {
            format!(
                "the model `{id}/{api_id}` runs only in GitLab's workflow service, which is not supported; use one of \
                 the `duo-chat-` models instead, for example `{id}/duo-chat-sonnet-4-5`"
            )
        })
    }

    fn uses_sign_in(&self) -> bool {
        true
    }

    /// Gives one model its maker's protocol and its maker's id.
    fn adapt(&self, model: &mut Model) {
        let Ok(duo) = &self.duo else { return };
        let reached = reached(&model.api_id);
        model.base_url = format!("{}/{}", duo.gateway, reached.path);
        model.protocol = reached.protocol;
        model.api_id = reached.api_id;
        if model.protocol == Protocol::Anthropic {
            model.headers.insert(0, (LONG_CONTEXT.0.to_owned(), LONG_CONTEXT.1.to_owned()));
        }
    }

    fn library(&self, api_id: &str) -> Option<&'static str> {
        Some(match reached(api_id).protocol {
            Protocol::Anthropic => "@ai-sdk/anthropic",
            Protocol::OpenAiResponses => "@ai-sdk/openai",
            Protocol::OpenAiChat | Protocol::Bedrock | Protocol::Cohere | Protocol::Gemini => {
                "@ai-sdk/openai-compatible"
            }
        })
    }

    fn advice(&self, _model: &Model) -> Option<String> {
        self.is_signed_in.then(|| format!("sign in again with `codewright providers login {}`", self.id))
    }
}

impl Duo {
    /// Finds the instance, the gateway and the user. Returns `None` without a token.
    fn find(input: &Input<'_>) -> Option<Result<Self, String>> {
        let Input { id, written, key, .. } = *input;
        let (credentials, env) = (input.access.credentials, input.access.env);
        let option = |name: &str| input.option(name).map(str::to_owned);
        let is_configured = written.options.api_key.as_deref().is_some_and(|key| !key.is_empty());
        // A stored token is sent only to the instance that it was stored for.
        let is_stored = input.sign_in.is_some() || (!is_configured && credentials.key(id).as_deref() == key);
        let noted = credentials.note(id, "instanceUrl", &["enterpriseUrl", "instanceUrl"]);
        let noted = noted.filter(|_| is_stored);
        let who = match (input.sign_in, key) {
            (Some(sign_in), _) => sign_in.clone().who(),
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
}

/// The feature flags that are requested from the instance.
fn features(written: &ProviderConfig) -> Map<String, Value> {
    let mut features = Map::new();
    features.insert("duo_agent_platform_agentic_chat".to_owned(), json!(true));
    features.insert("duo_agent_platform".to_owned(), json!(true));
    if let Some(Value::Object(more)) = written.options.rest.get("featureFlags") {
        features.extend(more.clone());
    }
    features
}
