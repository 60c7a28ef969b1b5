//! The tool calls of another agent as records of a session.
//!
//! The agent runs its tools itself and reports their states. Everything that it reports is limited and displayed as
//! text; nothing of it decides anything.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use codewright_acp_client::schema::{
    ContentBlock, Diff, EmbeddedResourceResource, ToolCall, ToolCallContent, ToolCallStatus, ToolCallUpdate,
    ToolKind,
};
use codewright_proto::{Map, Span, ToolSpan, ToolState};
use codewright_workspace::unified;
use serde_json::{Value, json};

use crate::run::recorder::CallUpdate;

/// The number of calls in one answer.
const MAX_CALLS: usize = 2000;
/// The most that running calls may report in total.
const MAX_OPEN_BYTES: usize = 64 << 20;
/// The longest title of a call.
const MAX_TITLE_CHARS: usize = 300;
/// The most text of one result. The middle of a longer one is left out.
const MAX_OUTPUT_BYTES: usize = 256 << 10;
/// The largest arguments and results that are kept as the agent sent them.
const MAX_RAW_BYTES: usize = 64 << 10;
/// The largest version of a file that is compared.
const MAX_COMPARED_BYTES: usize = 512 << 10;
/// The number of files of one call whose changes are shown.
const MAX_DIFFS: usize = 100;

/// The text of a terminal that the agent runs here.
pub(crate) type TerminalText<'a> = &'a dyn Fn(&str) -> Option<String>;

/// The calls of one answer.
#[derive(Default)]
pub(crate) struct Calls {
    agent: String,
    directory: PathBuf,
    calls: HashMap<String, Known>,
    /// The size of what running calls report.
    open_bytes: usize,
}

struct Known {
    /// The id of the call in the session. Agents may use an id again in later answers.
    id: String,
    call: ToolCall,
    start: u64,
    bytes: usize,
    is_closed: bool,
}

/// A change of a call.
pub(crate) struct Change {
    /// The id and the name of a new call.
    pub(crate) began: Option<(String, String)>,
    pub(crate) update: Option<CallUpdate>,
}

/// The agent made too many calls, or its calls report too much.
#[derive(Debug)]
pub(crate) struct TooManyCalls;

impl TooManyCalls {
    pub(crate) fn message(agent: &str) -> String {
        let limit = MAX_OPEN_BYTES >> 20;
        format!(
            "the agent `{agent}` made more than {MAX_CALLS} calls in one answer, or they reported more than {limit} MiB"
        )
    }
}

/// The time and the source of ids for changes.
pub(crate) struct Moment<'a> {
    pub(crate) now: u64,
    pub(crate) new_id: &'a dyn Fn() -> String,
    pub(crate) terminal: TerminalText<'a>,
}

impl Calls {
    pub(crate) fn new(agent: &str, directory: &Path) -> Self {
        let agent = agent.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' });
        Self {
            agent: agent.take(40).collect(),
            directory: directory.to_owned(),
            calls: HashMap::new(),
            open_bytes: 0,
        }
    }

    /// Returns the id in the session of a call of the agent.
    pub(crate) fn id(&self, of_agent: &str) -> Option<&str> {
        self.calls.get(of_agent).map(|known| known.id.as_str())
    }

    /// Returns what is known about a call.
    pub(crate) fn known(&self, of_agent: &str) -> Option<&ToolCall> {
        self.calls.get(of_agent).map(|known| &known.call)
    }

    /// Records a new call, or new values of a known one.
    pub(crate) fn announced(&mut self, call: ToolCall, at: &Moment<'_>) -> Result<Change, TooManyCalls> {
        let key = call.tool_call_id.0.to_string();
        if let Some(known) = self.calls.get_mut(&key) {
            known.call = call;
            return Ok(Change { began: None, update: self.state(&key, at)? });
        }
        if self.calls.len() >= MAX_CALLS {
            return Err(TooManyCalls);
        }
        let id = (at.new_id)();
        let name = tool_name(&self.agent, &call);
        let known = Known { id: id.clone(), call, start: at.now, bytes: 0, is_closed: false };
        self.calls.insert(key.clone(), known);
        Ok(Change { began: Some((id, name)), update: self.state(&key, at)? })
    }

    /// Records an update of a call, which may be its first mention.
    pub(crate) fn updated(
        &mut self,
        update: ToolCallUpdate,
        at: &Moment<'_>,
    ) -> Result<Change, TooManyCalls> {
        let key = update.tool_call_id.0.to_string();
        let Some(known) = self.calls.get_mut(&key) else {
            let mut call = ToolCall::new(update.tool_call_id, String::new());
            call.update(update.fields);
            return self.announced(call, at);
        };
        known.call.update(update.fields);
        Ok(Change { began: None, update: self.state(&key, at)? })
    }

    /// Returns the state of a call that has not ended before.
    fn state(&mut self, key: &str, at: &Moment<'_>) -> Result<Option<CallUpdate>, TooManyCalls> {
        let Some(known) = self.calls.get_mut(key) else { return Ok(None) };
        if known.is_closed {
            known.call = ToolCall::new(known.call.tool_call_id.clone(), String::new());
            return Ok(None);
        }
        let bytes = codewright_proto::json_bytes(&known.call);
        self.open_bytes = (self.open_bytes + bytes).saturating_sub(known.bytes);
        known.bytes = bytes;
        if self.open_bytes > MAX_OPEN_BYTES {
            return Err(TooManyCalls);
        }
        let tool = tool_name(&self.agent, &known.call);
        let shown = Shown::of(&tool, &known.call, &self.directory, at.terminal);
        known.is_closed = matches!(known.call.status, ToolCallStatus::Completed | ToolCallStatus::Failed);
        let span = || ToolSpan { start: known.start, end: at.now, compacted: None };
        let Shown { input, title, output, metadata } = shown;
        let state = match known.call.status {
            ToolCallStatus::Completed => {
                ToolState::Completed { input, output, title, metadata, time: span(), attachments: None }
            }
            ToolCallStatus::Failed => {
                let error =
                    if output.is_empty() { "The agent reports a failure.".to_owned() } else { output };
                ToolState::Error { input, error, metadata: Some(metadata), time: span() }
            }
            _ => {
                let time = Span { start: known.start, end: None };
                ToolState::Running { input, title: Some(title), metadata: Some(metadata), time }
            }
        };
        if known.is_closed {
            // What it reported is recorded.
            known.call = ToolCall::new(known.call.tool_call_id.clone(), String::new());
            self.open_bytes = self.open_bytes.saturating_sub(known.bytes);
        }
        Ok(Some(CallUpdate { call_id: known.id.clone(), tool, state, stored: None }))
    }
}

/// The name of a call's tool. Edits and commands have the names of our tools, because clients display those best.
fn tool_name(agent: &str, call: &ToolCall) -> String {
    match call.kind {
        ToolKind::Execute if command(call).is_some() => "bash".to_owned(),
        ToolKind::Edit if diffs(call).next().is_some() => "edit".to_owned(),
        kind => format!("{agent}_{}", kind_name(kind)),
    }
}

/// The name of a kind of calls.
pub(crate) fn kind_name(kind: ToolKind) -> &'static str {
    match kind {
        ToolKind::Read => "read",
        ToolKind::Edit => "edit",
        ToolKind::Delete => "delete",
        ToolKind::Move => "move",
        ToolKind::Search => "search",
        ToolKind::Execute => "execute",
        ToolKind::Think => "think",
        ToolKind::Fetch => "fetch",
        ToolKind::SwitchMode => "switch_mode",
        _ => "other",
    }
}

/// The command line of a call, if its arguments contain one.
pub(crate) fn command(call: &ToolCall) -> Option<String> {
    let written = call.raw_input.as_ref()?.get("command")?;
    let words = written.as_array().map(|words| words.iter().filter_map(Value::as_str).collect::<Vec<_>>());
    let text = words.map(|words| words.join(" ")).or_else(|| written.as_str().map(str::to_owned))?;
    (!text.trim().is_empty() && text.len() <= MAX_RAW_BYTES).then_some(text)
}

/// The changes of files that a call reports.
pub(crate) fn diffs(call: &ToolCall) -> impl Iterator<Item = &Diff> {
    call.content.iter().take(MAX_DIFFS).filter_map(|content| match content {
        ToolCallContent::Diff(diff) => Some(diff),
        _ => None,
    })
}

/// The displayed values of a call.
struct Shown {
    input: Value,
    title: String,
    output: String,
    metadata: Map,
}

impl Shown {
    fn of(tool: &str, call: &ToolCall, directory: &Path, terminal: TerminalText<'_>) -> Self {
        let mut input = call.raw_input.clone().filter(|input| input.is_object() && is_small(input));
        let title = line(&call.title);
        let title = if title.is_empty() { tool.to_owned() } else { title };
        let output = output(call, terminal);
        let mut metadata = Map::new();
        metadata.insert("truncated".to_owned(), json!(false));
        match tool {
            "bash" => {
                input = Some(json!({ "command": command(call), "description": title }));
                metadata.insert("output".to_owned(), json!(output));
            }
            "edit" => {
                let input = input.get_or_insert_with(|| json!({}));
                show_changes(call, directory, input, &mut metadata);
            }
            _ => {
                let path = call.locations.first().map(|location| shown_path(&location.path, directory));
                let input = input.get_or_insert_with(|| json!({}));
                if let Some(path) = path.filter(|_| input.as_object().is_some_and(Map::is_empty)) {
                    input["filePath"] = json!(path);
                }
            }
        }
        Self { input: input.unwrap_or_else(|| json!({})), title, output, metadata }
    }
}

/// Puts the changes of files into the metadata, in the form of the `edit` tool.
fn show_changes(call: &ToolCall, directory: &Path, input: &mut Value, metadata: &mut Map) {
    let mut patches = String::new();
    let mut files = Vec::new();
    for diff in diffs(call) {
        let name = shown_path(&diff.path, directory);
        let old = diff.old_text.as_deref().unwrap_or_default();
        let is_small = old.len() <= MAX_COMPARED_BYTES && diff.new_text.len() <= MAX_COMPARED_BYTES;
        if !is_small || patches.len() > MAX_OUTPUT_BYTES {
            files.push(json!({ "file": name, "patch": "", "additions": 0, "deletions": 0 }));
            continue;
        }
        let change = unified(&name, old, &diff.new_text);
        patches.push_str(&change.patch);
        files.push(json!({
            "file": name, "patch": change.patch, "additions": change.additions, "deletions": change.deletions,
        }));
    }
    if let Some(first) = files.first() {
        input["filePath"] = first["file"].clone();
        metadata.insert("filediff".to_owned(), first.clone());
    }
    metadata.insert("diff".to_owned(), json!(patches));
    metadata.insert("diagnostics".to_owned(), json!({}));
}

/// The result of a call as text.
fn output(call: &ToolCall, terminal: TerminalText<'_>) -> String {
    let texts = call.content.iter().filter_map(|content| match content {
        ToolCallContent::Content(content) => block_text(&content.content),
        ToolCallContent::Terminal(it) => terminal(&it.terminal_id.0),
        _ => None,
    });
    let mut text = texts.collect::<Vec<_>>().join("\n");
    if text.is_empty()
        && let Some(raw) = call.raw_output.as_ref().filter(|raw| is_small(raw))
    {
        text = raw.as_str().map_or_else(|| raw.to_string(), str::to_owned);
    }
    shortened(text)
}

/// A content block as text.
pub(crate) fn block_text(block: &ContentBlock) -> Option<String> {
    Some(match block {
        ContentBlock::Text(text) => text.text.clone(),
        ContentBlock::ResourceLink(link) => format!("[{}]({})", link.name, link.uri),
        ContentBlock::Resource(it) => match &it.resource {
            EmbeddedResourceResource::TextResourceContents(it) => it.text.clone(),
            EmbeddedResourceResource::BlobResourceContents(it) => format!("[{}]", it.uri),
            _ => return None,
        },
        ContentBlock::Image(_) => "[image]".to_owned(),
        ContentBlock::Audio(_) => "[audio]".to_owned(),
        _ => return None,
    })
}

/// Text without its middle, if it is long.
fn shortened(text: String) -> String {
    if text.len() <= MAX_OUTPUT_BYTES {
        return text;
    }
    let half = MAX_OUTPUT_BYTES / 2;
    let head = &text[..text.floor_char_boundary(half)];
    let tail = &text[text.ceil_char_boundary(text.len() - half)..];
    format!("{head}\n[{} bytes left out]\n{tail}", text.len() - head.len() - tail.len())
}

fn is_small(value: &Value) -> bool {
    codewright_proto::json_bytes(value) <= MAX_RAW_BYTES
}

/// Text of the agent as one line.
pub(crate) fn line(text: &str) -> String {
    let text = text.split(['\n', '\r']).map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    text.chars().filter(|c| !c.is_control()).take(MAX_TITLE_CHARS).collect()
}

fn shown_path(path: &Path, directory: &Path) -> String {
    let path = directory.join(path);
    path.to_string_lossy().chars().filter(|c| !c.is_control()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Scene(Calls);

    impl Scene {
        fn new() -> Self {
            Self(Calls::new("my agent!", Path::new("/w")))
        }

        fn moment<T>(&mut self, act: impl FnOnce(&mut Calls, &Moment<'_>) -> T) -> T {
            let new_id = || "call_new".to_owned();
            let terminal = |id: &str| (id == "t1").then(|| "from a terminal".to_owned());
            act(&mut self.0, &Moment { now: 5, new_id: &new_id, terminal: &terminal })
        }

        fn update(&mut self, value: Value) -> Change {
            let update = serde_json::from_value(value).expect("an update");
            self.moment(|calls, at| calls.updated(update, at)).expect("few calls")
        }
    }

    fn state(change: Change) -> (String, ToolState) {
        let update = change.update.expect("a state");
        (update.tool, update.state)
    }

    #[test]
    fn calls_have_names_that_clients_display() {
        for (call, expected) in [
            (json!({"kind": "execute", "rawInput": {"command": "ls"}}), "bash"),
            (json!({"kind": "execute", "rawInput": {"command": ["ls", "-l"]}}), "bash"),
            (json!({"kind": "execute"}), "my_agent__execute"),
            (json!({"kind": "edit", "content": [{"type": "diff", "path": "a", "newText": "x"}]}), "edit"),
            (json!({"kind": "edit"}), "my_agent__edit"),
            (json!({"kind": "read"}), "my_agent__read"),
            (json!({}), "my_agent__other"),
        ] {
            let mut update = call.clone();
            update["toolCallId"] = json!("1");
            assert_eq!(state(Scene::new().update(update)).0, expected, "{call}");
        }
    }

    #[test]
    fn an_edit_shows_its_diff_and_a_command_its_output() {
        let mut scene = Scene::new();
        let began = scene.update(json!({"toolCallId": "1", "kind": "edit", "title": "Edit\u{1b}[31m a\nb"}));
        assert_eq!(began.began, Some(("call_new".to_owned(), "my_agent__edit".to_owned())));
        let content = json!([{"type": "diff", "path": "a.txt", "oldText": "1\n", "newText": "2\n"}]);
        let done = scene.update(json!({"toolCallId": "1", "status": "completed", "content": content}));
        let (tool, ToolState::Completed { input, metadata, title, .. }) = state(done) else {
            panic!("a result")
        };
        assert_eq!((tool.as_str(), title.as_str()), ("edit", "Edit[31m a"));
        assert_eq!(input["filePath"], "/w/a.txt");
        assert!(metadata["diff"].as_str().unwrap().ends_with("-1\n+2\n"), "{metadata:?}");
        let command = json!({"toolCallId": "2", "kind": "execute", "rawInput": {"command": "ls"},
                             "status": "failed", "content": [{"type": "terminal", "terminalId": "t1"}]});
        let (_, ToolState::Error { error, .. }) = state(scene.update(command)) else { panic!("an error") };
        assert_eq!(error, "from a terminal");
        let late = scene.update(json!({"toolCallId": "2", "status": "in_progress"}));
        assert!(late.update.is_none(), "a call ends once");
    }

    #[test]
    fn what_an_agent_reports_is_limited() {
        let mut scene = Scene::new();
        let long = "x".repeat(MAX_OUTPUT_BYTES * 2);
        let call = json!({"toolCallId": "1", "status": "completed", "rawInput": {"a": long}, "title": long,
                          "content": [{"type": "content", "content": {"type": "text", "text": long}}]});
        let (_, ToolState::Completed { input, output, title, .. }) = state(scene.update(call)) else {
            panic!()
        };
        assert_eq!(input, json!({}));
        assert!(output.len() < MAX_OUTPUT_BYTES + 100 && title.len() == MAX_TITLE_CHARS);
        for number in 0..MAX_CALLS {
            let call = ToolCall::new(format!("n{number}"), "x");
            if scene.moment(|calls, at| calls.announced(call, at)).is_err() {
                assert_eq!(number, MAX_CALLS - 1);
                return;
            }
        }
        panic!("the calls are limited");
    }
}
