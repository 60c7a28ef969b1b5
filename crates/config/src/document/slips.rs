//! Finds what a document restricts in a way that has no effect: keys that are there twice, misspelt keys of agents, and names
//! below `permission` and `tools` that are not those of tools.
//!
//! The caller decides what follows. Positions are those of the values.

use super::{Kind, Node};
use crate::{
    markdown::{AGENT_RESTRICTIONS, DISALLOWED, is_slip, same_name},
    permission::{self, Misnomer},
};

/// The keys of a document with agents.
const AGENTS: [&str; 3] = ["agent", "agents", "mode"];
/// The types of MCP servers.
const SERVER_TYPES: [&str; 7] =
    ["local", "remote", "stdio", "http", "streamable-http", "streamableHttp", "sse"];
/// The maximum number of findings of one kind.
const MAX_FINDINGS: usize = 20;

/// A key that is there twice.
pub(crate) struct Duplicate {
    pub(crate) offset: usize,
    /// The key with those above it.
    pub(crate) path: String,
}

/// An agent with a key that is probably a misspelt restriction.
pub(crate) struct LostAgent {
    pub(crate) offset: usize,
    pub(crate) path: String,
    pub(crate) agent: String,
    pub(crate) meant: &'static str,
}

/// A name below `permission` or `tools` that is probably that of another tool.
pub(crate) struct ToolSlip {
    pub(crate) offset: usize,
    pub(crate) path: String,
    pub(crate) name: String,
    pub(crate) misnomer: Misnomer,
}

impl Node {
    fn entries(&self) -> &[(String, Self)] {
        if let Kind::Object(entries) = &self.kind { entries } else { &[] }
    }

    fn entries_mut(&mut self) -> &mut [(String, Self)] {
        if let Kind::Object(entries) = &mut self.kind { entries } else { &mut [] }
    }

    /// The values of a key, with the key.
    fn each<'a>(&'a self, keys: &'a [&'a str]) -> impl Iterator<Item = (&'a str, &'a Self)> {
        let entries = self.entries().iter().filter(|(key, _)| keys.contains(&key.as_str()));
        entries.map(|(key, node)| (key.as_str(), node))
    }

    /// Whether the value is `false`, or contains another action than `allow`.
    fn restricts(&self) -> bool {
        match &self.kind {
            Kind::Switch(is_on) => !is_on,
            Kind::Text(action) => action != "allow",
            Kind::List(nodes) => nodes.iter().any(Self::restricts),
            Kind::Object(entries) => entries.iter().any(|(_, node)| node.restricts()),
            Kind::Null | Kind::Number(_) => false,
        }
    }
}

/// Gives the keys that restrict agents their usual spelling, as those in Markdown files: `Tools` is `tools`.
pub(crate) fn read_names(document: &mut Node) {
    let agents = document.entries_mut().iter_mut().filter(|(key, _)| AGENTS.contains(&key.as_str()));
    for (_, agent) in agents.flat_map(|(_, agents)| agents.entries_mut()) {
        for name in AGENT_RESTRICTIONS {
            if agent.entries().iter().all(|(key, _)| key != name)
                && let Some((key, _)) = agent.entries_mut().iter_mut().find(|(key, _)| same_name(key, name))
            {
                *key = (*name).to_owned();
            }
        }
    }
}

/// Returns the positions and names of MCP servers of an unknown type.
pub(crate) fn server_types(document: &Node) -> Vec<(usize, String)> {
    let top = document.each(&["mcp"]).flat_map(|(_, servers)| servers.entries());
    let nested = document.each(&["mcp"]).flat_map(|(_, servers)| servers.each(&["servers"]));
    let servers = top.chain(nested.flat_map(|(_, servers)| servers.entries()));
    let types = servers.filter_map(|(name, server)| {
        let (_, node) = server.each(&["type"]).next()?;
        let Kind::Text(text) = &node.kind else { return None };
        (!SERVER_TYPES.contains(&text.as_str())).then(|| (node.offset, name.clone()))
    });
    types.take(MAX_FINDINGS).collect()
}

/// Returns the keys that are there twice in one object.
pub(crate) fn duplicates(document: &Node) -> Vec<Duplicate> {
    let mut found = Vec::new();
    collect_duplicates(document, "", &mut found);
    found
}

fn collect_duplicates(node: &Node, path: &str, found: &mut Vec<Duplicate>) {
    if let Kind::List(nodes) = &node.kind {
        for (index, node) in nodes.iter().enumerate() {
            collect_duplicates(node, &format!("{path}[{index}]"), found);
        }
    }
    let mut seen = std::collections::HashSet::new();
    for (key, node) in node.entries() {
        let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        if !seen.insert(key) && found.len() < MAX_FINDINGS {
            found.push(Duplicate { offset: node.offset, path: path.clone() });
        }
        collect_duplicates(node, &path, found);
    }
}

/// Returns the agents with a misspelt restriction.
pub(crate) fn lost_agents(document: &Node) -> Vec<LostAgent> {
    let agents = document.each(&AGENTS).flat_map(|(section, agents)| {
        agents.entries().iter().map(move |(name, agent)| (section, name, agent))
    });
    let lost = agents.flat_map(|(section, agent, node)| {
        node.entries().iter().filter_map(move |(key, node)| {
            let is_known = super::schema::AGENT_KEYS.iter().any(|(known, _)| known == key);
            let meant = AGENT_RESTRICTIONS.iter().filter(|_| !is_known);
            let meant = meant.copied().find(|name| is_slip(key, name) || key == name)?;
            // Only Markdown files have this key, which other agents use.
            let meant = if meant == DISALLOWED { "tools" } else { meant };
            let path = format!("{section}.{agent}.{key}");
            Some(LostAgent { offset: node.offset, path, agent: agent.clone(), meant })
        })
    });
    lost.take(MAX_FINDINGS).collect()
}

/// Returns the names below `permission` and `tools` that are probably misspelt.
pub(crate) fn tool_slips(document: &Node) -> Vec<ToolSlip> {
    let mut found = Vec::new();
    collect_tool_slips(document, "", &mut found);
    for (section, agents) in document.each(&AGENTS) {
        for (name, agent) in agents.entries() {
            collect_tool_slips(agent, &format!("{section}.{name}."), &mut found);
        }
    }
    found.truncate(MAX_FINDINGS);
    found
}

fn collect_tool_slips(node: &Node, above: &str, found: &mut Vec<ToolSlip>) {
    for (section, tools) in node.each(&["permission", "permissions", "tools"]) {
        for (name, node) in tools.entries() {
            if found.len() >= MAX_FINDINGS {
                return;
            }
            let misnomer = permission::misnomer(name).filter(|misnomer| match misnomer {
                Misnomer::Nearest(_) => true,
                // The older key `tools` converts the name. A rule that allows is not missed.
                Misnomer::Covered => section != "tools" && node.restricts(),
            });
            let path = format!("{above}{section}.{name}");
            let slip = |misnomer| ToolSlip { offset: node.offset, path, name: name.clone(), misnomer };
            found.extend(misnomer.map(slip));
        }
    }
}
