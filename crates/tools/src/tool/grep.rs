//! Finds lines by a regular expression.

use codewright_workspace::{Held, MAX_LINE_CHARS, MAX_SEARCH, Matches, Node, Place, Withheld, grep};
use serde::Deserialize;
use serde_json::{Value, json};

use super::glob::{as_named, late};
use crate::ask::{outside_directory, outside_file};
use crate::brackets::attempts;
use crate::reading::{node, remark};
use crate::{Ask, Effect, Facts, Output, Tool, ToolCx, ToolError, render, tags};

const DESCRIPTION: &str = include_str!("grep.txt");
/// The limit of results.
const LIMIT: usize = 100;

/// The `grep` tool.
pub struct Grep;

/// The arguments.
#[derive(Debug, Clone, Deserialize)]
pub struct Input {
    pattern: String,
    path: Option<String>,
    include: Option<String>,
}

impl Input {
    fn path(&self) -> &str {
        self.path.as_deref().unwrap_or(".")
    }
}

/// The directory that is searched: the parent of a file, or the project if the path does not exist.
///
/// `place` resolves a path.
fn root(held: &Held, place: impl Fn(&str) -> Result<Held, ToolError>) -> Result<Held, ToolError> {
    match node(held)? {
        Some(Node::Directory) => Ok(held.clone()),
        None => place("."),
        Some(Node::File | Node::Special) => match held.place.path.parent() {
            Some(parent) => place(&parent.to_string_lossy()),
            None => place("."),
        },
    }
}

impl Tool for Grep {
    const NAME: &'static str = "grep";
    const FACTS: &'static Facts =
        &Facts { effect: Effect::None, finds_files: true, position: Some(5), ..Facts::PLAIN };
    type Input = Input;

    fn description(&self) -> String {
        let (limit, seconds) = (LIMIT.to_string(), MAX_SEARCH.as_secs().to_string());
        let characters = MAX_LINE_CHARS.to_string();
        let values = [("limit", &*limit), ("seconds", &*seconds), ("characters", &*characters)];
        render(DESCRIPTION, &values).expect("a test renders every description")
    }

    fn parameters(&self) -> Value {
        json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "properties": {
                "pattern": {"type": "string", "description": "The regular expression"},
                "path": {"type": "string", "description": "The directory to search; the project directory if left out"},
                "include": {"type": "string", "description": "A glob for the files to search, such as \"*.js\""},
            },
            "required": ["pattern"],
        })
    }

    async fn asks(&self, input: &Input, cx: &ToolCx) -> Result<Vec<Ask>, ToolError> {
        // Both need permission, because the path may be created or become a directory before the search.
        let mut asks = Vec::new();
        let held = cx.judge_existing(input.path())?;
        for held in [&held, &root(&held, |path| cx.judge_existing(path))?] {
            let is_file = node(held)? == Some(Node::File);
            let place = &held.place;
            asks.extend(if is_file { outside_file(place) } else { outside_directory(place) });
        }
        asks.dedup_by(|a, b| a.patterns == b.patterns);
        asks.push(
            Ask::new("grep", vec![input.pattern.clone()])
                .with("pattern", input.pattern.as_str())
                .with("path", input.path.as_deref())
                .with("include", input.include.as_deref()),
        );
        Ok(asks)
    }

    async fn run(&self, input: Input, cx: &ToolCx) -> Result<Output, ToolError> {
        if input.pattern.is_empty() {
            return Err(ToolError::model("pattern is required"));
        }
        let workspace = cx.workspace();
        let held = root(&cx.judged(input.path())?, |path| cx.judged(path))?;
        let place = &held.place;
        let includes = input.include.as_deref().map(|include| attempts(&place.real, include));
        let mut includes = includes.unwrap_or_default().into_iter();
        let matches = loop {
            let include = includes.next().unwrap_or_default();
            let query = codewright_workspace::Grep {
                root: held.clone(),
                // The model may search for a tag in its neutralized form.
                pattern: tags::restore(&input.pattern).into_owned(),
                include,
                limit: LIMIT,
                within: MAX_SEARCH,
                judge: cx.read_rules.below(&workspace, place),
            };
            let matches = grep(query, &cx.cancel).await?;
            let is_found = matches.count > 0 || matches.late || matches.withheld != Withheld::default();
            if is_found || includes.len() == 0 {
                break matches;
            }
        };
        let output = Output { output: listed(place, &matches), title: input.pattern, ..Output::default() };
        Ok(output.with("matches", matches.count).with("truncated", matches.more || matches.late))
    }
}

fn listed(place: &Place, matches: &Matches) -> String {
    let mut lines = Vec::new();
    if matches.count == 0 {
        lines.push("No files found".to_owned());
    } else {
        let more = if matches.more { " (more matches available)" } else { "" };
        lines.push(format!("Found {} matches{more}", matches.count));
    }
    for (index, (path, found)) in matches.files.iter().enumerate() {
        if index > 0 {
            lines.push(String::new());
        }
        lines.push(format!("{}:", as_named(&place.path, &place.real, path)));
        lines.extend(found.iter().map(|line| format!("  Line {}: {}", line.number, cut(&line.text))));
    }
    if matches.more {
        lines.push("\n(Results truncated. Consider using a more specific path or pattern.)".to_owned());
    } else if matches.late {
        lines.push(late());
    }
    lines.extend(remark(matches.withheld).map(|remark| format!("\n{remark}")));
    lines.join("\n")
}

fn cut(line: &str) -> String {
    match line.char_indices().nth(MAX_LINE_CHARS) {
        Some((end, _)) => format!("{}...", &line[..end]),
        None => line.to_owned(),
    }
}
