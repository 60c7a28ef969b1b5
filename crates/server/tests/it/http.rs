//! The routes: replies, errors and limits.

use std::collections::BTreeSet;

use axum::body::Body;
use codewright_client::{Client, SessionQuery};
use codewright_proto::SessionInput;
use codewright_server::{Options, routes};
use codewright_testkit::Script;
use futures_util::StreamExt as _;
use serde_json::{Value, json};

use crate::bench::{Bench, ask, quick, read, request, says, send};

async fn describes_itself(client: Client, bench: &Bench) {
    let directory = bench.project.directory().to_str().unwrap();
    let health = client.health().await.unwrap();
    assert_eq!((health.healthy, health.version.as_str()), (true, "1.18.33"));
    assert_eq!(client.path().await.unwrap().directory, directory);
    assert_eq!(client.project().await.unwrap().id.as_str(), "global");
    assert_eq!(client.config().await.unwrap()["model"], "mock/plain-model");
    let changed = client.change_config(&serde_json::json!({"username": "Ann"})).await.unwrap();
    assert_eq!(
        (&changed["username"], &client.config().await.unwrap()["username"]),
        (&"Ann".into(), &"Ann".into())
    );
    assert!(client.agents().await.unwrap().as_array().unwrap().iter().any(|agent| agent["name"] == "build"));
    let providers = client.providers().await.unwrap();
    assert!(providers["providers"].as_array().unwrap().iter().any(|provider| provider["id"] == "mock"));
    assert_eq!(providers["default"]["mock"], "plain-model");
    assert!(client.statuses().await.unwrap().is_empty());
    assert!(client.permissions().await.unwrap().is_empty());
}

#[tokio::test]
async fn a_server_describes_itself_in_process_and_over_a_socket() {
    let bench = Bench::new(Script::new()).await;
    describes_itself(bench.client(), &bench).await;
    let listening = bench.listen(quick()).await;
    describes_itself(Client::http(&listening.url, None, None).unwrap(), &bench).await;
}

#[tokio::test]
async fn a_session_is_created_changed_and_deleted_in_the_recorded_schemas() {
    let bench = Bench::new(Script::new()).await;
    let router = bench.router(quick());
    let make = |body: &'static str| {
        let request = request("POST", "/session").header("content-type", "application/json");
        send(&router, request.body(Body::from(body)).unwrap())
    };
    let (status, made) = read(make(r#"{"title":"My session"}"#).await).await;
    assert_eq!(status, 200);
    let keys: BTreeSet<_> = made.as_object().unwrap().keys().map(String::as_str).collect();
    let recorded =
        ["id", "slug", "projectID", "directory", "path", "cost", "tokens", "title", "version", "time"];
    assert_eq!(keys, BTreeSet::from(recorded));
    let usage = json!({"input": 0, "output": 0, "reasoning": 0, "cache": {"read": 0, "write": 0}});
    assert_eq!((&made["title"], &made["tokens"]), (&json!("My session"), &usage));
    let (status, untitled) =
        read(send(&router, request("POST", "/session").body(Body::empty()).unwrap()).await).await;
    assert_eq!(status, 200, "a body is optional");
    assert!(untitled["title"].as_str().unwrap().starts_with("New session - "), "{untitled}");

    let client = Client::in_process(router.clone());
    let listed = client.sessions(&SessionQuery::default()).await.unwrap();
    assert_eq!(listed.len(), 2);
    let session = listed.iter().find(|session| session.title == "My session").unwrap();
    let child = SessionInput { parent_id: Some(session.id.clone()), ..SessionInput::default() };
    let child = client.create_session(&child).await.unwrap();
    assert_eq!(child.parent_id.as_ref(), Some(&session.id));
    let roots = SessionQuery { roots: true, ..SessionQuery::default() };
    assert!(client.sessions(&roots).await.unwrap().iter().all(|session| session.id != child.id));
    let one = SessionQuery { limit: Some(1), ..SessionQuery::default() };
    assert_eq!(client.sessions(&one).await.unwrap().len(), 1);
    let named = SessionQuery { search: Some("my SESS".to_owned()), ..SessionQuery::default() };
    assert_eq!(client.sessions(&named).await.unwrap(), std::slice::from_ref(session));
    let elsewhere = SessionQuery { directory: Some("/".to_owned()), ..SessionQuery::default() };
    assert!(client.sessions(&elsewhere).await.unwrap().is_empty());

    let patch = codewright_proto::SessionPatch { title: Some("Renamed".to_owned()), ..Default::default() };
    assert_eq!(client.update_session(&session.id, &patch).await.unwrap().title, "Renamed");
    assert_eq!(client.session(&session.id).await.unwrap().title, "Renamed");
    assert!(client.messages(&session.id, None).await.unwrap().is_empty());
    assert!(client.abort(&session.id).await.unwrap(), "aborting an idle session succeeds");
    assert!(client.delete_session(&session.id).await.unwrap());
    let error = client.session(&session.id).await.unwrap_err();
    assert!(error.is_not_found());
    assert_eq!(error.to_string(), format!("Session not found: {}", session.id));
}

#[tokio::test]
async fn prompts_without_reply_are_messages_and_forks_copy_them() {
    let bench = Bench::new(Script::new()).await;
    let client = bench.client();
    let session = client.create_session(&SessionInput::default()).await.unwrap();
    for text in ["one", "two", "three"] {
        let input = codewright_proto::PromptInput { no_reply: Some(true), ..says(text) };
        client.prompt(&session.id, &input).await.unwrap();
    }
    let messages = client.messages(&session.id, None).await.unwrap();
    assert_eq!(messages.len(), 3);
    assert_eq!(client.messages(&session.id, Some(1)).await.unwrap(), &messages[2..]);
    assert_eq!(client.message(&session.id, messages[1].info.id()).await.unwrap(), messages[1]);
    let fork = client.fork(&session.id, Some(messages[2].info.id())).await.unwrap();
    assert_eq!(client.messages(&fork.id, None).await.unwrap().len(), 2);
    let whole = client.fork(&session.id, None).await.unwrap();
    assert_eq!(client.messages(&whole.id, None).await.unwrap().len(), 3);
}

/// Sends the request of each row (method, path, body) and expects its status and JSON.
async fn check_errors(bench: &Bench, rows: &[(&str, &str, &str, u16, Value)]) {
    let router = bench.router(quick());
    for (method, path, body, status, expected) in rows {
        let mut request = request(method, path);
        if !body.is_empty() {
            request = request.header("content-type", "application/json");
        }
        let response = send(&router, request.body(Body::from((*body).to_owned())).unwrap()).await;
        assert_eq!(response.headers()["content-type"], "application/json", "{method} {path}");
        let (answered, json) = read(response).await;
        assert_eq!((answered.as_u16(), &json), (*status, expected), "{method} {path} {body}");
    }
}

#[tokio::test]
async fn errors_about_missing_things_have_the_recorded_names_and_statuses() {
    let bench = Bench::new(Script::new()).await;
    let session = bench.client().create_session(&SessionInput::default()).await.unwrap().id;
    let own = |rest: &str| format!("/session/{session}{rest}");
    let missing = |what: &str| json!({"name": "NotFoundError", "data": {"message": what}});
    let missing_session = || missing("Session not found: ses_x0000");
    let text = r#"{"parts":[{"type":"text","text":"x"}]}"#;
    let permission = || {
        let message = "Permission request not found: per_nope";
        json!({"_tag": "PermissionNotFoundError", "requestID": "per_nope", "message": message})
    };
    let question = || {
        let message = "Question request not found: que_nope";
        json!({"_tag": "QuestionNotFoundError", "requestID": "que_nope", "message": message})
    };
    let message = missing("Message not found: msg_nope");
    let rows = [
        ("GET", "/session/ses_x0000", "", 404, missing_session()),
        ("PATCH", "/session/ses_x0000", r#"{"title":"x"}"#, 404, missing_session()),
        ("DELETE", "/session/ses_x0000", "", 404, missing_session()),
        ("GET", "/session/ses_x0000/message", "", 404, missing_session()),
        ("POST", "/session/ses_x0000/message", text, 404, missing_session()),
        ("POST", "/session/ses_x0000/prompt", text, 404, missing_session()),
        ("POST", "/session/ses_x0000/prompt_async", text, 404, missing_session()),
        ("POST", "/session/ses_x0000/fork", "", 404, missing_session()),
        ("GET", "/session/ses_x0000/children", "", 404, missing_session()),
        ("GET", "/session/ses_x0000/todo", "", 404, missing_session()),
        ("GET", "/session/ses_x0000/diff", "", 200, json!([])),
        ("GET", "/session/ses_x0000/diff?messageID=msg_nope", "", 200, json!([])),
        ("POST", "/session/ses_x0000/revert", r#"{"messageID":"msg_nope"}"#, 404, missing_session()),
        ("POST", "/session/ses_x0000/unrevert", "", 404, missing_session()),
        ("POST", "/session/ses_x0000/compact", "", 404, missing_session()),
        (
            "POST",
            "/session/ses_x0000/summarize",
            r#"{"providerID":"p","modelID":"m"}"#,
            404,
            missing_session(),
        ),
        ("POST", "/session/ses_x0000/share", "", 404, missing_session()),
        ("DELETE", "/session/ses_x0000/share", "", 404, missing_session()),
        (
            "POST",
            "/session/ses_x0000/init",
            r#"{"providerID":"p","modelID":"m","messageID":"msg_x0000"}"#,
            404,
            missing_session(),
        ),
        ("POST", "/session/ses_x0000/abort", "", 200, json!(true)),
        ("DELETE", "/session/ses_x0000/message/msg_nope", "", 404, missing_session()),
        ("DELETE", "/session/ses_x0000/message/msg_nope/part/prt_nope", "", 404, missing_session()),
        ("DELETE", &own("/message/msg_nope"), "", 200, json!(true)),
        ("DELETE", &own("/message/msg_nope/part/prt_nope"), "", 200, json!(true)),
        ("GET", &own("/message/msg_nope"), "", 404, message),
        ("POST", "/permission/per_nope/reply", r#"{"reply":"once"}"#, 404, permission()),
        ("POST", "/question/que_nope/reply", r#"{"answers":[]}"#, 404, question()),
        ("POST", "/question/que_nope/reject", "", 404, question()),
        ("POST", &own("/permissions/per_nope"), r#"{"response":"once"}"#, 404, permission()),
        ("GET", "/nope/route", "", 404, missing("there is no route `GET /nope/route`")),
        ("GET", "/nope", "", 404, missing("there is no route `GET /nope`")),
    ];
    check_errors(&bench, &rows).await;
}

#[tokio::test]
async fn errors_about_invalid_requests_have_the_recorded_names_and_statuses() {
    let bench = Bench::new(Script::new()).await;
    let session = bench.client().create_session(&SessionInput::default()).await.unwrap().id;
    let prompt = format!("/session/{session}/message");
    let bad =
        |message: &str, kind: &str| json!({"name": "BadRequest", "data": {"message": message, "kind": kind}});
    let reply = "unknown variant `zzz`, expected one of `once`, `always`, `reject`\n  at [\"reply\"]";
    let parts = "invalid type: string \"x\", expected a sequence\n  at [\"parts\"]";
    let syntax = "the request body is not JSON: key must be a string at line 1 column 2";
    let title = "invalid type: integer `5`, expected a string\n  at [\"title\"]";
    let malformed = |prefix: &str| {
        format!(
            "`nope` is not a valid id: it must start with `{prefix}_` and hold letters, digits, `_` or `-`"
        )
    };
    let id = malformed("ses");
    let method = "`/session` does not support `PUT`";
    let prefix = "Expected a string starting with \"msg\", got \"bad\"\n  at [\"messageID\"]";
    let share = "sharing a session is not supported by this version";
    let own = |rest: &str| format!("/session/{session}{rest}");
    let rows = [
        ("POST", "/permission/per_nope/reply", r#"{"reply":"zzz"}"#, 400, bad(reply, "Payload")),
        ("POST", &prompt, r#"{"parts":"x"}"#, 400, bad(parts, "Payload")),
        ("POST", &prompt, "{bad", 400, bad(syntax, "Payload")),
        ("POST", &prompt, "", 400, bad("Missing key\n  at [\"parts\"]", "Payload")),
        ("POST", "/session", r#"{"title":5}"#, 400, bad(title, "Payload")),
        ("POST", &own("/revert"), "{}", 400, bad("Missing key\n  at [\"messageID\"]", "Payload")),
        ("POST", &own("/revert"), r#"{"messageID":"bad"}"#, 400, bad(prefix, "Payload")),
        ("POST", &own("/summarize"), "{}", 400, bad("Missing key\n  at [\"providerID\"]", "Payload")),
        ("POST", &own("/share"), "", 400, json!({"name": "BadRequest", "data": {"message": share}})),
        ("GET", "/pty/nope", "", 400, bad(&malformed("pty"), "Params")),
        ("GET", &own("/message/nope"), "", 400, bad(&malformed("msg"), "Params")),
        ("DELETE", &own("/message/msg_x/part/nope"), "", 400, bad(&malformed("prt"), "Params")),
        ("POST", "/permission/nope/reply", "", 400, bad(&malformed("per"), "Params")),
        ("POST", "/question/nope/reject", "", 400, bad(&malformed("que"), "Params")),
        ("GET", "/session/%FF", "", 400, bad("Invalid URL: Invalid UTF-8 in `sessionID`", "Params")),
        // Clients expect an unknown error for an invalid session id.
        ("GET", "/session/nope", "", 500, json!({"name": "UnknownError", "data": {"message": id}})),
        ("PUT", "/session", "", 405, json!({"name": "BadRequest", "data": {"message": method}})),
    ];
    check_errors(&bench, &rows).await;
}

#[tokio::test]
async fn an_invalid_limit_is_ignored() {
    let bench = Bench::new(Script::new()).await;
    bench.client().create_session(&SessionInput::default()).await.unwrap();
    let router = bench.router(quick());
    for query in ["limit=undefined", "limit=NaN", "limit=-1", "limit=", "start=undefined", "start=-1"] {
        for list in ["/session", "/experimental/session"] {
            let (status, listed) = ask(&router, "GET", &format!("{list}?{query}"), "").await;
            assert_eq!((status, listed.as_array().unwrap().len()), (200, 1), "{list}?{query}");
        }
    }
}

#[tokio::test]
async fn redundant_slashes_are_ignored() {
    let bench = Bench::new(Script::new()).await;
    let session = bench.client().create_session(&SessionInput::default()).await.unwrap().id;
    let router = bench.router(quick());
    for path in ["//session", "/session/", "//session//?limit=1"] {
        let (status, listed) = ask(&router, "GET", path, "").await;
        assert_eq!((status, &listed[0]["id"]), (200, &json!(session)), "{path}");
    }
    let (status, error) = ask(&router, "GET", &format!("/session/{session}//nothing/"), "").await;
    let message = format!("there is no route `GET /session/{session}/nothing`");
    assert_eq!((status, &error["data"]["message"]), (404, &json!(message)));
}

#[tokio::test]
async fn a_wrong_method_gets_the_allowed_methods() {
    let bench = Bench::new(Script::new()).await;
    let response =
        send(&bench.router(quick()), request("PUT", "/session").body(Body::empty()).unwrap()).await;
    let allowed = response.headers()["allow"].to_str().unwrap();
    assert!(allowed.contains("GET") && allowed.contains("POST"), "{allowed}");
}

#[tokio::test]
async fn the_directory_in_the_query_takes_precedence_over_the_header() {
    let bench = Bench::new(Script::new()).await;
    let router = bench.router(quick());
    let own = bench.project.directory().to_str().unwrap();
    for directory in ["one place", "other"] {
        std::fs::create_dir(bench.project.path(directory)).unwrap();
    }
    let (one, other) = (format!("{own}/one place"), format!("{own}/other"));
    let escaped = one.replace('/', "%2F").replace(' ', "%20");
    for (query, header, expected) in [
        (String::new(), None, own),
        (format!("?directory={escaped}"), None, &one),
        (String::new(), Some(escaped.as_str()), &one),
        (format!("?directory={other}"), Some(escaped.as_str()), &other),
        ("?directory=other".to_owned(), None, &other),
    ] {
        let mut request = request("GET", &format!("/path{query}"));
        if let Some(header) = header {
            request = request.header("x-opencode-directory", header);
        }
        let (status, path) = read(send(&router, request.body(Body::empty()).unwrap()).await).await;
        assert_eq!((status.as_u16(), &path["directory"]), (200, &json!(expected)), "{query} {header:?}");
    }
    for (query, header) in [("?directory=%00", ""), ("", "%FF"), ("?directory=missing", "")] {
        let request = request("GET", &format!("/path{query}")).header("x-opencode-directory", header);
        let (status, error) = read(send(&router, request.body(Body::empty()).unwrap()).await).await;
        assert_eq!((status.as_u16(), &error["name"]), (400, &json!("BadRequest")));
    }
}

#[tokio::test]
async fn a_body_above_the_limit_is_rejected() {
    let bench = Bench::new(Script::new()).await;
    let router = bench.router(Options { body_limit_bytes: 1024 * 1024, ..quick() });
    let request = request("POST", "/session").header("content-type", "application/json");
    let body = format!("{{\"title\":\"{}\"}}", "x".repeat(1024 * 1024));
    let (status, error) = read(send(&router, request.body(Body::from(body)).unwrap()).await).await;
    assert_eq!(status, 413);
    assert_eq!(error["data"]["message"], "the request body has more than 1 MiB");
}

#[tokio::test]
async fn a_body_that_does_not_arrive_times_out() {
    let bench = Bench::new(Script::new()).await;
    let options = Options { body_deadline: std::time::Duration::from_millis(20), ..quick() };
    let request = request("POST", "/session").header("content-type", "application/json");
    let never = futures_util::stream::pending::<Result<bytes::Bytes, std::io::Error>>();
    let response = send(&bench.router(options), request.body(Body::from_stream(never)).unwrap()).await;
    assert_eq!(response.status(), 408);
}

#[tokio::test]
async fn a_slow_request_times_out() {
    let bench = Bench::new(Script::new()).await;
    let options = Options { deadline: std::time::Duration::from_millis(20), ..quick() };
    let request = request("POST", "/session").header("content-type", "application/json");
    let never = futures_util::stream::pending::<Result<bytes::Bytes, std::io::Error>>();
    let response = send(&bench.router(options), request.body(Body::from_stream(never)).unwrap()).await;
    let (status, error) = read(response).await;
    assert_eq!((status.as_u16(), &error["data"]["message"]), (503, &json!("the request took too long")));
}

#[tokio::test]
async fn a_broken_configuration_is_named_without_its_secrets() {
    let bench = Bench::new(Script::new()).await;
    bench
        .project
        .write("broken/opencode.json", r#"{"provider":{"x":{"options":{"apiKey":"sk-secret"}}},"model":5}"#)
        .unwrap();
    let path = format!("/config?directory={}", bench.project.path("broken").display());
    let response = send(&bench.router(quick()), request("GET", &path).body(Body::empty()).unwrap()).await;
    let (status, error) = read(response).await;
    assert_eq!((status.as_u16(), &error["name"]), (500, &json!("UnknownError")), "{error}");
    assert!(error["data"]["message"].as_str().unwrap().contains("opencode.json"), "{error}");
    assert!(!error.to_string().contains("sk-secret"), "{error}");
}

#[tokio::test]
async fn the_id_of_another_message_and_an_invalid_time_are_client_errors() {
    let bench = Bench::new(Script::new()).await;
    let (router, client) = (bench.router(quick()), bench.client());
    let body = r#"{"messageID":"msg_0000000000aa","noReply":true,"parts":[{"type":"text","text":"x"}]}"#;
    let mut statuses = Vec::new();
    for _ in 0..2 {
        let id = client.create_session(&SessionInput::default()).await.unwrap().id;
        let (status, answer) = ask(&router, "POST", &format!("/session/{id}/message"), body).await;
        statuses.push(status);
        if status != 200 {
            assert_eq!(answer["name"], "BadRequest", "{answer}");
            assert!(answer["data"]["message"].as_str().unwrap().contains("is used by another"), "{answer}");
        }
        for time in ["18446744073709551615", "1e300", "-1"] {
            let patch = format!(r#"{{"time":{{"archived":{time}}}}}"#);
            assert_eq!(ask(&router, "PATCH", &format!("/session/{id}"), &patch).await.0, 400, "{time}");
        }
    }
    assert_eq!(statuses, [200, 400]);
}

#[test]
fn routes_are_unique() {
    let listed = routes();
    assert_eq!(listed.iter().collect::<BTreeSet<_>>().len(), listed.len());
}

#[tokio::test]
async fn every_response_has_a_request_id() {
    let bench = Bench::new(Script::new()).await;
    let router = bench.router(quick());
    let named = async |id: Option<&str>, path: &str| {
        let request =
            id.into_iter().fold(request("GET", path), |request, id| request.header("x-request-id", id));
        let response = send(&router, request.body(Body::empty()).unwrap()).await;
        response.headers()["x-request-id"].to_str().unwrap().to_owned()
    };
    assert_eq!(named(Some("client-7"), "/global/health").await, "client-7");
    assert_eq!(named(Some("client-8"), "/nope").await, "client-8");
    let (first, second) = (named(None, "/session").await, named(None, "/session").await);
    assert!(first.starts_with("req_") && second.starts_with("req_") && first != second, "{first} {second}");
    // An invalid request id is not returned, because it would be in the log.
    assert!(named(Some("a b"), "/session").await.starts_with("req_"));
}

#[tokio::test]
async fn a_long_transcript_is_sent_while_it_is_read() {
    const TEXT_BYTES: usize = 200 * 1024;
    let bench = Bench::new(Script::new()).await;
    let router = bench.router(quick());
    let session = bench.client().create_session(&SessionInput::default()).await.unwrap();
    let path = format!("/session/{}/message", session.id);
    for letter in ["a", "b", "c", "d", "e", "f", "g", "h"] {
        let part = json!({"type": "text", "text": letter.repeat(TEXT_BYTES)});
        let body = json!({"noReply": true, "parts": [part]}).to_string();
        assert_eq!(ask(&router, "POST", &path, &body).await.0, 200);
    }
    for (query, from, most) in [("", 0, 700 * 1024), ("?limit=7", 1, 700 * 1024), ("?limit=1", 7, 210 * 1024)]
    {
        let request = request("GET", &format!("{path}{query}")).body(Body::empty()).unwrap();
        let response = send(&router, request).await;
        let pieces: Vec<_> = response.into_body().into_data_stream().map(Result::unwrap).collect().await;
        let largest = pieces.iter().map(|piece| piece.len()).max().unwrap();
        assert!(largest < most, "{query}: a piece of {largest} bytes");
        let list: Value = serde_json::from_slice(&pieces.concat()).unwrap();
        let texts =
            list.as_array().unwrap().iter().map(|message| message["parts"][0]["text"].as_str().unwrap());
        let letters: String = texts.map(|text| text.get(..1).unwrap()).collect();
        assert_eq!(letters, "abcdefgh"[from..], "{query}");
    }
}
