//! Writes a whole file.

use std::io::Read as _;

use codewright_workspace::{Diff, Error, Held, MAX_TEXT_BYTES, Node, Place, TextFile, unified};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::apply_patch::prefers_patches;
use crate::ask::{file_patterns, outside_file, spelled};
use crate::cx::settled;
use crate::effect::FileEffect;
use crate::reading::node;
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
            let held = inner.judge(&input.file_path)?;
            let diff = refuse_stale(&held, &inner.known)
                .and_then(|()| compare(&held, &with_tags(&held, input.content)?));
            asks(&held.place, file_patterns(&inner.workspace(), &held.place), diff)
        })
        .await
    }

    async fn run(&self, input: Input, cx: &ToolCx) -> Result<Output, ToolError> {
        let held = cx.judged(&input.file_path)?;
        let title = cx.workspace().title(&held.place.path);
        let lock = cx.locks.lock(&held.place.real, &cx.cancel).await?;
        let (effects, known) = (cx.effects.clone(), cx.known.clone());
        settled(move || {
            let _lock = lock;
            refuse_stale(&held, &known)?;
            let exists = regular(&held)?;
            let before = if exists { Some(held.read(MAX_REPLACED_BYTES)) } else { None };
            let content = with_tags(&held, input.content)?;
            let content = with_mark(&held, before.as_ref(), content);
            let made = held.write(content.as_bytes(), None)?;
            known.made(&held);
            // A file that cannot be read cannot be restored, but can be replaced.
            if let Ok(before) = before.transpose() {
                let after = Some(content.into_bytes());
                effects.report(FileEffect { path: held.place.real.clone(), before, after, made });
            }
            let output = Output { title, output: "Wrote file successfully.".to_owned(), ..Output::default() };
            Ok(output
                .with("diagnostics", Map::new())
                .with("filepath", held.place.path.to_string_lossy())
                .with("exists", exists)
                .with("truncated", false))
        })
        .await
    }
}

/// The permissions of a call that changes a file.
///
/// A failure says something about the file, so outside the project it is reported only after the permission.
pub(super) fn asks(
    place: &Place,
    patterns: Vec<String>,
    diff: Result<Diff, ToolError>,
) -> Result<Vec<Ask>, ToolError> {
    let diff = match diff {
        Err(error) if place.inside => return Err(error),
        diff => diff.map(|diff| diff.patch).unwrap_or_default(),
    };
    let edit = spelled(Ask::new("edit", patterns), place)
        .with("filepath", place.path.to_string_lossy())
        .with("diff", diff);
    Ok(outside_file(place).into_iter().chain([edit]).collect())
}

/// Fails if the file has changed since the session saw it, because the change would be lost.
fn refuse_stale(held: &Held, known: &KnownFiles) -> Result<(), ToolError> {
    if known.is_stale(held) {
        return Err(ToolError::Model(format!(
            "{} has changed since you last saw it, by a command or by somebody else. Read it again, so that nothing is \
             lost, and then write.",
            held.place.path.display()
        )));
    }
    Ok(())
}

/// Whether the file exists. Fails for anything but a regular file.
fn regular(held: &Held) -> Result<bool, ToolError> {
    let path = held.place.path.display();
    match node(held)? {
        None => Ok(false),
        Some(Node::File) => Ok(true),
        Some(Node::Directory) => Err(ToolError::Model(format!("BadResource: FileSystem.readFile ({path})"))),
        // Opening a device may have an effect.
        Some(Node::Special) => Err(ToolError::Model(format!("Not a regular file: {path}"))),
    }
}

/// The content with restored tags, because the model saw only neutralized text.
fn with_tags(held: &Held, content: String) -> Result<String, ToolError> {
    if !content.contains(tags::MARK) || node(held)? != Some(Node::File) {
        return Ok(tags::as_written("", &content).into_owned());
    }
    // A file that is too large to check gets the content as the model wrote it.
    Ok(match held.read(MAX_TEXT_BYTES) {
        Ok(old) => tags::as_written(&String::from_utf8_lossy(&old), &content).into_owned(),
        Err(_) => content,
    })
}

fn compare(held: &Held, content: &str) -> Result<Diff, ToolError> {
    let old = if regular(held)? {
        // A file that is too large to compare is shown as new.
        held.read(MAX_TEXT_BYTES).unwrap_or_default()
    } else {
        Vec::new()
    };
    let old = TextFile::parse(&String::from_utf8_lossy(&old)).text;
    Ok(unified(&held.place.path.to_string_lossy(), &old, &TextFile::parse(content).text))
}

/// The content with the byte order mark of the file.
fn with_mark(held: &Held, before: Option<&Result<Vec<u8>, Error>>, content: String) -> String {
    let marked = match before {
        Some(Ok(before)) => before.starts_with(BOM.as_bytes()),
        // It is too large to be kept, but its start can be read.
        Some(Err(_)) => {
            let mut start = [0; BOM.len()];
            let read = held.file().map(|mut file| file.read_exact(&mut start));
            read.is_ok_and(|read| read.is_ok()) && start == BOM.as_bytes()
        }
        None => false,
    };
    if marked && !content.starts_with(BOM) { format!("{BOM}{content}") } else { content }
}
