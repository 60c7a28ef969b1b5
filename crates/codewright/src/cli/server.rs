//! The arguments of `serve` and `web`.

use std::path::PathBuf;

use clap::Args;

use super::Common;

/// The address of a server, and the web origins that may use it.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct ListenArgs {
    /// The port. Default, and for 0: `server.port` of the global configuration, or 4096 if it is free, or any free port
    #[arg(long, value_name = "PORT")]
    pub(crate) port: Option<u16>,
    /// The address to listen on [default: `server.hostname`, or 127.0.0.1]. Other machines need a password
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) hostname: Option<String>,
    /// An origin whose web pages may use the server; can be repeated
    #[arg(long, value_name = "ORIGIN")]
    pub(crate) cors: Vec<String>,
    /// Serve metrics in the text format of Prometheus at /metrics [default: `server.metrics`]
    #[arg(long)]
    pub(crate) metrics: bool,
    /// Announce the server in the local network; listens on all addresses unless --hostname is given
    #[arg(long)]
    pub(crate) mdns: bool,
    /// The announced host name [default: `server.mdnsDomain`, or opencode.local]
    #[arg(long, value_name = "DOMAIN")]
    pub(crate) mdns_domain: Option<String>,
}

/// This server among others that share its store.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct NodeArgs {
    /// The address at which other servers with the same store in PostgreSQL reach this one, such as http://10.0.0.1:4096
    /// [default: `node.address`]
    #[arg(long, value_name = "URL")]
    pub(crate) node_address: Option<String>,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct AcpArgs {
    /// The directory of sessions for which the editor names none [default: the current directory]
    #[arg(long, value_name = "DIRECTORY")]
    pub(crate) cwd: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) listen: ListenArgs,
    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct ServeArgs {
    #[command(flatten)]
    pub(crate) listen: ListenArgs,
    /// Listen on a socket file that only your user can open, instead of an address
    #[arg(long, value_name = "PATH", conflicts_with_all = ["port", "hostname", "mdns"])]
    pub(crate) socket: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) node: NodeArgs,
    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct WebArgs {
    #[command(flatten)]
    pub(crate) listen: ListenArgs,
    #[command(flatten)]
    pub(crate) node: NodeArgs,
    #[command(flatten)]
    pub(crate) common: Common,
}
