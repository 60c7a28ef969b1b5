//! Loading never panics, for any content of a file.

use codewright_config::agents;
use proptest::prelude::*;

use crate::Fixture;

/// Texts made of tokens of a configuration, most of them almost valid.
fn almost() -> impl Strategy<Value = String> {
    let word = prop::sample::select(vec![
        "{",
        "}",
        "[",
        "]",
        ":",
        ",",
        "\"",
        "\\",
        "\\u12",
        "//",
        "/*",
        "*/",
        "\n",
        "\r",
        " ",
        "\u{feff}",
        "é",
        "null",
        "true",
        "-",
        "1",
        "1e9999",
        "0x1",
        "\"agent\":",
        "\"provider\":",
        "\"permission\":",
        "\"model\":",
        "\"a/b\"",
        "\"ask\"",
        "\"limit\":",
        "\"models\":",
        "\"options\":",
        "\"{env:HOME}\"",
        "\"{file:x}\"",
        "{env:",
        "{file:",
    ]);
    prop::collection::vec(word, 0..40).prop_map(|words| words.concat())
}

/// Values of every type for the known keys.
fn document() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<f64>().prop_map(Into::into),
        prop::sample::select(vec!["", "ask", "deny", "a/b", "all", "auto", "x"]).prop_map(Into::into),
    ];
    leaf.prop_recursive(6, 60, 5, |inner| {
        let key = prop::sample::select(vec![
            "agent",
            "mode",
            "plan",
            "provider",
            "p",
            "models",
            "options",
            "permission",
            "bash",
            "tools",
            "limit",
            "context",
            "cost",
            "input",
            "timeout",
            "steps",
            "disable",
            "instructions",
            "plugin",
            "share",
            "model",
        ]);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Into::into),
            prop::collection::vec((key, inner), 0..6).prop_map(|entries| {
                serde_json::Value::Object(
                    entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect(),
                )
            }),
        ]
    })
}

fn survives(bytes: &[u8]) {
    let fixture = Fixture::new();
    fixture.write("project/opencode.json", bytes);
    fixture.write("project/sub/opencode.jsonc", bytes);
    if let Ok(loaded) = fixture.load() {
        assert!(loaded.config.raw.is_object());
        agents(&loaded.config, &fixture.dirs(), &fixture.path("project"), &[]).unwrap();
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn any_bytes_are_handled(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        survives(&bytes);
    }

    #[test]
    fn almost_valid_texts_are_handled(text in almost()) {
        survives(text.as_bytes());
    }

    #[test]
    fn every_valid_document_gives_agents(document in document()) {
        survives(document.to_string().as_bytes());
    }
}

#[test]
fn deep_documents_need_only_a_small_stack() {
    for open in ["[", "{\"a\":", "{\"permission\":", "{\"a\":["] {
        let text = open.repeat(20_000);
        let answer =
            std::thread::Builder::new().stack_size(1024 * 1024).spawn(move || survives(text.as_bytes()));
        answer.unwrap().join().unwrap();
    }
}

#[test]
fn long_documents_are_loaded_quickly() {
    let references = format!("{{\"a\": \"{}\"}}", "{file:".repeat(150_000));
    let strangers = format!("{{{}}}", vec!["\"modle\":1"; 90_000].join(","));
    let list: Vec<_> = (0..100_000).map(|number| format!("\"{number}\"")).collect();
    let list = format!("{{\"instructions\": [{}]}}", list.join(","));
    let agents: Vec<_> = (0..40_000).map(|number| format!("\"{number}\":{{}}")).collect();
    let agents = format!("{{\"agent\": {{{}}}}}", agents.join(","));
    for text in [references, strangers, list, agents] {
        assert!(text.len() <= 1024 * 1024, "{}", text.len());
        survives(text.as_bytes());
    }
}
