//! The wider access that the model requests for one command.
//!
//! The argument `sandbox` is not in the schemas of tools. The result of a command describes it if the sandbox prevented
//! something. Each entry becomes an ordinary permission request, and what is granted widens the sandbox of this call
//! only. An agent that must not write cannot widen its sandbox for writing.

use std::path::{Path, PathBuf};

use codewright_config::{Dirs, NetworkAccess, SandboxMode};
use codewright_proxy::Target;
use codewright_tools::{Ask, Implied, Lift, Permission, Policy, UNKNOWN};
use codewright_workspace::Workspace;
use serde::Deserialize;
use serde_json::Value;

use crate::hosts::Port;
use crate::permission::gate::NETWORK;

/// The name of the argument.
const ARGUMENT: &str = "sandbox";
/// The largest number of entries of each list.
const MAX_ENTRIES: usize = 20;
/// The pattern that tells users that a command needs the network of the machine.
const OPEN_NETWORK: &str = "open network";
/// The longest entry.
const MAX_BYTES: usize = 4096;

/// The argument.
#[derive(Debug, Default, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Wider {
    #[serde(default)]
    write: Vec<String>,
    #[serde(default)]
    read: Vec<String>,
    mode: Option<Off>,
    network: Option<Hosts>,
}

/// The network that can be requested.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
enum Hosts {
    /// The network of the machine, without the proxy.
    Whole(Open),
    /// Hosts with their ports, through the proxy.
    Named(Vec<String>),
}

/// The word for the whole network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Open {
    Open,
}

/// The only mode that can be requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Off {
    Off,
}

/// The call that requests wider access.
pub(super) struct Place<'a> {
    /// The mode that holds for the call.
    pub(super) mode: SandboxMode,
    /// The directory of the session.
    pub(super) directory: &'a Path,
    pub(super) worktree: &'a Path,
    pub(super) dirs: &'a Dirs,
    /// The configured network of commands.
    pub(super) network: NetworkAccess,
    /// Whether rules deny the connection to some hosts.
    pub(super) denies_hosts: bool,
}

/// Returns the permission requests for the wider access that a call names.
///
/// # Errors
///
/// Fails with a text for the model if the argument is invalid or cannot be granted.
pub(super) fn asks(input: &Value, place: &Place<'_>) -> Result<Vec<Ask>, String> {
    let Some(written) = input.get(ARGUMENT).filter(|written| !written.is_null()) else {
        return Ok(Vec::new());
    };
    if place.mode == SandboxMode::Off {
        return Ok(Vec::new());
    }
    let wider: Wider = serde_json::from_value(written.clone())
        .map_err(|error| format!("The argument `sandbox` is invalid: {error}"))?;
    if place.mode == SandboxMode::ReadOnly && (!wider.write.is_empty() || wider.mode.is_some()) {
        return Err("This agent must not write, so its sandbox cannot be widened for writing.".to_owned());
    }
    if wider.write.len().max(wider.read.len()) > MAX_ENTRIES {
        return Err(format!("The argument `sandbox` has more than {MAX_ENTRIES} entries."));
    }
    let text = |key: &str| input.get(key).and_then(Value::as_str);
    let command = text("command").unwrap_or_default();
    let base = place.directory.join(text("workdir").unwrap_or("."));
    let mut asks = place.writes(&base, &wider.write)?;
    if !wider.read.is_empty() {
        asks.push(place.reads(&base, &wider.read)?);
    }
    if let Some(hosts) = &wider.network {
        asks.extend(place.connections(hosts, command)?);
    }
    if wider.mode.is_some() {
        asks.push(always_asking(command, Lift::Sandbox));
    }
    Ok(asks.into_iter().map(|ask| ask.with("command", command)).collect())
}

/// The request to run a command without a restriction. It always needs a reply.
fn always_asking(command: &str, lift: Lift) -> Ask {
    let mut ask = Ask::new(Permission::Sandbox, vec![command.to_owned()]).under(Policy::Reply(lift));
    ask.always.clear();
    ask
}

impl Place<'_> {
    /// The requests for a network. The whole network needs a reply, and hosts what the rules about them require. Ports of this
    /// machine need a rule or a reply with exactly the port.
    fn connections(&self, hosts: &Hosts, command: &str) -> Result<Vec<Ask>, String> {
        let entries = match hosts {
            Hosts::Named(entries) => entries,
            Hosts::Whole(Open::Open) if self.network == NetworkAccess::Open => return Ok(Vec::new()),
            // Services of the machine could write for the command.
            Hosts::Whole(Open::Open) if self.mode == SandboxMode::ReadOnly => {
                return Err(
                    "This agent must not write, so it cannot use the network of the machine. Name the hosts \
                            with their ports."
                        .to_owned(),
                );
            }
            Hosts::Whole(Open::Open) if self.denies_hosts => {
                return Err("Permission rules deny some hosts, so the network of the machine cannot be used. Name the \
                            hosts with their ports."
                    .to_owned());
            }
            Hosts::Whole(Open::Open) => {
                let mut ask = always_asking(command, Lift::Network);
                // Clients that do not know the metadata show it.
                ask.patterns.insert(0, OPEN_NETWORK.to_owned());
                return Ok(vec![ask]);
            }
        };
        if entries.is_empty() {
            return Ok(Vec::new());
        }
        if self.network == NetworkAccess::Off {
            return Err("The configuration switches the network of commands off. Only `\"network\": \"open\"` can be \
                        requested."
                .to_owned());
        }
        if entries.len() > MAX_ENTRIES {
            return Err(format!("The argument `sandbox` has more than {MAX_ENTRIES} hosts."));
        }
        let (mut hosts, mut ports) = (Vec::new(), Vec::new());
        for entry in entries {
            let target = Target::of_authority(entry, None)
                .map_err(|_| format!("`{}` is not a host with a port.", entry.escape_debug()))?;
            match Port::of(&target) {
                Some(port) => ports.push(port.name().to_owned()),
                None => hosts.push(target.to_string()),
            }
        }
        let ask = |patterns: Vec<String>| Ask { always: patterns.clone(), ..Ask::new(NETWORK, patterns) };
        let asks = [ask(hosts), ask(ports).under(Policy::Exact)];
        Ok(asks.into_iter().filter(|ask| !ask.patterns.is_empty()).collect())
    }

    /// The requests to write files and directories, and to use the directories outside that contain them.
    fn writes(&self, base: &Path, entries: &[String]) -> Result<Vec<Ask>, String> {
        let workspace = self.workspace()?;
        let (mut edit, mut outside) = (Ask::new("edit", Vec::new()), Vec::new());
        for entry in entries {
            let real = self.real(&workspace, base, entry)?;
            if self.dirs.home.starts_with(&real) {
                return Err(format!("`{entry}` contains your home directory. Name directories below it."));
            }
            let pattern = workspace.real_title(&real);
            let is_directory = real.is_dir();
            if !workspace.contains(&real) {
                let directory = if is_directory { &real } else { real.parent().unwrap_or(&real) };
                outside.push(directory.join("*").to_string_lossy().into_owned());
            }
            if is_directory {
                // Rules about its content count, too.
                edit.implied.push(Implied::new("edit", &format!("{pattern}/{UNKNOWN}")));
            }
            edit.patterns.push(if pattern.is_empty() { ".".to_owned() } else { pattern });
        }
        edit.always.clone_from(&edit.patterns);
        let mut asks = Vec::new();
        if !outside.is_empty() {
            let mut ask = Ask::new("external_directory", outside.clone());
            ask.always = outside;
            asks.push(ask);
        }
        if !edit.patterns.is_empty() {
            let paths = edit.patterns.join(", ");
            asks.push(edit.with("filepath", paths));
        }
        Ok(asks)
    }

    /// The request to read hidden files. Only a rule or an approval of exactly these paths grants it.
    fn reads(&self, base: &Path, entries: &[String]) -> Result<Ask, String> {
        let workspace = self.workspace()?;
        let mut patterns = Vec::new();
        for entry in entries {
            let real = self.real(&workspace, base, entry)?;
            if self.dirs.home.starts_with(&real) {
                return Err(format!(
                    "`{entry}` contains your home directory. Name files and directories below it."
                ));
            }
            let own = [
                &self.dirs.data,
                &self.dirs.state,
                &self.dirs.own_config,
                &self.dirs.config,
                &self.dirs.opencode_data,
            ];
            if own.into_iter().any(|own| real.starts_with(own) || own.starts_with(&real)) {
                return Err(format!("`{entry}` contains data of this program, which commands never read."));
            }
            patterns.push(workspace.real_title(&real));
        }
        let mut ask = Ask::new("read", patterns);
        ask.always.clone_from(&ask.patterns);
        let paths = ask.patterns.join(", ");
        Ok(ask.with("filepath", paths).under(Policy::Exact))
    }

    fn workspace(&self) -> Result<Workspace, String> {
        Workspace::new(self.directory, self.worktree).map_err(|error| error.to_string())
    }

    /// The path of an entry without links. They are followed now, so that the user decides about the target.
    fn real(&self, workspace: &Workspace, base: &Path, entry: &str) -> Result<PathBuf, String> {
        if entry.is_empty() || entry.len() > MAX_BYTES || entry.contains(['*', '?', UNKNOWN]) {
            return Err(format!("`{}` is not a path.", entry.escape_debug()));
        }
        let path = match entry.strip_prefix("~/") {
            Some(below) => self.dirs.home.join(below),
            None if entry == "~" => self.dirs.home.clone(),
            None => PathBuf::from(entry),
        };
        Ok(workspace.resolve_from(base, &path).map_err(|error| error.to_string())?.real)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn dirs(home: &Path) -> Dirs {
        Dirs {
            config: home.join("config"),
            own_config: home.join("own"),
            data: home.join("data"),
            state: home.join("state"),
            cache: home.join("cache"),
            opencode_data: home.join("opencode"),
            tmp: home.join("tmp"),
            home: home.to_owned(),
        }
    }

    /// The requests for an argument, as a permission with its patterns. `off` and `denies` describe the configuration.
    fn found(mode: SandboxMode, argument: &Value) -> Result<Vec<(String, String)>, String> {
        let folder = tempfile::TempDir::new_in("/var/tmp").unwrap();
        let root = folder.path().canonicalize().unwrap();
        for name in ["home/.ssh", "work/.git", "out"] {
            std::fs::create_dir_all(root.join(name)).unwrap();
        }
        std::os::unix::fs::symlink(root.join("out"), root.join("work/link")).unwrap();
        let dirs = dirs(&root.join("home"));
        let work = root.join("work");
        let network = if argument["off"] == true { NetworkAccess::Off } else { NetworkAccess::Proxy };
        let place = Place {
            mode,
            directory: &work,
            worktree: &work,
            dirs: &dirs,
            network,
            denies_hosts: argument["denies"] == true,
        };
        let mut argument = argument.clone();
        if let Some(argument) = argument.as_object_mut() {
            argument.retain(|key, _| key != "off" && key != "denies");
        }
        let text = argument.to_string().replace("ROOT", &root.to_string_lossy());
        let input = json!({"command": "make", "sandbox": serde_json::from_str::<Value>(&text).unwrap()});
        let asks = asks(&input, &place)?;
        let short = |text: String| text.replace(&*root.to_string_lossy(), "ROOT");
        Ok(asks.into_iter().map(|ask| (ask.permission.into(), short(ask.patterns.join(" ")))).collect())
    }

    fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(one, other)| ((*one).to_owned(), (*other).to_owned())).collect()
    }

    #[test]
    fn each_entry_becomes_a_request() {
        use SandboxMode::Workspace;
        for (argument, expected) in [
            (json!({}), pairs(&[])),
            (
                json!({"write": ["ROOT/out"]}),
                pairs(&[("external_directory", "ROOT/out/*"), ("edit", "../out")]),
            ),
            (
                json!({"write": ["link/new"]}),
                pairs(&[("external_directory", "ROOT/out/*"), ("edit", "../out/new")]),
            ),
            (json!({"write": [".git/config"]}), pairs(&[("edit", ".git/config")])),
            (json!({"read": ["~/.ssh/id"]}), pairs(&[("read", "../home/.ssh/id")])),
            (json!({"mode": "off"}), pairs(&[("sandbox", "make")])),
            (json!({"network": "open"}), pairs(&[("sandbox", "open network make")])),
            (json!({"network": "open", "off": true}), pairs(&[("sandbox", "open network make")])),
            (
                json!({"network": ["Example.com.:443", "[::1]:22"]}),
                pairs(&[("network", "example.com:443"), ("network", "localhost:22")]),
            ),
            (json!({"network": []}), pairs(&[])),
        ] {
            assert_eq!(found(Workspace, &argument), Ok(expected), "{argument}");
        }
        assert_eq!(found(SandboxMode::Off, &json!({"mode": "off"})), Ok(Vec::new()));
    }

    #[test]
    fn what_cannot_be_granted_is_an_error() {
        use SandboxMode::{ReadOnly, Workspace};
        for (mode, argument) in [
            (ReadOnly, json!({"write": ["x"]})),
            (ReadOnly, json!({"mode": "off"})),
            (Workspace, json!({"mode": "workspace"})),
            (Workspace, json!({"write": ["~"]})),
            (Workspace, json!({"write": ["/"]})),
            (Workspace, json!({"write": ["ROOT/out/*"]})),
            (Workspace, json!({"write": [""]})),
            (Workspace, json!({"read": ["~/data/auth.json"]})),
            (Workspace, json!({"read": ["~"]})),
            (Workspace, json!({"network": "off"})),
            (Workspace, json!({"network": ["example.com"]})),
            (Workspace, json!({"network": ["example.com:70000"]})),
            (Workspace, json!({"network": ["*:443"]})),
            (Workspace, json!({"network": vec!["a.com:1"; MAX_ENTRIES + 1]})),
            (Workspace, json!({"network": ["a.com:1"], "off": true})),
            (Workspace, json!({"network": "open", "denies": true})),
            (ReadOnly, json!({"network": "open"})),
            (Workspace, json!({"everything": true})),
            (Workspace, json!("off")),
            (Workspace, json!({"write": vec!["x"; MAX_ENTRIES + 1]})),
        ] {
            assert!(found(mode, &argument).is_err(), "{mode} {argument}");
        }
        assert!(found(ReadOnly, &json!({"read": ["~/.ssh/id"]})).is_ok());
        assert!(found(ReadOnly, &json!({"network": ["a.com:1"]})).is_ok());
    }
}
