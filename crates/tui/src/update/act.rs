//! What each action does, and when it can be done.

use codewright_proto::{Message, SessionId, ToastVariant, ToolPart, ToolState};

use super::{INTERRUPT_MILLIS, complete, is_child, open, scroll, send, with_transcript, write};
use crate::keys::Action;
use crate::layer::page::{Page, Topic};
use crate::layer::{self, Layer};
use crate::msg::{Cmd, Edited};
use crate::state::{Route, State};
use crate::theme::Mode;
use crate::transcript::{Body, Scroll};

/// Whether an action means something at the moment.
pub(crate) fn applies(state: &State, action: Action) -> bool {
    let in_session = state.session_id().is_some();
    let child = is_child(state);
    let asks = state.asked.leave.is_some() || state.asked.question.is_some();
    let writes = !child && !asks;
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
        | Action::MessagePrevious => in_session,
        Action::Move | Action::Share => in_session,
        Action::Unshare => state.session().is_some_and(|session| session.share.is_some()),
        Action::Redo => state.session().is_some_and(|session| session.revert.is_some()),
        Action::First | Action::Last => in_session && !(writes && written),
        Action::ChildFirst => in_session,
        Action::ChildNext | Action::ChildPrevious | Action::Parent => child,
        Action::Interrupt => state.prompt.shell || in_session && state.is_busy(),
        Action::Exit | Action::Delete | Action::Clear => exits(state, action, writes, written),
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
        | Action::DeleteWordBehind
        | Action::DeleteToStart
        | Action::InputPaste
        | Action::InputUndo
        | Action::AgentCycle
        | Action::AgentCycleBack
        | Action::Editor => writes,
        Action::DeleteToEnd => writes && written,
        // With nothing to delete the key is the palette's.
        Action::Palette => true,
        Action::SessionList
        | Action::SessionNew
        | Action::Diff
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

/// The same keys delete while there is something, and leave when there is nothing.
fn exits(state: &State, action: Action, writes: bool, written: bool) -> bool {
    match action {
        Action::Exit => !(writes && (written || state.prompt.shell)),
        Action::Clear => writes && (written || state.prompt.shell),
        _ => writes && written,
    }
}

/// Does it.
pub(crate) fn act(state: &mut State, action: Action) -> Vec<Cmd> {
    match action {
        Action::SessionList => layer::sessions::open(state),
        Action::SessionNew => new_session(state),
        Action::SessionRename => over(state, rename),
        Action::SessionTimeline => over(state, layer::timeline::open),
        Action::SessionFork => over(state, layer::timeline::open_fork),
        Action::SessionCompact => compact(state),
        Action::Undo => undo(state),
        Action::Redo => redo(state),
        Action::Copy => copy_answer(state),
        Action::CopyTranscript => copy_transcript(state),
        Action::Export => vec![Cmd::Edit { text: transcript_text(state), then: Edited::Dropped }],
        Action::Interrupt => interrupt(state),
        Action::Sidebar
        | Action::Details
        | Action::Expand
        | Action::Thinking
        | Action::Timestamps
        | Action::ThemeMode
        | Action::Mouse => toggle(state, action),
        Action::ChildFirst | Action::ChildNext | Action::ChildPrevious | Action::Parent => {
            family(state, action)
        }
        Action::PageUp
        | Action::PageDown
        | Action::LineUp
        | Action::LineDown
        | Action::HalfUp
        | Action::HalfDown
        | Action::First
        | Action::Last
        | Action::MessageNext
        | Action::MessagePrevious => scrolled(state, action),
        Action::Submit => send::submit(state),
        Action::Editor => vec![Cmd::Edit { text: state.prompt.whole_text(), then: Edited::Prompt }],
        Action::Clear => over(state, |state| state.prompt.clear()),
        Action::Newline
        | Action::HistoryPrevious
        | Action::HistoryNext
        | Action::Left
        | Action::Right
        | Action::Up
        | Action::Down
        | Action::LineStart
        | Action::LineEnd
        | Action::WordLeft
        | Action::WordRight
        | Action::Backspace
        | Action::Delete
        | Action::DeleteWordBefore
        | Action::DeleteWordBehind
        | Action::DeleteToStart
        | Action::DeleteToEnd
        | Action::InputUndo => {
            write::edit(state, action);
            complete::refresh(state)
        }
        Action::ModelRecent | Action::ModelRecentBack => recent_model(state, action == Action::ModelRecent),
        Action::VariantCycle => cycle_variant(state),
        Action::AgentCycle | Action::AgentCycleBack => cycle_agent(state, action == Action::AgentCycle),
        Action::InputPaste => vec![Cmd::PasteFromDesk(state.options.desks.clone())],
        Action::Suspend => vec![Cmd::Suspend],
        Action::Exit => vec![Cmd::Quit],
        Action::Diff
        | Action::Move
        | Action::Share
        | Action::Unshare
        | Action::McpList
        | Action::Skills
        | Action::ModelList
        | Action::AgentList
        | Action::Connect
        | Action::Palette
        | Action::Status
        | Action::Trust
        | Action::ThemeList
        | Action::Help
        | Action::Bug => dialog(state, action),
    }
}

fn dialog(state: &mut State, action: Action) -> Vec<Cmd> {
    let page = |topic| Layer::Page(Page::new(topic));
    match action {
        Action::Palette => over(state, layer::palette::open),
        Action::ModelList => {
            let without = state.mirror.providers.is_empty();
            layer::models::open(state);
            if without { vec![Cmd::LoadAllProviders] } else { Vec::new() }
        }
        Action::AgentList => over(state, layer::agents::open),
        Action::ThemeList => over(state, layer::themes::open),
        Action::Connect => {
            layer::providers::open(state);
            vec![Cmd::LoadAllProviders]
        }
        Action::Skills => {
            layer::skills::open(state);
            vec![Cmd::LoadSkills]
        }
        Action::Diff => layer::review::open(state),
        Action::Move => layer::places::open(state),
        Action::Trust => crate::trust::call(state),
        Action::Share => layer::share::open(state),
        Action::Unshare => state.session_id().cloned().map(Cmd::Unshare).into_iter().collect(),
        Action::McpList => {
            layer::mcp::open(state);
            vec![Cmd::LoadServers]
        }
        Action::Status => {
            state.layers.push(page(Topic::Status));
            vec![Cmd::LoadServers]
        }
        Action::Bug => {
            state.layers.push(page(Topic::Bug));
            Vec::new()
        }
        _ => {
            state.layers.push(page(Topic::Help));
            Vec::new()
        }
    }
}

fn over(state: &mut State, open: impl FnOnce(&mut State)) -> Vec<Cmd> {
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
        state.warn("there is no model to summarise with: sign in to a provider first");
        return Vec::new();
    };
    vec![Cmd::Compact { session, provider, model }]
}

/// Takes the last prompt back that still counts, and puts its text into the prompt.
fn undo(state: &mut State) -> Vec<Cmd> {
    let Some(session) = state.session_id().cloned() else { return Vec::new() };
    let Some(transcript) = state.mirror.transcripts.get(&session) else { return Vec::new() };
    let counted = transcript.entries.iter().take(transcript.end);
    let last = counted.rev().find(|entry| matches!(entry.info, Message::User(_)));
    let Some((message, text)) = last.map(|entry| (entry.info.id().clone(), entry.prompt_text())) else {
        state.warn("there is no prompt to take back");
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

/// Takes forth the next prompt that was taken back, or all if it is the last.
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

/// The transcript as Markdown.
fn transcript_text(state: &State) -> String {
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
    // A fence longer than any within keeps the output together.
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
    if state.interrupt.take().is_some() {
        return vec![Cmd::Abort(id)];
    }
    state.interrupt = Some(state.now + INTERRUPT_MILLIS);
    Vec::new()
}

fn toggle(state: &mut State, action: Action) -> Vec<Cmd> {
    match action {
        Action::Sidebar => {
            let shown = state.screen.layout.sidebar.is_some();
            state.local.sidebar = Some(!shown);
            if !shown && state.size.0 < crate::view::SIDEBAR_FROM {
                state.warn("the sidebar needs a wider terminal");
            }
        }
        Action::Details => state.local.hide_details = !state.local.hide_details,
        Action::Expand => {
            state.show_outputs = !state.show_outputs;
            state.expanded.clear();
            return Vec::new();
        }
        Action::Thinking => state.local.thinking = !state.local.thinking,
        Action::Timestamps => state.local.times = !state.local.times,
        Action::Mouse => {
            let on = !state.local.mouse.unwrap_or(true);
            state.local.mouse = Some(on);
            let text = if on { "the mouse scrolls and folds" } else { "the mouse is the terminal's own" };
            state.tell(text, ToastVariant::Info);
            return vec![Cmd::Mouse(on), Cmd::Save(state.saved())];
        }
        _ => {
            state.mode = if state.mode == Mode::Dark { Mode::Light } else { Mode::Dark };
            state.local.light = Some(state.mode == Mode::Light);
            let name = state.theme_name.clone();
            if let Err(wrong) = state.choose_theme(&name) {
                state.fail(wrong);
            }
        }
    }
    vec![Cmd::Save(state.saved())]
}

/// From a session to those that it began, between them, and back.
fn family(state: &mut State, action: Action) -> Vec<Cmd> {
    let Some(id) = state.session_id().cloned() else { return Vec::new() };
    let parent = state.session().and_then(|session| session.parent_id.clone());
    let target = match action {
        Action::ChildFirst => {
            let children = state.mirror.children(&id);
            match children.as_slice() {
                [] => {
                    state.warn("this session has no subagents");
                    None
                }
                [only] => Some(only.id.clone()),
                _ => {
                    layer::children::open(state);
                    None
                }
            }
        }
        Action::Parent => parent,
        _ => parent.and_then(|parent| {
            let siblings: Vec<SessionId> =
                state.mirror.children(&parent).into_iter().map(|session| session.id.clone()).collect();
            let at = siblings.iter().position(|sibling| *sibling == id)?;
            let count = siblings.len();
            let next = if action == Action::ChildNext { at + 1 } else { at + count - 1 };
            siblings.get(next % count).cloned()
        }),
    };
    target.map(|target| open(state, target)).unwrap_or_default()
}

/// The session that a task call began.
pub(super) fn child_of(tool: &ToolPart) -> Option<SessionId> {
    let metadata = match &tool.state {
        ToolState::Running { metadata, .. } | ToolState::Error { metadata, .. } => metadata.as_ref()?,
        ToolState::Completed { metadata, .. } => metadata,
        ToolState::Pending { .. } => return None,
    };
    SessionId::parse(metadata.get("sessionId")?.as_str()?).ok()
}

fn scrolled(state: &mut State, action: Action) -> Vec<Cmd> {
    let height = isize::try_from(state.screen.layout.transcript.height).unwrap_or(1).max(1);
    match action {
        Action::PageUp => scroll(state, -height),
        Action::PageDown => scroll(state, height),
        Action::LineUp => scroll(state, -1),
        Action::LineDown => scroll(state, 1),
        Action::HalfUp => scroll(state, -(height / 2).max(1)),
        Action::HalfDown => scroll(state, (height / 2).max(1)),
        Action::Last => {
            with_transcript(state, |transcript, _, _| transcript.scroll = Scroll::End);
            Vec::new()
        }
        Action::First => {
            with_transcript(state, |transcript, look, _| transcript.scroll_to(look, 0));
            super::older(state)
        }
        _ => {
            let forward = action == Action::MessageNext;
            with_transcript(state, |transcript, look, height| {
                let top = transcript.top_entry(look, height);
                let is_prompt = |at: &usize| matches!(transcript.entries[*at].info, Message::User(_));
                let next = if forward {
                    (top + 1..transcript.end).find(is_prompt)
                } else {
                    (0..top).rev().find(is_prompt)
                };
                if let Some(next) = next {
                    transcript.scroll_to(look, next);
                }
            });
            Vec::new()
        }
    }
}

fn recent_model(state: &mut State, forward: bool) -> Vec<Cmd> {
    let current = state.model().map(|(provider, model)| format!("{provider}/{model}"));
    let recent = state.local.recent.clone();
    let Some(count) = Some(recent.len()).filter(|count| *count > 1) else { return Vec::new() };
    let at = recent.iter().position(|name| Some(name) == current.as_ref()).unwrap_or(0);
    let next = if forward { at + 1 } else { at + count - 1 } % count;
    state.choice.model = crate::state::named_model(recent.get(next).map(String::as_str));
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
    vec![Cmd::Save(state.saved())]
}

fn cycle_agent(state: &mut State, forward: bool) -> Vec<Cmd> {
    let names: Vec<String> = state.primary_agents().into_iter().map(|agent| agent.name.clone()).collect();
    let current = state.agent().map(|agent| agent.name.clone());
    let count = names.len();
    if count == 0 {
        return Vec::new();
    }
    let at = names.iter().position(|name| Some(name) == current.as_ref()).unwrap_or(0);
    let next = if forward { at + 1 } else { at + count - 1 } % count;
    state.choice.agent = names.get(next).cloned();
    Vec::new()
}
