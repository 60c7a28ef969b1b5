//! The servers that are reached without the proxy, as `NO_PROXY` lists them.
//!
//! The variable has no standard. Programs that read it differ, so everything that curl, Node or Go understand is
//! understood here: `example.com` and `.example.com` (the domain and all below it), `*.example.com` and other wildcards,
//! `host:port` and `host:*`, addresses, `10.0.0.0/8`, `[fd00::]/8`, and `*` for every server. Entries are separated by
//! commas, semicolons or white space. An entry that cannot be understood contains no server.

use std::borrow::Cow;
use std::net::IpAddr;

use reqwest::Url;

/// Returns whether a list of exceptions contains the server of an address.
pub(super) fn contains(list: &str, url: &Url) -> bool {
    let Some(host) = url.host_str() else { return false };
    let host = host.trim_start_matches('[').trim_end_matches([']', '.']).to_ascii_lowercase();
    let port = url.port_or_known_default();
    let entries = list.split(|c: char| matches!(c, ',' | ';') || c.is_whitespace());
    entries.into_iter().any(|entry| matches(&entry.to_lowercase(), &host, port))
}

fn matches(entry: &str, host: &str, port: Option<u16>) -> bool {
    let entry = entry.split_once("://").map_or(entry, |(_, rest)| rest).trim_end_matches('/');
    let Some((name, ports)) = split_port(entry) else { return false };
    if !ports.contain(port) {
        return false;
    }
    let name = name.trim_end_matches('.');
    if let Ok(address) = host.parse::<IpAddr>() {
        let is_named = |name: &str| parse_address(name) == Some(address.to_canonical());
        return match name.split_once('/') {
            Some((network, bits)) => in_network(address.to_canonical(), network, bits),
            None if name.contains('*') => fits(name, host),
            // A name is not compared with the end of an address.
            None => is_named(name),
        };
    }
    if name.contains('*') {
        // `*.example.com` contains `example.com` too, as in Node.
        return fits(name, host) || name.strip_prefix("*.").is_some_and(|rest| fits(rest, host));
    }
    let domain = ascii(name.trim_start_matches('.'));
    let is_below = |rest: &str| rest.is_empty() || rest.ends_with('.');
    !domain.is_empty() && host.strip_suffix(&*domain).is_some_and(is_below)
}

/// The ports that an entry is about.
#[derive(Debug, PartialEq)]
enum Ports {
    All,
    One(u16),
}

impl Ports {
    fn contain(&self, port: Option<u16>) -> bool {
        match self {
            Self::All => true,
            Self::One(one) => port == Some(*one),
        }
    }
}

/// Splits an entry into a host or network and its ports. Returns `None` if the port is not one. An IPv6 address with a
/// port is in brackets, which may also contain the length of its network: `[fd00::]/8:443` or `[fd00::/8]:443`.
fn split_port(entry: &str) -> Option<(Cow<'_, str>, Ports)> {
    if let Some((address, rest)) = entry.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        let (bits, port) = rest.split_once(':').map_or((rest, "*"), |(bits, port)| (bits, port));
        let name = if bits.is_empty() { Cow::from(address) } else { Cow::from(format!("{address}{bits}")) };
        return Some((name, parse_port(port)?));
    }
    match entry.rsplit_once(':') {
        Some((host, port)) if !host.contains(':') => Some((host.into(), parse_port(port)?)),
        Some(_) | None => Some((entry.into(), Ports::All)),
    }
}

/// Parses the port of an entry. `*` and nothing are all ports.
fn parse_port(port: &str) -> Option<Ports> {
    match port {
        "" | "*" => Some(Ports::All),
        _ => port.parse().ok().map(Ports::One),
    }
}

/// Parses an address, which may name a network interface (`fe80::1%eth0`). An IPv4 address is returned in place of an
/// IPv6 address that contains it.
fn parse_address(name: &str) -> Option<IpAddr> {
    let name = name.split_once('%').map_or(name, |(address, _)| address);
    name.parse::<IpAddr>().ok().map(|address| address.to_canonical())
}

/// Returns a domain in the form that addresses contain: `bücher.example` as `xn--bcher-kva.example`.
fn ascii(domain: &str) -> Cow<'_, str> {
    if domain.is_ascii() {
        return domain.into();
    }
    let url = Url::parse(&format!("http://{domain}/")).ok();
    url.and_then(|url| url.host_str().map(str::to_owned)).map_or(Cow::from(domain), Cow::from)
}

/// Returns whether a network contains an address. IPv4 addresses are compared as the IPv6 addresses that contain them.
fn in_network(address: IpAddr, network: &str, bits: &str) -> bool {
    let (Ok(network), Ok(bits)) = (network.parse::<IpAddr>(), bits.parse::<u32>()) else { return false };
    let width = if network.is_ipv4() { u32::BITS } else { u128::BITS };
    let Some(rest) = width.checked_sub(bits) else { return false };
    // `0.0.0.0/0` contains no IPv6 address.
    if network.is_ipv4() && !address.is_ipv4() {
        return false;
    }
    // A shift by the whole width leaves nothing to compare.
    let beginning = |address| mapped(address).checked_shr(rest).unwrap_or(0);
    beginning(address) == beginning(network)
}

fn mapped(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().to_bits(),
        IpAddr::V6(address) => address.to_bits(),
    }
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
        check("0.0.0.0/0", "http://[fe80::1]/", false);
        check("::ffff:10.0.0.0/104", "http://10.1.2.3/", true);
        check("::ffff:10.0.0.0/104", "http://11.1.2.3/", false);
        check("10.0.0.0/8", "http://[::ffff:10.2.3.4]/", true);
        check("[fd00::]/8", "http://[fd12::1]/", true);
        check("[fd00::]/8", "http://[fe80::1]/", false);
        check("[fd00::/8]", "http://[fd12::1]/", true);
        check("[fd00::]/8:81", "http://[fd12::1]:81/", true);
        check("[fd00::/8]:81", "http://[fd12::1]/", false);
        check("10.0.0.0/8:81", "http://10.1.1.1:81/", true);
        check("10.0.0.0/8:81", "http://10.1.1.1/", false);
        check("10.0.0.0/", "http://10.0.0.0/", true);
        check("10.0.0.0/x", "http://10.0.0.0/", false);
    }

    /// Each list contains `models.internal`, port 8080, and not `other.internal`.
    #[test]
    fn an_entry_has_many_spellings() {
        for list in [
            "a.test;models.internal",
            "a.test; models.internal",
            "a.test ;,; models.internal;",
            "a.test\tmodels.internal\nb.test",
            "models.internal:*",
            "models.internal:",
            "models.internal.",
            "models.internal.:8080",
            ".models.internal",
            "..models.internal",
            "*.models.internal",
            "*.models.internal:8080",
            "*.models.internal.:*",
            "Models.Internal",
            "http://models.internal:8080/",
            "mod*.internal",
            "models.*",
        ] {
            check(list, "http://models.internal:8080/v1", true);
            check(list, "http://models.internal.:8080/v1", true);
            check(list, "http://other.internal:8080/v1", false);
        }
        check("*:8080", "http://models.internal:8080/", true);
        check("*:8080", "http://models.internal/", false);
        check("*:*", "http://models.internal/", true);
        check("b\u{fc}cher.example", "http://www.b\u{fc}cher.example/", true);
        check("B\u{dc}CHER.example", "http://xn--bcher-kva.example/", true);
    }

    #[test]
    fn an_entry_that_is_not_understood_contains_nothing() {
        for list in [
            "models.internal:port",
            "models.internal:99999",
            ":8080",
            ":",
            ".",
            "..",
            "[",
            "[]:80",
            "/",
            "://",
            ";",
        ] {
            check(list, "http://models.internal:8080/", false);
            check(list, "http://10.0.0.1:8080/", false);
            check(list, "http://[fd00::1]:8080/", false);
        }
        check("[::1]:port", "http://[::1]/", false);
        // The end of an address is not a domain.
        check("0.0.1", "http://10.0.0.1/", false);
        check(".0.0.1", "http://10.0.0.1/", false);
        check("[fd00::1]", "http://[fd00::1]:9/", true);
        check("[fd00::1]:*", "http://[fd00::1]:9/", true);
        check("fe80::1%eth0", "http://[fe80::1]/", true);
        check("[fe80::1%eth0]:80", "http://[fe80::1]/", true);
    }
}
