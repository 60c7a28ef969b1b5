//! What models.dev says about one provider and one model.
//!
//! Only the fields that are used; whatever else the data holds is dropped when
//! it is taken in. Numbers that are missing are zero, which means unknown.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::{Capabilities, Cost, Limits, Modalities};

/// A provider as models.dev describes it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProviderFacts {
    /// The name in configuration files.
    pub id: String,
    /// The name shown to people.
    #[serde(default)]
    pub name: String,
    /// Variables that set it up; not all of them hold a key.
    #[serde(default)]
    pub env: Vec<String>,
    /// The library that speaks its protocol.
    #[serde(default)]
    pub npm: String,
    /// The address of its protocol, if that is not the library's own; may name variables as `${NAME}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api: Option<String>,
}

impl ProviderFacts {
    /// Those of its variables that hold a secret.
    pub fn key_variables(&self) -> impl Iterator<Item = &str> {
        const SECRET: [&str; 3] = ["KEY", "TOKEN", "_PAT"];
        self.env.iter().map(String::as_str).filter(|name| SECRET.iter().any(|word| name.contains(word)))
    }
}

/// A model as models.dev describes it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ModelFacts {
    /// The name on the wire; the key under which the data lists it.
    #[serde(skip)]
    pub id: String,
    /// The name shown to people.
    pub name: String,
    /// Its relatives, such as `claude-haiku`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub family: Option<String>,
    /// Takes files.
    pub attachment: bool,
    /// Thinks before it answers.
    pub reasoning: bool,
    /// The ways in which its thinking can be set.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "known")]
    pub reasoning_options: Vec<ReasoningOption>,
    /// Calls tools.
    pub tool_call: bool,
    /// Takes a sampling temperature.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<bool>,
    /// The day it came out, such as `2026-02-04`.
    pub release_date: String,
    /// Kinds of content.
    pub modalities: Kinds,
    /// Token limits.
    pub limit: LimitFacts,
    /// Prices, if they are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<CostFacts>,
    /// Whether thought and answer alternate, or the field that carries the thought back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interleaved: Option<Value>,
    /// `alpha`, `beta` or `deprecated`; without a word it is in use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// How it is reached, if not like the provider's other models.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<Reach>,
}

/// One way in which a model's thinking can be set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ReasoningOption {
    /// On or off.
    Toggle,
    /// By one of these words.
    Effort {
        /// The words, the least effort first; `null` stands for no word at all.
        #[serde(default)]
        values: Vec<Option<String>>,
    },
    /// By a number of tokens.
    BudgetTokens {
        /// The fewest.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        min: Option<u64>,
        /// The most.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max: Option<u64>,
    },
}

/// Options of a kind that is not known here are left out, not refused.
fn known<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<ReasoningOption>, D::Error> {
    let written = Option::<Vec<Value>>::deserialize(deserializer)?.unwrap_or_default();
    Ok(written.into_iter().filter_map(|option| serde_json::from_value(option).ok()).collect())
}

/// Kinds of content that go in and come out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Kinds {
    /// What it reads.
    pub input: Vec<String>,
    /// What it makes.
    pub output: Vec<String>,
}

/// Token limits; zero means unknown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LimitFacts {
    /// Question and answer together.
    pub context: u64,
    /// The question, if it has a limit of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<u64>,
    /// The answer.
    pub output: u64,
}

/// Dollars per million tokens.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CostFacts {
    /// Uncached input.
    pub input: f64,
    /// Output.
    pub output: f64,
    /// Input read from a cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_read: Option<f64>,
    /// Input written to a cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<f64>,
    /// Prices of longer requests.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tiers: Vec<TierFacts>,
    /// Prices of a request with more than 200 000 tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context_over_200k: Option<Box<Self>>,
}

/// Prices from a certain length on.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TierFacts {
    /// Uncached input.
    pub input: f64,
    /// Output.
    pub output: f64,
    /// Input read from a cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_read: Option<f64>,
    /// Input written to a cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<f64>,
    /// The length.
    pub tier: Tier,
}

/// A length from which other prices hold.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Tier {
    /// What is counted; `context` is all that is known.
    #[serde(rename = "type")]
    pub kind: String,
    /// More tokens than this.
    pub size: u64,
}

/// How one model is reached.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Reach {
    /// The library that speaks its protocol.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub npm: Option<String>,
    /// The address of its protocol.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api: Option<String>,
}

impl ModelFacts {
    /// Whether it is offered without being asked for by name.
    #[must_use]
    pub fn is_current(&self) -> bool {
        !matches!(self.status.as_deref(), Some("alpha" | "deprecated"))
    }

    /// Whether it can do an agent's work: it writes text and nothing else, and calls tools.
    #[must_use]
    pub fn is_agentic(&self) -> bool {
        self.tool_call && self.modalities.output.iter().all(|kind| kind == "text")
    }

    /// Its token limits.
    #[must_use]
    pub fn limits(&self) -> Limits {
        let LimitFacts { context, output, input } = self.limit;
        Limits { context, output, input: input.unwrap_or(0) }
    }

    /// The field of a chat message in which thought goes back, if one is named.
    #[must_use]
    pub fn thought_field(&self) -> Option<&str> {
        let written = self.interleaved.as_ref()?;
        let field = written.as_str().or_else(|| written.get("field")?.as_str())?;
        (!field.is_empty()).then_some(field)
    }

    /// What it accepts.
    #[must_use]
    pub fn capabilities(&self) -> Capabilities {
        Capabilities {
            temperature: self.temperature.unwrap_or(false),
            reasoning: self.reasoning,
            attachment: self.attachment,
            tool_call: self.tool_call,
            input: modalities(&self.modalities.input),
        }
    }

    /// Its ordinary prices; zero where they are unknown.
    #[must_use]
    pub fn cost(&self) -> Cost {
        self.cost.as_ref().map(CostFacts::prices).unwrap_or_default()
    }

    /// The length from which it costs more, and what it costs then.
    #[must_use]
    pub fn long_cost(&self) -> Option<(u64, Cost)> {
        let cost = self.cost.as_ref()?;
        let of_tier = |tier: &TierFacts| (tier.tier.size, tier.prices());
        // The tier says from where on; the older field of its name alone does not always keep to it.
        let first =
            cost.tiers.iter().filter(|tier| tier.tier.kind == "context").min_by_key(|tier| tier.tier.size);
        first.map(of_tier).or_else(|| Some((LONG_TOKENS, cost.context_over_200k.as_ref()?.prices())))
    }
}

/// What counts as long where only the older field tells.
pub const LONG_TOKENS: u64 = 200_000;

impl CostFacts {
    fn prices(&self) -> Cost {
        prices(self.input, self.output, self.cache_read, self.cache_write)
    }
}

impl TierFacts {
    fn prices(&self) -> Cost {
        prices(self.input, self.output, self.cache_read, self.cache_write)
    }
}

fn prices(input: f64, output: f64, read: Option<f64>, write: Option<f64>) -> Cost {
    Cost { input, output, cache_read: read.unwrap_or(0.0), cache_write: write.unwrap_or(0.0) }
}

/// Kinds of content by their names; unknown names count for nothing.
#[must_use]
pub fn modalities(names: &[String]) -> Modalities {
    let has = |kind: &str| names.iter().any(|name| name == kind);
    Modalities {
        text: has("text"),
        image: has("image"),
        pdf: has("pdf"),
        audio: has("audio"),
        video: has("video"),
    }
}
