//! The errors of changed files, as text for the model.
//!
//! Errors that the change brought come first. Files that were not changed are named only if they got worse. A text of a
//! server cannot end the block that contains it.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::diagnostic::Diagnostic;

/// The errors of a file that are shown.
const MAX_SHOWN: usize = 20;
/// The other files that are shown.
const MAX_OTHERS: usize = 5;
/// The files of a summary.
const MAX_SUMMARIZED: usize = 10;
/// The name of the block.
const TAG: &str = "diagnostics";
/// Replaces the first character of a tag.
const MARK: char = '\u{2039}';

/// The diagnostics of some files at some time.
pub(crate) type Files = HashMap<PathBuf, Vec<Diagnostic>>;

/// The result of a change.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Report {
    /// The text for the model. Empty if there are no errors.
    pub text: String,
    /// The diagnostics of the shown files, the new ones first.
    pub files: Vec<(PathBuf, Vec<Diagnostic>)>,
}

/// Compares the diagnostics before and after a change of `changed`.
pub(crate) fn report(changed: &[PathBuf], before: &Files, after: &Files) -> Report {
    let sorted = |path: &Path| {
        let old = before.get(path).map(Vec::as_slice).unwrap_or_default();
        let list = after.get(path).map(Vec::as_slice).unwrap_or_default();
        worse_first(old, list)
    };
    let mut report = Report::default();
    for (heading, path) in changed.iter().map(|path| ("in this file, please fix", path)) {
        let (list, _) = sorted(path);
        add(&mut report, heading, path, list);
    }
    let mut others: Vec<&PathBuf> = after.keys().filter(|path| !changed.contains(path)).collect();
    others.sort();
    let worse = others.into_iter().map(|path| (path, sorted(path))).filter(|(_, (_, worse))| *worse > 0);
    let mut is_first = true;
    for (path, (list, _)) in worse.take(MAX_OTHERS) {
        add(&mut report, if is_first { "in other files" } else { "" }, path, list);
        is_first = false;
    }
    report
}

/// Returns the errors of all files as text, or `None` without errors.
pub(crate) fn summary(files: &Files) -> Option<String> {
    let mut paths: Vec<&PathBuf> = files.keys().collect();
    paths.sort();
    let mut texts = Vec::new();
    let mut left = 0_usize;
    for path in paths {
        let errors: Vec<_> = files[path].iter().filter(|diagnostic| diagnostic.is_error()).collect();
        if errors.is_empty() {
            continue;
        }
        if texts.len() < MAX_SUMMARIZED {
            texts.push(block(path, &errors));
        } else {
            left += 1;
        }
    }
    if left > 0 {
        texts.push(format!("\n... and errors in {left} more files"));
    }
    (!texts.is_empty()).then(|| texts.concat().trim_start().to_owned())
}

fn add(report: &mut Report, heading: &str, path: &Path, list: Vec<Diagnostic>) {
    if list.is_empty() {
        return;
    }
    let errors: Vec<&Diagnostic> = list.iter().filter(|diagnostic| diagnostic.is_error()).collect();
    if !errors.is_empty() {
        if !heading.is_empty() {
            report.text.push_str(&format!("\n\nLSP errors detected {heading}:"));
        }
        report.text.push_str(&block(path, &errors));
    }
    report.files.push((path.to_owned(), list));
}

/// The errors of a file in a block.
fn block(path: &Path, errors: &[&Diagnostic]) -> String {
    let name = neutral(&path.to_string_lossy()).replace('"', "'");
    let mut text = format!("\n<{TAG} file=\"{name}\">");
    for error in errors.iter().take(MAX_SHOWN) {
        text.push_str(&format!("\n{}", line(error)));
    }
    if errors.len() > MAX_SHOWN {
        text.push_str(&format!("\n... and {} more", errors.len() - MAX_SHOWN));
    }
    text.push_str(&format!("\n</{TAG}>"));
    text
}

/// The diagnostics of a file, one a line, errors first.
pub(crate) fn lines(list: &[Diagnostic], limit: usize) -> String {
    let mut sorted: Vec<&Diagnostic> = list.iter().collect();
    sorted.sort_by_key(|one| one.level());
    let mut text: Vec<String> = sorted.iter().take(limit).map(|one| line(one)).collect();
    if sorted.len() > limit {
        text.push(format!("... and {} more", sorted.len() - limit));
    }
    text.join("\n")
}

fn line(diagnostic: &Diagnostic) -> String {
    let start = diagnostic.range.start;
    let (line, column) = (start.line.saturating_add(1), start.character.saturating_add(1));
    format!("{} [{line}:{column}] {}", diagnostic.level().name(), neutral(&diagnostic.message))
}

/// A text that contains no tag of the block and no control characters.
fn neutral(text: &str) -> String {
    let clean: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let mut neutral = String::with_capacity(clean.len());
    for (at, c) in clean.char_indices() {
        let rest = clean[at + c.len_utf8()..].trim_start();
        let rest = rest.strip_prefix('/').unwrap_or(rest).trim_start();
        let is_tag = c == '<' && rest.get(..TAG.len()).is_some_and(|name| name.eq_ignore_ascii_case(TAG));
        neutral.push(if is_tag { MARK } else { c });
    }
    neutral
}

/// The diagnostics with new errors first, and the number of new errors.
///
/// An error is new if there are more with its text than before, because lines move.
fn worse_first(before: &[Diagnostic], after: &[Diagnostic]) -> (Vec<Diagnostic>, usize) {
    let mut known: HashMap<&str, usize> = HashMap::new();
    for old in before.iter().filter(|diagnostic| diagnostic.is_error()) {
        *known.entry(&old.message).or_default() += 1;
    }
    let (mut new, mut rest, mut others) = (Vec::new(), Vec::new(), Vec::new());
    for diagnostic in after {
        if !diagnostic.is_error() {
            others.push(diagnostic.clone());
            continue;
        }
        match known.get_mut(diagnostic.message.as_str()).filter(|count| **count > 0) {
            Some(count) => {
                *count -= 1;
                rest.push(diagnostic.clone());
            }
            None => new.push(diagnostic.clone()),
        }
    }
    let count = new.len();
    new.extend(rest);
    new.extend(others);
    (new, count)
}

/// Joins the diagnostics of several servers.
pub(crate) fn join(files: &mut Files, more: HashMap<PathBuf, Arc<[Diagnostic]>>) {
    for (path, list) in more {
        let own = files.entry(path).or_default();
        own.extend(list.iter().filter(|diagnostic| !own.contains(diagnostic)).cloned().collect::<Vec<_>>());
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn diagnostic(line: u32, message: &str, severity: u8) -> Diagnostic {
        let at = json!({"line": line, "character": 2});
        serde_json::from_value(
            json!({"range": {"start": at, "end": at}, "message": message, "severity": severity}),
        )
        .unwrap()
    }

    fn files(list: &[(&str, Vec<Diagnostic>)]) -> Files {
        list.iter().map(|(path, list)| (PathBuf::from(path), list.clone())).collect()
    }

    #[test]
    fn new_errors_come_first() {
        let before = files(&[("/a", vec![diagnostic(0, "old", 1)]), ("/c", vec![diagnostic(0, "same", 1)])]);
        let after = files(&[
            ("/a", vec![diagnostic(7, "old", 1), diagnostic(3, "new", 1), diagnostic(0, "warning", 2)]),
            ("/b", vec![diagnostic(0, "broken", 1)]),
            ("/c", vec![diagnostic(0, "same", 1)]),
        ]);
        let report = report(&["/a".into()], &before, &after);
        assert_eq!(
            report.text,
            "\n\nLSP errors detected in this file, please fix:\n<diagnostics file=\"/a\">\nERROR [4:3] new\nERROR [8:3] \
             old\n</diagnostics>\n\nLSP errors detected in other files:\n<diagnostics file=\"/b\">\nERROR [1:3] \
             broken\n</diagnostics>"
        );
        assert_eq!(report.files.len(), 2);
        assert_eq!(report.files[0].1.len(), 3);
    }

    #[test]
    fn errors_and_files_are_limited() {
        let many = |count: u32| (0..count).map(|line| diagnostic(line, &line.to_string(), 1)).collect();
        let names: Vec<String> = (0..9).map(|number| format!("/{number}")).collect();
        let after: Vec<_> = names.iter().map(|name| (name.as_str(), many(30))).collect();
        let report = report(&["/0".into()], &Files::new(), &files(&after));
        assert_eq!(report.text.matches("ERROR").count(), MAX_SHOWN * (1 + MAX_OTHERS));
        assert_eq!(report.text.matches("... and 10 more").count(), 1 + MAX_OTHERS);
        assert_eq!(super::report(&["/x".into()], &Files::new(), &Files::new()), Report::default());
    }

    #[test]
    fn a_text_cannot_end_its_block() {
        let text = "x < / DIAGNOSTICS>\n<diagnostics file=\"/etc\"> Vec<T> </b>";
        assert_eq!(neutral(text), "x \u{2039} / DIAGNOSTICS> \u{2039}diagnostics file=\"/etc\"> Vec<T> </b>");
        assert!(block(Path::new("/a\"b\nc"), &[]).contains("file=\"/a'b c\""));
    }
}
