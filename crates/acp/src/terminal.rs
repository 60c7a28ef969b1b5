//! The output of a command as that of a terminal, for editors that show such output.
//!
//! The command runs here, in its sandbox. The protocol's own terminals run in the editor, where no sandbox and no
//! supervisor would hold them, so they are not used.

use std::path::Path;

use agent_client_protocol::v1::schema::{Meta, Terminal, ToolCall, ToolCallContent, ToolCallUpdate};
use codewright_proto::{ToolPart, ToolState};
use serde_json::{Value, json};

/// The mark of an output whose beginning is missing.
const CUT: &str = "...\n\n";
/// The end of the shown output by which its continuation is found.
const OVERLAP_BYTES: usize = 256;

/// Returns a new call with a terminal for its output.
pub(crate) fn announced(call: ToolCall, directory: &Path) -> ToolCall {
    let id = call.tool_call_id.0.to_string();
    let info = json!({ "terminal_id": id, "cwd": directory.to_string_lossy() });
    call.content(vec![content(&id)]).meta(Meta::from_iter([("terminal_info".to_owned(), info)]))
}

/// Returns an update with the output that the editor does not have yet. `shown` is the output that it has.
pub(crate) fn updated(mut update: ToolCallUpdate, tool: &ToolPart, shown: &mut String) -> ToolCallUpdate {
    let id = tool.call_id.as_str();
    update.fields.content = Some(vec![content(id)]);
    let (output, exit) = match &tool.state {
        ToolState::Pending { .. } => (None, None),
        ToolState::Running { metadata, .. } => (metadata.as_ref().and_then(|it| it.get("output")), None),
        ToolState::Completed { metadata, .. } => {
            let code = metadata.get("exit").cloned().unwrap_or(Value::Null);
            (metadata.get("output"), Some(json!({ "terminal_id": id, "exit_code": code, "signal": null })))
        }
        ToolState::Error { metadata, .. } => {
            let output = metadata.as_ref().and_then(|it| it.get("output"));
            (output, Some(json!({ "terminal_id": id, "exit_code": null, "signal": null })))
        }
    };
    let mut meta = Meta::new();
    let output = output.and_then(Value::as_str).unwrap_or_default();
    let new = continuation(shown, output);
    if !new.is_empty() {
        meta.insert("terminal_output".to_owned(), json!({ "terminal_id": id, "data": terminal_lines(new) }));
        output.clone_into(shown);
    }
    if let Some(exit) = exit {
        meta.insert("terminal_exit".to_owned(), exit);
    }
    if meta.is_empty() { update } else { update.meta(meta) }
}

fn content(id: &str) -> ToolCallContent {
    ToolCallContent::Terminal(Terminal::new(id.to_owned()))
}

/// A terminal moves to the first column only after a carriage return.
fn terminal_lines(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\n', "\r\n")
}

/// The part of an output that follows the shown one. An output contains only its end if it is long.
fn continuation<'a>(shown: &str, output: &'a str) -> &'a str {
    if let Some(new) = output.strip_prefix(shown) {
        return new;
    }
    let output = output.strip_prefix(CUT).unwrap_or(output);
    let shown = shown.strip_prefix(CUT).unwrap_or(shown);
    let end = &shown[shown.ceil_char_boundary(shown.len().saturating_sub(OVERLAP_BYTES))..];
    match output.rfind(end) {
        Some(at) if !end.is_empty() => &output[at + end.len()..],
        _ => output,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_new_output_is_sent() {
        let long = "x".repeat(500);
        let cut = format!("...\n\n{}tail\nnew", &long[..400]);
        for (shown, output, expected) in [
            ("", "a", "a"),
            ("a", "ab", "b"),
            ("a", "a", ""),
            (&format!("{long}tail\n"), &cut, "new"),
            ("something else", "...\n\nend", "end"),
        ] {
            assert_eq!(continuation(shown, output), expected, "{shown} {output}");
        }
    }
}
