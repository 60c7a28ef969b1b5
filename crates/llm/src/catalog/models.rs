//! Well-known models of two providers, a stop-gap until the full catalog is embedded.

use super::Kind::{Reader, Sampled, Thinker};
use super::{ModelRow, model};
use crate::{Cost, Limits};

pub(super) const ANTHROPIC: &[ModelRow] = &[
    model("claude-opus-4-6", "Claude Opus 4.6", limits(200_000, 128_000), anthropic(5.0, 25.0), Sampled),
    model("claude-opus-4-5", "Claude Opus 4.5", limits(200_000, 64_000), anthropic(5.0, 25.0), Sampled),
    model("claude-opus-4-1", "Claude Opus 4.1", limits(200_000, 32_000), anthropic(15.0, 75.0), Sampled),
    model("claude-sonnet-4-6", "Claude Sonnet 4.6", limits(200_000, 64_000), anthropic(3.0, 15.0), Sampled),
    model("claude-sonnet-4-5", "Claude Sonnet 4.5", limits(200_000, 64_000), anthropic(3.0, 15.0), Sampled),
    model("claude-haiku-4-5", "Claude Haiku 4.5", limits(200_000, 64_000), anthropic(1.0, 5.0), Sampled),
    model(
        "claude-haiku-4-5-20251001",
        "Claude Haiku 4.5",
        limits(200_000, 64_000),
        anthropic(1.0, 5.0),
        Sampled,
    ),
];

pub(super) const OPENAI: &[ModelRow] = &[
    model("gpt-5.4", "GPT-5.4", limits(1_050_000, 128_000), openai(2.5, 15.0, 0.25), Thinker),
    model("gpt-5.4-mini", "GPT-5.4 mini", limits(400_000, 128_000), openai(0.75, 4.5, 0.075), Thinker),
    model("gpt-5.4-nano", "GPT-5.4 nano", limits(400_000, 128_000), openai(0.2, 1.25, 0.02), Thinker),
    model("gpt-5.2", "GPT-5.2", limits(400_000, 128_000), openai(1.75, 14.0, 0.175), Thinker),
    model("gpt-5.1", "GPT-5.1", limits(400_000, 128_000), openai(1.25, 10.0, 0.125), Thinker),
    model("gpt-5", "GPT-5", limits(400_000, 128_000), openai(1.25, 10.0, 0.125), Thinker),
    model("gpt-5-mini", "GPT-5 mini", limits(400_000, 128_000), openai(0.25, 2.0, 0.025), Thinker),
    model("gpt-5-nano", "GPT-5 nano", limits(400_000, 128_000), openai(0.05, 0.4, 0.005), Thinker),
    model("o3", "o3", limits(200_000, 100_000), openai(2.0, 8.0, 0.5), Thinker),
    model("o4-mini", "o4-mini", limits(200_000, 100_000), openai(1.1, 4.4, 0.275), Thinker),
    model("gpt-4.1", "GPT-4.1", limits(1_047_576, 32_768), openai(2.0, 8.0, 0.5), Reader),
    model("gpt-4.1-mini", "GPT-4.1 mini", limits(1_047_576, 32_768), openai(0.4, 1.6, 0.1), Reader),
    model("gpt-4o", "GPT-4o", limits(128_000, 16_384), openai(2.5, 10.0, 1.25), Reader),
    model("gpt-4o-mini", "GPT-4o mini", limits(128_000, 16_384), openai(0.15, 0.6, 0.075), Reader),
];

const fn limits(context: u64, output: u64) -> Limits {
    Limits { context, output }
}

/// Reading a cache costs a tenth of the input, writing it a quarter more.
const fn anthropic(input: f64, output: f64) -> Cost {
    Cost { input, output, cache_read: input * 0.1, cache_write: input * 1.25 }
}

/// Writing a cache costs nothing extra.
const fn openai(input: f64, output: f64, cache_read: f64) -> Cost {
    Cost { input, output, cache_read, cache_write: 0.0 }
}
