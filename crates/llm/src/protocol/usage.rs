//! Token usage in the format of OpenAI and its imitations.

use serde_json::Value;
use serde_json::value::RawValue;

use crate::Usage;

/// Parses a usage object. Returns `None` for other JSON.
pub(crate) fn read(raw: &RawValue) -> Option<Usage> {
    of(&serde_json::from_str(raw.get()).ok()?)
}

/// Parses the usage object inside of another object.
pub(crate) fn nested(raw: &RawValue) -> Option<Usage> {
    of(serde_json::from_str::<Value>(raw.get()).ok()?.get("usage")?)
}

/// Converts a usage object. Returns `None` for other JSON.
pub(crate) fn of(usage: &Value) -> Option<Usage> {
    if !usage.is_object() {
        return None;
    }
    let count = |paths: &[&str]| {
        let found = paths.iter().find_map(|path| usage.pointer(path).filter(|value| value.is_number()));
        // A few servers write whole numbers with a fraction. Casts of floats saturate.
        found.map(|value| value.as_u64().unwrap_or_else(|| value.as_f64().unwrap_or(0.0) as u64))
    };
    let prompt = count(&["/prompt_tokens", "/input_tokens"]).unwrap_or(0);
    let completion = count(&["/completion_tokens", "/output_tokens"]).unwrap_or(0);
    let cache_read = count(&[
        "/prompt_tokens_details/cached_tokens",
        "/input_tokens_details/cached_tokens",
        "/cached_tokens",
        "/prompt_cache_hit_tokens",
    ])
    .unwrap_or(0);
    let cache_write =
        count(&["/prompt_tokens_details/cache_write_tokens", "/cache_creation_input_tokens"]).unwrap_or(0);
    let reasoning = count(&[
        "/completion_tokens_details/reasoning_tokens",
        "/output_tokens_details/reasoning_tokens",
        "/reasoning_tokens",
    ])
    .unwrap_or(0);
    let total = count(&["/total_tokens"]);
    // Most servers count reasoning as part of the completion, a few separately. The total shows
    // which.
    let is_separate = reasoning > completion || total == Some(prompt + completion + reasoning);
    Some(Usage {
        input: prompt.checked_sub(cache_read + cache_write).unwrap_or(prompt),
        output: if is_separate { completion } else { completion - reasoning },
        reasoning,
        cache_read,
        cache_write,
        total: total.or(Some(prompt + completion + if is_separate { reasoning } else { 0 })),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn check(usage: Value, expected: [u64; 6]) {
        let [input, output, reasoning, cache_read, cache_write, total] = expected;
        let expected = Usage { input, output, reasoning, cache_read, cache_write, total: Some(total) };
        assert_eq!(of(&usage), Some(expected));
    }

    #[test]
    fn cached_input_and_reasoning_are_subtracted() {
        check(
            json!({"prompt_tokens": 1241, "completion_tokens": 56, "total_tokens": 1297,
                "prompt_tokens_details": {"cached_tokens": 7}, "completion_tokens_details": {"reasoning_tokens": 6}}),
            [1234, 50, 6, 7, 0, 1297],
        );
    }

    #[test]
    fn reasoning_counted_separately_is_not_subtracted() {
        check(
            json!({"prompt_tokens": 12, "completion_tokens": 300, "total_tokens": 352,
                "completion_tokens_details": {"reasoning_tokens": 40}}),
            [12, 300, 40, 0, 0, 352],
        );
        check(
            json!({"prompt_tokens": 1, "completion_tokens": 2, "completion_tokens_details": {"reasoning_tokens": 4}}),
            [1, 2, 4, 0, 0, 7],
        );
    }

    #[test]
    fn other_spellings_and_missing_fields_are_accepted() {
        check(json!({"prompt_tokens": 10.0, "completion_tokens": null}), [10, 0, 0, 0, 0, 10]);
        check(json!({"prompt_tokens": 10, "prompt_cache_hit_tokens": 4}), [6, 0, 0, 4, 0, 10]);
        check(json!({"input_tokens": 3, "output_tokens": 4}), [3, 4, 0, 0, 0, 7]);
        check(json!({"prompt_tokens": 3, "cached_tokens": 9}), [3, 0, 0, 9, 0, 3]);
    }
}
