//! What strings are filled in with.

use crate::{Place, project};

#[track_caller]
fn username(place: &Place) -> String {
    place.load().unwrap().config.username.unwrap()
}

#[test]
fn a_file_is_looked_for_beside_the_document() {
    let place = Place::new();
    place.write("home/.config/opencode/opencode.json", r#"{"username": "{file:name.txt}"}"#);
    place.write("home/.config/opencode/name.txt", "\u{feff}global\n");
    place.write("project/name.txt", "project\n");
    assert_eq!(username(&place), "global");
    place.write("project/.opencode/opencode.json", r#"{"username": "{file:../name.txt}"}"#);
    assert_eq!(username(&place), "project");
}

#[test]
fn a_file_may_be_named_from_the_home_or_the_root() {
    let place = Place::new();
    place.write("home/.config/opencode/opencode.json", r#"{"username": "{file:~/name}"}"#);
    place.write("home/name", " home \n");
    assert_eq!(username(&place), "home");
    let absolute = place.path("home/name").display().to_string();
    place.write("home/.config/opencode/opencode.json", format!(r#"{{"username": "<{{file:{absolute}}}>"}}"#));
    assert_eq!(username(&place), "<home>");
}

#[test]
fn a_variables_text_fills_in_from_the_directory() {
    let mut place = Place::new();
    place.write("project/sub/name", "sub");
    place.set("OPENCODE_CONFIG_CONTENT", r#"{"username": "{file:name}"}"#);
    assert_eq!(username(&place), "sub");
}

#[test]
fn what_is_filled_in_cannot_change_the_document() {
    let mut place = project(r#"{"username": "{env:EVIL}", "share": "manual"}"#);
    let evil = "a\", \"share\": \"auto\", \\ {env:HOME} \n\u{1}";
    place.set("EVIL", evil);
    let config = place.load().unwrap().config;
    assert_eq!(config.username.as_deref(), Some(evil));
    assert_eq!(config.raw["share"], "manual");
    assert_eq!(config.raw["username"], evil);
}

#[test]
fn strings_at_every_depth_are_filled_in_and_keys_are_not() {
    let mut place = project(
        r#"{"provider": {"a": {"options": {"apiKey": "{env:KEY}", "headers": {"{env:KEY}": "Bearer {env:KEY}"}}}},
            "instructions": ["{env:KEY}.md"]}"#,
    );
    place.set("KEY", "k");
    let config = place.load().unwrap().config;
    let options = &config.provider.get("a").unwrap().options;
    assert_eq!(options.api_key.as_deref(), Some("k"));
    assert_eq!(options.headers.get("{env:KEY}").map(String::as_str), Some("Bearer k"));
    assert_eq!(config.instructions, ["k.md"]);
}

#[test]
fn a_commented_reference_is_not_followed() {
    let place = project("{\n  // \"username\": \"{file:missing}\"\n  \"username\": \"x\"\n}");
    assert_eq!(username(&place), "x");
}
