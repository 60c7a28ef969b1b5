//! What published plugins do, in the shapes that OpenCode accepts.

use anyhow::{Context as _, Result, ensure};
use codewright_testkit::{Project, Script, Turn};
use serde_json::{Value, json};

use super::{Scene, has_node, succeeded};
use crate::support::{check_has, get, new_session, post, serve};

/// A sign-in whose requests carry no key, because its `fetch` adds the credentials.
const KEYLESS: &str = r#"
export const Keyless = async () => ({
  auth: {
    provider: "groq",
    methods: [{
      type: "oauth",
      label: "Sign in",
      authorize: async (inputs) => ({
        url: "https://x.example/",
        instructions: inputs === undefined ? "nothing" : JSON.stringify(inputs),
        method: "auto",
        callback: async (...code) => ({ type: "success", access: "a" + code.length, refresh: "r", expires: Date.now() + 3600_000 }),
      }),
    }],
    loader: async (getAuth) => ({
      apiKey: "",
      fetch: async (input, init) => {
        const { access } = await getAuth();
        const path = new URL(String(input)).pathname.replace(/^.*\/chat/, "/chat");
        return fetch(process.env.ACME_URL + path, { ...init, headers: { ...init.headers, "x-token": access } });
      },
    }),
  },
});
"#;

#[test]
fn a_provider_whose_requests_a_plugin_sends_needs_no_key() -> Result<()> {
    if !has_node() {
        return Ok(());
    }
    let scene = Scene::new(Script::new().text("Without a key."), &json!({}))?;
    let url = scene.stage.server.url();
    let model = Project::config(&url)["provider"]["mock"]["models"].clone();
    scene.configure(&json!({"provider": {"groq": {"models": model}}}))?;
    scene.user("plugin/keyless.js", KEYLESS)?;
    let (server, base) = serve(scene.program(&["serve"]).env("ACME_URL", format!("{url}/v1")))?;
    for (body, expected) in [(json!({"method": 0, "inputs": {}}), "{}"), (json!({"method": 0}), "nothing")] {
        let (_, page) = post(&base, "/provider/groq/oauth/authorize", &body)?;
        assert_eq!(page["instructions"], expected, "{body}");
    }
    let (status, reply) = post(&base, "/provider/groq/oauth/callback", &json!({"method": 0}))?;
    assert_eq!((status, reply), (200, json!(true)));
    let id = new_session(&base)?;
    let prompt = json!({
        "model": {"providerID": "groq", "modelID": "plain-model"},
        "parts": [{"type": "text", "text": "go"}],
    });
    let (status, answer) = post(&base, &format!("/session/{id}/message"), &prompt)?;
    ensure!(status == 200, "{status}: {answer}");
    check_has(&answer.to_string(), &["Without a key."]);
    let requests = scene.stage.server.main_requests();
    let headers = &requests.first().context("no request")?.headers;
    assert_eq!(headers.get("x-token"), Some("a0"), "the callback got no code");
    assert_eq!(headers.get("user-agent"), Some("opencode/1.18.33"));
    server.terminate()?;
    server.finish()?;
    scene.stage.no_problems()
}

/// Adds agents with keys of its own, and replaces `sort` to choose their order.
const AGENTS: &str = r#"
const { sort } = Array.prototype;
const isOurs = (list) => list.some((item) => item?.name === "zeta");
export const Agents = async () => ({
  config: async (config) => {
    config.agent = {
      ...config.agent,
      alpha: { mode: "primary", prompt: "A", maxTokens: 77, thinking: { type: "enabled" }, order: 2, tools: { bash: false }, options: { kept: 1 }, maxSteps: 1 },
      zeta: { mode: "primary", prompt: "Z", order: 1 },
    };
    config.mode = { ...config.mode, older: { prompt: "O" } };
    config.tools = { ...config.tools, write: false };
    if (!process.env.SHIM) return;
    Array.prototype.sort = function (compare) {
      const first = (item) => (item.name === "zeta" ? 0 : 1);
      return sort.call(this, isOurs(this) ? (a, b) => first(a) - first(b) || compare(a, b) : compare);
    };
  },
});
"#;

#[test]
fn agents_of_a_plugin_are_as_its_hook_leaves_them() -> Result<()> {
    if !has_node() {
        return Ok(());
    }
    for (shim, expected) in [("", ["build", "alpha"]), ("1", ["zeta", "build"])] {
        let scene = Scene::new(Script::new().text("Done."), &json!({}))?;
        scene.user("plugin/agents.js", AGENTS)?;
        let (server, base) = serve(scene.program(&["serve"]).env("SHIM", shim))?;
        // The first answer has them already.
        let agents = get(&base, "/agent")?;
        let names: Vec<&str> =
            agents.as_array().into_iter().flatten().filter_map(|agent| agent["name"].as_str()).collect();
        assert_eq!(names.get(..2), Some(&expected[..]), "{names:?}");
        assert!(names.contains(&"zeta") && !names.contains(&"older"), "{names:?}");
        let alpha = agents.as_array().into_iter().flatten().find(|agent| agent["name"] == "alpha");
        let alpha = alpha.context("no agent")?;
        assert_eq!((&alpha["options"], alpha.get("steps")), (&json!({"kept": 1}), None), "{alpha}");
        let id = new_session(&base)?;
        let prompt = json!({"agent": "alpha", "parts": [{"type": "text", "text": "go"}]});
        let (status, answer) = post(&base, &format!("/session/{id}/message"), &prompt)?;
        ensure!(status == 200, "{status}: {answer}");
        let body = scene.body(0)?;
        for key in ["maxTokens", "thinking", "order", "maxSteps", "tools_of_agent"] {
            assert!(body.get(key).is_none(), "{key}: {body}");
        }
        assert_eq!(body["kept"], 1);
        let offered = scene.offered(0)?;
        assert!(offered.contains(&"bash".to_owned()) && offered.contains(&"write".to_owned()), "{offered:?}");
        server.terminate()?;
        server.finish()?;
        scene.stage.no_problems()?;
    }
    Ok(())
}

/// Returns values in the shapes that OpenCode accepts.
const SHAPES: &str = r#"
export const Shapes = async () => ({
  "experimental.chat.messages.transform": async (input, output) => {
    output.messages.at(-1).parts.push({ type: "text", text: "PART WITHOUT ID" }, null, { type: "nonsense" });
    output.messages.push({ info: { role: "user" }, parts: [{ type: "text", text: "MESSAGE WITHOUT ID" }] });
  },
  "experimental.chat.system.transform": async (input, output) => {
    output.system.push(5, null, "SYSTEM TEXT");
  },
  "chat.params": async (input, output) => {
    output.maxOutputTokens = undefined;
  },
  "chat.headers": async (input, output) => {
    output.headers["x-number"] = 5;
    output.headers["x-nothing"] = undefined;
  },
  "shell.env": async (input, output) => {
    output.env.OF_PLUGIN = 7;
    output.env.NOTHING = undefined;
  },
});
"#;

#[test]
fn hooks_may_return_what_opencode_accepts() -> Result<()> {
    if !has_node() {
        return Ok(());
    }
    let script = Script::new()
        .turn(Turn::steps().tool("bash", json!({"command": "echo \"[$OF_PLUGIN]\"", "description": "x"})))
        .text("Done.");
    let scene = Scene::new(script, &json!({}))?;
    scene.user("plugin/shapes.js", SHAPES)?;
    let done = succeeded(scene.run("go")?)?;
    check_has(&done.stdout, &["Done."]);
    let body = scene.body(0)?;
    let text = body["messages"].to_string();
    check_has(&text, &["PART WITHOUT ID", "MESSAGE WITHOUT ID", "SYSTEM TEXT"]);
    assert!(!text.contains("nonsense"), "{text}");
    assert!(body.get("max_tokens").is_none(), "the plugin removed the limit: {body}");
    check_has(&scene.body(1)?["messages"].to_string(), &["[7]"]);
    let requests = scene.stage.server.main_requests();
    let headers = &requests.first().context("no request")?.headers;
    assert_eq!((headers.get("x-number"), headers.get("x-nothing")), (Some("5"), None));
    Ok(())
}

#[test]
fn a_call_is_refused_with_the_words_of_the_plugin() -> Result<()> {
    if !has_node() {
        return Ok(());
    }
    let script = super::bash("echo x");
    let scene = Scene::new(script, &json!({}))?;
    scene.user(
        "plugin/guard.js",
        "export const G = async () => ({ 'tool.execute.before': async () => { throw new Error('not today'); } });",
    )?;
    succeeded(scene.run("go")?)?;
    let messages = scene.body(1)?["messages"].clone();
    let result = messages.as_array().and_then(|all| all.iter().find(|message| message["role"] == "tool"));
    assert_eq!(result.context("no result")?["content"], "not today");
    Ok(())
}

#[test]
fn the_name_opencode_has_the_version_of_the_interface() -> Result<()> {
    let scene = Scene::new(Script::new().text("Done."), &json!({}))?;
    let directory = scene.stage.project.home().join("bin");
    std::fs::create_dir_all(&directory)?;
    let link = directory.join("opencode");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_codewright"), &link)?;
    let link = link.to_str().context("not UTF-8")?;
    let done =
        codewright_testkit::Run::new(link, &scene.stage.project).args(["--version"]).finish()?.success()?;
    assert_eq!(done.stdout, "1.18.33\n");
    let (server, base) = serve(scene.program(&["serve"]))?;
    assert_eq!(get(&base, "/global/health")?, json!({"healthy": true, "version": "1.18.33"}));
    let (_, session) = post(&base, "/session", &json!({}))?;
    assert_eq!(session["version"], "1.18.33");
    server.terminate()?;
    server.finish()?;
    Ok(())
}

#[test]
fn programs_find_the_sessions_in_a_view_of_the_store() -> Result<()> {
    let scene = Scene::new(Script::new().text("An answer of the model."), &json!({}))?;
    succeeded(scene.run("a prompt of the user")?)?;
    let view = scene.stage.project.home().join(".local/share/opencode/opencode.db");
    let done = succeeded(scene.program(&["db", "view"]).finish()?)?;
    check_has(&done.stdout, &["1 sessions are in", "opencode.db"]);
    let text = std::fs::read(&view)?;
    ensure!(text.starts_with(b"SQLite format 3"), "not a database");
    // The reader of databases of OpenCode finds everything in it.
    let data = view.parent().context("no parent")?.display().to_string();
    let done =
        succeeded(scene.program(&["import", "--from", "opencode", "--data", &data, "--dry-run"]).finish()?)?;
    check_has(&done.stdout, &["1"]);
    let done = succeeded(scene.program(&["db", "view", "--remove"]).finish()?)?;
    check_has(&done.stdout, &["Removed"]);
    std::fs::write(&view, "of another program")?;
    let done = scene.program(&["db", "view"]).finish()?;
    check_has(&done.stderr, &["belongs to another program"]);
    assert_eq!(std::fs::read_to_string(&view)?, "of another program");
    Ok(())
}

#[test]
fn skills_are_downloaded_and_copies_outlive_their_server() -> Result<()> {
    let files = codewright_testkit::FileServer::start()?;
    let skill = "---\nname: far\ndescription: A far skill\n---\nFar text.";
    files.write(
        "skills/index.json",
        json!({"skills": [{"name": "far", "description": "x", "files": ["SKILL.md"]}]}).to_string(),
    )?;
    files.write("skills/far/SKILL.md", skill)?;
    files.write(
        "evil/index.json",
        json!({"skills": [{"name": "far", "files": ["../../../stolen"]}]}).to_string(),
    )?;
    let urls = ["skills/", "evil"].map(|path| format!("http://{}/{path}", files.host()));
    let scene = Scene::new(Script::new().text("Done."), &json!({"skills": {"urls": urls}}))?;
    let (server, base) = serve(scene.program(&["serve"]))?;
    let skills = get(&base, "/skill")?;
    let far: Vec<&Value> =
        skills.as_array().into_iter().flatten().filter(|skill| skill["name"] == "far").collect();
    assert_eq!(far.len(), 1, "{skills}");
    assert_eq!(far[0]["content"].as_str().map(str::trim), Some("Far text."));
    let location = far[0]["location"].as_str().context("no location")?;
    ensure!(location.contains(".cache/codewright/skills/"), "{location}");
    server.terminate()?;
    server.finish()?;
    // The copy is used, and the other address is refused again.
    let before = files.requests().len();
    let done = succeeded(scene.run("go")?)?;
    check_has(&done.stderr, &["is outside of the skill"]);
    check_has(&scene.body(0)?.to_string(), &["A far skill"]);
    let asked = files.requests().split_off(before);
    assert!(asked.iter().all(|request| request.contains("/evil/")), "{asked:?}");
    Ok(())
}

/// Agents that a `config` hook puts before those of the configuration, as oh-my-opencode does.
const ADDED_AGENTS: &str = r#"
export const Agents = async () => ({
  config: async (config) => {
    config.agent = {
      "Sisyphus (Ultraworker)": { mode: "primary", prompt: "s" },
      "\uff21x": { prompt: "a" },
      "\u{1f600}x": { prompt: "b" },
      atlas: { mode: "subagent", prompt: "a" },
      "10": { prompt: "t" },
      "2": { prompt: "t" },
      ...config.agent,
      build: { ...config.agent?.build, mode: "subagent", hidden: true },
      zeta: { prompt: "z" },
    };
    config.default_agent = "Sisyphus (Ultraworker)";
  },
});
"#;

#[test]
fn agents_of_a_config_hook_come_in_the_order_of_the_original() -> Result<()> {
    if !has_node() {
        return Ok(());
    }
    let scene =
        Scene::new(Script::new(), &json!({"agent": {"mine": {"prompt": "m"}, "Mine": {"prompt": "m"}}}))?;
    scene.user("plugin/agents.js", ADDED_AGENTS)?;
    let (server, base) = serve(scene.program(&["serve"]))?;
    let agents = get(&base, "/agent")?;
    let names: Vec<&str> =
        agents.as_array().into_iter().flatten().filter_map(|agent| agent["name"].as_str()).collect();
    // Recorded from OpenCode 1.18.33: the default agent, then by UTF-16 units.
    assert_eq!(
        names,
        [
            "Sisyphus (Ultraworker)",
            "10",
            "2",
            "Mine",
            "atlas",
            "build",
            "compaction",
            "explore",
            "general",
            "mine",
            "plan",
            "summary",
            "title",
            "zeta",
            "\u{1f600}x",
            "\u{ff21}x",
        ]
    );
    server.terminate()?;
    server.finish()?;
    Ok(())
}
