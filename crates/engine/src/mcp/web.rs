//! The network of sign-ins to MCP servers.
//!
//! Addresses come from servers. A request reaches this machine or a local network only if it goes to a server that the user
//! configured, the MCP server or its sign-in server; otherwise every address of its host must be public, and only those are connected to.

use std::net::SocketAddr;

use codewright_llm::Client;
use codewright_llm::web::{self, exchange, has_proxy};
use codewright_mcp::Boxed;
use codewright_mcp::auth::{MAX_BODY_BYTES, Web, is_loopback};
use codewright_tools::is_public;
use url::{Host, Url};

/// The number of addresses of one name that are used.
const MAX_ADDRESSES: usize = 16;

/// The network with the proxy settings of the providers.
pub(crate) struct SignInWeb(pub(crate) Client);

impl Web for SignInWeb {
    fn send<'a>(
        &'a self,
        request: http::Request<Vec<u8>>,
        own: &'a [Url],
    ) -> Boxed<'a, Result<http::Response<Vec<u8>>, String>> {
        Box::pin(async move {
            let url = Url::parse(&request.uri().to_string()).map_err(|why| why.to_string())?;
            let addresses = addresses(&self.0, &url, own).await?;
            let host = url.host_str().unwrap_or_default();
            exchange(&self.0, request, &addresses, MAX_BODY_BYTES).await.map_err(|error| match error {
                web::Error::TooLarge => {
                    format!("the answer of `{host}` has more than {} KiB", MAX_BODY_BYTES / 1024)
                }
                web::Error::Unreachable(why) => format!("cannot reach `{host}`: {why}"),
            })
        })
    }
}

/// The addresses that a request may connect to. There are none if only a proxy can look up the name.
async fn addresses(client: &Client, url: &Url, own: &[Url]) -> Result<Vec<SocketAddr>, String> {
    let Some(host) = url.host() else { return Err("an address has no host".to_owned()) };
    let is_same =
        |own: &Url| own.host().is_some_and(|own| own == host) || (is_loopback(url) && is_loopback(own));
    let is_own = own.iter().any(is_same);
    let port = url.port_or_known_default().unwrap_or_default();
    let found = match host {
        Host::Ipv4(address) => vec![SocketAddr::from((address, port))],
        Host::Ipv6(address) => vec![SocketAddr::from((address, port))],
        Host::Domain(_) if has_proxy(client, url) => return Ok(Vec::new()),
        Host::Domain(name) => {
            let found = tokio::net::lookup_host((name, port)).await;
            let found = found.map_err(|why| format!("cannot look up `{name}`: {why}"))?;
            found.take(MAX_ADDRESSES).collect()
        }
    };
    match found.iter().find(|address| !is_own && !is_public(address.ip())) {
        Some(_) => Err(format!(
            "`{host}` is an address of this machine or a local network, which a server cannot name; if it \
             is your sign-in server, set `oauth.authorizationServer` of this MCP server in your configuration"
        )),
        None => Ok(found),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn private_addresses_are_only_reached_at_the_own_host() {
        let client = Client::new("test").unwrap();
        for (url, own, expected) in [
            ("http://127.0.0.1:1/token", "http://127.0.0.1:2/mcp", true),
            ("http://localhost:1/token", "http://127.0.0.1:2/mcp", true),
            ("https://10.0.0.1/token", "https://10.0.0.1:9/mcp", true),
            ("https://10.0.0.2/token", "https://10.0.0.1/mcp", false),
            ("http://127.0.0.1:1/token", "https://10.0.0.1/mcp", false),
            ("http://localhost:1/token", "https://mcp.example.com/mcp", false),
            ("https://169.254.169.254/", "http://127.0.0.1:2/mcp", false),
            ("https://[::1]/", "https://1.1.1.1/mcp", false),
            ("https://1.1.1.1/token", "https://10.0.0.1/mcp", true),
        ] {
            let [url, own] = [url, own].map(|url| Url::parse(url).unwrap());
            let shown = format!("{url} {own}");
            assert_eq!(addresses(&client, &url, &[own]).await.is_ok(), expected, "{shown}");
        }
        let own = ["https://mcp.example.com/", "https://10.0.0.7/"].map(|url| Url::parse(url).unwrap());
        let url = |text: &str| Url::parse(text).unwrap();
        assert!(addresses(&client, &url("https://10.0.0.7/token"), &own).await.is_ok());
        assert!(addresses(&client, &url("https://10.0.0.8/token"), &own).await.is_err());
    }
}
