use super::*;

fn play(events: &[&str]) -> Result<Vec<ModelEvent>, Error> {
    let (mut stream, mut out) = (Stream::default(), Vec::new());
    for event in events {
        stream.push(event, &mut out)?;
    }
    stream.finish(&mut out)?;
    Ok(out)
}

fn thought(kind: &str, text: &str) -> [ModelEvent; 3] {
    [
        ModelEvent::ReasoningStart,
        ModelEvent::ReasoningDelta(text.into()),
        ModelEvent::ReasoningEnd { metadata: Some(json!({"cohere": {"type": kind}})) },
    ]
}

#[test]
fn reasoning_and_text_are_separate_blocks() {
    let events = play(&[
        r#"{"id":"1","type":"message-start","delta":{"message":{"role":"assistant","content":[],"tool_plan":"","tool_calls":[],"citations":[]}}}"#,
        r#"{"type":"content-start","index":0,"delta":{"message":{"content":{"type":"thinking","thinking":""}}}}"#,
        r#"{"type":"content-delta","index":0,"delta":{"message":{"content":{"thinking":"Hm"}}}}"#,
        r#"{"type":"content-end","index":0}"#,
        r#"{"type":"content-start","index":1,"delta":{"message":{"content":{"type":"text","text":""}}}}"#,
        r#"{"type":"content-delta","index":1,"delta":{"message":{"content":{"text":"Hel"}}}}"#,
        r#"{"type":"content-delta","index":1,"delta":{"message":{"content":{"text":"lo"}}}}"#,
        r#"{"type":"citation-start","index":0,"delta":{"message":{"citations":{"start":1,"end":2}}}}"#,
        r#"{"type":"content-end","index":1}"#,
        r#"{"type":"message-end","delta":{"finish_reason":"COMPLETE","usage":{"billed_units":{"input_tokens":3,"output_tokens":4},"tokens":{"input_tokens":206.0,"output_tokens":7},"cached_tokens":200}}}"#,
        "[DONE]",
    ])
    .unwrap();
    assert_eq!(events[..3], thought("thinking", "Hm"));
    assert_eq!(
        events[3..],
        [
            ModelEvent::TextStart,
            ModelEvent::TextDelta("Hel".into()),
            ModelEvent::TextDelta("lo".into()),
            ModelEvent::TextEnd,
            ModelEvent::Finish {
                reason: FinishReason::Stop,
                usage: Usage { input: 6, output: 7, cache_read: 200, total: Some(213), ..Usage::default() },
            },
        ]
    );
}

#[test]
fn calls_follow_their_plan() {
    let events = play(&[
        r#"{"type":"tool-plan-delta","delta":{"message":{"tool_plan":"I will"}}}"#,
        r#"{"type":"tool-call-start","index":0,"delta":{"message":{"tool_calls":{"id":"a","type":"function","function":{"name":"read","arguments":""}}}}}"#,
        r#"{"type":"tool-call-delta","index":0,"delta":{"message":{"tool_calls":{"function":{"arguments":"{\"p\":1}"}}}}}"#,
        r#"{"type":"tool-call-end","index":0}"#,
        r#"{"type":"tool-call-start","index":1,"delta":{"message":{"tool_calls":{"id":"b","type":"function","function":{"name":"list","arguments":""}}}}}"#,
        r#"{"type":"tool-call-end","index":1}"#,
        r#"{"type":"message-end","delta":{"finish_reason":"TOOL_CALL","usage":{"tokens":{"input_tokens":1,"output_tokens":2}}}}"#,
    ])
    .unwrap();
    let start = |id: &str, name: &str| ModelEvent::ToolStart { id: id.into(), name: name.into() };
    let call = |id: &str, name: &str, arguments: &str| ModelEvent::ToolCall {
        id: id.into(),
        name: name.into(),
        arguments: arguments.into(),
    };
    assert_eq!(events[..3], thought("tool_plan", "I will"));
    assert_eq!(
        events[3..8],
        [
            start("a", "read"),
            ModelEvent::ToolDelta { id: "a".into(), text: r#"{"p":1}"#.into() },
            call("a", "read", r#"{"p":1}"#),
            start("b", "list"),
            call("b", "list", "{}"),
        ]
    );
    assert!(matches!(&events[8], ModelEvent::Finish { reason: FinishReason::ToolCalls, .. }));
}

#[test]
fn an_answer_in_one_piece_is_decoded_like_a_stream() {
    let body = r#"{"id":"1","finish_reason":"TOOL_CALL","message":{"role":"assistant","tool_plan":"p","content":[{"type":"thinking","thinking":"t"},{"type":"text","text":"x"}],"tool_calls":[{"id":"a","type":"function","function":{"name":"read","arguments":"{}"}}]},"usage":{"tokens":{"input_tokens":1,"output_tokens":2}}}"#;
    let (mut stream, mut out) = (Stream::default(), Vec::new());
    stream.push_whole(body, &mut out).unwrap();
    assert_eq!(out[..3], thought("tool_plan", "p"));
    assert_eq!(out[3..6], thought("thinking", "t"));
    assert!(matches!(&out[7], ModelEvent::TextDelta(text) if text == "x"), "{out:?}");
    assert!(matches!(out.last(), Some(ModelEvent::Finish { reason: FinishReason::ToolCalls, .. })));
    let refused = Stream::default().push_whole(r#"{"message":"invalid request"}"#, &mut Vec::new());
    assert_eq!(refused.unwrap_err().to_string(), "invalid request");
}

#[test]
fn a_failed_answer_is_an_error() {
    for (event, expected) in [
        (r#"{"type":"message-end","delta":{"finish_reason":"ERROR","error":"it broke"}}"#, "it broke"),
        (
            r#"{"type":"message-end","delta":{"finish_reason":"TIMEOUT"}}"#,
            "the provider ended the answer with `TIMEOUT`",
        ),
        (r#"{"message":"internal error"}"#, "internal error"),
    ] {
        match play(&[event]).unwrap_err() {
            Error::Busy { failure, .. } => assert_eq!(failure.message, expected),
            other => panic!("{other:?}"),
        }
    }
    let delta = r#"{"type":"content-delta","delta":{"message":{"content":{"text":"a"}}}}"#;
    assert!(matches!(play(&[delta]), Err(Error::Busy { .. })), "cut short");
    assert!(matches!(play(&[delta, "[DONE]"]), Err(Error::Busy { .. })), "done without an end");
    assert!(matches!(play(&["{"]), Err(Error::Rejected { .. })));
}

#[test]
fn stop_reasons_are_decoded() {
    for (reason, expected) in [
        ("COMPLETE", FinishReason::Stop),
        ("STOP_SEQUENCE", FinishReason::Stop),
        ("MAX_TOKENS", FinishReason::Length),
        ("ERROR_TOXIC", FinishReason::ContentFilter),
        ("NEW", FinishReason::Other("NEW".into())),
    ] {
        let end = json!({"type": "message-end", "delta": {"finish_reason": reason}}).to_string();
        assert_eq!(
            play(&[&end]).unwrap(),
            [ModelEvent::Finish { reason: expected, usage: Usage::default() }]
        );
    }
}
