//! The npm packages: one with a starter, and one with the program for each system. None has an install script.

use std::collections::BTreeMap;

use anyhow::Result;
use serde_json::{Value, json};

use super::Release;
use super::archive::{Entry, tar_gz};
use super::contents::Contents;
use super::target::Target;

/// The starter. On systems where a process can replace itself nothing stays behind; Node cannot, so the starter waits and
/// passes on signals and the exit code. Scripts can call the program itself, whose path `--print-path` prints.
const STARTER: &str = include_str!("../../../packaging/npm/codewright.js");

/// The package for one system.
pub(super) fn platform(release: &Release, target: &Target, contents: &Contents) -> Result<()> {
    let (name, system, processor, libc) = target.npm;
    let mut manifest = json!({
        "name": format!("@codewright/{name}"),
        "version": release.version,
        "description": format!("The program of codewright for {name}."),
        "license": "MIT",
        "os": [system],
        "cpu": [processor],
        "files": ["bin"],
        "preferUnplugged": true,
    });
    if let Some(libc) = libc {
        manifest["libc"] = json!([libc]);
    }
    let files = vec![
        Entry::program(format!("package/bin/{}", target.program()), contents.program.clone()),
        Entry::file("package/LICENSES.txt", contents.licences.clone()),
    ];
    pack(release, &format!("codewright-{name}"), manifest, files)
}

/// The package that users install.
pub(super) fn main(release: &Release, targets: &[&Target]) -> Result<()> {
    let optional: BTreeMap<String, &str> = targets
        .iter()
        .map(|target| (format!("@codewright/{}", target.npm.0), release.version.as_str()))
        .collect();
    let manifest = json!({
        "name": "codewright",
        "version": release.version,
        "description": "An AI coding agent for your terminal.",
        "license": "MIT",
        "bin": { "codewright": "bin/codewright.js" },
        "files": ["bin"],
        "engines": { "node": ">=18" },
        "optionalDependencies": optional,
    });
    let files = vec![Entry::program("package/bin/codewright.js", STARTER)];
    pack(release, "codewright", manifest, files)
}

fn pack(release: &Release, name: &str, manifest: Value, mut files: Vec<Entry>) -> Result<()> {
    files.push(Entry::file("package/package.json", serde_json::to_vec_pretty(&manifest)?));
    files.push(Entry::file("package/LICENSE", std::fs::read(release.root.join("LICENSE"))?));
    let text = "An AI coding agent for your terminal. See the documentation of the project.\n";
    files.push(Entry::file("package/README.md", text));
    release.write(&format!("npm-{name}-{}.tgz", release.version), &tar_gz(&files, release.time)?)?;
    Ok(())
}
