//! The tools of MCP servers as tools of the engine: they need permission and are truncated and recorded like any other.
//!
//! The name of a tool is its permission. A tool that does not say that it changes nothing may change any file, so a rule
//! that denies all edits, as in plan mode, leads to a question.

use std::sync::Arc;

use codewright_llm::Model;
use codewright_mcp::{Call, Content, Servers, Tool, result, tool_names};
use codewright_proto::{MessageWithParts, PartBody, SessionId};
use codewright_tools::{
    AnyTool, Ask, Boxed, Certainty, Effect, Facts, Implied, Output, ToolCx, ToolError, UNKNOWN,
};
use serde_json::{Map, Value};

use super::Asking;
use super::catalogue::Named;
use super::economy::{Offer, Question, Snapshot, model_name};
use super::gateway::Gateway;
use super::search::Listed;
use super::{instructions, resources, wrapped};
use crate::inner::Inner;
use crate::instance::Instance;
use crate::permission::rules::PermissionRules;
use crate::toolbox::Switches;

/// The limit for the files of a result.
const MAX_FILE_BYTES: usize = 20 * 1024 * 1024;

/// The facts of a tool that changes nothing.
const READ_ONLY: &Facts = &Facts { effect: Effect::None, ..Facts::PLAIN };
/// The bytes that a request contains for a tool besides its name, its description and its schema.
const FRAME_BYTES: usize = 60;

/// A tool of a server.
struct McpTool {
    servers: Servers,
    server: Arc<str>,
    /// Its name for models and rules.
    name: String,
    tool: Arc<Tool>,
    asking: Arc<Asking>,
}

/// A request whose tools are selected.
#[derive(Clone, Copy)]
pub(crate) struct Request<'a> {
    pub(crate) session: &'a SessionId,
    pub(crate) model: &'a Model,
    pub(crate) rules: &'a PermissionRules,
    pub(crate) switches: &'a Switches,
    pub(crate) transcript: &'a [MessageWithParts],
}

/// What the servers of a directory add to a request.
#[derive(Default)]
pub(crate) struct Offered {
    pub(crate) tools: Vec<Arc<dyn AnyTool>>,
    /// The tools that the search tool calls.
    pub(crate) searched: Vec<Arc<dyn AnyTool>>,
    /// The block of the system text.
    pub(crate) instructions: Option<String>,
}

/// Returns what the servers of a directory add to a request: only tools that its rules and switches allow.
pub(crate) fn offered(inner: &Inner, instance: &Instance, request: Request<'_>) -> Offered {
    let Some(servers) = inner.mcp.find(&instance.directory) else { return Offered::default() };
    let all = listed(inner, &servers);
    let is_on = |name: &str| request.switches.get(name) != Some(&false) && !request.rules.is_off(name);
    let visible: Vec<Listed> = all.iter().filter(|listed| is_on(&listed.name)).cloned().collect();
    let tool = |listed: &Listed| -> Arc<dyn AnyTool> {
        let Listed { server, name, tool } = listed.clone();
        Arc::new(McpTool { servers: servers.clone(), server, name, tool, asking: inner.mcp.asking.clone() })
    };
    let tools: Vec<_> = visible.iter().map(tool).collect();
    let resources = |exist: bool| {
        let tools = exist.then(|| resources::tools(&servers)).into_iter().flatten();
        tools.filter(|tool| is_on(tool.name()))
    };
    let snapshot = || Snapshot {
        tools: all.iter().map(|listed| (listed.server.clone(), listed.name.clone())).collect(),
        have_resources: servers.have_resources(),
        instructions: instructions::block(&servers),
    };
    let question = question(instance, &request, &visible);
    let snapshot = match inner.mcp.decisions.decide(question, snapshot) {
        Offer::Search(snapshot) => snapshot,
        Offer::Direct => {
            let tools = tools.into_iter().chain(resources(servers.have_resources())).collect();
            return Offered { tools, searched: Vec::new(), instructions: instructions::block(&servers) };
        }
    };
    let named: Vec<Named> = snapshot.tools.iter().filter(|(_, name)| is_on(name)).cloned().collect();
    let gateway = (!named.is_empty() || !visible.is_empty())
        .then(|| -> Arc<dyn AnyTool> { Arc::new(Gateway { named, tools: visible }) });
    Offered {
        tools: gateway.into_iter().chain(resources(snapshot.have_resources)).collect(),
        searched: tools,
        instructions: snapshot.instructions.clone(),
    }
}

/// The tools of all connected servers with their names for models.
fn listed(inner: &Inner, servers: &Servers) -> Vec<Listed> {
    let tools = servers.tools();
    let named = tools.iter().map(|(server, tool)| (&**server, tool.name.as_str()));
    let names = tool_names(named, |name| inner.toolbox.has(name));
    tools.into_iter().zip(names).map(|((server, tool), name)| Listed { server, name, tool }).collect()
}

/// The question whether the session gets the search tool.
fn question<'a>(instance: &Instance, request: &Request<'a>, visible: &[Listed]) -> Question<'a> {
    let Request { session, model, transcript, .. } = *request;
    let size: usize = visible.iter().map(|listed| listed.name.len() + listed.tool.bytes + FRAME_BYTES).sum();
    let is_marked = |body: &PartBody| matches!(body, PartBody::Tool(call) if wrapped::is_marked(&call.state));
    Question {
        session,
        model: model_name(&model.provider_id, &model.id),
        limit: instance.settled.mcp_budget.bytes(model.limits.context),
        size: size as u64,
        has_searched: transcript.iter().flat_map(|message| &message.parts).any(|part| is_marked(&part.body)),
    }
}

impl AnyTool for McpTool {
    fn name(&self) -> &str {
        &self.name
    }

    /// If the server says that the tool changes nothing, the directory is not compared. Changes that it makes all the same
    /// count as the user's, so undo keeps them.
    fn facts(&self) -> &'static Facts {
        if self.tool.is_read_only { READ_ONLY } else { &Facts::PLAIN }
    }

    fn description(&self) -> String {
        self.tool.description.clone()
    }

    fn parameters(&self) -> Value {
        self.tool.parameters.clone()
    }

    fn asks<'a>(&'a self, input: &'a Value, _cx: &'a ToolCx) -> Boxed<'a, Vec<Ask>> {
        Box::pin(async move {
            let ask = Ask::new(&self.name, vec!["*".to_owned()]);
            let ask = ask.with("server", &*self.server).with("tool", self.tool.name.as_str());
            let mut ask = ask.with("input", input.clone());
            if !self.tool.is_read_only {
                let certainty = Certainty::Possible;
                ask.implied.push(Implied { certainty, ..Implied::new("edit", &UNKNOWN.to_string()) });
            }
            Ok(vec![ask])
        })
    }

    fn run<'a>(&'a self, input: Value, cx: &'a ToolCx) -> Boxed<'a, Output> {
        Box::pin(async move {
            let arguments = match input {
                Value::Object(arguments) => arguments,
                Value::Null => Map::new(),
                _ => return Err(ToolError::model("the arguments are not an object")),
            };
            let _standing = self.asking.begin(&cx.directory, &self.server, cx.host.clone());
            let progress = |text: &str| cx.progress.report_titled(Map::new(), text);
            let call = Call {
                server: &self.server,
                tool: &self.tool.name,
                arguments,
                cancel: &cx.cancel,
                progress: &progress,
            };
            match self.servers.call(call).await {
                Ok(answer) => output(result(&answer)),
                Err(codewright_mcp::Failure::Cancelled) => Err(ToolError::Cancelled(None)),
                Err(failure) => Err(ToolError::model(failure)),
            }
        })
    }
}

fn output(content: Content) -> Result<Output, ToolError> {
    if content.is_error {
        let text = if content.text.is_empty() { "The tool failed.".to_owned() } else { content.text };
        return Err(ToolError::Model(text));
    }
    let mut left = MAX_FILE_BYTES;
    let files = content.files.into_iter().filter(|file| {
        let fits = file.data.len() <= left;
        left = left.saturating_sub(file.data.len());
        fits
    });
    let attachments = files.map(resources::attachment).collect();
    // Whether it is truncated is added after truncation.
    Ok(Output { output: content.text, attachments, ..Output::default() })
}
