//! The scripted model for tests without a runtime.

use std::io;
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use codewright_scripted::{Error, Recorded, Script, Server};
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

/// A scripted model on its own thread; dropping it stops it.
///
/// Do not call its methods in a runtime: use [`Server`] there.
pub struct BlockingServer {
    server: Arc<Server>,
    runtime: Handle,
    /// Dropped to end the thread.
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl BlockingServer {
    /// Starts on a free port of the loopback address.
    pub fn start(script: Script) -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel();
        let (report, started) = mpsc::sync_channel(1);
        let thread = std::thread::Builder::new().name("scripted-model".to_owned()).spawn(move || {
            runtime.block_on(async move {
                let server = Server::start(script).await.map(Arc::new);
                // `start` waits for this message and then drops the receiver.
                if report.send(server).is_ok() {
                    // The sender is dropped to stop the thread, which is an error here.
                    stopped.await.unwrap_or_default();
                }
            });
        })?;
        let server = started.recv().map_err(io::Error::other)??;
        Ok(Self { server, runtime: handle, stop: Some(stop), thread: Some(thread) })
    }

    /// Returns the address, `http://127.0.0.1:PORT`.
    pub fn url(&self) -> String {
        self.server.url()
    }

    /// Returns the model requests so far, oldest first.
    pub fn requests(&self) -> Vec<Recorded> {
        self.server.requests()
    }

    /// Returns the requests of conversations, without those for titles and summaries.
    pub fn main_requests(&self) -> Vec<Recorded> {
        self.server.main_requests()
    }

    /// Returns the faults of requests that a provider would refuse, and requests to unknown routes.
    pub fn problems(&self) -> Vec<String> {
        self.server.problems()
    }

    /// Waits for the `n`th main request, counted from 1.
    pub fn wait_for_request(&self, n: u64, deadline: Duration) -> Result<Recorded, Error> {
        self.runtime.block_on(self.server.wait_for_request(n, deadline))
    }

    /// Waits until the answer to the `n`th main request, counted from 1, is over.
    pub fn wait_for_end(&self, n: u64, deadline: Duration) -> Result<Recorded, Error> {
        self.runtime.block_on(self.server.wait_for_end(n, deadline))
    }
}

impl Drop for BlockingServer {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic of the thread was printed when it happened.
            thread.join().unwrap_or_default();
        }
    }
}
