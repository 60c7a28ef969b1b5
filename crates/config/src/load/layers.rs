//! Reads the sources of configuration in order and merges them.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use serde_json::{Value, json};
use strsim::damerau_levenshtein;

mod slips;

use super::normalize::{fold_modes, normalize, remove_converted, rules_of, sorted};
use super::untrusted::{inert, is_inside, keep_of_plugin, remove_user_only, restrictions};
use super::{
    DOT_FILES, GLOBAL_FILES, LoadInput, LoadedConfig, OWN_FILES, Overlay, PROJECT_FILES, Parts, Remote,
    SCHEMA, Source, levels,
};
use crate::{
    Config, ControlFiles, Env, Error, FileProblem, Map, Trust,
    document::{
        Inserter, Node, Origin,
        schema::{self, CONFIG_KEYS},
    },
    env, file,
    linked::{self, Places},
    markdown, merge,
    origins::Origins,
    permission, request,
    secrets::Secrets,
};

/// The origin of changes by plugins.
const PLUGINS: &str = "plugins";
/// The user's name if the system does not provide one.
const UNKNOWN_USER: &str = "unknown";

/// The number of unknown keys of a document that are checked for typing mistakes.
const MAX_UNKNOWN_KEYS: usize = 20;

/// A key is a likely typing mistake if at most one of this many characters is wrong.
const CHARS_PER_MISTAKE: usize = 3;

/// Keys without an effect in this version, with the reasons.
const UNUSED: [(&str, &str); 5] = [
    ("autoupdate", "the program never updates itself"),
    ("references", "references are not supported"),
    ("reference", "references are not supported"),
    ("autoshare", "sessions are not shared"),
    ("tui", "use `tui.json` for the terminal client"),
];
/// Keys of `experimental` without an effect in this version, with the reasons.
const UNUSED_EXPERIMENTS: [(&str, &str); 2] = [
    ("policies", "policies are not supported"),
    ("disable_paste_summary", "long pasted text is always summarized by its size"),
];

/// The keys that a document from a server can set.
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

static NO_SECRETS: LazyLock<Secrets> = LazyLock::new(Secrets::default);

/// The documents that were read so far, merged.
pub(super) struct Layers<'a> {
    input: LoadInput<'a>,
    pub(super) merged: Map,
    repository: Map,
    sources: Vec<Source>,
    looked_for: Vec<PathBuf>,
    /// What the documents insert, and the variables that the user's documents use as secrets.
    pub(super) secrets: Secrets,
    /// The secrets of the whole configuration of the user, which a repository's document cannot insert.
    users: Option<&'a Secrets>,
    /// The user's files with settings and secrets, apart from those in configuration directories.
    private: Vec<PathBuf>,
    pub(super) warnings: Vec<String>,
    origins: Origins,
    folders: Vec<PathBuf>,
    control: &'a ControlFiles,
    trust: Trust,
    overlay: Option<&'a Overlay>,
    /// Names of tools that are reported unless a server or a file with code has them.
    suspects: Vec<slips::Suspect>,
    /// The agents that are left out, because their restrictions are not understood.
    left_out: Vec<String>,
}

/// The owner of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Owner {
    User,
    Repository,
}

impl<'a> Layers<'a> {
    pub(super) fn new(input: LoadInput<'a>, control: &'a ControlFiles, trust: Trust) -> Self {
        Self {
            input,
            merged: Map::new(),
            repository: Map::new(),
            sources: Vec::new(),
            looked_for: Vec::new(),
            secrets: Secrets::default(),
            users: None,
            private: Vec::new(),
            warnings: Vec::new(),
            origins: Origins::default(),
            folders: Vec::new(),
            control,
            trust,
            overlay: None,
            suspects: Vec::new(),
            left_out: Vec::new(),
        }
    }

    /// Adds the changes of plugins.
    pub(super) fn over(self, overlay: &'a Overlay) -> Self {
        Self { overlay: Some(overlay), ..self }
    }

    /// Refuses the secrets of the user to the repository's documents.
    pub(super) fn without(self, users: &'a Secrets) -> Self {
        Self { users: Some(users), ..self }
    }

    /// Reads all sources in order.
    pub(super) fn all(mut self, remote: &[Remote]) -> Result<LoadedConfig, Error> {
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
        self.overlay();
        self.finish()
    }

    /// Reads the documents and Markdown files of a configuration directory.
    fn folder(&mut self, dir: &Path, names: &[&str]) -> Result<(), Error> {
        // The home may be inside the worktree too.
        if self.folders.iter().any(|known| known == dir) {
            return Ok(());
        }
        self.files(dir, names)?;
        self.markdown(markdown::read(dir), Owner::User);
        self.folders.push(dir.to_owned());
        Ok(())
    }

    /// Reads the documents of a repository's configuration directory, and its Markdown files if they are trusted.
    fn repository_folder(&mut self, dir: &Path, names: &[&str]) -> Result<(), Error> {
        self.repository_files(dir, names)?;
        if self.trust == Trust::Full {
            for (name, key) in markdown::FOLDERS {
                self.markdown(markdown::entries_of(self.control, &dir.join(name), key), Owner::Repository);
            }
        }
        self.folders.push(dir.to_owned());
        Ok(())
    }

    /// Adds the entries of Markdown files.
    fn markdown(&mut self, found: markdown::Found, owner: Owner) {
        self.warnings.extend(found.warnings);
        self.left_out.extend(found.left_out);
        for (key, name, entry, path) in found.entries {
            let document = Map::from_iter([(key.to_owned(), json!({ name: entry }))]);
            let path = path.display().to_string();
            self.suspect_tools(&Node::from(&Value::Object(document.clone())), |_| format!("`{path}`"));
            self.add(normalize(document), &path, owner);
        }
    }

    /// Adds the changes of plugins, one key after the other. An invalid one is left out.
    fn overlay(&mut self) {
        let Some(overlay) = self.overlay else { return };
        for (document, owner) in [(&overlay.user, Owner::User), (&overlay.repository, Owner::Repository)] {
            if owner == Owner::Repository && self.trust != Trust::Full {
                continue;
            }
            for (key, value) in document {
                let text = json!({ key: value }).to_string();
                // References are not replaced: the text comes from a program.
                let read = Origin::new(PLUGINS.to_owned(), &text).read(&schema::CONFIG, None);
                let mut document = match read {
                    Ok(node) => node.into_map(),
                    Err(error) => {
                        self.warnings
                            .push(format!("a plugin changed the configuration: {error}; it is ignored"));
                        continue;
                    }
                };
                remove_converted(&mut document);
                let mut document = normalize(document);
                if owner == Owner::Repository {
                    let refused = keep_of_plugin(&mut document, &self.merged);
                    self.warnings.extend(refused.into_iter().map(|key| {
                        format!(
                            "a plugin of the repository changed `{key}`; a part of it or all has no effect, because only \
                             your own plugins can change it"
                        )
                    }));
                    self.keep_inside(&mut document);
                }
                self.add(document, PLUGINS, owner);
            }
        }
    }

    fn repository_files(&mut self, dir: &Path, names: &[&str]) -> Result<(), Error> {
        names.iter().try_for_each(|name| self.repository_file(dir.join(name)))
    }

    /// Reads a document of the repository. An invalid document is an error only if it would take effect.
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
                self.warnings.push(format!("{error}; the file is ignored"));
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
                let users = self.users.unwrap_or(&NO_SECRETS);
                let mut inserter = Inserter::of_repository(self.input.env, self.control, path, users);
                let node = origin.read(&schema::CONFIG, Some(&mut inserter))?;
                let Inserter { rejected, secrets, .. } = inserter;
                let rejected = rejected.iter().map(|(reference, reason)| {
                    let reference = request::plain(reference);
                    format!("`{}`: `{reference}` becomes empty, because {reason}", path.display())
                });
                self.warnings.extend(rejected);
                self.secrets.add_inserted(secrets);
                self.check_keys(&origin, &node)?;
                node.into_map()
            }
            // References are not replaced, and keys that need trust are not checked.
            Trust::Inert => {
                let whole = normalize(origin.read(&schema::Shape::Any, None)?.into_map());
                merge::apply(&mut self.repository, restrictions(&whole));
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
        let mut document = normalize(document);
        let outside = self.keep_inside(&mut document);
        self.warnings.extend(outside.into_iter().map(|(entry, why)| {
            format!("`{}`: `{}` {why} and is ignored", path.display(), request::plain(&entry))
        }));
        self.add(document, &origin.name(), Owner::Repository);
        Ok(())
    }

    /// Removes the paths that lead out of the worktree from a repository's document, and addresses that may not be
    /// fetched. Returns them with the reasons.
    fn keep_inside(&self, document: &mut Map) -> Vec<(String, &'static str)> {
        let is_full = self.trust == Trust::Full;
        let mut outside = Vec::new();
        let mut filter = |entries: Option<&mut Value>, urls: Option<bool>| {
            let Some(Value::Array(entries)) = entries else { return };
            entries.retain(|entry| {
                let entry = entry.as_str().unwrap_or_default();
                let why = match (request::is_url(entry), urls) {
                    (true, Some(is_allowed)) => {
                        (!is_allowed).then_some("is fetched only if you trust the repository")
                    }
                    (true, None) => Some("is an address instead of a path"),
                    (false, _) => (!is_inside(entry)).then_some("is outside the worktree"),
                };
                outside.extend(why.map(|why| (entry.to_owned(), why)));
                why.is_none()
            });
        };
        filter(document.get_mut("instructions"), Some(is_full));
        filter(document.get_mut("skills").and_then(|skills| skills.get_mut("paths")), None);
        outside
    }

    fn add(&mut self, document: Map, origin: &str, owner: Owner) {
        self.origins.record(&self.merged, &document, origin);
        match owner {
            Owner::User => self.secrets.add_provider_variables(&document),
            Owner::Repository => merge::apply(&mut self.repository, document.clone()),
        }
        merge::apply(&mut self.merged, document);
    }

    pub(super) fn files(&mut self, dir: &Path, names: &[&str]) -> Result<(), Error> {
        names.iter().try_for_each(|name| self.file(dir.join(name)).map(|_| ()))
    }

    /// Reads a file. Returns whether it exists.
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
        let resolved = self.resolved(path);
        self.private.push(resolved.clone());
        if !self.file(resolved)? {
            self.warnings.push(format!("`{name}` is set to `{path}`, which does not exist"));
        }
        Ok(())
    }

    /// Adds a document from a server. An invalid one is skipped, because a server must not block the user's work.
    fn remote(&mut self, remote: &Remote) {
        let Remote { url, text, env } = remote;
        if text.contains("{file:") {
            self.warnings
                .push(format!("the document from `{url}` is ignored, because it references a local file"));
            return;
        }
        let origin = Origin::new(url, text);
        let mut inserter = Inserter::new(env, &self.input.dirs.home, self.input.directory);
        let mut document = match origin.read(&schema::CONFIG, Some(&mut inserter)) {
            Ok(node) => node.into_map(),
            Err(error) => {
                self.warnings.push(format!("the document from `{url}` is ignored: {error}"));
                return;
            }
        };
        let mut others: Vec<_> = document
            .keys()
            .filter(|key| !REMOTE_KEYS.contains(&key.as_str()))
            .take(MAX_UNKNOWN_KEYS)
            .cloned()
            .collect();
        if !others.is_empty() {
            others.sort_unstable();
            let others = others.join("`, `");
            self.warnings.push(format!(
                "the document from `{url}` sets `{others}`, which only your own files can set"
            ));
        }
        document.retain(|key, _| REMOTE_KEYS.contains(&key.as_str()));
        self.secrets.add(inserter.secrets);
        env.names().for_each(|name| self.secrets.add_variable(name, url));
        self.add(normalize(document), url, Owner::User);
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
        self.private.append(&mut inserter.inserted);
        self.secrets.add(inserter.secrets);
        self.check_keys(origin, &node)?;
        self.add(normalize(node.into_map()), &origin.name(), Owner::User);
        Ok(())
    }

    fn resolved(&self, path: &str) -> PathBuf {
        match path.strip_prefix("~/") {
            Some(below) => self.input.dirs.home.join(below),
            None => self.input.directory.join(path),
        }
    }

    fn finish(mut self) -> Result<LoadedConfig, Error> {
        let LoadInput { env, dirs, .. } = self.input;
        let mut raw = std::mem::take(&mut self.merged);
        fold_modes(&mut raw);
        self.disable_left_out(&mut raw);
        self.report_suspects(&raw);
        let mut rules = rules_of(&raw);
        if let Some((name, text)) = env.lookup(env::PERMISSION).filter(|(_, text)| !text.trim().is_empty()) {
            let written = Origin::new(name, text).read(&schema::PERMISSION, None)?;
            let written = permission::as_map(written.into_value());
            let document = Map::from_iter([("permission".to_owned(), Value::Object(written.clone()))]);
            self.origins.record(&raw, &document, name);
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
            // The caller sets the user's configuration, which it has read already.
            let repository = with_twins(Config::read(repository, &dirs.home), self.input);
            Box::new(Parts { user: Config::default(), repository, trust: self.trust })
        });
        let mut config = Config::read(sorted(raw, CONFIG_KEYS), &dirs.home);
        config.sandbox.private = self.private;
        Ok(LoadedConfig {
            config: with_twins(config, self.input),
            sources: self.sources,
            looked_for: self.looked_for,
            warnings: self.warnings,
            origins: self.origins,
            folders: self.folders,
            secrets: self.secrets,
            parts,
        })
    }
}

/// Adds the rules that name the same files as calls do.
fn with_twins(mut config: Config, input: LoadInput<'_>) -> Config {
    let tmpdir = input.env.filled(env::TMPDIR).unwrap_or("/tmp");
    let places = Places { directory: input.directory, worktree: input.worktree, tmpdir };
    linked::add_twins(&mut config.permission, places);
    for agent in config.agent.values_mut() {
        linked::add_twins(&mut agent.permission, places);
    }
    config
}

/// Whether a file is always ignored because of its owner or location.
fn is_foreign(error: &Error) -> bool {
    matches!(error, Error::File { problem: FileProblem::Foreign | FileProblem::Outside, .. })
}

/// Whether a value is more than an empty or disabled default.
fn is_significant(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => false,
        Value::Array(items) => !items.is_empty(),
        Value::Object(entries) => entries.values().any(is_significant),
        Value::Bool(true) | Value::Number(_) | Value::String(_) => true,
    }
}

/// Warns about keys without an effect, with their sources.
fn warn_of_unused(raw: &Map, origins: &Origins, warnings: &mut Vec<String>) {
    let experiments = raw.get("experimental").and_then(Value::as_object);
    // The older `autoshare` sets `share`, and has a separate warning.
    let is_older = raw.get("autoshare") == Some(&Value::Bool(true)) && origins.of("share").is_none();
    if raw.get("share").and_then(Value::as_str) == Some("auto") && !is_older {
        let source = origins.of("share").map_or_else(String::new, |origin| format!("`{origin}`: "));
        warnings.push(format!("{source}`share` is `auto`, but sessions are not shared in this version"));
    }
    if raw.get("layout").and_then(Value::as_str) == Some("auto") {
        let source = origins.of("layout").map_or_else(String::new, |origin| format!("`{origin}`: "));
        warnings.push(format!("{source}`layout` is `auto`, but the layout is always `stretch`"));
    }
    let plain = UNUSED.iter().map(|(key, why)| (raw.get(*key), (*key).to_owned(), why));
    let experiments = UNUSED_EXPERIMENTS
        .iter()
        .map(|(key, why)| (experiments.and_then(|map| map.get(*key)), format!("experimental.{key}"), why));
    for (value, key, why) in plain.chain(experiments) {
        if value.is_some_and(is_significant) {
            let source = origins.of(&key).map_or_else(String::new, |origin| format!("`{origin}`: "));
            warnings.push(format!("{source}`{key}` has no effect in this version: {why}"));
        }
    }
}

pub(crate) fn is_mistake(key: &str, meant: &str) -> bool {
    damerau_levenshtein(key, meant) * CHARS_PER_MISTAKE <= key.len()
}

fn username(env: &Env) -> &str {
    env.filled(env::USER).or_else(|| env.filled(env::LOGNAME)).unwrap_or(UNKNOWN_USER)
}
