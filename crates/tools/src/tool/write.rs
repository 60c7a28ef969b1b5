//! Writes a whole file.

use std::path::Path;

use codewright_workspace::{Diff, MAX_TEXT_BYTES, Place, TextFile, read_bytes, unified, write_atomic};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::apply_patch::prefers_patches;
use crate::ask::file_patterns;
use crate::cx::settled;
use crate::effect::{FileEffect, missing_above};
use crate::{Ask, Effect, Facts, FileEdit, KnownFiles, Output, Tool, ToolCx, ToolError, tags};

const DESCRIPTION: &str = include_str!("write.txt");
/// The limit for the size of a replaced file whose content is reported.
const MAX_REPLACED_BYTES: u64 = 64 * 1024 * 1024;
const BOM: &str = "\u{feff}";

/// The `write` tool.
pub struct Write;

/// The arguments.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Input {
    content: String,
    file_path: String,
}

/// The written file, from the metadata of a call.
fn edits(metadata: &Map<String, Value>) -> Vec<(&str, FileEdit)> {
    let existed = metadata.get("exists").is_some_and(|exists| exists == true);
    let edit = if existed { FileEdit::Changed } else { FileEdit::Added };
    let path = metadata.get("filepath").and_then(Value::as_str);
    path.map(|path| (path, edit)).into_iter().collect()
}

impl Tool for Write {
    const NAME: &'static str = "write";
    const FACTS: &'static Facts = &Facts {
        permission: Some("edit"),
        effect: Effect::Reported,
        edits,
        position: Some(7),
        suits: |model, _| !prefers_patches(model),
        ..Facts::PLAIN
    };
    type Input = Input;

    fn description(&self) -> String {
        DESCRIPTION.to_owned()
    }

    fn parameters(&self) -> Value {
        json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "properties": {
                "content": {"type": "string", "description": "The whole content of the file"},
                "filePath": {"type": "string", "description": "The file, absolute or relative to the project"},
            },
            "required": ["content", "filePath"],
        })
    }

    async fn asks(&self, input: &Input, cx: &ToolCx) -> Result<Vec<Ask>, ToolError> {
        let (inner, input) = (cx.clone(), input.clone());
        cx.reading(move || {
            let workspace = inner.workspace()?;
            let place = workspace.resolve(Path::new(&input.file_path))?;
            refuse_stale(&place, &inner.known)?;
            let diff = compare(&place, &with_tags(&place, input.content))?;
            Ok(asks(&place, file_patterns(&workspace, &place), &diff))
        })
        .await
    }

    async fn run(&self, input: Input, cx: &ToolCx) -> Result<Output, ToolError> {
        let workspace = cx.workspace()?;
        let place = workspace.resolve(Path::new(&input.file_path))?;
        let title = workspace.title(&place.path);
        let held = cx.locks.lock(&place.real, &cx.cancel).await?;
        let (effects, known) = (cx.effects.clone(), cx.known.clone());
        settled(move || {
            let _held = held;
            refuse_stale(&place, &known)?;
            refuse_special(&place)?;
            let (exists, content) = prepare(&place, with_tags(&place, input.content))?;
            let before = if exists { Some(read_bytes(&place.real, MAX_REPLACED_BYTES)) } else { None };
            let made = missing_above(&place.real);
            write_atomic(&place.real, content.as_bytes())?;
            known.made(&place.real);
            // A file that cannot be read cannot be restored, but can be replaced.
            if let Ok(before) = before.transpose() {
                let after = Some(content.into_bytes());
                effects.report(FileEffect { path: place.real.clone(), before, after, made });
            }
            let output = Output { title, output: "Wrote file successfully.".to_owned(), ..Output::default() };
            Ok(output
                .with("diagnostics", Map::new())
                .with("filepath", place.path.to_string_lossy())
                .with("exists", exists)
                .with("truncated", false))
        })
        .await
    }
}

/// The permissions of a call that changes a file.
pub(super) fn asks(place: &Place, patterns: Vec<String>, diff: &Diff) -> Vec<Ask> {
    let edit = Ask::new("edit", patterns)
        .with("filepath", place.path.to_string_lossy())
        .with("diff", diff.patch.as_str());
    Ask::outside_file(place).into_iter().chain([edit]).collect()
}

/// Fails if the file has changed since the session saw it, because the change would be lost.
fn refuse_stale(place: &Place, known: &KnownFiles) -> Result<(), ToolError> {
    if known.is_stale(&place.real) {
        return Err(ToolError::Model(format!(
            "{} has changed since you last saw it, by a command or by somebody else. Read it again, so that nothing is \
             lost, and then write.",
            place.path.display()
        )));
    }
    Ok(())
}

fn refuse_special(place: &Place) -> Result<(), ToolError> {
    let path = place.path.display();
    if place.real.is_dir() {
        return Err(ToolError::Model(format!("BadResource: FileSystem.readFile ({path})")));
    }
    if place.real.exists() && !place.real.is_file() {
        // Opening a pipe or a device could block forever.
        return Err(ToolError::Model(format!("Not a regular file: {path}")));
    }
    Ok(())
}

/// The content with restored tags, because the model saw only neutralized text.
fn with_tags(place: &Place, content: String) -> String {
    if !content.contains(tags::MARK) || !place.real.is_file() {
        return tags::as_written("", &content).into_owned();
    }
    // A file that is too large to check gets the content as the model wrote it.
    match read_bytes(&place.real, MAX_TEXT_BYTES) {
        Ok(old) => tags::as_written(&String::from_utf8_lossy(&old), &content).into_owned(),
        Err(_) => content,
    }
}

fn compare(place: &Place, content: &str) -> Result<Diff, ToolError> {
    refuse_special(place)?;
    let old = if place.real.is_file() {
        // A file that is too large to compare is shown as new.
        read_bytes(&place.real, MAX_TEXT_BYTES).unwrap_or_default()
    } else {
        Vec::new()
    };
    let old = TextFile::parse(&String::from_utf8_lossy(&old)).text;
    Ok(unified(&place.path.to_string_lossy(), &old, &TextFile::parse(content).text))
}

/// Whether the file exists, and the content with the byte order mark of the file.
fn prepare(place: &Place, content: String) -> Result<(bool, String), ToolError> {
    refuse_special(place)?;
    let mut start = [0; BOM.len()];
    let exists = place.real.exists();
    let marked = exists
        && std::fs::File::open(&place.real)
            .and_then(|mut file| std::io::Read::read_exact(&mut file, &mut start))
            .is_ok_and(|()| start == BOM.as_bytes());
    let content = if marked && !content.starts_with(BOM) { format!("{BOM}{content}") } else { content };
    Ok((exists, content))
}
