//! Encodes finished spans as an OTLP export request in JSON.

use std::collections::BTreeMap;
use std::time::Instant;

use serde_json::{Value, json};

use crate::Kind;
use crate::span::{AttributeValue, FinishedSpan};

/// The time at which the tracer was created, on the wall clock and on the monotonic clock.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Epoch {
    pub(crate) unix_ms: u64,
    pub(crate) instant: Instant,
}

impl Epoch {
    fn unix_ns(self, at: Instant) -> String {
        let since = at.saturating_duration_since(self.instant).as_nanos();
        // OTLP/JSON writes 64-bit integers as strings.
        (u128::from(self.unix_ms) * 1_000_000 + since).to_string()
    }
}

/// Returns the body of an export request with the given spans.
pub(crate) fn encode(
    spans: &[FinishedSpan],
    resource: &BTreeMap<String, String>,
    epoch: Epoch,
    version: &str,
) -> Vec<u8> {
    let resource: Vec<_> =
        resource.iter().map(|(name, value)| attribute(name, &AttributeValue::Text(value.clone()))).collect();
    let spans: Vec<_> = spans.iter().map(|span| encode_span(span, epoch)).collect();
    let scope = json!({ "name": "codewright", "version": version });
    let all = json!({
        "resourceSpans": [{
            "resource": { "attributes": resource },
            "scopeSpans": [{ "scope": scope, "spans": spans }],
        }],
    });
    all.to_string().into_bytes()
}

fn encode_span(span: &FinishedSpan, epoch: Epoch) -> Value {
    let kind = match span.kind {
        Kind::Internal => 1,
        Kind::Server => 2,
        Kind::Client => 3,
    };
    let attributes: Vec<_> = span.attributes.iter().map(|(name, value)| attribute(name, value)).collect();
    let mut encoded = json!({
        "traceId": format!("{:032x}", span.context.trace),
        "spanId": format!("{:016x}", span.context.span),
        "name": span.name,
        "kind": kind,
        "startTimeUnixNano": epoch.unix_ns(span.began),
        "endTimeUnixNano": epoch.unix_ns(span.ended),
        "attributes": attributes,
        "status": if span.has_failed { json!({ "code": 2 }) } else { json!({}) },
    });
    if let Some(parent) = span.parent {
        encoded["parentSpanId"] = json!(format!("{parent:016x}"));
    }
    encoded
}

fn attribute(name: &str, value: &AttributeValue) -> Value {
    let value = match value {
        AttributeValue::Text(text) => json!({ "stringValue": text }),
        AttributeValue::Number(number) => json!({ "intValue": number.to_string() }),
    };
    json!({ "key": name, "value": value })
}
