//! The questions of one command about hosts.
//!
//! A reply of "once" or "reject" holds for all connections of the command to the same host. A rejection also holds for
//! the later commands of the session until the next prompt. A program cannot flood the user: the number of questions is
//! limited, and hosts beyond it are refused. A question that no connection waits for any more is withdrawn.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use codewright_permission::{Ask, Policy};
use codewright_proto::Action;
use codewright_proxy::Target;
use codewright_workspace::RefusedHost;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::judge::PERMISSION;
use super::origin::{Origin, Reason, User};
use super::port::Port;
use super::table::Open;
use crate::permission::gate::{Asker, Verdict};

/// The number of hosts that one command asks about.
const MAX_ASKED: usize = 32;
/// The number of rejections after which a command asks no more.
const MAX_REJECTED: usize = 4;
/// The time in which a user must reply. The command's own time limit still holds.
const QUESTION_DEADLINE: Duration = Duration::from_secs(10 * 60);
/// The time in which a command may start a server of its own at a port before the user is asked about the port of the
/// machine.
const GRACE: Duration = Duration::from_millis(250);
/// The interval at which a question looks whether a connection still waits for it.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// The number of refused hosts that are recorded.
const MAX_NOTED: usize = 20;
/// The longest command that a question shows.
const MAX_COMMAND_CHARS: usize = 4000;

/// The outcome of a question, once there is one.
type Outcome = Option<Result<(), Reason>>;

/// The questions of one command.
pub(super) struct Questions {
    state: Arc<Mutex<State>>,
    cancel: CancellationToken,
}

#[derive(Default)]
struct State {
    asked: HashMap<String, watch::Receiver<Outcome>>,
    /// The number of questions, with those that were withdrawn.
    begun: usize,
    refused: Vec<RefusedHost>,
}

impl Questions {
    /// No questions yet. `cancel` withdraws them.
    pub(super) fn new(cancel: CancellationToken) -> Self {
        Self { state: Arc::default(), cancel }
    }

    /// The refused hosts, in the order of the first attempt.
    pub(super) fn refused(&self) -> Vec<RefusedHost> {
        self.lock().refused.clone()
    }

    /// Records a refused host.
    pub(super) fn note(&self, refused: RefusedHost) {
        let mut state = self.lock();
        if state.refused.len() < MAX_NOTED && !state.refused.contains(&refused) {
            state.refused.push(refused);
        }
    }

    /// Waits until the rules or the user permit a connection.
    pub(super) async fn permit(&self, origin: &Origin, destination: &Destination) -> Result<(), Reason> {
        let ask = destination.ask(origin);
        match origin.inner.gate.judge(&origin.rules, &origin.instance, &ask).await {
            Ok(judged) => match destination.decide(origin, judged) {
                Action::Allow => Ok(()),
                Action::Deny => Err(Reason::Denied),
                Action::Ask => {
                    let mut outcome = self.question(origin, destination, ask)?;
                    let outcome = outcome.wait_for(Option::is_some).await;
                    // The sender is gone if the proxy has ended.
                    outcome.ok().and_then(|outcome| outcome.clone()).unwrap_or(Err(Reason::Unanswered))
                }
            },
            Err(error) => Err(Reason::Failed(error.to_string())),
        }
    }

    /// Returns the question about a host, which may exist already.
    fn question(
        &self,
        origin: &Origin,
        destination: &Destination,
        ask: Ask,
    ) -> Result<watch::Receiver<Outcome>, Reason> {
        let host = destination.name.as_str();
        let mut state = self.lock();
        if let Some(asked) = state.asked.get(host) {
            return Ok(asked.clone());
        }
        if origin.user == User::Absent {
            return Err(Reason::Unanswered);
        }
        let (hosts, session) = (&origin.inner.hosts, &origin.session_id);
        if hosts.is_rejected(session, host) {
            return Err(Reason::Rejected(None));
        }
        let is_rejection = |asked: &&watch::Receiver<Outcome>| {
            matches!(&*asked.borrow(), Some(Err(Reason::Rejected(_) | Reason::Unanswered)))
        };
        if state.begun >= MAX_ASKED || state.asked.values().filter(is_rejection).count() >= MAX_REJECTED {
            return Err(Reason::TooMany);
        }
        let open = hosts.open(session).ok_or(Reason::TooMany)?;
        let (sender, receiver) = watch::channel(None);
        state.asked.insert(host.to_owned(), receiver.clone());
        state.begun += 1;
        let asking = Asking {
            origin: origin.clone(),
            ask,
            host: host.to_owned(),
            grace: destination.grace,
            cancel: self.cancel.child_token(),
            sender,
            state: Arc::clone(&self.state),
            _open: open,
        };
        origin.inner.tasks.spawn(asking.run());
        Ok(receiver)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Every change is consistent at each step.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a command connects to.
pub(super) struct Destination {
    /// The pattern of the permission.
    name: String,
    /// Other spellings of a port, whose rules count, too.
    spellings: Vec<String>,
    host: String,
    port: u16,
    /// The time before a user is asked.
    grace: Duration,
}

impl Destination {
    /// A host of the internet, or of a private network.
    pub(super) fn host(target: &Target) -> Self {
        let (name, host) = (target.to_string(), target.host());
        Self { name, spellings: Vec::new(), host, port: target.port(), grace: Duration::ZERO }
    }

    /// A port of this machine.
    pub(super) fn port(port: &Port) -> Self {
        let (name, spellings) = (port.name().to_owned(), port.spellings().to_vec());
        Self { name, spellings, host: port.host(), port: port.number(), grace: GRACE }
    }

    fn is_port(&self) -> bool {
        !self.spellings.is_empty()
    }

    /// Returns the permission request. Only exactly the port is granted, because a wildcard for hosts is not about this machine.
    fn ask(&self, origin: &Origin) -> Ask {
        let mut ask = Ask::new(PERMISSION, vec![self.name.clone()]);
        ask.always.clone_from(&ask.patterns);
        let command: String = origin.command.chars().take(MAX_COMMAND_CHARS).collect();
        let ask = ask.with("command", command).with("host", self.host.as_str()).with("port", self.port);
        if self.is_port() { ask.under(Policy::Exact) } else { ask }
    }

    /// Returns the decision, given that about the name of the permission.
    fn decide(&self, origin: &Origin, judged: Action) -> Action {
        let rules = &origin.rules;
        let is_denied = |name: &String| rules.decide(PERMISSION, name) == Action::Deny;
        let is_allowed = |name: &String| rules.decide_exactly(PERMISSION, name) == Action::Allow;
        if self.spellings.iter().any(is_denied) {
            Action::Deny
        } else if judged == Action::Ask
            && (origin.granted.contains(&self.name) || self.spellings.iter().any(is_allowed))
        {
            Action::Allow
        } else {
            judged
        }
    }
}

/// A question until its reply.
struct Asking {
    origin: Origin,
    ask: Ask,
    host: String,
    grace: Duration,
    cancel: CancellationToken,
    sender: watch::Sender<Outcome>,
    state: Arc<Mutex<State>>,
    _open: Open,
}

impl Asking {
    async fn run(self) {
        if !self.grace.is_zero() {
            tokio::time::sleep(self.grace).await;
            if self.is_abandoned() {
                return;
            }
        }
        let Origin { inner, instance, session_id, rules, tool, .. } = &self.origin;
        let asker = Asker {
            held: None,
            hook_id: None,
            session_id,
            instance,
            rules,
            tool: tool.clone(),
            cancel: &self.cancel,
        };
        let check = inner.gate.check(&self.ask, &asker);
        let mut check = std::pin::pin!(check);
        let verdict = tokio::select! {
            verdict = &mut check => verdict,
            () = self.abandoned() => {
                self.cancel.cancel();
                check.await
            }
            () = tokio::time::sleep(QUESTION_DEADLINE) => {
                // The request is withdrawn.
                self.cancel.cancel();
                check.await
            }
        };
        let outcome = match verdict {
            Ok(Verdict::Granted(_)) => Ok(()),
            Ok(Verdict::Denied(_)) => Err(Reason::Denied),
            Ok(Verdict::Rejected(message)) => {
                inner.hosts.reject(session_id, &self.host);
                Err(Reason::Rejected(message))
            }
            Ok(Verdict::Cancelled) => Err(Reason::Unanswered),
            Err(error) => Err(Reason::Failed(error.to_string())),
        };
        self.sender.send_replace(Some(outcome));
    }

    /// Returns once no connection waits for the reply.
    async fn abandoned(&self) {
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            if self.is_abandoned() {
                return;
            }
        }
    }

    /// Forgets the question if no connection waits for it. A later connection asks again.
    fn is_abandoned(&self) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        // One receiver is in the table.
        let is_abandoned = self.sender.receiver_count() <= 1;
        if is_abandoned {
            state.asked.remove(&self.host);
        }
        is_abandoned
    }
}
