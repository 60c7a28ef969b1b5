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
