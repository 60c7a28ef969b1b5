//! The mechanisms that can enforce a sandbox, and which of them works on this machine.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::bubblewrap;

/// The time that bubblewrap gets to prove that it works.
const PROBE_TIME: Duration = Duration::from_secs(5);
/// The interval at which the end of that proof is checked.
const PROBE_STEP: Duration = Duration::from_millis(1);
/// The largest part of an error message that is reported.
const MAX_REASON_BYTES: u64 = 512;
/// Files that container services create.
const CONTAINER_MARKS: &[&str] = &["/.dockerenv", "/run/.containerenv"];

/// The interface of Landlock that also restricts signals and abstract sockets.
const LANDLOCK_WITH_SCOPES: u32 = 6;

/// A way to enforce a sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mechanism {
    /// bubblewrap at this path.
    Bubblewrap(PathBuf),
    /// Landlock with this interface version, and a system call filter.
    Landlock(u32),
    /// `sandbox-exec` of macOS.
    Seatbelt,
    /// No mechanism. Nothing is enforced.
    Nothing,
}

impl Mechanism {
    /// The name that users see.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Bubblewrap(_) => "bubblewrap",
            Self::Landlock(_) => "landlock",
            Self::Seatbelt => "seatbelt",
            Self::Nothing => "none",
        }
    }

    /// Whether all promises of a sandbox hold.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        matches!(self, Self::Bubblewrap(_) | Self::Seatbelt)
    }

    /// Whether a command cannot write anything outside its private directory if nothing else is writable.
    #[must_use]
    pub fn prevents_writing(&self) -> bool {
        // Older interfaces do not restrict truncation, sockets and signals.
        self.is_complete() || matches!(self, Self::Landlock(version) if *version >= LANDLOCK_WITH_SCOPES)
    }

    /// The promises that do not hold, as short sentences.
    #[must_use]
    pub fn gaps(&self) -> &'static [&'static str] {
        match self {
            Self::Bubblewrap(_) | Self::Seatbelt => &[],
            Self::Landlock(version) if *version < 4 => &[
                "Protected files inside a writable directory can be written.",
                "Commands see all processes.",
                "Commands can connect to no network at all, not even through the proxy.",
            ],
            Self::Landlock(_) => &[
                "Protected files inside a writable directory can be written.",
                "Commands see all processes.",
            ],
            Self::Nothing => &["Commands can do everything that you can do."],
        }
    }
}

/// What this machine can enforce.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Probe {
    /// The strongest mechanism that works.
    pub mechanism: Mechanism,
    /// Why the stronger ones do not work, one sentence each.
    pub reasons: Vec<String>,
    /// Whether this process runs in a container.
    pub in_container: bool,
}

/// The strongest mechanism that may be used. A weaker one leads to more permission requests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Strongest {
    /// All mechanisms may be used.
    #[default]
    Any,
    /// Only Landlock may be used.
    Landlock,
    /// No mechanism may be used.
    Nothing,
}

impl Strongest {
    /// Parses a name in the environment: `landlock` or `none`. Anything else means all mechanisms.
    #[must_use]
    pub fn parse(name: &str) -> Self {
        match name {
            "landlock" => Self::Landlock,
            "none" => Self::Nothing,
            _ => Self::Any,
        }
    }
}

/// Finds the strongest mechanism. `helper` is a program that exits with 0 when it is called with
/// `helper_args`; bubblewrap must be able to start it. This starts a process and waits for it, so the result
/// should be kept.
#[must_use]
pub fn detect(helper: &Path, helper_args: &[&str], strongest: Strongest) -> Probe {
    let in_container = CONTAINER_MARKS.iter().any(|mark| Path::new(mark).exists());
    let mut reasons = Vec::new();
    let mechanism = if strongest == Strongest::Nothing {
        reasons.push("the environment excludes all mechanisms".to_owned());
        Mechanism::Nothing
    } else if cfg!(target_os = "linux") && strongest == Strongest::Landlock {
        reasons.push("the environment excludes bubblewrap".to_owned());
        landlock(&mut reasons)
    } else if cfg!(target_os = "linux") {
        bubblewrap_that_works(helper, helper_args, &mut reasons)
            .map(Mechanism::Bubblewrap)
            .unwrap_or_else(|| landlock(&mut reasons))
    } else if cfg!(target_os = "macos") && Path::new(crate::seatbelt::PROGRAM).exists() {
        Mechanism::Seatbelt
    } else {
        reasons.push("this system has no mechanism that is supported".to_owned());
        Mechanism::Nothing
    };
    Probe { mechanism, reasons, in_container }
}

/// The path of bubblewrap if a process can be started in namespaces with it.
fn bubblewrap_that_works(helper: &Path, args: &[&str], reasons: &mut Vec<String>) -> Option<PathBuf> {
    let path = bubblewrap::DIRECTORIES
        .iter()
        .map(|directory| Path::new(directory).join(bubblewrap::NAME))
        .find(|path| path.is_file());
    let Some(path) = path else {
        reasons.push("bubblewrap is not installed (package `bubblewrap`)".to_owned());
        return None;
    };
    let mut command = Command::new(&path);
    command
        .args(["--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-net", "--as-pid-1"])
        .args(["--cap-drop", "ALL", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--"])
        .arg(helper)
        .args(args)
        .current_dir("/")
        .env_clear()
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    match command.spawn().map(finish) {
        Ok(Ok(())) => Some(path),
        Ok(Err(reason)) => {
            reasons.push(format!("bubblewrap does not work here: {reason}"));
            None
        }
        Err(error) => {
            reasons.push(format!("bubblewrap cannot be started: {error}"));
            None
        }
    }
}

/// Waits for the proof, and returns the first line of its errors if it failed.
fn finish(mut child: Child) -> Result<(), String> {
    let until = Instant::now() + PROBE_TIME;
    loop {
        match child.try_wait() {
            Ok(Some(status)) if status.success() => return Ok(()),
            Ok(Some(status)) => {
                let mut text = Vec::new();
                if let Some(errors) = child.stderr.take() {
                    // Without its errors the status is reported.
                    drop(errors.take(MAX_REASON_BYTES).read_to_end(&mut text));
                }
                let text = String::from_utf8_lossy(&text);
                let line = text.lines().find(|line| !line.trim().is_empty());
                return Err(line.map_or_else(|| status.to_string(), |line| line.trim().to_owned()));
            }
            Ok(None) if Instant::now() < until => std::thread::sleep(PROBE_STEP),
            Ok(None) => {
                drop(child.kill());
                drop(child.wait());
                return Err(format!("it did not end within {} s", PROBE_TIME.as_secs()));
            }
            Err(error) => return Err(error.to_string()),
        }
    }
}

#[cfg(target_os = "linux")]
fn landlock(reasons: &mut Vec<String>) -> Mechanism {
    match crate::landlock::version() {
        Some(version) => Mechanism::Landlock(version),
        None => {
            reasons.push("the kernel has no Landlock, or it is switched off".to_owned());
            Mechanism::Nothing
        }
    }
}

#[cfg(not(target_os = "linux"))]
fn landlock(_: &mut Vec<String>) -> Mechanism {
    Mechanism::Nothing
}
