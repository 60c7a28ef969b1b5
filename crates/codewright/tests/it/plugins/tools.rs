//! Tools of plugins and tool files.

use anyhow::{Context, Result, ensure};
use codewright_testkit::{Script, Turn};
use serde_json::{Value, json};

use super::{Scene, has_node, succeeded};
use crate::support::{check_has, get, new_session, post, prompt, wait_until};

const MATH: &str = r#"import { tool } from "@opencode-ai/plugin";
export default tool({
  description: "Multiplies two numbers",
  args: { a: tool.schema.number(), b: tool.schema.number() },
  async execute(args) { return String(args.a * args.b); },
});
export const add = tool({
  description: "Adds two numbers",
  args: { a: tool.schema.number(), b: tool.schema.number() },
  async execute(args, context) {
    context.metadata({ title: "adding", metadata: { step: 1 } });
    return { title: "sum", output: String(args.a + args.b), metadata: { exact: true } };
  },
});
"#;

fn call(tool: &str, args: Value) -> Script {
    Script::new().turn(Turn::steps().tool(tool, args)).text("Done.")
}

#[test]
fn tool_files_are_offered_described_and_run() -> Result<()> {
    if !has_node() {
        return Ok(());
    }
    let script = Script::new()
        .turn(Turn::steps().tool("math", json!({"a": 6, "b": 7})))
        .turn(Turn::steps().tool("math_add", json!({"a": 6, "b": 7})))
        .text("Done.");
    let scene = Scene::new(script, &json!({}))?;
    scene.user("tool/math.ts", MATH)?;
    let server = scene.program(&["serve"]);
    let (server, url) = crate::support::serve(server)?;
    let ids = get(&url, "/experimental/tool/ids")?;
    assert!(
        ids.as_array().is_some_and(|ids| ids.contains(&json!("math")) && ids.contains(&json!("math_add")))
    );
    let described = get(&url, "/experimental/tool?provider=mock&model=plain-model")?;
    let tools = described.as_array().context("no list")?;
    let math = tools.iter().find(|tool| tool["id"] == "math").context("no math")?;
    assert_eq!(math["description"], "Multiplies two numbers");
    assert_eq!(math["parameters"]["properties"]["a"]["type"], "number");
    let id = new_session(&url)?;
    post(&url, &format!("/session/{id}/message"), &prompt("go"))?;
    assert_eq!(scene.stage.results(2)?, ["42", "13"]);
    let messages = get(&url, &format!("/session/{id}/message"))?;
    let parts = messages.as_array().into_iter().flatten().flat_map(|message| message["parts"].as_array());
    let sum = parts.flatten().find(|part| part["tool"] == "math_add").context("no call")?;
    assert_eq!((&sum["state"]["title"], &sum["state"]["metadata"]["exact"]), (&json!("sum"), &json!(true)));
    server.terminate()?;
    server.finish()?;
    scene.stage.no_problems()
}

#[test]
fn rules_and_agents_decide_about_tools_by_name() -> Result<()> {
    if !has_node() {
        return Ok(());
    }
    for (more, is_offered, ran) in [
        (json!({"permission": {"math": "deny"}}), false, false),
        (json!({"permission": {"math": "ask"}}), true, false),
        (json!({"agent": {"build": {"tools": {"math": false}}}}), false, false),
        (json!({"tools": {"math": false}}), false, false),
        (json!({}), true, true),
    ] {
        let scene = Scene::new(call("math", json!({"a": 6, "b": 7})), &more)?;
        scene.user("tools/math.ts", MATH)?;
        scene.run("go")?;
        assert_eq!(scene.offered(0)?.contains(&"math".to_owned()), is_offered, "{more}");
        let results = scene.stage.results(1).unwrap_or_default();
        assert_eq!(results.contains(&"42".to_owned()), ran, "{more} {results:?}");
    }
    Ok(())
}

#[test]
fn a_tool_asks_for_permission_returns_files_and_is_truncated() -> Result<()> {
    if !has_node() {
        return Ok(());
    }
    let text = r#"export default {
  description: "Asks", args: {},
  async execute(args, context) {
    await context.ask({ permission: "external", patterns: ["thing"], always: ["*"], metadata: {} });
    return { output: "x\n".repeat(5000), attachments: [{ type: "file", mime: "image/png", url: "data:image/png;base64,iVBORw0KGgo=" }] };
  },
};"#;
    for (rule, expected) in [("allow", true), ("deny", false)] {
        let scene = Scene::new(call("asks", json!({})), &json!({"permission": {"external": rule}}))?;
        scene.user("tool/asks.js", text)?;
        let done = scene.program(&["run", "--format", "json", "go"]).finish()?;
        let results = scene.stage.results(1)?.join("");
        assert_eq!(results.contains("x\nx\n"), expected, "{results:.200}");
        if expected {
            assert!(results.len() < 8000, "{}", results.len());
            check_has(&done.stdout, &["image/png"]);
        }
    }
    Ok(())
}

#[test]
fn files_that_a_tool_changed_are_undone() -> Result<()> {
    if !has_node() {
        return Ok(());
    }
    let text = r#"import { writeFileSync } from "node:fs";
import { join } from "node:path";
export default { description: "Writes", args: {}, async execute(args, context) { writeFileSync(join(context.directory, "README.md"), "changed\n"); return "ok"; } };"#;
    let scene = Scene { stage: crate::support::Stage::git(call("writes", json!({})))? };
    scene.configure(&json!({}))?;
    scene.user("tool/writes.js", text)?;
    let before = scene.stage.project.read("README.md")?;
    let (server, url) = crate::support::serve(scene.program(&["serve"]))?;
    let id = new_session(&url)?;
    post(&url, &format!("/session/{id}/message"), &prompt("go"))?;
    assert_eq!(scene.stage.project.read("README.md")?, "changed\n");
    let messages = get(&url, &format!("/session/{id}/message"))?;
    let first = json!({"messageID": messages[0]["info"]["id"]});
    post(&url, &format!("/session/{id}/revert"), &first)?;
    assert_eq!(scene.stage.project.read("README.md")?, before);
    server.terminate()?;
    server.finish()?;
    Ok(())
}

/// The guide, whose examples a reader copies.
const GUIDE: &str = include_str!("../../../../../docs/guides/plugins.md");

#[test]
fn the_walkthrough_of_the_guide_works() -> Result<()> {
    if !has_node() {
        return Ok(());
    }
    let script = Script::new()
        .turn(Turn::steps().tool("roman", json!({"number": 1984})))
        .turn(Turn::steps().tool("read", json!({"filePath": "secret.env"})))
        .turn(Turn::steps().tool("bash", json!({"command": "echo in $PROJECT", "description": "x"})))
        .text("Done.")
        .text("Soon.");
    let scene = Scene::new(script, &json!({}))?;
    scene.stage.project.write("secret.env", "KEY=1")?;
    let mut count = 0;
    for part in GUIDE.split("<!-- test: ").skip(1) {
        let (name, rest) = part.split_once(" -->").context("no name")?;
        let code = rest.split("```").nth(1).and_then(|block| block.split_once('\n')).context("no code")?.1;
        scene.user(name, code)?;
        count += 1;
    }
    assert_eq!(count, 3);
    succeeded(scene.run("go")?)?;
    let results = scene.stage.results(3)?;
    assert_eq!(results[0], "MCMLXXXIV");
    check_has(&results[1], &["Do not read .env files."]);
    check_has(&results[2], &[&format!("in {}", scene.stage.project.directory().display())]);
    succeeded(scene.program(&["run", "--command", "rhyme", "moon"]).finish()?)?;
    check_has(&scene.body(4)?.to_string(), &["You write poems.", "Rhyme on moon"]);
    Ok(())
}

#[test]
fn an_aborted_call_aborts_its_tool() -> Result<()> {
    if !has_node() {
        return Ok(());
    }
    let text = r#"import { writeFileSync } from "node:fs";
import { join } from "node:path";
export default { description: "Waits", args: {}, execute(args, context) {
  writeFileSync(join(context.directory, "started"), "");
  return new Promise((_, reject) => context.abort.addEventListener("abort", () => { writeFileSync(join(context.directory, "aborted"), ""); reject(new Error("aborted")); }));
} };"#;
    let scene = Scene::new(call("waits", json!({})), &json!({}))?;
    scene.user("tool/waits.js", text)?;
    let (server, url) = crate::support::serve(scene.program(&["serve"]))?;
    let id = new_session(&url)?;
    post(&url, &format!("/session/{id}/prompt_async"), &prompt("go"))?;
    let has = |name: &str| scene.stage.project.path(name).exists();
    wait_until("the start of the tool", || has("started"))?;
    post(&url, &format!("/session/{id}/abort"), &json!({}))?;
    wait_until("the end of the tool", || has("aborted"))?;
    server.terminate()?;
    server.finish()?;
    Ok(())
}

#[test]
fn a_tool_of_the_user_replaces_a_built_in_one() -> Result<()> {
    if !has_node() {
        return Ok(());
    }
    let scene = Scene::new(call("read", json!({"filePath": "a"})), &json!({}))?;
    let text = r#"export default { description: "Own", args: { filePath: { type: "string" } }, execute: async () => "own answer" };"#;
    scene.user("tool/read.js", text)?;
    succeeded(scene.run("go")?)?;
    assert_eq!(scene.stage.results(1)?, ["own answer"]);
    let offered = scene.offered(0)?;
    assert_eq!(offered.iter().filter(|name| *name == "read").count(), 1);
    Ok(())
}

#[test]
fn workspace_adapters_are_listed() -> Result<()> {
    if !has_node() {
        return Ok(());
    }
    let scene = Scene::new(Script::new(), &json!({}))?;
    let plugin = "export const P = async ({ experimental_workspace }) => {
      experimental_workspace.register('folder', { name: 'Folder', description: 'A folder' });
      experimental_workspace.register('odd');
      return {};
    };";
    scene.user("plugin/workspaces.js", plugin)?;
    let (server, url) = crate::support::serve(scene.program(&["serve"]))?;
    let adapters = get(&url, "/experimental/workspace/adapter")?;
    let expected = json!([
        {"type": "worktree", "name": "Worktree", "description": "Create a git worktree"},
        {"type": "folder", "name": "Folder", "description": "A folder"},
        {"type": "odd", "name": "", "description": ""},
    ]);
    ensure!(adapters == expected, "{adapters}");
    ensure!(get(&url, "/experimental/workspace")? == json!([]), "there is a workspace");
    server.terminate()?;
    server.finish()?;
    Ok(())
}
