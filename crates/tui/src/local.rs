//! What is kept between starts: what the user chose, earlier prompts, theme files.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::prompt::MAX_HISTORY;
use crate::state::Local;

const CHOICES: &str = "tui.json";
const HISTORY: &str = "prompt-history.jsonl";
/// The longest file that is read.
const MAX_FILE_BYTES: u64 = 4 * 1024 * 1024;
/// How long a remembered prompt may be.
const MAX_PROMPT_BYTES: usize = 64 * 1024;
/// How many theme files are read.
const MAX_THEMES: usize = 500;

/// The files.
#[derive(Debug, Clone)]
pub(crate) struct Files {
    directory: PathBuf,
}

impl Files {
    pub(crate) fn new(directory: PathBuf) -> Self {
        Self { directory }
    }

    /// What the user chose; the error says that the file cannot be read.
    pub(crate) fn choices(&self) -> (Local, Option<String>) {
        let path = self.directory.join(CHOICES);
        let Some(text) = read(&path) else { return (Local::default(), None) };
        match serde_json::from_str(&text) {
            Ok(local) => (local, None),
            Err(error) => {
                let note = format!("`{}` cannot be read and is made anew: {error}", path.display());
                (Local::default(), Some(note))
            }
        }
    }

    pub(crate) fn save(&self, choices: &Value) -> io::Result<()> {
        write(&self.directory.join(CHOICES), &format!("{choices:#}\n"))
    }

    /// Earlier prompts, the newest last.
    pub(crate) fn history(&self) -> Vec<String> {
        let text = read(&self.directory.join(HISTORY)).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        let newest = lines.iter().skip(lines.len().saturating_sub(MAX_HISTORY));
        newest.filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    /// Adds a prompt to those that are kept, among them what other terminals have added meanwhile.
    pub(crate) fn remember(&self, text: &str) -> io::Result<()> {
        if text.len() > MAX_PROMPT_BYTES {
            return Ok(());
        }
        let mut history = self.history();
        history.retain(|known| known != text);
        history.push(text.to_owned());
        let newest = history.iter().rev().take(MAX_HISTORY);
        let mut room = usize::try_from(MAX_FILE_BYTES).unwrap_or(usize::MAX);
        // A file that is longer than what is read would be lost as a whole.
        let mut lines: Vec<String> = newest
            .map(|text| format!("{}\n", Value::from(text.as_str())))
            .take_while(|line| match room.checked_sub(line.len()) {
                Some(left) => {
                    room = left;
                    true
                }
                None => false,
            })
            .collect();
        lines.reverse();
        write(&self.directory.join(HISTORY), &lines.concat())
    }
}

/// The theme files of directories, a later one's before an earlier one's; and what is wrong with them.
pub(crate) fn themes(directories: &[PathBuf]) -> (BTreeMap<String, Value>, Vec<String>) {
    let mut themes = BTreeMap::new();
    let mut wrong = Vec::new();
    for directory in directories {
        let Ok(entries) = fs::read_dir(directory) else { continue };
        for entry in entries.flatten().take(MAX_THEMES) {
            let path = entry.path();
            if path.extension().is_none_or(|extension| extension != "json") {
                continue;
            }
            let Some(name) = path.file_stem().and_then(|name| name.to_str()) else { continue };
            let Some(text) = read(&path) else { continue };
            match serde_json::from_str(&text) {
                Ok(theme) => drop(themes.insert(name.to_owned(), theme)),
                Err(error) => wrong.push(format!("theme file `{}`: {error}", path.display())),
            }
        }
    }
    (themes, wrong)
}

fn read(path: &Path) -> Option<String> {
    let length = fs::metadata(path).ok().filter(fs::Metadata::is_file)?.len();
    (length <= MAX_FILE_BYTES).then(|| fs::read_to_string(path).ok())?
}

/// Writes a file whole or not at all; for its owner alone, because prompts are private.
fn write(path: &Path, text: &str) -> io::Result<()> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    let parent = path.parent().unwrap_or(Path::new("."));
    // Such a file is its owner's alone from the beginning.
    let file = tempfile::NamedTempFile::new_in(parent)?;
    fs::write(file.path(), text)?;
    file.persist(path).map(drop).map_err(|error| error.error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_chosen_comes_back_and_a_broken_file_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let files = Files::new(directory.path().join("state"));
        assert_eq!(files.choices(), (Local::default(), None));
        let local = Local { theme: Some("nord".to_owned()), ..Local::default() };
        files.save(&serde_json::to_value(&local).unwrap()).unwrap();
        assert_eq!(files.choices(), (local, None));
        fs::write(directory.path().join("state").join(CHOICES), "{").unwrap();
        assert!(files.choices().1.unwrap().contains("tui.json"));
    }

    #[test]
    fn the_newest_prompts_are_remembered() {
        let directory = tempfile::tempdir().unwrap();
        let files = Files::new(directory.path().to_owned());
        let history: Vec<String> = (0..MAX_HISTORY).map(|at| format!("{at}\nline")).collect();
        files.remember("the oldest").unwrap();
        for text in &history {
            files.remember(text).unwrap();
        }
        assert_eq!(files.history(), history);
    }

    #[test]
    fn prompts_of_two_terminals_are_kept_side_by_side() {
        let directory = tempfile::tempdir().unwrap();
        let one = Files::new(directory.path().to_owned());
        let other = Files::new(directory.path().to_owned());
        one.remember("first").unwrap();
        other.remember("second").unwrap();
        one.remember("third").unwrap();
        other.remember("first").unwrap();
        assert_eq!(one.history(), ["second", "third", "first"]);
    }

    #[test]
    fn no_more_prompts_are_kept_than_can_be_read_again() {
        let directory = tempfile::tempdir().unwrap();
        let files = Files::new(directory.path().to_owned());
        // Each of these characters takes six bytes in the file.
        let long: Vec<String> = (0..20).map(|at| format!("{at}{}", "\u{1}".repeat(60_000))).collect();
        for text in &long {
            files.remember(text).unwrap();
        }
        let kept = files.history();
        assert!(kept.len() > 5 && long.ends_with(&kept), "{}", kept.len());
    }

    #[test]
    fn theme_files_are_found_and_broken_ones_named() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("mine.json"), "{}").unwrap();
        fs::write(directory.path().join("bad.json"), "{").unwrap();
        fs::write(directory.path().join("note.txt"), "").unwrap();
        let (themes, wrong) = themes(&[directory.path().to_owned(), "/nowhere".into()]);
        assert_eq!(themes.keys().collect::<Vec<_>>(), ["mine"]);
        assert!(wrong[0].contains("bad.json"));
    }
}
