//! What an editor can choose for a session: the model, its effort, and the mode, which is an agent.

use agent_client_protocol::v1::schema::{
    SessionConfigOption, SessionConfigOptionCategory, SessionConfigSelectOption,
};
use codewright_client::{Client, Error};
use codewright_proto::{PromptModel, Session};
use serde_json::Value;

/// The value of the effort without a variant.
const DEFAULT_EFFORT: &str = "default";

/// A model that can be chosen.
#[derive(Debug, Clone, PartialEq)]
struct Model {
    provider: String,
    id: String,
    name: String,
    variants: Vec<String>,
    context: u64,
}

impl Model {
    fn value(&self) -> String {
        format!("{}/{}", self.provider, self.id)
    }
}

/// An agent that can be chosen.
#[derive(Debug, Clone, PartialEq)]
struct Mode {
    name: String,
    description: Option<String>,
}

/// What exists in a directory.
#[derive(Debug, Clone, Default)]
pub(crate) struct Menu {
    models: Vec<Model>,
    modes: Vec<Mode>,
    /// The model and the mode of a session that names none.
    model: Option<String>,
    mode: Option<String>,
}

/// What is chosen for a session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Choice {
    /// `provider/model`.
    pub(crate) model: Option<String>,
    pub(crate) variant: Option<String>,
    pub(crate) mode: Option<String>,
}

impl Choice {
    /// What the last prompt of a session used.
    pub(crate) fn of(session: &Session) -> Self {
        let model = session.model.as_ref();
        Self {
            model: model.map(|model| format!("{}/{}", model.provider_id, model.id)),
            variant: model.and_then(|model| model.variant.clone()),
            mode: session.agent.clone(),
        }
    }

    /// The model of a prompt.
    pub(crate) fn prompt_model(&self) -> Option<PromptModel> {
        let (provider, model) = self.model.as_deref()?.split_once('/')?;
        let (provider_id, model_id) = (provider.to_owned(), model.to_owned());
        Some(PromptModel { provider_id, model_id, variant: self.variant.clone() })
    }
}

impl Menu {
    /// Reads the models and agents of the client's directory.
    pub(crate) async fn read(client: &Client) -> Result<Self, Error> {
        let (providers, agents, config) =
            futures_util::future::try_join3(client.providers(), client.agents(), client.config()).await?;
        Ok(Self::of(&providers, &agents, &config))
    }

    fn of(providers: &Value, agents: &Value, config: &Value) -> Self {
        let models: Vec<_> = list(&providers["providers"]).iter().flat_map(models_of).collect();
        let modes: Vec<_> = list(agents).iter().filter_map(mode_of).collect();
        let configured = config["model"].as_str().map(str::to_owned);
        // The server's choice is null if nothing shows that the user wants a provider.
        let guess = || {
            let chosen = &providers["model"];
            Some(format!("{}/{}", chosen["providerID"].as_str()?, chosen["modelID"].as_str()?))
        };
        let model = configured.or_else(guess);
        let wanted =
            config["default_agent"].as_str().filter(|name| modes.iter().any(|mode| mode.name == *name));
        let mode = wanted.map(str::to_owned).or_else(|| modes.first().map(|mode| mode.name.clone()));
        Self { models, modes, model, mode }
    }

    fn model(&self, choice: &Choice) -> Option<&Model> {
        let wanted = choice.model.as_ref().or(self.model.as_ref())?;
        self.models.iter().find(|model| model.value() == *wanted)
    }

    /// The size of the model's context in tokens, or 0 if it is not known.
    pub(crate) fn context(&self, choice: &Choice) -> u64 {
        self.model(choice).map_or(0, |model| model.context)
    }

    /// Sets an option.
    ///
    /// # Errors
    ///
    /// Fails with a sentence if there is no such option or value.
    pub(crate) fn set(&self, choice: &mut Choice, option: &str, value: &str) -> Result<(), String> {
        match option {
            "model" if self.models.iter().any(|model| model.value() == value) => {
                if choice.model.as_deref() != Some(value) {
                    choice.variant = None;
                }
                choice.model = Some(value.to_owned());
            }
            "model" => return Err(format!("there is no model `{value}`")),
            "effort" if value == DEFAULT_EFFORT => choice.variant = None,
            "effort" => {
                let is_known =
                    self.model(choice).is_some_and(|model| model.variants.iter().any(|it| it == value));
                if !is_known {
                    return Err(format!("the model has no effort `{value}`"));
                }
                choice.variant = Some(value.to_owned());
            }
            "mode" if self.modes.iter().any(|mode| mode.name == value) => {
                choice.mode = Some(value.to_owned());
            }
            "mode" => return Err(format!("there is no mode `{value}`")),
            _ => return Err(format!("there is no option `{option}`")),
        }
        Ok(())
    }

    /// The options with their current values.
    pub(crate) fn options(&self, choice: &Choice) -> Vec<SessionConfigOption> {
        let mut options = Vec::new();
        if let Some(current) = choice.model.clone().or_else(|| self.model.clone()) {
            let values: Vec<_> = self
                .models
                .iter()
                .map(|model| SessionConfigSelectOption::new(model.value(), model.name.clone()))
                .collect();
            let model = SessionConfigOption::select("model", "Model", current, values);
            options.push(model.category(SessionConfigOptionCategory::Model));
        }
        let variants = self.model(choice).map(|model| model.variants.as_slice()).unwrap_or_default();
        if !variants.is_empty() {
            let named = variants.iter().map(String::as_str).filter(|variant| *variant != DEFAULT_EFFORT);
            let values: Vec<_> = named
                .chain([DEFAULT_EFFORT])
                .map(|variant| SessionConfigSelectOption::new(variant.to_owned(), capitalized(variant)))
                .collect();
            let current = choice.variant.clone().unwrap_or_else(|| DEFAULT_EFFORT.to_owned());
            let effort = SessionConfigOption::select("effort", "Effort", current, values);
            let effort = effort.description("How much the model thinks".to_owned());
            options.push(effort.category(SessionConfigOptionCategory::ThoughtLevel));
        }
        if let Some(current) = choice.mode.clone().or_else(|| self.mode.clone()) {
            let values: Vec<_> = self
                .modes
                .iter()
                .map(|mode| {
                    SessionConfigSelectOption::new(mode.name.clone(), mode.name.clone())
                        .description(mode.description.clone())
                })
                .collect();
            let mode = SessionConfigOption::select("mode", "Session Mode", current, values);
            options.push(mode.category(SessionConfigOptionCategory::Mode));
        }
        options
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn models_of(provider: &Value) -> Vec<Model> {
    let id = provider["id"].as_str().unwrap_or_default();
    let provider_name = provider["name"].as_str().unwrap_or(id);
    let models = provider["models"].as_object();
    let model = |(model, info): (&String, &Value)| Model {
        provider: id.to_owned(),
        id: model.clone(),
        name: format!("{provider_name}/{}", info["name"].as_str().unwrap_or(model)),
        variants: info["variants"].as_object().map(|them| them.keys().cloned().collect()).unwrap_or_default(),
        context: info["limit"]["context"].as_u64().unwrap_or(0),
    };
    models.into_iter().flatten().map(model).collect()
}

/// Agents of subagents and hidden ones are no modes.
fn mode_of(agent: &Value) -> Option<Mode> {
    if agent["mode"] == "subagent" || agent["hidden"] == true {
        return None;
    }
    let name = agent["name"].as_str()?.to_owned();
    Some(Mode { name, description: agent["description"].as_str().map(str::to_owned) })
}

fn capitalized(word: &str) -> String {
    let mut chars = word.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn menu() -> Menu {
        Menu::of(
            &json!({
                "providers": [{"id": "p", "name": "P", "models": {
                    "a": {"name": "A", "limit": {"context": 100}, "variants": {"low": {}, "high": {}}},
                    "b": {"name": "B", "limit": {"context": 200}},
                }}],
                "default": {"p": "b"},
                "model": {"providerID": "p", "modelID": "b", "guessed": true},
            }),
            &json!([
                {"name": "build", "mode": "primary", "description": "d"},
                {"name": "explore", "mode": "subagent"},
                {"name": "title", "mode": "primary", "hidden": true},
                {"name": "plan", "mode": "all"},
            ]),
            &json!({"default_agent": "plan"}),
        )
    }

    #[test]
    fn only_models_and_agents_that_exist_can_be_chosen() {
        let menu = menu();
        let mut choice = Choice::default();
        assert_eq!(menu.context(&choice), 200, "the provider's default");
        for (option, value, is_valid) in [
            ("model", "p/a", true),
            ("model", "p/c", false),
            ("effort", "high", true),
            ("effort", "huge", false),
            ("mode", "build", true),
            ("mode", "explore", false),
            ("mode", "title", false),
            ("color", "red", false),
        ] {
            assert_eq!(menu.set(&mut choice, option, value).is_ok(), is_valid, "{option} {value}");
        }
        let expected =
            Choice { model: Some("p/a".into()), variant: Some("high".into()), mode: Some("build".into()) };
        assert_eq!(choice, expected);
        menu.set(&mut choice, "model", "p/b").expect("a model");
        assert_eq!(choice.variant, None, "the effort belongs to the model");
    }

    #[test]
    fn the_effort_is_offered_only_for_models_with_variants() {
        let ids = |choice: &Choice| -> Vec<String> {
            menu().options(choice).iter().map(|option| option.id.to_string()).collect()
        };
        assert_eq!(ids(&Choice::default()), ["model", "mode"]);
        let choice = Choice { model: Some("p/a".into()), ..Choice::default() };
        assert_eq!(ids(&choice), ["model", "effort", "mode"]);
    }
}
