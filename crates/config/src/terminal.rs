//! The configuration of the terminal client: `tui.json` and the directories of themes.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::document::{Node, schema};
use crate::load::is_mistake;
use crate::{Dirs, Env, FileProblem, Trust, confined, env, file, find_worktree, load, nearest};

/// The keys that need trust in a file of a repository.
const NEED_TRUST: [&str; 3] = ["keybinds", "hyperlinks", "notifications"];
const NAMES: [&str; 2] = ["tui.json", "tui.jsonc"];
const THEMES: &str = "themes";
const DOT: &str = ".opencode";

/// The configuration of the terminal client.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TerminalConfig {
    /// The merged files.
    pub value: Value,
    /// Directories that may contain theme files. Later ones win.
    pub themes: Vec<PathBuf>,
    /// The files that were skipped, with the reasons.
    pub problems: Vec<String>,
}

/// Reads the configuration of the terminal client for a directory, starting with the user's own files.
///
/// In an untrusted repository key bindings are ignored, because a key could be moved to an approval, and so are themes,
/// because colours could hide the text of a question. So are the key that forces links on a terminal, and notifications,
/// which could hide that a request waits.
#[must_use]
pub fn terminal_config(dirs: &Dirs, env: &Env, directory: &Path, trust: Trust) -> TerminalConfig {
    let mut found = TerminalConfig { value: Value::Object(crate::Map::new()), ..TerminalConfig::default() };
    let mut folders = vec![(dirs.config.clone(), None), (dirs.own_config.clone(), None)];
    if !env.is_on(env::DISABLE_PROJECT_CONFIG) {
        let worktree = find_worktree(directory);
        let top = if worktree.git { &worktree.root } else { directory };
        for level in load::levels(top, directory, &dirs.home) {
            let boundary = Some(if worktree.git { worktree.root.clone() } else { level.to_owned() });
            folders.extend([(level.to_owned(), boundary.clone()), (level.join(DOT), boundary)]);
        }
    }
    folders.extend(env.filled(env::CONFIG_DIR).map(|folder| (PathBuf::from(folder), None)));
    let in_folder = |(folder, boundary): &(PathBuf, Option<PathBuf>)| {
        NAMES.map(|name| (folder.join(name), boundary.clone()))
    };
    let mut files: Vec<_> = folders.iter().flat_map(in_folder).collect();
    files.extend(env.filled(env::TUI_CONFIG).map(|file| (PathBuf::from(file), None)));
    for (file, boundary) in files {
        match read(&file, boundary.as_deref()) {
            Ok(Some(mut value)) => {
                if let (Trust::Inert, Some(_), Some(keys)) = (trust, &boundary, value.as_object_mut()) {
                    for key in NEED_TRUST {
                        keys.shift_remove(key);
                    }
                }
                found.problems.extend(faults(&file, &mut value));
                merge_into(&mut found.value, value);
            }
            Ok(None) => {}
            Err(reason) => found.problems.push(format!("`{}` is ignored: {reason}", file.display())),
        }
    }
    let is_used = |boundary: &Option<PathBuf>| trust == Trust::Full || boundary.is_none();
    let folders = folders.into_iter().filter(|(_, boundary)| is_used(boundary));
    found.themes = folders.map(|(folder, _)| folder.join(THEMES)).collect();
    found
}

/// Reads a file of the user, or a file of a repository confined to `boundary`.
fn read(file: &Path, boundary: Option<&Path>) -> Result<Option<Value>, String> {
    let text = match boundary.and_then(|boundary| Some((boundary, file.strip_prefix(boundary).ok()?))) {
        Some((boundary, inside)) => confined::read(boundary, inside, file::MAX_FILE_BYTES)
            .and_then(|bytes| String::from_utf8(bytes).map_err(|_| FileProblem::NotText)),
        None => file::read(file),
    };
    let text = match text {
        Ok(text) => text,
        Err(FileProblem::Missing | FileProblem::Directory | FileProblem::Special) => return Ok(None),
        Err(problem) => return Err(problem.to_string()),
    };
    let parsed = jsonc_parser::cst::CstRootNode::parse(&text, &jsonc_parser::ParseOptions::default());
    let parsed = parsed.map_err(|error| error.to_string())?;
    let Some(value) = parsed.to_serde_value() else { return Ok(None) };
    if value.is_object() { Ok(Some(value)) } else { Err("it is not an object".to_owned()) }
}

/// Removes the values of a wrong type. Returns a line for each of them, and for each misspelt key.
fn faults(file: &Path, value: &mut Value) -> Vec<String> {
    let file = file.display();
    let node = Node::from(&*value);
    let misspelt = schema::unknown_keys(&node, &schema::TERMINAL).into_iter().filter_map(|unknown| {
        let similar = nearest(&unknown.name, unknown.known.iter().copied(), 1);
        let meant = similar.into_iter().find(|similar| is_mistake(&unknown.name, similar))?;
        Some(format!("`{file}`: unknown key `{}`; did you mean `{meant}`?", unknown.path))
    });
    let mut problems: Vec<String> = misspelt.collect();
    let Some(keys) = value.as_object_mut() else { return problems };
    for (key, shape) in schema::TERMINAL_KEYS {
        // The client reports what it cannot read of the keys, and uses the others.
        let Some(node) = keys.get(*key).filter(|_| *key != "keybinds").map(Node::from) else { continue };
        if let Err(fault) = schema::check(&node, shape) {
            let expected = fault.expected;
            problems
                .push(format!("`{file}`: `{key}` is ignored: expected {expected}, found {}", fault.found));
            keys.shift_remove(*key);
        }
    }
    problems
}

fn merge_into(below: &mut Value, above: Value) {
    let (Value::Object(below), Value::Object(above)) = (below, above) else { return };
    for (key, value) in above {
        match below.get_mut(&key) {
            Some(known @ Value::Object(_)) if value.is_object() => merge_into(known, value),
            _ => drop(below.insert(key, value)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_merged_and_a_broken_one_is_ignored() {
        let home = tempfile::tempdir().unwrap();
        let path = |name: &str| home.path().join(name);
        let write = |name: &str, text: &str| {
            std::fs::create_dir_all(path(name).parent().unwrap()).unwrap();
            std::fs::write(path(name), text).unwrap();
        };
        write(".config/opencode/tui.json", r#"{"theme": "nord", "keybinds": {"leader": "ctrl+a"}}"#);
        write(
            "project/tui.jsonc",
            r#"{"keybinds": {"app_exit": "none"}, /* mine */ "mouse": false, "hyperlinks": true, "notifications": false}"#,
        );
        write("project/.opencode/tui.json", "[");
        let env = Env::from_pairs([("HOME", home.path().to_str().unwrap())]);
        let dirs = Dirs::new(&env).unwrap();
        let inert = terminal_config(&dirs, &env, &path("project"), Trust::Inert);
        assert_eq!(inert.value["keybinds"], serde_json::json!({"leader": "ctrl+a"}));
        assert_eq!(inert.value["mouse"], false);
        assert_eq!(inert.value.get("hyperlinks"), None);
        assert_eq!(inert.value.get("notifications"), None);
        assert!(!inert.themes.contains(&path("project/.opencode/themes")));
        let found = terminal_config(&dirs, &env, &path("project"), Trust::Full);
        let expected = serde_json::json!({
            "theme": "nord", "keybinds": {"leader": "ctrl+a", "app_exit": "none"}, "mouse": false, "hyperlinks": true,
            "notifications": false,
        });
        assert_eq!(found.value, expected);
        assert_eq!(found.problems.len(), 1, "{:?}", found.problems);
        assert!(found.problems[0].contains(".opencode/tui.json"));
        assert!(found.themes.contains(&path("project/.opencode/themes")));
    }
    #[test]
    fn misspelt_keys_and_wrong_types_are_reported() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join(".config/opencode/tui.json");
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(
            &path,
            r#"{"notification": true, "mouse": "yes", "notifications": {"bel": false}, "plugin": [], "keybinds": {"preset": "vim", "presett": "x"}}"#,
        )
        .unwrap();
        let env = Env::from_pairs([("HOME", home.path().to_str().unwrap())]);
        let found = terminal_config(&Dirs::new(&env).unwrap(), &env, home.path(), Trust::Full);
        let problems = found.problems.join("\n");
        for expected in [
            "unknown key `notification`; did you mean `notifications`?",
            "unknown key `notifications.bel`; did you mean `bell`?",
            "`mouse` is ignored: expected `true` or `false`, found a string",
        ] {
            assert!(problems.contains(expected), "{expected}\n{problems}");
        }
        assert!(!problems.contains("plugin"), "{problems}");
        assert_eq!(found.value.get("mouse"), None);
        assert_eq!(found.value["keybinds"]["preset"], "vim");
    }
}
