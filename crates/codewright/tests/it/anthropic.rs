//! A turn over the Anthropic protocol.

use anyhow::{Context, Result};
use codewright_testkit::{Project, Protocol, Script, Turn, Usage};
use serde_json::{Value, json};

use crate::support::{Stage, check_has, of_type, text_of};

/// A signature is arbitrary text and must not be parsed.
const SIGNATURE: &str = "Eq+/=\u{e4}\\n\"sig nature\"==";
const THOUGHT: &str = "First I look,\n\tthen \u{1f914} I \"act\".  ";

/// The blocks without cache markers.
fn without_cache_marks(content: &Value) -> Vec<Value> {
    let blocks = content.as_array().cloned().unwrap_or_default();
    let bare = |mut block: Value| {
        block.as_object_mut().unwrap().remove("cache_control");
        block
    };
    blocks.into_iter().map(bare).collect()
}

fn stage(script: Script) -> Result<Stage> {
    let stage = Stage::plain(script)?;
    let mut config = Project::config(&stage.server.url());
    config["model"] = "mockanth/claude-mock".into();
    config["provider"]["mockanth"]["models"]["claude-mock"]["reasoning"] = true.into();
    stage.project.write_config(&config)?;
    Ok(stage)
}

#[test]
fn thinking_is_sent_back_byte_for_byte() -> Result<()> {
    let usage = Usage { input: 70, output: 30, cache_read: 500, cache_write: 40, reasoning: 0 };
    let script = Script::new()
        .turn(
            Turn::steps()
                .reasoning(THOUGHT)
                .signature(SIGNATURE)
                .text("Looking.")
                .tool("read", json!({"filePath": "a.txt"}))
                .id("toolu_1")
                .usage(usage),
        )
        .turn(Turn::steps().reasoning("More.").signature("second").text("Done."))
        .text("Again.");
    let stage = stage(script)?;
    stage.project.write("a.txt", "content\n")?;
    let lines = stage.json(["--thinking", "look"])?;
    assert_eq!(of_type(&lines, "reasoning")[0]["part"]["text"], THOUGHT);
    let tokens = &of_type(&lines, "step_finish")[0]["part"]["tokens"];
    assert_eq!((&tokens["input"], &tokens["output"]), (&json!(70), &json!(30)));
    assert_eq!(tokens["cache"], json!({"read": 500, "write": 40}));
    stage.run(["-c", "once more"])?.success()?;

    let requests = stage.server.main_requests();
    assert!(requests.iter().all(|request| request.protocol == Protocol::Anthropic));
    assert_eq!(requests[0].headers.get("x-api-key"), Some("sk-mock"));
    assert!(requests[0].headers.get("anthropic-version").is_some());
    // The same is sent in the next step and the next turn.
    for n in [1, 2] {
        let messages = stage.messages(n)?;
        let answer = messages.iter().find(|message| message["role"] == "assistant").context("no answer")?;
        let expected = [
            json!({"type": "thinking", "thinking": THOUGHT, "signature": SIGNATURE}),
            json!({"type": "text", "text": "Looking."}),
            json!({"type": "tool_use", "id": "toolu_1", "name": "read", "input": {"filePath": "a.txt"}}),
        ];
        assert_eq!(without_cache_marks(&answer["content"]), expected, "request {n}");
    }
    let result = &stage.messages(1)?[2]["content"][0];
    assert_eq!((&result["type"], &result["tool_use_id"]), (&json!("tool_result"), &json!("toolu_1")));
    check_has(&text_of(&result["content"]), &["1: content"]);
    stage.no_problems()
}

#[test]
fn a_failed_call_is_sent_as_an_error() -> Result<()> {
    let script = Script::new().tool("read", json!({"filePath": "missing"})).text("I see.");
    let stage = stage(script)?;
    stage.run(["look"])?.success()?;
    assert_eq!(stage.messages(1)?[2]["content"][0]["is_error"], true);
    stage.no_problems()
}
