//! Replaces a text in a file.

mod indentation;
mod nearest;
mod replacer;

use std::ops::Range;

use codewright_workspace::{Diff, Error, Held, MAX_TEXT_BYTES, Node, Place, TextFile, unified};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use self::indentation::shifted;
use self::replacer::{Miss, Wanted, locate};
use super::apply_patch::prefers_patches;
use super::write::asks;
use crate::ask::{file_patterns, reading, spelled};
use crate::cx::settled;
use crate::effect::FileEffect;
use crate::reading::node;
use crate::{
    Ask, Certainty, Effect, Facts, FileEdit, Output, Permission, Tool, ToolCx, ToolError, render, tags,
};

const DESCRIPTION: &str = include_str!("edit.txt");
const UNCHANGED: &str = "No changes to apply: oldString and newString are identical.";

/// The reminder about a file that others have changed.
pub(crate) const CHANGED: &str = "\n\n<system-reminder>\nThis file has changed since you last saw it, by a command or by \
                       somebody else. Your edit is in; read the file again before you rely on the rest of it.\n\
                       </system-reminder>";

/// The `edit` tool.
pub struct Edit;

/// The arguments.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Input {
    file_path: String,
    old_string: String,
    new_string: String,
    replace_all: Option<bool>,
}

impl Input {
    fn piece(self) -> Piece {
        Piece { old_string: self.old_string, new_string: self.new_string, replace_all: self.replace_all }
    }
}

/// A text and its replacement.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Piece {
    old_string: String,
    new_string: String,
    replace_all: Option<bool>,
}

/// The file of a replacement, from the metadata of a call.
pub(super) fn edits(metadata: &Map<String, Value>) -> Vec<(&str, FileEdit)> {
    let file = metadata.get("filediff").and_then(|diff| diff.get("file")?.as_str());
    file.map(|file| (file, FileEdit::Changed)).into_iter().collect()
}

impl Tool for Edit {
    const NAME: &'static str = "edit";
    const FACTS: &'static Facts = &Facts {
        effect: Effect::Reported,
        edits,
        position: Some(6),
        suits: |model, _| !prefers_patches(model),
        ..Facts::PLAIN
    };
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
                "oldString": {"type": "string", "description": "The text as it is now"},
                "newString": {"type": "string", "description": "The new text; not the same as oldString"},
                "replaceAll": {"type": "boolean", "description": "Change every occurrence instead of the only one"},
            },
            "required": ["filePath", "oldString", "newString"],
        })
    }

    async fn asks(&self, input: &Input, cx: &ToolCx) -> Result<Vec<Ask>, ToolError> {
        let (inner, input) = (cx.clone(), input.clone());
        cx.reading(move || {
            let held = inner.judge_existing(&input.file_path)?;
            asks_to_change(&inner, &held, change(&held, &[input.piece()]))
        })
        .await
    }

    async fn run(&self, input: Input, cx: &ToolCx) -> Result<Output, ToolError> {
        let held = cx.judged(&input.file_path)?;
        finish(held, cx, move |held| change(held, &[input.piece()])).await
    }
}

/// The ranges of a text that an edit would replace.
#[cfg(any(test, feature = "trial"))]
pub(crate) fn places(text: &str, old: &str, is_all: bool) -> Option<Vec<Range<usize>>> {
    let wanted = if is_all { Wanted::All } else { Wanted::One };
    locate(text, &old.replace("\r\n", "\n"), wanted).ok().map(|found| found.ranges)
}

/// The permissions of a call that changes parts of a file. A change that does not fit only reads: the call fails with the
/// reason when it runs, because the reason says something about the content.
pub(super) fn asks_to_change(
    cx: &ToolCx,
    held: &Held,
    change: Result<Change, ToolError>,
) -> Result<Vec<Ask>, ToolError> {
    let patterns = file_patterns(&cx.workspace(), &held.place);
    if change.is_err() && held.place.inside {
        return Ok(vec![spelled(Ask::new(Permission::Read, patterns), &held.place)]);
    }
    let mut asks = asks(&held.place, patterns.clone(), change.map(|change| change.diff))?;
    let edit = asks.pop().map(|edit| reading(edit, &patterns, Certainty::Possible));
    asks.extend(edit);
    Ok(asks)
}

/// Applies a change while no other call changes the file.
pub(super) async fn finish(
    held: Held,
    cx: &ToolCx,
    change: impl FnOnce(&Held) -> Result<Change, ToolError> + Send + 'static,
) -> Result<Output, ToolError> {
    let title = cx.workspace().title(&held.place.path);
    let lock = cx.locks.lock(&held.place.real, &cx.cancel).await?;
    let (progress, effects, known) = (cx.progress.clone(), cx.effects.clone(), cx.known.clone());
    settled(move || {
        let _lock = lock;
        let is_stale = known.is_stale(&held);
        let change = change(&held)?;
        let made = held.write(change.content.as_bytes(), None)?;
        known.made(&held);
        let after = Some(change.content.into_bytes());
        effects.report(FileEffect { path: held.place.real.clone(), before: change.before, after, made });
        let metadata = facts(&held.place, &change.diff);
        progress.report(metadata.clone());
        let note = if is_stale { CHANGED } else { "" };
        let output = format!("Edit applied successfully.{note}");
        Ok(Output { title, output, metadata, ..Output::default() }.with("truncated", false))
    })
    .await
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

/// The result of edits that are not written yet.
pub(super) struct Change {
    /// The content before, or `None` if the file does not exist.
    before: Option<Vec<u8>>,
    content: String,
    pub(super) diff: Diff,
}

/// Applies replacements one after another, without writing.
pub(super) fn change(held: &Held, pieces: &[Piece]) -> Result<Change, ToolError> {
    let name = held.place.path.to_string_lossy();
    if pieces.iter().any(|piece| piece.old_string == piece.new_string) {
        return Err(ToolError::model(UNCHANGED));
    }
    let before = match node(held)? {
        None => None,
        Some(Node::File) => Some(held.read(MAX_TEXT_BYTES)?),
        Some(Node::Directory) => {
            return Err(ToolError::Model(format!("Path is a directory, not a file: {name}")));
        }
        // Opening a device may have an effect.
        Some(Node::Special) => return Err(ToolError::Model(format!("Not a regular file: {name}"))),
    };
    let old = match &before {
        Some(bytes) => {
            let text = std::str::from_utf8(bytes);
            Some(text.map_err(|_| Error::NotText { path: held.place.real.clone() })?.to_owned())
        }
        None => None,
    };
    let mut content = old.clone();
    for (n, piece) in pieces.iter().enumerate() {
        let next = replaced(content.as_deref(), piece, &name).map_err(|error| match error {
            ToolError::Model(why) if pieces.len() > 1 => {
                ToolError::Model(format!("Edit {} of {}, so that none was made: {why}", n + 1, pieces.len()))
            }
            error => error,
        })?;
        content = Some(next);
    }
    let content = content.unwrap_or_default();
    let old = old.map(|old| TextFile::parse(&old).text).unwrap_or_default();
    let diff = unified(&name, &old, &TextFile::parse(&content).text);
    if diff.additions + diff.deletions == 0 && before.is_some() {
        return Err(ToolError::model(UNCHANGED));
    }
    Ok(Change { before, content, diff })
}

/// The content of a file with one text replaced. A new file starts with the replacement.
fn replaced(content: Option<&str>, piece: &Piece, name: &str) -> Result<String, ToolError> {
    let tell = |message: &str| Err(ToolError::Model(message.to_owned()));
    let Some(content) = content else {
        if piece.old_string.is_empty() {
            return Ok(tags::as_written("", &piece.new_string).into_owned());
        }
        return tell(&format!("File {name} not found"));
    };
    if piece.old_string.is_empty() {
        return tell(
            "oldString cannot be empty when editing an existing file. Provide the exact text to replace, \
             or use write for an intentional full-file replacement.",
        );
    }
    let file = TextFile::parse(content);
    let old = piece.old_string.replace("\r\n", "\n");
    let (old, new) = tags::as_in_file(&file.text, &old, &piece.new_string);
    let wanted = if piece.replace_all == Some(true) { Wanted::All } else { Wanted::One };
    match locate(&file.text, &old, wanted) {
        Ok(found) => {
            let edits = found.ranges.into_iter().map(|range| {
                let new = indented(&file.text, &range, &old, &new);
                (range, new)
            });
            Ok(file.changed(&edits.collect::<Vec<_>>()))
        }
        Err(Miss::NotFound) => tell(&format!(
            "Could not find oldString in the file. It must match exactly, including whitespace, \
             indentation, and line endings.{}",
            nearest::nearest(&file.text, &old)
        )),
        Err(Miss::Ambiguous(ranges)) => tell(&format!(
            "Found multiple matches for oldString. Provide more surrounding context to make the match unique. {}",
            nearest::numbers(&file.text, &ranges)
        )),
    }
}

/// The new text with the indentation that the file has where the quotation has another one.
fn indented(text: &str, range: &Range<usize>, old: &str, new: &str) -> String {
    let is_line = range.start == 0 || text[..range.start].ends_with('\n');
    let moved = if is_line { shifted(old, &text[range.clone()], new) } else { None };
    moved.unwrap_or_else(|| new.to_owned())
}

/// The content of a file after an edit, or the reason why nothing was replaced.
#[cfg(any(test, feature = "trial"))]
pub(crate) fn tried(content: &str, old: &str, new: &str, is_all: bool) -> Result<String, ToolError> {
    let piece = Piece { old_string: old.to_owned(), new_string: new.to_owned(), replace_all: Some(is_all) };
    replaced(Some(content), &piece, "file")
}
