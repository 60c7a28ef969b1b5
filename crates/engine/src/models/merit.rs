//! The order of a provider's models if the user chooses none.
//!
//! The newest model for coding is the best one, by the facts of the catalog: it calls tools, reads and writes text, has
//! a large context and is in normal use. A model whose name or family says that it is made for something else (speech,
//! pictures, embeddings, search, …), is a preview or is a reduced variant (`lite`, `mini`, …) is never chosen unasked.
//! Of two models, one that is less suited counts as some months older than it is, see [`handicap_months`].

use codewright_llm::catalog::ModelFacts;

/// How well a model suits as the default of its provider; the greatest is chosen.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Merit {
    class: Class,
    /// The release date minus the handicap, in days of months of 31 days.
    day: i64,
    is_strongest: bool,
    /// Of several names of one model, the shortest is the one that users know.
    brevity: std::cmp::Reverse<usize>,
    named_later: String,
}

/// How far the maker supports a model. The first ones are only chosen if the user listed them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Class {
    Preview,
    Reduced,
    Beta,
    Normal,
}

/// Words in ids and families of models that are not made for coding with tools.
const OTHER_PURPOSE: [&str; 42] = [
    "apply",
    "asr",
    "audio",
    "classifier",
    "companion",
    "deep",
    "detect",
    "dictation",
    "edit",
    "embed",
    "embedding",
    "embeddings",
    "guard",
    "image",
    "images",
    "imagine",
    "intent",
    "live",
    "math",
    "med",
    "medical",
    "moderation",
    "music",
    "ocr",
    "realtime",
    "rerank",
    "reranker",
    "research",
    "roleplay",
    "safeguard",
    "search",
    "speech",
    "stt",
    "transcribe",
    "translate",
    "translation",
    "tts",
    "video",
    "voice",
    "voxtral",
    "whisper",
    "fim",
];
/// Words of models that may soon be withdrawn.
const PREVIEW: [&str; 8] = ["preview", "exp", "experimental", "alpha", "nightly", "canary", "beta", "test"];
/// Words of models that their makers reduced.
const REDUCED: [&str; 11] =
    ["lite", "mini", "nano", "micro", "tiny", "small", "haiku", "nemo", "ministral", "edge", "mobile"];
/// Words of models that answer faster and worse than their siblings.
const FAST: [&str; 14] = [
    "flash",
    "flashx",
    "turbo",
    "fast",
    "highspeed",
    "ultraspeed",
    "instant",
    "air",
    "spark",
    "luna",
    "flex",
    "lightning",
    "priority",
    "quick",
];
/// Words of models whose training is about pictures or without the usual restraint, and of choices between models.
const ASIDE: [&str; 8] =
    ["vl", "vision", "omni", "uncensored", "abliterated", "heretic", "derestricted", "router"];
/// Of models of the same day, these words name the strongest.
const STRONGEST: [&str; 6] = ["pro", "max", "large", "coder", "code", "frontier"];
/// The families that are best at coding, with the months that a newer model of another family has to be ahead.
/// Families that are not listed have `UNKNOWN_FAMILY_MONTHS`.
const FAMILIES: [(&str, i64); 18] = [
    ("claude-sonnet", 0),
    ("gpt", 1),
    ("gpt-sol", 1),
    ("gpt-codex", 1),
    ("claude-opus", 5),
    ("deepseek-thinking", 3),
    ("devstral", 3),
    ("gemini-pro", 3),
    ("glm", 3),
    ("gpt-terra", 3),
    ("grok", 3),
    ("kimi-k2", 3),
    ("kimi-k3", 3),
    ("mimo", 3),
    ("minimax", 3),
    ("mistral-large", 3),
    ("mistral-medium", 3),
    ("qwen", 3),
];
const UNKNOWN_FAMILY_MONTHS: i64 = 6;
/// The smallest context in which an agent can work, and a comfortable one.
const LEAST_CONTEXT: u64 = 16_000;
const GOOD_CONTEXT: u64 = 64_000;
/// The price of a million tokens of output above which a model is not chosen unasked if another one exists.
const HIGH_PRICE: f64 = 60.0;
/// The parameters, in billions, below which an open model is weaker.
const MEDIUM_SIZE: u32 = 40;
const SMALL_SIZE: u32 = 15;

/// Returns how well a model suits as the default, or `None` if it cannot work as an agent.
pub(super) fn merit(facts: &ModelFacts) -> Option<Merit> {
    let is_too_short = (1..LEAST_CONTEXT).contains(&facts.limit.context);
    let words = words(facts);
    let is = |list: &[&str]| words.iter().any(|word| list.contains(&word.as_str()));
    if !facts.is_agentic() || is_too_short || is(&OTHER_PURPOSE) {
        return None;
    }
    let class = match facts.status.as_deref() {
        _ if is(&PREVIEW) => Class::Preview,
        _ if is(&REDUCED) => Class::Reduced,
        Some(_) => Class::Beta,
        None => Class::Normal,
    };
    Some(Merit {
        class,
        day: day(&facts.release_date) - 31 * handicap_months(facts, &words),
        is_strongest: is(&STRONGEST),
        brevity: std::cmp::Reverse(facts.id.len()),
        named_later: facts.id.clone(),
    })
}

impl Merit {
    /// Reports whether the model may be chosen although the user did not list it.
    pub(super) fn is_unasked(&self) -> bool {
        match self.class {
            Class::Normal | Class::Beta => true,
            Class::Reduced | Class::Preview => false,
        }
    }
}

/// The months that a model counts as older, because it is less suited than others of its time.
fn handicap_months(facts: &ModelFacts, words: &[String]) -> i64 {
    let is = |list: &[&str]| words.iter().any(|word| list.contains(&word.as_str()));
    let family = facts.family.as_deref().unwrap_or_default();
    let known = FAMILIES.iter().find(|(name, _)| *name == family);
    let mut months = known.map_or(UNKNOWN_FAMILY_MONTHS, |(_, months)| *months);
    let sees = |word: &String| word.len() > 1 && word.ends_with('v') && is_number(&word[..word.len() - 1]);
    if is(&FAST) {
        months += 6;
    }
    if is(&ASIDE) || words.iter().any(sees) {
        months += 8;
    }
    match size(&facts.id) {
        Some(..SMALL_SIZE) => months += 24,
        Some(..MEDIUM_SIZE) => months += 6,
        Some(_) | None => {}
    }
    if is(&["chat"]) {
        months += 3;
    }
    let is_dear = facts.cost.as_ref().is_some_and(|cost| cost.output > HIGH_PRICE);
    if is_dear || (family.starts_with("gpt") && is(&["pro"])) {
        months += 12;
    }
    if facts.limit.context < GOOD_CONTEXT {
        months += 12;
    }
    months
}

/// The words of a model's id and family: `Qwen3.6-27B` has `qwen3`, `6` and `27b`.
fn words(facts: &ModelFacts) -> Vec<String> {
    let family = facts.family.as_deref().unwrap_or_default();
    let text = format!("{} {family}", facts.id).to_ascii_lowercase();
    let words = text.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_owned).collect()
}

/// The parameters in billions that an id names: 27 in `qwen3.6-27b-a3b`.
fn size(id: &str) -> Option<u32> {
    let id = id.to_ascii_lowercase();
    let words = id.split(|c: char| !c.is_ascii_alphanumeric() && c != '.');
    words.filter_map(|word| word.strip_suffix('b')?.parse::<f64>().ok()).map(|size| size.ceil() as u32).max()
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// A release date such as `2026-02-04` or `2026-02` as a number that grows with it; 0 if it is missing.
fn day(date: &str) -> i64 {
    let mut fields = date.split('-').map(|field| field.parse::<i64>().ok());
    let Some(Some(year)) = fields.next() else { return 0 };
    let mut next = || fields.next().flatten().unwrap_or(1);
    (year * 12 + next()) * 31 + next()
}
