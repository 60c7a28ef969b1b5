//! The available models: their sources, and the options that are sent to them.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use anyhow::{Context, Result};
use codewright_testkit::{Finished, Project, Run, Script, Turn};
use serde_json::{Value, json};

use crate::support::{Stage, check_code, check_has, get, keys, program, serve, wait_until};

const KEY: &str = "ANTHROPIC_API_KEY";

/// Runs `models` with one key.
fn models<'a>(project: &Project, args: impl IntoIterator<Item = &'a str>) -> Run {
    program(project, ["models"].into_iter().chain(args)).env(KEY, "k")
}

/// A stage with this configuration of the official provider, which uses the scripted server.
fn official(script: Script, model: &str, config: Value) -> Result<Stage> {
    let stage = Stage::plain(script)?;
    let mut provider = config;
    provider["options"] = json!({ "baseURL": format!("{}/v1", stage.server.url()), "apiKey": "k" });
    let (id, _) = model.split_once('/').context("a model has a provider")?;
    stage.project.write_config(&json!({ "model": model, "provider": { id: provider } }))?;
    Ok(stage)
}

/// A server of catalogs: its address, and its number of requests.
fn catalog_server(answer: String) -> Result<(String, Arc<AtomicUsize>)> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let url = format!("http://{}", listener.local_addr()?);
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let mut request = [0; 4096];
            let length = stream.read(&mut request).unwrap_or_default();
            if !request[..length].starts_with(b"GET /api.json ") {
                continue;
            }
            count.fetch_add(1, Ordering::SeqCst);
            let head =
                format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", answer.len());
            // The client may have ended.
            drop(stream.write_all(format!("{head}{answer}").as_bytes()));
        }
    });
    Ok((url, asked))
}

fn api() -> String {
    let model = json!({ "id": "fetched-1", "name": "Fetched", "tool_call": true, "limit": { "context": 9, "output": 8 } });
    json!({ "anthropic": {
        "id": "anthropic", "name": "Anthropic", "env": [KEY], "npm": "@ai-sdk/anthropic",
        "models": { "fetched-1": model },
    } })
    .to_string()
}

fn cache(project: &Project) -> PathBuf {
    project.home().join(".cache/codewright/models.json")
}

fn lines(done: &Finished) -> Vec<&str> {
    done.stdout.lines().collect()
}

#[test]
fn a_key_is_enough_for_all_models_of_its_provider() -> Result<()> {
    let project = Project::plain()?;
    let done = models(&project, []).finish()?.success()?;
    let found = lines(&done);
    for expected in ["anthropic/claude-opus-4-6", "anthropic/claude-sonnet-4-5", "anthropic/claude-haiku-4-5"]
    {
        assert!(found.contains(&expected), "{expected} is not in {found:?}");
    }
    // The free models of OpenCode Zen are always available.
    let (free, paid): (Vec<&str>, Vec<&str>) = found.iter().partition(|line| line.starts_with("opencode/"));
    assert!(found.is_sorted() && paid.iter().all(|line| line.starts_with("anthropic/")), "{found:?}");
    assert!(!free.is_empty());
    assert_eq!(lines(&models(&project, ["anthropic"]).finish()?.success()?), paid);
    Ok(())
}

#[test]
fn verbose_adds_details() -> Result<()> {
    let project = Project::plain()?;
    let done = models(&project, ["anthropic", "--verbose"]).finish()?.success()?;
    let (_, rest) = done.stdout.split_once("anthropic/claude-sonnet-4-5\n").context("not listed")?;
    let (block, _) = rest.split_once("\nanthropic/").context("not the last")?;
    let model: Value = serde_json::from_str(block)?;
    assert_eq!(
        keys(&model),
        "api capabilities cost family headers id limit name options providerID release_date status variants"
    );
    assert_eq!(model["limit"], json!({ "context": 1_000_000, "output": 64_000 }));
    assert_eq!(model["cost"], json!({ "input": 3, "output": 15, "cache": { "read": 0.3, "write": 3.75 } }));
    let budget = |tokens: u64| json!({ "thinking": { "type": "enabled", "budgetTokens": tokens } });
    assert_eq!(model["variants"], json!({ "high": budget(16_000), "max": budget(31_999) }));
    Ok(())
}

#[test]
fn an_unknown_or_missing_provider_is_reported() -> Result<()> {
    let project = Project::plain()?;
    for (args, expected) in [
        (["antropic"], ["provider not found: antropic", "did you mean anthropic"]),
        (["openai"], ["the provider `openai` is not set up", "OPENAI_API_KEY"]),
    ] {
        let done = models(&project, args).finish()?;
        check_code(&done, 1);
        check_has(&done.stderr, &expected);
        assert_eq!(done.stdout, "");
    }
    // Some models are always available unless that is disabled.
    let done = program(&project, ["models"]).finish()?.success()?;
    assert!(done.stdout.lines().all(|line| line.starts_with("opencode/")), "{}", done.stdout);
    check_has(&done.stdout, &["opencode/big-pickle"]);
    assert!(!done.stdout.contains("claude"), "what has a price needs a key: {}", done.stdout);
    let done = program(&project, ["run", "-m", "opencode/claude-opus-4-6", "hi"]).finish()?;
    check_code(&done, 1);
    check_has(&done.stderr, &["the provider `opencode` is not set up", "OPENCODE_API_KEY"]);
    project.write_config(&json!({ "disabled_providers": ["opencode"] }))?;
    let done = program(&project, ["models"]).finish()?;
    check_code(&done, 1);
    check_has(&done.stderr, &["no model provider was found"]);
    Ok(())
}

#[test]
fn an_unknown_model_is_reported_with_similar_names() -> Result<()> {
    let project = Project::plain()?;
    for (model, expected) in [
        ("anthropic/claude-sonet-4-5", "anthropic/claude-sonnet-4-5"),
        ("openai/gpt-5", "OPENAI_API_KEY"),
        ("nobody/x", "model not found: nobody/x"),
    ] {
        let done = program(&project, ["run", "-m", model, "hi"]).env(KEY, "k").finish()?;
        check_code(&done, 1);
        check_has(&done.stderr, &[expected]);
    }
    Ok(())
}

#[test]
fn configuration_changes_and_adds_models() -> Result<()> {
    let project = Project::plain()?;
    project.write_config(
        &json!({ "disabled_providers": ["openai", "opencode"], "provider": { "anthropic": {
        "whitelist": ["mine", "claude-opus-4-6"],
        "models": { "mine": { "name": "Mine" }, "claude-opus-4-6": { "cost": { "input": 1.5 } } },
    } } }),
    )?;
    let done = models(&project, ["--verbose"]).env("OPENAI_API_KEY", "k").finish()?.success()?;
    let names: Vec<_> =
        lines(&done).into_iter().filter(|line| line.contains('/') && !line.contains(' ')).collect();
    assert_eq!(names, ["anthropic/claude-opus-4-6", "anthropic/mine"]);
    check_has(&done.stdout, &["\"input\": 1.5,", "\"output\": 25,", "\"name\": \"Mine\""]);
    Ok(())
}

#[test]
fn the_server_lists_every_provider() -> Result<()> {
    let project = Project::plain()?;
    let (_server, url) = serve(program(&project, ["serve"]).env(KEY, "secret-key"))?;
    let listed = get(&url, "/provider")?;
    assert_eq!(keys(&listed), "all connected default");
    assert_eq!(listed["connected"], json!(["anthropic", "opencode"]));
    assert_eq!(listed["default"]["opencode"], "big-pickle");
    assert_eq!(listed["default"]["anthropic"], "claude-sonnet-5");
    for (provider, model) in
        [("openai", "gpt-5.6"), ("google", "gemini-3.7-flash"), ("groq", "qwen/qwen3.6-27b")]
    {
        assert_eq!(listed["default"][provider], model);
    }
    let all = listed["all"].as_array().context("no list")?;
    assert!(all.len() > 100, "{}", all.len());
    let google = all.iter().find(|provider| provider["id"] == "google").context("google is missing")?;
    assert_eq!(keys(google), "env id models name options source");
    assert_eq!(google["source"], "custom");
    assert_eq!(
        google["models"]["gemini-2.5-pro"]["variants"]["max"]["thinkingConfig"]["thinkingBudget"],
        31_999
    );
    let tiers = &google["models"]["gemini-2.5-pro"]["cost"]["tiers"];
    assert_eq!(tiers[0]["tier"], json!({ "type": "context", "size": 200_000 }));
    let usable = get(&url, "/config/providers")?;
    let chosen = json!({ "providerID": "anthropic", "modelID": "claude-sonnet-5", "guessed": true });
    assert_eq!(usable["model"], chosen, "one choice for every client");
    assert_eq!(usable["providers"][0]["source"], "env");
    assert_eq!(usable["providers"].as_array().map(Vec::len), Some(2));
    assert_eq!(usable["providers"][1]["options"], json!({ "apiKey": "public" }));
    let free = usable["providers"][1]["models"].as_object().context("no models")?;
    assert!(free.values().all(|model| model["cost"]["input"] == 0), "{free:?}");
    assert!(!format!("{listed}{usable}").contains("secret-key"));
    Ok(())
}

#[test]
fn a_fetched_list_is_cached_and_a_broken_one_ignored() -> Result<()> {
    let project = Project::plain()?;
    let (url, asked) = catalog_server(api())?;
    let fetching = |args: &[&'static str]| {
        let run = models(&project, args.to_vec());
        run.env("OPENCODE_DISABLE_MODELS_FETCH", "0").env("OPENCODE_MODELS_URL", &url)
    };
    let before = fetching(&[]).finish()?.success()?;
    assert!(!before.stdout.contains("fetched-1") && asked.load(Ordering::SeqCst) == 0);
    let done = fetching(&["--refresh"]).finish()?.success()?;
    assert_eq!(done.stdout, "anthropic/fetched-1\n");
    assert_eq!(models(&project, []).finish()?.success()?.stdout, "anthropic/fetched-1\n");
    assert_eq!(asked.load(Ordering::SeqCst), 1);
    // The format of models.dev is accepted too.
    std::fs::write(cache(&project), api())?;
    assert_eq!(models(&project, []).finish()?.success()?.stdout, "anthropic/fetched-1\n");
    std::fs::write(cache(&project), "{ broken")?;
    let done = models(&project, []).finish()?.success()?;
    assert_eq!(done.stdout, before.stdout);
    check_has(&done.stderr, &["models.json", "is ignored"]);
    Ok(())
}

#[test]
fn a_failed_fetch_keeps_the_current_list() -> Result<()> {
    let project = Project::plain()?;
    let (url, _) = catalog_server("<html>".to_owned())?;
    for (url, forbidden, expected) in [
        (url.as_str(), "0", "the model catalog cannot be read"),
        ("http://127.0.0.1:1", "0", "connection refused"),
        (url.as_str(), "1", "OPENCODE_DISABLE_MODELS_FETCH"),
    ] {
        let run = models(&project, ["--refresh"]).env("OPENCODE_MODELS_URL", url);
        let done = run.env("OPENCODE_DISABLE_MODELS_FETCH", forbidden).finish()?;
        check_code(&done, 1);
        check_has(&done.stderr, &[expected]);
        assert!(!cache(&project).exists());
    }
    Ok(())
}

#[test]
fn a_server_fetches_once_a_day_and_a_run_never() -> Result<()> {
    let stage = Stage::plain(Script::new().default_turn(Turn::text("Done.")))?;
    let (url, asked) = catalog_server(api())?;
    let with = |run: Run| run.env("OPENCODE_DISABLE_MODELS_FETCH", "0").env("OPENCODE_MODELS_URL", &url);
    with(stage.program(["run", "hi"])).finish()?.success()?;
    assert_eq!(asked.load(Ordering::SeqCst), 0);
    for _ in 0..2 {
        let (server, _) = serve(with(program(&stage.project, ["serve"])))?;
        wait_until("the list", || cache(&stage.project).exists())?;
        server.terminate()?;
        server.finish()?.success()?;
    }
    assert_eq!(asked.load(Ordering::SeqCst), 1);
    let day = std::time::Duration::from_secs(25 * 60 * 60);
    let file = std::fs::File::options().write(true).open(cache(&stage.project))?;
    file.set_modified(file.metadata()?.modified()? - day)?;
    let (_server, _) = serve(with(program(&stage.project, ["serve"])))?;
    wait_until("the next list", || asked.load(Ordering::SeqCst) == 2)
}

#[test]
fn a_variant_reaches_the_model() -> Result<()> {
    let script = || Script::new().default_turn(Turn::text("Done."));
    let stage = official(script(), "anthropic/claude-opus-4-6", json!({}))?;
    stage.run(["--variant", "max", "hi"])?.success()?;
    let body = &stage.server.main_requests()[0].body;
    assert_eq!(body["thinking"], json!({ "type": "adaptive" }));
    assert_eq!(body["output_config"], json!({ "effort": "max" }));
    let stage = official(script(), "anthropic/claude-sonnet-4-5", json!({}))?;
    stage.run(["--variant", "high", "hi"])?.success()?;
    let body = &stage.server.main_requests()[0].body;
    assert_eq!(body["thinking"], json!({ "type": "enabled", "budget_tokens": 16_000 }));
    assert_eq!(body["max_tokens"], 48_000);
    let own = json!({ "models": { "m": {
        "reasoning": true,
        "options": { "reasoningEffort": "low", "seed": 1 },
        "variants": { "high": { "seed": 2 } },
    } } });
    let stage = official(script(), "custom/m", own)?;
    stage.run(["--variant", "high", "hi"])?.success()?;
    stage.run(["hi"])?.success()?;
    let requests = stage.server.main_requests();
    assert_eq!(
        (&requests[0].body["reasoning_effort"], &requests[0].body["seed"]),
        (&json!("high"), &json!(2))
    );
    assert_eq!(
        (&requests[1].body["reasoning_effort"], &requests[1].body["seed"]),
        (&json!("low"), &json!(1))
    );
    Ok(())
}

#[test]
fn a_missing_ability_of_a_model_is_a_warning() -> Result<()> {
    let config = json!({ "models": { "m": { "tool_call": false } } });
    let stage = official(Script::new().default_turn(Turn::text("Done.")), "custom/m", config)?;
    let done = stage.run(["--variant", "turbo", "hi"])?.success()?;
    assert_eq!(done.stdout, "Done.\n");
    check_has(
        &done.stderr,
        &[
            "`custom/m` has no variant `turbo`",
            "`custom/m` is not known to call tools",
            "`provider.custom.models.m.tool_call`",
        ],
    );
    Ok(())
}

#[test]
fn a_deprecated_model_is_not_offered_and_still_answers() -> Result<()> {
    let stage = official(Script::new().default_turn(Turn::text("Done.")), "opencode/glm-4.6", json!({}))?;
    let listed = stage.program(["models", "opencode"]).finish()?.success()?;
    let hidden: Vec<_> = lines(&listed).into_iter().filter(|line| *line == "opencode/glm-4.6").collect();
    assert_eq!(hidden, [""; 0]);
    stage.run(["hi"])?.success()?;
    assert_eq!(stage.server.main_requests()[0].body["model"], "glm-4.6");
    Ok(())
}
