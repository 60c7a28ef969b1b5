//! The work after a call has changed files: formatters run, and language servers report errors.
//!
//! The model, the diff, undo and later checks for changes by others see the formatted files. A failure never loses an
//! edit and does not fail the call.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use codewright_config::SandboxMode;
use codewright_formatter::{Programs, Runner};
use codewright_lsp::{Change, Diagnostic, Kind};
use codewright_proto::Map;
use codewright_tools::{AnyTool, Effect, Effects, FileEdit, FileEffect, Output, ToolCx};
use codewright_workspace::{Held, MAX_TEXT_BYTES, TextFile, hold, physical, unified};
use serde_json::{Value, json};

use super::{CallCx, Failure, Granted};
use crate::lsp;
use crate::sandbox::enforcement::mode;
use crate::sandbox::prepared::visible;
use crate::sandbox::start::neutral;
use crate::sandbox::variables::{self, Changes};

/// The diagnostics of a file that clients receive.
const MAX_DIAGNOSTICS: usize = 50;

/// The changes that a call has reported.
#[derive(Debug, Clone, Default)]
struct Written(Arc<Mutex<Vec<FileEffect>>>);

impl Written {
    /// Returns a context whose reports are also recorded.
    fn recorded(&self, cx: &ToolCx) -> ToolCx {
        let (written, effects) = (self.clone(), cx.effects.clone());
        let effects = Effects::new(move |effect| {
            written.0.lock().unwrap_or_else(PoisonError::into_inner).push(effect.clone());
            effects.report(effect);
        });
        ToolCx { effects, ..cx.clone() }
    }

    /// Returns the last change of a file.
    fn of(&self, path: &Path) -> Option<FileEffect> {
        let written = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        written.iter().rev().find(|effect| effect.path == path).cloned()
    }
}

/// A call that changed files.
struct Edits<'a> {
    cx: &'a ToolCx,
    granted: &'a Granted,
    written: &'a Written,
}

impl CallCx {
    /// Runs the tool, then the formatters and language servers of the files that it changed.
    pub(super) async fn run_and_follow_up(
        &self,
        tool: &Arc<dyn AnyTool>,
        input: Value,
        cx: &ToolCx,
        granted: &Granted,
    ) -> Result<Output, Failure> {
        let reports = tool.facts().effect == Effect::Reported;
        let is_needed = self.instance.formatters.is_on() || !self.instance.lsp.is_empty();
        if !reports || !is_needed {
            let opened = (tool.facts().opens)(&input).map(|path| self.instance.directory.join(path));
            let output = self.run_confined(tool, input, cx, granted).await?;
            if let Some((path, servers)) = opened.zip(lsp::host::servers(&self.inner, &self.instance)) {
                servers.touch(&path);
            }
            return Ok(output);
        }
        let written = Written::default();
        let mut output = self.run_confined(tool, input, &written.recorded(cx), granted).await?;
        let edits = (tool.facts().edits)(&output.metadata);
        let edits: Vec<_> = edits.into_iter().map(|(file, edit)| (file.to_owned(), edit)).collect();
        let call = Edits { cx, granted, written: &written };
        for (file, _) in edits.iter().filter(|(_, edit)| *edit != FileEdit::Removed) {
            self.format(file, &call, &mut output.metadata).await;
        }
        let diagnosing = self.diagnose(&edits, &written, &mut output);
        // An aborted call keeps its edits.
        self.cancel.run_until_cancelled(diagnosing).await;
        Ok(output)
    }

    /// Shows the changed files to language servers and adds their errors to the output.
    async fn diagnose(&self, edits: &[(String, FileEdit)], written: &Written, output: &mut Output) {
        let Some(servers) = lsp::host::servers(&self.inner, &self.instance) else { return };
        let mut changes = Vec::new();
        for (file, edit) in edits {
            let Some(real) = real_path(file.clone()).await else { continue };
            let effect = written.of(&real);
            let text = effect.and_then(|effect| effect.after).map(|bytes| String::from_utf8(bytes).ok());
            let kind = match edit {
                FileEdit::Added => Kind::Added,
                FileEdit::Changed => Kind::Changed,
                FileEdit::Removed => Kind::Removed,
            };
            changes.push(Change { path: real, text: text.flatten(), kind });
        }
        let report = servers.changed(changes).await;
        output.output.push_str(&report.text);
        if report.files.is_empty() {
            return;
        }
        let named = |(path, list): (PathBuf, Vec<Diagnostic>)| {
            let list: Vec<_> = list.into_iter().take(MAX_DIAGNOSTICS).collect();
            (path.to_string_lossy().into_owned(), json!(list))
        };
        let files: Map = report.files.into_iter().map(named).collect();
        output.metadata.insert("diagnostics".to_owned(), Value::Object(files));
    }

    /// Formats a file and shows the result in the metadata.
    async fn format(&self, file: &str, &Edits { cx, granted, written }: &Edits<'_>, metadata: &mut Map) {
        let formatters = &self.instance.formatters;
        if !formatters.suits(Path::new(file)) {
            return;
        }
        let Some(held) = reached(file.to_owned()).await else { return };
        let real = held.place.real.clone();
        // A link that was exchanged since the call leads to another file.
        let Some(own) = written.of(&real) else { return };
        // Programs write nothing in this mode, although a rule may permit the edit itself.
        if mode(&self.inner, &self.instance, self.caller.rules.sandbox()) == SandboxMode::ReadOnly {
            return;
        }
        let restricted = match self.restricted(granted).await {
            Ok(restricted) => restricted,
            Err(Failure::Told(reason)) => {
                return self.instance.warn(&format!("formatters do not run: {reason}"));
            }
            Err(Failure::Aborted) => return,
        };
        let instance = &self.instance;
        let (mut directory, mut changes) = (instance.directory.clone(), Changes::default());
        if instance.programs.programs != Programs::All {
            let root = instance.programs.root();
            directory = neutral(&self.inner.dirs, root);
            changes = variables::changes(&self.inner.env, root, &directory);
        }
        let variables: Vec<_> =
            restricted.iter().flat_map(|restricted| restricted.variables.iter().cloned()).collect();
        let runner = Runner {
            confinement: cx.confinement.clone(),
            env: cx.env.set.iter().cloned().chain(changes.set).chain(variables).collect(),
            sandbox: restricted.map(|restricted| visible(&restricted.confined, &directory)),
            env_remove: cx.env.remove.iter().cloned().chain(changes.remove).collect(),
            spill: cx.output_dir.join((cx.new_output_id)()),
            cancel: cx.cancel.clone(),
            directory,
        };
        // A cancelled call leaves the file as it is.
        let Ok(_lock) = cx.locks.lock(&real, &cx.cancel).await else { return };
        let Some(before) = read(held.clone()).await else { return };
        let formatted = formatters.format(&held, &before, &runner).await;
        for problem in &formatted.problems {
            self.instance.warn(problem);
        }
        let Some(content) = formatted.content else { return };
        cx.known.made(&held);
        let is_own = own.after.as_deref() == Some(&before);
        let (after, shown) = (Some(content.clone()), String::from_utf8_lossy(&content).into_owned());
        cx.effects.report(FileEffect { path: real, before: Some(before), after, made: 0 });
        // Another call may have changed the file in between, and then the difference is not only of this call.
        if is_own {
            show(metadata, file, &old_content(metadata, file, written, own), &shown);
        }
    }
}

/// Returns the path of a file without links.
async fn real_path(file: String) -> Option<PathBuf> {
    tokio::task::spawn_blocking(move || physical(Path::new(&file)).ok()).await.ok().flatten()
}

/// Opens the directory of a file.
async fn reached(file: String) -> Option<Held> {
    let opening = tokio::task::spawn_blocking(move || hold(Path::new(&file)).ok());
    opening.await.ok().flatten()
}

async fn read(held: Held) -> Option<Vec<u8>> {
    let reading = tokio::task::spawn_blocking(move || held.read(MAX_TEXT_BYTES).ok());
    reading.await.ok().flatten()
}

/// Returns the content that the diff of a file starts from.
fn old_content(metadata: &Map, file: &str, written: &Written, own: FileEffect) -> String {
    let entry = entries(metadata).find(|entry| target(entry) == Some(file));
    let bytes = match entry {
        // Diffs show added files without the content that they replace.
        Some(entry) if entry["type"] == "add" => None,
        Some(entry) if entry["movePath"].is_string() => {
            let from = entry["filePath"].as_str().and_then(|path| physical(Path::new(path)).ok());
            from.and_then(|from| written.of(&from)?.before)
        }
        _ => own.before,
    };
    String::from_utf8_lossy(&bytes.unwrap_or_default()).into_owned()
}

fn entries(metadata: &Map) -> impl Iterator<Item = &Value> {
    metadata.get("files").and_then(Value::as_array).into_iter().flatten()
}

/// The path of a file of a patch after the change.
fn target(entry: &Value) -> Option<&str> {
    entry["movePath"].as_str().or_else(|| entry["filePath"].as_str())
}

/// Puts the difference between two versions of a file into the metadata of a call, where it contains one.
fn show(metadata: &mut Map, file: &str, old: &str, new: &str) {
    let text = |content: &str| TextFile::parse(content).text;
    if let Some(diff) = metadata.get_mut("filediff").filter(|diff| diff["file"] == file) {
        let new = unified(file, &text(old), &text(new));
        diff["patch"] = json!(new.patch);
        diff["additions"] = json!(new.additions);
        diff["deletions"] = json!(new.deletions);
        metadata.insert("diff".to_owned(), json!(new.patch));
        return;
    }
    let Some(Value::Array(files)) = metadata.get_mut("files") else { return };
    let Some(entry) = files.iter_mut().find(|entry| target(entry) == Some(file)) else { return };
    let name = entry["filePath"].as_str().unwrap_or(file).to_owned();
    let new = unified(&name, &text(old), &text(new));
    entry["patch"] = json!(new.patch);
    entry["additions"] = json!(new.additions);
    entry["deletions"] = json!(new.deletions);
    let patches = files.iter().map(|entry| format!("{}\n", entry["patch"].as_str().unwrap_or_default()));
    let diff: String = patches.collect();
    metadata.insert("diff".to_owned(), json!(diff));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metadata(value: Value) -> Map {
        value.as_object().cloned().unwrap()
    }

    #[test]
    fn the_diff_of_an_edit_shows_the_formatted_file() {
        let mut shown = metadata(json!({
            "diff": "old", "filediff": {"file": "/a", "patch": "old", "additions": 9, "deletions": 9}, "truncated": false,
        }));
        show(&mut shown, "/a", "one\ntwo\n", "one\n2\nmore\n");
        assert_eq!(shown["filediff"]["additions"], 2);
        assert_eq!(shown["filediff"]["deletions"], 1);
        assert_eq!(shown["filediff"]["patch"], shown["diff"]);
        assert!(shown["diff"].as_str().unwrap().ends_with(" one\n-two\n+2\n+more\n"), "{}", shown["diff"]);
    }

    #[test]
    fn the_diff_of_a_patch_shows_every_formatted_file() {
        let entry = |path: &str| json!({"filePath": path, "type": "update", "patch": "p", "additions": 0, "deletions": 0});
        let mut moved = entry("/b");
        moved["movePath"] = json!("/c");
        let mut shown = metadata(json!({"diff": "old", "files": [entry("/a"), moved]}));
        show(&mut shown, "/c", "x\n", "y\n");
        assert_eq!(shown["files"][0]["patch"], "p");
        assert_eq!(shown["files"][1]["additions"], 1);
        let diff = shown["diff"].as_str().unwrap();
        assert!(diff.starts_with("p\nIndex: /b\n") && diff.ends_with("-x\n+y\n\n"), "{diff}");
    }

    #[test]
    fn metadata_without_a_diff_stays_as_it_is() {
        let mut shown = metadata(json!({"filepath": "/a", "exists": true}));
        show(&mut shown, "/a", "x", "y");
        assert_eq!(shown, metadata(json!({"filepath": "/a", "exists": true})));
    }
}
