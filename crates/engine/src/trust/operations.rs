//! Storing the user's decisions about directories.

use std::collections::BTreeMap;
use std::path::Path;

use codewright_config::path_key;
use codewright_proto::{
    Signal, TrustChoice, TrustDismissal, TrustInput, TrustRecord, TrustReply, TrustStatus,
};

use super::decisions::Decision;
use super::{STALE, Standing, owner};
use crate::Error;
use crate::inner::Inner;
use crate::instance::Instance;
use crate::interface::Trust;

impl Trust<'_> {
    /// Returns the trust of a directory.
    #[must_use]
    pub fn of(self, instance: &Instance) -> TrustReply {
        instance.trust.reply()
    }

    /// Returns one sentence about the parts of a directory's configuration that wait for trust; `None` if all parts
    /// apply.
    #[must_use]
    pub fn notice(self, instance: &Instance) -> Option<String> {
        instance.trust.notice()
    }

    /// Records that the user saw the question about a directory and did not decide. No session of this process repeats it for
    /// these control files again.
    ///
    /// # Errors
    ///
    /// Fails if the control files are not those that the user was shown.
    pub fn dismiss(self, instance: &Instance, dismissal: &TrustDismissal) -> Result<(), Error> {
        if instance.trust.fingerprint != dismissal.fingerprint {
            return Err(Error::stale(STALE));
        }
        self.0.trust.dismiss(&instance.trust);
        self.0.trust.settle(&instance.trust.root);
        Ok(())
    }

    /// Returns the stored decisions, newest first.
    pub fn decisions(self) -> Result<Vec<TrustRecord>, Error> {
        self.0.trust.decisions.list()
    }

    /// Removes the decision about a directory. Returns whether it existed.
    pub async fn remove(self, path: &str) -> Result<bool, Error> {
        let removed = self.0.trust.decisions.remove(path).await?;
        self.0.forget_instances().await;
        self.0.store.signal(Signal::GlobalDisposed {});
        Ok(removed)
    }

    /// Stores the user's decision about a directory, which is opened from scratch afterwards.
    ///
    /// # Errors
    ///
    /// Fails if the control files are not those that the user was shown, or if the decision cannot be stored.
    pub async fn decide(self, instance: &Instance, input: TrustInput) -> Result<TrustReply, Error> {
        decide(self.0, instance, input).await
    }
}

/// Stores the user's decision about a directory, which is opened from scratch afterwards.
///
/// # Errors
///
/// Fails if the control files are not those that the user was shown, or if the decision cannot be stored.
pub(crate) async fn decide(
    inner: &Inner,
    instance: &Instance,
    input: TrustInput,
) -> Result<TrustReply, Error> {
    // The files may have changed since the directory was opened.
    inner.forget_instance(&instance.directory).await;
    let instance = inner.instance(&instance.directory).await?;
    let standing = &instance.trust;
    if standing.fingerprint != input.fingerprint {
        return Err(Error::stale(STALE));
    }
    if let (TrustChoice::Trust, Some(limit)) = (input.decision, &standing.limit) {
        return Err(Error::invalid(format!("`{}` cannot be trusted: {limit}", standing.root.display())));
    }
    let decision = Decision {
        path: path_key(&standing.root),
        exact: true,
        uid: owner(&standing.root),
        decision: input.decision,
        time: inner.clock.now_ms(),
        files: standing.files.clone(),
        requests: standing.requests.iter().map(|request| request.text.clone()).collect(),
    };
    inner.trust.decisions.add(decision).await?;
    // Running work keeps the old configuration until its next step.
    inner.forget_instance(&instance.directory).await;
    inner.store.signal(Signal::InstanceDisposed { directory: instance.path().directory });
    inner.trust.settle(&standing.root);
    Ok(inner.instance(&instance.directory).await?.trust.reply())
}

/// Keeps a directory trusted after its user has changed one of its control files through this program.
pub(crate) async fn keep(inner: &Inner, before: &Instance, changed: &Path) -> Result<(), Error> {
    let had_trust = matches!(before.trust.status, TrustStatus::Trusted | TrustStatus::Unneeded);
    let instance = inner.instance(&before.directory).await?;
    let own = path_key(changed.strip_prefix(&instance.trust.root).unwrap_or(changed));
    let others = |standing: &Standing| -> BTreeMap<String, String> {
        // Git's files are read only if there is something to decide.
        let is_other = |path: &&String| **path != own && !path.starts_with(".git/") && *path != ".gitmodules";
        let files = standing.files.iter().filter(|(path, _)| is_other(path));
        files.map(|(path, digest)| (path.clone(), digest.clone())).collect()
    };
    let is_only_change = others(&before.trust) == others(&instance.trust);
    if had_trust && is_only_change && instance.trust.status == TrustStatus::Undecided {
        let fingerprint = instance.trust.fingerprint.clone();
        let input = TrustInput { decision: TrustChoice::Trust, fingerprint };
        decide(inner, &instance, input).await?;
    }
    Ok(())
}
