//! Signing in and out on the command line, without printing secrets.

use std::fs;
use std::io::Write as _;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use codewright_testkit::{Finished, Project, Run};
use serde_json::{Value, json};

const CANARY: &str = "sk-canary-4711";

fn run(project: &Project, args: &[&str]) -> Run {
    Run::new(env!("CARGO_BIN_EXE_codewright"), project).args(args)
}

fn file(project: &Project) -> PathBuf {
    project.home().join(".local/share/codewright/auth.json")
}

fn stored(project: &Project) -> Value {
    serde_json::from_slice(&fs::read(file(project)).unwrap()).unwrap()
}

#[track_caller]
fn keeps_quiet(done: &Finished) {
    let all = format!("{}{}", done.stdout, done.stderr);
    assert!(!all.contains("canary"), "{all}");
}

#[test]
fn a_piped_key_is_stored_listed_without_its_value_and_removed() {
    let project = Project::plain().unwrap();
    // By id or by display name.
    let login = run(&project, &["providers", "login", "-p", "GROQ"]).stdin(format!("{CANARY}\n"));
    let done = login.finish().unwrap().success().unwrap();
    keeps_quiet(&done);
    assert!(done.stdout.contains("Signed in to Groq"), "{}", done.stdout);
    assert_eq!(stored(&project), json!({"groq": {"type": "api", "key": CANARY}}));
    assert_eq!(fs::metadata(file(&project)).unwrap().permissions().mode() & 0o777, 0o600);

    let original = project.home().join(".local/share/opencode/auth.json");
    fs::create_dir_all(original.parent().unwrap()).unwrap();
    fs::write(&original, json!({"mistral": {"type": "api", "key": CANARY}}).to_string()).unwrap();
    for args in [["providers", "list"], ["auth", "ls"]] {
        let list = run(&project, &args).env("ANTHROPIC_API_KEY", CANARY).env("ZENMUX_API_KEY", CANARY);
        let done = list.finish().unwrap().success().unwrap();
        keeps_quiet(&done);
        for line in ["●  Groq api", "●  Mistral api (OpenCode's auth.json)", "└  2 credentials"] {
            assert!(done.stdout.contains(line), "{line}: {}", done.stdout);
        }
        for line in ["●  Anthropic ANTHROPIC_API_KEY", "●  ZenMux ZENMUX_API_KEY"] {
            assert!(done.stdout.contains(line), "{line}: {}", done.stdout);
        }
    }

    for provider in ["groq", "mistral"] {
        run(&project, &["auth", "logout", provider]).finish().unwrap().success().unwrap();
    }
    let done = run(&project, &["providers", "list"]).finish().unwrap().success().unwrap();
    assert!(done.stdout.contains("└  0 credentials"), "{}", done.stdout);
    assert!(fs::read_to_string(&original).unwrap().contains(CANARY), "the original's file is not ours");
}

#[test]
fn errors_have_advice() {
    let project = Project::plain().unwrap();
    for (args, stdin, expected) in [
        (&["providers", "logout", "groq"][..], "", "there are no credentials for `groq`"),
        (&["providers", "logout"], "", "there are no credentials"),
        (&["providers", "login"], "", "missing provider"),
        (&["providers", "login", "-p", "groq"], " \n", "missing key"),
        (&["providers", "login", "-p", "groq"], "sk-canary\nsecond", "a key is one line"),
        (
            &["providers", "login", "-p", "openai", "-m", "by post"],
            "",
            "its methods: ChatGPT Pro/Plus (browser)",
        ),
        (&["providers", "login", "http://ai.example.org"], "", "must begin with https://"),
    ] {
        let done = run(&project, args).stdin(stdin).finish().unwrap();
        keeps_quiet(&done);
        assert_eq!(done.code, Some(1), "{args:?}");
        assert!(done.stderr.contains(expected), "{args:?}: {}", done.stderr);
        assert!(!file(&project).exists(), "{args:?}");
    }
    fs::create_dir_all(file(&project).parent().unwrap()).unwrap();
    fs::write(file(&project), "{\"a\": canary").unwrap();
    for args in
        [&["providers", "list"][..], &["providers", "login", "-p", "groq"], &["providers", "logout", "a"]]
    {
        let done = run(&project, args).stdin("k").finish().unwrap();
        keeps_quiet(&done);
        assert_eq!(done.code, Some(1), "{args:?}");
        assert!(done.stderr.contains("auth.json` line 1, column"), "{}", done.stderr);
    }
    assert_eq!(fs::read_to_string(file(&project)).unwrap(), "{\"a\": canary", "it is not changed");
}

/// A GitHub server with a few responses, then Copilot. Returns its requests.
fn github() -> (String, std::thread::JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let page = format!("{url}/login/device");
    let device = json!({"device_code": "d", "user_code": "AB-12", "verification_uri": page, "interval": 1});
    let delta = |delta: Value| format!("data: {}\n\n", json!({"choices": [delta]}));
    let answer = [
        delta(json!({"delta": {"content": "Hello from Copilot"}})),
        delta(json!({"delta": {}, "finish_reason": "stop"})),
        "data: [DONE]\n\n".to_owned(),
    ];
    let answers = [
        ("application/json", device.to_string()),
        ("application/json", json!({"error": "authorization_pending"}).to_string()),
        ("application/json", json!({"access_token": "gho-canary"}).to_string()),
        ("text/event-stream", answer.concat()),
        ("text/event-stream", answer.concat()),
    ];
    let thread = std::thread::spawn(move || {
        let mut asked = Vec::new();
        for (kind, body) in answers {
            let (mut socket, _) = listener.accept().unwrap();
            asked.push(read_request(&mut socket));
            let head =
                format!("HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n", body.len());
            socket.write_all(format!("{head}connection: close\r\n\r\n{body}").as_bytes()).unwrap();
        }
        asked
    });
    (url, thread)
}

fn read_request(socket: &mut impl std::io::Read) -> String {
    let (mut bytes, mut buffer) = (Vec::new(), [0; 64 << 10]);
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head
                .lines()
                .find_map(|line| line.to_lowercase().strip_prefix("content-length: ").map(str::to_owned));
            if body.len() >= length.map_or(0, |length| length.trim().parse().unwrap()) {
                return text;
            }
        }
        let read = socket.read(&mut buffer).unwrap();
        assert!(read > 0, "the request broke off: {text}");
        bytes.extend_from_slice(&buffer[..read]);
    }
}

#[test]
fn a_copilot_sign_in_is_used_for_the_next_prompt() {
    let project = Project::plain().unwrap();
    let (url, server) = github();
    let login = run(&project, &["providers", "login", "github-copilot"]).stdin(format!("2\n{url}\n"));
    let done = login.finish().unwrap().success().unwrap();
    keeps_quiet(&done);
    assert!(
        done.stderr.contains("Enter code: AB-12") && done.stderr.contains("/login/device"),
        "{}",
        done.stderr
    );
    let entry = json!({
        "type": "oauth", "refresh": "gho-canary", "access": "gho-canary", "expires": 0, "enterpriseUrl": url,
    });
    assert_eq!(stored(&project), json!({"github-copilot": entry}));

    let prompt = run(&project, &["run", "-m", "github-copilot/gpt-4.1", "Hi"]);
    let done = prompt.finish().unwrap().success().unwrap();
    keeps_quiet(&done);
    assert!(done.stdout.contains("Hello from Copilot"), "{}", done.stdout);
    // One is the prompt, the other the title.
    let asked = server.join().unwrap();
    for request in &asked[3..] {
        let request = request.to_lowercase();
        assert!(request.starts_with("post /chat/completions "), "{request}");
        assert!(request.contains("authorization: bearer gho-canary"), "{request}");
        assert!(request.contains("x-initiator: user") && request.contains("openai-intent: "), "{request}");
    }
}

#[test]
fn an_account_has_the_models_of_its_plan() {
    let project = Project::plain().unwrap();
    let models = |id: &str| run(&project, &["models", id, "--verbose"]).finish().unwrap();
    let without = models("github-copilot");
    assert_eq!(without.code, Some(1));
    assert!(without.stderr.contains("`codewright providers login github-copilot`"), "{}", without.stderr);

    let tokens = json!({"type": "oauth", "access": "canary", "refresh": "canary", "expires": 0});
    fs::create_dir_all(file(&project).parent().unwrap()).unwrap();
    fs::write(file(&project), json!({"github-copilot": tokens, "openai": tokens}).to_string()).unwrap();
    for (id, there, not_there) in [
        (
            "github-copilot",
            &["gpt-4.1", "gpt-5.4", "claude-sonnet-4.6", "gemini-3.1-pro-preview"][..],
            "gpt-5",
        ),
        ("openai", &["gpt-5.3-codex", "gpt-5.4"], "gpt-5.4-nano"),
    ] {
        let done = models(id).success().unwrap();
        keeps_quiet(&done);
        let has = |model: &str| done.stdout.lines().any(|line| line == format!("{id}/{model}"));
        assert!(there.iter().all(|model| has(model)) && !has(not_there), "{}", done.stdout);
        let facts: String = done.stdout.lines().filter(|line| !line.starts_with(&format!("{id}/"))).collect();
        for model in serde_json::Deserializer::from_str(&facts).into_iter::<Value>() {
            let model = model.unwrap();
            assert_eq!(
                (&model["cost"]["input"], &model["cost"]["tiers"]),
                (&json!(0), &Value::Null),
                "{model}"
            );
        }
    }
}

#[test]
fn a_chatgpt_sign_in_is_used_before_a_key_of_the_environment() {
    let project = Project::plain().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/codex", listener.local_addr().unwrap());
    let server = std::thread::spawn(move || {
        let events = [
            json!({"type": "response.output_item.added", "output_index": 0, "item": {"type": "message", "id": "m"}}),
            json!({"type": "response.output_text.delta", "item_id": "m", "output_index": 0, "delta": "Hello from ChatGPT"}),
            json!({"type": "response.output_item.done", "output_index": 0, "item": {"type": "message", "id": "m"}}),
            json!({"type": "response.completed", "response": {"usage": {"input_tokens": 1, "output_tokens": 1}}}),
        ];
        let body: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
        // The prompt and the title, in any order.
        (0..2)
            .map(|_| {
                let (mut socket, _) = listener.accept().unwrap();
                let asked = read_request(&mut socket);
                let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
                socket.write_all(format!("{head}{body}").as_bytes()).unwrap();
                asked
            })
            .collect::<Vec<_>>()
    });
    fs::create_dir_all(file(&project).parent().unwrap()).unwrap();
    // Valid until the year 2100.
    let entry = json!({
        "type": "oauth", "access": "canary-access", "refresh": "r", "expires": 4_102_444_800_000_u64, "accountId": "acct",
    });
    fs::write(file(&project), json!({"openai": entry}).to_string()).unwrap();
    project.write_config(&json!({"provider": {"openai": {"options": {"baseURL": url}}}})).unwrap();
    project.write("AGENTS.md", "Mind the gap.").unwrap();
    let prompt =
        run(&project, &["run", "-m", "openai/gpt-5.3-codex", "Hi"]).env("OPENAI_API_KEY", "sk-other");
    let done = prompt.finish().unwrap().success().unwrap();
    keeps_quiet(&done);
    assert!(done.stdout.contains("Hello from ChatGPT"), "{}", done.stdout);
    for request in server.join().unwrap() {
        let (head, body) = request.split_once("\r\n\r\n").unwrap();
        let head = head.to_lowercase();
        assert!(head.starts_with("post /codex/responses "), "{head}");
        assert!(head.contains("bearer canary-access") && head.contains("chatgpt-account-id: acct"), "{head}");
        let body: Value = serde_json::from_str(body).unwrap();
        assert_eq!(body["model"], "gpt-5.3-codex", "the account has no cheaper one for titles");
        assert!(body["instructions"].as_str().is_some_and(|text| !text.is_empty()));
        let input = body["input"].as_array().unwrap();
        assert!(input.iter().all(|message| message["role"] == "user"), "{body}");
        if body.get("tools").is_some() {
            assert!(!body["instructions"].to_string().contains("Mind the gap."));
            assert!(input[0].to_string().contains("Mind the gap."), "our own words are said by the user");
        }
    }
}
