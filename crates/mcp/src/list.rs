//! The lists that a server offers, read leniently: an entry that is not as the protocol requires is left out and
//! reported, and the others are used.

use serde_json::{Map, Value, json};

use crate::error::cut;

/// The limit of entries in a list of a server.
pub(crate) const MAX_ENTRIES: usize = 2000;
/// The limit for the size of the schemas and descriptions of a server.
const MAX_SCHEMA_BYTES: usize = 8 * 1024 * 1024;
/// The longest description of a tool, prompt or resource.
const MAX_DESCRIPTION_BYTES: usize = 64 * 1024;
/// The longest name or address.
const MAX_NAME_BYTES: usize = 4096;
/// The entries that a warning names.
const MAX_NAMED: usize = 5;
/// The deepest schema that is offered to models.
const MAX_DEPTH: usize = 64;

/// A tool of a server.
#[derive(Debug, Clone, PartialEq)]
pub struct Tool {
    /// The server's name for it.
    pub name: String,
    pub description: String,
    /// The JSON schema of its arguments, which is always one of an object.
    pub parameters: Value,
    /// Whether the server says that it changes nothing.
    pub is_read_only: bool,
    /// The size of the description and the schema.
    pub bytes: usize,
}

/// A prompt of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompt {
    pub name: String,
    pub description: Option<String>,
    pub arguments: Vec<PromptArgument>,
}

/// An argument of a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptArgument {
    pub name: String,
    pub is_required: bool,
}

/// A resource of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resource {
    pub uri: String,
    pub name: String,
    pub description: Option<String>,
    pub mime: Option<String>,
}

/// A resource with variables in its address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    pub uri: String,
    pub name: String,
    pub description: Option<String>,
    pub mime: Option<String>,
}

/// Entries and a warning about those that were left out.
pub(crate) struct Read<T> {
    pub(crate) entries: Vec<T>,
    pub(crate) warning: Option<String>,
}

fn read<T>(
    values: &[Value],
    what: &str,
    parse: impl Fn(&Map<String, Value>) -> Result<T, String>,
) -> Read<T> {
    let mut entries = Vec::new();
    let mut left_out = Vec::new();
    for value in values.iter().take(MAX_ENTRIES) {
        let parsed = value.as_object().ok_or_else(|| "it is not an object".to_owned()).and_then(&parse);
        match parsed {
            Ok(entry) => entries.push(entry),
            Err(reason) => {
                let name = value.get("name").and_then(Value::as_str).unwrap_or_default();
                left_out.push((name, reason));
            }
        }
    }
    let mut warning = describe(&left_out, what);
    if values.len() > MAX_ENTRIES {
        warning =
            Some(format!("The server offers more than {MAX_ENTRIES} {what}s; the others are left out."));
    }
    Read { entries, warning }
}

/// Describes the entries that are left out.
fn describe(left_out: &[(&str, String)], what: &str) -> Option<String> {
    if left_out.is_empty() {
        return None;
    }
    let named = left_out.iter().take(MAX_NAMED);
    let named =
        named.map(|(name, reason)| format!("The server's {what} `{}` is left out: {reason}.", cut(name)));
    let more = left_out.len().saturating_sub(MAX_NAMED);
    let more = (more > 0).then(|| format!("{more} more are left out."));
    Some(named.chain(more).collect::<Vec<_>>().join(" "))
}

/// Reads tools. Their texts for the model pass through `clean`.
pub(crate) fn tools(values: &[Value], clean: &dyn Fn(&str) -> String) -> Read<Tool> {
    let mut left = MAX_SCHEMA_BYTES;
    let mut read = read(values, "tool", |entry| tool(entry, clean));
    let count = read.entries.len();
    read.entries.retain(|tool| {
        let fits = tool.bytes <= left;
        left = left.saturating_sub(tool.bytes);
        fits
    });
    if read.entries.len() < count {
        read.warning = Some("The schemas of the server's tools are too large; some are left out.".to_owned());
    }
    read
}

fn tool(entry: &Map<String, Value>, clean: &dyn Fn(&str) -> String) -> Result<Tool, String> {
    let name = text(entry, "name")?.ok_or("it has no name")?;
    let description = text(entry, "description")?;
    let title = entry.get("title").and_then(Value::as_str).map(str::to_owned);
    let hint = entry.get("annotations").and_then(|hints| hints.get("readOnlyHint"));
    let description = description.or(title).map(|text| clean(&visible(&text))).unwrap_or_default();
    let mut parameters = parameters(entry.get("inputSchema"))?;
    clean_texts(&mut parameters, clean);
    Ok(Tool {
        bytes: description.len() + parameters.to_string().len(),
        name,
        description,
        parameters,
        is_read_only: hint == Some(&Value::Bool(true)),
    })
}

/// A text without control characters and those that change the direction of text. The ends of lines stay.
fn visible(text: &str) -> String {
    let is_hidden = |c: char| {
        (c.is_control() && !matches!(c, '\n' | '\r' | '\t'))
            || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    text.chars().map(|c| if is_hidden(c) { ' ' } else { c }).collect()
}

/// Cleans the descriptions in a schema, whose depth was checked. Names and values stay, because calls contain them.
fn clean_texts(schema: &mut Value, clean: &dyn Fn(&str) -> String) {
    match schema {
        Value::Array(list) => list.iter_mut().for_each(|value| clean_texts(value, clean)),
        Value::Object(map) => {
            for (key, value) in map.iter_mut() {
                match value {
                    Value::String(text) if matches!(key.as_str(), "description" | "title" | "$comment") => {
                        *text = clean(&visible(text));
                    }
                    value => clean_texts(value, clean),
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The schema of an object, as providers require it.
fn parameters(schema: Option<&Value>) -> Result<Value, String> {
    let empty = Map::new();
    let schema = match schema {
        // `true` accepts anything.
        None | Some(Value::Null | Value::Bool(true)) => &empty,
        Some(Value::Object(schema)) => schema,
        Some(_) => return Err("its `inputSchema` is not a JSON schema".to_owned()),
    };
    let is_object = match schema.get("type") {
        None | Some(Value::Null) => true,
        Some(kind) => kind.as_str().is_some_and(|kind| kind.eq_ignore_ascii_case("object")),
    };
    if !is_object {
        return Err("its `inputSchema` is not the schema of an object".to_owned());
    }
    if !matches!(schema.get("properties"), None | Some(Value::Object(_))) {
        return Err("the `properties` of its `inputSchema` are not an object".to_owned());
    }
    if schema.values().any(|value| depth(value, MAX_DEPTH) == 0) {
        return Err(format!("its `inputSchema` is nested more than {MAX_DEPTH} times"));
    }
    let mut ordered = Map::new();
    ordered.insert("type".to_owned(), "object".into());
    ordered.insert("properties".to_owned(), schema.get("properties").cloned().unwrap_or_else(|| json!({})));
    let is_list = |value: &&Value| value.as_array().is_some_and(|list| list.iter().all(Value::is_string));
    if let Some(required) = schema.get("required").filter(is_list) {
        ordered.insert("required".to_owned(), required.clone());
    }
    for (key, value) in schema {
        if !matches!(key.as_str(), "type" | "properties" | "required" | "additionalProperties") {
            ordered.insert(key.clone(), value.clone());
        }
    }
    ordered.insert("additionalProperties".to_owned(), false.into());
    Ok(Value::Object(ordered))
}

/// The levels that are left below a value, 0 if it is deeper.
fn depth(value: &Value, left: usize) -> usize {
    if left == 0 {
        return 0;
    }
    match value {
        Value::Array(list) => list.iter().map(|value| depth(value, left - 1)).min().unwrap_or(left),
        Value::Object(map) => map.values().map(|value| depth(value, left - 1)).min().unwrap_or(left),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => left,
    }
}

pub(crate) fn prompts(values: &[Value]) -> Read<Prompt> {
    read(values, "prompt", |entry| {
        let name = text(entry, "name")?.ok_or("it has no name")?;
        let arguments = entry.get("arguments").and_then(Value::as_array).into_iter().flatten();
        let arguments = arguments.filter_map(|argument| {
            let name = argument.get("name")?.as_str()?.to_owned();
            Some(PromptArgument { name, is_required: argument.get("required") == Some(&Value::Bool(true)) })
        });
        Ok(Prompt {
            name,
            description: text(entry, "description")?,
            arguments: arguments.take(100).collect(),
        })
    })
}

pub(crate) fn resources(values: &[Value]) -> Read<Resource> {
    read(values, "resource", |entry| {
        let uri = text(entry, "uri")?.ok_or("it has no `uri`")?;
        let name = text(entry, "name")?.unwrap_or_else(|| uri.clone());
        Ok(Resource { uri, name, description: text(entry, "description")?, mime: text(entry, "mimeType")? })
    })
}

pub(crate) fn templates(values: &[Value]) -> Read<Template> {
    read(values, "resource template", |entry| {
        let uri = text(entry, "uriTemplate")?.ok_or("it has no `uriTemplate`")?;
        let name = text(entry, "name")?.unwrap_or_else(|| uri.clone());
        Ok(Template { uri, name, description: text(entry, "description")?, mime: text(entry, "mimeType")? })
    })
}

fn text(entry: &Map<String, Value>, key: &str) -> Result<Option<String>, String> {
    match entry.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) if key == "description" => {
            Ok(Some(text[..text.floor_char_boundary(MAX_DESCRIPTION_BYTES)].to_owned()))
        }
        Some(Value::String(text)) if text.len() > MAX_NAME_BYTES => Err(format!("its `{key}` is too long")),
        Some(Value::String(text)) if text.is_empty() && key == "name" => Err("it has no name".to_owned()),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(format!("its `{key}` is not a text")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tools(values: &[Value]) -> Read<Tool> {
        super::tools(values, &str::to_owned)
    }

    #[test]
    fn texts_for_the_model_are_cleaned() {
        let clean = |text: &str| text.replace('<', "‹");
        let read = super::tools(
            &[json!({"name": "x", "description": "a<b\u{202e}\u{1b}c\nd", "inputSchema": {"properties": {
                "description": {"description": "<s>", "enum": ["<"]}}}})],
            &clean,
        );
        let tool = &read.entries[0];
        assert_eq!(tool.description, "a‹b  c\nd");
        let expected = json!({"description": {"description": "‹s>", "enum": ["<"]}});
        assert_eq!(tool.parameters["properties"], expected);
    }

    #[test]
    fn a_schema_gets_the_recorded_form() {
        let read = tools(&[json!({"name": "echo", "description": "Echoes", "inputSchema": {
            "$schema": "http://json-schema.org/draft-07/schema#", "type": "object",
            "properties": {"message": {"type": "string"}}, "required": ["message"]}})]);
        let text = read.entries[0].parameters.to_string();
        assert_eq!(
            text,
            r#"{"type":"object","properties":{"message":{"type":"string"}},"required":["message"],"$schema":"http://json-schema.org/draft-07/schema#","additionalProperties":false}"#
        );
        assert!(read.warning.is_none());
    }

    #[test]
    fn a_bad_tool_is_left_out_and_the_others_stay() {
        let mut deep = json!(1);
        for _ in 0..100 {
            deep = json!({ "a": deep });
        }
        for bad in [
            json!(1),
            json!({"description": "x"}),
            json!({"name": 5}),
            json!({"name": "x", "inputSchema": "no"}),
            json!({"name": "x", "inputSchema": {"type": "array"}}),
            json!({"name": "x", "inputSchema": {"properties": []}}),
            json!({"name": "x", "inputSchema": {"properties": deep}}),
        ] {
            let read = tools(&[bad.clone(), json!({"name": "good"})]);
            assert_eq!(read.entries.len(), 1, "{bad}");
            assert!(read.warning.is_some_and(|warning| warning.ends_with('.')), "{bad}");
        }
    }

    #[test]
    fn all_tools_that_are_left_out_are_named() {
        let bad = |name: &str| json!({"name": name, "inputSchema": {"type": "array"}});
        let names = ["a", "b", "c", "d", "e", "f"];
        let warning = tools(&names.map(bad)).warning.unwrap();
        for name in &names[..5] {
            assert!(warning.contains(&format!("`{name}` is left out")), "{warning}");
        }
        assert!(warning.ends_with("1 more are left out."), "{warning}");
    }

    #[test]
    fn schemas_with_one_meaning_are_repaired() {
        for schema in [json!(true), json!({"type": "OBJECT", "properties": {"a": {"type": "STRING"}}})] {
            let read = tools(&[json!({"name": "x", "inputSchema": schema})]);
            assert_eq!(read.entries[0].parameters["type"], "object");
            assert!(read.warning.is_none());
        }
    }

    #[test]
    fn ten_thousand_tools_are_bounded() {
        let many: Vec<_> = (0..10_000).map(|number| json!({"name": format!("t{number}")})).collect();
        let read = tools(&many);
        assert_eq!(read.entries.len(), MAX_ENTRIES);
        assert!(read.warning.is_some());
    }
}
