//! Checks blocks of JSON in the documents.
//!
//! A block is a configuration unless its fence names the file that it is from: "json file=settings.json".

use codewright_config::{check_change, edit_document, parse_document};
use serde_json::{Map, Value};

use super::render::Block;

/// Returns why the program would reject a block, or `None` if it is valid.
pub(super) fn problem(block: &Block) -> Option<String> {
    let file = block.info.split_whitespace().find_map(|word| word.strip_prefix("file="));
    let name = file.unwrap_or("a snippet of configuration");
    let value = match parse_document(name, &block.text) {
        Ok(value) => value,
        Err(error) => return Some(error.to_string()),
    };
    if file.is_some() {
        return None;
    }
    if let Err(error) = edit_document(name, &block.text, &Map::new()) {
        return Some(error.to_string());
    }
    let Value::Object(keys) = value else { return Some(format!("{name} is not an object")) };
    match check_change(keys.clone()) {
        Err(error) => Some(format!("{name}: {error}")),
        Ok(known) => {
            let unknown = keys.keys().find(|key| !known.contains_key(*key))?;
            Some(format!(
                "{name} has the unknown key `{unknown}`; name its file with `file=NAME` after `json`"
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(info: &str, text: &str, expected: Option<&str>) {
        let found = problem(&Block { info: info.to_owned(), text: text.to_owned() });
        match expected {
            None => assert_eq!(found, None, "{text}"),
            Some(part) => {
                assert!(found.as_ref().is_some_and(|found| found.contains(part)), "{text}: {found:?}");
            }
        }
    }

    #[test]
    fn configurations_are_checked_with_the_schema() {
        check("json", "{\"model\": \"a/b\", \"permission\": {\"edit\": \"ask\"}}", None);
        check("jsonc", "{\"model\": \"a/b\", // c\n}", None);
        check("json", "{\"model\": }", Some("snippet"));
        check("json", "{\"model\": 3}", Some("model"));
        check("json", "{\"modle\": \"a/b\"}", Some("modle"));
        check("json", "{\"command\": \"ls\", \"nonsense\": 1}", Some("command"));
    }

    #[test]
    fn other_files_only_have_to_be_json() {
        check("json file=settings.json", "{\"nonsense\": 1}", None);
        check("json file=settings.json", "{\"nonsense\": ", Some("settings.json"));
    }
}
