//! The variables of a program that starts with the rights of the user.
//!
//! The environment of this program can come from the project: of `npm run`, direnv or a shell in the project. Variables
//! that lead a runtime to code of the project are left out, and so are directories of the project in `PATH`.

use std::path::{Path, PathBuf};

use codewright_config::{Env, env};

/// Prefixes of variables that name code, the place of code, or settings of a runtime or package manager.
const LOADERS: &[&str] = &[
    "NODE_",
    "npm_",
    "NPM_",
    "PNPM_",
    "YARN_",
    "BUN_",
    "DENO_",
    "PYTHON",
    "PIP_",
    "UV_",
    "VIRTUAL_ENV",
    "CONDA_",
    "RUBY",
    "GEM_",
    "BUNDLE_",
    "PERL",
    "JAVA_TOOL_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "_JAVA_OPTIONS",
    "CLASSPATH",
    "LD_",
    "DYLD_",
    "GIT_",
    "BASH_ENV",
    "ENV",
    "ZDOTDIR",
    "CARGO_",
    "RUSTC",
    "RUSTUP_",
    "GO",
    "MAVEN_",
    "GRADLE_",
    "DOTNET_",
    "LUA_",
    "PHP",
    "COMPOSER",
    "R_",
    "JULIA_",
    "MISE_",
    "ASDF_",
    "TS_NODE_",
    "TSX_",
];
/// Lists of directories, whose relative entries are in the working directory.
const LISTS: &[&str] =
    &["PYTHONPATH", "NODE_PATH", "RUBYLIB", "PERL5LIB", "CLASSPATH", "LD_LIBRARY_PATH", "GOPATH"];
/// The variables of `npm run`, which contain every setting of the project.
const OF_NPM: (&str, &str) = ("npm_lifecycle_event", "npm_");
/// Directories that shells and package managers record.
const PLACES: &[&str] = &["OLDPWD", "INIT_CWD"];
/// The working directory as shells record it.
const PWD: &str = "PWD";

/// Changes of the environment.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Changes {
    pub(crate) set: Vec<(String, String)>,
    pub(crate) remove: Vec<String>,
}

/// Returns the changes for a program that starts in a directory.
pub(crate) fn changes(variables: &Env, root: &Path, directory: &Path) -> Changes {
    let mut changes = Changes::default();
    changes.set.push((PWD.to_owned(), directory.to_string_lossy().into_owned()));
    if let Some(path) = variables.filled(env::PATH) {
        let (kept, all) = (kept_path(path, root), std::env::split_paths(path).count());
        if kept.len() != all
            && let Ok(kept) = std::env::join_paths(kept)
        {
            changes.set.push((env::PATH.to_owned(), kept.to_string_lossy().into_owned()));
        }
    }
    let is_npm = variables.names().any(|name| name == OF_NPM.0);
    for name in variables.names().filter(|name| *name != env::PATH && *name != PWD) {
        let value = variables.get(name).unwrap_or_default();
        let is_loader = LOADERS.iter().any(|prefix| name.starts_with(prefix));
        if PLACES.contains(&name)
            || is_npm && name.starts_with(OF_NPM.1)
            || is_loader && (names_project(value, root) || LISTS.contains(&name) && has_relative_entry(value))
        {
            changes.remove.push(name.to_owned());
        }
    }
    changes
}

/// The entries of a search path that are absolute and outside of the project.
fn kept_path(path: &str, root: &Path) -> Vec<PathBuf> {
    let is_inside = |entry: &Path| entry.starts_with(root);
    let is_kept = |entry: &PathBuf| {
        entry.is_absolute() && !is_inside(entry) && !entry.canonicalize().is_ok_and(|real| is_inside(&real))
    };
    std::env::split_paths(path).filter(is_kept).collect()
}

/// Whether a value contains a path in the project, or one relative to the working directory.
fn names_project(value: &str, root: &Path) -> bool {
    let parts = value.split(|c: char| c.is_whitespace() || matches!(c, ':' | '=' | ',' | ';' | '"' | '\''));
    let mut parts = parts.filter(|part| !part.is_empty());
    parts.any(|part| {
        Path::new(part).starts_with(root) || part.starts_with("./") || part.starts_with("../") || part == "."
    })
}

fn has_relative_entry(value: &str) -> bool {
    std::env::split_paths(value).any(|entry| !entry.is_absolute())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_that_lead_to_the_project_are_left_out() {
        let variables = Env::from_pairs([
            ("PATH", "/usr/bin:node_modules/.bin:/work/app/bin:/bin:"),
            ("NODE_OPTIONS", "--require=./evil.js"),
            ("PYTHONPATH", "src"),
            ("BASH_ENV", "/work/app/env"),
            ("LD_PRELOAD", "/work/app/evil.so"),
            ("NODE_EXTRA_CA_CERTS", "/etc/ca.pem"),
            ("PYTHONUNBUFFERED", "1"),
            ("npm_config_registry", "https://registry.example"),
            ("INIT_CWD", "/work/app"),
            ("PROJECT", "/work/app"),
        ]);
        let changes = changes(&variables, Path::new("/work/app"), Path::new("/neutral"));
        assert_eq!(
            changes.set,
            [("PWD", "/neutral"), ("PATH", "/usr/bin:/bin")]
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
        );
        assert_eq!(changes.remove, ["BASH_ENV", "INIT_CWD", "LD_PRELOAD", "NODE_OPTIONS", "PYTHONPATH"]);
    }

    #[test]
    fn settings_that_npm_run_passes_on_are_those_of_the_project() {
        let variables =
            [("npm_lifecycle_event", "dev"), ("npm_config_registry", "https://r"), ("HOME", "/h")];
        let changes = changes(&Env::from_pairs(variables), Path::new("/work/app"), Path::new("/neutral"));
        assert_eq!(changes.remove, ["npm_config_registry", "npm_lifecycle_event"]);
    }
}
