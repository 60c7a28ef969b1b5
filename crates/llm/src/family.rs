//! Default options for families of models.
//!
//! Facts about a model come from its catalog entry. These options are choices, selected by the
//! model's name on the wire.

use serde_json::{Map, Value, json};

use crate::{Model, Protocol};

/// Returns the options for the main work of a session, without those that the model's own options
/// set.
#[must_use]
pub fn options(model: &Model) -> Map<String, Value> {
    let id = model.api_id.to_ascii_lowercase();
    let mut options = Map::new();
    if !id.contains("gpt-5") || id.contains("gpt-5-chat") || id.contains("-pro") {
        return options;
    }
    let mut add = |name: &str, wire: &[&str], value: &str| {
        if !is_set(model, name, wire) {
            options.insert(name.to_owned(), json!(value));
        }
    };
    match model.protocol {
        Protocol::OpenAiChat => add("reasoningEffort", &["reasoning_effort"], "medium"),
        Protocol::OpenAiResponses => {
            add("reasoningEffort", &["reasoning_effort", "/reasoning/effort"], "medium");
            add("reasoningSummary", &["reasoning_summary", "/reasoning/summary"], "auto");
            let is_wordy = id.contains("gpt-5.") && !id.contains("codex") && !id.contains("-chat");
            if is_wordy && model.provider_id != "azure" {
                add("textVerbosity", &["verbosity", "/text/verbosity"], "low");
            }
        }
        Protocol::Anthropic | Protocol::Gemini | Protocol::Bedrock | Protocol::Cohere => {}
    }
    options
}

/// Returns the options for small tasks, such as a title: the lowest reasoning effort the model
/// supports.
#[must_use]
pub fn small_options(model: &Model) -> Map<String, Value> {
    if !model.capabilities.reasoning {
        return Map::new();
    }
    match model.protocol {
        Protocol::OpenAiChat => Map::from_iter([("reasoningEffort".to_owned(), json!("low"))]),
        Protocol::OpenAiResponses => {
            let Some(effort) = lowest_effort(&model.api_id.to_ascii_lowercase()) else { return Map::new() };
            Map::from_iter([
                ("reasoningEffort".to_owned(), json!(effort)),
                ("reasoningSummary".to_owned(), json!("auto")),
            ])
        }
        // Gemini 2 models support only token budgets.
        Protocol::Gemini if !model.api_id.contains("gemini-2") => {
            Map::from_iter([("thinkingConfig".to_owned(), json!({"thinkingLevel": "low"}))])
        }
        Protocol::Anthropic | Protocol::Gemini | Protocol::Bedrock | Protocol::Cohere => Map::new(),
    }
}

/// Returns the lowest effort that a family of OpenAI models supports, or `None` if the effort must
/// not be sent.
fn lowest_effort(id: &str) -> Option<&'static str> {
    match id {
        id if id.contains("gpt-5-chat") || id.contains("-pro") => None,
        id if id.contains("codex") => Some("low"),
        id if id.contains("gpt-5.") => Some("none"),
        id if id.contains("gpt-5") => Some("minimal"),
        id if ["o1", "o3", "o4"].iter().any(|family| id.starts_with(family)) => Some("low"),
        _ => None,
    }
}

fn is_set(model: &Model, name: &str, wire: &[&str]) -> bool {
    let nested = |path: &str| {
        let (object, field) = path.trim_start_matches('/').split_once('/')?;
        model.options.get(object)?.get(field)
    };
    model.options.contains_key(name)
        || wire.iter().any(|name| model.options.contains_key(*name) || nested(name).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model(protocol: Protocol, id: &str) -> Model {
        let mut model = Model::new("p", id, protocol, "https://h");
        model.capabilities.reasoning = true;
        model
    }

    #[test]
    fn main_options_match_the_recorded_ones() {
        use Protocol::{Anthropic, OpenAiChat, OpenAiResponses};
        let effort = json!({"reasoningEffort": "medium"});
        let thinker = json!({"reasoningEffort": "medium", "reasoningSummary": "auto"});
        let terse = json!({"reasoningEffort": "medium", "reasoningSummary": "auto", "textVerbosity": "low"});
        for (protocol, id, expected) in [
            (OpenAiChat, "gpt-5", &effort),
            (OpenAiChat, "gpt-5.4", &effort),
            (OpenAiChat, "openai/gpt-5-codex", &effort),
            (OpenAiChat, "gpt-oss-120b", &json!({})),
            (OpenAiChat, "o3", &json!({})),
            (OpenAiChat, "gpt-5-chat-latest", &json!({})),
            (OpenAiResponses, "gpt-5", &thinker),
            (OpenAiResponses, "gpt-5.3-codex", &thinker),
            (OpenAiResponses, "gpt-5.4", &terse),
            (OpenAiResponses, "gpt-5-pro", &json!({})),
            (OpenAiResponses, "gpt-4o", &json!({})),
            (Anthropic, "claude-sonnet-4-5", &json!({})),
        ] {
            assert_eq!(Value::Object(options(&model(protocol, id))), *expected, "{id}");
        }
    }

    #[test]
    fn the_users_options_are_kept() {
        let mut model = model(Protocol::OpenAiResponses, "gpt-5.4");
        for (own, expected) in [
            (
                json!({"reasoningEffort": "high", "textVerbosity": "high"}),
                json!({"reasoningSummary": "auto"}),
            ),
            (json!({"reasoning": {"effort": "high", "summary": null}, "verbosity": "high"}), json!({})),
        ] {
            model.options = own.as_object().unwrap().clone();
            assert_eq!(Value::Object(options(&model)), expected);
        }
    }

    #[test]
    fn small_tasks_use_the_lowest_effort() {
        for (protocol, id, expected) in [
            (Protocol::OpenAiChat, "qwen3", Some("low")),
            (Protocol::OpenAiResponses, "gpt-5.4-nano", Some("none")),
            (Protocol::OpenAiResponses, "gpt-5-nano", Some("minimal")),
            (Protocol::OpenAiResponses, "gpt-5.3-codex", Some("low")),
            (Protocol::OpenAiResponses, "o4-mini", Some("low")),
            (Protocol::OpenAiResponses, "grok-4", None),
            (Protocol::Anthropic, "claude", None),
        ] {
            let found = small_options(&model(protocol, id));
            assert_eq!(found.get("reasoningEffort").and_then(Value::as_str), expected, "{id}");
        }
        let level = json!({"thinkingConfig": {"thinkingLevel": "low"}});
        for (id, expected) in [("gemini-3.8-flash", level), ("gemini-2.5-flash", json!({}))] {
            assert_eq!(Value::Object(small_options(&model(Protocol::Gemini, id))), expected, "{id}");
        }
        let mut plain = model(Protocol::OpenAiChat, "m");
        plain.capabilities.reasoning = false;
        assert_eq!(small_options(&plain), Map::new());
    }
}
