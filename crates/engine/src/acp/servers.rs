//! The MCP servers that another agent may use in its sessions.
//!
//! The agent starts and calls them itself, so no rule is asked about a call. Therefore it gets only servers of which the
//! rules allow every tool. Their commands run in the sandbox of the agent.

use codewright_acp_client::schema::{
    EnvVariable, HttpHeader, McpServer, McpServerHttp, McpServerSse, McpServerStdio,
};
use codewright_config::AcpProgram;
use codewright_mcp::{Config, Kind, Local, Remote, Status, Wire, sanitize};
use codewright_proto::UserMessage;

use crate::inner::Inner;
use crate::instance::Instance;
use crate::permission::rules::PermissionRules;

/// The largest number of servers in a session.
const MAX_SERVERS: usize = 64;

/// The session that gets the servers.
#[derive(Clone, Copy)]
pub(crate) struct Receiver<'a> {
    pub(crate) program: &'a AcpProgram,
    pub(crate) rules: &'a PermissionRules,
    pub(crate) prompt: &'a UserMessage,
    /// Whether the sandbox of the agent permits no changes.
    pub(crate) is_read_only: bool,
}

impl Receiver<'_> {
    /// Reports whether the agent may use a server. The agent of a repository gets no server of the user, because the
    /// variables and headers of these contain the user's secrets. That of the user gets no server of a repository, which
    /// would run in a sandbox with the network and the home directory.
    fn may_use(&self, name: &str, config: &Config) -> bool {
        let prefix = format!("{}_", sanitize(name));
        let off = self.prompt.tools.iter().flatten().filter(|(_, on)| !**on).map(|(tool, _)| tool);
        config.is_enabled
            && config.of_repository == self.program.of_repository
            && !self.is_read_only
            && self.rules.allow_all(&prefix)
            && off.into_iter().all(|tool| !tool.starts_with(&prefix) && !tool.contains('*'))
    }
}

/// Returns the servers of a directory that an agent may use.
pub(crate) fn servers(inner: &Inner, instance: &Instance, receiver: Receiver<'_>) -> Vec<McpServer> {
    let running = inner.mcp.find(&instance.directory);
    let off: Vec<String> = running
        .map(|servers| servers.statuses())
        .into_iter()
        .flatten()
        .filter(|(_, status)| *status == Status::Disabled)
        .map(|(name, _)| name)
        .collect();
    let configured = instance.mcp.iter().filter_map(|(name, config)| Some((name, config.as_ref().ok()?)));
    let usable = configured.filter(|(name, config)| !off.contains(name) && receiver.may_use(name, config));
    usable.filter_map(|(name, config)| server(name, config)).take(MAX_SERVERS).collect()
}

/// Returns a server in the form of the protocol, which has no working directory.
fn server(name: &str, config: &Config) -> Option<McpServer> {
    Some(match &config.kind {
        Kind::Local(Local { cwd: Some(_), .. }) => return None,
        Kind::Local(local) => {
            let env = local.environment.iter().map(|(name, value)| EnvVariable::new(name, value));
            let server = McpServerStdio::new(name, &local.program);
            McpServer::Stdio(server.args(local.args.clone()).env(env.collect()))
        }
        Kind::Remote(Remote { url, headers, wire, .. }) => {
            let headers = headers.iter().map(|(name, value)| HttpHeader::new(name, value)).collect();
            match wire {
                Wire::Either | Wire::Http => {
                    McpServer::Http(McpServerHttp::new(name, url.as_str()).headers(headers))
                }
                Wire::Sse => McpServer::Sse(McpServerSse::new(name, url.as_str()).headers(headers)),
            }
        }
    })
}
