//! Types and pastes into the prompt.

use crate::prompt::Body;
use crate::state::State;

/// Returns the width of the prompt's text.
pub(crate) fn width(state: &State) -> usize {
    usize::from(state.screen.layout.prompt_width).max(2)
}

pub(super) fn type_char(state: &mut State, c: char) {
    state.typed_at = Some(state.now);
    if c == '!' && state.prompt.is_empty() && !state.prompt.shell {
        state.prompt.shell = true;
        return;
    }
    if !c.is_control() {
        state.prompt.editor.insert(c.encode_utf8(&mut [0; 4]));
    }
}

/// Inserts a pasted text, or attaches a picture whose path was dropped on the terminal.
pub(super) fn paste_text(state: &mut State, text: &str) {
    let path = text.trim().trim_matches(['\'', '"']).replace("\\ ", " ");
    let extension = path.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase());
    let is_picture = matches!(extension.as_deref(), Some("png" | "jpg" | "jpeg" | "gif" | "webp" | "pdf"));
    if is_picture && path.starts_with('/') && !path.contains('\n') {
        let label = format!("@{}", crate::clean::clean_line(&path));
        return state.prompt.attach(label, Body::File(path));
    }
    state.prompt.paste(text);
}
