//! A provider that wants a key: a gate in front of the scripted model.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::time::Duration;

use anyhow::{Context as _, Result};
use codewright_testkit::{BlockingServer, Project, Script};
use serde_json::{Value, json};

/// The key that the provider accepts.
pub(super) const KEY: &str = "sk-right-key-1234567890";
/// The largest head of a request.
const HEAD_BYTES: usize = 64 * 1024;
/// The longest wait for a client or the model.
const DEADLINE: Duration = Duration::from_secs(60);

/// The provider. It ends with the process.
pub(super) struct Provider {
    url: String,
    pub(super) model: BlockingServer,
}

impl Provider {
    /// Starts a provider whose model answers by a script.
    pub(super) fn start(script: Script) -> Result<Self> {
        let model = BlockingServer::start(script)?;
        let target = model.url().trim_start_matches("http://").to_owned();
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let url = format!("http://{}", listener.local_addr()?);
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let target = target.clone();
                // A connection that breaks is the client's or the model's problem.
                std::thread::spawn(move || drop(serve(client, &target)));
            }
        });
        Ok(Self { url, model })
    }

    /// Writes the configuration of a user who has described the provider, without a key and without a model.
    pub(super) fn describe(&self, project: &Project, more: Value) -> Result<()> {
        let limit = json!({ "context": 200_000, "output": 32_000 });
        let mut config = json!({ "provider": { "mine": {
            "npm": "@ai-sdk/openai-compatible", "name": "Mine", "options": { "baseURL": format!("{}/v1", self.url) },
            "models": {
                "coder-2": { "name": "Coder 2", "release_date": "2026-05-01", "limit": limit },
                "coder-1": { "name": "Coder 1", "release_date": "2025-05-01", "limit": limit },
            },
        } } });
        if let (Some(config), Value::Object(more)) = (config.as_object_mut(), more) {
            config.extend(more);
        }
        project.write_config(&config)
    }
}

/// Answers a request without the key, and passes a connection with it on to the model.
fn serve(mut client: TcpStream, target: &str) -> Result<()> {
    client.set_read_timeout(Some(DEADLINE))?;
    let mut head = Vec::new();
    let mut buffer = [0; 4096];
    while !head.windows(4).any(|bytes| bytes == b"\r\n\r\n") && head.len() < HEAD_BYTES {
        let count = client.read(&mut buffer)?;
        if count == 0 {
            return Ok(());
        }
        head.extend_from_slice(&buffer[..count]);
    }
    if lacks_key(&head) {
        return refuse(&mut client);
    }
    let mut model = TcpStream::connect(target).context("the model has ended")?;
    model.write_all(&head)?;
    let (mut from_client, mut to_model) = (client.try_clone()?, model.try_clone()?);
    from_client.set_read_timeout(None)?;
    std::thread::spawn(move || {
        // Both ends close when one of them does.
        drop(pass_on(&mut from_client, &mut to_model));
        drop(to_model.shutdown(Shutdown::Write));
    });
    std::io::copy(&mut model, &mut client)?;
    client.shutdown(Shutdown::Both)?;
    Ok(())
}

/// Passes the further requests of a connection on, up to one without the key.
fn pass_on(client: &mut TcpStream, model: &mut TcpStream) -> Result<()> {
    let mut buffer = [0; HEAD_BYTES];
    loop {
        let count = client.read(&mut buffer)?;
        let bytes = &buffer[..count];
        // The client sends the head of a request in one piece, after the answer to the one before.
        if [&b"GET "[..], b"POST "].iter().any(|method| bytes.starts_with(method)) && lacks_key(bytes) {
            return refuse(client);
        }
        if count == 0 {
            return Ok(());
        }
        model.write_all(bytes)?;
    }
}

fn lacks_key(head: &[u8]) -> bool {
    !String::from_utf8_lossy(head).contains(KEY)
}

fn refuse(client: &mut TcpStream) -> Result<()> {
    let body = r#"{"error":{"message":"Incorrect API key provided","type":"invalid_request_error"}}"#;
    let length = body.len();
    write!(
        client,
        "HTTP/1.1 401 Unauthorized\r\nContent-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    )?;
    Ok(())
}
