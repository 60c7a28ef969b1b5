//! The client's files: the user's choices, the prompt history and theme files.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::layer::findings::Dismissed;
use crate::prompt::{Body, Chip, Draft, MAX_HISTORY};
use crate::state::Local;

const CHOICES: &str = "tui.json";
const HISTORY: &str = "prompt-history.jsonl";
const DISMISSED: &str = "dismissed-findings.json";
/// The maximum number of reviews whose dismissed findings are stored.
const MAX_REVIEWS: usize = 200;
/// The maximum number of dismissed findings of a review.
const MAX_DISMISSED: usize = 1000;
/// The maximum size of a file.
const MAX_FILE_BYTES: u64 = 4 * 1024 * 1024;
/// The maximum size of a prompt in the history.
const MAX_PROMPT_BYTES: usize = 64 * 1024;
/// The maximum number of theme files.
const MAX_THEMES: usize = 500;

/// The files of the state directory.
#[derive(Debug, Clone)]
pub(crate) struct Files {
    directory: PathBuf,
}

impl Files {
    pub(crate) fn new(directory: PathBuf) -> Self {
        Self { directory }
    }

    /// Returns the user's choices, and a warning if the file is invalid.
    pub(crate) fn choices(&self) -> (Local, Option<String>) {
        let path = self.directory.join(CHOICES);
        let Some(text) = read(&path) else { return (Local::default(), None) };
        match serde_json::from_str(&text) {
            Ok(local) => (local, None),
            Err(error) => {
                let note = format!("cannot read `{}`, using the defaults: {error}", path.display());
                (Local::default(), Some(note))
            }
        }
    }

    pub(crate) fn save(&self, choices: &Value) -> io::Result<()> {
        write(&self.directory.join(CHOICES), &format!("{choices:#}\n"))
    }

    /// Returns the prompt history, newest last.
    pub(crate) fn history(&self) -> Vec<Draft> {
        let text = read(&self.directory.join(HISTORY)).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        let newest = lines.iter().skip(lines.len().saturating_sub(MAX_HISTORY));
        newest.filter_map(|line| parse_draft(&serde_json::from_str(line).ok()?)).collect()
    }

    /// Adds a prompt to the history. Prompts that other terminals have added meanwhile are kept.
    ///
    /// Pictures are not stored, because they are large and may be private.
    pub(crate) fn remember(&self, draft: &Draft) -> io::Result<()> {
        let draft = draft.clone().without_pictures();
        if draft.text.is_empty() || to_line(&draft).to_string().len() > MAX_PROMPT_BYTES {
            return Ok(());
        }
        let mut history = self.history();
        history.retain(|known| *known != draft);
        history.push(draft);
        let newest = history.iter().rev().take(MAX_HISTORY);
        let mut room = usize::try_from(MAX_FILE_BYTES).unwrap_or(usize::MAX);
        // A file larger than the limit would not be read at all.
        let mut lines: Vec<String> = newest
            .map(|draft| format!("{}\n", to_line(draft)))
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

    /// Returns the findings that the user dismissed.
    pub(crate) fn dismissed(&self) -> Dismissed {
        let text = read(&self.directory.join(DISMISSED)).unwrap_or_default();
        serde_json::from_str(&text).unwrap_or_default()
    }

    /// Adds a dismissed finding. Those that other terminals have dismissed meanwhile are kept.
    pub(crate) fn dismiss(&self, session: &str, key: &str) -> io::Result<()> {
        let mut all = self.dismissed();
        let keys = all.entry(session.to_owned()).or_default();
        if keys.len() >= MAX_DISMISSED {
            keys.pop_first();
        }
        keys.insert(key.to_owned());
        // The ids of sessions begin with the time, and the newest sort first.
        let is_too_large = |all: &Dismissed| {
            let size: usize = all.values().flatten().map(|key| key.len() + 8).sum();
            all.len() > MAX_REVIEWS || size as u64 > MAX_FILE_BYTES / 2
        };
        while all.len() > 1 && is_too_large(&all) {
            all.pop_last();
        }
        write(&self.directory.join(DISMISSED), &json!(all).to_string())
    }
}

/// Converts a prompt to a line of the file: a string, or an object if it has attachments.
fn to_line(draft: &Draft) -> Value {
    if draft.chips.is_empty() {
        return Value::from(if draft.shell { format!("!{}", draft.text) } else { draft.text.clone() });
    }
    let chips = draft.chips.iter().filter_map(|chip| {
        let (kind, body) = match &chip.body {
            Body::Paste(text) => ("paste", text.clone()),
            Body::File(path) => ("file", path.clone()),
            // A symbol may move until the prompt is recalled, and then its lines are only a file.
            Body::Symbol(symbol) => ("file", symbol.file()),
            Body::Agent(name) => ("agent", name.clone()),
            // The server may offer other resources by then.
            Body::Resource(_) | Body::Picture { .. } => return None,
        };
        Some(json!({"label": chip.label, kind: body}))
    });
    json!({"text": draft.text, "shell": draft.shell, "chips": chips.collect::<Vec<_>>()})
}

fn parse_draft(line: &Value) -> Option<Draft> {
    if let Some(text) = line.as_str() {
        // A shell command must not be restored as a prompt for the model.
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

/// Returns the theme files of directories and warnings about invalid ones. Later directories override earlier ones.
pub(crate) fn themes(directories: &[PathBuf]) -> (BTreeMap<String, Value>, Vec<String>) {
    let mut themes = BTreeMap::new();
    let mut warnings = Vec::new();
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
                Err(error) => warnings.push(format!("theme file `{}`: {error}", path.display())),
            }
        }
    }
    (themes, warnings)
}

fn read(path: &Path) -> Option<String> {
    let length = fs::metadata(path).ok().filter(fs::Metadata::is_file)?.len();
    (length <= MAX_FILE_BYTES).then(|| fs::read_to_string(path).ok())?
}

/// Writes a file atomically, readable only by its owner because prompts are private.
fn write(path: &Path, text: &str) -> io::Result<()> {
    if let Some(parent) = path.parent() {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(parent)?;
    }
    let parent = path.parent().unwrap_or(Path::new("."));
    // Temporary files are readable only by their owner.
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
    fn choices_are_restored_and_an_invalid_file_causes_a_warning() {
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
    fn the_newest_prompts_are_stored() {
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
    fn prompts_of_two_terminals_are_merged() {
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
    fn the_history_never_exceeds_the_size_limit() {
        let directory = tempfile::tempdir().unwrap();
        let files = Files::new(directory.path().to_owned());
        // Each of these characters needs six bytes in the file.
        let long: Vec<Draft> = (0..90).map(|at| text(&format!("{at}{}", "\u{1}".repeat(10_000)))).collect();
        for draft in &long {
            files.remember(draft).unwrap();
        }
        let kept = files.history();
        assert!(kept.len() > 5 && long.ends_with(&kept), "{}", kept.len());
    }

    #[test]
    fn attachments_are_stored_except_pictures() {
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
    fn dismissed_findings_of_the_newest_reviews_are_kept() {
        let directory = tempfile::tempdir().unwrap();
        let (one, other) = (Files::new(directory.path().to_owned()), Files::new(directory.path().to_owned()));
        assert!(one.dismissed().is_empty());
        one.dismiss("ses_9", "a.rs First").unwrap();
        other.dismiss("ses_9", "a.rs Second").unwrap();
        let keys: Vec<String> = one.dismissed()["ses_9"].iter().cloned().collect();
        assert_eq!(keys, ["a.rs First", "a.rs Second"]);
        for number in 0..MAX_REVIEWS {
            one.dismiss(&format!("ses_1{number:03}"), "x").unwrap();
        }
        let kept = one.dismissed();
        assert!(kept.len() == MAX_REVIEWS && !kept.contains_key("ses_9"));
        fs::write(directory.path().join(DISMISSED), "{").unwrap();
        assert!(one.dismissed().is_empty());
        one.dismiss("ses_9", "x").unwrap();
        assert_eq!(one.dismissed().len(), 1);
    }

    #[test]
    fn theme_files_are_read_and_invalid_ones_cause_warnings() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("mine.json"), "{}").unwrap();
        fs::write(directory.path().join("bad.json"), "{").unwrap();
        fs::write(directory.path().join("note.txt"), "").unwrap();
        let (themes, warnings) = themes(&[directory.path().to_owned(), "/nowhere".into()]);
        assert_eq!(themes.keys().collect::<Vec<_>>(), ["mine"]);
        assert!(warnings[0].contains("bad.json"));
    }
}
