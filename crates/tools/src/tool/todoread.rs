//! Shows the session's todo list.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::{Ask, Effect, Facts, Listing, Output, TodoAccess, Tool, ToolCx, ToolError};

const DESCRIPTION: &str = include_str!("todoread.txt");

/// The `todoread` tool.
pub struct TodoRead;

/// The arguments: none.
#[derive(Debug, Clone, Deserialize)]
pub struct Input {}

impl Tool for TodoRead {
    const NAME: &'static str = "todoread";
    const FACTS: &'static Facts =
        &Facts { effect: Effect::None, todos: TodoAccess::Read, listing: Listing::Accepted, ..Facts::PLAIN };
    type Input = Input;

    fn description(&self) -> String {
        DESCRIPTION.to_owned()
    }

    fn parameters(&self) -> Value {
        json!({"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object", "properties": {}})
    }

    async fn asks(&self, _input: &Input, _cx: &ToolCx) -> Result<Vec<Ask>, ToolError> {
        Ok(vec![Ask::new("todoread", vec!["*".to_owned()])])
    }

    async fn run(&self, _input: Input, cx: &ToolCx) -> Result<Output, ToolError> {
        let todos = &cx.todos;
        let open = todos.iter().filter(|todo| todo["status"] != "completed").count();
        let output = serde_json::to_string_pretty(todos.as_ref()).map_err(ToolError::model)?;
        let output = Output { title: format!("{open} todos"), output, ..Output::default() };
        Ok(output.with("todos", json!(todos.as_ref())).with("truncated", false))
    }
}
