//! An instance: one open directory with its worktree, project, configuration, agents and models.
//!
//! An instance is read-only after it is opened.

pub(crate) mod cache;
pub(crate) mod files;
pub(crate) mod head;
mod inspect;
mod names;
mod programs;
mod project_id;
mod settled;
mod tree;
mod trees;
pub(crate) mod vcs;
pub(crate) mod watcher;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use codewright_config::{
    AgentSpec, Audience, Code, Config, ControlFiles, Dirs, Env, LoadInput, LoadedConfig, Origins, Overlay,
    Parts, PluginHostConfig, PromptConfig, Remote, SandboxConfig, Secrets, SkillInput, Trust, Worktree, env,
};
use codewright_formatter::Formatters;
use codewright_llm::Client;
use codewright_llm::oauth::SignIn;
use codewright_llm::vault::Stored;
use codewright_lsp::Spec;
use codewright_proto::{
    Action, Clock, MessagePath, PathReply, Project, ProjectId, ProjectTime, Session, TrustStatus,
};
use codewright_snapshot::Snapshots;
use codewright_store::Store;
use codewright_tools::Skill;
use codewright_workspace::ProgramSearch;
use codewright_workspace::git::git_dirs;
use serde_json::Value;
use tokio::sync::OnceCell;
use tokio_util::task::TaskTracker;

use crate::commands::{self, Command};
use crate::hooks::{Hooks, settings};
use crate::lsp;
use crate::mcp::{self, Configured};
use crate::models::credentials::{Access, Credentials};
use crate::models::json::Connection;
use crate::models::source::Source;
use crate::models::{Configs, Models, Search};
use crate::packages::{self, PluginEntry};
use crate::permission::rules::PermissionRules;
use crate::plugins::PluginTable;
use crate::prompts::{self, Family};
use crate::redact::Redaction;
use crate::request::instructions::addresses::Addresses;
use crate::request::instructions::{Found, Sources};
use crate::request::skills::location;
use crate::skill_urls::Downloads;
use crate::toolbox::Switches;
use crate::trust::{Standing, TrustState};
use crate::{Error, remote};
use settled::Settled;

/// The number of directories that stay open. The least recently used one is closed for another.
const MAX_INSTANCES: usize = 64;

/// The number of warnings that an instance keeps.
const MAX_WARNINGS: usize = 100;
const DEFAULT_AGENT: &str = "build";

/// The services that opening a directory uses.
pub(crate) struct Opening<'a> {
    pub(crate) store: &'a Store,
    pub(crate) llm: &'a Client,
    pub(crate) clock: &'a Clock,
    pub(crate) env: &'a Env,
    pub(crate) dirs: &'a Dirs,
    pub(crate) sign_in: &'a SignIn,
    pub(crate) trust: &'a TrustState,
    pub(crate) catalog: &'a Source,
    pub(crate) plugins: &'a PluginTable,
    pub(crate) tasks: &'a TaskTracker,
}

impl Opening<'_> {
    /// Returns the environment with the tokens of organizations and the names of the catalog.
    fn variables(&self, stored: &Stored) -> Env {
        let catalog = self.catalog.open().catalog;
        remote::environment(self.env, stored).with_provider_keys(catalog.variables())
    }

    fn downloads(&self) -> Downloads<'_> {
        Downloads { llm: self.llm, dirs: self.dirs, clock: self.clock }
    }
}

/// One open directory.
pub struct Instance {
    pub(crate) directory: PathBuf,
    pub(crate) worktree: Worktree,
    pub(crate) project: Project,
    pub(crate) models: Models,
    /// Git, for diffs.
    pub(crate) git: codewright_workspace::git::Git,
    /// The snapshots of the files.
    pub(crate) snapshots: Snapshots,
    /// Whether snapshots are taken.
    pub(crate) keeps_files: bool,
    /// Background work that the end of the program waits for.
    pub(crate) tasks: TaskTracker,
    pub(crate) agents: Vec<AgentSpec>,
    pub(crate) commands: Vec<Command>,
    /// The prompt settings.
    pub(crate) prompt: PromptConfig,
    /// The origin of each configuration value.
    pub(crate) origins: Origins,
    default_agent: Option<String>,
    instructions: Sources,
    addresses: Addresses,
    plans_into_files: bool,
    pub(crate) settled: Settled,
    /// The formatters of changed files.
    pub(crate) formatters: Formatters,
    /// The variables that commands do not get, apart from those of every directory.
    pub(crate) removed_variables: Vec<String>,
    /// The secrets of the configuration.
    pub(crate) secrets: Secrets,
    /// The settings of the sandbox, which only the user sets.
    pub(crate) sandbox: SandboxConfig,
    /// Where programs are found, and which may run.
    pub(crate) programs: ProgramSearch,
    /// The configured language servers.
    pub(crate) lsp: Vec<Spec>,
    /// The configured MCP servers.
    pub(crate) mcp: Arc<Configured>,
    /// The configured hooks.
    pub(crate) hooks: Hooks,
    /// The configured plugins.
    pub(crate) plugins: Arc<Vec<PluginEntry>>,
    /// The files with plugins and tools.
    pub(crate) code: Code,
    /// The configuration without the changes of plugins, if there are any.
    base_config: Option<Value>,
    /// The settings of the process that runs plugins, which only the user sets.
    pub(crate) plugin_host: PluginHostConfig,
    /// Whether the repository's configuration takes effect.
    pub(crate) trust: Standing,
    skills: Vec<Skill>,
    raw_config: Value,
    path: PathReply,
    warnings: Mutex<Vec<String>>,
    /// Whether the earlier sessions of the directory have its project.
    pub(crate) has_adopted: OnceCell<()>,
    names: names::Names,
    trees: trees::Trees,
}

/// Returns the directories of an instance as clients receive them.
fn path_reply(dirs: &Dirs, worktree: &Path, directory: &Path) -> PathReply {
    let text = |path: &Path| path.to_string_lossy().into_owned();
    PathReply {
        home: text(&dirs.home),
        state: text(&dirs.state),
        config: text(&dirs.config),
        worktree: text(worktree),
        directory: text(directory),
    }
}

/// Whether an experiment is on, alone or with all others.
fn is_on(variables: &Env, experiment: &str) -> bool {
    variables.is_on(experiment) || variables.is_on(env::EXPERIMENTAL)
}

/// Gives the built-in agents without a configured prompt their own, and all agents the order that a plugin chose.
fn complete(agents: &mut [AgentSpec], order: &[String]) {
    codewright_config::reorder(agents, order);
    for agent in agents.iter_mut().filter(|agent| agent.native && agent.prompt.is_none()) {
        agent.prompt = prompts::of_agent(&agent.name).map(str::to_owned);
    }
}

impl Instance {
    /// Opens a directory with the changes of its plugins.
    pub(crate) async fn open(opening: &Opening<'_>, directory: &Path) -> Result<Self, Error> {
        let directory = real_directory(directory)?;
        let overlay = opening.plugins.overlay(&directory);
        Self::open_with(opening, directory, &overlay).await
    }

    /// Opens a directory with these changes of plugins.
    pub(crate) async fn open_with(
        opening: &Opening<'_>,
        directory: PathBuf,
        overlay: &Overlay,
    ) -> Result<Self, Error> {
        let worktree = codewright_config::find_worktree(&directory);
        let project = project(opening, &worktree).await?;
        let stored = opening.sign_in.vault().read().map_err(|error| Error::machine(error.to_string()))?;
        let variables = opening.variables(&stored);
        let (served, unserved) = remote::served(opening.llm, opening.dirs, opening.clock, &stored).await;
        let (dirs, env) = (opening.dirs, &variables);
        let input = LoadInput { directory: &directory, worktree: &worktree.root, env, dirs };
        let root = if worktree.git { &worktree.root } else { &directory };
        let level = |control: &_| opening.trust.level(root, control);
        let (loaded, control, base_config) = read(input, &served, overlay, level)?;
        let trust = opening.trust.standing(root, &control);
        let trusted = (trust.status == TrustStatus::Trusted).then_some(&control);
        let credentials = Credentials { stored, sign_in: Some(opening.sign_in.clone()) };
        let (skills, unskilled) = skills(input, trusted, &loaded, opening.downloads()).await;
        let mut agents =
            codewright_config::limited_agents(&loaded, opening.dirs, &worktree.root, &folders(&skills))?;
        let LoadedConfig { config, looked_for, mut warnings, origins, parts, folders, secrets, .. } = loaded;
        warnings.extend(trust.warning.iter().cloned().chain(config.sandbox.warnings()));
        let hooks = settings::hooks(input, &config, parts.as_deref(), trusted, &mut warnings);
        complete(&mut agents, &overlay.agents);
        let commands = commands(&config, parts.as_deref(), input, trusted, &skills);
        let default_agent = first_agent(&config, &agents, &mut warnings);
        let configs = Configs { config: &config, parts: parts.as_deref() };
        let access = Access { credentials: &credentials, env: &variables };
        let Opening { catalog, env, dirs, llm, .. } = *opening;
        let mut models = Models::open(Search { catalog, env, dirs, llm }, configs, access, &looked_for).await;
        models.set_fetches(opening.plugins.fetches(&directory));
        models.set_pictures(settled::pictures(&config.raw));
        let inert = parts.as_ref().filter(|parts| parts.trust == Trust::Inert);
        warnings.extend(inert.into_iter().flat_map(|parts| models.keep_usable(&parts.user)));
        warnings.extend(missing(&agents, &commands, &models, &origins));
        let settled = Settled::read(&config.raw, &variables, &mut warnings);
        let warnings =
            unserved.into_iter().chain(warnings).chain(unskilled).chain(credentials.stored.warnings);
        let warnings = warnings.chain(opening.catalog.open().warning).take(MAX_WARNINGS).collect();
        let place = programs::place(&variables, &worktree, &directory, &trust);
        let plugins = packages::entries(&config, parts.as_deref(), &origins, input);
        let code = Code::find(folders, packages::local(&plugins), input, trusted);
        Ok(Self {
            git: project_id::git(opening.env, opening.dirs),
            snapshots: snapshots(opening, &project, &worktree, &directory),
            keeps_files: config.snapshot != Some(false),
            project,
            models,
            tasks: opening.tasks.clone(),
            agents,
            default_agent,
            commands,
            prompt: config.prompt.clone(),
            removed_variables: removed_variables(&variables, &secrets),
            secrets,
            sandbox: config.sandbox.clone(),
            programs: place.search.clone(),
            formatters: programs::formatters(&config.raw, place),
            lsp: lsp::of(&config, parts.as_deref(), &variables),
            mcp: mcp::of(&config, parts.as_deref()),
            hooks,
            plugins,
            code,
            base_config,
            plugin_host: config.plugin_host.clone(),
            origins,
            instructions: Sources::new(&config, &variables, opening.dirs),
            addresses: Addresses::default(),
            plans_into_files: is_on(&variables, env::EXPERIMENTAL_PLAN_MODE),
            settled,
            skills,
            raw_config: config.raw,
            path: path_reply(opening.dirs, &worktree.root, &directory),
            warnings: Mutex::new(warnings),
            has_adopted: OnceCell::new(),
            names: names::Names::default(),
            trees: trees::Trees::default(),
            trust,
            directory,
            worktree,
        })
    }

    /// Returns the paths of the instance.
    #[must_use]
    pub fn path(&self) -> PathReply {
        self.path.clone()
    }

    /// Returns the formatters for `GET /formatter`.
    #[must_use]
    pub fn formatters_json(&self) -> Value {
        programs::listed(&self.formatters)
    }

    /// Returns the project of the directory.
    #[must_use]
    pub fn project(&self) -> Project {
        self.project.clone()
    }

    /// Reports whether the directory is in a git repository.
    #[must_use]
    pub fn is_repository(&self) -> bool {
        self.worktree.git
    }

    /// Returns the merged configuration including its secrets. `config_shown` is for clients.
    #[must_use]
    pub fn config_json(&self) -> Value {
        self.raw_config.clone()
    }

    pub(crate) fn raw_config(&self) -> &Value {
        &self.raw_config
    }

    /// Returns the configuration without the changes of plugins.
    pub(crate) fn base_config(&self) -> &Value {
        self.base_config.as_ref().unwrap_or(&self.raw_config)
    }

    /// Reports whether the directory has plugins or tool files.
    pub(crate) fn has_plugins(&self) -> bool {
        !self.plugins.is_empty() || !self.code.files.is_empty()
    }

    /// Returns the agents for `GET /agent`, with secrets hidden.
    #[must_use]
    pub fn agents_json(&self) -> Value {
        self.agents_for(Audience::Owner)
    }

    /// Returns the agents as an audience sees them.
    #[must_use]
    pub fn agents_for(&self, audience: Audience) -> Value {
        // Plain data always has a JSON form.
        let mut agents = serde_json::to_value(&self.agents).unwrap_or_default();
        agents.as_array_mut().into_iter().flatten().for_each(|agent| self.hide_in_agent(agent, audience));
        agents
    }

    /// Hides secrets in an agent, whose options are sent to its provider unchanged.
    pub(crate) fn hide_in_agent(&self, agent: &mut Value, audience: Audience) {
        let redaction = self.redaction(audience);
        if let Some(options) = agent.get_mut("options") {
            redaction.hide_below(options, &["agent", "", "options"]);
        }
        redaction.mask(agent);
    }

    /// Returns what is hidden from an audience.
    pub(crate) fn redaction(&self, audience: Audience) -> Redaction<'_> {
        Redaction { secrets: &self.secrets, audience }
    }

    /// Hides the values that the configuration inserts with `{env:…}` and `{file:…}` from an audience.
    pub fn mask(&self, value: &mut Value, audience: Audience) {
        self.redaction(audience).mask(value);
    }

    /// Returns the secrets that the configuration inserts, which no log may contain.
    pub fn inserted_secrets(&self) -> impl Iterator<Item = &str> {
        self.secrets.inserted()
    }

    /// Returns the skills for `GET /skill`.
    #[must_use]
    pub fn skills_json(&self) -> Value {
        let skills = self.skills.iter().map(|skill| {
            let mut shown = serde_json::Map::new();
            shown.insert("name".to_owned(), skill.name.as_str().into());
            if let Some(description) = &skill.description {
                shown.insert("description".to_owned(), description.as_str().into());
            }
            shown.insert("location".to_owned(), location(skill).into());
            shown.insert("content".to_owned(), skill.content.as_str().into());
            Value::Object(shown)
        });
        skills.collect()
    }

    /// Returns the tool switches of the configuration, overridden by those of a prompt.
    pub(crate) fn switches(&self, prompt: Option<&Switches>) -> Switches {
        let configured = self.raw_config.get("tools").and_then(Value::as_object).into_iter().flatten();
        // A disabled tool is already a rule here, which an agent's rules can override.
        let on = configured.filter(|(_, on)| **on == true).map(|(tool, _)| (tool.clone(), true));
        let on = on.chain(self.settled.batches.then(|| ("batch".to_owned(), true)));
        on.chain(prompt.into_iter().flatten().map(|(tool, on)| (tool.clone(), *on))).collect()
    }

    /// Returns the skills that the rules allow an agent to load.
    pub(crate) fn skills(&self, rules: &PermissionRules) -> Vec<Skill> {
        let is_denied = |skill: &&Skill| rules.decide("skill", &skill.name) == Action::Deny;
        self.skills.iter().filter(|skill| !is_denied(skill)).cloned().collect()
    }

    /// Returns the directories of the skills.
    pub(crate) fn skill_directories(&self) -> Vec<PathBuf> {
        let files = self.skills.iter().filter_map(|skill| skill.location.as_deref());
        files.filter_map(Path::parent).map(Path::to_owned).collect()
    }

    /// Returns the connected providers and their models, for `GET /config/providers`.
    #[must_use]
    pub fn providers_json(&self) -> Value {
        self.masked(self.models.json())
    }

    /// Returns all known providers, for `GET /provider`.
    #[must_use]
    pub fn provider_list_json(&self) -> Value {
        self.masked(self.models.list_json())
    }

    /// Returns a list of providers without the inserted secrets, which addresses may contain.
    fn masked(&self, mut value: Value) -> Value {
        self.mask(&mut value, Audience::Owner);
        value
    }

    /// Returns all known providers without their models.
    #[must_use]
    pub fn connections(&self) -> Vec<Connection> {
        self.models.connections()
    }

    /// Returns the usable providers. Fails if there are none.
    pub fn usable_providers(&self) -> Result<Vec<Value>, Error> {
        let usable = self.models.usable_json()?;
        Ok(usable.into_iter().map(|provider| self.masked(provider)).collect())
    }

    /// Returns one connected provider, for `GET /config/providers`.
    pub fn provider_json(&self, id: &str) -> Result<Value, Error> {
        self.models.provider_json(id).map(|provider| self.masked(provider))
    }

    /// Returns the warnings about invalid parts that were ignored.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        self.warnings.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn warn(&self, warning: &str) {
        let mut warnings = self.warnings.lock().unwrap_or_else(PoisonError::into_inner);
        if warnings.len() < MAX_WARNINGS && !warnings.iter().any(|known| known == warning) {
            warnings.push(warning.to_owned());
        }
    }

    pub(crate) fn directory_text(&self) -> String {
        self.path.directory.clone()
    }

    pub(crate) fn worktree_text(&self) -> String {
        self.path.worktree.clone()
    }

    /// Returns the paths that messages record.
    pub(crate) fn message_path(&self) -> MessagePath {
        MessagePath { cwd: self.directory_text(), root: self.worktree_text() }
    }

    /// Reports whether the user gave the provider a key, or the configuration names it.
    pub(crate) fn is_chosen(&self, provider_id: &str) -> bool {
        let names = |written: &Option<String>| {
            let model = written.as_deref().and_then(codewright_config::parse_model);
            model.is_some_and(|model| model.provider_id == provider_id)
        };
        let of_agent =
            |agent: &AgentSpec| agent.model.as_ref().is_some_and(|it| it.provider_id == provider_id);
        self.models.is_chosen(provider_id)
            || self.agents.iter().any(of_agent)
            || self.commands.iter().any(|command| names(&command.model))
    }

    /// Returns all agents.
    pub(crate) fn agents(&self) -> &[AgentSpec] {
        &self.agents
    }

    /// Returns the agent with a name.
    pub(crate) fn agent(&self, name: &str) -> Result<&AgentSpec, Error> {
        self.agents.iter().find(|agent| agent.name == name).ok_or_else(|| {
            let names = self.agents.iter().filter(|agent| !agent.hidden).map(|agent| agent.name.as_str());
            let names = names.collect::<Vec<_>>().join(", ");
            Error::invalid(format!("agent `{name}` not found; there are {names}"))
        })
    }

    /// Returns the requested agent, or else the configured one, or else `build`.
    pub(crate) fn agent_name(&self, wanted: Option<&str>) -> Result<String, Error> {
        let name = wanted.or(self.default_agent.as_deref()).unwrap_or(DEFAULT_AGENT);
        Ok(self.agent(name)?.name.clone())
    }

    /// Returns the names of rule files that apply in this directory and below it.
    pub(crate) fn rule_file_names(&self) -> impl Iterator<Item = &'static str> {
        self.instructions.kinds()
    }

    /// Reads the current instructions. Also returns the ones that were left out.
    pub(crate) async fn instructions(&self, llm: &Client) -> Found {
        let mut found = self.instructions.read(&self.worktree.root, &self.directory);
        if self.trust.status != TrustStatus::Trusted {
            found.mark_untrusted();
        }
        let asked = self.addresses.read(llm, &self.instructions.rules, self.instructions.addresses());
        let (fetched, warnings) = asked.await;
        found.listed.extend(fetched);
        found.warnings.extend(warnings);
        found
    }

    /// Returns the family whose base prompt a model receives.
    pub(crate) fn family(&self, model: &codewright_llm::Model) -> Family {
        if self.prompt.legacy {
            Family::of_older(&model.api_id)
        } else {
            Family::of(&model.provider_id, &model.api_id)
        }
    }

    /// Returns the file of a session's plan, if plans are written to files.
    pub(crate) fn enabled_plan_file(&self, dirs: &Dirs, session: &Session) -> Option<PathBuf> {
        self.plans_into_files.then(|| self.plan_file(dirs, session))
    }

    /// Returns the file of a session's plan, next to the project's configuration or in the program's data directory.
    pub(crate) fn plan_file(&self, dirs: &Dirs, session: &Session) -> PathBuf {
        let directory = match &session.access {
            _ if self.worktree.git => self.worktree.root.join(".opencode/plans"),
            Some(access) => Dirs::of_user(dirs.plans(), &access.owner),
            None => dirs.plans(),
        };
        directory.join(format!("{}-{}.md", session.time.created, session.slug))
    }
}

/// Returns the variables with secrets that commands do not get.
fn removed_variables(variables: &Env, secrets: &Secrets) -> Vec<String> {
    let used = secrets.variables().filter(|name| !env::is_shared(name));
    let removed: BTreeSet<&str> = variables.child_removals().into_iter().chain(used).collect();
    removed.into_iter().map(str::to_owned).collect()
}

/// Returns the commands of the configuration, of Claude Code's files in a trusted repository, and of skills.
fn commands(
    config: &Config,
    parts: Option<&Parts>,
    input: LoadInput<'_>,
    trusted: Option<&ControlFiles>,
    skills: &[Skill],
) -> Vec<Command> {
    let of_repository = parts.map(|parts| &parts.repository);
    let mut commands = commands::commands(config, of_repository, input.worktree, input.directory);
    if let Some(control) = trusted.filter(|_| config.prompt.claude) {
        commands.extend(commands::claude(control, &commands));
    }
    commands.extend(commands::of_skills(skills, &commands));
    commands
}

/// Reads the configuration with the changes of plugins, and without them if there are any, because plugins change what
/// they would find without them.
fn read(
    input: LoadInput<'_>,
    served: &[Remote],
    overlay: &Overlay,
    level: impl Fn(&ControlFiles) -> Trust,
) -> Result<(LoadedConfig, ControlFiles, Option<Value>), Error> {
    let base = match overlay.is_empty() {
        true => None,
        false => {
            let (loaded, _) = codewright_config::open(input, served, &Overlay::default(), &level)?;
            Some(loaded.config.raw)
        }
    };
    let (loaded, control) = codewright_config::open(input, served, overlay, level)?;
    Ok((loaded, control, base))
}

/// Resolves the links of a directory's path.
fn real_directory(directory: &Path) -> Result<PathBuf, Error> {
    let real = directory
        .canonicalize()
        .map_err(|error| Error::invalid(format!("cannot work in `{}`: {error}", directory.display())))?;
    if real.is_dir() {
        return Ok(real);
    }
    Err(Error::invalid(format!("`{}` is not a directory", real.display())))
}

/// Returns the default agent. An unusable one is replaced with a warning.
fn first_agent(config: &Config, agents: &[AgentSpec], warnings: &mut Vec<String>) -> Option<String> {
    let error = match codewright_config::default_agent(config, agents) {
        Ok(agent) => return Some(agent.name.clone()),
        Err(error) => error,
    };
    let plain = Config { default_agent: None, ..config.clone() };
    let instead = codewright_config::default_agent(&plain, agents).ok()?.name.clone();
    let hint = error.hint().map_or_else(String::new, |hint| format!("; {hint}"));
    warnings.push(format!("`default_agent`: {error}{hint}; `{instead}` begins instead"));
    Some(instead)
}

/// Returns warnings about names in agents and commands that do not exist.
fn missing(agents: &[AgentSpec], commands: &[Command], models: &Models, origins: &Origins) -> Vec<String> {
    let named = |path: String| match origins.of(&path) {
        Some(origin) => format!("`{origin}`: `{path}`"),
        None => format!("`{path}`"),
    };
    let mut missing = Vec::new();
    for agent in agents {
        if let Some(model) = &agent.model
            && models.find(&model.provider_id, &model.model_id).is_err()
        {
            let path = named(format!("agent.{}.model", agent.name));
            missing.push(format!(
                "{path} names `{}/{}`, which cannot be used here",
                model.provider_id, model.model_id
            ));
        }
    }
    for command in commands {
        if let Some(name) = &command.agent
            && agents.iter().all(|agent| agent.name != *name)
        {
            missing.push(format!(
                "{} names `{name}`, which is no agent",
                named(format!("command.{}.agent", command.name))
            ));
        }
        let model = command.model.as_deref().and_then(codewright_config::parse_model);
        if let Some(model) = model
            && models.find(&model.provider_id, &model.model_id).is_err()
        {
            let path = named(format!("command.{}.model", command.name));
            missing.push(format!(
                "{path} names `{}/{}`, which cannot be used here",
                model.provider_id, model.model_id
            ));
        }
    }
    missing
}

/// Returns the skills of a directory, and warnings about skills that were left out.
async fn skills(
    input: LoadInput<'_>,
    control: Option<&ControlFiles>,
    loaded: &LoadedConfig,
    downloads: Downloads<'_>,
) -> (Vec<Skill>, Vec<String>) {
    let (downloaded, mut warnings) = downloads.of(&loaded.config.raw).await;
    let LoadInput { directory, worktree, env, dirs } = input;
    let of_repository = loaded.parts.as_ref().and_then(|parts| parts.repository.raw.pointer("/skills/paths"));
    let paths = of_repository.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    let repository_paths: Vec<_> = paths.map(str::to_owned).collect();
    let config = &loaded.config.raw;
    let (found, skipped) = codewright_config::skills(SkillInput {
        directory,
        worktree,
        env,
        dirs,
        config,
        control,
        repository_paths: &repository_paths,
        downloaded: &downloaded,
    });
    let skills = found.into_iter().map(|skill| {
        let codewright_config::Skill { name, description, location, content } = skill;
        Skill { name, description, location, content }
    });
    warnings.extend(skipped);
    (skills.collect(), warnings)
}

/// Returns the folders of skills.
fn folders(skills: &[Skill]) -> Vec<PathBuf> {
    let files = skills.iter().filter_map(|skill| skill.location.as_deref());
    files.filter_map(|file| file.parent().map(Path::to_owned)).collect()
}

/// Returns the snapshots of a directory. The first snapshot creates their repository.
fn snapshots(opening: &Opening<'_>, project: &Project, worktree: &Worktree, directory: &Path) -> Snapshots {
    let mut options =
        codewright_snapshot::Options::new(&opening.dirs.data, project.id.as_str(), &worktree.root, directory);
    // Paths in a repository of snapshots are relative to its worktree, which is the directory itself in most projects.
    if options.worktree == options.scope
        && let Some(earlier) = earlier_snapshots(&options)
    {
        options.directory = earlier;
    }
    options.home = opening.dirs.home.canonicalize().ok();
    options.search = opening.env.get("PATH").map(OsString::from);
    Snapshots::new(options)
}

/// Returns the repository of snapshots that the directory had under an earlier id of its project, so that undo still works
/// after the first commit, for example.
fn earlier_snapshots(options: &codewright_snapshot::Options) -> Option<PathBuf> {
    if options.directory.exists() {
        return None;
    }
    let name = options.directory.file_name()?;
    let projects = std::fs::read_dir(&options.store).ok()?;
    projects.flatten().map(|project| project.path().join(name)).find(|path| path.is_dir())
}

/// Returns the project of a worktree, either the stored one or one named after the first commit. A linked worktree
/// belongs to the project of its main worktree.
pub(crate) async fn project(opening: &Opening<'_>, worktree: &Worktree) -> Result<Project, Error> {
    let main = main_worktree(&worktree.root);
    let worktree = &Worktree { root: main.unwrap_or_else(|| worktree.root.clone()), git: worktree.git };
    let root = worktree.root.to_string_lossy().into_owned();
    if let Some(known) = opening.store.project_of(&root).await? {
        // A repository without a commit at the first visit may have one now.
        if known.id != ProjectId::global() || !worktree.git {
            return Ok(known);
        }
    }
    let id = if worktree.git {
        project_id::first_commit(opening.env, opening.dirs, &worktree.root).await
    } else {
        None
    };
    let now = opening.clock.now_ms();
    let project = Project {
        id: id.unwrap_or_else(ProjectId::global),
        worktree: root,
        vcs: worktree.git.then(|| "git".to_owned()),
        name: None,
        icon: None,
        commands: None,
        time: ProjectTime { created: now, updated: now, initialized: None },
        sandboxes: Vec::new(),
    };
    opening.store.save_project(project.clone()).await?;
    Ok(project)
}

/// Returns the main worktree of the repository if `root` is a linked one that it has registered.
pub(crate) fn main_worktree(root: &Path) -> Option<PathBuf> {
    git_dirs(root)?.main_worktree(root)
}
