//! When two values have the same shape.
//!
//! Same shape means: the same keys with values of the same JSON types all the way down, the same
//! booleans, nulls, numbers, names, states, tools, reasons and texts. It leaves free only what the
//! program says by design in its own way:
//!
//! - texts at the keys of [`WORDS`]: a text has white space; a string without is a name, and names
//!   are equal everywhere;
//! - numbers at the keys of [`COUNTS`]: lines and files that a turn changed;
//! - how many elements the lists of [`CHANGES`] have: of two that are not equally long, every
//!   element of each has the shape of one of the other, whichever file it is about; an empty one
//!   says nothing.

use serde_json::Value;

use super::compare::is_same;

/// Where the program speaks: errors, what calls gave, differences of files.
const WORDS: [&str; 5] = ["message", "error", "output", "patch", "diff"];

/// Where the program counts what a turn changed.
const COUNTS: [&str; 3] = ["additions", "deletions", "files"];

/// Where the program lists what a turn changed.
const CHANGES: [&str; 3] = ["diff", "diffs", "files"];

/// Whether two values have the same shape.
pub(super) fn is_alike(there: &Value, here: &Value) -> bool {
    at("", there, here)
}

fn at(key: &str, there: &Value, here: &Value) -> bool {
    match (there, here) {
        (Value::Object(a), Value::Object(b)) => {
            let is_ours = a.get("synthetic") == Some(&Value::Bool(true));
            let alike = |(name, a): (&String, &Value)| {
                // What a part says is the model's or the user's, unless it is marked as the program's.
                let as_key = if is_ours && name == "text" { WORDS[0] } else { name };
                b.get(name).is_some_and(|b| at(as_key, a, b))
            };
            a.len() == b.len() && a.iter().all(alike)
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            a.iter().zip(b).all(|(a, b)| at(key, a, b))
        }
        (Value::Array(a), Value::Array(b)) => CHANGES.contains(&key) && is_list_alike(key, a, b),
        (Value::String(a), Value::String(b)) if is_text(a) && is_text(b) && WORDS.contains(&key) => true,
        (Value::Number(_), Value::Number(_)) if COUNTS.contains(&key) => true,
        (a, b) => is_same(a, b),
    }
}

/// Two lists of what a turn changed that are not equally long.
fn is_list_alike(key: &str, a: &[Value], b: &[Value]) -> bool {
    let is_held = |one: &[Value], other: &[Value]| {
        one.iter().all(|element| other.iter().any(|known| is_named_alike(key, element, known)))
    };
    a.is_empty() || b.is_empty() || (is_held(a, b) && is_held(b, a))
}

/// Which file an element speaks of does not count here, nor what became of the file.
fn is_named_alike(key: &str, a: &Value, b: &Value) -> bool {
    let unnamed = |value: &Value| {
        // A list of files may hold nothing but their names.
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

/// Whether something is said, and not only named.
fn is_text(text: &str) -> bool {
    text.contains(char::is_whitespace)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(there: Value, here: Value, expected: bool) {
        assert_eq!(is_alike(&there, &here), expected, "{there} {here}");
        assert_eq!(is_alike(&here, &there), expected, "{here} {there}");
    }

    #[test]
    fn the_program_may_speak_in_words_of_its_own() {
        check(json!({"message": "It broke."}), json!({"message": "It is broken."}), true);
        check(
            json!({"synthetic": true, "text": "Go on."}),
            json!({"synthetic": true, "text": "Go ahead."}),
            true,
        );
    }

    #[test]
    fn what_others_say_is_the_same() {
        check(json!({"text": "Go on."}), json!({"text": "Go ahead."}), false);
        check(json!({"command": "echo one"}), json!({"command": "echo two"}), false);
    }

    #[test]
    fn a_name_is_the_same_everywhere() {
        check(json!({"error": "aborted"}), json!({"error": "stopped"}), false);
        check(json!({"message": "It broke."}), json!({"message": ""}), false);
        check(json!({"message": "It broke."}), json!({"message": null}), false);
    }

    #[test]
    fn keys_are_the_same() {
        check(json!({"a": 1}), json!({"a": 1, "b": 2}), false);
        check(json!({"a": 1}), json!({"b": 1}), false);
    }

    #[test]
    fn only_what_a_turn_changed_may_be_counted_otherwise() {
        check(json!({"additions": 0}), json!({"additions": 3}), true);
        check(json!({"exit": 0}), json!({"exit": 3}), false);
        check(json!({"additions": 0}), json!({"additions": "3"}), false);
    }

    #[test]
    fn only_what_a_turn_changed_may_be_a_longer_list() {
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
