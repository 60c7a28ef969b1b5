//! The rules of Gemini providers.

use serde_json::Value;

use crate::protocol::Problems;
use crate::protocol::picture::{self, Pictures};
use crate::protocol::rules::ToolNames;

/// Limit of a function's name.
const NAME_LIMIT_BYTES: usize = 64;
/// The supported keywords of a schema.
const SCHEMA_WORDS: &[&str] =
    &["anyOf", "description", "enum", "format", "items", "nullable", "properties", "required", "type"];
/// The types of a part, which must have exactly one.
const KINDS: &[&str] = &["text", "functionCall", "functionResponse", "inlineData", "fileData"];

/// The rules for pictures.
const PICTURES: picture::Rules = picture::Rules {
    types: &["image/png", "image/jpeg", "image/webp", "image/heic", "image/heif"],
    most: 3600,
    ..picture::USUAL
};

/// Adds all problems of a request.
pub(crate) fn check(body: &Value, problems: &mut Problems) {
    let thinking = &body["generationConfig"]["thinkingConfig"];
    if !thinking["thinkingBudget"].is_null() && !thinking["thinkingLevel"].is_null() {
        problems.add("`thinkingConfig` has both a budget and a level");
    }
    if !body["systemInstruction"].is_null() {
        let at = "the parts of `systemInstruction`";
        for part in problems.list(at, &body["systemInstruction"]["parts"]).unwrap_or_default() {
            problems.text(&format!("a text of {at}"), &part["text"]);
        }
    }
    tools(body, problems);
    if let Some(contents) = problems.list("`contents`", &body["contents"]) {
        conversation(contents, problems);
    }
}

fn tools(body: &Value, problems: &mut Problems) {
    if body["tools"].is_null() {
        if !body["toolConfig"].is_null() {
            problems.add("`toolConfig` is set without `tools`");
        }
        return;
    }
    let mut names = ToolNames::new(NAME_LIMIT_BYTES);
    for (n, tool) in problems.list("`tools`", &body["tools"]).unwrap_or_default().iter().enumerate() {
        let at = format!("`tools[{n}].functionDeclarations`");
        let declarations = problems.list(&at, &tool["functionDeclarations"]).unwrap_or_default();
        for (n, declaration) in declarations.iter().enumerate() {
            let at = format!("declaration {n} of {at}");
            names.check(&at, &declaration["name"], problems);
            let begins = |byte: u8| byte.is_ascii_alphabetic() || byte == b'_';
            if declaration["name"]
                .as_str()
                .and_then(|name| name.bytes().next())
                .is_some_and(|byte| !begins(byte))
            {
                problems.add(format!("the name of {at} begins with neither a letter nor `_`"));
            }
            problems.text(&format!("the description of {at}"), &declaration["description"]);
            parameters(&at, &declaration["parameters"], problems);
        }
    }
}

fn parameters(at: &str, parameters: &Value, problems: &mut Problems) {
    if parameters.is_null() {
        return;
    }
    if parameters["type"] != "object" || parameters["properties"].as_object().is_none_or(|all| all.is_empty())
    {
        problems.add(format!("the parameters of {at} are not an object with properties"));
    }
    schema(&format!("the parameters of {at}"), parameters, problems);
}

fn schema(at: &str, schema_: &Value, problems: &mut Problems) {
    let Some(fields) = schema_.as_object() else {
        problems.add(format!("{at} is not an object"));
        return;
    };
    for word in fields.keys().filter(|word| !SCHEMA_WORDS.contains(&word.as_str())) {
        problems.add(format!("{at} has the unknown word `{word}`"));
    }
    if schema_["anyOf"].is_null() {
        problems.text(&format!("the type of {at}"), &schema_["type"]);
    }
    for choice in schema_["anyOf"].as_array().into_iter().flatten() {
        schema(&format!("a choice of {at}"), choice, problems);
    }
    if schema_["type"] == "array" {
        schema(&format!("the items of {at}"), &schema_["items"], problems);
    }
    let values = schema_["enum"].as_array().into_iter().flatten();
    if !schema_["enum"].is_null()
        && (schema_["type"] != "string" || values.clone().any(|value| !value.is_string()))
    {
        problems.add(format!("{at} has an `enum` that is not of text"));
    }
    let properties = schema_["properties"].as_object();
    for (name, property) in properties.into_iter().flatten() {
        schema(&format!("`{name}` of {at}"), property, problems);
    }
    for name in schema_["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        if properties.is_none_or(|properties| !properties.contains_key(name)) {
            problems.add(format!("{at} demands `{name}`, which it does not have"));
        }
    }
}

/// The sender of a turn. Results have the user's role, but are separate turns.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Turn {
    User,
    Model,
    Results,
}

fn conversation(contents: &[Value], problems: &mut Problems) {
    let mut pictures = Pictures::default();
    for (n, content) in contents.iter().enumerate() {
        let parts = content["parts"].as_array().into_iter().flatten();
        let inner = |part: &'_ Value| part["functionResponse"]["parts"].as_array().is_some();
        for part in parts.clone().chain(
            parts
                .filter(|part| inner(part))
                .flat_map(|part| part["functionResponse"]["parts"].as_array().into_iter().flatten()),
        ) {
            let text = |name: &str| part["inlineData"][name].as_str().unwrap_or_default();
            if text("mimeType").starts_with("image/") {
                pictures.add(&format!("a part of `contents[{n}]`"), text("mimeType"), text("data"));
            }
        }
    }
    pictures.check(PICTURES, problems);
    let mut calls: Vec<&str> = Vec::new();
    let mut before = None;
    for (n, content) in contents.iter().enumerate() {
        let at = format!("`contents[{n}]`");
        let parts = problems.list(&format!("the parts of {at}"), &content["parts"]).unwrap_or_default();
        for (n, part) in parts.iter().enumerate() {
            check_part(&format!("part {n} of {at}"), part, problems);
        }
        let names = |kind: &str| -> Vec<&str> {
            parts.iter().filter_map(|part| part[kind]["name"].as_str()).collect()
        };
        let answered = names("functionResponse");
        let turn = match content["role"].as_str() {
            Some("user") if answered.is_empty() => Turn::User,
            Some("user") => Turn::Results,
            Some("model") => Turn::Model,
            Some(role) => return problems.add(format!("{at} has the unknown role `{role}`")),
            None => return problems.add(format!("{at} has no role")),
        };
        if n == 0 && turn != Turn::User {
            problems.add(format!("{at} is not the user's"));
        }
        if before == Some(turn) {
            problems.add(format!("{at} is the same one's turn as the one before"));
        }
        if turn == Turn::Results && answered.len() != parts.len() {
            problems.add(format!("{at} has more than results in it"));
        }
        if turn == Turn::Model && parts.iter().all(|part| part["thought"] == true) {
            problems.add(format!("{at} is nothing but thought"));
        }
        if answered != calls {
            problems.add(format!(
                "{at} answers [{}] and not the calls [{}]",
                answered.join(", "),
                calls.join(", ")
            ));
        }
        calls = names("functionCall");
        if turn != Turn::Model && !calls.is_empty() {
            problems.add(format!("{at} calls a function and is not the model's"));
        }
        before = Some(turn);
    }
    if !calls.is_empty() {
        problems.add(format!("the calls [{}] are not answered before the end", calls.join(", ")));
    }
}

fn check_part(at: &str, part: &Value, problems: &mut Problems) {
    let kinds: Vec<_> = KINDS.iter().filter(|kind| part.get(**kind).is_some()).collect();
    let [kind] = kinds[..] else {
        problems.add(format!("{at} is {} things at once", kinds.len()));
        return;
    };
    match *kind {
        // An empty text may have a signature.
        "text" if part["thoughtSignature"].is_string() && part["text"].is_string() => {}
        "text" => {
            problems.text(&format!("the text of {at}"), &part["text"]);
        }
        "functionCall" => {
            problems.text(&format!("the name of {at}"), &part["functionCall"]["name"]);
            if !part["functionCall"]["args"].is_object() {
                problems.add(format!("the args of {at} are not an object"));
            }
        }
        "functionResponse" => {
            problems.text(&format!("the name of {at}"), &part["functionResponse"]["name"]);
            if !part["functionResponse"]["response"].is_object() {
                problems.add(format!("the response of {at} is not an object"));
            }
        }
        kind => {
            problems.text(&format!("the mimeType of {at}"), &part[kind]["mimeType"]);
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
            "generationConfig": {"maxOutputTokens": 100, "thinkingConfig": {"includeThoughts": true}},
            "systemInstruction": {"parts": [{"text": "Be good."}]},
            "tools": [{"functionDeclarations": [
                {"name": "read", "description": "Reads", "parameters": {"type": "object", "required": ["p"],
                    "properties": {"p": {"type": "string", "enum": ["a"]}, "q": {"type": "array", "items": {"type": "string"}}}}},
                {"name": "list", "description": "Lists"},
            ]}],
            "toolConfig": {"functionCallingConfig": {"mode": "AUTO"}},
            "contents": [
                {"role": "user", "parts": [{"text": "Look"}, {"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA="}}]},
                {"role": "model", "parts": [
                    {"text": "hm", "thought": true},
                    {"functionCall": {"name": "read", "args": {}}, "thoughtSignature": "s"},
                    {"functionCall": {"name": "list", "args": {}}}]},
                {"role": "user", "parts": [
                    {"functionResponse": {"name": "read", "response": {"content": "x"}}},
                    {"functionResponse": {"name": "list", "response": {"content": "y"}}}]},
                {"role": "user", "parts": [{"text": "Attached"}]},
                {"role": "model", "parts": [{"text": "Done."}, {"text": "", "thoughtSignature": "s"}]},
                {"role": "user", "parts": [{"text": "More"}]},
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
    fn declarations_are_well_formed() {
        let first = "/tools/0/functionDeclarations/0";
        let named = "declaration 0 of `tools[0].functionDeclarations`";
        let property = format!("{first}/parameters/properties/p");
        check_bad("/tools", Value::Null, "`toolConfig` is set without `tools`");
        check_bad(&format!("{first}/name"), Value::Null, &format!("the name of {named} is missing"));
        check_bad(
            &format!("{first}/description"),
            json!(""),
            &format!("the description of {named} is empty"),
        );
        check_bad(
            &format!("{first}/name"),
            json!("list"),
            "declaration 1 of `tools[0].functionDeclarations` has the name `list` a second time",
        );
        check_bad(
            &format!("{first}/parameters"),
            json!({"type": "object", "properties": {}}),
            &format!("the parameters of {named} are not an object with properties"),
        );
        check_bad(
            &property,
            json!({"type": "integer", "minimum": 1}),
            &format!("`p` of the parameters of {named} has the unknown word `minimum`"),
        );
        check_bad(
            &property,
            json!({"type": "integer", "enum": [1]}),
            &format!("`p` of the parameters of {named} has an `enum` that is not of text"),
        );
        check_bad(
            &property,
            json!({"type": "array"}),
            &format!("the items of `p` of the parameters of {named} is not an object"),
        );
        check_bad(&property, json!({}), &format!("the type of `p` of the parameters of {named} is missing"));
        check_bad(
            &format!("{first}/parameters/required"),
            json!(["z"]),
            &format!("the parameters of {named} demands `z`, which it does not have"),
        );
    }

    #[test]
    fn turns_alternate() {
        check_bad("/contents", json!([]), "`contents` is empty");
        check_bad("/contents/5/role", json!("robot"), "`contents[5]` has the unknown role `robot`");
        check_bad("/contents/5/role", Value::Null, "`contents[5]` has no role");
        check_bad("/contents/4", Value::Null, "`contents[4]` is the same one's turn as the one before");
        check_bad(
            "/contents",
            json!([{"role": "model", "parts": [{"text": "a"}]}]),
            "`contents[0]` is not the user's",
        );
    }

    #[test]
    fn every_call_is_answered() {
        check_bad(
            "/contents/2/parts/1",
            Value::Null,
            "`contents[2]` answers [read] and not the calls [read, list]",
        );
        check_bad("/contents/2", Value::Null, "`contents[2]` answers [] and not the calls [read, list]");
        check_bad(
            "/contents/2/parts/0/functionResponse/name",
            json!("other"),
            "`contents[2]` answers [other, list] and not the calls [read, list]",
        );
        check_bad(
            "/contents/4/parts/0",
            json!({"functionCall": {"name": "read", "args": {}}}),
            "`contents[5]` answers [] and not the calls [read]",
        );
    }

    #[test]
    fn nothing_is_empty() {
        check_bad("/contents/5/parts", json!([]), "the parts of `contents[5]` is empty");
        check_bad("/contents/5/parts/0/text", json!(""), "the text of part 0 of `contents[5]` is empty");
        check_bad("/contents/5/parts/0", json!({}), "part 0 of `contents[5]` is 0 things at once");
        check_bad(
            "/contents/4/parts",
            json!([{"text": "hm", "thought": true}]),
            "`contents[4]` is nothing but thought",
        );
        check_bad(
            "/contents/1/parts/1/functionCall/args",
            json!("{}"),
            "the args of part 1 of `contents[1]` are not an object",
        );
        check_bad(
            "/generationConfig/thinkingConfig",
            json!({"thinkingBudget": 1, "thinkingLevel": "low"}),
            "`thinkingConfig` has both a budget and a level",
        );
    }
}
