//! Finds the program that runs plugins.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use codewright_workspace::{ProgramSearch, Programs};

/// The oldest usable version of Node.
const OLDEST_NODE: u32 = 20;

/// A kind of runtime.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RuntimeKind {
    /// bun, for which most plugins are written.
    Bun,
    /// Node.
    Node,
    /// deno.
    Deno,
}

impl RuntimeKind {
    /// All kinds, the preferred one first.
    pub const ALL: [Self; 3] = [Self::Bun, Self::Node, Self::Deno];

    /// The name of its program.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Bun => "bun",
            Self::Node => "node",
            Self::Deno => "deno",
        }
    }
}

/// A program that runs plugins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Runtime {
    /// Its kind.
    pub kind: RuntimeKind,
    /// Its path.
    pub program: PathBuf,
    /// Whether the path contains Node.
    pub has_node: bool,
}

impl Runtime {
    /// Chooses between the runtime that was found and one that the program has installed. `named` is the user's choice.
    ///
    /// # Errors
    ///
    /// Returns the reason of the search if there is none.
    pub(crate) fn choose(
        found: Result<Self, String>,
        named: Option<RuntimeKind>,
        own: Option<Self>,
    ) -> Result<Self, String> {
        match (found, own) {
            (Ok(found), Some(own)) if named.is_none() && found.kind != own.kind => Ok(own),
            (Ok(found), _) => Ok(found),
            (Err(reason), own) => own.ok_or(reason),
        }
    }

    /// Finds a runtime: the named one, or the first one that is installed. Programs of the project are never used.
    ///
    /// # Errors
    ///
    /// Fails with a sentence if there is none.
    pub fn find(search: &ProgramSearch, named: Option<RuntimeKind>) -> Result<Self, String> {
        let search = ProgramSearch { programs: Programs::Installed, ..search.clone() };
        let find = |kind: RuntimeKind| {
            let program = search.installed(kind.name())?;
            let has_node = kind == RuntimeKind::Node || search.installed(RuntimeKind::Node.name()).is_some();
            Some(Self { kind, program, has_node })
        };
        match named {
            Some(kind) => find(kind).ok_or_else(|| {
                let name = kind.name();
                format!("`plugin_host.runtime` names `{name}`, which is not installed.")
            }),
            None => RuntimeKind::ALL.into_iter().find_map(find).ok_or_else(|| {
                format!(
                    "Plugins need bun, Node {OLDEST_NODE} or newer, or deno, and none of them is installed."
                )
            }),
        }
    }

    /// Returns the directory in which the process starts. It must not be a repository: bun runs the scripts that
    /// `bunfig.toml` in the working directory lists, and loads variables from `.env` there. The host script then changes
    /// to the project's directory.
    #[must_use]
    pub fn directory() -> &'static Path {
        Path::new("/")
    }

    /// Returns the variables that keep a process at rest from waking up. The script removes them again.
    ///
    /// `BUN_GC_TIMER_DISABLE` ends the timer of bun that collects garbage every second; allocations still collect it.
    /// `Malloc` uses another allocator than that of the engine, which has a thread that wakes up ten times a second.
    #[must_use]
    pub fn variables(&self) -> &'static [(&'static str, &'static str)] {
        match self.kind {
            RuntimeKind::Bun => &[("BUN_GC_TIMER_DISABLE", "1"), ("Malloc", "1")],
            RuntimeKind::Node | RuntimeKind::Deno => &[],
        }
    }

    /// Returns the arguments that run a script with a limit for its memory. bun has no such limit.
    #[must_use]
    pub fn args(&self, script: &Path, memory_bytes: u64) -> Vec<OsString> {
        let mut script = script.to_owned();
        if self.kind == RuntimeKind::Bun && self.has_node {
            // bun 1.3 reads the variables above too late, unless it has to look for the script. It then also changes the
            // path, which is harmless in the directory above if the path contains Node: otherwise bun makes a
            // replacement with a known name in the directory for temporary files.
            script.set_extension("");
        }
        let heap = format!("--max-old-space-size={}", memory_bytes / 1024 / 1024);
        let options = match self.kind {
            // Packages that are missing are never fetched while a plugin runs.
            RuntimeKind::Bun => vec!["--no-install".to_owned()],
            RuntimeKind::Node => vec![heap, "--no-warnings".to_owned()],
            RuntimeKind::Deno => {
                // Otherwise the engine collects garbage in several threads when nothing has happened for a while.
                let flags = format!("--v8-flags={heap},--single-threaded-gc,--no-memory-reducer");
                vec!["run".to_owned(), "-A".to_owned(), flags]
            }
        };
        options.into_iter().map(OsString::from).chain([script.into_os_string()]).collect()
    }
}

/// Returns why a version of a runtime cannot be used, if that is so.
pub(crate) fn too_old(name: &str, version: &str) -> Option<String> {
    let major = version.split('.').next()?.parse::<u32>().ok()?;
    (name == "node" && major < OLDEST_NODE).then(|| {
        format!("Plugins need Node {OLDEST_NODE} or newer, or bun or deno. Node {version} is installed.")
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn the_first_installed_runtime_is_used_and_none_of_the_project() {
        let root = tempfile::tempdir().unwrap();
        let program = |name: &str| {
            let path = root.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, "").unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        };
        let project = root.path().join("project");
        let search = ProgramSearch {
            directory: project.clone(),
            worktree: project.clone(),
            path: format!("{}:{}", project.join("bin").display(), root.path().join("bin").display()),
            programs: Programs::All,
        };
        program("project/bin/bun");
        assert!(Runtime::find(&search, None).unwrap_err().contains("Node 20"));
        program("bin/deno");
        assert_eq!(Runtime::find(&search, None).unwrap().kind, RuntimeKind::Deno);
        program("bin/node");
        let node = Runtime::find(&search, None).unwrap();
        assert_eq!((node.kind, node.program), (RuntimeKind::Node, root.path().join("bin/node")));
        assert_eq!(Runtime::find(&search, Some(RuntimeKind::Deno)).unwrap().kind, RuntimeKind::Deno);
        assert!(Runtime::find(&search, Some(RuntimeKind::Bun)).unwrap_err().contains("not installed"));
    }

    #[test]
    fn bun_looks_for_the_script_only_if_it_makes_no_replacement_for_node() {
        for (kind, has_node, expected) in [
            (RuntimeKind::Bun, true, "/cache/a/host"),
            (RuntimeKind::Bun, false, "/cache/a/host.mjs"),
            (RuntimeKind::Node, true, "/cache/a/host.mjs"),
            (RuntimeKind::Deno, true, "/cache/a/host.mjs"),
        ] {
            let runtime = Runtime { kind, program: PathBuf::from("/bin/any"), has_node };
            let args = runtime.args(Path::new("/cache/a/host.mjs"), 1 << 29);
            assert_eq!(args.last().unwrap(), expected, "{kind:?}");
            assert_eq!(runtime.variables().is_empty(), kind != RuntimeKind::Bun);
        }
    }

    #[test]
    fn an_old_node_is_refused() {
        for (name, version, is_usable) in [
            ("node", "18.20.1", false),
            ("node", "20.0.0", true),
            ("node", "26.1.0", true),
            ("bun", "1.3.14", true),
        ] {
            assert_eq!(too_old(name, version).is_none(), is_usable, "{name} {version}");
        }
    }
}
