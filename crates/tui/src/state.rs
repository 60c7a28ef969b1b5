//! The state of the client. It determines the screen.

use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;

use codewright_proto::{
    Message, PartId, PermissionAnswer, PermissionReply, PermissionRequest, Session, SessionId, ToastVariant,
    UserMessage,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::channel::Channel;
use crate::clipboard::{Desktop, Multiplexer};
use crate::keys::Keys;
use crate::layer::Layer;
use crate::layer::findings::{Dismissed, Findings};
use crate::layer::skills::Skill;
use crate::link::Roots;
use crate::look::{Look, Show};
use crate::mirror::{Agent, Mirror};
use crate::msg::Cmd;
use crate::notification::Sequence;
use crate::opener::Ide;
use crate::permission_mode::{self, PermissionMode};
use crate::prompt::Prompt;
use crate::request::Requests;
use crate::search::Search;
use crate::selection::Selection;
use crate::theme::{Depth, Mode, Theme, built_in};
use crate::trust::Trusts;
use crate::view::Screen;
use crate::zone::Zone;

/// The maximum number of notes on the screen.
const MAX_NOTES: usize = 4;
/// How long a note is visible at least, in milliseconds.
pub(crate) const NOTE_MILLIS: u64 = 5_000;
/// How much longer a note is visible for each character, in milliseconds.
const READ_MILLIS: u64 = 25;
/// The number of characters that prolong a note at most.
const MAX_READ_CHARS: u64 = 300;
/// The maximum number of recent models.
const MAX_RECENT: usize = 10;
/// The maximum number of sessions that are remembered as prompted here.
const MAX_PROMPTED: usize = 256;

/// The options of the client.
#[derive(Debug, Clone)]
pub struct Options {
    /// The program's version.
    pub version: &'static str,
    /// The directory that the user works in, as the server knows it.
    pub directory: String,
    /// The user's home directory.
    pub home: String,
    /// The directory for the user's choices and the prompt history.
    pub state: PathBuf,
    /// The directories of theme files; later ones override earlier ones.
    pub themes: Vec<PathBuf>,
    /// The merged `tui.json` files.
    pub config: Value,
    /// The number of colours of the terminal.
    pub depth: Depth,
    /// Whether the background is dark or light, if the terminal reports it.
    pub mode: Option<Mode>,
    /// The user's editor.
    pub editor: Option<String>,
    /// The editor in whose terminal the client runs.
    pub ide: Option<Ide>,
    /// The socket of the Neovim in whose terminal the client runs.
    pub nvim: Option<String>,
    /// The channel of the editor in whose terminal the client runs.
    pub channel: Option<Channel>,
    /// The directories that are searched for programs, separated by colons.
    pub programs: String,
    /// The variables that editors with their own windows do not receive.
    pub private_variables: Vec<String>,
    /// The links that the terminal displays.
    pub links: Links,
    /// Whether the files of the server are files of this machine.
    pub has_local_files: bool,
    /// The terminal multiplexer, if there is one.
    pub multiplexer: Option<Multiplexer>,
    /// The desktops whose clipboards are available to programs, best first.
    pub desktops: Vec<Desktop>,
    /// Runs the small client (`--mini`), which prints at most this many messages of an existing session.
    pub mini: Option<usize>,
    /// Whether the terminal can display only ASCII.
    pub ascii: bool,
    /// The time zone of displayed times.
    pub zone: Zone,
    /// The session that is opened first.
    pub first: First,
    /// The initial text of the prompt.
    pub prompt: Option<String>,
    /// Whether the initial text is sent as soon as the data of the server is there.
    pub sends_prompt: bool,
    /// The agent.
    pub agent: Option<String>,
    /// The model, as `provider/model`.
    pub model: Option<String>,
    /// Whether permission requests of sessions that are prompted here are allowed automatically.
    pub auto: bool,
    /// How the desktop is notified, or `None` if the terminal cannot.
    pub notification: Option<Sequence>,
    /// Whether the terminal is known to ignore texts that programs copy (OSC 52).
    pub ignores_copies: bool,
    /// Notes for the start.
    pub notes: Vec<String>,
}

/// The links that a terminal displays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Links {
    /// None, because the terminal may not support links.
    #[default]
    None,
    /// Addresses, but no files, because the terminal cannot open the files of this machine.
    Urls,
    /// Addresses and files.
    All,
}

/// The session that is opened first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum First {
    /// No session: the home view.
    #[default]
    Home,
    /// The last session of the directory, or its fork.
    Last {
        /// Whether it is forked.
        fork: bool,
    },
    /// A session, or its fork.
    Session {
        /// The id of the session.
        id: String,
        /// Whether it is forked.
        fork: bool,
    },
}

/// The view that fills the screen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Route {
    Home,
    Session(SessionId),
}

/// The state of the connection to the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Link {
    Opening,
    Open,
    Lost(String),
}

/// The user's choices, which are stored for the next start.
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
    /// How often each file was mentioned.
    pub(crate) mentioned: BTreeMap<String, u32>,
}

/// The agent and the model that the user chose for the next prompt.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Choice {
    pub(crate) agent: Option<String>,
    pub(crate) model: Option<(String, String)>,
    pub(crate) variant: Option<String>,
}

/// A note that is visible for a short time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Note {
    pub(crate) text: String,
    pub(crate) variant: ToastVariant,
    pub(crate) until: u64,
}

/// The state of the client.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) options: Options,
    /// Milliseconds since 1970.
    pub(crate) now: u64,
    pub(crate) size: (u16, u16),
    pub(crate) mirror: Mirror,
    pub(crate) link: Link,
    /// The directory that the client enters or could not enter, while the open session works in it.
    pub(crate) followed: String,
    /// Whether the next connection is one to another directory.
    pub(crate) is_entering: bool,
    /// Whether the server was ever reached.
    pub(crate) was_connected: bool,
    pub(crate) route: Route,
    pub(crate) prompt: Prompt,
    pub(crate) layers: Vec<Layer>,
    pub(crate) requests: Requests,
    pub(crate) notes: Vec<Note>,
    pub(crate) theme: Theme,
    pub(crate) theme_name: String,
    pub(crate) mode: Mode,
    /// Theme files by name.
    pub(crate) themes: BTreeMap<String, Value>,
    /// Increases when colours change.
    pub(crate) generation: u64,
    pub(crate) keys: Keys,
    pub(crate) local: Local,
    pub(crate) choice: Choice,
    /// Until when the client waits for the key after the leader.
    pub(crate) leader: Option<u64>,
    /// Until when a second press of the key interrupts the turn, if one does not.
    pub(crate) interrupt: Option<u64>,
    /// Until when a second press of the key ends the client.
    pub(crate) leaving: Option<u64>,
    /// When the user last typed into the prompt.
    pub(crate) typed_at: Option<u64>,
    /// The permission mode that the user chose here.
    pub(crate) chosen_mode: Option<PermissionMode>,
    pub(crate) agent_before_plan: Option<String>,
    /// The search in the transcript, while it is open.
    pub(crate) search: Option<Search>,
    /// Whether the terminal has the focus; `None` if it does not report it.
    pub(crate) has_focus: Option<bool>,
    /// When the user last pressed a key.
    pub(crate) pressed_at: u64,
    /// Whether the title of the window has a mark, because something happened while it had no focus.
    pub(crate) is_marked: bool,
    /// The rows that are selected with the mouse.
    pub(crate) selection: Option<Selection>,
    pub(crate) show_outputs: bool,
    pub(crate) expanded: HashSet<PartId>,
    pub(crate) screen: Screen,
    /// Whether a session is being created for the first prompt.
    pub(crate) opening: bool,
    /// The sessions that were prompted here, most recent last. `--auto` allows only their calls.
    prompted: Vec<SessionId>,
    /// The ids and names of the providers that support sign-in.
    pub(crate) all_providers: Vec<(String, String)>,
    pub(crate) skills: Vec<Skill>,
    /// The sign-in methods by provider.
    pub(crate) sign_ins: Value,
    /// The marks of the changes that were reviewed.
    pub(crate) reviewed: HashSet<u64>,
    pub(crate) trust: Trusts,
    /// The review that runs, whose findings are fetched at its end.
    pub(crate) reviewing: Option<SessionId>,
    /// The findings that were fetched last.
    pub(crate) findings: Option<Findings>,
    pub(crate) dismissed: Dismissed,
    /// The report of a bug that was written last.
    pub(crate) bug: BugReport,
}

/// The state of the report of a bug.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum BugReport {
    /// It is being written.
    Pending,
    /// It was written to a file, with what to do next.
    Written { path: String, advice: String },
    /// It could not be written.
    Failed(String),
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
        let theme = Theme::parse(&default, mode).expect("the built-in themes are valid");
        let mut state = Self {
            now,
            size: (80, 24),
            mirror: Mirror::new(&options.directory, &options.home),
            link: Link::Opening,
            was_connected: false,
            route: Route::Home,
            prompt: Prompt::default(),
            layers: Vec::new(),
            requests: Requests::default(),
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
                model: parse_model(options.model.as_deref()),
                variant: None,
            },
            leader: None,
            followed: String::new(),
            is_entering: false,
            interrupt: None,
            leaving: None,
            typed_at: None,
            chosen_mode: None,
            agent_before_plan: None,
            search: None,
            has_focus: None,
            pressed_at: now,
            is_marked: false,
            selection: None,
            show_outputs: false,
            expanded: HashSet::new(),
            screen: Screen::default(),
            opening: false,
            prompted: Vec::new(),
            all_providers: Vec::new(),
            skills: Vec::new(),
            sign_ins: Value::Null,
            reviewed: HashSet::new(),
            trust: Trusts::default(),
            reviewing: None,
            findings: None,
            dismissed: Dismissed::new(),
            bug: BugReport::Pending,
            options,
        };
        if let Some(text) = state.options.prompt.clone() {
            state.prompt.editor.set(text);
        }
        if let Err(error) = state.choose_theme(&theme_name) {
            state.warn(format!("{error}; using `{}`", state.theme_name));
        }
        for note in std::mem::take(&mut state.options.notes) {
            state.warn(note);
        }
        let keybinds = state.options.config["keybinds"].clone();
        if !keybinds.is_null() {
            for warning in state.keys.configure(&keybinds) {
                state.warn(warning);
            }
        }
        state
    }

    /// Switches to a theme. If the theme is invalid, the current one stays.
    pub(crate) fn choose_theme(&mut self, name: &str) -> Result<(), String> {
        let file = self.themes.get(name).cloned().or_else(|| built_in::file(name));
        let Some(file) = file else { return Err(format!("no theme named `{name}`")) };
        let theme = Theme::parse(&file, self.mode).map_err(|error| format!("theme `{name}`: {error}"))?;
        self.theme = theme.at(self.options.depth);
        name.clone_into(&mut self.theme_name);
        self.generation += 1;
        Ok(())
    }

    /// Returns the names of all themes.
    pub(crate) fn theme_names(&self) -> Vec<String> {
        let mut names: Vec<String> =
            built_in::names().map(str::to_owned).chain(self.themes.keys().cloned()).collect();
        names.sort();
        names.dedup();
        names
    }

    /// Displays a note.
    pub(crate) fn notify(&mut self, text: impl Into<String>, variant: ToastVariant) {
        let text = crate::clean::clean(&text.into());
        self.notes.retain(|note| note.text != text);
        // A longer note needs more time to read.
        let extra = u64::try_from(text.len()).unwrap_or(0).min(MAX_READ_CHARS) * READ_MILLIS;
        self.notes.push(Note { text, variant, until: self.now + NOTE_MILLIS + extra });
        if self.notes.len() > MAX_NOTES {
            self.notes.remove(0);
        }
    }

    pub(crate) fn warn(&mut self, text: impl Into<String>) {
        self.notify(text, ToastVariant::Warning);
    }

    pub(crate) fn fail(&mut self, text: impl Into<String>) {
        self.notify(text, ToastVariant::Error);
    }

    /// Returns the id of the session on the screen.
    pub(crate) fn session_id(&self) -> Option<&SessionId> {
        match &self.route {
            Route::Home => None,
            Route::Session(id) => Some(id),
        }
    }

    pub(crate) fn session(&self) -> Option<&Session> {
        self.mirror.sessions.get(self.session_id()?)
    }

    /// Whether the session on the screen is busy.
    pub(crate) fn is_busy(&self) -> bool {
        self.session_id().is_some_and(|id| self.mirror.is_busy(id))
    }

    /// Returns the agents that a user can prompt.
    pub(crate) fn primary_agents(&self) -> Vec<&Agent> {
        let agents = self.mirror.agents.iter();
        agents.filter(|agent| agent.mode != "subagent" && !agent.hidden).collect()
    }

    /// Returns the agent for the next prompt.
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

    /// Returns the model for the next prompt.
    pub(crate) fn model(&self) -> Option<(String, String)> {
        let exists = |model: &(String, String)| self.mirror.model(&model.0, &model.1).is_some();
        let existing = |text: Option<&str>| parse_model(text).filter(exists);
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
        let recent = || self.local.recent.iter().find_map(|model| existing(Some(model)));
        self.choice
            .model
            .clone()
            .filter(exists)
            .or_else(of_agent)
            .or_else(of_session)
            .or_else(|| existing(self.mirror.config["model"].as_str()))
            .or_else(recent)
            .or_else(|| self.default_model())
    }

    /// Returns the last prompt of the session on the screen.
    ///
    /// A fork has no agent and no model until its first prompt, so those of the last prompt are used.
    fn last_prompt(&self) -> Option<&UserMessage> {
        let transcript = self.mirror.transcripts.get(self.session_id()?)?;
        transcript.entries.iter().rev().find_map(|entry| match &entry.info {
            Message::User(prompt) => Some(prompt),
            Message::Assistant(_) => None,
        })
    }

    fn default_model(&self) -> Option<(String, String)> {
        if let Some(model) = &self.mirror.server_model {
            return model.clone();
        }
        // Servers of other programs only name a default of each provider.
        self.mirror.providers.iter().filter(|provider| !provider.is_public).find_map(|provider| {
            let default = self.mirror.defaults.get(&provider.id);
            let model = provider.models.iter().find(|model| Some(&model.id) == default)?;
            Some((provider.id.clone(), model.id.clone()))
        })
    }

    /// Returns the model variant for the next prompt.
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

    /// Chooses a model and adds it to the recent models.
    pub(crate) fn choose_model(&mut self, provider: &str, model: &str) {
        let name = format!("{provider}/{model}");
        self.local.recent.retain(|known| *known != name);
        self.local.recent.insert(0, name);
        self.local.recent.truncate(MAX_RECENT);
        self.choice.model = Some((provider.to_owned(), model.to_owned()));
        self.choice.variant = None;
    }

    /// Returns the directories whose files can be opened.
    pub(crate) fn roots(&self) -> Roots {
        let directory = self.session().map_or(&self.mirror.directory, |session| &session.directory);
        Roots { directory: directory.clone(), worktree: self.mirror.worktree.clone() }
    }

    /// Returns the settings for drawing messages at a width.
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
                folds: self.options.mini.is_none(),
            },
            expanded: &self.expanded,
            generation: self.generation,
        }
    }

    /// Records that a session is prompted here.
    pub(crate) fn mark_prompted(&mut self, id: &SessionId) {
        self.prompted.retain(|known| known != id);
        self.prompted.push(id.clone());
        if self.prompted.len() > MAX_PROMPTED {
            self.prompted.remove(0);
        }
    }

    /// Whether a session was prompted here, or was started by such a session.
    pub(crate) fn is_prompted_here(&self, id: &SessionId) -> bool {
        self.prompted.iter().any(|root| self.mirror.is_below(id, root))
    }

    /// Returns the automatic approvals of requests by the permission mode.
    pub(crate) fn auto_approvals<'a>(
        &self,
        requests: impl IntoIterator<Item = &'a PermissionRequest>,
    ) -> Vec<Cmd> {
        let allowed = requests.into_iter().filter(|request| permission_mode::accepts(self, request));
        let answer = PermissionAnswer { automatic: true, ..PermissionReply::Once.into() };
        allowed.map(|request| Cmd::Permission { id: request.id.clone(), answer: answer.clone() }).collect()
    }

    /// Whether the screen has an animation.
    pub(crate) fn is_animated(&self) -> bool {
        // A session that waits for the user does nothing else.
        self.is_busy() && self.requests.permission.is_none() && self.requests.question.is_none()
    }

    /// Returns the time of the next change of the screen that time causes.
    pub(crate) fn next_change(&self) -> Option<u64> {
        let notes = self.notes.iter().map(|note| note.until);
        let waits = [self.leader, self.interrupt, self.leaving].into_iter().flatten();
        let work = self.search.as_ref().is_some_and(Search::is_running).then_some(self.now + 1);
        let drag = self.selection.as_ref().is_some_and(|selection| selection.pull.is_some());
        let drag = drag.then_some(self.now + crate::selection::PULL_MILLIS);
        let animation = self.is_animated().then_some(self.now + 80);
        notes.chain(waits).chain(work).chain(drag).chain(animation).min()
    }

    /// Returns the choices to store for the next start.
    pub(crate) fn saved_choices(&self) -> Value {
        serde_json::to_value(&self.local).unwrap_or_default()
    }
}

/// Splits `provider/model`. The id of a model may contain slashes.
pub(crate) fn parse_model(text: Option<&str>) -> Option<(String, String)> {
    let (provider, model) = text?.split_once('/')?;
    Some((provider.to_owned(), model.to_owned()))
}
