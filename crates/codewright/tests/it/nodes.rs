//! Servers that share a database: routing, takeover, drain and limits, through the program.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread;

use anyhow::{Context as _, Result, ensure};
use codewright_testkit::{Postgres, Project, Running, Script, is_default_store};
use serde_json::{Value, json};

use crate::pty::Socket;
use crate::support::{
    Stage, ask, check_code, check_has, delete, get, new_session, post, program, prompt, serve, wait_until,
};

/// The secret that the servers have in common.
const SECRET: &str = "0123456789-common-secret";

/// A server with a home of its own.
struct Node {
    server: Running,
    url: String,
    _home: Project,
}

/// The parts that the servers of a test have in common.
struct Cluster {
    stage: Stage,
    database: Postgres,
}

impl Cluster {
    fn start(script: Script) -> Result<Option<Self>> {
        let Some(database) = Postgres::start() else { return Ok(None) };
        Ok(Some(Self { stage: Stage::git(script)?, database }))
    }

    /// Starts a server in a directory, with these settings in the key `node` of its user.
    fn node(&self, directory: &Path, settings: Value) -> Result<Node> {
        let home = Project::plain()?;
        let mut config = Project::config(&self.stage.server.url());
        config["node"] = settings;
        home.write_config(&config)?;
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let (port, address) = (port.to_string(), format!("http://127.0.0.1:{port}"));
        let run = program(&home, ["serve", "--port", &port, "--node-address", &address]);
        let run = run.directory(directory).env("CODEWRIGHT_STORE", self.database.url("postgres", ""));
        let (server, url) = serve(run.env("CODEWRIGHT_NODE_SECRET", SECRET))?;
        ensure!(url == address, "{url} is not {address}");
        Ok(Node { server, url, _home: home })
    }

    /// Starts a server that shares the directory of the stage with others.
    fn sharing(&self, name: &str) -> Result<Node> {
        self.node(self.stage.project.directory(), json!({ "name": name }))
    }

    fn effects(&self) -> String {
        fs::read_to_string(self.stage.project.path("effects")).unwrap_or_default()
    }
}

/// Waits until servers know each other: until a request can be passed on.
fn wait_for_each_other(node: &Node, path: &str) -> Result<()> {
    wait_until("the other server", || get(&node.url, path).is_ok())
}

fn text_at(url: &str, id: &str) -> String {
    get(url, &format!("/session/{id}/message")).map(|messages| messages.to_string()).unwrap_or_default()
}

fn escaped(directory: &Path) -> String {
    directory.to_string_lossy().replace('/', "%2F")
}

#[test]
fn a_request_reaches_the_server_that_has_the_directory() -> Result<()> {
    let script = Script::new().tool("bash", json!({"command": "env"})).text("From over there.");
    let Some(cluster) = Cluster::start(script)? else { return Ok(()) };
    let (there, elsewhere) = (cluster.stage.project.directory().canonicalize()?, Project::plain()?);
    let here = elsewhere.directory().canonicalize()?;
    cluster.stage.project.write("note.txt", "of the first")?;
    let roots = |directory: &Path, name: &str| json!({"name": name, "roots": [directory]});
    let first = cluster.node(&there, roots(&there, "first"))?;
    let second = cluster.node(&here, roots(&here, "second"))?;
    let named = format!("directory={}", escaped(&there));
    wait_for_each_other(&second, &format!("/file/content?path=note.txt&{named}"))?;

    // Files, a new session and its prompt are those of the first server.
    let note = get(&second.url, &format!("/file/content?path=note.txt&{named}"))?;
    assert_eq!(note["content"], "of the first");
    let (status, session) = post(&second.url, &format!("/session?{named}"), &json!({}))?;
    ensure!(status == 200, "{status}: {session}");
    let id = session["id"].as_str().context("no id")?;
    let seen = follow(&second.url)?;
    let has_seen = |text: &str| seen.lock().is_ok_and(|seen| seen.contains(text));
    // What is not stored arrives too, once the servers are connected.
    wait_until("a signal of the first server", || {
        post(&first.url, "/tui/show-toast", &json!({"message": "hello", "variant": "info"})).is_ok()
            && has_seen("tui.toast.show")
    })?;
    let (status, reply) = post(&second.url, &format!("/session/{id}/message"), &prompt("hi"))?;
    ensure!(status == 200, "{status}: {reply}");
    check_has(&reply.to_string(), &["From over there."]);
    let stored = text_at(&second.url, id);
    // The commands of the model get no secret.
    ensure!(stored.contains("CODEWRIGHT=1") && !stored.contains(SECRET), "{stored}");

    wait_until("the end of the turn", || has_seen("\"session.idle\""))?;
    ensure!(has_seen("\"message.part.delta\"") && has_seen(id), "the deltas of the text are missing");

    // A terminal of the first server is listed, used and closed through the second.
    let echo =
        json!({"command": "/bin/bash", "args": ["--norc", "-c", "read line; echo got $line; sleep 60"]});
    let (status, terminal) = post(&second.url, &format!("/pty?{named}"), &echo)?;
    ensure!(status == 200, "{status}: {terminal}");
    let terminal = terminal["id"].as_str().context("no terminal")?;
    check_has(&get(&second.url, &format!("/pty?{named}"))?.to_string(), &[terminal]);
    assert_eq!(get(&second.url, &format!("/pty/{terminal}"))?["id"], terminal);

    let connected = Socket::open(&second.url, &format!("/pty/{terminal}/connect"), "")?;
    let mut socket = connected.map_err(|status| anyhow::anyhow!("{status}"))?;
    socket.place()?;
    socket.send("hello\n")?;
    socket.text_until("got hello\r\n")?;
    delete(&second.url, &format!("/pty/{terminal}"))?;

    // A forged request is rejected.
    let forged = format!(
        "GET /global/health HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nx-codewright-node: {}\r\n\r\n",
        second.url.trim_start_matches("http://"),
        "to=x;from=y;time=1;nonce=1;body=0;mac=00",
    );
    ensure!(raw(&second.url, &forged)?.starts_with("HTTP/1.1 401"), "a forged request was accepted");
    cluster.stage.no_problems()
}

#[test]
fn signals_of_a_shared_directory_reach_the_clients_of_every_server() -> Result<()> {
    let Some(cluster) = Cluster::start(Script::new())? else { return Ok(()) };
    let (first, second) = (cluster.sharing("first")?, cluster.sharing("second")?);
    let (global, local) = (follow(&second.url)?, follow_at(&second.url, "/event")?);
    let toast = json!({"message": "hello from the first", "variant": "info"});
    let directory = cluster.stage.project.directory().canonicalize()?.display().to_string();
    let has = |seen: &Mutex<String>, text: &str| seen.lock().is_ok_and(|seen| seen.contains(text));
    wait_until("the signal at the other server", || {
        post(&first.url, "/tui/show-toast", &toast).is_ok()
            && [&local, &global].iter().all(|seen| has(seen, "hello from the first"))
    })?;
    let seen = global.lock().map(|seen| seen.clone()).unwrap_or_default();
    let line = seen.split("data: ").find(|line| line.contains("hello from the first")).context("no toast")?;
    let frame: Value = serde_json::from_str(line)?;
    assert_eq!(frame["directory"], directory.as_str(), "{frame}");
    cluster.stage.no_problems()
}

/// Collects the events of a server in the background.
fn follow(url: &str) -> Result<Arc<Mutex<String>>> {
    follow_at(url, "/global/event")
}

/// Collects the events of a path of a server in the background.
fn follow_at(url: &str, path: &str) -> Result<Arc<Mutex<String>>> {
    let events = BufReader::new(ask(url, path)?);
    let seen = Arc::new(Mutex::new(String::new()));
    let all = Arc::clone(&seen);
    thread::spawn(move || {
        // It ends with the server.
        for line in events.lines().map_while(Result::ok) {
            if let Ok(mut all) = all.lock() {
                all.push_str(&line);
            }
        }
    });
    Ok(seen)
}

/// Sends a request as it is.
fn raw(url: &str, request: &str) -> Result<String> {
    use std::io::{Read as _, Write as _};
    let address = url.strip_prefix("http://").context("not an http address")?;
    let mut stream = std::net::TcpStream::connect(address)?;
    stream.set_read_timeout(Some(crate::support::DEADLINE))?;
    stream.write_all(request.as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

/// Starts a turn whose command runs for a while, and waits until it runs.
fn begin(cluster: &Cluster, node: &Node) -> Result<String> {
    let id = new_session(&node.url)?;
    let (status, _) = post(&node.url, &format!("/session/{id}/prompt_async"), &prompt("hi"))?;
    ensure!(status == 204, "{status}");
    wait_until("a running command", || cluster.effects().contains("began"))?;
    Ok(id)
}

const LONG: &str = "echo began >> effects; sleep 30; echo ended >> effects";

#[test]
fn the_sessions_of_a_killed_server_continue_on_another() -> Result<()> {
    let script = Script::new().tool("bash", json!({"command": LONG})).text("Continued.");
    let Some(cluster) = Cluster::start(script)? else { return Ok(()) };
    let (first, second) = (cluster.sharing("first")?, cluster.sharing("second")?);
    let id = begin(&cluster, &first)?;
    kill("-KILL", first.server.id())?;
    wait_until("the rest of the turn", || text_at(&second.url, &id).contains("Continued."))?;
    let stored = text_at(&second.url, &id);
    check_has(&stored, &["uncertain if it took effect"]);
    assert_eq!(stored.matches("\"callID\"").count(), 1, "{stored}");
    assert_eq!(cluster.effects().matches("began").count(), 1);
    assert_eq!(cluster.stage.server.main_requests().len(), 2);
    cluster.stage.no_problems()
}

#[test]
fn a_server_that_ends_or_drains_hands_its_sessions_over() -> Result<()> {
    let script = Script::new().tool("bash", json!({"command": LONG})).text("Continued.").text("Once more.");
    let Some(cluster) = Cluster::start(script)? else { return Ok(()) };
    let (first, second) = (cluster.sharing("first")?, cluster.sharing("second")?);
    let id = begin(&cluster, &first)?;
    first.server.terminate()?;
    wait_until("the rest of the turn", || text_at(&second.url, &id).contains("Continued."))?;
    check_code(&first.server.finish()?, 0);
    ensure!(!cluster.effects().contains("ended"), "the command went on");

    // A server that drains passes prompts on.
    let third = cluster.sharing("third")?;
    wait_for_each_other(&third, "/session/status")?;
    assert_eq!(post(&second.url, "/global/drain", &json!({}))?, (200, json!(true)));
    wait_until("an answer of the third server", || {
        post(&second.url, &format!("/session/{id}/message"), &prompt("go on"))
            .is_ok_and(|(status, reply)| status == 200 && reply.to_string().contains("Once more."))
    })?;
    cluster.stage.no_problems()
}

#[test]
fn more_sessions_than_the_limit_wait_for_each_other() -> Result<()> {
    let script = Script::new()
        .tool("bash", json!({"command": "echo began >> effects; sleep 2; echo ended >> effects"}))
        .text("One.")
        .text("Two.");
    let Some(cluster) = Cluster::start(script)? else { return Ok(()) };
    let node = cluster.node(cluster.stage.project.directory(), json!({"sessions": 1}))?;
    let first = begin(&cluster, &node)?;
    let second = new_session(&node.url)?;
    let (status, reply) = post(&node.url, &format!("/session/{second}/message"), &prompt("and me"))?;
    ensure!(status == 200, "{status}: {reply}");
    check_has(&text_at(&node.url, &first), &["One."]);
    check_has(&reply.to_string(), &["Two."]);
    cluster.stage.no_problems()
}

#[test]
fn a_full_server_refuses_and_says_when_to_come_back() -> Result<()> {
    let script = Script::new().tool("bash", json!({"command": LONG})).text("One.").text("Two.");
    let Some(cluster) = Cluster::start(script)? else { return Ok(()) };
    let node = cluster.node(cluster.stage.project.directory(), json!({"sessions": 1, "waiting": 1}))?;
    let running = begin(&cluster, &node)?;
    let prompted = |id: &str| post(&node.url, &format!("/session/{id}/prompt_async"), &prompt("and me"));
    let (waiting, refused) = (new_session(&node.url)?, new_session(&node.url)?);
    assert_eq!(prompted(&waiting)?.0, 204);
    let body = prompt("and me").to_string();
    let host = node.url.trim_start_matches("http://");
    let request = format!(
        "POST /session/{refused}/prompt_async HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let answer = raw(&node.url, &request)?;
    ensure!(answer.starts_with("HTTP/1.1 429"), "{answer}");
    check_has(&answer.to_ascii_lowercase(), &["retry-after: ", "2 sessions run or wait on"]);
    ensure!(!text_at(&node.url, &refused).contains("and me"), "a refused prompt was stored");
    // With room again it is accepted.
    assert_eq!(post(&node.url, &format!("/session/{running}/abort"), &json!({}))?.0, 200);
    wait_until("the end of the session that waited", || text_at(&node.url, &waiting).contains("One."))?;
    wait_until("room", || prompted(&refused).is_ok_and(|(status, _)| status == 204))?;
    wait_until("the end of the refused session", || text_at(&node.url, &refused).contains("Two."))?;
    cluster.stage.no_problems()
}

#[test]
fn the_settings_of_a_node_are_the_users_and_checked() -> Result<()> {
    if !is_default_store() {
        return Ok(());
    }
    let Some(cluster) = Cluster::start(Script::new().text("Done."))? else { return Ok(()) };
    let url = cluster.database.url("postgres", "");
    let serve = |arguments: &[&str]| {
        let arguments = ["serve", "--port", "0"].iter().chain(arguments).copied();
        cluster.stage.program(arguments)
    };
    let done = serve(&["--node-address", "http://127.0.0.1:1"]).env("CODEWRIGHT_STORE", &url).finish()?;
    check_code(&done, 1);
    check_has(&done.stderr, &["`node.address` needs `node.secret`"]);
    let done = serve(&["--node-address", "http://127.0.0.1:1"]).finish()?;
    check_code(&done, 1);
    check_has(&done.stderr, &["needs a store in PostgreSQL"]);
    let (server, address) = cluster.stage.serve()?;
    let (status, reply) = post(&address, "/global/drain", &json!({}))?;
    assert_eq!((status, reply["data"]["message"].is_string()), (400, true), "{reply}");
    server.terminate()?;
    server.finish()?.success()?;
    // A repository cannot set the key, even if it is trusted: an address without a secret would be an error.
    cluster.stage.project.write("opencode.json", r#"{"node": {"address": "http://127.0.0.1:1"}}"#)?;
    let run = cluster.stage.program(["serve"]).env("CODEWRIGHT_STORE", &url).env("CODEWRIGHT_TRUST", "all");
    let (server, address) = crate::support::serve(run)?;
    let id = new_session(&address)?;
    let (status, reply) = post(&address, &format!("/session/{id}/message"), &prompt("hi"))?;
    ensure!(status == 200, "{status}: {reply}");
    server.terminate()?;
    server.finish()?.success()?;
    cluster.stage.no_problems()
}

/// Sends a signal to a process.
fn kill(name: &str, process: u32) -> Result<()> {
    let status = std::process::Command::new("kill").args([name, &process.to_string()]).status()?;
    ensure!(status.success(), "kill {name} {process}: {status}");
    Ok(())
}
