//! Draws the search in the transcript.

use ratatui::buffer::Buffer;
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};

use super::{Bottom, both_ends};
use crate::panel::{SIDES, panel};
use crate::search::occurrences;
use crate::state::State;
use crate::wrap;

/// Returns the lines in the place of the prompt.
pub(super) fn lines(state: &State, width: u16) -> Bottom {
    let Some(search) = &state.search else { return Bottom::default() };
    let room = usize::from(width).saturating_sub(SIDES).max(8);
    let transcript = state.session_id().and_then(|id| state.mirror.transcripts.get(id));
    let summary = search.summary(transcript.is_some_and(|transcript| transcript.older.is_some()));
    let muted = Style::new().fg(state.theme.muted);
    let shown = room.saturating_sub(wrap::width(&summary) + 3);
    let text = wrap::shorten_front(&crate::clean::clean_line(search.editor.text()), shown);
    let before = wrap::width(&wrap::shorten_front(search.editor.before(), shown));
    let hints: &[&str] = match search.is_moving {
        true => &["n older  N newer  / change the text  esc close", "n older  N newer  esc", "n N esc"],
        false => &[
            "enter move with n and N  ↑ older  ↓ newer  esc close",
            "enter  ↑ older  ↓ newer  esc",
            "↑ ↓ esc",
        ],
    };
    let hint = hints.iter().find(|hint| hint.chars().count() <= room).copied().unwrap_or_default();
    let field = both_ends(
        vec![
            Span::styled("/", Style::new().fg(state.theme.primary)),
            Span::styled(text, Style::new().fg(state.theme.text)),
        ],
        vec![Span::styled(summary, muted)],
        u16::try_from(room).unwrap_or(width),
    );
    let content = vec![field, Line::from(Span::styled(hint, muted))];
    let x = u16::try_from(6 + before).unwrap_or(0);
    let cursor = (state.layers.is_empty() && !search.is_moving).then_some((x, 1));
    Bottom { lines: panel(content, usize::from(width), state.theme.primary, &state.theme), cursor }
}

/// Marks the occurrences on the screen.
pub(super) fn mark(state: &State, buffer: &mut Buffer) {
    let Some(search) = state.search.as_ref().filter(|search| !search.needle().is_empty()) else { return };
    let area = state.screen.layout.transcript.intersection(buffer.area);
    for y in area.y..area.y + area.height {
        let mut row = String::new();
        // The cell of each byte.
        let mut cells = Vec::new();
        let mut x = area.x;
        while x < area.x + area.width {
            let symbol = buffer[(x, y)].symbol().to_lowercase();
            cells.extend(std::iter::repeat_n(x, symbol.len()));
            x += u16::try_from(wrap::width(&symbol)).unwrap_or(1).max(1);
            row.push_str(&symbol);
        }
        if occurrences(&row, search.needle()) == 0 {
            continue;
        }
        for (at, found) in row.match_indices(search.needle()) {
            for x in cells[at..at + found.len()].iter().copied() {
                buffer[(x, y)].modifier.insert(Modifier::REVERSED);
            }
        }
    }
}
