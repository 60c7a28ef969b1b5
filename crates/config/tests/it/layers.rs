//! Which document wins, and what it looks like when all are merged.

use codewright_config::{Config, Share, Source, Timeout, find_worktree};
use codewright_proto::{Action, Rule};
use serde_json::{Value, json};

use crate::{Place, below, project};

/// Every file that is read from `project/sub`, the weakest first.
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

fn everywhere() -> Place {
    let mut place = Place::new();
    for (index, file) in FILES.iter().enumerate() {
        place.write(
            file,
            format!(r#"{{"username": "{file}", "instructions": ["all", "{index}"], "x{index}": 1}}"#),
        );
    }
    place.set("OPENCODE_CONFIG", place.path("named.json").display().to_string());
    place
}

#[test]
fn each_file_wins_over_those_before_it() {
    let place = everywhere();
    for last in (0..FILES.len()).rev() {
        let loaded = place.load().unwrap();
        assert_eq!(loaded.config.username.as_deref(), Some(FILES[last]));
        let read = loaded.sources.iter().map(|source| match source {
            Source::File(path) => path.as_path(),
            Source::Variable(name) | Source::Remote(name) => panic!("{name}"),
        });
        assert_eq!(below(read, &place), FILES[..=last]);
        assert_eq!(below(loaded.looked_for.iter().map(AsRef::as_ref), &place), FILES);
        std::fs::remove_file(place.path(FILES[last])).unwrap();
    }
    let loaded = place.load().unwrap();
    assert_eq!(loaded.config.username.as_deref(), Some("ann"));
    assert_eq!(loaded.warnings.len(), 1, "{:?}", loaded.warnings);
    assert!(loaded.warnings[0].contains("`OPENCODE_CONFIG` names"), "{}", loaded.warnings[0]);
}

#[test]
fn instructions_of_all_files_add_up_and_unknown_keys_stay() {
    let config = everywhere().load().unwrap().config;
    let mut expected = vec!["all".to_owned()];
    expected.extend((0..FILES.len()).map(|index| index.to_string()));
    assert_eq!(config.instructions, expected);
    assert_eq!(config.rest.get("x0"), Some(&json!(1)));
    assert_eq!(config.raw["x28"], json!(1));
}

#[test]
fn a_variables_text_wins_over_all_files_and_ours_over_theirs() {
    let mut place = everywhere();
    place.write("extra/opencode.json", r#"{"username": "extra", "model": "extra/m"}"#);
    place.set("OPENCODE_CONFIG_DIR", place.path("extra").display().to_string());
    assert_eq!(place.load().unwrap().config.username.as_deref(), Some("extra"));
    place.set("OPENCODE_CONFIG_CONTENT", r#"{"username": "theirs"}"#);
    assert_eq!(place.load().unwrap().config.username.as_deref(), Some("theirs"));
    place.set("CODEWRIGHT_CONFIG_CONTENT", r#"{"username": "ours", /* inline */}"#);
    let loaded = place.load().unwrap();
    assert_eq!(loaded.config.username.as_deref(), Some("ours"));
    assert_eq!(loaded.config.model.as_deref(), Some("extra/m"));
    assert_eq!(loaded.sources.last(), Some(&Source::Variable("CODEWRIGHT_CONFIG_CONTENT".to_owned())));
}

#[test]
fn project_files_can_be_left_alone() {
    let mut place = everywhere();
    place.set("OPENCODE_DISABLE_PROJECT_CONFIG", "1");
    assert_eq!(place.load().unwrap().config.username.as_deref(), Some("home/.codewright/codewright.jsonc"));
}

#[test]
fn a_directory_outside_the_worktree_has_its_own_files_only() {
    let place = project(r#"{"username": "project"}"#);
    place.write("elsewhere/sub/opencode.json", r#"{"model": "a/b"}"#);
    place.write("elsewhere/opencode.json", r#"{"model": "c/d"}"#);
    let config = place.load_in("elsewhere/sub").unwrap().config;
    assert_eq!((config.model.as_deref(), config.username.as_deref()), (Some("a/b"), Some("ann")));
}

#[test]
fn providers_and_models_are_read_whole() {
    let place = Place::new();
    place.write(
        "home/.config/opencode/opencode.json",
        r##"{
        // A provider that speaks a known protocol.
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
    let config = place.load().unwrap().config;
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
fn the_merged_document_is_shown_as_the_original_shows_it() {
    let place = project(
        r#"{"zebra": 1, "model": "a/b", "share": "disabled", "autoupdate": false,
            "agent": {"plan": {"model": "c/d"}, "t": {"permission": {"bash": "deny"}, "steps": 2, "extra": 1}},
            "instructions": ["docs/*.md"]}"#,
    );
    let raw = place.load().unwrap().config.raw;
    let expected = r#"{"$schema":"https://opencode.ai/config.json","command":{},"plugin":[],"share":"disabled","autoupdate":false,"model":"a/b","username":"ann","mode":{},"agent":{"plan":{"model":"c/d","options":{},"permission":{}},"t":{"options":{"extra":1},"steps":2,"permission":{"bash":"deny"},"extra":1}},"instructions":["docs/*.md"],"zebra":1}"#;
    assert_eq!(raw.to_string(), expected);
}

#[test]
fn simple_keys_are_typed() {
    let place = project(
        r#"{"small_model": "a/b", "default_agent": "plan", "username": "", "snapshot": false, "share": "auto",
            "disabled_providers": ["x"], "enabled_providers": [], "model": "{env:UNSET}"}"#,
    );
    let config = place.load().unwrap().config;
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
fn permissions_of_all_documents_merge_in_written_order() {
    let mut place = project(r#"{"permission": {"bash": {"git *": "allow", "*": "ask"}, "edit": "deny"}}"#);
    place.write(
        "home/.config/opencode/opencode.json",
        r#"{"permission": "ask", "tools": {"patch": true, "glob": false}}"#,
    );
    place.set("OPENCODE_PERMISSION", r#"{"edit": "ask", "bash": {"rm *": "deny"}}"#);
    rules(
        &place.load().unwrap().config,
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
fn a_stronger_documents_tools_win_over_a_weaker_ones_permissions_of_an_agent() {
    let place = project(r#"{"agent": {"a": {"tools": {"bash": true}}}}"#);
    place.write(
        "home/.config/opencode/opencode.json",
        r#"{"agent": {"a": {"permission": {"bash": "deny"}}}}"#,
    );
    let config = place.load().unwrap().config;
    assert_eq!(config.agent.get("a").unwrap().permission, [Rule::new("bash", "*", Action::Allow)]);
    assert_eq!(config.agent.get("a").unwrap().tools.get("bash"), Some(&true));
}

#[test]
fn a_misspelt_key_is_warned_of_and_kept() {
    let place = project("{\n  \"permissoin\": \"ask\",\n  \"mine\": 1\n}");
    let loaded = place.load().unwrap();
    assert_eq!(loaded.warnings.len(), 1);
    let told = loaded.warnings[0].replace(&format!("{}/", place.dir.path().display()), "");
    assert_eq!(
        told,
        "`project/opencode.json` line 2, column 17: `permissoin` is not a known key; did you mean `permission`?"
    );
    assert_eq!(loaded.config.rest.get("permissoin"), Some(&json!("ask")));
}

#[test]
fn nothing_is_written() {
    let place = everywhere();
    let before = snapshot(place.dir.path());
    place.load().unwrap();
    assert_eq!(snapshot(place.dir.path()), before);
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
fn the_worktree_is_the_nearest_directory_with_git_in_it() {
    let place = Place::new();
    place.write("project/.git/HEAD", "ref: refs/heads/main\n");
    place.write("project/sub/linked/.git", "gitdir: elsewhere\n");
    for (directory, root) in [
        ("project", "project"),
        ("project/sub/deep", "project"),
        ("project/sub/linked", "project/sub/linked"),
        ("project/missing/below", "project"),
    ] {
        let found = find_worktree(&place.path(directory));
        assert_eq!((found.root, found.git), (place.path(root), true), "{directory}");
    }
    let outside = find_worktree(std::path::Path::new("/proc"));
    assert_eq!((outside.root.as_path(), outside.git), (std::path::Path::new("/"), false));
}
