use serde_json::json;

use super::*;
use crate::protocol::rules::{CallId, End, NameForm, USUAL_PICTURES};
use crate::{AssistantContent, Message, ModelEvent, Protocol, ToolResult, UserContent};

const RULES: Rules = Rules {
    tool_name: crate::protocol::rules::ToolName { most_bytes: 20, form: NameForm::Word },
    call_id: CallId::Word(20),
    most_tools: 3,
    schema: &[],
    pictures: USUAL_PICTURES,
    end: End::User,
};

fn model() -> Model {
    Model::new("p", "m", Protocol::OpenAiChat, "https://h")
}

fn call(id: &str, name: &str) -> AssistantContent {
    AssistantContent::ToolCall { id: id.into(), name: name.into(), input: json!({}) }
}

fn result(id: &str, output: &str) -> ToolResult {
    ToolResult { call_id: id.into(), name: "read".into(), output: output.into(), ..ToolResult::default() }
}

fn user(text: &str) -> Message {
    Message::User(vec![UserContent::Text(text.into())])
}

/// Returns a conversation in short form.
fn short(messages: Vec<Message>) -> String {
    let request = Request { messages, ..Request::default() };
    let fitted = fit(&request, &model(), &RULES).request;
    let message = |message: &Message| match message {
        Message::User(content) => {
            let part = |part: &UserContent| match part {
                UserContent::Text(text) => text.clone(),
                UserContent::File(file) => file.mime.clone(),
            };
            format!("u({})", content.iter().map(part).collect::<Vec<_>>().join(","))
        }
        Message::Assistant(content) => {
            let part = |part: &AssistantContent| match part {
                AssistantContent::Text(text) => text.clone(),
                AssistantContent::Reasoning { text, .. } => format!("<{text}>"),
                AssistantContent::ToolCall { id, name, .. } => format!("{name}#{id}"),
                AssistantContent::Metadata(_) => "m".to_owned(),
            };
            format!("a({})", content.iter().map(part).collect::<Vec<_>>().join(","))
        }
        Message::Tool(results) => {
            let part = |result: &ToolResult| format!("{}={}", result.call_id, result.output);
            format!("t({})", results.iter().map(part).collect::<Vec<_>>().join(","))
        }
    };
    fitted.messages.iter().map(message).collect::<Vec<_>>().join(" ")
}

#[test]
fn calls_and_results_are_pairs_with_unique_ids() {
    let two = Message::Assistant(vec![call("a", "read"), call("a", "read")]);
    let answered = Message::Tool(vec![result("a", "1"), result("a", "2")]);
    for (messages, expected) in [
        (vec![user("q"), two.clone(), answered.clone()], "u(q) a(read#a,read#a_2) t(a=1,a_2=2)"),
        (
            vec![user("q"), two.clone(), answered, two, Message::Tool(vec![result("a", "3")])],
            "u(q) a(read#a,read#a_2) t(a=1,a_2=2) a(read#a_3,read#a_4) t(a_3=3,a_4=The result of this call is not known; \
             the call may have had an effect.)",
        ),
        (
            vec![user("q"), Message::Assistant(vec![call("x y", "my.tool")]), user("r")],
            "u(q) a(my_tool#x_y) t(x_y=The result of this call is not known; the call may have had an effect.) u(r)",
        ),
        (
            vec![user("q"), Message::Tool(vec![result("z", "1")])],
            "u(q) u(A call of the tool `read`, which is not kept, returned: 1)",
        ),
        (
            vec![Message::Assistant(vec![AssistantContent::Text("a".into())])],
            "u((Earlier messages were not kept.)) a(a) u(Continue.)",
        ),
        (
            vec![
                user("q"),
                Message::Assistant(vec![
                    AssistantContent::Text(" ".into()),
                    AssistantContent::Metadata(json!(1)),
                    AssistantContent::Reasoning { text: "r".into(), metadata: None },
                ]),
                user(" "),
                user("r"),
            ],
            "u(q) u(r)",
        ),
    ] {
        assert_eq!(short(messages), expected);
    }
}

#[test]
fn tools_have_valid_names_and_get_their_own_back() {
    let tool = |name: &str| ToolSpec {
        name: name.into(),
        description: "d".into(),
        parameters: json!({"type": "object"}),
    };
    let names = ["read", "my-tool", "my_tool"];
    let request = Request { tools: names.map(tool).into(), ..Request::default() };
    let fitted = fit(&request, &model(), &RULES);
    let sent: Vec<&str> = fitted.request.tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(sent[..2], ["read", "my_tool"]);
    assert!(sent[2].starts_with("my_tool_"), "{sent:?}");
    for (sent, name) in sent.iter().zip(names) {
        let event = ModelEvent::ToolStart { id: "i".into(), name: (*sent).into() };
        assert_eq!(fitted.names.restore(event), ModelEvent::ToolStart { id: "i".into(), name: name.into() });
    }
}

#[test]
fn too_many_tools_are_left_out_with_a_note() {
    let tool = |name: &str| ToolSpec { name: name.into(), description: "d".into(), parameters: json!({}) };
    let request = Request { tools: ["a", "b", "a", "c", "d"].map(tool).into(), ..Request::default() };
    let fitted = fit(&request, &model(), &RULES).request;
    assert_eq!(fitted.tools.len(), 3);
    assert!(fitted.more_system[0].contains("left out of the request: d."), "{:?}", fitted.more_system);
}

#[test]
fn renamed_arguments_return_with_their_names() {
    let rules = Rules { schema: &[crate::protocol::rules::Dialect::PropertyNames], ..RULES };
    let parameters = json!({"type": "object", "properties": {"$top": {"type": "integer"}, "ok": {}}});
    let tool = ToolSpec { name: "t".into(), description: "d".into(), parameters };
    let old = Message::Assistant(vec![AssistantContent::ToolCall {
        id: "i".into(),
        name: "t".into(),
        input: json!({"$top": 1}),
    }]);
    let request = Request { tools: vec![tool], messages: vec![user("q"), old], ..Request::default() };
    let fitted = fit(&request, &model(), &rules);
    let key =
        fitted.request.tools[0].parameters["properties"].as_object().unwrap().keys().next().unwrap().clone();
    assert!(key.starts_with("_top_"), "{key}");
    let Message::Assistant(content) = &fitted.request.messages[1] else { panic!("an answer") };
    let AssistantContent::ToolCall { input, .. } = &content[0] else { panic!("a call") };
    assert_eq!(*input, json!({key.as_str(): 1}));
    let event = ModelEvent::ToolCall {
        id: "i".into(),
        name: "t".into(),
        arguments: json!({key.as_str(): 2, "ok": 1}).to_string(),
    };
    let ModelEvent::ToolCall { arguments, .. } = fitted.names.restore(event) else { panic!("a call") };
    assert_eq!(arguments, r#"{"$top":2,"ok":1}"#);
}
