//! Tests of sign-ins and token refreshes with local servers.

use std::collections::BTreeMap;
use std::future::pending;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use codewright_llm::oauth::{Endpoints, SignIn};
use codewright_llm::vault::{Credential, Tokens, Vault};
use codewright_llm::{Auth, Client, Error, Message, Model, Protocol, Request, UserContent};
use serde_json::{Map, Value, json};
use tempfile::TempDir;
use tokio::task::JoinSet;

use crate::server::{CHAT_END, Server, chat, response, says, stream_head};

const NOW_MS: u64 = 1_800_000_000_000;

fn client() -> Client {
    Client::new("codewright/test").unwrap()
}

struct Place {
    dir: TempDir,
}

impl Place {
    fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    fn paths(&self) -> [PathBuf; 2] {
        ["codewright/auth.json", "opencode/auth.json"].map(|path| self.dir.path().join(path))
    }

    fn vault(&self) -> Vault {
        let [own, original] = self.paths();
        Vault::new(own, original, None)
    }

    fn sign_in(&self, server: &str) -> SignIn {
        let endpoints = Endpoints {
            openai: server.to_owned(),
            xai: server.to_owned(),
            snowflake: format!("{server}/{{account}}"),
            gitlab: server.to_owned(),
            poe_page: "https://poe.example/authorize".to_owned(),
            poe_token: format!("{server}/token"),
            ..Endpoints::default()
        };
        SignIn::new(client(), self.vault(), || NOW_MS).with_endpoints(endpoints)
    }

    fn store(&self, provider: &str, refresh: &str, expires_ms: u64) {
        let tokens =
            Tokens { access: "canary-old".into(), refresh: refresh.into(), expires_ms, extra: Map::new() };
        self.vault().set(provider, &Credential::OAuth(tokens)).unwrap();
    }
}

/// Answers all requests with `answer`, slowly, and counts them.
fn token_server(answer: String) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    // The thread ends with the process.
    std::thread::spawn(move || {
        for socket in listener.incoming() {
            let mut socket = socket.unwrap();
            let (answer, counted) = (answer.clone(), Arc::clone(&counted));
            std::thread::spawn(move || {
                let request = read_form(&mut socket);
                assert!(request.contains("grant_type=refresh_token"), "{request}");
                counted.fetch_add(1, Ordering::SeqCst);
                std::thread::sleep(Duration::from_millis(200));
                socket.write_all(answer.as_bytes()).unwrap();
            });
        }
    });
    (url, count)
}

fn read_form(socket: &mut TcpStream) -> String {
    let (mut bytes, mut buffer) = (Vec::new(), [0; 4096]);
    loop {
        let text = String::from_utf8_lossy(&bytes).to_lowercase();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.split("content-length: ").nth(1).and_then(|rest| rest.lines().next());
            if body.len() >= length.map_or(0, |length| length.trim().parse().unwrap()) {
                return String::from_utf8(bytes).unwrap();
            }
        }
        let read = socket.read(&mut buffer).unwrap();
        assert!(read > 0, "the request broke off");
        bytes.extend_from_slice(&buffer[..read]);
    }
}

fn new_tokens() -> String {
    let body = json!({"access_token": "canary-new", "refresh_token": "r2", "expires_in": 3600}).to_string();
    response("200 OK", "connection: close\r\n", &body)
}

#[tokio::test]
async fn many_tasks_and_processes_cause_one_refresh() {
    let place = Place::new();
    let (url, count) = token_server(new_tokens());
    place.store("openai", "r1", NOW_MS + 59_000);
    let children: Vec<_> = (0..2)
        .map(|_| {
            let mut command = Command::new(std::env::current_exe().unwrap());
            command.args(["sign_in::asks_for_a_token", "--exact", "--ignored", "--nocapture"]);
            let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
            let [own, original] = place.paths();
            let said = format!("{}\n{}\n{url}\n", own.display(), original.display());
            child.stdin.take().unwrap().write_all(said.as_bytes()).unwrap();
            child
        })
        .collect();
    let sign_in = place.sign_in(&url);
    let mut tasks = JoinSet::new();
    for _ in 0..16 {
        let sign_in = sign_in.clone();
        tasks.spawn(async move { sign_in.tokens("openai").await });
    }
    for tokens in tasks.join_all().await {
        let tokens = tokens.unwrap();
        assert_eq!((tokens.access.expose(), tokens.refresh.expose()), ("canary-new", "r2"));
        assert_eq!(tokens.expires_ms, NOW_MS + 3_600_000);
    }
    for child in children {
        let done = tokio::task::spawn_blocking(move || child.wait_with_output().unwrap()).await.unwrap();
        assert!(done.status.success());
    }
    assert_eq!(count.load(Ordering::SeqCst), 1);
    sign_in.tokens("openai").await.unwrap();
    assert_eq!(count.load(Ordering::SeqCst), 1, "the new token is good for an hour");
}

#[tokio::test]
#[ignore = "another test runs it in a separate process"]
async fn asks_for_a_token() {
    let lines: Vec<_> = std::io::stdin().lines().map(Result::unwrap).collect();
    let vault = Vault::new(lines[0].clone().into(), lines[1].clone().into(), None);
    let endpoints = Endpoints { openai: lines[2].clone(), ..Endpoints::default() };
    let tokens =
        SignIn::new(client(), vault, || NOW_MS).with_endpoints(endpoints).tokens("openai").await.unwrap();
    assert_eq!(tokens.access.expose(), "canary-new");
}

#[tokio::test]
async fn a_refresh_survives_the_request_that_started_it() {
    let place = Place::new();
    let (url, count) = token_server(new_tokens());
    place.store("openai", "r1", 0);
    let sign_in = place.sign_in(&url);
    let asked = async {
        while count.load(Ordering::SeqCst) == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::select! {
        _ = sign_in.tokens("openai") => panic!("the server is slower than that"),
        () = asked => {}
    }
    assert_eq!(sign_in.tokens("openai").await.unwrap().access.expose(), "canary-new");
    assert_eq!(count.load(Ordering::SeqCst), 1, "only the cancelled request started a refresh");
    let [own, _] = place.paths();
    assert!(std::fs::read_to_string(own).unwrap().contains("canary-new"), "stored before it is used");
}

#[tokio::test]
async fn changes_during_a_refresh_are_kept() {
    for is_out in [false, true] {
        let place = Place::new();
        let (url, count) = token_server(new_tokens());
        place.store("openai", "r1", 0);
        let sign_in = place.sign_in(&url);
        let name = |known: &mut Credential| {
            let Credential::OAuth(tokens) = known else { panic!("{known:?}") };
            tokens.extra.insert("label".to_owned(), "Work".into());
        };
        let meanwhile = async {
            while count.load(Ordering::SeqCst) == 0 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            let vault = place.vault();
            if is_out { vault.remove("openai").unwrap() } else { vault.amend("openai", name).unwrap() }
        };
        let (tokens, was_there) = tokio::join!(sign_in.tokens("openai"), meanwhile);
        assert!(was_there && tokens.unwrap().access.expose() == "canary-new");
        let stored = place.vault().read().unwrap();
        let Some(Credential::OAuth(tokens)) = stored.get("openai") else {
            assert!(is_out, "{stored:?}");
            continue;
        };
        let kept = (is_out, tokens.access.expose(), tokens.refresh.expose(), tokens.text("label"));
        assert_eq!(kept, (false, "canary-new", "r2", Some("Work")));
    }
}

#[tokio::test]
async fn an_error_contains_advice_and_no_secret() {
    let place = Place::new();
    let body = json!({"error": "invalid_grant", "error_description": "canary-refresh is void"}).to_string();
    let (url, _) = token_server(response("400 Bad Request", "connection: close\r\n", &body));
    place.store("openai", "canary-refresh", 0);
    let sign_in = place.sign_in(&url);
    let error = sign_in.tokens("openai").await.unwrap_err();
    assert!(matches!(error, Error::Auth { .. }));
    let text = format!("{error} {error:?} {sign_in:?}");
    assert!(text.contains("run `codewright providers login openai`"), "{text}");
    assert!(!text.contains("canary"), "{text}");
    let [own, _] = place.paths();
    assert!(std::fs::read_to_string(own).unwrap().contains("canary-refresh"), "the sign-in is kept");

    let (url, _) = token_server(response("503 Service Unavailable", "connection: close\r\n", "{}"));
    let error = place.sign_in(&url).tokens("openai").await.unwrap_err();
    assert!(matches!(error, Error::Busy { .. }), "{error}");
    let error = place.sign_in(&url).tokens("github-copilot").await.unwrap_err();
    assert!(error.to_string().contains("providers login github-copilot"), "{error}");
    place.store("poe", "k", NOW_MS - 1);
    let error = place.sign_in(&url).tokens("poe").await.unwrap_err();
    assert!(error.to_string().contains("has expired; run `codewright providers login poe`"), "{error}");
}

fn query(url: &str, name: &str) -> String {
    let url = reqwest::Url::parse(url).unwrap();
    url.query_pairs().find(|(key, _)| key == name).unwrap().1.into_owned()
}

/// Returns the browser's answer for a local URL.
async fn visit(url: &str) -> String {
    let url = reqwest::Url::parse(url).unwrap();
    let port = url.port().unwrap();
    let target = match url.query() {
        Some(query) => format!("{}?{query}", url.path()),
        None => url.path().to_owned(),
    };
    tokio::task::spawn_blocking(move || {
        let mut socket = TcpStream::connect(("127.0.0.1", port)).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        socket.write_all(format!("GET {target} HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n").as_bytes()).unwrap();
        let mut answer = String::new();
        socket.read_to_string(&mut answer).unwrap();
        answer
    })
    .await
    .unwrap()
}

#[tokio::test]
async fn a_browser_sign_in_accepts_one_callback_with_the_right_state() {
    let place = Place::new();
    let body = json!({"api_key": "canary-key", "api_key_expires_in": 60}).to_string();
    let server = Server::new(vec![says(response("200 OK", "connection: close\r\n", &body))]);
    let sign_in = place.sign_in(server.base_url().trim_end_matches("/v1"));
    let begun = sign_in.begin("poe", 0, &BTreeMap::new()).await.unwrap();
    assert!(begun.is_automatic && begun.url.starts_with("https://poe.example/authorize?"));
    let (redirect, state) = (query(&begun.url, "redirect_uri"), query(&begun.url, "state"));
    assert_eq!(query(&begun.url, "code_challenge_method"), "S256");
    assert!(!format!("{begun:?}").contains(&state));

    let mut waiting = JoinSet::new();
    let waits = sign_in.clone();
    waiting.spawn(async move { waits.finish(begun, pending()).await });
    let wrong = visit(&format!("{redirect}?code=stolen&state=guess")).await;
    assert!(wrong.starts_with("HTTP/1.1 400"), "{wrong}");
    assert!(visit(&redirect.replace("/callback", "/")).await.starts_with("HTTP/1.1 404"));
    // A silent connection does not block others.
    let silent =
        TcpStream::connect(redirect.trim_start_matches("http://").trim_end_matches("/callback")).unwrap();
    let right = visit(&format!("{redirect}?code=the+code&state={state}")).await;
    assert!(right.starts_with("HTTP/1.1 200") && right.contains("close this page"), "{right}");
    let credential = waiting.join_all().await.remove(0).unwrap();
    drop(silent);
    let Credential::OAuth(tokens) = credential else { panic!("a sign-in returns tokens") };
    assert_eq!((tokens.access.expose(), tokens.expires_ms), ("canary-key", NOW_MS + 60_000));
    let asked = server.requests().await.remove(0);
    assert!(asked.contains("code=the+code") && asked.contains("code_verifier="), "{asked}");
    assert!(asked.to_lowercase().contains("application/x-www-form-urlencoded"), "{asked}");
    let port: u16 = reqwest::Url::parse(&redirect).unwrap().port().unwrap();
    TcpStream::connect(("127.0.0.1", port)).unwrap_err();
}

#[tokio::test]
async fn a_refusal_in_the_browser_ends_the_sign_in() {
    let sign_in = Place::new().sign_in("http://127.0.0.1:9");
    let begun = sign_in.begin("poe", 0, &BTreeMap::new()).await.unwrap();
    let (redirect, state) = (query(&begun.url, "redirect_uri"), query(&begun.url, "state"));
    let denial = format!("{redirect}?error=access_denied&state={state}");
    let (ended, page) = tokio::join!(sign_in.finish(begun, pending()), visit(&denial));
    assert!(page.contains("refused"), "{page}");
    assert!(ended.unwrap_err().to_string().contains("access_denied"));
}

#[tokio::test]
async fn the_url_can_be_pasted_without_a_local_browser() {
    let place = Place::new();
    let claims = "eyJjaGF0Z3B0X2FjY291bnRfaWQiOiJhY2N0In0";
    let body = json!({
        "access_token": "canary-a", "refresh_token": "canary-r", "id_token": format!("e30.{claims}.s"), "expires_in": 60,
    });
    let server = Server::new(vec![says(response("200 OK", "connection: close\r\n", &body.to_string()))]);
    let sign_in = place.sign_in(server.base_url().trim_end_matches("/v1"));
    let begun = sign_in.begin("openai", 0, &BTreeMap::new()).await.unwrap();
    let (redirect, state) = (query(&begun.url, "redirect_uri"), query(&begun.url, "state"));
    assert_eq!(redirect, "http://localhost:1455/auth/callback");
    let pasted = format!("{redirect}?code=c&state={state}");
    let credential = sign_in.finish(begun, std::future::ready(pasted)).await.unwrap();
    let Credential::OAuth(tokens) = credential else { panic!("a sign-in returns tokens") };
    assert_eq!((tokens.refresh.expose(), tokens.text("accountId")), ("canary-r", Some("acct")));
}

#[tokio::test]
async fn the_server_is_polled_until_the_code_is_entered() {
    let place = Place::new();
    let answer = |body: Value| says(response("200 OK", "connection: close\r\n", &body.to_string()));
    let server = Server::new(vec![
        answer(json!({"device_code": "d", "user_code": "AB-12", "interval": 1, "expires_in": 60,
                      "verification_uri": "https://github.example/login/device"})),
        answer(json!({"error": "authorization_pending"})),
        answer(json!({"error": "slow_down", "interval": 2})),
        answer(json!({"access_token": "canary-gho"})),
    ]);
    let origin = server.base_url().trim_end_matches("/v1").to_owned();
    let sign_in = place.sign_in("http://127.0.0.1:9");
    let inputs = [("deploymentType", "enterprise"), ("enterpriseUrl", &origin)];
    let inputs = inputs.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    let begun = sign_in.begin("github-copilot", 0, &inputs).await.unwrap();
    assert_eq!(
        (begun.url.as_str(), begun.instructions.as_str()),
        ("https://github.example/login/device", "Enter code: AB-12")
    );
    let Credential::OAuth(tokens) = sign_in.finish(begun, pending()).await.unwrap() else {
        panic!("a sign-in returns tokens")
    };
    assert_eq!((tokens.refresh.expose(), tokens.expires_ms), ("canary-gho", 0));
    assert_eq!(tokens.text("enterpriseUrl"), Some(origin.as_str()));
    let asked = server.requests().await;
    assert!(asked[0].starts_with("POST /login/device/code ") && asked[3].contains("\"device_code\":\"d\""));
}

#[tokio::test]
async fn openai_issues_tokens_after_the_code_is_entered() {
    let place = Place::new();
    let answer =
        |status: &str, body: Value| says(response(status, "connection: close\r\n", &body.to_string()));
    let server = Server::new(vec![
        answer("200 OK", json!({"device_auth_id": "dev", "user_code": "XY", "interval": "1"})),
        answer("403 Forbidden", json!({})),
        answer("200 OK", json!({"authorization_code": "code", "code_verifier": "ver"})),
        answer("200 OK", json!({"access_token": "a", "refresh_token": "r"})),
    ]);
    let sign_in = place.sign_in(server.base_url().trim_end_matches("/v1"));
    let begun = sign_in.begin("openai", 1, &BTreeMap::new()).await.unwrap();
    assert!(begun.url.ends_with("/codex/device") && begun.instructions.contains("XY"));
    sign_in.finish(begun, pending()).await.unwrap();
    let asked = server.requests().await;
    assert!(
        asked[3].contains("code_verifier=ver") && asked[3].contains("deviceauth%2Fcallback"),
        "{}",
        asked[3]
    );
}

#[tokio::test]
async fn requests_with_a_chatgpt_account_match_its_server() {
    let place = Place::new();
    let extra = json!({"accountId": "acct-1"}).as_object().unwrap().clone();
    let tokens =
        Tokens { access: "canary-access".into(), refresh: "r".into(), expires_ms: NOW_MS + 3_600_000, extra };
    place.vault().set("openai", &Credential::OAuth(tokens)).unwrap();
    let done =
        "data: {\"type\":\"response.completed\",\"response\":{\"status\":\"completed\",\"output\":[]}}\n\n";
    let server = Server::new(vec![says(format!("{}{done}", stream_head()))]);
    let mut model = Model::new("openai", "gpt-5", Protocol::OpenAiResponses, &server.base_url());
    model.auth = Auth::SignIn { sign_in: place.sign_in("http://127.0.0.1:9"), provider: "openai".into() };
    let messages = vec![Message::User(vec![UserContent::Text("hi".into())])];
    let request =
        Request { system: "Be brief.".into(), messages, max_output_tokens: 9, ..Request::default() };
    let mut stream = client().stream(&model, &request).await.unwrap();
    while let Some(event) = stream.next().await {
        // The answer may be an error; this test checks the request.
        drop(event);
    }
    let asked = server.requests().await.remove(0);
    let (head, body) = asked.split_once("\r\n\r\n").unwrap();
    let head = head.to_lowercase();
    assert!(head.starts_with("post /v1/responses "), "{head}");
    assert!(head.contains("authorization: bearer canary-access"), "{head}");
    assert!(head.contains("chatgpt-account-id: acct-1"), "{head}");
    let body: Value = serde_json::from_str(body).unwrap();
    assert_eq!((&body["instructions"], &body["store"]), (&json!("Be brief."), &json!(false)));
    assert_eq!(body["input"].as_array().unwrap().len(), 1, "there is no system message: {body}");
    assert!(body.get("max_output_tokens").is_none(), "{body}");
}

#[tokio::test]
async fn a_copilot_request_contains_the_token_and_extra_headers() {
    let place = Place::new();
    place.store("github-copilot", "canary-gho", 5);
    let server =
        Server::new(vec![says(format!("{}{}{CHAT_END}", stream_head(), chat(&[r#"{"content":"hi"}"#])))]);
    let mut model = Model::new("github-copilot", "gpt", Protocol::OpenAiChat, &server.base_url());
    model.auth =
        Auth::SignIn { sign_in: place.sign_in("http://127.0.0.1:9"), provider: "github-copilot".into() };
    let messages = vec![Message::User(vec![UserContent::Text("hi".into())])];
    let request = Request { messages, ..Request::default() };
    let mut stream = client().stream(&model, &request).await.unwrap();
    while let Some(event) = stream.next().await {
        event.unwrap();
    }
    assert!(!format!("{model:?}").contains("canary"));
    let asked = server.requests().await.remove(0).to_lowercase();
    for header in
        ["authorization: bearer canary-gho", "x-initiator: user", "openai-intent: conversation-edits"]
    {
        assert!(asked.contains(header), "{header}: {asked}");
    }
}

fn json_answer(status: &str, body: &Value) -> crate::server::Answer {
    says(response(status, "connection: close\r\n", &body.to_string()))
}

#[tokio::test]
async fn xai_issues_tokens_after_the_code_is_entered_and_refreshes_them() {
    let place = Place::new();
    let server = Server::new(vec![
        json_answer(
            "200 OK",
            &json!({"device_code": "dev", "user_code": "XY-1", "verification_uri": "https://x.example/device", "interval": 1}),
        ),
        json_answer("400 Bad Request", &json!({"error": "authorization_pending"})),
        json_answer("200 OK", &json!({"access_token": "a1", "refresh_token": "r1", "expires_in": 30})),
        json_answer("200 OK", &json!({"access_token": "a2"})),
    ]);
    let sign_in = place.sign_in(server.base_url().trim_end_matches("/v1"));
    let begun = sign_in.begin("xai", 0, &BTreeMap::new()).await.unwrap();
    assert_eq!(
        (begun.url.as_str(), begun.instructions.as_str()),
        ("https://x.example/device", "Enter code: XY-1")
    );
    let credential = sign_in.finish(begun, pending()).await.unwrap();
    place.vault().set("xai", &credential).unwrap();
    let tokens = sign_in.tokens("xai").await.unwrap();
    assert_eq!((tokens.access.expose(), tokens.refresh.expose()), ("a2", "r1"));
    assert_eq!(tokens.expires_ms, NOW_MS + 3_600_000);
    let asked = server.requests().await;
    assert!(asked[0].starts_with("POST /oauth2/device/code ") && asked[0].contains("grok-cli%3Aaccess"));
    assert!(
        asked[2].contains("grant_type=urn%3Aietf") && asked[2].contains("device_code=dev"),
        "{}",
        asked[2]
    );
    assert!(
        asked[3].contains("grant_type=refresh_token") && asked[3].contains("refresh_token=r1"),
        "{}",
        asked[3]
    );
}

#[tokio::test]
async fn a_snowflake_account_uses_its_own_url() {
    let place = Place::new();
    let server = Server::new(vec![
        json_answer("200 OK", &json!({"access_token": "a1", "refresh_token": "r1", "expires_in": 30})),
        json_answer("200 OK", &json!({"access_token": "a2", "expires_in": 600})),
    ]);
    let sign_in = place.sign_in(server.base_url().trim_end_matches("/v1"));
    let inputs = [("account", "My-Acc.snowflakecomputing.com"), ("role", "SYS ADMIN")];
    let inputs = inputs.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    let begun = sign_in.begin("snowflake-cortex", 0, &inputs).await.unwrap();
    assert!(begun.url.contains("/My-Acc/oauth/authorize?"), "{}", begun.url);
    assert_eq!(query(&begun.url, "scope"), "refresh_token session:role-encoded:SYS%20ADMIN");
    let (redirect, state) = (query(&begun.url, "redirect_uri"), query(&begun.url, "state"));
    let called = format!("{redirect}?code=c&state={state}");
    let (credential, _) = tokio::join!(sign_in.finish(begun, pending()), visit(&called));
    place.vault().set("snowflake-cortex", &credential.unwrap()).unwrap();
    let tokens = sign_in.tokens("snowflake-cortex").await.unwrap();
    assert_eq!((tokens.access.expose(), tokens.text("accountId")), ("a2", Some("My-Acc")));
    for asked in server.requests().await {
        assert!(asked.starts_with("POST /My-Acc/oauth/token-request "), "{asked}");
        // `LOCAL_APPLICATION`, twice.
        assert!(asked.contains("Basic TE9DQUxfQVBQTElDQVRJT046TE9DQUxfQVBQTElDQVRJT04="), "{asked}");
    }
    let error = sign_in.begin("snowflake-cortex", 0, &BTreeMap::new()).await.unwrap_err();
    assert!(error.to_string().contains("is not the identifier of a Snowflake account"), "{error}");
}

/// Returns the answer to a body that a page's script posts.
async fn post(url: &str, body: String) -> String {
    let url = reqwest::Url::parse(url).unwrap();
    let (port, path) = (url.port().unwrap(), url.path().to_owned());
    tokio::task::spawn_blocking(move || {
        let mut socket = TcpStream::connect(("127.0.0.1", port)).unwrap();
        let head =
            format!("POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\n\r\n", body.len());
        // Sent in two pieces.
        socket.write_all(head.as_bytes()).unwrap();
        socket.write_all(body.as_bytes()).unwrap();
        let mut answer = String::new();
        socket.read_to_string(&mut answer).unwrap();
        answer
    })
    .await
    .unwrap()
}

#[tokio::test]
async fn the_page_posts_a_token_in_the_fragment() {
    let sign_in = Place::new().sign_in("http://127.0.0.1:9");
    let begun = sign_in.begin("digitalocean", 0, &BTreeMap::new()).await.unwrap();
    assert!(begun.url.starts_with("https://cloud.digitalocean.com/v1/oauth/authorize?response_type=token&"));
    assert_eq!(query(&begun.url, "redirect_uri"), "http://localhost:1456/auth/callback");
    let state = query(&begun.url, "state");
    let brought = format!("access_token=canary-token&expires_in=60&state={state}");
    let credential = if begun.is_automatic {
        let mut waiting = JoinSet::new();
        let waits = sign_in.clone();
        waiting.spawn(async move { waits.finish(begun, pending()).await });
        let callback = "http://localhost:1456/auth/callback";
        let page = visit(callback).await;
        assert!(page.contains("location.hash") && page.contains("method:'POST'"), "{page}");
        let wrong = post(callback, "access_token=stolen&state=guess".to_owned()).await;
        assert!(wrong.starts_with("HTTP/1.1 400"), "{wrong}");
        assert!(post(callback, brought).await.contains("close this page"));
        waiting.join_all().await.remove(0)
    } else {
        // Another program uses the port, so the URL is pasted.
        let pasted = format!("http://localhost:1456/auth/callback#{brought}");
        sign_in.finish(begun, std::future::ready(pasted)).await
    };
    let Credential::Api { key, extra } = credential.unwrap() else { panic!("the token is used as a key") };
    assert_eq!(key.expose(), "canary-token");
    assert_eq!(extra["metadata"]["oauth_expires"], json!((NOW_MS + 60_000).to_string()));
}
