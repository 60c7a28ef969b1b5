//! The part of the API that the plugins of a repository can use.
//!
//! Such a plugin runs in the sandbox of commands. The API could lead out of it: a terminal, the configuration, credentials
//! and replies to permission requests belong to the user. So a request is parsed into one of the [`OPERATIONS`], and the
//! request that the server receives is built from the parsed values. What is not part of an operation is refused or left out,
//! and no spelling means one thing here and another to the server.

use codewright_plugins::ApiRequest;
use codewright_proto::{MessageId, PartInput, PromptBody, PromptInput, SessionId, SummarizeInput};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use url::form_urlencoded;

use crate::address::Address;

/// The header that names the directory of a request.
const DIRECTORY: &str = "x-opencode-directory";
/// The other headers of a request that the server receives.
const HEADERS: [&str; 2] = ["accept", "last-event-id"];
/// The segments of a path that stand for ids.
const SESSION: &str = "{sessionID}";
/// See [`SESSION`].
const MESSAGE: &str = "{messageID}";

/// An operation of the API.
struct Operation {
    method: &'static str,
    path: &'static str,
    /// The keys of its query.
    query: &'static [&'static str],
    body: Body,
    lists: Lists,
}

/// The body of an operation.
#[derive(Clone, Copy)]
enum Body {
    Nothing,
    /// An object with these keys.
    Fields(&'static [&'static str]),
    Prompt,
    Summary,
}

/// Whether the answer would contain sessions of other directories without a query that names the directory.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lists {
    Project,
    Directory,
}

const fn get(path: &'static str, query: &'static [&'static str]) -> Operation {
    Operation { method: "GET", path, query, body: Body::Nothing, lists: Lists::Directory }
}

const fn post(path: &'static str, body: Body) -> Operation {
    Operation { method: "POST", path, query: &[], body, lists: Lists::Directory }
}

/// What is allowed.
const OPERATIONS: &[Operation] = &[
    get("/agent", &[]),
    get("/api/health", &[]),
    get("/app", &[]),
    get("/command", &[]),
    get("/event", &["names"]),
    get("/experimental/tool", &["provider", "model"]),
    get("/experimental/tool/ids", &[]),
    get("/file", &["path"]),
    get("/file/content", &["path"]),
    get("/file/status", &[]),
    get("/find", &["pattern"]),
    get("/find/file", &["query", "dirs", "type", "limit"]),
    get("/find/symbol", &["query"]),
    get("/formatter", &[]),
    get("/global/health", &[]),
    get("/lsp", &[]),
    get("/mcp", &[]),
    get("/path", &[]),
    get("/permission", &[]),
    get("/project/current", &[]),
    get("/question", &[]),
    Operation { lists: Lists::Project, ..get("/session", &["roots", "start", "search", "limit"]) },
    get("/session/status", &[]),
    get("/session/{sessionID}", &[]),
    get("/session/{sessionID}/children", &[]),
    get("/session/{sessionID}/diff", &["messageID"]),
    get("/session/{sessionID}/message", &["limit", "before"]),
    get("/session/{sessionID}/message/{messageID}", &[]),
    get("/session/{sessionID}/todo", &[]),
    get("/skill", &[]),
    get("/vcs", &[]),
    post("/log", Body::Fields(&["service", "level", "message", "extra"])),
    post("/session/{sessionID}/abort", Body::Nothing),
    post("/session/{sessionID}/message", Body::Prompt),
    post("/session/{sessionID}/prompt_async", Body::Prompt),
    post("/session/{sessionID}/summarize", Body::Summary),
    post("/tui/append-prompt", Body::Fields(&["text"])),
    post("/tui/clear-prompt", Body::Nothing),
    post("/tui/show-toast", Body::Fields(&["title", "message", "variant", "duration"])),
];

/// Adds the directory of the plugin to a request that names no directory.
pub(crate) fn complete(request: &mut ApiRequest, directory: &str) {
    let names_one = request.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case(DIRECTORY));
    let query = request.path.split_once('?').map_or("", |(_, query)| query);
    if !names_one && !query.split('&').any(|pair| pair.starts_with("directory=")) {
        request.headers.push((DIRECTORY.to_owned(), encoded(directory)));
    }
}

/// A request of a plugin of a repository as the server receives it.
#[derive(Debug)]
pub(crate) struct Restricted {
    pub(crate) request: ApiRequest,
    /// The session that it is about. The caller checks its directory.
    pub(crate) session: Option<SessionId>,
    /// Whose content it returns. The caller checks the rules for `read`.
    pub(crate) reads: Reads,
}

/// The files whose content the answer to a request has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Reads {
    Nothing,
    /// This file.
    File(String),
    /// All files of the directory.
    Everything,
}

/// Restricts a request of a plugin of a repository to its directory and to the allowed part of the API.
///
/// # Errors
///
/// Fails with the reason if the plugin may not make it.
pub(crate) fn restrict(request: &ApiRequest, directory: &str) -> Result<Restricted, String> {
    let target = request.path.split('#').next().unwrap_or_default();
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let refused = || format!("a plugin of a repository cannot use {} {path}", request.method);
    let segments: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
    let fitting =
        OPERATIONS.iter().filter(|operation| operation.method.eq_ignore_ascii_case(&request.method));
    // A fixed name takes precedence over an id, as for the server.
    let parsed = fitting.filter_map(|operation| Some((operation, parse_path(operation.path, &segments)?)));
    let (operation, Parsed { mut path, session }) =
        parsed.min_by_key(|(operation, _)| operation.path.matches('{').count()).ok_or_else(refused)?;
    let mut pairs = parse_query(operation, query)?;
    let reads = match operation.path {
        "/file/content" => {
            let path = pairs.iter().find(|(key, _)| key == "path").map(|(_, path)| path.clone());
            Reads::File(path.unwrap_or_default())
        }
        "/find" => Reads::Everything,
        _ => Reads::Nothing,
    };
    if operation.lists == Lists::Project {
        pairs.push(("directory".to_owned(), directory.to_owned()));
    }
    if !pairs.is_empty() {
        let query = form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish();
        path = format!("{path}?{query}");
    }
    let body = parse_body(operation.body, &request.body)?;
    let mut headers = vec![(DIRECTORY.to_owned(), encoded(directory))];
    if !body.is_empty() {
        headers.push(("content-type".to_owned(), "application/json".to_owned()));
    }
    let others = request.headers.iter().map(|(name, value)| (name.to_ascii_lowercase(), value.clone()));
    headers.extend(others.filter(|(name, _)| HEADERS.contains(&name.as_str())));
    let request = ApiRequest { method: operation.method.to_owned(), path, headers, body };
    Ok(Restricted { request, session, reads })
}

/// A path with its ids.
struct Parsed {
    path: String,
    session: Option<SessionId>,
}

/// Returns the path that the segments mean, if it is that of a template.
fn parse_path(template: &str, segments: &[&str]) -> Option<Parsed> {
    let names: Vec<&str> = template.split('/').filter(|name| !name.is_empty()).collect();
    if names.len() != segments.len() {
        return None;
    }
    let mut parsed = Parsed { path: String::new(), session: None };
    for (name, segment) in names.into_iter().zip(segments) {
        let value = match name {
            SESSION => {
                let id = SessionId::parse(segment).ok()?;
                parsed.session.insert(id).as_str()
            }
            MESSAGE => MessageId::parse(segment).ok().map(|_| *segment)?,
            name if name == *segment => name,
            _ => return None,
        };
        parsed.path.push('/');
        parsed.path.push_str(value);
    }
    Some(parsed)
}

/// Returns the parts of a query that the operation uses. Others are left out.
fn parse_query(operation: &Operation, query: &str) -> Result<Vec<(String, String)>, String> {
    let mut pairs: Vec<(String, String)> = Vec::new();
    for (key, value) in form_urlencoded::parse(query.as_bytes()) {
        if !operation.query.contains(&&*key) {
            continue;
        }
        if pairs.iter().any(|(known, _)| *known == key) {
            return Err(format!("`{key}` occurs twice in a query"));
        }
        pairs.push((key.into_owned(), value.into_owned()));
    }
    Ok(pairs)
}

/// Returns the body that the server receives, written from the values that were checked.
fn parse_body(kind: Body, body: &[u8]) -> Result<Vec<u8>, String> {
    let parsed: Value = match kind {
        Body::Nothing => return Ok(Vec::new()),
        _ if body.is_empty() => Value::Object(Map::new()),
        // Of a key that occurs twice only one remains.
        Body::Fields(_) | Body::Prompt | Body::Summary => {
            serde_json::from_slice(body).map_err(|_| "the body is not JSON".to_owned())?
        }
    };
    match kind {
        Body::Nothing => Ok(Vec::new()),
        Body::Fields(keys) => {
            let Value::Object(fields) = parsed else { return Err("the body is not an object".to_owned()) };
            let kept = fields.into_iter().filter(|(key, _)| keys.contains(&key.as_str()));
            Ok(Value::Object(kept.collect()).to_string().into_bytes())
        }
        Body::Prompt => {
            let input = typed::<PromptBody>(parsed)?.input().ok_or("the prompt has no `parts`")?;
            check_prompt(&input)?;
            written(&input)
        }
        Body::Summary => written(&typed::<SummarizeInput>(parsed)?),
    }
}

fn typed<T: DeserializeOwned>(value: Value) -> Result<T, String> {
    serde_json::from_value(value).map_err(|error| format!("the body is invalid: {error}"))
}

fn written(value: &impl serde::Serialize) -> Result<Vec<u8>, String> {
    serde_json::to_vec(value).map_err(|error| format!("the body cannot be written: {error}"))
}

/// Checks what a prompt contains.
fn check_prompt(input: &PromptInput) -> Result<(), String> {
    // The tools of a prompt become permission rules.
    if input.tools.is_some() {
        return Err("a plugin of a repository cannot choose the tools of a prompt".to_owned());
    }
    // The server reads attached files and resources with the rights of the user.
    let is_content = |part: &PartInput| match part {
        PartInput::Text { .. } => true,
        PartInput::File { url, source: None, .. } => matches!(Address::parse(url), Ok(Address::Data(_))),
        PartInput::File { .. } | PartInput::Agent { .. } | PartInput::Subtask { .. } => false,
    };
    if input.parts.iter().all(is_content) {
        return Ok(());
    }
    Err("a plugin of a repository can only send text and `data:` files in a prompt".to_owned())
}

/// Encodes a path for a header, which contains only ASCII.
fn encoded(path: &str) -> String {
    percent_encoding::utf8_percent_encode(path, percent_encoding::NON_ALPHANUMERIC).to_string()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn request(method: &str, path: &str, body: &str) -> ApiRequest {
        ApiRequest {
            method: method.to_owned(),
            path: path.to_owned(),
            headers: Vec::new(),
            body: body.as_bytes().to_vec(),
        }
    }

    fn prompt(body: &str) -> Result<Value, String> {
        let restricted = restrict(&request("POST", "/session/ses_1/message", body), "/own")?;
        Ok(serde_json::from_slice(&restricted.request.body).unwrap())
    }

    #[test]
    fn a_request_of_a_repository_stays_in_its_directory() {
        let mut asked = request(
            "GET",
            "/session/ses_1/message?directory=%2Fetc&limit=1&%64irectory=x&location%5Bdirectory%5D=%2F&workspace=w",
            "",
        );
        asked.headers = vec![
            ("X-OpenCode-Directory".to_owned(), "/etc".to_owned()),
            ("Accept".to_owned(), "a".to_owned()),
            ("Authorization".to_owned(), "x".to_owned()),
        ];
        let restricted = restrict(&asked, "/own").unwrap();
        assert_eq!(restricted.request.path, "/session/ses_1/message?limit=1");
        let headers = [(DIRECTORY.to_owned(), "%2Fown".to_owned()), ("accept".to_owned(), "a".to_owned())];
        assert_eq!(restricted.request.headers, headers);
        assert_eq!(restricted.session, SessionId::parse("ses_1").ok());
        let listed = restrict(&request("GET", "/session?scope=project&path=x&limit=2", ""), "/o n").unwrap();
        assert_eq!(listed.request.path, "/session?limit=2&directory=%2Fo+n");
        assert!(restrict(&request("GET", "/find?pattern=a&%70attern=b", ""), "/own").is_err());
    }

    #[test]
    fn a_prompt_of_a_repository_reads_no_files() {
        for (body, is_allowed) in [
            (r#"{"parts": [{"type": "text", "text": "x"}], "noReply": true}"#, true),
            (r#"{"content": "x"}"#, true),
            (r#"{"content": [{"type": "text", "text": "x"}]}"#, true),
            (
                r#"{"parts": [{"type": "file", "mime": "image/png", "url": "data:image/png;base64,AA=="}]}"#,
                true,
            ),
            (r#"{"parts": [{"type": "file", "mime": "image/png", "url": "file:///home/a/.ssh/id"}]}"#, false),
            (
                r#"{"content": [{"type": "file", "mime": "text/plain", "url": "file:///home/a/.ssh/id"}]}"#,
                false,
            ),
            (r#"{"content": [{"type": "file", "mime": "text/plain", "url": " File:/home/a"}]}"#, false),
            (r#"{"parts": [{"type": "file", "mime": "text/plain", "url": "/home/a/.ssh/id"}]}"#, false),
            (
                r#"{"parts": [{"type": "file", "mime": "text/plain", "url": "data:,x", "source": {"type": "resource"}}]}"#,
                false,
            ),
            (r#"{"parts": [{"type": "subtask", "prompt": "x", "description": "d", "agent": "a"}]}"#, false),
            (r#"{"parts": [{"type": "agent", "name": "x"}]}"#, false),
            (r#"{"parts": [{"text": "x"}]}"#, false),
            (r#"{"parts": [], "tools": {"bash": true}}"#, false),
            ("parts", false),
            ("[]", false),
            ("{}", false),
        ] {
            assert_eq!(prompt(body).is_ok(), is_allowed, "{body}");
        }
    }

    #[test]
    fn the_server_receives_what_was_checked_and_nothing_else() {
        let body = r#"{"parts": [{"type": "agent"}], "parts": [], "content": [{"type": "agent", "name": "x"}],
            "other": 1, "system": "s"}"#;
        assert_eq!(prompt(body), Ok(json!({"parts": [], "system": "s"})));
        let toast = request("POST", "/tui/show-toast", r#"{"message": "m", "variant": "info", "x": 1}"#);
        let toast = restrict(&toast, "/own").unwrap().request;
        assert_eq!(toast.body, br#"{"message":"m","variant":"info"}"#);
        let read = restrict(&request("GET", "/session", "{\"a\": 1}"), "/own").unwrap().request;
        assert_eq!(read.body, b"");
    }

    #[test]
    fn only_listed_requests_are_allowed() {
        for (method, path, is_allowed) in [
            ("GET", "/session", true),
            ("GET", "/session?directory=%2Ftmp", true),
            ("get", "/session/ses_1/message/msg_1", true),
            ("GET", "/session/status", true),
            ("POST", "/session/ses_1/abort", true),
            ("GET", "//session/ses_1/", true),
            ("GET", "/session/ses_1#/../../config", true),
            ("GET", "/session/x", false),
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
            ("GET", "/session/ses_1%2F..%2F..%2Fpty", false),
            ("GET", "/session/../config", false),
            ("GET", "/session\\..\\config", false),
            ("POST", "/mcp", false),
        ] {
            assert_eq!(restrict(&request(method, path, ""), "/own").is_ok(), is_allowed, "{method} {path}");
        }
    }

    proptest! {
        /// Whatever a plugin writes, the server receives the path of an operation with plain ids, and each key once.
        #[test]
        fn the_server_receives_a_path_of_the_table(
            path in "(/session|/file|/find|/config|/pty)?(/|//|/\\.\\./|%2f|\\\\|#|\\?|ses_1|ses_a%20|msg_1|/message|/content|/status|path=|directory=|%64irectory=|location\\[directory\\]=|&|\u{e4}|\\.){0,10}",
        ) {
            let Ok(Restricted { request, session, .. }) = restrict(&request("GET", &path, ""), "/own") else {
                return Ok(());
            };
            let (own, query) = request.path.split_once('?').unwrap_or((&request.path, ""));
            prop_assert!(!own.contains(['%', '\\', '#', '.']) && !own.contains("//"), "{}", own);
            let again: Vec<&str> = own.split('/').filter(|part| !part.is_empty()).collect();
            prop_assert!(OPERATIONS.iter().any(|operation| parse_path(operation.path, &again).is_some()));
            prop_assert_eq!(session.is_some(), own.contains("ses_"));
            let mut keys: Vec<_> = form_urlencoded::parse(query.as_bytes()).map(|(key, _)| key).collect();
            let count = keys.len();
            keys.sort();
            keys.dedup();
            prop_assert_eq!(keys.len(), count);
            for (key, value) in form_urlencoded::parse(query.as_bytes()) {
                prop_assert!(key != "directory" || value == "/own");
                prop_assert!(!key.contains("location") && key != "workspace");
            }
        }
    }
}
