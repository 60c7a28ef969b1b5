//! The configuration key `lsp`: which servers there are.
//!
//! `false` and a missing key disable all servers. Every other value enables the known ones and those that it defines. A
//! server that the user configured is the user's: a repository can only disable it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use codewright_workspace::{ProgramSearch, Programs};
use serde_json::{Value, json};

use crate::error::{cut, cut_to};
use crate::host::{Host, Provided, Wanted};
use crate::table::{KNOWN, Known, Loads, Npm, Role, Root, has_extension};

/// The number of servers, including the known ones.
const MAX_SERVERS: usize = 200;
/// The longest id of a server.
const MAX_ID_CHARS: usize = 100;
/// The memory of a server's processes if the configuration has no limit, in MiB.
const MEMORY_MIB: u64 = 4096;
/// The time without a request after which a server ends.
const IDLE: Duration = Duration::from_secs(10 * 60);
/// The range of the configurable time.
const IDLE_RANGE: (u64, u64) = (1, 24 * 60 * 60);
/// The number of directories that are searched upwards for the root of a file.
const MAX_DEPTH: usize = 64;
/// The part of a file that is searched for a word.
const MAX_MANIFEST_BYTES: u64 = 1024 * 1024;

/// A server that can be started.
#[derive(Debug, Clone, PartialEq)]
pub struct Spec {
    /// The name in the configuration.
    pub id: String,
    extensions: Vec<String>,
    start: Start,
    root: Root,
    unless: &'static [&'static str],
    role: Role,
    install: &'static str,
    npm: Option<Npm>,
    pub(crate) environment: BTreeMap<String, String>,
    pub(crate) initialization: Option<Value>,
    /// The limit for the memory of its processes in bytes.
    pub(crate) memory: u64,
    /// The time without a request after which it ends.
    pub(crate) idle: Duration,
    /// Whether a repository's configuration defines or enables it.
    pub(crate) of_repository: bool,
    loads: Loads,
}

#[derive(Debug, Clone, PartialEq)]
enum Start {
    Known(&'static [&'static [&'static str]]),
    Own(Vec<String>),
}

/// How a server is started.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Found {
    /// The program and its arguments.
    pub(crate) words: Vec<String>,
    /// Settings that a server needs because the program installed it.
    pub(crate) settings: Option<Value>,
}

/// The reason why a server is not started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Missing {
    /// The project does not use it.
    Unneeded,
    /// It is being installed.
    Installing(String),
    /// A sentence for the user.
    Problem(String),
}

/// The known server of Python files. The other one is not known then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Python {
    /// The usual one.
    Pyright,
    /// The experiment.
    Ty,
}

impl Python {
    fn is_known(self, id: &str) -> bool {
        match self {
            Self::Pyright => id != "ty",
            Self::Ty => id != "pyright",
        }
    }
}

/// The servers of a configuration. `parts` are the user's and the repository's documents, if there is a repository's.
#[must_use]
pub fn configured(merged: &Value, parts: Option<(&Value, &Value)>, python: Python) -> Vec<Spec> {
    let Some((user, repository)) = parts else { return specs(&merged["lsp"], python, false) };
    let (user, repository) = (&user["lsp"], &repository["lsp"]);
    if *repository == false {
        return Vec::new();
    }
    let users = specs(user, python, false);
    let mut all = if users.is_empty() { specs(repository, python, true) } else { users };
    if is_on(user) {
        let entries = repository.as_object().into_iter().flatten();
        for (id, entry) in entries.take(MAX_SERVERS) {
            let is_users = user.get(id).is_some();
            if entry["disabled"] == true {
                all.retain(|spec| spec.id != *id);
            } else if !is_users {
                configure(&mut all, id, entry, true);
            }
        }
    }
    all
}

fn is_on(lsp: &Value) -> bool {
    matches!(lsp, Value::Bool(true) | Value::Object(_))
}

fn specs(lsp: &Value, python: Python, of_repository: bool) -> Vec<Spec> {
    if !is_on(lsp) {
        return Vec::new();
    }
    let known = KNOWN.iter().filter(|known| python.is_known(known.id));
    let mut all: Vec<Spec> = known.map(|known| Spec::known(known, of_repository)).collect();
    for (id, entry) in lsp.as_object().into_iter().flatten().take(MAX_SERVERS) {
        configure(&mut all, id, entry, of_repository);
    }
    all
}

/// Applies an entry of the configuration.
fn configure(all: &mut Vec<Spec>, id: &str, entry: &Value, of_repository: bool) {
    if entry["disabled"] == true {
        all.retain(|spec| spec.id != *id);
        return;
    }
    if !entry.is_object() {
        return;
    }
    let id = cut_to(id, MAX_ID_CHARS);
    let spec = match all.iter().position(|spec| spec.id == id) {
        Some(at) => &mut all[at],
        None if all.len() >= MAX_SERVERS => return,
        None => {
            all.push(Spec::own(id));
            let last = all.len() - 1;
            &mut all[last]
        }
    };
    spec.apply(entry);
    spec.of_repository = of_repository;
}

impl Spec {
    fn known(known: &'static Known, of_repository: bool) -> Self {
        Self {
            extensions: known.extensions.iter().map(|&extension| extension.to_owned()).collect(),
            start: Start::Known(known.commands),
            root: known.root,
            unless: known.unless,
            role: known.role,
            install: known.install,
            npm: known.npm,
            initialization: known.settings.and_then(|text| serde_json::from_str(text).ok()),
            of_repository,
            loads: known.loads,
            ..Self::own(known.id.to_owned())
        }
    }

    fn own(id: String) -> Self {
        Self {
            id,
            extensions: Vec::new(),
            start: Start::Own(Vec::new()),
            root: Root::Directory,
            unless: &[],
            role: Role::Main,
            install: "",
            npm: None,
            environment: BTreeMap::new(),
            initialization: None,
            memory: MEMORY_MIB * 1024 * 1024,
            idle: IDLE,
            of_repository: false,
            loads: Loads::Nothing,
        }
    }

    /// Whether it can run or load code of the project that it works on.
    pub(crate) fn runs_project(&self) -> bool {
        self.loads != Loads::Nothing
    }

    /// The code of the project that it would run in a root.
    fn code_of_project(&self, search: &ProgramSearch, root: &Path) -> Option<&'static str> {
        match self.loads {
            // With the rights of a command it can start before the project is trusted.
            Loads::Nothing | Loads::Perhaps => None,
            Loads::Always => Some("the project's build scripts and plugins"),
            Loads::Present(all) => all.iter().map(|(name, word)| (*name, *word)).find_map(|(name, word)| {
                let mut found = search.above(root, name);
                found.any(|path| word.is_empty() || contains(&path, word)).then_some(name)
            }),
        }
    }

    fn apply(&mut self, entry: &Value) {
        if entry["command"].is_array() {
            let words = texts(&entry["command"]);
            self.loads = known_in(&words).map_or(Loads::Nothing, |known| known.loads);
            self.start = Start::Own(words);
            self.role = Role::Main;
        }
        if entry["extensions"].is_array() {
            self.extensions = texts(&entry["extensions"]);
        }
        let variables = entry["env"].as_object().into_iter().flatten();
        let variables =
            variables.filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())));
        let is_usable = |(name, value): &(String, String)| {
            !name.is_empty() && !name.contains(['=', '\0']) && !value.contains('\0')
        };
        self.environment.extend(variables.filter(is_usable));
        if entry["initialization"].is_object() {
            let settings = self.initialization.get_or_insert_with(|| json!({}));
            for (key, value) in entry["initialization"].as_object().into_iter().flatten() {
                settings[key] = value.clone();
            }
        }
        if let Some(limit) = entry["memory_limit_mb"].as_u64().filter(|limit| *limit > 0) {
            self.memory = limit.saturating_mul(1024 * 1024);
        }
        if let Some(seconds) = entry["idle_timeout_s"].as_u64() {
            self.idle = Duration::from_secs(seconds.clamp(IDLE_RANGE.0, IDLE_RANGE.1));
        }
    }

    /// Whether it serves files of this name.
    pub(crate) fn suits(&self, path: &Path) -> bool {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        self.extensions.iter().any(|extension| !extension.is_empty() && has_extension(&name, extension))
    }

    /// The root that it serves a file in, or `None` if the project does not use it there.
    pub(crate) fn root(&self, search: &ProgramSearch, path: &Path) -> Option<PathBuf> {
        let above = |names: &'static [&'static str]| {
            parents(search, path).find(|directory| names.iter().any(|name| directory.join(name).is_file()))
        };
        if !self.unless.is_empty() && above(self.unless).is_some() {
            return None;
        }
        let root = match self.root {
            Root::Directory => None,
            Root::Nearest(groups) => groups.iter().find_map(|names| above(names)),
            Root::Required(names) => return above(names).map(Path::to_owned),
            Root::Containing { file, word } => {
                let has = |directory: &&Path| contains(&directory.join(file), word);
                let nearest = || parents(search, path).find(|directory| directory.join(file).is_file());
                parents(search, path).find(has).or_else(nearest)
            }
        };
        Some(root.unwrap_or(&search.directory).to_owned())
    }

    /// The command that starts it in a root. The host may begin to install a missing server.
    ///
    /// # Errors
    ///
    /// Fails with the reason if no program is found.
    pub(crate) fn command(
        &self,
        search: &ProgramSearch,
        root: &Path,
        host: &dyn Host,
    ) -> Result<Found, Missing> {
        if search.programs == Programs::None {
            let reason = "No server starts until you have decided whether you trust this directory.";
            return Err(self.problem(reason.to_owned()));
        }
        if search.programs == Programs::Installed
            && let Some(code) = self.code_of_project(search, root)
        {
            return Err(self.problem(format!(
                "It would run code of this project ({code}), and you have not trusted the project. Look at it, then run \
                 `codewright trust add`."
            )));
        }
        let with = |path: PathBuf, args: Vec<String>| {
            let words = std::iter::once(path.to_string_lossy().into_owned()).chain(args).collect();
            Found { words, settings: None }
        };
        match &self.start {
            Start::Own(words) => {
                let Some((program, args)) = words.split_first() else {
                    return Err(Missing::Problem(
                        "The configuration of the server has no `command`.".to_owned(),
                    ));
                };
                let found = search.named(program).or_else(|| of_project(search, root, program));
                let missing = || {
                    let program = cut_to(program, MAX_ID_CHARS);
                    Missing::Problem(format!("The program `{program}` of the server was not found."))
                };
                found.map(|path| with(path, args.to_vec())).ok_or_else(missing)
            }
            Start::Known(commands) => {
                let found = commands.iter().find_map(|command| {
                    let (program, args) = command.split_first()?;
                    let path = of_project(search, root, program).or_else(|| search.installed(program))?;
                    Some(with(path, args.iter().map(|&arg| arg.to_owned()).collect()))
                });
                found.map_or_else(|| self.provided(search, root, host), Ok)
            }
        }
    }

    /// The command of a known server that the host installed.
    fn provided(&self, search: &ProgramSearch, root: &Path, host: &dyn Host) -> Result<Found, Missing> {
        let Start::Known(commands) = &self.start else { return Err(Missing::Unneeded) };
        let (Some(npm), Some((program, args))) =
            (self.npm, commands.first().and_then(|command| command.split_first()))
        else {
            return Err(self.problem(self.missing("Codewright does not install it; ")));
        };
        let is_used = |name: &str| has_package(search, root, name);
        if npm.of_project.is_some_and(|name| !is_used(name)) {
            return Err(Missing::Unneeded);
        }
        let wanted =
            Wanted { server: &self.id, packages: npm.packages, program, of_repository: self.of_repository };
        match host.provide(&wanted) {
            Provided::Ready { words, modules } => {
                let words = words.into_iter().chain(args.iter().map(|&arg| arg.to_owned())).collect();
                Ok(Found { words, settings: settings(npm, &modules) })
            }
            Provided::Installing => {
                let names = npm.packages.join(" and ");
                Err(Missing::Installing(format!("Installing {names} from the npm registry.")))
            }
            Provided::Disabled => {
                Err(self.problem(self.missing("Codewright installs it if `lsp_install` is `true`; ")))
            }
            Provided::Failed(reason) => {
                let reason = cut(&reason);
                Err(Missing::Problem(format!("{}.", reason.trim_end_matches('.'))))
            }
        }
    }

    /// A reason that matters only for the main server of a file.
    fn problem(&self, reason: String) -> Missing {
        match self.role {
            Role::Main => Missing::Problem(reason),
            Role::Additional => Missing::Unneeded,
        }
    }

    fn missing(&self, note: &str) -> String {
        let Start::Known(commands) = &self.start else { return String::new() };
        let programs = commands.iter().filter_map(|command| command.first());
        let programs: Vec<_> = programs.map(|program| format!("`{program}`")).collect();
        let (programs, install) = (programs.join(" or "), self.install);
        format!("The program {programs} was not found. {note}to install it yourself: {install}.")
    }
}

/// The settings of an installed server that needs the path of the TypeScript installed with it.
fn settings(npm: Npm, modules: &Path) -> Option<Value> {
    let library = modules.join("typescript/lib");
    let is_needed = npm.packages.iter().skip(1).any(|package| package.starts_with("typescript@"));
    is_needed.then(|| json!({"typescript": {"tsdk": library}}))
}

/// The known server that a configured command starts, also through a package manager or a runtime.
fn known_in(words: &[String]) -> Option<&'static Known> {
    let name = |word: &str| {
        let name = word.rsplit('/').next().unwrap_or(word);
        // A package can have a version, and a script an extension.
        let name = name.split('@').next().unwrap_or(name);
        name.trim_end_matches(".js").trim_end_matches(".mjs").trim_end_matches(".cjs").to_owned()
    };
    let packages = |known: &Known| {
        known.npm.iter().flat_map(|npm| npm.packages).map(|text| name(text)).collect::<Vec<_>>()
    };
    words.iter().map(|word| name(word)).filter(|word| !word.is_empty()).find_map(|word| {
        KNOWN.iter().find(|known| {
            known.commands.iter().any(|command| command.first() == Some(&word.as_str()))
                || packages(known).contains(&word)
        })
    })
}

/// Whether a package is installed in a root or a directory above it, up to the root of the project.
fn has_package(search: &ProgramSearch, root: &Path, name: &str) -> bool {
    let directories = root.ancestors().take_while(|directory| directory.starts_with(search.root()));
    directories.take(MAX_DEPTH).any(|directory| directory.join("node_modules").join(name).is_dir())
}

fn of_project(search: &ProgramSearch, root: &Path, program: &str) -> Option<PathBuf> {
    let is_name = !program.contains('/');
    is_name.then(|| search.of_project(root, "node_modules/.bin", program)).flatten()
}

/// The directories of a file, from its own up to the root of the project.
fn parents<'a>(search: &'a ProgramSearch, path: &'a Path) -> impl Iterator<Item = &'a Path> {
    let inside = path.ancestors().skip(1).take_while(|directory| directory.starts_with(search.root()));
    inside.take(MAX_DEPTH)
}

/// Whether a regular file contains a word near its beginning.
fn contains(path: &Path, word: &str) -> bool {
    use std::io::Read as _;
    // Opening a pipe could block forever.
    if !path.is_file() {
        return false;
    }
    let mut bytes = Vec::new();
    let Ok(file) = std::fs::File::open(path) else { return false };
    file.take(MAX_MANIFEST_BYTES).read_to_end(&mut bytes).is_ok()
        && String::from_utf8_lossy(&bytes).contains(word)
}

fn texts(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::json;

    use super::*;

    fn ids(specs: &[Spec]) -> Vec<&str> {
        specs.iter().map(|spec| spec.id.as_str()).collect()
    }

    /// The number of servers that are known at the same time.
    fn known() -> usize {
        KNOWN.len() - 1
    }

    #[test]
    fn python_has_one_known_server() {
        for (python, expected, other) in [(Python::Pyright, "pyright", "ty"), (Python::Ty, "ty", "pyright")] {
            let all = configured(&json!({"lsp": true}), None, python);
            assert!(ids(&all).contains(&expected) && !ids(&all).contains(&other), "{python:?}");
            let own =
                configured(&json!({"lsp": {other: {"command": ["x"], "extensions": [".py"]}}}), None, python);
            assert!(ids(&own).contains(&other) && ids(&own).contains(&expected), "{python:?}");
        }
    }

    #[test]
    fn servers_are_off_unless_configured() {
        for off in [json!({}), json!({"lsp": false}), json!({"lsp": null}), json!({"lsp": 7})] {
            assert_eq!(configured(&off, None, Python::Pyright), [], "{off}");
        }
        assert_eq!(configured(&json!({"lsp": true}), None, Python::Pyright).len(), known());
        let own = configured(
            &json!({"lsp": {"deno": {"disabled": true}, "mine": {"command": ["x"], "extensions": [".m"],
                "memory_limit_mb": 1, "idle_timeout_s": 0}, "rust": {"env": {"A": "b", "C=": "d"}}, "bad": 7}}),
            None,
            Python::Pyright,
        );
        assert_eq!(own.len(), known());
        assert!(!ids(&own).contains(&"deno") && !ids(&own).contains(&"bad"));
        let mine = own.iter().find(|spec| spec.id == "mine").unwrap();
        assert!(mine.suits(Path::new("/a.m")) && !mine.suits(Path::new("/a.rs")));
        assert_eq!((mine.memory, mine.idle), (1024 * 1024, Duration::from_secs(1)));
        assert_eq!(own.iter().find(|spec| spec.id == "rust").unwrap().environment.len(), 1);
    }

    #[test]
    fn a_repository_cannot_change_the_users_server() {
        let user = json!({"lsp": {"mine": {"command": ["x"], "env": {"KEY": "secret"}}}});
        let repository = json!({"lsp": {"mine": {"command": ["evil"]}, "rust": {"command": ["evil"]},
                                        "gopls": {"disabled": true}, "theirs": {"command": ["y"]}}});
        let all = configured(&json!({}), Some((&user, &repository)), Python::Pyright);
        let of = |id: &str| all.iter().find(|spec| spec.id == id).unwrap();
        assert_eq!((of("mine").of_repository, &of("mine").start), (false, &Start::Own(vec!["x".to_owned()])));
        assert!(of("rust").of_repository && of("theirs").of_repository && !of("clangd").of_repository);
        assert!(!ids(&all).contains(&"gopls"));
        let all = configured(&json!({}), Some((&json!({}), &json!({"lsp": true}))), Python::Pyright);
        assert!(all.len() == known() && all.iter().all(|spec| spec.of_repository));
        assert_eq!(configured(&json!({}), Some((&user, &json!({"lsp": false}))), Python::Pyright), []);
        assert_eq!(configured(&json!({}), Some((&json!({"lsp": false}), &json!({}))), Python::Pyright), []);
    }

    #[test]
    fn each_part_of_a_repository_has_its_root() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for (file, content) in [
            ("package-lock.json", ""),
            ("web/package-lock.json", ""),
            ("deno/deno.json", ""),
            ("py/a/pyproject.toml", ""),
            ("rust/Cargo.toml", "[workspace]\n"),
            ("rust/x/Cargo.toml", "[package]\n"),
            ("alone/Cargo.toml", "[package]\n"),
            ("go/go.work", ""),
            ("go/m/go.mod", ""),
        ] {
            fs::create_dir_all(root.join(file).parent().unwrap()).unwrap();
            fs::write(root.join(file), content).unwrap();
        }
        let search = ProgramSearch {
            directory: root.clone(),
            worktree: root.clone(),
            path: String::new(),
            programs: Programs::All,
        };
        let all = configured(
            &json!({"lsp": {"own": {"command": ["x"], "extensions": [".own"]}}}),
            None,
            Python::Pyright,
        );
        for (id, file, expected) in [
            ("typescript", "a.ts", Some("")),
            ("typescript", "web/src/a.ts", Some("web")),
            ("typescript", "deno/a.ts", None),
            ("deno", "deno/a.ts", Some("deno")),
            ("deno", "web/a.ts", None),
            ("pyright", "py/a/b/c.py", Some("py/a")),
            ("pyright", "py/c.py", Some("")),
            ("rust", "rust/x/src/lib.rs", Some("rust")),
            ("rust", "alone/src/lib.rs", Some("alone")),
            ("gopls", "go/m/a.go", Some("go")),
            ("own", "py/a/x.own", Some("")),
        ] {
            let spec = all.iter().find(|spec| spec.id == id).unwrap();
            let found = spec.root(&search, &root.join(file));
            // The temporary directory has a slash at the end after `join("")`.
            assert_eq!(
                found,
                expected.map(|expected| root.join(expected).components().collect()),
                "{id} {file}"
            );
        }
        let rust = all.iter().find(|spec| spec.id == "rust").unwrap();
        let command = |spec: &Spec, provided| spec.command(&search, &root, &Offer(provided));
        let Err(Missing::Problem(missing)) = command(rust, Provided::Disabled) else { panic!() };
        assert!(missing.contains("rustup component add rust-analyzer"), "{missing}");
        let of = |id: &str| all.iter().find(|spec| spec.id == id).unwrap();
        assert_eq!(command(of("eslint"), Provided::Installing), Err(Missing::Unneeded));
        fs::create_dir_all(root.join("node_modules/eslint")).unwrap();
        assert!(matches!(command(of("eslint"), Provided::Installing), Err(Missing::Installing(_))));
        let Err(Missing::Problem(missing)) = command(of("pyright"), Provided::Disabled) else { panic!() };
        assert!(missing.contains("lsp_install") && missing.contains("npm install -g pyright"), "{missing}");
        let ready =
            Provided::Ready { words: vec!["node".to_owned(), "x.js".to_owned()], modules: "/m".into() };
        let found = command(of("astro"), ready).unwrap();
        assert_eq!(found.words, ["node", "x.js", "--stdio"]);
        assert_eq!(found.settings.unwrap()["typescript"]["tsdk"], "/m/typescript/lib");
    }

    /// A host that only provides servers.
    struct Offer(Provided);

    impl Host for Offer {
        fn command(&self, _: &crate::Launch) -> Result<codewright_workspace::Command, String> {
            Err("it starts nothing".to_owned())
        }

        fn provide(&self, _: &Wanted<'_>) -> Provided {
            self.0.clone()
        }

        fn watched(&self) -> Option<codewright_workspace::TreeOptions> {
            None
        }

        fn version(&self) -> String {
            String::new()
        }

        fn updated(&self) {}

        fn diagnosed(&self, _: &str, _: &Path) {}

        fn log(&self, _: &str, _: &str) {}
    }
}
