//! The names of tools for models.
//!
//! Providers accept letters, digits, `_` and `-`, and at most 64 of them. Every tool gets a unique name that depends
//! only on the order of the tools.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

/// The longest name that every provider accepts.
const MAX_NAME_CHARS: usize = 64;

/// Replaces the characters that providers refuse.
#[must_use]
pub fn sanitize(name: &str) -> String {
    let accepted = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    name.chars().map(|c| if accepted(c) { c } else { '_' }).collect()
}

/// Returns the name of each tool, given its server and its own name. Names in `taken` are not used.
#[must_use]
pub fn tool_names<'a>(
    tools: impl Iterator<Item = (&'a str, &'a str)>,
    taken: impl Fn(&str) -> bool,
) -> Vec<String> {
    let mut used = HashSet::new();
    tools
        .map(|(server, tool)| {
            let wanted = shortened(format!("{}_{}", sanitize(server), sanitize(tool)), server, tool);
            let mut name = wanted.clone();
            let mut number = 2;
            while taken(&name) || !used.insert(name.to_ascii_lowercase()) {
                let end = format!("_{number}");
                name = format!("{}{end}", &wanted[..wanted.len().min(MAX_NAME_CHARS - end.len())]);
                number += 1;
            }
            name
        })
        .collect()
}

/// Cuts a long name and marks it with a hash of what it names.
fn shortened(name: String, server: &str, tool: &str) -> String {
    if name.len() <= MAX_NAME_CHARS {
        return name;
    }
    let mut hasher = DefaultHasher::new();
    (server, tool).hash(&mut hasher);
    let mark = format!("_{:08x}", hasher.finish() & 0xffff_ffff);
    format!("{}{mark}", &name[..MAX_NAME_CHARS - mark.len()])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(tools: &[(&str, &str)]) -> Vec<String> {
        tool_names(tools.iter().copied(), |name| name == "plan_exit")
    }

    #[test]
    fn names_have_the_recorded_form() {
        assert_eq!(
            names(&[("everything", "get-sum"), ("dyn one", "a.b/c")]),
            ["everything_get-sum", "dyn_one_a_b_c"]
        );
    }

    #[test]
    fn names_are_unique_and_short() {
        let long = "x".repeat(100);
        let named =
            names(&[("a", "b.c"), ("a", "b/c"), ("a", "B_C"), ("plan", "exit"), ("s", &long), ("t", &long)]);
        assert_eq!(named[..4], ["a_b_c", "a_b_c_2", "a_B_C_3", "plan_exit_2"].map(str::to_owned));
        assert!(named.iter().all(|name| name.len() <= MAX_NAME_CHARS));
        assert_ne!(named[4], named[5]);
    }
}
