//! The rules of Cohere.

use serde_json::Value;

use crate::protocol::picture::{self, Pictures};
use crate::protocol::{Problems, rules};

/// Limit of a tool's name.
const TOOL_NAME_LIMIT_BYTES: usize = 64;

/// Adds all problems of a body.
pub(crate) fn check(body: &Value, problems: &mut Problems) {
    problems.text("`model`", &body["model"]);
    if !matches!(body["stream"], Value::Null | Value::Bool(_)) {
        problems.add("`stream` is not a boolean");
    }
    // Without a choice, the model decides.
    if !matches!(body["tool_choice"].as_str(), None | Some("REQUIRED" | "NONE")) {
        problems.add(format!("`tool_choice` is {} and not `REQUIRED` or `NONE`", body["tool_choice"]));
    }
    if body["tools"].is_null() && !body["tool_choice"].is_null() {
        problems.add("`tool_choice` is set without `tools`");
    }
    rules::function_tools(&body["tools"], TOOL_NAME_LIMIT_BYTES, problems);
    for tool in body["tools"].as_array().into_iter().flatten() {
        let name = tool["function"]["name"].as_str().unwrap_or_default();
        if name.contains('-') || name.starts_with(|c: char| c.is_ascii_digit()) {
            problems.add(format!("the name `{name}` of a tool is no identifier"));
        }
    }
    if let Some(messages) = problems.list("`messages`", &body["messages"]) {
        let mut pictures = Pictures::default();
        for (n, message) in messages.iter().enumerate() {
            for part in message["content"].as_array().into_iter().flatten() {
                pictures.add_address(&format!("a part of `messages[{n}]`"), &part["image_url"]["url"]);
            }
        }
        pictures.check(picture::Rules { most: 20, ..picture::USUAL }, problems);
        conversation(messages, problems);
    }
}

fn conversation(messages: &[Value], problems: &mut Problems) {
    // The calls of the last answer that wait for their results.
    let mut waiting: Vec<&str> = Vec::new();
    for (n, message) in messages.iter().enumerate() {
        let at = format!("`messages[{n}]`");
        let role = message["role"].as_str().unwrap_or_default();
        if role != "tool" && !waiting.is_empty() {
            problems.add(format!("the calls [{}] are not answered before {at}", waiting.join(", ")));
            waiting.clear();
        }
        match role {
            "system" | "user" => content(&at, &message["content"], problems),
            "assistant" => waiting = assistant(&at, message, problems),
            "tool" => {
                content(&at, &message["content"], problems);
                let id = message["tool_call_id"].as_str().unwrap_or_default();
                match waiting.iter().position(|call| *call == id) {
                    Some(place) => drop(waiting.remove(place)),
                    None => problems.add(format!("{at} answers `{id}`, which is no call that waits")),
                }
            }
            "" => problems.add(format!("{at} has no role")),
            role => problems.add(format!("{at} has the unknown role `{role}`")),
        }
    }
    if !waiting.is_empty() {
        problems.add(format!("the calls [{}] are not answered before the end", waiting.join(", ")));
    }
    if messages.last().is_some_and(|last| !matches!(last["role"].as_str(), Some("user" | "tool"))) {
        problems.add("the last message is neither the user's nor a result");
    }
}

/// Checks for text, or for a list of parts that are not empty.
fn content(at: &str, content: &Value, problems: &mut Problems) {
    let at = format!("the content of {at}");
    if !content.is_array() {
        if problems.text(&at, content).is_some_and(|text| text.trim().is_empty()) {
            problems.add(format!("{at} is blank"));
        }
        return;
    }
    for (n, part) in problems.list(&at, content).unwrap_or_default().iter().enumerate() {
        let at = format!("part {n} of {at}");
        let (what, value) = match part["type"].as_str() {
            Some("text") => ("text", &part["text"]),
            Some("thinking") => ("thought", &part["thinking"]),
            Some("image_url") => ("address", &part["image_url"]["url"]),
            Some("document" | "tool_content") => continue,
            Some(kind) => {
                problems.add(format!("{at} has the unknown type `{kind}`"));
                continue;
            }
            None => {
                problems.add(format!("{at} has no type"));
                continue;
            }
        };
        problems.text(&format!("the {what} of {at}"), value);
    }
}

/// Checks an answer of the model and returns the call ids.
fn assistant<'a>(at: &str, message: &'a Value, problems: &mut Problems) -> Vec<&'a str> {
    if message["tool_calls"].is_null() {
        if !message["tool_plan"].is_null() {
            problems.add(format!("{at} has a plan and no calls"));
        }
        content(at, &message["content"], problems);
        return Vec::new();
    }
    if !message["content"].is_null() {
        content(at, &message["content"], problems);
    }
    let mut ids = Vec::new();
    let calls = problems.list(&format!("the calls of {at}"), &message["tool_calls"]).unwrap_or_default();
    for (n, call) in calls.iter().enumerate() {
        let at = format!("call {n} of {at}");
        if call["type"] != "function" {
            problems.add(format!("{at} is not of type `function`"));
        }
        rules::call_id(&at, &call["id"], &mut ids, problems);
        problems.text(&format!("the name of {at}"), &call["function"]["name"]);
        let arguments = problems.text(&format!("the arguments of {at}"), &call["function"]["arguments"]);
        let is_object =
            |text: &str| serde_json::from_str::<Value>(text).is_ok_and(|arguments| arguments.is_object());
        if arguments.is_some_and(|text| !is_object(text)) {
            problems.add(format!("the arguments of {at} are not the JSON of an object"));
        }
    }
    ids
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::protocol::problems::change;

    fn good() -> Value {
        let call =
            |id: &str| json!({"id": id, "type": "function", "function": {"name": "read", "arguments": "{}"}});
        json!({
            "model": "command", "stream": true, "tool_choice": "REQUIRED",
            "tools": [{"type": "function", "function": {"name": "read", "parameters": {"type": "object"}}}],
            "messages": [
                {"role": "system", "content": "Be good."},
                {"role": "user", "content": [{"type": "text", "text": "Look"},
                    {"type": "image_url", "image_url": {"url": "data:,"}}]},
                {"role": "assistant", "tool_plan": "I look.", "tool_calls": [call("a"), call("b")]},
                {"role": "tool", "tool_call_id": "b", "content": "x"},
                {"role": "tool", "tool_call_id": "a", "content": "y"},
                {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "Done."}]},
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
    fn options_and_tools_are_well_formed() {
        check_bad("/model", Value::Null, "`model` is missing");
        check_bad("/stream", json!("yes"), "`stream` is not a boolean");
        check_bad("/tool_choice", json!("auto"), "`tool_choice` is \"auto\" and not `REQUIRED` or `NONE`");
        check_bad("/tools", Value::Null, "`tool_choice` is set without `tools`");
        check_bad(
            "/tools/0/function/parameters",
            Value::Null,
            "the parameters of `tools[0]` are not a schema of type `object`",
        );
        check_bad("/tools/0/type", Value::Null, "`tools[0]` is not of type `function`");
    }

    #[test]
    fn every_call_is_answered() {
        check_bad("/messages/3", Value::Null, "the calls [b] are not answered before `messages[4]`");
        let mut body = good();
        change(&mut body, "/messages/4/tool_call_id", json!("b"));
        assert_eq!(
            problems(&body),
            [
                "`messages[4]` answers `b`, which is no call that waits",
                "the calls [a] are not answered before `messages[5]`"
            ]
        );
        let mut body = good();
        for _ in 0..2 {
            change(&mut body, "/messages/5", Value::Null);
        }
        assert_eq!(problems(&body), [""; 0]);
        change(&mut body, "/messages/4", Value::Null);
        assert_eq!(problems(&body), ["the calls [a] are not answered before the end"]);
    }

    #[test]
    fn messages_are_well_formed() {
        check_bad("/messages/6/content", json!(" "), "the content of `messages[6]` is blank");
        check_bad("/messages/1/role", json!("robot"), "`messages[1]` has the unknown role `robot`");
        check_bad("/messages/6", Value::Null, "the last message is neither the user's nor a result");
        check_bad("/messages/5/tool_plan", json!("p"), "`messages[5]` has a plan and no calls");
        check_bad(
            "/messages/1/content/0/type",
            Value::Null,
            "part 0 of the content of `messages[1]` has no type",
        );
        check_bad(
            "/messages/2/tool_calls/0/function/arguments",
            json!("[]"),
            "the arguments of call 0 of `messages[2]` are not the JSON of an object",
        );
    }
}
