use super::*;

/// Returns log events with consecutive numbers.
fn log(rows: &[Value]) -> Vec<Envelope> {
    let row = |(seq, row): (usize, &Value)| Envelope {
        id: EventId::parse(&format!("evt_{seq}")).unwrap(),
        position: seq as u64,
        seq: seq as u64,
        time: 1000 + seq as u64,
        event: serde_json::from_value(row.clone()).unwrap(),
    };
    rows.iter().enumerate().map(row).collect()
}

fn fold(rows: &[Value]) -> Vec<NumberedEvent> {
    let (mut fold, mut events) = (Fold::default(), Vec::new());
    for envelope in &log(rows) {
        fold.push(envelope, &mut events);
    }
    fold.finish_prompt("ses_1", &mut events);
    events
}

#[track_caller]
fn check(rows: &[Value], expected: &[(u64, &str)]) {
    let events = fold(rows);
    let kind = |event: &NumberedEvent| event.value["type"].as_str().unwrap().replace("session.next.", "");
    let events: Vec<_> = events.iter().map(|event| (event.seq, kind(event))).collect();
    let expected: Vec<_> = expected.iter().map(|(seq, kind)| (*seq, (*kind).to_owned())).collect();
    assert_eq!(events, expected);
}

fn user(id: &str) -> Value {
    let model = json!({"providerID": "p", "modelID": "m"});
    let info = json!({
        "role": "user", "id": id, "sessionID": "ses_1", "time": {"created": 5}, "agent": "build", "model": model,
    });
    json!({"type": "message.updated", "properties": {"sessionID": "ses_1", "info": info}})
}

fn answer(id: &str, more: Value) -> Value {
    let mut info = json!({
        "role": "assistant", "id": id, "sessionID": "ses_1", "time": {"created": 6}, "parentID": "msg_1",
        "modelID": "m", "providerID": "p", "mode": "build", "agent": "build",
        "path": {"cwd": "/", "root": "/"}, "cost": 0.0,
        "tokens": {"input": 0, "output": 0, "reasoning": 0, "cache": {"read": 0, "write": 0}},
    });
    message::merge(&mut info, more);
    json!({"type": "message.updated", "properties": {"sessionID": "ses_1", "info": info}})
}

fn part(message: &str, id: &str, more: Value) -> Value {
    let mut part = json!({"id": id, "sessionID": "ses_1", "messageID": message});
    message::merge(&mut part, more);
    json!({"type": "message.part.updated", "properties": {"sessionID": "ses_1", "part": part, "time": 7}})
}

fn text(message: &str, text: &str) -> Value {
    part(message, "prt_t", json!({"type": "text", "text": text}))
}

fn call(state: Value) -> Value {
    part("msg_2", "prt_c", json!({"type": "tool", "callID": "c", "tool": "read", "state": state}))
}

fn session(revert: Value) -> Value {
    let info = json!({
        "id": "ses_1", "slug": "s", "projectID": "global", "directory": "/", "title": "t", "version": "1",
        "time": {"created": 1, "updated": 1}, "revert": revert,
    });
    json!({"type": "session.updated", "properties": {"sessionID": "ses_1", "info": info}})
}

fn removed(message: &str) -> Value {
    json!({"type": "message.removed", "properties": {"sessionID": "ses_1", "messageID": message}})
}

#[test]
fn a_prompt_is_published_once_with_all_its_parts() {
    let file = json!({"type": "file", "mime": "text/plain", "url": "file:///a"});
    let rows = [user("msg_1"), text("msg_1", "hi"), part("msg_1", "prt_f", file), user("msg_1")];
    check(&rows, &[(0, "prompt.admitted"), (2, "prompted")]);
    let events = fold(&rows);
    let prompt = json!({"text": "hi", "files": [{"uri": "file:///a", "mime": "text/plain"}]});
    assert_eq!((&events[0].value["data"]["prompt"], &events[1].value["data"]["prompt"]), (&prompt, &prompt));
    assert_eq!(events[0].admitted.as_ref().map(MessageId::as_str), Some("msg_1"));
    let again = [user("msg_1"), text("msg_1", "hi"), removed("msg_1"), user("msg_1"), text("msg_1", "hi")];
    let twice = [(0, "prompt.admitted"), (1, "prompted"), (3, "prompt.admitted"), (4, "prompted")];
    check(&again, &twice);
    let by_program = json!({"type": "text", "text": "go on", "synthetic": true});
    check(&[user("msg_1"), part("msg_1", "prt_t", by_program)], &[(0, "synthetic")]);
    // An update of a prompt that was admitted before reading started.
    check(&[user("msg_1"), answer("msg_2", json!({}))], &[]);
}

#[test]
fn a_response_is_published_change_by_change() {
    let input = json!({"filePath": "a"});
    let span = json!({"start": 1, "end": 2});
    let done = json!({
        "status": "completed", "input": input, "output": "o", "title": "t", "metadata": {}, "time": span,
    });
    let mut pruned = done.clone();
    pruned["time"]["compacted"] = json!(9);
    let rows = [
        answer("msg_2", json!({})),
        part("msg_2", "prt_s", json!({"type": "step-start"})),
        part("msg_2", "prt_s", json!({"type": "step-start", "snapshot": "tree"})),
        part("msg_2", "prt_r", json!({"type": "reasoning", "text": "", "time": {"start": 1}})),
        part("msg_2", "prt_r", json!({"type": "reasoning", "text": "hm", "time": span})),
        part("msg_2", "prt_t", json!({"type": "text", "text": "", "time": {"start": 1}})),
        part("msg_2", "prt_t", json!({"type": "text", "text": "hi", "time": span})),
        part("msg_2", "prt_u", json!({"type": "text", "text": "", "time": {"start": 1}})),
        part("msg_2", "prt_u", json!({"type": "text", "text": "left", "time": {"start": 1}})),
        call(json!({"status": "pending", "input": {}, "raw": ""})),
        call(json!({"status": "running", "input": input, "time": {"start": 1}})),
        call(json!({"status": "running", "input": input, "metadata": {"output": "x"}, "time": {"start": 1}})),
        call(done),
        answer("msg_2", json!({"finish": "tool-calls"})),
        answer("msg_2", json!({"finish": "tool-calls", "time": {"created": 6, "completed": 8}})),
        call(pruned),
    ];
    let expected = [
        (1, "step.started"),
        (3, "reasoning.started"),
        (4, "reasoning.ended"),
        (5, "text.started"),
        (6, "text.ended"),
        (7, "text.started"),
        (9, "tool.input.started"),
        (10, "tool.called"),
        (11, "tool.progress"),
        (12, "tool.success"),
    ];
    check(&rows, &expected);
    let events = fold(&rows);
    assert_eq!(
        events[8].value["data"],
        json!({
            "timestamp": 1011, "sessionID": "ses_1", "assistantMessageID": "msg_2", "callID": "c",
            "structured": {"output": "x"}, "content": [{"type": "text", "text": "x"}],
        })
    );
    // Events of an unknown message are not published.
    check(&rows[3..], &[]);
}

#[test]
fn a_response_that_started_before_the_fold_is_continued() {
    let info = answer("msg_2", json!({}))["properties"]["info"].clone();
    let step = part("msg_2", "prt_s", json!({"type": "step-start"}))["properties"]["part"].clone();
    let stored = serde_json::from_value(json!({"info": info, "parts": [step]})).unwrap();
    let state = |start: u64| json!({"status": "running", "input": {}, "time": {"start": start}});
    let done = json!({
        "status": "completed", "input": {}, "output": "o", "title": "t", "metadata": {},
        "time": {"start": 1, "end": 2},
    });
    let rows = [
        call(state(1)),
        call(state(1)),
        call(done),
        part("msg_2", "prt_t", json!({"type": "text", "text": "a", "time": {"start": 1}})),
        part("msg_2", "prt_t", json!({"type": "text", "text": "ab", "time": {"start": 1, "end": 2}})),
        part("msg_2", "prt_u", json!({"type": "text", "text": "", "time": {"start": 1009}})),
        answer(
            "msg_2",
            json!({"time": {"created": 6, "completed": 1010}, "error": {
            "name": "MessageAbortedError", "data": {"message": "Aborted"}}}),
        ),
    ];
    let (mut fold, mut events) = (Fold::default(), Vec::new());
    for envelope in &log(&rows) {
        if let Event::PartUpdated { part, .. } = &envelope.event
            && !fold.contains(&part.message_id)
        {
            fold.insert(&stored, None, envelope.time);
        }
        fold.push(envelope, &mut events);
    }
    let events: Vec<_> =
        events.iter().map(|event| (event.seq, event.value["type"].as_str().unwrap())).collect();
    let expected = [
        (0, "session.next.tool.progress"),
        (1, "session.next.tool.progress"),
        (2, "session.next.tool.success"),
        (4, "session.next.text.ended"),
        (5, "session.next.text.started"),
        (6, "session.next.step.failed"),
    ];
    assert_eq!(events, expected);
}

#[test]
fn a_response_fails_once_and_a_summary_ends_once() {
    let failed = json!({
        "error": {"name": "MessageAbortedError", "data": {"message": "Aborted"}},
        "time": {"created": 6, "completed": 8},
    });
    let rows = [answer("msg_2", json!({})), answer("msg_2", failed.clone()), answer("msg_2", failed)];
    check(&rows, &[(1, "step.failed")]);
    let ended = json!({"summary": true, "finish": "stop", "time": {"created": 6, "completed": 8}});
    let rows = [
        user("msg_1"),
        part("msg_1", "prt_q", json!({"type": "compaction", "auto": true})),
        answer("msg_2", json!({"summary": true})),
        part("msg_2", "prt_s", json!({"type": "step-start"})),
        part("msg_2", "prt_t", json!({"type": "text", "text": "all", "time": {"start": 1, "end": 2}})),
        answer("msg_2", ended.clone()),
        answer("msg_2", ended),
    ];
    check(&rows, &[(0, "synthetic"), (2, "compaction.started"), (5, "compaction.ended")]);
    let events = fold(&rows);
    assert_eq!(
        (&events[2].value["data"]["reason"], &events[2].value["data"]["text"]),
        (&json!("auto"), &json!("all"))
    );
}

#[test]
fn a_revert_is_staged_and_cleared_or_committed() {
    let reverted = |to: &str| session(json!({"messageID": to, "diff": "d"}));
    check(&[reverted("msg_1"), session(Value::Null)], &[(0, "revert.staged"), (1, "revert.cleared")]);
    // An update of the session for another reason does not stage the revert again.
    check(
        &[reverted("msg_1"), reverted("msg_1"), reverted("msg_0")],
        &[(0, "revert.staged"), (2, "revert.staged")],
    );
    let rows = [reverted("msg_1"), removed("msg_1"), removed("msg_2"), session(Value::Null)];
    check(&rows, &[(0, "revert.staged"), (3, "revert.committed")]);
    check(&[removed("msg_1"), session(Value::Null), session(Value::Null)], &[]);
}

#[test]
fn a_text_delta_has_the_kind_of_its_part() {
    let (mut fold, mut events) = (Fold::default(), Vec::new());
    let rows = [
        answer("msg_2", json!({})),
        part("msg_2", "prt_s", json!({"type": "step-start"})),
        part("msg_2", "prt_r", json!({"type": "reasoning", "text": "", "time": {"start": 1}})),
    ];
    for envelope in &log(&rows) {
        fold.push(envelope, &mut events);
    }
    let (message, part) = (MessageId::parse("msg_2").unwrap(), PartId::parse("prt_r").unwrap());
    let expected = json!({"assistantMessageID": "msg_2", "reasoningID": "prt_r", "delta": "h"});
    assert_eq!(fold.delta(&message, &part, "h"), Some(("reasoning.delta", expected)));
    assert_eq!(fold.delta(&message, &PartId::parse("prt_x").unwrap(), "h"), None);
    assert_eq!(fold.delta(&MessageId::parse("msg_9").unwrap(), &part, "h"), None);
}
