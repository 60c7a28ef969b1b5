//! The web app: the page at `/` and its files, which are part of the program.
//!
//! The files come from `web/`, compressed when they were built. Their names contain a digest of their content, so
//! browsers keep them forever; the page itself is validated with each visit. The page displays what models, files and
//! commands say. Its content security policy makes sure that nothing of that runs: scripts and styles come only from
//! these files, text does not become markup, and no other origin is contacted except the server that the user named.

use std::io::Read as _;

use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use flate2::read::GzDecoder;
use http::{HeaderMap, HeaderName, HeaderValue, header};
use percent_encoding::percent_decode_str;

use crate::Error;
use crate::state::App;

#[rustfmt::skip]
#[path = "../../../../web/dist/files.rs"]
mod files;

/// The directory of the files whose names contain a digest.
const HASHED: &str = "/assets/";
/// The mark of a call in the page.
const CALL: &str = "as=\"fetch\"";
/// The query key of the page that names another server.
const SERVER_KEY: &str = "server=";
/// The longest name of another server.
const MAX_SERVER_BYTES: usize = 260;

/// A file of the app.
struct File {
    /// Its path on the server.
    path: &'static str,
    /// Its content type.
    kind: &'static str,
    /// Whether its bytes are compressed.
    is_gzip: bool,
    bytes: &'static [u8],
}

/// The headers of every file.
const HEADERS: [(HeaderName, HeaderValue); 4] = [
    // For browsers that do not send `Sec-Fetch-Site`, the referrer shows that a request comes from the page.
    (header::REFERRER_POLICY, HeaderValue::from_static("same-origin")),
    (header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY")),
    (HeaderName::from_static("cross-origin-opener-policy"), HeaderValue::from_static("same-origin")),
    (HeaderName::from_static("cross-origin-resource-policy"), HeaderValue::from_static("same-origin")),
];

/// Returns whether a path is the page or one of its files.
pub(crate) fn is_file(path: &str) -> bool {
    find(path).is_some()
}

/// Returns the file of a request.
pub(super) async fn read(State(app): State<App>, request: Request) -> Result<Response, Error> {
    let path = request.uri().path();
    let Some(file) = find(path) else {
        return Err(Error::NoRoute { method: request.method().to_string(), path: path.to_owned() });
    };
    let needs_sign_in = app.options.password().is_some() || app.options.auth.is_some();
    let is_without_calls = needs_sign_in && path == "/";
    let is_packed = file.is_gzip && accepts_gzip(request.headers()) && !is_without_calls;
    let body = match (file.is_gzip, is_packed) {
        (true, false) if is_without_calls => without_calls(&unpack(file.bytes)),
        (true, false) => unpack(file.bytes),
        (true, true) | (false, _) => Bytes::from_static(file.bytes),
    };
    let mut response = (HEADERS, body).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(file.kind));
    headers.insert(header::VARY, HeaderValue::from_static("Accept-Encoding"));
    let age = if path.starts_with(HASHED) { "max-age=31536000, immutable" } else { "no-cache" };
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(age));
    if is_packed {
        headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    headers.insert(header::CONTENT_SECURITY_POLICY, policy(request.uri().query().unwrap_or_default()));
    Ok(response)
}

/// Returns the page without the calls that a browser sends before it has the scripts. They cannot have the key of a
/// sign-in, and browsers use their refusals as the answers to the calls of the app.
fn without_calls(page: &[u8]) -> Bytes {
    let page = String::from_utf8_lossy(page);
    let mut kept = String::with_capacity(page.len());
    for element in page.split_inclusive('>') {
        if !element.contains(CALL) {
            kept.push_str(element);
        }
    }
    kept.into()
}

fn find(path: &str) -> Option<&'static File> {
    files::FILES.iter().find(|file| file.path == path)
}

/// Returns the content security policy. A page whose address names another server may connect to it, too.
fn policy(query: &str) -> HeaderValue {
    let server = query.split('&').find_map(|pair| pair.strip_prefix(SERVER_KEY)).and_then(server_sources);
    let server = server.unwrap_or_default();
    let policy = format!(
        "default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; img-src 'self' data: blob:; \
         connect-src 'self'{server}; manifest-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'; \
         frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types codewright codewright-worker"
    );
    HeaderValue::try_from(policy).expect("these words and a checked host are a valid header")
}

/// Returns the policy sources of a server that a query names: its origin for requests and for WebSockets. A name that is
/// not a plain origin has none.
fn server_sources(encoded: &str) -> Option<String> {
    let decoded =
        percent_decode_str(encoded).decode_utf8().ok().filter(|name| name.len() <= MAX_SERVER_BYTES)?;
    let (scheme, rest) = decoded.split_once("://").unwrap_or(("http", &decoded));
    let socket = match scheme {
        "http" => "ws",
        "https" => "wss",
        _ => return None,
    };
    let authority = rest.split('/').next().filter(|authority| !authority.is_empty())?;
    // No spaces, semicolons, quotes or stars: nothing that has a meaning in a policy.
    let is_plain =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b':' | b'[' | b']');
    authority.bytes().all(is_plain).then(|| format!(" {scheme}://{authority} {socket}://{authority}"))
}

fn accepts_gzip(headers: &HeaderMap) -> bool {
    let values = headers.get_all(header::ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|coding| {
        let (name, weight) = coding.split_once(';').unwrap_or((coding, ""));
        matches!(name.trim(), "gzip" | "*") && !matches!(weight.trim(), "q=0" | "q=0.0")
    })
}

/// Unpacks a file for a client that does not accept compressed content.
fn unpack(bytes: &[u8]) -> Bytes {
    let mut content = Vec::new();
    GzDecoder::new(bytes).read_to_end(&mut content).expect("the files of the app are complete");
    content.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_plain_origin_is_added_to_the_policy() {
        for (query, expected) in [
            ("", ""),
            ("server=localhost:5000", " http://localhost:5000 ws://localhost:5000"),
            ("server=https%3A%2F%2Fcode.example%2Fpath", " https://code.example wss://code.example"),
            ("a=b&server=http%3A%2F%2F%5B%3A%3A1%5D%3A80", " http://[::1]:80 ws://[::1]:80"),
            ("server=*", ""),
            ("server=", ""),
            ("server=a%20b", ""),
            ("server=a%3B%20script-src%20*", ""),
            ("server=ftp%3A%2F%2Fa", ""),
            ("server=user%40a", ""),
            ("server=%0Aa", ""),
        ] {
            let policy = policy(query);
            let found = policy.to_str().unwrap().split("; ").find(|part| part.starts_with("connect-src"));
            assert_eq!(found, Some(format!("connect-src 'self'{expected}").as_str()), "{query}");
        }
    }

    #[test]
    fn gzip_is_used_if_the_client_accepts_it() {
        for (value, expected) in [
            ("gzip", true),
            ("br, gzip;q=0.5", true),
            ("*", true),
            ("br", false),
            ("gzip;q=0", false),
            ("", false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static(value));
            assert_eq!(accepts_gzip(&headers), expected, "{value}");
        }
    }

    #[test]
    fn every_file_is_complete() {
        assert!(is_file("/"));
        for file in files::FILES {
            assert!(!file.is_gzip || !unpack(file.bytes).is_empty(), "{}", file.path);
            assert!(file.path == "/" || !file.path.contains(['{', '*']), "{}", file.path);
        }
    }
}
