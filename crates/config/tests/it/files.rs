//! References to variables and files in strings.

use crate::{Fixture, project};

#[track_caller]
fn username(fixture: &Fixture) -> String {
    fixture.load().unwrap().config.username.unwrap()
}

#[test]
fn a_file_is_relative_to_the_document() {
    let fixture = Fixture::new();
    fixture.write("home/.config/opencode/opencode.json", r#"{"username": "{file:name.txt}"}"#);
    fixture.write("home/.config/opencode/name.txt", "\u{feff}global\n");
    fixture.write("project/name.txt", "project\n");
    assert_eq!(username(&fixture), "global");
    fixture.write("project/.opencode/opencode.json", r#"{"username": "{file:../name.txt}"}"#);
    assert_eq!(username(&fixture), "project");
}

#[test]
fn a_file_can_be_relative_to_the_home_or_absolute() {
    let fixture = Fixture::new();
    fixture.write("home/.config/opencode/opencode.json", r#"{"username": "{file:~/name}"}"#);
    fixture.write("home/name", " home \n");
    assert_eq!(username(&fixture), "home");
    let absolute = fixture.path("home/name").display().to_string();
    fixture
        .write("home/.config/opencode/opencode.json", format!(r#"{{"username": "<{{file:{absolute}}}>"}}"#));
    assert_eq!(username(&fixture), "<home>");
}

#[test]
fn in_a_variable_a_file_is_relative_to_the_directory() {
    let mut fixture = Fixture::new();
    fixture.write("project/sub/name", "sub");
    fixture.set("OPENCODE_CONFIG_CONTENT", r#"{"username": "{file:name}"}"#);
    assert_eq!(username(&fixture), "sub");
}

#[test]
fn an_inserted_text_cannot_change_the_structure() {
    let mut fixture = project(r#"{"username": "{env:EVIL}", "share": "manual"}"#);
    let evil = "a\", \"share\": \"auto\", \\ {env:HOME} \n\u{1}";
    fixture.set("EVIL", evil);
    let config = fixture.load().unwrap().config;
    assert_eq!(config.username.as_deref(), Some(evil));
    assert_eq!(config.raw["share"], "manual");
    assert_eq!(config.raw["username"], evil);
}

#[test]
fn references_are_replaced_in_values_at_every_depth_and_not_in_keys() {
    let mut fixture = project(
        r#"{"provider": {"a": {"options": {"apiKey": "{env:KEY}", "headers": {"{env:KEY}": "Bearer {env:KEY}"}}}},
            "instructions": ["{env:KEY}.md"]}"#,
    );
    fixture.set("KEY", "k");
    let config = fixture.load().unwrap().config;
    let options = &config.provider.get("a").unwrap().options;
    assert_eq!(options.api_key.as_deref(), Some("k"));
    assert_eq!(options.headers.get("{env:KEY}").map(String::as_str), Some("Bearer k"));
    assert_eq!(config.instructions, ["k.md"]);
}

#[test]
fn a_reference_in_a_comment_is_ignored() {
    let fixture = project("{\n  // \"username\": \"{file:missing}\"\n  \"username\": \"x\"\n}");
    assert_eq!(username(&fixture), "x");
}
