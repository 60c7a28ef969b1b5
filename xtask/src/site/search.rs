//! The search: a script, and an index that it loads at the first use.

use anyhow::Result;
use serde_json::json;

use super::pages::{Site, html_path};

pub(super) const SCRIPT: &str = include_str!("search.js");

/// Returns the index as a script, because browsers refuse to fetch a file from a page that is a file.
pub(super) fn index(site: &Site) -> Result<String> {
    let mut sections = Vec::new();
    for page in site.pages.values() {
        for section in &page.sections {
            let text: Vec<&str> = section.text.split_whitespace().collect();
            let heading = if section.heading == page.title { "" } else { &section.heading };
            let address = if heading.is_empty() {
                html_path(&page.path)
            } else {
                format!("{}#{}", html_path(&page.path), section.id)
            };
            sections.push(json!([address, page.title, heading, text.join(" ")]));
        }
    }
    Ok(format!("codewrightSearch({});\n", serde_json::to_string(&sections)?))
}
