use super::*;

/// Decodes events, each written without `response.` before its type. Stops at an error.
fn play(events: &[&str]) -> Vec<String> {
    let (mut stream, mut out) = (Stream::default(), Vec::new());
    for event in events {
        let data = event.replacen(r#"{"type":"~"#, r#"{"type":"response."#, 1);
        if let Err(error) = stream.push(&data, &mut out) {
            let mut lines: Vec<String> = out.iter().map(line).collect();
            lines.push(format!("{} {error}", class(&error)));
            return lines;
        }
    }
    out.iter().map(line).collect()
}

fn class(error: &Error) -> &'static str {
    match error {
        Error::Busy { .. } => "busy",
        Error::Overflow { .. } => "overflow",
        Error::Auth { .. } => "auth",
        Error::Rejected { .. } => "rejected",
    }
}

/// One event as a short line.
fn line(event: &ModelEvent) -> String {
    match event {
        ModelEvent::TextStart => "<text".into(),
        ModelEvent::TextDelta(text) => format!("t {text}"),
        ModelEvent::TextEnd => "text>".into(),
        ModelEvent::TextWasReasoning => "was thought>".into(),
        ModelEvent::ReasoningStart => "<thought".into(),
        ModelEvent::ReasoningDelta(text) => format!("r {text}"),
        ModelEvent::ReasoningEnd { metadata } => match metadata.as_ref().map(|value| &value["openai"]) {
            Some(mine) => format!("thought> {} {}", mine["itemId"], mine["reasoningEncryptedContent"]),
            None => "thought>".into(),
        },
        ModelEvent::ToolStart { id, name } => format!("<{id} {name}"),
        ModelEvent::ToolDelta { id, text } => format!("{id} {text}"),
        ModelEvent::ToolExcess { id } => format!("{id} has more"),
        ModelEvent::ToolCall { id, name, arguments } => format!("{id}> {name} {arguments}"),
        ModelEvent::Metadata { call, metadata } => {
            format!("{} is {}", call.as_deref().unwrap_or("text"), metadata["openai"]["itemId"])
        }
        ModelEvent::Finish { reason, usage } => {
            format!("finish {} {}/{}", reason.as_str(), usage.input, usage.output)
        }
    }
}

#[track_caller]
fn check(events: &[&str], expected: &[&str]) {
    assert_eq!(play(events), expected);
}

const DONE: &str = r#"{"type":"~completed","response":{"status":"completed","usage":{"input_tokens":5,"input_tokens_details":{"cached_tokens":2},"output_tokens":4,"output_tokens_details":{"reasoning_tokens":1},"total_tokens":9}}}"#;

#[test]
fn reasoning_text_and_calls_follow_one_another() {
    check(
        &[
            r#"{"type":"~created","response":{"id":"resp_1","error":null}}"#,
            r#"{"type":"~output_item.added","output_index":0,"item":{"type":"reasoning","id":"rs_1","summary":[]}}"#,
            r#"{"type":"~reasoning_summary_part.added","output_index":0,"item_id":"rs_1","summary_index":0}"#,
            r#"{"type":"~reasoning_summary_text.delta","output_index":0,"item_id":"rs_1","delta":"a"}"#,
            r#"{"type":"~reasoning_summary_part.added","output_index":0,"item_id":"rs_1","summary_index":1}"#,
            r#"{"type":"~reasoning_summary_text.delta","output_index":0,"item_id":"rs_1","delta":"b"}"#,
            r#"{"type":"~output_item.done","output_index":0,"item":{"type":"reasoning","id":"rs_1","encrypted_content":"E="}}"#,
            r#"{"type":"~output_item.added","output_index":1,"item":{"type":"message","id":"msg_1"}}"#,
            r#"{"type":"~output_text.delta","output_index":1,"item_id":"msg_1","delta":"x\n"}"#,
            r#"{"type":"~output_item.done","output_index":1,"item":{"type":"message","id":"msg_1","content":[{"type":"output_text","text":"x\n"}]}}"#,
            r#"{"type":"~output_item.added","output_index":2,"item":{"type":"function_call","id":"fc_1","call_id":"c1","name":"read","arguments":""}}"#,
            r#"{"type":"~function_call_arguments.delta","output_index":2,"item_id":"fc_1","delta":"{\"a\":"}"#,
            r#"{"type":"~function_call_arguments.delta","output_index":2,"item_id":"fc_1","delta":"1}"}"#,
            r#"{"type":"~function_call_arguments.done","output_index":2,"item_id":"fc_1","arguments":"{\"a\":1}"}"#,
            r#"{"type":"~output_item.done","output_index":2,"item":{"type":"function_call","id":"fc_1","call_id":"c1","name":"read","arguments":"{\"a\":1}"}}"#,
            DONE,
        ],
        &[
            "<thought",
            "r a",
            r#"thought> "rs_1" null"#,
            "<thought",
            "r b",
            r#"thought> "rs_1" "E=""#,
            "<text",
            r#"text is "msg_1""#,
            "t x\n",
            "text>",
            "<c1 read",
            r#"c1 {"a":"#,
            "c1 1}",
            r#"c1 is "fc_1""#,
            r#"c1> read {"a":1}"#,
            "finish tool-calls 3/3",
        ],
    );
}

#[test]
fn encrypted_reasoning_is_kept_for_the_next_turn() {
    check(
        &[
            r#"{"type":"~output_item.done","output_index":0,"item":{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"E="}}"#,
            DONE,
        ],
        &["<thought", r#"thought> "rs_1" "E=""#, "finish stop 3/3"],
    );
}

#[test]
fn content_that_comes_only_in_finished_items_is_decoded() {
    for events in [
        &[
            r#"{"type":"~output_item.done","output_index":0,"item":{"type":"message","id":"m","content":[{"type":"output_text","text":"hi"}]}}"#,
            r#"{"type":"~output_item.done","output_index":1,"item":{"type":"function_call","id":"f","call_id":"c","name":"read","arguments":{"a":1}}}"#,
            DONE,
        ][..],
        &[
            r#"{"type":"~completed","response":{"output":[{"type":"message","id":"m","content":[{"type":"output_text","text":"hi"}]},{"type":"function_call","id":"f","call_id":"c","name":"read","arguments":"{\"a\":1}"}],"usage":{"input_tokens":3,"output_tokens":3}}}"#,
        ],
    ] {
        check(
            events,
            &[
                "<text",
                r#"text is "m""#,
                "t hi",
                "text>",
                "<c read",
                r#"c is "f""#,
                r#"c> read {"a":1}"#,
                "finish tool-calls 3/3",
            ],
        );
    }
}

#[test]
fn nothing_is_emitted_twice() {
    let message = r#"{"type":"message","id":"m2","content":[{"type":"output_text","text":"hi"}]}"#;
    let call = r#"{"type":"function_call","id":"f2","call_id":"c","name":"read","arguments":"{}"}"#;
    let added = r#"{"type":"~output_item.added","output_index":1,"item":{"type":"function_call","id":"f","call_id":"c","name":"read"}}"#;
    let done = r#"{"type":"~output_item.done","output_index":1,"item":{"type":"function_call","id":"f","call_id":"c","name":"read","arguments":"{}"}}"#;
    check(
        &[
            r#"{"type":"~output_text.delta","delta":"hi"}"#,
            &format!(r#"{{"type":"~output_item.done","output_index":0,"item":{message}}}"#),
            added,
            added,
            done,
            done,
            &format!(r#"{{"type":"~completed","response":{{"output":[{message},{call}]}}}}"#),
            DONE,
        ],
        &["<text", "t hi", "text>", "<c read", r#"c is "f""#, "c> read {}", "finish tool-calls 0/0"],
    );
}

#[test]
fn a_call_without_an_end_is_emitted() {
    check(
        &[
            r#"{"type":"~output_item.added","output_index":0,"item":{"type":"function_call","id":"f","call_id":"c","name":"read"}}"#,
            r#"{"type":"~function_call_arguments.delta","item_id":"f","delta":"{\"a\":1}"}"#,
            DONE,
        ],
        &["<c read", r#"c {"a":1}"#, r#"c is "f""#, r#"c> read {"a":1}"#, "finish tool-calls 3/3"],
    );
}

#[test]
fn tools_that_the_provider_runs_are_skipped() {
    check(
        &[
            r#"{"type":"~output_item.added","output_index":0,"item":{"type":"web_search_call","id":"ws_1","status":"in_progress"}}"#,
            r#"{"type":"~web_search_call.searching","output_index":0,"item_id":"ws_1"}"#,
            r#"{"type":"~output_item.done","output_index":0,"item":{"type":"web_search_call","id":"ws_1","action":{"type":"search"}}}"#,
            r#"{"type":"~output_item.added","output_index":1,"item":{"type":"new_thing","arguments":"{}"}}"#,
            r#"{"type":"~function_call_arguments.delta","output_index":1,"delta":"x"}"#,
            r#"{"type":"~from_the_future","output_index":{"a":1}}"#.replace(r#"{"a":1}"#, "7").as_str(),
            r#"{"type":"keepalive","sequence_number":3}"#,
            r#"{"type":"~output_text.delta","output_index":2,"delta":"hi"}"#,
            DONE,
        ],
        &["<text", "t hi", "text>", "finish stop 3/3"],
    );
}

#[test]
fn an_answer_may_stop_early() {
    for (reason, expected) in [
        ("max_output_tokens", "finish length 0/0"),
        ("content_filter", "finish content-filter 0/0"),
        ("new", "finish other 0/0"),
    ] {
        check(
            &[&format!(
                r#"{{"type":"~incomplete","response":{{"incomplete_details":{{"reason":"{reason}"}}}}}}"#
            )],
            &[expected],
        );
    }
    check(
        &[r#"{"type":"~refusal.delta","output_index":0,"delta":"I will not"}"#, DONE],
        &["<text", "t I will not", "text>", "finish stop 3/3"],
    );
}

#[test]
fn failures_are_classified() {
    for (event, expected) in [
        (r#"{"type":"~failed","response":{"error":{"code":"server_error","message":"boom"}}}"#, "busy boom"),
        (
            r#"{"type":"~failed","response":{"error":{"code":"rate_limit_exceeded","message":"slow"}}}"#,
            "busy slow",
        ),
        (
            r#"{"type":"~failed","response":{"error":{"code":"context_length_exceeded","message":"long"}}}"#,
            "overflow long",
        ),
        (
            r#"{"type":"~failed","response":{"error":{"code":"invalid_prompt","message":"no"}}}"#,
            "rejected no",
        ),
        (r#"{"type":"error","code":null,"message":"odd","param":null}"#, "busy odd"),
        (r#"{"type":"error","error":{"type":"insufficient_quota","message":"pay"}}"#, "rejected pay"),
        (
            r#"{"type":"error","error":{"type":"invalid_request_error","code":"invalid_api_key","message":"key"}}"#,
            "auth key",
        ),
        (r#"{"error":{"message":"relay","code":502}}"#, "busy relay"),
        (r#"{"type":"~failed","response":{}}"#, r#"busy {"type":"response.failed","response":{}}"#),
        (
            "{oops",
            "rejected the answer contains an event that cannot be decoded (key must be a string at line 1 column 2): {oops",
        ),
    ] {
        check(&[event], &[expected]);
    }
}

#[test]
fn an_answer_is_complete_only_with_its_last_event() {
    let (mut stream, mut out) = (Stream::default(), Vec::new());
    stream.push(r#"{"type":"response.output_text.delta","delta":"a"}"#, &mut out).unwrap();
    assert_eq!(class(&stream.finish(&mut out).unwrap_err()), "busy");
    assert!(stream.push("[DONE]", &mut out).is_err());
}

#[test]
fn an_answer_in_one_piece_is_decoded() {
    let (mut stream, mut out) = (Stream::default(), Vec::new());
    let body = r#"{"object":"response","error":null,"output":[{"type":"reasoning","id":"r","summary":[{"text":"w"}],"encrypted_content":"E"},{"type":"message","content":[{"type":"refusal","refusal":"no"}]}],"usage":{"input_tokens":1,"output_tokens":1}}"#;
    stream.push_whole(body, &mut out).unwrap();
    let lines: Vec<String> = out.iter().map(line).collect();
    let expected = ["<thought", "r w", r#"thought> "r" "E""#, "<text", "t no", "text>", "finish stop 1/1"];
    assert_eq!(lines, expected);
    for (body, expected) in
        [(r#"{"error":{"message":"no","code":401}}"#, "auth"), ("{}", "rejected"), ("[]", "rejected")]
    {
        assert_eq!(class(&Stream::default().push_whole(body, &mut out).unwrap_err()), expected, "{body}");
    }
}
