//! OpenCode's environment variables: supported, with a `CODEWRIGHT_` variant, or listed as without effect.

use codewright_config::{Env, env};

#[test]
fn every_known_variable_is_read_or_listed_as_without_effect() {
    let read = env::OWN.iter().map(|(name, _)| *name);
    let without_effect = env::WITHOUT_EFFECT.iter().map(|(name, _)| *name);
    let known: Vec<_> = read.chain(without_effect).collect();
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
fn the_own_variant_of_every_variable_wins() {
    for (name, description) in env::OWN {
        assert!(!description.is_empty(), "{name}");
        let variant = name.replacen("OPENCODE_", "CODEWRIGHT_", 1);
        assert_ne!(&variant, name);
        let both = Env::from_pairs([(*name, "theirs"), (variant.as_str(), "ours")]);
        assert_eq!(both.get(name), Some("ours"), "{name}");
        let one = Env::from_pairs([(variant.as_str(), "ours")]);
        assert_eq!(one.get(name), Some("ours"), "{name}");
    }
}

/// The page of all variables.
fn page() -> String {
    let row = |(name, description): &(&str, &str)| format!("| `{name}` | {description} |\n");
    let group = |(names, description): &(&[&str], &str)| {
        let names: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
        format!("| {} | {description} |\n", names.join(", "))
    };
    let rows = |table: &[(&str, &str)]| table.iter().map(row).collect::<String>();
    let groups: String = env::SHARED_GROUPS.iter().map(group).collect();
    format!(
        "# Environment variables\n\n\
         This page is generated from `crates/config/src/env/names.rs`.\n\n\
         A switch is on if its value is `1` or `true`. Provider keys, such as `ANTHROPIC_API_KEY`, are listed by\n\
         `codewright providers list`; see [providers](providers.md).\n\n\
         ## Variables of Codewright\n\n\
         Each also exists with the prefix `CODEWRIGHT_` instead of `OPENCODE_`, which wins if both are set.\n\n\
         | variable | meaning |\n|---|---|\n{}\n\
         ## Variables of the system and other programs\n\n\
         | variable | meaning |\n|---|---|\n{}{groups}\n\
         ## Variables of OpenCode without an effect\n\n\
         | variable | reason |\n|---|---|\n{}",
        rows(env::OWN),
        rows(env::SHARED),
        rows(env::WITHOUT_EFFECT),
    )
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a switch of the test, not configuration of the program")]
fn the_documentation_lists_all_variables() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/environment.md");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(path, page()).expect("written");
    }
    let current = std::fs::read_to_string(path).expect("the page");
    assert_eq!(current, page(), "run this test with UPDATE_DOCS=1");
}
