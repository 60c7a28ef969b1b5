//! Questions about code: definitions, references, symbols and calls.
//!
//! Answers are checked entry by entry: a path must be an absolute one of this machine, texts are cleaned and limited.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::{Instant, timeout, timeout_at};

use crate::client::Client;
use crate::diagnostic::{Position, Range};
use crate::error::{Failure, cut, cut_to};
use crate::report::lines;
use crate::servers::{Servers, read};
use crate::session::Session;
use crate::uri;

/// The time until a server is ready.
const READY_LIMIT: Duration = Duration::from_secs(30);
/// The time limit of a request.
const REQUEST_LIMIT: Duration = Duration::from_secs(20);
/// The time limit of a search for symbols in all servers.
const SYMBOLS_LIMIT: Duration = Duration::from_secs(5);
/// The entries of an answer that are shown.
const MAX_ENTRIES: usize = 100;
/// The symbols of a search.
const MAX_SYMBOLS: usize = 100;
/// The depth of symbols in symbols that is shown.
const MAX_DEPTH: usize = 8;
/// The longest text of a hover.
const MAX_HOVER_CHARS: usize = 20_000;
/// The longest name of a symbol.
const MAX_NAME_CHARS: usize = 200;

/// A kind of question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Operation {
    /// Where a name is defined.
    GoToDefinition,
    /// Where it is used.
    FindReferences,
    /// What it is.
    Hover,
    /// The names in a file.
    DocumentSymbol,
    /// The names in a project.
    WorkspaceSymbol,
    /// Where an interface is implemented.
    GoToImplementation,
    /// The function at a position.
    PrepareCallHierarchy,
    /// The callers of a function.
    IncomingCalls,
    /// The functions that a function calls.
    OutgoingCalls,
}

impl Operation {
    /// The method and the capability of a server that supports it.
    fn method(self) -> (&'static str, &'static str) {
        match self {
            Self::GoToDefinition => ("textDocument/definition", "definitionProvider"),
            Self::FindReferences => ("textDocument/references", "referencesProvider"),
            Self::Hover => ("textDocument/hover", "hoverProvider"),
            Self::DocumentSymbol => ("textDocument/documentSymbol", "documentSymbolProvider"),
            Self::WorkspaceSymbol => ("workspace/symbol", "workspaceSymbolProvider"),
            Self::GoToImplementation => ("textDocument/implementation", "implementationProvider"),
            Self::PrepareCallHierarchy | Self::IncomingCalls | Self::OutgoingCalls => {
                ("textDocument/prepareCallHierarchy", "callHierarchyProvider")
            }
        }
    }
}

/// A question.
#[derive(Debug, Clone)]
pub struct Query {
    /// Its kind.
    pub operation: Operation,
    /// The file.
    pub path: PathBuf,
    /// The line, counted from 1.
    pub line: u32,
    /// The character in the line, counted from 1.
    pub character: u32,
    /// The name for a search in the project.
    pub name: String,
}

/// The answer to a question.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Answer {
    /// Lines for the model. Empty if nothing was found.
    pub text: String,
    /// The entries in the form of the protocol.
    pub entries: Vec<Value>,
}

impl Servers {
    /// Returns the diagnostics of a file, after its servers have seen its text.
    ///
    /// # Errors
    ///
    /// Fails with a sentence if no server can answer.
    pub async fn diagnose(&self, path: &Path) -> Result<Answer, String> {
        let (path, text, clients) = self.read_with_clients(path).await?;
        let mut failure = None;
        let mut is_answered = false;
        for client in clients {
            let number = client.announce(&path);
            let id = &client.spec.id;
            match timeout(READY_LIMIT, client.diagnose(&path, &text, number)).await {
                Ok(Ok(())) => is_answered = true,
                Ok(Err(reason)) => failure = Some(format!("The language server `{id}` failed. {reason}")),
                Err(_) => failure = Some(format!("The language server `{id}` sent no diagnostics in time.")),
            }
        }
        let list = self.diagnostics().remove(&path).unwrap_or_default();
        match failure {
            Some(failure) if !is_answered => Err(failure),
            Some(_) | None => {
                let entries = list.iter().take(MAX_ENTRIES).filter_map(|one| serde_json::to_value(one).ok());
                Ok(Answer { text: lines(&list, MAX_ENTRIES), entries: entries.collect() })
            }
        }
    }

    /// Reads a file and finds its servers.
    async fn read_with_clients(&self, path: &Path) -> Result<(PathBuf, String, Vec<Arc<Client>>), String> {
        let shown = path.display();
        let Some((path, text)) = read(path.to_owned()).await else {
            return Err(format!("`{shown}` is not a file of at most 2 MiB."));
        };
        let clients = self.clients(&path).await;
        if clients.is_empty() {
            let missing = self.statuses().into_iter().find(|status| status.error.is_some());
            let reason = missing.filter(|_| self.suits(&path)).and_then(|status| status.error);
            return Err(reason.unwrap_or_else(|| format!("No language server is set up for `{shown}`.")));
        }
        Ok((path, text, clients))
    }

    /// Asks the servers of a file. The first one that knows something answers.
    ///
    /// # Errors
    ///
    /// Fails with a sentence if no server can answer.
    pub async fn query(&self, query: &Query) -> Result<Answer, String> {
        let (path, text, clients) = self.read_with_clients(&query.path).await?;
        let mut failure = None;
        let mut is_answered = false;
        for client in clients {
            let session = match timeout(READY_LIMIT, client.session()).await {
                Ok(Ok(session)) => session,
                Ok(Err(reason)) => {
                    failure = Some(format!("The language server `{}` failed. {reason}", client.spec.id));
                    continue;
                }
                Err(_) => {
                    failure = Some(format!("The language server `{}` is still starting.", client.spec.id));
                    continue;
                }
            };
            let (method, capability) = query.operation.method();
            if !session.can(capability) {
                failure =
                    Some(format!("The language server `{}` does not support `{method}`.", client.spec.id));
                continue;
            }
            session.put(&path, &text);
            match ask(&session, query, &path).await {
                Ok(result) => {
                    is_answered = true;
                    let answer = shown_answer(query.operation, &result, &path, self.root());
                    if !answer.text.is_empty() {
                        return Ok(answer);
                    }
                }
                Err(reason) => {
                    failure = Some(format!("The language server `{}` failed. {reason}", client.spec.id));
                }
            }
        }
        match failure.filter(|_| !is_answered) {
            Some(failure) => Err(failure),
            None => Ok(Answer::default()),
        }
    }

    /// Searches the symbols of all running servers by name.
    pub async fn symbols(&self, name: &str) -> Vec<Value> {
        let deadline = Instant::now() + SYMBOLS_LIMIT;
        let mut symbols = Vec::new();
        for client in self.running() {
            let Ok(Ok(session)) = timeout_at(deadline, client.session()).await else { continue };
            if !session.can("workspaceSymbolProvider") {
                continue;
            }
            let params = json!({ "query": name });
            let asking = session.connection.request("workspace/symbol", &params, REQUEST_LIMIT);
            let Ok(Ok(answer)) = timeout_at(deadline, asking).await else { continue };
            let answer: Value = serde_json::from_str(answer.get()).unwrap_or_default();
            let found = answer.as_array().into_iter().flatten().filter_map(symbol);
            symbols.extend(found.take(MAX_SYMBOLS.saturating_sub(symbols.len())));
        }
        symbols
    }
}

/// Sends a question to a server.
async fn ask(session: &Session, query: &Query, path: &Path) -> Result<Value, Failure> {
    let (line, column) = (query.line.saturating_sub(1), query.character.saturating_sub(1));
    let character = session.documents().column(path, line, column);
    let document = json!({"uri": uri::of(path)});
    let position = json!({"line": line, "character": character});
    let params = match query.operation {
        Operation::DocumentSymbol => json!({ "textDocument": document }),
        Operation::WorkspaceSymbol => json!({ "query": query.name }),
        Operation::FindReferences => {
            json!({"textDocument": document, "position": position, "context": {"includeDeclaration": true}})
        }
        Operation::GoToDefinition
        | Operation::Hover
        | Operation::GoToImplementation
        | Operation::PrepareCallHierarchy
        | Operation::IncomingCalls
        | Operation::OutgoingCalls => json!({"textDocument": document, "position": position}),
    };
    let found = request(session, query.operation.method().0, &params).await?;
    let calls = match query.operation {
        Operation::IncomingCalls => "callHierarchy/incomingCalls",
        Operation::OutgoingCalls => "callHierarchy/outgoingCalls",
        Operation::GoToDefinition
        | Operation::FindReferences
        | Operation::Hover
        | Operation::DocumentSymbol
        | Operation::WorkspaceSymbol
        | Operation::GoToImplementation
        | Operation::PrepareCallHierarchy => return Ok(found),
    };
    match found.get(0) {
        Some(item) => request(session, calls, &json!({ "item": item })).await,
        None => Ok(Value::Null),
    }
}

async fn request(session: &Session, method: &str, params: &Value) -> Result<Value, Failure> {
    let answer = session.connection.request(method, params, REQUEST_LIMIT).await?;
    serde_json::from_str(answer.get())
        .map_err(|error| Failure::Failed(cut(&format!("The server's answer is damaged: {error}."))))
}

/// The text and the entries of a result.
fn shown_answer(operation: Operation, result: &Value, path: &Path, root: &Path) -> Answer {
    if operation == Operation::Hover {
        let text = hover(&result["contents"]);
        let entries = if text.is_empty() { Vec::new() } else { vec![json!({ "contents": text })] };
        return Answer { text, entries };
    }
    let list = match result {
        Value::Array(list) => list.as_slice(),
        Value::Object(_) => std::slice::from_ref(result),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => &[],
    };
    let mut lines = Lines { root, text: String::new(), entries: Vec::new(), count: 0 };
    for entry in list {
        match operation {
            Operation::DocumentSymbol => lines.nested(entry, path, 0),
            Operation::IncomingCalls => lines.symbol(&entry["from"]),
            Operation::OutgoingCalls => lines.symbol(&entry["to"]),
            Operation::WorkspaceSymbol | Operation::PrepareCallHierarchy => lines.symbol(entry),
            Operation::GoToDefinition | Operation::FindReferences | Operation::GoToImplementation => {
                lines.location(entry);
            }
            Operation::Hover => {}
        }
    }
    if lines.count > MAX_ENTRIES {
        lines.text.push_str(&format!("... and {} more\n", lines.count - MAX_ENTRIES));
    }
    Answer { text: lines.text.trim_end().to_owned(), entries: lines.entries }
}

/// The lines of an answer.
struct Lines<'a> {
    root: &'a Path,
    text: String,
    entries: Vec<Value>,
    count: usize,
}

impl Lines<'_> {
    fn add(&mut self, line: &str, entry: Value) {
        self.count += 1;
        if self.count <= MAX_ENTRIES {
            self.text.push_str(line);
            self.text.push('\n');
            self.entries.push(entry);
        }
    }

    /// A location, or a link to one.
    fn location(&mut self, entry: &Value) {
        let uri = entry["uri"].as_str().or_else(|| entry["targetUri"].as_str()).unwrap_or_default();
        let Some(path) = uri::path(uri) else { return };
        let range = [&entry["range"], &entry["targetSelectionRange"], &entry["targetRange"]];
        let range = range.into_iter().find(|range| range.is_object()).map(range_of).unwrap_or_default();
        let line = self.place(&path, range.start);
        self.add(&line, json!({"uri": uri::of(&path), "range": range}));
    }

    /// A symbol with its place.
    fn symbol(&mut self, entry: &Value) {
        let location = &entry["location"];
        let uri = entry["uri"].as_str().or_else(|| location["uri"].as_str()).unwrap_or_default();
        let (Some(path), Some(name)) = (uri::path(uri), name(entry)) else { return };
        let range = [&entry["selectionRange"], &location["range"], &entry["range"]];
        let range = range.into_iter().find(|range| range.is_object()).map(range_of).unwrap_or_default();
        let kind = entry["kind"].as_u64().unwrap_or(0);
        let line = format!("{} {name}  {}", kind_name(kind), self.place(&path, range.start));
        let location = json!({"uri": uri::of(&path), "range": range});
        self.add(&line, json!({"name": name, "kind": kind, "location": location}));
    }

    /// A symbol of a file, with those that it contains.
    fn nested(&mut self, entry: &Value, path: &Path, depth: usize) {
        let Some(name) = name(entry) else { return };
        let range = [&entry["selectionRange"], &entry["location"]["range"], &entry["range"]];
        let range = range.into_iter().find(|range| range.is_object()).map(range_of).unwrap_or_default();
        let kind = entry["kind"].as_u64().unwrap_or(0);
        let line = format!("{}{} {name}  line {}", "  ".repeat(depth), kind_name(kind), range.start.line + 1);
        self.add(
            &line,
            json!({"name": name, "kind": kind, "location": {"uri": uri::of(path), "range": range}}),
        );
        if depth < MAX_DEPTH {
            for child in entry["children"].as_array().into_iter().flatten() {
                self.nested(child, path, depth + 1);
            }
        }
    }

    fn place(&self, path: &Path, start: Position) -> String {
        let shown = path.strip_prefix(self.root).unwrap_or(path);
        let (line, column) = (start.line.saturating_add(1), start.character.saturating_add(1));
        format!("{}:{line}:{column}", shown.display())
    }
}

fn range_of(value: &Value) -> Range {
    Range::deserialize(value).unwrap_or_default()
}

fn name(entry: &Value) -> Option<String> {
    let name = cut_to(entry["name"].as_str()?, MAX_NAME_CHARS);
    (!name.is_empty()).then_some(name)
}

/// A symbol of a search for clients.
fn symbol(entry: &Value) -> Option<Value> {
    let path = uri::path(entry["location"]["uri"].as_str()?)?;
    let range = range_of(&entry["location"]["range"]);
    let kind = entry["kind"].as_u64().unwrap_or(0);
    let location = json!({"uri": uri::of(&path), "range": range});
    Some(json!({"name": name(entry)?, "kind": kind, "location": location}))
}

/// The text of a hover in any of its forms.
fn hover(contents: &Value) -> String {
    let text = match contents {
        Value::String(text) => text.clone(),
        Value::Object(content) => content.get("value").and_then(Value::as_str).unwrap_or_default().to_owned(),
        Value::Array(list) => list.iter().map(hover).collect::<Vec<_>>().join("\n\n"),
        Value::Null | Value::Bool(_) | Value::Number(_) => String::new(),
    };
    let lines = text.split('\n').map(|line| cut_to(line, MAX_HOVER_CHARS)).collect::<Vec<_>>().join("\n");
    lines.chars().take(MAX_HOVER_CHARS).collect::<String>().trim().to_owned()
}

/// The name of a symbol's kind.
fn kind_name(kind: u64) -> &'static str {
    const NAMES: [&str; 27] = [
        "symbol",
        "file",
        "module",
        "namespace",
        "package",
        "class",
        "method",
        "property",
        "field",
        "constructor",
        "enum",
        "interface",
        "function",
        "variable",
        "constant",
        "string",
        "number",
        "boolean",
        "array",
        "object",
        "key",
        "null",
        "variant",
        "struct",
        "event",
        "operator",
        "type",
    ];
    usize::try_from(kind).ok().and_then(|kind| NAMES.get(kind)).copied().unwrap_or("symbol")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_that_are_not_locations_are_ignored() {
        let at = json!({"start": {"line": 1, "character": 2}, "end": {"line": 1, "character": 3}});
        let result = json!([
            {"uri": "file:///p/a.rs", "range": at}, {"uri": "file:///etc/%1b[31m", "range": at}, {"uri": "http://x/"},
            7, {"targetUri": "file:///q", "targetRange": at}, {"uri": "file:///p/b.rs", "range": "x"}
        ]);
        let answer = shown_answer(Operation::FindReferences, &result, Path::new("/p/a.rs"), Path::new("/p"));
        assert_eq!(answer.text, "a.rs:2:3\n/q:2:3\nb.rs:1:1");
        assert_eq!(answer.entries.len(), 3);
    }

    #[test]
    fn symbols_are_indented_and_limited() {
        let child = json!({"name": "b\u{1b}", "kind": 6, "selectionRange": {"start": {"line": 4, "character": 0},
            "end": {"line": 4, "character": 0}}});
        let result = json!([{"name": "A", "kind": 5, "children": vec![child; 300]}]);
        let answer = shown_answer(Operation::DocumentSymbol, &result, Path::new("/p/a"), Path::new("/p"));
        assert!(answer.text.starts_with("class A  line 1\n  method b  line 5\n"), "{}", answer.text);
        assert!(answer.text.ends_with("... and 201 more"));
        assert_eq!(hover(&json!(["a\u{7}\nb", {"language": "x", "value": "c"}])), "a\nb\n\nc");
    }
}
