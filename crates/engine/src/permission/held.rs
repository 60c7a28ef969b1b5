//! The directories outside the worktree that a command in the sandbox cannot reach, so that no rule asks about them.
//!
//! A command in the sandbox writes only the worktree and its private temporary directory, and reads almost
//! everything. The user therefore still decides about files outside and environment files that a command may read.

use std::path::Path;

use codewright_permission::{Ask, Containment, Permission};
use codewright_workspace::{Mechanism, TEMPORARY, normalize};

/// The effects of a call that the sandbox blocks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Held {
    /// Whether the command sees a private directory instead of [`TEMPORARY`].
    has_private_temporary: bool,
}

impl Held {
    /// Returns the effects that a mechanism blocks.
    pub(crate) fn of(mechanism: &Mechanism) -> Self {
        Self { has_private_temporary: matches!(mechanism, Mechanism::Bubblewrap(..)) }
    }

    /// Returns which effects of a request the kernel makes impossible.
    pub(crate) fn containment(&self, ask: &Ask) -> Containment {
        let is_unreachable = |pattern: &&String| {
            let directory = Path::new(pattern.strip_suffix("/*").unwrap_or(pattern));
            ask.permission == Permission::ExternalDirectory && self.covers(directory)
        };
        Containment::Kernel { unreachable: ask.patterns.iter().filter(is_unreachable).cloned().collect() }
    }

    /// Whether the command sees only its private directory under this name.
    fn covers(&self, directory: &Path) -> bool {
        self.has_private_temporary && is_private(&normalize(directory))
    }
}

/// Whether a command sees only its private directory there. Directories that exist outside can be shown to it.
fn is_private(path: &Path) -> bool {
    let Ok(below) = path.strip_prefix(TEMPORARY) else { return false };
    let first = below.components().next();
    first.is_none_or(|first| !Path::new(TEMPORARY).join(first).is_dir())
}

#[cfg(test)]
mod tests {
    use codewright_workspace::{Creation, Mounter};

    use super::*;

    #[test]
    fn only_names_in_the_private_directory_are_held() {
        let held =
            Held::of(&Mechanism::Bubblewrap("/usr/bin/bwrap".into(), Mounter::Helper, Creation::Checked));
        for (directory, expected) in [
            ("/tmp", true),
            ("/tmp/codewright-missing/x", true),
            ("/tmp/../etc", false),
            ("/tmpfile", false),
            ("/srv/out", false),
            ("/etc", false),
            ("/", false),
        ] {
            assert_eq!(held.covers(Path::new(directory)), expected, "{directory}");
        }
        assert!(!Held::of(&Mechanism::Seatbelt).covers(Path::new("/tmp/codewright-missing")));
    }

    #[test]
    fn a_directory_of_the_machine_in_the_temporary_one_is_not_held() {
        let folder = tempfile::Builder::new().tempdir_in(TEMPORARY).unwrap();
        assert!(
            !Held::of(&Mechanism::Bubblewrap("/usr/bin/bwrap".into(), Mounter::Helper, Creation::Checked))
                .covers(folder.path())
        );
    }
}
