//! Rules that several protocols share.

use serde_json::Value;

use super::{Problems, is_tool_name};

/// Limit of the tools of a request for OpenAI.
pub(crate) const TOOLS_LIMIT: usize = 128;

/// The names of a request's tools, which must be valid and unique.
pub(crate) struct ToolNames<'a> {
    limit_bytes: usize,
    names: Vec<&'a str>,
}

impl<'a> ToolNames<'a> {
    /// Starts an empty list for names of at most `limit_bytes`.
    pub(crate) fn new(limit_bytes: usize) -> Self {
        Self { limit_bytes, names: Vec::new() }
    }

    /// Checks the name of the tool `at`.
    pub(crate) fn check(&mut self, at: &str, name: &'a Value, problems: &mut Problems) {
        let Some(name) = problems.text(&format!("the name of {at}"), name) else { return };
        let limit = self.limit_bytes;
        if !is_tool_name(name, limit) {
            problems.add(format!("the name of {at}, `{name}`, is not 1 to {limit} of `a-zA-Z0-9_-`"));
        }
        if self.names.contains(&name) {
            problems.add(format!("{at} has the name `{name}` a second time"));
        }
        self.names.push(name);
    }
}

/// Checks a list of tools of type `function`, in the format of Chat Completions.
pub(crate) fn function_tools(tools: &Value, limit_bytes: usize, problems: &mut Problems) {
    if tools.is_null() {
        return;
    }
    let mut names = ToolNames::new(limit_bytes);
    let tools = problems.list("`tools`", tools).unwrap_or_default();
    if tools.len() > TOOLS_LIMIT {
        problems.add(format!("there are {} tools, and at most {TOOLS_LIMIT} are allowed", tools.len()));
    }
    for (n, tool) in tools.iter().enumerate() {
        let at = format!("`tools[{n}]`");
        plain_top(&at, &tool["function"]["parameters"], problems);
        items(&at, &tool["function"]["parameters"], problems);
        if tool["type"] != "function" {
            problems.add(format!("{at} is not of type `function`"));
        }
        let function = &tool["function"];
        names.check(&at, &function["name"], problems);
        if function["parameters"]["type"] != "object" {
            problems.add(format!("the parameters of {at} are not a schema of type `object`"));
        }
    }
}

/// Adds the id of the call `at` to `ids`, in which it must be unique.
pub(crate) fn call_id<'a>(at: &str, id: &'a Value, ids: &mut Vec<&'a str>, problems: &mut Problems) {
    let Some(id) = problems.text(&format!("the id of {at}"), id) else { return };
    if ids.contains(&id) {
        problems.add(format!("{at} has the id `{id}` a second time"));
    }
    ids.push(id);
}

/// Checks the arguments of the call `at`: text that is a JSON object.
pub(crate) fn arguments(at: &str, arguments: &Value, problems: &mut Problems) {
    let Value::String(text) = arguments else {
        problems.add(format!("the arguments of {at} are not a string"));
        return;
    };
    match serde_json::from_str(text) {
        Ok(Value::Object(_)) => {}
        Ok(_) => problems.add(format!("the arguments of {at} are not a JSON object")),
        Err(error) => problems.add(format!("the arguments of {at} are not JSON: {error}")),
    }
}

/// Checks that a schema has no variants at its top, which several providers reject.
pub(crate) fn plain_top(at: &str, schema: &Value, problems: &mut Problems) {
    for word in ["oneOf", "anyOf", "allOf", "not", "enum", "$ref"] {
        if schema.get(word).is_some() {
            problems.add(format!("the schema of {at} has `{word}` at the top"));
        }
    }
}

/// Checks that every list in a schema describes its items by one schema.
pub(crate) fn items(at: &str, schema: &Value, problems: &mut Problems) {
    match schema {
        Value::Object(fields) => {
            let is_schema = fields.get("type").is_some_and(Value::is_string);
            if is_schema
                && schema["type"] == "array"
                && !(schema["items"].is_object() || schema["items"].is_boolean())
            {
                problems.add(format!("a list in the schema of {at} has no `items`"));
            }
            let data = ["enum", "const", "default", "examples"];
            fields
                .iter()
                .filter(|(word, _)| !data.contains(&word.as_str()))
                .for_each(|(_, value)| items(at, value, problems));
        }
        Value::Array(list) => list.iter().for_each(|value| items(at, value, problems)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The roles of a conversation between `user` and `assistant`, which must alternate and begin
/// with the user.
#[derive(Default)]
pub(crate) struct Roles<'a> {
    before: &'a str,
}

impl<'a> Roles<'a> {
    /// Returns the role of message `n`, or `None` if it has no valid one.
    pub(crate) fn next(&mut self, n: usize, message: &'a Value, problems: &mut Problems) -> Option<&'a str> {
        let at = format!("`messages[{n}]`");
        let role = match message["role"].as_str() {
            Some(role @ ("user" | "assistant")) => role,
            Some(role) => {
                problems.add(format!("{at} has the unknown role `{role}`"));
                return None;
            }
            None => {
                problems.add(format!("{at} has no role"));
                return None;
            }
        };
        if n == 0 && role != "user" {
            problems.add("`messages[0]` is not the user's");
        }
        if role == self.before {
            problems.add(format!("{at} has the role `{role}` a second time in a row"));
        }
        self.before = role;
        Some(role)
    }
}
