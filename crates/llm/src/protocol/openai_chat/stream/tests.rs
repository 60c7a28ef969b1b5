use super::*;

/// Decodes chunks, each given as the content of the first choice's delta, then `[DONE]`.
fn play(chunks: &[&str]) -> Vec<String> {
    let mut stream = Stream::default();
    let mut out = Vec::new();
    for chunk in chunks {
        let data = match chunk.strip_prefix("raw ") {
            Some(raw) => raw.to_owned(),
            None => format!(r#"{{"choices":[{{"index":0,"delta":{chunk}}}]}}"#),
        };
        if let Err(error) = stream.push(&data, &mut out) {
            let mut lines: Vec<String> = out.iter().map(line).collect();
            lines.push(format!("{error}"));
            return lines;
        }
    }
    stream.push("[DONE]", &mut out).unwrap();
    out.iter().map(line).collect()
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
        ModelEvent::ReasoningEnd { .. } => "thought>".into(),
        ModelEvent::ToolStart { id, name } => format!("<{id} {name}"),
        ModelEvent::ToolDelta { id, text } => format!("{id} {text}"),
        ModelEvent::ToolExcess { id } => format!("{id} has more"),
        ModelEvent::ToolCall { id, name, arguments } => format!("{id}> {name} {arguments}"),
        ModelEvent::Metadata { metadata, .. } => format!("metadata {metadata}"),
        ModelEvent::Finish { reason, .. } => format!("finish {}", reason.as_str()),
    }
}

#[track_caller]
fn check(chunks: &[&str], expected: &[&str]) {
    assert_eq!(play(chunks), expected);
}

const STOP: &str = r#"raw {"choices":[{"delta":{},"finish_reason":"stop"}]}"#;

#[test]
fn blocks_follow_one_another() {
    check(
        &[
            r#"{"role":"assistant","content":""}"#,
            r#"{"reasoning_content":"a","content":null}"#,
            r#"{"reasoning":"b","reasoning_content":"b"}"#,
            r#"{"content":"c"}"#,
            r#"{"reasoning":"d"}"#,
            r#"{"reasoning_text":"e"}"#,
            STOP,
        ],
        &[
            "<thought",
            "r a",
            "r b",
            "thought>",
            "<text",
            "t c",
            "text>",
            "<thought",
            "r d",
            "r e",
            "thought>",
            "finish stop",
        ],
    );
}

#[test]
fn a_call_in_pieces_is_emitted_when_its_arguments_are_complete() {
    check(
        &[
            r#"{"content":"x"}"#,
            r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"read","arguments":""}}]}"#,
            r#"{"tool_calls":[{"index":0,"id":"","function":{"arguments":"{\"p\":\"}"}}]}"#,
            r#"{"tool_calls":[{"index":0,"function":{"arguments":"\\\"\"}"}}]}"#,
            r#"{"tool_calls":[{"index":0,"function":{"arguments":"\n"}}]}"#,
            r#"{"tool_calls":[{"index":1,"id":"b","function":{"name":"read","arguments":"{\"q\":["}}]}"#,
            STOP,
        ],
        &[
            "<text",
            "t x",
            "text>",
            "<a read",
            "a {\"p\":\"}",
            "a \\\"\"}",
            "a> read {\"p\":\"}\\\"\"}",
            "<b read",
            "b {\"q\":[",
            "b> read {\"q\":[",
            "finish tool-calls",
        ],
    );
}

#[test]
fn calls_may_interleave() {
    check(
        &[
            r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"x","arguments":"{\"k\""}},{"index":1,"id":"b","function":{"name":"y","arguments":"{"}}]}"#,
            r#"{"tool_calls":[{"index":0,"function":{"arguments":":1}"}}]}"#,
            r#"{"tool_calls":[{"index":1,"function":{"arguments":"\"k\":2}"}}]}"#,
        ],
        &[
            "<a x",
            "a {\"k\"",
            "<b y",
            "b {",
            "a :1}",
            "a> x {\"k\":1}",
            "b \"k\":2}",
            "b> y {\"k\":2}",
            "finish tool-calls",
        ],
    );
}

#[test]
fn complete_calls_that_all_have_index_zero_are_separate() {
    check(
        &[
            r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"x","arguments":"{\"k\":1}"}}]}"#,
            r#"{"tool_calls":[{"index":0,"id":"b","function":{"name":"x","arguments":"{}"}}]}"#,
        ],
        &["<a x", "a {\"k\":1}", "a> x {\"k\":1}", "<b x", "b {}", "b> x {}", "finish tool-calls"],
    );
}

#[test]
fn a_call_needs_neither_index_nor_id() {
    let events = play(&[
        r#"{"tool_calls":[{"function":{"name":"x","arguments":{"k":1}}}]}"#,
        r#"{"tool_calls":[{"function":{"name":"y","arguments":"{\"k\":"}}]}"#,
        r#"{"tool_calls":[{"function":{"arguments":"2}"}}]}"#,
    ]);
    let calls: Vec<&str> = events
        .iter()
        .filter(|line| line.contains("> "))
        .filter_map(|line| line.split_once("> "))
        .map(|(_, call)| call)
        .collect();
    assert_eq!(calls, ["x {\"k\":1}", "y {\"k\":2}"]);
    let ids: std::collections::BTreeSet<&str> =
        events.iter().filter_map(|line| line.strip_prefix('<')?.split_once(' ')).map(|(id, _)| id).collect();
    assert_eq!(ids.len(), 2, "{events:?}");
}

#[test]
fn an_empty_object_may_stand_for_arguments_to_come() {
    check(
        &[
            r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"x","arguments":"{}"}}]}"#,
            r#"{"tool_calls":[{"index":0,"function":{"arguments":"{\"k\":1}"}}]}"#,
        ],
        &["<a x", "a {}", "a {\"k\":1}", "a> x {\"k\":1}", "finish tool-calls"],
    );
}

#[test]
fn a_call_without_arguments_has_an_empty_object() {
    check(
        &[r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"x"}}]}"#],
        &["<a x", "a> x {}", "finish tool-calls"],
    );
}

#[test]
fn a_name_may_come_late() {
    check(
        &[
            r#"{"tool_calls":[{"index":0,"id":"a","function":{"arguments":"{\"k\""}}]}"#,
            r#"{"tool_calls":[{"index":0,"function":{"name":"x","arguments":":1}"}}]}"#,
        ],
        &["<a x", "a {\"k\":1}", "a> x {\"k\":1}", "finish tool-calls"],
    );
}

#[test]
fn tool_calls_as_stop_reason_without_calls_is_a_normal_stop() {
    check(
        &[r#"{"content":"x"}"#, r#"raw {"choices":[{"finish_reason":"tool_calls"}]}"#],
        &["<text", "t x", "text>", "finish stop"],
    );
}

#[test]
fn parts_are_text_too() {
    check(
        &[
            r#"{"content":[{"type":"thinking","thinking":[{"type":"text","text":"a"}]}]}"#,
            r#"{"content":[{"type":"text","text":"b"},{"type":"text","text":"c"}]}"#,
            r#"{"content":[]}"#,
        ],
        &["<thought", "r a", "thought>", "<text", "t bc", "text>", "finish unknown"],
    );
}

#[test]
fn an_error_in_the_stream_ends_it() {
    for (chunk, message) in [
        (r#"raw {"error":{"message":"Overloaded","type":"server_error"}}"#, "Overloaded"),
        (r#"raw {"error":"went wrong"}"#, "went wrong"),
        (r#"raw {"error":{"code":502}}"#, r#"{"code":502}"#),
        (r#"raw {"object":"error","message":"no such model","code":404}"#, "no such model"),
        (r#"raw {"choices":[],"error":{"message":"late"}}"#, "late"),
    ] {
        check(&[r#"{"content":"x"}"#, chunk], &["<text", "t x", message]);
    }
}

#[test]
fn odd_chunks_are_ignored() {
    check(
        &[
            r#"raw {"choices":[]}"#,
            r#"raw {"choices":null,"error":null}"#,
            r#"raw {"id":"x"}"#,
            r#"raw {"choices":[{"delta":null,"finish_reason":null}]}"#,
            r#"raw {"choices":[{"delta":{"content":"x","tool_calls":null}},{"delta":{"content":"y"}}]}"#,
            "raw ",
        ],
        &["<text", "t x", "text>", "finish unknown"],
    );
}

#[test]
fn invalid_json_is_an_error() {
    let events = play(&["raw not json"]);
    assert!(events[0].contains("not json"), "{events:?}");
}

#[test]
fn usage_comes_with_the_last_chunk_or_after_it() {
    for chunks in [
        &[
            r#"{"choices":[{"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":2}}"#,
        ][..],
        &[
            r#"{"choices":[{"delta":{},"finish_reason":"stop"}],"usage":null}"#,
            r#"{"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3}}"#,
        ][..],
        &[
            r#"{"choices":[{"delta":{},"finish_reason":"stop","usage":{"prompt_tokens":1,"completion_tokens":2}}]}"#,
        ][..],
        // Groq.
        &[
            r#"{"choices":[{"delta":{}}],"x_groq":{"id":"req_1"}}"#,
            r#"{"choices":[{"delta":{},"finish_reason":"stop"}],"x_groq":{"id":"req_1","usage":{"prompt_tokens":1,"completion_tokens":2}}}"#,
            r#"{"choices":[],"usage":null,"x_groq":"none"}"#,
        ][..],
    ] {
        let (mut stream, mut out) = (Stream::default(), Vec::new());
        for chunk in chunks {
            stream.push(chunk, &mut out).unwrap();
        }
        stream.finish(&mut out).unwrap();
        let usage = Usage { input: 1, output: 2, total: Some(3), ..Usage::default() };
        assert_eq!(out, [ModelEvent::Finish { reason: FinishReason::Stop, usage }]);
    }
}

#[test]
fn an_answer_without_a_stop_reason_is_incomplete() {
    let (mut stream, mut out) = (Stream::default(), Vec::new());
    stream.push(r#"{"choices":[{"delta":{"content":"x"}}]}"#, &mut out).unwrap();
    let error = stream.finish(&mut out).unwrap_err();
    assert!(matches!(error, Error::Busy { .. }));
    assert_eq!(error.to_string(), "connection closed before the answer was complete");
}

#[test]
fn a_completion_in_one_piece_is_decoded() {
    let (mut stream, mut out) = (Stream::default(), Vec::new());
    let body = r#"{"object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"hi","reasoning_content":"hm",
        "tool_calls":[{"id":"a","type":"function","function":{"name":"x","arguments":"{\"k\":1}"}}]},"finish_reason":"tool_calls"}]}"#;
    stream.push_whole(body, &mut out).unwrap();
    let lines: Vec<String> = out.iter().map(line).collect();
    assert_eq!(
        lines,
        [
            "<thought",
            "r hm",
            "thought>",
            "<text",
            "t hi",
            "text>",
            "<a x",
            "a {\"k\":1}",
            "a> x {\"k\":1}",
            "finish tool-calls"
        ]
    );
}

#[test]
fn other_json_is_an_error() {
    let (mut stream, mut out) = (Stream::default(), Vec::new());
    let error = stream.push_whole(r#"{"hello":"world"}"#, &mut out).unwrap_err();
    assert!(matches!(&error, Error::Rejected { failure } if failure.message.contains("hello")), "{error:?}");
}

#[test]
fn endless_arguments_are_an_error() {
    let (mut stream, mut out) = (Stream::default(), Vec::new());
    let piece = "x".repeat(1024 * 1024);
    let begin = r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"x","arguments":"\""}}]}}]}"#;
    stream.push(begin, &mut out).unwrap();
    let data = format!(
        r#"{{"choices":[{{"delta":{{"tool_calls":[{{"index":0,"function":{{"arguments":"{piece}"}}}}]}}}}]}}"#
    );
    let refused = (0..32).find_map(|_| {
        out.clear();
        stream.push(&data, &mut out).err()
    });
    assert!(matches!(refused, Some(Error::Rejected { .. })));
}

fn play_with_tools(chunks: &[&str]) -> Vec<String> {
    let (mut stream, mut out) = (Stream::default(), Vec::new());
    let tool =
        |name: &str| ToolSpec { name: name.into(), description: String::new(), parameters: Value::Null };
    stream.set_tools(&[tool("read"), tool("bash")]);
    for chunk in chunks {
        stream.push(&format!(r#"{{"choices":[{{"index":0,"delta":{chunk}}}]}}"#), &mut out).unwrap();
    }
    stream.push(&STOP[4..], &mut out).unwrap();
    stream.push("[DONE]", &mut out).unwrap();
    out.iter().map(line).collect()
}

#[test]
fn a_printed_call_becomes_a_call() {
    for (chunks, value) in [
        (
            &[r#"{"content":"{\"name\": \"re"}"#, r#"{"content":"ad\", \"arguments\": {\"p\": 1}}"}"#][..],
            r#"{"p":1}"#,
        ),
        (
            &[
                r#"{"content":"<tool_call>\n{\"name\": \"read\", "}"#,
                r#"{"content":"\"arguments\": {\"p\": 1}}\n</tool_call>"}"#,
            ],
            r#"{"p":1}"#,
        ),
        (
            &[
                r#"{"content":"<tool_call>\n<function=read>\n<parameter=p>\n1\n</parameter>\n</function>\n</tool_call>"}"#,
            ],
            r#"{"p":"1"}"#,
        ),
    ] {
        let found = play_with_tools(chunks);
        let id = found[0].trim_start_matches('<').split(' ').next().unwrap();
        let expected = [
            format!("<{id} read"),
            format!("{id} {value}"),
            format!("{id}> read {value}"),
            "finish tool-calls".to_owned(),
        ];
        assert_eq!(found, expected);
    }
}

#[test]
fn other_text_is_emitted_completely() {
    for text in [
        r#"{\"name\": \"unknown\", \"arguments\": {}}"#,
        r#"{\"name\": \"read\", \"arguments\": {}} is how."#,
        r#"{\"name\": \"read\", \"argum"#,
    ] {
        let found = play_with_tools(&[&format!(r#"{{"content":"{text}"}}"#)]);
        let plain = text.replace("\\\"", "\"");
        assert_eq!(found, ["<text", &format!("t {plain}"), "text>", "finish stop"]);
    }
    let call = r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"read","arguments":"{\"q\":1}"}}]}"#;
    let found = play_with_tools(&[r#"{"content":"{\"name\":"}"#, call]);
    assert_eq!(found[..3], ["<text", "t {\"name\":", "text>"]);
    assert_eq!(found.last().unwrap(), "finish tool-calls");
}

#[test]
fn text_between_tags_is_reasoning() {
    check(
        &[
            r#"{"content":"<thi"}"#,
            r#"{"content":"nk>a</th"}"#,
            r#"{"content":"ink>\n\nb"}"#,
            r#"{"content":" <think>"}"#,
            STOP,
        ],
        &["<thought", "r a", "thought>", "<text", "t b", "t  <think>", "text>", "finish stop"],
    );
}

#[test]
fn reasoning_details_are_kept() {
    let mut stream = Stream::default();
    let mut out = Vec::new();
    for chunk in [
        r#"{"reasoning":"a","reasoning_details":[{"type":"reasoning.text","text":"a","index":0}]}"#,
        r#"{"reasoning":"","reasoning_details":[{"type":"reasoning.text","signature":"S","index":0}]}"#,
        r#"{"content":"b"}"#,
        r#"{"content":"","reasoning_details":[{"type":"reasoning.encrypted","data":"E","index":1}]}"#,
    ] {
        stream.push(&format!(r#"{{"choices":[{{"delta":{chunk}}}]}}"#), &mut out).unwrap();
    }
    stream.push(&STOP[4..], &mut out).unwrap();
    stream.finish(&mut out).unwrap();
    let kept: Vec<Value> = out
        .iter()
        .filter_map(|event| match event {
            ModelEvent::ReasoningEnd { metadata } => metadata.clone(),
            _ => None,
        })
        .collect();
    let expected = [
        serde_json::json!({"openrouter": {"reasoning_details": [
            {"type": "reasoning.text", "text": "a", "index": 0, "signature": "S"}]}}),
        serde_json::json!({"openrouter": {"reasoning_details": [
            {"type": "reasoning.encrypted", "data": "E", "index": 1}]}}),
    ];
    assert_eq!(kept, expected);
}

/// A second value in the same piece is left to the schema. Everything else after the arguments is dropped, and known.
#[test]
fn text_after_the_arguments_is_noticed() {
    let piece = |text: &str| {
        let function = serde_json::json!({"name": "read", "arguments": text});
        serde_json::json!({"tool_calls": [{"index": 0, "id": "a", "function": function}]}).to_string()
    };
    for (pieces, arguments, has_more) in [
        (&[r#"{"p":1}"#][..], r#"{"p":1}"#, false),
        (&["{\"p\":1}\n"], r#"{"p":1}"#, false),
        (&[r#"{"p":1}{"p":2}"#], r#"{"p":1}{"p":2}"#, false),
        (&[r#"{}{"p":2}"#], r#"{}{"p":2}"#, false),
        (&[r#"{"p":1}{"#, r#""p":2}"#], r#"{"p":1}{"p":2}"#, false),
        (&["{}", r#"{"p":2}"#], r#"{"p":2}"#, false),
        (&[r#"{"p":1}"#, r#"{"p":2}"#], r#"{"p":1}"#, true),
        (&[r#"{"p":1}}"#], r#"{"p":1}"#, true),
        (&[r#"{"p":1}"#, "}"], r#"{"p":1}"#, true),
    ] {
        let chunks: Vec<String> = pieces.iter().map(|text| piece(text)).collect();
        let mut chunks: Vec<&str> = chunks.iter().map(String::as_str).collect();
        chunks.push(STOP);
        let found = play(&chunks);
        assert!(found.contains(&format!("a> read {arguments}")), "{pieces:?}: {found:?}");
        assert_eq!(found.contains(&"a has more".to_owned()), has_more, "{pieces:?}: {found:?}");
    }
}

#[test]
fn mistakes_of_local_servers_are_corrected() {
    let whole = r#"raw {"choices":[{"message":{"content":"","tool_calls":[{"id":"a","function":{"name":"read","arguments":{"p":1}}}]},"finish_reason":"stop"}]}"#;
    let garbage = r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"read","arguments":"{\"p\":1}}}<|im_end|>"}}]}"#;
    let stopped = r#"raw {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"read","arguments":"{\"p\":1}"}}]},"finish_reason":"stop"}]}"#;
    let cut = r#"raw {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"read","arguments":"{\"p\":1}"}}]},"finish_reason":null}]}"#;
    for (what, chunks) in [
        ("arguments as an object, in a single chunk, with the wrong reason", &[whole][..]),
        ("garbage behind the arguments", &[garbage, STOP]),
        ("a wrong reason", &[stopped]),
        ("no reason at all", &[cut]),
    ] {
        let found = play(chunks);
        assert_eq!(found.first().unwrap(), "<a read", "{what}");
        assert_eq!(found[found.len() - 2..], [r#"a> read {"p":1}"#, "finish tool-calls"], "{what}");
    }
    let unnamed = play(&[
        r#"{"tool_calls":[{"function":{"name":"read","arguments":"{\"p\":1}"}},{"function":{"name":"read","arguments":"{\"p\":2}"}}]}"#,
        STOP,
    ]);
    let ids: Vec<&str> =
        unnamed.iter().filter_map(|line| line.strip_prefix('<')?.split(' ').next()).collect();
    assert!(ids.len() == 2 && ids[0] != ids[1] && ids.iter().all(|id| !id.is_empty()), "{unnamed:?}");
}
