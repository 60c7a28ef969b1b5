//! Faults of a provider are reported, and the session stays usable.

use std::time::Duration;

use anyhow::Result;
use codewright_testkit::{Finish, Finished, Project, Reply, Script, Turn};
use serde_json::json;

use crate::support::{DEADLINE, Stage, check_code, check_has, lines, of_type, user_text, wait_until};

/// Checks that a turn fails with these texts, and that the next turn succeeds.
#[track_caller]
fn check_fails(turn: impl Into<Turn>, expected: &[&str]) {
    let turn = turn.into();
    let repeats = 10;
    let script = (0..repeats).fold(Script::new(), |script, _| script.turn(turn.clone()));
    let script = script.default_turn(Turn::text("Back again."));
    let stage = Stage::plain(script).unwrap();
    let done = stage.run(["first"]).unwrap();
    check_code(&done, 1);
    check_has(&done.stderr, &["Error: "]);
    check_has(&done.stderr, expected);
    assert_eq!(done.stdout, "");
    check_usable(&stage, repeats);
}

/// Checks that the session continues: the model gets the old prompt and the new one.
#[track_caller]
fn check_usable(stage: &Stage, limit: usize) {
    // The remaining bad turns are used by other sessions.
    for _ in stage.server.main_requests().len()..limit {
        stage.run(["spend a turn"]).unwrap();
    }
    let id = first_session(stage);
    let done = stage.run(["-s", &id, "second"]).unwrap();
    check_code(&done, 0);
    assert_eq!(done.stdout, "Back again.\n");
    check_has(&user_text(stage.server.main_requests().last().unwrap()), &["first", "second"]);
    stage.no_problems().unwrap();
}

fn first_session(stage: &Stage) -> String {
    let request = &stage.server.main_requests()[0];
    request.headers.get("x-session-id").unwrap().to_owned()
}

/// Checks that a turn fails once and is retried.
#[track_caller]
fn check_recovers(turn: impl Into<Turn>, expected: &[&str]) -> Finished {
    let stage = Stage::plain(Script::new().turn(turn).text("Second attempt.").text("Next.")).unwrap();
    let done = stage.run(["first"]).unwrap();
    check_code(&done, 0);
    check_has(&done.stderr, expected);
    check_has(&done.stderr, &["attempt 1", "retrying"]);
    assert!(!done.stderr.contains("Error:"), "{}", done.stderr);
    assert!(done.stdout.ends_with("Second attempt.\n"), "{:?}", done.stdout);
    let again = stage.run(["-c", "second"]).unwrap();
    check_code(&again, 0);
    // The output of the failed attempt is not sent to the model.
    let messages = stage.messages(2).unwrap();
    let answers: Vec<_> = messages.iter().filter(|message| message["role"] == "assistant").collect();
    assert_eq!(answers.len(), 1, "{messages:#?}");
    assert_eq!(answers[0]["content"], "Second attempt.");
    stage.no_problems().unwrap();
    done
}

#[test]
fn a_rejected_key_is_reported() {
    let error = json!({"error": {"message": "Incorrect API key provided", "type": "authentication_error"}});
    let place = "the key is `provider.mock.options.apiKey` in the configuration";
    check_fails(Turn::http_error(401).body(error), &["Incorrect API key provided", place]);
}

#[test]
fn a_lasting_rate_limit_is_reported() {
    let turn = Turn::http_error(429).header("retry-after-ms", "10");
    check_fails(turn, &["scripted error", "attempt 9", "retrying"]);
}

#[test]
fn a_lasting_server_error_is_reported() {
    let turn = Turn::http_error(500).header("retry-after-ms", "10").body("");
    check_fails(turn, &["500 Internal Server Error"]);
}

#[test]
fn an_html_page_instead_of_an_answer_is_reported() {
    let page =
        "<!doctype html><html><head><title>Sign in to the WiFi</title></head><body><p>x</p></body></html>";
    check_fails(Turn::html(200, page), &["HTML"]);
    check_fails(Turn::html(403, page), &["HTML page", "Sign in to the WiFi"]);
}

#[test]
fn a_bad_request_is_reported_with_the_providers_text() {
    let error = json!({"error": {"message": "model `x` does not exist", "code": "model_not_found"}});
    check_fails(Turn::http_error(404).body(error), &["model `x` does not exist"]);
}

#[test]
fn an_error_with_status_200_is_reported() {
    let error = json!({"error": {"message": "You have no credit left", "code": "insufficient_quota"}});
    check_fails(Reply::new(200, error.into()), &["You have no credit left"]);
}

#[test]
fn an_invalid_answer_is_retried() {
    check_recovers(Reply::new(200, "hello".into()), &[]);
}

#[test]
fn a_temporary_rate_limit_is_retried() {
    check_recovers(Turn::http_error(429).header("retry-after-ms", "10"), &["scripted error"]);
}

#[test]
fn a_temporary_server_error_is_retried() {
    check_recovers(
        Turn::http_error(503).header("retry-after-ms", "10").body("<html>busy</html>"),
        &["HTML page"],
    );
}

#[test]
fn a_broken_stream_is_retried_without_duplicates() {
    let done = check_recovers(Turn::text("Partial text before the drop").disconnect(), &[]);
    assert!(done.stdout.lines().count() <= 2, "{:?}", done.stdout);
}

#[test]
fn a_connection_closed_without_an_answer_is_retried() {
    check_recovers(Turn::Empty, &[]);
}

#[test]
fn an_overload_inside_the_stream_is_retried() {
    check_recovers(Turn::text("Partial").stream_error("overloaded_error", "Too busy"), &["Too busy"]);
}

#[test]
fn an_error_inside_the_stream_is_reported() -> Result<()> {
    let error = Turn::text("Partial\n").stream_error("invalid_request_error", "The prompt is not allowed");
    let stage = Stage::plain(Script::new().turn(error).text("Back again."))?;
    let done = stage.run(["first"])?;
    check_code(&done, 1);
    check_has(&done.stderr, &["Error: The prompt is not allowed"]);
    check_usable(&stage, 1);
    Ok(())
}

#[test]
fn a_retried_answer_is_one_text_in_json() -> Result<()> {
    let script = Script::new().turn(Turn::text("Partial").disconnect()).text("Whole.");
    let stage = Stage::plain(script)?;
    let lines = stage.json(["hi"])?;
    let texts: Vec<_> = of_type(&lines, "text").iter().map(|line| line["part"]["text"].clone()).collect();
    assert_eq!(texts, ["Whole."]);
    assert_eq!(of_type(&lines, "step_finish").len(), 1);
    Ok(())
}

#[test]
fn a_stream_that_breaks_after_a_call_does_not_run_it_twice() -> Result<()> {
    let call = Turn::steps().tool("bash", json!({"command": "echo x >> effect"})).text("and").disconnect();
    let stage = Stage::plain(Script::new().turn(call).text("Went on."))?;
    let done = stage.run(["hi"])?.success()?;
    assert!(done.stdout.ends_with("Went on.\n"), "{:?}", done.stdout);
    assert_eq!(stage.project.read("effect")?, "x\n");
    stage.no_problems()
}

#[test]
fn an_answer_that_reaches_the_limit_is_not_a_failure() -> Result<()> {
    let script = Script::new().turn(Turn::text("cut off").finish(Finish::Length)).text("Back again.");
    let stage = Stage::plain(script)?;
    let done = stage.run(["--format", "json", "first"])?;
    check_code(&done, 0);
    let lines = lines(&done)?;
    assert_eq!(of_type(&lines, "text")[0]["part"]["text"], "cut off");
    assert_eq!(of_type(&lines, "step_finish")[0]["part"]["reason"], "length");
    check_usable(&stage, 1);
    Ok(())
}

#[test]
fn an_answer_that_was_cut_off_is_reported() -> Result<()> {
    let stage = Stage::plain(Script::new().turn(Turn::text("cut off").finish(Finish::Length)))?;
    let done = stage.run(["hi"])?.success()?;
    assert_eq!(done.stdout, "cut off\n");
    check_has(&done.stderr, &["limit"]);
    Ok(())
}

#[test]
fn an_empty_answer_leaves_a_usable_session() -> Result<()> {
    let stage = Stage::plain(Script::new().turn(Turn::steps()).text("Back again."))?;
    let done = stage.run(["first"])?;
    assert_eq!(done.stdout, "");
    check_usable(&stage, 1);
    Ok(())
}

#[test]
fn an_unreachable_provider_is_reported_during_the_retries() -> Result<()> {
    let project = Project::plain()?;
    project.configure("http://127.0.0.1:1")?;
    let run = crate::support::program(&project, ["run", "hi"]).start()?;
    wait_until("the notice", || run.so_far().contains("retrying"))?;
    check_has(&run.so_far(), &["127.0.0.1:1", "attempt 1"]);
    run.interrupt()?;
    check_code(&run.finish()?, 130);
    Ok(())
}

#[test]
fn a_silent_provider_times_out() -> Result<()> {
    let stage = Stage::plain(
        Script::new()
            .turn(Turn::Silent)
            .turn(Turn::text("Half").hang())
            .default_turn(Turn::text("Back again.")),
    )?;
    let mut config = Project::config(&stage.server.url());
    config["provider"]["mock"]["options"]["headerTimeout"] = json!(1000);
    config["provider"]["mock"]["options"]["chunkTimeout"] = json!(1000);
    stage.project.write_config(&config)?;
    let done =
        stage.program(["run", "first"]).deadline(DEADLINE + Duration::from_secs(10)).finish()?.success()?;
    assert!(done.stdout.ends_with("Back again.\n"), "{:?}", done.stdout);
    check_has(&done.stderr, &["attempt 1", "attempt 2"]);
    stage.no_problems()
}
