//! Where each value of the merged configuration came from.
//!
//! Paths are keys joined by dots; a value that is replaced takes its origin with it.

use std::collections::{BTreeMap, HashSet};

use serde_json::Value;

use crate::{Map, merge::ADDING};

/// The origins of values, by path.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Origins(BTreeMap<String, String>);

impl Origins {
    /// The origin of a value; of an object, that of its first value.
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

    /// Every value and where it came from, by path.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(path, origin)| (path.as_str(), origin.as_str()))
    }

    /// Notes a document that is about to be laid over what was merged so far.
    pub(crate) fn lay(&mut self, merged: &Map, document: &Map, origin: &str) {
        for (key, value) in document {
            match value {
                Value::Array(items) if ADDING.contains(&key.as_str()) => {
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
                // What stood here was no object, if it stood here at all.
                self.0.remove(&path);
                for (key, value) in entries {
                    self.note(format!("{path}.{key}"), value, origin);
                }
            }
            // An empty object changes nothing where there is one already.
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
    fn the_last_who_said_something_is_its_origin() {
        let mut origins = Origins::default();
        let mut merged = Map::new();
        for (origin, document) in [
            ("a", json!({"x": {"y": 1, "z": 2}, "instructions": ["one"], "m": 1})),
            ("b", json!({"x": {"z": 3}, "instructions": ["one", "two"], "m": {"n": 1}})),
            ("c", json!({"x": {}, "m": 5})),
        ] {
            let Value::Object(document) = document else { panic!("an object") };
            origins.lay(&merged, &document, origin);
            crate::merge::lay(&mut merged, document);
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
