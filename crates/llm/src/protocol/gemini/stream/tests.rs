use super::*;

fn play(events: &[&str]) -> Result<Vec<ModelEvent>, Error> {
    let (mut stream, mut out) = (Stream::default(), Vec::new());
    for event in events {
        stream.push(event, &mut out)?;
    }
    stream.finish(&mut out)?;
    Ok(out)
}

fn parts(parts: &str) -> String {
    format!(r#"{{"candidates":[{{"content":{{"parts":[{parts}],"role":"model"}},"index":0}}]}}"#)
}

fn end(reason: &str) -> String {
    format!(r#"{{"candidates":[{{"content":{{}},"finishReason":"{reason}"}}]}}"#)
}

/// Events as short texts, with numbered calls.
fn summarize(events: &[ModelEvent]) -> Vec<String> {
    let mut ids: Vec<String> = Vec::new();
    let mut number = |id: &str| {
        if let Some(at) = ids.iter().position(|known| known == id) {
            return at;
        }
        ids.push(id.to_owned());
        ids.len() - 1
    };
    let word = |event: &ModelEvent| match event {
        ModelEvent::TextStart => "text".to_owned(),
        ModelEvent::TextDelta(text) => format!("+{text}"),
        ModelEvent::TextEnd => "/text".to_owned(),
        ModelEvent::ToolExcess { .. } => "more".to_owned(),
        ModelEvent::TextWasReasoning => "/text was thought".to_owned(),
        ModelEvent::ReasoningStart => "thought".to_owned(),
        ModelEvent::ReasoningDelta(text) => format!("~{text}"),
        ModelEvent::ReasoningEnd { metadata: None } => "/thought".to_owned(),
        ModelEvent::ReasoningEnd { metadata: Some(metadata) } => {
            format!("/thought {}", metadata["google"]["thoughtSignature"].as_str().unwrap())
        }
        ModelEvent::ToolStart { id, name } => format!("call {} {name}", number(id)),
        ModelEvent::ToolDelta { .. } => "...".to_owned(),
        ModelEvent::Metadata { call, metadata } => {
            let signature = metadata["google"]["thoughtSignature"].as_str().unwrap();
            format!(
                "sign {} {signature}",
                call.as_deref().map_or("text".to_owned(), |id| number(id).to_string())
            )
        }
        ModelEvent::ToolCall { id, arguments, .. } => format!("/call {} {arguments}", number(id)),
        ModelEvent::Finish { reason, .. } => reason.as_str().to_owned(),
    };
    events.iter().map(word).collect()
}

#[track_caller]
fn check(events: &[&str], expected: &[&str]) {
    assert_eq!(summarize(&play(events).unwrap()), expected);
}

#[test]
fn reasoning_text_and_calls_follow_one_another() {
    check(
        &[
            &parts(r#"{"text":"hm","thought":true},{"text":" so","thought":true,"thoughtSignature":"AA=="}"#),
            &parts(r#"{"text":"Look"},{"text":"ing."}"#),
            &parts(
                r#"{"functionCall":{"name":"read","args":{"p":"a"}},"thoughtSignature":"BB/+"},
                   {"functionCall":{"name":"list"}}"#,
            ),
            &end("STOP"),
        ],
        &[
            "thought",
            "~hm",
            "~ so",
            "/thought AA==",
            "text",
            "+Look",
            "+ing.",
            "/text",
            "call 0 read",
            "sign 0 BB/+",
            "...",
            r#"/call 0 {"p":"a"}"#,
            "call 1 list",
            "...",
            "/call 1 {}",
            "tool-calls",
        ],
    );
}

#[test]
fn a_signature_may_follow_its_text() {
    check(
        &[&parts(r#"{"text":"a"}"#), &parts(r#"{"text":"","thoughtSignature":"AA=="}"#), &end("STOP")],
        &["text", "+a", "sign text AA==", "/text", "stop"],
    );
}

#[test]
fn ids_of_the_server_are_kept_and_generated_ids_are_unique() {
    let events = play(&[
        &parts(
            r#"{"functionCall":{"id":"srv1","name":"a","args":{}}},{"functionCall":{"name":"a","args":null}},
            {"functionCall":{"name":"a"}},{"functionCall":{}}"#,
        ),
        &end("STOP"),
    ])
    .unwrap();
    let ids: Vec<&str> = events
        .iter()
        .filter_map(
            |event| if let ModelEvent::ToolCall { id, .. } = event { Some(id.as_str()) } else { None },
        )
        .collect();
    assert_eq!((ids.len(), ids[0]), (3, "srv1"));
    assert!(ids[1] != ids[2] && !ids[1].is_empty());
}

#[test]
fn tools_that_the_server_ran_are_skipped() {
    check(
        &[
            r#"{"candidates":[{"content":{"parts":[
                {"executableCode":{"language":"PYTHON","code":"print(1)"}},
                {"codeExecutionResult":{"outcome":"OUTCOME_OK","output":"1"}},
                {"inlineData":{"mimeType":"image/png","data":"AA=="}},
                {"text":"one"},{"somethingNew":{}}]},
                "groundingMetadata":{"groundingChunks":[{"web":{"uri":"https://h"}}]},
                "citationMetadata":{},"safetyRatings":[],"finishReason":"STOP"}],"modelVersion":"m"}"#,
            r#"{"usageMetadata":null,"candidates":null}"#,
            r#"{"candidates":[{"content":null}]}"#,
        ],
        &["text", "+one", "/text", "stop"],
    );
}

#[test]
fn stop_reasons_are_decoded() {
    for (reason, expected) in [
        ("STOP", FinishReason::Stop),
        ("MAX_TOKENS", FinishReason::Length),
        ("SAFETY", FinishReason::ContentFilter),
        ("RECITATION", FinishReason::ContentFilter),
        ("BLOCKLIST", FinishReason::ContentFilter),
        ("PROHIBITED_CONTENT", FinishReason::ContentFilter),
        ("SPII", FinishReason::ContentFilter),
        ("IMAGE_SAFETY", FinishReason::ContentFilter),
        ("NEW_REASON", FinishReason::Other("NEW_REASON".into())),
    ] {
        let events = play(&[&end(reason)]).unwrap();
        assert_eq!(events, [ModelEvent::Finish { reason: expected, usage: Usage::default() }], "{reason}");
    }
}

#[test]
fn a_malformed_call_is_retried() {
    let error =
        play(&[r#"{"candidates":[{"finishReason":"MALFORMED_FUNCTION_CALL","finishMessage":"print("}]}"#])
            .unwrap_err();
    assert!(matches!(error, Error::Busy { .. }), "{error:?}");
    assert_eq!(error.to_string(), "the model's answer is malformed (MALFORMED_FUNCTION_CALL): print(");
}

#[test]
fn a_blocked_prompt_is_an_error() {
    let error = play(&[
        r#"{"promptFeedback":{"blockReason":"PROHIBITED_CONTENT","blockReasonMessage":"no"},"usageMetadata":{}}"#,
    ])
    .unwrap_err();
    assert!(matches!(error, Error::Rejected { .. }), "{error:?}");
    assert_eq!(error.to_string(), "the provider blocked the prompt (PROHIBITED_CONTENT): no");
}

#[test]
fn errors_in_the_stream_are_reported() {
    let body = r#"{"error":{"code":503,"message":"The model is overloaded.","status":"UNAVAILABLE"}}"#;
    for data in [body.to_owned(), format!("[{body}]")] {
        let error = play(&[&parts(r#"{"text":"a"}"#), &data]).unwrap_err();
        assert!(matches!(error, Error::Busy { .. }), "{error:?}");
        assert_eq!(error.to_string(), "The model is overloaded.");
    }
    assert!(matches!(play(&["{not json"]).unwrap_err(), Error::Rejected { .. }));
    assert!(matches!(play(&["[3]"]).unwrap_err(), Error::Rejected { .. }));
}

#[test]
fn an_answer_without_a_stop_reason_is_incomplete() {
    let error = play(&[&parts(r#"{"text":"a"}"#)]).unwrap_err();
    assert_eq!(error.to_string(), "connection closed before the answer was complete");
}

#[test]
fn tokens_are_summed_without_counting_twice() {
    let events = play(&[
        r#"{"candidates":[{"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":1}}"#,
        r#"{"usageMetadata":{"promptTokenCount":100,"cachedContentTokenCount":60,"toolUsePromptTokenCount":5,
            "candidatesTokenCount":20,"thoughtsTokenCount":7,"totalTokenCount":132}}"#,
    ])
    .unwrap();
    let usage =
        Usage { input: 45, output: 20, reasoning: 7, cache_read: 60, cache_write: 0, total: Some(132) };
    assert_eq!(events, [ModelEvent::Finish { reason: FinishReason::Stop, usage }]);
}

#[test]
fn an_answer_in_one_piece_is_decoded() {
    let chunk = r#"{"candidates":[{"content":{"parts":[{"text":"hi"}]},"finishReason":"STOP"}]}"#;
    for body in [chunk.to_owned(), format!("[{{\"candidates\":[]}},\n{chunk}]")] {
        let (mut stream, mut out) = (Stream::default(), Vec::new());
        stream.push_whole(&body, &mut out).unwrap();
        assert_eq!(summarize(&out), ["text", "+hi", "/text", "stop"]);
        assert!(stream.is_done());
    }
    let error = Stream::default().push_whole(r#"{"kind":"other"}"#, &mut Vec::new()).unwrap_err();
    assert_eq!(error.to_string(), r#"the server answered with JSON that is not an answer: {"kind":"other"}"#);
}
