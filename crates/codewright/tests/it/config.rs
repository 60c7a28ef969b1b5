//! The sources of models and keys, and the errors without them.

use std::fs;

use anyhow::Result;
use codewright_testkit::{BlockingServer, Project, Script, Turn};
use serde_json::{Value, json};

use crate::support::{Stage, check_code, check_has, program};

/// A server with short answers for any number of turns.
fn server() -> Result<BlockingServer> {
    Ok(BlockingServer::start(Script::new().default_turn(Turn::text("Done.")))?)
}

/// The model and the key of the last request.
fn last_model_and_key(server: &BlockingServer) -> (String, String) {
    let request = server.main_requests().pop().unwrap();
    let header = request.headers.get("authorization").unwrap_or_default().to_owned();
    (request.body["model"].as_str().unwrap_or_default().to_owned(), header)
}

fn provider(url: &str, key: &str) -> Value {
    json!({
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": format!("{url}/v1"), "apiKey": key},
        "models": {"one": {}, "two": {}, "three": {}},
    })
}

#[test]
fn a_missing_provider_is_reported_with_advice() -> Result<()> {
    let project = Project::plain()?;
    let done = program(&project, ["run", "hi"]).finish()?;
    check_code(&done, 1);
    assert_eq!(done.stdout, "");
    let lines: Vec<_> = done.stderr.trim_end().lines().collect();
    assert!(lines.len() <= 8, "{}", done.stderr);
    assert_eq!(lines[0], "Error: no model provider was found");
    assert!(lines[1].contains("codewright providers login"), "{}", done.stderr);
    check_has(&done.stderr, &["codewright demo", "ANTHROPIC_API_KEY", "codewright debug providers"]);
    // The places are not lost.
    let file = project.path("opencode.json").display().to_string();
    let auth = project.home().join(".local/share/opencode/auth.json").display().to_string();
    let global = project.home().join(".config/opencode/opencode.json").display().to_string();
    let places = program(&project, ["debug", "providers"]).finish()?.success()?;
    check_has(&places.stdout, &[&file, &auth, &global, "ZHIPU_API_KEY"]);
    assert_eq!(places.stdout.matches("ZHIPU_API_KEY").count(), 1, "each variable once");
    Ok(())
}

#[test]
fn a_local_server_is_found_when_nothing_else_is_configured() -> Result<()> {
    let project = Project::plain()?;
    let script = Script::new().models(["llama-test", "other"]).text("From here.");
    let server = BlockingServer::start(script)?;
    let run = program(&project, ["run", "hi"]).env("OPENCODE_DISABLE_LOCAL_SERVERS", "0");
    let done = run.env("OLLAMA_HOST", server.url()).finish()?.success()?;
    assert_eq!(done.stdout, "From here.\n");
    assert_eq!(last_model_and_key(&server).0, "llama-test");
    assert_eq!(server.problems(), [""; 0]);
    // With a configured provider, local servers are not searched.
    let configured = self::server()?;
    project.configure(&configured.url())?;
    let run = program(&project, ["run", "hi"]).env("OPENCODE_DISABLE_LOCAL_SERVERS", "0");
    run.env("OLLAMA_HOST", server.url()).finish()?.success()?;
    assert_eq!((server.main_requests().len(), configured.main_requests().len()), (1, 1));
    Ok(())
}

#[test]
fn a_broken_file_is_reported_with_its_position_and_not_changed() -> Result<()> {
    let broken = [
        ("{\n  \"model\": \"a/b\",\n  \"provider\": [\n}\n", "line 4, column 1", ""),
        ("{\n  \"model\": \"a/b\"\n  \"x\": 1\n}\n", "line 2, column 17", ""),
        (
            "{\n  \"provider\": {\"mock\": {\"options\": 5}}\n}\n",
            "line 2, column 36",
            "`provider.mock.options` must be",
        ),
        ("{\n  \"permission\": {\"bash\": \"maybe\"}\n}\n", "line 2", "`permission.bash` must be"),
        (
            "{\"model\": 3}",
            "line 1, column 11",
            "`model` must be a string of the form `provider/model`, found a number",
        ),
    ];
    let project = Project::plain()?;
    for (text, place, expected) in broken {
        let path = project.write("opencode.jsonc", text)?;
        for command in [&["run", "hi"][..], &["run", "--format", "json", "hi"]] {
            let done = program(&project, command.iter().copied()).finish()?;
            check_code(&done, 1);
            assert_eq!(done.stdout, "");
            check_has(&done.stderr, &["Error: ", &path.display().to_string(), place, expected]);
        }
        assert_eq!(project.read("opencode.jsonc")?, text);
    }
    Ok(())
}

#[test]
fn keys_come_from_variables_and_files() -> Result<()> {
    let project = Project::plain()?;
    let server = server()?;
    for (written, variable, expected) in [
        ("{env:MY_KEY}", "sk-from-env", "Bearer sk-from-env"),
        ("{file:key.txt}", "", "Bearer sk-from-file"),
        ("{file:~/key.txt}", "", "Bearer sk-from-home"),
        ("{env:MY_KEY}-suffix", "sk", "Bearer sk-suffix"),
    ] {
        fs::create_dir_all(project.home().join(".config/opencode"))?;
        fs::write(project.home().join(".config/opencode/key.txt"), "sk-from-file\n")?;
        fs::write(project.home().join("key.txt"), "sk-from-home")?;
        project.write_config(
            &json!({"model": "own/one", "provider": {"own": provider(&server.url(), written)}}),
        )?;
        program(&project, ["run", "hi"]).env("MY_KEY", variable).finish()?.success()?;
        assert_eq!(last_model_and_key(&server).1, expected, "{written}");
    }
    project.write_config(&json!({"provider": {"own": provider(&server.url(), "{file:absent.txt}")}}))?;
    let done = program(&project, ["run", "hi"]).finish()?;
    check_code(&done, 1);
    check_has(&done.stderr, &["opencode.json", "{file:absent.txt}", "does not exist"]);
    Ok(())
}

#[test]
fn a_key_of_opencode_is_used_and_not_changed() -> Result<()> {
    let project = Project::plain()?;
    let server = server()?;
    let mut own = provider(&server.url(), "");
    own["options"].as_object_mut().unwrap().remove("apiKey");
    project.write_config(&json!({"model": "own/one", "provider": {"own": own}}))?;
    let auth = project.home().join(".local/share/opencode/auth.json");
    fs::create_dir_all(auth.parent().unwrap())?;
    let text = r#"{ "own": {"type": "api", "key": "sk-signed-in"}, "odd": {"type": "new", "x": 1} }"#;
    fs::write(&auth, text)?;
    program(&project, ["run", "hi"]).finish()?.success()?;
    assert_eq!(last_model_and_key(&server).1, "Bearer sk-signed-in");
    assert_eq!(fs::read_to_string(&auth)?, text);
    let content = r#"{"own": {"type": "api", "key": "sk-content"}}"#;
    program(&project, ["run", "hi"]).env("OPENCODE_AUTH_CONTENT", content).finish()?.success()?;
    assert_eq!(last_model_and_key(&server).1, "Bearer sk-content");
    Ok(())
}

#[test]
fn a_known_provider_needs_only_its_variable() -> Result<()> {
    let project = Project::plain()?;
    let server = server()?;
    let url = format!("{}/v1", server.url());
    for (name, variable) in [("groq", "GROQ_API_KEY"), ("openai", "OPENAI_API_KEY")] {
        let provider = json!({name: {"options": {"baseURL": url}}});
        project.write_config(&json!({"model": format!("{name}/gpt-x"), "provider": provider}))?;
        program(&project, ["run", "hi"]).env(variable, "sk-variable").finish()?.success()?;
        assert_eq!(last_model_and_key(&server), ("gpt-x".to_owned(), "Bearer sk-variable".to_owned()));
    }
    assert_eq!(server.problems(), [""; 0]);
    Ok(())
}

#[test]
fn closer_configuration_wins() -> Result<()> {
    let project = Project::git()?;
    let server = server()?;
    // Files above the worktree are ignored.
    let above = project.directory().parent().unwrap().join("opencode.json");
    fs::write(&above, "{ broken")?;
    let deep = project.path("a/b");
    fs::create_dir_all(&deep)?;
    let run = || program(&project, ["run", "hi"]).directory(&deep);
    let global = project.home().join(".config/opencode/opencode.json");
    fs::create_dir_all(global.parent().unwrap())?;
    let whole = json!({"model": "own/one", "provider": {"own": provider(&server.url(), "sk")}});
    fs::write(&global, whole.to_string())?;
    run().finish()?.success()?;
    assert_eq!(last_model_and_key(&server).0, "one");
    project.write("other.json", r#"{"model": "own/two"}"#)?;
    let other = project.path("other.json");
    run().env("OPENCODE_CONFIG", &other).finish()?.success()?;
    assert_eq!(last_model_and_key(&server).0, "two");
    project.write("opencode.jsonc", "{\n // the root's\n \"model\": \"own/three\", }")?;
    run().env("OPENCODE_CONFIG", &other).finish()?.success()?;
    assert_eq!(last_model_and_key(&server).0, "three");
    project.write("a/opencode.json", r#"{"model": "own/two"}"#)?;
    run().finish()?.success()?;
    assert_eq!(last_model_and_key(&server).0, "two");
    run().env("OPENCODE_CONFIG_CONTENT", r#"{"model": "own/one"}"#).finish()?.success()?;
    assert_eq!(last_model_and_key(&server).0, "one");
    let done = run().env("OPENCODE_CONFIG_CONTENT", "{\"model\": ").finish()?;
    check_code(&done, 1);
    check_has(&done.stderr, &["OPENCODE_CONFIG_CONTENT", "line 1"]);
    let done = run().env("OPENCODE_CONFIG", project.path("absent.json")).finish()?.success()?;
    check_has(&done.stderr, &["absent.json", "does not exist"]);
    Ok(())
}

#[test]
fn a_mistyped_key_is_an_error() -> Result<()> {
    let stage = Stage::plain(Script::new().text("Done."))?;
    let mut config = Project::config(&stage.server.url());
    config["permision"] = json!({"bash": "deny"});
    stage.project.write_config(&config)?;
    let done = stage.run(["hi"])?;
    check_code(&done, 1);
    check_has(&done.stderr, &["opencode.json", "unknown key `permision`; did you mean `permission`?"]);
    assert!(stage.server.requests().is_empty());
    Ok(())
}

#[test]
fn an_unreachable_provider_is_reported() -> Result<()> {
    let project = Project::plain()?;
    for (provider, expected) in [
        (json!({"models": {"m": {}}}), &["provider.own.options.baseURL"][..]),
        (json!({"options": {"baseURL": "ftp://x"}, "models": {"m": {}}}), &["own", "ftp://x", "http"]),
        (json!({"npm": "@ai-sdk/unheard-of", "models": {"m": {}}}), &["own", "@ai-sdk/unheard-of"]),
    ] {
        project.write_config(&json!({"model": "own/m", "provider": {"own": provider}}))?;
        let done = program(&project, ["run", "hi"]).finish()?;
        check_code(&done, 1);
        check_has(&done.stderr, expected);
    }
    Ok(())
}
