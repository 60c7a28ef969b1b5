//! The pages and files of the site.
//!
//! The pages are the documents below `docs/`, some of the root, and every document that one of them links to. Files and
//! directories that a page links to are part of the site too.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use super::home;
use super::render::{Page, render};

/// The source of the home page, whose links start at the root of the repository, and its place in the site.
const HOME: &str = "xtask/src/site/home.md";
pub(super) const HOME_PATH: &str = "index.md";
/// The list of pages.
pub(super) const INDEX: &str = "docs/README.md";
/// The documents of the root that are pages.
const AT_ROOT: [&str; 2] = ["README.md", "ARCHITECTURE.md"];
/// The largest file that a page may link to.
const MAX_FILE_BYTES: u64 = 1024 * 1024;

/// A link to a place of this site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Target {
    /// The path from the root of the repository.
    pub path: String,
    /// The anchor, without `#`. Empty for the start of the page.
    pub anchor: String,
}

pub(super) struct Site {
    pub root: PathBuf,
    /// The pages by their path.
    pub pages: BTreeMap<String, Page>,
    /// The other files that pages link to.
    pub files: BTreeSet<String>,
    /// The directories that pages link to, with their entries.
    pub directories: BTreeMap<String, Vec<String>>,
    missing: Vec<String>,
}

impl Site {
    pub(super) fn read(root: &Path) -> Result<Self> {
        let mut site = Self {
            root: root.to_owned(),
            pages: BTreeMap::new(),
            files: BTreeSet::new(),
            directories: BTreeMap::new(),
            missing: Vec::new(),
        };
        let mut left: VecDeque<String> = AT_ROOT.iter().map(|path| (*path).to_owned()).collect();
        left.extend(documents(root, "docs")?);
        let text = std::fs::read_to_string(root.join(HOME)).with_context(|| format!("reading `{HOME}`"))?;
        let measured = std::fs::read_to_string(root.join("docs/measurements.md")).unwrap_or_default();
        site.add(render(HOME_PATH, &home::with_figures(&text, &measured)?), &mut left)?;
        while let Some(path) = left.pop_front() {
            if site.pages.contains_key(&path) {
                continue;
            }
            let text =
                std::fs::read_to_string(root.join(&path)).with_context(|| format!("reading `{path}`"))?;
            site.add(render(&path, &text), &mut left)?;
        }
        Ok(site)
    }

    /// Adds a page and what it links to.
    fn add(&mut self, page: Page, left: &mut VecDeque<String>) -> Result<()> {
        for link in &page.links {
            let path = &link.target.path;
            // The home page exists only in the site.
            let on_disk = self.root.join(path);
            if path == HOME_PATH {
                continue;
            } else if on_disk.is_dir() {
                self.add_directory(path)?;
            } else if !on_disk.is_file() {
                self.missing.push(format!("{}: the link to `{path}` is broken", page.path));
            } else if path.ends_with(".md") {
                left.push_back(path.clone());
            } else if on_disk.metadata()?.len() > MAX_FILE_BYTES {
                bail!("`{path}` is too large for the site; do not link to it in `{}`", page.path);
            } else {
                self.files.insert(path.clone());
            }
        }
        self.pages.insert(page.path.clone(), page);
        Ok(())
    }

    /// Adds a directory with its files, without the hidden ones.
    fn add_directory(&mut self, path: &str) -> Result<()> {
        if self.directories.contains_key(path) {
            return Ok(());
        }
        let mut names = Vec::new();
        for entry in self.root.join(path).read_dir()? {
            let name = entry?.file_name().into_string().ok().context("a file name is not UTF-8")?;
            let is_hidden =
                name.starts_with('.') || matches!(name.as_str(), "node_modules" | "target" | "out");
            if !is_hidden {
                names.push(name);
            }
        }
        names.sort();
        self.directories.insert(path.to_owned(), names.clone());
        for name in names {
            let below = format!("{path}/{name}");
            let on_disk = self.root.join(&below);
            if on_disk.is_dir() {
                self.add_directory(&below)?;
            } else if on_disk.metadata()?.len() <= MAX_FILE_BYTES {
                self.files.insert(below);
            }
        }
        Ok(())
    }

    /// Returns broken links and anchors, and pages that no other page links to.
    pub(super) fn faults(&self) -> Vec<String> {
        let mut faults = self.missing.clone();
        let mut reached = BTreeSet::from([HOME_PATH.to_owned()]);
        let mut left = vec![HOME_PATH.to_owned()];
        while let Some(page) = left.pop().and_then(|path| self.pages.get(&path)) {
            for target in page.links.iter().map(|link| &link.target) {
                if self.pages.contains_key(&target.path) && reached.insert(target.path.clone()) {
                    left.push(target.path.clone());
                }
            }
        }
        for page in self.pages.values() {
            faults.extend(page.faults.iter().map(|fault| format!("{}: {fault}", page.path)));
            if !reached.contains(&page.path) {
                faults.push(format!("{}: no page links to it", page.path));
            }
            for Target { path, anchor } in page.links.iter().map(|link| &link.target) {
                let has_anchor = |page: &Page| page.headings.iter().any(|heading| heading.id == *anchor);
                let is_broken =
                    !anchor.is_empty() && self.pages.get(path).is_some_and(|page| !has_anchor(page));
                if is_broken {
                    faults.push(format!("{}: `{path}` has no anchor `#{anchor}`", page.path));
                }
            }
        }
        faults
    }
}

/// Returns the path of a page's document in the site.
pub(super) fn html_path(path: &str) -> String {
    path.strip_suffix(".md").map_or_else(|| path.to_owned(), |stem| format!("{stem}.html"))
}

/// Returns the documents below a directory.
fn documents(root: &Path, directory: &str) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for entry in root.join(directory).read_dir().with_context(|| format!("reading `{directory}`"))? {
        let entry = entry?;
        let name = entry.file_name().into_string().ok().context("a file name is not UTF-8")?;
        let path = format!("{directory}/{name}");
        if entry.path().is_dir() {
            found.extend(documents(root, &path)?);
        } else if name.ends_with(".md") {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// Resolves a link of a page. Returns `None` for other sites.
pub(super) fn resolve(page: &str, link: &str) -> Option<Target> {
    if link.contains("://") || link.starts_with("mailto:") {
        return None;
    }
    let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
    let target = |path: String| Some(Target { path, anchor: anchor.to_owned() });
    if path.is_empty() {
        return target(page.to_owned());
    }
    let mut segments: Vec<&str> = page.split('/').collect();
    segments.pop();
    if path.starts_with('/') {
        segments.clear();
    }
    for segment in path.split('/') {
        match segment {
            "" | "." => {}
            ".." if segments.last().is_some_and(|last| *last != "..") => {
                segments.pop();
            }
            other => segments.push(other),
        }
    }
    target(segments.join("/"))
}

/// Returns a relative address of a path of the site.
pub(super) fn relative(from: &str, to: &str) -> String {
    let (from, to): (Vec<&str>, Vec<&str>) = (from.split('/').collect(), to.split('/').collect());
    let shared = from[..from.len() - 1].iter().zip(&to[..to.len() - 1]).take_while(|(a, b)| a == b).count();
    let mut pieces = vec![".."; from.len() - 1 - shared];
    pieces.extend(&to[shared..]);
    pieces.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_resolved_from_their_page() {
        let target = |link| resolve("docs/guides/mcp.md", link).map(|target| (target.path, target.anchor));
        let owned = |path: &str, anchor: &str| Some((path.to_owned(), anchor.to_owned()));
        assert_eq!(target("../undo.md#a"), owned("docs/undo.md", "a"));
        assert_eq!(target("#a"), owned("docs/guides/mcp.md", "a"));
        assert_eq!(target("../../README.md"), owned("README.md", ""));
        assert_eq!(target("/deploy/x"), owned("deploy/x", ""));
        assert_eq!(target("../../../etc/passwd"), owned("../etc/passwd", ""));
        assert_eq!(target("https://example.org/#a"), None);
    }

    #[test]
    fn addresses_are_relative() {
        assert_eq!(relative("docs/guides/mcp.html", "docs/undo.html"), "../undo.html");
        assert_eq!(relative("docs/guides/mcp.html", "docs/guides/lsp.html"), "lsp.html");
        assert_eq!(relative("docs/guides/mcp.html", "style.css"), "../../style.css");
        assert_eq!(relative("index.html", "docs/undo.html"), "docs/undo.html");
    }
}
