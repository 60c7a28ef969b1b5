//! Validation of arguments against a tool's schema.
//!
//! It covers the part of JSON Schema that tools use: objects, arrays, strings, numbers with bounds, booleans, enums,
//! variants and references. Other keywords accept anything. The wording of a mismatch must stay, because models and
//! clients know it.

use serde_json::{Map, Value};

use crate::{Tool, ToolError};

/// The number of characters of an invalid value that are quoted.
const MAX_QUOTED_CHARS: usize = 200;
/// Limit of nesting. Deeper values are not checked.
const MAX_DEPTH: usize = 64;

/// Validates arguments, and corrects small mistakes.
///
/// Other spellings of a key are accepted (`file_path`, `FilePath` and `path` for `filePath`), `null` means that a value
/// is missing, an integer may have a fraction of zero, and a text may contain the list, object, number or flag that is
/// expected. An integer becomes the text that is expected, and a list with one object the object. A value is corrected
/// only if one correction fits. Keys that are not in the schema are kept.
///
/// # Errors
///
/// Returns the first mismatch and its path.
pub fn conform(tool: &str, schema: &Value, input: Value) -> Result<Value, ToolError> {
    checked(schema, input).map_err(|reason| mismatch(tool, &reason, None))
}

/// Returns the corrected value, or the mismatch and its place.
fn checked(schema: &Value, mut input: Value) -> Result<Value, String> {
    let mut check = Check { root: schema, at: Vec::new(), depth: 0 };
    match check.value(schema, &mut input) {
        Ok(()) => Ok(input),
        Err(reason) if check.at.is_empty() => Err(reason),
        Err(reason) => Err(format!("{reason}\n  at {}", check.at.iter().map(Step::text).collect::<String>())),
    }
}

/// Reports whether the arguments of a tool have variants, which not every provider can describe to a model. The
/// arguments of such a call are validated before it runs.
#[must_use]
pub fn has_variants(schema: &Value) -> bool {
    ["oneOf", "anyOf", "allOf"].iter().any(|word| schema.get(*word).is_some())
}

/// Validates the arguments of a built-in tool and deserializes them.
pub(crate) fn decode<T: Tool>(schema: &Value, mut input: Value) -> Result<T::Input, ToolError> {
    (T::FACTS.adapt)(T::NAME, &mut input);
    let decoded = checked(schema, input)
        .and_then(|input| serde_json::from_value(input).map_err(|error| error.to_string()));
    decoded.map_err(|reason| mismatch(T::NAME, &reason, T::FACTS.form))
}

/// Returns the error for the model. A tool whose arguments models often get wrong shows their form.
fn mismatch(tool: &str, reason: &str, form: Option<&str>) -> ToolError {
    let form = form.map_or_else(String::new, |form| format!("\nIts arguments have this form: {form}"));
    ToolError::Model(format!(
        "The {tool} tool was called with invalid arguments: SchemaError({reason}).\n\
         Please rewrite the input so it satisfies the expected schema.{form}"
    ))
}

enum Step {
    Key(String),
    Index(usize),
}

impl Step {
    fn text(&self) -> String {
        match self {
            Self::Key(key) => format!("[{}]", Value::from(key.as_str())),
            Self::Index(index) => format!("[{index}]"),
        }
    }
}

/// A validation. Small mistakes are corrected in place.
struct Check<'a> {
    /// The schema that references point into.
    root: &'a Value,
    at: Vec<Step>,
    /// The nesting, because schemas may refer to themselves.
    depth: usize,
}

impl<'a> Check<'a> {
    fn value(&mut self, schema: &'a Value, value: &mut Value) -> Result<(), String> {
        if self.depth > MAX_DEPTH {
            return Ok(());
        }
        self.depth += 1;
        let result = self.keywords(schema, value);
        self.depth -= 1;
        result
    }

    fn keywords(&mut self, schema: &'a Value, value: &mut Value) -> Result<(), String> {
        if let Some(target) = schema.get("$ref").and_then(Value::as_str).and_then(|to| to.strip_prefix('#'))
            && let Some(target) = self.root.pointer(target)
        {
            self.value(target, value)?;
        }
        for part in schema.get("allOf").and_then(Value::as_array).into_iter().flatten() {
            self.value(part, value)?;
        }
        if let Some(options) = schema.get("enum").and_then(Value::as_array) {
            return one_of(options, value);
        }
        if let Some(option) = schema.get("const") {
            return one_of(std::slice::from_ref(option), value);
        }
        match schema.get("type") {
            Some(Value::String(kind)) => self.kind(kind, schema, value)?,
            Some(Value::Array(kinds)) => self.one_kind(kinds, schema, value)?,
            Some(_) | None if schema.get("properties").is_some() && value.is_object() => {
                self.object(schema, value)?;
            }
            Some(_) | None => {}
        }
        for word in ["anyOf", "oneOf"] {
            if let Some(variants) = schema.get(word).and_then(Value::as_array) {
                self.variants(variants, value)?;
            }
        }
        Ok(())
    }

    fn kind(&mut self, kind: &str, schema: &'a Value, value: &mut Value) -> Result<(), String> {
        coerce(kind, value);
        match kind {
            "object" => self.object(schema, value),
            "array" => self.array(schema, value),
            "string" => expect(value.is_string(), "string", value),
            "boolean" => expect(value.is_boolean(), "boolean", value),
            "number" => expect(value.is_number(), "number", value).and_then(|()| bounds(schema, value)),
            "integer" => integer(schema, value),
            "null" => expect(value.is_null(), "null", value),
            _ => Ok(()),
        }
    }

    /// A value that has one of several types stays as it is. Text becomes the only one that it can be.
    fn one_kind(&mut self, kinds: &'a [Value], schema: &'a Value, value: &mut Value) -> Result<(), String> {
        let kinds: Vec<&str> = kinds.iter().filter_map(Value::as_str).collect();
        let own = kinds.iter().copied().find(|kind| has_kind(kind, value));
        if let Some(kind) = own {
            return self.kind(kind, schema, value);
        }
        let mut readings: Vec<Value> = Vec::new();
        for kind in &kinds {
            let mut reading = value.clone();
            coerce(kind, &mut reading);
            if has_kind(kind, &reading) && !readings.contains(&reading) {
                readings.push(reading);
            }
        }
        expect(readings.len() == 1, &kinds.join(" | "), value)?;
        *value = readings.swap_remove(0);
        let kind = kinds.into_iter().find(|kind| has_kind(kind, value)).unwrap_or_default();
        self.kind(kind, schema, value)
    }

    /// A value that fits a variant stays as it is. Otherwise it is corrected if only one correction fits.
    fn variants(&mut self, variants: &'a [Value], value: &mut Value) -> Result<(), String> {
        let (mut readings, mut reason): (Vec<Value>, Option<String>) = (Vec::new(), None);
        for variant in variants {
            let (mut reading, depth) = (value.clone(), self.at.len());
            match self.value(variant, &mut reading) {
                Ok(()) if reading == *value => return Ok(()),
                Ok(()) if readings.contains(&reading) => {}
                Ok(()) => readings.push(reading),
                Err(why) => reason = reason.or(Some(why)),
            }
            self.at.truncate(depth);
        }
        match readings.len() {
            0 => Err(reason.unwrap_or_else(|| format!("No variant fits {}", quoted(value)))),
            1 => {
                *value = readings.swap_remove(0);
                Ok(())
            }
            _ => Err(format!("Several variants could be meant by {}", quoted(value))),
        }
    }

    fn object(&mut self, schema: &'a Value, value: &mut Value) -> Result<(), String> {
        expect(value.is_object(), "object", value)?;
        let required: Vec<&str> = schema
            .get("required")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        let Some(fields) = value.as_object_mut() else { return Ok(()) };
        let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
            let missing = required.iter().any(|key| !fields.contains_key(*key));
            return if missing { Err("Missing key".to_owned()) } else { Ok(()) };
        };
        for (key, part) in properties {
            rename_spelling(fields, key, properties);
            let is_required = required.contains(&key.as_str());
            let is_missing = fields.get(key).is_some_and(|field| match field {
                Value::Null => !accepts_null(part),
                Value::String(text) => {
                    text.trim() == "null" && !accepts_null(part) && !self.accepts(part, field)
                }
                _ => false,
            });
            if !is_required && is_missing {
                fields.remove(key);
            }
            self.at.push(Step::Key(key.clone()));
            match fields.get_mut(key) {
                Some(field) => self.value(part, field)?,
                None if is_required => return Err("Missing key".to_owned()),
                None => {}
            }
            self.at.pop();
        }
        Ok(())
    }

    /// Returns an object in place of a list as the only item of the list, if it has all keys that an item needs.
    fn only_item(&mut self, items: &'a Value, value: &Value) -> Option<Value> {
        items.get("required").and_then(Value::as_array).filter(|required| !required.is_empty())?;
        let mut item = value.clone();
        coerce("object", &mut item);
        let depth = self.at.len();
        let fits = item.is_object() && self.value(items, &mut item).is_ok();
        // The path of a failure is that of the list.
        self.at.truncate(depth);
        fits.then_some(item)
    }

    /// Returns whether a value fits a schema, perhaps after a correction.
    fn accepts(&mut self, schema: &'a Value, value: &Value) -> bool {
        let depth = self.at.len();
        let accepts = self.value(schema, &mut value.clone()).is_ok();
        self.at.truncate(depth);
        accepts
    }

    fn array(&mut self, schema: &'a Value, value: &mut Value) -> Result<(), String> {
        let items = schema.get("items").filter(|items| items.is_object());
        if !value.is_array()
            && let Some(item) = items.and_then(|items| self.only_item(items, value))
        {
            *value = Value::Array(vec![item]);
            return Ok(());
        }
        expect(value.is_array(), "array", value)?;
        let Some(items) = items else { return Ok(()) };
        for (index, item) in value.as_array_mut().into_iter().flatten().enumerate() {
            self.at.push(Step::Index(index));
            self.value(items, item)?;
            self.at.pop();
        }
        Ok(())
    }
}

/// Returns whether a schema names `null` as a value.
fn accepts_null(schema: &Value) -> bool {
    let is_null = |kind: &Value| kind == "null";
    let of_type = match schema.get("type") {
        Some(Value::Array(kinds)) => kinds.iter().any(is_null),
        Some(kind) => is_null(kind),
        None => false,
    };
    let listed = schema.get("enum").and_then(Value::as_array).is_some_and(|list| list.contains(&Value::Null));
    let variants = ["anyOf", "oneOf"].iter().filter_map(|word| schema.get(*word)?.as_array()).flatten();
    of_type || listed || variants.into_iter().any(accepts_null)
}

fn has_kind(kind: &str, value: &Value) -> bool {
    match kind {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        "number" => value.is_number(),
        "null" => value.is_null(),
        _ => false,
    }
}

/// Replaces a text by the list, object, number or flag that it contains, if the schema wants that.
fn coerce(kind: &str, value: &mut Value) {
    match (kind, &mut *value) {
        ("string", Value::Number(number)) if !number.is_f64() => *value = number.to_string().into(),
        ("object", Value::Array(list)) if list.len() == 1 && list[0].is_object() => *value = list[0].take(),
        _ => {}
    }
    let Value::String(text) = value else { return };
    let read = match kind {
        "array" | "object" => match super::arguments::values(text) {
            Ok(values) => match <[Value; 1]>::try_from(values) {
                Ok([only]) => Some(only),
                Err(_) => None,
            },
            Err(_) => None,
        },
        "boolean" => match text.trim().to_ascii_lowercase().as_str() {
            "true" => Some(Value::Bool(true)),
            "false" => Some(Value::Bool(false)),
            _ => None,
        },
        "integer" | "number" => serde_json::from_str(text.trim()).ok(),
        _ => None,
    };
    if let Some(read) = read.filter(|read| has_kind(kind, read)) {
        *value = read;
    }
}

fn expect(holds: bool, what: &str, value: &Value) -> Result<(), String> {
    if holds { Ok(()) } else { Err(format!("Expected {what}, got {}", quoted(value))) }
}

fn quoted(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(MAX_QUOTED_CHARS) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}

/// A text in another case is the only option that it can be. A text of another type is read.
fn one_of(options: &[Value], value: &mut Value) -> Result<(), String> {
    if options.contains(value) {
        return Ok(());
    }
    if let Some(text) = value.as_str().map(str::trim) {
        let is_meant = |option: &&Value| match option {
            Value::String(option) => option.eq_ignore_ascii_case(text),
            Value::Number(_) | Value::Bool(_) => option.to_string().eq_ignore_ascii_case(text),
            Value::Null | Value::Array(_) | Value::Object(_) => false,
        };
        let mut meant = options.iter().filter(is_meant);
        if let (Some(option), None) = (meant.next(), meant.next()) {
            *value = option.clone();
            return Ok(());
        }
    }
    let names: Vec<String> = options.iter().map(Value::to_string).collect();
    expect(false, &names.join(" | "), value)
}

/// Renames a key that is written in another way than its property, if only one key can be meant.
fn rename_spelling(fields: &mut Map<String, Value>, key: &str, properties: &Map<String, Value>) {
    if fields.contains_key(key) {
        return;
    }
    let plain = if key == "filePath" { Some("path") } else { None };
    let is_similar = |name: &&String| !properties.contains_key(*name) && plainly(name) == plainly(key);
    let mut similar = fields.keys().filter(is_similar);
    let spelling = match (similar.next(), similar.next()) {
        (Some(name), None) => Some(name.clone()),
        (Some(_), Some(_)) => None,
        (None, _) => plain
            .filter(|name| fields.contains_key(*name) && !properties.contains_key(*name))
            .map(str::to_owned),
    };
    let is_unique = properties.keys().filter(|name| plainly(name) == plainly(key)).count() == 1;
    if let Some(value) = spelling.filter(|_| is_unique).and_then(|spelling| fields.remove(&spelling)) {
        fields.insert(key.to_owned(), value);
    }
}

/// Returns a name without case and separators.
fn plainly(name: &str) -> String {
    name.chars().filter(|c| !matches!(c, '_' | '-')).map(|c| c.to_ascii_lowercase()).collect()
}

fn integer(schema: &Value, value: &mut Value) -> Result<(), String> {
    expect(value.is_number(), "number", value)?;
    bounds(schema, value)?;
    if value.is_f64() {
        let number = value.as_f64().filter(|number| number.fract() == 0.0 && number.abs() < 9e15);
        let Some(number) = number else {
            return Err(format!("Expected an integer, got {}", quoted(value)));
        };
        #[expect(clippy::cast_possible_truncation, reason = "an integer and small, checked above")]
        let number = number as i64;
        *value = number.into();
    }
    Ok(())
}

fn bounds(schema: &Value, value: &Value) -> Result<(), String> {
    let Some(number) = value.as_f64() else { return Ok(()) };
    type Holds = fn(&f64, &f64) -> bool;
    let rules: [(&str, Holds, &str); 3] = [
        ("exclusiveMinimum", f64::gt, "greater than"),
        ("minimum", f64::ge, "greater than or equal to"),
        ("maximum", f64::le, "less than or equal to"),
    ];
    for (key, holds, words) in rules {
        if let Some(bound) = schema.get(key)
            && bound.as_f64().is_some_and(|bound| !holds(&number, &bound))
        {
            return Err(format!("Expected a value {words} {bound}, got {}", quoted(value)));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn schema() -> Value {
        json!({
            "type": "object",
            "properties": {
                "filePath": {"type": "string"},
                "offset": {"minimum": 0, "type": "integer", "maximum": 100},
                "timeout": {"exclusiveMinimum": 0, "type": "integer"},
                "mode": {"type": "string", "enum": ["a", "b"]},
                "todos": {"type": "array", "items": {
                    "type": "object", "properties": {"content": {"type": "string"}}, "required": ["content"],
                }},
            },
            "required": ["filePath"],
        })
    }

    #[test]
    fn a_mismatch_is_reported_with_its_path() {
        let cases = [
            (json!({"file": "x"}), "Missing key\n  at [\"filePath\"]"),
            (json!({"filePath": 5.5}), "Expected string, got 5.5\n  at [\"filePath\"]"),
            (json!({"filePath": true}), "Expected string, got true\n  at [\"filePath\"]"),
            (
                json!([{"filePath": "x"}, {"filePath": "y"}]),
                "Expected object, got [{\"filePath\":\"x\"},{\"filePath\":\"y\"}]",
            ),
            (json!({"filePath": null}), "Expected string, got null\n  at [\"filePath\"]"),
            (
                json!({"filePath": "x", "offset": -1}),
                "Expected a value greater than or equal to 0, got -1\n  at [\"offset\"]",
            ),
            (json!({"filePath": "x", "offset": 1.5}), "Expected an integer, got 1.5\n  at [\"offset\"]"),
            (
                json!({"filePath": "x", "offset": "three"}),
                "Expected number, got \"three\"\n  at [\"offset\"]",
            ),
            (
                json!({"filePath": "x", "offset": "300"}),
                "Expected a value less than or equal to 100, got 300\n  at [\"offset\"]",
            ),
            (json!({"filePath": "x", "todos": "none"}), "Expected array, got \"none\"\n  at [\"todos\"]"),
            (
                json!({"filePath": "x", "todos": {"text": "y"}}),
                "Expected array, got {\"text\":\"y\"}\n  at [\"todos\"]",
            ),
            (json!({"filePath": "x", "todos": "{}"}), "Expected array, got \"{}\"\n  at [\"todos\"]"),
            (
                json!({"filePath": "x", "timeout": 0}),
                "Expected a value greater than 0, got 0\n  at [\"timeout\"]",
            ),
            (json!({"filePath": "x", "mode": "c"}), "Expected \"a\" | \"b\", got \"c\"\n  at [\"mode\"]"),
            (json!({"filePath": "x", "todos": [{}]}), "Missing key\n  at [\"todos\"][0][\"content\"]"),
            (json!("x"), "Expected object, got \"x\""),
        ];
        for (input, reason) in cases {
            let error = conform("read", &schema(), input).expect_err(reason);
            let expected = format!(
                "The read tool was called with invalid arguments: SchemaError({reason}).\n\
                 Please rewrite the input so it satisfies the expected schema."
            );
            assert_eq!(error.to_string(), expected);
        }
    }

    #[test]
    fn small_mistakes_are_corrected() {
        let cases = [
            (json!({"filePath": "x", "extra": 1}), json!({"filePath": "x", "extra": 1})),
            (json!({"file_path": "x"}), json!({"filePath": "x"})),
            (json!({"path": "x"}), json!({"filePath": "x"})),
            (json!({"filePath": "x", "offset": null}), json!({"filePath": "x"})),
            (json!({"filePath": "x", "offset": 3.0}), json!({"filePath": "x", "offset": 3})),
            (json!({"filePath": "x", "offset": " 3"}), json!({"filePath": "x", "offset": 3})),
            (json!({"FILE_PATH": "x"}), json!({"filePath": "x"})),
            (json!({"filePath": "x", "mode": "A"}), json!({"filePath": "x", "mode": "a"})),
            (
                json!({"filePath": "x", "todos": "[{\"content\": \"y\",}]"}),
                json!({"filePath": "x", "todos": [{"content": "y"}]}),
            ),
            (
                json!({"filePath": "x", "todos": ["{\"Content\": \"y\"}"]}),
                json!({"filePath": "x", "todos": [{"content": "y"}]}),
            ),
            (
                json!({"filePath": "x", "todos": {"content": "y"}}),
                json!({"filePath": "x", "todos": [{"content": "y"}]}),
            ),
            (
                json!({"filePath": "x", "todos": "{\"content\": \"y\"}"}),
                json!({"filePath": "x", "todos": [{"content": "y"}]}),
            ),
            (json!("{\"filePath\": \"x\"}"), json!({"filePath": "x"})),
            (json!({"filePath": 5}), json!({"filePath": "5"})),
            (json!({"filePath": "x", "offset": "null"}), json!({"filePath": "x"})),
            (json!({"filePath": "null"}), json!({"filePath": "null"})),
            (json!([{"filePath": "x"}]), json!({"filePath": "x"})),
        ];
        for (input, expected) in cases {
            assert_eq!(conform("read", &schema(), input).expect("fits"), expected);
        }
    }

    #[test]
    fn schemas_of_servers_are_understood() {
        let text = json!({"type": "string"});
        for (schema, input, expected) in [
            (json!({"type": ["integer", "null"]}), json!("3"), Some(json!(3))),
            (json!({"type": ["string", "integer"]}), json!("3"), Some(json!("3"))),
            (json!({"type": ["integer", "boolean"]}), json!("true"), Some(json!(true))),
            (json!({"type": "boolean"}), json!("False"), Some(json!(false))),
            (json!({"anyOf": [text, {"type": "array"}]}), json!("[1]"), Some(json!("[1]"))),
            (json!({"anyOf": [{"type": "array"}, {"type": "null"}]}), json!("[1]"), Some(json!([1]))),
            (json!({"oneOf": [{"type": "integer"}, {"type": "boolean"}]}), json!("x"), None),
            (
                json!({"$ref": "#/$defs/n", "$defs": {"n": {"type": "number"}}}),
                json!("1.5"),
                Some(json!(1.5)),
            ),
            (json!({"$ref": "#"}), json!(1), Some(json!(1))),
            (
                json!({"type": "object", "properties": {"userId": {}, "user_id": {}}}),
                json!({"USERID": 1}),
                Some(json!({"USERID": 1})),
            ),
            (
                json!({"type": "object", "properties": {"a": {"type": ["string", "null"]}}}),
                json!({"a": null}),
                Some(json!({"a": null})),
            ),
            (json!({"enum": [1, 2]}), json!("2"), Some(json!(2))),
            (json!({"const": "x"}), json!("X"), Some(json!("x"))),
            (json!(true), json!("x"), Some(json!("x"))),
        ] {
            assert_eq!(conform("t", &schema, input.clone()).ok(), expected, "{schema} {input}");
        }
        let variant = |key: &str| json!({"type": "object", "properties": {key: text}, "required": [key]});
        let schema = json!({"type": "object", "oneOf": [variant("content"), variant("url")]});
        assert!(has_variants(&schema));
        assert!(conform("t", &schema, json!({"url": "u"})).is_ok());
        assert_eq!(conform("t", &schema, json!({"URL": "u"})).unwrap(), json!({"url": "u"}));
        assert!(conform("t", &schema, json!({"other": "u"})).is_err());
    }

    #[test]
    fn a_mismatch_shows_the_form_of_nested_arguments() {
        let error = decode::<crate::Batch>(&crate::Batch.parameters(), json!({"calls": []})).unwrap_err();
        let text = error.to_string();
        assert!(text.starts_with("The batch tool was called with invalid arguments: SchemaError("), "{text}");
        assert!(text.contains("\nIts arguments have this form: {\"tool_calls\": ["), "{text}");
        let error = decode::<crate::Read>(&crate::Read.parameters(), json!({})).unwrap_err();
        assert!(!error.to_string().contains("this form"), "{error}");
    }
}
