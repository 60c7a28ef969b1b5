//! The tool that searches the tools of servers and calls them.
//!
//! A call of a tool does not run here: it becomes a call of that tool before anything decides about it, see
//! `Selection::inner_call`. Only searches and calls that cannot be made run here, so this needs no permission. It knows
//! only tools that the session may use.

use codewright_tools::tags::neutralize;
use codewright_tools::{AnyTool, Ask, Boxed, Effect, Facts, Output, ToolCx, ToolError, conform};
use serde_json::{Value, json};

use super::catalogue::{self, Named};
use super::search::{Listed, block, search};
use super::wrapped::{self, ARGUMENTS, NAME};

/// The longest list of names in the description, which is part of every request.
const MAX_CATALOGUE_BYTES: usize = 6000;
/// The longest list of names in a result.
const MAX_LIST_BYTES: usize = 16 * 1024;
/// The tools of a result with their schemas.
const MAX_FOUND: usize = 8;
/// The size of a result, unless its first tool is larger.
const MAX_RESULT_BYTES: usize = 32 * 1024;
/// The names after the tools of a result.
const MAX_OTHERS: usize = 40;
/// The argument with the words of a search.
const SEARCH: &str = "search";
/// The longest reason why arguments do not fit a schema, which may list many values.
const MAX_REASON_BYTES: usize = 4096;
/// The longest name or query that is repeated to the model.
const MAX_QUOTED_BYTES: usize = 200;

const FACTS: &Facts = &Facts { effect: Effect::None, ..Facts::PLAIN };

/// The search tool of one step.
pub(super) struct Gateway {
    /// The names for the description, which stay the same for a session.
    pub(super) named: Vec<Named>,
    /// The tools that exist now.
    pub(super) tools: Vec<Listed>,
}

impl AnyTool for Gateway {
    fn name(&self) -> &str {
        wrapped::TOOL
    }

    fn facts(&self) -> &'static Facts {
        FACTS
    }

    fn description(&self) -> String {
        let lines = catalogue::lines(&self.named, MAX_CATALOGUE_BYTES);
        format!(
            "Search the tools of the connected MCP servers, and call them.\n\n\
             1. Find a tool: `{SEARCH}` takes words or a name, and returns the best tools with their descriptions and the \
             schemas of their arguments.\n\
             2. Call it: `{NAME}` is its full name, `{ARGUMENTS}` an object that fits its schema.\n\n\
             Do not guess arguments: search first, unless you have seen the schema. Search also finds tools that were \
             added later.\n\n\
             The tools by server. A full name is the first word of a line followed by one of the names:\n{lines}"
        )
    }

    fn parameters(&self) -> Value {
        let text = |description: &str| json!({"type": "string", "description": description});
        let arguments = json!({"type": "object", "description": "The arguments of the tool"});
        json!({
            "type": "object",
            "properties": {
                SEARCH: text("Words about the task, or a name. An empty text lists all names"),
                NAME: text("The full name of the tool to call"),
                ARGUMENTS: arguments,
            },
            "additionalProperties": false,
        })
    }

    fn asks<'a>(&'a self, _input: &'a Value, _cx: &'a ToolCx) -> Boxed<'a, Vec<Ask>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    fn run<'a>(&'a self, input: Value, _cx: &'a ToolCx) -> Boxed<'a, Output> {
        Box::pin(async move {
            let text = |key: &str| input.get(key).and_then(Value::as_str).map(str::trim);
            match (text(NAME).filter(|name| !name.is_empty()), text(SEARCH)) {
                (Some(name), _) => Err(ToolError::Model(self.refusal(name, &input))),
                (None, Some("" | "*")) => Ok(self.list()),
                (None, Some(query)) => Ok(self.found(query)),
                (None, None) => Err(ToolError::Model(format!(
                    "Set `{SEARCH}` to find a tool, or `{NAME}` and `{ARGUMENTS}` to call one."
                ))),
            }
        })
    }
}

impl Gateway {
    /// Lists all names.
    fn list(&self) -> Output {
        let now: Vec<Named> =
            self.tools.iter().map(|listed| (listed.server.clone(), listed.name.clone())).collect();
        let text = catalogue::lines(&now, MAX_LIST_BYTES);
        let text = if text.is_empty() { "No server with tools is connected.".to_owned() } else { text };
        Output::new("MCP tools", text).with("count", now.len())
    }

    /// The best tools for a query.
    fn found(&self, query: &str) -> Output {
        let found = search(&self.tools, query);
        let title = format!("MCP tools: {}", quoted(query));
        let mut text = String::new();
        let mut shown = 0;
        for listed in found.iter().take(MAX_FOUND) {
            let block = block(listed);
            if shown > 0 && text.len() + block.len() > MAX_RESULT_BYTES {
                break;
            }
            text.push_str(&block);
            shown += 1;
        }
        let others: Vec<&str> =
            found[shown..].iter().take(MAX_OTHERS).map(|listed| listed.name.as_str()).collect();
        if found.is_empty() {
            text =
                "No tool matches. Search with other words, or with an empty text for all names.".to_owned();
        } else if !others.is_empty() {
            let more = found.len() - shown - others.len();
            let more = if more == 0 { String::new() } else { format!(" and {more} more") };
            text.push_str(&format!(
                "Also found, search for the name to see one: {}{more}\n",
                others.join(", ")
            ));
        }
        Output::new(title, text).with("count", found.len())
    }

    /// The reason why a call cannot be made, with what helps to make it.
    fn refusal(&self, name: &str, input: &Value) -> String {
        let Some(listed) = self.tools.iter().find(|listed| listed.name.eq_ignore_ascii_case(name)) else {
            return self.missing(name);
        };
        let reason = match wrapped::inner_call(input) {
            None => format!("`{ARGUMENTS}` is not an object."),
            Some((_, arguments)) => match conform(&listed.name, &listed.tool.parameters, arguments) {
                Ok(_) => format!("`{}` cannot be called at the moment.", listed.name),
                Err(error) => {
                    let error = error.to_string();
                    neutralize(&error[..error.floor_char_boundary(MAX_REASON_BYTES)]).into_owned()
                }
            },
        };
        format!("{reason}\n\n{}", block(listed))
    }

    fn missing(&self, name: &str) -> String {
        let known = self.named.iter().any(|(_, known)| known == name);
        if known {
            return format!("The server of `{}` is not connected at the moment.", quoted(name));
        }
        let near = search(&self.tools, name);
        let near: Vec<String> =
            near.iter().take(MAX_FOUND).map(|listed| format!("`{}`", listed.name)).collect();
        let advice = if near.is_empty() {
            format!("Use `{SEARCH}` to find one.")
        } else {
            format!("Similar names: {}.", near.join(", "))
        };
        format!("There is no tool named `{}`. {advice}", quoted(name))
    }
}

fn quoted(text: &str) -> String {
    let text = neutralize(&text[..text.floor_char_boundary(MAX_QUOTED_BYTES)]).into_owned();
    text.replace('\n', " ")
}
