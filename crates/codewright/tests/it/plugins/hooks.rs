//! Every hook: its moment, its payload and its effect.

use anyhow::Result;
use codewright_testkit::{Script, Turn};
use serde_json::{Value, json};

use super::{Scene, bash, has_node, succeeded};
use crate::support::{check_has, keys};

const EVERY_HOOK: &str = include_str!("every-hook.ts");
/// What OpenCode gave to each hook.
const RECORDED: &str = include_str!("plugin-hooks.json");

#[test]
fn every_hook_of_a_turn_runs_at_its_recorded_moment_and_has_its_effect() -> Result<()> {
    if !has_node() {
        return Ok(());
    }
    let script = bash("echo $FROM_PLUGIN BEFORE");
    let scene = Scene::new(script, &json!({"plugin": [["./every.ts", {"greeting": "hi"}]]}))?;
    let path = scene.stage.project.home().join(".config/opencode/every.ts");
    std::fs::write(path, EVERY_HOOK)?;
    // With a title there is no request for one, which would call hooks too.
    let run = scene.program(&["run", "--title", "Named", "say ORIGINAL words"]);
    succeeded(run.finish()?)?;

    let calls = scene.calls()?;
    let is_hook = |call: &&Value| {
        !matches!(call["name"].as_str(), Some("event" | "tool.definition" | "permission.ask"))
    };
    let names: Vec<&str> = calls.iter().filter(is_hook).filter_map(|call| call["name"].as_str()).collect();
    assert_eq!(
        names,
        [
            "INIT",
            "config",
            "chat.message",
            "experimental.chat.messages.transform",
            "experimental.chat.system.transform",
            "chat.params",
            "chat.headers",
            "tool.execute.before",
            "shell.env",
            "tool.execute.after",
            "experimental.chat.messages.transform",
            "experimental.chat.system.transform",
            "chat.params",
            "chat.headers",
            "experimental.text.complete",
            "dispose",
        ]
    );
    let defined = calls.iter().filter(|call| call["name"] == "tool.definition").count();
    assert!(defined >= 2 * scene.offered(0)?.len(), "{defined}");
    let first = |name: &str| calls.iter().find(|call| call["name"] == name).cloned().unwrap_or_default();
    assert_eq!(first("INIT")["input"]["options"], json!({"greeting": "hi"}));

    let body = scene.body(0)?;
    let text = body.to_string();
    check_has(&text, &["added by chat.message", "added by system.transform", "say TRANSFORMED words"]);
    check_has(&text, &["(described by the plugin)"]);
    assert_eq!(body["temperature"], 0.25);
    let request = &scene.stage.server.main_requests()[0];
    assert_eq!(request.headers.get("x-plugin"), Some("every-hook"));
    let results = scene.stage.results(1)?.join("");
    check_has(&results, &["from-plugin CHANGED", "added by tool.execute.after"]);
    assert!(scene.offered(0)?.contains(&"describe".to_owned()));
    check_payloads(&calls);
    // The command prints a text while it arrives. The stored one is that of the plugin.
    check_has(&serde_json::to_string(&scene.stage.stored()?)?, &["Finished."]);
    scene.stage.no_problems()
}

/// Compares the payloads with those that OpenCode gave: each recorded key must be there.
fn check_payloads(calls: &[Value]) {
    let recorded: Value = serde_json::from_str(RECORDED).unwrap();
    let observed = recorded["observed"].as_object().unwrap();
    for name in [
        "chat.message",
        "chat.params",
        "chat.headers",
        "tool.definition",
        "tool.execute.before",
        "tool.execute.after",
        "shell.env",
        "experimental.chat.messages.transform",
        "experimental.chat.system.transform",
        "experimental.text.complete",
    ] {
        let Some(expected) = observed.get(name) else { panic!("{name} was not recorded") };
        let call = calls.iter().find(|call| call["name"] == name).unwrap_or_else(|| panic!("{name}"));
        for side in ["input", "output"] {
            let depth = if name.starts_with("tool.execute") { 2 } else { 1 };
            let missing = missing(&expected[side], &call[side], depth);
            assert!(missing.is_empty(), "{name}: {missing:?}\n{call}");
        }
    }
}

/// The recorded keys that are missing, down to a depth. `undefined` means that a key may be missing.
fn missing(expected: &Value, given: &Value, depth: usize) -> Vec<String> {
    let Some(expected) = expected.as_object().filter(|_| depth > 0) else { return Vec::new() };
    let mut faults = Vec::new();
    for (key, value) in expected {
        let is_optional = value.as_str().is_some_and(|kind| kind.contains("undefined"));
        match given.get(key) {
            None if is_optional => {}
            None => faults.push(key.clone()),
            Some(given) => {
                let below = missing(value, given, depth - 1);
                faults.extend(below.into_iter().map(|below| format!("{key}.{below}")));
            }
        }
    }
    faults
}

#[test]
fn plugins_change_a_value_one_after_the_other() -> Result<()> {
    if !has_node() {
        return Ok(());
    }
    let scene = Scene::new(Script::new().text("Done."), &json!({}))?;
    let plugin = |sign: &str| {
        format!(
            "export const P = async () => ({{ 'chat.headers': async (i, o) => {{ o.headers['x-order'] = (o.headers['x-order'] ?? '') + '{sign}'; }} }});"
        )
    };
    for name in ["a", "b", "c"] {
        scene.user(&format!("plugin/{name}.js"), &plugin(name))?;
    }
    succeeded(scene.run("go")?)?;
    let request = &scene.stage.server.main_requests()[0];
    assert_eq!(request.headers.get("x-order"), Some("abc"));
    Ok(())
}

#[test]
fn a_plugin_forbids_a_call_with_an_error() -> Result<()> {
    if !has_node() {
        return Ok(());
    }
    let scene = Scene::new(bash("touch RAN"), &json!({}))?;
    let guard = "export const Guard = async () => ({ 'tool.execute.before': async (input, output) => {\n  if (output.args.command.includes('RAN')) throw new Error('forbidden by the guard');\n} });";
    scene.user("plugin/guard.js", guard)?;
    let done = succeeded(scene.run("go")?)?;
    check_has(&scene.stage.results(1)?.join(""), &["forbidden by the guard"]);
    assert!(!scene.stage.project.path("RAN").exists());
    assert!(!done.stderr.contains("the plugin"), "{}", done.stderr);
    Ok(())
}

#[test]
fn a_plugin_answers_permission_requests_only_more_strictly_unless_the_user_lets_it() -> Result<()> {
    if !has_node() {
        return Ok(());
    }
    let plugin = |status: &str| {
        format!(
            "export const P = async () => ({{ 'permission.ask': async (i, o) => {{ if (i.type === 'bash') o.status = '{status}'; }} }});"
        )
    };
    for (status, rule, grant, expected) in [
        ("allow", "ask", json!([]), false),
        ("allow", "ask", json!(["guard"]), true),
        ("allow", "deny", json!(["guard"]), false),
        ("deny", "allow", json!([]), false),
        ("ask", "allow", json!([]), false),
        ("allow", "allow", json!([]), true),
    ] {
        let more = json!({"permission": {"bash": rule}, "plugin_host": {"grant": grant}});
        let scene = Scene::new(bash("touch RAN"), &more)?;
        scene.user("plugin/guard.js", &plugin(status))?;
        scene.run("go")?;
        assert_eq!(scene.stage.project.path("RAN").exists(), expected, "{status} {rule} {grant}");
    }
    Ok(())
}

#[test]
fn the_beginning_of_requests_stays_the_same_with_a_plugin() -> Result<()> {
    if !has_node() {
        return Ok(());
    }
    let script = Script::new()
        .turn(Turn::steps().tool("bash", json!({"command": "true", "description": "x"})))
        .turn(Turn::steps().tool("bash", json!({"command": "true", "description": "y"})))
        .text("Done.");
    let scene = Scene::new(script, &json!({}))?;
    scene.user("plugin/every.ts", EVERY_HOOK)?;
    succeeded(scene.run("go")?)?;
    let bodies = [scene.body(0)?, scene.body(1)?, scene.body(2)?];
    for later in &bodies[1..] {
        assert_eq!(keys(&bodies[0]), keys(later));
        assert_eq!(bodies[0]["tools"], later["tools"]);
        let before = bodies[0]["messages"].as_array().unwrap();
        let after = later["messages"].as_array().unwrap();
        assert_eq!(before[..], after[..before.len()]);
    }
    Ok(())
}

#[test]
fn a_guard_that_does_not_end_refuses_every_call_and_is_named() -> Result<()> {
    if !has_node() {
        return Ok(());
    }
    for body in ["() => new Promise(() => {})", "async () => { for (;;) {} }"] {
        let call = || Turn::steps().tool("bash", json!({"command": "touch RAN", "description": "x"}));
        let script = Script::new().turn(call()).turn(call()).text("Done.");
        let scene = Scene::new(script, &json!({"plugin_host": {"timeout": 1}}))?;
        scene.user(
            "plugin/guard.js",
            &format!("export const G = async () => ({{ 'tool.execute.before': {body} }});"),
        )?;
        scene.user(
            "plugin/later.js",
            "import { writeFileSync } from 'node:fs';\nexport const L = async (ctx) => ({ 'tool.execute.before': async () => { writeFileSync(ctx.directory + '/LATER', ''); } });",
        )?;
        let done = succeeded(scene.run("go")?)?;
        let is_blocked = body.contains("for");
        check_has(&scene.stage.results(1)?.join(""), &["The plugin guard did not allow the call"]);
        check_has(&done.stderr, &["guard: "]);
        // A plugin that blocks the process is left out after its first call.
        if !is_blocked {
            check_has(&scene.stage.results(2)?.join(""), &["The plugin guard did not allow the call"]);
            assert!(!scene.stage.project.path("RAN").exists());
            assert!(
                !scene.stage.project.path("LATER").exists(),
                "a later plugin must not act on a refused call"
            );
        }
    }
    Ok(())
}

#[test]
fn failing_hooks_and_invalid_headers_are_reported_with_the_name_of_the_plugin() -> Result<()> {
    if !has_node() {
        return Ok(());
    }
    for (body, expected) in [
        ("'tool.execute.after': async () => { throw new Error('no way') }", "no way"),
        ("'chat.params': async () => { throw new Error('no params') }", "no params"),
        ("event: async () => { throw new Error('no event') }", "no event"),
        (
            "'chat.headers': async (i, o) => { o.headers['x-note'] = 'a\\nb'; o.headers['x-good'] = 'g'; }",
            "\"x-note\" is left out",
        ),
        (
            "'chat.headers': async (i, o) => { o.headers['x note'] = 'a'; o.headers['x-good'] = 'g'; }",
            "\"x note\" is left out",
        ),
    ] {
        let scene = Scene::new(bash("echo works"), &json!({}))?;
        scene.user("plugin/aaa.js", "export const A = async () => ({ 'chat.headers': async () => {} });")?;
        scene.user("plugin/culprit.js", &format!("export const P = async () => ({{ {body} }});"))?;
        let done = succeeded(scene.run("go")?)?;
        check_has(&scene.stage.results(1)?.join(""), &["works"]);
        let named = done.stderr.lines().filter(|line| line.contains("culprit") && line.contains(expected));
        assert_eq!(named.count(), 1, "{expected}: {}", done.stderr);
        assert!(!done.stderr.contains("aaa"), "{}", done.stderr);
        if body.contains("x-good") {
            let request = &scene.stage.server.main_requests()[0];
            assert_eq!(request.headers.get("x-good"), Some("g"));
        }
    }
    Ok(())
}
