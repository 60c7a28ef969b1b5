//! The arguments and the result of a batch of calls. The engine runs the calls.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::tags::own_reminders_at;
use crate::{Ask, Facts, Listing, Output, Tool, ToolCx, ToolError, render, schema};

/// The metadata key of the position where the program's reminders begin in the output.
pub(crate) const REMINDERS_AT: &str = "remindersAt";
const DESCRIPTION: &str = include_str!("batch.txt");

/// The `batch` tool.
pub struct Batch;

/// The arguments.
#[derive(Debug, Clone, Deserialize)]
pub struct Input {
    tool_calls: Vec<BatchCall>,
}

/// One of the calls.
#[derive(Debug, Clone, Deserialize)]
pub struct BatchCall {
    /// The name of the tool.
    pub tool: String,
    /// Its arguments.
    pub parameters: Map<String, Value>,
}

impl Batch {
    /// The limit of calls. The calls after it fail.
    pub const MOST: usize = 25;

    /// Parses the arguments.
    pub fn calls(input: Value) -> Result<Vec<BatchCall>, ToolError> {
        let input: Input = schema::decode::<Self>(&Self.parameters(), input)?;
        Ok(input.tool_calls)
    }

    /// Joins the results of the calls.
    pub fn joined(results: Vec<(String, Result<Output, String>)>) -> Output {
        let total = results.len();
        let (mut text, mut facts, mut attachments) = (String::new(), Vec::new(), Vec::new());
        let (mut failed, mut reminders) = (0, String::new());
        for (number, (tool, result)) in (1..).zip(results) {
            let (status, said) = match result {
                Ok(mut output) => {
                    // The program's reminders follow the results of all tools, so that they can be told
                    // apart.
                    let at = own_reminders_at(&tool, &output.output, &output.metadata);
                    reminders.push_str(&output.output.split_off(at));
                    attachments.extend(output.attachments);
                    facts.push(json!({
                        "tool": tool, "status": "completed", "title": output.title, "metadata": output.metadata,
                    }));
                    ("completed", output.output)
                }
                Err(error) => {
                    failed += 1;
                    facts.push(json!({ "tool": tool, "status": "error", "error": error }));
                    ("error", error)
                }
            };
            // The model may have invented the name.
            let tool: String = tool.chars().filter(|c| c.is_alphanumeric() || "_-.".contains(*c)).collect();
            text += &format!(
                "\n\n<call number=\"{number}\" tool=\"{tool}\" status=\"{status}\">\n{said}\n</call>"
            );
        }
        let done = total - failed;
        let output = format!("{done} of {total} calls were made without an error.{text}");
        let at = output.len();
        let output = output + &reminders;
        let joined =
            Output { title: format!("{done} of {total} calls"), output, attachments, ..Output::default() };
        let joined = if reminders.is_empty() { joined } else { joined.with(REMINDERS_AT, at) };
        joined.with("total", total).with("failed", failed).with("calls", facts).with("truncated", false)
    }
}

impl Tool for Batch {
    const NAME: &'static str = "batch";
    const FACTS: &'static Facts = &Facts {
        listing: Listing::Optional,
        form: Some(r#"{"tool_calls": [{"tool": "read", "parameters": {"filePath": "README.md"}}]}"#),
        ..Facts::PLAIN
    };
    type Input = Input;

    fn description(&self) -> String {
        render(DESCRIPTION, &[("most", &Self::MOST.to_string())]).expect("a test renders every description")
    }

    fn parameters(&self) -> Value {
        json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "properties": {
                "tool_calls": {
                    "type": "array",
                    "minItems": 1,
                    "description": "The calls",
                    "items": {
                        "type": "object",
                        "properties": {
                            "tool": {"type": "string", "description": "The name of the tool"},
                            "parameters": {"type": "object", "description": "Its arguments", "additionalProperties": true},
                        },
                        "required": ["tool", "parameters"],
                    },
                },
            },
            "required": ["tool_calls"],
        })
    }

    async fn asks(&self, _input: &Input, _cx: &ToolCx) -> Result<Vec<Ask>, ToolError> {
        // Each call requests its own permissions.
        Ok(Vec::new())
    }

    async fn run(&self, _input: Input, _cx: &ToolCx) -> Result<Output, ToolError> {
        Err(ToolError::model("calls can only be made together inside of a session"))
    }
}
