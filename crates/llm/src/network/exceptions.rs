//! The servers that are reached without the proxy, as `NO_PROXY` lists them.
//!
//! The variable has no standard. Programs that read it differ, so everything that curl, Node or Go understand is
//! understood here: `example.com` and `.example.com` (the domain and all below it), `*.example.com` and other wildcards,
//! `host:port`, addresses, `10.0.0.0/8`, and `*` for every server. Entries are separated by commas or white space.

use std::net::{IpAddr, Ipv6Addr};

use reqwest::Url;

/// Returns whether a list of exceptions contains the server of an address.
pub(super) fn contains(list: &str, url: &Url) -> bool {
    let Some(host) = url.host_str() else { return false };
    let host = host.trim_start_matches('[').trim_end_matches([']', '.']).to_ascii_lowercase();
    let port = url.port_or_known_default();
    let entries = list.split(|c: char| c == ',' || c.is_whitespace()).filter(|entry| !entry.is_empty());
    entries.into_iter().any(|entry| matches(&entry.to_ascii_lowercase(), &host, port))
}

fn matches(entry: &str, host: &str, port: Option<u16>) -> bool {
    let entry = entry.split_once("://").map_or(entry, |(_, rest)| rest).trim_end_matches('/');
    let (name, wanted) = split_port(entry);
    if wanted.is_some() && wanted != port {
        return false;
    }
    let name = name.trim_end_matches('.');
    if let Ok(address) = host.parse::<IpAddr>() {
        let address = plain(address);
        if let Some((network, bits)) = name.split_once('/') {
            return in_network(address, network, bits);
        }
        if let Ok(named) = name.parse::<IpAddr>() {
            return plain(named) == address;
        }
    }
    if name.is_empty() {
        return false;
    }
    if name.contains('*') {
        // `*.example.com` contains `example.com` too, as in Node.
        return fits(name, host) || name.strip_prefix("*.").is_some_and(|rest| fits(rest, host));
    }
    let domain = name.trim_start_matches('.');
    host.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

/// Splits an entry into a host and a port. An IPv6 address with a port is in brackets.
fn split_port(entry: &str) -> (&str, Option<u16>) {
    if let Some((address, rest)) = entry.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        return (address, rest.strip_prefix(':').and_then(|port| port.parse().ok()));
    }
    match entry.rsplit_once(':') {
        Some((host, port)) if !host.contains(':') => match port.parse() {
            Ok(port) => (host, Some(port)),
            Err(_) => (entry, None),
        },
        Some(_) | None => (entry, None),
    }
}

/// An IPv4 address in place of an IPv6 address that contains it.
fn plain(address: IpAddr) -> IpAddr {
    address.to_canonical()
}

fn in_network(address: IpAddr, network: &str, bits: &str) -> bool {
    let (Ok(network), Ok(bits)) = (network.parse::<IpAddr>(), bits.parse::<u32>()) else { return false };
    let (address, network, width) = match (address, network) {
        (IpAddr::V4(address), IpAddr::V4(network)) => {
            (u128::from(address.to_bits()), u128::from(network.to_bits()), u32::BITS)
        }
        (IpAddr::V6(address), IpAddr::V6(network)) => (bits_of(address), bits_of(network), u128::BITS),
        (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => return false,
    };
    let Some(rest) = width.checked_sub(bits) else { return false };
    // A shift by the whole width leaves nothing to compare.
    address.checked_shr(rest).unwrap_or(0) == network.checked_shr(rest).unwrap_or(0)
}

fn bits_of(address: Ipv6Addr) -> u128 {
    address.to_bits()
}

/// Whether a host fits a pattern in which `*` stands for any text. Takes time in proportion to both lengths.
fn fits(pattern: &str, host: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| host.strip_prefix(first)) else { return false };
    let mut parts = parts.peekable();
    if parts.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return rest.ends_with(part);
        }
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(list: &str, url: &str, expected: bool) {
        assert_eq!(contains(list, &Url::parse(url).unwrap()), expected, "{list} {url}");
    }

    #[test]
    fn domains_contain_the_hosts_below_them() {
        for list in [
            "example.com",
            ".example.com",
            "*.example.com",
            "a b,example.com",
            "EXAMPLE.com.",
            "http://example.com/",
        ] {
            check(list, "http://example.com/v1", true);
            check(list, "https://a.b.example.com/v1", true);
            check(list, "https://a.example.com./v1", true);
            check(list, "http://badexample.com/", false);
            check(list, "http://example.com.evil/", false);
        }
        check("*", "http://anything:1/", true);
        check("*", "http://10.0.0.1/", true);
        check("", "http://a/", false);
        check(" , ", "http://a/", false);
        check("api.*.corp", "http://api.eu.corp/", true);
        check("api.*.corp", "http://web.eu.corp/", false);
        check("*corp", "http://mycorp/", true);
    }

    #[test]
    fn a_port_restricts_the_entry() {
        check("models.internal:8080", "http://models.internal:8080/v1", true);
        check("models.internal:8080", "http://models.internal/v1", false);
        check("models.internal:443", "https://models.internal/v1", true);
        check("*.internal:8080", "http://a.internal:8080/v1", true);
        check("[::1]:80", "http://[::1]/", true);
        check("[fd00::1]:81", "http://[fd00::1]/", false);
        check("fd00::1", "http://[fd00::1]:9/", true);
        check("10.0.0.1:9", "http://10.0.0.1:9/", true);
    }

    #[test]
    fn networks_contain_their_addresses() {
        check("10.0.0.0/8", "http://10.255.1.2/", true);
        check("10.0.0.0/8", "http://11.0.0.1/", false);
        check("0.0.0.0/0", "http://11.0.0.1/", true);
        check("192.168.1.*", "http://192.168.1.7/", true);
        check("fd00::/8", "http://[fd12::1]/", true);
        check("fd00::/8", "http://[fe80::1]/", false);
        check("::/0", "http://[fe80::1]/", true);
        check("10.0.0.0/33", "http://10.0.0.1/", false);
        check("10.0.0.0/8", "http://ten.example/", false);
        check("10.0.0.1", "http://[::ffff:10.0.0.1]/", true);
    }
}
