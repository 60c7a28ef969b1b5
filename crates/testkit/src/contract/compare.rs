//! What was said, held against what was recorded.

use std::sync::LazyLock;

use regex::{Captures, Regex};
use serde_json::{Map, Value};

use super::recording::Recording;
use super::shape::is_alike;
use super::stage::Played;
use super::{Found, Outcome};

/// Events of the process and of the machine, not of a session.
const ELSEWHERE: [&str; 10] = [
    "server.connected",
    "server.heartbeat",
    "plugin.added",
    "catalog.updated",
    "reference.updated",
    "integration.updated",
    "file.watcher.updated",
    "lsp.updated",
    "lsp.client.diagnostics",
    "project.updated",
];

/// Keys whose numbers are moments.
const MOMENTS: [&str; 8] = ["time", "created", "updated", "completed", "start", "end", "next", "initialized"];

/// Keys that are not compared: headers are the server's and its library's, slugs are drawn, and a
/// patch names the tree after it here, which the original does not keep.
const LEFT_OUT: [&str; 3] = ["responseHeaders", "slug", "after"];

/// Ids, hashes, moments and addresses.
static VARYING: LazyLock<Regex> = LazyLock::new(|| {
    let pattern = r"(?x)
        \b(?<id>ses|msg|prt|per|que|evt|tool)_[0-9A-Za-z]{20,}\b
        | \b(?<call>01[0-9A-HJKMNP-TV-Z]{24})\b
        | \b(?<hash>[0-9a-f]{40})\b
        | (?<date>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z)
        | (?<address>http://127\.0\.0\.1:\d+)";
    Regex::new(pattern).expect("the pattern is right")
});

/// One line of events whose order counts.
struct Lane {
    name: String,
    events: Vec<Value>,
}

/// Holds a played case against its recording.
pub(super) fn compare(recording: &Recording, played: &Played) -> Outcome {
    let there = lanes(&recording.events, &[]);
    let here = lanes(&played.events, &played.places);
    let mut outcome = Outcome::new(&recording.name);
    for lane in &there {
        let ours = here.iter().find(|other| other.name == lane.name);
        hold(&lane.name, &lane.events, ours.map_or(&[], |lane| &lane.events), &mut outcome);
    }
    for lane in here.iter().filter(|lane| !there.iter().any(|other| other.name == lane.name)) {
        hold(&lane.name, &[], &lane.events, &mut outcome);
    }
    if let Some(messages) = &recording.messages {
        let there: Vec<_> = messages.iter().map(|message| plain(message, "", &[])).collect();
        let here: Vec<_> = played.messages.iter().map(|message| plain(message, "", &played.places)).collect();
        hold("messages", &there, &here, &mut outcome);
    }
    outcome
}

/// Finds one list again in another, in order: to the value, and by its shape.
fn hold(name: &str, there: &[Value], here: &[Value], outcome: &mut Outcome) {
    outcome.recorded += there.len();
    find(name, (there, here), is_same, &mut outcome.values);
    find(name, (there, here), is_alike, &mut outcome.shapes);
}

fn find(
    name: &str,
    (there, here): (&[Value], &[Value]),
    is_found: fn(&Value, &Value) -> bool,
    found: &mut Found,
) {
    // The longest common subsequence; the lists are short.
    let mut best = vec![vec![0_usize; here.len() + 1]; there.len() + 1];
    for i in (0..there.len()).rev() {
        for j in (0..here.len()).rev() {
            best[i][j] = if is_found(&there[i], &here[j]) {
                best[i + 1][j + 1] + 1
            } else {
                best[i + 1][j].max(best[i][j + 1])
            };
        }
    }
    found.same += best[0][0];
    let (mut i, mut j) = (0, 0);
    while i < there.len() || j < here.len() {
        if i < there.len() && j < here.len() && is_found(&there[i], &here[j]) {
            (i, j) = (i + 1, j + 1);
        } else if j >= here.len() || (i < there.len() && best[i + 1][j] >= best[i][j + 1]) {
            found.differences.push(format!("- {name}: {}", there[i]));
            i += 1;
        } else {
            found.differences.push(format!("+ {name}: {}", here[j]));
            j += 1;
        }
    }
}

/// Whether two values are the same where the recording did not leave a text out.
pub(super) fn is_same(there: &Value, here: &Value) -> bool {
    match (there, here) {
        (Value::String(text), Value::String(_)) if text.starts_with("<text ") => true,
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_same(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| is_same(a, b)))
        }
        // JSON has one kind of number.
        (Value::Number(a), Value::Number(b)) => a.as_f64() == b.as_f64(),
        (a, b) => a == b,
    }
}

/// The events by lanes, plain.
fn lanes(events: &[Value], places: &[(String, &str)]) -> Vec<Lane> {
    let mut lanes: Vec<Lane> = Vec::new();
    let mut sessions: Vec<String> = Vec::new();
    let mut told_of: Vec<String> = Vec::new();
    let begins = |event: &Value| event["properties"]["part"]["type"] == "step-start";
    let mut begun: Vec<&Value> = Vec::new();
    for event in events {
        if begins(event) {
            let id = &event["properties"]["part"]["id"];
            if begun.contains(&id) {
                continue;
            }
            begun.push(id);
        }
        // A step whose files took long to look at is told of again when they are known.
        let again = |other: &&Value| {
            begins(other) && other["properties"]["part"]["id"] == event["properties"]["part"]["id"]
        };
        let event = if begins(event) { events.iter().rev().find(again).unwrap_or(event) } else { event };
        let (kind, properties) = (event["type"].as_str().unwrap_or_default(), &event["properties"]);
        if ELSEWHERE.contains(&kind) {
            continue;
        }
        let id = properties["sessionID"].as_str().unwrap_or_default().to_owned();
        let at = sessions.iter().position(|known| *known == id).unwrap_or_else(|| {
            sessions.push(id);
            sessions.len() - 1
        });
        let (lane, is_last_only) = lane_of(kind, properties, &mut told_of);
        let name = format!("session {at}, {lane}");
        let told = plain(&serde_json::json!({"type": kind, "properties": properties}), "", places);
        let lane = match lanes.iter_mut().find(|lane| lane.name == name) {
            Some(lane) => lane,
            None => {
                lanes.push(Lane { name, events: Vec::new() });
                let last = lanes.len() - 1;
                &mut lanes[last]
            }
        };
        if is_last_only {
            lane.events.clear();
        }
        push(&mut lane.events, told);
    }
    lanes
}

/// The lane of an event, and whether only its last one counts there; `told` are ids in the order in which they
/// first occurred.
fn lane_of(kind: &str, properties: &Value, told: &mut Vec<String>) -> (String, bool) {
    let mut number = |id: &Value| {
        let id = id.as_str().unwrap_or_default().to_owned();
        told.iter().position(|known| *known == id).unwrap_or_else(|| {
            told.push(id);
            told.len() - 1
        })
    };
    match kind {
        "session.updated" | "session.diff" => (kind.to_owned(), true),
        // A prompt is told of anew whenever its summary is counted again.
        "message.updated" if properties["info"]["role"] == "user" => {
            (format!("prompt {}", number(&properties["info"]["id"])), true)
        }
        // Calls of one step run at once.
        "message.part.updated" if properties["part"]["type"] == "tool" => {
            let id = properties["part"]["callID"].as_str().unwrap_or_default();
            (format!("call {}", VARYING.replace_all(id, mark)), false)
        }
        // The model goes on writing while somebody is asked: what comes first, an answer or the next call and its
        // question, is a race.
        "permission.asked" => (format!("permission {}", number(&properties["id"])), false),
        "permission.replied" => (format!("permission {}", number(&properties["requestID"])), false),
        _ => ("course".to_owned(), false),
    }
}

/// Adds an event; pieces of one text are one, and so are the states of a call that runs.
fn push(events: &mut Vec<Value>, mut told: Value) {
    let Some(last) = events.last_mut() else { return events.push(told) };
    let runs = |event: &Value| event["properties"]["part"]["state"]["status"] == "running";
    let of = |event: &Value| (event["type"].clone(), event["properties"]["field"].clone());
    if told["type"] == "message.part.delta" && of(last) == of(&told) {
        let piece = told["properties"]["delta"].as_str().unwrap_or_default();
        let text = format!("{}{piece}", last["properties"]["delta"].as_str().unwrap_or_default());
        last["properties"]["delta"] = text.into();
        return;
    }
    if runs(&told) && told["properties"]["part"]["tool"] == "bash" {
        // How much a command has written when it is looked at is chance.
        let state = &mut told["properties"]["part"]["state"];
        if let Some(metadata) = state["metadata"].as_object_mut() {
            metadata.remove("output");
        }
    }
    if runs(last) && runs(&told) {
        *last = told;
        return;
    }
    events.push(told);
}

/// A value without what differs from run to run.
fn plain(value: &Value, key: &str, places: &[(String, &str)]) -> Value {
    match value {
        Value::Object(map) => {
            let mut out = Map::new();
            for (name, value) in map {
                if !LEFT_OUT.contains(&name.as_str()) {
                    out.insert(name.clone(), plain(value, name, places));
                }
            }
            if out.get("tool").is_some_and(|tool| tool == "glob") {
                // The original lists files in an order that varies from run to run.
                if let Some(Value::String(list)) =
                    out.get_mut("state").and_then(|state| state.get_mut("output"))
                {
                    let mut lines: Vec<&str> = list.lines().collect();
                    lines.sort_unstable();
                    *list = lines.join("\n");
                }
            }
            out.into()
        }
        Value::Array(values) => values.iter().map(|value| plain(value, key, places)).collect(),
        Value::Number(_) if MOMENTS.contains(&key) => "<moment>".into(),
        // How a body was laid out is the scripted model's.
        Value::String(text) if key == "responseBody" => {
            let body: Option<Value> = serde_json::from_str(text).ok();
            body.map_or_else(|| text.clone().into(), |body| plain(&body, "", places))
        }
        Value::String(text) => {
            let text = places.iter().fold(text.clone(), |text, (is, name)| text.replace(is.as_str(), name));
            if key == "itemId" || key == "version" {
                return format!("<{key}>").into();
            }
            VARYING.replace_all(&text, mark).into_owned().into()
        }
        other => other.clone(),
    }
}

fn mark(found: &Captures<'_>) -> String {
    if let Some(id) = found.name("id") {
        return format!("<{}>", id.as_str());
    }
    let kinds = ["call", "hash", "date", "address"];
    let kind = kinds.iter().find(|kind| found.name(kind).is_some());
    format!("<{}>", kind.unwrap_or(&"?"))
}
