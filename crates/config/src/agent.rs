//! The agents of a directory: the built-in ones, changed and extended by the configuration.
//!
//! An agent's rules are one list: the default rules, the agent's built-in rules, the user's rules, the rules of its
//! configuration entry, and permission to read shortened tool outputs. The last matching rule decides.

use std::{
    cmp::Reverse,
    path::{Component, Path, PathBuf},
};

use codewright_proto::{
    Action::{self, Allow, Ask, Deny},
    PromptModel, Rule,
};
use serde::Serialize;

use crate::{
    AgentConfig, AgentProgram, Config, Dirs, Error, LoadedConfig, Map, SandboxMode, Trust, merge, nearest,
    parse_model, request,
};

/// The number of names that are suggested for an unknown agent.
const NEAREST_NAMES: usize = 3;

/// The callers of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum AgentMode {
    /// Only the user.
    Primary,
    /// Only other agents.
    Subagent,
    /// The user and other agents.
    All,
}

impl AgentMode {
    pub(crate) fn parse(written: &str) -> Option<Self> {
        match written {
            "primary" => Some(Self::Primary),
            "subagent" => Some(Self::Subagent),
            "all" => Some(Self::All),
            _ => None,
        }
    }
}

/// The definition of an agent, for sessions and clients.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AgentSpec {
    /// The name.
    pub name: String,
    /// When to use the agent; other agents decide by it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The callers of the agent.
    pub mode: AgentMode,
    /// Whether the agent is built in.
    pub native: bool,
    /// Whether the agent is omitted from lists.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub hidden: bool,
    /// The `top_p` sampling parameter.
    #[serde(rename = "topP", skip_serializing_if = "Option::is_none")]
    pub top_p: Option<f64>,
    /// The sampling temperature.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// The display colour.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub color: Option<String>,
    /// All permission rules, in order.
    pub permission: Vec<Rule>,
    /// The number of rules at the beginning of `permission` that are built in.
    #[serde(skip)]
    pub built_in_rules: usize,
    /// The agent's model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<PromptModel>,
    /// The model variant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub variant: Option<String>,
    /// The configured prompt. The prompts of built-in agents are in the engine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// Options for each request.
    pub options: Map,
    /// The maximum number of steps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steps: Option<u64>,
    /// The sandbox that the agent requires. The configured mode holds if it is stricter.
    #[serde(skip)]
    pub sandbox: SandboxMode,
    /// The user's own rules, if a repository has rules too.
    #[serde(skip)]
    pub limits: Option<RuleLimits>,
    /// The program of another agent, which answers the prompts in place of a model.
    #[serde(skip)]
    pub acp: Option<AcpProgram>,
}

/// The program of an agent that speaks the Agent Client Protocol.
#[derive(Clone, PartialEq, Eq)]
pub struct AcpProgram {
    /// The program and its arguments, at least one word.
    pub command: Vec<String>,
    /// The variables of the program, some of which are secrets.
    pub environment: Vec<(String, String)>,
    /// Its working directory, relative to the directory of the session.
    pub cwd: Option<String>,
    /// Whether a repository's configuration names any of this.
    pub of_repository: bool,
}

impl std::fmt::Debug for AcpProgram {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AcpProgram").field("command", &self.command).finish_non_exhaustive()
    }
}

/// The rules that a repository's rules cannot loosen, and the exceptions that the user accepted.
#[derive(Debug, Clone, PartialEq)]
pub struct RuleLimits {
    /// The agent's rules without the repository's.
    pub user: Vec<Rule>,
    /// The number of rules at the beginning of `user` that are built in.
    pub built_in_rules: usize,
    /// Rules of the repository that may allow calls that need permission under the user's rules.
    pub exceptions: Vec<Rule>,
    /// Only the repository's rules, after one that allows everything, so that they can only restrict.
    pub repository: Vec<Rule>,
}

/// The rules that every agent starts with if there are no skills.
#[must_use]
pub fn default_rules(dirs: &Dirs) -> Vec<Rule> {
    base_rules(dirs, &[])
}

fn base_rules(dirs: &Dirs, skills: &[PathBuf]) -> Vec<Rule> {
    let mut rules =
        vec![Rule::new("*", "*", Allow), Rule::new("doom_loop", "*", Ask), Rule::new("network", "*", Ask)];
    rules.extend(external_directory_rules(dirs, skills));
    rules.extend([
        Rule::new("question", "*", Deny),
        Rule::new("plan_enter", "*", Deny),
        Rule::new("plan_exit", "*", Deny),
        Rule::new("read", "*", Allow),
        Rule::new("read", "*.env", Ask),
        Rule::new("read", "*.env.*", Ask),
        Rule::new("read", "*.env.example", Allow),
    ]);
    rules
}

/// The built-in agents without any configuration.
#[must_use]
pub fn builtin_agents(dirs: &Dirs, worktree: &Path) -> Vec<AgentSpec> {
    sorted(with_tool_outputs(natives(dirs, worktree, &[], &[]), dirs), "build")
}

/// The built-in agents with the changes of the configuration, and the agents that it adds. Disabled agents are omitted.
/// The default agent is first, the others are sorted by name.
///
/// Every agent may read the directories in `skills`, because a skill refers to files next to it.
pub fn agents(
    config: &Config,
    dirs: &Dirs,
    worktree: &Path,
    skills: &[PathBuf],
) -> Result<Vec<AgentSpec>, Error> {
    let mut agents = natives(dirs, worktree, skills, &config.permission);
    for (name, written) in config.agent.iter() {
        // Configured names are distinct, so only a built-in agent can exist already.
        let existing = agents.iter().take_while(|agent| agent.native).position(|agent| agent.name == name);
        match existing.and_then(|at| agents.get_mut(at)) {
            Some(agent) if written.disable != Some(true) => change(agent, written)?,
            Some(_) => agents.retain(|agent| agent.name != name),
            None if written.disable == Some(true) => {}
            None => {
                let base = base_rules(dirs, skills);
                let built_in_rules = base.len();
                let rules = [base, config.permission.clone()].concat();
                let added = new_agent(name, AgentMode::All, rules);
                let mut added = AgentSpec { native: false, built_in_rules, ..added };
                change(&mut added, written)?;
                agents.push(added);
            }
        }
    }
    let first = config.default_agent.as_deref().unwrap_or("build");
    Ok(sorted(with_tool_outputs(agents, dirs), first))
}

/// The agents of a directory, each with the user's own rules as limits if the repository adds rules.
///
/// # Errors
///
/// See [`agents`].
pub fn limited_agents(
    loaded: &LoadedConfig,
    dirs: &Dirs,
    worktree: &Path,
    skills: &[PathBuf],
) -> Result<Vec<AgentSpec>, Error> {
    let mut merged = agents(&loaded.config, dirs, worktree, skills)?;
    let Some(parts) = &loaded.parts else { return Ok(merged) };
    let own = agents(&parts.user, dirs, worktree, skills)?;
    let base = base_rules(dirs, skills);
    let general = [base.clone(), parts.user.permission.clone()].concat();
    for agent in &mut merged {
        let written = parts.repository.agent.get(&agent.name);
        if let Some(program) = &mut agent.acp {
            program.of_repository = written.is_some_and(|written| !written.program.is_empty());
        }
        let user = own.iter().find(|own| own.name == agent.name);
        let user = user.map(|own| (own.permission.clone(), own.built_in_rules));
        let (user, built_in_rules) = user.unwrap_or_else(|| {
            let alone = AgentSpec { permission: general.clone(), ..agent.clone() };
            let rules = with_tool_outputs(vec![alone], dirs).pop().map(|agent| agent.permission);
            (rules.unwrap_or_default(), base.len())
        });
        let of_agent = written.map(|agent| agent.permission.as_slice());
        let rules = [parts.repository.permission.as_slice(), of_agent.unwrap_or_default()].concat();
        let exceptions = match parts.trust {
            Trust::Full => request::exceptions(&rules),
            Trust::Inert => Vec::new(),
        };
        let repository = [vec![Rule::new("*", "*", Allow)], rules].concat();
        agent.limits = Some(RuleLimits { user, built_in_rules, exceptions, repository });
    }
    Ok(merged)
}

/// The agent of a new session: the configured one, or `build`, or the first that the user can call.
pub fn default_agent<'a>(config: &Config, agents: &'a [AgentSpec]) -> Result<&'a AgentSpec, Error> {
    let callable = |agent: &&AgentSpec| agent.mode != AgentMode::Subagent && !agent.hidden;
    let Some(name) = config.default_agent.as_deref() else {
        let build = agents.iter().find(|agent| agent.name == "build").filter(callable);
        return build.or_else(|| agents.iter().find(callable)).ok_or_else(|| Error::Agent {
            name: "build".to_owned(),
            problem: "is disabled, and no other agent can start a session",
            nearest: Vec::new(),
        });
    };
    let problem = match agents.iter().find(|agent| agent.name == name) {
        None => "does not exist",
        Some(agent) if agent.mode == AgentMode::Subagent => "can only be called by other agents",
        Some(agent) if agent.hidden => "is hidden",
        Some(agent) => return Ok(agent),
    };
    let names = agents.iter().filter(callable).map(|agent| agent.name.as_str());
    Err(Error::Agent { name: name.to_owned(), problem, nearest: nearest(name, names, NEAREST_NAMES) })
}

fn natives(dirs: &Dirs, worktree: &Path, skills: &[PathBuf], user: &[Rule]) -> Vec<AgentSpec> {
    let base = base_rules(dirs, skills);
    let with = |name: &str, mode, own: Vec<Rule>| {
        let built_in_rules = base.len() + own.len();
        let agent = new_agent(name, mode, [base.clone(), own, user.to_vec()].concat());
        AgentSpec { built_in_rules, ..agent }
    };
    let internal = |name: &str| AgentSpec {
        hidden: true,
        ..with(name, AgentMode::Primary, vec![Rule::new("*", "*", Deny)])
    };
    let described = |text: &str, agent: AgentSpec| AgentSpec { description: Some(text.to_owned()), ..agent };
    let reading = |agent: AgentSpec| AgentSpec { sandbox: SandboxMode::ReadOnly, ..agent };
    let build = vec![Rule::new("question", "*", Allow), Rule::new("plan_enter", "*", Allow)];
    let general = vec![Rule::new("todowrite", "*", Deny)];
    vec![
        described(BUILD, with("build", AgentMode::Primary, build)),
        reading(described(PLAN, with("plan", AgentMode::Primary, plan_rules(dirs, worktree)))),
        described(GENERAL, with("general", AgentMode::Subagent, general)),
        reading(described(EXPLORE, with("explore", AgentMode::Subagent, explore_rules(dirs, skills)))),
        internal("compaction"),
        AgentSpec { temperature: Some(0.5), ..internal("title") },
        internal("summary"),
    ]
}

const BUILD: &str = "Works on the project with every tool its permissions grant.";
const PLAN: &str = "Studies the project and proposes changes without making them.";
const GENERAL: &str = "Takes over a self-contained task that needs several steps: research, comparison, \
                       or a change that touches many places. Good for running independent pieces at once.";
const EXPLORE: &str = "Finds things in the code base without changing it: where something is defined or \
                       used, which files match a pattern, how a part works. Say in the task how far to \
                       dig: \"quick\" for one look, \"medium\" for the likely places, \"very thorough\" \
                       for every naming and location that comes to mind.";

fn plan_rules(dirs: &Dirs, worktree: &Path) -> Vec<Rule> {
    let plans = dirs.plans();
    vec![
        Rule::new("question", "*", Allow),
        Rule::new("plan_exit", "*", Allow),
        Rule::new("task", "general", Deny),
        Rule::new("external_directory", &pattern(&plans.join("*")), Allow),
        Rule::new("edit", "*", Deny),
        Rule::new("edit", ".opencode/plans/*.md", Allow),
        Rule::new("edit", &pattern(&relative(worktree, &plans.join("*.md"))), Allow),
    ]
}

fn explore_rules(dirs: &Dirs, skills: &[PathBuf]) -> Vec<Rule> {
    let mut rules = vec![Rule::new("*", "*", Deny)];
    rules.extend(
        ["grep", "glob", "list", "bash", "webfetch", "websearch", "read"]
            .map(|tool| Rule::new(tool, "*", Allow)),
    );
    // Its commands change nothing, like `webfetch`, so the user can decide.
    rules.push(Rule::new("network", "*", Ask));
    rules.extend(external_directory_rules(dirs, skills));
    rules
}

fn external_directory_rules(dirs: &Dirs, skills: &[PathBuf]) -> Vec<Rule> {
    let mut rules = vec![
        Rule::new("external_directory", "*", Ask),
        Rule::new("external_directory", &pattern(&dirs.tool_output().join("*")), Allow),
        Rule::new("external_directory", &pattern(&dirs.tmp.join("*")), Allow),
    ];
    let of_skill = |skill: &PathBuf| Rule::new("external_directory", &pattern(&skill.join("*")), Allow);
    rules.extend(skills.iter().map(of_skill));
    rules
}

fn new_agent(name: &str, mode: AgentMode, permission: Vec<Rule>) -> AgentSpec {
    AgentSpec {
        name: name.to_owned(),
        description: None,
        mode,
        native: true,
        hidden: false,
        top_p: None,
        temperature: None,
        color: None,
        permission,
        built_in_rules: 0,
        model: None,
        variant: None,
        prompt: None,
        options: Map::new(),
        steps: None,
        sandbox: SandboxMode::Off,
        limits: None,
        acp: None,
    }
}

fn change(agent: &mut AgentSpec, written: &AgentConfig) -> Result<(), Error> {
    if let Some(model) = &written.model {
        let parsed = parse_model(model).ok_or_else(|| Error::Model { agent: agent.name.clone() })?;
        agent.model = Some(parsed);
    }
    replace(&mut agent.variant, written.variant.as_ref());
    replace(&mut agent.prompt, written.prompt.as_ref());
    replace(&mut agent.description, written.description.as_ref());
    replace(&mut agent.temperature, written.temperature.as_ref());
    replace(&mut agent.top_p, written.top_p.as_ref());
    replace(&mut agent.color, written.color.as_ref());
    replace(&mut agent.steps, written.steps.as_ref());
    agent.mode = written.mode.unwrap_or(agent.mode);
    agent.hidden = written.hidden.unwrap_or(agent.hidden);
    merge::merge_maps(&mut agent.options, written.options.clone());
    agent.permission.extend_from_slice(&written.permission);
    agent.acp = acp_program(&agent.name, &written.program)?;
    // Only stricter, because the entry may be the repository's.
    agent.sandbox = agent.sandbox.max(written.sandbox.unwrap_or_default());
    Ok(())
}

/// Returns the program of an agent of the type `acp`.
fn acp_program(name: &str, written: &AgentProgram) -> Result<Option<AcpProgram>, Error> {
    if written.protocol.is_none() {
        return Ok(None);
    }
    let command: Vec<_> = written.command.iter().chain(&written.args).cloned().collect();
    if written.command.first().is_none_or(String::is_empty) {
        return Err(Error::AgentProgram { name: name.to_owned() });
    }
    let environment = written.environment.iter().map(|(name, value)| (name.to_owned(), value.clone()));
    let (environment, cwd) = (environment.collect(), written.cwd.clone());
    Ok(Some(AcpProgram { command, environment, cwd, of_repository: false }))
}

fn replace<T: Clone>(old: &mut Option<T>, new: Option<&T>) {
    if let Some(new) = new {
        *old = Some(new.clone());
    }
}

/// Allows every agent to read the full texts of shortened tool outputs, unless a rule denies exactly that.
fn with_tool_outputs(mut agents: Vec<AgentSpec>, dirs: &Dirs) -> Vec<AgentSpec> {
    let outputs = pattern(&dirs.tool_output().join("*"));
    for agent in &mut agents {
        let about = |rule: &Rule, action: Action| {
            rule.permission == "external_directory" && rule.pattern == outputs && rule.action == action
        };
        if !agent.permission.iter().any(|rule| about(rule, Deny)) {
            agent.permission.push(Rule::new("external_directory", &outputs, Allow));
        }
    }
    agents
}

/// Moves the agents that `order` names to the front, in this order. The others keep theirs.
pub fn reorder(agents: &mut [AgentSpec], order: &[String]) {
    let place = |agent: &AgentSpec| order.iter().position(|name| *name == agent.name);
    agents.sort_by_key(|agent| place(agent).unwrap_or(order.len()));
}

/// Sorts agents by name, the default one first. Names are compared by their UTF-16 units, as in the original.
fn sorted(mut agents: Vec<AgentSpec>, first: &str) -> Vec<AgentSpec> {
    agents.sort_by(|a, b| {
        let key = |agent: &AgentSpec| Reverse(agent.name == first);
        key(a).cmp(&key(b)).then_with(|| a.name.encode_utf16().cmp(b.name.encode_utf16()))
    });
    agents
}

fn pattern(path: &Path) -> String {
    path.display().to_string()
}

/// The path of `to` relative to `from`. Both are absolute.
fn relative(from: &Path, to: &Path) -> PathBuf {
    let shared = from.components().zip(to.components()).take_while(|(a, b)| a == b).count();
    let up = from.components().skip(shared).map(|_| Component::ParentDir);
    up.chain(to.components().skip(shared)).collect()
}
