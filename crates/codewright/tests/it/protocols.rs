//! Complete turns with the protocols of cloud providers: a text, a call, its result, and a second prompt.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;

use anyhow::{Context, Result};
use codewright_testkit::{BlockingServer, Kind, Project, Protocol, Recorded, Run, Script, Turn, Usage};
use serde_json::{Value, json};

use crate::support::{check_has, lines, of_type, program};

const THOUGHT: &str = "Thinking first.";
const USAGE: Usage = Usage { input: 70, output: 30, cache_read: 500, cache_write: 40, reasoning: 0 };

/// A provider on a stage: its configuration and environment.
struct Provider {
    model: &'static str,
    protocol: Protocol,
    /// The field of the conversation.
    history: &'static str,
    config: Value,
    variables: &'static [(&'static str, &'static str)],
    /// The tokens that were written to the cache, if the protocol reports them.
    cache_write: u64,
}

/// Plays a turn with a call and then a second prompt, and checks the common properties. Returns the
/// requests of the conversation.
fn play(provider: &Provider, server: BlockingServer) -> Result<Vec<Recorded>> {
    let project = Project::plain()?;
    project.write("a.txt", "content\n")?;
    let (id, model) = provider.model.split_once('/').context("a model has a provider")?;
    let mut config = provider.config.clone();
    config["models"] = json!({ model: {
        "reasoning": true, "attachment": true, "tool_call": true, "temperature": true,
        "limit": { "context": 200_000, "output": 32_000 },
    } });
    project.write_config(&json!({ "model": provider.model, "provider": { id: config } }))?;
    let run = |args: &[&str]| -> Result<Run> {
        let run = program(&project, ["run", "--format", "json"].into_iter().chain(args.iter().copied()));
        Ok(provider.variables.iter().fold(run, |run, (name, value)| run.env(*name, *value)))
    };
    let first = lines(&run(&["--thinking", "Please look"])?.finish()?.success()?)?;
    let said: Vec<_> = of_type(&first, "text").iter().map(|line| line["part"]["text"].clone()).collect();
    assert_eq!(said, ["Looking.", "Done now."]);
    assert_eq!(of_type(&first, "reasoning")[0]["part"]["text"], THOUGHT);
    let call = &of_type(&first, "tool_use")[0]["part"];
    check_has(call["state"]["output"].as_str().unwrap_or_default(), &["1: content"]);
    let tokens = &of_type(&first, "step_finish")[0]["part"]["tokens"];
    assert_eq!((&tokens["input"], &tokens["output"]), (&json!(70), &json!(30)), "{tokens}");
    assert_eq!(tokens["cache"], json!({ "read": 500, "write": provider.cache_write }), "{tokens}");
    run(&["-c", "Once more"])?.finish()?.success()?;

    let requests = server.requests();
    assert!(requests.iter().all(|request| request.protocol == provider.protocol), "{requests:?}");
    assert!(requests.iter().any(|request| request.kind == Kind::Title));
    let main: Vec<_> = requests.into_iter().filter(|request| request.kind == Kind::Main).collect();
    assert_eq!(main.len(), 3);
    let history = |request: &Recorded| unmarked(&request.body[provider.history]).to_string();
    for pair in main.windows(2) {
        let (before, after) = (history(&pair[0]), history(&pair[1]));
        let shared = before.strip_suffix(']').context("a list")?;
        assert!(after.starts_with(shared), "{before}\nis not how this begins:\n{after}");
    }
    assert!(history(&main[2]).contains("Once more") && !history(&main[1]).contains("Once more"));
    assert_eq!(server.problems(), [""; 0]);
    Ok(main)
}

fn script() -> Script {
    Script::new()
        .turn(
            Turn::steps()
                .reasoning(THOUGHT)
                .signature("c2lnbmVk")
                .text("Looking.")
                .tool("read", json!({"filePath": "a.txt"}))
                .id("call_1")
                .usage(USAGE),
        )
        .turn(Turn::steps().reasoning("More thought.").text("Done now."))
        .text("Again.")
}

/// Removes the cache markers, whose positions change.
fn unmarked(value: &Value) -> Value {
    match value {
        Value::Array(items) => {
            items.iter().filter(|item| item.get("cachePoint").is_none()).map(unmarked).collect()
        }
        Value::Object(fields) => {
            let kept = fields.iter().filter(|(name, _)| *name != "cache_control");
            kept.map(|(name, value)| (name.clone(), unmarked(value))).collect()
        }
        other => other.clone(),
    }
}

#[test]
fn bedrock_requests_are_signed() -> Result<()> {
    const MODEL: &str = "amazon-bedrock/anthropic.claude-sonnet-4-5-20250929-v1:0";
    let server = BlockingServer::start(script())?;
    let provider = Provider {
        model: MODEL,
        protocol: Protocol::Bedrock,
        history: "messages",
        config: json!({ "options": { "region": "eu-west-1", "endpoint": server.url() } }),
        variables: &[
            ("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE"),
            ("AWS_SECRET_ACCESS_KEY", "secret"),
            ("AWS_SESSION_TOKEN", "token"),
        ],
        cache_write: 40,
    };
    let requests = play(&provider, server)?;
    for request in &requests {
        let path = "/model/eu.anthropic.claude-sonnet-4-5-20250929-v1%3A0/converse-stream";
        assert_eq!(request.path, path);
        let signed = request.headers.get("authorization").unwrap_or_default();
        check_has(signed, &["Credential=AKIDEXAMPLE/", "/eu-west-1/bedrock/aws4_request"]);
        assert_eq!(request.headers.get("x-amz-security-token"), Some("token"));
        assert_eq!(request.body["inferenceConfig"]["maxTokens"], 32_000);
    }
    let body = &requests[1].body;
    let thought = json!({"reasoningText": {"text": THOUGHT, "signature": "c2lnbmVk"}});
    let expected = json!([
        {"reasoningContent": thought},
        {"text": "Looking."},
        {"toolUse": {"toolUseId": "tooluse_1", "name": "read", "input": {"filePath": "a.txt"}}},
    ]);
    assert_eq!(unmarked(&body["messages"][1]["content"]), expected);
    let result = &body["messages"][2]["content"][0]["toolResult"];
    assert_eq!((&result["toolUseId"], &result["status"]), (&json!("tooluse_1"), &json!("success")));
    check_has(result["content"][0]["text"].as_str().unwrap_or_default(), &["1: content"]);
    Ok(())
}

#[test]
fn cohere_gets_its_reasoning_back() -> Result<()> {
    let server = BlockingServer::start(script())?;
    let provider = Provider {
        model: "cohere/command-a-mock",
        protocol: Protocol::Cohere,
        history: "messages",
        config: json!({ "options": { "baseURL": format!("{}/v2", server.url()) } }),
        variables: &[("COHERE_API_KEY", "co-key")],
        cache_write: 0,
    };
    let requests = play(&provider, server)?;
    for request in &requests {
        assert_eq!(request.path, "/v2/chat");
        assert_eq!(request.headers.get("authorization"), Some("Bearer co-key"));
        assert_eq!(request.body["model"], "command-a-mock");
    }
    let messages = &requests[1].body["messages"];
    let call = json!({"id": "call_1", "type": "function",
        "function": {"name": "read", "arguments": "{\"filePath\":\"a.txt\"}"}});
    let content = json!([{"type": "thinking", "thinking": THOUGHT}, {"type": "text", "text": "Looking."}]);
    assert_eq!(messages[2], json!({"role": "assistant", "content": content, "tool_calls": [call]}));
    assert_eq!((&messages[3]["role"], &messages[3]["tool_call_id"]), (&json!("tool"), &json!("call_1")));
    check_has(messages[3]["content"].as_str().unwrap_or_default(), &["1: content"]);
    Ok(())
}

#[test]
fn gemini_gets_its_signatures_back() -> Result<()> {
    let server = BlockingServer::start(script())?;
    let provider = Provider {
        model: "google/gemini-3-mock",
        protocol: Protocol::Gemini,
        history: "contents",
        config: json!({ "options": { "baseURL": format!("{}/v1beta", server.url()) } }),
        variables: &[("GOOGLE_GENERATIVE_AI_API_KEY", "g-key")],
        cache_write: 0,
    };
    let requests = play(&provider, server)?;
    for request in &requests {
        assert_eq!(request.path, "/v1beta/models/gemini-3-mock:streamGenerateContent");
        assert_eq!(request.headers.get("x-goog-api-key"), Some("g-key"));
    }
    let contents = &requests[1].body["contents"];
    let expected = json!([
        {"text": THOUGHT, "thought": true},
        {"text": "Looking."},
        {"functionCall": {"name": "read", "args": {"filePath": "a.txt"}}, "thoughtSignature": "c2lnbmF0dXJl"},
    ]);
    assert_eq!(contents[1]["parts"], expected);
    let answer = &contents[2]["parts"][0]["functionResponse"];
    assert_eq!(answer["name"], "read");
    check_has(answer["response"]["content"].as_str().unwrap_or_default(), &["1: content"]);
    Ok(())
}

/// A server that returns a token for every request, until the test ends.
fn tokens() -> Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let url = format!("http://{}/token", listener.local_addr()?);
    std::thread::spawn(move || {
        for socket in listener.incoming() {
            let Ok(mut socket) = socket else { return };
            let (mut request, mut piece) = (Vec::new(), [0; 1024]);
            while !request.ends_with(b"refresh_token=r") {
                match socket.read(&mut piece) {
                    Ok(read) if read > 0 => request.extend_from_slice(&piece[..read]),
                    _ => break,
                }
            }
            let body = r#"{"access_token":"tok","expires_in":3600}"#;
            let head = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: application/json";
            let answer = format!("{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len());
            // The client may have ended.
            drop(socket.write_all(answer.as_bytes()));
        }
    });
    Ok(url)
}

#[test]
fn claude_on_vertex_requests_have_a_token() -> Result<()> {
    let keys = Project::plain()?;
    let file = json!({
        "type": "authorized_user", "client_id": "c", "client_secret": "s", "refresh_token": "r",
        "token_uri": tokens()?,
    });
    let key = keys.write("adc.json", file.to_string())?;
    let server = BlockingServer::start(script())?;
    let place = "/v1/projects/p/locations/global/publishers/anthropic/models";
    let provider = Provider {
        model: "google-vertex-anthropic/claude-sonnet-4-5@20250929",
        protocol: Protocol::Vertex,
        history: "messages",
        config: json!({ "options": {
            "baseURL": format!("{}{place}", server.url()),
            "project": "p",
            "googleAuthOptions": { "keyFilename": key },
        } }),
        variables: &[],
        cache_write: 40,
    };
    let requests = play(&provider, server)?;
    for request in &requests {
        assert_eq!(request.path, format!("{place}/claude-sonnet-4-5@20250929:streamRawPredict"));
        assert_eq!(request.headers.get("authorization"), Some("Bearer tok"));
        assert_eq!(request.body["anthropic_version"], "vertex-2023-10-16");
    }
    let expected = json!([
        {"type": "thinking", "thinking": THOUGHT, "signature": "c2lnbmVk"},
        {"type": "text", "text": "Looking."},
        {"type": "tool_use", "id": "toolu_1", "name": "read", "input": {"filePath": "a.txt"}},
    ]);
    assert_eq!(unmarked(&requests[1].body["messages"][1]["content"]), expected);
    Ok(())
}

/// The body of the request of one prompt, with these options for the model.
fn request_body(model: &str, (provider, options): (Value, Value), args: &[&str]) -> Result<Value> {
    let server = BlockingServer::start(Script::new().text("Done."))?;
    let project = Project::plain()?;
    let (id, name) = model.split_once('/').context("a model has a provider")?;
    let mut config = provider;
    for key in ["baseURL", "endpoint"] {
        if let Some(path) = config["options"][key].as_str().map(str::to_owned) {
            config["options"][key] = format!("{}{path}", server.url()).into();
        }
    }
    config["models"] = json!({ name: { "options": options } });
    project.write_config(&json!({ "model": model, "provider": { id: config } }))?;
    program(&project, ["run", "hi"].into_iter().chain(args.iter().copied())).finish()?.success()?;
    assert_eq!(server.problems(), [""; 0]);
    let request = server.main_requests().pop().context("no request")?;
    Ok((*request.body).clone())
}

fn bedrock() -> Value {
    json!({ "options": { "endpoint": "", "apiKey": "k" } })
}

fn gemini() -> Value {
    json!({ "options": { "baseURL": "/v1beta", "apiKey": "k" } })
}

#[test]
fn thinking_reaches_bedrock_by_variant_and_by_option() -> Result<()> {
    const CLAUDE: &str = "amazon-bedrock/anthropic.claude-sonnet-4-5-20250929-v1:0";
    let body = request_body(CLAUDE, (bedrock(), json!({})), &["--variant", "high"])?;
    let thinking = json!({ "type": "enabled", "budget_tokens": 16_000 });
    assert_eq!(body["additionalModelRequestFields"], json!({ "thinking": thinking }));
    // Reasoning counts as output there.
    assert_eq!(body["inferenceConfig"], json!({ "maxTokens": 48_000 }));
    let written = json!({ "reasoningConfig": { "type": "enabled", "budgetTokens": 2_000 } });
    let body = request_body(CLAUDE, (bedrock(), written), &[])?;
    let thinking = json!({ "type": "enabled", "budget_tokens": 2_000 });
    assert_eq!(body["additionalModelRequestFields"], json!({ "thinking": thinking }));
    let nova = json!({ "reasoningConfig": { "type": "enabled", "maxReasoningEffort": "low" } });
    let body = request_body("amazon-bedrock/amazon.nova-2-lite-v1:0", (bedrock(), nova.clone()), &[])?;
    assert_eq!(body["additionalModelRequestFields"], nova);
    Ok(())
}

#[test]
fn thinking_reaches_gemini_by_variant_and_by_option() -> Result<()> {
    let thinking = |body: &Value| body["generationConfig"]["thinkingConfig"].clone();
    let body = request_body("google/gemini-2.5-pro", (gemini(), json!({})), &["--variant", "high"])?;
    assert_eq!(thinking(&body), json!({ "includeThoughts": true, "thinkingBudget": 16_000 }));
    let body = request_body("google/gemini-3.1-pro-preview", (gemini(), json!({})), &["--variant", "low"])?;
    assert_eq!(thinking(&body), json!({ "includeThoughts": true, "thinkingLevel": "low" }));
    let written = json!({ "thinkingConfig": { "thinkingBudget": 512, "includeThoughts": false } });
    let body = request_body("google/gemini-2.5-pro", (gemini(), written.clone()), &[])?;
    assert_eq!(thinking(&body), written["thinkingConfig"]);
    Ok(())
}

#[test]
fn reasoning_is_returned_in_the_configured_field() -> Result<()> {
    for (interleaved, field) in [
        (json!({ "field": "reasoning_text" }), "reasoning_text"),
        (json!("reasoning"), "reasoning"),
        (json!(true), "reasoning_content"),
        (json!(false), "reasoning_content"),
    ] {
        let script = Script::new().turn(Turn::steps().reasoning(THOUGHT).text("Hello.")).text("Again.");
        let server = BlockingServer::start(script)?;
        let project = Project::plain()?;
        let mut config = Project::config(&server.url());
        config["provider"]["mock"]["models"]["plain-model"]["interleaved"] = interleaved;
        project.write_config(&config)?;
        program(&project, ["run", "hi"]).finish()?.success()?;
        program(&project, ["run", "-c", "once more"]).finish()?.success()?;
        let request = server.main_requests().pop().context("no request")?;
        let answer = json!({ "role": "assistant", "content": "Hello.", field: THOUGHT });
        assert_eq!(request.body["messages"][2], answer);
    }
    let project = Project::plain()?;
    let mut config = Project::config("http://127.0.0.1:9");
    config["provider"]["mock"]["models"]["plain-model"]["interleaved"] = json!({ "field": 7 });
    project.write_config(&config)?;
    let done = program(&project, ["run", "hi"]).finish()?;
    assert_eq!(done.code, Some(1));
    check_has(&done.stderr, &["models.plain-model.interleaved.field"]);
    Ok(())
}
