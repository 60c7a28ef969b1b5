//! Finds the parts that an error names: by their place, by a call's id, by a tool's name, or by their kind.

use serde_json::Value;

use super::parts::{Kind, Part};

/// The fields with which a place begins.
const ROOTS: &[&str] = &["messages", "input", "contents", "tools", "toolConfig", "tool_config"];
/// The keys with which a path within a schema begins.
const SCHEMA_ROOTS: &[&str] = &["properties", "$defs", "definitions"];
/// The places of the schema in a tool.
const SCHEMAS: &[&str] = &[
    "/function/parameters",
    "/parameters",
    "/input_schema",
    "/toolSpec/inputSchema/json",
    "/parametersJsonSchema",
];
/// The shortest id that can stand for itself in a text.
const LEAST_ID_BYTES: usize = 5;

/// The words for a kind of parts.
const WORDS: &[(Kind, &[&str])] = &[
    (Kind::Reasoning, &["signature", "thinking", "reasoning", "encrypted", "thought"]),
    (Kind::Picture, &["image", "picture", "vision", "mmproj", "media type", "media_type", "multimodal"]),
    (Kind::Document, &["document", "pdf", "input_file", "audio", "video", "file"]),
    (Kind::Call, &["tool_use", "tool use", "tool_call", "tool call", "call_id", "function call", "tooluse"]),
    (Kind::Result, &["tool_result", "toolresult", "function_call_output", "function response"]),
    (Kind::Tool, &["schema", "function declaration", "tool definition"]),
];

/// Returns whether the server wants thoughts that the conversation does not have.
pub(super) fn forbids_thinking(text: &str) -> bool {
    let text = text.to_lowercase();
    text.contains("must start with a thinking block") || text.contains("expected `thinking`")
}

/// Returns whether the server misses the thoughts of an answer, although the model is not known to need them.
pub(super) fn wants_reasoning(text: &str) -> bool {
    let text = text.to_lowercase();
    let is_missing = ["missing", "must be passed back", "must be provided", "is required", "must be set"];
    text.contains("reasoning_content") && is_missing.iter().any(|words| text.contains(words))
}

/// Returns the parts that a text names. Empty if leaving out parts does not help.
pub(super) fn refused(text: &str, body: &Value, parts: &[Part]) -> Vec<Part> {
    let kinds = kinds(text);
    let places: Vec<String> = places(text).into_iter().filter_map(|place| pointer(body, &place)).collect();
    let mut found: Vec<Part> = Vec::new();
    // The innermost part around the place.
    for place in &places {
        let around =
            |part: &&Part| *place == part.pointer || place.starts_with(&format!("{}/", part.pointer));
        found.extend(parts.iter().filter(around).max_by_key(|part| part.pointer.len()).cloned());
    }
    // An index may count differently. A part of another kind than the error speaks of is not the one.
    let may_be = |part: &Part| part.kind == Kind::Tool || kinds.is_empty() || kinds.contains(&part.kind);
    found.retain(may_be);
    if found.is_empty() {
        let is_named = |part: &&Part| {
            part.kind == Kind::Call && part.name.len() >= LEAST_ID_BYTES && text.contains(&part.name)
        };
        found.extend(parts.iter().filter(is_named).cloned());
    }
    if found.is_empty() && (kinds.contains(&Kind::Tool) || text.to_lowercase().contains("function")) {
        let is_named = |part: &&Part| part.kind == Kind::Tool && is_quoted(text, &part.name);
        found.extend(parts.iter().filter(is_named).cloned());
    }
    if found.is_empty() && kinds.contains(&Kind::Tool) {
        found = with_schema_path(text, body, parts);
    }
    if found.is_empty() {
        // A whole message is named, so the kind decides which of its parts.
        let within = |part: &&Part| places.iter().any(|place| part.pointer.starts_with(&format!("{place}/")));
        let is_kind = |part: &&Part| kinds.first().is_none_or(|_| kinds.contains(&part.kind));
        found.extend(parts.iter().filter(within).filter(is_kind).cloned());
    }
    if found.is_empty() {
        let removable = |kind: &&Kind| matches!(kind, Kind::Reasoning | Kind::Picture | Kind::Document);
        let of = |kind: Kind| parts.iter().filter(move |part| part.kind == kind).cloned();
        found = kinds
            .iter()
            .filter(removable)
            .map(|kind| of(*kind).collect())
            .find(|all: &Vec<_>| !all.is_empty())
            .unwrap_or_default();
    }
    found.retain(|part| !is_last_prompt(body, parts, part));
    found
}

/// The kinds that a text speaks of, in the order of their importance.
fn kinds(text: &str) -> Vec<Kind> {
    let text = text.to_lowercase();
    WORDS
        .iter()
        .filter(|(_, words)| words.iter().any(|word| text.contains(word)))
        .map(|(kind, _)| *kind)
        .collect()
}

/// Returns whether a part is text of the last message. Without it there is nothing to answer.
fn is_last_prompt(body: &Value, parts: &[Part], part: &Part) -> bool {
    let message = |part: &Part| part.pointer.split('/').take(3).collect::<Vec<_>>().join("/");
    let last = parts.iter().rfind(|part| part.kind != Kind::Tool).map(message);
    let is_user = |at: &String| body.pointer(at).is_some_and(|message| message["role"] == "user");
    part.kind == Kind::Text && last.is_some_and(|last| message(part) == last && is_user(&last))
}

fn is_quoted(text: &str, name: &str) -> bool {
    let quotes = ['\'', '"', '`', '“', '”'];
    !name.is_empty()
        && text
            .match_indices(name)
            .any(|(at, _)| text[..at].ends_with(quotes) && text[at + name.len()..].starts_with(quotes))
}

/// Returns the tools with a property that a text names, such as `properties.name.items`. If several have it, those come
/// first whose schema is unusual there.
fn with_schema_path(text: &str, body: &Value, parts: &[Part]) -> Vec<Part> {
    let paths: Vec<Vec<String>> =
        SCHEMA_ROOTS.iter().flat_map(|root| paths_from(text, root)).filter(|path| path.len() > 1).collect();
    let at = |part: &Part, path: &[String]| {
        let tool = body.pointer(&part.pointer)?;
        let mut schema = SCHEMAS.iter().find_map(|pointer| tool.pointer(pointer))?;
        for segment in path {
            schema = match schema {
                Value::Array(list) => list.get(segment.parse::<usize>().ok()?)?,
                other => other.get(segment)?,
            };
        }
        Some(schema)
    };
    let tools = || parts.iter().filter(|part| part.kind == Kind::Tool);
    for path in paths {
        let found: Vec<(&Part, &Value)> = tools().filter_map(|part| Some((part, at(part, &path)?))).collect();
        let is_usual = found.iter().all(|(_, schema)| is_usual(schema));
        let meant = found.into_iter().filter(|(_, schema)| is_usual || !self::is_usual(schema));
        let meant: Vec<Part> = meant.map(|(part, _)| part.clone()).collect();
        if !meant.is_empty() {
            return meant;
        }
    }
    Vec::new()
}

/// Returns whether a schema has nothing that a provider could refuse.
fn is_usual(schema: &Value) -> bool {
    const WORDS: [&str; 6] = ["type", "description", "enum", "default", "minimum", "maximum"];
    let usual = |fields: &serde_json::Map<String, Value>| {
        fields["type"].is_string() && fields.keys().all(|word| WORDS.contains(&word.as_str()))
    };
    schema.as_object().is_some_and(|fields| fields.contains_key("type") && usual(fields))
}

/// Returns the places in a text, as lists of keys and indices, such as `messages`, `3`, `content`, `1`.
fn places(text: &str) -> Vec<Vec<String>> {
    let has_index = |place: &Vec<String>| place.iter().any(|segment| segment.parse::<usize>().is_ok());
    ROOTS.iter().flat_map(|root| paths_from(text, root)).filter(has_index).collect()
}

/// Returns the paths in a text that begin with a key.
fn paths_from(text: &str, root: &str) -> Vec<Vec<String>> {
    let mut paths = Vec::new();
    for (at, _) in text.match_indices(root) {
        let is_word = text[..at].chars().next_back().is_none_or(|c| !c.is_alphanumeric() && c != '_');
        let rest = &text[at + root.len()..];
        if is_word && rest.starts_with(['.', '[', '/']) {
            paths.push(segments(root, rest));
        }
    }
    paths
}

fn segments(root: &str, rest: &str) -> Vec<String> {
    let mut segments = vec![root.to_owned()];
    let mut segment = String::new();
    for c in rest.chars() {
        match c {
            '.' | '[' | ']' | '/' | '\'' | '"' => {
                segments.extend((!segment.is_empty()).then(|| std::mem::take(&mut segment)));
            }
            c if c.is_alphanumeric() || matches!(c, '_' | '-' | '$') => segment.push(c),
            _ => break,
        }
    }
    segments.extend((!segment.is_empty()).then_some(segment));
    segments
}

/// Returns the pointer to a place. Skips keys that a body does not have, because servers name types between them.
fn pointer(body: &Value, place: &[String]) -> Option<String> {
    let (mut value, mut pointer) = (body, String::new());
    for segment in place {
        let next = match value {
            Value::Array(list) => match segment.parse::<usize>() {
                Ok(at) => Some((segment.clone(), list.get(at)?)),
                Err(_) => None,
            },
            Value::Object(fields) => {
                let names = [segment.clone(), camel(segment)];
                names.into_iter().find_map(|name| Some((name.clone(), fields.get(&name)?)))
            }
            _ => None,
        };
        if let Some((name, inner)) = next {
            (value, pointer) = (inner, format!("{pointer}/{name}"));
        }
    }
    pointer.bytes().any(|byte| byte.is_ascii_digit()).then_some(pointer)
}

/// Returns a key as JSON of Google and Amazon spells it.
fn camel(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    let mut upper = false;
    for c in name.chars() {
        match c {
            '_' => upper = true,
            c if upper => {
                out.push(c.to_ascii_uppercase());
                upper = false;
            }
            c => out.push(c),
        }
    }
    out
}
