//! The moments of a request to a model: system text, parameters and headers.

use codewright_llm::{Model, Request};
use codewright_proto::{Message, SessionId, UserMessage};
use serde_json::{Map, Value, json};

use super::messages::to_json;
use super::moments::scalar;
use super::{Extensions, Moment};
use crate::models::Models;

/// The text between joined pieces of the system text.
const SEPARATOR: &str = "\n";
/// The characters of a header's name that a message quotes.
const MAX_NAME_CHARS: usize = 100;

/// The facts about a request that extensions receive.
#[derive(Clone, Copy)]
pub(crate) struct About<'a> {
    pub(crate) session: &'a SessionId,
    pub(crate) agent: &'a str,
    pub(crate) models: &'a Models,
    pub(crate) model: &'a Model,
    /// The prompt that the request answers.
    pub(crate) prompt: &'a UserMessage,
}

impl About<'_> {
    fn model_json(&self) -> Value {
        self.models.model_json(&self.model.provider_id, &self.model.id)
    }

    fn input(&self) -> Value {
        // Shown without keys: an extension of a repository receives it too.
        let provider = self.models.provider_json(&self.model.provider_id).unwrap_or_default();
        json!({
            "sessionID": self.session,
            "agent": self.agent,
            "model": self.model_json(),
            "provider": provider,
            "message": to_json(&Message::User(self.prompt.clone())),
        })
    }
}

impl Extensions {
    /// Calls the moments between the messages and the request: system text, parameters and headers, in this order.
    pub(crate) async fn model_request(&self, about: About<'_>, request: &mut Request) {
        if self.take(Moment::System) {
            self.system(about, request).await;
        }
        if self.take(Moment::ChatParams) {
            self.parameters(about, request).await;
        }
        if self.take(Moment::ChatHeaders) {
            self.headers(about, request).await;
        }
    }

    /// Calls `experimental.chat.system.transform`.
    async fn system(&self, about: About<'_>, request: &mut Request) {
        let input = json!({ "sessionID": about.session, "model": about.model_json() });
        let output = json!({ "system": system(request) });
        let answer = self.call(Moment::System, input, output).await;
        set_system(request, &answer.output["system"]);
    }

    /// Calls `chat.params`.
    async fn parameters(&self, about: About<'_>, request: &mut Request) {
        let mut output = Map::new();
        output.extend(request.temperature.map(|value| ("temperature".to_owned(), json!(value))));
        output.extend(request.top_p.map(|value| ("topP".to_owned(), json!(value))));
        output.insert("maxOutputTokens".to_owned(), json!(request.max_output_tokens));
        output.insert("options".to_owned(), Value::Object(request.options.clone()));
        let mut output = self.call(Moment::ChatParams, about.input(), Value::Object(output)).await.output;
        // A plugin that removes a value leaves the choice to the provider.
        request.temperature = output["temperature"].as_f64();
        request.top_p = output["topP"].as_f64();
        request.max_output_tokens = match &output["maxOutputTokens"] {
            Value::Null => 0,
            tokens => tokens.as_u64().unwrap_or(request.max_output_tokens),
        };
        if let Value::Object(options) = output["options"].take() {
            request.options = options;
        }
        if let Some(top_k) = output["topK"].as_u64() {
            request.options.insert("top_k".to_owned(), top_k.into());
        }
        set_system(request, &output["system"]);
    }

    /// Calls `chat.headers`.
    async fn headers(&self, about: About<'_>, request: &mut Request) {
        let answer = self.call(Moment::ChatHeaders, about.input(), json!({ "headers": {} })).await;
        for (name, value) in answer.output["headers"].as_object().into_iter().flatten() {
            let Some(value) = scalar(value) else { continue };
            if !is_header(name, &value) {
                let quoted: String = name.chars().take(MAX_NAME_CHARS).collect();
                let message =
                    format!("the header {quoted:?} is left out, because its name or value is invalid");
                self.reject(Moment::ChatHeaders, message);
                continue;
            }
            request.headers.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
            request.headers.push((name.clone(), value));
        }
    }

    /// Calls `experimental.provider.small_model` for a provider. Returns the provider and the model that an extension
    /// chose for small work.
    pub(crate) async fn small_model(&self, models: &Models, provider_id: &str) -> Option<(String, String)> {
        if !self.take(Moment::SmallModel) {
            return None;
        }
        let provider = models.provider_json(provider_id).ok()?;
        let answer = self.call(Moment::SmallModel, json!({ "provider": provider }), json!({})).await;
        let model = &answer.output["model"];
        let id = model["id"].as_str()?.to_owned();
        Some((model["providerID"].as_str().unwrap_or(provider_id).to_owned(), id))
    }

    /// Calls `experimental.compaction.autocontinue`. Returns whether the model continues after a summary.
    pub(crate) async fn auto_continue(&self, about: About<'_>, overflow: Overflow) -> bool {
        if !self.take(Moment::AutoContinue) {
            return true;
        }
        let mut input = about.input();
        input["overflow"] = (overflow == Overflow::Yes).into();
        let answer = self.call(Moment::AutoContinue, input, json!({ "enabled": true })).await;
        answer.output["enabled"].as_bool().unwrap_or(true)
    }
}

/// Reports whether a header can be sent. One that cannot would make every request fail.
fn is_header(name: &str, value: &str) -> bool {
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    let is_visible = |byte: u8| byte == b'\t' || byte == b' ' || byte.is_ascii_graphic();
    !name.is_empty() && name.bytes().all(is_token) && value.bytes().all(is_visible)
}

/// Whether a provider had refused a request as too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Overflow {
    Yes,
    No,
}

/// Returns the pieces of the system text.
fn system(request: &Request) -> Vec<&str> {
    [&request.system].into_iter().chain(&request.more_system).map(String::as_str).collect()
}

/// Sets the pieces of the system text. A list without text changes nothing.
///
/// If the first piece is unchanged, the others become one, so that a provider that caches the pieces sees at most two.
fn set_system(request: &mut Request, changed: &Value) {
    let Some(changed) = changed.as_array() else { return };
    if !changed.iter().any(|piece| piece.as_str().is_some_and(|text| !text.is_empty())) {
        return;
    }
    let pieces: Vec<String> = changed.iter().filter_map(scalar).filter(|piece| !piece.is_empty()).collect();
    let Some((first, rest)) = pieces.split_first() else { return };
    request.more_system =
        if *first == request.system && rest.len() > 1 { vec![rest.join(SEPARATOR)] } else { rest.to_vec() };
    request.system.clone_from(first);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(changed: Value, expected: &[&str]) {
        let mut request = Request { system: "base".to_owned(), ..Request::default() };
        set_system(&mut request, &changed);
        assert_eq!(system(&request), expected, "{changed}");
    }

    #[test]
    fn an_unchanged_beginning_leaves_at_most_two_pieces() {
        check(json!(["base"]), &["base"]);
        check(json!(["base", "a"]), &["base", "a"]);
        check(json!(["base", "a", "b"]), &["base", "a\nb"]);
        check(json!(["new", "a", "b"]), &["new", "a", "b"]);
        check(json!(["base", 5, null, "b"]), &["base", "5\nb"]);
    }

    #[test]
    fn only_headers_that_http_allows_are_sent() {
        for (name, value, expected) in [
            ("x-note", "a b\tc", true),
            ("x-note", "", true),
            ("x-note", "a\nb", false),
            ("x-note", "\u{fc}", false),
            ("x note", "a", false),
            ("", "a", false),
        ] {
            assert_eq!(is_header(name, value), expected, "{name:?} {value:?}");
        }
    }

    #[test]
    fn a_list_without_text_changes_nothing() {
        for changed in [json!([]), json!([""]), json!([1, null]), json!("x"), Value::Null] {
            check(changed, &["base"]);
        }
    }
}
