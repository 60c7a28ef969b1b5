//! Whether a sandbox is the reason why a command cannot use a path.

use std::fs::canonicalize;
use std::path::{Path, PathBuf};

use crate::access::{Access, rules};
use crate::{Error, Mechanism, Sandbox, TEMPORARY};

/// How a sandbox restricts a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Blocked {
    /// It exists, and the command does not see it.
    Hidden,
    /// It is protected in a directory that can be written.
    Protected,
    /// It is in a directory that cannot be written.
    ReadOnly,
}

impl Sandbox {
    /// Returns how the sandbox restricts an absolute path. `None` if the command can read and write it.
    ///
    /// # Errors
    ///
    /// Fails if a path of the sandbox cannot be resolved.
    pub fn blocked(&self, path: &Path, mechanism: &Mechanism) -> Result<Option<Blocked>, Error> {
        let path = resolved(path);
        let rules = rules(self)?;
        let rule = rules.iter().rev().find(|rule| path.starts_with(&rule.path));
        let has_private_directory = matches!(mechanism, Mechanism::Bubblewrap(..));
        if path.starts_with(&self.temporary) {
            return Ok(None);
        }
        let is_below = |path: &Path| path != Path::new(TEMPORARY) && path.starts_with(TEMPORARY);
        if has_private_directory
            && path.starts_with(TEMPORARY)
            && !rule.is_some_and(|rule| is_below(&rule.path))
        {
            return Ok(path.exists().then_some(Blocked::Hidden).filter(|_| is_below(&path)));
        }
        let is_guarded = || {
            let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return false };
            let name = name.to_string_lossy();
            self.guarded.iter().any(|row| resolved(&row.directory) == parent && row.matches(&name))
        };
        Ok(match rule.map(|rule| rule.access) {
            Some(Access::Hide | Access::Mask) => path.exists().then_some(Blocked::Hidden),
            Some(Access::Protect) => Some(Blocked::Protected),
            Some(Access::Write | Access::Pin) if is_guarded() => Some(Blocked::Protected),
            Some(Access::Write | Access::Pin) => None,
            Some(Access::Show) | None => Some(Blocked::ReadOnly),
        })
    }
}

/// The path with links resolved in the part that exists.
fn resolved(path: &Path) -> PathBuf {
    let existing = path.ancestors().find_map(|above| Some((above, canonicalize(above).ok()?)));
    let Some((above, real)) = existing else { return path.to_owned() };
    match path.strip_prefix(above) {
        Ok(rest) if !rest.as_os_str().is_empty() => real.join(rest),
        Ok(_) | Err(_) => real,
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{create_dir_all, write};
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::{Guarded, Mounter, Network};

    #[test]
    fn a_path_is_blocked_by_the_longest_rule() {
        let folder = tempfile::tempdir_in("/var/tmp").unwrap();
        let root = folder.path().canonicalize().unwrap();
        let at = |name: &str| root.join(name);
        for name in ["work/.git/hooks", "work/src", "home/.ssh", "other", "private"] {
            create_dir_all(at(name)).unwrap();
        }
        write(at("home/.ssh/id"), "").unwrap();
        write(at("work/.git/config"), "").unwrap();
        symlink(at("other"), at("work/link")).unwrap();
        let sandbox = Sandbox {
            write: vec![at("work")],
            protect: vec![at("work/.git/config")],
            guarded: vec![Guarded {
                directory: at("work"),
                patterns: vec![".mcp.json".to_owned()],
                except: Vec::new(),
            }],
            below: crate::Below::default(),
            hide: vec![at("home/.ssh")],
            show: Vec::new(),
            temporary: at("private"),
            mask: Vec::new(),
            blank: None,
            opened: Vec::new(),
            network: Network::Off,
        };
        let mechanism =
            Mechanism::Bubblewrap("/usr/bin/bwrap".into(), Mounter::Helper, crate::Creation::Checked);
        for (name, expected) in [
            ("work/src/new", None),
            ("work/.git/config", Some(Blocked::Protected)),
            ("work/.mcp.json", Some(Blocked::Protected)),
            ("work/src/.mcp.json", None),
            ("work/link/new", Some(Blocked::ReadOnly)),
            ("other/new", Some(Blocked::ReadOnly)),
            ("home/.ssh/id", Some(Blocked::Hidden)),
            ("home/.ssh/missing", None),
            ("private/x", None),
        ] {
            assert_eq!(sandbox.blocked(&at(name), &mechanism).unwrap(), expected, "{name}");
        }
        let outside = tempfile::tempdir_in("/tmp").unwrap();
        let path = outside.path().canonicalize().unwrap();
        assert_eq!(sandbox.blocked(&path, &mechanism).unwrap(), Some(Blocked::Hidden));
        assert_eq!(sandbox.blocked(Path::new("/tmp/codewright-missing"), &mechanism).unwrap(), None);
    }
}
