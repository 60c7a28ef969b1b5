//! Replaces a piece of a file.

mod replacer;

use std::path::Path;

use codewright_workspace::{Diff, Error, MAX_TEXT_BYTES, Place, TextFile, read_bytes, unified, write_atomic};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use self::replacer::{Miss, Wanted, locate};
use super::write::asks;
use crate::ask::file_patterns;
use crate::cx::settled;
use crate::effect::{FileEffect, missing_above};
use crate::{Ask, Output, Tool, ToolCx, ToolError, render};

const DESCRIPTION: &str = include_str!("edit.txt");
const UNCHANGED: &str = "No changes to apply: oldString and newString are identical.";

/// Replaces a piece of a file.
pub struct Edit;

/// The file, the piece and what takes its place.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Input {
    file_path: String,
    old_string: String,
    new_string: String,
    replace_all: Option<bool>,
}

impl Tool for Edit {
    const NAME: &'static str = "edit";
    type Input = Input;

    fn description(&self) -> String {
        let megabytes = (MAX_TEXT_BYTES / 1024 / 1024).to_string();
        render(DESCRIPTION, &[("megabytes", &megabytes)]).expect("a test renders every description")
    }

    fn parameters(&self) -> Value {
        json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "properties": {
                "filePath": {"type": "string", "description": "The file, absolute or relative to the project"},
                "oldString": {"type": "string", "description": "The piece as it is now"},
                "newString": {"type": "string", "description": "What takes its place; not the same as oldString"},
                "replaceAll": {"type": "boolean", "description": "Change every occurrence instead of the only one"},
            },
            "required": ["filePath", "oldString", "newString"],
        })
    }

    async fn asks(&self, input: &Input, cx: &ToolCx) -> Result<Vec<Ask>, ToolError> {
        let (inner, input) = (cx.clone(), input.clone());
        cx.reading(move || {
            let workspace = inner.workspace()?;
            let place = workspace.resolve(Path::new(&input.file_path))?;
            let change = change(&place, &input)?;
            Ok(asks(&place, file_patterns(&workspace, &place), &change.diff))
        })
        .await
    }

    async fn run(&self, input: Input, cx: &ToolCx) -> Result<Output, ToolError> {
        let workspace = cx.workspace()?;
        let place = workspace.resolve(Path::new(&input.file_path))?;
        let title = workspace.title(&place.path);
        let held = cx.locks.lock(&place.real, &cx.cancel).await?;
        let (progress, effects) = (cx.progress.clone(), cx.effects.clone());
        settled(move || {
            let _held = held;
            let change = change(&place, &input)?;
            let made = missing_above(&place.real);
            write_atomic(&place.real, change.content.as_bytes())?;
            let after = Some(change.content.into_bytes());
            effects.report(FileEffect { path: place.real.clone(), before: change.before, after, made });
            let metadata = facts(&place, &change.diff);
            progress.report(metadata.clone());
            let output = "Edit applied successfully.".to_owned();
            Ok(Output { title, output, metadata, ..Output::default() }.with("truncated", false))
        })
        .await
    }
}

fn facts(place: &Place, diff: &Diff) -> Map<String, Value> {
    let filediff = json!({
        "file": place.path.to_string_lossy(),
        "patch": diff.patch,
        "additions": diff.additions,
        "deletions": diff.deletions,
    });
    Map::from_iter([
        ("diagnostics".to_owned(), json!({})),
        ("diff".to_owned(), json!(diff.patch)),
        ("filediff".to_owned(), filediff),
    ])
}

/// What an edit would make of a file.
struct Change {
    /// What it held, to the byte.
    before: Option<Vec<u8>>,
    content: String,
    diff: Diff,
}

fn change(place: &Place, input: &Input) -> Result<Change, ToolError> {
    let tell = |message: &str| Err(ToolError::Model(message.to_owned()));
    if input.old_string == input.new_string {
        return tell(UNCHANGED);
    }
    let name = place.path.to_string_lossy();
    if place.real.is_dir() {
        return tell(&format!("Path is a directory, not a file: {name}"));
    }
    if !place.real.exists() {
        if !input.old_string.is_empty() {
            return tell(&format!("File {name} not found"));
        }
        let diff = unified(&name, "", &TextFile::parse(&input.new_string).text);
        return Ok(Change { before: None, content: input.new_string.clone(), diff });
    }
    if !place.real.is_file() {
        // Opening a pipe or a device could wait forever.
        return tell(&format!("Not a regular file: {name}"));
    }
    if input.old_string.is_empty() {
        return tell(
            "oldString cannot be empty when editing an existing file. Provide the exact text to replace, \
             or use write for an intentional full-file replacement.",
        );
    }
    let bytes = read_bytes(&place.real, MAX_TEXT_BYTES)?;
    let text = std::str::from_utf8(&bytes).map_err(|_| Error::NotText { path: place.real.clone() })?;
    let file = TextFile::parse(text);
    let old = input.old_string.replace("\r\n", "\n");
    let wanted = if input.replace_all == Some(true) { Wanted::All } else { Wanted::One };
    let found = match locate(&file.text, &old, wanted) {
        Ok(found) => found,
        Err(Miss::NotFound) => {
            return tell(
                "Could not find oldString in the file. It must match exactly, including whitespace, \
                 indentation, and line endings.",
            );
        }
        Err(Miss::Ambiguous) => {
            return tell(
                "Found multiple matches for oldString. Provide more surrounding context to make the match unique.",
            );
        }
    };
    let content = file.replaced(&found.ranges, &input.new_string);
    let diff = unified(&name, &file.text, &TextFile::parse(&content).text);
    if diff.additions + diff.deletions == 0 {
        return tell(UNCHANGED);
    }
    Ok(Change { before: Some(bytes), content, diff })
}
