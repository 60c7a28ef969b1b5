//! Commands: prompts with a name.
//!
//! A command is built in, comes from the configuration, or is a skill. It becomes a prompt: its arguments are inserted,
//! its shell commands run, and the files that it names are attached.

mod prompt;
pub(crate) mod template;

use std::path::Path;

use codewright_config::{Config, ControlFiles};
use codewright_tools::Skill;
use serde::Serialize;

use crate::prompts;

/// The source of a command that is a skill.
const SKILL: &str = "skill";

/// A command in the form of the API.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Command {
    pub(crate) name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) description: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) agent: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) model: Option<String>,
    #[serde(skip)]
    pub(crate) variant: Option<String>,
    /// `command` or `skill`.
    pub(crate) source: &'static str,
    pub(crate) template: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) subtask: Option<bool>,
    pub(crate) hints: Vec<String>,
    /// Whether the program has the command without a configuration.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) native: bool,
    /// Whether any part comes from the repository.
    #[serde(skip)]
    pub(crate) is_of_repository: bool,
}

impl Command {
    pub(crate) fn new(
        name: &str,
        description: Option<String>,
        source: &'static str,
        template: String,
    ) -> Self {
        Self {
            name: name.to_owned(),
            description,
            agent: None,
            model: None,
            variant: None,
            source,
            hints: template::hints(&template),
            template,
            subtask: None,
            native: false,
            is_of_repository: false,
        }
    }
}

/// Returns the commands of a configuration, after the built-in ones.
pub(crate) fn commands(
    config: &Config,
    repository: Option<&Config>,
    worktree: &Path,
    directory: &Path,
) -> Vec<Command> {
    // Outside a repository commands work in the directory.
    let path = if worktree.parent().is_none() { directory } else { worktree };
    let path = path.display().to_string();
    let built_in = |name, description: &str, text: &str| {
        let template = prompts::fill(text.trim_end(), &[("path", &path)]);
        Command { native: true, ..Command::new(name, Some(description.to_owned()), "command", template) }
    };
    let review = "reviews changes: what is not committed, or a commit, branch or pull request";
    let mut commands = vec![
        built_in("init", "writes AGENTS.md, the page that agents read first", prompts::INIT),
        Command { subtask: Some(true), ..built_in("review", review, prompts::REVIEW) },
    ];
    for (name, written) in config.command.iter() {
        let command = Command {
            agent: written.agent.clone(),
            model: written.model.clone(),
            variant: written.variant.clone(),
            subtask: written.subtask,
            is_of_repository: repository.is_some_and(|config| config.command.get(name).is_some()),
            ..Command::new(name, written.description.clone(), "command", written.template.clone())
        };
        match commands.iter_mut().find(|known| known.name == command.name) {
            Some(known) => *known = command,
            None => commands.push(command),
        }
    }
    commands
}

/// Returns the commands of Claude Code in a trusted repository, except names in use.
pub(crate) fn claude(control: &ControlFiles, known: &[Command]) -> Vec<Command> {
    let is_new = |name: &str| known.iter().all(|known| known.name != name);
    let found = codewright_config::repository_commands(control, &control.root().join(".claude/commands"));
    let found = found.into_iter().filter(|(name, ..)| is_new(name));
    let command = |(name, description, template): (String, Option<String>, String)| Command {
        is_of_repository: true,
        ..Command::new(&name, description, "command", template)
    };
    found.map(command).collect()
}

/// Maximum commands in the system text.
const MAX_LISTED: usize = 50;
/// Maximum characters of a description in the system text.
const MAX_DESCRIPTION_CHARS: usize = 200;

/// Returns the list of the repository's commands for the model, or `None` if the repository has no commands.
pub(crate) fn listed(commands: &[Command]) -> Option<String> {
    let own = commands.iter().filter(|command| command.is_of_repository).take(MAX_LISTED);
    let lines: Vec<String> = own
        .map(|command| match command.description.as_deref().and_then(|text| text.lines().next()) {
            Some(text) => {
                let text: String = text.chars().take(MAX_DESCRIPTION_CHARS).collect();
                format!("\n- /{}: {text}", command.name)
            }
            None => format!("\n- /{}", command.name),
        })
        .collect();
    (!lines.is_empty())
        .then(|| format!("Commands of this project, which the user calls by name:{}", lines.concat()))
}

/// Returns the skills as commands, except names in use. So a user can call a skill directly.
pub(crate) fn of_skills(skills: &[Skill], known: &[Command]) -> Vec<Command> {
    let is_new = |skill: &&Skill| known.iter().all(|known| known.name != skill.name);
    let called = |skill: &Skill| {
        let folder = skill.location.as_deref().and_then(Path::parent);
        let instance = folder.map(|folder| {
            format!(
                "\n\nThis is a skill. Its directory is {}, from which its relative paths start.",
                folder.display()
            )
        });
        let text = format!("{}{}", skill.content.trim(), instance.unwrap_or_default());
        let command = Command::new(&skill.name, skill.description.clone(), SKILL, text);
        // The text of a skill has no placeholders for arguments.
        Command { hints: Vec::new(), ..command }
    };
    skills.iter().filter(is_new).map(called).collect()
}
