//! The mechanisms that can enforce a sandbox, and which of them works on this machine.

use std::ffi::OsString;
use std::io::Read as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::io::ioctl_fionbio;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

use crate::bubblewrap::{self, Mounter};

/// The time that bubblewrap gets to prove that it works.
const PROBE_TIME: Duration = Duration::from_secs(5);
/// The time for what is left of it to end after it was killed.
const KILL_TIME: Duration = Duration::from_secs(1);
/// The interval at which the end of that proof is checked.
const PROBE_STEP: Duration = Duration::from_millis(1);
/// The largest part of an error message that is reported.
const MAX_REASON_BYTES: u64 = 512;
/// Files that container services create.
const CONTAINER_MARKS: &[&str] = &["/.dockerenv", "/run/.containerenv"];

/// The interface of Landlock that also restricts signals and abstract sockets.
const LANDLOCK_WITH_SCOPES: u32 = 6;
/// The interface of Landlock that also restricts truncation.
const LANDLOCK_WITH_TRUNCATION: u32 = 3;

/// A way to enforce a sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mechanism {
    /// bubblewrap at this path.
    Bubblewrap(PathBuf, Mounter, Creation),
    /// Landlock with this interface version, and a system call filter.
    Landlock(u32),
    /// `sandbox-exec` of macOS.
    Seatbelt,
    /// No mechanism. Nothing is enforced.
    Nothing,
}

/// Whether the names of new files are checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Creation {
    /// Before a file exists.
    Checked,
    /// The kernel has no means for that.
    Unchecked,
}

impl Mechanism {
    /// The name that users see.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Bubblewrap(..) => "bubblewrap",
            Self::Landlock(_) => "landlock",
            Self::Seatbelt => "seatbelt",
            Self::Nothing => "none",
        }
    }

    /// Whether all promises of a sandbox hold.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        matches!(self, Self::Bubblewrap(_, _, Creation::Checked) | Self::Seatbelt)
    }

    /// Whether a command cannot write anything outside its private directory if nothing else is writable.
    #[must_use]
    pub fn prevents_writing(&self) -> bool {
        // Older interfaces do not restrict truncation, sockets and signals.
        match self {
            Self::Bubblewrap(..) | Self::Seatbelt => true,
            Self::Landlock(version) => *version >= LANDLOCK_WITH_SCOPES,
            Self::Nothing => false,
        }
    }

    /// The promises that do not hold, as short sentences.
    #[must_use]
    pub fn gaps(&self) -> Vec<&'static str> {
        match self {
            Self::Bubblewrap(_, _, Creation::Checked) | Self::Seatbelt => Vec::new(),
            Self::Bubblewrap(_, _, Creation::Unchecked) => {
                vec!["Commands can create control files that do not exist yet."]
            }
            Self::Landlock(version) => {
                let gaps = [
                    (u32::MAX, "Protected files inside a writable directory can be written."),
                    (u32::MAX, "Files in it that permission rules deny to read can be read."),
                    (u32::MAX, "Commands see all processes."),
                    (u32::MAX, "Commands have no network, not even through the proxy."),
                    (LANDLOCK_WITH_SCOPES, "Commands can send signals to your other processes."),
                    (LANDLOCK_WITH_TRUNCATION, "Commands can empty files that they cannot write otherwise."),
                ];
                gaps.into_iter().filter(|(since, _)| version < since).map(|(_, gap)| gap).collect()
            }
            Self::Nothing => vec!["Commands can do everything that you can do."],
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
    /// bubblewrap has to make the mounts.
    Bubblewrap,
    /// The names of new files are not checked.
    Unchecked,
    /// Only Landlock may be used, at most with this interface version.
    Landlock(u32),
    /// No mechanism may be used.
    Nothing,
}

impl Strongest {
    /// Parses a name in the environment: `bubblewrap`, `unchecked`, `landlock`, `landlock:VERSION` or `none`. Anything else means all
    /// mechanisms.
    #[must_use]
    pub fn parse(name: &str) -> Self {
        match name {
            "bubblewrap" => Self::Bubblewrap,
            "unchecked" => Self::Unchecked,
            "landlock" => Self::Landlock(u32::MAX),
            "none" => Self::Nothing,
            name => {
                let version = name.strip_prefix("landlock:").and_then(|version| version.parse().ok());
                version.map_or(Self::Any, Self::Landlock)
            }
        }
    }
}

/// Finds the strongest mechanism. `helper` is this program; with [`CONFINE`](crate::CONFINE) and `probe` as its last
/// argument it exits with 0. This starts processes and waits for them, so the result should be kept.
#[must_use]
pub fn detect(helper: &Path, probe: &str, strongest: Strongest) -> Probe {
    let in_container = CONTAINER_MARKS.iter().any(|mark| Path::new(mark).exists());
    let mut reasons = Vec::new();
    let mechanism = if strongest == Strongest::Nothing {
        reasons.push("the environment excludes all mechanisms".to_owned());
        Mechanism::Nothing
    } else if cfg!(target_os = "linux") {
        match strongest {
            Strongest::Landlock(most) => {
                reasons.push("the environment excludes bubblewrap".to_owned());
                landlock(most, &mut reasons)
            }
            Strongest::Any | Strongest::Bubblewrap | Strongest::Unchecked | Strongest::Nothing => {
                bubblewrap_that_works(helper, probe, strongest, &mut reasons)
                    .unwrap_or_else(|| landlock(u32::MAX, &mut reasons))
            }
        }
    } else if cfg!(target_os = "macos") && Path::new(crate::seatbelt::PROGRAM).exists() {
        Mechanism::Seatbelt
    } else {
        reasons.push("this system has no mechanism that is supported".to_owned());
        Mechanism::Nothing
    };
    Probe { mechanism, reasons, in_container }
}

/// bubblewrap, if a process can be started in namespaces with it.
fn bubblewrap_that_works(
    helper: &Path,
    probe: &str,
    strongest: Strongest,
    reasons: &mut Vec<String>,
) -> Option<Mechanism> {
    let path = bubblewrap::DIRECTORIES
        .iter()
        .map(|directory| Path::new(directory).join(bubblewrap::NAME))
        .find(|path| path.is_file());
    let Some(path) = path else {
        reasons.push("bubblewrap is not installed (package `bubblewrap`)".to_owned());
        return None;
    };
    let mounters: &[Mounter] = match strongest {
        Strongest::Bubblewrap => &[Mounter::Bubblewrap],
        Strongest::Any | Strongest::Unchecked | Strongest::Landlock(_) | Strongest::Nothing => {
            &[Mounter::Helper, Mounter::Bubblewrap]
        }
    };
    let mut reason = None;
    for mounter in mounters {
        let checked = if strongest == Strongest::Unchecked {
            Err("the environment excludes the check".to_owned())
        } else if !can_check(*mounter) {
            Err("the kernel lets no process read the memory of another one (Yama)".to_owned())
        } else {
            tried(&path, &arguments(helper, probe, *mounter, Creation::Checked))
        };
        match checked {
            Ok(()) => return Some(Mechanism::Bubblewrap(path, *mounter, Creation::Checked)),
            Err(unchecked) => match tried(&path, &arguments(helper, probe, *mounter, Creation::Unchecked)) {
                Ok(()) => {
                    reasons.push(format!("the names of new files cannot be checked: {unchecked}"));
                    return Some(Mechanism::Bubblewrap(path, *mounter, Creation::Unchecked));
                }
                Err(error) => reason = Some(error),
            },
        }
    }
    reasons.extend(reason);
    None
}

/// Whether the helper can read the paths of its command.
#[cfg(target_os = "linux")]
fn can_check(mounter: Mounter) -> bool {
    use crate::privilege::Users;
    // Only a helper that enters its own namespace has rights in it.
    crate::creation::is_supported(match mounter {
        Mounter::Helper => Users::Own,
        Mounter::Bubblewrap => Users::Shared,
    })
}

/// Other systems have no helper.
#[cfg(not(target_os = "linux"))]
fn can_check(_: Mounter) -> bool {
    false
}

/// The arguments for a helper that restricts itself.
#[cfg(target_os = "linux")]
fn arguments(helper: &Path, probe: &str, mounter: Mounter, creation: Creation) -> Vec<OsString> {
    let mut args = match mounter {
        Mounter::Helper => bubblewrap::namespaces(&crate::Network::Off),
        Mounter::Bubblewrap => bubblewrap::EVERYTHING.iter().map(OsString::from).collect(),
    };
    args.push(helper.into());
    // Without its text the helper fails, and the other way is used.
    args.extend(crate::Inner::probe(mounter, creation).into_iter().flatten());
    args.push(probe.into());
    args
}

/// No helper makes mounts on other systems.
#[cfg(not(target_os = "linux"))]
fn arguments(_: &Path, _: &str, _: Mounter, _: Creation) -> Vec<OsString> {
    Vec::new()
}

/// Whether bubblewrap works with these arguments.
fn tried(path: &Path, args: &[OsString]) -> Result<(), String> {
    let mut command = Command::new(path);
    command
        .args(args)
        .current_dir("/")
        .env_clear()
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .process_group(0);
    let child = command.spawn().map_err(|error| format!("bubblewrap cannot be started: {error}"))?;
    finish(child).map_err(|reason| format!("bubblewrap does not work here: {reason}"))
}

/// Waits for the proof, and returns the first line of its errors if it failed. Nothing of it remains.
fn finish(mut child: Child) -> Result<(), String> {
    let id = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let has_ended = wait(id, PROBE_TIME);
    if let Some(id) = id {
        // Before the leader is reaped, so that no other group has this id. Mostly nothing is left.
        let _ = kill_process_group(id, Signal::KILL);
    }
    if !has_ended {
        // A process that is stuck in the kernel is abandoned.
        wait(id, KILL_TIME);
    }
    match child.try_wait() {
        Ok(_) if !has_ended => Err(format!("it did not end within {} s", PROBE_TIME.as_secs())),
        Ok(Some(status)) if status.success() => Ok(()),
        Ok(status) => {
            let errors = child.stderr.take().map(written).unwrap_or_default();
            let text = String::from_utf8_lossy(&errors);
            let line = text.lines().find(|line| !line.trim().is_empty());
            let status = || status.map(|status| status.to_string()).unwrap_or_default();
            Err(line.map_or_else(status, |line| line.trim().to_owned()))
        }
        Err(error) => Err(error.to_string()),
    }
}

/// Waits for the end of a child process without reaping it. Returns whether it has ended.
fn wait(id: Option<Pid>, limit: Duration) -> bool {
    let Some(id) = id else { return false };
    let until = Instant::now() + limit;
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    loop {
        match waitid(WaitId::Pid(id), options) {
            Ok(None) if Instant::now() < until => std::thread::sleep(PROBE_STEP),
            Ok(status) => return status.is_some(),
            Err(_) => return false,
        }
    }
}

/// What was written to a pipe so far. A process that was left may keep the pipe open.
fn written(mut errors: ChildStderr) -> Vec<u8> {
    let mut text = Vec::new();
    if ioctl_fionbio(&errors, true).is_ok() {
        // Without its errors the status is reported.
        drop(errors.by_ref().take(MAX_REASON_BYTES).read_to_end(&mut text));
    }
    text
}

#[cfg(target_os = "linux")]
fn landlock(most: u32, reasons: &mut Vec<String>) -> Mechanism {
    match crate::landlock::version() {
        Some(version) => Mechanism::Landlock(version.min(most.max(1))),
        None => {
            reasons.push("the kernel has no Landlock, or it is switched off".to_owned());
            Mechanism::Nothing
        }
    }
}

#[cfg(not(target_os = "linux"))]
fn landlock(_: u32, _: &mut Vec<String>) -> Mechanism {
    Mechanism::Nothing
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_keeps_the_errors_open_does_not_block() {
        let mut command = Command::new("sh");
        command.args(["-c", "sleep 60 & echo; echo it is broken >&2; exit 1"]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).process_group(0);
        let begun = Instant::now();
        assert_eq!(finish(command.spawn().unwrap()), Err("it is broken".to_owned()));
        assert!(begun.elapsed() < PROBE_TIME);
    }
}
