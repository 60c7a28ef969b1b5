//! Draws the prompt, its completions and the footer.

use codewright_proto::SessionStatus;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};

use super::{Bottom, both_ends, clear, put};
use crate::keys::Action;
use crate::look::{agent_colour, capitalize};
use crate::state::State;
use crate::wrap;

/// The cells of the prompt's width that are not text.
const SIDES: u16 = 7;
/// The maximum number of visible completions.
const MAX_OFFERS: usize = 10;
/// The minimum width of a footer with the number of steps and with input and output tokens.
const DETAILS_FROM: u16 = 96;

/// Returns the width of the text in a prompt of a width.
pub(super) fn text_width(width: u16) -> u16 {
    width.saturating_sub(SIDES).max(2)
}

/// Returns the lines of the prompt. A subagent has a line of keys instead.
pub(super) fn lines(state: &State, width: u16, max_rows: u16) -> Bottom {
    if crate::update::is_child(state) {
        return child(state, width);
    }
    let theme = &state.theme;
    let agent = state.agent().map(|agent| agent.name.clone()).unwrap_or_default();
    let bar = if state.prompt.shell { theme.warning } else { agent_colour(&state.mirror, &agent, theme) };
    let room = usize::from(text_width(width));
    let editor = &state.prompt.editor;
    let ranges = editor.rows(room);
    let (row, mut column) = editor.position(room);
    if let Some(range) = ranges.get(row)
        && crate::bidi::is_needed(&editor.text()[range.clone()])
    {
        let text = editor.text()[range.clone()].trim_end_matches(['\n', '\r']);
        column = crate::bidi::column(text, editor.cursor().saturating_sub(range.start).min(text.len()));
    }
    let shown = usize::from(max_rows.saturating_sub(5)).max(1);
    let first = row.saturating_sub(shown - 1).min(ranges.len().saturating_sub(shown));
    let mut content = vec![Line::default()];
    if editor.is_empty() {
        let hint = if state.prompt.shell { "Run a command…" } else { "Ask anything…" };
        content.push(Line::from(Span::styled(hint, Style::new().fg(theme.muted))));
    } else {
        for range in ranges.iter().skip(first).take(shown) {
            let text = editor.text()[range.clone()].trim_end_matches(['\n', '\r']);
            let line = vec![Line::from(colour_labels(state, text))];
            content.extend(crate::bidi::visual_order(line, crate::bidi::Base::FirstLetter));
        }
    }
    content.push(Line::default());
    content.push(Line::from(responder(state)));
    let back = Style::new().bg(theme.element);
    let mut lines: Vec<Line<'static>> = undo_panel(state, width);
    let above = lines.len();
    for line in content {
        let blank = room.saturating_sub(line.width()) + 2;
        let mut spans =
            vec![Span::raw("  "), Span::styled("┃", Style::new().fg(bar)), Span::styled("  ", back)];
        spans.extend(line.spans.into_iter().map(|span| {
            let style = back.patch(span.style);
            Span::styled(span.content, style)
        }));
        spans.push(Span::styled(" ".repeat(blank), back));
        lines.push(Line::from(spans));
    }
    let edge = "▀".repeat(usize::from(width.saturating_sub(3)));
    lines.push(Line::from(vec![
        Span::raw("  "),
        Span::styled("╹", Style::new().fg(bar)),
        Span::styled(edge, Style::new().fg(theme.element)),
    ]));
    let x = u16::try_from(column).unwrap_or(0) + 5;
    let y = u16::try_from(above + 1 + row - first).unwrap_or(0);
    let cursor = state.layers.is_empty().then_some((x, y));
    Bottom { lines, cursor }
}

/// Returns the text of a line, with labels in colour.
pub(super) fn colour_labels(state: &State, text: &str) -> Vec<Span<'static>> {
    let style = Style::new().fg(state.theme.text);
    let label = Style::new().fg(state.theme.warning).add_modifier(Modifier::BOLD);
    let mut spans = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let found =
            state.prompt.chips.iter().filter_map(|chip| Some((rest.find(&chip.label)?, chip.label.len())));
        let Some((at, length)) = found.min() else { break };
        spans.push(Span::styled(without_tabs(&rest[..at]), style));
        spans.push(Span::styled(without_tabs(&rest[at..at + length]), label));
        rest = &rest[at + length..];
    }
    spans.push(Span::styled(without_tabs(rest), style));
    spans
}

/// Replaces tabs by single spaces, because the cursor position counts one cell for a tab.
fn without_tabs(text: &str) -> String {
    text.replace('\t', " ")
}

/// Returns the agent, the model and the variant for the next prompt.
fn responder(state: &State) -> Vec<Span<'static>> {
    let theme = &state.theme;
    if state.prompt.shell {
        return vec![Span::styled("Shell", Style::new().fg(theme.warning))];
    }
    let mut spans = Vec::new();
    if let Some(agent) = state.agent() {
        let colour = agent_colour(&state.mirror, &agent.name, theme);
        let name = capitalize(&crate::clean::clean_line(&agent.name));
        spans.push(Span::styled(name, Style::new().fg(colour)));
    }
    spans.extend(model_name(state));
    if let Some(variant) = state.variant() {
        let variant = crate::clean::clean_line(&variant);
        spans.push(Span::styled(format!(" · {variant}"), Style::new().fg(theme.warning)));
    }
    spans
}

/// Returns the name of the model for the next prompt.
pub(super) fn model_name(state: &State) -> Vec<Span<'static>> {
    let theme = &state.theme;
    let muted = Style::new().fg(theme.muted);
    match state.model() {
        Some((provider, model)) => match state.mirror.model(&provider, &model) {
            Some((provider, model)) => vec![
                Span::styled(format!(" · {}", model.name), Style::new().fg(theme.text)),
                Span::styled(format!(" {}", provider.name), muted),
            ],
            None => Vec::new(),
        },
        None if state.mirror.ready => {
            vec![Span::styled(" · no model yet: /connect", Style::new().fg(theme.warning))]
        }
        None => vec![Span::styled("…", muted)],
    }
}

/// Returns a panel about undone prompts that can be redone.
fn undo_panel(state: &State, width: u16) -> Vec<Line<'static>> {
    let Some(revert) = state.session().and_then(|session| session.revert.as_ref()) else { return Vec::new() };
    let transcript = state.session_id().and_then(|id| state.mirror.transcripts.get(id));
    let hidden = transcript.into_iter().flat_map(|known| known.entries.iter().skip(known.end));
    let count = hidden.filter(|entry| matches!(entry.info, codewright_proto::Message::User(_))).count();
    let muted = Style::new().fg(state.theme.muted);
    let text = format!("{count} message{} reverted", if count == 1 { "" } else { "s" });
    let how = format!("{} or /redo to restore", state.keys.first(Action::Redo));
    let mut content = vec![Line::from(Span::styled(text, muted)), Line::from(Span::styled(how, muted))];
    for kept in revert.kept.iter().take(5) {
        let text = crate::clean::clean_line(&format!("kept {}: {}", kept.file, kept.reason));
        content.push(Line::from(Span::styled(text, Style::new().fg(state.theme.warning))));
    }
    crate::panel::panel(content, usize::from(width), state.theme.border, &state.theme)
}

fn child(state: &State, width: u16) -> Bottom {
    let muted = Style::new().fg(state.theme.muted);
    let parent = state.session().and_then(|session| session.parent_id.clone());
    let siblings = parent.map(|parent| state.mirror.children(&parent)).unwrap_or_default();
    let at = siblings.iter().position(|session| Some(&session.id) == state.session_id()).unwrap_or(0);
    let agent = state.session().and_then(|session| session.agent.clone()).unwrap_or_default();
    let left =
        format!("  {} ({} of {})", capitalize(&crate::clean::clean_line(&agent)), at + 1, siblings.len());
    let keys = [(Action::Parent, "parent"), (Action::ChildPrevious, "previous"), (Action::ChildNext, "next")];
    let keys = keys.map(|(action, name)| format!("{name} {}", state.keys.first(action)));
    let line = both_ends(
        vec![Span::styled(left, Style::new().fg(state.theme.text))],
        vec![Span::styled(format!("{}  ", keys.join("   ")), muted)],
        width,
    );
    Bottom { lines: vec![Line::default(), line, Line::default()], cursor: None }
}

/// Returns the line below the prompt: activity or directory at the left, usage and keys at the right.
pub(super) fn footer(state: &State, width: u16) -> Line<'static> {
    let right = footer_end(state, width);
    let used: usize = right.iter().map(Span::width).sum();
    both_ends(footer_start(state, width, usize::from(width).saturating_sub(used)), right, width)
}

/// Returns the activity or the directory, in at most `room` columns.
fn footer_start(state: &State, width: u16, room: usize) -> Vec<Span<'static>> {
    let theme = &state.theme;
    let muted = Style::new().fg(theme.muted);
    let mut left = Vec::new();
    let status = state.session_id().and_then(|id| state.mirror.statuses.get(id));
    if state.leader.is_some() {
        left.push(Span::styled("   waiting for a key…", Style::new().fg(theme.warning)));
    } else if let Some(status) = status.filter(|status| **status != SessionStatus::Idle) {
        let spinner = crate::look::spinner(state.now);
        left.push(Span::styled(format!("   {spinner} "), Style::new().fg(theme.primary)));
        if let SessionStatus::Retry { attempt, message, next } = status {
            let seconds = next.saturating_sub(state.now).div_ceil(1_000);
            let text = format!("attempt {attempt} in {seconds}s: {} ", crate::clean::clean_line(message));
            let text = wrap::shorten(&text, usize::from(width / 2));
            left.push(Span::styled(text, Style::new().fg(theme.error)));
        }
        let key = state.keys.first(Action::Interrupt);
        if state.interrupt.is_some() {
            left.push(Span::styled(format!("{key} again to interrupt"), Style::new().fg(theme.warning)));
        } else {
            left.push(Span::styled(format!("{key} interrupt"), muted));
        }
    } else if state.prompt.shell {
        left.push(Span::styled("   esc exits shell mode", muted));
    } else {
        let place = crate::look::display_path(&state.mirror.directory, "", &state.mirror.home);
        let branch =
            state.mirror.branch.as_deref().map(|branch| format!(":{}", crate::clean::clean_line(branch)));
        let place = format!("   {place}{}", branch.unwrap_or_default());
        let mark: usize = trust(state).iter().map(Span::width).sum();
        let room = usize::from(width / 2).min(room.saturating_sub(1)).saturating_sub(mark);
        left.push(Span::styled(wrap::shorten_front(&place, room), muted));
    }
    left.extend(trust(state));
    left
}

/// Returns the usage of the session and the key of the palette.
fn footer_end(state: &State, width: u16) -> Vec<Span<'static>> {
    let muted = Style::new().fg(state.theme.muted);
    let mut right = Vec::new();
    if let Some(usage) = usage(state) {
        // The sidebar has the details already.
        let is_detailed = width >= DETAILS_FROM && state.screen.layout.sidebar.is_none();
        let details = if is_detailed { usage_details(state) } else { String::new() };
        right.push(Span::styled(format!("{details}{usage}  "), muted));
    }
    right.push(Span::styled(state.keys.first(Action::Palette), Style::new().fg(state.theme.text)));
    right.push(Span::styled(" commands  ", muted));
    right
}

/// Returns the number of steps, and the input and output tokens of the session.
fn usage_details(state: &State) -> String {
    let steps = super::sidebar::steps(state).map(|steps| format!("{steps} · ")).unwrap_or_default();
    let Some(tokens) = state.session().map(|session| session.tokens) else { return steps };
    if tokens.input == 0 && tokens.output == 0 {
        return steps;
    }
    format!("{steps}{} in · {} out · ", thousands(tokens.input), thousands(tokens.output))
}

/// Returns the mark of a directory whose configuration waits for trust.
pub(super) fn trust(state: &State) -> Option<Span<'static>> {
    let style = Style::new().fg(state.theme.warning);
    crate::trust::is_untrusted(state).then(|| Span::styled(" · untrusted", style))
}

/// Returns the tokens in the context, their share of it, and the cost of the session.
pub(super) fn usage(state: &State) -> Option<String> {
    let session = state.session()?;
    let (tokens, percent) = super::sidebar::context(state)?;
    let percent = percent.map(|percent| format!(" ({percent}%)")).unwrap_or_default();
    Some(format!("{}{percent} · ${:.2}", thousands(tokens), session.cost))
}

fn thousands(count: u64) -> String {
    match count {
        0..1_000 => count.to_string(),
        1_000..1_000_000 => format!("{}.{}K", count / 1_000, count % 1_000 / 100),
        _ => format!("{}.{}M", count / 1_000_000, count % 1_000_000 / 100_000),
    }
}

/// Paints the completions above the prompt.
pub(super) fn completions(state: &State, buffer: &mut Buffer) {
    let Some(completion) = &state.prompt.completion else { return };
    if !state.layers.is_empty() || state.requests.permission.is_some() || state.requests.question.is_some() {
        return;
    }
    let bottom = state.screen.layout.bottom;
    let count = completion.offers.len().min(MAX_OFFERS).min(usize::from(bottom.y));
    let first = completion.selected.saturating_sub(count.saturating_sub(1));
    let height = u16::try_from(count).unwrap_or(0);
    let area =
        Rect::new(bottom.x + 2, bottom.y.saturating_sub(height), bottom.width.saturating_sub(4), height);
    clear(buffer, area, state.theme.menu);
    let label_width =
        completion.offers.iter().map(|offer| wrap::width(&offer.label)).max().unwrap_or(0).min(40);
    for (row, offer) in (0..).zip(completion.offers.iter().skip(first).take(count)) {
        let selected = first + usize::from(row) == completion.selected;
        let (text, detail) = if selected {
            let style = Style::new().fg(state.theme.selected_text).bg(state.theme.primary);
            (style, style)
        } else {
            (Style::new().fg(state.theme.text), Style::new().fg(state.theme.muted))
        };
        let label = wrap::shorten_front(&offer.label, usize::from(area.width).saturating_sub(2));
        let blank = " ".repeat(label_width.saturating_sub(wrap::width(&label)) + 2);
        let line = Line::from(vec![
            Span::styled(format!(" {label}{blank}"), text),
            Span::styled(offer.detail.clone(), detail),
        ]);
        let line = if selected { line.style(text) } else { line };
        put(buffer, area, row, &line);
    }
}
