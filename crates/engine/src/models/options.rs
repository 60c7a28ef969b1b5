//! Merging the options of providers and models.

use codewright_config::Ordered;
use serde_json::{Map, Value};

/// Merges `over` into `under`: objects are merged, any other value replaces.
pub(crate) fn merge(under: &mut Map<String, Value>, over: &Map<String, Value>) {
    for (name, value) in over {
        match (under.get_mut(name), value) {
            (Some(Value::Object(under)), Value::Object(over)) => merge(under, over),
            (Some(existing), value) => *existing = value.clone(),
            (None, value) => drop(under.insert(name.clone(), value.clone())),
        }
    }
}

pub(super) fn pairs(headers: &Ordered<String>) -> Vec<(String, String)> {
    headers.iter().map(|(name, value)| (name.to_owned(), value.clone())).collect()
}
