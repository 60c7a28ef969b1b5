//! Draws the lines at the bottom of the small client.

use codewright_proto::{Session, SessionStatus};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};

use super::{Bottom, Layout, Screen, both_ends, layer, prompt, request};
use crate::bidi::{self, Base};
use crate::clean::clean_line;
use crate::keys::Action;
use crate::layer::Layer;
use crate::state::{Link, State};
use crate::wrap;

/// The maximum height of a list.
const LAYER_ROWS: u16 = 16;
/// The maximum number of rows of the prompt.
const PROMPT_ROWS: usize = 6;
/// The maximum number of completions.
const MAX_OFFERS: usize = 6;
/// The mark before the prompt.
const MARK: &str = "› ";

/// Computes the layout.
pub(crate) fn arrange(state: &mut State) {
    let (width, height) = state.size;
    let area = Rect::new(0, 0, width, height.saturating_sub(1));
    let layout =
        Layout { transcript: area, prompt_width: width.saturating_sub(3).max(2), ..Layout::default() };
    state.screen = Screen { layout, ..Screen::default() };
}

/// Returns the greeting, which is printed once.
pub(crate) fn greeting(state: &State) -> Vec<Line<'static>> {
    let muted = Style::new().fg(state.theme.muted);
    let place = crate::look::display_path(&state.mirror.directory, "", &state.mirror.home);
    let keys = state.keys.first(Action::Palette);
    vec![
        Line::from(vec![
            Span::styled("Codewright", Style::new().fg(state.theme.primary).add_modifier(Modifier::BOLD)),
            Span::styled(format!(" {} · {place}", state.options.version), muted),
        ]),
        Line::from(Span::styled(format!("{keys} for commands, / @ ! in the prompt, /exit to exit"), muted)),
    ]
}

/// Returns the line that is printed at the start of a session.
pub(crate) fn heading(state: &State, session: &Session) -> Vec<Line<'static>> {
    let muted = Style::new().fg(state.theme.border);
    let title = wrap::shorten(&clean_line(&session.title), usize::from(state.size.0 / 2));
    vec![Line::default(), Line::from(Span::styled(format!("── {title} ──"), muted))]
}

/// Returns the note that printed prompts were undone.
pub(crate) fn undone_note(state: &State) -> Line<'static> {
    let how = format!(
        "── the last prompts were undone; {} or /redo restores them ──",
        state.keys.first(Action::Redo)
    );
    Line::from(Span::styled(how, Style::new().fg(state.theme.warning)))
}

/// Returns the note that not all messages were fetched.
pub(crate) fn gap_note(state: &State) -> Line<'static> {
    let note = "── some messages between these were not fetched and are not printed ──";
    Line::from(Span::styled(note, Style::new().fg(state.theme.warning)))
}

/// Returns the lines that are redrawn: unfinished blocks, a dialog or the prompt, and the status line.
pub(crate) fn bottom(state: &State, live: Vec<Line<'static>>) -> Bottom {
    let (width, height) = state.size;
    let rows = usize::from(height.saturating_sub(1)).max(2);
    let width = width.saturating_sub(1).max(10);
    let mut shown = if let Some(top) = state.layers.last() {
        over(state, top, width)
    } else if state.requests.permission.is_some() || state.requests.question.is_some() {
        request::lines(state, width, height)
    } else {
        prompt_lines(state, width)
    };
    shown.lines.truncate(rows - 1);
    let status = status(state, width);
    let above = rows - 1 - shown.lines.len();
    let mut lines: Vec<Line<'static>> = live;
    lines.extend(notes(state, width));
    lines.push(Line::default());
    let lines: Vec<Line<'static>> = lines.split_off(lines.len().saturating_sub(above));
    let first = u16::try_from(lines.len()).unwrap_or(0);
    let mut all = lines;
    all.append(&mut shown.lines);
    all.push(status);
    let cursor = shown.cursor.map(|(x, y)| (x, y + first));
    let cursor = cursor.filter(|(_, y)| usize::from(*y) < all.len());
    Bottom { lines: all, cursor }
}

/// Returns the lines of the notes.
fn notes(state: &State, width: u16) -> Vec<Line<'static>> {
    let lost = match &state.link {
        Link::Lost(why) => Some(format!("no connection to the server: {why}. Reconnecting…")),
        Link::Opening | Link::Open => None,
    };
    let style = Style::new().fg(state.theme.warning);
    let texts = lost.into_iter().chain(state.notes.iter().map(|note| note.text.clone()));
    let lines = texts.flat_map(|text| {
        let lines = text.lines().take(6).map(str::to_owned).collect::<Vec<_>>();
        lines.into_iter().flat_map(|line| wrap::words(&[Span::styled(line, style)], usize::from(width)))
    });
    let mut lines: Vec<Line<'static>> = lines.take(10).collect();
    if !lines.is_empty() {
        lines.insert(0, Line::default());
    }
    lines
}

/// Returns the height of a dialog that uses the whole screen.
pub(super) fn dialog_rows(state: &State) -> u16 {
    state.size.1.saturating_sub(2)
}

/// Returns the lines of the top layer, which replaces the prompt.
fn over(state: &State, top: &Layer, width: u16) -> Bottom {
    let height = match top {
        Layer::Review(_) | Layer::Trust(_) => dialog_rows(state),
        Layer::List(_) | Layer::Line(_) | Layer::Page(_) | Layer::Confirm(_) => {
            LAYER_ROWS.min(state.size.1.saturating_sub(2))
        }
    };
    let mut buffer = Buffer::empty(Rect::new(0, 0, width, height.max(1)));
    let area = buffer.area;
    let cursor = layer::view(state, top, &mut buffer, area);
    let mut lines: Vec<Line<'static>> = (0..area.height).map(|y| row(&buffer, y)).collect();
    while lines.last().is_some_and(|line| line.spans.is_empty()) {
        lines.pop();
    }
    let blank = lines.iter().take_while(|line| line.spans.is_empty()).count();
    lines.drain(..blank);
    let above = u16::try_from(blank).unwrap_or(0);
    Bottom { lines, cursor: cursor.map(|(x, y)| (x, y.saturating_sub(above))) }
}

/// Converts a row of cells to a line, without empty cells at its end.
fn row(buffer: &Buffer, y: u16) -> Line<'static> {
    let mut spans: Vec<Span<'static>> = Vec::new();
    let mut x = 0;
    let empty = |x: u16| {
        let cell = &buffer[(x, y)];
        cell.symbol() == " " && cell.bg == Color::Reset && !cell.modifier.contains(Modifier::REVERSED)
    };
    let end = (0..buffer.area.width).rev().find(|x| !empty(*x)).map_or(0, |x| x + 1);
    while x < end {
        let cell = &buffer[(x, y)];
        let style = Style::new().fg(cell.fg).bg(cell.bg).add_modifier(cell.modifier);
        match spans.last_mut() {
            Some(last) if last.style == style => last.content.to_mut().push_str(cell.symbol()),
            _ => spans.push(Span::styled(cell.symbol().to_owned(), style)),
        }
        x += u16::try_from(wrap::width(cell.symbol())).unwrap_or(1).max(1);
    }
    Line::from(spans)
}

/// Returns the lines of the prompt and its completions.
fn prompt_lines(state: &State, width: u16) -> Bottom {
    if crate::update::is_child(state) {
        return prompt::lines(state, width, 4);
    }
    let theme = &state.theme;
    let room = usize::from(state.screen.layout.prompt_width);
    let editor = &state.prompt.editor;
    let ranges = editor.rows(room);
    let (at, mut column) = editor.position(room);
    let first = at.saturating_sub(PROMPT_ROWS - 1);
    let mut lines = offers(state, width);
    let above = lines.len();
    let colour = if state.prompt.shell { theme.warning } else { theme.primary };
    let mark = if state.prompt.shell { "! " } else { MARK };
    for (nth, range) in ranges.iter().enumerate().skip(first).take(PROMPT_ROWS) {
        let text = editor.text()[range.clone()].trim_end_matches(['\n', '\r']);
        if nth == at {
            column = bidi::column(text, editor.cursor().saturating_sub(range.start).min(text.len()));
        }
        let line = vec![Line::from(prompt::colour_labels(state, text))];
        let mut line = bidi::visual_order(line, Base::FirstLetter).pop().unwrap_or_default();
        let mark = if nth == 0 { mark } else { "  " };
        line.spans.insert(0, Span::styled(mark, Style::new().fg(colour)));
        lines.push(line);
    }
    if editor.is_empty() {
        let hint = if state.prompt.shell { "Run a command…" } else { "Ask anything…" };
        let hint = Span::styled(hint, Style::new().fg(theme.muted));
        lines.truncate(above);
        lines.push(Line::from(vec![Span::styled(mark, Style::new().fg(colour)), hint]));
    }
    let x = u16::try_from(column + 2).unwrap_or(0);
    let y = u16::try_from(above + at - first).unwrap_or(0);
    Bottom { lines, cursor: Some((x, y)) }
}

fn offers(state: &State, width: u16) -> Vec<Line<'static>> {
    let Some(completion) = &state.prompt.completion else { return Vec::new() };
    let first = completion.selected.saturating_sub(MAX_OFFERS - 1);
    let offers = completion.offers.iter().enumerate().skip(first).take(MAX_OFFERS);
    let lines = offers.map(|(at, offer)| {
        let selected = at == completion.selected;
        let style =
            if selected { Style::new().fg(state.theme.primary) } else { Style::new().fg(state.theme.text) };
        let mark = if selected { "› " } else { "  " };
        let label = wrap::shorten_front(&offer.label, usize::from(width / 2));
        let room = usize::from(width).saturating_sub(wrap::width(&label) + 5);
        let detail = wrap::shorten(&offer.detail, room);
        Line::from(vec![
            Span::styled(format!("  {mark}{label} "), style),
            Span::styled(detail, Style::new().fg(state.theme.muted)),
        ])
    });
    lines.collect()
}

/// Returns the status line: agent, model or activity, and usage.
fn status(state: &State, width: u16) -> Line<'static> {
    let theme = &state.theme;
    let muted = Style::new().fg(theme.muted);
    let agent = state.agent().map(|agent| agent.name.clone()).unwrap_or_default();
    let colour = crate::look::agent_colour(&state.mirror, &agent, theme);
    let name = if state.prompt.shell { "SHELL".to_owned() } else { clean_line(&agent).to_uppercase() };
    let mut left =
        vec![Span::styled(format!(" {name}"), Style::new().fg(colour).add_modifier(Modifier::BOLD))];
    let status = state.session_id().and_then(|id| state.mirror.statuses.get(id));
    if state.leader.is_some() {
        left.push(Span::styled("  waiting for a key…", Style::new().fg(theme.warning)));
    } else if status.is_some_and(|status| *status != SessionStatus::Idle) {
        let key = state.keys.first(Action::Interrupt);
        let again = if state.interrupt.is_some() { " again to" } else { "" };
        let hint = format!("  {} {key}{again} interrupt", crate::look::spinner(state.now));
        left.push(Span::styled(hint, muted));
    } else {
        left.extend(prompt::model_name(state));
    }
    left.extend(prompt::trust(state));
    let usage = prompt::usage(state).map(|usage| format!("{usage} · ")).unwrap_or_default();
    let keys = format!("{usage}{} cmd ", state.keys.first(Action::Palette));
    let used: usize = left.iter().map(Span::width).sum();
    let right = if used + wrap::width(&keys) < usize::from(width) { keys } else { String::new() };
    both_ends(left, vec![Span::styled(right, muted)], width)
}
