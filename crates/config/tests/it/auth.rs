//! Stored credentials in all their forms.

use codewright_config::{Auth, Credential, Error};

use crate::Place;

const THEIRS: &str = "home/.local/share/opencode/auth.json";
const OURS: &str = "home/.local/share/codewright/auth.json";

fn api(key: &str) -> Credential {
    Credential::Api { key: key.to_owned() }
}

#[test]
fn nothing_stored_is_no_error() {
    let place = Place::new();
    let auth = Auth::load(&place.dirs(), &place.env()).unwrap();
    assert_eq!(auth.providers().count(), 0);
    assert_eq!(auth.key("anthropic"), None);
}

#[test]
fn every_form_is_read() {
    let place = Place::new();
    place.write(
        THEIRS,
        r#"{"anthropic": {"type": "api", "key": "sk-1"},
            "github-copilot": {"type": "oauth", "refresh": "r", "access": "a", "expires": 1e3, "accountId": "me"},
            "https://ai.example.org/": {"type": "wellknown", "key": "TOKEN", "token": "t"}}"#,
    );
    let auth = Auth::load(&place.dirs(), &place.env()).unwrap();
    assert_eq!(auth.key("anthropic"), Some(&api("sk-1")));
    let oauth = Credential::OAuth {
        refresh: "r".to_owned(),
        access: "a".to_owned(),
        expires: 1000,
        account_id: Some("me".to_owned()),
        enterprise_url: None,
    };
    assert_eq!(auth.key("github-copilot"), Some(&oauth));
    let known = Credential::WellKnown { key: "TOKEN".to_owned(), token: "t".to_owned() };
    assert_eq!(auth.key("https://ai.example.org"), Some(&known));
    assert_eq!(auth.key("https://ai.example.org/"), Some(&known));
}

#[test]
fn ours_lies_over_theirs_and_the_variable_replaces_both() {
    let mut place = Place::new();
    place.write(THEIRS, r#"{"a": {"type": "api", "key": "1"}, "b": {"type": "api", "key": "1"}}"#);
    place.write(OURS, r#"{"b": {"type": "api", "key": "2"}}"#);
    let auth = Auth::load(&place.dirs(), &place.env()).unwrap();
    assert_eq!((auth.key("a"), auth.key("b")), (Some(&api("1")), Some(&api("2"))));

    place.set("OPENCODE_AUTH_CONTENT", r#"{"c": {"type": "api", "key": "3"}}"#);
    let auth = Auth::load(&place.dirs(), &place.env()).unwrap();
    assert_eq!(auth.providers().collect::<Vec<_>>(), ["c"]);
}

#[test]
fn an_unknown_entry_is_passed_over_with_a_warning_and_no_secret() {
    let place = Place::new();
    place.write(
        THEIRS,
        r#"{"a": {"type": "passkey", "key": "hush"}, "b": {"type": "api", "key": 5}, "c": "hush", "d": {"type": "api", "key": "k"}}"#,
    );
    let auth = Auth::load(&place.dirs(), &place.env()).unwrap();
    assert_eq!(auth.providers().collect::<Vec<_>>(), ["d"]);
    assert_eq!(auth.warnings.len(), 3);
    assert!(auth.warnings[0].contains("auth.json`: the entry `a`"), "{}", auth.warnings[0]);
    assert!(!auth.warnings.concat().contains("hush"));
}

#[test]
fn a_broken_file_is_named_with_the_place_and_no_secret() {
    for (text, told) in [
        ("{\n\"a\": hush}", "line 2, column 6: unexpected token"),
        ("[]", "line 1, column 1: `configuration` must be an object, found a list"),
    ] {
        let place = Place::new();
        place.write(THEIRS, text);
        let error = Auth::load(&place.dirs(), &place.env()).unwrap_err();
        assert_eq!(place.told(&error), format!("`{THEIRS}` {told}"));
    }
    let place = Place::new();
    place.write(THEIRS, [0xff, 0xfe]);
    assert!(matches!(Auth::load(&place.dirs(), &place.env()), Err(Error::File { .. })));
}

#[test]
fn debug_texts_have_no_secret() {
    let place = Place::new();
    place.write(
        THEIRS,
        r#"{"a": {"type": "api", "key": "hush"}, "b": {"type": "oauth", "refresh": "hush", "access": "hush", "expires": 0},
            "c": {"type": "wellknown", "key": "TOKEN", "token": "hush"}}"#,
    );
    let auth = Auth::load(&place.dirs(), &place.env()).unwrap();
    assert_eq!(auth.providers().count(), 3);
    let text = format!("{auth:?}");
    assert!(text.contains("WellKnown") && !text.contains("hush"), "{text}");
}
