//! Finds the configuration of a directory and merges it.
//!
//! From the weakest to the strongest: what organisations serve to those who signed in, OpenCode's global files, ours, the file named by
//! `OPENCODE_CONFIG`, project files from the worktree's root down to the directory, those in
//! `.opencode` likewise, the directory named by `OPENCODE_CONFIG_DIR`, the text in
//! `OPENCODE_CONFIG_CONTENT`, the rules in `OPENCODE_PERMISSION`.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use strsim::damerau_levenshtein;

use crate::{
    Config, Dirs, Env, Error, FileProblem, Map,
    document::{
        Inserter, Node, Origin,
        schema::{self, CONFIG_KEYS},
    },
    env, file, merge, nearest, permission,
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
const DOT_FILES: [&str; 2] = ["opencode.json", "opencode.jsonc"];

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
    if !env.is_on(env::DISABLE_PROJECT_CONFIG) {
        let levels = levels(input.worktree, input.directory);
        levels.iter().try_for_each(|level| layers.files(level, &PROJECT_FILES))?;
        levels.iter().try_for_each(|level| layers.files(&level.join(".opencode"), &DOT_FILES))?;
    }
    if let Some(dir) = env.filled(env::CONFIG_DIR) {
        layers.files(&layers.resolved(dir), &PROJECT_FILES)?;
    }
    if let Some((name, text)) = env.lookup(env::CONFIG_CONTENT) {
        layers.variable(name, text)?;
    }
    layers.finish()
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
}

impl<'a> Layers<'a> {
    fn new(input: LoadInput<'a>) -> Self {
        Self { input, merged: Map::new(), sources: Vec::new(), looked_for: Vec::new(), warnings: Vec::new() }
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
        merge::lay(&mut self.merged, normal(document));
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
        merge::lay(&mut self.merged, normal(node.into_map()));
        Ok(())
    }

    fn warn_of_strangers(&mut self, origin: &Origin<'_>, node: &Node) {
        let known = || CONFIG_KEYS.iter().map(|(key, _)| *key).chain(schema::OTHER_KEYS.iter().copied());
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
            merge::merge_maps(&mut rules, permission::as_map(written.into_value()));
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
        })
    }
}

/// A document in the shape in which documents can be merged.
fn normal(mut document: Map) -> Map {
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
