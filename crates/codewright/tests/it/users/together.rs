//! Several servers with the same users: a request that is passed on has the rights of its sender, and no others.

use std::net::TcpListener;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use codewright_testkit::{Postgres, Project, Script};
use serde_json::{Value, json};

use super::Team;
use crate::support::{Call, Stage, program, prompt, serve, wait_until};

/// The secret that the servers have in common.
const NODE_SECRET: &str = "0123456789-common-secret";

/// Starts a server that can work below a root and allows the users of the tests one directory.
fn member(stage: Stage, database: &Postgres, [root, allowed]: [&Path; 2]) -> Result<Team> {
    Team::configure(&stage, |config| {
        config["node"] = json!({ "roots": [root] });
        config["auth"]["directories"] = json!([allowed]);
    })?;
    let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port().to_string();
    let address = format!("http://127.0.0.1:{port}");
    let run = program(&stage.project, ["serve", "--port", &port, "--node-address", &address]);
    let run =
        run.env("CODEWRIGHT_STORE", database.url("postgres", "")).env("CODEWRIGHT_NODE_SECRET", NODE_SECRET);
    let (server, url) = serve(run)?;
    Ok(Team { stage, url, _server: server })
}

#[test]
fn a_request_that_is_passed_on_has_the_rights_of_its_sender() -> Result<()> {
    let Some(database) = Postgres::start() else { return Ok(()) };
    let work = Stage::plain(Script::new().text("Done over there."))?;
    let directory = work.project.directory().canonicalize()?;
    let elsewhere = Project::plain()?;
    let there = member(work, &database, [&directory; 2])?;
    let here = member(Stage::plain(Script::new())?, &database, [elsewhere.directory(), &directory])?;
    there.stage.project.write("note.txt", "of the other server")?;
    let named = format!("directory={}", directory.to_string_lossy().replace('/', "%2F"));
    let note = format!("/file/content?path=note.txt&{named}");
    wait_until("the other server", || {
        here.call("alice", "GET", &note, &Value::Null)
            .is_ok_and(|(_, text)| text.contains("of the other server"))
    })?;

    let session = here.json("alice", "POST", &format!("/session?{named}"), &json!({"title": "private"}))?;
    let id = session["id"].as_str().context("no id")?;
    let message = format!("/session/{id}/message");
    let (status, reply) = here.call("alice", "POST", &message, &prompt("hi"))?;
    ensure!(status == 200 && reply.contains("Done over there."), "{status}: {reply}");

    // Another member has the role for it, but not the session. Nobody gets more rights by a header.
    for team in [&here, &there] {
        assert_eq!(team.status("bob", "GET", &format!("/session/{id}"), &Value::Null)?, 404);
        assert_eq!(team.status("bob", "POST", &message, &prompt("hi"))?, 404);
        assert_eq!(team.status("rita", "POST", &format!("/session?{named}"), &json!({}))?, 403);
        let headers = [
            ("x-codewright-sender", "local"),
            ("x-codewright-node", "to=a;from=b;time=1;nonce=1;body=0;mac=00"),
        ];
        for headers in [&headers[..1], &headers] {
            let call = Call { url: &team.url, method: "GET", path: &note, headers, body: "" };
            assert_eq!(call.send()?.0, 401);
        }
    }

    // What the other server did is recorded once.
    assert_eq!(here.status("alice", "DELETE", &format!("/session/{id}"), &Value::Null)?, 200);
    let audit = here.json("root", "GET", "/users/audit", &Value::Null)?.to_string();
    assert_eq!(audit.matches("session.delete").count(), 1, "{audit}");
    there.stage.no_problems()
}
