//! Tests of the decoders with recorded streams of real providers, whole and cut into pieces.

use std::path::Path;

use serde_json::{Value, json};

use super::Decoder;
use crate::sse::{Parser, TooLong};
use crate::{Error, FinishReason, ModelEvent, Protocol};

/// The number of recordings in the repository, so that a lost file fails the tests.
const COUNT: usize = 21;

struct Recording {
    name: String,
    protocol: Protocol,
    bytes: Vec<u8>,
    expected: Value,
}

fn recordings() -> Vec<Recording> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/providers");
    let mut found = Vec::new();
    for (name, protocol) in [
        ("openai-chat", Protocol::OpenAiChat),
        ("openai-responses", Protocol::OpenAiResponses),
        ("anthropic", Protocol::Anthropic),
        ("google", Protocol::Gemini),
    ] {
        for entry in std::fs::read_dir(folder.join(name)).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|ending| ending == "sse") {
                let expected = std::fs::read_to_string(path.with_extension("expect.json")).unwrap();
                found.push(Recording {
                    name: path.file_stem().unwrap().to_string_lossy().into_owned(),
                    protocol,
                    bytes: std::fs::read(&path).unwrap(),
                    expected: serde_json::from_str(&expected).unwrap(),
                });
            }
        }
    }
    assert_eq!(found.len(), COUNT, "recordings in {}", folder.display());
    found.sort_by(|a, b| a.name.cmp(&b.name));
    found
}

/// Decodes `pieces` like the client.
fn play<'a>(protocol: Protocol, pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<ModelEvent> {
    let (mut parser, mut decoder, mut out) = (Parser::default(), Decoder::new(protocol), Vec::new());
    for piece in pieces {
        parser.feed::<PlayError>(piece, |data| Ok(decoder.push(data, &mut out)?)).unwrap();
    }
    parser.finish::<PlayError>(|data| Ok(decoder.push(data, &mut out)?)).unwrap();
    decoder.finish(&mut out).unwrap();
    if protocol == Protocol::Gemini {
        name_calls(&mut out);
    }
    out
}

/// Numbers the calls of servers that send no ids. The ids we generate are random.
fn name_calls(events: &mut [ModelEvent]) {
    let mut calls = 0;
    for event in events {
        match event {
            ModelEvent::ToolStart { id, .. } => {
                calls += 1;
                *id = calls.to_string();
            }
            ModelEvent::ToolDelta { id, .. }
            | ModelEvent::ToolExcess { id }
            | ModelEvent::ToolCall { id, .. }
            | ModelEvent::Metadata { call: Some(id), .. } => *id = calls.to_string(),
            _ => {}
        }
    }
}

#[derive(Debug)]
#[expect(dead_code, reason = "read by a failing test's message")]
enum PlayError {
    TooLong,
    Decoded(Error),
}

impl From<TooLong> for PlayError {
    fn from(_: TooLong) -> Self {
        Self::TooLong
    }
}

impl From<Error> for PlayError {
    fn from(error: Error) -> Self {
        Self::Decoded(error)
    }
}

/// Sums up an answer in the format of the recordings.
fn sum(events: &[ModelEvent]) -> Value {
    let (mut text, mut reasoning, mut tools) = (String::new(), String::new(), Vec::new());
    let mut end = Value::Null;
    for event in events {
        match event {
            ModelEvent::TextDelta(more) => text.push_str(more),
            ModelEvent::ReasoningDelta(more) => reasoning.push_str(more),
            ModelEvent::ToolCall { id, name, arguments } => {
                let arguments: Value = serde_json::from_str(arguments).unwrap();
                tools.push(json!({"name": name, "id": id, "args": arguments}));
            }
            ModelEvent::Finish { reason, usage } => {
                end = json!({
                    "finish": reason.as_str(),
                    "input": usage.input + usage.cache_read + usage.cache_write,
                    "output": usage.output,
                    "reasoning": usage.reasoning,
                    "total": usage.total,
                });
            }
            _ => {}
        }
    }
    json!({"text": text, "reasoning": reasoning, "tools": tools, "end": end})
}

fn check(recording: &Recording, events: &[ModelEvent]) {
    let (mut found, expected) = (sum(events), &recording.expected);
    for (call, recorded) in
        found["tools"].as_array_mut().unwrap().iter_mut().zip(expected["tools"].as_array().unwrap())
    {
        if recorded.get("id").is_none() {
            call.as_object_mut().unwrap().remove("id");
        }
    }
    for part in ["text", "reasoning", "tools"] {
        assert_eq!(found[part], expected[part], "{part} of {}", recording.name);
    }
    let finish = match expected["finish"].as_str().unwrap() {
        "stop" | "end_turn" | "completed" => FinishReason::Stop,
        "STOP" if expected["tools"] == json!([]) => FinishReason::Stop,
        "tool_calls" | "tool_use" | "STOP" => FinishReason::ToolCalls,
        other => panic!("{other} in {}", recording.name),
    };
    let end = &found["end"];
    assert_eq!(end["finish"], finish.as_str(), "{}", recording.name);
    assert_eq!(end["input"], expected["usage"]["input_total"], "{}", recording.name);
    // The recordings contain the number of the wire format, which may or may not include reasoning.
    let (output, reasoning) = (end["output"].as_u64().unwrap(), end["reasoning"].as_u64().unwrap());
    let wire = expected["usage"]["output"].as_u64().unwrap();
    assert!(wire == output || wire == output + reasoning, "{wire} in {}", recording.name);
    let total = end["total"].as_u64().unwrap();
    assert_eq!(total, end["input"].as_u64().unwrap() + output + reasoning, "{}", recording.name);
}

/// Checks that blocks do not overlap, that every started call is completed, and that the end comes
/// last.
fn check_order(name: &str, events: &[ModelEvent]) {
    let (mut open, mut calls) = ("", Vec::new());
    for (at, event) in events.iter().enumerate() {
        let (needs, then) = match event {
            ModelEvent::TextStart => ("", "text"),
            ModelEvent::TextDelta(_) => ("text", "text"),
            ModelEvent::TextEnd => ("text", ""),
            ModelEvent::TextWasReasoning => ("text", ""),
            ModelEvent::ReasoningStart => ("", "reasoning"),
            ModelEvent::ReasoningDelta(_) => ("reasoning", "reasoning"),
            ModelEvent::ReasoningEnd { .. } => ("reasoning", ""),
            ModelEvent::ToolStart { id, .. } => {
                calls.push(id);
                ("", "")
            }
            ModelEvent::Metadata { call: None, .. } => ("text", "text"),
            ModelEvent::ToolDelta { id, .. }
            | ModelEvent::ToolExcess { id }
            | ModelEvent::Metadata { call: Some(id), .. } => {
                assert!(calls.contains(&id), "{name}: {id} never began");
                ("", "")
            }
            ModelEvent::ToolCall { id, .. } => {
                let at = calls.iter().position(|call| *call == id).expect("the call began");
                calls.remove(at);
                ("", "")
            }
            ModelEvent::Finish { .. } => {
                assert_eq!(at + 1, events.len(), "{name}");
                ("", "")
            }
        };
        assert_eq!(open, needs, "{name}: {event:?}");
        open = then;
    }
    assert!(calls.is_empty(), "{name}: {calls:?}");
}

#[test]
fn recorded_answers_are_decoded() {
    for recording in recordings() {
        let events = play(recording.protocol, [recording.bytes.as_slice()]);
        check_order(&recording.name, &events);
        check(&recording, &events);
    }
}

#[test]
fn a_cut_anywhere_changes_nothing() {
    for recording in recordings() {
        let bytes = recording.bytes.as_slice();
        let whole = play(recording.protocol, [bytes]);
        // Tries all cuts of a short answer, and cuts at varying positions in the lines of a long
        // one.
        let step = if bytes.len() < 4000 { 1 } else { bytes.len() / 40 + 1 };
        for at in (0..bytes.len()).step_by(step) {
            let pieces = [&bytes[..at], &bytes[at..]];
            assert_eq!(play(recording.protocol, pieces), whole, "{} cut at {at}", recording.name);
        }
    }
}

#[test]
fn small_pieces_line_ends_and_comments_change_nothing() {
    for recording in recordings() {
        let whole = play(recording.protocol, [recording.bytes.as_slice()]);
        let text = String::from_utf8(recording.bytes.clone()).unwrap();
        let dos = text.replace('\n', "\r\n");
        let commented = text.replace("\n\n", "\n\n: OPENROUTER PROCESSING\n\n");
        let named = text.replace("data: ", "id: 7\ndata:");
        for (what, text) in [("plain", &text), ("CRLF", &dos), ("comments", &commented), ("fields", &named)] {
            for size in [1, 7, 1000] {
                let pieces = text.as_bytes().chunks(size);
                assert_eq!(play(recording.protocol, pieces), whole, "{} {what} by {size}", recording.name);
            }
        }
    }
}
