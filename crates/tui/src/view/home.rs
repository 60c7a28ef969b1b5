//! The home view: a prompt and the directory.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};

use super::{Bottom, Layout, both_ends, prompt, put};
use crate::keys::Action;
use crate::state::State;
use crate::wrap;

const MAX_WIDTH: u16 = 80;
const LOGO: [&str; 3] = [
    "█▀▀ █▀█ █▀▄ █▀▀ █ █ █ █▀█ ▀█▀ █▀▀ █ █ ▀█▀",
    "█   █ █ █ █ █▀▀ █ █ █ █▀▄  █  █ █ █▀█  █ ",
    "▀▀▀ ▀▀▀ ▀▀  ▀▀▀  ▀ ▀  ▀ ▀ ▀▀▀ ▀▀▀ ▀ ▀  ▀ ",
];

/// Returns the width of the prompt.
pub(super) fn prompt_width(width: u16) -> u16 {
    width.min(MAX_WIDTH)
}

pub(super) fn layout(state: &State, (width, height): (u16, u16), bottom: &Bottom) -> Layout {
    let below = first_run(state, usize::from(prompt_width(width))).len();
    let below = u16::try_from(below).unwrap_or(0);
    let count = u16::try_from(bottom.lines.len()).unwrap_or(0);
    let box_width = prompt_width(width);
    let x = (width - box_width) / 2;
    let top = height.saturating_sub(count + below) / 2;
    let top = top.min(height.saturating_sub(count + 2)).max(1);
    let room = height.saturating_sub(top + 1);
    Layout {
        transcript: Rect::new(0, 0, width, 0),
        bottom: Rect::new(x, top, box_width, count.min(room)),
        footer: Rect::new(0, height - 1, width, 1),
        sidebar: None,
        prompt_width: prompt::text_width(box_width),
    }
}

pub(super) fn view(state: &State, buffer: &mut Buffer, area: Rect) {
    let layout = state.screen.layout;
    let bottom = layout.bottom;
    for (at, line) in (0..).zip(&state.screen.bottom.lines) {
        put(buffer, bottom, at, line);
    }
    logo(state, buffer, area, bottom);
    let below = Rect::new(bottom.x, bottom.y + bottom.height, bottom.width, 1);
    if below.y < layout.footer.y {
        put(buffer, below, 0, &hints(state, bottom.width));
    }
    let first = below.y + 2;
    let room = layout.footer.y.saturating_sub(first + 1);
    for (at, line) in (0..room).zip(first_run(state, usize::from(bottom.width))) {
        put(buffer, Rect::new(bottom.x, first, bottom.width, room), at, &line);
    }
    put(buffer, layout.footer, 0, &footer(state, layout.footer.width));
}

fn logo(state: &State, buffer: &mut Buffer, area: Rect, bottom: Rect) {
    let width = u16::try_from(wrap::width(LOGO[0])).unwrap_or(0);
    if bottom.y < 6 || area.width < width + 4 {
        return;
    }
    let place = Rect::new((area.width - width) / 2, bottom.y - 5, width, 3);
    for (at, line) in (0..).zip(LOGO) {
        let (one, other) = line.split_at(line.char_indices().nth(16).map_or(0, |(at, _)| at));
        let spans = vec![
            Span::styled(one, Style::new().fg(state.theme.muted)),
            Span::styled(other, Style::new().fg(state.theme.text)),
        ];
        put(buffer, place, at, &Line::from(spans));
    }
}

fn hints(state: &State, width: u16) -> Line<'static> {
    let key = Style::new().fg(state.theme.text);
    let muted = Style::new().fg(state.theme.muted);
    if state.prompt.shell {
        return both_ends(Vec::new(), vec![Span::styled("esc exits shell mode ", muted)], width);
    }
    let spans = vec![
        Span::styled(state.keys.first(Action::AgentCycle), key),
        Span::styled(" agents  ", muted),
        Span::styled(state.keys.first(Action::Palette), key),
        Span::styled(" commands ", muted),
    ];
    both_ends(Vec::new(), spans, width)
}

/// Explains what to do if no model is available.
fn first_run(state: &State, width: usize) -> Vec<Line<'static>> {
    if !state.mirror.ready || state.model().is_some() {
        return Vec::new();
    }
    let bold = Style::new().fg(state.theme.warning).add_modifier(Modifier::BOLD);
    let text = Style::new().fg(state.theme.text);
    let muted = Style::new().fg(state.theme.muted);
    let mut lines = vec![Line::from(Span::styled("No model is available yet.", bold))];
    let found = "No stored sign-in, no key in the environment and no local model server was found.";
    lines.extend(wrap::words(&[Span::styled(found, muted)], width));
    lines.push(Line::default());
    for (how, what) in [
        ("/connect", "stores a key for a provider"),
        ("codewright providers login", "signs in to a provider in the browser"),
        ("codewright demo", "shows the program without a key or network"),
    ] {
        lines.push(Line::from(vec![Span::styled(format!("  {how:<28}"), text), Span::styled(what, muted)]));
    }
    let local =
        "A local model server such as Ollama or LM Studio is found at the next start if it is running.";
    lines.push(Line::default());
    lines.extend(wrap::words(&[Span::styled(local, muted)], width));
    if let Some(public) = state.mirror.providers.iter().find(|provider| provider.is_public) {
        let free = format!("/models lists free models of {}, which receives your prompts.", public.name);
        lines.extend(wrap::words(&[Span::styled(free, muted)], width));
    }
    lines
}

fn footer(state: &State, width: u16) -> Line<'static> {
    let muted = Style::new().fg(state.theme.muted);
    let place = crate::look::display_path(&state.mirror.directory, "", &state.mirror.home);
    let branch =
        state.mirror.branch.as_deref().map(|branch| format!(":{}", crate::clean::clean_line(branch)));
    let place = format!("  {place}{}", branch.unwrap_or_default());
    let mark = prompt::trust(state);
    let used = 14 + mark.as_ref().map_or(0, Span::width);
    let left = if state.leader.is_some() {
        Span::styled("  waiting for a key…", Style::new().fg(state.theme.warning))
    } else {
        Span::styled(wrap::shorten_front(&place, usize::from(width).saturating_sub(used)), muted)
    };
    let left = std::iter::once(left).chain(mark).collect();
    both_ends(left, vec![Span::styled(format!("{}  ", state.options.version), muted)], width)
}
