//! The rules of Anthropic Messages providers.

use serde_json::Value;

use crate::http::Headers;
use crate::protocol::picture::{self, Pictures};
use crate::protocol::rules::{self, Roles, ToolNames};
use crate::protocol::{Problems, is_tool_name};

/// Limit of a tool's name.
const TOOL_NAME_LIMIT_BYTES: usize = 128;
/// Limit of `cache_control` marks in a request.
const CACHE_MARKS_LIMIT: usize = 4;

/// The value that Vertex AI expects instead of the version header.
const VERTEX_VERSION: &str = "vertex-2023-10-16";

/// The rules for pictures.
const PICTURES: picture::Rules = picture::Rules {
    most: 100,
    most_chars: 5 * 1024 * 1024,
    many: 20,
    most_pixels_of_many: 2000,
    ..picture::USUAL
};

/// Adds all problems of a request.
pub(crate) fn check(headers: &Headers, body: &Value, problems: &mut Problems) {
    if headers.get("anthropic-version").is_none_or(str::is_empty) {
        problems.add("the header `anthropic-version` is missing");
    }
    problems.text("`model`", &body["model"]);
    message(body, problems);
}

/// Adds all problems of a request for Vertex AI, which has the model in its path.
pub(crate) fn check_vertex(headers: &Headers, body: &Value, problems: &mut Problems) {
    if !headers.get("authorization").is_some_and(|value| value.starts_with("Bearer ")) {
        problems.add("the header `authorization` has no token");
    }
    match problems.text("`anthropic_version`", &body["anthropic_version"]) {
        Some(VERTEX_VERSION) | None => {}
        Some(version) => {
            problems.add(format!("`anthropic_version` is `{version}` and not `{VERTEX_VERSION}`"));
        }
    }
    if !body["model"].is_null() {
        problems.add("`model` is set, and belongs into the path");
    }
    message(body, problems);
}

fn message(body: &Value, problems: &mut Problems) {
    options(body, problems);
    system(&body["system"], problems);
    tools(&body["tools"], problems);
    let marks = cache_marks(body);
    if marks > CACHE_MARKS_LIMIT {
        problems.add(format!(
            "there are {marks} `cache_control` marks, and at most {CACHE_MARKS_LIMIT} are allowed"
        ));
    }
    if let Some(messages) = problems.list("`messages`", &body["messages"]) {
        conversation(messages, problems);
    }
}

fn options(body: &Value, problems: &mut Problems) {
    let limit = match body["max_tokens"].as_u64() {
        Some(limit) if limit > 0 => limit,
        Some(_) | None => {
            problems.add("`max_tokens` is not a number from 1 up");
            return;
        }
    };
    let budget = body["thinking"]["budget_tokens"].as_u64().unwrap_or_default();
    if budget >= limit {
        problems.add("`thinking.budget_tokens` is not less than `max_tokens`");
    }
    if !matches!(body["stream"], Value::Null | Value::Bool(_)) {
        problems.add("`stream` is not a boolean");
    }
    if body["tools"].is_null() && !body["tool_choice"].is_null() {
        problems.add("`tool_choice` is set without `tools`");
    }
}

fn system(system: &Value, problems: &mut Problems) {
    match system {
        Value::Null => {}
        Value::String(_) => {
            problems.text("`system`", system);
        }
        _ => {
            let blocks = problems.list("`system`", system).unwrap_or_default();
            for (n, block) in blocks.iter().enumerate() {
                let at = format!("`system[{n}]`");
                if block["type"] != "text" {
                    problems.add(format!("{at} is not of type `text`"));
                }
                problems.text(&format!("the text of {at}"), &block["text"]);
            }
        }
    }
}

fn tools(tools: &Value, problems: &mut Problems) {
    if tools.is_null() {
        return;
    }
    let Some(tools) = problems.list("`tools`", tools) else { return };
    let mut names = ToolNames::new(TOOL_NAME_LIMIT_BYTES);
    for (n, tool) in tools.iter().enumerate() {
        let at = format!("`tools[{n}]`");
        names.check(&at, &tool["name"], problems);
        // Tools of other types belong to the provider, which knows their schemas.
        let is_ours = tool["type"].is_null() || tool["type"] == "custom";
        if is_ours {
            rules::plain_top(&at, &tool["input_schema"], problems);
            property_names(&at, &tool["input_schema"], problems);
        }
        if is_ours && tool["input_schema"]["type"] != "object" {
            problems.add(format!("the input schema of {at} is not of type `object`"));
        }
    }
}

/// Checks the names of all properties, and for a list of schemas, which the draft does not have.
fn property_names(at: &str, schema: &Value, problems: &mut Problems) {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-');
    if schema["items"].is_array() {
        problems.add(format!("the input schema of {at} has a list of `items`"));
    }
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        if !(1..=64).contains(&name.len()) || !name.bytes().all(is_allowed) {
            problems.add(format!("the property `{name}` of {at} is not 1 to 64 of `a-zA-Z0-9_.-`"));
        }
        property_names(at, property, problems);
    }
}

/// Counts the marks on tools, system blocks, content blocks and blocks in tool results. Ignores
/// properties with that name in a tool's schema.
fn cache_marks(body: &Value) -> usize {
    fn marks(blocks: &Value) -> usize {
        let blocks = blocks.as_array().into_iter().flatten();
        blocks.map(|block| usize::from(!block["cache_control"].is_null()) + marks(&block["content"])).sum()
    }
    usize::from(!body["cache_control"].is_null())
        + marks(&body["tools"])
        + marks(&body["system"])
        + marks(&body["messages"])
}

/// Adds the pictures of blocks, and those in results.
fn pictures<'a>(at: &str, blocks: &'a Value, all: &mut Pictures<'a>) {
    for (n, block) in blocks.as_array().into_iter().flatten().enumerate() {
        let at = format!("block {n} of {at}");
        let source = &block["source"];
        if block["type"] == "image" && source["type"] == "base64" {
            let text = |name: &str| source[name].as_str().unwrap_or_default();
            all.add(&at, text("media_type"), text("data"));
        }
        pictures(&at, &block["content"], all);
    }
}

fn conversation(messages: &[Value], problems: &mut Problems) {
    let mut all = Pictures::default();
    let mut used: Vec<&str> = Vec::new();
    for (n, message) in messages.iter().enumerate() {
        pictures(&format!("`messages[{n}]`"), &message["content"], &mut all);
        for block in
            message["content"].as_array().into_iter().flatten().filter(|block| block["type"] == "tool_use")
        {
            let id = block["id"].as_str().unwrap_or_default();
            if used.contains(&id) {
                problems.add(format!("`messages[{n}]` uses the id `{id}` of another call"));
            }
            if !is_tool_name(id, usize::MAX) {
                problems.add(format!("the id `{id}` in `messages[{n}]` is not of `a-zA-Z0-9_-`"));
            }
            used.push(id);
        }
    }
    all.check(PICTURES, problems);
    let mut calls = Vec::new();
    let mut roles = Roles::default();
    for (n, message) in messages.iter().enumerate() {
        let at = format!("`messages[{n}]`");
        let Some(role) = roles.next(n, message, problems) else { continue };
        let blocks = content(&at, &message["content"], problems);
        if role == "assistant" {
            unanswered(&calls, &at, problems);
            calls = assistant(&at, blocks, problems);
        } else {
            user(&at, blocks, &calls, problems);
            calls.clear();
        }
    }
    unanswered(&calls, "the end", problems);
}

fn unanswered(calls: &[&str], at: &str, problems: &mut Problems) {
    for id in calls {
        problems.add(format!("the tool use `{id}` is not answered before {at}"));
    }
}

/// Checks all blocks and returns them; empty for a plain string.
fn content<'a>(at: &str, content: &'a Value, problems: &mut Problems) -> &'a [Value] {
    let at = format!("the content of {at}");
    if let Value::String(_) = content {
        problems.text(&at, content);
        return &[];
    }
    let blocks = problems.list(&at, content).unwrap_or_default();
    for (n, block) in blocks.iter().enumerate() {
        let at = format!("block {n} of {at}");
        match block["type"].as_str() {
            Some("text") => {
                problems.text(&format!("the text of {at}"), &block["text"]);
            }
            Some("image" | "document") if !block["source"].is_object() => {
                problems.add(format!("the source of {at} is not an object"));
            }
            Some(_) => {}
            None => problems.add(format!("{at} has no type")),
        }
    }
    blocks
}

/// Checks an assistant's blocks and returns the call ids.
fn assistant<'a>(at: &str, blocks: &'a [Value], problems: &mut Problems) -> Vec<&'a str> {
    let mut ids = Vec::new();
    for (n, block) in blocks.iter().enumerate() {
        let at = format!("block {n} of the content of {at}");
        match block["type"].as_str().unwrap_or_default() {
            "tool_use" => {
                problems.text(&format!("the name of {at}"), &block["name"]);
                if !block["input"].is_object() {
                    problems.add(format!("the input of {at} is not an object"));
                }
                rules::call_id(&at, &block["id"], &mut ids, problems);
            }
            "thinking" => {
                if !block["thinking"].is_string() {
                    problems.add(format!("the thinking of {at} is not a string"));
                }
                problems.text(&format!("the signature of {at}"), &block["signature"]);
            }
            "redacted_thinking" => {
                problems.text(&format!("the data of {at}"), &block["data"]);
            }
            "tool_result" => problems.add(format!("{at} is a tool result in an assistant message")),
            _ => {}
        }
    }
    ids
}

fn user(at: &str, blocks: &[Value], calls: &[&str], problems: &mut Problems) {
    let mut answered = Vec::new();
    let mut other = false;
    for (n, block) in blocks.iter().enumerate() {
        let block_at = format!("block {n} of the content of {at}");
        match block["type"].as_str().unwrap_or_default() {
            "tool_result" => {
                if other {
                    problems.add(format!("{block_at} is a tool result after other content"));
                }
                result(&block_at, &block["content"], problems);
                let name = format!("the tool_use_id of {block_at}");
                let Some(id) = problems.text(&name, &block["tool_use_id"]) else { continue };
                if !calls.contains(&id) {
                    problems
                        .add(format!("{block_at} answers `{id}`, which the message before it did not call"));
                } else if answered.contains(&id) {
                    problems.add(format!("{block_at} answers `{id}` a second time"));
                }
                answered.push(id);
            }
            kind @ ("tool_use" | "thinking" | "redacted_thinking") => {
                problems.add(format!("{block_at} is of type `{kind}` in a user message"));
            }
            _ => other = true,
        }
    }
    for id in calls.iter().filter(|id| !answered.contains(id)) {
        problems.add(format!("the tool use `{id}` is not answered in {at}"));
    }
}

fn result(at: &str, content: &Value, problems: &mut Problems) {
    match content {
        Value::Null | Value::String(_) => {}
        Value::Array(blocks) => {
            for (n, block) in blocks.iter().enumerate().filter(|(_, block)| block["type"] == "text") {
                problems.text(&format!("the text of block {n} of {at}"), &block["text"]);
            }
        }
        Value::Bool(_) | Value::Number(_) | Value::Object(_) => {
            problems.add(format!("the content of {at} is neither a string nor a list"));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::protocol::problems::change;

    fn good() -> Value {
        json!({
            "model": "claude-mock",
            "max_tokens": 32000,
            "thinking": {"type": "enabled", "budget_tokens": 16000},
            "stream": true,
            "system": [{"type": "text", "text": "Be good.", "cache_control": {"type": "ephemeral"}}],
            "tool_choice": {"type": "auto"},
            "tools": [
                {"name": "read", "input_schema": {"type": "object"}},
                {"name": "bash", "input_schema": {"type": "object", "properties": {"cache_control": {}}}},
                {"name": "web_search", "type": "web_search_20250305"},
            ],
            "messages": [
                {"role": "user", "content": [{"type": "text", "text": "Look"}]},
                {"role": "assistant", "content": [
                    {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
                    {"type": "text", "text": "Looking."},
                    {"type": "tool_use", "id": "a", "name": "read", "input": {}},
                    {"type": "tool_use", "id": "b", "name": "bash", "input": {"x": 1},
                     "cache_control": {"type": "ephemeral"}}]},
                {"role": "user", "content": [
                    {"type": "tool_result", "tool_use_id": "b", "content": ""},
                    {"type": "tool_result", "tool_use_id": "a", "is_error": true, "content": [
                        {"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}}],
                     "cache_control": {"type": "ephemeral"}},
                    {"type": "text", "text": "Go on"}]},
                {"role": "assistant", "content": "Done."},
                {"role": "user", "content": "More"},
            ],
        })
    }

    fn problems(body: &Value) -> Vec<String> {
        let mut problems = Problems::default();
        check(&Headers::from_iter([("anthropic-version", "2023-06-01")]), body, &mut problems);
        problems.into_list()
    }

    /// Puts `value` at `pointer` of a good request (`null` removes) and expects this one problem.
    #[track_caller]
    fn check_bad(pointer: &str, value: Value, expected: &str) {
        let mut body = good();
        change(&mut body, pointer, value);
        assert_eq!(problems(&body), [expected]);
    }

    #[test]
    fn a_good_request_has_no_problem() {
        assert_eq!(problems(&good()), [""; 0]);
    }

    #[test]
    fn the_version_header_is_required() {
        let mut problems = Problems::default();
        check(&Headers::default(), &good(), &mut problems);
        assert_eq!(problems.into_list(), ["the header `anthropic-version` is missing"]);
    }

    #[test]
    fn the_options_are_checked() {
        check_bad("/model", Value::Null, "`model` is missing");
        check_bad("/max_tokens", Value::Null, "`max_tokens` is not a number from 1 up");
        check_bad("/max_tokens", json!(9000), "`thinking.budget_tokens` is not less than `max_tokens`");
        check_bad("/stream", json!(1), "`stream` is not a boolean");
        check_bad("/tools", Value::Null, "`tool_choice` is set without `tools`");
        check_bad("/system", json!(""), "`system` is empty");
        check_bad("/system", json!({}), "`system` is not a list");
        check_bad("/system/0/type", json!("x"), "`system[0]` is not of type `text`");
        check_bad("/system/0/text", json!(""), "the text of `system[0]` is empty");
    }

    #[test]
    fn tools_are_checked() {
        check_bad("/tools/0/name", json!("bash"), "`tools[1]` has the name `bash` a second time");
        check_bad(
            "/tools/0/name",
            json!("a b"),
            "the name of `tools[0]`, `a b`, is not 1 to 128 of `a-zA-Z0-9_-`",
        );
        check_bad(
            "/tools/1/input_schema",
            json!({}),
            "the input schema of `tools[1]` is not of type `object`",
        );
    }

    #[test]
    fn only_four_cache_marks_are_allowed() {
        check_bad(
            "/messages/4/content",
            json!([{"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}}]),
            "there are 5 `cache_control` marks, and at most 4 are allowed",
        );
    }

    #[test]
    fn roles_alternate() {
        check_bad(
            "/messages",
            json!([{"role": "assistant", "content": "x"}]),
            "`messages[0]` is not the user's",
        );
        check_bad("/messages/3", Value::Null, "`messages[3]` has the role `user` a second time in a row");
        check_bad("/messages/4/role", json!("system"), "`messages[4]` has the unknown role `system`");
    }

    #[test]
    fn content_is_never_empty() {
        check_bad("/messages/4/content", json!(""), "the content of `messages[4]` is empty");
        check_bad("/messages/4/content", json!([]), "the content of `messages[4]` is empty");
        check_bad(
            "/messages/0/content/0/text",
            json!(""),
            "the text of block 0 of the content of `messages[0]` is empty",
        );
        check_bad(
            "/messages/0/content/0/type",
            Value::Null,
            "block 0 of the content of `messages[0]` has no type",
        );
    }

    #[test]
    fn every_call_is_answered_exactly_once_and_first() {
        check_bad("/messages/2/content/0", Value::Null, "the tool use `b` is not answered in `messages[2]`");
        check_bad(
            "/messages/4/content",
            json!([{"type": "tool_result", "tool_use_id": "a"}]),
            "block 0 of the content of `messages[4]` answers `a`, which the message before it did not call",
        );
        let result = json!({"type": "tool_result", "tool_use_id": "a"});
        check_bad(
            "/messages/2/content",
            json!([{"type": "tool_result", "tool_use_id": "b"}, result, result]),
            "block 2 of the content of `messages[2]` answers `a` a second time",
        );
        check_bad(
            "/messages/2/content",
            json!([{"type": "tool_result", "tool_use_id": "b"}, {"type": "text", "text": "x"}, result]),
            "block 2 of the content of `messages[2]` is a tool result after other content",
        );
        check_bad(
            "/messages/3/content",
            json!([{"type": "tool_use", "id": "c", "name": "read", "input": {}}]),
            "the tool use `c` is not answered in `messages[4]`",
        );
    }

    #[test]
    fn blocks_are_well_formed() {
        check_bad(
            "/messages/1/content/0/signature",
            Value::Null,
            "the signature of block 0 of the content of `messages[1]` is missing",
        );
        check_bad(
            "/messages/1/content/2/input",
            json!("{}"),
            "the input of block 2 of the content of `messages[1]` is not an object",
        );
        check_bad(
            "/messages/3/content",
            json!([{"type": "tool_result", "tool_use_id": "a"}]),
            "block 0 of the content of `messages[3]` is a tool result in an assistant message",
        );
    }
}
