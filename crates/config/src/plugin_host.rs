//! The configuration of the process that runs plugins: Codewright's own section `plugin_host`.

use std::time::Duration;

use serde_json::Value;

use crate::{Map, document::schema::Shape};

/// The keys of the section.
pub(crate) const KEYS: &[(&str, Shape)] = &[
    ("runtime", Shape::OneOf(&["bun", "node", "deno"])),
    ("memory", Shape::Positive),
    ("timeout", Shape::Positive),
    ("grant", Shape::List(&Shape::Text)),
    ("confine", Shape::List(&Shape::Text)),
    ("write", Shape::List(&Shape::Path(&[]))),
    ("install", Shape::Switch),
];
/// The limits for `memory` in MiB: the smallest value, the default and the largest value.
const MEMORY_MIB: [u64; 3] = [64, 512, 16 * 1024];
/// The same for `timeout` in seconds.
const TIMEOUT_SECONDS: [u64; 3] = [1, 10, 600];

/// The section `plugin_host`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PluginHostConfig {
    /// The runtime that the user chose: `bun`, `node` or `deno`.
    pub runtime: Option<String>,
    /// The limit for the memory of a process.
    pub memory_bytes: u64,
    /// The time limit of a hook.
    pub timeout: Duration,
    /// The plugins whose answers to permission requests count as the user's.
    pub grant: Vec<String>,
    /// The user's plugins that have no more rights than a command of the model.
    pub confine: Vec<String>,
    /// More files and directories that the user's plugins can write, as they are written: absolute, or below `~/`.
    pub write: Vec<String>,
    /// Whether bun is installed from the npm registry. `None` is only for a plugin that needs it; `true` is also without any
    /// runtime.
    pub installs_runtime: Option<bool>,
}

impl Default for PluginHostConfig {
    fn default() -> Self {
        Self::read(&Map::new())
    }
}

impl PluginHostConfig {
    /// Reads a checked section.
    pub(crate) fn read(section: &Map) -> Self {
        let number = |key: &str, [least, default, most]: [u64; 3]| {
            section.get(key).and_then(Value::as_u64).unwrap_or(default).clamp(least, most)
        };
        let texts = |key: &str| section.get(key).and_then(Value::as_array).into_iter().flatten();
        let list = |key: &str| texts(key).filter_map(Value::as_str).map(str::to_owned).collect();
        Self {
            runtime: section.get("runtime").and_then(Value::as_str).map(str::to_owned),
            memory_bytes: number("memory", MEMORY_MIB) * 1024 * 1024,
            timeout: Duration::from_secs(number("timeout", TIMEOUT_SECONDS)),
            grant: list("grant"),
            confine: list("confine"),
            write: list("write"),
            installs_runtime: section.get("install").and_then(Value::as_bool),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_stay_within_their_limits() {
        let read = |section: Value| PluginHostConfig::read(section.as_object().unwrap());
        let default = read(json!({}));
        assert_eq!((default.memory_bytes, default.timeout), (512 << 20, Duration::from_secs(10)));
        let small = read(json!({"memory": 1, "timeout": 0, "grant": ["a"]}));
        assert_eq!((small.memory_bytes, small.timeout), (64 << 20, Duration::from_secs(1)));
        assert_eq!(small.grant, ["a"]);
        assert_eq!(read(json!({"memory": 1_000_000})).memory_bytes, 16 << 30);
    }
}
