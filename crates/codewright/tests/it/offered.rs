//! Tools and their schemas equal those of OpenCode, for every protocol and model.
//!
//! The recording is in `fixtures/tools.json`: names, order and schemas, without the
//! descriptions, which are our own.

use anyhow::{Context, Result};
use codewright_testkit::Script;
use serde_json::{Map, Value, json};

use crate::support::{Stage, new_session, post, program, serve};

const RECORDED: &str = include_str!("../fixtures/tools.json");
/// The packages of the protocols, and the paths of their addresses.
const PROVIDERS: [(&str, &str, &str); 4] = [
    ("chat", "@ai-sdk/openai-compatible", "/v1"),
    ("messages", "@ai-sdk/anthropic", "/v1"),
    ("gemini", "@ai-sdk/google", "/v1beta"),
    ("responses", "@ai-sdk/openai", "/v1"),
];

/// Removes descriptions, which may differ.
fn bare(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let kept = fields.iter().filter(|(name, value)| *name != "description" || !value.is_string());
            kept.map(|(name, value)| (name.clone(), bare(value))).collect()
        }
        Value::Array(items) => items.iter().map(bare).collect(),
        other => other.clone(),
    }
}

/// A stage with a provider for each protocol and every model at each.
fn stage(recorded: &Value) -> Result<Stage> {
    let stage = Stage::git(Script::new().text("ok").repeat())?;
    let wires = recorded["wires"].as_array().context("no wires")?;
    let named = wires.iter().filter_map(|wire| wire["model"].as_str());
    let models = recorded["models"].as_object().context("no models")?;
    let mut known: Map<String, Value> = Map::new();
    for id in named.chain(models.keys().map(String::as_str)) {
        let calls = models.get(id).is_none_or(|tools| tools != "");
        known.insert(
            id.to_owned(),
            json!({"name": id, "tool_call": calls, "limit": {"context": 200_000, "output": 32_000}}),
        );
    }
    let root = stage.server.url();
    let providers: Map<String, Value> = PROVIDERS
        .into_iter()
        .map(|(id, npm, path)| {
            let options = json!({"baseURL": format!("{root}{path}"), "apiKey": "x"});
            (id.to_owned(), json!({"npm": npm, "options": options, "models": known}))
        })
        .collect();
    stage.project.write_config(&json!({"model": "chat/plain-model", "provider": providers}))?;
    Ok(stage)
}

/// The tools that are sent to a model.
fn offered(stage: &Stage, url: &str, provider: &str, model: &str) -> Result<Value> {
    let session = new_session(url)?;
    let body = json!({
        "model": {"providerID": provider, "modelID": model},
        "parts": [{"type": "text", "text": "hi"}],
    });
    let (status, answer) = post(url, &format!("/session/{session}/message"), &body)?;
    assert_eq!(status, 200, "{provider}/{model}: {answer}");
    let requests = stage.server.main_requests();
    let last = requests.last().with_context(|| format!("{provider}/{model} got no request: {answer}"))?;
    Ok(bare(&last.body["tools"]))
}

fn names(tools: &Value) -> String {
    let named = tools.as_array().into_iter().flatten().map(|tool| {
        tool["function"]["name"].as_str().or(tool["name"].as_str()).unwrap_or("a tool without a name")
    });
    named.collect::<Vec<_>>().join(" ")
}

#[test]
fn every_protocol_is_sent_the_recorded_tools() -> Result<()> {
    let recorded: Value = serde_json::from_str(RECORDED)?;
    let stage = stage(&recorded)?;
    let (_server, url) = serve(program(&stage.project, ["serve", "--port", "0"]))?;
    for wire in recorded["wires"].as_array().context("no wires")? {
        let (provider, model) = (wire["provider"].as_str(), wire["model"].as_str());
        let (provider, model) = (provider.context("a provider")?, model.context("a model")?);
        let tools = offered(&stage, &url, provider, model)?;
        // Only tools and required properties have an order.
        assert_eq!(tools, wire["tools"], "{provider}/{model}");
    }
    Ok(())
}

#[test]
fn every_model_is_offered_the_recorded_tools() -> Result<()> {
    let recorded: Value = serde_json::from_str(RECORDED)?;
    let stage = stage(&recorded)?;
    let (_server, url) = serve(program(&stage.project, ["serve", "--port", "0"]))?;
    for (model, tools) in recorded["models"].as_object().context("no models")? {
        let offered = offered(&stage, &url, "chat", model)?;
        assert_eq!(names(&offered), tools.as_str().unwrap_or_default(), "{model}");
    }
    Ok(())
}
