//! The house's own rules, held against the tree, and the measurements at
//! their face.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod arrows;
mod bench;
mod files;
mod git;
mod layers;
mod links;
mod measuring;
mod pictures;

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// The workspace's directory.
fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the workspace")
}

/// What cargo says of the workspace's packages.
fn packages() -> Vec<Value> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["metadata", "--offline", "--no-deps", "--format-version", "1"]).current_dir(root());
    let output = cargo.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let packages = metadata["packages"].take();
    packages.as_array().filter(|packages| !packages.is_empty()).expect("there are packages").clone()
}

/// Every file below a directory that has this extension, sorted; what is hidden or was made
/// by tools is left out.
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

/// A path as it is written in a message.
fn shown(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}
