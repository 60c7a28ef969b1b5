//! Compares the agents with recorded replies of OpenCode, with paths replaced.

use std::path::Path;

use codewright_config::{
    AgentMode, AgentSpec, Config, Dirs, Env, Error, agents, builtin_agents, default_agent, default_rules,
};
use serde_json::Value;

use crate::{Fixture, project};

const BUILTIN: &str = include_str!("agents.json");
const CHANGED: &str = include_str!("agents-changed.json");

fn dirs() -> Dirs {
    Dirs::new(&Env::from_pairs([("HOME", "/t/home")])).unwrap()
}

/// The parts of an agent that the recording contains, in its format.
fn shape(agent: &AgentSpec) -> Value {
    let mut value = serde_json::to_value(agent).unwrap();
    let map = value.as_object_mut().unwrap();
    let rules = agent.permission.iter().map(|rule| {
        let action = serde_json::to_value(rule.action).unwrap();
        Value::from(vec![Value::from(rule.permission.clone()), rule.pattern.clone().into(), action])
    });
    map.insert("permission".to_owned(), rules.collect());
    for key in ["description", "prompt", "options"] {
        map.remove(key);
    }
    value
}

fn recorded(text: &str) -> Vec<Value> {
    let ours = text
        .replace("$HOME/.local/share/opencode", "/t/home/.local/share/codewright")
        .replace("../home/.local/share/opencode", "../home/.local/share/codewright");
    serde_json::from_str(&ours).unwrap()
}

#[test]
fn the_built_in_agents_equal_those_of_opencode() {
    let builtin = builtin_agents(&dirs(), Path::new("/t/project"));
    assert_eq!(builtin.iter().map(shape).collect::<Vec<_>>(), recorded(BUILTIN));
    let without_configuration = agents(&Config::default(), &dirs(), Path::new("/t/project"), &[]).unwrap();
    assert_eq!(without_configuration, builtin);
}

#[test]
fn changed_and_added_agents_equal_those_of_opencode() {
    let fixture = project(
        r#"{"agent": {
            "plan": {"model": "mockchat/gpt-4o"},
            "tester": {"temperature": 0.3, "top_p": 0.8, "prompt": "p", "description": "d", "steps": 2,
                       "permission": {"bash": "deny"}}}}"#,
    );
    let config = fixture.load().unwrap().config;
    let agents = agents(&config, &dirs(), Path::new("/t/project"), &[]).unwrap();
    assert_eq!(agents.iter().map(shape).collect::<Vec<_>>(), recorded(CHANGED));
    let tester = agents.iter().find(|agent| agent.name == "tester").unwrap();
    assert_eq!((tester.prompt.as_deref(), tester.description.as_deref()), (Some("p"), Some("d")));
}

#[test]
fn every_agent_starts_with_the_default_rules() {
    let defaults = default_rules(&dirs());
    for agent in builtin_agents(&dirs(), Path::new("/t/project")) {
        assert!(agent.permission.starts_with(&defaults), "{}", agent.name);
    }
}

#[test]
fn the_users_rules_follow_the_agents_own_and_its_entry_follows_them() {
    let fixture = project(
        r#"{"permission": {"edit": "allow"}, "agent": {"plan": {"permission": {"bash": "ask"}, "topic": 7}}}"#,
    );
    let config = fixture.load().unwrap().config;
    let agents = agents(&config, &dirs(), Path::new("/t/project"), &[]).unwrap();
    let plan = agents.iter().find(|agent| agent.name == "plan").unwrap();
    let last: Vec<_> = plan.permission.iter().rev().take(4).map(|rule| rule.permission.as_str()).collect();
    assert_eq!(last, ["external_directory", "bash", "edit", "edit"]);
    assert_eq!(serde_json::to_string(&plan.options).unwrap(), r#"{"topic":7}"#);
    assert!(plan.native);
}

#[test]
fn tool_outputs_stay_denied_if_a_rule_names_them() {
    let outputs = dirs().tool_output().join("*").display().to_string();
    let fixture = project(&format!(r#"{{"permission": {{"external_directory": {{"{outputs}": "deny"}}}}}}"#));
    let agents = agents(&fixture.load().unwrap().config, &dirs(), Path::new("/t/project"), &[]).unwrap();
    let last = agents[0].permission.last().unwrap();
    assert_eq!((last.pattern.as_str(), last.action), (outputs.as_str(), codewright_proto::Action::Deny));
}

#[test]
fn every_agent_may_read_the_directories_of_skills() {
    let skills = ["/t/home/.claude/skills/one".into(), "/t/project/.opencode/skill/two".into()];
    let agents = agents(&Config::default(), &dirs(), Path::new("/t/project"), &skills).unwrap();
    let outside = |agent: &AgentSpec| -> Vec<String> {
        let rules = agent.permission.iter().filter(|rule| rule.permission == "external_directory");
        rules.map(|rule| rule.pattern.clone()).collect()
    };
    let (outputs, tmp) = ("/t/home/.local/share/codewright/tool-output/*", "/tmp/opencode/*");
    let (one, two) = ("/t/home/.claude/skills/one/*", "/t/project/.opencode/skill/two/*");
    assert_eq!(outside(&agents[0]), ["*", outputs, tmp, one, two, outputs]);
    let explore = agents.iter().find(|agent| agent.name == "explore").unwrap();
    assert_eq!(outside(explore)[5..], ["*", outputs, tmp, one, two, outputs]);
}

#[test]
fn a_disabled_agent_is_omitted_and_the_default_one_is_first() {
    let fixture = project(
        r#"{"default_agent": "zed", "agent": {"general": {"disable": true}, "zed": {"mode": "primary", "color": "accent"}}}"#,
    );
    let config = fixture.load().unwrap().config;
    let agents = agents(&config, &dirs(), Path::new("/t/project"), &[]).unwrap();
    let names: Vec<_> = agents.iter().map(|agent| agent.name.as_str()).collect();
    assert_eq!(names, ["zed", "build", "compaction", "explore", "plan", "summary", "title"]);
    assert_eq!(default_agent(&config, &agents).unwrap().name, "zed");
    assert_eq!(agents[0].color.as_deref(), Some("accent"));
    assert_eq!(agents[0].mode, AgentMode::Primary);
}

#[test]
fn an_invalid_default_agent_is_reported_with_similar_names() {
    for (name, problem, meant) in [
        ("biuld", "does not exist", Some("did you mean `build`?")),
        ("explore", "can only be called by other agents", None),
        ("title", "is hidden", None),
    ] {
        let fixture = project(&format!(r#"{{"default_agent": "{name}"}}"#));
        let config = fixture.load().unwrap().config;
        let agents = agents(&config, &dirs(), Path::new("/t/project"), &[]).unwrap();
        let error = default_agent(&config, &agents).unwrap_err();
        assert_eq!(error.to_string(), format!("the agent `{name}` {problem}"));
        assert_eq!(error.hint().as_deref(), meant);
    }
}

#[test]
fn without_the_build_agent_another_is_the_default() {
    let fixture = project(r#"{"agent": {"build": {"disable": true}}}"#);
    let config = fixture.load().unwrap().config;
    let all = agents(&config, &dirs(), Path::new("/t/project"), &[]).unwrap();
    assert_eq!(default_agent(&config, &all).unwrap().name, "plan");
    assert!(matches!(default_agent(&config, &[]), Err(Error::Agent { .. })));
}

#[test]
fn outside_a_repository_the_plan_path_is_relative_to_the_root() {
    let builtin = builtin_agents(&dirs(), Path::new("/"));
    let plan = builtin.iter().find(|agent| agent.name == "plan").unwrap();
    let pattern = "t/home/.local/share/codewright/plans/*.md";
    assert!(plan.permission.iter().any(|rule| rule.permission == "edit" && rule.pattern == pattern));
}

#[test]
fn the_older_mode_key_defines_primary_agents() {
    let fixture = Fixture::new();
    fixture.write(
        "project/opencode.json",
        r#"{"mode": {"plan": {"model": "a/b"}, "mine": {"tools": {"write": false}}}}"#,
    );
    let config = fixture.load().unwrap().config;
    assert_eq!(config.agent.keys().collect::<Vec<_>>(), ["plan", "mine"]);
    let mine = config.agent.get("mine").unwrap();
    assert_eq!(mine.mode, Some(AgentMode::Primary));
    assert_eq!(mine.permission, [codewright_proto::Rule::new("edit", "*", codewright_proto::Action::Deny)]);
}
