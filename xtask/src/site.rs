//! Builds the documentation site: static pages made from the documents of the repository.
//!
//! The documents stay the source. Every page keeps its path, gets the extension `html`, and is also there as Markdown.
//! Nothing is loaded from another origin, and no network is needed. A broken link or anchor, a page that nothing links
//! to, a snippet of configuration that the program would reject, and a command line that does not exist are faults:
//! then nothing is written.

mod commands;
mod home;
mod layout;
mod pages;
mod render;
mod search;
mod snippets;

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context as _, Result, bail};

use pages::Site;

/// The largest page: its document, the style sheet and the script, without pictures below the first view and the index
/// of the search, which are loaded when they are needed.
const MAX_PAGE_BYTES: usize = 150_000;
/// Code in the documents that begins like a command line of the program: its output, and a flag of the starter for npm.
const OTHER_CODE: [&str; 2] = ["codewright server listening", "codewright --print-path"];
/// A file that marks a directory as one that this command wrote and may replace.
const MARK: &str = ".codewright-site";

/// A file of the site: its path and its content.
type Files = BTreeMap<String, Vec<u8>>;

pub(crate) fn main(rest: &[String]) -> Result<ExitCode> {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("xtask has a parent")?;
    let (mut root, mut out) = (workspace.to_owned(), workspace.join("target/site"));
    let mut rest = rest.iter();
    while let Some(flag) = rest.next() {
        match flag.as_str() {
            "--out" => out = PathBuf::from(crate::value(flag, &mut rest)?),
            "--root" => root = PathBuf::from(crate::value(flag, &mut rest)?),
            other => bail!("`site` has no flag `{other}`; see `cargo xtask --help`"),
        }
    }
    let started = Instant::now();
    let site = Site::read(&root)?;
    let files = files(&site)?;
    let faults = faults(&site, &files);
    if !faults.is_empty() {
        for fault in &faults {
            writeln!(std::io::stderr(), "{fault}")?;
        }
        bail!("{} faults; the site was not written", faults.len());
    }
    write(&out, &files)?;
    let bytes: usize = files.values().map(Vec::len).sum();
    writeln!(
        std::io::stdout(),
        "{} pages, {} files, {} kB in {}; {} ms",
        site.pages.len(),
        files.len(),
        bytes / 1000,
        out.display(),
        started.elapsed().as_millis()
    )?;
    Ok(ExitCode::SUCCESS)
}

/// Returns every file of the site.
fn files(site: &Site) -> Result<Files> {
    let mut files = Files::new();
    for page in site.pages.values() {
        files.insert(pages::html_path(&page.path), layout::page(site, page).into_bytes());
        files.insert(page.path.clone(), page.markdown.clone().into_bytes());
    }
    for path in &site.files {
        let content = std::fs::read(site.root.join(path)).with_context(|| format!("reading `{path}`"))?;
        files.insert(path.clone(), content);
    }
    for (path, entries) in &site.directories {
        let page = layout::listing(site, path, entries);
        files.insert(format!("{path}/index.html"), page.into_bytes());
    }
    files.insert("search-index.js".to_owned(), search::index(site)?.into_bytes());
    files.insert("llms.txt".to_owned(), layout::llms(site).into_bytes());
    files.insert("style.css".to_owned(), layout::STYLE.into());
    files.insert("search.js".to_owned(), search::SCRIPT.into());
    Ok(files)
}

/// Returns every fault of the site, sorted.
fn faults(site: &Site, files: &Files) -> Vec<String> {
    let mut faults = site.faults();
    let cli = site.pages.get("docs/cli.md").map(|page| commands::Commands::read(&page.markdown));
    for page in site.pages.values() {
        for block in &page.blocks {
            let problem = match block.language() {
                "json" | "jsonc" => snippets::problem(block),
                "sh" => cli.as_ref().and_then(|cli| cli.problem(&block.text)),
                "console" => cli.as_ref().and_then(|cli| cli.problem(&typed(&block.text))),
                _ => None,
            };
            faults.extend(problem.map(|problem| format!("{}: {problem}", page.path)));
        }
        let is_command = |code: &&String| {
            code.starts_with("codewright ") && !OTHER_CODE.iter().any(|other| code.starts_with(other))
        };
        for code in page.codes.iter().filter(is_command) {
            let problem = cli.as_ref().and_then(|cli| cli.problem(code));
            faults.extend(problem.map(|problem| format!("{}: {problem}", page.path)));
        }
    }
    let common = files["style.css"].len() + files["search.js"].len();
    for (path, content) in files.iter().filter(|(path, _)| path.ends_with(".html")) {
        let weight = content.len() + common;
        if weight > MAX_PAGE_BYTES {
            faults.push(format!("{path}: weighs {weight} bytes, more than {MAX_PAGE_BYTES}"));
        }
    }
    faults.sort();
    faults
}

/// Returns the lines of a recorded terminal that the user typed.
fn typed(recording: &str) -> String {
    recording.lines().filter_map(|line| line.strip_prefix("$ ")).collect::<Vec<_>>().join("\n")
}

/// Replaces a directory by the files.
fn write(out: &Path, files: &Files) -> Result<()> {
    if out.join(MARK).exists() {
        std::fs::remove_dir_all(out).with_context(|| format!("removing `{}`", out.display()))?;
    }
    if out.read_dir().is_ok_and(|mut entries| entries.next().is_some()) {
        bail!(
            "`{}` is not empty and was not made by `cargo xtask site`; name another directory",
            out.display()
        );
    }
    for (path, content) in files {
        let path = out.join(path);
        let parent = path.parent().context("a file has a directory")?;
        std::fs::create_dir_all(parent).with_context(|| format!("creating `{}`", parent.display()))?;
        std::fs::write(&path, content).with_context(|| format!("writing `{}`", path.display()))?;
    }
    std::fs::write(out.join(MARK), "").context("marking the directory")?;
    Ok(())
}
