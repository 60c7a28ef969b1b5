//! Prompts and messages in the v2 API.

use std::collections::VecDeque;

use axum::Json;
use axum::extract::State;
use codewright_proto::{Message, MessageId, MessageWithParts, PromptInput, SessionId};
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use super::history::admission;
use super::page::{self, Anchor, Direction, Order};
use super::{find_session, parse_id};
use crate::Error;
use crate::auth::{Who, check_parts};
use crate::extract::{One, Params, Payload, Two};
use crate::state::App;
use crate::v2::PAGE_BYTES;
use crate::v2::message::{Reason, message};
use crate::v2::prompt::Prompt;

/// The default size of a page of messages.
const DEFAULT_MESSAGES: usize = 50;
/// The maximum size of the context of a session. No model accepts as much.
const MAX_CONTEXT_BYTES: usize = 32 * 1024 * 1024;
/// The maximum size of a page of messages.
const MAX_MESSAGES: usize = 200;

#[derive(Deserialize)]
pub(in crate::route) struct PromptBody {
    id: Option<String>,
    prompt: Prompt,
    #[serde(rename = "delivery")]
    _delivery: Option<Delivery>,
    resume: Option<bool>,
}

/// When a prompt is processed while the session is running: in this program always before the next step.
#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Delivery {
    Steer,
    Queue,
}

/// Admits a prompt. The response follows as events, unless `resume` is false.
pub(in crate::route) async fn prompt(
    State(app): State<App>,
    who: Who,
    One(id): One<SessionId>,
    Payload(body): Payload<PromptBody>,
) -> Result<Json<Value>, Error> {
    let PromptBody { id: message_id, prompt, resume, .. } = body;
    let message_id = message_id.as_deref().map(|id| parse_id("id", MessageId::parse(id))).transpose()?;
    find_session(&app, &id).await?;
    // The second of two requests with the same id waits for the first one and finds its message.
    let _lock = match &message_id {
        Some(message_id) => Some(app.message_locks.lock(message_id).await),
        None => None,
    };
    if let Some(message_id) = &message_id
        && app.engine.sessions().has_message(&id, message_id).await?
    {
        let stored = app.engine.sessions().message(&id, message_id).await?;
        if !matches!(stored.info, Message::User(_)) || !prompt.matches(&stored.parts) {
            return Err(Error::Conflict { resource: message_id.to_string() });
        }
        return Ok(Json(json!({ "data": admission(&app, &id, message_id).await? })));
    }
    let mut parts = prompt.parts();
    check_parts(&app, &who, &id, &mut parts).await?;
    let input = PromptInput {
        message_id,
        no_reply: (resume == Some(false)).then_some(true),
        parts,
        by: who.principal(),
        ..PromptInput::default()
    };
    let (engine, of) = (app.engine.clone(), id.clone());
    let message_id = app.finish(async move { engine.sessions().submit(&of, input).await }).await?;
    Ok(Json(json!({ "data": admission(&app, &id, &message_id).await? })))
}

#[derive(Deserialize)]
pub(in crate::route) struct Page {
    limit: Option<String>,
    order: Option<Order>,
    cursor: Option<String>,
}

/// A message at the edge of a page, and the order of the pages.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Cursor {
    #[serde(flatten)]
    anchor: Anchor,
    order: Order,
}

/// Returns a page of messages, by default the newest first.
pub(in crate::route) async fn messages(
    State(app): State<App>,
    One(id): One<SessionId>,
    Params(page): Params<Page>,
) -> Result<Json<Messages>, Error> {
    find_session(&app, &id).await?;
    let limit = super::history::number("limit", page.limit.as_deref(), 1..=MAX_MESSAGES as u64)?;
    let limit = limit.map_or(DEFAULT_MESSAGES, |limit| limit as usize);
    let cursor = match (page.cursor.as_deref(), page.order) {
        (None, _) => None,
        (Some(_), Some(_)) => return Err(Error::Cursor("a cursor cannot be combined with `order`")),
        (Some(text), None) => Some(page::decode::<Cursor>(text)?),
    };
    let infos = app.engine.sessions().infos(&id).await?;
    let keys: Vec<(u64, &str)> = infos.iter().map(|info| (info.created(), info.id().as_str())).collect();
    let order = cursor.as_ref().map_or(page.order.unwrap_or(Order::Desc), |cursor| cursor.order);
    let anchor = cursor.as_ref().map(|cursor| &cursor.anchor);
    let (start, end) = page::window(&keys, order, anchor, limit);
    let goes_back = page::goes_back(order, anchor);
    let (mut found, mut size) = (VecDeque::new(), 0);
    // Starts at the anchor, because large messages can end the page before its limit.
    for at in 0..end.saturating_sub(start) {
        let info = &infos[if goes_back { end - 1 - at } else { start + at }];
        // A message that was removed in the meantime is skipped.
        let Some(text) = text(&app, &id, info.id()).await? else { continue };
        size += text.get().len();
        match (goes_back, order) {
            (true, Order::Desc) | (false, Order::Asc) => found.push_back((info, text)),
            (true, Order::Asc) | (false, Order::Desc) => found.push_front((info, text)),
        }
        if size >= PAGE_BYTES {
            break;
        }
    }
    let edge = |item: Option<&(&Message, Box<RawValue>)>, direction| {
        let info = item?.0;
        let (id, time) = (info.id().to_string(), info.created());
        Some(page::encode(&Cursor { anchor: Anchor { id, time, direction }, order }))
    };
    let cursor = Edges {
        previous: edge(found.front(), Direction::Previous),
        next: edge(found.back(), Direction::Next),
    };
    Ok(Json(Messages { data: found.into_iter().map(|(_, text)| text).collect(), cursor }))
}

#[derive(Serialize)]
pub(in crate::route) struct Messages {
    data: Vec<Box<RawValue>>,
    cursor: Edges,
}

#[derive(Serialize)]
struct Edges {
    previous: Option<String>,
    next: Option<String>,
}

/// Returns the JSON of a message, or `None` if it was removed.
async fn text(app: &App, id: &SessionId, message: &MessageId) -> Result<Option<Box<RawValue>>, Error> {
    let Ok(stored) = app.engine.sessions().message(id, message).await else { return Ok(None) };
    serialize(app, id, &stored).await.map(Some)
}

async fn serialize(app: &App, id: &SessionId, stored: &MessageWithParts) -> Result<Box<RawValue>, Error> {
    to_raw_value(&convert(app, id, stored).await).map_err(|_| Error::Panic)
}

pub(in crate::route) async fn one(
    State(app): State<App>,
    Two(id, message): Two<SessionId, MessageId>,
) -> Result<Json<Value>, Error> {
    find_session(&app, &id).await?;
    if !app.engine.sessions().has_message(&id, &message).await? {
        return Err(Error::MissingMessage { session: id, message });
    }
    let found = app.engine.sessions().message(&id, &message).await?;
    Ok(Json(json!({ "data": convert(&app, &id, &found).await })))
}

#[derive(Serialize)]
pub(in crate::route) struct Context {
    data: Vec<Box<RawValue>>,
}

/// Returns the messages that the model receives for the next prompt.
pub(in crate::route) async fn context(
    State(app): State<App>,
    One(id): One<SessionId>,
) -> Result<Json<Context>, Error> {
    find_session(&app, &id).await?;
    let mut context = app.engine.sessions().context(&id, MAX_CONTEXT_BYTES).await?;
    // The prompt that requested a summary is represented by the summary.
    context.retain(|message| Reason::of(&message.parts).is_none());
    let mut data = Vec::with_capacity(context.len());
    for stored in context {
        data.push(serialize(&app, &id, &stored).await?);
    }
    Ok(Json(Context { data }))
}

async fn convert(app: &App, id: &SessionId, stored: &MessageWithParts) -> Value {
    let reason = match &stored.info {
        Message::Assistant(info) if info.summary == Some(true) => {
            let prompt = app.engine.sessions().message(id, &info.parent_id).await.ok();
            prompt.and_then(|prompt| Reason::of(&prompt.parts))
        }
        Message::Assistant(_) | Message::User(_) => None,
    };
    message(stored, reason.unwrap_or(Reason::Manual))
}
