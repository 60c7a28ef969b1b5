//! Renaming a session.

use codewright_proto::SessionId;

use super::{Layer, Line, Purpose};
use crate::editor::Editor;
use crate::state::State;

pub(crate) fn open(state: &mut State, id: &SessionId) {
    let Some(session) = state.mirror.sessions.get(id) else { return };
    let mut editor = Editor::default();
    editor.set(crate::clean::clean_line(&session.title));
    state.layers.push(Layer::Line(Line {
        title: "Rename session".to_owned(),
        about: String::new(),
        editor,
        secret: false,
        purpose: Purpose::Title(id.clone()),
    }));
}
