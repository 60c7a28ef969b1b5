//! Prepares a step: its tools, its system text and its request.

use std::path::PathBuf;
use std::sync::Arc;

use codewright_llm::{Model, Request, ToolSpec};
use codewright_proto::{MessageWithParts, PartBody, PromptModel, ToolPart, ToolState, UserMessage};
use codewright_tools::{Bash, LoadedInstructions, Lsp, ModelName, Tool as _};
use serde_json::{Map, Value};

use crate::commands;
use crate::extension::model_request::About;
use crate::extension::{Extensions, Moment};
use crate::inner::Inner;
use crate::instance::Instance;
use crate::mcp;
use crate::models::options::merge;
use crate::permission::rules::PermissionRules;
use crate::request::instructions::Found;
use crate::request::system::{Block, Facts, Surroundings};
use crate::request::{Parts, history, skills, system};
use crate::run::files::Files;
use crate::run::repetition::Repetition;
use crate::run::structured;
use crate::sandbox::enforcement::announced;
use crate::sandbox::masked::is_kept_from_model;
use crate::subagent::handover::Caller;
use crate::toolbox::Selection;
use crate::toolbox::spec::spec;
use crate::{Error, request};

/// The inputs of a step.
pub(crate) struct Step {
    pub(crate) instance: Arc<Instance>,
    pub(crate) model: Arc<Model>,
    pub(crate) request: Request,
    pub(crate) selection: Selection,
    pub(crate) caller: Arc<Caller>,
    /// The schema of the value that the prompt requests.
    pub(crate) schema: Option<Arc<Value>>,
    /// The file changes of the step.
    pub(crate) files: Option<Arc<Files>>,
    /// The instruction files that the model has received.
    pub(crate) loaded: LoadedInstructions,
    /// The last calls of the turn.
    pub(crate) repetition: Repetition,
    pub(crate) extensions: Extensions,
}

impl Step {
    /// Returns a step without tools.
    pub(crate) fn without_tools(instance: Arc<Instance>, model: Arc<Model>, request: Request) -> Self {
        let (selection, caller, loaded) =
            (Selection::default(), Arc::default(), LoadedInstructions::default());
        let (repetition, extensions) = (Repetition::default(), Extensions::default());
        let (schema, files) = (None, None);
        Self { instance, model, request, selection, caller, schema, files, loaded, repetition, extensions }
    }
}

/// The sources of a step.
pub(super) struct Preparing<'a> {
    pub(super) inner: &'a Inner,
    pub(super) session: &'a codewright_proto::Session,
    pub(super) prompt: &'a UserMessage,
    pub(super) transcript: &'a [MessageWithParts],
    pub(super) surroundings: &'a Surroundings,
    pub(super) extensions: &'a Extensions,
}

/// The sources of the tools of a step.
#[derive(Clone, Copy)]
pub(crate) struct ToolSources<'a> {
    pub(crate) inner: &'a Inner,
    pub(crate) instance: &'a Instance,
    pub(crate) model: &'a Model,
    pub(crate) rules: &'a PermissionRules,
    pub(crate) prompt: &'a UserMessage,
    pub(crate) transcript: &'a [MessageWithParts],
    pub(crate) extensions: &'a Extensions,
}

/// The tools of a step.
pub(crate) struct Offer {
    /// The definitions for the model.
    pub(crate) specs: Vec<ToolSpec>,
    pub(crate) selection: Selection,
    /// The block of the system text about the MCP servers.
    pub(crate) mcp: Option<String>,
}

/// Returns the tools that a prompt offers under these permission rules.
pub(crate) fn offer(sources: ToolSources<'_>) -> Offer {
    let ToolSources { inner, instance, model, rules, prompt, transcript, extensions } = sources;
    let name = ModelName { provider_id: &model.provider_id, api_id: &model.api_id };
    let switches = &instance.switches(prompt.tools.as_ref());
    let mut selection = inner.toolbox.select(name, rules, switches);
    // Without a configured server every call would fail.
    selection.offered.retain(|tool| tool.name() != Lsp::NAME || !instance.lsp.is_empty());
    let session = &prompt.session_id;
    let request = mcp::tool::Request { session, model, rules, switches, transcript };
    let servers = mcp::tool::offered(inner, instance, request);
    selection.offered.extend(servers.tools);
    let is_on = |name: &str| switches.get(name) != Some(&false) && !rules.is_off(name);
    for tool in extensions.tools().into_iter().filter(|tool| is_on(tool.name())) {
        // A tool of an extension replaces another one of its name.
        selection.offered.retain(|known| known.name() != tool.name());
        selection.offered.push(tool);
    }
    selection.searched = servers.searched;
    let tools = selection.offered.iter().map(|tool| spec(tool.as_ref(), instance, rules));
    let mut tools: Vec<_> = tools.chain(structured::requested_schema(prompt).map(structured::spec)).collect();
    tools.sort_by_key(|tool| tool.name.to_lowercase());
    Offer { specs: tools, selection, mcp: servers.instructions }
}

/// The sources of the system text of a step.
#[derive(Clone, Copy)]
pub(crate) struct SystemSources<'a> {
    pub(crate) prompt: &'a UserMessage,
    pub(crate) surroundings: &'a Surroundings,
    pub(crate) model: &'a Model,
    pub(crate) tools: &'a [ToolSpec],
    pub(crate) rules: &'a PermissionRules,
    /// The block about the MCP servers of the directory.
    pub(crate) mcp: Option<&'a str>,
    /// What the sandbox lets commands do.
    pub(crate) sandbox: &'a str,
}

/// Returns the blocks of the system text of a step.
pub(crate) fn system_blocks(
    instance: &Instance,
    sources: SystemSources<'_>,
    instructions: &Found,
) -> Result<Vec<Block>, Error> {
    let SystemSources { prompt, surroundings, model, tools, rules, .. } = sources;
    let agent = instance.agent(&prompt.agent)?;
    let has = |tool: &str| tools.iter().any(|offered| offered.name == tool);
    let family = instance.family(model);
    let own = agent.prompt.clone().filter(|own| !own.trim().is_empty());
    let base_origin = match &own {
        Some(_) => format!("agent `{}`", agent.name),
        None => format!("family `{}`", family.name()),
    };
    // With a ChatGPT account the prompt of the family is already in the request's instructions.
    let base = own.unwrap_or_else(|| if model.is_codex() { String::new() } else { family.prompt(&has) });
    Ok(system::blocks(&Facts {
        header: instance.prompt.header.as_deref(),
        base: &base,
        base_origin,
        model_name: &model.name,
        model_id: format!("{}/{}", model.provider_id, model.id),
        directory: &instance.directory,
        worktree: &instance.worktree.root,
        is_git: instance.worktree.git,
        surroundings,
        sandbox: has(Bash::NAME).then(|| sources.sandbox.to_owned()),
        rules: &instructions.rules,
        instructions: &instructions.listed,
        mcp: sources.mcp.map(str::to_owned),
        skills: has("skill").then(|| skills::block(&instance.skills(rules))).flatten(),
        commands: instance.prompt.claude.then(|| commands::listed(&instance.commands)).flatten(),
        structured: structured::requested_schema(prompt).is_some(),
        config: instance.prompt.system.as_deref(),
        user: prompt.system.as_deref(),
        tree_tag: if instance.prompt.legacy { "project" } else { "files" },
        strict: instance.prompt.strict,
    }))
}

pub(super) async fn prepare(
    instance: Arc<Instance>,
    cx: &Preparing<'_>,
    rules: PermissionRules,
    mut instructions: Found,
) -> Result<Step, Error> {
    let Preparing { inner, session, prompt, transcript, surroundings, extensions } = *cx;
    let model = instance.models.find(&prompt.model.provider_id, &prompt.model.model_id)?;
    let agent = instance.agent(&prompt.agent)?;
    let (of, model_of, rules_of) = (&instance, &model, &rules);
    let sources =
        ToolSources { inner, instance: of, model: model_of, rules: rules_of, prompt, transcript, extensions };
    let Offer { specs: mut tools, selection, mcp } = offer(sources);
    // The tools of MCP servers and the one for structured values are not announced to extensions.
    extensions
        .tool_definitions(&mut tools, |name| inner.toolbox.has(name) || has_tool(extensions, name))
        .await;
    instructions.leave_out(|path| is_kept_from_model(inner, &instance, &rules, path));
    for warning in &instructions.warnings {
        instance.warn(warning);
    }
    let (model_of, mcp) = (&model, mcp.as_deref());
    let sandbox = &announced(inner, &instance, session.permission.as_deref().unwrap_or_default());
    let sources =
        SystemSources { prompt, surroundings, model: model_of, tools: &tools, rules: &rules, mcp, sandbox };
    let blocks = system_blocks(&instance, sources, &instructions)?;
    let system = system::joined(&blocks);
    let mut options = agent.options.clone();
    if let Some(variant) = prompt.model.variant.as_deref() {
        merge_variant(&instance, &model, variant, &mut options);
    }
    if !model.capabilities.tool_call && !selection.offered.is_empty() {
        let (provider, id) = (&model.provider_id, &model.id);
        instance.warn(&format!(
            "the model `{provider}/{id}` is not known to call tools, so it is offered none and can only talk; \
             if it can, set `provider.{provider}.models.{id}.tool_call` to true in opencode.json"
        ));
    }
    let schema = structured::requested_schema(prompt);
    let plan_file = instance.enabled_plan_file(&inner.dirs, session);
    let changed = changed_messages(extensions, transcript).await;
    let parts = Parts {
        session,
        transcript: changed.as_deref().unwrap_or(transcript),
        zone: &inner.zone,
        prompt,
        steps: agent.steps,
        plan_file: plan_file.as_deref(),
        system,
        tools,
        wants_value: schema.is_some(),
        temperature: agent.temperature,
        top_p: agent.top_p,
        options,
    };
    let mut request = request::request(parts, &model);
    let (models, agent) = (&instance.models, prompt.agent.as_str());
    let about = About { session: &session.id, agent, models, model: &model, prompt };
    extensions.model_request(about, &mut request).await;
    let schema = schema.cloned().map(Arc::new);
    let caller = Arc::new(caller(prompt, transcript, rules));
    let loaded = loaded_instructions(&instance, &instructions, transcript);
    let repetition = Repetition::of(transcript);
    let extensions = extensions.clone();
    Ok(Step {
        extensions,
        instance,
        model,
        request,
        selection,
        caller,
        schema,
        files: None,
        loaded,
        repetition,
    })
}

/// Reports whether a tool belongs to an extension.
fn has_tool(extensions: &Extensions, name: &str) -> bool {
    extensions.tools().iter().any(|tool| tool.name() == name)
}

/// Returns the messages of a request as the extensions change them, if they do.
pub(crate) async fn changed_messages(
    extensions: &Extensions,
    transcript: &[MessageWithParts],
) -> Option<Vec<MessageWithParts>> {
    if !extensions.take(Moment::Messages) {
        return None;
    }
    let sent = history::visible(transcript).into_iter().cloned().collect();
    Some(extensions.messages(sent).await)
}

/// Returns the instruction files in the request: those in the system text and those that were added to read files. A
/// cleared output and a message before a summary are not in the request, so their files are added again.
fn loaded_instructions(
    instance: &Arc<Instance>,
    instructions: &Found,
    transcript: &[MessageWithParts],
) -> LoadedInstructions {
    let files = instructions.rules.iter().chain(&instructions.listed);
    let system = files.map(|file| PathBuf::from(&file.origin));
    let sent = history::visible(transcript);
    let read = sent.into_iter().flat_map(|message| &message.parts).filter_map(|part| match &part.body {
        PartBody::Tool(ToolPart { state: ToolState::Completed { metadata, time, .. }, .. })
            if time.compacted.is_none() =>
        {
            metadata.get("loaded")?.as_array()
        }
        _ => None,
    });
    let read = read.flatten().filter_map(Value::as_str).map(PathBuf::from);
    let warned = Arc::downgrade(instance);
    LoadedInstructions::new(system.chain(read)).with_names(instance.rule_file_names()).with_warnings(
        move |warning| {
            if let Some(instance) = warned.upgrade() {
                instance.warn(warning);
            }
        },
    )
}

/// Returns the caller of the step's calls.
fn caller(prompt: &UserMessage, transcript: &[MessageWithParts], rules: PermissionRules) -> Caller {
    let asked = transcript.iter().rev().find(|message| *message.info.id() == prompt.id);
    let named = asked.into_iter().flat_map(|message| &message.parts).filter_map(|part| match &part.body {
        PartBody::Agent { name, .. } => Some(name.clone()),
        _ => None,
    });
    let off = prompt.tools.iter().flatten().filter(|(_, on)| !**on);
    Caller {
        rules,
        agent: prompt.agent.clone(),
        model: Some(PromptModel { variant: None, ..prompt.model.clone() }),
        switched_off: off.map(|(tool, _)| tool.clone()).collect(),
        named: named.collect(),
        ..Caller::default()
    }
}

/// Merges the options of a named variant into the others.
fn merge_variant(instance: &Instance, model: &Model, name: &str, options: &mut Map<String, Value>) {
    match instance.models.variant(model, name) {
        Some(variant) => merge(options, variant),
        // The name for no variant.
        None if name == "default" => {}
        // Clients keep a variant when the model changes, so an unknown variant is not an error.
        None => {
            let has = match instance.models.variants(model).as_slice() {
                [] => "it has none".to_owned(),
                names => format!("it has {}", names.join(", ")),
            };
            let model = format!("{}/{}", model.provider_id, model.id);
            instance.warn(&format!("the model `{model}` has no variant `{name}`; {has}"));
        }
    }
}
