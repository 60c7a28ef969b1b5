//! Stored parts as updates of an editor's session.

use std::path::{Path, PathBuf};

use agent_client_protocol::v1::schema::{
    ContentBlock, ContentChunk, Diff, Plan, PlanEntry, PlanEntryPriority, PlanEntryStatus, SessionUpdate,
    TextContent, ToolCall, ToolCallContent, ToolCallLocation, ToolCallStatus, ToolCallUpdate,
    ToolCallUpdateFields, ToolKind,
};
use codewright_proto::{FileAttachment, FileDiff, Map, Part, PartBody, Todo, ToolPart, ToolState};
use serde_json::{Value, json};

use crate::content;

/// The most text of one result that an editor gets as content. The whole result is the raw output.
const MAX_SHOWN_BYTES: usize = 256 << 10;

/// The most files that are shown as changed by the commands of a turn.
const MAX_CHANGED_FILES: usize = 100;

/// The category of a tool, by which editors choose a picture.
pub(crate) fn kind(tool: &str) -> ToolKind {
    match tool {
        "bash" => ToolKind::Execute,
        "edit" | "write" | "apply_patch" | "patch" | "multiedit" => ToolKind::Edit,
        "read" => ToolKind::Read,
        "grep" | "glob" | "list" | "codesearch" => ToolKind::Search,
        "webfetch" | "websearch" => ToolKind::Fetch,
        _ => ToolKind::Other,
    }
}

/// Text of the model.
pub(crate) fn message(id: &str, text: &str) -> SessionUpdate {
    SessionUpdate::AgentMessageChunk(chunk(id, ContentBlock::Text(TextContent::new(text))))
}

/// Reasoning of the model.
pub(crate) fn thought(id: &str, text: &str) -> SessionUpdate {
    SessionUpdate::AgentThoughtChunk(chunk(id, ContentBlock::Text(TextContent::new(text))))
}

fn chunk(id: &str, content: ContentBlock) -> ContentChunk {
    ContentChunk::new(content).message_id(id)
}

/// A part of a prompt.
pub(crate) fn user(part: &Part) -> Vec<SessionUpdate> {
    let id = part.message_id.as_str();
    content::blocks(part).into_iter().map(|block| SessionUpdate::UserMessageChunk(chunk(id, block))).collect()
}

/// A finished part of an answer, as it is replayed.
pub(crate) fn answer(part: &Part, directory: &Path) -> Vec<SessionUpdate> {
    match &part.body {
        PartBody::Text(text) if text.ignored != Some(true) && !text.text.is_empty() => {
            vec![message(part.message_id.as_str(), &text.text)]
        }
        PartBody::Reasoning { text, .. } if !text.is_empty() => vec![thought(part.id.as_str(), text)],
        PartBody::Tool(tool) => {
            let known = KnownCall::of(tool, directory);
            let call = call(tool, directory);
            vec![SessionUpdate::ToolCall(known.announcement()), SessionUpdate::ToolCallUpdate(call)]
        }
        _ => Vec::new(),
    }
}

/// What is known about a call before it ends.
#[derive(Debug, Clone)]
pub(crate) struct KnownCall {
    pub(crate) id: String,
    pub(crate) title: String,
    pub(crate) kind: ToolKind,
    pub(crate) locations: Vec<ToolCallLocation>,
    pub(crate) input: Value,
}

impl KnownCall {
    pub(crate) fn of(tool: &ToolPart, directory: &Path) -> Self {
        let (input, title) = match &tool.state {
            ToolState::Pending { .. } => (json!({}), None),
            ToolState::Running { input, .. } => (input.clone(), command_of(input)),
            ToolState::Completed { input, title, .. } => (input.clone(), Some(title.clone())),
            ToolState::Error { input, .. } => (input.clone(), command_of(input)),
        };
        let title = title.filter(|title| !title.is_empty()).unwrap_or_else(|| tool.tool.clone());
        let kind = kind(&tool.tool);
        let mut input = if input.is_object() { input } else { json!({ "input": input }) };
        let mut locations = locations(&input, directory);
        if kind == ToolKind::Execute {
            input["cwd"] = json!(directory.to_string_lossy());
            locations = vec![ToolCallLocation::new(directory)];
        }
        Self { id: tool.call_id.clone(), title, kind, locations, input }
    }

    /// The update that makes the call known to the editor.
    pub(crate) fn announcement(&self) -> ToolCall {
        ToolCall::new(self.id.clone(), self.title.clone())
            .kind(self.kind)
            .status(ToolCallStatus::Pending)
            .locations(self.locations.clone())
            .raw_input(self.input.clone())
    }

    fn fields(&self) -> ToolCallUpdateFields {
        ToolCallUpdateFields::new()
            .title(self.title.clone())
            .kind(self.kind)
            .locations(self.locations.clone())
            .raw_input(self.input.clone())
    }
}

/// The command of a shell call.
fn command_of(input: &Value) -> Option<String> {
    input.get("command").and_then(Value::as_str).map(str::to_owned)
}

/// The file of a call, and the line at which it reads.
pub(crate) fn locations(input: &Value, directory: &Path) -> Vec<ToolCallLocation> {
    let path = ["filePath", "filepath", "path"].iter().find_map(|key| input.get(key)?.as_str());
    let line = input.get("offset").and_then(Value::as_u64).and_then(|line| u32::try_from(line).ok());
    path.filter(|path| !path.is_empty())
        .map(|path| ToolCallLocation::new(directory.join(path)).line(line))
        .into_iter()
        .collect()
}

/// The state of a call that the editor knows.
pub(crate) fn call(tool: &ToolPart, directory: &Path) -> ToolCallUpdate {
    let known = KnownCall::of(tool, directory);
    let fields = match &tool.state {
        ToolState::Pending { .. } => known.fields().status(ToolCallStatus::Pending),
        ToolState::Running { metadata, .. } => {
            let shown = metadata.as_ref().and_then(|metadata| metadata.get("output")?.as_str());
            let content = shown.filter(|text| !text.is_empty()).map(|text| vec![shortened(text)]);
            known.fields().status(ToolCallStatus::InProgress).content(content)
        }
        ToolState::Completed { input, output, title, metadata, attachments, .. } => {
            let attachments = attachments.as_deref().unwrap_or_default();
            let done = Done { input, output, metadata, attachments };
            ToolCallUpdateFields::new()
                .status(ToolCallStatus::Completed)
                .title(title.clone())
                .content(result(&tool.tool, &done, directory))
                .raw_output(json!({ "output": output, "metadata": metadata }))
        }
        ToolState::Error { error, .. } => known
            .fields()
            .status(ToolCallStatus::Failed)
            .content(vec![shortened(error)])
            .raw_output(json!({ "error": error })),
    };
    ToolCallUpdate::new(tool.call_id.clone(), fields)
}

/// The result of a call.
struct Done<'a> {
    input: &'a Value,
    output: &'a str,
    metadata: &'a Map,
    attachments: &'a [FileAttachment],
}

/// What a call returned: its text, what it changed, and its pictures.
fn result(tool: &str, done: &Done<'_>, directory: &Path) -> Vec<ToolCallContent> {
    // The output of `read` is made for a model; the preview is the plain text.
    let preview = done.metadata.get("preview").and_then(Value::as_str);
    let text = if tool == "read" { preview.unwrap_or(done.output) } else { done.output };
    let mut content = vec![shortened(text)];
    let changes = changes(tool, done.input, done.metadata, directory);
    content.extend(changes.into_iter().map(ToolCallContent::Diff));
    content.extend(content::pictures(done.attachments).map(ToolCallContent::from));
    content
}

/// The changes that a call makes to a file, as far as its arguments or its result show them.
pub(crate) fn changes(tool: &str, input: &Value, metadata: &Map, directory: &Path) -> Vec<Diff> {
    let text = |value: &Value, key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
    let path = text(input, "filePath").map(|path| directory.join(path));
    match (tool, path) {
        ("edit", Some(path)) => diff(path, text(input, "oldString"), text(input, "newString")),
        ("multiedit", Some(path)) => {
            let edits = input.get("edits").and_then(Value::as_array);
            let edits = edits.into_iter().flatten();
            edits
                .flat_map(|edit| diff(path.clone(), text(edit, "oldString"), text(edit, "newString")))
                .collect()
        }
        ("write", Some(path)) if metadata.get("exists").and_then(Value::as_bool) == Some(false) => {
            diff(path, None, text(input, "content"))
        }
        _ => Vec::new(),
    }
}

/// The files whose changes a finished call shows.
pub(crate) fn edited(tool: &ToolPart, directory: &Path) -> Vec<PathBuf> {
    let ToolState::Completed { input, metadata, .. } = &tool.state else { return Vec::new() };
    let own = input.get("filePath").filter(|_| kind(&tool.tool) == ToolKind::Edit);
    let one = metadata.get("filediff").and_then(|diff| diff.get("file"));
    let several = metadata.get("files").and_then(Value::as_array).into_iter().flatten();
    let several = several.flat_map(|file| [file.get("filePath"), file.get("movePath")]).flatten();
    let paths = own.into_iter().chain(one).chain(several).filter_map(Value::as_str);
    paths.map(|path| directory.join(path)).collect()
}

/// Returns the file changes that commands of a turn made, in the form of a call that edits files, or `None` if no command
/// changed a file.
pub(crate) fn command_changes(
    message: &str,
    files: &[PathBuf],
    diffs: &[FileDiff],
) -> Option<(ToolCall, ToolCallUpdate)> {
    let mut room = MAX_SHOWN_BYTES;
    let (mut changes, mut lines, mut locations) = (Vec::new(), Vec::new(), Vec::new());
    let mut fragments = Vec::new();
    for path in files.iter().take(MAX_CHANGED_FILES) {
        // The names are relative to the worktree, so the longest one that fits is that of the file.
        let named = diffs.iter().filter(|diff| diff.file.as_ref().is_some_and(|file| path.ends_with(file)));
        let found = named.max_by_key(|diff| diff.file.as_ref().map(String::len));
        let Some((diff, patch)) = found.and_then(|diff| Some((diff, diff.patch.as_ref()?))) else { continue };
        locations.push(ToolCallLocation::new(path));
        lines.push(format!("{} +{} -{}", path.display(), diff.additions, diff.deletions));
        if patch.len() <= room {
            room -= patch.len();
            changes.push(json!({ "filePath": path, "patch": patch }));
            fragments.extend(hunks(path, patch).into_iter().map(ToolCallContent::Diff));
        }
    }
    if locations.is_empty() {
        return None;
    }
    let (id, title) = (format!("changes-{message}"), "Files changed by commands");
    let call = ToolCall::new(id.clone(), title)
        .kind(ToolKind::Edit)
        .status(ToolCallStatus::Pending)
        .locations(locations);
    let mut content = vec![shortened(&lines.join("\n"))];
    content.extend(fragments);
    let fields = ToolCallUpdateFields::new()
        .status(ToolCallStatus::Completed)
        .content(content)
        .raw_output(json!({ "output": "", "metadata": { "files": changes } }));
    Some((call, ToolCallUpdate::new(id, fields)))
}

/// The hunks of a unified diff, each as the replacement of a text by another.
fn hunks(path: &Path, patch: &str) -> Vec<Diff> {
    let mut hunks: Vec<(String, String)> = Vec::new();
    for line in patch.lines() {
        if line.starts_with("@@") {
            hunks.push((String::new(), String::new()));
        }
        let Some((old, new)) = hunks.last_mut() else { continue };
        let (sides, text): (&mut [&mut String], _) = match line.split_at_checked(1) {
            Some((" ", text)) => (&mut [old, new], text),
            Some(("-", text)) => (&mut [old], text),
            Some(("+", text)) => (&mut [new], text),
            _ => continue,
        };
        for side in sides {
            side.push_str(text);
            side.push('\n');
        }
    }
    let diff = |(old, new): (String, String)| Diff::new(path, new).old_text((!old.is_empty()).then_some(old));
    hunks.into_iter().map(diff).collect()
}

fn diff(path: PathBuf, old: Option<String>, new: Option<String>) -> Vec<Diff> {
    new.map(|new| Diff::new(path, new).old_text(old)).into_iter().collect()
}

/// Text as content, of which only the beginning and the end are kept if it is long.
fn shortened(text: &str) -> ToolCallContent {
    if text.len() <= MAX_SHOWN_BYTES {
        return shown(text);
    }
    let half = MAX_SHOWN_BYTES / 2;
    let head = &text[..text.floor_char_boundary(half)];
    let tail = &text[text.ceil_char_boundary(text.len() - half)..];
    let left_out = text.len() - head.len() - tail.len();
    shown(&format!("{head}\n[{left_out} bytes left out]\n{tail}"))
}

/// Text as content.
pub(crate) fn shown(text: &str) -> ToolCallContent {
    ToolCallContent::from(ContentBlock::Text(TextContent::new(text)))
}

/// The todo list of a session as the plan of the agent.
pub(crate) fn plan(todos: &[Todo]) -> SessionUpdate {
    let entry = |todo: &Todo| {
        let priority = match todo.priority.as_str() {
            "high" => PlanEntryPriority::High,
            "low" => PlanEntryPriority::Low,
            _ => PlanEntryPriority::Medium,
        };
        let status = match todo.status.as_str() {
            "in_progress" => PlanEntryStatus::InProgress,
            "completed" => PlanEntryStatus::Completed,
            _ => PlanEntryStatus::Pending,
        };
        PlanEntry::new(todo.content.clone(), priority, status)
    };
    SessionUpdate::Plan(Plan::new(
        todos.iter().filter(|todo| todo.status != "cancelled").map(entry).collect(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(file: &str, patch: &str) -> FileDiff {
        serde_json::from_value(json!({"file": file, "patch": patch, "additions": 1, "deletions": 1})).unwrap()
    }

    #[test]
    fn changes_by_commands_become_a_call_that_edits_files() {
        let patch = "--- a/x.txt\n+++ b/x.txt\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n@@ -9 +9 @@\n-y\n+z\n\\ No newline at end of file\n";
        let diffs = [changed("x.txt", "@@ -0,0 +1 @@\n+other\n"), changed("sub/x.txt", patch)];
        let files = ["/p/sub/x.txt", "/p/unknown.txt"].map(PathBuf::from);
        let (call, update) = command_changes("msg", &files, &diffs).unwrap();
        assert_eq!((call.kind, call.locations.len()), (ToolKind::Edit, 1));
        let shown = serde_json::to_value(&update).unwrap();
        assert_eq!(
            shown["rawOutput"]["metadata"]["files"],
            json!([{"filePath": "/p/sub/x.txt", "patch": patch}])
        );
        let diff = |old: &str, new: &str| json!({"type": "diff", "path": "/p/sub/x.txt", "oldText": old, "newText": new});
        assert_eq!(shown["content"][1], diff("a\nb\nc\n", "a\nB\nc\n"));
        assert_eq!(shown["content"][2], diff("y\n", "z\n"));
        assert_eq!(shown["content"][0]["content"]["text"], "/p/sub/x.txt +1 -1");
        assert!(command_changes("msg", &files[1..], &diffs).is_none());
    }
}
