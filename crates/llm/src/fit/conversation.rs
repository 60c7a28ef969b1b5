//! Calls and results in pairs, with unique ids.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::names::{Names, call_id};
use crate::protocol::rules::{CallId, End, Rules};
use crate::request::NO_OUTPUT;
use crate::{AssistantContent, Message, ToolResult, UserContent};

/// The result of a call that has none.
const NO_RESULT: &str = "The result of this call is not known; the call may have had an effect.";
/// The first message if the conversation would start with the model.
const NO_BEGINNING: &str = "(Earlier messages were not kept.)";
/// The last message if the conversation would end with the model.
const CONTINUE: &str = "Continue.";

/// Converts a conversation.
///
/// Each call has a unique id, and its result is in the message after it, in the order of the calls. Results without a
/// call become text. Messages without content are left out.
pub(super) fn fit(messages: Vec<Message>, rules: &Rules, names: &Names) -> Vec<Message> {
    let mut fitted: Vec<Message> = Vec::with_capacity(messages.len());
    let mut ids = Ids { rule: rules.call_id, used: HashSet::new() };
    let mut messages = messages.into_iter().peekable();
    while let Some(message) = messages.next() {
        match message {
            Message::User(content) => push_user(&mut fitted, content),
            Message::Tool(results) => push_user(&mut fitted, results.into_iter().flat_map(told).collect()),
            Message::Assistant(content) => {
                let results = match messages.next_if(|next| matches!(next, Message::Tool(_))) {
                    Some(Message::Tool(results)) => results,
                    Some(Message::User(_) | Message::Assistant(_)) | None => Vec::new(),
                };
                push_answer(&mut fitted, content, results, &mut ids, names);
            }
        }
    }
    if !matches!(fitted.first(), Some(Message::User(_))) {
        fitted.insert(0, Message::User(vec![UserContent::Text(NO_BEGINNING.to_owned())]));
    }
    if rules.end == End::User && matches!(fitted.last(), Some(Message::Assistant(_))) {
        fitted.push(Message::User(vec![UserContent::Text(CONTINUE.to_owned())]));
    }
    fitted
}

/// The ids of the conversation so far.
struct Ids {
    rule: CallId,
    used: HashSet<String>,
}

impl Ids {
    /// Returns a valid id that is not used yet.
    fn next(&mut self, id: &str) -> String {
        let mut sent = call_id(id, self.rule);
        let mut again = 2;
        while !self.used.insert(sent.clone()) {
            sent = call_id(&format!("{id}_{again}"), self.rule);
            again += 1;
        }
        sent
    }
}

fn push_user(messages: &mut Vec<Message>, content: Vec<UserContent>) {
    let says_something = |part: &UserContent| match part {
        UserContent::Text(text) => !text.trim().is_empty(),
        UserContent::File(_) => true,
    };
    let content: Vec<UserContent> = content.into_iter().filter(says_something).collect();
    if !content.is_empty() {
        messages.push(Message::User(content));
    }
}

/// Adds an answer and the results of its calls.
fn push_answer(
    messages: &mut Vec<Message>,
    content: Vec<AssistantContent>,
    mut results: Vec<ToolResult>,
    ids: &mut Ids,
    names: &Names,
) {
    let mut fitted_results = Vec::with_capacity(results.len());
    let mut fitted = Vec::with_capacity(content.len());
    // Metadata belongs to the part before it, and is left out with it.
    let mut is_left_out = false;
    for part in content {
        if is_left_out && matches!(part, AssistantContent::Metadata(_)) {
            continue;
        }
        is_left_out = matches!(&part, AssistantContent::Text(text) if text.trim().is_empty());
        match part {
            AssistantContent::ToolCall { id, name, input } => {
                let sent = ids.next(&id);
                let name = names.sent(&name);
                // The first of several results of one id is that of the first call.
                let result = match results.iter().position(|result| result.call_id == id) {
                    Some(at) => results.remove(at),
                    None => {
                        ToolResult { output: NO_RESULT.to_owned(), is_error: true, ..ToolResult::default() }
                    }
                };
                fitted_results.push(fitted_result(result, &sent, &name));
                let input = if input.is_object() { input } else { Value::Object(Map::new()) };
                let input = names.sent_arguments(&name, input);
                fitted.push(AssistantContent::ToolCall { id: sent, name, input });
            }
            AssistantContent::Text(_) if is_left_out => {}
            part @ (AssistantContent::Text(_)
            | AssistantContent::Reasoning { .. }
            | AssistantContent::Metadata(_)) => fitted.push(part),
        }
    }
    let is_said = |part: &AssistantContent| {
        matches!(part, AssistantContent::Text(_) | AssistantContent::ToolCall { .. })
    };
    if fitted.iter().any(is_said) {
        messages.push(Message::Assistant(fitted));
    }
    if !fitted_results.is_empty() {
        messages.push(Message::Tool(fitted_results));
    }
    push_user(messages, results.into_iter().flat_map(told).collect());
}

fn fitted_result(result: ToolResult, id: &str, name: &str) -> ToolResult {
    let output = if result.output.trim().is_empty() { NO_OUTPUT.to_owned() } else { result.output };
    ToolResult { call_id: id.to_owned(), name: name.to_owned(), output, ..result }
}

/// Returns a result without a call as content of the user.
fn told(result: ToolResult) -> Vec<UserContent> {
    let text =
        format!("A call of the tool `{}`, which is not kept, returned: {}", result.name, result.output);
    let files = result.attachments.into_iter().map(UserContent::File);
    [UserContent::Text(text)].into_iter().chain(files).collect()
}
