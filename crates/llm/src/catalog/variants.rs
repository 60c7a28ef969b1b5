//! Named amounts of thinking: what `--variant high` means for a model.
//!
//! The words are the catalog's where it has them. The options are spelled as
//! configuration files spell them; the protocols put them into their bodies.

use serde_json::{Map, Value, json};

use super::ReasoningOption;

/// Thinking tokens of `high` and of `max`.
const HIGH_TOKENS: u64 = 16_000;
const MAX_TOKENS: u64 = 31_999;
/// The words for a model that thinks and of which nothing else is known.
const USUAL: [&str; 3] = ["low", "medium", "high"];

/// A model that thinks, as its variants need it.
#[derive(Debug, Clone, Copy)]
pub struct Thinker<'a> {
    /// The library that speaks its protocol, without a version.
    pub npm: &'a str,
    /// Its name on the wire.
    pub api_id: &'a str,
    /// The ways in which its thinking can be set; `None` when nobody has said.
    pub options: Option<&'a [ReasoningOption]>,
    /// The tokens of its answer; zero means unknown.
    pub output_limit: u64,
}

/// How a library spells an amount of thinking.
#[derive(Clone, Copy, PartialEq)]
enum Spelling {
    Chat,
    Router,
    Responses,
    Anthropic,
    Gemini,
    Bedrock,
}

/// The variants of a model, the least thinking first.
#[must_use]
pub fn variants(model: Thinker<'_>) -> Map<String, Value> {
    let spelling = match model.npm {
        "@ai-sdk/openai" | "@ai-sdk/azure" => Spelling::Responses,
        "@ai-sdk/anthropic" | "@ai-sdk/google-vertex/anthropic" => Spelling::Anthropic,
        "@ai-sdk/google" | "@ai-sdk/google-vertex" => Spelling::Gemini,
        "@ai-sdk/amazon-bedrock" => Spelling::Bedrock,
        "@openrouter/ai-sdk-provider" | "@ai-sdk/gateway" => Spelling::Router,
        // They refuse to be told.
        "@ai-sdk/mistral" | "@ai-sdk/cohere" | "@ai-sdk/perplexity" => return Map::new(),
        _ => Spelling::Chat,
    };
    let words = words(model, spelling);
    let budget = budget(model, spelling);
    let named = match (words, budget) {
        // Claude takes a word only since it can also be left to think as it likes, which goes up to `max`.
        (Some(words), Some(budget)) if spelling == Spelling::Anthropic && !words.contains(&"max") => {
            budgets(budget, spelling)
        }
        (Some(words), _) => {
            words.into_iter().map(|word| (word.to_owned(), effort(word, spelling))).collect()
        }
        (None, Some(budget)) => budgets(budget, spelling),
        (None, None) => Vec::new(),
    };
    named.into_iter().collect()
}

fn words<'a>(model: Thinker<'a>, spelling: Spelling) -> Option<Vec<&'a str>> {
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

/// The tokens of `high` and `max`, for a model whose thinking is counted.
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
        Spelling::Gemini => json!({ "thinkingConfig": { "includeThoughts": true, "thinkingBudget": tokens } }),
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
