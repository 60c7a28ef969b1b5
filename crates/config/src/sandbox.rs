//! The configuration of the sandbox: Codewright's own section `sandbox`.

use std::fmt;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::{Map, document::schema::Shape};

/// The keys of the section.
pub(crate) const KEYS: &[(&str, Shape)] = &[
    ("mode", MODE),
    ("write", TEXTS),
    ("read", TEXTS),
    ("hide", TEXTS),
    ("network", Shape::OneOf(&["proxy", "off", "open"])),
    ("outer", Shape::Switch),
];
/// A mode of the sandbox.
pub(crate) const MODE: Shape = Shape::OneOf(&["read-only", "workspace", "off"]);
const TEXTS: Shape = Shape::List(&Shape::Text);

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
    /// Hidden files and directories that commands can read after all.
    pub read: Vec<PathBuf>,
    /// More files and directories that commands cannot read.
    pub hide: Vec<PathBuf>,
    /// The access of commands to the network.
    pub network: NetworkAccess,
    /// Whether another sandbox, such as a container, already contains this program. Then commands need no more
    /// permission requests where this machine cannot enforce the mode.
    pub has_outer: bool,
}

impl SandboxConfig {
    /// Reads a checked section. Relative paths have no meaning and are ignored.
    pub(crate) fn read(section: &Map, home: &Path) -> Self {
        let text = |key: &str| section.get(key).and_then(Value::as_str);
        let paths = |key: &str| {
            let entries = section.get(key).and_then(Value::as_array).into_iter().flatten();
            entries.filter_map(Value::as_str).filter_map(|path| absolute(path, home)).collect()
        };
        Self {
            mode: text("mode").and_then(SandboxMode::parse),
            write: paths("write"),
            read: paths("read"),
            hide: paths("hide"),
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
            "mode": "workspace", "write": ["~/.cargo/registry", "/srv", "relative"], "hide": ["~"],
            "network": "open", "outer": true,
        });
        let config = SandboxConfig::read(section.as_object().unwrap(), Path::new("/home/u"));
        let expected = SandboxConfig {
            mode: Some(SandboxMode::Workspace),
            write: vec!["/home/u/.cargo/registry".into(), "/srv".into()],
            read: Vec::new(),
            hide: vec!["/home/u".into()],
            network: NetworkAccess::Open,
            has_outer: true,
        };
        assert_eq!(config, expected);
    }
}
