//! The export of a session, message by message.

use std::collections::VecDeque;
use std::sync::Arc;

use codewright_proto::{Map, MessageId, SessionId};
use serde_json::Value;

use super::provenance::{self, Rest};
use super::sanitize;
use crate::Error;
use crate::inner::Inner;

/// Whether an export contains texts, paths and results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Texts {
    /// The export contains them.
    Whole,
    /// Texts, paths and results are replaced by their kind and id.
    Redacted,
}

/// An export in progress. Only one message is in memory at a time.
pub struct Export {
    inner: Arc<Inner>,
    session: SessionId,
    texts: Texts,
    info: Value,
    items: VecDeque<Item>,
    rest: Rest,
}

/// A message that is still to be exported.
enum Item {
    Ours(MessageId),
    /// A message of unknown shape, by its index among those that were kept.
    Kept(usize),
}

impl Export {
    pub(super) async fn open(inner: Arc<Inner>, id: &SessionId, texts: Texts) -> Result<Self, Error> {
        let session = inner.session(id).await?;
        let rest = provenance::load(&inner, id).await?.map(|known| known.rest).unwrap_or_default();
        let mut info = value(&session)?;
        rest.complete(id.as_str(), &mut info);
        // Who set a rule says nothing on another machine, where all of them only restrict.
        let rules = info.get_mut("permission").and_then(Value::as_array_mut);
        for rule in rules.into_iter().flatten().filter_map(Value::as_object_mut) {
            rule.shift_remove("by");
        }
        if texts == Texts::Redacted {
            sanitize::session(&mut info);
        }
        let infos = inner.store.infos(id).await?;
        let mut items: Vec<_> = infos
            .iter()
            .map(|info| (info.created(), info.id().to_string(), Item::Ours(info.id().clone())))
            .collect();
        drop(infos);
        for (n, kept) in rest.messages().iter().enumerate() {
            let created = kept["info"]["time"]["created"].as_u64().unwrap_or_default();
            let id = kept["info"]["id"].as_str().unwrap_or_default().to_owned();
            items.push((created, id, Item::Kept(n)));
        }
        items.sort_by(|a, b| (a.0, &a.1).cmp(&(b.0, &b.1)));
        let items = items.into_iter().map(|(_, _, item)| item).collect();
        Ok(Self { inner, session: id.clone(), texts, info, items, rest })
    }

    /// Returns the session's own fields.
    #[must_use]
    pub fn info(&self) -> &Value {
        &self.info
    }

    /// Returns the next message with its parts, oldest first.
    pub async fn next(&mut self) -> Result<Option<Value>, Error> {
        while let Some(item) = self.items.pop_front() {
            let mut message = match item {
                Item::Kept(n) => self.rest.messages().get(n).cloned().unwrap_or_default(),
                // The message was removed after the export started.
                Item::Ours(id) => match self.ours(&id).await? {
                    Some(message) => message,
                    None => continue,
                },
            };
            if self.texts == Texts::Redacted {
                sanitize::message(&mut message);
            }
            return Ok(Some(message));
        }
        Ok(None)
    }

    /// Returns the fields of the imported document other than the session and its messages.
    #[must_use]
    pub fn others(&self) -> Map {
        let mut others = Value::Object(Map::new());
        if self.texts == Texts::Whole {
            self.rest.complete("", &mut others);
        }
        others.as_object().cloned().unwrap_or_default()
    }

    async fn ours(&self, id: &MessageId) -> Result<Option<Value>, Error> {
        let Some(message) = self.inner.store.message(&self.session, id).await? else { return Ok(None) };
        let mut message = value(&message)?;
        if self.rest.is_empty() {
            return Ok(Some(message));
        }
        self.rest.complete(id.as_str(), &mut message["info"]);
        if let Some(parts) = message["parts"].as_array_mut() {
            for part in parts.iter_mut() {
                let id = part["id"].as_str().unwrap_or_default().to_owned();
                self.rest.complete(&id, part);
            }
            let kept = self.rest.parts_of(id.as_str());
            if !kept.is_empty() {
                parts.extend(kept.iter().cloned());
                parts.sort_by(|a, b| a["id"].as_str().cmp(&b["id"].as_str()));
            }
        }
        Ok(Some(message))
    }
}

impl std::fmt::Debug for Export {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Export").field("session", &self.session).finish_non_exhaustive()
    }
}

/// Converts a value to JSON. A whole cost becomes an integer, as other programs write it.
fn value(value: &impl serde::Serialize) -> Result<Value, Error> {
    let mut value = serde_json::to_value(value).map_err(|error| Error::invalid(error.to_string()))?;
    whole_cost(&mut value);
    if let Some(info) = value.get_mut("info") {
        whole_cost(info);
    }
    for part in value.get_mut("parts").and_then(Value::as_array_mut).into_iter().flatten() {
        whole_cost(part);
    }
    Ok(value)
}

fn whole_cost(value: &mut Value) {
    let Some(cost) = value.get_mut("cost") else { return };
    if let Some(number) = cost.as_f64().filter(|number| number.fract() == 0.0 && (0.0..1e15).contains(number))
    {
        *cost = (number as u64).into();
    }
}
