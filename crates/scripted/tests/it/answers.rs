//! Tests of the answers' format in each protocol.

use std::time::{Duration, Instant};

use codewright_scripted::{Args, Finish, Flood, Protocol, Script, Server, Step, StreamError, Turn, Usage};
use serde_json::{Value, json};

use crate::client::{Client, Response, prompt};

async fn answer(protocol: Protocol, turn: impl Into<Turn>) -> Response {
    let server = Server::start(Script::new().turn(turn)).await.expect("a loopback port is free");
    let response = Client::connect(&server).await.ask(protocol, &prompt(protocol, "Go")).await;
    assert!(server.problems().is_empty(), "{:?}", server.problems());
    response
}

fn deltas(response: &Response) -> Vec<Value> {
    let events = response.events();
    events.iter().map(|event| event["choices"][0]["delta"].clone()).filter(|delta| !delta.is_null()).collect()
}

#[tokio::test]
async fn a_chat_text_is_deltas_then_usage_then_done() {
    let response = answer(Protocol::Chat, Turn::text("Hello, wide world")).await;
    assert!(response.is_whole && response.status == 200);
    assert!(response.head.contains("content-type: text/event-stream"));
    let events = response.events();
    let chunk = |delta: Value, finish: Value| {
        json!({"id": "chatcmpl-mock-1", "object": "chat.completion.chunk", "created": 1_700_000_000,
            "model": "plain-model", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})
    };
    let expected = [
        chunk(json!({"role": "assistant", "content": ""}), Value::Null),
        chunk(json!({"content": "Hello, wide "}), Value::Null),
        chunk(json!({"content": "world"}), Value::Null),
        chunk(json!({}), json!("stop")),
    ];
    assert_eq!(events[..4], expected);
    assert_eq!(events[4]["choices"], json!([]));
    assert_eq!(events[4]["usage"]["prompt_tokens"], 100);
    assert_eq!(events[5], "[DONE]");
    assert_eq!(events.len(), 6);
}

#[tokio::test]
async fn an_anthropic_text_is_a_block_between_start_and_stop() {
    let response = answer(Protocol::Anthropic, Turn::text("Hello, wide world")).await;
    assert!(response.is_whole && response.status == 200);
    let text = response.text();
    let names: Vec<_> = text.lines().filter_map(|line| line.strip_prefix("event: ")).collect();
    let events = response.events();
    assert!(names.iter().zip(&events).all(|(name, event)| event["type"] == *name));
    let expected = [
        "message_start",
        "ping",
        "content_block_start",
        "content_block_delta",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ];
    assert_eq!(names, expected);
    assert_eq!(events[0]["message"]["usage"]["input_tokens"], 100);
    assert_eq!(
        events[2],
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}})
    );
    assert_eq!(
        events[3],
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hello, wide "}})
    );
    assert_eq!(events[6]["delta"]["stop_reason"], "end_turn");
    assert_eq!(events[6]["usage"]["output_tokens"], 20);
}

#[tokio::test]
async fn a_chat_call_starts_with_its_name_and_continues_in_pieces() {
    let turn = Turn::steps().reasoning("Hm.").tool("read", json!({"filePath": "/a"})).tool("bash", "{bad");
    let response = answer(Protocol::Chat, turn).await;
    let deltas = deltas(&response);
    assert_eq!(deltas[1], json!({"reasoning_content": "Hm."}));
    let call = |delta: &Value| delta["tool_calls"][0].clone();
    let function = json!({"name": "read", "arguments": ""});
    assert_eq!(
        call(&deltas[2]),
        json!({"index": 0, "id": "call_mock_1_2", "type": "function", "function": function})
    );
    let arguments = |index: usize| -> String {
        let calls = deltas.iter().map(call).filter(|call| call["index"] == index);
        calls.filter_map(|call| call["function"]["arguments"].as_str().map(str::to_owned)).collect()
    };
    assert_eq!(arguments(0), r#"{"filePath":"/a"}"#);
    assert_eq!(arguments(1), "{bad");
    let finish: Vec<_> =
        response.events().iter().map(|event| event["choices"][0]["finish_reason"].clone()).collect();
    assert!(finish.contains(&json!("tool_calls")));
}

#[tokio::test]
async fn anthropic_blocks_are_numbered_and_reasoning_is_signed() {
    let turn = Turn::steps().reasoning("Hm.").text("So.").tool("read", json!({"filePath": "/a"}));
    let events = answer(Protocol::Anthropic, turn).await.events();
    let starts: Vec<_> = events.iter().filter(|event| event["type"] == "content_block_start").collect();
    assert_eq!(starts[0]["content_block"], json!({"type": "thinking", "thinking": "", "signature": ""}));
    assert_eq!(
        starts[2]["content_block"],
        json!({"type": "tool_use", "id": "toolu_mock_1_3", "name": "read", "input": {}})
    );
    assert_eq!(starts.iter().map(|start| start["index"].clone()).collect::<Vec<_>>(), [0, 1, 2]);
    let signed = json!({"type": "signature_delta", "signature": "c2lnbmF0dXJl"});
    assert!(events.iter().any(|event| event["delta"] == signed));
    let input: String = events.iter().filter_map(|event| event["delta"]["partial_json"].as_str()).collect();
    assert_eq!(input, r#"{"filePath":"/a"}"#);
    assert!(events.iter().any(|event| event["delta"]["stop_reason"] == "tool_use"));
}

#[tokio::test]
async fn gemini_sends_complete_parts_and_signs_its_calls() {
    let turn = Turn::steps().reasoning("Hm.").text("So.").tool("read", json!({"filePath": "/a"}));
    let events = answer(Protocol::Gemini, turn).await.events();
    let parts: Vec<_> = events.iter().map(|event| &event["candidates"][0]["content"]["parts"][0]).collect();
    assert_eq!(*parts[0], json!({"text": "Hm.", "thought": true}));
    assert_eq!(*parts[1], json!({"text": "So."}));
    let call = json!({"name": "read", "args": {"filePath": "/a"}});
    assert_eq!(*parts[2], json!({"functionCall": call, "thoughtSignature": "c2lnbmF0dXJl"}));
    let last = &events[3];
    assert_eq!(last["candidates"][0]["finishReason"], "STOP");
    assert_eq!(last["usageMetadata"]["promptTokenCount"], 100);
    assert_eq!(last["modelVersion"], "gemini-mock");
    assert_eq!(events.len(), 4);
}

/// Returns the types of the events. Repeated types occur once.
fn kinds(events: &[Value]) -> Vec<&str> {
    let mut kinds: Vec<_> = events.iter().map(|event| event["type"].as_str().unwrap_or_default()).collect();
    kinds.dedup();
    kinds
}

fn numbers(events: &[Value]) -> Vec<u64> {
    events.iter().map(|event| event["sequence_number"].as_u64().expect("a number")).collect()
}

#[tokio::test]
async fn responses_number_their_events_and_repeat_a_text() {
    let response = answer(Protocol::Responses, Turn::text("Hello, wide world")).await;
    assert!(response.is_whole && response.status == 200);
    let text = response.text();
    let names: Vec<_> = text.lines().filter_map(|line| line.strip_prefix("event: ")).collect();
    let events = response.events();
    assert!(names.iter().zip(&events).all(|(name, event)| event["type"] == *name));
    assert_eq!(numbers(&events), (0..events.len() as u64).collect::<Vec<_>>());
    let expected = [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.content_part.added",
        "response.output_text.delta",
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.completed",
    ];
    assert_eq!(kinds(&events), expected);
    assert_eq!(response.answer_text(), "Hello, wide world");
    assert_eq!(
        events[4],
        json!({"type": "response.output_text.delta", "sequence_number": 4, "item_id": "msg_mock_1_0",
            "output_index": 0, "content_index": 0, "delta": "Hello, wide "})
    );
    let part = json!({"type": "output_text", "text": "Hello, wide world", "annotations": []});
    let item = json!({"id": "msg_mock_1_0", "type": "message", "status": "completed", "role": "assistant",
        "content": [part]});
    assert_eq!(events[8]["item"], item);
    let last = &events[9]["response"];
    assert_eq!((&last["output"], &last["status"]), (&json!([item]), &json!("completed")));
    assert_eq!(last["usage"]["input_tokens"], 100);
}

#[tokio::test]
async fn responses_encrypt_reasoning_and_stream_arguments() {
    let turn = || {
        let turn = Turn::steps().reasoning("A long thought.").encrypted("seal").reasoning("");
        turn.tool("read", json!({"filePath": "/a"}))
            .id("call_7")
            .tool("patch", Args::Custom("*** Go".to_owned()))
    };
    let events = answer(Protocol::Responses, turn()).await.events();
    let output = &events.last().unwrap()["response"]["output"];
    let expected = json!([
        {"id": "rs_mock_1_0", "type": "reasoning", "encrypted_content": "seal",
            "summary": [{"type": "summary_text", "text": "A long thought."}]},
        {"id": "rs_mock_1_1", "type": "reasoning", "encrypted_content": "ZW5jcnlwdGVk", "summary": []},
        {"id": "fc_mock_1_2", "type": "function_call", "status": "completed", "call_id": "call_7",
            "name": "read", "arguments": "{\"filePath\":\"/a\"}"},
        {"id": "ctc_mock_1_3", "type": "custom_tool_call", "status": "completed", "call_id": "call_mock_1_4",
            "name": "patch", "input": "*** Go"},
    ]);
    assert_eq!(*output, expected);
    // The encrypted content at the start differs from the final one.
    assert_ne!(events[2]["item"]["encrypted_content"], "seal");
    let pieces = |kind: &str| -> Vec<&str> {
        let events = events.iter().filter(|event| event["type"] == kind);
        events.map(|event| event["delta"].as_str().unwrap()).collect()
    };
    assert_eq!(pieces("response.reasoning_summary_text.delta"), ["A long thoug", "ht."]);
    assert_eq!(pieces("response.function_call_arguments.delta"), ["{\"filePath\":", "\"/a\"}"]);
    assert_eq!(pieces("response.custom_tool_call_input.delta"), ["*** Go"]);

    let server = Server::start(Script::new().turn(turn())).await.unwrap();
    let mut body = prompt(Protocol::Responses, "Go");
    body["stream"] = json!(false);
    let whole = Client::connect(&server).await.ask(Protocol::Responses, &body).await.json();
    assert_eq!(whole["output"], expected);
}

#[tokio::test]
async fn incomplete_responses_contain_the_reason() {
    for (finish, reason) in [
        (Finish::Length, "max_output_tokens"),
        (Finish::ContentFilter, "content_filter"),
        (Finish::Other("tired".to_owned()), "tired"),
    ] {
        let usage = Usage { input: 7, output: 5, cache_read: 3, cache_write: 0, reasoning: 1 };
        let events = answer(Protocol::Responses, Turn::text("x").usage(usage).finish(finish)).await.events();
        let last = events.last().unwrap();
        assert_eq!(last["type"], "response.incomplete");
        assert_eq!(last["response"]["incomplete_details"], json!({"reason": reason}));
        let usage = json!({"input_tokens": 10, "input_tokens_details": {"cached_tokens": 3},
            "output_tokens": 5, "output_tokens_details": {"reasoning_tokens": 1}, "total_tokens": 15});
        assert_eq!(last["response"]["usage"], usage);
    }
}

#[tokio::test]
async fn a_response_fails_with_an_event_or_as_a_whole() {
    let error = |kind: Option<&str>| StreamError {
        kind: kind.map(str::to_owned),
        code: Some(json!("rate_limit_exceeded")),
        message: "Slow down".to_owned(),
    };
    let turn = |kind| Turn::text("Hel").step(Step::StreamError(error(kind)));
    let event = answer(Protocol::Responses, turn(Some("tokens"))).await;
    assert_eq!(event.answer_text(), "Hel");
    let expected =
        json!({"type": "tokens", "code": "rate_limit_exceeded", "message": "Slow down", "param": null});
    let last = event.events().pop().unwrap();
    assert_eq!((&last["type"], &last["error"]), (&json!("error"), &expected));
    let last = answer(Protocol::Responses, turn(None)).await.events().pop().unwrap();
    assert_eq!((&last["type"], &last["response"]["status"]), (&json!("response.failed"), &json!("failed")));
    let expected = json!({"code": "rate_limit_exceeded", "message": "Slow down"});
    assert_eq!(last["response"]["error"], expected);
}

/// Reasoning, text and a call, with distinct usage numbers.
fn varied() -> Turn {
    let usage = Usage { input: 7, output: 5, cache_read: 3, cache_write: 2, reasoning: 1 };
    let turn = Turn::steps().reasoning("Hm.").text("So.");
    turn.tool("read", json!({"filePath": "/a"})).usage(usage).into()
}

#[tokio::test]
async fn bedrock_sends_frames_and_signs_its_reasoning() {
    let response = answer(Protocol::Bedrock, varied()).await;
    assert!(response.is_whole && response.head.contains("application/vnd.amazon.eventstream"));
    let p = "abcdefghijk";
    let delta = |index: usize, delta: Value| json!({"contentBlockDelta": {"contentBlockIndex": index, "delta": delta, "p": p}});
    let stop = |index: usize| json!({"contentBlockStop": {"contentBlockIndex": index, "p": p}});
    let start = json!({"toolUse": {"toolUseId": "tooluse_mock_1_3", "name": "read"}});
    let usage = json!({"inputTokens": 7, "outputTokens": 5, "totalTokens": 17,
        "cacheReadInputTokens": 3, "cacheWriteInputTokens": 2});
    let expected = [
        json!({"messageStart": {"role": "assistant", "p": p}}),
        delta(0, json!({"reasoningContent": {"text": "Hm."}})),
        delta(0, json!({"reasoningContent": {"signature": "c2lnbmF0dXJl"}})),
        stop(0),
        delta(1, json!({"text": "So."})),
        stop(1),
        json!({"contentBlockStart": {"contentBlockIndex": 2, "start": start, "p": p}}),
        delta(2, json!({"toolUse": {"input": "{\"filePath\":"}})),
        delta(2, json!({"toolUse": {"input": "\"/a\"}"}})),
        stop(2),
        json!({"messageStop": {"stopReason": "tool_use", "p": p}}),
        json!({"metadata": {"usage": usage, "metrics": {"latencyMs": 1}, "p": p}}),
    ];
    assert_eq!(response.events(), expected);
}

#[tokio::test]
async fn cohere_numbers_contents_and_calls_separately() {
    let response = answer(Protocol::Cohere, varied()).await;
    let text = response.text();
    let names: Vec<_> = text.lines().filter_map(|line| line.strip_prefix("event: ")).collect();
    let events = response.events();
    assert!(names.iter().zip(&events).all(|(name, event)| event["type"] == *name));
    let expected = [
        "message-start",
        "content-start",
        "content-delta",
        "content-end",
        "content-start",
        "content-delta",
        "content-end",
        "tool-call-start",
        "tool-call-delta",
        "tool-call-end",
        "message-end",
    ];
    assert_eq!(kinds(&events), expected);
    assert_eq!(events[2]["delta"]["message"]["content"], json!({"thinking": "Hm."}));
    assert_eq!((&events[5]["index"], &events[7]["index"]), (&json!(1), &json!(0)));
    let call = &events[7]["delta"]["message"]["tool_calls"];
    assert_eq!((&call["id"], &call["function"]["name"]), (&json!("call_mock_1_3"), &json!("read")));
    let end = &events.last().unwrap()["delta"];
    assert_eq!(end["finish_reason"], "TOOL_CALL");
    assert_eq!(end["usage"]["tokens"], json!({"input_tokens": 10.0, "output_tokens": 5.0}));
    assert_eq!(end["usage"]["cached_tokens"], json!(3.0));
}

#[tokio::test]
async fn vertex_sends_anthropic_events() {
    let vertex = answer(Protocol::Vertex, varied()).await;
    let mut expected = answer(Protocol::Anthropic, varied()).await.events();
    for event in vertex.events() {
        assert_eq!(event, expected.remove(0));
    }
    assert_eq!(expected, [json!(null); 0]);
}

#[tokio::test]
async fn an_error_of_bedrock_is_an_exception() {
    let turn = Turn::text("Hel").stream_error("rate_limit_error", "Slow down");
    let response = answer(Protocol::Bedrock, turn).await;
    assert_eq!(response.answer_text(), "Hel");
    let last = response.events().pop().unwrap();
    assert_eq!(last, json!({"throttlingException": {"message": "Slow down"}}));
    let response = answer(Protocol::Bedrock, Turn::http_error(403)).await;
    assert!(response.head.contains("x-amzn-errortype: accessdeniedexception"), "{}", response.head);
    assert_eq!(response.json(), json!({"message": "scripted error"}));
    let turn = Turn::text("Hel").stream_error("any", "Broken");
    let last = answer(Protocol::Cohere, turn).await.events().pop().unwrap();
    assert_eq!(
        (&last["delta"]["finish_reason"], &last["delta"]["error"]),
        (&json!("ERROR"), &json!("Broken"))
    );
}

#[tokio::test]
async fn ids_and_signatures_may_be_scripted() {
    let turn = Turn::steps().reasoning("Hm.").signature("c2ln").tool("read", json!({})).id("call_7");
    let events = answer(Protocol::Anthropic, turn).await.events();
    assert!(events.iter().any(|event| event["delta"]["signature"] == "c2ln"));
    assert!(events.iter().any(|event| event["content_block"]["id"] == "toolu_7"));
}

#[tokio::test]
async fn usage_and_finish_are_as_scripted() {
    let turn = || {
        let usage = Usage { input: 7, output: 5, cache_read: 3, cache_write: 2, reasoning: 1 };
        Turn::text("x").usage(usage).finish(Finish::Length).header("x-extra", "1")
    };
    let chat = answer(Protocol::Chat, turn()).await;
    assert!(chat.head.contains("x-extra: 1"));
    let events = chat.events();
    assert!(events.iter().any(|event| event["choices"][0]["finish_reason"] == "length"));
    let usage = json!({
        "prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15,
        "prompt_tokens_details": {"cached_tokens": 3}, "completion_tokens_details": {"reasoning_tokens": 1},
    });
    assert_eq!(events[events.len() - 2]["usage"], usage);
    let events = answer(Protocol::Anthropic, turn()).await.events();
    let usage = json!({"input_tokens": 7, "cache_creation_input_tokens": 2, "cache_read_input_tokens": 3, "output_tokens": 1});
    assert_eq!(events[0]["message"]["usage"], usage);
    assert!(events.iter().any(|event| event["delta"]["stop_reason"] == "max_tokens"));
}

#[tokio::test]
async fn an_error_inside_the_stream_ends_it() {
    let turn = || Turn::text("Hel").stream_error("overloaded_error", "Overloaded").text("never");
    let chat = answer(Protocol::Chat, turn()).await;
    assert!(chat.is_whole);
    let error = json!({"error": {"message": "Overloaded", "type": "overloaded_error", "code": null}});
    assert_eq!((chat.answer_text().as_str(), chat.events().last().unwrap()), ("Hel", &error));
    let anthropic = answer(Protocol::Anthropic, turn()).await;
    let error = json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}});
    assert_eq!((anthropic.answer_text().as_str(), anthropic.events().last().unwrap()), ("Hel", &error));
}

#[tokio::test]
async fn a_request_without_stream_gets_one_piece() {
    let turn = || Turn::steps().reasoning("Hm.").text("Hi").tool("read", json!({"a": 1}));
    let server = Server::start(Script::new().turn(turn()).turn(turn())).await.unwrap();
    let mut client = Client::connect(&server).await;
    let mut body = prompt(Protocol::Chat, "Go");
    body.as_object_mut().unwrap().remove("stream");
    body.as_object_mut().unwrap().remove("stream_options");
    let chat = client.ask(Protocol::Chat, &body).await.json();
    let message = &chat["choices"][0]["message"];
    assert_eq!((&message["content"], &message["reasoning_content"]), (&json!("Hi"), &json!("Hm.")));
    assert_eq!(message["tool_calls"][0]["function"], json!({"name": "read", "arguments": "{\"a\":1}"}));
    assert_eq!(chat["choices"][0]["finish_reason"], "tool_calls");
    let mut body = prompt(Protocol::Anthropic, "Go");
    body["stream"] = json!(false);
    let anthropic = client.ask(Protocol::Anthropic, &body).await.json();
    let expected = json!([
        {"type": "thinking", "thinking": "Hm.", "signature": "c2lnbmF0dXJl"},
        {"type": "text", "text": "Hi"},
        {"type": "tool_use", "id": "toolu_mock_2_3", "name": "read", "input": {"a": 1}},
    ]);
    assert_eq!(anthropic["content"], expected);
    assert_eq!(anthropic["usage"]["output_tokens"], 20);
}

#[tokio::test]
async fn a_flood_arrives_complete_and_in_pieces() {
    let flood = Flood { bytes: 2_000_000, deltas: 40_000 };
    for protocol in [
        Protocol::Chat,
        Protocol::Anthropic,
        Protocol::Gemini,
        Protocol::Responses,
        Protocol::Bedrock,
        Protocol::Cohere,
    ] {
        let script = Script::new().turn(Turn::steps().flood(flood.bytes, flood.deltas)).repeat();
        let server = Server::start(script).await.unwrap();
        let mut client = Client::connect(&server).await;
        // The second time, the cached bytes are sent.
        for _ in 0..2 {
            let response = client.ask(protocol, &prompt(protocol, "Go")).await;
            assert!(response.is_whole);
            let events = response.events();
            let pieces = events.iter().filter(|event| match protocol {
                Protocol::Chat => {
                    event["choices"][0]["delta"]["content"].as_str().is_some_and(|text| !text.is_empty())
                }
                Protocol::Anthropic | Protocol::Vertex => event["delta"]["type"] == "text_delta",
                Protocol::Bedrock => event["contentBlockDelta"]["delta"]["text"].is_string(),
                Protocol::Cohere => event["type"] == "content-delta",
                Protocol::Gemini => event["candidates"][0]["finishReason"].is_null(),
                Protocol::Responses => event["type"] == "response.output_text.delta",
            });
            assert_eq!(pieces.count(), flood.deltas);
            assert!(response.answer_text() == flood.text(), "the text differs");
            if protocol == Protocol::Responses {
                let last = events.last().unwrap();
                let text = last["response"]["output"][0]["content"][0]["text"].as_str();
                assert!(text == Some(&flood.text()), "the finished text differs");
                assert!(numbers(&events).is_sorted_by(|one, next| one < next), "the numbers do not rise");
            }
        }
    }
}

#[tokio::test]
async fn a_marker_selects_a_scenario() {
    let server = Server::start(Script::new().text("turn").scenarios()).await.unwrap();
    let mut client = Client::connect(&server).await;
    let flood = Flood { bytes: 5_000, deltas: 100 };
    let body = prompt(Protocol::Chat, "old [[scn:hi]] new [[scn:stream:5000:100]] go");
    assert_eq!(client.ask(Protocol::Chat, &body).await.answer_text(), flood.text());
    let body = prompt(Protocol::Anthropic, "[[scn:paced:5:1000]]");
    assert_eq!(
        client.ask(Protocol::Anthropic, &body).await.answer_text(),
        "tok00000 tok00001 tok00002 tok00003 tok00004 "
    );
}

#[tokio::test]
async fn a_paced_text_is_sent_slowly() {
    let begun = Instant::now();
    let turn = Turn::text("one two three").chunk_size(3).chunk_delay_ms(20).delay(Duration::from_millis(50));
    let response = answer(Protocol::Chat, turn).await;
    assert_eq!(response.answer_text(), "one two three");
    assert!(begun.elapsed() >= Duration::from_millis(150), "{:?}", begun.elapsed());
}
