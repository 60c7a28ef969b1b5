//! The search tool that replaces the schemas of many tools.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use anyhow::{Context, Result};
use codewright_testkit::{Script, Turn};
use serde_json::{Value, json};

use super::{Serving, calls, configure, local, offered, stage};
use crate::support::{Stage, check_has, data, delete, get, new_session, post, prompt, wait_until};

/// A call of the search tool that calls another tool.
fn through(tool: &str, arguments: Value) -> (&'static str, Value) {
    ("mcp", json!({"tool": tool, "arguments": arguments}))
}

fn search(words: &str) -> (&'static str, Value) {
    ("mcp", json!({"search": words}))
}

/// The tools and the system text of a request, as bytes.
fn beginning(stage: &Stage, at: usize) -> (String, String) {
    let body = &stage.server.main_requests()[at].body;
    (body["tools"].to_string(), body["messages"][0].to_string())
}

/// The catalogue in the last request.
fn catalogue(stage: &Stage) -> Result<String> {
    let request = stage.server.main_requests().pop().context("no request")?;
    let tools = request.body["tools"].as_array().cloned().unwrap_or_default();
    let tool = tools.iter().find(|tool| tool["function"]["name"] == "mcp").context("no search tool")?;
    Ok(tool["function"]["description"].as_str().unwrap_or_default().to_owned())
}

#[test]
fn many_tools_are_searched_and_called_through_one() -> Result<()> {
    let script = calls(&[
        search("the tool with number 17"),
        through("s_echo", json!({"text": "x"})),
        through("s_echo", json!({"texts": "x"})),
        through("s_nothing", json!({})),
        through("t_fail", json!({})),
        ("s_echo", json!({"text": "directly"})),
        search(""),
    ]);
    let stage = stage(script, json!({"s": local(&["tools=200"]), "t": local(&[])}), json!({}))?;
    let serving = Serving::new(&stage)?;
    let found = serving.call()?;
    assert_eq!(found["tool"], "mcp");
    assert_eq!(found["state"]["title"], "MCP tools: the tool with number 17");
    let output = found["state"]["output"].as_str().context("no output")?;
    check_has(
        output,
        &["<tool name=\"s_many-17\">", "Arguments: {\"type\":\"object\"", "The first value of it"],
    );
    // The record is that of the inner tool, and says how it was called.
    let echo = serving.call()?;
    assert_eq!((&echo["tool"], &echo["state"]["input"]), (&json!("s_echo"), &json!({"text": "x"})));
    assert_eq!(echo["state"]["metadata"], json!({"truncated": false, "through": "mcp"}));
    assert_eq!(echo["state"]["output"], "Echo: x");
    let invalid = serving.call()?;
    let error = invalid["state"]["error"].as_str().context("no error")?;
    check_has(error, &["Missing key\n  at [\"text\"]", "<tool name=\"s_echo\">", "\"required\":[\"text\"]"]);
    let missing = serving.call()?["state"]["error"].to_string();
    check_has(&missing, &["There is no tool named `s_nothing`."]);
    let failed = serving.call()?;
    assert_eq!((&failed["tool"], &failed["state"]["error"]), (&json!("t_fail"), &json!("It does not work")));
    assert_eq!(serving.call()?["state"]["output"], "Echo: directly");
    check_has(&serving.call()?["state"]["output"].to_string(), &["s_ (220): ", "t_ (20): ", "many-199"]);
    let names = offered(&stage.server.main_requests()[0].body);
    assert!(
        names.contains(&"mcp".to_owned()) && names.contains(&"read_mcp_resource".to_owned()),
        "{names:?}"
    );
    assert!(!names.iter().any(|name| name.starts_with("s_") || name.starts_with("t_")), "{names:?}");
    // Later requests repeat what the model wrote.
    let last = stage.server.main_requests().pop().context("no request")?.body["messages"].to_string();
    check_has(&last, &[r#"{\"tool\":\"s_echo\",\"arguments\":{\"text\":\"x\"}}"#, r#""name":"mcp""#]);
    stage.no_problems()
}

#[test]
fn the_first_request_grows_by_at_most_12_kb() -> Result<()> {
    let size = |mcp: Value| -> Result<usize> {
        let stage = stage(Script::new().text("Done."), mcp, json!({}))?;
        stage.run(["hi"])?.success()?;
        Ok(stage.server.main_requests()[0].body.to_string().len())
    };
    // Each has 18 tools of its own.
    let servers: serde_json::Map<_, _> =
        (0..5).map(|number| (format!("server-{number}"), local(&["tools=22"]))).collect();
    let (none, all) = (size(json!({}))?, size(Value::Object(servers))?);
    assert!(all > none && all - none <= 12_000, "{} bytes", all - none);
    Ok(())
}

#[test]
fn a_budget_can_be_changed_and_switched_off() -> Result<()> {
    let has_search = |options: &[&str], more: Value| -> Result<bool> {
        let stage = stage(Script::new().text("Done."), json!({"s": local(options)}), more)?;
        stage.run(["hi"])?.success()?;
        let names = offered(&stage.server.main_requests()[0].body);
        let searches = names.contains(&"mcp".to_owned());
        assert_eq!(names.contains(&"s_echo".to_owned()), !searches, "{names:?}");
        Ok(searches)
    };
    assert!(!has_search(&[], json!({}))?);
    assert!(has_search(&[], json!({"mcp_tool_budget": 0}))?);
    assert!(!has_search(&["tools=200"], json!({"mcp_tool_budget": false}))?);
    Ok(())
}

#[test]
fn rules_hold_for_the_inner_tool() -> Result<()> {
    let more = json!({
        "mcp_tool_budget": 0,
        "permission": {"s_wr*": "deny", "s_echo": "ask"},
        "agent": {"build": {"tools": {"s_ha*": false}}},
    });
    let path = json!({"path": "/nonexistent/file"});
    let script = calls(&[
        search("write a file"),
        through("s_write", path),
        through("s_hang", json!({})),
        search("s_hang"),
    ])
    .turn(Turn::steps().tool("mcp", through("s_echo", json!({"text": "x"})).1))
    .text("Done.");
    let stage = stage(script, json!({"s": local(&[])}), more)?;
    let serving = Serving::new(&stage)?;
    let found = serving.call()?["state"]["output"].to_string();
    assert!(!found.contains("s_write"), "{found}");
    for name in ["s_write", "s_hang"] {
        let call = serving.call()?;
        assert_eq!(call["tool"], "mcp");
        check_has(&call["state"]["error"].to_string(), &[&format!("There is no tool named `{name}`.")]);
    }
    let found = serving.call()?["state"]["output"].to_string();
    assert!(!found.contains("name=\\\"s_hang"), "{found}");
    let catalogue = catalogue(&stage)?;
    assert!(catalogue.contains("s_ (18): ") && catalogue.contains("echo"), "{catalogue}");
    assert!(!catalogue.contains("write") && !catalogue.contains("hang"), "{catalogue}");
    // A request for permission names the inner tool.
    let url = &serving.url;
    post(url, &format!("/session/{}/prompt_async", serving.id), &prompt("go"))?;
    wait_until("a request", || get(url, "/permission").is_ok_and(|list| !list[0].is_null()))?;
    let request = get(url, "/permission")?[0].clone();
    assert_eq!(request["permission"], "s_echo");
    assert_eq!(request["metadata"]["input"], json!({"text": "x"}));
    let id = request["id"].as_str().context("no id")?;
    assert_eq!(post(url, &format!("/permission/{id}/reply"), &json!({"reply": "once"}))?.0, 200);
    wait_until("the end", || get(url, "/session/status").is_ok_and(|all| all == json!({})))?;
    let messages = get(url, &format!("/session/{}/message", serving.id))?.to_string();
    check_has(&messages, &["Echo: x"]);
    stage.no_problems()
}

#[test]
fn plan_mode_and_repeated_calls_ask_about_the_inner_tool() -> Result<()> {
    let servers = json!({"s": local(&[])});
    let more = || json!({"mcp_tool_budget": 0});
    let write = || through("s_write", json!({"path": "/nonexistent/file"}));
    let planned = stage(calls(&[write()]), servers.clone(), more())?;
    let done = planned.run(["--agent", "plan", "hi"])?;
    check_has(&done.stderr, &["permission requested: ", "s_write"]);
    // The third equal call of a step.
    let echo = || through("s_echo", json!({"text": "x"})).1;
    let script =
        Script::new().turn(Turn::steps().tool("mcp", echo()).tool("mcp", echo()).tool("mcp", echo()));
    let repeated = stage(script.text("Done."), servers, more())?;
    let done = repeated.run(["hi"])?;
    check_has(&done.stderr, &["permission requested: doom_loop (s_echo)"]);
    Ok(())
}

#[test]
fn the_beginning_of_requests_stays_the_same() -> Result<()> {
    let mut script = vec![
        through("s_echo", json!({"text": "first"})),
        through("s_echo", json!({"text": "gone"})),
        through("s_echo", json!({"text": "back"})),
        through("s_echo", json!({"text": "resumed"})),
        through("s_grow", json!({})),
    ];
    // The list is read again a moment after the change, so the new tool is called until it exists.
    script.extend((0..200).map(|_| through("s_grown", json!({}))));
    let stage = stage(calls(&script), json!({"s": local(&[])}), json!({"mcp_tool_budget": 0}))?;
    let serving = Serving::new(&stage)?;
    let url = serving.url.clone();
    serving.call()?;
    post(&url, "/mcp/s/disconnect", &json!({}))?;
    check_has(&serving.call()?["state"]["error"].to_string(), &["The server of `s_echo` is not connected"]);
    post(&url, "/mcp/s/connect", &json!({}))?;
    assert_eq!(serving.call()?["state"]["output"], "Echo: back");
    // Another process resumes the session.
    drop(serving.server);
    let (server, url) = stage.serve()?;
    let serving = Serving { server, url, id: serving.id };
    assert_eq!(serving.call()?["state"]["output"], "Echo: resumed");
    serving.call()?;
    wait_until("the new tool", || {
        serving.call().is_ok_and(|call| call["state"]["output"] == "Called grown with {}")
    })?;
    let first = beginning(&stage, 0);
    for at in 1..stage.server.main_requests().len() {
        assert_eq!(beginning(&stage, at), first, "request {at}");
    }
    stage.no_problems()
}

#[test]
fn a_resumed_session_keeps_its_catalogue_when_a_server_changes() -> Result<()> {
    let script = calls(&[
        through("s_echo", json!({"text": "first"})),
        through("s_echo", json!({"text": "second"})),
        through("s_many-5", json!({"first": "a", "second": "b"})),
        through("t_echo", json!({"text": "gone"})),
    ]);
    let more = || json!({"mcp_tool_budget": 0});
    let stage = stage(script, json!({"s": local(&["tools=40"]), "t": local(&[])}), more())?;
    let serving = Serving::new(&stage)?;
    assert_eq!(serving.call()?["state"]["output"], "Echo: first");
    drop(serving.server);
    // One server has lost tools and offers the others in another order; the other server is gone.
    configure(&stage, json!({"s": local(&["tools=20", "reverse=1"])}), more())?;
    let (server, url) = stage.serve()?;
    let serving = Serving { server, url, id: serving.id };
    assert_eq!(serving.call()?["state"]["output"], "Echo: second");
    check_has(&serving.call()?["state"]["output"].to_string(), &["Called many-5 with"]);
    check_has(&serving.call()?["state"]["error"].to_string(), &["`t_echo`"]);
    let first = beginning(&stage, 0);
    for at in 1..stage.server.main_requests().len() {
        assert_eq!(beginning(&stage, at), first, "request {at}");
    }
    // Another session gets what exists now, and a deleted session leaves nothing behind.
    let file = data(&stage.project).join("mcp").join(format!("{}.json", serving.id));
    assert_eq!(fs::metadata(&file)?.permissions().mode() & 0o777, 0o600);
    delete(&serving.url, &format!("/session/{}", serving.id))?;
    assert!(!file.exists());
    let other = Serving { id: new_session(&serving.url)?, ..serving };
    post(&other.url, &format!("/session/{}/message", other.id), &prompt("go"))?;
    assert!(!catalogue(&stage)?.contains("t_ ("));
    stage.no_problems()
}
