//! Draws the prompt, its completions and the footer.

use codewright_proto::{Message, SessionStatus};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};

use super::{Bottom, both_ends, clear, put};
use crate::keys::Action;
use crate::look::{agent_colour, capitalize};
use crate::permission_mode::{self, PermissionMode};
use crate::state::State;
use crate::wrap;

/// The cells of the prompt's width that are not text.
const SIDES: u16 = 7;
/// The maximum number of visible completions.
const MAX_OFFERS: usize = 10;
/// The blanks at both ends of the footer, and between its pieces.
const FOOTER_SIDES: usize = 5;
const FOOTER_GAP: usize = 2;
/// The rank of the directory.
const PLACE: u8 = 4;
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
    content.push(both_ends(responder(state), mode(state, room), u16::try_from(room).unwrap_or(width)));
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

/// Returns the permission mode with the sandbox, as much of it as fits next to the agent and the model.
fn mode(state: &State, room: usize) -> Vec<Span<'static>> {
    if state.prompt.shell || !state.mirror.ready {
        return Vec::new();
    }
    let used: usize = responder(state).iter().map(Span::width).sum();
    let mode = permission_mode::current(state);
    let label = mode.label();
    let sandbox = state.mirror.sandbox_label.map(|sandbox| format!("{label} · {sandbox}"));
    let colour = match mode {
        PermissionMode::Ask => state.theme.success,
        PermissionMode::AcceptEdits => state.theme.muted,
        PermissionMode::Plan => state.theme.secondary,
        PermissionMode::Auto => state.theme.warning,
    };
    let texts = sandbox.into_iter().chain([label.to_owned()]);
    let fitting = texts.into_iter().find(|text| used + 2 + wrap::width(text) <= room);
    fitting.map(|text| Span::styled(text, Style::new().fg(colour))).into_iter().collect()
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
    let count = hidden.filter(|entry| matches!(entry.info, Message::User(_))).count();
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

/// A piece of the line below the prompt. It is drawn as a whole or not at all.
struct Piece {
    /// Pieces with lower numbers stay longer in a narrow terminal.
    rank: u8,
    spans: Vec<Span<'static>>,
    /// The piece that replaces it if there is no room.
    shorter: Option<Box<Self>>,
}

impl Piece {
    fn new(rank: u8, text: impl Into<String>, style: Style) -> Self {
        Self { rank, spans: vec![Span::styled(text.into(), style)], shorter: None }
    }

    fn width(&self) -> usize {
        self.spans.iter().map(Span::width).sum()
    }
}

/// Returns the line below the prompt: activity or directory at the left, usage and keys at the right.
pub(super) fn footer(state: &State, width: u16) -> Line<'static> {
    let mut left = footer_start(state, width);
    let mut right = footer_end(state, width);
    let room = usize::from(width);
    let needed = |left: &[Piece], right: &[Piece]| {
        let pieces = |pieces: &[Piece]| {
            let gaps = FOOTER_GAP * pieces.len().saturating_sub(1);
            pieces.iter().map(Piece::width).sum::<usize>() + gaps
        };
        FOOTER_SIDES + pieces(left) + pieces(right) + FOOTER_GAP
    };
    while needed(&left, &right) > room {
        let worst = |pieces: &[Piece]| pieces.iter().map(|piece| piece.rank).max();
        match (worst(&left), worst(&right)) {
            (None, None) => break,
            (one, other) => {
                let pieces = if one > other { &mut left } else { &mut right };
                let rank = one.max(other);
                if let Some(at) = pieces.iter().rposition(|piece| Some(piece.rank) == rank) {
                    match pieces[at].shorter.take() {
                        Some(shorter) => pieces[at] = *shorter,
                        None => drop(pieces.remove(at)),
                    }
                }
            }
        }
    }
    let join = |pieces: Vec<Piece>| {
        let mut spans = Vec::new();
        for (at, piece) in pieces.into_iter().enumerate() {
            if at > 0 {
                spans.push(Span::raw(" ".repeat(FOOTER_GAP)));
            }
            spans.extend(piece.spans);
        }
        spans
    };
    let mut start = vec![Span::raw("   ")];
    start.extend(join(left));
    let mut end = join(right);
    end.push(Span::raw("  "));
    both_ends(start, end, width)
}

/// Returns the activity or the directory.
fn footer_start(state: &State, width: u16) -> Vec<Piece> {
    let theme = &state.theme;
    let muted = Style::new().fg(theme.muted);
    let warning = Style::new().fg(theme.warning);
    let mut left = Vec::new();
    let status = state.session_id().and_then(|id| state.mirror.statuses.get(id));
    if state.leader.is_some() {
        left.push(Piece::new(0, "waiting for a key…", warning));
    } else if state.leaving.is_some() {
        left.push(Piece::new(0, format!("{} again to exit", first_key(state, Action::Exit)), warning));
    } else if let Some(status) = status.filter(|status| **status != SessionStatus::Idle) {
        left.extend(activity(state, status));
    } else if state.prompt.shell {
        left.push(Piece::new(0, "esc exits shell mode", muted));
    } else {
        let place = crate::look::display_path(&state.mirror.directory, "", &state.mirror.home);
        let branch =
            state.mirror.branch.as_deref().map(|branch| format!(":{}", crate::clean::clean_line(branch)));
        let place = format!("{place}{}", branch.unwrap_or_default());
        let untrusted: usize = trust(state).map_or(0, |span| span.width());
        let room = usize::from(width / 2).saturating_sub(FOOTER_SIDES + untrusted);
        left.push(Piece::new(PLACE, wrap::shorten_front(&place, room), muted));
    }
    if let Some(mark) = trust(state) {
        match left.last_mut().filter(|piece| piece.rank == PLACE) {
            Some(place) => place.spans.push(mark),
            None => left.push(Piece { rank: 2, spans: vec![mark], shorter: None }),
        }
    }
    if crate::update::is_reading(state) {
        let key = state.keys.label(Action::Last);
        let key = key.rsplit(", ").next().unwrap_or_default().to_owned();
        left.insert(0, Piece::new(1, format!("↓ more below ({key})"), Style::new().fg(theme.primary)));
    }
    left
}

/// Returns the pieces of a running turn: its key, its time, its tokens and its cost.
fn activity(state: &State, status: &SessionStatus) -> Vec<Piece> {
    let theme = &state.theme;
    let muted = Style::new().fg(theme.muted);
    let spinner = Piece::new(1, crate::look::spinner(state.now), Style::new().fg(theme.primary));
    let mut pieces = vec![spinner];
    if let SessionStatus::Retry { attempt, next, .. } = status {
        let seconds = next.saturating_sub(state.now).div_ceil(1_000);
        pieces.push(Piece::new(1, format!("attempt {attempt} in {seconds}s"), Style::new().fg(theme.error)));
    }
    let key = state.keys.first(Action::Interrupt);
    match state.interrupt {
        Some(_) => {
            pieces.push(Piece::new(0, format!("{key} again to interrupt"), Style::new().fg(theme.warning)));
        }
        None => pieces.push(Piece::new(0, format!("{key} interrupt"), muted)),
    }
    if let Some(turn) = Turn::of(state) {
        pieces.push(Piece::new(2, crate::look::seconds(turn.millis), muted));
        if turn.tokens > 0 {
            pieces.push(Piece::new(6, format!("{} tokens", thousands(turn.tokens)), muted));
        }
        if turn.cost > 0.0 {
            pieces.push(Piece::new(7, format!("${:.2}", turn.cost), muted));
        }
    }
    pieces
}

/// The time and the usage of the running turn.
struct Turn {
    millis: u64,
    /// The tokens of its answers, without those read from the cache.
    tokens: u64,
    cost: f64,
}

impl Turn {
    fn of(state: &State) -> Option<Self> {
        let transcript = state.mirror.transcripts.get(state.session_id()?)?;
        let shown = &transcript.entries[..transcript.end];
        let is_start = |at: &usize| {
            matches!(shown[*at].info, Message::User(_))
                && !crate::update::queue::is_waiting(&state.mirror, transcript, *at)
        };
        let start = (0..shown.len()).rev().find(is_start)?;
        let mut turn =
            Self { millis: state.now.saturating_sub(shown[start].info.created()), tokens: 0, cost: 0.0 };
        for entry in &shown[start..] {
            if let Message::Assistant(info) = &entry.info {
                let tokens = info.tokens;
                turn.tokens += tokens.input + tokens.output + tokens.reasoning + tokens.cache.write;
                turn.cost += info.cost;
            }
        }
        Some(turn)
    }
}

/// Returns the first key of an action, as it is displayed.
fn first_key(state: &State, action: Action) -> String {
    state.keys.first(action)
}

/// Returns the usage of the session and the key of the palette.
fn footer_end(state: &State, width: u16) -> Vec<Piece> {
    let muted = Style::new().fg(state.theme.muted);
    let mut right = Vec::new();
    if let Some(usage) = usage(state) {
        // The sidebar has the details already.
        let is_detailed = width >= DETAILS_FROM && state.screen.layout.sidebar.is_none();
        let details = if is_detailed { usage_details(state) } else { String::new() };
        let short = Piece::new(5, usage.clone(), muted);
        right.push(Piece {
            shorter: Some(Box::new(short)),
            ..Piece::new(8, format!("{details}{usage}"), muted)
        });
    }
    let key = Span::styled(state.keys.first(Action::Palette), Style::new().fg(state.theme.text));
    right.push(Piece { rank: 3, spans: vec![key, Span::styled(" commands", muted)], shorter: None });
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

pub(crate) fn thousands(count: u64) -> String {
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
