//! Signing in, and tokens that are good when a request is sent.
//!
//! A sign-in begins with an address for the user and ends with a [`Credential`]. Tokens are
//! renewed a minute before they end, by one request however many wait for it in this process and
//! in others, and stored before anybody uses them: what a crash leaves is the old token or the
//! new one. A renewal goes on when the request that asked for it is given up.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use crate::error::cut;
use crate::vault::{Credential, Lock, Tokens, Vault};
use crate::{Client, Error, Failure, Request, Secret};

mod browser;
mod copilot;
mod device;
mod digitalocean;
mod gitlab;
mod method;
mod openai;
mod poe;
mod snowflake;
mod standard;
pub mod well_known;
mod xai;

pub use method::{Kind, Method, Prompt, methods};

use browser::Browser;

/// Tokens are renewed this long before they end, so that they last for the request.
const MARGIN: Duration = Duration::from_secs(60);
/// How long a renewal waits for that of another process: as long as two requests may take.
const RENEWAL_WAIT: Duration = Duration::from_secs(70);
/// How often it is looked whether that has ended.
const RENEWAL_CHECK: Duration = Duration::from_millis(20);
/// Providers whose tokens end and can be renewed.
const RENEWED: [&str; 4] = ["gitlab", "openai", "snowflake-cortex", "xai"];

/// Servers that sign users in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoints {
    /// The page where DigitalOcean asks the user.
    pub digitalocean_page: String,
    /// The GitLab of users who name none.
    pub gitlab: String,
    /// The client that GitLab knows us by.
    pub gitlab_client: String,
    /// OpenAI's, without a slash at its end.
    pub openai: String,
    /// The page where Poe asks the user.
    pub poe_page: String,
    /// Where Poe gives keys.
    pub poe_token: String,
    /// Snowflake's, with `{account}` where the account's name belongs.
    pub snowflake: String,
    /// xAI's, without a slash at its end.
    pub xai: String,
}

impl Default for Endpoints {
    fn default() -> Self {
        Self {
            digitalocean_page: "https://cloud.digitalocean.com/v1/oauth/authorize".to_owned(),
            gitlab: gitlab::INSTANCE.to_owned(),
            gitlab_client: gitlab::CLIENT_ID.to_owned(),
            openai: "https://auth.openai.com".to_owned(),
            poe_page: "https://poe.com/oauth/authorize".to_owned(),
            poe_token: "https://api.poe.com/token".to_owned(),
            snowflake: "https://{account}.snowflakecomputing.com".to_owned(),
            xai: "https://auth.x.ai".to_owned(),
        }
    }
}

/// Signs in and keeps tokens good. Clones share everything.
#[derive(Clone)]
pub struct SignIn(Arc<Inner>);

struct Inner {
    client: Client,
    vault: Vault,
    endpoints: Endpoints,
    now_ms: Box<dyn Fn() -> u64 + Send + Sync>,
    renewals: Mutex<HashMap<String, Renewal>>,
    /// Bounded by the providers there are: each has one renewal at a time.
    tasks: Mutex<JoinSet<()>>,
}

/// The outcome of a renewal, once there is one.
type Renewal = watch::Receiver<Option<Result<Tokens, Error>>>;

impl SignIn {
    /// Signs in to the real servers; `now_ms` is the time in milliseconds since 1970.
    #[must_use]
    pub fn new(client: Client, vault: Vault, now_ms: impl Fn() -> u64 + Send + Sync + 'static) -> Self {
        Self(Arc::new(Inner {
            client,
            vault,
            endpoints: Endpoints::default(),
            now_ms: Box::new(now_ms),
            renewals: Mutex::default(),
            tasks: Mutex::default(),
        }))
    }

    /// Signs in at other servers. Only of use before the first clone.
    #[must_use]
    pub fn at(self, endpoints: Endpoints) -> Self {
        let mut inner = self.0;
        if let Some(inner) = Arc::get_mut(&mut inner) {
            inner.endpoints = endpoints;
        }
        Self(inner)
    }

    /// Where the credentials are.
    #[must_use]
    pub fn vault(&self) -> &Vault {
        &self.0.vault
    }

    /// Begins to sign in to a provider, by the method of that place in [`methods`].
    ///
    /// # Errors
    /// When there is no such method, it is one of keys, or the server cannot be asked.
    pub async fn begin(
        &self,
        provider: &str,
        method: usize,
        inputs: &BTreeMap<String, String>,
    ) -> Result<Begun, Error> {
        let row = methods(provider).get(method).ok_or_else(|| {
            Error::rejected(format!("the provider `{provider}` has no sign-in method {method}"))
        })?;
        let client = &self.0.client;
        match row.kind {
            Kind::Api => Err(Error::rejected(format!("`{}` takes a key, not a sign-in", row.label))),
            Kind::OpenAiBrowser => openai::browser(&self.0.endpoints).await,
            Kind::OpenAiDevice => openai::device(client, &self.0.endpoints).await,
            Kind::Copilot => copilot::device(client, inputs).await,
            Kind::DigitalOcean => digitalocean::browser(&self.0.endpoints).await,
            Kind::Snowflake => snowflake::browser(&self.0.endpoints, inputs).await,
            Kind::Xai => xai::device(client, &self.0.endpoints).await,
            Kind::GitLab => gitlab::browser(&self.0.endpoints, inputs).await,
            Kind::Poe => poe::browser(&self.0.endpoints).await,
        }
    }

    /// Ends what was begun: waits for the user, at most as long as the server allows or five minutes.
    ///
    /// `pasted` gives what the user copied from a browser elsewhere; it may never end.
    ///
    /// # Errors
    /// When the user or the server refuses, or time is up.
    pub async fn finish(
        &self,
        begun: Begun,
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
                return Ok(digitalocean::credential(browser.brought(pasted).await?, now_ms));
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

    /// The tokens of a provider, good for a request that is sent now.
    ///
    /// # Errors
    /// `Auth` when the user has to sign in again; `Busy` when the server cannot be asked just now.
    pub async fn tokens(&self, provider: &str) -> Result<Tokens, Error> {
        let tokens = self.stored(provider)?;
        if !self.is_due(provider, &tokens) {
            return Ok(tokens);
        }
        let mut renewal = self.renewal(provider);
        match renewal.wait_for(Option::is_some).await.map(|outcome| outcome.clone()) {
            Ok(Some(outcome)) => outcome,
            Ok(None) | Err(_) => {
                self.renewals().remove(provider);
                Err(Error::busy(format!(
                    "the renewal of the sign-in to `{provider}` ended without an answer"
                )))
            }
        }
    }

    /// What shows a provider who asks, for a request that is sent now.
    pub(crate) async fn headers(&self, provider: &str) -> Result<Vec<(&'static str, String)>, Error> {
        let tokens = self.tokens(provider).await?;
        let bearer = |token: &Secret| ("authorization", format!("Bearer {}", token.expose()));
        Ok(match provider {
            // What older versions stored as `access` has ended long ago.
            "github-copilot" => vec![bearer(&tokens.refresh)],
            "openai" => {
                let account =
                    tokens.text("accountId").map(|account| ("chatgpt-account-id", account.to_owned()));
                [bearer(&tokens.access)].into_iter().chain(account).collect()
            }
            _ => vec![bearer(&tokens.access)],
        })
    }

    /// The renewal that is going on, or a new one. It has a task of its own: the tokens it gets
    /// replace ones that are void from then on, so it must not end with the request that wanted it.
    fn renewal(&self, provider: &str) -> Renewal {
        let mut renewals = self.renewals();
        if let Some(renewal) = renewals.get(provider) {
            return renewal.clone();
        }
        let (tell, renewal) = watch::channel(None);
        renewals.insert(provider.to_owned(), renewal.clone());
        let (this, provider) = (self.clone(), provider.to_owned());
        let mut tasks = self.0.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        while tasks.try_join_next().is_some() {}
        tasks.spawn(async move {
            let outcome = this.renew(&provider).await;
            this.renewals().remove(&provider);
            // That nobody waits any more is no loss: the tokens are stored.
            drop(tell.send(Some(outcome)));
        });
        renewal
    }

    fn renewals(&self) -> MutexGuard<'_, HashMap<String, Renewal>> {
        self.0.renewals.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn renew(&self, provider: &str) -> Result<Tokens, Error> {
        let _lock = self.lock_renewal(provider).await?;
        // Another process may have done it while this one waited.
        let old = self.stored(provider)?;
        if !self.is_due(provider, &old) {
            return Ok(old);
        }
        let now_ms = (self.0.now_ms)();
        let (client, endpoints) = (&self.0.client, &self.0.endpoints);
        let tokens = match provider {
            "gitlab" => gitlab::renew(client, endpoints, &old, now_ms).await,
            "snowflake-cortex" => snowflake::renew(client, endpoints, &old, now_ms).await,
            "xai" => xai::renew(client, endpoints, &old, now_ms).await,
            _ => openai::renew(client, endpoints, &old, now_ms).await,
        };
        let tokens = tokens.map_err(|error| explained(error, provider))?;
        let (vault, name, renewed) = (self.0.vault.clone(), provider.to_owned(), tokens.clone());
        // Stored before anybody uses them; a sign-out or another sign-in meanwhile stands.
        blocking(move || vault.amend(&name, |known| replace(known, &old, renewed))).await?;
        Ok(tokens)
    }

    /// Waits until no other process renews this sign-in.
    async fn lock_renewal(&self, provider: &str) -> Result<Lock, Error> {
        let until = Instant::now() + RENEWAL_WAIT;
        while Instant::now() < until {
            if let Some(lock) = self.0.vault.lock_renewal(provider)? {
                return Ok(lock);
            }
            sleep(RENEWAL_CHECK).await;
        }
        let seconds = RENEWAL_WAIT.as_secs();
        Err(Error::busy(format!(
            "another process has been renewing the sign-in to `{provider}` for {seconds} s"
        )))
    }

    fn stored(&self, provider: &str) -> Result<Tokens, Error> {
        let stored = self.0.vault.read()?;
        let Some(Credential::OAuth(tokens)) = stored.get(provider) else {
            return Err(sign_in(provider, "is not stored any more"));
        };
        if provider == "poe" && tokens.expires_ms != 0 && tokens.expires_ms < (self.0.now_ms)() {
            return Err(sign_in(provider, "has ended"));
        }
        Ok(tokens.clone())
    }

    /// Whether tokens have to be renewed. GitHub's do not end, and Poe's cannot be renewed.
    fn is_due(&self, provider: &str, tokens: &Tokens) -> bool {
        let margin_ms = MARGIN.as_millis() as u64;
        RENEWED.contains(&provider) && tokens.expires_ms < (self.0.now_ms)().saturating_add(margin_ms)
    }
}

/// Puts renewed tokens in the place of the old ones, with what was changed beside them meanwhile.
fn replace(known: &mut Credential, old: &Tokens, renewed: Tokens) {
    let Credential::OAuth(known) = known else { return };
    if known.refresh != old.refresh {
        return;
    }
    let Tokens { access, refresh, expires_ms, extra } = renewed;
    (known.access, known.refresh, known.expires_ms) = (access, refresh, expires_ms);
    let learned = extra.into_iter().filter(|(name, value)| old.extra.get(name) != Some(value));
    known.extra.extend(learned);
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
pub struct Begun {
    /// What the user opens.
    pub url: String,
    /// What the user does there.
    pub instructions: String,
    /// Whether it ends by itself; otherwise the user has to paste what the browser shows.
    pub is_automatic: bool,
    flow: Flow,
}

impl std::fmt::Debug for Begun {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Begun").field("is_automatic", &self.is_automatic).finish_non_exhaustive()
    }
}

enum Flow {
    OpenAiBrowser(Browser),
    OpenAiDevice(openai::Device),
    Copilot(copilot::Device),
    DigitalOcean(Browser),
    GitLab(gitlab::Begun),
    Snowflake(snowflake::Begun),
    Xai(xai::Device),
    Poe(Browser),
}

/// Whether sign-ins to a provider can be used, and not only keys.
#[must_use]
pub fn is_known(provider: &str) -> bool {
    // What DigitalOcean gives is stored and used as a key.
    methods(provider).iter().any(|method| !matches!(method.kind, Kind::Api | Kind::DigitalOcean))
}

/// The address of Copilot's models for a sign-in.
#[must_use]
pub fn copilot_url(tokens: &Tokens) -> String {
    copilot::base_url(tokens.text("enterpriseUrl"))
}

/// What a provider that is used by sign-in wants to know of a request.
pub(crate) fn notes(provider: &str, request: &Request) -> Vec<(&'static str, String)> {
    match provider {
        "github-copilot" => copilot::notes(request),
        _ => Vec::new(),
    }
}

/// Runs on a thread that may wait.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(why) => Err(Error::rejected(format!("the credentials could not be reached: {why}"))),
    }
}

/// The error for a sign-in that the user has to repeat.
fn sign_in(provider: &str, what: &str) -> Error {
    let message = format!(
        "the sign-in to `{provider}` {what}; run `codewright providers login {provider}` to sign in again"
    );
    Error::Auth { failure: Failure::new(message) }
}

/// A refusal as an instruction; other errors as they are.
fn explained(error: Error, provider: &str) -> Error {
    match error {
        Error::Auth { failure } => sign_in(provider, &format!("is no longer accepted ({failure})")),
        other => other,
    }
}

/// The error for an exchange that gave nothing. What the server says is told unless it repeats a secret.
fn refused(what: &str, status: u16, answer: &Value, secrets: &[&str]) -> Error {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let code = answer.get("error").and_then(|error| text(error).or_else(|| text(error.get("code")?)));
    let said = answer.get("error_description").or_else(|| answer.pointer("/error/message")).and_then(text);
    let said: Vec<String> = code.into_iter().chain(said).collect();
    let said = cut(&said.join(": "), 300).replace(char::is_control, " ");
    let is_safe = !secrets.iter().any(|secret| !secret.is_empty() && said.contains(secret));
    let said = if is_safe && !said.is_empty() { format!(": {said}") } else { String::new() };
    let message = format!("{what} was refused with status {status}{said}");
    match status {
        400..=407 => Error::Auth { failure: Failure::new(message) },
        408 | 425 | 429 | 500.. => Error::busy(message),
        _ => Error::rejected(message),
    }
}

/// A text of an answer that has to be there.
fn field(answer: &Value, name: &str) -> Result<String, Error> {
    let text = answer.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    let missing = || Error::rejected(format!("the sign-in server's answer has no `{name}`"));
    text.map(str::to_owned).ok_or_else(missing)
}

/// Seconds of an answer; some servers write numbers as text.
fn seconds(answer: &Value, name: &str) -> Option<u64> {
    let value = answer.get(name)?;
    value.as_f64().map(|number| number as u64).or_else(|| value.as_str()?.trim().parse().ok())
}

/// The scheme and the host of an address that secrets are sent to: a secure one, or one on this machine.
pub(crate) fn origin(written: &str, what: &str) -> Result<String, Error> {
    let url = reqwest::Url::parse(written.trim()).ok();
    let url = url.filter(|url| url.has_host() && url.username().is_empty() && url.password().is_none());
    let url = url.filter(|url| match url.scheme() {
        "https" => true,
        "http" => url.host_str().is_some_and(is_local),
        _ => false,
    });
    // What was written may hold a password.
    let wrong =
        || Error::rejected(format!("the address of {what} must begin with https:// and hold no password"));
    url.map(|url| url.origin().ascii_serialization()).ok_or_else(wrong)
}

fn is_local(host: &str) -> bool {
    host == "localhost" || host == "127.0.0.1" || host == "[::1]"
}

fn secret(text: String) -> Secret {
    Secret::from(text)
}
