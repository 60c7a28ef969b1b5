//! Spans as a collector reads them: OTLP in JSON.

use std::collections::BTreeMap;
use std::time::Instant;

use serde_json::{Value, json};

use crate::Kind;
use crate::span::{Ended, Fact};

/// When the program's own time began, by the clock and by the watch.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Began {
    pub(crate) unix_ms: u64,
    pub(crate) instant: Instant,
}

impl Began {
    fn unix_ns(self, at: Instant) -> String {
        let since = at.saturating_duration_since(self.instant).as_nanos();
        // Numbers of 64 bits are texts in this notation.
        (u128::from(self.unix_ms) * 1_000_000 + since).to_string()
    }
}

/// One request's worth of spans.
pub(crate) fn encode(
    spans: &[Ended],
    resource: &BTreeMap<String, String>,
    (began, version): (Began, &str),
) -> Vec<u8> {
    let resource: Vec<_> =
        resource.iter().map(|(name, value)| attribute(name, &Fact::Text(value.clone()))).collect();
    let spans: Vec<_> = spans.iter().map(|span| encoded(span, began)).collect();
    let scope = json!({ "name": "codewright", "version": version });
    let all = json!({
        "resourceSpans": [{
            "resource": { "attributes": resource },
            "scopeSpans": [{ "scope": scope, "spans": spans }],
        }],
    });
    all.to_string().into_bytes()
}

fn encoded(span: &Ended, began: Began) -> Value {
    let kind = match span.kind {
        Kind::Internal => 1,
        Kind::Server => 2,
        Kind::Client => 3,
    };
    let attributes: Vec<_> = span.facts.iter().map(|(name, fact)| attribute(name, fact)).collect();
    let mut encoded = json!({
        "traceId": format!("{:032x}", span.context.trace),
        "spanId": format!("{:016x}", span.context.span),
        "name": span.name,
        "kind": kind,
        "startTimeUnixNano": began.unix_ns(span.began),
        "endTimeUnixNano": began.unix_ns(span.ended),
        "attributes": attributes,
        "status": if span.has_failed { json!({ "code": 2 }) } else { json!({}) },
    });
    if let Some(parent) = span.parent {
        encoded["parentSpanId"] = json!(format!("{parent:016x}"));
    }
    encoded
}

fn attribute(name: &str, fact: &Fact) -> Value {
    let value = match fact {
        Fact::Text(text) => json!({ "stringValue": text }),
        Fact::Number(number) => json!({ "intValue": number.to_string() }),
    };
    json!({ "key": name, "value": value })
}
