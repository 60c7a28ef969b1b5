//! Agents, modes and commands in Markdown files.

use codewright_config::{AgentMode, CommandConfig, agents};
use codewright_proto::{Action, Rule};
use serde_json::json;

use crate::Fixture;

fn file(fixture: &Fixture, path: &str) {
    fixture.write(path, format!("---\ndescription: {path}\n---\n\nText of {path}\n"));
}

#[test]
fn every_directory_and_both_spellings_are_read_in_the_order_of_opencode() {
    let mut fixture = Fixture::new();
    let folders = [
        "home/.config/opencode",
        "home/.config/codewright",
        "project/sub/.opencode",
        "project/sub/.codewright",
        "project/.opencode",
        "project/.codewright",
        "home/.opencode",
        "home/.codewright",
        "named",
    ];
    fixture.set("OPENCODE_CONFIG_DIR", fixture.path("named").display().to_string());
    for folder in folders {
        for spelling in [
            "agent/x.md",
            "agents/below/y.md",
            "command/c.md",
            "commands/below/d.md",
            "mode/m.md",
            "modes/n.md",
        ] {
            file(&fixture, &format!("{folder}/{spelling}"));
        }
    }
    // Files override project documents.
    fixture.write(
        "project/opencode.json",
        r#"{"agent": {"x": {"description": "document", "color": "accent"}}}"#,
    );
    for folder in folders.iter().rev() {
        let loaded = fixture.load().unwrap();
        assert_eq!(loaded.warnings, Vec::<String>::new());
        let config = loaded.config;
        let names: Vec<_> = config.agent.keys().collect();
        assert_eq!(names, ["x", "below/y", "m", "n"]);
        let x = config.agent.get("x").unwrap();
        assert_eq!(x.description.as_deref(), Some(format!("{folder}/agent/x.md").as_str()));
        assert_eq!(x.prompt.as_deref(), Some(format!("Text of {folder}/agent/x.md").as_str()));
        assert_eq!(x.color.as_deref(), Some("accent"));
        assert_eq!(config.agent.get("m").unwrap().mode, Some(AgentMode::Primary));
        let commands: Vec<_> = config.command.keys().collect();
        assert_eq!(commands, ["c", "below/d"]);
        assert_eq!(config.command.get("c").unwrap().template, format!("Text of {folder}/command/c.md"));
        let origin = loaded.origins.of("agent.x.prompt").unwrap();
        assert!(origin.ends_with(&format!("{folder}/agent/x.md")), "{origin}");
        std::fs::remove_dir_all(fixture.path(folder)).unwrap();
    }
    assert!(fixture.load().unwrap().config.command.keys().next().is_none());
}

#[test]
fn every_field_of_an_agent_is_read() {
    let fixture = Fixture::new();
    fixture.write(
        "project/.opencode/agent/full.md",
        "---\ndescription: Use this when: things have colons\nmode: subagent\nmodel: acme/m\nvariant: high\n\
         temperature: 0.1\ntop_p: 0.5\nsteps: 3\ncolor: \"#ff0000\"\nhidden: true\ntools:\n  write: false\n  bash: false\n\
         permission:\n  edit: ask\n  bash:\n    \"git *\": allow\n    \"*\": deny\noptions: {seed: 1}\ncustom: value\n---\n\nPrompt.\n",
    );
    let config = fixture.load().unwrap().config;
    let all = agents(&config, &fixture.dirs(), &fixture.path("project"), &[]).unwrap();
    let full = all.iter().find(|agent| agent.name == "full").unwrap();
    assert_eq!(full.description.as_deref(), Some("Use this when: things have colons"));
    assert_eq!((full.mode, full.hidden, full.native), (AgentMode::Subagent, true, false));
    assert_eq!((full.temperature, full.top_p, full.steps), (Some(0.1), Some(0.5), Some(3)));
    assert_eq!((full.variant.as_deref(), full.color.as_deref()), (Some("high"), Some("#ff0000")));
    assert_eq!(full.model.as_ref().unwrap().model_id, "m");
    assert_eq!(full.prompt.as_deref(), Some("Prompt."));
    assert_eq!(json!(full.options), json!({"seed": 1, "custom": "value"}));
    let own: Vec<_> = full.permission.iter().rev().skip(1).take(3).rev().cloned().collect();
    let expected = [
        Rule::new("edit", "*", Action::Ask),
        Rule::new("bash", "git *", Action::Allow),
        Rule::new("bash", "*", Action::Deny),
    ];
    assert_eq!(own, expected);
}

#[test]
fn every_field_of_a_command_is_read_from_files_and_documents() {
    let fixture = Fixture::new();
    fixture.write(
        "project/.opencode/command/c.md",
        "---\ndescription: d\nagent: plan\nmodel: a/b\nvariant: low\nsubtask: true\nother: 1\n---\nDo $1\n",
    );
    fixture.write(
        "project/opencode.json",
        r#"{"command": {"j": {"template": "T $ARGUMENTS", "agent": "build"}}}"#,
    );
    let loaded = fixture.load().unwrap();
    let text = |text: &str| Some(text.to_owned());
    let expected = CommandConfig {
        template: "Do $1".to_owned(),
        description: text("d"),
        agent: text("plan"),
        model: text("a/b"),
        variant: text("low"),
        subtask: Some(true),
    };
    assert_eq!(loaded.config.command.get("c"), Some(&expected));
    assert_eq!(loaded.config.command.get("j").unwrap().template, "T $ARGUMENTS");
    assert_eq!(loaded.config.raw["command"]["c"]["template"], json!("Do $1"));
}

#[test]
fn an_invalid_file_is_reported_and_the_others_are_used() {
    let fixture = Fixture::new();
    let folder = "project/.opencode";
    fixture.write(&format!("{folder}/agent/front.md"), "---\ndescription: [never\nmode: primary\n---\nP\n");
    fixture.write(&format!("{folder}/agent/value.md"), "---\nmode: wrong\nsteps: 0\ncolor: red\n---\nP\n");
    fixture.write(&format!("{folder}/agent/binary.md"), [0xff, 0xfe, 0x00]);
    fixture.write(&format!("{folder}/agent/model.md"), "---\nmodel: nothing\n---\nP\n");
    fixture.write(&format!("{folder}/command/folder.md/inner.md"), "inside");
    let loaded = fixture.load().unwrap();
    let agent = |name: &str| loaded.config.agent.get(name);
    assert_eq!(agent("front").unwrap().mode, Some(AgentMode::Primary));
    assert_eq!(agent("value").unwrap().color.as_deref(), Some("red"));
    assert_eq!(agent("value").unwrap().steps, None);
    assert!(agent("binary").is_none());
    assert_eq!(agent("model").unwrap().model, None);
    assert_eq!(loaded.config.command.get("folder.md/inner").unwrap().template, "inside");
    let warnings = loaded.warnings.join("\n");
    for expected in [
        "front.md` line 2: `description` has a bracket",
        "value.md`: `mode` must be one of",
        "value.md`: `steps` must be a whole number",
        "binary.md` is not UTF-8 text",
        "model.md`: `model` must be",
    ] {
        assert!(warnings.contains(expected), "{expected} in {warnings}");
    }
}

#[test]
fn alternative_keys_are_read() {
    let fixture = crate::project(
        r#"{"agent": {"a": {"color": "accent"}}, "agents": {"a": {"steps": 2}},
            "permissions": {"bash": {"deny": ["rm *"], "allow": ["*"], "ask": ["git *"]}}}"#,
    );
    let config = fixture.load().unwrap().config;
    let agent = config.agent.get("a").unwrap();
    assert_eq!((agent.steps, agent.color.as_deref()), (Some(2), Some("accent")));
    let expected = [("*", Action::Allow), ("git *", Action::Ask), ("rm *", Action::Deny)];
    assert_eq!(config.permission, expected.map(|(pattern, action)| Rule::new("bash", pattern, action)));
}

#[test]
fn the_name_in_the_front_matter_replaces_that_of_the_file() {
    let fixture = Fixture::new();
    let write = |path: &str, front: &str| {
        fixture.write(&format!("project/.opencode/{path}"), format!("---\n{front}\n---\nText"));
    };
    write("agent/file.md", "name: Bar Agent\nparameters:\n  a: string");
    write("agent/blank.md", "name: ''\ndescription: d");
    write("command/file.md", "name: renamed\nparameters: x\ndescription: d");
    write("command/blank.md", "name: ''");
    let config = fixture.load().unwrap().config;
    let names: Vec<&str> = config.agent.iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["blank", "Bar Agent"]);
    let options = &config.raw["agent"]["Bar Agent"]["options"];
    assert_eq!(*options, json!({"parameters": {"a": "string"}}), "unknown keys are options, as in OpenCode");
    let commands: Vec<&String> = config.raw["command"].as_object().unwrap().keys().collect();
    assert_eq!(commands, ["blank", "renamed"]);
    assert_eq!(config.raw["command"]["renamed"], json!({"template": "Text", "description": "d"}));
}

#[test]
fn switches_written_as_words_are_understood() {
    let fixture = Fixture::new();
    for (name, value) in [("a", "no"), ("b", "\"false\""), ("c", "Off"), ("d", "'no'")] {
        let text = format!("---\ntools:\n  write: {value}\nhidden: yes\n---\nText");
        fixture.write(&format!("project/.opencode/agent/{name}.md"), text);
    }
    let loaded = fixture.load().unwrap();
    for name in ["a", "b", "c", "d"] {
        let agent = loaded.config.agent.get(name).unwrap_or_else(|| panic!("{name}: {:?}", loaded.warnings));
        assert_eq!(agent.tools.get("write"), Some(&false), "{name}");
    }
    assert_eq!(loaded.warnings, [""; 0]);
}
