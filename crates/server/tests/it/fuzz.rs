//! Random requests to every route: no crash, no hang, no unexpected status.

use std::time::Duration;

use axum::body::Body;
use codewright_proto::SessionInput;
use codewright_server::routes;
use codewright_testkit::Script;
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::bench::{Bench, PATIENCE, quick, request, send};

/// The number of requests to each route.
const ROUNDS: usize = 4;
/// The routes that return the whole catalog, which get one request each.
const LONG: [&str; 6] = [
    "/provider",
    "/config/providers",
    "/api/model",
    "/api/provider",
    "/api/provider/{providerID}",
    "/provider/auth",
];
/// How long to read a stream.
const GLANCE: Duration = Duration::from_millis(5);

/// A random generator with the same numbers in every run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        // xorshift64: the numbers only need to look random.
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % sides as u64) as usize
    }

    fn text(&mut self) -> String {
        const TEXTS: [&str; 16] = [
            "",
            " ",
            "..",
            "../../etc/passwd",
            "/",
            "nul\u{0}l",
            "ses_",
            "ses_x0000",
            "msg_x",
            "-1",
            "NaN",
            "true",
            "\u{202e}x",
            "{\"a\":1}",
            "%",
            "(",
        ];
        match self.roll(4) {
            0 => "x".repeat(self.roll(3000)),
            _ => TEXTS[self.roll(TEXTS.len())].to_owned(),
        }
    }

    fn value(&mut self, depth: usize) -> Value {
        const KEYS: [&str; 26] = [
            "prompt",
            "files",
            "agents",
            "uri",
            "source",
            "action",
            "resources",
            "id",
            "parts",
            "type",
            "text",
            "url",
            "mime",
            "model",
            "providerID",
            "modelID",
            "agent",
            "messageID",
            "partID",
            "command",
            "patch",
            "title",
            "key",
            "method",
            "time",
            "permission",
        ];
        match self.roll(if depth == 0 { 5 } else { 7 }) {
            0 => Value::Null,
            1 => json!(self.roll(2) == 0),
            2 => json!([0.5, -1.0, 1e300, 9_007_199_254_740_993_f64][self.roll(4)]),
            3 | 4 => json!(self.text()),
            5 => (0..self.roll(4)).map(|_| self.value(depth - 1)).collect(),
            _ => {
                let entries = 0..self.roll(6);
                Value::Object(
                    entries
                        .map(|_| (KEYS[self.roll(KEYS.len())].to_owned(), self.value(depth - 1)))
                        .collect(),
                )
            }
        }
    }

    fn body(&mut self) -> Vec<u8> {
        match self.roll(8) {
            0 => Vec::new(),
            1 => b"{\"a\":".to_vec(),
            2 => vec![0xff, 0xfe, 0x00],
            3 => "[".repeat(5000).into_bytes(),
            _ => self.value(4).to_string().into_bytes(),
        }
    }
}

fn escaped(text: &str) -> String {
    text.bytes().fold(String::new(), |escaped, byte| format!("{escaped}%{byte:02X}"))
}

/// Returns the path of a route with random parameters.
fn path(dice: &mut Dice, path: &str, session: &str) -> String {
    let parts = path.split('/').map(|part| match part {
        "{sessionID}" if dice.roll(2) == 0 => session.to_owned(),
        place if place.starts_with('{') => match dice.roll(3) {
            // An empty parameter would be another route.
            0 => format!("x{}", escaped(&dice.text())),
            1 => "msg_x0000".to_owned(),
            _ => "zzz".to_owned(),
        },
        word => word.to_owned(),
    });
    let path = parts.collect::<Vec<_>>().join("/");
    // Never a random directory, because some routes write into it.
    const KEYS: [&str; 10] =
        ["path", "query", "pattern", "limit", "mode", "before", "model", "cursor", "after", "order"];
    let query: Vec<_> = (0..dice.roll(4))
        .map(|_| format!("{}={}", KEYS[dice.roll(KEYS.len())], escaped(&dice.text())))
        .collect();
    if query.is_empty() { path } else { format!("{path}?{}", query.join("&")) }
}

#[tokio::test]
async fn random_requests_are_rejected_or_answered_and_never_crash_the_server() {
    let bench = Bench::new(Script::new().text("ok").repeat()).await;
    let router = bench.router(quick());
    let client = bench.client();
    let mut dice = Dice(0x5eed);
    for (method, route) in routes() {
        // Each route has its own session, because requests delete, change or start sessions.
        let session = client.create_session(&SessionInput::default()).await.unwrap().id.to_string();
        let rounds = if LONG.contains(&route) { 1 } else { ROUNDS };
        for _ in 0..rounds {
            let path = path(&mut dice, route, &session);
            let body = if method == "GET" { Vec::new() } else { dice.body() };
            let shown = String::from_utf8_lossy(&body).chars().take(200).collect::<String>();
            let name = format!("{method} {path} {shown}");
            let message = request(method, &path).header("content-type", "application/json");
            let Ok(message) = message.body(Body::from(body)) else { continue };
            let response = timeout(PATIENCE, send(&router, message)).await;
            let response = response.unwrap_or_else(|_| panic!("{name} hangs"));
            let status = response.status().as_u16();
            let content = timeout(GLANCE, response.into_body().collect()).await;
            let text = match content {
                Ok(content) => String::from_utf8_lossy(&content.unwrap().to_bytes()).into_owned(),
                Err(_) => String::new(),
            };
            // The status for invalid ids, and for directories with an unusable configuration.
            let meant = text.contains("is not a valid id");
            assert!(status < 500 || meant, "{name}: {status} {text}");
        }
    }
    assert!(client.health().await.unwrap().healthy);
}
