//! Sends the events of a directory to its extensions.
//!
//! Extensions receive what clients of the directory receive. A task reads the feed while an extension wants events; it
//! ends with the extensions.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use codewright_proto::{Event, SessionId, Signal};
use codewright_store::Published;
use serde_json::{Value, json};

use super::messages::to_json;
use super::{DELETED, Extensions, Moment};
use crate::inner::Inner;

/// The number of sessions whose directory is remembered.
const MAX_SESSIONS: usize = 1000;

/// Starts the task that reads the feed until `extensions` are replaced or the program ends.
pub(crate) fn start(inner: &Arc<Inner>, directory: &str, extensions: &Extensions) {
    let wants = [Moment::Notification, Moment::SessionEnd].into_iter().any(|moment| extensions.take(moment));
    if !wants && !extensions.take_events() {
        return;
    }
    let reader = Reader {
        inner: Arc::downgrade(inner),
        directory: directory.to_owned(),
        extensions: extensions.clone(),
        sessions: HashMap::new(),
    };
    let (mut feed, cancel, closed) = (inner.store.subscribe(), inner.cancel.clone(), extensions.closed());
    inner.tasks.spawn(async move {
        let mut reader = reader;
        let read = async {
            while let Ok(published) = feed.next().await {
                reader.receive(&published).await;
            }
        };
        let read = closed.run_until_cancelled(read);
        cancel.run_until_cancelled(read).await;
    });
}

struct Reader {
    inner: Weak<Inner>,
    directory: String,
    extensions: Extensions,
    /// Whether a session belongs to the directory.
    sessions: HashMap<SessionId, bool>,
}

impl Reader {
    async fn receive(&mut self, published: &Published) {
        let (session, directory) = match published {
            Published::Event(envelope) => (Some(envelope.event.session_id()), None),
            Published::Signal { signal, .. } => (signal.session_id(), signal.directory()),
        };
        let is_here = match (directory, session) {
            (Some(directory), _) => directory == self.directory,
            (None, Some(session)) => self.is_ours(session, published).await,
            (None, None) => false,
        };
        if !is_here {
            return;
        }
        if self.extensions.take_events() {
            self.extensions.event(&Arc::new(shown(published)));
        }
        self.notify(published).await;
    }

    /// Reports whether a session belongs to the directory.
    async fn is_ours(&mut self, session: &SessionId, published: &Published) -> bool {
        if let Some(is_ours) = self.sessions.get(session) {
            return *is_ours;
        }
        let created = match published {
            Published::Event(envelope) => match &envelope.event {
                Event::SessionCreated { info, .. } | Event::SessionUpdated { info, .. } => {
                    Some(info.directory.clone())
                }
                _ => None,
            },
            Published::Signal { .. } => None,
        };
        let directory = match (created, self.inner.upgrade()) {
            (Some(directory), _) => Some(directory),
            (None, Some(inner)) => inner.session(session).await.ok().map(|session| session.directory),
            (None, None) => None,
        };
        if self.sessions.len() >= MAX_SESSIONS {
            self.sessions.clear();
        }
        let is_ours = directory.is_some_and(|directory| directory == self.directory);
        self.sessions.insert(session.clone(), is_ours);
        is_ours
    }

    /// Calls the moments that are derived from events.
    async fn notify(&self, published: &Published) {
        let notification = match published {
            Published::Event(envelope) => match &envelope.event {
                Event::PermissionAsked(request) => {
                    json!({ "sessionID": request.session_id, "type": "permission", "request": to_json(request) })
                }
                Event::SessionDeleted { session_id, .. } => {
                    self.extensions.session_end(session_id, DELETED).await;
                    return;
                }
                _ => return,
            },
            Published::Signal { signal, .. } => match &**signal {
                Signal::QuestionAsked(request) => {
                    json!({ "sessionID": request.session_id, "type": "question", "request": to_json(request) })
                }
                _ => return,
            },
        };
        if self.extensions.take(Moment::Notification) {
            self.extensions.call(Moment::Notification, notification, json!({})).await;
        }
    }
}

/// Returns an event as clients receive it.
fn shown(published: &Published) -> Value {
    let mut event = to_json(published);
    // The message of a rejection is meant for the model only.
    if event["type"] == "permission.replied"
        && let Some(properties) = event["properties"].as_object_mut()
    {
        properties.shift_remove("message");
    }
    event
}
