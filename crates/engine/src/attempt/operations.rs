//! Starting, completing and cancelling sign-in attempts.

use std::collections::BTreeMap;

use codewright_llm::oauth::methods;
use tokio::sync::{oneshot, watch};

use super::{Attempt, Entry, LIFE, MAX_ATTEMPTS, Progress};
use crate::Error;
use crate::credential::operations::store;
use crate::credential::{check_label, labelled, method_id, user_error};
use crate::error::Resource;
use crate::interface::Providers;

impl Providers<'_> {
    /// Starts a sign-in in the background. `method` is a [`method_id`] or its index.
    pub async fn begin_attempt(
        self,
        provider: &str,
        method: &str,
        inputs: &BTreeMap<String, String>,
        label: Option<String>,
    ) -> Result<Attempt, Error> {
        let inner = self.0;
        // Checked first, so that a user does not sign in in vain.
        label.as_deref().map_or(Ok(()), check_label)?;
        let is_it = |at: &usize| method_id(provider, *at) == method || at.to_string() == method;
        let at = (0..methods(provider).len()).find(is_it).ok_or_else(|| {
            Error::invalid(format!("the provider `{provider}` has no sign-in method `{method}`"))
        })?;
        let now = inner.clock.now_ms();
        // An older attempt may use the same port.
        inner.attempts.give_up(|of, attempt| of == provider || attempt.expires <= now).await;
        inner.sign_ins.forget(provider);
        let begun = inner.sign_in.begin(provider, at, inputs).await.map_err(user_error)?;
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
            let (inner, provider) = (self.0.clone(), provider.to_owned());
            async move {
                let pasted = async {
                    match brought.await {
                        Ok(code) => code,
                        Err(_) => std::future::pending().await,
                    }
                };
                let credential = inner.sign_in.finish(begun, pasted).await.map_err(user_error)?;
                store(&inner, &provider, labelled(credential, label.as_deref())?).await
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
            // The attempt may have been removed.
            drop(tell.send(progress));
        });
        let known = Entry {
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

    /// Returns an attempt with its status.
    pub fn attempt(self, id: &str) -> Result<(Attempt, Progress), Error> {
        let now = self.0.clock.now_ms();
        let all = self.0.attempts.lock();
        let known = all.iter().find(|known| known.attempt.id.as_str() == id);
        let known = known.ok_or_else(|| Error::not_found(Resource::Attempt, &id))?;
        let progress = known.progress.borrow().clone();
        let is_late = progress == Progress::Pending && known.attempt.expires <= now;
        Ok((known.attempt.clone(), if is_late { Progress::Expired } else { progress }))
    }

    /// Cancels an attempt. An unknown attempt is not an error.
    pub async fn cancel_attempt(self, id: &str) {
        self.0.attempts.give_up(|_, attempt| attempt.id.as_str() == id).await;
    }

    /// Sends an attempt the code of the user, if there is one, and waits for its end.
    pub async fn complete_attempt(self, id: &str, code: Option<String>) -> Result<(), Error> {
        let (attempt, _) = self.attempt(id)?;
        let mut progress = {
            let mut all = self.0.attempts.lock();
            let known = all.iter_mut().find(|known| known.attempt.id == attempt.id);
            let known = known.ok_or_else(|| Error::not_found(Resource::Attempt, &id))?;
            if code.is_none() && !attempt.is_automatic && *known.progress.borrow() == Progress::Pending {
                return Err(Error::invalid("`code` is missing: the user has to bring it from the browser"));
            }
            if let (Some(code), Some(bring)) = (code, known.code.take()) {
                // An attempt that has ended needs no code.
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
