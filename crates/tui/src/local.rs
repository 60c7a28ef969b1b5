//! What is kept between starts: what the user chose, earlier prompts, theme files.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::prompt::{Body, Chip, Draft, MAX_HISTORY};
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
    pub(crate) fn history(&self) -> Vec<Draft> {
        let text = read(&self.directory.join(HISTORY)).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        let newest = lines.iter().skip(lines.len().saturating_sub(MAX_HISTORY));
        newest.filter_map(|line| remembered(&serde_json::from_str(line).ok()?)).collect()
    }

    /// Adds a prompt to those that are kept, among them what other terminals have added meanwhile.
    ///
    /// Pictures are not kept: they may show anything, and are large.
    pub(crate) fn remember(&self, draft: &Draft) -> io::Result<()> {
        let draft = draft.clone().without_pictures();
        if draft.text.is_empty() || kept(&draft).to_string().len() > MAX_PROMPT_BYTES {
            return Ok(());
        }
        let mut history = self.history();
        history.retain(|known| *known != draft);
        history.push(draft);
        let newest = history.iter().rev().take(MAX_HISTORY);
        let mut room = usize::try_from(MAX_FILE_BYTES).unwrap_or(usize::MAX);
        // A file that is longer than what is read would be lost as a whole.
        let mut lines: Vec<String> = newest
            .map(|draft| format!("{}\n", kept(draft)))
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

/// A prompt as a line of the file: a text, or an object where there is more than that.
fn kept(draft: &Draft) -> Value {
    if draft.chips.is_empty() {
        return Value::from(if draft.shell { format!("!{}", draft.text) } else { draft.text.clone() });
    }
    let chips = draft.chips.iter().filter_map(|chip| {
        let (kind, body) = match &chip.body {
            Body::Paste(text) => ("paste", text),
            Body::File(path) => ("file", path),
            Body::Agent(name) => ("agent", name),
            Body::Picture { .. } => return None,
        };
        Some(json!({"label": chip.label, kind: body}))
    });
    json!({"text": draft.text, "shell": draft.shell, "chips": chips.collect::<Vec<_>>()})
}

fn remembered(line: &Value) -> Option<Draft> {
    if let Some(text) = line.as_str() {
        // A command line must not come back as a prompt for the model.
        let command = text.strip_prefix('!');
        return Some(Draft { shell: command.is_some(), ..Draft::from(command.unwrap_or(text)) });
    }
    let chips = line["chips"].as_array()?.iter().filter_map(|chip| {
        let text = |key: &str| chip[key].as_str().map(str::to_owned);
        let body = text("paste").map(Body::Paste).or_else(|| text("file").map(Body::File));
        Some(Chip { label: text("label")?, body: body.or_else(|| text("agent").map(Body::Agent))? })
    });
    let shell = line["shell"].as_bool().unwrap_or(false);
    Some(Draft { text: line["text"].as_str()?.to_owned(), chips: chips.collect(), shell })
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
        fs::DirBuilder::new().recursive(true).mode(0o700).create(parent)?;
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

    fn text(text: &str) -> Draft {
        Draft::from(text)
    }

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
        let history = (0..MAX_HISTORY).map(|at| Draft { shell: at % 7 == 0, ..text(&format!("{at}\nline")) });
        let history: Vec<Draft> = history.collect();
        files.remember(&text("the oldest")).unwrap();
        for draft in &history {
            files.remember(draft).unwrap();
        }
        assert_eq!(files.history(), history);
    }

    #[test]
    fn prompts_of_two_terminals_are_kept_side_by_side() {
        let directory = tempfile::tempdir().unwrap();
        let one = Files::new(directory.path().to_owned());
        let other = Files::new(directory.path().to_owned());
        one.remember(&text("first")).unwrap();
        other.remember(&text("second")).unwrap();
        one.remember(&text("third")).unwrap();
        other.remember(&text("first")).unwrap();
        assert_eq!(one.history(), ["second", "third", "first"].map(text));
    }

    #[test]
    fn no_more_prompts_are_kept_than_can_be_read_again() {
        let directory = tempfile::tempdir().unwrap();
        let files = Files::new(directory.path().to_owned());
        // Each of these characters takes six bytes in the file.
        let long: Vec<Draft> = (0..90).map(|at| text(&format!("{at}{}", "\u{1}".repeat(10_000)))).collect();
        for draft in &long {
            files.remember(draft).unwrap();
        }
        let kept = files.history();
        assert!(kept.len() > 5 && long.ends_with(&kept), "{}", kept.len());
    }

    #[test]
    fn what_was_attached_is_remembered_but_for_pictures() {
        let directory = tempfile::tempdir().unwrap();
        let files = Files::new(directory.path().to_owned());
        let chip = |label: &str, body| Chip { label: label.to_owned(), body };
        let picture = Body::Picture { mime: "image/png", url: "data:image/png;base64,AAAA".into() };
        let draft = Draft {
            text: "see @a.rs [Pasted ~9 lines] @explore [Image 1]".to_owned(),
            chips: vec![
                chip("@a.rs", Body::File("a.rs".to_owned())),
                chip("[Pasted ~9 lines]", Body::Paste("nine\nlines".to_owned())),
                chip("@explore", Body::Agent("explore".to_owned())),
                chip("[Image 1]", picture),
            ],
            shell: false,
        };
        files.remember(&draft).unwrap();
        assert_eq!(files.history(), [draft.without_pictures()]);
        assert!(!fs::read_to_string(directory.path().join(HISTORY)).unwrap().contains("AAAA"));
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
