//! Signs in with the plugins of the user.
//!
//! The engine is only opened for it, and a configuration that cannot be read does not prevent other sign-ins.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Context as _, bail};
use codewright_config::Env;
use codewright_engine::plugin_host::{AuthMethod, AuthPrompt};
use codewright_engine::{Engine, Instance, SignInAnswer};
use codewright_llm::oauth::SignIn;
use codewright_llm::vault::Credential;
use tokio::runtime::Runtime;

use super::{Choice, TRIES, key, line, metadata, pick, pick_method, print_prompt};
use crate::clean::clean_line;
use crate::connection::{engine_error, open_engine, working_directory};
use crate::style;

/// The sign-ins of the plugins of the current directory.
pub(super) struct PluginSignIns {
    runtime: Runtime,
    open: Option<(Engine, Arc<Instance>)>,
    methods: BTreeMap<String, Vec<AuthMethod>>,
}

impl PluginSignIns {
    /// Starts the plugins. Without plugins nothing is started.
    pub(super) fn open(env: &Env) -> anyhow::Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        let opened = runtime.block_on(async {
            let engine = open_engine(env.clone(), &working_directory(None)?).await?;
            let instance = engine.instance(engine.default_directory()).await.map_err(engine_error);
            let methods = match &instance {
                Ok(instance) => engine.extensions().plugin_sign_ins(instance).await,
                Err(_) => BTreeMap::new(),
            };
            match instance {
                Ok(instance) if !methods.is_empty() => Ok((Some((engine, instance)), methods)),
                Ok(_) => engine.close().await.map(|()| (None, methods)).map_err(engine_error),
                Err(error) => {
                    drop(engine.close().await);
                    Err(error)
                }
            }
        });
        let (open, methods) = opened.unwrap_or_else(|error: anyhow::Error| {
            style::warning(&format!("the sign-ins of plugins are missing: {error:#}"));
            (None, BTreeMap::new())
        });
        Ok(Self { runtime, open, methods })
    }

    /// Ends the plugins.
    pub(super) fn close(self) {
        if let Some((engine, _)) = self.open {
            // Everything is stored already.
            drop(self.runtime.block_on(engine.close()));
        }
        // A thread may still be reading a line of the terminal.
        self.runtime.shutdown_background();
    }

    /// The providers of the plugins.
    pub(super) fn providers(&self) -> impl Iterator<Item = &str> {
        self.methods.keys().map(String::as_str)
    }

    /// Reports whether a plugin signs in to a provider.
    pub(super) fn has(&self, provider: &str) -> bool {
        self.methods.contains_key(provider)
    }

    /// Signs in with a plugin and stores the credential.
    pub(super) fn login(&self, sign_in: &SignIn, provider: &str, label: Option<&str>) -> anyhow::Result<()> {
        let methods = self.methods.get(provider).map(Vec::as_slice).unwrap_or_default();
        let labels: Vec<_> = methods.iter().map(|method| method.label.as_str()).collect();
        let takes_key = methods.iter().position(|method| method.kind == "api");
        let index = pick_method(provider, &labels, takes_key, label)?;
        let method = methods.get(index).context("the method is not in the list")?;
        let inputs = self.ask(provider, index, method)?;
        if method.kind == "api" && !method.authorizes {
            let credential = Credential::Api { key: key(provider)?.as_str().into(), extra: metadata(inputs) };
            return Ok(sign_in.vault().set(provider, &credential)?);
        }
        self.authorize(provider, index, &inputs)
    }

    fn engine(&self) -> anyhow::Result<(&Engine, &Arc<Instance>)> {
        self.open.as_ref().map(|(engine, instance)| (engine, instance)).context("the plugins have ended")
    }

    /// Asks the questions of a method.
    fn ask(
        &self,
        provider: &str,
        index: usize,
        method: &AuthMethod,
    ) -> anyhow::Result<BTreeMap<String, String>> {
        let mut inputs = BTreeMap::new();
        for prompt in method.prompts.iter().flatten() {
            let check = |value: Option<&str>| {
                let (engine, instance) = self.engine()?;
                let answer =
                    SignInAnswer { provider, method: index, key: &prompt.key, value, inputs: &inputs };
                let checked = engine.extensions().check_answer(instance, answer);
                self.runtime.block_on(checked).map_err(engine_error)
            };
            if check(None)?.is_none() {
                continue;
            }
            let mut tries = 0;
            let answer = loop {
                let answer = answer(prompt)?;
                let fault = if prompt.has_validate { check(Some(&answer))? } else { None };
                let Some(fault) = fault.filter(|fault| !fault.is_empty()) else { break answer };
                print_prompt(&format!("│  {}\n", clean_line(&fault)));
                tries += 1;
                if tries == TRIES {
                    bail!("nothing was entered; nothing was changed");
                }
            };
            inputs.insert(prompt.key.clone(), answer);
        }
        Ok(inputs)
    }

    /// Lets the plugin sign in. The engine stores the credential.
    fn authorize(
        &self,
        provider: &str,
        method: usize,
        inputs: &BTreeMap<String, String>,
    ) -> anyhow::Result<()> {
        let (engine, instance) = self.engine()?;
        let work = async {
            let begun = engine.extensions().begin_sign_in(instance, provider, method, Some(inputs)).await;
            let page = begun.map_err(engine_error)?.context("the plugins have ended")?;
            if page.is_null() {
                return Ok(());
            }
            let text = |key: &str| clean_line(page[key].as_str().unwrap_or_default());
            print_prompt(&format!("│  Go to: {}\n│  {}\n", text("url"), text("instructions")));
            let code = match page["method"].as_str() {
                Some("code") => {
                    print_prompt("◆  Code: ");
                    Some(tokio::task::spawn_blocking(line).await??)
                }
                _ => {
                    print_prompt("│  Waiting …\n");
                    None
                }
            };
            engine.extensions().finish_sign_in(provider, method, code).await.map_err(engine_error)?;
            Ok(())
        };
        self.runtime.block_on(async {
            tokio::select! {
                done = work => done,
                _ = tokio::signal::ctrl_c() => bail!("the sign-in was cancelled; nothing was changed"),
            }
        })
    }
}

/// Reads the answer to a question.
fn answer(prompt: &AuthPrompt) -> anyhow::Result<String> {
    let message = clean_line(&prompt.message);
    let options = prompt.options.as_ref().and_then(|options| options.as_array());
    let Some(options) = options.filter(|_| prompt.kind == "select") else {
        let example = prompt.placeholder.as_deref().map(clean_line);
        let example = example.map(|example| format!(" ({example})")).unwrap_or_default();
        print_prompt(&format!("│  {message}{example}: "));
        return line();
    };
    let text = |option: &serde_json::Value, key: &str| option[key].as_str().unwrap_or_default().to_owned();
    let shown: Vec<_> = options
        .iter()
        .map(|option| match text(option, "hint") {
            hint if hint.is_empty() => clean_line(&text(option, "label")),
            hint => clean_line(&format!("{} ({hint})", text(option, "label"))),
        })
        .collect();
    let named = |typed: &str| options.iter().map(|option| text(option, "value")).find(|value| value == typed);
    match pick(&message, &shown, named)? {
        Choice::Number(index) => {
            Ok(options.get(index).map(|option| text(option, "value")).unwrap_or_default())
        }
        Choice::Text(value) => Ok(value),
    }
}
