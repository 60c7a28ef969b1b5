//! Agents, modes and commands in Markdown files with front matter.
//!
//! They are in subdirectories of a configuration directory, in singular or plural (`agent` or `agents`). Deeper
//! directories become part of the name. An invalid file or key is skipped with a warning.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde_json::{Value, json};

use crate::{
    ControlFiles, FileProblem, Map,
    document::{
        Node,
        schema::{self, Shape},
    },
    file, yaml,
};

/// The maximum number of files of one kind in one directory.
const MAX_FILES: usize = 1000;
/// The maximum length of a name in the front matter.
const MAX_NAME_CHARS: usize = 200;
/// The maximum depth of directories.
const MAX_DEPTH: usize = 8;
/// The maximum number of invalid keys of one file.
const MAX_FAULTS: usize = 20;
/// The keys that restrict an agent. A file in which one of them is not understood is left out, because the agent would
/// otherwise have more rights than its author wrote.
pub(crate) const AGENT_RESTRICTIONS: &[&str] =
    &["permission", "tools", "sandbox", "disable", "type", DISALLOWED];
/// The key of other agents for tools that an agent may not use.
pub(crate) const DISALLOWED: &str = "disallowedTools";
/// The number of lines in which front matter that something precedes is looked for.
const MAX_LINES_BEFORE: usize = 50;
/// The number of lines before it that are neither empty nor comments. More are a text with an example.
const MAX_OTHER_LINES: usize = 2;
/// The least length of a key in which one slip is recognized. Shorter ones are similar to too many words.
const MIN_SLIP_LETTERS: usize = 4;
/// The keys that restrict a command: the agent that runs it may have fewer rights.
const COMMAND_RESTRICTIONS: &[&str] = &["agent", "subtask"];

/// The entries that the files of a directory define.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// The configuration key (`agent`, `mode` or `command`), the name, the entry and the file.
    pub(crate) entries: Vec<(&'static str, String, Map, PathBuf)>,
    /// The agents that are left out, because their restrictions are not understood.
    pub(crate) left_out: Vec<String>,
    pub(crate) warnings: Vec<String>,
}

/// The subdirectories of a configuration directory, each with the key that its files define.
pub(crate) const FOLDERS: [(&str, &str); 6] = [
    ("agent", "agent"),
    ("agents", "agent"),
    ("mode", "mode"),
    ("modes", "mode"),
    ("command", "command"),
    ("commands", "command"),
];

/// Reads the files in a directory of the user's configuration.
pub(crate) fn read(folder: &Path) -> Found {
    let mut found = Found::default();
    for (spelling, key) in FOLDERS {
        let root = folder.join(spelling);
        let mut files = Vec::new();
        collect(&root, MAX_DEPTH, &mut files);
        files.sort();
        let files = files.into_iter().map(|path| (file::read(&path), path)).collect();
        found.add(&root, key, files);
    }
    found
}

/// Reads the files of a repository in `root`, which define entries of `key`.
pub(crate) fn entries_of(control: &ControlFiles, root: &Path, key: &'static str) -> Found {
    let mut found = Found::default();
    let paths = control.below(root).filter(|path| is_markdown(path)).map(Path::to_owned);
    let files = paths.filter_map(|path| {
        let text = control.text(&path)?.map(str::to_owned);
        Some((text, path))
    });
    found.add(root, key, files.collect());
    found
}

impl Found {
    fn add(
        &mut self,
        root: &Path,
        key: &'static str,
        mut files: Vec<(Result<String, FileProblem>, PathBuf)>,
    ) {
        if files.len() > MAX_FILES {
            let warning =
                format!("`{}` has more than {MAX_FILES} files; the others are ignored", root.display());
            self.warnings.push(warning);
            files.truncate(MAX_FILES);
        }
        for (text, path) in files {
            let name = name(root, &path);
            match entry(key, &name, &path, text, &mut self.warnings) {
                Entry::Read(mut entry) => {
                    let name = own_name(&mut entry, key).unwrap_or(name);
                    self.entries.push((key, name, entry, path));
                }
                Entry::LeftOut(front) if key != "command" => {
                    self.left_out.extend(own_name(&mut front.clone(), key));
                    self.left_out.push(name);
                }
                Entry::LeftOut(_) | Entry::Unreadable => {}
            }
        }
    }
}

/// What a file defines.
#[derive(Debug)]
enum Entry {
    Read(Map),
    Unreadable,
    /// The restrictions are not understood. The rest of the front matter may name the entry.
    LeftOut(Map),
}

fn collect(folder: &Path, depth: usize, files: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        if files.len() > MAX_FILES {
            return;
        }
        let path = entry.path();
        // Links are followed, so that files can be shared. The depth limit ends cycles.
        if path.is_dir() {
            if depth > 0 {
                collect(&path, depth - 1, files);
            }
        } else if is_markdown(&path) {
            files.push(path);
        }
    }
}

/// Whether a file has the extension `md`, which some systems write in upper case.
pub(crate) fn is_markdown(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("md"))
}

fn name(root: &Path, path: &Path) -> String {
    let below = path.strip_prefix(root).unwrap_or(path).with_extension("");
    below.to_string_lossy().replace('\\', "/")
}

fn entry(
    key: &str,
    name: &str,
    path: &Path,
    text: Result<String, FileProblem>,
    warnings: &mut Vec<String>,
) -> Entry {
    let shown = path.display();
    let text = match text {
        Ok(text) => text,
        Err(problem) => {
            warnings.push(format!("`{shown}` {problem}; it is ignored"));
            return Entry::Unreadable;
        }
    };
    let is_command = key == "command";
    let restrictions = if is_command { COMMAND_RESTRICTIONS } else { AGENT_RESTRICTIONS };
    let keys = if is_command { schema::COMMAND_KEYS } else { schema::AGENT_KEYS };
    let mut names: Vec<&str> = keys.iter().map(|(key, _)| *key).collect();
    names.extend((!is_command).then_some(DISALLOWED));
    // Line ends of older systems.
    let text = if text.contains('\n') { text } else { text.replace('\r', "\n") };
    let Document { mut front, body, mut problems } = split(&text);
    problems.retain(|problem| !problem.is_guess || problem.may_concern(restrictions));
    problems.extend(unread_front(&text, &names, restrictions));
    problems.extend(spelled_twice(&front, restrictions));
    read_key_names(&mut front, &names);
    problems.extend(misspelt(&front, &names, restrictions));
    let is_restricting = |problem: &FrontProblem| problem.may_concern(restrictions);
    let lost = problems.iter().find(|problem| is_restricting(problem)).map(|problem| problem.text.clone());
    warnings.extend(problems.into_iter().map(|problem| format!("`{shown}` {}", problem.text)));
    let kind = if is_command { "command" } else { "agent" };
    let left_out = |why: &str| {
        format!(
            "`{shown}`: the {kind} `{name}` is left out, because its restrictions are not understood ({why})"
        )
    };
    if let Some(why) = lost {
        warnings.push(left_out(&why));
        return Entry::LeftOut(front);
    }
    if !is_command {
        read_tool_names(&mut front);
        if let Some(Value::Object(tools)) = front.get_mut("tools") {
            tools.iter_mut().for_each(|(_, value)| read_switch(value));
        }
    }
    for (key, _) in keys.iter().filter(|(_, shape)| matches!(shape, Shape::Switch)) {
        front.get_mut(*key).into_iter().for_each(read_switch);
    }
    for _ in 0..MAX_FAULTS {
        let value = Value::Object(front);
        let fault = schema::check(&Node::from(&value), &Shape::Record(keys)).err();
        let Value::Object(mut map) = value else { return Entry::Unreadable };
        let Some(fault) = fault else { return Entry::Read(complete_entry(key, name, map, body)) };
        let schema::Fault { key: at, expected, found, .. } = fault;
        warnings.push(format!("`{shown}`: `{at}` must be {expected}, found {found}; it is ignored"));
        let top = at.split(['.', '[']).next().unwrap_or_default().to_owned();
        if restrictions.contains(&top.as_str()) {
            warnings.push(left_out(&format!("`{at}` must be {expected}")));
            return Entry::LeftOut(map);
        }
        if map.shift_remove(&top).is_none() {
            return Entry::Unreadable;
        }
        front = map;
    }
    warnings.push(left_out("too many keys are invalid"));
    Entry::LeftOut(front)
}

/// Gives keys their usual spelling: `Tools` is `tools`, and `max-steps` is `maxSteps`.
pub(crate) fn read_key_names(front: &mut Map, names: &[&str]) {
    let known = |key: &str| names.iter().find(|name| same_name(name, key));
    let is_other = |(key, _): &(&String, &Value)| !names.contains(&key.as_str()) && known(key).is_some();
    let others: Vec<String> = front.iter().filter(is_other).map(|(key, _)| key.clone()).collect();
    for key in others {
        // A key that is also there in its usual spelling counts.
        let name = known(&key).filter(|name| !front.contains_key(**name));
        if let Some((name, value)) = name.zip(front.shift_remove(&key)) {
            front.insert((*name).to_owned(), value);
        }
    }
}

/// The restricting keys that are there in two spellings, of which only one counts.
fn spelled_twice(front: &Map, restrictions: &[&str]) -> Vec<FrontProblem> {
    let problem = |name: &&str| {
        let mut spellings = front.keys().filter(|key| same_name(name, key));
        let (one, other) = (spellings.next()?, spellings.next()?);
        let text = format!("has both `{one}` and `{other}`");
        Some(FrontProblem::new(text, Some((*name).to_owned()), other))
    };
    restrictions.iter().filter_map(problem).collect()
}

/// Whether two names differ at most in upper case, `_`, `-` and characters that are not visible.
pub(crate) fn same_name(one: &str, other: &str) -> bool {
    let letters = |name: &str| -> String {
        let visible = name.chars().filter(|c| !matches!(c, '_' | '-') && !is_invisible(*c));
        visible.flat_map(char::to_lowercase).collect()
    };
    letters(one) == letters(other)
}

/// Whether a character is neither seen nor white space. Text that is copied from an editor or a web page often contains such characters.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}')
}

/// A text without what cannot be seen at its ends.
fn trim_unseen(text: &str) -> &str {
    text.trim_matches(|c: char| c.is_whitespace() || is_invisible(c))
}

/// The unknown keys that are probably a restriction, such as `permissions`. Other unknown keys are options for the provider.
fn misspelt(front: &Map, names: &[&str], restrictions: &[&str]) -> Vec<FrontProblem> {
    let unknown = front.keys().filter(|key| !names.contains(&key.as_str()));
    let problem = |key: &String| {
        let name = restrictions.iter().find(|name| is_slip(key, name))?;
        let text = format!("has the unknown key `{key}`; did you mean `{name}`?");
        Some(FrontProblem::new(text, Some((*name).to_owned()), key))
    };
    unknown.filter_map(problem).collect()
}

/// Whether a word is another one with one slip: a letter more, less or changed, or two exchanged.
pub(crate) fn is_slip(word: &str, name: &str) -> bool {
    name.len() > MIN_SLIP_LETTERS
        && strsim::damerau_levenshtein(&word.to_lowercase(), &name.to_lowercase()) == 1
}

/// Front matter that begins like that of other programs, whose beginning is missing, or that something precedes. It becomes
/// part of the prompt.
fn unread_front(text: &str, names: &[&str], restrictions: &[&str]) -> Option<FrontProblem> {
    if after_fence(text).is_some() {
        return None;
    }
    let text = trim_unseen(text);
    let (front, why) = [odd_front, late_front].into_iter().find_map(|find| {
        find(text).filter(|(front, _)| {
            let begin = front.lines().find(|line| !trim_unseen(line).is_empty());
            begin.is_some_and(|line| is_setting(line, names))
        })
    })?;
    let begin = front.lines().map(trim_unseen).find(|line| !line.is_empty())?;
    // Without a restriction the text is used as it is.
    let is_restricting = restrictions.iter().any(|name| front.to_lowercase().contains(name));
    let top = (!is_restricting).then(|| begin.to_owned());
    Some(FrontProblem::new(why, top, ""))
}

/// Whether a line sets one of these keys, in the spelling of YAML, JSON or TOML.
fn is_setting(line: &str, names: &[&str]) -> bool {
    let line = trim_unseen(line);
    let key = line.trim_start_matches(['"', '\'', '[', '{', '?', ' ']);
    let end = key.find(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '-') || is_invisible(c)));
    // The colon of `? key` is in the next line.
    let alone = if line.starts_with('?') { ":" } else { "" };
    let (key, rest) = end.map_or((key, alone), |end| key.split_at(end));
    let rest = rest.trim_start_matches(['"', '\'', ' ']);
    rest.starts_with([':', '=', ']', '\u{ff1a}']) && names.iter().any(|name| same_name(name, key))
}

/// The text that may be front matter at the beginning of a file, and what is wrong with it.
fn odd_front(text: &str) -> Option<(String, String)> {
    let (first, rest) = text.split_once('\n')?;
    if is_rule(first) {
        let end = rest.split_inclusive('\n').position(is_rule).unwrap_or(usize::MAX);
        let front = rest.split_inclusive('\n').take(end).collect();
        let first = trim_unseen(first);
        let why = match is_fence(first) {
            true => "has a character that is not visible at the `---` of its front matter".to_owned(),
            false => format!("begins with `{first}`, but front matter is YAML between lines of `---`"),
        };
        return Some((front, why));
    }
    let (front, _) = at_fence(rest)?;
    let why = "has front matter without `---` in its first line".to_owned();
    Some((format!("{first}\n{front}"), why))
}

/// The text that may be front matter below comments, headings, the beginning of a code block or a few other lines.
fn late_front(text: &str) -> Option<(String, String)> {
    let lines: Vec<&str> = text.lines().collect();
    let (mut others, mut is_comment) = (0, false);
    for (index, line) in lines.iter().enumerate().take(MAX_LINES_BEFORE) {
        let line = trim_unseen(line);
        if is_comment || line.starts_with("<!--") {
            is_comment = !line.contains("-->");
        } else if is_rule(line) {
            let front: Vec<&str> =
                lines.iter().skip(index + 1).take_while(|line| !is_rule(line)).copied().collect();
            let has_end = index + 1 + front.len() < lines.len();
            let is_empty = front.iter().all(|line| trim_unseen(line).is_empty());
            if index > 0 && has_end && !is_empty {
                let why =
                    format!("has front matter that begins in line {}, but nothing may precede it", index + 1);
                return Some((front.join("\n"), why));
            }
            // A code block in the text is an example.
            if line.starts_with("```") && others > 0 {
                return None;
            }
        } else if !line.is_empty() && !line.starts_with(['#', '%']) {
            others += 1;
            if others > MAX_OTHER_LINES {
                return None;
            }
        }
    }
    None
}

/// Whether a line is what other programs, and programs that replace dashes, write in place of `---`.
fn is_rule(line: &str) -> bool {
    let mark = |c: char| {
        matches!(c, '-' | '+' | '~' | '=' | '*' | '_' | ';' | '`' | '\u{2013}' | '\u{2014}' | '\u{2212}')
    };
    let line = trim_unseen(line);
    let word = line.trim_start_matches(mark);
    word.len() < line.len() && word.trim().chars().all(char::is_alphanumeric)
}

/// Reads a switch that is written as a word. Older YAML knows `yes`, `no`, `on` and `off`, and people quote `true`.
fn read_switch(value: &mut Value) {
    let Some(word) = value.as_str().map(|word| word.trim().to_ascii_lowercase()) else { return };
    match word.as_str() {
        "true" | "yes" | "on" => *value = Value::Bool(true),
        "false" | "no" | "off" => *value = Value::Bool(false),
        _ => {}
    }
}

/// Reads `tools` as other agents write it, a list of the only tools that the agent may use, such as `tools: Read, Grep`,
/// and `disallowedTools`, a list of those that it may not use.
fn read_tool_names(front: &mut Map) {
    let mut tools = match front.get("tools") {
        Some(Value::Object(tools)) => tools.clone(),
        None => Map::new(),
        Some(only) => {
            let Some(only) = tool_names(only) else { return };
            let none = ("*".to_owned(), Value::Bool(false));
            std::iter::once(none).chain(only.into_iter().map(|name| (name, Value::Bool(true)))).collect()
        }
    };
    if let Some(names) = front.get(DISALLOWED).and_then(tool_names) {
        front.shift_remove(DISALLOWED);
        tools.extend(names.into_iter().map(|name| (name, Value::Bool(false))));
    }
    if front.contains_key("tools") || !tools.is_empty() {
        front.insert("tools".to_owned(), Value::Object(tools));
    }
}

/// Reads names of tools as a list or with commas between them, in the spelling of other agents.
fn tool_names(value: &Value) -> Option<Vec<String>> {
    let names: Vec<&str> = match value {
        Value::String(names) => names.split(',').collect(),
        Value::Array(names) => names.iter().map(|name| name.as_str().unwrap_or_default()).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => return None,
    };
    let names = names.into_iter().map(|name| name.trim().to_ascii_lowercase());
    let names = names.filter(|name| !name.is_empty()).map(|name| match name.as_str() {
        "ls" => "list".to_owned(),
        "multiedit" | "notebookedit" => "edit".to_owned(),
        "agent" => "task".to_owned(),
        _ => name,
    });
    Some(names.collect())
}

/// The name in the front matter, which replaces that of the file. A command has no key for its name.
fn own_name(front: &mut Map, key: &str) -> Option<String> {
    let name = if key == "command" { front.shift_remove("name") } else { front.get("name").cloned() };
    let name = name.as_ref().and_then(Value::as_str).map(str::trim).filter(|name| is_name(name));
    name.map(str::to_owned)
}

/// Whether a text can name an agent or a command: one line of at most [`MAX_NAME_CHARS`].
fn is_name(name: &str) -> bool {
    !name.is_empty() && name.chars().count() <= MAX_NAME_CHARS && !name.chars().any(char::is_control)
}

/// The configuration entry that a file defines.
fn complete_entry(key: &str, name: &str, mut front: Map, body: &str) -> Map {
    if key == "command" {
        front.retain(|key, _| key == "name" || schema::COMMAND_KEYS.iter().any(|(known, _)| known == key));
        front.insert("template".to_owned(), json!(body));
        return front;
    }
    if !front.get("name").and_then(Value::as_str).is_some_and(|name| is_name(name.trim())) {
        front.insert("name".to_owned(), json!(name));
    }
    front.insert("prompt".to_owned(), json!(body));
    front
}

/// A parsed Markdown file.
#[derive(Debug)]
pub(crate) struct Document<'a> {
    pub(crate) front: Map,
    pub(crate) body: &'a str,
    /// The parts of the front matter that were ignored.
    pub(crate) problems: Vec<FrontProblem>,
}

/// A part of the front matter that was ignored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FrontProblem {
    /// The line and the problem.
    pub(crate) text: String,
    /// The key of the outermost mapping, if it was parsed.
    top: Option<String>,
    /// The line as written. Empty if the whole front matter was ignored.
    line: String,
    /// Whether only a key in `top` that restricts makes it a problem.
    is_guess: bool,
}

impl FrontProblem {
    fn new(text: String, top: Option<String>, line: &str) -> Self {
        Self { text, top, line: line.to_owned(), is_guess: false }
    }

    /// Whether one of the keys may be lost. A line inside of another value may belong to any key.
    fn may_concern(&self, keys: &[&str]) -> bool {
        match &self.top {
            Some(top) => {
                top == yaml::MERGE || keys.iter().any(|key| same_name(key, top) || is_slip(top, key))
            }
            None => {
                let line = self.line.trim_start_matches(['"', '\'']);
                line.starts_with(char::is_whitespace)
                    || line.is_empty()
                    || keys.iter().any(|key| line.starts_with(key))
                    // Several keys are in one line in braces.
                    || line.split(['{', ',', '\n']).any(|part| is_setting(part, keys))
            }
        }
    }
}

/// Splits a file into the front matter between lines of `---` and the text below it.
pub(crate) fn split(text: &str) -> Document<'_> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let plain = |problems| Document { front: Map::new(), body: text.trim(), problems };
    let Some(rest) = after_fence(text) else { return plain(Vec::new()) };
    let Some((front, body)) = at_fence(rest) else {
        let text = "has front matter without an end".to_owned();
        return plain(vec![FrontProblem::new(text, None, "")]);
    };
    let (map, problems) = yaml::parse(front);
    let problems = problems.into_iter().map(|problem| {
        // The first line is `---`.
        let number = problem.line + 1;
        let text = match &problem.key {
            Some(key) if problem.text == yaml::TWICE => {
                format!("line {number}: `{key}` is there twice; only the last one counts")
            }
            Some(key) => format!("line {number}: `{key}` {}; it is ignored", problem.text),
            None => format!("line {number} {}; it is ignored", problem.text),
        };
        let mut lines = front.lines().skip(problem.line.saturating_sub(1));
        let line = lines.next().unwrap_or_default();
        let rest = if line.trim_start().starts_with('{') {
            lines.collect::<Vec<_>>().join("\n")
        } else {
            String::new()
        };
        let line = if problem.text == yaml::OTHERS { String::new() } else { format!("{line}\n{rest}") };
        FrontProblem { text, top: problem.top, line, is_guess: problem.is_guess }
    });
    Document { front: map, body: body.trim(), problems: problems.collect() }
}

/// Splits the text after the first line at the line that ends the front matter.
pub(crate) fn at_fence(rest: &str) -> Option<(&str, &str)> {
    // An indented fence may be part of a block of text, so it only counts if there is no other one.
    let find = |is_end: fn(&str) -> bool| {
        let mut offset = 0;
        rest.split_inclusive('\n').find_map(|line| {
            let begin = offset;
            offset += line.len();
            is_end(line).then(|| (&rest[..begin], &rest[offset..]))
        })
    };
    find(|line| line.trim_end() == "---").or_else(|| find(is_fence))
}

/// Returns the text after the first line of a file that begins with front matter.
pub(crate) fn after_fence(text: &str) -> Option<&str> {
    // Some editors and exporters write a byte order mark, an empty line or white space around the dashes.
    let text = text.trim_start_matches(|c: char| c == '\u{feff}' || c.is_whitespace());
    let (first, rest) = text.split_once('\n')?;
    (is_fence(first) || is_named_fence(first)).then_some(rest)
}

/// Whether a line begins front matter and names its language, which is the usual one: `---yaml`.
fn is_named_fence(line: &str) -> bool {
    let language = line.trim().strip_prefix("---").map(str::trim);
    language.is_some_and(|name| ["yaml", "yml"].iter().any(|known| name.eq_ignore_ascii_case(known)))
}

/// Whether a line is the beginning or the end of front matter.
fn is_fence(line: &str) -> bool {
    line.trim() == "---"
}

/// The name, description and template of a command.
pub type CommandFile = (String, Option<String>, String);

/// The commands in a repository's directory of Markdown files.
#[must_use]
pub fn repository_commands(control: &ControlFiles, folder: &Path) -> Vec<CommandFile> {
    let paths = control.below(folder).filter(|path| is_markdown(path)).take(MAX_FILES);
    let command = |path: &Path| {
        let text = control.text(path)?.ok()?;
        let Document { front, body, .. } = split(text);
        let description = front.get("description").and_then(Value::as_str).map(str::to_owned);
        Some((name(folder, path), description, body.to_owned()))
    };
    paths.filter_map(command).collect()
}

/// The front matter and the text of a Markdown file, and the problems found.
#[must_use]
pub fn front_matter(text: &str) -> (Map, &str, Vec<String>) {
    let Document { front, body, problems } = split(text);
    let problems = problems.into_iter().filter(|problem| !problem.is_guess);
    (front, body, problems.map(|problem| problem.text).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_split_into_front_matter_and_text() {
        let document = split("---\r\ndescription: x\r\n---\r\n\r\nbody\r\n");
        assert_eq!((document.front["description"].as_str(), document.body), (Some("x"), "body"));
        let document = split("only\n---\ntext\n");
        assert_eq!((document.front.len(), document.body), (0, "only\n---\ntext"));
        let document = split("---\na: b\nnever ends");
        assert_eq!((document.front.len(), document.problems.len()), (0, 1));
        let document = split("---\na: [b\n---\nt");
        assert_eq!(
            document.problems[0].text,
            "line 2: `a` has a bracket or quote that is never closed; it is ignored"
        );
        for text in ["--- \na: b\n---\nx", "\u{feff}---\na: b\n--- \nx", "\n ---\t\r\na: b\r\n ---\r\nx"] {
            let document = split(text);
            assert_eq!((document.front["a"].as_str(), document.body), (Some("b"), "x"), "{text:?}");
        }
        let document = split("---\na: |\n  one\n  ---\n  two\n---\nbody");
        assert_eq!((document.front["a"].as_str(), document.body), (Some("one\n---\ntwo\n"), "body"));
        assert_eq!(split("---\n---\n").body, "");
        for text in ["---yaml\na: b\n---\nx", "--- YML \na: b\n---\nx"] {
            let document = split(text);
            assert_eq!((document.front["a"].as_str(), document.body), (Some("b"), "x"), "{text:?}");
        }
    }

    /// Reads an agent. `None` if it is left out.
    fn agent(text: &str) -> Option<Map> {
        let mut warnings = Vec::new();
        match entry("agent", "a", Path::new("/a.md"), Ok(text.to_owned()), &mut warnings) {
            Entry::Read(read) => Some(read),
            Entry::Unreadable => panic!("{text:?} is not read"),
            Entry::LeftOut(_) => {
                assert!(!warnings.is_empty(), "{text:?}: it is left out without a warning");
                None
            }
        }
    }

    #[test]
    fn keys_are_read_in_any_spelling_and_with_any_line_ends() {
        let expected = json!({"write": false});
        for text in [
            "---\n{\"description\": \"See #3, issue #4\", \"tools\": {\"write\": false}}\n---\nx",
            "---\n{\n  tools: {write: no}, # none\n  mode: primary\n}\n---\nx",
            "---\n\u{200b}tools:\n  write: false\n---\nx",
            "---\nTools:\n  write: false\n---\nx",
            "---\rtools:\r  write: false\r---\rx",
            "---\nTOOLS:\n  write: no\n---\nx",
            "---\ndisallowedTools: Write\n---\nx",
            "---\ndisallowedTools: [Write]\n---\nx",
            "---yaml\ntools:\n  write: false\n---\nx",
        ] {
            assert_eq!(agent(text).unwrap()["tools"], expected, "{text:?}");
        }
        let both = agent("---\ntools: Read, Write\ndisallowedTools: Write\n---\nx").unwrap();
        assert_eq!(both["tools"], json!({"*": false, "read": true, "write": false}));
        let steps = agent("---\nmax_steps: 3\nMode: primary\n---\nx").unwrap();
        assert_eq!((&steps["maxSteps"], &steps["mode"]), (&json!(3), &json!("primary")));
        let twice = agent("---\nMode: all\nmode: primary\n---\nx").unwrap();
        assert_eq!(twice["mode"], json!("primary"));
    }

    #[test]
    fn an_agent_whose_restrictions_may_be_lost_is_left_out() {
        for text in [
            "+++\n[tools]\nwrite = false\n+++\nx",
            "----\ntools:\n  write: false\n----\nx",
            "\u{2014}-\ndescription: x\ntools: Read\n\u{2014}-\nx",
            "---json\n{\"tools\": {\"write\": false}}\n---\nx",
            "```yaml\npermission:\n  edit: deny\n```\nx",
            "description: x\ntools:\n  write: false\n---\nx",
            "---\npermissions:\n  edit: deny\n---\nx",
            "---\nTool:\n  write: false\n---\nx",
            "---\npremission:\n  edit: deny\n---\nx",
            "---\n{\"description\": \"x\", \"tools\": {\"write\": false}\n---\nx",
            "---\n{\n  description: x,\n  tools: {write: false}, tools: {}\n}\n---\nx",
            "---\ntools:\n  write: false\ntools:\n  bash: false\n---\nx",
            "---\ntools: {write: false, write: true}\n---\nx",
            "---\npermission:\n  edit: deny\n  edit: allow\n---\nx",
            "---\nPermission:\n  edit: [deny\n---\nx",
            "---\nTools:\n  write: false\ntools:\n  bash: false\n---\nx",
            "---\n<<: *base\ndescription: x\n---\nx",
            "---\n? tools\n: {write: false}\n---\nx",
            "---\ndescription: x\n tools:\n   write: false\n---\nx",
            "---\na\nb\nc\nd\ne\nf\n{tools: {write: false}}\n---\nx",
            "<!-- reviewer -->\n---\ntools:\n  write: false\n---\nx",
            "<!-- two\nlines -->\n\n---\ndescription: x\ntools:\n  write: false\n---\nx",
            "# Reviewer\n\n---\ndescription: x\ntools:\n  write: false\n---\nx",
            "A reviewer.\n---\ndescription: x\ntools:\n  write: false\n---\nx",
            "\u{200b}---\ntools:\n  write: false\n---\nx",
            "\u{2060}\n---\ntools:\n  write: false\n---\nx",
            "---\u{200b}\ntools:\n  write: false\n---\nx",
            "---\n\u{200b}tools\u{200b}\u{2060}: [\n---\nx",
            "```yaml\n---\ntools:\n  write: false\n---\n```\nx",
            "```\n---\ndescription: x\ntools:\n  write: false\n---\n```\nx",
        ] {
            assert_eq!(agent(text), None, "{text:?}");
        }
        // These have none.
        for text in [
            "***\nNote: be brief\n",
            "# Title\n\ndescription: of something\n",
            "Description: what you do\nReview code.",
            "---\nthinking: high\n---\nx",
            "Mode: of work\n\n---\nReview code.",
            "\u{2014}-\ndescription: x\n\u{2014}-\nx",
            "---\nmode: primary\nmode: all\n---\nx",
            "---\ndescription: x\n  Note: tools are of use\n---\nx",
            "<!-- tools: none -->\nReview code.\n\n---\n\nType: of text\n",
            "Write agents like this:\n\n```\n---\ndescription: x\ntools:\n  write: false\n---\n```\n",
            "One.\nTwo.\nThree.\n---\ndescription: x\ntools:\n  write: false\n---\n",
            "",
        ] {
            assert!(agent(text).is_some(), "{text:?}");
        }
    }
}
