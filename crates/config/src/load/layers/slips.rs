//! Reports what documents restrict in a way that has no effect.
//!
//! An agent whose restrictions are not understood is left out, also if another document or the program defines it.

use serde_json::{Value, json};

use super::{Layers, MAX_UNKNOWN_KEYS, is_mistake};
use crate::{
    Error, Map, builtin_agents, code,
    document::{Node, Origin, schema, slips},
    load::normalize::object_at,
    nearest,
    permission::Misnomer,
};

/// The keys of other programs at the top of a document, with those that have the same meaning.
const FOREIGN: [(&str, &str); 3] = [("mcpServers", "mcp"), ("mcp_servers", "mcp"), ("mcp-servers", "mcp")];

/// A name below `permission` or `tools` that is probably misspelt.
pub(super) struct Suspect {
    name: String,
    warning: String,
}

impl Layers<'_> {
    /// Refuses a misspelt key of the document: a rule that was written as `permision` would have no effect. Warns of one
    /// inside an object, and of a key that is there twice. Other unknown keys belong to later versions and other programs.
    pub(super) fn check_keys(&mut self, origin: &Origin<'_>, node: &Node) -> Result<(), Error> {
        let lost = slips::lost_agents(node);
        for unknown in schema::unknown_keys(node, &schema::CONFIG).into_iter().take(MAX_UNKNOWN_KEYS) {
            if lost.iter().any(|lost| lost.offset == unknown.offset) {
                continue;
            }
            let similar = nearest(&unknown.name, unknown.known.iter().copied(), 1);
            // `top_k` is an option, and not a mistyped `top_p`.
            let is_meant = |similar: &str| {
                unknown.is_useless
                    || is_mistake(&unknown.name, similar)
                        && (!unknown.is_option || unknown.name.chars().last() == similar.chars().last())
            };
            let nearest = similar.into_iter().next().filter(|similar| is_meant(similar));
            let (position, key) = (origin.position(unknown.offset), unknown.path);
            let is_top = key == unknown.name;
            let meant = FOREIGN.iter().find(|(foreign, _)| is_top && *foreign == key);
            match (nearest, meant) {
                (_, Some((_, meant))) => {
                    self.warnings.push(format!("{position}: `{key}` has no effect; use the key `{meant}`"));
                }
                (Some(nearest), None) if is_top => return Err(Error::UnknownKey { position, key, nearest }),
                (Some(nearest), None) => {
                    self.warnings.push(format!("{position}: unknown key `{key}`; did you mean `{nearest}`?"));
                }
                (None, None) if unknown.is_useless => {
                    self.warnings.push(format!("{position}: unknown key `{key}`; it has no effect"));
                }
                (None, None) => {}
            }
        }
        for (offset, name) in slips::server_types(node) {
            let position = origin.position(offset);
            self.warnings.push(format!(
                "{position}: unknown `mcp.{name}.type`; it can be `local` or `remote`, so the server is not started"
            ));
        }
        for slips::Duplicate { offset, path } in slips::duplicates(node) {
            let position = origin.position(offset);
            self.warnings
                .push(format!("{position}: the key `{path}` is there twice; only the last one counts"));
        }
        lost.into_iter().try_for_each(|lost| self.leave_out(origin, lost))?;
        self.suspect_tools(node, |offset| origin.position(offset).to_string());
        Ok(())
    }

    /// Leaves out an agent with a misspelt restriction. One that is built in is an error, because another agent would begin
    /// sessions in its place.
    fn leave_out(&mut self, origin: &Origin<'_>, lost: slips::LostAgent) -> Result<(), Error> {
        let slips::LostAgent { offset, path, agent, meant } = lost;
        let position = origin.position(offset);
        let builtin = builtin_agents(self.input.dirs, self.input.worktree);
        if builtin.iter().any(|known| known.name == agent) {
            return Err(Error::UnknownKey { position, key: path, nearest: meant.to_owned() });
        }
        self.warnings.push(format!(
            "{position}: unknown key `{path}`; did you mean `{meant}`? The agent `{agent}` is left out, because its \
             restrictions are not understood"
        ));
        self.left_out.push(agent);
        Ok(())
    }

    /// Remembers the names below `permission` and `tools` that are probably misspelt.
    pub(super) fn suspect_tools(&mut self, document: &Node, place: impl Fn(usize) -> String) {
        for slips::ToolSlip { offset, path, name, misnomer } in slips::tool_slips(document) {
            let place = place(offset);
            let warning = match misnomer {
                Misnomer::Nearest(meant) => {
                    format!("{place}: unknown tool in `{path}`; did you mean `{meant}`?")
                }
                Misnomer::Covered => format!(
                    "{place}: `{path}` has no effect: this tool needs the permission `edit`, so use that name"
                ),
            };
            self.suspects.push(Suspect { name, warning });
        }
    }

    /// Warns of the names that no server and no file with code has. A tool of a server begins with its name, and one of a
    /// file too.
    pub(super) fn report_suspects(&mut self, raw: &Map) {
        let suspects = std::mem::take(&mut self.suspects);
        if suspects.is_empty() {
            return;
        }
        let servers = object_at(raw, "mcp");
        let nested = object_at(&servers, "servers");
        let owners: Vec<String> =
            servers.keys().chain(nested.keys()).cloned().chain(code::names(&self.folders)).collect();
        let is_owned = |name: &str| {
            let rest = |owner: &String| name.strip_prefix(owner.as_str());
            owners.iter().filter_map(rest).any(|rest| rest.is_empty() || rest.starts_with('_'))
        };
        let found = suspects.into_iter().filter(|suspect| !is_owned(&suspect.name));
        self.warnings.extend(found.take(MAX_UNKNOWN_KEYS).map(|suspect| suspect.warning));
    }

    /// Disables the agents that are left out where something else defines them.
    pub(super) fn disable_left_out(&mut self, raw: &mut Map) {
        if self.left_out.is_empty() {
            return;
        }
        let builtin = builtin_agents(self.input.dirs, self.input.worktree);
        let mut agents = object_at(raw, "agent");
        for name in std::mem::take(&mut self.left_out) {
            let is_builtin = builtin.iter().any(|agent| agent.name == name);
            if let Some(Value::Object(agent)) = agents.get_mut(&name) {
                agent.insert("disable".to_owned(), json!(true));
            } else if is_builtin {
                agents.insert(name, json!({ "disable": true }));
            }
        }
        raw.insert("agent".to_owned(), Value::Object(agents));
    }
}
