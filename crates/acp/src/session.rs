//! A session that an editor has opened.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use codewright_client::Client;
use codewright_proto::{MessageId, PartId, SessionId};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::options::{Choice, Menu};
use crate::update::KnownCall;

/// How long the last updates of a turn may take after its answer.
const CATCH_UP: Duration = Duration::from_secs(2);
/// How many messages, parts and calls of a session are remembered.
const MAX_REMEMBERED: usize = 4096;
/// How many commands of a session can show their output at the same time.
const MAX_TERMINALS: usize = 64;

/// A session that an editor has opened.
pub(crate) struct Session {
    pub(crate) id: SessionId,
    pub(crate) directory: PathBuf,
    pub(crate) client: Client,
    pub(crate) menu: Menu,
    /// Held by the prompt that runs, so that prompts run one after the other.
    pub(crate) turn: tokio::sync::Mutex<()>,
    choice: Mutex<Choice>,
    live: Mutex<Live>,
    completed: Notify,
}

/// What the editor knows of the messages that arrive.
#[derive(Debug, Default)]
pub(crate) struct Live {
    roles: HashMap<MessageId, Role>,
    /// How much of a text the editor has.
    texts: HashMap<PartId, Text>,
    calls: HashMap<String, KnownCall>,
    /// The output of commands that the editor shows like that of a terminal.
    terminals: HashMap<String, String>,
    completed: HashSet<MessageId>,
    /// The files that the turn of the editor changed.
    changed: BTreeSet<PathBuf>,
    /// Those of them that its calls have shown.
    shown: BTreeSet<PathBuf>,
    pub(crate) title: String,
    /// Cancels the prompt of the editor that runs.
    pub(crate) cancel: Option<CancellationToken>,
}

/// The author of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// A user with another client.
    OtherUser,
    Agent,
}

/// A text that grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Text {
    pub(crate) is_reasoning: bool,
    /// How many bytes the editor has.
    pub(crate) sent: usize,
}

impl Live {
    /// Remembers the author of a message.
    pub(crate) fn author(&mut self, message: &MessageId, role: Role) {
        make_room(&mut self.roles);
        self.roles.insert(message.clone(), role);
    }

    pub(crate) fn role(&self, message: &MessageId) -> Option<Role> {
        self.roles.get(message).copied()
    }

    /// The state of a growing text.
    pub(crate) fn text(&mut self, part: &PartId, is_reasoning: bool) -> &mut Text {
        if !self.texts.contains_key(part) {
            make_room(&mut self.texts);
        }
        self.texts.entry(part.clone()).or_insert(Text { is_reasoning, sent: 0 })
    }

    /// The state of a text that has begun.
    pub(crate) fn begun(&mut self, part: &PartId) -> Option<&mut Text> {
        self.texts.get_mut(part)
    }

    /// Remembers a call. Returns whether the editor does not know it yet.
    pub(crate) fn call(&mut self, call: KnownCall) -> bool {
        make_room(&mut self.calls);
        self.calls.insert(call.id.clone(), call).is_none()
    }

    /// The output of a command that the editor has.
    pub(crate) fn terminal(&mut self, id: &str) -> &mut String {
        if self.terminals.len() >= MAX_TERMINALS && !self.terminals.contains_key(id) {
            self.terminals.clear();
        }
        self.terminals.entry(id.to_owned()).or_default()
    }

    /// Forgets the changes of the turn before.
    pub(crate) fn begin_turn(&mut self, cancel: CancellationToken) {
        self.changed.clear();
        self.shown.clear();
        self.cancel = Some(cancel);
    }

    /// Remembers files that a step changed. Those beyond the limit are left out.
    pub(crate) fn changed(&mut self, files: impl Iterator<Item = PathBuf>) {
        let room = MAX_REMEMBERED.saturating_sub(self.changed.len());
        self.changed.extend(files.take(room));
    }

    /// Remembers files whose changes a call has shown.
    pub(crate) fn shown(&mut self, files: impl Iterator<Item = PathBuf>) {
        let room = MAX_REMEMBERED.saturating_sub(self.shown.len());
        self.shown.extend(files.take(room));
    }

    /// The changed files that no call has shown.
    pub(crate) fn unshown(&self) -> Vec<PathBuf> {
        self.changed.difference(&self.shown).cloned().collect()
    }

    pub(crate) fn known_call(&self, id: &str) -> Option<KnownCall> {
        self.calls.get(id).cloned()
    }
}

/// Forgets everything if too much is remembered. What arrives later for it is left out, not wrong.
fn make_room<K, V>(map: &mut HashMap<K, V>) {
    if map.len() >= MAX_REMEMBERED {
        map.clear();
    }
}

impl Session {
    pub(crate) fn new(session: &codewright_proto::Session, client: Client, menu: Menu) -> Arc<Self> {
        Arc::new(Self {
            id: session.id.clone(),
            directory: session.directory.clone().into(),
            client,
            menu,
            turn: tokio::sync::Mutex::default(),
            choice: Mutex::new(Choice::of(session)),
            live: Mutex::new(Live { title: session.title.clone(), ..Live::default() }),
            completed: Notify::new(),
        })
    }

    pub(crate) fn live(&self) -> MutexGuard<'_, Live> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn choice(&self) -> Choice {
        self.choice.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Sets an option.
    ///
    /// # Errors
    ///
    /// Fails with a sentence if there is no such option or value.
    pub(crate) fn choose(&self, option: &str, value: &str) -> Result<(), String> {
        let mut choice = self.choice.lock().unwrap_or_else(PoisonError::into_inner);
        self.menu.set(&mut choice, option, value)
    }

    /// Cancels the prompt that runs.
    pub(crate) fn cancel(&self) {
        if let Some(cancel) = &self.live().cancel {
            cancel.cancel();
        }
    }

    /// Notes that all updates of a message were sent.
    pub(crate) fn complete(&self, message: &MessageId) {
        let mut live = self.live();
        if live.completed.len() >= MAX_REMEMBERED {
            live.completed.clear();
        }
        live.completed.insert(message.clone());
        drop(live);
        self.completed.notify_waiters();
    }

    /// Waits until all updates of a message were sent, but not long.
    pub(crate) async fn caught_up(&self, message: &MessageId) {
        let completed = async {
            loop {
                let mut notified = std::pin::pin!(self.completed.notified());
                notified.as_mut().enable();
                if self.live().completed.contains(message) {
                    return;
                }
                notified.await;
            }
        };
        // The answer is not held back if an event is missing.
        drop(tokio::time::timeout(CATCH_UP, completed).await);
    }
}
