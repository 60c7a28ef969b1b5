//! The addresses that a fetch may reach, and its output. The sockets are tested with the program.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use codewright_tools::{
    Ask, PermissionRequests, Policy, Sent, ToolError, Web, WebAnswer, WebError, WebRequest,
};
use serde_json::{Value, json};
use url::Url;

use crate::project::Project;

/// A network with fixed responses that records its requests.
#[derive(Default)]
struct Net {
    names: HashMap<&'static str, &'static str>,
    answers: HashMap<&'static str, WebAnswer>,
    has_proxy: bool,
    sent: Mutex<Vec<WebRequest>>,
}

impl Web for Net {
    fn has_proxy(&self, _url: &Url) -> bool {
        self.has_proxy
    }

    fn look_up<'a>(&'a self, host: &'a str, port: u16) -> Sent<'a, Vec<SocketAddr>> {
        Box::pin(async move {
            let address = self.names.get(host);
            let address = address.ok_or_else(|| WebError::Unreachable(format!("no such name: {host}")))?;
            Ok(vec![SocketAddr::new(address.parse().expect("an address"), port)])
        })
    }

    fn send<'a>(&'a self, request: &'a WebRequest) -> Sent<'a, WebAnswer> {
        Box::pin(async move {
            self.sent.lock().expect("lock").push(request.clone());
            let answer = self.answers.get(request.url.as_str()).cloned();
            answer.ok_or_else(|| WebError::Unreachable("connection refused".to_owned()))
        })
    }
}

fn answer(content_type: &str, body: &[u8]) -> WebAnswer {
    WebAnswer { status: 200, content_type: content_type.to_owned(), location: None, body: body.to_vec() }
}

fn redirect(location: &str) -> WebAnswer {
    WebAnswer { status: 302, location: Some(location.to_owned()), ..WebAnswer::default() }
}

/// The result of a fetch, and the permissions that it requested while running.
struct Fetched {
    result: Result<codewright_tools::Output, ToolError>,
    asked: Vec<Ask>,
    sent: Vec<WebRequest>,
}

async fn fetch(net: Net, input: Value, refused: Option<&'static str>) -> Fetched {
    let mut project = Project::new();
    let (net, asked) = (Arc::new(net), Arc::new(Mutex::new(Vec::<Ask>::new())));
    let sink = Arc::clone(&asked);
    project.cx.web = net.clone();
    project.cx.permission_requests = PermissionRequests::new(move |ask: Ask| {
        let is_refused = refused.is_some_and(|refused| ask.patterns[0].contains(refused));
        sink.lock().expect("lock").push(ask);
        async move { if is_refused { Err(ToolError::Model("forbidden".to_owned())) } else { Ok(()) } }
    });
    let result = project.call("webfetch", input).await;
    let (asked, sent) = (asked.lock().expect("lock").clone(), net.sent.lock().expect("lock").clone());
    Fetched { result, asked, sent }
}

fn public() -> Net {
    let names =
        HashMap::from([("a.test", "1.1.1.1"), ("b.test", "2606:4700::1111"), ("inner.test", "10.0.0.7")]);
    Net { names, ..Net::default() }
}

fn is_named(ask: &Ask) -> bool {
    ask.policy == Policy::Named
}

#[tokio::test]
async fn a_fetch_needs_permission_and_a_rule_must_name_a_private_address() {
    let project = Project::new();
    for (url, named) in [
        ("https://a.test/x?y", false),
        ("http://8.8.8.8/", false),
        ("http://127.0.0.1:8080/x", true),
        ("http://LOCALHOST:3000/", true),
        ("http://app.localhost/", true),
        ("http://[::1]/", true),
        ("http://[::ffff:10.0.0.1]/", true),
        ("http://2130706433/", true),
        ("http://0x7f.1/", true),
        ("http://169.254.169.254/latest/meta-data", true),
    ] {
        let asks = project.asks("webfetch", json!({"url": url})).await.expect("asks");
        assert_eq!(
            (asks.len(), asks[0].permission.as_str(), is_named(&asks[0])),
            (1, "webfetch", named),
            "{url}"
        );
        let normal = Url::parse(url).expect("a URL").to_string();
        assert_eq!(asks[0].patterns, [normal], "{url}");
    }
    let asks = project.asks("webfetch", json!({"url": "http://localhost:3000/x"})).await.expect("asks");
    assert_eq!(asks[0].always, ["http://localhost:3000/*"]);
}

#[tokio::test]
async fn the_request_uses_the_addresses_that_were_checked() {
    let mut net = public();
    net.answers.insert("https://b.test/", answer("text/plain", b"there"));
    let fetched = fetch(net, json!({"url": "https://b.test"}), None).await;
    assert_eq!(fetched.result.expect("fetched").output, "there");
    assert_eq!(fetched.sent[0].addresses, ["[2606:4700::1111]:443".parse().unwrap()]);
    assert!(fetched.asked.is_empty());
}

#[tokio::test]
async fn a_name_with_a_private_address_needs_another_permission() {
    let net = || {
        let mut net = public();
        net.answers.insert("http://inner.test/", answer("text/plain", b"inner"));
        net
    };
    let fetched = fetch(net(), json!({"url": "http://inner.test"}), None).await;
    assert_eq!(fetched.result.expect("fetched").output, "inner");
    assert!(is_named(&fetched.asked[0]) && fetched.asked[0].metadata["address"] == "10.0.0.7");
    let refused = fetch(net(), json!({"url": "http://inner.test"}), Some("inner")).await;
    assert_eq!(refused.result.unwrap_err().to_string(), "forbidden");
    assert!(refused.sent.is_empty(), "nothing is sent before permission is granted");
}

#[tokio::test]
async fn every_redirect_is_checked_again() {
    let net = || {
        let mut net = public();
        net.answers.insert("https://a.test/", redirect("/moved"));
        net.answers.insert("https://a.test/moved", redirect("//b.test/end"));
        net.answers.insert("https://b.test/end", answer("text/plain", b"end"));
        net
    };
    let fetched = fetch(net(), json!({"url": "https://a.test"}), None).await;
    let output = fetched.result.expect("fetched");
    let expected = "[Redirected to another host: https://b.test/end]\n\nend";
    assert_eq!((output.output.as_str(), output.title.as_str()), (expected, "https://a.test (text/plain)"));
    let asked: Vec<_> = fetched.asked.iter().map(|ask| ask.patterns[0].as_str()).collect();
    assert_eq!(asked, ["https://a.test/moved", "https://b.test/end"]);
    let refused = fetch(net(), json!({"url": "https://a.test"}), Some("b.test")).await;
    assert_eq!((refused.result.unwrap_err().to_string().as_str(), refused.sent.len()), ("forbidden", 2));
}

#[tokio::test]
async fn a_redirect_to_an_invalid_address_is_not_followed() {
    for (location, expected) in [
        ("http://169.254.169.254/", "forbidden"),
        ("http://127.0.0.1/", "forbidden"),
        ("file:///etc/passwd", "which is not fetched"),
        ("http://user:word@b.test/", "not fetched"),
        ("http://[", "cannot be read"),
        ("http://a.test/", "More than 10 redirects"),
    ] {
        let mut net = public();
        net.answers.insert("http://a.test/", redirect(location));
        net.answers.insert("http://169.254.169.254/", answer("text/plain", b"secret"));
        let fetched = fetch(
            net,
            json!({"url": "http://a.test/"}),
            Some(if location.contains("a.test") { "-" } else { "1" }),
        )
        .await;
        let error = fetched.result.expect_err(location).to_string();
        assert!(error.contains(expected), "{location}: {error}");
    }
    let mut net = public();
    net.answers.insert("https://a.test/", redirect("http://b.test/"));
    let error = fetch(net, json!({"url": "https://a.test/"}), None).await.result.unwrap_err().to_string();
    assert!(error.contains("leads from https to http://b.test/"), "{error}");
}

#[tokio::test]
async fn a_proxy_resolves_unknown_names() {
    let mut net = Net { has_proxy: true, ..Net::default() };
    net.answers.insert("https://far.test/", answer("text/plain", b"far"));
    let fetched = fetch(net, json!({"url": "https://far.test/"}), None).await;
    assert_eq!(fetched.result.expect("fetched").output, "far");
    assert!(fetched.sent[0].addresses.is_empty());
}

#[tokio::test]
async fn responses_are_made_readable() {
    let png = b"\x89PNG\r\n\x1a\n0000";
    for (kind, body, format, expected) in [
        ("text/html", &b"<h1>A</h1>b"[..], "markdown", "# A\n\nb"),
        ("text/html; charset=utf-8", b"<h1>A</h1>b", "text", "Ab"),
        ("TEXT/HTML", b"<h1>A</h1>", "html", "<h1>A</h1>"),
        ("application/json", b"{\"a\":1}", "markdown", "{\"a\":1}"),
        ("text/plain; charset=iso-8859-1", b"caf\xe9", "markdown", "caf\u{e9}"),
        ("text/html", b"<meta charset=\"latin1\"><p>caf\xe9", "markdown", "caf\u{e9}"),
        (
            "text/plain",
            b"plain words, a\x1b[31mred\x1b[0m\x1b]0;title\x07b\r\nc\rd\x08\x9b",
            "text",
            "plain words, aredb\nc\nd\u{fffd}",
        ),
        ("text/plain", "a\u{202e}b\u{2066}c".as_bytes(), "text", "abc"),
        ("image/png", png, "markdown", "Image fetched successfully"),
        (
            "image/png",
            b"none",
            "markdown",
            "Image fetched successfully\n\n[1 image omitted: its bytes are no picture that can be shown.]",
        ),
        ("application/pdf", b"%PDF-1.4\n", "markdown", "PDF fetched successfully"),
    ] {
        let mut net = public();
        net.answers.insert("http://a.test/", answer(kind, body));
        let fetched = fetch(net, json!({"url": "http://a.test/", "format": format}), None).await;
        let output = fetched.result.unwrap_or_else(|error| panic!("{kind}: {error}"));
        assert_eq!(output.output, expected, "{kind}");
        let is_file = ["Image fetched successfully", "PDF fetched successfully"].contains(&expected);
        assert_eq!(output.attachments.len(), usize::from(is_file), "{kind}");
    }
}

#[tokio::test]
async fn fetches_that_fail_are_errors() {
    for (input, expected) in [
        (json!({"url": "ftp://x"}), "URL must start with http:// or https://"),
        (json!({"url": "http://"}), "The URL cannot be read (empty host): http://"),
        (json!({"url": "http://u:p@a.test/"}), "A URL with a user name or a password in it is not fetched"),
        (json!({"url": "http://a.test/404"}), "StatusCode: non 2xx status code (404 GET http://a.test/404)"),
        (
            json!({"url": "http://a.test/zip"}),
            "Cannot show binary content (application/zip) of http://a.test/zip",
        ),
        (
            json!({"url": "http://a.test/none"}),
            "Transport error (GET http://a.test/none): connection refused",
        ),
        (
            json!({"url": "http://none.test/"}),
            "Transport error (GET http://none.test/): no such name: none.test",
        ),
    ] {
        let mut net = public();
        net.answers.insert("http://a.test/404", WebAnswer { status: 404, ..WebAnswer::default() });
        net.answers.insert("http://a.test/zip", answer("application/zip", b"PK\x03\x04\x00\x00"));
        assert_eq!(fetch(net, input, None).await.result.unwrap_err().to_string(), expected);
    }
}
