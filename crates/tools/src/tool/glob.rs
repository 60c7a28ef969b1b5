//! Finds files by name.

use std::path::Path;

use codewright_workspace::{Files, Held, MAX_SEARCH, Node, Withheld, Workspace, glob};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::ask::outside_directory;
use crate::brackets::attempts;
use crate::reading::{node, remark};
use crate::{Ask, Effect, Facts, Output, Tool, ToolCx, ToolError, render};

const DESCRIPTION: &str = include_str!("glob.txt");
/// The limit of results.
const LIMIT: usize = 100;

/// The `glob` tool.
pub struct Glob;

/// The arguments.
#[derive(Debug, Clone, Deserialize)]
pub struct Input {
    pattern: String,
    path: Option<String>,
}

impl Tool for Glob {
    const NAME: &'static str = "glob";
    const FACTS: &'static Facts =
        &Facts { effect: Effect::None, finds_files: true, position: Some(4), ..Facts::PLAIN };
    type Input = Input;

    fn description(&self) -> String {
        let (limit, seconds) = (LIMIT.to_string(), MAX_SEARCH.as_secs().to_string());
        render(DESCRIPTION, &[("limit", &limit), ("seconds", &seconds)])
            .expect("a test renders every description")
    }

    fn parameters(&self) -> Value {
        json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "properties": {
                "pattern": {"type": "string", "description": "The glob that paths must match"},
                "path": {
                    "type": "string",
                    "description": "The directory to search, absolute or relative; the project directory if left out",
                },
            },
            "required": ["pattern"],
        })
    }

    async fn asks(&self, input: &Input, cx: &ToolCx) -> Result<Vec<Ask>, ToolError> {
        let Held { place, .. } = cx.judge_existing(input.path.as_deref().unwrap_or("."))?;
        let search = Ask::new("glob", vec![input.pattern.clone()])
            .with("pattern", input.pattern.as_str())
            .with("path", input.path.as_deref());
        Ok(outside_directory(&place).into_iter().chain([search]).collect())
    }

    async fn run(&self, input: Input, cx: &ToolCx) -> Result<Output, ToolError> {
        let workspace = cx.workspace();
        let held = cx.judged(input.path.as_deref().unwrap_or("."))?;
        let place = &held.place;
        if input.pattern.is_empty() {
            return Err(ToolError::model("pattern is required"));
        }
        let shown = place.path.display();
        match node(&held)? {
            Some(Node::Directory) => {}
            None => return Err(ToolError::Model(format!("glob path does not exist: {shown}"))),
            Some(Node::File | Node::Special) => {
                return Err(ToolError::Model(format!("glob path must be a directory: {shown}")));
            }
        }
        let mut files = Files::default();
        for patterns in attempts(&place.real, &as_found(&workspace, &input.pattern)) {
            let query = codewright_workspace::Glob {
                root: held.clone(),
                patterns,
                limit: LIMIT,
                within: MAX_SEARCH,
                judge: cx.read_rules.below(&workspace, place),
            };
            files = glob(query, &cx.cancel).await?;
            if !files.paths.is_empty() || files.late || files.withheld != Withheld::default() {
                break;
            }
        }
        let mut lines: Vec<String> =
            files.paths.iter().map(|path| as_named(&place.path, &place.real, path)).collect();
        let count = lines.len();
        if count == 0 {
            lines.push("No files found".to_owned());
        }
        if files.more {
            lines.push(format!(
                "\n(Results are truncated: showing first {LIMIT} results. Consider using a more specific path or \
                 pattern.)"
            ));
        } else if files.late {
            lines.push(late());
        }
        lines.extend(remark(files.withheld).map(|remark| format!("\n{remark}")));
        let output =
            Output { output: lines.join("\n"), title: workspace.title(&place.path), ..Output::default() };
        Ok(output.with("count", count).with("truncated", files.more || files.late))
    }
}

/// The note that a search exceeded its time limit.
pub(super) fn late() -> String {
    format!("\n(The search ended after {} seconds; narrow the path or the pattern.)", MAX_SEARCH.as_secs())
}

/// An absolute pattern with links in the directory followed.
fn as_found(workspace: &Workspace, pattern: &str) -> String {
    let literal = pattern.split(['*', '?', '[', '{']).next().unwrap_or_default();
    let Some((directory, _)) = literal.rsplit_once('/').filter(|_| literal.starts_with('/')) else {
        return pattern.to_owned();
    };
    match workspace.resolve(Path::new(directory)) {
        Ok(place) => format!("{}{}", place.real.display(), &pattern[directory.len()..]),
        Err(_) => pattern.to_owned(),
    }
}

/// A found path, relative to the directory as the model named it.
pub(super) fn as_named(path: &Path, real: &Path, found: &Path) -> String {
    let found = found.strip_prefix(real).map_or_else(|_| found.to_owned(), |rest| path.join(rest));
    found.to_string_lossy().into_owned()
}
