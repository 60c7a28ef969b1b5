//! Reads a file or lists a directory.

mod nested;
mod several;
mod text;

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};

use codewright_workspace::{
    Access, Error, Held, Kind, MAX_TEXT_BYTES, Node, Page, Place, Window, Withheld, list, read_lines, sniff,
};
use serde::Deserialize;
use serde_json::{Value, json};

pub use self::nested::LoadedInstructions;
pub(crate) use self::nested::reminder_at;
pub use self::text::ReadText;
use crate::ask::{file, outside_directory, outside_file};
use crate::known::Stamp;
use crate::reading::{node, remark};
use crate::trim::{MAX_BYTES, MAX_LINES};
use crate::{Ask, Attachment, Effect, Facts, Output, Permission, Tool, ToolCx, ToolError, render};

const DESCRIPTION: &str = include_str!("read.txt");
/// The number of bytes that determine the kind of a file.
const SAMPLE_BYTES: usize = 4096;
/// The limit for the size of an attached picture or document.
const MAX_ATTACHMENT_BYTES: u64 = 20 * 1024 * 1024;
/// The number of lines in the metadata, for clients that show only a few.
const PREVIEW_LINES: usize = 20;
/// The number of similar names that are suggested for a missing file.
const MAX_SUGGESTIONS: usize = 3;

/// The `read` tool.
pub struct Read;

/// The arguments.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Input {
    file_path: String,
    offset: Option<u64>,
    limit: Option<u64>,
    /// More files, which models of other programs name in one call.
    #[serde(default)]
    files: Vec<Self>,
    /// The files of the call, which share the limit of bytes.
    #[serde(skip)]
    sharing: usize,
}

impl Input {
    fn limit_bytes(&self) -> usize {
        MAX_BYTES / self.sharing.max(1)
    }

    fn offset(&self) -> usize {
        usize::try_from(self.offset.unwrap_or(1)).unwrap_or(usize::MAX).max(1)
    }

    fn limit(&self) -> usize {
        let limit = self.limit.unwrap_or(MAX_LINES as u64);
        usize::try_from(limit).unwrap_or(usize::MAX)
    }
}

impl Tool for Read {
    const NAME: &'static str = "read";
    const FACTS: &'static Facts = &Facts {
        effect: Effect::None,
        opens: |input| input["filePath"].as_str(),
        finds_files: true,
        limits_output: true,
        adapt: several::adapt,
        position: Some(3),
        ..Facts::PLAIN
    };
    type Input = Input;

    fn description(&self) -> String {
        let values = [
            ("lines", MAX_LINES.to_string()),
            ("kilobytes", (MAX_BYTES / 1024).to_string()),
            ("characters", codewright_workspace::MAX_LINE_CHARS.to_string()),
            ("megabytes", (MAX_ATTACHMENT_BYTES / 1024 / 1024).to_string()),
        ];
        let values = values.each_ref().map(|(name, value)| (*name, value.as_str()));
        render(DESCRIPTION, &values).expect("a test renders every description")
    }

    fn parameters(&self) -> Value {
        json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "properties": {
                "filePath": {"type": "string", "description": "The file or directory, absolute or relative to the project"},
                "offset": {
                    "minimum": 0, "type": "integer", "maximum": 9_007_199_254_740_991_i64,
                    "description": "The first line to read, counted from 1",
                },
                "limit": {
                    "minimum": 0, "type": "integer", "maximum": 9_007_199_254_740_991_i64,
                    "description": format!("The number of lines, {MAX_LINES} if not given"),
                },
            },
            "required": ["filePath"],
        })
    }

    async fn asks(&self, input: &Input, cx: &ToolCx) -> Result<Vec<Ask>, ToolError> {
        let (inner, files) = (cx.clone(), several::files(input)?);
        cx.reading(move || {
            let mut asks = Vec::new();
            for wanted in files {
                let held = inner.judge_existing(&wanted.file_path)?;
                asks.extend(if node(&held)? == Some(Node::Directory) {
                    outside_directory(&held.place)
                } else {
                    outside_file(&held.place)
                });
                asks.push(file(Permission::Read, &inner.workspace(), &held.place));
            }
            Ok(asks)
        })
        .await
    }

    async fn run(&self, input: Input, cx: &ToolCx) -> Result<Output, ToolError> {
        let (inner, files) = (cx.clone(), several::files(&input)?);
        cx.reading(move || several::joined(files.iter().map(|file| one(file, &inner)).collect())).await
    }
}

/// Reads one file of a call.
fn one(input: &Input, cx: &ToolCx) -> Result<Output, ToolError> {
    let held = cx.judged(&input.file_path)?;
    let title = cx.workspace().title(&held.place.path);
    let output = read(&held, input, cx)?;
    Ok(Output { title, ..output })
}

fn read(held: &Held, input: &Input, cx: &ToolCx) -> Result<Output, ToolError> {
    let path = &held.place.path;
    match held.status()?.map(|status| status.node) {
        None => return Err(missing(held)),
        Some(Node::Directory) => return directory(held, input, cx),
        // Reading a device may have an effect.
        Some(Node::Special) => {
            return Err(ToolError::Model(format!("Not a regular file: {}", path.display())));
        }
        Some(Node::File) => {}
    }
    let mut file = held.file()?;
    match sniff(&sample(&mut file, held)?) {
        Kind::Image(mime) => attachment(held, mime, "Image read successfully"),
        Kind::Pdf => attachment(held, "application/pdf", "PDF read successfully"),
        Kind::Binary => Err(ToolError::Model(format!("Cannot read binary file: {}", path.display()))),
        Kind::Text => {
            // The stamp is taken before reading, so that a change during the read is noticed.
            let stamp = Stamp::of(held);
            let output = match held.document(MAX_TEXT_BYTES) {
                Some(document) => text(&mut document.as_bytes(), held, input, cx)?,
                None => text(&mut file, held, input, cx)?,
            };
            cx.known.saw(&held.place.real, stamp);
            let workspace = cx.workspace();
            let is_readable = |place: &Place| cx.read_rules.access_of(&workspace, place) == Access::Open;
            let project = nested::Project { workspace: &workspace, directory: &cx.directory };
            let file = &held.place.real;
            Ok(with_instructions(output, &nested::found(file, project, &cx.instructions, &is_readable)))
        }
    }
}

/// Adds the instructions that apply to the file.
fn with_instructions(mut output: Output, found: &[nested::Instruction]) -> Output {
    output.output += &nested::reminder(found);
    let loaded: Vec<_> = found.iter().map(|one| one.path.to_string_lossy()).collect();
    output.with("loaded", json!(loaded))
}

/// The start of a file, which is read again afterwards.
fn sample(file: &mut File, held: &Held) -> Result<Vec<u8>, ToolError> {
    let mut sample = Vec::new();
    let read = file.take(SAMPLE_BYTES as u64).read_to_end(&mut sample);
    read.and_then(|_| file.seek(SeekFrom::Start(0)))
        .map_err(|source| Error::Path { path: held.place.real.clone(), source })?;
    Ok(sample)
}

fn missing(held: &Held) -> ToolError {
    let mut message = format!("File not found: {}", held.place.path.display());
    let similar = similar(held);
    if !similar.is_empty() {
        message += &format!("\n\nDid you mean one of these?\n{}", similar.join("\n"));
    }
    ToolError::Model(message)
}

fn similar(held: &Held) -> Vec<String> {
    let Some(directory) = held.above() else { return Vec::new() };
    let Some(name) = held.place.real.file_name() else { return Vec::new() };
    let name = name.to_string_lossy().to_lowercase();
    let Ok(entries) = list(&directory) else { return Vec::new() };
    let is_similar = |entry: &&str| {
        let entry = entry.to_lowercase();
        entry.contains(&name) || name.contains(&entry)
    };
    let names = entries.names.iter().map(|entry| entry.trim_end_matches('/')).filter(is_similar);
    let whole = |entry: &str| directory.place.path.join(entry).to_string_lossy().into_owned();
    names.take(MAX_SUGGESTIONS).map(whole).collect()
}

fn attachment(held: &Held, mime: &str, message: &str) -> Result<Output, ToolError> {
    let content = held.read(MAX_ATTACHMENT_BYTES)?;
    let mut output = Output::new("", message);
    output.metadata = facts(message, false);
    output.attachments.push(Attachment::new(mime, &content));
    Ok(output)
}

fn facts(preview: &str, truncated: bool) -> serde_json::Map<String, Value> {
    let loaded: [&str; 0] = [];
    serde_json::Map::from_iter([
        ("preview".to_owned(), json!(preview)),
        ("truncated".to_owned(), json!(truncated)),
        ("loaded".to_owned(), json!(loaded)),
    ])
}

fn text(file: &mut impl std::io::Read, held: &Held, input: &Input, cx: &ToolCx) -> Result<Output, ToolError> {
    let offset = input.offset();
    let window = Window { offset, limit: input.limit(), limit_bytes: input.limit_bytes() };
    let page = read_lines(file, &held.place.real, window, &cx.cancel)?;
    if offset > page.total && !(page.total == 0 && offset == 1) {
        let total = page.total;
        return Err(ToolError::Model(format!(
            "Offset {offset} is out of range for this file ({total} lines)"
        )));
    }
    let path = held.place.path.to_string_lossy();
    let numbered: Vec<String> =
        page.lines.iter().enumerate().map(|(n, line)| format!("{}: {line}", offset + n)).collect();
    let output = format!(
        "<path>{path}</path>\n<type>file</type>\n<content>\n{}\n\n({})\n</content>",
        numbered.join("\n"),
        footer(&page, input)
    );
    let preview = page.lines[..page.lines.len().min(PREVIEW_LINES)].join("\n");
    let display = json!({
        "type": "file",
        "path": path,
        "text": page.lines.join("\n"),
        "lineStart": offset,
        "lineEnd": offset + page.lines.len() - 1,
        "totalLines": page.total,
        "truncated": page.more,
    });
    Ok(Output { output, metadata: facts(&preview, page.more), ..Output::default() }.with("display", display))
}

fn footer(page: &Page, input: &Input) -> String {
    let offset = input.offset();
    let (next, total) = (offset + page.lines.len(), page.total);
    let last = next - 1;
    if page.capped {
        let kilobytes = input.limit_bytes() / 1024;
        format!(
            "Output capped at {kilobytes} KB. Showing lines {offset}-{last}. Use offset={next} to continue."
        )
    } else if page.more {
        format!("Showing lines {offset}-{last} of {total}. Use offset={next} to continue.")
    } else {
        format!("End of file - total {total} lines")
    }
}

/// The entries of a directory without the files that a rule withholds.
fn readable(held: &Held, entries: Vec<String>, cx: &ToolCx) -> (Vec<String>, Withheld) {
    let workspace = cx.workspace();
    let mut withheld = Withheld::default();
    let mut kept = entries;
    kept.retain(|entry| {
        entry.ends_with('/')
            || withheld.admits(cx.read_rules.access(&workspace, &held.place.real.join(entry)))
    });
    (kept, withheld)
}

fn directory(held: &Held, input: &Input, cx: &ToolCx) -> Result<Output, ToolError> {
    let (entries, withheld) = readable(held, list(held)?.names, cx);
    let (offset, total) = (input.offset(), entries.len());
    let shown: Vec<&str> = entries.iter().skip(offset - 1).take(input.limit()).map(String::as_str).collect();
    let next = offset.saturating_add(shown.len());
    let truncated = next <= total;
    let footer = if truncated {
        format!(
            "Showing {} of {total} entries. Use 'offset' parameter to read beyond entry {next}",
            shown.len()
        )
    } else {
        format!("{total} entries")
    };
    let path = held.place.path.to_string_lossy();
    let left_out = remark(withheld).map_or_else(String::new, |remark| format!("\n{remark}"));
    let output = format!(
        "<path>{path}</path>\n<type>directory</type>\n<entries>\n{}\n\n({footer}){left_out}\n</entries>",
        shown.join("\n")
    );
    let preview = shown[..shown.len().min(PREVIEW_LINES)].join("\n");
    let display = json!({
        "type": "directory",
        "path": path,
        "entries": shown,
        "offset": offset,
        "totalEntries": total,
        "truncated": truncated,
    });
    Ok(Output { output, metadata: facts(&preview, truncated), ..Output::default() }.with("display", display))
}
