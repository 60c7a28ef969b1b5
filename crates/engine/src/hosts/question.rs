//! The questions of one command about hosts.
//!
//! A reply of "once" or "reject" holds for all connections of the command to the same host. A rejection also holds for
//! the later commands of the session until the next prompt. A program cannot flood the user: the number of questions is
//! limited, and hosts beyond it are refused.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use codewright_proto::Action;
use codewright_proxy::Target;
use codewright_tools::Ask;
use codewright_workspace::RefusedHost;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::judge::PERMISSION;
use super::origin::{Origin, Reason, User};
use super::table::Open;
use crate::permission::gate::{Asker, Verdict};

/// The number of hosts that one command asks about.
const MAX_ASKED: usize = 32;
/// The number of rejections after which a command asks no more.
const MAX_REJECTED: usize = 4;
/// The time in which a user must reply. The command's own time limit still holds.
const QUESTION_DEADLINE: Duration = Duration::from_secs(10 * 60);
/// The number of refused hosts that are recorded.
const MAX_NOTED: usize = 20;
/// The longest command that a question shows.
const MAX_COMMAND_CHARS: usize = 4000;

/// The outcome of a question, once there is one.
type Outcome = Option<Result<(), Reason>>;

/// The questions of one command.
pub(super) struct Questions {
    state: Mutex<State>,
    cancel: CancellationToken,
}

#[derive(Default)]
struct State {
    asked: HashMap<String, watch::Receiver<Outcome>>,
    refused: Vec<RefusedHost>,
}

impl Questions {
    /// No questions yet. `cancel` withdraws them.
    pub(super) fn new(cancel: CancellationToken) -> Self {
        Self { state: Mutex::default(), cancel }
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

    /// Waits until the rules or the user permit a target.
    pub(super) async fn permit(&self, origin: &Origin, target: &Target) -> Result<(), Reason> {
        let host = target.to_string();
        let connection = Ask::new(PERMISSION, vec![host.clone()]);
        let judged = origin.inner.gate.judge(&origin.rules, &origin.instance, &connection).await;
        match judged {
            Ok(Action::Allow) => Ok(()),
            Ok(Action::Deny) => Err(Reason::Denied),
            Ok(Action::Ask) if origin.granted.contains(&host) => Ok(()),
            Ok(Action::Ask) => {
                let mut outcome = self.question(origin, target, &host)?;
                let outcome = outcome.wait_for(Option::is_some).await;
                // The sender is gone if the proxy has ended.
                outcome.ok().and_then(|outcome| outcome.clone()).unwrap_or(Err(Reason::Unanswered))
            }
            Err(error) => Err(Reason::Failed(error.to_string())),
        }
    }

    /// Returns the question about a host, which may exist already.
    fn question(
        &self,
        origin: &Origin,
        target: &Target,
        host: &str,
    ) -> Result<watch::Receiver<Outcome>, Reason> {
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
        if state.asked.len() >= MAX_ASKED || state.asked.values().filter(is_rejection).count() >= MAX_REJECTED
        {
            return Err(Reason::TooMany);
        }
        let open = hosts.open(session).ok_or(Reason::TooMany)?;
        let (sender, receiver) = watch::channel(None);
        state.asked.insert(host.to_owned(), receiver.clone());
        let asking = Asking {
            origin: origin.clone(),
            ask: ask(origin, target),
            host: host.to_owned(),
            cancel: self.cancel.child_token(),
            sender,
            _open: open,
        };
        origin.inner.tasks.spawn(asking.run());
        Ok(receiver)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Every change is one insertion, so a poisoned state is consistent.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn ask(origin: &Origin, target: &Target) -> Ask {
    let mut ask = Ask::new(PERMISSION, vec![target.to_string()]);
    ask.always = ask.patterns.clone();
    let command: String = origin.command.chars().take(MAX_COMMAND_CHARS).collect();
    ask.with("command", command).with("host", target.host()).with("port", target.port())
}

/// A question until its reply.
struct Asking {
    origin: Origin,
    ask: Ask,
    host: String,
    cancel: CancellationToken,
    sender: watch::Sender<Outcome>,
    _open: Open,
}

impl Asking {
    async fn run(self) {
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
}
