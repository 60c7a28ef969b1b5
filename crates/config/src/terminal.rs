//! What the files for the terminal client say: `tui.json` and the folders of themes.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::{Dirs, Env, env, find_worktree};

const NAMES: [&str; 2] = ["tui.json", "tui.jsonc"];
const THEMES: &str = "themes";
const DOT: &str = ".opencode";
/// The longest file that is read.
const MAX_FILE_BYTES: u64 = 1024 * 1024;

/// What holds for the terminal client.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TerminalConfig {
    /// The files, laid over each other; `keybinds` are laid over each other key by key.
    pub value: Value,
    /// Folders that may hold theme files, the strongest last.
    pub themes: Vec<PathBuf>,
    /// What is wrong with files, which are passed over then.
    pub wrong: Vec<String>,
}

/// Reads what holds for the terminal client in a directory, the user's own files first.
#[must_use]
pub fn terminal_config(dirs: &Dirs, env: &Env, directory: &Path) -> TerminalConfig {
    let mut found = TerminalConfig { value: Value::Object(crate::Map::new()), ..TerminalConfig::default() };
    let mut folders = vec![dirs.config.clone(), dirs.own_config.clone()];
    if !env.is_on(env::DISABLE_PROJECT_CONFIG) {
        let worktree = find_worktree(directory);
        let within = |above: &&Path| worktree.git && above.starts_with(&worktree.root);
        let mut above: Vec<&Path> = directory.ancestors().take_while(within).collect();
        if above.is_empty() {
            above.push(directory);
        }
        for place in above.into_iter().rev() {
            folders.extend([place.to_owned(), place.join(DOT)]);
        }
    }
    folders.extend(env.filled(env::CONFIG_DIR).map(PathBuf::from));
    let mut files: Vec<PathBuf> =
        folders.iter().flat_map(|folder| NAMES.map(|name| folder.join(name))).collect();
    files.extend(env.filled(env::TUI_CONFIG).map(PathBuf::from));
    for file in files {
        match read(&file) {
            Ok(Some(value)) => lay_over(&mut found.value, value),
            Ok(None) => {}
            Err(reason) => found.wrong.push(format!("`{}` is passed over: {reason}", file.display())),
        }
    }
    found.themes = folders.into_iter().map(|folder| folder.join(THEMES)).collect();
    found
}

fn read(file: &Path) -> Result<Option<Value>, String> {
    let Ok(about) = std::fs::metadata(file) else { return Ok(None) };
    if !about.is_file() {
        return Ok(None);
    }
    if about.len() > MAX_FILE_BYTES {
        return Err(format!("it has more than {} KiB", MAX_FILE_BYTES / 1024));
    }
    let text = std::fs::read_to_string(file).map_err(|error| error.to_string())?;
    let parsed = jsonc_parser::cst::CstRootNode::parse(&text, &jsonc_parser::ParseOptions::default());
    let parsed = parsed.map_err(|error| error.to_string())?;
    let Some(value) = parsed.to_serde_value() else { return Ok(None) };
    if value.is_object() { Ok(Some(value)) } else { Err("it is not an object".to_owned()) }
}

fn lay_over(below: &mut Value, above: Value) {
    let (Value::Object(below), Value::Object(above)) = (below, above) else { return };
    for (key, value) in above {
        match below.get_mut(&key) {
            Some(known @ Value::Object(_)) if value.is_object() => lay_over(known, value),
            _ => drop(below.insert(key, value)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_laid_over_each_other_and_a_broken_one_is_passed_over() {
        let home = tempfile::tempdir().unwrap();
        let path = |name: &str| home.path().join(name);
        let write = |name: &str, text: &str| {
            std::fs::create_dir_all(path(name).parent().unwrap()).unwrap();
            std::fs::write(path(name), text).unwrap();
        };
        write(".config/opencode/tui.json", r#"{"theme": "nord", "keybinds": {"leader": "ctrl+a"}}"#);
        write("project/tui.jsonc", r#"{"keybinds": {"app_exit": "none"}, /* mine */ "mouse": false,}"#);
        write("project/.opencode/tui.json", "[");
        let env = Env::from_pairs([("HOME", home.path().to_str().unwrap())]);
        let dirs = Dirs::new(&env).unwrap();
        let found = terminal_config(&dirs, &env, &path("project"));
        let expected = serde_json::json!({
            "theme": "nord", "keybinds": {"leader": "ctrl+a", "app_exit": "none"}, "mouse": false,
        });
        assert_eq!(found.value, expected);
        assert_eq!(found.wrong.len(), 1, "{:?}", found.wrong);
        assert!(found.wrong[0].contains(".opencode/tui.json"));
        assert!(found.themes.contains(&path("project/.opencode/themes")));
    }
}
