//! Runs real language servers: an edit with an error must show the error.
//!
//! Servers are not part of the tests, because they must be installed. One that is missing is skipped. With `--install` the
//! program itself installs those that are npm packages, with the registry of the user's `.npmrc`.

use std::ffi::OsString;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use codewright_testkit::{BlockingServer, Project, Run, Script, Turn};
use serde_json::json;

/// The number of edits, because a server that starts does not answer the first ones.
const EDITS: usize = 8;
/// The longest time of all edits.
const LIMIT: Duration = Duration::from_secs(240);
/// The time between two edits, in seconds.
const PAUSE: u64 = 5;

/// The variable that names more certificates for Node.
const AUTHORITIES: &str = "NODE_EXTRA_CA_CERTS";

/// A server and a small project for it.
struct Case {
    id: &'static str,
    program: &'static str,
    /// The arguments with which an installed program succeeds, or `None` if it has none.
    probe: Option<&'static str>,
    files: &'static [(&'static str, &'static str)],
    file: &'static str,
    broken: &'static str,
    /// A word of the expected error.
    error: &'static str,
}

const CASES: &[Case] = &[
    Case {
        id: "typescript",
        program: "typescript-language-server",
        probe: Some("--version"),
        files: &[("package.json", "{}"), ("tsconfig.json", "{\"compilerOptions\":{\"strict\":true}}")],
        file: "a.ts",
        broken: "const n: number = \"text\";\nexport { n };\n",
        error: "not assignable",
    },
    Case {
        id: "pyright",
        program: "pyright-langserver",
        probe: None,
        files: &[("pyproject.toml", "")],
        file: "a.py",
        broken: "n: int = \"text\"\n",
        error: "not assignable",
    },
    Case {
        id: "clangd",
        program: "clangd",
        probe: Some("--version"),
        files: &[("compile_flags.txt", "-xc\n")],
        file: "a.c",
        broken: "int main(void) { return missing; }\n",
        error: "undeclared",
    },
    Case {
        id: "gopls",
        program: "gopls",
        probe: Some("version"),
        files: &[("go.mod", "module a\n\ngo 1.19\n")],
        file: "a.go",
        broken: "package main\n\nfunc main() { var n int = \"text\"; _ = n }\n",
        error: "cannot use",
    },
    Case {
        id: "rust",
        program: "rust-analyzer",
        probe: Some("--version"),
        files: &[("Cargo.toml", "[package]\nname = \"a\"\nversion = \"0.1.0\"\nedition = \"2021\"\n")],
        file: "src/main.rs",
        broken: "fn main() { let n: u32 = ; }\n",
        error: "xpected",
    },
    Case {
        id: "vue",
        program: "vue-language-server",
        probe: None,
        files: &[("package.json", "{}"), ("tsconfig.json", "{\"compilerOptions\":{\"strict\":true}}")],
        file: "a.vue",
        broken: "<script setup lang=\"ts\">\nconst n: number = \"text\";\n</script>\n<template>{{ n }}</template>\n",
        error: "not assignable",
    },
];

/// Servers that only the program installs, besides those of [`CASES`].
const INSTALLED: &[Case] = &[
    Case {
        id: "svelte",
        program: "svelteserver",
        probe: None,
        files: &[("package.json", "{}"), ("tsconfig.json", "{\"compilerOptions\":{\"strict\":true}}")],
        file: "a.svelte",
        broken: "<script lang=\"ts\">\nlet n: number = \"text\";\n</script>\n{n}\n",
        error: "not assignable",
    },
    Case {
        id: "astro",
        program: "astro-ls",
        probe: None,
        files: &[("package.json", "{}"), ("tsconfig.json", "{\"compilerOptions\":{\"strict\":true}}")],
        file: "a.astro",
        broken: "---\nconst n = ;\n---\n<p>{n}</p>\n",
        error: "Expression expected",
    },
    Case {
        id: "eslint",
        program: "vscode-eslint-language-server",
        probe: None,
        files: &[
            ("package.json", "{\"devDependencies\":{\"eslint\":\"^9\"}}"),
            ("eslint.config.js", "module.exports = [{ rules: { \"no-debugger\": \"error\" } }];\n"),
        ],
        file: "a.js",
        broken: "debugger;\n",
        // The name of the rule is the code of the diagnostic, which is not shown.
        error: "Unexpected 'debugger' statement",
    },
    Case {
        id: "yaml-ls",
        program: "yaml-language-server",
        probe: None,
        files: &[],
        file: "a.yaml",
        broken: "a: b: c\n",
        error: "Nested mappings",
    },
    Case {
        id: "dockerfile",
        program: "docker-langserver",
        probe: None,
        files: &[],
        file: "Dockerfile",
        broken: "FROM scratch\nNOTHING x\n",
        error: "Unknown instruction",
    },
    Case {
        id: "php intelephense",
        program: "intelephense",
        probe: None,
        files: &[("composer.json", "{}")],
        file: "a.php",
        broken: "<?php\nfunction f( {\n",
        error: "Unexpected",
    },
    Case {
        id: "prisma",
        program: "prisma-language-server",
        probe: None,
        files: &[],
        file: "schema.prisma",
        broken: "model X {\n  id Int @nonsense\n}\n",
        error: "nonsense",
    },
];

/// Where servers come from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Origin {
    /// `PATH` and the directories of `--path`.
    Path,
    /// The program installs them.
    Installed,
}

/// Runs every installed server and prints the results.
#[expect(clippy::disallowed_methods, reason = "the servers are on the search path of this process")]
pub(crate) fn main(rest: &[String]) -> Result<ExitCode> {
    let (mut program, mut directories, mut only) = (None, Vec::new(), Vec::new());
    let mut origin = Origin::Path;
    let mut rest = rest.iter();
    while let Some(flag) = rest.next() {
        match flag.as_str() {
            "--bin" => program = Some(PathBuf::from(crate::value(flag, &mut rest)?)),
            "--path" => directories.push(PathBuf::from(crate::value(flag, &mut rest)?)),
            "--install" => origin = Origin::Installed,
            "--only" => only.push(crate::value(flag, &mut rest)?.to_owned()),
            other => bail!("`lsp` has no flag `{other}`; see `cargo xtask --help`"),
        }
    }
    let program = match program {
        Some(path) => std::fs::canonicalize(path)?,
        None => crate::bench::build_release()?,
    };
    let own = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths(directories.into_iter().chain(std::env::split_paths(&own)))?;
    let (mut good, mut count) = (0, 0);
    let has_npm = |case: &&Case| ["typescript", "pyright"].contains(&case.id);
    let cases: Vec<&Case> = match origin {
        Origin::Path => CASES.iter().collect(),
        Origin::Installed => CASES.iter().filter(has_npm).chain(INSTALLED).collect(),
    };
    for case in cases.into_iter().filter(|case| only.is_empty() || only.iter().any(|id| id == case.id)) {
        if origin == Origin::Path && !is_installed(case, &path) {
            say(&format!("{}: skipped, because `{}` is not installed", case.id, case.program))?;
            continue;
        }
        if case.id == "vue" && !is_vue_2(&path) {
            say(
                "vue: skipped, because only version 2 of its server works without a TypeScript server of the editor",
            )?;
            continue;
        }
        count += 1;
        let begun = Instant::now();
        match case.play(&program, &path, origin) {
            Ok(edit) => {
                good += 1;
                say(&format!("{}: ok, at edit {edit} after {} s", case.id, begun.elapsed().as_secs()))?;
            }
            Err(error) => say(&format!("{}: FAILED: {error:#}", case.id))?,
        }
    }
    if origin == Origin::Installed && only.is_empty() {
        say(
            "vue: not installed by the program, because its server depends on a package from a git repository",
        )?;
    }
    say(&format!("{good} of {count}"))?;
    Ok(if good == count { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn say(line: &str) -> Result<()> {
    Ok(writeln!(std::io::stdout(), "{line}")?)
}

fn is_installed(case: &Case, path: &OsString) -> bool {
    let found = std::env::split_paths(path).any(|directory| directory.join(case.program).is_file());
    let Some(probe) = case.probe.filter(|_| found) else { return found };
    let probe = Command::new(case.program)
        .arg(probe)
        .env("PATH", path)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    probe.is_ok_and(|status| status.success())
}

/// Reports whether the language server of Vue has the version that works alone.
fn is_vue_2(path: &OsString) -> bool {
    let version = Command::new("vue-language-server").arg("--version").env("PATH", path).output();
    version.is_ok_and(|version| version.stdout.starts_with(b"2."))
}

/// Copies the user's settings of npm.
#[expect(clippy::disallowed_methods, reason = "the settings are those of the user of this process")]
fn copy_settings(project: &Project) -> Result<()> {
    let settings = PathBuf::from(std::env::var_os("HOME").unwrap_or_default()).join(".npmrc");
    if settings.is_file() {
        std::fs::copy(settings, project.home().join(".npmrc"))?;
    }
    Ok(())
}

/// Installs the packages of the project.
fn install(project: &Project, path: &OsString) -> Result<()> {
    let mut npm = Command::new("npm");
    npm.args(["install", "--ignore-scripts", "--no-audit", "--no-fund"]).env("PATH", path);
    let done = npm.current_dir(project.directory()).stdout(Stdio::null()).status()?;
    anyhow::ensure!(done.success(), "npm failed: {done}");
    Ok(())
}

impl Case {
    /// Edits a file until the error is shown. Returns the number of the edit.
    #[expect(clippy::disallowed_methods, reason = "npm trusts what it trusts outside of this process")]
    fn play(&self, program: &Path, path: &OsString, origin: Origin) -> Result<usize> {
        let mut script = Script::new();
        for edit in 0..EDITS {
            let content = format!("{}{}", "\n".repeat(edit), self.broken);
            let write = json!({"filePath": self.file, "content": content});
            let pause = json!({"command": format!("sleep {PAUSE}"), "description": "Waits"});
            script = script.turn(Turn::steps().tool("write", write)).turn(Turn::steps().tool("bash", pause));
        }
        let server = BlockingServer::start(script.text("Done."))?;
        let project = Project::git()?;
        let mut config = Project::config(&server.url());
        config["lsp"] = json!(true);
        config["sandbox"] = json!({"mode": "off"});
        if origin == Origin::Installed {
            config["lsp_install"] = json!(true);
            // A registry behind a name of this machine is reached too.
            config["sandbox"] = json!({"network": "open"});
        }
        project.write_config(&config)?;
        for (file, content) in self.files {
            project.write(file, content)?;
        }
        if origin == Origin::Installed {
            project.write(self.file, self.broken)?;
            copy_settings(&project)?;
            if self.files.iter().any(|(_, content)| content.contains("devDependencies")) {
                install(&project, path)?;
            }
            let prepared = Run::new(program, &project).args(["debug", "lsp", "diagnostics", self.file]);
            let authorities = std::env::var_os(AUTHORITIES).unwrap_or_default();
            let prepared = prepared.env("PATH", path).env(AUTHORITIES, authorities);
            prepared.deadline(LIMIT).finish()?.success()?;
        }
        Run::new(program, &project)
            .args(["run", "hi"])
            .env("PATH", path)
            .deadline(LIMIT)
            .finish()?
            .success()?;
        let mut last = String::new();
        for request in server.main_requests() {
            let messages = request.body["messages"].as_array().into_iter().flatten();
            let results = messages.filter(|message| message["role"] == "tool");
            let outputs: Vec<String> = results.map(|message| message["content"].to_string()).collect();
            let shown = outputs.iter().step_by(2).position(|output| output.contains(self.error));
            if let Some(edit) = shown {
                return Ok(edit + 1);
            }
            last = outputs.chunks(2).next_back().map_or(last, |pair| pair[0].clone());
        }
        bail!("no edit showed `{}`; the last output was {last}", self.error)
    }
}
