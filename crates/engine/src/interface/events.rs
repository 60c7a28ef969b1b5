//! Reading stored events and following new ones.

use std::collections::HashMap;

use codewright_proto::{Envelope, MessageId, Session, SessionId, Signal};
use codewright_store::{Incoming, Logged, PageLimit, Subscription};

use super::Events;
use crate::Error;
use crate::inner::Inner;
use crate::instance::head;
use crate::instance::watcher::Watching;

/// A follower of events, until this value is dropped.
pub struct Following {
    _heads: head::Following,
    _files: Watching,
}

impl Events<'_> {
    /// Subscribes to all new events.
    #[must_use]
    pub fn subscribe(self) -> Subscription {
        self.0.store.subscribe()
    }

    /// Watches the repositories and files of open directories until the returned value is dropped.
    pub async fn follow(self) -> Following {
        let Inner { instances, store, journal, .. } = &**self.0;
        Following {
            _heads: instances.heads.follow(store).await,
            _files: instances.watchers.follow(store, journal),
        }
    }

    /// Lets followers watch files only if an environment variable asks for it, for a program that ends with its turn.
    pub fn watch_files_on_request(self) {
        self.0.instances.watchers.only_on_request(&self.0.env);
    }

    /// Returns the position of the last event that this process knows.
    #[must_use]
    pub fn last_position(self) -> u64 {
        self.0.store.last_position()
    }

    /// Checks that events can be stored, by a write that changes nothing.
    pub async fn probe(self) -> Result<(), Error> {
        Ok(self.0.store.probe().await?)
    }

    /// Returns stored events after a position, oldest first.
    pub async fn after(self, position: u64, limit: usize) -> Result<Vec<Envelope>, Error> {
        Ok(self.0.store.events(position, limit).await?)
    }

    /// Returns stored events of one session from a `seq` on, oldest first. Large events lead to fewer than `limit`; an
    /// empty list means the end.
    pub async fn of_session(
        self,
        id: &SessionId,
        from_seq: u64,
        limit: usize,
    ) -> Result<Vec<Envelope>, Error> {
        Ok(self.0.store.events_of(id, from_seq, limit).await?)
    }

    /// Returns the `seq` of the first of the last events of a session before `until_seq` that fit into `limit`.
    pub async fn seq_before(self, id: &SessionId, until_seq: u64, limit: PageLimit) -> Result<u64, Error> {
        Ok(self.0.store.seq_before(id, until_seq, limit).await?)
    }

    /// Returns the `seq` of the event that created a message; `None` if the message does not exist.
    pub async fn first_seq(self, id: &SessionId, message: &MessageId) -> Result<Option<u64>, Error> {
        Ok(self.0.store.first_seq(id, message).await?)
    }

    /// Returns a session as it was before a log event.
    pub async fn session_before(self, id: &SessionId, until_seq: u64) -> Result<Option<Session>, Error> {
        Ok(self.0.store.session_before(id, until_seq).await?)
    }

    /// Imports events of another store in order. Known events are skipped.
    pub async fn replay_foreign(self, events: Vec<Incoming>) -> Result<(), Error> {
        use codewright_store::Error as Refused;
        match self.0.store.replay_foreign(events).await {
            Ok(_) => Ok(()),
            Err(
                error @ (Refused::Gap { .. }
                | Refused::Invalid { .. }
                | Refused::IdInUse { .. }
                | Refused::Unknown { .. }
                | Refused::TooLarge { .. }
                | Refused::Unreadable { .. }),
            ) => Err(Error::invalid(error.to_string())),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns a page of the stored events after the known ones, in order.
    pub async fn history(self, known: HashMap<String, u64>) -> Result<Vec<Logged>, Error> {
        Ok(self.0.store.history(known).await?)
    }

    /// Publishes a signal, which is not stored.
    pub fn signal(self, signal: Signal) {
        self.0.store.signal(signal);
    }
}
