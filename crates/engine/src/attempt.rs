//! Sign-ins that go on by themselves, for clients that look now and then how far they are.
//!
//! An attempt has a task, which waits for the user and stores what the sign-in gives. It is over after ten
//! minutes at the latest, and what became of it is told until then. A provider has one attempt at a time.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use codewright_llm::oauth::methods;
use codewright_proto::AttemptId;
use tokio::sync::{oneshot, watch};
use tokio_util::sync::CancellationToken;

use crate::credential::{check_label, labelled, method_id, told};
use crate::error::Resource;
use crate::{Engine, Error};

/// How long an attempt may take, and how long it is told what became of it.
const LIFE: Duration = Duration::from_secs(10 * 60);
/// Attempts that are known; the oldest is given up for another.
const MAX_ATTEMPTS: usize = 32;

/// How far an attempt is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Progress {
    /// It waits for the user.
    Pending,
    /// The credential is stored.
    Complete,
    /// The user or the server refused, and why.
    Failed(String),
    /// Time was up.
    Expired,
}

/// An attempt as clients see it.
#[derive(Debug, Clone)]
pub struct Attempt {
    /// Its name.
    pub id: AttemptId,
    /// What the user opens.
    pub url: String,
    /// What the user does there.
    pub instructions: String,
    /// Whether it ends by itself; otherwise the user brings a code back.
    pub is_automatic: bool,
    /// When it was begun and when its time is up, in milliseconds since 1970.
    pub created: u64,
    /// When its time is up, in milliseconds since 1970.
    pub expires: u64,
}

/// The attempts of a process, oldest first.
#[derive(Default)]
pub(crate) struct Attempts(Mutex<Vec<Known>>);

struct Known {
    provider: String,
    attempt: Attempt,
    progress: watch::Receiver<Progress>,
    code: Option<oneshot::Sender<String>>,
    cancel: CancellationToken,
}

impl Attempts {
    fn lock(&self) -> MutexGuard<'_, Vec<Known>> {
        // Every change of the list is one call, so a poisoned list is whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives up those that are to go; they have ended, and let go of their ports, when this returns.
    pub(crate) async fn give_up(&self, is_to_go: impl Fn(&str, &Attempt) -> bool) {
        let gone: Vec<Known> =
            self.lock().extract_if(.., |known| is_to_go(&known.provider, &known.attempt)).collect();
        for Known { cancel, mut progress, .. } in gone {
            cancel.cancel();
            // One whose task is gone already has nothing left to let go of.
            drop(progress.wait_for(|progress| *progress != Progress::Pending).await);
        }
    }
}

impl Engine {
    /// Begins a sign-in that goes on by itself; `method` is one of [`method_id`] or its place.
    pub async fn begin_attempt(
        &self,
        provider: &str,
        method: &str,
        inputs: &BTreeMap<String, String>,
        label: Option<String>,
    ) -> Result<Attempt, Error> {
        let inner = &self.0;
        // A user who has signed in must not hear then that it was for nothing.
        label.as_deref().map_or(Ok(()), check_label)?;
        let is_it = |at: &usize| method_id(provider, *at) == method || at.to_string() == method;
        let at = (0..methods(provider).len()).find(is_it).ok_or_else(|| {
            Error::invalid(format!("the provider `{provider}` has no sign-in method `{method}`"))
        })?;
        let now = inner.clock.now_ms();
        // An older one may hold the port that the new one needs.
        inner.attempts.give_up(|of, attempt| of == provider || attempt.expires <= now).await;
        inner.sign_ins.forget(provider);
        let begun = inner.sign_in.begin(provider, at, inputs).await.map_err(told)?;
        let attempt = Attempt {
            id: inner.ids.attempt(),
            url: begun.url.clone(),
            instructions: begun.instructions.clone(),
            is_automatic: begun.is_automatic,
            created: now,
            expires: now.saturating_add(LIFE.as_millis() as u64),
        };
        let (tell, progress) = watch::channel(Progress::Pending);
        let (code, brought) = oneshot::channel();
        let cancel = inner.cancel.child_token();
        let work = {
            let (engine, provider) = (self.clone(), provider.to_owned());
            async move {
                let pasted = async {
                    match brought.await {
                        Ok(code) => code,
                        Err(_) => std::future::pending().await,
                    }
                };
                let credential = engine.0.sign_in.finish(begun, pasted).await.map_err(told)?;
                engine.store_credential(&provider, labelled(credential, label.as_deref())?).await
            }
        };
        let until = cancel.clone();
        inner.tasks.spawn(async move {
            let ended = until.run_until_cancelled(tokio::time::timeout(LIFE, work)).await;
            let progress = match ended {
                Some(Ok(Ok(()))) => Progress::Complete,
                Some(Ok(Err(error))) => Progress::Failed(error.to_string()),
                Some(Err(_)) | None => Progress::Expired,
            };
            // Nobody may know of it any more.
            drop(tell.send(progress));
        });
        let known = Known {
            provider: provider.to_owned(),
            attempt: attempt.clone(),
            progress,
            code: Some(code),
            cancel,
        };
        let mut all = inner.attempts.lock();
        if all.len() >= MAX_ATTEMPTS {
            all.remove(0).cancel.cancel();
        }
        all.push(known);
        Ok(attempt)
    }

    /// An attempt and how far it is.
    pub fn attempt(&self, id: &str) -> Result<(Attempt, Progress), Error> {
        let now = self.0.clock.now_ms();
        let all = self.0.attempts.lock();
        let known = all.iter().find(|known| known.attempt.id.as_str() == id);
        let known = known.ok_or_else(|| Error::not_found(Resource::Attempt, &id))?;
        let progress = known.progress.borrow().clone();
        let is_late = progress == Progress::Pending && known.attempt.expires <= now;
        Ok((known.attempt.clone(), if is_late { Progress::Expired } else { progress }))
    }

    /// Gives an attempt up; that there is none is no error.
    pub async fn cancel_attempt(&self, id: &str) {
        self.0.attempts.give_up(|_, attempt| attempt.id.as_str() == id).await;
    }

    /// Brings an attempt the code that the user was shown, if there is one, and waits for its end.
    pub async fn complete_attempt(&self, id: &str, code: Option<String>) -> Result<(), Error> {
        let (attempt, _) = self.attempt(id)?;
        let mut progress = {
            let mut all = self.0.attempts.lock();
            let known = all.iter_mut().find(|known| known.attempt.id == attempt.id);
            let known = known.ok_or_else(|| Error::not_found(Resource::Attempt, &id))?;
            if code.is_none() && !attempt.is_automatic && *known.progress.borrow() == Progress::Pending {
                return Err(Error::invalid("`code` is missing: the user has to bring it from the browser"));
            }
            if let (Some(code), Some(bring)) = (code, known.code.take()) {
                // An attempt that is over needs none.
                drop(bring.send(code));
            }
            known.progress.clone()
        };
        let ended = progress.wait_for(|progress| *progress != Progress::Pending).await;
        match ended.map(|ended| ended.clone()) {
            Ok(Progress::Complete) => Ok(()),
            Ok(Progress::Failed(why)) => Err(Error::invalid(why)),
            Ok(Progress::Pending | Progress::Expired) | Err(_) => {
                Err(Error::aborted("the sign-in was given up, or its time is up"))
            }
        }
    }
}
