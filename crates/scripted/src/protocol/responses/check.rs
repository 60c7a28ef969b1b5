//! The rules of Responses providers.

use serde_json::Value;

use crate::protocol::Problems;
use crate::protocol::picture::{self, Pictures};
use crate::protocol::rules::{self, ToolNames};

/// Limit of a function's name.
const NAME_LIMIT_BYTES: usize = 64;
/// Limit of a call's id.
const CALL_ID_LIMIT_BYTES: usize = 64;
/// The lowest allowed output limit.
const OUTPUT_LEAST_TOKENS: u64 = 16;
/// The known fields of a request. Others are rejected.
const FIELDS: &[&str] = &[
    "background",
    "conversation",
    "include",
    "input",
    "instructions",
    "max_output_tokens",
    "max_tool_calls",
    "metadata",
    "model",
    "parallel_tool_calls",
    "previous_response_id",
    "prompt",
    "prompt_cache_key",
    "prompt_cache_retention",
    "reasoning",
    "safety_identifier",
    "service_tier",
    "store",
    "stream",
    "stream_options",
    "temperature",
    "text",
    "tool_choice",
    "tools",
    "top_logprobs",
    "top_p",
    "truncation",
    "user",
];
/// The known values of `include`.
const INCLUDES: &[&str] = &[
    "code_interpreter_call.outputs",
    "computer_call_output.output.image_url",
    "file_search_call.results",
    "message.input_image.image_url",
    "message.output_text.logprobs",
    "reasoning.encrypted_content",
    "web_search_call.action.sources",
    "web_search_call.results",
];
/// Keywords of schemas that this protocol rejects in tools.
const UNSUPPORTED_KEYWORDS: &[&str] = &["$schema", "$id", "$comment"];

/// Adds all problems of a request.
pub(crate) fn check(body: &Value, problems: &mut Problems) {
    let model = problems.text("`model`", &body["model"]).unwrap_or_default();
    for name in body.as_object().into_iter().flat_map(|body| body.keys()) {
        if !FIELDS.contains(&name.as_str()) {
            problems.add(format!("`{name}` is not a field of this protocol"));
        }
    }
    options(body, problems);
    thinking(model, body, problems);
    tools(body, problems);
    match &body["input"] {
        text @ Value::String(_) => drop(problems.text("`input`", text)),
        input => {
            if let Some(items) = problems.list("`input`", input) {
                conversation(items, body["store"] != false, problems);
            }
        }
    }
}

fn options(body: &Value, problems: &mut Problems) {
    for name in ["stream", "store", "parallel_tool_calls", "background"] {
        if !body[name].is_null() && !body[name].is_boolean() {
            problems.add(format!("`{name}` is not a boolean"));
        }
    }
    for name in ["prompt_cache_key", "instructions", "previous_response_id"] {
        if !body[name].is_null() {
            problems.text(&format!("`{name}`"), &body[name]);
        }
    }
    let least = &body["max_output_tokens"];
    if !least.is_null() && least.as_u64().is_none_or(|tokens| tokens < OUTPUT_LEAST_TOKENS) {
        problems.add(format!("`max_output_tokens` is not a number of at least {OUTPUT_LEAST_TOKENS}"));
    }
    if !body["include"].is_null() {
        for word in problems.list("`include`", &body["include"]).unwrap_or_default() {
            if word.as_str().is_none_or(|word| !INCLUDES.contains(&word)) {
                problems.add(format!("`include` has the unknown word `{word}`"));
            }
        }
    }
}

fn thinking(model: &str, body: &Value, problems: &mut Problems) {
    let reasoning = &body["reasoning"];
    if !reasoning.is_null() && !reasoning.is_object() {
        problems.add("`reasoning` is not an object");
    }
    let mut word = |name: &str, allowed: &[&str]| {
        let word = &reasoning[name];
        if !word.is_null() && word.as_str().is_none_or(|word| !allowed.contains(&word)) {
            problems.add(format!("the {name} of `reasoning` is {word}"));
        }
    };
    word("effort", &["none", "minimal", "low", "medium", "high", "xhigh", "max"]);
    word("summary", &["auto", "concise", "detailed"]);
    let thinks = ["o1", "o3", "o4", "gpt-5"].iter().any(|family| model.starts_with(family))
        && !model.starts_with("gpt-5-chat");
    for name in ["temperature", "top_p"] {
        if thinks && reasoning["effort"] != "none" && !body[name].is_null() {
            problems.add(format!("`{name}` is set for a model that thinks"));
        }
    }
}

fn tools(body: &Value, problems: &mut Problems) {
    if body["tools"].is_null() {
        if !body["tool_choice"].is_null() {
            problems.add("`tool_choice` is set without `tools`");
        }
        return;
    }
    let mut names = ToolNames::new(NAME_LIMIT_BYTES);
    let tools = problems.list("`tools`", &body["tools"]).unwrap_or_default();
    if tools.len() > rules::TOOLS_LIMIT {
        problems.add(format!(
            "there are {} tools, and at most {} are allowed",
            tools.len(),
            rules::TOOLS_LIMIT
        ));
    }
    for (n, tool) in tools.iter().enumerate() {
        let at = format!("`tools[{n}]`");
        let is_function = match tool["type"].as_str() {
            Some("function") => true,
            Some("custom") => false,
            // The server's own tools have no names.
            Some(_) => continue,
            None => {
                problems.add(format!("{at} has no type"));
                continue;
            }
        };
        names.check(&at, &tool["name"], problems);
        if is_function {
            function(&at, tool, problems);
        }
    }
}

fn function(at: &str, tool: &Value, problems: &mut Problems) {
    if !tool["strict"].is_boolean() {
        problems.add(format!("{at} does not say whether it is `strict`"));
    }
    let parameters = &tool["parameters"];
    rules::plain_top(at, parameters, problems);
    rules::items(at, parameters, problems);
    if parameters["type"] != "object" || !parameters["properties"].is_object() {
        problems.add(format!("the parameters of {at} are not an object with `properties`"));
    }
    for word in UNSUPPORTED_KEYWORDS.iter().filter(|word| parameters.get(**word).is_some()) {
        problems.add(format!("the parameters of {at} have the unknown word `{word}`"));
    }
}

/// The calls that wait for their results.
#[derive(Default)]
struct Calls<'a> {
    all: Vec<&'a str>,
    answered: Vec<&'a str>,
}

impl<'a> Calls<'a> {
    fn add(&mut self, at: &str, item: &'a Value, problems: &mut Problems) {
        let Some(id) = problems.text(&format!("the call_id of {at}"), &item["call_id"]) else { return };
        if id.len() > CALL_ID_LIMIT_BYTES {
            problems.add(format!("the call_id of {at} is longer than {CALL_ID_LIMIT_BYTES} bytes"));
        }
        if self.all.contains(&id) {
            problems.add(format!("{at} has the call_id `{id}` a second time"));
        }
        self.all.push(id);
    }

    fn answer(&mut self, at: &str, item: &'a Value, problems: &mut Problems) {
        let Some(id) = problems.text(&format!("the call_id of {at}"), &item["call_id"]) else { return };
        if !self.all.contains(&id) {
            problems.add(format!("{at} answers `{id}`, which was not called before it"));
        } else if self.answered.contains(&id) {
            problems.add(format!("{at} answers `{id}` a second time"));
        }
        self.answered.push(id);
    }

    /// Reports the calls without a result, each once.
    fn end(&mut self, at: &str, problems: &mut Problems) {
        for id in self.all.iter().filter(|id| !self.answered.contains(id)) {
            problems.add(format!("the call `{id}` is not answered before {at}"));
        }
        // Later items may still repeat one of these ids.
        self.answered.clone_from(&self.all);
    }
}

fn conversation(items: &[Value], is_stored: bool, problems: &mut Problems) {
    let mut pictures = Pictures::default();
    for (n, item) in items.iter().enumerate() {
        for part in [&item["content"], &item["output"]].into_iter().filter_map(Value::as_array).flatten() {
            pictures.add_address(&format!("a part of `input[{n}]`"), &part["image_url"]);
        }
    }
    pictures.check(picture::USUAL, problems);
    let mut calls = Calls::default();
    let mut spoken = false;
    let mut thought: Option<String> = None;
    for (n, item) in items.iter().enumerate() {
        let at = format!("`input[{n}]`");
        let kind = item["type"].as_str().unwrap_or("message");
        let role = item["role"].as_str();
        let follows_thought = matches!(kind, "reasoning" | "function_call" | "custom_tool_call")
            || (kind == "message" && role == Some("assistant"));
        if let Some(thought) = thought.take().filter(|_| !follows_thought) {
            problems.add(format!("the thought {thought} is followed by nothing of the model's"));
        }
        let is_system = kind == "message" && matches!(role, Some("system" | "developer"));
        if is_system && spoken {
            problems.add(format!("{at} is a system message after the conversation began"));
        }
        spoken |= !is_system;
        match kind {
            "message" => {
                if role != Some("assistant") {
                    calls.end(&at, problems);
                }
                message(&at, item, problems);
            }
            "reasoning" => {
                reasoning(&at, item, is_stored, problems);
                thought = Some(at);
            }
            "function_call" => {
                problems.text(&format!("the name of {at}"), &item["name"]);
                rules::arguments(&at, &item["arguments"], problems);
                calls.add(&at, item, problems);
            }
            "custom_tool_call" => {
                problems.text(&format!("the name of {at}"), &item["name"]);
                if !item["input"].is_string() {
                    problems.add(format!("the input of {at} is not a string"));
                }
                calls.add(&at, item, problems);
            }
            "function_call_output" | "custom_tool_call_output" => {
                output(&at, &item["output"], problems);
                calls.answer(&at, item, problems);
            }
            "item_reference" if is_stored => drop(problems.text(&format!("the id of {at}"), &item["id"])),
            "item_reference" => problems.add(format!("{at} refers to what was not stored")),
            kind => problems.add(format!("{at} has the unknown type `{kind}`")),
        }
    }
    if let Some(thought) = thought {
        problems.add(format!("the thought {thought} is followed by nothing of the model's"));
    }
    if !spoken {
        problems.add("`input` has nothing but system messages");
    }
    calls.end("the end", problems);
}

fn message(at: &str, item: &Value, problems: &mut Problems) {
    let allowed: &[&str] = match item["role"].as_str() {
        Some("user") => &["input_text", "input_image", "input_file"],
        Some("system" | "developer") => &["input_text"],
        Some("assistant") => &["output_text", "refusal"],
        Some(role) => return problems.add(format!("{at} has the unknown role `{role}`")),
        None => return problems.add(format!("{at} has no role")),
    };
    let at = format!("the content of {at}");
    match &item["content"] {
        text @ Value::String(_) => drop(problems.text(&at, text)),
        content => parts(&at, content, allowed, problems),
    }
}

fn parts(at: &str, content: &Value, allowed: &[&str], problems: &mut Problems) {
    for (n, part) in problems.list(at, content).unwrap_or_default().iter().enumerate() {
        let at = format!("part {n} of {at}");
        let kind = part["type"].as_str().unwrap_or_default();
        if !allowed.contains(&kind) {
            problems.add(format!("{at} has the type `{kind}`, which has no place there"));
            continue;
        }
        let fields: &[&str] = match kind {
            "input_image" => &["image_url", "file_id"],
            "input_file" => &["file_data", "file_url", "file_id"],
            "refusal" => &["refusal"],
            _ => &["text"],
        };
        // One of the fields is enough. The first is named if all are missing.
        let field = fields.iter().find(|field| !part[**field].is_null()).unwrap_or(&fields[0]);
        problems.text(&format!("the {field} of {at}"), &part[*field]);
        if kind == "input_file" && !part["file_data"].is_null() {
            problems.text(&format!("the filename of {at}"), &part["filename"]);
        }
    }
}

/// Checks a reasoning item. It must be encrypted; an id is enough only if the item was stored.
fn reasoning(at: &str, item: &Value, is_stored: bool, problems: &mut Problems) {
    match (&item["encrypted_content"], &item["id"]) {
        (Value::Null, Value::String(id)) if is_stored && !id.is_empty() => {}
        (Value::Null, Value::String(_)) => {
            problems.add(format!("{at} has an id and no encrypted_content, but nothing was stored"));
        }
        (sealed, _) => drop(problems.text(&format!("the encrypted_content of {at}"), sealed)),
    }
    let Some(summary) = item["summary"].as_array() else {
        problems.add(format!("the summary of {at} is not a list"));
        return;
    };
    if !summary.is_empty() {
        parts(&format!("the summary of {at}"), &item["summary"], &["summary_text"], problems);
    }
}

fn output(at: &str, output: &Value, problems: &mut Problems) {
    match output {
        Value::String(_) => {}
        Value::Array(_) => {
            let allowed = ["input_text", "input_image", "input_file"];
            parts(&format!("the output of {at}"), output, &allowed, problems);
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => {
            problems.add(format!("the output of {at} is neither a string nor a list"));
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
            "model": "gpt-5",
            "stream": true,
            "store": false,
            "include": ["reasoning.encrypted_content"],
            "prompt_cache_key": "ses_1",
            "reasoning": {"effort": "medium", "summary": "auto"},
            "tool_choice": "auto",
            "tools": [
                {"type": "function", "name": "read", "strict": false,
                    "parameters": {"type": "object", "properties": {"p": {"type": "string"}}}},
                {"type": "custom", "name": "patch"},
                {"type": "web_search"},
            ],
            "input": [
                {"role": "developer", "content": "Be good."},
                {"role": "user", "content": [{"type": "input_text", "text": "Look"},
                    {"type": "input_image", "image_url": "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA="},
                    {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,AA=="}]},
                {"type": "reasoning", "encrypted_content": "x",
                    "summary": [{"type": "summary_text", "text": "hm"}]},
                {"role": "assistant", "content": [{"type": "output_text", "text": "Looking."}]},
                {"type": "function_call", "call_id": "a", "name": "read", "arguments": "{}"},
                {"type": "custom_tool_call", "call_id": "b", "name": "patch", "input": "*** Begin"},
                {"type": "custom_tool_call_output", "call_id": "b", "output": "done"},
                {"type": "function_call_output", "call_id": "a",
                    "output": [{"type": "input_text", "text": "x"}]},
                {"role": "assistant", "content": [{"type": "output_text", "text": "Done."}]},
                {"role": "user", "content": [{"type": "input_text", "text": "More"}]},
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
        assert_eq!(problems(&json!({"model": "m", "input": "Hi"})), [""; 0]);
    }

    #[test]
    fn the_options_are_checked() {
        check_bad("/model", Value::Null, "`model` is missing");
        check_bad("/stream", json!("yes"), "`stream` is not a boolean");
        check_bad("/store", json!(0), "`store` is not a boolean");
        check_bad("/max_tokens", json!(100), "`max_tokens` is not a field of this protocol");
        check_bad("/max_output_tokens", json!(1), "`max_output_tokens` is not a number of at least 16");
        check_bad("/include", json!(["thoughts"]), "`include` has the unknown word `\"thoughts\"`");
        check_bad("/prompt_cache_key", json!(""), "`prompt_cache_key` is empty");
        check_bad("/reasoning", json!({"effort": "much"}), "the effort of `reasoning` is \"much\"");
        check_bad("/reasoning", json!("low"), "`reasoning` is not an object");
        check_bad("/temperature", json!(0.5), "`temperature` is set for a model that thinks");
        check_bad("/tools", Value::Null, "`tool_choice` is set without `tools`");
    }

    #[test]
    fn tools_are_checked() {
        check_bad("/tools", json!([]), "`tools` is empty");
        check_bad("/tools/0/type", Value::Null, "`tools[0]` has no type");
        check_bad("/tools/1/name", json!("read"), "`tools[1]` has the name `read` a second time");
        check_bad(
            "/tools/0/name",
            json!("a.b"),
            "the name of `tools[0]`, `a.b`, is not 1 to 64 of `a-zA-Z0-9_-`",
        );
        check_bad("/tools/0/strict", Value::Null, "`tools[0]` does not say whether it is `strict`");
        check_bad(
            "/tools/0/parameters/properties",
            Value::Null,
            "the parameters of `tools[0]` are not an object with `properties`",
        );
        check_bad(
            "/tools/0/parameters/$schema",
            json!("x"),
            "the parameters of `tools[0]` have the unknown word `$schema`",
        );
    }

    #[test]
    fn items_are_in_order_and_well_formed() {
        check_bad("/input", json!([]), "`input` is empty");
        check_bad("/input/9/role", json!("robot"), "`input[9]` has the unknown role `robot`");
        check_bad("/input/9/type", json!("thing"), "`input[9]` has the unknown type `thing`");
        check_bad(
            "/input/9/role",
            json!("system"),
            "`input[9]` is a system message after the conversation began",
        );
        check_bad(
            "/input",
            json!([{"role": "developer", "content": "Be good."}]),
            "`input` has nothing but system messages",
        );
        check_bad("/input/0/content", json!(""), "the content of `input[0]` is empty");
        check_bad("/input/9/content", json!([]), "the content of `input[9]` is empty");
        check_bad(
            "/input/1/content/0/text",
            json!(""),
            "the text of part 0 of the content of `input[1]` is empty",
        );
        check_bad(
            "/input/1/content/2/filename",
            Value::Null,
            "the filename of part 2 of the content of `input[1]` is missing",
        );
        check_bad(
            "/input/8/content/0/type",
            json!("input_text"),
            "part 0 of the content of `input[8]` has the type `input_text`, which has no place there",
        );
        check_bad("/input/7/output", Value::Null, "the output of `input[7]` is neither a string nor a list");
    }

    #[test]
    fn reasoning_is_encrypted_and_followed() {
        check_bad(
            "/input/2/encrypted_content",
            Value::Null,
            "the encrypted_content of `input[2]` is missing",
        );
        check_bad("/input/2/summary", Value::Null, "the summary of `input[2]` is not a list");
        let by_id = json!({"type": "reasoning", "id": "rs_1", "summary": []});
        check_bad(
            "/input/2",
            by_id.clone(),
            "`input[2]` has an id and no encrypted_content, but nothing was stored",
        );
        let mut stored = good();
        stored["store"] = json!(true);
        stored["input"][2] = by_id;
        assert_eq!(problems(&stored), [""; 0]);
        let thought = json!({"type": "reasoning", "encrypted_content": "x", "summary": []});
        check_bad(
            "/input/8",
            thought.clone(),
            "the thought `input[8]` is followed by nothing of the model's",
        );
        check_bad("/input/9", thought, "the thought `input[9]` is followed by nothing of the model's");
    }

    #[test]
    fn every_call_is_answered_exactly_once() {
        check_bad("/input/7", Value::Null, "the call `a` is not answered before `input[8]`");
        check_bad("/input/4", Value::Null, "`input[6]` answers `a`, which was not called before it");
        check_bad(
            "/input/8",
            json!({"type": "function_call_output", "call_id": "a", "output": "x"}),
            "`input[8]` answers `a` a second time",
        );
        check_bad(
            "/input/9",
            json!({"type": "function_call", "call_id": "c", "name": "read", "arguments": "{}"}),
            "the call `c` is not answered before the end",
        );
        check_bad(
            "/input/4/arguments",
            json!("{"),
            "the arguments of `input[4]` are not JSON: EOF while parsing an object at line 1 column 1",
        );
        check_bad("/input/4/arguments", json!({}), "the arguments of `input[4]` are not a string");
        check_bad("/input/4/name", json!(""), "the name of `input[4]` is empty");
    }
}
