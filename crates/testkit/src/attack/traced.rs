//! Runs the program under `strace` on a hostile directory that is not trusted.
//!
//! Control files are opened to compute their digest, so opening them is no fault. The checks are about effects:
//! which programs are executed, and whether a file of the user is opened that only the repository names.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, ensure};

use super::scene::Scene;
use super::{Trust, routes};
use crate::project::Project;
use crate::run::Run;
use crate::terminal::{Terminal, TerminalOptions};

/// The name of the tracer.
const STRACE: &str = "strace";
/// The system calls that execute or open files.
const CALLS: &str = "trace=execve,execveat,open,openat,openat2";
/// The deadline of a traced program, which is many times slower.
const DEADLINE: Duration = Duration::from_secs(120);
/// Files of the user that only the hostile repository names.
const BAIT_FILES: [&str; 4] = [".netrc", ".ssh/id_rsa", ".aws/credentials", "outside/secret.txt"];
/// Directories in which a system keeps git.
const SYSTEM: [&str; 4] = ["/usr/bin/", "/bin/", "/usr/local/bin/", "/usr/lib/git-core/"];
/// Texts that the arguments or the environment of every git process must contain.
const HARDENED: [&str; 4] =
    ["core.fsmonitor", "core.hooksPath", "GIT_NO_LAZY_FETCH=1", "GIT_ALLOW_PROTOCOL=none"];

/// A test of a program under `strace`.
#[derive(Debug, Clone)]
pub struct TracedRuns {
    /// The program.
    pub binary: PathBuf,
}

/// The result of a traced run.
#[derive(Debug, Clone)]
pub struct TracedRun {
    /// The name of the run.
    pub name: &'static str,
    /// The executed programs with their arguments.
    pub executed: BTreeSet<String>,
    /// Forbidden effects.
    pub faults: Vec<String>,
}

impl TracedRuns {
    /// Whether `strace` is installed.
    #[must_use]
    pub fn is_possible() -> bool {
        std::process::Command::new(STRACE).arg("-V").output().is_ok_and(|done| done.status.success())
    }

    /// Performs all traced runs.
    pub fn play(&self) -> Result<Vec<TracedRun>> {
        Ok(vec![
            self.run("models", |scene, run| drop(scene.finish(run(&["models"]))))?,
            self.run("run", |scene, run| drop(scene.finish(run(&["run", "attempt-0."]))))?,
            self.run("run --command", |scene, run| drop(scene.finish(run(&["run", "--command", "y", "x"]))))?,
            self.run("session list", |scene, run| drop(scene.finish(run(&["session", "list"]))))?,
            self.run("debug config", |scene, run| drop(scene.finish(run(&["debug", "config"]))))?,
            self.routes()?,
            self.terminal()?,
        ])
    }

    /// Creates a scene with a hostile repository, and the trace directory.
    fn scene(&self) -> Result<(Scene, PathBuf)> {
        let scene = Scene::bare(&self.binary, Project::git()?, Trust::Untrusted)?;
        scene.user_configuration(std::iter::empty())?;
        scene.write("README.md", "changed\n")?;
        routes::bait(&scene)?;
        // A call that edits a file also runs the snapshots.
        let write = serde_json::json!({"filePath": "new.txt", "content": "x\n"});
        scene.script_calls(vec![vec![("write".to_owned(), write)]]);
        let trace = scene.path("@O/trace");
        fs::create_dir_all(&trace)?;
        Ok((scene, trace))
    }

    fn arguments(trace: &Path) -> Vec<String> {
        let output = trace.join("calls").display().to_string();
        // One file for each process, because lines of several processes would interrupt each other.
        ["-ff", "-qq", "-v", "-s", "4096", "-y", "-e", CALLS, "-e", "signal=none", "-o", &output, "--"]
            .map(str::to_owned)
            .to_vec()
    }

    fn run(&self, name: &'static str, act: impl Fn(&Scene, &dyn Fn(&[&str]) -> Run)) -> Result<TracedRun> {
        let (scene, trace) = self.scene()?;
        let run = |args: &[&str]| {
            let mut all = Self::arguments(&trace);
            all.push(self.binary.display().to_string());
            all.extend(args.iter().map(|arg| (*arg).to_owned()));
            scene.prepared(Run::new(STRACE, &scene.project).args(all)).deadline(DEADLINE)
        };
        act(&scene, &run);
        self.judge(name, &scene, &trace)
    }

    /// Requests every GET route of a server in another directory.
    fn routes(&self) -> Result<TracedRun> {
        let (scene, trace) = self.scene()?;
        let mut all = Self::arguments(&trace);
        all.extend([self.binary.display().to_string(), "serve".into(), "--port".into(), "0".into()]);
        let run = Run::new(STRACE, &scene.project).args(all).directory(scene.path("@O"));
        let (server, wire) = scene.serve_as(scene.prepared(run).deadline(DEADLINE))?;
        let directory = scene.fill("@P");
        let session = wire.session(&directory)?;
        for (method, path) in routes::all(&wire)?.into_iter().filter(|(method, _)| method == "GET") {
            let path = format!("{}&directory={directory}", routes::fill_path(&path, &session));
            // The beginning of an answer is enough, because some streams never end.
            drop(wire.glance(&method, &path, &[])?);
        }
        // `strace` passes the signal on.
        drop(server);
        self.judge("every GET route", &scene, &trace)
    }

    /// Opens the terminal client, sends a prompt and ends it.
    fn terminal(&self) -> Result<TracedRun> {
        let (scene, trace) = self.scene()?;
        let mut all = Self::arguments(&trace);
        all.push(self.binary.display().to_string());
        let args: Vec<&str> = all.iter().map(String::as_str).collect();
        let options = TerminalOptions {
            program: STRACE.as_ref(),
            args: &args,
            project: &scene.project,
            variables: &[("CODEWRIGHT_TRUST", "")],
            size: (110, 40),
        };
        let mut terminal = Terminal::start(&options)?;
        drop(terminal.until("the first screen", |screen| screen.trim().lines().count() > 3)?);
        // Escape closes the trust dialog, if there is one, without an answer.
        terminal.send("\u{1b}")?;
        std::thread::sleep(Duration::from_secs(1));
        terminal.send("hello\r")?;
        std::thread::sleep(Duration::from_secs(4));
        drop(terminal);
        self.judge("the terminal client", &scene, &trace)
    }

    fn judge(&self, name: &'static str, scene: &Scene, trace: &Path) -> Result<TracedRun> {
        let mut executed = BTreeSet::new();
        let mut faults = Vec::new();
        let mut lines = 0;
        for entry in fs::read_dir(trace)? {
            let text = fs::read(entry?.path())?;
            for line in String::from_utf8_lossy(&text).lines() {
                lines += 1;
                if line.starts_with("execve") {
                    let succeeded = line.ends_with("= 0");
                    if succeeded && executed.insert(shorten(line, scene)) {
                        faults.extend(self.execution(line, scene));
                    }
                } else if !line.contains("= -1 ") {
                    let bait = BAIT_FILES.iter().find(|file| opens(line, file));
                    faults.extend(bait.map(|file| format!("it opened `{file}`: {}", shorten(line, scene))));
                }
            }
        }
        ensure!(lines > 0, "{name}: nothing was traced");
        if scene.path("@C").exists() {
            faults.push("a command of the repository ran".to_owned());
        }
        if !scene.received().is_empty() {
            faults.push("the listener was contacted".to_owned());
        }
        faults.sort();
        faults.dedup();
        Ok(TracedRun { name, executed, faults })
    }

    /// Returns the fault of an executed program.
    fn execution(&self, line: &str, scene: &Scene) -> Option<String> {
        let program = line.split('"').nth(1).unwrap_or_default();
        let own = self.binary.canonicalize().unwrap_or_else(|_| self.binary.clone());
        if Path::new(program) == self.binary
            || Path::new(program) == own
            || program.starts_with("/proc/self/exe")
        {
            return None;
        }
        let text = shorten(line, scene);
        let is_system = SYSTEM.iter().any(|folder| program.starts_with(folder));
        let name = Path::new(program).file_name().unwrap_or_default().to_string_lossy().into_owned();
        if !is_system || !(name == "git" || name.starts_with("git-")) {
            return Some(format!("it executed {text}"));
        }
        // `git` starts its own subprograms and passes its environment on.
        let missing = HARDENED.iter().find(|word| !line.contains(*word))?;
        Some(format!("git without `{missing}`: {text}"))
    }
}

/// Whether a line opens a file whose path ends with `file`.
fn opens(line: &str, file: &str) -> bool {
    line.split('"').nth(1).is_some_and(|path| path.ends_with(file))
        || line.rsplit_once("= ").is_some_and(|(_, opened)| opened.trim_end_matches('>').ends_with(file))
}

/// Shortens a line and replaces the paths that differ from run to run.
fn shorten(line: &str, scene: &Scene) -> String {
    let line = line.replace(&scene.fill("@P"), "@P").replace(&scene.fill("@H"), "@H");
    let line = line.replace(&scene.fill("@O"), "@O");
    // The environment follows the arguments.
    let end = line.find("\"], [").map_or(line.len(), |at| at + 2);
    line[..end].chars().take(600).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_open_is_recognised_by_its_path_and_its_target() {
        for (line, expected) in [
            (r#"openat(AT_FDCWD</x>, "/h/.netrc", O_RDONLY) = 3</h/.netrc>"#, true),
            (r#"openat(AT_FDCWD</x>, "AGENTS.md", O_RDONLY) = 3</h/.netrc>"#, true),
            (r#"openat(AT_FDCWD</x>, "/p/README.md", O_RDONLY) = 3</p/README.md>"#, false),
        ] {
            assert_eq!(opens(line, ".netrc"), expected, "{line}");
        }
    }
}
