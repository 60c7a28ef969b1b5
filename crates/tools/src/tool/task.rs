//! Delegates a task to a subagent.

use std::time::Duration;

use serde_json::{Value, json};

use crate::host::TaskInput;
use crate::{Ask, Facts, Output, Tool, ToolCx, ToolError};

const DESCRIPTION: &str = include_str!("task.txt");
/// The part of the description about background tasks.
const IN_BACKGROUND: &str = "- Set `background` if you can continue without the result: the call returns at \
                             once, and the report arrives later as a message. Do not wait or ask for it.\n";
/// The time limit of a subagent, long enough for users to answer its questions.
const DEADLINE: Duration = Duration::from_secs(24 * 60 * 60);
/// The limit for the size of a prompt.
const MAX_PROMPT_BYTES: usize = 1024 * 1024;
/// The limit for the size of a description, which becomes a title.
const MAX_DESCRIPTION_BYTES: usize = 1024;

/// The `task` tool.
#[derive(Debug, Clone, Copy, Default)]
pub struct Task {
    /// Whether subagents may run in the background.
    pub background: bool,
}

impl Tool for Task {
    const NAME: &'static str = "task";
    const FACTS: &'static Facts = &Facts { lists_agents: true, position: Some(8), ..Facts::PLAIN };
    const DEADLINE: Duration = DEADLINE;
    type Input = TaskInput;

    /// The engine replaces `{agents}` by the list of agents.
    fn description(&self) -> String {
        if self.background { format!("{DESCRIPTION}{IN_BACKGROUND}") } else { DESCRIPTION.to_owned() }
    }

    fn parameters(&self) -> Value {
        let mut schema = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "properties": {
                "description": {"type": "string", "description": "The work in three to five words"},
                "prompt": {"type": "string", "description": "The task for the agent"},
                "subagent_type": {"type": "string", "description": "The name of the agent"},
                "task_id": {
                    "type": "string",
                    "description": "The id that an earlier call returned, to continue with its agent; leave it out to \
                                    start from scratch",
                },
                "command": {"type": "string", "description": "The command that led to this, if one did"},
            },
            "required": ["description", "prompt", "subagent_type"],
        });
        if self.background {
            schema["properties"]["background"] = json!({"type": "boolean", "description": "Whether to continue without waiting for the result"});
        }
        schema
    }

    async fn asks(&self, input: &TaskInput, _cx: &ToolCx) -> Result<Vec<Ask>, ToolError> {
        let ask = Ask::new(Self::NAME, vec![input.agent.clone()]);
        let ask = ask.with("description", input.description.as_str());
        Ok(vec![ask.with("subagent_type", input.agent.as_str())])
    }

    async fn run(&self, mut input: TaskInput, cx: &ToolCx) -> Result<Output, ToolError> {
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
                "<task id=\"{}\" state=\"running\">\nThe agent runs in the background; its report will arrive as a \
                 message.\n</task>",
                handed.task_id
            ),
        };
        Ok(Output { title, output, metadata: handed.metadata, ..Output::default() }.with("truncated", false))
    }
}

/// The report of a subagent as text for the model.
pub(crate) fn report(task_id: &str, state: &str, result: &str) -> String {
    format!("<task id=\"{task_id}\" state=\"{state}\">\n<task_result>\n{result}\n</task_result>\n</task>")
}
