//! Models of GitLab's gateway: access tokens, protocols and both sign-in methods, at a local GitLab.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use anyhow::{Context as _, Result};
use codewright_testkit::{Finished, Project, Run};
use serde_json::{Value, json};

use crate::support::{check_code, check_has, program, serve};

const TOKEN: &str = "glpat-canary";
const PASSES: &str = "POST /api/v4/ai/third_party_agents/direct_access";
/// The year 2100.
const LATER_MS: u64 = 4_102_444_800_000;

/// A request: its first line, its headers in lower case, its body.
#[derive(Clone)]
struct ServedRequest {
    line: String,
    head: String,
    body: Value,
    text: String,
}

/// An instance and a gateway at one address.
struct GitLab {
    url: String,
    asked: Arc<Mutex<Vec<ServedRequest>>>,
}

impl GitLab {
    /// `bearer` is the user's token; the gateway rejects the access tokens below `first_good`.
    fn start(bearer: &'static str, first_good: usize) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let url = format!("http://{}", listener.local_addr()?);
        let asked = Arc::<Mutex<Vec<ServedRequest>>>::default();
        let heard = Arc::clone(&asked);
        // Ends with the test's process.
        std::thread::spawn(move || {
            for socket in listener.incoming() {
                let (mut socket, heard) = (socket.unwrap(), Arc::clone(&heard));
                std::thread::spawn(move || {
                    let Some(request) = read(&mut socket) else { return };
                    let number = {
                        let mut heard = heard.lock().unwrap();
                        heard.push(request.clone());
                        heard.iter().filter(|asked| asked.line.starts_with(PASSES)).count()
                    };
                    let (status, kind, body) = answer(&request, bearer, number, first_good);
                    let head = format!("HTTP/1.1 {status}\r\ncontent-type: {kind}\r\nconnection: close\r\n");
                    let length = format!("content-length: {}\r\n\r\n", body.len());
                    // The program may have ended.
                    drop(socket.write_all(format!("{head}{length}{body}").as_bytes()));
                });
            }
        });
        Ok(Self { url, asked })
    }

    fn requests(&self, begin: &str) -> Vec<ServedRequest> {
        let asked = self.asked.lock().unwrap();
        asked.iter().filter(|asked| asked.line.starts_with(begin)).cloned().collect()
    }

    fn program<'a>(&self, project: &Project, args: impl IntoIterator<Item = &'a str>) -> Run {
        program(project, args)
            .env("GITLAB_INSTANCE_URL", &self.url)
            .env("GITLAB_AI_GATEWAY_URL", format!("{}/", self.url))
    }
}

fn read(socket: &mut TcpStream) -> Option<ServedRequest> {
    let (mut bytes, mut buffer) = (Vec::new(), [0; 64 << 10]);
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let (line, head) = head.split_once("\r\n")?;
            let head = head.to_lowercase();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            if body.len() >= length.map_or(0, |length| length.parse().unwrap()) {
                let (line, text) = (line.to_owned(), body.to_owned());
                return Some(ServedRequest {
                    line,
                    head,
                    body: serde_json::from_str(body).unwrap_or_default(),
                    text,
                });
            }
        }
        let read = socket.read(&mut buffer).ok().filter(|read| *read > 0)?;
        bytes.extend_from_slice(&buffer[..read]);
    }
}

fn answer(
    asked: &ServedRequest,
    bearer: &str,
    number: usize,
    first_good: usize,
) -> (&'static str, &'static str, String) {
    let json = |status, value: Value| (status, "application/json", value.to_string());
    let events = |events: Vec<Value>| {
        let line = |event: &Value| match event["type"].as_str() {
            Some(kind) => format!("event: {kind}\ndata: {event}\n\n"),
            None => format!("data: {event}\n\n"),
        };
        ("200 OK", "text/event-stream", events.iter().map(line).collect::<String>())
    };
    let path = asked.line.split(' ').nth(1).unwrap_or_default();
    if path == "/oauth/token" {
        let tokens =
            json!({ "access_token": bearer, "refresh_token": "refresh-canary-2", "expires_in": 7200 });
        return json("200 OK", tokens);
    }
    if asked.line.starts_with(PASSES) {
        if !asked.head.contains(&format!("authorization: bearer {}", bearer.to_lowercase())) {
            return json("403 Forbidden", json!({ "message": "403 Forbidden - no Duo for glpat-canary" }));
        }
        let headers =
            json!({ "x-gitlab-realm": "saas", "X-Gitlab-Instance-Id": "i-1", "x-api-key": "never" });
        return json("201 Created", json!({ "token": format!("pass-{number}"), "headers": headers }));
    }
    let is_good = (first_good..=number).any(|good| asked.head.contains(&format!("bearer pass-{good}\r\n")));
    if !is_good {
        return json("401 Unauthorized", json!({ "error": "the pass has ended" }));
    }
    match path {
        "/ai/v1/proxy/anthropic/v1/messages" => events(vec![
            json!({ "type": "message_start", "message": { "usage": { "input_tokens": 1, "output_tokens": 1 } } }),
            json!({ "type": "content_block_start", "index": 0, "content_block": { "type": "text", "text": "" } }),
            json!({ "type": "content_block_delta", "index": 0, "delta": { "type": "text_delta", "text": "Claude here" } }),
            json!({ "type": "content_block_stop", "index": 0 }),
            json!({ "type": "message_delta", "delta": { "stop_reason": "end_turn" }, "usage": { "output_tokens": 2 } }),
            json!({ "type": "message_stop" }),
        ]),
        "/ai/v1/proxy/openai/v1/chat/completions" => events(vec![
            json!({ "choices": [{ "delta": { "content": "GPT here" } }] }),
            json!({ "choices": [{ "delta": {}, "finish_reason": "stop" }] }),
        ]),
        "/ai/v1/proxy/openai/v1/responses" => events(vec![
            json!({ "type": "response.output_item.added", "output_index": 0, "item": { "type": "message", "id": "m" } }),
            json!({ "type": "response.output_text.delta", "item_id": "m", "output_index": 0, "delta": "Codex here" }),
            json!({ "type": "response.output_item.done", "output_index": 0, "item": { "type": "message", "id": "m" } }),
            json!({ "type": "response.completed", "response": { "usage": { "input_tokens": 1, "output_tokens": 1 } } }),
        ]),
        _ => json("404 Not Found", json!({})),
    }
}

#[track_caller]
fn keeps_quiet(done: &Finished) {
    let all = format!("{}{}", done.stdout, done.stderr);
    assert!(!all.contains("canary") && !all.contains("pass-"), "{all}");
}

#[test]
fn a_token_gets_one_access_token_and_each_model_its_protocol() -> Result<()> {
    for (model, path, name, text) in [
        ("duo-chat-sonnet-4-5", "anthropic/v1/messages", "claude-sonnet-4-5-20250929", "Claude here"),
        ("duo-chat-gpt-5-1", "openai/v1/chat/completions", "gpt-5.1-2025-11-13", "GPT here"),
        ("duo-chat-gpt-5-3-codex", "openai/v1/responses", "gpt-5.3-codex", "Codex here"),
    ] {
        let (project, gitlab) = (Project::plain()?, GitLab::start(TOKEN, 1)?);
        let model = format!("gitlab/{model}");
        let run = gitlab.program(&project, ["run", "-m", &model, "Hi"]).env("GITLAB_TOKEN", TOKEN);
        let done = run.finish()?.success()?;
        keeps_quiet(&done);
        check_has(&done.stdout, &[text]);
        // The prompt and the title are parallel requests with one access token.
        let passes = gitlab.requests(PASSES);
        assert_eq!(passes.len(), 1);
        assert_eq!(passes[0].body["feature_flags"]["duo_agent_platform"], true);
        let asked = gitlab.requests("POST /ai/");
        assert_eq!(asked.len(), 2);
        for asked in asked {
            check_has(&asked.line, &[&format!("/ai/v1/proxy/{path} ")]);
            check_has(
                &asked.head,
                &["authorization: bearer pass-1", "x-gitlab-realm: saas", "x-gitlab-instance-id: i-1"],
            );
            assert!(!asked.head.contains("x-api-key"), "{}", asked.head);
            assert_eq!(asked.head.contains("context-1m-2025-08-07"), path.starts_with("anthropic"));
            assert_eq!(asked.body["model"], name);
            assert!(
                asked.body.get("max_tokens").is_none() || path.starts_with("anthropic"),
                "{}",
                asked.body
            );
        }
    }
    Ok(())
}

#[test]
fn a_rejected_access_token_is_replaced_once() -> Result<()> {
    let (project, gitlab) = (Project::plain()?, GitLab::start(TOKEN, 2)?);
    let run = gitlab.program(&project, ["run", "--title", "T", "-m", "gitlab/duo-chat-opus-4-6", "Hi"]);
    let done = run.env("GITLAB_TOKEN", TOKEN).finish()?.success()?;
    check_has(&done.stdout, &["Claude here"]);
    assert_eq!((gitlab.requests(PASSES).len(), gitlab.requests("POST /ai/").len()), (2, 2));
    // If the second access token is rejected too, the turn fails.
    let (project, gitlab) = (Project::plain()?, GitLab::start(TOKEN, 100)?);
    let run = gitlab.program(&project, ["run", "--title", "T", "-m", "gitlab/duo-chat-opus-4-6", "Hi"]);
    let done = run.env("GITLAB_TOKEN", TOKEN).finish()?;
    check_code(&done, 1);
    keeps_quiet(&done);
    assert_eq!(gitlab.requests("POST /ai/").len(), 2);
    Ok(())
}

#[test]
fn an_instance_without_an_access_token_is_reported_without_the_token() -> Result<()> {
    let (project, gitlab) = (Project::plain()?, GitLab::start("another", 1)?);
    let run = gitlab.program(&project, ["run", "-m", "gitlab/duo-chat-opus-4-6", "Hi"]);
    let done = run.env("GITLAB_TOKEN", TOKEN).finish()?;
    check_code(&done, 1);
    keeps_quiet(&done);
    check_has(&done.stderr, &["does not grant this user access to its models (status 403)", &gitlab.url]);
    let run = program(&project, ["run", "-m", "gitlab/duo-chat-opus-4-6", "Hi"]).env("GITLAB_TOKEN", TOKEN);
    let done = run.env("GITLAB_INSTANCE_URL", "http://git.example.org").finish()?;
    check_code(&done, 1);
    check_has(
        &done.stderr,
        &["provider `gitlab`: the address of a GitLab instance must begin with https://"],
    );
    Ok(())
}

fn post(url: &str, path: &str, body: &Value) -> Result<String> {
    let mut socket = TcpStream::connect(url.trim_start_matches("http://"))?;
    let (host, body) = (url.trim_start_matches("http://"), body.to_string());
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\ncontent-type: application/json\r\n"
    );
    socket.write_all(format!("{head}content-length: {}\r\n\r\n{body}", body.len()).as_bytes())?;
    let mut answer = String::new();
    socket.read_to_string(&mut answer)?;
    Ok(answer.split_once("\r\n\r\n").context("no answer")?.1.to_owned())
}

fn auth_file(project: &Project) -> std::path::PathBuf {
    project.home().join(".local/share/codewright/auth.json")
}

#[test]
fn a_sign_in_is_stored_with_its_instance() -> Result<()> {
    let (project, gitlab) = (Project::plain()?, GitLab::start("access-canary", 1)?);
    let (_server, url) = serve(program(&project, ["serve"]))?;
    let inputs = json!({ "method": 0, "inputs": { "instanceUrl": format!("{}/group", gitlab.url) } });
    let begun: Value = serde_json::from_str(&post(&url, "/provider/gitlab/oauth/authorize", &inputs)?)?;
    let page = begun["url"].as_str().context("no address")?;
    let begin = format!("{}/oauth/authorize?", gitlab.url);
    assert!(page.starts_with(&begin), "{page}");
    check_has(
        page,
        &["scope=api", "code_challenge_method=S256", "redirect_uri=http%3A%2F%2F127.0.0.1%3A8080%2Fcallback"],
    );
    let state = page.split("state=").nth(1).and_then(|rest| rest.split('&').next()).context("no state")?;
    // The method for every machine: paste the final address of the browser.
    let ended = format!("http://127.0.0.1:8080/callback?code=the-code&state={state}");
    assert_eq!(
        post(&url, "/provider/gitlab/oauth/callback", &json!({ "method": 0, "code": ended }))?,
        "true"
    );
    let form = &gitlab.requests("POST /oauth/token")[0].text;
    check_has(form, &["grant_type=authorization_code", "code=the-code", "code_verifier="]);
    let stored: Value = serde_json::from_slice(&fs::read(auth_file(&project))?)?;
    assert_eq!(stored["gitlab"]["enterpriseUrl"], gitlab.url);
    assert_eq!(stored["gitlab"]["refresh"], "refresh-canary-2");

    // The environment has another instance, which must not get the token.
    let run = program(&project, ["run", "-m", "gitlab/duo-chat-haiku-4-5", "Hi"]);
    let run = run.env("GITLAB_INSTANCE_URL", "http://127.0.0.1:9").env("GITLAB_AI_GATEWAY_URL", &gitlab.url);
    let done = run.finish()?.success()?;
    keeps_quiet(&done);
    check_has(&done.stdout, &["Claude here"]);
    Ok(())
}

#[test]
fn expired_tokens_are_renewed_at_their_instance() -> Result<()> {
    let (project, gitlab) = (Project::plain()?, GitLab::start("access-canary", 1)?);
    let entry = |expires: u64| {
        json!({ "gitlab": {
            "type": "oauth", "access": "old", "refresh": "refresh-canary-1", "expires": expires, "enterpriseUrl": gitlab.url,
        } })
    };
    fs::create_dir_all(auth_file(&project).parent().context("no folder")?)?;
    fs::write(auth_file(&project), entry(1000).to_string())?;
    let run = gitlab.program(&project, ["run", "-m", "gitlab/duo-chat-opus-4-6", "Hi"]);
    let done = run.finish()?.success()?;
    keeps_quiet(&done);
    let renewals = gitlab.requests("POST /oauth/token");
    assert_eq!(renewals.len(), 1);
    check_has(&renewals[0].text, &["grant_type=refresh_token", "refresh_token=refresh-canary-1"]);
    let stored: Value = serde_json::from_slice(&fs::read(auth_file(&project))?)?;
    assert_eq!(stored["gitlab"]["access"], "access-canary");
    assert_eq!(stored["gitlab"]["enterpriseUrl"], gitlab.url);
    assert!(stored["gitlab"]["expires"].as_u64() < Some(LATER_MS));
    Ok(())
}

#[test]
fn a_stored_token_is_sent_to_its_instance_only() -> Result<()> {
    let (project, gitlab) = (Project::plain()?, GitLab::start(TOKEN, 1)?);
    let login = program(&project, ["providers", "login", "gitlab"]).stdin(format!("{TOKEN}\n"));
    keeps_quiet(&login.env("GITLAB_INSTANCE_URL", &gitlab.url).finish()?.success()?);
    let stored: Value = serde_json::from_slice(&fs::read(auth_file(&project))?)?;
    let expected = json!({ "type": "api", "key": TOKEN, "metadata": { "instanceUrl": gitlab.url } });
    assert_eq!(stored["gitlab"], expected);
    let run = program(&project, ["run", "-m", "gitlab/duo-chat-opus-4-6", "Hi"]);
    let done = run.env("GITLAB_AI_GATEWAY_URL", &gitlab.url).finish()?.success()?;
    check_has(&done.stdout, &["Claude here"]);
    Ok(())
}
