//! Recorded traffic of OpenCode with an editor: the editor's side is played again, and the agent's side compared.
//!
//! The recording is `tests/fixtures/acp/traffic.jsonl`; long texts were left out when it was made. Every message has the
//! recorded keys at least. The values depend on the model and the machine, except those of enumerations.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use codewright_testkit::{Project, Script, Turn};
use serde_json::{Value, json};

use super::{Editor, prompt};
use crate::support::Stage;

/// Keys whose presence depends on the model and its catalog, and objects with free keys.
const FREE: &[&str] =
    &["configOptions", "availableCommands", "rawInput", "rawOutput", "sessions", "authMethods", "_meta"];

/// Keys that the protocol's implementation leaves out if they have their default.
const DEFAULTS: &[&str] = &[".status", ".kind", ".locations"];

fn recorded() -> Result<Vec<Value>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/acp/traffic.jsonl");
    fs::read_to_string(path)?.lines().map(|line| Ok(serde_json::from_str(line)?)).collect()
}

/// The paths of all keys of a value.
fn keys(value: &Value, at: &str, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                let at = format!("{at}.{key}");
                found.insert(at.clone());
                if !FREE.contains(&key.as_str()) {
                    keys(value, &at, found);
                }
            }
        }
        Value::Array(list) => list.iter().for_each(|value| keys(value, &format!("{at}[]"), found)),
        _ => {}
    }
}

/// The kinds of updates with the keys that all updates of a kind have.
fn common<'a>(updates: impl Iterator<Item = &'a Value>) -> BTreeMap<String, BTreeSet<String>> {
    let mut kinds: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for update in updates {
        let word = |key: &str| update[key].as_str().unwrap_or_default().to_owned();
        // A completed call repeats its kind only in some cases.
        let status = if update["sessionUpdate"] == "tool_call" { String::new() } else { word("status") };
        let kind = format!("{} {status}", word("sessionUpdate"));
        let mut own = BTreeSet::new();
        keys(update, "", &mut own);
        kinds.entry(kind).and_modify(|known| known.retain(|key| own.contains(key))).or_insert(own);
    }
    kinds
}

/// The keys of the recorded result of a method, and what ours lacks.
fn check(method: &str, ours: &Value, recorded: &Value) {
    let (mut expected, mut found) = (BTreeSet::new(), BTreeSet::new());
    keys(recorded, "", &mut expected);
    keys(ours, "", &mut found);
    let missing: Vec<_> = expected.difference(&found).collect();
    assert!(missing.is_empty(), "{method} lacks {missing:?}: {ours}");
}

fn script() -> Script {
    let todos = json!({"todos": [{"content": "a", "status": "in_progress", "priority": "high"}]});
    let file = |name: &str| json!({"filePath": name, "content": "line1\n"});
    Script::new()
        .turn(
            Turn::steps()
                .reasoning("thinking here")
                .text("Working on it. ")
                .tool("bash", json!({"command": "echo hi", "description": "say hi"})),
        )
        .turn(Turn::steps().tool("write", file("acp.txt")))
        .turn(
            Turn::steps()
                .tool("edit", json!({"filePath": "acp.txt", "oldString": "line1", "newString": "line2"})),
        )
        .turn(Turn::steps().tool("read", json!({"filePath": "acp.txt"})))
        .turn(Turn::steps().tool("todowrite", todos))
        .turn(Turn::text("acp done"))
        .turn(Turn::steps().tool("webfetch", json!({"url": "http://127.0.0.1:9/x", "format": "text"})))
        .turn(Turn::text("perm ok"))
        .turn(Turn::steps().tool("read", json!({"filePath": "/etc/hostname"})))
        .turn(Turn::text("greeted"))
}

#[test]
fn the_recorded_session_of_an_editor_has_the_recorded_answers() -> Result<()> {
    let recorded = recorded()?;
    let messages: Vec<_> = recorded.iter().map(|line| (&line["dir"], &line["msg"])).collect();
    let stage = Stage::git(script())?;
    let mut config = Project::config(&stage.server.url());
    config["command"] = json!({"greet": {"template": "Say hello to $ARGUMENTS", "description": "Greets"}});
    config["permission"] = json!({"webfetch": "ask", "external_directory": "ask"});
    stage.project.write_config(&config)?;
    let mut editor = Editor::start(&stage.project)?;
    let (mut session, mut played) = (String::new(), 0);
    for (_, request) in
        messages.iter().filter(|(dir, message)| *dir == "client->agent" && message["method"].is_string())
    {
        let method = request["method"].as_str().context("no method")?;
        let mut params = request["params"].clone();
        // The cancelled prompt is a test of its own, because it depends on time.
        let is_slow = params["prompt"][0]["text"].as_str().is_some_and(|text| text.starts_with("SLOW"));
        if is_slow || method == "session/cancel" {
            continue;
        }
        if params["sessionId"].is_string() {
            params["sessionId"] = json!(session);
        }
        if params["cwd"].is_string() {
            params["cwd"] = json!(stage.project.directory());
        }
        match method {
            "session/prompt" => {
                let text = params["prompt"][0]["text"].as_str().unwrap_or_default().to_owned();
                editor.choice = if text.contains("rejected") { "reject" } else { "once" };
                params = prompt(&session, if text.starts_with('/') { &text } else { "go on" });
            }
            "session/set_config_option" => {
                params["value"] = config["model"].clone();
            }
            "authenticate" => params["methodId"] = json!("codewright-login"),
            _ => {}
        }
        let id = &request["id"];
        let is_answer = |(dir, message): &&(&Value, &Value)| {
            *dir == "agent->client" && message["id"] == *id && message.get("method").is_none()
        };
        let (_, answer) =
            messages.iter().find(is_answer).with_context(|| format!("{method} has no answer"))?;
        played += 1;
        if answer.get("error").is_some() {
            let refused = editor.refusal(method, &params)?;
            assert_eq!(refused["code"], answer["error"]["code"], "{method}");
            continue;
        }
        let result = editor.call(method, &params)?;
        check(method, &result, &answer["result"]);
        for key in ["stopReason", "protocolVersion"] {
            assert_eq!(result[key], answer["result"][key], "{method}");
        }
        if method == "session/new" {
            session = result["sessionId"].as_str().context("no session")?.to_owned();
        }
    }
    ensure!(played > 12, "{played} requests were played");
    check_updates(&messages, &editor)?;
    check_requests(&messages, &editor);
    editor.close()
}

/// Fails unless every recorded kind of update has come with the recorded keys.
fn check_updates(messages: &[(&Value, &Value)], editor: &Editor) -> Result<()> {
    let theirs = messages.iter().filter(|(_, message)| message["method"] == "session/update");
    let theirs = common(theirs.map(|(_, message)| &message["params"]["update"]));
    let ours = common(editor.updates.iter());
    for (kind, expected) in &theirs {
        let found =
            ours.get(kind).with_context(|| format!("there is no update `{kind}`: {:?}", ours.keys()))?;
        let is_default = |key: &&String| {
            let key = key.split('[').next().unwrap_or_default();
            DEFAULTS.contains(&key)
        };
        let missing: Vec<_> = expected.difference(found).filter(|key| !is_default(key)).collect();
        assert!(missing.is_empty(), "`{kind}` lacks {missing:?}");
    }
    Ok(())
}

/// Fails unless the permission requests are the recorded ones.
fn check_requests(messages: &[(&Value, &Value)], editor: &Editor) {
    let list = |request: &Value| request["options"].as_array().cloned().unwrap_or_default();
    let asked = messages.iter().filter(|(_, message)| message["method"] == "session/request_permission");
    for ((_, theirs), ours) in asked.zip(&editor.requests) {
        check("session/request_permission", ours, &theirs["params"]);
        for (ours, theirs) in list(ours).iter().zip(list(&theirs["params"])) {
            assert_eq!((&ours["optionId"], &ours["kind"]), (&theirs["optionId"], &theirs["kind"]));
        }
        let kind = ours["toolCall"]["kind"].as_str().unwrap_or("other");
        assert_eq!(kind, theirs["params"]["toolCall"]["kind"]);
    }
    assert_eq!(editor.requests.len(), 2);
}
