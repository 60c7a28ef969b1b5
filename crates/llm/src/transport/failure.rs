//! Errors of a connection, with messages for the user.

use std::error::Error as _;
use std::io;
use std::net::IpAddr;
use std::time::Duration;

use reqwest::Url;

use crate::Error;
use crate::error::cut;

/// Returns the error for a request that got no answer. `proxy` describes the proxy, if one is
/// configured.
pub(super) fn not_reached(why: &reqwest::Error, url: &Url, connect: Duration, proxy: Option<&str>) -> Error {
    let proxy = proxy.map(|proxy| format!("; {proxy}")).unwrap_or_default();
    let host = url.host_str().unwrap_or_default();
    let origin = url.origin().ascii_serialization();
    let reasons = reasons(why);
    if let Some(tls) = reasons.iter().find(|reason| reason.is_tls) {
        let advice = if tls.text.contains("UnknownIssuer") {
            "; if a private authority issued the certificate, set NODE_EXTRA_CA_CERTS to that authority's file"
        } else {
            ""
        };
        let text = &tls.text;
        return Error::rejected(format!(
            "could not make a secure connection to {origin} ({text}{proxy}){advice}"
        ));
    }
    if why.is_builder() {
        return Error::rejected(format!("the request could not be made: {}", last(&reasons)));
    }
    if reasons.iter().any(|reason| reason.text.contains("dns error")) {
        return Error::unreachable(format!(
            "could not find the host `{host}`; is the network up and the base URL right?"
        ));
    }
    if why.is_connect() && why.is_timeout() {
        let seconds = connect.as_secs_f64();
        return Error::unreachable(format!("could not connect to {origin} within {seconds} s{proxy}"));
    }
    let detail = match reasons.iter().find_map(|reason| reason.kind) {
        Some(io::ErrorKind::ConnectionRefused) => "connection refused".to_owned(),
        Some(io::ErrorKind::HostUnreachable) => "host unreachable".to_owned(),
        Some(io::ErrorKind::NetworkUnreachable) => "network unreachable".to_owned(),
        Some(io::ErrorKind::TimedOut) => "timed out".to_owned(),
        Some(_) | None => last(&reasons),
    };
    if why.is_connect() {
        let advice = start_advice(url);
        return Error::unreachable(format!("could not connect to {origin} ({detail}{proxy}){advice}"));
    }
    Error::busy(format!("{origin} closed the connection without an answer ({detail})"))
}

/// The commands that start the usual model servers, by their ports.
const STARTS: [(u16, &str); 4] = [
    (11434, "ollama serve"),
    (1234, "lms server start"),
    (8080, "llama-server -m MODEL"),
    (8000, "vllm serve MODEL"),
];

/// Returns the advice to start a server on this machine; empty for other machines.
fn start_advice(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    let address = host.trim_matches(['[', ']']).parse::<IpAddr>();
    let is_name = host == "localhost" || host.ends_with(".localhost");
    let is_here = is_name || address.is_ok_and(|address| address.is_loopback());
    let command = STARTS.iter().find(|(port, _)| url.port_or_known_default() == Some(*port));
    match (is_here, command) {
        (false, _) => String::new(),
        (true, Some((_, command))) => format!("; start the server, for example with `{command}`"),
        (true, None) => "; start the server, or correct the base URL of the provider".to_owned(),
    }
}

/// Returns the error for an answer that ended early.
pub(crate) fn broken(why: &reqwest::Error) -> Error {
    let reasons = reasons(why);
    let is_garbled = |reason: &Reason| {
        matches!(reason.kind, Some(io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput))
    };
    if reasons.iter().any(is_garbled) {
        return Error::busy(format!("the answer could not be decompressed ({})", last(&reasons)));
    }
    // OpenCode's clients match on this text.
    Error::busy("Connection reset by server")
}

struct Reason {
    text: String,
    kind: Option<io::ErrorKind>,
    is_tls: bool,
}

/// Returns the chain of causes, outermost first.
fn reasons(why: &reqwest::Error) -> Vec<Reason> {
    let mut reasons = Vec::new();
    let mut next = why.source();
    while let Some(cause) = next {
        let io = cause.downcast_ref::<io::Error>();
        reasons.push(Reason {
            text: cause.to_string(),
            kind: io.map(io::Error::kind),
            is_tls: cause.is::<rustls::Error>(),
        });
        // An I/O error's `source` skips the error that it wraps.
        let wrapped =
            io.and_then(io::Error::get_ref).map(|inner| inner as &(dyn std::error::Error + 'static));
        next = wrapped.or_else(|| cause.source());
    }
    reasons
}

/// Returns the innermost cause, which is the most specific.
fn last(reasons: &[Reason]) -> String {
    reasons.last().map_or_else(|| "no reason given".to_owned(), |reason| cut(&reason.text, 300).to_owned())
}
