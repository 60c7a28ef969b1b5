//! The configuration of the sandbox: Codewright's own section `sandbox`.

use std::fmt;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::{Map, document::schema::Shape};

/// The keys of the section.
pub(crate) const KEYS: &[(&str, Shape)] = &[
    ("mode", MODE),
    ("write", WRITABLE),
    ("read", PATHS),
    ("hide", PATHS),
    ("network", Shape::OneOf(&["proxy", "off", "open"])),
    ("outer", Shape::Switch),
];
/// A mode of the sandbox.
pub(crate) const MODE: Shape = Shape::OneOf(&["read-only", "workspace", "off"]);
const PATHS: Shape = Shape::List(&Shape::Path(&[]));
// Everything of the user would be writable.
const WRITABLE: Shape = Shape::List(&Shape::Path(&["", "~"]));

/// What the commands of the model can do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum SandboxMode {
    /// Commands can do everything that the user can do.
    #[default]
    Off,
    /// Commands can write the worktree and a private temporary directory.
    Workspace,
    /// Commands can write only a private temporary directory.
    ReadOnly,
}

impl SandboxMode {
    /// All modes, from the widest to the strictest.
    pub const ALL: [Self; 3] = [Self::Off, Self::Workspace, Self::ReadOnly];

    /// The name in configuration and on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Workspace => "workspace",
            Self::ReadOnly => "read-only",
        }
    }

    /// Parses a name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.name() == name)
    }
}

impl fmt::Display for SandboxMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The access of commands to the network.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum NetworkAccess {
    /// None.
    Off,
    /// Through a proxy, to hosts that the permission `network` allows.
    #[default]
    Proxy,
    /// The network of the machine.
    Open,
}

impl NetworkAccess {
    /// The name in configuration.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Proxy => "proxy",
            Self::Open => "open",
        }
    }
}

/// The section `sandbox`. Paths are absolute; those that begin with `~/` are below the home directory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SandboxConfig {
    /// The mode, if it is set.
    pub mode: Option<SandboxMode>,
    /// More files and directories that commands can write, for example the caches of build tools.
    pub write: Vec<PathBuf>,
    /// Entries of `write` that would make the home directory writable, and have no effect.
    pub refused: Vec<PathBuf>,
    /// Hidden files and directories that commands can read after all.
    pub read: Vec<PathBuf>,
    /// More files and directories that commands cannot read.
    pub hide: Vec<PathBuf>,
    /// The user's configuration file outside of the configuration directories, and the files that the user's configuration
    /// inserts. No configuration key sets this.
    pub private: Vec<PathBuf>,
    /// The access of commands to the network.
    pub network: NetworkAccess,
    /// Whether another sandbox, such as a container, already contains this program. Then commands need no more
    /// permission requests where this machine cannot enforce the mode.
    pub has_outer: bool,
}

impl SandboxConfig {
    /// Returns the entries that have no effect or contradict each other, with the rule that decides.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        for path in &self.refused {
            let path = path.display();
            warnings.push(format!(
                "`sandbox.write` names `{path}`, which contains your home directory; it has no effect"
            ));
        }
        for path in self.write.iter().filter(|path| self.hide.contains(path)) {
            let path = path.display();
            warnings.push(format!("`sandbox.write` and `sandbox.hide` name `{path}`; it is hidden"));
        }
        for path in self.read.iter().filter(|path| self.hide.contains(path)) {
            let path = path.display();
            warnings.push(format!("`sandbox.read` and `sandbox.hide` name `{path}`; it can be read"));
        }
        warnings
    }

    /// Reads a checked section.
    pub(crate) fn read(section: &Map, home: &Path) -> Self {
        let text = |key: &str| section.get(key).and_then(Value::as_str);
        let paths = |key: &str| -> Vec<PathBuf> {
            let entries = section.get(key).and_then(Value::as_array).into_iter().flatten();
            entries.filter_map(Value::as_str).filter_map(|path| absolute(path, home)).collect()
        };
        let (refused, write) = paths("write").into_iter().partition(|path| home.starts_with(path));
        Self {
            mode: text("mode").and_then(SandboxMode::parse),
            write,
            refused,
            read: paths("read"),
            hide: paths("hide"),
            private: Vec::new(),
            network: match text("network") {
                Some("open") => NetworkAccess::Open,
                Some("off") => NetworkAccess::Off,
                _ => NetworkAccess::Proxy,
            },
            has_outer: section.get("outer").and_then(Value::as_bool).unwrap_or(false),
        }
    }
}

fn absolute(path: &str, home: &Path) -> Option<PathBuf> {
    match path.strip_prefix("~/") {
        Some(rest) => Some(home.join(rest)),
        None if path == "~" => Some(home.to_owned()),
        None => Some(PathBuf::from(path)).filter(|path| path.is_absolute()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_section_is_read() {
        let section = json!({
            "mode": "workspace", "write": ["~/.cargo/registry", "/srv", "/home"], "read": ["/srv"], "hide": ["~", "/srv"],
            "network": "open", "outer": true,
        });
        let config = SandboxConfig::read(section.as_object().unwrap(), Path::new("/home/u"));
        let expected = SandboxConfig {
            mode: Some(SandboxMode::Workspace),
            write: vec!["/home/u/.cargo/registry".into(), "/srv".into()],
            refused: vec!["/home".into()],
            read: vec!["/srv".into()],
            hide: vec!["/home/u".into(), "/srv".into()],
            private: Vec::new(),
            network: NetworkAccess::Open,
            has_outer: true,
        };
        assert_eq!(config, expected);
        let warnings = config.warnings();
        let has = |text: &str| warnings.iter().any(|warning| warning.ends_with(text));
        assert!(has("it has no effect") && has("it is hidden") && has("it can be read"), "{warnings:?}");
    }
}
