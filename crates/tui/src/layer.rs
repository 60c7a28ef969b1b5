//! The layers over the views: lists to choose from, lines to type and pages to read.
//!
//! The top layer receives the keys. Each dialog has its own file. The value of a picked entry determines
//! the action.

use std::collections::BTreeMap;

use codewright_proto::{MessageId, SessionId};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use crate::editor::Editor;
use crate::fuzzy;
use crate::keys::Action;
use crate::msg::Cmd;
use crate::request::type_into;
use crate::review::Review;
use crate::state::State;

pub(crate) mod agents;
pub(crate) mod children;
pub(crate) mod directories;
pub(crate) mod findings;
pub(crate) mod history;
pub(crate) mod mcp;
pub(crate) mod models;
pub(crate) mod page;
pub(crate) mod palette;
pub(crate) mod providers;
pub(crate) mod rename;
pub(crate) mod review;
pub(crate) mod sessions;
pub(crate) mod sign_in;
pub(crate) mod skills;
pub(crate) mod themes;
pub(crate) mod timeline;
pub(crate) mod trust;

/// How many entries a page key moves in a list.
const PAGE: usize = 10;

/// A layer over the view.
#[derive(Debug)]
pub(crate) enum Layer {
    List(List),
    Line(Line),
    Page(page::Page),
    Confirm(Confirm),
    Review(Box<Review>),
    Trust(Box<trust::Dialog>),
}

/// The content of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Kind {
    Palette,
    Models,
    Agents,
    Sessions,
    /// The themes, with the theme that was active before.
    Themes(String),
    Timeline,
    History,
    Fork,
    Skills,
    Providers,
    SignIns,
    Children,
    Mcp,
    Directories,
    Findings,
}

/// A list to choose from.
#[derive(Debug)]
pub(crate) struct List {
    pub(crate) kind: Kind,
    pub(crate) title: &'static str,
    pub(crate) query: Editor,
    pub(crate) items: Vec<Item>,
    /// The indexes of the items that match the query, in order.
    pub(crate) found: Vec<usize>,
    pub(crate) selected: usize,
    /// A description of the other keys.
    pub(crate) hint: String,
    /// The item that the next delete key deletes.
    pub(crate) doomed: Option<usize>,
}

/// One entry of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Item {
    pub(crate) group: String,
    pub(crate) label: String,
    pub(crate) detail: String,
    /// A text at the right end.
    pub(crate) note: String,
    /// Whether the entry is the current choice.
    pub(crate) current: bool,
    pub(crate) pick: Pick,
}

/// The value of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Pick {
    Action(Action),
    Command(String),
    Model {
        provider: String,
        model: String,
    },
    Agent(String),
    Session(SessionId),
    Theme(String),
    Message(MessageId),
    /// A prompt of the history, by its index.
    Draft(usize),
    Fork(Option<MessageId>),
    Skill(String),
    Provider {
        id: String,
        name: String,
    },
    /// An MCP server, and whether it is on.
    Mcp {
        name: String,
        on: bool,
    },
    /// A directory to move to.
    Directory(String),
    /// A finding of a review, by its index.
    Finding(usize),
    /// A new worktree to move to.
    NewWorktree,
    /// A sign-in method, by its index in the provider's list.
    SignIn {
        provider: String,
        name: String,
        method: usize,
    },
    /// An answer to a question of a sign-in.
    SignInChoice {
        sign_in: Box<sign_in::SignIn>,
        value: String,
    },
}

/// A line to type.
#[derive(Debug)]
pub(crate) struct Line {
    pub(crate) title: String,
    pub(crate) about: String,
    pub(crate) editor: Editor,
    pub(crate) secret: bool,
    pub(crate) purpose: Purpose,
}

/// A confirmation before a prompt is sent.
#[derive(Debug)]
pub(crate) struct Confirm {
    pub(crate) title: &'static str,
    pub(crate) about: String,
    /// The label of the button that confirms.
    pub(crate) button: &'static str,
    /// Whether that button is selected.
    pub(crate) sure: bool,
}

/// The purpose of a typed line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Purpose {
    Title(SessionId),
    /// The key of a provider, which is stored with the answers to the questions before it.
    Key {
        provider: String,
        inputs: BTreeMap<String, String>,
    },
    /// The answer to a question of a sign-in.
    SignInText(Box<sign_in::SignIn>),
    /// The code of a sign-in.
    Code {
        provider: String,
        method: usize,
    },
    /// The code of a sign-in to an MCP server, or the address that the browser ended at.
    McpCode(String),
    /// No input: the line is displayed while the user signs in in the browser.
    Waiting,
    /// The name of a worktree to move a session to.
    Worktree(SessionId),
}

impl Item {
    pub(crate) fn new(label: impl Into<String>, pick: Pick) -> Self {
        Self {
            group: String::new(),
            label: crate::clean::clean_line(&label.into()),
            detail: String::new(),
            note: String::new(),
            current: false,
            pick,
        }
    }

    pub(crate) fn group(mut self, group: impl Into<String>) -> Self {
        self.group = crate::clean::clean_line(&group.into());
        self
    }

    pub(crate) fn detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = crate::clean::clean_line(&detail.into());
        self
    }

    pub(crate) fn note(mut self, note: impl Into<String>) -> Self {
        self.note = crate::clean::clean_line(&note.into());
        self
    }

    pub(crate) fn current(mut self, current: bool) -> Self {
        self.current = current;
        self
    }
}

impl List {
    pub(crate) fn new(kind: Kind, title: &'static str, items: Vec<Item>) -> Self {
        let mut list = Self {
            kind,
            title,
            query: Editor::default(),
            items: Vec::new(),
            found: Vec::new(),
            selected: 0,
            hint: String::new(),
            doomed: None,
        };
        list.fill(items);
        list.selected = list.found.iter().position(|at| list.items[*at].current).unwrap_or(0);
        list
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = hint.into();
        self
    }

    /// Replaces the items. The selected item stays selected.
    pub(crate) fn fill(&mut self, items: Vec<Item>) {
        let picked = self.selected_item().map(|item| item.pick.clone());
        self.items = items;
        self.search();
        let same = self.found.iter().position(|at| Some(&self.items[*at].pick) == picked.as_ref());
        self.selected = same.unwrap_or(0);
    }

    pub(crate) fn selected_item(&self) -> Option<&Item> {
        self.items.get(*self.found.get(self.selected)?)
    }

    /// Whether the items are in their groups, and not sorted by how well they match.
    pub(crate) fn is_grouped(&self) -> bool {
        self.query.is_empty()
    }

    fn search(&mut self) {
        let query = self.query.text();
        let scored = self.items.iter().enumerate().filter_map(|(at, item)| {
            let best = fuzzy::score(query, &item.label);
            let other =
                fuzzy::score(query, &format!("{} {}", item.group, item.detail)).map(|score| score - 500);
            Some((best.max(other)?, at))
        });
        let mut scored: Vec<(i64, usize)> = scored.collect();
        if !query.is_empty() {
            scored.sort_by_key(|(score, at)| (std::cmp::Reverse(*score), *at));
            // The same item may be in two groups.
            let mut seen: Vec<&Pick> = Vec::new();
            scored.retain(|(_, at)| {
                let pick = &self.items[*at].pick;
                let is_new = !seen.contains(&pick);
                if is_new {
                    seen.push(pick);
                }
                is_new
            });
        }
        self.found = scored.into_iter().map(|(_, at)| at).collect();
        self.selected = 0;
        self.doomed = None;
    }

    /// Moves the selection or edits the query. Returns whether the selected item may have changed.
    fn key(&mut self, key: KeyEvent) -> bool {
        let count = self.found.len();
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        let last = count.saturating_sub(1);
        match key.code {
            KeyCode::Up => self.selected = self.selected.checked_sub(1).unwrap_or(last),
            KeyCode::Down => self.selected = if self.selected >= last { 0 } else { self.selected + 1 },
            KeyCode::Char('p' | 'k') if control => {
                self.selected = self.selected.checked_sub(1).unwrap_or(last);
            }
            KeyCode::Char('n' | 'j') if control => {
                self.selected = if self.selected >= last { 0 } else { self.selected + 1 };
            }
            KeyCode::PageUp => self.selected = self.selected.saturating_sub(PAGE),
            KeyCode::PageDown => self.selected = (self.selected + PAGE).min(last),
            KeyCode::Home => self.selected = 0,
            KeyCode::End => self.selected = last,
            _ => {
                let before = self.query.text().to_owned();
                type_into(&mut self.query, key);
                if before == self.query.text() {
                    return false;
                }
                self.search();
            }
        }
        self.doomed = None;
        true
    }
}

/// Handles a key for the top layer.
pub(crate) fn key(state: &mut State, key: KeyEvent) -> Vec<Cmd> {
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    let closes = key.code == KeyCode::Esc || (control && key.code == KeyCode::Char('c'));
    match state.layers.last_mut() {
        None => Vec::new(),
        Some(Layer::Review(_)) => review::key(state, key),
        Some(Layer::Trust(_)) => trust::key(state, key),
        Some(_) if closes => {
            close(state);
            Vec::new()
        }
        Some(Layer::Page(_)) => {
            if let Some(cmds) = findings::page_key(state, key) {
                return cmds;
            }
            if let Some(Layer::Page(page)) = state.layers.last_mut()
                && page.key(key)
            {
                state.layers.pop();
            }
            Vec::new()
        }
        Some(Layer::Confirm(confirm)) => match key.code {
            KeyCode::Left | KeyCode::Right | KeyCode::Tab | KeyCode::BackTab => {
                confirm.sure = !confirm.sure;
                Vec::new()
            }
            KeyCode::Enter => {
                let is_sure = confirm.sure;
                state.layers.pop();
                if is_sure { crate::update::send_anyway(state) } else { Vec::new() }
            }
            _ => Vec::new(),
        },
        Some(Layer::Line(line)) => {
            if key.code != KeyCode::Enter {
                type_into(&mut line.editor, key);
                return Vec::new();
            }
            let (purpose, text) = (line.purpose.clone(), line.editor.text().trim().to_owned());
            state.layers.pop();
            submit_line(state, purpose, text)
        }
        Some(Layer::List(list)) if list.kind == Kind::Mcp && mcp::is_switch_key(key) => mcp::switch(state),
        Some(Layer::List(list)) => {
            if key.code == KeyCode::Enter {
                let Some(item) = list.selected_item().cloned() else { return Vec::new() };
                let kind = list.kind.clone();
                state.layers.pop();
                return pick(state, &kind, item);
            }
            if let Some(cmds) = other_key(state, key) {
                return cmds;
            }
            let Some(Layer::List(list)) = state.layers.last_mut() else { return Vec::new() };
            if list.key(key) && matches!(list.kind, Kind::Themes(_)) {
                themes::preview(state);
            }
            sessions::search(state)
        }
    }
}

/// Pastes text into the top layer.
pub(crate) fn paste(state: &mut State, text: &str) {
    let line = crate::clean::clean_line(text);
    match state.layers.last_mut() {
        Some(Layer::Line(layer)) => layer.editor.insert(line.trim()),
        Some(Layer::List(list)) => {
            list.query.insert(&line);
            list.search();
        }
        Some(Layer::Page(_) | Layer::Confirm(_) | Layer::Review(_) | Layer::Trust(_)) | None => {}
    }
}

/// Closes the top layer. A theme that was only previewed is reverted.
pub(crate) fn close(state: &mut State) {
    if let Some(Layer::List(List { kind: Kind::Themes(before), .. })) = state.layers.pop() {
        // The theme was active before, so it is valid.
        drop(state.choose_theme(&before));
    }
}

/// Handles a key that only some lists have.
fn other_key(state: &mut State, key: KeyEvent) -> Option<Vec<Cmd>> {
    let Some(Layer::List(list)) = state.layers.last() else { return None };
    match list.kind {
        Kind::Models => models::key(state, key),
        Kind::Sessions => sessions::key(state, key),
        Kind::Skills => skills::key(state, key),
        Kind::Findings => findings::key(state, key),
        Kind::Palette
        | Kind::Agents
        | Kind::Themes(_)
        | Kind::Timeline
        | Kind::History
        | Kind::Fork
        | Kind::Providers
        | Kind::SignIns
        | Kind::Children
        | Kind::Mcp
        | Kind::Directories => None,
    }
}

/// Performs the action of a picked entry.
pub(crate) fn pick(state: &mut State, kind: &Kind, item: Item) -> Vec<Cmd> {
    match item.pick {
        Pick::Action(action) => crate::update::act(state, action),
        Pick::Command(name) | Pick::Skill(name) => {
            state.prompt.clear();
            state.prompt.editor.set(format!("/{name} "));
            Vec::new()
        }
        Pick::Model { provider, model } => {
            state.choose_model(&provider, &model);
            vec![Cmd::Save(state.saved_choices())]
        }
        Pick::Agent(name) => {
            state.choice.agent = Some(name);
            Vec::new()
        }
        Pick::Session(id) => crate::update::open(state, id),
        Pick::Theme(name) => {
            if let Err(error) = state.choose_theme(&name) {
                state.fail(error);
                return Vec::new();
            }
            state.local.theme = Some(name);
            vec![Cmd::Save(state.saved_choices())]
        }
        Pick::Message(id) if *kind == Kind::Timeline => {
            crate::update::scroll_to(state, &id);
            Vec::new()
        }
        Pick::Message(_) => Vec::new(),
        Pick::Finding(at) => {
            findings::pick(state, at);
            Vec::new()
        }
        Pick::Draft(at) => {
            history::pick(state, at);
            Vec::new()
        }
        Pick::Fork(until) => match state.session_id().cloned() {
            Some(session) => vec![Cmd::Fork { session, until }],
            None => Vec::new(),
        },
        // `mcp::switch` handles these entries, because the list stays open.
        Pick::Mcp { .. } => Vec::new(),
        Pick::Directory(directory) => directories::pick(state, directory),
        Pick::NewWorktree => directories::name_worktree(state),
        Pick::Provider { id, name } => providers::pick(state, &id, &name),
        Pick::SignIn { provider, name, method } => sign_in::start(state, &provider, &name, method),
        Pick::SignInChoice { sign_in, value } => sign_in::answer(state, *sign_in, value),
    }
}

/// Performs the action of a typed line.
fn submit_line(state: &mut State, purpose: Purpose, text: String) -> Vec<Cmd> {
    // The answers to some questions of sign-ins are optional.
    if text.is_empty() && !matches!(purpose, Purpose::SignInText(_)) {
        return Vec::new();
    }
    match purpose {
        Purpose::Title(session) => vec![Cmd::Rename { session, title: text }],
        Purpose::Worktree(session) => {
            state.notify("creating the worktree…", codewright_proto::ToastVariant::Info);
            vec![Cmd::MoveToNew { session, name: text }]
        }
        Purpose::Code { provider, method } => vec![Cmd::FinishSignIn { provider, method, code: Some(text) }],
        Purpose::McpCode(name) => vec![Cmd::FinishMcpSignIn { name, code: text }],
        Purpose::Waiting => Vec::new(),
        Purpose::Key { provider, inputs } => {
            state.notify("storing the key…", codewright_proto::ToastVariant::Info);
            vec![Cmd::PutKey { provider, key: text, inputs }]
        }
        Purpose::SignInText(sign_in) => sign_in::answer(state, *sign_in, text),
    }
}
