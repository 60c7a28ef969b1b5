//! Names of hosts and origins of web pages: which belong to this machine.

use std::net::IpAddr;

/// Origins of the clients of this API that are programs on this machine.
const LOCAL_ORIGINS: [&str; 4] =
    ["tauri://localhost", "http://tauri.localhost", "https://tauri.localhost", "oc://renderer"];
/// Origins of the clients of this API that come from elsewhere.
const WEB_ORIGINS: [&str; 1] = ["https://app.opencode.ai"];

/// Where a page that may use the server comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Page {
    /// This machine.
    Local,
    /// Elsewhere: whoever serves it could do with the server what its user can.
    Web,
}

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

/// Which pages an origin stands for, if they may use the server: those of this machine, of its
/// own address, of the known clients, and of `allowed`.
///
/// A page of this machine may come from any port, because the clients of the original do.
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

/// Whether an origin is that of a page on loopback. Other names below `localhost` are not needed.
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
