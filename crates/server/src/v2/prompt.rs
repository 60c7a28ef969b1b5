//! Prompts: as newer clients send them, as they are stored, and as they are shown again.

use codewright_proto::{Part, PartBody, PartInput, TextPart, media_type};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// A prompt as a client sends it.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Prompt {
    text: String,
    #[serde(default)]
    files: Vec<File>,
    #[serde(default)]
    agents: Vec<Agent>,
}

#[derive(Debug, Clone, Deserialize)]
struct File {
    uri: String,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    source: Option<Source>,
}

#[derive(Debug, Clone, Deserialize)]
struct Agent {
    name: String,
    #[serde(default)]
    source: Option<Source>,
}

/// Where in the text something is named.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Source {
    start: f64,
    end: f64,
    text: String,
}

impl Prompt {
    /// The parts that the prompt is stored as.
    pub(crate) fn parts(self) -> Vec<PartInput> {
        let text = PartInput::text(self.text);
        let files = self.files.into_iter().map(|file| PartInput::File {
            id: None,
            mime: mime(&file.uri).to_owned(),
            filename: file.name,
            source: file.source.map(|at| {
                let text = json!({"value": at.text, "start": at.start, "end": at.end});
                json!({"type": "file", "path": path(&file.uri).unwrap_or(&file.uri), "text": text})
            }),
            url: file.uri,
        });
        let agents = self.agents.into_iter().map(|agent| PartInput::Agent {
            id: None,
            name: agent.name,
            source: agent.source.map(|at| json!({"value": at.text, "start": at.start, "end": at.end})),
        });
        std::iter::once(text).chain(files).chain(agents).collect()
    }

    /// Whether a stored prompt is this one, sent before. Files are told apart by their number alone:
    /// what they say may have been stored in place of their address.
    pub(crate) fn is(&self, stored: &[Part]) -> bool {
        let Some(said) = said(stored) else { return false };
        let names = |agents: &Value| -> Vec<String> {
            let agents = agents.as_array().into_iter().flatten();
            agents.filter_map(|agent| Some(agent["name"].as_str()?.to_owned())).collect()
        };
        let own: Vec<_> = self.agents.iter().map(|agent| agent.name.clone()).collect();
        said["text"] == *self.text
            && said["files"].as_array().map_or(0, Vec::len) == self.files.len()
            && names(&said["agents"]) == own
    }
}

/// What a user said: text, files and agents; `None` for what the program said on their behalf.
pub(crate) fn said(parts: &[Part]) -> Option<Value> {
    let mut texts: Vec<&str> = Vec::new();
    let (mut files, mut agents) = (Vec::new(), Vec::new());
    let mut is_said = false;
    for part in parts {
        match &part.body {
            PartBody::Text(TextPart { text, synthetic, .. }) if *synthetic != Some(true) => {
                is_said = true;
                texts.push(text);
            }
            PartBody::Subtask { prompt, agent, .. } => {
                is_said = true;
                texts.push(prompt);
                agents.push(json!({ "name": agent }));
            }
            PartBody::File { mime, filename, url, source } => {
                is_said = true;
                let mut file = json!({"uri": url, "mime": mime});
                if let Some(name) = filename {
                    file["name"] = json!(name);
                }
                put_source(&mut file, source.as_ref().map(|source| &source["text"]));
                files.push(file);
            }
            PartBody::Agent { name, source } => {
                is_said = true;
                let mut agent = json!({ "name": name });
                put_source(&mut agent, source.as_ref());
                agents.push(agent);
            }
            PartBody::Text(_)
            | PartBody::Reasoning { .. }
            | PartBody::Tool(_)
            | PartBody::StepStart { .. }
            | PartBody::StepFinish(_)
            | PartBody::Snapshot { .. }
            | PartBody::Patch { .. }
            | PartBody::Retry { .. }
            | PartBody::Compaction { .. } => {}
        }
    }
    let mut said = json!({"text": texts.join("\n")});
    for (key, all) in [("files", files), ("agents", agents)] {
        if !all.is_empty() {
            said[key] = all.into();
        }
    }
    is_said.then_some(said)
}

/// What the program said on a user's behalf.
pub(crate) fn told(parts: &[Part]) -> String {
    super::message::words(parts)
}

fn put_source(shown: &mut Value, source: Option<&Value>) {
    let Some(source) = source else { return };
    if let (Some(start), Some(end), Some(text)) =
        (source["start"].as_f64(), source["end"].as_f64(), source["value"].as_str())
    {
        shown["source"] = json!({"start": number(start), "end": number(end), "text": text});
    }
}

/// A whole number without a fraction, as it was sent.
fn number(value: f64) -> Value {
    if value.fract() == 0.0 && value.abs() < 9e15 { json!(value as i64) } else { json!(value) }
}

/// The path of a `file:` address, as it is written there.
fn path(uri: &str) -> Option<&str> {
    let path = uri.strip_prefix("file://")?;
    Some(path.split(['?', '#']).next().unwrap_or(path))
}

/// The media type of a file, by its address.
fn mime(uri: &str) -> &str {
    if let Some(data) = uri.strip_prefix("data:") {
        let kind = data.split([';', ',']).next().unwrap_or_default();
        return if kind.is_empty() { "text/plain" } else { kind };
    }
    media_type(path(uri).unwrap_or(uri))
}

#[cfg(test)]
mod tests {
    use codewright_proto::{MessageId, PartId, SessionId};

    use super::*;

    #[test]
    fn a_file_is_known_by_its_address() {
        for (uri, expected) in [
            ("file:///a/b.txt", "text/plain"),
            ("file:///a/b.rs?start=1", "text/plain"),
            ("file:///a/B.PNG", "image/png"),
            ("file:///a/b/", "application/x-directory"),
            ("data:image/gif;base64,xx", "image/gif"),
            ("data:,hi", "text/plain"),
            ("https://x/y.pdf", "application/pdf"),
            ("", "text/plain"),
        ] {
            assert_eq!(mime(uri), expected, "{uri}");
        }
    }

    #[test]
    fn what_was_sent_is_shown_again() {
        let sent = json!({
            "text": "look @a.txt @general",
            "files": [{"uri": "file:///p/a.txt", "source": {"start": 5, "end": 11, "text": "@a.txt"}}],
            "agents": [{"name": "general", "source": {"start": 12, "end": 20, "text": "@general"}}],
        });
        let prompt: Prompt = serde_json::from_value(sent.clone()).unwrap();
        let stored: Vec<Part> = prompt.clone().parts().into_iter().map(stored).collect();
        let mut expected = sent;
        expected["files"][0]["mime"] = json!("text/plain");
        assert_eq!(said(&stored), Some(expected));
        assert!(prompt.is(&stored) && !prompt.is(&stored[..2]) && !prompt.is(&[]));
    }

    fn stored(input: PartInput) -> Part {
        let body = match input {
            PartInput::Text { text, .. } => {
                PartBody::Text(TextPart { text: text.into(), ..TextPart::default() })
            }
            PartInput::File { mime, filename, url, source, .. } => {
                PartBody::File { mime, filename, url, source }
            }
            PartInput::Agent { name, source, .. } => PartBody::Agent { name, source },
            PartInput::Subtask { prompt, description, agent, model, command, .. } => {
                PartBody::Subtask { prompt, description, agent, model, command }
            }
        };
        Part {
            id: PartId::parse("prt_1").unwrap(),
            session_id: SessionId::parse("ses_1").unwrap(),
            message_id: MessageId::parse("msg_1").unwrap(),
            body,
        }
    }
}
