//! Calls that a model prints as text.
//!
//! Small models do this, and so do servers that do not know a model's template. The text counts as
//! calls only if it contains nothing else and names only offered tools. Otherwise it stays text.

use serde_json::{Map, Value};

use crate::ToolSpec;

/// Limit of text that is held back because it may become a call.
pub(crate) const HELD_LIMIT_BYTES: usize = 256 * 1024;

/// Tags around a call in JSON, or in nested tags.
const TAGS: &[(&str, &str)] = &[
    ("<tool_call>", "</tool_call>"),
    ("<tool_calls>", "</tool_calls>"),
    ("<function_call>", "</function_call>"),
    ("<|tool_call|>", "<|/tool_call|>"),
    ("[TOOL_CALLS]", "[/TOOL_CALLS]"),
];
/// A call in tags, with its name in the first one.
const FUNCTION: &str = "<function=";
const FENCES: &[&str] = &["```json", "```tool_call", "```tool_code", "```"];
/// The keys that may come first in a call. The first three contain the tool's name.
const KEYS: &[&str] =
    &["name", "tool", "tool_name", "function", "arguments", "parameters", "type", "id", "tool_calls"];
/// End marks of chat templates.
const ENDS: &[&str] = &["</s>", "<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<|end|>", "<|endoftext|>"];

/// A parsed call: the tool's name, and its arguments as JSON.
pub(crate) type Call = (String, String);

/// Returns whether `text` may become a call when more text follows.
pub(crate) fn may_be(text: &str, tools: &[ToolSpec]) -> bool {
    if text.len() > HELD_LIMIT_BYTES {
        return false;
    }
    let text = text.trim_start();
    let opens = |tag: &str| tag.starts_with(text) || text.starts_with(tag);
    if TAGS.iter().any(|(tag, _)| opens(tag)) || opens(FUNCTION) {
        return true;
    }
    if FENCES.iter().any(|fence| fence.starts_with(text)) {
        return true;
    }
    let inner = FENCES.iter().find_map(|fence| text.strip_prefix(fence)).map_or(text, str::trim_start);
    let inner = inner.strip_prefix('[').map_or(inner, str::trim_start);
    let Some(object) = inner.strip_prefix('{') else { return inner.is_empty() };
    let Some(key) = object.trim_start().strip_prefix('"') else { return object.trim().is_empty() };
    let Some((key, rest)) = key.split_once('"') else {
        return KEYS.iter().any(|known| known.starts_with(key));
    };
    if !matches!(key, "name" | "tool" | "tool_name") {
        return KEYS.contains(&key);
    }
    // Many JSON texts begin with a name, but few with a tool's name.
    let Some(value) = rest.trim_start().strip_prefix(':') else { return rest.trim().is_empty() };
    let Some(value) = value.trim_start().strip_prefix('"') else { return value.trim().is_empty() };
    match value.split_once('"') {
        Some((name, _)) => tools.iter().any(|tool| tool.name == name),
        None => tools.iter().any(|tool| tool.name.starts_with(value)),
    }
}

/// Returns the calls in `text`, if it consists only of calls of `tools`.
pub(crate) fn read(text: &str, tools: &[ToolSpec]) -> Option<Vec<Call>> {
    let mut rest = text.trim();
    while let Some(shorter) = ENDS.iter().find_map(|end| rest.strip_suffix(end)) {
        rest = shorter.trim_end();
    }
    if let Some(inner) = FENCES.iter().find_map(|fence| rest.strip_prefix(fence)) {
        rest = inner.trim().strip_suffix("```")?.trim();
    }
    let mut calls = Vec::new();
    while !rest.is_empty() {
        let (found, after) = next(rest, tools)?;
        calls.extend(found);
        rest = after.trim_start();
    }
    (!calls.is_empty()).then_some(calls)
}

fn next<'a>(text: &'a str, tools: &[ToolSpec]) -> Option<(Vec<Call>, &'a str)> {
    if text.starts_with(FUNCTION) {
        let (call, after) = function(text, tools)?;
        return Some((vec![call], after));
    }
    for (open, close) in TAGS {
        let Some(inner) = text.strip_prefix(open) else { continue };
        // The last tag may be missing at the end of the answer.
        let (inner, after) = inner.split_once(close).unwrap_or((inner, ""));
        let inner = inner.trim();
        if inner.starts_with(FUNCTION) {
            let (call, left) = function(inner, tools)?;
            return left.trim().is_empty().then(|| (vec![call], after));
        }
        return Some((values(&serde_json::from_str(inner).ok()?, tools, true)?, after));
    }
    let mut stream = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    let value = stream.next()?.ok()?;
    let after = &text[stream.byte_offset()..];
    Some((values(&value, tools, false)?, after))
}

/// Returns one call or a list of calls. A name without arguments counts as a call only inside a
/// tag.
fn values(value: &Value, tools: &[ToolSpec], is_tagged: bool) -> Option<Vec<Call>> {
    if let Some(list) = value.as_array().or_else(|| value.get("tool_calls")?.as_array()) {
        let calls: Option<Vec<Vec<Call>>> =
            list.iter().map(|value| values(value, tools, is_tagged)).collect();
        return calls.map(|calls| calls.concat());
    }
    let call = value.get("function").filter(|function| function.is_object()).unwrap_or(value);
    let field = |names: &[&str]| names.iter().find_map(|name| call.get(name));
    let name = field(&["name", "tool_name", "tool", "function"])?.as_str()?;
    let tool = tools.iter().find(|tool| tool.name == name)?;
    let arguments = match field(&["arguments", "parameters", "args", "input"]) {
        Some(Value::Object(arguments)) => Value::Object(arguments.clone()).to_string(),
        Some(Value::String(text)) => {
            serde_json::from_str::<Map<String, Value>>(text).ok()?;
            text.clone()
        }
        Some(Value::Null) | None if is_tagged => "{}".to_owned(),
        Some(_) | None => return None,
    };
    Some(vec![(tool.name.clone(), arguments)])
}

/// Parses `<function=name>` with JSON or `<parameter=key>` tags inside.
fn function<'a>(text: &'a str, tools: &[ToolSpec]) -> Option<(Call, &'a str)> {
    let (name, inner) = text.strip_prefix(FUNCTION)?.split_once('>')?;
    let tool = tools.iter().find(|tool| tool.name == name.trim().trim_matches('"'))?;
    let (inner, after) = inner.split_once("</function>").unwrap_or((inner, ""));
    let inner = inner.trim();
    if inner.starts_with('{') {
        serde_json::from_str::<Map<String, Value>>(inner).ok()?;
        return Some(((tool.name.clone(), inner.to_owned()), after));
    }
    let (mut arguments, mut rest) = (Map::new(), inner);
    while !rest.is_empty() {
        let (key, inner) = rest.strip_prefix("<parameter=")?.split_once('>')?;
        let (value, after) = inner.split_once("</parameter>")?;
        let value = value.strip_prefix('\n').unwrap_or(value);
        let value = value.strip_suffix('\n').unwrap_or(value);
        arguments.insert(key.trim().to_owned(), convert(tool, key.trim(), value));
        rest = after.trim_start();
    }
    Some(((tool.name.clone(), Value::Object(arguments).to_string()), after))
}

/// Converts text between tags to the type in the tool's schema.
fn convert(tool: &ToolSpec, key: &str, text: &str) -> Value {
    let kind = tool.parameters.get("properties").and_then(|all| all.get(key)).and_then(|one| one.get("type"));
    let is_text = kind.is_none_or(|kind| kind == "string");
    let read = if is_text { None } else { serde_json::from_str(text.trim()).ok() };
    read.unwrap_or_else(|| Value::String(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn tools() -> Vec<ToolSpec> {
        let parameters = json!({"properties": {"path": {"type": "string"}, "limit": {"type": "integer"}}});
        let tool = |name: &str| ToolSpec {
            name: name.into(),
            description: String::new(),
            parameters: parameters.clone(),
        };
        vec![tool("read"), tool("bash")]
    }

    #[track_caller]
    fn check(text: &str, expected: &[(&str, &str)]) {
        let found = read(text, &tools()).unwrap_or_default();
        let found: Vec<_> =
            found.iter().map(|(name, arguments)| (name.as_str(), arguments.as_str())).collect();
        assert_eq!(found, expected, "{text}");
        if !expected.is_empty() {
            for (at, _) in text.char_indices() {
                assert!(may_be(&text[..at], &tools()), "{}", &text[..at]);
            }
        }
    }

    #[test]
    fn a_printed_call_is_parsed() {
        const PATH: &str = r#"{"path":"a"}"#;
        for text in [
            r#"{"name": "read", "arguments": {"path": "a"}}"#,
            r#"{"name": "read", "parameters": {"path": "a"}}"#,
            r#"{"function": {"name": "read", "arguments": {"path": "a"}}}"#,
            r#"{"type": "function", "function": {"name": "read", "arguments": {"path": "a"}}}"#,
            r#"{"tool": "read", "args": {"path": "a"}}"#,
            r#"[{"name": "read", "arguments": {"path": "a"}}]"#,
            r#"{"tool_calls": [{"name": "read", "arguments": {"path": "a"}}]}"#,
            r#"{"name": "read", "arguments": "{\"path\":\"a\"}"}"#,
            "```json\n{\"name\": \"read\", \"arguments\": {\"path\": \"a\"}}\n```",
            "```\n{\"name\": \"read\", \"arguments\": {\"path\": \"a\"}}\n```\n",
            "<tool_call>\n{\"name\": \"read\", \"arguments\": {\"path\": \"a\"}}\n</tool_call>",
            "  <tool_call>{\"name\": \"read\", \"arguments\": {\"path\": \"a\"}}",
            "<tool_call>{\"name\": \"read\", \"arguments\": {\"path\": \"a\"}}</tool_call><|im_end|>",
            "<function_call>{\"name\": \"read\", \"arguments\": {\"path\": \"a\"}}</function_call>",
            "[TOOL_CALLS][{\"name\": \"read\", \"arguments\": {\"path\": \"a\"}}]</s>",
            "<function=read>{\"path\":\"a\"}</function>",
            "<tool_call>\n<function=read>\n<parameter=path>\na\n</parameter>\n</function>\n</tool_call>",
        ] {
            check(text, &[("read", PATH)]);
        }
    }

    #[test]
    fn several_calls_are_parsed() {
        let one = r#"{"name":"read","arguments":{"path":"a"}}"#;
        let two = r#"{"name":"bash","arguments":{"limit":2}}"#;
        let expected = [("read", r#"{"path":"a"}"#), ("bash", r#"{"limit":2}"#)];
        check(&format!("<tool_call>{one}</tool_call>\n<tool_call>{two}</tool_call>"), &expected);
        check(&format!("{one}\n{two}"), &expected);
        check(&format!("[{one}, {two}]"), &expected);
    }

    #[test]
    fn values_between_tags_get_the_schemas_type() {
        check(
            "<function=read>\n<parameter=path>\n1\n2\n</parameter>\n<parameter=limit>3</parameter>\n<parameter=new>x</parameter></function>",
            &[("read", r#"{"path":"1\n2","limit":3,"new":"x"}"#)],
        );
    }

    #[test]
    fn a_tag_alone_makes_a_name_a_call() {
        check(r#"<tool_call>{"name":"read"}</tool_call>"#, &[("read", "{}")]);
        check(r#"{"name":"read"}"#, &[]);
    }

    #[test]
    fn uncertain_calls_stay_text() {
        for text in [
            "",
            "Let me read: {\"name\": \"read\", \"arguments\": {}}",
            "{\"name\": \"read\", \"arguments\": {}} would read it.",
            "{\"name\": \"format_disk\", \"arguments\": {}}",
            "[{\"name\":\"read\",\"arguments\":{}},{\"name\":\"other\",\"arguments\":{}}]",
            "{\"name\": \"read\", \"arguments\": \"path\"}",
            "{\"name\": \"read\", \"arguments\": [1]}",
            "{\"name\": \"read\", \"arguments\": {",
            "<tool_call>read a</tool_call>",
            "<tool_call>{\"name\": \"read\"}</tool_call> done",
            "<function=read><parameter=path>a</function>",
            "```json\n{\"name\": \"read\", \"arguments\": {}}\n",
            "[]",
            "42",
        ] {
            check(text, &[]);
        }
    }

    #[test]
    fn other_text_is_not_held_back() {
        for text in [
            "H",
            "<b",
            "```rust\n",
            "```json\n{\"version\"",
            "{\"x",
            "{\"name\": \"my-package\"",
            "{\"name\": \"reads",
            "{\"name\": 3",
            "{]",
            "[1",
            &" ".repeat(HELD_LIMIT_BYTES + 1),
        ] {
            assert!(!may_be(text, &tools()), "{text}");
        }
    }
}
