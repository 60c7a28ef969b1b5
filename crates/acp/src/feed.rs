//! Events of a directory as updates of the editor's sessions.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use agent_client_protocol::v1::schema::{SessionInfoUpdate, SessionUpdate};
use codewright_client::{Client, Events};
use codewright_proto::{Event, Fact, Message, Notice, Part, PartBody, Signal};
use tokio::time::sleep;

use crate::agent::Agent;
use crate::session::{Role, Session};
use crate::{permission, terminal, update};

/// How often a broken stream is opened again before its sessions are given up.
const MAX_RETRIES: u32 = 5;

/// Sends the events of a directory to the editor until the stream ends for good.
pub(crate) async fn follow(agent: Arc<Agent>, client: Client, directory: PathBuf, mut events: Events) {
    let mut retries = 0;
    loop {
        match events.next().await {
            Ok(Some(notice)) => {
                retries = 0;
                if !agent.room().await {
                    break;
                }
                handle(&agent, notice).await;
            }
            Ok(None) => break,
            Err(_) => {
                // Nothing is lost: the stream continues after the last event.
                retries += 1;
                sleep(Duration::from_millis(100 << retries)).await;
                match client.events_after(events.position().unwrap_or(0)).await {
                    Ok(opened) => events = opened,
                    Err(_) if retries < MAX_RETRIES => {}
                    Err(_) => break,
                }
            }
        }
    }
    agent.lost(&directory);
}

async fn handle(agent: &Arc<Agent>, notice: Notice) {
    match notice.fact {
        // A subagent has no session in the editor, so its requests appear in the session that started it.
        Fact::Event(Event::PermissionAsked(request)) => {
            if let Some(session) = agent.owner(&request.session_id).await {
                agent.spawn(permission::request(agent.clone(), session, request));
            }
        }
        Fact::Signal(Signal::QuestionAsked(request)) => {
            if let Some(session) = agent.owner(&request.session_id).await {
                agent.spawn(permission::question(agent.clone(), session, request));
            }
        }
        Fact::Event(event) => {
            if let Some(session) = agent.opened(event.session_id()) {
                stored(agent, &session, event);
            }
        }
        Fact::Signal(Signal::PartDelta { session_id, message_id, part_id, delta, .. }) => {
            let Some(session) = agent.opened(&session_id) else { return };
            let is_reasoning = {
                let mut live = session.live();
                let Some(text) = live.begun(&part_id) else { return };
                text.sent += delta.len();
                text.is_reasoning
            };
            agent.update(
                &session.id,
                if is_reasoning {
                    update::thought(part_id.as_str(), &delta)
                } else {
                    update::message(message_id.as_str(), &delta)
                },
            );
        }
        Fact::Signal(_) => {}
    }
}

fn stored(agent: &Arc<Agent>, session: &Arc<Session>, event: Event) {
    match event {
        Event::SessionUpdated { info, .. } => {
            let is_new = {
                let mut live = session.live();
                std::mem::replace(&mut live.title, info.title.clone()) != info.title
            };
            if is_new {
                let title = SessionInfoUpdate::new().title(info.title);
                agent.update(&session.id, SessionUpdate::SessionInfoUpdate(title));
            }
        }
        Event::SessionDeleted { .. } => agent.forget(&session.id),
        Event::MessageUpdated { info: Message::Assistant(info), .. } => {
            session.live().author(&info.id, Role::Agent);
            if info.time.completed.is_some() {
                session.complete(&info.id);
            }
        }
        Event::MessageUpdated { info: Message::User(info), .. } => {
            let mut live = session.live();
            // The editor shows its own prompt already.
            if live.cancel.is_none() {
                live.author(&info.id, Role::OtherUser);
            }
        }
        Event::PartUpdated { part, .. } => changed(agent, session, &part),
        Event::TodoUpdated { todos, .. } => agent.update(&session.id, update::plan(&todos)),
        Event::SessionCreated { .. }
        | Event::MessageRemoved { .. }
        | Event::PartRemoved { .. }
        | Event::PermissionAsked(_)
        | Event::PermissionReplied { .. } => {}
    }
}

/// Sends the new value of a part.
fn changed(agent: &Agent, session: &Session, part: &Part) {
    let role = session.live().role(&part.message_id);
    match role {
        None => {}
        Some(Role::OtherUser) => {
            for shown in update::user(part) {
                agent.update(&session.id, shown);
            }
        }
        Some(Role::Agent) => match &part.body {
            PartBody::Text(text) if text.ignored != Some(true) => {
                if let Some(rest) = rest(session, part, &text.text, false) {
                    agent.update(&session.id, update::message(part.message_id.as_str(), &rest));
                }
            }
            PartBody::Reasoning { text, .. } => {
                if let Some(rest) = rest(session, part, text, true) {
                    agent.update(&session.id, update::thought(part.id.as_str(), &rest));
                }
            }
            PartBody::Patch { files, .. } => session.live().changed(files.iter().map(PathBuf::from)),
            PartBody::Tool(tool) => {
                session.live().shown(update::edited(tool, &session.directory).into_iter());
                let call = update::KnownCall::of(tool, &session.directory);
                let is_terminal = tool.tool == "bash" && agent.offer().shows_terminals;
                let mut announcement = call.announcement();
                if is_terminal {
                    announcement = terminal::announced(announcement, &session.directory);
                }
                if session.live().call(call) {
                    agent.update(&session.id, SessionUpdate::ToolCall(announcement));
                    if matches!(tool.state, codewright_proto::ToolState::Pending { .. }) {
                        return;
                    }
                }
                let mut update = update::call(tool, &session.directory);
                if is_terminal {
                    update = terminal::updated(update, tool, session.live().terminal(&tool.call_id));
                }
                agent.update(&session.id, SessionUpdate::ToolCallUpdate(update));
            }
            _ => {}
        },
    }
}

/// The end of a text that the editor does not have yet. A text that was rewritten stays as it was streamed.
fn rest(session: &Session, part: &Part, text: &str, is_reasoning: bool) -> Option<String> {
    let mut live = session.live();
    let known = live.text(&part.id, is_reasoning);
    let rest = text.get(known.sent..).filter(|rest| !rest.is_empty())?.to_owned();
    known.sent = text.len();
    Some(rest)
}
