//! Names of hosts and origins of web pages: which belong to this machine.

use std::net::IpAddr;

/// Origins that clients of this API come from beside loopback.
const KNOWN_ORIGINS: [&str; 5] = [
    "tauri://localhost",
    "http://tauri.localhost",
    "https://tauri.localhost",
    "oc://renderer",
    "https://app.opencode.ai",
];

/// Whether an authority (`name:port`) names this machine and cannot be pointed elsewhere.
pub(crate) fn is_loopback(authority: &str) -> bool {
    let Some(name) = without_port(authority) else { return false };
    let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
    if name == "localhost" || name.ends_with(".localhost") {
        return true;
    }
    let address = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(&name);
    address.parse().is_ok_and(|address: IpAddr| address.to_canonical().is_loopback())
}

/// Whether pages of an origin may use the server: those of this machine, of its
/// own address, of the known clients, and of `allowed`.
pub(crate) fn may_use(origin: &str, host: Option<&str>, allowed: &[String]) -> bool {
    if KNOWN_ORIGINS.contains(&origin) || allowed.iter().any(|allowed| allowed == origin) {
        return true;
    }
    let Some((scheme, authority)) = origin.split_once("://") else { return false };
    matches!(scheme, "http" | "https") && (is_loopback(authority) || host == Some(authority))
}

fn without_port(authority: &str) -> Option<&str> {
    let end = authority.rfind(']').map_or(0, |end| end + 1);
    let (name, port) = match authority[end..].find(':') {
        Some(colon) => (&authority[..end + colon], &authority[end + colon + 1..]),
        None => (authority, "0"),
    };
    let named = !name.is_empty() && !name.contains(['@', '/', '\\', '?', '#']);
    (named && port.bytes().all(|digit| digit.is_ascii_digit())).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_this_machine_are_loopback() {
        for host in [
            "localhost",
            "localhost:4096",
            "LOCALHOST.",
            "a.localhost:1",
            "127.0.0.1:4096",
            "127.1.2.3",
            "[::1]:4096",
            "[::1]",
            "[::ffff:127.0.0.1]:1",
        ] {
            assert!(is_loopback(host), "{host}");
        }
        for host in [
            "",
            ":4096",
            "evil.example",
            "evil.example:4096",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "192.168.1.2",
            "0.0.0.0:4096",
            "[::]",
            "user@localhost",
            "evil.example#localhost",
            "localhost:80@evil",
            "evil/localhost",
            "notlocalhost",
            "127.0.0.1:x",
        ] {
            assert!(!is_loopback(host), "{host}");
        }
    }

    #[test]
    fn origins_are_loopback_known_allowed_or_our_own() {
        let allowed = ["https://pages.example".to_owned()];
        let host = Some("192.168.1.2:4096");
        for origin in [
            "http://localhost:3000",
            "https://localhost",
            "http://127.0.0.1:8080",
            "tauri://localhost",
            "oc://renderer",
            "https://app.opencode.ai",
            "https://pages.example",
            "http://192.168.1.2:4096",
        ] {
            assert!(may_use(origin, host, &allowed), "{origin}");
        }
        for origin in [
            "null",
            "",
            "https://evil.example",
            "https://opencode.ai",
            "https://app.opencode.ai.evil.example",
            "http://app.opencode.ai",
            "https://pages.example:8443",
            "http://192.168.1.2:80",
            "file://localhost",
            "oc://other",
            "http://localhost.evil.example",
            "http://localhost@evil.example",
        ] {
            assert!(!may_use(origin, host, &allowed), "{origin}");
        }
    }
}
