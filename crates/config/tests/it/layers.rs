//! The precedence of documents, and the merged result.

use codewright_config::{Config, Share, Source, Timeout, find_worktree};
use codewright_proto::{Action, Rule};
use serde_json::{Value, json};

use crate::{Fixture, below, project};

/// Every file that is read from `project/sub`, lowest precedence first.
const FILES: [&str; 29] = [
    "home/.config/opencode/config.json",
    "home/.config/opencode/opencode.json",
    "home/.config/opencode/opencode.jsonc",
    "home/.config/codewright/codewright.json",
    "home/.config/codewright/codewright.jsonc",
    "named.json",
    "project/opencode.json",
    "project/opencode.jsonc",
    "project/codewright.json",
    "project/codewright.jsonc",
    "project/sub/opencode.json",
    "project/sub/opencode.jsonc",
    "project/sub/codewright.json",
    "project/sub/codewright.jsonc",
    "project/sub/.opencode/config.json",
    "project/sub/.opencode/opencode.json",
    "project/sub/.opencode/opencode.jsonc",
    "project/sub/.codewright/codewright.json",
    "project/sub/.codewright/codewright.jsonc",
    "project/.opencode/config.json",
    "project/.opencode/opencode.json",
    "project/.opencode/opencode.jsonc",
    "project/.codewright/codewright.json",
    "project/.codewright/codewright.jsonc",
    "home/.opencode/config.json",
    "home/.opencode/opencode.json",
    "home/.opencode/opencode.jsonc",
    "home/.codewright/codewright.json",
    "home/.codewright/codewright.jsonc",
];

fn everywhere() -> Fixture {
    let mut fixture = Fixture::new();
    for (index, file) in FILES.iter().enumerate() {
        fixture.write(
            file,
            format!(r#"{{"username": "{file}", "instructions": ["all", "{index}"], "x{index}": 1}}"#),
        );
    }
    fixture.set("OPENCODE_CONFIG", fixture.path("named.json").display().to_string());
    fixture
}

#[test]
fn each_file_overrides_the_earlier_ones() {
    let fixture = everywhere();
    for last in (0..FILES.len()).rev() {
        let loaded = fixture.load().unwrap();
        assert_eq!(loaded.config.username.as_deref(), Some(FILES[last]));
        let read = loaded.sources.iter().map(|source| match source {
            Source::File(path) => path.as_path(),
            Source::Variable(name) | Source::Remote(name) => panic!("{name}"),
        });
        assert_eq!(below(read, &fixture), FILES[..=last]);
        assert_eq!(below(loaded.looked_for.iter().map(AsRef::as_ref), &fixture), FILES);
        std::fs::remove_file(fixture.path(FILES[last])).unwrap();
    }
    let loaded = fixture.load().unwrap();
    assert_eq!(loaded.config.username.as_deref(), Some("ann"));
    assert_eq!(loaded.warnings.len(), 1, "{:?}", loaded.warnings);
    assert!(loaded.warnings[0].contains("`OPENCODE_CONFIG` is set to"), "{}", loaded.warnings[0]);
}

#[test]
fn instructions_of_all_files_are_joined_and_unknown_keys_kept() {
    let config = everywhere().load().unwrap().config;
    let mut expected = vec!["all".to_owned()];
    expected.extend((0..FILES.len()).map(|index| index.to_string()));
    assert_eq!(config.instructions, expected);
    assert_eq!(config.rest.get("x0"), Some(&json!(1)));
    assert_eq!(config.raw["x28"], json!(1));
}

#[test]
fn a_variable_overrides_all_files_and_the_own_variant_the_other() {
    let mut fixture = everywhere();
    fixture.write("extra/opencode.json", r#"{"username": "extra", "model": "extra/m"}"#);
    fixture.set("OPENCODE_CONFIG_DIR", fixture.path("extra").display().to_string());
    assert_eq!(fixture.load().unwrap().config.username.as_deref(), Some("extra"));
    fixture.set("OPENCODE_CONFIG_CONTENT", r#"{"username": "theirs"}"#);
    assert_eq!(fixture.load().unwrap().config.username.as_deref(), Some("theirs"));
    fixture.set("CODEWRIGHT_CONFIG_CONTENT", r#"{"username": "ours", /* inline */}"#);
    let loaded = fixture.load().unwrap();
    assert_eq!(loaded.config.username.as_deref(), Some("ours"));
    assert_eq!(loaded.config.model.as_deref(), Some("extra/m"));
    assert_eq!(loaded.sources.last(), Some(&Source::Variable("CODEWRIGHT_CONFIG_CONTENT".to_owned())));
}

#[test]
fn project_files_can_be_disabled() {
    let mut fixture = everywhere();
    fixture.set("OPENCODE_DISABLE_PROJECT_CONFIG", "1");
    assert_eq!(fixture.load().unwrap().config.username.as_deref(), Some("home/.codewright/codewright.jsonc"));
}

#[test]
fn a_directory_outside_the_worktree_has_only_its_own_files() {
    let fixture = project(r#"{"username": "project"}"#);
    fixture.write("elsewhere/sub/opencode.json", r#"{"model": "a/b"}"#);
    fixture.write("elsewhere/opencode.json", r#"{"model": "c/d"}"#);
    let config = fixture.load_in("elsewhere/sub").unwrap().config;
    assert_eq!((config.model.as_deref(), config.username.as_deref()), (Some("a/b"), Some("ann")));
}

#[test]
fn providers_and_models_are_read_completely() {
    let fixture = Fixture::new();
    fixture.write(
        "home/.config/opencode/opencode.json",
        r##"{
        // A provider with a known protocol.
        "provider": {"acme": {
            "npm": "@ai-sdk/openai-compatible", "name": "Acme", "env": ["ACME_KEY"],
            "options": {"baseURL": "http://x/v1", "apiKey": "k", "timeout": false, "chunkTimeout": 5000,
                        "headers": {"X-A": "1"}, "setCacheKey": true},
            "whitelist": ["m"], "region": "eu",
            "models": {
                "z": {},
                "m": {"id": "m-1", "name": "M", "attachment": true, "reasoning": false, "temperature": true,
                      "tool_call": true, "limit": {"context": 2e5, "output": 32000},
                      "cost": {"input": 3, "output": 15.5, "cache_read": 0.3,
                               "context_over_200k": {"input": 6, "output": 22}},
                      "modalities": {"input": ["text", "image"]}, "options": {"seed": 1},
                      "headers": {"X-B": "2"}, "variants": {"high": {"effort": "high"}},
                      "interleaved": {"field": "reasoning_content"}, "family": "ms"}}}}
        }"##,
    );
    let config = fixture.load().unwrap().config;
    let acme = config.provider.get("acme").unwrap();
    assert_eq!(acme.npm.as_deref(), Some("@ai-sdk/openai-compatible"));
    assert_eq!(acme.env, ["ACME_KEY"]);
    assert_eq!(acme.options.base_url.as_deref(), Some("http://x/v1"));
    assert_eq!(acme.options.api_key.as_deref(), Some("k"));
    assert_eq!(acme.options.timeout, Some(Timeout::Never));
    assert_eq!(acme.options.chunk_timeout, Some(Timeout::After(std::time::Duration::from_secs(5))));
    assert_eq!(acme.options.headers.get("X-A").map(String::as_str), Some("1"));
    assert_eq!(acme.options.rest.get("setCacheKey"), Some(&json!(true)));
    assert_eq!(acme.whitelist.as_deref(), Some(&["m".to_owned()][..]));
    assert_eq!(acme.rest.get("region"), Some(&json!("eu")));
    assert_eq!(acme.models.keys().collect::<Vec<_>>(), ["z", "m"]);
    let model = acme.models.get("m").unwrap();
    assert_eq!(
        (model.limit.context, model.limit.output, model.limit.input),
        (Some(200_000), Some(32_000), None)
    );
    let cost = model.cost.as_ref().unwrap();
    assert_eq!((cost.input, cost.output, cost.cache_read), (Some(3.0), Some(15.5), Some(0.3)));
    assert_eq!(cost.context_over_200k.as_ref().unwrap().output, Some(22.0));
    let modalities = model.modalities.as_ref().unwrap();
    assert_eq!(modalities.input.as_ref().unwrap().len(), 2);
    assert_eq!(modalities.output, None);
    assert_eq!(model.interleaved, Some(json!({"field": "reasoning_content"})));
    assert_eq!(model.variants.get("high"), Some(&json!({"effort": "high"})));
    assert_eq!((model.attachment, model.reasoning), (Some(true), Some(false)));
    assert_eq!(Value::Object(model.rest.clone()), json!({"family": "ms"}));
}

#[test]
fn the_merged_document_equals_that_of_opencode() {
    let fixture = project(
        r#"{"zebra": 1, "model": "a/b", "share": "disabled", "autoupdate": false,
            "agent": {"plan": {"model": "c/d"}, "t": {"permission": {"bash": "deny"}, "steps": 2, "extra": 1}},
            "instructions": ["docs/*.md"]}"#,
    );
    let raw = fixture.load().unwrap().config.raw;
    let expected = r#"{"$schema":"https://opencode.ai/config.json","command":{},"plugin":[],"share":"disabled","autoupdate":false,"model":"a/b","username":"ann","mode":{},"agent":{"plan":{"model":"c/d","options":{},"permission":{}},"t":{"options":{"extra":1},"steps":2,"permission":{"bash":"deny"},"extra":1}},"instructions":["docs/*.md"],"zebra":1}"#;
    assert_eq!(raw.to_string(), expected);
}

#[test]
fn simple_keys_are_typed() {
    let fixture = project(
        r#"{"small_model": "a/b", "default_agent": "plan", "username": "", "snapshot": false, "share": "auto",
            "disabled_providers": ["x"], "enabled_providers": [], "model": "{env:UNSET}"}"#,
    );
    let config = fixture.load().unwrap().config;
    assert_eq!(config.small_model.as_deref(), Some("a/b"));
    assert_eq!(config.default_agent.as_deref(), Some("plan"));
    assert_eq!(config.username.as_deref(), Some("ann"));
    assert_eq!((config.snapshot, config.share), (Some(false), Some(Share::Auto)));
    assert_eq!(config.disabled_providers, ["x"]);
    assert_eq!(config.enabled_providers, Some(Vec::new()));
    assert_eq!(config.model, None);
}

#[track_caller]
fn rules(config: &Config, expected: &[(&str, &str, Action)]) {
    let expected: Vec<_> = expected
        .iter()
        .map(|(permission, pattern, action)| Rule::new(permission, pattern, *action))
        .collect();
    assert_eq!(config.permission, expected);
}

#[test]
fn permissions_of_all_documents_are_merged_in_order() {
    let mut fixture = project(r#"{"permission": {"bash": {"git *": "allow", "*": "ask"}, "edit": "deny"}}"#);
    fixture.write(
        "home/.config/opencode/opencode.json",
        r#"{"permission": "ask", "tools": {"patch": true, "glob": false}}"#,
    );
    fixture.set("OPENCODE_PERMISSION", r#"{"edit": "ask", "bash": {"rm *": "deny"}}"#);
    rules(
        &fixture.load().unwrap().config,
        &[
            ("edit", "*", Action::Ask),
            ("glob", "*", Action::Deny),
            ("*", "*", Action::Ask),
            ("bash", "git *", Action::Allow),
            ("bash", "*", Action::Ask),
            ("bash", "rm *", Action::Deny),
        ],
    );
}

#[test]
fn the_tools_of_a_later_document_override_the_permissions_of_an_agent() {
    let fixture = project(r#"{"agent": {"a": {"tools": {"bash": true}}}}"#);
    fixture.write(
        "home/.config/opencode/opencode.json",
        r#"{"agent": {"a": {"permission": {"bash": "deny"}}}}"#,
    );
    let config = fixture.load().unwrap().config;
    assert_eq!(config.agent.get("a").unwrap().permission, [Rule::new("bash", "*", Action::Allow)]);
    assert_eq!(config.agent.get("a").unwrap().tools.get("bash"), Some(&true));
}

#[test]
fn a_misspelt_key_is_an_error_and_another_unknown_key_is_kept() {
    let fixture = project("{\n  \"permissoin\": \"ask\",\n  \"mine\": 1\n}");
    let error = fixture.load().unwrap_err().to_string();
    let message = error.replace(&format!("{}/", fixture.dir.path().display()), "");
    assert_eq!(
        message,
        "`project/opencode.json` line 2, column 17: unknown key `permissoin`; did you mean `permission`?"
    );
    let loaded = project("{ \"mine\": 1 }").load().unwrap();
    assert_eq!((loaded.warnings.len(), loaded.config.rest.get("mine")), (0, Some(&json!(1))));
}

#[test]
fn a_misspelt_key_inside_an_object_names_the_nearest_one() {
    for (text, expected) in [
        (r#"{"sandbox": {"mod": "off"}}"#, Some(("sandbox.mod", "mode"))),
        (r#"{"provider": {"x": {"option": {}}}}"#, Some(("provider.x.option", "options"))),
        (r#"{"agent": {"build": {"promt": "x"}}}"#, Some(("agent.build.promt", "prompt"))),
        (r#"{"compaction": {"atuo": true}}"#, Some(("compaction.atuo", "auto"))),
        (
            r#"{"command": {"a": {"template": "x", "descripton": "y"}}}"#,
            Some(("command.a.descripton", "description")),
        ),
        // Options of a provider, permissions of a tool, and names that the user chose.
        (r#"{"agent": {"build": {"top_k": 1}}}"#, None),
        (r#"{"permission": {"edits": "deny"}}"#, None),
        (r#"{"agent": {"promt": {}}}"#, None),
    ] {
        let warnings = project(text).load().unwrap().warnings;
        match expected {
            Some((key, meant)) => {
                let expected = format!("unknown key `{key}`; did you mean `{meant}`?");
                assert!(warnings.iter().any(|one| one.ends_with(&expected)), "{text}: {warnings:?}");
            }
            None => assert!(warnings.iter().all(|one| !one.contains("did you mean")), "{text}: {warnings:?}"),
        }
    }
}

#[test]
fn loading_writes_no_files() {
    let fixture = everywhere();
    let before = snapshot(fixture.dir.path());
    fixture.load().unwrap();
    assert_eq!(snapshot(fixture.dir.path()), before);
}

fn snapshot(dir: &std::path::Path) -> Vec<(std::path::PathBuf, Option<Vec<u8>>)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(snapshot(&path));
        }
        let text = std::fs::read(&path).ok();
        found.push((path, text));
    }
    found.sort();
    found
}

#[test]
fn the_worktree_is_the_nearest_directory_that_contains_git() {
    let fixture = Fixture::new();
    fixture.write("project/.git/HEAD", "ref: refs/heads/main\n");
    fixture.write("project/sub/linked/.git", "gitdir: elsewhere\n");
    for (directory, root) in [
        ("project", "project"),
        ("project/sub/deep", "project"),
        ("project/sub/linked", "project/sub/linked"),
        ("project/missing/below", "project"),
    ] {
        let found = find_worktree(&fixture.path(directory));
        assert_eq!((found.root, found.git), (fixture.path(root), true), "{directory}");
    }
    let outside = find_worktree(std::path::Path::new("/proc"));
    assert_eq!((outside.root.as_path(), outside.git), (std::path::Path::new("/"), false));
}
