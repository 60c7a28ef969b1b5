//! The moments of a turn with their values: what an extension receives, and what of its answer is used.
//!
//! Ids, owners and times of stored values stay as they are. A value that does not fit its type is reported, and the one
//! before it is used.

use std::path::Path;

use codewright_llm::ToolSpec;
use codewright_proto::{
    Action, Message, MessageId, MessageWithParts, Part, PartBody, PartId, PartInput, PermissionRequest,
    SessionId, TextPart, UserMessage,
};
use codewright_tools::{Attachment, Output};
use serde::de::DeserializeOwned;
use serde::{Deserialize as _, Serialize};
use serde_json::{Value, json};

use super::messages::{self, to_json};
use super::{Admit, Answer, Extensions, Moment};
use crate::address::Address;

/// The characters of a refusal that the model or the user receives.
const MAX_REASON_CHARS: usize = 4000;
/// The bytes of text that extensions may add at one moment.
const MAX_CONTEXT_BYTES: usize = 256 * 1024;

/// The tool call that an extension is told about.
#[derive(Clone, Copy)]
pub(crate) struct ToolCall<'a> {
    pub(crate) tool: &'a str,
    pub(crate) session: &'a SessionId,
    pub(crate) call_id: &'a str,
}

impl ToolCall<'_> {
    fn json(self) -> Value {
        json!({ "tool": self.tool, "sessionID": self.session, "callID": self.call_id })
    }
}

/// The rights of a process, compared with those of the plugins of a repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rights {
    /// The same: both have the sandbox of commands, or the user has chosen none.
    Own,
    /// More. Variables such as `BASH_ENV` and `PATH` would run code of the repository with them.
    More,
}

/// The place of a text.
#[derive(Clone, Copy)]
pub(crate) struct TextOf<'a> {
    pub(crate) session: &'a SessionId,
    pub(crate) message: &'a MessageId,
    pub(crate) part: &'a PartId,
}

/// Parts of a prompt that are not stored yet.
pub(crate) type NewParts = Vec<(Option<PartId>, PartBody)>;

/// What an extension changed about a summary.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct SummaryWishes {
    /// Texts that are added to the request for the summary.
    pub(crate) context: Vec<String>,
    /// A text that replaces the request for the summary.
    pub(crate) prompt: Option<String>,
}

impl Extensions {
    /// Calls `chat.message` for a prompt, and `session.start` before the first one. `parts` need ids.
    ///
    /// # Errors
    ///
    /// Fails with the reason if an extension refuses the prompt.
    pub(crate) async fn chat_message(
        &self,
        chosen_id: Option<&MessageId>,
        message: UserMessage,
        parts: Vec<Part>,
    ) -> Result<(UserMessage, NewParts), String> {
        let mut context = self.session_start(&message.session_id).await;
        let own: NewParts = parts.iter().map(|part| (Some(part.id.clone()), part.body.clone())).collect();
        if !self.take(Moment::ChatMessage) {
            return Ok((message, with_context(own, context)));
        }
        let mut input = json!({
            "sessionID": message.session_id,
            "agent": message.agent,
            "model": { "providerID": message.model.provider_id, "modelID": message.model.model_id },
        });
        set(&mut input, "messageID", chosen_id);
        set(&mut input, "variant", message.model.variant.as_ref());
        let info = Message::User(message.clone());
        let output = json!({ "message": to_json(&info), "parts": to_json(&parts) });
        let mut answer = self.call(Moment::ChatMessage, input, output).await;
        if let Some(reason) = answer.refusal {
            return Err(shortened(&reason));
        }
        context.extend(answer.context);
        let parts = self.parts(Moment::ChatMessage, &answer.output["parts"]).unwrap_or(own);
        let mut changed = answer.output["message"].take();
        let known = to_json(&info);
        for key in ["id", "sessionID", "time", "role"] {
            set(&mut changed, key, Some(&known[key]));
        }
        let message = match self.read(Moment::ChatMessage, &changed) {
            Some(Message::User(changed)) => changed,
            Some(Message::Assistant(_)) | None => message,
        };
        Ok((message, with_context(parts, context)))
    }

    /// Calls `tool.definition` for each definition that `is_ours` selects.
    pub(crate) async fn tool_definitions(&self, specs: &mut [ToolSpec], is_ours: impl Fn(&str) -> bool) {
        if !self.take(Moment::ToolDefinition) {
            return;
        }
        for spec in specs.iter_mut().filter(|spec| is_ours(&spec.name)) {
            let output = json!({
                "description": spec.description,
                "parameters": spec.parameters,
                "jsonSchema": spec.parameters,
            });
            let answer = self.call(Moment::ToolDefinition, json!({ "toolID": spec.name }), output).await;
            let mut output = answer.output;
            if let Some(description) = output["description"].as_str() {
                description.clone_into(&mut spec.description);
            }
            let changed = ["jsonSchema", "parameters"].map(|key| output[key].take());
            let is_schema = |schema: &&Value| schema.is_object() && **schema != spec.parameters;
            if let Some(schema) = changed.iter().find(is_schema) {
                spec.parameters = schema.clone();
            }
        }
    }

    /// Calls `experimental.chat.messages.transform` for the messages of a request.
    pub(crate) async fn messages(&self, messages: Vec<MessageWithParts>) -> Vec<MessageWithParts> {
        let output = json!({ "messages": to_json(&messages) });
        let answer = self.call(Moment::Messages, json!({}), output).await;
        let Some(changed) = answer.output["messages"].as_array() else { return messages };
        let (read, ignored) = messages::read(&messages, changed);
        if let Some(ignored) = ignored {
            self.reject(Moment::Messages, ignored);
        }
        read
    }

    /// Calls `tool.execute.before`. Returns the arguments.
    ///
    /// # Errors
    ///
    /// Fails with the reason if an extension refuses the call.
    pub(crate) async fn tool_before(&self, call: ToolCall<'_>, args: Value) -> Result<Value, String> {
        if !self.take(Moment::ToolBefore) {
            return Ok(args);
        }
        let answer = self.call(Moment::ToolBefore, call.json(), json!({ "args": args })).await;
        match answer {
            Answer { refusal: Some(reason), .. } => Err(shortened(&reason)),
            Answer { mut output, .. } => {
                let changed = output["args"].take();
                Ok(if changed.is_null() { args } else { changed })
            }
        }
    }

    /// Calls `tool.execute.after` for a call that succeeded.
    pub(crate) async fn tool_after(&self, call: ToolCall<'_>, args: &Value, output: Output) -> Output {
        if !self.take(Moment::ToolAfter) {
            return output;
        }
        let mut input = call.json();
        set(&mut input, "args", Some(args));
        let mut given =
            json!({ "title": output.title, "metadata": output.metadata, "output": output.output });
        if !output.attachments.is_empty() {
            given["attachments"] = output.attachments.iter().map(attachment_json).collect();
        }
        let Answer { output: mut changed, context, .. } = self.call(Moment::ToolAfter, input, given).await;
        let text = |value: &Value, before: String| value.as_str().map_or(before, str::to_owned);
        let attachments = match changed["attachments"].as_array() {
            Some(files) => files.iter().filter_map(attachment).collect(),
            None => output.attachments,
        };
        let mut after = Output {
            title: text(&changed["title"], output.title),
            output: text(&changed["output"], output.output),
            metadata: match changed["metadata"].take() {
                Value::Object(metadata) => metadata,
                _ => output.metadata,
            },
            attachments,
        };
        for added in bounded(context) {
            after.output.push_str("\n\n");
            after.output.push_str(&added);
        }
        after
    }

    /// Calls `shell.env`. Returns the variables that extensions add to a process with these rights.
    pub(crate) async fn shell_env(
        &self,
        cwd: &Path,
        session: Option<&SessionId>,
        call_id: Option<&str>,
        rights: Rights,
    ) -> Vec<(String, String)> {
        if !self.take(Moment::ShellEnv) {
            return Vec::new();
        }
        let mut input = json!({ "cwd": cwd });
        set(&mut input, "sessionID", session);
        set(&mut input, "callID", call_id);
        let ignore = |before: &Value, _| before.clone();
        let admit: Option<&Admit<'_>> = match rights {
            Rights::Own => None,
            Rights::More => Some(&ignore),
        };
        let answer = self.call_limited(Moment::ShellEnv, input, json!({ "env": {} }), admit).await;
        let env = answer.output["env"].as_object().into_iter().flatten();
        let is_name = |name: &str| !name.is_empty() && !name.contains(['=', '\0']);
        env.filter_map(|(name, value)| Some((name.clone(), scalar(value)?)))
            .filter(|(name, value)| is_name(name) && !value.contains('\0'))
            .collect()
    }

    /// Calls `command.execute.before` for the parts of a command's prompt.
    ///
    /// # Errors
    ///
    /// Fails with the reason if an extension refuses the command.
    pub(crate) async fn command_before(
        &self,
        session: &SessionId,
        command: [&str; 2],
        parts: Vec<PartInput>,
    ) -> Result<Vec<PartInput>, String> {
        if !self.take(Moment::CommandBefore) {
            return Ok(parts);
        }
        let [name, arguments] = command;
        let input = json!({ "command": name, "sessionID": session, "arguments": arguments });
        let output = json!({ "parts": to_json(&parts) });
        let admit = |before: &Value, after: Value| self.parts_of_repository(before, after);
        let answer = self.call_limited(Moment::CommandBefore, input, output, Some(&admit)).await;
        if let Some(reason) = answer.refusal {
            return Err(shortened(&reason));
        }
        let changed = self.read::<Vec<PartInput>>(Moment::CommandBefore, &answer.output["parts"]);
        let Some(changed) = changed else { return Ok(parts) };
        // The check of a file is not part of its JSON, so unchanged parts are used as they were.
        let known: Vec<Value> = parts.iter().map(to_json).collect();
        let own = |part: PartInput| {
            let json = to_json(&part);
            let at = known.iter().position(|known| *known == json);
            at.and_then(|at| parts.get(at).cloned()).unwrap_or(part)
        };
        Ok(changed.into_iter().map(own).collect())
    }

    /// Returns the parts that an extension of a repository may send: text, content, and parts that it received. The server
    /// reads files and runs agents with the rights of the user.
    fn parts_of_repository(&self, before: &Value, mut after: Value) -> Value {
        let known = before["parts"].as_array().map(Vec::as_slice).unwrap_or_default();
        let is_allowed = |part: &Value| known.contains(part) || is_content(part);
        if let Some(parts) = after["parts"].as_array_mut() {
            let count = parts.len();
            parts.retain(is_allowed);
            if parts.len() < count {
                let message = "a repository can only add text and `data:` files to a command".to_owned();
                self.reject(Moment::CommandBefore, message);
            }
        }
        after
    }

    /// Calls `experimental.text.complete` for a text that the model has finished.
    pub(crate) async fn text_complete(&self, of: TextOf<'_>, text: String) -> String {
        let input = json!({ "sessionID": of.session, "messageID": of.message, "partID": of.part });
        let mut answer = self.call(Moment::TextComplete, input, json!({ "text": text })).await;
        match answer.output["text"].take() {
            Value::String(changed) => changed,
            _ => text,
        }
    }

    /// Calls `compaction.before` and `experimental.session.compacting`.
    pub(crate) async fn compacting(&self, session: &SessionId, trigger: &str) -> SummaryWishes {
        let input = json!({ "sessionID": session });
        let about = json!({ "sessionID": session, "trigger": trigger });
        let before = self.call(Moment::BeforeCompaction, about, json!({})).await;
        let mut wishes = SummaryWishes { context: bounded(before.context), prompt: None };
        if self.take(Moment::Compacting) {
            let answer = self.call(Moment::Compacting, input, json!({ "context": [] })).await;
            let context = answer.output["context"].as_array().into_iter().flatten();
            let context = context.filter_map(Value::as_str).map(str::to_owned);
            wishes.context.extend(bounded(context.chain(answer.context).collect()));
            wishes.prompt = answer.output["prompt"].as_str().map(str::to_owned);
        }
        wishes
    }

    /// Calls `permission.ask` for a request that the rules decide as `action`. Returns the strictest answer: an
    /// extension cannot grant what the rules do not, except in the place of the user.
    pub(crate) async fn permission(&self, request: &PermissionRequest, action: Action) -> (Action, String) {
        if action == Action::Deny || !self.take(Moment::Permission) {
            return (action, String::new());
        }
        let mut input = to_json(request);
        input["type"] = request.permission.as_str().into();
        input["title"] = request.permission.as_str().into();
        let status = if action == Action::Allow { "allow" } else { "ask" };
        let answer = self.call(Moment::Permission, input, json!({ "status": status })).await;
        if let Some(reason) = answer.refusal {
            return (Action::Deny, shortened(&reason));
        }
        let wanted = match answer.output["status"].as_str() {
            Some("deny") => Action::Deny,
            Some("ask") if answer.grants && action == Action::Ask => Action::Allow,
            Some("ask") => Action::Ask,
            _ => action,
        };
        (wanted, String::new())
    }

    /// Calls `session.start` if it is the first prompt of a session in this process. Returns text for the model.
    async fn session_start(&self, session: &SessionId) -> Vec<String> {
        if !self.starts(session) {
            return Vec::new();
        }
        self.call(Moment::SessionStart, json!({ "sessionID": session }), json!({})).await.context
    }

    /// Calls `session.end` if `session.start` was called for a session.
    pub(crate) async fn session_end(&self, session: &SessionId, reason: &str) {
        if self.ends(session) {
            let input = json!({ "sessionID": session, "reason": reason });
            self.call(Moment::SessionEnd, input, json!({})).await;
        }
    }

    /// Calls `stop` when a run has nothing left to do, or `subagent.stop` for a subagent's session. Returns a text
    /// with which the model continues. `repeats` counts how often that has happened in this run.
    pub(crate) async fn stop(&self, moment: Moment, session: &SessionId, repeats: u32) -> Option<String> {
        let input = json!({ "sessionID": session, "repeats": repeats });
        let answer = self.call(moment, input, json!({})).await;
        answer.refusal.map(|reason| shortened(&reason))
    }

    /// Parses a value of an extension.
    fn read<T: DeserializeOwned>(&self, moment: Moment, value: &Value) -> Option<T> {
        match T::deserialize(value) {
            Ok(value) => Some(value),
            Err(error) => {
                self.reject(moment, format!("its changes for `{}` cannot be used: {error}", moment.name()));
                None
            }
        }
    }

    /// Parses the parts of a message. A part without a valid id gets a new one when it is stored.
    fn parts(&self, moment: Moment, value: &Value) -> Option<NewParts> {
        let part = |part: &Value| {
            let id = part["id"].as_str().and_then(|id| PartId::parse(id).ok());
            self.read::<PartBody>(moment, part).map(|body| (id, body))
        };
        value.as_array()?.iter().map(part).collect()
    }
}

/// Reports whether a part of a prompt is content, for which nothing is read.
fn is_content(part: &Value) -> bool {
    match PartInput::deserialize(part) {
        Ok(PartInput::Text { .. }) => true,
        Ok(PartInput::File { url, source: None, .. }) => matches!(Address::parse(&url), Ok(Address::Data(_))),
        Ok(PartInput::File { .. } | PartInput::Agent { .. } | PartInput::Subtask { .. }) | Err(_) => false,
    }
}

/// Returns parts with the texts that extensions added.
fn with_context(parts: NewParts, context: Vec<String>) -> NewParts {
    let added = bounded(context).into_iter().map(|text| {
        let text = TextPart { text: text.into(), synthetic: Some(true), ..TextPart::default() };
        (None, PartBody::Text(text))
    });
    parts.into_iter().chain(added).collect()
}

fn attachment_json(attachment: &Attachment) -> Value {
    let mut json = json!({ "type": "file", "mime": attachment.mime, "url": attachment.url });
    set(&mut json, "filename", attachment.filename.as_ref());
    json
}

pub(crate) fn attachment(json: &Value) -> Option<Attachment> {
    let text = |key: &str| json[key].as_str().map(str::to_owned);
    // Only content that is already here: an address would be fetched by the provider.
    let url = text("url").filter(|url| url.starts_with("data:"))?;
    Some(Attachment { mime: text("mime")?, url, filename: text("filename") })
}

/// Returns the texts that fit together into the limit.
fn bounded(texts: Vec<String>) -> Vec<String> {
    let mut bytes = 0;
    let fits = |text: &String| {
        bytes += text.len();
        bytes <= MAX_CONTEXT_BYTES
    };
    texts.into_iter().filter(|text| !text.trim().is_empty()).take_while(fits).collect()
}

fn shortened(reason: &str) -> String {
    reason.chars().take(MAX_REASON_CHARS).collect()
}

/// The text of a text, a number or a flag. Plugins are programs without types, so the texts of headers and variables are
/// often numbers.
pub(super) fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// Sets a field if there is a value.
fn set(object: &mut Value, key: &str, value: Option<impl Serialize>) {
    if let (Some(value), Some(object)) = (value, object.as_object_mut()) {
        object.insert(key.to_owned(), to_json(&value));
    }
}
