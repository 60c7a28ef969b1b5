//! The files in `examples/`: every configuration, agent and command loads without a warning.

use std::fs;
use std::path::{Path, PathBuf};

use codewright_config::{AgentMode, LoadedConfig, agents};

use crate::Fixture;

/// The files of a directory below `examples/`.
fn examples(directory: &str) -> Vec<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(directory);
    fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()).collect()
}

/// Loads an example as a file of a project.
#[track_caller]
fn load(example: &Path, target: &str) -> (Fixture, LoadedConfig) {
    let fixture = Fixture::new();
    fixture.write(target, fs::read(example).unwrap());
    let loaded = fixture.load().unwrap();
    assert_eq!(loaded.warnings, Vec::<String>::new(), "{}", example.display());
    (fixture, loaded)
}

#[test]
fn every_configuration_loads() {
    let found = examples("config");
    assert_eq!(found.len(), 4);
    for example in found {
        let extension = example.extension().unwrap().to_str().unwrap();
        let (fixture, loaded) = load(&example, &format!("project/opencode.{extension}"));
        agents(&loaded.config, &fixture.dirs(), &fixture.path("project"), &[]).unwrap();
    }
}

#[test]
fn every_agent_loads() {
    let found = examples("agent");
    assert_eq!(found.len(), 2);
    for example in found {
        let file = example.file_name().unwrap().to_str().unwrap();
        let (fixture, loaded) = load(&example, &format!("project/.opencode/agent/{file}"));
        let agents = agents(&loaded.config, &fixture.dirs(), &fixture.path("project"), &[]).unwrap();
        let name = file.strip_suffix(".md").unwrap();
        let agent = agents.iter().find(|agent| agent.name == name).unwrap();
        assert!(agent.prompt.is_some() && agent.description.is_some(), "{name}");
        assert!(matches!(agent.mode, AgentMode::Primary | AgentMode::Subagent), "{name}");
    }
}

#[test]
fn every_command_loads() {
    let found = examples("command");
    assert_eq!(found.len(), 2);
    for example in found {
        let file = example.file_name().unwrap().to_str().unwrap();
        let (_, loaded) = load(&example, &format!("project/.opencode/command/{file}"));
        let command = loaded.config.command.get(file.strip_suffix(".md").unwrap()).unwrap();
        assert!(command.description.is_some() && !command.template.is_empty(), "{file}");
    }
}
