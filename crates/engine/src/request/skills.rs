//! The list of skills in the system prompt.

use codewright_tools::Skill;

const LEAD: &str = "Skills are instructions for certain kinds of task. Load a skill with the skill tool when it fits the \
                    task.\nAvailable skills:";

/// Returns the block of the system prompt; `None` if no skill has a description.
pub(crate) fn block(skills: &[Skill]) -> Option<String> {
    let mut listed: Vec<_> =
        skills.iter().filter_map(|skill| Some((skill, skill.description.as_deref()?))).collect();
    listed.sort_by(|(a, _), (b, _)| a.name.cmp(&b.name));
    let entries = listed.iter().map(|(skill, description)| {
        format!(
            "  <skill>\n    <name>{}</name>\n    <description>{}</description>\n    <location>{}</location>\n  </skill>\n",
            escaped(&skill.name),
            escaped(description),
            escaped(&location(skill)),
        )
    });
    let entries: String = entries.collect();
    (!entries.is_empty()).then(|| format!("{LEAD}\n<available_skills>\n{entries}</available_skills>"))
}

/// Returns the location of a skill in the form that clients expect.
pub(crate) fn location(skill: &Skill) -> String {
    skill
        .location
        .as_ref()
        .map_or_else(|| "<built-in>".to_owned(), |path| path.to_string_lossy().into_owned())
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn skill(name: &str, description: Option<&str>, location: Option<&str>) -> Skill {
        let (description, location) = (description.map(str::to_owned), location.map(Into::into));
        Skill { name: name.to_owned(), description, location, content: "BODY".to_owned() }
    }

    #[test]
    fn skills_are_listed_by_name_without_their_text() {
        let skills = [
            skill("b", Some("x < y"), None),
            skill("a", Some("first"), Some("/p/a/SKILL.md")),
            skill("silent", None, None),
        ];
        let block = block(&skills).unwrap();
        let lines: Vec<&str> = block.lines().map(str::trim).collect();
        let places =
            ["<name>a</name>", "<location>/p/a/SKILL.md</location>", "<name>b</name>", "</available_skills>"]
                .map(|line| {
                    lines.iter().position(|known| *known == line).unwrap_or_else(|| panic!("{line}: {block}"))
                });
        assert!(places.is_sorted(), "{block}");
        assert!(block.contains("x &lt; y") && block.contains("&lt;built-in&gt;"), "{block}");
        assert!(!block.contains("BODY") && !block.contains("silent"), "{block}");
        assert_eq!(super::block(&skills[2..]), None);
    }
}
