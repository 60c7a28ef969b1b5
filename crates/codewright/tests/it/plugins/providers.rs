//! Plugins that change the configuration, sign in to a provider and send its requests.

use anyhow::{Context, Result, ensure};
use codewright_testkit::{Script, Turn};
use serde_json::{Value, json};

use super::{Scene, has_node, succeeded};
use crate::support::{check_has, get, new_session, post};

const AUTH: &str = r#"
export const Acme = async ({ client }) => ({
  auth: {
    provider: "acme",
    methods: [
      {
        type: "oauth",
        label: "Sign in to Acme",
        prompts: [{ type: "text", key: "team", message: "Which team?" }],
        authorize: async (inputs) => ({
          url: "https://acme.example/" + inputs.team,
          instructions: "Paste the code",
          method: "code",
          callback: async (code) =>
            code === "right"
              ? { type: "success", access: "access-token", refresh: "refresh-token", expires: Date.now() + 3600_000 }
              : { type: "failed" },
        }),
      },
      { type: "api", label: "Enter a key" },
    ],
    loader: async (getAuth, provider) => {
      const auth = await getAuth();
      return {
        apiKey: "from-loader",
        baseURL: process.env.ACME_URL,
        fetch: async (input, init) => {
          const headers = { ...init.headers, "x-custom": auth.access, "x-provider": provider.id };
          return fetch(input, { ...init, headers });
        },
      };
    },
  },
});
"#;

#[test]
fn a_plugin_signs_in_to_a_provider_and_sends_its_requests() -> Result<()> {
    if !has_node() {
        return Ok(());
    }
    let script = Script::new()
        .turn(Turn::steps().tool("bash", json!({"command": "echo ran", "description": "x"})))
        .text("Done through the plugin.");
    let scene = Scene::new(script, &json!({}))?;
    let url = scene.stage.server.url();
    let mut provider = codewright_testkit::Project::config(&url)["provider"]["mock"].clone();
    provider["options"] = json!({"baseURL": "http://127.0.0.1:9/v1"});
    scene.configure(&json!({"provider": {"acme": provider}}))?;
    scene.user("plugin/acme.js", AUTH)?;
    let (server, url_of) =
        crate::support::serve(scene.program(&["serve"]).env("ACME_URL", format!("{url}/v1")))?;
    let methods = get(&url_of, "/provider/auth")?;
    assert_eq!(methods["acme"][0]["label"], "Sign in to Acme");
    assert_eq!(methods["acme"][0]["prompts"][0]["key"], "team");
    let begin = json!({"method": 0, "inputs": {"team": "blue"}});
    let (status, page) = post(&url_of, "/provider/acme/oauth/authorize", &begin)?;
    assert_eq!(
        (status, &page["url"], &page["method"]),
        (200, &json!("https://acme.example/blue"), &json!("code"))
    );
    let (status, _) = post(&url_of, "/provider/acme/oauth/callback", &json!({"method": 0, "code": "wrong"}))?;
    ensure!(status >= 400, "{status}");
    post(&url_of, "/provider/acme/oauth/authorize", &begin)?;
    let (status, reply) =
        post(&url_of, "/provider/acme/oauth/callback", &json!({"method": 0, "code": "right"}))?;
    assert_eq!((status, reply), (200, json!(true)));

    let id = new_session(&url_of)?;
    let prompt = json!({
        "model": {"providerID": "acme", "modelID": "plain-model"},
        "parts": [{"type": "text", "text": "go"}],
    });
    let (status, answer) = post(&url_of, &format!("/session/{id}/message"), &prompt)?;
    ensure!(status == 200, "{status}: {answer}");
    check_has(&answer.to_string(), &["Done through the plugin."]);
    let requests = scene.stage.server.main_requests();
    assert_eq!(requests.len(), 2);
    for request in requests {
        assert_eq!(request.headers.get("x-custom"), Some("access-token"));
        assert_eq!(request.headers.get("x-provider"), Some("acme"));
        assert_eq!(request.headers.get("authorization"), Some("Bearer from-loader"));
    }
    server.terminate()?;
    server.finish()?;
    scene.stage.no_problems()
}

#[test]
fn a_plugin_of_a_repository_never_receives_credentials() -> Result<()> {
    if !has_node() {
        return Ok(());
    }
    let scene = Scene::new(Script::new().text("Done."), &json!({}))?;
    scene.stage.project.write(".opencode/plugin/acme.js", AUTH)?;
    let run = scene.program(&["serve"]).env("CODEWRIGHT_TRUST", "all");
    let (server, url) = crate::support::serve(run)?;
    let methods = get(&url, "/provider/auth")?;
    assert!(methods.get("acme").is_none(), "{methods}");
    server.terminate()?;
    server.finish()?;
    Ok(())
}

#[test]
fn a_plugin_changes_the_configuration() -> Result<()> {
    if !has_node() {
        return Ok(());
    }
    let script = Script::new().text("Done.");
    let scene = Scene::new(script, &json!({}))?;
    let text = "export const C = async () => ({ config: async (config) => {
  config.command = { ...config.command, greet: { template: 'Say hello to $ARGUMENTS', agent: 'greeter' } };
  config.agent = { ...config.agent, greeter: { mode: 'primary', prompt: 'You greet.', description: 'Greets' } };
  config.nonsense_of_a_plugin = 1;
  config.permission = 'not a permission';
} });";
    scene.user("plugin/c.js", text)?;
    let done = succeeded(scene.program(&["run", "--command", "greet", "Ann"]).finish()?)?;
    check_has(&done.stdout, &["Done."]);
    let body = scene.body(0)?.to_string();
    check_has(&body, &["Say hello to Ann", "You greet."]);
    let (server, url) = crate::support::serve(scene.program(&["serve"]))?;
    let agents = || -> Result<Value> { get(&url, "/agent") };
    crate::support::wait_until("the agent of the plugin", || {
        agents().is_ok_and(|agents| agents.to_string().contains("\"greeter\""))
    })?;
    let commands = get(&url, "/command")?;
    let greet = commands.as_array().into_iter().flatten().find(|command| command["name"] == "greet");
    assert_eq!(greet.context("no command")?["agent"], "greeter");
    server.terminate()?;
    server.finish()?;
    Ok(())
}

/// Reads the models of the provider, removes one and adds another, which depends on the credential.
const FIRST: &str = r#"
import { existsSync, readFileSync, writeFileSync } from "node:fs";
export const First = async () => ({
  auth: { provider: "groq", methods: [{ type: "api", label: "Enter a key" }] },
  provider: {
    id: "groq",
    models: async (provider, { auth }) => {
      const models = { ...provider.models };
      const [first, ...others] = Object.keys(models).filter((id) => id !== "configured").sort();
      if (others.length === 0) throw new Error("the models of the catalog are missing");
      if (!existsSync("REMOVED")) writeFileSync("REMOVED", first);
      delete models[readFileSync("REMOVED", "utf8")];
      delete models["configured"];
      const base = provider.models[others[0]];
      models["found"] = {
        ...base,
        id: "found",
        name: `Found with ${auth?.key ?? "nothing"}`,
        api: { ...base.api, id: "found-1" },
        capabilities: { ...base.capabilities, toolcall: true, input: { ...base.capabilities.input, text: true } },
        limit: { context: 50000, output: 4000 },
        cost: { input: 3, output: 4, cache: { read: 0.5, write: 0 } },
      };
      return models;
    },
  },
});
"#;

/// Adds a model to those of the plugin before it.
const SECOND: &str = r#"
export const Second = async () => ({
  provider: {
    id: "groq",
    models: async (provider, context) => {
      if (context.auth !== undefined) throw new Error("the credential is not ours");
      return { ...provider.models, second: { ...provider.models["found"], name: "Second" } };
    },
  },
});
"#;

#[test]
fn plugins_change_the_models_of_a_provider_one_after_the_other() -> Result<()> {
    if !has_node() {
        return Ok(());
    }
    let scene = Scene::new(Script::new().text("Done."), &json!({}))?;
    let url = scene.stage.server.url();
    let mut groq = codewright_testkit::Project::config(&url)["provider"]["mock"].clone();
    groq["models"] = json!({"configured": {"name": "Configured"}});
    scene.configure(&json!({"provider": {"groq": groq}}))?;
    scene.user("plugin/a.js", FIRST)?;
    scene.user("plugin/b.js", SECOND)?;
    let failing = "export const C = async () => ({ provider: { id: 'groq', models: async () => { throw new Error('no luck'); } } });";
    scene.user("plugin/c.js", failing)?;
    let (server, url) = crate::support::serve(scene.program(&["serve"]))?;
    let models = || -> Result<Value> {
        let all = get(&url, "/config/providers")?;
        let mut all = all["providers"].as_array().into_iter().flatten();
        Ok(all.find(|provider| provider["id"] == "groq").context("no provider")?["models"].clone())
    };
    let found = || models().map(|models| models["found"]["name"].clone());
    crate::support::wait_until("the models of the plugins", || {
        found().is_ok_and(|name| name == "Found with nothing")
    })?;
    let listed = models()?;
    assert_eq!(listed["found"]["api"]["id"], "found-1");
    assert_eq!(
        (&listed["found"]["cost"]["input"], &listed["found"]["limit"]["context"]),
        (&json!(3), &json!(50000))
    );
    assert_eq!(listed["second"]["name"], "Second");
    // Plugins remove models of the catalog, but not those of the configuration.
    assert_eq!(listed["configured"]["name"], "Configured");
    let removed = scene.stage.project.read("REMOVED")?;
    ensure!(listed.get(&removed).is_none(), "{removed} is still there");
    crate::support::wait_until("the failure", || {
        get(&url, "/log?limit=1000")
            .is_ok_and(|log| log.to_string().contains("its list of models failed: no luck"))
    })?;

    let id = new_session(&url)?;
    let prompt = json!({
        "model": {"providerID": "groq", "modelID": "found"},
        "parts": [{"type": "text", "text": "go"}],
    });
    let (status, answer) = post(&url, &format!("/session/{id}/message"), &prompt)?;
    ensure!(status == 200, "{status}: {answer}");
    assert_eq!(scene.body(0)?["model"], "found-1");

    let key = json!({"type": "api", "key": "key-1"});
    assert_eq!(crate::access::with_body("PUT", &url, "/auth/groq", &key)?.0, 200);
    post(&url, &format!("/session/{id}/message"), &prompt)?;
    crate::support::wait_until("the models after the sign-in", || {
        found().is_ok_and(|name| name == "Found with key-1")
    })?;
    ensure!(models()?.get(&removed).is_none(), "{removed} is back");
    server.terminate()?;
    server.finish()?;
    Ok(())
}
