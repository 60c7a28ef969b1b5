//! Questions to the user, over HTTP and without a user.

use anyhow::{Context, Result};
use codewright_testkit::{Script, Turn};
use serde_json::{Value, json};

use crate::support::{Stage, check_has, get, new_session, of_type, post, program, prompt, wait_until};

fn asks() -> Turn {
    let questions = json!({"questions": [{"question": "Which colour?", "header": "Colour", "options": [
        {"label": "Red", "description": "warm"}, {"label": "Blue", "description": "cold"},
    ]}]});
    Turn::steps().tool("question", questions).into()
}

/// The pending question.
fn waiting(url: &str) -> Result<Value> {
    wait_until("a question", || get(url, "/question").is_ok_and(|list| !list[0].is_null()))?;
    Ok(get(url, "/question")?[0].clone())
}

#[test]
fn a_question_outlives_its_client_and_is_answered_over_http() -> Result<()> {
    let stage = Stage::plain(Script::new().turn(asks()).text("Blue it is.").turn(asks()).text("never said"))?;
    let (_server, url) = stage.serve()?;
    let id = new_session(&url)?;
    // The client disconnects after its prompt was admitted.
    assert_eq!(post(&url, &format!("/session/{id}/prompt_async"), &prompt("go"))?.0, 204);
    let request = waiting(&url)?;
    assert_eq!((&request["sessionID"], &request["questions"][0]["header"]), (&json!(id), &json!("Colour")));
    let path = format!("/question/{}", request["id"].as_str().context("no id")?);
    assert_eq!(post(&url, &format!("{path}/reply"), &json!({"answer": []}))?.0, 400);
    assert_eq!(post(&url, &format!("{path}/reply"), &json!({"answers": [["Blue"]]}))?, (200, json!(true)));
    let (status, error) = post(&url, &format!("{path}/reply"), &json!({"answers": [["Red"]]}))?;
    assert_eq!((status, &error["_tag"]), (404, &json!("QuestionNotFoundError")));
    wait_until("the answer", || get(&url, "/session/status").is_ok_and(|all| all == json!({})))?;
    post(&url, &format!("/session/{id}/prompt_async"), &prompt("again"))?;
    let path = format!("/question/{}", waiting(&url)?["id"].as_str().context("no id")?);
    assert_eq!(post(&url, &format!("{path}/reject"), &json!({}))?, (200, json!(true)));
    wait_until("the end", || get(&url, "/session/status").is_ok_and(|all| all == json!({})))?;
    let messages = get(&url, &format!("/session/{id}/message"))?;
    let last = messages.as_array().and_then(|all| all.last()).context("no messages")?;
    let call = last["parts"].as_array().into_iter().flatten().find(|part| part["type"] == "tool");
    assert_eq!(call.context("no call")?["state"]["error"], "The user dismissed this question");
    assert_eq!(stage.server.main_requests().len(), 3);
    stage.no_problems()
}

#[test]
fn a_run_offers_no_questions_and_dismisses_those_of_other_sessions() -> Result<()> {
    let stage = Stage::plain(Script::new().text("Hello.").turn(asks()).text("never said"))?;
    stage.run(["hi"])?.success()?;
    let tools = stage.server.main_requests()[0].body["tools"].clone();
    assert!(tools.as_array().context("no tools")?.iter().all(|tool| tool["function"]["name"] != "question"));
    // A session that was not created by `run` allows questions, but there is no user.
    let (_server, url) = stage.serve()?;
    let id = new_session(&url)?;
    let args = ["run", "--attach", &url, "-s", &id, "--format", "json", "go"];
    let done = program(&stage.project, args).finish()?.success()?;
    check_has(&done.stderr, &["! question dismissed, because `run` cannot answer: Which colour?"]);
    let lines = crate::support::lines(&done)?;
    assert_eq!(of_type(&lines, "tool_use")[0]["part"]["state"]["error"], "The user dismissed this question");
    stage.no_problems()
}
