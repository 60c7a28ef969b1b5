//! Finds the configuration of a directory and merges it.
//!
//! From the weakest to the strongest: what organisations serve to those who signed in, OpenCode's
//! global files, ours, the file named by `OPENCODE_CONFIG`, project files from the worktree's root
//! down to the directory, the Markdown files of the global folders, `.opencode` and `.codewright`
//! with theirs from the directory up to the root, the same in the home, the directory named by
//! `OPENCODE_CONFIG_DIR`, the text in `OPENCODE_CONFIG_CONTENT`, the rules in
//! `OPENCODE_PERMISSION`. That the outer `.opencode` wins over the inner one is the original's way,
//! and existing projects rely on it.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use strsim::damerau_levenshtein;

use crate::{
    Config, Dirs, Env, Error, FileProblem, Map,
    document::{
        Inserter, Node, Origin,
        schema::{self, CONFIG_KEYS},
    },
    env, file, markdown, merge, nearest,
    origins::Origins,
    permission,
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
const PROJECT_FILES: [&str; 4] = ["opencode.json", "opencode.jsonc", "codewright.json", "codewright.jsonc"];
const DOT_FILES: [&str; 3] = ["config.json", "opencode.json", "opencode.jsonc"];
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

/// Reads, checks and merges the configuration that holds in a directory.
pub fn load(input: LoadInput<'_>) -> Result<Loaded, Error> {
    load_over(input, &[])
}

/// Reads, checks and merges as [`load`] does, over what organisations serve.
pub fn load_over(input: LoadInput<'_>, remote: &[Remote]) -> Result<Loaded, Error> {
    let LoadInput { env, dirs, .. } = input;
    let mut layers = Layers::new(input);
    remote.iter().for_each(|remote| layers.remote(remote));
    layers.files(&dirs.config, &GLOBAL_FILES)?;
    layers.files(&dirs.own_config, &OWN_FILES)?;
    layers.named_file()?;
    let levels = match env.is_on(env::DISABLE_PROJECT_CONFIG) {
        true => Vec::new(),
        false => levels(input.worktree, input.directory),
    };
    levels.iter().try_for_each(|level| layers.files(level, &PROJECT_FILES))?;
    layers.folder(&dirs.config, &[])?;
    layers.folder(&dirs.own_config, &[])?;
    for level in levels.into_iter().rev().chain([dirs.home.as_path()]) {
        layers.folder(&level.join(".opencode"), &DOT_FILES)?;
        layers.folder(&level.join(".codewright"), &OWN_FILES)?;
    }
    if let Some(dir) = env.filled(env::CONFIG_DIR) {
        layers.folder(&layers.resolved(dir), &PROJECT_FILES)?;
    }
    if let Some((name, text)) = env.lookup(env::CONFIG_CONTENT) {
        layers.variable(name, text)?;
    }
    layers.finish()
}

/// What the files of the user say that hold in every directory, as they say it.
pub fn global(input: LoadInput<'_>) -> Result<Value, Error> {
    let mut layers = Layers::new(input);
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

/// The directories from `top` down to `directory`; `directory` alone when it lies elsewhere.
fn levels<'a>(top: &Path, directory: &'a Path) -> Vec<&'a Path> {
    if !directory.starts_with(top) {
        return vec![directory];
    }
    let mut levels: Vec<_> = directory.ancestors().take_while(|level| level.starts_with(top)).collect();
    levels.reverse();
    levels
}

/// The documents read so far, merged.
struct Layers<'a> {
    input: LoadInput<'a>,
    merged: Map,
    sources: Vec<Source>,
    looked_for: Vec<PathBuf>,
    warnings: Vec<String>,
    origins: Origins,
    folders: Vec<PathBuf>,
}

impl<'a> Layers<'a> {
    fn new(input: LoadInput<'a>) -> Self {
        Self {
            input,
            merged: Map::new(),
            sources: Vec::new(),
            looked_for: Vec::new(),
            warnings: Vec::new(),
            origins: Origins::default(),
            folders: Vec::new(),
        }
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
            self.lay(normal(document), &path.display().to_string());
        }
        self.folders.push(dir.to_owned());
        Ok(())
    }

    fn lay(&mut self, document: Map, origin: &str) {
        self.origins.lay(&self.merged, &document, origin);
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
        self.lay(normal(document), url);
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
        self.lay(normal(node.into_map()), &origin.name());
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
        let mut rules = permission::from_tools(&taken(&raw, "tools"));
        merge::merge_maps(&mut rules, taken(&raw, "permission"));
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
        Ok(Loaded {
            config: Config::read(arranged(raw, CONFIG_KEYS), &dirs.home),
            sources: self.sources,
            looked_for: self.looked_for,
            warnings: self.warnings,
            origins: self.origins,
            folders: self.folders,
        })
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
fn normal(mut document: Map) -> Map {
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
