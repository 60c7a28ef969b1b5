//! Landlock: restricts the files that a process and its descendants can open.
//!
//! Landlock only allows: a directory with everything in it, or nothing. A hidden path is therefore left out by
//! allowing the entries of each directory above it one by one. Entries that are created there later are not
//! visible. Protected paths inside a writable directory cannot be expressed.

use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access as _, AccessFs, BitFlags, CompatLevel, Compatible as _, PathBeneath, PathFd, Ruleset,
    RulesetAttr as _, RulesetCreated, RulesetCreatedAttr as _, RulesetStatus, Scope,
};
use rustix::fs::{FileType, fstat};
use serde::{Deserialize, Serialize};

use crate::access::{Access, Rule, rules};
use crate::opened::{Exact, Opened, open_exact};
use crate::{Error, Sandbox};

/// The newest interface that the rules are written for.
const NEWEST: ABI = ABI::V6;
/// The interfaces, newest first.
const KNOWN: [(ABI, u32); 6] =
    [(NEWEST, 6), (ABI::V5, 5), (ABI::V4, 4), (ABI::V3, 3), (ABI::V2, 2), (ABI::V1, 1)];
/// The largest number of rules. Beyond it the command is not started.
const MAX_RULES: usize = 10_000;
/// The devices that every program may use.
const DEVICES: &[&str] = &[
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
    "/dev/ptmx",
    "/dev/pts",
    "/dev/shm",
];

/// The files that a process can open.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Paths {
    /// The version of the interface.
    version: u32,
    read: Vec<PathBuf>,
    pub(crate) write: Vec<PathBuf>,
    /// The objects that have to be at some of these paths.
    exact: Vec<Exact>,
}

/// The version of the kernel's interface that can be used. `None` without Landlock.
pub(crate) fn version() -> Option<u32> {
    KNOWN.into_iter().find_map(|(abi, version)| {
        let ruleset = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
        ruleset.handle_access(AccessFs::from_all(abi)).and_then(Ruleset::create).is_ok().then_some(version)
    })
}

impl Paths {
    /// # Errors
    ///
    /// Fails if a path cannot be resolved, or if there are too many rules.
    pub(crate) fn new(sandbox: &Sandbox, version: u32) -> Result<Self, Error> {
        let rules = rules(sandbox)?;
        let mut paths = Self { version, ..Self::default() };
        allow(Path::new("/"), &rules, &mut paths.read)?;
        for rule in &rules {
            paths.exact.extend(Exact::of(&rule.path, rule.identity));
            match rule.access {
                Access::Show if rule.is_directory => allow(&rule.path, &rules, &mut paths.read)?,
                Access::Show => paths.read.push(rule.path.clone()),
                Access::Write | Access::Pin => paths.write.push(rule.path.clone()),
                Access::Protect | Access::Mask | Access::Hide => {}
            }
        }
        let private = sandbox.opened_at(&sandbox.temporary).map(Opened::identity);
        paths.exact.extend(Exact::of(&sandbox.temporary, private));
        paths.write.push(sandbox.temporary.clone());
        Ok(paths)
    }

    /// Restricts the calling thread and all processes that it starts.
    ///
    /// # Errors
    ///
    /// Fails if the kernel enforces nothing.
    pub(crate) fn restrict(&self) -> Result<(), Error> {
        let failed = |error: landlock::RulesetError| Error::Kernel(format!("Landlock: {error}"));
        let abi =
            KNOWN.into_iter().find(|(_, version)| *version == self.version).map_or(NEWEST, |(abi, _)| abi);
        let ruleset = Ruleset::default().handle_access(AccessFs::from_all(abi)).map_err(failed)?;
        let scopes = Scope::from_all(abi);
        let ruleset = if scopes.is_empty() { ruleset } else { ruleset.scope(scopes).map_err(failed)? };
        let mut created = ruleset.create().map_err(failed)?;
        let read = AccessFs::from_read(abi);
        // A device file would give root the content of a disk.
        let write = AccessFs::from_all(abi) & !(AccessFs::MakeBlock | AccessFs::MakeChar);
        for (list, access) in [(&self.read, read), (&self.write, write)] {
            for path in list {
                created = self.add(created, path, access)?;
            }
        }
        for device in DEVICES {
            created = add(created, Path::new(device), write)?;
        }
        match created.restrict_self().map_err(failed)?.ruleset {
            RulesetStatus::NotEnforced => Err(Error::Kernel("Landlock is switched off".to_owned())),
            RulesetStatus::PartiallyEnforced | RulesetStatus::FullyEnforced => Ok(()),
        }
    }

    /// Adds a rule for a path without links. Paths that do not exist need none, and neither do links that have appeared
    /// since the paths were resolved.
    fn add(
        &self,
        ruleset: RulesetCreated,
        path: &Path,
        access: BitFlags<AccessFs>,
    ) -> Result<RulesetCreated, Error> {
        let descriptor = match self.exact.iter().find(|exact| exact.path == path) {
            Some(exact) => exact.identity.open(path)?,
            None => match open_exact(path) {
                Ok(descriptor) => descriptor,
                Err(_) => return Ok(ruleset),
            },
        };
        let is_directory = fstat(&descriptor)
            .is_ok_and(|found| FileType::from_raw_mode(found.st_mode) == FileType::Directory);
        let access = if is_directory { access } else { access & AccessFs::from_file(NEWEST) };
        ruleset
            .add_rule(PathBeneath::new(descriptor, access))
            .map_err(|error| Error::Kernel(format!("Landlock rejected `{}`: {error}", path.display())))
    }
}

/// Keeps the calling thread and all processes that it starts from creating, renaming and linking entries, except in some
/// directories, and from removing files if `removal` says so.
///
/// # Errors
///
/// Fails if the kernel does not enforce all of it.
pub(crate) fn prevent_creation(free: &[PathBuf], removal: Removal) -> Result<(), Error> {
    let failed = |error: landlock::RulesetError| Error::Kernel(format!("Landlock: {error}"));
    // Sockets have no content.
    let create = AccessFs::MakeReg
        | AccessFs::MakeDir
        | AccessFs::MakeSym
        | AccessFs::MakeFifo
        | AccessFs::MakeChar
        | AccessFs::MakeBlock
        | AccessFs::Refer;
    let access = match removal {
        Removal::Permitted => create,
        Removal::Prevented => create | AccessFs::RemoveFile,
    };
    let ruleset = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
    let mut created = ruleset.handle_access(access).and_then(Ruleset::create).map_err(failed)?;
    for directory in free.iter().filter(|path| path.is_dir()) {
        created = add(created, directory, access)?;
    }
    match created.restrict_self().map_err(failed)?.ruleset {
        RulesetStatus::FullyEnforced => Ok(()),
        RulesetStatus::PartiallyEnforced | RulesetStatus::NotEnforced => {
            Err(Error::Kernel("Landlock is switched off".to_owned()))
        }
    }
}

/// Whether files can be removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Removal {
    Permitted,
    Prevented,
}

/// Adds a rule for a device or a directory, which may be a link. Missing ones need none.
fn add(ruleset: RulesetCreated, path: &Path, access: BitFlags<AccessFs>) -> Result<RulesetCreated, Error> {
    let Ok(descriptor) = PathFd::new(path) else { return Ok(ruleset) };
    let is_directory = std::fs::metadata(path).is_ok_and(|metadata| metadata.is_dir());
    let access = if is_directory { access } else { access & AccessFs::from_file(NEWEST) };
    ruleset
        .add_rule(PathBeneath::new(descriptor, access))
        .map_err(|error| Error::Kernel(format!("Landlock rejected `{}`: {error}", path.display())))
}

/// Adds the directory, or those of its entries that are not hidden.
fn allow(directory: &Path, rules: &[Rule], into: &mut Vec<PathBuf>) -> Result<(), Error> {
    let is_hidden = |path: &Path| rules.iter().any(|rule| rule.access.is_hidden() && rule.path == path);
    let hides_below =
        |path: &Path| rules.iter().any(|rule| rule.access.is_hidden() && rule.path.starts_with(path));
    if !hides_below(directory) {
        into.push(directory.to_owned());
    } else if !is_hidden(directory) {
        let failed = |source| Error::Path { path: directory.to_owned(), source };
        for entry in std::fs::read_dir(directory).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            // Links are judged by their targets.
            if entry.file_type().is_ok_and(|kind| !kind.is_symlink()) {
                allow(&entry.path(), rules, into)?;
            }
        }
    }
    if into.len() > MAX_RULES {
        return Err(Error::Kernel(format!("Landlock would need more than {MAX_RULES} rules")));
    }
    Ok(())
}
