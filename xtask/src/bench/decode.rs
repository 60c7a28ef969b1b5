//! Measures how fast one core decodes answers of models.
//!
//! The streams are generated with the fields that real servers send. The events and the bytes of their text are
//! counted, so that an incomplete run fails. The `measure` build of this program runs the measurement.

use std::fmt::Write as _;

use std::process::Command;
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use codewright_llm::ModelEvent;
use codewright_scripted::bedrock_frame;
use serde::{Deserialize, Serialize};

use super::Plan;
use super::spread::Spread;

/// The name on the command line.
pub(super) const NAME: &str = "decode";
/// The hidden command of the measuring process.
pub(crate) const COMMAND: &str = "decode-part";

/// The number of bytes of each piece.
const PIECE_BYTES: usize = 64 * 1024;
/// The number of bytes of a stream, long enough that its start and end do not matter.
const STREAM_BYTES: usize = 16_000_000;
/// The approximate number of bytes of text in a delta.
const DELTA_BYTES: [usize; 2] = [50, 500];
/// The lower limit in megabytes per second.
const LIMIT_MB_S: f64 = 200.0;

/// The text of the model. About every fourth delta contains escapes.
const WORDS: &str = "The function reads a line, and then it decides what the caller has to know about it; \
    nothing is kept that could be read again, so that memory stays the same however long the answer is.\n\n\
    Für jede Zeile gilt das Gleiche – every new field has its bound \"in the same change\" and a test that \
    fails without it, since a promise without a check is a wish, and wishes are not worth a line of code in this file. ";

/// The measured protocols.
#[derive(Debug, Clone, Copy)]
enum Protocol {
    OpenAiChat,
    OpenAiResponses,
    Anthropic,
    Gemini,
    Bedrock,
    Cohere,
}

impl From<Protocol> for codewright_llm::Protocol {
    fn from(protocol: Protocol) -> Self {
        match protocol {
            Protocol::OpenAiChat => Self::OpenAiChat,
            Protocol::OpenAiResponses => Self::OpenAiResponses,
            Protocol::Anthropic => Self::Anthropic,
            Protocol::Gemini => Self::Gemini,
            Protocol::Bedrock => Self::Bedrock,
            Protocol::Cohere => Self::Cohere,
        }
    }
}

/// The runs of a row.
#[derive(Debug, Serialize, Deserialize)]
struct Row {
    protocol: String,
    delta_bytes: usize,
    mb_s: Vec<f64>,
}

/// Builds and runs the measuring process and returns the lines of the report.
pub(super) fn measure(plan: &Plan) -> Result<String> {
    let program = super::build_measuring()?;
    let output = Command::new(program).args([COMMAND, &plan.runs.to_string()]).output()?;
    let stderr = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "the measuring program failed: {}", stderr.trim());
    let rows: Vec<Row> = serde_json::from_slice(&output.stdout)?;
    let mut text =
        format!("\n{NAME}: answers of {} MB in pieces of 64 KiB, one core\n", STREAM_BYTES / 1_000_000);
    for row in rows {
        let spread = Spread::of(row.mb_s).context("a row without runs")?;
        let range = format!("({:.0} .. {:.0})", spread.least, spread.most);
        let mark = if spread.median >= LIMIT_MB_S { "ok" } else { "UNDER" };
        writeln!(
            text,
            "  {:<21} {:<12} {:>9.0} MB/s {range:<20} limit {LIMIT_MB_S} MB/s {mark}",
            row.protocol,
            format!("{} B a delta", row.delta_bytes),
            spread.median,
        )?;
    }
    Ok(text)
}

/// Measures and prints the rows as JSON.
pub(crate) fn main(rest: &[String]) -> Result<()> {
    let runs: usize = rest.first().context("the number of runs is missing")?.parse()?;
    let mut rows = Vec::new();
    for (name, protocol) in [
        ("chat", Protocol::OpenAiChat),
        ("responses", Protocol::OpenAiResponses),
        ("anthropic", Protocol::Anthropic),
        ("gemini", Protocol::Gemini),
        ("bedrock", Protocol::Bedrock),
        ("cohere", Protocol::Cohere),
    ] {
        for delta_bytes in DELTA_BYTES {
            let answer = Answer::new(protocol, delta_bytes);
            answer.read()?;
            let mb_s = (0..runs).map(|_| answer.read()).collect::<Result<_>>()?;
            rows.push(Row { protocol: name.to_owned(), delta_bytes, mb_s });
        }
    }
    Ok(serde_json::to_writer(std::io::stdout().lock(), &rows)?)
}

/// A stream and its content.
struct Answer {
    protocol: Protocol,
    stream: Vec<u8>,
    deltas: usize,
    text_bytes: usize,
}

impl Answer {
    fn new(protocol: Protocol, delta_bytes: usize) -> Self {
        let (begin, end) = start_and_end(protocol);
        let mut answer = Self { protocol, stream: begin, deltas: 0, text_bytes: 0 };
        let mut words = WORDS.split_inclusive(' ').cycle();
        while answer.stream.len() < STREAM_BYTES {
            let mut text = String::new();
            while text.len() < delta_bytes {
                text.extend(words.next());
            }
            answer.deltas += 1;
            answer.text_bytes += text.len();
            // Escapes the text as a JSON string.
            let text = serde_json::Value::from(text).to_string();
            answer.stream.extend(delta(protocol, &text, answer.deltas));
        }
        answer.stream.extend(end);
        answer
    }

    /// Decodes the stream and returns the megabytes per second.
    fn read(&self) -> Result<f64> {
        let (mut deltas, mut text_bytes, mut is_finished) = (0, 0, false);
        let begun = Instant::now();
        codewright_llm::decode(self.protocol.into(), self.stream.chunks(PIECE_BYTES), |event| match event {
            ModelEvent::TextDelta(text) => {
                deltas += 1;
                text_bytes += text.len();
            }
            ModelEvent::Finish { .. } => is_finished = true,
            _ => {}
        })?;
        let took = begun.elapsed();
        ensure!(is_finished, "{:?} did not end", self.protocol);
        ensure!(
            (deltas, text_bytes) == (self.deltas, self.text_bytes),
            "{:?} gave {deltas} deltas of {text_bytes} bytes, not {} of {}",
            self.protocol,
            self.deltas,
            self.text_bytes
        );
        Ok(self.stream.len() as f64 / 1e6 / took.as_secs_f64())
    }
}

/// Returns the bytes before the first delta and after the last.
fn start_and_end(protocol: Protocol) -> (Vec<u8>, Vec<u8>) {
    let (begin, end) = match protocol {
        Protocol::Bedrock => {
            let end = [
                ("contentBlockStop", "{\"contentBlockIndex\":0,\"p\":\"abcdefg\"}"),
                ("messageStop", "{\"p\":\"abcd\",\"stopReason\":\"end_turn\"}"),
                (
                    "metadata",
                    "{\"metrics\":{\"latencyMs\":988},\"p\":\"abcdefgh\",\"usage\":{\"inputTokens\":11,\"outputTokens\":22,\"totalTokens\":33}}",
                ),
            ];
            let frame = |(name, body): (&str, &str)| bedrock_frame("event", name, body.as_bytes());
            let begin = frame(("messageStart", "{\"p\":\"abcdefghijk\",\"role\":\"assistant\"}"));
            return (begin, end.into_iter().flat_map(frame).collect());
        }
        Protocol::OpenAiChat => (
            "data: {\"id\":\"chatcmpl-CeZSXOspQlfCrGY6hNwvsVzEtC9\",\"object\":\"chat.completion.chunk\",\"created\":1763801234,\"model\":\"gpt-4.1-2025-04-14\",\"service_tier\":\"default\",\"system_fingerprint\":\"fp_433e8c8649\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\",\"refusal\":null},\"logprobs\":null,\"finish_reason\":null}],\"usage\":null,\"obfuscation\":\"Mm7\"}\n\n",
            "data: {\"id\":\"chatcmpl-CeZSXOspQlfCrGY6hNwvsVzEtC9\",\"object\":\"chat.completion.chunk\",\"created\":1763801234,\"model\":\"gpt-4.1-2025-04-14\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}],\"usage\":null}\n\ndata: [DONE]\n\n",
        ),
        Protocol::OpenAiResponses => (
            "event: response.output_item.added\ndata: {\"type\":\"response.output_item.added\",\"sequence_number\":2,\"output_index\":0,\"item\":{\"id\":\"msg_051ebd7ab60063870069d4fe8c1b7c8194b701e22f1ef094dd\",\"type\":\"message\",\"status\":\"in_progress\",\"content\":[],\"role\":\"assistant\"}}\n\n",
            "event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{\"status\":\"completed\",\"output\":[],\"usage\":{\"input_tokens\":11,\"output_tokens\":22,\"total_tokens\":33}}}\n\n",
        ),
        Protocol::Anthropic => (
            "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_01\",\"role\":\"assistant\",\"content\":[],\"usage\":{\"input_tokens\":11,\"output_tokens\":1}}}\n\nevent: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n",
            "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\nevent: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\",\"stop_sequence\":null},\"usage\":{\"output_tokens\":22}}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
        ),
        Protocol::Cohere => (
            "event: message-start\ndata: {\"id\":\"29f14a5a-11de-4cae-9800-25e4747408ea\",\"type\":\"message-start\",\"delta\":{\"message\":{\"role\":\"assistant\",\"content\":[],\"tool_plan\":\"\",\"tool_calls\":[],\"citations\":[]}}}\n\nevent: content-start\ndata: {\"type\":\"content-start\",\"index\":0,\"delta\":{\"message\":{\"content\":{\"type\":\"text\",\"text\":\"\"}}}}\n\n",
            "event: content-end\ndata: {\"type\":\"content-end\",\"index\":0}\n\nevent: message-end\ndata: {\"type\":\"message-end\",\"delta\":{\"finish_reason\":\"COMPLETE\",\"usage\":{\"billed_units\":{\"input_tokens\":11.0,\"output_tokens\":22.0},\"tokens\":{\"input_tokens\":11.0,\"output_tokens\":22.0}}}}\n\n",
        ),
        Protocol::Gemini => (
            "",
            "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"\"}],\"role\":\"model\"},\"finishReason\":\"STOP\",\"index\":0}],\"usageMetadata\":{\"promptTokenCount\":11,\"candidatesTokenCount\":22,\"totalTokenCount\":33}}\r\n\r\n",
        ),
    };
    (begin.into(), end.into())
}

/// Returns an event with this JSON text. `number` sets the fields that differ from event to event.
fn delta(protocol: Protocol, text: &str, number: usize) -> Vec<u8> {
    let obfuscation = &"vlp3ksfjLlAq8RtZ"[number % 16..];
    let event = match protocol {
        Protocol::Bedrock => {
            let payload =
                format!("{{\"contentBlockIndex\":0,\"delta\":{{\"text\":{text}}},\"p\":\"{obfuscation}\"}}");
            return bedrock_frame("event", "contentBlockDelta", payload.as_bytes());
        }
        Protocol::Cohere => format!(
            "event: content-delta\ndata: {{\"type\":\"content-delta\",\"index\":0,\"delta\":{{\"message\":{{\"content\":{{\"text\":{text}}}}}}}}}\n\n"
        ),
        Protocol::OpenAiChat => format!(
            "data: {{\"id\":\"chatcmpl-CeZSXOspQlfCrGY6hNwvsVzEtC9\",\"object\":\"chat.completion.chunk\",\"created\":1763801234,\"model\":\"gpt-4.1-2025-04-14\",\"service_tier\":\"default\",\"system_fingerprint\":\"fp_433e8c8649\",\"choices\":[{{\"index\":0,\"delta\":{{\"content\":{text}}},\"logprobs\":null,\"finish_reason\":null}}],\"usage\":null,\"obfuscation\":\"{obfuscation}\"}}\n\n"
        ),
        Protocol::OpenAiResponses => format!(
            "event: response.output_text.delta\ndata: {{\"type\":\"response.output_text.delta\",\"content_index\":0,\"delta\":{text},\"item_id\":\"msg_051ebd7ab60063870069d4fe8c1b7c8194b701e22f1ef094dd\",\"logprobs\":[],\"obfuscation\":\"{obfuscation}\",\"output_index\":0,\"sequence_number\":{number}}}\n\n"
        ),
        Protocol::Anthropic => format!(
            "event: content_block_delta\ndata: {{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{{\"type\":\"text_delta\",\"text\":{text}}}}}\n\n"
        ),
        Protocol::Gemini => format!(
            "data: {{\"candidates\":[{{\"content\":{{\"parts\":[{{\"text\":{text}}}],\"role\":\"model\"}},\"index\":0}}],\"usageMetadata\":{{\"promptTokenCount\":29,\"candidatesTokenCount\":{number},\"totalTokenCount\":{},\"promptTokensDetails\":[{{\"modality\":\"TEXT\",\"tokenCount\":29}}]}},\"modelVersion\":\"gemini-3-pro-preview\",\"responseId\":\"QHiLaa6LBrb8vdIPoNztsAg\"}}\r\n\r\n",
            number + 29
        ),
    };
    event.into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_stream_is_read_to_its_end() {
        for protocol in [
            Protocol::OpenAiChat,
            Protocol::OpenAiResponses,
            Protocol::Anthropic,
            Protocol::Gemini,
            Protocol::Bedrock,
            Protocol::Cohere,
        ] {
            let mut answer = Answer { protocol, stream: start_and_end(protocol).0, deltas: 2, text_bytes: 6 };
            answer.stream.extend(delta(protocol, "\"a\\nb\"", 1));
            answer.stream.extend(delta(protocol, "\"def\"", 2));
            answer.stream.extend(start_and_end(protocol).1);
            answer.read().unwrap();
            answer.text_bytes += 1;
            assert!(answer.read().is_err(), "{protocol:?}");
        }
    }
}
