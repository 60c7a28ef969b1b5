//! Draws tool calls: most as one line, some with their results.

use codewright_proto::{Map, SessionId, ToolPart, ToolState};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use serde_json::Value;

use super::{INDENT, Look, duration};
use crate::clean::{clean, clean_code, clean_line};
use crate::diff::{self, View};
use crate::highlight::{self, Inside};
use crate::panel::{SIDES, indent, panel};
use crate::progress::{Calls, call_title};
use crate::transcript::{Body, PartEntry};
use crate::{link, markdown, wrap};

mod refusal;

/// The number of lines of a folded output.
const OUTPUT_LINES: usize = 10;
/// The number of lines of a folded diff.
const DIFF_LINES: usize = 60;
/// The maximum number of lines of an unfolded output.
const ALL_LINES: usize = 2_000;
/// The number of calls of a subagent that is opened in place.
const MAX_TASK_CALLS: usize = 10;
/// The maximum number of arguments in a title.
const MAX_ARGUMENTS: usize = 8;
/// The frames of the spinner.
const SPINNER: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
/// The duration of a frame, in milliseconds.
const SPINNER_STEP: u64 = 80;

/// Returns the frame of the spinner at a time.
pub(crate) fn spinner(now: u64) -> &'static str {
    SPINNER[(now / SPINNER_STEP) as usize % SPINNER.len()]
}

/// A call in any state.
struct Call<'a> {
    name: &'a str,
    input: &'a Value,
    metadata: Option<&'a Map>,
    output: &'a str,
    error: Option<&'a str>,
    is_open: bool,
    /// When it started, while it runs.
    began: Option<u64>,
    took: u64,
}

impl<'a> Call<'a> {
    fn of(tool: &'a ToolPart) -> Self {
        let mut call = Self {
            name: &tool.tool,
            input: &Value::Null,
            metadata: None,
            output: "",
            error: None,
            is_open: tool.state.is_open(),
            began: None,
            took: 0,
        };
        match &tool.state {
            ToolState::Pending { .. } => {}
            ToolState::Running { input, metadata, time, .. } => {
                call.began = Some(time.start);
                call.input = input;
                call.metadata = metadata.as_ref();
            }
            ToolState::Completed { input, output, metadata, time, .. } => {
                (call.input, call.output, call.metadata) = (input, output, Some(metadata));
                call.took = time.end.saturating_sub(time.start);
            }
            ToolState::Error { input, error, metadata, time } => {
                (call.input, call.error, call.metadata) = (input, Some(error.as_str()), metadata.as_ref());
                call.took = time.end.saturating_sub(time.start);
            }
        }
        call
    }

    fn argument(&self, key: &str) -> &'a str {
        self.input.get(key).and_then(Value::as_str).unwrap_or_default()
    }

    fn meta(&self, key: &str) -> Option<&'a Value> {
        self.metadata.and_then(|metadata| metadata.get(key))
    }

    fn meta_text(&self, key: &str) -> Option<&'a str> {
        self.meta(key).and_then(Value::as_str).filter(|text| !text.is_empty())
    }
}

impl Look<'_> {
    /// Whether a call is displayed.
    pub(super) fn is_shown(&self, tool: &ToolPart) -> bool {
        self.show.details || tool.state.is_open() || matches!(tool.state, ToolState::Error { .. })
    }

    /// Whether a part is a single line, which joins the lines before and after it.
    pub(super) fn is_slim(&self, part: &PartEntry) -> bool {
        let Body::Tool(tool) = &part.body else { return false };
        let call = Call::of(tool);
        call.error.is_none() && self.details(part, &call).is_none()
    }

    pub(super) fn tool(&self, part: &PartEntry, tool: &ToolPart, agent: &str) -> Vec<Line<'static>> {
        let call = Call::of(tool);
        if call.name == "bash" && call.error.is_none() {
            return self.shell(part, &call);
        }
        // The panel of a to-do list needs no title.
        let is_list = call.name == "todowrite" && call.error.is_none() && call.input.get("todos").is_some();
        let mut lines = if is_list { Vec::new() } else { self.heading(&call) };
        if let Some(error) = call.error {
            let style = Style::new().fg(self.theme.error);
            let limit = if self.is_open(part) { ALL_LINES } else { OUTPUT_LINES };
            let refusal = refusal::sentence(error, agent).filter(|_| !self.is_open(part));
            let text = refusal.unwrap_or_else(|| clean(error));
            for line in text.lines().take(limit) {
                let spans = link::mark(&[Span::styled(wrap::expand_tabs(line), style)]);
                lines.extend(indent(wrap::words(&spans, self.room()), INDENT + 2));
            }
            return lines;
        }
        lines.extend(self.details(part, &call).unwrap_or_default());
        lines
    }

    /// Returns the title line of a call.
    fn heading(&self, call: &Call<'_>) -> Vec<Line<'static>> {
        let (glyph, text) = self.title(call);
        let colour = match call.error {
            Some(_) => self.theme.error,
            None if call.is_open => self.theme.text,
            None => self.theme.muted,
        };
        let glyph = if call.is_open { spinner(self.now) } else { glyph };
        let style = Style::new().fg(colour);
        let spans = link::mark(&[Span::styled(text, style)]);
        let lines = wrap::words(&spans, self.room().saturating_sub(2));
        let first = Span::styled(format!("{:INDENT$}{glyph} ", ""), style);
        wrap::prefix_lines(lines, &first, &Span::raw(" ".repeat(INDENT + 2)))
    }

    /// Returns the symbol and the title of a call.
    fn title(&self, call: &Call<'_>) -> (&'static str, String) {
        let path = |key| self.path(call.argument(key));
        let quoted = |key| clean_line(call.argument(key));
        let count = |key: &str, one: &str, many: &str| match call.meta(key).and_then(Value::as_u64) {
            Some(1) => format!(" (1 {one})"),
            Some(count) => format!(" ({count} {many})"),
            None => String::new(),
        };
        let within = match call.argument("path") {
            "" => String::new(),
            place => format!(" in {}", self.path(place)),
        };
        match call.name {
            "read" => {
                let from = call.input.get("offset").and_then(Value::as_u64);
                let limit = call.input.get("limit").and_then(Value::as_u64);
                let range = [("offset", from), ("limit", limit)].into_iter();
                let range: Vec<String> =
                    range.filter_map(|(name, value)| Some(format!("{name}={}", value?))).collect();
                let range = if range.is_empty() { String::new() } else { format!(" [{}]", range.join(", ")) };
                ("→", format!("Read {}{range}", path("filePath")))
            }
            "list" => ("→", format!("List {}", path("path"))),
            "write" => ("←", format!("Write {}", path("filePath"))),
            "edit" | "multiedit" => ("←", format!("Edit {}", path("filePath"))),
            "apply_patch" | "patch" => ("←", "Patch".to_owned()),
            "glob" => {
                ("✱", format!("Glob \"{}\"{within}{}", quoted("pattern"), count("count", "match", "matches")))
            }
            "grep" => (
                "✱",
                format!("Grep \"{}\"{within}{}", quoted("pattern"), count("matches", "match", "matches")),
            ),
            "webfetch" => ("%", format!("WebFetch {}", quoted("url"))),
            "websearch" => ("◈", format!("Search \"{}\"", quoted("query"))),
            "skill" => ("→", format!("Skill \"{}\"", quoted("name"))),
            "task" => {
                let agent = super::capitalize(&quoted("subagent_type"));
                (
                    if call.error.is_some() { "✗" } else { "✓" },
                    format!("{agent} Task — {}", quoted("description")),
                )
            }
            "todowrite" => ("☰", "Todos".to_owned()),
            "question" => {
                let count = call.input.get("questions").and_then(Value::as_array).map_or(0, Vec::len);
                ("→", format!("Asked {count} question{}", if count == 1 { "" } else { "s" }))
            }
            "plan_exit" => ("→", "Plan is ready".to_owned()),
            "bash" => ("$", clean_code(call.argument("command"))),
            name => ("⚙", format!("{} {}", clean_line(name), arguments(call.input)).trim_end().to_owned()),
        }
    }

    /// Returns the lines below the title, or `None` if the title is enough.
    fn details(&self, part: &PartEntry, call: &Call<'_>) -> Option<Vec<Line<'static>>> {
        let limit = if self.is_open(part) { ALL_LINES } else { DIFF_LINES };
        match call.name {
            "bash" => Some(Vec::new()),
            "edit" | "multiedit" => {
                let patch = call.meta_text("diff")?;
                Some(self.diff(patch, call.argument("filePath"), limit))
            }
            "apply_patch" | "patch" => self.patches(call, limit),
            "write" => {
                let content = clean_code(call.argument("content"));
                let limit = if self.is_open(part) { ALL_LINES } else { OUTPUT_LINES };
                (!content.is_empty()).then(|| self.written_file(&content, call.argument("filePath"), limit))
            }
            "todowrite" => self.todos(call),
            "question" => self.answers(call),
            "task" => Some(self.task(part, call)),
            _ if call.error.is_none() && self.is_open(part) && !call.output.is_empty() => {
                let text = clean(call.output);
                let lines: Vec<Line<'static>> = self.output(&text, ALL_LINES);
                Some(panel(lines, self.width, self.theme.border, self.theme))
            }
            _ => None,
        }
    }

    fn shell(&self, part: &PartEntry, call: &Call<'_>) -> Vec<Line<'static>> {
        let room = self.width.saturating_sub(SIDES).max(8);
        let mark = if call.is_open { format!("{} ", spinner(self.now)) } else { "$ ".to_owned() };
        let style = Style::new().fg(self.theme.text);
        let command = clean_code(call.argument("command"));
        let mut lines: Vec<Line<'static>> = Vec::new();
        for (at, line) in command.lines().take(ALL_LINES).enumerate() {
            let (spans, _) = highlight::line("sh", Inside::Code, line, self.theme);
            let first = if at == 0 { mark.clone() } else { "  ".to_owned() };
            let wrapped = wrap::exact(&spans, room.saturating_sub(2));
            lines.extend(wrap::prefix_lines(wrapped, &Span::styled(first, style), &Span::raw("  ")));
        }
        if lines.is_empty() {
            lines.push(Line::from(Span::styled(format!("{mark}…"), style)));
        }
        let output = call.meta_text("output").unwrap_or(call.output);
        let output = clean(output);
        let output = output.trim_end();
        if !output.is_empty() {
            lines.push(Line::default());
            let limit = if self.is_open(part) { ALL_LINES } else { OUTPUT_LINES };
            // The last lines have the result: the errors, and the summary of the tests.
            lines.extend(self.tail(output, limit));
        } else if !call.is_open {
            lines.push(Line::default());
            lines.push(self.muted_line("(no output)".to_owned()));
        }
        lines.extend(self.exit_line(call));
        panel(lines, self.width, self.theme.border, self.theme)
    }

    /// Returns the line with the exit code of a command that has ended.
    fn exit_line(&self, call: &Call<'_>) -> Option<Line<'static>> {
        let code = call.meta("exit").and_then(Value::as_i64).filter(|_| !call.is_open)?;
        let colour = if code == 0 { self.theme.muted } else { self.theme.error };
        Some(Line::from(Span::styled(format!("exit code {code}"), Style::new().fg(colour))))
    }

    /// Returns the hint that an output can be unfolded, if it can.
    fn unfold_hint(&self) -> &'static str {
        if self.show.folds { " (ctrl+o or a click shows all)" } else { "" }
    }

    /// Returns the first lines of an output.
    fn output(&self, text: &str, limit: usize) -> Vec<Line<'static>> {
        let room = self.width.saturating_sub(SIDES).max(8);
        let style = Style::new().fg(self.theme.text);
        let mut lines = Vec::new();
        let count = text.lines().count();
        for line in text.lines().take(limit) {
            lines.extend(wrap::exact(&link::mark(&[Span::styled(line, style)]), room));
        }
        if count > limit {
            lines.push(self.muted_line(format!("… {}{}", more_lines(count - limit), self.unfold_hint())));
        }
        lines
    }

    /// Returns the last lines of an output.
    fn tail(&self, text: &str, limit: usize) -> Vec<Line<'static>> {
        let count = text.lines().count();
        let skipped = count.saturating_sub(limit);
        let kept: Vec<&str> = text.lines().skip(skipped).collect();
        let mut lines = self.output(&kept.join("\n"), limit);
        if skipped > 0 {
            let hint = self.unfold_hint();
            let of = format!("… the last {limit} of {count} lines{hint}");
            lines.insert(0, self.muted_line(of));
        }
        lines
    }

    fn diff(&self, patch: &str, path: &str, limit: usize) -> Vec<Line<'static>> {
        let width = self.width.saturating_sub(INDENT + 2).max(12);
        let view = View { theme: self.theme, width, limit };
        indent(diff::lines(patch, highlight::of_file(path), view), INDENT)
    }

    fn patches(&self, call: &Call<'_>, limit: usize) -> Option<Vec<Line<'static>>> {
        let files = call.meta("files")?.as_array()?;
        let mut lines = Vec::new();
        for file in files {
            let text = |key: &str| file.get(key).and_then(Value::as_str).unwrap_or_default();
            let (mark, colour) = match text("type") {
                "add" => ("Created", self.theme.success),
                "delete" => ("Deleted", self.theme.error),
                "move" => ("Moved", self.theme.warning),
                _ => ("Changed", self.theme.text),
            };
            let name = match text("relativePath") {
                "" => self.path(text("filePath")),
                name => clean_line(name),
            };
            let heading = format!("{mark} {name}");
            lines.push(Line::from(Span::styled(format!("{:INDENT$}{heading}", ""), Style::new().fg(colour))));
            if text("type") != "delete" {
                lines.extend(self.diff(text("patch"), &name, limit));
            }
        }
        (!lines.is_empty()).then_some(lines)
    }

    /// Returns the content of a written file, with line numbers.
    fn written_file(&self, content: &str, path: &str, limit: usize) -> Vec<Line<'static>> {
        let count = content.lines().count();
        let digits = count.min(limit).to_string().len().max(2);
        let room = self.width.saturating_sub(INDENT + digits + 4).max(8);
        let kept: Vec<&str> = content.lines().take(limit).collect();
        let mut inside = Inside::Code;
        let mut lines = Vec::new();
        for (at, line) in kept.iter().enumerate() {
            let (spans, after) = highlight::line(highlight::of_file(path), inside, line, self.theme);
            inside = after;
            let number =
                Span::styled(format!("{:>digits$}  ", at + 1), Style::new().fg(self.theme.diff_number));
            let blank = Span::raw(" ".repeat(digits + 2));
            lines.extend(wrap::prefix_lines(wrap::exact(&spans, room), &number, &blank));
        }
        if count > limit {
            lines.push(self.muted_line(format!("… {}", more_lines(count - limit))));
        }
        indent(lines, INDENT)
    }

    fn todos(&self, call: &Call<'_>) -> Option<Vec<Line<'static>>> {
        let todos = call.input.get("todos")?.as_array()?;
        let room = self.width.saturating_sub(SIDES + 4).max(8);
        let mut lines = vec![Line::from(Span::styled("# Todos", Style::new().fg(self.theme.muted)))];
        lines.push(Line::default());
        for todo in todos {
            let text = |key: &str| todo.get(key).and_then(Value::as_str).unwrap_or_default();
            lines.extend(self.todo(text("status"), text("content"), room));
        }
        Some(panel(lines, self.width, self.theme.border, self.theme))
    }

    /// Returns the lines of a to-do entry.
    pub(crate) fn todo(&self, status: &str, content: &str, room: usize) -> Vec<Line<'static>> {
        let (mark, colour) = match status {
            "completed" => ("[✓] ", self.theme.muted),
            "in_progress" => ("[•] ", self.theme.warning),
            "cancelled" => ("[✗] ", self.theme.muted),
            _ => ("[ ] ", self.theme.text),
        };
        let mut style = Style::new().fg(colour);
        if status == "cancelled" {
            style = style.add_modifier(Modifier::CROSSED_OUT);
        }
        let lines = wrap::words(&[Span::styled(clean_line(content), style)], room);
        wrap::prefix_lines(lines, &Span::styled(mark, Style::new().fg(colour)), &Span::raw("    "))
    }

    fn answers(&self, call: &Call<'_>) -> Option<Vec<Line<'static>>> {
        let answers = call.meta("answers")?.as_array()?;
        let questions = call.input.get("questions")?.as_array()?;
        let room = self.width.saturating_sub(SIDES).max(8);
        let mut lines = vec![Line::from(Span::styled("# Questions", Style::new().fg(self.theme.muted)))];
        for (question, answer) in questions.iter().zip(answers) {
            let question = clean_line(question.get("question").and_then(Value::as_str).unwrap_or_default());
            let given: Vec<&str> =
                answer.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
            let given = if given.is_empty() { "(no answer)".to_owned() } else { clean(&given.join(", ")) };
            lines.push(Line::default());
            lines.extend(wrap::words(&[Span::styled(question, Style::new().fg(self.theme.muted))], room));
            lines.extend(wrap::words(&[Span::styled(given, Style::new().fg(self.theme.text))], room));
        }
        Some(panel(lines, self.width, self.theme.border, self.theme))
    }

    /// Returns the progress of a subagent, and its calls if it is opened in place.
    fn task(&self, part: &PartEntry, call: &Call<'_>) -> Vec<Line<'static>> {
        let style = Style::new().fg(self.theme.muted);
        let child = call.meta_text("sessionId").or_else(|| call.meta_text("sessionID"));
        let child = child.and_then(|id| SessionId::parse(id).ok());
        let calls = child.as_ref().map(|id| self.calls_of(id)).unwrap_or_default();
        let session = child.as_ref().and_then(|id| self.mirror.sessions.get(id));
        let mut facts = Vec::new();
        if call.is_open {
            let took = call.began.map(|began| super::seconds(self.now.saturating_sub(began)));
            facts.extend(took.or_else(|| Some("running".to_owned())));
        } else if call.took > 0 {
            facts.push(duration(call.took));
        }
        if calls.count > 0 {
            facts.push(format!("{} call{}", calls.count, if calls.count == 1 { "" } else { "s" }));
        }
        let tokens = session.map_or(0, |session| session.tokens.input + session.tokens.output);
        if tokens > 0 {
            facts.push(format!("{} tokens", crate::view::thousands(tokens)));
        }
        let mut text = facts.join(" · ");
        if let Some(current) = calls.newest.last().filter(|_| call.is_open) {
            let room = self.room().saturating_sub(wrap::width(&text) + 8);
            text = format!("{text} · {}", wrap::cut(current, room));
        }
        let line = |text: String| Line::from(Span::styled(format!("{:INDENT$}  {text}", ""), style));
        let mut lines = vec![line(format!("↳ {text}"))];
        if self.is_open(part) && child.is_some() {
            let shown = calls.newest.iter().rev().take(MAX_TASK_CALLS).rev();
            lines.extend(
                shown.map(|call| line(format!("  {}", wrap::cut(call, self.room().saturating_sub(6))))),
            );
            lines.push(line("  ctrl+x down opens the subagent".to_owned()));
        }
        lines
    }

    /// Returns the calls of a subagent, from its messages or from its events.
    fn calls_of(&self, child: &SessionId) -> Calls {
        let transcript = self.mirror.transcripts.get(child).filter(|transcript| transcript.loaded);
        let Some(transcript) = transcript else {
            return self.mirror.progress(child).cloned().unwrap_or_default();
        };
        let parts = transcript.entries.iter().flat_map(|entry| &entry.parts);
        let tools = parts.filter_map(|part| match &part.body {
            Body::Tool(tool) => Some((&part.id, tool)),
            Body::Text { .. } | Body::Reasoning { .. } | Body::Other(_) => None,
        });
        let tools: Vec<_> = tools.collect();
        let mut calls = Calls::default();
        for (id, tool) in &tools[tools.len().saturating_sub(MAX_TASK_CALLS)..] {
            calls.add(id, call_title(tool, &self.mirror.directory));
        }
        calls.count = tools.len();
        calls
    }

    /// Returns the Markdown text of a question.
    pub(crate) fn markdown(&self, text: &str, width: usize) -> Vec<Line<'static>> {
        markdown::prose(&clean(text), width, self.theme)
    }

    /// Returns the numbered diff of a permission request.
    pub(crate) fn question_diff(
        &self,
        patch: &str,
        path: &str,
        width: usize,
        limit: usize,
    ) -> Vec<Line<'static>> {
        diff::lines(patch, highlight::of_file(path), View { theme: self.theme, width, limit })
    }

    /// Returns the colour of requests that wait for the user.
    pub(crate) fn waiting(&self) -> Color {
        self.theme.warning
    }
}

/// Returns the number of lines that are not displayed.
fn more_lines(count: usize) -> String {
    format!("{count} more line{}", if count == 1 { "" } else { "s" })
}

/// Formats the arguments of a call. Only simple values are included.
fn arguments(input: &Value) -> String {
    let Some(input) = input.as_object().filter(|input| !input.is_empty()) else { return String::new() };
    let shown = input.iter().take(MAX_ARGUMENTS).map(|(key, value)| {
        let value = match value {
            Value::String(text) => wrap::cut(&clean_line(text), 200),
            Value::Array(list) => format!("({} entries)", list.len()),
            Value::Object(_) => "{…}".to_owned(),
            Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string(),
        };
        format!("{}={value}", clean_line(key))
    });
    format!("[{}]", shown.collect::<Vec<_>>().join(", "))
}
