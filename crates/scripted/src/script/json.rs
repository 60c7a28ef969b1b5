//! Parses scripts from JSON: a list of turns, or an object with further settings.
//!
//! An unknown key is an error, and every error contains its location, because a partly ignored
//! script would make a test that proves nothing.
//!
//! ```json
//! {
//!   "title": "text", "summary": "turn", "default": "turn",
//!   "turns": ["turn"], "loop": false,
//!   "sessions": [{"match": "MARKER", "turns": ["turn"], "loop": false}],
//!   "pages": {"name": {"status": 200, "headers": {}, "body": "text", "repeat": 1, "delay_ms": 0}},
//!   "models": ["id"], "chunk_size": 12, "chunk_delay_ms": 0,
//!   "checks": "enforce | record | off", "scenarios": false
//! }
//! ```
//!
//! A turn is a text, `{"steps": [..], "usage": {..}, "finish": "stop", "headers": {..}}`,
//! `{"http_error": {"status": 429, "headers": {..}, "body": .., "delay_ms": 0}}`,
//! `{"empty": true}`, `{"silent": true}` or `{"raw": "bytes"}`.
//!
//! A step has one or more of `delay_ms`, `hang`, `disconnect`, `stream_error`
//! (`type`, `code`, `message`), `reasoning` (with `signature`, `encrypted`), `text`,
//! `flood` (`bytes`, `deltas`), `tool_any` (a list of calls), and `tool` with `args`
//! and `id` or `custom_tool` with `input`; with `chunk_size` and `chunk_delay_ms`.

use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use super::{
    Args, Call, Checks, Content, Finish, Pace, Reply, Script, SessionScript, Step, Steps, StreamError, Turn,
    Usage,
};
use crate::error::Error;
use crate::flood::Flood;

impl Script {
    /// Parses a script from JSON text.
    pub fn from_json(text: &str) -> Result<Self, Error> {
        Self::from_json_with(text, &[])
    }

    /// Parses a script from JSON text with variables of the form `${NAME}`.
    pub fn from_json_with(text: &str, variables: &[(&str, &str)]) -> Result<Self, Error> {
        let mut value = serde_json::from_str(text).map_err(Error::Syntax)?;
        substitute(&mut value, variables);
        script(value)
    }
}

impl<'de> Deserialize<'de> for Script {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        script(Value::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawScript {
    title: Option<Value>,
    summary: Option<Value>,
    #[serde(default)]
    turns: Vec<Value>,
    #[serde(default, rename = "loop")]
    repeat: bool,
    #[serde(default)]
    sessions: Vec<Value>,
    default: Option<Value>,
    models: Option<Vec<String>>,
    #[serde(default)]
    pages: Map<String, Value>,
    chunk_size: Option<usize>,
    chunk_delay_ms: Option<f64>,
    checks: Option<RawChecks>,
    #[serde(default)]
    scenarios: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum RawChecks {
    Enforce,
    Record,
    Off,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawSession {
    #[serde(alias = "marker")]
    r#match: String,
    turns: Vec<Value>,
    #[serde(default, rename = "loop")]
    repeat: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawTurn {
    steps: Option<Vec<Value>>,
    #[serde(default)]
    usage: Usage,
    finish: Option<String>,
    #[serde(default)]
    headers: Map<String, Value>,
    http_error: Option<Value>,
    #[serde(default)]
    empty: bool,
    #[serde(default)]
    silent: bool,
    raw: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawReply {
    status: Option<u16>,
    #[serde(default)]
    headers: Map<String, Value>,
    body: Option<Value>,
    delay_ms: Option<f64>,
    repeat: Option<usize>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawStep {
    delay_ms: Option<f64>,
    #[serde(default)]
    hang: bool,
    #[serde(default)]
    disconnect: bool,
    stream_error: Option<RawStreamError>,
    reasoning: Option<String>,
    signature: Option<String>,
    encrypted: Option<String>,
    text: Option<String>,
    flood: Option<RawFlood>,
    tool: Option<String>,
    args: Option<Value>,
    id: Option<String>,
    tool_any: Option<Vec<RawCall>>,
    custom_tool: Option<String>,
    input: Option<String>,
    chunk_size: Option<usize>,
    chunk_delay_ms: Option<f64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawCall {
    tool: Option<String>,
    args: Option<Value>,
    custom_tool: Option<String>,
    input: Option<String>,
    id: Option<String>,
}

#[derive(Deserialize)]
struct RawStreamError {
    r#type: Option<String>,
    code: Option<Value>,
    message: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFlood {
    bytes: usize,
    deltas: usize,
}

fn script(value: Value) -> Result<Script, Error> {
    let default = Script::default();
    let raw: RawScript = match value {
        Value::Array(turns) => return Ok(Script { turns: turns_at("", turns)?, ..default }),
        value => read("the script", value)?,
    };
    let title = match raw.title {
        None => default.title,
        Some(value) => match turn("title", value)? {
            Turn::Steps(steps) => text_of(&steps),
            Turn::Http(_) | Turn::Empty | Turn::Silent | Turn::Raw(_) | Turn::Respond(_) => {
                return Err(script_error("title", "a title is a text"));
            }
        },
    };
    let chunk_delay = raw.chunk_delay_ms.map(|ms| milliseconds("chunk_delay_ms", ms)).transpose()?;
    let pages = raw.pages.into_iter().map(|(name, page)| {
        let reply = reply(&format!("pages.{name}"), page, 200)?;
        Ok((name, reply))
    });
    let sessions = raw.sessions.into_iter().enumerate();
    Ok(Script {
        title,
        summary: raw.summary.map(|value| turn("summary", value)).transpose()?,
        turns: turns_at("turns", raw.turns)?,
        repeat: raw.repeat,
        sessions: sessions.map(|(at, value)| session(at, value)).collect::<Result<_, _>>()?,
        default: raw.default.map(|value| turn("default", value)).transpose()?,
        models: raw.models.unwrap_or(default.models),
        pages: pages.collect::<Result<_, Error>>()?,
        pace: Pace { chunk_size: raw.chunk_size, chunk_delay }.or(default.pace),
        checks: match raw.checks {
            None | Some(RawChecks::Enforce) => Checks::Enforce,
            Some(RawChecks::Record) => Checks::Record,
            Some(RawChecks::Off) => Checks::Off,
        },
        scenarios: raw.scenarios,
    })
}

fn session(at: usize, value: Value) -> Result<SessionScript, Error> {
    let at = format!("sessions[{at}]");
    let raw: RawSession = read(&at, value)?;
    let turns = turns_at(&format!("{at}.turns"), raw.turns)?;
    Ok(SessionScript { marker: raw.r#match, turns, repeat: raw.repeat })
}

fn turns_at(at: &str, turns: Vec<Value>) -> Result<Vec<Turn>, Error> {
    turns.into_iter().enumerate().map(|(n, value)| turn(&format!("{at}[{n}]"), value)).collect()
}

fn turn(at: &str, value: Value) -> Result<Turn, Error> {
    if let Value::String(text) = value {
        return Ok(Turn::text(text).into());
    }
    let raw: RawTurn = read(at, value)?;
    let kinds = [raw.steps.is_some(), raw.http_error.is_some(), raw.empty, raw.silent, raw.raw.is_some()];
    if kinds.iter().filter(|given| **given).count() > 1 {
        return Err(script_error(at, "a turn is one of `steps`, `http_error`, `empty`, `silent` and `raw`"));
    }
    if let Some(error) = raw.http_error {
        return Ok(reply(&format!("{at}.http_error"), error, 500)?.into());
    }
    if raw.empty {
        return Ok(Turn::Empty);
    }
    if raw.silent {
        return Ok(Turn::Silent);
    }
    if let Some(bytes) = raw.raw {
        return Ok(Turn::Raw(bytes.into_bytes()));
    }
    let mut steps = Vec::new();
    for (n, value) in raw.steps.unwrap_or_default().into_iter().enumerate() {
        let at = format!("{at}.steps[{n}]");
        step(&at, read(&at, value)?, &mut steps)?;
    }
    let finish = raw.finish.as_deref().map(Finish::from);
    Ok(Steps { steps, usage: raw.usage, finish, headers: headers(raw.headers) }.into())
}

/// Converts a JSON step, which may describe several steps. They are played in this order.
fn step(at: &str, raw: RawStep, steps: &mut Vec<Step>) -> Result<(), Error> {
    let before = steps.len();
    let chunk_delay = raw.chunk_delay_ms.map(|ms| milliseconds(at, ms)).transpose()?;
    let pace = Pace { chunk_size: raw.chunk_size, chunk_delay };
    if let Some(ms) = raw.delay_ms {
        steps.push(Step::Delay(milliseconds(at, ms)?));
    }
    if raw.hang {
        steps.push(Step::Hang);
    }
    if raw.disconnect {
        steps.push(Step::Disconnect);
    }
    if let Some(error) = raw.stream_error {
        let message = error.message.unwrap_or_else(|| "mock".to_owned());
        steps.push(Step::StreamError(StreamError { kind: error.r#type, code: error.code, message }));
    }
    if let Some(text) = raw.reasoning {
        steps.push(Step::Reasoning { text, signature: raw.signature, encrypted: raw.encrypted, pace });
    }
    if let Some(text) = raw.text {
        steps.push(Step::Text { text, pace });
    }
    if let Some(RawFlood { bytes, deltas }) = raw.flood {
        steps.push(Step::Flood(Flood { bytes, deltas }));
    }
    if let Some(choices) = raw.tool_any {
        let calls = choices.into_iter().map(|choice| call(at, choice)).collect::<Result<Vec<_>, _>>()?;
        if calls.is_empty() {
            return Err(script_error(at, "`tool_any` is empty"));
        }
        steps.push(Step::AnyTool { calls, pace });
    }
    if raw.tool.is_some() || raw.custom_tool.is_some() {
        let RawStep { tool, args, custom_tool, input, id, .. } = raw;
        steps.push(Step::Tool { call: call(at, RawCall { tool, args, custom_tool, input, id })?, pace });
    }
    if steps.len() == before {
        return Err(script_error(at, "the step does nothing"));
    }
    Ok(())
}

fn call(at: &str, raw: RawCall) -> Result<Call, Error> {
    let (name, args) = match (raw.tool, raw.custom_tool) {
        (Some(name), None) => (name, raw.args.unwrap_or_else(|| Value::Object(Map::new()))),
        (None, Some(name)) => {
            return Ok(Call { name, args: Args::Custom(raw.input.unwrap_or_default()), id: raw.id });
        }
        (Some(_), Some(_)) | (None, None) => {
            return Err(script_error(at, "a call names one of `tool` and `custom_tool`"));
        }
    };
    let args = match args {
        Value::String(raw) => Args::Raw(raw),
        value => Args::Value(value),
    };
    Ok(Call { name, args, id: raw.id })
}

fn reply(at: &str, value: Value, status: u16) -> Result<Reply, Error> {
    let raw: RawReply = read(at, value)?;
    let body = match raw.body {
        None => Content::Standard,
        Some(Value::String(text)) => Content::Text(text.repeat(raw.repeat.unwrap_or(1))),
        Some(value) => Content::Json(value),
    };
    let delay = raw.delay_ms.map(|ms| milliseconds(at, ms)).transpose()?.unwrap_or_default();
    Ok(Reply { status: raw.status.unwrap_or(status), headers: headers(raw.headers), body, delay })
}

fn headers(map: Map<String, Value>) -> Vec<(String, String)> {
    let text = |value: Value| match value {
        Value::String(text) => text,
        other => other.to_string(),
    };
    map.into_iter().map(|(name, value)| (name, text(value))).collect()
}

fn milliseconds(at: &str, ms: f64) -> Result<Duration, Error> {
    Duration::try_from_secs_f64(ms / 1000.0)
        .map_err(|_| script_error(at, "a time is a number of milliseconds from 0 up"))
}

fn text_of(steps: &Steps) -> String {
    let text = |step: &Step| match step {
        Step::Text { text, .. } => Some(text.clone()),
        Step::Reasoning { .. }
        | Step::Tool { .. }
        | Step::AnyTool { .. }
        | Step::Flood(_)
        | Step::Delay(_)
        | Step::StreamError(_)
        | Step::Disconnect
        | Step::Hang => None,
    };
    steps.steps.iter().filter_map(text).collect()
}

fn substitute(value: &mut Value, variables: &[(&str, &str)]) {
    match value {
        Value::String(text) => {
            for (name, replacement) in variables {
                *text = text.replace(&format!("${{{name}}}"), replacement);
            }
        }
        Value::Array(values) => values.iter_mut().for_each(|value| substitute(value, variables)),
        Value::Object(map) => map.values_mut().for_each(|value| substitute(value, variables)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn read<T: DeserializeOwned>(at: &str, value: Value) -> Result<T, Error> {
    serde_json::from_value(value).map_err(|error| script_error(at, &error.to_string()))
}

fn script_error(at: &str, reason: &str) -> Error {
    Error::Script { at: at.to_owned(), reason: reason.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FULL: &str = r#"{
        "title": "Fix the bug",
        "summary": "What happened.",
        "pages": {"a": {"status": 200, "headers": {"x": 1}, "body": "<p>", "delay_ms": 5, "repeat": 2}},
        "sessions": [{"match": "MARK", "turns": ["one", {"steps": [{"text": "two"}]}], "loop": true}],
        "turns": [
            {"steps": [
                {"delay_ms": 1, "reasoning": "hm", "signature": "s", "encrypted": "e"},
                {"text": "hi", "chunk_size": 3, "chunk_delay_ms": 0.5},
                {"tool": "read", "args": {"filePath": "${DIR}/a"}, "id": "call_1"},
                {"tool": "bad", "args": "{not json"},
                {"tool_any": [{"tool": "x"}, {"custom_tool": "y", "input": "z"}]},
                {"custom_tool": "apply_patch", "input": "*** Begin"}
            ], "usage": {"input": 5}, "finish": "length"},
            {"http_error": {"status": 429, "headers": {"retry-after": "1"}, "body": {"error": 1}}},
            {"steps": [{"stream_error": {"type": "overloaded_error", "message": "busy"}}]},
            {"steps": [{"text": "a"}, {"disconnect": true}]},
            {"steps": [{"hang": true}]}
        ],
        "default": "Done."
    }"#;

    #[test]
    fn a_full_script_is_parsed() {
        let script = Script::from_json_with(FULL, &[("DIR", "/w")]).unwrap();
        assert_eq!(script.title, "Fix the bug");
        assert_eq!(script.turns.len(), 5);
        assert!(script.summary.is_some() && script.default.is_some());
        assert_eq!(script.sessions[0].marker, "MARK");
        assert!(script.sessions[0].repeat);
        assert!(matches!(&script.pages["a"].body, Content::Text(text) if text == "<p><p>"));
        let Turn::Steps(steps) = &script.turns[0] else { panic!("{:?}", script.turns[0]) };
        assert_eq!(steps.usage, Usage { input: 5, ..Usage::default() });
        assert_eq!(steps.finish, Some(Finish::Length));
        assert_eq!(steps.steps.len(), 7, "a delay in a step is a step before it");
        let Step::Tool { call, .. } = &steps.steps[3] else { panic!("{:?}", steps.steps[3]) };
        assert_eq!(call.args.text(), r#"{"filePath":"/w/a"}"#);
        let Turn::Http(reply) = &script.turns[1] else { panic!("{:?}", script.turns[1]) };
        assert_eq!((reply.status, reply.headers.len()), (429, 1));
    }

    #[test]
    fn a_list_contains_the_turns() {
        let script: Script = serde_json::from_str(r#"["a", {"steps": []}]"#).unwrap();
        assert_eq!(script.turns.len(), 2);
        assert_eq!(script.title, "Mock title");
    }

    #[track_caller]
    fn check_error(text: &str, expected: &str) {
        let error = Script::from_json(text).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }

    #[test]
    fn an_error_contains_its_location() {
        check_error("{", "not JSON");
        check_error(r#"{"turn": []}"#, "unknown field `turn`");
        check_error(r#"{"turns": [{"steps": [{"txt": "a"}]}]}"#, "`turns[0].steps[0]`");
        check_error(r#"[{"steps": [{"id": "a"}]}]"#, "the step does nothing");
        check_error(r#"[{"steps": [], "empty": true}]"#, "a turn is one of");
        check_error(r#"[{"steps": [{"delay_ms": -1}]}]"#, "milliseconds");
        check_error(r#"[{"steps": [{"tool_any": []}]}]"#, "`tool_any` is empty");
        check_error(r#"{"sessions": [{"turns": []}]}"#, "`sessions[0]`");
    }
}
