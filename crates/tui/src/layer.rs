//! What lies over the views: lists to choose from, lines to write, pages to read.
//!
//! The top one has the keys. Each dialog is a file; what is picked says by its value what
//! is to be done.

use codewright_proto::{MessageId, SessionId};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use crate::asked::type_into;
use crate::editor::Editor;
use crate::fuzzy;
use crate::keys::Action;
use crate::msg::Cmd;
use crate::review::Review;
use crate::state::State;

pub(crate) mod agents;
pub(crate) mod children;
pub(crate) mod mcp;
pub(crate) mod models;
pub(crate) mod page;
pub(crate) mod palette;
pub(crate) mod places;
pub(crate) mod providers;
pub(crate) mod rename;
pub(crate) mod review;
pub(crate) mod sessions;
pub(crate) mod share;
pub(crate) mod skills;
pub(crate) mod themes;
pub(crate) mod timeline;
pub(crate) mod trust;

/// How many entries a list jumps over.
const PAGE: usize = 10;

/// One thing over the view.
#[derive(Debug)]
pub(crate) enum Layer {
    List(List),
    Line(Line),
    Page(page::Page),
    Confirm(Confirm),
    Review(Box<Review>),
    Trust(Box<trust::Dialog>),
}

/// What a list is of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Kind {
    Palette,
    Models,
    Agents,
    Sessions,
    /// With the theme that was on before.
    Themes(String),
    Timeline,
    Fork,
    Skills,
    Providers,
    SignIns,
    Children,
    Mcp,
    Places,
}

/// A list to choose from.
#[derive(Debug)]
pub(crate) struct List {
    pub(crate) kind: Kind,
    pub(crate) title: &'static str,
    pub(crate) query: Editor,
    pub(crate) items: Vec<Item>,
    /// The items that fit the query, in order.
    pub(crate) found: Vec<usize>,
    pub(crate) selected: usize,
    /// What the other keys do.
    pub(crate) hint: String,
    /// The item that the next such key deletes.
    pub(crate) doomed: Option<usize>,
}

/// One entry of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Item {
    pub(crate) group: String,
    pub(crate) label: String,
    pub(crate) detail: String,
    /// At the right.
    pub(crate) note: String,
    /// Whether it is what holds now.
    pub(crate) current: bool,
    pub(crate) pick: Pick,
}

/// What comes of an entry.
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
    Fork(Option<MessageId>),
    Skill(String),
    Provider {
        id: String,
        name: String,
    },
    /// A tool server, and whether it is on.
    Mcp {
        name: String,
        on: bool,
    },
    /// A directory to move to.
    Place(String),
    /// A way to sign in, by its place in the provider's list.
    SignIn {
        provider: String,
        name: String,
        method: usize,
    },
}

/// A line to write.
#[derive(Debug)]
pub(crate) struct Line {
    pub(crate) title: String,
    pub(crate) about: String,
    pub(crate) editor: Editor,
    pub(crate) secret: bool,
    pub(crate) what: What,
}

/// Something that is asked before it is done.
#[derive(Debug)]
pub(crate) struct Confirm {
    pub(crate) title: &'static str,
    pub(crate) about: &'static str,
    /// What the button says that does it.
    pub(crate) button: &'static str,
    /// Whether it is that button that is selected.
    pub(crate) sure: bool,
    pub(crate) cmd: Cmd,
}

/// What a written line is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum What {
    Title(SessionId),
    Key(String),
    /// The code that was brought back from a sign-in.
    Code {
        provider: String,
        method: usize,
    },
    /// Nothing: it is told while a sign-in goes on elsewhere.
    Waiting,
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

    /// Takes other items and keeps what is selected.
    pub(crate) fn fill(&mut self, items: Vec<Item>) {
        let picked = self.picked().map(|item| item.pick.clone());
        self.items = items;
        self.search();
        let same = self.found.iter().position(|at| Some(&self.items[*at].pick) == picked.as_ref());
        self.selected = same.unwrap_or(0);
    }

    pub(crate) fn picked(&self) -> Option<&Item> {
        self.items.get(*self.found.get(self.selected)?)
    }

    /// Whether the items stand in their groups, and not by how well they fit.
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
            // The same thing may stand in two groups.
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

    /// Moves through the list or changes the query; true if something else may be selected now.
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

/// A key while something lies over the view.
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
        Some(Layer::Page(page)) => {
            if page.key(key) {
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
                let cmd = confirm.sure.then(|| confirm.cmd.clone());
                state.layers.pop();
                cmd.into_iter().collect()
            }
            _ => Vec::new(),
        },
        Some(Layer::Line(line)) => {
            if key.code != KeyCode::Enter {
                type_into(&mut line.editor, key);
                return Vec::new();
            }
            let (what, text) = (line.what.clone(), line.editor.text().trim().to_owned());
            state.layers.pop();
            written(state, what, text)
        }
        Some(Layer::List(list)) if list.kind == Kind::Mcp && mcp::switches(key) => mcp::switch(state),
        Some(Layer::List(list)) => {
            if key.code == KeyCode::Enter {
                let Some(item) = list.picked().cloned() else { return Vec::new() };
                let kind = list.kind.clone();
                state.layers.pop();
                return picked(state, &kind, item);
            }
            if let Some(cmds) = other_key(state, key) {
                return cmds;
            }
            let Some(Layer::List(list)) = state.layers.last_mut() else { return Vec::new() };
            if list.key(key) && matches!(list.kind, Kind::Themes(_)) {
                themes::preview(state);
            }
            sessions::searched(state)
        }
    }
}

/// Text that was pasted over the view.
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

/// Takes the top layer away; what it tried out is taken back.
pub(crate) fn close(state: &mut State) {
    if let Some(Layer::List(List { kind: Kind::Themes(before), .. })) = state.layers.pop() {
        // It was on before, so it can be put on.
        drop(state.choose_theme(&before));
    }
}

/// Keys that only some lists have.
fn other_key(state: &mut State, key: KeyEvent) -> Option<Vec<Cmd>> {
    let Some(Layer::List(list)) = state.layers.last() else { return None };
    match list.kind {
        Kind::Models => models::key(state, key),
        Kind::Sessions => sessions::key(state, key),
        _ => None,
    }
}

/// Does what an entry says.
pub(crate) fn picked(state: &mut State, kind: &Kind, item: Item) -> Vec<Cmd> {
    match item.pick {
        Pick::Action(action) => crate::update::act(state, action),
        Pick::Command(name) | Pick::Skill(name) => {
            state.prompt.clear();
            state.prompt.editor.set(format!("/{name} "));
            Vec::new()
        }
        Pick::Model { provider, model } => {
            state.choose_model(&provider, &model);
            vec![Cmd::Save(state.saved())]
        }
        Pick::Agent(name) => {
            state.choice.agent = Some(name);
            Vec::new()
        }
        Pick::Session(id) => crate::update::open(state, id),
        Pick::Theme(name) => {
            if let Err(wrong) = state.choose_theme(&name) {
                state.fail(wrong);
                return Vec::new();
            }
            state.local.theme = Some(name);
            vec![Cmd::Save(state.saved())]
        }
        Pick::Message(id) if *kind == Kind::Timeline => {
            crate::update::scroll_to(state, &id);
            Vec::new()
        }
        Pick::Message(_) => Vec::new(),
        Pick::Fork(until) => match state.session_id().cloned() {
            Some(session) => vec![Cmd::Fork { session, until }],
            None => Vec::new(),
        },
        // Space and enter switch it while the list stays.
        Pick::Mcp { .. } => Vec::new(),
        Pick::Place(directory) => places::picked(state, directory),
        Pick::Provider { id, name } => providers::picked(state, &id, &name),
        Pick::SignIn { provider, name, method } => providers::sign_in(state, &provider, &name, method),
    }
}

fn written(state: &mut State, what: What, text: String) -> Vec<Cmd> {
    if text.is_empty() {
        return Vec::new();
    }
    match what {
        What::Title(session) => vec![Cmd::Rename { session, title: text }],
        What::Code { provider, method } => vec![Cmd::FinishSignIn { provider, method, code: Some(text) }],
        What::Waiting => Vec::new(),
        What::Key(provider) => {
            state.tell("storing the key…", codewright_proto::ToastVariant::Info);
            vec![Cmd::PutKey { provider, key: text }]
        }
    }
}
