//! JSON fields that most servers send as text and some as other JSON.
//!
//! Text without escapes is borrowed from the input, so the common case does not allocate. `null`
//! equals a missing field.

use std::borrow::Cow;

use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

/// Text, `null`, or other JSON.
#[derive(Debug, Default, PartialEq)]
pub(crate) enum Loose<'a> {
    /// `null` or a missing field.
    #[default]
    Nothing,
    /// Text.
    Text(Cow<'a, str>),
    /// Other JSON. Boxed because it is rare and must not enlarge the type.
    Json(Box<Value>),
}

impl<'a> Loose<'a> {
    /// Returns the text if it is not empty.
    pub(crate) fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) if !text.is_empty() => Some(text),
            Self::Nothing | Self::Text(_) | Self::Json(_) => None,
        }
    }

    /// Returns the text, or the JSON text of another value. Returns `None` for empty text.
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
