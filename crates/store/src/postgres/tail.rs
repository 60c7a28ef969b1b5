//! Follows the log: announces other processes' events to the feed, delivers stop requests, and sends the heartbeat of a
//! process that owns sessions.
//!
//! The head of the log is one row that every writer locks until it commits, so a position that is visible means that
//! every earlier event is visible too; transactions cannot commit out of order. Notifications are only a hint to look
//! at once. The head is read every second anyway, and more often if notifications do not arrive, as behind some
//! connection pools.

use std::sync::Arc;
use std::time::{Duration, Instant};

use codewright_proto::Clock;
use tokio::runtime::Handle;
use tokio::sync::{Notify, watch};
use tokio::time::timeout;

use super::address::Address;
use super::fault::Fault;
use super::lease::{self, HEARTBEAT};
use super::link::Link;
use crate::feed::Feed;
use crate::node::Node;

/// The position of the last event, and the time of the database.
pub(super) const HEAD: &str =
    "SELECT position, (extract(epoch FROM clock_timestamp()) * 1000)::bigint FROM store_head";

/// The shortest time between two looks.
const GAP: Duration = Duration::from_millis(10);

/// The time between two looks if notifications do not arrive.
const SILENT: Duration = Duration::from_millis(100);

/// How many events must be found without a notification until looks are more frequent.
const MAX_SILENCES: u32 = 2;

/// The limit of a look, after which the connection is replaced.
const LOOK_TIMEOUT: Duration = Duration::from_secs(2);

/// The longest time until an answer from which the clock is set. A late one is about the past.
const TIMELY: Duration = Duration::from_millis(100);

/// The pause after a failed look.
const PAUSE: Duration = Duration::from_millis(500);

pub(super) struct Tail {
    pub(super) address: Address,
    pub(super) feed: Arc<Feed>,
    pub(super) node: Arc<Node>,
    /// Follows the clock of the database.
    pub(super) clock: Clock,
    /// Closed when the store ends.
    pub(super) end: watch::Receiver<()>,
}

impl Tail {
    /// Follows the log until the store ends.
    pub(super) async fn run(self) {
        let mut end = self.end.clone();
        let heard = Arc::clone(&self.node.hint);
        let mut link = None;
        let mut last_heartbeat = None;
        let (mut was_heard, mut silences) = (true, 0);
        loop {
            let looked = tokio::select! {
                _ = end.changed() => return,
                looked = timeout(LOOK_TIMEOUT, self.look(&mut link, &heard, &mut last_heartbeat)) => looked,
            };
            let pause = match looked.unwrap_or(Err(Fault::Silent)) {
                Ok(is_new) => {
                    if is_new && !was_heard {
                        silences += 1;
                    }
                    if silences >= MAX_SILENCES { SILENT } else { HEARTBEAT }
                }
                Err(_) => {
                    link = None;
                    PAUSE
                }
            };
            tokio::select! {
                _ = end.changed() => return,
                () = tokio::time::sleep(GAP) => {}
            }
            tokio::select! {
                _ = end.changed() => return,
                () = heard.notified() => was_heard = true,
                () = tokio::time::sleep(pause) => was_heard = false,
            }
        }
    }

    /// Announces new events, delivers stop requests and sends the heartbeat. Returns whether other processes have stored
    /// events.
    async fn look(
        &self,
        link: &mut Option<Link>,
        heard: &Arc<Notify>,
        last_heartbeat: &mut Option<Instant>,
    ) -> Result<bool, Fault> {
        let link = match link {
            Some(link) => link,
            empty => {
                let own = self.node.existing_name().unwrap_or_default();
                let opened =
                    Link::open(&self.address, &Handle::current(), Some((own, Arc::clone(heard)))).await?;
                opened.batch("LISTEN codewright_store").await?;
                empty.insert(opened)
            }
        };
        let (member, is_new) = self.node.announced();
        let holds_any = self.node.holds_any();
        let is_alive = (holds_any || member.is_some()) && !self.node.is_sealed();
        let is_due = is_new || last_heartbeat.is_none_or(|last| last.elapsed() >= HEARTBEAT / 2);
        if is_alive && is_due {
            lease::send_heartbeat(link, &self.node).await?;
            *last_heartbeat = Some(Instant::now());
        }
        if holds_any {
            lease::deliver_stop_requests(link, &self.node).await?;
        }
        let asked = Instant::now();
        let Some(row) = link.row(HEAD, &[]).await? else { return Ok(false) };
        let position = row.get::<_, i64>(0).unsigned_abs();
        if asked.elapsed() < TIMELY {
            self.clock.follow(row.get::<_, i64>(1).unsigned_abs());
        }
        let is_new = position > self.feed.last_position();
        self.feed.advance_to(position);
        Ok(is_new)
    }
}
