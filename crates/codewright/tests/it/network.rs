//! Proxies and certificates from the environment.

use anyhow::Result;
use codewright_testkit::{BlockingServer, Project, Script};
use serde_json::json;

use crate::support::{check_has, program};

/// A project whose model is at this address.
fn project(base_url: &str) -> Result<Project> {
    let project = Project::plain()?;
    project.write_config(&json!({
        "model": "own/plain-model",
        "provider": {"own": {
            "npm": "@ai-sdk/openai-compatible",
            "options": {"baseURL": base_url, "apiKey": "sk-own"},
            "models": {"plain-model": {}},
        }},
    }))?;
    Ok(project)
}

#[test]
fn a_proxy_of_the_environment_is_used() -> Result<()> {
    let proxy = BlockingServer::start(Script::new().text("Hello from behind."))?;
    let project = project("http://model.test/v1")?;
    let done = program(&project, ["run", "hi"]).env("HTTP_PROXY", proxy.url()).finish()?.success()?;
    check_has(&done.stdout, &["Hello from behind."]);
    let request = proxy.main_requests().remove(0);
    assert_eq!(request.path, "http://model.test/v1/chat/completions");
    Ok(())
}

#[test]
fn an_invalid_proxy_or_certificate_is_reported() -> Result<()> {
    let project = project("https://model.test/v1")?;
    for (variable, value, expected) in [
        ("HTTPS_PROXY", "socks5://user:canary@p:1", "HTTPS_PROXY is not the URL of a proxy (`p:1`)"),
        (
            "NODE_EXTRA_CA_CERTS",
            "/nowhere.pem",
            "NODE_EXTRA_CA_CERTS names `/nowhere.pem`, which cannot be read",
        ),
        (
            "SSL_CERT_FILE",
            "/dev/null",
            "SSL_CERT_FILE names `/dev/null`, which contains no readable certificate",
        ),
    ] {
        let done = program(&project, ["run", "hi"]).env(variable, value).finish()?;
        assert_eq!(done.code, Some(1), "{variable}");
        check_has(&done.stderr, &[expected]);
        assert!(!done.stderr.contains("canary"), "{}", done.stderr);
    }
    Ok(())
}
