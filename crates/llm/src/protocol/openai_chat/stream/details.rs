//! Reasoning details, which a relay needs back for its provider.
//!
//! OpenRouter sends `reasoning_details`: pieces of summaries, of signed text and of encrypted data,
//! each with the block number. They are joined and stored for the next turn.

use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::Error;
use crate::protocol::limits::{ARGUMENTS_LIMIT_BYTES, too_much};

/// The details of the current reasoning block.
#[derive(Debug, Default)]
pub(super) struct Details {
    blocks: Vec<Value>,
    bytes: usize,
}

impl Details {
    pub(super) fn has_any(&self) -> bool {
        !self.blocks.is_empty()
    }

    /// Adds the details of one chunk. Returns their text, for chunks that contain it nowhere else.
    pub(super) fn push(&mut self, raw: &RawValue) -> Result<Option<String>, Error> {
        self.bytes += raw.get().len();
        if self.bytes > ARGUMENTS_LIMIT_BYTES {
            return Err(too_much(&format!("more than {ARGUMENTS_LIMIT_BYTES} bytes of reasoning details")));
        }
        let details: Value = serde_json::from_str(raw.get()).unwrap_or_default();
        let mut words = String::new();
        for detail in details.as_array().into_iter().flatten().filter(|detail| detail.is_object()) {
            for name in ["text", "summary"] {
                words.push_str(detail[name].as_str().unwrap_or_default());
            }
            let is_next =
                |last: &&mut Value| last["type"] == detail["type"] && last["index"] == detail["index"];
            match self.blocks.last_mut().filter(is_next).filter(|_| detail["type"] != "reasoning.encrypted") {
                Some(last) => join(last, detail),
                None => self.blocks.push(detail.clone()),
            }
        }
        Ok(Some(words).filter(|words| !words.is_empty()))
    }

    /// Returns the details as metadata of the block that ends.
    pub(super) fn take(&mut self) -> Option<Value> {
        if self.blocks.is_empty() {
            return None;
        }
        let blocks = std::mem::take(&mut self.blocks);
        Some(json!({"openrouter": {"reasoning_details": blocks}}))
    }
}

fn join(last: &mut Value, more: &Value) {
    for (name, value) in more.as_object().into_iter().flatten() {
        let text = match (last.get(name).and_then(Value::as_str), value.as_str()) {
            (Some(old), Some(new)) if matches!(name.as_str(), "text" | "summary") => {
                json!(format!("{old}{new}"))
            }
            _ if value.is_null() => continue,
            _ => value.clone(),
        };
        last[name] = text;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_of_a_block_are_joined() {
        let mut details = Details::default();
        let mut words = Vec::new();
        for chunk in [
            r#"[{"type":"reasoning.text","text":"a","index":0,"format":"f","signature":null}]"#,
            r#"[{"type":"reasoning.text","text":"b","index":0,"signature":"S"}]"#,
            r#"[{"type":"reasoning.encrypted","data":"E","index":1}]"#,
            r#"[{"type":"reasoning.encrypted","data":"F","index":1}]"#,
            r#""odd""#,
            r#"[{"type":"reasoning.summary","summary":"c","index":2}]"#,
        ] {
            let raw: &RawValue = serde_json::from_str(chunk).unwrap();
            words.push(details.push(raw).unwrap());
        }
        let words: Vec<_> = words.iter().map(Option::as_deref).collect();
        assert_eq!(words, [Some("a"), Some("b"), None, None, None, Some("c")]);
        let expected = json!({"openrouter": {"reasoning_details": [
            {"type": "reasoning.text", "text": "ab", "index": 0, "format": "f", "signature": "S"},
            {"type": "reasoning.encrypted", "data": "E", "index": 1},
            {"type": "reasoning.encrypted", "data": "F", "index": 1},
            {"type": "reasoning.summary", "summary": "c", "index": 2},
        ]}});
        assert_eq!(details.take(), Some(expected));
        assert!(!details.has_any());
        assert_eq!(details.take(), None);
    }
}
