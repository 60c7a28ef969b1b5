//! Structured answers, in every scripted protocol.

use codewright_proto::{
    Message, MessageError, MessageWithParts, OutputFormat, PromptInput, PromptModel, ToolState,
};
use codewright_scripted::{Script, Turn};
use serde_json::{Value, json};

use crate::desk::{DEADLINE, Desk, calls, prompt, text};

const MODELS: [(&str, &str); 4] = [
    ("mock", "plain-model"),
    ("mockanth", "claude-mock"),
    ("mockopenai", "gpt-5-mock"),
    ("mockgoogle", "gemini-3-mock"),
];

fn schema() -> Value {
    json!({ "type": "object", "properties": { "answer": { "type": "number" } }, "required": ["answer"] })
}

async fn ask(desk: &Desk, model: (&str, &str), retry_count: Option<u32>) -> MessageWithParts {
    let session = desk.session().await;
    let model = PromptModel { provider_id: model.0.to_owned(), model_id: model.1.to_owned(), variant: None };
    let format = OutputFormat::JsonSchema { schema: schema(), retry_count };
    let input = PromptInput { model: Some(model), format: Some(format), ..prompt("give") };
    let turn = desk.engine.sessions().prompt(&session.id, input);
    tokio::time::timeout(DEADLINE, turn).await.expect("the turn ends").unwrap()
}

fn info(message: &MessageWithParts) -> &codewright_proto::AssistantMessage {
    match &message.info {
        Message::Assistant(info) => info,
        Message::User(_) => panic!("no answer"),
    }
}

#[tokio::test]
async fn a_valid_value_is_the_answer_and_ends_the_turn() {
    for model in MODELS {
        let desk =
            Desk::new(Script::new().tool("StructuredOutput", json!({ "answer": 42 })).text("too much")).await;
        let answer = ask(&desk, model, Some(2)).await;
        assert_eq!(info(&answer).structured, Some(json!({ "answer": 42 })), "{model:?}");
        assert_eq!((info(&answer).finish.as_deref(), &info(&answer).error), (Some("tool-calls"), &None));
        let calls = calls(std::slice::from_ref(&answer));
        assert!(
            matches!(&calls[..], [(tool, ToolState::Completed { output, title, metadata, .. })]
                if tool == "StructuredOutput" && output == "Structured output captured successfully."
                    && title == "Structured Output" && json!(metadata) == json!({ "valid": true })),
            "{calls:?}"
        );
        assert_eq!(desk.server.main_requests().len(), 1, "{model:?}");
        desk.assert_clean();
    }
}

#[tokio::test]
async fn a_call_is_required_and_the_schema_is_sent() {
    let desk = Desk::new(Script::new().tool("StructuredOutput", json!({ "answer": 42 }))).await;
    ask(&desk, MODELS[0], None).await;
    let body = desk.server.main_requests().pop().unwrap().body;
    assert_eq!(body["tool_choice"], "required");
    let tools = body["tools"].as_array().unwrap();
    let names: Vec<_> = tools.iter().map(|tool| tool["function"]["name"].as_str().unwrap()).collect();
    let expected = [
        "bash",
        "edit",
        "glob",
        "grep",
        "question",
        "read",
        "skill",
        "StructuredOutput",
        "task",
        "todowrite",
        "webfetch",
        "write",
    ];
    assert_eq!(names, expected);
    assert_eq!(tools[7]["function"]["parameters"], schema());
}

#[tokio::test]
async fn other_tools_may_be_called_first() {
    let script = Script::new()
        .tool("glob", json!({ "pattern": "*" }))
        .tool("StructuredOutput", json!({ "answer": 1 }));
    let desk = Desk::new(script).await;
    let answer = ask(&desk, MODELS[0], Some(0)).await;
    assert_eq!(info(&answer).structured, Some(json!({ "answer": 1 })));
    desk.assert_clean();
}

#[tokio::test]
async fn invalid_values_and_text_are_sent_back() {
    for model in MODELS {
        let script = Script::new()
            .tool("StructuredOutput", json!({ "answer": "x" }))
            .text("It is 42.")
            .tool("StructuredOutput", json!({ "answer": 42 }));
        let desk = Desk::new(script).await;
        let answer = ask(&desk, model, Some(2)).await;
        assert_eq!(info(&answer).structured, Some(json!({ "answer": 42 })), "{model:?}");
        let requests = desk.server.main_requests();
        let told = requests[1].body.to_string();
        assert!(told.contains("does not fit the schema") && told.contains("/answer"), "{told}");
        let told = requests[2].body.to_string();
        assert!(told.contains("No answer was submitted"), "{told}");
        desk.assert_clean();
    }
}

#[tokio::test]
async fn too_many_failed_attempts_end_the_turn_with_an_error() {
    for (misses, turn) in [
        (2, Turn::from(Turn::steps().tool("StructuredOutput", json!({ "answer": "x" })))),
        (2, Turn::text("It is 42.").into()),
        (0, Turn::text("It is 42.").into()),
    ] {
        let desk = Desk::new(Script::new().default_turn(turn)).await;
        let answer = ask(&desk, MODELS[0], Some(misses)).await;
        let error = info(&answer).error.as_ref();
        assert!(
            matches!(error, Some(MessageError::StructuredOutputError { retries, .. }) if *retries == misses),
            "{error:?}"
        );
        assert_eq!(desk.server.main_requests().len(), misses as usize + 1);
        desk.assert_clean();
    }
}

#[tokio::test]
async fn the_next_prompt_is_answered_with_text() {
    let desk =
        Desk::new(Script::new().tool("StructuredOutput", json!({ "answer": 42 })).text("Words.")).await;
    let answer = ask(&desk, MODELS[0], None).await;
    let session = desk.engine.sessions().get(&info(&answer).session_id).await.unwrap();
    assert_eq!(text(&desk.prompt(&session, "and now").await), "Words.");
    let body = desk.server.main_requests().pop().unwrap().body;
    assert_eq!(body["tool_choice"], "auto");
    desk.assert_clean();
}
