//! Performs the actions, and decides when they apply.

use codewright_proto::{Message, SessionId, ToastVariant, ToolPart, ToolState};

use super::{INTERRUPT_MILLIS, complete, is_child, open, scroll, send, with_transcript, write};
use crate::keys::{Action, Presses};
use crate::layer::page::{Page, Topic};
use crate::layer::{self, Layer};
use crate::msg::{Cmd, EditTarget};
use crate::prompt::Prompt;
use crate::state::{BugReport, Local, Route, State};
use crate::theme::Mode;
use crate::transcript::{Body, Scroll};

/// Whether an action applies in the current state.
#[expect(
    clippy::too_many_lines,
    reason = "one line for each action, so that the compiler lists the missing ones"
)]
pub(crate) fn applies(state: &State, action: Action) -> bool {
    if !is_offered(state, action) {
        return false;
    }
    let in_session = state.session_id().is_some();
    let child = is_child(state);
    let has_request = state.requests.permission.is_some() || state.requests.question.is_some();
    let writes = !child && !has_request;
    let written = !state.prompt.is_empty();
    match action {
        Action::SessionRename
        | Action::SessionTimeline
        | Action::SessionFork
        | Action::SessionCompact
        | Action::Undo
        | Action::Copy
        | Action::CopyTranscript
        | Action::Export
        | Action::Details
        | Action::Expand
        | Action::Thinking
        | Action::Timestamps
        | Action::Sidebar
        | Action::PageUp
        | Action::PageDown
        | Action::LineUp
        | Action::LineDown
        | Action::HalfUp
        | Action::HalfDown
        | Action::MessageNext
        | Action::MessagePrevious
        | Action::Move
        | Action::SearchTranscript
        | Action::Cost
        | Action::Context
        | Action::ChildFirst => in_session,
        Action::Findings => has_findings(state),
        Action::SearchHere => in_session && !has_request && !written && (child || is_reading(state)),
        Action::ShowKeys => !has_request && !written && !state.prompt.shell,
        Action::HistorySearch => writes && !state.prompt.history.is_empty(),
        Action::TakeBack => writes && super::queue::last(state).is_some(),
        Action::Redo => state.session().is_some_and(|session| session.revert.is_some()),
        Action::First | Action::Last => in_session && !(writes && written),
        Action::ChildNext | Action::ChildPrevious | Action::Parent => child,
        Action::Interrupt => state.prompt.shell || in_session && state.is_busy(),
        // The same keys delete in a prompt and exit with an empty prompt.
        Action::Exit => !(writes && (written || state.prompt.shell)),
        Action::Clear => writes && (written || state.prompt.shell),
        Action::HistoryPrevious => writes && !state.prompt.editor.clone().up(write::width(state)),
        Action::HistoryNext => writes && !state.prompt.editor.clone().down(write::width(state)),
        Action::Submit
        | Action::Newline
        | Action::Left
        | Action::Right
        | Action::Up
        | Action::Down
        | Action::LineStart
        | Action::LineEnd
        | Action::WordLeft
        | Action::WordRight
        | Action::Backspace
        | Action::DeleteWordBefore
        | Action::DeleteWordAfter
        | Action::DeleteToStart
        | Action::InputPaste
        | Action::InputUndo
        | Action::AgentCycle
        | Action::AgentCycleBack
        | Action::PermissionMode
        | Action::Editor => writes,
        // With an empty prompt the key of `DeleteToEnd` opens the palette.
        Action::Delete | Action::DeleteToEnd => writes && written,
        Action::Palette => true,
        Action::SessionList
        | Action::SessionNew
        | Action::Diff
        | Action::Review
        | Action::Skills
        | Action::ModelList
        | Action::ModelRecent
        | Action::ModelRecentBack
        | Action::VariantCycle
        | Action::AgentList
        | Action::McpList
        | Action::Connect
        | Action::Status
        | Action::Trust
        | Action::ThemeList
        | Action::ThemeMode
        | Action::Help
        | Action::Bug
        | Action::Mouse
        | Action::Suspend => true,
    }
}

/// Whether an action can apply in some state of this client. The others are not offered.
pub(crate) fn is_offered(state: &State, action: Action) -> bool {
    // The scrollback of the terminal has its own search, selection and position.
    let of_screen = [Action::SearchTranscript, Action::SearchHere, Action::Mouse, Action::Sidebar];
    if action == Action::Review && !state.mirror.has_review {
        return false;
    }
    state.options.mini.is_none() || !of_screen.contains(&action)
}

/// Whether the session on the screen is a review with an answer.
fn has_findings(state: &State) -> bool {
    let transcript = state.session_id().and_then(|id| state.mirror.transcripts.get(id));
    let is_review = |info: &Message| match info {
        Message::Assistant(info) => {
            info.structured.as_ref().is_some_and(|value| value.get("findings").is_some())
        }
        Message::User(_) => false,
    };
    transcript.is_some_and(|transcript| transcript.entries.iter().any(|entry| is_review(&entry.info)))
}

/// Whether the end of the transcript is not on the screen.
pub(crate) fn is_reading(state: &State) -> bool {
    let transcript = state.session_id().and_then(|id| state.mirror.transcripts.get(id));
    transcript.is_some_and(|transcript| transcript.scroll != Scroll::End)
}

/// The direction of a move through a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Forward,
    Back,
}

impl Step {
    /// Returns the index after or before `at` in a list of `count` entries, which is a circle.
    fn from(self, at: usize, count: usize) -> usize {
        match self {
            Self::Forward => (at + 1) % count,
            Self::Back => (at + count - 1) % count,
        }
    }
}

/// Performs an action.
#[expect(
    clippy::too_many_lines,
    reason = "one line for each action, so that the compiler lists the missing ones"
)]
pub(crate) fn act(state: &mut State, action: Action) -> Vec<Cmd> {
    match action {
        Action::SessionList => layer::sessions::open(state),
        Action::SessionNew => new_session(state),
        Action::SessionRename => no_command(state, rename),
        Action::SessionTimeline => no_command(state, layer::timeline::open),
        Action::SessionFork => no_command(state, layer::timeline::open_fork),
        Action::SessionCompact => compact(state),
        Action::Undo => undo(state),
        Action::Redo => redo(state),
        Action::Copy => copy_answer(state),
        Action::CopyTranscript => copy_transcript(state),
        Action::Export => export(state),
        Action::Review => layer::findings::begin(state, None),
        Action::Findings => layer::findings::fetch(state),
        Action::Interrupt => interrupt(state),
        Action::Sidebar => toggle_sidebar(state),
        Action::Details => change_choices(state, |local| local.hide_details = !local.hide_details),
        Action::Expand => no_command(state, toggle_outputs),
        Action::Thinking => change_choices(state, |local| local.thinking = !local.thinking),
        Action::Timestamps => change_choices(state, |local| local.times = !local.times),
        Action::ThemeMode => toggle_mode(state),
        Action::Mouse => toggle_mouse(state),
        Action::ChildFirst => open_child(state),
        Action::ChildNext => open_sibling(state, Step::Forward),
        Action::ChildPrevious => open_sibling(state, Step::Back),
        Action::Parent => open_parent(state),
        Action::PageUp => scroll(state, -page(state)),
        Action::PageDown => scroll(state, page(state)),
        Action::LineUp => scroll(state, -1),
        Action::LineDown => scroll(state, 1),
        Action::HalfUp => scroll(state, -half_page(state)),
        Action::HalfDown => scroll(state, half_page(state)),
        Action::First => scroll_to_start(state),
        Action::Last => no_command(state, scroll_to_end),
        Action::MessageNext => no_command(state, |state| scroll_to_prompt(state, Step::Forward)),
        Action::MessagePrevious => no_command(state, |state| scroll_to_prompt(state, Step::Back)),
        Action::Submit => send::submit(state),
        Action::Editor => vec![Cmd::Edit { text: state.prompt.whole_text(), then: EditTarget::Prompt }],
        Action::Clear => no_command(state, |state| state.prompt.clear()),
        Action::Newline => edit(state, |prompt, _| prompt.editor.insert("\n")),
        Action::HistoryPrevious => edit(state, |prompt, _| prompt.history_previous()),
        Action::HistoryNext => edit(state, |prompt, _| prompt.history_next()),
        Action::Left => edit(state, |prompt, _| prompt.editor.left()),
        Action::Right => edit(state, |prompt, _| prompt.editor.right()),
        Action::Up => edit(state, |prompt, width| prompt.editor.up(width)),
        Action::Down => edit(state, |prompt, width| prompt.editor.down(width)),
        Action::LineStart => edit(state, |prompt, _| prompt.editor.line_home()),
        Action::LineEnd => edit(state, |prompt, _| prompt.editor.line_tail()),
        Action::WordLeft => edit(state, |prompt, _| prompt.editor.word_left()),
        Action::WordRight => edit(state, |prompt, _| prompt.editor.word_right()),
        Action::Backspace => edit(state, |prompt, _| prompt.backspace()),
        Action::Delete => edit(state, |prompt, _| prompt.editor.delete_after()),
        Action::DeleteWordBefore => edit(state, |prompt, _| prompt.editor.delete_word_before()),
        Action::DeleteWordAfter => edit(state, |prompt, _| prompt.editor.delete_word_after()),
        Action::DeleteToStart => edit(state, |prompt, _| prompt.editor.delete_to_start()),
        Action::DeleteToEnd => edit(state, |prompt, _| prompt.editor.delete_to_end()),
        Action::InputUndo => edit(state, |prompt, _| prompt.editor.undo()),
        Action::ModelRecent => recent_model(state, Step::Forward),
        Action::ModelRecentBack => recent_model(state, Step::Back),
        Action::VariantCycle => cycle_variant(state),
        Action::AgentCycle => cycle_agent(state, Step::Forward),
        Action::AgentCycleBack => cycle_agent(state, Step::Back),
        Action::InputPaste => vec![Cmd::PasteFromDesktop(state.options.desktops.clone())],
        Action::Suspend => vec![Cmd::Suspend],
        Action::Exit => vec![Cmd::Quit],
        Action::Palette => no_command(state, layer::palette::open),
        Action::ModelList => open_models(state),
        Action::AgentList => no_command(state, layer::agents::open),
        Action::ThemeList => no_command(state, layer::themes::open),
        Action::Connect => open_and(state, layer::providers::open, Cmd::LoadAllProviders),
        Action::Skills => open_and(state, layer::skills::open, Cmd::LoadSkills),
        Action::McpList => open_and(state, layer::mcp::open, Cmd::LoadServers),
        Action::Status => open_status(state),
        Action::Help => no_command(state, |state| open_page(state, Topic::Help)),
        Action::Bug => open_bug(state),
        Action::Diff => layer::review::open(state),
        Action::Move => layer::directories::open(state),
        Action::Trust => crate::trust::call(state),
        Action::SearchTranscript | Action::SearchHere => no_command(state, super::search::open),
        Action::HistorySearch => no_command(state, layer::history::open),
        Action::TakeBack => super::queue::take_back(state),
        Action::PermissionMode => crate::permission_mode::cycle(state),
        Action::ShowKeys => no_command(state, |state| open_page(state, Topic::Keys)),
        Action::Cost => no_command(state, |state| open_page(state, Topic::Cost)),
        Action::Context => open_context(state),
    }
}

/// Edits the prompt, whose text has a width, and updates the completions.
fn edit<T>(state: &mut State, edit: impl FnOnce(&mut Prompt, usize) -> T) -> Vec<Cmd> {
    let width = write::width(state);
    edit(&mut state.prompt, width);
    complete::refresh(state)
}

fn open_page(state: &mut State, topic: Topic) {
    state.layers.push(Layer::Page(Page::new(topic)));
}

fn open_models(state: &mut State) -> Vec<Cmd> {
    let has_no_models = state.mirror.providers.is_empty();
    layer::models::open(state);
    if has_no_models { vec![Cmd::LoadAllProviders] } else { Vec::new() }
}

/// Opens a layer and returns the command that fetches its data.
fn open_and(state: &mut State, open: impl FnOnce(&mut State), fetch: Cmd) -> Vec<Cmd> {
    open(state);
    vec![fetch]
}

/// Opens the status, with the state of servers and of the sandbox.
fn open_status(state: &mut State) -> Vec<Cmd> {
    open_page(state, Topic::Status);
    vec![Cmd::LoadServers, Cmd::LoadSandbox]
}

/// Opens the page about bug reports, and writes the report.
fn open_bug(state: &mut State) -> Vec<Cmd> {
    state.bug = BugReport::Pending;
    open_page(state, Topic::Bug);
    vec![Cmd::WriteBugReport]
}

/// Opens the transcript in the editor. Without an editor it is written into a file.
fn export(state: &mut State) -> Vec<Cmd> {
    let text = transcript_text(state);
    if state.options.editor.is_some() {
        return vec![Cmd::Edit { text, then: EditTarget::Discard }];
    }
    let id = state.session_id().map_or("session", |id| id.as_str());
    vec![Cmd::WriteNew { name: format!("{id}.md"), text }]
}

/// Opens the page with the content of the context, and fetches the size of the tools.
fn open_context(state: &mut State) -> Vec<Cmd> {
    open_page(state, Topic::Context);
    let model = state.model();
    model.map(|(provider, model)| Cmd::LoadTools { provider, model }).into_iter().collect()
}

/// Changes the state without a command.
fn no_command(state: &mut State, open: impl FnOnce(&mut State)) -> Vec<Cmd> {
    open(state);
    Vec::new()
}

fn rename(state: &mut State) {
    if let Some(id) = state.session_id().cloned() {
        layer::rename::open(state, &id);
    }
}

fn new_session(state: &mut State) -> Vec<Cmd> {
    state.route = Route::Home;
    state.interrupt = None;
    vec![Cmd::Title(String::new())]
}

fn compact(state: &mut State) -> Vec<Cmd> {
    let Some(session) = state.session_id().cloned() else { return Vec::new() };
    let Some((provider, model)) = state.model() else {
        state.warn("no model is available to summarize with: sign in to a provider first");
        return Vec::new();
    };
    vec![Cmd::Compact { session, provider, model }]
}

/// Undoes the last prompt and puts its text into the prompt.
fn undo(state: &mut State) -> Vec<Cmd> {
    let Some(session) = state.session_id().cloned() else { return Vec::new() };
    let Some(transcript) = state.mirror.transcripts.get(&session) else { return Vec::new() };
    let visible = transcript.entries.iter().take(transcript.end);
    let last = visible.rev().find(|entry| matches!(entry.info, Message::User(_)));
    let Some((message, text)) = last.map(|entry| (entry.info.id().clone(), entry.prompt_text())) else {
        state.warn("there is no prompt to undo");
        return Vec::new();
    };
    let mut cmds = Vec::new();
    if state.is_busy() {
        cmds.push(Cmd::Abort(session.clone()));
    }
    state.prompt.editor.set(text);
    cmds.push(Cmd::Revert { session, message });
    cmds
}

/// Redoes the next undone prompt. The last one redoes everything.
fn redo(state: &mut State) -> Vec<Cmd> {
    let Some(session) = state.session_id().cloned() else { return Vec::new() };
    let Some(transcript) = state.mirror.transcripts.get(&session) else { return Vec::new() };
    let hidden = transcript.entries.iter().skip(transcript.end + 1);
    let mut prompts = hidden.filter(|entry| matches!(entry.info, Message::User(_)));
    let next = prompts.next().map(|entry| entry.info.id().clone());
    state.prompt.clear();
    match next {
        Some(message) => vec![Cmd::Revert { session, message }],
        None => vec![Cmd::Unrevert(session)],
    }
}

fn copy_answer(state: &mut State) -> Vec<Cmd> {
    let transcript = state.session_id().and_then(|id| state.mirror.transcripts.get(id));
    let entries = transcript.into_iter().flat_map(|transcript| transcript.entries.iter().rev());
    let answers = entries.filter(|entry| matches!(entry.info, Message::Assistant(_)));
    let texts = answers.map(|entry| {
        let texts = entry.parts.iter().filter(|part| matches!(part.body, Body::Text { .. }));
        texts.filter_map(|part| Some(part.text()?.text.trim())).collect::<Vec<_>>().join("\n\n")
    });
    match texts.into_iter().find(|text| !text.is_empty()) {
        Some(text) => vec![Cmd::Copy(text)],
        None => {
            state.warn("there is no answer to copy");
            Vec::new()
        }
    }
}

fn copy_transcript(state: &State) -> Vec<Cmd> {
    vec![Cmd::Copy(transcript_text(state))]
}

/// Returns the transcript as Markdown.
pub(super) fn transcript_text(state: &State) -> String {
    let title = state.session().map(|session| session.title.clone()).unwrap_or_default();
    let mut text = format!("# {title}\n");
    let transcript = state.session_id().and_then(|id| state.mirror.transcripts.get(id));
    for entry in transcript.into_iter().flat_map(|transcript| &transcript.entries) {
        match &entry.info {
            Message::User(_) => text.push_str(&format!("\n## User\n\n{}\n", entry.prompt_text().trim())),
            Message::Assistant(info) => {
                let mut head = format!("\n## {} ({})\n", info.agent, info.model_id);
                for part in &entry.parts {
                    let piece = match &part.body {
                        Body::Text { text, .. } => format!("\n{}\n", text.text.trim()),
                        Body::Tool(tool) => tool_text(tool),
                        Body::Reasoning { .. } | Body::Other(_) => continue,
                    };
                    text.push_str(&std::mem::take(&mut head));
                    text.push_str(&piece);
                }
            }
        }
    }
    crate::clean::clean(&text)
}

fn tool_text(tool: &ToolPart) -> String {
    let (input, output) = match &tool.state {
        ToolState::Completed { input, output, .. } => (input, output.as_str()),
        ToolState::Error { input, error, .. } => (input, error.as_str()),
        ToolState::Pending { .. } | ToolState::Running { .. } => return String::new(),
    };
    // The fence must be longer than any fence in the output.
    let longest = output.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat((longest + 1).max(3));
    format!("\n**{}** `{input}`\n\n{fence}\n{}\n{fence}\n", tool.tool, output.trim_end())
}

fn interrupt(state: &mut State) -> Vec<Cmd> {
    if state.prompt.shell {
        state.prompt.shell = false;
        return Vec::new();
    }
    let Some(id) = state.session_id().cloned() else { return Vec::new() };
    if state.interrupt.take().is_some() || state.keys.interrupts_with == Presses::One {
        return vec![Cmd::Abort(id)];
    }
    state.interrupt = Some(state.now + INTERRUPT_MILLIS);
    Vec::new()
}

/// Changes the user's choices and stores them.
fn change_choices(state: &mut State, change: impl FnOnce(&mut Local)) -> Vec<Cmd> {
    change(&mut state.local);
    vec![Cmd::Save(state.saved_choices())]
}

fn toggle_sidebar(state: &mut State) -> Vec<Cmd> {
    let is_visible = state.screen.layout.sidebar.is_some();
    if !is_visible && state.size.0 < crate::view::SIDEBAR_FROM {
        state.warn("the sidebar needs a wider terminal");
    }
    change_choices(state, |local| local.sidebar = Some(!is_visible))
}

fn toggle_outputs(state: &mut State) {
    state.show_outputs = !state.show_outputs;
    state.expanded.clear();
}

fn toggle_mode(state: &mut State) -> Vec<Cmd> {
    state.mode = if state.mode == Mode::Dark { Mode::Light } else { Mode::Dark };
    let name = state.theme_name.clone();
    if let Err(error) = state.choose_theme(&name) {
        state.fail(error);
    }
    let is_light = state.mode == Mode::Light;
    change_choices(state, |local| local.light = Some(is_light))
}

fn toggle_mouse(state: &mut State) -> Vec<Cmd> {
    let on = !state.local.mouse.unwrap_or(true);
    state.local.mouse = Some(on);
    let text = if on {
        "mouse on: it scrolls, folds, and copies what is selected"
    } else {
        "mouse off: the terminal handles it"
    };
    state.notify(text, ToastVariant::Info);
    vec![Cmd::Mouse(on), Cmd::Save(state.saved_choices())]
}

/// Opens the subagent of a session, or the list of its subagents.
fn open_child(state: &mut State) -> Vec<Cmd> {
    let Some(id) = state.session_id().cloned() else { return Vec::new() };
    let children = state.mirror.children(&id);
    match children.as_slice() {
        [] => {
            state.warn("this session has no subagents");
            Vec::new()
        }
        [only] => {
            let child = only.id.clone();
            open(state, child)
        }
        _ => no_command(state, layer::children::open),
    }
}

/// Opens the next or previous subagent of the same parent.
fn open_sibling(state: &mut State, step: Step) -> Vec<Cmd> {
    let Some(session) = state.session() else { return Vec::new() };
    let Some(parent) = &session.parent_id else { return Vec::new() };
    let siblings = state.mirror.children(parent);
    let at = siblings.iter().position(|sibling| sibling.id == session.id);
    let sibling = at.map(|at| siblings[step.from(at, siblings.len())].id.clone());
    sibling.map(|sibling| open(state, sibling)).unwrap_or_default()
}

fn open_parent(state: &mut State) -> Vec<Cmd> {
    let parent = state.session().and_then(|session| session.parent_id.clone());
    parent.map(|parent| open(state, parent)).unwrap_or_default()
}

/// Returns the session that a `task` call started.
pub(super) fn child_of(tool: &ToolPart) -> Option<SessionId> {
    let metadata = match &tool.state {
        ToolState::Running { metadata, .. } | ToolState::Error { metadata, .. } => metadata.as_ref()?,
        ToolState::Completed { metadata, .. } => metadata,
        ToolState::Pending { .. } => return None,
    };
    SessionId::parse(metadata.get("sessionId")?.as_str()?).ok()
}

/// Returns the height of the transcript.
pub(super) fn page(state: &State) -> isize {
    isize::try_from(state.screen.layout.transcript.height).unwrap_or(1).max(1)
}

fn half_page(state: &State) -> isize {
    (page(state) / 2).max(1)
}

fn scroll_to_start(state: &mut State) -> Vec<Cmd> {
    with_transcript(state, |transcript, look, _| transcript.scroll_to(look, 0));
    super::older(state)
}

fn scroll_to_end(state: &mut State) {
    with_transcript(state, |transcript, _, _| transcript.scroll = Scroll::End);
}

/// Scrolls to the next or previous prompt.
fn scroll_to_prompt(state: &mut State, step: Step) {
    with_transcript(state, |transcript, look, height| {
        let top = transcript.top_entry(look, height);
        let is_prompt = |at: &usize| matches!(transcript.entries[*at].info, Message::User(_));
        let prompt = match step {
            Step::Forward => (top + 1..transcript.end).find(is_prompt),
            Step::Back => (0..top).rev().find(is_prompt),
        };
        if let Some(prompt) = prompt {
            transcript.scroll_to(look, prompt);
        }
    });
}

fn recent_model(state: &mut State, step: Step) -> Vec<Cmd> {
    let current = state.model().map(|(provider, model)| format!("{provider}/{model}"));
    let recent = state.local.recent.clone();
    let Some(count) = Some(recent.len()).filter(|count| *count > 1) else { return Vec::new() };
    let at = recent.iter().position(|name| Some(name) == current.as_ref()).unwrap_or(0);
    let next = step.from(at, count);
    state.choice.model = crate::state::parse_model(recent.get(next).map(String::as_str));
    state.choice.variant = None;
    Vec::new()
}

fn cycle_variant(state: &mut State) -> Vec<Cmd> {
    let Some((provider, model)) = state.model() else { return Vec::new() };
    let variants = match state.mirror.model(&provider, &model) {
        Some((_, model)) if !model.variants.is_empty() => model.variants.clone(),
        Some(_) | None => {
            state.warn("this model has no variants");
            return Vec::new();
        }
    };
    let current = state.variant();
    let at = variants.iter().position(|variant| Some(variant) == current.as_ref());
    let next = match at {
        None => variants.first(),
        Some(at) => variants.get(at + 1),
    };
    state.choice.variant = next.cloned();
    let name = format!("{provider}/{model}");
    match next {
        Some(next) => drop(state.local.variants.insert(name, next.clone())),
        None => drop(state.local.variants.remove(&name)),
    }
    vec![Cmd::Save(state.saved_choices())]
}

fn cycle_agent(state: &mut State, step: Step) -> Vec<Cmd> {
    let names: Vec<String> = state.primary_agents().into_iter().map(|agent| agent.name.clone()).collect();
    let current = state.agent().map(|agent| agent.name.clone());
    let count = names.len();
    if count == 0 {
        return Vec::new();
    }
    let at = names.iter().position(|name| Some(name) == current.as_ref()).unwrap_or(0);
    let next = step.from(at, count);
    state.choice.agent = names.get(next).cloned();
    Vec::new()
}
