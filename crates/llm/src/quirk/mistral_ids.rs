//! Mistral accepts only ids of exactly nine letters and digits.
//!
//! Other ids are replaced by a hash, so that a call and its result still match, and equal
//! conversations are equal bytes.

use serde_json::{Value, json};

use super::messages::messages;
use crate::fit::nine as short;

pub(super) fn body(mut body: Value) -> Value {
    for message in messages(&mut body) {
        if let Some(id) = message["tool_call_id"].as_str() {
            message["tool_call_id"] = json!(short(id));
        }
        for call in message["tool_calls"].as_array_mut().into_iter().flatten() {
            if let Some(id) = call["id"].as_str() {
                call["id"] = json!(short(id));
            }
        }
    }
    body
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LENGTH: usize = 9;

    use std::collections::BTreeSet;

    #[test]
    fn a_call_and_its_result_still_match() {
        let found = body(json!({"messages": [
            {"role": "assistant", "tool_calls": [{"id": "call_mock_2_3"}, {"id": "abcdEF123"}]},
            {"role": "tool", "tool_call_id": "call_mock_2_3"},
            {"role": "tool", "tool_call_id": "abcdEF123"},
        ]}));
        let first = &found["messages"][0]["tool_calls"][0]["id"];
        assert_ne!(first, "call_mock_2_3");
        assert_eq!(first, &found["messages"][1]["tool_call_id"]);
        assert_eq!(found["messages"][0]["tool_calls"][1]["id"], "abcdEF123");
        assert_eq!(found["messages"][2]["tool_call_id"], "abcdEF123");
    }

    #[test]
    fn similar_ids_stay_different() {
        let ids: BTreeSet<String> =
            (0..20_000).map(|number| short(&format!("call_mock_2_{number}"))).collect();
        assert_eq!(ids.len(), 20_000);
    }

    proptest! {
        #[test]
        fn every_id_fits(id in ".{0,40}") {
            let found = short(&id);
            prop_assert!(found.len() == LENGTH && found.bytes().all(|byte| byte.is_ascii_alphanumeric()));
            prop_assert_eq!(short(&found), found);
        }
    }
}
