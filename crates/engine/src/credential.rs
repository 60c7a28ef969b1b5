//! Credentials in the API: stored, removed or obtained by signing in. Their secrets are never returned.

pub(crate) mod operations;

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use codewright_config::{Dirs, Env};
use codewright_llm::Client;
use codewright_llm::oauth::{Endpoints, Kind, Method, PendingSignIn, SignIn};
use codewright_llm::vault::{Credential, Vault};
use codewright_proto::Clock;
use serde_json::{Value, json};

use crate::Error;

/// How long a started sign-in can be completed.
const SIGN_IN_LIFE: Duration = Duration::from_secs(15 * 60);
/// Returns the providers with a special sign-in.
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
/// The metadata key of the name that the user chose.
const LABEL: &str = "label";
/// The longest name in characters.
const MAX_LABEL_CHARS: usize = 200;
/// The longest invalid credential that an error quotes.
const SHOWN_LIMIT_CHARS: usize = 200;

/// The credentials file. It has precedence over OpenCode's.
#[must_use]
pub fn vault(dirs: &Dirs, env: &Env) -> Vault {
    let given = env.filled(codewright_config::env::AUTH_CONTENT).map(str::to_owned);
    Vault::new(dirs.data.join("auth.json"), dirs.opencode_data.join("auth.json"), given)
}

/// Returns the service that signs in and refreshes tokens.
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

/// Started sign-ins, one for each provider.
#[derive(Default)]
pub(crate) struct SignIns(Mutex<HashMap<String, (usize, PendingSignIn, Instant)>>);

impl SignIns {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, (usize, PendingSignIn, Instant)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes the sign-in of a provider, and expired ones.
    pub(crate) fn forget(&self, provider: &str) {
        self.lock().retain(|name, (.., begun)| name != provider && begun.elapsed() < SIGN_IN_LIFE);
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

/// Reports whether a name is valid for a credential.
pub(crate) fn check_label(label: &str) -> Result<(), Error> {
    if label.chars().count() > MAX_LABEL_CHARS || label.chars().any(char::is_control) {
        return Err(Error::invalid(format!(
            "`label` must be one line of at most {MAX_LABEL_CHARS} characters"
        )));
    }
    Ok(())
}

/// Returns a credential with a name. An empty name removes it.
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

/// Returns the id of a sign-in method, made from its index.
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
    done.map_err(|_| Error::machine("the credentials could not be reached"))?.map_err(user_error)
}

/// These messages are our own text for the user.
pub(crate) fn user_error(error: codewright_llm::Error) -> Error {
    Error::invalid(error.to_string())
}

/// Returns an invalid credential without its secrets.
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
