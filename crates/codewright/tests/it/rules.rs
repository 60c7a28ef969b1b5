//! Requests obey the rules of the provider that receives them, and small mistakes of models are corrected.

use std::path::Path;

use anyhow::{Context as _, Result};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use codewright_testkit::{Args, Content, Finish, Project, Reply, Script, Turn};
use serde_json::{Value, json};

use crate::support::{Stage, of_type, session_of};

const WIDE_PNG: &str = include_str!("../../../testkit/fixtures/wide.png.base64");
const JPEG: &str = include_str!("../../../testkit/fixtures/small.jpeg.base64");

/// A stage with models of several makers that see pictures.
fn stage(script: Script) -> Result<Stage> {
    stage_with(script, json!({}))
}

/// The same stage with an MCP server whose schemas are unusual.
fn stage_with_server(script: Script) -> Result<Stage> {
    let server = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testkit/servers/schemas.py");
    stage_with(script, json!({"docs": {"type": "local", "command": ["python3", server]}}))
}

fn stage_with(script: Script, servers: Value) -> Result<Stage> {
    let stage = Stage::plain(script)?;
    let mut config = Project::config(&stage.server.url());
    let see = json!({"reasoning": true, "attachment": true, "modalities": {"input": ["text", "image"], "output": ["text"]}});
    let claude = &mut config["provider"]["mockanth"]["models"];
    claude["claude-mock"] = see.clone();
    claude["claude-two"] = see;
    let mut other = config["provider"]["mockanth"].clone();
    other["name"] = "Other".into();
    config["provider"]["gateway"] = other;
    config["provider"]["mock"]["models"]["kimi-k2"] = json!({});
    config["provider"]["mock"]["models"]["thinker"] = json!({"reasoning": true});
    config["permission"] = json!({"*": "allow"});
    config["mcp"] = servers;
    stage.project.write_config(&config)?;
    Ok(stage)
}

fn picture(base64: &str) -> Vec<u8> {
    STANDARD.decode(base64.trim()).expect("the fixture is base64")
}

#[test]
fn a_signature_reaches_only_the_model_that_made_it() -> Result<()> {
    for next in ["mockanth/claude-two", "gateway/claude-mock"] {
        let script = Script::new()
            .turn(Turn::steps().reasoning("Let me think.").signature("made-by-one").text("First."))
            .text("Second.");
        let stage = stage(script)?;
        let lines = stage.json(["-m", "mockanth/claude-mock", "first"])?;
        let session = session_of(&lines)?;
        stage.run(["-m", next, "-s", &session, "second"])?.success()?;
        let sent = Value::from(stage.messages(1)?).to_string();
        assert!(!sent.contains("made-by-one") && !sent.contains("\"thinking\""), "{next}: {sent}");
        assert!(sent.contains("Let me think."), "{sent}");
        stage.no_problems()?;
    }
    Ok(())
}

#[test]
fn two_calls_with_one_id_both_run_and_get_ids_of_their_own() -> Result<()> {
    for model in ["mock/plain-model", "mockanth/claude-mock"] {
        let call = |file: &str| Turn::steps().tool("read", json!({"filePath": file})).id("call_1");
        let mut steps = call("a.txt").tool("read", json!({"filePath": "b.txt"})).id("call_1");
        steps = steps.finish(Finish::Tool);
        let stage = stage(Script::new().turn(steps).text("Done."))?;
        stage.project.write("a.txt", "AAA")?;
        stage.project.write("b.txt", "BBB")?;
        stage.run(["-m", model, "read both"])?.success()?;
        let sent = Value::from(stage.messages(1)?).to_string();
        assert!(sent.contains("AAA") && sent.contains("BBB"), "{sent}");
        // The scripted server checks that ids are unique and paired.
        stage.no_problems()?;
    }
    Ok(())
}

#[test]
fn many_wide_pictures_are_made_smaller() -> Result<()> {
    let calls = (0..22).map(|at| ("read", json!({"filePath": format!("shot{at}.png")})));
    let stage = stage(Script::new().turn(Turn::tools(calls)).text("Seen.").text("Again."))?;
    for at in 0..22 {
        stage.project.write(format!("shot{at}.png"), picture(WIDE_PNG))?;
    }
    let lines = stage.json(["-m", "mockanth/claude-mock", "look"])?;
    stage.run(["-m", "mockanth/claude-mock", "-s", &session_of(&lines)?, "and now?"])?.success()?;
    let sent = Value::from(stage.messages(2)?).to_string();
    assert_eq!(sent.matches("\"media_type\":\"image/png\"").count(), 22);
    stage.no_problems()
}

#[test]
fn a_picture_has_the_type_of_its_content() -> Result<()> {
    let stage = stage(Script::new().text("Seen.").text("Nothing.").text("Seen."))?;
    stage.project.write("photo.png", picture(JPEG))?;
    stage.project.write("empty.png", "")?;
    stage.run(["-m", "mockanth/claude-mock", "look", "-f", "photo.png"])?.success()?;
    stage.run(["-m", "mockanth/claude-mock", "look", "-f", "empty.png"])?.success()?;
    let sent = Value::from(stage.messages(0)?).to_string();
    assert!(sent.contains("\"media_type\":\"image/jpeg\""), "{sent}");
    let sent = Value::from(stage.messages(1)?).to_string();
    assert!(!sent.contains("\"image\"") && sent.contains("is left out: it is empty"), "{sent}");
    // The name does not say that it is a picture.
    stage.project.write("photo", picture(JPEG))?;
    stage.run(["-m", "mockanth/claude-mock", "look", "-f", "photo"])?.success()?;
    let sent = Value::from(stage.messages(2)?).to_string();
    assert!(sent.contains("\"media_type\":\"image/jpeg\""), "{sent}");
    stage.no_problems()
}

#[test]
fn a_file_that_is_too_large_for_the_configuration_is_left_out() -> Result<()> {
    let stage = stage(Script::new().text("Seen."))?;
    let mut config: Value =
        serde_json::from_slice(&std::fs::read(stage.project.home().join(".config/opencode/opencode.json"))?)?;
    config["attachment"] = json!({"image": {"auto_resize": false, "max_width": 100}});
    stage.project.write_config(&config)?;
    stage.project.write("wide.png", picture(WIDE_PNG))?;
    stage.run(["-m", "mockanth/claude-mock", "look", "-f", "wide.png"])?.success()?;
    let sent = Value::from(stage.messages(0)?).to_string();
    assert!(sent.contains("larger than the configuration allows"), "{sent}");
    stage.no_problems()
}

/// The schema of a tool in the first request.
fn schema(stage: &Stage, tool: &str) -> Result<Value> {
    let requests = stage.server.main_requests();
    let tools = requests[0].body["tools"].as_array().context("no tools")?;
    let found = tools.iter().find_map(|offered| {
        let function = offered.get("function").unwrap_or(offered);
        let schema = function.get("parameters").or_else(|| function.get("input_schema"))?;
        (function["name"] == tool).then(|| schema.clone())
    });
    found.with_context(|| format!("`{tool}` is not offered"))
}

#[test]
fn schemas_of_servers_have_the_dialect_of_moonshot() -> Result<()> {
    let stage = stage_with_server(Script::new().text("Hello."))?;
    stage.run(["-m", "mock/kimi-k2", "hello"])?.success()?;
    let schema = schema(&stage, "docs_find")?;
    assert_eq!(schema["properties"]["kind"], json!({"$ref": "#/$defs/Kind"}));
    assert!(schema["properties"]["range"]["items"].is_object(), "{schema}");
    stage.no_problems()
}

#[test]
fn variants_at_the_top_are_merged_and_checked_on_return() -> Result<()> {
    let script = Script::new()
        .tool("docs_attach", json!({"url": "https://x"}))
        .tool("docs_attach", json!({"neither": 1}))
        .text("Done.");
    let stage = stage_with_server(script)?;
    let lines = stage.json(["-m", "mockanth/claude-mock", "attach it"])?;
    let schema = schema(&stage, "docs_attach")?;
    assert!(
        schema["properties"]["content"].is_object() && schema["properties"]["url"].is_object(),
        "{schema}"
    );
    let calls = of_type(&lines, "tool_use");
    let text = |at: usize| calls[at]["part"]["state"].to_string();
    assert!(text(0).contains("got {\\\"url\\\""), "{}", text(0));
    assert!(text(1).contains("SchemaError(Missing key"), "{}", text(1));
    stage.no_problems()
}

#[test]
fn small_mistakes_of_a_model_are_corrected_for_every_tool() -> Result<()> {
    let todos = json!([{"content": "Read", "status": "pending", "priority": "high"}]);
    let raw = |name: &str, text: &str| Turn::steps().tool(name, Args::Raw(text.into())).finish(Finish::Tool);
    let script = Script::new()
        .turn(raw("TodoWrite", &json!({"todos": todos.to_string()}).to_string()))
        .turn(raw("docs_find", r#"{"LIMITS": "[1, 2,]", "deep": "true", "kind": "Page",}"#))
        .turn(raw("bash", "{\"command\": \"echo one\necho two\", \"description\": \"d\"}"))
        .text("Done.");
    let stage = stage_with_server(script)?;
    let lines = stage.json(["plan it"])?;
    let calls = of_type(&lines, "tool_use");
    for (at, call) in calls.iter().enumerate() {
        let state = &call["part"]["state"];
        assert_eq!(state["status"], "completed", "{at}: {state}");
        assert_eq!(state["metadata"]["repaired"], true, "{at}: {state}");
    }
    assert_eq!(calls[0]["part"]["tool"], "todowrite");
    assert_eq!(calls[0]["part"]["state"]["input"]["todos"], todos);
    assert_eq!(calls[1]["part"]["state"]["input"], json!({"kind": "page", "limits": [1, 2], "deep": true}));
    assert_eq!(calls[2]["part"]["state"]["output"].as_str().map(str::trim), Some("one\ntwo"));
    let sent = Value::from(stage.messages(3)?).to_string();
    assert!(!sent.contains("TodoWrite") && !sent.contains("LIMITS"), "{sent}");
    stage.no_problems()
}

/// The providers of all protocols whose arguments are text. Gemini sends them as values.
fn providers(url: &str) -> Value {
    let provider = |npm: &str, path: &str, model: &str| {
        let options = json!({"baseURL": format!("{url}{path}"), "apiKey": "k"});
        json!({"npm": npm, "options": options, "models": {model: {"tool_call": true}}})
    };
    json!({
        "chat": provider("@ai-sdk/openai-compatible", "/v1", "plain"),
        "claude": provider("@ai-sdk/anthropic", "/v1", "claude-x"),
        "responses": provider("@ai-sdk/openai", "/v1", "gpt-x"),
        "cohere": provider("@ai-sdk/cohere", "/v2", "command-x"),
        "amazon-bedrock": {
            "options": {"region": "eu-west-1", "endpoint": url},
            "models": {"claude-x": {"tool_call": true}},
        },
    })
}

#[test]
fn corrected_calls_are_recorded_and_never_sent_as_written_in_every_protocol() -> Result<()> {
    let written = [
        r#"{"odd":1}{"filePath":"a.txt"}"#,
        r#"{"filePath":"a.txt"} {"odd":1}"#,
        r#"{"filePath":"a.txt"}}}"#,
        r#"{"filePath":"a.txt",}"#,
        "```json\n{\"filePath\":\"a.txt\"}\n```",
        r#"{"FILE_PATH":"a.txt","odd":null}"#,
    ];
    for model in
        ["chat/plain", "claude/claude-x", "responses/gpt-x", "cohere/command-x", "amazon-bedrock/claude-x"]
    {
        let turn =
            |text: &&str| Turn::steps().tool("Read", Args::Raw((*text).to_owned())).finish(Finish::Tool);
        let script = written.iter().fold(Script::new().chunk_size(0), |script, text| script.turn(turn(text)));
        let stage = Stage::plain(script.text("Done."))?;
        stage.project.write("a.txt", "content\n")?;
        stage.project.write_config(&json!({"provider": providers(&stage.server.url())}))?;
        let run = stage.program(["run", "--format", "json", "-m", model, "read it"]);
        let run = run.env("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE").env("AWS_SECRET_ACCESS_KEY", "secret");
        let lines = crate::support::lines(&run.finish()?.success()?)?;
        let calls = of_type(&lines, "tool_use");
        assert_eq!(calls.len(), written.len(), "{model}");
        for (call, text) in calls.iter().zip(written) {
            let (tool, state) = (&call["part"]["tool"], &call["part"]["state"]);
            assert_eq!(
                (tool, &state["status"]),
                (&json!("read"), &json!("completed")),
                "{model} {text}: {state}"
            );
            assert_eq!(state["metadata"]["repaired"], true, "{model} {text}: {state}");
            assert_eq!(state["input"]["filePath"], "a.txt", "{model} {text}");
        }
        let requests = stage.server.main_requests();
        let last = requests.last().context("no request")?;
        let sent = ["messages", "input"].map(|key| last.body[key].to_string()).concat();
        for wrong in ["\"Read\"", "FILE_PATH", "```json", ",}", "odd\\\":1", "odd\":1", "}}}}"] {
            assert!(!sent.contains(wrong), "{model} {wrong}: {sent}");
        }
        stage.no_problems()?;
    }
    Ok(())
}

#[test]
fn several_files_are_read_in_one_call() -> Result<()> {
    let script = Script::new()
        .tool("read", json!({"filePath": ["a.txt", "b.txt", "missing.txt"]}))
        .tool("read", json!({"paths": ["a.txt", "secret.txt"]}))
        .tool("todowrite", json!({"todos": [], "explanation": "Nothing is left."}))
        .text("Done.");
    let stage = Stage::plain(script)?;
    let mut config = Project::config(&stage.server.url());
    config["permission"] = json!({"read": {"*": "allow", "*secret.txt": "deny"}});
    stage.project.write_config(&config)?;
    for name in ["a.txt", "b.txt", "secret.txt"] {
        stage.project.write(name, format!("content of {name}\n"))?;
    }
    let lines = stage.json(["read them"])?;
    let calls = of_type(&lines, "tool_use");
    let state = |at: usize| &calls[at]["part"]["state"];
    let text = state(0)["output"].as_str().unwrap_or_default();
    for expected in ["1: content of a.txt", "1: content of b.txt", "File not found:"] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    let title = state(0)["title"].as_str().unwrap_or_default();
    assert!(title.ends_with("project/a.txt and 2 more"), "{title}");
    assert_eq!(state(1)["status"], "error", "{}", state(1));
    assert!(!lines.iter().any(|line| line.to_string().contains("content of secret")), "{lines:?}");
    assert_eq!(state(2)["metadata"]["explanation"], "Nothing is left.");
    stage.no_problems()
}

#[test]
fn a_lone_closing_tag_ends_the_thoughts() -> Result<()> {
    let text = "The user wants a sum.\n</think>\n\nFour.";
    let stage = stage(Script::new().text(text).text("Four again.").chunk_size(3))?;
    let lines = stage.json(["-m", "mock/thinker", "--thinking", "what is 2 + 2?"])?;
    let texts = |kind: &str| -> Vec<String> {
        of_type(&lines, kind)
            .iter()
            .map(|line| line["part"]["text"].as_str().unwrap_or_default().trim().to_owned())
            .collect()
    };
    assert_eq!(texts("text"), ["Four."]);
    assert_eq!(texts("reasoning"), ["The user wants a sum."]);
    stage.run(["-m", "mock/thinker", "-s", &session_of(&lines)?, "sure?"])?.success()?;
    let sent = Value::from(stage.messages(1)?).to_string();
    assert!(!sent.contains("</think>"), "{sent}");
    stage.no_problems()
}

#[test]
fn a_refused_part_is_left_out_and_the_session_goes_on() -> Result<()> {
    let refusal = || {
        let message = "messages.0.content.1.image.source.base64: Could not process image";
        let error = json!({"type": "error", "error": {"type": "invalid_request_error", "message": message}});
        Reply::new(400, Content::Json(error))
    };
    let script = Script::new().turn(refusal()).text("Seen.").text("Again.");
    let stage = stage(script)?;
    stage.project.write("photo.jpg", picture(JPEG))?;
    let lines = stage.json(["-m", "mockanth/claude-mock", "look", "-f", "photo.jpg"])?;
    stage.run(["-m", "mockanth/claude-mock", "-s", &session_of(&lines)?, "and now?"])?.success()?;
    let requests = stage.server.main_requests();
    assert_eq!(requests.len(), 3, "the refused part is not sent again");
    for n in [1, 2] {
        let sent = Value::from(stage.messages(n)?).to_string();
        // The next process knows what was refused.
        assert!(!sent.contains("\"image\"") && sent.contains("is left out here"), "{n}: {sent}");
    }
    Ok(())
}

#[test]
fn a_model_that_misses_thoughts_gets_them_in_every_later_prompt() -> Result<()> {
    let message = "Missing `reasoning_content` field in the assistant message at message index 2.";
    let refusal = Reply::new(
        400,
        Content::Json(json!({"error": {"type": "invalid_request_error", "message": message}})),
    );
    let script = Script::new()
        .turn(Turn::steps().tool("read", json!({"filePath": "a.txt"})))
        .turn(refusal)
        .text("Read.")
        .text("Again.");
    let stage = stage(script)?;
    stage.project.write("a.txt", "AAA")?;
    let lines = stage.json(["-m", "mock/plain-model", "go"])?;
    stage.run(["-m", "mock/plain-model", "-s", &session_of(&lines)?, "and now?"])?.success()?;
    let requests = stage.server.main_requests();
    assert_eq!(requests.len(), 4, "the later prompt costs one request");
    for (n, expected) in [(1, false), (2, true), (3, true)] {
        let answers = stage.messages(n)?.into_iter().filter(|message| message["role"] == "assistant");
        let mut answers = answers.map(|message| message["reasoning_content"] == " ");
        assert!(answers.all(|has_thought| has_thought == expected), "{n}");
    }
    Ok(())
}
