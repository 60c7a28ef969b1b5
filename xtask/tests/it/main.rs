//! Checks of the workspace, and tests of the commands of `xtask`.

#![expect(clippy::unwrap_used, reason = "a panic fails the test")]

mod architecture;
mod arrows;
mod bench;
mod deploy;
mod files;
mod git;
mod layers;
mod links;
mod measuring;
mod parameters;
mod parity;
mod pictures;
mod plugin_host;
mod site;
mod spawns;
mod starts;
mod web;

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// Returns the directory of the workspace.
fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask is in the workspace")
}

/// Returns the packages of the workspace as `cargo metadata` describes them.
fn packages() -> Vec<Value> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["metadata", "--offline", "--no-deps", "--format-version", "1"]).current_dir(root());
    let output = cargo.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let packages = metadata["packages"].take();
    packages.as_array().filter(|packages| !packages.is_empty()).expect("there are packages").clone()
}

/// Returns every file with an extension under a directory, sorted, without hidden and generated directories.
fn files(directory: &Path, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut left = vec![directory.to_owned()];
    while let Some(directory) = left.pop() {
        for entry in directory.read_dir().unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if name.starts_with('.') || name == "target" || name == "node_modules" {
                continue;
            }
            if path.is_dir() {
                left.push(path);
            } else if path.extension().is_some_and(|own| own == extension) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// Formats a path for a message, relative to the workspace.
fn display(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}
