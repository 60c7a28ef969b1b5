//! The tool settings of a configuration: the shell, output limits, the depth and tools of subagents, and the effect of
//! a rejection.

use std::path::{Path, PathBuf};

use codewright_config::{Env, env};
use codewright_llm::PictureLimits;
use codewright_proto::{Action, Rule};
use codewright_tools::Bounds;
use serde_json::Value;

use crate::mcp::economy::Budget;

/// The largest output limits. The output is held in memory and sent to the model.
const MOST: Bounds = Bounds { lines: 100_000, bytes: 1024 * 1024 };
/// The default depth of subagents: they call no subagents of their own.
const SUBAGENT_DEPTH: u64 = 1;
/// The largest depth of subagents that a configuration can set.
const MAX_SUBAGENT_DEPTH: u64 = 32;
/// The directories that are searched for a shell by name if `PATH` is missing.
pub(super) const USUAL_PLACES: &str = "/usr/local/bin:/usr/bin:/bin";

/// The tool settings of a directory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Settled {
    /// The shell of commands and terminals, if it differs from the user's.
    pub(crate) shell: Option<PathBuf>,
    /// The size of an output that is sent to the model.
    pub(crate) bounds: Bounds,
    /// Whether a turn continues after the user rejects a call without a message.
    pub(crate) goes_on_when_refused: bool,
    /// The budget for the schemas of MCP servers' tools.
    pub(crate) mcp_budget: Budget,
    /// Whether language servers are installed from the npm registry.
    pub(crate) installs_servers: bool,
    /// Whether the `batch` tool is offered.
    pub(crate) batches: bool,
    /// The number of subagents above each other, 0 for none.
    pub(crate) subagent_depth: u64,
    /// Tools that subagents cannot use.
    primary_tools: Vec<String>,
}

impl Settled {
    pub(crate) fn read(config: &Value, variables: &Env, warnings: &mut Vec<String>) -> Self {
        let experiments = &config["experimental"];
        let tools = experiments["primary_tools"].as_array().into_iter().flatten();
        let shell = config["shell"].as_str().filter(|shell| !shell.is_empty()).and_then(|name| {
            let found = find(name, variables.filled(env::PATH).unwrap_or(USUAL_PLACES));
            if found.is_none() {
                warnings
                    .push(format!("`shell`: there is no program `{name}`; commands run in the usual shell"));
            }
            found
        });
        Self {
            shell,
            bounds: bounds(&config["tool_output"]),
            goes_on_when_refused: experiments["continue_loop_on_deny"] == true,
            mcp_budget: Budget::read(&config["mcp_tool_budget"]),
            installs_servers: config["lsp_install"] == true,
            batches: experiments["batch_tool"] == true,
            subagent_depth: config["subagent_depth"]
                .as_u64()
                .unwrap_or(SUBAGENT_DEPTH)
                .min(MAX_SUBAGENT_DEPTH),
            primary_tools: tools.filter_map(Value::as_str).map(str::to_owned).collect(),
        }
    }

    /// Returns the rules that deny these tools to subagents.
    pub(crate) fn rules_below(&self) -> impl Iterator<Item = Rule> {
        let rule = |tool: &String| Rule::new(tool, "*", Action::Deny);
        self.primary_tools.iter().map(rule)
    }
}

/// Returns the limits for pictures from `attachment.image`.
pub(super) fn pictures(config: &Value) -> PictureLimits {
    let wanted = &config["attachment"]["image"];
    let usual = PictureLimits::default();
    let number = |key: &str| wanted[key].as_u64().filter(|number| *number > 0);
    let pixels = |key: &str, usual: u32| number(key).map_or(usual, |n| u32::try_from(n).unwrap_or(u32::MAX));
    let bytes = number("max_base64_bytes").and_then(|bytes| usize::try_from(bytes).ok());
    PictureLimits {
        resize: wanted["auto_resize"] != false,
        width: pixels("max_width", usual.width),
        height: pixels("max_height", usual.height),
        base64_bytes: bytes.unwrap_or(usual.base64_bytes),
    }
}

fn bounds(wanted: &Value) -> Bounds {
    let number = |key: &str, usual: usize, most: usize| {
        let wanted = wanted[key].as_u64().and_then(|wanted| usize::try_from(wanted).ok());
        wanted.unwrap_or(usual).clamp(1, most)
    };
    let usual = Bounds::default();
    Bounds {
        lines: number("max_lines", usual.lines, MOST.lines),
        bytes: number("max_bytes", usual.bytes, MOST.bytes),
    }
}

/// Finds a program by its path or its name.
fn find(name: &str, instances: &str) -> Option<PathBuf> {
    let path = Path::new(name);
    if path.is_absolute() {
        return path.is_file().then(|| path.to_owned());
    }
    // A relative path would name another program in every directory.
    let is_name = path.components().count() == 1;
    let mut instances = std::env::split_paths(instances).filter(|instance| instance.is_absolute() && is_name);
    instances.find_map(|instance| Some(instance.join(path)).filter(|path| path.is_file()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn settled(config: Value) -> (Settled, Vec<String>) {
        let mut warnings = Vec::new();
        let settled = Settled::read(&config, &Env::default(), &mut warnings);
        (settled, warnings)
    }

    #[test]
    fn bounds_are_limited() {
        let check = |wanted: Value, lines: usize, bytes: usize| {
            assert_eq!(settled(json!({"tool_output": wanted})).0.bounds, Bounds { lines, bytes });
        };
        let usual = Bounds::default();
        check(json!({}), usual.lines, usual.bytes);
        check(json!({"max_lines": 10}), 10, usual.bytes);
        check(json!({"max_lines": u64::MAX, "max_bytes": u64::MAX}), MOST.lines, MOST.bytes);
    }

    #[test]
    fn pictures_have_the_configured_limits() {
        let usual = PictureLimits::default();
        for (wanted, expected) in [
            (json!({}), usual),
            (json!({"max_width": 5, "max_height": 6}), PictureLimits { width: 5, height: 6, ..usual }),
            (json!({"auto_resize": false}), PictureLimits { resize: false, ..usual }),
            (json!({"max_base64_bytes": 7}), PictureLimits { base64_bytes: 7, ..usual }),
        ] {
            assert_eq!(pictures(&json!({"attachment": {"image": wanted}})), expected);
        }
        assert_eq!(pictures(&json!({})), usual);
    }

    #[test]
    fn a_shell_is_found_by_name_or_reported_missing() {
        assert_eq!(settled(json!({})).0.shell, None);
        assert!(settled(json!({"shell": "sh"})).0.shell.is_some_and(|path| path.ends_with("bin/sh")));
        assert_eq!(settled(json!({"shell": "/bin/sh"})).0.shell, Some("/bin/sh".into()));
        for missing in ["/no/such/shell", "no-such-shell", "./sh", "bin/sh"] {
            let (found, warnings) = settled(json!({"shell": missing}));
            assert!(found.shell.is_none() && warnings[0].contains(missing), "{missing}");
        }
    }
}
