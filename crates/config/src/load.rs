//! Finds the configuration of a directory and merges it.
//!
//! From the weakest to the strongest: what organisations serve to those who signed in, OpenCode's
//! global files, ours, the file named by `OPENCODE_CONFIG`, project files from the worktree's root
//! down to the directory, the Markdown files of the global folders, `.opencode` and `.codewright`
//! with theirs from the directory up to the root, the same in the home, the directory named by
//! `OPENCODE_CONFIG_DIR`, the text in `OPENCODE_CONFIG_CONTENT`, the rules in
//! `OPENCODE_PERMISSION`. That the outer `.opencode` wins over the inner one is the original's way,
//! and existing projects rely on it.
//!
//! Project files are a repository's. They are read through [`ControlFiles`], and how much of them takes
//! effect depends on the user's trust; everything else is the user's own.

use std::path::{Path, PathBuf};

use codewright_proto::{Action, Rule};
use serde_json::{Value, json};
use strsim::damerau_levenshtein;

use crate::{
    Config, ControlFiles, Dirs, Env, Error, FileProblem, Map, Trust,
    class::{self, Class},
    control::{self, Ground},
    default_rules,
    document::{
        Inserter, Node, Origin,
        schema::{self, CONFIG_KEYS},
    },
    env, file, markdown, merge, nearest,
    origins::Origins,
    permission, request,
};

/// The address of the published schema, which editors look for in a document.
const SCHEMA: &str = "https://opencode.ai/config.json";

/// The user's name when the system does not say.
const NAMELESS: &str = "unknown";

/// The most unknown keys of one document that are looked at for a typing mistake.
const MAX_STRANGERS: usize = 20;

/// A key is taken for another when at most one of this many characters is wrong.
const CHARS_PER_SLIP: usize = 3;

const GLOBAL_FILES: [&str; 3] = ["config.json", "opencode.json", "opencode.jsonc"];
const OWN_FILES: [&str; 2] = ["codewright.json", "codewright.jsonc"];
pub(crate) const PROJECT_FILES: [&str; 4] =
    ["opencode.json", "opencode.jsonc", "codewright.json", "codewright.jsonc"];
pub(crate) const DOT_FILES: [&str; 3] = ["config.json", "opencode.json", "opencode.jsonc"];
/// Keys that have no effect yet, and why.
const UNUSED: [(&str, &str); 10] = [
    ("mcp", "tool servers are not connected"),
    ("plugin", "plugins are not run"),
    ("formatter", "files are not formatted"),
    ("lsp", "language servers are not started"),
    ("references", "other places are not referred to"),
    ("reference", "other places are not referred to"),
    ("watcher", "files are not watched"),
    ("attachment", "pictures are sent as they are"),
    ("autoshare", "sessions are not shared"),
    ("tui", "`tui.json` says how the terminal client scrolls and draws"),
];
/// Keys of `experimental` that have no effect yet, and why.
const UNUSED_EXPERIMENTS: [(&str, &str); 3] = [
    ("mcp_timeout", "tool servers are not connected"),
    ("policies", "policies are not known"),
    ("disable_paste_summary", "long pasted text is always shown by its size"),
];

/// What decides which configuration holds.
#[derive(Debug, Clone, Copy)]
pub struct LoadInput<'a> {
    /// Where the user works; absolute.
    pub directory: &'a Path,
    /// The root of the repository around it.
    pub worktree: &'a Path,
    /// The variables.
    pub env: &'a Env,
    /// The user's directories.
    pub dirs: &'a Dirs,
}

/// A document that an organisation serves: it describes providers and models, and nothing that runs.
#[derive(Clone)]
pub struct Remote {
    /// Where it was got.
    pub url: String,
    /// The document.
    pub text: String,
    /// The variables it may use: its own token, and none of the user's.
    pub env: Env,
}

/// What a served document may say.
const REMOTE_KEYS: [&str; 8] = [
    "$schema",
    "provider",
    "model",
    "small_model",
    "enabled_providers",
    "disabled_providers",
    "default_agent",
    "share",
];

/// The configuration of a directory and where it came from.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// What holds.
    pub config: Config,
    /// What was read, the strongest last.
    pub sources: Vec<Source>,
    /// Every file that would have been read, the strongest last.
    pub looked_for: Vec<PathBuf>,
    /// What looks like a mistake and does no harm.
    pub warnings: Vec<String>,
    /// Where each value came from.
    pub origins: Origins,
    /// The folders that hold configuration, the strongest last: what else lies there counts too.
    pub folders: Vec<PathBuf>,
    /// The same documents apart, if the repository has any.
    pub parts: Option<Box<Parts>>,
}

/// The configuration of the user and that of the repository, before they are merged.
#[derive(Debug, Clone)]
pub struct Parts {
    /// The user's own.
    pub user: Config,
    /// The part of the repository's that takes effect.
    pub repository: Config,
    /// How much of the repository's takes effect.
    pub trust: Trust,
}

/// Where a part of the configuration came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A file.
    File(PathBuf),
    /// The text of a variable.
    Variable(String),
    /// What an organisation serves at this address.
    Remote(String),
}

/// Reads, checks and merges the configuration that holds in a trusted directory.
pub fn load(input: LoadInput<'_>) -> Result<Loaded, Error> {
    load_over(input, &[])
}

/// Reads, checks and merges as [`load`] does, over what organisations serve.
pub fn load_over(input: LoadInput<'_>, remote: &[Remote]) -> Result<Loaded, Error> {
    open(input, remote, |_| Trust::Full).map(|(loaded, _)| loaded)
}

/// Reads, checks and merges the configuration that holds in a directory, with as much of the
/// repository's as `decide` says. It is called at most once, with the repository's control files.
///
/// A repository whose control files exceed a limit stays inert, whatever the decision.
pub fn open(
    input: LoadInput<'_>,
    remote: &[Remote],
    decide: impl FnOnce(&ControlFiles) -> Trust,
) -> Result<(Loaded, ControlFiles), Error> {
    let LoadInput { directory, worktree, env, dirs } = input;
    if env.is_on(env::DISABLE_PROJECT_CONFIG) {
        let control = ControlFiles::default();
        return Ok((Layers::new(input, &control, Trust::Inert).all(remote)?, control));
    }
    let mut control = ControlFiles::read(Ground { directory, worktree, dirs });
    if control.is_empty() {
        return Ok((Layers::new(input, &control, Trust::Inert).all(remote)?, control));
    }
    let nothing = ControlFiles::default();
    let user = Layers::new(input, &nothing, Trust::Inert).all(remote)?.config;
    let rules = [default_rules(dirs), user.permission.clone()].concat();
    control.collect_requests(&|rule| is_looser(rule, &rules));
    let trust = if control.limit().is_some() { Trust::Inert } else { decide(&control) };
    let mut layers = Layers::new(input, &control, trust);
    layers.warnings.extend(control.warnings().iter().cloned());
    let mut loaded = layers.all(remote)?;
    if let Some(parts) = &mut loaded.parts {
        parts.user = user;
    }
    Ok((loaded, control))
}

/// Whether a rule may allow something that the user's rules do not.
fn is_looser(rule: &Rule, user: &[Rule]) -> bool {
    let is_about =
        |other: &Rule| other.permission.contains(['*', '?']) || other.permission == rule.permission;
    user.iter().any(|other| other.action != Action::Allow && is_about(other))
}

/// What the files of the user say that hold in every directory, as they say it.
pub fn global(input: LoadInput<'_>) -> Result<Value, Error> {
    let control = ControlFiles::default();
    let mut layers = Layers::new(input, &control, Trust::Inert);
    layers.files(&input.dirs.config, &GLOBAL_FILES)?;
    layers.files(&input.dirs.own_config, &OWN_FILES)?;
    let mut raw = layers.merged;
    raw.entry("$schema").or_insert_with(|| json!(SCHEMA));
    Ok(Value::Object(arranged(raw, CONFIG_KEYS)))
}

/// A change of the configuration that a client sends: checked, and without keys that mean nothing.
pub fn checked(mut change: Map) -> Result<Map, Error> {
    let known = |key: &str| {
        let mut keys = CONFIG_KEYS.iter().chain(schema::OTHER_KEYS);
        keys.any(|(known, _)| *known == key)
    };
    change.retain(|key, _| known(key));
    let node = Node::from(&Value::Object(change.clone()));
    schema::check(&node, &schema::CONFIG).map_err(|fault| {
        let schema::Fault { key, expected, found, .. } = fault;
        Error::Permission { key, expected, found }
    })?;
    Ok(change)
}

/// The directories whose files count, from the outermost down to `directory`. The search goes up to
/// `top`, and ends below the home directory and at a mount point.
pub(crate) fn levels<'a>(top: &Path, directory: &'a Path, home: &Path) -> Vec<&'a Path> {
    let mut levels = vec![directory];
    let mut below = directory;
    while let Some(above) = below.parent() {
        let is_inside = above.starts_with(top) && above != home && below != home;
        if !is_inside || !control::is_same_mount(below, above) {
            break;
        }
        levels.push(above);
        below = above;
    }
    levels.reverse();
    levels
}

/// The documents read so far, merged.
struct Layers<'a> {
    input: LoadInput<'a>,
    merged: Map,
    repository: Map,
    sources: Vec<Source>,
    looked_for: Vec<PathBuf>,
    warnings: Vec<String>,
    origins: Origins,
    folders: Vec<PathBuf>,
    control: &'a ControlFiles,
    trust: Trust,
}

/// Whose document it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Owner {
    User,
    Repository,
}

impl<'a> Layers<'a> {
    fn new(input: LoadInput<'a>, control: &'a ControlFiles, trust: Trust) -> Self {
        Self {
            input,
            merged: Map::new(),
            repository: Map::new(),
            sources: Vec::new(),
            looked_for: Vec::new(),
            warnings: Vec::new(),
            origins: Origins::default(),
            folders: Vec::new(),
            control,
            trust,
        }
    }

    /// Reads everything, in order.
    fn all(mut self, remote: &[Remote]) -> Result<Loaded, Error> {
        let LoadInput { env, dirs, .. } = self.input;
        remote.iter().for_each(|remote| self.remote(remote));
        self.files(&dirs.config, &GLOBAL_FILES)?;
        self.files(&dirs.own_config, &OWN_FILES)?;
        self.named_file()?;
        let levels = match env.is_on(env::DISABLE_PROJECT_CONFIG) {
            true => Vec::new(),
            false => levels(self.input.worktree, self.input.directory, &dirs.home),
        };
        levels.iter().try_for_each(|level| self.repository_files(level, &PROJECT_FILES))?;
        self.folder(&dirs.config, &[])?;
        self.folder(&dirs.own_config, &[])?;
        for level in levels.into_iter().rev().filter(|level| *level != dirs.home) {
            self.repository_folder(&level.join(".opencode"), &DOT_FILES)?;
            self.repository_folder(&level.join(".codewright"), &OWN_FILES)?;
        }
        self.folder(&dirs.home.join(".opencode"), &DOT_FILES)?;
        self.folder(&dirs.home.join(".codewright"), &OWN_FILES)?;
        if let Some(dir) = env.filled(env::CONFIG_DIR) {
            self.folder(&self.resolved(dir), &PROJECT_FILES)?;
        }
        if let Some((name, text)) = env.lookup(env::CONFIG_CONTENT) {
            self.variable(name, text)?;
        }
        self.finish()
    }

    /// The documents of a folder of configuration, and the Markdown files in it.
    fn folder(&mut self, dir: &Path, names: &[&str]) -> Result<(), Error> {
        // The home may be a level of the worktree too.
        if self.folders.iter().any(|known| known == dir) {
            return Ok(());
        }
        self.files(dir, names)?;
        let found = markdown::read(dir);
        self.warnings.extend(found.warnings);
        for (key, name, entry, path) in found.entries {
            let document = Map::from_iter([(key.to_owned(), json!({ name: entry }))]);
            self.lay(normal(document), &path.display().to_string(), Owner::User);
        }
        self.folders.push(dir.to_owned());
        Ok(())
    }

    /// The documents of a repository's folder, and the Markdown files in it if the user trusts them.
    fn repository_folder(&mut self, dir: &Path, names: &[&str]) -> Result<(), Error> {
        self.repository_files(dir, names)?;
        if self.trust == Trust::Full {
            for (name, key) in markdown::FOLDERS {
                let found = markdown::entries_of(self.control, &dir.join(name), key);
                self.warnings.extend(found.warnings);
                for (key, name, entry, path) in found.entries {
                    let document = Map::from_iter([(key.to_owned(), json!({ name: entry }))]);
                    self.lay(normal(document), &path.display().to_string(), Owner::Repository);
                }
            }
        }
        self.folders.push(dir.to_owned());
        Ok(())
    }

    fn repository_files(&mut self, dir: &Path, names: &[&str]) -> Result<(), Error> {
        names.iter().try_for_each(|name| self.repository_file(dir.join(name)))
    }

    /// A document of the repository. A broken one is an error only where it would take effect.
    fn repository_file(&mut self, path: PathBuf) -> Result<(), Error> {
        self.looked_for.push(path.clone());
        let control = self.control;
        let read = match control.text(&path) {
            None => return Ok(()),
            Some(Ok(text)) => self.repository_document(&path, text),
            Some(Err(problem)) => Err(Error::File { path: path.clone(), problem }),
        };
        match read {
            Err(error) if self.trust == Trust::Inert || is_foreign(&error) => {
                self.warnings.push(format!("{error}; the file is left out"));
                Ok(())
            }
            Err(error) => Err(error),
            Ok(()) => {
                self.sources.push(Source::File(path));
                Ok(())
            }
        }
    }

    fn repository_document(&mut self, path: &Path, text: &str) -> Result<(), Error> {
        let origin = Origin::new(path.display().to_string(), text);
        let mut document = match self.trust {
            Trust::Full => {
                let mut inserter = Inserter::of_repository(self.input.env, self.control, path);
                let node = origin.read(&schema::CONFIG, Some(&mut inserter))?;
                let refused = inserter.refused.iter().map(|reference| {
                    format!(
                        "`{}`: `{}` is left empty: a repository cannot use it",
                        path.display(),
                        request::plain(reference)
                    )
                });
                self.warnings.extend(refused);
                self.warn_of_strangers(&origin, &node);
                node.into_map()
            }
            // Nothing is inserted. Keys that wait may hold anything.
            Trust::Inert => {
                let whole = normal(origin.read(&schema::Shape::Any, None)?.into_map());
                merge::lay(&mut self.repository, restrictions(&whole));
                inert(whole)?
            }
        };
        let removed = remove_user_only(&mut document);
        self.warnings.extend(removed.into_iter().map(|key| {
            format!(
                "`{}`: `{key}` has no effect: only the user's own configuration can set it",
                path.display()
            )
        }));
        let mut document = normal(document);
        let outside = self.keep_inside(&mut document);
        self.warnings.extend(outside.into_iter().map(|entry| {
            format!(
                "`{}`: `{}` lies outside the worktree and is left out",
                path.display(),
                request::plain(&entry)
            )
        }));
        self.lay(document, &origin.name(), Owner::Repository);
        Ok(())
    }

    /// Removes the paths of a repository's document that lead out of its worktree.
    fn keep_inside(&self, document: &mut Map) -> Vec<String> {
        let is_full = self.trust == Trust::Full;
        let mut outside = Vec::new();
        let mut filter = |entries: Option<&mut Value>, urls: bool| {
            let Some(Value::Array(entries)) = entries else { return };
            entries.retain(|entry| {
                let entry = entry.as_str().unwrap_or_default();
                let is_kept = if request::is_url(entry) { urls } else { is_inside(entry) };
                if !is_kept {
                    outside.push(entry.to_owned());
                }
                is_kept
            });
        };
        filter(document.get_mut("instructions"), is_full);
        filter(document.get_mut("skills").and_then(|skills| skills.get_mut("paths")), false);
        outside
    }

    fn lay(&mut self, document: Map, origin: &str, owner: Owner) {
        self.origins.lay(&self.merged, &document, origin);
        if owner == Owner::Repository {
            merge::lay(&mut self.repository, document.clone());
        }
        merge::lay(&mut self.merged, document);
    }

    fn files(&mut self, dir: &Path, names: &[&str]) -> Result<(), Error> {
        names.iter().try_for_each(|name| self.file(dir.join(name)).map(|_| ()))
    }

    /// Whether there was such a file.
    fn file(&mut self, path: PathBuf) -> Result<bool, Error> {
        self.looked_for.push(path.clone());
        let text = match file::read(&path) {
            Ok(text) => text,
            Err(FileProblem::Missing) => return Ok(false),
            Err(problem) => return Err(Error::File { path, problem }),
        };
        let base = path.parent().unwrap_or(self.input.directory).to_owned();
        self.document(&Origin::new(path.display().to_string(), &text), &base)?;
        self.sources.push(Source::File(path));
        Ok(true)
    }

    fn named_file(&mut self) -> Result<(), Error> {
        let Some((name, path)) = self.input.env.lookup(env::CONFIG).filter(|(_, path)| !path.is_empty())
        else {
            return Ok(());
        };
        if !self.file(self.resolved(path))? {
            self.warnings.push(format!("`{name}` names `{path}`, which does not exist"));
        }
        Ok(())
    }

    /// A document that cannot be used is left out: a server must not keep anybody from working.
    fn remote(&mut self, remote: &Remote) {
        let Remote { url, text, env } = remote;
        if text.contains("{file:") {
            self.warnings.push(format!("`{url}` asks for a file of this machine, and is left out"));
            return;
        }
        let origin = Origin::new(url, text);
        let mut inserter = Inserter::new(env, &self.input.dirs.home, self.input.directory);
        let mut document = match origin.read(&schema::CONFIG, Some(&mut inserter)) {
            Ok(node) => node.into_map(),
            Err(error) => {
                self.warnings.push(format!("what `{url}` serves is left out: {error}"));
                return;
            }
        };
        let mut others: Vec<_> = document
            .keys()
            .filter(|key| !REMOTE_KEYS.contains(&key.as_str()))
            .take(MAX_STRANGERS)
            .cloned()
            .collect();
        if !others.is_empty() {
            others.sort_unstable();
            let others = others.join("`, `");
            self.warnings.push(format!("`{url}` serves `{others}`, which only your own files may set"));
        }
        document.retain(|key, _| REMOTE_KEYS.contains(&key.as_str()));
        self.lay(normal(document), url, Owner::User);
        self.sources.push(Source::Remote(url.clone()));
    }

    fn variable(&mut self, name: &str, text: &str) -> Result<(), Error> {
        if text.trim().is_empty() {
            return Ok(());
        }
        self.document(&Origin::new(name, text), self.input.directory)?;
        self.sources.push(Source::Variable(name.to_owned()));
        Ok(())
    }

    fn document(&mut self, origin: &Origin<'_>, base: &Path) -> Result<(), Error> {
        let mut inserter = Inserter::new(self.input.env, &self.input.dirs.home, base);
        let node = origin.read(&schema::CONFIG, Some(&mut inserter))?;
        self.warn_of_strangers(origin, &node);
        self.lay(normal(node.into_map()), &origin.name(), Owner::User);
        Ok(())
    }

    fn warn_of_strangers(&mut self, origin: &Origin<'_>, node: &Node) {
        let known =
            || CONFIG_KEYS.iter().map(|(key, _)| *key).chain(schema::OTHER_KEYS.iter().map(|(key, _)| *key));
        let strangers = node.entries().filter(|(key, _)| known().all(|known| known != *key));
        for (key, offset) in strangers.take(MAX_STRANGERS) {
            let alike = nearest(key, known(), 1);
            if let Some(meant) = alike.first().filter(|meant| is_slip(key, meant)) {
                let place = origin.place(offset);
                self.warnings.push(format!("{place}: `{key}` is not a known key; did you mean `{meant}`?"));
            }
        }
    }

    fn resolved(&self, path: &str) -> PathBuf {
        match path.strip_prefix("~/") {
            Some(below) => self.input.dirs.home.join(below),
            None => self.input.directory.join(path),
        }
    }

    fn finish(mut self) -> Result<Loaded, Error> {
        let LoadInput { env, dirs, .. } = self.input;
        let mut raw = self.merged;
        fold_modes(&mut raw);
        let mut rules = rules_of(&raw);
        if let Some((name, text)) = env.lookup(env::PERMISSION).filter(|(_, text)| !text.trim().is_empty()) {
            let written = Origin::new(name, text).read(&schema::PERMISSION, None)?;
            let written = permission::as_map(written.into_value());
            let document = Map::from_iter([("permission".to_owned(), Value::Object(written.clone()))]);
            self.origins.lay(&raw, &document, name);
            merge::merge_maps(&mut rules, written);
            self.sources.push(Source::Variable(name.to_owned()));
        }
        if !rules.is_empty() {
            raw.insert("permission".to_owned(), Value::Object(rules));
        }
        if raw.get("autoshare") == Some(&Value::Bool(true)) {
            raw.entry("share").or_insert_with(|| json!("auto"));
        }
        if raw.get("username").and_then(Value::as_str).is_none_or(str::is_empty) {
            raw.insert("username".to_owned(), json!(username(env)));
        }
        warn_of_unused(&raw, &self.origins, &mut self.warnings);
        raw.entry("$schema").or_insert_with(|| json!(SCHEMA));
        raw.entry("plugin").or_insert_with(|| json!([]));
        for key in ["command", "mode", "agent"] {
            raw.entry(key).or_insert_with(|| json!({}));
        }
        let parts = (!self.repository.is_empty()).then(|| {
            let mut repository = self.repository;
            fold_modes(&mut repository);
            let rules = rules_of(&repository);
            if !rules.is_empty() {
                repository.insert("permission".to_owned(), Value::Object(rules));
            }
            // The caller puts the user's own configuration in: it has been read already.
            let repository = Config::read(repository, &dirs.home);
            Box::new(Parts { user: Config::default(), repository, trust: self.trust })
        });
        Ok(Loaded {
            config: Config::read(arranged(raw, CONFIG_KEYS), &dirs.home),
            sources: self.sources,
            looked_for: self.looked_for,
            warnings: self.warnings,
            origins: self.origins,
            folders: self.folders,
            parts,
        })
    }
}

/// The rules of a document, those of the older `tools` map first.
fn rules_of(raw: &Map) -> Map {
    let mut rules = permission::from_tools(&taken(raw, "tools"));
    merge::merge_maps(&mut rules, taken(raw, "permission"));
    rules
}

/// Whether a file is left out for its owner or its place, which no decision changes.
fn is_foreign(error: &Error) -> bool {
    matches!(error, Error::File { problem: FileProblem::Foreign | FileProblem::Outside, .. })
}

/// Whether an entry of a list of paths stays inside the directory that it starts from.
fn is_inside(entry: &str) -> bool {
    let is_up = |part: &str| part == "..";
    !entry.starts_with(['/', '~', '$']) && !entry.contains(['{', '\\']) && !entry.split('/').any(is_up)
}

/// The part of a repository's document that cannot hurt, without trust.
fn inert(document: Map) -> Result<Map, Error> {
    let mut kept = Map::new();
    for (key, value) in document {
        if class::class_of(&key) != Class::Inert || has_reference(&value) {
            continue;
        }
        let value = match key.as_str() {
            "tools" => only(&value, |on| *on == false),
            "share" if value == "auto" => continue,
            _ => value,
        };
        kept.insert(key, value);
    }
    let node = Node::from(&Value::Object(kept.clone()));
    schema::check(&node, &schema::CONFIG).map_err(|fault| {
        let schema::Fault { key, expected, found, .. } = fault;
        Error::Permission { key, expected, found }
    })?;
    Ok(kept)
}

/// The rules that an untrusted document has for single agents. They restrict agents that the user has, and
/// define none.
fn restrictions(document: &Map) -> Map {
    let mut agents = taken(document, "agent");
    merge::merge_maps(&mut agents, taken(document, "mode"));
    let rules = |(name, agent): (&String, &Value)| {
        let permission =
            agent.get("permission").filter(|rules| !has_reference(rules) && is_permission(rules))?;
        Some((name.clone(), json!({ "permission": permission })))
    };
    let agents: Map = agents.iter().filter_map(rules).collect();
    if agents.is_empty() { agents } else { Map::from_iter([("agent".to_owned(), Value::Object(agents))]) }
}

fn is_permission(value: &Value) -> bool {
    schema::check(&Node::from(value), &schema::PERMISSION).is_ok()
}

/// The entries of an object whose values pass.
fn only(value: &Value, passes: impl Fn(&Value) -> bool) -> Value {
    let entries = value.as_object().into_iter().flatten().filter(|(_, value)| passes(value));
    Value::Object(entries.map(|(key, value)| (key.clone(), value.clone())).collect())
}

/// Whether a value inserts a variable or a file.
fn has_reference(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains("{env:") || text.contains("{file:"),
        Value::Array(entries) => entries.iter().any(has_reference),
        Value::Object(entries) => entries.values().any(has_reference),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Removes the keys that no repository may set; their names.
fn remove_user_only(document: &mut Map) -> Vec<String> {
    let mut removed = Vec::new();
    let keys: Vec<_> =
        document.keys().filter(|key| class::class_of(key) == Class::UserOnly).cloned().collect();
    for key in keys {
        document.shift_remove(&key);
        removed.push(key);
    }
    for part in class::user_only_parts() {
        let names: Vec<&str> = part.split('.').collect();
        if remove_part(document, &names) {
            removed.push(part.to_owned());
        }
    }
    removed
}

fn remove_part(map: &mut Map, names: &[&str]) -> bool {
    match names {
        [] => false,
        [last] => map.shift_remove(*last).is_some(),
        ["*", rest @ ..] => {
            let inner = map.iter_mut().filter_map(|(_, value)| value.as_object_mut());
            // Every entry is visited.
            inner.fold(false, |removed, map| remove_part(map, rest) | removed)
        }
        [name, rest @ ..] => {
            map.get_mut(*name).and_then(Value::as_object_mut).is_some_and(|map| remove_part(map, rest))
        }
    }
}

fn says_something(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => false,
        Value::Array(items) => !items.is_empty(),
        Value::Object(entries) => entries.values().any(says_something),
        Value::Bool(true) | Value::Number(_) | Value::String(_) => true,
    }
}

/// Says which keys have no effect, and where they stand.
fn warn_of_unused(raw: &Map, origins: &Origins, warnings: &mut Vec<String>) {
    let experiments = raw.get("experimental").and_then(Value::as_object);
    if raw.get("share").and_then(Value::as_str) == Some("auto") {
        let place = origins.of("share").map_or_else(String::new, |origin| format!("`{origin}`: "));
        warnings.push(format!("{place}`share` is `auto`, but sessions are not shared in this version"));
    }
    let plain = UNUSED.iter().map(|(key, why)| (raw.get(*key), (*key).to_owned(), why));
    let tried = UNUSED_EXPERIMENTS
        .iter()
        .map(|(key, why)| (experiments.and_then(|map| map.get(*key)), format!("experimental.{key}"), why));
    for (value, key, why) in plain.chain(tried) {
        if value.is_some_and(says_something) {
            let place = origins.of(&key).map_or_else(String::new, |origin| format!("`{origin}`: "));
            warnings.push(format!("{place}`{key}` has no effect in this version: {why}"));
        }
    }
}

/// A document in the shape in which documents can be merged.
pub(crate) fn normal(mut document: Map) -> Map {
    fold_newer(&mut document);
    if let Some(written) = document.get_mut("permission") {
        *written = Value::Object(permission::as_map(written.take()));
    }
    for key in ["agent", "mode"] {
        let agents = document.get_mut(key).and_then(Value::as_object_mut).into_iter().flatten();
        for (_, agent) in agents {
            if let Value::Object(written) = agent.take() {
                *agent = Value::Object(normal_agent(written));
            }
        }
    }
    document
}

/// Takes in the other spellings of two keys: `agents`, and `permissions` with its lists of patterns.
fn fold_newer(document: &mut Map) {
    if let Some(Value::Object(more)) = document.shift_remove("agents") {
        let mut agents = taken(document, "agent");
        merge::merge_maps(&mut agents, more);
        document.insert("agent".to_owned(), Value::Object(agents));
    }
    if let Some(Value::Object(listed)) = document.shift_remove("permissions") {
        let mut rules = permission::as_map(document.get("permission").cloned().unwrap_or_default());
        for (tool, lists) in listed {
            // The last rule that matches decides, and a denial must not be overruled.
            let patterns = ["allow", "ask", "deny"].into_iter().flat_map(|action| {
                let written = lists[action].as_array().cloned().unwrap_or_default();
                written
                    .into_iter()
                    .filter_map(move |pattern| Some((pattern.as_str()?.to_owned(), json!(action))))
            });
            let patterns: Map = patterns.collect();
            merge::merge_maps(&mut rules, Map::from_iter([(tool, Value::Object(patterns))]));
        }
        document.insert("permission".to_owned(), Value::Object(rules));
    }
}

/// An agent with its tools as permissions and its unknown keys as options, as they take effect.
fn normal_agent(mut agent: Map) -> Map {
    let mut options = taken(&agent, "options");
    let unknown = |key: &str| schema::AGENT_KEYS.iter().all(|(known, _)| *known != key);
    options.extend(
        agent.iter().filter(|(key, _)| unknown(key)).map(|(key, value)| (key.clone(), value.clone())),
    );
    let mut rules = permission::from_tools(&taken(&agent, "tools"));
    rules.extend(permission::as_map(agent.get("permission").cloned().unwrap_or_default()));
    if !agent.contains_key("steps")
        && let Some(steps) = agent.get("maxSteps").cloned()
    {
        agent.insert("steps".to_owned(), steps);
    }
    agent.insert("options".to_owned(), Value::Object(options));
    agent.insert("permission".to_owned(), Value::Object(rules));
    arranged(agent, schema::AGENT_KEYS)
}

/// Turns the older `mode` entries into agents that users call.
fn fold_modes(raw: &mut Map) {
    let modes = taken(raw, "mode");
    if modes.is_empty() {
        return;
    }
    let mut agents = taken(raw, "agent");
    for (name, mut mode) in modes {
        if let Some(mode) = mode.as_object_mut() {
            mode.insert("mode".to_owned(), json!("primary"));
        }
        merge::merge_maps(&mut agents, Map::from_iter([(name, mode)]));
    }
    raw.insert("agent".to_owned(), Value::Object(agents));
}

/// The object under a key; an empty one when there is none.
fn taken(map: &Map, key: &str) -> Map {
    map.get(key).and_then(Value::as_object).cloned().unwrap_or_default()
}

/// The same entries, known keys first and in the order of the schema.
fn arranged(mut map: Map, keys: &[(&str, schema::Shape)]) -> Map {
    let known = keys.iter().filter_map(|(key, _)| map.shift_remove_entry(*key)).collect::<Vec<_>>();
    known.into_iter().chain(map).collect()
}

fn is_slip(key: &str, meant: &str) -> bool {
    damerau_levenshtein(key, meant) * CHARS_PER_SLIP <= key.len()
}

fn username(env: &Env) -> &str {
    env.filled(env::USER).or_else(|| env.filled(env::LOGNAME)).unwrap_or(NAMELESS)
}
