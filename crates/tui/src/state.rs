//! Everything that is shown follows from this.

use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;

use codewright_proto::{
    Message, PartId, PermissionAnswer, PermissionReply, PermissionRequest, Session, SessionId, ToastVariant,
    UserMessage,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::asked::Asked;
use crate::clipboard::{Desk, Multiplexer};
use crate::keys::Keys;
use crate::layer::Layer;
use crate::look::{Look, Show};
use crate::mirror::{Agent, Mirror};
use crate::msg::Cmd;
use crate::prompt::Prompt;
use crate::theme::{Depth, Mode, Theme, built_in};
use crate::trust::Trusts;
use crate::view::Screen;
use crate::zone::Zone;

/// How many notes are shown at once.
const MAX_NOTES: usize = 4;
/// How long a note stays, in milliseconds.
pub(crate) const NOTE_MILLIS: u64 = 5_000;
/// How much longer for each character, and of how many at most.
const READ_MILLIS: u64 = 25;
const MAX_READ_CHARS: u64 = 300;
/// How many models are remembered as recent.
const MAX_RECENT: usize = 10;
/// How many sessions are remembered as this client's own.
const MAX_DRIVEN: usize = 256;

/// With what the client begins.
#[derive(Debug, Clone)]
pub struct Options {
    /// The program's version.
    pub version: &'static str,
    /// The directory that the user works in, as the server knows it.
    pub directory: String,
    /// The user's home.
    pub home: String,
    /// Where what the user chose is kept.
    pub state: PathBuf,
    /// Where theme files are looked for, the last first.
    pub themes: Vec<PathBuf>,
    /// What `tui.json` files say.
    pub config: Value,
    /// How many colours there are.
    pub depth: Depth,
    /// What lies behind the text, if the terminal says so.
    pub mode: Option<Mode>,
    /// The user's editor.
    pub editor: Option<String>,
    /// What stands between the program and the terminal.
    pub multiplexer: Option<Multiplexer>,
    /// The desks whose clipboards programs reach from here, the best first.
    pub desks: Vec<Desk>,
    /// Whether the small client is wanted, and how many messages of a session that is opened it prints first.
    pub mini: Option<usize>,
    /// Whether the terminal knows no letters but ASCII.
    pub ascii: bool,
    /// In which times are told.
    pub zone: Zone,
    /// What is opened.
    pub first: First,
    /// What stands in the prompt.
    pub prompt: Option<String>,
    /// The agent.
    pub agent: Option<String>,
    /// The model, as `provider/model`.
    pub model: Option<String>,
    /// Whether calls that would ask for permission are allowed.
    pub auto: bool,
    /// What is to be said at the beginning.
    pub notes: Vec<String>,
}

/// What is opened first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum First {
    /// Nothing: the home view.
    #[default]
    Home,
    /// The last session of the directory, or a fork of it.
    Last {
        /// Whether it is forked.
        fork: bool,
    },
    /// A session, or a fork of it.
    Session {
        /// Which.
        id: String,
        /// Whether it is forked.
        fork: bool,
    },
}

/// What fills the screen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Route {
    Home,
    Session(SessionId),
}

/// How the server can be reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Link {
    Opening,
    Open,
    Lost(String),
}

/// What the user chose and the next start should know.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Local {
    pub(crate) theme: Option<String>,
    pub(crate) light: Option<bool>,
    /// Models as `provider/model`, the newest first.
    pub(crate) recent: Vec<String>,
    pub(crate) favourites: Vec<String>,
    pub(crate) variants: BTreeMap<String, String>,
    pub(crate) pinned: Vec<String>,
    pub(crate) sidebar: Option<bool>,
    pub(crate) mouse: Option<bool>,
    pub(crate) hide_details: bool,
    pub(crate) thinking: bool,
    pub(crate) times: bool,
    /// How often a file was mentioned.
    pub(crate) mentioned: BTreeMap<String, u32>,
}

/// Who answers next.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Choice {
    pub(crate) agent: Option<String>,
    pub(crate) model: Option<(String, String)>,
    pub(crate) variant: Option<String>,
}

/// Something told for a moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Note {
    pub(crate) text: String,
    pub(crate) variant: ToastVariant,
    pub(crate) until: u64,
}

/// Everything that is shown follows from this.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) options: Options,
    /// Milliseconds since 1970.
    pub(crate) now: u64,
    pub(crate) size: (u16, u16),
    pub(crate) mirror: Mirror,
    pub(crate) link: Link,
    /// Whether the server was ever reached.
    pub(crate) was_connected: bool,
    pub(crate) route: Route,
    pub(crate) prompt: Prompt,
    pub(crate) layers: Vec<Layer>,
    pub(crate) asked: Asked,
    pub(crate) notes: Vec<Note>,
    pub(crate) theme: Theme,
    pub(crate) theme_name: String,
    pub(crate) mode: Mode,
    /// Theme files by name.
    pub(crate) themes: BTreeMap<String, Value>,
    /// Greater whenever colours change.
    pub(crate) generation: u64,
    pub(crate) keys: Keys,
    pub(crate) local: Local,
    pub(crate) choice: Choice,
    /// Until when the key after the leader is waited for.
    pub(crate) leader: Option<u64>,
    /// Until when a second escape interrupts.
    pub(crate) interrupt: Option<u64>,
    pub(crate) show_outputs: bool,
    pub(crate) expanded: HashSet<PartId>,
    pub(crate) screen: Screen,
    /// Whether a session is being made for the first prompt.
    pub(crate) opening: bool,
    /// The sessions that were prompted here, the last one last: only for them leave is given unasked.
    driven: Vec<SessionId>,
    /// Providers that can be signed in to, as far as they were fetched.
    pub(crate) known_providers: Vec<(String, String)>,
    pub(crate) skills: Vec<(String, String)>,
    /// How one can sign in to which provider.
    pub(crate) sign_ins: Value,
    /// The changes that were looked at.
    pub(crate) reviewed: HashSet<u64>,
    pub(crate) trust: Trusts,
}

impl State {
    pub(crate) fn new(options: Options, local: Local, themes: BTreeMap<String, Value>, now: u64) -> Self {
        let named = options.config["theme"].as_str().map(str::to_owned);
        let theme_name = local.theme.clone().or(named).unwrap_or_else(|| built_in::DEFAULT.to_owned());
        let mode = match local.light {
            Some(true) => Mode::Light,
            Some(false) => Mode::Dark,
            None => options.mode.unwrap_or_default(),
        };
        let default = built_in::file(built_in::DEFAULT).unwrap_or_default();
        let theme = Theme::parse(&default, mode).expect("the built-in themes are tested");
        let mut state = Self {
            now,
            size: (80, 24),
            mirror: Mirror::new(&options.directory, &options.home),
            link: Link::Opening,
            was_connected: false,
            route: Route::Home,
            prompt: Prompt::default(),
            layers: Vec::new(),
            asked: Asked::default(),
            notes: Vec::new(),
            theme: theme.at(options.depth),
            theme_name: built_in::DEFAULT.to_owned(),
            mode,
            themes,
            generation: 0,
            keys: Keys::default(),
            local,
            choice: Choice {
                agent: options.agent.clone(),
                model: named_model(options.model.as_deref()),
                variant: None,
            },
            leader: None,
            interrupt: None,
            show_outputs: false,
            expanded: HashSet::new(),
            screen: Screen::default(),
            opening: false,
            driven: Vec::new(),
            known_providers: Vec::new(),
            skills: Vec::new(),
            sign_ins: Value::Null,
            reviewed: HashSet::new(),
            trust: Trusts::default(),
            options,
        };
        if let Some(text) = state.options.prompt.clone() {
            state.prompt.editor.set(text);
        }
        if let Err(wrong) = state.choose_theme(&theme_name) {
            state.warn(format!("{wrong}; `{}` is used", state.theme_name));
        }
        for note in std::mem::take(&mut state.options.notes) {
            state.warn(note);
        }
        let keybinds = state.options.config["keybinds"].clone();
        if !keybinds.is_null() {
            for wrong in state.keys.configure(&keybinds) {
                state.warn(wrong);
            }
        }
        state
    }

    /// Puts on a theme; the error names what is wrong with it, and the old one stays.
    pub(crate) fn choose_theme(&mut self, name: &str) -> Result<(), String> {
        let file = self.themes.get(name).cloned().or_else(|| built_in::file(name));
        let Some(file) = file else { return Err(format!("there is no theme `{name}`")) };
        let theme = Theme::parse(&file, self.mode).map_err(|error| format!("theme `{name}`: {error}"))?;
        self.theme = theme.at(self.options.depth);
        name.clone_into(&mut self.theme_name);
        self.generation += 1;
        Ok(())
    }

    /// The names of all themes.
    pub(crate) fn theme_names(&self) -> Vec<String> {
        let mut names: Vec<String> =
            built_in::names().map(str::to_owned).chain(self.themes.keys().cloned()).collect();
        names.sort();
        names.dedup();
        names
    }

    /// Tells something for a moment.
    pub(crate) fn tell(&mut self, text: impl Into<String>, variant: ToastVariant) {
        let text = crate::clean::clean(&text.into());
        self.notes.retain(|note| note.text != text);
        // Who has to read more has longer for it.
        let long = u64::try_from(text.len()).unwrap_or(0).min(MAX_READ_CHARS) * READ_MILLIS;
        self.notes.push(Note { text, variant, until: self.now + NOTE_MILLIS + long });
        if self.notes.len() > MAX_NOTES {
            self.notes.remove(0);
        }
    }

    pub(crate) fn warn(&mut self, text: impl Into<String>) {
        self.tell(text, ToastVariant::Warning);
    }

    pub(crate) fn fail(&mut self, text: impl Into<String>) {
        self.tell(text, ToastVariant::Error);
    }

    /// The session on the screen.
    pub(crate) fn session_id(&self) -> Option<&SessionId> {
        match &self.route {
            Route::Home => None,
            Route::Session(id) => Some(id),
        }
    }

    pub(crate) fn session(&self) -> Option<&Session> {
        self.mirror.sessions.get(self.session_id()?)
    }

    /// Whether the turn of the session on the screen runs.
    pub(crate) fn is_busy(&self) -> bool {
        self.session_id().is_some_and(|id| self.mirror.is_busy(id))
    }

    /// The agents that a user may talk to.
    pub(crate) fn primary_agents(&self) -> Vec<&Agent> {
        let agents = self.mirror.agents.iter();
        agents.filter(|agent| agent.mode != "subagent" && !agent.hidden).collect()
    }

    /// The agent that answers next.
    pub(crate) fn agent(&self) -> Option<&Agent> {
        let agents = self.primary_agents();
        let named = |name: &str| agents.iter().copied().find(|agent| agent.name == name);
        let chosen = self.choice.agent.as_deref().and_then(named);
        let last = || match self.session()?.agent.as_deref() {
            Some(agent) => named(agent),
            None => named(&self.last_prompt()?.agent),
        };
        let configured = || named(self.mirror.config["default_agent"].as_str()?);
        chosen.or_else(last).or_else(configured).or_else(|| agents.first().copied())
    }

    /// The model that answers next.
    pub(crate) fn model(&self) -> Option<(String, String)> {
        let exists = |model: &(String, String)| self.mirror.model(&model.0, &model.1).is_some();
        let wanted = |text: Option<&str>| named_model(text).filter(exists);
        let of_agent = || {
            let model = self.agent()?.model.as_ref()?;
            Some((model.provider_id.clone(), model.model_id.clone())).filter(exists)
        };
        let of_session = || {
            let model = match self.session()?.model.as_ref() {
                Some(model) => (model.provider_id.clone(), model.id.clone()),
                None => {
                    let model = &self.last_prompt()?.model;
                    (model.provider_id.clone(), model.model_id.clone())
                }
            };
            Some(model).filter(exists)
        };
        let recent = || self.local.recent.iter().find_map(|model| wanted(Some(model)));
        self.choice
            .model
            .clone()
            .filter(exists)
            .or_else(of_agent)
            .or_else(of_session)
            .or_else(|| wanted(self.mirror.config["model"].as_str()))
            .or_else(recent)
            .or_else(|| self.default_model())
    }

    /// What was last asked in the session: a fork has no agent and no model of its own before its first prompt.
    fn last_prompt(&self) -> Option<&UserMessage> {
        let transcript = self.mirror.transcripts.get(self.session_id()?)?;
        transcript.entries.iter().rev().find_map(|entry| match &entry.info {
            Message::User(prompt) => Some(prompt),
            Message::Assistant(_) => None,
        })
    }

    fn default_model(&self) -> Option<(String, String)> {
        self.mirror.providers.iter().filter(|provider| !provider.is_public).find_map(|provider| {
            let default = self.mirror.defaults.get(&provider.id);
            let model = provider.models.iter().find(|model| Some(&model.id) == default);
            let model = model.or_else(|| provider.models.first())?;
            Some((provider.id.clone(), model.id.clone()))
        })
    }

    /// The variant of the model that answers next.
    pub(crate) fn variant(&self) -> Option<String> {
        let (provider, model) = self.model()?;
        let (_, known) = self.mirror.model(&provider, &model)?;
        let chosen = self
            .choice
            .variant
            .clone()
            .or_else(|| self.local.variants.get(&format!("{provider}/{model}")).cloned());
        chosen.filter(|variant| known.variants.contains(variant))
    }

    /// Chooses a model and remembers it.
    pub(crate) fn choose_model(&mut self, provider: &str, model: &str) {
        let name = format!("{provider}/{model}");
        self.local.recent.retain(|known| *known != name);
        self.local.recent.insert(0, name);
        self.local.recent.truncate(MAX_RECENT);
        self.choice.model = Some((provider.to_owned(), model.to_owned()));
        self.choice.variant = None;
    }

    /// How messages are drawn in a width.
    pub(crate) fn look(&self, width: usize) -> Look<'_> {
        Look {
            theme: &self.theme,
            mirror: &self.mirror,
            width,
            now: self.now,
            zone: &self.options.zone,
            show: Show {
                details: !self.local.hide_details,
                thinking: self.local.thinking,
                times: self.local.times,
                outputs: self.show_outputs,
            },
            expanded: &self.expanded,
            generation: self.generation,
        }
    }

    /// Notes that a session is prompted here.
    pub(crate) fn drive(&mut self, id: &SessionId) {
        self.driven.retain(|known| known != id);
        self.driven.push(id.clone());
        if self.driven.len() > MAX_DRIVEN {
            self.driven.remove(0);
        }
    }

    /// Whether a session is one that was prompted here, or was begun by such a one.
    pub(crate) fn is_driven(&self, id: &SessionId) -> bool {
        self.driven.iter().any(|root| self.mirror.is_below(id, root))
    }

    /// What is answered unasked: with `--auto` the calls of what was prompted here, and nobody else's.
    pub(crate) fn unasked<'a>(&self, requests: impl IntoIterator<Item = &'a PermissionRequest>) -> Vec<Cmd> {
        let given =
            requests.into_iter().filter(|request| self.options.auto && self.is_driven(&request.session_id));
        let answer = PermissionAnswer { reply: PermissionReply::Once, message: None };
        given.map(|request| Cmd::Permission { id: request.id.clone(), answer: answer.clone() }).collect()
    }

    /// Whether something on the screen moves by itself.
    pub(crate) fn moves(&self) -> bool {
        // While the user is waited for, nothing else goes on.
        self.is_busy() && self.asked.leave.is_none() && self.asked.question.is_none()
    }

    /// When the screen changes by itself next, if it does.
    pub(crate) fn next_change(&self) -> Option<u64> {
        let notes = self.notes.iter().map(|note| note.until);
        let waits = [self.leader, self.interrupt].into_iter().flatten();
        notes.chain(waits).chain(self.moves().then_some(self.now + 80)).min()
    }

    /// What is kept for the next start.
    pub(crate) fn saved(&self) -> Value {
        serde_json::to_value(&self.local).unwrap_or_default()
    }
}

/// `provider/model` apart; a model's own name may hold slashes.
pub(crate) fn named_model(text: Option<&str>) -> Option<(String, String)> {
    let (provider, model) = text?.split_once('/')?;
    Some((provider.to_owned(), model.to_owned()))
}
