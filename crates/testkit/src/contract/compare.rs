//! Compares the events and messages of a replayed case with its recording.

use std::sync::LazyLock;

use regex::{Captures, Regex};
use serde_json::{Map, Value};

use super::recording::Recording;
use super::shape::is_alike;
use super::stage::Played;
use super::{Matches, Outcome};

/// Events of the process or the machine, which no session causes.
const GLOBAL_EVENTS: [&str; 10] = [
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

/// Keys whose numbers are times.
const TIMES: [&str; 8] = ["time", "created", "updated", "completed", "start", "end", "next", "initialized"];

/// Keys that are not compared: headers depend on the HTTP library, slugs are random, and only Codewright
/// stores the tree after a patch and explains permission requests.
const IGNORED: [&str; 4] = ["responseHeaders", "slug", "after", "asked"];

/// Ids, hashes, dates and addresses.
static VARYING: LazyLock<Regex> = LazyLock::new(|| {
    let pattern = r"(?x)
        \b(?<id>ses|msg|prt|per|que|evt|tool)_[0-9A-Za-z]{20,}\b
        | \b(?<call>01[0-9A-HJKMNP-TV-Z]{24})\b
        | \b(?<hash>[0-9a-f]{40})\b
        | (?<date>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z)
        | (?<address>http://127\.0\.0\.1:\d+)";
    Regex::new(pattern).expect("the pattern is valid")
});

/// A sequence of events whose order is compared.
struct Lane {
    name: String,
    events: Vec<Value>,
}

/// Compares a replayed case with its recording.
pub(super) fn compare(recording: &Recording, played: &Played) -> Outcome {
    let recorded = lanes(&recording.events, &[]);
    let replayed = lanes(&played.events, &played.paths);
    let mut outcome = Outcome::new(&recording.name);
    for lane in &recorded {
        let ours = replayed.iter().find(|other| other.name == lane.name);
        outcome.add(&lane.name, &lane.events, ours.map_or(&[], |lane| &lane.events));
    }
    for lane in replayed.iter().filter(|lane| !recorded.iter().any(|other| other.name == lane.name)) {
        outcome.add(&lane.name, &[], &lane.events);
    }
    if let Some(messages) = &recording.messages {
        let recorded: Vec<_> = messages.iter().map(|message| normalize(message, "", &[])).collect();
        let replayed = played.messages.iter().map(|message| normalize(message, "", &played.paths));
        outcome.add("messages", &recorded, &replayed.collect::<Vec<_>>());
    }
    outcome
}

impl Outcome {
    /// Compares the events of a lane, or the messages, by value and by shape.
    fn add(&mut self, name: &str, recorded: &[Value], replayed: &[Value]) {
        self.recorded += recorded.len();
        self.values.add(name, recorded, replayed, is_same);
        self.shapes.add(name, recorded, replayed, is_alike);
    }
}

impl Matches {
    /// Adds the longest common subsequence of two lists, and the items of both that are not in it.
    fn add(
        &mut self,
        name: &str,
        recorded: &[Value],
        replayed: &[Value],
        is_match: fn(&Value, &Value) -> bool,
    ) {
        // `best[i][j]` is the length for the rests from `i` and `j`. The lists are short.
        let mut best = vec![vec![0_usize; replayed.len() + 1]; recorded.len() + 1];
        for i in (0..recorded.len()).rev() {
            for j in (0..replayed.len()).rev() {
                best[i][j] = if is_match(&recorded[i], &replayed[j]) {
                    best[i + 1][j + 1] + 1
                } else {
                    best[i + 1][j].max(best[i][j + 1])
                };
            }
        }
        self.same += best[0][0];
        let (mut i, mut j) = (0, 0);
        while i < recorded.len() || j < replayed.len() {
            if i < recorded.len() && j < replayed.len() && is_match(&recorded[i], &replayed[j]) {
                (i, j) = (i + 1, j + 1);
            } else if j >= replayed.len() || (i < recorded.len() && best[i + 1][j] >= best[i][j + 1]) {
                self.differences.push(format!("- {name}: {}", recorded[i]));
                i += 1;
            } else {
                self.differences.push(format!("+ {name}: {}", replayed[j]));
                j += 1;
            }
        }
    }
}

/// Whether two values are equal, except for texts that the recording replaced by `<text N chars>`.
pub(super) fn is_same(recorded: &Value, replayed: &Value) -> bool {
    match (recorded, replayed) {
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

/// Sorts the normalized events into lanes.
fn lanes(events: &[Value], paths: &[(String, &str)]) -> Vec<Lane> {
    let mut lanes: Vec<Lane> = Vec::new();
    let mut sessions: Vec<String> = Vec::new();
    let mut ids: Vec<String> = Vec::new();
    let is_start = |event: &Value| event["properties"]["part"]["type"] == "step-start";
    let mut started: Vec<&Value> = Vec::new();
    for event in events {
        if is_start(event) {
            let id = &event["properties"]["part"]["id"];
            if started.contains(&id) {
                continue;
            }
            started.push(id);
        }
        // `step-start` is sent again once a slow snapshot of the files is there. The last one counts, at the
        // position of the first.
        let is_repeated = |other: &&Value| {
            is_start(other) && other["properties"]["part"]["id"] == event["properties"]["part"]["id"]
        };
        let event =
            if is_start(event) { events.iter().rev().find(is_repeated).unwrap_or(event) } else { event };
        let (kind, properties) = (event["type"].as_str().unwrap_or_default(), &event["properties"]);
        if GLOBAL_EVENTS.contains(&kind) {
            continue;
        }
        let id = properties["sessionID"].as_str().unwrap_or_default().to_owned();
        let at = sessions.iter().position(|other| *other == id).unwrap_or_else(|| {
            sessions.push(id);
            sessions.len() - 1
        });
        let (lane, is_last_only) = lane_of(kind, properties, &mut ids);
        let name = format!("session {at}, {lane}");
        let event = normalize(&serde_json::json!({"type": kind, "properties": properties}), "", paths);
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
        push(&mut lane.events, event);
    }
    lanes
}

/// Returns the lane of an event, and whether only the last event of that lane counts.
///
/// `ids` are the ids so far in the order of their first occurrence, because a lane is named by that number.
fn lane_of(kind: &str, properties: &Value, ids: &mut Vec<String>) -> (String, bool) {
    let mut number = |id: &Value| {
        let id = id.as_str().unwrap_or_default().to_owned();
        ids.iter().position(|other| *other == id).unwrap_or_else(|| {
            ids.push(id);
            ids.len() - 1
        })
    };
    match kind {
        "session.updated" | "session.diff" => (kind.to_owned(), true),
        // The event of a prompt is repeated whenever its summary is computed.
        "message.updated" if properties["info"]["role"] == "user" => {
            (format!("prompt {}", number(&properties["info"]["id"])), true)
        }
        // The calls of a step run concurrently.
        "message.part.updated" if properties["part"]["type"] == "tool" => {
            let id = properties["part"]["callID"].as_str().unwrap_or_default();
            (format!("call {}", VARYING.replace_all(id, placeholder)), false)
        }
        // The model keeps streaming while a permission is requested, so a reply races the next call.
        "permission.asked" => (format!("permission {}", number(&properties["id"])), false),
        "permission.replied" => (format!("permission {}", number(&properties["requestID"])), false),
        _ => ("main".to_owned(), false),
    }
}

/// Appends an event. Consecutive deltas of a text are joined, and so are the states of a running call.
fn push(events: &mut Vec<Value>, mut event: Value) {
    let Some(last) = events.last_mut() else { return events.push(event) };
    let is_running = |event: &Value| event["properties"]["part"]["state"]["status"] == "running";
    let field = |event: &Value| (event["type"].clone(), event["properties"]["field"].clone());
    if event["type"] == "message.part.delta" && field(last) == field(&event) {
        let piece = event["properties"]["delta"].as_str().unwrap_or_default();
        let text = format!("{}{piece}", last["properties"]["delta"].as_str().unwrap_or_default());
        last["properties"]["delta"] = text.into();
        return;
    }
    if is_running(&event) && event["properties"]["part"]["tool"] == "bash" {
        // The amount of output in each update depends on timing.
        let state = &mut event["properties"]["part"]["state"];
        if let Some(metadata) = state["metadata"].as_object_mut() {
            metadata.remove("output");
        }
    }
    if is_running(last) && is_running(&event) {
        *last = event;
        return;
    }
    events.push(event);
}

/// Replaces everything that differs from run to run by placeholders. `key` is the key of the value.
fn normalize(value: &Value, key: &str, paths: &[(String, &str)]) -> Value {
    match value {
        Value::Object(map) => {
            let mut out = Map::new();
            for (name, value) in map {
                if !IGNORED.contains(&name.as_str()) {
                    out.insert(name.clone(), normalize(value, name, paths));
                }
            }
            if out.get("tool").is_some_and(|tool| tool == "glob") {
                // OpenCode lists files in an order that varies from run to run.
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
        Value::Array(values) => values.iter().map(|value| normalize(value, key, paths)).collect(),
        Value::Number(_) if TIMES.contains(&key) => "<time>".into(),
        // The layout of a response body depends on the scripted model.
        Value::String(text) if key == "responseBody" => {
            let body: Option<Value> = serde_json::from_str(text).ok();
            body.map_or_else(|| text.clone().into(), |body| normalize(&body, "", paths))
        }
        Value::String(text) => {
            let text =
                paths.iter().fold(text.clone(), |text, (path, name)| text.replace(path.as_str(), name));
            if key == "itemId" || key == "version" {
                return format!("<{key}>").into();
            }
            VARYING.replace_all(&text, placeholder).into_owned().into()
        }
        other => other.clone(),
    }
}

fn placeholder(found: &Captures<'_>) -> String {
    if let Some(id) = found.name("id") {
        return format!("<{}>", id.as_str());
    }
    let kinds = ["call", "hash", "date", "address"];
    let kind = kinds.iter().find(|kind| found.name(kind).is_some());
    format!("<{}>", kind.unwrap_or(&"?"))
}
