//! The findings of a review, as the model submits them.

use std::path::{Component, Path, PathBuf};

use anyhow::Context as _;
use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The most findings of a review.
const MAX_FINDINGS: usize = 200;
/// The largest file whose lines are counted.
const MAX_FILE_BYTES: u64 = 8 << 20;

/// A review.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(super) struct Review {
    /// A short judgement of the whole change.
    pub(super) summary: String,
    /// The findings, most severe first.
    pub(super) findings: Vec<Finding>,
}

/// A problem in a changed file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Finding {
    /// The file, relative to the root of the repository.
    pub(super) file: String,
    /// The first and the last line, from 1.
    pub(super) line: u64,
    #[serde(default)]
    pub(super) end_line: Option<u64>,
    pub(super) severity: Severity,
    /// The problem in one line.
    pub(super) title: String,
    /// When it happens, and why.
    pub(super) description: String,
    /// The replacement of the lines, or a sentence.
    #[serde(default)]
    pub(super) suggestion: Option<String>,
}

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Severity {
    /// A detail.
    Low,
    /// A problem in rare situations.
    Medium,
    /// A bug that users meet.
    High,
    /// Loss of data, a security hole or a crash.
    Critical,
}

impl Severity {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Critical => "critical",
        }
    }
}

/// The schema of the model's answer.
pub(super) fn schema() -> Value {
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
                        "suggestion": text("The code that replaces the lines, or a sentence"),
                    },
                },
            },
        },
    })
}

impl Review {
    /// Reads an answer that fits the schema. Corrects places, and returns a line for each finding that it has to leave
    /// out, because its file is not in the worktree.
    ///
    /// # Errors
    ///
    /// Fails if the answer does not fit.
    pub(super) fn read(answer: &Value, root: &Path) -> anyhow::Result<(Self, Vec<String>)> {
        #[derive(Deserialize)]
        struct Answer {
            summary: String,
            findings: Vec<Finding>,
        }
        let answer = Answer::deserialize(answer).context("the review failed: the findings cannot be read")?;
        let mut problems = Vec::new();
        let mut findings = Vec::new();
        for finding in answer.findings.into_iter().take(MAX_FINDINGS) {
            let place = format!("{}:{}", finding.file, finding.line);
            match placed(finding, root) {
                Some(finding) => findings.push(finding),
                None => problems.push(format!(
                    "a finding was left out, because its file is not in this repository: {}",
                    crate::clean::clean_line(&place)
                )),
            }
        }
        findings.sort_by(|a, b| {
            b.severity.cmp(&a.severity).then_with(|| (&a.file, a.line).cmp(&(&b.file, b.line)))
        });
        Ok((Self { summary: answer.summary, findings }, problems))
    }
}

/// Returns the finding with a file that exists and lines inside it.
fn placed(mut finding: Finding, root: &Path) -> Option<Finding> {
    let path = relative(&finding.file, root)?;
    let lines = lines(&root.join(&path))?.max(1);
    finding.file = path.to_str()?.to_owned();
    finding.line = finding.line.clamp(1, lines);
    finding.end_line = finding.end_line.map(|end| end.clamp(finding.line, lines));
    Some(finding)
}

/// Returns the path below the root. Models write `./a`, `a/x` and `b/x` of diffs, and absolute paths.
fn relative(written: &str, root: &Path) -> Option<PathBuf> {
    let path = Path::new(written.trim());
    let path = path.strip_prefix(root).unwrap_or(path);
    let is_plain =
        |path: &Path| path.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    let of_diff = ["a", "b"].iter().filter_map(|prefix| path.strip_prefix(prefix).ok());
    let candidates = std::iter::once(path).chain(of_diff).filter(|path| is_plain(path));
    let clean = |path: &Path| {
        path.components().filter(|part| matches!(part, Component::Normal(_))).collect::<PathBuf>()
    };
    candidates.map(clean).find(|path| !path.as_os_str().is_empty() && root.join(path).is_file())
}

fn lines(path: &Path) -> Option<u64> {
    // A link could lead out of the worktree.
    let facts = std::fs::symlink_metadata(path).ok()?;
    if !facts.is_file() {
        return None;
    }
    if facts.len() > MAX_FILE_BYTES {
        return Some(u64::MAX);
    }
    let bytes = std::fs::read(path).ok()?;
    Some(bytes.split(|byte| *byte == b'\n').count() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(file: &str, line: u64) -> Value {
        json!({ "summary": "s", "findings": [
            { "file": file, "line": line, "severity": "high", "title": "t", "description": "d" },
        ] })
    }

    #[test]
    fn places_are_corrected_or_refused() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("src")).unwrap();
        std::fs::write(root.path().join("src/a.rs"), "1\n2\n3").unwrap();
        let absolute = root.path().join("src/a.rs").display().to_string();
        for (file, line, expected) in [
            ("src/a.rs", 2, Some(("src/a.rs", 2))),
            ("./src/a.rs", 99, Some(("src/a.rs", 3))),
            ("b/src/a.rs", 1, Some(("src/a.rs", 1))),
            (&absolute, 0, Some(("src/a.rs", 1))),
            ("src/none.rs", 1, None),
            ("../outside", 1, None),
            ("/etc/hosts", 1, None),
            ("", 1, None),
        ] {
            let (review, problems) = Review::read(&answer(file, line), root.path()).unwrap();
            let found = review.findings.first().map(|finding| (finding.file.as_str(), finding.line));
            assert_eq!((found, problems.len()), (expected, usize::from(expected.is_none())), "{file}");
        }
    }

    #[test]
    fn an_answer_of_another_shape_is_refused() {
        for value in [json!({}), json!([]), json!({ "summary": "s", "findings": [{ "file": "a" }] })] {
            assert!(Review::read(&value, Path::new("/")).is_err(), "{value}");
        }
    }
}
