//! The search for skills.

use codewright_config::{LoadInput, Overlay, Skill, SkillInput, Trust, open, skills};
use serde_json::{Value, json};

use crate::Fixture;

fn skill(name: &str, body: &str) -> String {
    format!("---\nname: {name}\ndescription: What {body} is for\n---\n{body}\n")
}

fn found(fixture: &Fixture, config: &Value) -> (Vec<Skill>, Vec<String>) {
    let (directory, worktree, env) = (fixture.path("project/sub"), fixture.path("project"), fixture.env());
    let dirs = fixture.dirs();
    let input = LoadInput { directory: &directory, worktree: &worktree, env: &env, dirs: &dirs };
    let (_, control) = open(input, &[], &Overlay::default(), |_| Trust::Full).unwrap();
    let paths = Vec::new();
    skills(SkillInput {
        directory: &directory,
        worktree: &worktree,
        env: &env,
        dirs: &dirs,
        config,
        control: Some(&control),
        repository_paths: &paths,
        downloaded: &[fixture.path("downloaded")],
    })
}

fn names(fixture: &Fixture, config: &Value) -> Vec<String> {
    found(fixture, config).0.into_iter().map(|skill| skill.name).collect()
}

#[test]
fn skills_are_found_in_every_directory() {
    let fixture = Fixture::new();
    for path in [
        "home/.claude/skills/a",
        "home/.agents/skills/b",
        "project/.claude/skills/c",
        "project/sub/.agents/skills/d",
        "home/.config/opencode/skill/e",
        "home/.config/opencode/skills/f",
        "home/.opencode/skills/g",
        "project/.opencode/skill/h",
        "project/sub/.opencode/skills/in/folders/i",
        "more/j",
    ] {
        let name = path.rsplit('/').next().unwrap();
        fixture.write(&format!("{path}/SKILL.md"), skill(name, name));
    }
    fixture.write("project/sub/deep/.opencode/skills/z/SKILL.md", skill("z", "z"));
    let config = json!({"skills": {"paths": ["../../more"]}});
    let expected = ["customize-opencode", "a", "b", "c", "d", "e", "f", "g", "h", "i", "j"];
    assert_eq!(names(&fixture, &config), expected);
    let (found, warnings) = found(&fixture, &config);
    assert_eq!((found[1].content.as_str(), found[1].description.as_deref()), ("a\n", Some("What a is for")));
    assert_eq!(found[1].location.as_deref(), Some(fixture.path("home/.claude/skills/a/SKILL.md").as_path()));
    assert!(warnings.is_empty(), "{warnings:?}");
}

#[test]
fn the_closest_skill_of_the_same_name_wins() {
    let mut fixture = Fixture::new();
    fixture.write("home/.claude/skills/x/SKILL.md", skill("x", "global"));
    fixture.write("home/.config/opencode/skills/x/SKILL.md", skill("x", "own"));
    fixture.write("project/.opencode/skills/x/SKILL.md", skill("x", "project"));
    fixture.write("project/sub/.opencode/skill/x/SKILL.md", skill("x", "near"));
    fixture.write("project/.claude/skills/customize-opencode/SKILL.md", skill("customize-opencode", "mine"));
    let (skills, _) = found(&fixture, &Value::Null);
    let contents: Vec<_> = skills.iter().map(|skill| skill.content.as_str()).collect();
    assert_eq!(contents, ["mine\n", "near\n"]);
    fixture.set("OPENCODE_DISABLE_PROJECT_CONFIG", "1");
    assert_eq!(found(&fixture, &Value::Null).0[1].content, "own\n");
}

#[test]
fn directories_of_other_programs_can_be_ignored() {
    for (variable, expected) in [
        ("OPENCODE_DISABLE_CLAUDE_CODE_SKILLS", vec!["customize-opencode", "b", "c"]),
        ("CODEWRIGHT_DISABLE_EXTERNAL_SKILLS", vec!["customize-opencode", "c"]),
    ] {
        let mut fixture = Fixture::new();
        fixture.write("project/.claude/skills/a/SKILL.md", skill("a", "a"));
        fixture.write("project/.agents/skills/b/SKILL.md", skill("b", "b"));
        fixture.write("project/.opencode/skills/c/SKILL.md", skill("c", "c"));
        fixture.set(variable, "1");
        assert_eq!(names(&fixture, &Value::Null), expected, "{variable}");
    }
}

#[test]
fn an_invalid_skill_is_reported_with_its_file_and_key() {
    let fixture = Fixture::new();
    for (name, text, why) in [
        ("bare", "no front matter", "does not start with front matter"),
        ("open", "---\nname: x\nno end", "does not start with front matter"),
        ("nameless", "---\ndescription: x\n---\n", "`name` is missing"),
        ("bad", "---\nname: a<b\n---\n", "`name` must have"),
        (
            "long",
            &format!("---\nname: a\ndescription: {}\n---\n", "x".repeat(3000)),
            "`description` is longer",
        ),
        ("large", &format!("---\nname: a\n---\n{}", "x".repeat(300 * 1024)), "larger than 256 KiB"),
    ] {
        let path = format!("project/.opencode/skills/{name}/SKILL.md");
        fixture.write(&path, text);
        let (skills, warnings) = found(&fixture, &json!({}));
        let file = fixture.path(&path).display().to_string();
        assert!(
            warnings.iter().any(|warning| warning.contains(&file) && warning.contains(why)),
            "{warnings:?}"
        );
        assert_eq!(skills.len(), 1);
    }
    fixture.write("project/.opencode/skills/text/SKILL.md", [0xff, 0xfe]);
    assert_eq!(found(&fixture, &json!({})).1.len(), 7);
}

#[test]
fn skills_are_bounded() {
    let fixture = Fixture::new();
    for n in 0..210 {
        fixture.write(&format!("project/.opencode/skills/s{n}/SKILL.md"), skill(&format!("s{n}"), "x"));
    }
    let (skills, warnings) = found(&fixture, &json!({}));
    assert_eq!(skills.len(), 200);
    assert!(warnings.iter().any(|warning| warning.contains("more than 200 skills")), "{warnings:?}");
}

#[test]
fn a_downloaded_skill_never_replaces_another_one() {
    let fixture = Fixture::new();
    fixture.write("downloaded/own/SKILL.md", skill("own", "downloaded"));
    fixture.write("downloaded/more/SKILL.md", skill("more", "downloaded"));
    fixture.write("project/.opencode/skills/own/SKILL.md", skill("own", "of the project"));
    let (skills, warnings) = found(&fixture, &json!({}));
    let described = |name: &str| {
        let found = skills.iter().find(|skill| skill.name == name);
        found.and_then(|skill| skill.description.clone()).unwrap_or_default()
    };
    assert_eq!(
        (described("own").as_str(), described("more").as_str()),
        ("What of the project is for", "What downloaded is for")
    );
    assert!(warnings.is_empty(), "{warnings:?}");
}

#[cfg(unix)]
#[test]
fn a_cycle_of_links_ends() {
    let fixture = Fixture::new();
    fixture.write("project/.opencode/skills/a/SKILL.md", skill("a", "a"));
    std::os::unix::fs::symlink(fixture.path("project"), fixture.path("project/.opencode/skills/a/loop"))
        .unwrap();
    assert_eq!(names(&fixture, &Value::Null), ["customize-opencode", "a"]);
}
