//! Loads a skill.

use std::path::{Path, PathBuf};

use codewright_workspace::{Node, hold};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{Ask, Effect, Facts, Output, Tool, ToolCx, ToolError};

const DESCRIPTION: &str = include_str!("skill.txt");
/// The limit of listed files.
const MAX_FILES: usize = 10;
/// The limit of directory entries that are searched for them.
const MAX_ENTRIES: usize = 2000;
const MAX_DEPTH: usize = 6;

/// The `skill` tool.
pub struct LoadSkill;

/// The arguments.
#[derive(Debug, Clone, Deserialize)]
pub struct Input {
    name: String,
}

impl Tool for LoadSkill {
    const NAME: &'static str = "skill";
    const FACTS: &'static Facts = &Facts { effect: Effect::None, adapt, position: Some(12), ..Facts::PLAIN };
    type Input = Input;

    fn description(&self) -> String {
        DESCRIPTION.to_owned()
    }

    fn parameters(&self) -> Value {
        json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "properties": {"name": {"type": "string", "description": "The skill, as it is named in the list"}},
            "required": ["name"],
        })
    }

    async fn asks(&self, input: &Input, cx: &ToolCx) -> Result<Vec<Ask>, ToolError> {
        let mut ask = Ask::new("skill", vec![known(input, cx)?.name.clone()]);
        ask.always.clone_from(&ask.patterns);
        Ok(vec![ask])
    }

    async fn run(&self, input: Input, cx: &ToolCx) -> Result<Output, ToolError> {
        let skill = known(&input, cx)?.clone();
        let directory = skill.location.as_deref().and_then(Path::parent).map(Path::to_owned);
        let folder = directory.clone();
        let files = cx.reading(move || Ok(folder.map(|folder| files(&folder)).unwrap_or_default())).await?;
        let mut output = format!(
            "<skill_content name=\"{}\">\n# Skill: {}\n\n{}\n",
            skill.name,
            skill.name,
            skill.content.trim()
        );
        if let Some(directory) = &directory {
            let directory = directory.display();
            output += &format!("\nIts directory is {directory}, from which its relative paths start.\n");
        }
        if !files.is_empty() {
            let files: Vec<String> =
                files.iter().map(|file| format!("<file>{}</file>\n", file.display())).collect();
            output += &format!("\n<skill_files>\n{}</skill_files>\n", files.concat());
        }
        output += "</skill_content>";
        let title = format!("Loaded skill: {}", skill.name);
        let directory =
            directory.map_or_else(|| ".".to_owned(), |directory| directory.to_string_lossy().into_owned());
        // `truncated` is set where the length of every tool's output is checked.
        Ok(Output { title, output, ..Output::default() }.with("name", skill.name).with("dir", directory))
    }
}

/// If a call has one argument and it is a text, uses it as the name of the skill under any key.
fn adapt(_called: &str, input: &mut Value) {
    let Some(fields) = input.as_object_mut().filter(|fields| fields.len() == 1) else { return };
    let key = fields.iter().next().filter(|(_, value)| value.is_string()).map(|(key, _)| key.clone());
    if let Some(name) = key.and_then(|key| fields.remove(&key)) {
        fields.insert("name".to_owned(), name);
    }
}

fn known<'a>(input: &Input, cx: &'a ToolCx) -> Result<&'a crate::Skill, ToolError> {
    let exact = cx.skills.iter().find(|skill| skill.name == input.name);
    let same = |skill: &&crate::Skill| skill.name.eq_ignore_ascii_case(input.name.trim());
    let mut similar = cx.skills.iter().filter(same);
    let similar = similar.next().filter(|_| similar.next().is_none());
    exact.or(similar).ok_or_else(|| {
        let mut names: Vec<_> = cx.skills.iter().map(|skill| skill.name.as_str()).collect();
        names.sort_unstable();
        let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        ToolError::Model(format!("Skill \"{}\" not found. Available skills: {names}", input.name))
    })
}

/// Some files of a skill, without the text file.
fn files(root: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut left = MAX_ENTRIES;
    let mut folders: Vec<_> = hold(root).into_iter().map(|folder| (folder, 0)).collect();
    while let Some((folder, depth)) = folders.pop() {
        let entries = folder.entries(left).unwrap_or_default();
        left -= entries.len();
        for (name, _) in entries {
            let entry = folder.child(&name);
            // A link may lead anywhere, and the model is likely to read the files that are listed.
            match entry.status().ok().flatten().map(|status| status.node) {
                Some(Node::Directory) if depth < MAX_DEPTH => folders.push((entry, depth + 1)),
                Some(Node::File) if entry.place.path != root.join("SKILL.md") => found.push(entry.place.path),
                Some(Node::Directory | Node::File | Node::Special) | None => {}
            }
        }
    }
    found.sort();
    found.truncate(MAX_FILES);
    found
}
