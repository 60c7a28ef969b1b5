//! Quotas of users and teams.

use anyhow::{Context as _, Result};
use codewright_testkit::{Script, Steps, Turn, Usage};
use serde_json::{Value, json};

use super::Team;
use crate::support::{prompt, wait_until};

/// An answer that uses 150 tokens.
fn answer(text: &str) -> Steps {
    Turn::text(text).usage(Usage { input: 100, output: 50, ..Usage::default() })
}

#[test]
fn tokens_of_a_day_are_counted_for_the_user_and_the_team_and_limit_both() -> Result<()> {
    let script = Script::new().turn(answer("one")).turn(answer("two")).turn(answer("three"));
    let team = Team::with(script, |config| {
        config["auth"]["quotas"] = json!({"user": {"tokens": 300}, "teams": {"core": {"tokens": 1000}}});
    })?;
    let session = team.session("alice", "t")?;
    assert_eq!(team.prompt("alice", &session, "a")?, 200);
    let usage = || team.json("alice", "GET", "/users/usage", &Value::Null).unwrap();
    assert_eq!(usage()["user"]["used"]["tokens"], 150, "{}", usage());
    assert_eq!(usage()["teams"]["core"]["used"]["tokens"], 150);
    assert_eq!(usage()["user"]["quota"], json!({"tokens": 300, "cost": null, "sessions": null}));
    // A fork copies answers that were counted before.
    let fork = team.json("alice", "POST", &format!("/session/{session}/fork"), &json!({}))?;
    assert_eq!(usage()["user"]["used"]["tokens"], 150);
    assert_eq!(team.prompt("alice", &session, "b")?, 200);
    for id in [session.as_str(), fork["id"].as_str().context("no id")?] {
        let (status, text) = team.call("alice", "POST", &format!("/session/{id}/message"), &prompt("c"))?;
        assert_eq!(status, 429, "{text}");
        crate::support::check_has(&text, &["retry-after: ", "has used its quota of 300 tokens a day"]);
    }
    // Deleting a session gives nothing back.
    assert_eq!(team.status("alice", "DELETE", &format!("/session/{session}"), &Value::Null)?, 200);
    assert_eq!(usage()["user"]["used"]["tokens"], 300);
    // Others have their own quota.
    let session = team.session("bob", "t")?;
    assert_eq!(team.prompt("bob", &session, "d")?, 200);
    assert_eq!(team.stage.server.main_requests().len(), 3, "a refused prompt reaches no model");
    Ok(())
}

#[test]
fn a_quota_that_is_used_up_in_a_turn_ends_it_before_the_next_request() -> Result<()> {
    let usage = Usage { input: 100, output: 50, ..Usage::default() };
    let call = Turn::text("work").tool("bash", json!({"command": "true", "description": "d"})).usage(usage);
    let team = Team::with(Script::new().turn(call).text("never"), |config| {
        config["auth"]["quotas"] = json!({"user": {"tokens": 100}});
        config["permission"] = json!({"bash": "allow"});
    })?;
    let session = team.session("alice", "t")?;
    let path = format!("/session/{session}/message");
    let reply = team.json("alice", "POST", &path, &prompt("go"))?;
    let error = reply["info"]["error"]["data"]["message"].as_str().context("no error")?;
    assert!(error.contains("has used its quota of 100 tokens a day"), "{error}");
    assert_eq!(team.stage.server.main_requests().len(), 1);
    Ok(())
}

#[test]
fn the_sessions_of_a_user_that_work_at_the_same_time_are_limited() -> Result<()> {
    let script = Script::new().default_turn(Turn::Silent);
    let team = Team::with(script, |config| config["auth"]["quotas"] = json!({"user": {"sessions": 1}}))?;
    let [first, second] = [team.session("alice", "a")?, team.session("alice", "b")?];
    let start = |user: &str, id: &str| {
        team.status(user, "POST", &format!("/session/{id}/prompt_async"), &prompt("go"))
    };
    assert_eq!(start("alice", &first)?, 204);
    assert_eq!(start("alice", &second)?, 429);
    assert_eq!(start("alice", &first)?, 204, "another prompt for a session that works");
    let other = team.session("bob", "c")?;
    assert_eq!(start("bob", &other)?, 204);
    for (user, id) in [("alice", &first), ("bob", &other)] {
        assert_eq!(team.status(user, "POST", &format!("/session/{id}/abort"), &Value::Null)?, 200);
    }
    wait_until("the place", || start("alice", &second).is_ok_and(|status| status == 204))?;
    assert_eq!(team.status("alice", "POST", &format!("/session/{second}/abort"), &Value::Null)?, 200);
    Ok(())
}
