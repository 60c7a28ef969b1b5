//! The check of a new credential, and the model that it makes available.

use std::time::Duration;

use codewright_config::Env;
use codewright_engine::{Engine, Instance, KeyVerdict};

use crate::clean::clean_line;
use crate::connection::{open_engine, working_directory};

/// The longest wait for the provider. The credential is kept without an answer.
const DEADLINE: Duration = Duration::from_secs(4);

/// What was just stored.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Subject {
    /// A key, which the provider has not seen yet.
    Key,
    /// A sign-in, which the provider has just made.
    SignIn,
}

/// Returns the lines about a credential that was just stored: whether the provider accepts it, and which model is used.
pub(super) fn confirm(env: &Env, provider: &str, subject: Subject) -> String {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let Ok(runtime) = runtime else { return String::new() };
    let lines = runtime.block_on(async {
        let opened = async { open_engine(env.clone(), &working_directory(None)?).await };
        // The credential is stored; the next command reports why the directory cannot be opened.
        let Ok(engine) = opened.await else { return String::new() };
        let lines = tokio::time::timeout(2 * DEADLINE, describe(&engine, provider, subject))
            .await
            .unwrap_or_default();
        drop(engine.close().await);
        lines
    });
    runtime.shutdown_background();
    lines
}

async fn describe(engine: &Engine, provider: &str, subject: Subject) -> String {
    let Ok(instance) = engine.instance(engine.default_directory()).await else { return String::new() };
    let verdict = match subject {
        Subject::Key => format!("{}\n", clean_line(&verdict(engine, &instance, provider).await)),
        Subject::SignIn => String::new(),
    };
    let listed = instance.providers_json();
    let model = match listed["default"][provider].as_str() {
        Some(model) => {
            let name = format!("{provider}/{model}");
            format!(
                "●  Its model is {name}. Others: `codewright models {provider}`, then `--model` or /models."
            )
        }
        None => format!(
            "●  Choose a model: `codewright models {provider}` lists them, then `--model` or /models."
        ),
    };
    format!("{verdict}{}\n", clean_line(&model))
}

/// What the provider says about the key.
async fn verdict(engine: &Engine, instance: &Instance, provider: &str) -> String {
    match engine.providers().probe(instance, Some(provider), DEADLINE).await {
        Ok(probe) => match probe.verdict {
            KeyVerdict::Accepted => "●  The provider accepts the credential.".to_owned(),
            KeyVerdict::Refused(why) => format!("▲  The provider refuses the credential: {why}"),
            KeyVerdict::Unchecked(why) => format!("●  The credential was not checked: {why}"),
            KeyVerdict::Unreachable(why) => {
                format!(
                    "▲  The credential was saved without a check, because the provider cannot be reached: {why}"
                )
            }
        },
        Err(error) => format!("▲  The credential was not checked: {error}"),
    }
}
