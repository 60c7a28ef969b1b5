//! Sign-ins, and the refresh of their tokens.
//!
//! A sign-in starts with a URL for the user and ends with a [`Credential`]. Tokens are refreshed a
//! minute before they expire. Requests in this process and in other processes share one refresh.
//! The new tokens are stored before they are used, so that a crash leaves either the old or the new
//! token. A refresh continues if its request is cancelled.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use crate::vault::{Credential, Lock, Tokens, Vault};
use crate::{Client, Error, Request, Secret};

mod answer;
mod browser;
mod copilot;
mod device;
mod digitalocean;
mod endpoints;
mod gitlab;
mod loopback;
mod method;
mod openai;
mod poe;
mod snowflake;
mod standard;
mod started;
pub mod well_known;
mod xai;

pub use endpoints::Endpoints;
pub use loopback::{Loopback, RedirectResult, parse_pasted};
pub use method::{Kind, Method, Prompt, methods};

pub(crate) use answer::origin;
use answer::sign_in;
use browser::Browser;
use started::Started;

/// Tokens are refreshed this long before they expire, so that they last for the request.
const MARGIN: Duration = Duration::from_secs(60);
/// How long a refresh waits for another process: the time limit of two requests.
const REFRESH_WAIT: Duration = Duration::from_secs(70);
/// The interval of checks whether the other process has finished.
const REFRESH_CHECK: Duration = Duration::from_millis(20);
/// Providers whose tokens expire and can be refreshed.
const REFRESHED: [&str; 4] = ["gitlab", "openai", "snowflake-cortex", "xai"];

/// Signs users in and refreshes their tokens. Clones share everything.
#[derive(Clone)]
pub struct SignIn(Arc<Inner>);

struct Inner {
    client: Client,
    vault: Vault,
    endpoints: Endpoints,
    now_ms: Box<dyn Fn() -> u64 + Send + Sync>,
    refreshes: Mutex<HashMap<String, Refresh>>,
    /// Bounded by the number of providers, because each has one refresh at a time.
    tasks: Mutex<JoinSet<()>>,
}

/// The result of a refresh, when it has finished.
type Refresh = watch::Receiver<Option<Result<Tokens, Error>>>;

impl SignIn {
    /// Creates a client of the real servers; `now_ms` is the time in milliseconds since 1970.
    #[must_use]
    pub fn new(client: Client, vault: Vault, now_ms: impl Fn() -> u64 + Send + Sync + 'static) -> Self {
        Self(Arc::new(Inner {
            client,
            vault,
            endpoints: Endpoints::default(),
            now_ms: Box::new(now_ms),
            refreshes: Mutex::default(),
            tasks: Mutex::default(),
        }))
    }

    /// Uses other servers. Must be called before the first clone.
    #[must_use]
    pub fn with_endpoints(self, endpoints: Endpoints) -> Self {
        let mut inner = self.0;
        if let Some(inner) = Arc::get_mut(&mut inner) {
            inner.endpoints = endpoints;
        }
        Self(inner)
    }

    /// Returns the vault with the credentials.
    #[must_use]
    pub fn vault(&self) -> &Vault {
        &self.0.vault
    }

    /// Starts a sign-in to a provider with the method at this index of [`methods`].
    ///
    /// # Errors
    ///
    /// Fails if there is no such method, it takes an API key, or the server is unreachable.
    pub async fn begin(
        &self,
        provider: &str,
        method: usize,
        inputs: &BTreeMap<String, String>,
    ) -> Result<PendingSignIn, Error> {
        let row = methods(provider).get(method).ok_or_else(|| {
            Error::rejected(format!("the provider `{provider}` has no sign-in method {method}"))
        })?;
        let client = &self.0.client;
        match row.kind {
            Kind::Api => Err(Error::rejected(format!("`{}` takes a key, not a sign-in", row.label))),
            Kind::OpenAiBrowser => {
                openai::browser(&self.0.endpoints).await.map(|started| pending(started, Flow::OpenAiBrowser))
            }
            Kind::OpenAiDevice => openai::device(client, &self.0.endpoints)
                .await
                .map(|started| pending(started, Flow::OpenAiDevice)),
            Kind::Copilot => {
                copilot::device(client, inputs).await.map(|started| pending(started, Flow::Copilot))
            }
            Kind::DigitalOcean => digitalocean::browser(&self.0.endpoints)
                .await
                .map(|started| pending(started, Flow::DigitalOcean)),
            Kind::Snowflake => snowflake::browser(&self.0.endpoints, inputs)
                .await
                .map(|started| pending(started, Flow::Snowflake)),
            Kind::Xai => {
                xai::device(client, &self.0.endpoints).await.map(|started| pending(started, Flow::Xai))
            }
            Kind::GitLab => {
                gitlab::browser(&self.0.endpoints, inputs).await.map(|started| pending(started, Flow::GitLab))
            }
            Kind::Poe => poe::browser(&self.0.endpoints).await.map(|started| pending(started, Flow::Poe)),
        }
    }

    /// Completes a sign-in. Waits for the user, for at most five minutes or the server's time
    /// limit.
    ///
    /// `pasted` returns the text that the user copied from a browser on another machine; it may
    /// stay pending.
    ///
    /// # Errors
    ///
    /// Fails if the user or the server refuses, or the time is up.
    pub async fn finish(
        &self,
        begun: PendingSignIn,
        pasted: impl Future<Output = String>,
    ) -> Result<Credential, Error> {
        let client = &self.0.client;
        let now_ms = (self.0.now_ms)();
        let tokens = match begun.flow {
            Flow::OpenAiBrowser(browser) => {
                let code = browser.code(pasted).await?;
                let grant =
                    openai::Grant { code: &code, verifier: &browser.verifier, redirect: &browser.redirect };
                openai::exchange(client, &self.0.endpoints, &grant, now_ms).await
            }
            Flow::OpenAiDevice(device) => openai::poll(client, &self.0.endpoints, device, now_ms).await,
            Flow::Copilot(device) => copilot::poll(client, device).await,
            Flow::DigitalOcean(browser) => {
                return Ok(digitalocean::credential(browser.result(pasted).await?, now_ms));
            }
            Flow::Snowflake(begun) => {
                let code = begun.browser.code(pasted).await?;
                snowflake::exchange(client, &self.0.endpoints, &begun, &code, now_ms).await
            }
            Flow::Xai(device) => xai::poll(client, &self.0.endpoints, device, now_ms).await,
            Flow::GitLab(begun) => {
                let code = begun.browser.code(pasted).await?;
                gitlab::exchange(client, &begun, &code, now_ms).await
            }
            Flow::Poe(browser) => {
                let code = browser.code(pasted).await?;
                poe::exchange(client, &self.0.endpoints, &browser, &code, now_ms).await
            }
        };
        tokens.map(Credential::OAuth)
    }

    /// Returns the valid tokens of a provider. Refreshes them if needed.
    ///
    /// # Errors
    ///
    /// `Auth` if the user has to sign in again, `Busy` if the server is unreachable.
    pub async fn tokens(&self, provider: &str) -> Result<Tokens, Error> {
        let tokens = self.stored(provider)?;
        if !self.is_due(provider, &tokens) {
            return Ok(tokens);
        }
        let mut refresh = self.shared_refresh(provider);
        match refresh.wait_for(Option::is_some).await.map(|outcome| outcome.clone()) {
            Ok(Some(outcome)) => outcome,
            Ok(None) | Err(_) => {
                self.refreshes().remove(provider);
                Err(Error::busy(format!("the token refresh for `{provider}` ended without a result")))
            }
        }
    }

    /// Returns the authentication headers of a request.
    pub(crate) async fn headers(&self, provider: &str) -> Result<Vec<(&'static str, String)>, Error> {
        let tokens = self.tokens(provider).await?;
        let bearer = |token: &Secret| ("authorization", format!("Bearer {}", token.expose()));
        Ok(match provider {
            // Older versions stored a short-lived token as `access`, which has expired.
            "github-copilot" => vec![bearer(&tokens.refresh)],
            "openai" => {
                let account =
                    tokens.text("accountId").map(|account| ("chatgpt-account-id", account.to_owned()));
                [bearer(&tokens.access)].into_iter().chain(account).collect()
            }
            _ => vec![bearer(&tokens.access)],
        })
    }

    /// Returns the running refresh, or starts one. It runs in its own task and survives the
    /// request: the server invalidates the old tokens, so the new ones must be stored.
    fn shared_refresh(&self, provider: &str) -> Refresh {
        let mut refreshes = self.refreshes();
        if let Some(refresh) = refreshes.get(provider) {
            return refresh.clone();
        }
        let (sender, refresh) = watch::channel(None);
        refreshes.insert(provider.to_owned(), refresh.clone());
        let (this, provider) = (self.clone(), provider.to_owned());
        let mut tasks = self.0.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        while tasks.try_join_next().is_some() {}
        tasks.spawn(async move {
            let outcome = this.refresh(&provider).await;
            this.refreshes().remove(&provider);
            // If there is no receiver any more, the tokens are stored anyway.
            drop(sender.send(Some(outcome)));
        });
        refresh
    }

    fn refreshes(&self) -> MutexGuard<'_, HashMap<String, Refresh>> {
        self.0.refreshes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn refresh(&self, provider: &str) -> Result<Tokens, Error> {
        let _lock = self.lock_refresh(provider).await?;
        // Another process may have refreshed the tokens while this one waited.
        let old = self.stored(provider)?;
        if !self.is_due(provider, &old) {
            return Ok(old);
        }
        let now_ms = (self.0.now_ms)();
        let (client, endpoints) = (&self.0.client, &self.0.endpoints);
        let tokens = match provider {
            "gitlab" => gitlab::refresh(client, endpoints, &old, now_ms).await,
            "snowflake-cortex" => snowflake::refresh(client, endpoints, &old, now_ms).await,
            "xai" => xai::refresh(client, endpoints, &old, now_ms).await,
            _ => openai::refresh(client, endpoints, &old, now_ms).await,
        };
        let tokens = tokens.map_err(|error| with_instructions(error, provider))?;
        let (vault, name, renewed) = (self.0.vault.clone(), provider.to_owned(), tokens.clone());
        // Store the tokens before they are used. Keep a sign-out or another sign-in that happened
        // meanwhile.
        blocking(move || vault.amend(&name, |stored| replace(stored, &old, renewed))).await?;
        Ok(tokens)
    }

    /// Waits until no other process refreshes this sign-in.
    async fn lock_refresh(&self, provider: &str) -> Result<Lock, Error> {
        let until = Instant::now() + REFRESH_WAIT;
        while Instant::now() < until {
            if let Some(lock) = self.0.vault.lock_refresh(provider)? {
                return Ok(lock);
            }
            sleep(REFRESH_CHECK).await;
        }
        let seconds = REFRESH_WAIT.as_secs();
        Err(Error::busy(format!(
            "another process has been refreshing the tokens of `{provider}` for {seconds} s"
        )))
    }

    fn stored(&self, provider: &str) -> Result<Tokens, Error> {
        let stored = self.0.vault.read()?;
        let Some(Credential::OAuth(tokens)) = stored.get(provider) else {
            return Err(sign_in(provider, "is no longer stored"));
        };
        if provider == "poe" && tokens.expires_ms != 0 && tokens.expires_ms < (self.0.now_ms)() {
            return Err(sign_in(provider, "has expired"));
        }
        Ok(tokens.clone())
    }

    /// Returns whether tokens must be refreshed. GitHub's do not expire, and Poe's cannot be
    /// refreshed.
    fn is_due(&self, provider: &str, tokens: &Tokens) -> bool {
        let margin_ms = MARGIN.as_millis() as u64;
        REFRESHED.contains(&provider) && tokens.expires_ms < (self.0.now_ms)().saturating_add(margin_ms)
    }
}

/// Replaces the old tokens with new ones. Keeps other fields that changed in the meantime.
fn replace(stored: &mut Credential, old: &Tokens, renewed: Tokens) {
    let Credential::OAuth(stored) = stored else { return };
    if stored.refresh != old.refresh {
        return;
    }
    let Tokens { access, refresh, expires_ms, extra } = renewed;
    (stored.access, stored.refresh, stored.expires_ms) = (access, refresh, expires_ms);
    let learned = extra.into_iter().filter(|(name, value)| old.extra.get(name) != Some(value));
    stored.extra.extend(learned);
}

impl PartialEq for SignIn {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for SignIn {}

impl std::fmt::Debug for SignIn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SignIn").field("vault", &self.0.vault).finish_non_exhaustive()
    }
}

/// A sign-in that waits for the user.
pub struct PendingSignIn {
    /// The URL that the user opens.
    pub url: String,
    /// Instructions for the user.
    pub instructions: String,
    /// Whether the sign-in completes by itself. Otherwise the user pastes a text from the browser.
    pub is_automatic: bool,
    flow: Flow,
}

impl std::fmt::Debug for PendingSignIn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PendingSignIn").field("is_automatic", &self.is_automatic).finish_non_exhaustive()
    }
}

enum Flow {
    OpenAiBrowser(Browser),
    OpenAiDevice(openai::Device),
    Copilot(copilot::Device),
    DigitalOcean(Browser),
    GitLab(gitlab::Pending),
    Snowflake(snowflake::Pending),
    Xai(xai::Device),
    Poe(Browser),
}

/// Wraps a started sign-in.
fn pending<T>(started: Started<T>, flow: fn(T) -> Flow) -> PendingSignIn {
    let Started { url, instructions, is_automatic, flow: state } = started;
    PendingSignIn { url, instructions, is_automatic, flow: flow(state) }
}

/// Returns whether requests can use a sign-in to a provider, not only a key.
#[must_use]
pub fn is_known(provider: &str) -> bool {
    // DigitalOcean's token is stored and used as a key.
    methods(provider).iter().any(|method| !matches!(method.kind, Kind::Api | Kind::DigitalOcean))
}

/// Returns the URL of Copilot's models for a sign-in.
#[must_use]
pub fn copilot_url(tokens: &Tokens) -> String {
    copilot::base_url(tokens.text("enterpriseUrl"))
}

/// Returns the extra headers that a provider with a sign-in expects.
pub(crate) fn notes(provider: &str, request: &Request) -> Vec<(&'static str, String)> {
    match provider {
        "github-copilot" => copilot::notes(request),
        _ => Vec::new(),
    }
}

/// Runs blocking work on another thread.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(why) => Err(Error::rejected(format!("the credentials could not be accessed: {why}"))),
    }
}

/// Adds instructions to an `Auth` error. Returns other errors unchanged.
fn with_instructions(error: Error, provider: &str) -> Error {
    match error {
        Error::Auth { failure } => sign_in(provider, &format!("is no longer accepted ({failure})")),
        other => other,
    }
}
