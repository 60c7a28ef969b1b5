//! Whether two JSON values have the same shape.
//!
//! Two values have the same shape if they are equal except for texts and counts that Codewright chooses
//! itself:
//!
//! - The texts at the keys of [`TEXTS`] may differ. A text contains white space; a string without white space
//!   is a name, and names must be equal.
//! - The numbers at the keys of [`COUNTS`] may differ: the lines and files that a turn changed.
//! - The lists at the keys of [`CHANGES`] may differ in length. Then each element of one must have the shape
//!   of an element of the other, except for the file it names. An empty list matches every list.
//! - `always` may be the patterns of a permission request where OpenCode covers everything.

use serde_json::Value;

use super::compare::is_same;

/// Keys of texts that the program writes: errors, outputs of calls and diffs.
const TEXTS: [&str; 5] = ["message", "error", "output", "patch", "diff"];

/// Keys of numbers that count the changes of a turn.
const COUNTS: [&str; 3] = ["additions", "deletions", "files"];

/// Keys of lists of the changes of a turn.
const CHANGES: [&str; 3] = ["diff", "diffs", "files"];

/// Whether two values have the same shape.
pub(super) fn is_alike(recorded: &Value, replayed: &Value) -> bool {
    at("", recorded, replayed)
}

fn at(key: &str, recorded: &Value, replayed: &Value) -> bool {
    match (recorded, replayed) {
        (Value::Object(a), Value::Object(b)) => {
            let is_ours = a.get("synthetic") == Some(&Value::Bool(true));
            let alike = |(name, a): (&String, &Value)| {
                // The text of a part is the model's or the user's, unless the part is synthetic.
                let as_key = if is_ours && name == "text" { TEXTS[0] } else { name };
                // "Always" for a file with secrets covers this file instead of every file.
                let is_narrower = name == "always"
                    && *a == serde_json::json!(["*"])
                    && b.get(name).is_some()
                    && b.get(name) == b.get("patterns");
                is_narrower || b.get(name).is_some_and(|b| at(as_key, a, b))
            };
            a.len() == b.len() && a.iter().all(alike)
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            a.iter().zip(b).all(|(a, b)| at(key, a, b))
        }
        (Value::Array(a), Value::Array(b)) => CHANGES.contains(&key) && is_list_alike(key, a, b),
        (Value::String(a), Value::String(b)) if is_text(a) && is_text(b) && TEXTS.contains(&key) => true,
        (Value::Number(_), Value::Number(_)) if COUNTS.contains(&key) => true,
        (a, b) => is_same(a, b),
    }
}

/// Whether two lists of changes with different lengths have the same shape.
fn is_list_alike(key: &str, a: &[Value], b: &[Value]) -> bool {
    let is_within = |one: &[Value], other: &[Value]| {
        one.iter().all(|element| other.iter().any(|candidate| is_alike_but_file(key, element, candidate)))
    };
    a.is_empty() || b.is_empty() || (is_within(a, b) && is_within(b, a))
}

/// Whether two elements have the same shape, apart from the name and the status of their file.
fn is_alike_but_file(key: &str, a: &Value, b: &Value) -> bool {
    let unnamed = |value: &Value| {
        // An element may be only the name of a file.
        let mut value = if value.is_string() { Value::String(String::new()) } else { value.clone() };
        for name in ["file", "status"] {
            if let Some(Value::String(text)) = value.get_mut(name) {
                text.clear();
            }
        }
        value
    };
    at(key, &unnamed(a), &unnamed(b))
}

/// Whether a string is a text and not a name.
fn is_text(text: &str) -> bool {
    text.contains(char::is_whitespace)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(a: Value, b: Value, expected: bool) {
        assert_eq!(is_alike(&a, &b), expected, "{a} {b}");
        assert_eq!(is_alike(&b, &a), expected, "{b} {a}");
    }

    #[test]
    fn texts_of_the_program_may_differ() {
        check(json!({"message": "It broke."}), json!({"message": "It is broken."}), true);
        check(
            json!({"synthetic": true, "text": "Go on."}),
            json!({"synthetic": true, "text": "Go ahead."}),
            true,
        );
    }

    #[test]
    fn texts_of_the_model_and_the_user_are_equal() {
        check(json!({"text": "Go on."}), json!({"text": "Go ahead."}), false);
        check(json!({"command": "echo one"}), json!({"command": "echo two"}), false);
    }

    #[test]
    fn names_are_equal() {
        check(json!({"error": "aborted"}), json!({"error": "stopped"}), false);
        check(json!({"message": "It broke."}), json!({"message": ""}), false);
        check(json!({"message": "It broke."}), json!({"message": null}), false);
    }

    #[test]
    fn keys_are_equal() {
        check(json!({"a": 1}), json!({"a": 1, "b": 2}), false);
        check(json!({"a": 1}), json!({"b": 1}), false);
    }

    #[test]
    fn only_counts_of_changes_may_differ() {
        check(json!({"additions": 0}), json!({"additions": 3}), true);
        check(json!({"exit": 0}), json!({"exit": 3}), false);
        check(json!({"additions": 0}), json!({"additions": "3"}), false);
    }

    #[test]
    fn only_lists_of_changes_may_have_different_lengths() {
        let one = json!({"file": "a", "additions": 1});
        let two = json!({"file": "b", "additions": 2});
        check(json!({"diff": []}), json!({"diff": [one]}), true);
        check(json!({"diff": [one]}), json!({"diff": [one, two]}), true);
        check(json!({"diff": [one]}), json!({"diff": [one, {"file": "b"}]}), false);
        check(json!({"files": ["a"]}), json!({"files": ["a", "b"]}), true);
        check(json!({"files": ["a", "b"]}), json!({"files": ["a", "c"]}), false);
        check(json!({"files": ["a"]}), json!({"files": ["a", 2]}), false);
        check(json!({"parts": []}), json!({"parts": [one]}), false);
    }
}
