//! `providers login` with the sign-ins of plugins.

use std::fs;

use anyhow::Result;
use codewright_testkit::{Finished, Run, Script};
use serde_json::{Value, json};

use super::{Scene, has_node};
use crate::support::{check_code, check_has};

const SIGN_INS: &str = r#"
const prompts = [
  { type: "select", key: "plan", message: "Which plan?", options: [{ label: "Team", value: "team" }, { label: "Own", value: "own" }] },
  { type: "text", key: "team", message: "Which team?", when: { key: "plan", op: "eq", value: "team" },
    validate: (value) => (value === "blue" ? undefined : "There is no such team.") },
  { type: "text", key: "never", message: "Never asked", condition: () => false },
];
export const Acme = async () => ({
  auth: {
    provider: "acme",
    methods: [
      { type: "oauth", label: "With a code", prompts, authorize: async (inputs) => ({
          url: "https://acme.example/" + inputs.plan + "/" + inputs.team + "\u001b[2J",
          instructions: "Paste the code", method: "code",
          callback: async (code) => code === "right"
            ? { type: "success", access: "access-canary", refresh: "refresh-canary", expires: 4102444800000 }
            : { type: "failed" } }) },
      { type: "oauth", label: "In the browser", authorize: async () => ({
          url: "https://acme.example/", instructions: "Wait", method: "auto",
          callback: async () => ({ type: "success", key: "auto-canary" }) }) },
      { type: "api", label: "With a password", prompts: [{ type: "text", key: "password", message: "Password" }],
        authorize: async (inputs) => inputs.password === "open" ? { type: "success", key: "made-canary" } : { type: "failed" } },
    ],
  },
});
export const Plain = async () => ({
  auth: { provider: "plain", methods: [{ type: "api", label: "A key", prompts: [{ type: "text", key: "region", message: "Region" }] }] },
});
"#;

fn scene() -> Result<Scene> {
    let scene = Scene::new(Script::new().text("Done."), &json!({}))?;
    // One plugin has one sign-in.
    let (acme, plain) = SIGN_INS.split_at(SIGN_INS.find("export const Plain").unwrap_or_default());
    scene.user("plugin/acme.js", acme)?;
    scene.user("plugin/plain.js", plain)?;
    Ok(scene)
}

fn login<'a>(scene: &Scene, args: &[&'a str], input: &str) -> Run {
    let all: Vec<&'a str> = ["providers", "login"].into_iter().chain(args.iter().copied()).collect();
    scene.program(&all).stdin(input)
}

fn stored(scene: &Scene) -> Value {
    let path = scene.stage.project.home().join(".local/share/codewright/auth.json");
    let text = fs::read_to_string(path).unwrap_or_else(|_| "{}".to_owned());
    serde_json::from_str(&text).unwrap_or_default()
}

#[track_caller]
fn keeps_quiet(done: &Finished) {
    let all = format!("{}{}", done.stdout, done.stderr);
    assert!(!all.contains("canary") && !all.contains('\u{1b}'), "{all}");
}

#[test]
fn a_plugin_signs_in_on_the_command_line() -> Result<()> {
    if !has_node() {
        return Ok(());
    }
    let oauth = json!({"type": "oauth", "access": "access-canary", "refresh": "refresh-canary", "expires": 4_102_444_800_000_u64});
    for (args, input, provider, expected) in [
        (&["-p", "acme", "-m", "with a code"][..], "1\nred\nblue\nright\n", "acme", oauth),
        (&["-p", "acme", "-m", "In the browser"], "", "acme", json!({"type": "api", "key": "auto-canary"})),
        (&["acme", "-m", "With a password"], "open\n", "acme", json!({"type": "api", "key": "made-canary"})),
        // Piped input can only be a key, so the method with one is used.
        (&["acme"], "open\n", "acme", json!({"type": "api", "key": "made-canary"})),
        (
            &["-p", "plain"],
            "eu\nkey-canary\n",
            "plain",
            json!({"type": "api", "key": "key-canary", "metadata": {"region": "eu"}}),
        ),
    ] {
        let scene = scene()?;
        let done = login(&scene, args, input).finish()?;
        check_code(&done, 0);
        keeps_quiet(&done);
        check_has(&done.stdout, &["Signed in to "]);
        assert_eq!(stored(&scene)[provider], expected, "{args:?}: {}", done.stderr);
        if args.contains(&"with a code") {
            check_has(&done.stderr, &["There is no such team.", "Go to: https://acme.example/team/blue"]);
            assert!(!done.stderr.contains("Never asked"), "{}", done.stderr);
        }
    }
    Ok(())
}

/// A sign-in of the form `{id, setup}`.
const V2: &str = r#"
export default {
  id: "v2auth",
  setup: ({ integration }) => integration.transform((draft) => draft.method.update({
    integrationID: "v2prov",
    method: { id: "m", type: "oauth", label: "Sign in" },
    authorize: async () => ({ url: "https://v2.example/", instructions: "Paste the code", mode: "code",
      callback: async (code) => ({ type: "oauth", methodID: "m", access: "canary-" + code, refresh: "r", expires: 4102444800000 }) }),
  })),
};
"#;

#[test]
fn a_v2_plugin_signs_in_on_the_command_line() -> Result<()> {
    if !has_node() {
        return Ok(());
    }
    let scene = Scene::new(Script::new().text("Done."), &json!({}))?;
    scene.user("plugin/v2.js", V2)?;
    let done = login(&scene, &["v2prov"], "right\n").finish()?;
    check_code(&done, 0);
    keeps_quiet(&done);
    let expected =
        json!({"type": "oauth", "access": "canary-right", "refresh": "r", "expires": 4_102_444_800_000_u64});
    assert_eq!(stored(&scene)["v2prov"], expected);
    Ok(())
}

#[test]
fn a_sign_in_of_a_plugin_that_fails_changes_nothing() -> Result<()> {
    if !has_node() {
        return Ok(());
    }
    let scene = scene()?;
    for (args, input, expected) in [
        (&["-p", "acme", "-m", "With a code"][..], "2\nwrong\n", "failed"),
        (&["-p", "acme", "-m", "With a code"], "1\nred\nred\nred\n", "nothing was entered"),
        (&["-p", "acme", "-m", "With a code"], "1\n", "the input ended"),
        (&["-p", "acme", "-m", "by post"], "", "its methods: With a code, In the browser, With a password"),
        (&["acme"], "shut\n", "failed"),
        (&["plain"], "eu\n", "missing key"),
    ] {
        let done = login(&scene, args, input).finish()?;
        assert_eq!(done.code, Some(1), "{args:?} {input:?}: {}", done.stdout);
        check_has(&done.stderr, &[expected]);
        assert_eq!(stored(&scene), json!({}), "{args:?}");
    }
    Ok(())
}

#[test]
fn a_configuration_that_cannot_be_read_does_not_prevent_a_sign_in() -> Result<()> {
    let scene = Scene::new(Script::new().text("Done."), &json!({}))?;
    scene.user("codewright.json", "{broken")?;
    let done = login(&scene, &["-p", "groq"], "key-canary\n").finish()?;
    check_code(&done, 0);
    assert_eq!(stored(&scene)["groq"]["key"], "key-canary");
    check_has(&done.stderr, &["the sign-ins of plugins are missing"]);
    Ok(())
}
