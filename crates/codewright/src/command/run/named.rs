//! The model and the command that a user names on the command line.

use anyhow::{Context as _, bail};
use codewright_client::{Client, slash_command};
use codewright_llm::catalog::Catalog;
use codewright_proto::PromptModel;
use serde_json::Value;

use crate::command::models::can_be_agent;
use crate::connection::client_error;
use crate::style;

/// The most names in an error.
const MAX_NAMES: usize = 5;

/// Returns the model that `--model` names: in full, or by a part of a name that only one model has.
///
/// # Errors
///
/// Fails with the candidates if the name is not written `provider/model` and does not name one model.
pub(crate) async fn model(client: &Client, written: Option<&str>) -> anyhow::Result<Option<PromptModel>> {
    let Some(written) = written else { return Ok(None) };
    let listed = client.providers().await.map_err(client_error)?;
    let (provider_id, model_id) = resolve(written, &names(&listed))?;
    Ok(Some(PromptModel { provider_id, model_id, variant: None }))
}

/// Says on standard error which model a prompt without a choice uses, if the server had to guess.
pub(crate) async fn note_guess(client: &Client, agent: Option<&str>) {
    // If a list cannot be read, the prompt fails with the reason.
    let Ok((listed, agents, config)) =
        futures_util::future::try_join3(client.providers(), client.agents(), client.config()).await
    else {
        return;
    };
    let agent = agent.or_else(|| config["default_agent"].as_str()).unwrap_or("build");
    let agents = agents.as_array().map(Vec::as_slice).unwrap_or_default();
    if agents.iter().any(|it| it["name"] == agent && it["model"].is_object()) {
        return;
    }
    let chosen = &listed["model"];
    if chosen["guessed"] != true || names(&listed).len() < 2 {
        return;
    }
    if let (Some(provider), Some(model)) = (chosen["providerID"].as_str(), chosen["modelID"].as_str()) {
        style::note(&format!(
            "no model was chosen: using {provider}/{model}. Choose one with `--model`, or set `model` in opencode.json"
        ));
    }
}

/// The models that can be agents as `provider/model`. Those of a service that takes prompts without a key have to be
/// named in full.
fn names(listed: &Value) -> Vec<String> {
    let providers = listed["providers"].as_array().into_iter().flatten();
    let providers = providers.filter(|provider| provider["options"]["apiKey"] != "public");
    let models = providers.flat_map(|provider| {
        let id = provider["id"].as_str().unwrap_or_default();
        let models = provider["models"].as_object().into_iter().flatten();
        models.filter(|(_, model)| can_be_agent(model)).map(move |(model, _)| format!("{id}/{model}"))
    });
    models.collect()
}

/// Returns the provider and the model of a written name.
fn resolve(written: &str, names: &[String]) -> anyhow::Result<(String, String)> {
    let split =
        |name: &str| codewright_config::parse_model(name).map(|model| (model.provider_id, model.model_id));
    let written_model = split(written);
    // The server knows models that are not listed, and suggests names for unknown ones.
    // A name of a provider without a key must not become a model of another one that has this model, too.
    let is_listed =
        |provider: &str| names.iter().any(|name| name.split_once('/').is_some_and(|(id, _)| id == provider));
    if let Some((provider, model)) = &written_model
        && (is_listed(provider) || Catalog::embedded().provider(provider).is_some())
    {
        return Ok((provider.clone(), model.clone()));
    }
    let lower = written.to_ascii_lowercase();
    let is_id = |name: &&String| name.split_once('/').is_some_and(|(_, id)| id == written);
    let contains = |name: &&String| name.to_ascii_lowercase().contains(&lower);
    let mut found: Vec<_> = names.iter().filter(is_id).collect();
    if found.is_empty() && !written.trim().is_empty() {
        found = names.iter().filter(contains).collect();
    }
    match (found.as_slice(), written_model) {
        ([name], _) => split(name).with_context(|| format!("the model `{name}` has no provider")),
        ([], Some(model)) => Ok(model),
        ([], None) => {
            let similar = similar(written, names);
            let advice = match similar.is_empty() {
                true => "write provider/model, and `codewright models` lists the models".to_owned(),
                false => format!("did you mean {}?", similar.join(", ")),
            };
            bail!("no model is named `{written}`; {advice}")
        }
        (found, _) => {
            // The newest versions have the highest numbers.
            let shown: Vec<_> = found.iter().rev().take(MAX_NAMES).map(|name| name.as_str()).collect();
            let more = found.len().saturating_sub(MAX_NAMES);
            let more = if more == 0 { String::new() } else { format!(" and {more} more") };
            bail!(
                "`{written}` is a part of {} models: {}{more}; name one of them",
                found.len(),
                shown.join(", ")
            )
        }
    }
}

fn words(name: &str) -> impl Iterator<Item = &str> {
    name.split(|character: char| !character.is_alphanumeric())
}

/// Returns the names that are nearest to a written one: as a whole, or by one of their words.
fn similar(written: &str, names: &[String]) -> Vec<String> {
    let whole = codewright_config::nearest(written, names.iter().map(String::as_str), MAX_NAMES);
    if !whole.is_empty() {
        return whole;
    }
    let all = names.iter().flat_map(|name| words(name)).filter(|word| !word.is_empty());
    let nearest = codewright_config::nearest(written, all, 1);
    let has_word =
        |name: &&String| nearest.first().is_some_and(|word| words(name).any(|found| found == word));
    names.iter().rev().filter(has_word).take(MAX_NAMES).cloned().collect()
}

/// Returns the command and its arguments: the one of `--command`, or the one that the prompt begins with.
///
/// # Errors
///
/// Fails with the nearest name if there is no such command.
pub(crate) async fn command(
    client: &Client,
    written: Option<&str>,
    text: &str,
) -> anyhow::Result<Option<(String, String)>> {
    if let Some(name) = written {
        return Ok(Some((name.to_owned(), text.to_owned())));
    }
    let Some((name, arguments)) = slash_command(text) else { return Ok(None) };
    let commands = client.commands().await.map_err(client_error)?;
    let names: Vec<_> =
        commands.as_array().into_iter().flatten().filter_map(|it| it["name"].as_str()).collect();
    if names.contains(&name) {
        return Ok(Some((name.to_owned(), arguments.to_owned())));
    }
    let similar = codewright_config::nearest(name, names.iter().copied(), 1);
    let similar = similar.first().map(|similar| format!("; did you mean `/{similar}`?")).unwrap_or_default();
    bail!("unknown command `/{name}`{similar}\nto send this text as a prompt, begin it with a space")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unique_part_of_a_name_names_a_model() {
        let names =
            ["a/claude-sonnet-5", "a/claude-opus-5", "b/gpt-5", "b/gpt-5-mini", "c/gpt-5", "c/openai/gpt-5"]
                .map(str::to_owned);
        let model = |provider: &str, id: &str| Ok((provider.to_owned(), id.to_owned()));
        for (written, expected) in [
            ("a/claude-opus-5", model("a", "claude-opus-5")),
            ("sonnet", model("a", "claude-sonnet-5")),
            ("Opus", model("a", "claude-opus-5")),
            ("gpt-5-mini", model("b", "gpt-5-mini")),
            ("b/gpt-5", model("b", "gpt-5")),
            ("c/new", model("c", "new")),
            ("d/other/model", model("d", "other/model")),
            ("openai/gpt-5", model("openai", "gpt-5")),
            ("gpt-5", Err("`gpt-5` is a part of 2 models: c/gpt-5, b/gpt-5")),
            ("claude", Err("`claude` is a part of 2 models")),
            ("sonet", Err("did you mean")),
            ("zzzz", Err("`codewright models` lists the models")),
            ("", Err("`codewright models` lists the models")),
        ] {
            let found = resolve(written, &names).map_err(|error| error.to_string());
            match expected {
                Ok(expected) => assert_eq!(found, Ok(expected), "{written}"),
                Err(part) => {
                    assert!(found.as_ref().is_err_and(|error| error.contains(part)), "{written}: {found:?}");
                }
            }
        }
    }
}
