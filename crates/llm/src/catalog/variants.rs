//! The reasoning variants of a model, such as `--variant high`.
//!
//! The efforts come from the catalog if it lists them. The options use the spelling of
//! configuration files; the protocols convert them.

use serde_json::{Map, Value, json};

use super::facts::ReasoningOption;

/// The reasoning tokens of `high` and `max`.
const HIGH_TOKENS: u64 = 16_000;
const MAX_TOKENS: u64 = 31_999;
/// The efforts of a reasoning model without further data.
const USUAL: [&str; 3] = ["low", "medium", "high"];

/// The facts about a reasoning model that its variants depend on.
#[derive(Debug, Clone, Copy)]
pub struct Thinker<'a> {
    /// The library name, without a version.
    pub npm: &'a str,
    /// The name on the wire.
    pub api_id: &'a str,
    /// The ways to configure its reasoning, or `None` if unknown.
    pub options: Option<&'a [ReasoningOption]>,
    /// The output limit in tokens; zero means unknown.
    pub output_limit: u64,
}

/// A library's spelling of the reasoning options.
#[derive(Clone, Copy, PartialEq)]
enum Spelling {
    Chat,
    Router,
    Responses,
    Anthropic,
    Gemini,
    Bedrock,
}

/// Returns the variants of a model, lowest effort first.
#[must_use]
pub fn variants(model: Thinker<'_>) -> Map<String, Value> {
    let spelling = match model.npm {
        "@ai-sdk/openai" | "@ai-sdk/azure" => Spelling::Responses,
        "@ai-sdk/anthropic" | "@ai-sdk/google-vertex/anthropic" => Spelling::Anthropic,
        "@ai-sdk/google" | "@ai-sdk/google-vertex" => Spelling::Gemini,
        "@ai-sdk/amazon-bedrock" => Spelling::Bedrock,
        "@openrouter/ai-sdk-provider" | "@ai-sdk/gateway" => Spelling::Router,
        // Their servers reject reasoning options.
        "@ai-sdk/mistral" | "@ai-sdk/cohere" | "@ai-sdk/perplexity" => return Map::new(),
        _ => Spelling::Chat,
    };
    let efforts = efforts(model, spelling);
    let budget = budget(model, spelling);
    let named = match (efforts, budget) {
        // Claude models accept an effort only if they support adaptive reasoning, whose efforts
        // include `max`.
        (Some(efforts), Some(budget)) if spelling == Spelling::Anthropic && !efforts.contains(&"max") => {
            budgets(budget, spelling)
        }
        (Some(efforts), _) => {
            efforts.into_iter().map(|word| (word.to_owned(), effort(word, spelling))).collect()
        }
        (None, Some(budget)) => budgets(budget, spelling),
        (None, None) => Vec::new(),
    };
    named.into_iter().collect()
}

fn efforts<'a>(model: Thinker<'a>, spelling: Spelling) -> Option<Vec<&'a str>> {
    let Some(options) = model.options else {
        return match spelling {
            Spelling::Chat | Spelling::Router | Spelling::Responses => Some(USUAL.to_vec()),
            Spelling::Gemini if !model.api_id.contains("2.5") => Some(vec!["low", "high"]),
            Spelling::Gemini | Spelling::Anthropic | Spelling::Bedrock => None,
        };
    };
    options.iter().find_map(|option| match option {
        ReasoningOption::Effort { values } => Some(values.iter().flatten().map(String::as_str).collect()),
        ReasoningOption::Toggle | ReasoningOption::BudgetTokens { .. } => None,
    })
}

/// Returns the tokens of `high` and `max` for a model with a token budget.
fn budget(model: Thinker<'_>, spelling: Spelling) -> Option<[u64; 2]> {
    let most = match model.options {
        Some(options) => options.iter().find_map(|option| match option {
            ReasoningOption::BudgetTokens { max, .. } => Some(max.unwrap_or(MAX_TOKENS)),
            ReasoningOption::Toggle | ReasoningOption::Effort { .. } => None,
        })?,
        None => MAX_TOKENS,
    };
    let counted = match spelling {
        Spelling::Anthropic | Spelling::Bedrock => true,
        Spelling::Gemini => model.options.is_some() || model.api_id.contains("2.5"),
        Spelling::Chat | Spelling::Router | Spelling::Responses => false,
    };
    let (half, whole) = match model.output_limit {
        0 => (HIGH_TOKENS, MAX_TOKENS),
        limit => ((limit / 2).saturating_sub(1), limit.saturating_sub(1)),
    };
    counted.then(|| [HIGH_TOKENS.min(half).min(most), MAX_TOKENS.min(whole).min(most)])
}

fn budgets([high, max]: [u64; 2], spelling: Spelling) -> Vec<(String, Value)> {
    let counted = |tokens: u64| match spelling {
        Spelling::Gemini => {
            json!({ "thinkingConfig": { "includeThoughts": true, "thinkingBudget": tokens } })
        }
        Spelling::Bedrock => json!({ "reasoningConfig": { "type": "enabled", "budgetTokens": tokens } }),
        Spelling::Anthropic | Spelling::Chat | Spelling::Router | Spelling::Responses => {
            json!({ "thinking": { "type": "enabled", "budgetTokens": tokens } })
        }
    };
    vec![("high".to_owned(), counted(high)), ("max".to_owned(), counted(max))]
}

fn effort(word: &str, spelling: Spelling) -> Value {
    match spelling {
        Spelling::Chat => json!({ "reasoningEffort": word }),
        Spelling::Router => json!({ "reasoning": { "effort": word } }),
        Spelling::Responses => json!({
            "reasoningEffort": word,
            "reasoningSummary": "auto",
            "include": ["reasoning.encrypted_content"],
        }),
        Spelling::Anthropic => json!({ "thinking": { "type": "adaptive" }, "effort": word }),
        Spelling::Gemini => json!({ "thinkingConfig": { "includeThoughts": true, "thinkingLevel": word } }),
        Spelling::Bedrock => {
            json!({ "reasoningConfig": { "type": "adaptive", "maxReasoningEffort": word } })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(npm: &str, api_id: &str, options: Option<Value>, expected: Value) {
        let options: Option<Vec<ReasoningOption>> =
            options.map(|options| serde_json::from_value(options).unwrap());
        let thinker = Thinker { npm, api_id, options: options.as_deref(), output_limit: 64_000 };
        assert_eq!(Value::Object(variants(thinker)), expected, "{npm} {api_id}");
    }

    #[test]
    fn efforts_use_the_librarys_spelling() {
        let words = || Some(json!([{ "type": "effort", "values": [null, "low", "high"] }]));
        check(
            "@ai-sdk/openai-compatible",
            "m",
            words(),
            json!({ "low": { "reasoningEffort": "low" }, "high": { "reasoningEffort": "high" } }),
        );
        let responses = |word: &str| {
            let include = ["reasoning.encrypted_content"];
            json!({ "reasoningEffort": word, "reasoningSummary": "auto", "include": include })
        };
        check(
            "@ai-sdk/openai",
            "gpt-5",
            words(),
            json!({ "low": responses("low"), "high": responses("high") }),
        );
        let level =
            |word: &str| json!({ "thinkingConfig": { "includeThoughts": true, "thinkingLevel": word } });
        check("@ai-sdk/google", "gemini-3", words(), json!({ "low": level("low"), "high": level("high") }));
        let routed = |word: &str| json!({ "reasoning": { "effort": word } });
        check(
            "@openrouter/ai-sdk-provider",
            "m",
            words(),
            json!({ "low": routed("low"), "high": routed("high") }),
        );
    }

    #[test]
    fn a_token_budget_has_two_variants() {
        let counted = |tokens: u64| json!({ "thinking": { "type": "enabled", "budgetTokens": tokens } });
        let expected = json!({ "high": counted(16_000), "max": counted(31_999) });
        let budget = || json!({ "type": "budget_tokens", "min": 1024 });
        check("@ai-sdk/anthropic", "claude-sonnet-4-5", Some(json!([budget()])), expected.clone());
        check("@ai-sdk/anthropic", "claude", None, expected.clone());
        let words = json!({ "type": "effort", "values": ["low", "medium", "high"] });
        check("@ai-sdk/anthropic", "claude-opus-4-5", Some(json!([words, budget()])), expected);
        let google =
            |tokens: u64| json!({ "thinkingConfig": { "includeThoughts": true, "thinkingBudget": tokens } });
        let least = json!([{ "type": "budget_tokens", "min": 128, "max": 24_576 }]);
        check(
            "@ai-sdk/google",
            "gemini-2.5-flash",
            Some(least),
            json!({ "high": google(16_000), "max": google(24_576) }),
        );
    }

    #[test]
    fn adaptive_claude_models_get_an_effort() {
        let options = json!([
            { "type": "effort", "values": ["high", "max"] },
            { "type": "budget_tokens", "min": 1024 },
        ]);
        let adaptive = |word: &str| json!({ "thinking": { "type": "adaptive" }, "effort": word });
        let expected = json!({ "high": adaptive("high"), "max": adaptive("max") });
        check("@ai-sdk/anthropic", "claude-opus-4-6", Some(options), expected);
    }

    #[test]
    fn a_model_without_reasoning_options_has_no_variants() {
        check("@ai-sdk/openai-compatible", "m", Some(json!([])), json!({}));
        check("@ai-sdk/openai-compatible", "m", Some(json!([{ "type": "toggle" }])), json!({}));
        check("@ai-sdk/mistral", "m", None, json!({}));
    }

    #[test]
    fn a_small_output_limit_lowers_the_budget() {
        let thinker = Thinker { npm: "@ai-sdk/anthropic", api_id: "m", options: None, output_limit: 8_192 };
        let found = variants(thinker);
        assert_eq!(found["high"]["thinking"]["budgetTokens"], 4_095);
        assert_eq!(found["max"]["thinking"]["budgetTokens"], 8_191);
    }
}
