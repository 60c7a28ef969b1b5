//! Sessions in the v2 API: the same turns, messages and events as in the v1 API.

use std::collections::BTreeSet;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use codewright_proto::{Message, PartBody, SessionId, SessionInput};
use codewright_testkit::{Script, Turn};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use crate::bench::{Bench, PATIENCE, ask, quick, request, says, send};

/// Returns the body of a successful reply.
#[track_caller]
fn good((status, answer): (u16, Value)) -> Value {
    assert!(status == 200 || status == 204, "{status} {answer}");
    answer["data"].clone()
}

async fn post(router: &Router, path: &str, body: Value) -> (u16, Value) {
    ask(router, "POST", path, &body.to_string()).await
}

async fn get(router: &Router, path: &str) -> Value {
    good(ask(router, "GET", path, "").await)
}

/// Creates a session with the v2 API.
async fn session(router: &Router) -> String {
    let made = good(post(router, "/api/session", json!({})).await);
    format!("/api/session/{}", made["id"].as_str().unwrap())
}

/// Sends a prompt and waits for the end of the turn. Returns the reply.
async fn prompt(router: &Router, session: &str, text: &str) -> Value {
    let body = json!({"prompt": {"text": text}});
    let admitted = good(post(router, &format!("{session}/prompt"), body).await);
    wait_until_idle(router, session).await;
    admitted
}

async fn wait_until_idle(router: &Router, session: &str) {
    let path = format!("{session}/wait");
    good(timeout(PATIENCE, ask(router, "POST", &path, "")).await.unwrap());
}

fn kinds(events: &Value) -> Vec<&str> {
    let kinds = events.as_array().unwrap().iter().map(|event| event["type"].as_str().unwrap());
    kinds.map(|kind| kind.strip_prefix("session.next.").unwrap()).collect()
}

fn ids(messages: &Value) -> Vec<String> {
    let ids = messages.as_array().unwrap().iter().map(|message| message["id"].as_str().unwrap().to_owned());
    ids.collect()
}

/// Reads a number of events from the stream of a session.
async fn read(router: &Router, path: &str, headers: &[(&str, &str)], events: usize) -> Vec<(u64, Value)> {
    let asked = headers.iter().fold(request("GET", path), |asked, (name, value)| asked.header(*name, *value));
    let mut response = send(router, asked.body(Body::empty()).unwrap()).await;
    assert_eq!(
        (response.status().as_u16(), &response.headers()["content-type"]),
        (200, &"text/event-stream".parse().unwrap())
    );
    let mut text = String::new();
    let frames = |text: &str| -> Vec<(u64, Value)> {
        let whole = text.rsplit_once("\n\n").map_or("", |(whole, _)| whole);
        let frames =
            whole.split("\n\n").filter_map(|frame| frame.strip_prefix("id: ")?.split_once("\ndata: "));
        frames.map(|(seq, data)| (seq.parse().unwrap(), serde_json::from_str(data).unwrap())).collect()
    };
    while frames(&text).len() < events {
        let chunk = timeout(PATIENCE, response.body_mut().frame()).await.unwrap().unwrap().unwrap();
        text.push_str(std::str::from_utf8(chunk.data_ref().unwrap()).unwrap());
    }
    frames(&text)
}

#[tokio::test]
async fn a_prompt_of_either_api_is_a_turn_in_both() {
    let script = Script::new()
        .turn(Turn::steps().reasoning("hm").tool("bash", json!({"command": "echo one", "description": "d"})))
        .text("Done.")
        .text("Again.");
    let bench = Bench::new(script).await;
    let (router, client) = (bench.router(quick()), bench.client());
    let path = session(&router).await;
    let id = SessionId::parse(path.rsplit('/').next().unwrap()).unwrap();
    let admitted = prompt(&router, &path, "go").await;
    assert_eq!(
        (&admitted["sessionID"], &admitted["prompt"], &admitted["delivery"]),
        (&json!(id), &json!({"text": "go"}), &json!("steer"))
    );
    let older = client.messages(&id, None).await.unwrap();
    assert_eq!(older.len(), 3, "{older:?}");
    client.prompt(&id, &says("and again")).await.unwrap();

    let shown = get(&router, &format!("{path}/message?order=asc")).await;
    let older = client.messages(&id, None).await.unwrap();
    let own: Vec<_> = older.iter().map(|message| message.info.id().to_string()).collect();
    assert_eq!(ids(&shown), own);
    assert_eq!(
        (&shown[0]["type"], &shown[0]["text"], &shown[0]["id"]),
        (&json!("user"), &json!("go"), &admitted["id"])
    );
    let first = &shown[1];
    assert_eq!((&first["type"], &first["finish"]), (&json!("assistant"), &json!("tool-calls")), "{first}");
    assert_eq!(
        (&first["content"][0]["type"], &first["content"][0]["text"]),
        (&json!("reasoning"), &json!("hm"))
    );
    let call = &first["content"][1];
    assert_eq!(
        (&call["type"], &call["name"], &call["state"]["status"], &call["provider"]["executed"]),
        (&json!("tool"), &json!("bash"), &json!("completed"), &json!(false)),
        "{call}"
    );
    assert!(call["state"]["content"][0]["text"].as_str().unwrap().contains("one"), "{call}");
    assert!(call["time"]["completed"].as_u64() >= call["time"]["created"].as_u64());
    assert_eq!((&shown[3]["text"], &shown[4]["content"][0]["text"]), (&json!("and again"), &json!("Again.")));
    let Message::Assistant(info) = &older[1].info else { panic!("no answer") };
    assert_eq!(first["model"], json!({"id": info.model_id, "providerID": info.provider_id}));
    let one = get(&router, &format!("{path}/message/{}", own[1])).await;
    assert_eq!(&one, first);
    assert_eq!(get(&router, &format!("{path}/context")).await, shown);

    let events = get(&router, &format!("{path}/history?limit=100")).await;
    let expected = [
        "prompt.admitted",
        "prompted",
        "step.started",
        "reasoning.started",
        "reasoning.ended",
        "tool.input.started",
        "tool.called",
        "tool.progress",
        "tool.success",
        "step.ended",
        "step.started",
        "text.started",
        "text.ended",
        "step.ended",
    ];
    let received = kinds(&events);
    let received: Vec<_> = received.iter().filter(|kind| **kind != "tool.progress").copied().collect();
    let expected: Vec<_> = expected.into_iter().filter(|kind| *kind != "tool.progress").collect();
    assert_eq!(received[..expected.len()], expected, "{events}");
    assert_eq!(received[expected.len()..].first(), Some(&"prompt.admitted"), "{received:?}");
    let seqs: Vec<_> =
        events.as_array().unwrap().iter().map(|event| event["durable"]["seq"].as_u64()).collect();
    assert!(seqs.windows(2).all(|two| two[0] < two[1]), "{seqs:?}");
    assert_eq!((&json!(seqs[0]), &json!(seqs[1])), (&admitted["admittedSeq"], &admitted["promotedSeq"]));
}

#[tokio::test]
async fn a_repeated_prompt_is_admitted_once() {
    let bench = Bench::new(Script::new().text("One.").text("Two.")).await;
    let router = bench.router(quick());
    let path = session(&router).await;
    let sent = json!({"id": "msg_mine", "prompt": {"text": "go"}});
    let first = good(post(&router, &format!("{path}/prompt"), sent.clone()).await);
    wait_until_idle(&router, &path).await;
    assert_eq!(good(post(&router, &format!("{path}/prompt"), sent).await), first);
    assert_eq!(first["id"], "msg_mine");
    let other = json!({"id": "msg_mine", "prompt": {"text": "stay"}});
    let (status, error) = post(&router, &format!("{path}/prompt"), other).await;
    assert_eq!(
        (status, &error["_tag"], &error["resource"]),
        (409, &json!("ConflictError"), &json!("msg_mine")),
        "{error}"
    );
    assert_eq!(get(&router, &format!("{path}/message")).await.as_array().unwrap().len(), 2);
    // With `resume: false` a prompt is stored and answered together with the next one.
    let later = json!({"prompt": {"text": "later"}, "resume": false});
    good(post(&router, &format!("{path}/prompt"), later).await);
    wait_until_idle(&router, &path).await;
    assert_eq!(get(&router, &format!("{path}/message")).await[0]["text"], "later");
}

#[tokio::test]
async fn files_and_agents_of_a_prompt_are_returned_unchanged() {
    let bench = Bench::new(Script::new().text("Read.")).await;
    let router = bench.router(quick());
    let file = bench.project.write("a.txt", "content of the file\n").unwrap();
    let path = session(&router).await;
    let sent = json!({
        "text": "look @a.txt @general",
        "files": [{
            "uri": format!("file://{}", file.display()), "name": "a.txt",
            "source": {"start": 5, "end": 11, "text": "@a.txt"},
        }],
        "agents": [{"name": "general", "source": {"start": 12, "end": 20, "text": "@general"}}],
    });
    let admitted = good(post(&router, &format!("{path}/prompt"), json!({ "prompt": sent })).await);
    wait_until_idle(&router, &path).await;
    let mut expected = sent;
    expected["files"][0]["mime"] = json!("text/plain");
    assert_eq!(admitted["prompt"], expected);
    let shown = get(&router, &format!("{path}/message?order=asc")).await;
    assert_eq!((&shown[0]["files"], &shown[0]["agents"]), (&expected["files"], &expected["agents"]));
    let asked = bench.model.requests();
    assert!(asked.iter().any(|asked| asked.body.to_string().contains("content of the file")));
}

#[tokio::test]
async fn pages_of_messages_have_no_gaps_and_no_duplicates() {
    let bench = Bench::new(Script::new().text("Yes.").repeat()).await;
    let (router, client) = (bench.router(quick()), bench.client());
    let path = session(&router).await;
    let id = SessionId::parse(path.rsplit('/').next().unwrap()).unwrap();
    for turn in 0..4 {
        client.prompt(&id, &says(&format!("turn {turn}"))).await.unwrap();
    }
    let all = ids(&get(&router, &format!("{path}/message?order=asc")).await);
    assert_eq!(all.len(), 8);
    for order in ["asc", "desc"] {
        let mut expected = all.clone();
        if order == "desc" {
            expected.reverse();
        }
        let (mut found, mut back) = (Vec::new(), None);
        let mut next = format!("{path}/message?limit=3&order={order}");
        loop {
            let (status, page) = ask(&router, "GET", &next, "").await;
            assert_eq!(status, 200, "{page}");
            found.extend(ids(&page["data"]));
            // A new prompt in between does not shift the pages.
            if back.is_none() {
                client.prompt(&id, &says("meanwhile")).await.unwrap();
            }
            let Some(cursor) = page["cursor"]["next"].as_str() else { break };
            back = page["cursor"]["previous"].as_str().map(str::to_owned);
            next = format!("{path}/message?limit=3&cursor={cursor}");
        }
        if order == "desc" {
            assert_eq!(found, expected, "older pages do not change");
            let page = get(&router, &format!("{path}/message?limit=3&cursor={}", back.unwrap())).await;
            assert_eq!(
                ids(&page),
                expected[expected.len() - 5..expected.len() - 2],
                "the page before the last"
            );
        } else {
            assert_eq!(found[..expected.len()], expected);
            assert_eq!(found.len(), expected.len() + 2, "new messages come after the existing ones");
        }
        let distinct: BTreeSet<_> = found.iter().collect();
        assert_eq!(distinct.len(), found.len());
        // The next round starts with the messages of this one.
        let kept = ids(&get(&router, &format!("{path}/message?order=asc")).await);
        for extra in kept.iter().filter(|id| !all.contains(id)) {
            let route = path.replace("/api", "");
            assert_eq!(ask(&router, "DELETE", &format!("{route}/message/{extra}"), "").await.0, 200);
        }
    }
}

#[tokio::test]
async fn errors_about_missing_things_have_the_schemas_of_v2() {
    let bench = Bench::new(Script::new()).await;
    let router = bench.router(quick());
    let path = session(&router).await;
    let nope = "/api/session/ses_nope";
    let body = json!({
        "prompt": {"text": "x"}, "messageID": "msg_1", "action": "bash", "resources": ["ls"],
    })
    .to_string();
    for (method, route) in [
        ("GET", "message"),
        ("GET", "message/msg_1"),
        ("GET", "context"),
        ("GET", "history"),
        ("GET", "event"),
        ("POST", "prompt"),
        ("POST", "revert/stage"),
        ("POST", "revert/clear"),
        ("POST", "revert/commit"),
        ("POST", "permission"),
    ] {
        let sent = if method == "GET" { "" } else { body.as_str() };
        let (status, error) = ask(&router, method, &format!("{nope}/{route}"), sent).await;
        assert_eq!(
            (status, &error["_tag"], &error["sessionID"]),
            (404, &json!("SessionNotFoundError"), &json!("ses_nope")),
            "{method} {route}: {error}"
        );
        let (status, error) = ask(&router, method, &format!("/api/session/nope/{route}"), sent).await;
        assert_eq!(
            (status, &error["_tag"], &error["field"]),
            (400, &json!("InvalidRequestError"), &json!("sessionID")),
            "{method} {route}: {error}"
        );
    }
    let missing = json!("MessageNotFoundError");
    let (status, error) = ask(&router, "GET", &format!("{path}/message/msg_nope"), "").await;
    assert_eq!((status, &error["_tag"], &error["messageID"]), (404, &missing, &json!("msg_nope")), "{error}");
    let (status, error) =
        post(&router, &format!("{path}/revert/stage"), json!({"messageID": "msg_nope"})).await;
    assert_eq!((status, &error["_tag"]), (404, &missing), "{error}");
}

#[tokio::test]
async fn errors_about_invalid_requests_have_the_schemas_of_v2() {
    let bench = Bench::new(Script::new()).await;
    let router = bench.router(quick());
    let path = session(&router).await;
    for (route, body, says) in [
        ("prompt", json!({}), "[\"prompt\"]"),
        ("prompt", json!({"prompt": {"text": 5}}), "[\"prompt\"][\"text\"]"),
        ("prompt", json!({"prompt": {"text": "x"}, "delivery": "zz"}), "[\"delivery\"]"),
        ("prompt", json!({"prompt": {"text": "x"}, "id": "zz"}), "[\"id\"]"),
        ("prompt", json!({"prompt": {"text": "x", "agents": [{"name": "nobody"}]}}), "nobody"),
        ("revert/stage", json!({}), "[\"messageID\"]"),
        ("revert/stage", json!({"messageID": "zz"}), "[\"messageID\"]"),
        ("permission", json!({"resources": []}), "[\"action\"]"),
        ("permission", json!({"action": "bash", "resources": [], "id": "zz"}), "[\"id\"]"),
    ] {
        let (status, error) = post(&router, &format!("{path}/{route}"), body.clone()).await;
        assert_eq!((status, &error["_tag"]), (400, &json!("InvalidRequestError")), "{body}: {error}");
        assert!(error["message"].as_str().unwrap().contains(says), "{body}: {error}");
    }
    for route in ["prompt", "revert/stage", "permission"] {
        let (status, error) = ask(&router, "POST", &format!("{path}/{route}"), "{bad").await;
        assert_eq!((status, &error["_tag"]), (400, &json!("InvalidRequestError")), "{route}: {error}");
    }
    for query in [
        "message?limit=0",
        "message?limit=201",
        "message?limit=1.5",
        "message?limit=x",
        "message?order=up",
        "history?limit=0",
        "history?limit=101",
        "history?after=-1",
        "history?after=x",
        "event?after=x",
    ] {
        let (status, error) = ask(&router, "GET", &format!("{path}/{query}"), "").await;
        assert_eq!(
            (status, &error["_tag"], &error["kind"]),
            (400, &json!("InvalidRequestError"), &json!("Query")),
            "{query}: {error}"
        );
    }
    for query in ["message?cursor=zzz", "message?order=asc&cursor=e30"] {
        let (status, error) = ask(&router, "GET", &format!("{path}/{query}"), "").await;
        assert_eq!((status, &error["_tag"]), (400, &json!("InvalidCursorError")), "{query}: {error}");
    }
}

#[tokio::test]
async fn a_stream_of_a_session_resumes_at_the_position_of_its_client() {
    let bench = Bench::new(Script::new().text("One.").text("Two.")).await;
    let router = bench.router(quick());
    let path = session(&router).await;
    prompt(&router, &path, "first").await;
    let history = get(&router, &format!("{path}/history?limit=100")).await;
    let history = history.as_array().unwrap();
    let events = read(&router, &format!("{path}/event"), &[], history.len()).await;
    let received: Vec<_> = events.iter().map(|(_, event)| event.clone()).collect();
    assert_eq!(&received, history, "a stream starts with the past events");

    // Pages of one event contain the same events.
    let (mut after, mut paged) = (0, Vec::new());
    loop {
        let (_, page) = ask(&router, "GET", &format!("{path}/history?limit=1&after={after}"), "").await;
        let Some(event) = page["data"][0].as_object() else { break };
        after = event["durable"]["seq"].as_u64().unwrap();
        paged.push(page["data"][0].clone());
        assert_eq!(page["hasMore"], paged.len() < history.len());
    }
    assert_eq!(&paged, history);

    // A client that reconnects gets the missed events, then new ones.
    let (seen, _) = events[2];
    let second = {
        let (router, path) = (router.clone(), path.clone());
        async move {
            sleep(Duration::from_millis(100)).await;
            prompt(&router, &path, "second").await
        }
    };
    let rest = history.len() - 3;
    let query = format!("{path}/event?after={seen}");
    let (query_rest, _) = tokio::join!(read(&router, &query, &[], rest + 6), second);
    let received: Vec<_> = query_rest.iter().take(rest).map(|(_, event)| event.clone()).collect();
    assert_eq!(received, history[3..]);
    assert_eq!(query_rest[rest].1["type"], "session.next.prompt.admitted");
    let seqs: Vec<_> = query_rest.iter().map(|(seq, _)| *seq).collect();
    assert!(seqs.windows(2).all(|two| two[0] < two[1]), "{seqs:?}");
    // A browser reconnects with the id of the last event.
    let seen = seen.to_string();
    let named = read(&router, &format!("{path}/event"), &[("last-event-id", &seen)], rest + 6).await;
    assert_eq!(named[..rest + 6], query_rest[..rest + 6]);
}

#[tokio::test]
async fn a_session_is_reverted_in_steps_with_its_files() {
    let write = |name: &str| json!({"filePath": name, "content": "made\n"});
    let script = Script::new()
        .tool("write", write("one.txt"))
        .text("Wrote.")
        .tool("write", write("two.txt"))
        .text("Wrote.")
        .text("Third.");
    let bench = Bench::git_with(script).await;
    let router = bench.router(quick());
    let there = |name: &str| bench.project.directory().join(name).exists();
    let path = session(&router).await;
    let first = prompt(&router, &path, "first").await;
    let second = prompt(&router, &path, "second").await;
    assert!(there("one.txt") && there("two.txt"));
    let stage = format!("{path}/revert/stage");

    let staged = good(post(&router, &stage, json!({"messageID": second["id"]})).await);
    assert_eq!(staged["messageID"], second["id"]);
    assert_eq!(
        (
            &staged["files"][0]["path"],
            &staged["files"][0]["status"],
            staged["files"].as_array().unwrap().len()
        ),
        (&json!("two.txt"), &json!("deleted"), 1),
        "{staged}"
    );
    assert!(staged["files"][0]["patch"].as_str().unwrap().contains("-made"), "{staged}");
    assert!(there("one.txt") && !there("two.txt"));
    assert_eq!(get(&router, &path).await["revert"]["messageID"], second["id"]);
    assert_eq!(get(&router, &format!("{path}/message")).await.as_array().unwrap().len(), 6);
    assert_eq!(get(&router, &format!("{path}/context")).await.as_array().unwrap().len(), 3);

    // Revert further, then clear.
    good(post(&router, &stage, json!({"messageID": first["id"]})).await);
    assert!(!there("one.txt") && !there("two.txt"));
    good(ask(&router, "POST", &format!("{path}/revert/clear"), "").await);
    assert!(there("one.txt") && there("two.txt"));
    assert!(get(&router, &path).await.get("revert").is_none());

    // Stage the messages only, then with their files, then commit.
    let staged = good(post(&router, &stage, json!({"messageID": second["id"], "files": false})).await);
    assert_eq!((&staged["files"], there("two.txt")), (&json!([]), true), "{staged}");
    good(post(&router, &stage, json!({"messageID": second["id"], "files": true})).await);
    assert!(there("one.txt") && !there("two.txt"));
    good(post(&router, &stage, json!({"messageID": second["id"], "files": false})).await);
    assert!(there("two.txt"), "the files are restored");
    good(post(&router, &stage, json!({"messageID": second["id"]})).await);
    good(ask(&router, "POST", &format!("{path}/revert/commit"), "").await);
    assert!(there("one.txt") && !there("two.txt"));
    let left = get(&router, &format!("{path}/message?order=asc")).await;
    assert_eq!(left.as_array().unwrap().len(), 3, "{left}");
    good(ask(&router, "POST", &format!("{path}/revert/commit"), "").await);
    good(ask(&router, "POST", &format!("{path}/revert/clear"), "").await);
    prompt(&router, &path, "third").await;
    assert_eq!(get(&router, &format!("{path}/message")).await[1]["text"], "third");

    let history = get(&router, &format!("{path}/history?limit=100")).await;
    let received = kinds(&history);
    let reverts: Vec<_> = received.into_iter().filter(|kind| kind.starts_with("revert.")).collect();
    let expected = [
        "revert.staged",
        "revert.staged",
        "revert.cleared",
        "revert.staged",
        "revert.staged",
        "revert.staged",
        "revert.staged",
        "revert.committed",
    ];
    assert_eq!(reverts, expected);
}

#[tokio::test]
async fn a_summary_replaces_the_messages_before_it() {
    let bench = Bench::new(Script::new().text("One.").summary(Turn::text("All of it.")).text("Two.")).await;
    let router = bench.router(quick());
    let path = session(&router).await;
    prompt(&router, &path, "first").await;
    good(ask(&router, "POST", &format!("{path}/compact"), "").await);
    prompt(&router, &path, "second").await;
    let context = get(&router, &format!("{path}/context")).await;
    let summary = &context[0];
    assert_eq!(
        (&summary["type"], &summary["reason"], &summary["recent"]),
        (&json!("compaction"), &json!("manual"), &json!("")),
        "{context}"
    );
    assert!(summary["summary"].as_str().unwrap().contains("All of it."), "{summary}");
    let history = get(&router, &format!("{path}/history?limit=100")).await;
    let ended =
        history.as_array().unwrap().iter().find(|event| event["type"] == "session.next.compaction.ended");
    let ended = &ended.unwrap()["data"];
    assert_eq!((&ended["messageID"], &ended["text"]), (&summary["id"], &summary["summary"]));
}

#[tokio::test]
async fn a_command_of_the_user_is_a_shell_message() {
    let bench = Bench::new(Script::new()).await;
    let (router, client) = (bench.router(quick()), bench.client());
    let session = client.create_session(&SessionInput::default()).await.unwrap();
    let body = json!({"agent": "build", "command": "echo here"}).to_string();
    assert_eq!(ask(&router, "POST", &format!("/session/{}/shell", session.id), &body).await.0, 200);
    let path = format!("/api/session/{}", session.id);
    let shown = get(&router, &format!("{path}/message")).await;
    assert_eq!(
        (&shown[0]["type"], &shown[0]["command"], &shown[1]["type"]),
        (&json!("shell"), &json!("echo here"), &json!("synthetic")),
        "{shown}"
    );
    assert!(shown[0]["output"].as_str().unwrap().contains("here"), "{shown}");
    let history = get(&router, &format!("{path}/history")).await;
    assert_eq!(kinds(&history), ["synthetic", "shell.started", "shell.ended"], "{history}");
}

#[tokio::test]
async fn a_failed_response_contains_the_error() {
    let bench = Bench::new(Script::new().turn(Turn::http_error(400))).await;
    let router = bench.router(quick());
    let path = session(&router).await;
    prompt(&router, &path, "go").await;
    let shown = get(&router, &format!("{path}/message")).await;
    assert_eq!(
        (&shown[0]["finish"], &shown[0]["error"]["type"]),
        (&json!("error"), &json!("unknown")),
        "{shown}"
    );
    let history = get(&router, &format!("{path}/history")).await;
    let last = history.as_array().unwrap().last().unwrap();
    assert_eq!(
        (&last["type"], &last["data"]["error"], &last["durable"]["version"]),
        (&json!("session.next.step.failed"), &shown[0]["error"], &json!(2)),
        "{history}"
    );
}

#[tokio::test]
async fn a_client_can_choose_the_id_of_a_session() {
    let bench = Bench::new(Script::new()).await;
    let (router, client) = (bench.router(quick()), bench.client());
    let wanted = json!({"id": "ses_mine", "agent": "plan"});
    let made = good(post(&router, "/api/session", wanted).await);
    assert_eq!((&made["id"], &made["agent"]), (&json!("ses_mine"), &json!("plan")));
    let again = good(post(&router, "/api/session", json!({"id": "ses_mine", "agent": "build"})).await);
    assert_eq!(again, made, "an existing session is not changed");
    let id = SessionId::parse("ses_mine").unwrap();
    assert_eq!(client.session(&id).await.unwrap().agent.as_deref(), Some("plan"));
    assert_eq!(ask(&router, "DELETE", "/session/ses_mine", "").await.0, 200);
    for bad in ["mine", "ses_../x", "ses_", "msg_mine", "ses_mine"] {
        let (status, error) = post(&router, "/api/session", json!({ "id": bad })).await;
        assert_eq!((status, &error["_tag"]), (400, &json!("InvalidRequestError")), "{bad}: {error}");
    }
}

#[tokio::test]
async fn a_client_can_request_permissions() {
    let config = |config: &mut Value| {
        config["permission"] = json!({"bash": {"*": "ask", "ls *": "allow"}, "edit": "deny"});
    };
    let bench = Bench::configured(Script::new(), config).await;
    let router = bench.router(quick());
    let path = session(&router).await;
    let own = format!("{path}/permission");
    let mut events = send(&router, request("GET", "/api/event").body(Body::empty()).unwrap()).await;
    for (action, resource, effect) in
        [("bash", "ls -l", "allow"), ("edit", "a.txt", "deny"), ("bash", "rm x", "ask")]
    {
        let wanted = json!({"action": action, "resources": [resource]});
        assert_eq!(good(post(&router, &own, wanted).await)["effect"], effect, "{action} {resource}");
    }
    let unknown = json!({"action": "bash", "resources": ["ls -l"], "agent": "nobody"});
    assert_eq!(good(post(&router, &own, unknown).await)["effect"], "deny");
    let wanted = json!({
        "id": "per_mine", "action": "bash", "resources": ["rm y"], "save": ["rm *"], "metadata": {"why": "w"},
    });
    for _ in 0..2 {
        let answer = good(post(&router, &own, wanted.clone()).await);
        assert_eq!(answer, json!({"id": "per_mine", "effect": "ask"}), "a repeated request has the same id");
    }
    let waiting = get(&router, &own).await;
    assert_eq!(waiting.as_array().unwrap().len(), 2, "{waiting}");
    let asked = get(&router, &format!("{own}/per_mine")).await;
    assert_eq!((&asked["save"], &asked["metadata"]["why"]), (&json!(["rm *"]), &json!("w")));
    assert_eq!(asked["metadata"]["asked"]["because"], "your rule `bash *: ask` asks");
    let other = session(&router).await;
    assert_eq!(
        post(&router, &format!("{other}/permission"), wanted.clone()).await.0,
        400,
        "the id is in use"
    );
    good(post(&router, &format!("{own}/per_mine/reply"), json!({"reply": "always"})).await);
    // The reply `always` allows later requests, and also the other pending one.
    let settled = async {
        while !get(&router, &own).await.as_array().unwrap().is_empty() {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(PATIENCE, settled).await.unwrap();
    let wanted = json!({"action": "bash", "resources": ["rm z"]});
    assert_eq!(good(post(&router, &own, wanted).await)["effect"], "allow");
    let mut text = String::new();
    while text.matches("permission.v2.replied").count() < 2 {
        let chunk = timeout(PATIENCE, events.body_mut().frame()).await.unwrap().unwrap().unwrap();
        text.push_str(std::str::from_utf8(chunk.data_ref().unwrap()).unwrap());
    }
    assert_eq!(text.matches("permission.v2.asked").count(), 2, "{text}");
}

#[tokio::test]
async fn every_part_of_a_response_is_the_same_in_events_and_messages() {
    let script = Script::new()
        .turn(Turn::steps().text("I look.").tool("read", json!({"filePath": "none.txt"})))
        .text("It is not there.");
    let bench = Bench::new(script).await;
    let (router, client) = (bench.router(quick()), bench.client());
    let path = session(&router).await;
    prompt(&router, &path, "look").await;
    let shown = get(&router, &format!("{path}/message?order=asc")).await;
    let history = get(&router, &format!("{path}/history?limit=100")).await;
    let values = |kind: &str, key: &str| -> Vec<Value> {
        let events = history.as_array().unwrap().iter();
        let events = events.filter(|event| event["type"] == format!("session.next.{kind}"));
        events.map(|event| event["data"][key].clone()).collect()
    };
    let content = |at: usize| shown[at]["content"].as_array().unwrap().clone();
    assert_eq!(values("text.ended", "text"), [content(1)[0]["text"].clone(), content(2)[0]["text"].clone()]);
    assert_eq!(values("text.ended", "textID"), [content(1)[0]["id"].clone(), content(2)[0]["id"].clone()]);
    let call = &content(1)[1];
    assert_eq!(values("tool.called", "input"), [call["state"]["input"].clone()]);
    assert_eq!(values("tool.failed", "error"), [call["state"]["error"].clone()], "{history}");
    assert_eq!(values("step.ended", "finish"), [shown[1]["finish"].clone(), shown[2]["finish"].clone()]);
    let id = SessionId::parse(path.rsplit('/').next().unwrap()).unwrap();
    let older = client.messages(&id, None).await.unwrap();
    let text = older[1].parts.iter().find(|part| matches!(part.body, PartBody::Text(_))).unwrap();
    assert_eq!(content(1)[0]["id"], json!(text.id), "a part has the same id in both APIs");
}

#[tokio::test]
async fn the_global_stream_and_the_stream_of_a_session_have_the_same_events() {
    let script = Script::new().turn(Turn::steps().reasoning("hm").text("One.")).text("Two.");
    let bench = Bench::new(script).await;
    let router = bench.router(quick());
    let path = session(&router).await;
    prompt(&router, &path, "before anybody listens").await;
    let mut response = send(&router, request("GET", "/api/event").body(Body::empty()).unwrap()).await;
    prompt(&router, &path, "go").await;
    // This prompt has no response, so no event follows it.
    let later = json!({"prompt": {"text": "later"}, "resume": false});
    let later = good(post(&router, &format!("{path}/prompt"), later).await);
    let mut text = String::new();
    let is_published = |text: &str| {
        let whole = text.rsplit_once("\n\n").map_or("", |(whole, _)| whole);
        whole.split("\n\n").any(|frame| {
            frame.contains("session.next.prompted") && frame.contains(later["id"].as_str().unwrap())
        })
    };
    while !is_published(&text) {
        let chunk = timeout(PATIENCE, response.body_mut().frame()).await.unwrap().unwrap().unwrap();
        text.push_str(std::str::from_utf8(chunk.data_ref().unwrap()).unwrap());
    }
    let frames = text.split("\n\n").filter_map(|frame| frame.strip_prefix("data: "));
    let frames = frames.filter_map(|data| serde_json::from_str::<Value>(data).ok());
    let received: Vec<Value> = frames
        .filter(|event| event["type"].as_str().is_some_and(|kind| kind.starts_with("session.next.")))
        .collect();
    let directory = bench.project.directory().to_str().unwrap();
    assert!(received.iter().all(|event| event["location"]["directory"] == directory), "{received:?}");
    let deltas: String = received
        .iter()
        .filter(|event| event["type"] == "session.next.text.delta")
        .map(|event| event["data"]["delta"].as_str().unwrap())
        .collect();
    assert_eq!(deltas, "Two.");
    let history = get(&router, &format!("{path}/history?limit=100")).await;
    let mut kept = received;
    kept.retain(|event| event["durable"].is_object());
    for event in &mut kept {
        event.as_object_mut().unwrap().remove("location");
    }
    let all = history.as_array().unwrap();
    let begun = all.iter().position(|event| event["data"]["prompt"]["text"] == "go").unwrap();
    assert_eq!(kept, all[begun..]);
}

#[tokio::test]
async fn pages_of_sessions_have_no_gaps_and_no_duplicates() {
    let bench = Bench::new(Script::new()).await;
    let router = bench.router(quick());
    let mut made = Vec::new();
    for _ in 0..5 {
        made.push(session(&router).await.rsplit('/').next().unwrap().to_owned());
        // Sessions of the same millisecond have no defined order.
        sleep(Duration::from_millis(3)).await;
    }
    let directory = bench.project.directory().to_str().unwrap();
    for (order, filter) in [("asc", String::new()), ("desc", format!("&directory={directory}"))] {
        let mut next = format!("/api/session?limit=2&order={order}{filter}");
        let mut found = Vec::new();
        loop {
            let (status, page) = ask(&router, "GET", &next, "").await;
            assert_eq!(status, 200, "{page}");
            found.extend(ids(&page["data"]));
            let Some(cursor) = page["cursor"]["next"].as_str() else { break };
            next = format!("/api/session?limit=2&cursor={cursor}");
        }
        if order == "desc" {
            found.reverse();
        }
        assert_eq!(found, made, "{order}");
    }
    let (_, elsewhere) = ask(&router, "GET", "/api/session?directory=/nowhere", "").await;
    assert_eq!(elsewhere, json!({"data": [], "cursor": {"previous": null, "next": null}}));
    for (query, tag) in [
        ("limit=0", "InvalidRequestError"),
        ("limit=x", "InvalidRequestError"),
        ("order=up", "InvalidRequestError"),
        ("cursor=zz", "InvalidCursorError"),
    ] {
        let (status, error) = ask(&router, "GET", &format!("/api/session?{query}"), "").await;
        assert_eq!((status, &error["_tag"]), (400, &json!(tag)), "{query}: {error}");
    }
}
