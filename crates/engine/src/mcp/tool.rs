//! The tools of MCP servers as tools of the engine: they need permission and are truncated and recorded like any other.
//!
//! The name of a tool is its permission. A tool that does not say that it changes nothing may change any file, so a rule
//! that denies all edits, as in plan mode, leads to a question.

use std::sync::Arc;

use codewright_mcp::{Call, Content, Servers, Tool, result, tool_names};
use codewright_tools::{AnyTool, Ask, Boxed, Certainty, Implied, Output, ToolCx, ToolError, UNKNOWN};
use serde_json::{Map, Value};

use super::Asking;
use super::resources;
use crate::inner::Inner;
use crate::instance::Instance;
use crate::permission::rules::PermissionRules;
use crate::toolbox::Switches;

/// The limit for the files of a result.
const MAX_FILE_BYTES: usize = 20 * 1024 * 1024;

/// A tool of a server.
struct McpTool {
    servers: Servers,
    server: Arc<str>,
    /// Its name for models and rules.
    name: String,
    tool: Arc<Tool>,
    asking: Arc<Asking>,
}

/// Returns the tools of the connected servers of a directory that these rules and switches allow.
pub(crate) fn offered(
    inner: &Inner,
    instance: &Instance,
    rules: &PermissionRules,
    switches: &Switches,
) -> Vec<Arc<dyn AnyTool>> {
    let Some(servers) = inner.mcp.find(&instance.directory) else { return Vec::new() };
    let tools = servers.tools();
    let named = tools.iter().map(|(server, tool)| (&**server, tool.name.as_str()));
    let names = tool_names(named, |name| inner.toolbox.has(name));
    let tools = tools.into_iter().zip(names).map(|((server, tool), name)| -> Arc<dyn AnyTool> {
        Arc::new(McpTool { servers: servers.clone(), server, name, tool, asking: inner.mcp.asking.clone() })
    });
    let is_on = |tool: &Arc<dyn AnyTool>| {
        switches.get(tool.name()) != Some(&false) && !rules.is_off(tool.permission())
    };
    let mut tools: Vec<_> = tools.filter(is_on).collect();
    if servers.have_resources() {
        tools.extend(resources::tools(&servers).into_iter().filter(is_on));
    }
    tools
}

impl AnyTool for McpTool {
    fn name(&self) -> &str {
        &self.name
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
