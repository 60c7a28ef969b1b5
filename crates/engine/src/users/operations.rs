//! Users' operations: sharing a session, usage, and the audit log.

use std::collections::BTreeMap;
use std::time::Duration;

use codewright_proto::{Session, SessionAccess, SessionId, ShareMode};
use codewright_store::{Account, Audited, Usage, day_of};

use super::Quotas;
use crate::Error;
use crate::interface::Users;

impl Users<'_> {
    /// Sets the quotas of this process. The first call counts.
    pub fn set_quotas(self, quotas: Quotas) {
        self.0.quotas.quotas.get_or_init(|| quotas);
    }

    /// Returns the quotas, if there are any.
    #[must_use]
    pub fn quotas(self) -> Option<Quotas> {
        self.0.quotas.quotas.get().cloned()
    }

    /// Returns what an account has used today.
    pub async fn usage(self, account: Account) -> Result<Usage, Error> {
        Ok(self.0.store.usage(account, day_of(self.0.clock.now_ms())).await?)
    }

    /// Returns the number of an account's sessions that work, in any process.
    pub async fn running(self, account: Account) -> Result<usize, Error> {
        Ok(self.0.store.running(account).await?.len())
    }

    /// Replaces the teams that a session is shared with. A session without an owner gets one.
    pub async fn share(
        self,
        id: &SessionId,
        owner: &str,
        shared: BTreeMap<String, ShareMode>,
    ) -> Result<Session, Error> {
        let changed = self.0.update_session(id, |session| {
            let access = session
                .access
                .get_or_insert_with(|| SessionAccess { owner: owner.to_owned(), ..SessionAccess::default() });
            access.shared.clone_from(&shared);
        });
        changed.await
    }

    /// Downloads a text of an identity provider.
    pub async fn fetch(self, url: &str, limit_bytes: usize, deadline: Duration) -> Result<String, Error> {
        Ok(codewright_llm::fetch(&self.0.llm, url, limit_bytes, deadline).await?)
    }

    /// Adds an entry to the audit log. The time is set here.
    pub async fn audit(self, entry: Audited) -> Result<(), Error> {
        Ok(self.0.store.audit(Audited { time: self.0.clock.now_ms(), ..entry }).await?)
    }

    /// Returns the newest entries of the audit log before one, newest first.
    pub async fn audited(self, before: Option<u64>, limit: usize) -> Result<Vec<Audited>, Error> {
        Ok(self.0.store.audited(before, limit).await?)
    }
}
