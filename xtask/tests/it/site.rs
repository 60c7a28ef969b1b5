//! The documentation site.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

use crate::{files, root};

/// The longest time of a build in milliseconds, also on a busy machine.
const MAX_MILLISECONDS: u64 = 20_000;
/// The largest page with the style sheet and the script of the search.
const MAX_PAGE_BYTES: usize = 150_000;

fn build(root: &Path, out: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_xtask"));
    command.arg("site").arg("--root").arg(root).arg("--out").arg(out).output().unwrap()
}

/// Returns the values of an attribute.
fn values<'a>(html: &'a str, attribute: &str) -> Vec<&'a str> {
    let start = format!(" {attribute}=\"");
    html.split(&start).skip(1).filter_map(|piece| piece.split('"').next()).collect()
}

/// Returns the problem of a link in a page, or `None` if its target exists.
fn problem(page: &Path, html: &str, link: &str) -> Option<String> {
    if ["https://", "http://", "mailto:"].iter().any(|scheme| link.starts_with(scheme)) {
        return None;
    }
    let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
    let target = if path.is_empty() { page.to_owned() } else { page.parent().unwrap().join(path) };
    if !target.is_file() {
        return Some(format!("{}: `{link}` does not exist", page.display()));
    }
    let text =
        if path.is_empty() { html.to_owned() } else { fs::read_to_string(&target).unwrap_or_default() };
    let is_missing = !anchor.is_empty() && !values(&text, "id").contains(&anchor);
    is_missing.then(|| format!("{}: `{link}` has no anchor", page.display()))
}

#[test]
fn the_site_is_complete_and_loads_nothing_from_elsewhere() {
    let out = TempDir::new().unwrap();
    let started = std::time::Instant::now();
    let output = build(root(), out.path());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(started.elapsed().as_millis() < u128::from(MAX_MILLISECONDS), "{:?}", started.elapsed());

    let pages = files(out.path(), "html");
    assert!(pages.len() > 50, "only {} pages were built", pages.len());
    let common: u64 = ["style.css", "search.js"]
        .iter()
        .map(|name| fs::metadata(out.path().join(name)).unwrap().len())
        .sum();
    let mut problems = Vec::new();
    for page in &pages {
        let html = fs::read_to_string(page).unwrap();
        let is_listing = page.file_name().unwrap() == "index.html" && page.parent() != Some(out.path());
        assert!(is_listing || page.with_extension("md").is_file(), "{}", page.display());
        assert!(html.contains("content=\"default-src 'none'; script-src 'self'; "), "{}", page.display());
        assert!(html.len() + usize::try_from(common).unwrap() <= MAX_PAGE_BYTES, "{}", page.display());
        for loaded in values(&html, "src") {
            assert!(!loaded.contains("//"), "{}: `{loaded}`", page.display());
        }
        let links = values(&html, "href").into_iter().chain(values(&html, "src"));
        problems.extend(links.filter_map(|link| problem(page, &html, link)));
    }
    assert_eq!(problems, [""; 0]);
    for name in
        ["llms.txt", "search-index.js", "docs/undo.md", "index.md", "README.html", "ARCHITECTURE.html"]
    {
        assert!(out.path().join(name).is_file(), "{name}");
    }
    for document in files(&root().join("docs"), "md") {
        let path = document.strip_prefix(root()).unwrap();
        assert!(out.path().join(path.with_extension("html")).is_file(), "{}", path.display());
    }
}

#[test]
fn the_list_for_models_names_existing_pages() {
    let out = TempDir::new().unwrap();
    assert!(build(root(), out.path()).status.success());
    let list = fs::read_to_string(out.path().join("llms.txt")).unwrap();
    assert!(list.starts_with("# Codewright\n\n> "));
    let links: Vec<_> = list.split("](").skip(1).filter_map(|piece| piece.split(')').next()).collect();
    assert!(links.len() > 40, "{links:?}");
    let missing: Vec<_> = links.iter().filter(|link| !out.path().join(link).is_file()).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn every_task_has_a_page_with_its_time_and_a_check() {
    let docs = root().join("docs");
    let list = fs::read_to_string(docs.join("tasks.md")).unwrap();
    let rows: Vec<_> =
        list.lines().filter(|line| line.contains("](")).filter(|line| line.starts_with('|')).collect();
    assert!(rows.len() >= 15, "{rows:?}");
    for row in rows {
        let page = row.split("](").nth(1).and_then(|rest| rest.split(')').next()).unwrap();
        let time = row.trim_end_matches(" |").rsplit("| ").next().unwrap();
        let text = fs::read_to_string(docs.join(page)).unwrap();
        assert!(text.contains(&format!("akes {time}")), "{page} does not say that it takes {time}");
        assert!(text.contains("# Check that it works\n"), "{page} has no check");
    }
}

/// A repository with the documents that the site needs, and others.
fn repository(others: &[(&str, &str)]) -> (TempDir, PathBuf) {
    let scratch = TempDir::new().unwrap();
    let own = [
        ("README.md", "# Read me\n"),
        ("ARCHITECTURE.md", "# Architecture\n"),
        (
            "docs/README.md",
            "# Documents\n\n## Start\n\n- [A](a.md)\n- [B](../ARCHITECTURE.md)\n- [C](../README.md)\n",
        ),
        ("docs/a.md", "# A\n\nText.\n"),
        ("xtask/src/site/home.md", "# Home\n\n[All](docs/README.md)\n"),
    ];
    for (path, text) in own.iter().chain(others) {
        let path = scratch.path().join("repository").join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let repository = scratch.path().join("repository");
    (scratch, repository)
}

#[track_caller]
fn check(others: &[(&str, &str)], expected: &str) {
    let (scratch, repository) = repository(others);
    let out = scratch.path().join("out");
    let output = build(&repository, &out);
    let errors = String::from_utf8_lossy(&output.stderr);
    if expected.is_empty() {
        assert!(output.status.success() && out.join("docs/a.html").is_file(), "{errors}");
    } else {
        assert!(!output.status.success() && !out.exists(), "{others:?}");
        assert!(errors.contains(expected), "{errors}");
    }
}

#[test]
fn broken_documents_fail_the_build() {
    check(&[], "");
    check(&[("docs/a.md", "# A\n\n[x](b.md)\n")], "docs/a.md: the link to `docs/b.md` is broken");
    check(&[("docs/a.md", "# A\n\n[x](#b)\n")], "docs/a.md: `docs/a.md` has no anchor `#b`");
    check(&[("docs/a.md", "# A\n\n[x](../README.md#b)\n")], "docs/a.md: `README.md` has no anchor `#b`");
    check(&[("docs/b.md", "# B\n")], "docs/b.md: no page links to it");
    check(&[("docs/a.md", "# A\n\n![x](https://example.org/x.png)\n")], "is on another site");
    check(&[("docs/a.md", "# A\n\n<img src=x onerror=y>\n")], "raw HTML");
    check(&[("docs/a.md", &format!("# A\n\n{}\n", "word ".repeat(30_000)))], "docs/a.html: weighs");
}

#[test]
fn broken_snippets_and_commands_fail_the_build() {
    let page = |language: &str, text: &str| format!("# A\n\n```{language}\n{text}\n```\n");
    check(&[("docs/a.md", &page("json", "{\"model\": \"a/b\"}"))], "");
    check(&[("docs/a.md", &page("json file=x.json", "{\"x\": 1}"))], "");
    check(&[("docs/a.md", &page("json", "{\"model\": "))], "docs/a.md: ");
    check(
        &[("docs/a.md", &page("jsonc", "{\"permission\": {\"edit\": \"perhaps\"}} // c"))],
        "permission.edit",
    );
    check(&[("docs/a.md", &page("json", "{\"zzz\": 1}"))], "unknown key `zzz`");
    let cli =
        "# Commands\n\n## `codewright run`\n\n| argument | meaning |\n|---|---|\n| `--model NAME` | m |\n";
    let with_cli = |script: &str| {
        let text = format!("{}\n[c](cli.md)\n", page("sh", script));
        let (scratch, repository) = repository(&[("docs/a.md", &text), ("docs/cli.md", cli)]);
        build(&repository, &scratch.path().join("out")).status.success()
    };
    assert!(with_cli("codewright run --model a/b \"x\""));
    assert!(!with_cli("codewright run --modle a/b \"x\""));
    assert!(!with_cli("codewright rum"));
}

#[test]
fn only_its_own_directory_is_replaced() {
    let (scratch, repository) = repository(&[]);
    let out = scratch.path().join("out");
    assert!(build(&repository, &out).status.success());
    fs::write(out.join("stale.html"), "").unwrap();
    assert!(build(&repository, &out).status.success());
    assert!(!out.join("stale.html").exists());

    let other = scratch.path().join("other");
    fs::create_dir(&other).unwrap();
    fs::write(other.join("precious"), "").unwrap();
    let output = build(&repository, &other);
    assert!(!output.status.success() && other.join("precious").is_file());
    assert!(String::from_utf8_lossy(&output.stderr).contains("is not empty"));
}
