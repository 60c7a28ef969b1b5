//! Continues after a provider refused a part of a request.
//!
//! The part that the error names is left out with a note for the model, and the request is sent again. The refused parts
//! are remembered, so that the next requests of the session do not contain them either. The stored messages stay as they
//! are: another model may accept them.

pub(crate) mod known;
mod leave_out;
mod named;
mod parts;

use serde_json::Value;

use crate::protocol::gemini::request::sign_contents;
use crate::{Error, Failure, Model, Protocol};
use known::Refusals;
use leave_out::leave_out;
use parts::{Part, parts};

/// How often a request is repeated. Each repetition leaves out other parts.
pub(crate) const MOST_REPEATS: usize = 3;
/// The field for the thoughts of an answer.
const REASONING: &str = "reasoning_content";
/// The fact that a provider wants thoughts in each answer.
const REASONING_IS_MISSING: &str = "reasoning is missing";
/// The statuses with which servers refuse a part. Some servers report it as their own failure.
const STATUSES: &[u16] = &[400, 404, 413, 415, 422, 500];

/// The requests of a session to a model, and what was refused of them.
pub(crate) struct Scope<'a> {
    pub(crate) refusals: &'a Refusals,
    pub(crate) model: &'a Model,
    /// The session's id, or an empty text.
    pub(crate) session: &'a str,
}

impl Scope<'_> {
    /// Leaves out the parts that this model's provider has refused before.
    pub(crate) fn apply(&self, body: &mut Value) {
        if self.refusals.is_empty() {
            return;
        }
        let protocol = self.model.protocol;
        let keys = [Some(self.key(REASONING_IS_MISSING)), self.turn_key(body)];
        let known: Vec<bool> =
            keys.iter().map(|key| key.as_ref().is_some_and(|key| self.is_known(key))).collect();
        if known[0] {
            add_reasoning(protocol, body);
        }
        if known[1] {
            remove_thinking(body);
        }
        let all = parts(protocol, body);
        let keys: Vec<String> = all.iter().map(|part| self.part_key(body, part)).collect();
        let known = self.refusals.known(&keys);
        let refused = all.into_iter().zip(known).filter(|(_, is_known)| *is_known);
        let refused: Vec<Part> = refused.map(|(part, _)| part).collect();
        if !refused.is_empty() {
            self.leave_out(body, &refused);
        }
    }

    /// Leaves out the parts that an error names. Returns false if it names none, so that repeating is useless.
    pub(crate) fn repair(&self, body: &mut Value, error: &Error) -> bool {
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
            self.refusals.add(self.turn_key(body).into_iter().collect());
            return true;
        }
        if named::wants_reasoning(&text) && add_reasoning(self.model.protocol, body) {
            self.refusals.add(vec![self.key(REASONING_IS_MISSING)]);
            return true;
        }
        let all = parts(self.model.protocol, body);
        let mut refused = named::refused(&text, body, &all);
        if matches!(error, Error::Busy { .. }) {
            // A failing server is asked again, unless it clearly cannot read a file.
            refused.retain(|part| part.kind.is_file() && text.contains("support"));
        }
        if refused.is_empty() {
            return false;
        }
        self.refusals.add(refused.iter().map(|part| self.part_key(body, part)).collect());
        self.leave_out(body, &refused);
        true
    }

    fn leave_out(&self, body: &mut Value, refused: &[Part]) {
        leave_out(self.model.protocol, body, refused);
        if self.model.protocol == Protocol::Gemini {
            sign_contents(body, self.model);
        }
    }

    fn is_known(&self, key: &String) -> bool {
        self.refusals.known(std::slice::from_ref(key)) == [true]
    }

    /// Returns what identifies a fact about this model in this session.
    fn key(&self, about: &str) -> String {
        let Model { provider_id, api_id, .. } = self.model;
        let text = [self.session, provider_id, api_id, about].join("\0");
        crate::aws::sign::sha256_hex(text.as_bytes())
    }

    /// Returns what identifies a part in later requests.
    fn part_key(&self, body: &Value, part: &Part) -> String {
        self.key(&body.pointer(&part.pointer).map(without_marks).unwrap_or_default().to_string())
    }

    /// Returns what identifies the current turn, by its first answer.
    fn turn_key(&self, body: &Value) -> Option<String> {
        let messages = body["messages"].as_array()?;
        let is_result = |block: &Value| block["type"] == "tool_result";
        let is_prompt = |message: &Value| {
            let has_other = |blocks: &Vec<Value>| !blocks.iter().all(is_result);
            message["role"] == "user" && message["content"].as_array().is_none_or(has_other)
        };
        let prompt = messages.iter().rposition(is_prompt)?;
        let first = messages[prompt..].iter().find(|message| message["role"] == "assistant")?;
        let blocks: Value = first["content"].as_array()?.iter().map(without_marks).collect();
        Some(self.key(&format!("thinking {blocks}")))
    }
}

/// Returns the text of an error, with the field that some servers name apart from the message.
fn text_of(failure: &Failure) -> String {
    let body: Option<Value> = failure.body.as_deref().and_then(|body| serde_json::from_str(body).ok());
    let param = body.as_ref().and_then(|body| body.pointer("/error/param")?.as_str());
    format!("{} {}", failure.message, param.unwrap_or_default())
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

/// Adds reasoning to the answers without any. A server that wants it counts an empty text as missing.
fn add_reasoning(protocol: Protocol, body: &mut Value) -> bool {
    if protocol != Protocol::OpenAiChat {
        return false;
    }
    let mut is_changed = false;
    for message in body["messages"].as_array_mut().into_iter().flatten() {
        let Some(fields) = message.as_object_mut() else { continue };
        if fields.get("role").is_none_or(|role| role != "assistant") {
            continue;
        }
        let is_text = |value: &Value| value.as_str().is_some_and(|text| !text.is_empty());
        if !fields.get(REASONING).is_some_and(is_text) {
            let thought = fields.get("reasoning").filter(|value| is_text(value)).cloned();
            fields.insert(REASONING.to_owned(), thought.unwrap_or_else(|| " ".into()));
            is_changed = true;
        }
    }
    is_changed
}

#[cfg(test)]
mod tests;
