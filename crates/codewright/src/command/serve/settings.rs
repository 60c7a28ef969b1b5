//! The settings of a server: the flags, completed by the user's global configuration.

use std::net::IpAddr;
use std::path::Path;

use anyhow::Context as _;
use codewright_config::{Dirs, Env, LoadInput};
use codewright_server::Access;
use serde_json::Value;

use crate::cli::ListenArgs;
use crate::connection::engine_error;

/// The default address.
const LOOPBACK: &str = "127.0.0.1";
/// The name of the default address.
const LOCALHOST: &str = "localhost";
/// The default address of an announced server.
const ANY_ADDRESS: &str = "0.0.0.0";
/// The default announced host name.
const DOMAIN: &str = "opencode.local";

/// The address of a server and the origins that may use it.
pub(super) struct ServerSettings {
    pub(super) ip: IpAddr,
    /// The host name to print instead of the address.
    pub(super) name: Option<String>,
    pub(super) port: u16,
    pub(super) cors: Vec<String>,
    /// The announced host name, if the server is announced.
    pub(super) domain: Option<String>,
    pub(super) log_level: Option<String>,
    /// The users, if the server has several.
    pub(super) auth: Option<Value>,
    /// The metrics, if they are served.
    pub(super) metrics: Option<Access>,
    /// Who may ask whether the server is healthy and ready.
    pub(super) probes: Access,
}

impl ServerSettings {
    /// Reads the settings. The configuration of a directory is ignored, because a repository must not open the user's
    /// machine to others.
    pub(super) fn new(args: &ListenArgs, env: &Env) -> anyhow::Result<Self> {
        let dirs = Dirs::new(env).map_err(|error| engine_error(error.into()))?;
        let nowhere = Path::new("/");
        let input = LoadInput { directory: nowhere, worktree: nowhere, env, dirs: &dirs };
        let config = codewright_config::global(input).map_err(|error| engine_error(error.into()))?;
        let input = LoadInput { directory: nowhere, worktree: nowhere, env, dirs: &dirs };
        // A server must not start without its users because they are in another file.
        let auth = codewright_config::auth(input).map_err(|error| engine_error(error.into()))?;
        Ok(Self { auth, ..Self::of(args, &config)? })
    }

    fn of(args: &ListenArgs, config: &Value) -> anyhow::Result<Self> {
        let server = &config["server"];
        let port = match args.port {
            None | Some(0) => server["port"]
                .as_u64()
                .map_or(Ok(0), u16::try_from)
                .context("`server.port` is not a port number")?,
            Some(port) => port,
        };
        let is_announced = args.mdns || server["mdns"].as_bool().unwrap_or_default();
        let domain = args.mdns_domain.as_deref().or(server["mdnsDomain"].as_str()).unwrap_or(DOMAIN);
        let default = if is_announced { ANY_ADDRESS } else { LOOPBACK };
        let hostname = args.hostname.as_deref().or(server["hostname"].as_str()).unwrap_or(default);
        let more = server["cors"].as_array().into_iter().flatten().filter_map(Value::as_str);
        Ok(Self {
            ip: ip(hostname)?,
            name: (hostname == LOCALHOST).then(|| hostname.to_owned()),
            port,
            cors: args.cors.iter().cloned().chain(more.map(str::to_owned)).collect(),
            domain: is_announced.then(|| domain.to_owned()),
            log_level: config["logLevel"].as_str().map(str::to_owned),
            auth: None,
            metrics: metrics(args, &server["metrics"]),
            probes: access(&server["probes"]),
        })
    }
}

/// Returns who may read the metrics; `None` if they are off.
fn metrics(args: &ListenArgs, value: &Value) -> Option<Access> {
    let is_on = args.metrics || matches!(value.as_str(), Some("guarded" | "open"));
    is_on.then(|| access(value))
}

fn access(value: &Value) -> Access {
    if value == "open" { Access::Open } else { Access::Guarded }
}

fn ip(hostname: &str) -> anyhow::Result<IpAddr> {
    if hostname == LOCALHOST {
        return Ok(IpAddr::from([127, 0, 0, 1]));
    }
    hostname.parse().with_context(|| format!("`--hostname {hostname}` is not an IP address or `localhost`"))
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use serde_json::json;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        listen: ListenArgs,
    }

    #[track_caller]
    fn check(args: &str, server: &Value, expected: (&str, u16, Option<&str>)) {
        let line = Line::parse_from(["serve"].into_iter().chain(args.split_whitespace()));
        let settings = ServerSettings::of(&line.listen, &json!({"server": server})).unwrap();
        assert_eq!((settings.ip.to_string().as_str(), settings.port, settings.domain.as_deref()), expected);
    }

    #[test]
    fn flags_override_the_configuration_and_an_announced_server_listens_on_all_addresses() {
        check("", &json!({}), ("127.0.0.1", 0, None));
        check("--port 0", &json!({"port": 4801}), ("127.0.0.1", 4801, None));
        check("--port 7", &json!({"port": 4801}), ("127.0.0.1", 7, None));
        check("--mdns", &json!({}), ("0.0.0.0", 0, Some("opencode.local")));
        check("--mdns", &json!({"hostname": "127.0.0.2"}), ("127.0.0.2", 0, Some("opencode.local")));
        check("--mdns --hostname ::1", &json!({}), ("::1", 0, Some("opencode.local")));
        check("", &json!({"mdns": true, "mdnsDomain": "x.local"}), ("0.0.0.0", 0, Some("x.local")));
        check("--mdns-domain y.local", &json!({"mdns": true}), ("0.0.0.0", 0, Some("y.local")));
        check("--mdns-domain y.local", &json!({}), ("127.0.0.1", 0, None));
    }
}
