//! A scripted day of a user with published software, on OpenCode and on this program.
//!
//! Nothing is known about a package beforehand. A day collects observations, such as an offered tool, a sign-in or a file in
//! the home directory; those of a day without the package are subtracted. What OpenCode shows are the points, and the
//! program gets those that it shows too. npm installs both, so this is not part of `.ci/run`.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use codewright_testkit::{BlockingServer, Project, Run, Script, Turn};
use serde_json::{Value, json};

use crate::bench::wire::Connection;
use crate::clients::{self, package};

/// The program that is compared.
const ORIGINAL: (&str, &str) = ("opencode-ai", "1.18.33");
/// The deadline of one start of a program, with the installation of a package.
const DEADLINE: Duration = Duration::from_secs(300);
/// The deadline of everything. Packages that were not reached count nothing.
const TOTAL: Duration = Duration::from_secs(90 * 60);
/// The answer of the model.
const ANSWER: &str = "The day is over.";
/// The largest number of tools of a package that the model calls.
const MAX_CALLS: usize = 3;
/// The number of levels of directories of the home in which files are observed.
const MAX_DEPTH: usize = 4;

/// How a package is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// An entry of `plugin`.
    Plugin,
    /// A server of `mcp`, started with `npx`.
    Server,
    /// A program that reads the usage from the disk, started with `npx`.
    Reader,
}

/// A published package.
#[derive(Clone, Copy)]
struct Package<'a> {
    name: &'a str,
    version: &'a str,
    kind: Kind,
}

impl<'a> Package<'a> {
    const fn plugin(name: &'a str, version: &'a str) -> Self {
        Self { name, version, kind: Kind::Plugin }
    }

    const fn reader(name: &'a str, version: &'a str) -> Self {
        Self { name, version, kind: Kind::Reader }
    }

    const fn server(name: &'a str, version: &'a str) -> Self {
        Self { name, version, kind: Kind::Server }
    }
}

/// The packages, most used first.
const PACKAGES: [Package<'static>; 21] = [
    Package::plugin("oh-my-opencode", "4.19.4"),
    Package::plugin("oh-my-opencode-slim", "2.2.24"),
    Package::plugin("@tarquinen/opencode-dcp", "3.1.14"),
    Package::plugin("opencode-anthropic-auth", "0.0.13"),
    Package::plugin("opencode-gemini-auth", "1.3.8"),
    Package::plugin("opencode-antigravity-auth", "1.6.0"),
    Package::plugin("opencode-openai-codex-auth", "4.4.0"),
    Package::plugin("opencode-copilot-auth", "0.0.9"),
    Package::plugin("opencode-supermemory", "2.0.10"),
    Package::plugin("opencode-wakatime", "1.3.9"),
    Package::plugin("opencode-pty", "0.1.3"),
    Package::plugin("opencode-swarm-plugin", "0.63.2"),
    Package::plugin("opencode-orchestrator", "1.7.22"),
    Package::plugin("opencode-beads", "0.3.2"),
    Package::plugin("opencode-skills", "0.1.7"),
    Package::plugin("opencode-lmstudio", "0.3.0"),
    Package::plugin("opencode-sonarqube", "2.2.0"),
    Package::server("@modelcontextprotocol/server-everything", "2026.8.31"),
    Package::server("@modelcontextprotocol/server-filesystem", "2026.8.31"),
    Package::server("@modelcontextprotocol/server-memory", "2026.8.31"),
    Package::reader("ccusage", "20.0.24"),
];

/// Points that are missing on purpose, because the program is safer there. `docs/api-differences.md` states each.
const SAFER: [(&str, &str); 1] = [
    // A package must not change which plugins the clients load.
    ("oh-my-opencode", "file .config/opencode/tui.json"),
];

/// What a user sees.
type Seen = BTreeSet<String>;

/// One of the two programs.
struct Program {
    path: PathBuf,
    /// What it shows without a package.
    usual: Seen,
}

/// Plays the days. `--only NAME` plays those of packages whose name contains a text, and `--also NAME@VERSION` that of
/// another plugin.
pub(crate) fn main(rest: &[String]) -> Result<ExitCode> {
    let (mut only, mut also, mut rest) = ("", Vec::new(), rest);
    while let [flag, value, more @ ..] = rest
        && ["--only", "--also"].contains(&flag.as_str())
    {
        match value.rsplit_once('@') {
            Some((name, version)) if flag == "--also" => also.push(Package::plugin(name, version)),
            Some(_) | None if flag == "--only" => only = value.as_str(),
            Some(_) | None => bail!("`--also` needs NAME@VERSION, not `{value}`"),
        }
        rest = more;
    }
    let ours = clients::program(rest)?;
    let until = Instant::now() + TOTAL;
    let [original, ours] = [original()?, ours].map(|path| -> Result<Program> {
        let usual = day(&path, None)?;
        Ok(Program { path, usual })
    });
    let (original, ours) = (original?, ours?);
    let chosen = PACKAGES.into_iter().filter(|package| package.name.contains(only));
    let chosen = chosen.filter(|_| also.is_empty() || !only.is_empty());
    let mut total = Score::default();
    for package in chosen.chain(also.iter().copied()) {
        if Instant::now() > until {
            bail!("the days took longer than {} minutes", TOTAL.as_secs() / 60);
        }
        let score = compare(&original, &ours, &package)?;
        total.reached += score.reached;
        total.safer += score.safer;
        total.points += score.points;
    }
    total.print("total")?;
    Ok(if total.reached + total.safer == total.points { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The points of the program.
#[derive(Default)]
struct Score {
    reached: usize,
    /// Those that are missing on purpose.
    safer: usize,
    /// Those of OpenCode.
    points: usize,
}

impl Score {
    fn print(&self, name: &str) -> Result<()> {
        let Self { reached, safer, points } = self;
        writeln!(std::io::stdout(), "{name:<45} ours {reached:>3}  safer {safer:>2}  original {points:>3}")?;
        Ok(())
    }
}

/// Plays a day on both programs, and prints the points.
fn compare(original: &Program, ours: &Program, package: &Package<'_>) -> Result<Score> {
    let expected = of_package(original, package)?;
    let found = of_package(ours, package)?;
    let is_safer = |point: &&String| SAFER.contains(&(package.name, point.as_str()));
    let (safer, missing): (Vec<_>, Vec<_>) = expected.difference(&found).partition(is_safer);
    let points = expected.len();
    let score = Score { reached: points - missing.len() - safer.len(), safer: safer.len(), points };
    score.print(package.name)?;
    for point in missing {
        writeln!(std::io::stdout(), "    missing: {point}")?;
    }
    for point in safer {
        writeln!(std::io::stdout(), "    safer on purpose: {point}")?;
    }
    Ok(score)
}

/// Installs OpenCode. Its package has the program in a package for each machine.
fn original() -> Result<PathBuf> {
    let package = package(ORIGINAL.0, ORIGINAL.1)?;
    let modules = package.parent().context("a package is in a directory")?;
    for entry in fs::read_dir(modules)?.flatten() {
        let program = entry.path().join("bin/opencode");
        if entry.file_name().to_string_lossy().starts_with("opencode-") && program.is_file() {
            return Ok(program);
        }
    }
    bail!("{} has no program for this machine", ORIGINAL.0)
}

/// What a package adds. A day that fails is reported and adds nothing.
fn of_package(program: &Program, package: &Package) -> Result<Seen> {
    let seen = match day(&program.path, Some(package)) {
        Ok(seen) => seen,
        Err(error) => {
            writeln!(std::io::stdout(), "    the day with {} failed: {error:#}", program.path.display())?;
            Seen::new()
        }
    };
    let mut added: Seen = seen.difference(&program.usual).cloned().collect();
    // These count again: a package must not break them.
    added.extend(seen.iter().filter(|seen| seen.starts_with("day: ")).cloned());
    Ok(added)
}

/// Lives a day with a package.
fn day(program: &Path, package: Option<&Package<'_>>) -> Result<Seen> {
    let project = Project::git()?;
    let mut seen = Seen::new();
    let model = BlockingServer::start(Script::new().text(ANSWER).repeat())?;
    configure(&project, &model.url(), package)?;
    // The first prompt after the package was added by hand.
    let offered = prompt(program, &project, &model, &mut seen)?;
    seen.extend(offered.iter().map(|tool| format!("first offered {tool}")));
    noon(program, &project, &mut seen)?;
    drop(model);
    let mut script = Script::new()
        .turn(
            Turn::steps().tool("bash", json!({"command": "echo of-the-day > made.txt", "description": "x"})),
        )
        .turn(Turn::steps().tool("read", json!({"filePath": project.path("made.txt")})));
    let of_package: Vec<_> = offered.iter().filter(|tool| !BUILT_IN.contains(&tool.as_str())).collect();
    for tool in of_package.iter().take(if package.is_some() { MAX_CALLS } else { 0 }) {
        script = script.turn(Turn::steps().tool(tool.as_str(), json!({})));
    }
    let model = BlockingServer::start(script.text(ANSWER).repeat())?;
    configure(&project, &model.url(), package)?;
    let offered = prompt(program, &project, &model, &mut seen)?;
    seen.extend(offered.iter().map(|tool| format!("offered {tool}")));
    let last = model.main_requests().pop().map(|request| request.body["messages"].to_string());
    if last.is_some_and(|messages| messages.contains("of-the-day")) {
        seen.insert("day: commands and files work".to_owned());
    }
    files(project.home(), MAX_DEPTH, project.home(), &mut seen);
    if let Some(package) = package.filter(|package| package.kind == Kind::Reader) {
        read_usage(program, &project, package, &mut seen)?;
    }
    Ok(seen)
}

fn configure(project: &Project, url: &str, package: Option<&Package<'_>>) -> Result<()> {
    let mut config = Project::config(url);
    config["autoupdate"] = json!(false);
    if let Some(Package { name, version, kind }) = package {
        let spec = format!("{name}@{version}");
        match kind {
            Kind::Plugin => config["plugin"] = json!([spec]),
            Kind::Reader => {}
            Kind::Server => {
                let command = json!(["npx", "-y", spec, project.directory()]);
                config["mcp"] = json!({"server": {"type": "local", "command": command, "timeout": 60_000}});
            }
        }
    }
    project.write_config(&config)
}

fn start(program: &Path, project: &Project, args: &[&str]) -> Run {
    let mut run = Run::new(program, project).args(args.iter().copied()).deadline(DEADLINE);
    // The user of a day has another home, but the same registry.
    for (variable, key) in [
        ("NPM_CONFIG_REGISTRY", "registry"),
        ("NODE_EXTRA_CA_CERTS", "cafile"),
        ("NPM_CONFIG_USERCONFIG", "userconfig"),
    ] {
        let value = Command::new("npm").args(["config", "get", key]).output();
        let value =
            value.map(|done| String::from_utf8_lossy(&done.stdout).trim().to_owned()).unwrap_or_default();
        if !value.is_empty() && value != "null" {
            run = run.env(variable, value);
        }
    }
    run.env("OPENCODE_DISABLE_LOCAL_SERVERS", "1").env("OPENCODE_DISABLE_MODELS_FETCH", "1")
}

/// Starts the server, and looks at everything that it lists.
fn noon(program: &Path, project: &Project, seen: &mut Seen) -> Result<()> {
    let mut server = start(program, project, &["serve", "--port", "0"]).start()?;
    let line = server.line_that(|line| line.contains("listening on"))?;
    let address = line.split_once("http://").context("no address")?.1.trim().to_owned();
    let mut connection = Connection::new(&address)?;
    let mut get = |path: &str| connection.request("GET", path, None).unwrap_or_default();
    if get("/global/health")["version"] == ORIGINAL.1 {
        seen.insert("day: the version of the interface".to_owned());
    }
    let listed = |list: &Value| -> Vec<String> {
        let names = list.as_array().into_iter().flatten();
        names.filter_map(|item| item["name"].as_str().or(item.as_str())).map(str::to_owned).collect()
    };
    let agents = listed(&get("/agent"));
    seen.extend(agents.iter().map(|name| format!("agent {name}")));
    seen.insert(format!("order of agents: {}", agents.join(", ")));
    for (kind, path) in [("command", "/command"), ("skill", "/skill")] {
        seen.extend(listed(&get(path)).into_iter().map(|name| format!("{kind} {name}")));
    }
    for (provider, methods) in get("/provider/auth").as_object().into_iter().flatten() {
        for method in methods.as_array().into_iter().flatten() {
            seen.insert(format!("sign-in {provider}: {}", method["label"].as_str().unwrap_or_default()));
        }
    }
    for (name, status) in get("/mcp").as_object().into_iter().flatten() {
        seen.insert(format!("server {name}: {}", status["status"].as_str().unwrap_or_default()));
    }
    seen.extend(listed(&get("/experimental/tool/ids")).into_iter().map(|name| format!("tool {name}")));
    server.terminate()?;
    // A program that does not end in time is killed with this value.
    drop(server);
    Ok(())
}

/// Tools that both programs have.
const BUILT_IN: [&str; 16] = [
    "invalid",
    "question",
    "bash",
    "read",
    "glob",
    "grep",
    "edit",
    "write",
    "task",
    "webfetch",
    "todowrite",
    "todoread",
    "skill",
    "websearch",
    "apply_patch",
    "lsp",
];

/// Runs one prompt in a new process. Returns the offered tools.
fn prompt(program: &Path, project: &Project, model: &BlockingServer, seen: &mut Seen) -> Result<Seen> {
    let done = start(program, project, &["run", "--format", "json", "hello"]).finish()?;
    if done.code == Some(0) {
        seen.insert("day: the prompt ends".to_owned());
    }
    if done.stdout.contains(ANSWER) {
        seen.insert("day: the answer is shown".to_owned());
    }
    for line in done.stdout.lines() {
        let line: Value = serde_json::from_str(line).unwrap_or_default();
        if let (Some(tool), Some(status)) =
            (line["part"]["tool"].as_str(), line["part"]["state"]["status"].as_str())
        {
            seen.insert(format!("call {tool}: {status}"));
        }
    }
    let requests = model.main_requests();
    ensure!(!requests.is_empty(), "the model got no prompt: {}", done.stderr);
    let offered = requests.iter().flat_map(|request| request.body["tools"].as_array().into_iter().flatten());
    Ok(offered.filter_map(|tool| tool["function"]["name"].as_str()).map(str::to_owned).collect())
}

/// Lets a program read the usage. The program of this repository writes a view for it when the user runs a command.
fn read_usage(program: &Path, project: &Project, package: &Package<'_>, seen: &mut Seen) -> Result<()> {
    // OpenCode has no such command.
    drop(start(program, project, &["db", "view"]).finish()?);
    let spec = format!("{}@{}", package.name, package.version);
    let npx = clients::search();
    let npx = std::env::split_paths(&npx).map(|path| path.join("npx")).find(|path| path.is_file());
    let npx = npx.context("`npx` is missing")?;
    for report in ["daily", "session"] {
        let args = ["-y", &spec, "opencode", report, "--json"];
        let done = start(&npx, project, &args).finish()?;
        let totals: Value = serde_json::from_str(&done.stdout).unwrap_or_default();
        for key in ["inputTokens", "outputTokens"] {
            seen.insert(format!("{report} {key}: {}", totals["totals"][key]));
        }
    }
    Ok(())
}

/// Observes the files of the home directory that belong to neither program.
fn files(directory: &Path, depth: usize, home: &Path, seen: &mut Seen) {
    let own = [
        ".cache",
        ".npm",
        ".local",
        // OpenCode installs its library for plugins here; this program provides it.
        ".config/opencode/node_modules",
        ".config/opencode/package.json",
        ".config/opencode/package-lock.json",
        ".config/opencode/bun.lock",
        ".config/opencode/.gitignore",
        ".config/codewright",
        "project",
        ".bun",
    ];
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        let below = path.strip_prefix(home).unwrap_or(&path).display().to_string();
        // The names of some files are a time, or the hash of a path.
        let is_varying = below
            .split(|sign: char| !sign.is_ascii_hexdigit())
            .any(|word| word.len() >= 8 && word.bytes().any(|byte| byte.is_ascii_digit()));
        let is_dated = below.bytes().filter(u8::is_ascii_digit).count() > 4;
        if own.contains(&below.as_str()) || is_dated || is_varying {
            continue;
        }
        if path.is_dir() && depth > 1 {
            files(&path, depth - 1, home, seen);
        } else {
            seen.insert(format!("file {below}"));
        }
    }
}
