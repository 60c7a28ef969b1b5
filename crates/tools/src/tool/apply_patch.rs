//! Changes several files with one patch.
//!
//! Each part is checked against the files as the parts before it change them. Nothing is written unless all
//! parts fit.

mod parse;
mod place;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use codewright_workspace::{Diff, Held, MAX_TEXT_BYTES, Node, TextFile, Workspace, unified};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use self::parse::{Change, Part, parse};
use self::place::{Misfit, changed};
use crate::ask::{file_patterns, outside_file, reading};
use crate::cx::settled;
use crate::effect::FileEffect;
use crate::{
    Ask, Certainty, Effect, Effects, Facts, FileEdit, KnownFiles, ModelName, Output, Permission, Tool,
    ToolCx, ToolError, tags,
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
            let parts = parts(&input)?;
            let places = places(&parts, &|path| inner.judge(path))?;
            match plan(&parts, &|path| inner.judged(path)) {
                Ok(steps) => Ok(asks(&inner.workspace(), &steps)),
                // A failure says something about a file, which needs permission first.
                Err(_) if places.iter().any(|held| !held.place.inside) => {
                    Ok(asks_for(&inner.workspace(), &places))
                }
                Err(_) => Ok(vec![Ask::new(Permission::Read, patterns_of(&inner.workspace(), &places))]),
            }
        })
        .await
    }

    async fn run(&self, input: Input, cx: &ToolCx) -> Result<Output, ToolError> {
        let inner = cx.clone();
        let parts = parts(&input)?;
        let mut locks = Vec::new();
        // All calls lock in the same order, so that no two wait for each other.
        let places = places(&parts, &|path| cx.judged(path))?;
        let paths: BTreeSet<_> = places.into_iter().map(|held| held.place.real).collect();
        for path in paths {
            locks.push(cx.locks.lock(&path, &cx.cancel).await?);
        }
        let (effects, known) = (cx.effects.clone(), cx.known.clone());
        settled(move || {
            let _locks = locks;
            let workspace = inner.workspace();
            let steps = plan(&parts, &|path| inner.judged(path))?;
            refuse_stale(&steps, &known)?;
            let metadata = facts(&workspace, &steps);
            let done = carry_out(&workspace, &steps, &effects);
            for step in &steps {
                known.made(&step.held);
                known.made(step.target());
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
    match steps.iter().filter(is_whole).find(|step| known.is_stale(&step.held)) {
        Some(step) => {
            let path = step.held.place.path.display();
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

/// Resolves paths.
type Resolve<'a> = dyn Fn(&str) -> Result<Held, ToolError> + 'a;

/// The places that a patch names.
fn places(parts: &[Part], resolve: &Resolve<'_>) -> Result<Vec<Held>, ToolError> {
    let mut places = Vec::new();
    for part in parts {
        let (path, moved) = match part {
            Part::Add { path, .. } | Part::Delete { path } => (path, None),
            Part::Update { path, moved, .. } => (path, moved.as_ref()),
        };
        for path in std::iter::once(path).chain(moved) {
            places.push(resolve(path)?);
        }
    }
    Ok(places)
}

/// A change of one file.
struct Step {
    kind: Kind,
    held: Held,
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
        to: Held,
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
    fn target(&self) -> &Held {
        match &self.kind {
            Kind::Move { to, .. } => to,
            Kind::Add | Kind::Update | Kind::Delete => &self.held,
        }
    }
}

/// The files as the parts of a patch see them: the disk with the changes of the parts before.
#[derive(Default)]
struct Files(BTreeMap<PathBuf, Option<Vec<u8>>>);

impl Files {
    fn read(&self, held: &Held) -> Result<Option<Vec<u8>>, ToolError> {
        if let Some(content) = self.0.get(&held.place.real) {
            return Ok(content.clone());
        }
        let name = held.place.path.display();
        match held.status().map_err(|error| refused(format!("{name}: {error}")))?.map(|status| status.node) {
            None => Ok(None),
            Some(Node::Directory) => Err(refused(format!("BadResource: FileSystem.readFile ({name})"))),
            // Opening a device may have an effect.
            Some(Node::Special) => Err(refused(format!("Not a regular file: {name}"))),
            Some(Node::File) => held.read(MAX_TEXT_BYTES).map(Some).map_err(refused),
        }
    }

    /// Checks that a file exists and can be removed from its path.
    fn removable(&self, held: &Held) -> Result<(), ToolError> {
        if held.place.path.is_symlink() {
            let path = held.place.path.display();
            return Err(refused(format!("{path} is a symbolic link; remove or rename it with a command")));
        }
        Ok(())
    }
}

/// Plans the changes of a patch without writing.
fn plan(parts: &[Part], place: &Resolve<'_>) -> Result<Vec<Step>, ToolError> {
    let mut files = Files::default();
    let mut steps = Vec::new();
    for part in parts {
        let step = match part {
            Part::Add { path, content } => add(&files, place(path)?, content)?,
            Part::Delete { path } => delete(&files, place(path)?)?,
            Part::Update { path, moved, changes } => {
                let held = place(path)?;
                let to = moved.as_ref().map(|path| place(path)).transpose()?;
                // Moving a file to its own path only changes it.
                let to = to.filter(|to| to.place.real != held.place.real);
                update(&files, held, to, changes)?
            }
        };
        if let Kind::Move { .. } = step.kind {
            files.0.insert(step.held.place.real.clone(), None);
        }
        files.0.insert(step.target().place.real.clone(), step.after.clone().map(String::into_bytes));
        steps.push(step);
    }
    Ok(steps)
}

fn add(files: &Files, held: Held, content: &str) -> Result<Step, ToolError> {
    let before = files.read(&held)?;
    let content = tags::as_written(&lossy(before.as_deref()), content).into_owned();
    // The old content is omitted, as if the file were new.
    let diff = unified(&held.place.path.to_string_lossy(), "", &content);
    Ok(Step { kind: Kind::Add, held, before, after: Some(content), diff })
}

fn lossy(bytes: Option<&[u8]>) -> std::borrow::Cow<'_, str> {
    bytes.map(String::from_utf8_lossy).unwrap_or_default()
}

fn delete(files: &Files, held: Held) -> Result<Step, ToolError> {
    let name = held.place.path.to_string_lossy().into_owned();
    let Some(before) = files.read(&held)? else {
        return Err(refused(format!("NotFound: FileSystem.readFile ({name})")));
    };
    files.removable(&held)?;
    let text = TextFile::parse(&String::from_utf8_lossy(&before)).text;
    let mut diff = unified(&name, &text, "");
    // Clients expect this number: the text after the last newline counts as a line.
    diff.deletions = text.split('\n').count();
    Ok(Step { kind: Kind::Delete, held, before: Some(before), after: None, diff })
}

fn update(files: &Files, held: Held, to: Option<Held>, changes: &[Change]) -> Result<Step, ToolError> {
    let name = held.place.path.to_string_lossy().into_owned();
    let Some(before) = files.read(&held)? else {
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
            files.removable(&held)?;
            // An existing regular file is replaced.
            let replaced = files.read(&to)?;
            Kind::Move { to, replaced }
        }
    };
    Ok(Step { kind, held, before: Some(before), after: Some(after), diff })
}

fn asks(workspace: &Workspace, steps: &[Step]) -> Vec<Ask> {
    let mut places = Vec::new();
    for step in steps {
        let to = Some(step.target()).filter(|to| to.place.real != step.held.place.real);
        places.extend([&step.held].into_iter().chain(to).cloned());
    }
    let mut asks = asks_for(workspace, &places);
    let reads: Vec<(Vec<String>, Certainty)> =
        steps.iter().filter_map(|step| reads(workspace, step)).collect();
    if let Some(mut edit) = asks.pop() {
        for (patterns, certainty) in reads {
            edit = reading(edit, &patterns, certainty);
        }
        let files: Vec<String> =
            steps.iter().map(|step| workspace.title(&step.target().place.path)).collect();
        edit.metadata.insert("filepath".to_owned(), files.join(", ").into());
        edit.metadata.extend(facts(workspace, steps).into_iter().filter(|(key, _)| key != "diagnostics"));
        asks.push(edit);
    }
    asks
}

/// What a step reads: a file that is moved gets a name that other rules are about, and a change that fits says something
/// about the content.
fn reads(workspace: &Workspace, step: &Step) -> Option<(Vec<String>, Certainty)> {
    let certainty = match step.kind {
        Kind::Move { .. } => Certainty::Stated,
        Kind::Update => Certainty::Possible,
        Kind::Add | Kind::Delete => return None,
    };
    Some((file_patterns(workspace, &step.held.place), certainty))
}

/// The names of files that rules are matched against.
fn patterns_of(workspace: &Workspace, places: &[Held]) -> Vec<String> {
    let mut patterns: Vec<String> = Vec::new();
    for Held { place, .. } in places {
        let more: Vec<String> =
            file_patterns(workspace, place).into_iter().filter(|more| !patterns.contains(more)).collect();
        patterns.extend(more);
    }
    patterns
}

/// The permissions for changing files, of which the last is to edit them.
fn asks_for(workspace: &Workspace, places: &[Held]) -> Vec<Ask> {
    let mut outside: Vec<Ask> = Vec::new();
    let patterns = patterns_of(workspace, places);
    for Held { place, .. } in places {
        let ask = outside_file(place);
        outside.extend(ask.filter(|ask| outside.iter().all(|known| known.patterns != ask.patterns)));
    }
    let files: Vec<String> = places.iter().map(|held| workspace.title(&held.place.path)).collect();
    let edit = Ask::new("edit", patterns).with("filepath", files.join(", "));
    outside.into_iter().chain([edit]).collect()
}

fn facts(workspace: &Workspace, steps: &[Step]) -> Map<String, Value> {
    let diff: String = steps.iter().map(|step| format!("{}\n", step.diff.patch)).collect();
    let file = |step: &Step| {
        let mut file = json!({
            "filePath": step.held.place.path.to_string_lossy(),
            "relativePath": workspace.title(&step.target().place.path),
            "type": step.kind.name(),
            "patch": step.diff.patch,
            "additions": step.diff.additions,
            "deletions": step.diff.deletions,
        });
        if let Kind::Move { to, .. } = &step.kind {
            file["movePath"] = json!(to.place.path.to_string_lossy());
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
        text.push_str(&format!("\n{sign} {}", workspace.title(&step.target().place.path)));
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
    let from = &step.held;
    if let Some(after) = &step.after {
        let to = step.target();
        let (before, mode) = match &step.kind {
            Kind::Move { replaced, .. } => (replaced.clone(), from.status()?.map(|status| status.mode)),
            Kind::Add | Kind::Update | Kind::Delete => (step.before.clone(), None),
        };
        let made = to.write(after.as_bytes(), mode)?;
        let after = Some(after.clone().into_bytes());
        effects.report(FileEffect { path: to.place.real.clone(), before, after, made });
    }
    if matches!(step.kind, Kind::Delete | Kind::Move { .. }) {
        from.remove()?;
        let before = step.before.clone();
        effects.report(FileEffect { path: from.place.real.clone(), before, after: None, made: 0 });
    }
    Ok(())
}
