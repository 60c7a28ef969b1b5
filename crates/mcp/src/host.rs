//! The program around the servers: it starts processes, opens connections and talks to the user.

use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

use codewright_workspace::Command;
use url::Url;

use crate::auth::Web;
use crate::config::Local;
use crate::handler::{ElicitReply, Elicitation};
use crate::sampling::{Sampled, Sampling};

/// A future of the host.
pub type Boxed<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Does what servers need from the program.
pub trait Host: Send + Sync + 'static {
    /// The command that starts a server, with its sandbox. May block for some seconds.
    ///
    /// # Errors
    ///
    /// Fails with a sentence if the server must not be started.
    fn command(&self, server: &str, local: &Local, of_repository: bool) -> Result<Command, String>;
    /// A sentence about what a server may not do, and what would permit it. `None` if it has the rights of the user.
    fn limits(&self, local: &Local, of_repository: bool) -> Option<String>;
    /// The HTTP client for an address. May block.
    ///
    /// # Errors
    ///
    /// Fails with a sentence if the network is not configured correctly.
    fn http(&self, url: &Url) -> Result<reqwest::Client, String>;
    /// The token for requests to a remote server, renewed if necessary. It is never `rejected`, which the server did not
    /// accept.
    ///
    /// # Errors
    ///
    /// Fails with a sentence if the token cannot be renewed now.
    fn token<'a>(
        &'a self,
        server: &'a str,
        url: &'a Url,
        rejected: Option<&'a str>,
    ) -> Boxed<'a, Result<Option<String>, String>>;
    /// Sends the requests of sign-ins.
    fn web(&self) -> Arc<dyn Web>;
    /// The directories that servers may work in.
    fn roots(&self) -> Vec<PathBuf>;
    /// Name and version of the program.
    fn client(&self) -> (String, String);
    /// The tools of a server changed, or its connection began or ended.
    fn tools_changed(&self, server: &str);
    /// A text of a server for the model, in which nothing looks like a text of the program.
    fn neutral(&self, text: &str) -> String;
    /// Stores a line about a server in the log.
    fn log(&self, server: &str, text: &str);
    /// Asks the user for values that a server needs. Returns `None` without a user.
    fn elicit<'a>(&'a self, server: &'a str, asked: Elicitation) -> Boxed<'a, ElicitReply>;
    /// Has the model write an answer for a server, if the user agrees.
    ///
    /// # Errors
    ///
    /// Fails with a reason for the server.
    fn sample<'a>(&'a self, server: &'a str, wanted: Sampling) -> Boxed<'a, Result<Sampled, String>>;
}
