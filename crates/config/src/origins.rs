//! The source of each value of the merged configuration.
//!
//! Paths are keys joined by dots. If a value is replaced, so is its source.

use std::collections::{BTreeMap, HashSet};

use serde_json::Value;

use crate::{Map, merge::APPENDED_LISTS};

/// The sources of values, by path.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Origins(BTreeMap<String, String>);

impl Origins {
    /// The source of a value; for an object, the source of its first value.
    #[must_use]
    pub fn of(&self, path: &str) -> Option<&str> {
        if let Some(origin) = self.0.get(path) {
            return Some(origin);
        }
        let below = [format!("{path}."), format!("{path}[")];
        let mut found = below.iter().filter_map(|below| {
            self.0.range(below.clone()..).next().filter(|(path, _)| path.starts_with(below.as_str()))
        });
        found.next().map(|(_, origin)| origin.as_str())
    }

    /// Every path with its source, sorted by path.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(path, origin)| (path.as_str(), origin.as_str()))
    }

    /// Records a document before it is merged into `merged`.
    pub(crate) fn record(&mut self, merged: &Map, document: &Map, origin: &str) {
        for (key, value) in document {
            match value {
                Value::Array(items) if APPENDED_LISTS.contains(&key.as_str()) => {
                    let there = merged.get(key).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
                    let mut known: HashSet<String> = there.iter().map(Value::to_string).collect();
                    for item in items.iter().map(Value::to_string) {
                        let at = known.len();
                        if known.insert(item.clone()) {
                            self.0.insert(format!("{key}[{at}] {item}"), origin.to_owned());
                        }
                    }
                }
                value => self.note(key.clone(), value, origin),
            }
        }
    }

    fn note(&mut self, path: String, value: &Value, origin: &str) {
        match value {
            Value::Object(entries) if !entries.is_empty() => {
                // A value that was not an object is replaced.
                self.0.remove(&path);
                for (key, value) in entries {
                    self.note(format!("{path}.{key}"), value, origin);
                }
            }
            // An empty object does not change an existing one.
            Value::Object(_) if self.of(&path).is_some() => {}
            _ => {
                let below = format!("{path}.");
                let gone = self.0.range(below.clone()..).take_while(|(known, _)| known.starts_with(&below));
                for known in gone.map(|(known, _)| known.clone()).collect::<Vec<_>>() {
                    self.0.remove(&known);
                }
                self.0.insert(path, origin.to_owned());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_source_of_a_value_is_the_last_document_that_sets_it() {
        let mut origins = Origins::default();
        let mut merged = Map::new();
        for (origin, document) in [
            ("a", json!({"x": {"y": 1, "z": 2}, "instructions": ["one"], "m": 1})),
            ("b", json!({"x": {"z": 3}, "instructions": ["one", "two"], "m": {"n": 1}})),
            ("c", json!({"x": {}, "m": 5})),
        ] {
            let Value::Object(document) = document else { panic!("an object") };
            origins.record(&merged, &document, origin);
            crate::merge::apply(&mut merged, document);
        }
        let found: Vec<_> = origins.iter().collect();
        let expected = [
            ("instructions[0] \"one\"", "a"),
            ("instructions[1] \"two\"", "b"),
            ("m", "c"),
            ("x.y", "a"),
            ("x.z", "b"),
        ];
        assert_eq!(found, expected);
        assert_eq!(
            (origins.of("x"), origins.of("instructions"), origins.of("q")),
            (Some("a"), Some("a"), None)
        );
    }
}
