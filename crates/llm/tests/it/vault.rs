//! Tests of stored credentials: their formats, concurrent writers and crashes.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use codewright_llm::Error;
use codewright_llm::vault::{Credential, Source, Tokens, Vault};
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use tempfile::TempDir;

/// The number of writers in a test, and of entries per writer.
const WRITERS: usize = 4;
const ENTRIES: usize = 25;

struct Place {
    dir: TempDir,
    given: Option<String>,
}

impl Place {
    fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap(), given: None }
    }

    fn own(&self) -> PathBuf {
        self.dir.path().join("codewright/auth.json")
    }

    fn original(&self) -> PathBuf {
        self.dir.path().join("opencode/auth.json")
    }

    fn vault(&self) -> Vault {
        Vault::new(self.own(), self.original(), self.given.clone())
    }

    fn write(&self, path: PathBuf, bytes: impl AsRef<[u8]>) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    fn own_json(&self) -> Value {
        serde_json::from_slice(&fs::read(self.own()).unwrap()).unwrap()
    }
}

fn api(key: &str) -> Credential {
    Credential::Api { key: key.into(), extra: Map::new() }
}

fn names(vault: &Vault) -> Vec<String> {
    vault.read().unwrap().iter().map(|(name, _, _)| name.to_owned()).collect()
}

#[test]
fn an_empty_vault_is_not_an_error() {
    let place = Place::new();
    assert!(names(&place.vault()).is_empty());
    assert!(!place.vault().remove("openai").unwrap());
    assert!(!place.own().exists(), "nothing was changed");
    place.write(place.original(), "\u{feff} \n");
    assert!(names(&place.vault()).is_empty());
}

#[test]
fn every_format_is_parsed() {
    let place = Place::new();
    place.write(
        place.original(),
        r#"{"anthropic": {"type": "api", "key": "sk-1", "metadata": {"accountId": "1"}},
            "github-copilot": {"type": "oauth", "refresh": "r", "access": "a", "expires": 1e3, "accountId": "me"},
            "https://ai.example.org/": {"type": "wellknown", "key": "TOKEN", "token": "t"}}"#,
    );
    let stored = place.vault().read().unwrap();
    let extra = |value: Value| value.as_object().unwrap().clone();
    let key = Credential::Api { key: "sk-1".into(), extra: extra(json!({"metadata": {"accountId": "1"}})) };
    assert_eq!(stored.get("anthropic"), Some(&key));
    let tokens = Tokens {
        access: "a".into(),
        refresh: "r".into(),
        expires_ms: 1000,
        extra: extra(json!({"accountId": "me"})),
    };
    assert_eq!(tokens.text("accountId"), Some("me"));
    assert_eq!(stored.get("github-copilot"), Some(&Credential::OAuth(tokens)));
    let known = Credential::WellKnown { key: "TOKEN".to_owned(), token: "t".into() };
    assert_eq!(stored.get("https://ai.example.org"), Some(&known));
    assert_eq!(stored.get("https://ai.example.org/"), Some(&known));
}

#[test]
fn our_file_overrides_theirs_and_the_variable_replaces_both() {
    let mut place = Place::new();
    let theirs = r#"{"a": {"type": "api", "key": "1"}, "b": {"type": "api", "key": "1"}}"#;
    place.write(place.original(), theirs);
    place.vault().set("b", &api("2")).unwrap();
    let stored = place.vault().read().unwrap();
    assert_eq!((stored.get("a"), stored.get("b")), (Some(&api("1")), Some(&api("2"))));
    let sources: Vec<_> = stored.iter().map(|(name, _, source)| (name, source)).collect();
    assert_eq!(sources, [("a", Source::Original), ("b", Source::Own)]);

    // Signing out hides an entry that only the original's file has. That file stays unchanged.
    assert!(place.vault().remove("a").unwrap() && place.vault().remove("b").unwrap());
    assert!(names(&place.vault()).is_empty());
    assert!(!place.vault().remove("a").unwrap());
    assert_eq!(fs::read_to_string(place.original()).unwrap(), theirs);
    place.vault().set("a", &api("3")).unwrap();
    assert_eq!(names(&place.vault()), ["a"]);

    place.given = Some(r#"{"c": {"type": "api", "key": "3"}}"#.to_owned());
    let vault = place.vault();
    assert_eq!(names(&vault), ["c"]);
    let before = fs::read(place.own()).unwrap();
    vault.set("d", &api("4")).unwrap();
    assert!(vault.remove("c").unwrap());
    assert_eq!(names(&vault), ["d"], "the given JSON changes for this process");
    assert_eq!(fs::read(place.own()).unwrap(), before, "and is never written");
}

#[test]
fn a_write_keeps_unknown_entries_and_only_the_user_can_read_them() {
    let place = Place::new();
    let before = json!({
        "z": {"type": "passkey", "key": [1, 2]},
        "openai": {"type": "api", "key": "old"},
        "https://x/": {"type": "wellknown", "key": "T", "token": "t"},
        "a": "odd",
    });
    place.write(place.own(), before.to_string());
    place.vault().set("openai", &api("new")).unwrap();
    place.vault().set("https://x", &api("k")).unwrap();
    place.vault().set("last", &api("l")).unwrap();
    let expected = json!({
        "z": {"type": "passkey", "key": [1, 2]},
        "openai": {"type": "api", "key": "new"},
        "https://x/": {"type": "api", "key": "k"},
        "a": "odd",
        "last": {"type": "api", "key": "l"},
    });
    assert_eq!(place.own_json().to_string(), expected.to_string(), "in the same order");
    for entry in fs::read_dir(place.own().parent().unwrap()).unwrap() {
        let entry = entry.unwrap();
        assert_eq!(entry.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{:?}", entry.path());
    }
    for name in ["", "/", "a\nb", &"x".repeat(600)] {
        place.vault().set(name, &api("k")).unwrap_err();
    }
}

#[test]
fn a_link_to_the_file_is_kept() {
    let place = Place::new();
    let real = place.dir.path().join("dotfiles/auth.json");
    place.write(real.clone(), "{}");
    fs::create_dir_all(place.own().parent().unwrap()).unwrap();
    std::os::unix::fs::symlink(&real, place.own()).unwrap();
    place.vault().set("a", &api("1")).unwrap();
    assert!(place.own().is_symlink() && fs::read_to_string(real).unwrap().contains("\"a\""));
}

#[test]
fn an_unknown_entry_is_ignored_with_a_warning_without_secrets() {
    let place = Place::new();
    place.write(
        place.original(),
        r#"{"a": {"type": "passkey", "key": "hush"}, "b": {"type": "api", "key": 5}, "c": "hush", "d": {"type": "api", "key": "k"}}"#,
    );
    assert_eq!(names(&place.vault()), ["d"]);
    let warnings = place.vault().read().unwrap().warnings;
    assert_eq!(warnings.len(), 3);
    assert!(warnings[0].contains("auth.json`: the entry `a`"), "{}", warnings[0]);
    assert!(!warnings.concat().contains("hush"));
}

#[test]
fn an_invalid_file_is_an_error_with_its_position_but_not_its_text() {
    for (bytes, expected) in [
        (&b"{\n\"a\": hush}"[..], "line 2, column 6"),
        (b"[\"hush\"]", "must contain a JSON object"),
        (&[0xff, 0xfe], "is not UTF-8"),
        (b"{\"a\": {\"type\": \"api\", \"key\": \"hush", "this is not JSON"),
    ] {
        let place = Place::new();
        place.write(place.own(), bytes);
        let tries =
            [place.vault().read().map(drop).unwrap_err(), place.vault().set("b", &api("k")).unwrap_err()];
        for error in tries {
            assert!(matches!(error, Error::Rejected { .. }));
            let error = format!("{error} {error:?}");
            assert!(error.contains("auth.json") && error.contains(expected), "{error}");
            assert!(!error.contains("hush"), "{error}");
        }
        assert_eq!(fs::read(place.own()).unwrap(), bytes, "an unreadable file is not replaced");
    }
    let place = Place::new();
    place.write(place.own(), vec![b' '; (1 << 20) + 1]);
    assert!(place.vault().read().unwrap_err().to_string().contains("larger than 1 MiB"));
}

#[test]
fn debug_output_contains_no_secret() {
    let place = Place::new();
    place.write(
        place.original(),
        r#"{"a": {"type": "api", "key": "hush"}, "b": {"type": "oauth", "refresh": "hush", "access": "hush", "expires": 0},
            "c": {"type": "wellknown", "key": "TOKEN", "token": "hush"}}"#,
    );
    let text = format!("{:?} {:?}", place.vault().read().unwrap(), place.vault());
    assert!(text.contains("WellKnown") && !text.contains("hush"), "{text}");
}

#[test]
fn a_crashed_writer_leaves_the_old_file_and_does_not_block_others() {
    let place = Place::new();
    place.vault().set("a", &api("1")).unwrap();
    // The crashed writer left a half-written next file and the lock file.
    place.write(place.own().with_file_name("auth.json.next"), "{\"a\": {\"ty");
    assert_eq!(names(&place.vault()), ["a"]);
    place.vault().set("b", &api("2")).unwrap();
    assert_eq!(names(&place.vault()), ["a", "b"]);

    // A process that is killed while it writes and holds the lock.
    let mut child = child("vault::writes_for_ever", &place);
    while !place.own_json().as_object().unwrap().contains_key("endless") {
        std::thread::yield_now();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    place.vault().set("c", &api("3")).unwrap();
    assert_eq!(names(&place.vault()), ["a", "b", "c", "endless"]);
}

#[test]
fn no_write_of_any_process_or_thread_is_lost() {
    let place = Place::new();
    let mut children: Vec<_> = (0..2).map(|_| child("vault::writes_its_entries", &place)).collect();
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let vault = place.vault();
            scope.spawn(move || {
                for entry in 0..ENTRIES {
                    vault.set(&format!("thread-{writer}-{entry}"), &api("k")).unwrap();
                }
            });
        }
    });
    for child in &mut children {
        assert!(child.wait().unwrap().success());
    }
    assert_eq!(names(&place.vault()).len(), (WRITERS + children.len()) * ENTRIES);
}

/// Runs one of the tests below in a separate process, which reads its directory from stdin.
fn child(test: &str, place: &Place) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([test, "--exact", "--ignored", "--nocapture"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let paths = format!("{}\n{}\n", place.own().display(), place.original().display());
    child.stdin.take().unwrap().write_all(paths.as_bytes()).unwrap();
    child
}

/// Returns the vault of the parent process.
pub(crate) fn vault_of_parent() -> Vault {
    let mut lines = std::io::stdin().lines();
    let mut path = || PathBuf::from(lines.next().unwrap().unwrap());
    Vault::new(path(), path(), None)
}

#[test]
#[ignore = "another test runs it in a separate process"]
fn writes_for_ever() {
    let vault = vault_of_parent();
    loop {
        vault.set("endless", &api("k")).unwrap();
    }
}

#[test]
#[ignore = "another test runs it in a separate process"]
fn writes_its_entries() {
    let vault = vault_of_parent();
    for entry in 0..ENTRIES {
        vault.set(&format!("process-{}-{entry}", std::process::id()), &api("k")).unwrap();
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn any_bytes_are_handled(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let place = Place::new();
        place.write(place.original(), &bytes);
        // Success does not matter here, only that it returns.
        drop(place.vault().read());
    }

    #[test]
    fn an_entry_of_any_type_is_parsed_or_warned_about(text in r#"\{("type": "(api|oauth|wellknown)",? ?)?("(key|token|access|refresh|expires)": ("x"|1|-5|1e300|null),? ?){0,3}"a": 1\}"#) {
        let place = Place::new();
        place.write(place.original(), format!("{{\"p\": {text}}}"));
        if let Ok(stored) = place.vault().read() {
            prop_assert_eq!(stored.iter().count() + stored.warnings.len(), 1);
        }
    }
}

#[test]
fn a_credential_is_changed_in_its_newest_state() {
    let place = Place::new();
    place.write(place.original(), r#"{"one/": {"type": "api", "key": "canary"}}"#);
    let vault = place.vault();
    let name = |known: &mut Credential| {
        let Credential::Api { extra, .. } = known else { panic!("{known:?}") };
        extra.insert("label".to_owned(), "Work".into());
    };
    assert!(!vault.amend("two", name).unwrap());
    assert!(vault.amend("one", |_| {}).unwrap());
    assert_eq!(place.own_json(), json!({}));
    assert!(vault.amend("one", name).unwrap());
    assert_eq!(place.own_json(), json!({"one": {"type": "api", "key": "canary", "label": "Work"}}));
    assert!(vault.remove("one").unwrap() && !vault.amend("one", name).unwrap(), "signed out is signed out");
}
