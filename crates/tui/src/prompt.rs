//! The prompt: its text, attachments, completions and history.

use std::sync::Arc;

use base64::Engine as _;
use codewright_proto::{PartInput, media_type};
use serde_json::json;

use crate::channel::Context;
use crate::clipboard::Picture;
use crate::editor::Editor;
use crate::resource::Resource;
use crate::symbol::Symbol;

/// The number of lines from which a pasted text is displayed as a label.
const PASTE_LINES: usize = 4;
/// The number of characters from which a pasted text is displayed as a label.
const PASTE_CHARS: usize = 400;
/// The maximum number of prompts in the history.
pub(crate) const MAX_HISTORY: usize = 200;
/// The maximum size of the history, without pictures.
const MAX_HISTORY_BYTES: usize = 16 * 1024 * 1024;
/// The number of newest prompts that keep their pictures.
const HISTORY_PICTURES: usize = 3;

/// An attachment, which is a label in the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Chip {
    pub(crate) label: String,
    pub(crate) body: Body,
}

/// The content of an attachment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Body {
    /// Pasted text, which replaces the label when the prompt is sent.
    Paste(String),
    /// A file, by its path.
    File(String),
    /// A symbol of a language server.
    Symbol(Symbol),
    /// A resource of an MCP server.
    Resource(Resource),
    /// An agent, by its name.
    Agent(String),
    /// A picture, as a `data:` URL.
    Picture { mime: &'static str, url: Arc<str> },
}

/// The completions of the word at the cursor.
#[derive(Debug, Clone, Default)]
pub(crate) struct Completion {
    /// The start of the word.
    pub(crate) from: usize,
    /// The typed part of the word, without its mark.
    pub(crate) query: String,
    pub(crate) offers: Vec<Offer>,
    pub(crate) selected: usize,
}

/// One completion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Offer {
    pub(crate) label: String,
    pub(crate) detail: String,
    pub(crate) pick: Pick,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Pick {
    Action(crate::keys::Action),
    Command(String),
    File(String),
    Symbol(Symbol),
    Resource(Resource),
    Agent(String),
    /// A text of the editor in whose terminal the client runs.
    Editor(Context),
}

/// The text of a prompt with its attachments.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Draft {
    pub(crate) text: String,
    pub(crate) chips: Vec<Chip>,
    /// Whether the text is a shell command.
    pub(crate) shell: bool,
}

impl Draft {
    /// Returns the size in bytes, without pictures.
    fn weight(&self) -> usize {
        let held = |chip: &Chip| match &chip.body {
            Body::Paste(text) | Body::File(text) | Body::Agent(text) => text.len(),
            Body::Symbol(symbol) => symbol.path.len() + symbol.name.len(),
            Body::Resource(resource) => resource.uri.len() + resource.name.len(),
            Body::Picture { .. } => 0,
        };
        self.text.len() + self.chips.iter().map(held).sum::<usize>()
    }

    /// Returns the text with pasted texts in the place of their labels.
    pub(crate) fn whole_text(&self) -> String {
        whole_text(&self.text, &self.chips)
    }

    /// Returns the draft without pictures and their labels.
    pub(crate) fn without_pictures(mut self) -> Self {
        let (pictures, kept): (Vec<Chip>, Vec<Chip>) =
            self.chips.into_iter().partition(|chip| matches!(chip.body, Body::Picture { .. }));
        for chip in pictures {
            self.text = self.text.replacen(&chip.label, "", 1);
        }
        self.text.truncate(self.text.trim_end().len());
        self.chips = kept;
        self
    }
}

impl From<&str> for Draft {
    fn from(text: &str) -> Self {
        Self { text: text.to_owned(), ..Self::default() }
    }
}

/// The prompt.
#[derive(Debug, Default)]
pub(crate) struct Prompt {
    pub(crate) editor: Editor,
    pub(crate) chips: Vec<Chip>,
    /// Whether the text is a shell command.
    pub(crate) shell: bool,
    pub(crate) completion: Option<Completion>,
    /// The history, newest last.
    pub(crate) history: Vec<Draft>,
    /// The index of the recalled prompt, and the draft before it was recalled.
    recalled: Option<(usize, Draft)>,
    pastes: usize,
}

impl Prompt {
    pub(crate) fn is_empty(&self) -> bool {
        self.editor.is_empty()
    }

    pub(crate) fn clear(&mut self) {
        self.editor.take();
        self.chips.clear();
        self.completion = None;
        self.recalled = None;
        self.shell = false;
    }

    /// Returns the current text and attachments.
    pub(crate) fn draft(&self) -> Draft {
        Draft { text: self.editor.text().to_owned(), chips: self.chips.clone(), shell: self.shell }
    }

    /// Whether a picture is attached.
    pub(crate) fn has_picture(&self) -> bool {
        let text = self.editor.text();
        let attached = self.chips.iter().filter(|chip| text.contains(&chip.label));
        attached.into_iter().any(|chip| match &chip.body {
            Body::Picture { .. } => true,
            Body::File(path) => media_type(lines_of(path).0).starts_with("image/"),
            Body::Paste(_) | Body::Symbol(_) | Body::Resource(_) | Body::Agent(_) => false,
        })
    }

    /// Restores a draft.
    pub(crate) fn restore(&mut self, draft: Draft) {
        self.editor.set(draft.text);
        self.chips = draft.chips;
        self.shell = draft.shell;
    }

    /// Inserts a pasted text. A long text becomes an attachment.
    pub(crate) fn paste(&mut self, text: &str) {
        let text = text.replace("\r\n", "\n").replace('\r', "\n");
        let text = crate::clean::clean(&text);
        let lines = text.trim_end().lines().count();
        if lines < PASTE_LINES && text.chars().count() < PASTE_CHARS {
            return self.editor.insert(&text);
        }
        self.pastes += 1;
        let nth = self.pastes;
        let label = if nth == 1 {
            format!("[Pasted ~{lines} lines]")
        } else {
            format!("[Pasted #{nth} ~{lines} lines]")
        };
        self.attach(label, Body::Paste(text));
    }

    /// Inserts the label of an attachment.
    pub(crate) fn attach(&mut self, label: String, body: Body) {
        self.editor.insert(&label);
        self.editor.insert(" ");
        self.chips.retain(|chip| chip.label != label);
        self.chips.push(Chip { label, body });
    }

    /// Attaches a picture that has no file.
    pub(crate) fn attach_picture(&mut self, picture: &Picture) {
        let is_used = |nth: usize| self.chips.iter().any(|chip| chip.label == format!("[Image {nth}]"));
        let nth = (1..).find(|nth| !is_used(*nth)).unwrap_or(1);
        let encoded = base64::engine::general_purpose::STANDARD.encode(&picture.bytes);
        let url = format!("data:{};base64,{encoded}", picture.mime).into();
        self.attach(format!("[Image {nth}]"), Body::Picture { mime: picture.mime, url });
    }

    /// Deletes before the cursor. In an empty prompt it ends shell mode.
    pub(crate) fn backspace(&mut self) {
        if self.shell && self.editor.is_empty() {
            self.shell = false;
        } else {
            self.delete_before();
        }
    }

    /// Deletes the character or the label before the cursor.
    pub(crate) fn delete_before(&mut self) {
        let before = self.editor.before();
        let label =
            self.chips.iter().find(|chip| before.ends_with(&chip.label)).map(|chip| chip.label.clone());
        match label {
            Some(label) => {
                let cursor = self.editor.cursor();
                self.editor.delete(cursor - label.len()..cursor);
                self.chips.retain(|chip| chip.label != label);
            }
            None => self.editor.delete_before(),
        }
    }

    /// Returns the text with pasted texts in the place of their labels.
    pub(crate) fn whole_text(&self) -> String {
        whole_text(self.editor.text(), &self.chips)
    }

    /// Returns the parts to send.
    pub(crate) fn parts(&self, directory: &str) -> Vec<PartInput> {
        let text = self.whole_text();
        let mut parts = vec![PartInput::text(text.trim())];
        for chip in &self.chips {
            let Some(start) = text.find(&chip.label) else { continue };
            let source = json!({"value": chip.label, "start": start, "end": start + chip.label.len()});
            match &chip.body {
                Body::Paste(_) => {}
                Body::Agent(name) => {
                    parts.push(PartInput::Agent { id: None, name: name.clone(), source: Some(source) });
                }
                Body::File(path) => parts.push(file(path, directory, source)),
                Body::Symbol(symbol) => {
                    let mut part = file(&symbol.file(), directory, source.clone());
                    if let PartInput::File { source: shown, .. } = &mut part {
                        *shown = Some(symbol.source(source));
                    }
                    parts.push(part);
                }
                Body::Resource(resource) => parts.push(PartInput::File {
                    id: None,
                    mime: resource.mime.clone(),
                    filename: Some(resource.name.clone()),
                    url: resource.uri.clone(),
                    source: Some(resource.source(source)),
                    checked: None,
                }),
                Body::Picture { mime, url } => {
                    let name = chip.label.trim_matches(['[', ']']).to_lowercase().replace(' ', "-");
                    parts.push(PartInput::File {
                        id: None,
                        mime: (*mime).to_owned(),
                        filename: Some(format!("{name}.{}", mime.trim_start_matches("image/"))),
                        url: url.to_string(),
                        source: Some(json!({"type": "file", "path": chip.label, "text": source})),
                        checked: None,
                    });
                }
            }
        }
        parts
    }

    /// Adds a prompt with its attachments to the history. Older prompts lose their pictures.
    pub(crate) fn remember(&mut self, draft: Draft) {
        self.history.retain(|known| *known != draft);
        self.history.push(draft);
        let mut weight = 0;
        let fitting = self.history.iter().rev().take(MAX_HISTORY).take_while(|draft| {
            weight += draft.weight();
            weight <= MAX_HISTORY_BYTES
        });
        let first = self.history.len() - fitting.count().max(1);
        self.history.drain(..first);
        if let Some(old) = self.history.len().checked_sub(HISTORY_PICTURES + 1) {
            self.history[old] = std::mem::take(&mut self.history[old]).without_pictures();
        }
        self.recalled = None;
    }

    /// Recalls the previous prompt.
    pub(crate) fn history_previous(&mut self) {
        let (next, draft) = match self.recalled.take() {
            Some((at, draft)) => (at.saturating_sub(1), draft),
            None if self.history.is_empty() => return,
            None => (self.history.len() - 1, self.draft()),
        };
        self.restore(self.history.get(next).cloned().unwrap_or_default());
        self.recalled = Some((next, draft));
    }

    /// Recalls the next prompt, or restores the draft after the last one.
    pub(crate) fn history_next(&mut self) {
        let Some((at, draft)) = self.recalled.take() else { return };
        match self.history.get(at + 1) {
            Some(known) => {
                self.restore(known.clone());
                self.recalled = Some((at + 1, draft));
            }
            None => self.restore(draft),
        }
    }

    /// Returns the word at the cursor after `@`, and the position of the `@`.
    pub(crate) fn mention(&self) -> Option<(usize, &str)> {
        let before = self.editor.before();
        let from = before.rfind('@')?;
        let word = &before[from + 1..];
        let begins = before[..from].chars().next_back().is_none_or(char::is_whitespace);
        (begins && !word.contains(char::is_whitespace)).then_some((from, word))
    }

    /// Returns the start of a command name after `/`.
    pub(crate) fn slash(&self) -> Option<&str> {
        let before = self.editor.before();
        let name = before.strip_prefix('/')?;
        (!self.shell && !name.contains(char::is_whitespace)).then_some(name)
    }
}

/// Returns a text with pasted texts in the place of their labels.
fn whole_text(text: &str, chips: &[Chip]) -> String {
    let mut text = text.to_owned();
    for chip in chips {
        if let Body::Paste(body) = &chip.body {
            text = text.replacen(&chip.label, body, 1);
        }
    }
    text
}

fn file(path: &str, directory: &str, source: serde_json::Value) -> PartInput {
    let (name, range) = lines_of(path);
    let absolute = if name.starts_with('/') { name.to_owned() } else { format!("{directory}/{name}") };
    let query = match range {
        Some((start, Some(end))) => format!("?start={start}&end={end}"),
        Some((start, None)) => format!("?start={start}"),
        None => String::new(),
    };
    PartInput::File {
        id: None,
        mime: media_type(name).to_owned(),
        filename: Some(path.to_owned()),
        url: format!("file://{}{query}", escape(&absolute)),
        source: Some(json!({"type": "file", "path": name, "text": source})),
        checked: None,
    }
}

/// Splits a path and the line range after `#`.
fn lines_of(path: &str) -> (&str, Option<(usize, Option<usize>)>) {
    let Some((name, range)) = path.rsplit_once('#') else { return (path, None) };
    let (start, end) = range.split_once('-').map_or((range, None), |(start, end)| (start, Some(end)));
    let number = |text: &str| text.trim_start_matches('L').parse().ok();
    match number(start) {
        Some(start) => (name, Some((start, end.and_then(number)))),
        None => (path, None),
    }
}

/// Escapes a path for a URL.
fn escape(path: &str) -> String {
    let mut text = String::with_capacity(path.len());
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'_' | b'.' | b'~' => {
                text.push(byte as char);
            }
            byte => text.push_str(&format!("%{byte:02X}")),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_paste_is_a_label_and_sent_in_full() {
        let mut prompt = Prompt::default();
        prompt.editor.insert("see ");
        prompt.paste("one\r\ntwo\rthree\nfour\u{1b}[31m\n");
        assert_eq!(prompt.editor.text(), "see [Pasted ~4 lines] ");
        assert_eq!(prompt.whole_text(), "see one\ntwo\nthree\nfour\n ");
        prompt.editor.delete_before();
        prompt.delete_before();
        assert_eq!((prompt.editor.text(), prompt.chips.len()), ("see ", 0));
        prompt.paste("short");
        assert_eq!(prompt.editor.text(), "see short");
    }

    #[test]
    fn files_and_agents_become_parts() {
        let mut prompt = Prompt::default();
        prompt.editor.insert("look at ");
        prompt.attach("@src/a b.rs#3-9".to_owned(), Body::File("src/a b.rs#3-9".to_owned()));
        prompt.attach("@explore".to_owned(), Body::Agent("explore".to_owned()));
        let parts = serde_json::to_value(prompt.parts("/p")).unwrap();
        assert_eq!(parts[0]["text"], "look at @src/a b.rs#3-9 @explore");
        assert_eq!(parts[1]["url"], "file:///p/src/a%20b.rs?start=3&end=9");
        assert_eq!(parts[1]["source"]["text"]["start"], 8);
        assert_eq!(parts[2]["name"], "explore");
    }

    #[test]
    fn earlier_prompts_are_recalled_and_the_draft_is_kept() {
        let mut prompt = Prompt::default();
        prompt.remember("one".into());
        prompt.remember("two".into());
        prompt.editor.set("draft");
        prompt.history_previous();
        assert_eq!(prompt.editor.text(), "two");
        prompt.history_previous();
        prompt.history_previous();
        assert_eq!(prompt.editor.text(), "one");
        prompt.history_next();
        prompt.history_next();
        assert_eq!(prompt.editor.text(), "draft");
    }

    #[test]
    fn a_draft_keeps_its_attachments() {
        let mut prompt = Prompt::default();
        prompt.remember("one".into());
        prompt.remember(Draft { shell: true, ..Draft::from("git status") });
        prompt.attach("@src/a.rs".to_owned(), Body::File("src/a.rs".to_owned()));
        prompt.paste("one\ntwo\nthree\nfour\n");
        let (draft, parts) = (prompt.draft(), prompt.parts("/p"));
        prompt.history_previous();
        assert_eq!((prompt.editor.text(), prompt.shell), ("git status", true));
        prompt.history_previous();
        assert_eq!((prompt.editor.text(), prompt.shell, prompt.chips.len()), ("one", false, 0));
        prompt.history_next();
        prompt.history_next();
        assert_eq!((prompt.draft(), prompt.parts("/p")), (draft, parts));
    }

    #[test]
    fn a_recalled_prompt_has_its_attachments() {
        let mut prompt = Prompt::default();
        prompt.attach("@src/a.rs".to_owned(), Body::File("src/a.rs".to_owned()));
        prompt.attach("@explore".to_owned(), Body::Agent("explore".to_owned()));
        prompt.paste("one\ntwo\nthree\nfour\n");
        prompt.attach_picture(&Picture { mime: "image/png", bytes: vec![1, 2, 3] });
        let (draft, parts) = (prompt.draft(), prompt.parts("/p"));
        assert_eq!(parts.len(), 4);
        prompt.remember(draft);
        prompt.clear();
        prompt.history_previous();
        assert_eq!(prompt.parts("/p"), parts);
        // Older prompts lose only their pictures.
        for text in ["a", "b", "c"] {
            prompt.remember(text.into());
        }
        prompt.clear();
        (0..4).for_each(|_| prompt.history_previous());
        assert_eq!(prompt.parts("/p").len(), 3);
        assert!(!prompt.editor.text().contains("Image"));
    }

    #[test]
    fn the_history_is_bounded() {
        let mut prompt = Prompt::default();
        for nth in 0..30 {
            prompt.remember(Draft::from(format!("{nth}{}", "x".repeat(1 << 20)).as_str()));
        }
        assert!((10..17).contains(&prompt.history.len()), "{}", prompt.history.len());
        prompt.remember(Draft::from("y".repeat(20 << 20).as_str()));
        assert_eq!(prompt.history.len(), 1);
    }

    #[test]
    fn a_mention_is_the_word_at_the_cursor() {
        let mut prompt = Prompt::default();
        for (text, expected) in
            [("@ma", Some((0, "ma"))), ("see @src/", Some((4, "src/"))), ("a@b", None), ("@a b", None)]
        {
            prompt.editor.set(text);
            assert_eq!(prompt.mention(), expected, "{text}");
        }
        prompt.editor.set("/mod");
        assert_eq!(prompt.slash(), Some("mod"));
    }
}
