//! The dialogs for permission requests and questions, in the place of the prompt.

use codewright_proto::PermissionRequest;
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use serde_json::Value;

use super::{Bottom, both_ends};
use crate::clean::{clean_code, clean_line, clean_name};
use crate::look::Look;
use crate::panel::{SIDES, panel};
use crate::request::{self, PermissionDialog, QuestionDialog, Stage};
use crate::state::State;
use crate::wrap;

/// The maximum number of lines of details, unless the dialog uses the full height.
const MAX_LINES: usize = 14;
/// The maximum number of patterns.
const MAX_PATTERNS: usize = 12;
/// The rows of the screen that a question cannot use: the panel's edges, its hint, the footer and
/// a row of the transcript.
const AROUND_QUESTION: usize = 6;

pub(super) fn lines(state: &State, width: u16, height: u16) -> Bottom {
    if let (Some(dialog), Some(request)) = (&state.requests.permission, request::permission(state)) {
        return permission(state, dialog, request, (width, height));
    }
    match (&state.requests.question, request::question(state)) {
        (Some(dialog), Some(request)) => question(state, dialog, &request.questions, (width, height)),
        _ => Bottom::default(),
    }
}

fn permission(
    state: &State,
    dialog: &PermissionDialog,
    request: &PermissionRequest,
    (width, height): (u16, u16),
) -> Bottom {
    let theme = &state.theme;
    let look = state.look(usize::from(width));
    let room = usize::from(width).saturating_sub(SIDES).max(8);
    let warning = Style::new().fg(look.waiting()).add_modifier(Modifier::BOLD);
    let text = Style::new().fg(theme.text);
    let muted = Style::new().fg(theme.muted);
    let (title, mut body) = match &dialog.stage {
        Stage::Choose => {
            let reason =
                special_reason(request).map(|reason| wrap::words(&[Span::styled(reason, warning)], room));
            let mut lines = reason.unwrap_or_default();
            let line = |text: String| wrap::words(&[Span::styled(text, muted)], room);
            if !request.metadata.contains_key("controlFile") {
                lines.extend(
                    asked(request, "because")
                        .into_iter()
                        .flat_map(|why| line(format!("Asked because {why}."))),
                );
            }
            lines.extend(details(&look, request, room));
            lines.extend(
                asked(request, "always").into_iter().flat_map(|what| line(format!("Always allows: {what}."))),
            );
            ("△ Permission required", lines)
        }
        Stage::Always(number) => ("△ Always allow", always(state, request, *number, room)),
        Stage::Reject(_) => (
            "△ Reject",
            vec![Line::from(Span::styled("What should the model do instead? (enter sends it)", muted))],
        ),
    };
    let mut cursor = None;
    let full = usize::from(height).saturating_sub(10).max(3);
    let limit = if dialog.full { full } else { MAX_LINES.min(full) };
    let total = body.len();
    if total > limit {
        let first = dialog.scroll.min(total - limit);
        body = body.into_iter().skip(first).take(limit).collect();
        let hidden = total - limit;
        body.push(Line::from(Span::styled(format!("… {hidden} more lines (ctrl+f shows more)"), muted)));
    }
    let mut content = vec![Line::from(Span::styled(title, warning)), Line::default()];
    content.append(&mut body);
    content.push(Line::default());
    let hint = match &dialog.stage {
        Stage::Reject(editor) => {
            let shown = wrap::shorten_front(&clean_line(editor.text()), room.saturating_sub(2));
            let x = u16::try_from(5 + 2 + wrap::width(&shown)).unwrap_or(0);
            cursor = Some((x, u16::try_from(content.len() + 1).unwrap_or(0)));
            content.push(Line::from(vec![Span::styled("› ", muted), Span::styled(shown, text)]));
            return Bottom { lines: panel(content, usize::from(width), look.waiting(), theme), cursor };
        }
        Stage::Always(_) if !request::wider(request).is_empty() => {
            ["y n  ⇅ pattern  ⇆ select  enter confirm", "y n  ⇅ pattern"]
        }
        Stage::Always(_) => ["y n  ⇆ select  enter confirm", "y n"],
        Stage::Choose => ["y a n  ctrl+f fullscreen  ⇆ select  enter confirm", "y a n  ctrl+f"],
    };
    let names: &[&str] = if matches!(dialog.stage, Stage::Always(_)) {
        &["Confirm", "Cancel"]
    } else {
        &["Allow once", "Allow always", "Reject"]
    };
    let mut buttons = Vec::new();
    for (at, name) in names.iter().enumerate() {
        let style = if at == dialog.selected {
            Style::new().fg(theme.selected_text).bg(look.waiting()).add_modifier(Modifier::BOLD)
        } else {
            muted
        };
        // Without colours the brackets show the selection.
        let (open, close) = if at == dialog.selected { ("[", "]") } else { (" ", " ") };
        buttons.push(Span::styled(format!("{open}{name}{close}"), style));
        buttons.push(Span::raw(" "));
    }
    let used: usize = buttons.iter().map(Span::width).sum();
    let hint = hint.into_iter().find(|hint| used + hint.chars().count() < room).unwrap_or_default();
    content.push(both_ends(buttons, vec![Span::styled(hint, muted)], u16::try_from(room).unwrap_or(width)));
    Bottom { lines: panel(content, usize::from(width), look.waiting(), theme), cursor }
}

/// Explains what "always" allows, and where. `number` is that of the chosen wider pattern.
fn always(state: &State, request: &PermissionRequest, number: usize, room: usize) -> Vec<Line<'static>> {
    let style = Style::new().fg(state.theme.text);
    let name = clean_line(&request.permission);
    let place = remembered_in(state, request);
    let everything = request.always.iter().any(|pattern| pattern == "*");
    if everything || request.always.is_empty() {
        let text = if everything {
            format!("Allow always: every {name} {place}, until you revoke it.")
        } else {
            format!("This allows {name} once, because this request cannot be remembered.")
        };
        return wrap::words(&[Span::styled(text, style)], room);
    }
    let text = format!("Allow always {name} {place}, until you revoke it:");
    let mut lines = wrap::words(&[Span::styled(text, style)], room);
    lines.extend(patterns(&request.always, room, style));
    let wider = request::wider(request);
    if wider.is_empty() {
        return lines;
    }
    let muted = Style::new().fg(state.theme.muted);
    lines.push(Line::default());
    let choices = std::iter::once("no more".to_owned())
        .chain(wider.iter().map(|pattern| format!("also {}", clean_name(pattern))));
    for (at, choice) in choices.enumerate() {
        let (mark, style) = if at == number { ("(•) ", style) } else { ("( ) ", muted) };
        lines.extend(wrap::exact(&[Span::styled(format!("{mark}{choice}"), style)], room));
    }
    lines
}

/// Returns a part of the explanation of a request: why it is asked, or what "always" covers.
fn asked(request: &PermissionRequest, key: &str) -> Option<String> {
    request.metadata.get("asked")?.get(key)?.as_str().map(clean_line)
}

/// Describes where an approval applies: in the worktree, or outside a repository in the directory.
fn remembered_in(state: &State, request: &PermissionRequest) -> String {
    let mirror = &state.mirror;
    let session = mirror.sessions.get(&request.session_id).map(|session| session.directory.as_str());
    let directory = session.unwrap_or(&mirror.directory);
    let in_worktree =
        mirror.worktree.len() > 1 && std::path::Path::new(directory).starts_with(&mirror.worktree);
    let (noun, place) =
        if in_worktree { ("project", mirror.worktree.as_str()) } else { ("directory", directory) };
    format!("in this {noun} ({})", clean_line(place))
}

/// Returns the reason why a call needs permission although the rules allow it: it writes a control file, or its
/// sandbox cannot be enforced.
fn special_reason(request: &PermissionRequest) -> Option<String> {
    let reason = |key: &str| request.metadata.get(key)?.as_str().map(clean_line);
    match reason("controlFile") {
        Some(reason) => Some(format!("Writing here needs permission: {reason}.")),
        None => reason("sandbox"),
    }
}

fn patterns(patterns: &[String], room: usize, style: Style) -> Vec<Line<'static>> {
    let shown = patterns
        .iter()
        .take(MAX_PATTERNS)
        .flat_map(|pattern| wrap::exact(&[Span::styled(format!("- {}", clean_name(pattern)), style)], room));
    let mut lines: Vec<Line<'static>> = shown.collect();
    if patterns.len() > MAX_PATTERNS {
        lines.push(Line::from(Span::styled(format!("and {} more", patterns.len() - MAX_PATTERNS), style)));
    }
    lines
}

/// Describes the call that needs permission.
fn details(look: &Look<'_>, request: &PermissionRequest, room: usize) -> Vec<Line<'static>> {
    let theme = look.theme;
    let text = Style::new().fg(theme.text);
    let muted = Style::new().fg(theme.muted);
    let meta = |key: &str| request.metadata.get(key).and_then(Value::as_str).unwrap_or_default();
    let line = |label: String| wrap::words(&[Span::styled(label, text)], room);
    match request.permission.as_str() {
        "bash" => {
            let command = clean_code(meta("command"));
            let mut lines = Vec::new();
            for (at, row) in command.lines().enumerate() {
                let mark = if at == 0 { "$ " } else { "  " };
                let wrapped = wrap::exact(&[Span::styled(row.to_owned(), text)], room.saturating_sub(2));
                lines.extend(wrap::prefix_lines(wrapped, &Span::styled(mark, muted), &Span::raw("  ")));
            }
            lines
        }
        "edit" | "write" | "patch" | "apply_patch" | "multiedit" => {
            let path = meta("filepath");
            let named = if path.is_empty() { request.patterns.join(", ") } else { look.path(path) };
            let mut lines = line(format!("← Edit {}", clean_line(&named)));
            lines.push(Line::default());
            lines.extend(look.question_diff(meta("diff"), path, room, 5_000));
            lines
        }
        "external_directory" => {
            let mut lines = line(
                format!("← Access outside the project: {}", look.path(meta("parentDir")))
                    .trim_end_matches([':', ' '])
                    .to_owned(),
            );
            if !meta("command").is_empty() {
                lines.extend(line(format!("$ {}", clean_name(meta("command")))));
            }
            lines.push(Line::default());
            lines.extend(patterns(&request.patterns, room, muted));
            lines
        }
        "doom_loop" => line(format!("The model repeats the same call: {}", clean_line(meta("tool")))),
        "network" => {
            let mut lines = line("→ Connect from a command to:".to_owned());
            lines.extend(patterns(&request.patterns, room, text));
            if !meta("command").is_empty() {
                lines.push(Line::default());
                lines.extend(line(format!("$ {}", clean_name(meta("command")))));
            }
            lines
        }
        name => {
            let mut lines = line(format!("⚙ {}", clean_line(name)));
            let facts = request.metadata.iter().filter(|(key, _)| *key != "asked");
            for (key, value) in facts.take(MAX_PATTERNS) {
                let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                let entry = format!("{}: {}", clean_line(key), wrap::cut(&clean_line(&value), 400));
                lines.extend(wrap::words(&[Span::styled(entry, muted)], room));
            }
            lines.extend(patterns(&request.patterns, room, muted));
            lines
        }
    }
}

fn question(
    state: &State,
    dialog: &QuestionDialog,
    questions: &[codewright_proto::Question],
    (width, height): (u16, u16),
) -> Bottom {
    let theme = &state.theme;
    let look = state.look(usize::from(width));
    let room = usize::from(width).saturating_sub(SIDES).max(8);
    let text = Style::new().fg(theme.text);
    let muted = Style::new().fg(theme.muted);
    let chosen = Style::new().fg(theme.primary).add_modifier(Modifier::BOLD);
    let mut content = Vec::new();
    let single = questions.len() == 1 && !questions.iter().any(|question| question.multiple.unwrap_or(false));
    if !single {
        let names =
            questions.iter().map(|question| clean_line(&question.header)).chain(["Confirm".to_owned()]);
        let tabs = names.enumerate().map(|(at, name)| {
            let style = if at == dialog.tab { chosen.add_modifier(Modifier::REVERSED) } else { muted };
            Span::styled(format!(" {name} "), style)
        });
        content.extend([Line::from(tabs.collect::<Vec<_>>()), Line::default()]);
    }
    let mut cursor = None;
    let mut needed = 0;
    let hint = match questions.get(dialog.tab) {
        None => {
            content.push(Line::from(Span::styled("Review", chosen)));
            for (question, answers) in questions.iter().zip(&dialog.answers) {
                let given = if answers.is_empty() { "(no answer)".to_owned() } else { answers.join(", ") };
                let answer = format!("{}: {}", clean_line(&question.header), clean_line(&given));
                content.push(Line::default());
                content.extend(wrap::words(&[Span::styled(answer, text)], room));
            }
            "⇆ tab  enter submit  esc dismiss"
        }
        Some(question) => {
            let multiple = question.multiple.unwrap_or(false);
            let more = if multiple { " (select all that apply)" } else { "" };
            content.extend(look.markdown(&format!("{}{more}", question.question), room));
            content.push(Line::default());
            let (lines, selected) = choices(&look, question, dialog, room);
            needed = content.len() + selected;
            content.extend(lines);
            if let Some(editor) = &dialog.custom {
                let shown = wrap::shorten_front(&clean_line(editor.text()), room.saturating_sub(2));
                cursor = Some((
                    u16::try_from(7 + wrap::width(&shown)).unwrap_or(0),
                    u16::try_from(content.len() + 1).unwrap_or(0),
                ));
                content.push(Line::from(vec![Span::styled("› ", muted), Span::styled(shown, text)]));
                needed = content.len();
            }
            if multiple {
                "⇆ tab  ↑↓ select  enter toggle  esc dismiss"
            } else {
                "⇆ tab  ↑↓ select  enter confirm  esc dismiss"
            }
        }
    };
    // If there is no room for all lines, the selected answer must be visible.
    let room = usize::from(height).saturating_sub(AROUND_QUESTION).max(1);
    let first = needed.saturating_sub(room);
    content = content.into_iter().skip(first).take(room).collect();
    let cursor = cursor.map(|(x, y): (u16, u16)| (x, y.saturating_sub(u16::try_from(first).unwrap_or(y))));
    content.push(Line::default());
    content.push(Line::from(Span::styled(hint, muted)));
    Bottom { lines: panel(content, usize::from(width), theme.primary, theme), cursor }
}

/// Returns the lines of the answers, and the number of lines up to the end of the selected one.
fn choices(
    look: &Look<'_>,
    question: &codewright_proto::Question,
    dialog: &QuestionDialog,
    room: usize,
) -> (Vec<Line<'static>>, usize) {
    let multiple = question.multiple.unwrap_or(false);
    let answers = dialog.answers.get(dialog.tab).map_or(&[][..], Vec::as_slice);
    let own = answers.iter().find(|answer| question.options.iter().all(|option| option.label != **answer));
    let own_label = own.map_or("Type your own answer".to_owned(), |own| format!("Your answer: {own}"));
    let options = question
        .options
        .iter()
        .map(|option| (option.label.as_str(), option.description.as_str(), answers.contains(&option.label)));
    let custom = question.custom.unwrap_or(true).then_some((own_label.as_str(), "", own.is_some()));
    let (mut lines, mut needed) = (Vec::new(), 0);
    for (at, (label, about, mark)) in options.chain(custom).enumerate() {
        let selected = at == dialog.selected;
        let mark = match (multiple, mark) {
            (true, true) => "[✓] ",
            (true, false) => "[ ] ",
            (false, true) => "✓ ",
            (false, false) => "",
        };
        let label = format!("{}. {mark}{}", at + 1, clean_line(label));
        lines.extend(choice(look, &Choice { label, about, selected }, room));
        if selected {
            needed = lines.len();
        }
    }
    (lines, needed)
}

/// An answer to choose.
struct Choice<'a> {
    label: String,
    about: &'a str,
    selected: bool,
}

fn choice(look: &Look<'_>, choice: &Choice<'_>, room: usize) -> Vec<Line<'static>> {
    let theme = look.theme;
    let Choice { label, about, selected } = choice;
    let colour = if *selected { theme.primary } else { theme.text };
    let pointer = if *selected { "›" } else { " " };
    let label = format!("{pointer} {label}");
    let mut lines = wrap::words(&[Span::styled(label, Style::new().fg(colour))], room);
    if !about.trim().is_empty() {
        let about = wrap::words(
            &[Span::styled(clean_line(about), Style::new().fg(theme.muted))],
            room.saturating_sub(5),
        );
        lines.extend(crate::panel::indent(about, 5));
    }
    lines
}
