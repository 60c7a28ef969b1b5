//! The event streams: greeting, heartbeats, scope and resuming.

use std::time::Duration;

use axum::Router;
use axum::body::Body;
use codewright_client::Client;
use codewright_proto::{Event, Fact, PromptInput, SessionId, SessionInput, Signal};
use codewright_server::Options;
use codewright_testkit::Script;
use http::Response;
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::bench::{Bench, PATIENCE, event, quick, request, says, send, until};

/// A stream at the level of bytes.
pub(crate) struct Raw {
    response: Response<Body>,
    text: String,
}

impl Raw {
    pub(crate) async fn open(router: &Router, path: &str, last: Option<u64>) -> Self {
        let mut message = request("GET", path);
        if let Some(last) = last {
            message = message.header("last-event-id", last);
        }
        let response = send(router, message.body(Body::empty()).unwrap()).await;
        assert_eq!(response.status(), 200);
        Self { response, text: String::new() }
    }

    /// Returns the id and the JSON of the next frame.
    pub(crate) async fn next(&mut self) -> (Option<u64>, Value) {
        loop {
            if let Some(end) = self.text.find("\n\n") {
                let frame: String = self.text.drain(..end + 2).collect();
                let (id, data) = match frame.strip_prefix("id: ").and_then(|rest| rest.split_once('\n')) {
                    Some((id, rest)) => (Some(id.parse().unwrap()), rest),
                    None => (None, frame.as_str()),
                };
                let data = data.strip_prefix("data: ").unwrap().strip_suffix("\n\n").unwrap();
                return (id, serde_json::from_str(data).unwrap());
            }
            let chunk = timeout(PATIENCE, self.response.body_mut().frame()).await.unwrap().unwrap().unwrap();
            self.text.push_str(std::str::from_utf8(chunk.data_ref().unwrap()).unwrap());
        }
    }

    /// Returns the next frame that is not a greeting or heartbeat.
    pub(crate) async fn next_event(&mut self) -> (Option<u64>, Value) {
        loop {
            let (id, data) = self.next().await;
            if !data.to_string().contains("\"server.") {
                return (id, data);
            }
        }
    }
}

async fn note(client: &Client, session: &SessionId, text: &str) {
    let input = PromptInput { no_reply: Some(true), ..says(text) };
    client.prompt(session, &input).await.unwrap();
}

#[tokio::test]
async fn a_stream_starts_with_a_greeting_and_continues_with_heartbeats() {
    let bench = Bench::new(Script::new()).await;
    let router = bench.router(quick());
    for (path, wrapped) in [("/event", false), ("/global/event", true)] {
        let mut raw = Raw::open(&router, path, None).await;
        let headers = raw.response.headers();
        assert_eq!(headers["content-type"], "text/event-stream");
        assert_eq!(headers["cache-control"], "no-cache, no-transform");
        assert_eq!(headers["x-accel-buffering"], "no");
        for kind in ["server.connected", "server.heartbeat", "server.heartbeat"] {
            let (id, mut notice) = raw.next().await;
            if wrapped {
                assert_eq!(notice.as_object().unwrap().len(), 1, "{notice}");
                notice = notice["payload"].take();
            }
            assert_eq!(id, None);
            assert!(notice["id"].as_str().unwrap().starts_with("evt_"), "{notice}");
            assert_eq!((&notice["type"], &notice["properties"]), (&json!(kind), &json!({})));
        }
    }
}

#[tokio::test]
async fn events_have_the_recorded_format() {
    let bench = Bench::new(Script::new()).await;
    let router = bench.router(quick());
    let mut local = Raw::open(&router, "/event", None).await;
    let mut global = Raw::open(&router, "/global/event", None).await;
    let session = bench.client().create_session(&SessionInput::default()).await.unwrap();
    let (id, notice) = local.next_event().await;
    assert!(id.is_some());
    let properties = json!({"sessionID": session.id, "info": session});
    assert_eq!((&notice["type"], &notice["properties"]), (&json!("session.created"), &properties));
    let (id, wrapped) = global.next_event().await;
    assert_eq!(id, None, "only `/event` can be resumed");
    let directory = bench.project.directory().to_str().unwrap();
    assert_eq!(wrapped, json!({"directory": directory, "project": "global", "payload": notice}));
    let copied = json!({
        "type": "sync",
        "syncEvent": {
            "id": notice["id"],
            "type": "session.created.1",
            "seq": 0,
            "aggregateID": session.id,
            "data": properties,
        },
        "id": notice["id"],
    });
    let (_, copy) = global.next_event().await;
    assert_eq!(copy, json!({"directory": directory, "project": "global", "payload": copied}));
}

#[tokio::test]
async fn a_stream_contains_only_its_directory_and_session() {
    let bench = Bench::new(Script::new()).await;
    let router = bench.router(quick());
    let here = Client::in_process(router.clone());
    let other =
        bench.project.write("other/opencode.json", bench.project.read("opencode.json").unwrap()).unwrap();
    let other = other.parent().unwrap().to_str().unwrap();
    let there = here.in_directory(other);
    let own = here.create_session(&SessionInput::default()).await.unwrap();
    let mut local = Raw::open(&router, "/event", None).await;
    let mut narrow = Raw::open(&router, &format!("/event?sessionID={}", own.id), None).await;
    let mut elsewhere = Raw::open(&router, &format!("/event?directory={other}"), None).await;

    let foreign = there.create_session(&SessionInput::default()).await.unwrap();
    note(&there, &foreign.id, "foreign").await;
    let second = here.create_session(&SessionInput::default()).await.unwrap();
    note(&here, &own.id, "own").await;

    assert_eq!(local.next_event().await.1["properties"]["sessionID"], json!(second.id));
    assert_eq!(local.next_event().await.1["properties"]["sessionID"], json!(own.id));
    assert_eq!(narrow.next_event().await.1["properties"]["sessionID"], json!(own.id));
    assert_eq!(elsewhere.next_event().await.1["properties"]["sessionID"], json!(foreign.id));
    // Events that only contain a session id are filtered as well.
    for _ in 0..3 {
        let (_, notice) = elsewhere.next_event().await;
        assert_eq!(notice["properties"]["sessionID"], json!(foreign.id), "{notice}");
    }
}

#[tokio::test]
async fn a_resumed_stream_has_no_gaps_and_no_duplicates() {
    let bench = Bench::new(Script::new()).await;
    let router = bench.router(quick());
    let client = Client::in_process(router.clone());
    let mut whole = Raw::open(&router, "/event", None).await;
    let session = client.create_session(&SessionInput::default()).await.unwrap();
    for turn in 0..200 {
        note(&client, &session.id, &format!("before {turn}")).await;
    }
    let (first, _) = whole.next_event().await;
    let (second, _) = whole.next_event().await;
    assert!(first < second);

    // More events happen while the stream is being resumed.
    let mut resumed = Raw::open(&router, "/event", second).await;
    let (received, ()) = tokio::join!(
        async {
            let mut received = Vec::new();
            loop {
                let (id, notice) = resumed.next_event().await;
                received.push((id, notice["id"].clone()));
                if notice["properties"]["part"]["text"] == "after 49" {
                    return received;
                }
            }
        },
        async {
            for turn in 0..50 {
                note(&client, &session.id, &format!("after {turn}")).await;
            }
        }
    );
    assert_eq!(resumed.text, "");
    let mut expected = Vec::new();
    loop {
        let (id, notice) = whole.next_event().await;
        expected.push((id, notice["id"].clone()));
        if notice["properties"]["part"]["text"] == "after 49" {
            break;
        }
    }
    assert!(received.iter().map(|(id, _)| id).is_sorted());
    assert_eq!(received, expected);
}

#[tokio::test]
async fn a_position_of_another_log_skips_no_events() {
    let bench = Bench::new(Script::new()).await;
    let router = bench.router(quick());
    for position in [1_000_000, u64::MAX] {
        let mut raw = Raw::open(&router, "/event", Some(position)).await;
        let session = bench.client().create_session(&SessionInput::default()).await.unwrap();
        assert_eq!(raw.next_event().await.1["properties"]["sessionID"], json!(session.id));
    }
}

#[tokio::test]
async fn the_client_resumes_over_a_socket() {
    let bench = Bench::new(Script::new()).await;
    let listening = bench.listen(quick()).await;
    let client = Client::http(&listening.url, None, None).unwrap();
    let mut events = client.events().await.unwrap();
    let session = client.create_session(&SessionInput::default()).await.unwrap();
    until(&mut events, |notice| matches!(event(notice), Some(Event::SessionCreated { .. }))).await;
    let position = events.position().unwrap();
    drop(events);
    note(&client, &session.id, "missed").await;
    let mut events = client.events_after(position).await.unwrap();
    until(&mut events, |notice| matches!(event(notice), Some(Event::MessageUpdated { .. }))).await;
}

#[tokio::test]
async fn an_invalid_position_is_rejected() {
    let bench = Bench::new(Script::new()).await;
    for (path, header) in [("/event", "evt_1"), ("/event?sessionID=nope", "")] {
        let message = request("GET", path).header("last-event-id", header);
        let status = send(&bench.router(quick()), message.body(Body::empty()).unwrap()).await.status();
        assert!(status.is_client_error() || status.is_server_error(), "{path}");
    }
}

#[tokio::test]
async fn stopping_the_server_ends_its_streams() {
    let bench = Bench::new(Script::new()).await;
    let mut listening = bench.listen(Options { heartbeat: Duration::from_secs(3600), ..quick() }).await;
    let client = Client::http(&listening.url, None, None).unwrap();
    let mut events = client.events().await.unwrap();
    listening.cancel.cancel();
    let last = timeout(PATIENCE, events.next()).await.unwrap().unwrap().unwrap();
    assert!(matches!(last.fact, Fact::Signal(Signal::InstanceDisposed { .. })), "{last:?}");
    assert_eq!(timeout(PATIENCE, events.next()).await.unwrap().unwrap(), None);
    timeout(PATIENCE, listening.task.join_next()).await.unwrap().unwrap().unwrap().unwrap();
    assert!(client.health().await.is_err(), "the server has stopped");
}

#[tokio::test]
async fn a_branch_switch_is_an_event() {
    let bench = Bench::git().await;
    let git = |args: &[&str]| bench.project.run_git(args).unwrap();
    let branch = git(&["symbolic-ref", "--short", "HEAD"]).trim().to_owned();
    let router = bench.router(Options::default());
    let mut here = Raw::open(&router, "/event", None).await;
    let mut everywhere = Raw::open(&router, "/global/event", None).await;
    let mut v2 = Raw::open(&router, "/api/event", None).await;
    let directory = bench.project.directory().to_str().unwrap();
    let head = format!("{directory}/.git/HEAD");
    for (args, said) in [
        (&["checkout", "--quiet", "-b", "x/y"][..], json!({"branch": "x/y"})),
        (&["checkout", "--quiet", "--detach"], json!({})),
        (&["checkout", "--quiet", &branch], json!({"branch": branch})),
    ] {
        git(args);
        let (_, touched) = here.next_event().await;
        assert_eq!(touched["type"], "file.watcher.updated");
        assert_eq!(touched["properties"], json!({"file": head, "event": "add"}));
        let (_, branch) = here.next_event().await;
        assert_eq!((&branch["type"], &branch["properties"]), (&json!("vcs.branch.updated"), &said));
        for event in [touched, branch] {
            let (_, wrapped) = everywhere.next_event().await;
            assert_eq!(wrapped, json!({"directory": directory, "payload": event}));
            let (_, v2) = v2.next_event().await;
            assert_eq!((&v2["type"], &v2["data"]), (&event["type"], &event["properties"]));
            assert_eq!(v2["location"], json!({"directory": directory}));
        }
    }
}

#[tokio::test]
async fn a_linked_worktree_has_its_own_branch() {
    let bench = Bench::git().await;
    let git = |args: &[&str]| bench.project.run_git(args).unwrap();
    git(&["worktree", "add", "--quiet", "-b", "l", "linked"]);
    let linked = bench.project.path("linked");
    let router = bench.router(Options::default());
    let mut there = Raw::open(&router, &format!("/event?directory={}", linked.display()), None).await;
    let mut here = Raw::open(&router, "/event", None).await;
    git(&["-C", "linked", "checkout", "--quiet", "-b", "m"]);
    git(&["checkout", "--quiet", "-b", "n"]);
    for (stream, branch) in [(&mut there, "m"), (&mut here, "n")] {
        stream.next_event().await;
        let (_, event) = stream.next_event().await;
        assert_eq!(event["properties"], json!({"branch": branch}));
    }
}

#[tokio::test]
async fn aborting_an_idle_session_reports_idle() {
    let bench = Bench::new(Script::new()).await;
    let router = bench.router(Options::default());
    let session = bench.client().create_session(&SessionInput::default()).await.unwrap();
    let mut raw = Raw::open(&router, "/event", None).await;
    for path in ["/session/ses_00000000000000000000000000/abort", &format!("/session/{}/abort", session.id)] {
        assert_eq!(crate::bench::ask(&router, "POST", path, "").await, (200, json!(true)));
    }
    let (_, status) = raw.next_event().await;
    assert_eq!(status["properties"], json!({"sessionID": session.id, "status": {"type": "idle"}}));
    let (_, idle) = raw.next_event().await;
    assert_eq!(
        (&idle["type"], &idle["properties"]),
        (&json!("session.idle"), &json!({"sessionID": session.id}))
    );
}

#[tokio::test]
async fn a_stream_can_use_the_former_names_of_part_events() {
    let bench = Bench::new(Script::new().text("Hello there.").repeat()).await;
    let router = bench.router(quick());
    let client = Client::in_process(router.clone());
    let session = client.create_session(&SessionInput::default()).await.unwrap();
    for (path, expected) in [
        ("/event?names=legacy", ["part.updated", "part.delta"]),
        ("/global/event?names=legacy", ["part.updated", "part.delta"]),
        ("/event?names=unknown", ["message.part.updated", "message.part.delta"]),
        ("/event", ["message.part.updated", "message.part.delta"]),
    ] {
        let mut raw = Raw::open(&router, path, None).await;
        client.prompt(&session.id, &says("go")).await.unwrap();
        let mut names = Vec::new();
        loop {
            let (_, notice) = raw.next_event().await;
            let notice = notice.get("payload").unwrap_or(&notice);
            let name = notice["type"].as_str().unwrap();
            if name.contains("part.") && !names.iter().any(|known| known == name) {
                names.push(name.to_owned());
            }
            if name == "session.idle" {
                break;
            }
        }
        assert_eq!(names, expected, "{path}");
    }
}

#[tokio::test]
async fn a_sync_stream_contains_only_copies_of_stored_events() {
    let bench = Bench::new(Script::new()).await;
    let router = bench.router(quick());
    let mut raw = Raw::open(&router, "/global/sync-event", None).await;
    let session = bench.client().create_session(&SessionInput::default()).await.unwrap();
    note(&bench.client(), &session.id, "hello").await;
    let mut names = Vec::new();
    while names.len() < 3 {
        let (id, copy) = raw.next_event().await;
        assert_eq!(id, None);
        assert_eq!(copy["payload"]["type"], "sync", "{copy}");
        let event = &copy["payload"]["syncEvent"];
        assert_eq!((&event["aggregateID"], &event["seq"]), (&json!(session.id), &json!(names.len())));
        names.push(event["type"].as_str().unwrap().to_owned());
    }
    assert_eq!(names[0], "session.created.1");
}

#[tokio::test]
async fn open_streams_report_that_the_server_stops() {
    let bench = Bench::new(Script::new()).await;
    let listening = bench.listen(quick()).await;
    let client = Client::http(&listening.url, None, None).unwrap();
    // Opens the directory.
    client.create_session(&SessionInput::default()).await.unwrap();
    let own = bench.project.directory().to_str().unwrap().to_owned();
    let mut streams = Vec::new();
    for path in ["/event", "/global/event"] {
        let response = connect(&listening.url, path).await;
        streams.push((path, response));
    }
    listening.cancel.cancel();
    for (path, mut socket) in streams {
        let mut text = String::new();
        timeout(PATIENCE, tokio::io::AsyncReadExt::read_to_string(&mut socket, &mut text))
            .await
            .unwrap()
            .unwrap();
        let line = text.lines().find(|line| line.contains("server.instance.disposed")).expect(path);
        let notice: Value = serde_json::from_str(line.strip_prefix("data: ").unwrap()).unwrap();
        let payload = notice.get("payload").unwrap_or(&notice);
        assert_eq!(payload["properties"], json!({"directory": own}), "{path}");
        assert_eq!(notice.get("directory").is_some(), path == "/global/event");
    }
}

/// Sends a request on its own connection.
async fn connect(url: &str, path: &str) -> tokio::net::TcpStream {
    use tokio::io::AsyncWriteExt as _;

    let mut socket = tokio::net::TcpStream::connect(url.strip_prefix("http://").unwrap()).await.unwrap();
    let head = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
    socket.write_all(head.as_bytes()).await.unwrap();
    let mut first = [0; 1];
    // The response has started, so the stream is open.
    timeout(PATIENCE, socket.readable()).await.unwrap().unwrap();
    assert_eq!(socket.peek(&mut first).await.unwrap(), 1);
    socket
}
