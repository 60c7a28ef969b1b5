//! Values from the columns of rows, the same for every backend.

use codewright_proto::{
    Envelope, Event, EventId, Map, Message, MessageId, Part, PartBody, PartId, PermissionRequest, Project,
    ProjectId, ProjectTime, Session, SessionId,
};
use serde_json::value::RawValue;

use crate::record::Record;
use crate::{Error, Logged, upcast};

/// The size of a page of events, as JSON. A single event may be larger.
pub(crate) const MAX_PAGE_BYTES: usize = 8 * 1024 * 1024;
/// The maximum number of pending permission requests in a list.
pub(crate) const MAX_REQUESTS: u64 = 10_000;
/// The maximum number of to-dos in a list.
pub(crate) const MAX_TODOS: u64 = 10_000;
/// The maximum number of projects in a list.
pub(crate) const MAX_PROJECTS: u64 = 10_000;

/// The maximum number of events in one response to another store.
pub(crate) const MAX_HISTORY_EVENTS: usize = 50_000;
/// The size of the events in one response to another store. A single event may be larger.
pub(crate) const MAX_HISTORY_BYTES: usize = 16 * 1024 * 1024;

/// A row of the log.
pub(crate) struct EventRow<'a> {
    pub(crate) position: u64,
    pub(crate) id: &'a str,
    pub(crate) seq: u64,
    pub(crate) kind: &'a str,
    pub(crate) data: &'a str,
    pub(crate) time: u64,
}

impl EventRow<'_> {
    pub(crate) fn envelope(&self) -> Result<Envelope, Error> {
        let id = self.id;
        Ok(Envelope {
            id: EventId::parse(id).map_err(|error| Error::unreadable(format!("event `{id}`"), error))?,
            position: self.position,
            seq: self.seq,
            time: self.time,
            event: upcast::decode(self.kind, self.data)?,
        })
    }
}

/// A row of the log for another store.
pub(crate) struct HistoryRow<'a> {
    pub(crate) id: &'a str,
    pub(crate) session: &'a str,
    pub(crate) seq: u64,
    pub(crate) kind: &'a str,
    pub(crate) data: &'a str,
}

impl HistoryRow<'_> {
    /// The event in the current schema.
    pub(crate) fn logged(&self) -> Result<Logged, Error> {
        let event = upcast::decode(self.kind, self.data)?;
        let record = Record::new(&event)?;
        let json = String::from_utf8_lossy(record.properties()).into_owned();
        Ok(Logged {
            id: self.id.to_owned(),
            aggregate_id: self.session.to_owned(),
            seq: self.seq,
            kind: format!("{}.{}", event.name(), event.version()),
            data: RawValue::from_string(json).map_err(|error| Error::unreadable("event", error))?,
        })
    }
}

/// A message, with the ids that the row has in separate columns.
pub(crate) fn message(id: &str, session: &SessionId, data: &str) -> Result<Message, Error> {
    let unreadable = |error| Error::unreadable(format!("message `{id}`"), error);
    let id = MessageId::parse(id).map_err(|error| Error::unreadable("message", error))?;
    parse_message(&id, session, data).map_err(unreadable)
}

/// Parses a message from its row's JSON and ids.
pub(crate) fn parse_message(
    id: &MessageId,
    session: &SessionId,
    data: &str,
) -> Result<Message, serde_json::Error> {
    let fields = data.strip_prefix('{').unwrap_or(data);
    let json = format!(r#"{{"id":"{id}","sessionID":"{session}",{fields}"#);
    serde_json::from_str(&json)
}

/// A part, with the ids that the row has in separate columns.
pub(crate) fn part(id: &str, session: &SessionId, message: &MessageId, data: &str) -> Result<Part, Error> {
    let body: PartBody =
        serde_json::from_str(data).map_err(|error| Error::unreadable(format!("part `{id}`"), error))?;
    Ok(Part {
        id: PartId::parse(id).map_err(|error| Error::unreadable("part", error))?,
        session_id: session.clone(),
        message_id: message.clone(),
        body,
    })
}

/// The draft of a part.
pub(crate) fn draft(id: &str, session: &SessionId, message: &str, data: &str) -> Result<Part, Error> {
    let body: PartBody = serde_json::from_str(data)
        .map_err(|error| Error::unreadable(format!("draft of part `{id}`"), error))?;
    Ok(Part {
        id: PartId::parse(id).map_err(|error| Error::unreadable("draft", error))?,
        session_id: session.clone(),
        message_id: MessageId::parse(message).map_err(|error| Error::unreadable("draft", error))?,
        body,
    })
}

/// A permission request without a reply.
pub(crate) fn request(id: &str, data: &str) -> Result<PermissionRequest, Error> {
    serde_json::from_str(data).map_err(|error| Error::unreadable(format!("permission request `{id}`"), error))
}

/// The fields of a project's icon and their columns.
pub(crate) const ICON: [(&str, &str); 3] =
    [("url", "icon_url"), ("override", "icon_url_override"), ("color", "icon_color")];

/// A row of projects.
pub(crate) struct ProjectRow {
    pub(crate) id: String,
    pub(crate) worktree: String,
    pub(crate) vcs: Option<String>,
    pub(crate) name: Option<String>,
    /// In the order of [`ICON`].
    pub(crate) icon: [Option<String>; 3],
    pub(crate) commands: Option<String>,
    pub(crate) sandboxes: String,
    pub(crate) created: u64,
    pub(crate) updated: u64,
    pub(crate) initialized: Option<u64>,
}

impl ProjectRow {
    pub(crate) fn project(self) -> Result<Project, Error> {
        let id = self.id;
        let unreadable = |error| Error::unreadable(format!("project `{id}`"), error);
        let sandboxes = serde_json::from_str(&self.sandboxes).map_err(unreadable)?;
        let commands = self.commands.as_deref().map(serde_json::from_str).transpose().map_err(unreadable)?;
        let mut icon = Map::new();
        for ((name, _), value) in ICON.into_iter().zip(self.icon) {
            if let Some(value) = value {
                icon.insert(name.to_owned(), value.into());
            }
        }
        Ok(Project {
            id: ProjectId(id.as_str().into()),
            worktree: self.worktree,
            vcs: self.vcs,
            name: self.name,
            icon: (!icon.is_empty()).then_some(icon),
            commands,
            time: ProjectTime { created: self.created, updated: self.updated, initialized: self.initialized },
            sandboxes,
        })
    }
}

/// Returns the session in an event of the log, or `None` if the event has none.
pub(crate) fn session_of(kind: &str, data: &str) -> Result<Option<Session>, Error> {
    Ok(match upcast::decode(kind, data)? {
        Event::SessionCreated { info, .. } | Event::SessionUpdated { info, .. } => Some(info),
        Event::SessionDeleted { .. }
        | Event::MessageUpdated { .. }
        | Event::MessageRemoved { .. }
        | Event::PartUpdated { .. }
        | Event::PartRemoved { .. }
        | Event::TodoUpdated { .. }
        | Event::PermissionAsked(_)
        | Event::PermissionReplied { .. } => None,
    })
}
