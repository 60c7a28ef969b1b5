//! Draws the pages: help, keys, cost, context, status, bug report, a finding and the text of a skill.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};

use super::{layer, put, usage};
use crate::clean::{clean, clean_line};
use crate::keys;
use crate::layer::page::{Page, Topic};
use crate::state::{BugReport, Link, State};
use crate::{diff, highlight, look, markdown, wrap};

/// The maximum size of the displayed text of a skill.
const MAX_SKILL_BYTES: usize = 64 * 1024;
/// The maximum number of displayed lines of a suggested change.
const MAX_PATCH_LINES: usize = 500;
/// The columns of the left part of a pair.
const LEFT: usize = 36;
/// The least columns in which the right part of a pair is wrapped.
const MIN_COLUMN: usize = 16;

pub(super) fn view(state: &State, page: &Page, buffer: &mut Buffer, area: Rect) {
    let width = 76;
    let room = usize::from(width.min(area.width.saturating_sub(2))).saturating_sub(4);
    let wrapped =
        |lines: Vec<Line<'static>>| lines.into_iter().flat_map(|line| wrap_pair(line, room)).collect();
    let (title, lines): (_, Vec<Line<'static>>) = match &page.topic {
        Topic::Help => ("Help", wrapped(help(state))),
        Topic::Keys => ("Keys of the moment", wrapped(keys_now(state))),
        Topic::Cost => ("Cost", wrapped(usage::cost(state))),
        Topic::Context => ("Context", wrapped(usage::context(state))),
        Topic::Status => ("Status", wrapped(status(state))),
        Topic::Bug => ("Bug report", wrapped(bug(state, room))),
        Topic::Finding(at) => ("Finding", finding(state, *at, room)),
        Topic::Skill(name) => ("Skill", skill(state, name, room)),
    };
    let height = u16::try_from(lines.len()).unwrap_or(u16::MAX).saturating_add(5);
    let inner = layer::frame(state, buffer, area, (width, height.min(area.height.saturating_sub(2))));
    put(buffer, inner, 0, &layer::heading(state, title, inner.width));
    let body = Rect::new(inner.x, inner.y + 2, inner.width, inner.height.saturating_sub(2));
    let first = page.scroll.min(lines.len().saturating_sub(usize::from(body.height)));
    for (y, line) in (0..body.height).zip(lines.iter().skip(first)) {
        put(buffer, body, y, line);
    }
}

pub(super) fn group(state: &State, name: &str) -> Line<'static> {
    Line::from(Span::styled(
        name.to_owned(),
        Style::new().fg(state.theme.accent).add_modifier(Modifier::BOLD),
    ))
}

/// Returns the lines of a pair, whose right part has a column of its own.
fn wrap_pair(line: Line<'static>, room: usize) -> Vec<Line<'static>> {
    let [left, right] = &line.spans[..] else { return vec![line] };
    let column = wrap::width(&left.content);
    if column + wrap::width(&right.content) <= room || room < column + MIN_COLUMN {
        return vec![line];
    }
    let (first, rest) = (left.clone(), Span::raw(" ".repeat(column)));
    wrap::prefix_lines(wrap::words(std::slice::from_ref(right), room - column), &first, &rest)
}

pub(super) fn pair(state: &State, left: &str, right: &str) -> Line<'static> {
    Line::from(vec![
        Span::styled(format!("  {left:<LEFT$}"), Style::new().fg(state.theme.text)),
        Span::styled(right.to_owned(), Style::new().fg(state.theme.muted)),
    ])
}

fn help(state: &State) -> Vec<Line<'static>> {
    let mut lines = vec![
        pair(state, "/", "commands"),
        pair(state, "@", "files and agents"),
        pair(state, "! in an empty prompt", "a shell command"),
        pair(state, "a click", "unfolds outputs, opens subagents"),
    ];
    let groups = keys::by_group(&state.keys, |action| crate::update::is_offered(state, action));
    for name in ["System", "Session", "Prompt", "Agent", "Keys"] {
        lines.extend([Line::default(), group(state, name)]);
        for (how, title) in groups.get(name).into_iter().flatten() {
            lines.push(pair(state, how, title));
        }
    }
    lines
}

/// Returns the keys that have an effect now.
fn keys_now(state: &State) -> Vec<Line<'static>> {
    let groups = keys::by_group(&state.keys, |action| crate::update::applies(state, action));
    let mut lines = vec![
        pair(state, "/ @ !", "commands, files and agents, a shell command"),
        pair(state, "y a n, or 1 2 3", "answer a permission request"),
    ];
    for name in ["Keys", "Prompt", "Session", "Agent", "System"] {
        let with_keys = groups.get(name).into_iter().flatten().filter(|(how, _)| !how.starts_with('/'));
        let rows: Vec<_> = with_keys.collect();
        if rows.is_empty() {
            continue;
        }
        lines.extend([Line::default(), group(state, name)]);
        lines.extend(rows.into_iter().map(|(how, title)| pair(state, how, title)));
    }
    lines
}

fn status(state: &State) -> Vec<Line<'static>> {
    let link = match &state.link {
        Link::Opening => "connecting".to_owned(),
        Link::Open => "connected".to_owned(),
        Link::Lost(why) => format!("lost: {why}"),
    };
    let mut lines = vec![
        group(state, "Server"),
        pair(state, "connection", &link),
        pair(state, "version", state.options.version),
        pair(state, "directory", &clean_line(&state.mirror.directory)),
        Line::default(),
        group(state, "Providers"),
    ];
    for provider in &state.mirror.providers {
        lines.push(pair(state, &provider.name, &format!("{} models", provider.models.len())));
    }
    if state.mirror.providers.is_empty() {
        lines.push(pair(state, "none", "/connect stores the key of a provider"));
    }
    if !state.mirror.sandbox.is_empty() {
        lines.extend([Line::default(), group(state, "Sandbox of commands")]);
        lines.extend(state.mirror.sandbox.iter().map(|(name, text)| pair(state, name, text)));
    }
    lines.extend(servers(state));
    lines.extend([Line::default(), group(state, "Terminal")]);
    lines.push(pair(state, "theme", &state.theme_name));
    lines.push(pair(state, "colours", &format!("{:?}", state.options.depth).to_lowercase()));
    lines.push(pair(state, "size", &format!("{} × {}", state.size.0, state.size.1)));
    lines
}

/// Returns the lines for MCP servers, language servers and formatters.
fn servers(state: &State) -> Vec<Line<'static>> {
    let mirror = &state.mirror;
    let mut lines = vec![Line::default(), group(state, "MCP servers")];
    for server in &mirror.mcp {
        let status = crate::layer::mcp::status_text(&server.status, server.error.as_deref());
        lines.push(pair(state, &clean_line(&server.name), &status));
    }
    if mirror.mcp.is_empty() {
        lines.push(pair(state, "none configured", ""));
    }
    lines.extend([Line::default(), group(state, "Language servers")]);
    for server in &mirror.lsp {
        let error = server.error.as_deref().map(|error| format!(": {error}")).unwrap_or_default();
        lines.push(pair(state, &server.name, &format!("{} {}{error}", server.status, server.root)));
    }
    if mirror.lsp.is_empty() {
        lines.push(pair(state, "none running", ""));
    }
    lines.extend([Line::default(), group(state, "Formatters")]);
    for (name, kinds) in &mirror.formatters {
        lines.push(pair(state, name, kinds));
    }
    if mirror.formatters.is_empty() {
        lines.push(pair(state, "none enabled", ""));
    }
    lines
}

/// Returns the name, the file and the text of a skill.
fn skill(state: &State, name: &str, width: usize) -> Vec<Line<'static>> {
    let mut lines = vec![group(state, &clean_line(name))];
    let Some(skill) = state.skills.iter().find(|skill| skill.name == name) else { return lines };
    let muted = Style::new().fg(state.theme.muted);
    let place = look::display_path(&skill.location, &state.mirror.directory, &state.mirror.home);
    lines.push(Line::from(Span::styled(wrap::shorten_front(&place, width), muted)));
    lines.push(Line::default());
    let end = skill.content.floor_char_boundary(MAX_SKILL_BYTES);
    lines.extend(markdown::prose(&clean(&skill.content[..end]), width, &state.theme));
    if end < skill.content.len() {
        lines.push(Line::from(Span::styled("… the rest is in the file", muted)));
    }
    lines
}

fn bug(state: &State, width: usize) -> Vec<Line<'static>> {
    let model = state.model().map(|(provider, model)| format!("{provider}/{model}")).unwrap_or_default();
    let mut lines = match &state.bug {
        BugReport::Pending => vec![text_line(state, "writing the report…")],
        BugReport::Failed(error) => text(state, error, width),
        BugReport::Written { path, advice } => {
            let mut lines = text(state, &format!("The report is in {path}."), width);
            lines.push(Line::default());
            lines.extend(text(state, advice, width));
            lines
        }
    };
    lines.extend([
        Line::default(),
        pair(state, "version", state.options.version),
        pair(state, "system", std::env::consts::OS),
        pair(state, "model", &clean_line(&model)),
        pair(state, "session", state.session_id().map_or("none", |id| id.as_str())),
        Line::default(),
        pair(state, "codewright export --sanitize ID", "exports the session without texts and paths"),
    ]);
    lines
}

fn text_line(state: &State, text: &str) -> Line<'static> {
    Line::from(Span::styled(text.to_owned(), Style::new().fg(state.theme.text)))
}

/// Returns the lines of a text. Its own line ends are those of a terminal of another width.
fn text(state: &State, text: &str, width: usize) -> Vec<Line<'static>> {
    let text = clean_line(&text.replace('\n', " "));
    wrap::words(&[Span::styled(text, Style::new().fg(state.theme.text))], width)
}

/// Returns the place, the problem and the suggested change of a finding.
fn finding(state: &State, at: usize, width: usize) -> Vec<Line<'static>> {
    let found = state.findings.as_ref().and_then(|findings| findings.review.findings.get(at));
    let Some(finding) = found else { return vec![text_line(state, "this finding is gone")] };
    let place = format!("{}:{}", finding.file, finding.line);
    let mut lines = vec![
        group(state, &clean_line(&format!("{}: {}", finding.severity.name(), finding.title))),
        Line::from(Span::styled(
            wrap::shorten_front(&clean_line(&place), width),
            Style::new().fg(state.theme.muted),
        )),
        Line::default(),
    ];
    lines.extend(markdown::prose(&clean(&finding.description), width, &state.theme));
    if let Some(patch) = &finding.patch {
        let view = diff::View { theme: &state.theme, width, limit: MAX_PATCH_LINES };
        lines.push(Line::default());
        lines.extend(diff::lines(patch, highlight::of_file(&finding.file), view));
    } else if let Some(suggestion) = &finding.suggestion {
        lines.extend([Line::default(), group(state, "Suggestion")]);
        lines.extend(markdown::prose(&clean(suggestion), width, &state.theme));
    }
    let apply = if finding.patch.is_some() { "apply the change" } else { "give it to the agent" };
    lines.extend([Line::default(), pair(state, "a", apply), pair(state, "d", "dismiss it")]);
    lines
}
