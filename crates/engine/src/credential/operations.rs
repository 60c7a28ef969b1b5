//! Storing, naming and removing credentials, and signing in.

use std::collections::BTreeMap;
use std::time::Instant;

use codewright_llm::oauth::methods;
use codewright_llm::vault::{self, Credential};
use serde_json::{Value, json};

use super::{SIGN_IN_PROVIDERS, blocking, label, labelled, method_json, shape, user_error};
use crate::Error;
use crate::error::Resource;
use crate::inner::Inner;
use crate::interface::Providers;

impl Providers<'_> {
    /// Stores a credential in the form of `auth.json`.
    pub async fn set_credential(self, provider: &str, entry: &Value) -> Result<(), Error> {
        let credential = vault::credential(entry)
            .ok_or_else(|| Error::invalid(format!("Expected Auth, got {}", shape(entry))))?;
        store(self.0, provider, credential).await
    }

    /// Stores a key, with a name if the user chose one.
    pub async fn set_key(self, provider: &str, key: &str, label: Option<&str>) -> Result<(), Error> {
        let credential = Credential::Api { key: key.to_owned().into(), extra: serde_json::Map::new() };
        store(self.0, provider, labelled(credential, label)?).await
    }

    /// Removes a credential. A missing one is not an error.
    pub async fn remove_credential(self, provider: &str) -> Result<(), Error> {
        let (vault, name) = (self.0.sign_in.vault().clone(), provider.to_owned());
        blocking(move || vault.remove(&name).map(drop)).await?;
        self.0.credential_changed(provider).await;
        Ok(())
    }

    /// Returns the sign-in methods for `GET /provider/auth`.
    #[must_use]
    pub fn sign_in_methods(self) -> Value {
        let of = |provider: &&str| methods(provider).iter().map(method_json).collect::<Value>();
        let all = SIGN_IN_PROVIDERS.iter().map(|provider| ((*provider).to_owned(), of(provider)));
        Value::Object(all.collect())
    }

    /// Starts a sign-in. Returns the URL for the user, and whether the user has to enter a code.
    pub async fn begin_sign_in(
        self,
        provider: &str,
        method: usize,
        inputs: &BTreeMap<String, String>,
    ) -> Result<Value, Error> {
        // An older sign-in may use the same port.
        self.0.sign_ins.forget(provider);
        self.0.attempts.give_up(|of, _| of == provider).await;
        let begun = self.0.sign_in.begin(provider, method, inputs).await.map_err(user_error)?;
        let answer = json!({
            "url": begun.url,
            "method": if begun.is_automatic { "auto" } else { "code" },
            "instructions": begun.instructions,
        });
        self.0.sign_ins.lock().insert(provider.to_owned(), (method, begun, Instant::now()));
        Ok(answer)
    }

    /// Waits for the end of a sign-in and stores the credential. `code` comes from the user.
    pub async fn finish_sign_in(
        self,
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
        let credential = self.0.sign_in.finish(begun, pasted).await.map_err(user_error)?;
        store(self.0, provider, credential).await
    }

    /// Returns the names of the stored credentials by provider. Credentials without a name are missing.
    #[must_use]
    pub fn labels(self) -> BTreeMap<String, Option<String>> {
        // An unreadable file is reported when a directory is opened.
        let stored = self.0.sign_in.vault().read().unwrap_or_default();
        let all = stored.iter().map(|(provider, credential, _)| (provider.to_owned(), label(credential)));
        all.collect()
    }

    /// Changes the name of a stored credential.
    pub async fn set_label(self, provider: &str, label: &str) -> Result<(), Error> {
        let (vault, name, label) = (self.0.sign_in.vault().clone(), provider.to_owned(), label.to_owned());
        // The vault is locked, so that concurrently refreshed tokens are kept.
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
        self.0.credential_changed(provider).await;
        Ok(())
    }
}

/// Stores a credential and reopens all directories.
pub(crate) async fn store(inner: &Inner, provider: &str, credential: Credential) -> Result<(), Error> {
    let (vault, name) = (inner.sign_in.vault().clone(), provider.to_owned());
    blocking(move || vault.set(&name, &credential)).await?;
    inner.credential_changed(provider).await;
    Ok(())
}
