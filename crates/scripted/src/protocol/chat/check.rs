//! The rules of Chat Completions providers.

use serde_json::Value;

use crate::protocol::picture::{self, Pictures};
use crate::protocol::{Problems, rules};

/// Limit of a tool's name.
const TOOL_NAME_LIMIT_BYTES: usize = 64;
/// Limit of a call's id.
const CALL_ID_LIMIT_BYTES: usize = 40;

/// Adds all problems of a body.
pub(crate) fn check(body: &Value, problems: &mut Problems) {
    problems.text("`model`", &body["model"]);
    options(body, problems);
    rules::function_tools(&body["tools"], TOOL_NAME_LIMIT_BYTES, problems);
    if let Some(messages) = problems.list("`messages`", &body["messages"]) {
        conversation(messages, problems);
    }
}

fn options(body: &Value, problems: &mut Problems) {
    let streams = match &body["stream"] {
        Value::Null => false,
        Value::Bool(streams) => *streams,
        Value::Number(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => {
            problems.add("`stream` is not a boolean");
            return;
        }
    };
    let includes_usage = body["stream_options"]["include_usage"] == true;
    if streams && !includes_usage {
        problems.add("`stream_options.include_usage` is not set, so the stream would carry no usage");
    }
    if !streams && !body["stream_options"].is_null() {
        problems.add("`stream_options` is set without `stream`");
    }
    if body["tools"].is_null() && !body["tool_choice"].is_null() {
        problems.add("`tool_choice` is set without `tools`");
    }
}

/// The calls of the last assistant message that wait for their results.
#[derive(Default)]
struct Calls<'a> {
    all: Vec<&'a str>,
    answered: Vec<&'a str>,
}

impl Calls<'_> {
    /// Ends the group of calls. Reports the ones without a result.
    fn end(&mut self, at: &str, problems: &mut Problems) {
        for id in self.all.iter().filter(|id| !self.answered.contains(id)) {
            problems.add(format!("the tool call `{id}` is not answered before {at}"));
        }
        *self = Self::default();
    }
}

/// Checks what holds in the whole conversation: pictures, and the ids of calls.
fn whole(messages: &[Value], problems: &mut Problems) {
    let mut pictures = Pictures::default();
    let mut used: Vec<&str> = Vec::new();
    for (n, message) in messages.iter().enumerate() {
        for (part, value) in message["content"].as_array().into_iter().flatten().enumerate() {
            pictures.add_address(&format!("part {part} of `messages[{n}]`"), &value["image_url"]["url"]);
        }
        for call in message["tool_calls"].as_array().into_iter().flatten() {
            let id = call["id"].as_str().unwrap_or_default();
            if used.contains(&id) {
                problems.add(format!("`messages[{n}]` uses the id `{id}` of another call"));
            }
            if id.len() > CALL_ID_LIMIT_BYTES {
                problems.add(format!(
                    "the id `{id}` in `messages[{n}]` is longer than {CALL_ID_LIMIT_BYTES} bytes"
                ));
            }
            used.push(id);
        }
    }
    pictures.check(picture::USUAL, problems);
}

fn conversation(messages: &[Value], problems: &mut Problems) {
    whole(messages, problems);
    let mut calls = Calls::default();
    let mut spoken = false;
    for (n, message) in messages.iter().enumerate() {
        let at = format!("`messages[{n}]`");
        match message["role"].as_str() {
            Some(role @ ("system" | "developer")) => {
                calls.end(&at, problems);
                if spoken {
                    problems.add(format!("{at} has the role `{role}` after the conversation began"));
                }
                content(&at, &message["content"], problems);
            }
            Some("user") => {
                calls.end(&at, problems);
                content(&at, &message["content"], problems);
                spoken = true;
            }
            Some("assistant") => {
                calls.end(&at, problems);
                calls.all = assistant(&at, message, problems);
                spoken = true;
            }
            Some("tool") => {
                result(&at, message, &mut calls, problems);
                spoken = true;
            }
            Some(role) => problems.add(format!("{at} has the unknown role `{role}`")),
            None => problems.add(format!("{at} has no role")),
        }
    }
    if !spoken {
        problems.add("`messages` has nothing but system messages");
    }
    calls.end("the end", problems);
}

fn content(at: &str, content: &Value, problems: &mut Problems) {
    let at = format!("the content of {at}");
    if let Value::String(_) = content {
        problems.text(&at, content);
        return;
    }
    let Some(parts) = problems.list(&at, content) else { return };
    for (n, part) in parts.iter().enumerate() {
        let at = format!("part {n} of {at}");
        match part["type"].as_str() {
            Some("text") => {
                problems.text(&format!("the text of {at}"), &part["text"]);
            }
            Some("image_url") => {
                problems.text(&format!("the address of {at}"), &part["image_url"]["url"]);
            }
            Some("input_audio" | "file") => {}
            Some("refusal") => {
                problems.text(&format!("the refusal of {at}"), &part["refusal"]);
            }
            Some(kind) => problems.add(format!("{at} has the unknown type `{kind}`")),
            None => problems.add(format!("{at} has no type")),
        }
    }
}

/// Checks an assistant message and returns the call ids.
fn assistant<'a>(at: &str, message: &'a Value, problems: &mut Problems) -> Vec<&'a str> {
    let has_calls = !message["tool_calls"].is_null();
    let is_blank = message["content"].is_null() || message["content"] == "";
    if !is_blank {
        content(at, &message["content"], problems);
    }
    if !has_calls {
        if is_blank {
            problems.add(format!("{at} has neither content nor tool calls"));
        }
        return Vec::new();
    }
    let mut ids = Vec::new();
    let list = problems.list(&format!("the tool calls of {at}"), &message["tool_calls"]).unwrap_or_default();
    for (n, call) in list.iter().enumerate() {
        let at = format!("tool call {n} of {at}");
        if call["type"] != "function" {
            problems.add(format!("{at} is not of type `function`"));
        }
        problems.text(&format!("the name of {at}"), &call["function"]["name"]);
        rules::arguments(&at, &call["function"]["arguments"], problems);
        rules::call_id(&at, &call["id"], &mut ids, problems);
    }
    ids
}

fn result<'a>(at: &str, message: &'a Value, calls: &mut Calls<'a>, problems: &mut Problems) {
    match &message["content"] {
        Value::String(_) => {}
        Value::Array(_) => content(at, &message["content"], problems),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => {
            problems.add(format!("the content of {at} is neither a string nor a list"));
        }
    }
    let Some(id) = problems.text(&format!("the tool_call_id of {at}"), &message["tool_call_id"]) else {
        return;
    };
    if !calls.all.contains(&id) {
        problems.add(format!("{at} answers `{id}`, which the assistant message before it did not call"));
    } else if calls.answered.contains(&id) {
        problems.add(format!("{at} answers `{id}` a second time"));
    }
    calls.answered.push(id);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::protocol::problems::change;

    fn good() -> Value {
        json!({
            "model": "plain-model",
            "stream": true,
            "stream_options": {"include_usage": true},
            "tool_choice": "auto",
            "tools": [
                {"type": "function", "function": {"name": "read", "parameters": {"type": "object"}}},
                {"type": "function", "function": {"name": "bash", "parameters": {"type": "object"}}},
            ],
            "messages": [
                {"role": "system", "content": "Be good."},
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": [{"type": "text", "text": "Look"},
                    {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA="}}]},
                {"role": "assistant", "content": "", "tool_calls": [
                    {"id": "a", "type": "function", "function": {"name": "read", "arguments": "{}"}},
                    {"id": "b", "type": "function", "function": {"name": "bash", "arguments": "{\"x\":1}"}}]},
                {"role": "tool", "tool_call_id": "b", "content": ""},
                {"role": "tool", "tool_call_id": "a", "content": "text"},
                {"role": "assistant", "content": "Done."},
                {"role": "user", "content": "More"},
            ],
        })
    }

    fn problems(body: &Value) -> Vec<String> {
        let mut problems = Problems::default();
        check(body, &mut problems);
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
    fn the_options_are_checked() {
        check_bad("/model", Value::Null, "`model` is missing");
        check_bad("/model", json!(3), "`model` is not a string");
        check_bad("/stream", json!("yes"), "`stream` is not a boolean");
        check_bad("/stream", Value::Null, "`stream_options` is set without `stream`");
        check_bad(
            "/stream_options",
            Value::Null,
            "`stream_options.include_usage` is not set, so the stream would carry no usage",
        );
        check_bad("/tools", Value::Null, "`tool_choice` is set without `tools`");
    }

    #[test]
    fn tools_are_checked() {
        check_bad("/tools", json!([]), "`tools` is empty");
        check_bad("/tools/0/type", json!("x"), "`tools[0]` is not of type `function`");
        check_bad("/tools/0/function/name", json!("bash"), "`tools[1]` has the name `bash` a second time");
        check_bad(
            "/tools/0/function/name",
            json!("a.b"),
            "the name of `tools[0]`, `a.b`, is not 1 to 64 of `a-zA-Z0-9_-`",
        );
        check_bad("/tools/0/function/name", Value::Null, "the name of `tools[0]` is missing");
        check_bad(
            "/tools/1/function/parameters",
            json!({}),
            "the parameters of `tools[1]` are not a schema of type `object`",
        );
    }

    #[test]
    fn roles_are_in_order() {
        check_bad("/messages", json!([]), "`messages` is empty");
        check_bad("/messages/7/role", json!("robot"), "`messages[7]` has the unknown role `robot`");
        check_bad("/messages/7/role", Value::Null, "`messages[7]` has no role");
        check_bad(
            "/messages/7/role",
            json!("system"),
            "`messages[7]` has the role `system` after the conversation began",
        );
        check_bad(
            "/messages",
            json!([{"role": "system", "content": "Be good."}]),
            "`messages` has nothing but system messages",
        );
    }

    #[test]
    fn content_is_never_empty() {
        check_bad("/messages/0/content", json!(""), "the content of `messages[0]` is empty");
        check_bad("/messages/7/content", json!([]), "the content of `messages[7]` is empty");
        check_bad("/messages/7/content", Value::Null, "the content of `messages[7]` is missing");
        check_bad(
            "/messages/2/content/0/text",
            json!(""),
            "the text of part 0 of the content of `messages[2]` is empty",
        );
        check_bad(
            "/messages/2/content/1/type",
            json!("picture"),
            "part 1 of the content of `messages[2]` has the unknown type `picture`",
        );
        check_bad("/messages/6/content", json!(""), "`messages[6]` has neither content nor tool calls");
        check_bad(
            "/messages/4/content",
            Value::Null,
            "the content of `messages[4]` is neither a string nor a list",
        );
    }

    #[test]
    fn every_call_is_answered_exactly_once() {
        check_bad("/messages/4", Value::Null, "the tool call `b` is not answered before `messages[5]`");
        check_bad(
            "/messages/7",
            json!({"role": "tool", "tool_call_id": "a", "content": "x"}),
            "`messages[7]` answers `a`, which the assistant message before it did not call",
        );
        check_bad(
            "/messages/6",
            json!({"role": "tool", "tool_call_id": "a", "content": "x"}),
            "`messages[6]` answers `a` a second time",
        );
        check_bad(
            "/messages/7",
            json!({"role": "assistant", "tool_calls": [
                {"id": "c", "type": "function", "function": {"name": "read", "arguments": "{}"}}]}),
            "the tool call `c` is not answered before the end",
        );
        check_bad(
            "/messages/6",
            json!({"role": "tool", "tool_call_id": "", "content": "x"}),
            "the tool_call_id of `messages[6]` is empty",
        );
    }

    #[test]
    fn calls_are_well_formed() {
        let call = "/messages/3/tool_calls/1";
        check_bad(
            &format!("{call}/function/arguments"),
            json!({}),
            "the arguments of tool call 1 of `messages[3]` are not a string",
        );
        check_bad(
            &format!("{call}/function/arguments"),
            json!("[]"),
            "the arguments of tool call 1 of `messages[3]` are not a JSON object",
        );
        check_bad(
            &format!("{call}/function/arguments"),
            json!("{"),
            "the arguments of tool call 1 of `messages[3]` are not JSON: EOF while parsing an object at line 1 column 1",
        );
        check_bad(
            &format!("{call}/function/name"),
            Value::Null,
            "the name of tool call 1 of `messages[3]` is missing",
        );
        check_bad(
            &format!("{call}/type"),
            Value::Null,
            "tool call 1 of `messages[3]` is not of type `function`",
        );
    }
}
