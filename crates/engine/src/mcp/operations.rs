//! The operations of clients on MCP servers.

use std::sync::Arc;

use codewright_mcp::auth::{Discovered, SignInRequest, discover};
use codewright_mcp::{Config, Kind, OAuth, Servers, Status};
use codewright_proto::Signal;
use serde_json::{Map, Value, json};

use super::pending::SignIn;
use super::{OpenBrowser, commands, host, sign_in, tokens};
use crate::Error;
use crate::instance::Instance;
use crate::interface::Mcp;

/// The longest name of a server.
const MAX_NAME_BYTES: usize = 200;

/// The page of a sign-in.
#[derive(Debug, Clone)]
pub struct SignInPage {
    /// HTTPS, or on this machine.
    pub url: String,
    /// The value that the redirect contains.
    pub state: String,
    /// Whether a browser on this machine can complete the sign-in. Otherwise the user pastes the URL that it ends at.
    pub listens: bool,
}

/// A server of the configuration.
#[derive(Debug, Clone)]
pub struct ConfiguredServer {
    /// The name of the server.
    pub name: String,
    /// Its address, or its program with arguments.
    pub target: String,
    /// `None` if it cannot have a sign-in.
    pub sign_in: Option<SignInState>,
}

/// The state of a sign-in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SignInState {
    /// There are tokens.
    SignedIn,
    /// There is a token that has expired.
    Expired,
    /// There are no tokens for the address of the server.
    SignedOut,
    /// The file of tokens cannot be read.
    Unreadable(String),
}

impl Mcp<'_> {
    /// Returns the status of each server, after it is connected or has failed.
    pub async fn status(self, instance: &Arc<Instance>) -> Map<String, Value> {
        let Some(servers) = self.settled(instance).await else { return Map::new() };
        servers.statuses().into_iter().map(|(name, status)| (name, status_json(&status))).collect()
    }

    /// Returns the tools of a connected server that are left out, and why.
    #[must_use]
    pub fn warning(self, instance: &Arc<Instance>, name: &str) -> Option<String> {
        host::servers(self.0, instance)?.warning(name)
    }

    /// Adds or replaces a server for the life of the instance, and connects it.
    pub async fn add(self, instance: &Arc<Instance>, name: &str, config: &Value) -> Result<(), Error> {
        if name.is_empty() || name.len() > MAX_NAME_BYTES {
            return Err(Error::invalid(format!("the name of a server has 1 to {MAX_NAME_BYTES} bytes")));
        }
        let timeout = instance.raw_config().pointer("/experimental/mcp_timeout").and_then(Value::as_u64);
        let config = Config::parse(config, timeout).map_err(Error::invalid)?;
        host::opened(self.0, instance).add(name, config).await;
        Ok(())
    }

    /// Ends and forgets a server. Returns `false` if there is no such server.
    pub fn remove(self, instance: &Arc<Instance>, name: &str) -> bool {
        host::servers(self.0, instance).is_some_and(|servers| servers.remove(name))
    }

    /// Connects a server. Returns `false` if there is no such server.
    pub async fn connect(self, instance: &Arc<Instance>, name: &str) -> bool {
        match host::servers(self.0, instance) {
            Some(servers) => servers.connect(name).await,
            None => false,
        }
    }

    /// Ends the connection of a server. Returns `false` if there is no such server.
    pub fn disconnect(self, instance: &Arc<Instance>, name: &str) -> bool {
        host::servers(self.0, instance).is_some_and(|servers| servers.disconnect(name))
    }

    /// Returns the resources of all servers, keyed by server and address.
    pub async fn resources(self, instance: &Arc<Instance>) -> Map<String, Value> {
        let Some(servers) = self.settled(instance).await else { return Map::new() };
        let resources = servers.resources(None).await.into_iter().map(|(client, resource)| {
            let mut shown = json!({ "name": resource.name, "uri": resource.uri });
            if let Some(description) = &resource.description {
                shown["description"] = description.as_str().into();
            }
            if let Some(mime) = &resource.mime {
                shown["mimeType"] = mime.as_str().into();
            }
            shown["client"] = (*client).into();
            (format!("{client}:{}", resource.uri), shown)
        });
        resources.collect()
    }

    /// Returns the commands of a directory, with the prompts of its servers.
    pub async fn commands(self, instance: &Arc<Instance>) -> Value {
        let mut listed = instance.commands_json();
        if let (Some(servers), Some(list)) = (self.settled(instance).await, listed.as_array_mut()) {
            // Skills come last.
            let at = list.iter().position(|command| command["source"] == "skill").unwrap_or(list.len());
            let known: Vec<Value> = list.iter().map(|command| command["name"].clone()).collect();
            let prompts = commands::commands(&servers).await.into_iter().map(|command| json!(command));
            let prompts: Vec<_> = prompts.filter(|command| !known.contains(&command["name"])).collect();
            list.splice(at..at, prompts);
        }
        listed
    }

    /// Reports whether a server can have a sign-in. Returns `None` if the server is unknown.
    #[must_use]
    pub fn can_sign_in(self, instance: &Arc<Instance>, name: &str) -> Option<bool> {
        let servers = host::servers(self.0, instance)?;
        sign_in::remote(&servers, name).map(|remote| remote.is_some())
    }

    /// Begins a sign-in. It ends by itself if the browser returns to this machine.
    pub async fn begin_sign_in(self, instance: &Arc<Instance>, name: &str) -> Result<SignInPage, Error> {
        self.settled(instance).await;
        let started = sign_in::start(self.0, instance, name).await?;
        let SignIn { url, state, listens, .. } = started.as_ref();
        Ok(SignInPage { url: url.clone(), state: state.clone(), listens: *listens })
    }

    /// Continues a sign-in with the URL or the code that the user pasted. Returns the status of the server.
    pub async fn paste_sign_in(
        self,
        instance: &Arc<Instance>,
        name: &str,
        text: &str,
    ) -> Result<Value, Error> {
        let sign_in = self.sign_in(instance, name)?;
        if !sign_in.is_running() {
            return Err(not_started(name));
        }
        sign_in.paste(text).await?;
        self.wait_for_sign_in(instance, name).await
    }

    /// Waits for the end of a sign-in. Returns the status of the server.
    pub async fn wait_for_sign_in(self, instance: &Arc<Instance>, name: &str) -> Result<Value, Error> {
        let sign_in = self.sign_in(instance, name)?;
        Ok(match sign_in.outcome().await {
            Ok(()) => self.status(instance).await.remove(name).unwrap_or_default(),
            Err(why) => json!({"status": "failed", "error": why}),
        })
    }

    /// Begins a sign-in, opens the browser and waits for the end. If the browser cannot be opened, clients get an event.
    pub async fn authenticate(self, instance: &Arc<Instance>, name: &str) -> Result<Value, Error> {
        let page = self.begin_sign_in(instance, name).await?;
        if !self.0.mcp.browser.get().is_some_and(|open| open(&self.0.env, &page.url)) {
            let (directory, mcp_name) = (instance.directory_text(), name.to_owned());
            self.0.store.signal(Signal::McpBrowserOpenFailed { directory, mcp_name, url: page.url });
        }
        self.wait_for_sign_in(instance, name).await
    }

    /// Removes the tokens of a server, and connects it again without them. Returns whether there were tokens. `None` if
    /// there is no such server.
    pub async fn sign_out(self, instance: &Arc<Instance>, name: &str) -> Result<Option<bool>, Error> {
        let Some(servers) = host::servers(self.0, instance) else { return Ok(None) };
        let Some(config) = servers.config(name) else { return Ok(None) };
        self.0.mcp.sign_ins.cancel(&instance.directory, name).await;
        let Ok(Config { kind: Kind::Remote(remote), is_enabled, .. }) = config else {
            return Ok(Some(false));
        };
        let (file, server) = (self.0.mcp.tokens.file().clone(), name.to_owned());
        let removed =
            tokens::blocking(move || file.remove(&server, &remote.url)).await.map_err(Error::machine)?;
        if removed && is_enabled {
            let name = name.to_owned();
            self.0.tasks.spawn(async move { servers.connect(&name).await });
        }
        Ok(Some(removed))
    }

    /// Returns the servers of the configuration, without connecting them.
    #[must_use]
    pub fn configured(self, instance: &Arc<Instance>) -> Vec<ConfiguredServer> {
        let now_ms = self.0.clock.now_ms();
        let describe = |(name, config): &(String, Result<Config, String>)| {
            let (target, sign_in) = match config.as_ref().map(|config| &config.kind) {
                Ok(Kind::Remote(remote)) => {
                    let sign_in = (remote.oauth != OAuth::Off).then(|| {
                        match self.0.mcp.tokens.file().read(name, &remote.url) {
                            Ok(Some(grant)) if grant.has_expired(now_ms) && grant.refresh.is_none() => {
                                SignInState::Expired
                            }
                            Ok(Some(_)) => SignInState::SignedIn,
                            Ok(None) => SignInState::SignedOut,
                            Err(why) => SignInState::Unreadable(why),
                        }
                    });
                    (remote.url.to_string(), sign_in)
                }
                Ok(Kind::Local(local)) => {
                    let words = std::iter::once(&local.program).chain(&local.args);
                    (words.map(String::as_str).collect::<Vec<_>>().join(" "), None)
                }
                Err(_) => (String::new(), None),
            };
            ConfiguredServer { name: name.clone(), target, sign_in }
        };
        instance.mcp.iter().map(describe).collect()
    }

    /// Reads what a remote server publishes about its sign-in, and its challenge. `None` if it can have no sign-in.
    pub async fn inspect_sign_in(
        self,
        instance: &Arc<Instance>,
        name: &str,
    ) -> Option<(Option<String>, Result<Discovered, String>)> {
        let servers = self.settled(instance).await?;
        let remote = sign_in::remote(&servers, name)??;
        let challenge = servers.challenge(name);
        let web = self.0.mcp.tokens.web();
        let request = SignInRequest { remote: &remote, challenge: challenge.as_deref(), redirect: "", web };
        let found = discover(request).await.map_err(|failure| failure.to_string());
        Some((challenge, found))
    }

    /// Sets the function that opens a page in the user's browser. Only the first call has an effect.
    pub fn set_browser(self, open: OpenBrowser) {
        // The program sets it once, when it starts.
        let _ = self.0.mcp.browser.set(open);
    }

    fn sign_in(self, instance: &Arc<Instance>, name: &str) -> Result<Arc<SignIn>, Error> {
        self.0.mcp.sign_ins.find(&instance.directory, name).ok_or_else(|| not_started(name))
    }

    async fn settled(self, instance: &Arc<Instance>) -> Option<Servers> {
        let servers = host::servers(self.0, instance)?;
        servers.settled().await;
        Some(servers)
    }
}

fn not_started(name: &str) -> Error {
    Error::invalid(format!("no sign-in to the MCP server `{name}` was started"))
}

fn status_json(status: &Status) -> Value {
    match status {
        Status::Connected => json!({"status": "connected"}),
        Status::Disabled => json!({"status": "disabled"}),
        Status::Failed(error) => json!({"status": "failed", "error": error}),
        Status::NeedsAuth => json!({"status": "needs_auth"}),
        Status::NeedsRegistration(error) => json!({"status": "needs_client_registration", "error": error}),
    }
}
