//! The part of the API that the plugins of a repository can use.
//!
//! Such a plugin runs in the sandbox of commands. The API could lead out of it: a terminal, the configuration, credentials
//! and replies to permission requests belong to the user. What is not listed here is refused.

use codewright_plugins::ApiRequest;
use serde_json::Value;

/// The header that names the directory of a request.
const DIRECTORY: &str = "x-opencode-directory";
/// The parameters of a query that name a directory.
const PLACES: [&str; 2] = ["directory", "workspace"];

/// The methods and paths that are allowed. `*` stands for one name.
const ALLOWED: &[(&str, &str)] = &[
    ("GET", "/agent"),
    ("GET", "/api/health"),
    ("GET", "/app"),
    ("GET", "/command"),
    ("GET", "/event"),
    ("GET", "/experimental/tool"),
    ("GET", "/experimental/tool/ids"),
    ("GET", "/file"),
    ("GET", "/file/content"),
    ("GET", "/file/status"),
    ("GET", "/find"),
    ("GET", "/find/file"),
    ("GET", "/find/symbol"),
    ("GET", "/formatter"),
    ("GET", "/global/health"),
    ("GET", "/lsp"),
    ("GET", "/mcp"),
    ("GET", "/path"),
    ("GET", "/permission"),
    ("GET", "/project/current"),
    ("GET", "/question"),
    ("GET", "/session"),
    ("GET", "/session/status"),
    ("GET", "/session/*"),
    ("GET", "/session/*/children"),
    ("GET", "/session/*/diff"),
    ("GET", "/session/*/message"),
    ("GET", "/session/*/message/*"),
    ("GET", "/session/*/todo"),
    ("GET", "/skill"),
    ("GET", "/vcs"),
    ("POST", "/log"),
    ("POST", "/session/*/abort"),
    ("POST", "/session/*/message"),
    ("POST", "/session/*/prompt_async"),
    ("POST", "/session/*/summarize"),
    ("POST", "/tui/append-prompt"),
    ("POST", "/tui/clear-prompt"),
    ("POST", "/tui/show-toast"),
];

/// Adds the directory of the plugin to a request that names no directory.
pub(crate) fn complete(request: &mut ApiRequest, directory: &str) {
    let names_one = request.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case(DIRECTORY));
    let query = request.path.split_once('?').map_or("", |(_, query)| query);
    if !names_one && !query.split('&').any(|pair| pair.starts_with("directory=")) {
        request.headers.push((DIRECTORY.to_owned(), encoded(directory)));
    }
}

/// Restricts a request of a plugin of a repository to its directory and to the allowed part of the API.
///
/// # Errors
///
/// Fails with the reason if the plugin may not make it.
pub(crate) fn restrict(request: &mut ApiRequest, directory: &str) -> Result<(), String> {
    check(&request.method, &request.path)?;
    if !request.body.is_empty() {
        let body: Value =
            serde_json::from_slice(&request.body).map_err(|_| "the body is not JSON".to_owned())?;
        check_body(&body)?;
        // The server reads exactly what was checked, also if a key occurs twice.
        request.body = body.to_string().into_bytes();
    }
    if let Some((path, query)) = request.path.split_once('?') {
        let is_place = |pair: &&str| {
            let name = pair.split('=').next().unwrap_or_default();
            // An encoded name could be one of them.
            PLACES.contains(&name) || name.contains('%')
        };
        let kept: Vec<&str> = query.split('&').filter(|pair| !is_place(pair)).collect();
        request.path = format!("{path}?{}", kept.join("&"));
    }
    request.headers.retain(|(name, _)| !name.to_ascii_lowercase().starts_with("x-opencode-"));
    request.headers.push((DIRECTORY.to_owned(), encoded(directory)));
    Ok(())
}

/// Checks what a prompt contains.
fn check_body(body: &Value) -> Result<(), String> {
    // The tools of a prompt become permission rules.
    if body.get("tools").is_some() {
        return Err("a plugin of a repository cannot choose the tools of a prompt".to_owned());
    }
    let parts = body.get("parts").and_then(Value::as_array).into_iter().flatten();
    for part in parts {
        let url = part["url"].as_str().unwrap_or_default();
        // The server reads attached files and resources with the rights of the user.
        let is_allowed = match part["type"].as_str() {
            Some("text") => true,
            Some("file") => url.starts_with("data:") && part.get("source").is_none_or(Value::is_null),
            _ => false,
        };
        if !is_allowed {
            return Err(
                "a plugin of a repository can only send text and `data:` files in a prompt".to_owned()
            );
        }
    }
    Ok(())
}

/// Encodes a path for a header, which contains only ASCII.
fn encoded(path: &str) -> String {
    percent_encoding::utf8_percent_encode(path, percent_encoding::NON_ALPHANUMERIC).to_string()
}

fn check(method: &str, target: &str) -> Result<(), String> {
    let path = target.split(['?', '#']).next().unwrap_or_default();
    let names = |path: &str| -> Vec<String> {
        path.split('/').filter(|name| !name.is_empty()).map(str::to_owned).collect()
    };
    let asked = names(path);
    let is_same = |allowed: &str| {
        let allowed = names(allowed);
        allowed.len() == asked.len()
            && allowed.iter().zip(&asked).all(|(name, asked)| name == "*" || name == asked)
    };
    // An encoded slash or dot could mean another path to the router.
    let is_plain = !path.contains(['%', '\\']) && !asked.iter().any(|name| name == "." || name == "..");
    if is_plain && ALLOWED.iter().any(|(of, allowed)| method.eq_ignore_ascii_case(of) && is_same(allowed)) {
        return Ok(());
    }
    Err(format!("a plugin of a repository cannot use {method} {path}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_of_a_repository_stays_in_its_directory() {
        let mut request = ApiRequest {
            method: "POST".to_owned(),
            path: "/session/s/message?directory=%2Fetc&a=1&%64irectory=x".to_owned(),
            headers: vec![("X-OpenCode-Directory".to_owned(), "/etc".to_owned())],
            body: b"{\"parts\": []}".to_vec(),
        };
        restrict(&mut request, "/own").unwrap();
        assert_eq!(request.path, "/session/s/message?a=1");
        assert_eq!(request.headers, [(DIRECTORY.to_owned(), "%2Fown".to_owned())]);
        request.body = b"{\"tools\": {\"bash\": true}}".to_vec();
        assert!(restrict(&mut request, "/own").is_err());
    }

    #[test]
    fn a_prompt_of_a_repository_reads_no_files() {
        for (body, is_allowed) in [
            (r#"{"parts": [{"type": "text", "text": "x"}], "noReply": true}"#, true),
            (
                r#"{"parts": [{"type": "file", "mime": "image/png", "url": "data:image/png;base64,AA=="}]}"#,
                true,
            ),
            (r#"{"parts": [{"type": "file", "mime": "image/png", "url": "file:///home/a/.ssh/id"}]}"#, false),
            (r#"{"parts": [{"type": "file", "mime": "text/plain", "url": "/home/a/.ssh/id"}]}"#, false),
            (r#"{"parts": [{"type": "file", "url": "data:,x", "source": {"type": "resource"}}]}"#, false),
            (r#"{"parts": [{"type": "subtask", "prompt": "x"}]}"#, false),
            (r#"{"parts": [{"type": "agent", "name": "x"}]}"#, false),
            (r#"{"parts": [{"text": "x"}]}"#, false),
            ("parts", false),
        ] {
            let mut request = ApiRequest {
                method: "POST".to_owned(),
                path: "/session/s/message".to_owned(),
                headers: Vec::new(),
                body: body.as_bytes().to_vec(),
            };
            assert_eq!(restrict(&mut request, "/own").is_ok(), is_allowed, "{body}");
        }
    }

    #[test]
    fn the_first_of_two_equal_keys_is_not_sent() {
        let mut request = ApiRequest {
            method: "POST".to_owned(),
            path: "/session/s/message".to_owned(),
            headers: Vec::new(),
            body: br#"{"parts": [{"type": "agent"}], "parts": []}"#.to_vec(),
        };
        restrict(&mut request, "/own").unwrap();
        assert_eq!(request.body, b"{\"parts\":[]}");
    }

    #[test]
    fn only_listed_requests_are_allowed() {
        for (method, path, is_allowed) in [
            ("GET", "/session", true),
            ("GET", "/session?directory=%2Ftmp", true),
            ("get", "/session/ses_1/message/msg_1", true),
            ("POST", "/session/ses_1/message", true),
            ("POST", "/log", true),
            ("GET", "//session/ses_1/", true),
            ("DELETE", "/session/ses_1", false),
            ("POST", "/session/ses_1/shell", false),
            ("POST", "/session/ses_1/command", false),
            ("POST", "/session", false),
            ("PATCH", "/session/ses_1", false),
            ("POST", "/permission/per_1/reply", false),
            ("POST", "/session/ses_1/permissions/per_1", false),
            ("POST", "/pty", false),
            ("PUT", "/auth/anthropic", false),
            ("PATCH", "/config", false),
            ("GET", "/config", false),
            ("POST", "/trust", false),
            ("GET", "/session/%2e%2e/pty", false),
            ("GET", "/session/../config", false),
            ("POST", "/mcp", false),
        ] {
            assert_eq!(check(method, path).is_ok(), is_allowed, "{method} {path}");
        }
    }
}
