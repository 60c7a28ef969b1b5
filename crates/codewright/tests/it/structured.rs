//! Structured output over HTTP.

use anyhow::Result;
use codewright_testkit::{Project, Protocol, Script};
use serde_json::json;

use crate::support::{Stage, new_session, post};

#[test]
fn structured_output_works_in_every_protocol() -> Result<()> {
    for (model, protocol) in [
        ("mock/plain-model", Protocol::Chat),
        ("mockanth/claude-mock", Protocol::Anthropic),
        ("openai/gpt-5", Protocol::Responses),
    ] {
        let script = Script::new()
            .tool("StructuredOutput", json!({ "answer": "many" }))
            .tool("StructuredOutput", json!({ "answer": 42 }));
        let stage = Stage::plain(script)?;
        let mut config = Project::config(&stage.server.url());
        let options = json!({ "baseURL": format!("{}/v1", stage.server.url()), "apiKey": "sk-mock" });
        config["provider"]["openai"] = json!({ "options": options });
        config["provider"]["mockanth"]["models"]["claude-mock"]["reasoning"] = true.into();
        config["model"] = model.into();
        stage.project.write_config(&config)?;
        let (server, url) = stage.serve()?;
        let id = new_session(&url)?;
        let schema = json!({ "type": "object", "properties": { "answer": { "type": "number" } }, "required": ["answer"] });
        let body = json!({
            "parts": [{ "type": "text", "text": "give" }],
            "format": { "type": "json_schema", "schema": schema, "retryCount": 2 },
        });
        let (status, answer) = post(&url, &format!("/session/{id}/message"), &body)?;
        assert_eq!(status, 200, "{answer}");
        assert_eq!(answer["info"]["structured"], json!({ "answer": 42 }), "{model}: {answer}");
        assert_eq!(answer["info"]["finish"], "tool-calls");
        let call = &answer["parts"][1];
        assert_eq!(
            (&call["tool"], &call["state"]["status"]),
            (&json!("StructuredOutput"), &json!("completed"))
        );
        let requests = stage.server.main_requests();
        assert_eq!((requests.len(), requests[0].protocol), (2, protocol));
        stage.no_problems()?;
        server.terminate()?;
        server.finish()?.success()?;
    }
    Ok(())
}
