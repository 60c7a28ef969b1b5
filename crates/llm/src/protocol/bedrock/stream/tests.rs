use super::*;

fn play(events: &[&str]) -> Result<Vec<ModelEvent>, Error> {
    let (mut stream, mut out) = (Stream::default(), Vec::new());
    for event in events {
        stream.push(event, &mut out)?;
    }
    stream.finish(&mut out)?;
    Ok(out)
}

const START: &str = r#"{"messageStart":{"p":"abc","role":"assistant"}}"#;
const STOP: &str = r#"{"messageStop":{"p":"a","stopReason":"end_turn"}}"#;

fn finish(reason: FinishReason) -> ModelEvent {
    ModelEvent::Finish { reason, usage: Usage::default() }
}

#[test]
fn reasoning_text_and_calls_follow_one_another() {
    let events = play(&[
        START,
        r#"{"contentBlockDelta":{"contentBlockIndex":0,"delta":{"reasoningContent":{"text":"Hm"}},"p":"x"}}"#,
        r#"{"contentBlockDelta":{"contentBlockIndex":0,"delta":{"reasoningContent":{"signature":"c2ln"}}}}"#,
        r#"{"contentBlockStop":{"contentBlockIndex":0}}"#,
        r#"{"contentBlockDelta":{"contentBlockIndex":1,"delta":{"text":"Hel"}}}"#,
        r#"{"contentBlockDelta":{"contentBlockIndex":1,"delta":{"text":"lo"}}}"#,
        r#"{"contentBlockStop":{"contentBlockIndex":1}}"#,
        r#"{"contentBlockStart":{"contentBlockIndex":2,"start":{"toolUse":{"name":"read","toolUseId":"t1"}}}}"#,
        r#"{"contentBlockDelta":{"contentBlockIndex":2,"delta":{"toolUse":{"input":"{\"p\":"}}}}"#,
        r#"{"contentBlockDelta":{"contentBlockIndex":2,"delta":{"toolUse":{"input":"1}"}}}}"#,
        r#"{"contentBlockStop":{"contentBlockIndex":2}}"#,
        r#"{"contentBlockStart":{"contentBlockIndex":3,"start":{"toolUse":{"name":"list","toolUseId":"t2"}}}}"#,
        r#"{"contentBlockStop":{"contentBlockIndex":3}}"#,
        r#"{"messageStop":{"stopReason":"tool_use"}}"#,
        r#"{"metadata":{"metrics":{"latencyMs":9},"usage":{"inputTokens":10,"outputTokens":5,"totalTokens":117,"cacheReadInputTokens":100,"cacheWriteInputTokens":2}}}"#,
    ])
    .unwrap();
    let text = |id: &str, text: &str| ModelEvent::ToolDelta { id: id.into(), text: text.into() };
    let start = |id: &str, name: &str| ModelEvent::ToolStart { id: id.into(), name: name.into() };
    let call = |id: &str, name: &str, arguments: &str| ModelEvent::ToolCall {
        id: id.into(),
        name: name.into(),
        arguments: arguments.into(),
    };
    assert_eq!(
        events,
        [
            ModelEvent::ReasoningStart,
            ModelEvent::ReasoningDelta("Hm".into()),
            ModelEvent::ReasoningEnd { metadata: Some(json!({"bedrock": {"signature": "c2ln"}})) },
            ModelEvent::TextStart,
            ModelEvent::TextDelta("Hel".into()),
            ModelEvent::TextDelta("lo".into()),
            ModelEvent::TextEnd,
            start("t1", "read"),
            text("t1", "{\"p\":"),
            text("t1", "1}"),
            call("t1", "read", r#"{"p":1}"#),
            start("t2", "list"),
            call("t2", "list", "{}"),
            ModelEvent::Finish {
                reason: FinishReason::ToolCalls,
                usage: Usage {
                    input: 10,
                    output: 5,
                    reasoning: 0,
                    cache_read: 100,
                    cache_write: 2,
                    total: Some(117),
                },
            },
        ]
    );
}

#[test]
fn redacted_reasoning_is_kept_unchanged() {
    for (pieces, expected) in
        [(&["eHg+/w=="][..], "eHg+/w=="), (&["YQ==", "Yg=="], "YWI="), (&["?", "!"], "?!")]
    {
        let mut events: Vec<String> = pieces
            .iter()
            .map(|data| {
                json!({"contentBlockDelta": {
                    "contentBlockIndex": 0, "delta": {"reasoningContent": {"redactedContent": data}},
                }})
                .to_string()
            })
            .collect();
        events.push(STOP.into());
        let events: Vec<&str> = events.iter().map(String::as_str).collect();
        let metadata = Some(json!({"bedrock": {"redactedData": expected}}));
        let expected =
            [ModelEvent::ReasoningStart, ModelEvent::ReasoningEnd { metadata }, finish(FinishReason::Stop)];
        assert_eq!(play(&events).unwrap(), expected);
    }
}

#[test]
fn every_stop_reason_is_decoded() {
    for (reason, expected) in [
        ("end_turn", FinishReason::Stop),
        ("stop_sequence", FinishReason::Stop),
        ("tool_use", FinishReason::Stop),
        ("max_tokens", FinishReason::Length),
        ("guardrail_intervened", FinishReason::ContentFilter),
        ("content_filtered", FinishReason::ContentFilter),
        ("malformed_tool_use", FinishReason::Other("malformed_tool_use".into())),
    ] {
        let stop = json!({"messageStop": {"stopReason": reason}}).to_string();
        assert_eq!(play(&[START, &stop]).unwrap(), [finish(expected)]);
    }
}

#[test]
fn an_answer_without_an_end_is_incomplete() {
    let delta = r#"{"contentBlockDelta":{"contentBlockIndex":0,"delta":{"text":"a"}}}"#;
    for events in [&[][..], &[START], &[START, delta]] {
        assert!(matches!(play(events), Err(Error::Busy { .. })), "{events:?}");
    }
    // A block that was not ended does not block the end of the answer.
    let events = play(&[START, delta, STOP]).unwrap();
    assert_eq!(events[2..], [ModelEvent::TextEnd, finish(FinishReason::Stop)]);
}

#[test]
fn exceptions_end_the_answer() {
    for (event, expected) in [
        (r#"{"throttlingException":{"message":"slow"}}"#, "busy slow"),
        (
            r#"{"modelStreamErrorException":{"originalStatusCode":500,"originalMessage":"broke"}}"#,
            "busy broke",
        ),
        (r#"{"error":{"code":"InternalFailure","message":"oops"}}"#, "busy oops"),
        (r#"{"validationException":{"message":"Input is too long for requested model."}}"#, "overflow"),
        (r#"{"validationException":{"message":"bad"}}"#, "rejected bad"),
    ] {
        let found = match play(&[START, event]).unwrap_err() {
            Error::Busy { failure, .. } => format!("busy {failure}"),
            Error::Rejected { failure } => format!("rejected {failure}"),
            Error::Overflow { .. } => "overflow".to_owned(),
            Error::Auth { .. } => "auth".to_owned(),
        };
        assert_eq!(found, expected);
    }
}

#[test]
fn unknown_events_are_skipped_and_invalid_json_is_an_error() {
    assert_eq!(
        play(&[START, r#"{"somethingNew":{"x":1}}"#, "{}", STOP]).unwrap(),
        [finish(FinishReason::Stop)]
    );
    for event in ["[1]", r#"{"contentBlockDelta":3}"#, "{"] {
        let error = play(&[event]).unwrap_err().to_string();
        assert!(error.contains(event), "{error}");
    }
}
