//! The creation of an agent from a description, by a model.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use codewright_llm::{Message, ModelEvent, Request, UserContent, family};
use serde::Deserialize;

use crate::debug::chosen;
use crate::instance::Instance;
use crate::interface::Instances;
use crate::{Error, prompts, request};

const DEADLINE: Duration = Duration::from_secs(180);
/// The most of an answer that is read.
const MAX_ANSWER_BYTES: usize = 256 * 1024;
/// The longest description.
const MAX_DESCRIPTION_BYTES: usize = 64 * 1024;
const TEMPERATURE: f64 = 0.3;

/// An agent that a model wrote.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Generated {
    /// The name.
    pub identifier: String,
    /// The description for other agents.
    pub when_to_use: String,
    /// The system prompt.
    pub system_prompt: String,
}

impl Instances<'_> {
    /// Has a model write an agent; the configured model without a name.
    pub async fn generate_agent(
        self,
        instance: &Arc<Instance>,
        description: &str,
        model: Option<&str>,
    ) -> Result<Generated, Error> {
        let description = description.trim();
        if description.is_empty() || description.len() > MAX_DESCRIPTION_BYTES {
            return Err(Error::invalid("describe the agent in a few sentences: what it does and when"));
        }
        let model = chosen(instance, instance.agent(&instance.agent_name(None)?)?, model)?;
        let taken: Vec<_> = instance.agents.iter().map(|agent| agent.name.as_str()).collect();
        let text = format!("Names already used: {}\n\nThe agent:\n{description}", taken.join(", "));
        let request = Request {
            system: prompts::GENERATE.trim_end().to_owned(),
            messages: vec![Message::User(vec![UserContent::Text(text)])],
            max_output_tokens: request::max_output_tokens(&model),
            temperature: model.capabilities.temperature.then_some(TEMPERATURE),
            options: family::options(&model),
            ..Request::default()
        };
        let asked = async {
            let mut stream = self.0.llm.stream(&model, &request).await?;
            let mut answer = String::new();
            while let Some(event) = stream.next().await {
                match event? {
                    ModelEvent::TextDelta(text) => answer.push_str(&text),
                    ModelEvent::TextWasReasoning => answer.clear(),
                    ModelEvent::Finish { .. } => break,
                    _ => {}
                }
                if answer.len() > MAX_ANSWER_BYTES {
                    break;
                }
            }
            Ok::<_, Error>(answer)
        };
        let answer = tokio::time::timeout(DEADLINE, asked).await;
        let answer = answer.map_err(|_| {
            Error::invalid(format!("the model did not write the agent within {} s", DEADLINE.as_secs()))
        })??;
        let generated = read(&answer)
            .ok_or_else(|| Error::invalid("the model did not answer with an agent's definition"))?;
        if taken.contains(&generated.identifier.as_str()) {
            return Err(Error::invalid(format!("there is an agent `{}` already", generated.identifier)));
        }
        Ok(generated)
    }
}

/// Returns the JSON object in an answer, with or without text around it.
fn read(answer: &str) -> Option<Generated> {
    let answer = answer.rsplit_once("</think>").map_or(answer, |(_, rest)| rest);
    let object = answer.get(answer.find('{')?..=answer.rfind('}')?)?;
    let mut generated: Generated = serde_json::from_str(object).ok()?;
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    generated.identifier = generated.identifier.trim().to_lowercase().replace([' ', '_'], "-");
    // The name becomes that of a file.
    let is_named = !generated.identifier.is_empty() && generated.identifier.chars().all(fits);
    let is_file = Path::new(&generated.identifier).components().count() == 1;
    (is_named && is_file && !generated.system_prompt.trim().is_empty()).then_some(generated)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_is_read_from_an_answer_with_other_text() {
        let object = r#"{"identifier": "Test Runner", "whenToUse": "Use…", "systemPrompt": "You…"}"#;
        for answer in [
            object.to_owned(),
            format!("```json\n{object}\n```"),
            format!("<think>{{}}</think>Here: {object}"),
        ] {
            assert_eq!(read(&answer).unwrap().identifier, "test-runner", "{answer}");
        }
        for answer in ["", "{}", "no", r#"{"identifier": "../x", "whenToUse": "", "systemPrompt": "x"}"#] {
            assert_eq!(read(answer), None, "{answer}");
        }
    }
}
