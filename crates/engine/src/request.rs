//! Builds the request of a step from values. The functions here are pure.

pub(crate) mod history;
pub(crate) mod instructions;
pub(crate) mod reminders;
pub(crate) mod skills;
pub(crate) mod system;

use std::path::Path;

use codewright_llm::{Message, Model, Protocol, Request, ToolChoice, ToolSpec, UserContent, family};
use codewright_proto::{MessageWithParts, Session, UserMessage};
use serde_json::{Map, Value};

use crate::models::options::merge;
use crate::prompts;
use crate::run::structured;
use crate::zone::Zone;

/// The content of a step's request.
pub(crate) struct Parts<'a> {
    pub(crate) session: &'a Session,
    pub(crate) transcript: &'a [MessageWithParts],
    /// The time zone of dates in the conversation.
    pub(crate) zone: &'a Zone,
    pub(crate) prompt: &'a UserMessage,
    /// The number of steps that the agent may run.
    pub(crate) steps: Option<u64>,
    /// The file of the plan, if plans are written to files.
    pub(crate) plan_file: Option<&'a Path>,
    pub(crate) system: String,
    pub(crate) tools: Vec<ToolSpec>,
    /// Whether the answer is a structured value, which the model returns by a call.
    pub(crate) wants_value: bool,
    pub(crate) temperature: Option<f64>,
    pub(crate) top_p: Option<f64>,
    /// The agent's options, overridden by those of the variant.
    pub(crate) options: Map<String, Value>,
}

/// The largest number of output tokens that a step requests.
pub(crate) const MAX_OUTPUT_TOKENS: u64 = 32_000;

/// Returns the messages in which a model receives a stored conversation, as in the request of a step.
#[must_use]
pub fn sent_messages(transcript: &[MessageWithParts], model: &Model) -> Vec<Message> {
    history::history(transcript, &Zone::utc(), model)
}

/// Builds the request of one step.
pub(crate) fn request(parts: Parts<'_>, model: &Model) -> Request {
    let (temperature, top_p) = sampling(&model.api_id);
    let temperature = parts.temperature.or(temperature).filter(|_| model.capabilities.temperature);
    let mut messages = history::history(parts.transcript, parts.zone, model);
    let mut system = parts.system;
    if model.is_codex() {
        // This server accepts only its own agent's instructions, so ours are sent as a user message.
        let has = |tool: &str| parts.tools.iter().any(|offered| offered.name == tool);
        let ours = std::mem::replace(&mut system, prompts::Family::Codex.prompt(&has));
        messages.insert(0, Message::User(vec![UserContent::Text(ours.trim_start().to_owned())]));
    }
    let mut options = family::options(model);
    merge(&mut options, &parts.options);
    if parts.wants_value {
        // The Anthropic protocol does not allow thinking together with a forced call.
        if matches!(model.protocol, Protocol::Anthropic | Protocol::Bedrock) {
            options.insert("thinking".to_owned(), Value::Null);
        }
        remind(&mut messages);
    }
    let has = |tool: &str| parts.tools.iter().any(|offered| offered.name == tool);
    let facts = reminders::Facts {
        transcript: parts.transcript,
        prompt: parts.prompt,
        steps: parts.steps,
        plan_file: parts.plan_file,
        has: &has,
        protocol: model.protocol,
    };
    reminders::remind(&mut messages, &facts);
    Request {
        system,
        more_system: Vec::new(),
        messages,
        // A server refuses tools for a model that cannot call them. A structured value needs a call.
        tools: if model.capabilities.tool_call || parts.wants_value { parts.tools } else { Vec::new() },
        tool_choice: if parts.wants_value { ToolChoice::Required } else { ToolChoice::Auto },
        max_output_tokens: max_output_tokens(model),
        temperature,
        top_p: parts.top_p.or(top_p),
        headers: session_headers(parts.session),
        options,
    }
}

/// Reminds a model that answered with text to return the value.
fn remind(messages: &mut [Message]) {
    if let [.., Message::Assistant(_), Message::User(content)] = messages
        && *content == [UserContent::Text(history::GO_ON.to_owned())]
    {
        *content = vec![UserContent::Text(structured::REMINDER.to_owned())];
    }
}

/// Returns the output limit of a request to a model.
pub(crate) fn max_output_tokens(model: &Model) -> u64 {
    match model.limits.output {
        0 => MAX_OUTPUT_TOKENS,
        limit => limit.min(MAX_OUTPUT_TOKENS),
    }
}

/// Returns headers that let a provider recognize the requests of one session.
pub(crate) fn session_headers(session: &Session) -> Vec<(String, String)> {
    let mut headers = vec![
        ("x-session-affinity".to_owned(), session.id.to_string()),
        ("x-session-id".to_owned(), session.id.to_string()),
    ];
    headers.extend(session.parent_id.as_ref().map(|id| ("x-parent-session-id".to_owned(), id.to_string())));
    headers
}

/// Returns the recommended temperature and top-p of a model family; the first match decides.
fn sampling(model: &str) -> (Option<f64>, Option<f64>) {
    const FAMILIES: [(&str, Option<f64>, Option<f64>); 8] = [
        ("qwen", None, None),
        ("claude", None, None),
        ("gemini", Some(1.0), Some(0.95)),
        ("glm", Some(1.0), None),
        ("minimax", Some(1.0), Some(0.95)),
        ("kimi-k2.5", Some(1.0), Some(0.95)),
        ("kimi-k2-thinking", Some(1.0), None),
        ("kimi-k2", Some(0.6), None),
    ];
    let model = model.to_lowercase();
    let family = FAMILIES.iter().find(|(name, ..)| model.contains(name));
    family.map_or((None, None), |(_, temperature, top_p)| (*temperature, *top_p))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_family_has_its_sampling() {
        for (model, expected) in [
            ("qwen3-coder", (None, None)),
            ("Gemini-2.5-pro", (Some(1.0), Some(0.95))),
            ("kimi-k2", (Some(0.6), None)),
            ("moonshot/kimi-k2-thinking", (Some(1.0), None)),
            ("kimi-k2.5", (Some(1.0), Some(0.95))),
            ("gpt-5", (None, None)),
        ] {
            assert_eq!(sampling(model), expected, "{model}");
        }
    }
}
