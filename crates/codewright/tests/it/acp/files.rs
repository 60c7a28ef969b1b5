//! The files of an editor: documents that are not saved are read and written through it.

use std::path::Path;

use anyhow::{Context as _, Result};
use codewright_testkit::{Script, Turn};
use serde_json::{Value, json};

use super::{Editor, prompt};
use crate::support::Stage;

impl Editor {
    /// Initializes a connection of an editor that offers its files, and creates a session.
    fn session_with_files(&mut self, directory: &Path, more: &Value) -> Result<String> {
        let mut capabilities = json!({"fs": {"readTextFile": true, "writeTextFile": true}});
        for (key, value) in more.as_object().into_iter().flatten() {
            capabilities[key] = value.clone();
        }
        self.call("initialize", &json!({"protocolVersion": 1, "clientCapabilities": capabilities}))?;
        let session = self.call("session/new", &json!({"cwd": directory, "mcpServers": []}))?;
        Ok(session["sessionId"].as_str().context("an id")?.to_owned())
    }
}

fn edit(old: &str, new: &str) -> Turn {
    Turn::steps().tool("edit", json!({"filePath": "a.txt", "oldString": old, "newString": new})).into()
}

#[test]
fn unsaved_documents_are_read_and_edited_through_the_editor() -> Result<()> {
    let read = Turn::steps().tool("read", json!({"filePath": "a.txt"}));
    let script = Script::new().turn(read).turn(edit("unsaved", "edited")).turn(Turn::text("Done."));
    let stage = Stage::git(script)?;
    let path = stage.project.write("a.txt", "saved\n")?;
    let mut editor = Editor::start(&stage.project)?;
    editor.documents.insert(path.display().to_string(), "unsaved\nmore\n".to_owned());
    let session = editor.session_with_files(stage.project.directory(), &json!({}))?;
    editor.prompt(&session, "edit it")?;
    assert!(stage.results(1)?[0].contains("1: unsaved"), "{:?}", stage.results(1)?);
    assert_eq!(stage.project.read("a.txt")?, "edited\nmore\n");
    assert_eq!(editor.documents[&path.display().to_string()], "edited\nmore\n");
    let completed = editor.of_kind("tool_call_update");
    let completed = completed.iter().rfind(|update| update["status"] == "completed").context("a result")?;
    let diff = completed["rawOutput"]["metadata"]["diff"].as_str().context("a diff")?;
    assert!(diff.contains("-unsaved\n+edited\n") && !diff.contains("saved\n-"), "{diff}");
    editor.close()?;
    // Undo restores what the user had typed.
    let stored = stage.stored()?;
    let id = stored[0]["info"]["sessionID"].as_str().context("no session")?;
    stage.program(["session", "undo", id]).finish()?.success()?;
    assert_eq!(stage.project.read("a.txt")?, "unsaved\nmore\n");
    Ok(())
}

#[test]
fn a_wrong_answer_of_the_editor_loses_nothing() -> Result<()> {
    // The editor reports success and does not save, or has no such document.
    for has_document in [true, false] {
        let script = Script::new().turn(edit("saved", "edited")).turn(Turn::text("Done."));
        let stage = Stage::git(script)?;
        let path = stage.project.write("a.txt", "saved\n")?;
        let mut editor = Editor::start(&stage.project)?;
        editor.saves = false;
        if has_document {
            editor.documents.insert(path.display().to_string(), "saved\n".to_owned());
        }
        let session = editor.session_with_files(stage.project.directory(), &json!({}))?;
        editor.prompt(&session, "edit it")?;
        assert_eq!(stage.project.read("a.txt")?, "edited\n");
        editor.close()?;
    }
    Ok(())
}

#[test]
fn files_outside_behind_links_and_of_other_capabilities_are_not_requested() -> Result<()> {
    let read = |path: &Path| Turn::steps().tool("read", json!({"filePath": path}));
    let outside = tempfile::tempdir()?;
    let outside_file = outside.path().join("o.txt");
    std::fs::write(&outside_file, "outside\n")?;
    let link = Path::new("link.txt");
    let script = Script::new().turn(read(&outside_file)).turn(read(link)).turn(Turn::text("Done."));
    let stage = Stage::git(script)?;
    stage.project.write("a.txt", "saved\n")?;
    std::os::unix::fs::symlink("a.txt", stage.project.path("link.txt"))?;
    let mut editor = Editor::start(&stage.project)?;
    let session = editor.session_with_files(stage.project.directory(), &json!({}))?;
    editor.prompt(&session, "read them")?;
    assert_eq!(editor.file_requests, Vec::<Value>::new());
    let results = stage.results(2)?.join("\n");
    assert!(results.contains("outside") && results.contains("saved"), "{results}");
    editor.close()?;

    let stage = Stage::git(Script::new().turn(edit("saved", "edited")).turn(Turn::text("Done.")))?;
    stage.project.write("a.txt", "saved\n")?;
    let mut editor = Editor::start(&stage.project)?;
    let session =
        editor.session_with_files(stage.project.directory(), &json!({"fs": {"writeTextFile": true}}))?;
    editor.call("session/prompt", &prompt(&session, "edit it"))?;
    assert_eq!(editor.file_requests, Vec::<Value>::new(), "a change needs the text of the document");
    assert_eq!(stage.project.read("a.txt")?, "edited\n");
    editor.close()
}

#[test]
fn the_output_of_a_command_is_shown_like_a_terminal() -> Result<()> {
    let command = json!({"command": "echo one; echo two >&2; exit 3", "description": "run"});
    let script = Script::new().turn(Turn::steps().tool("bash", command)).turn(Turn::text("Done."));
    let stage = Stage::git(script)?;
    let mut editor = Editor::start(&stage.project)?;
    let offer = json!({"_meta": {"terminal_output": true}});
    let session = editor.session_with_files(stage.project.directory(), &offer)?;
    editor.prompt(&session, "run it")?;
    let announced = &editor.of_kind("tool_call")[0];
    let id = announced["toolCallId"].clone();
    assert_eq!(announced["_meta"]["terminal_info"]["terminal_id"], id);
    assert_eq!(announced["content"][0], json!({"type": "terminal", "terminalId": id}));
    let updates = editor.of_kind("tool_call_update");
    let shown: String =
        updates.iter().filter_map(|it| it["_meta"]["terminal_output"]["data"].as_str()).collect();
    assert!(shown.contains("one") && shown.contains("two"), "{shown}");
    assert_eq!(shown.matches("one").count(), 1, "nothing is shown twice: {shown}");
    let last = updates.iter().rfind(|it| it["status"] == "completed").context("a result")?;
    assert_eq!(last["_meta"]["terminal_exit"], json!({"terminal_id": id, "exit_code": 3, "signal": null}));
    editor.close()
}
