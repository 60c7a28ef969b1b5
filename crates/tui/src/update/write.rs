//! Writing in the prompt.

use crate::keys::Action;
use crate::prompt::Body;
use crate::state::State;

/// How wide the prompt's text is.
pub(crate) fn width(state: &State) -> usize {
    usize::from(state.screen.layout.prompt_width).max(2)
}

pub(super) fn typed(state: &mut State, c: char) {
    if c == '!' && state.prompt.is_empty() && !state.prompt.shell {
        state.prompt.shell = true;
        return;
    }
    if !c.is_control() {
        state.prompt.editor.insert(c.encode_utf8(&mut [0; 4]));
    }
}

/// A pasted text, or the path of a picture that was dropped on the terminal.
pub(super) fn pasted(state: &mut State, text: &str) {
    let path = text.trim().trim_matches(['\'', '"']).replace("\\ ", " ");
    let extension = path.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase());
    let is_picture = matches!(extension.as_deref(), Some("png" | "jpg" | "jpeg" | "gif" | "webp" | "pdf"));
    if is_picture && path.starts_with('/') && !path.contains('\n') {
        let label = format!("@{}", crate::clean::clean_line(&path));
        return state.prompt.attach(label, Body::File(path));
    }
    state.prompt.paste(text);
}

/// Changes the text or moves in it.
pub(super) fn edit(state: &mut State, action: Action) {
    let width = width(state);
    let prompt = &mut state.prompt;
    let editor = &mut prompt.editor;
    match action {
        Action::Newline => editor.insert("\n"),
        Action::HistoryPrevious => prompt.history_previous(),
        Action::HistoryNext => prompt.history_next(),
        Action::Left => editor.left(),
        Action::Right => editor.right(),
        Action::Up => drop(editor.up(width)),
        Action::Down => drop(editor.down(width)),
        Action::LineStart => editor.line_home(),
        Action::LineEnd => editor.line_tail(),
        Action::WordLeft => editor.word_left(),
        Action::WordRight => editor.word_right(),
        Action::Backspace if prompt.shell && editor.is_empty() => prompt.shell = false,
        Action::Backspace => prompt.delete_before(),
        Action::Delete => editor.delete_behind(),
        Action::DeleteWordBefore => editor.delete_word_before(),
        Action::DeleteWordBehind => editor.delete_word_behind(),
        Action::DeleteToStart => editor.delete_to_start(),
        Action::DeleteToEnd => editor.delete_to_end(),
        Action::InputUndo => editor.undo(),
        _ => {}
    }
}
