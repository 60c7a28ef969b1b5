//! A recorded case.

use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Map, Value, json};

/// A recorded case.
pub(super) struct Recording {
    pub(super) name: String,
    pub(super) events: Vec<Value>,
    /// The messages of the session after the last event, if they were recorded.
    pub(super) messages: Option<Vec<Value>>,
}

/// The user's reply to a permission request or a question.
pub(super) struct Reply {
    /// The body of the request, or `None` if a question was rejected.
    pub(super) body: Option<Value>,
}

impl Recording {
    pub(super) fn read(folder: &Path, name: &str) -> Result<Self> {
        let text = fs::read_to_string(folder.join("events").join(format!("{name}.jsonl")))?;
        let mut events = text.lines().map(serde_json::from_str).collect::<Result<Vec<Value>, _>>()?;
        if name == "doom-loop-same-step" {
            // The recording begins with the end of another case.
            let created = events.iter().rev().find(|event| event["type"] == "session.created");
            let own = created.map(|event| event["properties"]["sessionID"].clone()).unwrap_or_default();
            events.retain(|event| event["properties"]["sessionID"] == own);
        }
        let path = folder.join("sessions").join(format!("{name}.json"));
        let messages = match fs::read_to_string(&path) {
            Ok(text) => {
                let mut session: Value = serde_json::from_str(&text)?;
                serde_json::from_value(session["messages"].take()).ok()
            }
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(error.into()),
        };
        Ok(Self { name: name.to_owned(), events, messages })
    }

    /// Returns every session as it was created, the one of the case first.
    pub(super) fn sessions(&self) -> Vec<&Value> {
        let created = self.events.iter().filter(|event| event["type"] == "session.created");
        created.map(|event| &event["properties"]["info"]).collect()
    }

    /// Returns the index of the session whose messages were recorded.
    pub(super) fn message_session(&self) -> usize {
        let of = self.messages.iter().flatten().next().map(|message| &message["info"]["sessionID"]);
        let at = of.and_then(|of| self.sessions().iter().position(|info| info["id"] == *of));
        at.unwrap_or(0)
    }

    /// Returns the request body that creates the session of the case.
    pub(super) fn session_input(&self) -> Result<Value> {
        let info = *self.sessions().first().context("no session was created")?;
        let mut body = Map::new();
        if let Some(title) = info["title"].as_str().filter(|title| !title.starts_with("New session")) {
            body.insert("title".to_owned(), title.into());
        }
        if info["permission"].is_array() {
            body.insert("permission".to_owned(), info["permission"].clone());
        }
        Ok(body.into())
    }

    /// Returns the messages of a session with their parts as the events describe them, including removed ones.
    pub(super) fn transcript(&self, session: &str) -> Vec<(Value, Vec<Value>)> {
        let mut order: Vec<&str> = Vec::new();
        let mut infos: BTreeMap<&str, &Value> = BTreeMap::new();
        let mut parts: BTreeMap<&str, Vec<&Value>> = BTreeMap::new();
        for event in &self.events {
            let (properties, kind) = (&event["properties"], event["type"].as_str());
            if properties["sessionID"] != session {
                continue;
            }
            if kind == Some("message.updated") {
                let info = &properties["info"];
                let id = info["id"].as_str().unwrap_or_default();
                if infos.insert(id, info).is_none() {
                    order.push(id);
                }
            } else if kind == Some("message.part.updated") {
                let part = &properties["part"];
                let of = parts.entry(part["messageID"].as_str().unwrap_or_default()).or_default();
                match of.iter_mut().find(|other| other["id"] == part["id"]) {
                    Some(other) => *other = part,
                    None => of.push(part),
                }
            }
        }
        let message = |id: &&str| {
            let of = parts.get(id).map(|parts| parts.iter().map(|&part| part.clone()).collect());
            Some(((*infos.get(id)?).clone(), of.unwrap_or_default()))
        };
        order.iter().filter_map(message).collect()
    }

    /// Returns the request bodies of the user's prompts to a session, in order.
    pub(super) fn prompts(&self, session: &str) -> Vec<Value> {
        let transcript = self.transcript(session);
        let prompts = transcript.iter().filter(|(info, parts)| {
            info["role"] == "user"
                && parts.first().is_some_and(|part| part["type"] == "text" && part["synthetic"] != true)
        });
        let mut bodies: Vec<Value> = prompts.map(|(info, parts)| prompt(info, parts)).collect();
        if self.name == "overflow-error-compaction" {
            // After compaction the program repeats the prompt that did not fit.
            bodies.truncate(2);
        }
        bodies
    }

    /// Returns the user's replies to permission requests and questions, in order.
    pub(super) fn replies(&self) -> VecDeque<Reply> {
        let replies = self.events.iter().filter_map(|event| {
            let properties = &event["properties"];
            let body = match event["type"].as_str()? {
                "permission.replied" => Some(self.permission_reply(&properties["reply"])),
                "question.replied" => Some(json!({"answers": properties["answers"]})),
                "question.rejected" => None,
                _ => return None,
            };
            Some(Reply { body })
        });
        replies.collect()
    }

    fn permission_reply(&self, reply: &Value) -> Value {
        match self.name.as_str() {
            "permission-reject-message" => json!({"reply": reply, "message": "use python instead"}),
            _ => json!({"reply": reply}),
        }
    }
}

fn prompt(info: &Value, parts: &[Value]) -> Value {
    let parts: Vec<_> = parts.iter().filter(|part| part["type"] == "text").collect();
    let parts: Vec<_> = parts.iter().map(|part| json!({"type": "text", "text": part["text"]})).collect();
    let mut body = Map::new();
    body.insert("parts".to_owned(), parts.into());
    if info["model"]["providerID"] != "mockchat" || info["model"]["modelID"] != "plain-model" {
        body.insert("model".to_owned(), info["model"].clone());
    }
    for key in ["system", "tools", "format"] {
        if !info[key].is_null() {
            body.insert(key.to_owned(), info[key].clone());
        }
    }
    body.into()
}
