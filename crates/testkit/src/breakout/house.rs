//! The machine outside of the sandbox: a home with secrets, files, listeners and a process, and their comparison.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead as _, BufReader, ErrorKind, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use super::attempts::Targets;
use crate::project::Project;
use crate::run::Run;

/// The source of the list of secrets.
const PATHS: &str = include_str!("../../../permission/src/secret.rs");
/// The program that makes the attempts.
const ATTACKER: &str = include_str!("attacker.py");
/// A process that must live and keep its memory.
const VICTIM: &str = "import ctypes, sys\n\
    kept = ctypes.create_string_buffer(b'kept as it was')\n\
    print(ctypes.addressof(kept), flush=True)\n\
    for _ in sys.stdin: print(kept.value.decode(errors='replace'), flush=True)\n";
/// Its memory.
const KEPT: &str = "kept as it was";
/// The directory of the test. Not `/tmp`, which the sandbox replaces.
const PARENT: &str = "/var/tmp";
/// The beginning of every secret.
const SECRET: &str = "SECRET";
/// Variables with keys that the server has.
const KEYS: [&str; 4] = ["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENCODE_API_KEY", "GROQ_API_KEY"];
/// Control files of the project that exist. `.git/config` and hooks exist as well.
const CONTROL: [&str; 5] =
    [".mcp.json", ".envrc", ".vscode/tasks.json", ".cargo/config.toml", ".git/hooks/pre-commit"];
/// Files of the machine that must not change.
const MACHINE: [&str; 3] =
    ["/proc/sys/kernel/core_pattern", "/proc/sys/kernel/hostname", "/proc/sys/kernel/modprobe"];

/// The state of a path.
type State = (u64, u32, u32, u64, u64, i64, i64);

/// Everything outside of the sandbox.
pub(super) struct House {
    project: Project,
    is_read_only: bool,
    python: String,
    token: String,
    secrets: Vec<PathBuf>,
    watched: Vec<PathBuf>,
    absent: BTreeSet<PathBuf>,
    /// The entries of the project at the start.
    entries: BTreeSet<PathBuf>,
    state: BTreeMap<PathBuf, State>,
    machine: Vec<Option<String>>,
    server: u32,
    listeners: Listeners,
    victim: Victim,
}

struct Listeners {
    tcp: Vec<TcpListener>,
    udp: Vec<UdpSocket>,
    unix: Vec<(PathBuf, UnixListener)>,
    datagrams: Vec<UnixDatagram>,
    address: String,
    name: String,
}

struct Victim {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    address: u64,
}

impl House {
    pub(super) fn build(mode: &str) -> Result<Self> {
        let project = Project::plain_in(Path::new(PARENT))?.with_git()?;
        let token = format!("{SECRET}-{}", std::process::id());
        let home = project.home().to_owned();
        let root = home.parent().context("the home has a parent")?.to_owned();
        let mut secrets = Vec::new();
        for name in list("SECRETS") {
            let path = home.join(&name);
            let last = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let is_file = last.trim_start_matches('.').contains('.')
                || last.ends_with("rc")
                || last.contains("history")
                || last.contains("credentials")
                || last.contains("token");
            let file = if is_file { path } else { path.join("deep/secret") };
            fs::create_dir_all(file.parent().unwrap_or(&root))?;
            fs::write(&file, format!("{token} {name}\n"))?;
            secrets.push(file);
        }
        let data = home.join(".local/share/codewright/auth-copy");
        for file in
            [data, home.join(".local/share/opencode/auth.json"), home.join(".config/opencode/opencode.jsonc")]
        {
            fs::create_dir_all(file.parent().unwrap_or(&root))?;
            let text = format!("{{\"test\": {{\"type\": \"api\", \"key\": \"{token}\"}}}}");
            fs::write(&file, text)?;
            secrets.push(file);
        }
        secrets.push(home.join(".config/opencode/opencode.json"));
        for name in [
            "outside/file",
            "outside/deep/file",
            "other/.git/config",
            "home/.bashrc",
            "home/.profile",
            "home/.config/fish/config.fish",
            "home/.config/codewright/notes",
            "home/.local/bin/tool",
        ] {
            let file = root.join(name);
            fs::create_dir_all(file.parent().unwrap_or(&root))?;
            fs::write(file, "as it was\n")?;
        }
        for name in CONTROL {
            project.write(name, "as it was\n")?;
        }
        for name in ["worktrees/one", "modules/lib"] {
            fs::create_dir_all(project.path(".git").join(name))?;
        }
        project.write("attacker.py", ATTACKER)?;
        let listeners = Listeners::open(&root, &home)?;
        let python = python()?;
        let victim = Victim::start(&python)?;
        let watched = ["outside", "other", "home"].map(|name| root.join(name)).into();
        Ok(Self {
            project,
            is_read_only: mode == "read-only",
            python,
            token,
            secrets,
            watched,
            absent: BTreeSet::new(),
            entries: BTreeSet::new(),
            state: BTreeMap::new(),
            machine: Vec::new(),
            server: 0,
            listeners,
            victim,
        })
    }

    pub(super) fn directory(&self) -> PathBuf {
        self.project.directory().to_owned()
    }

    pub(super) fn python(&self) -> &str {
        &self.python
    }

    /// Why the sandbox cannot be tested here, if it cannot.
    pub(super) fn why_not(&self, binary: &Path) -> Result<Option<String>> {
        let run = Run::new(binary, &self.project).args(["sandbox", "--json"]);
        let report: Value = serde_json::from_str(&run.finish()?.success()?.stdout)?;
        Ok((report["complete"] != true).then(|| report["reasons"].to_string()))
    }

    pub(super) fn configure(&self, url: &str) -> Result<()> {
        let mut config = Project::config(url);
        // The mode of the agent of a prompt is that of the server.
        config["provider"]["mock"]["options"]["note"] = Value::from(self.token.clone());
        self.project.write_config(&config)
    }

    /// The server, with descriptors and variables that its commands must not get.
    pub(super) fn serve(&self, binary: &Path, mode: &str) -> Run {
        let root = self.root();
        let line = "exec 7<\"$1\" 8>>\"$2\" 9<\"$3\"; shift 3; exec \"$@\"";
        let mut run = Run::new("/bin/sh", &self.project).args(["-c", line, "sh"]);
        run = run.args([&self.secrets[0], &root.join("outside/file"), &root.join("outside")]);
        run = run.args([binary.as_os_str(), "serve".as_ref(), "--port".as_ref(), "0".as_ref()]);
        run = run.args(["--sandbox", mode]);
        for key in KEYS {
            run = run.env(key, format!("{}-{key}", self.token));
        }
        run = run.env("OPENCODE_DISABLE_LOCAL_SERVERS", "1").env("OPENCODE_DISABLE_MODELS_FETCH", "1");
        run = run.env("SSH_AUTH_SOCK", root.join("outside/agent.sock"));
        run =
            run.env("DBUS_SESSION_BUS_ADDRESS", format!("unix:path={}", root.join("outside/bus").display()));
        run.env(
            "DOCKER_HOST",
            format!("unix://{}", self.project.home().join(".docker/run/docker.sock").display()),
        )
    }

    fn root(&self) -> PathBuf {
        self.project.home().parent().unwrap_or(Path::new("/")).to_owned()
    }

    /// What the attempts aim at.
    pub(super) fn targets(&mut self, server: u32, url: &str) -> Targets {
        self.server = server;
        let (root, project) = (self.root(), self.project.directory());
        let port = |listener: &TcpListener| listener.local_addr().map_or(0, |address| address.port());
        let udp = |socket: &UdpSocket| socket.local_addr().map_or(0, |address| address.port());
        let mut files: Vec<PathBuf> =
            ["outside/file", "home/.bashrc", "home/.config/codewright/notes", "home/.ssh/deep/secret"]
                .map(|name| root.join(name))
                .into();
        files.extend(
            [".git/config", ".git/hooks/pre-commit", ".vscode/tasks.json"].map(|name| project.join(name)),
        );
        Targets {
            files,
            directories: ["outside", "home", "other/.git", "home/.local/bin"]
                .map(|name| root.join(name))
                .into(),
            secrets: self.secrets.clone(),
            tcp: port(&self.listeners.tcp[0]),
            tcp6: self.listeners.tcp.get(1).map_or(1, port),
            udp: udp(&self.listeners.udp[0]),
            udp6: self.listeners.udp.get(1).map_or(1, udp),
            address: self.listeners.address.clone(),
            sockets: self
                .listeners
                .unix
                .iter()
                .map(|(path, _)| path.clone())
                .filter(|path| path.is_absolute())
                .collect(),
            abstract_name: self.listeners.name.clone(),
            server,
            server_port: url
                .rsplit(':')
                .next()
                .and_then(|port| port.trim_end_matches('/').parse().ok())
                .unwrap_or(0),
            victim: self.victim.child.id(),
            victim_address: self.victim.address,
        }
    }

    /// Notes the state before the first attempt.
    pub(super) fn begin(&mut self, absent: Vec<String>) -> Result<()> {
        let absent = absent.into_iter().map(|name| self.project.path(name));
        self.absent = absent.filter(|path| path.symlink_metadata().is_err()).collect();
        for entry in fs::read_dir(self.project.directory())? {
            self.entries.insert(entry?.path());
        }
        self.state = self.look();
        self.machine = machine();
        Ok(())
    }

    /// Removes what the last attempt left in the project.
    pub(super) fn prepare(&self) {
        for entry in fs::read_dir(self.project.directory()).into_iter().flatten().flatten() {
            let path = entry.path();
            if !self.entries.contains(&path) {
                // A link is removed, not followed. What stays is found by the next comparison.
                let removed = if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    fs::remove_dir_all(&path)
                } else {
                    fs::remove_file(&path)
                };
                drop(removed);
            }
        }
    }

    /// What an attempt with this result has changed outside, read or reached.
    pub(super) fn judge(&mut self, result: &str) -> Vec<String> {
        let mut effects: Vec<String> =
            result.lines().filter(|line| line.contains("EFFECT")).map(str::to_owned).collect();
        if let Some(at) = result.find(&self.token) {
            effects.push(format!("read a secret: {}", result[at..].lines().next().unwrap_or_default()));
        }
        let state = self.look();
        for (path, before) in &self.state {
            match state.get(path) {
                None => effects.push(format!("removed {}", path.display())),
                Some(now) if now != before => {
                    effects.push(format!("changed {}: {before:?} {now:?}", path.display()));
                }
                Some(_) => {}
            }
        }
        let created = state.keys().filter(|path| !self.state.contains_key(*path));
        effects.extend(created.map(|path| format!("created {}", path.display())));
        self.state = state;
        let made: Vec<PathBuf> =
            self.absent.iter().filter(|path| path.symlink_metadata().is_ok()).cloned().collect();
        effects.extend(made.iter().map(|path| format!("created the control file {}", path.display())));
        effects.extend(self.listeners.contacts());
        for process in [self.server, self.victim.child.id()] {
            let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
            let state = stat.rsplit(')').next().unwrap_or_default().trim().chars().next();
            if !matches!(state, Some('S' | 'R' | 'D')) {
                effects.push(format!("process {process} has the state {state:?}"));
            }
        }
        let machine = machine();
        if machine != self.machine {
            effects.push(format!("the machine changed: {machine:?}"));
            self.machine = machine;
        }
        effects
    }

    /// What the attempts have done to the memory of the victim.
    pub(super) fn end(&mut self) -> Vec<String> {
        let mut answer = String::new();
        let asked =
            self.victim.stdin.write_all(b"?\n").and_then(|()| self.victim.stdout.read_line(&mut answer));
        match asked {
            Ok(_) if answer.trim() == KEPT => Vec::new(),
            other => vec![format!("the memory of another process changed: {other:?} {answer}")],
        }
    }

    /// The state of everything that must not change.
    fn look(&self) -> BTreeMap<PathBuf, State> {
        let mut state = BTreeMap::new();
        let mut left = self.watched.clone();
        left.extend(CONTROL.map(|name| self.project.path(name)));
        left.extend([".git/config", ".git/hooks"].map(|name| self.project.path(name)));
        if self.is_read_only {
            left.push(self.project.directory().to_owned());
        }
        while let Some(path) = left.pop() {
            // The program itself works there.
            let is_own = [".local/state", ".local/share/codewright", ".cache"]
                .iter()
                .any(|name| path == self.project.home().join(name));
            let Ok(data) = path.symlink_metadata() else { continue };
            if data.is_dir() && !is_own {
                left.extend(fs::read_dir(&path).into_iter().flatten().flatten().map(|entry| entry.path()));
            }
            if !is_own {
                let size = if data.is_dir() { 0 } else { data.size() };
                // Git renews the time of an object that a snapshot uses.
                let is_object = path.starts_with(self.project.path(".git/objects"));
                let changed = if is_object { (0, 0) } else { (data.ctime(), data.ctime_nsec()) };
                state.insert(
                    path,
                    (data.ino(), data.mode(), data.uid(), data.nlink(), size, changed.0, changed.1),
                );
            }
        }
        state
    }
}

impl Listeners {
    fn open(root: &Path, home: &Path) -> Result<Self> {
        let mut tcp = vec![TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0))?];
        let mut udp = vec![UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?];
        // A machine may have no IPv6.
        tcp.extend(TcpListener::bind((Ipv6Addr::LOCALHOST, 0)));
        udp.extend(UdpSocket::bind((Ipv6Addr::LOCALHOST, 0)));
        for listener in &tcp {
            listener.set_nonblocking(true)?;
        }
        for socket in &udp {
            socket.set_nonblocking(true)?;
        }
        let mut unix = Vec::new();
        for name in ["outside/agent.sock", "outside/bus", "outside/free.sock", "project/dev.sock"] {
            unix.push(root.join(name));
        }
        unix.extend(
            [".docker/run/docker.sock", ".run/bus", ".gnupg/S.gpg-agent", ".service.sock"]
                .map(|name| home.join(name)),
        );
        let mut bound = Vec::new();
        for path in unix {
            fs::create_dir_all(path.parent().unwrap_or(root))?;
            bound.push((path.clone(), UnixListener::bind(&path)?));
        }
        let name = root.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let address = SocketAddr::from_abstract_name(&name)?;
        bound.push((PathBuf::from(&name), UnixListener::bind_addr(&address)?));
        for (_, listener) in &bound {
            listener.set_nonblocking(true)?;
        }
        let datagrams = vec![UnixDatagram::bind(root.join("outside/datagram.sock"))?];
        datagrams[0].set_nonblocking(true)?;
        Ok(Self { tcp, udp, unix: bound, datagrams, address: own_address(), name })
    }

    /// Everything that arrived since the last call.
    fn contacts(&self) -> Vec<String> {
        let mut contacts = Vec::new();
        for listener in &self.tcp {
            while let Ok((_, from)) = listener.accept() {
                contacts.push(format!("a TCP connection from {from}"));
            }
        }
        let mut buffer = [0; 512];
        for socket in &self.udp {
            loop {
                match socket.recv_from(&mut buffer) {
                    Ok((count, from)) => contacts.push(format!("{count} bytes by UDP from {from}")),
                    Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                    Err(_) => {}
                }
            }
        }
        for (path, listener) in &self.unix {
            while listener.accept().is_ok() {
                contacts.push(format!("a connection to {}", path.display()));
            }
        }
        for socket in &self.datagrams {
            while socket.recv(&mut buffer).is_ok() {
                contacts.push("a datagram to a unix socket".to_owned());
            }
        }
        contacts
    }
}

impl Victim {
    fn start(python: &str) -> Result<Self> {
        let mut child =
            Command::new(python).args(["-c", VICTIM]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let stdin = child.stdin.take().context("no input")?;
        let mut stdout = BufReader::new(child.stdout.take().context("no output")?);
        let mut line = String::new();
        stdout.read_line(&mut line)?;
        Ok(Self { child, stdin, stdout, address: line.trim().parse()? })
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        // It may have ended.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// The texts of a list in the source of the sandbox's paths.
fn list(name: &str) -> Vec<String> {
    let lines = PATHS.lines().skip_while(|line| !line.contains(&format!("const {name}:"))).skip(1);
    let lines = lines.take_while(|line| !line.starts_with("];"));
    lines.filter_map(|line| Some(line.trim().strip_prefix('"')?.split_once('"')?.0.to_owned())).collect()
}

/// The real program, because a shim would look for its files in the home directory.
fn python() -> Result<String> {
    let output = Command::new("python3").args(["-c", "import sys; print(sys.executable)"]).output();
    let output = output.context("the test needs python3")?;
    let path = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    if path.is_empty() {
        bail!("python3 does not know its path");
    }
    Ok(path)
}

/// An address of this machine besides loopback. Nothing is sent.
fn own_address() -> String {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0));
    let found = socket.and_then(|socket| {
        socket.connect((Ipv4Addr::new(192, 0, 2, 1), 9))?;
        Ok(socket.local_addr()?.ip())
    });
    found.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST)).to_string()
}

/// Facts about the machine.
fn machine() -> Vec<Option<String>> {
    let mut facts: Vec<Option<String>> = MACHINE.iter().map(|path| fs::read_to_string(path).ok()).collect();
    let mounts = fs::read_to_string("/proc/self/mountinfo").map(|text| text.lines().count().to_string());
    facts.push(mounts.ok());
    facts.push(Some(
        ["/etc/evil", "/tmp/evil", "/var/tmp/evil", "/dev/shm/evil", "/evil"]
            .iter()
            .filter(|path| Path::new(path).exists())
            .map(|path| (*path).to_owned())
            .collect(),
    ));
    facts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_of_secrets_is_found() {
        let secrets = list("SECRETS");
        assert!(secrets.len() > 100 && secrets.contains(&".ssh".to_owned()), "{secrets:?}");
    }
}
