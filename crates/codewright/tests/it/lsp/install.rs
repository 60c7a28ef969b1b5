//! The installation of language servers, from a registry on this machine.
//!
//! The registry is `crates/testkit/servers/npm.py` with a server of files. The tests need npm and Python.

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result};
use codewright_testkit::{FileServer, Project, Run, Running, Script, Turn};
use serde_json::{Value, json};

use super::{EDIT_LIMIT, Serving, output, write};
use crate::support::{Stage, check_has, get, new_session, program, serve, wait_until};

/// A server that reports an error in each line with the word `bad`.
const SERVER: &str = r#"
let input = "";
const send = (message) => {
  const text = JSON.stringify({ jsonrpc: "2.0", ...message });
  process.stdout.write(`Content-Length: ${Buffer.byteLength(text)}\r\n\r\n${text}`);
};
const handle = (message) => {
  if (message.method === "initialize") {
    const options = JSON.stringify(message.params.initializationOptions);
    require("fs").writeSync(2, `options ${options}\n`);
    send({ id: message.id, result: { capabilities: { textDocumentSync: 1 } } });
  } else if (message.method === "shutdown") send({ id: message.id, result: null });
  else if (message.method === "exit") process.exit(0);
  else if (message.method && message.method.startsWith("textDocument/did")) {
    const document = message.params.textDocument;
    const text = document.text ?? message.params.contentChanges?.[0].text;
    if (text === undefined) return;
    const lines = text.split("\n").map((line, at) => [line, at]).filter(([line]) => line.includes("bad"));
    const range = (line) => ({ start: { line, character: 0 }, end: { line, character: 3 } });
    const diagnostics = lines.map(([line, at]) => ({ range: range(at), severity: 1, message: `found ${line}` }));
    send({ method: "textDocument/publishDiagnostics", params: { uri: document.uri, version: document.version, diagnostics } });
  } else if (message.id !== undefined) send({ id: message.id, result: null });
};
process.stdin.on("data", (data) => {
  input += data;
  for (;;) {
    const found = /^Content-Length: (\d+)\r\n\r\n/.exec(input);
    if (!found || input.length < found[0].length + Number(found[1])) return;
    const end = found[0].length + Number(found[1]);
    const message = JSON.parse(input.slice(found[0].length, end));
    input = input.slice(end);
    handle(message);
  }
});
"#;

/// Whether npm and node are installed. Without them these tests prove nothing, so they say so.
#[expect(clippy::print_stderr, reason = "the results must show what was skipped")]
fn has_npm() -> bool {
    let has = |name: &str| {
        let found =
            Project::plain().and_then(|project| Run::new(name, &project).args(["--version"]).finish());
        found.is_ok_and(|done| done.code == Some(0))
    };
    let found = has("npm") && has("node");
    if !found {
        eprintln!("skipped: npm is not installed");
    }
    found
}

/// A package like pyright, whose scripts leave a trace.
fn pyright(version: &str) -> Value {
    json!({"name": "pyright", "version": version, "files": {"langserver.index.js": SERVER}, "manifest": {
        "bin": {"pyright-langserver": "langserver.index.js"},
        "scripts": {"preinstall": "touch \"$HOME/RAN\"", "postinstall": "touch ../../RAN"}}})
}

/// A project with language servers, and the registry of its user.
struct Shop {
    registry: FileServer,
    stage: Stage,
}

impl Shop {
    fn new(script: Script, packages: &Value, config: &Value) -> Result<Self> {
        let (registry, stage) = (FileServer::start()?, Stage::git(script)?);
        let npm = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testkit/servers/npm.py");
        registry.write("packages.json", packages.to_string())?;
        registry.run(&format!("python3 '{}' {} < packages.json", npm.display(), registry.host()))?;
        let settings = format!("registry=http://{}/\n", registry.host());
        fs::write(stage.project.home().join(".npmrc"), settings)?;
        let mut all = Project::config(&stage.server.url());
        for (key, value) in config.as_object().into_iter().flatten() {
            all[key] = value.clone();
        }
        stage.project.write_config(&all)?;
        Ok(Self { registry, stage })
    }

    /// A program whose `PATH` contains no language server.
    fn run<'a>(&self, args: impl IntoIterator<Item = &'a str>) -> Run {
        program(&self.stage.project, args)
            .env("PATH", "/usr/bin:/bin")
            .deadline(std::time::Duration::from_secs(300))
    }

    fn serving(&self, variables: &[(&str, &str)]) -> Result<Serving> {
        let run = variables
            .iter()
            .fold(self.run(["serve", "--port", "0"]), |run, (name, value)| run.env(*name, *value));
        let (server, url): (Running, String) = serve(run)?;
        Ok(Serving { id: new_session(&url)?, url, _server: server })
    }

    fn cache(&self) -> std::path::PathBuf {
        self.stage.project.home().join(".cache/codewright/packages")
    }
}

/// The status of the server pyright.
fn status(url: &str) -> Value {
    let all = get(url, "/lsp").unwrap_or_default();
    let mut all = all.as_array().cloned().unwrap_or_default().into_iter();
    all.find(|server| server["id"] == "pyright").unwrap_or_default()
}

fn edits(count: usize) -> Script {
    (0..count).fold(Script::new(), |script, at| {
        let (name, input) = write("a.py", &format!("good\nbad {at}\n"));
        script.turn(Turn::steps().tool(name, input)).text("Done.")
    })
}

#[test]
fn a_server_is_installed_in_the_background_and_used() -> Result<()> {
    if !has_npm() {
        return Ok(());
    }
    let shop = Shop::new(
        edits(2),
        &json!([pyright("1.0.0"), pyright("2.0.0")]),
        &json!({"lsp": {}, "lsp_install": true}),
    )?;
    let serving = shop.serving(&[])?;
    let begun = Instant::now();
    assert_eq!(output(&serving.call()?), "Wrote file successfully.");
    assert!(begun.elapsed() < EDIT_LIMIT, "{:?}", begun.elapsed());
    wait_until("the server", || status(&serving.url)["status"] == "connected")?;
    check_has(output(&serving.call()?), &["ERROR [2:1] found bad 1"]);
    // The range of the table is installed, and no script of the package ran.
    let installed = shop.cache().join("pyright@1.0.0");
    assert!(installed.join("package-lock.json").is_file() && !shop.cache().join("pyright@2.0.0").exists());
    let traces = Run::new("find", &shop.stage.project)
        .args([shop.stage.project.home().as_os_str(), "-name".as_ref(), "RAN".as_ref()])
        .finish()?;
    assert_eq!(traces.stdout, "");
    let log = get(&serving.url, "/log").map(|log| log.to_string()).unwrap_or_default();
    check_has(&log, &["Installing pyright@^1", "Installed the language server pyright (pyright 1.0.0)."]);
    Ok(())
}

#[test]
fn nothing_is_installed_unless_the_user_enables_it() -> Result<()> {
    if !has_npm() {
        return Ok(());
    }
    for (config, repository, variables) in [
        (json!({"lsp": {}}), json!({}), &[][..]),
        (json!({"lsp": {}, "lsp_install": true}), json!({}), &[("OPENCODE_DISABLE_LSP_DOWNLOAD", "1")]),
        (json!({}), json!({"lsp": {}, "lsp_install": true}), &[]),
    ] {
        let shop = Shop::new(edits(1), &json!([pyright("1.0.0")]), &config)?;
        shop.stage.project.write("opencode.json", repository.to_string())?;
        let serving = shop.serving(variables)?;
        serving.call()?;
        wait_until("the status", || status(&serving.url)["status"] == "error")?;
        let error = status(&serving.url)["error"].to_string();
        check_has(&error, &["`lsp_install`", "npm install -g pyright"]);
        assert_eq!(shop.registry.connections(), 0, "{config} {repository}");
    }
    Ok(())
}

#[test]
fn a_failed_installation_has_a_reason_and_delays_nothing() -> Result<()> {
    if !has_npm() {
        return Ok(());
    }
    let mut tampered = pyright("1.0.0");
    tampered["tampered"] = json!(true);
    let mut empty = pyright("1.0.0");
    empty["manifest"]["bin"] = json!({"other": "index.js"});
    for (packages, reason) in [
        (json!([]), "cannot install `pyright@^1`"),
        (json!([tampered]), "does not match the digest"),
        (json!([empty]), "contains no program `pyright-langserver`"),
    ] {
        let shop = Shop::new(edits(1), &packages, &json!({"lsp": {}, "lsp_install": true}))?;
        let serving = shop.serving(&[])?;
        assert_eq!(output(&serving.call()?), "Wrote file successfully.");
        let error = || status(&serving.url)["error"].as_str().unwrap_or_default().to_owned();
        wait_until("the reason", || error().contains(reason))
            .with_context(|| format!("{reason}: {}", error()))?;
        assert!(!error().contains('\n') && status(&serving.url)["installing"].is_null(), "{}", error());
    }
    Ok(())
}

#[test]
fn a_registry_that_does_not_answer_delays_no_turn() -> Result<()> {
    if !has_npm() {
        return Ok(());
    }
    let shop = Shop::new(edits(1), &json!([]), &json!({"lsp": {}, "lsp_install": true}))?;
    let silent = TcpListener::bind("127.0.0.1:0")?;
    let settings = format!("registry=http://{}/\n", silent.local_addr()?);
    fs::write(shop.stage.project.home().join(".npmrc"), settings)?;
    let serving = shop.serving(&[])?;
    let begun = Instant::now();
    assert_eq!(output(&serving.call()?), "Wrote file successfully.");
    assert!(begun.elapsed() < EDIT_LIMIT, "{:?}", begun.elapsed());
    let shown = status(&serving.url);
    assert_eq!(shown["installing"], true, "{shown}");
    check_has(&shown["error"].to_string(), &["Installing pyright@^1 from the npm registry."]);
    Ok(())
}

#[test]
fn the_command_line_waits_for_an_installation_and_reports_problems() -> Result<()> {
    if !has_npm() {
        return Ok(());
    }
    let shop =
        Shop::new(Script::new(), &json!([pyright("1.2.0")]), &json!({"lsp": {}, "lsp_install": true}))?;
    shop.stage.project.write("a.py", "bad\n")?;
    shop.stage.project.write("a.zig", "bad\n")?;
    let done = shop.run(["debug", "lsp", "diagnostics", "a.py"]).finish()?.success()?;
    let printed: Value = serde_json::from_str(&done.stdout)?;
    let file = shop.stage.project.path("a.py").to_string_lossy().into_owned();
    assert_eq!(printed[&file][0]["message"], "found bad", "{printed}");
    check_has(&done.stderr, &["Installing pyright"]);
    // Other servers are not installed, and the user learns how.
    let done = shop.run(["debug", "lsp", "diagnostics", "a.zig"]).finish()?.success()?;
    check_has(&done.stderr, &["zls: ", "Codewright does not install it", "https://github.com/zigtools/zls"]);
    Ok(())
}
