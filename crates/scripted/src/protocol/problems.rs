//! The problems of a request.

use serde_json::Value;

/// Limit of the problems that are collected.
const PROBLEMS_LIMIT: usize = 20;

/// The problems so far. Each is a sentence that names its location.
#[derive(Debug, Default)]
pub(crate) struct Problems(Vec<String>);

impl Problems {
    /// Adds a problem.
    pub(crate) fn add(&mut self, problem: impl Into<String>) {
        if self.0.len() < PROBLEMS_LIMIT {
            self.0.push(problem.into());
        }
    }

    /// Returns the string in `value`. Adds a problem if it is missing or empty.
    pub(crate) fn text<'a>(&mut self, at: &str, value: &'a Value) -> Option<&'a str> {
        match value {
            Value::String(text) if !text.is_empty() => return Some(text),
            Value::String(_) => self.add(format!("{at} is empty")),
            Value::Null => self.add(format!("{at} is missing")),
            Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
                self.add(format!("{at} is not a string"));
            }
        }
        None
    }

    /// Returns the list in `value`. Adds a problem if it is missing or empty.
    pub(crate) fn list<'a>(&mut self, at: &str, value: &'a Value) -> Option<&'a [Value]> {
        match value {
            Value::Array(list) if !list.is_empty() => return Some(list),
            Value::Array(_) => self.add(format!("{at} is empty")),
            Value::Null => self.add(format!("{at} is missing")),
            Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
                self.add(format!("{at} is not a list"));
            }
        }
        None
    }

    pub(crate) fn into_list(self) -> Vec<String> {
        self.0
    }
}

/// Puts `value` at `pointer` of a body; `null` removes the old value.
#[cfg(test)]
pub(super) fn change(body: &mut Value, pointer: &str, value: Value) {
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    match (body.pointer_mut(parent).unwrap(), value) {
        (Value::Array(list), Value::Null) => drop(list.remove(key.parse().unwrap())),
        (Value::Object(map), Value::Null) => drop(map.remove(key)),
        (parent @ Value::Object(_), value) => parent[key] = value,
        (parent, value) => parent[key.parse::<usize>().unwrap()] = value,
    }
}
