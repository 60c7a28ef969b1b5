//! The sign-in of a browser to the built program, and the limit on wrong passwords.

use anyhow::{Context as _, Result};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use codewright_testkit::Script;
use serde_json::Value;

use crate::support::{Call, Stage, check_has, program, serve};
use crate::users::{Team, token};

/// More different passwords than a peer may try.
const TRIES: usize = 12;

fn basic(name: &str, password: &str) -> String {
    format!("Basic {}", STANDARD.encode(format!("{name}:{password}")))
}

/// Sends a request with one more header on a new connection.
fn ask(url: &str, path: &str, authorization: &str) -> Result<(u16, String)> {
    Call { url, method: "GET", path, headers: &[("Authorization", authorization)], body: "" }.send()
}

/// The headers of a browser that has signed in.
fn sign_in(url: &str, authorization: &str) -> Result<(String, String)> {
    let headers = [("Authorization", authorization), ("User-Agent", "Mozilla/5.0"), ("Origin", url)];
    let (status, text) =
        Call { url, method: "POST", path: "/sign-in", headers: &headers, body: "" }.send()?;
    anyhow::ensure!(status == 200, "{text}");
    let (head, body) = text.split_once("\r\n\r\n").context("no body")?;
    let cookie = head.lines().find_map(|line| line.strip_prefix("set-cookie: ")).context("no cookie")?;
    let reply: Value = serde_json::from_str(body)?;
    let key = reply["key"].as_str().context("no key")?.to_owned();
    Ok((cookie.split(';').next().unwrap_or_default().to_owned(), key))
}

#[test]
fn different_wrong_passwords_are_limited_and_signed_in_browsers_continue() -> Result<()> {
    let stage = Stage::plain(Script::new())?;
    let start = |password: &str| {
        serve(program(&stage.project, ["serve", "--port", "0"]).env("OPENCODE_SERVER_PASSWORD", password))
    };
    let (server, url) = start("right password")?;
    let right = basic("opencode", "right password");
    let (cookie, key) = sign_in(&url, &right)?;
    let headers = [("Cookie", cookie.as_str()), ("X-Codewright-Key", key.as_str())];
    let browse = || Call { url: &url, method: "GET", path: "/path", headers: &headers, body: "" }.send();
    assert_eq!(browse()?.0, 200);
    for _ in 0..2 * TRIES {
        assert_eq!(
            ask(&url, "/path", &basic("opencode", "old password"))?.0,
            401,
            "one password is no guess"
        );
    }
    assert_eq!(ask(&url, "/path", &right)?.0, 200);
    let mut statuses = Vec::new();
    for at in 0..TRIES {
        statuses.push(ask(&url, "/path", &basic("opencode", &format!("guess {at}")))?.0);
    }
    assert!(statuses.starts_with(&[401]) && statuses.ends_with(&[429]), "{statuses:?}");
    let (status, refusal) = ask(&url, "/path", &right)?;
    assert_eq!(status, 429, "the right one says nothing, either");
    check_has(&refusal, &["retry-after: ", "too many wrong passwords", "seconds, then try again"]);
    assert_eq!(browse()?.0, 200, "a signed-in browser is not affected");

    server.terminate()?;
    server.finish()?;
    // The cookie has the name of the first port.
    let (cookie, port) =
        (cookie.replace("codewright_", ""), |url: &str| url.rsplit(':').next().map(str::to_owned));
    let secret = cookie.split_once('=').context("no secret")?.1.to_owned();
    let browse = |url: &str| {
        let cookie = format!("codewright_{}={secret}", port(url).unwrap_or_default());
        let headers = [("Cookie", cookie.as_str()), ("X-Codewright-Key", key.as_str())];
        Call { url, method: "GET", path: "/path", headers: &headers, body: "" }.send()
    };
    let (server, url) = start("right password")?;
    assert_eq!(browse(&url)?.0, 200, "a sign-in survives a restart");
    server.terminate()?;
    server.finish()?;
    let (_server, url) = start("another password")?;
    assert_eq!(browse(&url)?.0, 401, "but not a change of the password");
    Ok(())
}

#[test]
fn a_user_signs_in_in_the_browser_and_has_the_rights_of_the_user() -> Result<()> {
    let team = Team::new(Script::new())?;
    assert_eq!(Call { url: &team.url, method: "GET", path: "/", headers: &[], body: "" }.send()?.0, 200);
    let (cookie, key) = sign_in(&team.url, &basic("rita", &token("rita")))?;
    let headers = [("Cookie", cookie.as_str()), ("X-Codewright-Key", key.as_str())];
    let ask =
        |method: &str, path: &str| Call { url: &team.url, method, path, headers: &headers, body: "" }.send();
    let (status, me) = ask("GET", "/users/me")?;
    assert_eq!(status, 200, "{me}");
    check_has(&me, &["\"name\":\"rita\"", "\"role\":\"reader\""]);
    assert_eq!(ask("GET", "/users/audit")?.0, 403, "only administrators may read it");
    assert_eq!(ask("POST", "/sign-out")?.0, 200);
    assert_eq!(ask("GET", "/users/me")?.0, 401);
    let wrong = Call {
        url: &team.url,
        method: "POST",
        path: "/sign-in",
        headers: &[("Authorization", &basic("alice", &token("rita")))],
        body: "",
    };
    assert_eq!(wrong.send()?.0, 401, "the token of another user");
    Ok(())
}
