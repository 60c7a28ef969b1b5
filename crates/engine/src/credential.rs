//! Credentials as clients see them: given, taken away, or got by signing in. None is ever shown.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use codewright_config::{Dirs, Env};
use codewright_llm::Client;
use codewright_llm::oauth::{Endpoints, Kind, Method, PendingSignIn, SignIn, methods};
use codewright_llm::vault::{self, Credential, Vault};
use codewright_proto::Clock;
use serde_json::{Value, json};

use crate::error::Resource;
use crate::{Engine, Error};

/// How long a sign-in that was begun is kept for whoever finishes it.
const SIGN_IN_LIFE: Duration = Duration::from_secs(15 * 60);
/// Providers with a sign-in of their own, as they are offered.
const SIGN_IN_PROVIDERS: [&str; 10] = [
    "openai",
    "github-copilot",
    "gitlab",
    "poe",
    "cloudflare-workers-ai",
    "cloudflare-ai-gateway",
    "azure",
    "digitalocean",
    "snowflake-cortex",
    "xai",
];
/// What an entry calls the name that the user gave it.
const LABEL: &str = "label";
/// Characters of a name.
const MAX_LABEL_CHARS: usize = 200;
/// The longest text of a bad credential that is told back.
const SHOWN_LIMIT_CHARS: usize = 200;

/// The file credentials are kept in, over the original's.
#[must_use]
pub fn vault(dirs: &Dirs, env: &Env) -> Vault {
    let given = env.filled(codewright_config::env::AUTH_CONTENT).map(str::to_owned);
    Vault::new(dirs.data.join("auth.json"), dirs.opencode_data.join("auth.json"), given)
}

/// What signs in and keeps tokens good, in this environment.
#[must_use]
pub fn sign_in(client: Client, dirs: &Dirs, env: &Env, clock: &Clock) -> SignIn {
    let clock = clock.clone();
    let mut endpoints = Endpoints::default();
    let set = |field: &mut String, name: &str| {
        if let Some(written) = env.filled(name) {
            written.clone_into(field);
        }
    };
    set(&mut endpoints.gitlab, codewright_config::env::GITLAB_INSTANCE_URL);
    set(&mut endpoints.gitlab_client, codewright_config::env::GITLAB_OAUTH_CLIENT_ID);
    SignIn::new(client, vault(dirs, env), move || clock.now_ms()).with_endpoints(endpoints)
}

/// Sign-ins that wait to be finished: one a provider, and only providers that have any.
#[derive(Default)]
pub(crate) struct SignIns(Mutex<HashMap<String, (usize, PendingSignIn, Instant)>>);

impl SignIns {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, (usize, PendingSignIn, Instant)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives up a provider's, and those that nobody finished in time.
    pub(crate) fn forget(&self, provider: &str) {
        self.lock().retain(|name, (.., begun)| name != provider && begun.elapsed() < SIGN_IN_LIFE);
    }
}

impl Engine {
    /// Stores a credential, written as in `auth.json`.
    pub async fn set_credential(&self, provider: &str, entry: &Value) -> Result<(), Error> {
        let credential = vault::credential(entry)
            .ok_or_else(|| Error::invalid(format!("Expected Auth, got {}", shape(entry))))?;
        self.store_credential(provider, credential).await
    }

    /// Stores a key under the name that the user gave it, if any.
    pub async fn set_key(&self, provider: &str, key: &str, label: Option<&str>) -> Result<(), Error> {
        let credential = Credential::Api { key: key.to_owned().into(), extra: serde_json::Map::new() };
        self.store_credential(provider, labelled(credential, label)?).await
    }

    /// Forgets a credential; that there was none is no error.
    pub async fn remove_credential(&self, provider: &str) -> Result<(), Error> {
        let (vault, name) = (self.0.sign_in.vault().clone(), provider.to_owned());
        blocking(move || vault.remove(&name).map(drop)).await?;
        self.0.forget_instances().await;
        Ok(())
    }

    /// The ways to sign in, as `GET /provider/auth` lists them.
    #[must_use]
    pub fn sign_in_methods(&self) -> Value {
        let of = |provider: &&str| methods(provider).iter().map(method_json).collect::<Value>();
        let all = SIGN_IN_PROVIDERS.iter().map(|provider| ((*provider).to_owned(), of(provider)));
        Value::Object(all.collect())
    }

    /// Begins a sign-in: where the user goes, and whether the user brings a code back.
    pub async fn begin_sign_in(
        &self,
        provider: &str,
        method: usize,
        inputs: &BTreeMap<String, String>,
    ) -> Result<Value, Error> {
        // An older one may hold the port that the new one needs.
        self.0.sign_ins.forget(provider);
        self.0.attempts.give_up(|of, _| of == provider).await;
        let begun = self.0.sign_in.begin(provider, method, inputs).await.map_err(told)?;
        let answer = json!({
            "url": begun.url,
            "method": if begun.is_automatic { "auto" } else { "code" },
            "instructions": begun.instructions,
        });
        self.0.sign_ins.lock().insert(provider.to_owned(), (method, begun, Instant::now()));
        Ok(answer)
    }

    /// Waits for the end of a sign-in and stores what it gives; `code` is what the user brought back.
    pub async fn finish_sign_in(
        &self,
        provider: &str,
        method: usize,
        code: Option<String>,
    ) -> Result<(), Error> {
        let begun = self.0.sign_ins.lock().remove(provider);
        let Some((_, begun, _)) = begun.filter(|(begun, ..)| *begun == method) else {
            return Err(Error::NoSignIn { provider: provider.to_owned() });
        };
        let pasted = async {
            match code {
                Some(code) => code,
                None => std::future::pending().await,
            }
        };
        let credential = self.0.sign_in.finish(begun, pasted).await.map_err(told)?;
        self.store_credential(provider, credential).await
    }

    /// What the stored credentials are called, by provider; one that has no name has none here either.
    #[must_use]
    pub fn labels(&self) -> BTreeMap<String, Option<String>> {
        // Whoever opens a directory says what is wrong with a file.
        let stored = self.0.sign_in.vault().read().unwrap_or_default();
        let all = stored.iter().map(|(provider, credential, _)| (provider.to_owned(), label(credential)));
        all.collect()
    }

    /// Names a stored credential.
    pub async fn set_label(&self, provider: &str, label: &str) -> Result<(), Error> {
        let (vault, name, label) = (self.0.sign_in.vault().clone(), provider.to_owned(), label.to_owned());
        // Under the vault's lock, so that tokens renewed meanwhile stay.
        let named = blocking(move || {
            let mut refused = None;
            let found = vault.amend(&name, |known| match labelled(known.clone(), Some(&label)) {
                Ok(named) => *known = named,
                Err(error) => refused = Some(error),
            })?;
            Ok(match refused {
                Some(error) => Err(error),
                None if found => Ok(()),
                None => Err(Error::not_found(Resource::Credential, &name)),
            })
        });
        named.await??;
        self.0.forget_instances().await;
        Ok(())
    }

    pub(crate) async fn store_credential(&self, provider: &str, credential: Credential) -> Result<(), Error> {
        let (vault, name) = (self.0.sign_in.vault().clone(), provider.to_owned());
        blocking(move || vault.set(&name, &credential)).await?;
        self.0.forget_instances().await;
        Ok(())
    }
}

fn label(credential: &Credential) -> Option<String> {
    let extra = match credential {
        Credential::Api { extra, .. } => extra,
        Credential::OAuth(tokens) => &tokens.extra,
        Credential::WellKnown { .. } => return None,
    };
    extra.get(LABEL).and_then(Value::as_str).filter(|label| !label.is_empty()).map(str::to_owned)
}

/// Whether a credential may be called so.
pub(crate) fn check_label(label: &str) -> Result<(), Error> {
    if label.chars().count() > MAX_LABEL_CHARS || label.chars().any(char::is_control) {
        return Err(Error::invalid(format!(
            "`label` must be one line of at most {MAX_LABEL_CHARS} characters"
        )));
    }
    Ok(())
}

/// A credential with a name, or as it is; an empty name takes it away.
pub(crate) fn labelled(mut credential: Credential, label: Option<&str>) -> Result<Credential, Error> {
    let Some(label) = label else { return Ok(credential) };
    check_label(label)?;
    let extra = match &mut credential {
        Credential::Api { extra, .. } => extra,
        Credential::OAuth(tokens) => &mut tokens.extra,
        Credential::WellKnown { .. } => {
            return Err(Error::invalid("the credential of an organisation's address has no label"));
        }
    };
    if label.is_empty() {
        extra.remove(LABEL);
    } else {
        extra.insert(LABEL.to_owned(), label.into());
    }
    Ok(credential)
}

/// What newer clients call a way to sign in, by its place among those of its provider.
#[must_use]
pub fn method_id(provider: &str, at: usize) -> String {
    match (provider, at) {
        ("openai", 0) => "chatgpt-browser".to_owned(),
        ("openai", 1) => "chatgpt-headless".to_owned(),
        _ => at.to_string(),
    }
}

/// Runs on a thread that may wait for other processes.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, codewright_llm::Error> + Send + 'static,
) -> Result<T, Error> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|_| Error::machine("the credentials could not be reached"))?.map_err(told)
}

/// These errors are our own words, made for whoever signs in.
pub(crate) fn told(error: codewright_llm::Error) -> Error {
    Error::invalid(error.to_string())
}

/// A bad credential without what may be secret in it.
fn shape(entry: &Value) -> String {
    let mut shown = entry.clone();
    match &mut shown {
        Value::Object(fields) => {
            for (name, value) in fields.iter_mut() {
                if name != "type" || !value.is_string() {
                    *value = "…".into();
                }
            }
        }
        Value::Null | Value::Bool(_) => {}
        other => *other = "…".into(),
    }
    shown.to_string().chars().take(SHOWN_LIMIT_CHARS).collect()
}

fn method_json(method: &Method) -> Value {
    let kind = if method.kind == Kind::Api { "api" } else { "oauth" };
    let mut json = json!({"type": kind, "label": method.label});
    if method.prompts.is_empty() {
        return json;
    }
    let prompts = method.prompts.iter().map(|prompt| {
        let mut json = if prompt.options.is_empty() {
            json!({
                "type": "text", "key": prompt.key, "message": prompt.message, "placeholder": prompt.placeholder,
            })
        } else {
            let options = prompt.options.iter();
            let options = options.map(|(value, label, hint)| json!({"label": label, "value": value, "hint": hint}));
            json!({
                "type": "select", "key": prompt.key, "message": prompt.message,
                "options": options.collect::<Vec<_>>(),
            })
        };
        if let Some((key, value)) = prompt.when {
            json["when"] = json!({"key": key, "op": "eq", "value": value});
        }
        json
    });
    json["prompts"] = prompts.collect();
    json
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bad_credential_is_told_back_without_its_secrets() {
        for (entry, expected) in [
            (json!({"type": "bogus"}), r#"{"type":"bogus"}"#),
            (json!({"type": "api", "keys": "canary"}), r#"{"type":"api","keys":"…"}"#),
            (json!({"type": {"canary": 1}}), r#"{"type":"…"}"#),
            (json!("canary"), r#""…""#),
            (json!(null), "null"),
        ] {
            assert_eq!(shape(&entry), expected);
        }
    }
}
