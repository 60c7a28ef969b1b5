//! The checked-in build of the web app: it belongs to its sources, and its table lists its files. Needs no Node.

use std::fs;
use std::path::{Path, PathBuf};

use ring::digest::{Context, SHA256};

use crate::{display, root};

/// The files and directories that the build depends on. `web/tools/pack.mjs` has the same list.
const SOURCES: [&str; 8] = [
    "index.html",
    "package.json",
    "package-lock.json",
    "public",
    "src",
    "tools/pack.mjs",
    "tsconfig.json",
    "vite.config.ts",
];

/// Adds the files of a path.
fn collect(path: &Path, found: &mut Vec<PathBuf>) {
    if path.is_dir() {
        for entry in path.read_dir().unwrap() {
            collect(&entry.unwrap().path(), found);
        }
    } else if path.exists() {
        found.push(path.to_owned());
    }
}

/// Returns the digest of all sources: of each name, length and content, in the order of the names.
fn digest(web: &Path) -> String {
    let mut files = Vec::new();
    for source in SOURCES {
        collect(&web.join(source), &mut files);
    }
    let mut named: Vec<_> = files
        .iter()
        .map(|path| (path.strip_prefix(web).unwrap().display().to_string().replace('\\', "/"), path))
        .collect();
    named.sort();
    let mut context = Context::new(&SHA256);
    for (name, path) in named {
        let content = fs::read(path).unwrap();
        context.update(format!("{name}\0{}\0", content.len()).as_bytes());
        context.update(&content);
    }
    context.finish().as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn the_build_of_the_web_app_belongs_to_its_sources() {
    let web = root().join("web");
    let stored = fs::read_to_string(web.join("dist/sources.sha256")).unwrap();
    assert_eq!(stored.trim(), digest(&web), "build the web app: `cd web && npm ci && npm run build`");
}

#[test]
fn every_built_file_is_in_the_table() {
    let dist = root().join("web/dist");
    let table = fs::read_to_string(dist.join("files.rs")).unwrap();
    let mut files = Vec::new();
    collect(&dist, &mut files);
    for path in files {
        let name = path.strip_prefix(&dist).unwrap().display().to_string();
        let is_listed = table.contains(&format!("include_bytes!(\"{name}\")"));
        assert!(is_listed || name == "files.rs" || name == "sources.sha256", "{}", display(&path));
    }
}
