//! Continues after a provider refused a part of a request.
//!
//! The part that the error names is left out with a note for the model, and the request is sent again. The refused parts
//! are remembered, so that the next requests of the session do not contain them either.

pub(crate) mod known;
mod leave_out;
mod named;
mod parts;

use serde_json::Value;

use crate::{Error, Failure, Model};
use known::Refusals;
use leave_out::leave_out;
use parts::{Part, parts};

/// How often a request is repeated. Each repetition leaves out other parts.
pub(crate) const MOST_REPEATS: usize = 3;
/// The statuses with which servers refuse a part. Some servers report it as their own failure.
const STATUSES: &[u16] = &[400, 404, 413, 415, 422, 500];

/// Leaves out the parts that this model's provider has refused before.
pub(crate) fn apply(refusals: &Refusals, model: &Model, body: &mut Value) {
    let known = refusals.all();
    if known.is_empty() {
        return;
    }
    let refused = parts(model.protocol, body).into_iter();
    let refused: Vec<Part> = refused.filter(|part| known.contains(&key(model, body, part))).collect();
    if !refused.is_empty() {
        leave_out(model.protocol, body, &refused);
    }
}

/// Leaves out the parts that an error names. Returns false if it names none, so that repeating is useless.
pub(crate) fn repair(refusals: &Refusals, model: &Model, body: &mut Value, error: &Error) -> bool {
    let failure = error.failure();
    let is_refusal = match error {
        Error::Rejected { .. } | Error::Busy { .. } => {
            failure.status.is_some_and(|status| STATUSES.contains(&status))
        }
        Error::Overflow { .. } | Error::Auth { .. } => false,
    };
    if !is_refusal {
        return false;
    }
    let text = text_of(failure);
    if named::forbids_thinking(&text) && remove_thinking(body) {
        return true;
    }
    let all = parts(model.protocol, body);
    let mut refused = named::refused(&text, body, &all);
    if matches!(error, Error::Busy { .. }) {
        // A failing server is asked again, unless it clearly cannot read a file.
        refused.retain(|part| part.kind.is_file() && text.contains("support"));
    }
    if refused.is_empty() {
        return false;
    }
    refusals.add(refused.iter().map(|part| key(model, body, part)).collect());
    leave_out(model.protocol, body, &refused);
    true
}

/// Returns the text of an error, with the field that some servers name apart from the message.
fn text_of(failure: &Failure) -> String {
    let body: Option<Value> = failure.body.as_deref().and_then(|body| serde_json::from_str(body).ok());
    let param = body.as_ref().and_then(|body| body.pointer("/error/param")?.as_str());
    format!("{} {}", failure.message, param.unwrap_or_default())
}

/// Returns what identifies a part in later requests.
fn key(model: &Model, body: &Value, part: &Part) -> String {
    let content = body.pointer(&part.pointer).map(without_marks).unwrap_or_default();
    let hash = crate::aws::sign::sha256_hex(content.to_string().as_bytes());
    format!("{} {} {hash}", model.provider_id, model.api_id)
}

/// Marks for the cache move from request to request.
fn without_marks(value: &Value) -> Value {
    match value {
        Value::Object(fields) if fields.contains_key("cache_control") => {
            let mut fields = fields.clone();
            fields.shift_remove("cache_control");
            Value::Object(fields)
        }
        other => other.clone(),
    }
}

fn remove_thinking(body: &mut Value) -> bool {
    let fields = body.as_object_mut();
    fields.is_some_and(|fields| fields.shift_remove("thinking").is_some())
}

#[cfg(test)]
mod tests;
