//! Lists a directory as a tree.

use std::collections::BTreeMap;
use std::path::Path;

use codewright_workspace::{Held, MAX_SEARCH, Node, glob};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::ask::outside_directory;
use crate::reading::{node, remark};
use crate::{Ask, Effect, Facts, Listing, Output, Tool, ToolCx, ToolError, render};

const DESCRIPTION: &str = include_str!("list.txt");
/// The limit of files.
const LIMIT: usize = 100;
/// The limit of globs in one call.
const MAX_IGNORED: usize = 50;
/// Directories that are always omitted.
const IGNORED: [&str; 16] = [
    "node_modules",
    "__pycache__",
    ".git",
    "dist",
    "build",
    "target",
    "vendor",
    "bin",
    "obj",
    ".idea",
    ".vscode",
    ".zig-cache",
    "coverage",
    ".venv",
    "venv",
    ".cache",
];

/// The `list` tool.
pub struct List;

/// The arguments.
#[derive(Debug, Clone, Deserialize)]
pub struct Input {
    path: Option<String>,
    ignore: Option<Vec<String>>,
}

impl Tool for List {
    const NAME: &'static str = "list";
    const FACTS: &'static Facts = &Facts {
        effect: Effect::None,
        finds_files: true,
        aliases: &["ls"],
        listing: Listing::Accepted,
        ..Facts::PLAIN
    };
    type Input = Input;

    fn description(&self) -> String {
        render(DESCRIPTION, &[("limit", &LIMIT.to_string())]).expect("a test renders every description")
    }

    fn parameters(&self) -> Value {
        json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "properties": {
                "path": {"type": "string", "description": "The directory; the project directory if left out"},
                "ignore": {
                    "type": "array",
                    "items": {"type": "string"},
                    "description": "Globs of omitted paths",
                },
            },
        })
    }

    async fn asks(&self, input: &Input, cx: &ToolCx) -> Result<Vec<Ask>, ToolError> {
        let Held { place, .. } = cx.judge_existing(input.path.as_deref().unwrap_or("."))?;
        let title = cx.workspace().title(&place.path);
        let title = if title.is_empty() { ".".to_owned() } else { title };
        let list = Ask::new("list", vec![title]).with("path", place.path.to_string_lossy());
        Ok(outside_directory(&place).into_iter().chain([list]).collect())
    }

    async fn run(&self, input: Input, cx: &ToolCx) -> Result<Output, ToolError> {
        let workspace = cx.workspace();
        let held = cx.judged(input.path.as_deref().unwrap_or("."))?;
        let place = &held.place;
        if node(&held)? != Some(Node::Directory) {
            return Err(ToolError::Model(format!("list path must be a directory: {}", place.path.display())));
        }
        let more = input.ignore.unwrap_or_default();
        if more.len() > MAX_IGNORED {
            return Err(ToolError::Model(format!("ignore has more than {MAX_IGNORED} globs")));
        }
        let ignored = IGNORED.iter().map(|name| format!("!**/{name}/**"));
        let more = more.iter().map(|glob| format!("!{}", glob.trim_start_matches('!')));
        let query = codewright_workspace::Glob {
            root: held.clone(),
            patterns: ignored.chain(more).collect::<Vec<_>>().into(),
            limit: LIMIT,
            within: MAX_SEARCH,
            judge: cx.read_rules.below(&workspace, place),
        };
        let files = glob(query, &cx.cancel).await?;
        let paths = files.paths.iter().map(|path| path.strip_prefix(&place.real).unwrap_or(path));
        let mut output = format!("{}/\n{}", place.path.display(), tree(paths));
        if files.more || files.late {
            output += &format!(
                "\n(Only {} files are shown; look at a directory further down, or use glob.)\n",
                files.paths.len()
            );
        }
        if let Some(remark) = remark(files.withheld) {
            output += &format!("\n{remark}\n");
        }
        let title = workspace.title(&place.path);
        let output = Output { title, output, ..Output::default() };
        Ok(output.with("count", files.paths.len()).with("truncated", files.more || files.late))
    }
}

/// Returns relative paths as an indented tree. The lines of a directory follow its name, directories first.
pub fn tree(paths: impl IntoIterator<Item = impl AsRef<Path>>) -> String {
    let mut root = Folder::default();
    for path in paths {
        root.add(path.as_ref());
    }
    let mut shown = String::new();
    root.show(1, &mut shown);
    shown
}

#[derive(Default)]
struct Folder {
    folders: BTreeMap<String, Self>,
    files: Vec<String>,
}

impl Folder {
    fn add(&mut self, path: &Path) {
        let mut folder = self;
        for name in path.parent().into_iter().flat_map(Path::components) {
            folder = folder.folders.entry(name.as_os_str().to_string_lossy().into_owned()).or_default();
        }
        folder.files.extend(path.file_name().map(|name| name.to_string_lossy().into_owned()));
    }

    fn show(&self, depth: usize, out: &mut String) {
        let indent = "  ".repeat(depth);
        for (name, folder) in &self.folders {
            out.push_str(&format!("{indent}{name}/\n"));
            folder.show(depth + 1, out);
        }
        for name in &self.files {
            out.push_str(&format!("{indent}{name}\n"));
        }
    }
}
