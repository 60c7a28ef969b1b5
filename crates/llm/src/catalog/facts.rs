//! The data of models.dev about a provider and a model.
//!
//! Contains only the fields that are used. Missing numbers are zero, which means unknown.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::{Capabilities, Cost, Limits, Modalities};

/// A provider of models.dev.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProviderFacts {
    /// The name in configuration files.
    pub id: String,
    /// The display name.
    #[serde(default)]
    pub name: String,
    /// The environment variables that configure it; not all of them contain a key.
    #[serde(default)]
    pub env: Vec<String>,
    /// The library name.
    #[serde(default)]
    pub npm: String,
    /// The protocol's URL, if it is not the library's default. May contain variables as
    /// `${NAME}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api: Option<String>,
}

impl ProviderFacts {
    /// Returns the environment variables that contain a secret.
    pub fn key_variables(&self) -> impl Iterator<Item = &str> {
        self.env.iter().map(String::as_str).filter(|name| is_key(name))
    }
}

/// Whether an environment variable contains a secret, by its name.
pub(crate) fn is_key(name: &str) -> bool {
    const SECRET: [&str; 3] = ["KEY", "TOKEN", "_PAT"];
    SECRET.iter().any(|word| name.contains(word))
}

/// A model of models.dev.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ModelFacts {
    /// The name on the wire, which is its key in the data.
    #[serde(skip)]
    pub id: String,
    /// The display name.
    pub name: String,
    /// Its model family, such as `claude-haiku`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub family: Option<String>,
    /// Accepts files.
    pub attachment: bool,
    /// Reasons before it answers.
    pub reasoning: bool,
    /// The ways to configure its reasoning.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "known_options")]
    pub reasoning_options: Vec<ReasoningOption>,
    /// Calls tools.
    pub tool_call: bool,
    /// Accepts a sampling temperature.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<bool>,
    /// The release date, such as `2026-02-04`.
    pub release_date: String,
    /// The types of content.
    pub modalities: Kinds,
    /// Token limits.
    pub limit: LimitFacts,
    /// The prices, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<CostFacts>,
    /// Whether reasoning and text alternate, or the name of the field that returns the reasoning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interleaved: Option<Value>,
    /// `alpha`, `beta` or `deprecated`; otherwise the model is in normal use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// How to connect to it, if it differs from the provider's other models.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<Reach>,
}

/// A way to configure a model's reasoning.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ReasoningOption {
    /// On or off.
    Toggle,
    /// One of these efforts.
    Effort {
        /// The efforts, lowest first; `null` means that no effort is sent.
        #[serde(default)]
        values: Vec<Option<String>>,
    },
    /// A number of tokens.
    BudgetTokens {
        /// The minimum.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        min: Option<u64>,
        /// The maximum.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max: Option<u64>,
    },
}

/// Ignores unknown types of options.
fn known_options<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<ReasoningOption>, D::Error> {
    let written = Option::<Vec<Value>>::deserialize(deserializer)?.unwrap_or_default();
    Ok(written.into_iter().filter_map(|option| serde_json::from_value(option).ok()).collect())
}

/// The types of content that a model accepts and returns.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Kinds {
    /// The accepted types.
    pub input: Vec<String>,
    /// The returned types.
    pub output: Vec<String>,
}

/// Token limits; zero means unknown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LimitFacts {
    /// Input and output together.
    pub context: u64,
    /// Input, if it has a separate limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<u64>,
    /// Output.
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
    /// The prices of longer requests.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tiers: Vec<TierFacts>,
    /// The prices of requests with more than 200 000 tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context_over_200k: Option<Box<Self>>,
}

/// Prices above a number of tokens.
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
    /// The number of tokens.
    pub tier: Tier,
}

/// The number of tokens above which other prices apply.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Tier {
    /// The counted tokens; `context` is the only known value.
    #[serde(rename = "type")]
    pub kind: String,
    /// Requests with more tokens than this.
    pub size: u64,
}

/// How to connect to a model.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Reach {
    /// The library name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub npm: Option<String>,
    /// The protocol's URL.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api: Option<String>,
}

impl ModelFacts {
    /// Returns whether the model is listed by default.
    #[must_use]
    pub fn is_current(&self) -> bool {
        !matches!(self.status.as_deref(), Some("alpha" | "deprecated"))
    }

    /// Returns whether the model can work as an agent: it reads text, returns only text and calls tools.
    #[must_use]
    pub fn is_agentic(&self) -> bool {
        let input = &self.modalities.input;
        let reads_text = input.is_empty() || input.iter().any(|kind| kind == "text");
        self.tool_call && reads_text && self.modalities.output.iter().all(|kind| kind == "text")
    }

    /// Returns the token limits.
    #[must_use]
    pub fn limits(&self) -> Limits {
        let LimitFacts { context, output, input } = self.limit;
        Limits { context, output, input: input.unwrap_or(0) }
    }

    /// Returns the field of a chat message that sends reasoning back, if the data names one.
    #[must_use]
    pub fn thought_field(&self) -> Option<&str> {
        let written = self.interleaved.as_ref()?;
        let field = written.as_str().or_else(|| written.get("field")?.as_str())?;
        (!field.is_empty()).then_some(field)
    }

    /// Returns the capabilities.
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

    /// Returns the normal prices; zero means unknown.
    #[must_use]
    pub fn cost(&self) -> Cost {
        self.cost.as_ref().map(CostFacts::prices).unwrap_or_default()
    }

    /// Returns the number of tokens above which a higher price applies, and that price.
    #[must_use]
    pub fn long_cost(&self) -> Option<(u64, Cost)> {
        let cost = self.cost.as_ref()?;
        let of_tier = |tier: &TierFacts| (tier.tier.size, tier.prices());
        // The tier contains the real number. The number in the older field's name is not always
        // right.
        let first =
            cost.tiers.iter().filter(|tier| tier.tier.kind == "context").min_by_key(|tier| tier.tier.size);
        first.map(of_tier).or_else(|| Some((LONG_TOKENS, cost.context_over_200k.as_ref()?.prices())))
    }
}

/// The number of tokens that the older field implies.
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

/// Parses the names of content types. Ignores unknown names.
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
