use super::*;

fn play(events: &[&str]) -> Result<Vec<ModelEvent>, Error> {
    let (mut stream, mut out) = (Stream::default(), Vec::new());
    for event in events {
        stream.push(event, &mut out)?;
    }
    stream.finish(&mut out)?;
    Ok(out)
}

fn finish(reason: FinishReason) -> ModelEvent {
    ModelEvent::Finish { reason, usage: Usage::default() }
}

const END: &str = r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"}}"#;

#[test]
fn signatures_and_redacted_reasoning_are_kept() {
    let events = play(&[
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hm"}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"c2ln"}}"#,
        r#"{"type":"content_block_stop","index":0}"#,
        r#"{"type":"content_block_start","index":1,"content_block":{"type":"redacted_thinking","data":"eHg="}}"#,
        r#"{"type":"content_block_stop","index":1}"#,
        END,
        r#"{"type":"message_stop"}"#,
    ])
    .unwrap();
    assert_eq!(
        events,
        [
            ModelEvent::ReasoningStart,
            ModelEvent::ReasoningDelta("hm".into()),
            ModelEvent::ReasoningEnd { metadata: Some(json!({"anthropic": {"signature": "c2ln"}})) },
            ModelEvent::ReasoningStart,
            ModelEvent::ReasoningEnd { metadata: Some(json!({"anthropic": {"redactedData": "eHg="}})) },
            finish(FinishReason::Stop),
        ]
    );
}

#[test]
fn calls_are_assembled_from_pieces() {
    let events = play(&[
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"a","name":"read","input":{}}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":""}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"p\":1}"}}"#,
        r#"{"type":"content_block_stop","index":0}"#,
        r#"{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"b","name":"list","input":{"q":2}}}"#,
        r#"{"type":"message_delta","delta":{"stop_reason":"tool_use"}}"#,
    ])
    .unwrap();
    let call = |id: &str, name: &str, arguments: &str| ModelEvent::ToolCall {
        id: id.into(),
        name: name.into(),
        arguments: arguments.into(),
    };
    assert_eq!(events[2], call("a", "read", r#"{"p":1}"#));
    assert_eq!(events[4..], [call("b", "list", r#"{"q":2}"#), finish(FinishReason::ToolCalls)]);
}

#[test]
fn the_servers_own_tools_are_skipped() {
    let events = play(&[
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"server_tool_use","id":"s","name":"web_search","input":{}}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{}"}}"#,
        r#"{"type":"content_block_stop","index":0}"#,
        r#"{"type":"content_block_start","index":1,"content_block":{"type":"web_search_tool_result","content":[]}}"#,
        r#"{"type":"content_block_stop","index":1}"#,
        r#"{"type":"something_new","index":7}"#,
        END,
    ])
    .unwrap();
    assert_eq!(events, [finish(FinishReason::Stop)]);
}

#[test]
fn a_block_that_never_ended_ends_before_the_next() {
    let events = play(&[
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"a"}}"#,
        r#"{"type":"content_block_start","index":1,"content_block":{"type":"thinking","thinking":"b"}}"#,
        END,
    ])
    .unwrap();
    assert_eq!(
        events,
        [
            ModelEvent::TextStart,
            ModelEvent::TextDelta("a".into()),
            ModelEvent::TextEnd,
            ModelEvent::ReasoningStart,
            ModelEvent::ReasoningDelta("b".into()),
            ModelEvent::ReasoningEnd { metadata: None },
            finish(FinishReason::Stop),
        ]
    );
}

#[test]
fn an_overload_error_in_the_stream_keeps_its_message() {
    let error = play(&[r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#])
        .unwrap_err();
    assert!(matches!(error, Error::Busy { .. }), "{error:?}");
    assert_eq!(error.to_string(), r#"{"type":"overloaded_error","message":"Overloaded"}"#);
}

#[test]
fn errors_in_the_stream_are_classified() {
    for (kind, message, expected) in [
        ("rate_limit_error", "m", "busy"),
        ("api_error", "m", "busy"),
        ("invalid_request_error", "m", "rejected"),
        ("invalid_request_error", "prompt is too long: 2 tokens > 1 maximum", "overflow"),
        ("authentication_error", "m", "auth"),
    ] {
        let event = format!(r#"{{"type":"error","error":{{"type":"{kind}","message":"{message}"}}}}"#);
        let found = match play(&[&event]).unwrap_err() {
            Error::Busy { .. } => "busy",
            Error::Overflow { .. } => "overflow",
            Error::Auth { .. } => "auth",
            Error::Rejected { .. } => "rejected",
        };
        assert_eq!(found, expected, "{kind} {message}");
    }
}

#[test]
fn tokens_are_summed_without_counting_twice() {
    let events = play(&[
        r#"{"type":"message_start","message":{"usage":{"input_tokens":10,"cache_read_input_tokens":5,"cache_creation_input_tokens":3,"output_tokens":1}}}"#,
        r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":20,"input_tokens":null}}"#,
        r#"{"type":"message_stop"}"#,
    ])
    .unwrap();
    let usage = Usage { input: 10, output: 20, reasoning: 0, cache_read: 5, cache_write: 3, total: Some(38) };
    assert_eq!(events, [ModelEvent::Finish { reason: FinishReason::Stop, usage }]);
}

#[test]
fn an_answer_without_a_stop_reason_is_incomplete() {
    let error = play(&[r#"{"type":"message_start","message":{}}"#]).unwrap_err();
    assert_eq!(error.to_string(), "connection closed before the answer was complete");
}

#[test]
fn a_message_in_one_piece_is_decoded() {
    let (mut stream, mut out) = (Stream::default(), Vec::new());
    let body = r#"{"type":"message","content":[{"type":"text","text":"hi"},{"type":"tool_use","id":"a","name":"x","input":{"k":1}}],
        "stop_reason":"tool_use","usage":{"input_tokens":1,"output_tokens":2}}"#;
    stream.push_whole(body, &mut out).unwrap();
    assert_eq!(out.len(), 6);
    assert_eq!(
        out[4],
        ModelEvent::ToolCall { id: "a".into(), name: "x".into(), arguments: r#"{"k":1}"#.into() }
    );
    assert!(stream.is_done());
}
