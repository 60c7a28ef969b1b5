//! Queries language servers.

use std::path::Path;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::ask::{file_patterns, outside_file};
use crate::tags::neutralize;
use crate::{Ask, Effect, Facts, LanguageQuery, Output, Tool, ToolCx, ToolError};

const DESCRIPTION: &str = include_str!("lsp.txt");

/// The `lsp` tool.
pub struct Lsp;

impl Lsp {
    /// The operation about the diagnostics of a file.
    pub const DIAGNOSTICS: &'static str = "diagnostics";
}

/// The arguments.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Input {
    operation: String,
    file_path: String,
    line: u64,
    character: u64,
    query: Option<String>,
}

/// The aliases were tools for one operation. An operation about a file needs no position.
fn adapt(called: &str, input: &mut Value) {
    let Some(fields) = input.as_object_mut() else { return };
    let implied =
        ["diagnostics", "hover"].into_iter().find(|operation| called.to_lowercase().ends_with(operation));
    if let Some(operation) = implied {
        fields.entry("operation").or_insert_with(|| operation.into());
    }
    let is_about_file = fields
        .get("operation")
        .is_some_and(|operation| [Lsp::DIAGNOSTICS, "documentSymbol"].iter().any(|it| operation == it));
    if is_about_file {
        for key in ["line", "character"] {
            fields.entry(key).or_insert_with(|| 1.into());
        }
    }
}

impl Tool for Lsp {
    const NAME: &'static str = "lsp";
    const FACTS: &'static Facts = &Facts {
        effect: Effect::None,
        aliases: &["lsp-diagnostics", "lsp-hover", "lsp_diagnostics", "lsp_hover"],
        adapt,
        is_available: |setup| setup.has_language_servers,
        ..Facts::PLAIN
    };
    type Input = Input;

    fn description(&self) -> String {
        DESCRIPTION.to_owned()
    }

    fn parameters(&self) -> Value {
        let position = |what: &str| {
            let description = format!("{what}, counted from 1 as in an editor");
            json!({"minimum": 1, "description": description, "type": "integer", "maximum": 9_007_199_254_740_991_i64})
        };
        json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "properties": {
                "operation": {
                    "type": "string",
                    "enum": [
                        "goToDefinition", "findReferences", "hover", "documentSymbol", "workspaceSymbol",
                        "goToImplementation", "prepareCallHierarchy", "incomingCalls", "outgoingCalls",
                        Self::DIAGNOSTICS,
                    ],
                    "description": "The kind of query",
                },
                "filePath": {"type": "string", "description": "The file, absolute or relative to the project"},
                "line": position("The line"),
                "character": position("The column in it"),
                "query": {"type": "string", "description": "The name for workspaceSymbol; every name if left out"},
            },
            "required": ["operation", "filePath", "line", "character"],
        })
    }

    async fn asks(&self, input: &Input, cx: &ToolCx) -> Result<Vec<Ask>, ToolError> {
        let workspace = cx.workspace();
        let place = workspace.resolve(Path::new(&input.file_path))?;
        let ask =
            Ask::new("lsp", file_patterns(&workspace, &place)).with("operation", input.operation.as_str());
        Ok(outside_file(&place).into_iter().chain([ask]).collect())
    }

    async fn run(&self, input: Input, cx: &ToolCx) -> Result<Output, ToolError> {
        let place = cx.workspace().resolve(Path::new(&input.file_path))?;
        let shown = cx.workspace().title(&place.path);
        let query = LanguageQuery {
            operation: input.operation.clone(),
            path: place.path,
            line: u32::try_from(input.line).unwrap_or(u32::MAX),
            character: u32::try_from(input.character).unwrap_or(u32::MAX),
            name: input.query.unwrap_or_default(),
        };
        let asking = cx.cancel.run_until_cancelled(cx.host.query_language(query)).await;
        let answer = asking.ok_or(ToolError::Cancelled(None))??;
        let text = match answer.text {
            text if text.is_empty() => format!("No results found for {}", input.operation),
            // The text of a server can contain anything.
            text => neutralize(&text).into_owned(),
        };
        let title = format!("{} {shown}:{}:{}", input.operation, input.line, input.character);
        Ok(Output { title, output: text, ..Output::default() }.with("result", answer.entries))
    }
}
