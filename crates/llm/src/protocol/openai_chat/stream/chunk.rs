//! The fields of a chunk that are used, parsed without copying text.

use std::borrow::Cow;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, SeqAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::loose::Loose;

#[derive(Debug, Deserialize)]
pub(super) struct Chunk<'a> {
    #[serde(borrow, default)]
    pub(super) choices: Choices<'a>,
    #[serde(borrow, default)]
    pub(super) usage: Option<&'a RawValue>,
    /// Groq sends the usage in this object, and in `usage` only if the request wants it there.
    #[serde(borrow, default)]
    pub(super) x_groq: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) error: Option<&'a RawValue>,
}

/// The first choice. Requests never ask for more than one.
#[derive(Debug, Default)]
#[expect(
    clippy::large_enum_variant,
    reason = "one lives at a time, on the stack, and boxing would allocate per chunk"
)]
pub(super) enum Choices<'a> {
    #[default]
    Absent,
    Empty,
    First(Choice<'a>),
}

#[derive(Debug, Deserialize)]
pub(super) struct Choice<'a> {
    #[serde(borrow, default)]
    pub(super) delta: Option<Delta<'a>>,
    /// Replaces `delta` in an answer that is not streamed.
    #[serde(borrow, default)]
    pub(super) message: Option<Delta<'a>>,
    #[serde(borrow, default)]
    pub(super) finish_reason: Loose<'a>,
    /// One provider sends the usage here instead of in the chunk.
    #[serde(borrow, default)]
    pub(super) usage: Option<&'a RawValue>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Delta<'a> {
    #[serde(borrow, default)]
    pub(super) content: Loose<'a>,
    #[serde(borrow, default)]
    pub(super) reasoning_content: Loose<'a>,
    #[serde(borrow, default)]
    pub(super) reasoning: Loose<'a>,
    #[serde(borrow, default)]
    pub(super) reasoning_text: Loose<'a>,
    #[serde(borrow, default)]
    pub(super) reasoning_details: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) refusal: Loose<'a>,
    #[serde(borrow, default)]
    pub(super) tool_calls: Option<Vec<CallDelta<'a>>>,
}

#[derive(Debug, Deserialize)]
pub(super) struct CallDelta<'a> {
    #[serde(default)]
    pub(super) index: Option<u64>,
    #[serde(borrow, default)]
    pub(super) id: Loose<'a>,
    #[serde(borrow, default)]
    pub(super) function: Option<FunctionDelta<'a>>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct FunctionDelta<'a> {
    #[serde(borrow, default)]
    pub(super) name: Loose<'a>,
    #[serde(borrow, default)]
    pub(super) arguments: Loose<'a>,
}

/// Splits a content field, which is text or a list of typed parts, into reasoning and text.
pub(super) fn content(content: Loose<'_>) -> (Option<String>, Option<Cow<'_, str>>) {
    let parts = match content {
        Loose::Nothing => return (None, None),
        Loose::Text(text) => return (None, (!text.is_empty()).then_some(text)),
        Loose::Json(parts) => parts,
    };
    let (mut thought, mut text) = (String::new(), String::new());
    for part in parts.as_array().into_iter().flatten() {
        match part.get("thinking") {
            Some(thinking) => gather(thinking, &mut thought),
            None => gather(part, &mut text),
        }
    }
    let filled = |text: String| Some(text).filter(|text| !text.is_empty());
    (filled(thought), filled(text).map(Cow::Owned))
}

/// Appends all text of a string, an object with a `text`, or a list of these.
fn gather(value: &Value, into: &mut String) {
    if let Some(text) = value.as_str().or_else(|| value.get("text")?.as_str()) {
        into.push_str(text);
    }
    for item in value.as_array().into_iter().flatten() {
        if let Some(text) = item.as_str().or_else(|| item.get("text")?.as_str()) {
            into.push_str(text);
        }
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Choices<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct First;
        impl<'de> Visitor<'de> for First {
            type Value = Choices<'de>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a list of choices")
            }

            fn visit_unit<E>(self) -> Result<Self::Value, E> {
                Ok(Choices::Absent)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
                let Some(first) = items.next_element()? else { return Ok(Choices::Empty) };
                while items.next_element::<IgnoredAny>()?.is_some() {}
                Ok(Choices::First(first))
            }
        }
        deserializer.deserialize_any(First)
    }
}
