//! Replays random stored conversations to models of every protocol, and checks the requests with the rules of the
//! scripted servers, which are written independently of the client's.
//!
//! The conversations contain what sessions may contain after many changes of the model: equal and strange ids of calls,
//! calls without results, reasoning of several makers, names and schemas of any kind, and files that are not what they
//! are called. A test replays a few in CI; the command replays 100,000.

use std::io::Write as _;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context as _, Result, bail};
use codewright_engine::sent_messages;
use codewright_llm::{Model, Protocol, Quirk, Request, ToolSpec, body};
use codewright_proto::MessageWithParts;
use serde_json::{Value, json};

mod random;

use random::Random;

/// The default number of conversations.
const COUNT: u64 = 100_000;
/// The default number of threads.
const LANES: u64 = 2;
/// The number of refused requests that are printed.
const SHOWN: usize = 20;

/// Replays conversations and prints how many requests would be refused.
pub(crate) fn main(rest: &[String]) -> Result<ExitCode> {
    let (mut count, mut lanes, mut seed) = (COUNT, LANES, 1);
    let mut rest = rest.iter();
    while let Some(flag) = rest.next() {
        let mut value = || crate::value(flag, &mut rest);
        let number =
            |text: &str| text.parse().ok().with_context(|| format!("`{flag}` needs a number, not `{text}`"));
        match flag.as_str() {
            "--count" => count = number(value()?)?,
            "--lanes" => lanes = number(value()?)?,
            "--seed" => seed = number(value()?)?,
            other => bail!("`transcripts` has no flag `{other}`; see `cargo xtask --help`"),
        }
    }
    let (next, requests, refused) = (AtomicU64::new(0), AtomicU64::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..lanes.max(1) {
            scope.spawn(|| {
                while let number = next.fetch_add(1, Ordering::Relaxed)
                    && number < count
                {
                    let (sent, faults) = replay(seed.wrapping_add(number));
                    requests.fetch_add(sent, Ordering::Relaxed);
                    if let Ok(mut refused) = refused.lock() {
                        refused.extend(faults);
                    }
                }
            });
        }
    });
    let refused = refused.into_inner().unwrap_or_default();
    let lines: Vec<String> = refused.iter().take(SHOWN).map(|fault| format!("{fault}\n")).collect();
    let (requests, number) = (requests.into_inner(), refused.len());
    let report = format!("{}{count} conversations, {requests} requests, {number} refused\n", lines.concat());
    std::io::stdout().write_all(report.as_bytes())?;
    Ok(if refused.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Sends the conversation of a seed to every model. Returns the number of requests and the reasons of refused ones.
fn replay(seed: u64) -> (u64, Vec<String>) {
    let mut random = Random::new(seed);
    let models = models();
    let transcript = transcript(&mut random, &models);
    let tools = tools(&mut random);
    let mut faults = Vec::new();
    for model in &models {
        let request = Request {
            system: "You are an agent.".to_owned(),
            messages: sent_messages(&transcript, model),
            tools: tools.clone(),
            max_output_tokens: 32_000,
            ..Request::default()
        };
        let body = body(&request, model);
        let name = format!("seed {seed}, {}/{}", model.provider_id, model.id);
        let mut problems = server(model.protocol).problems(&body);
        if model.quirks.contains(&Quirk::MistralMessages) {
            // Mistral sends usage always, and refuses the field.
            problems.retain(|problem| !problem.contains("`stream_options"));
        }
        faults.extend(problems.into_iter().map(|problem| format!("{name}: {problem}")));
        faults.extend(
            foreign(&body, model).map(|signature| format!("{name}: gets the signature `{signature}`")),
        );
    }
    (models.len() as u64, faults)
}

fn server(protocol: Protocol) -> codewright_scripted::Protocol {
    use codewright_scripted::Protocol as Server;
    match protocol {
        Protocol::OpenAiChat => Server::Chat,
        Protocol::OpenAiResponses => Server::Responses,
        Protocol::Anthropic => Server::Anthropic,
        Protocol::Bedrock => Server::Bedrock,
        Protocol::Cohere => Server::Cohere,
        Protocol::Gemini => Server::Gemini,
    }
}

/// Returns the signatures of other models in a body.
fn foreign(body: &Value, model: &Model) -> impl Iterator<Item = String> {
    let own = signature(&model.provider_id, &model.id);
    let text = body.to_string();
    let marks: Vec<String> = text
        .split("SIG:")
        .skip(1)
        .map(|rest| rest.split('"').next().unwrap_or_default().to_owned())
        .collect();
    marks.into_iter().map(|rest| format!("SIG:{rest}")).filter(move |found| *found != own)
}

fn signature(provider: &str, model: &str) -> String {
    format!("SIG:{provider}/{model}")
}

/// Returns models of all protocols, also of makers with rules of their own.
fn models() -> Vec<Model> {
    use Protocol::{Anthropic, Bedrock, Cohere, Gemini, OpenAiChat, OpenAiResponses};
    let model = |(provider, id, protocol, quirks): (&str, &str, Protocol, &[Quirk])| {
        let mut model = Model::new(provider, id, protocol, "https://h/v1");
        model.capabilities.input.image = true;
        model.capabilities.input.pdf = protocol != OpenAiChat && protocol != Cohere;
        model.capabilities.reasoning = true;
        model.quirks = quirks.to_vec();
        model
    };
    [
        ("openai", "gpt-5", OpenAiResponses, &[][..]),
        ("other", "gpt-5", OpenAiChat, &[Quirk::ReasoningDetails]),
        ("mistral", "mistral-large", OpenAiChat, &[Quirk::MistralIds, Quirk::MistralMessages]),
        ("moonshotai", "kimi-k2", OpenAiChat, &[]),
        ("xai", "grok-4", OpenAiChat, &[]),
        ("anthropic", "claude-sonnet-4-5", Anthropic, &[]),
        ("gateway", "claude-opus-4-6", Anthropic, &[]),
        ("amazon-bedrock", "us.anthropic.claude-sonnet-4-5", Bedrock, &[]),
        ("amazon-bedrock", "mistral.mistral-large", Bedrock, &[]),
        ("cohere", "command-a", Cohere, &[]),
        ("google", "gemini-2.5-pro", Gemini, &[]),
        ("google", "gemini-3-pro", Gemini, &[]),
    ]
    .map(model)
    .into()
}

/// Returns a stored conversation. Its model and provider change at random.
fn transcript(random: &mut Random, models: &[Model]) -> Vec<MessageWithParts> {
    let count = random.below(9);
    let mut transcript = Vec::new();
    let mut model = random.of(models);
    for at in 0..=count {
        if random.one_in(3) {
            model = random.of(models);
        }
        let mut message =
            if random.one_in(3) || at == count { user(random) } else { assistant(random, model) };
        let session = "ses_000000000000aaaaaaaaaaaaaa";
        let id = format!("msg_00000000{at:04}aaaaaaaaaaaaaa");
        message["info"]["id"] = json!(id);
        message["info"]["sessionID"] = json!(session);
        message["info"]["time"] = json!({"created": 1});
        for (number, part) in message["parts"].as_array_mut().into_iter().flatten().enumerate() {
            part["id"] = json!(format!("prt_00{at:02}0000{number:04}aaaaaaaaaaaaaa"));
            part["sessionID"] = json!(session);
            part["messageID"] = json!(id);
        }
        transcript.push(serde_json::from_value(message).expect("a message of the API is read"));
    }
    transcript
}

fn user(random: &mut Random) -> Value {
    let mut parts = vec![json!({"type": "text", "text": random.text()})];
    for _ in 0..random.below(3) {
        let (mime, url) = random.file();
        parts.push(json!({"type": "file", "mime": mime, "filename": "a.png", "url": url}));
    }
    json!({
        "info": {"role": "user", "agent": "build", "model": {"providerID": "p", "modelID": "m"}},
        "parts": parts,
    })
}

fn assistant(random: &mut Random, model: &Model) -> Value {
    let parts: Vec<Value> = (0..random.below(6)).map(|_| part(random, model)).collect();
    let mut info = json!({
        "role": "assistant", "parentID": "msg_000000000000aaaaaaaaaaaaaa", "mode": "build", "agent": "build", "cost": 0,
        "providerID": model.provider_id, "modelID": model.id, "path": {"cwd": "/", "root": "/"},
        "tokens": {"input": 0, "output": 0, "reasoning": 0, "cache": {"read": 0, "write": 0}},
    });
    match random.below(5) {
        0 => {}
        1 => info["error"] = json!({"name": "MessageAbortedError", "data": {"message": "aborted"}}),
        2 => info["error"] = json!({"name": "UnknownError", "data": {"message": "x"}}),
        _ => info["finish"] = json!("stop"),
    }
    json!({"info": info, "parts": parts})
}

fn part(random: &mut Random, model: &Model) -> Value {
    match random.below(4) {
        0 => json!({"type": "text", "text": random.text(), "metadata": metadata(random, model)}),
        1 => json!({
            "type": "reasoning", "text": random.text(), "metadata": metadata(random, model), "time": {"start": 1, "end": 2},
        }),
        _ => json!({
            "type": "tool", "callID": random.id(), "tool": random.name(), "state": state(random),
            "metadata": metadata(random, model),
        }),
    }
}

/// Returns what a provider wants back, with a signature that names its model.
fn metadata(random: &mut Random, model: &Model) -> Value {
    let signature = signature(&model.provider_id, &model.id);
    match model.protocol {
        _ if random.one_in(4) => Value::Null,
        Protocol::OpenAiChat => json!({"openrouter": {"reasoning_details": [{"data": signature}]}}),
        Protocol::OpenAiResponses => {
            json!({"openai": {"itemId": random.id(), "reasoningEncryptedContent": signature}})
        }
        Protocol::Anthropic if random.one_in(4) => json!({"anthropic": {"redactedData": signature}}),
        Protocol::Anthropic => json!({"anthropic": {"signature": signature}}),
        Protocol::Bedrock => json!({"bedrock": {"signature": signature}}),
        Protocol::Cohere => {
            json!({"cohere": {"type": if random.one_in(2) { "tool_plan" } else { "thinking" }}})
        }
        Protocol::Gemini => json!({"google": {"thoughtSignature": signature}}),
    }
}

fn state(random: &mut Random) -> Value {
    let input = random.input();
    match random.below(5) {
        0 => json!({"status": "pending", "input": {}, "raw": ""}),
        1 => json!({"status": "running", "input": input, "time": {"start": 1}}),
        2 => {
            json!({"status": "error", "input": input, "error": random.text(), "time": {"start": 1, "end": 2}})
        }
        _ => {
            let files: Vec<Value> = (0..random.below(2))
                .map(|_| {
                    let (mime, url) = random.file();
                    json!({
                        "id": "prt_000000000000aaaaaaaaaaaaaa", "sessionID": "ses_000000000000aaaaaaaaaaaaaa",
                        "messageID": "msg_000000000000aaaaaaaaaaaaaa", "type": "file", "mime": mime, "url": url,
                    })
                })
                .collect();
            json!({
                "status": "completed", "input": input, "output": random.text(), "title": "", "metadata": {},
                "time": {"start": 1, "end": 2}, "attachments": files,
            })
        }
    }
}

fn tools(random: &mut Random) -> Vec<ToolSpec> {
    let count = if random.one_in(20) { 150 } else { random.below(6) };
    let tool = |at: u64| {
        let name = if random.one_in(2) { format!("{}{at}", random.name()) } else { random.name() };
        ToolSpec { name, description: format!("Tool {at}"), parameters: random.schema(0) }
    };
    (0..count).map(tool).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(150))]

        #[test]
        fn no_stored_conversation_makes_a_provider_refuse_a_request(seed in any::<u64>()) {
            let (_, faults) = replay(seed);
            prop_assert!(faults.is_empty(), "{}", faults.join("\n"));
        }
    }
}
