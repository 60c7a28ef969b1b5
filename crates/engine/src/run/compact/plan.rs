//! Decides when and how to compact a conversation. The functions here are pure.

use codewright_llm::Limits;
use codewright_proto::{
    AssistantMessage, Message, MessageId, MessageWithParts, PartBody, TokenUsage, ToolState, UserMessage,
};
use serde_json::Value;

use crate::request::history::visible;

/// Tokens reserved for the summary, unless the configuration sets them.
const RESERVED: u64 = 20_000;
/// The output limit that is assumed if a model's limit is unknown or larger, in tokens.
const MOST_OUTPUT: u64 = 32_000;
/// The number of recent turns that are kept next to a summary, unless the configuration sets it.
const TAIL_TURNS: u64 = 2;
/// The bounds of the tokens of these turns: a quarter of the model's context, but within these.
const LEAST_TAIL: u64 = 2_000;
const MOST_TAIL: u64 = 8_000;
/// The tokens that an image or document counts as.
const MEDIA_TOKENS: u64 = 1_500;
/// After this number of summaries with almost no answer between them, compaction is given up.
const THRASHING: usize = 3;

/// The compaction settings of a configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Settings {
    /// Whether a full context is compacted automatically.
    pub(crate) auto: bool,
    /// Whether old outputs are removed from requests.
    pub(crate) prune: bool,
    /// Tokens that stay free.
    reserved: Option<u64>,
    /// The number of recent turns that are kept next to a summary.
    tail_turns: u64,
    /// The token limit of those turns.
    tail_tokens: Option<u64>,
}

impl Settings {
    /// Reads the `compaction` section of a configuration.
    pub(crate) fn of(config: &Value) -> Self {
        let section = &config["compaction"];
        Self {
            auto: section["auto"].as_bool().unwrap_or(true),
            prune: section["prune"].as_bool().unwrap_or(true),
            reserved: section["reserved"].as_u64(),
            tail_turns: section["tail_turns"].as_u64().unwrap_or(TAIL_TURNS),
            tail_tokens: section["preserve_recent_tokens"].as_u64(),
        }
    }

    /// Returns the number of turns to keep next to a summary, and their token limit for this model.
    pub(crate) fn tail(&self, limits: &Limits) -> Tail {
        let room = threshold(limits, *self).unwrap_or(u64::MAX) / 4;
        let tokens = self.tail_tokens.unwrap_or_else(|| room.clamp(LEAST_TAIL, MOST_TAIL)).min(room);
        Tail { turns: self.tail_turns, tokens }
    }
}

/// Returns the number of tokens at which a conversation is full; `None` if the model's limit is unknown.
pub(crate) fn threshold(limits: &Limits, settings: Settings) -> Option<u64> {
    if limits.context == 0 {
        return None;
    }
    let output = if limits.output == 0 { MOST_OUTPUT } else { limits.output.min(MOST_OUTPUT) };
    let reserved = settings.reserved.unwrap_or_else(|| RESERVED.min(output));
    let left = limits.context.saturating_sub(output).saturating_sub(reserved);
    // A model may limit its input separately; the answer does not count towards that limit.
    let (left, whole) = match limits.input {
        0 => (left, limits.context),
        input => (left.min(input.saturating_sub(reserved)), limits.context.min(input)),
    };
    // Otherwise a model with a small context would be full from the start.
    Some(if left == 0 { whole / 2 } else { left })
}

/// Returns the tokens of the context at the model's last answer.
pub(crate) fn used(transcript: &[MessageWithParts]) -> u64 {
    let TokenUsage { input, output, cache, .. } =
        answers(transcript).last().map_or_else(TokenUsage::default, |answer| answer.tokens);
    input + output + cache.read + cache.write
}

/// Reports whether a summary would be useful: there is an answer since the last summary, and the last few summaries
/// made room.
pub(crate) fn helps(transcript: &[MessageWithParts]) -> bool {
    answers(transcript).next().is_some() && !is_thrashing(transcript)
}

/// Returns the finished answers since the last summary, without those that it kept.
fn answers(transcript: &[MessageWithParts]) -> impl DoubleEndedIterator<Item = &AssistantMessage> {
    let is_good = |message: &MessageWithParts| {
        matches!(&message.info, Message::Assistant(info)
            if info.summary == Some(true) && info.finish.is_some() && info.error.is_none())
    };
    let since = transcript.iter().rposition(is_good).map_or(0, |at| at + 1);
    transcript[since..].iter().filter_map(answer)
}

fn answer(message: &MessageWithParts) -> Option<&AssistantMessage> {
    let Message::Assistant(info) = &message.info else { return None };
    let is_good = info.summary != Some(true) && info.finish.is_some() && info.error.is_none();
    is_good.then_some(info)
}

/// Reports whether the context was full again right after each of the last summaries.
fn is_thrashing(transcript: &[MessageWithParts]) -> bool {
    let (mut summaries, mut answered) = (0, 0);
    for message in transcript.iter().rev() {
        let Message::Assistant(info) = &message.info else { continue };
        if info.summary == Some(true) && info.finish.is_some() {
            summaries += 1;
        } else if answer(message).is_some() {
            answered += 1;
        }
        if summaries == THRASHING {
            return answered <= THRASHING;
        }
    }
    false
}

/// Returns the index of a request for a summary that has not been tried.
pub(crate) fn open_request(transcript: &[MessageWithParts]) -> Option<usize> {
    let request = transcript.iter().rposition(|message| marker(message).is_some())?;
    let id = transcript[request].info.id();
    let is_tried = transcript.iter().any(|message| {
        matches!(&message.info, Message::Assistant(info) if info.summary == Some(true) && info.parent_id == *id)
    });
    (!is_tried).then_some(request)
}

/// Reports whether a request for a summary was automatic; `None` if the message is not such a request.
pub(crate) fn marker(message: &MessageWithParts) -> Option<bool> {
    message.parts.iter().find_map(|part| match &part.body {
        PartBody::Compaction { auto, .. } => Some(*auto),
        _ => None,
    })
}

/// The messages to summarize and the continuation.
#[derive(Debug, PartialEq)]
pub(crate) struct Plan<'a> {
    /// The messages that the summary replaces, oldest first.
    pub(crate) subject: Vec<&'a MessageWithParts>,
    /// The first of the later messages that are kept.
    pub(crate) tail: Option<&'a MessageId>,
    pub(crate) then: Then<'a>,
}

/// The continuation after a summary.
#[derive(Debug, PartialEq)]
pub(crate) enum Then<'a> {
    /// The turn ends: only the summary was requested, or a prompt already waits.
    Rest,
    /// The prompt without an answer is sent again.
    Repeat(&'a MessageWithParts),
    /// The model continues the turn of this prompt.
    GoOn(&'a UserMessage),
}

/// The largest part of a conversation that is kept next to a summary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tail {
    pub(crate) turns: u64,
    pub(crate) tokens: u64,
}

/// Plans the summary for the request at index `request`.
///
/// The most recent turns, at most `tail`, are kept if older messages remain to summarize.
pub(crate) fn plan(transcript: &[MessageWithParts], request: usize, tail: Tail) -> Plan<'_> {
    let mut plan = whole(transcript, request);
    let Some(at) = tail_of(&plan.subject, tail) else { return plan };
    plan.tail = Some(plan.subject[at].info.id());
    plan.subject.truncate(at);
    plan
}

/// Returns the index of the first turn that is kept next to a summary.
fn tail_of(subject: &[&MessageWithParts], tail: Tail) -> Option<usize> {
    let (mut found, mut begun, mut left) = (None, 0, tail.tokens);
    for (at, message) in subject.iter().enumerate().rev() {
        if begun == tail.turns {
            break;
        }
        let Some(rest) = left.checked_sub(weight(message)) else { break };
        left = rest;
        // A turn is kept as a whole or not at all.
        if matches!(message.info, Message::User(_)) && marker(message).is_none() {
            found = Some(at);
            begun += 1;
        }
    }
    // A summary of nothing, or only of the last summary, would be useless.
    found.filter(|at| subject[..*at].iter().any(|message| answer(message).is_some()))
}

/// Estimates the tokens of a message.
fn weight(message: &MessageWithParts) -> u64 {
    let tokens = |bytes: usize| bytes as u64 / 4 + 1;
    let parts = message.parts.iter().map(|part| match &part.body {
        PartBody::Text(text) => tokens(text.text.len()),
        PartBody::Reasoning { text, .. } => tokens(text.len()),
        PartBody::File { .. } => MEDIA_TOKENS,
        PartBody::Tool(call) => match &call.state {
            ToolState::Completed { input, output, time, attachments, .. } => {
                let output = if time.compacted.is_some() { 0 } else { output.len() };
                let files = attachments.as_ref().map_or(0, Vec::len) as u64;
                tokens(input.to_string().len() + output) + files * MEDIA_TOKENS
            }
            ToolState::Error { input, error, .. } => tokens(input.to_string().len() + error.len()),
            ToolState::Pending { .. } | ToolState::Running { .. } => 1,
        },
        _ => 0,
    });
    parts.sum()
}

fn whole(transcript: &[MessageWithParts], request: usize) -> Plan<'_> {
    let mut subject = visible(&transcript[..request]);
    let is_prompt = |message: &&MessageWithParts| {
        matches!(message.info, Message::User(_)) && marker(message).is_none() && !message.parts.is_empty()
    };
    let waits = transcript[request + 1..].iter().any(|message| is_prompt(&message));
    if marker(&transcript[request]) != Some(true) || waits {
        return Plan { subject, tail: None, then: Then::Rest };
    }
    let Some(at) = subject.iter().rposition(is_prompt) else {
        return Plan { subject, tail: None, then: Then::Rest };
    };
    let prompt = subject[at];
    let Message::User(info) = &prompt.info else { return Plan { subject, tail: None, then: Then::Rest } };
    let is_answered = subject[at..].iter().any(|message| answer(message).is_some());
    if is_answered || at == 0 {
        return Plan { subject, tail: None, then: Then::GoOn(info) };
    }
    subject.truncate(at);
    Plan { subject, tail: None, then: Then::Repeat(prompt) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// A conversation in short form: `u` prompt, `a` answer with its tokens, `x` failed answer, `m` and `M` a manual
    /// and an automatic request for a summary, `s` its summary, `e` a failed one.
    fn talk(written: &str) -> Vec<MessageWithParts> {
        let (mut messages, mut asked) = (Vec::new(), String::new());
        for (n, word) in written.split_whitespace().enumerate() {
            let id = format!("msg_{n:03}");
            let model = json!({"providerID": "p", "modelID": "m"});
            let (kind, tokens) = word.split_at(1);
            let tokens = json!({
                "input": tokens.parse::<u64>().unwrap_or(0), "output": 1, "reasoning": 0,
                "cache": {"read": 2, "write": 4},
            });
            let part = |body: Value| {
                let mut part = json!({"id": format!("prt_{n:03}"), "sessionID": "ses_1", "messageID": id});
                part.as_object_mut().unwrap().extend(body.as_object().unwrap().clone());
                json!([part])
            };
            let user = json!({"role": "user", "id": id, "sessionID": "ses_1", "time": {"created": n}, "agent": "build", "model": model});
            let mut assistant = json!({
                "role": "assistant", "id": id, "sessionID": "ses_1", "time": {"created": n}, "parentID": asked,
                "modelID": "m", "providerID": "p", "mode": "build", "agent": "build",
                "path": {"cwd": "/", "root": "/"}, "cost": 0.0, "tokens": tokens,
            });
            let text = part(json!({"type": "text", "text": word}));
            let failed = json!({"name": "MessageAbortedError", "data": {"message": "Aborted"}});
            let (info, parts) = match kind {
                "u" => (user, text),
                "m" | "M" => (user, part(json!({"type": "compaction", "auto": kind == "M"}))),
                _ => {
                    let good = matches!(kind, "a" | "s");
                    let (key, value) = if good { ("finish", json!("stop")) } else { ("error", failed) };
                    assistant[key] = value;
                    if matches!(kind, "s" | "e") {
                        assistant["summary"] = json!(true);
                    }
                    (assistant, text)
                }
            };
            if matches!(kind, "u" | "m" | "M") {
                asked.clone_from(&id);
            }
            messages.push(serde_json::from_value(json!({"info": info, "parts": parts})).unwrap());
        }
        messages
    }

    fn limits(context: u64, output: u64) -> Limits {
        Limits { context, output, input: 0 }
    }

    #[test]
    fn a_context_is_full_if_the_answer_or_summary_would_not_fit() {
        let plain = Settings::of(&json!({}));
        for (context, output, expected) in [
            (200_000, 32_000, Some(148_000)),
            (200_000, 64_000, Some(148_000)),
            (200_000, 0, Some(148_000)),
            (128_000, 4_096, Some(119_808)),
            (20_000, 8_000, Some(4_000)),
            (8_000, 8_000, Some(4_000)),
            (0, 8_000, None),
        ] {
            assert_eq!(threshold(&limits(context, output), plain), expected, "{context} {output}");
        }
        for (context, input, expected) in
            [(400_000, 272_000, 252_000), (128_000, 128_000, 76_000), (200_000, 10_000, 5_000)]
        {
            let limits = Limits { input, ..limits(context, 128_000) };
            assert_eq!(threshold(&limits, plain), Some(expected), "{context} {input}");
        }
        let less = Settings::of(&json!({"compaction": {"reserved": 1000, "auto": false, "prune": false}}));
        assert_eq!(threshold(&limits(200_000, 32_000), less), Some(167_000));
        assert!(!less.auto && !less.prune && plain.auto && plain.prune);
    }

    #[test]
    fn the_last_answer_since_the_last_summary_counts() {
        for (written, expected) in [
            ("u a10 u a20", 27),
            ("u a10 u x90", 17),
            ("u a10 m s90 u", 0),
            ("u a10 m s90 u a5", 12),
            ("", 0),
        ] {
            assert_eq!(used(&talk(written)), expected, "{written}");
        }
    }

    #[test]
    fn a_summary_is_useful_only_if_there_is_something_to_summarize() {
        for (written, expected) in [
            ("u", false),
            ("u x", false),
            ("u a u", true),
            ("u a M s u", false),
            ("u a M s u a u", true),
            ("u a M s u a M s u a M s u a", false),
            ("u a M s u a a a a M s u a M s u a", true),
            ("u a M e u", true),
        ] {
            assert_eq!(helps(&talk(written)), expected, "{written}");
        }
    }

    #[test]
    fn a_request_is_open_until_it_is_tried() {
        for (written, expected) in
            [("u a", None), ("u a m", Some(2)), ("u a m s", None), ("u a m e", None), ("u a m u", Some(2))]
        {
            assert_eq!(open_request(&talk(written)), expected, "{written}");
        }
    }

    #[track_caller]
    fn check(written: &str, subject: &str, then: &str) {
        let talk = talk(written);
        let plan = plan(&talk, open_request(&talk).unwrap(), Tail { turns: 0, tokens: 0 });
        let place = |id: &MessageId| id.as_str().trim_start_matches("msg_").to_owned();
        let of: Vec<_> = plan.subject.iter().map(|message| place(message.info.id())).collect();
        let on = match plan.then {
            Then::Rest => "rest".to_owned(),
            Then::Repeat(prompt) => format!("repeat {}", place(prompt.info.id())),
            Then::GoOn(prompt) => format!("go on {}", place(&prompt.id)),
        };
        assert_eq!((of.join(" ").as_str(), on.as_str()), (subject, then));
    }

    #[test]
    fn a_turn_continues_after_an_automatic_summary_only() {
        check("u a m", "000 001", "rest");
        check("u a M", "000 001", "go on 000");
        check("u a u a M", "000 001 002 003", "go on 002");
        check("u a M u", "000 001", "rest");
    }

    #[test]
    fn a_prompt_without_an_answer_is_repeated() {
        check("u a u x M", "000 001", "repeat 002");
        check("u a u M", "000 001", "repeat 002");
        // There is no earlier message.
        check("u x M", "000 001", "go on 000");
    }

    #[test]
    fn an_earlier_summary_is_summarized_with_the_rest() {
        check("u a m s u a M", "002 003 004 005", "go on 004");
    }

    /// Checks which messages, each with its tokens, are kept next to a summary.
    #[track_caller]
    fn stays(written: &str, [turns, tokens]: [u64; 2], subject: &str, expected: Option<&str>) {
        let mut talk = talk(written);
        for (message, word) in talk.iter_mut().zip(written.split_whitespace()) {
            let tokens: usize = word[1..].parse().unwrap_or(0);
            if let Some(PartBody::Text(text)) = message.parts.first_mut().map(|part| &mut part.body) {
                text.text = "x".repeat(tokens * 4).into();
            }
        }
        let plan = plan(&talk, open_request(&talk).unwrap(), Tail { turns, tokens });
        let place = |id: &MessageId| id.as_str().trim_start_matches("msg_").to_owned();
        let of: Vec<_> = plan.subject.iter().map(|message| place(message.info.id())).collect();
        assert_eq!(
            (of.join(" ").as_str(), plan.tail.map(place).as_deref()),
            (subject, expected),
            "{written}"
        );
    }

    #[test]
    fn the_most_recent_turns_are_kept_if_they_fit() {
        stays("u1 a1 u1 a1 u1 a1 M", [2, 100], "000 001", Some("002"));
        stays("u1 a1 u1 a1 u1 a1 M", [1, 100], "000 001 002 003", Some("004"));
        stays("u1 a1 u1 a1 u1 a1 M", [0, 100], "000 001 002 003 004 005", None);
        stays("u1 a1 u1 a50 u1 a1 M", [2, 40], "000 001 002 003", Some("004"));
        stays("u1 a1 u1 a1 u1 a50 M", [2, 40], "000 001 002 003 004 005", None);
        // Something must remain to summarize.
        stays("u1 a1 u1 a1 M", [2, 100], "000 001 002 003", None);
        // Turns that were kept earlier are summarized now.
        stays("u1 a1 m s1 u1 a1 u1 a1 M", [1, 100], "002 003 004 005", Some("006"));
    }

    #[test]
    fn a_tail_never_fills_a_small_model() {
        let limits = |context| Limits { context, output: 1_000, ..Limits::default() };
        let settings = |text: &str| Settings::of(&serde_json::from_str(text).unwrap());
        assert_eq!(settings("{}").tail(&limits(200_000)), Tail { turns: 2, tokens: 8_000 });
        assert_eq!(settings("{}").tail(&limits(4_000)), Tail { turns: 2, tokens: 500 });
        let own = r#"{"compaction": {"tail_turns": 5, "preserve_recent_tokens": 300}}"#;
        assert_eq!(settings(own).tail(&limits(200_000)), Tail { turns: 5, tokens: 300 });
    }
}
