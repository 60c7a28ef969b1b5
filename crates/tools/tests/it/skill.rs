//! Loading skills.

use codewright_tools::Skill;
use serde_json::json;

use crate::project::Project;

fn project() -> Project {
    let mut project = Project::new();
    let file = project.file("skills/pdf/SKILL.md", "---\nname: pdf\n---\nDo this.\n");
    for n in 0..12 {
        project.file(&format!("skills/pdf/scripts/{n:02}.py"), "");
    }
    let skill = |name: &str, location| Skill {
        name: name.to_owned(),
        description: Some("x".to_owned()),
        location,
        content: "\nDo this.\n".to_owned(),
    };
    project.cx.skills = vec![skill("pdf", Some(file)), skill("built-in", None)].into();
    project
}

#[tokio::test]
async fn a_skill_has_its_text_and_some_of_its_files() {
    let project = project();
    let output = project.call("skill", json!({"name": "pdf"})).await.expect("loaded");
    let files: Vec<String> =
        (0..10).map(|n| format!("<file>$P/skills/pdf/scripts/{n:02}.py</file>\n")).collect();
    let expected = format!(
        "<skill_content name=\"pdf\">\n# Skill: pdf\n\nDo this.\n\nIts directory is $P/skills/pdf, from which its relative \
         paths start.\n\n<skill_files>\n{}</skill_files>\n</skill_content>",
        files.concat()
    );
    assert_eq!(project.plain(&output.output), expected);
    assert_eq!(output.title, "Loaded skill: pdf");
    assert_eq!(
        (&output.metadata["name"], &output.metadata["dir"]),
        (&json!("pdf"), &json!(project.at("$P/skills/pdf")))
    );
    let output = project.call("skill", json!({"name": "built-in"})).await.expect("loaded");
    assert!(output.output.ends_with("Do this.\n</skill_content>"), "{}", output.output);
    assert_eq!(output.metadata["dir"], ".");
}

#[tokio::test]
async fn a_skill_needs_permission_by_its_name() {
    let project = project();
    let asks = project.asks("skill", json!({"name": "pdf"})).await.expect("asks");
    assert_eq!(
        (asks[0].permission.as_str(), &asks[0].patterns, &asks[0].always),
        ("skill", &vec!["pdf".to_owned()], &vec!["pdf".to_owned()])
    );
    let error = project.error("skill", json!({"name": "nope"})).await;
    assert_eq!(error, "Skill \"nope\" not found. Available skills: built-in, pdf");
}
