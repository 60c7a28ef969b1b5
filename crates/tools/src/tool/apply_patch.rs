//! Changes several files with one patch.
//!
//! Each part is checked against the files as the parts before it change them. Nothing is written unless all
//! parts fit.

mod parse;
mod place;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use codewright_workspace::{
    Diff, MAX_TEXT_BYTES, Place, TextFile, Workspace, read_bytes, unified, write_atomic,
};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use self::parse::{Change, Part, parse};
use self::place::{Misfit, changed};
use crate::ask::file_patterns;
use crate::cx::settled;
use crate::effect::{FileEffect, missing_above};
use crate::{
    Ask, Effect, Effects, Facts, FileEdit, KnownFiles, ModelName, Output, Tool, ToolCx, ToolError, tags,
};

const DESCRIPTION: &str = include_str!("apply_patch.txt");

/// The `apply_patch` tool.
pub struct ApplyPatch;

/// The patch.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Input {
    patch_text: String,
}

/// Whether a model is trained to change files by patches, instead of single replacements and whole files.
pub(crate) fn prefers_patches(model: ModelName<'_>) -> bool {
    let id = model.api_id.to_lowercase();
    id.contains("gpt-") && !id.contains("gpt-4") && !id.contains("oss")
}

/// The files of a patch and their changes, from the metadata of a call.
fn edits(metadata: &Map<String, Value>) -> Vec<(&str, FileEdit)> {
    let files = metadata.get("files").and_then(Value::as_array).into_iter().flatten();
    files.flat_map(edits_of_file).collect()
}

fn edits_of_file(file: &Value) -> Vec<(&str, FileEdit)> {
    let text = |key: &str| file.get(key).and_then(Value::as_str);
    let Some(path) = text("filePath") else { return Vec::new() };
    match (text("type"), text("movePath")) {
        (Some("add"), _) => vec![(path, FileEdit::Added)],
        (Some("delete"), _) => vec![(path, FileEdit::Removed)],
        (_, Some(new_path)) => vec![(path, FileEdit::Removed), (new_path, FileEdit::Added)],
        _ => vec![(path, FileEdit::Changed)],
    }
}

impl Tool for ApplyPatch {
    const NAME: &'static str = "apply_patch";
    const FACTS: &'static Facts = &Facts {
        permission: Some("edit"),
        effect: Effect::Reported,
        edits,
        position: Some(13),
        aliases: &["patch"],
        suits: |model, _| prefers_patches(model),
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
                "patchText": {"type": "string", "description": "The whole patch, from its first marker to its last"},
            },
            "required": ["patchText"],
        })
    }

    async fn asks(&self, input: &Input, cx: &ToolCx) -> Result<Vec<Ask>, ToolError> {
        let (inner, input) = (cx.clone(), input.clone());
        cx.reading(move || {
            let workspace = inner.workspace()?;
            let steps = plan(&workspace, &parts(&input)?)?;
            Ok(asks(&workspace, &steps))
        })
        .await
    }

    async fn run(&self, input: Input, cx: &ToolCx) -> Result<Output, ToolError> {
        let workspace = cx.workspace()?;
        let parts = parts(&input)?;
        let mut held = Vec::new();
        // All calls lock in the same order, so that no two wait for each other.
        for path in touched(&workspace, &parts)? {
            held.push(cx.locks.lock(&path, &cx.cancel).await?);
        }
        let (effects, known) = (cx.effects.clone(), cx.known.clone());
        settled(move || {
            let _held = held;
            let steps = plan(&workspace, &parts)?;
            refuse_stale(&steps, &known)?;
            let metadata = facts(&workspace, &steps);
            let done = carry_out(&workspace, &steps, &effects);
            for step in &steps {
                known.made(&step.place.real);
                known.made(&step.target().real);
            }
            done?;
            let title = summary(&workspace, &steps);
            let output = Output { output: title.clone(), title, metadata, ..Output::default() };
            Ok(output.with("truncated", false))
        })
        .await
    }
}

fn refused(reason: impl std::fmt::Display) -> ToolError {
    ToolError::Model(format!("apply_patch verification failed: {reason}"))
}

/// Fails if the patch would remove a whole file that has changed since the session saw it.
fn refuse_stale(steps: &[Step], known: &KnownFiles) -> Result<(), ToolError> {
    let is_whole = |step: &&Step| matches!(step.kind, Kind::Add | Kind::Delete);
    match steps.iter().filter(is_whole).find(|step| known.is_stale(&step.place.real)) {
        Some(step) => {
            let path = step.place.path.display();
            Err(refused(format!("{path} has changed since you last saw it; read it again first")))
        }
        None => Ok(()),
    }
}

fn parts(input: &Input) -> Result<Vec<Part>, ToolError> {
    let parts = parse(&input.patch_text).map_err(|reason| refused(format!("Error: {reason}")))?;
    if parts.is_empty() {
        return Err(ToolError::Model("patch rejected: empty patch".to_owned()));
    }
    Ok(parts)
}

/// The paths that a patch names, with links followed and without duplicates.
fn touched(workspace: &Workspace, parts: &[Part]) -> Result<BTreeSet<PathBuf>, ToolError> {
    let mut paths = BTreeSet::new();
    for part in parts {
        let (path, moved) = match part {
            Part::Add { path, .. } | Part::Delete { path } => (path, None),
            Part::Update { path, moved, .. } => (path, moved.as_ref()),
        };
        for path in std::iter::once(path).chain(moved) {
            paths.insert(workspace.resolve(Path::new(path))?.real);
        }
    }
    Ok(paths)
}

/// A change of one file.
struct Step {
    kind: Kind,
    place: Place,
    /// The content before, or `None` if the file does not exist.
    before: Option<Vec<u8>>,
    /// The content after, or `None` if the file is removed.
    after: Option<String>,
    diff: Diff,
}

enum Kind {
    Add,
    Update,
    Delete,
    /// The file is moved.
    Move {
        to: Place,
        /// The content of the file that is replaced.
        replaced: Option<Vec<u8>>,
    },
}

impl Kind {
    fn name(&self) -> &'static str {
        match self {
            Self::Add => "add",
            Self::Update => "update",
            Self::Delete => "delete",
            Self::Move { .. } => "move",
        }
    }
}

impl Step {
    /// The path of the file after the change, or before its removal.
    fn target(&self) -> &Place {
        match &self.kind {
            Kind::Move { to, .. } => to,
            Kind::Add | Kind::Update | Kind::Delete => &self.place,
        }
    }
}

/// The files as the parts of a patch see them: the disk with the changes of the parts before.
#[derive(Default)]
struct Files(BTreeMap<PathBuf, Option<Vec<u8>>>);

impl Files {
    fn read(&self, place: &Place) -> Result<Option<Vec<u8>>, ToolError> {
        if let Some(content) = self.0.get(&place.real) {
            return Ok(content.clone());
        }
        match std::fs::metadata(&place.real) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(refused(format!("{}: {error}", place.path.display()))),
            Ok(metadata) if metadata.is_dir() => {
                return Err(refused(format!("BadResource: FileSystem.readFile ({})", place.path.display())));
            }
            // Opening a pipe or a device could block forever.
            Ok(metadata) if !metadata.is_file() => {
                return Err(refused(format!("Not a regular file: {}", place.path.display())));
            }
            Ok(_) => {}
        }
        read_bytes(&place.real, MAX_TEXT_BYTES).map(Some).map_err(refused)
    }

    /// Checks that a file exists and can be removed from its path.
    fn removable(&self, place: &Place) -> Result<(), ToolError> {
        if place.path.is_symlink() {
            let path = place.path.display();
            return Err(refused(format!("{path} is a symbolic link; remove or rename it with a command")));
        }
        Ok(())
    }
}

/// Plans the changes of a patch without writing.
fn plan(workspace: &Workspace, parts: &[Part]) -> Result<Vec<Step>, ToolError> {
    let mut files = Files::default();
    let mut steps = Vec::new();
    for part in parts {
        let step = match part {
            Part::Add { path, content } => add(&files, workspace.resolve(Path::new(path))?, content)?,
            Part::Delete { path } => delete(&files, workspace.resolve(Path::new(path))?)?,
            Part::Update { path, moved, changes } => {
                let place = workspace.resolve(Path::new(path))?;
                let to = moved.as_ref().map(|path| workspace.resolve(Path::new(path))).transpose()?;
                // Moving a file to its own path only changes it.
                let to = to.filter(|to| to.real != place.real);
                update(&files, place, to, changes)?
            }
        };
        if let Kind::Move { .. } = step.kind {
            files.0.insert(step.place.real.clone(), None);
        }
        files.0.insert(step.target().real.clone(), step.after.clone().map(String::into_bytes));
        steps.push(step);
    }
    Ok(steps)
}

fn add(files: &Files, place: Place, content: &str) -> Result<Step, ToolError> {
    let before = files.read(&place)?;
    let content = tags::as_written(&lossy(before.as_deref()), content).into_owned();
    // The old content is omitted, as if the file were new.
    let diff = unified(&place.path.to_string_lossy(), "", &content);
    Ok(Step { kind: Kind::Add, place, before, after: Some(content), diff })
}

fn lossy(bytes: Option<&[u8]>) -> std::borrow::Cow<'_, str> {
    bytes.map(String::from_utf8_lossy).unwrap_or_default()
}

fn delete(files: &Files, place: Place) -> Result<Step, ToolError> {
    let name = place.path.to_string_lossy().into_owned();
    let Some(before) = files.read(&place)? else {
        return Err(refused(format!("NotFound: FileSystem.readFile ({name})")));
    };
    files.removable(&place)?;
    let text = TextFile::parse(&String::from_utf8_lossy(&before)).text;
    let mut diff = unified(&name, &text, "");
    // Clients expect this number: the text after the last newline counts as a line.
    diff.deletions = text.split('\n').count();
    Ok(Step { kind: Kind::Delete, place, before: Some(before), after: None, diff })
}

fn update(files: &Files, place: Place, to: Option<Place>, changes: &[Change]) -> Result<Step, ToolError> {
    let name = place.path.to_string_lossy().into_owned();
    let Some(before) = files.read(&place)? else {
        return Err(refused(format!("Failed to read file to update: {name}")));
    };
    let Ok(text) = std::str::from_utf8(&before) else {
        return Err(refused(format!("Failed to read file to update: {name} is not valid UTF-8 text")));
    };
    let file = TextFile::parse(text);
    let changes: Vec<Change> = changes.iter().map(|change| change.as_in_file(&file.text)).collect();
    let after = changed(&file, &changes).map_err(|misfit| {
        refused(match misfit {
            Misfit::Lines(lines) => format!("Error: Failed to find expected lines in {name}:\n{lines}"),
            Misfit::Context(line) => format!("Error: Failed to find context '{line}' in {name}"),
        })
    })?;
    let diff = unified(&name, &file.text, &TextFile::parse(&after).text);
    let kind = match to {
        None => Kind::Update,
        Some(to) => {
            files.removable(&place)?;
            // An existing regular file is replaced.
            let replaced = files.read(&to)?;
            Kind::Move { to, replaced }
        }
    };
    Ok(Step { kind, place, before: Some(before), after: Some(after), diff })
}

fn asks(workspace: &Workspace, steps: &[Step]) -> Vec<Ask> {
    let mut outside: Vec<Ask> = Vec::new();
    let mut patterns: Vec<String> = Vec::new();
    for step in steps {
        let to = Some(step.target()).filter(|to| to.real != step.place.real);
        for place in std::iter::once(&step.place).chain(to) {
            let more: Vec<String> =
                file_patterns(workspace, place).into_iter().filter(|more| !patterns.contains(more)).collect();
            patterns.extend(more);
            let ask = Ask::outside_file(place);
            outside.extend(ask.filter(|ask| outside.iter().all(|known| known.patterns != ask.patterns)));
        }
    }
    let files: Vec<String> = steps.iter().map(|step| workspace.title(&step.target().path)).collect();
    let mut edit = Ask::new("edit", patterns).with("filepath", files.join(", "));
    edit.metadata.extend(facts(workspace, steps).into_iter().filter(|(key, _)| key != "diagnostics"));
    outside.into_iter().chain([edit]).collect()
}

fn facts(workspace: &Workspace, steps: &[Step]) -> Map<String, Value> {
    let diff: String = steps.iter().map(|step| format!("{}\n", step.diff.patch)).collect();
    let file = |step: &Step| {
        let mut file = json!({
            "filePath": step.place.path.to_string_lossy(),
            "relativePath": workspace.title(&step.target().path),
            "type": step.kind.name(),
            "patch": step.diff.patch,
            "additions": step.diff.additions,
            "deletions": step.diff.deletions,
        });
        if let Kind::Move { to, .. } = &step.kind {
            file["movePath"] = json!(to.path.to_string_lossy());
        }
        file
    };
    let files: Vec<Value> = steps.iter().map(file).collect();
    Map::from_iter([
        ("diff".to_owned(), json!(diff)),
        ("files".to_owned(), json!(files)),
        ("diagnostics".to_owned(), json!({})),
    ])
}

fn summary(workspace: &Workspace, steps: &[Step]) -> String {
    let mut text = "Success. Updated the following files:".to_owned();
    for step in steps {
        let sign = match step.kind {
            Kind::Add => 'A',
            Kind::Delete => 'D',
            Kind::Update | Kind::Move { .. } => 'M',
        };
        text.push_str(&format!("\n{sign} {}", workspace.title(&step.target().path)));
    }
    text
}

/// Applies the changes of a patch to a text.
#[cfg(any(test, feature = "trial"))]
pub(crate) fn tried(patch: &str, content: &str) {
    let file = TextFile::parse(content);
    for part in parse(patch).unwrap_or_default() {
        if let Part::Update { changes, .. } = part
            && let Ok(changed) = changed(&file, &changes)
        {
            assert!(
                changed.is_empty() || changed.ends_with('\n') || changed == content,
                "a line without its end"
            );
        }
    }
}

/// Writes the planned changes. If the disk fails, the error says which parts were applied.
fn carry_out(workspace: &Workspace, steps: &[Step], effects: &Effects) -> Result<(), ToolError> {
    for (done, step) in steps.iter().enumerate() {
        if let Err(error) = write(step, effects) {
            let mut message = format!("apply_patch failed: {error}");
            if done > 0 {
                let summary = summary(workspace, &steps[..done]);
                let (_, files) = summary.split_once('\n').unwrap_or_default();
                message.push_str(&format!("\nThese parts had been applied before:\n{files}"));
            }
            return Err(ToolError::Model(message));
        }
    }
    Ok(())
}

fn write(step: &Step, effects: &Effects) -> Result<(), codewright_workspace::Error> {
    let from = &step.place.real;
    let at = |source| codewright_workspace::Error::Path { path: from.clone(), source };
    let bytes = |text: &String| text.clone().into_bytes();
    if let Some(after) = &step.after {
        let to = &step.target().real;
        let before = match &step.kind {
            Kind::Move { replaced, .. } => replaced.clone(),
            Kind::Add | Kind::Update | Kind::Delete => step.before.clone(),
        };
        let made = missing_above(to);
        write_atomic(to, after.as_bytes())?;
        effects.report(FileEffect { path: to.clone(), before, after: step.after.as_ref().map(bytes), made });
        if let Kind::Move { .. } = step.kind {
            let permissions = std::fs::metadata(from).map_err(at)?.permissions();
            std::fs::set_permissions(to, permissions).map_err(at)?;
        }
    }
    if matches!(step.kind, Kind::Delete | Kind::Move { .. }) {
        std::fs::remove_file(from).map_err(at)?;
        let before = step.before.clone();
        effects.report(FileEffect { path: from.clone(), before, after: None, made: 0 });
    }
    Ok(())
}
