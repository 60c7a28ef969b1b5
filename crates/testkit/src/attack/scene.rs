//! The environment of a play: a project with a home, a scripted model, a listener and a canary.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use codewright_scripted::{Checks, Recorded, Request, Script, Steps, Turn};
use nix::unistd::geteuid;
use serde_json::Value;

use super::case::{Act, Case, Contact, Proof, Setup};
use super::listener::Listener;
use super::wire::Wire;
use super::{Trust, Verdict};
use crate::blocking::BlockingServer;
use crate::project::Project;
use crate::run::{Finished, Run, Running};

/// The deadline of an act, far longer than any act takes.
pub(super) const DEADLINE: Duration = Duration::from_secs(20);
/// The deadline of a server, longer than all requests of a case take.
const SERVER_DEADLINE: Duration = Duration::from_secs(90);
/// A secret that must not reach anyone.
pub(super) const SECRET: &str = "hush-hush-7d41f0";
/// A key that must reach only the provider of the model, in a header.
pub(super) const KEY: &str = "sk-user-key-5b9e02c4d7";
/// The beginning of a prompt that the model answers with calls. The number of the act follows.
const PROMPT: &str = "attempt-";
/// The text that `run` prints when it rejects a permission request.
const REQUESTED: &str = "permission requested";
/// The beginning of the error of a rejected permission request.
const REJECTED: &str = "The user rejected permission";

/// The directory of projects that a sandbox sees at their place. The sandbox replaces the temporary directory.
const APART: &str = "/var/tmp";

/// Calls of a model, each a tool and its input.
type Calls = Vec<(String, Value)>;
/// The calls for each prompt: those of the first response, of the next, and so on.
type Rounds = Vec<Vec<Calls>>;

/// The environment of a play.
pub(super) struct Scene {
    binary: PathBuf,
    pub(super) project: Project,
    pub(super) trust: Trust,
    root: PathBuf,
    model: BlockingServer,
    listener: Listener,
    calls: Arc<OnceLock<Rounds>>,
    /// Whether the protection is removed, to show that the case has an effect then.
    pub(super) is_unprotected: bool,
    env: Mutex<Vec<(String, String)>>,
    printed: Mutex<String>,
}

/// Plays a case in a trust state. Returns the verdict about the case, and that about each of its rows.
pub(super) fn play(binary: &Path, case: &Case, trust: Trust) -> Result<(Verdict, Vec<Verdict>)> {
    played(binary, case, trust, Protection::On)
}

/// Plays a case without the protection. Its effects are named by [`Verdict::Failed`].
pub(super) fn play_unprotected(binary: &Path, case: &Case) -> Result<(Verdict, Vec<Verdict>)> {
    played(binary, case, Trust::All, Protection::Off)
}

/// Whether the program protects the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Protection {
    On,
    /// The sandbox is off, all is permitted and trusted.
    Off,
}

fn played(
    binary: &Path,
    case: &Case,
    trust: Trust,
    protection: Protection,
) -> Result<(Verdict, Vec<Verdict>)> {
    let all = |verdict: Verdict| (verdict.clone(), vec![verdict; case.rows.len()]);
    if case.needs_root && !geteuid().is_root() {
        return Ok(all(Verdict::Skipped("only root can play it".to_owned())));
    }
    let scene = Scene::new(binary, case, trust, protection)?;
    let before = scene.snapshots(case)?;
    for (number, act) in case.acts.iter().enumerate() {
        if let Err(error) = scene.act(case, number, act) {
            return Ok(all(Verdict::Failed(format!("{error:#}"))));
        }
    }
    let printed = scene.printed();
    let row =
        |(_, proof): &(String, Proof)| scene.fault(proof, &printed).map_or(Verdict::Held, Verdict::Failed);
    Ok((scene.judge(case, &before), case.rows.iter().map(row).collect()))
}

impl Scene {
    fn new(binary: &Path, case: &Case, trust: Trust, protection: Protection) -> Result<Self> {
        let project = if case.is_apart { Project::plain_in(Path::new(APART))? } else { Project::plain()? };
        let project = if case.is_git { project.with_git()? } else { project };
        let mut scene = Self::bare(binary, project, trust)?;
        scene.is_unprotected = protection == Protection::Off;
        scene.user_configuration(case.setup.iter().filter_map(|setup| match setup {
            Setup::User(json) => Some(json.as_str()),
            _ => None,
        }))?;
        for setup in &case.setup {
            scene.set_up(setup).with_context(|| format!("cannot set up {setup:?}"))?;
        }
        // Acts that are functions may set calls themselves.
        if case.acts.iter().any(|act| matches!(act, Act::Calls { .. })) {
            let calls = case.acts.iter().map(|act| match act {
                Act::Calls { rounds, .. } => rounds.iter().map(|calls| scene.calls_of(calls)).collect(),
                _ => Ok(Vec::new()),
            });
            scene.script_rounds(calls.collect::<Result<_>>()?);
        }
        Ok(scene)
    }

    /// Creates a scene without a hostile repository.
    pub(super) fn bare(binary: &Path, project: Project, trust: Trust) -> Result<Self> {
        let calls = Arc::new(OnceLock::new());
        let model = BlockingServer::start(script(Arc::clone(&calls)))?;
        let root = project.directory().parent().context("the project has no parent")?.to_owned();
        let scene = Self {
            binary: binary.to_owned(),
            project,
            trust,
            root,
            model,
            listener: Listener::start()?,
            calls,
            is_unprotected: false,
            env: Mutex::default(),
            printed: Mutex::default(),
        };
        fs::create_dir(scene.root.join("canary"))?;
        for (path, text) in [
            ("@O/x.txt", "outside\n"),
            ("@O/secret.txt", "@S\n"),
            ("@H/.netrc", "machine x login me password @S\n"),
            ("@H/.ssh/id_rsa", "@S\n"),
            ("@H/.aws/credentials", "aws_secret_access_key = @S\n"),
        ] {
            scene.write(path, text)?;
        }
        scene.set_env("SECRET_VAR", SECRET);
        Ok(scene)
    }

    /// Writes the user's configuration: the scripted model, merged with these documents.
    pub(super) fn user_configuration<'a>(&self, more: impl Iterator<Item = &'a str>) -> Result<()> {
        let mut config = Project::config(&self.model.url());
        for json in more {
            let value: Value = serde_json::from_str(&self.fill(json))?;
            merge(&mut config, value);
        }
        if self.is_unprotected {
            config["permission"] = Value::from("allow");
            config["sandbox"] = serde_json::json!({"mode": "off"});
        }
        self.write("@H/.config/opencode/opencode.json", &config.to_string())?;
        Ok(())
    }

    /// Replaces the placeholders in a text.
    pub(super) fn fill(&self, text: &str) -> String {
        let mut filled = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = rest.find('@') {
            let (before, found) = rest.split_at(at);
            filled.push_str(before);
            let mut letters = found.chars().skip(1);
            let value = letters.next().and_then(|letter| self.placeholder(letter));
            let is_placeholder =
                letters.next().is_none_or(|next| !next.is_ascii_alphanumeric() && next != '_');
            match value.filter(|_| is_placeholder) {
                Some(value) => {
                    filled.push_str(&value);
                    rest = &found[2..];
                }
                None => {
                    filled.push('@');
                    rest = &found[1..];
                }
            }
        }
        filled + rest
    }

    fn placeholder(&self, letter: char) -> Option<String> {
        let path = |path: &Path| path.display().to_string();
        Some(match letter {
            'P' => path(self.project.directory()),
            'H' => path(self.project.home()),
            'O' => path(&self.root.join("outside")),
            'C' => path(&self.root.join("canary/hit")),
            'S' => SECRET.to_owned(),
            'K' => KEY.to_owned(),
            'L' => self.listener.url(),
            'M' => self.model.url(),
            _ => return None,
        })
    }

    /// Returns the path that a text names. A relative path is one in the project.
    pub(super) fn path(&self, text: &str) -> PathBuf {
        self.project.directory().join(self.fill(text))
    }

    /// Writes a file and the directories above it.
    pub(super) fn write(&self, path: &str, text: &str) -> Result<PathBuf> {
        let path = self.path(path);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(&path, self.fill(text)).with_context(|| format!("cannot write `{}`", path.display()))?;
        Ok(path)
    }

    /// Sets a variable for every program of this scene.
    pub(super) fn set_env(&self, name: &str, value: &str) {
        let mut env = self.env.lock().unwrap_or_else(PoisonError::into_inner);
        env.push((name.to_owned(), value.to_owned()));
    }

    fn set_up(&self, setup: &Setup) -> Result<()> {
        match setup {
            Setup::File(path, text) => drop(self.write(path, text)?),
            Setup::Script(path, text) => {
                let path = self.write(path, text)?;
                fs::set_permissions(path, fs::Permissions::from_mode(0o755))?;
            }
            Setup::Link(path, to) => {
                let path = self.path(path);
                if let Some(parent) = path.parent() {
                    fs::create_dir_all(parent)?;
                }
                symlink(self.fill(to), path)?;
            }
            Setup::Fifo(path) => {
                let path = self.path(path);
                if let Some(parent) = path.parent() {
                    fs::create_dir_all(parent)?;
                }
                nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU)?;
            }
            Setup::Git(args) => {
                let args: Vec<String> = args.iter().map(|arg| self.fill(arg)).collect();
                self.project.run_git(&args.iter().map(String::as_str).collect::<Vec<_>>())?;
            }
            Setup::GitConfig(text) => {
                let path = self.path(".git/config");
                let config = fs::read_to_string(&path)? + &self.fill(text) + "\n";
                fs::write(path, config)?;
            }
            Setup::User(_) => {}
            Setup::Env(name, value) => self.set_env(name, &self.fill(value)),
            Setup::Do(prepare) => (prepare.0)(self)?,
        }
        Ok(())
    }

    fn calls_of(&self, calls: &[(String, String)]) -> Result<Calls> {
        let read = |(tool, input): &(String, String)| {
            let input = self.fill(input);
            let input = serde_json::from_str(&input).with_context(|| format!("not JSON: {input}"))?;
            Ok((tool.clone(), input))
        };
        calls.iter().map(read).collect()
    }

    /// Returns a run of the program in the project, without access to the network or to local model servers.
    pub(super) fn program<A: AsRef<std::ffi::OsStr>>(&self, args: impl IntoIterator<Item = A>) -> Run {
        self.prepared(Run::new(&self.binary, &self.project).args(args))
    }

    /// Adds the variables of this scene to a run.
    pub(super) fn prepared(&self, run: Run) -> Run {
        let run = run.env("OPENCODE_DISABLE_LOCAL_SERVERS", "1").env("OPENCODE_DISABLE_MODELS_FETCH", "1");
        let run = match self.trust.variable() {
            Some(value) => run.env("CODEWRIGHT_TRUST", value),
            None => run.without_env("CODEWRIGHT_TRUST"),
        };
        let env = self.env.lock().unwrap_or_else(PoisonError::into_inner);
        env.iter().fold(run, |run, (name, value)| run.env(name, value)).deadline(DEADLINE)
    }

    /// Returns the path of the program.
    pub(super) fn binary(&self) -> &Path {
        &self.binary
    }

    /// Starts a server of the program in a directory.
    pub(super) fn serve(&self, directory: &str) -> Result<(Running, Wire)> {
        let run =
            self.program(["serve", "--port", "0"]).deadline(SERVER_DEADLINE).directory(self.path(directory));
        self.serve_as(run)
    }

    /// Starts a server from a prepared run.
    pub(super) fn serve_as(&self, run: Run) -> Result<(Running, Wire)> {
        let mut server = run.start()?;
        let line = server.line_that(|line| line.contains("listening on"))?;
        let (_, url) = line.split_once(" on ").context("the line has no address")?;
        Ok((server, Wire::new(url)?))
    }

    /// Kills a server and keeps its output. SIGTERM would make the server wait for its terminals and connections.
    pub(super) fn end(&self, server: Running) -> Result<()> {
        let mut printed = self.printed.lock().unwrap_or_else(PoisonError::into_inner);
        printed.push_str(&server.so_far());
        drop(server);
        Ok(())
    }

    fn keep(&self, done: &Finished) {
        let mut printed = self.printed.lock().unwrap_or_else(PoisonError::into_inner);
        printed.push_str(&done.stdout);
        printed.push_str(&done.stderr);
    }

    /// Returns the output of all programs of this scene.
    pub(super) fn printed(&self) -> String {
        self.printed.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Runs a program to its end. Fails if it exceeds the deadline.
    pub(super) fn finish(&self, run: Run) -> Result<Finished> {
        let done = run.finish()?;
        self.keep(&done);
        Ok(done)
    }

    /// Returns the requests to the model.
    pub(super) fn requests(&self) -> Vec<Recorded> {
        self.model.requests()
    }

    /// Returns the data that the listener received.
    pub(super) fn received(&self) -> String {
        self.listener.received()
    }

    /// Returns the prompt that the model answers with the calls of the `number`th act.
    pub(super) fn prompt_of(number: usize) -> String {
        format!("{PROMPT}{number}.")
    }

    /// Makes the model answer the prompts `attempt-N.`, from 0, with these calls.
    pub(super) fn script_calls(&self, calls: Vec<Calls>) {
        self.script_rounds(calls.into_iter().map(|calls| vec![calls]).collect());
    }

    /// Makes the model answer the prompts `attempt-N.`, from 0, with these rounds of calls.
    pub(super) fn script_rounds(&self, rounds: Rounds) {
        // A second call for the same scene is a mistake in the case and has no effect.
        self.calls.set(rounds).unwrap_or_default();
    }

    /// Returns the number of prompts with calls.
    pub(super) fn prompt_count(&self) -> usize {
        self.calls.get().map_or(0, Vec::len)
    }

    fn act(&self, case: &Case, number: usize, act: &Act) -> Result<()> {
        let fill = |args: &[String]| args.iter().map(|arg| self.fill(arg)).collect::<Vec<_>>();
        match act {
            Act::Run(args) => drop(self.finish(self.program(fill(args)))?),
            Act::RunWell(args) => drop(self.finish(self.program(fill(args)))?.success()?),
            Act::RunIn(directory, args) => {
                drop(self.finish(self.program(fill(args)).directory(self.path(directory)))?);
            }
            Act::Calls { flags, .. } => {
                let mut args = vec!["run".to_owned(), "--format".to_owned(), "json".to_owned()];
                args.extend(self.flags(fill(flags)));
                args.push(Self::prompt_of(number));
                let done = self.finish(self.program(args))?;
                if !case.is_hostile && !case.is_asked && done.code != Some(0) {
                    bail!("`run` ended with {:?}: {}", done.code, done.stderr);
                }
            }
            Act::Get(paths) => self.get(paths)?,
            Act::Write(path, text) => drop(self.write(path, text)?),
            Act::Do(act) => (act.0)(self)?,
        }
        Ok(())
    }

    /// Returns the flags of `run`. Without the protection the agent is the default one, which may do everything.
    fn flags(&self, flags: Vec<String>) -> Vec<String> {
        if !self.is_unprotected {
            return flags;
        }
        let kept = match flags.iter().position(|flag| flag == "--agent") {
            Some(at) => [&flags[..at], flags.get(at + 2..).unwrap_or_default()].concat(),
            None => flags,
        };
        // Control files need a reply even if everything is permitted.
        [kept, vec!["--auto".to_owned()]].concat()
    }

    fn get(&self, paths: &[String]) -> Result<()> {
        let (server, wire) = self.serve("@O")?;
        for path in paths {
            let path = self.fill(path);
            let mark = if path.contains('?') { '&' } else { '?' };
            let path = format!("{path}{mark}directory={}", self.project.directory().display());
            let answer = wire.send("GET", &path, &[], "")?;
            if answer.status == 0 {
                bail!("GET {path} was not answered");
            }
        }
        self.end(server)
    }

    fn snapshots(&self, case: &Case) -> Result<Vec<(String, Vec<u8>)>> {
        let kept = case.proofs.iter().filter_map(|proof| match proof {
            Proof::Unchanged(path) => Some(path),
            _ => None,
        });
        kept.map(|path| Ok((path.clone(), fs::read(self.path(path))?))).collect()
    }

    fn judge(&self, case: &Case, before: &[(String, Vec<u8>)]) -> Verdict {
        let printed = self.printed();
        let is_asked = printed.contains(REQUESTED) || printed.contains(REJECTED);
        if case.is_asked && !is_asked {
            return Verdict::Failed("there was no permission request".to_owned());
        }
        if !case.is_hostile && is_asked && !case.is_asked {
            let line = printed.lines().find(|line| line.contains(REQUESTED) || line.contains(REJECTED));
            return Verdict::NeedsPermission(line.unwrap_or_default().chars().take(300).collect());
        }
        let fault = self.general_fault(case).or_else(|| {
            let changed =
                before.iter().find(|(path, text)| fs::read(self.path(path)).ok().as_ref() != Some(text));
            changed.map(|(path, _)| format!("`{path}` was changed"))
        });
        let fault = fault.or_else(|| case.proofs.iter().find_map(|proof| self.fault(proof, &printed)));
        fault.map_or(Verdict::Held, Verdict::Failed)
    }

    /// Returns an effect that is forbidden in every case.
    pub(super) fn general_fault(&self, case: &Case) -> Option<String> {
        let canaries = fs::read_dir(self.root.join("canary")).into_iter().flatten().flatten();
        let canaries: Vec<String> =
            canaries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        if !canaries.is_empty() {
            return Some(format!("a command ran: {}", canaries.join(", ")));
        }
        if self.printed().contains("panicked at") {
            return Some(format!("the program panicked: {}", around(&self.printed(), "panicked at")));
        }
        let received = self.received();
        for (name, secret) in [("the secret", SECRET), ("the key", KEY)] {
            if received.contains(secret) {
                return Some(format!("{name} reached the listener: {}", around(&received, secret)));
            }
        }
        let may_contact = match case.contact {
            Contact::Always => true,
            Contact::Never => false,
            Contact::WhenTrusted => self.trust == Trust::All && !self.is_unprotected,
        };
        if !received.is_empty() && !may_contact {
            return Some(format!("the listener was contacted: {:.200}", received.replace("\r\n", " ")));
        }
        for request in self.requests() {
            let body = request.body.to_string();
            for (name, secret) in [("the secret", SECRET), ("the key", KEY)] {
                if body.contains(secret) {
                    return Some(format!("{name} reached the model: {}", around(&body, secret)));
                }
            }
        }
        None
    }

    fn fault(&self, proof: &Proof, printed: &str) -> Option<String> {
        let in_model = |text: &str| self.requests().iter().any(|request| contains(&request.body, text));
        match proof {
            Proof::Absent(path) => {
                let is_there = self.path(path).symlink_metadata().is_ok();
                is_there.then(|| format!("`{path}` exists"))
            }
            Proof::Present(path) => (!self.path(path).exists()).then(|| format!("`{path}` is missing")),
            // `judge` compares it with the content before the acts.
            Proof::Unchanged(_) => None,
            Proof::NotToModel(text) => {
                let text = self.fill(text);
                in_model(&text).then(|| format!("`{text}` reached the model"))
            }
            Proof::ToModel(text) => {
                let text = self.fill(text);
                (!in_model(&text)).then(|| format!("`{text}` did not reach the model: {}", tail(printed)))
            }
            Proof::NotPrinted(text) => {
                let text = self.fill(text);
                printed.contains(&text).then(|| format!("{text:?} was printed: {}", around(printed, &text)))
            }
            Proof::Printed(text) => {
                let text = self.fill(text);
                (!printed.contains(&text)).then(|| format!("{text:?} was not printed: {}", tail(printed)))
            }
            Proof::CallsDone => incomplete_call(printed),
            Proof::NotInFile { path, text } => {
                let (path, text) = (self.path(path), self.fill(text));
                let found =
                    fs::read(&path).ok().filter(|bytes| String::from_utf8_lossy(bytes).contains(&text));
                found.map(|_| format!("`{}` contains `{text}`", path.display()))
            }
            Proof::Holds(check) => (check.0)(self),
        }
    }
}

/// Returns a call that did not complete according to the output of `--format json`.
fn incomplete_call(printed: &str) -> Option<String> {
    let lines = printed.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let calls: Vec<Value> = lines.filter(|line| line["type"] == "tool_use").collect();
    if calls.is_empty() {
        return Some(format!("no call was made: {}", tail(printed)));
    }
    let incomplete =
        calls.iter().map(|call| &call["part"]["state"]).find(|state| state["status"] != "completed");
    incomplete.map(|state| format!("{:.400}", state.to_string()))
}

/// Whether any string of a value contains a text.
fn contains(value: &Value, text: &str) -> bool {
    match value {
        Value::String(string) => string.contains(text),
        Value::Array(items) => items.iter().any(|item| contains(item, text)),
        Value::Object(entries) => {
            entries.iter().any(|(key, value)| key.contains(text) || contains(value, text))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Returns an excerpt of a text around the first occurrence of `part`.
pub(super) fn around(text: &str, part: &str) -> String {
    let at = text.find(part).unwrap_or(0);
    let begin = text[..at].char_indices().rev().nth(80).map_or(0, |(at, _)| at);
    text[begin..].chars().take(80 + part.len() + 40).collect::<String>().replace("\r\n", " ")
}

/// Returns the end of a text.
fn tail(text: &str) -> String {
    let begin = text.char_indices().rev().nth(400).map_or(0, |(at, _)| at);
    text[begin..].replace('\n', " | ")
}

/// Merges a JSON value into another, key by key.
fn merge(base: &mut Value, over: Value) {
    match (base, over) {
        (Value::Object(base), Value::Object(over)) => {
            for (key, value) in over {
                merge(base.entry(key).or_insert(Value::Null), value);
            }
        }
        (base, over) => *base = over,
    }
}

/// Returns a script that answers a prompt `attempt-N.` with the calls of that act, and other prompts with text.
fn script(calls: Arc<OnceLock<Rounds>>) -> Script {
    let answer = move |request: &Request| -> Steps {
        let prompt = request.users.iter().rev().find_map(|user| user.rsplit_once(PROMPT));
        let number = prompt.and_then(|(_, rest)| rest.split('.').next()?.parse::<usize>().ok());
        let rounds = number.and_then(|number| calls.get()?.get(number));
        let calls = rounds.and_then(|rounds| rounds.get(request.round)).filter(|calls| !calls.is_empty());
        match calls {
            Some(calls) => Turn::tools(calls.iter().map(|(tool, input)| (tool.clone(), input.clone()))),
            None => Turn::text("It is done."),
        }
    };
    Script::new().title("Attack").checks(Checks::Off).default_turn(Turn::respond(answer))
}
