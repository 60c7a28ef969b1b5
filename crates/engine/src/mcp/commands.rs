//! The prompts of MCP servers as commands.

use std::sync::Arc;

use codewright_mcp::{Prompt, Servers, prompt_text, sanitize};
use serde_json::{Map, Value};

use crate::commands::{Command, template};

/// The source of a command that is a prompt of a server.
pub(crate) const MCP: &str = "mcp";

/// Returns the prompts of all servers as commands.
pub(crate) async fn commands(servers: &Servers) -> Vec<Command> {
    let prompts = servers.prompts().await;
    let command = |(server, prompt): &(Arc<str>, Prompt)| {
        let hints = (1..=prompt.arguments.len()).map(|number| format!("${number}")).collect();
        let command =
            Command::new(&name(server, &prompt.name), prompt.description.clone(), MCP, String::new());
        Command { hints, ..command }
    };
    prompts.iter().map(command).collect()
}

/// Returns the text of the prompt that a command names, or `None` if no server has it.
pub(crate) async fn text(
    servers: &Servers,
    command: &str,
    arguments: &str,
) -> Option<Result<String, String>> {
    let prompts = servers.prompts().await;
    let (server, prompt) =
        prompts.into_iter().find(|(server, prompt)| name(server, &prompt.name) == command)?;
    let values = match values(&prompt, arguments) {
        Ok(values) => values,
        Err(missing) => return Some(Err(missing)),
    };
    let answer = servers.prompt(&server, &prompt.name, values).await;
    Some(match answer {
        Ok(answer) => Ok(prompt_text(&answer)),
        Err(failure) => Err(format!("the server `{server}` did not return the prompt: {failure}")),
    })
}

fn name(server: &str, prompt: &str) -> String {
    format!("{}:{}", sanitize(server), sanitize(prompt))
}

/// The arguments by name. The last one gets the rest of the words.
fn values(prompt: &Prompt, arguments: &str) -> Result<Map<String, Value>, String> {
    let places: Vec<_> = (1..=prompt.arguments.len()).map(|number| format!("${number}")).collect();
    let words = template::parameters(&places.join(" "), arguments);
    let mut values = Map::new();
    for (argument, word) in prompt.arguments.iter().zip(words) {
        if !word.is_empty() {
            values.insert(argument.name.clone(), word.into());
        } else if argument.is_required {
            return Err(format!("the prompt needs the argument `{}`", argument.name));
        }
    }
    Ok(values)
}
