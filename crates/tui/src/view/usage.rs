//! The pages about cost and about the content of the context.

use std::collections::BTreeMap;

use codewright_proto::{Message, PartBody, ToolPart, ToolState};
use ratatui::text::Line;
use serde_json::Value;

use super::page::{group, pair};
use super::prompt::thousands;
use super::sidebar::with_separators;
use crate::clean::clean_line;
use crate::state::State;
use crate::transcript::{Body, Transcript};

/// Bytes of text for each token, on average. Providers report only sums.
const BYTES_PER_TOKEN: u64 = 4;
/// The maximum number of subagents on a page.
const MAX_CHILDREN: usize = 20;
/// The columns of a bar for the whole context.
const BAR: u64 = 20;

/// Returns the cost of the session, of its models and of its subagents.
pub(super) fn cost(state: &State) -> Vec<Line<'static>> {
    let Some(session) = state.session() else { return Vec::new() };
    let tokens = session.tokens;
    let number = |label: &str, count: u64| pair(state, label, &with_separators(count));
    let mut lines = vec![
        group(state, "Session"),
        pair(state, "cost", &dollars(session.cost)),
        number("input tokens", tokens.input),
        number("output tokens", tokens.output),
        number("reasoning tokens", tokens.reasoning),
        number("read from the cache", tokens.cache.read),
        number("written to the cache", tokens.cache.write),
    ];
    let all = tokens.input + tokens.cache.read + tokens.cache.write;
    lines.extend(percent(tokens.cache.read, all).map(|share| pair(state, "share of the cache", &share)));
    lines.extend(by_model(state));
    let children = state.mirror.children(&session.id);
    if !children.is_empty() {
        lines.extend([Line::default(), group(state, "Subagents")]);
        for child in children.iter().take(MAX_CHILDREN) {
            let used = thousands(child.tokens.input + child.tokens.output + child.tokens.cache.read);
            let text = format!("{} · {used} tokens · {}", dollars(child.cost), clean_line(&child.title));
            lines.push(pair(state, child.agent.as_deref().unwrap_or("subagent"), &text));
        }
        let sum: f64 = children.iter().map(|child| child.cost).sum();
        lines.push(pair(state, "all subagents", &dollars(sum)));
        lines.push(pair(state, "session with subagents", &dollars(sum + session.cost)));
    }
    lines.extend([Line::default(), pair(state, "codewright stats", "prints the cost of all sessions")]);
    lines
}

/// Returns the cost of each model of the fetched answers.
fn by_model(state: &State) -> Vec<Line<'static>> {
    let transcript = state.session_id().and_then(|id| state.mirror.transcripts.get(id));
    let mut models: BTreeMap<&str, (f64, u64, u64)> = BTreeMap::new();
    for entry in transcript.into_iter().flat_map(|transcript| &transcript.entries) {
        if let Message::Assistant(info) = &entry.info {
            let sum = models.entry(&info.model_id).or_default();
            sum.0 += info.cost;
            sum.1 += info.tokens.input + info.tokens.cache.read + info.tokens.cache.write;
            sum.2 += info.tokens.output + info.tokens.reasoning;
        }
    }
    if models.is_empty() {
        return Vec::new();
    }
    let is_partial = transcript.is_some_and(|transcript| transcript.older.is_some());
    let title = if is_partial { "Models of the newest messages" } else { "Models" };
    let mut lines = vec![Line::default(), group(state, title)];
    for (model, (cost, input, output)) in models {
        let text = format!("{} · {} in · {} out", dollars(cost), thousands(input), thousands(output));
        lines.push(pair(state, &clean_line(model), &text));
    }
    lines
}

/// The estimated number of tokens of each kind of content.
#[derive(Debug, Default, PartialEq, Eq)]
struct Content {
    prompts: u64,
    files: u64,
    outputs: u64,
    answers: u64,
    thoughts: u64,
}

/// Returns what fills the context.
pub(super) fn context(state: &State) -> Vec<Line<'static>> {
    let Some(transcript) = state.session_id().and_then(|id| state.mirror.transcripts.get(id)) else {
        return Vec::new();
    };
    let answers =
        transcript.entries.iter().take(transcript.end).rev().filter_map(|entry| match &entry.info {
            Message::Assistant(info) => Some(info),
            Message::User(_) => None,
        });
    let Some(last) = answers.into_iter().find(|info| info.tokens.input + info.tokens.cache.read > 0) else {
        return vec![pair(state, "empty", "the first answer shows how much is used")];
    };
    let cached = last.tokens.cache.read;
    let sent = last.tokens.input + cached + last.tokens.cache.write;
    let used = sent + last.tokens.output + last.tokens.reasoning;
    let limit = state.mirror.model(&last.provider_id, &last.model_id).map_or(0, |(_, model)| model.context);
    let share = percent(used, limit).map(|share| format!(" of {} ({share})", with_separators(limit)));
    let mut lines = vec![pair(
        state,
        "in the context",
        &format!("{} tokens{}", with_separators(used), share.unwrap_or_default()),
    )];
    lines.extend(percent(cached, sent).map(|share| {
        pair(state, "from the cache", &format!("{} ({share} of the last request)", with_separators(cached)))
    }));
    let content = content(transcript);
    let tools = state.mirror.tool_bytes.map(|bytes| u64::try_from(bytes).unwrap_or(0) / BYTES_PER_TOKEN);
    let known = content.prompts + content.files + content.outputs + content.answers + content.thoughts;
    let rest = used.saturating_sub(known);
    let tools = tools.map(|tools| tools.min(rest));
    let system = ("system prompt and instructions", rest - tools.unwrap_or(0));
    let kinds = [
        system,
        ("descriptions of tools", tools.unwrap_or(0)),
        ("prompts", content.prompts),
        ("files that were read", content.files),
        ("outputs of tools", content.outputs),
        ("answers and calls", content.answers),
        ("thoughts", content.thoughts),
    ];
    lines.extend([Line::default(), group(state, "Content (estimated)")]);
    for (name, count) in kinds.into_iter().filter(|(_, count)| *count > 0) {
        let all = if limit > 0 { limit } else { used };
        let filled = (count * BAR).div_ceil(all.max(1)).min(BAR);
        let bar = "█".repeat(usize::try_from(filled).unwrap_or(0));
        let share = percent(count, used).unwrap_or_default();
        lines.push(pair(state, name, &format!("{:>7}  {share:>4}  {bar}", thousands(count))));
    }
    lines.extend([Line::default(), pair(state, "/compact", "replaces the messages with a summary")]);
    lines
}

/// Estimates the content of the messages since the last summary.
fn content(transcript: &Transcript) -> Content {
    let shown = &transcript.entries[..transcript.end];
    let is_summary = |info: &Message| match info {
        Message::Assistant(info) => info.summary == Some(true),
        Message::User(_) => false,
    };
    let start = shown.iter().rposition(|entry| is_summary(&entry.info)).unwrap_or(0);
    let mut content = Content::default();
    for entry in &shown[start..] {
        let is_prompt = matches!(entry.info, Message::User(_));
        for part in &entry.parts {
            match &part.body {
                Body::Text { text, .. } if is_prompt => content.prompts += tokens(&text.text),
                Body::Text { text, .. } => content.answers += tokens(&text.text),
                Body::Reasoning { text, .. } => content.thoughts += tokens(&text.text),
                Body::Tool(tool) => add_call(&mut content, tool),
                Body::Other(PartBody::File { url, .. }) => content.files += tokens(url).min(1_500),
                Body::Other(_) => {}
            }
        }
    }
    content
}

fn add_call(content: &mut Content, tool: &ToolPart) {
    let (input, output): (&Value, &str) = match &tool.state {
        ToolState::Completed { input, output, time, .. } => {
            (input, if time.compacted.is_some() { "" } else { output })
        }
        ToolState::Error { input, error, .. } => (input, error),
        ToolState::Pending { .. } | ToolState::Running { .. } => return,
    };
    content.answers += tokens(&input.to_string());
    match tool.tool.as_str() {
        "read" => content.files += tokens(output),
        _ => content.outputs += tokens(output),
    }
}

fn tokens(text: &str) -> u64 {
    u64::try_from(text.len()).unwrap_or(0) / BYTES_PER_TOKEN
}

fn dollars(cost: f64) -> String {
    if cost > 0.0 && cost < 0.01 { format!("${cost:.4}") } else { format!("${cost:.2}") }
}

fn percent(part: u64, all: u64) -> Option<String> {
    (part * 100).checked_div(all).map(|share| format!("{share}%"))
}
