//! The rules of Bedrock.

use serde_json::Value;

use crate::http::Headers;
use crate::protocol::picture::{self, Pictures};
use crate::protocol::rules::{self, Roles, ToolNames};
use crate::protocol::{Problems, is_tool_name};

/// Limit of a tool's name and of a call's id.
const NAME_LIMIT_BYTES: usize = 64;
/// Limit of cache marks in a request.
const CACHE_MARKS_LIMIT: usize = 4;
/// The types of a block, which must have exactly one.
const KINDS: &[&str] =
    &["text", "image", "document", "toolUse", "toolResult", "reasoningContent", "cachePoint"];
/// The start of a signature.
const SIGNED: &str = "AWS4-HMAC-SHA256 ";
/// The number of hexadecimal digits of a signature.
const SIGNATURE_DIGITS: usize = 64;

/// Adds all problems of a request.
pub(crate) fn check(headers: &Headers, body: &Value, problems: &mut Problems) {
    authorization(headers, problems);
    if !body["system"].is_null() {
        for (n, block) in problems.list("`system`", &body["system"]).unwrap_or_default().iter().enumerate() {
            if block["cachePoint"].is_null() {
                text(&format!("the text of `system[{n}]`"), &block["text"], problems);
            }
        }
    }
    tools(&body["toolConfig"], problems);
    let marks = cache_marks(body);
    if marks > CACHE_MARKS_LIMIT {
        problems.add(format!(
            "there are {marks} `cachePoint` marks, and at most {CACHE_MARKS_LIMIT} are allowed"
        ));
    }
    if let Some(messages) = problems.list("`messages`", &body["messages"]) {
        conversation(messages, &body["toolConfig"], problems);
    }
}

/// Checks for a Bedrock API key or a well-formed AWS signature.
fn authorization(headers: &Headers, problems: &mut Problems) {
    let given = headers.get("authorization").unwrap_or_default();
    if given.strip_prefix("Bearer ").is_some_and(|key| !key.trim().is_empty()) {
        return;
    }
    let Some(signed) = given.strip_prefix(SIGNED) else {
        return problems.add("the header `authorization` is neither a signature nor a key");
    };
    let field = |name: &str| {
        let fields = signed.split(',').map(str::trim);
        fields.filter_map(|field| field.split_once('=')).find(|(key, _)| *key == name).map(|(_, value)| value)
    };
    let date = headers.get("x-amz-date").unwrap_or_default();
    let is_date = date.len() == 16
        && date.bytes().enumerate().all(|(at, byte)| match at {
            8 => byte == b'T',
            15 => byte == b'Z',
            _ => byte.is_ascii_digit(),
        });
    if !is_date {
        problems.add(format!("the header `x-amz-date`, `{date}`, is no time of the form `20150830T123600Z`"));
    }
    let scope: Vec<&str> = field("Credential").unwrap_or_default().split('/').collect();
    match scope[..] {
        [id, day, region, "bedrock", "aws4_request"]
            if !id.is_empty() && !region.is_empty() && date.starts_with(day) && day.len() == 8 => {}
        _ => problems.add(format!(
            "the credential of the signature, `{}`, is not `id/day/region/bedrock/aws4_request`",
            scope.join("/")
        )),
    }
    let names: Vec<&str> = field("SignedHeaders").unwrap_or_default().split(';').collect();
    if !names.is_sorted() {
        problems.add("the signed headers are not in order");
    }
    for name in ["host", "x-amz-date"].into_iter().chain(names.iter().copied()) {
        if !names.contains(&name) {
            problems.add(format!("the header `{name}` is not signed"));
        } else if headers.get(name).is_none() {
            problems.add(format!("the header `{name}` is signed and missing"));
        }
    }
    if headers.get("x-amz-security-token").is_some() && !names.contains(&"x-amz-security-token") {
        problems.add("the header `x-amz-security-token` is not signed");
    }
    let signature = field("Signature").unwrap_or_default();
    let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    if signature.len() != SIGNATURE_DIGITS || !signature.bytes().all(is_digit) {
        problems.add(format!("the signature is not {SIGNATURE_DIGITS} hexadecimal digits"));
    }
}

/// Checks that a text is more than white space.
fn text(at: &str, value: &Value, problems: &mut Problems) {
    if problems.text(at, value).is_some_and(|text| text.trim().is_empty()) {
        problems.add(format!("{at} is blank"));
    }
}

fn tools(config: &Value, problems: &mut Problems) {
    if config.is_null() {
        return;
    }
    let mut names = ToolNames::new(NAME_LIMIT_BYTES);
    let tools = problems.list("`toolConfig.tools`", &config["tools"]).unwrap_or_default();
    for (n, tool) in tools.iter().enumerate().filter(|(_, tool)| tool["cachePoint"].is_null()) {
        let at = format!("`toolConfig.tools[{n}]`");
        let spec = &tool["toolSpec"];
        names.check(&at, &spec["name"], problems);
        problems.text(&format!("the description of {at}"), &spec["description"]);
        rules::plain_top(&at, &spec["inputSchema"]["json"], problems);
        if spec["inputSchema"]["json"]["type"] != "object" {
            problems.add(format!("the input schema of {at} is not of type `object`"));
        }
    }
    let choices = config["toolChoice"].as_object().map_or(0, serde_json::Map::len);
    if !config["toolChoice"].is_null() && choices != 1 {
        problems.add("`toolConfig.toolChoice` is not one of `auto`, `any` and `tool`");
    }
}

fn cache_marks(body: &Value) -> usize {
    fn marks(blocks: &Value) -> usize {
        let blocks = blocks.as_array().into_iter().flatten();
        blocks.map(|block| usize::from(!block["cachePoint"].is_null()) + marks(&block["content"])).sum()
    }
    marks(&body["toolConfig"]["tools"]) + marks(&body["system"]) + marks(&body["messages"])
}

/// Checks the pictures, and that no id of a call is used twice.
fn pictures(messages: &[Value], problems: &mut Problems) {
    let mut all = Pictures::default();
    let mut used: Vec<&str> = Vec::new();
    for (n, message) in messages.iter().enumerate() {
        let at = format!("`messages[{n}]`");
        for block in message["content"].as_array().into_iter().flatten() {
            let inner = block["toolResult"]["content"].as_array().into_iter().flatten();
            for image in inner
                .chain([block])
                .map(|block| &block["image"])
                .filter(|image| image["source"]["bytes"].is_string())
            {
                let mime = match image["format"].as_str() {
                    Some("png") => "image/png",
                    Some("jpeg") => "image/jpeg",
                    Some("gif") => "image/gif",
                    Some("webp") => "image/webp",
                    Some(_) | None => "",
                };
                all.add(&at, mime, image["source"]["bytes"].as_str().unwrap_or_default());
            }
            if let Some(id) = block["toolUse"]["toolUseId"].as_str() {
                if used.contains(&id) {
                    problems.add(format!("{at} uses the id `{id}` of another call"));
                }
                used.push(id);
            }
        }
    }
    // 3.75 MB are 5 million characters.
    all.check(picture::Rules { most: 20, most_chars: 5_000_000, ..picture::USUAL }, problems);
}

fn conversation(messages: &[Value], tools: &Value, problems: &mut Problems) {
    pictures(messages, problems);
    let mut calls: Vec<&str> = Vec::new();
    let mut names = Vec::new();
    let mut roles = Roles::default();
    for (n, message) in messages.iter().enumerate() {
        let at = format!("`messages[{n}]`");
        let Some(role) = roles.next(n, message, problems) else { return };
        let blocks = problems.list(&format!("the content of {at}"), &message["content"]).unwrap_or_default();
        for (n, block) in blocks.iter().enumerate() {
            check_block(&format!("block {n} of {at}"), role, block, problems);
            names.extend(block["document"]["name"].as_str());
        }
        let ids = |kind: &str| -> Vec<&str> {
            blocks.iter().filter_map(|block| block[kind]["toolUseId"].as_str()).collect()
        };
        let answered = ids("toolResult");
        let mut expected = calls.clone();
        let mut given = answered.clone();
        expected.sort_unstable();
        given.sort_unstable();
        if expected != given {
            let (answered, calls) = (answered.join(", "), calls.join(", "));
            problems.add(format!("{at} answers [{answered}] and not the calls [{calls}]"));
        }
        calls = ids("toolUse");
        if (!calls.is_empty() || !answered.is_empty()) && tools.is_null() {
            problems.add(format!("{at} has to do with tools, and there is no `toolConfig`"));
        }
    }
    if !calls.is_empty() {
        problems.add(format!("the calls [{}] are not answered before the end", calls.join(", ")));
    }
    names.sort_unstable();
    for pair in names.windows(2).filter(|pair| pair[0] == pair[1]) {
        problems.add(format!("two documents have the name `{}`", pair[0]));
    }
}

fn check_block(at: &str, role: &str, block: &Value, problems: &mut Problems) {
    let kinds: Vec<_> = KINDS.iter().filter(|kind| block.get(**kind).is_some()).collect();
    let [kind] = kinds[..] else {
        return problems.add(format!("{at} is {} things at once", kinds.len()));
    };
    let of_role = match *kind {
        "toolUse" | "reasoningContent" => "assistant",
        "toolResult" | "image" | "document" => "user",
        _ => role,
    };
    if of_role != role {
        problems.add(format!("{at} is a `{kind}`, which the `{role}` cannot say"));
    }
    let value = &block[kind];
    match *kind {
        "text" => text(&format!("the text of {at}"), value, problems),
        "toolUse" => {
            id(at, &value["toolUseId"], problems);
            problems.text(&format!("the name of {at}"), &value["name"]);
            if !value["input"].is_object() {
                problems.add(format!("the input of {at} is not an object"));
            }
        }
        "toolResult" => {
            id(at, &value["toolUseId"], problems);
            let content = problems.list(&format!("the content of {at}"), &value["content"]);
            for inner in content.unwrap_or_default().iter().filter(|inner| !inner["text"].is_null()) {
                text(&format!("a text of {at}"), &inner["text"], problems);
            }
            if !matches!(value["status"].as_str(), None | Some("success" | "error")) {
                problems.add(format!("the status of {at} is neither `success` nor `error`"));
            }
        }
        "reasoningContent" => {
            let thought = &value["reasoningText"];
            if value["redactedContent"].is_null() {
                problems.text(&format!("the signature of {at}"), &thought["signature"]);
            }
        }
        "image" | "document" => {
            problems.text(&format!("the format of {at}"), &value["format"]);
            let source = &value["source"];
            if source["bytes"].as_str().is_none() && source["s3Location"]["uri"].as_str().is_none() {
                problems.add(format!("the source of {at} is neither bytes nor a place"));
            }
        }
        _ => {}
    }
}

fn id(at: &str, id: &Value, problems: &mut Problems) {
    if let Some(id) = problems.text(&format!("the id of {at}"), id)
        && !is_tool_name(id, NAME_LIMIT_BYTES)
    {
        problems.add(format!("the id of {at}, `{id}`, is not 1 to 64 of `a-zA-Z0-9_-`"));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::protocol::problems::change;

    const SIGNATURE: &str = "AWS4-HMAC-SHA256 Credential=AK/20150830/eu-west-1/bedrock/aws4_request, \
        SignedHeaders=content-type;host;x-amz-date, \
        Signature=0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

    fn signed(authorization: &str) -> Headers {
        Headers::from_iter([
            ("host", "x"),
            ("content-type", "application/json"),
            ("x-amz-date", "20150830T123600Z"),
            ("authorization", authorization),
        ])
    }

    fn good() -> Value {
        json!({
            "inferenceConfig": {"maxTokens": 100},
            "system": [{"text": "Be good."}, {"cachePoint": {"type": "default"}}],
            "toolConfig": {"toolChoice": {"auto": {}}, "tools": [
                {"toolSpec": {"name": "read", "description": "Reads", "inputSchema": {"json": {"type": "object"}}}}]},
            "messages": [
                {"role": "user", "content": [{"text": "Look"}, {"image": {"format": "png", "source": {"bytes": "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA="}}}]},
                {"role": "assistant", "content": [
                    {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "s"}}},
                    {"toolUse": {"toolUseId": "a", "name": "read", "input": {}}},
                    {"toolUse": {"toolUseId": "b", "name": "read", "input": {}}}]},
                {"role": "user", "content": [
                    {"toolResult": {"toolUseId": "b", "content": [{"text": "x"}], "status": "success"}},
                    {"toolResult": {"toolUseId": "a", "content": [{"text": "y"}], "status": "error"}},
                    {"text": "More"}, {"cachePoint": {"type": "default"}}]},
            ],
        })
    }

    fn problems(headers: &Headers, body: &Value) -> Vec<String> {
        let mut problems = Problems::default();
        check(headers, body, &mut problems);
        problems.into_list()
    }

    /// Puts `value` at `pointer` of a good request (`null` removes) and expects this one problem.
    #[track_caller]
    fn check_bad(pointer: &str, value: Value, expected: &str) {
        let mut body = good();
        change(&mut body, pointer, value);
        assert_eq!(problems(&signed(SIGNATURE), &body), [expected]);
    }

    #[test]
    fn a_good_request_has_no_problem() {
        for authorization in [SIGNATURE, "Bearer key"] {
            assert_eq!(problems(&signed(authorization), &good()), [""; 0]);
        }
    }

    #[test]
    fn a_signature_must_be_well_formed() {
        for (from, to, expected) in [
            (SIGNATURE, "", "the header `authorization` is neither a signature nor a key"),
            (SIGNATURE, "Bearer ", "the header `authorization` is neither a signature nor a key"),
            (
                "20150830",
                "20150831",
                "the credential of the signature, `AK/20150831/eu-west-1/bedrock/aws4_request`, is not `id/day/region/bedrock/aws4_request`",
            ),
            (
                "/bedrock/",
                "/s3/",
                "the credential of the signature, `AK/20150830/eu-west-1/s3/aws4_request`, is not `id/day/region/bedrock/aws4_request`",
            ),
            ("content-type;host;", "", "the header `host` is not signed"),
            ("content-type;", "x-other;", "the signed headers are not in order"),
            ("content-type;host", "accept;host", "the header `accept` is signed and missing"),
            ("Signature=0123", "Signature=", "the signature is not 64 hexadecimal digits"),
            ("Signature=0", "Signature=G", "the signature is not 64 hexadecimal digits"),
        ] {
            let found = problems(&signed(&SIGNATURE.replace(from, to)), &good());
            assert_eq!(found[..1], [expected], "{to}");
        }
        let headers =
            Headers::from_iter([("host", "x"), ("content-type", "a"), ("authorization", SIGNATURE)]);
        let found = problems(&headers, &good());
        assert!(found[0].starts_with("the header `x-amz-date`, ``, is no time"), "{found:?}");
    }

    #[test]
    fn roles_alternate_and_begin_with_the_user() {
        check_bad("/messages", json!([]), "`messages` is empty");
        check_bad("/messages/2/role", json!("robot"), "`messages[2]` has the unknown role `robot`");
        check_bad("/messages/2/role", Value::Null, "`messages[2]` has no role");
        check_bad(
            "/messages",
            json!([{"role": "assistant", "content": [{"text": "a"}]}]),
            "`messages[0]` is not the user's",
        );
        check_bad(
            "/messages",
            json!([{"role": "user", "content": [{"text": "a"}]}, {"role": "user", "content": [{"text": "b"}]}]),
            "`messages[1]` has the role `user` a second time in a row",
        );
        check_bad(
            "/messages/1/content/0",
            json!({"image": {"format": "png", "source": {"bytes": "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA="}}}),
            "block 0 of `messages[1]` is a `image`, which the `assistant` cannot say",
        );
    }

    #[test]
    fn every_call_is_answered() {
        check_bad("/messages/2/content/0", Value::Null, "`messages[2]` answers [a] and not the calls [a, b]");
        check_bad("/messages/2", Value::Null, "the calls [a, b] are not answered before the end");
        check_bad(
            "/messages/2/content/0/toolResult/toolUseId",
            json!("a"),
            "`messages[2]` answers [a, a] and not the calls [a, b]",
        );
        let mut body = good();
        change(&mut body, "/toolConfig", Value::Null);
        let found = problems(&signed(SIGNATURE), &body);
        assert_eq!(found[0], "`messages[1]` has to do with tools, and there is no `toolConfig`");
    }

    #[test]
    fn blocks_are_well_formed() {
        check_bad("/messages/0/content", json!([]), "the content of `messages[0]` is empty");
        check_bad(
            "/messages/0/content/0/text",
            json!(" \n"),
            "the text of block 0 of `messages[0]` is blank",
        );
        check_bad("/system/0/text", json!(" "), "the text of `system[0]` is blank");
        check_bad("/messages/0/content/0", json!({}), "block 0 of `messages[0]` is 0 things at once");
        check_bad(
            "/messages/1/content/0/reasoningContent/reasoningText/signature",
            Value::Null,
            "the signature of block 0 of `messages[1]` is missing",
        );
        check_bad(
            "/messages/1/content/1/toolUse/input",
            json!("{}"),
            "the input of block 1 of `messages[1]` is not an object",
        );
        check_bad(
            "/messages/2/content/0/toolResult/content",
            json!([]),
            "the content of block 0 of `messages[2]` is empty",
        );
        let long = "x".repeat(65);
        let mut body = good();
        change(&mut body, "/messages/1/content/1/toolUse/toolUseId", json!(long));
        change(&mut body, "/messages/2/content/1/toolResult/toolUseId", json!(long));
        assert_eq!(problems(&signed(SIGNATURE), &body).len(), 2);
        let document = json!({"document": {"format": "pdf", "name": "d", "source": {"bytes": "AA=="}}});
        check_bad(
            "/messages/0/content",
            json!([{"text": "a"}, document, document]),
            "two documents have the name `d`",
        );
    }

    #[test]
    fn tools_are_well_formed() {
        let tool = "/toolConfig/tools/0/toolSpec";
        check_bad("/toolConfig/tools", json!([]), "`toolConfig.tools` is empty");
        check_bad(
            &format!("{tool}/description"),
            json!(""),
            "the description of `toolConfig.tools[0]` is empty",
        );
        check_bad(
            &format!("{tool}/inputSchema"),
            Value::Null,
            "the input schema of `toolConfig.tools[0]` is not of type `object`",
        );
        check_bad(
            "/toolConfig/toolChoice",
            json!({}),
            "`toolConfig.toolChoice` is not one of `auto`, `any` and `tool`",
        );
        let mark = json!({"cachePoint": {"type": "default"}});
        check_bad(
            "/system",
            json!([mark, mark, mark, mark]),
            "there are 5 `cachePoint` marks, and at most 4 are allowed",
        );
    }
}
