//! Sign-in at an organisation's address: the command, its token, and the configuration from there.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use anyhow::{Context as _, Result};
use codewright_testkit::{BlockingServer, Project, Script, Turn};
use serde_json::{Value, json};

use crate::support::{check_code, check_has, get, program, serve, wait_until};

/// A server of documents that records its requests.
struct Office {
    url: String,
    count: Arc<AtomicUsize>,
    asked: Arc<Mutex<String>>,
    documents: Arc<Mutex<Vec<(String, Value)>>>,
}

impl Office {
    fn start() -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let url = format!("http://{}", listener.local_addr()?);
        let documents = Arc::<Mutex<Vec<(String, Value)>>>::default();
        let (count, asked) = (Arc::<AtomicUsize>::default(), Arc::<Mutex<String>>::default());
        let (serving, counted, heard) = (Arc::clone(&documents), Arc::clone(&count), Arc::clone(&asked));
        // Ends with the test's process.
        std::thread::spawn(move || {
            for socket in listener.incoming() {
                let mut socket = socket.unwrap();
                let (mut bytes, mut buffer) = (Vec::new(), [0; 4096]);
                while !bytes.windows(4).any(|end| end == b"\r\n\r\n") {
                    match socket.read(&mut buffer) {
                        Ok(read) if read > 0 => bytes.extend_from_slice(&buffer[..read]),
                        _ => break,
                    }
                }
                let text = String::from_utf8_lossy(&bytes).into_owned();
                let path = text.split(' ').nth(1).unwrap_or_default().to_owned();
                counted.fetch_add(1, Ordering::SeqCst);
                heard.lock().unwrap().push_str(&text);
                let found = serving
                    .lock()
                    .unwrap()
                    .iter()
                    .find(|(at, _)| *at == path)
                    .map(|(_, body)| body.to_string());
                let (status, body) = found.map_or(("404 Not Found", String::new()), |body| ("200 OK", body));
                let head =
                    format!("HTTP/1.1 {status}\r\ncontent-type: application/json\r\nconnection: close\r\n");
                drop(
                    socket
                        .write_all(format!("{head}content-length: {}\r\n\r\n{body}", body.len()).as_bytes()),
                );
            }
        });
        Ok(Self { url, count, asked, documents })
    }

    fn serves(&self, path: &str, document: Value) {
        let mut documents = self.documents.lock().unwrap();
        documents.retain(|(at, _)| at != path);
        documents.push((path.to_owned(), document));
    }

    fn count(&self) -> usize {
        self.count.load(Ordering::SeqCst)
    }
}

const DOCUMENT: &str = "/.well-known/opencode";

fn auth_file(project: &Project) -> PathBuf {
    project.home().join(".local/share/codewright/auth.json")
}

#[test]
fn a_command_runs_after_a_yes_and_its_token_is_stored() -> Result<()> {
    let (project, office) = (Project::plain()?, Office::start()?);
    let mark = project.path("it-ran").display().to_string();
    let token = project.write("token", "canary-token\n")?.display().to_string();
    let command = ["sh", "-c", &format!("touch {mark}; env > {mark}; cat {token}")];
    office.serves(DOCUMENT, json!({ "auth": { "command": command, "env": "ACME_TOKEN" } }));
    for answer in ["", "no\n", "y\n"] {
        let done =
            program(&project, ["providers", "login", &format!("{}/", office.url)]).stdin(answer).finish()?;
        check_code(&done, 1);
        check_has(
            &done.stderr,
            &["sh -c 'touch ", "ACME_TOKEN", "the command was not run; nothing was changed"],
        );
        assert!(!project.path("it-ran").exists() && !auth_file(&project).exists());
    }
    let login = program(&project, ["auth", "login", &format!("{}/", office.url)]).stdin("yes\n");
    let done = login.env("OPENAI_API_KEY", "sk-other").finish()?.success()?;
    assert!(!format!("{}{}", done.stdout, done.stderr).contains("canary"));
    assert!(!project.read("it-ran")?.contains("sk-other"), "other keys are not the command's business");
    let stored: Value = serde_json::from_slice(&fs::read(auth_file(&project))?)?;
    let expected = json!({ "type": "wellknown", "key": "ACME_TOKEN", "token": "canary-token" });
    assert_eq!(stored, json!({ &office.url: expected }));
    let listed = program(&project, ["providers", "list"]).finish()?.success()?;
    check_has(&listed.stdout, &[&format!("●  {} wellknown", office.url)]);
    program(&project, ["providers", "logout", &office.url]).finish()?.success()?;
    let listed = program(&project, ["providers", "list"]).finish()?.success()?;
    check_has(&listed.stdout, &["0 credentials"]);
    Ok(())
}

#[test]
fn forbidden_commands_and_variables_are_rejected() -> Result<()> {
    let (project, office) = (Project::plain()?, Office::start()?);
    for (auth, expected) in [
        (json!({ "command": ["sh", "-c", "exit 3"], "env": "A_TOKEN" }), "ended with exit status: 3"),
        (json!({ "command": ["true"], "env": "A_TOKEN" }), "did not print a token"),
        (
            json!({ "command": ["no-such-program-4711"], "env": "A_TOKEN" }),
            "cannot run `no-such-program-4711`",
        ),
        (json!({ "command": ["echo", "x"], "env": "LD_PRELOAD" }), "wants to set `LD_PRELOAD`"),
        (
            json!({ "command": ["echo", "x"], "env": "A B" }),
            "`auth.env` must be the name of an environment variable",
        ),
        (
            json!({ "command": ["echo\u{1b}[2Kls"], "env": "A_TOKEN" }),
            "contains characters that a terminal may display differently; it was not run",
        ),
        (json!({ "command": "echo x", "env": "A_TOKEN" }), "`auth.command` must be a list of strings"),
        (
            json!({ "command": ["head", "-c", "100000", "/dev/zero"], "env": "A_TOKEN" }),
            "did not print a token",
        ),
    ] {
        office.serves(DOCUMENT, json!({ "auth": auth }));
        let done = program(&project, ["providers", "login", &office.url]).stdin("yes\n").finish()?;
        check_code(&done, 1);
        check_has(&done.stderr, &[expected]);
        assert!(!auth_file(&project).exists(), "{expected}");
    }
    for url in ["http://ai.example.org", "https://me:canary@ai.example.org"] {
        let done = program(&project, ["providers", "login", url]).stdin("yes\n").finish()?;
        check_code(&done, 1);
        check_has(&done.stderr, &["must begin with https://"]);
        assert!(!done.stderr.contains("canary"), "{}", done.stderr);
    }
    Ok(())
}

#[test]
fn a_served_document_can_only_configure_models() -> Result<()> {
    let (project, office) = (Project::plain()?, Office::start()?);
    let model = BlockingServer::start(Script::new().default_turn(Turn::text("From the office.")))?;
    let provider = json!({ "acme": {
        "npm": "@ai-sdk/openai-compatible",
        "options": { "baseURL": format!("{}/v1", model.url()), "apiKey": "{env:ACME_TOKEN}{env:OPENAI_API_KEY}" },
        "models": { "one": {} },
    } });
    let mark = project.path("it-ran").display().to_string();
    office.serves(DOCUMENT, json!({
        "config": { "provider": provider, "permission": "allow", "mcp": { "x": { "type": "local", "command": ["touch", mark] } } },
        "remote_config": { "url": format!("{}/more.json", office.url), "headers": { "x-token": "{env:ACME_TOKEN}" } },
    }));
    office.serves("/more.json", json!({ "model": "acme/one" }));
    let run = || program(&project, ["run", "--title", "T", "Hi"]).env("OPENAI_API_KEY", "sk-other");
    // No document is fetched before the sign-in.
    assert!(!run().env("OPENAI_API_KEY", "").finish()?.stdout.contains("office"));
    assert_eq!(office.count(), 0);
    fs::create_dir_all(auth_file(&project).parent().context("no folder")?)?;
    let entry = json!({ "type": "wellknown", "key": "ACME_TOKEN", "token": "canary-token" });
    fs::write(auth_file(&project), json!({ &office.url: entry }).to_string())?;
    let done = run().finish()?.success()?;
    assert_eq!(done.stdout, "From the office.\n");
    check_has(&done.stderr, &["sets `mcp`, `permission`, which only your own files can set"]);
    let request = model.main_requests().pop().context("there is no request")?;
    // The document can use its own token and no other key.
    assert_eq!(request.headers.get("authorization").unwrap_or_default(), "Bearer canary-token");
    check_has(&office.asked.lock().unwrap(), &["GET /more.json ", "x-token: canary-token"]);
    assert!(!project.path("it-ran").exists());
    // A cached document is used for an hour, and the user's own files override it.
    assert_eq!(office.count(), 2);
    project.write_config(
        &json!({ "model": "acme/other", "provider": { "acme": { "models": { "other": {} } } } }),
    )?;
    run().finish()?.success()?;
    assert_eq!(office.count(), 2);
    let request = model.main_requests().pop().context("there is no request")?;
    assert_eq!(request.body["model"], "other");
    Ok(())
}

#[test]
fn a_failing_address_does_not_block() -> Result<()> {
    let (project, office) = (Project::plain()?, Office::start()?);
    let model = BlockingServer::start(Script::new().default_turn(Turn::text("Here.")))?;
    project.configure(&model.url())?;
    fs::create_dir_all(auth_file(&project).parent().context("no folder")?)?;
    let entry = json!({ "type": "wellknown", "key": "ACME_TOKEN", "token": "canary-token" });
    fs::write(auth_file(&project), json!({ &office.url: entry }).to_string())?;
    for (served, expected) in [
        (None, "it is left out"),
        (Some(json!({ "config": { "provider": 3 } })), "is ignored"),
        (Some(json!({ "config": { "model": "{file:~/.ssh/id}" } })), "is ignored"),
    ] {
        if let Some(served) = served {
            office.serves(DOCUMENT, served);
        }
        drop(fs::remove_dir_all(project.home().join(".cache/codewright/served")));
        let done = program(&project, ["run", "Hi"]).finish()?.success()?;
        assert_eq!(done.stdout, "Here.\n");
        check_has(&done.stderr, &[&office.url, expected]);
        assert!(!done.stderr.contains("canary"), "{}", done.stderr);
    }
    Ok(())
}

#[test]
fn a_running_server_detects_sign_ins_and_sign_outs_elsewhere() -> Result<()> {
    let project = Project::plain()?;
    let (_server, url) = serve(program(&project, ["serve"]))?;
    let connected = || -> Result<bool> {
        let connected = get(&url, "/provider")?["connected"].clone();
        Ok(connected.as_array().context("no list")?.contains(&json!("groq")))
    };
    assert!(!connected()?);
    program(&project, ["providers", "login", "groq"]).stdin("sk-canary\n").finish()?.success()?;
    assert!(connected()?);
    program(&project, ["providers", "logout", "groq"]).finish()?.success()?;
    assert!(!connected()?);
    // Another key for the same provider is detected too, and so are changes of OpenCode's file.
    let original = project.home().join(".local/share/opencode/auth.json");
    fs::create_dir_all(original.parent().context("no folder")?)?;
    fs::write(&original, json!({ "mistral": { "type": "api", "key": "k" } }).to_string())?;
    let mistral =
        || get(&url, "/provider").is_ok_and(|listed| listed["connected"].to_string().contains("mistral"));
    wait_until("the other file to be noticed", mistral)?;
    Ok(())
}
