//! Draws the sidebar of a session.

use codewright_proto::Message;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};

use super::{clear, put};
use crate::clean::clean_line;
use crate::state::State;
use crate::wrap;

/// The maximum number of changed files.
const MAX_FILES: usize = 12;
/// The maximum number of servers of each kind.
const MAX_SERVERS: usize = 8;

pub(super) fn view(state: &State, buffer: &mut Buffer, area: Rect) {
    let theme = &state.theme;
    clear(buffer, area, theme.panel);
    let inner =
        Rect::new(area.x + 2, area.y + 1, area.width.saturating_sub(4), area.height.saturating_sub(3));
    let lines = lines(state, usize::from(inner.width));
    for (at, line) in (0..inner.height).zip(&lines) {
        put(buffer, inner, at, line);
    }
    let muted = Style::new().fg(theme.muted);
    // Outside a repository the root of the worktree is that of the file system.
    let mirror = &state.mirror;
    let root = if mirror.worktree == "/" { &mirror.directory } else { &mirror.worktree };
    let place = crate::look::display_path(root, "", &mirror.home);
    let branch =
        state.mirror.branch.as_deref().map(|branch| format!(":{}", clean_line(branch))).unwrap_or_default();
    let place = wrap::shorten_front(&format!("{place}{branch}"), usize::from(inner.width));
    let version = Line::from(vec![
        Span::styled("• ", Style::new().fg(theme.success)),
        Span::styled("Codewright ", Style::new().fg(theme.text)),
        Span::styled(state.options.version, muted),
    ]);
    let foot = Rect::new(inner.x, (area.y + area.height).saturating_sub(2), inner.width, 2);
    put(buffer, foot, 0, &Line::from(Span::styled(place, muted)));
    put(buffer, foot, 1, &version);
}

fn lines(state: &State, width: usize) -> Vec<Line<'static>> {
    let theme = &state.theme;
    let text = Style::new().fg(theme.text);
    let muted = Style::new().fg(theme.muted);
    let heading = |title: &str| Line::from(Span::styled(title.to_owned(), text.add_modifier(Modifier::BOLD)));
    let Some(session) = state.session() else { return Vec::new() };
    let title = Span::styled(clean_line(&session.title), text.add_modifier(Modifier::BOLD));
    let mut lines: Vec<Line<'static>> = wrap::words(&[title], width).into_iter().take(3).collect();
    lines.extend([Line::default(), heading("Context")]);
    let (tokens, percent) = context(state).unwrap_or((0, None));
    lines.push(Line::from(Span::styled(format!("{} tokens", with_separators(tokens)), muted)));
    if let Some(percent) = percent {
        lines.push(Line::from(Span::styled(format!("{percent}% used"), muted)));
    }
    lines.push(Line::from(Span::styled(format!("${:.2} spent", session.cost), muted)));
    let (input, output) = (session.tokens.input, session.tokens.output);
    if input > 0 || output > 0 {
        let text = format!("{} in · {} out", with_separators(input), with_separators(output));
        lines.push(Line::from(Span::styled(text, muted)));
    }
    lines.extend(steps(state).map(|steps| Line::from(Span::styled(steps, muted))));
    let cached = session.tokens.cache.read;
    if cached > 0 {
        lines.push(Line::from(Span::styled(format!("{} from the cache", with_separators(cached)), muted)));
    }
    lines.extend(servers(state, width));
    let todos = state.mirror.todos.get(&session.id).filter(|todos| !todos.is_empty());
    if let Some(todos) = todos {
        lines.extend([Line::default(), heading("Todo")]);
        let look = state.look(width);
        for todo in todos {
            lines.extend(look.todo(&todo.status, &todo.content, width.saturating_sub(4)));
        }
    }
    let files = changed_files(state);
    if !files.is_empty() {
        lines.extend([Line::default(), heading("Changed files")]);
        for (file, added, removed) in files.iter().take(MAX_FILES) {
            let counts = format!(" +{added} -{removed}");
            let name = wrap::shorten_front(&clean_line(file), width.saturating_sub(counts.len()));
            let blank = width.saturating_sub(wrap::width(&name) + counts.len());
            lines.push(Line::from(vec![
                Span::styled(format!("{name}{}", " ".repeat(blank)), muted),
                Span::styled(format!(" +{added}"), Style::new().fg(theme.diff_added)),
                Span::styled(format!(" -{removed}"), Style::new().fg(theme.diff_removed)),
            ]));
        }
        if files.len() > MAX_FILES {
            lines.push(Line::from(Span::styled(format!("and {} more", files.len() - MAX_FILES), muted)));
        }
    }
    lines
}

/// Returns the lines for MCP servers and language servers.
fn servers(state: &State, width: usize) -> Vec<Line<'static>> {
    let theme = &state.theme;
    let text = Style::new().fg(theme.text);
    let muted = Style::new().fg(theme.muted);
    let mcp = state.mirror.mcp.iter().map(|server| {
        let detail = match (server.status.as_str(), &server.error) {
            ("connected", _) => String::new(),
            (_, Some(error)) => error.clone(),
            (status, None) => crate::layer::mcp::status_text(status, None),
        };
        let colour = match server.status.as_str() {
            "connected" => theme.success,
            "disabled" => theme.muted,
            "needs_auth" | "needs_client_registration" => theme.warning,
            _ => theme.error,
        };
        (clean_line(&server.name), detail, colour)
    });
    let lsp = state.mirror.lsp.iter().map(|server| {
        let fine = server.status == "connected";
        let problem = || server.error.clone().unwrap_or_else(|| server.status.clone());
        let detail = if fine { String::new() } else { problem() };
        (server.name.clone(), detail, if fine { theme.success } else { theme.error })
    });
    let mut lines = Vec::new();
    for (title, servers) in [("MCP", mcp.collect::<Vec<_>>()), ("LSP", lsp.collect())] {
        if servers.is_empty() {
            continue;
        }
        let heading = Span::styled(title, text.add_modifier(Modifier::BOLD));
        lines.extend([Line::default(), Line::from(heading)]);
        for (name, detail, colour) in servers.iter().take(MAX_SERVERS) {
            let spans = [Span::styled(name.clone(), text), Span::styled(format!(" {detail}"), muted)];
            let wrapped = wrap::words(&spans, width.saturating_sub(2)).into_iter().take(2).collect();
            let mark = Span::styled("• ", Style::new().fg(*colour));
            lines.extend(wrap::prefix_lines(wrapped, &mark, &Span::raw("  ")));
        }
        if servers.len() > MAX_SERVERS {
            lines.push(Line::from(Span::styled(format!("and {} more", servers.len() - MAX_SERVERS), muted)));
        }
    }
    lines
}

/// Returns the files that the prompts of the session changed, with added and removed lines.
pub(super) fn changed_files(state: &State) -> Vec<(String, u64, u64)> {
    let mut files: Vec<(String, u64, u64)> = Vec::new();
    for diff in diffs(state) {
        let Some(name) = diff.file.clone() else { continue };
        match files.iter_mut().find(|(known, _, _)| *known == name) {
            Some(known) => {
                known.1 += diff.additions;
                known.2 += diff.deletions;
            }
            None => files.push((name, diff.additions, diff.deletions)),
        }
    }
    files
}

/// Returns the changes of each prompt of the session, in order.
pub(crate) fn diffs(state: &State) -> impl Iterator<Item = &codewright_proto::FileDiff> {
    let transcript = state.session_id().and_then(|id| state.mirror.transcripts.get(id));
    let entries =
        transcript.into_iter().flat_map(|transcript| transcript.entries.iter().take(transcript.end));
    let summaries = entries.filter_map(|entry| match &entry.info {
        Message::User(info) => info.summary.as_ref(),
        Message::Assistant(_) => None,
    });
    summaries.flat_map(|summary| &summary.diffs)
}

/// Returns the changes of the last prompt.
pub(crate) fn last_diffs(state: &State) -> &[codewright_proto::FileDiff] {
    let transcript = state.session_id().and_then(|id| state.mirror.transcripts.get(id));
    let mut entries =
        transcript.into_iter().flat_map(|transcript| transcript.entries.iter().take(transcript.end).rev());
    let last = entries.find_map(|entry| match &entry.info {
        Message::User(info) => Some(info.summary.as_ref().map_or(&[][..], |summary| &summary.diffs)),
        Message::Assistant(_) => None,
    });
    last.unwrap_or_default()
}

/// Returns the tokens in the context of the last answer, and their share of the context in percent.
pub(super) fn context(state: &State) -> Option<(u64, Option<u64>)> {
    let transcript = state.mirror.transcripts.get(state.session_id()?)?;
    let answers = transcript.entries.iter().take(transcript.end).rev();
    let last = answers.filter_map(|entry| match &entry.info {
        Message::Assistant(info) => Some(info),
        Message::User(_) => None,
    });
    let total = |tokens: &codewright_proto::TokenUsage| {
        tokens.input + tokens.output + tokens.reasoning + tokens.cache.read + tokens.cache.write
    };
    let last = last.into_iter().find(|info| total(&info.tokens) > 0)?;
    let limit = state.mirror.model(&last.provider_id, &last.model_id).map_or(0, |(_, model)| model.context);
    let tokens = total(&last.tokens);
    Some((tokens, (tokens * 100).checked_div(limit)))
}

/// Returns the number of model responses in the session, or `None` before the first one.
///
/// Older messages that were not fetched are not counted, so the number is followed by `+`.
pub(super) fn steps(state: &State) -> Option<String> {
    let transcript = state.mirror.transcripts.get(state.session_id()?)?;
    let entries = transcript.entries.iter().take(transcript.end);
    let count = entries.filter(|entry| matches!(entry.info, Message::Assistant(_))).count();
    let more = if transcript.older.is_some() { "+" } else { "" };
    let plural = if count == 1 && more.is_empty() { "" } else { "s" };
    (count > 0).then(|| format!("{count}{more} step{plural}"))
}

/// Formats a number with separators between thousands.
pub(super) fn with_separators(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
