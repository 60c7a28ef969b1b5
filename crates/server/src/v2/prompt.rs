//! Prompts of the v2 API, and their conversion to and from stored parts.

use codewright_proto::{Part, PartBody, PartInput, TextPart, media_type};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// A prompt in a request.
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

/// The position of a mention in the text of the prompt.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Source {
    start: f64,
    end: f64,
    text: String,
}

impl Prompt {
    /// Converts the prompt into the parts that are stored.
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
            checked: None,
        });
        let agents = self.agents.into_iter().map(|agent| PartInput::Agent {
            id: None,
            name: agent.name,
            source: agent.source.map(|at| json!({"value": at.text, "start": at.start, "end": at.end})),
        });
        std::iter::once(text).chain(files).chain(agents).collect()
    }

    /// Returns whether a stored prompt is the same as this one. Of files only the number is compared, because their
    /// content may have been stored instead of their URL.
    pub(crate) fn matches(&self, stored: &[Part]) -> bool {
        let Some(prompt) = user_prompt(stored) else { return false };
        let names = |agents: &Value| -> Vec<String> {
            let agents = agents.as_array().into_iter().flatten();
            agents.filter_map(|agent| Some(agent["name"].as_str()?.to_owned())).collect()
        };
        let own: Vec<_> = self.agents.iter().map(|agent| agent.name.clone()).collect();
        prompt["text"] == *self.text
            && prompt["files"].as_array().map_or(0, Vec::len) == self.files.len()
            && names(&prompt["agents"]) == own
    }
}

/// Returns the text, files and agents of a prompt, or `None` if the program wrote the prompt.
pub(crate) fn user_prompt(parts: &[Part]) -> Option<Value> {
    let mut texts: Vec<&str> = Vec::new();
    let (mut files, mut agents) = (Vec::new(), Vec::new());
    let mut is_of_user = false;
    for part in parts {
        match &part.body {
            PartBody::Text(TextPart { text, synthetic, .. }) if *synthetic != Some(true) => {
                is_of_user = true;
                texts.push(text);
            }
            PartBody::Subtask { prompt, agent, .. } => {
                is_of_user = true;
                texts.push(prompt);
                agents.push(json!({ "name": agent }));
            }
            PartBody::File { mime, filename, url, source } => {
                is_of_user = true;
                let mut file = json!({"uri": url, "mime": mime});
                if let Some(name) = filename {
                    file["name"] = json!(name);
                }
                insert_source(&mut file, source.as_ref().map(|source| &source["text"]));
                files.push(file);
            }
            PartBody::Agent { name, source } => {
                is_of_user = true;
                let mut agent = json!({ "name": name });
                insert_source(&mut agent, source.as_ref());
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
    let mut prompt = json!({"text": texts.join("\n")});
    for (key, all) in [("files", files), ("agents", agents)] {
        if !all.is_empty() {
            prompt[key] = all.into();
        }
    }
    is_of_user.then_some(prompt)
}

/// Returns the text of a prompt that the program wrote.
pub(crate) fn synthetic_text(parts: &[Part]) -> String {
    super::message::visible_text(parts)
}

fn insert_source(target: &mut Value, source: Option<&Value>) {
    let Some(source) = source else { return };
    if let (Some(start), Some(end), Some(text)) =
        (source["start"].as_f64(), source["end"].as_f64(), source["value"].as_str())
    {
        target["source"] = json!({"start": number(start), "end": number(end), "text": text});
    }
}

/// Converts a number; an integer gets no fraction, as in the request.
fn number(value: f64) -> Value {
    if value.fract() == 0.0 && value.abs() < 9e15 { json!(value as i64) } else { json!(value) }
}

/// Returns the path of a `file:` URL without decoding it.
fn path(uri: &str) -> Option<&str> {
    let path = uri.strip_prefix("file://")?;
    Some(path.split(['?', '#']).next().unwrap_or(path))
}

/// Returns the media type of a file, derived from its URL.
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
    fn the_url_decides_the_media_type() {
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
    fn a_prompt_survives_the_conversion_to_parts_and_back() {
        let sent = json!({
            "text": "look @a.txt @general",
            "files": [{"uri": "file:///p/a.txt", "source": {"start": 5, "end": 11, "text": "@a.txt"}}],
            "agents": [{"name": "general", "source": {"start": 12, "end": 20, "text": "@general"}}],
        });
        let prompt: Prompt = serde_json::from_value(sent.clone()).unwrap();
        let stored: Vec<Part> = prompt.clone().parts().into_iter().map(stored).collect();
        let mut expected = sent;
        expected["files"][0]["mime"] = json!("text/plain");
        assert_eq!(user_prompt(&stored), Some(expected));
        assert!(prompt.matches(&stored) && !prompt.matches(&stored[..2]) && !prompt.matches(&[]));
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
