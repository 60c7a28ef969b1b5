//! The fixture with every hook on each runtime that is installed. `CODEWRIGHT_TEST_BUN` and `CODEWRIGHT_TEST_DENO` name
//! programs that are not on the path.

use std::os::unix::fs::symlink;
use std::path::PathBuf;

use anyhow::{Context as _, Result, ensure};
use serde_json::json;

use super::{Scene, bash, succeeded};
use crate::support::check_has;

const EVERY_HOOK: &str = include_str!("every-hook.ts");

/// Returns the path of a runtime. Prints why the test is skipped otherwise.
#[expect(clippy::print_stderr, reason = "a skipped test says why")]
#[expect(clippy::disallowed_methods, reason = "a test reads the environment of the developer")]
fn find(name: &str) -> Option<PathBuf> {
    let named = std::env::var_os(format!("CODEWRIGHT_TEST_{}", name.to_uppercase())).map(PathBuf::from);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut all = named.into_iter().chain(std::env::split_paths(&path).map(|directory| directory.join(name)));
    let found = all.find(|path| path.is_file());
    if found.is_none() {
        eprintln!("skipped: {name} is not installed");
    }
    found
}

fn works_with(name: &str) -> Result<()> {
    let Some(program) = find(name) else { return Ok(()) };
    let scene = Scene::new(bash("echo $FROM_PLUGIN BEFORE"), &json!({"plugin_host": {"runtime": name}}))?;
    scene.user("plugin/every.ts", EVERY_HOOK)?;
    let programs = scene.stage.project.home().join("programs");
    std::fs::create_dir_all(&programs)?;
    symlink(program.canonicalize()?, programs.join(name))?;
    let path = format!("{}:/usr/bin:/bin", programs.display());
    let run = scene.program(&["run", "--title", "T", "say ORIGINAL words"]).env("PATH", path);
    succeeded(run.finish()?)?;
    let body = scene.body(0)?.to_string();
    check_has(
        &body,
        &["added by chat.message", "say TRANSFORMED words", "(described by the plugin)", "\"describe\""],
    );
    let results = scene.stage.results(1)?.join("");
    check_has(&results, &["from-plugin CHANGED", "added by tool.execute.after"]);
    let calls = scene.calls()?;
    let last = calls.last().context("no calls")?;
    ensure!(last["name"] == "dispose", "{last}");
    scene.stage.no_problems()
}

#[test]
fn every_hook_works_with_bun() -> Result<()> {
    works_with("bun")
}

#[test]
fn every_hook_works_with_node() -> Result<()> {
    works_with("node")
}

#[test]
fn every_hook_works_with_deno() -> Result<()> {
    works_with("deno")
}

/// A repository that is not trusted has settings for the runtime itself.
fn ignores_the_settings_of_a_repository(name: &str) -> Result<()> {
    let Some(program) = find(name) else { return Ok(()) };
    let scene = Scene::new(bash("echo $MARK"), &json!({"plugin_host": {"runtime": name}}))?;
    let plugin = "export const P = async () => ({ 'shell.env': async (input, output) => {
      output.env.MARK = `file ${process.env.FROM_ENV_FILE}, in ${process.cwd() === input.cwd}`;
    } });";
    scene.user("plugin/mark.js", plugin)?;
    let project = &scene.stage.project;
    project.write("bunfig.toml", "preload = [\"./evil.js\"]\n")?;
    project.write("deno.json", r#"{"imports": {"node:path": "./evil.js"}}"#)?;
    project.write("evil.js", "require('node:fs').writeFileSync('evil-ran', '');\n")?;
    project.write(".env", "FROM_ENV_FILE=yes\n")?;
    let programs = project.home().join("programs");
    std::fs::create_dir_all(&programs)?;
    symlink(program.canonicalize()?, programs.join(name))?;
    let path = format!("{}:/usr/bin:/bin", programs.display());
    succeeded(scene.program(&["run", "--title", "T", "go"]).env("PATH", path).finish()?)?;
    check_has(&scene.stage.results(1)?.join(""), &["file undefined, in true"]);
    ensure!(project.read("evil-ran").is_err(), "a file of the repository ran");
    scene.stage.no_problems()
}

#[test]
fn bun_ignores_the_settings_of_a_repository() -> Result<()> {
    ignores_the_settings_of_a_repository("bun")
}

#[test]
fn node_ignores_the_settings_of_a_repository() -> Result<()> {
    ignores_the_settings_of_a_repository("node")
}

#[test]
fn deno_ignores_the_settings_of_a_repository() -> Result<()> {
    ignores_the_settings_of_a_repository("deno")
}
