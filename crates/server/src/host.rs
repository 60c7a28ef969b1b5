//! Host names and origins of web pages: which of them belong to this machine or are allowed.

use std::net::IpAddr;

/// Origins of API clients that are programs on this machine.
const LOCAL_ORIGINS: [&str; 4] =
    ["tauri://localhost", "http://tauri.localhost", "https://tauri.localhost", "oc://renderer"];
/// Origins of API clients that are served from other machines.
const WEB_ORIGINS: [&str; 1] = ["https://app.opencode.ai"];

/// The origin of a page that may use the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Page {
    /// This machine.
    Local,
    /// Another machine, whose operator could use the server with all rights of its user.
    Web,
}

/// Returns whether an authority (`name:port`) always resolves to this machine.
pub(crate) fn is_loopback(authority: &str) -> bool {
    let Some(name) = without_port(authority) else { return false };
    let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
    if name == "localhost" || name.ends_with(".localhost") {
        return true;
    }
    let address = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(&name);
    address.parse().is_ok_and(|address: IpAddr| address.to_canonical().is_loopback())
}

/// Returns the kind of page of an origin, or `None` if such pages may not use the server. Allowed are this machine, the
/// address of the server, the known clients and the origins in `allowed`.
///
/// A page of this machine may have any port, because clients of OpenCode have various ports.
pub(crate) fn page(origin: &str, host: Option<&str>, allowed: &[String]) -> Option<Page> {
    let authority = origin.split_once("://").filter(|(scheme, _)| matches!(*scheme, "http" | "https"));
    let is_own = authority.is_some_and(|(_, authority)| host == Some(authority));
    let is_own_here = is_own && authority.is_some_and(|(_, authority)| is_loopback(authority));
    if LOCAL_ORIGINS.contains(&origin) || is_local(origin) || is_own_here {
        return Some(Page::Local);
    }
    let is_allowed = WEB_ORIGINS.contains(&origin) || allowed.iter().any(|allowed| allowed == origin);
    (is_own || is_allowed).then_some(Page::Web)
}

/// Returns whether an origin is a loopback address or `localhost`. Subdomains of `localhost` are not needed.
fn is_local(origin: &str) -> bool {
    let Some((scheme, authority)) = origin.split_once("://") else { return false };
    let Some(name) = without_port(authority) else { return false };
    let is_subdomain = name.to_ascii_lowercase().trim_end_matches('.').ends_with(".localhost");
    matches!(scheme, "http" | "https") && is_loopback(authority) && !is_subdomain
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
    fn only_names_and_addresses_of_this_machine_are_loopback() {
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
    fn allowed_origins_are_loopback_known_clients_configured_or_the_server_itself() {
        let allowed = ["https://pages.example".to_owned()];
        let host = Some("192.168.1.2:4096");
        for (origin, expected) in [
            ("http://localhost:3000", Page::Local),
            ("https://localhost", Page::Local),
            ("http://127.0.0.1:8080", Page::Local),
            ("http://[::1]:8080", Page::Local),
            ("tauri://localhost", Page::Local),
            ("https://tauri.localhost", Page::Local),
            ("oc://renderer", Page::Local),
            ("https://app.opencode.ai", Page::Web),
            ("https://pages.example", Page::Web),
            ("http://192.168.1.2:4096", Page::Web),
        ] {
            assert_eq!(page(origin, host, &allowed), Some(expected), "{origin}");
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
            "http://other.localhost:3000",
            "http://OTHER.LOCALHOST.:3000",
        ] {
            assert_eq!(page(origin, host, &allowed), None, "{origin}");
        }
    }
}
