//! Replaces the session's todo list.
//!
//! The engine stores the list from the metadata of the output.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{Ask, Effect, Facts, Output, TodoAccess, Tool, ToolCx, ToolError};

const DESCRIPTION: &str = include_str!("todowrite.txt");
/// The limit of items in a list.
const MAX_TODOS: usize = 500;

/// The `todowrite` tool.
pub struct TodoWrite;

/// The arguments.
#[derive(Debug, Clone, Deserialize)]
pub struct Input {
    todos: Vec<Todo>,
    /// Some models give a reason for a change. It is kept, but the schema has the recorded shape.
    explanation: Option<String>,
}

/// One item of the list.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Todo {
    content: String,
    status: String,
    priority: String,
}

impl Tool for TodoWrite {
    const NAME: &'static str = "todowrite";
    const FACTS: &'static Facts = &Facts {
        effect: Effect::Reported,
        todos: TodoAccess::Write,
        position: Some(10),
        aliases: &["todo"],
        ..Facts::PLAIN
    };
    type Input = Input;

    fn description(&self) -> String {
        DESCRIPTION.to_owned()
    }

    fn parameters(&self) -> Value {
        json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "properties": {
                "todos": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "properties": {
                            "content": {"type": "string", "description": "The work, in a few words"},
                            "status": {
                                "type": "string",
                                "description": "Its state: pending, in_progress, completed or cancelled",
                            },
                            "priority": {"type": "string", "description": "Its importance: high, medium or low"},
                        },
                        "required": ["content", "status", "priority"],
                    },
                    "description": "The whole list, in order",
                },
            },
            "required": ["todos"],
        })
    }

    async fn asks(&self, _input: &Input, _cx: &ToolCx) -> Result<Vec<Ask>, ToolError> {
        Ok(vec![Ask::new("todowrite", vec!["*".to_owned()])])
    }

    async fn run(&self, input: Input, _cx: &ToolCx) -> Result<Output, ToolError> {
        let count = input.todos.len();
        if count > MAX_TODOS {
            return Err(ToolError::Model(format!(
                "The list has {count} items; at most {MAX_TODOS} are kept"
            )));
        }
        let open = input.todos.iter().filter(|todo| todo.status != "completed").count();
        let output = serde_json::to_string_pretty(&input.todos).map_err(ToolError::model)?;
        let mut result = Output { title: format!("{open} todos"), output, ..Output::default() };
        result.metadata.insert("todos".to_owned(), json!(input.todos));
        if let Some(explanation) = input.explanation.filter(|text| !text.trim().is_empty()) {
            result.metadata.insert("explanation".to_owned(), explanation.into());
        }
        Ok(result.with("truncated", false))
    }
}
