//! The changes of the projected rows that follow from an event, the same for every backend.
//!
//! An event contains the whole new value of one row, so every change is an upsert or a deletion. An event that refers to
//! something missing is an error for the whole append.

use codewright_proto::{Event, Message, Part, Project, Session, SessionId, Todo};
use serde::Serialize;
use serde_json::Value as JsonValue;

use crate::record::Record;
use crate::sql::{self, Value};
use crate::users::{MAX_USAGE_DAYS, day_of};
use crate::{Error, rows};

/// A step of a change. The steps of an event run in their order.
pub(crate) enum Step<'a> {
    /// The session must exist.
    RequireSession(&'a SessionId),
    /// Runs a statement.
    Run {
        /// The statement.
        sql: &'static str,
        /// Its parameters.
        values: Vec<Value<'a>>,
        /// The meaning of a statement that changes no row.
        unchanged: Unchanged<'a>,
    },
}

/// The meaning of a statement that changes no row.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Unchanged<'a> {
    /// Nothing had to change.
    Fine,
    /// An object does not exist.
    Unknown(&'static str, &'a str),
    /// An id belongs to another object.
    InUse(&'static str, &'a str),
    /// The session does not exist, or another one has a message with this id.
    Message { session: &'a SessionId, id: &'a str },
    /// The session or the message does not exist, or another one has a part with this id.
    Part(&'a Part),
    /// The part of a draft, or its session, does not exist.
    Draft(&'a Part),
}

/// A query that the backend makes to explain why a statement changed no row.
pub(crate) enum Exists<'a> {
    Session(&'a str),
    Message { session: &'a str, id: &'a str },
}

impl<'a> Unchanged<'a> {
    /// The queries that explain it, in this order, each with the error if there is no such row.
    pub(crate) fn questions(self) -> Vec<(Exists<'a>, Error)> {
        let session = |id: &'a SessionId| (Exists::Session(id.as_str()), unknown("session", id));
        match self {
            Self::Fine | Self::Unknown(..) | Self::InUse(..) => Vec::new(),
            Self::Message { session: id, .. } => vec![session(id)],
            Self::Draft(part) => vec![session(&part.session_id)],
            Self::Part(part) => {
                let message =
                    Exists::Message { session: part.session_id.as_str(), id: part.message_id.as_str() };
                vec![session(&part.session_id), (message, unknown("message", &part.message_id))]
            }
        }
    }

    /// The error if all of those rows exist; `None` if nothing had to change.
    pub(crate) fn error(self) -> Option<Error> {
        let in_use = |kind, id: &str| Some(Error::IdInUse { kind, id: id.to_owned() });
        match self {
            Self::Fine => None,
            Self::Unknown(kind, id) => Some(unknown(kind, &id)),
            Self::InUse(kind, id) => in_use(kind, id),
            Self::Message { id, .. } => in_use("message", id),
            Self::Part(part) => in_use("part", part.id.as_str()),
            Self::Draft(part) => Some(unknown("part", &part.id)),
        }
    }
}

/// The steps that update the projected rows for an event with a `seq` and the time when it was stored.
pub(crate) fn project<'a>(
    event: &'a Event,
    seq: u64,
    stored: u64,
    record: &'a Record,
) -> Result<Vec<Step<'a>>, Error> {
    Ok(match event {
        Event::SessionCreated { info, .. } => vec![put_session(info, record)?],
        Event::SessionUpdated { session_id, info } => {
            vec![Step::RequireSession(session_id), put_session(info, record)?]
        }
        Event::SessionDeleted { session_id, .. } => vec![Step::Run {
            sql: sql::DELETE_SESSION,
            values: vec![Value::text(session_id.as_str())],
            unchanged: Unchanged::Unknown("session", session_id.as_str()),
        }],
        Event::MessageUpdated { session_id, info } => {
            let put = Step::Run {
                sql: sql::PUT_MESSAGE,
                values: vec![
                    Value::text(info.id().as_str()),
                    Value::number(info.created()),
                    Value::number(stored),
                    Value::Json(record.row()),
                    Value::number(seq),
                    Value::text(session_id.as_str()),
                ],
                unchanged: Unchanged::Message { session: session_id, id: info.id().as_str() },
            };
            std::iter::once(put).chain(put_usage(session_id, info)).collect()
        }
        Event::MessageRemoved { session_id, message_id } => vec![
            Step::RequireSession(session_id),
            run(sql::DELETE_MESSAGE, &[message_id.as_str(), session_id.as_str()]),
        ],
        Event::PartUpdated { part, time, .. } => vec![put_part(part, [*time, stored], record)],
        Event::PartRemoved { session_id, message_id, part_id } => vec![
            Step::RequireSession(session_id),
            run(sql::DELETE_PART, &[part_id.as_str(), message_id.as_str(), session_id.as_str()]),
        ],
        Event::TodoUpdated { session_id, todos } => replace_todos(session_id, todos, stored),
        Event::PermissionAsked(request) => vec![
            Step::RequireSession(&request.session_id),
            Step::Run {
                sql: sql::PUT_REQUEST,
                values: vec![
                    Value::text(request.id.as_str()),
                    Value::text(request.session_id.as_str()),
                    Value::number(stored),
                    Value::Json(record.row()),
                ],
                unchanged: Unchanged::InUse("permission request", request.id.as_str()),
            },
        ],
        // Only the first reply is accepted. A second one finds no request.
        Event::PermissionReplied { session_id, request_id, .. } => vec![Step::Run {
            sql: sql::DELETE_REQUEST,
            values: vec![Value::text(request_id.as_str()), Value::text(session_id.as_str())],
            unchanged: Unchanged::Unknown("permission request", request_id.as_str()),
        }],
    })
}

/// The step that removes the drafts that an event makes obsolete. Not part of the projection, because a replay keeps
/// drafts.
pub(crate) fn settle(event: &Event) -> Option<Step<'_>> {
    let (sql, id) = match event {
        Event::PartUpdated { part, .. } => (sql::DELETE_DRAFT, part.id.as_str()),
        Event::PartRemoved { part_id, .. } => (sql::DELETE_DRAFT, part_id.as_str()),
        Event::MessageRemoved { message_id, .. } => (sql::DELETE_DRAFTS_OF_MESSAGE, message_id.as_str()),
        Event::SessionDeleted { session_id, .. } => (sql::DELETE_DRAFTS_OF_SESSION, session_id.as_str()),
        Event::SessionCreated { .. }
        | Event::SessionUpdated { .. }
        | Event::MessageUpdated { .. }
        | Event::TodoUpdated { .. }
        | Event::PermissionAsked(_)
        | Event::PermissionReplied { .. } => return None,
    };
    Some(run(sql, &[id]))
}

/// The step that stores a part's draft until its next event. The part must exist.
pub(crate) fn put_draft<'a>(part: &'a Part, time: u64, record: &'a Record) -> Step<'a> {
    Step::Run {
        sql: sql::PUT_DRAFT,
        values: vec![
            Value::number(time),
            Value::Json(record.row()),
            Value::text(part.id.as_str()),
            Value::text(part.message_id.as_str()),
            Value::text(part.session_id.as_str()),
        ],
        unchanged: Unchanged::Draft(part),
    }
}

/// The parameters of the statement that saves a project. Projects are found on disk, not created by events.
pub(crate) fn project_values(project: &Project) -> Result<Vec<Value<'_>>, Error> {
    let unreadable = |error| Error::unreadable(format!("project `{}`", project.id), error);
    let sandboxes = serde_json::to_vec(&project.sandboxes).map_err(unreadable)?;
    let commands = project.commands.as_ref().map(serde_json::to_vec).transpose().map_err(unreadable)?;
    let icon = rows::ICON
        .map(|(name, _)| project.icon.as_ref().and_then(|icon| icon.get(name)).and_then(JsonValue::as_str));
    Ok(vec![
        Value::text(project.id.as_str()),
        Value::text(&project.worktree),
        Value::maybe(project.vcs.as_deref()),
        Value::maybe(project.name.as_deref()),
        Value::number(project.time.created),
        Value::number(project.time.updated),
        Value::maybe_number(project.time.initialized),
        Value::Json(sandboxes.into()),
        Value::maybe(icon[0]),
        Value::maybe(icon[1]),
        Value::maybe(icon[2]),
        commands.map_or(Value::Null, |commands| Value::Json(commands.into())),
    ])
}

fn run<'a>(sql: &'static str, ids: &[&'a str]) -> Step<'a> {
    let values = ids.iter().map(|id| Value::text(id)).collect();
    Step::Run { sql, values, unchanged: Unchanged::Fine }
}

fn put_part<'a>(part: &'a Part, [created, updated]: [u64; 2], record: &'a Record) -> Step<'a> {
    Step::Run {
        sql: sql::PUT_PART,
        values: vec![
            Value::text(part.id.as_str()),
            Value::number(created),
            Value::number(updated),
            Value::Json(record.row()),
            Value::text(part.message_id.as_str()),
            Value::text(part.session_id.as_str()),
        ],
        unchanged: Unchanged::Part(part),
    }
}

/// Counts the usage of an answer for the owner of its session.
fn put_usage<'a>(session: &'a SessionId, info: &'a Message) -> Vec<Step<'a>> {
    let Message::Assistant(answer) = info else { return Vec::new() };
    let used = answer.tokens.all();
    if used == 0 && answer.cost == 0.0 {
        return Vec::new();
    }
    let day = day_of(answer.time.created);
    let values = vec![
        Value::text(answer.id.as_str()),
        Value::number(day),
        Value::number(used),
        Value::Real(answer.cost),
        Value::text(session.as_str()),
        Value::number(answer.time.created),
    ];
    vec![
        Step::Run { sql: sql::PUT_USAGE, values, unchanged: Unchanged::Fine },
        Step::Run {
            sql: sql::TRIM_USAGE,
            values: vec![Value::number(day.saturating_sub(MAX_USAGE_DAYS))],
            unchanged: Unchanged::Fine,
        },
    ]
}

fn replace_todos<'a>(session: &'a SessionId, todos: &'a [Todo], time: u64) -> Vec<Step<'a>> {
    let insert = |(position, todo): (i64, &'a Todo)| Step::Run {
        sql: sql::INSERT_TODO,
        values: vec![
            Value::text(session.as_str()),
            Value::Int(position),
            Value::text(&todo.content),
            Value::text(&todo.status),
            Value::text(&todo.priority),
            Value::number(time),
            Value::number(time),
        ],
        unchanged: Unchanged::Fine,
    };
    let mut steps = vec![Step::RequireSession(session), run(sql::DELETE_TODOS, &[session.as_str()])];
    steps.extend((0..).zip(todos).map(insert));
    steps
}

/// Writes a session's row: a column for each field, to filter and sort lists, and one with the whole JSON.
fn put_session<'a>(info: &'a Session, record: &'a Record) -> Result<Step<'a>, Error> {
    let summary = info.summary.as_ref();
    let tokens = &info.tokens;
    let values = vec![
        Value::text(info.id.as_str()),
        Value::maybe(info.workspace_id.as_deref()),
        Value::maybe(info.parent_id.as_ref().map(SessionId::as_str)),
        Value::text(&info.slug),
        Value::text(&info.directory),
        Value::maybe(info.path.as_deref()),
        Value::text(&info.title),
        Value::text(&info.version),
        Value::maybe(info.share.as_ref().map(|share| share.url.as_str())),
        Value::maybe_number(summary.map(|summary| summary.additions)),
        Value::maybe_number(summary.map(|summary| summary.deletions)),
        Value::maybe_number(summary.map(|summary| summary.files)),
        json(summary.and_then(|summary| summary.diffs.as_ref()))?,
        json(info.metadata.as_ref())?,
        Value::Real(info.cost),
        Value::number(tokens.input),
        Value::number(tokens.output),
        Value::number(tokens.reasoning),
        Value::number(tokens.cache.read),
        Value::number(tokens.cache.write),
        Value::maybe_number(tokens.total),
        json(info.revert.as_ref())?,
        json(info.permission.as_ref())?,
        Value::maybe(info.agent.as_deref()),
        json(info.model.as_ref())?,
        json(info.access.as_ref())?,
        Value::maybe(info.access.as_ref().map(|access| access.owner.as_str())),
        Value::maybe(info.access.as_ref().and_then(|access| access.team.as_deref())),
        Value::number(info.time.created),
        Value::number(info.time.updated),
        Value::maybe_number(info.time.compacting),
        Value::maybe_number(info.time.archived),
        Value::Json(record.row()),
        Value::text(info.project_id.as_str()),
    ];
    let unchanged = Unchanged::Unknown("project", info.project_id.as_str());
    Ok(Step::Run { sql: sql::PUT_SESSION, values, unchanged })
}

fn json<T: Serialize>(value: Option<&T>) -> Result<Value<'static>, Error> {
    let written = value.map(serde_json::to_vec).transpose();
    let written = written.map_err(|error| Error::unreadable("session", error))?;
    Ok(written.map_or(Value::Null, |json| Value::Json(json.into())))
}

pub(crate) fn unknown(kind: &'static str, id: &impl ToString) -> Error {
    Error::Unknown { kind, id: id.to_string() }
}
