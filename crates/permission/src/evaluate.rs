//! The decision of a list of rules about a permission and a pattern.
//!
//! The last rule that matches decides, as existing configurations expect. A later rule therefore narrows or widens an
//! earlier one. The functions here are pure.

use codewright_proto::{Action, Rule};
use codewright_workspace::{composed, plain};

/// The permissions whose patterns are paths.
const PATHS: [&str; 4] = ["edit", "external_directory", "list", "read"];

/// What rules decide about: a permission key and a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Subject<'a> {
    pub permission: &'a str,
    pub pattern: &'a str,
}

impl<'a> Subject<'a> {
    pub fn new(permission: &'a str, pattern: &'a str) -> Self {
        Self { permission, pattern }
    }
}

/// How a rule names a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Naming {
    /// The text, or its normal form if it is a path.
    Same,
    /// Only another spelling. A rule that allows never names one, because that may be another file.
    Alike,
    Other,
}

/// Returns how the pattern of a rule names a text.
pub fn naming(rule: &Rule, permission: &str, text: &str) -> Naming {
    if matches(&rule.pattern, text) {
        return Naming::Same;
    }
    if rule.pattern.is_ascii() && text.is_ascii() {
        return Naming::Other;
    }
    let (pattern, spelled) = (composed(&rule.pattern), plain(text));
    if PATHS.contains(&permission) && (matches(&pattern, &composed(text)) || matches(&pattern, &spelled)) {
        return Naming::Same;
    }
    let is_alike = rule.action != Action::Allow && matches(&plain(&rule.pattern), &spelled);
    if is_alike { Naming::Alike } else { Naming::Other }
}

/// Returns the rule that decides among rules in reverse order: the last one that names a text, or a stricter one after it
/// that names another spelling.
pub fn deciding<'a>(
    reversed: impl Iterator<Item = &'a Rule>,
    naming: impl Fn(&Rule) -> Naming,
) -> Option<&'a Rule> {
    let mut alike: Option<&Rule> = None;
    for rule in reversed {
        match naming(rule) {
            Naming::Same => {
                let stricter =
                    alike.filter(|alike| strictest([alike.action, rule.action].into_iter()) != rule.action);
                return Some(stricter.unwrap_or(rule));
            }
            Naming::Alike => alike = alike.or(Some(rule)),
            Naming::Other => {}
        }
    }
    alike
}

/// Decides about `permission` on one `pattern`. Returns `None` if no rule matches.
pub fn evaluate<'a>(
    rules: impl DoubleEndedIterator<Item = &'a Rule>,
    permission: &str,
    pattern: &str,
) -> Option<&'a Rule> {
    let about = rules.rev().filter(|rule| matches(&rule.permission, permission));
    deciding(about, |rule| naming(rule, permission, pattern))
}

/// Reports whether a rule can decide about a request that needs a name. A rule that denies or asks always can. A rule
/// that allows must name this permission, and more than a URL scheme.
pub fn is_named(rule: &Rule) -> bool {
    let pattern = rule.pattern.strip_prefix("https").or(rule.pattern.strip_prefix("http"));
    let pattern = pattern.unwrap_or(&rule.pattern);
    let says = |text: &str| text.chars().any(char::is_alphanumeric);
    rule.action != Action::Allow || (says(&rule.permission) && says(pattern))
}

/// Decides about a call with several targets: the strictest action wins.
pub fn strictest(actions: impl Iterator<Item = Action>) -> Action {
    actions.fold(Action::Allow, |worst, action| match (worst, action) {
        (Action::Deny, _) | (_, Action::Deny) => Action::Deny,
        (Action::Ask, _) | (_, Action::Ask) => Action::Ask,
        (Action::Allow, Action::Allow) => Action::Allow,
    })
}

/// Reports whether the rules deny a permission altogether, so that its tools are not offered to the model.
pub fn is_off(rules: &[Rule], permission: &str) -> bool {
    let last = rules.iter().rev().find(|rule| matches(&rule.permission, permission));
    last.is_some_and(|rule| rule.pattern == "*" && rule.action == Action::Deny)
}

/// Reports whether rules allow each permission whose name begins with `prefix`, on each pattern. `otherwise` is the
/// decision without a rule.
pub fn allows_all(rules: &[Rule], prefix: &str, otherwise: Action) -> bool {
    rules.iter().fold(otherwise == Action::Allow, |allowed, rule| {
        let stem = rule.permission.split(['*', '?']).next().unwrap_or_default();
        let is_wildcard = stem.len() < rule.permission.len();
        let covers = rule.permission.strip_suffix('*') == Some(stem) && prefix.starts_with(stem);
        let can_match = stem.starts_with(prefix) || is_wildcard && prefix.starts_with(stem);
        match rule.action {
            action if covers && rule.pattern == "*" => action == Action::Allow,
            Action::Ask | Action::Deny if can_match => false,
            Action::Ask | Action::Deny | Action::Allow => allowed,
        }
    })
}

/// Reports whether a wildcard matches a whole text.
///
/// `*` matches any number of characters, including slashes, and `?` matches one. A pattern that ends in a space and a
/// star also matches without them, so that `ls *` matches a plain `ls`.
pub fn matches(pattern: &str, text: &str) -> bool {
    if let Some(bare) = pattern.strip_suffix(" *")
        && glob(bare, text)
    {
        return true;
    }
    glob(pattern, text)
}

/// Matches a wildcard.
fn glob(pattern: &str, text: &str) -> bool {
    if pattern.is_ascii() && text.is_ascii() {
        return glob_of(pattern.as_bytes(), text.as_bytes());
    }
    glob_of(&pattern.chars().collect::<Vec<_>>(), &text.chars().collect::<Vec<_>>())
}

/// Matches a wildcard with two pointers. The time is at most the product of the lengths.
fn glob_of<C: Copy + PartialEq + From<u8>>(pattern: &[C], text: &[C]) -> bool {
    let (any, one) = (C::from(b'*'), C::from(b'?'));
    let (mut p, mut t) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        match pattern.get(p) {
            Some(&c) if c == any => {
                star = Some((p, t));
                p += 1;
            }
            Some(&c) if c == one || c == text[t] => {
                p += 1;
                t += 1;
            }
            _ => match star {
                Some((at, from)) => {
                    star = Some((at, from + 1));
                    p = at + 1;
                    t = from + 1;
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|&c| c == any)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(text: &str) -> Vec<Rule> {
        text.split("; ")
            .map(|rule| {
                let (permission, rest) = rule.split_once(' ').unwrap();
                let (pattern, action) = rest.rsplit_once(' ').unwrap();
                let action = match action {
                    "allow" => Action::Allow,
                    "ask" => Action::Ask,
                    _ => Action::Deny,
                };
                Rule::new(permission, pattern, action)
            })
            .collect()
    }

    #[track_caller]
    fn check(written: &str, permission: &str, pattern: &str, expected: Option<Action>) {
        let rules = rules(written);
        assert_eq!(evaluate(rules.iter(), permission, pattern).map(|rule| rule.action), expected);
    }

    #[test]
    fn all_permissions_of_a_prefix_are_allowed_only_without_exceptions() {
        let allows = |rules: &str| {
            let rules = rules.split("; ").map(|rule| {
                let words: Vec<_> = rule.split(' ').collect();
                let action = match words[2] {
                    "allow" => Action::Allow,
                    "ask" => Action::Ask,
                    _ => Action::Deny,
                };
                Rule::new(words[0], words[1], action)
            });
            allows_all(&rules.collect::<Vec<_>>(), "srv_", Action::Ask)
        };
        for (rules, expected) in [
            ("* * allow", true),
            ("srv_* * allow", true),
            ("srv_get * allow", false),
            ("* x allow", false),
            ("* * allow; srv_* * ask", false),
            ("* * allow; srv_delete * deny", false),
            ("* * allow; srv_delete x deny", false),
            ("* * allow; *_delete * deny", false),
            ("* * allow; s? * deny", false),
            ("* * allow; other_* * deny; srv * deny; bash * ask", true),
            ("* * allow; srv_delete * deny; srv_* * allow", true),
            ("* * ask", false),
        ] {
            assert_eq!(allows(rules), expected, "{rules}");
        }
    }

    #[test]
    fn the_last_matching_rule_decides() {
        check("* * allow; read *.env deny", "read", "app.env", Some(Action::Deny));
        check("read *.env deny; * * allow", "read", "app.env", Some(Action::Allow));
        check(
            "read * allow; read *.env ask; read *.env.example allow",
            "read",
            "a/.env.example",
            Some(Action::Allow),
        );
        check("bash * ask; bash git * allow", "bash", "git status", Some(Action::Allow));
        check("bash * ask; bash git * allow", "bash", "git", Some(Action::Allow));
        check("bash * ask; bash git * allow", "bash", "gitk", Some(Action::Ask));
    }

    #[test]
    fn without_a_rule_nothing_is_decided() {
        check("read * allow", "bash", "ls", None);
    }

    /// In names, `1` stands for a narrow no-break space, `2` for a composed letter, `3` for a decomposed one, `4` for a
    /// full-width one.
    #[test]
    fn rules_name_every_spelling_and_allow_only_the_normal_form() {
        use Action::{Allow, Ask, Deny};
        let spelled = |text: &str| {
            let text = text.replace('1', "\u{202f}").replace('2', "\u{e9}");
            text.replace('3', "e\u{301}").replace('4', "\u{ff41}")
        };
        for (written, permission, text, expected) in [
            ("* * allow; read caf2 deny", "read", "caf3", Deny),
            ("* * allow; read caf3 deny", "read", "caf2", Deny),
            ("* * allow; read x1y deny", "read", "x1y", Deny),
            ("* * allow; read x1y deny", "read", "x y", Deny),
            ("* * allow; read 4.txt deny", "read", "a.txt", Deny),
            ("* * allow; read a.txt deny", "read", "4.txt", Deny),
            ("read * deny; read caf2 allow", "read", "caf3", Allow),
            ("read * deny; read caf3 allow", "read", "caf2", Allow),
            ("read * deny; read a.txt allow", "read", "4.txt", Allow),
            // The pattern is neither the name of this file nor its normal form.
            ("read * deny; read 4.txt allow", "read", "a.txt", Deny),
            ("read * deny; read a/* allow", "read", "a\u{ff0f}b", Deny),
            // Another spelling of a command is another command.
            ("bash * ask; bash 4* allow", "bash", "a x", Ask),
            ("bash * ask; bash a* allow", "bash", "4 x", Ask),
            ("bash * allow; bash a* deny", "bash", "4 x", Deny),
            // A question about another spelling does not replace a denial.
            ("read * deny; read 4.txt ask", "read", "a.txt", Deny),
            ("read * allow; read 4.txt deny; read a.txt allow", "read", "a.txt", Allow),
        ] {
            check(&spelled(written), permission, &spelled(text), Some(expected));
        }
        let screenshot = "at 10\u{202f}AM.png";
        let rules = [Rule::new("read", "*", Deny), Rule::new("read", "at 10 AM.png", Allow)];
        assert_eq!(evaluate(rules.iter(), "read", screenshot).map(|rule| rule.action), Some(Allow));
    }

    #[test]
    fn a_pattern_matches_the_whole_text() {
        for (pattern, text, expected) in [
            ("*", "", true),
            ("/tmp/x/*", "/tmp/x/a/b", true),
            ("/tmp/x/*", "/tmp/xy/a", false),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("ls *", "ls", true),
            ("ls *", "ls -la", true),
            ("ls *", "lsof", false),
            ("*.env", "x.env.bak", false),
            ("\u{e4}*", "\u{e4}b", true),
        ] {
            assert_eq!(matches(pattern, text), expected, "{pattern} on {text}");
        }
    }

    #[test]
    fn a_hostile_pattern_is_matched_in_bounded_time() {
        let pattern = "*a".repeat(200);
        assert!(!matches(&pattern, &"a".repeat(150)));
    }

    #[test]
    fn only_a_whole_denial_hides_a_tool() {
        assert!(is_off(&rules("* * allow; edit * deny"), "edit"));
        assert!(!is_off(&rules("* * allow; edit *.py deny"), "edit"));
        assert!(!is_off(&rules("edit * deny; edit src/* allow"), "edit"));
    }

    #[test]
    fn only_a_rule_with_a_target_names_a_request() {
        for (rule, expected) in [
            ("* * allow", false),
            ("webfetch * allow", false),
            ("webfetch http* allow", false),
            ("webfetch https://*:* allow", false),
            ("* http://localhost:* allow", false),
            ("webfetch http://localhost:* allow", true),
            ("webfetch https://*.corp.local/* allow", true),
            ("* * deny", true),
            ("webfetch * ask", true),
        ] {
            assert_eq!(is_named(&rules(rule)[0]), expected, "{rule}");
        }
    }

    #[test]
    fn one_denial_among_many_decides() {
        use Action::{Allow, Ask, Deny};
        assert_eq!(strictest([Allow, Ask, Deny, Ask].into_iter()), Deny);
        assert_eq!(strictest([Allow, Ask].into_iter()), Ask);
        assert_eq!(strictest(std::iter::empty()), Allow);
    }
}
