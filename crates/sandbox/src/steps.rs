//! The file system of a sandbox as an ordered list of mounts.
//!
//! The helper makes them itself, or bubblewrap does where the helper may not.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use crate::access::{Access, Rule, is_covered, rules, without_repetitions};
use crate::opened::Identity;
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
    /// An empty file without permissions is in its place.
    Mask,
    /// An empty device is in its place, unless it has disappeared meanwhile.
    Cover,
}

/// The kinds and their words.
const KINDS: [(Kind, &str); 6] = [
    (Kind::Write, "write="),
    (Kind::Read, "read="),
    (Kind::HideDirectory, "hide-directory="),
    (Kind::HideFile, "hide-file="),
    (Kind::Mask, "mask="),
    (Kind::Cover, "cover="),
];

/// A mount at a path without links. Directories precede their content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) kind: Kind,
    pub(crate) path: PathBuf,
    /// The object that has to be at the path.
    pub(crate) identity: Option<Identity>,
}

impl Step {
    /// The step as an argument.
    pub(crate) fn word(&self) -> OsString {
        let name = KINDS.iter().find(|(kind, _)| *kind == self.kind).map_or("", |(_, name)| name);
        let mut word = OsString::from(name);
        if let Some(Identity { device, number }) = self.identity {
            // A path begins with a slash, so the numbers cannot be a part of it.
            word.push(format!("{device}:{number}"));
        }
        word.push(&self.path);
        word
    }

    /// The step of an argument.
    pub(crate) fn parse(word: &OsStr) -> Option<Self> {
        KINDS.iter().find_map(|(kind, name)| {
            let rest = word.as_bytes().strip_prefix(name.as_bytes())?;
            let (identity, path) = rest.split_at(rest.iter().position(|byte| *byte == b'/')?);
            let identity = if identity.is_empty() { None } else { Some(parse_identity(identity)?) };
            let path = PathBuf::from(OsString::from_vec(path.to_vec()));
            Some(Self { kind: *kind, path, identity })
        })
    }
}

/// The numbers of an object, as [`Step::word`] writes them.
fn parse_identity(text: &[u8]) -> Option<Identity> {
    let (device, number) = std::str::from_utf8(text).ok()?.split_once(':')?;
    Some(Identity { device: device.parse().ok()?, number: number.parse().ok()? })
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
            Access::Mask if rule.is_directory => Kind::HideDirectory,
            Access::Mask => Kind::Mask,
            Access::Hide if rule.is_directory => Kind::HideDirectory,
            Access::Hide => Kind::HideFile,
        };
        steps.push(Step { kind, path: rule.path.clone(), identity: rule.identity });
    }
    let sockets = sockets::visible(&rules)?;
    steps.extend(sockets.into_iter().map(|path| Step { kind: Kind::Cover, path, identity: None }));
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
    let pinned =
        pinned.into_iter().map(|path| Rule { path, access: Access::Pin, is_directory: true, identity: None });
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
        let steps = steps.map(|(kind, path)| Step { kind, path: path.into(), identity: None });
        for (program, expected) in [("/work/target/a", true), ("/work/bin/a", false), ("/usr/bin/a", false)] {
            assert_eq!(can_write(&steps, Path::new(program)), expected, "{program}");
        }
    }

    #[test]
    fn a_step_is_an_argument() {
        for (kind, _) in KINDS {
            for identity in [None, Some(Identity { device: u64::MAX, number: 7 })] {
                let path = OsString::from_vec(b"/a b/=\xff:1:2/".to_vec()).into();
                let step = Step { kind, path, identity };
                assert_eq!(Step::parse(&step.word()), Some(step));
            }
        }
        for word in
            ["", "write=", "write=relative", "other=/a", "/a", "write=1/a", "write=1:x/a", "write=:/a"]
        {
            assert_eq!(Step::parse(OsStr::new(word)), None, "{word}");
        }
    }
}
