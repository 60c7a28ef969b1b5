//! The export of spans to a collector, without the content of conversations.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use codewright_testkit::{Run, Script};
use serde_json::{Value, json};

use crate::support::{DEADLINE, Stage, ask, check_code, check_has, post, prompt, serve, wait_until};

/// A request to the collector.
#[derive(Debug, Clone)]
struct Sent {
    head: String,
    body: String,
}

/// A collector that records all requests.
struct Collector {
    url: String,
    sent: Arc<Mutex<Vec<Sent>>>,
}

impl Collector {
    fn start() -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let url = format!("http://{}", listener.local_addr()?);
        let sent = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&sent);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let kept = Arc::clone(&kept);
                // If a connection breaks, the test fails because of the missing spans.
                thread::spawn(move || take(stream, &kept).ok());
            }
        });
        Ok(Self { url, sent })
    }

    fn all(&self) -> String {
        self.sent.lock().unwrap().iter().map(|sent| sent.body.clone()).collect()
    }

    fn spans(&self) -> Result<Vec<ExportedSpan>> {
        let mut spans = Vec::new();
        for sent in self.sent.lock().unwrap().iter() {
            let body: Value = serde_json::from_str(&sent.body)?;
            let exported =
                body["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().context("no spans")?;
            spans.extend(exported.iter().cloned().map(ExportedSpan));
        }
        Ok(spans)
    }
}

fn take(stream: TcpStream, kept: &Mutex<Vec<Sent>>) -> Result<()> {
    stream.set_read_timeout(Some(DEADLINE))?;
    let mut reader = BufReader::new(stream);
    loop {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if reader.read_line(&mut head)? == 0 {
                return Ok(());
            }
        }
        let head = head.to_lowercase();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        let mut body = vec![0; length.context("no length")?.trim().parse()?];
        reader.read_exact(&mut body)?;
        kept.lock().unwrap().push(Sent { head, body: String::from_utf8(body)? });
        reader.get_mut().write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}")?;
    }
}

#[derive(Debug)]
struct ExportedSpan(Value);

impl ExportedSpan {
    fn name(&self) -> &str {
        self.0["name"].as_str().unwrap_or_default()
    }

    fn fact(&self, name: &str) -> Option<String> {
        let facts = self.0["attributes"].as_array()?;
        let fact = facts.iter().find(|fact| fact["key"] == name)?;
        fact["value"]["stringValue"].as_str().or(fact["value"]["intValue"].as_str()).map(str::to_owned)
    }

    fn is_below(&self, other: &Self) -> bool {
        self.0["parentSpanId"] == other.0["spanId"] && self.0["traceId"] == other.0["traceId"]
    }
}

#[track_caller]
fn only<'a>(spans: &'a [ExportedSpan], name: &str) -> &'a ExportedSpan {
    let found: Vec<_> = spans.iter().filter(|span| span.name() == name).collect();
    assert_eq!(found.len(), 1, "{name} in {:?}", spans.iter().map(ExportedSpan::name).collect::<Vec<_>>());
    found[0]
}

fn with_collector(run: Run, url: &str) -> Run {
    run.env("OTEL_EXPORTER_OTLP_ENDPOINT", url)
}

/// Words in prompts, answers, files, commands, results and credentials.
const WORDS: [&str; 6] = [
    "marzipan-prompt",
    "marzipan-answer",
    "marzipan-file",
    "marzipan-command",
    "hunter2-secret",
    "util-secret",
];

#[test]
fn a_turn_is_exported_with_its_parts_and_without_content() -> Result<()> {
    let call = json!({"command": "cat util-secret.txt; echo marzipan-command"});
    let stage = Stage::plain(Script::new().tool("bash", call).text("marzipan-answer"))?;
    stage.project.write("util-secret.txt", "marzipan-file")?;
    let collector = Collector::start()?;
    let run = with_collector(stage.program(["serve", "--port", "0"]), &collector.url)
        .env("OTEL_EXPORTER_OTLP_HEADERS", "x-team=hunter2-secret")
        .env("OTEL_SERVICE_NAME", "my-agent")
        .env("OPENAI_API_KEY", "hunter2-secret");
    let (server, url) = serve(run)?;
    let (_, session) = post(&url, "/session", &json!({"title": "Named"}))?;
    let id = session["id"].as_str().context("no session")?;
    let (status, _) = post(&url, &format!("/session/{id}/message"), &prompt("marzipan-prompt"))?;
    assert_eq!(status, 200);
    server.terminate()?;
    check_code(&server.finish()?, 0);

    let spans = collector.spans()?;
    let request = only(&spans, "POST /session/{sessionID}/message");
    let turn = only(&spans, "turn");
    assert!(turn.is_below(request), "{turn:?} {request:?}");
    assert_eq!(turn.fact("session.id").as_deref(), Some(id));
    assert_eq!(request.fact("http.response.status_code").as_deref(), Some("200"));
    let steps: Vec<_> = spans.iter().filter(|span| span.name() == "step").collect();
    let asked: Vec<_> = spans.iter().filter(|span| span.name() == "chat plain-model").collect();
    assert_eq!((steps.len(), asked.len()), (2, 2));
    for (step, asked) in steps.iter().zip(&asked) {
        assert!(step.is_below(turn) && asked.is_below(step), "{step:?} {asked:?}");
        assert_eq!(asked.fact("gen_ai.provider.name").as_deref(), Some("mock"));
        assert!(asked.fact("gen_ai.usage.input_tokens").is_some(), "{asked:?}");
    }
    let call = only(&spans, "execute_tool bash");
    assert!(call.is_below(steps[0]), "{call:?}");

    for sent in collector.sent.lock().unwrap().iter() {
        check_has(&sent.head, &["post /v1/traces", "application/json", "x-team: hunter2-secret"]);
    }
    let all = collector.all();
    check_has(&all, &["my-agent", "service.version"]);
    for word in WORDS {
        assert!(!all.contains(word), "{word} in {all}");
    }
    let directory = stage.project.directory().to_str().context("a path")?;
    assert!(!all.contains(directory), "{all}");
    stage.no_problems()
}

#[test]
fn a_traceparent_of_a_client_is_used() -> Result<()> {
    let stage = Stage::plain(Script::new())?;
    let collector = Collector::start()?;
    let (server, url) = serve(with_collector(stage.program(["serve", "--port", "0"]), &collector.url))?;
    let address = url.strip_prefix("http://").context("an address")?;
    let (trace, span) = ("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331");
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(DEADLINE))?;
    write!(
        stream,
        "GET /session/status?x=hunter2-secret HTTP/1.0\r\nHost: {address}\r\ntraceparent: 00-{trace}-{span}-01\r\n\r\n"
    )?;
    stream.read_to_end(&mut Vec::new())?;
    ask(&url, "/nowhere/hunter2-secret")?.read_to_end(&mut Vec::new())?;
    server.terminate()?;
    check_code(&server.finish()?, 0);
    let spans = collector.spans()?;
    let exported = only(&spans, "GET /session/status");
    assert_eq!((&exported.0["traceId"], &exported.0["parentSpanId"]), (&json!(trace), &json!(span)));
    assert_eq!(only(&spans, "GET unknown").fact("http.response.status_code").as_deref(), Some("404"));
    assert!(!collector.all().contains("hunter2-secret"));
    Ok(())
}

#[test]
fn failed_requests_and_calls_are_exported_as_failed() -> Result<()> {
    use codewright_testkit::Turn;
    let script = Script::new().tool("read", json!({"filePath": "nowhere"})).turn(Turn::http_error(400));
    let stage = Stage::plain(script)?;
    let collector = Collector::start()?;
    let done = with_collector(stage.program(["run", "hi"]), &collector.url).finish()?;
    check_code(&done, 1);
    let spans = collector.spans()?;
    let call = only(&spans, "execute_tool read");
    assert_eq!((call.fact("error.type").as_deref(), &call.0["status"]["code"]), (Some("tool"), &json!(2)));
    let failed = spans.iter().find(|span| span.fact("error.type").as_deref() == Some("rejected"));
    let failed = failed.context("no failed request")?;
    assert_eq!(failed.name(), "chat plain-model");
    assert_eq!(failed.fact("http.response.status_code").as_deref(), Some("400"));
    Ok(())
}

#[test]
fn an_unreachable_collector_has_no_effect() -> Result<()> {
    let deaf = TcpListener::bind("127.0.0.1:0")?;
    let dead = TcpListener::bind("127.0.0.1:0")?;
    let urls = [deaf.local_addr()?, dead.local_addr()?].map(|address| format!("http://{address}"));
    drop(dead);
    for url in urls {
        let stage = Stage::plain(Script::new().text("Hello."))?;
        let begun = Instant::now();
        let done = with_collector(stage.program(["run", "hi"]), &url).finish()?;
        let took = begun.elapsed();
        check_code(&done, 0);
        assert_eq!(done.stdout.trim(), "Hello.");
        assert!(!done.stderr.contains("collector"), "{}", done.stderr);
        // The limit is two seconds; the rest is for a loaded machine.
        assert!(took < Duration::from_secs(30), "{took:?}");
        let log = stage.project.home().join(".local/state/codewright/log/codewright.log");
        check_has(&std::fs::read_to_string(log)?, &["some spans could not be exported", "telemetry"]);
    }
    drop(deaf);
    Ok(())
}

#[test]
fn telemetry_can_be_disabled_and_an_invalid_variable_is_reported() -> Result<()> {
    let stage = Stage::plain(Script::new().text("Hello.").repeat())?;
    let collector = Collector::start()?;
    let run = |args: [&'static str; 2]| with_collector(stage.program(args), &collector.url);
    run(["run", "hi"]).env("OTEL_SDK_DISABLED", "true").finish()?.success()?;
    let global = stage.project.home().join(".config/codewright");
    std::fs::create_dir_all(&global)?;
    let config = global.join("codewright.json");
    std::fs::write(&config, r#"{"experimental": {"openTelemetry": false}}"#)?;
    run(["run", "hi"]).finish()?.success()?;
    assert!(collector.sent.lock().unwrap().is_empty());
    std::fs::write(&config, r#"{"experimental": {"openTelemetry": true}}"#)?;
    let done = run(["run", "hi"]).env("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc").finish()?.success()?;
    check_has(&done.stderr, &["OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", "http/json"]);
    assert!(collector.sent.lock().unwrap().is_empty());
    run(["run", "hi"]).finish()?.success()?;
    wait_until("the export", || !collector.sent.lock().unwrap().is_empty())?;
    Ok(())
}
