//! The explanation in a permission request: the rule or built-in reason that requires a reply, the calls that a reply of
//! "always" will allow later, and wider patterns for the user's configuration.

use std::path::Path;

use codewright_proto::{Map, PermissionRequest, Rule};
use serde_json::{Value, json};

use crate::ask::{Ask, Policy};
use crate::evaluate::Subject;
use crate::principal::Target;
use crate::rules::{Author, PermissionRules};
use crate::secret::is_secret;

/// The metadata key of the explanation.
const ASKED: &str = "asked";
/// The permission keys.
const OUTSIDE: &str = "external_directory";
const NETWORK: &str = "network";
const SANDBOX: &str = "sandbox";
const COMMAND: &str = "bash";
/// The longest text from a rule or a pattern.
const MAX_CHARS: usize = 200;
/// The number of patterns in a text, and of wider patterns.
const MAX_PATTERNS: usize = 8;

/// What a request says about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    /// Why it is asked, as the rest of a sentence.
    pub because: String,
    /// What a reply of "always" covers, as the rest of a sentence.
    pub always: String,
    /// Patterns that a reply of "always" can also cover, the narrowest first.
    pub wider: Vec<String>,
}

impl Explanation {
    /// Explains a request in a directory, in which its approval will hold.
    pub fn new(request: &PermissionRequest, rules: &PermissionRules, directory: &Path) -> Self {
        Self {
            because: because(request, rules),
            always: covered(request, directory),
            wider: wider(request, rules),
        }
    }

    /// Returns what clients display: a metadata key and its value.
    pub fn display(&self) -> (&'static str, Value) {
        (ASKED, json!({"because": self.because, "always": self.always, "wider": self.wider}))
    }

    /// Returns the wider patterns that a stored request offers.
    pub fn wider_of_stored(metadata: &Map) -> Vec<String> {
        let wider = metadata.get(ASKED).and_then(|asked| asked.get("wider")?.as_array());
        wider.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
    }
}

/// Why a request is asked, as the rest of a sentence.
fn because(request: &PermissionRequest, rules: &PermissionRules) -> String {
    let reason = |key: &str| request.metadata.get(key).and_then(Value::as_str);
    let is_set = |key: &str| request.metadata.get(key).is_some_and(|value| *value == true);
    if let Some(reason) = reason(Target::CONTROL) {
        return format!("other programs act on this file: {reason}");
    }
    if let Some(reason) = reason(Ask::IRREVERSIBLE) {
        return format!("{reason}, and this cannot be undone");
    }
    if reason(Policy::UNENFORCED).is_some() && request.permission == COMMAND {
        return "this machine cannot enforce the sandbox".to_owned();
    }
    if request.permission == SANDBOX {
        return "the command asks for more than its sandbox allows".to_owned();
    }
    let asking = request.patterns.iter().find_map(|pattern| rules.asking(&request.permission, pattern));
    match (asking, reason(Ask::REASON)) {
        (Some((rule, Author::User)), _) => format!("your rule {} asks", shown_rule(&rule)),
        (Some((rule, Author::Repository)), _) => {
            format!("a rule of the repository asks: {}", shown_rule(&rule))
        }
        (_, Some(reason)) => reason.to_owned(),
        _ if is_set(Policy::EXACT) => "only a rule with exactly this target allows it".to_owned(),
        _ if is_set(Policy::NAMED) => "only a rule that names this target allows it".to_owned(),
        (Some((_, Author::BuiltIn)), None) => built_in(request),
        (None, None) => "no rule allows it".to_owned(),
    }
}

/// Why a built-in rule asks.
fn built_in(request: &PermissionRequest) -> String {
    let subjects = || request.patterns.iter().map(|pattern| Subject::new(&request.permission, pattern));
    let is_any_secret = || subjects().any(is_secret);
    let reason = match request.permission.as_str() {
        OUTSIDE if is_any_secret() => "the directory is outside of the project and may have secrets",
        OUTSIDE => "the directory is outside of the project",
        "read" => "the file may have secrets",
        NETWORK => "the command connects to a host that no rule allows",
        "doom_loop" => "the model repeats the same call",
        _ => "it needs permission by default",
    };
    reason.to_owned()
}

/// What a reply of "always" covers, as the rest of a sentence.
fn covered(request: &PermissionRequest, directory: &Path) -> String {
    let place = directory.display();
    let (permission, always) = (&request.permission, &request.always);
    if always.is_empty() {
        return "nothing more than this call".to_owned();
    }
    if always.iter().any(|pattern| pattern == "*") {
        return format!("every {permission} in {place} for which the same rule asks");
    }
    let more = always.len().saturating_sub(MAX_PATTERNS);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let shown: Vec<_> =
        always.iter().take(MAX_PATTERNS).map(|pattern| format!("`{}`", cut(pattern))).collect();
    format!("{permission} {}{more} in {place}", shown.join(", "))
}

/// Patterns that cover more than those of "always", the narrowest first.
fn wider(request: &PermissionRequest, rules: &PermissionRules) -> Vec<String> {
    // Approvals of these requests hold for exactly one target.
    let exact = [Target::CONTROL, Ask::IRREVERSIBLE, Policy::UNENFORCED, Policy::EXACT];
    if exact.into_iter().any(|key| request.metadata.contains_key(key)) {
        return Vec::new();
    }
    let permission = request.permission.as_str();
    let mut wider: Vec<String> = Vec::new();
    for pattern in request.always.iter().filter(|pattern| *pattern != "*") {
        let found = match permission {
            COMMAND => program(pattern),
            "read" => rules.asking(permission, pattern).map(|(rule, _)| rule.pattern),
            _ => None,
        };
        let found = found.filter(|found| found != pattern && !wider.contains(found));
        wider.extend(found.filter(|found| !request.always.contains(found)));
    }
    wider.truncate(MAX_PATTERNS);
    wider
}

/// The pattern for all commands of a program, for a pattern of one of its commands.
fn program(pattern: &str) -> Option<String> {
    let (program, rest) = pattern.strip_suffix(" *")?.split_once(' ')?;
    (!rest.is_empty() && !program.is_empty()).then(|| format!("{program} *"))
}

fn shown_rule(rule: &Rule) -> String {
    format!("`{} {}: ask`", cut(&rule.permission), cut(&rule.pattern))
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => format!("{}\u{2026}", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use codewright_proto::Action;

    use super::*;

    fn request(permission: &str, patterns: &[&str], always: &[&str], metadata: Value) -> PermissionRequest {
        let request = json!({
            "id": "per_1", "sessionID": "ses_1", "permission": permission, "patterns": patterns,
            "metadata": metadata, "always": always,
        });
        serde_json::from_value(request).unwrap()
    }

    #[track_caller]
    fn check(request: &PermissionRequest, expected: [&str; 2], more: &[&str]) {
        let rules = PermissionRules::of(vec![
            Rule::new("bash", "*", Action::Ask),
            Rule::new("read", "*.env", Action::Ask),
            Rule::new("edit", "*", Action::Allow),
        ]);
        let found = Explanation::new(request, &rules, Path::new("/p")).display();
        let expected = json!({"because": expected[0], "always": expected[1], "wider": more});
        assert_eq!(found, ("asked", expected));
        let metadata = Map::from_iter([(found.0.to_owned(), found.1)]);
        assert_eq!(Explanation::wider_of_stored(&metadata), more);
    }

    #[test]
    fn a_request_says_why_it_is_asked_and_what_always_covers() {
        let none = || json!({});
        check(
            &request("bash", &["git commit -m x"], &["git commit *"], none()),
            ["your rule `bash *: ask` asks", "bash `git commit *` in /p"],
            &["git *"],
        );
        check(
            &request("bash", &["ls"], &["ls *"], none()),
            ["your rule `bash *: ask` asks", "bash `ls *` in /p"],
            &[],
        );
        check(
            &request("read", &["a/.env"], &["a/.env"], none()),
            ["your rule `read *.env: ask` asks", "read `a/.env` in /p"],
            &["*.env"],
        );
        check(
            &request("bash", &["rm -r x"], &["rm -r x"], json!({"irreversible": "it deletes"})),
            ["it deletes, and this cannot be undone", "bash `rm -r x` in /p"],
            &[],
        );
        check(
            &request("edit", &[".git/hooks/x"], &[".git/hooks/x"], json!({"controlFile": "git runs it"})),
            ["other programs act on this file: git runs it", "edit `.git/hooks/x` in /p"],
            &[],
        );
        check(
            &request("bash", &["git add ."], &["git add *"], json!({"sandbox": "no bubblewrap"})),
            ["this machine cannot enforce the sandbox", "bash `git add *` in /p"],
            &[],
        );
        check(
            &request("srv_tool", &["*"], &["*"], none()),
            ["no rule allows it", "every srv_tool in /p for which the same rule asks"],
            &[],
        );
        check(
            &request("sandbox", &["x"], &[], none()),
            ["the command asks for more than its sandbox allows", "nothing more than this call"],
            &[],
        );
    }

    #[test]
    fn texts_are_bounded() {
        let long = "x".repeat(10_000);
        let many = vec![long.as_str(); 100];
        let rules = PermissionRules::default();
        let request = request("bash", &many, &many, json!({}));
        let (_, found) = Explanation::new(&request, &rules, Path::new("/p")).display();
        assert!(found.to_string().len() < 3000, "{found}");
    }
}
