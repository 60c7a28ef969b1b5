//! Plugins that cannot be loaded, fail, block, crash or grow.

use anyhow::{Result, ensure};
use codewright_testkit::Script;
use serde_json::json;

use super::{Scene, bash, complaints, has_node, succeeded};
use crate::support::{check_has, get, new_session, post, prompt, wait_until};

/// A plugin that works, to show that everything else does.
const GOOD: &str =
    "export const Good = async () => ({ 'shell.env': async (i, o) => { o.env.GOOD = 'good-one'; } });";

#[test]
fn each_broken_plugin_is_named_once_with_its_place_and_the_turn_goes_on() -> Result<()> {
    if !has_node() {
        return Ok(());
    }
    let broken = [
        ("syntax.ts", "export const A: number = 1;\nexport const B = (1;\n", "syntax.ts:2"),
        ("empty.js", "export const VERSION = 1;", "exports no plugin"),
        ("throws.js", "\nexport const A = async () => {\n  throw new Error('no luck');\n};", "no luck"),
        (
            "missing.js",
            "import x from 'no-such-package-here';\nexport const A = async () => ({});",
            "no-such-package-here",
        ),
        ("promise.js", "export const A = async () => { await Promise.reject('just text'); };", "just text"),
    ];
    let scene = Scene::new(bash("echo $GOOD"), &json!({"plugin": ["./gone.ts", "git+https://x/y.git"]}))?;
    for (name, text, _) in broken {
        scene.user(&format!("plugin/{name}"), text)?;
    }
    scene.user("plugin/good.js", GOOD)?;
    scene.user("tool/nothing.js", "export const nothing = 1;")?;
    let done = succeeded(scene.run("go")?)?;
    check_has(&scene.stage.results(1)?.join(""), &["good-one"]);
    let complaints = complaints(&done);
    for (name, _, expected) in broken {
        let stem = name.split('.').next().unwrap_or_default();
        let of = complaints.iter().filter(|line| line.contains(&format!("the plugin {stem}:")));
        let of: Vec<_> = of.collect();
        ensure!(of.len() == 1 && of[0].contains(expected) && of[0].contains(name), "{name}: {complaints:#?}");
    }
    ensure!(complaints.iter().any(|line| line.contains("nothing.js")), "{complaints:#?}");
    Ok(())
}

#[test]
fn hooks_that_fail_or_return_unusable_values_change_nothing() -> Result<()> {
    if !has_node() {
        return Ok(());
    }
    let scene = Scene::new(bash("echo works"), &json!({}))?;
    let text = "export const Bad = async () => ({
  'chat.params': async () => { throw new Error('broken params'); },
  'chat.headers': async (i, o) => { o.headers = 'text'; },
  'experimental.chat.system.transform': async (i, o) => { o.system = [1, null, {}]; },
  'experimental.chat.messages.transform': async (i, o) => { o.messages = [{ nonsense: true }]; },
  'chat.message': async (i, o) => { o.parts = 'no list'; o.self = o; },
  'tool.execute.after': async (i, o) => { o.output = 'x'.repeat(40 * 1024 * 1024); },
  'experimental.text.complete': async (i, o) => { o.text = () => 1; },
});";
    scene.user("plugin/bad.js", text)?;
    let done = succeeded(scene.run("go")?)?;
    check_has(&scene.stage.results(1)?.join(""), &["works"]);
    check_has(&done.stdout, &["Done."]);
    scene.stage.no_problems()
}

#[test]
fn a_plugin_that_blocks_is_left_out_and_the_turn_goes_on() -> Result<()> {
    if !has_node() {
        return Ok(());
    }
    for (name, body) in [
        ("endless", "'chat.params': async () => { for (;;) {} }"),
        ("silent", "'chat.params': () => new Promise(() => {})"),
    ] {
        let scene = Scene::new(bash("echo $GOOD"), &json!({"plugin_host": {"timeout": 1}}))?;
        scene.user(&format!("plugin/{name}.js"), &format!("export const P = async () => ({{ {body} }});"))?;
        let done = succeeded(scene.run("go")?)?;
        check_has(&done.stdout, &["Done."]);
        let is_named = complaints(&done).iter().filter(|line| line.contains(name)).count();
        // A hook that fails is shown by a toast, and its plugin stays.
        ensure!(name == "silent" || is_named == 1, "{name}: {}", done.stderr);
    }
    Ok(())
}

#[test]
fn a_plugin_that_blocks_with_an_event_is_left_out() -> Result<()> {
    if !has_node() {
        return Ok(());
    }
    let scene = Scene::new(Script::new().text("Done."), &json!({"plugin_host": {"timeout": 1}}))?;
    scene.user(
        "plugin/endless.js",
        "export const P = async () => ({ event: async () => { for (;;) {} } });",
    )?;
    let (server, url) = crate::support::serve(scene.program(&["serve"]))?;
    let id = new_session(&url)?;
    post(&url, &format!("/session/{id}/message"), &prompt("go"))?;
    wait_until("the report", || {
        get(&url, "/log?limit=1000").is_ok_and(|log| {
            let log = log.to_string();
            log.contains("endless.js") && log.contains("left out")
        })
    })?;
    server.terminate()?;
    server.finish()?;
    Ok(())
}

#[test]
fn a_plugin_that_blocks_while_it_is_loaded_is_left_out() -> Result<()> {
    if !has_node() {
        return Ok(());
    }
    let scene = Scene::new(bash("echo $GOOD"), &json!({}))?;
    scene.user("plugin/aaa.js", "for (;;) {}")?;
    scene.user("plugin/good.js", GOOD)?;
    let done = succeeded(scene.run("go")?)?;
    check_has(&scene.stage.results(1)?.join(""), &["good-one"]);
    let complaints = complaints(&done);
    ensure!(
        complaints.iter().any(|line| line.contains("aaa.js") && line.contains("left out")),
        "{complaints:#?}"
    );
    Ok(())
}

#[test]
fn a_plugin_that_crashes_or_grows_is_left_out() -> Result<()> {
    if !has_node() {
        return Ok(());
    }
    for (name, body) in [
        ("crash", "process.kill(process.pid, 'SIGKILL')"),
        ("grow", "const all = []; for (;;) all.push(new Array(1e6).fill(all.length))"),
    ] {
        let script = bash("echo $GOOD").text("Again.");
        let scene = Scene::new(script, &json!({"plugin_host": {"memory": 64}}))?;
        let text = format!("export const P = async () => ({{ 'chat.params': async () => {{ {body}; }} }});");
        scene.user(&format!("plugin/{name}.js"), &text)?;
        scene.user("plugin/zgood.js", GOOD)?;
        let (server, url) = crate::support::serve(scene.program(&["serve"]))?;
        let id = new_session(&url)?;
        post(&url, &format!("/session/{id}/message"), &prompt("go"))?;
        ensure!(scene.stage.server.main_requests().len() == 2, "{name}: the turn ended early");
        // The other plugins run again at the next prompt.
        post(&url, &format!("/session/{id}/message"), &prompt("again"))?;
        let log = get(&url, "/log?limit=1000")?.to_string();
        ensure!(log.contains(name) && log.contains("left out"), "{name}: {log}");
        server.terminate()?;
        server.finish()?;
    }
    Ok(())
}

#[test]
fn nothing_of_a_plugin_survives_the_server() -> Result<()> {
    if !has_node() {
        return Ok(());
    }
    let scene = Scene::new(Script::new().text("Done."), &json!({}))?;
    let text = "import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
export const P = async ({ directory }) => {
  const child = spawn('sleep', ['1000'], { detached: true, stdio: 'ignore' });
  child.unref();
  process.on('SIGTERM', () => {});
  writeFileSync(directory + '/pids', process.pid + ' ' + child.pid);
  setInterval(() => {}, 1000);
  return {};
};";
    scene.user("plugin/stays.js", text)?;
    let (server, url) = crate::support::serve(scene.program(&["serve"]))?;
    let id = new_session(&url)?;
    post(&url, &format!("/session/{id}/message"), &prompt("go"))?;
    let pids: Vec<String> = scene.stage.project.read("pids")?.split(' ').map(str::to_owned).collect();
    let lives = |pid: &String| {
        std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
    };
    if cfg!(target_os = "linux") {
        ensure!(pids.iter().all(&lives), "{pids:?}");
    }
    // Dropping a program kills it with SIGKILL.
    drop(server);
    if cfg!(target_os = "linux") {
        wait_until("the end of the plugins", || !pids.iter().any(&lives))?;
    }
    Ok(())
}

#[test]
fn without_plugins_nothing_is_started() -> Result<()> {
    let scene = Scene::new(bash("echo plain"), &json!({}))?;
    succeeded(scene.run("go")?)?;
    let cache = scene.stage.project.home().join(".cache/codewright/plugin-host");
    assert!(!cache.exists());
    let pure = Scene::new(bash("echo pure"), &json!({}))?;
    pure.user("plugin/good.js", GOOD)?;
    succeeded(pure.program(&["run", "--pure", "go"]).finish()?)?;
    assert!(!pure.stage.project.home().join(".cache/codewright/plugin-host").exists());
    Ok(())
}
