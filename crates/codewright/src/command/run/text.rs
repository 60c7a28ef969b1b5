//! The output of `run` as text.
//!
//! Standard output has only the answer, as it streams. Standard error has the rest: the model, a line for each tool
//! call with its result, diffs, errors, and tokens and cost at the end.

use std::collections::HashSet;
use std::io::{IsTerminal as _, Write as _};
use std::time::Instant;

use codewright_proto::{
    Event, Fact, Message, MessageId, Notice, Part, PartBody, PartId, PermissionRequest, QuestionRequest,
    SessionStatus, Signal, ToastVariant, TokenUsage, ToolPart, ToolState,
};
use serde_json::Value;

use super::Output;
use crate::clean::{clean, clean_line, clean_piece};
use crate::style::{self, Style};

/// How many lines of a command's output are printed. The last ones are the most useful.
const OUTPUT_LINES: usize = 30;
/// How many lines of a diff are printed.
const DIFF_LINES: usize = 200;
/// How many rules that would allow a request are printed.
const MAX_RULES: usize = 8;
/// How many characters of a call's arguments are printed.
const ARGUMENT_CHARS: usize = 200;
/// The stored error of a call that was rejected without a reason.
const REJECTED: &str = "The user rejected permission to use this specific tool call.";
/// What is printed in its place if there is no user who could have rejected it.
const UNANSWERED: &str = "no rule allows the call, and `run` cannot ask a user";

pub(super) struct TextOutput {
    style: Style,
    thinking: bool,
    started: Instant,
    prompts: HashSet<MessageId>,
    reasoning: HashSet<PartId>,
    printed: HashSet<PartId>,
    /// The calls whose permission requests were rejected because nobody could be asked.
    unanswered: HashSet<String>,
    announced: bool,
    /// Whether the answer's last character is a line feed.
    at_line_start: bool,
    /// Whether both outputs are the same terminal, so that a line must end before the other output writes.
    shared_screen: bool,
    model: String,
    tokens: TokenUsage,
    cost: f64,
}

impl TextOutput {
    pub(super) fn new(thinking: bool) -> Self {
        Self {
            style: Style::stderr(),
            thinking,
            started: Instant::now(),
            prompts: HashSet::new(),
            reasoning: HashSet::new(),
            printed: HashSet::new(),
            unanswered: HashSet::new(),
            announced: false,
            at_line_start: true,
            shared_screen: std::io::stdout().is_terminal() && std::io::stderr().is_terminal(),
            model: String::new(),
            tokens: TokenUsage::default(),
            cost: 0.0,
        }
    }

    /// Writes a piece of the answer.
    fn answer(&mut self, text: &str) -> std::io::Result<()> {
        if text.is_empty() {
            return Ok(());
        }
        let text = clean_piece(text);
        let mut stdout = std::io::stdout().lock();
        stdout.write_all(text.as_bytes())?;
        stdout.flush()?;
        self.at_line_start = text.ends_with('\n') || (self.at_line_start && text.is_empty());
        Ok(())
    }

    fn end_answer_line(&mut self) -> std::io::Result<()> {
        if self.at_line_start {
            return Ok(());
        }
        self.answer("\n")
    }

    /// Writes a line to standard error.
    fn aside(&mut self, line: &str) -> std::io::Result<()> {
        if self.shared_screen {
            self.end_answer_line()?;
        }
        writeln!(std::io::stderr().lock(), "{line}")
    }

    fn message(&mut self, message: &Message) -> std::io::Result<()> {
        match message {
            Message::User(prompt) => drop(self.prompts.insert(prompt.id.clone())),
            Message::Assistant(answer) => {
                self.model = format!("{} \u{b7} {}", answer.agent, answer.model_id);
                if !self.announced {
                    self.announced = true;
                    let line = format!("> {}", clean(&self.model));
                    self.aside(&self.style.dim(&line))?;
                }
            }
        }
        Ok(())
    }

    fn part(&mut self, part: &Part) -> std::io::Result<()> {
        match &part.body {
            PartBody::Reasoning { time, .. } => {
                self.reasoning.insert(part.id.clone());
                if self.thinking && time.end.is_some() { self.end_reasoning() } else { Ok(()) }
            }
            PartBody::Text(text) if text.time.is_some_and(|time| time.end.is_some()) => {
                self.end_answer_line()
            }
            PartBody::Tool(call) if !call.state.is_open() && self.printed.insert(part.id.clone()) => {
                self.call(call)
            }
            PartBody::StepFinish(step) => {
                self.tokens.add(&step.tokens);
                self.cost += step.cost;
                self.cut_off(&step.reason)
            }
            PartBody::Text(_)
            | PartBody::Tool(_)
            | PartBody::File { .. }
            | PartBody::StepStart { .. }
            | PartBody::Snapshot { .. }
            | PartBody::Patch { .. }
            | PartBody::Agent { .. }
            | PartBody::Subtask { .. }
            | PartBody::Retry { .. }
            | PartBody::Compaction { .. } => Ok(()),
        }
    }

    /// Reports an answer that was cut off.
    fn cut_off(&mut self, reason: &str) -> std::io::Result<()> {
        let why = match reason {
            "length" => "the answer was cut off at the model's output limit",
            "content-filter" => "the provider's content filter stopped the answer",
            _ => return Ok(()),
        };
        self.end_answer_line()?;
        self.aside(&self.style.yellow(&format!("! {why}")))
    }

    fn delta(&mut self, part: &PartId, delta: &str) -> std::io::Result<()> {
        if !self.reasoning.contains(part) {
            return self.answer(delta);
        }
        if !self.thinking {
            return Ok(());
        }
        let mut stderr = std::io::stderr().lock();
        stderr.write_all(self.style.dim(&clean_piece(delta)).as_bytes())
    }

    fn end_reasoning(&mut self) -> std::io::Result<()> {
        writeln!(std::io::stderr().lock())
    }

    /// Writes a line for a finished call, followed by its output or diff.
    fn call(&mut self, call: &ToolPart) -> std::io::Result<()> {
        match &call.state {
            ToolState::Completed { input, output, title, metadata, .. } => {
                let line = self.summary(&call.tool, input, title, metadata);
                self.aside(&line)?;
                match call.tool.as_str() {
                    "bash" => self.output(output),
                    "edit" | "apply_patch" => {
                        self.diff(metadata.get("diff").and_then(Value::as_str).unwrap_or(""))
                    }
                    _ => Ok(()),
                }
            }
            ToolState::Error { input, error, .. } => {
                let description = clean_line(&describe(&call.tool, input));
                let line = format!("{} {description} failed", self.style.red("\u{2717}"));
                self.aside(&line)?;
                let is_unanswered = self.unanswered.remove(&call.call_id) && error == REJECTED;
                style::error_text(if is_unanswered { UNANSWERED } else { error });
                Ok(())
            }
            ToolState::Pending { .. } | ToolState::Running { .. } => Ok(()),
        }
    }

    fn summary(&self, tool: &str, input: &Value, title: &str, metadata: &codewright_proto::Map) -> String {
        let style = self.style;
        let dim = |text: String| style.dim(&clean(&text));
        let argument = |name: &str| input.get(name).and_then(Value::as_str).unwrap_or_default();
        let fact = |name: &str| metadata.get(name);
        let number = |name: &str| fact(name).and_then(Value::as_u64).unwrap_or_default();
        let title = clean_line(title);
        match tool {
            "read" => format!("\u{2192} Read {title}{}{}", options(input), dim(read_result(metadata))),
            "write" => {
                let verb = if fact("exists").and_then(Value::as_bool) == Some(true) {
                    "overwritten"
                } else {
                    "created"
                };
                format!("\u{2190} Write {title}{}", dim(format!(" \u{b7} {verb}")))
            }
            "edit" => {
                let count = |name: &str| {
                    fact("filediff")
                        .and_then(|diff| diff.get(name))
                        .and_then(Value::as_u64)
                        .unwrap_or_default()
                };
                let result = format!(" \u{b7} +{} -{}", count("additions"), count("deletions"));
                format!("\u{2190} Edit {title}{}", dim(result))
            }
            "bash" => {
                let result = match fact("exit").and_then(Value::as_i64) {
                    Some(0) => String::new(),
                    Some(code) => style.red(&format!(" \u{b7} exit {code}")),
                    None => style.red(" \u{b7} stopped"),
                };
                format!("{} {}{result}", style.bold("$"), clean(argument("command")))
            }
            "glob" => {
                format!(
                    "* Glob {:?}{}",
                    clean(argument("pattern")),
                    dim(format!(" \u{b7} {} files", number("count")))
                )
            }
            "grep" => {
                let result = format!(" \u{b7} {} matches", number("matches"));
                format!("* Grep {:?}{}", clean(argument("pattern")), dim(result))
            }
            "apply_patch" => {
                let files = fact("files").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
                let count =
                    |name: &str| files.iter().filter_map(|file| file.get(name)?.as_u64()).sum::<u64>();
                let names = files.iter().filter_map(|file| file.get("relativePath")?.as_str());
                let names = clean_line(&names.collect::<Vec<_>>().join(", "));
                let result = format!(" \u{b7} +{} -{}", count("additions"), count("deletions"));
                format!("\u{2190} Patch {names}{}", dim(result))
            }
            "todowrite" => format!("\u{2699} Todos{}", dim(format!(" \u{b7} {title}"))),
            other => format!("\u{2699} {} {}", clean(other), dim(short(input))),
        }
    }

    fn output(&mut self, output: &str) -> std::io::Result<()> {
        let output = clean(output.trim_end());
        let lines: Vec<_> = output.lines().collect();
        let hidden = lines.len().saturating_sub(OUTPUT_LINES);
        if hidden > 0 {
            self.aside(&self.style.dim(&format!("  \u{2026} {hidden} earlier lines")))?;
        }
        for line in &lines[hidden..] {
            self.aside(&format!("  {line}"))?;
        }
        Ok(())
    }

    fn diff(&mut self, diff: &str) -> std::io::Result<()> {
        let diff = clean(diff);
        let lines = diff.lines().skip_while(|line| !line.starts_with("@@"));
        for (at, line) in lines.enumerate() {
            if at == DIFF_LINES {
                return self.aside(&self.style.dim("  \u{2026} more lines"));
            }
            let painted = match line.as_bytes().first() {
                Some(b'+') => self.style.green(line),
                Some(b'-') => self.style.red(line),
                Some(b'@') => self.style.cyan(line),
                _ => line.to_owned(),
            };
            self.aside(&format!("  {painted}"))?;
        }
        Ok(())
    }
}

impl Output for TextOutput {
    fn notice(&mut self, notice: &Notice) -> std::io::Result<()> {
        match &notice.fact {
            Fact::Event(Event::MessageUpdated { info, .. }) => self.message(info),
            Fact::Event(Event::PartUpdated { part, .. }) if !self.prompts.contains(&part.message_id) => {
                self.part(part)
            }
            Fact::Signal(Signal::PartDelta { part_id, delta, .. }) => self.delta(part_id, delta),
            Fact::Signal(Signal::SessionStatus {
                status: SessionStatus::Retry { attempt, message, next },
                ..
            }) => {
                self.end_answer_line()?;
                let wait = next.saturating_sub(codewright_proto::Clock::system().now_ms()).div_ceil(1000);
                let line = format!("! {} (attempt {attempt}); retrying in {wait} s", clean(message));
                self.aside(&self.style.yellow(&line))
            }
            Fact::Signal(Signal::SessionError { error, .. }) => {
                self.end_answer_line()?;
                style::error_text(error.message());
                Ok(())
            }
            // For example an installation that the prompt waits for.
            Fact::Signal(Signal::TuiToastShow { toast, .. }) if toast.variant == ToastVariant::Info => {
                self.end_answer_line()?;
                self.aside(&self.style.dim(&clean(&toast.message)))
            }
            Fact::Event(_) | Fact::Signal(_) => Ok(()),
        }
    }

    fn permission(&mut self, request: &PermissionRequest, allowed: bool) -> std::io::Result<()> {
        if self.shared_screen {
            self.end_answer_line()?;
        }
        warn_permission(request, allowed);
        if let Some(call) = request.tool.as_ref().filter(|_| !allowed) {
            self.unanswered.insert(call.call_id.clone());
        }
        Ok(())
    }

    fn question(&mut self, request: &QuestionRequest) -> std::io::Result<()> {
        if self.shared_screen {
            self.end_answer_line()?;
        }
        warn_question(request);
        Ok(())
    }

    fn end(&mut self) -> std::io::Result<()> {
        self.end_answer_line()?;
        let tokens = &self.tokens;
        let read = tokens.input + tokens.cache.read + tokens.cache.write;
        let seconds = self.started.elapsed().as_secs_f64();
        let mut line = format!("{} \u{b7} {seconds:.1} s", clean(&self.model));
        if read + tokens.output > 0 {
            line.push_str(&format!(" \u{b7} {read} tokens in, {} out", tokens.output + tokens.reasoning));
            if self.cost > 0.0 {
                line.push_str(&format!(" \u{b7} ${:.4}", self.cost));
            }
        }
        let line = self.style.dim(&line);
        self.aside(&line)
    }
}

/// Warns that a question was dismissed.
pub(super) fn warn_question(request: &QuestionRequest) {
    let questions = request.questions.iter().map(|question| question.question.as_str());
    let questions = clean_line(&questions.collect::<Vec<_>>().join(" "));
    style::warning(&format!("question dismissed, because `run` cannot answer: {questions}"));
}

/// Warns that a permission request was rejected. Scripts match this text.
pub(super) fn warn_permission(request: &PermissionRequest, allowed: bool) {
    if allowed {
        return;
    }
    let patterns = clean_line(&request.patterns.join(", "));
    style::warning(&format!("permission requested: {} ({patterns}); auto-rejecting", request.permission));
    let asked = request.metadata.get("asked").and_then(|asked| asked["because"].as_str());
    if let Some(because) = asked {
        style::warning(&format!("asked because {}", clean_line(because)));
    }
    if let Some(rule) = allowing(request) {
        style::warning(&format!("a rule in your own configuration allows it: {rule}"));
    }
    if let Some(reason) = request.metadata.get("sandbox").and_then(Value::as_str) {
        style::warning(&clean_line(reason));
    }
}

/// The line of the configuration that allows a request, if a rule can.
fn allowing(request: &PermissionRequest) -> Option<String> {
    // Nothing of a command that cannot be undone is offered for later if its target is unknown or a wildcard.
    let is_never = request.metadata.contains_key("irreversible") && request.always.is_empty();
    if request.permission == "sandbox" || is_never {
        return None;
    }
    // The narrow patterns, also where "always" would cover everything.
    let is_narrow = !request.always.is_empty() && !request.always.iter().any(|pattern| pattern == "*");
    let patterns = if is_narrow { &request.always } else { &request.patterns };
    let rules = patterns.iter().take(MAX_RULES).map(|pattern| (clean_line(pattern), Value::from("allow")));
    let rules = rules.collect::<serde_json::Map<_, _>>();
    Some(serde_json::json!({ "permission": { &request.permission: rules } }).to_string())
}

/// A short description of a call.
fn describe(tool: &str, input: &Value) -> String {
    let argument = |name: &str| input.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    match tool {
        "bash" => argument("command"),
        "read" | "write" | "edit" => format!("{tool} {}", argument("filePath")),
        "glob" | "grep" => format!("{tool} {}", argument("pattern")),
        other => format!("{other} {}", short(input)),
    }
}

/// The arguments of a read besides its path, such as ` [limit=2]`.
fn options(input: &Value) -> String {
    let written =
        ["offset", "limit"].into_iter().filter_map(|name| Some(format!("{name}={}", input.get(name)?)));
    let written = written.collect::<Vec<_>>().join(", ");
    if written.is_empty() { written } else { format!(" [{written}]") }
}

/// How much of a file or directory was read.
fn read_result(metadata: &codewright_proto::Map) -> String {
    let Some(display) = metadata.get("display") else { return String::new() };
    let number = |name: &str| display.get(name).and_then(Value::as_u64);
    if let Some(total) = number("totalEntries") {
        return format!(" \u{b7} {total} entries");
    }
    match (number("lineStart"), number("lineEnd"), number("totalLines")) {
        (Some(1), Some(end), Some(total)) if end >= total => format!(" \u{b7} {total} lines"),
        (Some(start), Some(end), Some(total)) => format!(" \u{b7} lines {start}-{end} of {total}"),
        _ => String::new(),
    }
}

fn short(input: &Value) -> String {
    let text = input.to_string();
    if text.chars().count() <= ARGUMENT_CHARS {
        return text;
    }
    text.chars().take(ARGUMENT_CHARS).chain(['\u{2026}']).collect()
}
