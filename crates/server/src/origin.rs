//! The web page that a request comes from, derived from its headers.
//!
//! A browser sends `Origin` with requests whose response a script may read and with requests that
//! may change something. To addresses of this machine it sends `Sec-Fetch-Site` with every request,
//! even for images and links. Older browsers send at most `Referer`. Other programs send none of these.

use http::header::{ACCEPT, HOST, ORIGIN, REFERER, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri};

use crate::Error;
use crate::host::{self, Page};

const SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");
const DEST: HeaderName = HeaderName::from_static("sec-fetch-dest");
/// The header and the query keys that name a directory.
const DIRECTORY_HEADER: HeaderName = HeaderName::from_static("x-opencode-directory");
const DIRECTORY_KEYS: [&str; 2] = ["directory", "location[directory]"];

/// The kind of a request of a browser.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Browsing {
    /// A request that a page or a script sends.
    Page,
    /// The user opens an address.
    Navigation,
}

/// Returns the kind of a request, if a browser sends it. Browsers send `Sec-Fetch-Mode` only to addresses of this machine
/// and over HTTPS, so `Accept` decides elsewhere.
pub(crate) fn browsing(headers: &HeaderMap) -> Option<Browsing> {
    let mode = headers.get(MODE);
    if mode.is_none() && !is_browser(headers) {
        return None;
    }
    let accepts_page = |value: &HeaderValue| value.to_str().is_ok_and(|value| value.contains("text/html"));
    let is_navigation = match mode {
        Some(mode) => mode.as_bytes() == b"navigate",
        None => headers.get_all(ACCEPT).iter().any(accepts_page),
    };
    Some(if is_navigation { Browsing::Navigation } else { Browsing::Page })
}

/// The source of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    /// A program, or a page of this machine.
    Local,
    /// A page of another machine that is a known client or that the operator allows.
    Web,
}

/// Returns the source of a request.
///
/// # Errors
///
/// Fails if the request comes from a page that may not use the server.
pub(crate) fn source<B>(request: &Request<B>, allowed: &[String]) -> Result<Source, Error> {
    let (method, uri, headers) = (request.method(), request.uri(), request.headers());
    let foreign = |origin: &str| Error::ForeignOrigin { origin: origin.to_owned() };
    let host = single(headers, &HOST).ok().flatten();
    let judge = |origin: &str| match host::page(origin, host, allowed) {
        Some(Page::Local) => Ok(Source::Local),
        Some(Page::Web) => Ok(Source::Web),
        None => Err(foreign(origin)),
    };
    if let Some(origin) = single(headers, &ORIGIN).map_err(|()| foreign("several origins"))? {
        return judge(origin);
    }
    let opens_page = matches!(*method, Method::GET | Method::HEAD) && uri.path() == "/";
    let is = |name: &HeaderName, value: &str| single(headers, name) == Ok(Some(value));
    let navigates = is(&MODE, "navigate");
    match single(headers, &SITE).map_err(|()| foreign("several sites"))? {
        Some("same-origin") => Ok(Source::Local),
        // A typed URL, or a link in another program.
        Some("none") if !(navigates && names_directory(uri, headers)) => Ok(Source::Local),
        // The page opens no directory by itself and forbids frames.
        Some(_) if opens_page && navigates && is(&DEST, "document") => Ok(Source::Local),
        Some(site) => Err(foreign(site)),
        None => match single(headers, &REFERER).map_err(|()| foreign("several pages"))? {
            Some(page) => judge(origin_of(page))
                .or_else(|error| if opens_page { Ok(Source::Local) } else { Err(error) }),
            // A browser that does not send the source of the request.
            None if is_browser(headers) && !opens_page => Err(foreign("unknown")),
            None => Ok(Source::Local),
        },
    }
}

/// Returns the value of a header that may occur at most once.
fn single<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>, ()> {
    let mut values = headers.get_all(name).iter();
    let first = values.next().map(|value| value.to_str().map_err(|_| ())).transpose()?;
    if values.next().is_some() { Err(()) } else { Ok(first) }
}

/// Returns the origin of a URL, or the input if it has none.
fn origin_of(address: &str) -> &str {
    let Some(start) = address.find("://").map(|at| at + 3) else { return address };
    let end = address[start..].find(['/', '?', '#']).map_or(address.len(), |at| start + at);
    &address[..end]
}

fn names_directory(uri: &Uri, headers: &HeaderMap) -> bool {
    let names = |pair: &str| {
        let key = pair.split('=').next().unwrap_or_default();
        let key = percent_encoding::percent_decode_str(key).decode_utf8_lossy().replace('+', " ");
        DIRECTORY_KEYS.contains(&key.as_str())
    };
    headers.contains_key(DIRECTORY_HEADER) || uri.query().unwrap_or_default().split('&').any(names)
}

fn is_browser(headers: &HeaderMap) -> bool {
    headers.get(USER_AGENT).is_some_and(|agent| agent.as_bytes().starts_with(b"Mozilla/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parses `METHOD URI` and headers, one per line.
    fn source_of(text: &str) -> Option<Source> {
        let mut lines = text.split('\n').map(str::trim);
        let (method, uri) = lines.next().unwrap().split_once(' ').unwrap();
        let mut headers = HeaderMap::new();
        headers.insert(HOST, "localhost:4096".parse().unwrap());
        for line in lines {
            let (name, value) = line.split_once(": ").unwrap();
            headers.append(HeaderName::try_from(name).unwrap(), value.parse().unwrap());
        }
        let mut request = Request::builder().method(method).uri(uri).body(()).unwrap();
        *request.headers_mut() = headers;
        source(&request, &["https://pages.example".to_owned()]).ok()
    }

    #[test]
    fn requests_of_browsers_are_recognised() {
        let mozilla = ("user-agent", "Mozilla/5.0 (X11)");
        let html = ("accept", "text/html,application/xhtml+xml");
        for (lines, expected) in [
            (vec![], None),
            (vec![("user-agent", "curl/8"), html], None),
            (vec![mozilla], Some(Browsing::Page)),
            (vec![mozilla, ("accept", "*/*")], Some(Browsing::Page)),
            (vec![mozilla, html], Some(Browsing::Navigation)),
            (vec![mozilla, html, ("sec-fetch-mode", "cors")], Some(Browsing::Page)),
            (vec![("sec-fetch-mode", "navigate")], Some(Browsing::Navigation)),
        ] {
            let mut headers = HeaderMap::new();
            for (name, value) in &lines {
                headers.append(*name, value.parse().unwrap());
            }
            assert_eq!(browsing(&headers), expected, "{lines:?}");
        }
    }

    #[test]
    fn programs_and_local_pages_are_local() {
        for text in [
            "GET /path?directory=/x",
            "POST /session\nuser-agent: curl/8",
            "GET /path\norigin: http://localhost:3000",
            "GET /path\norigin: http://127.0.0.1:1\nsec-fetch-site: cross-site\nsec-fetch-mode: cors",
            "POST /session\norigin: tauri://localhost\nsec-fetch-site: cross-site",
            "POST /session\norigin: oc://renderer",
            "GET /event\nsec-fetch-site: same-origin\nsec-fetch-mode: cors",
            "GET /doc\nsec-fetch-site: none\nsec-fetch-mode: navigate\nsec-fetch-dest: document",
            "GET /path?directory=/x\nsec-fetch-site: none\nsec-fetch-mode: cors",
            "GET /\nsec-fetch-site: cross-site\nsec-fetch-mode: navigate\nsec-fetch-dest: document",
            "GET /\nuser-agent: Mozilla/5.0",
            "GET /\nuser-agent: Mozilla/5.0\nreferer: https://evil.example/",
            "GET /path\nuser-agent: Mozilla/5.0\nreferer: http://localhost:4096/",
        ] {
            assert_eq!(source_of(text), Some(Source::Local), "{text}");
        }
    }

    #[test]
    fn allowed_pages_of_other_machines_are_web() {
        for text in [
            "GET /path\norigin: https://app.opencode.ai",
            "GET /path\norigin: https://app.opencode.ai\nsec-fetch-site: cross-site",
            "POST /session\norigin: https://pages.example",
            "GET /path\nreferer: https://pages.example/a?b",
        ] {
            assert_eq!(source_of(text), Some(Source::Web), "{text}");
        }
    }

    #[test]
    fn foreign_pages_are_rejected() {
        let mut rejected = vec![
            "GET /path\norigin: null".to_owned(),
            "GET /path\norigin: http://localhost\norigin: http://localhost".to_owned(),
            "GET /path\norigin: http://localhost\norigin: https://evil.example".to_owned(),
            "GET /path\norigin: http://app.localhost.evil.example".to_owned(),
            "GET /path\norigin: http://evil.localhost:1".to_owned(),
            "GET /\nsec-fetch-site: cross-site\nsec-fetch-mode: navigate\nsec-fetch-dest: iframe".to_owned(),
            "GET /\nsec-fetch-site: cross-site\nsec-fetch-mode: no-cors\nsec-fetch-dest: image".to_owned(),
            "POST /\nsec-fetch-site: cross-site\nsec-fetch-mode: navigate\nsec-fetch-dest: document"
                .to_owned(),
            "GET /path\nsec-fetch-site: none\nsec-fetch-site: cross-site".to_owned(),
            "GET /path?directory=/x\nsec-fetch-site: none\nsec-fetch-mode: navigate".to_owned(),
            "GET /path?a&%64irectory=/x\nsec-fetch-site: none\nsec-fetch-mode: navigate".to_owned(),
            "GET /path?location%5Bdirectory%5D=/x\nsec-fetch-site: none\nsec-fetch-mode: navigate".to_owned(),
            "GET /path\nuser-agent: Mozilla/5.0".to_owned(),
            "GET /path\nreferer: https://evil.example/http://localhost/".to_owned(),
            "GET /path\nreferer: about:blank".to_owned(),
        ];
        for method in ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"] {
            rejected.push(format!("{method} /path\norigin: https://evil.example"));
            rejected.push(format!("{method} /\norigin: https://evil.example"));
            for site in ["cross-site", "same-site", "anything"] {
                rejected.push(format!("{method} /path?directory=/x\nsec-fetch-site: {site}"));
            }
        }
        for text in rejected {
            assert_eq!(source_of(&text), None, "{text}");
        }
    }
}
