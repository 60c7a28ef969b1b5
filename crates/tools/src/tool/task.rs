//! Hands work to another agent.

use std::time::Duration;

use serde_json::{Value, json};

use crate::host::Work;
use crate::{Ask, Facts, Output, Tool, ToolCx, ToolError};

const DESCRIPTION: &str = include_str!("task.txt");
/// What the description says more where work may go on in the background.
const IN_BACKGROUND: &str = "- Set `background` where you can go on without the result: the call comes back at \
                             once, and the report arrives later as a message. Do not wait or ask for it.\n";
/// How long an agent may work: long enough for people to answer what it asks.
const DEADLINE: Duration = Duration::from_secs(24 * 60 * 60);
/// Bytes of a prompt.
const MAX_PROMPT_BYTES: usize = 1024 * 1024;
/// Bytes of a description, which becomes a title.
const MAX_DESCRIPTION_BYTES: usize = 1024;

/// Hands work to another agent.
#[derive(Debug, Clone, Copy, Default)]
pub struct Task {
    /// Whether work may go on in the background.
    pub background: bool,
}

impl Tool for Task {
    const NAME: &'static str = "task";
    const FACTS: &'static Facts = &Facts { lists_agents: true, position: Some(8), ..Facts::PLAIN };
    const DEADLINE: Duration = DEADLINE;
    type Input = Work;

    /// Whoever offers the tool puts the agents in the place of `{agents}`.
    fn description(&self) -> String {
        if self.background { format!("{DESCRIPTION}{IN_BACKGROUND}") } else { DESCRIPTION.to_owned() }
    }

    fn parameters(&self) -> Value {
        let mut schema = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "properties": {
                "description": {"type": "string", "description": "The work in three to five words"},
                "prompt": {"type": "string", "description": "What the agent is to do"},
                "subagent_type": {"type": "string", "description": "Which agent is to do it"},
                "task_id": {
                    "type": "string",
                    "description": "The id that an earlier call gave back, to go on with the agent where it \
                                    stopped; leave it out to begin anew",
                },
                "command": {"type": "string", "description": "The command that led to this, if one did"},
            },
            "required": ["description", "prompt", "subagent_type"],
        });
        if self.background {
            schema["properties"]["background"] =
                json!({"type": "boolean", "description": "Whether to go on without waiting for the result"});
        }
        schema
    }

    async fn asks(&self, input: &Work, _cx: &ToolCx) -> Result<Vec<Ask>, ToolError> {
        let ask = Ask::new(Self::NAME, vec![input.agent.clone()]);
        let ask = ask.with("description", input.description.as_str());
        Ok(vec![ask.with("subagent_type", input.agent.as_str())])
    }

    async fn run(&self, mut input: Work, cx: &ToolCx) -> Result<Output, ToolError> {
        for (name, text, limit) in [
            ("prompt", &input.prompt, MAX_PROMPT_BYTES),
            ("description", &input.description, MAX_DESCRIPTION_BYTES),
        ] {
            if text.len() > limit {
                return Err(ToolError::Model(format!("`{name}` is too long: {limit} bytes at most")));
            }
        }
        input.background = input.background.filter(|_| self.background);
        let title = input.description.clone();
        let handed = cx.host.delegate(input).await?;
        let output = match &handed.result {
            Some(result) => report(&handed.task_id, "completed", result),
            None => format!(
                "<task id=\"{}\" state=\"running\">\nThe agent works in the background; its report will come as a \
                 message.\n</task>",
                handed.task_id
            ),
        };
        Ok(Output { title, output, metadata: handed.metadata, ..Output::default() }.with("truncated", false))
    }
}

/// The report of an agent as models read it.
pub(crate) fn report(task_id: &str, state: &str, result: &str) -> String {
    format!("<task id=\"{task_id}\" state=\"{state}\">\n<task_result>\n{result}\n</task_result>\n</task>")
}
