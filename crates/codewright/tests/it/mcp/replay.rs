//! Recorded traffic of OpenCode with MCP servers: the server's side is played again, and the client's side compared.
//!
//! `docs/api-differences.md` lists the intended differences. The recordings are in `tests/fixtures/mcp`; long texts and
//! the ends of lists were left out when they were made.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use codewright_testkit::{Project, Run, Running, Script};
use serde_json::{Map, Value, json};

use super::{Serving, calls, offered, stage};
use crate::support::{get, post, wait_until};

/// The size of the recorded image in base64.
const IMAGE_BYTES: usize = 5380;

fn fixture(name: &str) -> Result<String> {
    Ok(fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/mcp").join(name))?)
}

fn lines(text: &str) -> Result<Vec<Value>> {
    text.lines().map(|line| Ok(serde_json::from_str(line)?)).collect()
}

/// The recorded messages of one side of the stdio traffic.
fn side(direction: &str) -> Result<Vec<Value>> {
    let all = lines(&fixture("stdio-traffic.jsonl")?)?;
    Ok(all.into_iter().filter(|line| line["dir"] == direction).map(|line| line["msg"].clone()).collect())
}

/// Replaces the marks for what was left out: entries of lists disappear, and the image gets a content.
fn whole(value: Value) -> Value {
    let is_mark = |value: &Value| value.as_str().is_some_and(|text| text.starts_with("<+"));
    match value {
        Value::Array(list) => list.into_iter().filter(|one| !is_mark(one)).map(whole).collect(),
        Value::Object(map) => map.into_iter().map(|(key, value)| (key, whole(value))).collect(),
        Value::String(text) if text == format!("<text {IMAGE_BYTES} chars>") => {
            "A".repeat(IMAGE_BYTES).into()
        }
        other => other,
    }
}

/// The recorded status of routes and the commands.
fn routes() -> Result<Value> {
    Ok(serde_json::from_str(&fixture("status-and-commands.json")?)?)
}

/// The answers of the recorded server. Its prompts and its whole list of resources are only in the recorded routes.
fn answers() -> Result<Value> {
    let (asked, sent) = (side("client->server")?, side("server->client")?);
    let mut answers = Map::new();
    for message in sent.iter().filter(|message| !message["result"].is_null()) {
        let request =
            asked.iter().find(|request| request["id"] == message["id"] && !request["method"].is_null());
        let method = request.context("no request")?["method"].as_str().context("no method")?;
        let mut result = whole(message["result"].clone());
        if let Some(tools) = result["tools"].as_array_mut() {
            // It is among those that were left out.
            tools
                .push(json!({"name": "get-tiny-image", "inputSchema": {"type": "object", "properties": {}}}));
        }
        match method {
            "tools/call" => answers
                .entry(method)
                .or_insert_with(|| json!([]))
                .as_array_mut()
                .context("no list")?
                .push(result),
            _ => drop(answers.insert(method.to_owned(), result)),
        }
    }
    let routes = routes()?;
    let resources = routes["GET /experimental/resource"]["body"].as_object().context("no resources")?;
    let resources: Vec<Value> = resources
        .values()
        .filter(|resource| resource["client"] == "everything")
        .map(|resource| {
            let mut resource = resource.clone();
            resource.as_object_mut().map(|resource| resource.remove("client"));
            resource
        })
        .collect();
    answers.insert("resources/list".to_owned(), json!({ "resources": resources }));
    let commands = routes["GET /command (mcp + custom only)"]["body"].as_array().context("no commands")?;
    let prompts = commands.iter().filter_map(|command| {
        let name = command["name"].as_str()?.strip_prefix("everything:")?;
        let arguments = command["hints"].as_array()?.iter().map(|hint| json!({"name": hint}));
        Some(json!({"name": name, "description": command["description"], "arguments": arguments.collect::<Vec<_>>()}))
    });
    answers.insert("prompts/list".to_owned(), json!({ "prompts": prompts.collect::<Vec<_>>() }));
    let request = sent.iter().find(|message| message["method"] == "roots/list").context("no request")?;
    answers.insert("events".to_owned(), json!({"tools/list": [request]}));
    Ok(Value::Object(answers))
}

/// The player of the recording, and the files that it uses.
struct Player {
    project: Project,
    answers: PathBuf,
}

impl Player {
    fn new() -> Result<Self> {
        let project = Project::plain()?;
        let answers = project.write("answers.json", answers()?.to_string())?;
        Ok(Self { project, answers })
    }

    fn words(&self, kind: &str, name: &str) -> Vec<String> {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testkit/servers/replay.py");
        let text = |path: &Path| path.to_string_lossy().into_owned();
        vec![text(&script), kind.to_owned(), text(&self.answers), text(&self.project.path(name))]
    }

    /// The configuration of a server over stdio.
    fn stdio(&self, name: &str) -> Value {
        let command: Vec<_> = ["python3".to_owned()].into_iter().chain(self.words("stdio", name)).collect();
        json!({"type": "local", "command": command})
    }

    /// A running server over HTTP and its configuration.
    fn http(&self, name: &str) -> Result<(Running, Value)> {
        let run = Run::new("python3", &self.project).args(self.words("http", name));
        let mut running = run.deadline(Duration::from_secs(300)).start()?;
        let port = running.line()?.context("no port")?;
        let url = format!("http://127.0.0.1:{}/mcp", port.trim());
        Ok((running, json!({"type": "remote", "url": url, "headers": {"x-my": "1"}})))
    }

    /// The messages of the client so far.
    fn received(&self, name: &str) -> Result<Vec<Value>> {
        lines(&fs::read_to_string(self.project.path(name))?)
    }
}

/// A message of the client without the values that differ by intention, or `None` for one that is not compared:
/// OpenCode cancels each call after its end.
fn comparable(message: &Value, directory: &str) -> Option<Value> {
    if message["method"] == "notifications/cancelled" {
        return None;
    }
    let mut message: Value =
        serde_json::from_str(&message.to_string().replace(directory, "<PROJECT>")).ok()?;
    let fields = message.as_object_mut()?;
    fields.remove("id");
    // Missing parameters and empty ones mean the same.
    if fields.get("params") == Some(&json!({})) {
        fields.remove("params");
    }
    if let Some(params) = fields.get_mut("params").and_then(Value::as_object_mut) {
        params.remove("clientInfo");
        if let Some(token) = params.get_mut("_meta").and_then(|meta| meta.get_mut("progressToken")) {
            *token = json!("token");
        }
        if let Some(capabilities) = params.get_mut("capabilities").and_then(Value::as_object_mut) {
            capabilities.remove("elicitation");
        }
    }
    Some(message)
}

fn comparables(messages: &[Value], directory: &str) -> Vec<Value> {
    let mut all: Vec<_> = messages.iter().filter_map(|message| comparable(message, directory)).collect();
    all.dedup();
    all
}

#[test]
fn a_server_over_stdio_receives_the_recorded_messages() -> Result<()> {
    let player = Player::new()?;
    let script = calls(&[("wrapd_echo", json!({"message": "x"})), ("wrapd_get-tiny-image", json!({}))]);
    let stage = stage(script, json!({"wrapd": player.stdio("record")}), json!({}))?;
    let serving = Serving::new(&stage)?;
    let directory = stage.project.directory().to_string_lossy().into_owned();
    serving.mcp()?;
    wait_until("the roots", || {
        player.received("record").is_ok_and(|all| all.iter().any(|message| !message["result"].is_null()))
    })?;
    let parts = [serving.call()?, serving.call()?];
    get(&serving.url, "/experimental/resource")?;
    let recorded = comparables(&side("client->server")?, "<PROJECT>");
    assert_eq!(comparables(&player.received("record")?, &directory), recorded);
    let client = player.received("record")?[0]["params"]["clientInfo"].clone();
    assert_eq!(client, json!({"name": "codewright", "version": env!("CARGO_PKG_VERSION")}));
    // The parts for clients.
    let expected: Vec<Value> = serde_json::from_str(&fixture("tool-parts.json")?)?;
    for (part, expected) in parts.iter().zip(&expected) {
        assert_eq!(shape(part), shape(expected));
    }
    stage.no_problems()
}

/// A part without ids and times. A long text is its length.
fn shape(part: &Value) -> Value {
    match part {
        Value::Object(map) => {
            let kept = map.iter().filter(|(key, _)| {
                !matches!(key.as_str(), "id" | "sessionID" | "messageID" | "callID" | "start" | "end")
            });
            kept.map(|(key, value)| (key.clone(), shape(value))).collect()
        }
        Value::Array(list) => list.iter().map(shape).collect(),
        Value::String(text) if text.len() > 1000 => format!("<text {} chars>", text.len()).into(),
        other => other.clone(),
    }
}

#[test]
fn a_server_over_http_receives_the_recorded_requests() -> Result<()> {
    const NAMES: [&str; 5] = ["accept", "content-type", "mcp-protocol-version", "mcp-session-id", "x-my"];
    let player = Player::new()?;
    let (_running, remote) = player.http("record")?;
    let (_other, mut named) = player.http("named")?;
    named["headers"]["User-Agent"] = json!("known/1");
    let stage = stage(Script::new(), json!({"rem": remote, "named": named}), json!({}))?;
    let serving = Serving::new(&stage)?;
    let directory = stage.project.directory().to_string_lossy().into_owned();
    serving.mcp()?;
    get(&serving.url, "/experimental/resource")?;
    let request = |entry: &Value, directory: &str| -> Value {
        let headers: Map<String, Value> = NAMES
            .iter()
            .filter_map(|name| Some(((*name).to_owned(), sorted(entry["reqHeaders"].get(*name)?))))
            .collect();
        // The SDK accepts both types everywhere, OpenCode only streams for the stream.
        let headers = match headers.get("accept").filter(|_| entry["method"] == "GET") {
            Some(accept) => {
                assert!(accept.to_string().contains("text/event-stream"), "{accept}");
                headers.into_iter().filter(|(name, _)| name != "accept").collect()
            }
            None => headers,
        };
        let body = comparable(&entry["reqBody"], directory).unwrap_or_default();
        json!({"method": entry["method"], "headers": headers, "body": body})
    };
    let recorded = lines(&fixture("http-traffic.jsonl")?)?;
    let recorded: Vec<_> = recorded.iter().map(|entry| request(entry, "<PROJECT>")).collect();
    let received = || -> Result<Vec<Value>> {
        let mut all: Vec<_> =
            player.received("record")?.iter().map(|entry| request(entry, &directory)).collect();
        all.dedup();
        Ok(all)
    };
    // The stream and the answer about the roots come when the server asks, at the same time as other requests.
    let in_any_order = |mut all: Vec<Value>| -> Vec<Value> {
        all[2..].sort_by_key(|one| one["body"]["method"].to_string());
        all
    };
    // A difference is reported below.
    drop(wait_until("every request", || received().is_ok_and(|all| all.len() >= recorded.len())));
    assert_eq!(in_any_order(received()?), in_any_order(recorded));
    for (name, agent) in
        [("record", format!("codewright/{}", env!("CARGO_PKG_VERSION"))), ("named", "known/1".to_owned())]
    {
        let all = player.received(name)?;
        assert!(all.iter().all(|entry| entry["reqHeaders"]["user-agent"] == agent.as_str()), "{all:?}");
    }
    stage.no_problems()
}

/// A list of media types in any order.
fn sorted(value: &Value) -> Value {
    let mut words: Vec<_> = value.as_str().unwrap_or_default().split(", ").collect();
    words.sort_unstable();
    json!(words)
}

#[test]
fn clients_see_the_recorded_statuses_resources_and_commands() -> Result<()> {
    let player = Player::new()?;
    let (_running, remote) = player.http("remote")?;
    let mcp = json!({
        "everything": player.stdio("everything"),
        "fs": player.stdio("fs"),
        "rem": remote,
        "broken": {"type": "local", "command": ["/nonexistent"]},
        "off": {"type": "local", "command": ["x"], "enabled": false},
    });
    let stage = stage(calls(&[("rem_echo", json!({"message": "x"}))]), mcp, json!({}))?;
    let serving = Serving::new(&stage)?;
    let recorded = routes()?;
    let body = |route: &str| recorded[route]["body"].clone();
    // The error is our own sentence.
    let plain = |mut all: Value| {
        ensure!(all["broken"]["error"].is_string(), "{all}");
        all["broken"]["error"] = json!("");
        Ok(all)
    };
    let statuses = plain(serving.mcp()?)?;
    assert_eq!(statuses.to_string(), plain(body("GET /mcp"))?.to_string());
    // The recorded server for files has no resources.
    let resources = get(&serving.url, "/experimental/resource")?;
    let resources: Map<_, _> = resources
        .as_object()
        .context("no resources")?
        .clone()
        .into_iter()
        .filter(|(key, _)| !key.starts_with("fs:"))
        .collect();
    assert_eq!(Value::Object(resources), body("GET /experimental/resource"));
    // The template of a prompt is a text, not an object.
    let prompts = |list: &Value| -> Vec<Value> {
        let all = list.as_array().into_iter().flatten().filter(|command| command["source"] == "mcp");
        let all = all.filter(|command| command["name"].as_str().is_some_and(|name| !name.starts_with("fs:")));
        let plain = |mut command: Value| {
            command["template"] = json!("");
            command
        };
        all.cloned().map(plain).collect()
    };
    let commands = get(&serving.url, "/command")?;
    assert_eq!(prompts(&commands), prompts(&body("GET /command (mcp + custom only)")));
    assert_eq!(body("POST /mcp/broken/connect"), "true");
    assert_eq!(post(&serving.url, "/mcp/broken/connect", &json!({}))?, (200, json!(true)));
    let missing = body("POST /mcp/off/connect");
    let missing: Value = serde_json::from_str(missing.as_str().context("no text")?)?;
    assert_eq!(post(&serving.url, "/mcp/nonesuch/connect", &json!({}))?, (404, missing));
    let added = json!({"name": "dyn", "config": player.stdio("dyn")});
    let (status, added) = post(&serving.url, "/mcp", &added)?;
    assert_eq!((status, plain(added)?), (200, plain(body("POST /mcp (dynamic add)"))?));
    // The routes about tools list none of servers.
    let ids = get(&serving.url, "/experimental/tool/ids")?.to_string();
    assert!(!ids.contains("_echo") && !body("GET /experimental/tool/ids").to_string().contains("_echo"));
    serving.call()?;
    let names = offered(&stage.server.main_requests()[0].body);
    for name in ["everything_echo", "rem_get-annotated-message", "fs_get-env", "list_mcp_resources"] {
        assert!(names.iter().any(|offered| offered == name), "{name}: {names:?}");
    }
    stage.no_problems()
}
