//! JSON fields that are text from most servers and something else from some.
//!
//! Text is borrowed from the chunk where it has no escapes, so the common case
//! allocates nothing; `null` and a missing field are the same.

use std::borrow::Cow;

use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

/// Text, nothing, or other JSON.
#[derive(Debug, Default, PartialEq)]
pub(crate) enum Loose<'a> {
    /// `null`, or no such field.
    #[default]
    Nothing,
    /// Text.
    Text(Cow<'a, str>),
    /// Anything else; rare, so it must not make all fields large.
    Json(Box<Value>),
}

impl<'a> Loose<'a> {
    /// The text, if there is any and it is not empty.
    pub(crate) fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) if !text.is_empty() => Some(text),
            Self::Nothing | Self::Text(_) | Self::Json(_) => None,
        }
    }

    /// The text or, of other JSON, its source; empty text is nothing.
    pub(crate) fn source(self) -> Option<Cow<'a, str>> {
        match self {
            Self::Text(text) if !text.is_empty() => Some(text),
            Self::Nothing | Self::Text(_) => None,
            Self::Json(value) => Some(Cow::Owned(value.to_string())),
        }
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Loose<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(LooseVisitor)
    }
}

struct LooseVisitor;

impl<'de> Visitor<'de> for LooseVisitor {
    type Value = Loose<'de>;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("any JSON")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Loose::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Loose::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_string<E>(self, text: String) -> Result<Self::Value, E> {
        Ok(Loose::Text(Cow::Owned(text)))
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Loose::Nothing)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Self::Value, E> {
        Ok(Loose::Json(Box::new(value.into())))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Self::Value, E> {
        Ok(Loose::Json(Box::new(value.into())))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Self::Value, E> {
        Ok(Loose::Json(Box::new(value.into())))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Self::Value, E> {
        Ok(Loose::Json(Box::new(value.into())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<Self::Value, A::Error> {
        Value::deserialize(SeqAccessDeserializer::new(items)).map(|value| Loose::Json(Box::new(value)))
    }

    fn visit_map<A: MapAccess<'de>>(self, entries: A) -> Result<Self::Value, A::Error> {
        Value::deserialize(MapAccessDeserializer::new(entries)).map(|value| Loose::Json(Box::new(value)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_text_is_borrowed() {
        let loose: Loose = serde_json::from_str(r#""plain""#).unwrap();
        assert!(matches!(loose, Loose::Text(Cow::Borrowed("plain"))));
    }

    #[test]
    fn everything_else_is_kept() {
        for (json, source) in [
            (r#""a\nb""#, Some("a\nb")),
            ("null", None),
            (r#""""#, None),
            ("{\"a\":[1]}", Some("{\"a\":[1]}")),
            ("[1,-2,1.5,true]", Some("[1,-2,1.5,true]")),
            ("429", Some("429")),
        ] {
            let loose: Loose = serde_json::from_str(json).unwrap();
            assert_eq!(loose.source().as_deref(), source, "{json}");
        }
    }
}
