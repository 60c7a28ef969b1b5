//! Every variable of the original that steers it: understood, with a twin, or named as without effect.

use codewright_config::{Env, env};

#[test]
fn every_known_variable_is_read_or_listed_as_without_effect() {
    let read = env::OWN.iter().map(|(name, _)| *name);
    let passed_over = env::WITHOUT_EFFECT.iter().map(|(name, _)| *name);
    let known: Vec<_> = read.chain(passed_over).collect();
    for name in [
        "OPENCODE_API_KEY",
        "OPENCODE_AUTH_CONTENT",
        "OPENCODE_BUN",
        "OPENCODE_CLIENT",
        "OPENCODE_CONFIG",
        "OPENCODE_CONFIG_CONTENT",
        "OPENCODE_CONFIG_DIR",
        "OPENCODE_DISABLE_AUTOUPDATE",
        "OPENCODE_DISABLE_CLAUDE_CODE_PROMPT",
        "OPENCODE_DISABLE_LSP_DOWNLOAD",
        "OPENCODE_DISABLE_MODELS_FETCH",
        "OPENCODE_DISABLE_PROJECT_CONFIG",
        "OPENCODE_ENABLE_EXA",
        "OPENCODE_EXPERIMENTAL",
        "OPENCODE_EXPERIMENTAL_LSP_TOOL",
        "OPENCODE_EXPERIMENTAL_PLAN_MODE",
        "OPENCODE_MODELS_URL",
        "OPENCODE_PERMISSION",
        "OPENCODE_PID",
        "OPENCODE_SERVER_PASSWORD",
        "OPENCODE_SERVER_USERNAME",
    ] {
        assert_eq!(known.iter().filter(|known| **known == name).count(), 1, "{name}");
    }
}

#[test]
fn every_variable_has_a_twin_that_wins() {
    for (name, says) in env::OWN {
        assert!(!says.is_empty(), "{name}");
        let twin = name.replacen("OPENCODE_", "CODEWRIGHT_", 1);
        assert_ne!(&twin, name);
        let both = Env::from_pairs([(*name, "theirs"), (twin.as_str(), "ours")]);
        assert_eq!(both.get(name), Some("ours"), "{name}");
        let one = Env::from_pairs([(twin.as_str(), "ours")]);
        assert_eq!(one.get(name), Some("ours"), "{name}");
    }
}

#[test]
fn the_documentation_names_every_variable() {
    let text = include_str!("../../../../docs/configuration.md");
    for (name, _) in env::OWN.iter().chain(env::WITHOUT_EFFECT) {
        assert!(text.contains(name), "{name} is not in docs/configuration.md");
    }
}
