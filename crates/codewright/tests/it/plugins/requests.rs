//! The hooks of titles, commands and summaries, in the order that OpenCode 1.18.33 was seen to have.

use anyhow::{Context as _, Result, ensure};
use codewright_testkit::{Kind, Script, Turn, Usage};
use serde_json::{Value, json};

use super::{Scene, has_node, succeeded};
use crate::support::{check_has, get, new_session, post, prompt, user_text, wait_until};

const EVERY_HOOK: &str = include_str!("every-hook.ts");

/// The tokens of an answer after which a summary follows by itself.
const FULL: Usage = Usage { input: 190_000, output: 10, cache_read: 0, cache_write: 0, reasoning: 0 };
/// The hooks of a request to a model.
const OF_REQUEST: [&str; 3] = ["experimental.chat.system.transform", "chat.params", "chat.headers"];

fn named(calls: &[Value], name: &str) -> Value {
    calls.iter().find(|call| call["name"] == name).cloned().unwrap_or_default()
}

#[test]
fn a_title_is_a_request_with_the_hooks_of_one() -> Result<()> {
    if !has_node() {
        return Ok(());
    }
    let scene = Scene::new(Script::new().title("A title").text("Done."), &json!({}))?;
    scene.user("plugin/every.ts", EVERY_HOOK)?;
    succeeded(scene.run("say ORIGINAL words")?)?;
    let calls = scene.calls()?;
    let of_title: Vec<_> = calls.iter().filter(|call| call["input"]["agent"] == "title").collect();
    let names: Vec<_> = of_title.iter().filter_map(|call| call["name"].as_str()).collect();
    assert_eq!(names, ["chat.params", "chat.headers"]);
    let small = named(&calls, "experimental.provider.small_model");
    assert_eq!((&small["input"]["provider"]["id"], &small["output"]), (&json!("mock"), &json!({})));
    let requests = scene.stage.server.requests();
    let title = requests.iter().find(|request| request.kind == Kind::Title).context("no title")?;
    check_has(&title.body.to_string(), &["added by system.transform"]);
    assert_eq!(title.headers.get("x-plugin"), Some("every-hook"));
    scene.stage.no_problems()
}

/// A plugin that chooses the model of titles.
const CHOOSES: &str = "export const P = async () => ({
  'experimental.provider.small_model': async (input, output) => {
    output.model = Object.values(input.provider.models).find((model) => model.id === 'other');
  },
});";

#[test]
fn a_plugin_chooses_the_model_of_titles_unless_the_user_has() -> Result<()> {
    if !has_node() {
        return Ok(());
    }
    for (configured, expected) in [(None, "other"), (Some("mock/plain-model"), "plain-model")] {
        let scene = Scene::new(Script::new().title("A title").text("Done."), &json!({}))?;
        let mut provider = codewright_testkit::Project::config(&scene.stage.server.url())["provider"].clone();
        provider["mock"]["models"]["other"] = provider["mock"]["models"]["plain-model"].clone();
        let mut more = json!({"provider": provider});
        if let Some(model) = configured {
            more["small_model"] = model.into();
        }
        scene.configure(&more)?;
        scene.user("plugin/small.js", CHOOSES)?;
        succeeded(scene.run("go")?)?;
        let requests = scene.stage.server.requests();
        let title = requests.iter().find(|request| request.kind == Kind::Title).context("no title")?;
        assert_eq!(title.body["model"], expected, "{configured:?}");
    }
    Ok(())
}

#[test]
fn a_command_calls_its_hook_before_its_prompt_is_stored() -> Result<()> {
    if !has_node() {
        return Ok(());
    }
    let scene = Scene::new(
        Script::new().text("Done."),
        &json!({"command": {"greet": {"template": "Greet $ARGUMENTS"}}}),
    )?;
    scene.user("plugin/every.ts", EVERY_HOOK)?;
    succeeded(scene.program(&["run", "--title", "T", "--command", "greet", "Ann", "Lee"]).finish()?)?;
    let names = scene.hook_names(0)?;
    assert_eq!(names[..2], ["command.execute.before", "chat.message"]);
    let calls = scene.calls()?;
    let call = named(&calls, "command.execute.before");
    assert_eq!(
        (&call["input"]["command"], &call["input"]["arguments"]),
        (&json!("greet"), &json!("Ann Lee"))
    );
    assert!(call["input"]["sessionID"].is_string());
    assert_eq!(call["output"]["parts"], json!([{"type": "text", "text": "Greet Ann Lee"}]));
    let sent = user_text(&scene.stage.server.main_requests()[0]);
    check_has(&sent, &["Greet Ann Lee", "added by command.execute.before", "added by chat.message"]);
    scene.stage.no_problems()
}

#[test]
fn a_summary_has_its_hooks_in_the_recorded_order() -> Result<()> {
    if !has_node() {
        return Ok(());
    }
    let script = Script::new().summary(Turn::text("The summary is Done.")).text("One.");
    let scene = Scene::new(script, &json!({}))?;
    scene.user("plugin/every.ts", EVERY_HOOK)?;
    let (server, url) = crate::support::serve(scene.program(&["serve"]))?;
    let id = new_session(&url)?;
    post(&url, &format!("/session/{id}/message"), &prompt("say ORIGINAL words"))?;
    // The title is written beside the turn.
    wait_until("the title", || {
        let requests = scene.stage.server.requests();
        requests.iter().any(|request| request.kind == Kind::Title)
    })?;
    let before = scene.calls()?.len();
    let used = get(&url, &format!("/session/{id}/message"))?[1]["info"].clone();
    let model = json!({"providerID": used["providerID"], "modelID": used["modelID"]});
    let (status, reply) = post(&url, &format!("/session/{id}/summarize"), &model)?;
    ensure!(status == 200, "{status}: {reply}");
    wait_until("the summary", || {
        scene.hook_names(before).is_ok_and(|names| names.iter().any(|name| name.contains("text.complete")))
    })?;
    let mut expected = vec!["experimental.session.compacting", "experimental.chat.messages.transform"];
    expected.extend(OF_REQUEST);
    expected.push("experimental.text.complete");
    assert_eq!(scene.hook_names(before)?, expected);
    let calls = scene.calls()?;
    let compacting = named(&calls, "experimental.session.compacting");
    assert_eq!(compacting["input"], json!({"sessionID": id}));
    assert_eq!(compacting["output"], json!({"context": []}));
    let request = scene.stage.server.requests().into_iter().find(|request| request.kind == Kind::Summary);
    let request = request.context("no summary")?;
    let body = request.body.to_string();
    check_has(&body, &["added by compacting", "say TRANSFORMED words", "added by system.transform"]);
    assert_eq!(
        (&request.body["temperature"], request.headers.get("x-plugin")),
        (&json!(0.25), Some("every-hook"))
    );
    let messages = get(&url, &format!("/session/{id}/message"))?.to_string();
    check_has(&messages, &["The summary is Finished."]);
    server.terminate()?;
    server.finish()?;
    scene.stage.no_problems()
}

#[test]
fn a_plugin_replaces_the_prompt_of_a_summary_and_ends_the_turn_after_it() -> Result<()> {
    if !has_node() {
        return Ok(());
    }
    let text = "export const P = async () => ({
  'experimental.session.compacting': async (i, o) => { o.prompt = 'Only name the files.'; },
  'experimental.compaction.autocontinue': async (input, output) => {
    if (input.agent && input.sessionID && input.message && output.enabled === true) output.enabled = false;
  },
});";
    // The answer fills the context, so that a summary follows by itself.
    let script = Script::new()
        .summary(Turn::text("The summary."))
        .turn(Turn::steps().tool("bash", json!({"command": "true", "description": "x"})).usage(FULL))
        .text("Done.");
    let scene = Scene::new(script, &json!({}))?;
    scene.user("plugin/p.js", text)?;
    succeeded(scene.run("go")?)?;
    let requests = scene.stage.server.requests();
    let summary = requests.iter().find(|request| request.kind == Kind::Summary).context("no summary")?;
    check_has(&summary.body.to_string(), &["Only name the files."]);
    assert_eq!(scene.stage.server.main_requests().len(), 1, "the turn continued");
    Ok(())
}
