//! The page of measured figures, `docs/measurements.md`.
//!
//! Each section of the report has a place in the page between `<!-- bench:NAME -->` and `<!-- /bench:NAME -->`.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};

/// Writes the sections of a report into the page; other sections stay as they are.
pub(super) fn write(sections: &BTreeMap<&'static str, String>, head: &str) -> Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("xtask is in the workspace")?;
    let path = root.join("docs/measurements.md");
    let mut page = fs::read_to_string(&path).with_context(|| format!("cannot read `{}`", path.display()))?;
    for (name, text) in sections {
        let block = format!("```text\n{}\n\n{}\n```", head.trim(), text.trim());
        page = replace(&page, name, &block).with_context(|| format!("the page has no section `{name}`"))?;
    }
    fs::write(&path, page).with_context(|| format!("cannot write `{}`", path.display()))
}

/// Replaces the content of a section, or returns `None` if the page does not have the section.
fn replace(page: &str, name: &str, text: &str) -> Option<String> {
    let (start, end) = (format!("<!-- bench:{name} -->\n"), format!("<!-- /bench:{name} -->"));
    let (before, rest) = page.split_once(&start)?;
    let (_, after) = rest.split_once(&end)?;
    Some(format!("{before}{start}\n{text}\n\n{end}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::{CASES, PARTS};

    #[test]
    fn a_section_is_replaced() {
        let page = "a\n<!-- bench:x -->\nold\n<!-- /bench:x -->\nb\n";
        let new = replace(page, "x", "new").unwrap();
        assert_eq!(new, "a\n<!-- bench:x -->\n\nnew\n\n<!-- /bench:x -->\nb\n");
        assert_eq!(replace(&new, "x", "new").unwrap(), new);
        assert_eq!(replace(page, "y", "new"), None);
    }

    #[test]
    fn the_page_has_every_section() {
        let page = include_str!("../../../docs/measurements.md");
        for name in PARTS.iter().map(|part| part.name).chain([CASES]) {
            assert!(replace(page, name, "").is_some(), "{name}");
        }
    }
}
