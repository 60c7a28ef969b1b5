//! The v2 API: questions, permission requests, terminals, sessions and events.

use std::time::Duration;

use axum::Router;
use axum::body::Body;
use codewright_proto::{MessageId, SessionInput};
use codewright_server::Options;
use codewright_testkit::{Script, Turn};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use crate::bench::{Bench, PATIENCE, ask, quick, request, says, send};

/// Repeats a request until the list in the reply is not empty, and returns its first item.
async fn first(router: &Router, path: &str) -> Value {
    let pending = async {
        loop {
            let (status, answer) = ask(router, "GET", path, "").await;
            assert_eq!(status, 200, "{path}: {answer}");
            if answer["data"][0].is_object() {
                return answer["data"][0].clone();
            }
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(PATIENCE, pending).await.unwrap()
}

#[tokio::test]
async fn commands_and_skills_are_listed_with_their_location() {
    let bench = Bench::configured(Script::new(), |config| {
        config["command"] = json!({"greet": {"template": "hello $1", "model": "mock/plain-model"}});
    })
    .await;
    let router = bench.router(quick());
    let (status, answer) = ask(&router, "GET", "/api/command", "").await;
    assert_eq!((status, &answer["location"]["project"]["id"]), (200, &json!("global")));
    let commands = answer["data"].as_array().unwrap();
    let greet = commands.iter().find(|command| command["name"] == "greet").unwrap();
    let model = json!({"id": "plain-model", "providerID": "mock"});
    assert_eq!(greet, &json!({"name": "greet", "template": "hello $1", "model": model}));
    assert!(commands.iter().any(|command| command["name"] == "init" && command["description"].is_string()));
    let (_, answer) = ask(&router, "GET", "/api/skill", "").await;
    let skill = &answer["data"][0];
    for key in ["name", "location", "content"] {
        assert!(skill[key].is_string(), "{skill}");
    }
}

#[tokio::test]
async fn a_question_is_answered_in_its_own_session_only() {
    let pending = json!({"questions": [{"question": "Which?", "header": "W", "options": [
        {"label": "Red", "description": "warm"}, {"label": "Blue", "description": "cold"}]}]});
    let script = Script::new().tool("question", pending.clone()).tool("question", pending).text("Done.");
    let bench = Bench::new(script).await;
    let (router, client) = (bench.router(quick()), bench.client());
    let session = client.create_session(&SessionInput::default()).await.unwrap();
    let other = client.create_session(&SessionInput::default()).await.unwrap();
    client.prompt_async(&session.id, &says("go")).await.unwrap();
    let own = format!("/api/session/{}/question", session.id);
    let question = first(&router, &own).await;
    assert_eq!(
        (&question["questions"][0]["question"], &question["sessionID"]),
        (&json!("Which?"), &json!(session.id))
    );
    assert_eq!(first(&router, "/api/question/request").await, question);
    let elsewhere = format!("/api/session/{}/question", other.id);
    assert_eq!(ask(&router, "GET", &elsewhere, "").await, (200, json!({"data": []})));
    let id = question["id"].as_str().unwrap();
    let answer = r#"{"answers": [["Red"]]}"#;
    let (status, error) = ask(&router, "POST", &format!("{elsewhere}/{id}/reply"), answer).await;
    assert_eq!((status, error["_tag"].as_str()), (404, Some("QuestionNotFoundError")), "{error}");
    assert_eq!(ask(&router, "POST", &format!("{own}/{id}/reply"), answer).await, (204, Value::Null));
    let mut second = first(&router, &own).await;
    while second["id"] == question["id"] {
        second = first(&router, &own).await;
    }
    let id = second["id"].as_str().unwrap();
    assert_eq!(ask(&router, "POST", &format!("{own}/{id}/reject"), "").await.0, 204);
    let (status, error) = ask(&router, "GET", "/api/session/ses_nope/question", "").await;
    assert_eq!((status, error["_tag"].as_str()), (404, Some("SessionNotFoundError")), "{error}");
}

#[tokio::test]
async fn a_permission_request_is_read_and_answered_in_its_own_session_only() {
    let script = Script::new().tool("bash", json!({"command": "echo one"})).text("Done.");
    let bench = Bench::configured(script, |config| config["permission"] = json!({"bash": "ask"})).await;
    let (router, client) = (bench.router(quick()), bench.client());
    let session = client.create_session(&SessionInput::default()).await.unwrap();
    let other = client.create_session(&SessionInput::default()).await.unwrap();
    client.prompt_async(&session.id, &says("go")).await.unwrap();
    let own = format!("/api/session/{}/permission", session.id);
    let request = first(&router, &own).await;
    assert_eq!((&request["action"], &request["resources"]), (&json!("bash"), &json!(["echo one"])));
    let id = request["id"].as_str().unwrap();
    assert_eq!(ask(&router, "GET", &format!("{own}/{id}"), "").await, (200, json!({"data": request})));
    let elsewhere = format!("/api/session/{}/permission/{id}", other.id);
    for (method, path, body) in
        [("GET", elsewhere.clone(), ""), ("POST", format!("{elsewhere}/reply"), r#"{"reply": "once"}"#)]
    {
        let (status, error) = ask(&router, method, &path, body).await;
        assert_eq!((status, error["_tag"].as_str()), (404, Some("PermissionNotFoundError")), "{error}");
    }
    let path = format!("{own}/{id}/reply");
    assert_eq!(ask(&router, "POST", &path, r#"{"reply": "once"}"#).await, (204, Value::Null));
    assert_eq!(ask(&router, "DELETE", "/api/permission/saved/x", "").await.0, 204);
}

#[tokio::test]
async fn missing_terminals_have_the_error_of_v2() {
    let bench = Bench::new(Script::new()).await;
    let router = bench.router(quick());
    let directory = bench.project.directory().to_str().unwrap();
    let (status, none) = ask(&router, "GET", "/api/pty", "").await;
    assert_eq!((status, &none["data"], &none["location"]["directory"]), (200, &json!([]), &json!(directory)));
    let (status, error) = ask(&router, "POST", "/api/pty/pty_1/connect-token", "").await;
    assert_eq!((status, error["_tag"].as_str()), (403, Some("ForbiddenError")));
    for (method, body) in [("GET", ""), ("PUT", "{}"), ("DELETE", "")] {
        let (status, error) = ask(&router, method, "/api/pty/pty_1", body).await;
        assert_eq!((status, error["_tag"].as_str()), (404, Some("PtyNotFoundError")), "{method}");
    }
}

#[tokio::test]
async fn sessions_are_created_switched_and_interrupted() {
    let bench = Bench::new(Script::new().text("One.").text("A summary.").turn(Turn::Silent)).await;
    let (router, client) = (bench.router(quick()), bench.client());
    let directory = bench.project.directory().to_str().unwrap();
    let body = json!({"agent": "build", "location": {"directory": directory}}).to_string();
    let (status, made) = ask(&router, "POST", "/api/session", &body).await;
    assert_eq!((status, &made["data"]["location"]["directory"]), (200, &json!(directory)), "{made}");
    let id = codewright_proto::SessionId::parse(made["data"]["id"].as_str().unwrap()).unwrap();
    let path = format!("/api/session/{id}");
    assert_eq!(ask(&router, "POST", &format!("{path}/agent"), r#"{"agent": "plan"}"#).await.0, 204);
    let model = json!({"model": {"id": "plain-model", "providerID": "mock"}}).to_string();
    assert_eq!(ask(&router, "POST", &format!("{path}/model"), &model).await.0, 204);
    let (_, read) = ask(&router, "GET", &path, "").await;
    assert_eq!(
        (&read["data"]["agent"], &read["data"]["model"]["id"]),
        (&json!("plan"), &json!("plain-model"))
    );
    let (status, error) = ask(&router, "POST", &format!("{path}/agent"), r#"{"agent": "nobody"}"#).await;
    assert!(status == 400 && error.to_string().contains("nobody"), "{status} {error}");
    client.prompt(&id, &says("go")).await.unwrap();
    assert_eq!(ask(&router, "POST", &format!("{path}/compact"), "").await, (204, Value::Null));
    let messages = client.messages(&id, None).await.unwrap();
    assert!(json!(messages.last())["info"]["summary"] == true, "{messages:?}");
    client.prompt_async(&id, &says("go on")).await.unwrap();
    let waiting = format!("{path}/wait");
    let mut waiting = Box::pin(ask(&router, "POST", &waiting, ""));
    assert!(timeout(Duration::from_millis(300), &mut waiting).await.is_err(), "the session is running");
    assert_eq!(ask(&router, "POST", &format!("{path}/interrupt"), "").await, (204, Value::Null));
    assert_eq!(timeout(PATIENCE, waiting).await.unwrap(), (204, Value::Null));
    assert!(client.statuses().await.unwrap().is_empty());
    for refused in
        [json!({"id": "mine"}), json!({"location": {"directory": directory, "workspaceID": "wrk_1"}})]
    {
        assert_eq!(ask(&router, "POST", "/api/session", &refused.to_string()).await.0, 400, "{refused}");
    }
    assert_eq!(ask(&router, "POST", "/api/session/ses_nope/interrupt", "").await.0, 404);
}

#[tokio::test]
async fn events_have_data_location_and_sequence_number() {
    let bench = Bench::new(Script::new()).await;
    let (router, client) = (bench.router(quick()), bench.client());
    let mut response = send(&router, request("GET", "/api/event").body(Body::empty()).unwrap()).await;
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let session = client.create_session(&SessionInput::default()).await.unwrap();
    let mut text = String::new();
    while !(text.contains("session.created") && text.contains(": heartbeat\n\n")) {
        let chunk = timeout(PATIENCE, response.body_mut().frame()).await.unwrap().unwrap().unwrap();
        text.push_str(std::str::from_utf8(chunk.data_ref().unwrap()).unwrap());
    }
    let frames = text.split("\n\n").filter_map(|frame| frame.strip_prefix("data: "));
    let frames: Vec<Value> = frames.map(|data| serde_json::from_str(data).unwrap()).collect();
    assert_eq!((&frames[0]["type"], &frames[0]["data"]), (&json!("server.connected"), &json!({})));
    let created = frames.iter().find(|frame| frame["type"] == "session.created").unwrap();
    let durable = json!({"aggregateID": session.id, "seq": created["durable"]["seq"], "version": 1});
    assert_eq!(created["durable"], durable);
    assert_eq!(created["location"]["directory"], json!(session.directory));
    assert_eq!(created["data"]["info"]["id"], json!(session.id));
    assert!(created.get("properties").is_none() && created["id"].is_string(), "{created}");
}

/// Sends a prompt with an image of the given size, without a response.
async fn picture(router: &Router, session: &str, bytes: usize) {
    let uri = format!("data:image/png;base64,{}", "A".repeat(bytes));
    let body = json!({"prompt": {"text": "look", "files": [{"uri": uri}]}, "resume": false}).to_string();
    let (status, answer) = ask(router, "POST", &format!("/api/session/{session}/prompt"), &body).await;
    assert_eq!(status, 200, "{}", answer.to_string().chars().take(300).collect::<String>());
}

#[tokio::test]
async fn a_page_of_large_events_or_messages_ends_before_its_limit() {
    let bench = Bench::new(Script::new()).await;
    let (router, client) = (bench.router(quick()), bench.client());
    let session = client.create_session(&SessionInput::default()).await.unwrap();
    for _ in 0..3 {
        picture(&router, session.id.as_str(), 5 * 1024 * 1024).await;
    }
    let (mut after, mut pages, mut kinds) = (0, 0, Vec::new());
    loop {
        let path = format!("/api/session/{}/history?limit=100&after={after}", session.id);
        let (status, page) = ask(&router, "GET", &path, "").await;
        let data = page["data"].as_array().unwrap();
        assert!(status == 200 && (1..=2).contains(&data.len()), "{status} {}", data.len());
        after = data.last().unwrap()["durable"]["seq"].as_u64().unwrap();
        kinds.extend(data.iter().map(|event| event["type"].as_str().unwrap().to_owned()));
        pages += 1;
        if page["hasMore"] == false {
            break;
        }
    }
    let both = ["session.next.prompt.admitted", "session.next.prompted"];
    assert_eq!((pages, kinds), (3, both.repeat(3).into_iter().map(str::to_owned).collect()));

    for order in ["asc", "desc"] {
        let path = format!("/api/session/{}/message", session.id);
        let (_, first) = ask(&router, "GET", &format!("{path}?order={order}&limit=200"), "").await;
        let next = first["cursor"]["next"].as_str().unwrap();
        let (_, second) = ask(&router, "GET", &format!("{path}?cursor={next}&limit=200"), "").await;
        let previous = second["cursor"]["previous"].as_str().unwrap();
        let (_, back) = ask(&router, "GET", &format!("{path}?cursor={previous}&limit=200"), "").await;
        let ids = |page: &Value| -> Vec<Value> {
            page["data"].as_array().unwrap().iter().map(|message| message["id"].clone()).collect()
        };
        assert_eq!((ids(&first).len(), ids(&second).len()), (2, 1), "{order}");
        assert_eq!(ids(&back), ids(&first), "{order}");
        assert!(!ids(&first).contains(&ids(&second)[0]), "{order}");
    }
}

#[tokio::test]
async fn a_new_stream_does_not_contain_old_prompts() {
    let bench = Bench::new(Script::new()).await;
    let (router, client) = (bench.router(quick()), bench.client());
    let session = client.create_session(&SessionInput::default()).await.unwrap();
    picture(&router, session.id.as_str(), 8).await;
    let mut response = send(&router, request("GET", "/api/event").body(Body::empty()).unwrap()).await;
    let renamed = json!({"title": "Renamed"}).to_string();
    assert_eq!(ask(&router, "PATCH", &format!("/session/{}", session.id), &renamed).await.0, 200);
    let mut text = String::new();
    while !(text.contains("Renamed") && text.ends_with(": heartbeat\n\n")) {
        let chunk = timeout(PATIENCE, response.body_mut().frame()).await.unwrap().unwrap().unwrap();
        text.push_str(std::str::from_utf8(chunk.data_ref().unwrap()).unwrap());
    }
    assert!(!text.contains("session.next.prompt"), "{text}");
}

#[tokio::test]
async fn a_retry_of_a_reverted_prompt_returns_the_last_admission() {
    let bench = Bench::new(Script::new()).await;
    let (router, client) = (bench.router(quick()), bench.client());
    let session = client.create_session(&SessionInput::default()).await.unwrap();
    let path = format!("/api/session/{}", session.id);
    let body = json!({"id": "msg_own", "prompt": {"text": "look"}, "resume": false}).to_string();
    let admit = async || {
        let (status, answer) = ask(&router, "POST", &format!("{path}/prompt"), &body).await;
        assert_eq!(status, 200, "{answer}");
        (answer["data"]["admittedSeq"].as_u64().unwrap(), answer["data"]["promotedSeq"].clone())
    };
    let first = admit().await;
    let stage = json!({"messageID": "msg_own"}).to_string();
    assert_eq!(ask(&router, "POST", &format!("{path}/revert/stage"), &stage).await.0, 200);
    let (status, _) = ask(&router, "POST", &format!("{path}/revert/commit"), "").await;
    assert!(status < 300, "{status}");
    let second = admit().await;
    assert!(second.0 > first.0, "{first:?} {second:?}");
    assert_eq!(admit().await, second);
}

#[tokio::test]
async fn clearing_a_revert_from_long_ago_is_published() {
    let bench = Bench::new(Script::new()).await;
    let (router, client) = (bench.router(quick()), bench.client());
    let session = client.create_session(&SessionInput::default()).await.unwrap();
    let path = format!("/api/session/{}", session.id);
    let body = json!({"id": "msg_own", "prompt": {"text": "look"}, "resume": false}).to_string();
    assert_eq!(ask(&router, "POST", &format!("{path}/prompt"), &body).await.0, 200);
    let stage = json!({"messageID": "msg_own"}).to_string();
    assert_eq!(ask(&router, "POST", &format!("{path}/revert/stage"), &stage).await.0, 200);
    // More events than are read back.
    let stored =
        bench.engine.sessions().message(&session.id, &MessageId::parse("msg_own").unwrap()).await.unwrap();
    let mut part = json!(stored.parts[0]);
    part["text"] = json!("x".repeat(1024 * 1024));
    let own = format!("/session/{}/message/msg_own/part/{}", session.id, stored.parts[0].id);
    for _ in 0..3 {
        assert_eq!(ask(&router, "PATCH", &own, &part.to_string()).await.0, 200);
    }
    let last = bench.engine.events().of_session(&session.id, 0, 1000).await.unwrap().last().unwrap().seq;
    let mut response = send(&router, request("GET", "/api/event").body(Body::empty()).unwrap()).await;
    let (status, _) = ask(&router, "POST", &format!("{path}/revert/clear"), "").await;
    assert!(status < 300, "{status}");
    let (_, page) = ask(&router, "GET", &format!("{path}/history?after={last}"), "").await;
    let published = page["data"].as_array().unwrap();
    assert!(published.iter().any(|event| event["type"] == "session.next.revert.cleared"), "{page}");
    let mut text = String::new();
    while !text.contains("session.next.revert.cleared") {
        let chunk = timeout(PATIENCE, response.body_mut().frame()).await.unwrap().unwrap().unwrap();
        text.push_str(std::str::from_utf8(chunk.data_ref().unwrap()).unwrap());
    }
}

#[tokio::test]
async fn the_context_is_limited_and_excludes_reverted_messages() {
    let bench = Bench::new(Script::new()).await;
    let (router, client) = (bench.router(quick()), bench.client());
    let session = client.create_session(&SessionInput::default()).await.unwrap();
    let path = format!("/api/session/{}", session.id);
    for at in 0..20 {
        let body =
            json!({"id": format!("msg_{at:02}"), "prompt": {"text": "look"}, "resume": false}).to_string();
        assert_eq!(ask(&router, "POST", &format!("{path}/prompt"), &body).await.0, 200);
    }
    let shown = async || {
        let (status, answer) = ask(&router, "GET", &format!("{path}/context"), "").await;
        assert_eq!(status, 200, "{answer}");
        let ids = answer["data"]
            .as_array()
            .unwrap()
            .iter()
            .map(|message| message["id"].as_str().unwrap().to_owned());
        ids.collect::<Vec<_>>()
    };
    let all: Vec<String> = (0..20).map(|at| format!("msg_{at:02}")).collect();
    assert_eq!(shown().await, all);
    let stage = json!({"messageID": "msg_05"}).to_string();
    assert_eq!(ask(&router, "POST", &format!("{path}/revert/stage"), &stage).await.0, 200);
    assert_eq!(shown().await, all[..5]);
    assert!(ask(&router, "POST", &format!("{path}/revert/clear"), "").await.0 < 300);
    for _ in 0..4 {
        picture(&router, session.id.as_str(), 9 * 1024 * 1024).await;
    }
    let (status, error) = ask(&router, "GET", &format!("{path}/context"), "").await;
    assert_eq!((status, error["_tag"].as_str()), (400, Some("InvalidRequestError")), "{error}");
    assert!(error["message"].as_str().unwrap().contains("32 MiB"), "{error}");
}

#[tokio::test]
async fn every_prompt_is_published_even_if_its_session_is_evicted() {
    let bench = Bench::new(Script::new()).await;
    let (router, client) = (bench.router(quick()), bench.client());
    // Without heartbeats, which would publish complete prompts.
    let silent = Options { heartbeat: Duration::from_secs(3600), ..Options::default() };
    let listening = request("GET", "/api/event").body(Body::empty()).unwrap();
    let mut response = send(&bench.router(silent), listening).await;
    let mut sessions = Vec::new();
    // More than the limit on the state of other sessions.
    for _ in 0..6 {
        let session = client.create_session(&SessionInput::default()).await.unwrap();
        picture(&router, session.id.as_str(), 5 * 1024 * 1024).await;
        sessions.push(session.id);
    }
    let last = sessions.pop().unwrap();
    let mut published = 0;
    let mut text = String::new();
    while published < 2 {
        let chunk = timeout(PATIENCE, response.body_mut().frame()).await.unwrap().unwrap().unwrap();
        text.push_str(std::str::from_utf8(chunk.data_ref().unwrap()).unwrap());
        while let Some((frame, rest)) = text.split_once("\n\n") {
            let data: Value = serde_json::from_str(frame.strip_prefix("data: ").unwrap_or("null")).unwrap();
            let of = data["data"]["sessionID"].as_str().unwrap_or_default();
            assert_ne!(
                (data["type"].as_str(), of),
                (Some("session.next.prompted"), last.as_str()),
                "nothing says it is all"
            );
            if data["type"] == "session.next.prompted" {
                assert_eq!(of, sessions[published].as_str());
                assert_eq!(data["location"]["directory"], json!(bench.project.directory()));
                published += 1;
            }
            text = rest.to_owned();
        }
    }
}
