//! A parser for the files in `~/.aws`: sections of `name = value` lines.

use std::collections::BTreeMap;

/// The values of one section.
pub(super) type Section = BTreeMap<String, String>;

/// Parses the sections. Ignores invalid lines, as Amazon's tools do.
pub(super) fn parse(text: &str) -> BTreeMap<String, Section> {
    let mut sections: BTreeMap<String, Section> = BTreeMap::new();
    let mut section: Option<&mut Section> = None;
    for line in text.trim_start_matches('\u{feff}').lines() {
        // An indented line continues a value, and no value used here has several lines.
        if line.starts_with([' ', '\t', '#', ';']) {
            continue;
        }
        let line = strip_comment(line);
        if let Some(name) = line.strip_prefix('[').and_then(|line| line.split(']').next()) {
            let name = name.split_whitespace().collect::<Vec<_>>().join(" ");
            section = Some(sections.entry(name).or_default());
        } else if let (Some(section), Some((name, value))) = (&mut section, line.split_once('=')) {
            section.insert(name.trim().to_ascii_lowercase(), value.trim().to_owned());
        }
    }
    sections
}

/// Removes a trailing comment, which follows white space.
fn strip_comment(line: &str) -> &str {
    let marks = [" #", " ;", "\t#", "\t;"];
    let end = marks.iter().filter_map(|mark| line.find(mark)).min().unwrap_or(line.len());
    &line[..end]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn sections_are_parsed_and_other_lines_ignored() {
        let text = "\u{feff}stray = 1\r\n[default]\r\nAWS_Access_Key_Id=AK\r\n# no\n; no\nregion = eu-west-1 # here\n\
                    s3 =\n  max = 3\nno line\n[ profile   a ]\nx = a=b#c\n[broken\ny = 1\n[default]\nz = 2\n";
        let found = parse(text);
        let names: Vec<&str> = found.keys().map(String::as_str).collect();
        assert_eq!(names, ["broken", "default", "profile a"]);
        let default: Vec<(&str, &str)> =
            found["default"].iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(default, [("aws_access_key_id", "AK"), ("region", "eu-west-1"), ("s3", ""), ("z", "2")]);
        assert_eq!(found["profile a"]["x"], "a=b#c");
    }

    proptest! {
        #[test]
        fn no_input_panics(text in "[\\[\\]=#; a\n\u{feff}é]{0,60}") {
            parse(&text);
        }
    }
}
