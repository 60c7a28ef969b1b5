//! Runs a command: its template becomes a prompt.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use codewright_config::parse_model;
use codewright_proto::{
    CommandInput, MessageWithParts, ModelRef, PartInput, Principal, PromptInput, PromptModel, Session,
    SessionId, Signal, media_type,
};
use codewright_tools::tags::neutralize;
use codewright_tools::{Ask, Bash, Environment, Read, Tool as _};
use codewright_workspace::{
    Author, Command as Program, End, Likeness, Limits, existing, normalize, physical,
};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::template::{self, Piece};
use super::{Command, SKILL};
use crate::address::Address;
use crate::admit::check_choice;
use crate::hosts::{Origin, User};
use crate::inner::Inner;
use crate::instance::Instance;
use crate::interface::Sessions;
use crate::mcp;
use crate::permission::gate::Asker;
use crate::permission::rules::PermissionRules;
use crate::permission::session::session_rules;
use crate::sandbox::enforcement::Consent;
use crate::sandbox::masked::{is_kept_from_model, masked};
use crate::sandbox::{Restricted, Subject};
use crate::toolbox::check::{check_action, check_call};
use crate::{Error, extension, plugins, session};

/// The deadline of one shell command of a template.
const SHELL_DEADLINE: Duration = Duration::from_secs(60);
/// The largest output of a shell command that is used.
const SHELL_LINES: usize = 2000;
const SHELL_BYTES: usize = 50 * 1024;
/// The number of shell commands of one template.
const MAX_SHELLS: usize = 32;
/// The number of files that one command attaches by name.
const MAX_REFERENCES: usize = 50;

/// The text of a prompt of an MCP server, for a session.
struct ServerPrompt<'a> {
    session: &'a Session,
    text: String,
}

impl Sessions<'_> {
    /// Runs a command in a session, waits for the end of the turn and returns the last answer.
    pub async fn command(self, id: &SessionId, input: CommandInput) -> Result<MessageWithParts, Error> {
        let session = session::in_use(self.0, id).await?;
        let instance = plugins::current::current(self.0, Path::new(&session.directory)).await?;
        let known = instance.commands.iter().find(|command| command.name == input.command);
        let Some(command) = known.cloned() else {
            if let Some(text) = self.server_prompt(&instance, &input).await {
                let prompt = ServerPrompt { session: &session, text: text? };
                return self.prompted(id, &instance, prompt, input).await;
            }
            let names = instance.commands.iter().map(|command| command.name.as_str());
            let names = names.collect::<Vec<_>>().join(", ");
            return Err(Error::invalid(format!("command `{}` not found; there are {names}", input.command)));
        };
        let (name, arguments) = (input.command.clone(), input.arguments.clone());
        // Hooks decide about the shell commands of the template, too.
        let extensions = extension::open::ready(self.0, &instance).await;
        let mut prompt = self.prompt_of(&instance, &session, command, input).await?;
        let parts = std::mem::take(&mut prompt.parts);
        let parts = extensions.command_before(id, [&name, &arguments], parts).await;
        prompt.parts = parts.map_err(Error::invalid)?;
        if prompt.by.is_limited() {
            // The files of the sender are checked already. The owner's extensions may attach others.
            prompt.parts = prompt.parts.into_iter().map(checked).collect();
        }
        let answer = self.prompt(id, prompt).await?;
        let message_id = answer.info.id().clone();
        self.0.store.signal(Signal::CommandExecuted { session_id: id.clone(), name, arguments, message_id });
        Ok(answer)
    }

    /// Returns the text of the MCP prompt that a command names, if there is one.
    async fn server_prompt(
        self,
        instance: &Arc<Instance>,
        input: &CommandInput,
    ) -> Option<Result<String, Error>> {
        let servers = mcp::host::servers(self.0, instance)?;
        servers.settled().await;
        let text = mcp::commands::text(&servers, &input.command, &input.arguments).await?;
        Some(text.map_err(Error::invalid))
    }

    /// Sends the text of an MCP prompt. Nothing in it runs or is attached, because a server wrote it.
    async fn prompted(
        self,
        id: &SessionId,
        instance: &Instance,
        prompt: ServerPrompt<'_>,
        input: CommandInput,
    ) -> Result<MessageWithParts, Error> {
        let ServerPrompt { session, text } = prompt;
        let agent = input.agent.as_deref().or(session.agent.as_deref());
        let agent = instance.agent_name(agent)?;
        let model = input.model.as_deref().map(|written| {
            parse_model(written)
                .ok_or_else(|| Error::invalid(format!("the model `{written}` is not written provider/model")))
        });
        let own = PartInput::text(neutralize(&text).trim());
        let prompt = PromptInput {
            message_id: input.message_id,
            model: model.transpose()?,
            chosen: input.chosen,
            agent: Some(agent),
            variant: input.variant,
            parts: [own].into_iter().chain(input.parts).collect(),
            by: input.by,
            ..PromptInput::default()
        };
        let answer = self.prompt(id, prompt).await?;
        let message_id = answer.info.id().clone();
        let (name, arguments) = (input.command, input.arguments);
        self.0.store.signal(Signal::CommandExecuted { session_id: id.clone(), name, arguments, message_id });
        Ok(answer)
    }

    /// Returns the prompt of a command.
    async fn prompt_of(
        self,
        instance: &Instance,
        session: &Session,
        command: Command,
        input: CommandInput,
    ) -> Result<PromptInput, Error> {
        let agent = command.agent.as_deref().or(input.agent.as_deref()).or(session.agent.as_deref());
        let agent = instance.agent(&instance.agent_name(agent)?)?.clone();
        let parsed = |written: &str| {
            parse_model(written)
                .ok_or_else(|| Error::invalid(format!("the model `{written}` is not written provider/model")))
        };
        // The model is that of the command, else of the command's agent, else of the client.
        let model = match (&command.model, &command.agent) {
            (Some(written), _) => Some(parsed(written)?),
            (None, Some(_)) if agent.model.is_some() => agent.model.clone(),
            _ => input.model.as_deref().map(parsed).transpose()?,
        };
        let variant = command.variant.clone().or(input.variant);
        // Shell commands, paths and names in a skill are examples for its reader.
        let mut parts = match command.source {
            SKILL => vec![PartInput::text(asked_of(&command.template, &input.arguments))],
            _ => {
                let caller = Caller::User { session, agent: &agent.name, by: input.by };
                self.parts(instance, Template { caller, command: &command }, &input.arguments).await?
            }
        };
        let is_subagent = agent.mode == codewright_config::AgentMode::Subagent;
        if (is_subagent && command.subtask != Some(false)) || command.subtask == Some(true) {
            if let Some(model) = &model {
                check_choice(instance, session, model, input.chosen)?;
            }
            let chosen = input.chosen;
            let prompt = PromptInput { model, chosen, variant, parts, ..PromptInput::default() };
            let prompt = delegated(instance, session, command, &agent.name, prompt);
            return Ok(PromptInput { message_id: input.message_id, by: input.by, ..prompt });
        }
        parts.extend(input.parts);
        Ok(PromptInput {
            message_id: input.message_id,
            model,
            chosen: input.chosen,
            agent: Some(agent.name),
            variant,
            parts,
            by: input.by,
            ..PromptInput::default()
        })
    }

    /// Returns the text of a filled template with the files and agents that it names.
    async fn parts(
        self,
        instance: &Instance,
        of: Template<'_>,
        arguments: &str,
    ) -> Result<Vec<PartInput>, Error> {
        let template = of.command.template.as_str();
        let pieces = template::filled(template, arguments);
        let shells = pieces.iter().filter(|piece| matches!(piece, Piece::Shell(_))).count();
        if shells > MAX_SHELLS {
            return Err(Error::invalid(format!(
                "a command has at most {MAX_SHELLS} shell commands, this one {shells}"
            )));
        }
        let parameters = template::parameters(template, arguments);
        let (mut text, mut named) = (String::new(), Vec::new());
        for piece in pieces {
            match piece {
                Piece::Text(piece) => {
                    named.extend(template::references(&piece).into_iter().map(|at| piece[at].to_owned()));
                    text.push_str(&piece);
                }
                Piece::Shell(command) => {
                    self.check_template(instance, of, &command).await?;
                    let rules = self.rules(instance, of.caller).await?;
                    let masked = masked(&rules, self.0, instance).await.map_err(Error::machine)?;
                    let session_id = of.caller.session_id();
                    let subject = Subject {
                        user: of.caller.owner(),
                        masked,
                        ..Subject::new(self.0, instance, session_id, &[])
                    };
                    let support = self.0.sandbox_support().await;
                    // The owner wrote the command, or the check above requested the permission.
                    let restricted = subject.confine(&support, Consent::Given).map_err(Error::machine)?;
                    let restricted = match restricted {
                        Some(restricted) => {
                            let origin = self.origin(instance, of, &command).await?;
                            Some(origin.connect(restricted).map_err(Error::machine)?)
                        }
                        None => None,
                    };
                    let input = ShellInput { command, parameters: &parameters, arguments, restricted };
                    let output = shell(self.0, instance, input).await;
                    text.push_str(&neutralize(&output));
                }
            }
        }
        let mut parts = vec![PartInput::text(text.trim())];
        if let Caller::Model(asker) = of.caller {
            parts.extend(self.permitted_files(asker, named).await);
            return Ok(parts);
        }
        let mut seen = Vec::new();
        for name in named {
            if seen.contains(&name) || parts.len() > MAX_REFERENCES {
                continue;
            }
            // The user's text may name any file; a repository's template only files of its worktree.
            let is_users = !of.command.is_of_repository || arguments.contains(&format!("@{name}"));
            let part = referred(self.0, instance, &name);
            parts.extend(match part {
                Some(part) if of.caller.is_limited() => Some(inside(instance, part).ok_or_else(|| {
                    Error::invalid(format!(
                        "the command names `{name}`, which is outside of the session's directory"
                    ))
                })?),
                Some(part) if !is_users => {
                    let rules = self.rules(instance, of.caller).await?;
                    let is_kept = |part: &PartInput| {
                        let real = file_path(part).and_then(|path| physical(&path).ok());
                        real.is_some_and(|real| is_kept_from_model(self.0, instance, &rules, &real))
                    };
                    inside(instance, part).filter(|part| !is_kept(part))
                }
                part => part,
            });
            seen.push(name);
        }
        Ok(parts)
    }

    /// Returns the parts of a prompt that a model wrote for a subagent. If the prompt is a command, they are those of
    /// the command; its agent and model are not used.
    ///
    /// Shell commands, skills and files need the permission that calls of the model need. A name of a file without that
    /// permission stays text.
    ///
    /// # Errors
    ///
    /// Fails if a shell command or a skill is not allowed.
    pub(crate) async fn delegated_parts(
        self,
        asker: &Asker<'_>,
        prompt: &str,
    ) -> Result<Vec<PartInput>, Error> {
        let instance = asker.instance;
        let written = prompt.trim().strip_prefix('/').map(|line| {
            let end = line.find(char::is_whitespace).unwrap_or(line.len());
            (&line[..end], line[end..].trim())
        });
        let called = written.and_then(|(name, arguments)| {
            let command = instance.commands.iter().find(|command| command.name == name)?;
            Some((command, arguments))
        });
        match called {
            None => {
                let named = template::references(prompt).into_iter().map(|at| prompt[at].to_owned());
                let files = self.permitted_files(asker, named.collect()).await;
                Ok([PartInput::text(prompt)].into_iter().chain(files).collect())
            }
            Some((command, arguments)) if command.source == SKILL => {
                let ask = Ask::new("skill", vec![command.name.clone()]);
                check_action(self.0, asker, &ask).await.map_err(Error::invalid)?;
                Ok(vec![PartInput::text(asked_of(&command.template, arguments))])
            }
            Some((command, arguments)) => {
                let of = Template { caller: Caller::Model(asker), command };
                self.parts(instance, of, arguments).await
            }
        }
    }

    /// Returns the files with these names that the model may read.
    async fn permitted_files(self, asker: &Asker<'_>, names: Vec<String>) -> Vec<PartInput> {
        let mut files: Vec<PartInput> = Vec::new();
        for name in names {
            let Some(file) = referred(self.0, asker.instance, &name) else { continue };
            let Some(path) = file_path(&file) else { continue };
            if files.len() >= MAX_REFERENCES
                || files.iter().any(|known| file_path(known).as_ref() == Some(&path))
            {
                continue;
            }
            let Ok(real) = physical(&path) else { continue };
            // The rules for its name and those for the place that will be read.
            let may_read = async |path: &Path| {
                check_call(self.0, asker, Read::NAME, &json!({ "filePath": path })).await.is_ok()
            };
            if may_read(&path).await && (real == path || may_read(&real).await) {
                files.push(checked_at(file, real));
            }
        }
        files
    }

    /// Checks a shell command of a template against the rules for the model's commands, if it comes from a repository
    /// or if the model calls it.
    ///
    /// # Errors
    ///
    /// Fails if a rule or the user denies it.
    async fn check_template(self, instance: &Instance, of: Template<'_>, command: &str) -> Result<(), Error> {
        let input = json!({ "command": command, "description": "shell command of a template" });
        let checked = match of.caller {
            Caller::Model(asker) => check_call(self.0, asker, Bash::NAME, &input).await,
            Caller::User { .. } if !of.command.is_of_repository && !of.caller.is_limited() => return Ok(()),
            Caller::User { session, agent, .. } => {
                let rules = session_rules(self.0, instance, session, agent).await?;
                let cancel = self.0.cancel.child_token();
                let asker = Asker {
                    session_id: &session.id,
                    instance,
                    rules: &rules,
                    held: None,
                    hook_id: None,
                    tool: None,
                    cancel: &cancel,
                };
                check_call(self.0, &asker, Bash::NAME, &input).await
            }
        };
        checked.map_err(|why| {
            let name = &of.command.name;
            Error::invalid(format!("the command `{name}` runs `{command}`, which is not allowed: {why}"))
        })
    }
}

impl Sessions<'_> {
    /// The rules of a command's caller.
    async fn rules(self, instance: &Instance, caller: Caller<'_>) -> Result<PermissionRules, Error> {
        match caller {
            Caller::Model(asker) => Ok(asker.rules.clone()),
            Caller::User { session, agent, .. } => session_rules(self.0, instance, session, agent).await,
        }
    }

    /// The author of the connections of a template's shell command.
    async fn origin(self, instance: &Instance, of: Template<'_>, command: &str) -> Result<Origin, Error> {
        let rules = self.rules(instance, of.caller).await?;
        Ok(Origin {
            inner: Arc::clone(self.0),
            instance: self.0.instance(&instance.directory).await?,
            session_id: of.caller.session_id().clone(),
            rules,
            tool: None,
            command: command.to_owned(),
            user: User::Present,
            granted: Vec::new(),
        })
    }
}

/// Returns a prompt that delegates the prompt of a command to an agent in a separate session.
fn delegated(
    instance: &Instance,
    session: &Session,
    command: Command,
    agent: &str,
    prompt: PromptInput,
) -> PromptInput {
    let text = prompt.parts.into_iter().find_map(|part| match part {
        PartInput::Text { text, .. } => Some(text),
        _ => None,
    });
    let of_session = |model: &ModelRef| PromptModel {
        provider_id: model.provider_id.clone(),
        model_id: model.id.clone(),
        variant: None,
    };
    let model = prompt.model.or_else(|| session.model.as_ref().map(of_session)).or_else(|| {
        let (provider_id, model_id) = instance.models.default_model().ok()?;
        Some(PromptModel { provider_id, model_id, variant: None })
    });
    let part = PartInput::Subtask {
        id: None,
        prompt: text.unwrap_or_default(),
        description: command.description.unwrap_or_default(),
        agent: agent.to_owned(),
        model,
        command: Some(command.name),
    };
    // The session's agent continues with the result.
    let (agent, chosen, variant) = (session.agent.clone(), prompt.chosen, prompt.variant);
    PromptInput { agent, chosen, variant, parts: vec![part], ..PromptInput::default() }
}

/// The template of a command and its caller.
#[derive(Clone, Copy)]
struct Template<'a> {
    caller: Caller<'a>,
    command: &'a Command,
}

/// The caller of a command.
#[derive(Clone, Copy)]
enum Caller<'a> {
    User {
        session: &'a Session,
        agent: &'a str,
        by: Principal,
    },
    /// The model, with its permissions.
    Model(&'a Asker<'a>),
}

impl Caller<'_> {
    /// Whether it is a user whose commands are checked like those of the model.
    fn is_limited(&self) -> bool {
        match self {
            Self::User { by, .. } => by.is_limited(),
            Self::Model(_) => false,
        }
    }

    /// The user who owns the session.
    fn owner(&self) -> Option<&str> {
        match self {
            Self::User { session, .. } => session.access.as_ref().map(|access| access.owner.as_str()),
            Self::Model(asker) => asker.rules.user(),
        }
    }

    fn session_id(&self) -> &SessionId {
        match self {
            Self::User { session, .. } => &session.id,
            Self::Model(asker) => asker.session_id,
        }
    }
}

fn file_path(part: &PartInput) -> Option<PathBuf> {
    let PartInput::File { url, .. } = part else { return None };
    match Address::parse(url) {
        Ok(Address::File(file)) => Some(file.path().to_owned()),
        Ok(Address::Data(_) | Address::Elsewhere) | Err(_) => None,
    }
}

/// Returns a part of a template, unless it is a file outside the worktree. The links of the file are followed now.
fn inside(instance: &Instance, part: PartInput) -> Option<PartInput> {
    if !matches!(part, PartInput::File { .. }) {
        return Some(part);
    }
    let root = if instance.worktree.git { &instance.worktree.root } else { &instance.directory };
    let real = physical(&file_path(&part)?).ok()?;
    real.starts_with(root).then(|| checked_at(part, real))
}

/// Returns a file that is only read at the place at which it was checked.
fn checked_at(mut part: PartInput, real: PathBuf) -> PartInput {
    if let PartInput::File { checked, .. } = &mut part {
        *checked = Some(real);
    }
    part
}

/// Returns a file that was not checked as one that is only read at its present place.
fn checked(part: PartInput) -> PartInput {
    let is_open = matches!(part, PartInput::File { checked: None, .. });
    match file_path(&part).filter(|_| is_open).and_then(|path| physical(&path).ok()) {
        Some(real) => checked_at(part, real),
        None => part,
    }
}

/// Returns a skill together with the user's request.
fn asked_of(skill: &str, arguments: &str) -> String {
    match arguments.trim() {
        "" => skill.to_owned(),
        arguments => format!("{skill}\n\n{arguments}"),
    }
}

/// Returns the file or agent with a name, if there is one.
fn referred(inner: &Inner, instance: &Instance, name: &str) -> Option<PartInput> {
    let root =
        if instance.worktree.root.parent().is_none() { &instance.directory } else { &instance.worktree.root };
    let path = match name.strip_prefix("~/") {
        Some(below) => inner.dirs.home.join(below),
        None => root.join(name),
    };
    // A command is written for the worktree, but users also mean their current directory.
    let path = [path, instance.directory.join(name)]
        .into_iter()
        .find_map(|path| existing(&normalize(&path), Likeness::Compatible).filter(|path| path.exists()));
    let Some(path) = path else {
        let agent = instance.agent(name).ok()?;
        return Some(PartInput::Agent { id: None, name: agent.name.clone(), source: None });
    };
    let mime = if path.is_dir() { "application/x-directory" } else { media_type(&path.to_string_lossy()) };
    Some(PartInput::File {
        id: None,
        mime: mime.to_owned(),
        filename: Some(name.to_owned()),
        url: file_url(&path),
        source: None,
        checked: None,
    })
}

/// Returns a path as a `file:` URL, with special characters escaped.
fn file_url(path: &Path) -> String {
    let mut url = String::from("file://");
    for byte in path.to_string_lossy().bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'/' | b'-' | b'_' | b'.' | b'~' => {
                url.push(byte as char);
            }
            other => url.push_str(&format!("%{other:02X}")),
        }
    }
    url
}

/// A shell command of a template.
struct ShellInput<'a> {
    command: String,
    parameters: &'a [String],
    arguments: &'a str,
    restricted: Option<Restricted>,
}

/// Returns the output of a shell command of a template, or the reason why there is none.
async fn shell(inner: &Inner, instance: &Instance, input: ShellInput<'_>) -> String {
    let ShellInput { command, parameters, arguments, restricted } = input;
    let Environment { set: mut env, remove } = inner.child_environment(instance);
    env.push(("ARGUMENTS".to_owned(), arguments.to_owned()));
    env.extend(restricted.iter().flat_map(|restricted| restricted.variables.clone()));
    let fixed = ["-c".to_owned(), command, "sh".to_owned()];
    let program = Program {
        program: PathBuf::from("/bin/sh"),
        args: fixed.iter().chain(parameters).map(Into::into).collect(),
        directory: instance.directory.clone(),
        env,
        env_remove: remove,
        confinement: inner.confinement.clone(),
        sandbox: restricted.map(|restricted| restricted.confined),
        author: Author::Model,
    };
    let spill = inner.dirs.tool_output().join(inner.ids.tool_output().to_string());
    let limits = Limits { timeout: SHELL_DEADLINE, lines: SHELL_LINES, bytes: SHELL_BYTES, spill };
    let cancel: CancellationToken = inner.cancel.child_token();
    match codewright_workspace::run(program, limits, &cancel, &mut |_| {}).await {
        Ok(mut ended) => {
            if let Some(rest) = ended.rest.take() {
                rest.end().await;
            }
            let note = match ended.end {
                End::Exited(_) => "",
                End::TimedOut => "\n(stopped: it took longer than a minute)",
                End::Cancelled => "\n(stopped)",
            };
            let output = ended.output;
            let text = if output.is_long() { output.tail(SHELL_BYTES) } else { output.text() };
            format!("{text}{note}")
        }
        Err(error) => format!("(the command could not be run: {error})"),
    }
}

impl Instance {
    /// Returns the commands for `GET /command`.
    #[must_use]
    pub fn commands_json(&self) -> Value {
        json!(self.commands)
    }
}
