//! A tool of a plugin or of a tool file: it needs permission and is truncated and recorded like any other.
//!
//! The name of a tool is its permission. It may change any file, so a rule that denies all edits, as in plan mode, leads
//! to a question.

use std::sync::Arc;

use codewright_plugins::{
    Boxed as HostBoxed, Failure, Loaded, Plugins, ToolAsk, ToolCall, ToolInfo, ToolPort,
};
use codewright_tools::{
    AnyTool, Ask, Attachment, Boxed, Certainty, Implied, Output, PermissionRequests, Progress, ToolCx,
    ToolError, UNKNOWN,
};
use serde_json::{Map, Value, json};

use crate::extension::moments::attachment;
use crate::packages::Owner;

/// The characters of a title.
const MAX_TITLE_CHARS: usize = 500;
/// The size of the metadata of a call.
const MAX_METADATA_BYTES: usize = 256 * 1024;
/// The size of the files of a result.
const MAX_FILE_BYTES: usize = 20 * 1024 * 1024;
/// The patterns of a permission request.
const MAX_PATTERNS: usize = 100;

/// A tool of a plugin.
pub(crate) struct PluginTool {
    plugins: Plugins,
    /// The name of the plugin.
    plugin: String,
    index: usize,
    info: ToolInfo,
    owner: Owner,
}

impl PluginTool {
    pub(crate) fn new(plugins: Plugins, loaded: &Loaded, info: &ToolInfo, owner: Owner) -> Self {
        let plugin = loaded.name.clone();
        Self { plugins, plugin, index: loaded.index, info: info.clone(), owner }
    }
}

impl AnyTool for PluginTool {
    fn name(&self) -> &str {
        &self.info.name
    }

    fn description(&self) -> String {
        self.info.description.clone()
    }

    fn parameters(&self) -> Value {
        self.info.parameters.clone()
    }

    fn asks<'a>(&'a self, input: &'a Value, _cx: &'a ToolCx) -> Boxed<'a, Vec<Ask>> {
        Box::pin(async move {
            let mut ask = Ask::new(&self.info.name, vec!["*".to_owned()]).with("input", input.clone());
            let certainty = Certainty::Possible;
            ask.implied.push(Implied { certainty, ..Implied::new("edit", &UNKNOWN.to_string()) });
            Ok(vec![ask])
        })
    }

    fn run<'a>(&'a self, input: Value, cx: &'a ToolCx) -> Boxed<'a, Output> {
        Box::pin(async move {
            let call = ToolCall {
                index: self.index,
                tool: self.info.name.clone(),
                args: input,
                context: context(cx),
            };
            let port = Port {
                requests: cx.permission_requests.clone(),
                progress: cx.progress.clone(),
                owner: self.owner,
            };
            match self.plugins.execute(&call, Arc::new(port), &cx.cancel).await {
                Ok(result) => Ok(output(&result)),
                Err(_) if cx.cancel.is_cancelled() => Err(ToolError::Cancelled(None)),
                Err(Failure::Plugin { message, .. }) => {
                    // The model gets the error of the tool, and the user learns what would permit the access.
                    let _is_denied = self.plugins.is_denied(&self.plugin, &message);
                    Err(ToolError::Model(message))
                }
                Err(failure) => Err(ToolError::model(failure)),
            }
        })
    }
}

/// The facts about a call, with the names of the plugin interface.
fn context(cx: &ToolCx) -> Map<String, Value> {
    let mut context = Map::new();
    if let Some(of) = cx.host.identity() {
        for (name, value) in
            [("sessionID", of.session), ("messageID", of.message), ("callID", of.call), ("agent", of.agent)]
        {
            context.insert(name.to_owned(), value.into());
        }
    }
    context.insert("directory".to_owned(), json!(cx.directory));
    context.insert("worktree".to_owned(), json!(cx.worktree));
    context
}

/// Reads what a tool returned. The process has made sure that `output` is a text.
fn output(result: &Value) -> Output {
    let text = |key: &str| result[key].as_str().unwrap_or_default();
    let mut left = MAX_FILE_BYTES;
    let files = result["attachments"].as_array().into_iter().flatten().filter_map(attachment);
    let fits = |file: &Attachment| {
        let fits = file.url.len() <= left;
        left = left.saturating_sub(file.url.len());
        fits
    };
    let metadata = result["metadata"].as_object().cloned().unwrap_or_default();
    Output {
        title: text("title").chars().take(MAX_TITLE_CHARS).collect(),
        output: text("output").to_owned(),
        metadata: bounded(metadata),
        attachments: files.filter(fits).collect(),
    }
}

/// Returns metadata that are not too large, or none.
fn bounded(metadata: Map<String, Value>) -> Map<String, Value> {
    let is_small = serde_json::to_vec(&metadata).is_ok_and(|bytes| bytes.len() <= MAX_METADATA_BYTES);
    if is_small { metadata } else { Map::new() }
}

/// The services of this program for a running tool call: permission requests and progress.
struct Port {
    requests: PermissionRequests,
    progress: Progress,
    owner: Owner,
}

impl ToolPort for Port {
    fn ask(&self, ask: ToolAsk) -> HostBoxed<'static, Result<(), String>> {
        let (requests, owner) = (self.requests.clone(), self.owner);
        Box::pin(async move {
            let ToolAsk { permission, mut patterns, mut always, metadata } = ask;
            if permission.is_empty() || patterns.len() > MAX_PATTERNS {
                return Err(format!("a permission request has a name and at most {MAX_PATTERNS} patterns"));
            }
            if patterns.is_empty() {
                patterns.push("*".to_owned());
            }
            if owner == Owner::Repository {
                // Code of a repository must not choose what a reply allows in the future.
                always.clone_from(&patterns);
            }
            let ask = Ask { always, metadata: bounded(metadata), ..Ask::new(&permission, patterns) };
            requests.ask(ask).await.map_err(|error| match error {
                ToolError::Model(message) | ToolError::Broken(message) => message,
                ToolError::Cancelled(_) => "the call was aborted".to_owned(),
            })
        })
    }

    fn metadata(&self, title: Option<String>, metadata: Map<String, Value>) {
        let metadata = bounded(metadata);
        match title {
            Some(title) => {
                let title: String = title.chars().take(MAX_TITLE_CHARS).collect();
                self.progress.report_titled(metadata, &title);
            }
            None => self.progress.report(metadata),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_keeps_what_fits() {
        let file = |url: &str| json!({"type": "file", "mime": "image/png", "url": url});
        let result = json!({
            "title": "t".repeat(1000),
            "output": "text",
            "metadata": {"a": 1},
            "attachments": [file("data:image/png;base64,AAAA"), file("https://example.com/a.png"), 1],
        });
        let output = output(&result);
        assert_eq!((output.title.len(), output.output.as_str()), (MAX_TITLE_CHARS, "text"));
        assert_eq!((output.metadata["a"].clone(), output.attachments.len()), (json!(1), 1));
        let large = json!({"output": "x", "metadata": {"a": "x".repeat(MAX_METADATA_BYTES)}});
        assert!(super::output(&large).metadata.is_empty());
    }
}
