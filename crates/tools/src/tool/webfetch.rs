//! Fetches a page from the web.
//!
//! The first address and the target of each redirect need permission. A private address (this machine, its
//! local network, a cloud's metadata) needs permission even if every fetch is allowed, unless a rule names
//! it: otherwise a prompt injection could reach services that only this machine can reach.

mod markdown;
mod page;

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use codewright_workspace::{Kind, sniff};
use serde::Deserialize;
use serde_json::{Value, json};
use url::{Host, Url};

use crate::web::is_public;
use crate::{
    Ask, Attachment, Effect, Facts, Output, Policy, Tool, ToolCx, ToolError, WebAnswer, WebError, WebRequest,
    render,
};

const DESCRIPTION: &str = include_str!("webfetch.txt");
/// The limit for the size of a response. The error message states it in megabytes.
const MAX_BYTES: usize = 5 * 1024 * 1024;
const TIMEOUT_S: f64 = 30.0;
const MAX_TIMEOUT_S: f64 = 120.0;
/// The limit of redirects.
const MAX_HOPS: usize = 10;
/// The limit for the length of an address.
const MAX_URL_CHARS: usize = 8192;
const TIMED_OUT: &str = "Request timed out";

/// The `webfetch` tool.
pub struct WebFetch;

/// The arguments.
#[derive(Debug, Clone, Deserialize)]
pub struct Input {
    url: String,
    #[serde(default)]
    format: Format,
    timeout: Option<f64>,
}

/// The output format of a page.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Format {
    /// Text only.
    Text,
    /// Text with markup for headings, lists and links.
    #[default]
    Markdown,
    /// The HTML source.
    Html,
}

impl Format {
    fn accept(self) -> &'static str {
        match self {
            Self::Text => "text/plain, text/markdown;q=0.9, text/html;q=0.8, */*;q=0.1",
            Self::Markdown => "text/markdown, text/plain;q=0.9, text/html;q=0.8, */*;q=0.1",
            Self::Html => "text/html, application/xhtml+xml;q=0.9, text/plain;q=0.8, */*;q=0.1",
        }
    }
}

impl Input {
    fn url(&self) -> Result<Url, ToolError> {
        let tell = |message: &str| Err(ToolError::Model(message.to_owned()));
        if !self.url.starts_with("http://") && !self.url.starts_with("https://") {
            return tell("URL must start with http:// or https://");
        }
        if self.url.chars().count() > MAX_URL_CHARS {
            return tell(&format!("The URL is longer than {MAX_URL_CHARS} characters"));
        }
        parsed(&self.url)
    }

    fn timeout(&self) -> Duration {
        let seconds = self.timeout.filter(|seconds| *seconds > 0.0).unwrap_or(TIMEOUT_S);
        Duration::try_from_secs_f64(seconds.min(MAX_TIMEOUT_S)).unwrap_or(Duration::from_secs(30))
    }
}

impl Tool for WebFetch {
    const NAME: &'static str = "webfetch";
    const FACTS: &'static Facts = &Facts { effect: Effect::None, position: Some(9), ..Facts::PLAIN };
    type Input = Input;

    fn description(&self) -> String {
        let values = [
            ("default", TIMEOUT_S.to_string()),
            ("longest", MAX_TIMEOUT_S.to_string()),
            ("megabytes", (MAX_BYTES / 1024 / 1024).to_string()),
        ];
        let values = values.each_ref().map(|(name, value)| (*name, value.as_str()));
        render(DESCRIPTION, &values).expect("a test renders every description")
    }

    fn parameters(&self) -> Value {
        json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "properties": {
                "url": {"type": "string", "description": "The whole address to fetch"},
                "format": {
                    "type": "string",
                    "enum": ["text", "markdown", "html"],
                    "description": "The format of a page; markdown if not given",
                    "default": "markdown",
                },
                "timeout": {"type": "number", "description": "The time limit, in seconds"},
            },
            "required": ["url"],
        })
    }

    async fn asks(&self, input: &Input, _cx: &ToolCx) -> Result<Vec<Ask>, ToolError> {
        let url = input.url()?;
        // A private address needs one permission, not two.
        Ok(vec![match literal(&url) {
            Some(address) if !is_public(address) => private(&url, address),
            _ => ask(&url),
        }])
    }

    async fn run(&self, input: Input, cx: &ToolCx) -> Result<Output, ToolError> {
        let fetch = async {
            // The time that the user takes to answer a request is not limited here.
            let first = input.url()?;
            let (answer, url) = Way { input: &input, cx }.walk(first.clone()).await?;
            let title = format!("{} ({})", shown(&input.url), shown(&answer.content_type));
            let format = input.format;
            let redirect = redirect(&first, &url);
            let output = cx.reading(move || output(&answer, &url, format)).await?;
            Ok(Output { title, output: redirect + &output.output, ..output })
        };
        cx.cancel.run_until_cancelled(fetch).await.unwrap_or(Err(ToolError::Cancelled(None)))
    }
}

/// The line for the model about a redirect to another host. Without one it is empty.
///
/// The content is not that of the host in the call, and the next call can name the right one.
fn redirect(first: &Url, last: &Url) -> String {
    if first.host() == last.host() {
        return String::new();
    }
    format!("[Redirected to another host: {}]\n\n", shown(last.as_str()))
}

fn parsed(text: &str) -> Result<Url, ToolError> {
    let bad = |why: &dyn std::fmt::Display| {
        ToolError::Model(format!("The URL cannot be read ({why}): {}", shown(text)))
    };
    let url = Url::parse(text).map_err(|why| bad(&why))?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err(ToolError::Model("A URL with a user name or a password in it is not fetched".to_owned()));
    }
    if url.host_str().is_none_or(str::is_empty) {
        return Err(bad(&"it names no server"));
    }
    Ok(url)
}

fn ask(url: &Url) -> Ask {
    Ask::new("webfetch", vec![url.to_string()]).with("url", url.as_str())
}

/// The permission request for a private address, which only a rule that names it can allow.
fn private(url: &Url, address: IpAddr) -> Ask {
    let mut ask = ask(url).with("address", address.to_string()).under(Policy::Named);
    ask.always = vec![format!("{}/*", url.origin().ascii_serialization())];
    ask
}

/// The IP address in a URL, if the URL has no host name.
fn literal(url: &Url) -> Option<IpAddr> {
    match url.host()? {
        Host::Ipv4(address) => Some(address.into()),
        Host::Ipv6(address) => Some(address.into()),
        Host::Domain(name) => {
            let name = name.trim_end_matches('.');
            let is_local = name == "localhost" || name.ends_with(".localhost");
            is_local.then_some(IpAddr::V4(std::net::Ipv4Addr::LOCALHOST))
        }
    }
}

/// One fetch, including its redirects.
struct Way<'a> {
    input: &'a Input,
    cx: &'a ToolCx,
}

impl Way<'_> {
    async fn walk(&self, first: Url) -> Result<(WebAnswer, Url), ToolError> {
        let mut left = self.input.timeout();
        let mut url = first;
        for hop in 0..=MAX_HOPS {
            let addresses = self.judged(&url, hop > 0, left).await?;
            let request = WebRequest {
                url: url.clone(),
                addresses,
                accept: self.input.format.accept(),
                body: None,
                limit_bytes: MAX_BYTES,
            };
            let began = tokio::time::Instant::now();
            let answer = tokio::time::timeout(left, self.cx.web.send(&request)).await;
            left = left.saturating_sub(began.elapsed());
            let answer = match answer {
                Ok(Ok(answer)) => answer,
                Ok(Err(WebError::TooLarge)) => {
                    let megabytes = MAX_BYTES / 1024 / 1024;
                    return Err(ToolError::Model(format!(
                        "Response too large (exceeds {megabytes}MB limit)"
                    )));
                }
                Ok(Err(WebError::Unreachable(why))) => return Err(unreachable(&url, &why)),
                Err(_) => return Err(ToolError::Model(TIMED_OUT.to_owned())),
            };
            let is_redirect = matches!(answer.status, 301 | 302 | 303 | 307 | 308);
            match answer.location.as_deref().filter(|_| is_redirect) {
                Some(location) => url = next(&url, location)?,
                None if (200..300).contains(&answer.status) => return Ok((answer, url)),
                None => {
                    let status = answer.status;
                    return Err(ToolError::Model(format!(
                        "StatusCode: non 2xx status code ({status} GET {url})"
                    )));
                }
            }
        }
        Err(ToolError::Model(format!("More than {MAX_HOPS} redirects, the last to {url}")))
    }

    /// The addresses that may be reached for a URL, after requesting permission.
    async fn judged(
        &self,
        url: &Url,
        is_further: bool,
        left: Duration,
    ) -> Result<Vec<SocketAddr>, ToolError> {
        let requests = &self.cx.permission_requests;
        let host = url.host_str().unwrap_or_default();
        let port = url.port_or_known_default().unwrap_or(80);
        if let Some(address) = literal(url) {
            match (is_further, is_public(address)) {
                (true, true) => requests.ask(ask(url)).await?,
                (true, false) => requests.ask(private(url, address)).await?,
                // This permission was granted before the call.
                (false, _) => {}
            }
            return Ok(vec![SocketAddr::new(address, port)]);
        }
        if is_further {
            requests.ask(ask(url)).await?;
        }
        let found = tokio::time::timeout(left, self.cx.web.look_up(host, port)).await;
        let addresses = match found {
            Ok(Ok(addresses)) if !addresses.is_empty() => addresses,
            // With a proxy, names may not be resolvable here. The proxy decides about them.
            Ok(_) if self.cx.web.has_proxy(url) => return Ok(Vec::new()),
            Ok(Ok(_)) => return Err(unreachable(url, "the name has no address")),
            Ok(Err(WebError::Unreachable(why))) => return Err(unreachable(url, &why)),
            Ok(Err(WebError::TooLarge)) | Err(_) => return Err(ToolError::Model(TIMED_OUT.to_owned())),
        };
        if let Some(address) = addresses.iter().find(|address| !is_public(address.ip())) {
            requests.ask(private(url, address.ip())).await?;
        }
        Ok(addresses)
    }
}

fn next(url: &Url, location: &str) -> Result<Url, ToolError> {
    let next = url.join(location).map_err(|why| {
        ToolError::Model(format!(
            "{url} leads to an address that cannot be read ({why}): {}",
            shown(location)
        ))
    })?;
    if !matches!(next.scheme(), "http" | "https") {
        return Err(ToolError::Model(format!(
            "{url} leads to {}, which is not fetched",
            shown(next.as_str())
        )));
    }
    if url.scheme() == "https" && next.scheme() == "http" {
        return Err(ToolError::Model(format!(
            "{url} leads from https to {next}, where anybody could listen"
        )));
    }
    parsed(next.as_str())
}

fn unreachable(url: &Url, why: &str) -> ToolError {
    ToolError::Model(format!("Transport error (GET {url}): {}", shown(why)))
}

fn output(answer: &WebAnswer, url: &Url, format: Format) -> Result<Output, ToolError> {
    let (kind, charset) = media(&answer.content_type);
    if kind.starts_with("image/") && kind != "image/svg+xml" {
        return Ok(picture(&answer.body));
    }
    if sniff(&answer.body) == Kind::Pdf {
        let mut output = Output::new("", "PDF fetched successfully");
        output.attachments.push(Attachment::new("application/pdf", &answer.body));
        return Ok(output);
    }
    let text = decoded(&answer.body, charset);
    if charset.is_none() && sniff(&answer.body) == Kind::Binary {
        let kind = if kind.is_empty() { "no type given" } else { &kind };
        return Err(ToolError::Model(format!("Cannot show binary content ({}) of {url}", shown(kind))));
    }
    let is_page = matches!(kind.as_str(), "text/html" | "application/xhtml+xml");
    let text = match format {
        Format::Html => text,
        Format::Text if is_page => page::Page::parse(&text).text(),
        Format::Markdown if is_page => markdown::markdown(&page::Page::parse(&text)),
        Format::Text | Format::Markdown => text,
    };
    // `truncated` is set where the length of every tool's output is checked.
    Ok(Output { output: strip_controls(&text), ..Output::default() })
}

fn picture(body: &[u8]) -> Output {
    const FETCHED: &str = "Image fetched successfully";
    match sniff(body) {
        Kind::Image(mime) => {
            let mut output = Output::new("", FETCHED);
            output.attachments.push(Attachment::new(mime, body));
            output
        }
        Kind::Text | Kind::Pdf | Kind::Binary => Output::new(
            "",
            format!("{FETCHED}\n\n[1 image omitted: its bytes are no picture that can be shown.]"),
        ),
    }
}

/// The media type in lower case without parameters, and the charset.
fn media(content_type: &str) -> (String, Option<&str>) {
    let mut parts = content_type.split(';');
    let kind = parts.next().unwrap_or_default().trim().to_ascii_lowercase();
    let charset = parts.find_map(|part| {
        let (name, value) = part.split_once('=')?;
        name.trim().eq_ignore_ascii_case("charset").then_some(value.trim().trim_matches('"'))
    });
    (kind, charset)
}

fn decoded(body: &[u8], charset: Option<&str>) -> String {
    let known = charset.and_then(|label| encoding_rs::Encoding::for_label(label.as_bytes()));
    let known = known.or_else(|| declared_charset(body)).unwrap_or(encoding_rs::UTF_8);
    known.decode(body).0.into_owned()
}

/// The charset that a page declares in its first kilobyte.
fn declared_charset(body: &[u8]) -> Option<&'static encoding_rs::Encoding> {
    let start = String::from_utf8_lossy(&body[..body.len().min(1024)]).to_ascii_lowercase();
    let (_, after) = start.split_once("<meta")?.1.split_once("charset=")?;
    let label = after.trim_start_matches(['"', '\'', ' ']);
    let label = label.split(|c: char| !(c.is_ascii_alphanumeric() || "-_:".contains(c))).next()?;
    encoding_rs::Encoding::for_label(label.as_bytes())
}

/// Reads a page in every format.
#[cfg(any(test, feature = "trial"))]
pub(crate) fn tried(html: &str) {
    let page = page::Page::parse(html);
    drop(strip_controls(&page.text()));
    let written = markdown::markdown(&page);
    assert_eq!(written.trim(), written, "blanks at the ends");
}

/// One untrusted line, shortened for display.
fn shown(text: &str) -> String {
    const MAX_CHARS: usize = 500;
    let line: String = text.chars().filter(|c| !c.is_control()).take(MAX_CHARS).collect();
    line
}

/// Removes characters that could move a terminal's cursor or hide text from the reader.
pub(super) fn strip_controls(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\n' | '\t' => out.push(c),
            '\r' if chars.peek() == Some(&'\n') => {}
            '\r' => out.push('\n'),
            '\u{1b}' => skip_sequence(&mut chars),
            // Direction overrides make text look different from its characters.
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}' => {}
            c if c.is_control() => {}
            c => out.push(c),
        }
    }
    out
}

/// Skips the rest of an escape sequence.
fn skip_sequence(chars: &mut std::iter::Peekable<std::str::Chars<'_>>) {
    /// The limit for the length of a sequence.
    const MAX_CHARS: usize = 256;
    match chars.peek() {
        Some('[') => {
            chars.next();
            for c in chars.by_ref().take(MAX_CHARS) {
                if ('@'..='~').contains(&c) || c == '\n' {
                    break;
                }
            }
        }
        Some(']' | 'P' | 'X' | '^' | '_') => {
            for c in chars.by_ref().take(MAX_CHARS) {
                if matches!(c, '\u{7}' | '\\' | '\n') {
                    break;
                }
            }
        }
        Some(_) => drop(chars.next()),
        None => {}
    }
}
