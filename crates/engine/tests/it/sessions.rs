//! Operations on sessions between their prompts.

use codewright_engine::{Engine, Error, PermissionInput, Published};
use codewright_proto::{
    Action, Event, Fact, FileAttachment, Map, Message, MessageWithParts, Part, PartBody, PartInput,
    PromptInput, Session, SessionId, SessionInput, SessionPatch, TextPart, TimePatch, ToolState,
};
use codewright_scripted::{Script, Turn};
use serde_json::json;

use crate::desk::{DEADLINE, Desk, prompt};

async fn child(desk: &Desk, parent: &SessionId) -> Session {
    let input = SessionInput { parent_id: Some(parent.clone()), ..SessionInput::default() };
    desk.engine.sessions().create(&desk.instance, input).await.unwrap()
}

fn note(text: &str) -> PromptInput {
    PromptInput { no_reply: Some(true), ..prompt(text) }
}

/// Returns all events of a session in order.
async fn log(engine: &Engine, id: &SessionId) -> Vec<Event> {
    let all = engine.events().after(0, 100_000).await.unwrap();
    all.into_iter().map(|envelope| envelope.event).filter(|event| event.session_id() == id).collect()
}

#[tokio::test]
async fn a_patch_changes_only_its_fields_and_only_rules_and_metadata_update_the_time() {
    let desk = Desk::new(Script::new()).await;
    let session = desk.session().await;
    let patch = |patch: serde_json::Value| serde_json::from_value::<SessionPatch>(patch).unwrap();
    let change = async |value| desk.engine.sessions().update(&session.id, patch(value)).await;
    let named = change(json!({"title": "Renamed"})).await.unwrap();
    assert_eq!((named.title.as_str(), &named.time), ("Renamed", &session.time));
    let away = change(json!({"time": {"archived": 1_700_000_000_000.5}})).await.unwrap();
    assert_eq!((away.time.archived, away.time.updated), (Some(1_700_000_000_000), session.time.updated));
    assert_eq!(change(json!({"time": {"archived": 0}})).await.unwrap().time.archived, None);
    assert!(matches!(change(json!({"time": {"archived": -1}})).await, Err(Error::Invalid { .. })));
    change(json!({"metadata": {"a": 1}})).await.unwrap();
    let rule = json!({"permission": "bash", "pattern": "*", "action": "deny"});
    change(json!({"permission": [rule]})).await.unwrap();
    let last = change(
        json!({"metadata": {"b": 2}, "permission": [{"permission": "edit", "pattern": "*", "action": "ask"}]}),
    );
    let last = last.await.unwrap();
    assert_eq!(json!(last.metadata), json!({"b": 2}));
    assert_eq!(last.permission.as_ref().map(Vec::len), Some(2));
    assert!(last.time.updated >= session.time.updated);
    let before = log(&desk.engine, &session.id).await.len();
    assert_eq!(change(json!({"time": {}})).await.unwrap(), last);
    assert_eq!(log(&desk.engine, &session.id).await.len(), before, "there was no request");
    let time = Some(TimePatch::default());
    assert_eq!(patch(json!({"time": {}})), SessionPatch { time, ..SessionPatch::default() });
}

#[tokio::test]
async fn concurrent_changes_of_a_session_are_all_stored() {
    let desk = Desk::new(Script::new()).await;
    let session = desk.session().await;
    let before = log(&desk.engine, &session.id).await.len();
    let rule =
        |number: usize| json!({"permission": "bash", "pattern": format!("{number}"), "action": "deny"});
    let changes = (0..300).map(|number| {
        let patch = serde_json::from_value::<SessionPatch>(json!({"permission": [rule(number)]})).unwrap();
        desk.engine.sessions().update(&session.id, patch)
    });
    for changed in futures_util::future::join_all(changes).await {
        changed.unwrap();
    }
    assert_eq!(log(&desk.engine, &session.id).await.len(), before + 300);
}

#[tokio::test]
async fn deleting_a_session_stops_and_deletes_its_children() {
    let hang = Turn::steps().text("x").hang();
    let desk = Desk::new(Script::new().default_turn(hang)).await;
    let session = desk.session().await;
    let child_one = child(&desk, &session.id).await;
    assert!(child_one.title.starts_with("Child session - "), "{}", child_one.title);
    let grandchild = child(&desk, &child_one.id).await;
    let other = desk.session().await;
    assert_eq!(desk.engine.sessions().children(&session.id).await.unwrap(), vec![child_one.clone()]);
    desk.engine.sessions().prompt_async(&grandchild.id, prompt("work")).await.unwrap();
    desk.server.wait_for_request(1, DEADLINE).await.unwrap();
    let mut events = desk.engine.events().subscribe();
    assert!(
        tokio::time::timeout(DEADLINE, desk.engine.sessions().delete(&session.id)).await.unwrap().unwrap()
    );
    let mut gone = Vec::new();
    while gone.len() < 3 {
        let published = tokio::time::timeout(DEADLINE, events.next()).await.unwrap().unwrap();
        if let Published::Event(envelope) = published
            && let Event::SessionDeleted { session_id, .. } = &envelope.event
        {
            gone.push(session_id.clone());
        }
    }
    assert_eq!(gone, [grandchild.id.clone(), child_one.id.clone(), session.id.clone()]);
    for id in [&session.id, &child_one.id, &grandchild.id] {
        assert!(matches!(desk.engine.sessions().get(id).await, Err(Error::NotFound { .. })));
    }
    assert!(desk.engine.sessions().get(&other.id).await.is_ok());
    assert!(desk.engine.sessions().statuses().is_empty());
}

#[tokio::test]
async fn messages_and_parts_are_removed_and_replaced() {
    let desk = Desk::new(Script::new().text("one").text("two")).await;
    let session = desk.session().await;
    desk.prompt(&session, "first").await;
    desk.prompt(&session, "second").await;
    let [first, one, second, two] = <[_; 4]>::try_from(desk.transcript(&session).await).unwrap();
    let used = desk.engine.sessions().get(&session.id).await.unwrap().tokens;
    assert!(desk.engine.sessions().remove_message(&session.id, two.info.id()).await.unwrap());
    let left = desk.engine.sessions().get(&session.id).await.unwrap().tokens;
    let Message::Assistant(info) = &two.info else { panic!("an answer") };
    assert_eq!((left.input, left.output), (used.input - info.tokens.input, used.output - info.tokens.output));
    assert!(
        desk.engine.sessions().remove_part(&session.id, second.info.id(), &second.parts[0].id).await.unwrap()
    );
    let mut part = first.parts[0].clone();
    part.body = PartBody::Text(TextPart { text: "changed".into(), ..TextPart::default() });
    assert_eq!(desk.engine.sessions().update_part(part.clone()).await.unwrap(), part);
    let stranger = Part { message_id: two.info.id().clone(), ..part.clone() };
    assert!(matches!(desk.engine.sessions().update_part(stranger).await, Err(Error::NotFound { .. })));
    let taken = Part { message_id: second.info.id().clone(), ..part.clone() };
    assert!(matches!(desk.engine.sessions().update_part(taken).await, Err(Error::Invalid { .. })));
    let now = desk.transcript(&session).await;
    let first = MessageWithParts { parts: vec![part], ..first };
    let second = MessageWithParts { parts: Vec::new(), ..second };
    assert_eq!(now, [first, one, second]);
}

#[tokio::test]
async fn a_running_session_keeps_its_messages() {
    let desk = Desk::new(Script::new().turn(Turn::steps().text("x").hang())).await;
    let session = desk.session().await;
    desk.engine.sessions().prompt_async(&session.id, prompt("work")).await.unwrap();
    desk.server.wait_for_request(1, DEADLINE).await.unwrap();
    let id = desk.transcript(&session).await[0].info.id().clone();
    let refused = desk.engine.sessions().remove_message(&session.id, &id).await.unwrap_err();
    assert_eq!(refused.to_string(), format!("Session is busy: {}", session.id));
    desk.engine.sessions().abort(&session.id).await.unwrap();
    assert!(desk.engine.sessions().remove_message(&session.id, &id).await.unwrap());
}

#[tokio::test]
async fn a_fork_refers_to_its_own_messages_only() {
    let desk = Desk::new(Script::new().text("one")).await;
    let input = json!({
        "title": "Base (fork #3)",
        "metadata": {"kept": true},
        "permission": [{"permission": "bash", "pattern": "*", "action": "deny"}],
    });
    let input = serde_json::from_value(input).unwrap();
    let session = desk.engine.sessions().create(&desk.instance, input).await.unwrap();
    desk.prompt(&session, "first").await;
    let transcript = desk.transcript(&session).await;
    let (question, answer) = (transcript[0].info.id().clone(), transcript[1].info.id().clone());
    let part = |body: serde_json::Value, id: &str| {
        let mut value = json!({"id": id, "sessionID": session.id, "messageID": answer});
        value.as_object_mut().unwrap().extend(body.as_object().unwrap().clone());
        serde_json::from_value::<Part>(value).unwrap()
    };
    let attachment = json!({
        "id": "prt_attached", "sessionID": session.id, "messageID": answer, "type": "file", "mime": "image/png",
        "url": "data:image/png;base64,AA==",
    });
    let call = json!({"type": "tool", "callID": "c", "tool": "read", "state": {
        "status": "completed", "input": {}, "output": "ok", "title": "", "metadata": {},
        "time": {"start": 1, "end": 2}, "attachments": [attachment],
    }});
    desk.engine.sessions().update_part(part(call, "prt_call")).await.unwrap();
    let compaction = json!({"type": "compaction", "auto": false, "tail_start_id": question});
    desk.engine.sessions().update_part(part(compaction, "prt_mark")).await.unwrap();
    desk.engine.sessions().prompt(&session.id, note("left out")).await.unwrap();
    let last = desk.transcript(&session).await[2].info.id().clone();
    let fork = desk.engine.sessions().fork(&session.id, Some(last)).await.unwrap();
    assert_eq!((fork.title.as_str(), &fork.parent_id), ("Base (fork #4)", &None));
    assert_eq!(json!(fork.metadata), json!({"kept": true}));
    assert_eq!(fork.permission.as_ref().map(Vec::len), Some(1));
    let copied = desk.transcript(&fork).await;
    assert_eq!(copied.len(), 2);
    let Message::Assistant(info) = &copied[1].info else { panic!("an answer") };
    assert_eq!(&info.parent_id, copied[0].info.id());
    for MessageWithParts { info, parts } in &copied {
        assert_eq!(info.session_id(), &fork.id);
        for part in parts {
            assert_eq!((&part.session_id, &part.message_id), (&fork.id, info.id()));
        }
    }
    let text = json!(copied).to_string();
    for old in [session.id.as_str(), question.as_str(), answer.as_str(), "prt_attached", "prt_call"] {
        assert!(!text.contains(old), "{old} in {text}");
    }
    let attached: Vec<&FileAttachment> = copied[1]
        .parts
        .iter()
        .filter_map(|part| match &part.body {
            PartBody::Tool(call) => Some(&call.state),
            _ => None,
        })
        .filter_map(|state| match state {
            ToolState::Completed { attachments, .. } => attachments.as_ref(),
            _ => None,
        })
        .flatten()
        .collect();
    assert_eq!(attached[0].message_id, *copied[1].info.id());
    let tail = copied[1].parts.iter().find_map(|part| match &part.body {
        PartBody::Compaction { tail_start_id, .. } => tail_start_id.clone(),
        _ => None,
    });
    assert_eq!(tail.as_ref(), Some(copied[0].info.id()));
    let refused = desk.engine.sessions().fork(&session.id, Some(copied[0].info.id().clone())).await;
    assert!(matches!(refused, Err(Error::NotFound { .. })));
}

#[tokio::test]
async fn a_fork_of_a_running_session_has_no_open_calls() {
    let script = Script::new().turn(Turn::steps().text("x").tool("bash", json!({"command": "sleep 30"})));
    let desk = Desk::new(script.default_turn(Turn::text("in the fork"))).await;
    let session = desk.session().await;
    let mut feed = desk.engine.events().subscribe();
    desk.engine.sessions().prompt_async(&session.id, prompt("work")).await.unwrap();
    crate::desk::wait_for(&mut feed, |published| match &published.notice().fact {
        Fact::Event(Event::PartUpdated { part, .. }) => match &part.body {
            PartBody::Tool(call) => matches!(call.state, ToolState::Running { .. }).then_some(()),
            _ => None,
        },
        _ => None,
    })
    .await;
    let fork = desk.engine.sessions().fork(&session.id, None).await.unwrap();
    let copied = desk.transcript(&fork).await;
    let (_, state) = crate::desk::calls(&copied).remove(0);
    let ToolState::Error { error, input, .. } = state else { panic!("{state:?}") };
    assert!(error.contains("copied while this call was running"), "{error}");
    assert_eq!(input["command"], "sleep 30");
    let Message::Assistant(answer) = &copied[1].info else { panic!("an answer") };
    assert!(answer.time.completed.is_some() && answer.error.is_some());
    let open = copied[1].parts.iter().filter(|part| match &part.body {
        PartBody::Text(text) => text.time.is_some_and(|time| time.end.is_none()),
        _ => false,
    });
    assert_eq!(open.count(), 0);
    // The original goes on.
    let (_, state) = crate::desk::calls(&desk.transcript(&session).await).remove(0);
    assert!(matches!(state, ToolState::Running { .. }), "{state:?}");
    assert_eq!(crate::desk::text(&desk.prompt(&fork, "go on").await), "in the fork");
    desk.engine.sessions().abort(&session.id).await.unwrap();
}

#[tokio::test]
async fn a_fork_continues_like_its_origin_at_its_first_prompt() {
    let desk = Desk::new(Script::new().text("one").text("two")).await;
    let session = desk.session().await;
    let planned = PromptInput { agent: Some("plan".to_owned()), ..prompt("first") };
    desk.engine.sessions().prompt(&session.id, planned).await.unwrap();
    let origin = desk.engine.sessions().get(&session.id).await.unwrap();
    let fork = desk.engine.sessions().fork(&session.id, None).await.unwrap();
    assert_eq!((&fork.agent, &fork.model), (&None, &None));
    assert_eq!((fork.tokens.input, fork.cost), (0, 0.0));
    desk.engine.sessions().prompt(&fork.id, prompt("second")).await.unwrap();
    let used = desk.engine.sessions().get(&fork.id).await.unwrap();
    assert_eq!((used.agent.as_deref(), &used.model), (Some("plan"), &origin.model));
    assert_eq!(used.tokens.input, 2 * origin.tokens.input);
    desk.assert_clean();
}

#[tokio::test]
async fn a_client_request_in_a_fresh_fork_is_judged_by_the_agent_of_its_origin() {
    let desk = Desk::new(Script::new()).await;
    let session = desk.session().await;
    let planning = PromptInput { agent: Some("plan".to_owned()), no_reply: Some(true), ..prompt("look") };
    desk.engine.sessions().prompt(&session.id, planning).await.unwrap();
    let fork = desk.engine.sessions().fork(&session.id, None).await.unwrap();
    for id in [&session.id, &fork.id] {
        let wanted = PermissionInput {
            id: None,
            permission: "edit".to_owned(),
            patterns: vec!["src/a.rs".to_owned()],
            always: Vec::new(),
            metadata: Map::new(),
            tool: None,
            agent: None,
        };
        let (_, action) = desk.engine.permissions().request(id, wanted).await.unwrap();
        assert_eq!(action, Action::Deny, "{id}");
    }
}

#[tokio::test]
async fn a_fork_is_one_transaction_or_hidden_until_it_is_whole() {
    let desk = Desk::new(Script::new()).await;
    let session = desk.session().await;
    desk.engine.sessions().prompt(&session.id, note("small")).await.unwrap();
    let fork = desk.engine.sessions().fork(&session.id, None).await.unwrap();
    assert!(matches!(log(&desk.engine, &fork.id).await[0], Event::SessionCreated { .. }));
    // More parts than one transaction can contain.
    for _ in 0..11 {
        let parts = (0..1000).map(|n| PartInput::text(n.to_string())).collect();
        desk.engine.sessions().prompt(&session.id, PromptInput { parts, ..note("") }).await.unwrap();
    }
    let fork = desk.engine.sessions().fork(&session.id, None).await.unwrap();
    assert_eq!(fork.directory, session.directory);
    assert_eq!(desk.engine.sessions().get(&fork.id).await.unwrap(), fork);
    let parts: usize = desk.transcript(&fork).await.iter().map(|message| message.parts.len()).sum();
    assert_eq!(parts, 11_001);
    let events = log(&desk.engine, &fork.id).await;
    let homes: Vec<_> = events
        .iter()
        .filter_map(|event| match event {
            Event::SessionCreated { info, .. } | Event::SessionUpdated { info, .. } => {
                Some((info.project_id.as_str(), info.directory.as_str()))
            }
            _ => None,
        })
        .collect();
    assert_eq!(homes, [("unfinished", ""), (session.project_id.as_str(), session.directory.as_str())]);
    assert!(matches!(events.last(), Some(Event::SessionUpdated { .. })), "shown last");
}

#[tokio::test]
async fn a_refused_prompt_changes_nothing() {
    let desk = Desk::new(Script::new()).await;
    let (first, second) = (desk.session().await, desk.session().await);
    let id = desk.engine.sessions().submit(&first.id, note("one")).await.unwrap();
    let before = desk.engine.sessions().get(&second.id).await.unwrap();
    let tools = Some([("bash".to_owned(), false)].into());
    let taken = PromptInput { message_id: Some(id), agent: Some("plan".to_owned()), tools, ..note("two") };
    assert!(matches!(desk.engine.sessions().submit(&second.id, taken).await, Err(Error::Invalid { .. })));
    assert_eq!(desk.engine.sessions().get(&second.id).await.unwrap(), before);
    assert_eq!(log(&desk.engine, &second.id).await.len(), 1);
}
