//! A turn with OpenAI's Responses protocol.

use anyhow::Result;
use codewright_testkit::{BlockingServer, Kind, Project, Protocol, Script, Turn};
use serde_json::json;

use crate::support::{check_has, keys, lines, of_type, program, session_of};

#[test]
fn a_key_and_an_address_are_enough_for_openai() -> Result<()> {
    let script = Script::new()
        .turn(
            Turn::steps()
                .reasoning("Thinking first.")
                .encrypted("sealed")
                .text("Looking.")
                .tool("read", json!({"filePath": "a.txt"}))
                .id("call_1"),
        )
        .turn(Turn::steps().reasoning("More thought.").encrypted("sealed too").text("Done now."));
    let server = BlockingServer::start(script)?;
    let project = Project::plain()?;
    project.write("a.txt", "content\n")?;
    project.write_config(&json!({
        "model": "openai/gpt-5",
        "provider": {"openai": {"options": {"baseURL": format!("{}/v1", server.url())}}},
    }))?;
    let run = program(&project, ["run", "--format", "json", "Please look"]);
    let lines = lines(&run.env("OPENAI_API_KEY", "sk-variable").finish()?.success()?)?;
    let said: Vec<_> = of_type(&lines, "text").iter().map(|line| line["part"]["text"].clone()).collect();
    assert_eq!(said, ["Looking.", "Done now."]);
    let session = session_of(&lines)?;

    let requests = server.requests();
    let main: Vec<_> = requests.iter().filter(|request| request.kind == Kind::Main).collect();
    assert_eq!(main.len(), 2);
    for request in &requests {
        assert_eq!((request.protocol, request.path.as_str()), (Protocol::Responses, "/v1/responses"));
        assert_eq!(request.headers.get("authorization"), Some("Bearer sk-variable"));
        assert_eq!(request.headers.get("session-id"), Some(session.as_str()));
    }
    for request in &main {
        let body = &request.body;
        // Without an output limit, because the model's own limit applies.
        assert_eq!(
            keys(body),
            "include input model prompt_cache_key reasoning store stream tool_choice tools"
        );
        assert_eq!((&body["model"], &body["store"]), (&json!("gpt-5"), &json!(false)));
        assert_eq!(body["include"], json!(["reasoning.encrypted_content"]));
        assert_eq!(body["prompt_cache_key"], session.as_str());
        assert_eq!(body["reasoning"], json!({"effort": "medium", "summary": "auto"}));
        assert_eq!((&body["tool_choice"], &body["stream"]), (&json!("auto"), &json!(true)));
        assert_eq!(body["input"][0]["role"], "developer");
        let user = json!({"role": "user", "content": [{"type": "input_text", "text": "Please look"}]});
        assert_eq!(body["input"][1], user);
    }
    let input = &main[1].body["input"];
    let thought = [json!({"type": "summary_text", "text": "Thinking first."})];
    assert_eq!(input[2], json!({"type": "reasoning", "encrypted_content": "sealed", "summary": thought}));
    assert_eq!(
        input[4],
        json!({"type": "function_call", "call_id": "call_1", "name": "read", "arguments": "{\"filePath\":\"a.txt\"}"})
    );
    assert_eq!((&input[5]["type"], &input[5]["call_id"]), (&json!("function_call_output"), &json!("call_1")));
    check_has(input[5]["output"].as_str().unwrap_or_default(), &["1: content"]);
    assert_eq!(server.problems(), [""; 0]);
    Ok(())
}

#[test]
fn a_custom_provider_gets_an_output_limit() -> Result<()> {
    let server = BlockingServer::start(Script::new().text("Done."))?;
    let project = Project::plain()?;
    project.write_config(&json!({
        "model": "own/plain-model",
        "provider": {"own": {
            "npm": "@ai-sdk/openai",
            "options": {"baseURL": format!("{}/v1", server.url()), "apiKey": "sk-own"},
            "models": {"plain-model": {"limit": {"context": 200_000, "output": 32_000}}},
        }},
    }))?;
    program(&project, ["run", "hi"]).finish()?.success()?;
    let request = server.main_requests().pop().unwrap();
    let body = &request.body;
    assert_eq!(request.protocol, Protocol::Responses);
    assert_eq!(keys(body), "input max_output_tokens model prompt_cache_key store stream tool_choice tools");
    assert_eq!((&body["max_output_tokens"], &body["store"]), (&json!(32_000), &json!(false)));
    assert_eq!(body["input"][0]["role"], "system");
    assert_eq!((request.headers.get("session-id"), request.headers.get("originator")), (None, None));
    assert_eq!(server.problems(), [""; 0]);
    Ok(())
}

#[test]
fn a_model_trained_on_patches_gets_only_the_patch_tool() -> Result<()> {
    let patch = "*** Begin Patch\n*** Add File: src/added.txt\n+hello\n*** Update File: src/util.py\n@@ def add(a, b):\n\
                 -    return a + b\n+    return b + a\n*** Delete File: README.md\n*** End Patch";
    let unfit = patch.replace("return a + b", "return nothing");
    let script = Script::new()
        .tool("apply_patch", json!({"patchText": unfit}))
        .tool("apply_patch", json!({"patchText": patch}))
        .text("patched");
    let server = BlockingServer::start(script)?;
    let project = Project::git()?;
    project.write("README.md", "# Demo\n")?;
    project.write("src/util.py", "def add(a, b):\n    return a + b\n")?;
    project.write_config(&json!({
        "model": "openai/gpt-5",
        "provider": {"openai": {"options": {"baseURL": format!("{}/v1", server.url()), "apiKey": "sk-x"}}},
    }))?;
    let lines = lines(&program(&project, ["run", "--format", "json", "Patch it"]).finish()?.success()?)?;
    let calls: Vec<_> =
        of_type(&lines, "tool_use").iter().map(|line| line["part"]["state"].clone()).collect();
    assert_eq!(calls[0]["status"], "error");
    check_has(calls[0]["error"].as_str().unwrap_or_default(), &["Failed to find expected lines in"]);
    let done = "Success. Updated the following files:\nA src/added.txt\nM src/util.py\nD README.md";
    assert_eq!((&calls[1]["status"], &calls[1]["title"]), (&json!("completed"), &json!(done)));
    assert_eq!(project.read("src/util.py")?, "def add(a, b):\n    return b + a\n");
    assert_eq!(project.read("src/added.txt")?, "hello\n");
    assert!(!project.path("README.md").exists());
    let requests = server.main_requests();
    let tools: Vec<_> =
        requests[0].body["tools"].as_array().into_iter().flatten().map(|tool| tool["name"].clone()).collect();
    assert!(tools.contains(&json!("apply_patch")), "{tools:?}");
    assert!(!tools.contains(&json!("edit")) && !tools.contains(&json!("write")), "{tools:?}");
    assert_eq!(server.problems(), [""; 0]);
    Ok(())
}
