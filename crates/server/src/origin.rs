//! Which web page a request comes from, if any.
//!
//! A browser sends `Origin` with what a script may read the answer of and with what changes
//! something, and `Sec-Fetch-Site` with everything, also with pictures and links, to addresses of this
//! machine. Older browsers send `Referer` at most. Programs that are no browsers send none of these.

use http::header::{HOST, ORIGIN, REFERER, USER_AGENT};
use http::{HeaderMap, HeaderName, Method, Uri};

use crate::Error;
use crate::host::{self, Page};

const SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");
const DEST: HeaderName = HeaderName::from_static("sec-fetch-dest");
/// The headers and the parts of a query that name a directory.
const DIRECTORY_HEADER: HeaderName = HeaderName::from_static("x-opencode-directory");
const DIRECTORY_KEYS: [&str; 2] = ["directory", "location[directory]"];

/// Where a request comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    /// A program, or a page of this machine.
    Local,
    /// A page from elsewhere that the operator allows, or that is a known client.
    Web,
}

/// Where a request comes from; an error if that is a page that may not use the server.
pub(crate) fn source(
    (method, uri): (&Method, &Uri),
    headers: &HeaderMap,
    allowed: &[String],
) -> Result<Source, Error> {
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
        // An address that was typed, or a link in another program.
        Some("none") if !(navigates && names_directory(uri, headers)) => Ok(Source::Local),
        // The page itself opens no directory, and it forbids frames around it.
        Some(_) if opens_page && navigates && is(&DEST, "document") => Ok(Source::Local),
        Some(site) => Err(foreign(site)),
        None => match single(headers, &REFERER).map_err(|()| foreign("several pages"))? {
            Some(page) => judge(origin_of(page))
                .or_else(|error| if opens_page { Ok(Source::Local) } else { Err(error) }),
            // A browser that does not say where a request comes from.
            None if is_browser(headers) && !opens_page => Err(foreign("unknown")),
            None => Ok(Source::Local),
        },
    }
}

/// The value of a header that stands at most once.
fn single<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>, ()> {
    let mut values = headers.get_all(name).iter();
    let first = values.next().map(|value| value.to_str().map_err(|_| ())).transpose()?;
    if values.next().is_some() { Err(()) } else { Ok(first) }
}

/// The origin of an address; the address itself if it has none.
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

    /// Reads `METHOD address` and headers, one a line.
    fn judged(text: &str) -> Option<Source> {
        let mut lines = text.split('\n').map(str::trim);
        let (method, uri) = lines.next().unwrap().split_once(' ').unwrap();
        let mut headers = HeaderMap::new();
        headers.insert(HOST, "localhost:4096".parse().unwrap());
        for line in lines {
            let (name, value) = line.split_once(": ").unwrap();
            headers.append(HeaderName::try_from(name).unwrap(), value.parse().unwrap());
        }
        let request = (&method.parse().unwrap(), &uri.parse().unwrap());
        source(request, &headers, &["https://pages.example".to_owned()]).ok()
    }

    #[test]
    fn programs_and_local_pages_come_from_this_machine() {
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
            assert_eq!(judged(text), Some(Source::Local), "{text}");
        }
    }

    #[test]
    fn known_pages_from_elsewhere_are_told_apart() {
        for text in [
            "GET /path\norigin: https://app.opencode.ai",
            "GET /path\norigin: https://app.opencode.ai\nsec-fetch-site: cross-site",
            "POST /session\norigin: https://pages.example",
            "GET /path\nreferer: https://pages.example/a?b",
        ] {
            assert_eq!(judged(text), Some(Source::Web), "{text}");
        }
    }

    #[test]
    fn foreign_pages_are_refused() {
        let mut refused = vec![
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
            refused.push(format!("{method} /path\norigin: https://evil.example"));
            refused.push(format!("{method} /\norigin: https://evil.example"));
            for site in ["cross-site", "same-site", "anything"] {
                refused.push(format!("{method} /path?directory=/x\nsec-fetch-site: {site}"));
            }
        }
        for text in refused {
            assert_eq!(judged(&text), None, "{text}");
        }
    }
}
