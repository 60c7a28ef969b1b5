//! Finds skills: instructions for certain tasks that the model loads when it needs them.
//!
//! A skill is a directory with a `SKILL.md`: front matter with a name and a description, then the text. If two have the
//! same name, the one closer to the project wins. An invalid skill is skipped with a warning that names the file and
//! key. This module downloads nothing.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde_json::Value;

use crate::{ControlFiles, Dirs, Env, env, file, load, markdown, yaml};

/// The maximum number of skills; more would fill every request.
const MAX_SKILLS: usize = 200;
/// The maximum size of a skill's text.
const MAX_BYTES: usize = 256 * 1024;
/// The maximum length of a name and of a description.
const MAX_NAME_CHARS: usize = 64;
const MAX_DESCRIPTION_CHARS: usize = 2000;
/// The maximum depth of the search.
const MAX_DEPTH: usize = 6;
/// The maximum number of directories of one search.
const MAX_FOLDERS: usize = 2000;
/// The maximum number of warnings.
const MAX_WARNINGS: usize = 50;
const FILE: &str = "SKILL.md";

/// The built-in skill.
const CUSTOMIZE: &str = "customize-opencode";
const CUSTOMIZE_DESCRIPTION: &str = "How this agent is configured. For changes of opencode.json, .opencode or AGENTS.md, \
                                     and for settings that have no effect.";

/// A skill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skill {
    /// The name that loads it.
    pub name: String,
    /// When to use it. Skills without a description are not listed for the model.
    pub description: Option<String>,
    /// Its file; `None` for the built-in skill.
    pub location: Option<PathBuf>,
    /// The text without the front matter.
    pub content: String,
}

/// The inputs of the search for skills.
#[derive(Debug, Clone, Copy)]
pub struct SkillInput<'a> {
    /// The working directory.
    pub directory: &'a Path,
    /// The worktree that contains it.
    pub worktree: &'a Path,
    /// The environment variables.
    pub env: &'a Env,
    /// The user's directories.
    pub dirs: &'a Dirs,
    /// The merged configuration.
    pub config: &'a Value,
    /// The repository's files, if the user trusts them.
    pub control: Option<&'a ControlFiles>,
    /// The directories in the repository's `skills.paths`.
    pub repository_paths: &'a [String],
    /// The directories with the skills of `skills.urls`.
    pub downloaded: &'a [PathBuf],
}

/// Returns the skills of a directory, and warnings about skipped ones.
#[must_use]
pub fn skills(input: SkillInput<'_>) -> (Vec<Skill>, Vec<String>) {
    let mut found = Found { skills: vec![customize()], warnings: Vec::new() };
    for folder in folders(input) {
        match folder {
            Folder::User(folder) => found.folder(&folder),
            Folder::Repository(folder) => found.repository_folder(input.control, &folder),
        }
    }
    (found.skills, found.warnings)
}

fn customize() -> Skill {
    Skill {
        name: CUSTOMIZE.to_owned(),
        description: Some(CUSTOMIZE_DESCRIPTION.to_owned()),
        location: None,
        content: include_str!("skills/customize.md").to_owned(),
    }
}

/// A directory that may contain skills, and its owner.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Folder {
    User(PathBuf),
    Repository(PathBuf),
}

/// The directories that may contain skills. The closest to the project is last.
fn folders(input: SkillInput<'_>) -> Vec<Folder> {
    let SkillInput { directory, worktree, env, dirs, config, .. } = input;
    let is_off = |name| env.is_on(name);
    let mut others = Vec::new();
    if !is_off(env::DISABLE_EXTERNAL_SKILLS) {
        if !is_off(env::DISABLE_CLAUDE_CODE) && !is_off(env::DISABLE_CLAUDE_CODE_SKILLS) {
            others.push(".claude/skills");
        }
        others.push(".agents/skills");
    }
    let own = |root: &Path| ["skill", "skills"].map(|name| root.join(name));
    let mut levels = load::levels(worktree, directory, &dirs.home);
    levels.retain(|level| *level != dirs.home);
    if is_off(env::DISABLE_PROJECT_CONFIG) {
        levels.clear();
    }
    let mut folders: Vec<_> = input.downloaded.iter().cloned().map(Folder::User).collect();
    folders.extend(others.iter().map(|name| Folder::User(dirs.home.join(name))));
    let of_levels = levels.iter().flat_map(|level| others.iter().map(|name| level.join(name)));
    folders.extend(of_levels.map(Folder::Repository));
    for root in [&dirs.config, &dirs.own_config, &dirs.home.join(".opencode")] {
        folders.extend(own(root).map(Folder::User));
    }
    folders.extend(levels.iter().flat_map(|level| own(&level.join(".opencode"))).map(Folder::Repository));
    let named = env.filled(env::CONFIG_DIR).into_iter().flat_map(|root| own(&directory.join(root)));
    folders.extend(named.map(Folder::User));
    let named = config.pointer("/skills/paths").and_then(Value::as_array).into_iter().flatten();
    folders.extend(named.filter_map(Value::as_str).map(|path| match path.strip_prefix("~/") {
        Some(below) => Folder::User(dirs.home.join(below)),
        // A repository cannot use directories outside its worktree, and inside it only the control files that were read.
        None if is_repository(input, path) => Folder::Repository(directory.join(path)),
        None => Folder::User(directory.join(path)),
    }));
    let mut seen = std::collections::HashSet::new();
    folders.retain(|folder| seen.insert(folder.clone()));
    folders
}

/// Whether a path is in the repository's `skills.paths`.
fn is_repository(input: SkillInput<'_>, path: &str) -> bool {
    input.repository_paths.iter().any(|named| named == path)
}

struct Found {
    skills: Vec<Skill>,
    warnings: Vec<String>,
}

impl Found {
    fn warn(&mut self, warning: String) {
        if self.warnings.len() < MAX_WARNINGS {
            self.warnings.push(warning);
        }
    }

    fn folder(&mut self, root: &Path) {
        let mut files = Vec::new();
        let mut left = MAX_FOLDERS;
        collect(root, MAX_DEPTH, &mut left, &mut files);
        files.sort();
        for path in files {
            match read(&path) {
                Ok(skill) => self.add(skill),
                Err(why) => self.warn(format!("the skill `{}` is ignored: {why}", path.display())),
            }
        }
    }

    /// Adds the skills of a repository, if its control files are available.
    fn repository_folder(&mut self, control: Option<&ControlFiles>, root: &Path) {
        let Some(control) = control else { return };
        for path in control.below(root).filter(|path| is_skill(path)) {
            let exact = path.with_file_name(FILE);
            if path != exact && control.text(&exact).is_some() {
                continue;
            }
            let skill = match control.text(path) {
                Some(Ok(text)) => parse(path, text),
                Some(Err(problem)) => Err(problem.to_string()),
                None => continue,
            };
            match skill {
                Ok(skill) => self.add(skill),
                Err(why) => self.warn(format!("the skill `{}` is ignored: {why}", path.display())),
            }
        }
    }

    fn add(&mut self, skill: Skill) {
        let is_full = self.skills.len() >= MAX_SKILLS;
        match self.skills.iter_mut().find(|known| known.name == skill.name) {
            Some(known) => *known = skill,
            None if is_full => {
                self.warn(format!("there are more than {MAX_SKILLS} skills; `{}` is ignored", skill.name));
            }
            None => self.skills.push(skill),
        }
    }
}

/// Collects the skill files in a directory. Links are followed; the depth limit ends cycles.
fn collect(folder: &Path, depth: usize, left: &mut usize, files: &mut Vec<PathBuf>) {
    if *left == 0 {
        return;
    }
    *left -= 1;
    let Ok(entries) = fs::read_dir(folder) else { return };
    let mut entries: Vec<_> = entries.flatten().take(MAX_FOLDERS).map(|entry| entry.path()).collect();
    entries.sort();
    let has_exact = entries.iter().any(|path| path.ends_with(FILE));
    for path in entries {
        if path.ends_with(FILE) || !has_exact && is_skill(&path) {
            files.push(path);
        } else if depth > 0 && path.is_dir() {
            collect(&path, depth - 1, left, files);
        }
    }
}

/// Whether a file is named as one with a skill, in any case of the letters.
pub(crate) fn is_skill(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.eq_ignore_ascii_case(FILE))
}

fn read(path: &Path) -> Result<Skill, String> {
    parse(path, &file::read(path).map_err(|problem| problem.to_string())?)
}

fn parse(path: &Path, text: &str) -> Result<Skill, String> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.len() > MAX_BYTES {
        return Err(format!("it is larger than {} KiB", MAX_BYTES / 1024));
    }
    let (front, body) =
        front_matter(text).ok_or("it does not start with front matter between lines of `---`")?;
    let (mut front, problems) = yaml::parse(front);
    markdown::read_key_names(&mut front, &["name", "description"]);
    let value = |key: &str| front.get(key).and_then(text_of);
    let name = value("name").ok_or_else(|| missing("name", &problems))?;
    let is_plain = |c: char| !c.is_control() && !matches!(c, '<' | '>' | '"');
    if name.is_empty() || name.chars().count() > MAX_NAME_CHARS || !name.chars().all(is_plain) {
        return Err(format!("`name` must have 1 to {MAX_NAME_CHARS} plain characters"));
    }
    let description = value("description").filter(|description| !description.is_empty());
    if description.as_ref().is_some_and(|description| description.chars().count() > MAX_DESCRIPTION_CHARS) {
        return Err(format!("`description` is longer than {MAX_DESCRIPTION_CHARS} characters"));
    }
    Ok(Skill { name, description, location: Some(path.to_owned()), content: body.to_owned() })
}

/// A scalar as text.
fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.trim().to_owned()),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// The reason why a key has no value.
fn missing(key: &str, problems: &[yaml::Problem]) -> String {
    let broken = problems.iter().find(|problem| problem.key.as_deref() == Some(key));
    match broken {
        // The first line is `---`.
        Some(problem) => format!("line {}: `{key}` {}", problem.line + 1, problem.text),
        None => format!("`{key}` is missing"),
    }
}

/// Splits the front matter from the text.
fn front_matter(text: &str) -> Option<(&str, &str)> {
    markdown::at_fence(markdown::after_fence(text)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(front: &str, expected: Option<&str>) {
        let (map, _) = yaml::parse(front);
        assert_eq!(map.get("description").and_then(text_of).as_deref(), expected, "{front}");
    }

    #[test]
    fn a_description_can_have_any_yaml_style() {
        check("name: a\ndescription: Does: x, y # a remark\n", Some("Does: x, y"));
        check("description: one\n  two\nname: a", Some("one two"));
        check("description: >-\n  one\n  two\n", Some("one two"));
        check("description: |\n  one\n  two\n", Some("one\ntwo"));
        check("description: \"a \\\"b\\\" c\" # no", Some("a \"b\" c"));
        check("description: 'it''s'", Some("it's"));
        check("description:\n", None);
        check("descriptions: x", None);
        check("", None);
    }
}
