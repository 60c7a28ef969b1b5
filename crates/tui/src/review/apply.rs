//! The versions of a file before and after a patch, computed from one of them.

/// Which version a text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Version {
    Before,
    After,
}

/// Returns the other version of a text, or `None` if the text is not the given version.
pub(crate) fn other(text: &str, patch: &str, given: Version) -> Option<String> {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let mut result = String::with_capacity(text.len());
    let mut at = 0;
    let mut hunk: Option<(usize, usize)> = None;
    for line in patch.split_inclusive('\n') {
        if let Some(ranges) = line.strip_prefix("@@ -") {
            let (before, rest) = ranges.split_once(" +")?;
            let (after, _) = rest.split_once(" @@")?;
            let (before, after) = (range(before)?, range(after)?);
            let (start, count) = if given == Version::Before { before } else { after };
            // A side without lines has the number of the line before it.
            let start = if count == 0 { start } else { start.checked_sub(1)? };
            let kept = lines.get(at..start)?;
            kept.iter().for_each(|line| result.push_str(line));
            at = start;
            hunk = Some((before.1, after.1));
            continue;
        }
        let Some((old, new)) = &mut hunk else { continue };
        let (mark, content) = (line.chars().next()?, line.get(1..)?);
        if mark == '\\' {
            // The line before has no line feed.
            if result.ends_with('\n') && *old == 0 && *new == 0 {
                result.pop();
            }
            continue;
        }
        if *old == 0 && *new == 0 {
            hunk = None;
            continue;
        }
        let (in_old, in_new) = (mark != '+', mark != '-');
        *old = old.checked_sub(usize::from(in_old))?;
        *new = new.checked_sub(usize::from(in_new))?;
        let (in_given, in_other) = if given == Version::Before { (in_old, in_new) } else { (in_new, in_old) };
        if in_given {
            let found = lines.get(at)?;
            if found.trim_end_matches('\n') != content.trim_end_matches('\n') {
                return None;
            }
            at += 1;
        }
        if in_other {
            result.push_str(content);
        }
    }
    lines.get(at..)?.iter().for_each(|line| result.push_str(line));
    Some(result)
}

/// Parses `start,count` or `start`.
fn range(text: &str) -> Option<(usize, usize)> {
    let (start, count) = text.split_once(',').unwrap_or((text, "1"));
    Some((start.parse().ok()?, count.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_version_yields_the_other() {
        let head = "Index: a\n===\n--- a\n+++ a\n";
        for (before, after, hunks) in [
            ("1\n2\n3\n", "1\ntwo\n3\n", "@@ -1,3 +1,3 @@\n 1\n-2\n+two\n 3\n"),
            ("", "1\n2\n", "@@ -0,0 +1,2 @@\n+1\n+2\n"),
            ("1\n2\n", "", "@@ -1,2 +0,0 @@\n-1\n-2\n"),
            (
                "1\n2\n3\n4\n5\n6\n7\n8\n",
                "1\n3\n4\n5\n6\n7\n8\n9\n",
                "@@ -1,3 +1,2 @@\n 1\n-2\n 3\n@@ -7,2 +6,3 @@\n 7\n 8\n+9\n",
            ),
        ] {
            let patch = format!("{head}{hunks}");
            assert_eq!(other(before, &patch, Version::Before).as_deref(), Some(after), "{hunks}");
            assert_eq!(other(after, &patch, Version::After).as_deref(), Some(before), "{hunks}");
        }
    }

    #[test]
    fn another_text_or_a_broken_patch_has_no_other_version() {
        let patch = "@@ -1,2 +1,2 @@\n 1\n-2\n+two\n";
        for text in ["", "1\n", "1\nx\n", "2\n1\n"] {
            assert_eq!(other(text, patch, Version::Before), None, "{text:?}");
        }
        for patch in
            ["@@ -x +1 @@\n", "@@ -9,1 +9,1 @@\n-1\n+2\n", "@@ -0,1 +1 @@\n", "@@ -1,1 +1,1 @@\n-1\n-1\n-1\n"]
        {
            assert_eq!(other("1\n", patch, Version::Before), None, "{patch:?}");
        }
    }
}
