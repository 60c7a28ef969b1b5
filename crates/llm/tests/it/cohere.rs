//! A test with a server that sends Cohere's events.

use codewright_llm::{Client, FinishReason, Message, Model, ModelEvent, Protocol, Request, UserContent};

use crate::server::{Server, says, stream_head};

#[tokio::test]
async fn a_request_gets_a_streamed_answer() {
    let events = [
        ("message-start", r#"{"type":"message-start","id":"1","delta":{"message":{"role":"assistant"}}}"#),
        (
            "content-delta",
            r#"{"type":"content-delta","index":0,"delta":{"message":{"content":{"text":"Hello"}}}}"#,
        ),
        ("content-end", r#"{"type":"content-end","index":0}"#),
        (
            "message-end",
            r#"{"type":"message-end","delta":{"finish_reason":"COMPLETE","usage":{"tokens":{"input_tokens":3,"output_tokens":2}}}}"#,
        ),
    ];
    let body: String = events.iter().map(|(name, data)| format!("event: {name}\ndata: {data}\n\n")).collect();
    let server = Server::new(vec![says(format!("{}{body}", stream_head()))]);
    let mut model = Model::new("cohere", "command-a-03-2025", Protocol::Cohere, &server.base_url());
    model.api_key = Some("co-key".into());
    let request =
        Request { messages: vec![Message::User(vec![UserContent::Text("hi".into())])], ..Request::default() };
    let mut stream = Client::new("t").unwrap().stream(&model, &request).await.unwrap();
    let mut found = Vec::new();
    while let Some(event) = stream.next().await {
        found.push(event.unwrap());
    }
    assert_eq!(found[1], ModelEvent::TextDelta("Hello".into()));
    assert!(matches!(found.last(), Some(ModelEvent::Finish { reason: FinishReason::Stop, .. })), "{found:?}");
    let asked = server.requests().await.remove(0);
    assert!(asked.starts_with("POST /v1/chat HTTP/1.1\r\n"), "{asked}");
    assert!(asked.contains("authorization: Bearer co-key\r\n"), "{asked}");
    let body = r#"{"model":"command-a-03-2025","messages":[{"role":"user","content":"hi"}],"stream":true}"#;
    assert!(asked.ends_with(body), "{asked}");
}
