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

#[test]
fn exceptions_are_read_as_curl_node_and_go_read_them() -> Result<()> {
    let server =
        BlockingServer::start(Script::new().text("Hello.").text("Hello.").text("Hello.").text("Hello."))?;
    // An address of this machine that is not exempt from proxies by default.
    let url = server.url().replace("127.0.0.1", "0.0.0.0");
    let port = url.trim_end_matches('/').rsplit(':').next().unwrap_or_default().to_owned();
    let proxy = BlockingServer::start(Script::new().text("From behind.").text("From behind."))?;
    let exceptions = [
        "other.test;0.0.0.0".to_owned(),
        format!("other.test\t0.0.0.0:{port}"),
        "0.0.0.0:*".to_owned(),
        "[::1]:443; 0.0.0.0/8".to_owned(),
    ];
    for list in exceptions {
        let project = project(&format!("{url}/v1"))?;
        let run = program(&project, ["run", "hi"]).env("HTTP_PROXY", proxy.url()).env("NO_PROXY", &list);
        check_has(&run.finish()?.success()?.stdout, &["Hello."]);
        assert!(proxy.main_requests().is_empty(), "{list}");
    }
    let project = project(&format!("{url}/v1"))?;
    let run = program(&project, ["run", "hi"]).env("HTTP_PROXY", proxy.url()).env("NO_PROXY", "0.0.0.0:1");
    check_has(&run.finish()?.success()?.stdout, &["From behind."]);
    Ok(())
}
