//! Draws the changes viewer: a tree at the left, hunks at the right.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};

use super::{both_ends, clear, put};
use crate::clean::clean_line;
use crate::review::{DrawOptions, Focus, LoadState, Review};
use crate::state::State;
use crate::wrap;

const HELP: [(&str, &str); 15] = [
    ("up, down, k, j", "a line"),
    ("pageup, pagedown, space", "a page"),
    ("ctrl+u, ctrl+d", "half a page"),
    ("home, end, g, G", "start and end"),
    ("n, p", "next file, previous file"),
    ("], [", "next hunk, previous hunk"),
    ("tab", "switch between the tree and the changes"),
    ("left, right, enter", "fold, unfold, show (in the tree)"),
    ("m", "mark as reviewed until it changes again"),
    ("d", "working tree, branch, session, last turn"),
    ("v", "side by side or unified"),
    ("o", "show in the editor of this terminal"),
    ("t", "show or hide the tree"),
    ("r", "reload"),
    ("q, esc", "close"),
];

pub(super) fn view(state: &State, review: &Review, buffer: &mut Buffer, area: Rect) {
    let theme = &state.theme;
    clear(buffer, area, theme.background);
    buffer.set_style(area, Style::new().fg(theme.text).bg(theme.background));
    let muted = Style::new().fg(theme.muted);
    let edge = Style::new().fg(theme.border_subtle);
    put(buffer, area, 0, &title(state, review, area.width));
    let panes = review.panes((area.width, area.height));
    let both = panes.tree.is_some() && panes.changes.is_some();
    let rule = |mark: &str| {
        let mut text = "─".repeat(usize::from(area.width));
        if both && let Some(tree) = panes.tree {
            let (left, right) = (usize::from(tree.width), usize::from(area.width - tree.width - 1));
            text = format!("{}{mark}{}", "─".repeat(left), "─".repeat(right));
        }
        Line::from(Span::styled(text, edge))
    };
    put(buffer, area, 1, &rule("┬"));
    put(buffer, area, area.height.saturating_sub(2), &rule("┴"));
    if let Some(tree) = panes.tree {
        tree_view(state, review, buffer, tree);
        if both {
            for y in tree.y..tree.y + tree.height {
                put(buffer, Rect::new(tree.width, y, 1, 1), 0, &Line::from(Span::styled("│", edge)));
            }
        }
    }
    if let Some(pane) = panes.changes {
        changes_view(state, review, buffer, pane);
    }
    let hint = if area.width < 80 {
        " n/p file  ]/[ hunk  ? all keys  esc close"
    } else {
        " tab tree  n/p file  ]/[ hunk  d source  m reviewed  ? all keys  esc close"
    };
    put(buffer, area, area.height.saturating_sub(1), &Line::from(Span::styled(hint, muted)));
    if review.help {
        help(state, buffer, area);
    }
}

fn title(state: &State, review: &Review, width: u16) -> Line<'static> {
    let theme = &state.theme;
    let bold = Style::new().fg(theme.text).add_modifier(Modifier::BOLD);
    let muted = Style::new().fg(theme.muted);
    let count = review.files.len() + review.unlisted;
    let seen = (0..review.files.len()).filter(|at| review.is_reviewed(*at)).count();
    let seen = if seen > 0 { format!(" · {seen} reviewed") } else { String::new() };
    let counted = match &review.loaded {
        LoadState::Ready => format!("{count} file{}{seen} ", if count == 1 { "" } else { "s" }),
        LoadState::Pending | LoadState::Failed(_) => String::new(),
    };
    let left = vec![Span::styled(" Diff ", bold), Span::styled(review.source.title(), muted)];
    both_ends(left, vec![Span::styled(counted, muted)], width)
}

fn tree_view(state: &State, review: &Review, buffer: &mut Buffer, area: Rect) {
    let theme = &state.theme;
    let first = review.first_node(usize::from(area.height));
    for (y, at) in (0..area.height).zip(first..review.nodes.len()) {
        let node = &review.nodes[at];
        let is_selected = at == review.selected;
        let (text, muted) = match (is_selected, review.focus) {
            (true, Focus::Tree) => {
                let style = Style::new().fg(theme.selected_text).bg(theme.primary);
                (style, style)
            }
            (true, Focus::Changes) => {
                let back = Style::new().bg(theme.element);
                (back.fg(theme.text).add_modifier(Modifier::BOLD), back.fg(theme.muted))
            }
            (false, _) => (Style::new().fg(theme.text), Style::new().fg(theme.muted)),
        };
        let file = &review.files.get(node.files.start);
        let (fold, mark) = match (node.is_directory, node.is_folded) {
            (true, true) => ("▸ ", format!("{} ", node.files.len())),
            (true, false) => ("▾ ", String::new()),
            (false, _) => {
                let seen = if review.is_reviewed(node.files.start) { "✓ " } else { "" };
                ("", format!("{seen}{} ", file.map_or('M', |file| file.status)))
            }
        };
        let pointer = if is_selected { "›" } else { " " };
        let room = usize::from(area.width)
            .saturating_sub(wrap::width(&node.branch) + wrap::width(fold) + wrap::width(&mark) + 2);
        let name = wrap::shorten(&node.name, room);
        let left = vec![
            Span::styled(format!("{pointer}{}", node.branch), muted),
            Span::styled(fold, muted),
            Span::styled(name, text),
        ];
        let line = both_ends(left, vec![Span::styled(mark, muted)], area.width);
        put(buffer, area, y, &if is_selected { line.style(text) } else { line });
    }
    if review.unlisted > 0 {
        let note = format!(" … {} more files are not listed", review.unlisted);
        put(buffer, area, area.height.saturating_sub(1), &Line::from(note));
    }
}

fn changes_view(state: &State, review: &Review, buffer: &mut Buffer, pane: Rect) {
    let muted = Style::new().fg(state.theme.muted);
    let note = match &review.loaded {
        LoadState::Pending => Some("loading…".to_owned()),
        LoadState::Failed(why) => Some(format!("cannot read the changes: {why}\npress r to reload")),
        LoadState::Ready if review.files.is_empty() => Some("no changes".to_owned()),
        LoadState::Ready => None,
    };
    if let Some(note) = note {
        let lines = note.lines().flat_map(|line| {
            let text = Span::styled(clean_line(line), muted);
            wrap::words(&[text], usize::from(pane.width).saturating_sub(2))
        });
        for (y, line) in (1..pane.height).zip(crate::panel::indent(lines.collect(), 1)) {
            put(buffer, pane, y, &line);
        }
        return;
    }
    let split = review.panes(state.size).split;
    let drawn = DrawOptions { theme: &state.theme, width: usize::from(pane.width), split };
    for (y, line) in (0..pane.height).zip(review.screen(drawn, usize::from(pane.height))) {
        put(buffer, pane, y, &line);
    }
}

fn help(state: &State, buffer: &mut Buffer, area: Rect) {
    let height = u16::try_from(HELP.len()).unwrap_or(0) + 4;
    let inner = super::layer::frame(state, buffer, area, (64, height));
    put(buffer, inner, 0, &super::layer::heading(state, "Keys", inner.width));
    for (y, (keys, what)) in (2..).zip(HELP) {
        let line = Line::from(vec![
            Span::styled(format!("{keys:<26}"), Style::new().fg(state.theme.text)),
            Span::styled(what, Style::new().fg(state.theme.muted)),
        ]);
        put(buffer, inner, y, &line);
    }
}
