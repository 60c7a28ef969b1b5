//! What is wrong with a request, in words.

use serde_json::Value;

/// More problems than this are of no use to the reader.
const PROBLEMS_LIMIT: usize = 20;

/// The faults found so far, each a sentence that names its place.
#[derive(Debug, Default)]
pub(crate) struct Problems(Vec<String>);

impl Problems {
    /// Notes a fault.
    pub(crate) fn add(&mut self, problem: impl Into<String>) {
        if self.0.len() < PROBLEMS_LIMIT {
            self.0.push(problem.into());
        }
    }

    /// The string at `value`, or a problem if there is none or it is empty.
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

    /// The list at `value`, or a problem if there is none or it is empty.
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

/// Puts `value` at `pointer` of a body; a null removes what is there.
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
