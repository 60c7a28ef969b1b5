//! The file system of a sandbox as an ordered list of mounts.
//!
//! The helper makes them itself, or bubblewrap does where the helper may not.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use crate::access::{Access, Rule, is_covered, rules, without_repetitions};
use crate::{Error, Sandbox, TEMPORARY, sockets};

/// Settings of the kernel. They belong to root by name, not by capability, so root could change them inside. Some
/// versions of bubblewrap leave them writable.
pub(crate) const KERNEL: &[&str] =
    &["/proc/acpi", "/proc/bus", "/proc/fs", "/proc/irq", "/proc/scsi", "/proc/sys", "/proc/sysrq-trigger"];
/// The path of the proxy's socket inside.
pub(crate) const PROXY: &str = "/dev/codewright-proxy";

/// One mount on top of a read-only root directory with a private `/proc` and `/dev`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The path can be written.
    Write,
    /// The path can be read and not written.
    Read,
    /// An empty directory is in its place.
    HideDirectory,
    /// An empty device is in its place.
    HideFile,
    /// The same, unless it has disappeared meanwhile.
    Cover,
}

/// The kinds and their words.
const KINDS: [(Kind, &str); 5] = [
    (Kind::Write, "write="),
    (Kind::Read, "read="),
    (Kind::HideDirectory, "hide-directory="),
    (Kind::HideFile, "hide-file="),
    (Kind::Cover, "cover="),
];

/// A mount at a path without links. Directories precede their content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) kind: Kind,
    pub(crate) path: PathBuf,
}

impl Step {
    /// The step as an argument.
    pub(crate) fn word(&self) -> OsString {
        let name = KINDS.iter().find(|(kind, _)| *kind == self.kind).map_or("", |(_, name)| name);
        let mut word = OsString::from(name);
        word.push(&self.path);
        word
    }

    /// The step of an argument.
    pub(crate) fn parse(word: &OsStr) -> Option<Self> {
        KINDS.iter().find_map(|(kind, name)| {
            let path = word.as_bytes().strip_prefix(name.as_bytes())?;
            let path = PathBuf::from(OsString::from_vec(path.to_vec()));
            path.is_absolute().then_some(Self { kind: *kind, path })
        })
    }
}

/// The mounts for the rules of a sandbox, and for the sockets that it does not hide.
///
/// # Errors
///
/// Fails if a path of the sandbox cannot be resolved.
pub(crate) fn steps(sandbox: &Sandbox) -> Result<Vec<Step>, Error> {
    let rules = with_pinned(without_repetitions(rules(sandbox)?));
    let mut steps = Vec::new();
    for rule in &rules {
        if rule.path == Path::new(TEMPORARY) || is_covered(&rules, rule) && !rule.path.starts_with(TEMPORARY)
        {
            continue;
        }
        let kind = match rule.access {
            Access::Write | Access::Pin => Kind::Write,
            Access::Show | Access::Protect => Kind::Read,
            Access::Hide if rule.is_directory => Kind::HideDirectory,
            Access::Hide => Kind::HideFile,
        };
        steps.push(Step { kind, path: rule.path.clone() });
    }
    let sockets = sockets::visible(&rules)?;
    steps.extend(sockets.into_iter().map(|path| Step { kind: Kind::Cover, path }));
    Ok(steps)
}

/// Whether a command could exchange a program.
pub(crate) fn can_write(steps: &[Step], program: &Path) -> bool {
    let above = steps.iter().rev().find(|step| program.starts_with(&step.path));
    above.is_some_and(|step| step.kind == Kind::Write)
}

/// Adds the directories between a writable directory and a restricted path inside it.
///
/// They become mount points too, which cannot be renamed. Otherwise a command could move the directory of a
/// restricted path away and create another one in its place.
fn with_pinned(rules: Vec<Rule>) -> Vec<Rule> {
    let mut pinned: Vec<PathBuf> = Vec::new();
    for (at, rule) in rules.iter().enumerate() {
        let above = rules[..at].iter().rev().find(|above| rule.path.starts_with(&above.path));
        let Some(above) = above.filter(|above| above.access.is_writable()) else { continue };
        let between = rule.path.ancestors().skip(1).take_while(|path| *path != above.path);
        pinned.extend(between.map(Path::to_owned));
    }
    pinned.sort();
    pinned.dedup();
    let pinned = pinned.into_iter().map(|path| Rule { path, access: Access::Pin, is_directory: true });
    let mut all: Vec<Rule> = rules.into_iter().chain(pinned).collect();
    all.sort_by(|one, other| one.path.cmp(&other.path));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_path_decides_who_can_exchange_a_program() {
        let steps = [(Kind::Write, "/work"), (Kind::Read, "/work/bin")];
        let steps = steps.map(|(kind, path)| Step { kind, path: path.into() });
        for (program, expected) in [("/work/target/a", true), ("/work/bin/a", false), ("/usr/bin/a", false)] {
            assert_eq!(can_write(&steps, Path::new(program)), expected, "{program}");
        }
    }

    #[test]
    fn a_step_is_an_argument() {
        for (kind, _) in KINDS {
            let step = Step { kind, path: OsString::from_vec(b"/a b/=\xff".to_vec()).into() };
            assert_eq!(Step::parse(&step.word()), Some(step));
        }
        for word in ["", "write=", "write=relative", "other=/a", "/a"] {
            assert_eq!(Step::parse(OsStr::new(word)), None, "{word}");
        }
    }
}
