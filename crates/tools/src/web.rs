//! Network access for the tools that fetch.
//!
//! The implementation knows proxies and certificates; the tool decides which addresses may be reached. A tool
//! resolves a name once and checks the addresses, and the request uses only these, so that the name cannot
//! resolve to another server later.

use std::future::Future;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::pin::Pin;

use url::Url;

/// Sends single requests without following redirects.
pub trait Web: Send + Sync {
    /// Whether a proxy is used, which resolves names itself.
    fn has_proxy(&self, url: &Url) -> bool;
    /// Resolves a host name.
    fn look_up<'a>(&'a self, host: &'a str, port: u16) -> Sent<'a, Vec<SocketAddr>>;
    /// Sends a request and reads the response.
    fn send<'a>(&'a self, request: &'a WebRequest) -> Sent<'a, WebAnswer>;
}

/// The future of a network operation.
pub type Sent<'a, T> = Pin<Box<dyn Future<Output = Result<T, WebError>> + Send + 'a>>;

/// A request.
#[derive(Debug, Clone)]
pub struct WebRequest {
    /// The address.
    pub url: Url,
    /// The only addresses that the server may have. If empty, the proxy resolves the name.
    pub addresses: Vec<SocketAddr>,
    /// The `accept` header.
    pub accept: &'static str,
    /// The JSON to post. Without it the request is a GET.
    pub body: Option<String>,
    /// The limit for the size of the response.
    pub limit_bytes: usize,
}

/// A response. Its body is read only if the status is a success.
#[derive(Debug, Clone, Default)]
pub struct WebAnswer {
    /// The HTTP status.
    pub status: u16,
    /// The `content-type` header.
    pub content_type: String,
    /// The `location` header.
    pub location: Option<String>,
    /// The whole body, decompressed.
    pub body: Vec<u8>,
}

/// The reason why there is no response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WebError {
    /// It exceeds the limit.
    TooLarge,
    /// The server could not be reached, or closed the connection.
    Unreachable(String),
}

/// A network that is never available.
pub(crate) struct NoWeb;

impl Web for NoWeb {
    fn has_proxy(&self, _url: &Url) -> bool {
        false
    }

    fn look_up<'a>(&'a self, _host: &'a str, _port: u16) -> Sent<'a, Vec<SocketAddr>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    fn send<'a>(&'a self, _request: &'a WebRequest) -> Sent<'a, WebAnswer> {
        Box::pin(async { Err(WebError::Unreachable("there is no network".to_owned())) })
    }
}

/// Whether an address is on the public internet, not on this machine or its local network.
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let is_special = address.is_unspecified()
        || address.is_loopback()
        || address.is_private()
        || address.is_link_local()
        || address.is_broadcast()
        || address.is_multicast()
        || address.is_documentation()
        || a == 0
        || a >= 240
        // Shared by the customers of an internet provider. Some clouds use it for metadata.
        || (a == 100 && (64..128).contains(&b))
        || (a == 192 && b == 0 && c == 0)
        || (a == 198 && (18..20).contains(&b));
    !is_special
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let parts = address.segments();
    let old = |high: u16, low: u16| {
        let [[a, b], [c, d]] = [high.to_be_bytes(), low.to_be_bytes()];
        is_public_v4(Ipv4Addr::new(a, b, c, d))
    };
    match parts {
        // Addresses that contain an IPv4 address count as that address.
        [0, 0, 0, 0, 0, 0xffff, high, low]
        | [0, 0, 0, 0, 0xffff, 0, high, low]
        | [0x64, 0xff9b, 0, 0, 0, 0, high, low]
        | [0x2002, high, low, ..] => old(high, low),
        [0x64, 0xff9b, 1, ..] => false,
        // Only these are assigned. Teredo and documentation addresses are among them, but have no certain
        // target.
        [0x2001, 0 | 0xdb8, ..] => false,
        [first, ..] => (0x2000..0x4000).contains(&first),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_of_the_internet_are_public() {
        for address in [
            "1.1.1.1",
            "8.8.8.8",
            "100.63.0.1",
            "172.32.0.1",
            "2606:4700::1111",
            "::ffff:8.8.8.8",
            "64:ff9b::808:808",
        ] {
            assert!(is_public(address.parse().unwrap()), "{address}");
        }
        for address in [
            "127.0.0.1",
            "127.9.9.9",
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.1",
            "172.16.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "100.100.100.200",
            "192.0.0.192",
            "198.18.0.1",
            "224.0.0.1",
            "255.255.255.255",
            "240.0.0.1",
            "::",
            "::1",
            "::127.0.0.1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "fe80::1",
            "fc00::1",
            "fd00:ec2::254",
            "ff02::1",
            "64:ff9b::7f00:1",
            "2002:7f00:1::",
            "2001:db8::1",
            "2001::1",
            "64:ff9b:1::1",
            "::ffff:0:127.0.0.1",
        ] {
            assert!(!is_public(address.parse().unwrap()), "{address}");
        }
    }
}
