//! Which files a call changed, as clients are told.

use codewright_proto::FileChange;
use codewright_tools::Output;
use serde_json::Value;

/// The files, in the order in which they were changed, and what happened to each.
pub(super) fn changed<'a>(tool: &str, output: &'a Output) -> Vec<(&'a str, FileChange)> {
    let fact = |key: &str| output.metadata.get(key);
    let text = |value: Option<&'a Value>| value.and_then(Value::as_str);
    match tool {
        "apply_patch" => {
            let files = fact("files").and_then(Value::as_array).into_iter().flatten();
            files.flat_map(|file| patched(file)).collect()
        }
        "edit" | "multiedit" => {
            let file = text(fact("filediff").and_then(|diff| diff.get("file")));
            file.map(|file| (file, FileChange::Change)).into_iter().collect()
        }
        "write" => {
            let was_there = fact("exists").is_some_and(|exists| exists == true);
            let event = if was_there { FileChange::Change } else { FileChange::Add };
            text(fact("filepath")).map(|file| (file, event)).into_iter().collect()
        }
        _ => Vec::new(),
    }
}

/// What a patch did to one file, which may have another name now.
fn patched(file: &Value) -> Vec<(&str, FileChange)> {
    let text = |key: &str| file.get(key).and_then(Value::as_str);
    let Some(path) = text("filePath") else { return Vec::new() };
    match (text("type"), text("movePath")) {
        (Some("add"), _) => vec![(path, FileChange::Add)],
        (Some("delete"), _) => vec![(path, FileChange::Unlink)],
        (_, Some(to)) => vec![(path, FileChange::Unlink), (to, FileChange::Add)],
        _ => vec![(path, FileChange::Change)],
    }
}
