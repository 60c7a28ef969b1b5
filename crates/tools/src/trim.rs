//! Truncation of long outputs.
//!
//! The model gets the beginning, or for commands the end, and the path of a file with the whole output.
//! Characters are never split.

use std::path::Path;

use codewright_workspace::write_atomic;

use crate::cx::settled;
use crate::{Output, ToolCx, ToolError};

/// The default limit for the lines of an output.
pub const MAX_LINES: usize = 2000;
/// The default limit for the bytes of an output.
pub const MAX_BYTES: usize = 50 * 1024;

/// The limits for an output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Lines, at least one.
    pub lines: usize,
    /// Bytes, at least one.
    pub bytes: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { lines: MAX_LINES, bytes: MAX_BYTES }
    }
}

impl std::fmt::Display for Bounds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { lines, bytes } = self;
        match bytes % 1024 {
            0 => write!(f, "{lines} lines or {} KB", bytes / 1024),
            _ => write!(f, "{lines} lines or {bytes} bytes"),
        }
    }
}

/// Truncates a long output and writes the whole to a file.
///
/// This is for all tools except those that limit their own output. Adds the `truncated` fact if the tool has
/// not set it.
pub async fn trim(mut output: Output, cx: &ToolCx) -> Result<Output, ToolError> {
    let Some((head, left_out)) = head(&output.output, cx.bounds) else {
        output.metadata.entry("truncated").or_insert(false.into());
        return Ok(output);
    };
    let path = cx.new_output_path();
    let notice = notice(&path, cx.can_delegate);
    let shown = format!("{head}\n\n...{left_out} truncated...\n\n{notice}");
    let whole = std::mem::replace(&mut output.output, shown);
    let file = path.clone();
    settled(move || Ok(write_atomic(&file, whole.as_bytes())?)).await?;
    Ok(output.with("truncated", true).with("outputPath", path.to_string_lossy()))
}

fn notice(path: &Path, can_delegate: bool) -> String {
    let advice = if can_delegate {
        "Let an explore agent look through that file (task tool) instead of reading it here."
    } else {
        "Search that file with grep, or read parts of it with offset and limit."
    };
    format!("This is only the beginning. Full output saved to: {}\n{advice}", path.display())
}

/// The beginning of a long text and the size of the rest, or `None` if the text is short.
fn head(text: &str, bounds: Bounds) -> Option<(&str, String)> {
    let lines = text.split('\n').count();
    if lines <= bounds.lines && text.len() <= bounds.bytes {
        return None;
    }
    let end = text.match_indices('\n').nth(bounds.lines - 1).map_or(text.len(), |(at, _)| at);
    if end <= bounds.bytes {
        return Some((&text[..end], format!("{} lines", lines - bounds.lines)));
    }
    let room = text.floor_char_boundary(bounds.bytes);
    let end = text[..room].rfind('\n').filter(|end| *end > 0).unwrap_or(room);
    Some((&text[..end], format!("{} bytes", text.len() - end)))
}

/// The end of a text, within the limits.
pub(crate) fn tail(text: &str, bounds: Bounds) -> &str {
    let start = text.rmatch_indices('\n').nth(bounds.lines - 1).map_or(0, |(at, _)| at + 1);
    let room = text.ceil_char_boundary(text.len().saturating_sub(bounds.bytes));
    &text[start.max(room)..]
}

/// Checks the invariants of both ends.
#[cfg(any(test, feature = "trial"))]
pub(crate) fn tried(text: &str) {
    let bounds = Bounds::default();
    let end = tail(text, bounds);
    assert!(text.ends_with(end) && end.len() <= MAX_BYTES, "it is not the end of the text");
    match head(text, bounds) {
        Some((beginning, _)) => {
            assert!(
                text.starts_with(beginning) && beginning.len() <= MAX_BYTES,
                "it is not the beginning of the text"
            );
            assert!(!beginning.is_empty(), "the beginning is empty");
        }
        None => assert!(text.len() <= MAX_BYTES, "the text is too long"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_head_is_cut_at_lines_first() {
        let text = "x\n".repeat(4000);
        let (head, left_out) = head(&text, Bounds::default()).expect("long");
        assert_eq!((head.lines().count(), left_out.as_str()), (MAX_LINES, "2001 lines"));
    }

    #[test]
    fn the_tail_counts_the_empty_line_at_the_end() {
        let text: String = (1..=5000).map(|n| format!("{n}\n")).collect();
        assert!(tail(&text, Bounds::default()).starts_with("3002\n"));
        assert_eq!(tail(&"a".repeat(200_000), Bounds::default()).len(), MAX_BYTES);
        assert_eq!(tail("short\n", Bounds::default()), "short\n");
    }

    #[test]
    fn other_bounds_hold_at_both_ends() {
        let bounds = Bounds { lines: 2, bytes: 6 };
        assert_eq!(head("a\nb", bounds), None);
        assert_eq!(head("a\nb\nc\nd", bounds), Some(("a\nb", "2 lines".to_owned())));
        assert_eq!(head("abcdefgh\nb", bounds), Some(("abcdef", "4 bytes".to_owned())));
        assert_eq!(tail("a\nb\nc", bounds), "b\nc");
        assert_eq!(tail("abcdefgh", bounds), "cdefgh");
    }

    proptest! {
        #[test]
        fn cutting_never_splits_a_character(
            sign in "[a\u{e9}\u{20ac}\u{1f600}]", start in "[ab\n]{0,4}", count in 11_000usize..30_000,
            every in 1usize..9000,
        ) {
            let mut text = start;
            for n in 0..count {
                text.push_str(&sign);
                if n % every == 0 {
                    text.push('\n');
                }
            }
            tried(&text);
        }
    }
}
