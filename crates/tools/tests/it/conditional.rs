//! Tools that are only offered under conditions, and tools of older versions.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use codewright_tools::{SearchEngine, Sent, Web, WebAnswer, WebRequest};
use serde_json::{Value, json};
use url::Url;

use crate::project::Project;

#[tokio::test]
async fn several_edits_are_applied_in_order_or_not_at_all() {
    let project = Project::new();
    project.file("a.txt", "one\r\ntwo\r\nthree\r\n");
    let edits = |edits: Value| json!({"filePath": "a.txt", "edits": edits});
    let output = project
        .call(
            "multiedit",
            edits(json!([
                {"oldString": "one", "newString": "1\n1"},
                {"oldString": "1\n1\ntwo", "newString": "2"},
                {"oldString": "e", "newString": "E", "replaceAll": true},
            ])),
        )
        .await
        .expect("edited");
    assert_eq!((output.output.as_str(), output.title.as_str()), ("Edit applied successfully.", "a.txt"));
    assert_eq!(output.metadata["filediff"]["additions"], 2);
    assert_eq!(project.text("a.txt"), "2\r\nthrEE\r\n");
    let error = project
        .error(
            "multiedit",
            edits(json!([{"oldString": "2", "newString": "x"}, {"oldString": "nope", "newString": "y"}])),
        )
        .await;
    assert!(error.starts_with("Edit 2 of 2, so that none was made: Could not find oldString"), "{error}");
    assert_eq!(project.text("a.txt"), "2\r\nthrEE\r\n");
    let new = json!({"filePath": "new.txt", "edits": [
        {"oldString": "", "newString": "a\nb\n"}, {"oldString": "b", "newString": "c"},
    ]});
    project.call("multiedit", new).await.expect("made");
    assert_eq!(project.text("new.txt"), "a\nc\n");
    let asks =
        project.asks("multiedit", edits(json!([{"oldString": "2", "newString": "3"}]))).await.expect("asks");
    assert_eq!((asks[0].permission.as_str(), &asks[0].patterns), ("edit", &vec!["a.txt".to_owned()]));
    assert_eq!(project.error("multiedit", edits(json!([]))).await, "edits is empty");
}

#[tokio::test]
async fn a_directory_is_listed_as_a_tree() {
    let project = Project::new();
    for path in ["b.txt", "src/z.rs", "src/in/a.rs", "node_modules/x/i.js", "docs/skip.md", ".hidden"] {
        project.file(path, "");
    }
    let output = project.call("list", json!({"ignore": ["*.md"]})).await.expect("listed");
    assert_eq!(
        project.plain(&output.output),
        "$P/\n  src/\n    in/\n      a.rs\n    z.rs\n  .hidden\n  b.txt\n"
    );
    assert_eq!((&output.metadata["count"], &output.metadata["truncated"]), (&json!(4), &json!(false)));
    for n in 0..120 {
        project.file(&format!("many/{n:03}"), "");
    }
    let output = project.call("list", json!({"path": "many"})).await.expect("listed");
    assert!(output.output.contains("Only 100 files are shown"), "{}", output.output);
    assert_eq!(
        project.error("list", json!({"path": "b.txt"})).await,
        "list path must be a directory: $P/b.txt"
    );
    let asks = project.asks("list", json!({"path": "src"})).await.expect("asks");
    assert_eq!((asks[0].permission.as_str(), &asks[0].patterns), ("list", &vec!["src".to_owned()]));
}

#[tokio::test]
async fn the_todo_list_is_returned() {
    let mut project = Project::new();
    let empty = project.call("todoread", json!({})).await.expect("read");
    assert_eq!((empty.title.as_str(), empty.output.as_str()), ("0 todos", "[]"));
    let todo = json!({"content": "A", "status": "pending", "priority": "high"});
    project.cx.todos = vec![todo.clone()].into();
    let output = project.call("todoread", json!({})).await.expect("read");
    assert_eq!((output.title.as_str(), &output.metadata["todos"]), ("1 todos", &json!([todo])));
}

#[tokio::test]
async fn without_a_language_server_the_call_fails() {
    let project = Project::new();
    let input = json!({"operation": "hover", "filePath": "a.rs", "line": 1, "character": 1});
    let error = project.error("lsp", input).await;
    assert!(error.contains("there is no language server"), "{error}");
}

/// A search engine with a fixed response that records its requests.
struct Engine(&'static str, Mutex<Vec<WebRequest>>);

impl Web for Engine {
    fn has_proxy(&self, _url: &Url) -> bool {
        false
    }

    fn look_up<'a>(&'a self, _host: &'a str, port: u16) -> Sent<'a, Vec<SocketAddr>> {
        Box::pin(async move { Ok(vec![SocketAddr::new([127, 0, 0, 1].into(), port)]) })
    }

    fn send<'a>(&'a self, request: &'a WebRequest) -> Sent<'a, WebAnswer> {
        Box::pin(async move {
            self.1.lock().expect("lock").push(request.clone());
            Ok(WebAnswer { status: 200, body: self.0.into(), ..WebAnswer::default() })
        })
    }
}

#[tokio::test]
async fn searches_are_sent_to_the_engine() {
    let mut project = Project::new();
    let reply = "event: message\ndata: {\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"Title: A\\u001b[31m\"}]}}\n\n";
    let engine = Arc::new(Engine(reply, Mutex::default()));
    project.cx.web = engine.clone();
    project.cx.engine =
        SearchEngine { url: Some("http://127.0.0.1:1/mcp".to_owned()), key: Some("k".to_owned()) };
    let output =
        project.call("websearch", json!({"query": "rust", "numResults": 3})).await.expect("searched");
    assert_eq!((output.output.as_str(), output.title.as_str()), ("Title: A", "Web search: rust"));
    let output =
        project.call("codesearch", json!({"query": "tokio", "tokensNum": 2000})).await.expect("searched");
    assert_eq!(output.title, "Code search: tokio");
    let sent = engine.1.lock().expect("lock").clone();
    let body =
        |n: usize| serde_json::from_str::<Value>(sent[n].body.as_deref().expect("a body")).expect("JSON");
    assert_eq!(sent[0].url.as_str(), "http://127.0.0.1:1/mcp?exaApiKey=k");
    assert_eq!(body(0)["params"]["name"], "web_search_exa");
    assert_eq!(
        (&body(0)["params"]["arguments"]["numResults"], &body(0)["params"]["arguments"]["type"]),
        (&json!(3), &json!("auto"))
    );
    assert_eq!(
        body(1)["params"],
        json!({"name": "get_code_context_exa", "arguments": {"query": "tokio", "tokensNum": 2000}})
    );
    let asks = project.asks("websearch", json!({"query": "rust"})).await.expect("asks");
    assert_eq!((asks[0].permission.as_str(), &asks[0].patterns), ("websearch", &vec!["rust".to_owned()]));
    project.cx.web = Arc::new(Engine("{\"error\":{\"message\":\"no quota\"}}", Mutex::default()));
    assert_eq!(
        project.error("websearch", json!({"query": "rust"})).await,
        "The search engine refused: no quota"
    );
}
