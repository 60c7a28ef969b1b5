//! Providers and models from small configurations.

use std::collections::BTreeMap;

use codewright_llm::{Auth, Protocol};
use serde_json::json;

use super::*;

/// The provider of a configuration file, with these variables set.
pub(super) fn set_up(id: &str, config: Value, env: &[(&str, &str)]) -> Provider {
    set_up_with(id, config, env, &Credentials::default())
}

fn set_up_with(id: &str, config: Value, env: &[(&str, &str)], credentials: &Credentials) -> Provider {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().to_str().unwrap();
    let config = json!({ "provider": { id: config } }).to_string();
    let env =
        Env::from_pairs(env.iter().copied().chain([("HOME", home), ("OPENCODE_CONFIG_CONTENT", &config)]));
    let dirs = Dirs::new(&env).unwrap();
    let input = codewright_config::LoadInput {
        directory: folder.path(),
        worktree: folder.path(),
        env: &env,
        dirs: &dirs,
    };
    let config = codewright_config::load(input).unwrap().config;
    let access = Access { credentials, env: &env };
    Provider::new(id, config.provider.get(id), &Arc::new(Catalog::embedded()), access)
}

pub(super) fn models(providers: Vec<Provider>) -> Models {
    Models {
        providers,
        catalog: Arc::new(Catalog::embedded()),
        choice: Choice { disabled: vec!["groq".to_owned()], enabled: None },
        default: None,
        small: None,
        searched: Vec::new(),
        fetches: BTreeMap::new(),
        pictures: PictureLimits::default(),
    }
}

const KEY: &[(&str, &str)] = &[("ANTHROPIC_API_KEY", "k")];
const OPENCODE_KEY: &[(&str, &str)] = &[("OPENCODE_API_KEY", "k")];

#[test]
fn configuration_replaces_single_fields_of_the_catalog() {
    let config = json!({ "models": {
        "claude-sonnet-4-5": {
            "name": "Mine", "limit": { "output": 7 },
            "cost": { "output": 1.5 },
            "options": { "thinking": { "type": "enabled", "budgetTokens": 5 } },
            "variants": { "high": { "thinking": { "budgetTokens": 9 } }, "max": { "disabled": true }, "own": { "x": 1 } },
        },
        "alias": { "id": "claude-opus-4-6" },
        "new": { "limit": { "context": 5, "output": 4 } },
    } });
    let provider = set_up("anthropic", config, KEY);
    let listed = provider.listed("claude-sonnet-4-5").unwrap();
    let model = listed.model.as_ref().unwrap();
    assert_eq!((model.name.as_str(), model.limits.context, model.limits.output), ("Mine", 1_000_000, 7));
    assert_eq!((model.cost.input, model.cost.output, model.cost.cache_read), (3.0, 1.5, 0.3));
    assert_eq!(model.options["thinking"]["budgetTokens"], 5);
    assert!(model.capabilities.input.image && model.capabilities.reasoning);
    assert_eq!(listed.variants["high"], json!({ "thinking": { "type": "enabled", "budgetTokens": 9 } }));
    assert_eq!(listed.variants.keys().collect::<Vec<_>>(), ["high", "own"]);
    let alias = provider.listed("alias").unwrap().model.clone().unwrap();
    assert_eq!(
        (alias.api_id.as_str(), alias.name.as_str(), alias.limits.output),
        ("claude-opus-4-6", "alias", 128_000)
    );
    assert_eq!(provider.listed("new").unwrap().facts.limit.context, 5);
    assert!(provider.listed("claude-opus-4-6").is_some());
}

#[test]
fn lists_choose_models() {
    let only = set_up("anthropic", json!({ "whitelist": ["claude-opus-4-6"] }), KEY);
    assert_eq!(only.models().len(), 1);
    let without = set_up("anthropic", json!({ "blacklist": ["claude-opus-4-6"] }), KEY);
    assert!(without.listed("claude-opus-4-6").is_none() && without.models().len() > 5);
}

#[test]
fn the_first_model_is_the_preferred_one() {
    let provider = set_up("anthropic", json!({}), KEY);
    assert_eq!(provider.preferred().unwrap().facts.id, "claude-sonnet-5");
    let models = models(vec![provider]);
    assert_eq!(models.default_model().unwrap(), ("anthropic".into(), "claude-sonnet-5".into()));
    assert_eq!(models.small("anthropic", "claude-opus-4-6").unwrap().id, "claude-haiku-4-5-20251001");
}

/// The chosen model of every provider of the catalog, one row each, reviewed by eye. A provider whose models cannot be
/// agents, or are all reduced or previews, has `-`: then the user has to choose.
#[test]
fn the_chosen_model_of_every_provider_is_reviewed() {
    let catalog = Arc::new(Catalog::embedded());
    let nothing = Access { credentials: &Credentials::default(), env: &Env::default() };
    let mut rows = String::new();
    for facts in catalog.providers() {
        let provider = Provider::new(&facts.id, None, &catalog, nothing);
        // Without a key, the service with free models lists only those.
        let provider = if provider.is_free() { set_up(&facts.id, json!({}), OPENCODE_KEY) } else { provider };
        let chosen = provider.preferred().map(|listed| listed.facts.clone()).unwrap_or_default();
        let id = if chosen.id.is_empty() { "-" } else { &chosen.id };
        rows.push_str(&format!("{}\t{id}\t{}\n", facts.id, chosen.release_date));
    }
    let reviewed = include_str!("chosen.tsv");
    let wrong: Vec<_> = rows.lines().filter(|row| !reviewed.lines().any(|known| known == *row)).collect();
    assert_eq!(rows, reviewed, "rows to review:\n{}", wrong.join("\n"));
}

#[test]
fn a_model_that_cannot_be_an_agent_is_never_chosen() {
    let keyed = |models: Value| {
        set_up("mine", json!({ "options": { "baseURL": "http://127.0.0.1:9/v1" }, "models": models }), &[])
    };
    for (models, expected) in [
        (json!({ "whisper-large-v3": {}, "llama-70b": {} }), Some("llama-70b")),
        (json!({ "nomic-embed-text": {} }), None),
        (json!({ "tts-1": {}, "gpt-image-2": {}, "rerank-4": {}, "llama-guard-4": {} }), None),
        (json!({ "a": { "tool_call": false }, "b": {} }), Some("b")),
        (json!({ "a": {}, "a-preview": {}, "a-mini": {} }), Some("a")),
        // What the user listed is the user's choice.
        (json!({ "a-mini": {} }), Some("a-mini")),
        (json!({ "a": { "modalities": { "input": ["audio"] } }, "b-preview": {} }), Some("b-preview")),
        (
            json!({ "old": { "release_date": "2025-01-01" }, "new": { "release_date": "2026-01-01" } }),
            Some("new"),
        ),
    ] {
        let provider = keyed(models.clone());
        assert_eq!(provider.preferred().map(|listed| listed.facts.id.as_str()), expected, "{models}");
    }
}

#[test]
fn errors_say_how_to_make_a_model_usable() {
    let models = models(vec![set_up("anthropic", json!({}), &[]), set_up("sap-ai-core", json!({}), &[])]);
    for (provider, model, expected) in [
        ("anthropic", "claude-opus-4-6", "ANTHROPIC_API_KEY or `provider.anthropic.options.apiKey`"),
        ("anthropic", "claude-opus-4.6", "anthropic/claude-opus-4-6"),
        ("openai", "gpt-5", "OPENAI_API_KEY"),
        ("groq", "x", "disabled_providers"),
        ("sap-ai-core", "x", "@jerome-benoit/sap-ai-provider-v2"),
        ("antropic", "claude-opus-4-6", "anthropic/claude-opus-4-6"),
    ] {
        let error = models.find(provider, model).unwrap_err();
        let text = format!("{error} {}", error.hint().unwrap_or_default());
        assert!(text.contains(expected), "{provider}/{model}: {text}");
    }
}

#[test]
fn every_litellm_proxy_is_recognized() {
    let at = |url: &str| json!({ "baseURL": url, "apiKey": "k" });
    let plain = "https://models.example.org/v1";
    let declared = |is: bool| json!({ "baseURL": plain, "litellmProxy": is });
    for (id, options, model, expected) in [
        ("mine", at(plain), "gpt-5", false),
        ("my-LiteLLM", at(plain), "gpt-5", true),
        ("mine", at("https://litellm.example.org/v1"), "gpt-5", true),
        ("mine", at("http://litellm:4000"), "gpt-5", true),
        ("mine", at(plain), "litellm/gpt-5", true),
        ("mine", declared(true), "gpt-5", true),
        ("my-litellm", declared(false), "litellm/gpt-5", false),
        ("anthropic", at("http://litellm:4000"), "claude-opus-4-6", true),
    ] {
        let config = json!({ "options": options, "models": { model: {} } });
        let provider = set_up(id, config.clone(), &[]);
        let found = provider.listed(model).unwrap().model.clone().unwrap();
        let noops = found.quirks.iter().filter(|quirk| **quirk == codewright_llm::Quirk::NoopTool).count();
        assert_eq!(noops, usize::from(expected), "{id} {config} {model}");
    }
}

#[test]
fn models_of_gitlabs_workflow_service_are_refused_with_advice() {
    let env = &[("GITLAB_TOKEN", "t")];
    let written = json!({ "models": { "flow": { "id": "duo-workflow-default" } } });
    let models = models(vec![set_up("gitlab", written, env)]);
    for (model, named) in
        [("duo-workflow-sonnet-4-5", "duo-workflow-sonnet-4-5"), ("flow", "duo-workflow-default")]
    {
        let error = models.find("gitlab", model).unwrap_err().to_string();
        for word in [named, "workflow service", "gitlab/duo-chat-sonnet-4-5"] {
            assert!(error.contains(word), "{error}");
        }
    }
    assert!(models.find("gitlab", "duo-chat-sonnet-4-5").is_ok());
}

#[test]
fn the_advice_for_refused_credentials_names_their_source() {
    let configured = json!({ "options": { "apiKey": "k" } });
    let advice = |provider: Provider| provider.template.unwrap().auth_advice.unwrap_or_default();
    for (found, expected) in [
        (set_up("anthropic", configured.clone(), KEY), "`provider.anthropic.options.apiKey`"),
        (set_up("anthropic", json!({}), KEY), "ANTHROPIC_API_KEY"),
        (with_sign_in("openai", json!({}), &[]), "`codewright providers login openai`"),
        (
            set_up("amazon-bedrock", json!({}), &[("AWS_PROFILE", "x")]),
            "`provider.amazon-bedrock.options.profile`",
        ),
        (
            set_up("amazon-bedrock", json!({}), &[("AWS_BEARER_TOKEN_BEDROCK", "x")]),
            "AWS_BEARER_TOKEN_BEDROCK",
        ),
    ] {
        let advice = advice(found);
        assert!(advice.contains(expected), "{advice}");
    }
    let key = json!({ "type": "api", "key": "k" });
    let advice = advice(stored("groq", &key, json!({}), &[]));
    assert!(advice.contains("`codewright providers login groq`"), "{advice}");
    let own = set_up("mine", json!({ "options": { "baseURL": "http://127.0.0.1:9" } }), &[]);
    assert_eq!(own.template.unwrap().auth_advice, None);
}

#[test]
fn the_error_for_an_invalid_address_names_its_key() {
    for url in ["localhost:1/v1", "ftp://x", "http://", "/v1"] {
        let provider = set_up("mine", json!({ "options": { "baseURL": url } }), &[]);
        let problem = provider.template.unwrap_err();
        assert!(problem.contains("provider.mine.options.baseURL") && problem.contains(url), "{problem}");
    }
}

#[test]
fn an_address_may_need_a_variable() {
    let key = ("CLOUDFLARE_API_KEY", "k");
    let problem = set_up("cloudflare-workers-ai", json!({}), &[key]).template.unwrap_err();
    assert!(problem.contains("set CLOUDFLARE_ACCOUNT_ID"), "{problem}");
    let account = ("CLOUDFLARE_ACCOUNT_ID", "me");
    let template = set_up("cloudflare-workers-ai", json!({}), &[key, account]).template.unwrap();
    assert_eq!(template.base_url, "https://api.cloudflare.com/client/v4/accounts/me/ai/v1");
}

#[test]
fn a_model_may_have_its_own_protocol_and_address() {
    let provider = set_up("opencode", json!({}), &[("OPENCODE_API_KEY", "k")]);
    let claude = provider.listed("claude-sonnet-4-5").unwrap().model.clone().unwrap();
    assert_eq!(
        (claude.protocol, claude.base_url.as_str()),
        (Protocol::Anthropic, "https://opencode.ai/zen/v1")
    );
}

#[test]
fn settings_stored_with_a_key_are_parts_of_the_address() {
    let cloudflare = "https://api.cloudflare.com/client/v4/accounts/";
    let key = |notes: Value| json!({ "type": "api", "key": "k", "metadata": notes });
    for (id, entry, env, url) in [
        ("azure", key(json!({ "resourceName": "noted" })), vec![], "https://noted.openai.azure.com/openai"),
        (
            "azure",
            key(json!({ "resourceName": "noted" })),
            vec![("AZURE_RESOURCE_NAME", "set")],
            "https://noted.openai.azure.com/openai",
        ),
        (
            "cloudflare-workers-ai",
            key(json!({ "accountId": "me" })),
            vec![],
            &format!("{cloudflare}me/ai/v1"),
        ),
        (
            "cloudflare-workers-ai",
            key(json!({ "accountId": "me" })),
            vec![("CLOUDFLARE_ACCOUNT_ID", "set")],
            &format!("{cloudflare}set/ai/v1"),
        ),
        (
            "cloudflare-ai-gateway",
            key(json!({ "accountId": "me", "gatewayId": "gate" })),
            vec![],
            "https://gateway.ai.cloudflare.com/v1/me/gate/compat",
        ),
        (
            "snowflake-cortex",
            key(json!({ "account": "org-me.snowflakecomputing.com" })),
            vec![],
            "https://org-me.snowflakecomputing.com/api/v2/cortex/v1",
        ),
        (
            "snowflake-cortex",
            json!({ "type": "oauth", "access": "a", "refresh": "r", "expires": 0, "accountId": "org-me" }),
            vec![],
            "https://org-me.snowflakecomputing.com/api/v2/cortex/v1",
        ),
    ] {
        let template = stored(id, &entry, json!({}), &env).template.unwrap();
        assert_eq!(template.base_url, url, "{id} {entry}");
        assert_eq!(template.api_key.is_some(), entry["type"] == "api");
    }
    // An invalid name must not send the key to another host.
    let entry = key(json!({ "resourceName": "evil.example/#" }));
    stored("azure", &entry, json!({}), &[]).template.unwrap_err();
    let entry = key(json!({ "accountId": "me", "gatewayId": "gate" }));
    let template = stored("cloudflare-ai-gateway", &entry, json!({}), &[]).template.unwrap();
    assert_eq!(template.auth, Auth::Header("cf-aig-authorization"));
    assert_eq!(template.api_key.unwrap().expose(), "Bearer k");
}

#[test]
fn the_free_models_of_zen_need_no_key_and_are_never_the_default() {
    let free = set_up("opencode", json!({}), &[]);
    let offered: Vec<_> = free.models().iter().filter(|listed| listed.is_offered).collect();
    assert!(
        !offered.is_empty() && offered.iter().all(|listed| listed.model.as_ref().unwrap().cost.input == 0.0)
    );
    let model = free.listed("big-pickle").unwrap().model.clone().unwrap();
    assert_eq!(model.api_key.as_ref().unwrap().expose(), "public");
    let models = models(vec![free]);
    assert!(matches!(models.default_model(), Err(Error::NoProvider)));
    assert!(matches!(models.find("opencode", "claude-opus-5"), Err(Error::NoKey { .. })));
    assert!(matches!(models.find("opencode", "no-such"), Err(Error::UnknownModel { .. })));
    let keyed = set_up("opencode", json!({}), &[("OPENCODE_API_KEY", "k")]);
    assert!(keyed.listed("claude-opus-5").is_some() && !keyed.is_free());
}

/// The provider of a configuration, with a stored sign-in.
fn with_sign_in(id: &str, config: Value, env: &[(&str, &str)]) -> Provider {
    let tokens = json!({ "type": "oauth", "access": "a", "refresh": "r", "expires": 0 });
    stored(id, &tokens, config, env)
}

/// The provider of a configuration, with this entry in `auth.json`.
fn stored(id: &str, tokens: &Value, config: Value, env: &[(&str, &str)]) -> Provider {
    let nowhere = PathBuf::from("/nowhere");
    let given = json!({ id: tokens }).to_string();
    let vault = codewright_llm::vault::Vault::new(nowhere.clone(), nowhere, Some(given));
    let stored = vault.read().unwrap();
    let client = Client::new("test").unwrap();
    let sign_in = codewright_llm::oauth::SignIn::new(client, vault, || 0);
    set_up_with(id, config, env, &Credentials { stored, sign_in: Some(sign_in) })
}

#[test]
fn a_sign_in_replaces_a_key() {
    let provider = with_sign_in("github-copilot", json!({}), &[]);
    assert!(provider.missing_key.is_none() && provider.models().len() > 20);
    assert_eq!(provider.preferred().unwrap().facts.id, "claude-sonnet-5");
    for (id, protocol) in [("gpt-4.1", Protocol::OpenAiChat), ("gpt-5.4", Protocol::OpenAiResponses)] {
        let model = provider.listed(id).unwrap().model.clone().unwrap();
        assert_eq!((model.protocol, model.base_url.as_str()), (protocol, "https://api.githubcopilot.com"));
        assert!(model.cost.input == 0.0 && model.long_cost.is_none() && model.api_key.is_none());
    }
    let provider = with_sign_in("openai", json!({}), &[("OPENAI_API_KEY", "k")]);
    let model = provider.listed("gpt-5.4").unwrap().model.clone().unwrap();
    assert!(model.is_codex() && model.api_key.is_none());
    assert_eq!(model.base_url, "https://chatgpt.com/backend-api/codex");
    assert!(!provider.listed("gpt-5.4-nano").unwrap().is_offered);
    let models = models(vec![provider]);
    assert_eq!(models.small("openai", "gpt-5.4").unwrap().id, "gpt-5.4");
}

#[test]
fn the_configuration_is_preferred_to_a_sign_in() {
    let keyed = with_sign_in("openai", json!({ "options": { "apiKey": "k" } }), &[]);
    let model = keyed.listed("gpt-5.4").unwrap().model.clone().unwrap();
    assert!(!model.is_codex() && model.api_key.is_some() && model.cost.input > 0.0);
    let near = "http://127.0.0.1:9/v1";
    let of_model = json!({ "models": { "gpt-5.4": { "provider": { "api": near } } } });
    for config in [json!({ "options": { "baseURL": near } }), json!({ "api": near }), of_model] {
        let provider = with_sign_in("openai", config.clone(), &[]);
        let model = provider.listed("gpt-5.4").unwrap().model.clone().unwrap();
        assert!(model.is_codex() && model.base_url == near, "{config}: {}", model.base_url);
    }
}

#[test]
fn a_long_request_has_its_own_price() {
    let provider = set_up("openai", json!({}), &[("OPENAI_API_KEY", "k")]);
    let model = provider.listed("gpt-5.4").unwrap().model.clone().unwrap();
    assert_eq!(prices(&model, 272_000).input, 2.5);
    assert_eq!(prices(&model, 272_001).input, 5.0);
}
