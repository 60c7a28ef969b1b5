//! The host and port of a connection, in one spelling.
//!
//! A name has lower case letters, no trailing dot and the ASCII form of international names. A number in any form that
//! programs accept (decimal, octal, hexadecimal, with fewer than four parts) is an address. An IPv6 address that stands
//! for an IPv4 address is that address.

use std::fmt;
use std::net::IpAddr;

use url::Host;

/// The longest name, without a trailing dot.
const MAX_NAME_BYTES: usize = 253;
/// The longest part of a name.
const MAX_LABEL_BYTES: usize = 63;
/// The longest text that is parsed. International names are longer before they are converted.
const MAX_TEXT_BYTES: usize = 1024;

/// A host and a port.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Target {
    host: Name,
    port: u16,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Name {
    Domain(String),
    Address(IpAddr),
}

/// The text does not name a host and a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BadTarget;

impl fmt::Display for BadTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the request does not name a valid host and port")
    }
}

impl Target {
    /// Parses a host without a port. An IPv6 address may have brackets.
    ///
    /// # Errors
    ///
    /// Fails if the host is not a name or an address, or if the port is 0.
    pub fn new(host: &str, port: u16) -> Result<Self, BadTarget> {
        if port == 0 {
            return Err(BadTarget);
        }
        let host = match host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            Some(address) => Name::Address(ipv6(address)?),
            None => name(host)?,
        };
        Ok(Self { host, port })
    }

    /// A target with an address.
    ///
    /// # Errors
    ///
    /// Fails if the port is 0.
    pub fn of_address(address: IpAddr, port: u16) -> Result<Self, BadTarget> {
        let host = Name::Address(address.to_canonical());
        if port == 0 { Err(BadTarget) } else { Ok(Self { host, port }) }
    }

    /// Parses `host:port`, or only a host if there is a default port.
    ///
    /// # Errors
    ///
    /// Fails if the text is anything else, for example with a user name.
    pub fn of_authority(text: &str, default_port: Option<u16>) -> Result<Self, BadTarget> {
        let end_of_host = text.rfind(']').map_or(0, |end| end + 1);
        let (host, port) = match text[end_of_host..].rfind(':') {
            Some(colon) => (&text[..end_of_host + colon], Some(&text[end_of_host + colon + 1..])),
            None => (text, None),
        };
        let port = match port {
            // The parser would also accept a sign.
            Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
                digits.parse().map_err(|_| BadTarget)?
            }
            Some(_) => return Err(BadTarget),
            None => default_port.ok_or(BadTarget)?,
        };
        Self::new(host, port)
    }

    /// The name or address. An IPv6 address has no brackets.
    pub fn host(&self) -> String {
        match &self.host {
            Name::Domain(name) => name.clone(),
            Name::Address(address) => address.to_string(),
        }
    }

    /// The port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The address, if the target is not a name.
    pub fn address(&self) -> Option<IpAddr> {
        match self.host {
            Name::Address(address) => Some(address),
            Name::Domain(_) => None,
        }
    }

    /// Whether this is a name that always stands for the own machine.
    pub fn is_localhost(&self) -> bool {
        match &self.host {
            Name::Domain(name) => name == "localhost" || name.ends_with(".localhost"),
            Name::Address(_) => false,
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            Name::Domain(name) => write!(f, "{name}:{}", self.port),
            Name::Address(IpAddr::V4(address)) => write!(f, "{address}:{}", self.port),
            Name::Address(IpAddr::V6(address)) => write!(f, "[{address}]:{}", self.port),
        }
    }
}

fn ipv6(text: &str) -> Result<IpAddr, BadTarget> {
    let address: std::net::Ipv6Addr = text.parse().map_err(|_| BadTarget)?;
    Ok(IpAddr::V6(address).to_canonical())
}

fn name(text: &str) -> Result<Name, BadTarget> {
    if text.len() > MAX_TEXT_BYTES {
        return Err(BadTarget);
    }
    if text.contains(':') {
        return ipv6(text).map(Name::Address);
    }
    // The parser of URLs decodes `%` and removes some characters instead of rejecting them.
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.') || !c.is_ascii();
    if !text.chars().all(is_allowed) {
        return Err(BadTarget);
    }
    match Host::parse(text.strip_suffix('.').unwrap_or(text)).map_err(|_| BadTarget)? {
        Host::Ipv4(address) => Ok(Name::Address(address.into())),
        Host::Ipv6(address) => Ok(Name::Address(IpAddr::V6(address).to_canonical())),
        Host::Domain(name) if is_name(&name) => Ok(Name::Domain(name)),
        Host::Domain(_) => Err(BadTarget),
    }
}

fn is_name(name: &str) -> bool {
    let is_label = |label: &str| {
        let is_char =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'_');
        !label.is_empty() && label.len() <= MAX_LABEL_BYTES && label.bytes().all(is_char)
    };
    name.len() <= MAX_NAME_BYTES && name.split('.').all(is_label)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_spelling_of_a_host_is_one_target() {
        for (text, expected) in [
            ("example.com:443", Some("example.com:443")),
            ("EXAMPLE.com.:443", Some("example.com:443")),
            ("example.com", Some("example.com:80")),
            ("b\u{fc}cher.de:443", Some("xn--bcher-kva.de:443")),
            ("XN--BCHER-KVA.de:443", Some("xn--bcher-kva.de:443")),
            ("\u{ff45}xample.com:1", Some("example.com:1")),
            ("127.0.0.1:80", Some("127.0.0.1:80")),
            ("127.0.0.1.:80", Some("127.0.0.1:80")),
            ("2130706433:80", Some("127.0.0.1:80")),
            ("0x7f000001:80", Some("127.0.0.1:80")),
            ("0x7f.1:80", Some("127.0.0.1:80")),
            ("0177.0.0.1:80", Some("127.0.0.1:80")),
            ("\u{ff11}\u{ff12}\u{ff17}.0.0.1:80", Some("127.0.0.1:80")),
            ("127\u{3002}0\u{3002}0\u{3002}1:80", Some("127.0.0.1:80")),
            ("[::1]:80", Some("[::1]:80")),
            ("[0:0:0:0:0:0:0:1]:80", Some("[::1]:80")),
            ("[::ffff:127.0.0.1]:80", Some("127.0.0.1:80")),
            ("[::ffff:7f00:1]:80", Some("127.0.0.1:80")),
            ("[::1]", Some("[::1]:80")),
            ("_srv.example.com:5", Some("_srv.example.com:5")),
            ("localhost:65535", Some("localhost:65535")),
        ] {
            check(text, expected);
        }
    }

    #[test]
    fn anything_else_is_rejected() {
        for text in [
            "",
            ":80",
            ".:80",
            "a..b:80",
            ".a:80",
            "a..:80",
            "user@example.com:80",
            "user:pass@example.com:80",
            "example.com@evil.com:80",
            "example.com:0",
            "example.com:65536",
            "example.com:",
            "example.com:+80",
            "example.com:8 0",
            "example.com:80:80",
            "example.com/x:80",
            "example.com\\x:80",
            "example.com?:80",
            "example.com#:80",
            "exa%6dple.com:80",
            "%31%32%37.0.0.1:80",
            "exa\0mple.com:80",
            "example.com\0:80",
            "exa mple.com:80",
            "exa\tmple.com:80",
            "exa\u{ad}\nmple.com:80",
            "*.example.com:80",
            "256.256.256.256:80",
            "1.2.3.4.5:80",
            "0x:x:80",
            "[::1:80",
            "::1]:80",
            "[::1]x:80",
            "[fe80::1%eth0]:80",
            "[127.0.0.1]:80",
            "[example.com]:80",
            "[v1.x]:80",
        ] {
            check(text, None);
        }
        check(&format!("{}:80", "a".repeat(64)), None);
        check(&format!("{}com:80", "a.".repeat(126)), None);
        check(&format!("{}:80", "\u{fc}".repeat(2000)), None);
        assert_eq!(Target::new("a", 0), Err(BadTarget));
        assert_eq!(Target::of_address(IpAddr::from([1, 2, 3, 4]), 0), Err(BadTarget));
    }

    #[track_caller]
    fn check(text: &str, expected: Option<&str>) {
        let found = Target::of_authority(text, Some(80)).ok().map(|target| target.to_string());
        assert_eq!(found.as_deref(), expected, "{text:?}");
    }

    proptest! {
        /// The spelling of a target names the same target, and has only harmless characters.
        #[test]
        fn a_target_is_stable(
            text in prop_oneof![".{0,40}", "[a-z0-9.:\\[\\]x%@]{0,30}", "[0-9a-fx.]{1,20}:[0-9]{1,6}"],
        ) {
            if let Ok(target) = Target::of_authority(&text, Some(80)) {
                let shown = target.to_string();
                prop_assert!(shown.bytes().all(|byte| byte.is_ascii_lowercase()
                    || byte.is_ascii_digit() || b"-_.:[]".contains(&byte)), "{shown}");
                prop_assert_eq!(Target::of_authority(&shown, None), Ok(target));
            }
        }
    }
}
