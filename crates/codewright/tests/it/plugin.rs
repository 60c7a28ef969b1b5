//! `plugin`: packages from a registry, and everything that a registry, a package and a repository can do wrong.
//!
//! The registry is `crates/testkit/servers/npm.py` with a server of files. The tests need npm and Python.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use codewright_testkit::{FileServer, Finished, Project, Run, Script, Terminal, TerminalOptions};
use serde_json::{Value, json};

use crate::support::{Stage, check_has, get, new_session, post, program, prompt, wait_until};

/// The longest time that the first turn may take although the registry does not answer: two minutes for the installation,
/// and time for a loaded machine. Later turns do not wait.
const TURN_LIMITS: [Duration; 2] = [Duration::from_secs(135), Duration::from_secs(12)];

/// The time limit of the program, which starts npm twice for each package.
const PATIENCE: Duration = Duration::from_secs(240);

/// A project whose user has a registry.
struct Shop {
    registry: FileServer,
    project: Project,
}

impl Shop {
    fn new(packages: &Value) -> Result<Self> {
        let shop = Self { registry: FileServer::start()?, project: Project::plain()? };
        shop.publish(packages)?;
        let url = format!("http://{}/", shop.registry.host());
        let token = format!("//{}/:_authToken=${{NPM_TOKEN}}\n", shop.registry.host());
        shop.write_home(".npmrc", &format!("registry={url}\n{token}"))?;
        Ok(shop)
    }

    fn publish(&self, packages: &Value) -> Result<()> {
        self.publish_at(&self.registry.host(), packages)
    }

    /// Publishes packages whose archives are at another address of the registry.
    fn publish_at(&self, host: &str, packages: &Value) -> Result<()> {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testkit/servers/npm.py");
        self.registry.write("packages.json", packages.to_string())?;
        self.registry.run(&format!("python3 '{}' {host} < packages.json", script.display()))
    }

    fn write_home(&self, name: &str, text: &str) -> Result<()> {
        let path = self.project.home().join(name);
        fs::create_dir_all(path.parent().context("no parent")?)?;
        Ok(fs::write(path, text)?)
    }

    fn run(&self, args: &[&str]) -> Run {
        program(&self.project, ["plugin"].into_iter().chain(args.iter().copied()))
            .env("NPM_TOKEN", "secret-token")
            .deadline(PATIENCE)
    }

    fn plugin(&self, args: &[&str]) -> Result<Finished> {
        self.run(args).finish()
    }

    fn cache(&self) -> PathBuf {
        self.project.home().join(".cache/codewright/packages")
    }

    fn config(&self) -> PathBuf {
        self.project.home().join(".config/codewright/codewright.json")
    }

    /// Fails unless `plugin add` fails with this text and changes nothing.
    #[track_caller]
    fn refuses(&self, spec: &str, expected: &str) {
        let done = self.plugin(&["add", "--", spec]).unwrap();
        assert_ne!(done.code, Some(0), "{spec}: {done:?}");
        assert!(done.stderr.contains(expected), "{spec}: {}", done.stderr);
        assert!(!self.config().exists(), "{spec}: the configuration was changed");
        assert_eq!(self.installed(), [""; 0], "{spec}");
    }

    /// The directories of installed packages, and of unfinished installations.
    fn installed(&self) -> Vec<String> {
        let entries = fs::read_dir(self.cache()).into_iter().flatten().flatten();
        let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        let mut names: Vec<String> = names.filter(|name| name != ".lock" && name != ".wanted").collect();
        names.sort();
        names
    }
}

/// Whether npm is installed. Without it these tests prove nothing, so they say so.
#[expect(clippy::print_stderr, reason = "the results must show what was skipped")]
fn has_npm() -> bool {
    let found = Project::plain().and_then(|project| Run::new("npm", &project).args(["--version"]).finish());
    let found = found.is_ok_and(|done| done.code == Some(0));
    if !found {
        eprintln!("skipped: npm is not installed");
    }
    found
}

fn tiny(version: &str) -> Value {
    json!({"name": "tiny", "version": version, "files": {"index.js": format!("exports.v = '{version}'")}})
}

#[test]
fn a_package_is_installed_updated_and_removed() -> Result<()> {
    if !has_npm() {
        return Ok(());
    }
    let dependency = json!({"name": "@scope/inner", "version": "2.1.0"});
    let outer = json!({"name": "@scope/outer", "version": "1.0.0", "manifest": {
        "dependencies": {"@scope/inner": "^2.0.0"}, "bin": {"outer": "index.js"}}});
    let shop = Shop::new(&json!([tiny("1.0.0"), tiny("1.1.0"), dependency, outer]))?;
    shop.write_home(
        ".config/codewright/codewright.json",
        "{\n  // mine\n  \"plugin\": [\n    \"./x.js\" // own\n  ]\n}\n",
    )?;
    let done = shop.plugin(&["add", "tiny@^1.0"])?.success()?;
    check_has(&done.stdout, &["Added the plugin tiny 1.1.0 to codewright.json of your configuration"]);
    check_has(
        &done.stdout,
        &["may use: network and home directory", r#"{"plugin_host":{"confine":["tiny"]}}"#],
    );
    shop.plugin(&["add", "@scope/outer"])?.success()?;
    let text = fs::read_to_string(shop.config())?;
    assert_eq!(
        text,
        "{\n  // mine\n  \"plugin\": [\n    \"./x.js\", // own\n    \"tiny@^1.0\",\n    \"@scope/outer\"\n  ]\n}\n"
    );
    let outer = shop.cache().join("@scope/outer@1.0.0");
    assert!(
        outer.join("node_modules/@scope/inner/package.json").is_file()
            && outer.join("package-lock.json").is_file()
    );
    assert_eq!(shop.installed(), ["@scope", "tiny@1.1.0"]);
    let listed: Value = serde_json::from_str(&shop.plugin(&["list", "--format", "json"])?.success()?.stdout)?;
    let find = |name: &str| {
        let mut all = listed.as_array().into_iter().flatten();
        all.find(|plugin| plugin["name"] == name).cloned().unwrap_or_default()
    };
    assert_eq!(
        find("tiny"),
        json!({
            "name": "tiny", "spec": "tiny@^1.0", "version": "1.1.0", "source": "user", "state": "installed", "error": null,
            "access": "network and home directory, without the files that other programs obey", "denied": [],
        })
    );
    assert_eq!(
        (&find("@scope/outer")["version"], listed.as_array().map(Vec::len)),
        (&json!("1.0.0"), Some(3))
    );
    let missing = find(&shop.project.home().join(".config/codewright/x.js").display().to_string());
    assert_eq!(missing["state"], "failed");

    shop.publish(&json!([tiny("1.0.0"), tiny("1.1.0"), tiny("1.2.0"), tiny("2.0.0")]))?;
    let done = shop.plugin(&["update", "tiny"])?.success()?;
    check_has(&done.stdout, &["Updated tiny from 1.1.0 to 1.2.0"]);
    check_has(&shop.plugin(&["list"])?.success()?.stdout, &["tiny 1.2.0 installed"]);
    // Another version replaces the entry.
    shop.plugin(&["add", "tiny@1.0.0"])?.success()?;
    check_has(&fs::read_to_string(shop.config())?, &["\"tiny@1.0.0\""]);
    check_has(
        &shop.plugin(&["update"])?.success()?.stdout,
        &["tiny 1.0.0 is the version that the configuration names"],
    );
    shop.plugin(&["remove", "tiny"])?.success()?;
    let text = fs::read_to_string(shop.config())?;
    assert!(!text.contains("tiny") && text.contains("@scope/outer") && text.contains("// mine"), "{text}");
    check_has(&shop.plugin(&["remove", "tiny"])?.stderr, &["no plugin named `tiny` is configured"]);

    // As in OpenCode, without a command the project's configuration is changed.
    let done = shop.plugin(&["tiny"])?.success()?;
    check_has(&done.stdout, &["Added the plugin tiny 2.0.0 to codewright.json of this project"]);
    check_has(&shop.project.read("codewright.json")?, &["\"tiny\""]);
    Ok(())
}

#[test]
fn only_the_registry_sees_the_token_and_nothing_else_is_reached() -> Result<()> {
    if !has_npm() {
        return Ok(());
    }
    let other = FileServer::start()?;
    let elsewhere =
        json!({"name": "elsewhere", "version": "1.0.0", "tarball": format!("http://{}/x.tgz", other.host())});
    let shop = Shop::new(&json!([tiny("1.0.0"), elsewhere]))?;
    shop.plugin(&["add", "tiny"])?.success()?;
    let requests = shop.registry.requests();
    assert!(requests.iter().any(|line| line.contains("Bearer secret-token")), "{requests:?}");
    // Neither a copy of the token nor the settings remain.
    for directory in [".cache/codewright", ".local/state/codewright"] {
        let found = Run::new("grep", &shop.project).args(["-rl", "secret-token"]);
        let found = found.args([shop.project.home().join(directory)]).finish()?;
        assert_eq!(found.stdout, "");
    }
    let done = shop.plugin(&["add", "elsewhere"])?;
    check_has(&done.stderr, &["is not a registry of your `.npmrc`"]);
    assert_eq!(other.connections(), 0);
    Ok(())
}

#[test]
fn settings_of_a_repository_have_no_influence() -> Result<()> {
    if !has_npm() {
        return Ok(());
    }
    let evil = FileServer::start()?;
    let shop = Shop::new(&json!([tiny("1.0.0")]))?;
    let settings = format!(
        "registry=http://{0}/\n//{0}/:_authToken=${{NPM_TOKEN}}\nignore-scripts=false\nscript-shell={1}\n",
        evil.host(),
        shop.project.path("shell").display()
    );
    shop.project.write(".npmrc", settings)?;
    shop.project.write("package.json", r#"{"workspaces": ["*"], "scripts": {"preinstall": "touch RAN"}}"#)?;
    shop.project.write("bunfig.toml", format!("[install]\nregistry = \"http://{}/\"\n", evil.host()))?;
    // A program of the repository does not take the place of npm.
    shop.project.write("bin/npm", "#!/bin/sh\ntouch RAN\n")?;
    shop.project.write("bin/node", "#!/bin/sh\ntouch RAN\n")?;
    Run::new("chmod", &shop.project).args(["+x", "bin/npm", "bin/node"]).finish()?.success()?;
    let path = shop.project.environment().into_iter().find(|(name, _)| *name == "PATH").context("no path")?.1;
    let path = format!("{}:{}", shop.project.path("bin").display(), path.to_string_lossy());
    let done = shop.run(&["add", "tiny", "--project"]).env("PATH", path).finish()?.success()?;
    check_has(&done.stdout, &["Added the plugin tiny 1.0.0 to codewright.json of this project"]);
    assert_eq!(evil.connections(), 0);
    assert!(!shop.project.path("RAN").exists() && !shop.project.path("node_modules").exists());
    Ok(())
}

#[test]
fn scripts_of_packages_never_run() -> Result<()> {
    if !has_npm() {
        return Ok(());
    }
    let project = Project::plain()?;
    let ran = project.path("RAN");
    let touch = format!("touch '{}'", ran.display());
    let hooks = ["preinstall", "install", "postinstall", "prepare", "prepublish"];
    let scripts: Value =
        hooks.iter().map(|hook| ((*hook).to_owned(), json!(touch))).collect::<serde_json::Map<_, _>>().into();
    let inner = json!({"name": "inner", "version": "1.0.0", "manifest": {"scripts": scripts}, "files": {"binding.gyp": "{}"}});
    let outer = json!({"name": "outer", "version": "1.0.0",
        "manifest": {"scripts": scripts, "dependencies": {"inner": "1.0.0"}}});
    let shop = Shop::new(&json!([inner, outer]))?;
    shop.write_home(".npmrc", &format!("registry=http://{}/\nignore-scripts=false\n", shop.registry.host()))?;
    shop.run(&["add", "outer"]).env("npm_config_ignore_scripts", "false").finish()?.success()?;
    assert!(shop.cache().join("outer@1.0.0/node_modules/inner/binding.gyp").exists());
    assert!(!ran.exists(), "a script has run");
    Ok(())
}

#[test]
fn hostile_packages_are_refused() -> Result<()> {
    if !has_npm() {
        return Ok(());
    }
    let git = json!({"name": "git", "version": "1.0.0", "manifest": {"dependencies": {"x": "git+ssh://git@127.0.0.2/x"}}});
    let file =
        json!({"name": "file", "version": "1.0.0", "manifest": {"dependencies": {"x": "file:../../../.."}}});
    let shop = Shop::new(&json!([
        {"name": "tampered", "version": "1.0.0", "tampered": true},
        {"name": "undigested", "version": "1.0.0", "undigested": true},
        {"name": "renamed", "version": "1.0.0", "files": {"package.json": r#"{"name": "renamed", "version": "9.9.9"}"#}},
        git, file,
    ]))?;
    shop.refuses("tampered", "does not match the digest");
    shop.refuses("undigested", "no digest");
    shop.refuses("renamed", "9.9.9");
    shop.refuses("git", "");
    shop.refuses("file", "");
    shop.refuses("absent", "404");
    Ok(())
}

#[test]
fn an_archive_writes_nothing_outside() -> Result<()> {
    if !has_npm() {
        return Ok(());
    }
    let members = json!([
        ["package/../../../../../ESCAPED", "x"],
        ["/tmp/codewright-ESCAPED", "x"],
        ["../ESCAPED", "x"]
    ]);
    let links = json!([["up", "../../../.."], ["etc", "/etc/passwd"]]);
    let shop =
        Shop::new(&json!([{"name": "climber", "version": "1.0.0", "members": members, "links": links}]))?;
    shop.plugin(&["add", "climber"])?;
    let found = Run::new("find", &shop.project).args([shop.project.home(), &shop.project.path("..")]);
    let found = found
        .args(["-name", "*ESCAPED*", "-not", "-path", "*/climber@1.0.0/node_modules/climber/*"])
        .finish()?;
    assert_eq!(found.stdout, "");
    assert!(!Path::new("/tmp/codewright-ESCAPED").exists());
    let package = shop.cache().join("climber@1.0.0/node_modules/climber");
    assert!(
        package.join("up").symlink_metadata().is_err() && package.join("etc").symlink_metadata().is_err()
    );
    Ok(())
}

#[test]
fn hostile_names_are_refused_before_anything_runs() -> Result<()> {
    let shop = Shop::new(&json!([]))?;
    for spec in [
        "../..@1",
        "a/b",
        "@a/../b",
        "git+ssh://git@host/x",
        "github:a/b",
        "https://host/x.tgz",
        "x@https://host/x.tgz",
        "x@file:/etc",
        "--prefix=/",
        "x@1\n2",
        "x@npm:y@1",
        ".hidden",
        "x@$(id)",
        "file://host/x",
    ] {
        shop.refuses(spec, "");
    }
    assert_eq!(shop.registry.connections(), 0);
    Ok(())
}

#[test]
fn a_version_whose_content_has_changed_is_refused() -> Result<()> {
    if !has_npm() {
        return Ok(());
    }
    let shared = |text: &str| json!({"name": "shared", "version": "1.0.0", "files": {"index.js": text}});
    let user = |name: &str| json!({"name": name, "version": "1.0.0", "manifest": {"dependencies": {"shared": "1.0.0"}}});
    let shop = Shop::new(&json!([shared("one"), user("first")]))?;
    shop.plugin(&["add", "first"])?.success()?;
    shop.publish(&json!([shared("two"), user("second")]))?;
    let done = shop.plugin(&["add", "second"])?;
    check_has(&done.stderr, &["the content of `shared@1.0.0` has changed since it was installed before"]);
    assert_eq!(shop.installed(), ["first@1.0.0"]);
    Ok(())
}

#[test]
fn two_processes_install_at_once() -> Result<()> {
    if !has_npm() {
        return Ok(());
    }
    let shop = Shop::new(&json!([tiny("1.0.0")]))?;
    let running = (0..3).map(|_| shop.run(&["add", "tiny"]).start()).collect::<Result<Vec<_>>>()?;
    for run in running {
        run.finish()?.success()?;
    }
    assert_eq!(shop.installed(), ["tiny@1.0.0"]);
    let archives = shop.registry.requests().iter().filter(|line| line.contains(".tgz")).count();
    assert_eq!(archives, 1, "the archive was downloaded by one of them");
    Ok(())
}

/// A plugin with a tool that the model sees.
fn visible(name: &str, manifest: Value) -> Value {
    let code = "export const P = async () => ({ tool: { of_plugin: { description: 'x', args: {}, execute: async () => 'y' } } });";
    json!({"name": name, "version": "1.0.0", "files": {"index.js": code}, "manifest": merged(json!({"type": "module"}), manifest)})
}

fn merged(mut one: Value, other: Value) -> Value {
    if let (Some(one), Value::Object(other)) = (one.as_object_mut(), other) {
        one.extend(other);
    }
    one
}

/// Runs one prompt of `run` with a plugin that was just added. Returns the offered tools.
fn first_prompt(shop: &Shop, plugin: &str) -> Result<String> {
    let stage = Stage::plain(Script::new().text("Done."))?;
    let mut config = Project::config(&stage.server.url());
    config["plugin"] = json!([plugin]);
    stage.project.write_config(&config)?;
    fs::write(stage.project.home().join(".npmrc"), format!("registry=http://{}/\n", shop.registry.host()))?;
    program(&stage.project, ["run", "go"]).deadline(PATIENCE).finish()?.success()?;
    let requests = stage.server.main_requests();
    Ok(requests.first().context("no request")?.body["tools"].to_string())
}

#[test]
fn the_first_prompt_of_a_run_has_a_plugin_that_was_just_added() -> Result<()> {
    if !has_npm() {
        return Ok(());
    }
    let shop = Shop::new(&json!([visible("seen", json!({}))]))?;
    check_has(&first_prompt(&shop, "seen")?, &["of_plugin"]);
    Ok(())
}

#[test]
fn a_package_whose_optional_dependency_cannot_be_fetched_is_installed() -> Result<()> {
    if !has_npm() {
        return Ok(());
    }
    let inner = json!({"name": "inner", "version": "1.0.0", "manifest": {
        "optionalDependencies": {"gone-of-inner": "1.0.0"}, "scripts": {"install": "touch ran"}}});
    let manifest = json!({"optionalDependencies": {"gone": "1.0.0"}, "dependencies": {"inner": "1.0.0"},
        "scripts": {"postinstall": "touch ran"}});
    let shop = Shop::new(&json!([visible("outer", manifest), inner]))?;
    shop.plugin(&["add", "outer"])?.success()?;
    assert_eq!(shop.installed(), ["outer@1.0.0"]);
    let modules = shop.cache().join("outer@1.0.0/node_modules");
    assert!(modules.join("inner/package.json").is_file());
    for package in ["outer", "inner"] {
        assert!(!modules.join(package).join("ran").exists(), "a lifecycle script of `{package}` ran");
    }
    check_has(&first_prompt(&shop, "outer")?, &["of_plugin"]);
    Ok(())
}

#[test]
fn a_plugin_whose_sign_in_is_built_in_is_left_out_with_the_reason() -> Result<()> {
    let shop = Shop::new(&json!([]))?;
    shop.project
        .write("opencode.json", r#"{"plugin": ["opencode-openai-codex-auth", "opencode-copilot-auth@1"]}"#)?;
    let done = shop.run(&["list", "--format", "json"]).env("CODEWRIGHT_TRUST", "all").finish()?.success()?;
    let listed: Value = serde_json::from_str(&done.stdout)?;
    for plugin in listed.as_array().context("no list")? {
        check_has(plugin["error"].as_str().unwrap_or_default(), &["its sign-in is built in"]);
    }
    assert_eq!((listed.as_array().map(Vec::len), shop.registry.connections()), (Some(2), 0));
    Ok(())
}

#[test]
fn a_missing_package_is_installed_in_the_background_and_used_afterwards() -> Result<()> {
    if !has_npm() {
        return Ok(());
    }
    let shop = Shop::new(&json!([tiny("1.0.0")]))?;
    let stage = Stage::plain(Script::new().text("One.").text("Two."))?;
    let mut config = Project::config(&stage.server.url());
    config["plugin"] = json!(["tiny"]);
    stage.project.write_config(&config)?;
    fs::write(stage.project.home().join(".npmrc"), format!("registry=http://{}/\n", shop.registry.host()))?;
    let (_server, url) = stage.serve()?;
    let id = new_session(&url)?;
    let (status, reply) = post(&url, &format!("/session/{id}/message"), &prompt("go"))?;
    ensure!(status == 200, "{status}: {reply}");
    let package =
        stage.project.home().join(".cache/codewright/packages/tiny@1.0.0/node_modules/tiny/index.js");
    wait_until("the package is installed", || package.exists())?;
    stage.no_problems()
}

#[test]
fn a_registry_that_does_not_answer_delays_only_the_first_turn() -> Result<()> {
    let silent = TcpListener::bind("127.0.0.2:0")?;
    let stage = Stage::plain(Script::new().text("One.").text("Two."))?;
    let mut config = Project::config(&stage.server.url());
    config["plugin"] = json!(["tiny"]);
    stage.project.write_config(&config)?;
    fs::write(stage.project.home().join(".npmrc"), format!("registry=http://{}/\n", silent.local_addr()?))?;
    let (_server, url) = stage.serve()?;
    let id = new_session(&url)?;
    for limit in TURN_LIMITS {
        let begun = Instant::now();
        let (status, reply) = post(&url, &format!("/session/{id}/message"), &prompt("go"))?;
        ensure!(status == 200, "{status}: {reply}");
        assert!(begun.elapsed() < limit, "{:?}", begun.elapsed());
    }
    drop(get(&url, "/session")?);
    Ok(())
}

/// Passes connections on to a registry that is slow: each one waits until `is_open` or this time is over.
fn slow(registry: &str) -> Result<(String, Arc<AtomicBool>)> {
    const LONGEST: Duration = Duration::from_secs(60);
    let listener = TcpListener::bind("127.0.0.2:0")?;
    let (address, is_open) = (listener.local_addr()?.to_string(), Arc::new(AtomicBool::new(false)));
    let (registry, opened) = (registry.to_owned(), is_open.clone());
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let (registry, opened) = (registry.clone(), opened.clone());
            std::thread::spawn(move || -> std::io::Result<()> {
                let until = Instant::now() + LONGEST;
                while !opened.load(Ordering::Relaxed) && Instant::now() < until {
                    std::thread::sleep(Duration::from_millis(50));
                }
                let server = std::net::TcpStream::connect(registry)?;
                let (mut up, mut to) = (client.try_clone()?, server.try_clone()?);
                std::thread::spawn(move || std::io::copy(&mut up, &mut to));
                std::io::copy(&mut &server, &mut &client)?;
                client.shutdown(std::net::Shutdown::Write)
            });
        }
    });
    Ok((address, is_open))
}

#[test]
fn the_terminal_client_works_while_a_plugin_is_installed_and_then_shows_its_agents() -> Result<()> {
    if !has_npm() {
        return Ok(());
    }
    let code = "export const P = async () => ({ config: async (c) => { c.agent = { ...c.agent, \
                late: { mode: 'primary', prompt: 'x' } }; c.default_agent = 'late'; }, \
                tool: { of_plugin: { description: 'x', args: {}, execute: async () => 'y' } } });";
    let package = json!({"name": "agents", "version": "1.0.0", "files": {"index.js": code}, "manifest": {"type": "module"}});
    let shop = Shop::new(&json!([]))?;
    let (address, is_open) = slow(&shop.registry.host())?;
    shop.publish_at(&address, &json!([package]))?;
    let stage = Stage::plain(Script::new().text("Done.").repeat())?;
    let mut config = Project::config(&stage.server.url());
    config["plugin"] = json!(["agents"]);
    stage.project.write_config(&config)?;
    fs::write(stage.project.home().join(".npmrc"), format!("registry=http://{address}/\n"))?;
    let program = env!("CARGO_BIN_EXE_codewright").as_ref();
    let options =
        TerminalOptions { program, args: &[], project: &stage.project, variables: &[], size: (110, 40) };
    let begun = Instant::now();
    let mut terminal = Terminal::start(&options)?;
    // The lists of the configuration, the notice and the typed text are there while the registry does not answer.
    terminal.shows("plain-model")?;
    terminal.shows("Installing the plugin agents")?;
    terminal.send("typed early")?;
    terminal.shows("typed early")?;
    ensure!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    assert_eq!(stage.server.main_requests().len(), 0);
    is_open.store(true, Ordering::Relaxed);
    // The agents of the plugin appear without a restart, and the first prompt has its tools.
    terminal.shows("Late")?;
    terminal.send("\r")?;
    terminal.shows("Done.")?;
    let requests = stage.server.main_requests();
    check_has(&requests.first().context("no request")?.body["tools"].to_string(), &["of_plugin"]);
    Ok(())
}

#[test]
fn packages_of_a_repository_need_trust() -> Result<()> {
    let shop = Shop::new(&json!([tiny("1.0.0")]))?;
    shop.project.write("opencode.json", r#"{"plugin": ["tiny", "../outside.js"]}"#)?;
    let list = |trust: &str| -> Result<Value> {
        let done =
            shop.run(&["list", "--format", "json"]).env("CODEWRIGHT_TRUST", trust).finish()?.success()?;
        Ok(serde_json::from_str(&done.stdout)?)
    };
    assert_eq!(list("none")?, json!([]));
    let trusted = list("all")?;
    assert_eq!((&trusted[0]["source"], &trusted[0]["state"]), (&json!("project"), &json!("missing")));
    assert!(trusted[1]["error"].as_str().is_some_and(|error| error.contains("leads out of the repository")));
    let done = shop.run(&["update"]).env("CODEWRIGHT_TRUST", "none").finish()?.success()?;
    check_has(&done.stderr, &["No plugins of a registry"]);
    assert_eq!(shop.registry.connections(), 0);
    Ok(())
}

#[test]
fn without_a_package_manager_the_error_names_one() -> Result<()> {
    let shop = Shop::new(&json!([]))?;
    let done = shop.run(&["add", "tiny"]).env("PATH", "/nonexistent").finish()?;
    check_has(&done.stderr, &["neither `npm` nor `bun` is installed"]);
    Ok(())
}

/// Returns the package of bun for this machine, with a program that runs Node, or `None` if bun does not support the machine.
fn runtime_package(node: &Path, more: &Value) -> Option<Value> {
    let name = match (std::env::consts::OS, std::env::consts::ARCH) {
        ("linux", "x86_64") => "@oven/bun-linux-x64",
        ("linux", "aarch64") => "@oven/bun-linux-aarch64",
        ("macos", "x86_64") => "@oven/bun-darwin-x64",
        ("macos", "aarch64") => "@oven/bun-darwin-aarch64",
        _ => return None,
    };
    // The first argument is one of bun, and bun finds a script without its extension.
    let program = format!(
        "#!/bin/sh\nshift\nscript=$1\nshift\n[ -e \"$script\" ] || script=$script.mjs\nIS_BUN=1; export IS_BUN\n\
         exec '{}' --no-warnings \"$script\" \"$@\"\n",
        node.display()
    );
    let mut package = json!({
        "name": name, "version": "1.3.14", "files": {"bin/bun": program}, "executable": ["bin/bun"],
    });
    for (key, value) in more.as_object().into_iter().flatten() {
        package[key] = value.clone();
    }
    Some(package)
}

/// Finds a program of the path.
fn installed(name: &str) -> Option<PathBuf> {
    let paths = Project::plain().ok()?.environment();
    let path = paths.into_iter().find(|(key, _)| *key == "PATH")?.1;
    std::env::split_paths(&path).map(|directory| directory.join(name)).find(|path| path.is_file())
}

/// A plugin on a machine with npm and without bun.
struct Fetching<'a> {
    /// More fields of the package of bun.
    package: &'a Value,
    /// The setting, or `null` for none.
    install: &'a Value,
    /// The first statement of the plugin.
    first: &'a str,
    /// More programs of the path.
    programs: &'a [&'a str],
}

/// Nothing but npm is installed, and the user allows a runtime.
const ALONE: Fetching<'static> =
    Fetching { package: &Value::Null, install: &Value::Bool(true), first: "", programs: &[] };

/// Sends two prompts to a program whose path contains npm, but no runtime for plugins. Waits between them until `holds`.
fn with_fetched_runtime(
    fetching: &Fetching<'_>,
    holds: impl Fn(&Stage, &str) -> bool,
) -> Result<Option<Stage>> {
    let (Some(node), Some(npm)) = (installed("node"), installed("npm")) else {
        has_npm();
        return Ok(None);
    };
    let Some(package) = runtime_package(&node.canonicalize()?, fetching.package) else { return Ok(None) };
    let shop = Shop::new(&json!([package]))?;
    let stage = Stage::plain(Script::new().title("T").text("One.").text("Two."))?;
    let home = stage.project.home();
    let registry = shop.registry.host();
    fs::write(home.join(".npmrc"), format!("registry=http://{registry}/\n"))?;
    let own = home.join(".config/codewright");
    fs::create_dir_all(own.join("plugin"))?;
    let mut settings = json!({"sandbox": {"mode": "off"}, "plugin_host": {}});
    if !fetching.install.is_null() {
        settings["plugin_host"]["install"] = fetching.install.clone();
    }
    fs::write(own.join("codewright.json"), settings.to_string())?;
    let plugin = "\nexport const P = async () => ({ 'chat.headers': async (i, o) => { o.headers['x-plugin'] = 'ran'; } });";
    fs::write(own.join("plugin/mark.js"), format!("{}{plugin}", fetching.first))?;
    let programs = home.join("programs");
    fs::create_dir_all(&programs)?;
    for name in ["sh", "git", "env", "cat"].iter().chain(fetching.programs) {
        if let Some(path) = installed(name) {
            std::os::unix::fs::symlink(path, programs.join(name))?;
        }
    }
    let wrapper = format!(
        "#!/bin/sh\nexec '{}' '{}' \"$@\"\n",
        node.canonicalize()?.display(),
        npm.canonicalize()?.display()
    );
    fs::write(programs.join("npm"), wrapper)?;
    fs::set_permissions(programs.join("npm"), std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
    let run = program(&stage.project, ["serve"]).env("PATH", &programs).deadline(PATIENCE);
    let (server, url) = crate::support::serve(run)?;
    let id = new_session(&url)?;
    for turn in 0..2 {
        let (status, reply) = post(&url, &format!("/session/{id}/message"), &prompt("go"))?;
        ensure!(status == 200, "{status}: {reply}");
        if turn == 0 {
            wait_until("the end of the installation", || holds(&stage, &url))?;
        }
    }
    server.terminate()?;
    server.finish()?;
    Ok(Some(stage))
}

fn marks(stage: &Stage) -> Vec<Option<String>> {
    let requests = stage.server.main_requests();
    requests.iter().map(|request| request.headers.get("x-plugin").map(str::to_owned)).collect()
}

#[test]
fn a_runtime_for_plugins_is_installed_if_the_user_allows_it() -> Result<()> {
    let is_there = |stage: &Stage, _: &str| {
        let cache = stage.project.home().join(".cache/codewright/packages/@oven");
        let mut entries = fs::read_dir(cache).into_iter().flatten().flatten();
        entries.any(|entry| entry.path().join("package-lock.json").is_file())
    };
    let Some(stage) = with_fetched_runtime(&ALONE, is_there)? else { return Ok(()) };
    assert_eq!(marks(&stage), [None, Some("ran".to_owned())]);
    Ok(())
}

#[test]
fn bun_is_installed_for_a_plugin_that_needs_it_before_the_first_prompt() -> Result<()> {
    let first = "if (!process.env.IS_BUN) await import('bun:ffi');";
    for (install, expected) in [(json!(null), Some("ran".to_owned())), (json!(false), None)] {
        let fetching = Fetching { install: &install, first, programs: &["node"], ..ALONE };
        let Some(stage) = with_fetched_runtime(&fetching, |_, _| true)? else { return Ok(()) };
        assert_eq!(marks(&stage), [expected.clone(), expected], "{install}");
    }
    Ok(())
}

#[test]
fn a_runtime_whose_archive_was_changed_is_refused() -> Result<()> {
    let is_reported = |_: &Stage, url: &str| {
        let log = get(url, "/log?limit=1000").map(|log| log.to_string()).unwrap_or_default();
        log.contains("the runtime for plugins cannot be installed")
    };
    let fetching = Fetching { package: &json!({"tampered": true}), ..ALONE };
    let Some(stage) = with_fetched_runtime(&fetching, is_reported)? else { return Ok(()) };
    assert_eq!(marks(&stage), [None, None]);
    let cache = stage.project.home().join(".cache/codewright/packages/@oven");
    assert!(fs::read_dir(cache).into_iter().flatten().next().is_none());
    Ok(())
}
