//! Signing in to providers with plugins of the user.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use codewright_llm::vault;
use codewright_plugins::{Auth, AuthMethod, Plugins};
use serde_json::{Map, Value, json};

use super::sign_ins::Waiting;
use crate::Error;
use crate::credential::operations::store;
use crate::extension;
use crate::instance::Instance;
use crate::interface::Extensions;
use crate::packages::Owner;

/// The time for the user.
const LIMIT: Duration = Duration::from_secs(15 * 60);
/// The time in which a plugin checks an answer.
const CHECK_LIMIT: Duration = Duration::from_secs(10);

/// A user's answer to a question of a plugin before a sign-in.
#[derive(Debug, Clone, Copy)]
pub struct SignInAnswer<'a> {
    /// The provider.
    pub provider: &'a str,
    /// The position of the method.
    pub method: usize,
    /// The name of the question.
    pub key: &'a str,
    /// The answer. With `None`, only whether the plugin skips the question is checked.
    pub value: Option<&'a str>,
    /// The earlier answers.
    pub inputs: &'a BTreeMap<String, String>,
}

/// A plugin that signs in to a provider.
struct Of {
    plugins: Plugins,
    index: usize,
    auth: Auth,
}

impl Extensions<'_> {
    /// Returns the user's plugins that sign in to providers. Of several for a provider the last one counts.
    async fn sign_ins(self, instance: &Arc<Instance>) -> BTreeMap<String, Of> {
        if !instance.has_plugins() {
            return BTreeMap::new();
        }
        extension::open::ready(self.0, instance).await;
        let mut found = BTreeMap::new();
        for extension in self.0.plugins.find(&instance.directory) {
            // A repository must not receive what the user enters.
            if extension.wanted.owner == Owner::Repository {
                continue;
            }
            for loaded in extension.plugins.loaded() {
                let Some(auth) = loaded.auth else { continue };
                let of = Of { plugins: extension.plugins.clone(), index: loaded.index, auth: auth.clone() };
                found.insert(auth.provider, of);
            }
        }
        found
    }

    /// Returns the sign-in methods of plugins by provider, in the form of `GET /provider/auth`.
    pub async fn sign_in_methods(self, instance: &Arc<Instance>) -> Map<String, Value> {
        let methods = |of: &Of| -> Value {
            let method = |method: &AuthMethod| {
                let mut shown = json!({ "type": method.kind, "label": method.label });
                if let Some(prompts) = method.prompts.as_ref().filter(|prompts| !prompts.is_empty()) {
                    shown["prompts"] = serde_json::to_value(prompts).unwrap_or_default();
                }
                shown
            };
            of.auth.methods.iter().map(method).collect()
        };
        let all = self.sign_ins(instance).await;
        all.iter().map(|(provider, of)| (provider.clone(), methods(of))).collect()
    }

    /// Returns the sign-in methods of plugins by provider.
    pub async fn plugin_sign_ins(self, instance: &Arc<Instance>) -> BTreeMap<String, Vec<AuthMethod>> {
        let all = self.sign_ins(instance).await;
        all.into_iter().map(|(provider, of)| (provider, of.auth.methods)).collect()
    }

    /// Lets a plugin validate an answer. Returns `None` if the plugin skips the question, an empty text if the answer is
    /// valid, and otherwise the reason why it is not.
    pub async fn check_answer(
        self,
        instance: &Arc<Instance>,
        answer: SignInAnswer<'_>,
    ) -> Result<Option<String>, Error> {
        let SignInAnswer { provider, method, key, value, inputs } = answer;
        let Some(Of { plugins, index, .. }) = self.sign_ins(instance).await.remove(provider) else {
            return Ok(None);
        };
        let params =
            json!({ "index": index, "method": method, "key": key, "value": value, "inputs": inputs });
        let checked = plugins.request(index, "auth.prompt", &params, CHECK_LIMIT).await;
        let checked = checked.map_err(|failure| Error::invalid(failure.to_string()))?;
        let fault = checked["error"].as_str().unwrap_or_default().to_owned();
        Ok((checked["visible"] == true).then_some(fault))
    }

    /// Starts a sign-in of a plugin. Returns `None` if no plugin signs in to the provider, and otherwise the page for the
    /// user. A method that needs no page stores the credential at once and returns null. The plugin sees whether there
    /// are `inputs`: without any it is a client that opens the page itself.
    pub async fn begin_sign_in(
        self,
        instance: &Arc<Instance>,
        provider: &str,
        method: usize,
        inputs: Option<&BTreeMap<String, String>>,
    ) -> Result<Option<Value>, Error> {
        let Some(Of { plugins, index, .. }) = self.sign_ins(instance).await.remove(provider) else {
            return Ok(None);
        };
        let params = json!({ "index": index, "method": method, "inputs": inputs });
        let answer = plugins.request(index, "auth.authorize", &params, LIMIT).await;
        let answer = answer.map_err(|failure| Error::invalid(failure.to_string()))?;
        let Some(handle) = answer["handle"].as_str().map(str::to_owned) else {
            self.keep(provider, &answer).await?;
            return Ok(Some(Value::Null));
        };
        self.0.plugins.sign_ins.add(provider, Waiting { plugins, index, method, handle });
        let text = |key: &str| answer[key].as_str().unwrap_or_default();
        Ok(Some(json!({
            "url": text("url"),
            "method": text("method"),
            "instructions": text("instructions"),
        })))
    }

    /// Waits for the end of a plugin's sign-in and stores the credential. Returns whether a plugin had begun one.
    pub async fn finish_sign_in(
        self,
        provider: &str,
        method: usize,
        code: Option<String>,
    ) -> Result<bool, Error> {
        let Some(waiting) = self.0.plugins.sign_ins.take(provider, method) else { return Ok(false) };
        let Waiting { plugins, index, handle, .. } = waiting;
        let mut params = json!({ "handle": handle });
        if let Some(code) = code {
            params["code"] = code.into();
        }
        let answer = plugins.request(index, "auth.callback", &params, LIMIT).await;
        let answer = answer.map_err(|failure| Error::invalid(failure.to_string()))?;
        self.keep(provider, &answer).await?;
        Ok(true)
    }

    /// Stores what a sign-in returned.
    async fn keep(self, provider: &str, answer: &Value) -> Result<(), Error> {
        if answer["type"] != "success" {
            return Err(Error::invalid(format!("the sign-in to `{provider}` failed")));
        }
        let mut entry = answer.as_object().cloned().unwrap_or_default();
        let named = entry.remove("provider").and_then(|named| named.as_str().map(str::to_owned));
        let kind = if entry.contains_key("key") { "api" } else { "oauth" };
        entry.insert("type".to_owned(), kind.into());
        let credential = vault::credential(&Value::Object(entry))
            .ok_or_else(|| Error::invalid(format!("the sign-in to `{provider}` returned no credential")))?;
        store(self.0, named.as_deref().unwrap_or(provider), credential).await
    }
}
