//! The event stream of a server.
//!
//! The server sends a heartbeat every ten seconds, so a minute of silence means that the connection is
//! lost and is an error. Dropping the stream closes it.

use std::sync::Arc;
use std::time::Duration;

use codewright_proto::{Fact, Notice, Signal};
use http_body_util::BodyExt;
use tokio::time::timeout;

use crate::Error;
use crate::exchange::Server;
use crate::frames::Frames;
use crate::transport::Body;

/// How long a stream may be silent.
const SILENCE: Duration = Duration::from_secs(60);

/// An open stream of notices.
pub struct Events {
    server: Arc<Server>,
    body: Body,
    frames: Frames,
    position: Option<u64>,
}

impl Events {
    /// Waits for the first event, which shows that the server has subscribed the stream.
    pub(crate) async fn open(server: Arc<Server>, body: Body) -> Result<Self, Error> {
        let mut events = Self { server, body, frames: Frames::default(), position: None };
        match events.next().await? {
            Some(Notice { fact: Fact::Signal(Signal::ServerConnected {}), .. }) => Ok(events),
            Some(_) => Err(events.server.protocol("the event stream does not begin with `server.connected`")),
            None => Err(events.server.protocol("the event stream ended before it began")),
        }
    }

    /// Returns the next notice, or `None` if the server has ended the stream.
    ///
    /// Notices of unknown types are skipped. Cancelling this call loses no notice.
    pub async fn next(&mut self) -> Result<Option<Notice>, Error> {
        loop {
            let pulled = self.frames.pull().map_err(|bad| self.server.protocol(bad.reason()))?;
            if let Some(frame) = pulled {
                self.position = frame.id.and_then(|id| id.parse().ok()).or(self.position);
                match Notice::parse(&frame.data) {
                    Some(notice) => return Ok(Some(notice)),
                    None => continue,
                }
            }
            let arrived =
                timeout(SILENCE, self.body.frame()).await.map_err(|_| self.server.timeout(SILENCE))?;
            match arrived {
                None => return Ok(None),
                Some(Err(source)) => return Err(self.server.unreachable(source)),
                Some(Ok(frame)) => {
                    if let Some(bytes) = frame.data_ref() {
                        self.frames.push(bytes).map_err(|bad| self.server.protocol(bad.reason()))?;
                    }
                }
            }
        }
    }

    /// Returns the position in the event log of the last notice, from which a later stream can continue.
    #[must_use]
    pub fn position(&self) -> Option<u64> {
        self.position
    }
}
