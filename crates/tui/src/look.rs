//! Draws messages: prompts in panels, answers as text, and tool calls.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use codewright_proto::{AssistantMessage, Message, MessageError, MessageId, PartBody, PartId, UserMessage};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};

use crate::blocks::Block;
use crate::clean::{clean, clean_line};
use crate::mirror::Mirror;
use crate::panel::{SIDES, indent, panel};
use crate::theme::{self, Theme};
use crate::transcript::{Body, Draw, Entry, PartEntry, Place, Text, Transcript};
use crate::update::queue;
use crate::zone::Zone;
use crate::{link, markdown, wrap};

mod tool;

pub(crate) use tool::spinner;

/// The indentation of text.
const INDENT: usize = 5;
/// The maximum number of lines of a prompt.
const MAX_PROMPT_LINES: usize = 400;
/// The maximum width of the user's name.
const MAX_NAME_WIDTH: usize = 40;

/// The settings and data for drawing messages.
pub(crate) struct Look<'a> {
    pub(crate) theme: &'a Theme,
    pub(crate) mirror: &'a Mirror,
    pub(crate) width: usize,
    pub(crate) now: u64,
    pub(crate) zone: &'a Zone,
    pub(crate) show: Show,
    /// Parts that the user folded or unfolded.
    pub(crate) expanded: &'a HashSet<PartId>,
    /// Increases when colours change.
    pub(crate) generation: u64,
}

/// The user's display settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Show {
    pub(crate) details: bool,
    pub(crate) thinking: bool,
    pub(crate) times: bool,
    /// Whether outputs are displayed in full.
    pub(crate) outputs: bool,
    /// Whether parts can be folded, which the scrollback of a terminal cannot.
    pub(crate) folds: bool,
}

impl Look<'_> {
    /// Returns the width of text.
    fn room(&self) -> usize {
        self.width.saturating_sub(INDENT + 2).max(8)
    }

    /// Returns the colour of an agent.
    fn agent_colour(&self, name: &str) -> Color {
        agent_colour(self.mirror, name, self.theme)
    }

    /// Returns a path for display, relative to the directory or to the home directory.
    pub(crate) fn path(&self, path: &str) -> String {
        display_path(path, &self.mirror.directory, &self.mirror.home)
    }

    fn user(&self, entry: &Entry, info: &UserMessage) -> Vec<Line<'static>> {
        let is_compaction = |part: &PartEntry| matches!(part.body, Body::Other(PartBody::Compaction { .. }));
        if entry.parts.iter().any(is_compaction) {
            return self.rule(" Compaction ");
        }
        let room = self.width.saturating_sub(SIDES).max(8);
        let style = Style::new().fg(self.theme.text);
        let mut lines = Vec::new();
        let text = clean(&entry.prompt_text());
        for line in text.trim_end().lines() {
            lines.extend(wrap::words(&link::mark(&[Span::styled(wrap::expand_tabs(line), style)]), room));
            if lines.len() > MAX_PROMPT_LINES {
                break;
            }
        }
        let hidden = text.trim_end().lines().count().saturating_sub(MAX_PROMPT_LINES);
        if lines.len() > MAX_PROMPT_LINES && hidden > 0 {
            lines.push(self.muted_line(format!("… {hidden} more lines")));
        }
        let chips = self.chips(entry);
        if !chips.is_empty() {
            if !lines.is_empty() {
                lines.push(Line::default());
            }
            lines.extend(wrap::words(&chips, room));
        }
        if self.show.times {
            lines.push(self.muted_line(self.sender(info)));
        }
        if lines.is_empty() {
            return Vec::new();
        }
        panel(lines, self.width, self.agent_colour(&info.agent), self.theme)
    }

    /// Returns the user's name, if the configuration has one, and the time of a prompt.
    fn sender(&self, info: &UserMessage) -> String {
        let clock = self.zone.clock(info.time.created);
        match self.mirror.config["username"].as_str() {
            Some(name) => format!("{} · {clock}", wrap::cut(&clean_line(name), MAX_NAME_WIDTH)),
            None => clock,
        }
    }

    /// Returns the labels of a prompt's attachments.
    fn chips(&self, entry: &Entry) -> Vec<Span<'static>> {
        let mut spans = Vec::new();
        for part in &entry.parts {
            let Body::Other(body) = &part.body else { continue };
            let (kind, name) = match body {
                PartBody::File { mime, filename, url, .. } => {
                    let kind = if mime.starts_with("image/") { "Image" } else { "File" };
                    (kind, filename.clone().unwrap_or_else(|| url.chars().take(60).collect()))
                }
                PartBody::Agent { name, .. } => ("Agent", name.clone()),
                PartBody::Subtask { agent, description, .. } => ("Task", format!("{agent} — {description}")),
                _ => continue,
            };
            let back = Style::new().fg(self.theme.background).bg(self.theme.secondary);
            spans.push(Span::styled(format!(" {kind} "), back));
            spans.push(Span::styled(format!(" {} ", clean_line(&name)), Style::new().fg(self.theme.muted)));
            spans.push(Span::raw(" "));
        }
        spans
    }

    fn rule(&self, title: &str) -> Vec<Line<'static>> {
        let left = self.width.saturating_sub(title.len() + 4) / 2;
        let right = self.width.saturating_sub(left + title.len() + 4);
        let text = format!("  {}{title}{}", "─".repeat(left), "─".repeat(right));
        vec![Line::from(Span::styled(text, Style::new().fg(self.theme.muted)))]
    }

    fn muted_line(&self, text: String) -> Line<'static> {
        Line::from(Span::styled(text, Style::new().fg(self.theme.muted)))
    }

    fn text(&self, text: &Text, block: &Block) -> Vec<Line<'static>> {
        indent(markdown::block(&text.text, block, self.room(), self.theme), INDENT)
    }

    fn thought(&self, part: &PartEntry, at: usize) -> Vec<Line<'static>> {
        let Body::Reasoning { text, time } = &part.body else { return Vec::new() };
        let style = Style::new().fg(self.theme.muted).add_modifier(Modifier::ITALIC);
        if at == 0 {
            let title = match time.end {
                Some(end) => format!("Thought: {}", duration(end.saturating_sub(time.start))),
                None => "Thinking…".to_owned(),
            };
            let mark = if self.is_open(part) { "- " } else { "+ " };
            return vec![Line::from(Span::styled(format!("{:INDENT$}{mark}{title}", ""), style))];
        }
        let Some(block) = text.blocks.get(at - 1) else { return Vec::new() };
        let lines = markdown::block(&text.text, block, self.room().saturating_sub(2), self.theme);
        let lines = lines.into_iter().map(|line| {
            let plain = line.spans.into_iter().map(|span| Span::styled(span.content, style));
            Line::from(plain.collect::<Vec<_>>())
        });
        indent(lines.collect(), INDENT + 2)
    }

    /// Whether a part that can be folded is displayed in full.
    pub(crate) fn is_open(&self, part: &PartEntry) -> bool {
        let is_toggled = self.expanded.contains(&part.id);
        let default = match &part.body {
            Body::Reasoning { .. } => self.show.thinking,
            Body::Text { .. } | Body::Tool(_) | Body::Other(_) => self.show.outputs,
        };
        is_toggled != default
    }

    /// Returns the lines at the end of an answer: its error, and the agent, the model and the duration.
    fn end(&self, transcript: &Transcript, at: usize, info: &AssistantMessage) -> Vec<Line<'static>> {
        let mut lines = self.retries(&info.id);
        let aborted = matches!(info.error, Some(MessageError::MessageAbortedError { .. }));
        if let Some(error) = info.error.as_ref().filter(|_| !aborted) {
            let style = Style::new().fg(self.theme.error);
            let room = self.width.saturating_sub(SIDES).max(8);
            let text = crate::mirror::error_line(error);
            let content: Vec<Line<'static>> = text
                .lines()
                .take(20)
                .flat_map(|line| {
                    wrap::words(&[Span::styled(wrap::expand_tabs(line).into_owned(), style)], room)
                })
                .collect();
            lines.extend(panel(content, self.width, self.theme.error, self.theme));
        }
        if !self.ends_turn(transcript, at, info) {
            return lines;
        }
        if !lines.is_empty() {
            lines.push(Line::default());
        }
        let name = self.mirror.model(&info.provider_id, &info.model_id).map(|(_, model)| model.name.clone());
        let name = clean_line(&name.unwrap_or_else(|| info.model_id.clone()));
        let muted = Style::new().fg(self.theme.muted);
        let mut spans = vec![
            Span::raw(" ".repeat(INDENT)),
            Span::styled("▣  ", Style::new().fg(self.agent_colour(&info.agent))),
            Span::styled(capitalize(&clean_line(&info.agent)), Style::new().fg(self.theme.text)),
            Span::styled(format!(" · {name}"), muted),
        ];
        if let Some(end) = info.time.completed {
            let start = transcript.find(&info.parent_id).map(|at| transcript.entries[at].info.created());
            let took = end.saturating_sub(start.unwrap_or(info.time.created));
            spans.push(Span::styled(format!(" · {}", duration(took)), muted));
        }
        if aborted {
            spans.push(Span::styled(" · interrupted", muted));
        }
        let warning = Style::new().fg(self.theme.warning);
        match info.finish.as_deref() {
            Some("length") => spans.push(Span::styled(" · cut at the output limit", warning)),
            Some("content-filter") => {
                spans.push(Span::styled(" · stopped by the provider's filter", warning));
            }
            Some("stop" | "tool-calls" | "unknown" | "error") | None => {}
            Some(other) => spans.push(Span::styled(format!(" · ended: {}", clean_line(other)), warning)),
        }
        lines.push(Line::from(spans));
        lines
    }
}

impl Look<'_> {
    /// Returns the reasons why the request of an answer was repeated.
    fn retries(&self, message: &MessageId) -> Vec<Line<'static>> {
        let style = Style::new().fg(self.theme.warning);
        let reasons = self.mirror.retries.get(message).into_iter().flatten();
        let lines = reasons.flat_map(|(attempt, reason)| {
            let text = format!("Attempt {attempt} failed: {reason}");
            indent(wrap::words(&[Span::styled(text, style)], self.room()), INDENT)
        });
        lines.collect()
    }

    /// Whether a message is the last one of a turn that has ended.
    fn ends_turn(&self, transcript: &Transcript, at: usize, info: &AssistantMessage) -> bool {
        let is_last = at + 1 >= transcript.end || matches!(transcript.entries[at + 1].info, Message::User(_));
        // After tool calls, or without a finish reason, another step follows.
        let continues = matches!(info.finish.as_deref(), None | Some("tool-calls" | "unknown"));
        let is_open = info.error.is_none() && continues && at + 1 >= transcript.end;
        is_last && !(is_open && self.mirror.is_busy(&info.session_id))
    }
}

impl Draw for Look<'_> {
    fn blocks(&self, transcript: &Transcript, entry: usize, part: usize) -> usize {
        let Some(message) = transcript.entries.get(entry) else { return 0 };
        let Message::Assistant(info) = &message.info else {
            return usize::from(part == message.parts.len());
        };
        let Some(part) = message.parts.get(part) else {
            let has_end = info.error.is_some() || self.ends_turn(transcript, entry, info);
            return usize::from(has_end || self.mirror.retries.contains_key(&info.id));
        };
        match &part.body {
            Body::Text { text, .. } => text.blocks.len(),
            Body::Reasoning { text, .. } => {
                let count = text.blocks.len();
                if count == 0 {
                    0
                } else if self.is_open(part) {
                    count + 1
                } else {
                    1
                }
            }
            Body::Tool(tool) => usize::from(self.is_shown(tool)),
            Body::Other(PartBody::Retry { .. }) => 1,
            Body::Other(_) => 0,
        }
    }

    fn lines(&self, transcript: &Transcript, place: Place) -> Vec<Line<'static>> {
        let entry = &transcript.entries[place.entry];
        let info = match &entry.info {
            Message::User(info) => {
                let is_waiting = queue::is_waiting(self.mirror, transcript, place.entry);
                let mut lines = self.user(entry, info);
                if is_waiting && !lines.is_empty() {
                    let text = format!("{:INDENT$}queued", "");
                    let style = Style::new().fg(self.theme.warning);
                    lines.push(Line::from(Span::styled(text, style)));
                }
                return lines;
            }
            Message::Assistant(info) => info,
        };
        let Some(part) = entry.parts.get(place.part) else {
            return self.end(transcript, place.entry, info);
        };
        match &part.body {
            Body::Text { text, .. } => match text.blocks.get(place.block) {
                Some(block) => self.text(text, block),
                None => Vec::new(),
            },
            Body::Reasoning { .. } => self.thought(part, place.block),
            Body::Tool(tool) => self.tool(part, tool, &info.agent),
            Body::Other(PartBody::Retry { attempt, error, .. }) => {
                let text = format!("Attempt {attempt} failed: {}", clean_line(error.message()));
                let style = Style::new().fg(self.theme.warning);
                indent(wrap::words(&[Span::styled(text, style)], self.room()), INDENT)
            }
            Body::Other(_) => Vec::new(),
        }
    }

    fn stamp(&self, transcript: &Transcript, place: Place) -> Option<u64> {
        let entry = &transcript.entries[place.entry];
        let version = match (&entry.info, entry.parts.get(place.part)) {
            (Message::User(_), _) => {
                entry.parts.iter().map(PartEntry::version).chain([entry.version()]).max().unwrap_or(0)
            }
            // Whether the turn ends here depends on the following messages.
            (Message::Assistant(_), None) => return None,
            (Message::Assistant(_), Some(part)) => match &part.body {
                Body::Text { text, .. } if text.blocks.is_done(place.block) => 0,
                Body::Reasoning { .. } if place.block == 0 => return None,
                Body::Tool(tool) if tool.state.is_open() => return None,
                Body::Text { .. } | Body::Reasoning { .. } | Body::Tool(_) | Body::Other(_) => part.version(),
            },
        };
        let open = entry.parts.get(place.part).is_some_and(|part| self.is_open(part));
        let open = open || queue::is_waiting(self.mirror, transcript, place.entry);
        let mut hasher = DefaultHasher::new();
        (version, self.width, self.generation, self.show, open).hash(&mut hasher);
        Some(hasher.finish())
    }

    fn joins(&self, transcript: &Transcript, before: Place, place: Place) -> bool {
        let part = |place: Place| transcript.entries[place.entry].parts.get(place.part);
        let (Some(first), Some(second)) = (part(before), part(place)) else { return false };
        if first.id == second.id {
            if matches!(second.body, Body::Reasoning { .. }) {
                let at = place.block.saturating_sub(1);
                return at > 0 && continues(second, at);
            }
            return continues(second, place.block);
        }
        self.is_slim(first) && self.is_slim(second)
    }
}

fn continues(part: &PartEntry, at: usize) -> bool {
    part.text().and_then(|text| text.blocks.get(at)).is_some_and(|block| block.continues)
}

/// Returns the colour of an agent: the configured one, or one by its index in the list.
pub(crate) fn agent_colour(mirror: &Mirror, name: &str, theme: &Theme) -> Color {
    let at = mirror.agents.iter().position(|agent| agent.name == name);
    let own = at.and_then(|at| mirror.agents[at].color.as_deref());
    let roles = [theme.primary, theme.accent, theme.success, theme.warning, theme.secondary, theme.error];
    let role = match own {
        Some("primary") => Some(theme.primary),
        Some("secondary") => Some(theme.secondary),
        Some("accent") => Some(theme.accent),
        Some("success") => Some(theme.success),
        Some("warning") => Some(theme.warning),
        Some("error") => Some(theme.error),
        Some("info") => Some(theme.info),
        // A terminal without colours ignores the colours of agents.
        Some(text) if theme.text != Color::Reset || theme.primary != Color::Reset => theme::parse_color(text),
        Some(_) | None => None,
    };
    role.unwrap_or(roles[at.unwrap_or(0) % roles.len()])
}

/// Returns a path for display, relative to the directory or to the home directory.
pub(crate) fn display_path(path: &str, directory: &str, home: &str) -> String {
    let path = crate::clean::clean_name(path);
    let below = |root: &str| {
        let rest = path.strip_prefix(root)?;
        (!root.is_empty() && root != "/").then_some(rest)
    };
    if let Some(rest) = below(directory) {
        match rest.strip_prefix('/') {
            Some(rest) => return rest.to_owned(),
            None if rest.is_empty() => return ".".to_owned(),
            None => {}
        }
    }
    match below(home) {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => format!("~{rest}"),
        Some(_) | None => path,
    }
}

/// Formats a duration.
pub(crate) fn duration(millis: u64) -> String {
    match millis {
        0..1_000 => format!("{millis}ms"),
        1_000..60_000 => format!("{}.{}s", millis / 1_000, millis % 1_000 / 100),
        60_000..3_600_000 => format!("{}m {}s", millis / 60_000, millis % 60_000 / 1_000),
        _ => format!("{}h {}m", millis / 3_600_000, millis % 3_600_000 / 60_000),
    }
}

/// Formats the time of something that is running.
pub(crate) fn seconds(millis: u64) -> String {
    if millis < 60_000 { format!("{}s", millis / 1_000) } else { duration(millis) }
}

/// Returns the text with an upper-case first letter.
pub(crate) fn capitalize(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars.next().map(|first| first.to_uppercase().to_string()).unwrap_or_default();
    format!("{first}{}", chars.as_str())
}
