//! A copy of the server's data that the client displays, kept up to date by events.

use std::collections::{BTreeMap, HashMap, VecDeque};

use codewright_proto::{
    Event, Fact, Message, MessageError, MessageId, Notice, Part, PartBody, PermissionRequest,
    QuestionRequest, Rule, Session, SessionId, SessionStatus, Signal, Todo,
};
use serde::Deserialize;
use serde_json::Value;

use crate::progress::{Calls, call_title};
use crate::resource::Resource;
use crate::transcript::Transcript;

/// The maximum number of sessions whose messages are kept.
const MAX_TRANSCRIPTS: usize = 8;
/// The maximum number of notices that are kept during a fetch.
const MAX_RECENT: usize = 1_024;

/// The maximum number of answers whose retries are kept.
const MAX_RETRIED: usize = 256;
/// The maximum number of reasons of an answer.
const MAX_REASONS: usize = 20;
/// The maximum number of subagents whose calls are kept.
const MAX_PROGRESS: usize = 64;

/// An agent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub(crate) struct Agent {
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) description: Option<String>,
    #[serde(default)]
    pub(crate) mode: String,
    #[serde(default)]
    pub(crate) hidden: bool,
    /// The rules of the agent, the last of which that matches decides.
    #[serde(default)]
    pub(crate) permission: Vec<Rule>,
    #[serde(default)]
    pub(crate) native: bool,
    #[serde(default)]
    pub(crate) color: Option<String>,
    #[serde(default)]
    pub(crate) model: Option<AgentModel>,
}

/// The configured model of an agent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub(crate) struct AgentModel {
    #[serde(rename = "modelID")]
    pub(crate) model_id: String,
    #[serde(rename = "providerID")]
    pub(crate) provider_id: String,
}

/// A provider with its models.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Provider {
    pub(crate) id: String,
    pub(crate) name: String,
    /// Whether the provider accepts prompts without a key. It is used only if the user chooses it.
    pub(crate) is_public: bool,
    pub(crate) models: Vec<Model>,
}

/// A model.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Model {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) context: u64,
    /// Whether it calls tools, so that it can work as an agent.
    pub(crate) is_agentic: bool,
    pub(crate) is_free: bool,
    /// The dollars for a million tokens of input and of output.
    pub(crate) price: Option<(f64, f64)>,
    /// Whether it reads pictures; `None` if the server does not know.
    pub(crate) sees: Option<bool>,
    pub(crate) variants: Vec<String>,
}

/// A command of the server.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub(crate) struct Command {
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) description: Option<String>,
    #[serde(default)]
    pub(crate) source: Option<String>,
    /// Whether the command is built into the server.
    #[serde(default)]
    pub(crate) native: bool,
}

impl Command {
    /// Whether the command is in menus. The built-in skill with the name of another program runs if it is typed.
    pub(crate) fn is_offered(&self) -> bool {
        self.name != "customize-opencode"
    }
}

/// An MCP server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Mcp {
    pub(crate) name: String,
    /// The status of the API: `connected`, `disabled`, `failed`, `needs_auth`, …
    pub(crate) status: String,
    pub(crate) error: Option<String>,
}

/// A language server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Lsp {
    pub(crate) name: String,
    pub(crate) root: String,
    pub(crate) status: String,
    pub(crate) error: Option<String>,
}

/// The copied data.
#[derive(Debug, Default)]
pub(crate) struct Mirror {
    pub(crate) sessions: BTreeMap<SessionId, Session>,
    pub(crate) statuses: HashMap<SessionId, SessionStatus>,
    pub(crate) permissions: Vec<PermissionRequest>,
    pub(crate) questions: Vec<QuestionRequest>,
    pub(crate) todos: HashMap<SessionId, Vec<Todo>>,
    pub(crate) transcripts: HashMap<SessionId, Transcript>,
    /// The opened transcripts, most recent last.
    opened: Vec<SessionId>,
    pub(crate) agents: Vec<Agent>,
    pub(crate) providers: Vec<Provider>,
    pub(crate) defaults: BTreeMap<String, String>,
    /// The server's choice of a model for a prompt that names none; `None` if the server does not choose.
    pub(crate) server_model: Option<Option<(String, String)>>,
    /// Whether the server guessed the model, because the configuration names none.
    pub(crate) is_guess: bool,
    pub(crate) commands: Vec<Command>,
    /// Whether the server has reviews whose findings are a list.
    pub(crate) has_review: bool,
    pub(crate) mcp: Vec<Mcp>,
    /// The resources of the MCP servers. `None` if they were not fetched since the servers changed.
    pub(crate) resources: Option<Vec<Resource>>,
    pub(crate) lsp: Vec<Lsp>,
    /// The enabled formatters and their file extensions.
    pub(crate) formatters: Vec<(String, String)>,
    /// The state of the sandbox of commands, as names and values. Empty if it is not known.
    pub(crate) sandbox: Vec<(String, String)>,
    /// Whether commands have a sandbox, for the line of the prompt. `None` if it is not known.
    pub(crate) sandbox_label: Option<&'static str>,
    /// The size of the descriptions of the tools, if it was fetched.
    pub(crate) tool_bytes: Option<usize>,
    /// The reasons why requests were repeated, with the number of the attempt, by the answer.
    pub(crate) retries: HashMap<MessageId, Vec<(u32, String)>>,
    /// The calls of subagents, the oldest subagent first.
    calls: VecDeque<(SessionId, Calls)>,
    pub(crate) branch: Option<String>,
    pub(crate) directory: String,
    pub(crate) worktree: String,
    pub(crate) home: String,
    pub(crate) config: Value,
    /// Whether everything has been fetched once.
    pub(crate) ready: bool,
    /// The number of running fetches.
    fetching: usize,
    /// The notices that arrived during the fetches and are newer than their results, oldest first.
    recent: VecDeque<Notice>,
}

impl Mirror {
    /// Creates an empty mirror.
    pub(crate) fn new(directory: &str, home: &str) -> Self {
        Self { directory: directory.to_owned(), home: home.to_owned(), ..Self::default() }
    }

    /// Marks the start of a fetch. Notices that arrive from now on are newer than its result.
    pub(crate) fn begin_fetch(&mut self) {
        self.fetching += 1;
    }

    /// Marks the end of a fetch. Applies the notices that arrived during the fetch again.
    pub(crate) fn end_fetch(&mut self) {
        let recent = std::mem::take(&mut self.recent);
        for notice in &recent {
            self.apply_now(notice.clone());
        }
        self.fetching = self.fetching.saturating_sub(1);
        if self.fetching > 0 {
            self.recent = recent;
        }
    }

    /// Applies a notice.
    pub(crate) fn apply(&mut self, notice: Notice) {
        if self.fetching > 0 && is_fetched(&notice.fact) {
            self.recent.push_back(notice.clone());
            if self.recent.len() > MAX_RECENT {
                self.recent.pop_front();
            }
        }
        self.apply_now(notice);
    }

    fn apply_now(&mut self, notice: Notice) {
        match notice.fact {
            Fact::Event(event) => self.event(event),
            Fact::Signal(signal) => self.signal(signal),
        }
    }

    fn event(&mut self, event: Event) {
        match event {
            Event::SessionCreated { info, .. } | Event::SessionUpdated { info, .. } => self.put_session(info),
            Event::SessionDeleted { session_id, .. } => {
                self.sessions.remove(&session_id);
                self.transcripts.remove(&session_id);
                self.statuses.remove(&session_id);
                self.todos.remove(&session_id);
                self.permissions.retain(|request| request.session_id != session_id);
                self.questions.retain(|request| request.session_id != session_id);
            }
            Event::MessageUpdated { session_id, info } => {
                if let Some(transcript) = self.transcripts.get_mut(&session_id) {
                    transcript.update_message(info);
                }
            }
            Event::MessageRemoved { session_id, message_id } => {
                if let Some(transcript) = self.transcripts.get_mut(&session_id) {
                    transcript.remove_message(&message_id);
                }
            }
            Event::PartUpdated { session_id, part, .. } => {
                self.note_call(&session_id, &part);
                if let Some(transcript) = self.transcripts.get_mut(&session_id) {
                    transcript.update_part(part);
                }
            }
            Event::PartRemoved { session_id, message_id, part_id } => {
                if let Some(transcript) = self.transcripts.get_mut(&session_id) {
                    transcript.remove_part(&message_id, &part_id);
                }
            }
            Event::TodoUpdated { session_id, todos } => drop(self.todos.insert(session_id, todos)),
            Event::PermissionAsked(request) => {
                self.permissions.retain(|known| known.id != request.id);
                self.permissions.push(request);
            }
            Event::PermissionReplied { request_id, .. } => {
                self.permissions.retain(|request| request.id != request_id);
            }
        }
    }

    fn signal(&mut self, signal: Signal) {
        match signal {
            Signal::PartDelta { session_id, message_id, part_id, field, delta } if field == "text" => {
                if let Some(transcript) = self.transcripts.get_mut(&session_id) {
                    transcript.append(&message_id, &part_id, &delta);
                }
            }
            Signal::SessionStatus { session_id, status } => {
                self.note_retry(&session_id, &status);
                self.statuses.insert(session_id, status);
            }
            Signal::SessionIdle { session_id } => {
                self.statuses.remove(&session_id);
            }
            Signal::QuestionAsked(request) => {
                self.questions.retain(|known| known.id != request.id);
                self.questions.push(request);
            }
            Signal::QuestionReplied { request_id, .. } | Signal::QuestionRejected { request_id, .. } => {
                self.questions.retain(|request| request.id != request_id);
            }
            _ => {}
        }
    }

    /// Keeps the reason why a request is repeated, because the server only reports it while it waits.
    fn note_retry(&mut self, session: &SessionId, status: &SessionStatus) {
        let SessionStatus::Retry { attempt, message, .. } = status else { return };
        let transcript = self.transcripts.get(session);
        let entries = transcript.into_iter().flat_map(|transcript| transcript.entries.iter().rev());
        let answers = entries.filter_map(|entry| match &entry.info {
            Message::Assistant(answer) => Some(answer),
            Message::User(_) => None,
        });
        let Some(answer) = answers.into_iter().next() else { return };
        if self.retries.len() >= MAX_RETRIED && !self.retries.contains_key(&answer.id) {
            self.retries.clear();
        }
        let reasons = self.retries.entry(answer.id.clone()).or_default();
        let is_known = reasons.iter().any(|(known, _)| known == attempt);
        if !is_known && reasons.len() < MAX_REASONS {
            reasons.push((*attempt, crate::clean::clean_line(message)));
        }
    }

    /// Notes a call of a subagent.
    fn note_call(&mut self, session: &SessionId, part: &Part) {
        let PartBody::Tool(tool) = &part.body else { return };
        let is_child = self.sessions.get(session).is_some_and(|session| session.parent_id.is_some());
        if !is_child {
            return;
        }
        let title = call_title(tool, &self.directory);
        if let Some((_, calls)) = self.calls.iter_mut().find(|(known, _)| known == session) {
            return calls.add(&part.id, title);
        }
        let mut calls = Calls::default();
        calls.add(&part.id, title);
        self.calls.push_back((session.clone(), calls));
        if self.calls.len() > MAX_PROGRESS {
            self.calls.pop_front();
        }
    }

    /// Returns the calls of a subagent that events have told.
    pub(crate) fn progress(&self, session: &SessionId) -> Option<&Calls> {
        self.calls.iter().find(|(known, _)| known == session).map(|(_, calls)| calls)
    }

    /// Stores a session.
    pub(crate) fn put_session(&mut self, mut session: Session) {
        session.title = readable_title(&session.title).to_owned();
        if let Some(transcript) = self.transcripts.get_mut(&session.id) {
            transcript.end_before(session.revert.as_ref().map(|revert| &revert.message_id));
        }
        self.sessions.insert(session.id.clone(), session);
    }

    /// Adds a transcript for a session, and removes the one that was opened least recently.
    pub(crate) fn open(&mut self, id: &SessionId) {
        self.opened.retain(|opened| opened != id);
        self.opened.push(id.clone());
        self.transcripts.entry(id.clone()).or_default();
        while self.opened.len() > MAX_TRANSCRIPTS {
            let oldest = self.opened.remove(0);
            self.transcripts.remove(&oldest);
        }
    }

    /// Removes the transcripts of all sessions but one.
    pub(crate) fn close_others(&mut self, kept: Option<&SessionId>) {
        self.opened.retain(|id| Some(id) == kept);
        self.transcripts.retain(|id, _| Some(id) == kept);
        self.todos.retain(|id, _| Some(id) == kept);
    }

    /// Whether a session is busy.
    pub(crate) fn is_busy(&self, id: &SessionId) -> bool {
        self.statuses.get(id).is_some_and(|status| *status != SessionStatus::Idle)
    }

    /// Whether a session is `root` or was started by it, directly or through other sessions.
    pub(crate) fn is_below(&self, id: &SessionId, root: &SessionId) -> bool {
        let mut id = id.clone();
        for _ in 0..64 {
            if id == *root {
                return true;
            }
            let Some(parent) = self.sessions.get(&id).and_then(|session| session.parent_id.clone()) else {
                return false;
            };
            id = parent;
        }
        false
    }

    /// Returns the sessions that a session started, oldest first.
    pub(crate) fn children(&self, id: &SessionId) -> Vec<&Session> {
        let children = self.sessions.values().filter(|session| session.parent_id.as_ref() == Some(id));
        let mut children: Vec<&Session> = children.collect();
        children.sort_by_key(|session| session.time.created);
        children
    }

    pub(crate) fn model(&self, provider: &str, model: &str) -> Option<(&Provider, &Model)> {
        let provider = self.providers.iter().find(|known| known.id == provider)?;
        Some((provider, provider.models.iter().find(|known| known.id == model)?))
    }

    /// Stores the answer of `GET /command`. The built-in review is an action of the client, unless the user has another
    /// command of that name.
    pub(crate) fn put_commands(&mut self, mut commands: Vec<Command>) {
        let is_review = |command: &Command| command.native && command.name == "review";
        self.has_review = commands.iter().any(is_review);
        commands.retain(|command| !is_review(command));
        self.commands = commands;
    }

    /// Stores the answers of `GET /mcp`, `/lsp` and `/formatter`.
    pub(crate) fn put_servers(&mut self, mcp: Option<Value>, lsp: Option<Value>, formatters: Option<Value>) {
        let text =
            |value: &Value, key: &str| crate::clean::clean_line(value[key].as_str().unwrap_or_default());
        if let Some(mcp) = mcp {
            let servers = mcp.as_object().into_iter().flatten().map(|(name, server)| Mcp {
                name: name.clone(),
                status: text(server, "status"),
                error: Some(text(server, "error")).filter(|error| !error.is_empty()),
            });
            let servers: Vec<Mcp> = servers.collect();
            if servers != self.mcp {
                self.resources = None;
            }
            self.mcp = servers;
        }
        if let Some(lsp) = lsp {
            let servers = lsp.as_array().into_iter().flatten().map(|server| Lsp {
                name: text(server, "name"),
                root: text(server, "root"),
                status: text(server, "status"),
                error: Some(text(server, "error")).filter(|error| !error.is_empty()),
            });
            self.lsp = servers.collect();
        }
        if let Some(formatters) = formatters {
            let used = formatters.as_array().into_iter().flatten().filter(|one| one["enabled"] == true);
            let used = used.map(|one| {
                let kinds = one["extensions"].as_array().into_iter().flatten().filter_map(Value::as_str);
                (text(one, "name"), crate::clean::clean_line(&kinds.collect::<Vec<_>>().join(" ")))
            });
            self.formatters = used.collect();
        }
    }

    /// Stores the answer of `GET /experimental/sandbox`.
    pub(crate) fn put_sandbox(&mut self, value: &Value) {
        let text = |value: &Value| crate::clean::clean_line(value.as_str().unwrap_or_default());
        let mut lines = vec![("mode", text(&value["mode"]))];
        if value["mode"] != "off" {
            lines.push(("mechanism", text(&value["mechanism"])));
            if value["enforced"] == false {
                let inside = if value["outer"] == true { "in another sandbox" } else { "no, commands ask" };
                lines.push(("enforced", inside.to_owned()));
            }
            lines.push(("network", text(&value["network"])));
            let reasons = ["reasons", "gaps"].into_iter().filter(|_| value["enforced"] == false);
            let reasons = reasons.flat_map(|key| value[key].as_array().into_iter().flatten());
            lines.extend(reasons.map(|reason| ("", text(reason))));
        }
        self.put_sandbox_label(value);
        self.sandbox = lines.into_iter().map(|(name, text)| (name.to_owned(), text)).collect();
    }

    /// Stores whether commands have a sandbox.
    pub(crate) fn put_sandbox_label(&mut self, value: &Value) {
        self.sandbox_label = Some(match value["mode"].as_str() {
            None => return,
            Some("off") => "no sandbox",
            Some(_) if value["enforced"] == false && value["outer"] != true => "sandbox not enforced",
            Some(_) => "sandbox on",
        });
    }

    /// Stores the answer of `GET /config/providers`.
    pub(crate) fn put_providers(&mut self, value: &Value) {
        let providers = value["providers"].as_array().into_iter().flatten();
        self.providers = providers.map(provider).collect();
        self.defaults = serde_json::from_value(value["default"].clone()).unwrap_or_default();
        let id = |key: &str| value["model"][key].as_str().map(str::to_owned);
        self.is_guess = value["model"]["guessed"] == true;
        self.server_model = value.get("model").map(|_| id("providerID").zip(id("modelID")));
    }
}

/// Whether a fetch at the start includes the data of an event.
fn is_fetched(fact: &Fact) -> bool {
    matches!(
        fact,
        Fact::Event(
            Event::SessionCreated { .. }
                | Event::SessionUpdated { .. }
                | Event::SessionDeleted { .. }
                | Event::PermissionAsked(_)
                | Event::PermissionReplied { .. }
        ) | Fact::Signal(
            Signal::SessionStatus { .. }
                | Signal::SessionIdle { .. }
                | Signal::QuestionAsked(_)
                | Signal::QuestionReplied { .. }
                | Signal::QuestionRejected { .. }
        )
    )
}

/// Returns the title for people: until the model has named a session, its title ends with a timestamp.
pub(crate) fn readable_title(title: &str) -> &str {
    match title.split_once(" - ") {
        Some((kind @ ("New session" | "Child session"), time))
            if time.ends_with('Z') && time.starts_with(|c: char| c.is_ascii_digit()) =>
        {
            kind
        }
        Some(_) | None => title,
    }
}

fn provider(value: &Value) -> Provider {
    let text = |value: &Value, key: &str| crate::clean::clean_line(value[key].as_str().unwrap_or_default());
    let models = value["models"].as_object().into_iter().flatten().map(|(id, model)| {
        let cost = |key: &str| model["cost"][key].as_f64();
        let variants = model["variants"].as_object().into_iter().flatten().map(|(name, _)| name.clone());
        Model {
            id: id.clone(),
            name: Some(text(model, "name")).filter(|name| !name.is_empty()).unwrap_or_else(|| id.clone()),
            context: model["limit"]["context"].as_u64().unwrap_or(0),
            is_agentic: model["capabilities"]["toolcall"] != false,
            is_free: cost("input") == Some(0.0) && cost("output") == Some(0.0) && value["source"] != "config",
            price: cost("input").zip(cost("output")),
            sees: model["capabilities"]["input"]["image"].as_bool(),
            variants: variants.collect(),
        }
    });
    let id = text(value, "id");
    let name = Some(text(value, "name")).filter(|name| !name.is_empty()).unwrap_or_else(|| id.clone());
    // The key of providers that need no key.
    let is_public = value["options"]["apiKey"] == "public";
    Provider { models: models.collect(), id, name, is_public }
}

/// Returns the message of an error.
pub(crate) fn error_line(error: &MessageError) -> String {
    crate::clean::clean(error.message())
}
