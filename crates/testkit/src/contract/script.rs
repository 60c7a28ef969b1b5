//! Turns a recorded case into a script for the scripted model.

use serde_json::{Map, Value, json};

use super::recording::Recording;

/// Returns the script with which the model repeats its recorded answers.
pub(super) fn script(recording: &Recording) -> Value {
    let mut script = Map::new();
    script.insert("title".to_owned(), "Mock title".into());
    script.insert("checks".to_owned(), "record".into());
    let sessions = recording.sessions();
    let mut others = Vec::new();
    for (at, info) in sessions.iter().enumerate() {
        let id = info["id"].as_str().unwrap_or_default();
        let mut turns = before(&recording.name);
        if at > 0 {
            turns.clear();
        }
        let transcript = recording.transcript(id);
        for (message, parts) in transcript.iter().filter(|(message, _)| message["role"] == "assistant") {
            if message["summary"] == true {
                script.insert("summary".to_owned(), attempts(recording, message, parts).remove(0));
            } else {
                turns.extend(attempts(recording, message, parts));
            }
        }
        if at == 0 {
            script.insert("turns".to_owned(), turns.into());
        } else if info["parentID"].is_string()
            && let Some(text) = transcript.first().and_then(|(_, parts)| parts.first()?["text"].as_str())
        {
            others.push(json!({"match": text, "turns": turns}));
        }
    }
    if recording.name == "fork" {
        // The recording ends before the answer to the fork's prompt.
        let turns = script.get_mut("turns").and_then(Value::as_array_mut);
        turns.into_iter().for_each(|turns| turns.push("Forked answer.".into()));
    }
    script.insert("sessions".to_owned(), others.into());
    script.insert("default".to_owned(), "This was not in the script.".into());
    script.into()
}

/// Returns the failures before the first answer, which the events do not show.
fn before(name: &str) -> Vec<Value> {
    let failed = |status: u16, headers: Value, body: Value| json!({"http_error": {"status": status, "headers": headers, "body": body}});
    match name {
        "retry-429" => vec![failed(
            429,
            json!({"retry-after": "1"}),
            json!({"error": {"message": "Rate limit reached", "type": "rate_limit_error"}}),
        )],
        "retry-500-no-header" => vec![
            failed(500, json!({}), json!({"error": {"message": "Internal error", "type": "server_error"}})),
            failed(503, json!({}), json!({"error": {"message": "Mock", "type": "server_error"}})),
        ],
        "retry-529" => vec![failed(
            529,
            json!({"retry-after": "1"}),
            json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}),
        )],
        _ => Vec::new(),
    }
}

/// Returns the model's answers for one message: more than one if requests were retried.
fn attempts(recording: &Recording, message: &Value, parts: &[Value]) -> Vec<Value> {
    if parts.is_empty() {
        return vec![refusal(recording, message)];
    }
    // A message with nothing but calls is a user's shell command.
    if parts.iter().all(|part| part["type"] == "tool") {
        return Vec::new();
    }
    let mut attempts: Vec<Vec<&Value>> = Vec::new();
    for part in parts {
        if part["type"] == "step-start" {
            attempts.push(Vec::new());
        } else if let Some(attempt) = attempts.last_mut() {
            attempt.push(part);
        }
    }
    let last = attempts.len().saturating_sub(1);
    let turn = |(at, parts): (usize, &Vec<&Value>)| answer(recording, message, parts, at == last);
    attempts.iter().enumerate().map(turn).collect()
}

fn answer(recording: &Recording, message: &Value, parts: &[&Value], is_last: bool) -> Value {
    let mut steps: Vec<Value> = parts.iter().filter_map(|part| step(part)).collect();
    let broken = match recording.name.as_str() {
        "stream-error-anthropic" if !is_last => {
            Some(json!({"stream_error": {"type": "overloaded_error", "message": "Overloaded"}}))
        }
        "disconnect-midstream" if !is_last => {
            // The message does not keep the text of the failed attempt, but the deltas have it.
            let deltas = recording.events.iter().filter(|event| event["type"] == "message.part.delta");
            let text: String = deltas.filter_map(|event| event["properties"]["delta"].as_str()).collect();
            steps.push(json!({"text": text.split("Second").next()}));
            Some(json!({"disconnect": true}))
        }
        "abort-stream" => Some(json!({"hang": true})),
        _ => None,
    };
    steps.extend(broken);
    let mut turn = Map::new();
    turn.insert("steps".to_owned(), steps.into());
    if let Some(finished) = parts.iter().find(|part| part["type"] == "step-finish") {
        let tokens = &finished["tokens"];
        turn.insert(
            "usage".to_owned(),
            json!({
                // Providers count reasoning tokens as part of the output.
                "input": tokens["input"], "output": count(&tokens["output"]) + count(&tokens["reasoning"]), "reasoning": tokens["reasoning"],
                "cache_read": tokens["cache"]["read"], "cache_write": tokens["cache"]["write"],
            }),
        );
    }
    if message["finish"] == "length" {
        turn.insert("finish".to_owned(), "length".into());
    }
    turn.into()
}

fn count(tokens: &Value) -> u64 {
    tokens.as_u64().unwrap_or(0)
}

fn step(part: &Value) -> Option<Value> {
    match part["type"].as_str()? {
        "text" => {
            let text = part["text"].as_str().filter(|text| !text.is_empty())?;
            Some(json!({"text": text}))
        }
        "reasoning" => Some(json!({"reasoning": part["text"]})),
        "tool" => {
            let input = &part["state"]["input"];
            let (name, args) = match part["tool"].as_str()? {
                "invalid" => {
                    let broken = input["error"].as_str().is_some_and(|error| error.contains("{bad json"));
                    (&input["tool"], if broken { json!("{bad json") } else { json!({}) })
                }
                _ => (&part["tool"], input.clone()),
            };
            Some(json!({"tool": name, "args": args, "id": part["callID"]}))
        }
        _ => None,
    }
}

/// Returns the error response of a provider.
fn refusal(recording: &Recording, message: &Value) -> Value {
    let event = recording.events.iter().find(|event| event["type"] == "session.error");
    let error = if message["error"].is_object() {
        &message["error"]["data"]
    } else {
        event.map_or(&Value::Null, |event| &event["properties"]["error"]["data"])
    };
    let status = error["statusCode"].as_u64().unwrap_or(400);
    let body = error["responseBody"].as_str().unwrap_or_default();
    let body: Value = serde_json::from_str(body).unwrap_or(Value::Null);
    json!({"http_error": {"status": status, "body": body}})
}
