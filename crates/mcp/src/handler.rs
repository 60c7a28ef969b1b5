//! Answers the requests of a server: its questions to the user, and where it may work.
//!
//! A server can send any number of requests and messages. At most one question per server is open, and a limited number
//! of lines is logged. Requests for answers of the model (sampling) are refused unless the configuration permits them.

#![expect(deprecated, reason = "servers still use roots and logging, which the newest protocol drops")]

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rmcp::ClientHandler;
use rmcp::model::{
    ClientCapabilities, ClientConfig, CreateMessageRequestMethod, CreateMessageRequestParams,
    CreateMessageResult, ElicitRequestParams, ElicitResult, ElicitationAction, ErrorData, Implementation,
    ListRootsResult, LoggingMessageNotificationParam, ProgressNotificationParam, ProgressToken,
    ProtocolVersion, Root,
};
use rmcp::service::{NotificationContext, RequestContext, RoleClient};
use serde_json::{Map, Value};
use tokio::sync::{Notify, watch};
use url::Url;

use crate::config::Config;
use crate::error::cut;
use crate::host::Host;
use crate::sampling;

/// The limit of log lines of a connection.
const MAX_LOG_LINES: usize = 200;
/// The limit of values in one question.
const MAX_FIELDS: usize = 20;
/// The limit of choices of a value.
const MAX_CHOICES: usize = 50;

/// A question of a server to the user.
#[derive(Debug, Clone, PartialEq)]
pub struct Elicitation {
    pub message: String,
    /// The values that it asks for. Without any, it asks for consent.
    pub fields: Vec<Field>,
    /// The address that the user should open.
    pub url: Option<String>,
}

/// A value that a server asks for.
#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    pub name: String,
    pub title: String,
    pub description: String,
    pub is_required: bool,
    pub kind: FieldKind,
}

/// The kind of a value.
#[derive(Debug, Clone, PartialEq)]
pub enum FieldKind {
    Text,
    Number,
    Switch,
    /// One of these values, each with its title.
    Choice(Vec<(Value, String)>),
}

/// The user's reply to a server.
#[derive(Debug, Clone, PartialEq)]
pub enum ElicitReply {
    Accepted(Map<String, Value>),
    Declined,
    /// There is no user to ask, or the user closed the question.
    Cancelled,
}

/// The progress of a request: the last message, and a number that grows with each.
pub(crate) type Progress = watch::Sender<(u64, Option<String>)>;

/// What a connection and its handler share.
pub(crate) struct Session {
    pub(crate) server: Arc<str>,
    pub(crate) host: Arc<dyn Host>,
    /// Notified when the server changed its tools, prompts or resources.
    pub(crate) changed: Notify,
    progress: Mutex<HashMap<ProgressToken, Progress>>,
    lines: AtomicUsize,
    is_asking: AtomicBool,
    can_sample: bool,
}

impl Session {
    pub(crate) fn new(server: Arc<str>, host: Arc<dyn Host>, config: &Config) -> Self {
        Self {
            server,
            host,
            changed: Notify::new(),
            progress: Mutex::default(),
            lines: AtomicUsize::new(0),
            is_asking: AtomicBool::new(false),
            can_sample: config.can_sample,
        }
    }

    /// Logs a line, unless the server logged too many already.
    pub(crate) fn log(&self, text: &str) {
        match self.lines.fetch_add(1, Ordering::Relaxed) {
            lines if lines < MAX_LOG_LINES => self.host.log(&self.server, &cut(text)),
            MAX_LOG_LINES => self.host.log(&self.server, "further messages of the server are not logged"),
            _ => {}
        }
    }

    /// Follows the progress of a request until the receiver is given back to [`Self::unfollow`].
    pub(crate) fn follow(&self, token: ProgressToken) -> watch::Receiver<(u64, Option<String>)> {
        let (sender, receiver) = watch::channel((0, None));
        self.progress.lock().unwrap_or_else(PoisonError::into_inner).insert(token, sender);
        receiver
    }

    pub(crate) fn unfollow(&self, token: &ProgressToken) {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner).remove(token);
    }
}

/// The handler of one connection.
#[derive(Clone)]
pub(crate) struct Handler(pub(crate) Arc<Session>);

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        let (name, version) = self.0.host.client();
        let mut capabilities = ClientCapabilities::default();
        capabilities.roots = Some(rmcp::model::RootsCapabilities::default());
        capabilities.elicitation = Some(rmcp::model::ElicitationCapability::default());
        if self.0.can_sample {
            capabilities.sampling = Some(rmcp::model::SamplingCapability::default());
        }
        let client = Implementation::new(name, version);
        ClientConfig::new(capabilities, client).with_protocol_version(ProtocolVersion::V_2025_11_25)
    }

    async fn list_roots(&self, _: RequestContext<RoleClient>) -> Result<ListRootsResult, ErrorData> {
        let roots = self.0.host.roots();
        let roots = roots.iter().filter_map(|root| Url::from_directory_path(root).ok());
        let text = |url: Url| Root::new(url.as_str().trim_end_matches('/').to_owned());
        Ok(ListRootsResult::new(roots.map(text).collect()))
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let asked = match request {
            ElicitRequestParams::FormElicitationParams { message, requested_schema, .. } => {
                let schema = serde_json::to_value(requested_schema).unwrap_or_default();
                Elicitation { message, fields: fields(&schema), url: None }
            }
            ElicitRequestParams::UrlElicitationParams { message, url, .. } => {
                Elicitation { message, fields: Vec::new(), url: Some(url) }
            }
            _ => return Ok(ElicitResult::new(ElicitationAction::Decline)),
        };
        // One question at a time, so that a server cannot flood the user.
        if self.0.is_asking.swap(true, Ordering::AcqRel) {
            return Ok(ElicitResult::new(ElicitationAction::Cancel));
        }
        let reply = context.ct.run_until_cancelled(self.0.host.elicit(&self.0.server, asked)).await;
        self.0.is_asking.store(false, Ordering::Release);
        Ok(match reply.unwrap_or(ElicitReply::Cancelled) {
            ElicitReply::Accepted(content) => {
                ElicitResult::new(ElicitationAction::Accept).with_content(Value::Object(content))
            }
            ElicitReply::Declined => ElicitResult::new(ElicitationAction::Decline),
            ElicitReply::Cancelled => ElicitResult::new(ElicitationAction::Cancel),
        })
    }

    async fn create_message(
        &self,
        params: CreateMessageRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        if !self.0.can_sample {
            return Err(ErrorData::method_not_found::<CreateMessageRequestMethod>());
        }
        let refuse = |reason: String| ErrorData::invalid_request(reason, None);
        let wanted = sampling::read(params).map_err(refuse)?;
        if self.0.is_asking.swap(true, Ordering::AcqRel) {
            return Err(refuse("another request waits for the user".to_owned()));
        }
        let answer = context.ct.run_until_cancelled(self.0.host.sample(&self.0.server, wanted)).await;
        self.0.is_asking.store(false, Ordering::Release);
        let answer = answer.unwrap_or_else(|| Err("the request was cancelled".to_owned()));
        answer.map(sampling::result).map_err(refuse)
    }

    async fn on_progress(&self, params: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        let progress = self.0.progress.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(sender) = progress.get(&params.progress_token) else { return };
        let share = params.total.filter(|total| *total > 0.0).map(|total| params.progress / total * 100.0);
        let text = match (params.message, share) {
            (Some(message), _) => Some(cut(&message)),
            (None, Some(percent)) => Some(format!("{:.0} %", percent.clamp(0.0, 100.0))),
            (None, None) => None,
        };
        sender.send_modify(|(count, last)| {
            *count += 1;
            *last = text;
        });
    }

    async fn on_logging_message(
        &self,
        params: LoggingMessageNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        let text = match params.data {
            Value::String(text) => text,
            other => other.to_string(),
        };
        self.0.log(&text);
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.0.changed.notify_one();
    }

    async fn on_prompt_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.0.changed.notify_one();
    }

    async fn on_resource_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.0.changed.notify_one();
    }
}

/// The values that a schema describes.
fn fields(schema: &Value) -> Vec<Field> {
    let required: Vec<&str> = schema
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let properties = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
    let field = |(name, property): (&String, &Value)| {
        let text = |key: &str| property.get(key).and_then(Value::as_str).map(cut);
        let kind = match property.get("type").and_then(Value::as_str) {
            Some("boolean") => FieldKind::Switch,
            Some("number" | "integer") => FieldKind::Number,
            _ => choices(property).map_or(FieldKind::Text, FieldKind::Choice),
        };
        Field {
            name: name.clone(),
            title: text("title").unwrap_or_else(|| cut(name)),
            description: text("description").unwrap_or_default(),
            is_required: required.contains(&name.as_str()),
            kind,
        }
    };
    properties.take(MAX_FIELDS).map(field).collect()
}

fn choices(property: &Value) -> Option<Vec<(Value, String)>> {
    let titled = |value: &Value, title: Option<&str>| {
        let own = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        (value.clone(), cut(title.unwrap_or(&own)))
    };
    let listed = |key: &str| property.get(key).and_then(Value::as_array);
    let choices: Vec<_> = if let Some(values) = listed("enum") {
        let titles = listed("enumNames").map(Vec::as_slice).unwrap_or_default();
        let title = |at: usize| titles.get(at).and_then(Value::as_str);
        values.iter().enumerate().map(|(at, value)| titled(value, title(at))).collect()
    } else {
        let of = listed("oneOf").or_else(|| listed("anyOf"))?;
        let pairs = of.iter().filter_map(|one| Some((one.get("const")?, one.get("title")?.as_str())));
        pairs.map(|(value, title)| titled(value, title)).collect()
    };
    (!choices.is_empty() && choices.len() <= MAX_CHOICES).then_some(choices)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_schema_becomes_fields() {
        let fields = fields(&json!({"type": "object", "required": ["name"], "properties": {
            "name": {"type": "string", "title": "Your name"}, "age": {"type": "integer"}, "ok": {"type": "boolean"},
            "size": {"type": "string", "enum": ["s", "l"], "enumNames": ["Small", "Large"]}}}));
        let kinds: Vec<_> = fields.iter().map(|field| (field.title.as_str(), &field.kind)).collect();
        assert_eq!(
            kinds[..3],
            [("Your name", &FieldKind::Text), ("age", &FieldKind::Number), ("ok", &FieldKind::Switch)]
        );
        let choices = vec![(json!("s"), "Small".to_owned()), (json!("l"), "Large".to_owned())];
        assert_eq!(kinds[3].1, &FieldKind::Choice(choices));
        assert!(fields[0].is_required && !fields[1].is_required);
    }
}
