//! Parses patches.
//!
//! Text before the first marker and after the last one is ignored, so that a patch in a code fence or a
//! here-document is accepted.

use crate::tags;

/// The limit of files in one patch.
const MAX_FILES: usize = 500;
/// The number of characters of a line that an error quotes.
const MAX_QUOTED_CHARS: usize = 200;

const BEGIN: &str = "*** Begin Patch";
const END: &str = "*** End Patch";
const ADD: &str = "*** Add File:";
const DELETE: &str = "*** Delete File:";
const UPDATE: &str = "*** Update File:";
const MOVE: &str = "*** Move to:";
const END_OF_FILE: &str = "*** End of File";

/// The change of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Part {
    /// A file is created or replaced.
    Add { path: String, content: String },
    /// A file is removed.
    Delete { path: String },
    /// Parts of a file change, and perhaps its path.
    Update { path: String, moved: Option<String>, changes: Vec<Change> },
}

/// A change at one position of a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Change {
    /// Lines above the position, the outermost first.
    pub(super) below: Vec<String>,
    /// The lines at the position.
    pub(super) lines: Vec<Line>,
    /// Whether the position is at the end of the file.
    pub(super) at_end: bool,
}

impl Change {
    /// Returns the change with the tags of the file, because the model saw only neutralized text.
    pub(super) fn as_in_file(&self, content: &str) -> Self {
        let text = |text: &String| tags::as_written(content, text).into_owned();
        let line = |line: &Line| match line {
            Line::Keep(line) => Line::Keep(text(line)),
            Line::Remove(line) => Line::Remove(text(line)),
            Line::Insert(line) => Line::Insert(text(line)),
        };
        Self {
            below: self.below.iter().map(text).collect(),
            lines: self.lines.iter().map(line).collect(),
            at_end: self.at_end,
        }
    }
}

/// One line of a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Line {
    /// An unchanged line.
    Keep(String),
    /// A removed line.
    Remove(String),
    /// An added line.
    Insert(String),
}

impl Change {
    /// The lines before the change, among the first `count` lines.
    pub(super) fn old(&self, count: usize) -> Vec<&str> {
        let old = self.lines[..count].iter().filter_map(|line| match line {
            Line::Keep(text) | Line::Remove(text) => Some(text.as_str()),
            Line::Insert(_) => None,
        });
        old.collect()
    }
}

/// Parses a patch. The order of the files is kept. An empty patch is valid.
pub(super) fn parse(patch: &str) -> Result<Vec<Part>, String> {
    let patch = patch.replace("\r\n", "\n");
    let lines: Vec<&str> = patch.trim().split('\n').collect();
    let begin = lines.iter().position(|line| line.trim() == BEGIN);
    let end = lines.iter().rposition(|line| line.trim() == END);
    let (Some(begin), Some(end)) = (begin, end) else { return Err(unmarked()) };
    if begin >= end {
        return Err(unmarked());
    }
    let mut reader = Reader { lines: &lines[begin + 1..end], at: 0 };
    let mut parts = Vec::new();
    while let Some(line) = reader.next() {
        if parts.len() >= MAX_FILES {
            return Err(format!("a patch may change at most {MAX_FILES} files"));
        }
        if let Some(path) = header(line, ADD)? {
            parts.push(Part::Add { path, content: reader.content()? });
        } else if let Some(path) = header(line, DELETE)? {
            parts.push(Part::Delete { path });
        } else if let Some(path) = header(line, UPDATE)? {
            parts.push(reader.update(path)?);
        } else if !line.trim().is_empty() {
            return Err(format!("Expected a file header, got: {}", quoted(line)));
        }
    }
    Ok(parts)
}

fn unmarked() -> String {
    "Invalid patch format: missing Begin/End markers".to_owned()
}

fn quoted(line: &str) -> String {
    line.chars().take(MAX_QUOTED_CHARS).collect()
}

/// The path in a header of that kind, if the line is one.
fn header(line: &str, kind: &str) -> Result<Option<String>, String> {
    let Some(path) = line.strip_prefix(kind).map(str::trim) else { return Ok(None) };
    if path.is_empty() { Err(format!("A path is missing after `{kind}`")) } else { Ok(Some(path.to_owned())) }
}

fn is_header(line: &str) -> bool {
    [ADD, DELETE, UPDATE].iter().any(|kind| line.starts_with(kind))
}

struct Reader<'a> {
    lines: &'a [&'a str],
    at: usize,
}

impl<'a> Reader<'a> {
    fn next(&mut self) -> Option<&'a str> {
        let line = self.lines.get(self.at).copied();
        self.at += usize::from(line.is_some());
        line
    }

    /// The next line, if it belongs to the current file.
    fn inside(&self) -> Option<&'a str> {
        self.lines.get(self.at).copied().filter(|line| !is_header(line))
    }

    /// The content of an added file.
    fn content(&mut self) -> Result<String, String> {
        let mut content = String::new();
        let mut blank = 0;
        while let Some(line) = self.inside() {
            self.at += 1;
            match line.strip_prefix('+') {
                Some(text) => {
                    content.push_str(&"\n".repeat(std::mem::take(&mut blank)));
                    content.push_str(text);
                    content.push('\n');
                }
                // An empty line may lack its sign. Empty lines before a header only separate.
                None if line.trim().is_empty() => blank += 1,
                None => {
                    return Err(format!("A line of an added file starts with `+`, got: {}", quoted(line)));
                }
            }
        }
        Ok(content)
    }

    fn update(&mut self, path: String) -> Result<Part, String> {
        let moved = self.inside().map(|line| header(line, MOVE)).transpose()?.flatten();
        self.at += usize::from(moved.is_some());
        let mut changes: Vec<Change> = Vec::new();
        let mut current = Change::default();
        while let Some(line) = self.inside() {
            self.at += 1;
            if line.trim_end() == END_OF_FILE {
                current.at_end = true;
            } else if let Some(context) = line.strip_prefix("@@") {
                // Consecutive headers narrow the position.
                if !current.lines.is_empty() {
                    changes.push(std::mem::take(&mut current));
                }
                current.below.extend(above(context));
            } else if current.at_end {
                if !line.trim().is_empty() {
                    return Err(format!(
                        "Only `@@` or a header may follow the end of a file, got: {}",
                        quoted(line)
                    ));
                }
            } else {
                current.lines.push(change_line(line)?);
            }
        }
        if !current.lines.is_empty() {
            changes.push(current);
        }
        if changes.is_empty() && moved.is_none() {
            return Err(format!("The update of {path} holds no changes"));
        }
        Ok(Part::Update { path, moved, changes })
    }
}

/// The line that an `@@` header names. The numbers of a unified diff name no line.
fn above(context: &str) -> Option<String> {
    let is_numbers = context.trim_start().starts_with('-') && context.contains("@@");
    let text = context.strip_prefix(' ').unwrap_or(context);
    (!is_numbers && !text.trim().is_empty()).then(|| text.to_owned())
}

fn change_line(line: &str) -> Result<Line, String> {
    let Some(sign) = line.chars().next() else { return Ok(Line::Keep(String::new())) };
    let text = || line[1..].to_owned();
    match sign {
        ' ' => Ok(Line::Keep(text())),
        '-' => Ok(Line::Remove(text())),
        '+' => Ok(Line::Insert(text())),
        _ => Err(format!("A line of a change starts with a space, `-` or `+`, got: {}", quoted(line))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn keep(text: &str) -> Line {
        Line::Keep(text.to_owned())
    }

    #[test]
    fn every_kind_of_part_is_parsed() {
        let patch = "noise\n*** Begin Patch\n*** Add File: a.txt\n+one\n\n+two\n\n*** Delete File: b.txt\n*** Update File: c.txt\n\
                     *** Move to: d.txt\n@@ class A\n@@ def f():\n keep\n-old\n+new\n\n@@\n-x\n*** End of File\n*** End Patch\nEOF";
        let change = Change {
            below: vec!["class A".to_owned(), "def f():".to_owned()],
            lines: vec![
                keep("keep"),
                Line::Remove("old".to_owned()),
                Line::Insert("new".to_owned()),
                keep(""),
            ],
            at_end: false,
        };
        let last = Change { below: vec![], lines: vec![Line::Remove("x".to_owned())], at_end: true };
        let expected = vec![
            Part::Add { path: "a.txt".to_owned(), content: "one\n\ntwo\n".to_owned() },
            Part::Delete { path: "b.txt".to_owned() },
            Part::Update {
                path: "c.txt".to_owned(),
                moved: Some("d.txt".to_owned()),
                changes: vec![change, last],
            },
        ];
        assert_eq!(parse(patch), Ok(expected.clone()));
        assert_eq!(parse(&patch.replace('\n', "\r\n")), Ok(expected));
    }

    #[test]
    fn a_context_line_may_look_like_the_end() {
        let patch = "*** Begin Patch\n*** Update File: c\n *** End Patch\n+x\n*** End Patch";
        let lines = vec![keep("*** End Patch"), Line::Insert("x".to_owned())];
        let changes = vec![Change { lines, ..Change::default() }];
        assert_eq!(parse(patch), Ok(vec![Part::Update { path: "c".to_owned(), moved: None, changes }]));
    }

    #[test]
    fn the_numbers_of_a_unified_diff_are_not_context() {
        for (header, expected) in [
            ("@@ -1,3 +1,4 @@ fn a()", vec![]),
            ("@@", vec![]),
            ("@@ ", vec![]),
            ("@@   fn a()", vec!["  fn a()".to_owned()]),
            ("@@ - item", vec!["- item".to_owned()]),
        ] {
            let patch = format!("*** Begin Patch\n*** Update File: c\n{header}\n+x\n*** End Patch");
            let parts = parse(&patch).expect(header);
            assert!(
                matches!(&parts[0], Part::Update { changes, .. } if changes[0].below == expected),
                "{parts:?}"
            );
        }
    }

    #[test]
    fn errors_name_the_mistake() {
        let cases = [
            ("no markers", "Invalid patch format: missing Begin/End markers"),
            ("*** End Patch\n*** Begin Patch", "Invalid patch format: missing Begin/End markers"),
            ("*** Begin Patch\nwhat\n*** End Patch", "Expected a file header, got: what"),
            ("*** Begin Patch\n*** Add File:\n*** End Patch", "A path is missing after `*** Add File:`"),
            (
                "*** Begin Patch\n*** Add File: a\nx\n*** End Patch",
                "A line of an added file starts with `+`, got: x",
            ),
            ("*** Begin Patch\n*** Update File: a\n*** End Patch", "The update of a holds no changes"),
            (
                "*** Begin Patch\n*** Update File: a\n@@\nx\n*** End Patch",
                "A line of a change starts with a space, `-` or `+`, got: x",
            ),
        ];
        for (patch, expected) in cases {
            assert_eq!(parse(patch), Err(expected.to_owned()), "{patch:?}");
        }
        assert_eq!(parse("*** Begin Patch\n*** End Patch"), Ok(Vec::new()));
    }

    proptest! {
        #[test]
        fn no_text_confuses_it(
            lines in proptest::collection::vec(
                "(\\*\\*\\* (Begin Patch|End Patch|End of File|Add File: a|Update File: b|Move to: c|Delete File: d)|@@.{0,3}|[ +-]?.{0,4})",
                0..20,
            ),
        ) {
            drop(parse(&lines.join("\n")));
        }
    }
}
