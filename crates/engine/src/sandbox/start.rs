//! Where a program of the user's configuration starts, and with whose rights.
//!
//! Many programs look for code beside them: `npx` in `node_modules`, `python3 -m` in the working directory, bun in
//! `bunfig.toml`. A program with the rights of the user therefore starts in a directory of its own. The project's
//! directory is the working directory of a program only if the user trusts the project, and a program that would load
//! code of the project gets no more rights than a command of the model, which can write that code.

use std::path::{Path, PathBuf};

use codewright_config::Dirs;
use codewright_workspace::{Programs, make_private_directory, normalize};

use super::server::Rights;
use crate::instance::Instance;

/// The neutral directory, in the cache directory. Commands cannot write it, and programs find nothing of a project above.
const NEUTRAL: &str = "servers";
/// A manifest that ends the search of package managers in the directories above.
const MANIFEST: (&str, &str) = ("package.json", "{}\n");

/// Programs that load code from the working directory, or from a file that they find there.
const SEARCHING: &[&str] = &[
    "npx",
    "npm",
    "pnpm",
    "pnpx",
    "yarn",
    "yarnpkg",
    "bun",
    "bunx",
    "deno",
    "tsx",
    "ts-node",
    "vite-node",
    "corepack",
    "uv",
    "uvx",
    "pipx",
    "poetry",
    "pdm",
    "hatch",
    "rye",
    "pipenv",
    "conda",
    "mamba",
    "pixi",
    "bundle",
    "bundler",
    "gem",
    "rake",
    "composer",
    "cargo",
    "go",
    "dotnet",
    "gradle",
    "mvn",
    "mix",
    "iex",
    "elixir",
    "Rscript",
    "R",
    "nix",
    "nix-shell",
    "direnv",
    "mise",
    "asdf",
    "make",
    "just",
    "task",
];
/// Programs that do so unless their first argument is the path of a script.
const SEARCHING_MODULES: &[&str] =
    &["python", "python3", "py", "pypy", "ruby", "perl", "php", "java", "julia", "lua", "luajit"];
/// Programs that run the file that is their first argument, and those above that do.
const INTERPRETERS: &[&str] = &["node", "nodejs", "osascript", "pwsh", "tclsh"];
/// Programs that run a line of text.
const SHELLS: &[&str] = &["bash", "sh", "zsh", "dash", "ksh", "fish"];
/// Programs that start the program in their arguments.
const WRAPPERS: &[&str] = &["env", "nice", "nohup", "stdbuf", "time", "timeout", "exec", "command"];
/// Commands of package managers before the name of what they run.
const SUBCOMMANDS: &[&str] = &["run", "exec", "x", "dlx", "tool", "start"];
/// Options of the programs above whose value is code or the place of code.
const CODE_OPTIONS: &[&str] = &[
    "-p",
    "--package",
    "-c",
    "--call",
    "-C",
    "--prefix",
    "--directory",
    "--project",
    "--cwd",
    "--from",
    "--with",
    "--with-editable",
    "--with-requirements",
    "--python",
    "--env-file",
    "--config",
    "--config-file",
    "-r",
    "--require",
    "--import",
    "--loader",
    "--experimental-loader",
    "--preload",
    "--conditions",
    "--tsconfig",
    "--import-map",
    "-I",
    "-S",
    "-cp",
    "-classpath",
    "--class-path",
    "-jar",
    "-e",
    "--eval",
    "-f",
    "-w",
    "--workspace",
];

/// A program of the user's configuration that is about to start.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Start<'a> {
    pub(crate) program: &'a str,
    pub(crate) args: &'a [String],
    /// The directory that the configuration names.
    pub(crate) cwd: Option<&'a Path>,
}

/// The project that a program starts for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Surroundings<'a> {
    /// The directory of the project that the program works for.
    pub(crate) directory: &'a Path,
    /// The root of the project.
    pub(crate) root: &'a Path,
    /// The user's home. A project that contains it is not a repository with foreign code.
    pub(crate) home: &'a Path,
    /// The directory in which no project's code is found.
    pub(crate) neutral: &'a Path,
    pub(crate) is_trusted: bool,
}

/// How a program starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) directory: PathBuf,
    pub(crate) args: Vec<String>,
    pub(crate) rights: Rights,
}

/// Decides how a program of the user's configuration starts.
///
/// # Errors
///
/// Fails with a sentence if it would run code of a project that the user has not trusted.
pub(crate) fn plan(start: Start<'_>, around: Surroundings<'_>) -> Result<Plan, String> {
    let given = || start.args.to_vec();
    if let Some(code) = code_of_project(start, around) {
        if !around.is_trusted {
            return Err(untrusted(&code));
        }
        let directory = start.cwd.unwrap_or(around.directory).to_owned();
        return Ok(Plan { directory, args: given(), rights: Rights::Project });
    }
    let searches = searches(&words(start));
    match start.cwd {
        Some(cwd) if !around.contains(cwd) => {
            Ok(Plan { directory: cwd.to_owned(), args: given(), rights: Rights::User })
        }
        Some(cwd) if around.is_trusted => {
            let rights = if searches { Rights::Project } else { Rights::User };
            Ok(Plan { directory: cwd.to_owned(), args: given(), rights })
        }
        None if around.is_trusted && !searches => {
            Ok(Plan { directory: around.directory.to_owned(), args: given(), rights: Rights::User })
        }
        Some(_) | None => Ok(Plan {
            directory: around.neutral.to_owned(),
            args: start.args.iter().map(|arg| absolute(arg, around.directory)).collect(),
            rights: Rights::User,
        }),
    }
}

/// Why a program that loads code of an untrusted project does not start.
pub(crate) fn untrusted(code: &str) -> String {
    format!(
        "It would run `{code}`, which is code of this project, and you have not trusted the project. Look at it, then run \
         `codewright trust add`."
    )
}

/// The neutral directory of a project. It is created if it is missing. `/` if the project contains it.
pub(crate) fn neutral(dirs: &Dirs, root: &Path) -> PathBuf {
    let directory = dirs.cache.join(NEUTRAL);
    let is_inside = directory.starts_with(root) && !dirs.home.starts_with(root);
    let prepared = || {
        make_private_directory(&dirs.cache)?;
        make_private_directory(&directory)?;
        let manifest = directory.join(MANIFEST.0);
        if manifest.symlink_metadata().is_ok() { Ok(()) } else { std::fs::write(manifest, MANIFEST.1) }
    };
    // Nobody can write the root directory, so it contains no code of a project either.
    if is_inside || prepared().is_err() { PathBuf::from("/") } else { directory }
}

impl<'a> Surroundings<'a> {
    /// The surroundings of a program that works for a directory of an instance.
    pub(crate) fn new(
        instance: &'a Instance,
        directory: &'a Path,
        dirs: &'a Dirs,
        neutral: &'a Path,
    ) -> Self {
        Self {
            directory,
            root: instance.programs.root(),
            home: &dirs.home,
            neutral,
            is_trusted: instance.programs.programs == Programs::All,
        }
    }

    /// Whether a path is in the project, also through a link.
    fn contains(&self, path: &Path) -> bool {
        if self.home.starts_with(self.root) {
            return false;
        }
        let is_inside = |path: &Path| path.starts_with(self.root);
        is_inside(&normalize(path)) || path.canonicalize().is_ok_and(|real| is_inside(&real))
    }
}

/// A command without the wrappers before its program.
fn words<'a>(start: Start<'a>) -> Vec<&'a str> {
    let all = std::iter::once(start.program).chain(start.args.iter().map(String::as_str));
    let mut is_first = true;
    let is_wrapping = |word: &&str| {
        let is_own = !is_first && (word.contains('=') || word.starts_with('-'));
        let is_wrapper = is_one_of(WRAPPERS, word);
        is_first = false;
        is_wrapper || is_own
    };
    all.skip_while(is_wrapping).collect()
}

/// The words of a shell's line, without quotes. A word can be the name of a program or a path.
fn line_words(line: &str) -> Vec<String> {
    let bare: String = line.chars().filter(|c| !matches!(c, '"' | '\'')).collect();
    let is_separator =
        |c: char| c.is_whitespace() || matches!(c, ';' | '&' | '|' | '(' | ')' | '<' | '>' | '`');
    bare.split(is_separator).filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

/// Whether a command starts a program that looks for code in the working directory.
fn searches(words: &[&str]) -> bool {
    let Some((program, rest)) = words.split_first() else { return false };
    if is_one_of(SHELLS, program) {
        return rest.iter().any(|text| {
            let line = line_words(text);
            let line: Vec<&str> = line.iter().map(String::as_str).collect();
            (0..line.len()).any(|at| !is_one_of(SHELLS, line[at]) && searches(&line[at..]))
        });
    }
    let is_path = |word: &&&str| word.contains('/');
    let first = rest.iter().find(|word| !word.starts_with('-') || is_module(word));
    is_one_of(SEARCHING, program) || is_one_of(SEARCHING_MODULES, program) && first.filter(is_path).is_none()
}

/// Whether an option is followed by the name of a module or by code.
fn is_module(word: &str) -> bool {
    ["-m", "-c", "-e", "-r"].iter().any(|option| word.starts_with(option))
}

/// Whether the last component of a word is one of some names, also with a version, as in `python3.12`.
fn is_one_of(names: &[&str], word: &str) -> bool {
    let name = word.rsplit('/').next().unwrap_or(word);
    let bare = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    names.iter().any(|known| *known == name || *known == bare)
}

/// The code of the project that a program would run, as the configuration names it.
fn code_of_project(start: Start<'_>, around: Surroundings<'_>) -> Option<String> {
    let base = start.cwd.unwrap_or(around.directory);
    let in_project = |text: &str| {
        let text = text.strip_prefix("file://").or_else(|| text.strip_prefix("file:")).unwrap_or(text);
        let path = base.join(text);
        (!text.is_empty() && around.contains(&path) && path.exists()).then_some(path)
    };
    let words = words(start);
    let (program, rest) = words.split_first()?;
    if program.contains('/') && in_project(program).is_some() {
        return Some((*program).to_owned());
    }
    if is_one_of(SHELLS, program) {
        return rest.iter().find_map(|text| code_of_line(text, around, &in_project));
    }
    let is_runner =
        [SEARCHING, SEARCHING_MODULES, INTERPRETERS].iter().any(|names| is_one_of(names, program));
    let mut is_value = false;
    for word in rest.iter().filter(|_| is_runner) {
        let is_option = word.starts_with('-') && !is_value;
        let (option, value) = word.split_once('=').filter(|_| is_option).unwrap_or((word, ""));
        let named = if is_option { value } else { word };
        if in_project(named).is_some() {
            return Some((*word).to_owned());
        }
        // What follows belongs to the program that is run.
        if option == "-m" || !is_option && !is_value && !SUBCOMMANDS.contains(word) {
            return None;
        }
        is_value = is_option && value.is_empty() && CODE_OPTIONS.contains(&option);
    }
    None
}

/// The code of the project that a line of a shell would run: a file that it names, or a directory in which it starts a
/// program that looks for code.
fn code_of_line(
    line: &str,
    around: Surroundings<'_>,
    in_project: &dyn Fn(&str) -> Option<PathBuf>,
) -> Option<String> {
    let words = line_words(line);
    let named = words.iter().filter(|word| word.contains('/') || word.starts_with('.'));
    let is_searching = || searches(&["sh", line]);
    let is_code = |word: &&String| {
        let path = word.split_once('=').map_or(word.as_str(), |(_, value)| value);
        in_project(path).is_some_and(|path| path.is_file() || is_searching() && around.contains(&path))
    };
    named.clone().find(is_code).cloned()
}

/// An argument that is relative to the project, as an absolute path.
fn absolute(arg: &str, directory: &Path) -> String {
    let is_relative = matches!(arg, "." | "..") || arg.starts_with("./") || arg.starts_with("../");
    if is_relative { normalize(&directory.join(arg)).to_string_lossy().into_owned() } else { arg.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Folder(tempfile::TempDir);

    impl Folder {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            for name in ["work/sub", "work/node_modules/.bin", "home/mcp", "neutral"] {
                std::fs::create_dir_all(folder.path().join(name)).unwrap();
            }
            for name in
                ["work/server.js", "work/data.db", "work/node_modules/.bin/tool", "home/mcp/server.js"]
            {
                std::fs::write(folder.path().join(name), "").unwrap();
            }
            std::os::unix::fs::symlink(
                folder.path().join("work/server.js"),
                folder.path().join("home/link.js"),
            )
            .unwrap();
            Self(folder)
        }

        fn plan(&self, line: &str, cwd: Option<&str>, is_trusted: bool) -> Result<Plan, String> {
            let root = self.0.path();
            let line = line.replace("ROOT", &root.to_string_lossy());
            let mut words = line.split(' ').map(|word| {
                if word.contains("node_modules") { word.to_owned() } else { word.replace('_', " ") }
            });
            let program = words.next().unwrap();
            let args: Vec<String> = words.collect();
            let cwd = cwd.map(|cwd| root.join("work").join(cwd));
            let (work, home, neutral) = (root.join("work"), root.join("home"), root.join("neutral"));
            let start = Start { program: &program, args: &args, cwd: cwd.as_deref() };
            let (directory, home, neutral) = (&*work, &*home, &*neutral);
            plan(start, Surroundings { directory, root: &work, home, neutral, is_trusted })
        }

        fn outcome(&self, line: &str, cwd: Option<&str>, is_trusted: bool) -> String {
            match self.plan(line, cwd, is_trusted) {
                Ok(Plan { directory, rights, .. }) => {
                    format!("{} {rights:?}", directory.strip_prefix(self.0.path()).unwrap().display())
                }
                Err(_) => "refused".to_owned(),
            }
        }
    }

    #[test]
    fn a_program_that_searches_for_code_starts_elsewhere() {
        let folder = Folder::new();
        for (line, untrusted, trusted) in [
            ("npx -y server-everything", "neutral User", "neutral User"),
            ("python3 -m server", "neutral User", "neutral User"),
            ("/usr/bin/python3.12 -m server", "neutral User", "neutral User"),
            ("env A=b npx server", "neutral User", "neutral User"),
            ("sh -c exec_npx_server", "neutral User", "neutral User"),
            ("bash -lc A=b_python3_-m_server", "neutral User", "neutral User"),
            ("python3 -u ROOT/home/mcp/server.js", "neutral User", "work User"),
            ("sh -c python3_ROOT/home/mcp/server.js", "neutral User", "work User"),
            ("sh -c log_ROOT/work", "neutral User", "work User"),
            ("npx -y server-filesystem ROOT/work", "neutral User", "neutral User"),
            ("npx -y server-filesystem .", "neutral User", "neutral User"),
            ("uvx server --db ROOT/work/data.db", "neutral User", "neutral User"),
            ("my-server --db ./data.db", "neutral User", "work User"),
            ("node ROOT/home/mcp/server.js ROOT/work", "neutral User", "work User"),
        ] {
            assert_eq!(folder.outcome(line, None, false), untrusted, "{line}");
            assert_eq!(folder.outcome(line, None, true), trusted, "{line}");
        }
    }

    #[test]
    fn code_of_the_project_needs_trust_and_has_the_rights_of_a_command() {
        let folder = Folder::new();
        for line in [
            "node server.js",
            "node ./server.js",
            "node ROOT/work/server.js",
            "node ROOT/home/link.js",
            "node --import=./server.js ROOT/home/mcp/server.js",
            "node --import ./server.js ROOT/home/mcp/server.js",
            "./node_modules/.bin/tool",
            "ROOT/work/node_modules/.bin/tool --stdio",
            "npx -p ROOT/work x",
            "npx --package=file:ROOT/work x",
            "uvx --from . x",
            "uv run --directory sub server",
            "bun run server.js",
            "sh -c node_ROOT/work/server.js",
            "sh -c cd_/;_node_./server.js",
            "sh -c \"ROOT/work\"/server.js",
            "sh -c cd_ROOT/work_&&_npm_test",
            "sh -c node_modules/.bin/tool",
            "env A=b node server.js",
        ] {
            assert_eq!(folder.outcome(line, None, false), "refused", "{line}");
            assert_eq!(folder.outcome(line, None, true), "work Project", "{line}");
        }
    }

    #[test]
    fn a_configured_directory_counts_if_it_is_elsewhere_or_trusted() {
        let folder = Folder::new();
        for (line, cwd, untrusted, trusted) in [
            ("my-server", "sub", "neutral User", "work/sub User"),
            ("npx server", "sub", "neutral User", "work/sub Project"),
            ("npx server", "../home", "work/../home User", "work/../home User"),
        ] {
            assert_eq!(folder.outcome(line, Some(cwd), false), untrusted, "{line}");
            assert_eq!(folder.outcome(line, Some(cwd), true), trusted, "{line}");
        }
    }

    #[test]
    fn relative_arguments_name_the_project() {
        let folder = Folder::new();
        let plan = folder.plan("npx -y server-filesystem . ./sub ../x -y", None, false).unwrap();
        let root = folder.0.path().to_string_lossy().into_owned();
        let expected = ["-y", "server-filesystem", "ROOT/work", "ROOT/work/sub", "ROOT/x", "-y"];
        assert_eq!(plan.args, expected.map(|word| word.replace("ROOT", &root)));
    }
}
