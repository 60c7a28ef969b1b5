//! The findings of a review: the schema of the model's answer, and their places and patches in the worktree.

use std::collections::HashMap;
use std::path::{Component, Path, PathBuf};

use codewright_proto::{Finding, Review};
use codewright_workspace::{Workspace, unified};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::permission::reading::KeptFiles;

/// The most findings of a review.
const MAX_FINDINGS: usize = 200;
/// The largest file whose lines are counted and replaced.
const MAX_FILE_BYTES: u64 = 8 << 20;

/// The schema of the model's answer.
pub(crate) fn schema() -> Value {
    let text = |about: &str| json!({ "type": "string", "description": about });
    json!({
        "type": "object",
        "required": ["summary", "findings"],
        "properties": {
            "summary": text("The judgement of the whole change in one or two sentences"),
            "findings": {
                "type": "array",
                "maxItems": MAX_FINDINGS,
                "items": {
                    "type": "object",
                    "required": ["file", "line", "severity", "title", "description"],
                    "properties": {
                        "file": text("The file, relative to the root of the repository"),
                        "line": { "type": "integer", "minimum": 1 },
                        "end_line": { "type": "integer", "minimum": 1 },
                        "severity": { "type": "string", "enum": ["low", "medium", "high", "critical"] },
                        "title": text("The problem in one line"),
                        "description": text("When it happens, and why"),
                        "original": text("The complete lines that `suggestion` replaces, exactly as in the file"),
                        "suggestion": text("The code that replaces the lines, or a sentence without `original`"),
                    },
                },
            },
        },
    })
}

/// Reads an answer that fits the schema. Corrects places and adds patches. A finding is left out if its file is not in
/// the worktree.
///
/// # Errors
///
/// Fails if the answer does not fit.
pub(crate) fn read(
    answer: &Value,
    workspace: &Workspace,
    root: &Path,
    kept: &KeptFiles,
) -> Result<Review, serde_json::Error> {
    #[derive(Deserialize)]
    struct Answer {
        summary: String,
        findings: Vec<Finding>,
    }
    let answer = Answer::deserialize(answer)?;
    let mut files = Files { workspace, root, kept, texts: HashMap::new() };
    let mut review = Review { summary: answer.summary, ..Review::default() };
    for finding in answer.findings.into_iter().take(MAX_FINDINGS) {
        let place = format!("{}:{}", finding.file, finding.line);
        match files.placed(finding) {
            Some(finding) => review.findings.push(finding),
            None => review
                .problems
                .push(format!("a finding was left out, because its file is not in this repository: {place}")),
        }
    }
    review
        .findings
        .sort_by(|a, b| b.severity.cmp(&a.severity).then_with(|| (&a.file, a.line).cmp(&(&b.file, b.line))));
    Ok(review)
}

/// The files of the worktree, each read once. `None` is a file that is too large or not text.
struct Files<'a> {
    workspace: &'a Workspace,
    root: &'a Path,
    /// Files whose content is in no patch: the model must not read them either.
    kept: &'a KeptFiles,
    texts: HashMap<PathBuf, Option<String>>,
}

impl Files<'_> {
    /// Returns the finding with a file that exists, lines inside it, and the patch of its suggestion.
    fn placed(&mut self, mut finding: Finding) -> Option<Finding> {
        let path = self.relative(&finding.file)?;
        finding.file = path.to_str()?.to_owned();
        let text = self.texts.get(&path).cloned().flatten();
        let lines = text.as_ref().map_or(u64::MAX, |text| text.split('\n').count() as u64);
        finding.line = finding.line.clamp(1, lines);
        finding.end_line = finding.end_line.map(|end| end.clamp(finding.line, lines));
        finding.patch = text.and_then(|text| patch(&finding, &text));
        Some(finding)
    }

    /// Returns the path below the root. Models write `./a`, `a/x` and `b/x` of diffs, and absolute paths.
    fn relative(&mut self, written: &str) -> Option<PathBuf> {
        let path = Path::new(written.trim());
        let path = path.strip_prefix(self.root).unwrap_or(path);
        let is_plain = |path: &Path| {
            path.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir))
        };
        let of_diff = ["a", "b"].iter().filter_map(|prefix| path.strip_prefix(prefix).ok());
        let candidates = std::iter::once(path).chain(of_diff).filter(|path| is_plain(path));
        let clean = |path: &Path| {
            path.components().filter(|part| matches!(part, Component::Normal(_))).collect::<PathBuf>()
        };
        candidates.map(clean).find(|path| !path.as_os_str().is_empty() && self.is_file(path))
    }

    /// Reads a file. A link must not lead out of the worktree.
    fn is_file(&mut self, path: &Path) -> bool {
        if self.texts.contains_key(path) {
            return true;
        }
        let Ok(held) = self.workspace.hold(&self.root.join(path)) else { return false };
        if !held.place.inside || held.file().is_err() {
            return false;
        }
        let is_kept = self.kept.has(&held.place.real) || self.kept.has(&held.place.path);
        let bytes = if is_kept { None } else { held.read(MAX_FILE_BYTES).ok() };
        let text = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
        self.texts.insert(path.to_owned(), text);
        true
    }
}

/// Returns the suggestion as a patch, if the file has the original lines. Of several places the nearest one counts.
fn patch(finding: &Finding, text: &str) -> Option<String> {
    let suggestion = finding.suggestion.as_deref()?;
    let has_returns = text.contains("\r\n");
    let native = |part: &str| {
        let part = part.trim_end_matches(['\n', '\r']).replace("\r\n", "\n");
        if has_returns { part.replace('\n', "\r\n") } else { part }
    };
    let (original, suggestion) = (native(finding.original.as_deref()?), native(suggestion));
    if original.trim().is_empty() || finding.file.chars().any(|c| c.is_control() || matches!(c, '"' | '\\')) {
        return None;
    }
    let is_whole = |at: usize| {
        let end = at + original.len();
        (at == 0 || text[..at].ends_with('\n'))
            && (text[end..].is_empty() || text[end..].starts_with(['\n', '\r']))
    };
    let line = |at: usize| text[..at].matches('\n').count() as u64 + 1;
    let places = text.match_indices(original.as_str()).map(|(at, _)| at).filter(|at| is_whole(*at));
    let at = places.min_by_key(|at| line(*at).abs_diff(finding.line))?;
    let (before, rest) = (&text[..at], &text[at + original.len()..]);
    // Without a replacement the lines go, and not only their text.
    let rest = match suggestion.is_empty() {
        true => rest.strip_prefix("\r\n").or_else(|| rest.strip_prefix('\n')).unwrap_or(rest),
        false => rest,
    };
    let new = format!("{before}{suggestion}{rest}");
    let diff = unified(&finding.file, text, &new).patch;
    let (_, hunks) = diff.split_once("\n+++ ")?;
    let (_, hunks) = hunks.split_once('\n')?;
    let file = &finding.file;
    // The tab ends a name with spaces.
    hunks.starts_with("@@").then(|| format!("--- a/{file}\t\n+++ b/{file}\t\n{hunks}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn review(root: &Path, finding: Value) -> Review {
        let answer = json!({ "summary": "s", "findings": [finding] });
        read(&answer, &Workspace::fixed(root, root), root, &KeptFiles::none()).unwrap()
    }

    fn finding(file: &str, line: u64) -> Value {
        json!({ "file": file, "line": line, "severity": "high", "title": "t", "description": "d" })
    }

    #[test]
    fn places_are_corrected_or_refused() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().canonicalize().unwrap();
        std::fs::create_dir(path.join("src")).unwrap();
        std::fs::write(path.join("src/a.rs"), "1\n2\n3").unwrap();
        std::os::unix::fs::symlink("/etc/hosts", path.join("link")).unwrap();
        let absolute = path.join("src/a.rs").display().to_string();
        for (file, line, expected) in [
            ("src/a.rs", 2, Some(("src/a.rs", 2))),
            ("./src/a.rs", 99, Some(("src/a.rs", 3))),
            ("b/src/a.rs", 1, Some(("src/a.rs", 1))),
            (&absolute, 0, Some(("src/a.rs", 1))),
            ("src/none.rs", 1, None),
            ("src", 1, None),
            ("link", 1, None),
            ("../outside", 1, None),
            ("/etc/hosts", 1, None),
            ("", 1, None),
        ] {
            let review = review(&path, finding(file, line));
            let found = review.findings.first().map(|finding| (finding.file.as_str(), finding.line));
            let is_missing = usize::from(expected.is_none());
            assert_eq!((found, review.problems.len()), (expected, is_missing), "{file}");
        }
    }

    #[test]
    fn an_answer_of_another_shape_is_refused() {
        let root = Path::new("/");
        for value in [json!({}), json!([]), json!({ "summary": "s", "findings": [{ "file": "a" }] })] {
            assert!(
                read(&value, &Workspace::fixed(root, root), root, &KeptFiles::none()).is_err(),
                "{value}"
            );
        }
    }

    #[test]
    fn a_suggestion_becomes_a_patch_of_whole_lines_next_to_the_finding() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().canonicalize().unwrap();
        std::fs::write(path.join("a b.txt"), "one\ntwo\nthree\nfour\ntwo\n").unwrap();
        std::fs::write(path.join("dos.txt"), "one\r\ntwo\r\n").unwrap();
        for (file, line, original, suggestion, expected) in [
            (
                "a b.txt",
                5,
                Some("two"),
                Some("2\n2b\n"),
                Some("@@ -1,5 +1,6 @@\n one\n two\n three\n four\n-two\n+2\n+2b\n"),
            ),
            (
                "a b.txt",
                1,
                Some("two\n"),
                Some("2"),
                Some("@@ -1,5 +1,5 @@\n one\n-two\n+2\n three\n four\n two\n"),
            ),
            (
                "a b.txt",
                3,
                Some("three"),
                Some(""),
                Some("@@ -1,5 +1,4 @@\n one\n two\n-three\n four\n two\n"),
            ),
            ("dos.txt", 1, Some("one"), Some("1"), Some("@@ -1,2 +1,2 @@\n-one\r\n+1\r\n two\r\n")),
            // A part of a line, a text that is not there, a sentence, and nothing to do.
            ("a b.txt", 2, Some("tw"), Some("x"), None),
            ("a b.txt", 2, Some("2"), Some("x"), None),
            ("a b.txt", 2, None, Some("Use another number."), None),
            ("a b.txt", 2, Some("two"), None, None),
            ("a b.txt", 2, Some("two"), Some("two"), None),
        ] {
            let mut value = finding(file, line);
            value["original"] = json!(original);
            value["suggestion"] = json!(suggestion);
            let patch = review(&path, value).findings.remove(0).patch;
            let hunks = patch.as_deref().map(|patch| patch.split_once("@@ -").unwrap().1);
            assert_eq!(hunks, expected.map(|hunks| &hunks[4..]), "{file} {line} {suggestion:?}");
        }
    }
}
