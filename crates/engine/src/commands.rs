//! Commands: prompts with a name.
//!
//! Built in, from the configuration, or a skill called by its name. A command becomes a prompt:
//! arguments are put in, its shell commands are run, and the files it names are attached.

mod prompt;
pub(crate) mod template;

use std::path::Path;

use codewright_config::{Config, ControlFiles};
use codewright_tools::Skill;
use serde::Serialize;

use crate::prompts;

/// What clients call a command that is a skill.
const SKILL: &str = "skill";

/// A command, as clients are shown it.
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
    /// Whether the repository has written any part of it.
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
            is_of_repository: false,
        }
    }
}

/// The commands that a configuration makes, the built-in ones first.
pub(crate) fn commands(
    config: &Config,
    repository: Option<&Config>,
    (worktree, directory): (&Path, &Path),
) -> Vec<Command> {
    // Outside a repository the directory is all there is to work on.
    let path = if worktree.parent().is_none() { directory } else { worktree };
    let path = path.display().to_string();
    let built_in = |name, description: &str, text: &str| {
        let template = prompts::fill(text.trim_end(), &[("path", &path)]);
        Command::new(name, Some(description.to_owned()), "command", template)
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

/// The commands that another program keeps in a trusted repository, but those whose names are taken.
pub(crate) fn claude(control: &ControlFiles, folder: &Path, known: &[Command]) -> Vec<Command> {
    let is_new = |name: &str| known.iter().all(|known| known.name != name);
    let found = codewright_config::repository_commands(control, folder);
    let found = found.into_iter().filter(|(name, ..)| is_new(name));
    let command = |(name, description, template): (String, Option<String>, String)| Command {
        is_of_repository: true,
        ..Command::new(&name, description, "command", template)
    };
    found.map(command).collect()
}

/// The skills as commands, but those whose names are taken: a user calls a skill without asking the model to.
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
        // A skill is read as it is written, so it has no places for arguments.
        Command { hints: Vec::new(), ..command }
    };
    skills.iter().filter(is_new).map(called).collect()
}
